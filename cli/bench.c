// bench.c - `schedc bench`: variants of kernels (variants.c), each compared with its specification
// and measured in the same run on a GPU, in turns. A variant that is left out, because the schedule
// refuses it or it cannot be built or run, is a row that says so; one that is wrong has no figures.
#include "cli/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct Bench {
  const Args *args;
  Variants all;
  size_t n;  // those that are not left out
  Variant **variant;
  schedc_gpu_job *job;
  schedc_gpu_info gpu;
  Buffer device;        // its name
  double run, compare;  // seconds
} Bench;

// ---- running

// The variants that are not left out.
static void gather(Bench *b) {
  b->n = 0;
  free(b->variant);
  b->variant = need(calloc(b->all.n + 1, sizeof(Variant *)));
  for (size_t i = 0; i < b->all.n; i++)
    if (!b->all.at[i].out) b->variant[b->n++] = &b->all.at[i];
}

// The session whose context the GPU has.
static Session *host(Bench *b) { return &b->all.at[0].session; }

static schedc_status run_jobs(Bench *b, schedc_gpu *gpu) {
  schedc_gpu_options options = SCHEDC_GPU_OPTIONS_INIT;
  schedc_build_options building = build_options(b->args);
  options.build = &building;
  options.repeats = b->args->repeat;
  options.rounds = b->args->rounds;
  free(b->job);
  b->job = need(calloc(b->n + 1, sizeof *b->job));
  for (size_t i = 0; i < b->n; i++) b->job[i] = data_job(&b->variant[i]->data);
  return schedc_gpu_run(gpu, b->job, b->n, &options);
}

// Leaves out what cannot be built or run by itself.
static int try_each(Bench *b, schedc_gpu *gpu) {
  schedc_gpu_options once = SCHEDC_GPU_OPTIONS_INIT;
  schedc_build_options building = build_options(b->args);
  int code = EXIT_GOOD;
  once.build = &building;
  for (size_t i = 0; i < b->n && !code; i++) {
    Variant *v = b->variant[i];
    schedc_gpu_job job = data_job(&v->data);
    session_forget(host(b));
    code = session_status(host(b), schedc_gpu_run(gpu, &job, 1, &once));
    code = variant_leave(v, host(b), code);
    data_rewind(&v->data);
  }
  gather(b);
  return code;
}

static int run(Bench *b) {
  schedc_gpu *gpu;
  double start = seconds();
  schedc_status status = schedc_gpu_new(&gpu, host(b)->context, b->args->device);
  if (!status) status = run_jobs(b, gpu);
  bool some = b->args->vary.n && (status == SCHEDC_EINPUT || status == SCHEDC_EFAULT);
  int code = some ? try_each(b, gpu) : session_status(host(b), status);
  if (some && !code && b->n) code = session_status(host(b), status = run_jobs(b, gpu));
  if (!status) {
    b->gpu = (schedc_gpu_info)SCHEDC_GPU_INFO_INIT;
    schedc_gpu_get_info(gpu, &b->gpu);
    buffer_puts(&b->device, b->gpu.name);
    b->gpu.name = b->device.at;
  }
  schedc_gpu_free(gpu);
  b->run = seconds() - start;
  return code;
}

