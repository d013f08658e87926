// symbolic.c - conditions and loops of a protocol answered from a zone. In: a step of a process.
// Out: yes, no, or the difference of two zone variables on which the answer depends.
//
// The idea: an integer expression is a linear form over atoms (facts/). Loop variables are zone
// variables, and so is each atom, or sum of atoms, that has one value in a tile. A comparison then
// says that the difference of two zone variables is at most a constant. What does not have this
// form is unknown. Minima, maxima, choices and quotients over loop variables are decided first, by
// questions of their own.
#include "compiler/verify/protocol.h"

static bool plain(const Term *t) { return !t->atom[1]; }

// ---- zone variables as atoms of forms

static bool is_zone(const void *symbolic, u32 atom) {
  return sc_zone_of(symbolic, atom) != SC_NONE;
}

// The count of a loop, as a form over its zone variable.
static Lin counted(Symbolic *m, u32 var) {
  Lin x = sc_zone_form(m, var);
  x.at[0].by = m->modulus[var];
  x.c = m->remainder[var];
  return x;
}

// The zone variable of an atom; a new one is asked for if there is none yet.
static u32 var_of(Symbolic *m, u32 atom) {
  if (sc_zone_of(m, atom) != SC_NONE) return sc_zone_of(m, atom);
  for (u32 i = 0; i < m->values; i++)
    if (m->value[i] == atom) return i < m->room ? symbolic_first_value(m) + i : SC_NONE;
  if (m->values == MAX_VALUES) return SC_NONE;
  m->value[m->values++] = atom;
  m->wants = true;
  return SC_NONE;
}

// The zone variable whose value is the form without its constant; SC_NONE: there is none.
static u32 var_of_form(Symbolic *m, const Lin *x) {
  Lin sum = *x;
  sum.c = 0;
  if (sum.n == 1 && sum.at[0].by == 1 && !sum.at[0].atom[1]) return var_of(m, sum.at[0].atom[0]);
  if (sc_lin_any(&sum, is_zone, m)) return SC_NONE;
  return var_of(m, sc_form_atom(m->f, (Atom){.op = X_SUM, .a = &sum}));
}

// ---- a form in zone variables

static Answer resolve(Symbolic *m, u32 process, const Lin *x, Lin *out);
static Answer not_negative(Symbolic *m, const Lin *x);
static Answer truth(Symbolic *m, u32 process, Xid x);

// The variable of a loop.
static Answer of_loop(Symbolic *m, u32 process, u32 loop, Lin *out) {
  const Script *s = m->p->process.at[process].script;
  u32 var = m->p->slot[process] + s->loop_depth[loop];
  if (s->loop_head[loop] == SC_NONE) return UNKNOWN;
  const Step *step = &s->step.at[s->loop_head[loop]];
  Lin count = counted(m, var), one = sc_lin_int(1);
  *out = count;
  if (step->count != COUNT_BACK) return YES;
  Answer end = resolve(m, process, sc_form(m->f, step->y), out);
  if (end != YES) return end;
  return sc_lin_add(out, &count, -1) && sc_lin_add(out, &one, -1) ? YES : UNKNOWN;
}

// The smaller of two forms, or the larger one.
static Answer extreme(Symbolic *m, const Lin *a, const Lin *b, bool smaller, Lin *out) {
  Lin apart = *b;
  if (!sc_lin_add(&apart, a, -1)) return UNKNOWN;
  Answer first = not_negative(m, &apart);
  if (first == NO || first == YES) *out = (first == YES) == smaller ? *a : *b;
  return first == NO ? YES : first;
}

static Answer operands(Symbolic *m, u32 process, const Atom *a, Lin *x, Lin *y) {
  Answer first = resolve(m, process, a->a, x);
  if (first != YES || !a->b) return first;
  return resolve(m, process, a->b, y);
}

static Answer choice(Symbolic *m, u32 process, const Atom *a, Lin *out) {
  Answer cond = truth(m, process, a->ref);
  if (cond != YES && cond != NO) return cond;
  return resolve(m, process, cond == YES ? a->a : a->b, out);
}

static bool has_zone(const void *symbolic, u32 atom) {
  return ((const Symbolic *)symbolic)->f->atom.at[atom].deps & DEP_IDX;
}

