// test.c - `schedc test`: every case of a file's kernels, with the combinations of its choices,
// under all policies, on several inputs. A test is one run. The first policy's outputs are compared
// with the specification; those of the others must be the same bits (within tolerance, if sums in no
// fixed order are in them). On a GPU there are no policies: a test is a
// combination on one input, run several times, with the same bits each time. What is not run is
// counted and named. What the compiler says is said once, with all combinations of which it is
// true.
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// How much is tried: elements of all tensors together, seeds of the random policy.
typedef struct Level {
  uint64_t elements;
  int seeds;
  bool all;
} Level;

typedef struct Tally {
  size_t passed, failed, too_large, unmet, combinations;
} Tally;

// A report of combinations that could not be instantiated.
typedef struct Refusal {
  char *report;  // text or JSON
  size_t times, places;
  Buffer where;    // "gemm small, gemm lengths -p BM=64": the first few places
  Buffer last;     // the last place
  Buffer command;  // for the first
} Refusal;

typedef struct Tester {
  Session *s;
  const char *unit, *case_name;
  size_t kase;
  Level level;
  Tally tally;
  const size_t *choice;
  schedc_kernel *kernel;
  Data data;
  void **kept;  // outputs of the first policy
  schedc_error *errors;
  Progress progress;
  Buffer failures;  // JSON
  Refusal *refusal;
  size_t refusals;
  schedc_gpu *gpu;  // --on cuda
  bool no_gpu;
} Tester;

// Above these, a GPU is given two inputs instead of all, once each.
enum { LARGE = 1 << 24, REPEATS = 3 };

static const char *const policy_name[] = {"early", "late", "random"};

// What the combination chose, of params alone or of all lines of its case. like: an instance of the
// case; NULL: there is none, and nothing was chosen.
static void put_choices(const Tester *t, const schedc_kernel *like, bool all, Buffer *b) {
  schedc_bind_info line = SCHEDC_BIND_INFO_INIT;
  for (size_t i = 0; like && schedc_bind_at(like, t->kase, i, &line) == SCHEDC_OK; i++) {
    bool param = line.kind == SCHEDC_BIND_PARAM;
    if (!line.is_choice || line.count < 2 || (!param && !all)) continue;
    buffer_printf(b, " %s %s=%s", param ? "-p" : "--set", line.name, line.texts[t->choice[i]]);
  }
}

static void put_combination(const Tester *t, const schedc_kernel *like, bool all, Buffer *b) {
  const Args *args = t->s->args;
  buffer_printf(b, " %s %s --case %s", args->operand[0], t->unit, t->case_name);
  put_choices(t, like, all, b);
  for (size_t i = 0; i < args->param.n; i++)
    buffer_printf(b, " -p %s=%s", args->param.at[i].name, args->param.at[i].value);
}

// The command that repeats a run.
static void put_command(Tester *t, Buffer *b, InputKind kind, const schedc_run_options *options) {
  const Args *args = t->s->args;
  buffer_puts(b, "schedc run");
  put_combination(t, t->kernel, true, b);
  if (args->cuda) buffer_puts(b, " --on cuda");
  else buffer_printf(b, " --policy %s", policy_name[options->policy]);
  buffer_printf(b, " --seed %llu --inputs %s", (unsigned long long)options->seed,
                sc_input_name[kind]);
}

static void fail(Tester *t, InputKind kind, const schedc_run_options *options, const char *why) {
  Buffer command = {0};
  t->tally.failed++;
  progress_end(&t->progress);
  put_command(t, &command, kind, options);
  if (t->s->args->format == FORMAT_JSON) {
    Json j = {.write = buffer_write, .user = &t->failures, .comma = t->failures.n > 0};
    json_open(&j, '{');
    json_key(&j, "command"), json_text(&j, command.at);
    json_key(&j, "why"), json_text(&j, why);
    json_close(&j, '}');
  } else {
    printf("FAIL %s\n  again: %s\n", why, command.at);
    if (t->s->reports.n) printf("%s", t->s->reports.at);
  }
  session_forget(t->s);
  free(command.at);
}

// ---- what cannot be instantiated

