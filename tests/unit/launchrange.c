// Tests of which integers a launch holds to 32 bits: of the schedule, of the grid, of tensors'
// dimensions and of elements.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "fakedriver.h"

static void integers_stay_in_range(void **state) {
  (void)state;
  static Fixture f;
  schedc_tensor t[2];
  begin(&f, copy, NULL, false);
  set(&t[0], X_AT, 3, 40000000);  // 7.7 billion elements
  set(&t[1], Y_AT, 3, 40000000);
  assert_int_equal(launch(&f, t, NULL), SCHEDC_OK);
  set(&t[0], X_AT, 1, 2200000000);
  set(&t[1], Y_AT, 1, 2200000000);
  refused(&f, t, D_T_RANGE, "M");
  set(&t[0], X_AT, 100000, 2000000);  // 3 billion tiles
  set(&t[1], Y_AT, 100000, 2000000);
  refused(&f, t, D_T_RANGE, "grid");
  end(&f);
}

// A tile's number is divided by what a section takes of it, all places of the other axes with it;
// so that is bounded, too, of two axes in sections as of one.
static void sections_are_numbered(void **state) {
  (void)state;
  static Fixture f;
  schedc_tensor t[2];
  begin(&f,
        "kernel k {\n  in X : f16[B, M, 64]\n  out Y : f16[B, M, 64]\n"
        "  grid (x : cdiv(M, 64) by 3, b : B by cdiv(M, 64))\n  ring r : f16[64, 64]\n"
        "  role load : 1 warp { r <- X[b, x*64..] }\n  role math : 1 warpgroup {\n    wait r\n"
        "    Y[b, x*64 + i, j] = r[i,j]\n    release r\n  }\n}\n",
        NULL, false);
  set(&t[0], X_AT, 10, 64 * 10000);
  set(&t[1], Y_AT, 10, 64 * 10000);
  assert_int_equal(launch(&f, t, NULL), SCHEDC_OK);
  set(&t[0], X_AT, 10, 64 * 100000);  // a million tiles, sections for 10^10
  set(&t[1], Y_AT, 10, 64 * 100000);
  refused(&f, t, D_T_RANGE, "grid");
  end(&f);
}

// Vectors of so many elements, which lie in the same place.
static void set_vectors(schedc_tensor *t, u32 n, schedc_type type, int64_t elements) {
  for (u32 i = 0; i < n; i++)
    t[i] = (schedc_tensor){
        .data = DATA(X_AT), .type = type, .rank = 1, .shape = {elements}, .strides = {1}};
}

// Elements are anywhere in the range that is declared of them, and what is made of them has 32
// bits.
static void elements_stay_in_range(void **state) {
  (void)state;
  static Fixture f;
  begin(&f,
        "kernel k {\n  in X : f16[R, 64], a, b : i32[n] in 0 .. 4000 * n\n  in e : i32[n] in 0 .. "
        "2147483647\n"
        "  out Y : f16[64]\n  role all : 1 warpgroup {\n    reg y : f16[64]\n    y[i] = 0\n"
        "    for t in 0 .. n {\n      if a[t] * b[t] < R and e[t] != 7 {\n"
        "        y[i] = y[i] + where(a[i] - b[i] <= e[i], X[a[t] * b[t], i], 0)\n      }\n    }\n"
        "    Y[i] = y[i]\n  }\n}\n",
        NULL, false);
  schedc_tensor t[5];
  set_vectors(t, 5, SCHEDC_I32, 10);
  t[0] = (schedc_tensor){
      .data = DATA(X_AT), .type = SCHEDC_F16, .rank = 2, .shape = {9, 64}, .strides = {64, 1}};
  t[4] = (schedc_tensor){
      .data = DATA(Y_AT), .type = SCHEDC_F16, .rank = 1, .shape = {64}, .strides = {1}};
  assert_int_equal(launch(&f, t, NULL), SCHEDC_OK);  // 1.6 billion
  for (u32 i = 1; i < 4; i++) t[i].shape[0] = 12;    // 2.3 billion
  refused(&f, t, D_T_RANGE, "a[t] * b[t]");
  end(&f);
}

