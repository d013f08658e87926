// How long a compilation takes: .sched to CUDA C, and from a cache that has the machine code. Held
// to the limits in optimised builds alone; the figures are printed in all.
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

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void judge(const char *what, double ms, double limit) {
  print_message("  %s: %.2f ms (limit %.0f)\n", what, ms, limit);
  if (OPTIMISED) assert_true(ms < limit);
}

static size_t read_schedule(char *to, size_t room) {
  FILE *f = fopen("schedules/fa3_fwd.sched", "rb");
  assert_non_null(f);
  size_t n = fread(to, 1, room, f);
  fclose(f);
  return n;
}

// All of it: parse, lower, check, place, emit.
static const CudaText *compile(Sc *sc, const Kernel **k) {
  static char source[1 << 16];
  size_t n = read_schedule(source, sizeof source);
  sc->text = sc_text(sc, "fa3_fwd.sched", source, n);
  Compilation c = {.text = sc->text};
  *k = sc_compile(sc, &c, NULL, "place") ? c.k : NULL;
  assert_non_null(*k);
  return sc_cuda(sc, *k, &(CudaOptions){0});
}

// The quickest of a few, so that what else the machine does is not counted.
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
  const struct CMUnitTest tests[] = {cmocka_unit_test(to_cuda), cmocka_unit_test(from_cache)};
  return cmocka_run_group_tests_name("speed", tests, NULL, NULL);
}
