// facts.c - makes linear forms of expressions, and keeps what is known of them. In: a kernel's
// expressions, and (said.c) what is said of them. Out: forms that are equal exactly if the
// expressions are equal as polynomials over atoms; an interval for each atom; and a stack of forms
// that are known not to be negative.
//
// The idea: an atom is any expression that is not a sum or a product, and what it means is written
// as inequalities. For q = a / n these are n q <= a and a < n q + n. A remainder, or a quotient
// that is rounded up, is rewritten with quotients that are rounded down. An atom has a larger
// number than the atoms that it is made of. A known equality is used to replace one of its atoms.
#include "compiler/facts/linear.h"

#include <stddef.h>
#include <string.h>

static const Interval all = {-SC_FAR, SC_FAR};

// ---- atoms

static u64 mix(u64 h, u64 v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 29;
}

static u64 hash_form(const Lin *x) {
  u64 h = x ? mix(1, (u64)x->c) : 0;
  for (u32 i = 0; x && i < x->n; i++) {
    h = mix(h, (u64)x->at[i].by);
    for (u32 j = 0; j < LIN_DEGREE; j++) h = mix(h, x->at[i].atom[j]);
  }
  return h;
}

static bool same_form(const Lin *a, const Lin *b) { return a && b ? sc_lin_same(a, b) : a == b; }

static u32 *slot_of(const Facts *f, const Atom *a) {
  u64 h = mix(mix(mix(a->op, a->ref), hash_form(a->a)), hash_form(a->b));
  for (u32 i = (u32)h & (f->slots - 1);; i = (i + 1) & (f->slots - 1)) {
    const Atom *b = &f->atom.at[f->slot[i]];
    bool same =
        b->op == a->op && b->ref == a->ref && same_form(a->a, b->a) && same_form(a->b, b->b);
    if (!f->slot[i] || same) return &f->slot[i];
  }
}

static void make_slots(Facts *f, u32 slots) {
  f->slot = NEWS(f->sc, u32, slots);
  f->slots = slots;
  for (u32 i = 1; i < f->atom.n; i++) *slot_of(f, &f->atom.at[i]) = i;
}

const Lin *sc_form_keep(Facts *f, const Lin *x) {
  Lin *kept = sc_new(f->sc, offsetof(Lin, at) + x->n * sizeof(Term));
  sc_lin_copy(kept, x);
  return kept;
}

static bool varies(const void *facts, u32 atom) {
  return ((const Facts *)facts)->atom.at[atom].varies;
}

static u8 named(const Facts *f, const Atom *a) {
  switch (a->op) {
    case X_AXIS: return DEP_AXIS;
    case X_LOOP: return DEP_LOOP;
    case X_IDX: return DEP_IDX;
    case X_LOAD:
    case X_WHERE: return f->k->expr.at[a->ref].deps;
    default: return 0;
  }
}

static u8 named_below(const Facts *f, const Lin *x) {
  u8 deps = 0;
  for (u32 i = 0; x && i < x->n; i++)
    for (u32 j = 0; j < LIN_DEGREE; j++) deps |= f->atom.at[x->at[i].atom[j]].deps;
  return deps;
}

u32 sc_form_atom(Facts *f, Atom a) {
  u32 *slot = slot_of(f, &a);
  if (*slot) {
    f->atom.at[*slot].varies |= a.varies;
    return *slot;
  }
  if (f->atom.n >= f->slots / 2) {
    make_slots(f, f->slots * 2);
    slot = slot_of(f, &a);
  }
  a.varies |= sc_lin_any(a.a, varies, f) || sc_lin_any(a.b, varies, f);
  a.deps = named(f, &a) | named_below(f, a.a) | named_below(f, a.b);
  a.a = a.a ? sc_form_keep(f, a.a) : NULL;
  a.b = a.b ? sc_form_keep(f, a.b) : NULL;
  a.told = all;
  if (a.op == X_DIM || a.op == X_AXIS || a.op == X_INST || a.op == X_ABS) a.told.lo = 0;
  if (a.op == X_INST) a.told.hi = (i64)f->k->role.at[a.ref].instances - 1;
  PUSH(f->sc, &f->atom, a);
  return *slot = f->atom.n - 1;
}