static Refusal *refusal_of(Tester *t, char *report) {
  for (size_t i = 0; i < t->refusals; i++) {
    if (strcmp(t->refusal[i].report, report) != 0) continue;
    free(report);
    return &t->refusal[i];
  }
  t->refusal = need(realloc(t->refusal, (t->refusals + 1) * sizeof *t->refusal));
  t->refusal[t->refusals] = (Refusal){.report = report};
  return &t->refusal[t->refusals++];
}

// Takes the name. Combinations that differ in dimensions alone have the same one, and follow each
// other.
static void add_place(Refusal *r, Buffer *name) {
  enum { NAMED = 8 };
  if (r->last.n && strcmp(r->last.at, name->at) == 0) {
    free(name->at);
    return;
  }
  if (r->places < NAMED) buffer_printf(&r->where, "%s%s", r->places ? ", " : "", name->at);
  if (r->places++ == NAMED) buffer_puts(&r->where, ", …");
  free(r->last.at);
  r->last = *name;
}

static void refuse(Tester *t, const schedc_kernel *like) {
  t->tally.failed++;
  for (size_t i = 0; i < t->s->count; i++) {
    Refusal *r = refusal_of(t, session_report(t->s, i));
    Buffer name = {0};
    if (!r->times++) {
      buffer_puts(&r->command, "schedc check");
      put_combination(t, like, false, &r->command);
    }
    buffer_printf(&name, "%s %s", t->unit, t->case_name);
    put_choices(t, like, false, &name);
    add_place(r, &name);
  }
  session_forget(t->s);
}

static void print_refusals(Tester *t) {
  for (size_t i = 0; i < t->refusals; i++) {
    Refusal *r = &t->refusal[i];
    if (t->s->args->format == FORMAT_JSON) {
      Json j = {.write = buffer_write, .user = &t->failures, .comma = t->failures.n > 0};
      json_open(&j, '{');
      json_key(&j, "command"), json_text(&j, r->command.at);
      json_key(&j, "why"), json_text(&j, "cannot be instantiated");
      json_key(&j, "times"), json_uint(&j, r->times);
      json_key(&j, "where"), json_text(&j, r->where.at);
      json_key(&j, "diagnostic"), json_raw(&j, r->report);
      json_close(&j, '}');
    } else {
      printf("FAIL cannot be instantiated, %zu time%s: %s\n  again: %s\n%s", r->times,
             r->times == 1 ? "" : "s", r->where.at, r->command.at, r->report);
    }
    free(r->report);
    free(r->where.at);
    free(r->last.at);
    free(r->command.at);
  }
  free(t->refusal);
}

// ---- runs

static bool within_tolerance(Tester *t, InputKind kind, const schedc_run_options *options) {
  char why[256];
  schedc_status status = data_compare(&t->data, t->s, t->errors);
  if (status) {
    fail(t, kind, options, schedc_status_text(status));
    return false;
  }
  for (size_t i = 0; i < schedc_output_count(t->kernel); i++) {
    const schedc_error *e = &t->errors[i];
    if (e->pass) continue;
    snprintf(why, sizeof why, "%s: max error %.3e (allowed %.3e), mean %.3e (%.3e), %llu unwritten",
             e->tensor, e->max_error, e->max_allowed, e->mean_error, e->mean_allowed,
             (unsigned long long)e->unwritten);
    fail(t, kind, options, why);
    return false;
  }
  return true;
}

static void keep_outputs(Tester *t) {
  for (size_t i = 0; i < t->data.tensor_count; i++) {
    if (!(t->data.direction[i] & SCHEDC_OUT) || !t->data.bytes[i]) continue;
    memcpy(t->kept[i], t->data.tensors[i].data, t->data.bytes[i]);
  }
}

// The first output that has other bits than the first policy gave it, or NULL: of those that have
// the same bits after every run, or of those in which sums in no fixed order are.
static const char *changed_output(const Tester *t, bool deterministic) {
  for (size_t i = 0; i < t->data.tensor_count; i++) {
    schedc_tensor_info info = SCHEDC_TENSOR_INFO_INIT;
    const schedc_tensor *x = &t->data.tensors[i];
    schedc_tensor_at(t->kernel, i, &info);
    if (!(info.direction & SCHEDC_OUT) || !info.is_deterministic != !deterministic) continue;
    if (t->data.bytes[i] && memcmp(t->kept[i], x->data, t->data.bytes[i]) != 0) return x->name;
  }
  return NULL;
}

