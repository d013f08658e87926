// api.c - the public interface as an embedder uses it: every argument checked, versions of structs,
// allocators that count, diagnostics, kernels shared by threads that outlive the context and source
// they came from.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apikit.h"

static void statuses_have_names(void **state) {
  (void)state;
  for (int s = SCHEDC_OK; s <= SCHEDC_EUNAVAIL; s++) {
    assert_memory_equal(schedc_status_name((schedc_status)s), "SCHEDC_", 7);
    assert_non_null(schedc_status_text((schedc_status)s));
  }
  assert_non_null(schedc_status_name((schedc_status)99));
  assert_string_equal(schedc_version(), "0.2.0");
}

static void codes_are_explained(void **state) {
  (void)state;
  size_t n = 0;
  for (const char *code; (code = schedc_code_at(n)) != NULL; n++) {
    assert_true(strlen(schedc_code_summary(code)) > 8);
    assert_true(strlen(schedc_explain(code)) > 80);
    assert_null(strstr(schedc_explain(code), "\n\n\n"));
  }
  assert_true(n > 20);
  assert_null(schedc_explain("nothing"));
  assert_null(schedc_explain(NULL));
  assert_null(schedc_code_summary(NULL));
}

static void null_is_refused(void **state) {
  Fixture *f = *state;
  schedc_source *source = parse(f, good), *none = (schedc_source *)f;
  schedc_kernel *kernel = (schedc_kernel *)f;
  int64_t shape[SCHEDC_MAX_RANK];
  assert_int_equal(schedc_open(NULL, NULL), SCHEDC_EARG);
  assert_int_equal(schedc_parse(NULL, f->context, "n", "", 0), SCHEDC_EARG);
  assert_int_equal(schedc_parse(&none, NULL, "n", "", 0), SCHEDC_EARG);
  assert_null(none);
  assert_int_equal(schedc_parse(&none, f->context, NULL, "", 0), SCHEDC_EARG);
  assert_int_equal(schedc_parse(&none, f->context, "n", NULL, 1), SCHEDC_EARG);
  assert_int_equal(schedc_parse(&none, f->context, "n", "", (size_t)1 << 31), SCHEDC_ELIMIT);
  assert_int_equal(schedc_format(f->context, NULL, NULL, NULL), SCHEDC_EARG);
  assert_int_equal(schedc_instantiate(&kernel, f->context, NULL, NULL, NULL, NULL, 0), SCHEDC_EARG);
  assert_null(kernel);
  assert_int_equal(schedc_instantiate(&kernel, f->context, source, NULL, NULL, NULL, 1),
                   SCHEDC_EARG);
  schedc_param half = {"BM", NULL};
  assert_int_equal(schedc_instantiate(&kernel, f->context, source, NULL, NULL, &half, 1),
                   SCHEDC_EARG);
  assert_int_equal(schedc_emit(f->context, source, NULL, NULL, NULL, 0, "nothing", NULL, NULL),
                   SCHEDC_EARG);
  assert_int_equal(schedc_unit(source, 7, NULL), SCHEDC_EARG);
  assert_int_equal(schedc_tensor_at(NULL, 0, NULL), SCHEDC_EARG);
  assert_int_equal(schedc_tensor_shape(f->context, NULL, 0, NULL, 0, shape), SCHEDC_EARG);
  assert_int_equal(schedc_run_cpu(f->context, NULL, NULL, 0, NULL, 0, NULL), SCHEDC_EARG);
  assert_int_equal(schedc_compare(f->context, NULL, NULL, 0, NULL, 0, NULL, NULL), SCHEDC_EARG);
  assert_int_equal(schedc_describe(f->context, NULL, NULL, 0, SCHEDC_TEXT, NULL, NULL),
                   SCHEDC_EARG);
  assert_null(schedc_kernel_name(NULL));
  assert_int_equal(schedc_tensor_count(NULL), 0);
  schedc_kernel_free(NULL);
  schedc_source_free(NULL);
  schedc_close(NULL);
  schedc_source_free(source);
  assert_int_equal(f->heard.reports, 0);
}

static int count_bytes(void *user, const char *bytes, size_t n) {
  (void)bytes;
  *(size_t *)user += n;
  return 0;
}

