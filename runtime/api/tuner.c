// tuner.c - the programs of a space, and a search among them: ask and tell. In: a space. Out:
// trials. Every point is looked at once, by several threads, each with a context of its own; what
// they find goes to a place of its own for each point, and is put together by the caller's thread,
// so that numbers and order depend on the space alone.
#include "runtime/api/api.h"
#include "runtime/tune/search.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { BATCH = 2048 };

// A program: the first of the points that mean it.
typedef struct Entry {
  u64 point;
  u64 meaning[2];
  const schedc_param *params;  // names and values are the space's
  u32 param_count;
  const char *code;  // why it failed
} Entry;

typedef struct Refusal {
  const char *code;
  u64 points;
} Refusal;

struct schedc_tuner {
  Sc sc;
  const schedc_space *space;
  schedc_tuner_options options;
  pthread_mutex_t lock;
  VEC(Entry) entry;
  VEC(Refusal) refusal;
  u32 first;  // the default
  u64 points, legal;
  Program *program;
  Search search;
};

// ---- threads

// One item of many, with a context of the thread's own.
typedef schedc_status (*Item)(schedc_context *context, void *job, u32 i);
typedef struct Crew {
  Item item;
  void *job;
  u32 n;
  bool unverified;
  atomic_uint next;
  atomic_int status;  // the first that is not SCHEDC_OK
} Crew;

static void *work(void *arg) {
  Crew *c = arg;
  schedc_options options = SCHEDC_OPTIONS_INIT;
  schedc_context *context;
  options.unverified = c->unverified;
  int status = (int)schedc_open(&context, &options), none = SCHEDC_OK;
  for (u32 i; !status && (i = atomic_fetch_add(&c->next, 1)) < c->n && !atomic_load(&c->status);)
    status = (int)c->item(context, c->job, i);
  schedc_close(context);
  atomic_compare_exchange_strong(&c->status, &none, status);
  return NULL;
}

static schedc_status each(u32 n, u32 threads, bool unverified, Item item, void *job) {
  Crew crew = {.item = item, .job = job, .n = n, .unverified = unverified};
  sc_on_threads(threads < n ? threads : n ? n : 1, work, &crew, 0);
  return (schedc_status)atomic_load(&crew.status);
}

// ---- points to programs

typedef struct Making {
  schedc_tuner *tuner;
  schedc_context *context;
  schedc_point *point;  // a batch
  schedc_probe *probe;
  u32 n;
  double *predicted;  // by entry
} Making;

static schedc_status probe_one(schedc_context *context, void *job, u32 i) {
  Making *m = job;
  m->probe[i] = (schedc_probe)SCHEDC_PROBE_INIT;
  return schedc_space_probe(m->tuner->space, context, &m->point[i], &m->probe[i]);
}

static void refuse(Sc *sc, schedc_tuner *t, const char *code, u64 points) {
  u32 i = 0;
  while (i < t->refusal.n && strcmp(t->refusal.at[i].code, code) != 0) i++;
  if (i == t->refusal.n) PUSH(sc, &t->refusal, ((Refusal){code, 0}));
  t->refusal.at[i].points += points;
}

static void enter(Sc *sc, schedc_tuner *t, const schedc_point *p, const schedc_probe *probe) {
  schedc_param *params = NEWS(sc, schedc_param, p->param_count + 1);
  memcpy(params, p->params, p->param_count * sizeof *params);
  Entry e = {p->index, {probe->meaning[0], probe->meaning[1]}, params, (u32)p->param_count, NULL};
  PUSH(sc, &t->entry, e);
}

static schedc_status take_batch(Sc *sc, Making *m) {
  schedc_tuner *t = m->tuner;
  schedc_status status = each(m->n, sc_threads(t->options.threads, SC_MAX_THREADS),
                              m->context->unverified, probe_one, m);
  for (u32 i = 0; i < m->n && !status; i++) {
    t->legal += m->probe[i].legal != 0;
    if (m->probe[i].legal) enter(sc, t, &m->point[i], &m->probe[i]);
    else refuse(sc, t, m->probe[i].refusal, 1);
  }
  m->n = 0;
  return status;
}

static bool is_cancelled(const schedc_tuner *t, double done) {
  return t->options.progress && t->options.progress(t->options.progress_user, done);
}

