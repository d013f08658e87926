// ledger.c - lines of a store for what a search has measured, and those of an earlier search. In:
// points and times. A point is written as its params for tuning with their values; those that have
// no domain, and that nobody gave, are left out: their expressions say them anew. What is found
// again is scaled by the default's time now and then.
#include "runtime/api/ledger.h"

#include <stdio.h>
#include <time.h>

#include "compiler/lower/lower.h"
#include "runtime/tune/store.h"

static const char *value_in(const schedc_point *p, const char *name) {
  for (size_t i = 0; i < p->param_count; i++)
    if (!strcmp(p->params[i].name, name)) return p->params[i].value;
  return NULL;
}

// The params of a record at a point, in order of declaration: those of the problem all, as in the
// key of a kernel that is to be had from a store.
static void take_params(Sc *sc, const schedc_space *space, const schedc_point *point,
                        schedc_store_record *r) {
  schedc_space_param_info p = SCHEDC_SPACE_PARAM_INFO_INIT;
  const size_t all = schedc_space_param_count(space);
  schedc_param *tuning = NEWS(sc, schedc_param, all + 1),
               *problem = NEWS(sc, schedc_param, all + 1);
  r->tuning_count = r->problem_count = 0;
  for (size_t i = 0; !schedc_space_param_at(space, i, &p); i++) {
    const char *value = value_in(point, p.name);
    bool said = p.varies || low_caller_text(sc_space_choice(space), p.name);
    if (!value && (said || p.kind == SCHEDC_PROBLEM)) value = p.value;
    if (p.kind == SCHEDC_PROBLEM)
      problem[r->problem_count++] = (schedc_param){p.name, value ? value : ""};
    else if (value) tuning[r->tuning_count++] = (schedc_param){p.name, value};
  }
  r->tuning = tuning;
  r->problem = problem;
}

// The names of the first n kinds, as a record has them: none is long, and few are given.
static void list_kinds(const Inputs *in, u32 n, char out[256]) {
  size_t at = 0;
  for (u32 i = 0; i < n && at < 256; i++)
    at += (size_t)snprintf(out + at, 256 - at, "%s%s", i ? "," : "", in->kind[i]);
}

schedc_status sc_ledger_open(schedc_context *context, Ledger *l) {
  const schedc_meter *m = l->meter;
  l->key = (schedc_store_record)SCHEDC_STORE_RECORD_INIT;
  if (!l->store) return SCHEDC_OK;
  l->earlier = schedc_store_count(l->store);
  list_kinds(&m->inputs, m->inputs.kinds, l->inputs);
  list_kinds(&m->inputs, m->inputs.measured, l->measured);
  l->key.schedule = l->schedule;
  l->key.gpu = m->about.name;
  l->key.driver = m->about.driver_version;
  l->key.nvrtc = m->nvrtc;
  l->key.schedc = schedc_version();
  return schedc_store_schedule(context, sc_space_source(l->space), sc_space_choice(l->space)->unit,
                               l->schedule, &l->key.unit);
}

// ---- an earlier search

static bool same_dims(const schedc_store_record *r, const schedc_meter *m) {
  bool same = r->dim_count == m->dim_count;
  for (size_t i = 0; same && i < m->dim_count; i++) {
    same = false;
    for (size_t k = 0; k < r->dim_count; k++)
      same |= !strcmp(m->dims[i].name, r->dims[k].name) && m->dims[i].value == r->dims[k].value;
  }
  return same;
}

static bool same_surroundings(const schedc_store_record *r, const Ledger *l) {
  const schedc_store_record *key = &l->key;
  return !strcmp(r->schedule, key->schedule) && !strcmp(r->unit, key->unit) &&
         !strcmp(r->gpu, key->gpu) && r->driver == key->driver && r->nvrtc == key->nvrtc &&
         !strcmp(r->schedc, key->schedc) && same_dims(r, l->meter);
}

typedef struct FindJob {
  Ledger *l;
  const schedc_trial *trial;
  double reference_ms;
  schedc_outcome *outcome;
  bool found;
} FindJob;

static bool has_time(const schedc_store_record *r) {
  return !strcmp(r->status, "measured") || !strcmp(r->status, "verified");
}

// A time counts if it was measured on the same kinds of inputs, and for at least half as long as is
// asked for.
static bool answers(const schedc_store_record *r, const Ledger *l, const schedc_trial *t) {
  return !has_time(r) || (!strcmp(r->measured, l->measured) && r->sustained_ms > 0 &&
                          r->sustained_ms * (double)r->launches >= t->ms / 2);
}

static void answer(FindJob *j, const schedc_store_record *r) {
  bool time = has_time(r), scaled = r->reference_ms > 0 && j->reference_ms > 0;
  j->found = true;
  *j->outcome = (schedc_outcome){.size = sizeof *j->outcome,
                                 .status = time ? SCHEDC_OK : SCHEDC_EINPUT,
                                 .code = time ? NULL : r->status};
  j->outcome->ms = r->sustained_ms * (scaled ? j->reference_ms / r->reference_ms : 1);
}

static schedc_status find(Sc *sc, void *arg) {
  FindJob *j = arg;
  schedc_store_record r = SCHEDC_STORE_RECORD_INIT, key = r;
  take_params(sc, j->l->space, &j->trial->point, &key);
  for (size_t i = 0; i < j->l->earlier && !schedc_store_at(j->l->store, i, &r); i++)
    if (sc_same_params(r.tuning, r.tuning_count, key.tuning, key.tuning_count) &&
        sc_same_params(r.problem, r.problem_count, key.problem, key.problem_count) &&
        same_surroundings(&r, j->l) && answers(&r, j->l, j->trial))
      answer(j, &r);
  return SCHEDC_OK;
}

bool sc_ledger_find(Ledger *l, const schedc_trial *trial, double reference_ms,
                    schedc_outcome *outcome) {
  FindJob job = {l, trial, reference_ms, outcome, false};
  if (!l->store || !l->resume || !l->meter->inputs.known) return false;
  schedc_status status = sc_guard_once(&l->meter->sc.alloc, find, &job);
  return !status && job.found;
}

// ---- this one

typedef struct EnterJob {
  Ledger *l;
  const Entered *what;
  schedc_context *context;
} EnterJob;

static schedc_status enter(Sc *sc, void *arg) {
  EnterJob *j = arg;
  const Entered *what = j->what;
  schedc_store_record r = j->l->key;
  char date[32];
  time_t now = time(NULL);
  struct tm utc;
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  take_params(sc, j->l->space, what->point, &r);
  r.dims = j->l->meter->dims;
  r.dim_count = j->l->meter->dim_count;
  r.status = what->status;
  r.inputs = what->verified ? j->l->inputs : "";
  r.measured = what->ms > 0 ? j->l->measured : "";
  r.sustained_ms = what->ms;
  r.noise = what->noise;
  r.reference_ms = what->reference_ms;
  r.launches = what->launches;
  r.rank = what->rank;
  r.date = date;
  return schedc_store_append(j->context, j->l->store, &r);
}

schedc_status sc_ledger_enter(schedc_context *context, Ledger *l, const Entered *what) {
  // (Without dimensions there is nothing yet that a line could be of.)
  if (!l->store || !l->meter->inputs.known) return SCHEDC_OK;
  return sc_guard_once(&l->meter->sc.alloc, enter, &(EnterJob){l, what, context});
}
