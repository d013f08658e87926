// test_run.c - `schedc test`: the runs of a combination. Interpreted, each input is run under all
// policies; on a GPU, several times; on the model of a GPU once, on one input, in the way that the
// combination has chosen.
#include "cli/test.h"

#include <stdlib.h>
#include <string.h>

// Above these elements, a GPU is given two inputs instead of all, once each.
enum { LARGE = 1 << 24, SOME_INPUTS = 2, REPEATS = 3 };

static size_t input_kinds(void) {
  size_t n = 0;
  while (schedc_input_at(n)) n++;
  return n;
}

static bool within_tolerance(Tester *t, const Run *run) {
  char why[256];
  bool proven = true;
  schedc_status status = data_compare(&t->data, t->s, t->errors);
  if (status) {
    test_fail(t, run, schedc_status_text(status));
    return false;
  }
  for (size_t i = 0; i < schedc_output_count(t->kernel); i++) {
    const schedc_error *e = &t->errors[i];
    proven = proven && e->pass;
    if (table_right(t->s->args, run->inputs, e)) continue;
    snprintf(
        why, sizeof why,
        "%s: %s%smax error %.3e (allowed %.3e), mean %.3e (%.3e), %llu unwritten, %llu overflowed",
        e->tensor, e->unproven ? table_verdict(e) : "", e->unproven ? ", " : "", e->max_error,
        e->max_allowed, e->mean_error, e->mean_allowed, (unsigned long long)e->unwritten,
        (unsigned long long)e->overflowed);
    test_fail(t, run, why);
    return false;
  }
  t->tally.unproven += !proven;
  return proven;
}

// ---- interpreted