// Half of the work is said to be done when all points have been looked at.
static schedc_status take_points(Sc *sc, Making *m) {
  schedc_tuner *t = m->tuner;
  schedc_cursor cursor = SCHEDC_CURSOR_INIT;
  schedc_status status = schedc_space_count(t->space, m->context, &t->points);
  while (!status) {
    m->point[m->n] = (schedc_point)SCHEDC_POINT_INIT;
    status = schedc_space_next(t->space, m->context, &cursor, &m->point[m->n]);
    if (status) break;
    if (++m->n < BATCH) continue;
    status = take_batch(sc, m);
    if (!status && is_cancelled(t, (double)cursor.index / (double)t->points / 2))
      status = SCHEDC_ECANCEL;
  }
  if (status != SCHEDC_EARG) return status;  // that was the last
  if (cursor.refused) refuse(sc, t, "P.require", cursor.refused);
  return take_batch(sc, m);
}

static int by_meaning(const void *a, const void *b) {
  const Entry *x = a, *y = b;
  int c = memcmp(x->meaning, y->meaning, sizeof x->meaning);
  return c ? c : (x->point > y->point) - (x->point < y->point);
}

static int by_point(const void *a, const void *b) {
  const Entry *x = a, *y = b;
  return (x->point > y->point) - (x->point < y->point);
}

static int by_points(const void *a, const void *b) {
  const Refusal *x = a, *y = b;
  if (x->points != y->points) return x->points < y->points ? 1 : -1;
  return strcmp(x->code, y->code);
}

// Of points with one meaning, the first; all in order of points.
static void fold(schedc_tuner *t) {
  u32 n = 0;
  if (t->refusal.n) qsort(t->refusal.at, t->refusal.n, sizeof *t->refusal.at, by_points);
  if (!t->entry.n) return;
  qsort(t->entry.at, t->entry.n, sizeof *t->entry.at, by_meaning);
  for (u32 i = 0; i < t->entry.n; i++)
    if (!n || memcmp(t->entry.at[i].meaning, t->entry.at[n - 1].meaning, 16))
      t->entry.at[n++] = t->entry.at[i];
  t->entry.n = n;
  qsort(t->entry.at, n, sizeof *t->entry.at, by_point);
}

// The point at which no param is given, last if no other means the same.
static schedc_status find_default(Sc *sc, Making *m) {
  schedc_tuner *t = m->tuner;
  schedc_point none = SCHEDC_POINT_INIT;
  schedc_probe probe = SCHEDC_PROBE_INIT;
  none.index = UINT64_MAX;
  t->first = SC_NO_PROGRAM;
  schedc_status status = schedc_space_probe(t->space, m->context, &none, &probe);
  if (status || !probe.legal) return status;
  for (u32 i = 0; i < t->entry.n; i++)
    if (!memcmp(t->entry.at[i].meaning, probe.meaning, sizeof probe.meaning)) t->first = i;
  if (t->first == SC_NO_PROGRAM) {
    t->first = t->entry.n;
    enter(sc, t, &none, &probe);
  }
  return SCHEDC_OK;
}

// ---- predictions

static schedc_point point_of(const schedc_tuner *t, u32 program) {
  const Entry *e = &t->entry.at[program];
  schedc_point p = SCHEDC_POINT_INIT;
  p.index = e->point;
  p.param_count = e->param_count;
  memcpy(p.params, e->params, e->param_count * sizeof *p.params);
  return p;
}

// What cannot be predicted comes last.
static schedc_status predict_one(schedc_context *context, void *job, u32 i) {
  Making *m = job;
  const schedc_tuner_options *o = &m->tuner->options;
  schedc_prediction out = SCHEDC_PREDICTION_INIT;
  schedc_point point = point_of(m->tuner, i);
  schedc_kernel *kernel;
  schedc_status status = schedc_space_instantiate(&kernel, context, m->tuner->space, &point);
  if (!status)
    status = schedc_predict(context, kernel, o->tensors, o->tensor_count, o->scalars,
                            o->scalar_count, o->machine, &out);
  schedc_kernel_free(kernel);
  m->predicted[i] = status ? INFINITY : out.ms;
  return status == SCHEDC_ENOMEM ? status : SCHEDC_OK;
}

