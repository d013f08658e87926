// device.c - a kernel on the GPU from tensors in host memory: build, copy in, launch, copy out; and the clock.
// The protocol of measurement: `cold` is the median over 3 rounds of a 150 ms pause, 5 launches to warm up and
// 20 that count; `sustained` the median of the last 80 of 120 launches back to back, when power limits the clock.
#include "gpu.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

// A kernel of the job, loaded and bound to device memory.
typedef struct Step {
  Loaded loaded;
  const Binding *b;
} Step;

typedef struct Job {
  Sc *sc;
  Driver d;
  const Kernel *k;  // a kernel or a sequence
  const Binding *host;
  Binding dev;      // the same with device addresses
  Step *step;       // in launch order
  u32 steps;
  void *context;
  const char *log;
} Job;

static u64 address(const Binding *b, u32 buf) {
  u64 at;
  memcpy(&at, &b->buf[buf].at, sizeof at);
  return at;
}

static size_t storage(const Buf *b, const TensorRef *t) {
  i64 n = 1;
  for (u32 d = 0; d < b->rank; d++) {
    if (t->shape[d] <= 0) return 0;
    n += (t->shape[d] - 1) * t->stride[d];
  }
  return (size_t)n * sc_elem[b->elem].bytes;
}

static const char *failed(Job *j, const char *what, int e) { return sc_printf(j->sc, "%s: %s", what, sc_driver_error(&j->d, e)); }

static const char *start(Job *j) {
  const char *wrong = sc_driver_open(j->sc, &j->d);
  if (wrong) return wrong;
  int n = 0, device, e;
  if ((e = j->d.cuDeviceGetCount(&n)) || !n) return "no CUDA device";
  if ((e = j->d.cuDeviceGet(&device, 0)) || (e = j->d.cuDevicePrimaryCtxRetain(&j->context, device)) ||
      (e = j->d.cuCtxPushCurrent(j->context))) {
    return failed(j, "the CUDA device does not start", e);
  }
  return NULL;
}

static const char *build(Job *j, const Kernel *k, Step *s) {
  Built built;
  const CudaText *text = sc_cuda(j->sc, k);
  if (sc_build(j->sc, k, text, TARGET_CUBIN, &(BuildOptions){0}, &built)) return "";  // it has been reported
  j->log = j->log ? sc_printf(j->sc, "%s%s", j->log, built.code.log) : built.code.log;
  return sc_load(j->sc, &j->d, k, text, built.code.at, &s->loaded);
}

static const char *copy_in(Job *j) {
  j->dev = *j->host;
  j->dev.buf = NEWS(j->sc, TensorRef, j->k->buf.n);
  for (u32 i = 0; i < j->k->buf.n; i++) {
    const Buf *b = &j->k->buf.at[i];
    j->dev.buf[i] = j->host->buf[i];
    j->dev.buf[i].at = NULL;
    if (b->space != SP_TENSOR) continue;
    size_t n = storage(b, &j->host->buf[i]);
    u64 at = 0;
    int e = j->d.cuMemAlloc(&at, n ? n : 16);
    if (!e && n && j->host->buf[i].at) e = j->d.cuMemcpyHtoD(at, j->host->buf[i].at, n);
    if (e) return failed(j, sc_printf(j->sc, "tensor '%s' (%zu bytes)", b->name, n), e);
    memcpy(&j->dev.buf[i].at, &at, sizeof at);
  }
  return NULL;
}

static const char *prepare(Job *j) {
  const Kernel *k = j->k;
  j->steps = k->launch.n ? k->launch.n : 1;
  j->step = NEWS(j->sc, Step, j->steps);
  for (u32 i = 0; i < j->steps; i++) {
    j->step[i].b = k->launch.n ? sc_bind_launch(j->sc, &j->dev, &k->launch.at[i]) : &j->dev;
    if (!j->step[i].b) return "a launch of the sequence cannot be bound";
    const char *wrong = build(j, k->launch.n ? k->launch.at[i].kernel : k, &j->step[i]);
    if (wrong) return wrong;
  }
  return NULL;
}

