// launch.c - launching what load.c loaded. In: tensors with device addresses, in the kernel's
// order. The first launch with new shapes, strides or scalars checks everything and writes down
// what it comes to (a plan: tensor maps, argument blocks, grids); the next ones find the plan and
// change addresses. Nothing is allocated on the device, nothing waits, and all that is enqueued (a
// memset of what must be zero, the kernels) may be captured in a graph.
#include "runtime/cuda/gpu.h"

#include <math.h>
#include <string.h>

_Static_assert((int)SCHEDC_F32 == EL_F32 && (int)SCHEDC_E4M3 == EL_E4M3 &&
                   (int)SCHEDC_I32 == EL_I32,
               "schedc_type is Elem");

// ---- plans: is this one of those known?

// (0.0 and -0.0 are two: 1 / a tells them apart.)
static bool same_scalar(double a, double b) {
  return (a == b && !signbit(a) == !signbit(b)) || (isnan(a) && isnan(b));
}

static double scalar_of(const LaunchCall *call, u32 i) {
  return call->scalar ? call->scalar[i] : (double)NAN;
}

static bool same(const Loaded *l, const LaunchPlan *p, const LaunchCall *call) {
  if (!p->used) return false;
  for (u32 i = 0; i < l->tensors; i++) {
    const schedc_tensor *t = &call->tensor[i];
    const Buf *b = &l->k->buf.at[l->tensor[i]];
    if (t->rank != b->rank || (int)t->type != (int)b->elem) return false;
    if (memcmp(p->shape + i * SC_MAX_RANK, t->shape, sizeof *t->shape * b->rank) != 0) return false;
    if (memcmp(p->stride + i * SC_MAX_RANK, t->strides, sizeof *t->strides * b->rank) != 0)
      return false;
  }
  for (u32 i = 0; i < l->k->arg.n; i++) {
    if (!same_scalar(p->scalar[i], scalar_of(call, i))) return false;
  }
  return true;
}

static void remember(const Loaded *l, LaunchPlan *p, const LaunchCall *call) {
  for (u32 i = 0; i < l->tensors; i++) {
    memcpy(p->shape + i * SC_MAX_RANK, call->tensor[i].shape, sizeof(i64) * call->tensor[i].rank);
    memcpy(p->stride + i * SC_MAX_RANK, call->tensor[i].strides,
           sizeof(i64) * call->tensor[i].rank);
  }
  for (u32 i = 0; i < l->k->arg.n; i++) p->scalar[i] = scalar_of(call, i);
}

// ---- a new plan

static Binding *bind(Sc *sc, const Loaded *l, const LaunchCall *call) {
  schedc_tensor *tensor = NEWS(sc, schedc_tensor, l->tensors + 1);
  schedc_scalar *scalar = NEWS(sc, schedc_scalar, l->k->arg.n + 1);
  u32 scalars = 0;
  for (u32 i = 0; i < l->tensors; i++) {
    tensor[i] = call->tensor[i];
    tensor[i].name = l->k->buf.at[l->tensor[i]].name;
  }
  for (u32 i = 0; i < l->k->arg.n; i++) {
    if (!isnan(scalar_of(call, i)))
      scalar[scalars++] = (schedc_scalar){l->k->arg.at[i].name, call->scalar[i]};
  }
  return sc_bind_tensors(sc, l->k, tensor, l->tensors, scalar, scalars);
}

static size_t aligned(size_t n) {
  return (n + WORKSPACE_ALIGN - 1) / WORKSPACE_ALIGN * WORKSPACE_ALIGN;
}

// Workspaces behind turn counters; those that start at zero first.
static void place_workspaces(const Loaded *l, const Binding *b, LaunchPlan *p) {
  size_t at = p->bytes;
  for (u32 zeroed = 2; zeroed-- > 0;) {
    for (u32 i = 0; i < l->k->buf.n; i++) {
      const Buf *buf = &l->k->buf.at[i];
      if (!buf->workspace || buf->zeroed != zeroed) continue;
      p->offset[i] = at;
      size_t n = 1;
      if (buf->rank) n = (size_t)(b->buf[i].stride[0] * b->buf[i].shape[0]);
      if (buf->rank == 1) n = (size_t)b->buf[i].shape[0] + WORKSPACE_ALIGN / 4;
      at += aligned(n * sc_elem[buf->elem].bytes);
    }
    if (zeroed) p->zeroed = at;
  }
  p->bytes = at;
}

