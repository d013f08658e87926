// device.c - runs kernels on the GPU from tensors in host memory: load, copy in, launch, copy out,
// and again, to see whether the bits are the same. In: an open GPU and jobs. Out: their outputs,
// and times. Each call of the library makes the device's primary context current, and restores the
// context before it when it returns.
#include "runtime/cuda/gpu.h"

#include <string.h>

enum { NAN_BYTE = 0xff };

// ---- a job's tensors

static const Buf *buf_of(const GpuJob *j, u32 tensor) {
  return sc_tabled(j->k, &j->loaded.tabled, tensor);
}

static TensorRef *host_of(const GpuJob *j, u32 tensor) {
  return &j->host->buf[j->loaded.tabled.tensor[tensor]];
}

static u64 address(const GpuJob *j, u32 tensor) {
  u64 at;
  memcpy(&at, &j->tensor[tensor].data, sizeof at);
  return at;
}

static size_t storage(const GpuJob *j, u32 tensor) {
  return sc_tensor_bytes(buf_of(j, tensor), host_of(j, tensor));
}

static bool is_written(const GpuJob *j, u32 tensor) {
  return buf_of(j, tensor)->dir & SCHEDC_OUT && storage(j, tensor);
}

static const char *copy_in(Gpu *g, Sc *sc, GpuJob *j) {
  j->tensor = NEWS(sc, schedc_tensor, j->loaded.tensors + 1);
  for (u32 i = 0; i < j->loaded.tensors; i++) {
    const Buf *b = buf_of(j, i);
    const TensorRef *t = host_of(j, i);
    size_t n = storage(j, i);
    u64 at = 0;
    j->tensor[i] = (schedc_tensor){.name = b->name, .type = (schedc_type)b->elem, .rank = b->rank};
    memcpy(j->tensor[i].shape, t->shape, sizeof t->shape);
    memcpy(j->tensor[i].strides, t->stride, sizeof t->stride);
    int e = g->d.cuMemAlloc(&at, n ? n : 16);
    memcpy(&j->tensor[i].data, &at, sizeof at);
    if (!e && n) e = g->d.cuMemcpyHtoD(at, t->at, n);
    if (e) return sc_gpu_failed(g, sc, sc_printf(sc, "tensor '%s' (%zu bytes)", b->name, n), e);
  }
  return NULL;
}

// Loads the kernel, and fills its workspaces with NaN, so that a read before a write shows.
static const char *load(Gpu *g, Sc *sc, GpuJob *j) {
  j->loaded.sc = sc;
  const char *wrong = sc_load(&j->loaded, &g->d);
  if (wrong) return wrong;
  j->call = (LaunchCall){.tensor = j->tensor, .scalar = j->host->arg};
  const SclPlan *p = sc_plan(sc, &j->loaded, &j->call);
  if (!p) return "";
  j->call.workspace_bytes = p->bytes;
  int e = p->bytes ? g->d.cuMemAlloc(&j->call.workspace, p->bytes) : 0;
  if (!e && p->bytes) e = g->d.cuMemsetD8(j->call.workspace, NAN_BYTE, p->bytes);
  return e ? sc_gpu_failed(g, sc, sc_printf(sc, "the workspace (%zu bytes)", p->bytes), e) : NULL;
}

static const char *read_back(Gpu *g, Sc *sc, const GpuJob *j, u32 tensor, void *to) {
  int e = g->d.cuMemcpyDtoH(to, address(j, tensor), storage(j, tensor));
  const char *name = buf_of(j, tensor)->name;
  return e ? sc_gpu_failed(g, sc, sc_printf(sc, "tensor '%s' cannot be read back", name), e) : NULL;
}

static const char *copy_out(Gpu *g, Sc *sc, const GpuJob *j) {
  const char *wrong = NULL;
  for (u32 i = 0; i < j->loaded.tensors && !wrong; i++)
    if (is_written(j, i)) wrong = read_back(g, sc, j, i, host_of(j, i)->at);
  return wrong;
}

static void keep_before(Sc *sc, GpuJob *j) {
  j->before = NEWS(sc, void *, j->loaded.tensors + 1);
  for (u32 i = 0; i < j->loaded.tensors; i++) {
    if (!is_written(j, i)) continue;
    j->before[i] = sc_new(sc, storage(j, i));
    memcpy(j->before[i], host_of(j, i)->at, storage(j, i));
  }
}

