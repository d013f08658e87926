// measure.c - measures how long launches take, by events. In: jobs that are loaded. Out: times,
// clock and power of each. The protocol: `cold` is the median over 3 rounds, each of a 150 ms
// pause, 5 launches to warm up and 20 that count. `sustained` is measured by launches back to back
// for two seconds, of which the first does not count (duration.c): power limits the clock then, and
// each program has its own clock. Jobs take turns, round by round, and each round begins with
// another job, so that what changes with time (heat, clocks, neighbours) changes for all of them.
// Figures are medians over the rounds.
//
// Why seconds: the limit of power holds for the mean of a second, and its control overshoots. On an
// H100 at its limit, after a pause or another program, the time of one and the same launch swings
// by a fifth, with a period of one second, and it still swings after eight of them. So means over
// whole seconds count, and before the sustained rounds all jobs together run for three
// seconds. bench/results/experiments.md has what was measured ("How a figure moves").
#include <time.h>

#include "runtime/cuda/gpu.h"

enum { COLD_ROUNDS = 3, WARM_UP = 5, COLD = SC_CLOCKED, MAX_ROUNDS = 16 };
enum { TURN_MS = 2000, SETTLING_MS = 1000, WARMING_MS = 3000 };
enum { NOT_READY = 600 };  // CUDA_ERROR_NOT_READY

// The measurements of a job, over its rounds.
typedef struct Samples {
  double cold[COLD_ROUNDS * COLD], sustained[MAX_ROUNDS];
  double least, most;
  double clocks, watts;  // sums of the readings
  u32 readings;
} Samples;

static u32 common_divisor(u32 a, u32 b) { return b ? common_divisor(b, a % b) : a; }

u32 sc_gpu_turn(u32 round, u32 k, u32 n) {
  u32 stride = 1;
  for (u32 r = 0; r < round;) r += common_divisor(++stride, n) == 1;
  return (round + (u64)k * stride) % n;
}

// A job's turn: what its launches, and the function that watches them, need.
typedef struct JobTurn {
  Gpu *g;
  Sc *sc;
  GpuJob *job;
  const Nvml *nvml;
  Samples *samples;
} JobTurn;

// Reads clock and power from the moment when the launches that do not count are done until the last
// one is.
static void watch(void *turn, void *settled, void *last) {
  const JobTurn *t = turn;
  const Driver *d = &t->g->d;
  while (d->cuEventQuery(last) == NOT_READY && t->nvml->device) {
    unsigned mhz = d->cuEventQuery(settled) ? 0 : sc_nvml_clock(t->nvml);
    t->samples->clocks += mhz;
    t->samples->watts += mhz ? sc_nvml_power(t->nvml) / 1000.0 : 0;
    t->samples->readings += mhz > 0;
    nanosleep(&(struct timespec){0, 200000}, NULL);
  }
}

bool sc_gpu_go_on(Gpu *g) {
  double part = g->steps ? (double)g->done++ / (double)g->steps : 0;
  if (g->progress && !g->stopped) g->stopped = g->progress(g->progress_user, part) != 0;
  return !g->stopped;
}

const char *sc_gpu_enqueue(Sc *sc, GpuJob *j) {
  return sc_launch(sc, &j->loaded, &j->call) ? "" : NULL;
}

static schedc_status launch(void *turn) {
  const JobTurn *t = turn;
  return sc_gpu_enqueue(t->sc, t->job) ? SCHEDC_EIO : SCHEDC_OK;
}

// What is wrong; "": a launch was refused, and a diagnostic says why.
static const char *failed(JobTurn *turn, const Duration *t) {
  return t->status ? "" : sc_gpu_failed(turn->g, turn->sc, "the kernel did not finish", t->error);
}

static const char *cold_round(JobTurn *turn, u32 round) {
  Duration t = {.d = &turn->g->d, .launch = launch, .user = turn};
  double ms[WARM_UP];
  nanosleep(&(struct timespec){0, 150000000}, NULL);
  bool good = sc_gpu_clock(&t, WARM_UP, 1, 0, ms) &&
              sc_gpu_clock(&t, COLD, 1, 0, turn->samples->cold + COLD * round);
  return good ? NULL : failed(turn, &t);
}

// Launches back to back for so many milliseconds. Returns NULL, or what is wrong.
static const char *go_on_for(JobTurn *turn, double ms, bool counts, Duration *t) {
  double part = turn->g->d.model_fault ? 0.05 : 1;  // the times of a model mean nothing
  *t = (Duration){.d = &turn->g->d,
                  .launch = launch,
                  .user = turn,
                  .budget_ms = ms * part,
                  .settle_ms = counts ? SETTLING_MS * part : 0,
                  .watch = counts ? watch : NULL,
                  .watcher = turn};
  return sc_gpu_duration(t) ? NULL : failed(turn, t);
}

static const char *sustained_round(JobTurn *turn, u32 round) {
  Samples *s = turn->samples;
  Duration t;
  const char *wrong = go_on_for(turn, TURN_MS, true, &t);
  if (wrong) return wrong;
  s->sustained[round] = t.ms;
  if (!round || t.ms < s->least) s->least = t.ms;
  if (!round || t.ms > s->most) s->most = t.ms;
  return NULL;
}

// Measures all jobs back to back: one round warms the chip up, then come the rounds that count.
static const char *sustain(Gpu *g, Sc *sc, GpuJob *job, u32 n, u32 rounds, u32 *which, Samples *s) {
  Nvml nvml;
  const char *wrong = NULL;
  sc_nvml_open(&nvml, g->facts.bus);
  for (u32 r = 0; r <= rounds && !wrong; r++)
    for (u32 k = 0; k < n && !wrong; k++) {
      u32 i = *which = sc_gpu_turn(r, k, n);
      JobTurn turn = {g, sc, &job[i], &nvml, &s[i]};
      Duration warming;
      if (!sc_gpu_go_on(g)) wrong = "";
      else if (!r) wrong = go_on_for(&turn, (double)WARMING_MS / n, false, &warming);
      else wrong = sustained_round(&turn, r - 1);
    }
  sc_nvml_close(&nvml);
  return wrong;
}

const char *sc_gpu_measure(Gpu *g, Sc *sc, GpuJob *job, u32 n, u32 rounds, u32 *which) {
  Samples *s = NEWS(sc, Samples, n);
  const char *wrong = NULL;
  if (rounds > MAX_ROUNDS) rounds = MAX_ROUNDS;
  for (u32 r = 0; r < COLD_ROUNDS && !wrong; r++)
    for (u32 k = 0; k < n && !wrong; k++) {
      u32 i = *which = sc_gpu_turn(r, k, n);
      wrong = sc_gpu_go_on(g) ? cold_round(&(JobTurn){g, sc, &job[i], NULL, &s[i]}, r) : "";
    }
  if (!wrong) wrong = sustain(g, sc, job, n, rounds, which, s);
  for (u32 i = 0; i < n && !wrong; i++) {
    schedc_cuda_times *to = &job[i].times;
    to->cold_ms = sc_median(s[i].cold, COLD_ROUNDS * COLD);
    to->sustained_ms = sc_median(s[i].sustained, rounds);
    to->least_ms = s[i].least;
    to->most_ms = s[i].most;
    to->clock_mhz = s[i].readings ? s[i].clocks / s[i].readings : 0;
    to->power_w = s[i].readings ? s[i].watts / s[i].readings : 0;
  }
  return wrong;
}
