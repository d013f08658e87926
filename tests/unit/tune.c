// tune.c - the driver of a search, with an objective that is made up: the fastest wins, progress
// counts and stops it, a stopped search goes on, time that is up leads to the finals, errors of the
// objective end it; a second machine measures beside the first.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "spacekit.h"

// 30 programs, of which a = 4, b = 5 is the fastest, but for a = 5, which is wrong.
#define SPACE                                   \
  "kernel k {\n"                                \
  "  param a = 2 in { 1, 2, 3, 4, 5 }\n"        \
  "  param b = 1 in { 1, 2, 3, 4, 5, 6 }\n"     \
  "  in X : f32[M, 32]\n  out Y : f32[M, 32]\n" \
  "  grid (x : cdiv(M, 64))\n"                  \
  "  role all : 1 warpgroup, 128 regs {\n"      \
  "    reg v : f32[64, 32]\n"                   \
  "    v[i,j] = X[x*64 + i, j] + (a*8 + b)\n"   \
  "    Y[x*64 + i, j] = v[i,j]\n"               \
  "  }\n"                                       \
  "}\n"

enum { PROGRAMS = 30 };

typedef struct World {
  unsigned measured, stop_at, error_at, slow_ms;  // stop_at: progress says so then; 0: never
  unsigned calls, most_left;
  bool has_help;  // there may be nothing to do here
  schedc_tune_state last;
} World;

static int value(const schedc_point *p, const char *name) {
  for (size_t i = 0; i < p->param_count; i++)
    if (strcmp(p->params[i].name, name) == 0) return atoi(p->params[i].value);
  return -1;
}

static schedc_status objective(void *user, const schedc_trial *t, schedc_outcome *out) {
  World *w = user;
  int a = value(&t->point, "a"), b = value(&t->point, "b");
  if (++w->measured == w->error_at) return SCHEDC_EUNAVAIL;
  if (w->slow_ms) nanosleep(&(struct timespec){0, w->slow_ms * 1000000L}, NULL);
  out->ms = a == 5 ? 0.5 : a == 4 && b == 5 ? 0.9 : 1 + 0.01 * ((a * 7 + b * 3) % 11);
  if (t->kind == SCHEDC_TRIAL_VERIFY && a == 5) {
    out->status = SCHEDC_EFAULT;
    out->code = "wrong";
  }
  return SCHEDC_OK;
}

static int progress(void *user, const schedc_tune_state *s) {
  World *w = user;
  assert_true(s->done >= w->last.done && s->seconds >= w->last.seconds);
  assert_true(s->point || !s->left || w->has_help);
  w->last = *s;
  w->calls++;
  if (s->left > w->most_left) w->most_left = (unsigned)s->left;
  return w->stop_at && w->calls >= w->stop_at;
}

typedef struct Setting {
  schedc_space *space;
  schedc_tuner *tuner;
  schedc_tune_options options;
} Setting;

static Setting open_timed(Fixture *f, World *w, double final_ms) {
  Setting s = {.options = SCHEDC_TUNE_OPTIONS_INIT};
  schedc_tuner_options search = SCHEDC_TUNER_OPTIONS_INIT;
  search.top = 8;
  search.turns = 5;
  search.threads = 1;
  search.final_ms = final_ms;
  s.space = open_space(f, SPACE, NULL, NULL, NULL, 0);
  assert_int_equal(schedc_tuner_new(&s.tuner, f->context, s.space, &search), SCHEDC_OK);
  s.options.progress = progress;
  s.options.progress_user = w;
  s.options.measure = objective;
  s.options.measure_user = w;
  return s;
}

static Setting open_setting(Fixture *f, World *w) { return open_timed(f, w, 1); }

static schedc_status tune(Fixture *f, const Setting *s) {
  return schedc_tune(f->context, s->tuner, NULL, &s->options);
}

static void close_setting(Setting *s) {
  schedc_tuner_free(s->tuner);
  schedc_space_free(s->space);
}

static void is_best(const Setting *s, int a, int b) {
  schedc_candidate best = SCHEDC_CANDIDATE_INIT;
  assert_int_equal(schedc_tuner_best(s->tuner, &best), SCHEDC_OK);
  assert_int_equal(value(&best.point, "a"), a);
  assert_int_equal(value(&best.point, "b"), b);
}

