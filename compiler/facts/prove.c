// prove.c - answers questions about integers. In: what facts.c knows. Out: yes, or "not known".
//
// The idea. To show that a form is not negative, facts (forms that are not negative themselves) are
// subtracted from it, each as often as is needed to cancel one term, until the interval of what is
// left is not negative. Which term is cancelled? One with a negative coefficient, and of these the
// one whose atom was made last, so that atoms are replaced by those that they are made of. If no
// coefficient is negative, each term is tried in turn, as its least value may be too small. A term
// that is a product of atoms is cancelled by a fact about one factor if the other factors are not
// negative.
//
// Three forms have rules of their own: a quotient by itself is compared by multiplying both sides
// with the divisor; a minimum or maximum is replaced by one of its operands; so is a choice. The
// number of steps and their depth are bounded.
#include "compiler/facts/linear.h"

#include <string.h>

enum { STEPS = 64, MORE_STEPS = 400, DEPTH = 6 };

typedef struct Proof {
  Facts *f;
  u32 steps;
} Proof;

static bool prove(Proof *q, const Lin *goal, u32 depth);

// ---- one term less

// What `m` has more than `part` as a product: its other factors, which must not be negative.
static bool cofactor(Proof *q, const Term *m, const Term *part, Lin *rest) {
  *rest = sc_lin_int(1);
  if (!memcmp(m->atom, part->atom, sizeof m->atom)) return true;
  if (part->atom[1] || !m->atom[1]) return false;
  bool found = false;
  rest->c = 0;
  rest->n = 1;
  rest->at[0] = (Term){.by = 1};
  for (u32 i = 0, n = 0; i < LIN_DEGREE && m->atom[i]; i++) {
    if (!found && m->atom[i] == part->atom[0]) found = true;
    else if (sc_atom_interval(q->f, m->atom[i]).lo < 0) return false;
    else rest->at[0].atom[n++] = m->atom[i];
  }
  return found;
}

// Takes so much of the fact from the goal that term i vanishes. Of integers, p >= 0 is
// times p > -times.
static bool without(Proof *q, const Lin *p, u32 i, const Lin *fact, u32 depth) {
  const i64 by = p->at[i].by;
  for (u32 j = 0; j < fact->n; j++) {
    const i64 has = fact->at[j].by;
    Lin rest;
    if ((has < 0) != (by < 0) || !cofactor(q, &p->at[i], &fact->at[j], &rest)) continue;
    Lin part, less = sc_lin_int(0);
    i64 common = sc_gcd(by, has), times = (has < 0 ? -has : has) / common,
        of = (by < 0 ? -by : by) / common;
    less.c = times - 1;
    if (sc_lin_mul(&part, fact, &rest) && sc_lin_add(&less, p, times) &&
        sc_lin_add(&less, &part, -of) && prove(q, &less, depth))
      return true;
  }
  return false;
}

// By the interval of a factor. (What a division has left of SC_FAR is no bound.)
static bool by_interval(Proof *q, const Lin *p, u32 i, u32 depth) {
  const Term *t = &p->at[i];
  for (u32 j = 0; j < LIN_DEGREE && t->atom[j]; j++) {
    Interval in = sc_atom_interval(q->f, t->atom[j]);
    Lin fact = sc_lin_int(t->by < 0 ? in.hi : -in.lo), x = sc_lin_atom(t->atom[j]);
    if (fact.c > UINT32_MAX || !sc_lin_add(&fact, &x, t->by < 0 ? -1 : 1)) continue;
    if (without(q, p, i, &fact, depth)) return true;
  }
  return false;
}

// What follows from what the atoms of a form are.
static bool by_atoms(Proof *q, const Lin *p, u32 i, u32 depth) {
  Lin fact[ATOM_FACTS];
  for (u32 t = 0; t < p->n; t++) {
    for (u32 j = 0; j < LIN_DEGREE && p->at[t].atom[j]; j++) {
      u32 n = sc_atom_facts(q->f, p->at[t].atom[j], fact);
      for (u32 d = 0; d < n; d++) {
        if (sc_know(q->f, &fact[d]) && without(q, p, i, &fact[d], depth)) return true;
      }
    }
  }
  return false;
}

