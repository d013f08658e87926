// bench.c - `schedc bench`: variants of kernels, each compared with its specification and measured
// in the same run on a GPU, in turns. A variant is a file, with the settings that follow it, one
// choice of what --vary names and one of the --inputs. If one of them is wrong, no figure is
// printed.
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct Variant {
  Args args;         // the command line's, with this variant's settings
  char *operand[2];  // file and kernel
  Buffer name;       // what tells it from the others
  bool opened;
  Session session;
  schedc_kernel *kernel;
  size_t kase;
  Data data;
  schedc_work work;
  schedc_error *errors;
  size_t outputs;
  bool right;
} Variant;

typedef struct Bench {
  const Args *args;
  size_t n;
  Variant *variant;
  schedc_gpu_job *job;
  schedc_gpu_info gpu;
  Buffer device;        // its name
  double run, compare;  // seconds
} Bench;

enum { MAX_VARIANTS = 256, SMALL = 1 << 22 };

// ---- the variants

static size_t count_values(const char *list) {
  size_t n = 1;
  for (; *list; list++) n += *list == ',';
  return n;
}

static size_t input_kinds(const Args *args) { return args->input_count ? args->input_count : 1; }

// Value number `which` of a comma-separated list; the caller frees it.
static char *value_at(const char *list, size_t which) {
  while (which--) list = strchr(list, ',') + 1;
  size_t n = strcspn(list, ",");
  char *text = need(malloc(n + 1));
  memcpy(text, list, n);
  text[n] = 0;
  return text;
}

static bool is_file(const char *operand) {
  const char *dot = strrchr(operand, '.');
  return dot && strcmp(dot, ".sched") == 0;
}

static void add_pair(Pairs *p, const char *name, const char *value) {
  p->at = need(realloc(p->at, sizeof *p->at * (p->n + 1)));
  p->at[p->n++] = (schedc_param){name, value};
}

static Pairs copy_pairs(const Pairs *p) {
  Pairs copy = {0};
  for (size_t i = 0; i < p->n; i++) add_pair(&copy, p->at[i].name, p->at[i].value);
  return copy;
}

static bool is_param(const schedc_kernel *k, const char *name) {
  schedc_param_info info = SCHEDC_PARAM_INFO_INIT;
  for (size_t i = 0; schedc_param_at(k, i, &info) == SCHEDC_OK; i++) {
    if (strcmp(info.name, name) == 0) return true;
  }
  return false;
}

// `name` of kernel k, which may be a param, a dimension or a scalar. Takes the value.
static void set_value(Variant *v, const schedc_kernel *k, const char *name, char *value) {
  char *own = strdup(name);
  add_pair(is_param(k, name) ? &v->args.param : &v->args.set, need(own), value);
  buffer_printf(&v->name, "%s%s=%s", v->name.n ? " " : "", name, value);
}

// The settings behind the file's name, and choice `which` of `all` that --vary asks for.
static void settle(Variant *v, const schedc_kernel *k, char **word, int words, size_t which,
                   size_t all) {
  const Pairs *vary = &v->args.vary;
  for (int i = 0; i < words; i++) {
    const char *eq = strchr(word[i], '=');
    if (!eq) continue;
    char *name = need(strndup(word[i], (size_t)(eq - word[i])));
    set_value(v, k, name, need(strdup(eq + 1)));
    free(name);
  }
  for (size_t i = 0; i < vary->n; i++) {
    size_t n = count_values(vary->at[i].value);
    all /= n;
    set_value(v, k, vary->at[i].name, value_at(vary->at[i].value, which / all % n));
  }
}

static int open_variant(Variant *v) {
  v->opened = true;
  int code = session_open(&v->session, &v->args, 0);
  if (!code) code = session_kernel(&v->session, &v->kernel, &v->kase);
  return code;
}

// The kind of input, which tells variants apart where several are asked for.
static void choose_inputs(Variant *v, InputKind kind) {
  if (v->args.input_count > 1)
    buffer_printf(&v->name, "%sinputs=%s", v->name.n ? " " : "", schedc_input_at(kind));
  v->args.inputs[0] = kind;
  v->args.input_count = 1;
}

