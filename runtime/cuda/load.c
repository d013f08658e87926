// load.c - a kernel or sequence, built and loaded on the current CUDA context. In: IR after
// `place`. Out: modules, and all the memory that launches will need, so that they allocate nothing.
// The context is found and left current.
#include "runtime/cuda/gpu.h"

#include <string.h>

enum {
  ATTR_SMS = 16,
  ATTR_MAJOR = 75,
  ATTR_MINOR = 76,
  FUNC_MAX_DYNAMIC_SHARED = 8,
  HOST_PORTABLE_MAPPED = 3
};

static const char *failed(Loaded *l, const char *what, int e) {
  return sc_printf(l->sc, "%s: %s", what, sc_driver_error(l->d, e));
}

// The current context, which must be on a Hopper GPU.
static const char *find_device(Loaded *l) {
  const Driver *d = l->d;
  int device, major = 0, minor = 0, sms = 0, e = d->cuCtxGetCurrent(&l->context);
  if (e) return failed(l, "the CUDA context cannot be asked for", e);
  if (!l->context)
    return "no CUDA context is current: make one first (cuCtxSetCurrent, cudaFree(0), "
           "torch.cuda.init())";
  if ((e = d->cuCtxGetDevice(&device)) ||
      (e = d->cuDeviceGetAttribute(&major, ATTR_MAJOR, device)) ||
      (e = d->cuDeviceGetAttribute(&minor, ATTR_MINOR, device)) ||
      (e = d->cuDeviceGetAttribute(&sms, ATTR_SMS, device))) {
    return failed(l, "the GPU cannot be asked what it is", e);
  }
  if (major != 9 || minor != 0) {
    return sc_printf(l->sc,
                     "this GPU has compute capability %d.%d: emitted code is for 9.0 (Hopper)",
                     major, minor);
  }
  l->sms = (u32)sms;
  return NULL;
}

// A kernel that the sequence launches twice is built and loaded once: the step that did; or NULL.
static const LoadedStep *same_before(const Loaded *l, u32 i) {
  for (u32 j = 0; j < i; j++) {
    if (l->step[j].k == l->step[i].k) return &l->step[j];
  }
  return NULL;
}

static const CudaText *emit(Sc *sc, const Kernel *k, const CudaOptions *emission) {
  Compilation c = {.k = k, .emission = *emission};
  return sc_compile(sc, &c, "place", "cuda") ? c.cuda : NULL;
}

bool sc_emit_all(Sc *sc, const Kernel *k, const CudaOptions *emission, Loaded *l) {
  *l = (Loaded){.sc = sc, .k = k, .log = ""};
  l->tensor = NEWS(sc, u32, k->buf.n + 1);
  for (u32 i = 0; i < k->buf.n; i++) {
    if (k->buf.at[i].space == SP_TENSOR && !k->buf.at[i].workspace) l->tensor[l->tensors++] = i;
  }
  l->steps = k->launch.n ? k->launch.n : 1;
  l->step = NEWS(sc, LoadedStep, l->steps);
  for (u32 i = 0; i < l->steps; i++) {
    LoadedStep *s = &l->step[i];
    s->k = k->launch.n ? k->launch.at[i].kernel : k;
    s->launch = k->launch.n ? &k->launch.at[i] : NULL;
    const LoadedStep *same = same_before(l, i);
    if (same) s->text = same->text;
    else if (!(s->text = emit(sc, s->k, emission))) return false;
    s->arg_bytes = (sc_arg_bytes(s->k, s->text) + 15) / 16 * 16;
  }
  return true;
}

schedc_status sc_build_all(Sc *sc, const Kernel *k, const BuildOptions *options, Loaded *l) {
  if (!sc_emit_all(sc, k, &options->emission, l)) return SCHEDC_EINPUT;
  for (u32 i = 0; i < l->steps; i++) {
    LoadedStep *s = &l->step[i];
    Built built;
    if (same_before(l, i)) continue;
    schedc_status status = sc_build(sc, s->k, s->text, TARGET_CUBIN, options, &built);
    if (status) return status;
    s->code = built.code.at;
    l->log = sc_printf(sc, "%s%s", l->log, built.code.log);
  }
  return SCHEDC_OK;
}

// ---- loading

// Persistent and dynamic grids have as many CTAs as run at once, no more: they take turns, and a
// turn waits for the CTA that has it. Clusters may be fewer than the multiprocessors have room for,
// as each lies in one of their groups.
static int find_room(const Loaded *l, LoadedStep *s) {
  u32 ctas = sc_cluster(s->k);
  int n = 0;
  s->room = l->sms / ctas ? l->sms / ctas : 1;
  if (s->k->grid == GRID_PLAIN || ctas == 1) return 0;
  ClusterLaunch launch = {
      .grid = {ctas, 1, 1}, .block = {s->k->threads, 1, 1}, .shared = s->text->smem};
  int e = l->d->cuOccupancyMaxActiveClusters(&n, s->function, &launch);
  if (!e && n < (int)s->room) s->room = (u32)n;
  return e;
}