static bool is_right(Tester *t, InputKind kind, const schedc_run_options *options, bool first) {
  char why[128];
  const char *changed = first ? NULL : changed_output(t, true);
  if (changed) {
    snprintf(why, sizeof why, "%s: other bits than under policy early", changed);
    fail(t, kind, options, why);
    return false;
  }
  return (!first && !changed_output(t, false)) || within_tolerance(t, kind, options);
}

// One run. False: the combination's requirements do not hold, nothing was run.
static bool run_once(Tester *t, InputKind kind, schedc_policy policy, uint64_t seed, bool first) {
  Data *d = &t->data;
  schedc_run_options options = SCHEDC_RUN_OPTIONS_INIT;
  options.policy = policy;
  options.seed = seed;
  options.threads = t->s->args->threads;
  options.sms = t->s->args->sms;
  data_rewind(d);
  schedc_status status = schedc_run_cpu(t->s->context, t->kernel, d->tensors, d->tensor_count,
                                        d->scalars, d->scalar_count, &options);
  if (status && t->s->unmet && t->s->unmet == t->s->errors) {
    session_forget(t->s);
    return false;
  }
  if (status) {
    fail(t, kind, &options, schedc_status_text(status));
    return true;
  }
  t->tally.passed += is_right(t, kind, &options, first);
  if (first) keep_outputs(t);
  return true;
}

// After a fault the context is of no more use: the next run opens another.
static void forget_gpu(Tester *t) {
  schedc_gpu_info info = SCHEDC_GPU_INFO_INIT;
  t->no_gpu = schedc_gpu_get_info(t->gpu, &info) != SCHEDC_OK;
  schedc_gpu_free(t->gpu);
  t->gpu = NULL;
}

// Did it? If not, it is told of: a combination that may not run, no GPU, or a failure.
static bool went_well(Tester *t, InputKind kind, schedc_status status) {
  schedc_run_options none = SCHEDC_RUN_OPTIONS_INIT;
  none.seed = t->s->args->seed;
  if (!status) return true;
  if (t->s->unmet && t->s->unmet == t->s->errors) {
    session_forget(t->s);
    t->tally.unmet++;
    return false;
  }
  if (status == SCHEDC_EUNAVAIL) forget_gpu(t);
  if (!t->no_gpu) fail(t, kind, &none, schedc_status_text(status));
  return false;
}

// Inputs. False: what the sequence is given could not be made.
static bool fill(Tester *t, InputKind kind) {
  data_fill(&t->data, t->kase, kind, t->s->args->seed);
  return went_well(t, kind, data_give(&t->data, t->s, t->kase, t->gpu));
}

static void run_policies(Tester *t, InputKind kind) {
  uint64_t seed = t->s->args->seed;
  if (!fill(t, kind)) return;
  if (!run_once(t, kind, SCHEDC_EARLY, seed, true)) {
    t->tally.unmet++;
    return;
  }
  run_once(t, kind, SCHEDC_LATE, seed, false);
  for (int i = 0; i < t->level.seeds; i++) {
    run_once(t, kind, SCHEDC_RANDOM, seed + t->tally.combinations * 16 + (uint64_t)i + 1, false);
  }
}

static void run_on_gpu(Tester *t, InputKind kind) {
  const Args *args = t->s->args;
  Data *d = &t->data;
  bool large = data_elements(d) > LARGE;
  schedc_run_options none = SCHEDC_RUN_OPTIONS_INIT;
  schedc_gpu_job job = data_job(d);
  schedc_gpu_options options = SCHEDC_GPU_OPTIONS_INIT;
  schedc_build_options building = build_options(args);
  options.build = &building;
  if (large && !args->input_count && kind > INPUT_OUTLIERS) return;
  none.seed = args->seed;
  options.repeats = args->repeat ? args->repeat : large ? 1 : REPEATS;
  if (!t->gpu && !went_well(t, kind, schedc_gpu_new(&t->gpu, t->s->context))) return;
  if (!fill(t, kind) || !went_well(t, kind, schedc_gpu_run(t->gpu, &job, 1, &options))) return;
  char why[128];
  snprintf(why, sizeof why, "%llu of %llu repeats gave other bits than the first run",
           (unsigned long long)job.differing, (unsigned long long)options.repeats - 1);
  if (job.differing) fail(t, kind, &none, why);
  else t->tally.passed += within_tolerance(t, kind, &none);
}