// Can the fact make the term vanish at all?
static bool may_help(const Fact *fact, const Term *t) {
  for (u32 j = 0; fact->kind != FACT_VAGUE && j < fact->least0.n; j++) {
    const Term *u = &fact->least0.at[j];
    bool in = u->atom[0] == t->atom[0] || u->atom[0] == t->atom[1] || u->atom[0] == t->atom[2];
    if (in && (u->by < 0) == (t->by < 0)) return true;
  }
  return false;
}

static bool by_facts(Proof *q, const Lin *p, u32 i, u32 depth) {
  for (u32 n = q->f->fact.n; n-- > 0;) {
    if (!may_help(&q->f->fact.at[n], &p->at[i])) continue;
    const Lin least0 = q->f->fact.at[n].least0;  // facts move when more are found
    if (without(q, p, i, &least0, depth)) return true;
  }
  return false;
}

// ---- quotients, and one of two

// r + c q >= 0 of q = a / n, n > 0, is n (r + c q) > -n, as all are integers. And a - n < n q <= a:
// so it is enough that n r + c a + n - 1 >= 0, less c (n - 1) if c > 0.
static bool by_divisor(Proof *q, const Lin *p, u32 i, u32 depth) {
  const Term t = p->at[i];
  const Atom a = q->f->atom.at[t.atom[0]];
  Lin rest, n, top, goal;
  if (t.atom[1] || a.op != X_IDIV || !sc_form_divides(q->f, a.b)) return false;
  if (sc_form_interval(q->f, a.b).lo < 0) return false;
  sc_lin_copy(&rest, p);
  rest.n--;
  memmove(rest.at + i, rest.at + i + 1, (rest.n - i) * sizeof t);
  sc_lin_copy(&n, a.b);
  sc_lin_copy(&top, a.a);
  if (!sc_know(q->f, &n) || !sc_know(q->f, &top)) return false;
  const Lin one = sc_lin_int(1);
  i64 slack = t.by > 0 ? 1 - t.by : 1;  // times n - 1
  return sc_lin_mul(&goal, &rest, &n) && sc_lin_add(&goal, &top, t.by) &&
         sc_lin_add(&goal, &n, slack) && sc_lin_add(&goal, &one, -slack) && prove(q, &goal, depth);
}

static bool of_both(Proof *q, const Lin *p, u32 atom, u32 depth) {
  const Atom a = q->f->atom.at[atom];
  bool first, decided = a.op == X_WHERE && sc_facts_decided(q->f, a.ref, &first);
  for (u32 second = 0; second < 2; second++) {
    if (decided && first == (second == 1)) continue;  // this one is not taken here
    u32 mark = sc_facts_mark(q->f);
    Lin of, it, less = sc_lin_int(0);
    sc_lin_copy(&of, p);
    sc_lin_copy(&it, second ? a.b : a.a);
    if (a.op == X_WHERE) sc_facts_assume(q->f, a.ref, !second);
    else if (sc_lin_add(&less, a.b, 1) && sc_lin_add(&less, a.a, -1)) {
      Lin order = sc_lin_int(0);
      bool first_least = (a.op == X_MIN) != second;
      if (sc_lin_add(&order, &less, first_least ? 1 : -1)) sc_fact_push(q->f, FACT_SAID, &order);
    }
    bool ok = sc_know(q->f, &it) && sc_lin_replace(&of, atom, &it) && prove(q, &of, depth);
    sc_facts_drop(q->f, mark);
    if (!ok) return false;
  }
  return true;
}

static bool by_choice(Proof *q, const Lin *p, u32 depth) {
  for (u32 i = 0; i < p->n; i++) {
    for (u32 j = 0; j < LIN_DEGREE && p->at[i].atom[j]; j++) {
      u8 op = q->f->atom.at[p->at[i].atom[j]].op;
      if (op == X_MIN || op == X_MAX || op == X_WHERE)
        return of_both(q, p, p->at[i].atom[j], depth);
    }
  }
  return false;
}

// ---- two of a kind

