// run.c - `schedc run`: one kernel, one case, one policy, compared with its specification.
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Times {
  double run, compare;
  schedc_cuda_times cuda;
  bool uncompared;  // there is nothing to compare with, and the outputs are written
} Times;

static schedc_status interpret(Session *s, Data *d) {
  Progress progress;
  schedc_run_options options = SCHEDC_RUN_OPTIONS_INIT;
  options.policy = (schedc_policy)s->args->policy;
  options.seed = s->args->seed;
  options.threads = s->args->threads;
  options.sms = s->args->sms;
  options.progress = progress_report;
  options.progress_user = &progress;
  progress_start(&progress, "running");
  schedc_status status = schedc_run_cpu(s->context, d->kernel, d->tensors, d->tensor_count,
                                        d->scalars, d->scalar_count, &options);
  progress_end(&progress);
  return status;
}

static schedc_status run_on_gpu(Session *s, Data *d, schedc_gpu *gpu, Times *times) {
  schedc_gpu_job job = data_job(d);
  schedc_gpu_options options = SCHEDC_GPU_OPTIONS_INIT;
  schedc_build_options building = build_options(s->args);
  options.build = &building;
  options.rounds = s->args->bench;
  Ticker ticker;
  ticker_start(&ticker, s->args->model ? "on the model" : "on the GPU");
  schedc_status status = schedc_gpu_run(gpu, &job, 1, &options);
  ticker_end(&ticker);
  times->cuda = job.times;
  return status;
}

// What fails on the model runs once more with lanes that never part, as hardware keeps them where
// it can.
static bool fails_together(Session *s, Data *d) {
  schedc_gpu *gpu = NULL;
  Times none = {0};
  size_t errors = s->errors, reports = s->reports.n, count = s->count;
  bool quiet = s->quiet;
  s->quiet = true;
  model_run_as(&(ModelRun){s->args->policy, s->args->seed, s->args->sms, true});
  data_rewind(d);
  schedc_status status = schedc_gpu_new(&gpu, s->context, s->args->device);
  if (!status) status = run_on_gpu(s, d, gpu, &none);
  schedc_gpu_free(gpu);
  s->quiet = quiet;
  s->errors = errors, s->reports.n = reports, s->count = count;
  return status != SCHEDC_OK;
}

// A kernel without a specification is no fault where --out asks for what it makes.
static schedc_status compare(Session *s, const Data *d, schedc_error *errors, Times *times) {
  Ticker ticker;
  size_t reports = s->reports.n, count = s->count;
  double start = seconds();
  bool may_lack = s->args->out.n && !s->errors;
  s->quiet = may_lack;
  ticker_start(&ticker, "evaluating the specification");
  schedc_status status = data_compare(d, s, errors);
  ticker_end(&ticker);
  s->quiet = false;
  times->compare = seconds() - start;
  times->uncompared =
      may_lack && status && s->first_code.n && strcmp(s->first_code.at, "T.spec") == 0;
  if (!times->uncompared && s->args->format == FORMAT_TEXT && s->reports.n > reports)
    fputs(s->reports.at + reports, stderr);
  if (!times->uncompared) return status;
  s->reports.n = reports, s->count = count, s->errors = 0;
  if (s->reports.at) s->reports.at[reports] = 0;
  return SCHEDC_OK;
}

static schedc_status execute(Session *s, Data *d, size_t kase, schedc_error *errors, Times *times) {
  schedc_gpu *gpu = NULL;
  schedc_status status =
      s->args->cuda ? schedc_gpu_new(&gpu, s->context, s->args->device) : SCHEDC_OK;
  if (!status) status = data_give(d, s, kase, gpu);
  double start = seconds();
  if (!status) status = gpu ? run_on_gpu(s, d, gpu, times) : interpret(s, d);
  times->run = seconds() - start;
  schedc_gpu_free(gpu);
  return status ? status : compare(s, d, errors, times);
}

// ---- what is printed

static const char *where(const Args *args) {
  return args->model ? "model" : args->cuda ? "cuda" : "cpu";
}

static void text_result(const Session *s, const schedc_error *errors, size_t n,
                        const Times *times) {
  if (!times->uncompared) table_errors(errors, n);
  const char *policy = policy_name(s->args->policy);
  printf("%s  ran in %.2f s ", times->uncompared ? "" : "\n", times->run);
  if (s->args->model) printf("(on the model of a GPU, policy %s)", policy);
  else if (s->args->cuda) printf("(on the GPU, built with NVRTC)");
  else printf("(interpreted, policy %s)", policy);
  if (times->uncompared) puts("\n  nothing was compared: the kernel has no specification");
  else printf(", specification in %.2f s\n", times->compare);
  if (s->args->not_cuda) printf("  on the CPU: %s\n", s->args->not_cuda);
  if (!s->args->cuda || !s->args->bench) return;
  printf("  %.4f ms cold, %.4f ms sustained\n", times->cuda.cold_ms, times->cuda.sustained_ms);
}

