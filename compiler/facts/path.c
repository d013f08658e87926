// path.c - what is true on a path through a role's code.
//
// In: a path, and a side of an `if`, or an end of a loop, that it comes to. Out: whether it can go
// on like this, and what is true of it then. A condition asks of values that do not change within a
// tile, but for loop variables: so what it said stays true until its loop's next round. Then it is
// true of the variable less 1, and behind the loop of the variable's last value. So `t > 0` tells
// the first round from the others, `t < n - 1` the last one, and behind the loop each says
// something of n. Of a quotient, as in `t % 2 == 0`, the same is said of the quotient of t - 1.
//
// Invariant: a path cannot go on only if what is true on it contradicts itself, as prove.c shows.
// So nothing that a run can do is left out. (Paths that are united only where they agree about what
// matters: Das, Lerner, Seigle, ESP, PLDI 2002.)
#include "compiler/facts/path.h"

#include "compiler/facts/linear.h"

// ---- what is true

static bool same_truth(const Truth *a, const Truth *b) {
  if (a->cond || b->cond) return a->cond == b->cond && a->holds == b->holds;
  return sc_lin_same(a->least0, b->least0);
}

static Truth *find(Path *p, const Truth *t) {
  for (u32 i = 0; i < p->n; i++) {
    if (same_truth(&p->at[i], t)) return &p->at[i];
  }
  return NULL;
}

static bool listed(const Path *p, const Truth *t) { return find((Path *)p, t) != NULL; }

static void note(Path *p, Truth t) {
  Truth *same = find(p, &t);
  if (same && same->site == SC_NONE) same->site = t.site;
  if (p->n < MAX_TRUTHS && !same) p->at[p->n++] = t;
}

// `by`: what says so, for messages, or NULL.
static void note_form(PathFacts *f, Path *p, const Lin *least0, const Truth *by) {
  Truth t = {.holds = by && by->holds, .site = by ? by->site : SC_NONE, .least0 = least0};
  if (!least0->n && least0->c >= 0) return;
  Truth *same = find(p, &t);
  if (!same) {
    t.least0 = sc_form_keep(f->facts, least0);
    note(p, t);
  } else if (same->site == SC_NONE && !same->cond) {
    same->site = t.site;
    same->holds = t.holds;
  }
}

// ---- keys: what is asked, and of what

// CAN_BE: is the path free of contradictions? FOLLOWS: is a truth one of it? ASKED, APART:
// known_of. ZERO: must the last form of the path be 0, if it is not negative?
typedef enum Question { CAN_BE, FOLLOWS, ASKED, APART, ZERO } Question;

enum { TRUTH_WORDS = 2 + 3 * LIN_TERMS, WORDS = (MAX_TRUTHS + 1) * TRUTH_WORDS + 1 };

static u32 write_truth(u64 *out, const Truth *t) {
  u32 n = 0;
  out[n++] = (u64)t->cond << 32 | t->holds;
  if (t->cond) return n;
  out[0] = t->least0->n;
  out[n++] = (u64)t->least0->c;
  for (u32 i = 0; i < t->least0->n; i++) {
    const Term *m = &t->least0->at[i];
    out[n++] = (u64)m->by;
    out[n++] = (u64)m->atom[0] << 32 | m->atom[1];
    out[n++] = m->atom[2];
  }
  return n;
}

static bool is_quotient(const void *facts, u32 atom) {
  return ((const Facts *)facts)->atom.at[atom].op == X_IDIV;
}

// A form that is not negative is 0 if it cannot be positive: so `t % 2 <= 0` says what t is. (If it
// must be negative, the path cannot be: with 0 in its place that would not show any more.)
static bool must_be_zero(Facts *f, const Lin *least0) {
  Lin minus = sc_lin_int(0), below = sc_lin_int(-1);
  return sc_lin_add(&minus, least0, -1) && sc_form_nonneg(f, &minus) &&
         sc_lin_add(&below, least0, -1) && !sc_form_nonneg(f, &below);
}

