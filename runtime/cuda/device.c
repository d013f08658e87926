// device.c - kernels on the GPU from tensors in host memory: build, copy in, launch, copy out;
// again, to see whether the bits are the same. In: an open GPU and jobs. Out: their outputs, and
// times. Each call of the library makes the device's primary context current and takes it away
// again.
#include "gpu.h"

#include <string.h>

enum { ATTR_SMS = 16 };

const char *sc_gpu_failed(Gpu *g, Sc *sc, const char *what, int e) {
  return sc_printf(sc, "%s: %s", what, sc_driver_error(&g->d, e));
}

// ---- the device

const char *sc_gpu_open(Gpu *g) {
  const char *wrong = sc_driver_open(&g->sc, &g->d);
  if (wrong) return wrong;
  int n = 0, e = g->d.cuDeviceGetCount(&n);
  if (e || !n) return "no CUDA device";
  e = g->d.cuDeviceGet(&g->device, 0);
  if (!e) e = g->d.cuDeviceGetName(g->name, sizeof g->name, g->device);
  if (!e) e = g->d.cuDeviceGetPCIBusId(g->bus, sizeof g->bus, g->device);
  if (!e) e = g->d.cuDeviceGetAttribute(&g->sms, ATTR_SMS, g->device);
  if (!e) e = g->d.cuDriverGetVersion(&g->version);
  if (!e) e = g->d.cuDevicePrimaryCtxRetain(&g->context, g->device);
  return e ? sc_gpu_failed(g, &g->sc, "the CUDA device does not start", e) : NULL;
}

void sc_gpu_close(Gpu *g) {
  if (g->context) g->d.cuDevicePrimaryCtxRelease(g->device);
  g->context = NULL;
  sc_driver_close(&g->d);
}

// ---- a job's kernels

schedc_status sc_gpu_build(Sc *sc, GpuJob *j) {
  const Kernel *k = j->k;
  j->steps = k->launch.n ? k->launch.n : 1;
  j->step = NEWS(sc, GpuStep, j->steps);
  for (u32 i = 0; i < j->steps; i++) {
    GpuStep *s = &j->step[i];
    Built built;
    s->k = k->launch.n ? k->launch.at[i].kernel : k;
    s->text = sc_cuda(sc, s->k, &(CudaOptions){0});
    if (!s->text) return SCHEDC_EINPUT;
    schedc_status status = sc_build(sc, s->k, s->text, TARGET_CUBIN, &(BuildOptions){0}, &built);
    if (status) return status;
    s->code = built.code.at;
  }
  return SCHEDC_OK;
}

static const char *load(Gpu *g, Sc *sc, GpuJob *j) {
  for (u32 i = 0; i < j->steps; i++) {
    GpuStep *s = &j->step[i];
    s->b = j->k->launch.n ? sc_bind_launch(sc, &j->dev, &j->k->launch.at[i]) : &j->dev;
    if (!s->b) return "a launch of the sequence cannot be bound";
    const char *wrong = sc_load(sc, &g->d, s->k, s->text, s->code, &s->loaded);
    if (wrong) return wrong;
  }
  return NULL;
}

// ---- a job's tensors

static u64 address(const Binding *b, u32 buf) {
  u64 at;
  memcpy(&at, &b->buf[buf].at, sizeof at);
  return at;
}

static size_t storage(const GpuJob *j, u32 buf) {
  const Buf *b = &j->k->buf.at[buf];
  const TensorRef *t = &j->host->buf[buf];
  i64 n = 1;
  for (u32 d = 0; d < b->rank; d++) {
    if (t->shape[d] <= 0) return 0;
    n += (t->shape[d] - 1) * t->stride[d];
  }
  return (size_t)n * sc_elem[b->elem].bytes;
}

static bool is_written(const GpuJob *j, u32 buf) {
  const Buf *b = &j->k->buf.at[buf];
  return b->space == SP_TENSOR && !b->workspace && b->dir & SCHEDC_OUT && storage(j, buf);
}

static const char *copy_in(Gpu *g, Sc *sc, GpuJob *j) {
  j->dev = *j->host;
  j->dev.buf = NEWS(sc, TensorRef, j->k->buf.n);
  for (u32 i = 0; i < j->k->buf.n; i++) {
    const Buf *b = &j->k->buf.at[i];
    j->dev.buf[i] = j->host->buf[i];
    j->dev.buf[i].at = NULL;
    if (b->space != SP_TENSOR) continue;
    size_t n = storage(j, i);
    u64 at = 0;
    int e = g->d.cuMemAlloc(&at, n ? n : 16);
    memcpy(&j->dev.buf[i].at, &at, sizeof at);
    if (!e && n && j->host->buf[i].at) e = g->d.cuMemcpyHtoD(at, j->host->buf[i].at, n);
    if (e) return sc_gpu_failed(g, sc, sc_printf(sc, "tensor '%s' (%zu bytes)", b->name, n), e);
  }
  return NULL;
}

static const char *read_back(Gpu *g, Sc *sc, const GpuJob *j, u32 buf, void *to) {
  int e = g->d.cuMemcpyDtoH(to, address(&j->dev, buf), storage(j, buf));
  return e ? sc_gpu_failed(
                 g, sc, sc_printf(sc, "tensor '%s' cannot be read back", j->k->buf.at[buf].name), e)
           : NULL;
}

