// verdict.c - what a comparison says besides right and wrong: that it proves nothing, that a type
// overflowed, which bound holds an output of f32; and that chance decides nothing.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "speckit.h"

static schedc_error compared(Fix *f, const Sample *sample) {
  schedc_error e[4] = {SCHEDC_ERROR_INIT};
  assert_int_equal(sc_compare(&f->sc, f->k, &f->b, 1, sample, e), SCHEDC_OK);
  return e[0];
}

static void set(Fix *f, u32 t, i64 at, double v) {
  sc_set_elem(f->k->buf.at[t].elem, f->b.buf[t].at, at, v);
}

// ---- comparisons that prove nothing

// Mamba-2's decay: c[i] = -sum(k) where(k <= i, |a[k]|, 0), and
// Y[i,q] = sum(j) where(j <= i, exp(c[i] - c[j]) * X[j,q], 0).
typedef struct Decay {
  u32 y, c;
} Decay;
enum { ROWS = 1024, COLS = 4 };

static Decay decay(Fix *f) {
  Sc *sc = &f->sc;
  Kernel *k = f->k;
  Xid N = INT(ROWS), Q = INT(COLS), i = IDX(0), q = IDX(1), j = IDX(2);
  u32 a = tensor(f, EL_F32, SCHEDC_IN, 1, &N, (i64[]){ROWS}),
      x = tensor(f, EL_BF16, SCHEDC_IN, 2, (Xid[]){N, Q}, (i64[]){ROWS, COLS}),
      y = tensor(f, EL_BF16, SCHEDC_OUT, 2, (Xid[]){N, Q}, (i64[]){ROWS, COLS});
  u32 c = km_buf(sc, k, SP_SPEC, EL_BF16, 1, &N);
  Xid part = OP1(NEG, OP1(ABS, LOADV(AT(a, q))));
  equation(f, AT(c, i), REDUCE(SUM, 1, OP3(WHERE, OP2(LE, q, i), part, REAL(0))), 1, 2,
           (Xid[]){N, N});
  Xid weight = OP1(EXP, OP2(SUB, LOADV(AT(c, i)), LOADV(AT(c, j))));
  Xid term = OP3(WHERE, OP2(LE, j, i), OP2(MUL, weight, LOADV(AT(x, j, q))), REAL(0));
  equation(f, AT(y, i, q), REDUCE(SUM, 2, term), 2, 3, (Xid[]){N, Q, N});
  return (Decay){y, c};
}

// Stores the specification's values, times `factor`.
static void store(Fix *f, u32 t, i64 n, double factor) {
  assert_int_equal(spec(f, true, 2), SCHEDC_OK);
  for (i64 i = 0; i < n; i++) set(f, t, i, factor * f->to[t][i]);
}

static void swallowed_by_rounding(void **state) {
  BEGIN;
  Decay d = decay(f);
  store(f, d.y, ROWS * COLS, 1);
  schedc_error e = compared(f, NULL);
  assert_true(e.unproven && !e.pass && e.looseness > 0.2);
  assert_true(e.max_error <= e.max_allowed && e.mean_error <= e.mean_allowed);
  store(f, d.y, ROWS * COLS, 0.8);
  e = compared(f, NULL);  // is within the bounds, too
  assert_true(e.unproven && e.max_error <= e.max_allowed && e.mean_error <= e.mean_allowed);
  double was = e.max_allowed;
  k->buf.at[d.c].elem = EL_F32;
  e = compared(f, NULL);
  assert_true(!e.unproven && !e.pass && e.max_allowed < was / 50 && e.looseness < 0.01);
  store(f, d.y, ROWS * COLS, 1);
  e = compared(f, NULL);
  assert_true(!e.unproven && e.pass);
}

// y = factor * x, of 64 elements.
static u32 scaled(Fix *f, Elem in, Elem out, double factor) {
  Sc *sc = &f->sc;
  Kernel *k = f->k;
  Xid N = INT(64), i = IDX(0);
  u32 x = tensor(f, in, SCHEDC_IN, 1, &N, (i64[]){64}),
      y = tensor(f, out, SCHEDC_OUT, 1, &N, (i64[]){64});
  equation(f, AT(y, i), OP2(MUL, REAL(factor), LOADV(AT(x, i))), 1, 1, &N);
  return y;
}

