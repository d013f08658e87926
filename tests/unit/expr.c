// Expressions: equal values have equal numbers, folding is exact, types and dependences follow.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "compiler/ir/ir.h"

typedef struct Fix {
  Sc sc;
  Kernel *k;
  Xid m, n, h, w, i, j, t;  // dimensions M, N; axis; instance; index variables 0, 1; loop
} Fix;

static int set_up(void **state) {
  static Fix f;
  sc_init(&f.sc, NULL);
  f.k = sc_kernel(&f.sc);
  f.m = x_leaf(&f.sc, f.k, X_DIM, TY_INT, 0);
  f.n = x_leaf(&f.sc, f.k, X_DIM, TY_INT, 1);
  f.h = x_leaf(&f.sc, f.k, X_AXIS, TY_INT, 0);
  f.w = x_leaf(&f.sc, f.k, X_INST, TY_INT, 0);
  f.i = x_leaf(&f.sc, f.k, X_IDX, TY_INT, 0);
  f.j = x_leaf(&f.sc, f.k, X_IDX, TY_INT, 1);
  f.t = x_leaf(&f.sc, f.k, X_LOOP, TY_INT, 0);
  *state = &f;
  return 0;
}

static int tear_down(void **state) {
  sc_free(&((Fix *)*state)->sc);
  return 0;
}

#define MAKE(op, ...) make(f, X_##op, __VA_ARGS__, 0, 0)
#define make(f, op, a, b, c, ...) x_make(&(f)->sc, (f)->k, op, a, b, c)
#define INT(v) x_int(&f->sc, f->k, v)
#define REAL(v) x_real(&f->sc, f->k, v)
#define BOOL(v) x_bool(&f->sc, f->k, v)
#define AT(x) at(f, x)

// By a call: making x may move the table.
static Expr at(const Fix *f, Xid x) { return f->k->expr.at[x]; }

static u32 buf(Fix *f, Space space, u8 elem, u8 dir, u8 rank) {
  Buf b = {.name = "b", .space = space, .elem = elem, .dir = dir, .rank = rank};
  PUSH(&f->sc, &f->k->buf, b);
  return f->k->buf.n - 1;
}

static u32 view(Fix *f, u32 b, Xid base, i8 var) {
  View v = {.buf = b, .rank = 1, .at = {{base, var, false}}};
  PUSH(&f->sc, &f->k->view, v);
  return f->k->view.n - 1;
}

static void equal_values_have_equal_numbers(void **state) {
  Fix *f = *state;
  assert_int_equal(MAKE(ADD, f->m, f->n), MAKE(ADD, f->m, f->n));
  assert_int_equal(MAKE(ADD, f->m, f->n), MAKE(ADD, f->n, f->m));
  assert_int_not_equal(MAKE(SUB, f->m, f->n), MAKE(SUB, f->n, f->m));
  assert_int_not_equal(REAL(0.0), REAL(-0.0));
  assert_int_not_equal(INT(1), BOOL(true));
  // Through many growths of the table.
  Xid first[300];
  for (int v = 0; v < 300; v++) first[v] = INT(1000 + v);
  for (int v = 0; v < 300; v++) assert_int_equal(first[v], INT(1000 + v));
}

static void reals_keep_their_operand_order(void **state) {
  Fix *f = *state;
  Xid a = x_leaf(&f->sc, f->k, X_ARG, TY_REAL, 0), b = x_leaf(&f->sc, f->k, X_ARG, TY_REAL, 1);
  assert_int_not_equal(MAKE(MIN, a, b), MAKE(MIN, b, a));
  Xid sum = MAKE(ADD, REAL(1), REAL(2));
  assert_int_equal(AT(sum).op, X_ADD);  // not folded: evaluators differ in precision
  assert_int_equal(AT(MAKE(ADD, a, REAL(0))).op, X_ADD);
  assert_int_equal(MAKE(NEG, REAL(INFINITY)), REAL(-INFINITY));
  assert_int_equal(MAKE(WHERE, BOOL(false), a, b), b);
}

static void integers_fold(void **state) {
  Fix *f = *state;
  assert_int_equal(MAKE(ADD, INT(2), INT(3)), INT(5));
  assert_int_equal(MAKE(IDIV, INT(-7), INT(2)), INT(-4));
  assert_int_equal(MAKE(MOD, INT(-7), INT(2)), INT(1));
  assert_int_equal(MAKE(MOD, INT(7), INT(-2)), INT(-1));
  assert_int_equal(MAKE(CDIV, INT(7), INT(2)), INT(4));
  assert_int_equal(MAKE(CDIV, INT(-7), INT(2)), INT(-3));
  assert_int_equal(MAKE(CDIV, INT(8), INT(2)), INT(4));
  assert_int_equal(MAKE(ABS, INT(-3)), INT(3));
  assert_int_equal(MAKE(LE, INT(3), INT(3)), BOOL(true));
  assert_int_equal(MAKE(LT, INT(3), INT(3)), BOOL(false));
}

