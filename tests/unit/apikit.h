// apikit.h - a context of the public interface for each test, with an allocator that counts and a
// sink for diagnostics, and a kernel to instantiate and run. The including file has included
// cmocka.h.
#ifndef APIKIT_H
#define APIKIT_H

#include <stdlib.h>
#include <string.h>

#include "schedc.h"

static const char good[] =
    "kernel scale {\n"
    "  param BM = 64 in { 64, 128 }\n"
    "  in X : f16[M, 64]\n"
    "  in cu : i32[M + 1]\n"
    "  in a : f32 = 2\n"
    "  out Y : f16[M, 64]\n"
    "  spec { Y[i,j] = a * X[i,j] }\n"
    "  case small { M = 100 }\n"
    "  case many { M in { 1, 64, 65 }, BM in { 64, 128 } }\n"
    "  grid (x : cdiv(M, BM))\n"
    "  ring r : f16[BM, 64] * 2\n"
    "  role load : 1 warp, 24 regs { r <- X[x*BM..] }\n"
    "  role math : 1 warpgroup, 232 regs {\n"
    "    reg v : f16[BM, 64]\n"
    "    wait r\n"
    "    v[i,j] = a * r[i,j]\n"
    "    release r\n"
    "    Y[x*BM + i, j] = v[i,j]\n"
    "  }\n"
    "}\n";
static const char bad[] =
    "kernel k {\n  in X : f16[M, 64]\n  grid (x : M)\n  role a : 1 warp { wait nothing }\n}\n";

typedef struct Counter {
  long live;
} Counter;

static inline void *count_alloc(void *user, size_t bytes) {
  void *at = malloc(bytes);
  ((Counter *)user)->live += at != NULL;
  return at;
}

static inline void count_free(void *user, void *block) {
  ((Counter *)user)->live -= block != NULL;
  free(block);
}

typedef struct Heard {
  int reports;
  char code[32];
  char rendered[2048];
} Heard;

static inline void hear(void *user, const schedc_diagnostic *d) {
  Heard *h = user;
  assert_non_null(d->rendered);
  assert_non_null(schedc_explain(d->code));
  assert_string_equal(d->file, "t.sched");
  assert_true(d->where.line >= 1 && d->where.column >= 1);
  h->reports++;
  strncpy(h->code, d->code, sizeof h->code - 1);
  strncpy(h->rendered, d->rendered, sizeof h->rendered - 1);
}

typedef struct Fixture {
  Counter counter;
  Heard heard;
  schedc_context *context;
} Fixture;

static inline int setup(void **state) {
  static Fixture f;
  memset(&f, 0, sizeof f);
  schedc_allocator allocator = {count_alloc, count_free, &f.counter};
  schedc_options options = SCHEDC_OPTIONS_INIT;
  options.allocator = &allocator;
  options.sink = hear;
  options.sink_user = &f.heard;
  assert_int_equal(schedc_open(&f.context, &options), SCHEDC_OK);
  *state = &f;
  return 0;
}

static inline int teardown(void **state) {
  Fixture *f = *state;
  schedc_close(f->context);
  assert_int_equal(f->counter.live, 0);
  return 0;
}

static inline schedc_source *parse(Fixture *f, const char *text) {
  schedc_source *source = NULL;
  assert_int_equal(schedc_parse(&source, f->context, "t.sched", text, strlen(text)), SCHEDC_OK);
  return source;
}

static inline schedc_kernel *instantiate(Fixture *f) {
  schedc_kernel *kernel = NULL;
  schedc_source *source = parse(f, good);
  assert_int_equal(schedc_instantiate(&kernel, f->context, source, NULL, NULL, NULL, 0), SCHEDC_OK);
  schedc_source_free(source);  // the kernel keeps it
  return kernel;
}

static inline schedc_status run_once(schedc_context *context, const schedc_kernel *kernel) {
  enum { M = 70 };
  static const int32_t cu[M + 1];
  uint16_t *x = calloc(M * 64, 2), *y = calloc(M * 64, 2);
  schedc_error error = SCHEDC_ERROR_INIT;
  for (int i = 0; i < M * 64; i++) x[i] = 0x3c00;
  const schedc_tensor tensors[] = {
      {"X", x, SCHEDC_F16, 2, {M, 64}, {64, 1}},
      {"cu", (void *)cu, SCHEDC_I32, 1, {M + 1}, {1}},
      {"Y", y, SCHEDC_F16, 2, {M, 64}, {64, 1}},
  };
  schedc_run_options options = SCHEDC_RUN_OPTIONS_INIT;
  options.threads = 2;
  schedc_status status = schedc_run_cpu(context, kernel, tensors, 3, NULL, 0, &options);
  if (!status) status = schedc_compare(context, kernel, tensors, 3, NULL, 0, NULL, &error);
  if (!status && (!error.pass || y[M * 64 - 1] != 0x4000)) status = SCHEDC_EFAULT;
  free(x);
  free(y);
  return status;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
