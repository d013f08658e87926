// duration.c - measures how long a launch takes, by launches back to back for about as long as is
// allowed. One launch warms up, and a second one tells how many there is time for. These are
// enqueued in groups, with an event between two groups. Of a short measurement the time is the
// median of the groups, so that a moment in which the host is slow does not matter. Where launches
// are to settle first, the time is the mean of all that count, for the clock moves meanwhile:
// measure.c says how. Those that settle are at most half of all.
#include "runtime/cuda/gpu.h"

#include <math.h>

enum { GROUPS = 12, MOST = 1 << 19 };

static bool good(const Duration *t) { return !t->status && !t->error; }

static void enqueue(Duration *t, u64 n) {
  for (u64 i = 0; i < n && !t->status; i++) t->status = t->launch(t->user);
}

bool sc_gpu_clock(Duration *t, u32 groups, u64 n, u32 first, double *ms) {
  const Driver *d = t->d;
  void *event[SC_CLOCKED + 1] = {0};
  t->status = SCHEDC_OK;
  t->error = 0;
  for (u32 i = 0; i <= groups && good(t); i++) t->error = d->cuEventCreate(&event[i], 0);
  if (good(t)) t->error = d->cuEventRecord(event[0], t->stream);
  for (u32 i = 0; i < groups && good(t); i++) {
    enqueue(t, n);
    if (good(t)) t->error = d->cuEventRecord(event[i + 1], t->stream);
  }
  if (good(t) && t->watch) t->watch(t->watcher, event[first], event[groups]);
  int end = d->cuStreamSynchronize(t->stream);
  if (!t->error) t->error = end;
  for (u32 i = 0; i < groups && good(t); i++) {
    float took = 0;
    t->error = d->cuEventElapsedTime(&took, event[i], event[i + 1]);
    ms[i] = took / (double)n;
  }
  for (u32 i = 0; i <= groups; i++)
    if (event[i]) d->cuEventDestroy(event[i]);
  return good(t);
}

static double mean(double *v, u32 n) {
  double sum = 0;
  for (u32 i = 0; i < n; i++) sum += v[i];
  return sum / n;
}

bool sc_gpu_duration(Duration *t) {
  enum { NO_TIME_MS = 1000000 };
  double ms[GROUPS + 1] = {0}, least = 1.0 / NO_TIME_MS;
  t->status = SCHEDC_OK;
  t->error = 0;
  enqueue(t, 1);
  if (!good(t) || !sc_gpu_clock(t, 1, 1, 0, ms)) return false;
  double one = ms[0] > least ? ms[0] : least, many = t->budget_ms / one;
  u64 n = many > MOST ? MOST : (u64)many;
  t->ms = one;
  t->launches = 1;
  if (n < 2) return true;
  u64 each = (n + GROUPS - 1) / GROUPS;
  u32 groups = (u32)(n / each), first = groups > 2;
  if (t->settle_ms > 0) {
    u64 settling = (u64)fmin(ceil(t->settle_ms / one), (double)(n / 2));
    first = (u32)((settling + each - 1) / each);
    groups = first + (u32)((n - settling + each - 1) / each);
  }
  if (!sc_gpu_clock(t, groups, each, first, ms)) return false;
  t->launches = each * (groups - first);
  t->ms = fmax((t->settle_ms > 0 ? mean : sc_median)(ms + first, groups - first), least);
  return true;
}
