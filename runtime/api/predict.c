// predict.c - how long a launch would take, by the cost model. In: tensors of the caller, of which
// shapes matter, and data only where bounds and conditions ask for it.
#include "runtime/api/api.h"
#include "runtime/tune/timeline.h"

typedef struct PredictJob {
  const schedc_kernel *kernel;
  const schedc_tensor *tensors;
  size_t tensor_count;
  const schedc_scalar *scalars;
  size_t scalar_count;
  schedc_machine machine;
  schedc_prediction out;
} PredictJob;

// Tensors without data get an address, which is taken back once they are bound.
static Binding *bind(Sc *sc, const PredictJob *j) {
  static const char nothing[16];
  schedc_tensor *t = NEWS(sc, schedc_tensor, j->tensor_count + 1);
  for (size_t i = 0; i < j->tensor_count; i++) {
    t[i] = j->tensors[i];
    if (!t[i].data) t[i].data = (void *)nothing;
  }
  Binding *b = sc_bind_tensors(sc, j->kernel->k, t, j->tensor_count, j->scalars, j->scalar_count);
  for (u32 i = 0; b && i < j->kernel->k->buf.n; i++)
    if (b->buf[i].at == nothing) b->buf[i].at = NULL;
  return b;
}

static schedc_status predict(Sc *sc, void *job) {
  PredictJob *j = job;
  Binding *b = bind(sc, j);
  if (!b) return SCHEDC_EINPUT;
  sc_predict(sc, j->kernel->k, b, &j->machine, &j->out);
  return SCHEDC_OK;
}

static bool good_names(const PredictJob *j) {
  if ((j->tensor_count && !j->tensors) || (j->scalar_count && !j->scalars)) return false;
  for (size_t i = 0; i < j->tensor_count; i++)
    if (!j->tensors[i].name) return false;
  for (size_t i = 0; i < j->scalar_count; i++)
    if (!j->scalars[i].name) return false;
  return true;
}

schedc_status schedc_predict(schedc_context *context, const schedc_kernel *kernel,
                             const schedc_tensor *tensors, size_t tensor_count,
                             const schedc_scalar *scalars, size_t scalar_count,
                             const schedc_machine *machine, schedc_prediction *out) {
  PredictJob job = {.kernel = kernel,
                    .tensors = tensors,
                    .tensor_count = tensor_count,
                    .scalars = scalars,
                    .scalar_count = scalar_count,
                    .machine = SCHEDC_MACHINE_INIT,
                    .out = SCHEDC_PREDICTION_INIT};
  if (!context || !kernel || !out || out->size < sizeof out->size) return SCHEDC_EARG;
  if (!good_names(&job) || !TAKE_OPTIONS(&job.machine, machine)) return SCHEDC_EARG;
  Sc sc;
  sc_init(&sc, &context->alloc);
  schedc_status status = sc_enter(context, &sc, kernel->k->text, predict, &job);
  if (!status) COPY_OUT(out, &job.out);
  sc_free(&sc);
  return status;
}
