// tune.c - the driver of a search: asks the tuner for trials, ahead of the one that is measured, so
// that their programs are built meanwhile; has the first that is built measured; tells. In: a
// tuner, and a meter or an objective of the caller's. Invariant: when it ends, nothing is out.
#include <time.h>

#include "runtime/api/ledger.h"

enum { MOST_AHEAD = 2 * MAX_BUILDERS + 2 };

typedef struct Tuning {
  schedc_context *context;
  schedc_tuner *tuner;
  schedc_meter *meter;
  schedc_tune_options options;
  Ledger ledger;
  schedc_trial asked[MOST_AHEAD];
  u32 n, ahead;
  bool done;
  double begin, latest;  // seconds: when it began; after how many the finals have to begin
  double *ratio;  // by program: to the default's time at that moment; 0: not known, or failed
  u64 *launches;  // by program, in the finals
  double *ms;     // by program, measured last
  u32 programs;
  schedc_tune_state state;
} Tuning;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// ---- progress

static void find_best(Tuning *t) {
  t->state.best_ratio = t->state.best_ms = 0;
  for (u32 i = 0; i < t->programs; i++) {
    if (!(t->ratio[i] > 0) || (t->state.best_ratio > 0 && t->ratio[i] >= t->state.best_ratio))
      continue;
    t->state.best_ratio = t->ratio[i];
    t->state.best_ms = t->ms[i];
  }
}

// False: it is to stop.
static bool tell_progress(Tuning *t, const schedc_trial *trial) {
  if (!t->options.progress) return true;
  schedc_tuner_info info = SCHEDC_TUNER_INFO_INIT;
  schedc_tuner_get_info(t->tuner, &info);
  find_best(t);
  t->state.seconds = now() - t->begin;
  t->state.left = info.left;
  t->state.is_final = trial && trial->is_final;
  t->state.is_verifying = trial && trial->kind == SCHEDC_TRIAL_VERIFY;
  t->state.point = trial ? &trial->point : NULL;
  return !t->options.progress(t->options.progress_user, &t->state);
}

// ---- asking

static void give_back(Tuning *t, u32 i) {
  schedc_outcome lost = SCHEDC_OUTCOME_INIT;
  lost.status = SCHEDC_ECANCEL;
  schedc_tuner_tell(t->tuner, &t->asked[i], &lost);
  memmove(&t->asked[i], &t->asked[i + 1], (--t->n - i) * sizeof *t->asked);
}

static void ask_ahead(Tuning *t) {
  while (!t->done && t->n < t->ahead) {
    schedc_trial *trial = &t->asked[t->n];
    *trial = (schedc_trial)SCHEDC_TRIAL_INIT;
    if (schedc_tuner_ask(t->tuner, trial) || trial->kind == SCHEDC_TRIAL_WAIT) return;
    t->done = trial->kind == SCHEDC_TRIAL_DONE;
    t->n += !t->done;
  }
}

// Time is up: what was asked for on a rung, and is not measured yet, is not waited for.
static void hurry(Tuning *t) {
  if (t->state.hurried || !(t->options.seconds > 0) || now() - t->begin < t->latest) return;
  t->state.hurried = 1;
  schedc_tuner_hurry(t->tuner);
  for (u32 i = t->n; i-- > 0;)
    if (t->asked[i].kind == SCHEDC_TRIAL_MEASURE && !t->asked[i].is_final) give_back(t, i);
  if (t->meter) sc_builders_forget(&t->meter->builders, false);
}

// ---- what comes next

static bool may_be_known(const schedc_trial *trial) {
  return trial->kind == SCHEDC_TRIAL_MEASURE && !trial->is_final && !trial->is_reference &&
         trial->point.param_count;
}

// Lines of a store are about dimensions, which a kernel says.
static void learn(Tuning *t) {
  schedc_kernel *kernel;
  if (!t->ledger.store || t->meter->inputs.known || !t->n) return;
  if (!schedc_space_instantiate(&kernel, t->meter->quiet, t->ledger.space, &t->asked[0].point))
    sc_meter_know(t->meter, kernel);
  schedc_kernel_free(kernel);
}