static int run_data(Tester *t) {
  const Args *args = t->s->args;
  size_t outputs = schedc_output_count(t->kernel);
  int code = data_open(&t->data, t->s, t->kernel, t->kase, t->choice);
  if (!code && data_elements(&t->data) > t->level.elements) {
    t->tally.too_large++;
    return 0;
  }
  if (!code) code = data_allocate(&t->data, t->s);
  if (code) return code;
  t->errors = need(calloc(outputs + 1, sizeof *t->errors));
  t->errors[0].size = sizeof *t->errors;
  t->kept = need(calloc(t->data.tensor_count + 1, sizeof *t->kept));
  for (size_t i = 0; i < t->data.tensor_count; i++) t->kept[i] = need(malloc(t->data.bytes[i] + 1));
  size_t unmet = t->tally.unmet;
  size_t kinds = args->input_count ? args->input_count : INPUT_COUNT;
  for (size_t k = 0; k < kinds && t->tally.unmet == unmet && !t->no_gpu; k++) {
    InputKind kind = args->input_count ? args->inputs[k] : (InputKind)k;
    if (args->cuda) run_on_gpu(t, kind);
    else run_policies(t, kind);
  }
  for (size_t i = 0; i < t->data.tensor_count; i++) free(t->kept[i]);
  free(t->kept);
  free(t->errors);
  if (!t->no_gpu) return 0;
  fputs(t->s->reports.n ? t->s->reports.at : "", stderr);
  return session_status(t->s, SCHEDC_EUNAVAIL);
}

static bool is_given(const Args *args, const char *name) {
  for (size_t i = 0; i < args->param.n; i++) {
    if (strcmp(args->param.at[i].name, name) == 0) return true;
  }
  return false;
}

// Instantiates under the combination's parameters and tests it. `like` is the case's first
// instance.
static int test_combination(Tester *t, const schedc_kernel *like, const size_t *choice) {
  const Args *args = t->s->args;
  size_t lines = schedc_bind_count(like, t->kase), n = args->param.n;
  schedc_param *params = need(calloc(n + lines + 1, sizeof *params));
  if (n) memcpy(params, args->param.at, n * sizeof *params);
  schedc_bind_info line = SCHEDC_BIND_INFO_INIT;
  for (size_t i = 0; i < lines; i++) {
    schedc_bind_at(like, t->kase, i, &line);
    if (line.kind != SCHEDC_BIND_PARAM || !line.is_choice || is_given(args, line.name)) continue;
    params[n++] = (schedc_param){line.name, line.texts[choice[i]]};
  }
  t->choice = choice;
  t->tally.combinations++;
  schedc_status status =
      schedc_instantiate(&t->kernel, t->s->context, t->s->source, t->unit, t->case_name, params, n);
  int code = 0;
  if (status == SCHEDC_OK) {
    session_forget(t->s);
    code = run_data(t);
    data_close(&t->data);
    t->data = (Data){0};
  } else if (t->s->unmet && t->s->unmet == t->s->errors) {
    t->tally.unmet++;
    session_forget(t->s);
  } else {
    code = session_status(t->s, status);
    refuse(t, like);
    if (code == EXIT_BAD) code = 0;  // counted; others may be instantiated
  }
  schedc_kernel_free(t->kernel);
  t->kernel = NULL;
  free(params);
  return code;
}

static int test_case(Tester *t) {
  const Args *args = t->s->args;
  schedc_kernel *like;
  schedc_status status = schedc_instantiate(&like, t->s->context, t->s->source, t->unit,
                                            t->case_name, args->param.at, args->param.n);
  if (status) {
    int code = session_status(t->s, status);
    t->tally.combinations++;
    refuse(t, NULL);
    return code;
  }
  session_forget(t->s);  // warnings are for `check`
  for (t->kase = 0; strcmp(schedc_kernel_case_name(like, t->kase), t->case_name) != 0;) t->kase++;
  size_t lines = schedc_bind_count(like, t->kase);
  size_t *counts = need(calloc(lines + 1, sizeof *counts)),
         *choice = need(calloc(lines + 1, sizeof *choice));
  schedc_bind_info line = SCHEDC_BIND_INFO_INIT;
  for (size_t i = 0; i < lines; i++) {
    schedc_bind_at(like, t->kase, i, &line);
    counts[i] = line.is_choice && line.count && !is_given(args, line.name) ? line.count : 1;
  }
  Cover cover;
  cover_start(&cover, counts, lines, t->level.all);
  int code = 0;
  while (!code && cover_next(&cover, choice)) {
    code = test_combination(t, like, choice);
    progress_report(
        &t->progress,
        (double)cover.given / (double)(cover.pairwise ? cover.given + cover.left : cover.total));
  }
  cover_end(&cover);
  free(counts);
  free(choice);
  schedc_kernel_free(like);
  return code;
}