static void the_fastest_that_is_right(void **state) {
  World w = {0};
  Setting s = open_setting(*state, &w);
  assert_int_equal(tune(*state, &s), SCHEDC_OK);
  is_best(&s, 4, 5);
  assert_true(w.last.failed == 6 && w.last.done == w.measured && w.calls == w.measured + 1);
  assert_true(w.most_left >= PROGRAMS && w.last.left == 0);
  assert_true(w.last.default_ms > 1.05 && w.last.default_ms < 1.07);
  assert_true(w.last.best_ms > 0.89 && w.last.best_ms < 0.91);
  assert_true(w.last.best_ratio > 0.84 && w.last.best_ratio < 0.86);  // 0.9 / 1.06
  close_setting(&s);
}

// Wherever it is stopped, what was out is asked for again when it goes on.
static void stopped_and_gone_on(void **state) {
  for (unsigned stop = 1; stop < 70; stop += 11) {
    World w = {.stop_at = stop};
    Setting s = open_setting(*state, &w);
    assert_int_equal(tune(*state, &s), SCHEDC_ECANCEL);
    assert_int_equal(w.measured, stop - 1);
    w.stop_at = 0;
    memset(&w.last, 0, sizeof w.last);
    assert_int_equal(tune(*state, &s), SCHEDC_OK);
    is_best(&s, 4, 5);
    close_setting(&s);
  }
}

// 30 measurements take 150 ms: after less than that the finals begin, among what was measured.
static void time_is_up(void **state) {
  World w = {.slow_ms = 5};
  Setting s = open_setting(*state, &w);
  s.options.seconds = 0.06 + 9 * 5 * 0.001 * 1.2;  // and what is kept back for the finals
  assert_int_equal(tune(*state, &s), SCHEDC_OK);
  schedc_candidate c = SCHEDC_CANDIDATE_INIT;
  unsigned measured = 0;
  for (size_t i = 0; !schedc_tuner_at(s.tuner, i, &c); i++) measured += c.rungs > 0;
  assert_true(measured >= 1 && measured < 20);
  assert_true(w.last.hurried);
  assert_int_equal(schedc_tuner_best(s.tuner, &c), SCHEDC_OK);
  close_setting(&s);
}

// Nine finalists would take 1.08 s: of 0.8 s half are for the finals, so the default and two are in
// them.
static void few_finalists_of_little_time(void **state) {
  World w = {.slow_ms = 1};
  Setting s = open_timed(*state, &w, 20);
  s.options.seconds = 0.8;
  assert_int_equal(tune(*state, &s), SCHEDC_OK);
  schedc_candidate c = SCHEDC_CANDIDATE_INIT;
  unsigned measured = 0, finalists = 0;
  for (size_t i = 0; !schedc_tuner_at(s.tuner, i, &c); i++) {
    measured += c.rungs > 0;
    finalists += c.turns > 0;
  }
  assert_true(measured > 1 && finalists > 0 && finalists <= 3);
  close_setting(&s);
}

// A machine elsewhere, three times as slow, which has up to four trials at a time, gives one of
// seven back, and answers the last first.
typedef struct Machine {
  World *world;
  schedc_trial has[4];
  unsigned n, most, taken, lost, forgotten;
  bool is_mute;
} Machine;

static int take(void *user, const schedc_trial *t) {
  Machine *m = user;
  assert_true(t->kind == SCHEDC_TRIAL_MEASURE && !t->is_final && !t->is_reference);
  assert_true(value(&t->point, "a") != 2 || value(&t->point, "b") != 1);  // the default
  if (m->n == 4) return 0;
  m->has[m->n++] = *t;
  m->taken++;
  return 1;
}

static int collect(void *user, uint32_t *program, schedc_outcome *out) {
  Machine *m = user;
  if (!m->n || m->is_mute) return 0;
  const schedc_trial *t = &m->has[--m->n];
  *out = (schedc_outcome)SCHEDC_OUTCOME_INIT;
  *program = t->program;
  objective(m->world, t, out);
  out->ms *= 3;
  out->reference_ms = 3 * 1.06;
  if (m->taken % 7 == 0) out->status = SCHEDC_ECANCEL, m->lost++;
  return 1;
}