static void older_headers(void **state) {
  Fixture *f = *state;
  schedc_kernel *kernel = instantiate(f);
  struct {
    schedc_tensor_info info;
    char after;
  } box = {SCHEDC_TENSOR_INFO_INIT, 'x'};
  box.info.size = offsetof(schedc_tensor_info, type);  // knew only the name
  box.info.rank = 77;
  assert_int_equal(schedc_tensor_at(kernel, 0, &box.info), SCHEDC_OK);
  assert_string_equal(box.info.name, "X");
  assert_int_equal(box.info.rank, 77);
  assert_int_equal(box.info.size, offsetof(schedc_tensor_info, type));
  box.info.size = 1;
  assert_int_equal(schedc_tensor_at(kernel, 0, &box.info), SCHEDC_EARG);
  schedc_options none = {0};
  schedc_context *context;
  assert_int_equal(schedc_open(&context, &none), SCHEDC_EARG);
  assert_null(context);
  size_t n = 0;
  schedc_build_options old = SCHEDC_BUILD_OPTIONS_INIT;
  old.debug_waits = 1;  // refused for a header, by who knows it
  const schedc_artifact header = SCHEDC_C_HEADER;
  assert_int_equal(schedc_build(f->context, kernel, header, &old, count_bytes, &n, NULL),
                   SCHEDC_EARG);
  old.size = offsetof(schedc_build_options, debug_waits);
  assert_int_not_equal(schedc_build(f->context, kernel, header, &old, count_bytes, &n, NULL),
                       SCHEDC_EARG);
  old.size = 1;
  assert_int_equal(schedc_build(f->context, kernel, header, &old, count_bytes, &n, NULL),
                   SCHEDC_EARG);
  schedc_kernel_free(kernel);
}

static void faults_are_reported(void **state) {
  Fixture *f = *state;
  schedc_source *source = parse(f, bad);
  schedc_kernel *kernel;
  assert_int_equal(schedc_instantiate(&kernel, f->context, source, NULL, NULL, NULL, 0),
                   SCHEDC_EINPUT);
  assert_null(kernel);
  assert_true(f->heard.reports > 0);
  assert_non_null(strstr(f->heard.rendered, "t.sched:4:26: error["));
  schedc_source_free(source);
  assert_int_equal(schedc_parse(&source, f->context, "t.sched", "kernel {", 8), SCHEDC_EINPUT);
  assert_null(source);
}

static void a_kernel_tells(void **state) {
  Fixture *f = *state;
  schedc_source *source = parse(f, good);
  schedc_kernel *kernel;
  const schedc_param bm = {"BM", "128"};
  assert_int_equal(schedc_instantiate(&kernel, f->context, source, "scale", "small", &bm, 1),
                   SCHEDC_OK);
  schedc_unit_info unit = SCHEDC_UNIT_INFO_INIT;
  assert_int_equal(schedc_unit(source, 0, &unit), SCHEDC_OK);
  assert_int_equal(unit.case_count, 2);
  assert_int_equal(unit.param_count, 1);
  schedc_source_free(source);
  schedc_tensor_info t = SCHEDC_TENSOR_INFO_INIT;
  assert_int_equal(schedc_tensor_count(kernel), 3);
  assert_int_equal(schedc_tensor_at(kernel, 1, &t), SCHEDC_OK);
  assert_string_equal(t.dims[0], "M + 1");
  assert_int_equal(t.type, SCHEDC_I32);
  assert_int_equal(schedc_output_count(kernel), 1);
  schedc_param_info p = SCHEDC_PARAM_INFO_INIT;
  assert_int_equal(schedc_param_at(kernel, 0, &p), SCHEDC_OK);
  assert_string_equal(p.value, "128");
  assert_int_equal(p.domain_count, 2);
  assert_int_equal(p.type, SCHEDC_VALUE_INTEGER);
  assert_true(p.least == 64 && p.most == 128);
  schedc_bind_info b = SCHEDC_BIND_INFO_INIT;
  assert_int_equal(schedc_kernel_case_count(kernel), 2);
  assert_int_equal(schedc_bind_at(kernel, 1, 0, &b), SCHEDC_OK);
  assert_true(b.is_choice && b.count == 3 && b.values[2] == 65);
  const schedc_dim m = {"M", 9};
  int64_t shape[SCHEDC_MAX_RANK];
  assert_int_equal(schedc_tensor_shape(f->context, kernel, 1, &m, 1, shape), SCHEDC_OK);
  assert_int_equal(shape[0], 10);
  assert_int_equal(schedc_tensor_shape(f->context, kernel, 1, NULL, 0, shape), SCHEDC_EARG);
  assert_true(schedc_is_deterministic(kernel));
  schedc_kernel_free(kernel);
}

