// predict.c - how long a launch would take, by the cost model. In: tensors of the caller, of which
// shapes matter, and data only where bounds and conditions ask for it.
#include "runtime/api/api.h"
#include "runtime/tune/timeline.h"

typedef struct PredictJob {
  const schedc_kernel *kernel;
  Arguments given;
  schedc_machine machine;
  schedc_prediction out;
} PredictJob;

// Tensors without data get an address, which is taken back once they are bound.
static Binding *bind(Sc *sc, const PredictJob *j) {
  static const char nothing[16];
  Arguments given = j->given;
  schedc_tensor *t = NEWS(sc, schedc_tensor, given.tensors + 1);
  for (size_t i = 0; i < given.tensors; i++) {
    t[i] = given.tensor[i];
    if (!t[i].data) t[i].data = (void *)nothing;
  }
  given.tensor = t;
  Binding *b = sc_bind_tensors(sc, j->kernel->k, &given);
  for (u32 i = 0; b && i < j->kernel->k->buf.n; i++)
    if (b->buf[i].at == nothing) b->buf[i].at = NULL;
  return b;
}

static schedc_status predict(Sc *sc, void *job) {
  PredictJob *j = job;
  Binding *b = bind(sc, j);
  if (!b) return SCHEDC_EINPUT;
  return sc_predict(sc, j->kernel->k, b, &j->machine, &j->out);
}

// All figures but latencies and energies are divided by.
static bool good_machine(const schedc_machine *m) {
  const double rates[] = {m->clock_mhz,  m->tensor_rate, m->pipe_lanes,   m->alu_lanes,
                          m->mufu_lanes, m->warp_rate,   m->shared_bytes, m->link_bytes,
                          m->add_bytes,  m->l2_gbs,      m->memory_gbs,   m->limit_watts};
  const double others[] = {m->memory_latency, m->shared_latency,  m->barrier_latency,
                           m->fence_latency,  m->cluster_latency, m->draw_latency,
                           m->wgmma_queue,    m->launch_us,       m->idle_watts,
                           m->tensor_pj,      m->l2_pj,           m->cycle_pj};
  for (u32 i = 0; i < COUNT(rates); i++)
    if (!(rates[i] > 0 && rates[i] < 1e15)) return false;
  for (u32 i = 0; i < COUNT(others); i++)
    if (!(others[i] >= 0 && others[i] < 1e15)) return false;
  return m->multiprocessors && m->tensor_ports >= 0 && m->tensor_ports < 1 &&
         m->idle_watts < m->limit_watts;
}

schedc_status schedc_predict(schedc_context *context, const schedc_kernel *kernel,
                             const schedc_tensor *tensors, size_t tensor_count,
                             const schedc_scalar *scalars, size_t scalar_count,
                             const schedc_machine *machine, schedc_prediction *out) {
  PredictJob job = {.kernel = kernel,
                    .given = {tensors, tensor_count, scalars, scalar_count},
                    .machine = SCHEDC_MACHINE_INIT,
                    .out = SCHEDC_PREDICTION_INIT};
  if (!context || !kernel || !SAYS_SIZE(out)) return SCHEDC_EARG;
  if (!sc_good_arguments(&job.given)) return SCHEDC_EARG;
  if (!TAKE_OPTIONS(&job.machine, machine)) return SCHEDC_EARG;
  if (!good_machine(&job.machine)) return SCHEDC_EARG;
  schedc_status status = sc_enter_once(context, kernel->k->text, predict, &job);
  if (!status) COPY_OUT(out, &job.out);
  return status;
}
