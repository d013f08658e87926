// given.c - tensors and scalars by name or by place: the same rule in every function that takes
// them. (Launches: tests/device.py.)
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "apikit.h"

enum { M = 70 };
static uint16_t x[M * 64], y[M * 64];
static int32_t cu[M + 1];

typedef struct Call {
  schedc_tensor tensor[4];
  size_t tensors;
  schedc_scalar scalar[2];
  size_t scalars;
} Call;

// X, cu and Y, in the order that `order` has them ('X', 'c', 'Y'); lower-case 'x' and 'y' and 'n'
// have no name.
static Call call_of(const char *order) {
  Call c = {.tensors = strlen(order)};
  for (size_t i = 0; order[i]; i++) {
    c.tensor[i] = (schedc_tensor){NULL, x, SCHEDC_F16, 2, {M, 64}, {64, 1}};
    if (order[i] == 'c' || order[i] == 'n')
      c.tensor[i] = (schedc_tensor){NULL, cu, SCHEDC_I32, 1, {M + 1}, {1}};
    if (order[i] == 'Y' || order[i] == 'y') c.tensor[i].data = y;
    c.tensor[i].name = order[i] == 'X'   ? "X"
                       : order[i] == 'Y' ? "Y"
                       : order[i] == 'c' ? "cu"
                       : order[i] == '?' ? "Q"
                                         : NULL;
  }
  return c;
}

typedef schedc_status Function(schedc_context *context, const schedc_kernel *k, const Call *c);

static schedc_status run_cpu(schedc_context *context, const schedc_kernel *k, const Call *c) {
  return schedc_run_cpu(context, k, c->tensor, c->tensors, c->scalar, c->scalars, NULL);
}
static schedc_status compare(schedc_context *context, const schedc_kernel *k, const Call *c) {
  schedc_error error = SCHEDC_ERROR_INIT;
  schedc_status status =
      schedc_compare(context, k, c->tensor, c->tensors, c->scalar, c->scalars, NULL, &error);
  return status ? status : error.pass ? SCHEDC_OK : SCHEDC_EFAULT;
}
static schedc_status count_work(schedc_context *context, const schedc_kernel *k, const Call *c) {
  schedc_work work = SCHEDC_WORK_INIT;
  return schedc_count_work(context, k, c->tensor, c->tensors, c->scalar, c->scalars, &work);
}
static schedc_status count_fills(schedc_context *context, const schedc_kernel *k, const Call *c) {
  schedc_fills fills = SCHEDC_FILLS_INIT;
  return schedc_count_fills(context, k, c->tensor, c->tensors, c->scalar, c->scalars, &fills);
}
static schedc_status predict(schedc_context *context, const schedc_kernel *k, const Call *c) {
  schedc_prediction out = SCHEDC_PREDICTION_INIT;
  return schedc_predict(context, k, c->tensor, c->tensors, c->scalar, c->scalars, NULL, &out);
}
// Arguments are looked at before there has to be a GPU.
static schedc_status gpu_run(schedc_context *context, const schedc_kernel *k, const Call *c) {
  schedc_gpu *gpu;
  schedc_gpu_job job = SCHEDC_GPU_JOB_INIT;
  job.kernel = k;
  job.tensors = c->tensor, job.tensor_count = c->tensors;
  job.scalars = c->scalar, job.scalar_count = c->scalars;
  schedc_status status = schedc_gpu_new(&gpu, context, 0);
  if (!status) status = schedc_gpu_run(gpu, &job, 1, NULL);
  schedc_gpu_free(gpu);
  return status == SCHEDC_EUNAVAIL ? SCHEDC_OK : status;
}
static Function *const functions[] = {run_cpu, compare, count_work, count_fills, predict, gpu_run};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static void all_give(Fixture *f, const schedc_kernel *k, const Call *c, uint16_t want) {
  memset(y, 0xff, sizeof y);
  for (size_t i = 0; i < FUNCTIONS; i++)
    assert_int_equal(functions[i](f->context, k, c), SCHEDC_OK);
  assert_int_equal(y[M * 64 - 1], want);
}

static void all_refuse(Fixture *f, const schedc_kernel *k, const Call *c, const char *code) {
  for (size_t i = 0; i < FUNCTIONS; i++) {
    f->heard.code[0] = 0;
    assert_int_equal(functions[i](f->context, k, c), SCHEDC_EINPUT);
    assert_string_equal(f->heard.code, code);
  }
}

static void by_name_or_by_place(void **state) {
  Fixture *f = *state;
  schedc_kernel *k = instantiate(f);
  const char *const good_orders[] = {"XcY", "YcX", "cYX", "xny", "xcY", "YnX", "Xny"};
  for (int i = 0; i < M * 64; i++) x[i] = 0x3c00;
  for (size_t i = 0; i < sizeof good_orders / sizeof *good_orders; i++) {
    Call c = call_of(good_orders[i]);
    all_give(f, k, &c, 0x4000);
  }
  Call c = call_of("Xc");
  all_refuse(f, k, &c, "T.missing");
  c = call_of("XcYX");
  all_refuse(f, k, &c, "T.twice");
  c = call_of("yXcY");  // the first is the kernel's first: X
  all_refuse(f, k, &c, "T.twice");
  c = call_of("XcYy");  // there is no fourth
  all_refuse(f, k, &c, "T.unknown");
  c = call_of("XcY?");
  all_refuse(f, k, &c, "T.unknown");
  schedc_kernel_free(k);
}

