// tune.c - the driver of a search: asks the tuner for trials, ahead of the one that is measured, so
// that their programs are built meanwhile; has the first that is built measured; tells. In: a
// tuner, and a meter or an objective of the caller's. Invariant: when it ends, nothing is out.
#include <math.h>
#include <time.h>

#include "runtime/api/ledger.h"

enum { MOST_AHEAD = 2 * MAX_BUILDERS + 2, NAP_NS = 10000000 };

typedef struct Tuning {
  Sc *sc;
  schedc_context *context;
  schedc_tuner *tuner;
  schedc_meter *meter;
  schedc_tune_options options;
  Ledger ledger;
  schedc_trial asked[MOST_AHEAD];
  u32 n, ahead;
  VEC(schedc_trial) away;  // taken elsewhere, and not collected
  bool done;
  double begin, latest;  // seconds: when it began; after how many the finals have to begin
  double *ratio;  // by program: to the default's time at that moment; 0: not known, or failed
  u64 *launches;  // by program, in the finals
  double *ms;     // by program, measured last
  u32 programs;
  schedc_tune_state state;
} Tuning;

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
  t->state.seconds = sc_now() - t->begin;
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

static bool is_of_a_rung(const schedc_trial *trial) {
  return trial->kind == SCHEDC_TRIAL_MEASURE && !trial->is_final && !trial->is_reference;
}

// Lines of a store are about dimensions, which a kernel says.
static void learn(Tuning *t, const schedc_trial *trial) {
  schedc_kernel *kernel;
  if (!t->ledger.store || t->meter->inputs.known) return;
  if (!schedc_space_instantiate(&kernel, t->meter->quiet, t->ledger.space, &trial->point))
    sc_meter_know(t->meter, kernel);
  schedc_kernel_free(kernel);
}

// Does the store know it? In `known` is what it says.
static bool is_known(Tuning *t, const schedc_trial *trial, double default_ms,
                     schedc_outcome *known) {
  return is_of_a_rung(trial) && trial->point.param_count &&
         sc_ledger_find(&t->ledger, trial, default_ms, known);
}

// The default is measured here, and what the store knows not at all.
static bool goes_away(Tuning *t, const schedc_trial *trial) {
  const schedc_elsewhere *e = t->options.elsewhere;
  schedc_outcome known = SCHEDC_OUTCOME_INIT;
  if (!e || !is_of_a_rung(trial) || trial->program == sc_tuner_default(t->tuner)) return false;
  learn(t, trial);
  if (is_known(t, trial, 0, &known) || !e->take(e->user, trial)) return false;
  PUSH(t->sc, &t->away, *trial);
  return true;
}

static void ask_ahead(Tuning *t) {
  while (!t->done && t->n < t->ahead) {
    schedc_trial *trial = &t->asked[t->n];
    *trial = (schedc_trial)SCHEDC_TRIAL_INIT;
    if (schedc_tuner_ask(t->tuner, trial) || trial->kind == SCHEDC_TRIAL_WAIT) return;
    t->done = trial->kind == SCHEDC_TRIAL_DONE;
    t->n += !t->done && !goes_away(t, trial);
  }
}

// What is away is not waited for, and may be asked for again.
static void call_back(Tuning *t) {
  schedc_outcome lost = SCHEDC_OUTCOME_INIT;
  lost.status = SCHEDC_ECANCEL;
  if (t->away.n) t->options.elsewhere->forget(t->options.elsewhere->user);
  for (u32 i = 0; i < t->away.n; i++) schedc_tuner_tell(t->tuner, &t->away.at[i], &lost);
  t->away.n = 0;
}

// Time is up: what was asked for on a rung, and is not measured yet, is not waited for.
static void hurry(Tuning *t) {
  if (t->state.hurried || !(t->options.seconds > 0) || sc_now() - t->begin < t->latest) return;
  t->state.hurried = 1;
  schedc_tuner_hurry(t->tuner);
  for (u32 i = t->n; i-- > 0;)
    if (t->asked[i].kind == SCHEDC_TRIAL_MEASURE && !t->asked[i].is_final) give_back(t, i);
  call_back(t);
  if (t->meter) sc_builders_forget(&t->meter->builders, false);
}

// ---- what comes next

// The first trial that can be done now; t->n: none. `known`: what the store says of it. That waits
// for the default's time, if there is anything else to do.
static u32 pick(Tuning *t, schedc_outcome *known, bool *knows) {
  u32 waiting = t->n, last = t->n;
  for (u32 i = 0; i < t->n; i++) {
    const schedc_trial *trial = &t->asked[i];
    *knows = is_known(t, trial, t->state.default_ms, known);
    if (*knows && !(t->state.default_ms > 0)) {
      last = last < t->n ? last : i;
      continue;
    }
    if (*knows || !t->meter) return i;
    sc_builders_want(&t->meter->builders, trial);
    if (sc_builders_have(&t->meter->builders, trial->program)) return i;
    waiting = i;
  }
  *knows = waiting == t->n && last < t->n;
  if (*knows) is_known(t, &t->asked[last], 0, known);
  return *knows ? last : t->n;
}

// ---- what came of it

// The default's time on the machine that measured.
static double beside(const Tuning *t, const schedc_outcome *outcome) {
  return outcome->reference_ms > 0 ? outcome->reference_ms : t->state.default_ms;
}

