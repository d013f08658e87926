// Facts of integers: random expressions under random loops and conditions, with every assignment
// of small values as the oracle: nothing is claimed that one of them refutes. And a list of what
// must be proved.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "compiler/facts/facts.h"

typedef struct Fix {
  Sc sc;
  Kernel *k;
  Facts *facts;
  Xid n, m, s, a, c, w,
      i;  // dimensions N, M; scalar; axes: plain, in clusters of 2; instance; loop
  u64 random;
} Fix;

enum { INSTANCES = 2 };

static void ins(Fix *f, Op op, u32 a, u32 b, u32 c) {
  PUSH(&f->sc, &f->k->role.at[0].code, ((Ins){.op = op, .arg = {a, b, c}}));
}

static void begin(Fix *f) {
  sc_init(&f->sc, NULL);
  Sc *sc = &f->sc;
  Kernel *k = f->k = sc_kernel(sc);
  f->n = x_leaf(sc, k, X_DIM, TY_INT, 0);
  f->m = x_leaf(sc, k, X_DIM, TY_INT, 1);
  f->s = x_leaf(sc, k, X_ARG, TY_INT, 0);
  f->a = x_leaf(sc, k, X_AXIS, TY_INT, 0);
  f->c = x_leaf(sc, k, X_AXIS, TY_INT, 1);
  f->w = x_leaf(sc, k, X_INST, TY_INT, 0);
  f->i = x_leaf(sc, k, X_LOOP, TY_INT, 0);
  PUSH(sc, &k->role, ((Role){.instances = INSTANCES}));
  PUSH(sc, &k->loop, ((Loop){.name = "i"}));
  ins(f, OP_TILE, 0, 0, 0);
}

static int set_up(void **state) {
  static Fix f;
  memset(&f, 0, sizeof f);
  begin(&f);
  *state = &f;
  return 0;
}

static int tear_down(void **state) {
  sc_free(&((Fix *)*state)->sc);
  return 0;
}

static void axis(Fix *f, Xid extent, u32 cluster) {
  PUSH(&f->sc, &f->k->axis, ((Axis){.name = "a", .extent = extent, .cluster = cluster}));
}

// The facts inside of everything that the code opens.
static void know(Fix *f) {
  f->facts = sc_facts(&f->sc, f->k);
  sc_facts_at(f->facts, &f->k->role.at[0].code, f->k->role.at[0].code.n);
}

#define X(op, a, b) x_make(&f->sc, f->k, X_##op, a, b, 0)
#define INT(v) x_int(&f->sc, f->k, v)

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

// ---- what must be proved

#define BELOW(a, b) assert_true(sc_fact_less(f->facts, a, b))
#define NONNEG(x) assert_true(sc_fact_nonneg(f->facts, x))
#define ADD(a, b) X(ADD, a, b)
#define SUB(a, b) X(SUB, a, b)
#define MUL(a, b) X(MUL, a, b)

static void require(Fix *f, Xid cond) { PUSH(&f->sc, &f->k->require, ((Require){.cond = cond})); }

static Xid divides(Fix *f, Xid a, Xid b) { return X(EQ, X(MOD, a, b), INT(0)); }

static void quotients_and_remainders(void **state) {
  Fix *f = *state;
  Xid down = X(IDIV, f->n, INT(64)), up = X(CDIV, f->n, INT(64));
  know(f);
  NONNEG(down);
  NONNEG(SUB(f->n, MUL(down, INT(64))));
  NONNEG(SUB(MUL(up, INT(64)), f->n));
  BELOW(MUL(up, INT(64)), ADD(f->n, INT(64)));
  BELOW(X(MOD, f->n, INT(64)), INT(64));
  NONNEG(X(MOD, f->s, INT(64)));
  NONNEG(SUB(f->n, MUL(X(IDIV, f->n, f->m), f->m)));
  assert_true(sc_fact_equal(f->facts, X(IDIV, ADD(f->n, INT(64)), INT(64)), ADD(down, INT(1))));
  assert_true(sc_fact_equal(f->facts, X(IDIV, X(IDIV, f->n, INT(4)), INT(16)), down));
  assert_true(sc_fact_equal(f->facts, X(IDIV, ADD(X(IDIV, f->n, INT(4)), INT(3)), INT(16)),
                            X(IDIV, ADD(f->n, INT(12)), INT(64))));
  assert_false(sc_fact_nonneg(f->facts, f->s));
  assert_false(sc_fact_nonneg(f->facts, X(IDIV, f->s, INT(64))));
}