// What is 0 as its type holds it has no size to compare with.
static void zeros(void **state) {
  BEGIN;
  u32 y = scaled(f, EL_F16, EL_F16, 0);
  store(f, y, 64, 1);
  schedc_error e = compared(f, NULL);
  assert_true(e.pass && !e.unproven && e.looseness == 0 && e.max_allowed > 0);
}

static void vanishing(void **state) {
  BEGIN;
  u32 y = scaled(f, EL_F16, EL_F16, 1e-9);
  store(f, y, 64, 1);
  schedc_error e = compared(f, NULL);
  assert_true(e.pass && e.looseness == 0);
}

// The least that f32 is allowed is 1e-5: nothing for values of 1, and all for values of 1e-6.
static void too_small(void **state) {
  BEGIN;
  u32 y = scaled(f, EL_F32, EL_F32, 1e-6);
  store(f, y, 64, 0);
  schedc_error e = compared(f, NULL);
  assert_true(e.unproven && !e.pass && e.looseness > 1);
}

static void of_size(void **state) {
  BEGIN;
  u32 y = scaled(f, EL_F32, EL_F32, 1);
  store(f, y, 64, 1);
  schedc_error e = compared(f, NULL);
  assert_true(e.pass && e.looseness > 4e-4 && e.looseness < 1e-3);  // 1e-3 of 1.95
}

// ---- overflows

// 300 rows of 4: h = a * a in f16, and y = h - h + a, which is a if h is a number.
static u32 differences(Fix *f) {
  Sc *sc = &f->sc;
  Kernel *k = f->k;
  f->b.dim[0] = 300;
  Xid i = IDX(0), j = IDX(1), both[] = {DIM(0), INT(4)};
  u32 a = tensor(f, EL_F16, SCHEDC_IN, 2, both, (i64[]){300, 4}),
      y = tensor(f, EL_F32, SCHEDC_OUT, 2, both, (i64[]){300, 4});
  u32 h = km_buf(sc, k, SP_SPEC, EL_F16, 2, both);
  Xid aij = LOADV(AT(a, i, j)), hij = LOADV(AT(h, i, j));
  equation(f, AT(h, i, j), OP2(MUL, aij, aij), 2, 2, both);
  equation(f, AT(y, i, j), OP2(ADD, OP2(SUB, hij, hij), aij), 2, 2, both);
  set(f, a, 0, 1000);
  set(f, a, 1199, -2000);
  return y;
}

static void overflow_is_told(void **state) {
  BEGIN;
  u32 y = differences(f);
  store(f, y, 1200, 1);
  set(f, y, 0, NAN);
  set(f, y, 1199, NAN);
  schedc_error e = compared(f, NULL);  // as the specification in f16 says, too
  assert_true(!e.pass && e.overflowed == 2 && e.unwritten == 0);
  set(f, y, 7, INFINITY);  // which nothing else makes
  set(f, y, 8, NAN);
  e = compared(f, NULL);
  assert_true(!e.pass && e.overflowed == 3 && e.unwritten == 1);
  // The first and the last row are in each sample; the others' NaN may be made in the same way.
  e = compared(f, &(Sample){.places = 3});
  assert_true(!e.pass && e.elements == 12 && e.overflowed == 2 && e.unwritten == 0);
  set(f, y, 0, 0);
  set(f, y, 1199, 0);
  e = compared(f, &(Sample){.places = 3});
  assert_true(!e.pass && e.overflowed == 0 && e.unwritten == 1);
}

// Infinity where it should be, or where the type ends; NaN where infinity should be.
static void infinities(void **state) {
  BEGIN;
  u32 y = scaled(f, EL_F32, EL_F16, 1);
  f->b.buf[0].at = sc_new(sc, 64 * sizeof(float));
  set(f, 0, 0, -INFINITY);
  set(f, 0, 1, 1e6);
  set(f, 0, 2, -INFINITY);
  store(f, y, 64, 1);
  schedc_error e = compared(f, NULL);
  assert_true(e.pass && e.overflowed == 0 && e.unwritten == 0);
  set(f, y, 2, NAN);
  e = compared(f, NULL);
  assert_true(!e.pass && e.overflowed == 0 && e.unwritten == 1);
}