// A file, what follows it (a kernel's name, settings), and choice number `which`.
static int make_variant(Bench *b, Variant *v, char **word, int words, size_t which, size_t all) {
  size_t kinds = input_kinds(b->args);
  v->args = *b->args;
  v->args.param = copy_pairs(&b->args->param);
  v->args.set = copy_pairs(&b->args->set);
  v->args.operand = v->operand;
  v->args.operands = 1;
  v->operand[0] = word[0];
  for (int i = 1; i < words; i++) {
    if (strchr(word[i], '=')) continue;
    if (v->args.operands == 2)
      return cli_usage(b->args, "'%s' is neither a file nor a setting", word[i]);
    v->operand[v->args.operands++] = word[i];
  }
  if (words > v->args.operands || v->args.vary.n) {
    Variant any = {.args = v->args};  // which names are params does not depend on their values
    int code = open_variant(&any);
    if (!code) settle(v, any.kernel, word + 1, words - 1, which / kinds, all / kinds);
    schedc_kernel_free(any.kernel);
    session_close(&any.session);
    if (code) return code;
  }
  choose_inputs(v, b->args->inputs[which % kinds]);
  return open_variant(v);
}

static int make_variants(Bench *b) {
  const Args *args = b->args;
  size_t each = input_kinds(args);
  for (size_t i = 0; i < args->vary.n; i++) {
    each *= count_values(args->vary.at[i].value);
    if (each > MAX_VARIANTS) return cli_usage(args, "more than %d variants", MAX_VARIANTS);
  }
  b->variant = need(calloc(each * (size_t)args->operands, sizeof *b->variant));
  for (int i = 0, words; i < args->operands; i += words) {
    for (words = 1; i + words < args->operands && !is_file(args->operand[i + words]);) words++;
    if (b->n + each > MAX_VARIANTS) return cli_usage(args, "more than %d variants", MAX_VARIANTS);
    for (size_t w = 0; w < each; w++) {
      int code = make_variant(b, &b->variant[b->n++], args->operand + i, words, w, each);
      if (code) return code;
    }
  }
  return EXIT_GOOD;
}

static schedc_status give(Variant *v) {
  schedc_gpu *gpu = NULL;
  schedc_status status = schedc_gpu_new(&gpu, v->session.context, v->args.device);
  if (!status) status = data_give(&v->data, &v->session, v->kase, gpu);
  schedc_gpu_free(gpu);
  return status;
}

static int fill_variant(Variant *v) {
  Session *s = &v->session;
  int code = data_open(&v->data, s, v->kernel, v->kase, NULL, &s->args->set);
  if (!code) code = data_allocate(&v->data, s);
  if (!code) code = data_load(&v->data, s);
  if (code) return code;
  // What is counted may depend on lengths in small tensors.
  if (!v->args.dry_run || data_elements(&v->data) < SMALL)
    data_fill(&v->data, v->kase, v->args.inputs[0], v->args.seed);
  if (!v->args.dry_run) code = session_status(s, give(v));
  if (code) return code;
  v->outputs = schedc_output_count(v->kernel);
  v->errors = need(calloc(v->outputs + 1, sizeof *v->errors));
  for (size_t i = 0; i <= v->outputs; i++) v->errors[i].size = sizeof *v->errors;
  v->work = (schedc_work)SCHEDC_WORK_INIT;
  const Data *d = &v->data;
  return session_status(s, schedc_count_work(s->context, v->kernel, d->tensors, d->tensor_count,
                                             d->scalars, d->scalar_count, &v->work));
}

static void close_variant(Variant *v) {
  if (!v->opened) return;
  data_close(&v->data);
  schedc_kernel_free(v->kernel);
  session_close(&v->session);
  free(v->errors);
}

static void free_pairs(Pairs *of, size_t shared) {
  for (size_t i = shared; i < of->n; i++) {
    free((char *)of->at[i].name);
    free((char *)of->at[i].value);
  }
  free(of->at);
}