static void json_result(const Session *s, const Data *d, const Tuned *tuned, const char *kase,
                        const schedc_error *errors, size_t n, bool pass, const Times *times) {
  Json j = {.write = stdout_write};
  json_open(&j, '{');
  json_key(&j, "kernel"), json_text(&j, d ? schedc_kernel_name(d->kernel) : NULL);
  json_key(&j, "case"), json_text(&j, kase);
  json_key(&j, "on"), json_text(&j, where(s->args));
  json_key(&j, "policy"), json_text(&j, policy_name(s->args->policy));
  json_key(&j, "seed"), json_uint(&j, s->args->seed);
  json_key(&j, "inputs"), json_text(&j, schedc_input_at(s->args->inputs[0]));
  json_key(&j, "dims"), json_open(&j, '{');
  for (size_t i = 0; d && i < d->dim_count; i++)
    json_key(&j, d->dims[i].name), json_int(&j, d->dims[i].value);
  json_close(&j, '}');
  if (tuned->store) json_key(&j, "tuned"), tuned_json(tuned, &tuned->record, &j);
  json_key(&j, "outputs"), table_json(&j, errors, n);
  json_key(&j, "pass");
  if (times->uncompared) json_text(&j, NULL);
  else json_bool(&j, pass);
  json_key(&j, "run_seconds"), json_real(&j, times->run);
  json_key(&j, "specification_seconds"), json_real(&j, times->compare);
  json_key(&j, "diagnostics");
  json_raw(&j, "[");
  json_raw(&j, s->reports.n ? s->reports.at : "");
  json_raw(&j, "]}\n");
}

// The verdict of the output that is worst off.
static const char *verdict(const schedc_error *errors, size_t n, bool pass) {
  bool unproven = !pass && n > 0;
  for (size_t i = 0; i < n; i++) unproven = unproven && (errors[i].pass || errors[i].unproven);
  return pass ? "PASS" : unproven ? "UNPROVEN" : "FAIL";
}

// Everything after the kernel is there.
static int run_kernel(Session *s, const schedc_kernel *kernel, size_t kase, const Tuned *tuned) {
  Data d;
  Times times = {0};
  size_t outputs = schedc_output_count(kernel);
  schedc_error *errors = need(calloc(outputs + 1, sizeof *errors));
  for (size_t i = 0; i <= outputs; i++) errors[i].size = sizeof *errors;
  bool text = s->args->format == FORMAT_TEXT, pass = false;
  const char *name = schedc_kernel_case_name(kernel, kase);
  int code = data_open(&d, s, kernel, kase, NULL, &s->args->set);
  if (!code) code = data_allocate(&d, s);
  if (!code) code = data_load(&d, s);
  if (!code) {
    if (text) table_head(s, &d, name, tuned->store ? tuned : NULL);
    data_fill(&d, s, kase, s->args->inputs[0],
              s->args->inputs_seed_given ? s->args->inputs_seed : s->args->seed);
    schedc_status status = execute(s, &d, kase, errors, &times);
    code = session_status(s, status);
    pass = code == EXIT_GOOD && outputs > 0;
    for (size_t i = 0; i < outputs; i++) pass = pass && errors[i].pass;
    bool done = code == EXIT_GOOD, ran = code != EXIT_ENVIRONMENT;
    bool compared = done && !times.uncompared;
    if (status == SCHEDC_EFAULT && s->args->model && text)
      printf("\n  With lanes that never leave their warp it %s.\n",
             fails_together(s, &d) ? "fails, too"
                                   : "ends: PTX lets them part, but hardware seldom does");
    if (done && text) text_result(s, errors, outputs, &times);
    if (done) code = data_save(&d, s);
    if (!text) json_result(s, &d, tuned, name, errors, compared ? outputs : 0, pass, &times);
    else if (ran && !times.uncompared) puts(verdict(errors, compared ? outputs : 0, pass));
    if (code == EXIT_GOOD && !pass && !times.uncompared) code = EXIT_BAD;
  } else if (s->reports.n) {
    session_print_reports(s);
  }
  data_close(&d);
  free(errors);
  return code;
}

// Where --on does not say: on a Hopper GPU, if there is one; but what only the interpreter knows
// asks for it.
static void choose_where(Args *args, schedc_context *context, char *why, size_t room) {
  if (args->on_given || args->policy_given || args->sms) return;
  args->cuda = schedc_gpu_available(context, args->device, why, room) == SCHEDC_OK;
  args->not_cuda = args->cuda ? NULL : why;
}

// Does an output go to standard output? Then the report goes to standard error.
static int give_standard_output(Session *s) {
  const Pairs *out = &s->args->out;
  size_t n = 0;
  for (size_t i = 0; i < out->n; i++) n += strcmp(out->at[i].value, "-") == 0;
  if (!n) return EXIT_GOOD;
  if (n > 1) return cli_usage(s->args, "only one output can go to standard output");
  if (s->args->format == FORMAT_JSON)
    return cli_usage(s->args, "--format json and an output to '-' both want the standard output");
  int fd = dup(STDOUT_FILENO);
  s->bytes = fd < 0 ? NULL : fdopen(fd, "wb");
  if (s->bytes && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0) return EXIT_GOOD;
  return cli_fail(s->args, "cannot write to standard output: %s", strerror(errno));
}

int command_run(const Args *asked) {
  Session s;
  Args chosen = *asked;
  const Args *args = &chosen;
  char why[256] = "";
  schedc_kernel *kernel = NULL;
  size_t kase = SIZE_MAX;
  Tuned tuned = {0};
  int code = model_open(args);
  if (code) return code;
  code = session_open(&s, args, 0);
  if (!code) code = give_standard_output(&s);
  if (!code) choose_where(&chosen, s.context, why, sizeof why);
  if (!code) code = tuned_open(&s, &tuned, args->cuda);
  if (!code) code = session_kernel(&s, &kernel, &kase);
  if (!code) code = tuned_kernel(&s, &tuned, &kernel, &kase);
  if (!code) code = run_kernel(&s, kernel, kase, &tuned);
  else if (args->format == FORMAT_JSON) session_print_reports(&s);
  tuned_close(&tuned);
  schedc_kernel_free(kernel);
  session_close(&s);
  return code;
}
