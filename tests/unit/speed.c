// How long a compilation takes: .sched to CUDA C, and from a cache that has the machine code; and a
// prediction. Held to the limits in optimised builds alone; the figures are printed in all.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/cuda/build.h"

#ifdef NDEBUG
enum { OPTIMISED = 1 };
#else
enum { OPTIMISED = 0 };
#endif
enum { REPEATS = 25 };
static const char FWD[] = "schedules/fa3_fwd.sched";

// Of the processor: other processes on the machine take none of it.
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void judge(const char *what, double ms, double limit) {
  print_message("  %s: %.2f ms (limit %.0f)\n", what, ms, limit);
  if (OPTIMISED) assert_true(ms < limit);
}

static size_t read_schedule(const char *path, char *to, size_t room) {
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  size_t n = fread(to, 1, room, f);
  fclose(f);
  return n;
}

// All of it: parse, lower, check, place, emit.
static const CudaText *compile(Sc *sc, const Kernel **k) {
  static char source[1 << 16];
  size_t n = read_schedule(FWD, source, sizeof source);
  sc->text = sc_text(sc, "fa3_fwd.sched", source, n);
  Compilation c = {.text = sc->text};
  *k = sc_compile(sc, &c, NULL, "place") ? c.k : NULL;
  assert_non_null(*k);
  return sc_cuda(sc, *k, &(CudaOptions){0});
}

// The quickest of a few, as caches are cold at first, and others use them, too.
static void to_cuda(void **state) {
  (void)state;
  double least = 1e9;
  for (int i = 0; i < REPEATS; i++) {
    Sc sc;
    const Kernel *k;
    double start = now();
    sc_init(&sc, NULL);
    const CudaText *text = compile(&sc, &k);
    assert_true(text->text.n > 10000);
    sc_free(&sc);
    double ms = now() - start;
    if (ms < least) least = ms;
  }
  judge("fa3_fwd.sched to CUDA C", least, 5);
}

// A prediction of attention with 16 k keys. Without a mask tiles have one length, and with one 128.
static double to_prediction(const char *causal, const char *pair) {
  static const schedc_dim dims[] = {{"B", 1}, {"M", 16384}, {"N", 16384}, {"H", 16}, {"G", 16}};
  static char text[1 << 16];
  const schedc_param param[] = {{"causal", causal}, {"pair", pair}};
  schedc_context *context = NULL;
  schedc_source *source = NULL;
  schedc_kernel *kernel = NULL;
  schedc_tensor tensor[8] = {0};
  double least = 1e9;
  size_t n = read_schedule(FWD, text, sizeof text), tensors;
  assert_int_equal(schedc_open(&context, NULL), SCHEDC_OK);
  assert_int_equal(schedc_parse(&source, context, "fa3_fwd.sched", text, n), SCHEDC_OK);
  assert_int_equal(schedc_instantiate(&kernel, context, source, NULL, NULL, param, COUNT(param)),
                   SCHEDC_OK);
  tensors = schedc_tensor_count(kernel);
  for (size_t i = 0; i < tensors; i++) {
    schedc_tensor_info info = SCHEDC_TENSOR_INFO_INIT;
    assert_int_equal(schedc_tensor_at(kernel, i, &info), SCHEDC_OK);
    tensor[i] = (schedc_tensor){.name = info.name, .type = info.type, .rank = info.rank};
    schedc_tensor_shape(context, kernel, i, dims, COUNT(dims), tensor[i].shape);
    int64_t step = 1;
    for (size_t d = info.rank; d-- > 0; step *= tensor[i].shape[d]) tensor[i].strides[d] = step;
  }
  for (int i = 0; i < REPEATS; i++) {
    schedc_prediction out = SCHEDC_PREDICTION_INIT;
    double start = now();
    assert_int_equal(schedc_predict(context, kernel, tensor, tensors, NULL, 0, NULL, &out), 0);
    if (now() - start < least) least = now() - start;
  }
  schedc_kernel_free(kernel);
  schedc_source_free(source);
  schedc_close(context);
  return least;
}

// Each limit is three times what a quiet machine takes. Beside other work it takes up to twice as
// long.
static void to_predictions(void **state) {
  (void)state;
  judge("a prediction of fa3_fwd", to_prediction("false", "2"), 3);
  judge("… with a mask", to_prediction("true", "1"), 3);
  judge("… in clusters, whose rounds never repeat", to_prediction("true", "2"), 15);
}

// A role that keeps a stage too long: its paths are told apart, 16 at a time, until nothing
// changes.
static void to_refusal(void **state) {
  (void)state;
  static char text[1 << 16];
  static const schedc_param params[] = {{"causal", "true"}, {"pair", "2"}, {"BN", "80"}};
  static const char kept[] = "wait k;  release k;  wait v;  release v";
  schedc_context *context = NULL;
  schedc_source *source = NULL;
  schedc_kernel *kernel = NULL;
  if (!OPTIMISED) skip();
  size_t n = read_schedule("schedules/fa3_stale.sched", text, sizeof text - 1);
  char *at = strstr(text, kept);
  assert_non_null(at);
  memset(at + strlen("wait k;"), ' ', strlen("  release k;"));
  assert_int_equal(schedc_open(&context, NULL), SCHEDC_OK);
  assert_int_equal(schedc_parse(&source, context, "kept.sched", text, n), SCHEDC_OK);
  double start = now();
  assert_int_equal(schedc_instantiate(&kernel, context, source, NULL, NULL, params, COUNT(params)),
                   SCHEDC_EINPUT);
  judge("a stage of fa3_stale that is kept, to R5.depth", now() - start, 20000);
  schedc_source_free(source);
  schedc_close(context);
}

static void from_cache(void **state) {
  (void)state;
  char folder[] = "/tmp/schedc-speed-XXXXXX";
  assert_non_null(mkdtemp(folder));
  double least = 1e9;
  for (int i = 0; i < REPEATS; i++) {
    Sc sc;
    jmp_buf unwind;
    const Kernel *k;
    Built built;
    sc_init(&sc, NULL);
    sc.unwind = &unwind;
    const CudaText *text = compile(&sc, &k);
    double start = now();
    schedc_status status =
        sc_build(&sc, k, text, TARGET_CUBIN, &(BuildOptions){.cache = folder}, &built);
    double ms = now() - start;
    bool cached = built.cached;
    sc_free(&sc);
    if (status == SCHEDC_EUNAVAIL) {
      print_message("  no NVRTC\n");
      remove(folder);
      skip();
    }
    assert_int_equal(status, SCHEDC_OK);
    assert_int_equal(cached, i > 0);
    if (i && ms < least) least = ms;
  }
  char command[64];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  assert_int_equal(system(command), 0);
  judge("fa3_fwd from the cache", least, 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(to_cuda), cmocka_unit_test(to_predictions),
                                     cmocka_unit_test(to_refusal), cmocka_unit_test(from_cache)};
  return cmocka_run_group_tests_name("speed", tests, NULL, NULL);
}
