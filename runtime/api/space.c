// space.c - the space of a unit's params as callers have it: its params, its points one by one, and
// what each of them would be. In: a source, and what is fixed. Out: texts that live as long as the
// space; verdicts without diagnostics. A context keeps the memory of such calls for the next: fresh
// pages cost more than most of them do.
#include "runtime/api/api.h"

#include <pthread.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "compiler/lower/space.h"

// A value that a domain has only at some points, as text.
typedef struct Seen {
  u32 param;
  const char *text;
} Seen;

struct schedc_space {
  Sc sc;
  schedc_source *source;
  const ParamSpace *params;
  schedc_space_param_info *info;
  pthread_mutex_t lock;  // of `seen`, and of `sc` from then on
  VEC(Seen) seen;
};

// ---- making a space

typedef struct SpaceJob {
  schedc_space *space;
  Choice choice;
  const char **range;
  u32 ranges;
} SpaceJob;

static const char *copy(Sc *sc, const char *text) {
  return text ? sc_printf(sc, "%s", text) : NULL;
}

// What the caller passes is copied; what is to go through its domain is told apart.
static void take_params(Sc *sc, SpaceJob *j) {
  const Choice given = j->choice;
  schedc_param *fixed = NEWS(sc, schedc_param, given.params + 1);
  j->range = NEWS(sc, const char *, given.params + 1);
  j->choice = (Choice){copy(sc, given.unit), copy(sc, given.case_name), fixed, 0};
  for (u32 i = 0; i < given.params; i++) {
    const char *name = copy(sc, given.param[i].name);
    if (!given.param[i].value) j->range[j->ranges++] = name;
    else fixed[j->choice.params++] = (schedc_param){name, copy(sc, given.param[i].value)};
  }
}

// The text between the braces of a domain.
static const char *written(Sc *sc, const Text *text, const Node *def) {
  if (!def->b) return NULL;
  const Node *last = def->b;
  while (last->next) last = last->next;
  return sc_printf(sc, "%.*s", (int)(last->span.hi - def->b->span.lo), text->at + def->b->span.lo);
}

static schedc_status make(Sc *sc, void *job) {
  SpaceJob *j = job;
  schedc_space *space = j->space;
  const schedc_source *source = space->source;
  take_params(sc, j);
  const ParamSpace *s = sc_space(sc, source->ast, &j->choice, j->range, j->ranges);
  if (!s) return SCHEDC_EINPUT;
  space->params = s;
  space->info = NEWS(sc, schedc_space_param_info, s->param.n + 1);
  for (u32 i = 0; i < s->param.n; i++) {
    const SpaceParam *p = &s->param.at[i];
    space->info[i] = (schedc_space_param_info){.name = p->name,
                                               .kind = p->problem ? SCHEDC_PROBLEM : SCHEDC_TUNING,
                                               .type = sc_value_type(p->kind),
                                               .varies = p->varies,
                                               .value = p->usual,
                                               .written = written(sc, source->text, p->def),
                                               .domain_count = p->domain.n,
                                               .domain = p->texts};
  }
  return SCHEDC_OK;
}

schedc_status schedc_space_new(schedc_space **out, schedc_context *context,
                               const schedc_source *source, const char *unit, const char *case_name,
                               const schedc_param *params, size_t param_count) {
  if (!out) return SCHEDC_EARG;
  *out = NULL;
  if (!context || !source || (param_count && !params) || param_count >= UINT32_MAX)
    return SCHEDC_EARG;
  for (size_t i = 0; i < param_count; i++)
    if (!params[i].name) return SCHEDC_EARG;
  schedc_space *space = NEW_HANDLE(context, schedc_space);
  if (!space) return SCHEDC_ENOMEM;
  pthread_mutex_init(&space->lock, NULL);
  sc_source_keep(source);
  space->source = (schedc_source *)source;
  SpaceJob job = {.space = space, .choice = {unit, case_name, params, (u32)param_count}};
  schedc_status status = sc_enter(context, &space->sc, source->text, make, &job);
  if (status == SCHEDC_OK) *out = space;
  else schedc_space_free(space);
  return status;
}