// ---- outputs of f32

// y = p, where p = 1.1 * a is a named value; and a role that keeps p in a tile of `tile`.
static u32 through_tile(Fix *f, Elem tile) {
  Sc *sc = &f->sc;
  Kernel *k = f->k;
  Xid N = INT(64), i = IDX(0);
  u32 a = tensor(f, EL_F16, SCHEDC_IN, 1, &N, (i64[]){64}),
      y = tensor(f, EL_F32, SCHEDC_OUT, 1, &N, (i64[]){64});
  u32 p = km_buf(sc, k, SP_SPEC, EL_F16, 1, &N), r = km_buf(sc, k, SP_REG, tile, 1, &N);
  Xid more = OP2(MUL, REAL(1.1), LOADV(AT(a, i)));
  equation(f, AT(p, i), more, 1, 1, &N);
  equation(f, AT(y, i), LOADV(AT(p, i)), 1, 1, &N);
  u32 first = km_map(sc, k, VIEW(r, 0), OP2(MUL, REAL(1.1), LOADV(VIEW(a, 0))), 1, 1, &N),
      second = km_map(sc, k, VIEW(y, 0), LOADV(VIEW(r, 0)), 1, 1, &N);
  Role role = {.name = "r", .instances = 1, .warps = 4};
  PUSH(sc, &role.code, ((Ins){.op = OP_MAP, .arg = {first}}));
  PUSH(sc, &role.code, ((Ins){.op = OP_MAP, .arg = {second}}));
  PUSH(sc, &k->role, role);
  sc_list_accesses(sc, k);
  return y;
}

// p rounded by both: pt's bound, with a hundredth of the flat one. By one of them alone: flat.
static void rounded_on_the_way(void **state) {
  BEGIN;
  u32 y = through_tile(f, EL_F16);
  store(f, y, 64, 1);
  schedc_error e = compared(f, NULL);
  double most = 0;
  assert_int_equal(spec(f, false, 1), SCHEDC_OK);
  for (i64 i = 0; i < 64; i++) most = fmax(most, fabs(f->to[y][i] - get(f, y, i)));
  assert_true(e.pass && most > 1e-4 && fabs(e.max_allowed - 2 * most - 1e-5) < 1e-7);
  assert_true(e.mean_allowed < e.max_allowed && e.mean_allowed > 1e-5 && e.may_overflow);
  k->buf.at[y + 1].elem = EL_F32;  // p
  e = compared(f, NULL);
  assert_true(e.max_allowed == 1e-3 && e.mean_allowed == 1e-3);
  k->buf.at[y + 1].elem = EL_F16;
  k->buf.at[y + 2].elem = EL_F32;  // the tile
  e = compared(f, NULL);
  assert_true(e.max_allowed == 1e-3 && !e.may_overflow);
}

// ---- chance

// y[i] = sum(j) h[j] * w[i,j], h = a * b in f16: sums of the same rounded values.
typedef struct Sum {
  u32 a, b, w, y;
  i64 n;
} Sum;
enum { TERMS = 30 };

static Sum sums(Fix *f, i64 n) {
  Sc *sc = &f->sc;
  Kernel *k = f->k;
  f->b.dim[0] = n;
  Xid N = DIM(0), J = INT(TERMS), i = IDX(0), j = IDX(1), both[] = {N, J};
  Sum s = {.n = n};
  s.a = tensor(f, EL_F16, SCHEDC_IN, 1, &J, (i64[]){TERMS});
  s.b = tensor(f, EL_F16, SCHEDC_IN, 1, &J, (i64[]){TERMS});
  s.w = tensor(f, EL_F16, SCHEDC_IN, 2, both, (i64[]){n, TERMS});
  s.y = tensor(f, EL_F16, SCHEDC_OUT, 1, &N, (i64[]){n});
  u32 h = km_buf(sc, k, SP_SPEC, EL_F16, 1, &J);
  equation(f, AT(h, i), OP2(MUL, LOADV(AT(s.a, i)), LOADV(AT(s.b, i))), 1, 1, &J);
  Xid terms = OP2(MUL, LOADV(AT(h, j)), LOADV(AT(s.w, i, j)));
  equation(f, AT(s.y, i), REDUCE(SUM, 1, terms), 1, 2, both);
  return s;
}