// ---- forms

static Lin of_atom(Facts *f, ExprOp op, const Lin *a, const Lin *b) {
  return sc_lin_atom(sc_form_atom(f, (Atom){.op = op, .a = a, .b = b}));
}

// (floor(a / m) + c) / n is (a + c m) / (m n).
static bool in_quotient(Facts *f, Lin *a, i64 *n) {
  const Atom *q =
      a->n == 1 && a->at[0].by == 1 && !a->at[0].atom[1] ? &f->atom.at[a->at[0].atom[0]] : NULL;
  if (!q || q->op != X_IDIV || q->b->n || q->b->c <= 0 || q->b->c > INT32_MAX || *n > INT32_MAX)
    return false;
  Lin sum = sc_lin_int(a->c);
  if (!sc_lin_mul(a, &sum, q->b) || !sc_lin_add(a, q->a, 1)) return false;
  *n *= q->b->c;
  return true;
}

static bool divide_by(Facts *f, const Lin *a, i64 n, Lin *out);

// floor(a / n) is -floor((n - 1 - a) / n): so what has minus signs alone is written without.
static bool divide_negative(Facts *f, const Lin *a, i64 n, Lin *out) {
  Lin minus = sc_lin_int(n - 1), q;
  *out = sc_lin_int(0);
  return sc_lin_add(&minus, a, -1) && divide_by(f, &minus, n, &q) && sc_lin_add(out, &q, -1);
}

// floor(a / n), n > 0: what divides is taken out, and what is common to all of the rest and n.
static bool divide_by(Facts *f, const Lin *a, i64 n, Lin *out) {
  u32 down = 0;
  while (down < a->n && a->at[down].by < 0) down++;
  if (down && down == a->n) return divide_negative(f, a, n, out);
  Lin rest = sc_lin_int(sc_floormod(a->c, n));
  *out = sc_lin_int(sc_floordiv(a->c, n));
  for (u32 i = 0; i < a->n; i++) {
    Lin *to = a->at[i].by % n ? &rest : out;
    to->at[to->n] = a->at[i];
    to->at[to->n++].by /= to == out ? n : 1;
  }
  if (!rest.n) return true;
  i64 common = sc_gcd(sc_lin_step(&rest), n);
  rest.c = sc_floordiv(rest.c, common);
  for (u32 i = 0; i < rest.n; i++) rest.at[i].by /= common;
  n /= common;
  if (n == 1) return sc_lin_add(out, &rest, 1);
  Lin inner = rest, by, q;
  if (in_quotient(f, &inner, &n)) {
    if (!divide_by(f, &inner, n, &q)) return false;
  } else {
    by = sc_lin_int(n);
    q = of_atom(f, X_IDIV, &rest, &by);
  }
  return sc_lin_add(out, &q, 1);
}

bool sc_form_divide(Facts *f, const Lin *a, i64 n, Lin *out) { return divide_by(f, a, n, out); }

static bool quotient(Facts *f, const Lin *a, const Lin *b, Lin *out) {
  if (!b->n && b->c > 0) return divide_by(f, a, b->c, out);
  *out = of_atom(f, X_IDIV, a, b);
  return true;
}

// Rounded up: of a constant by adding to the dividend, of what may be negative as -floor(-a / b).
static bool quotient_up(Facts *f, const Lin *a, const Lin *b, Lin *out) {
  Lin sum = *a, q, minus = sc_lin_int(0);
  if (!b->n && b->c > 0) {
    Lin less = sc_lin_int(b->c - 1);
    return sc_lin_add(&sum, &less, 1) && divide_by(f, &sum, b->c, out);
  }
  *out = sc_lin_int(0);
  return sc_lin_add(&minus, a, -1) && quotient(f, &minus, b, &q) && sc_lin_add(out, &q, -1);
}