// All cases of a unit.
static int test_unit(Tester *t, size_t unit) {
  schedc_unit_info info = SCHEDC_UNIT_INFO_INIT;
  schedc_unit(t->s->source, unit, &info);
  t->unit = info.name;
  int worst = 0;
  for (size_t c = 0; c < info.case_count && !t->no_gpu; c++) {
    schedc_case_name(t->s->source, unit, c, &t->case_name);
    if (t->s->args->case_name && strcmp(t->s->args->case_name, t->case_name) != 0) continue;
    int code = test_case(t);
    if (code > worst) worst = code;
  }
  return worst;
}

static int test_source(Tester *t) {
  const Args *args = t->s->args;
  bool found = false;
  int worst = 0;
  for (size_t i = 0; i < schedc_unit_count(t->s->source) && !t->no_gpu; i++) {
    schedc_unit_info info = SCHEDC_UNIT_INFO_INIT;
    schedc_unit(t->s->source, i, &info);
    if (args->operands > 1 && strcmp(info.name, args->operand[1]) != 0) continue;
    found = true;
    int code = test_unit(t, i);
    if (code > worst) worst = code;
  }
  if (!found) return cli_usage(args, "the file has no such kernel");
  return worst;
}

static void summary(const Tester *t, double took) {
  const Tally *n = &t->tally;
  size_t skipped = n->too_large + n->unmet;
  if (t->s->args->format == FORMAT_JSON) {
    Json j = {.write = stdout_write};
    json_open(&j, '{');
    json_key(&j, "file"), json_text(&j, t->s->args->operand[0]);
    json_key(&j, "combinations"), json_uint(&j, n->combinations);
    json_key(&j, "passed"), json_uint(&j, n->passed);
    json_key(&j, "failed"), json_uint(&j, n->failed);
    json_key(&j, "skipped_too_large"), json_uint(&j, n->too_large);
    json_key(&j, "skipped_requirement"), json_uint(&j, n->unmet);
    json_key(&j, "seconds"), json_real(&j, took);
    json_key(&j, "failures");
    json_raw(&j, "[");
    json_raw(&j, t->failures.n ? t->failures.at : "");
    json_raw(&j, "]}\n");
    return;
  }
  printf("%s: %zu passed, %zu failed, %zu skipped", t->s->args->operand[0], n->passed, n->failed,
         skipped);
  printf(" (%zu combination%s, %.1f s)\n", n->combinations, n->combinations == 1 ? "" : "s", took);
  if (n->unmet) printf("  skipped: %zu whose `require` does not hold\n", n->unmet);
  if (n->too_large)
    printf("  skipped: %zu with more than %llu elements\n", n->too_large,
           (unsigned long long)t->level.elements);
}

int command_test(const Args *args) {
  static const Level quick = {1 << 21, 2, false}, normal = {1 << 22, 2, true},
                     full = {1 << 24, 4, true}, gpu = {1 << 30, 0, true};
  Session s;
  Tester t = {.s = &s,
              .level = args->quick  ? quick
                       : args->full ? full
                       : args->cuda ? gpu
                                    : normal};
  double start = seconds();
  int code = session_open(&s, args, 0);
  s.quiet = true;
  if (!code) {
    progress_start(&t.progress, args->operand[0]);
    code = test_source(&t);
    progress_end(&t.progress);
    print_refusals(&t);
    summary(&t, seconds() - start);
    if (!code && (t.tally.failed || !t.tally.passed)) code = EXIT_BAD;
  } else if (args->format == FORMAT_JSON) {
    session_print_reports(&s);
  }
  free(t.failures.at);
  schedc_gpu_free(t.gpu);
  session_close(&s);
  return code;
}