// The first trial that can be done now; t->n: none. `known`: what the store says of it. That waits
// for the default's time, if there is anything else to do.
static u32 pick(Tuning *t, schedc_outcome *known, bool *is_known) {
  u32 waiting = t->n, last = t->n;
  for (u32 i = 0; i < t->n; i++) {
    const schedc_trial *trial = &t->asked[i];
    *is_known =
        may_be_known(trial) && sc_ledger_find(&t->ledger, trial, t->state.default_ms, known);
    if (*is_known && !(t->state.default_ms > 0)) {
      last = last < t->n ? last : i;
      continue;
    }
    if (*is_known || !t->meter) return i;
    sc_builders_want(&t->meter->builders, trial);
    if (sc_builders_have(&t->meter->builders, trial->program)) return i;
    waiting = i;
  }
  *is_known = waiting == t->n && last < t->n;
  if (*is_known) sc_ledger_find(&t->ledger, &t->asked[last], 0, known);
  return *is_known ? last : t->n;
}

// ---- what came of it

static schedc_status enter(Tuning *t, const schedc_trial *trial, const schedc_outcome *outcome) {
  Entered what = {.point = &trial->point,
                  .status = outcome->status ? outcome->code ? outcome->code : "failed" : "measured",
                  .ms = outcome->status ? 0 : outcome->ms,
                  .reference_ms = t->state.default_ms,
                  .launches = outcome->status || !t->meter ? 0 : t->meter->launches};
  bool measured = trial->kind == SCHEDC_TRIAL_MEASURE && !trial->is_final && !trial->is_reference;
  return outcome->status || measured ? sc_ledger_enter(t->context, &t->ledger, &what) : SCHEDC_OK;
}

static void note(Tuning *t, const schedc_trial *trial, const schedc_outcome *outcome) {
  u32 p = trial->program;
  t->state.done++;
  t->state.failed += outcome->status != SCHEDC_OK;
  if (outcome->status) t->ratio[p] = 0;
  if (outcome->status || trial->kind != SCHEDC_TRIAL_MEASURE) return;
  bool is_default = trial->is_reference || sc_tuner_default(t->tuner) == p;
  if (is_default) t->state.default_ms = outcome->ms;
  t->ms[p] = outcome->ms;
  t->ratio[p] = t->state.default_ms > 0 ? outcome->ms / t->state.default_ms : 0;
  if (trial->is_final && t->meter) t->launches[p] += t->meter->launches;
}

static schedc_status measure(Tuning *t, const schedc_trial *trial, schedc_outcome *out) {
  if (!t->meter) return t->options.measure(t->options.measure_user, trial, out);
  return schedc_meter_run(t->context, t->meter, trial, out);
}

static schedc_status answer(Tuning *t, u32 i, const schedc_outcome *known) {
  schedc_outcome out = known ? *known : (schedc_outcome)SCHEDC_OUTCOME_INIT;
  const schedc_trial trial = t->asked[i];
  if (!tell_progress(t, &trial)) return SCHEDC_ECANCEL;
  schedc_status status = known ? SCHEDC_OK : measure(t, &trial, &out);
  if (status) return status;
  memmove(&t->asked[i], &t->asked[i + 1], (--t->n - i) * sizeof *t->asked);
  status = schedc_tuner_tell(t->tuner, &trial, &out);
  if (status) return status;
  if (out.status == SCHEDC_ECANCEL) return SCHEDC_OK;
  note(t, &trial, &out);
  t->state.known += known != NULL;
  return known ? SCHEDC_OK : enter(t, &trial, &out);
}

static schedc_status search(Tuning *t) {
  schedc_status status = SCHEDC_OK;
  while (!status) {
    hurry(t);
    ask_ahead(t);
    if (!t->n) break;
    learn(t);
    schedc_outcome known = SCHEDC_OUTCOME_INIT;
    bool is_known = false;
    u32 i = pick(t, &known, &is_known);
    if (i < t->n) {
      status = answer(t, i, is_known ? &known : NULL);
    } else {
      sc_builders_pause(&t->meter->builders);
      if (!tell_progress(t, NULL)) status = SCHEDC_ECANCEL;
    }
  }
  while (t->n) give_back(t, t->n - 1);
  if (!status) tell_progress(t, NULL);
  return status;
}

