// launch.c - launches what load.c loaded. In: tensors with device addresses, in the kernel's order.
// The first launch with new shapes, strides or scalars checks everything, and launcher.c makes a
// plan. Later launches find the plan and only change addresses in it. Nothing is allocated on the
// device, nothing waits, and all that is enqueued (a memset of what must be zero, the kernels) may
// be captured in a graph.
#include "runtime/cuda/gpu.h"

#include <math.h>
#include <string.h>

_Static_assert((int)SCL_RANK == SC_MAX_RANK, "a tensor's dimensions");

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
    const Buf *b = sc_tabled(l->k, &l->tabled, i);
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

Binding *sc_bind_call(Sc *sc, const Loaded *l, const LaunchCall *call) {
  schedc_tensor *tensor = NEWS(sc, schedc_tensor, l->tensors + 1);
  schedc_scalar *scalar = NEWS(sc, schedc_scalar, l->k->arg.n + 1);
  for (u32 i = 0; i < l->tensors; i++) {
    tensor[i] = call->tensor[i];
    tensor[i].name = NULL;
  }
  for (u32 i = 0; i < l->k->arg.n; i++) scalar[i] = (schedc_scalar){NULL, scalar_of(call, i)};
  return sc_bind_tensors(sc, l->k, &(Arguments){tensor, l->tensors, scalar, l->k->arg.n});
}

static SclJob job_of(Loaded *l, const SclCall *call, SclPlan *plan) {
  return (SclJob){&l->tabled.table, &l->kernel, l->function, call, plan};
}

static bool fill(Sc *sc, Loaded *l, const LaunchCall *given, LaunchPlan *p) {
  const Binding *b = sc_bind_call(sc, l, given);
  if (!b) return false;
  for (u32 i = 0; i < l->tensors; i++) l->given[i].stride = b->buf[l->tabled.tensor[i]].stride;
  const SclCall call = {.tensor = l->given, .dim = b->dim, .scalar = b->arg};
  const SclJob j = job_of(l, &call, &p->plan);
  const SclRefusal r = scl_make_plan(&j);
  if (sc_refuse(sc, l, &j, &r)) return false;
  remember(l, p, given);
  return true;
}

SclPlan *sc_plan(Sc *sc, Loaded *l, const LaunchCall *call) {
  LaunchPlan *oldest = &l->plan[0];
  for (u32 i = 0; i < PLANS; i++) {
    if (same(l, &l->plan[i], call)) {
      l->plan[i].used = ++l->clock;
      return &l->plan[i].plan;
    }
    if (l->plan[i].used < oldest->used) oldest = &l->plan[i];
  }
  oldest->used = 0;
  if (!fill(sc, l, call, oldest)) return NULL;
  oldest->used = ++l->clock;
  return &oldest->plan;
}

// ---- a launch

schedc_status sc_check_context(Sc *sc, const Loaded *l) {
  void *context = NULL;
  const SclRefusal r = {.why = SCL_DRIVER, .error = l->d->cuCtxGetCurrent(&context)};
  if (r.error) return sc_refuse(sc, l, NULL, &r);
  if (context == l->context) return SCHEDC_OK;
  sc_report(sc, D_G_RUN, l->k->span, "%s, but '%s' was loaded on one that is not",
            context ? "another CUDA context is current" : "no CUDA context is current", l->k->name);
  return SCHEDC_EINPUT;
}

schedc_status sc_launch(Sc *sc, Loaded *l, const LaunchCall *given) {
  schedc_status status = sc_check_context(sc, l);
  if (status) return status;
  SclPlan *p = sc_plan(sc, l, given);
  if (!p) return SCHEDC_EINPUT;
  for (u32 i = 0; i < l->tensors; i++)
    memcpy(&l->given[i].at, &given->tensor[i].data, sizeof l->given[i].at);
  const SclCall call = {.tensor = l->given,
                        .workspace = given->workspace,
                        .workspace_bytes = given->workspace_bytes,
                        .stream = given->stream};
  const SclJob j = job_of(l, &call, p);
  l->last = p;
  SclRefusal r = scl_put_addresses(&j);
  if (!r.why && (r.error = scl_enqueue(&j))) r.why = SCL_DRIVER;
  return sc_refuse(sc, l, &j, &r);
}