// key: the path's truths up to this one, whose answer is kept.
static void suppose_zero(PathFacts *f, const Lin *least0, const u64 *key, u32 n) {
  Lin zero = *least0;
  if (!sc_lin_any(least0, is_quotient, f->facts)) return;
  u32 *known = &sc_key(f->facts->sc, &f->answers, 0, key, n * sizeof *key)->number;
  if (!*known) *known = must_be_zero(f->facts, least0) + 1;
  if (*known == 2 && sc_know(f->facts, &zero)) sc_fact_zero(f->facts, &zero);
}

// The path's truths are among the facts until they are dropped.
static u32 suppose(PathFacts *f, const Path *p, u32 pc) {
  sc_facts_at(f->facts, f->code, pc);
  u32 mark = sc_facts_mark(f->facts), n = 0;
  u64 words[WORDS];
  words[n++] = (u64)pc << 32 | ZERO;
  for (u32 i = 0; i < p->n; i++) {
    const Truth *t = &p->at[i];
    Lin least0;  // whole: of what is stored only the terms that it has are there
    n += write_truth(words + n, t);
    if (t->cond) sc_facts_assume(f->facts, t->cond, t->holds);
    if (t->cond) continue;
    sc_lin_copy(&least0, t->least0);
    sc_fact_push(f->facts, FACT_SAID, &least0);
    suppose_zero(f, &least0, words, n);
  }
  return mark;
}

enum { CONDITIONS = 64 };

static bool follows(PathFacts *f, const Path *p, Xid cond, bool holds, u32 *steps);

static bool compares(PathFacts *f, const Expr *e, bool holds) {
  Facts *facts = f->facts;
  if (f->k->expr.at[e->a].ty != TY_INT) return false;  // of reals, `not a < b` is not `b <= a`
  switch (e->op) {
    case X_LT: return holds ? sc_fact_less(facts, e->a, e->b) : sc_fact_at_most(facts, e->b, e->a);
    case X_LE: return holds ? sc_fact_at_most(facts, e->a, e->b) : sc_fact_less(facts, e->b, e->a);
    case X_EQ:
    case X_NE:
      if ((e->op == X_EQ) == holds) return sc_fact_equal(facts, e->a, e->b);
      return sc_fact_less(facts, e->a, e->b) || sc_fact_less(facts, e->b, e->a);
    default: return false;
  }
}

// Does it follow from what is supposed that a condition holds, or that it does not?
static bool follows(PathFacts *f, const Path *p, Xid cond, bool holds, u32 *steps) {
  const Expr *e = &f->k->expr.at[cond];
  bool value;
  if (!*steps || !--*steps) return false;
  if (x_const_bool(f->k, cond, &value)) return value == holds;
  if (listed(p, &(Truth){.cond = cond, .holds = holds})) return true;
  if (e->op == X_NOT) return follows(f, p, e->a, !holds, steps);
  if (e->op != X_AND && e->op != X_OR) return compares(f, e, holds);
  bool first = follows(f, p, e->a, holds, steps), both = (e->op == X_AND) == holds;
  return first == both ? follows(f, p, e->b, holds, steps) : first;
}

static bool truth_follows(PathFacts *f, const Path *p, const Truth *t) {
  u32 steps = CONDITIONS;
  if (t->cond) return follows(f, p, t->cond, t->holds, &steps);
  Lin least0;
  sc_lin_copy(&least0, t->least0);
  return sc_form_nonneg(f->facts, &least0);
}

static bool refuted(PathFacts *f, const Path *p, const Truth *t) {
  u32 steps = CONDITIONS;
  if (t->cond) return follows(f, p, t->cond, !t->holds, &steps);
  Lin below = sc_lin_int(-1);
  return sc_lin_add(&below, t->least0, -1) && sc_form_nonneg(f->facts, &below);
}