// The quotient as a form, if the dividend can be divided by a constant. (No quotient of loop
// variables may remain in it.)
static Answer quotient(Symbolic *m, u32 process, const Atom *a, Lin *out) {
  Lin x, y;
  m->asking++;
  Answer got = operands(m, process, a, &x, &y);
  m->asking--;
  if (got != YES) return got;
  if (y.n || y.c <= 0 || !sc_form_divide(m->f, &x, y.c, out)) return UNKNOWN;
  for (u32 i = 0; i < out->n; i++)
    if (sc_lin_any(m->f->atom.at[out->at[i].atom[0]].a, has_zone, m)) return UNKNOWN;
  return YES;
}

// An index along a clustered axis: the cluster's place, which all its CTAs share, times the number
// of its CTAs, plus this CTA's rank.
static Answer in_cluster(Symbolic *m, u32 process, u32 atom, u32 axis, Lin *out) {
  u32 n = m->p->k->axis.at[axis].cluster;
  Lin x = sc_lin_atom(atom), place, rank = sc_lin_int(m->p->process.at[process].rank);
  *out = sc_lin_int(0);
  bool ok = sc_form_divide(m->f, &x, n, &place) && sc_lin_add(out, &place, n) &&
            sc_lin_add(out, &rank, 1);
  return ok ? YES : UNKNOWN;
}

// A question asks for each truth, and for the form of each atom, once, however often it is named.
// (What is open ends the question.)
static bool is_told(const Symbolic *m, const Told *t, u32 process) {
  return t->question == m->question && t->process == process && t->past == m->past &&
         t->deep == (m->asking != 0);
}

static Told tell(const Symbolic *m, u32 process, Answer is) {
  return (Told){m->question, process, m->past, m->asking != 0, is};
}

static Answer work_out(Symbolic *m, u32 process, u32 atom, Lin *out) {
  const Atom a = m->f->atom.at[atom];
  bool moving = sc_symbolic_moves(m, atom),
       chosen = a.op == X_MIN || a.op == X_MAX || a.op == X_WHERE;
  u32 var;
  *out = sc_lin_atom(atom);
  if (!moving && sc_in_family(m->f, m->residues, m->which, atom, out)) return YES;
  bool expand = m->expand == EXPAND_ALL || (m->expand == EXPAND_BOUNDS && !m->asking);
  if (!moving && !(expand && chosen)) return YES;
  if (a.op == X_LOOP) return of_loop(m, process, a.ref, out);
  if (a.op == X_AXIS) return in_cluster(m, process, atom, a.ref, out);
  if (a.op == X_IDIV) return quotient(m, process, &a, out);
  if (a.op == X_WHERE) return choice(m, process, &a, out);
  if (a.op == X_LOAD) {
    var = sc_ghost(m, process, a.ref);
    if (var != SC_NONE) *out = sc_zone_form(m, var);
    return var == SC_NONE ? UNKNOWN : YES;
  }
  Lin x, y;
  if (!chosen) return UNKNOWN;
  Answer got = operands(m, process, &a, &x, &y);
  if (got != YES) return got;
  if (expand || sc_symbolic_turns(m, atom)) return extreme(m, &x, &y, a.op == X_MIN, out);
  *out = sc_form_extreme(m->f, a.op, &x, &y);
  return YES;
}

static Answer resolve_atom(Symbolic *m, u32 process, u32 atom, Lin *out) {
  while (m->resolved.n <= atom) PUSH(m->sc, &m->resolved, ((Resolved){0}));
  Resolved *known = &m->resolved.at[atom];
  if (is_told(m, &known->told, process)) {
    if (known->told.is == YES) sc_lin_copy(out, known->form);
    return known->told.is;
  }
  Answer is = work_out(m, process, atom, out);
  if (is == OPEN) return is;
  known = &m->resolved.at[atom];  // the table may have grown
  if (!known->form) known->form = NEW(m->sc, Lin);
  if (is == YES) sc_lin_copy(known->form, out);
  known->told = tell(m, process, is);
  return is;
}

typedef struct Resolving {
  Symbolic *m;
  u32 process;
  Answer got;  // of the last atom
} Resolving;

static bool resolved(void *user, u32 atom, Lin *out) {
  Resolving *r = user;
  r->got = resolve_atom(r->m, r->process, atom, out);
  return r->got == YES;
}

static Answer resolve(Symbolic *m, u32 process, const Lin *x, Lin *out) {
  Resolving r = {m, process, YES};
  Lin known;
  sc_lin_copy(&known, x);
  if (!sc_know(m->f, &known)) return UNKNOWN;
  if (sc_lin_map(&known, resolved, &r, out)) return YES;
  return r.got == YES ? UNKNOWN : r.got;
}

