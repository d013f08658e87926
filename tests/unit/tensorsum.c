// tensorsum.c - sums of products, where what is cut off can be told by hand. (That an H200 has the
// same bits, tests/gpu/sums.py shows.)
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "runtime/data/tensorsum.h"

// acc and `n` products a * b.
static float sum(Elem elem, float acc, float a, float b, u32 n) {
  const TensorSum t = sc_tensor_sum(elem, elem);
  float x[64], y[64];
  for (u32 i = 0; i < n; i++) x[i] = a, y[i] = b;
  return sc_tensor_dot(&t, acc, x, y, n);
}

static void exact_sums_are_exact(void **state) {
  (void)state;
  assert_true(sum(EL_F16, 3, 2, 5, 16) == 163);
  assert_true(sum(EL_BF16, -1, 0.5f, 0.25f, 7) == -0.125f);
  assert_true(sum(EL_E4M3, 0, 1.5f, 1.5f, 32) == 72);
  assert_true(sum(EL_F16, 0, 0, 1, 16) == 0);
  assert_true(sum(EL_F16, 1, 1, 1, 37) == 38);  // three instructions, the last of five products
  assert_true(sum(EL_E5M2, 1, 1, 1, 33) == 34);
}

static void what_lies_too_low_is_cut_off(void **state) {
  (void)state;
  // 2^-26 lies below the 25 bits; 2^-25 does not, and four of them reach an f32's last bit.
  assert_true(sum(EL_F16, 1, 0x1p-13f, 0x1p-13f, 16) == 1);
  assert_true(sum(EL_F16, 1, 0x1p-13f, 0x1p-12f, 3) == 1);
  assert_true(sum(EL_F16, 1, 0x1p-13f, 0x1p-12f, 4) == 1 + 0x1p-23f);
  assert_true(sum(EL_F16, -1, -0x1p-13f, 0x1p-12f, 7) == -1 - 0x1p-23f);  // towards 0
  assert_true(sum(EL_F16, 1, -0x1p-13f, 0x1p-12f, 1) == 1 - 0x1p-24f);
  // An f32 below the normal numbers has fewer bits.
  assert_true(sum(EL_BF16, 0, 0x1.3p-70f, 0x1.fp-78f, 1) == 0x1p-147f);
  assert_true(sum(EL_BF16, 0, 0x1.3p-70f, -0x1.fp-78f, 1) == -0x1p-147f);
  // 13 bits, of which an f32 shows as many
  assert_true(sum(EL_E5M2, 1, 0x1p-7f, 0x1p-7f, 32) == 1);
  assert_true(sum(EL_E5M2, 1, 0x1p-7f, 0x1p-6f, 1) == 1 + 0x1p-13f);
  // … and 14 of the sum, which is larger than what was aligned
  assert_true(sum(EL_E5M2, 1 + 0x1p-13f, 1, 1, 1) == 2);
  assert_true(sum(EL_E5M2, 1 + 0x1p-12f, 1, 1, 1) == 2 + 0x1p-12f);
  assert_true(sum(EL_E4M3, 0x1p5f + 0x1p-9f, 0, 0, 1) == 0x1p5f);
}

static void exponents_are_those_of_the_factors(void **state) {
  (void)state;
  // 1.5 * 1.5 counts as 2^0: 2^-25 beside it is kept. 2 * 1 counts as 2^1: it is not.
  const TensorSum t = sc_tensor_sum(EL_F16, EL_F16);
  const float low = 0x1p-13f, high = 0x1p-12f;
  assert_true(sc_tensor_dot(&t, 0, (float[]){1.5f, -1.5f, low}, (float[]){1.5f, 1.5f, high}, 3) ==
              0x1p-25f);
  assert_true(sc_tensor_dot(&t, 0, (float[]){2, -2, low}, (float[]){1, 1, high}, 3) == 0);
  // A factor below the normal numbers has the least normal exponent, so that 2^-24 counts as 2^-14.
  assert_true(sc_tensor_dot(&t, 0x1p-39f, (float[]){0x1p-24f, -0x1p-24f}, (float[]){1, 1}, 2) ==
              0x1p-39f);
  assert_true(sc_tensor_dot(&t, 0x1p-40f, (float[]){0x1p-24f, -0x1p-24f}, (float[]){1, 1}, 2) == 0);
}

static void what_is_not_finite_stays_so(void **state) {
  (void)state;
  assert_true(sum(EL_F16, 1, INFINITY, 1, 16) == INFINITY);
  assert_true(sum(EL_F16, -INFINITY, 1, 1, 16) == -INFINITY);
  assert_true(isnan(sum(EL_F16, 0, INFINITY, 0, 16)));
  assert_true(isnan(sum(EL_BF16, INFINITY, -INFINITY, 1, 1)));
  assert_true(isnan(sum(EL_E4M3, 0, NAN, 1, 1)) && isnan(sum(EL_F16, NAN, 1, 1, 1)));
  assert_true(sum(EL_BF16, 0x1.fp127f, 0x1p64f, 0x1p64f, 1) == INFINITY);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(exact_sums_are_exact),
      cmocka_unit_test(what_lies_too_low_is_cut_off),
      cmocka_unit_test(exponents_are_those_of_the_factors),
      cmocka_unit_test(what_is_not_finite_stays_so),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
