// tuners.c - a caller with tensors and a stream on the GPU of its own: asks and tells by itself
// with a meter, then has schedc_tune do it, and stops that once on the way. One of the tensors is
// read and written, so that each launch finds what the one before left. tests/tune.py builds it
// with libschedc and the model of a GPU, whose memory is the host's.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <schedc.h>

int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxPushCurrent_v2(void *context);
int cuCtxGetCurrent(void **context);
int cuMemAlloc_v2(uint64_t *at, size_t bytes);
int cuStreamCreate(void **stream, unsigned flags);

enum { ROWS = 70, COLUMNS = 64, ELEMENTS = ROWS * COLUMNS };

static const char text[] =
    "kernel add {\n"
    "  param BM = 64 in { 64, 128 }\n"
    "  param W  = 1 in { 1, 2 }\n"
    "  in    X : f32[M, 64]\n"
    "  inout Y : f32[M, 64]\n"
    "  spec { Y[i,j] = Y[i,j] + X[i,j] }\n"
    "  grid (x : cdiv(M, BM))\n"
    "  role all[w] : BM/64 warpgroups, 128 regs {\n"
    "    reg v : f32[64, 64]\n"
    "    v[i,j]                   = W * X[x*BM + 64*w + i, j]\n"
    "    Y[x*BM + 64*w + i, j] += v[i,j] / W\n"
    "  }\n"
    "}\n";

static void print_diagnostic(void *user, const schedc_diagnostic *d) {
  (void)user;
  fputs(d->rendered, stdout);
}

static int fails(const char *what) {
  printf("%s\n", what);
  return 1;
}

// Asks and tells until the tuner is done. Counts the trials.
static schedc_status ask_and_tell(schedc_context *context, schedc_tuner *tuner, schedc_meter *meter,
                                  unsigned *trials) {
  for (;;) {
    schedc_trial trial = SCHEDC_TRIAL_INIT;
    schedc_outcome outcome = SCHEDC_OUTCOME_INIT;
    schedc_status status = schedc_tuner_ask(tuner, &trial);
    if (status || trial.kind == SCHEDC_TRIAL_DONE) return status;
    status = schedc_meter_prepare(meter, &trial);
    if (!status) status = schedc_meter_run(context, meter, &trial, &outcome);
    if (!status && outcome.status) printf("%s\n", outcome.code ? outcome.code : "failed");
    if (!status) status = schedc_tuner_tell(tuner, &trial, &outcome);
    if (status) return status;
    ++*trials;
  }
}

static int stop_at_third(void *calls, const schedc_tune_state *state) {
  (void)state;
  return ++*(unsigned *)calls == 3;
}

// A search, by hand or by the driver, which is stopped once. Returns its trials; 0: it went wrong.
static unsigned search(schedc_context *context, const schedc_space *space, schedc_meter *meter,
                       int by_hand) {
  schedc_tuner *tuner = NULL;
  schedc_tuner_options how = SCHEDC_TUNER_OPTIONS_INIT;
  schedc_tune_options driver = SCHEDC_TUNE_OPTIONS_INIT;
  schedc_candidate best = SCHEDC_CANDIDATE_INIT;
  unsigned trials = 0;
  how.brief_ms = how.final_ms = 1;
  driver.progress = stop_at_third;
  driver.progress_user = &trials;
  schedc_status status = schedc_tuner_new(&tuner, context, space, &how);
  if (!status && by_hand) status = ask_and_tell(context, tuner, meter, &trials);
  if (!status && !by_hand) {
    if (schedc_tune(context, tuner, meter, &driver) != SCHEDC_ECANCEL) status = SCHEDC_EFAULT;
    if (!status) status = schedc_tune(context, tuner, meter, &driver);
  }
  if (!status) status = schedc_tuner_best(tuner, &best);
  if (!status && !(best.verified && best.turns == how.turns)) status = SCHEDC_EFAULT;
  for (size_t i = 0; !status && !schedc_tuner_at(tuner, i, &best); i++)
    if (best.failed) status = SCHEDC_EFAULT;
  if (status) printf("%s\n", schedc_status_name(status));
  schedc_tuner_free(tuner);
  return status ? 0 : trials;
}

int main(void) {
  void *cuda = NULL, *stream = NULL, *now = NULL;
  uint64_t at[2] = {0, 0};
  schedc_options options = SCHEDC_OPTIONS_INIT;
  schedc_context *context = NULL;
  schedc_source *source = NULL;
  schedc_space *space = NULL;
  schedc_gpu *gpu = NULL;
  schedc_meter *meter = NULL;
  options.sink = print_diagnostic;
  if (cuDevicePrimaryCtxRetain(&cuda, 0) || cuCtxPushCurrent_v2(cuda) || cuStreamCreate(&stream, 1))
    return fails("no context");
  for (int i = 0; i < 2; i++)
    if (cuMemAlloc_v2(&at[i], ELEMENTS * sizeof(float))) return fails("no memory");
  float *x = (float *)(uintptr_t)at[0], *y = (float *)(uintptr_t)at[1];
  for (int i = 0; i < ELEMENTS; i++) x[i] = (float)(i % 7), y[i] = (float)(i % 5);
  const schedc_tensor tensors[] = {{"Y", y, SCHEDC_F32, 2, {ROWS, COLUMNS}, {COLUMNS, 1}},
                                   {"X", x, SCHEDC_F32, 2, {ROWS, COLUMNS}, {COLUMNS, 1}}};
  schedc_meter_options how = SCHEDC_METER_OPTIONS_INIT;
  how.tensors = tensors;
  how.tensor_count = 2;
  how.on_gpu = 1;
  how.stream = stream;
  how.jobs = 2;
  if (schedc_open(&context, &options) ||
      schedc_parse(&source, context, "add.sched", text, sizeof text - 1) ||
      schedc_space_new(&space, context, source, NULL, NULL, NULL, 0) ||
      schedc_gpu_new(&gpu, context, 0) || schedc_meter_new(&meter, context, space, gpu, &how))
    return fails("no meter");
  unsigned by_hand = search(context, space, meter, 1), driven = search(context, space, meter, 0);
  if (!by_hand || !driven) return fails("a search went wrong");
  if (cuCtxGetCurrent(&now) || now != cuda) return fails("another context is current");
  schedc_meter_free(meter);
  for (int i = 0; i < ELEMENTS; i++)
    if (x[i] != (float)(i % 7) || y[i] != (float)(i % 5)) return fails("the inputs have changed");
  schedc_gpu_free(gpu);
  schedc_space_free(space);
  schedc_source_free(source);
  schedc_close(context);
  printf("%u trials by hand, %u calls of progress\n", by_hand, driven);
  return 0;
}
