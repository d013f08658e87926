// measure.c - how long launches take, by events. The protocol: `cold` is the median over 3 rounds
// of a 150 ms pause, 5 launches to warm up and 20 that count; `sustained` the median of the last 80
// of 120 launches back to back, when power limits the clock. Jobs take turns, round by round, so
// that what changes with time (heat, clocks, neighbours) changes for all of them; figures are
// medians over the rounds.
#include <stdlib.h>
#include <time.h>

#include "runtime/cuda/gpu.h"

enum { COLD_ROUNDS = 3, WARM_UP = 5, COLD = 20, SUSTAINED = 120, SETTLING = 40, MAX_ROUNDS = 16 };
enum { NOT_READY = 600 };  // CUDA_ERROR_NOT_READY

// What the rounds of a job gave.
typedef struct Samples {
  float cold[COLD_ROUNDS * COLD];
  float sustained[MAX_ROUNDS];
  float least, most;
  double clocks;  // sum of the readings
  u32 readings;
} Samples;

static int by_value(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

static float median(float *v, u32 n) {
  qsort(v, n, sizeof *v, by_value);
  return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static u32 common_divisor(u32 a, u32 b) { return b ? common_divisor(b, a % b) : a; }

u32 sc_gpu_turn(u32 round, u32 k, u32 n) {
  u32 stride = 1;
  for (u32 r = 0; r < round;) r += common_divisor(++stride, n) == 1;
  return (round + (u64)k * stride) % n;
}

// Reads the clock until the last launch is done, from when the first ones are.
static void watch_clock(const Driver *d, const Nvml *nvml, void *settled, void *last, Samples *s) {
  while (d->cuEventQuery(last) == NOT_READY && nvml->device) {
    unsigned mhz = d->cuEventQuery(settled) ? 0 : sc_nvml_clock(nvml);
    s->clocks += mhz;
    s->readings += mhz > 0;
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

// Milliseconds of each of n launches back to back.
static const char *clock_launches(Gpu *g, Sc *sc, GpuJob *j, u32 n, float *ms, const Nvml *nvml,
                                  Samples *s) {
  const Driver *d = &g->d;
  void *event[SUSTAINED + 1] = {0};
  const char *wrong = NULL;
  int e = 0;
  for (u32 i = 0; i <= n && !e; i++) e = d->cuEventCreate(&event[i], 0);
  if (!e) e = d->cuEventRecord(event[0], NULL);
  for (u32 i = 0; i < n && !wrong && !e; i++) {
    wrong = sc_gpu_enqueue(sc, j);
    e = d->cuEventRecord(event[i + 1], NULL);
  }
  if (nvml && !wrong && !e) watch_clock(d, nvml, event[SETTLING], event[n], s);
  int end = d->cuStreamSynchronize(NULL);
  if (!e) e = end;
  for (u32 i = 0; i < n && !wrong && !e; i++) {
    e = d->cuEventElapsedTime(&ms[i], event[i], event[i + 1]);
  }
  for (u32 i = 0; i <= n; i++)
    if (event[i]) d->cuEventDestroy(event[i]);
  return wrong ? wrong : e ? sc_gpu_failed(g, sc, "the kernel did not finish", e) : NULL;
}

static const char *cold_round(Gpu *g, Sc *sc, GpuJob *j, u32 round, Samples *s) {
  float ms[WARM_UP];
  nanosleep(&(struct timespec){0, 150000000}, NULL);
  const char *wrong = clock_launches(g, sc, j, WARM_UP, ms, NULL, NULL);
  return wrong ? wrong : clock_launches(g, sc, j, COLD, s->cold + COLD * round, NULL, NULL);
}

static const char *sustained_round(Gpu *g, Sc *sc, GpuJob *j, u32 round, const Nvml *nvml,
                                   Samples *s) {
  float ms[SUSTAINED];
  const char *wrong = clock_launches(g, sc, j, SUSTAINED, ms, nvml, s);
  if (wrong) return wrong;
  s->sustained[round] = median(ms + SETTLING, SUSTAINED - SETTLING);  // and sorts them
  if (!round || ms[SETTLING] < s->least) s->least = ms[SETTLING];
  if (!round || ms[SUSTAINED - 1] > s->most) s->most = ms[SUSTAINED - 1];
  return NULL;
}

const char *sc_gpu_measure(Gpu *g, Sc *sc, GpuJob *job, u32 n, u32 rounds, u32 *which) {
  Samples *s = NEWS(sc, Samples, n);
  Nvml nvml;
  const char *wrong = NULL;
  if (rounds > MAX_ROUNDS) rounds = MAX_ROUNDS;
  sc_nvml_open(&nvml, g->facts.bus);
  for (u32 r = 0; r < COLD_ROUNDS && !wrong; r++)
    for (u32 k = 0; k < n && !wrong; k++) {
      u32 i = *which = sc_gpu_turn(r, k, n);
      wrong = sc_gpu_go_on(g) ? cold_round(g, sc, &job[i], r, &s[i]) : "";
    }
  for (u32 r = 0; r < rounds && !wrong; r++)
    for (u32 k = 0; k < n && !wrong; k++) {
      u32 i = *which = sc_gpu_turn(r, k, n);
      wrong = sc_gpu_go_on(g) ? sustained_round(g, sc, &job[i], r, &nvml, &s[i]) : "";
    }
  sc_nvml_close(&nvml);
  for (u32 i = 0; i < n && !wrong; i++) {
    schedc_cuda_times *to = &job[i].times;
    to->cold_ms = median(s[i].cold, COLD_ROUNDS * COLD);
    to->sustained_ms = median(s[i].sustained, rounds);
    to->least_ms = s[i].least;
    to->most_ms = s[i].most;
    to->clock_mhz = s[i].readings ? s[i].clocks / s[i].readings : 0;
  }
  return wrong;
}
