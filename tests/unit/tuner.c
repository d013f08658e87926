// tuner.c - ask and tell, on a small space with times made up: the fastest that is right wins, ties
// go to the default, what fails or is lost is treated as such, and drifting clocks do not matter.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spacekit.h"

// 5 * 6 points, of which b > 3 * a is refused, and `dead` changes nothing.
#define SPACE                                   \
  "kernel k {\n"                                \
  "  param a = 2 in { 1, 2, 3, 4, 5 }\n"        \
  "  param b = 1 in { 1, 2, 3, 4, 5, 6 }\n"     \
  "  param dead = 0 in { 0, 1 }\n"              \
  "  require b <= 3*a\n"                        \
  "  in X : f32[M, 32]\n  out Y : f32[M, 32]\n" \
  "  grid (x : cdiv(M, 64))\n"                  \
  "  role all : 1 warpgroup, 128 regs {\n"      \
  "    reg v : f32[64, 32]\n"                   \
  "    v[i,j] = X[x*64 + i, j] + (a*8 + b)\n"   \
  "    Y[x*64 + i, j] = v[i,j]\n"               \
  "  }\n"                                       \
  "}\n"

enum { POINTS = 60, REFUSED = 6, PROGRAMS = 27 };

static int value(const schedc_point *p, const char *name, int usual) {
  for (size_t i = 0; i < p->param_count; i++)
    if (strcmp(p->params[i].name, name) == 0) return atoi(p->params[i].value);
  return usual;
}

// What happens to programs when they are measured.
typedef struct World {
  double best_by;  // the program a = 4, b = 5 takes so much less than all others
  double drift;    // each measurement takes longer than the one before by this part
  int fail_a;      // all with this a cannot be built; 0: none
  int wrong_a;     // all with this a have wrong results
  int lose_every;  // each so many-th trial is lost
  unsigned trials, measured, lost;
} World;

static double time_of(const World *w, const schedc_point *p) {
  int a = value(p, "a", 2), b = value(p, "b", 1);
  return a == 4 && b == 5 ? 1 - w->best_by : 1 + 0.01 * ((a * 7 + b * 3) % 11);
}

static schedc_tuner *open_tuner(Fixture *f, schedc_space **space, schedc_strategy strategy) {
  schedc_tuner *tuner;
  schedc_tuner_options options = SCHEDC_TUNER_OPTIONS_INIT;
  options.strategy = strategy;
  options.top = 3;
  options.turns = 5;
  options.threads = 2;
  *space = open_space(f, SPACE, NULL, NULL, NULL, 0);
  assert_int_equal(schedc_tuner_new(&tuner, f->context, *space, &options), SCHEDC_OK);
  return tuner;
}

static schedc_outcome answer(World *w, const schedc_trial *t) {
  schedc_outcome out = SCHEDC_OUTCOME_INIT;
  int a = value(&t->point, "a", 2);
  w->trials++;
  if (w->lose_every && w->trials % (unsigned)w->lose_every == 0) {
    out.status = SCHEDC_ECANCEL;
    w->lost++;
  } else if (t->kind == SCHEDC_TRIAL_VERIFY) {
    out.status = a == w->wrong_a ? SCHEDC_EFAULT : SCHEDC_OK;
  } else if (a == w->fail_a) {
    out.status = SCHEDC_EINPUT;
    out.code = "G.spill";
  } else {
    out.ms = time_of(w, &t->point) * (1 + w->drift * w->measured++);
  }
  return out;
}

static void play(schedc_tuner *tuner, World *w) {
  for (bool finals = false;;) {
    schedc_trial t = SCHEDC_TRIAL_INIT;
    assert_int_equal(schedc_tuner_ask(tuner, &t), SCHEDC_OK);
    assert_int_not_equal(t.kind, SCHEDC_TRIAL_WAIT);  // nothing is out
    if (t.kind == SCHEDC_TRIAL_DONE) return;
    assert_true(w->trials < 10000);
    assert_true(t.is_final || !finals);  // nothing comes after them
    finals = t.is_final;
    schedc_outcome out = answer(w, &t);
    assert_int_equal(schedc_tuner_tell(tuner, &t, &out), SCHEDC_OK);
    assert_int_equal(schedc_tuner_tell(tuner, &t, &out), SCHEDC_EARG);  // once
  }
}

// The winner, as plain values: the texts of a point live as long as its space.
typedef struct Winner {
  int a, b;
  bool is_default;
  double ratio;
} Winner;