// ---- questions

enum { MAX_ASKED = 8, MAX_APART = 16 };

// Which of the conditions hold (bit 2 i for the i-th), and which do not?
static u32 known_of(PathFacts *f, const Path *p, const Xid *cond, u32 n) {
  u32 set = 0;
  for (u32 i = 0; i < n; i++) {
    for (u32 holds = 0; holds < 2; holds++) {
      u32 steps = CONDITIONS;
      set |= (u32)follows(f, p, cond[i], holds, &steps) << (2 * i + !holds);
    }
  }
  return set;
}

// While the path is supposed.
static u32 work_out(PathFacts *f, const Path *p, Question q, const Truth *t) {
  if (q == FOLLOWS) return truth_follows(f, p, t);
  if (q == ASKED) return known_of(f, p, f->asked.at, f->asked.n);
  f->left -= q == APART;
  if (q == APART) return known_of(f, p, f->apart.at, f->apart.n);
  bool can = true;
  for (u32 i = p->n; i > 0 && can; i--) can = !refuted(f, p, &p->at[i - 1]);
  return can;
}

// The passes of a walk ask the same of the same paths again, and what is not so takes the longest
// to find out. So an answer is kept beside the whole question. One of several questions of a path:
// it stays supposed until they are `answered`.
static u32 answer_one(PathFacts *f, const Path *p, u32 pc, Question q, const Truth *t) {
  u64 words[WORDS];
  u32 n = 0;
  words[n++] = (u64)pc << 32 | (u64)p->n << 8 | q;
  if (t) n += write_truth(words + n, t);
  for (u32 i = 0; i < p->n; i++) n += write_truth(words + n, &p->at[i]);
  u32 known = sc_key(f->facts->sc, &f->answers, 0, words, n * sizeof *words)->number;
  if (known) return known - 1;
  if (!f->supposed) f->mark = suppose(f, p, pc);  // which keeps answers of its own
  f->supposed = true;
  known = work_out(f, p, q, t);
  sc_key(f->facts->sc, &f->answers, 0, words, n * sizeof *words)->number = known + 1;
  return known;
}

static void answered(PathFacts *f) {
  if (f->supposed) sc_facts_drop(f->facts, f->mark);
  f->supposed = false;
}

static u32 answer(PathFacts *f, const Path *p, u32 pc, Question q, const Truth *t) {
  const u32 known = answer_one(f, p, pc, q, t);
  answered(f);
  return known;
}

static bool can_be(PathFacts *f, const Path *p, u32 pc) { return answer(f, p, pc, CAN_BE, NULL); }

// ---- conditions

// Of two conditions that both hold, each does; if they do not both, and one does, the other does
// not. (And so for `or`.)
static void note_parts(PathFacts *f, Path *p, const Truth *t) {
  const Expr *e = &f->k->expr.at[t->cond];
  Truth part = *t;
  if (e->op == X_NOT) {
    part.cond = e->a;
    part.holds = !t->holds;
    note(p, part);
  }
  if (e->op != X_AND && e->op != X_OR) return;
  bool each = (e->op == X_AND) == t->holds;
  for (u32 i = 0; i < 2; i++) {
    u32 steps = CONDITIONS;
    part.cond = i ? e->b : e->a;
    if (each || follows(f, p, i ? e->a : e->b, !t->holds, &steps)) note(p, part);
  }
}

static bool has_parts(const PathFacts *f, const Path *p) {
  bool has = false;
  for (u32 i = 0; i < p->n && !has; i++) {
    u8 op = f->k->expr.at[p->at[i].cond].op;
    has = p->at[i].cond && (op == X_AND || op == X_OR || op == X_NOT);
  }
  return has;
}