static schedc_status predict(Sc *sc, Making *m) {
  schedc_tuner *t = m->tuner;
  u32 n = t->entry.n;
  schedc_status status = SCHEDC_OK;
  m->predicted = NEWS(sc, double, n + 1);
  if (t->options.tensor_count)
    status = each(n, sc_threads(t->options.threads, SC_MAX_THREADS), m->context->unverified,
                  predict_one, m);
  t->program = NEWS(sc, Program, n + 1);
  for (u32 i = 0; i < n; i++) t->program[i].predicted = m->predicted[i];
  return status;
}

// ---- strategies

// By the cost model alone: what it does not have among the first does not take part.
static void keep_predicted(Sc *sc, schedc_tuner *t, u32 keep) {
  u32 n = t->entry.n;
  if (n <= keep) return;
  double *v = NEWS(sc, double, n);
  for (u32 i = 0; i < n; i++) v[i] = t->program[i].predicted;
  sc_sort(v, n);
  for (u32 i = 0, kept = 0; i < n; i++) {
    bool stays = i == t->first || (t->program[i].predicted <= v[keep - 1] && kept < keep);
    kept += stays;
    t->program[i].passed_over = !stays;
  }
}

// ---- what won before

// The program that a record's params mean here; the number of entries: none.
static u32 program_of(const Making *m, const schedc_store_record *r) {
  const schedc_tuner *t = m->tuner;
  schedc_point point = SCHEDC_POINT_INIT;
  schedc_probe probe = SCHEDC_PROBE_INIT;
  u32 i = 0;
  if (r->tuning_count > sizeof point.params / sizeof *point.params) return t->entry.n;
  point.index = UINT64_MAX;
  point.param_count = r->tuning_count;
  memcpy(point.params, r->tuning, r->tuning_count * sizeof *r->tuning);
  if (schedc_space_probe(t->space, m->context, &point, &probe) || !probe.legal) return t->entry.n;
  while (i < t->entry.n && memcmp(t->entry.at[i].meaning, probe.meaning, sizeof probe.meaning)) i++;
  return i;
}

// The winners for this problem, of whichever form of the schedule, shape and GPU, in the order of
// the store. They take part under each strategy.
static schedc_status find_winners(Sc *sc, const Making *m, u32 *winner, u32 *n) {
  const schedc_tuner *t = m->tuner;
  const schedc_store *store = t->options.winners;
  schedc_store_record r = SCHEDC_STORE_RECORD_INIT;
  char hash[33];
  const char *unit;
  bool *taken = NEWS(sc, bool, t->entry.n + 1);
  if (!store) return SCHEDC_OK;
  schedc_status status = schedc_store_schedule(m->context, sc_space_source(t->space),
                                               sc_space_choice(t->space)->unit, hash, &unit);
  for (size_t i = 0; !status && !schedc_store_at(store, i, &r); i++) {
    if (r.rank != 1 || strcmp(r.unit, unit) != 0 ||
        !sc_space_is_problem(t->space, r.problem, r.problem_count))
      continue;
    u32 p = program_of(m, &r);
    if (p == t->entry.n || taken[p]) continue;
    taken[p] = true;
    t->program[p].passed_over = false;
    winner[(*n)++] = p;
  }
  return status;
}

static Rungs rungs_of(const schedc_tuner_options *o) {
  bool exhaustive = o->strategy == SCHEDC_EXHAUSTIVE;
  return (Rungs){.n = exhaustive ? 1 : 3,
                 .ms = exhaustive ? o->brief_ms * 16 : o->brief_ms,
                 .keep = 4,
                 .top = o->top,
                 .turns = o->turns,
                 .final_ms = o->final_ms,
                 .between = o->between,
                 .tie = o->tie};
}

static schedc_status make(Sc *sc, void *job) {
  Making *m = job;
  schedc_tuner *t = m->tuner;
  const Rungs rungs = rungs_of(&t->options);
  m->point = NEWS(sc, schedc_point, BATCH);
  m->probe = NEWS(sc, schedc_probe, BATCH);
  schedc_status status = take_points(sc, m);
  if (status) return status;
  fold(t);
  if ((status = find_default(sc, m)) || is_cancelled(t, 0.5))
    return status ? status : SCHEDC_ECANCEL;
  if ((status = predict(sc, m)) || is_cancelled(t, 1)) return status ? status : SCHEDC_ECANCEL;
  if (t->options.strategy == SCHEDC_MODEL) keep_predicted(sc, t, 3 * rungs.top);
  u32 winners = 0, *winner = NEWS(sc, u32, t->entry.n + 1);
  if ((status = find_winners(sc, m, winner, &winners))) return status;
  sc_search_begin(&t->search, sc, t->program, t->entry.n, t->first, &rungs);
  while (winners--) sc_search_first(&t->search, winner[winners]);
  return SCHEDC_OK;
}