static Winner winner(Fixture *f, World *w, schedc_strategy strategy) {
  schedc_space *space;
  schedc_tuner *tuner = open_tuner(f, &space, strategy);
  schedc_candidate best = SCHEDC_CANDIDATE_INIT;
  play(tuner, w);
  assert_int_equal(schedc_tuner_best(tuner, &best), SCHEDC_OK);
  assert_true(best.verified && !best.failed && best.turns);
  Winner won = {value(&best.point, "a", 2), value(&best.point, "b", 1), best.is_default,
                best.ratio};
  schedc_tuner_free(tuner);
  schedc_space_free(space);
  return won;
}

static void is_point(const schedc_candidate *c, int a, int b) {
  assert_int_equal(value(&c->point, "a", 2), a);
  assert_int_equal(value(&c->point, "b", 1), b);
}

static void points_are_folded_and_refused(void **state) {
  schedc_space *space;
  schedc_tuner *tuner = open_tuner(*state, &space, SCHEDC_HALVING);
  schedc_tuner_info info = SCHEDC_TUNER_INFO_INIT;
  const char *code;
  uint64_t points;
  assert_int_equal(schedc_tuner_get_info(tuner, &info), SCHEDC_OK);
  assert_int_equal(info.points, POINTS);
  assert_int_equal(info.legal, POINTS - REFUSED);
  assert_int_equal(info.programs, PROGRAMS);
  assert_false(info.done);
  assert_int_equal(schedc_tuner_refusal(tuner, 0, &code, &points), SCHEDC_OK);
  assert_string_equal(code, "P.require");
  assert_int_equal(points, REFUSED);
  assert_int_equal(schedc_tuner_refusal(tuner, 1, &code, &points), SCHEDC_EARG);
  schedc_candidate none = SCHEDC_CANDIDATE_INIT;
  assert_int_equal(schedc_tuner_best(tuner, &none), SCHEDC_EARG);
  schedc_tuner_free(tuner);
  schedc_space_free(space);
}

static void the_fastest_wins(void **state) {
  for (schedc_strategy s = SCHEDC_HALVING; s <= SCHEDC_EXHAUSTIVE; s++) {
    World w = {.best_by = 0.02};
    Winner best = winner(*state, &w, s);
    assert_true(best.a == 4 && best.b == 5);
    assert_false(best.is_default);
  }
}

// A clock that falls by a third on the way puts what is measured early ahead, but for the
// reference.
static void drift_does_not_matter(void **state) {
  World w = {.best_by = 0.02, .drift = 0.005};
  Winner best = winner(*state, &w, SCHEDC_HALVING);
  assert_true(best.a == 4 && best.b == 5);
  assert_true(best.ratio > 0.9 && best.ratio < 0.95);  // 0.98 / 1.06, but for the drift in a turn
}

// In the finals some turns are out of line, as a cool chip's first one: that is no noise. Where all
// are scattered, the same gain is less than the noise.
static schedc_candidate found_with(Fixture *f, const double *turn, schedc_space **space,
                                   schedc_tuner **tuner) {
  schedc_candidate best = SCHEDC_CANDIDATE_INIT;
  unsigned finals = 0;
  *tuner = open_tuner(f, space, SCHEDC_HALVING);
  for (;;) {
    schedc_trial t = SCHEDC_TRIAL_INIT;
    schedc_outcome out = SCHEDC_OUTCOME_INIT;
    schedc_tuner_ask(*tuner, &t);
    if (t.kind == SCHEDC_TRIAL_DONE) break;
    bool other = value(&t.point, "a", 2) == 4;
    out.ms = (other ? 0.96 : 1) * (t.is_final && other ? turn[finals++ / 3] : 1);
    assert_int_equal(schedc_tuner_tell(*tuner, &t, &out), SCHEDC_OK);
  }
  assert_int_equal(schedc_tuner_best(*tuner, &best), SCHEDC_OK);
  return best;
}

static void noise_is_of_most_turns(void **state) {
  const double once[] = {1.2, 1, 1.003, 0.997, 1}, scattered[] = {1.05, 0.95, 1, 0.96, 1.04};
  for (int is_scattered = 0; is_scattered < 2; is_scattered++) {
    schedc_space *space;
    schedc_tuner *tuner;
    schedc_candidate best = found_with(*state, is_scattered ? scattered : once, &space, &tuner);
    assert_int_equal(best.is_default, is_scattered);
    schedc_tuner_free(tuner);
    schedc_space_free(space);
  }
}

// The default, a = 2 and b = 1, takes 1.06.
static void ties_go_to_the_default(void **state) {
  schedc_space *space;
  schedc_tuner *tuner = open_tuner(*state, &space, SCHEDC_HALVING);
  schedc_candidate best = SCHEDC_CANDIDATE_INIT;
  for (;;) {
    schedc_trial t = SCHEDC_TRIAL_INIT;
    schedc_outcome out = SCHEDC_OUTCOME_INIT;
    schedc_tuner_ask(tuner, &t);
    if (t.kind == SCHEDC_TRIAL_DONE) break;
    out.ms = value(&t.point, "a", 2) == 4 ? 0.998 : 1;
    assert_int_equal(schedc_tuner_tell(tuner, &t, &out), SCHEDC_OK);
  }
  assert_int_equal(schedc_tuner_best(tuner, &best), SCHEDC_OK);
  assert_true(best.is_default);
  is_point(&best, 2, 1);
  schedc_tuner_free(tuner);
  schedc_space_free(space);
}