// k (x - y) + rest, of two minima, maxima or quotients: x is no less than y if its operands are,
// each of one of y's. (Of quotients the rest must not be negative by itself.)
static bool of_pair(Proof *q, const Lin *p, u32 i, u32 j, u32 depth) {
  const Atom x = q->f->atom.at[p->at[i].atom[0]], y = q->f->atom.at[p->at[j].atom[0]];
  bool quotients = x.op == X_IDIV;
  Lin rest = *p;
  u32 n = 0;
  for (u32 t = 0; t < p->n; t++)
    if (t != i && t != j) rest.at[n++] = p->at[t];
  rest.n = n;
  if (x.op != y.op || !(quotients || x.op == X_MIN || x.op == X_MAX)) return false;
  if (quotients && (!sc_lin_same(x.b, y.b) || !sc_form_divides(q->f, x.b))) return false;
  if (quotients && sc_form_interval(q->f, x.b).lo < 0) return false;
  if (quotients && sc_form_interval(q->f, &rest).lo < 0) return false;
  if (quotients) rest = sc_lin_int(0);
  for (u32 cross = 0; cross < (quotients ? 1 : 2); cross++) {
    Lin a = rest, b = rest;
    bool ok = sc_lin_add(&a, x.a, p->at[i].by) && sc_lin_add(&a, cross ? y.b : y.a, p->at[j].by) &&
              sc_know(q->f, &a) && prove(q, &a, depth);
    if (ok && !quotients)
      ok = sc_lin_add(&b, x.b, p->at[i].by) && sc_lin_add(&b, cross ? y.a : y.b, p->at[j].by) &&
           sc_know(q->f, &b) && prove(q, &b, depth);
    if (ok) return true;
  }
  return false;
}

static bool by_pair(Proof *q, const Lin *p, u32 depth) {
  for (u32 i = 0; i < p->n; i++) {
    for (u32 j = 0; j < p->n; j++) {
      bool pair = p->at[i].by > 0 && p->at[j].by == -p->at[i].by;
      if (pair && !p->at[i].atom[1] && !p->at[j].atom[1] && of_pair(q, p, i, j, depth)) return true;
    }
  }
  return false;
}

// ---- proofs

static bool by_term(Proof *q, const Lin *p, u32 i, u32 depth) {
  return by_interval(q, p, i, depth) || by_facts(q, p, i, depth) || by_atoms(q, p, i, depth) ||
         by_divisor(q, p, i, depth);
}

// Is the form not negative?
static bool prove(Proof *q, const Lin *goal, u32 depth) {
  Lin p = *goal;
  i64 step = sc_lin_step(&p);
  if (step > 1) p.c = sc_floordiv(p.c, step);
  for (u32 i = 0; i < p.n && step > 1; i++) p.at[i].by /= step;
  if (sc_form_interval(q->f, &p).lo >= 0) return true;
  if (!depth || !q->steps || !q->steps--) return false;
  if (q->f->thorough && by_pair(q, &p, depth - 1)) return true;
  u32 down = 0;
  while (down < p.n && p.at[down].by > 0) down++;
  if (down < p.n && by_term(q, &p, down, depth - 1)) return true;
  for (u32 i = 0; i < p.n && down == p.n; i++) {
    if (by_term(q, &p, i, depth - 1)) return true;
  }
  return by_choice(q, &p, depth - 1);
}

void sc_facts_thorough(Facts *f) { f->thorough = true; }

static bool known_nonneg(Facts *f, Lin *x) {
  if (f->nevers) return true;
  return sc_know(f, x) && prove(&(Proof){f, f->thorough ? MORE_STEPS : STEPS}, x, DEPTH);
}

bool sc_form_nonneg(Facts *f, const Lin *x) {
  Lin p;
  sc_lin_copy(&p, x);
  return known_nonneg(f, &p);
}

static bool difference(Facts *f, Xid a, Xid b, Lin *out) {  // a - b
  *out = sc_lin_int(0);
  return sc_lin_add(out, sc_form(f, a), 1) && sc_lin_add(out, sc_form(f, b), -1);
}

bool sc_fact_nonneg(Facts *f, Xid x) {
  Lin p;
  return difference(f, x, 0, &p) && known_nonneg(f, &p);
}