// ---- the finals

static schedc_status enter_finalist(Tuning *t, const schedc_candidate *c, u32 rank) {
  return sc_ledger_enter(t->context, &t->ledger,
                         &(Entered){.point = &c->point,
                                    .status = "verified",
                                    .verified = true,
                                    .ms = c->ms,
                                    .noise = c->ratio > 0 ? c->spread / c->ratio : 0,
                                    .reference_ms = c->ratio > 0 ? c->ms / c->ratio : 0,
                                    .launches = t->launches[c->program],
                                    .rank = rank});
}

// Those that were verified and measured in them; the winner, by the rule of ties, is first.
static schedc_status enter_finals(Tuning *t) {
  schedc_candidate best = SCHEDC_CANDIDATE_INIT, c = SCHEDC_CANDIDATE_INIT;
  u32 rank = 1;
  if (!t->ledger.store || schedc_tuner_best(t->tuner, &best)) return SCHEDC_OK;
  schedc_status status = enter_finalist(t, &best, rank);
  for (size_t i = 0; !status && !schedc_tuner_at(t->tuner, i, &c); i++)
    if (c.verified && !c.failed && c.turns && c.program != best.program)
      status = enter_finalist(t, &c, ++rank);
  return status;
}

// Seconds that are kept back for them: launches, with as much again for what lies between; and
// comparisons, which take a good third of a second.
static double finals_need(const Tuning *t) {
  const schedc_tuner_options *o = sc_tuner_options(t->tuner);
  double finalists = o->top + 1, kinds = t->meter ? t->meter->inputs.kinds : 0;
  return finalists * (o->turns * o->final_ms * 1e-3 * 1.2 + kinds * 0.4);
}

static schedc_status run(Sc *sc, void *arg) {
  Tuning *t = arg;
  schedc_tuner_info info = SCHEDC_TUNER_INFO_INIT;
  schedc_status status = schedc_tuner_get_info(t->tuner, &info);
  t->programs = info.programs;
  t->ratio = NEWS(sc, double, info.programs + 1);
  t->ms = NEWS(sc, double, info.programs + 1);
  t->launches = NEWS(sc, u64, info.programs + 1);
  t->ahead = t->meter ? 2 * t->meter->builders.threads + 2 : 1;
  t->begin = now();
  t->latest = t->options.seconds - finals_need(t);
  if (!status) status = sc_ledger_open(t->context, &t->ledger);
  if (!status) status = search(t);
  schedc_status entered = status && status != SCHEDC_ECANCEL ? SCHEDC_OK : enter_finals(t);
  return status ? status : entered;
}

schedc_status schedc_tune(schedc_context *context, schedc_tuner *tuner, schedc_meter *meter,
                          const schedc_tune_options *options) {
  schedc_tune_options known = SCHEDC_TUNE_OPTIONS_INIT;
  if (!context || !tuner || !TAKE_OPTIONS(&known, options) || !meter == !known.measure ||
      (known.store && !meter) || !(known.seconds >= 0))
    return SCHEDC_EARG;
  if (meter && meter->space != sc_tuner_space(tuner)) return SCHEDC_EARG;
  Sc sc;
  sc_init(&sc, &context->alloc);
  Tuning *t = context->alloc.alloc(context->alloc.user, sizeof *t);
  if (!t) return SCHEDC_ENOMEM;
  *t = (Tuning){.context = context,
                .tuner = tuner,
                .meter = meter,
                .options = known,
                .ledger = {.store = known.store,
                           .space = sc_tuner_space(tuner),
                           .meter = meter,
                           .resume = known.resume != 0},
                .state = SCHEDC_TUNE_STATE_INIT};
  schedc_status status = sc_guard(&sc, run, t);
  sc_free(&sc);
  context->alloc.free(context->alloc.user, t);
  return status;
}