static void scalars_too(void **state) {
  Fixture *f = *state;
  schedc_kernel *k = instantiate(f);
  Call c = call_of("XcY");
  for (int i = 0; i < M * 64; i++) x[i] = 0x3c00;
  c.scalars = 1;
  c.scalar[0] = (schedc_scalar){"a", 3};
  all_give(f, k, &c, 0x4200);
  c.scalar[0].name = NULL;
  all_give(f, k, &c, 0x4200);
  c.scalar[0].value = (double)NAN;
  all_give(f, k, &c, 0x4000);
  c.scalar[0] = (schedc_scalar){"b", 3};
  all_refuse(f, k, &c, "T.unknown");
  c.scalars = 2;
  c.scalar[0] = c.scalar[1] = (schedc_scalar){"a", 3};
  all_refuse(f, k, &c, "T.twice");
  c.scalar[1].name = NULL;  // there is no second
  all_refuse(f, k, &c, "T.unknown");
  schedc_kernel_free(k);
}

// What stood in a tensor before the run, by the same rule.
static void before_a_run_too(void **state) {
  static const char text[] =
      "kernel add {\n  in X : f32[64]\n  inout S : f32[64]\n  spec { S[j] = S[j] - X[j] }\n"
      "  grid (x : 1)\n  role r : 1 warpgroup {\n    reg v : f32[64], w : f32[64]\n"
      "    v[j] = X[j]\n    w[j] = S[j]\n    w[j] = w[j] - v[j]\n    S[j] = w[j]\n  }\n}\n";
  Fixture *f = *state;
  schedc_source *source = parse(f, text);
  schedc_kernel *k;
  static float a[64], sum[64], before[64];
  assert_int_equal(schedc_instantiate(&k, f->context, source, NULL, NULL, NULL, 0), SCHEDC_OK);
  for (int i = 0; i < 64; i++) a[i] = 1, sum[i] = before[i] = (float)i;
  schedc_tensor tensors[] = {{"S", sum, SCHEDC_F32, 1, {64}, {1}},
                             {NULL, a, SCHEDC_F32, 1, {64}, {1}}};
  schedc_tensor old[] = {{"X", a, SCHEDC_F32, 1, {64}, {1}},
                         {NULL, before, SCHEDC_F32, 1, {64}, {1}}};
  tensors[1].name = "X";
  assert_int_equal(schedc_run_cpu(f->context, k, tensors, 2, NULL, 0, NULL), SCHEDC_OK);
  schedc_compare_options options = SCHEDC_COMPARE_OPTIONS_INIT;
  options.before = old;
  for (options.before_count = 0; options.before_count <= 2; options.before_count++) {
    schedc_error error = SCHEDC_ERROR_INIT;
    assert_int_equal(schedc_compare(f->context, k, tensors, 2, NULL, 0, &options, &error),
                     SCHEDC_OK);
    assert_int_equal(error.pass, options.before_count == 2);
  }
  schedc_kernel_free(k);
  schedc_source_free(source);
}

// An output is refused where it shares an element with another tensor, and not where it has the
// other columns of one array.
static void outputs_apart(void **state) {
  Fixture *f = *state;
  schedc_kernel *k = instantiate(f);
  static uint16_t both[2 * M * 64];
  static const struct {
    size_t at;
    int64_t stride;
    const char *code;
  } row[] = {{0, 64, "T.overlap"},  {M * 64 - 1, 64, "T.overlap"}, {M * 64, 64, ""},
             {64, 128, ""},         {63, 128, "T.overlap"},        {1, 128, "T.overlap"},
             {128, 64, "T.overlap"}};
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    Call c = call_of("XcY");
    if (row[i].at + (M - 1) * (size_t)row[i].stride + 64 > 2 * M * 64) fail();
    c.tensor[0].data = both;
    c.tensor[0].strides[0] = row[i].stride;
    c.tensor[2].data = both + row[i].at;
    c.tensor[2].strides[0] = row[i].stride;
    f->heard.code[0] = 0;
    assert_int_equal(run_cpu(f->context, k, &c), row[i].code[0] ? SCHEDC_EINPUT : SCHEDC_OK);
    assert_string_equal(f->heard.code, row[i].code);
  }
  schedc_kernel_free(k);
}

// Integer scalars stand among the dimensions that a shape is asked for with.
static void scalars_in_shapes(void **state) {
  Fixture *f = *state;
  schedc_source *source =
      parse(f,
            "kernel k {\n  in X : f32[M]\n  in n : i32, s : f32 = 1\n  in m : i32 = n + M\n"
            "  out Y : f32[m]\n  grid (x : 1)\n"
            "  role r : 1 warp, 64 regs { reg v : f32[32] = 1\n Y[i] = v[i] }\n}\n");
  schedc_kernel *k;
  assert_int_equal(schedc_instantiate(&k, f->context, source, NULL, NULL, NULL, 0), SCHEDC_OK);
  static const struct {
    schedc_dim dims[3];
    size_t n;
    int64_t extent;  // 0: it does not follow
  } row[] = {{{{"M", 4}, {"n", 5}}, 2, 9},
             {{{"n", 5}, {"M", 4}}, 2, 9},
             {{{"m", 7}}, 1, 7},
             {{{"M", 4}}, 1, 0},
             {{{"n", 4}}, 1, 0},
             {{{"m", 7}, {"s", 1}}, 2, 0},
             {{{"m", 7}, {"other", 1}}, 2, 0}};
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    int64_t shape[SCHEDC_MAX_RANK] = {0};
    schedc_status status = schedc_tensor_shape(f->context, k, 1, row[i].dims, row[i].n, shape);
    assert_int_equal(status, row[i].extent ? SCHEDC_OK : SCHEDC_EARG);
    assert_int_equal(shape[0], row[i].extent);
  }
  schedc_kernel_free(k);
  schedc_source_free(source);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(by_name_or_by_place), TEST(scalars_too),
                                     TEST(before_a_run_too), TEST(outputs_apart),
                                     TEST(scalars_in_shapes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
