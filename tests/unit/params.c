// params.c - what a kernel tells of its parameters: the kind of their values, and the ends of their
// domains; which values the caller may give, and to dimensions.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "apikit.h"

// Each kind of value; the domain's ends, where it has numbers.
static void kinds_of_params(void **state) {
  static const struct {
    const char *name, *value;
    schedc_value_type type;
    double least, most;
  } want[] = {{"n", "3", SCHEDC_VALUE_INTEGER, -2, 5},
              {"q", "0.5", SCHEDC_VALUE_REAL, 0.25, 2},
              {"t", "true", SCHEDC_VALUE_TRUTH, NAN, NAN},
              {"T", "bf16", SCHEDC_VALUE_ELEMENT, NAN, NAN},
              {"w", "7", SCHEDC_VALUE_INTEGER, NAN, NAN}};
  Fixture *f = *state;
  char text[sizeof good + 200];
  const char *second = strchr(good, '\n') + 1;
  snprintf(text, sizeof text,
           "kernel scale {\n  param n = 3 in { 3, 5, -2 }, q = 0.5 in { 2.0, 0.25, 0.5 }\n"
           "  param t = true in { true, false }, T = bf16 in { f16, bf16 }, w = 7\n%s",
           second);
  schedc_source *source = parse(f, text);
  schedc_kernel *kernel;
  assert_int_equal(schedc_instantiate(&kernel, f->context, source, NULL, NULL, NULL, 0), SCHEDC_OK);
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
    schedc_param_info p = SCHEDC_PARAM_INFO_INIT;
    assert_int_equal(schedc_param_at(kernel, i, &p), SCHEDC_OK);
    assert_string_equal(p.name, want[i].name);
    assert_string_equal(p.value, want[i].value);
    assert_int_equal(p.type, want[i].type);
    assert_true(isnan(want[i].least) ? isnan(p.least) && isnan(p.most)
                                     : p.least == want[i].least && p.most == want[i].most);
  }
  schedc_kernel_free(kernel);
  schedc_source_free(source);
}

// Of a name given twice the last value counts; values have no spaces, and numbers are decimal.
static void values_of_callers(void **state) {
  static const char *const wrong[] = {" 128", "128 ", "0x80", "1e2", "+128", ""};
  static const schedc_param twice[] = {{"BM", "64"}, {"BM", "128"}};
  Fixture *f = *state;
  schedc_source *source = parse(f, good);
  schedc_kernel *kernel;
  schedc_param_info p = SCHEDC_PARAM_INFO_INIT;
  assert_int_equal(schedc_instantiate(&kernel, f->context, source, "scale", NULL, twice, 2),
                   SCHEDC_OK);
  assert_int_equal(schedc_param_at(kernel, 0, &p), SCHEDC_OK);
  assert_string_equal(p.value, "128");
  schedc_kernel_free(kernel);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const schedc_param bm = {"BM", wrong[i]};
    assert_int_equal(schedc_instantiate(&kernel, f->context, source, "scale", NULL, &bm, 1),
                     SCHEDC_EINPUT);
    assert_non_null(strstr(f->heard.rendered, "error[P.value]"));
  }
  schedc_source_free(source);
}

// No launch has a negative extent; one of zero it may have. X is f16[M, 64], cu is i32[M + 1].
static void extents_are_not_negative(void **state) {
  Fixture *f = *state;
  schedc_source *source = parse(f, good);
  schedc_kernel *kernel;
  schedc_dim m = {"M", 0};
  int64_t shape[SCHEDC_MAX_RANK] = {-1};
  assert_int_equal(schedc_instantiate(&kernel, f->context, source, NULL, NULL, NULL, 0), SCHEDC_OK);
  assert_int_equal(schedc_tensor_shape(f->context, kernel, 1, &m, 1, shape), SCHEDC_OK);
  assert_int_equal(shape[0], 1);
  m.value = -3;
  assert_int_equal(schedc_tensor_shape(f->context, kernel, 0, &m, 1, shape), SCHEDC_EARG);
  assert_int_equal(schedc_tensor_shape(f->context, kernel, 1, &m, 1, shape), SCHEDC_EARG);
  assert_int_equal(shape[0], 1);
  schedc_kernel_free(kernel);
  schedc_source_free(source);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(kinds_of_params), TEST(values_of_callers),
                                     TEST(extents_are_not_negative)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