// The module is the first step's that has the kernel: it unloads it.
static const char *load_step(Loaded *l, u32 i) {
  LoadedStep *s = &l->step[i];
  const LoadedStep *same = same_before(l, i);
  if (same) return s->function = same->function, s->room = same->room, NULL;
  int e = l->d->cuModuleLoadData(&s->module, s->code);
  if (!e) e = l->d->cuModuleGetFunction(&s->function, s->module, s->text->name);
  if (!e) e = l->d->cuFuncSetAttribute(s->function, FUNC_MAX_DYNAMIC_SHARED, (int)s->text->smem);
  if (!e) e = find_room(l, s);
  if (!e && !s->room)
    return sc_printf(l->sc, "no cluster of kernel '%s', of %u CTAs, fits on this GPU", s->k->name,
                     sc_cluster(s->k));
  return e ? failed(l, sc_printf(l->sc, "kernel '%s' cannot be loaded", s->k->name), e) : NULL;
}

enum { DEVICE_BYTES = COUNTERS_AT + (STREAMS + CAPTURES) * COUNTER_BYTES };

// The driver sets memory behind whatever is on the default stream, and does not wait for it; the
// launch that comes next may be on a stream that does not wait either.
int sc_zero_counters(const Loaded *l) {
  int e = l->d->cuMemsetD8(l->device, 0, DEVICE_BYTES);
  return e ? e : l->d->cuStreamSynchronize(NULL);
}

static const char *device_memory(Loaded *l) {
  size_t words = 0;
  int e = l->d->cuMemAlloc(&l->device, DEVICE_BYTES);
  if (!e) e = sc_zero_counters(l);
  for (u32 i = 0; i < l->steps; i++) words += l->step[i].text->wait_words;
  if (e || !words) return e ? failed(l, "no memory on the GPU", e) : NULL;
  size_t bytes = words * 4;
  void *at;
  if ((e = l->d->cuMemHostAlloc(&at, bytes, HOST_PORTABLE_MAPPED)))
    return failed(l, "no pinned memory for --debug-waits", e);
  l->waits = at;
  memset(at, 0, bytes);
  e = l->d->cuMemHostGetDevicePointer(&l->waits_device, at, 0);
  return e ? failed(l, "the GPU does not see pinned memory", e) : NULL;
}

// Room for plans: maps aligned as the driver wants them.
static void plan_room(Loaded *l, LaunchPlan *p) {
  Sc *sc = l->sc;
  p->shape = NEWS(sc, i64, l->tensors * SC_MAX_RANK + 1);
  p->stride = NEWS(sc, i64, l->tensors * SC_MAX_RANK + 1);
  p->scalar = NEWS(sc, double, l->k->arg.n + 1);
  p->offset = NEWS(sc, size_t, l->k->buf.n + 1);
  p->step = NEWS(sc, StepPlan, l->steps);
  for (u32 i = 0; i < l->steps; i++) {
    const LoadedStep *s = &l->step[i];
    StepPlan *sp = &p->step[i];
    uintptr_t maps = (uintptr_t)sc_new(sc, sizeof(Map128) * (s->text->maps + 1));
    sp->map = (Map128 *)((maps + 63) / 64 * 64);
    sp->map_at = NEWS(sc, u64, s->text->maps + 1);
    sp->args = sc_new(sc, s->arg_bytes);
    sp->slot = NEWS(sc, ArgSlot, s->k->buf.n + s->k->turn.n + 2);
    sp->turn = NEWS(sc, size_t, s->k->turn.n + 1);
  }
}

static void launch_room(Loaded *l) {
  u32 maps = 0;
  for (u32 i = 0; i < l->steps; i++) {
    if (l->step[i].text->maps > maps) maps = l->step[i].text->maps;
  }
  l->param = NEWS(l->sc, void *, maps + 1);
  l->address = NEWS(l->sc, u64, l->k->buf.n + 1);
  for (u32 i = 0; i < PLANS; i++) plan_room(l, &l->plan[i]);
}

const char *sc_load(Loaded *l, const Driver *d) {
  l->d = d;
  const char *wrong = find_device(l);
  for (u32 i = 0; i < l->steps && !wrong; i++) wrong = load_step(l, i);
  if (!wrong) wrong = device_memory(l);
  if (!wrong) launch_room(l);
  return wrong;
}

void sc_unload(Loaded *l) {
  void *other;
  if (!l->context || l->d->cuCtxPushCurrent(l->context)) return;
  for (u32 i = 0; i < l->steps; i++) {
    if (l->step[i].module) l->d->cuModuleUnload(l->step[i].module);
  }
  if (l->device) l->d->cuMemFree(l->device);
  if (l->waits) l->d->cuMemFreeHost(l->waits);
  l->d->cuCtxPopCurrent(&other);
}
