// forecast.c - from cycles to milliseconds. In: what the kernels of a launch take. Out: its
// prediction, at the clock that the power limit leaves.
#include "runtime/tune/timeline.h"

static double seconds_of_memory(const schedc_machine *m, double bytes) {
  return bytes / (m->memory_gbs * 1e9);
}

// Workspaces that are cleared before a sequence starts.
static double seconds_to_clear(const Kernel *k, const Binding *b, const schedc_machine *m) {
  double seconds = 0;
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *buf = &k->buf.at[i];
    if (!buf->workspace || !buf->zeroed) continue;
    seconds += seconds_of_memory(m, sc_element_bytes(b, i)) + m->launch_us * 1e-6;
  }
  return seconds;
}

static double joules_of(const schedc_machine *m, const Forecast *f) {
  return 1e-12 * (f->use[PIPE_TENSOR] * m->tensor_rate * m->tensor_pj + f->bytes * m->l2_pj +
                  f->cycles * m->multiprocessors * m->cycle_pj);
}

// What is used at a clock x times the highest grows as x to the third, since voltage falls with the
// clock. The root by Newton's steps, from above.
static double clock_under_load(const schedc_machine *m, double joules, double cycles) {
  double at_most = joules / cycles * m->clock_mhz * 1e6, left = m->limit_watts - m->idle_watts;
  if (at_most <= left) return m->clock_mhz;
  double x = 1;
  for (int i = 0; i < 40; i++) x = (2 * x + left / at_most / (x * x)) / 3;
  return x * m->clock_mhz;
}

static const char *bound_of(const schedc_machine *m, const Forecast *f, double memory) {
  static const struct {
    Pipe pipe;
    const char *name;
  } names[] = {{PIPE_TENSOR, "tensor cores"}, {PIPE_MUFU, "exponentials"},
               {PIPE_ISSUE, "instructions"},  {PIPE_FMA, "instructions"},
               {PIPE_ALU, "instructions"},    {PIPE_SHARED, "shared memory"},
               {PIPE_LINK, "L2 cache"}};
  double all = f->cycles * m->multiprocessors, most = all * 2 / 3;
  const char *bound = "latency";
  for (u32 i = 0; i < COUNT(names); i++) {
    if (f->use[names[i].pipe] <= most) continue;
    most = f->use[names[i].pipe];
    bound = names[i].name;
  }
  return memory > most / all ? "memory" : bound;
}

// A kernel's milliseconds, added to those of the launch; no less than memory takes for its tensors.
static bool add_kernel(Sc *sc, const Kernel *k, const Binding *b, const schedc_machine *m,
                       Forecast *all, schedc_prediction *out) {
  Forecast f;
  if (!sc_predict_kernel(sc, k, b, m, &f)) return false;
  if (f.cycles <= 0) return true;
  double clock = clock_under_load(m, joules_of(m, &f), f.cycles);
  double ms = f.cycles / clock / 1e3, memory = 1e3 * seconds_of_memory(m, f.bytes_once);
  const char *bound = bound_of(m, &f, memory / ms);
  if (memory > ms) ms = memory;
  if (ms > out->ms || !out->bound) {
    out->bound = bound;
    out->waves = f.waves;
  }
  out->clock_mhz += ms * clock;
  out->ms += ms + m->launch_us * 1e-3;
  all->ms += ms;
  out->bytes += f.bytes;
  all->cycles += f.cycles;
  for (u32 p = 0; p < PIPE_COUNT; p++) all->use[p] += f.use[p];
  return true;
}

schedc_status sc_predict(Sc *sc, const Kernel *k, const Binding *b, const schedc_machine *m,
                         schedc_prediction *out) {
  Forecast all = {0};
  if (!k->launch.n && !add_kernel(sc, k, b, m, &all, out)) return SCHEDC_EINPUT;
  out->ms += 1e3 * seconds_to_clear(k, b, m);
  for (u32 i = 0; i < k->launch.n; i++) {
    const Binding *one = sc_bind_launch(sc, b, &k->launch.at[i]);
    if (!one || !add_kernel(sc, one->k, one, m, &all, out)) return SCHEDC_EINPUT;
  }
  out->cycles = all.cycles;
  out->tensor_cycles = all.use[PIPE_TENSOR];
  if (all.cycles > 0) out->tensor_use = out->tensor_cycles / all.cycles / m->multiprocessors;
  if (all.ms > 0) out->clock_mhz /= all.ms;
  if (!out->bound) out->bound = "latency";
  return SCHEDC_OK;
}
