// Facts of integers: random expressions under random loops and conditions, with every assignment
// of small values as the oracle: nothing is claimed that one of them refutes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "factskit.h"

// ---- the oracle

typedef struct World {
  i64 dim[2], arg, axis[2], inst, loop;
} World;

// The value in a world; false: none, as something is divided by 0.
static bool value(const Fix *f, const World *w, Xid x, i64 *out) {
  const Expr *e = &f->k->expr.at[x];
  i64 a = 0, b = 0;
  if (!x) return *out = 0, true;
  switch (e->op) {
    case X_INT:
    case X_BOOL: return *out = e->num.i, true;
    case X_DIM: return *out = w->dim[e->ref], true;
    case X_ARG: return *out = w->arg, true;
    case X_AXIS: return *out = w->axis[e->ref], true;
    case X_INST: return *out = w->inst, true;
    case X_LOOP: return *out = w->loop, true;
    case X_WHERE: return value(f, w, e->a, &a) && value(f, w, a ? e->b : e->c, out);
    default: break;
  }
  if (!value(f, w, e->a, &a) || !value(f, w, e->b, &b)) return false;
  switch (e->op) {
    case X_NOT: return *out = !a, true;
    case X_AND: return *out = a && b, true;
    case X_OR: return *out = a || b, true;
    default: return sc_int_op(e->op, a, b, out);
  }
}

static bool next(i64 *v, i64 lo, i64 hi) { return ++*v <= hi ? true : (*v = lo, false); }

static bool next_world(World *w) {
  return next(&w->dim[0], 0, 3) || next(&w->dim[1], 0, 3) || next(&w->arg, -2, 3) ||
         next(&w->axis[0], 0, 2) || next(&w->inst, 0, INSTANCES - 1) || next(&w->loop, -2, 3);
}

static const World first_world = {.arg = -2, .loop = -2};

typedef struct Said {
  Xid require, cond, from, to;
  bool truth;
} Said;

// Is the world one in which the place is reached?
static bool reached(const Fix *f, const World *w, const Said *said) {
  i64 v, lo, hi, extent;
  return value(f, w, said->require, &v) && v && value(f, w, f->k->axis.at[0].extent, &extent) &&
         w->axis[0] < extent && value(f, w, said->from, &lo) && value(f, w, said->to, &hi) &&
         lo <= w->loop && w->loop < hi && value(f, w, said->cond, &v) && (v != 0) == said->truth;
}

// ---- random expressions

static u32 pick(Fix *f, u32 n) {
  f->random = f->random * 6364136223846793005u + 1442695040888963407u;
  return (u32)(f->random >> 33) % n;
}

static Xid condition(Fix *f, u32 depth);

static Xid expression(Fix *f, u32 depth) {
  static const u8 op[] = {X_ADD, X_ADD, X_SUB, X_SUB, X_MUL, X_IDIV, X_CDIV,
                          X_MOD, X_MIN, X_MAX, X_NEG, X_ABS, X_WHERE};
  const Xid leaf[] = {f->n, f->m, f->s, f->a, f->w, f->i, f->n, f->i};
  if (!depth || !pick(f, 4))
    return pick(f, 3) ? leaf[pick(f, COUNT(leaf))] : INT((i64)pick(f, 9) - 2);
  u8 o = op[pick(f, COUNT(op))];
  Xid a = o == X_WHERE ? condition(f, depth - 1) : expression(f, depth - 1),
      b = expression(f, depth - 1);
  if ((o == X_IDIV || o == X_CDIV || o == X_MOD) && pick(f, 2)) b = INT((i64)pick(f, 5) - 1);
  Xid x = x_make(&f->sc, f->k, o, a, b, o == X_WHERE ? expression(f, depth - 1) : 0);
  return x ? x : expression(f, depth);
}

static Xid condition(Fix *f, u32 depth) {
  static const u8 op[] = {X_LT, X_LT, X_LE, X_LE, X_EQ, X_NE, X_AND, X_OR, X_NOT};
  u8 o = op[pick(f, depth ? COUNT(op) : 6)];
  bool truths = o == X_AND || o == X_OR || o == X_NOT;
  Xid a = truths ? condition(f, depth - 1) : expression(f, depth),
      b = truths ? condition(f, depth - 1) : expression(f, depth);
  Xid x = x_make(&f->sc, f->k, o, a, b, 0);
  return x ? x : condition(f, depth);
}

static Said place(Fix *f) {
  Said s = {.require = condition(f, 1), .cond = condition(f, 2), .truth = pick(f, 2)};
  s.from = pick(f, 2) ? INT((i64)pick(f, 4) - 2) : expression(f, 1);
  s.to = pick(f, 2) ? INT((i64)pick(f, 5)) : expression(f, 1);
  const Expr *cond = &f->k->expr.at[s.require];
  if (cond->deps & ~DEP_DIM) s.require = x_bool(&f->sc, f->k, true);
  if (f->k->expr.at[s.from].deps & DEP_LOOP) s.from = 0;
  if (f->k->expr.at[s.to].deps & DEP_LOOP) s.to = f->n;
  PUSH(&f->sc, &f->k->require, ((Require){.cond = s.require}));
  axis(f, pick(f, 2) ? f->n : X(CDIV, f->n, INT(2)), 1);
  axis(f, X(CDIV, f->m, INT(2)), 2);
  ins(f, OP_FOR, 0, s.from, s.to);
  ins(f, OP_IF, s.cond, 0, 0);
  if (!s.truth) ins(f, OP_ELSE, 0, 0, 0);
  know(f);
  return s;
}