static bool remainder_of(Facts *f, const Lin *a, const Lin *b, Lin *out) {
  Lin q, part;
  sc_lin_copy(out, a);
  return quotient(f, a, b, &q) && sc_lin_mul(&part, &q, b) && sc_lin_add(out, &part, -1);
}

static Lin choice(Facts *f, Xid cond, const Lin *a, const Lin *b) {
  bool varies = f->k->expr.at[cond].deps & DEP_LOOP;
  return sc_lin_atom(
      sc_form_atom(f, (Atom){X_WHERE, .varies = varies, .ref = cond, .a = a, .b = b}));
}

Lin sc_form_extreme(Facts *f, ExprOp op, const Lin *a, const Lin *b) {
  bool swap = hash_form(a) > hash_form(b);
  if (sc_lin_same(a, b)) return *a;
  return of_atom(f, op, swap ? b : a, swap ? a : b);
}

// The tensor that an expression reads, if its declaration says in which range its elements are, and
// if that is believed. (What threads read element by element is 0 outside of the tensor, so it may
// lie beyond the range.)
static const Buf *ranged(const Facts *f, const Expr *e) {
  const Buf *b = x_fetches(e) ? &f->k->buf.at[f->k->view.at[e->ref].buf] : NULL;
  return f->elements && b && b->end ? b : NULL;
}

// Is the form not negative, as no dimension is?
static bool of_dimensions(const Facts *f, const Lin *x) {
  bool ok = x->c >= 0;
  for (u32 i = 0; i < x->n && ok; i++) {
    ok = x->at[i].by > 0;
    for (u32 j = 0; j < LIN_DEGREE && x->at[i].atom[j] && ok; j++) {
      const Atom *a = &f->atom.at[x->at[i].atom[j]];
      bool part = a->op == X_IDIV && !a->b->n && a->b->c > 0 && of_dimensions(f, a->a);
      ok = a->op == X_DIM || part;
    }
  }
  return ok;
}

// The end of a range (first, or last) with 0 in it.
static void reach_zero(Facts *f, ExprOp op, Lin *end) {
  Lin zero = sc_lin_int(0), over = zero;
  bool fits = sc_lin_add(&over, end, op == X_MAX ? 1 : -1);
  if (fits && of_dimensions(f, &over)) return;
  *end = end->n ? sc_form_extreme(f, op, end, &zero) : zero;
}

// May it be read beyond its tensor? There it is 0, whatever is said.
static bool beyond(const Facts *f, const Expr *e) {
  return x_fetches(e) && !f->k->view.at[e->ref].inside;
}

static void leaf(Facts *f, Xid x, Lin *out) {
  const Expr *e = &f->k->expr.at[x];
  const Buf *b = ranged(f, e);
  bool named =
      e->op == X_DIM || e->op == X_AXIS || e->op == X_INST || e->op == X_LOOP || e->op == X_IDX;
  Atom a = {.op = named ? e->op : X_LOAD, .ref = named ? e->ref : x, .varies = e->deps & DEP_LOOP};
  Lin last = sc_lin_int(-1);
  if (b && sc_lin_add(&last, sc_form(f, b->end), 1)) {
    Lin first = sc_lin_int(0);
    sc_lin_copy(&first, sc_form(f, b->least));
    if (beyond(f, e)) {
      reach_zero(f, X_MIN, &first);
      reach_zero(f, X_MAX, &last);
    }
    a.a = sc_form_keep(f, &first);
    a.b = &last;
  }
  *out = sc_lin_atom(sc_form_atom(f, a));
}