// Stand-ins for the addresses of workspaces: the checks of a plan want to see that they are
// aligned.
static void stand_in(const Loaded *l, Binding *b) {
  for (u32 i = 0; i < l->k->buf.n; i++) {
    u64 at = WORKSPACE_ALIGN;
    if (l->k->buf.at[i].workspace) memcpy(&b->buf[i].at, &at, sizeof at);
  }
}

static bool encode(Sc *sc, const Loaded *l, const LoadedStep *s, const Binding *b, StepPlan *sp) {
  for (u32 i = 0; i < s->text->maps; i++) {
    const TmaMap *m = &s->text->map[i];
    const Buf *t = &s->k->buf.at[m->tensor];
    MapShape shape;
    sc_map_shape(s->k, m, &b->buf[m->tensor], &shape);
    u64 at = l->device + (t->dir & SCHEDC_OUT ? SINK_AT : ZERO_AT);
    if (!shape.empty) memcpy(&at, &b->buf[m->tensor].at, sizeof at);
    static const unsigned ones[5] = {1, 1, 1, 1, 1};
    int e = l->d->cuTensorMapEncodeTiled(&sp->map[i], shape.type, 5, (void *)(uintptr_t)at,
                                         shape.extent, shape.stride + 1, shape.box, ones, 0,
                                         shape.swizzle, 3, 0);
    sp->map_at[i] = shape.empty ? 0 : at;
    if (!e) continue;
    Diag *d = sc_report(sc, D_T_STRIDE, t->span,
                        "the copy engine cannot be told of tensor '%s' as it is: %s", t->name,
                        sc_driver_error(l->d, e));
    for (u32 dim = 0; dim < t->rank; dim++) {
      if (b->buf[m->tensor].stride[dim]) continue;
      sc_help(sc, d, "this driver has no stride 0 (dimension %u): make a contiguous copy", dim);
      break;
    }
    return false;
  }
  return true;
}

static bool plan_step(Sc *sc, const Loaded *l, u32 i, const Binding *all, LaunchPlan *p) {
  const LoadedStep *s = &l->step[i];
  StepPlan *sp = &p->step[i];
  const Binding *b = s->launch ? sc_bind_launch(sc, all, s->launch) : all;
  if (!b || !sc_fit(sc, s->k, s->text, b) || !sc_grid(sc, s->k, b, s->room, &sp->grid))
    return false;
  if (!sp->grid.tiles) return true;
  if (!sc_range(sc, s->k, b) || !encode(sc, l, s, b, sp)) return false;
  sp->slots = sc_pack(s->k, s->text, b, sp->grid.tiles, sp->args, sp->slot);
  for (u32 t = 0; t < s->k->turn.n; t++) {
    i64 n = 0;
    if (sc_turn_over_ctas(&s->k->turn.at[t]) && !sc_turn_counters(sc, s->k, b, t, &n)) return false;
    sp->turn[t] = p->bytes;
    p->bytes = aligned(p->bytes + (size_t)n * 4);
  }
  return true;
}

static bool fill(Sc *sc, Loaded *l, const LaunchCall *call, LaunchPlan *p) {
  Binding *b = bind(sc, l, call);
  if (!b) return false;
  stand_in(l, b);
  p->zeroed = p->bytes = 0;
  for (u32 i = 0; i < l->steps; i++) {
    if (!plan_step(sc, l, i, b, p)) return false;
  }
  place_workspaces(l, b, p);
  remember(l, p, call);
  return true;
}

const LaunchPlan *sc_plan(Sc *sc, Loaded *l, const LaunchCall *call) {
  LaunchPlan *oldest = &l->plan[0];
  for (u32 i = 0; i < PLANS; i++) {
    if (same(l, &l->plan[i], call)) {
      l->plan[i].used = ++l->clock;
      return &l->plan[i];
    }
    if (l->plan[i].used < oldest->used) oldest = &l->plan[i];
  }
  oldest->used = 0;
  if (!fill(sc, l, call, oldest)) return NULL;
  oldest->used = ++l->clock;
  return oldest;
}