// What a false guard leaves out keeps its line, so that the same choice means the same.
static void cases_keep_their_lines(void **state) {
  Fixture *f = *state;
  static const char text[] =
      "kernel k {\n  param more = false in { false, true }\n  in X : f32[M]\n"
      "  in Z : f32[R], s : i32 if more\n  out Y : f32[M]\n"
      "  case c { R in { 1, 2 }, M in { 3, 4, 5 }, Z = [7, 8], s = 9 }\n"
      "  role r : 1 warp { reg v : f32[32]\n v[i] = X[i]\n Y[i] = v[i] }\n}\n";
  static const struct {
    const char *more;
    schedc_bind_kind kind[4];
  } form[] = {
      {"false", {SCHEDC_BIND_ABSENT, SCHEDC_BIND_DIM, SCHEDC_BIND_ABSENT, SCHEDC_BIND_ABSENT}},
      {"true", {SCHEDC_BIND_DIM, SCHEDC_BIND_DIM, SCHEDC_BIND_TENSOR, SCHEDC_BIND_SCALAR}},
  };
  static const size_t count[] = {2, 3, 2, 1};
  schedc_source *source = parse(f, text);
  for (size_t i = 0; i < sizeof form / sizeof *form; i++) {
    schedc_kernel *kernel;
    const schedc_param more = {"more", form[i].more};
    assert_int_equal(schedc_instantiate(&kernel, f->context, source, NULL, NULL, &more, 1),
                     SCHEDC_OK);
    assert_int_equal(schedc_bind_count(kernel, 0), 4);
    for (size_t line = 0; line < 4; line++) {
      schedc_bind_info b = SCHEDC_BIND_INFO_INIT;
      assert_int_equal(schedc_bind_at(kernel, 0, line, &b), SCHEDC_OK);
      assert_int_equal(b.kind, form[i].kind[line]);
      assert_int_equal(b.count, count[line]);
      assert_int_equal(b.is_choice, line < 2);
    }
    schedc_kernel_free(kernel);
  }
  schedc_source_free(source);
}

static const char with_given[] =
    "kernel sums {\n  in X : f32[M, 64]\n  inout A : f32[64]\n  out Y : f32[M, 64]\n"
    "  spec {\n    Y[i,j] = X[i,j] + 0 * A[j]\n    A[j] = A[j] + sum(i) X[i,j]\n  }\n  grid (x : "
    "cdiv(M, 64))\n"
    "  role r : 1 warpgroup {\n    ring s : f32[64, 64]\n    reg v : f32[64, 64], t : f32[64] = "
    "0\n"
    "    v[i,j] = X[x*64 + i, j]\n    acquire s;  s[j,i] = v[i,j];  commit s;  wait s\n    "
    "v[j,i] = s[j,i]\n"
    "    release s\n    t[j] = sum(i) v[j,i]\n    A[j] += t[j]\n    v[i,j] = X[x*64 + i, j]\n"
    "    Y[x*64 + i, j] = v[i,j]\n  }\n}\n"
    "kernel scale {\n  require M < 5\n  in A : f32[64], Y : f32[M, 64]\n  out Z : f32[M, 64]\n  "
    "grid (x : cdiv(M, 64))\n"
    "  role r : 1 warpgroup {\n    reg v : f32[64, 64]\n    v[i,j] = Y[x*64 + i, j] * A[j]\n"
    "    Z[x*64 + i, j] = v[i,j]\n  }\n}\n"
    "kernel twice {\n  in Z : f32[M, 64]\n  out D : f32[M, 64]\n  grid (x : cdiv(M, 64))\n"
    "  role r : 1 warpgroup {\n    reg v : f32[64, 64]\n    v[i,j] = 2 * Z[x*64 + i, j]\n    "
    "D[x*64 + i, j] = v[i,j]\n  }\n}\n"
    "sequence all {\n  workspace A : f32[64] = 0\n  sums\n  scale\n}\n"
    "sequence part {\n  given scale\n  twice\n  noted\n}\n"
    "kernel noted {\n  in A : f32[64], Y : f32[M, 64]\n  out N : f32[64]\n  role r : 1 warpgroup "
    "{\n"
    "    reg t : f32[64]\n    t[j] = A[j]\n    N[j] = t[j]\n  }\n}\n";