static const char *copy_out(Job *j) {
  for (u32 i = 0; i < j->k->buf.n; i++) {
    const Buf *b = &j->k->buf.at[i];
    if (b->space != SP_TENSOR || b->workspace || !(b->dir & SCHEDC_OUT)) continue;
    size_t n = storage(b, &j->host->buf[i]);
    int e = n ? j->d.cuMemcpyDtoH(j->host->buf[i].at, address(&j->dev, i), n) : 0;
    if (e) return failed(j, sc_printf(j->sc, "tensor '%s' cannot be read back", b->name), e);
  }
  return NULL;
}

// One run: workspaces that start at zero, then every kernel in order.
static const char *enqueue(Job *j) {
  for (u32 i = 0; i < j->k->buf.n; i++) {
    const Buf *b = &j->k->buf.at[i];
    if (b->workspace && b->zeroed) j->d.cuMemsetD8Async(address(&j->dev, i), 0, storage(b, &j->host->buf[i]), NULL);
  }
  for (u32 i = 0; i < j->steps; i++) {
    const char *wrong = sc_launch(j->sc, &j->d, &j->step[i].loaded, j->step[i].b, NULL);
    if (wrong) return wrong;
  }
  return NULL;
}

static const char *once(Job *j) {
  const char *wrong = enqueue(j);
  if (wrong) return wrong;
  int e = j->d.cuStreamSynchronize(NULL);
  return e ? failed(j, "the kernel did not finish", e) : NULL;
}

static int by_value(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

static float median(float *v, u32 n) {
  qsort(v, n, sizeof *v, by_value);
  return v[n / 2];
}

enum { MAX_LAUNCHES = 120 };

// Milliseconds of each of n launches back to back.
static const char *clock_launches(Job *j, u32 n, float *ms) {
  void *event[MAX_LAUNCHES + 1];
  const char *wrong = NULL;
  for (u32 i = 0; i <= n; i++) j->d.cuEventCreate(&event[i], 0);
  j->d.cuEventRecord(event[0], NULL);
  for (u32 i = 0; i < n && !wrong; i++) {
    wrong = enqueue(j);
    j->d.cuEventRecord(event[i + 1], NULL);
  }
  int e = j->d.cuStreamSynchronize(NULL);
  if (!wrong && e) wrong = failed(j, "the kernel did not finish", e);
  for (u32 i = 0; i < n && !wrong; i++) j->d.cuEventElapsedTime(&ms[i], event[i], event[i + 1]);
  for (u32 i = 0; i <= n; i++) j->d.cuEventDestroy(event[i]);
  return wrong;
}

static const char *measure(Job *j, schedc_cuda_times *out) {
  float ms[MAX_LAUNCHES], rounds[60];
  for (u32 r = 0; r < 3; r++) {
    nanosleep(&(struct timespec){0, 150000000}, NULL);
    const char *wrong = clock_launches(j, 5, ms);
    if (!wrong) wrong = clock_launches(j, 20, rounds + 20 * r);
    if (wrong) return wrong;
  }
  out->cold_ms = median(rounds, 60);
  const char *wrong = clock_launches(j, 120, ms);
  if (wrong) return wrong;
  out->sustained_ms = median(ms + 40, 80);
  out->least_ms = ms[40];  // median() sorted them
  out->most_ms = ms[119];
  return NULL;
}

static void finish(Job *j) {
  for (u32 i = 0; j->dev.buf && i < j->k->buf.n; i++) {
    if (j->k->buf.at[i].space == SP_TENSOR && j->dev.buf[i].at) j->d.cuMemFree(address(&j->dev, i));
  }
  for (u32 i = 0; i < j->steps; i++) {
    if (j->step[i].loaded.counter) j->d.cuMemFree(j->step[i].loaded.counter);
    if (j->step[i].loaded.module) j->d.cuModuleUnload(j->step[i].loaded.module);
  }
  if (!j->context) return;
  j->d.cuCtxPopCurrent(&(void *){NULL});
  j->d.cuDevicePrimaryCtxRelease(0);
}

const char *sc_gpu_run(Sc *sc, const Kernel *k, const Binding *b, schedc_cuda_times *times, const char **log) {
  Job j = {.sc = sc, .k = k, .host = b};
  const char *wrong = start(&j);
  if (!wrong) wrong = copy_in(&j);
  if (!wrong) wrong = prepare(&j);
  if (!wrong) wrong = once(&j);
  if (!wrong) wrong = copy_out(&j);
  if (!wrong && times) wrong = measure(&j, times);
  *log = j.log;
  finish(&j);
  return wrong;
}
