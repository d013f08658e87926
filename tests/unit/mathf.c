// mathf.c - how far the elementary functions of mathf.h are from libm's.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/data/mathf.h"

static double ulps(float r, double want) {
  if (r == want || (isnan(r) && isnan(want)) || (float)want == r) return 0;
  if (fabs(want) < 0x1p-126) return fabsf(r) <= 0x1p-126f ? 0 : 1e9;
  int e;
  frexp(want, &e);
  return fabs(r - want) / ldexp(1, e - 24);
}

static void functions_are_accurate(void **state) {
  (void)state;
  for (u64 u = 0; u <= UINT32_MAX; u += 1009 * ONE_IN) {
    float x = mf_float((u32)u);
    assert_true(ulps(mf_exp2(x), exp2((double)x)) <= 2);
    assert_true(ulps(mf_exp(x), exp((double)x)) <= 2);
    assert_true(ulps(mf_log(x), log((double)x)) <= 2);
    assert_true(ulps(mf_log2(x), log2((double)x)) <= 2);
    assert_true(ulps(mf_tanh(x), tanh((double)x)) <= 2);
  }
  assert_true(mf_exp2(-INFINITY) == 0 && mf_exp(INFINITY) == INFINITY && mf_log(0) == -INFINITY);
  assert_true(isnan(mf_log(-1)) && isnan(mf_exp2(NAN)) && isnan(mf_tanh(NAN)) &&
              mf_tanh(-INFINITY) == -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(functions_are_accurate),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