// What set_value() made are the last of a variant's settings.
static void free_settings(const Bench *b, Variant *v) {
  free_pairs(&v->args.param, b->args->param.n);
  free_pairs(&v->args.set, b->args->set.n);
  free(v->name.at);
}

// ---- running

static schedc_status run_jobs(Bench *b) {
  schedc_gpu *gpu;
  schedc_gpu_options options = SCHEDC_GPU_OPTIONS_INIT;
  schedc_build_options building = build_options(b->args);
  options.build = &building;
  options.repeats = b->args->repeat;
  options.rounds = b->args->rounds;
  b->job = need(calloc(b->n, sizeof *b->job));
  for (size_t i = 0; i < b->n; i++) b->job[i] = data_job(&b->variant[i].data);
  double start = seconds();
  schedc_status status = schedc_gpu_new(&gpu, b->variant[0].session.context, b->args->device);
  if (!status) status = schedc_gpu_run(gpu, b->job, b->n, &options);
  if (!status) {
    b->gpu = (schedc_gpu_info)SCHEDC_GPU_INFO_INIT;
    schedc_gpu_get_info(gpu, &b->gpu);
    buffer_puts(&b->device, b->gpu.name);
    b->gpu.name = b->device.at;
  }
  schedc_gpu_free(gpu);
  b->run = seconds() - start;
  return status;
}

// Each output within tolerance, and the same bits every time where sums have a fixed order.
static int verify(Bench *b, bool *right) {
  double start = seconds();
  *right = true;
  for (size_t i = 0; i < b->n; i++) {
    Variant *v = &b->variant[i];
    int code = session_status(&v->session, data_compare(&v->data, &v->session, v->errors));
    if (code) return code;
    v->right = v->outputs > 0 && !b->job[i].differing;
    for (size_t o = 0; o < v->outputs; o++)
      v->right = v->right && table_right(b->args, v->args.inputs[0], &v->errors[o]);
    *right = *right && v->right;
  }
  b->compare = seconds() - start;
  return EXIT_GOOD;
}

// ---- figures

typedef struct Figures {
  double operations;       // that are counted: said by the schedule, else its products'
  double cold, sustained;  // TFLOP/s
  double bytes;            // GB/s, sustained
  double tensor;           // ideal cycles of the tensor cores over measured ones; 0: not known
  double spread;           // of the sustained launches
} Figures;

static Figures figures(const Bench *b, size_t i) {
  const schedc_work *w = &b->variant[i].work;
  const schedc_cuda_times *t = &b->job[i].times;
  Figures f = {.operations = w->said > 0 ? w->said : w->products};
  double cycles = t->sustained_ms * 1e3 * t->clock_mhz * b->gpu.multiprocessors;
  f.cold = t->cold_ms > 0 ? f.operations / t->cold_ms * 1e-9 : 0;
  f.sustained = t->sustained_ms > 0 ? f.operations / t->sustained_ms * 1e-9 : 0;
  f.bytes = t->sustained_ms > 0 ? w->bytes / t->sustained_ms * 1e-6 : 0;
  f.tensor = cycles > 0 ? w->tensor_cycles / cycles : 0;
  f.spread = t->sustained_ms > 0 ? (t->most_ms - t->least_ms) / t->sustained_ms : 0;
  return f;
}

// "fa3_fwd stages=2", cut to what a column has room for.
static const char *variant_name(const Variant *v, char *to, size_t room) {
  snprintf(to, room, "%s%s%s", schedc_kernel_name(v->kernel), v->name.n ? " " : "",
           v->name.n ? v->name.at : "");
  return to;
}

static void text_head(const Variant *v) {
  const char *name = schedc_kernel_case_name(v->kernel, v->kase);
  printf("%s  (%s%s%s)%s%s\n", schedc_kernel_name(v->kernel), v->args.operand[0],
         name ? ", case " : "", name ? name : "", v->name.n ? "  " : "",
         v->name.n ? v->name.at : "");
  for (size_t i = 0; i < v->data.dim_count; i++) {
    printf("%s%s = %lld", i ? ", " : "  ", v->data.dims[i].name, (long long)v->data.dims[i].value);
  }
  const schedc_work *w = &v->work;
  printf("%s%.4g GB", v->data.dim_count ? "\n  " : "  ", w->bytes * 1e-9);
  if (w->said > 0) printf(", %.4g TFLOP a launch, as `work` says", w->said * 1e-12);
  if (w->products > 0) printf(", %.4g TFLOP of products as scheduled", w->products * 1e-12);
  putchar('\n');
}