static bool at_most(Facts *f, Xid a, i64 n, Xid b) {  // a + n <= b
  Lin p;
  if (!difference(f, b, a, &p) || !sc_lin_add(&p, &(Lin){.c = n}, -1)) return false;
  return known_nonneg(f, &p);
}

bool sc_fact_less(Facts *f, Xid a, Xid b) { return at_most(f, a, 1, b); }

bool sc_fact_at_most(Facts *f, Xid a, Xid b) { return at_most(f, a, 0, b); }

bool sc_fact_apart(Facts *f, Xid a, i64 n, Xid b) { return at_most(f, a, n, b); }

bool sc_fact_inside(Facts *f, Xid x, i64 n, Xid dim) {
  return sc_fact_nonneg(f, x) && at_most(f, x, n, dim);
}

bool sc_fact_within(Facts *f, Xid x, i64 n, i64 dim) {
  return sc_fact_nonneg(f, x) && at_most(f, x, n - dim, 0);
}

bool sc_fact_equal(Facts *f, Xid a, Xid b) {
  Lin p;
  if (difference(f, a, b, &p) && sc_know(f, &p) && !p.n && !p.c) return true;
  return at_most(f, a, 0, b) && at_most(f, b, 0, a);
}

// ---- multiples

static i64 step_of(Facts *f, const Lin *x);

static i64 atom_step(Facts *f, u32 atom) {
  const Atom a = f->atom.at[atom];
  if (a.op == X_SUM) return atom_step(f, a.ref);
  bool either = a.op == X_MIN || a.op == X_MAX || a.op == X_WHERE;
  return either ? sc_gcd(step_of(f, a.a), step_of(f, a.b)) : a.op == X_ABS ? step_of(f, a.a) : 1;
}

// What divides the form, 0 if it is 0.
static i64 step_of(Facts *f, const Lin *x) {
  i64 step = x->c;
  for (u32 i = 0; i < x->n; i++) {
    i64 of = x->at[i].by;
    for (u32 j = 0; j < LIN_DEGREE && x->at[i].atom[j]; j++) {
      if (__builtin_mul_overflow(of, atom_step(f, x->at[i].atom[j]), &of)) of = 1;
    }
    step = sc_gcd(step, of);
  }
  return step;
}

bool sc_fact_multiple(Facts *f, Xid x, i64 n) {
  Lin p;
  return difference(f, x, 0, &p) && sc_know(f, &p) && step_of(f, &p) % n == 0;
}

// The form as it is in another round of the loops.
static bool in_other_round(Facts *f, Lin *x) {
  Lin from = *x;
  for (u32 i = 0; i < from.n; i++) {
    for (u32 j = 0; j < LIN_DEGREE && from.at[i].atom[j]; j++) {
      u32 atom = from.at[i].atom[j];
      if (!f->atom.at[atom].varies) continue;
      Lin other = sc_lin_atom(sc_form_atom(f, (Atom){.op = X_SUM, .ref = atom}));
      if (!sc_lin_replace(x, atom, &other)) return false;
    }
  }
  return true;
}

static bool round_difference(Facts *f, Xid a, Xid b, Lin *out) {
  Lin other = sc_lin_int(0);
  *out = sc_lin_int(0);
  return sc_lin_add(&other, sc_form(f, b), 1) && in_other_round(f, &other) &&
         sc_lin_add(out, sc_form(f, a), 1) && sc_lin_add(out, &other, -1) && sc_know(f, out);
}

bool sc_fact_steps(Facts *f, Xid x, i64 n) {
  Lin p;
  return round_difference(f, x, x, &p) && step_of(f, &p) % n == 0;
}

// They overlap if a - b is from 1 - n to m - 1. By its interval, by what all its values have in
// common, or by the facts.
static bool disjoint(Facts *f, Lin p, i64 n, i64 m) {
  Lin q, moving = p;
  moving.c = 0;
  i64 step = step_of(f, &moving);
  if (step && 1 - n + sc_floormod(p.c - (1 - n), step) > m - 1) return true;
  q = sc_lin_int(-n);  // b - a - n
  if (sc_lin_add(&q, &p, -1) && known_nonneg(f, &q)) return true;
  return sc_lin_add(&p, &(Lin){.c = m}, -1) && known_nonneg(f, &p);
}