void schedc_space_free(schedc_space *space) {
  if (!space) return;
  schedc_source *source = space->source;
  pthread_mutex_destroy(&space->lock);
  sc_free_handle(&space->sc, space);
  schedc_source_free(source);
}

const schedc_source *sc_space_source(const schedc_space *space) { return space->source; }
const Choice *sc_space_choice(const schedc_space *space) { return &space->params->choice; }

size_t schedc_space_param_count(const schedc_space *space) {
  return space ? space->params->param.n : 0;
}

schedc_status schedc_space_param_at(const schedc_space *space, size_t index,
                                    schedc_space_param_info *info) {
  if (!SAYS_SIZE(info) || index >= schedc_space_param_count(space)) return SCHEDC_EARG;
  schedc_space_param_info out = space->info[index];
  COPY_OUT(info, &out);
  return SCHEDC_OK;
}

bool sc_space_is_problem(const schedc_space *space, const schedc_param *params, size_t n) {
  schedc_space_param_info p = SCHEDC_SPACE_PARAM_INFO_INIT;
  size_t all = 0, same = 0;
  for (size_t i = 0; !schedc_space_param_at(space, i, &p); i++) {
    if (p.kind != SCHEDC_PROBLEM) continue;
    all++;
    for (size_t k = 0; k < n; k++)
      same += !strcmp(p.name, params[k].name) && !strcmp(p.value, params[k].value);
  }
  return same == n && all == n;
}

// ---- points

typedef struct PointJob {
  schedc_space *space;
  SpaceCursor at;
  bool found;
  Value value[SCHEDC_MAX_VARIED];
  const char *text[SCHEDC_MAX_VARIED];
  u64 count;
} PointJob;

// The step on the context's memory, quietly.
static schedc_status quietly(schedc_context *context, const schedc_space *space, Step step,
                             void *job) {
  context->scratch.text = space->source->text;
  schedc_status status = sc_guard(&context->scratch, step, job);
  sc_recycle(&context->scratch);
  return status;
}

static schedc_status count_points(Sc *sc, void *job) {
  PointJob *j = job;
  j->count = sc_space_count(sc, j->space->params);
  return SCHEDC_OK;
}

schedc_status schedc_space_count(const schedc_space *space, schedc_context *context,
                                 uint64_t *points) {
  if (!space || !context || !points) return SCHEDC_EARG;
  PointJob job = {.space = (schedc_space *)space};
  schedc_status status = quietly(context, space, count_points, &job);
  if (status == SCHEDC_OK) *points = job.count;
  return status;
}

typedef struct KeepJob {
  schedc_space *space;
  Seen value;
} KeepJob;

// The text of a value that is new, or was seen at an earlier point; in the space's memory.
static schedc_status keep_text(Sc *sc, void *job) {
  KeepJob *j = job;
  schedc_space *space = j->space;
  for (u32 i = 0; i < space->seen.n; i++) {
    const Seen *s = &space->seen.at[i];
    if (s->param != j->value.param || strcmp(s->text, j->value.text)) continue;
    j->value.text = s->text;
    return SCHEDC_OK;
  }
  j->value.text = sc_printf(sc, "%s", j->value.text);
  PUSH(sc, &space->seen, j->value);
  return SCHEDC_OK;
}

static schedc_status text_of(Sc *sc, schedc_space *space, u32 param, const Value *v,
                             const char **out) {
  KeepJob job = {space, {param, sc_value_text(sc, v)}};
  pthread_mutex_lock(&space->lock);
  schedc_status status = sc_guard(&space->sc, keep_text, &job);
  pthread_mutex_unlock(&space->lock);
  *out = job.value.text;
  return status;
}

static schedc_status next(Sc *sc, void *job) {
  PointJob *j = job;
  const ParamSpace *s = j->space->params;
  j->found = sc_space_next(sc, s, &j->at, j->value);
  for (u32 i = 0; i < s->varied.n && j->found; i++) {
    const SpaceParam *p = &s->param.at[s->varied.at[i]];
    schedc_status status = SCHEDC_OK;
    if (p->steady) j->text[i] = p->texts[j->at.choice[i]];
    else status = text_of(sc, j->space, s->varied.at[i], &j->value[i], &j->text[i]);
    if (status) return status;
  }
  return SCHEDC_OK;
}

