// tune_pair.c - two kernels of a sequence tuned jointly. The backward pass of attention leaves the
// gradient of Q in a workspace, in tiles of BM rows, and a second kernel converts it: both must
// have the same BM, which for each of them alone is given by the tensor's shape. In the sequence's
// space it is for tuning. The objective is the time of all its kernels, here by the cost model;
// what gets into the finals is run by the interpreter on a small launch, and compared with the
// sequence's specification.
//
//   folder=$(pkg-config --variable=schedules schedc)
//   cc -DSCHEDULES="\"$folder\"" tune_pair.c $(pkg-config --cflags --libs schedc)
//   ./a.out
//
// It takes another file's name as well. Without SCHEDULES it looks into the folder that it runs in.
#include <stdio.h>
#include <stdlib.h>

#include <schedc.h>

#ifndef SCHEDULES
#define SCHEDULES "schedules"
#endif

enum { MOST_TENSORS = 16, DIMS = 5 };

static const schedc_param fixed = {"D", "64"};
static const schedc_dim large[] = {{"B", 8}, {"M", 2048}, {"N", 2048}, {"H", 16}, {"G", 16}};
static const schedc_dim small[] = {{"B", 1}, {"M", 70}, {"N", 90}, {"H", 2}, {"G", 1}};

static void print_diagnostic(void *user, const schedc_diagnostic *d) {
  (void)user;
  fputs(d->rendered, stderr);
}

// The tensors that a caller brings, under some dimensions, without memory.
static size_t shape(schedc_context *context, const schedc_kernel *kernel, const schedc_dim *dims,
                    schedc_tensor *tensors) {
  size_t n = schedc_tensor_count(kernel);
  schedc_tensor_info info = SCHEDC_TENSOR_INFO_INIT;
  if (n > MOST_TENSORS) return 0;
  for (size_t i = 0; i < n; i++) {
    schedc_tensor *t = &tensors[i];
    int64_t elements = 1;
    schedc_tensor_at(kernel, i, &info);
    *t = (schedc_tensor){.type = info.type, .rank = info.rank};
    if (schedc_tensor_shape(context, kernel, i, dims, DIMS, t->shape)) return 0;
    for (size_t d = t->rank; d-- > 0; elements *= t->shape[d]) t->strides[d] = elements;
  }
  return n;
}

static schedc_status predict(schedc_context *context, const schedc_kernel *kernel, double *ms) {
  schedc_tensor tensors[MOST_TENSORS];
  schedc_prediction prediction = SCHEDC_PREDICTION_INIT;
  size_t n = shape(context, kernel, large, tensors);
  schedc_status status = schedc_predict(context, kernel, tensors, n, NULL, 0, NULL, &prediction);
  *ms = prediction.ms;
  return status;
}

static schedc_status interpret(schedc_context *context, const schedc_kernel *kernel) {
  schedc_tensor tensors[MOST_TENSORS];
  schedc_error errors[MOST_TENSORS] = {SCHEDC_ERROR_INIT};
  size_t n = shape(context, kernel, small, tensors);
  for (size_t i = 0; i < n; i++) {
    size_t bytes = schedc_type_size(tensors[i].type);
    for (size_t d = 0; d < tensors[i].rank; d++) bytes *= (size_t)tensors[i].shape[d];
    tensors[i].data = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!tensors[i].data) abort();
    schedc_draw(&tensors[i], "normal", i);
  }
  schedc_status status = schedc_run_cpu(context, kernel, tensors, n, NULL, 0, NULL);
  if (!status) status = schedc_compare(context, kernel, tensors, n, NULL, 0, NULL, errors);
  for (size_t i = 0; i < schedc_output_count(kernel) && !status; i++)
    if (!errors[i].pass) status = SCHEDC_EFAULT;
  for (size_t i = 0; i < n; i++) free(tensors[i].data);
  return status;
}

// Asks and tells until there is nothing left to ask. Nothing is measured by two at once here, so
// that there is never anything to wait for.
static schedc_status play(schedc_context *context, const schedc_space *space, schedc_tuner *tuner) {
  for (;;) {
    schedc_trial trial = SCHEDC_TRIAL_INIT;
    schedc_outcome outcome = SCHEDC_OUTCOME_INIT;
    schedc_kernel *kernel;
    schedc_status status = schedc_tuner_ask(tuner, &trial);
    if (status || trial.kind == SCHEDC_TRIAL_DONE) return status;
    status = schedc_space_instantiate(&kernel, context, space, &trial.point);
    if (status) return status;
    if (trial.kind == SCHEDC_TRIAL_VERIFY) outcome.status = interpret(context, kernel);
    else outcome.status = predict(context, kernel, &outcome.ms);
    schedc_kernel_free(kernel);
    status = schedc_tuner_tell(tuner, &trial, &outcome);
    if (status) return status;
  }
}

static void print_candidates(schedc_tuner *tuner) {
  schedc_candidate c = SCHEDC_CANDIDATE_INIT;
  for (size_t rank = 0; rank < 5 && !schedc_tuner_at(tuner, rank, &c); rank++) {
    printf("%zu  %.4f ms, %.3f of the default ", rank + 1, c.ms, c.ratio);
    for (size_t i = 0; i < c.point.param_count; i++)
      printf(" %s=%s", c.point.params[i].name, c.point.params[i].value);
    puts(c.verified ? "  (verified)" : "");
  }
}

int main(int argc, char **argv) {
  schedc_options options = SCHEDC_OPTIONS_INIT;
  schedc_tuner_options how = SCHEDC_TUNER_OPTIONS_INIT;
  schedc_candidate best = SCHEDC_CANDIDATE_INIT;
  schedc_context *context = NULL;
  schedc_source *source = NULL;
  schedc_space *space = NULL;
  schedc_tuner *tuner = NULL;
  options.sink = print_diagnostic;
  how.strategy = SCHEDC_EXHAUSTIVE;  // the model is sure of its times: once is enough
  how.turns = 1;
  how.tie = 0;  // and a small gain is one
  schedc_status status = schedc_open(&context, &options);
  if (!status)
    status = schedc_parse_file(&source, context, argc > 1 ? argv[1] : SCHEDULES "/fa3_bwd.sched");
  if (!status) status = schedc_space_new(&space, context, source, "fa3_bwd", NULL, &fixed, 1);
  if (!status) status = schedc_tuner_new(&tuner, context, space, &how);
  if (!status) status = play(context, space, tuner);
  if (!status) print_candidates(tuner);
  if (!status) status = schedc_tuner_best(tuner, &best);
  if (!status) printf("chosen: %s\n", best.is_default ? "the default" : "the first");
  else fprintf(stderr, "%s\n", schedc_status_text(status));
  schedc_tuner_free(tuner);
  schedc_space_free(space);
  schedc_source_free(source);
  schedc_close(context);
  return status != SCHEDC_OK;
}