// ---- launches

// Waits for all launches. Waits of the kernel that were given up are reported rather than the
// driver's error that follows from them.
static const char *finish(Gpu *g, Sc *sc, GpuJob *j) {
  int e = g->d.cuStreamSynchronize(NULL);
  if (sc_report_waits(sc, &j->loaded) || (e && sc_report_model(sc, &j->loaded))) return "";
  if (!e) return NULL;
  // what comes from the host has been looked at there
  const bool made =
      e == CUDA_ERROR_LAUNCH_FAILED && j->loaded.tabled.table.checks && j->k->launch.n;
  return sc_gpu_failed(g, sc,
                       made ? "the kernel did not finish, or a list that a kernel of the sequence "
                              "makes for another is not as that one declares it"
                            : "the kernel did not finish",
                       e);
}

static const char *once(Gpu *g, Sc *sc, GpuJob *j) {
  const char *wrong = sc_gpu_enqueue(sc, j);
  return wrong ? wrong : finish(g, sc, j);
}

// Runs the kernel again from the same inputs, and compares the bits of its outputs with those of
// the first run.
static const char *repeat(Gpu *g, Sc *sc, GpuJob *j, void *room) {
  for (u32 i = 0; i < j->loaded.tensors; i++) {
    if (!is_written(j, i)) continue;
    int e = g->d.cuMemcpyHtoD(address(j, i), j->before[i], storage(j, i));
    if (e) return sc_gpu_failed(g, sc, sc_printf(sc, "tensor '%s'", buf_of(j, i)->name), e);
  }
  const char *wrong = once(g, sc, j);
  bool same = true;
  for (u32 i = 0; i < j->loaded.tensors && !wrong; i++) {
    if (!is_written(j, i) || j->unordered[j->loaded.tabled.tensor[i]]) continue;
    wrong = read_back(g, sc, j, i, room);
    same &= !wrong && memcmp(room, host_of(j, i)->at, storage(j, i)) == 0;
  }
  j->differing += !same;
  return wrong;
}

static const char *repeats_of(Gpu *g, Sc *sc, GpuJob *job, u32 n, u64 repeats, u32 *which) {
  const char *wrong = NULL;
  size_t most = 1;
  for (u32 i = 0; i < n; i++)
    for (u32 t = 0; t < job[i].loaded.tensors; t++)
      if (is_written(&job[i], t) && storage(&job[i], t) > most) most = storage(&job[i], t);
  void *room = sc_new(sc, most);
  for (u64 r = 1; r < repeats && !wrong; r++)
    for (u32 i = 0; i < n && !wrong; i++)
      wrong = sc_gpu_go_on(g) ? repeat(g, sc, &job[ *which = i], room) : "";
  return wrong;
}

static void release(Gpu *g, GpuJob *j) {
  for (u32 i = 0; j->tensor && i < j->loaded.tensors; i++) {
    if (j->tensor[i].data) g->d.cuMemFree(address(j, i));
  }
  if (j->call.workspace) g->d.cuMemFree(j->call.workspace);
  sc_unload(&j->loaded);
}

// The first run of a job: from its tensors to its outputs.
static const char *run_first(Gpu *g, Sc *sc, GpuJob *j) {
  if (!sc_gpu_go_on(g)) return "";
  const char *wrong = copy_in(g, sc, j);
  if (!wrong) wrong = load(g, sc, j);
  if (!wrong) wrong = once(g, sc, j);
  if (!wrong) wrong = copy_out(g, sc, j);
  j->ran = !wrong;
  return wrong;
}

static const char *run_all(Gpu *g, Sc *sc, GpuJob *job, u32 n, u64 repeats, u32 rounds,
                           u32 *which) {
  const char *wrong = NULL;
  for (u32 i = 0; i < n && !wrong; i++) {
    *which = i;
    if (repeats > 1) keep_before(sc, &job[i]);
    wrong = run_first(g, sc, &job[i]);
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
  volatile bool out_of_memory = false;
  if (setjmp(home)) out_of_memory = true;
  else wrong = run_all(g, sc, job, n, repeats, rounds, which);
  for (u32 i = 0; i < n; i++) release(g, &job[i]);
  g->d.cuCtxPopCurrent(&(void *){NULL});
  sc->unwind = outside;
  if (out_of_memory) sc_unwind(sc, sc->why);
  return wrong;
}