static void tiles_of_the_grid(void **state) {
  Fix *f = *state;
  axis(f, X(CDIV, f->n, INT(64)), 1);
  axis(f, X(CDIV, f->n, INT(128)), 2);
  know(f);
  BELOW(MUL(f->a, INT(64)), f->n);
  assert_false(sc_fact_less(f->facts, ADD(MUL(f->a, INT(64)), INT(63)), f->n));
  assert_false(sc_fact_less(f->facts, MUL(f->c, INT(128)), f->n));  // it may be past the end, …
  assert_true(sc_fact_past(f->facts, 1, ADD(MUL(f->c, INT(128)), MUL(f->w, INT(64))), f->n));
  assert_false(sc_fact_past(f->facts, 1, MUL(f->c, INT(64)), f->n));
}

static void whole_tiles(void **state) {
  Fix *f = *state;
  require(f, divides(f, f->n, INT(64)));
  axis(f, X(CDIV, f->n, INT(64)), 1);
  axis(f, f->m, 1);
  know(f);
  assert_true(sc_fact_inside(f->facts, MUL(f->a, INT(64)), 64, f->n));
  assert_false(sc_fact_inside(f->facts, MUL(f->a, INT(64)), 65, f->n));
  assert_true(sc_fact_multiple(f->facts, f->n, 32));
  assert_true(sc_fact_equal(f->facts, X(CDIV, f->n, INT(64)), X(IDIV, f->n, INT(64))));
}

// h * G / H is below G where heads share: but for G = 0, which a requirement excludes.
static void shared_heads(void **state) {
  Fix *f = *state;
  axis(f, f->n, 1);
  axis(f, INT(1), 1);
  Xid shared = X(IDIV, MUL(f->a, f->m), f->n);
  know(f);
  assert_false(sc_fact_less(f->facts, shared, f->m));
  require(f, divides(f, f->n, f->m));
  know(f);
  BELOW(shared, f->m);
  NONNEG(shared);
}

// One of n parts of a dimension, and a place in it.
static void places_in_parts(void **state) {
  Fix *f = *state;
  Xid part = X(IDIV, f->n, INT(4));
  axis(f, INT(4), 1);
  axis(f, INT(1), 1);
  ins(f, OP_FOR, 0, 0, part);
  know(f);
  BELOW(ADD(MUL(f->a, part), f->i), f->n);
  assert_false(sc_fact_less(f->facts, ADD(ADD(MUL(f->a, part), f->i), INT(1)), f->n));
}

static void parts_of_unknown_number(void **state) {
  Fix *f = *state;
  Xid part = X(IDIV, f->n, f->m);
  axis(f, f->m, 1);
  axis(f, INT(1), 1);
  ins(f, OP_FOR, 0, 0, part);
  know(f);
  BELOW(ADD(MUL(f->a, part), f->i), f->n);
}

static void least_and_greatest(void **state) {
  Fix *f = *state;
  axis(f, INT(1), 1);
  axis(f, INT(1), 1);
  ins(f, OP_FOR, 0, X(MAX, f->s, INT(0)), X(MIN, f->n, f->m));
  know(f);
  NONNEG(f->i);
  BELOW(f->i, f->n);
  BELOW(f->i, X(MIN, f->n, f->m));
  NONNEG(SUB(X(MAX, f->n, f->s), X(MIN, f->n, f->m)));
  NONNEG(SUB(SUB(ADD(f->n, f->m), X(MIN, f->n, f->m)), X(MAX, f->n, f->m)));
  Xid chosen = x_make(&f->sc, f->k, X_WHERE, X(LT, f->n, f->m), SUB(f->m, f->n), SUB(f->n, f->m));
  NONNEG(chosen);
}

static void conditions(void **state) {
  Fix *f = *state;
  axis(f, INT(1), 1);
  axis(f, INT(1), 1);
  ins(f, OP_IF, X(AND, X(LT, INT(2), f->s), X(NE, f->n, INT(0))), 0, 0);
  know(f);
  BELOW(INT(2), f->s);
  NONNEG(SUB(f->n, INT(1)));
  sc_facts_at(f->facts, &f->k->role.at[0].code, 1);  // before it
  assert_false(sc_fact_less(f->facts, INT(2), f->s));
  ins(f, OP_ELSE, 0, 0, 0);
  ins(f, OP_IF, X(EQ, f->s, INT(7)), 0, 0);
  sc_facts_at(f->facts, &f->k->role.at[0].code, 4);
  assert_false(sc_fact_less(f->facts, INT(2), f->n));
  assert_true(sc_fact_equal(f->facts, f->s, INT(7)));
}