bool sc_fact_disjoint(Facts *f, Xid a, i64 n, Xid b, i64 m) {
  Lin p;
  return difference(f, a, b, &p) && sc_know(f, &p) && disjoint(f, p, n, m);
}

bool sc_fact_disjoint_rounds(Facts *f, Xid a, i64 n, Xid b, i64 m) {
  Lin p;
  return round_difference(f, a, b, &p) && disjoint(f, p, n, m);
}

// ---- the grid, and rounds of loops

bool sc_fact_past(Facts *f, u32 axis, Xid x, Xid bound) {
  u32 mark = sc_facts_mark(f);
  Lin beyond = sc_lin_atom(sc_form_atom(f, (Atom){.op = X_AXIS, .ref = axis}));
  if (!sc_lin_add(&beyond, sc_form(f, f->k->axis.at[axis].extent), -1)) return false;
  sc_fact_push(f, FACT_SAID, &beyond);
  bool past = at_most(f, bound, 0, x);
  sc_facts_drop(f, mark);
  return past;
}

enum { HIDDEN_DEPTH = 6 };

// May the atom, which is no leaf, change with the loop variable or (X_INST) the instance? `len[t]`,
// `where(w < 1, …)`, `min(t, n)`.
static bool changes_with(const Facts *f, u32 atom, u8 variable, u32 depth) {
  const Atom *a = &f->atom.at[atom];
  const Lin *operand[] = {a->a, a->b};
  if (variable == X_LOOP) return a->varies;
  if ((a->op == X_LOAD || a->op == X_WHERE) && f->k->expr.at[a->ref].deps & DEP_INST) return true;
  for (u32 o = 0; o < 2 && operand[o]; o++) {
    for (u32 i = 0; i < LIN_DEGREE * operand[o]->n; i++) {
      u32 below = operand[o]->at[i / LIN_DEGREE].atom[i % LIN_DEGREE];
      if (!below) continue;
      if (f->atom.at[below].op == X_INST || !depth) return true;
      if (f->atom.at[below].op >= X_LOAD && changes_with(f, below, variable, depth - 1))
        return true;
    }
  }
  return false;
}

static bool may_hide(const Facts *f, const Lin *form, u8 variable) {
  for (u32 i = 0; i < LIN_DEGREE * form->n; i++) {
    u32 atom = form->at[i / LIN_DEGREE].atom[i % LIN_DEGREE];
    if (atom && f->atom.at[atom].op >= X_LOAD && changes_with(f, atom, variable, HIDDEN_DEPTH))
      return true;
  }
  return false;
}

// Does nothing but its loop say anything of the loop variable or instance, and this constant
// bounds?
static bool is_free(Facts *f, u32 atom) {
  const Atom *a = &f->atom.at[atom];
  if (a->op != X_LOOP && a->op != X_INST) return false;
  for (u32 i = 0; i < f->fact.n; i++) {
    const Fact *fact = &f->fact.at[i];
    if (fact->kind == FACT_VAGUE && fact->deps & (a->op == X_LOOP ? DEP_LOOP : DEP_INST))
      return false;
    if (fact->kind != FACT_FOLLOWS && may_hide(f, &fact->least0, a->op)) return false;
    if (sc_lin_mentions(&fact->least0, atom) && (fact->least0.n > 1 || fact->least0.at[0].atom[1]))
      return false;
  }
  Interval in = sc_atom_interval(f, atom);
  return in.lo <= in.hi && in.lo > -SC_FAR / 2 && in.hi < SC_FAR / 2;
}

bool sc_fact_reaches(Facts *f, Xid x, i64 *lo, i64 *hi) {
  const Lin *p = sc_form(f, x);
  for (u32 i = 0; i < p->n; i++) {
    if (p->at[i].atom[1] || !is_free(f, p->at[i].atom[0])) return false;
  }
  Interval in = sc_form_interval(f, p);
  *lo = in.lo;
  *hi = in.hi;
  return true;
}
