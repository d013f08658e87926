// duration.c - how long a launch takes, on a driver whose clock is made up: as many launches as
// there is time for, a host that is slow for a moment, a chip that warms up, and what fails.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "runtime/cuda/gpu.h"

// Time passes in launches alone.
typedef struct Clock {
  double ms, first, later;  // now; of each launch, as long as fewer than `change` were made
  u64 change, launched, slow_at, fails_at;
  u32 events, alive;
  int error;  // of the wait
  double at[64];
} Clock;
static Clock the;

static int create(void **event, unsigned flags) {
  (void)flags;
  the.alive++;
  return *event = &the.at[the.events++ % 64], 0;
}
static int destroy(void *event) {
  the.alive -= event != NULL;
  return 0;
}
static int record(void *event, void *stream) {
  (void)stream;
  return *(double *)event = the.ms, 0;
}
static int wait_for(void *stream) {
  (void)stream;
  return the.error;
}
static int elapsed(float *ms, void *from, void *to) {
  return *ms = (float)(*(double *)to - *(double *)from), 0;
}
static const Driver driver = {.cuEventCreate = create,
                              .cuEventDestroy = destroy,
                              .cuEventRecord = record,
                              .cuStreamSynchronize = wait_for,
                              .cuEventElapsedTime = elapsed};

static schedc_status launch(void *user) {
  (void)user;
  if (++the.launched == the.fails_at) return SCHEDC_EINPUT;
  the.ms += the.launched > the.change ? the.later : the.first;
  if (the.launched == the.slow_at) the.ms += 1000;
  return SCHEDC_OK;
}

// How long what is watched took.
static void watch(void *watcher, void *settled, void *last) {
  *(double *)watcher = *(double *)last - *(double *)settled;
}

static double watched;
static Duration measure(Clock clock, double budget, double settle_ms) {
  the = clock;
  Duration t = {.d = &driver,
                .launch = launch,
                .budget_ms = budget,
                .settle_ms = settle_ms,
                .watch = watch,
                .watcher = &watched};
  bool good = sc_gpu_duration(&t);
  assert_int_equal(good, !t.error && !t.status);
  assert_int_equal(the.alive, 0);
  return t;
}

static void for_about_so_long(void **state) {
  (void)state;
  for (double ms = 0.003; ms < 50; ms *= 3) {
    Duration t = measure((Clock){.first = ms, .later = ms}, 20, 0);
    assert_true(t.ms > 0.999 * ms && t.ms < 1.001 * ms);
    double all = (double)the.launched * ms, more = 2 * ms;
    assert_true(all <= 20 + more && (all > 18 || 20 / ms < 2));
    assert_true(t.launches >= 1 && t.launches < the.launched);
  }
}

static void the_host_is_slow_once(void **state) {
  (void)state;
  Duration t = measure((Clock){.first = 0.1, .later = 0.1, .slow_at = 100}, 20, 0);
  assert_true(t.ms > 0.0999 && t.ms < 0.1001);
}

// For 130 ms launches are faster, as the chip finds its clock: they do not count.
static void the_chip_finds_its_clock(void **state) {
  (void)state;
  Duration t = measure((Clock){.first = 0.1, .later = 0.11, .change = 1300}, 300, 150);
  assert_true(t.ms > 0.1099 && t.ms < 0.1101);
  assert_true(t.launches > 1200 && t.launches < 1550);
  t = measure((Clock){.first = 0.1, .later = 0.11, .change = 1300}, 1000, 150);
  assert_true(t.ms > 0.1099 && t.ms < 0.1101);
  assert_true(t.launches > 8300 && t.launches < 9300);
  assert_true(fabs(watched - (double)t.launches * t.ms) < 1e-3);  // what counts, and no more
  t = measure((Clock){.first = 0.1, .later = 0.1}, 20, 150);  // half of them, if there is no time
  assert_true(t.launches > 90 && t.launches < 110);
}

// Of very short launches there is time for more than are made.
static void no_more_than_can_be_made(void **state) {
  (void)state;
  Duration t = measure((Clock){.first = 0.0001, .later = 0.0001}, 2000, 1000);
  assert_true(t.ms > 0.000099 && t.ms < 0.000101);
  assert_true(t.launches > the.launched / 3 && t.launches < the.launched);
}

// A fifth of the launches that count is twice as fast as the others: the mean has its share, where
// a median would have none.
static void the_clock_moves(void **state) {
  (void)state;
  Duration t = measure((Clock){.first = 0.05, .later = 0.1, .change = 12000}, 1000, 500);
  assert_true(t.ms > 0.0885 && t.ms < 0.0915);
}

static void what_fails(void **state) {
  (void)state;
  Clock clock = {.first = 0.1, .later = 0.1};
  for (u64 at = 1; at < 30; at += 7) {
    clock.fails_at = at;
    assert_int_equal(measure(clock, 20, 0).status, SCHEDC_EINPUT);
  }
  clock.fails_at = 0;
  clock.error = 719;
  assert_int_equal(measure(clock, 20, 0).error, 719);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(for_about_so_long),        cmocka_unit_test(the_host_is_slow_once),
      cmocka_unit_test(the_chip_finds_its_clock), cmocka_unit_test(no_more_than_can_be_made),
      cmocka_unit_test(the_clock_moves),          cmocka_unit_test(what_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