static void note_all_parts(PathFacts *f, Path *p, u32 pc) {
  if (!has_parts(f, p)) return;
  u32 mark = suppose(f, p, pc);
  for (u32 i = 0; i < p->n; i++) {
    Truth t = p->at[i];
    if (t.cond) note_parts(f, p, &t);
  }
  sc_facts_drop(f->facts, mark);
}

bool sc_path_if(PathFacts *f, Path *p, u32 pc, bool holds) {
  Xid cond = f->code->at[pc].arg[0];
  if (!x_uniform(f->k, cond)) return true;
  note(p, (Truth){.cond = cond, .holds = holds, .site = pc});
  note_all_parts(f, p, pc);
  return can_be(f, p, pc);
}

// ---- two paths

static bool is_loose(const void *facts, u32 atom) {
  const Atom *a = &((const Facts *)facts)->atom.at[atom];
  return a->varies || a->op == X_MIN || a->op == X_MAX;
}

// The two forms without their common loop variable, which is `t` in both. False: they have none, or
// more that varies.
static bool without_variable(const Facts *f, const Lin *x, const Lin *y, Lin *t, Lin *a, Lin *b) {
  for (u32 i = 0; i < x->n; i++) {
    if (f->atom.at[x->at[i].atom[0]].op != X_LOOP || x->at[i].atom[1]) continue;
    *t = (Lin){.n = 1, .at = {x->at[i]}};
    *a = *b = sc_lin_int(0);
    bool ok =
        sc_lin_add(a, x, 1) && sc_lin_add(a, t, -1) && sc_lin_add(b, y, 1) && sc_lin_add(b, t, -1);
    if (ok && !sc_lin_any(a, is_loose, f) && !sc_lin_any(b, is_loose, f)) return true;
  }
  return false;
}

// Where t is at least a on one path, and at least b on the other, it is at least the lesser one.
static void note_lesser(PathFacts *f, Path *into, const Truth *x, const Path *from) {
  Lin t, a, b;
  for (u32 i = 0; i < from->n && !x->cond; i++) {
    if (from->at[i].cond || !without_variable(f->facts, x->least0, from->at[i].least0, &t, &a, &b))
      continue;
    Lin least0 = sc_form_extreme(f->facts, X_MAX, &a, &b);
    if (sc_lin_add(&least0, &t, 1)) note_form(f, into, &least0, NULL);
  }
}

bool sc_path_alike(PathFacts *f, const Path *a, const Path *b, u32 pc) {
  if (!f->apart.n || !f->left) return true;
  const u32 x = answer(f, a, pc, APART, NULL), y = f->left ? answer(f, b, pc, APART, NULL) : 0;
  const u32 contrary = (y & 0x55555555) << 1 | (y & 0xaaaaaaaa) >> 1;
  return !(x & contrary);
}

// `u > 0 or t > 0` may hold on both, if `u > 0` does on one and `t > 0` on the other.
static bool unite(PathFacts *f, Path *into, const Path *from, u32 pc) {
  u32 kept = 0, lost = 0, both = 0;
  if (f->asked.n) both = answer(f, into, pc, ASKED, NULL) & answer(f, from, pc, ASKED, NULL);
  Truth less_known[MAX_TRUTHS];
  for (u32 i = 0; i < into->n; i++) {
    Truth t = into->at[i];
    if (listed(from, &t) || answer_one(f, from, pc, FOLLOWS, &t)) into->at[kept++] = t;
    else less_known[lost++] = t;
  }
  answered(f);
  bool less = kept < into->n;
  into->n = kept;
  for (u32 i = 0; i < lost; i++) note_lesser(f, into, &less_known[i], from);
  for (u32 i = 0; i < 2 * f->asked.n && less; i++) {
    if (both >> i & 1)
      note(into, (Truth){.cond = f->asked.at[i / 2], .holds = !(i & 1), .site = SC_NONE});
  }
  return less;
}