static void what_has_no_value_is_none(void **state) {
  Fix *f = *state;
  assert_int_equal(MAKE(IDIV, INT(1), INT(0)), 0);
  assert_int_equal(MAKE(MOD, f->m, INT(0)), 0);
  assert_int_equal(MAKE(ADD, INT(INT64_MAX), INT(1)), 0);
  assert_int_equal(MAKE(MUL, INT(INT64_MIN), INT(-1)), 0);
  assert_int_equal(MAKE(NEG, INT(INT64_MIN)), 0);
  assert_int_equal(MAKE(ABS, INT(INT64_MIN)), 0);
  assert_int_equal(MAKE(IDIV, INT(INT64_MIN), INT(-1)), 0);
  assert_int_equal(MAKE(ADD, 0, f->m), 0);
  assert_int_equal(MAKE(ADD, f->m, 0), 0);
  assert_int_equal(MAKE(WHERE, BOOL(true), f->m, 0), 0);
}

static void identities(void **state) {
  Fix *f = *state;
  Xid p = MAKE(LT, f->m, f->n);
  assert_int_equal(MAKE(ADD, f->m, INT(0)), f->m);
  assert_int_equal(MAKE(ADD, INT(0), f->m), f->m);
  assert_int_equal(MAKE(SUB, f->m, f->m), INT(0));
  assert_int_equal(MAKE(MUL, f->m, INT(1)), f->m);
  assert_int_equal(MAKE(MUL, INT(1), f->m), f->m);
  assert_int_equal(MAKE(MUL, f->m, INT(0)), INT(0));
  assert_int_equal(MAKE(MUL, INT(0), f->m), INT(0));
  assert_int_equal(MAKE(MIN, f->m, f->m), f->m);
  assert_int_equal(MAKE(CDIV, f->m, INT(1)), f->m);
  assert_int_equal(MAKE(MOD, f->m, INT(1)), INT(0));
  assert_int_equal(MAKE(EQ, f->m, f->m), BOOL(true));
  assert_int_equal(MAKE(AND, p, BOOL(true)), p);
  assert_int_equal(MAKE(AND, BOOL(false), p), BOOL(false));
  assert_int_equal(MAKE(OR, p, BOOL(true)), BOOL(true));
  assert_int_equal(MAKE(OR, BOOL(false), p), p);
  assert_int_equal(MAKE(NOT, MAKE(NOT, p)), p);
  assert_int_equal(MAKE(WHERE, p, f->m, f->m), f->m);
}

static void types_follow_the_signature(void **state) {
  Fix *f = *state;
  Xid a = x_leaf(&f->sc, f->k, X_ARG, TY_REAL, 0), p = MAKE(LT, f->m, f->n);
  Xid mixed = MAKE(MUL, a, f->m);
  assert_int_equal(AT(mixed).ty, TY_REAL);
  assert_int_equal(AT(AT(mixed).b).op, X_TOREAL);
  assert_int_equal(MAKE(TOREAL, INT(3)), REAL(3));
  assert_int_equal(AT(MAKE(DIV, f->m, f->n)).ty, TY_REAL);
  assert_int_equal(AT(MAKE(LT, a, f->m)).ty, TY_BOOL);
  assert_int_equal(MAKE(ADD, p, f->m), 0);  // a truth is no number
  assert_int_equal(MAKE(AND, p, f->m), 0);
  assert_int_equal(MAKE(IDIV, a, f->m), 0);  // a real has no integer quotient
  assert_int_equal(MAKE(WHERE, f->m, a, a), 0);
  assert_int_equal(MAKE(SUM, a), 0);  // reductions have their own constructor
  assert_int_equal(AT(MAKE(WHERE, p, a, f->m)).ty, TY_REAL);
}

static void dependences(void **state) {
  Fix *f = *state;
  Xid e = MAKE(ADD, MAKE(MUL, f->h, INT(64)), f->m);
  assert_int_equal(AT(e).deps, DEP_AXIS | DEP_DIM);
  assert_true(x_uniform(f->k, e));
  Xid ij = MAKE(ADD, MAKE(ADD, e, f->i), f->j);
  assert_int_equal(AT(ij).vars, 3);
  assert_false(x_uniform(f->k, ij));
  Xid sum = x_reduce(&f->sc, f->k, X_SUM, 1, ij);
  assert_int_equal(AT(sum).vars, 1);
  sum = x_reduce(&f->sc, f->k, X_SUM, 0, sum);
  assert_int_equal(AT(sum).vars, 0);
  assert_int_equal(AT(sum).deps & DEP_IDX, 0);
  assert_false(x_uniform(f->k, sum));  // it needs the extents of its map
}