static void forget(void *user) {
  Machine *m = user;
  m->forgotten += m->n;
  m->n = 0;
}

static Setting open_with(Fixture *f, World *w, Machine *m, schedc_elsewhere *e) {
  Setting s = open_setting(f, w);
  w->has_help = true;
  *e = (schedc_elsewhere){sizeof *e, m, take, collect, forget};
  s.options.elsewhere = e;
  return s;
}

static void measured_elsewhere_too(void **state) {
  World w = {0};
  Machine m = {.world = &w};
  schedc_elsewhere e;
  Setting s = open_with(*state, &w, &m, &e);
  assert_int_equal(tune(*state, &s), SCHEDC_OK);
  is_best(&s, 4, 5);
  assert_true(m.taken > 10 && m.lost > 0 && m.n == 0);
  assert_true(w.last.best_ratio > 0.84 && w.last.best_ratio < 0.86);  // by its own default
  schedc_candidate c = SCHEDC_CANDIDATE_INIT;
  for (size_t i = 0; !schedc_tuner_at(s.tuner, i, &c); i++) assert_true(c.rungs > 0);
  close_setting(&s);
}

// Time is up, or the search is stopped, while it has something: that is called back.
static void not_waited_for(void **state) {
  for (int stops = 0; stops < 2; stops++) {
    World w = {.slow_ms = 5, .stop_at = stops ? 9 : 0};
    Machine m = {.world = &w, .is_mute = true};
    schedc_elsewhere e;
    Setting s = open_with(*state, &w, &m, &e);
    if (!stops) s.options.seconds = 0.06 + 9 * 5 * 0.001 * 1.2;
    assert_int_equal(tune(*state, &s), stops ? SCHEDC_ECANCEL : SCHEDC_OK);
    assert_true(m.forgotten > 0 && m.n == 0);
    s.options.elsewhere = NULL;
    s.options.seconds = w.stop_at = 0;
    memset(&w.last, 0, sizeof w.last);
    assert_int_equal(tune(*state, &s), SCHEDC_OK);
    close_setting(&s);
  }
}

static void errors_of_the_objective(void **state) {
  World w = {.error_at = 7};
  Setting s = open_setting(*state, &w);
  assert_int_equal(tune(*state, &s), SCHEDC_EUNAVAIL);
  memset(&w.last, 0, sizeof w.last);
  assert_int_equal(tune(*state, &s), SCHEDC_OK);  // nothing was left out
  is_best(&s, 4, 5);
  close_setting(&s);
}

static void arguments(void **state) {
  Fixture *f = *state;
  World w = {0};
  Setting s = open_setting(f, &w);
  schedc_tune_options o = s.options;
  schedc_store *store;
  assert_int_equal(schedc_store_open(&store, f->context, "/nowhere/store"), SCHEDC_OK);
  assert_int_equal(schedc_tune(NULL, s.tuner, NULL, &o), SCHEDC_EARG);
  assert_int_equal(schedc_tune(f->context, NULL, NULL, &o), SCHEDC_EARG);
  assert_int_equal(schedc_tune(f->context, s.tuner, NULL, NULL), SCHEDC_EARG);
  o.store = store;  // whose lines need a meter
  assert_int_equal(schedc_tune(f->context, s.tuner, NULL, &o), SCHEDC_EARG);
  o = s.options;
  schedc_elsewhere nowhere = SCHEDC_ELSEWHERE_INIT;
  o.elsewhere = &nowhere;
  assert_int_equal(schedc_tune(f->context, s.tuner, NULL, &o), SCHEDC_EARG);
  o = s.options;
  o.seconds = -1;
  assert_int_equal(schedc_tune(f->context, s.tuner, NULL, &o), SCHEDC_EARG);
  schedc_store_close(store);
  close_setting(&s);
  assert_int_equal(w.measured, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(the_fastest_that_is_right),    TEST(stopped_and_gone_on),     TEST(time_is_up),
      TEST(few_finalists_of_little_time), TEST(errors_of_the_objective), TEST(arguments),
      TEST(measured_elsewhere_too),       TEST(not_waited_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