static double drawn(u64 *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (double)(*seed >> 33) / (double)(1u << 30) - 1;
}

static void draw_inputs(Fix *f, const Sum *s, u64 seed) {
  u64 at = seed * 977 + 5;
  for (i64 i = 0; i < s->n * TERMS; i++) set(f, s->w, i, drawn(&at));
  for (i64 j = 0; j < TERMS; j++) set(f, s->a, j, drawn(&at)), set(f, s->b, j, drawn(&at));
}

// As a kernel would that rounds 0.7 of each value, and divides in the end: right, with errors of
// its own. `off`: units in the last place by which it is wrong everywhere.
static void run_kernel(Fix *f, const Sum *s, u16 off) {
  for (i64 i = 0; i < s->n; i++) {
    double y = 0;
    for (i64 j = 0; j < TERMS; j++) {
      double h = get(f, s->a, j) * get(f, s->b, j);
      y += sc_round(EL_F16, (float)(0.7 * h)) / 0.7 * get(f, s->w, i * TERMS + j);
    }
    u16 code = sc_to_f16((float)y);
    ((u16 *)(void *)f->b.buf[s->y].at)[i] = (u16)(code + off);
  }
}

// The mean of pt's errors.
static double rounding(Fix *f, const Sum *s) {
  double pt[64], mean = 0;
  assert_int_equal(spec(f, false, 1), SCHEDC_OK);
  memcpy(pt, f->to[s->y], sizeof pt);
  assert_int_equal(spec(f, true, 1), SCHEDC_OK);
  for (i64 i = 0; i < 64; i++) mean += fabs(pt[i] - f->to[s->y][i]) / 64;
  return mean;
}

// One row of 64 elements, as of attention with one query: some kernels would fail by 1.5 times pt's
// mean alone.
static void right_ones_never_fail(void **state) {
  BEGIN;
  Sum s = sums(f, 64);
  u32 unlucky = 0;
  for (u64 seed = 0; seed < 1000; seed++) {
    draw_inputs(f, &s, seed);
    run_kernel(f, &s, 0);
    schedc_error e = compared(f, NULL);
    assert_true(e.pass);
    unlucky += e.mean_error > 1.5 * rounding(f, &s);
  }
  assert_true(unlucky > 3 && unlucky < 20);
}

// One unit in the last place everywhere, or rounded to bf16 before f16.
static void wrong_ones_fail(void **state) {
  BEGIN;
  Sum s = sums(f, 4096);
  for (u64 seed = 0; seed < 20; seed++) {
    draw_inputs(f, &s, seed);
    run_kernel(f, &s, 0);
    assert_true(compared(f, NULL).pass);
    for (i64 i = 0; i < s.n; i++) set(f, s.y, i, sc_round(EL_BF16, (float)get(f, s.y, i)));
    assert_false(compared(f, NULL).pass);
    run_kernel(f, &s, 1);
    schedc_error e = compared(f, NULL);
    assert_true(e.mean_error > e.mean_allowed && !e.pass);
  }
}

// For a single element the largest error's bound is all.
static void one_element(void **state) {
  BEGIN;
  Sum s = sums(f, 1);
  draw_inputs(f, &s, 1);
  run_kernel(f, &s, 0);
  schedc_error e = compared(f, NULL);
  assert_true(e.mean_allowed == e.max_allowed && e.max_allowed > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(swallowed_by_rounding),
      TEST(zeros),
      TEST(vanishing),
      TEST(too_small),
      TEST(of_size),
      TEST(overflow_is_told),
      TEST(infinities),
      TEST(rounded_on_the_way),
      TEST(right_ones_never_fail),
      TEST(wrong_ones_fail),
      TEST(one_element),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