// What is given is a kernel of its own, on the same tensors; what its sums go into has other bits
// in other runs.
static void given_kernels(void **state) {
  Fixture *f = *state;
  schedc_source *source = parse(f, with_given);
  schedc_kernel *kernel = NULL, *given = NULL;
  schedc_tensor_info info = SCHEDC_TENSOR_INFO_INIT;
  assert_int_equal(schedc_instantiate(&kernel, f->context, source, "all", NULL, NULL, 0),
                   SCHEDC_OK);
  assert_int_equal(schedc_given(&given, f->context, kernel), SCHEDC_EARG);
  assert_null(given);
  assert_false(schedc_is_deterministic(kernel));
  for (size_t i = 0; schedc_tensor_at(kernel, i, &info) == SCHEDC_OK; i++)
    assert_int_equal(info.is_deterministic, strcmp(info.name, "Z") != 0);
  schedc_kernel_free(kernel);
  assert_int_equal(schedc_instantiate(&kernel, f->context, source, "part", NULL, NULL, 0),
                   SCHEDC_OK);
  assert_true(schedc_is_deterministic(kernel));
  assert_int_equal(schedc_given(&given, f->context, kernel), SCHEDC_OK);
  assert_int_equal(schedc_tensor_count(given), schedc_tensor_count(kernel));
  for (size_t i = 0; schedc_tensor_at(given, i, &info) == SCHEDC_OK; i++)
    assert_int_equal(info.direction, strcmp(info.name, "Z") ? SCHEDC_IN : SCHEDC_OUT);
  enum { M = 3 };
  static float a[64], y[M * 64], z[M * 64], d[M * 64], n[64];
  for (int i = 0; i < 64; i++) a[i] = (float)i;
  for (int i = 0; i < M * 64; i++) y[i] = 0.5f;
  schedc_tensor tensors[] = {
      {"A", a, SCHEDC_F32, 1, {64}, {1}},        {"Y", y, SCHEDC_F32, 2, {M, 64}, {64, 1}},
      {"Z", z, SCHEDC_F32, 2, {M, 64}, {64, 1}}, {"D", d, SCHEDC_F32, 2, {M, 64}, {64, 1}},
      {"N", n, SCHEDC_F32, 1, {64}, {1}},
  };
  assert_int_equal(schedc_run_cpu(f->context, given, tensors, 5, NULL, 0, NULL), SCHEDC_OK);
  assert_int_equal(schedc_run_cpu(f->context, kernel, tensors, 5, NULL, 0, NULL), SCHEDC_OK);
  assert_true(z[63] == 31.5f && d[M * 64 - 1] == 63 && n[63] == 63);
  for (int t = 1; t < 4; t++) tensors[t].shape[0] = 5;  // more than the given kernel takes
  assert_int_equal(schedc_run_cpu(f->context, given, tensors, 5, NULL, 0, NULL), SCHEDC_EINPUT);
  assert_int_equal(schedc_run_cpu(f->context, kernel, tensors, 5, NULL, 0, NULL), SCHEDC_EINPUT);
  schedc_kernel_free(given);
  schedc_kernel_free(kernel);
  schedc_source_free(source);
}

