// float.c - conversions of the narrow types: every code and every rounding midpoint, against hashes
// of what NumPy and ml_dtypes do (float_oracle.py), and the cases where saturation is ours.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/run.h"

#include "float_oracle.h"

static const Elem narrow[] = {EL_F16, EL_BF16, EL_E4M3, EL_E5M2};

static u64 fnv(u64 h, u64 v) { return (h ^ v) * 0x100000001b3; }

static float of_code(Elem e, u32 code) {
  switch (e) {
    case EL_F16: return sc_of_f16((u16)code);
    case EL_BF16: return sc_of_bf16((u16)code);
    case EL_E4M3: return sc_of_e4m3((u8)code);
    default: return sc_of_e5m2((u8)code);
  }
}

static u32 to_code(Elem e, float v) {
  switch (e) {
    case EL_F16: return sc_to_f16(v);
    case EL_BF16: return sc_to_bf16(v);
    case EL_E4M3: return sc_to_e4m3(v);
    default: return sc_to_e5m2(v);
  }
}

// The first code, without sign, that is not finite.
static u32 special(Elem e) {
  return e == EL_F16 ? 0x7c00 : e == EL_BF16 ? 0x7f80 : e == EL_E4M3 ? 0x7f : 0x7c;
}

// What float_oracle.py calls probes: fills `to` and returns how many there are.
static size_t probes(Elem e, float *to) {
  size_t n = 0;
  u32 end = special(e);
  for (u32 c = 0; c < end; c++) {
    double v = of_code(e, c);
    double above = c + 1 < end ? of_code(e, c + 1) : 2 * v - of_code(e, c - 1);
    float mid = (float)((v + above) / 2);
    to[n++] = (float)v;
    to[n++] = nextafterf(mid, 0);
    to[n++] = mid;
    to[n++] = nextafterf(mid, INFINITY);
  }
  to[n++] = 3.0e38f;
  to[n++] = INFINITY;
  to[n++] = 1e-40f;
  to[n++] = 0x1p-149f;
  for (size_t i = 0; i < n; i++) to[n + i] = -to[i];
  return 2 * n;
}

static void decodes_all_codes(void **state) {
  (void)state;
  for (size_t t = 0; t < COUNT(narrow); t++) {
    u64 h = 0xcbf29ce484222325;
    for (u32 c = 0; c < 1u << 8 * sc_elem[narrow[t]].bytes; c++) {
      float v = of_code(narrow[t], c);
      u32 bits = 0x7fc00000;
      if (v == v) memcpy(&bits, &v, 4);
      h = fnv(h, bits);
    }
    assert_int_equal(h, oracle[narrow[t]][0]);
  }
}

static void encodes_all_midpoints(void **state) {
  (void)state;
  float *v = malloc(8 * 40000 * sizeof *v);
  for (size_t t = 0; t < COUNT(narrow); t++) {
    size_t n = probes(narrow[t], v);
    u64 h = 0xcbf29ce484222325;
    for (size_t i = 0; i < n; i++) h = fnv(h, to_code(narrow[t], v[i]));
    assert_int_equal(h, oracle[narrow[t]][1]);
  }
  free(v);
}

// Vector loops and single conversions agree, whatever the alignment and the length.
static void bulk_is_elementwise(void **state) {
  (void)state;
  float *v = malloc(8 * 40000 * sizeof *v), *back = malloc(8 * 40000 * sizeof *v);
  char *codes = malloc(8 * 40000 * 2);
  for (size_t t = 0; t < COUNT(narrow); t++) {
    Elem e = narrow[t];
    size_t n = probes(e, v) - 3;
    v[7] = NAN;
    sc_store_elems(e, codes, v + 3, n);
    sc_load_elems(e, back, codes, n);
    for (size_t i = 0; i < n; i++) {
      float one = of_code(e, to_code(e, v[i + 3]));
      assert_memory_equal(&back[i], &one, 4);
      one = sc_round(e, v[i + 3]);
      assert_memory_equal(&back[i], &one, 4);
    }
    sc_round_all(e, v + 3, n);
    assert_memory_equal(back, v + 3, n * 4);
  }
  free(v), free(back), free(codes);
}

static void overflow_and_nan(void **state) {
  (void)state;
  assert_int_equal(sc_to_f16(65519.996f), 0x7bff);
  assert_int_equal(sc_to_f16(65520), 0x7c00);
  assert_int_equal(sc_to_f16(-INFINITY), 0xfc00);
  assert_int_equal(sc_to_bf16(3.4e38f), 0x7f80);
  assert_int_equal(sc_to_e4m3(448), 0x7e);
  assert_int_equal(sc_to_e4m3(1e30f), 0x7e);
  assert_int_equal(sc_to_e4m3(-INFINITY), 0xfe);
  assert_int_equal(sc_to_e5m2(1e30f), 0x7b);
  assert_int_equal(sc_to_e5m2(INFINITY), 0x7b);
  for (size_t t = 0; t < COUNT(narrow); t++) {
    assert_true(isnan(sc_round(narrow[t], NAN)));
    assert_true(isnan(sc_round(narrow[t], -NAN)));
    assert_true(signbit(sc_round(narrow[t], -0.0f)));
  }
}

// A double just above a midpoint of f16 that f32 would round onto it.
static void doubles_round_once(void **state) {
  (void)state;
  u16 h;
  u8 b;
  sc_set_elem(EL_F16, &h, 0, 1 + 0x1p-11 + 0x1p-40);
  assert_int_equal(h, 0x3c01);
  sc_set_elem(EL_F16, &h, 0, 1 + 0x1p-11);
  assert_int_equal(h, 0x3c00);
  sc_set_elem(EL_F16, &h, 0, -(1 + 0x1p-11 + 0x1p-40));
  assert_int_equal(h, 0xbc01);
  sc_set_elem(EL_F16, &h, 0, 1e300);
  assert_int_equal(h, 0x7c00);
  sc_set_elem(EL_E4M3, &b, 0, -1e300);
  assert_int_equal(b, 0xfe);
  sc_set_elem(EL_BF16, &h, 0, 1 + 0x1p-8 + 0x1p-50);
  assert_int_equal(h, 0x3f81);
}

static void integers_and_f32(void **state) {
  (void)state;
  i32 i[2];
  float f[2];
  sc_set_elem(EL_I32, i, 1, -7);
  assert_int_equal(i[1], -7);
  sc_set_elem(EL_I32, i, 0, 1e20);
  assert_int_equal(i[0], INT32_MAX);
  assert_true(sc_get_elem(EL_I32, i, 1) == -7);
  sc_load_elems(EL_I32, f, i, 2);
  assert_memory_equal(f, i, 8);
  sc_set_elem(EL_F32, f, 0, 0.1);
  assert_true(sc_get_elem(EL_F32, f, 0) == (double)0.1f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(decodes_all_codes),   cmocka_unit_test(encodes_all_midpoints),
      cmocka_unit_test(bulk_is_elementwise), cmocka_unit_test(overflow_and_nan),
      cmocka_unit_test(doubles_round_once),  cmocka_unit_test(integers_and_f32),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
