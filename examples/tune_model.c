// tune_model.c - a search without a GPU: the objective is a program's own. Here it is the cost
// model's time of a large launch; and what gets into the finals is run by the interpreter on a
// small one, and compared with the specification.
//
//   folder=$(pkg-config --variable=schedules schedc)
//   cc -DSCHEDULES="\"$folder\"" tune_model.c $(pkg-config --cflags --libs schedc)
//   ./a.out
//
// It takes another file's name as well. Without SCHEDULES it looks into the folder that it runs in.
#include <stdio.h>
#include <stdlib.h>

#include <schedc.h>

#ifndef SCHEDULES
#define SCHEDULES "schedules"
#endif

enum { MOST_TENSORS = 8, OUTPUTS = MOST_TENSORS };

static const schedc_dim large[] = {{"M", 4096}, {"N", 4096}, {"K", 4096}};
static const schedc_dim small[] = {{"M", 300}, {"N", 300}, {"K", 200}};

typedef struct Objective {
  schedc_context *context;
  const schedc_space *space;
} Objective;

static void print_diagnostic(void *user, const schedc_diagnostic *d) {
  (void)user;
  fputs(d->rendered, stderr);
}

// The kernel's tensors under some dimensions, without memory.
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
    if (schedc_tensor_shape(context, kernel, i, dims, 3, t->shape)) return 0;
    for (size_t d = t->rank; d-- > 0; elements *= t->shape[d]) t->strides[d] = elements;
  }
  return n;
}

static schedc_status predict(const Objective *o, const schedc_kernel *kernel, double *ms) {
  schedc_tensor tensors[MOST_TENSORS];
  schedc_prediction prediction = SCHEDC_PREDICTION_INIT;
  size_t n = shape(o->context, kernel, large, tensors);
  schedc_status status = schedc_predict(o->context, kernel, tensors, n, NULL, 0, NULL, &prediction);
  *ms = prediction.ms;
  return status;
}

static schedc_status interpret(const Objective *o, const schedc_kernel *kernel) {
  schedc_tensor tensors[MOST_TENSORS];
  schedc_error errors[OUTPUTS] = {SCHEDC_ERROR_INIT};
  size_t n = shape(o->context, kernel, small, tensors);
  schedc_status status = SCHEDC_OK;
  for (size_t i = 0; i < n; i++) {
    size_t bytes = schedc_type_size(tensors[i].type);
    for (size_t d = 0; d < tensors[i].rank; d++) bytes *= (size_t)tensors[i].shape[d];
    tensors[i].data = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!tensors[i].data) abort();
    schedc_draw(&tensors[i], "normal", i);
  }
  status = schedc_run_cpu(o->context, kernel, tensors, n, NULL, 0, NULL);
  if (!status) status = schedc_compare(o->context, kernel, tensors, n, NULL, 0, NULL, errors);
  for (size_t i = 0; i < schedc_output_count(kernel) && !status; i++)
    if (!errors[i].pass) status = SCHEDC_EFAULT;
  for (size_t i = 0; i < n; i++) free(tensors[i].data);
  return status;
}

// What a trial asks for. A program that is wrong is an outcome, and no error.
static schedc_status measure(void *user, const schedc_trial *trial, schedc_outcome *outcome) {
  const Objective *o = user;
  schedc_kernel *kernel;
  schedc_status status = schedc_space_instantiate(&kernel, o->context, o->space, &trial->point);
  if (status) return status;
  if (trial->kind == SCHEDC_TRIAL_VERIFY) outcome->status = interpret(o, kernel);
  else outcome->status = predict(o, kernel, &outcome->ms);
  schedc_kernel_free(kernel);
  return SCHEDC_OK;
}

static void print_candidates(schedc_tuner *tuner) {
  schedc_candidate c = SCHEDC_CANDIDATE_INIT;
  for (size_t rank = 0; rank < 5 && !schedc_tuner_at(tuner, rank, &c); rank++) {
    printf("%zu  %.4f ms, %.3f of the default ", rank + 1, c.ms, c.ratio);
    for (size_t i = 0; i < c.point.param_count; i++)
      printf(" %s=%s", c.point.params[i].name, c.point.params[i].value);
    puts(c.is_default ? "  (default)" : "");
  }
}

int main(int argc, char **argv) {
  schedc_options options = SCHEDC_OPTIONS_INIT;
  schedc_tuner_options search = SCHEDC_TUNER_OPTIONS_INIT;
  schedc_tune_options how = SCHEDC_TUNE_OPTIONS_INIT;
  schedc_candidate best = SCHEDC_CANDIDATE_INIT;
  schedc_source *source = NULL;
  schedc_space *space = NULL;
  schedc_tuner *tuner = NULL;
  Objective objective = {NULL, NULL};
  options.sink = print_diagnostic;
  search.strategy = SCHEDC_EXHAUSTIVE;  // the model is sure of its times: once is enough
  search.turns = 1;
  schedc_status status = schedc_open(&objective.context, &options);
  if (!status)
    status =
        schedc_parse_file(&source, objective.context, argc > 1 ? argv[1] : SCHEDULES "/gemm.sched");
  if (!status) status = schedc_space_new(&space, objective.context, source, NULL, NULL, NULL, 0);
  if (!status) status = schedc_tuner_new(&tuner, objective.context, space, &search);
  objective.space = space;
  how.measure = measure;
  how.measure_user = &objective;
  if (!status) status = schedc_tune(objective.context, tuner, NULL, &how);
  if (!status) print_candidates(tuner);
  if (!status) status = schedc_tuner_best(tuner, &best);
  if (!status) printf("chosen: %s\n", best.is_default ? "the default" : "the first");
  else fprintf(stderr, "%s\n", schedc_status_text(status));
  schedc_tuner_free(tuner);
  schedc_space_free(space);
  schedc_source_free(source);
  schedc_close(objective.context);
  return status != SCHEDC_OK;
}
