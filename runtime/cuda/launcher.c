// launcher.c - launches a kernel or a sequence, in the library and in the C headers that it writes:
// the text of this file is part of each header, behind launcher.h, and is compiled there as C99 or
// C++ with the toolkit's cuda.h. In: a constant table (SclTable) that says what a launch needs, and
// the tensors and scalars of one launch. Out: a plan (SclPlan: tensor maps, blocks of arguments,
// grids), which is given to the driver; or a reason to refuse (SclRefusal), before anything is
// enqueued. What a schedule promises of lists is held against them on the GPU, in front of the
// kernel that promises it.
//
// Nothing is allocated once a kernel is loaded, neither on the host nor on the device. The library
// keeps its plans and changes the addresses in them; a header makes a new plan for each launch.
#ifndef SCHEDC_LAUNCHER
#include "runtime/cuda/gpu.h"

#include <string.h>

#define SCL_CU(kernel, call) ((kernel)->driver->call)
#endif

// ---- addresses

// A stream has a tile counter of its own, for what is launched on one runs in order; the one that
// has launched nothing for the longest time gives its counter away. The counter is 0 again when the
// launch has ended. What is captured has one for each launch, in turn: a graph may run beside any
// later launch, and its branches beside each other.
SCL_API CUresult scl_counter(SclKernel *k, CUstream stream, CUdeviceptr *counter) {
  CUstreamCaptureStatus capturing;
  unsigned long long id = 0;
  unsigned at = 0;
  CUresult e = SCL_CU(k, cuStreamIsCapturing(stream, &capturing));
  if (!e && capturing != CU_STREAM_CAPTURE_STATUS_NONE) {
    at = SCL_STREAMS + k->captured++ % SCL_CAPTURES;
  } else if (!e) {
    e = SCL_CU(k, cuStreamGetId(stream, &id));
    if (e) return e;
    for (unsigned i = 0; i < SCL_STREAMS && k->stream[at].used; i++) {
      if (k->stream[i].used && k->stream[i].id == id) {
        at = i;
        break;
      }
      if (k->stream[i].used < k->stream[at].used) at = i;
    }
    k->stream[at].id = id;
    k->stream[at].used = ++k->clock;
  }
  *counter = k->memory + SCL_COUNTERS_AT + (CUdeviceptr)at * SCL_COUNTER_BYTES;
  return e;
}