// ---- questions

static Answer at_most(Symbolic *m, u32 i, u32 j, i64 c) {  // x_i - x_j <= c?
  if (i == SC_NONE || j == SC_NONE) return UNKNOWN;
  if (i == j) return c >= 0 ? YES : NO;
  if (zone_implies(&m->zone, i, j, c)) return YES;
  if (zone_implies(&m->zone, j, i, -c - 1)) return NO;
  m->ask_i = i;
  m->ask_j = j;
  m->ask_c = c;
  return OPEN;
}

// Is by * x + rest >= 0, where x is the only zone variable of a loop or ghost? That compares x with
// the rest divided by its factor.
static Answer compare(Symbolic *m, const Term *t, const Lin *rest) {
  u32 var = var_of(m, t->atom[0]);
  i64 n = t->by < 0 ? -t->by : t->by;
  Lin bound = sc_lin_int(0), q;
  // x >= -floor(rest / n) from above, x <= floor(rest / n) from below
  if (t->by < 0) bound = *rest;
  else if (!sc_lin_add(&bound, rest, -1) || !sc_lin_add(&bound, &(Lin){.c = n - 1}, 1))
    return UNKNOWN;
  if (n > 1 && !sc_form_divide(m->f, &bound, n, &q)) return UNKNOWN;
  if (n > 1) bound = q;
  u32 other = bound.n ? var_of_form(m, &bound) : 0;
  return t->by < 0 ? at_most(m, var, other, bound.c) : at_most(m, other, var, -bound.c);
}

static Answer of_two(Symbolic *m, const Lin *x) {  // a - b + c >= 0
  bool first = x->at[0].by > 0;
  u32 a = var_of(m, x->at[!first].atom[0]), b = var_of(m, x->at[first].atom[0]);
  return at_most(m, b, a, x->c);
}

Lin sc_value_form(const Symbolic *m, u32 atom) {
  const Atom *a = &m->f->atom.at[atom];
  Lin x = sc_lin_atom(atom);
  if (a->op == X_SUM) sc_lin_copy(&x, a->a);
  return x;
}

// Is the form without its constant the difference of two values that have zone variables?
static bool difference_of(Symbolic *m, const Lin *x, u32 *a, u32 *b) {
  for (u32 i = 0; i < m->room; i++) {
    Lin sum = *x, minus = sc_value_form(m, m->value[i]);
    if (!sc_lin_add(&sum, &minus, 1)) continue;
    for (u32 j = 0; j < m->room; j++) {
      Lin plus = sc_value_form(m, m->value[j]);
      plus.c = sum.c;
      if (i == j || !sc_lin_same(&sum, &plus)) continue;
      *a = symbolic_first_value(m) + j;
      *b = symbolic_first_value(m) + i;
      return true;
    }
  }
  return false;
}

static Answer of_value(Symbolic *m, const Lin *x) {
  u32 a, b;
  if (x->n > 1 && difference_of(m, x, &a, &b)) return at_most(m, b, a, x->c);
  if (x->n == 1 && x->at[0].by == -1 && plain(&x->at[0]))
    return at_most(m, var_of(m, x->at[0].atom[0]), 0, x->c);
  return at_most(m, 0, var_of_form(m, x), x->c);
}

static Answer not_negative(Symbolic *m, const Lin *x) {
  Lin p = *x;
  i64 step = sc_lin_step(&p);
  if (!step) return p.c >= 0 ? YES : NO;
  p.c = sc_floordiv(p.c, step);
  u32 loops = 0, at = 0;
  for (u32 i = 0; i < p.n; i++) {
    p.at[i].by /= step;
    bool zone = false;
    for (u32 j = 0; j < LIN_DEGREE && p.at[i].atom[j]; j++) zone |= is_zone(m, p.at[i].atom[j]);
    if (zone && !plain(&p.at[i])) return UNKNOWN;
    if (zone) at = i;
    loops += zone;
  }
  bool two = p.n == 2 && plain(&p.at[0]) && plain(&p.at[1]) && p.at[0].by + p.at[1].by == 0 &&
             (p.at[0].by == 1 || p.at[0].by == -1);
  if (two) return of_two(m, &p);
  if (!loops) return of_value(m, &p);
  if (loops > 1) return UNKNOWN;
  const Term t = p.at[at];
  for (u32 i = at; i + 1 < p.n; i++) p.at[i] = p.at[i + 1];
  p.n--;
  return compare(m, &t, &p);
}