static bool build(Facts *f, Xid x, Lin *out) {
  const Expr *e = &f->k->expr.at[x];
  bool inner = e->ty == TY_INT && sc_xop[e->op].arity && e->op < X_SUM;
  if (e->op == X_INT) return *out = sc_lin_int(0), sc_lin_add(out, &(Lin){.c = e->num.i}, 1);
  if (!inner) return leaf(f, x, out), true;
  Lin a = sc_lin_int(0), b = a;
  sc_lin_copy(&a, sc_form(f, e->op == X_WHERE ? e->b : e->a));
  sc_lin_copy(&b, sc_form(f, e->op == X_WHERE ? e->c : e->b));
  switch (e->op) {
    case X_NEG: return *out = sc_lin_int(0), sc_lin_add(out, &a, -1);
    case X_ADD: return *out = a, sc_lin_add(out, &b, 1);
    case X_SUB: return *out = a, sc_lin_add(out, &b, -1);
    case X_MUL: return sc_lin_mul(out, &a, &b);
    case X_IDIV: return quotient(f, &a, &b, out);
    case X_CDIV: return quotient_up(f, &a, &b, out);
    case X_MOD: return remainder_of(f, &a, &b, out);
    case X_ABS: return *out = of_atom(f, X_ABS, &a, NULL), true;
    case X_WHERE: return *out = choice(f, e->a, &a, &b), true;
    default: return *out = sc_form_extreme(f, e->op, &a, &b), true;
  }
}

const Lin *sc_form(Facts *f, Xid x) {
  while (f->form.n <= x) PUSH(f->sc, &f->form, NULL);
  if (f->form.at[x]) return f->form.at[x];
  Lin form = sc_lin_int(0);
  if (x && !build(f, x, &form)) leaf(f, x, &form);
  const Lin *kept = sc_form_keep(f, &form);
  return f->form.at[x] = kept;
}

// ---- intervals

Interval sc_atom_interval(Facts *f, u32 atom) {
  Atom a = f->atom.at[atom];
  if (a.epoch == f->epoch) return a.now;
  Interval now = all, p = a.a ? sc_form_interval(f, a.a) : all,
           q = a.b ? sc_form_interval(f, a.b) : all;
  if (a.op == X_LOAD) now = (Interval){p.lo, q.hi};
  else if (a.op == X_WHERE) now = sc_interval_both(p, q);
  else if (a.op == X_IDIV && !sc_form_divides(f, a.b)) now = all;
  else if (a.a) now = sc_interval(a.op, p, q);
  if (a.told.lo > now.lo) now.lo = a.told.lo;
  if (a.told.hi < now.hi) now.hi = a.told.hi;
  f->atom.at[atom].epoch = f->epoch;
  return f->atom.at[atom].now = now;
}

static Interval term_interval(Facts *f, const Term *t) {
  Interval all_of = {t->by, t->by};
  for (u32 i = 0; i < LIN_DEGREE && t->atom[i]; i++) {
    all_of = sc_interval(X_MUL, all_of, sc_atom_interval(f, t->atom[i]));
  }
  return all_of;
}

Interval sc_form_interval(Facts *f, const Lin *x) {
  Interval sum = {x->c, x->c};
  for (u32 i = 0; i < x->n; i++) sum = sc_interval(X_ADD, sum, term_interval(f, &x->at[i]));
  return sum;
}

// ---- facts

bool sc_form_divides(Facts *f, const Lin *x) {
  return x->n ? sc_form_interval(f, x).lo > 0 : x->c != 0;
}

u32 sc_atom_facts(Facts *f, u32 atom, Lin out[ATOM_FACTS]) {
  const Atom a = f->atom.at[atom];
  const Lin x = sc_lin_atom(atom), one = sc_lin_int(-1);
  const bool least = a.op == X_MIN, most = a.op == X_MAX || a.op == X_ABS;
  Lin product;
  if (a.op == X_LOAD && a.a) {
    sc_lin_copy(&out[0], &x);
    sc_lin_copy(&out[1], a.b);
    return sc_lin_add(&out[0], a.a, -1) && sc_lin_add(&out[1], &x, -1) ? 2 : 0;
  }
  if (least || most) {
    out[0] = out[1] = sc_lin_int(0);
    const Lin *b = a.op == X_ABS ? a.a : a.b;
    bool ok = sc_lin_add(&out[0], &x, least ? -1 : 1) && sc_lin_add(&out[0], a.a, least ? 1 : -1) &&
              sc_lin_add(&out[1], &x, least ? -1 : 1) &&
              sc_lin_add(&out[1], b, least || a.op == X_ABS ? 1 : -1);
    return ok ? 2 : 0;
  }
  if (a.op != X_IDIV || !sc_form_divides(f, a.b)) return 0;
  if (sc_form_interval(f, a.b).lo < 0 || !sc_lin_mul(&product, &x, a.b)) return 0;
  sc_lin_copy(&out[0], a.a);
  sc_lin_copy(&out[1], &product);
  sc_lin_copy(&out[2], a.b);
  bool ok = sc_lin_add(&out[0], &product, -1) && sc_lin_add(&out[1], a.b, 1) &&
            sc_lin_add(&out[1], a.a, -1) && sc_lin_add(&out[1], &one, 1) &&
            sc_lin_add(&out[2], &one, 1);
  return ok ? (a.b->n ? 3 : 2) : 0;
}