static bool good_options(const schedc_tuner_options *o) {
  return (unsigned)o->strategy <= SCHEDC_MODEL && o->brief_ms > 0 && o->final_ms > 0 &&
         o->tie >= 0 && o->tie < 1 &&
         sc_good_arguments(&(Arguments){o->tensors, o->tensor_count, o->scalars, o->scalar_count});
}

schedc_status schedc_tuner_new(schedc_tuner **out, schedc_context *context,
                               const schedc_space *space, const schedc_tuner_options *options) {
  schedc_tuner_options known = SCHEDC_TUNER_OPTIONS_INIT;
  if (!out) return SCHEDC_EARG;
  *out = NULL;
  if (!context || !space || !TAKE_OPTIONS(&known, options) || !good_options(&known))
    return SCHEDC_EARG;
  schedc_tuner *t = NEW_HANDLE(context, schedc_tuner);
  if (!t) return SCHEDC_ENOMEM;
  pthread_mutex_init(&t->lock, NULL);
  t->space = space;
  if (!known.top) known.top = 1;
  if (!known.turns) known.turns = 1;
  t->options = known;
  schedc_status status = sc_guard(&t->sc, make, &(Making){.tuner = t, .context = context});
  if (status == SCHEDC_OK) *out = t;
  else schedc_tuner_free(t);
  return status;
}

void schedc_tuner_free(schedc_tuner *t) {
  if (!t) return;
  pthread_mutex_destroy(&t->lock);
  sc_free_handle(&t->sc, t);
}

const schedc_tuner_options *sc_tuner_options(const schedc_tuner *t) { return &t->options; }
const schedc_space *sc_tuner_space(const schedc_tuner *t) { return t->space; }
uint32_t sc_tuner_default(const schedc_tuner *t) { return t->first; }
void sc_tuner_finalists(schedc_tuner *t, uint32_t most) { t->search.rungs.top = most; }

// ---- trials

typedef struct TrialJob {
  schedc_tuner *tuner;
  Order order;
  schedc_outcome outcome;
} TrialJob;

static schedc_status locked(schedc_tuner *t, Step step, TrialJob *job) {
  job->tuner = t;
  pthread_mutex_lock(&t->lock);
  schedc_status status = sc_guard(&t->sc, step, job);
  pthread_mutex_unlock(&t->lock);
  return status;
}

static schedc_status ask(Sc *sc, void *job) {
  (void)sc;
  TrialJob *j = job;
  j->order = sc_search_ask(&j->tuner->search);
  return SCHEDC_OK;
}

schedc_status schedc_tuner_ask(schedc_tuner *tuner, schedc_trial *trial) {
  static const schedc_trial_kind kind[] = {[ERRAND_WAIT] = SCHEDC_TRIAL_WAIT,
                                           [ERRAND_MEASURE] = SCHEDC_TRIAL_MEASURE,
                                           [ERRAND_VERIFY] = SCHEDC_TRIAL_VERIFY,
                                           [ERRAND_DONE] = SCHEDC_TRIAL_DONE};
  if (!tuner || !trial || trial->size < sizeof *trial) return SCHEDC_EARG;
  TrialJob job = {0};
  schedc_status status = locked(tuner, ask, &job);
  if (status) return status;
  const Order *o = &job.order;
  schedc_trial out = {.kind = kind[o->errand],
                      .program = o->program,
                      .rung = o->rung,
                      .ms = o->ms,
                      .is_final = o->finals,
                      .is_reference = o->reference,
                      .point = SCHEDC_POINT_INIT};
  if (o->errand == ERRAND_MEASURE || o->errand == ERRAND_VERIFY)
    out.point = point_of(tuner, o->program);
  COPY_OUT(trial, &out);
  return SCHEDC_OK;
}

static schedc_status tell(Sc *sc, void *job) {
  TrialJob *j = job;
  const Order *o = &j->order;
  schedc_tuner *t = j->tuner;
  if (!t->program[o->program].out) return SCHEDC_EARG;
  if (j->outcome.status == SCHEDC_ECANCEL) {
    sc_search_lost(&t->search, o);
    return SCHEDC_OK;
  }
  bool ok = j->outcome.status == SCHEDC_OK;
  if (!ok && j->outcome.code) t->entry.at[o->program].code = sc_printf(sc, "%s", j->outcome.code);
  sc_search_tell(&t->search, o, ok, j->outcome.ms, j->outcome.reference_ms);
  return SCHEDC_OK;
}

