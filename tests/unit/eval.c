// eval.c - uniform expressions: arithmetic, memos, what is not evaluated, elements of tensors.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "kernelmaker.h"

typedef struct Fix {
  Sc sc;
  jmp_buf home;
  Kernel *k;
  Binding b;
  Env env;
} Fix;

static int setup(void **state) {
  Fix *f = calloc(1, sizeof *f);
  sc_init(&f->sc, NULL);
  if (setjmp(f->home)) return -1;
  f->sc.unwind = &f->home;
  f->k = sc_kernel(&f->sc);
  PUSH(&f->sc, &f->k->loop, ((Loop){.name = "t"}));
  f->b = km_binding(&f->sc, f->k, 8);
  *state = f;
  return 0;
}

static int teardown(void **state) {
  Fix *f = *state;
  sc_free(&f->sc);
  free(f);
  return 0;
}

#define BEGIN_ENV \
  BEGIN;          \
  Env *e = &f->env
#define READY env_init(sc, e, k, &f->b)

static void integers(void **state) {
  BEGIN_ENV;
  Xid n = DIM(0), m = DIM(1);
  Xid div = OP2(IDIV, n, m), mod = OP2(MOD, n, m), up = OP2(CDIV, n, m), top = OP2(MAX, n, m);
  f->b.dim[0] = -7;
  f->b.dim[1] = 2;
  READY;
  assert_int_equal(env_int(e, div), -4);
  assert_int_equal(env_int(e, mod), 1);
  assert_int_equal(env_int(e, up), -3);
  assert_int_equal(env_int(e, top), 2);
  assert_false(e->bad);
}

static void overflow_saturates(void **state) {
  BEGIN_ENV;
  Xid n = DIM(0), add = OP2(ADD, n, n), mul = OP2(MUL, n, DIM(1)), sub = OP2(SUB, DIM(1), n);
  Xid zero = OP2(IDIV, n, DIM(2));
  f->b.dim[0] = INT64_MAX;
  f->b.dim[1] = -5;
  READY;
  assert_int_equal(env_int(e, add), INT64_MAX);
  assert_true(e->bad);
  assert_int_equal(env_int(e, mul), INT64_MIN);
  assert_int_equal(env_int(e, sub), INT64_MIN);
  e->bad = false;
  assert_int_equal(env_int(e, zero), 0);
  assert_true(e->bad);
}

// The branch that is not taken is not evaluated, nor what follows a false `and` or a true `or`.
static void guards(void **state) {
  BEGIN_ENV;
  Xid n = DIM(0), q = OP2(IDIV, INT(8), n), some = OP2(LT, INT(0), n);
  Xid sel = OP3(WHERE, some, q, INT(-1)), both = OP2(AND, some, OP2(LT, INT(1), q));
  Xid either = OP2(OR, OP1(NOT, some), OP2(LT, INT(1), q));
  READY;
  assert_int_equal(env_int(e, sel), -1);
  assert_false(env_bool(e, both));
  assert_true(env_bool(e, either));
  assert_false(e->bad);
}

static void memos_follow_the_loop(void **state) {
  BEGIN_ENV;
  Xid t = x_leaf(sc, k, X_LOOP, TY_INT, 0), e1 = OP2(ADD, OP2(MUL, t, INT(16)), DIM(0));
  Xid at = x_leaf(sc, k, X_AXIS, TY_INT, 1), w = x_leaf(sc, k, X_INST, TY_INT, 0);
  Xid place = OP2(ADD, OP2(MUL, at, INT(100)), w);
  f->b.dim[0] = 3;
  READY;
  for (i64 i = 0; i < 5; i++) {
    e->loop[0] = i;
    e->axis[1] = 2 * i;
    e->inst = i & 1;
    env_touch(e);
    assert_int_equal(env_int(e, e1), 16 * i + 3);
    assert_int_equal(env_int(e, e1), 16 * i + 3);
    assert_int_equal(env_int(e, place), 200 * i + (i & 1));
  }
  e->epoch = UINT32_MAX - 1;  // the counter of epochs comes round
  e->loop[0] = 9;
  env_touch(e);
  assert_int_equal(env_int(e, e1), 147);
}

static void reals_are_f32(void **state) {
  BEGIN_ENV;
  Xid third = OP2(DIV, REAL(1), REAL(3)), scale = OP1(RSQRT, OP1(TOREAL, DIM(0)));
  Xid c = OP2(MUL, x_leaf(sc, k, X_ARG, TY_REAL, 0), REAL(1.4426950408889634));
  Xid nan = OP2(LE, REAL(NAN), REAL(1)), low = OP2(MIN, REAL(NAN), REAL(1));
  f->b.dim[0] = 128;
  f->b.arg[0] = 0.1;
  READY;
  assert_true(env_real(e, third) == 1.0f / 3.0f);
  assert_true(env_real(e, scale) == 1 / sqrtf(128));
  assert_true(env_real(e, c) == 0.1f * 1.4426950408889634f);
  assert_false(env_bool(e, nan));
  assert_true(env_real(e, low) == 1);
  READY;
  e->wide = true;
  assert_true(env_real(e, third) == 1.0 / 3.0);
}

static void elements_of_tensors(void **state) {
  BEGIN_ENV;
  const Xid dim[] = {OP2(ADD, DIM(0), INT(1))};
  u32 cu = km_buf(sc, k, SP_TENSOR, EL_I32, 1, dim);
  k->buf.at[cu].dir = SCHEDC_IN;
  Xid b = x_leaf(sc, k, X_AXIS, TY_INT, 0), next = OP2(ADD, b, INT(1));
  Xid from = x_leaf(sc, k, X_LOAD, TY_INT, AT(cu, b)),
      to = x_leaf(sc, k, X_LOAD, TY_INT, AT(cu, next));
  Xid len = OP2(SUB, to, from);
  i32 at[] = {0, -1, 5, -1, 12};
  f->b.dim[0] = 2;
  f->b.buf[cu] = (TensorRef){.at = (char *)at, .stride = {2}, .shape = {3}};
  READY;
  assert_true(x_uniform(k, len));
  assert_int_equal(env_int(e, len), 5);
  e->axis[0] = 1;
  env_touch(e);
  assert_int_equal(env_int(e, len), 7);
  assert_false(e->bad);
  e->axis[0] = 2;
  env_touch(e);
  assert_int_equal(env_int(e, len), -12);
  assert_true(e->bad);
}

// An enemy's expression: no recursion, and no work twice.
static void deep_expressions(void **state) {
  BEGIN_ENV;
  Xid x = DIM(0), y = DIM(0);
  for (int i = 0; i < 62; i++) x = OP2(ADD, x, x);
  for (int i = 0; i < 200000; i++) y = OP1(ABS, OP2(SUB, y, INT(1)));
  f->b.dim[0] = 1;
  READY;
  assert_int_equal(env_int(e, x), 1ll << 62);
  assert_int_equal(env_int(e, y), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(integers),         TEST(overflow_saturates),
      TEST(guards),           TEST(memos_follow_the_loop),
      TEST(reals_are_f32),    TEST(elements_of_tensors),
      TEST(deep_expressions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