static void loads(void **state) {
  Fix *f = *state;
  u32 in = buf(f, SP_TENSOR, EL_I32, SCHEDC_IN, 1),
      out = buf(f, SP_TENSOR, EL_F32, SCHEDC_INOUT, 1);
  u32 reg = buf(f, SP_REG, EL_F32, 0, 1);
  Xid fetch = x_leaf(&f->sc, f->k, X_LOAD, TY_INT, view(f, in, f->h, -1));
  assert_int_equal(AT(fetch).deps, DEP_FETCH | DEP_AXIS);
  assert_true(x_uniform(f->k, fetch));
  // The same element through another view: the roles agree on it.
  assert_int_equal(fetch, x_leaf(&f->sc, f->k, X_LOAD, TY_INT, view(f, in, f->h, -1)));
  assert_int_not_equal(fetch, x_leaf(&f->sc, f->k, X_LOAD, TY_INT, view(f, in, f->m, -1)));
  // … at a place that varies, or in a tensor that the kernel writes: not uniform.
  Xid row = x_leaf(&f->sc, f->k, X_LOAD, TY_INT, view(f, in, f->h, 0));
  assert_int_equal(AT(row).deps, DEP_TILE | DEP_IDX | DEP_AXIS);
  assert_int_equal(AT(row).vars, 1);
  Xid written = x_leaf(&f->sc, f->k, X_LOAD, TY_REAL, view(f, out, f->h, -1));
  assert_int_equal(AT(written).deps, DEP_TILE | DEP_AXIS);
  Xid tile = x_leaf(&f->sc, f->k, X_LOAD, TY_REAL, view(f, reg, 0, 1));
  assert_int_equal(AT(tile).deps, DEP_TILE | DEP_IDX);
  assert_int_equal(AT(tile).vars, 2);
  // A fetch at a fetched place.
  Xid far = x_leaf(&f->sc, f->k, X_LOAD, TY_INT, view(f, in, fetch, -1));
  assert_int_equal(AT(far).deps, DEP_FETCH | DEP_AXIS);
}

static void known_values(void **state) {
  Fix *f = *state;
  i64 v = 7;
  bool b = false;
  assert_true(x_const_int(f->k, 0, &v));
  assert_int_equal(v, 0);
  assert_true(x_const_int(f->k, INT(-5), &v));
  assert_int_equal(v, -5);
  assert_false(x_const_int(f->k, f->m, &v));
  assert_true(x_const_bool(f->k, BOOL(true), &b));
  assert_true(b);
  assert_false(x_const_bool(f->k, INT(1), &b));
}

static void expect_below(Below *b, Xid root, u8 deps, const Xid *want, u32 n) {
  x_begin(b, deps);
  x_from(b, root);
  for (u32 i = 0; i < n; i++) assert_int_equal(x_next(b), want[i]);
  assert_int_equal(x_next(b), 0);
  assert_int_equal(x_next(b), 0);
}

static void walks_meet_each_node_once(void **state) {
  Fix *f = *state;
  Below b = x_below(&f->sc, f->k);
  Xid sum = MAKE(ADD, f->m, f->i), twice = MAKE(MUL, sum, sum), all = MAKE(SUB, twice, f->m);
  expect_below(&b, all, 0, (Xid[]){all, twice, sum, f->m, f->i}, 5);
  expect_below(&b, all, DEP_IDX, (Xid[]){all, twice, sum, f->i}, 4);
  expect_below(&b, f->m, DEP_IDX, NULL, 0);
  expect_below(&b, 0, 0, NULL, 0);
  x_begin(&b, 0);  // of two roots the one that was given last is met first
  x_from(&b, f->n);
  x_from(&b, sum);
  const Xid both[] = {sum, f->m, f->i, f->n, 0};
  for (u32 i = 0; i < COUNT(both); i++) assert_int_equal(x_next(&b), both[i]);
  u32 place = view(f, buf(f, SP_TENSOR, EL_F32, SCHEDC_IN, 1), all, -1);
  Xid load = x_leaf(&f->sc, f->k, X_LOAD, TY_REAL, place);
  expect_below(&b, load, 0, (Xid[]){load, all, twice, sum, f->m, f->i}, 6);
}

static void walks_skip(void **state) {
  Fix *f = *state;
  Below b = x_below(&f->sc, f->k);
  Xid left = MAKE(ADD, f->m, f->n), all = MAKE(MUL, left, f->n);
  x_begin(&b, 0);
  x_from(&b, all);
  assert_int_equal(x_next(&b), all);
  assert_int_equal(x_next(&b), left);
  x_skip(&b);
  assert_int_equal(x_next(&b), f->n);  // another way leads there
  assert_int_equal(x_next(&b), 0);
}

// 2^60 ways lead down, and a chain is longer than a stack is deep.
static void walks_are_linear(void **state) {
  Fix *f = *state;
  Below b = x_below(&f->sc, f->k);
  Xid x = MAKE(TOREAL, f->m);
  u32 met = 0;
  for (u32 i = 0; i < 60; i++) x = MAKE(ADD, x, x);
  for (u32 i = 0; i < 1000000; i++) x = MAKE(ADD, x, f->m);
  x_begin(&b, 0);
  x_from(&b, x);
  while (x_next(&b)) met++;
  assert_int_equal(met, 1000000 + 60 + 2);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(equal_values_have_equal_numbers),
      TEST(reals_keep_their_operand_order),
      TEST(integers_fold),
      TEST(what_has_no_value_is_none),
      TEST(identities),
      TEST(types_follow_the_signature),
      TEST(dependences),
      TEST(loads),
      TEST(known_values),
      TEST(walks_meet_each_node_once),
      TEST(walks_skip),
      TEST(walks_are_linear),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