// ---- a launch

// Addresses of arguments and workspaces. What a plan cannot know is whether the address is fit.
static bool find_addresses(Sc *sc, Loaded *l, const LaunchCall *call, const LaunchPlan *p) {
  for (u32 i = 0; i < l->tensors; i++) {
    u32 buf = l->tensor[i];
    const schedc_tensor *t = &call->tensor[i];
    const Buf *b = &l->k->buf.at[buf];
    bool none = false;
    for (u32 d = 0; d < b->rank; d++) none |= t->shape[d] == 0;
    l->address[buf] = 0;  // of no elements, nothing is asked
    if (!none) memcpy(&l->address[buf], &t->data, sizeof t->data);
    if (!none && !t->data)
      return sc_report(sc, D_T_NULL, b->span, "tensor '%s' has no data: its pointer is NULL",
                       b->name),
             false;
  }
  for (u32 i = 0; i < l->k->buf.n; i++) {
    if (l->k->buf.at[i].workspace) l->address[i] = call->workspace + p->offset[i];
  }
  return true;
}

static bool check_workspace(Sc *sc, const Loaded *l, const LaunchCall *call, const LaunchPlan *p) {
  if (!p->bytes) return true;
  if (!call->workspace || call->workspace_bytes < p->bytes) {
    sc_report(sc, D_T_NULL, l->k->span,
              "'%s' needs a workspace of %zu bytes here, but is given %zu", l->k->name, p->bytes,
              call->workspace ? call->workspace_bytes : 0);
    return false;
  }
  if (call->workspace % WORKSPACE_ALIGN) {
    sc_report(sc, D_T_ALIGN, l->k->span, "the workspace's address is not a multiple of %d bytes",
              WORKSPACE_ALIGN);
    return false;
  }
  return true;
}

static u64 address_of(const Loaded *l, const LoadedStep *s, u32 buf) {
  u32 top = s->launch ? s->launch->tensor[buf] : buf;
  return top == SC_NONE ? 0 : l->address[top];
}

static schedc_status does_not_start(Sc *sc, const Loaded *l, int e) {
  if (!e) return SCHEDC_OK;
  sc_report(sc, D_G_RUN, l->k->span, "'%s' does not start: %s", l->k->name,
            sc_driver_error(l->d, e));
  return SCHEDC_EUNAVAIL;
}

// Streams have counters of their own, for what is launched on one runs in order. The stream that
// has launched nothing for the longest time gives its counter away.
static int stream_counter(Loaded *l, void *stream, u32 *at) {
  u64 id = 0;
  int e = l->d->cuStreamGetId(stream, &id);
  if (e) return e;
  *at = 0;
  for (u32 i = 0; i < STREAMS && l->stream[*at].used; i++) {
    const StreamCounter *s = &l->stream[i];
    if (s->used && s->id == id) {
      *at = i;
      break;
    }
    if (s->used < l->stream[*at].used) *at = i;
  }
  l->stream[*at] = (StreamCounter){id, ++l->clock};
  return 0;
}

// The tile counter of a dynamic grid: it is 0 again when the launch has ended. Launches that may
// overlap need several, and what is captured keeps its own, for the graph may run beside any later
// launch, and its branches beside each other.
static int next_counter(Loaded *l, void *stream, u64 *address) {
  int capture = 0, e = l->d->cuStreamIsCapturing(stream, &capture);
  u32 at = 0;
  if (!e && capture) at = STREAMS + l->captured++ % CAPTURES;
  else if (!e) e = stream_counter(l, stream, &at);
  *address = l->device + COUNTERS_AT + (u64)at * COUNTER_BYTES;
  return e;
}

static schedc_status misaligned(Sc *sc, const Buf *b, u64 mask) {
  sc_report(sc, D_T_ALIGN, b->span, "the address of tensor '%s' is not a multiple of %llu bytes",
            b->name, (unsigned long long)mask + 1);
  return SCHEDC_EINPUT;
}