// a + by <= b?
static Answer less(Symbolic *m, u32 process, Xid a, Xid b, i64 by) {
  Lin x, y;
  Answer got = resolve(m, process, sc_form(m->f, a), &x);
  if (got == YES) got = resolve(m, process, sc_form(m->f, b), &y);
  if (got != YES) return got;
  y.c -= by;
  return sc_lin_add(&y, &x, -1) ? not_negative(m, &y) : UNKNOWN;
}

static Answer inverse(Answer a) { return a == YES ? NO : a == NO ? YES : a; }

static Answer equal(Symbolic *m, u32 process, Xid a, Xid b) {
  Answer below = less(m, process, a, b, 0);
  return below == YES ? less(m, process, b, a, 0) : below;
}

// Answers a condition that cannot be taken apart: it is a value of its own, 0 or 1, the same for
// everybody who asks for the same expression.
static Answer whole(Symbolic *m, u32 process, Xid x) {
  const Expr *e = &m->p->k->expr.at[x];
  u32 atom = sc_form_atom(m->f, (Atom){.op = X_LOAD, .ref = x, .varies = e->deps & DEP_LOOP});
  u32 var = sc_symbolic_moves(m, atom) ? sc_ghost(m, process, x) : var_of(m, atom);
  return at_most(m, 0, var, -1);
}

static Answer compared(Symbolic *m, u32 process, Xid x) {
  const Expr *e = &m->p->k->expr.at[x];
  switch (e->op) {
    case X_LT: return less(m, process, e->a, e->b, 1);
    case X_LE: return less(m, process, e->a, e->b, 0);
    case X_EQ: return equal(m, process, e->a, e->b);
    case X_NE: return inverse(equal(m, process, e->a, e->b));
    default: return UNKNOWN;
  }
}

static Answer decide(Symbolic *m, u32 process, Xid x) {
  const Expr *e = &m->p->k->expr.at[x];
  bool decided;
  if (x_const_bool(m->p->k, x, &decided)) return decided ? YES : NO;
  if (e->op == X_NOT) return inverse(truth(m, process, e->a));
  if (e->op == X_AND || e->op == X_OR) {
    Answer a = truth(m, process, e->a);
    bool settled = a == (e->op == X_AND ? NO : YES);
    return settled || a == OPEN || a == UNKNOWN ? a : truth(m, process, e->b);
  }
  m->asking++;
  Answer a = m->p->k->expr.at[e->a].ty == TY_INT ? compared(m, process, x) : UNKNOWN;
  m->asking--;
  return a == UNKNOWN && !m->wants ? whole(m, process, x) : a;
}

static Answer truth(Symbolic *m, u32 process, Xid x) {
  if (is_told(m, &m->told[x], process)) return m->told[x].is;
  Answer is = decide(m, process, x);
  if (is != OPEN) m->told[x] = tell(m, process, is);
  return is;
}

// ---- loops

// The modulus of the loop's variable: its variable is that times a zone variable, and a remainder.
// It is the factor of the bound's only atom, if that and the first value allow it; else 1.
static u32 modulus_of(const Lin *first, const Lin *bound, u32 asked) {
  i64 n = bound->n == 1 && bound->at[0].by > 0 && plain(&bound->at[0]) ? bound->at[0].by : 1;
  if (n % asked) n = bound->n ? 1 : asked;
  bool fits = n <= MAX_CASES && (!first->n || (first->n == 1 && first->at[0].by == n));
  return fits ? (u32)n : 1;
}

// The variable becomes x.
static Answer set(Symbolic *m, u32 var, const Lin *x) {
  u8 n = m->modulus[var];
  Lin whole = *x;
  if (n > 1 && whole.n) whole.at[0].by = 1;
  u32 other = whole.n ? var_of_form(m, &whole) : 0;
  if (other == SC_NONE) return UNKNOWN;
  zone_copy(&m->zone, var, other, sc_floordiv(x->c, n));
  m->remainder[var] = (u8)sc_floormod(x->c, n);
  return YES;
}