static const char guarded[] =
    "kernel k {\n"
    "  param narrow = false\n"
    "  in X : f32[M, 64]\n"
    "  in W : f32[R, M], s : f32 if narrow\n"
    "  out Y : f32[M, 64]\n"
    "  grid (x : cdiv(M, 64))\n"
    "  role all : 1 warpgroup {\n"
    "    reg v : f32[64, 64]\n"
    "    v[i,j] = X[x*64 + i, j];  Y[x*64 + i, j] = v[i,j]\n"
    "  }\n"
    "}\n"
    "kernel j { out Q : f32[64];  role all : 1 warpgroup {\n"
    "  reg v : f32[64] = 0;  Q[i] = v[i] } }\n"
    "sequence all { workspace U : f32[64] if narrow;  j if narrow;  k }\n";

// A caller who gives what a guard leaves out is told of the guard.
static void absent_names_are_told(void **state) {
  Fixture *f = *state;
  schedc_source *source = parse(f, guarded);
  const char *const unit[] = {"k", "all"}, *const absent[] = {"W", "s", "R"},
                    *const there[] = {"M", "X", "U", "no", NULL};
  schedc_tensor tensors[] = {{"X", .rank = 2}, {"Y", .rank = 2}, {"W", .rank = 2}};
  schedc_scalar scalar = {"s", 1};
  for (int i = 0; i < 3; i++) {
    schedc_kernel *kernel = NULL;
    schedc_param narrow = {"narrow", i == 2 ? "true" : "false"};
    assert_int_equal(schedc_instantiate(&kernel, f->context, source, unit[i % 2], NULL, &narrow, 1),
                     SCHEDC_OK);
    for (int n = 0; n < 5; n++) assert_null(schedc_why_absent(kernel, there[n]));
    assert_true(!schedc_why_absent(kernel, "Q") == (i != 1));  // of a kernel that is left out
    for (int n = 0; n < 3; n++) assert_true(!schedc_why_absent(kernel, absent[n]) == (i == 2));
    for (int n = 2; i < 2 && n < 4; n++) {
      assert_int_equal(
          schedc_run_cpu(f->context, kernel, tensors, (size_t)(5 - n), &scalar, n == 3, NULL),
          SCHEDC_EINPUT);
      assert_string_equal(f->heard.code, "T.unknown");
      assert_non_null(strstr(f->heard.rendered, schedc_why_absent(kernel, absent[n - 2])));
    }
    schedc_kernel_free(kernel);
  }
  assert_null(schedc_why_absent(NULL, "W"));
  schedc_source_free(source);
}

static int refuse(void *user, const char *bytes, size_t n) {
  (void)user;
  (void)bytes;
  (void)n;
  return 1;
}

static void every_stage_is_written(void **state) {
  Fixture *f = *state;
  schedc_source *source = parse(f, good);
  assert_string_equal(schedc_stage_at(0), "ast");
  for (size_t i = 0; schedc_stage_at(i); i++) {
    size_t n = 0;
    const char *stage = schedc_stage_at(i);
    assert_non_null(schedc_stage_summary(stage));
    assert_int_equal(schedc_emit(f->context, source, NULL, NULL, NULL, 0, stage, count_bytes, &n),
                     SCHEDC_OK);
    assert_true(n > 0);
    assert_int_equal(schedc_emit(f->context, source, NULL, NULL, NULL, 0, stage, refuse, &n),
                     SCHEDC_EIO);
  }
  schedc_source_free(source);
}

static void runs_and_compares(void **state) {
  Fixture *f = *state;
  schedc_kernel *kernel = instantiate(f);
  assert_int_equal(run_once(f->context, kernel), SCHEDC_OK);
  assert_int_equal(schedc_run_cpu(f->context, kernel, NULL, 0, NULL, 0, NULL), SCHEDC_EINPUT);
  assert_string_equal(f->heard.code, "T.missing");
  schedc_run_options old = {.size = sizeof old.size, .policy = (schedc_policy)77};
  assert_int_equal(schedc_run_cpu(f->context, kernel, NULL, 0, NULL, 0, &old),
                   SCHEDC_EINPUT);  // policy not looked at
  old.size = sizeof old;
  assert_int_equal(schedc_run_cpu(f->context, kernel, NULL, 0, NULL, 0, &old), SCHEDC_EARG);
  schedc_kernel_free(kernel);
}