static void text_result(const Bench *b) {
  printf("\n%s, %u multiprocessors\n\n", b->gpu.name, b->gpu.multiprocessors);
  printf("  %-44s %9s %9s  %14s  %7s %5s %6s %7s %6s\n", "", "ms cold", "sust.", "TFLOP/s  sust.",
         "GB/s", "MHz", "tensor", "spread", "ratio");
  for (size_t i = 0; i < b->n; i++) {
    char name[45];
    const schedc_cuda_times *t = &b->job[i].times;
    Figures f = figures(b, i);
    printf("  %-44s %9.4f %9.4f  %6.1f  %6.1f  %7.1f %5.0f",
           variant_name(&b->variant[i], name, sizeof name), t->cold_ms, t->sustained_ms, f.cold,
           f.sustained, f.bytes, t->clock_mhz);
    if (f.tensor > 0) printf(" %4.1f %%", f.tensor * 100);
    else printf(" %6s", "-");
    double first = figures(b, 0).sustained;
    printf("  %4.1f %%  %5.3f\n", f.spread * 100, first > 0 ? f.sustained / first : 0);
  }
}

static void text_repeats(const Bench *b) {
  for (size_t i = 0; b->args->repeat > 1 && i < b->n; i++) {
    char name[45];
    printf("  %-44s %llu runs, %llu with other bits than the first\n",
           variant_name(&b->variant[i], name, sizeof name), (unsigned long long)b->args->repeat,
           (unsigned long long)b->job[i].differing);
  }
}

static void text_report(const Bench *b, bool right) {
  for (size_t i = 0; i < b->n; i++) {
    text_head(&b->variant[i]);
    table_errors(b->variant[i].errors, b->variant[i].outputs);
  }
  text_repeats(b);
  if (right && b->args->rounds) text_result(b);
  printf("\n  ran in %.2f s, specification in %.2f s\n%s\n", b->run, b->compare,
         right ? "PASS" : "FAIL");
}

// ---- JSON

static void key_real(Json *j, const char *key, double v) { json_key(j, key), json_real(j, v); }

static void json_figures(Json *j, const Bench *b, size_t i) {
  const schedc_cuda_times *t = &b->job[i].times;
  Figures f = figures(b, i);
  key_real(j, "cold_ms", t->cold_ms), key_real(j, "sustained_ms", t->sustained_ms);
  key_real(j, "least_ms", t->least_ms), key_real(j, "most_ms", t->most_ms);
  key_real(j, "tflops_cold", f.cold), key_real(j, "tflops_sustained", f.sustained);
  key_real(j, "gb_per_second", f.bytes), key_real(j, "clock_mhz", t->clock_mhz);
  key_real(j, "tensor_utilisation", f.tensor), key_real(j, "spread", f.spread);
}