// Adds one form to both ends of a loop's range, so that no variable of a loop around it has a
// negative factor in the bound: 0 to n - u becomes u to n.
static bool lift(const Symbolic *m, Lin *from, Lin *to) {
  Lin more = sc_lin_int(0);
  for (u32 i = 0; i < to->n; i++) {
    const Term t = to->at[i];
    Lin x = sc_lin_atom(t.atom[0]);
    if (t.by < 0 && plain(&t) && is_zone(m, t.atom[0]) && !sc_lin_add(&more, &x, -t.by))
      return false;
  }
  return sc_lin_add(from, &more, 1) && sc_lin_add(to, &more, 1);
}

// The values of the loop's count when it begins and when it ends.
static Answer range(Symbolic *m, u32 process, const Step *s, Lin *from, Lin *to) {
  const Script *of = m->p->process.at[process].script;
  Lin start = sc_lin_int(0), ignored;
  Answer got = resolve(m, process, sc_form(m->f, s->y), to);
  if (got == YES) got = resolve(m, process, sc_form(m->f, s->x), from);
  if (got != YES) return got;
  if (s->count == COUNT_DOWN) return YES;
  if (s->count == COUNT_VALUE) return s->read || lift(m, from, to) ? YES : UNKNOWN;
  if (s->count == COUNT_ON && s->prev == SC_NONE) return YES;
  if (s->count == COUNT_ON) got = range(m, process, &of->step.at[s->prev], &ignored, &start);
  bool fits = sc_lin_add(to, from, -1) && sc_lin_add(to, &start, 1);
  *from = start;
  return got == YES && !fits ? UNKNOWN : got;
}

static Answer enter(Symbolic *m, u32 process, const Step *s, u32 var) {
  Lin from, to;
  Answer got = range(m, process, s, &from, &to);
  if (got != YES) return got;
  u32 asked = m->residues->modulus[s->ref];
  bool whole = s->count == COUNT_ON || s->count == COUNT_DOWN;
  m->modulus[var] = whole ? 1 : (u8)modulus_of(&from, &to, asked);
  if (s->count == COUNT_DOWN) to.c--;
  return set(m, var, s->count == COUNT_DOWN ? &to : &from);
}

// Is there another round?
static Answer head(Symbolic *m, u32 process, const Step *s, u32 var) {
  Lin from, to, count = counted(m, var), one = sc_lin_int(1);
  Answer got = range(m, process, s, &from, &to);
  if (got != YES) return got;
  bool fits = s->count == COUNT_DOWN ? sc_lin_add(&count, &from, -1)
                                     : sc_lin_add(&to, &count, -1) && sc_lin_add(&to, &one, -1);
  return fits ? not_negative(m, s->count == COUNT_DOWN ? &count : &to) : UNKNOWN;
}

static void next(Symbolic *m, const Step *s, u32 var) {
  bool over = m->remainder[var] + 1 == m->modulus[var];
  m->remainder[var] = over ? 0 : m->remainder[var] + 1;
  if (over) zone_shift(&m->zone, var, s->count == COUNT_DOWN ? -1 : 1);
}

static void leave(Symbolic *m, u32 var) {
  zone_forget(&m->zone, var);
  m->modulus[var] = 1;
  m->remainder[var] = 0;
}

static Answer ask_once(Symbolic *m, u32 process, const Step *s, u32 var) {
  m->wants = m->renumbered = false;
  m->question++;
  switch (s->kind) {
    case STEP_IF: return truth(m, process, s->x);
    case STEP_ENTER: return enter(m, process, s, var);
    case STEP_HEAD: return head(m, process, s, var);
    default: return YES;
  }
}

// A question may need a new ghost, for which an old one is forgotten, and all ghosts behind that
// get other numbers. Forms that were made before then mean other values. So the question is asked
// again, until all its ghosts are there; if there is no room for them, there is no answer.
static Answer ask(Symbolic *m, u32 process, const Step *s, u32 var) {
  Answer a = ask_once(m, process, s, var);
  for (u32 i = 0; i < MAX_GHOSTS && m->renumbered; i++) a = ask_once(m, process, s, var);
  return m->renumbered ? UNKNOWN : a;
}

Answer sc_symbolic_ask(Run *r, u32 process, const Step *s) {
  Symbolic *m = r->evaluator;
  u32 var = m->p->slot[process] + s->depth;
  Answer a = ask(m, process, s, var);
  if (s->kind == STEP_HEAD && a == NO) leave(m, var);
  if (s->kind == STEP_NEXT) {
    next(m, s, var);
    a = NO;
  }
  if (a == UNKNOWN) m->who = process;
  if (a == UNKNOWN) m->why = s->pc;
  return a;
}