static const char *copy_out(Gpu *g, Sc *sc, const GpuJob *j) {
  const char *wrong = NULL;
  for (u32 i = 0; i < j->k->buf.n && !wrong; i++)
    if (is_written(j, i)) wrong = read_back(g, sc, j, i, j->host->buf[i].at);
  return wrong;
}

static void keep_before(Sc *sc, GpuJob *j) {
  j->before = NEWS(sc, void *, j->k->buf.n);
  for (u32 i = 0; i < j->k->buf.n; i++) {
    if (!is_written(j, i)) continue;
    j->before[i] = sc_new(sc, storage(j, i));
    memcpy(j->before[i], j->host->buf[i].at, storage(j, i));
  }
}

// ---- launches

// Workspaces that start at zero, then every kernel in order.
const char *sc_gpu_enqueue(Gpu *g, Sc *sc, const GpuJob *j) {
  for (u32 i = 0; i < j->k->buf.n; i++) {
    const Buf *b = &j->k->buf.at[i];
    if (!b->workspace || !b->zeroed) continue;
    int e = g->d.cuMemsetD8Async(address(&j->dev, i), 0, storage(j, i), NULL);
    if (e) return sc_gpu_failed(g, sc, "a workspace cannot be set to zero", e);
  }
  for (u32 i = 0; i < j->steps; i++) {
    const char *wrong = sc_launch(sc, &g->d, &j->step[i].loaded, j->step[i].b, NULL);
    if (wrong) return wrong;
  }
  return NULL;
}

static const char *once(Gpu *g, Sc *sc, const GpuJob *j) {
  const char *wrong = sc_gpu_enqueue(g, sc, j);
  int e = wrong ? 0 : g->d.cuStreamSynchronize(NULL);
  return e ? sc_gpu_failed(g, sc, "the kernel did not finish", e) : wrong;
}

// From the same start: are the outputs the first run's bits?
static const char *repeat(Gpu *g, Sc *sc, GpuJob *j, void *room) {
  for (u32 i = 0; i < j->k->buf.n; i++) {
    int e =
        is_written(j, i) ? g->d.cuMemcpyHtoD(address(&j->dev, i), j->before[i], storage(j, i)) : 0;
    if (e) return sc_gpu_failed(g, sc, sc_printf(sc, "tensor '%s'", j->k->buf.at[i].name), e);
  }
  const char *wrong = once(g, sc, j);
  bool same = true;
  for (u32 i = 0; i < j->k->buf.n && !wrong; i++) {
    if (!is_written(j, i)) continue;
    wrong = read_back(g, sc, j, i, room);
    same &= !wrong && memcmp(room, j->host->buf[i].at, storage(j, i)) == 0;
  }
  j->differing += !same;
  return wrong;
}

static const char *repeats_of(Gpu *g, Sc *sc, GpuJob *job, u32 n, u64 repeats, u32 *which) {
  const char *wrong = NULL;
  size_t most = 1;
  for (u32 i = 0; i < n; i++)
    for (u32 b = 0; b < job[i].k->buf.n; b++)
      if (is_written(&job[i], b) && storage(&job[i], b) > most) most = storage(&job[i], b);
  void *room = sc_new(sc, most);
  for (u64 r = 1; r < repeats && !wrong; r++)
    for (u32 i = 0; i < n && !wrong; i++) wrong = repeat(g, sc, &job[ *which = i], room);
  return wrong;
}

static void release(Gpu *g, GpuJob *j) {
  for (u32 i = 0; j->dev.buf && i < j->k->buf.n; i++) {
    if (j->k->buf.at[i].space == SP_TENSOR && j->dev.buf[i].at) g->d.cuMemFree(address(&j->dev, i));
  }
  for (u32 i = 0; j->step && i < j->steps; i++) {
    if (j->step[i].loaded.counter) g->d.cuMemFree(j->step[i].loaded.counter);
    if (j->step[i].loaded.module) g->d.cuModuleUnload(j->step[i].loaded.module);
  }
}

static const char *run_all(Gpu *g, Sc *sc, GpuJob *job, u32 n, u64 repeats, u32 rounds,
                           u32 *which) {
  const char *wrong = NULL;
  for (u32 i = 0; i < n && !wrong; i++) {
    *which = i;
    if (repeats > 1) keep_before(sc, &job[i]);
    wrong = copy_in(g, sc, &job[i]);
    if (!wrong) wrong = load(g, sc, &job[i]);
    if (!wrong) wrong = once(g, sc, &job[i]);
    if (!wrong) wrong = copy_out(g, sc, &job[i]);
  }
  if (!wrong && repeats > 1) wrong = repeats_of(g, sc, job, n, repeats, which);
  if (!wrong && rounds) wrong = sc_gpu_measure(g, sc, job, n, rounds, which);
  return wrong;
}

const char *sc_gpu_run(Gpu *g, Sc *sc, GpuJob *job, u32 n, u64 repeats, u32 rounds, u32 *which) {
  jmp_buf home, *outside = sc->unwind;
  *which = 0;
  int e = g->d.cuCtxPushCurrent(g->context);
  if (e) return sc_gpu_failed(g, sc, "the CUDA context cannot be made current", e);
  const char *volatile wrong = NULL;
  sc->unwind = &home;
  volatile bool out_of_memory = setjmp(home);
  if (!out_of_memory) wrong = run_all(g, sc, job, n, repeats, rounds, which);
  for (u32 i = 0; i < n; i++) release(g, &job[i]);
  g->d.cuCtxPopCurrent(&(void *){NULL});
  sc->unwind = outside;
  if (out_of_memory) sc_unwind(sc, sc->why);
  return wrong;
}