schedc_status schedc_tuner_tell(schedc_tuner *tuner, const schedc_trial *trial,
                                const schedc_outcome *outcome) {
  TrialJob job = {.outcome = SCHEDC_OUTCOME_INIT};
  if (!tuner || !trial || trial->size < sizeof *trial || trial->program >= tuner->entry.n ||
      !outcome || !TAKE_OPTIONS(&job.outcome, outcome))
    return SCHEDC_EARG;
  bool measures = trial->kind == SCHEDC_TRIAL_MEASURE;
  if (!measures && trial->kind != SCHEDC_TRIAL_VERIFY) return SCHEDC_EARG;
  if (measures && !job.outcome.status && !(job.outcome.ms > 0 && job.outcome.ms < INFINITY))
    return SCHEDC_EARG;
  job.order = (Order){.errand = measures ? ERRAND_MEASURE : ERRAND_VERIFY,
                      .program = trial->program,
                      .rung = trial->rung,
                      .ms = trial->ms,
                      .finals = trial->is_final != 0,
                      .reference = trial->is_reference != 0};
  return locked(tuner, tell, &job);
}

void schedc_tuner_hurry(schedc_tuner *tuner) {
  if (!tuner) return;
  pthread_mutex_lock(&tuner->lock);
  sc_search_hurry(&tuner->search);
  pthread_mutex_unlock(&tuner->lock);
}

// ---- what is known

static void describe(const schedc_tuner *t, u32 program, schedc_candidate *to) {
  const Program *p = &t->program[program];
  schedc_candidate out = {.program = program,
                          .point = point_of(t, program),
                          .is_default = program == t->first,
                          .failed = p->failed,
                          .code = t->entry.at[program].code,
                          .verified = p->verified,
                          .rungs = p->rung,
                          .turns = p->turns,
                          .predicted_ms = p->predicted < INFINITY ? p->predicted : 0,
                          .ms = p->ms,
                          .ratio = p->ratio,
                          .spread = p->spread};
  COPY_OUT(to, &out);
}

schedc_status schedc_tuner_at(schedc_tuner *tuner, size_t place, schedc_candidate *out) {
  if (!tuner || place >= tuner->entry.n || !out || out->size < sizeof *out) return SCHEDC_EARG;
  pthread_mutex_lock(&tuner->lock);
  describe(tuner, sc_search_ranked(&tuner->search, (u32)place), out);
  pthread_mutex_unlock(&tuner->lock);
  return SCHEDC_OK;
}

schedc_status schedc_tuner_best(schedc_tuner *tuner, schedc_candidate *out) {
  if (!tuner || !out || out->size < sizeof *out) return SCHEDC_EARG;
  pthread_mutex_lock(&tuner->lock);
  const u32 program = sc_search_best(&tuner->search);
  if (program != SC_NO_PROGRAM) describe(tuner, program, out);
  pthread_mutex_unlock(&tuner->lock);
  return program == SC_NO_PROGRAM ? SCHEDC_EARG : SCHEDC_OK;
}

schedc_status schedc_tuner_get_info(schedc_tuner *tuner, schedc_tuner_info *info) {
  if (!tuner || !SAYS_SIZE(info)) return SCHEDC_EARG;
  pthread_mutex_lock(&tuner->lock);
  const Search *s = &tuner->search;
  schedc_tuner_info out = {.points = tuner->points,
                           .legal = tuner->legal,
                           .programs = tuner->entry.n,
                           .left = sc_search_left(s),
                           .noise = sc_search_noise(s),
                           .done = s->phase == PHASE_DONE};
  pthread_mutex_unlock(&tuner->lock);
  COPY_OUT(info, &out);
  return SCHEDC_OK;
}

schedc_status schedc_tuner_refusal(const schedc_tuner *tuner, size_t index, const char **code,
                                   uint64_t *points) {
  if (!tuner || !code || !points || index >= tuner->refusal.n) return SCHEDC_EARG;
  *code = tuner->refusal.at[index].code;
  *points = tuner->refusal.at[index].points;
  return SCHEDC_OK;
}