static void keep_outputs(Tester *t) {
  t->kept_any = true;
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

static bool is_right(Tester *t, const Run *run, bool first) {
  char why[128];
  const char *changed = first || !t->kept_any ? NULL : changed_output(t, true);
  if (changed) {
    snprintf(why, sizeof why, "%s: other bits than under policy early", changed);
    test_fail(t, run, why);
    return false;
  }
  // What has the bits of a run that was right is right.
  if (!first && t->kept_right && !changed_output(t, false)) return true;
  bool right = within_tolerance(t, run);
  if (first) t->kept_right = right;
  return right;
}

// Persistent grids are run with one multiprocessor as well: a CTA then takes all tiles.
static unsigned sms_for(const Tester *t, InputKind kind, Policy policy) {
  bool one = policy == POLICY_LATE && kind % 2 == 0 && schedc_is_persistent(t->kernel);
  return t->s->args->sms || !one ? t->s->args->sms : 1;
}

// Was the run refused for what the combination asks for? At another length a list that the case
// gives may leave the range in which it is declared, which depends on that length.
static bool does_not_apply(const Tester *t) {
  const Session *s = t->s;
  return s->errors && s->errors == s->unmet + (t->set.n ? s->unlike : 0);
}

// One run. False: the combination's requirements do not hold, nothing was run.
static bool interpret(Tester *t, Run run, bool first) {
  Data *d = &t->data;
  schedc_run_options options = SCHEDC_RUN_OPTIONS_INIT;
  run.sms = sms_for(t, run.inputs, run.policy);
  options.policy = (schedc_policy)run.policy;
  options.seed = run.seed;
  options.threads = t->s->args->threads;
  options.sms = run.sms;
  data_rewind(d);
  schedc_status status = schedc_run_cpu(t->s->context, t->kernel, d->tensors, d->tensor_count,
                                        d->scalars, d->scalar_count, &options);
  if (status && does_not_apply(t)) {
    session_forget(t->s);
    return false;
  }
  if (status) {
    test_fail(t, &run, schedc_status_text(status));
    return true;
  }
  t->tally.passed += is_right(t, &run, first);
  if (first) keep_outputs(t);
  return true;
}

// ---- on a GPU, or the model of one

// After a fault the context is of no more use: the next run opens another.
static void forget_gpu(Tester *t) {
  schedc_gpu_info info = SCHEDC_GPU_INFO_INIT;
  t->no_gpu = schedc_gpu_get_info(t->gpu, &info) != SCHEDC_OK;
  schedc_gpu_free(t->gpu);
  t->gpu = NULL;
}

// Did it? If not, it is told of: a combination that may not run, no GPU, or a failure.
static bool went_well(Tester *t, const Run *run, schedc_status status) {
  if (!status) return true;
  if (does_not_apply(t)) {
    session_forget(t->s);
    t->tally.unmet++;
    return false;
  }
  if (t->set.n && t->s->misaligned && t->s->misaligned == t->s->errors) {
    session_forget(t->s);
    t->tally.misaligned++;
    return false;
  }
  if (status == SCHEDC_EUNAVAIL || status == SCHEDC_EFAULT) forget_gpu(t);
  if (!t->no_gpu) test_fail(t, run, schedc_status_text(status));
  return false;
}

// Inputs. False: what the sequence is given could not be made.
static bool fill(Tester *t, const Run *run) {
  data_fill(&t->data, t->s, t->kase, run->inputs, t->s->args->seed);
  return went_well(t, run, data_give(&t->data, t->s, t->kase, t->gpu));
}

static void launch(Tester *t, const Run *run, uint64_t repeats) {
  schedc_gpu_job job = data_job(&t->data);
  schedc_gpu_options options = SCHEDC_GPU_OPTIONS_INIT;
  schedc_build_options building = build_options(t->s->args);
  building.debug_waits = run->debug_waits;
  options.build = &building;
  options.repeats = repeats;
  if (!t->gpu && !went_well(t, run, schedc_gpu_new(&t->gpu, t->s->context, t->s->args->device)))
    return;
  if (!fill(t, run) || !went_well(t, run, schedc_gpu_run(t->gpu, &job, 1, &options))) return;
  char why[128];
  snprintf(why, sizeof why, "%llu of %llu repeats gave other bits than the first run",
           (unsigned long long)job.differing, (unsigned long long)repeats - 1);
  if (job.differing) test_fail(t, run, why);
  else t->tally.passed += within_tolerance(t, run);
}

static void run_on_gpu(Tester *t, InputKind kind) {
  const Args *args = t->s->args;
  bool large = data_elements(&t->data) > LARGE;
  if (large && !args->input_count && kind >= SOME_INPUTS) return;
  Run run = {.inputs = kind, .seed = args->seed, .debug_waits = args->debug_waits};
  launch(t, &run, args->repeat ? args->repeat : large ? 1 : REPEATS);
}

static void run_on_model(Tester *t, const Run *run) {
  model_run_as(&(ModelRun){.policy = run->policy, .seed = run->seed, .sms = run->sms});
  launch(t, run, 1);
}

static int write_nowhere(void *user, const char *bytes, size_t n) {
  (void)user, (void)bytes, (void)n;
  return 0;
}

// How many warps, or engines, may be the one that lags: of the kernel that has the most.
static uint64_t laggards(Tester *t) {
  enum { ENGINES = 4, WARP = 32 };
  schedc_build_info info = SCHEDC_BUILD_INFO_INIT;
  schedc_build_options building = build_options(t->s->args);
  schedc_build(t->s->context, t->kernel, SCHEDC_CUDA_C, &building, write_nowhere, NULL, &info);
  return (uint64_t)info.threads / WARP * info.cluster + ENGINES;
}

void test_ways(const Args *args, size_t counts[WAYS]) {
  counts[WAY_POLICY] = args->policy_given ? 1 : POLICIES;
  counts[WAY_SMS] = args->sms ? 1 : 2;
  counts[WAY_WAITS] = args->debug_waits ? 1 : 2;
}

// What the combination has chosen; of other lengths each in another way. Inputs and seeds differ
// from run to run.
static Run chosen_run(Tester *t) {
  const Args *args = t->s->args;
  const size_t *way = t->choice + t->lines;
  uint64_t n = t->runs++;
  bool swept = t->set.n;
  size_t kinds = swept ? 1 : args->input_count ? args->input_count : input_kinds();
  Run run = {.inputs = args->input_count ? args->inputs[n % kinds] : (InputKind)(n % kinds),
             .policy = args->policy_given ? args->policy
                                          : (Policy)(swept ? n % POLICIES : way[WAY_POLICY]),
             .seed = args->seed + n,
             .sms = args->sms                                   ? args->sms
                    : (swept ? n / POLICIES % 2 : way[WAY_SMS]) ? 1
                                                                : 0,
             .debug_waits = args->debug_waits || (!swept && way[WAY_WAITS])};
  return run;
}

// With --full, and where the policy is asked for, each warp and engine lags in its turn.
static void run_chosen(Tester *t) {
  const Args *args = t->s->args;
  Run run = chosen_run(t);
  bool each = run.policy == POLICY_LAGGARD && (args->full || args->policy_given) && !t->set.n;
  uint64_t n = each ? laggards(t) : 1;
  size_t unmet = t->tally.unmet;
  for (uint64_t i = 0; i < n && t->tally.unmet == unmet && !t->no_gpu; i++) {
    if (each) run.seed = i;
    run_on_model(t, &run);
  }
}

// ---- all of them

static void run_policies(Tester *t, InputKind kind) {
  uint64_t seed = t->s->args->seed,
           runs = (t->tally.combinations + t->tally.swept) * input_kinds() + kind;
  int seeds = t->set.n ? 1 : t->level.seeds;
  Run run = {.inputs = kind, .policy = POLICY_EARLY, .seed = seed};
  t->kept_any = t->kept_right = false;
  if (!fill(t, &run)) return;
  if (!interpret(t, run, true)) {
    t->tally.unmet++;
    return;
  }
  run.policy = POLICY_LATE;
  interpret(t, run, false);
  run.policy = POLICY_RANDOM;
  for (int i = 0; i < seeds; i++) {
    run.seed = seed + runs * 16 + (uint64_t)i + 1;
    interpret(t, run, false);
  }
}

static void run_inputs(Tester *t) {
  const Args *args = t->s->args;
  size_t unmet = t->tally.unmet;
  size_t kinds = t->set.n ? 1 : args->input_count ? args->input_count : input_kinds();
  for (size_t k = 0; k < kinds && t->tally.unmet == unmet && !t->no_gpu; k++) {
    InputKind kind = args->input_count ? args->inputs[k] : (InputKind)k;
    if (args->cuda) run_on_gpu(t, kind);
    else run_policies(t, kind);
  }
}

int test_run(Tester *t) {
  size_t outputs = schedc_output_count(t->kernel);
  int code = data_open(&t->data, t->s, t->kernel, t->kase, t->choice, &t->set);
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
  if (t->s->args->model) run_chosen(t);
  else run_inputs(t);
  for (size_t i = 0; i < t->data.tensor_count; i++) free(t->kept[i]);
  free(t->kept);
  free(t->errors);
  if (!t->no_gpu) return 0;
  fputs(t->s->reports.n ? t->s->reports.at : "", stderr);
  return session_status(t->s, SCHEDC_EUNAVAIL);
}