schedc_status schedc_space_next(const schedc_space *space, schedc_context *context,
                                schedc_cursor *cursor, schedc_point *point) {
  if (!space || !context || !cursor || cursor->size < sizeof *cursor || !point ||
      point->size < sizeof *point)
    return SCHEDC_EARG;
  const ParamSpace *s = space->params;
  PointJob job = {.space = (schedc_space *)space,
                  .at = {cursor->index, cursor->refused, cursor->choice, cursor->begun}};
  schedc_status status = quietly(context, space, next, &job);
  if (status) return status;
  cursor->index = job.at.index;
  cursor->refused = job.at.refused;
  cursor->begun = 1;
  if (!job.found) return SCHEDC_EARG;
  point->index = job.at.index;
  point->param_count = s->varied.n;
  for (u32 i = 0; i < s->varied.n; i++)
    point->params[i] = (schedc_param){s->param.at[s->varied.at[i]].name, job.text[i]};
  return SCHEDC_OK;
}

// ---- what a point would be

typedef struct ProbeJob {
  const schedc_space *space;
  const schedc_point *point;
  XXH128_hash_t meaning;
} ProbeJob;

static bool good_point(const schedc_space *space, const schedc_point *point) {
  return space && point && point->size >= sizeof *point &&
         point->param_count <= SCHEDC_MAX_VARIED &&
         sc_good_params(point->params, point->param_count);
}

// The fixed params, and then the point's.
static Choice choice_of(Sc *sc, const schedc_space *space, const schedc_point *point) {
  Choice c = space->params->choice;
  schedc_param *all = NEWS(sc, schedc_param, c.params + point->param_count + 1);
  if (c.params) memcpy(all, c.param, c.params * sizeof *all);
  memcpy(all + c.params, point->params, point->param_count * sizeof *all);
  c.param = all;
  c.params += (u32)point->param_count;
  return c;
}

static schedc_status probe(Sc *sc, void *job) {
  ProbeJob *j = job;
  Compilation c = {.ast = j->space->source->ast, .choice = choice_of(sc, j->space, j->point)};
  Str text = {.sc = sc};
  sc->until_error = true;
  if (!sc_probe(sc, &c)) return SCHEDC_EINPUT;
  sc_print_program(&text, c.k);
  j->meaning = XXH3_128bits(text.at, text.n);
  return SCHEDC_OK;
}

schedc_status schedc_space_probe(const schedc_space *space, schedc_context *context,
                                 const schedc_point *point, schedc_probe *out) {
  if (!context || !SAYS_SIZE(out) || !good_point(space, point)) return SCHEDC_EARG;
  ProbeJob job = {.space = space, .point = point};
  context->scratch.text = space->source->text;
  context->scratch.unverified = context->unverified;
  schedc_status status = sc_guard(&context->scratch, probe, &job);
  schedc_probe found = {.legal = status == SCHEDC_OK};
  if (status == SCHEDC_EINPUT) found.refusal = sc_diag_code(context->scratch.first);
  else if (!status) found.meaning[0] = job.meaning.high64, found.meaning[1] = job.meaning.low64;
  sc_recycle(&context->scratch);
  if (status && status != SCHEDC_EINPUT) return status;
  COPY_OUT(out, &found);
  return SCHEDC_OK;
}

typedef struct MakeJob {
  schedc_kernel **out;
  schedc_context *context;
  const schedc_space *space;
  const schedc_point *point;
} MakeJob;

static schedc_status instantiate(Sc *sc, void *job) {
  const MakeJob *j = job;
  Choice c = choice_of(sc, j->space, j->point);
  return schedc_instantiate(j->out, j->context, j->space->source, c.unit, c.case_name, c.param,
                            c.params);
}

schedc_status schedc_space_instantiate(schedc_kernel **out, schedc_context *context,
                                       const schedc_space *space, const schedc_point *point) {
  if (!out) return SCHEDC_EARG;
  *out = NULL;
  if (!context || !good_point(space, point)) return SCHEDC_EARG;
  return sc_guard_once(&context->alloc, instantiate, &(MakeJob){out, context, space, point});
}