void sc_path_unite(PathFacts *f, Path *into, const Path *from, u32 pc, bool *changed) {
  Path other = *from;
  if (!changed) unite(f, &other, into, pc);
  const bool less = unite(f, into, from, pc);
  if (changed) *changed |= less;
  for (u32 i = 0; i < other.n && !changed; i++) note(into, other.at[i]);
}

// A condition that is made of others, or compares a quotient. What others say stands in one form.
static bool is_asked(const Kernel *k, Xid cond) {
  const Expr *e = &k->expr.at[cond];
  if (e->op == X_AND || e->op == X_OR) return true;
  return x_divides(k->expr.at[e->a].op) || x_divides(k->expr.at[e->b].op);
}

void sc_path_ask(PathFacts *f, const Role *role) {
  Sc *sc = f->facts->sc;
  f->asked.n = f->apart.n = 0;
  for (u32 i = 0; i < f->code->n; i++) {
    Xid cond = f->code->at[i].op == OP_IF ? f->code->at[i].arg[0] : 0;
    if (!cond || !x_uniform(f->k, cond)) continue;
    if (f->asked.n < MAX_ASKED && is_asked(f->k, cond)) PUSH(sc, &f->asked, cond);
    if (f->apart.n < MAX_APART && role->by_paths == PATHS_BY_CONDITIONS) PUSH(sc, &f->apart, cond);
  }
}

PathFacts *sc_path_facts(Sc *sc, const Kernel *k, const Role *role) {
  PathFacts *f = NEW(sc, PathFacts);
  *f = (PathFacts){.facts = sc_facts(sc, k), .k = k, .code = &role->code, .below = x_below(sc, k)};
  sc_path_ask(f, role);
  return f;
}

// ---- rounds of loops

// x - y + c.
static Lin minus(const Lin *x, const Lin *y, i64 c) {
  Lin all = sc_lin_int(c);
  bool ok = sc_lin_add(&all, x, 1) && sc_lin_add(&all, y, -1);
  return ok ? all : sc_lin_int(0);  // which says nothing
}

typedef struct Range {
  const Lin *from, *to;
  Lin v;
  u32 atom;  // v: the loop's variable
  bool reversed;
} Range;

static Range range_of(PathFacts *f, u32 loop) {
  const Ins *ins = &f->code->at[loop];
  u32 v = sc_form_atom(f->facts, (Atom){.op = X_LOOP, .ref = ins->arg[0], .varies = true});
  return (Range){sc_form(f->facts, ins->arg[1]), sc_form(f->facts, ins->arg[2]), sc_lin_atom(v), v,
                 ins->flags & INS_REVERSED};
}

// Could this be true besides? It is not noted, but what then follows of parts of conditions is: of
// `t % 2 == 1 or t == n - 1` the first holds if another round comes.
static bool can_be_with(PathFacts *f, Path *p, Lin least0, u32 pc) {
  u32 n = p->n;
  note_form(f, p, &least0, NULL);
  u32 with = p->n;
  note_all_parts(f, p, pc);
  bool can = can_be(f, p, pc);
  for (u32 i = with; i < p->n; i++) p->at[n++] = p->at[i];
  p->n = n;
  return can;
}

bool sc_path_enter(PathFacts *f, Path *p, u32 loop) {
  Range r = range_of(f, loop);
  if (!can_be_with(f, p, minus(r.to, r.from, -1), loop)) return false;
  Lin first = r.reversed ? minus(&r.v, r.to, 1) : minus(r.from, &r.v, 0);
  note_form(f, p, &first, NULL);
  return true;
}

bool sc_path_skip(PathFacts *f, Path *p, u32 loop) {
  Range r = range_of(f, loop);
  Lin none = minus(r.from, r.to, 0);
  note_form(f, p, &none, &(Truth){.site = loop});
  return can_be(f, p, loop);
}

// A variable that has moved to another value. Seen in so many quotients in each other.
typedef struct Moved {
  Facts *f;
  u32 atom;
  const Lin *by;
  u32 depth;
} Moved;