// Sums of integers have 32 bits, and so has what is made of extrema: the terms may be scalars, or
// elements in a range that is declared.
static void reductions_stay_in_range(void **state) {
  (void)state;
  static Fixture f;
  begin(&f,
        "kernel k {\n  in X : f32[64, 64], w, v : i32, e : i32[64] in 0 .. v\n"
        "  out Y, Z : f32[64]\n  role all : 1 warpgroup {\n    reg a : f32[64, 64]\n"
        "    a[i,j] = X[i,j]\n    Y[i] = 1.0 * (sum(j) where(a[i,j] > 0, w, 0))\n"
        "    Z[i] = 1.0 * ((max(j) where(a[i,j] > 0, e[j], 0)) * 3)\n  }\n}\n",
        NULL, false);
  schedc_tensor t[4];
  set_vectors(t, 4, SCHEDC_F32, 64);
  t[0] = (schedc_tensor){
      .data = DATA(X_AT), .type = SCHEDC_F32, .rank = 2, .shape = {64, 64}, .strides = {64, 1}};
  t[1].type = SCHEDC_I32;
  assert_int_equal(launch(&f, t, (double[]){30000000, 700000000}), SCHEDC_OK);
  assert_int_equal(launch(&f, t, (double[]){40000000, 700000000}), SCHEDC_EINPUT);
  assert_int_equal(f.sc.diags->id, D_T_RANGE);
  assert_non_null(strstr(f.sc.diags->text, "sum"));
  assert_int_equal(launch(&f, t, (double[]){-30000000, 800000000}), SCHEDC_EINPUT);
  assert_non_null(strstr(f.sc.diags->text, "max"));
  end(&f);
}

// Places are compared with the dimensions of tensors, also where no other code evaluates these.
static void dimensions_stay_in_range(void **state) {
  (void)state;
  static Fixture f;
  begin(&f,
        "kernel k {\n  in X : f16[B * M], P : f16[B], Q : f16[M]\n  out Y : f16[64]\n"
        "  role all : 1 warpgroup {\n    for t in 0 .. 64 { Y[t] = X[t] }\n  }\n}\n",
        NULL, false);
  schedc_tensor t[4];
  set_vectors(t, 4, SCHEDC_F16, 64);
  t[0].shape[0] = 64 * 64;
  assert_int_equal(launch(&f, t, NULL), SCHEDC_OK);
  t[1].shape[0] = t[2].shape[0] = 50000;
  t[0].shape[0] = 2500000000;
  refused(&f, t, D_T_RANGE, "B * M");
  end(&f);
}

// However often an expression uses the same ones, all that is below it is looked at.
static void deep_expressions_too(void **state) {
  (void)state;
  static Fixture f;
  static char source[16384];
  int n = sprintf(source,
                  "kernel deep {\n  in X : f16[M, 64], far : i32\n  out Y : f16[M, 64]\n"
                  "  grid (x : cdiv(M, 64))\n  let c = far < 0, e0 = far * 2 %% 7\n");
  for (u32 i = 0; i < 60; i++) {
    n += sprintf(source + n,
                 "  let e%u = (c ? far : c ? far : c ? far : c ? far : c ? far : e%u) %% 7\n",
                 i + 1, i);
  }
  sprintf(source + n,
          "  ring r : f16[64, 64]\n  role load : 1 warp { r <- X[x*64 + e60.., 0..] }\n"
          "  role math : 1 warpgroup {\n    wait r\n    Y[x*64 + i, j] = r[i,j]\n"
          "    release r\n  }\n}\n");
  begin(&f, source, NULL, false);
  const schedc_tensor t[2] = {
      {.data = DATA(X_AT), .type = SCHEDC_F16, .rank = 2, .shape = {64, 64}, .strides = {64, 1}},
      {.data = DATA(Y_AT), .type = SCHEDC_F16, .rank = 2, .shape = {64, 64}, .strides = {64, 1}}};
  assert_int_equal(launch(&f, t, (double[]){5}), SCHEDC_OK);
  assert_int_equal(launch(&f, t, (double[]){1500000000}), SCHEDC_EINPUT);
  assert_int_equal(f.sc.diags->id, D_T_RANGE);
  assert_non_null(strstr(f.sc.diags->text, "far * 2"));
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(integers_stay_in_range),   cmocka_unit_test(sections_are_numbered),
      cmocka_unit_test(elements_stay_in_range),   cmocka_unit_test(reductions_stay_in_range),
      cmocka_unit_test(dimensions_stay_in_range), cmocka_unit_test(deep_expressions_too),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