// Nothing is run; bounds may depend on dimensions, the tile, and elements of tensors.
static void counts_fills(void **state) {
  static const char text[] =
      "kernel counted {\n  in X : f32[M, K], cu : i32[2]\n  out Y : f32[M, 64]\n"
      "  grid (x : cdiv(M, 64)) persistent\n  ring a : f32[64, 64] * 3, b : f32[64, 64]\n"
      "  let n = cdiv(K, 64), some = x < cu[1] - cu[0]\n"
      "  role load : 1 warp {\n    for t in reversed 0 .. n { a <- X[x*64.., t*64..] }\n"
      "    if some { b <- X[x*64.., 0..] }\n  }\n"
      "  role add : 1 warpgroup {\n    reg s : f32[64, 64] = 0\n"
      "    for t in 0 .. n { wait a;  s[i,j] = s[i,j] + a[i,j];  release a }\n"
      "    if some { wait b;  s[i,j] = s[i,j] + b[i,j];  release b }\n"
      "    Y[x*64 + i, j] = s[i,j]\n  }\n}\n"
      "sequence both {\n  counted\n  counted\n}\n";
  enum { M = 200, K = 130 };
  static float x[M * K], y[M * 64];
  static const int32_t cu[] = {1, 3};
  const schedc_tensor tensors[] = {{"X", x, SCHEDC_F32, 2, {M, K}, {K, 1}},
                                   {"cu", (void *)cu, SCHEDC_I32, 1, {2}, {1}},
                                   {"Y", y, SCHEDC_F32, 2, {M, 64}, {64, 1}}};
  Fixture *f = *state;
  schedc_kernel *kernel = NULL;
  schedc_source *source = parse(f, text);
  schedc_fills fills[4] = {SCHEDC_FILLS_INIT};
  assert_int_equal(schedc_instantiate(&kernel, f->context, source, "counted", NULL, NULL, 0),
                   SCHEDC_OK);
  assert_int_equal(schedc_ring_count(kernel), 2);
  assert_true(schedc_is_persistent(kernel));
  assert_int_equal(schedc_count_fills(f->context, kernel, tensors, 3, NULL, 0, fills), SCHEDC_OK);
  assert_true(fills[0].least == 3 && fills[0].most == 3 && fills[0].all == 12 &&
              fills[0].tiles == 4);
  assert_true(fills[1].least == 0 && fills[1].most == 1 && fills[1].all == 2);
  assert_true(fills[0].stages == 3 && strcmp(fills[1].ring, "b") == 0);
  assert_int_equal(schedc_count_fills(f->context, kernel, tensors, 2, NULL, 0, fills),
                   SCHEDC_EINPUT);
  assert_int_equal(schedc_count_fills(f->context, kernel, tensors, 3, NULL, 0, NULL), SCHEDC_EARG);
  schedc_kernel_free(kernel);
  assert_int_equal(schedc_instantiate(&kernel, f->context, source, "both", NULL, NULL, 0),
                   SCHEDC_OK);
  assert_int_equal(schedc_ring_count(kernel), 4);
  assert_int_equal(schedc_count_fills(f->context, kernel, tensors, 3, NULL, 0, fills), SCHEDC_OK);
  assert_true(fills[3].most == 1 && fills[2].most == 3);
  schedc_source_free(source);
  schedc_kernel_free(kernel);
}

static void no_specification(void **state) {
  Fixture *f = *state;
  const char *line = strstr(good, "  spec {");
  char text[sizeof good];
  snprintf(text, sizeof text, "%.*s%s", (int)(line - good), good, strchr(line, '\n') + 1);
  schedc_kernel *kernel = NULL;
  schedc_source *source = parse(f, text);
  assert_int_equal(schedc_instantiate(&kernel, f->context, source, NULL, NULL, NULL, 0), SCHEDC_OK);
  schedc_source_free(source);
  assert_int_equal(run_once(f->context, kernel), SCHEDC_EINPUT);
  assert_string_equal(f->heard.code, "T.spec");
  schedc_kernel_free(kernel);
}