static inline CUresult scl_encode(const SclJob *j, unsigned map, CUdeviceptr at) {
  const SclMap *m = &j->table->map[map];
  const SclTensor *t = &j->table->tensor[m->tensor];
  const int64_t *const extents = j->plan->extent + m->tensor * SCL_RANK,
                       *strides = j->plan->stride + m->tensor * SCL_RANK;
  const int empty = j->plan->empty[m->tensor];
  const cuuint32_t step[5] = {1, 1, 1, 1, 1};
  cuuint64_t extent[5], stride[5];
  for (unsigned i = 0; i < 5; i++) {
    const int d = m->dim[i];
    extent[i] = 1;  // is never stepped over: its stride may be anything valid
    stride[i] = 16;
    if (d == SCL_PANEL) {
      stride[i] = (cuuint64_t)m->panel * t->bytes;
      if (!empty) extent[i] = (cuuint64_t)extents[t->rank - 1] / m->panel;
    } else if (d == SCL_PANEL_COLUMN) {
      if (!empty) extent[i] = m->panel;
    } else if (d >= 0 && extents[d] > 1 && !empty) {
      extent[i] = (cuuint64_t)extents[d];
      stride[i] = (cuuint64_t)strides[d] * t->bytes;
    }
  }
  return SCL_CU(j->kernel, cuTensorMapEncodeTiled(&j->plan->map[map], (CUtensorMapDataType)m->type,
                                                  5, (void *)(uintptr_t)at, extent, stride + 1,
                                                  m->box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                                  (CUtensorMapSwizzle)m->swizzle,
                                                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
}

// The address of one without elements is that of a stand-in for them.
static inline CUresult scl_put_map(const SclJob *j, unsigned map) {
  const SclMap *m = &j->table->map[map];
  CUdeviceptr at = j->plan->address[m->tensor];
  CUresult e = CUDA_SUCCESS;
  if (j->plan->empty[m->tensor]) at = j->kernel->memory + (m->written ? SCL_SINK_AT : SCL_ZEROS_AT);
  if (!j->plan->encoded[map]) e = scl_encode(j, map, at);
  else if (j->plan->encoded[map] != at)
    e = SCL_CU(j->kernel, cuTensorMapReplaceAddress(&j->plan->map[map], (void *)(uintptr_t)at));
  if (!e) j->plan->encoded[map] = at;
  return e;
}

static inline CUresult scl_put_slot(const SclJob *j, const SclSlot *slot, unsigned char *block) {
  CUdeviceptr at = 0;
  CUresult e = CUDA_SUCCESS;
  switch (slot->kind) {
    case SCL_PUT_ADDRESS: at = j->plan->address[slot->ref]; break;
    case SCL_PUT_COUNTER: e = scl_counter(j->kernel, j->call->stream, &at); break;
    case SCL_PUT_TURN: at = j->call->workspace + j->plan->turn[slot->ref]; break;
    case SCL_PUT_WAITS: at = j->kernel->waits + slot->ref; break;
    default: return e;
  }
  memcpy(block + slot->offset, &at, sizeof at);
  return e;
}

SCL_API SclRefusal scl_check_address(const SclJob *j, const SclUse *use) {
  const CUdeviceptr at = j->plan->address[use->tensor];
  if (j->plan->empty[use->tensor]) return scl_fine();
  if (!at) return scl_refuse(SCL_NO_DATA, 0, use->tensor, 0);
  return at % use->align ? scl_refuse(SCL_BAD_ADDRESS, 0, use->tensor, 0) : scl_fine();
}

static inline void scl_put_lists(const SclJob *j, unsigned check) {
  const SclCheck *c = &j->table->check[check];
  for (unsigned i = 0; i < c->lists; i++)
    j->plan->lists[check].list[i].at = j->plan->address[c->list[i].tensor];
}

static inline SclRefusal scl_put_step(const SclJob *j, unsigned step) {
  const SclTable *t = j->table;
  const SclStep *s = &t->step[step];
  SclRefusal r = scl_fine();
  for (unsigned i = s->use.from; i < s->use.to && !r.why; i++) r = scl_check_address(j, &t->use[i]);
  for (unsigned i = s->check.from; i < s->check.to; i++) scl_put_lists(j, i);
  for (unsigned i = s->slot.from; i < s->slot.to && !r.why && j->plan->tiles[step]; i++)
    r = scl_driver(SCL_DRIVER, 0, scl_put_slot(j, &t->slot[i], j->plan->block + s->block));
  for (unsigned i = s->map.from; i < s->map.to && !r.why && j->plan->tiles[step]; i++)
    r = scl_driver(SCL_NO_MAP, i, scl_put_map(j, i));
  r.step = step;
  return r;
}

// In every step, so that nothing is enqueued of a launch that is refused.
SCL_API SclRefusal scl_put_addresses(const SclJob *j) {
  const SclTable *t = j->table;
  SclPlan *p = j->plan;
  SclRefusal r = scl_fine();
  for (unsigned i = 0; i < t->given; i++) p->address[i] = p->empty[i] ? 0 : j->call->tensor[i].at;
  for (unsigned i = t->given; i < t->tensors; i++)
    p->address[i] = j->call->workspace + p->workspace_at[i];
  if (p->bytes && (!j->call->workspace || j->call->workspace_bytes < p->bytes))
    return scl_refuse(SCL_NO_WORKSPACE, 0, 0, 0);
  if (p->bytes && j->call->workspace % SCL_ALIGN) return scl_refuse(SCL_BAD_WORKSPACE, 0, 0, 0);
  for (unsigned i = 0; i < t->steps && !r.why; i++) r = scl_put_step(j, i);
  return r;
}

// `overlaps`: it may begin while the launch before it, of the same call, still runs, for whose end
// its threads wait themselves. What the stream had before the call is over then: that launch, or
// the one before it, waited for it.
static inline CUresult scl_start(const SclJob *j, unsigned function, unsigned ctas, void **param,
                                 int overlaps) {
  const SclFunction *f = &j->table->function[function];
  CUlaunchAttribute overlap;
  CUlaunchConfig launch;
  memset(&overlap, 0, sizeof overlap);
  overlap.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  overlap.value.programmaticStreamSerializationAllowed = 1;
  memset(&launch, 0, sizeof launch);
  launch.gridDimX = ctas;
  launch.blockDimX = f->threads;
  launch.gridDimY = launch.gridDimZ = launch.blockDimY = launch.blockDimZ = 1;
  launch.sharedMemBytes = f->shared;
  launch.hStream = j->call->stream;
  launch.attrs = &overlap;
  launch.numAttrs = overlaps != 0;
  return SCL_CU(j->kernel, cuLaunchKernelEx(&launch, j->function[function].function, param, NULL));
}

static inline CUresult scl_start_step(const SclJob *j, unsigned step, int overlaps) {
  const SclStep *s = &j->table->step[step];
  void **param = j->plan->param;
  unsigned n = 0;
  for (unsigned i = s->map.from; i < s->map.to; i++) param[n++] = &j->plan->map[i];
  param[n] = j->plan->block + s->block;
  return scl_start(j, s->function, j->plan->ctas[step], param, overlaps);
}

// It begins when all before it on the stream has ended, and ends before what is behind it begins:
// so it sees what the launches before have made, and no kernel runs on elements that it has not
// seen.
static inline CUresult scl_start_check(const SclJob *j, unsigned check) {
  SclLists *lists = &j->plan->lists[check];
  const unsigned room = j->function[j->table->checker].room;
  void *param[1];
  int64_t ctas = 0;
  for (int i = 0; i < lists->lists; i++) {
    const int64_t parts = lists->list[i].elements / SCL_LIST_PART + (lists->list[i].elements > 0);
    if (parts > ctas) ctas = parts;
  }
  param[0] = lists;
  if (!ctas) return CUDA_SUCCESS;
  return scl_start(j, j->table->checker, ctas < room ? (unsigned)ctas : room, param, 0);
}

SCL_API CUresult scl_enqueue(const SclJob *j) {
  const SclPlan *p = j->plan;
  CUresult e = CUDA_SUCCESS;
  int overlaps = 0;
  if (p->zeroed)
    e = SCL_CU(j->kernel, cuMemsetD8Async(j->call->workspace, 0, p->zeroed, j->call->stream));
  for (unsigned i = 0; i < j->table->steps && !e; i++) {
    const SclSpan check = j->table->step[i].check;
    for (unsigned c = check.from; c < check.to && !e; c++) e = scl_start_check(j, c);
    if (check.from < check.to) overlaps = 0;
    if (!p->tiles[i] || e) continue;
    e = scl_start_step(j, i, overlaps);
    overlaps = 1;
  }
  return e;
}

// ---- loading

// Grids that are limited have as many clusters as run at once, no more: they take turns, and a turn
// waits for the one that has it. There may be fewer than the multiprocessors have room for, as each
// lies in one of their groups.
static inline SclRefusal scl_find_room(SclKernel *k, SclLoaded *l, const SclTable *t, unsigned at) {
  const SclFunction *f = &t->function[at];
  CUlaunchConfig launch;
  int n = 0;
  CUresult e;
  l->room = (unsigned)k->sms > f->cluster ? (unsigned)k->sms / f->cluster : 1;
  if (!f->limited || f->cluster == 1) return scl_fine();
  memset(&launch, 0, sizeof launch);
  launch.gridDimX = f->cluster;
  launch.blockDimX = f->threads;
  launch.sharedMemBytes = f->shared;
  launch.gridDimY = launch.gridDimZ = launch.blockDimY = launch.blockDimZ = 1;
  e = SCL_CU(k, cuOccupancyMaxActiveClusters(&n, l->function, &launch));
  if (e) return scl_driver(SCL_NO_FUNCTION, at, e);
  if (n < (int)l->room) l->room = (unsigned)n;
  return n ? scl_fine() : scl_refuse(SCL_NO_CLUSTER, 0, at, 0);
}

// The driver sets memory behind whatever is on the default stream, and does not wait for it; the
// launch that comes next may be on a stream that does not wait either.
SCL_API CUresult scl_zero(SclKernel *k, const SclTable *t) {
  const size_t counters = (size_t)(SCL_STREAMS + SCL_CAPTURES) * SCL_COUNTER_BYTES;
  const size_t bytes = SCL_COUNTERS_AT + (t->dynamic ? counters : 0);
  CUresult e = CUDA_SUCCESS;
  if (!k->memory) e = SCL_CU(k, cuMemAlloc(&k->memory, bytes));
  if (!e) e = SCL_CU(k, cuMemsetD8(k->memory, 0, bytes));
  return e ? e : SCL_CU(k, cuStreamSynchronize(NULL));
}

// On the current context. What is loaded is to be unloaded, on errors too.
SCL_API SclRefusal scl_load(SclKernel *k, SclLoaded *loaded, const SclTable *t, const void *code) {
  CUdevice device;
  SclRefusal r = scl_fine();
  CUresult e = SCL_CU(k, cuCtxGetDevice(&device));
  if (!e)
    e = SCL_CU(k, cuDeviceGetAttribute(&k->sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
  if (!e) e = SCL_CU(k, cuModuleLoadData(&k->module, code));
  if (e) return scl_driver(SCL_NO_FUNCTION, 0, e);
  for (unsigned i = 0; i < t->functions && !r.why; i++) {
    const SclFunction *f = &t->function[i];
    e = SCL_CU(k, cuModuleGetFunction(&loaded[i].function, k->module, f->name));
    if (!e)
      e = SCL_CU(
          k, cuFuncSetAttribute(loaded[i].function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                (int)f->shared));
    r = e ? scl_driver(SCL_NO_FUNCTION, i, e) : scl_find_room(k, &loaded[i], t, i);
  }
  return r.why ? r : scl_driver(SCL_NO_MEMORY, 0, scl_zero(k, t));
}

SCL_API void scl_unload(SclKernel *k) {
  if (k->memory) (void)SCL_CU(k, cuMemFree(k->memory));
  if (k->module) (void)SCL_CU(k, cuModuleUnload(k->module));
  k->memory = 0;
  k->module = NULL;
}

#ifdef SCHEDC_LAUNCHER
// ---- for headers

static inline CUresult scl_result(SclRefusal r) {
  if (r.error || !r.why) return r.error;
  return r.why == SCL_BAD_ADDRESS || r.why == SCL_BAD_STRIDE || r.why == SCL_NEGATIVE_STRIDE ||
                 r.why == SCL_BAD_WORKSPACE
             ? CUDA_ERROR_MISALIGNED_ADDRESS
             : CUDA_ERROR_INVALID_VALUE;
}

static inline CUresult scl_launch(const SclJob *j) {
  SclRefusal r = scl_make_plan(j);
  if (!r.why) r = scl_put_addresses(j);
  return r.why ? scl_result(r) : scl_enqueue(j);
}
#endif