static void what_is_wrong_cannot_win(void **state) {
  World w = {.best_by = 0.02, .wrong_a = 4};
  Winner best = winner(*state, &w, SCHEDC_HALVING);
  assert_int_not_equal(best.a, 4);
}

static void what_fails_is_not_asked_for_again(void **state) {
  World w = {.best_by = 0.02, .fail_a = 2};  // with the default
  schedc_space *space;
  schedc_tuner *tuner = open_tuner(*state, &space, SCHEDC_HALVING);
  play(tuner, &w);
  schedc_candidate c = SCHEDC_CANDIDATE_INIT;
  unsigned failed = 0;
  for (size_t i = 0; schedc_tuner_at(tuner, i, &c) == SCHEDC_OK; i++) {
    if (i == 0) is_point(&c, 4, 5);
    assert_int_equal(c.failed, value(&c.point, "a", 2) == 2);
    failed += c.failed != 0;
    if (c.failed) assert_string_equal(c.code, "G.spill");
  }
  assert_int_equal(failed, 6);
  schedc_tuner_free(tuner);
  schedc_space_free(space);
}

// The order is that of what has been told, whenever it was looked at before.
static void ranks_are_of_now(void **state) {
  schedc_space *space;
  schedc_tuner *tuner = open_tuner(*state, &space, SCHEDC_HALVING);
  schedc_trial t = SCHEDC_TRIAL_INIT;
  schedc_outcome out = SCHEDC_OUTCOME_INIT;
  schedc_candidate c = SCHEDC_CANDIDATE_INIT;
  schedc_tuner_ask(tuner, &t);
  assert_int_equal(schedc_tuner_at(tuner, 0, &c), SCHEDC_OK);
  out.status = SCHEDC_EINPUT;
  schedc_tuner_tell(tuner, &t, &out);
  assert_int_equal(schedc_tuner_at(tuner, PROGRAMS - 1, &c), SCHEDC_OK);
  assert_int_equal(c.program, t.program);
  schedc_tuner_free(tuner);
  schedc_space_free(space);
}

static void what_is_lost_is_asked_for_again(void **state) {
  World w = {.best_by = 0.02, .lose_every = 3};
  schedc_space *space;
  schedc_tuner *tuner = open_tuner(*state, &space, SCHEDC_HALVING);
  schedc_candidate c = SCHEDC_CANDIDATE_INIT;
  play(tuner, &w);
  assert_true(w.lost > 10);
  for (size_t i = 0; schedc_tuner_at(tuner, i, &c) == SCHEDC_OK; i++) assert_true(c.rungs > 0);
  assert_int_equal(schedc_tuner_best(tuner, &c), SCHEDC_OK);
  is_point(&c, 4, 5);
  schedc_tuner_free(tuner);
  schedc_space_free(space);
}

// Four at a time, answered backwards.
static void trials_may_be_out_together(void **state) {
  schedc_space *space;
  schedc_tuner *tuner = open_tuner(*state, &space, SCHEDC_HALVING);
  World w = {.best_by = 0.02};
  for (bool done = false; !done;) {
    schedc_trial t[4];
    size_t n = 0;
    for (; n < 4; n++) {
      t[n] = (schedc_trial)SCHEDC_TRIAL_INIT;
      schedc_tuner_ask(tuner, &t[n]);
      done = t[n].kind == SCHEDC_TRIAL_DONE;
      if (done || t[n].kind == SCHEDC_TRIAL_WAIT) break;
    }
    assert_true(n || done);
    while (n--) {
      schedc_outcome out = answer(&w, &t[n]);
      assert_int_equal(schedc_tuner_tell(tuner, &t[n], &out), SCHEDC_OK);
    }
  }
  schedc_candidate best = SCHEDC_CANDIDATE_INIT;
  assert_int_equal(schedc_tuner_best(tuner, &best), SCHEDC_OK);
  is_point(&best, 4, 5);
  schedc_tuner_free(tuner);
  schedc_space_free(space);
}