// An atom with another value of the variable. False: it varies with loops, and their variables are
// not seen in it. In a quotient by a constant they are.
static bool moved_atom(void *user, u32 x, Lin *out) {
  const Moved *m = user;
  const Atom a = m->f->atom.at[x];
  Moved below = {m->f, m->atom, m->by, m->depth - 1};
  Lin dividend;
  *out = x == m->atom ? *m->by : sc_lin_atom(x);
  if (!a.varies || a.op == X_LOOP) return true;
  return m->depth && a.op == X_IDIV && !a.b->n && a.b->c > 0 &&
         sc_lin_map(a.a, moved_atom, &below, &dividend) &&
         sc_form_divide(m->f, &dividend, a.b->c, out);
}

// What t says, as the form says it, of the variable before it was what `by` says.
static void note_moved(PathFacts *f, Path *p, const Truth *t, const Lin *least0, u32 atom,
                       const Lin *by) {
  enum { QUOTIENTS = 2 };  // one in another
  Lin moved;
  Moved m = {f->facts, atom, by, QUOTIENTS};
  if (sc_lin_map(least0, moved_atom, &m, &moved)) note_form(f, p, &moved, t);
}

// The same of the inequalities that a condition stands for.
static void note_moved_condition(PathFacts *f, Path *p, const Truth *t, u32 atom, const Lin *by) {
  u32 mark = sc_facts_mark(f->facts), n = 0;
  Lin said[4];
  sc_facts_assume(f->facts, t->cond, t->holds);
  for (u32 i = mark; i < f->facts->fact.n && n < 4; i++) {
    const Fact *fact = &f->facts->fact.at[i];
    if (fact->kind == FACT_SAID) said[n++] = fact->least0;
  }
  sc_facts_drop(f->facts, mark);
  for (u32 i = 0; i < n; i++) note_moved(f, p, t, &said[i], atom, by);
}

// What was true of the variable is true of x + c from here on; `least0` is true as well.
static void move(PathFacts *f, Path *p, u32 loop, Lin least0, const Lin *x, i64 c) {
  u32 variable = f->code->at[loop].arg[0], n = p->n;
  Truth old[MAX_TRUTHS];
  Range r = range_of(f, loop);
  Lin by = sc_lin_int(c);
  bool known = sc_lin_add(&by, x, 1);
  sc_facts_at(f->facts, f->code, f->code->at[loop].nest);
  for (u32 i = 0; i < n; i++) old[i] = p->at[i];
  p->n = 0;
  note_form(f, p, &least0, NULL);
  for (u32 i = 0; i < n && known; i++) {
    if (!old[i].cond) note_moved(f, p, &old[i], old[i].least0, r.atom, &by);
    else if (x_names_loop(&f->below, old[i].cond, variable))
      note_moved_condition(f, p, &old[i], r.atom, &by);
    else note(p, old[i]);
  }
}

bool sc_path_again(PathFacts *f, Path *p, u32 loop) {
  Range r = range_of(f, loop);
  Lin more = r.reversed ? minus(&r.v, r.from, -1) : minus(r.to, &r.v, -2);
  if (!can_be_with(f, p, more, f->code->at[loop].nest)) return false;
  Lin later = r.reversed ? minus(r.to, &r.v, -2) : minus(&r.v, r.from, -1);
  move(f, p, loop, later, &r.v, r.reversed ? 1 : -1);
  return true;
}

bool sc_path_leave(PathFacts *f, Path *p, u32 loop) {
  Range r = range_of(f, loop);
  Lin over = r.reversed ? minus(r.from, &r.v, 0) : minus(&r.v, r.to, 1);
  if (!can_be_with(f, p, over, f->code->at[loop].nest)) return false;
  move(f, p, loop, minus(r.to, r.from, -1), r.reversed ? r.from : r.to, r.reversed ? 0 : -1);
  return true;
}