bool sc_know(Facts *f, Lin *x) {
  for (u32 i = 0; i < f->solved.n; i++) {
    if (!sc_lin_replace(x, f->solved.at[i].atom, &f->solved.at[i].is)) return false;
  }
  return true;
}

static void contradict(Facts *f) {
  sc_fact_vague(f, DEP_LOOP | DEP_INST);
  f->fact.at[f->fact.n - 1].never = true;
  f->nevers++;
}

static void tell(Facts *f, u32 atom, i64 lo, i64 hi) {
  Atom *a = &f->atom.at[atom];
  if (lo <= a->told.lo && hi >= a->told.hi) return;
  PUSH(f->sc, &f->narrowed, ((Narrowed){f->fact.n, atom, a->told}));
  if (lo > a->told.lo) a->told.lo = lo;
  if (hi < a->told.hi) a->told.hi = hi;
  f->epoch++;
  if (a->told.lo > a->told.hi) contradict(f);
}

// The least or greatest value that a fact leaves an atom, from the interval of all else in it. Of a
// product that is positive no factor is 0: where there is a tile of M * N, there are rows and
// columns.
static void narrow(Facts *f, const Lin *least0, u32 term) {
  const Term *t = &least0->at[term];
  Lin rest = *least0;
  rest.n--;
  memmove(rest.at + term, rest.at + term + 1, (rest.n - term) * sizeof *t);
  i64 hi = sc_form_interval(f, &rest).hi;
  if (hi >= SC_FAR / 2 || hi <= -SC_FAR / 2) return;
  if (!t->atom[1] && t->by > 0) tell(f, t->atom[0], -sc_floordiv(hi, t->by), SC_FAR);
  if (!t->atom[1] && t->by < 0) tell(f, t->atom[0], -SC_FAR, sc_floordiv(hi, -t->by));
  for (u32 j = 0; j < LIN_DEGREE && t->atom[j] && t->atom[1] && t->by > 0 && hi < 0; j++)
    if (sc_atom_interval(f, t->atom[j]).lo == 0) tell(f, t->atom[j], 1, SC_FAR);
}

// FOLLOW: what follows from what a fact is made of, and from what that is. Of more facts than MOST
// only the outer ones are kept.
enum { FOLLOW = 2, MOST = 250 };

void sc_fact_vague(Facts *f, u8 deps) {
  PUSH(f->sc, &f->fact, ((Fact){.kind = FACT_VAGUE, .deps = deps}));
}

static void push(Facts *f, FactKind kind, const Lin *least0, u32 follow);

static void push_atoms(Facts *f, const Lin *x, u32 follow) {
  Lin next[ATOM_FACTS];
  for (u32 i = 0; i < x->n; i++) {
    for (u32 j = 0; j < LIN_DEGREE && x->at[i].atom[j]; j++) {
      u32 n = sc_atom_facts(f, x->at[i].atom[j], next);
      for (u32 d = 0; d < n; d++) push(f, FACT_FOLLOWS, &next[d], follow - 1);
    }
  }
}

