// elements.c - holds the elements of inputs in a GPU's memory against what the schedule says of
// them. In: what a launch is given. Out: a report on the first element that is not as declared, if
// there is one. Waits for the stream, and copies these inputs to host memory: a launch does not do
// that.
#include "runtime/cuda/gpu.h"

// Of integers alone does a schedule say what they are.
static bool may_be_promised(const Buf *b) { return b->dir == F_IN && b->elem == EL_I32; }

static schedc_status bring(Sc *sc, const Loaded *l, u32 buf, TensorRef *t) {
  const Buf *b = &l->k->buf.at[buf];
  const u64 there = (u64)(uintptr_t)t->at;
  const size_t bytes = may_be_promised(b) ? sc_tensor_bytes(b, t) : 0;
  t->at = bytes ? sc_new(sc, bytes) : NULL;
  const int e = bytes ? l->d->cuMemcpyDtoH(t->at, there, bytes) : 0;
  if (!e) return SCHEDC_OK;
  sc_report(sc, D_G_RUN, b->span, "tensor '%s' cannot be read from the GPU: %s", b->name,
            sc_driver_error(l->d, e));
  return SCHEDC_EUNAVAIL;
}

schedc_status sc_check_elements(Sc *sc, const Loaded *l, const LaunchCall *call) {
  schedc_status status = sc_check_context(sc, l);
  if (status) return status;
  const Binding *b = sc_bind_call(sc, l, call);
  if (!b) return SCHEDC_EINPUT;
  const SclRefusal r = {.why = SCL_DRIVER, .error = l->d->cuStreamSynchronize(call->stream)};
  if (r.error) return sc_refuse(sc, l, NULL, &r);
  for (u32 i = 0; i < l->k->buf.n && !status; i++)
    if (b->buf[i].at) status = bring(sc, l, i, &b->buf[i]);
  if (status) return status;
  return sc_call_fits(sc, b) ? SCHEDC_OK : SCHEDC_EINPUT;
}