// After five measurements there is no more time: the finals are among what was measured.
static void hurried(void **state) {
  schedc_space *space;
  schedc_tuner *tuner = open_tuner(*state, &space, SCHEDC_HALVING);
  World w = {.best_by = 0.02};
  for (int i = 0; i < 5; i++) {
    schedc_trial t = SCHEDC_TRIAL_INIT;
    schedc_tuner_ask(tuner, &t);
    schedc_outcome out = answer(&w, &t);
    schedc_tuner_tell(tuner, &t, &out);
  }
  schedc_tuner_hurry(tuner);
  play(tuner, &w);
  schedc_candidate best = SCHEDC_CANDIDATE_INIT, c = SCHEDC_CANDIDATE_INIT;
  assert_int_equal(schedc_tuner_best(tuner, &best), SCHEDC_OK);
  unsigned measured = 0;
  for (size_t i = 0; schedc_tuner_at(tuner, i, &c) == SCHEDC_OK; i++) measured += c.rungs > 0;
  assert_int_equal(measured, 5);
  schedc_tuner_free(tuner);
  schedc_space_free(space);
}

// A line of a store: of another form of the schedule, at another shape, on another GPU.
static void won(Fixture *f, schedc_store *store, const char *unit, unsigned rank,
                const schedc_param *tuning, size_t n) {
  const schedc_dim shape = {"M", 4096};
  schedc_store_record r = SCHEDC_STORE_RECORD_INIT;
  r.schedule = "0123456789abcdef0123456789abcdef";
  r.unit = unit;
  r.dims = &shape;
  r.dim_count = 1;
  r.gpu = "another";
  r.schedc = "0.1.0";
  r.tuning = tuning;
  r.tuning_count = n;
  r.status = "verified";
  r.inputs = "normal";
  r.sustained_ms = 1;
  r.rank = rank;
  r.date = "2026-01-01T00:00:00Z";
  assert_int_equal(schedc_store_append(f->context, store, &r), SCHEDC_OK);
}

// Behind the default comes what a store names as winners, in the order of the store, under each
// strategy; each program once, and what is none here not at all.
static void winners_are_first(void **state) {
  Fixture *f = *state;
  char path[] = "/tmp/winners.XXXXXX";
  const schedc_param best[] = {{"a", "4"}, {"b", "5"}, {"dead", "1"}}, other[] = {{"b", "6"}},
                     gone[] = {{"a", "4"}, {"c", "5"}}, refused[] = {{"a", "1"}, {"b", "6"}},
                     usual[] = {{"a", "2"}};
  close(mkstemp(path));
  for (schedc_strategy s = SCHEDC_HALVING; s <= SCHEDC_MODEL; s++) {
    schedc_store *store;
    schedc_tuner *tuner;
    schedc_tuner_options options = SCHEDC_TUNER_OPTIONS_INIT;
    schedc_space *space = open_space(f, SPACE, NULL, NULL, NULL, 0);
    assert_int_equal(schedc_store_open(&store, f->context, path), SCHEDC_OK);
    if (s == SCHEDC_HALVING) {
      won(f, store, "k", 1, gone, 2);
      won(f, store, "k", 2, (const schedc_param[]){{"a", "5"}}, 1);
      won(f, store, "another", 1, (const schedc_param[]){{"a", "5"}}, 1);
      won(f, store, "k", 1, refused, 2);
      won(f, store, "k", 1, usual, 1);
      won(f, store, "k", 1, best, 3);
      won(f, store, "k", 1, other, 1);
      won(f, store, "k", 1, best, 2);
    }
    options.strategy = s;
    options.top = 3;
    options.between = 0;
    options.winners = store;
    assert_int_equal(schedc_tuner_new(&tuner, f->context, space, &options), SCHEDC_OK);
    const int expected[3][2] = {{2, 1}, {4, 5}, {2, 6}};
    for (int i = 0; i < 3; i++) {
      schedc_trial t = SCHEDC_TRIAL_INIT;
      schedc_outcome out = SCHEDC_OUTCOME_INIT;
      out.ms = 1;
      assert_int_equal(schedc_tuner_ask(tuner, &t), SCHEDC_OK);
      assert_int_equal(value(&t.point, "a", 2), expected[i][0]);
      assert_int_equal(value(&t.point, "b", 1), expected[i][1]);
      assert_int_equal(schedc_tuner_tell(tuner, &t, &out), SCHEDC_OK);
    }
    schedc_tuner_free(tuner);
    schedc_store_close(store);
    schedc_space_free(space);
  }
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(points_are_folded_and_refused),
      TEST(the_fastest_wins),
      TEST(drift_does_not_matter),
      TEST(noise_is_of_most_turns),
      TEST(ties_go_to_the_default),
      TEST(what_is_wrong_cannot_win),
      TEST(what_fails_is_not_asked_for_again),
      TEST(ranks_are_of_now),
      TEST(what_is_lost_is_asked_for_again),
      TEST(trials_may_be_out_together),
      TEST(hurried),
      TEST(winners_are_first),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