static schedc_status enter(Tuning *t, const schedc_trial *trial, const schedc_outcome *outcome) {
  Entered what = {.point = &trial->point,
                  .status = outcome->status ? outcome->code ? outcome->code : "failed" : "measured",
                  .ms = outcome->status ? 0 : outcome->ms,
                  .reference_ms = beside(t, outcome),
                  .launches = outcome->status ? 0 : outcome->launches};
  return outcome->status || is_of_a_rung(trial) ? sc_ledger_enter(t->context, &t->ledger, &what)
                                                : SCHEDC_OK;
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
  t->ratio[p] = beside(t, outcome) > 0 ? outcome->ms / beside(t, outcome) : 0;
  if (trial->is_final) t->launches[p] += outcome->launches;
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

// What came back from elsewhere.
static schedc_status collect(Tuning *t) {
  const schedc_elsewhere *e = t->options.elsewhere;
  schedc_outcome out = SCHEDC_OUTCOME_INIT;
  schedc_status status = SCHEDC_OK;
  u32 program, i;
  while (!status && t->away.n && e->collect(e->user, &program, &out)) {
    for (i = 0; i < t->away.n && t->away.at[i].program != program; i++) continue;
    if (i == t->away.n) return SCHEDC_EARG;
    const schedc_trial trial = t->away.at[i];
    t->away.at[i] = t->away.at[--t->away.n];
    status = schedc_tuner_tell(t->tuner, &trial, &out);
    if (status || out.status == SCHEDC_ECANCEL) continue;
    note(t, &trial, &out);
    status = enter(t, &trial, &out);
  }
  return status;
}

static void wait_a_little(const Tuning *t) {
  const struct timespec nap = {.tv_nsec = NAP_NS};
  if (t->n) sc_builders_pause(&t->meter->builders);
  else nanosleep(&nap, NULL);
}

static schedc_status search(Tuning *t) {
  schedc_status status = SCHEDC_OK;
  while (!status) {
    hurry(t);
    if ((status = collect(t))) break;
    ask_ahead(t);
    if (!t->n && !t->away.n) break;
    if (t->n) learn(t, &t->asked[0]);
    schedc_outcome known = SCHEDC_OUTCOME_INIT;
    bool knows = false;
    u32 i = t->n ? pick(t, &known, &knows) : 0;
    if (i < t->n) {
      status = answer(t, i, knows ? &known : NULL);
    } else {
      wait_a_little(t);
      if (!tell_progress(t, NULL)) status = SCHEDC_ECANCEL;
    }
  }
  while (t->n) give_back(t, t->n - 1);
  call_back(t);
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

// The seconds of a turn of the finals that pass where it goes from one kind of inputs to the next:
// they are copied, at 4 GB/s or more, and the chip finds its clock.
static double between_kinds(const Inputs *in) {
  double bytes = 0;
  for (u32 i = 0; i < in->n; i++) bytes += (double)in->bytes[i];
  return (in->measured - 1) * (bytes / 4e9 + SETTLING_MS * 1e-3);
}

// Keeps time back for the finals: for what warms the chip up, and for each finalist, whose launches
// take a fifth more with what lies between, and whose comparisons a good third of a second each. Of
// a search that has little time half is for the finals, with as many in them as that allows. But
// one is in them beside the default, and a quarter of the time is for what comes before.
static void plan_finals(Tuning *t) {
  const schedc_tuner_options *o = sc_tuner_options(t->tuner);
  double turn = o->final_ms * 1e-3, all = t->options.seconds;
  const Inputs *in = t->meter ? &t->meter->inputs : NULL;
  double each = o->turns * turn * 1.2;
  if (in) each += in->kinds * 0.4 + o->turns * between_kinds(in);
  double warming = t->meter ? WARMING_TURNS * turn : 0;
  double most = o->top, room = (all / 2 - warming) / each - 1;
  if (all > 0 && room < most) most = room > 1 ? floor(room) : 1;
  sc_tuner_finalists(t->tuner, (u32)most);
  t->latest = fmax(all - warming - (most + 1) * each, all / 4);
}

static schedc_status run(Sc *sc, void *arg) {
  Tuning *t = arg;
  t->sc = sc;
  schedc_tuner_info info = SCHEDC_TUNER_INFO_INIT;
  schedc_status status = schedc_tuner_get_info(t->tuner, &info);
  t->programs = info.programs;
  t->ratio = NEWS(sc, double, info.programs + 1);
  t->ms = NEWS(sc, double, info.programs + 1);
  t->launches = NEWS(sc, u64, info.programs + 1);
  t->ahead = t->meter ? 2 * t->meter->builders.threads + 2 : 1;
  t->begin = sc_now();
  plan_finals(t);
  if (!status) status = sc_ledger_open(t->context, &t->ledger);
  if (!status) status = search(t);
  schedc_status entered = status && status != SCHEDC_ECANCEL ? SCHEDC_OK : enter_finals(t);
  return status ? status : entered;
}

schedc_status schedc_tune(schedc_context *context, schedc_tuner *tuner, schedc_meter *meter,
                          const schedc_tune_options *options) {
  schedc_tune_options known = SCHEDC_TUNE_OPTIONS_INIT;
  schedc_elsewhere others = SCHEDC_ELSEWHERE_INIT;
  if (!context || !tuner || !TAKE_OPTIONS(&known, options) || !meter == !known.measure ||
      (known.store && !meter) || !(known.seconds >= 0) || !TAKE_OPTIONS(&others, known.elsewhere))
    return SCHEDC_EARG;
  if (known.elsewhere && !(others.take && others.collect && others.forget)) return SCHEDC_EARG;
  if (known.elsewhere) known.elsewhere = &others;
  if (meter && meter->space != sc_tuner_space(tuner)) return SCHEDC_EARG;
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
  schedc_status status = sc_guard_once(&context->alloc, run, t);
  context->alloc.free(context->alloc.user, t);
  return status;
}