// Each output within tolerance, and the same bits every time where sums have a fixed order.
static int verify(Bench *b, bool *right) {
  double start = seconds();
  *right = true;
  for (size_t i = 0; i < b->n; i++) {
    Variant *v = b->variant[i];
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
  double spread;           // of the sustained rounds; NaN: there was one
} Figures;

static Figures figures(const Bench *b, size_t i) {
  const schedc_work *w = &b->variant[i]->work;
  const schedc_cuda_times *t = &b->job[i].times;
  Figures f = {.operations = w->said > 0 ? w->said : w->products};
  double cycles = t->sustained_ms * 1e3 * t->clock_mhz * b->gpu.multiprocessors;
  f.cold = t->cold_ms > 0 ? f.operations / t->cold_ms * 1e-9 : 0;
  f.sustained = t->sustained_ms > 0 ? f.operations / t->sustained_ms * 1e-9 : 0;
  f.bytes = t->sustained_ms > 0 ? w->bytes / t->sustained_ms * 1e-6 : 0;
  f.tensor = cycles > 0 ? w->tensor_cycles / cycles : 0;
  f.spread = b->args->rounds > 1 ? (t->most_ms - t->least_ms) / t->sustained_ms : (double)NAN;
  return f;
}

// "fa3_fwd stages=2", cut to what a column has room for.
static const char *variant_name(const Variant *v, char *to, size_t room) {
  const char *unit =
      v->kernel ? schedc_kernel_name(v->kernel) : v->args.operand[v->args.operands - 1];
  snprintf(to, room, "%s%s%s", unit, v->name.n ? " " : "", v->name.n ? v->name.at : "");
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
  if (v->is_tuned) {
    Buffer said = {0};
    tuned_text(&v->tuned, &v->tuned.record, &said);
    printf("%s  tuned: %s", v->data.dim_count ? "\n" : "", said.at);
    free(said.at);
  }
  const schedc_work *w = &v->work;
  printf("%s%.4g GB", v->data.dim_count ? "\n  " : "  ", w->bytes * 1e-9);
  if (w->said > 0) printf(", %.4g TFLOP a launch, as `work` says", w->said * 1e-12);
  if (w->products > 0) printf(", %.4g TFLOP of products as scheduled", w->products * 1e-12);
  putchar('\n');
}

static void text_result(const Bench *b) {
  printf("\n%s, %u multiprocessors\n\n", b->gpu.name, b->gpu.multiprocessors);
  printf("  %-44s %9s %9s  %14s  %7s %5s %4s %6s %7s %6s\n", "", "ms cold", "sust.",
         "TFLOP/s  sust.", "GB/s", "MHz", "W", "tensor", "spread", "ratio");
  size_t base = 0;  // of the ratios
  while (base + 1 < b->n && !b->variant[base]->right) base++;
  for (size_t i = 0; i < b->n; i++) {
    char name[45];
    const schedc_cuda_times *t = &b->job[i].times;
    Figures f = figures(b, i);
    if (!b->variant[i]->right) continue;
    printf("  %-44s %9.4f %9.4f  %6.1f  %6.1f  %7.1f %5.0f %4.0f",
           variant_name(b->variant[i], name, sizeof name), t->cold_ms, t->sustained_ms, f.cold,
           f.sustained, f.bytes, t->clock_mhz, t->power_w);
    if (f.tensor > 0) printf(" %4.1f %%", f.tensor * 100);
    else printf(" %6s", "-");
    if (f.spread >= 0) printf("  %4.1f %%", f.spread * 100);
    else printf("  %6s", "-");
    double first = figures(b, base).sustained;
    printf("  %5.3f\n", first > 0 ? f.sustained / first : 0);
  }
}

static void text_repeats(const Bench *b) {
  for (size_t i = 0; b->args->repeat > 1 && i < b->n; i++) {
    char name[45];
    printf("  %-44s %llu runs, %llu with other bits than the first\n",
           variant_name(b->variant[i], name, sizeof name), (unsigned long long)b->args->repeat,
           (unsigned long long)b->job[i].differing);
  }
}

// Has it figures? Where one is wrong the others have some only in a sweep.
static bool has_figures(const Bench *b, const Variant *v, bool all_right) {
  return b->args->rounds && v->right && (all_right || b->args->vary.n);
}

// What has no figures, and why.
static void text_others(const Bench *b) {
  bool any = false;
  for (size_t i = 0; i < b->all.n; i++) {
    const Variant *v = &b->all.at[i];
    char name[45];
    bool wrong = b->job && !v->out && !v->right;
    if (!v->out && !wrong) continue;
    if (!any) putchar('\n');
    any = true;
    variant_name(v, name, sizeof name);
    if (v->out && !v->code.n) printf("  %-44s left out: %s\n", name, v->why.at);
    else if (v->out) printf("  %-44s refused: %s, %s\n", name, v->code.at, v->why.at);
    else printf("  %-44s wrong: see above\n", name);
  }
}

static void text_report(const Bench *b, bool right) {
  for (size_t i = 0; i < b->n; i++) {
    text_head(b->variant[i]);
    table_errors(b->variant[i]->errors, b->variant[i]->outputs);
  }
  text_repeats(b);
  bool any = false;
  for (size_t i = 0; i < b->n; i++) any |= has_figures(b, b->variant[i], right);
  if (any) text_result(b);
  text_others(b);
  printf("\n  ran in %.2f s, specification in %.2f s\n%s\n", b->run, b->compare,
         right && b->n ? "PASS" : "FAIL");
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
  key_real(j, "power_w", t->power_w);
  key_real(j, "tensor_utilisation", f.tensor);
  if (!isnan(f.spread)) key_real(j, "spread", f.spread);
}

static void json_variant(Json *j, const Bench *b, size_t i, bool right) {
  const Variant *v = b->variant[i];
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
  if (v->is_tuned) json_key(j, "tuned"), tuned_json(&v->tuned, &v->tuned.record, j);
  key_real(j, "operations", v->work.said > 0 ? v->work.said : v->work.products);
  json_key(j, "operations_from"), json_text(j, v->work.said > 0 ? "work" : "products");
  key_real(j, "product_operations", v->work.products);
  key_real(j, "tensor_cycles", v->work.tensor_cycles), key_real(j, "bytes", v->work.bytes);
  if (b->job) {
    json_key(j, "pass"), json_bool(j, v->right);
    json_key(j, "repeats"), json_uint(j, b->args->repeat);
    json_key(j, "differing"), json_uint(j, b->job[i].differing);
    json_key(j, "outputs"), table_json(j, v->errors, v->outputs);
    if (has_figures(b, v, right)) json_figures(j, b, i);
  }
  json_close(j, '}');
}

static void json_refused(Json *j, const Variant *v) {
  json_open(j, '{');
  json_key(j, "file"), json_text(j, v->args.operand[0]);
  json_key(j, "variant"), json_text(j, v->name.n ? v->name.at : "");
  json_key(j, "inputs"), json_text(j, schedc_input_at(v->args.inputs[0]));
  if (v->code.n) {
    json_key(j, "refused"), json_open(j, '{');
    json_key(j, "code"), json_text(j, v->code.at);
    json_key(j, "text"), json_text(j, v->why.at);
    json_close(j, '}');
  } else {
    json_key(j, "left_out"), json_text(j, v->why.at);
  }
  if (v->is_tuned) json_key(j, "tuned"), tuned_json(&v->tuned, &v->tuned.record, j);
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
  for (size_t i = 0, n = 0; i < b->all.n; i++) {
    if (b->all.at[i].out) json_refused(&j, &b->all.at[i]);
    else json_variant(&j, b, n++, right);
  }
  json_close(&j, ']');
  json_key(&j, "diagnostics");
  json_raw(&j, "[");
  json_raw(&j, b->all.n && b->all.at[0].session.reports.n ? b->all.at[0].session.reports.at : "");
  json_raw(&j, "]}\n");
}

// ---- the command

// Before gigabytes of inputs are made.
static int need_gpu(const Bench *b) {
  char why[512];
  const Session *s = &b->all.at[0].session;
  if (schedc_gpu_available(s->context, b->args->device, why, sizeof why) == SCHEDC_OK)
    return EXIT_GOOD;
  return cli_fail(b->args, "%s", why);
}

// The variants with their inputs; some may be left out.
static int make(Bench *b) {
  int code = variants_make(&b->all);
  if (!code && !b->args->dry_run) code = need_gpu(b);
  for (size_t i = 0; i < b->all.n && !code; i++) code = variant_fill(&b->all.at[i]);
  gather(b);
  return code;
}

static int bench(Bench *b) {
  bool text = b->args->format == FORMAT_TEXT, right = false;
  int code = make(b);
  if (!code && b->args->dry_run) {
    for (size_t i = 0; i < b->n && text; i++) text_head(b->variant[i]);
    if (text) text_others(b);
    else json_report(b, false);
    return b->n ? EXIT_GOOD : EXIT_BAD;
  }
  if (!code && b->n) code = run(b);
  if (!code) code = verify(b, &right);
  if (code) {
    size_t i = 0;
    while (i + 1 < b->all.n && !b->all.at[i].session.reports.n) i++;
    if (b->all.n && b->all.at[i].opened) session_print_reports(&b->all.at[i].session);
    return code;
  }
  if (text) text_report(b, right);
  else json_report(b, right);
  return right && b->n ? EXIT_GOOD : EXIT_BAD;
}

int command_bench(const Args *args) {
  Bench b = {.args = args, .all = {.args = args}};
  int code = model_open(args);
  if (!code) code = bench(&b);
  variants_free(&b.all);
  free(b.variant);
  free(b.job);
  free(b.device.at);
  return code;
}