static schedc_status put_arguments(Sc *sc, Loaded *l, const LoadedStep *s, const StepPlan *sp,
                                   const LaunchCall *call, u64 waits) {
  for (u32 i = 0; i < sp->slots; i++) {
    const ArgSlot *slot = &sp->slot[i];
    u64 at = waits, mask = 0;
    int e = 0;
    if (slot->kind == SLOT_TENSOR) {
      at = address_of(l, s, slot->ref);
      mask = sc_align_mask(s->k, s->text, slot->ref);
    }
    if (slot->kind == SLOT_COUNTER) e = next_counter(l, call->stream, &at);
    if (slot->kind == SLOT_TURN) at = call->workspace + sp->turn[slot->ref];
    if (e) return does_not_start(sc, l, e);
    if (at & mask) return misaligned(sc, &s->k->buf.at[slot->ref], mask);
    memcpy(sp->args + slot->offset, &at, sizeof at);
  }
  return SCHEDC_OK;
}

static schedc_status put_maps(Sc *sc, const Loaded *l, const LoadedStep *s, const StepPlan *sp) {
  for (u32 i = 0; i < s->text->maps; i++) {
    u32 buf = s->text->map[i].tensor;
    u64 at = address_of(l, s, buf), mask = sc_align_mask(s->k, s->text, buf);
    if (!sp->map_at[i] || sp->map_at[i] == at) continue;
    if (at & mask) return misaligned(sc, &s->k->buf.at[buf], mask);
    int e = l->d->cuTensorMapReplaceAddress(&sp->map[i], (void *)(uintptr_t)at);
    if (e) return does_not_start(sc, l, e);
    sp->map_at[i] = at;
  }
  return SCHEDC_OK;
}

// In every step, so that nothing is enqueued of a launch that is refused.
static schedc_status put_addresses(Sc *sc, Loaded *l, const LaunchCall *call, const LaunchPlan *p) {
  schedc_status status = SCHEDC_OK;
  u64 waits = l->waits_device;
  for (u32 i = 0; i < l->steps && !status; i++) {
    const LoadedStep *s = &l->step[i];
    if (p->step[i].grid.tiles) {
      status = put_arguments(sc, l, s, &p->step[i], call, waits);
      if (!status) status = put_maps(sc, l, s, &p->step[i]);
    }
    waits += (u64)s->text->wait_words * 4;
  }
  return status;
}

static int enqueue(Loaded *l, const LaunchCall *call, const LaunchPlan *p) {
  int e = p->zeroed ? l->d->cuMemsetD8Async(call->workspace, 0, p->zeroed, call->stream) : 0;
  for (u32 i = 0; i < l->steps && !e; i++) {
    const LoadedStep *s = &l->step[i];
    const StepPlan *sp = &p->step[i];
    if (!sp->grid.tiles) continue;
    for (u32 m = 0; m < s->text->maps; m++) l->param[m] = &sp->map[m];
    l->param[s->text->maps] = sp->args;
    e = l->d->cuLaunchKernel(s->function, sp->grid.ctas, 1, 1, s->k->threads, 1, 1, s->text->smem,
                             call->stream, l->param, NULL);
  }
  return e;
}

static schedc_status check_context(Sc *sc, const Loaded *l) {
  void *context = NULL;
  int e = l->d->cuCtxGetCurrent(&context);
  if (e || context == l->context) return does_not_start(sc, l, e);
  sc_report(sc, D_G_RUN, l->k->span, "%s, but '%s' was loaded on one that is not",
            context ? "another CUDA context is current" : "no CUDA context is current", l->k->name);
  return SCHEDC_EINPUT;
}

schedc_status sc_launch(Sc *sc, Loaded *l, const LaunchCall *call) {
  schedc_status status = check_context(sc, l);
  if (status) return status;
  const LaunchPlan *p = sc_plan(sc, l, call);
  if (!p || !find_addresses(sc, l, call, p) || !check_workspace(sc, l, call, p))
    return SCHEDC_EINPUT;
  status = put_addresses(sc, l, call, p);
  return status ? status : does_not_start(sc, l, enqueue(l, call, p));
}