static bool known_already(const Facts *f, const Lin *x) {
  for (u32 i = 0; i < f->fact.n; i++)
    if (f->fact.at[i].kind != FACT_VAGUE && sc_lin_same(&f->fact.at[i].least0, x)) return true;
  return false;
}

static void push(Facts *f, FactKind kind, const Lin *least0, u32 follow) {
  Lin g = *least0;
  bool known = sc_know(f, &g);
  i64 step = sc_lin_step(&g);
  if (known && !step && g.c >= 0) return;
  if (known && !step) {
    contradict(f);
    return;
  }
  if (!known || f->fact.n > MOST) {  // too large
    sc_fact_vague(f, DEP_LOOP | DEP_INST);
    return;
  }
  g.c = sc_floordiv(g.c, step);
  for (u32 i = 0; i < g.n; i++) g.at[i].by /= step;
  if (kind == FACT_FOLLOWS && known_already(f, &g)) return;
  PUSH(f->sc, &f->fact, ((Fact){.kind = kind, .least0 = g}));
  f->epoch++;
  for (u32 i = 0; i < g.n; i++) narrow(f, &g, i);
  // (of an atom that is solved its interval is asked as well)
  for (u32 i = 0; i < least0->n; i++) narrow(f, least0, i);
  if (follow) push_atoms(f, &g, follow);
}

void sc_fact_push(Facts *f, FactKind kind, const Lin *least0) { push(f, kind, least0, FOLLOW); }

// x is 0: an atom in it that stands alone is written as the rest, here and in what is known.
void sc_fact_zero(Facts *f, const Lin *zero) {
  for (u32 i = 0; i < zero->n; i++) {
    const Term t = zero->at[i];
    Lin is = sc_lin_int(0);
    if ((t.by != 1 && t.by != -1) || t.atom[1]) continue;
    Lin self = sc_lin_atom(t.atom[0]);
    if (!sc_lin_add(&is, zero, -t.by) || !sc_lin_add(&is, &self, 1) ||
        sc_lin_mentions(&is, t.atom[0]))
      continue;
    u32 n = f->fact.n;
    Interval told = f->atom.at[t.atom[0]].told;
    PUSH(f->sc, &f->solved, ((Solved){f->fact.n, t.atom[0], is}));
    for (u32 j = 0; j < n; j++) {
      Lin g = f->fact.at[j].least0;
      if (f->fact.at[j].kind != FACT_VAGUE && sc_lin_mentions(&g, t.atom[0]))
        push(f, FACT_FOLLOWS, &g, 0);
    }
    Lin lo = sc_lin_int(-told.lo);
    if (told.lo > -SC_FAR / 2 && sc_lin_add(&lo, &is, 1)) push(f, FACT_FOLLOWS, &lo, 0);
    return;
  }
}

u32 sc_facts_mark(const Facts *f) { return f->fact.n; }

void sc_facts_drop(Facts *f, u32 mark) {
  for (u32 i = mark; i < f->fact.n && f->nevers; i++) f->nevers -= f->fact.at[i].never;
  f->fact.n = mark;
  while (f->solved.n && f->solved.at[f->solved.n - 1].facts > mark) f->solved.n--;
  while (f->narrowed.n && f->narrowed.at[f->narrowed.n - 1].facts > mark) {
    const Narrowed *n = &f->narrowed.at[--f->narrowed.n];
    f->atom.at[n->atom].told = n->was;
  }
  f->epoch++;
}

// ---- the beginning, and expressions that are taken back

void sc_atoms_begin(Facts *f) {
  PUSH(f->sc, &f->atom, (Atom){0});
  make_slots(f, 64);
}

// Other expressions get their numbers: atoms that name one of them are never met again.
void sc_atoms_forget(Facts *f, u32 exprs) {
  for (u32 x = exprs; x < f->form.n; x++) f->form.at[x] = NULL;
  for (u32 i = 1; i < f->atom.n; i++) {
    Atom *a = &f->atom.at[i];
    if ((a->op == X_LOAD || a->op == X_WHERE) && a->ref >= exprs) a->ref = SC_NONE - i;
  }
  make_slots(f, f->slots);
}