static void multiples_and_rounds(void **state) {
  Fix *f = *state;
  axis(f, INT(1), 1);
  axis(f, INT(1), 1);
  ins(f, OP_FOR, 0, 0, INT(4));
  know(f);
  Xid even = MUL(f->i, INT(64)), odd = ADD(even, INT(32));
  assert_true(sc_fact_multiple(f->facts, ADD(even, INT(128)), 64));
  assert_false(sc_fact_multiple(f->facts, odd, 64));
  assert_true(sc_fact_multiple(f->facts, X(MIN, even, INT(96)), 32));
  assert_true(sc_fact_steps(f->facts, odd, 64));
  assert_true(sc_fact_steps(f->facts, ADD(odd, f->s), 64));
  assert_false(sc_fact_steps(f->facts, even, 128));
  assert_true(sc_fact_disjoint_rounds(f->facts, even, 32, odd, 32));
  assert_false(sc_fact_disjoint_rounds(f->facts, even, 33, odd, 32));
  assert_true(sc_fact_disjoint(f->facts, f->i, 1, ADD(f->i, INT(1)), 1));
  assert_false(sc_fact_disjoint_rounds(f->facts, f->i, 1, ADD(f->i, INT(1)), 1));
  assert_true(sc_fact_disjoint_rounds(f->facts, f->s, 8, ADD(f->s, INT(8)), 8));
}

// A number that is given to another expression is that one's: whether it varies, too.
static void expressions_taken_back(void **state) {
  Fix *f = *state;
  axis(f, INT(1), 1);
  axis(f, INT(1), 1);
  ins(f, OP_FOR, 0, 0, INT(4));
  know(f);
  u32 kept = f->k->expr.n, five = INT(5);
  Xid before = x_make(&f->sc, f->k, X_WHERE, X(LT, f->s, five), f->n, f->m);
  assert_true(sc_fact_steps(f->facts, before, 4));
  x_forget(f->k, kept);
  sc_facts_forget(f->facts, kept);
  sc_facts_at(f->facts, &f->k->role.at[0].code, f->k->role.at[0].code.n);
  Xid after = x_make(&f->sc, f->k, X_WHERE, X(LT, f->i, INT(6)), f->n, f->m);
  assert_int_equal(before, after);
  assert_false(sc_fact_steps(f->facts, after, 4));
}

static void what_a_loop_reaches(void **state) {
  Fix *f = *state;
  i64 lo, hi;
  axis(f, INT(1), 1);
  axis(f, INT(1), 1);
  ins(f, OP_FOR, 0, INT(1), INT(4));
  know(f);
  assert_true(sc_fact_reaches(f->facts, ADD(MUL(f->i, INT(64)), f->w), &lo, &hi));
  assert_true(lo == 64 && hi == 3 * 64 + INSTANCES - 1);
  assert_false(sc_fact_reaches(f->facts, ADD(f->i, f->n), &lo, &hi));
  assert_false(sc_fact_reaches(f->facts, X(MOD, f->i, INT(2)), &lo, &hi));
  ins(f, OP_IF, X(NE, f->i, INT(3)), 0, 0);
  sc_facts_at(f->facts, &f->k->role.at[0].code, 3);
  assert_false(sc_fact_reaches(f->facts, f->i, &lo, &hi));
}

// An expression without an end in sight costs no more than a bounded effort.
static void deep_expressions(void **state) {
  Fix *f = *state;
  Xid x = f->s, y = f->n;
  for (u32 i = 0; i < 300; i++) {
    Xid z = X(MIN, ADD(x, f->m), X(MAX, y, ADD(x, INT(i))));
    y = x;
    x = z;
  }
  know(f);
  assert_false(sc_fact_nonneg(f->facts, x));
  assert_false(sc_fact_less(f->facts, x, y));
}

// Both sides of a conjunction are the one before: 2^30 comparisons, if each is taken apart anew.
static void deep_conditions(void **state) {
  Fix *f = *state;
  Xid c = X(LT, f->n, f->m), d = X(LT, INT(3), f->s);
  for (u32 i = 0; i < 30; i++) c = X(AND, X(AND, c, d), X(AND, d, X(AND, c, X(LT, f->n, INT(i)))));
  require(f, c);
  know(f);
  BELOW(f->n, f->m);
}

static void sums_of_many_terms(void **state) {
  Fix *f = *state;
  Xid some = 0, all = INT(0);
  for (i64 i = 1; i <= 20; i++) {
    all = ADD(all, X(MIN, f->s, INT(i)));
    if (i == 12) some = all;
  }
  know(f);
  assert_true(sc_fact_equal(f->facts, all, all));
  assert_false(sc_fact_equal(f->facts, some, all));
  assert_false(sc_fact_nonneg(f->facts, SUB(all, some)));
}

int main(void) {
#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_claim_is_refuted),
      TEST(quotients_and_remainders),
      TEST(tiles_of_the_grid),
      TEST(whole_tiles),
      TEST(shared_heads),
      TEST(places_in_parts),
      TEST(parts_of_unknown_number),
      TEST(least_and_greatest),
      TEST(conditions),
      TEST(multiples_and_rounds),
      TEST(expressions_taken_back),
      TEST(what_a_loop_reaches),
      TEST(deep_expressions),
      TEST(deep_conditions),
      TEST(sums_of_many_terms),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