// With a GPU it runs; without one it says what is missing.
static void cuda_runs_or_says_why(void **state) {
  Fixture *f = *state;
  enum { M = 64 };
  static uint16_t x[M * 64], y[M * 64];
  static const int32_t cu[M + 1];
  const schedc_tensor tensors[] = {
      {"X", x, SCHEDC_F16, 2, {M, 64}, {64, 1}},
      {"cu", (void *)cu, SCHEDC_I32, 1, {M + 1}, {1}},
      {"Y", y, SCHEDC_F16, 2, {M, 64}, {64, 1}},
  };
  schedc_kernel *kernel = instantiate(f);
  schedc_gpu *gpu;
  schedc_gpu_info info = SCHEDC_GPU_INFO_INIT;
  schedc_gpu_job job = SCHEDC_GPU_JOB_INIT;
  job.kernel = kernel;
  job.tensors = tensors, job.tensor_count = 3;
  assert_int_equal(schedc_gpu_new(&gpu, f->context, -1), SCHEDC_EARG);
  assert_null(gpu);
  assert_int_equal(schedc_gpu_new(&gpu, f->context, 0), SCHEDC_OK);
  job.cubin = x;  // of no length
  assert_int_equal(schedc_gpu_run(gpu, &job, 1, NULL), SCHEDC_EARG);
  job.cubin = NULL;
  schedc_status status = schedc_gpu_run(gpu, &job, 1, NULL);
  assert_int_equal(schedc_gpu_get_info(gpu, &info) == SCHEDC_OK, !status);
  schedc_gpu_free(gpu);
  if (status) {
    assert_int_equal(status, SCHEDC_EUNAVAIL);
    assert_string_equal(f->heard.code, "G.run");
  }
  schedc_kernel_free(kernel);
}

// What is told of PTX is what is written: no NUL behind it.
static void size_of_ptx(void **state) {
  Fixture *f = *state;
  size_t n = 0;
  schedc_build_options options = SCHEDC_BUILD_OPTIONS_INIT;
  schedc_build_info info = SCHEDC_BUILD_INFO_INIT;
  schedc_kernel *kernel = instantiate(f);
  options.no_cache = 1;
  schedc_status status =
      schedc_build(f->context, kernel, SCHEDC_PTX, &options, count_bytes, &n, &info);
  schedc_kernel_free(kernel);
  if (status == SCHEDC_EUNAVAIL) skip();
  assert_int_equal(status, SCHEDC_OK);
  assert_true(n > 0);
  assert_int_equal(info.code_bytes, n);
}

static void *use_kernel(void *kernel) {
  schedc_context *context = NULL;
  intptr_t status = schedc_open(&context, NULL);
  for (int i = 0; i < 3 && !status; i++) status = run_once(context, kernel);
  schedc_close(context);
  return (void *)status;
}

static void threads_share_a_kernel(void **state) {
  (void)state;
  schedc_context *context = NULL;
  schedc_source *source = NULL;
  schedc_kernel *kernel = NULL;
  pthread_t thread[4];
  assert_int_equal(schedc_open(&context, NULL), SCHEDC_OK);
  assert_int_equal(schedc_parse(&source, context, "t.sched", good, sizeof good - 1), SCHEDC_OK);
  assert_int_equal(schedc_instantiate(&kernel, context, source, NULL, NULL, NULL, 0), SCHEDC_OK);
  schedc_source_free(source);
  schedc_close(context);
  for (int i = 0; i < 4; i++)
    assert_int_equal(pthread_create(&thread[i], NULL, use_kernel, kernel), 0);
  for (int i = 0; i < 4; i++) {
    void *status;
    pthread_join(thread[i], &status);
    assert_null(status);
  }
  schedc_kernel_free(kernel);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(statuses_have_names),    TEST(codes_are_explained),   TEST(null_is_refused),
      TEST(older_headers),          TEST(faults_are_reported),   TEST(a_kernel_tells),
      TEST(cases_keep_their_lines), TEST(given_kernels),         TEST(absent_names_are_told),
      TEST(every_stage_is_written), TEST(runs_and_compares),     TEST(counts_fills),
      TEST(no_specification),       TEST(cuda_runs_or_says_why), TEST(size_of_ptx),
      TEST(threads_share_a_kernel),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