// ---- nothing is claimed that is not so

typedef struct Question {
  Xid x, y;
  i64 n, m;
  bool nonneg, less, equal, multiple, inside, disjoint, rounds, steps, reaches;  // the answers
  i64 lo, hi;                                                                    // … of reaches
} Question;

static Question ask(Fix *f) {
  Question q = {
      .x = expression(f, 3), .y = expression(f, 2), .n = 1 + pick(f, 4), .m = 1 + pick(f, 4)};
  if (!pick(f, 3)) q.y = X(ADD, q.x, q.y) ? X(ADD, q.x, q.y) : q.y;
  q.nonneg = sc_fact_nonneg(f->facts, q.x);
  q.less = sc_fact_less(f->facts, q.x, q.y);
  q.equal = sc_fact_equal(f->facts, q.x, q.y);
  q.multiple = sc_fact_multiple(f->facts, q.x, q.n + 1);
  q.inside = sc_fact_inside(f->facts, q.x, q.n, q.y);
  q.disjoint = sc_fact_disjoint(f->facts, q.x, q.n, q.y, q.m);
  q.rounds = sc_fact_disjoint_rounds(f->facts, q.x, q.n, q.y, q.m);
  q.steps = sc_fact_steps(f->facts, q.x, q.n + 1);
  q.reaches = sc_fact_reaches(f->facts, q.x, &q.lo, &q.hi);
  return q;
}

static void none_refutes(const Fix *f, const Question *q, const World *w) {
  World other = *w;
  i64 x, y, z;
  if (!value(f, w, q->x, &x)) return;
  if (q->nonneg) assert_true(x >= 0);
  if (q->multiple) assert_true(sc_floormod(x, q->n + 1) == 0);
  if (q->reaches) assert_true(q->lo <= x && x <= q->hi);
  if (value(f, w, q->y, &y)) {
    if (q->less) assert_true(x < y);
    if (q->equal) assert_true(x == y);
    if (q->inside) assert_true(x >= 0 && x + q->n <= y);
    if (q->disjoint) assert_true(x + q->n <= y || y + q->m <= x);
  }
  if (!q->rounds && !q->steps) return;
  for (other.loop = -2; other.loop <= 3; other.loop++) {
    if (q->steps && value(f, &other, q->x, &z)) assert_true(sc_floormod(z - x, q->n + 1) == 0);
    if (q->rounds && value(f, &other, q->y, &z)) assert_true(x + q->n <= z || z + q->m <= x);
  }
}

// Has the loop rounds that no world has?
static bool beyond(const Expr *from, const Expr *to) {
  return (from->op == X_INT && from->num.i < -2) || (to->op == X_INT && to->num.i > 4);
}

typedef struct Tally {
  u32 holds, proved, reached;
} Tally;

static void try_one(Fix *f, Tally *all) {
  enum { QUESTIONS = 12 };
  Said said = place(f);
  Question q[QUESTIONS];
  bool least[QUESTIONS] = {false}, most[QUESTIONS] = {false}, holds[QUESTIONS];
  bool some = false;
  World w = first_world;
  for (u32 i = 0; i < QUESTIONS; i++) q[i] = ask(f), holds[i] = true;
  do {
    if (!reached(f, &w, &said)) continue;
    some = true;
    for (u32 i = 0; i < QUESTIONS; i++) {
      i64 x, y;
      none_refutes(f, &q[i], &w);
      if (!value(f, &w, q[i].x, &x)) continue;
      least[i] |= x == q[i].lo;
      most[i] |= x == q[i].hi;
      holds[i] &= !value(f, &w, q[i].y, &y) || x < y;
    }
  } while (next_world(&w));
  for (u32 i = 0; i < QUESTIONS && some; i++) {
    all->holds += holds[i];
    all->proved += q[i].less;
    if (!q[i].reaches || beyond(&f->k->expr.at[said.from], &f->k->expr.at[said.to])) continue;
    all->reached++;
    assert_true(least[i] && most[i]);
  }
}

static void no_claim_is_refuted(void **state) {
  Tally all = {0};
  (void)state;
  for (u32 seed = 1; seed <= 300; seed++) {
    Fix f = {.random = seed};
    begin(&f);
    try_one(&f, &all);
    sc_free(&f.sc);
  }
  // Of what holds for small values, not all holds for all.
  assert_true(all.proved * 2 > all.holds);
  assert_true(all.reached > 150);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(no_claim_is_refuted)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