static void json_variant(Json *j, const Bench *b, size_t i, bool right) {
  const Variant *v = &b->variant[i];
  schedc_param_info p = SCHEDC_PARAM_INFO_INIT;
  json_open(j, '{');
  json_key(j, "file"), json_text(j, v->args.operand[0]);
  json_key(j, "kernel"), json_text(j, schedc_kernel_name(v->kernel));
  json_key(j, "case"), json_text(j, schedc_kernel_case_name(v->kernel, v->kase));
  json_key(j, "variant"), json_text(j, v->name.n ? v->name.at : "");
  json_key(j, "inputs"), json_text(j, schedc_input_at(v->args.inputs[0]));
  json_key(j, "params"), json_open(j, '{');
  for (size_t n = 0; schedc_param_at(v->kernel, n, &p) == SCHEDC_OK; n++)
    json_key(j, p.name), json_text(j, p.value);
  json_close(j, '}');
  json_key(j, "dims"), json_open(j, '{');
  for (size_t n = 0; n < v->data.dim_count; n++)
    json_key(j, v->data.dims[n].name), json_int(j, v->data.dims[n].value);
  json_close(j, '}');
  key_real(j, "operations", v->work.said > 0 ? v->work.said : v->work.products);
  json_key(j, "operations_from"), json_text(j, v->work.said > 0 ? "work" : "products");
  key_real(j, "product_operations", v->work.products);
  key_real(j, "tensor_cycles", v->work.tensor_cycles), key_real(j, "bytes", v->work.bytes);
  if (b->job) {
    json_key(j, "pass"), json_bool(j, v->right);
    json_key(j, "repeats"), json_uint(j, b->args->repeat);
    json_key(j, "differing"), json_uint(j, b->job[i].differing);
    json_key(j, "outputs"), table_json(j, v->errors, v->outputs);
    if (right && b->args->rounds) json_figures(j, b, i);
  }
  json_close(j, '}');
}

static void json_report(const Bench *b, bool right) {
  Json j = {.write = stdout_write};
  char date[32];
  time_t now = time(NULL);
  struct tm utc;
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  json_open(&j, '{');
  json_key(&j, "date"), json_text(&j, date);
  json_key(&j, "schedc"), json_text(&j, schedc_version());
  json_key(&j, "command"), json_open(&j, '[');
  for (int i = 0; i < b->args->argc; i++) json_text(&j, b->args->argv[i]);
  json_close(&j, ']');
  if (b->job) {
    json_key(&j, "device"), json_text(&j, b->gpu.name);
    json_key(&j, "multiprocessors"), json_uint(&j, b->gpu.multiprocessors);
    json_key(&j, "driver"), json_uint(&j, b->gpu.driver_version);
    json_key(&j, "rounds"), json_uint(&j, b->args->rounds);
    json_key(&j, "pass"), json_bool(&j, right);
  }
  json_key(&j, "variants"), json_open(&j, '[');
  for (size_t i = 0; i < b->n; i++) json_variant(&j, b, i, right);
  json_close(&j, ']');
  json_key(&j, "diagnostics");
  json_raw(&j, "[");
  json_raw(&j, b->n && b->variant[0].session.reports.n ? b->variant[0].session.reports.at : "");
  json_raw(&j, "]}\n");
}

// ---- the command

// Before gigabytes of inputs are made.
static int need_gpu(const Bench *b) {
  char why[512];
  const Session *s = &b->variant[0].session;
  if (schedc_gpu_available(s->context, b->args->device, why, sizeof why) == SCHEDC_OK)
    return EXIT_GOOD;
  return cli_fail(b->args, "%s", why);
}

static int bench(Bench *b) {
  bool text = b->args->format == FORMAT_TEXT, right = false;
  int code = make_variants(b);
  if (!code && !b->args->dry_run) code = need_gpu(b);
  for (size_t i = 0; i < b->n && !code; i++) code = fill_variant(&b->variant[i]);
  if (!code && b->args->dry_run) {
    for (size_t i = 0; i < b->n && text; i++) text_head(&b->variant[i]);
    if (!text) json_report(b, false);
    return EXIT_GOOD;
  }
  if (!code) code = session_status(&b->variant[0].session, run_jobs(b));
  if (!code) code = verify(b, &right);
  if (code) {
    size_t i = 0;
    while (i + 1 < b->n && !b->variant[i].session.reports.n) i++;
    if (b->n && b->variant[i].opened) session_print_reports(&b->variant[i].session);
    return code;
  }
  if (text) text_report(b, right);
  else json_report(b, right);
  return right ? EXIT_GOOD : EXIT_BAD;
}

int command_bench(const Args *args) {
  Bench b = {.args = args};
  int code = model_open(args);
  if (!code) code = bench(&b);
  for (size_t i = 0; i < b.n; i++) {
    close_variant(&b.variant[i]);
    free_settings(&b, &b.variant[i]);
  }
  free(b.variant);
  free(b.job);
  free(b.device.at);
  return code;
}
