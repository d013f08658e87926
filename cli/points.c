// points.c - `schedc check --all-params`: every point of the domains of a unit's params, those of
// the problem too; and `--all-cases`: the defaults, and what each case says with each combination
// of its choices. Each is probed; of those that make the same program one is proved. Refusals are
// counted by code; a program that is not proved is named by the first point that makes it.
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

typedef struct Tally {
  const char *what;  // a code, or a verdict in words
  uint64_t n;
} Tally;

typedef struct Tallies {
  Tally *at;
  size_t n;
} Tallies;

// Meanings seen so far: a table of a power of two, at most half full.
typedef struct Programs {
  uint64_t (*at)[2];
  size_t n, room;
} Programs;

typedef struct Points {
  Session *s;
  const char *unit;
  schedc_space *space;
  uint64_t all, points, legal, cases;
  Buffer label;         // of a case and its choices, as options
  const char *refusal;  // of the point looked at last; NULL: it is legal
  Tallies refused, verdict;
  Programs programs;
  Buffer open;  // the points whose programs are not proved, and their verdicts
} Points;

static void count(Tallies *t, const char *what, uint64_t n) {
  size_t i = 0;
  while (i < t->n && strcmp(t->at[i].what, what) != 0) i++;
  if (i == t->n) {
    t->at = need(realloc(t->at, (t->n + 1) * sizeof *t->at));
    t->at[t->n++] = (Tally){what, 0};
  }
  t->at[i].n += n;
}

static uint64_t *slot_of(const Programs *p, const uint64_t *meaning) {
  size_t i = (size_t)meaning[0] & (p->room - 1);
  while ((p->at[i][0] || p->at[i][1]) && memcmp(p->at[i], meaning, sizeof *p->at) != 0)
    i = (i + 1) & (p->room - 1);
  return p->at[i];
}

// Is it the first point that makes this program?
static bool is_new(Programs *p, const uint64_t *meaning) {
  if (2 * p->n >= p->room) {
    Programs wide = {.n = p->n, .room = p->room ? 2 * p->room : 64};
    wide.at = need(calloc(wide.room, sizeof *wide.at));
    for (size_t i = 0; i < p->room; i++)
      if (p->at[i][0] || p->at[i][1]) memcpy(slot_of(&wide, p->at[i]), p->at[i], sizeof *p->at);
    free(p->at);
    *p = wide;
  }
  uint64_t *slot = slot_of(p, meaning);
  if (slot[0] || slot[1]) return false;
  memcpy(slot, meaning, sizeof *p->at);
  p->n++;
  return true;
}

// ---- a point

static void name_point(Buffer *to, const schedc_point *point) {
  for (size_t i = 0; i < point->param_count; i++)
    buffer_printf(to, " -p %s=%s", point->params[i].name, point->params[i].value);
}

static schedc_status prove(Points *p, const schedc_point *point) {
  schedc_kernel *kernel = NULL;
  schedc_verdict verdict = SCHEDC_REJECTED;
  session_next(p->s);
  schedc_status status = schedc_space_instantiate(&kernel, p->s->context, p->space, point);
  if (!status) status = schedc_verify(p->s->context, kernel, &verdict);
  if (!status || status == SCHEDC_EINPUT) {
    count(&p->verdict, schedc_verdict_text(verdict), 1);
    if (verdict != SCHEDC_PROVED) {
      buffer_printf(&p->open, "  %s:%s", schedc_verdict_text(verdict),
                    p->label.n ? p->label.at : "");
      name_point(&p->open, point);
      buffer_puts(&p->open, "\n");
    }
  }
  schedc_kernel_free(kernel);
  return status;
}

static schedc_status look_at(Points *p, const schedc_point *point) {
  schedc_probe probe = SCHEDC_PROBE_INIT;
  schedc_status status = schedc_space_probe(p->space, p->s->context, point, &probe);
  p->points++;
  if (status) return status;
  p->legal += probe.legal != 0;
  p->refusal = probe.legal ? NULL : probe.refusal;
  if (!probe.legal) count(&p->refused, probe.refusal, 1);
  else if (is_new(&p->programs, probe.meaning)) return prove(p, point);
  return SCHEDC_OK;
}

// ---- all of them

// The worst of all points, so that one that is rejected does not hide the others.
static schedc_status walk(Points *p) {
  schedc_cursor cursor = SCHEDC_CURSOR_INIT;
  schedc_point point = SCHEDC_POINT_INIT;
  schedc_status worst = SCHEDC_OK, status;
  Progress progress;
  progress_start(&progress, p->unit);
  status = schedc_space_count(p->space, p->s->context, &p->all);
  while (!status && !schedc_space_next(p->space, p->s->context, &cursor, &point)) {
    status = look_at(p, &point);
    if (status == SCHEDC_EINPUT) worst = status, status = SCHEDC_OK;
    progress_report(&progress, (double)point.index / (double)p->all);
  }
  progress_end(&progress);
  if (cursor.refused) count(&p->refused, "P.require", cursor.refused);
  return status ? status : worst;
}

// The params of the problem that have a domain, as schedc_space_new takes them, behind those given.
static schedc_status open_all(Points *p) {
  const Args *args = p->s->args;
  schedc_space_param_info info = SCHEDC_SPACE_PARAM_INFO_INIT;
  schedc_space *space;
  schedc_status status = schedc_space_new(&space, p->s->context, p->s->source, p->unit,
                                          args->case_name, args->param.at, args->param.n);
  if (status) return status;
  size_t params = schedc_space_param_count(space), n = args->param.n;
  schedc_param *given = need(calloc(params + n + 1, sizeof *given));
  if (n) memcpy(given, args->param.at, n * sizeof *given);
  for (size_t i = 0; i < params; i++) {
    bool fixed = false;
    schedc_space_param_at(space, i, &info);
    for (size_t j = 0; j < args->param.n; j++) fixed |= !strcmp(given[j].name, info.name);
    if (info.kind == SCHEDC_PROBLEM && info.written && !fixed)
      given[n++] = (schedc_param){info.name, NULL};
  }
  status =
      schedc_space_new(&p->space, p->s->context, p->s->source, p->unit, args->case_name, given, n);
  free(given);
  schedc_space_free(space);
  return status;
}

// ---- those of the cases

// A point of a case was refused. It is named, and the first of each code is reported, as by
// `check`; but that some choices of a case do not meet a requirement is none of its faults.
static schedc_status tell_refusal(Points *p, const char *name, const schedc_param *given,
                                  size_t n) {
  char code[64];
  schedc_kernel *kernel = NULL;
  if (strcmp(p->refusal, "P.require") == 0 && n > p->s->args->param.n) return SCHEDC_OK;
  buffer_printf(&p->open, "  %s:%s\n", p->refusal, p->label.at);
  snprintf(code, sizeof code, "\n%.32s ", p->refusal);
  if (p->s->places.n && strstr(p->s->places.at, code)) return SCHEDC_EINPUT;
  schedc_status status =
      schedc_instantiate(&kernel, p->s->context, p->s->source, p->unit, name, given, n);
  schedc_kernel_free(kernel);
  return status;
}

// The params of a case (NULL: the defaults), over which there are some given ones.
static schedc_status look_at_case(Points *p, const char *name, const schedc_param *given,
                                  size_t n) {
  const schedc_point point = SCHEDC_POINT_INIT;
  p->label.n = 0;
  if (name) buffer_printf(&p->label, " --case %s", name);
  else buffer_puts(&p->label, " the defaults");
  for (size_t i = p->s->args->param.n; i < n; i++)
    buffer_printf(&p->label, " -p %s=%s", given[i].name, given[i].value);
  schedc_status status =
      schedc_space_new(&p->space, p->s->context, p->s->source, p->unit, name, given, n);
  if (!status) status = look_at(p, &point);
  if (!status && p->refusal) status = tell_refusal(p, name, given, n);
  schedc_space_free(p->space);
  p->space = NULL;
  p->all++;
  return status;
}

// Every combination of a case's choices of params. `like`: a kernel that has the case.
static schedc_status walk_choices(Points *p, const schedc_kernel *like, const char *name) {
  const Pairs *fixed = &p->s->args->param;
  size_t kase = session_case_number(like, name), lines = schedc_bind_count(like, kase);
  schedc_bind_info line = SCHEDC_BIND_INFO_INIT;
  schedc_status worst = SCHEDC_OK;
  schedc_param *given = need(calloc(fixed->n + lines + 1, sizeof *given));
  size_t *counts = need(calloc(lines + 1, sizeof *counts)),
         *choice = need(calloc(lines + 1, sizeof *choice));
  if (fixed->n) memcpy(given, fixed->at, fixed->n * sizeof *given);
  for (size_t i = 0; i < lines; i++) {
    schedc_bind_at(like, kase, i, &line);
    bool chosen = line.kind == SCHEDC_BIND_PARAM && line.is_choice && line.count;
    for (size_t j = 0; j < fixed->n; j++) chosen &= strcmp(fixed->at[j].name, line.name) != 0;
    counts[i] = chosen ? line.count : 1;
  }
  Cover cover;
  cover_start(&cover, counts, lines, true);
  while (cover_next(&cover, choice)) {
    size_t n = fixed->n;
    for (size_t i = 0; i < lines; i++) {
      schedc_bind_at(like, kase, i, &line);
      if (counts[i] > 1) given[n++] = (schedc_param){line.name, line.texts[choice[i]]};
    }
    schedc_status status = look_at_case(p, name, given, n);
    if (status > worst) worst = status;
  }
  cover_end(&cover);
  free(given);
  free(counts);
  free(choice);
  return worst;
}

static schedc_status walk_cases(Points *p) {
  const Pairs *fixed = &p->s->args->param;
  const char *name;
  schedc_unit_info info = SCHEDC_UNIT_INFO_INIT;
  size_t unit = 0;
  schedc_status worst = look_at_case(p, NULL, fixed->at, fixed->n);
  schedc_context *quiet = NULL;
  schedc_kernel *usual = NULL;  // it knows every case, whatever the first choices of one are
  if (!schedc_open(&quiet, NULL))
    schedc_instantiate(&usual, quiet, p->s->source, p->unit, NULL, fixed->at, fixed->n);
  while (!schedc_unit(p->s->source, unit, &info) && strcmp(info.name, p->unit) != 0) unit++;
  for (size_t i = 0; !schedc_case_name(p->s->source, unit, i, &name); i++, p->cases++) {
    schedc_kernel *own = NULL;
    schedc_status status = SCHEDC_OK;
    session_next(p->s);
    if (!usual)
      status =
          schedc_instantiate(&own, p->s->context, p->s->source, p->unit, name, fixed->at, fixed->n);
    if (!status) status = walk_choices(p, usual ? usual : own, name);
    else buffer_printf(&p->open, "  refused: --case %s\n", name);
    if (status > worst) worst = status;
    schedc_kernel_free(own);
  }
  schedc_kernel_free(usual);
  schedc_close(quiet);
  return worst;
}

// ---- the report

static void put_text(const Points *p) {
  printf("%s: %llu points", p->unit, (unsigned long long)p->all);
  if (p->s->args->all_cases)
    printf(" of the defaults and %llu cases", (unsigned long long)p->cases);
  printf(", %llu legal, %zu programs\n", (unsigned long long)p->legal, p->programs.n);
  for (size_t i = 0; i < p->verdict.n; i++)
    printf("  %8llu programs %s\n", (unsigned long long)p->verdict.at[i].n, p->verdict.at[i].what);
  for (size_t i = 0; i < p->refused.n; i++)
    printf("  %8llu points refused: %s, %s\n", (unsigned long long)p->refused.at[i].n,
           p->refused.at[i].what, schedc_code_summary(p->refused.at[i].what));
  fputs(p->open.n ? p->open.at : "", stdout);
}

static void json_tallies(Json *j, const char *key, const Tallies *t) {
  json_key(j, key), json_open(j, '{');
  for (size_t i = 0; i < t->n; i++) json_key(j, t->at[i].what), json_uint(j, t->at[i].n);
  json_close(j, '}');
}

static void put_json(const Points *p, Buffer *to) {
  Json j = {.write = buffer_write, .user = to};
  if (to->n) buffer_puts(to, ",");
  json_open(&j, '{');
  json_key(&j, "unit"), json_text(&j, p->unit);
  json_key(&j, "points"), json_uint(&j, p->all);
  if (p->s->args->all_cases) json_key(&j, "cases"), json_uint(&j, p->cases);
  json_key(&j, "legal"), json_uint(&j, p->legal);
  json_key(&j, "programs"), json_uint(&j, p->programs.n);
  json_tallies(&j, "verdicts", &p->verdict);
  json_tallies(&j, "refused", &p->refused);
  json_close(&j, '}');
}

static void close_points(Points *p) {
  schedc_space_free(p->space);
  free(p->refused.at);
  free(p->verdict.at);
  free(p->programs.at);
  free(p->open.at);
  free(p->label.at);
}

// No point is legal: the reports of the one that has all defaults.
static schedc_status why_none(Points *p) {
  const Args *args = p->s->args;
  schedc_kernel *kernel;
  schedc_status status = schedc_instantiate(&kernel, p->s->context, p->s->source, p->unit,
                                            args->case_name, args->param.at, args->param.n);
  schedc_kernel_free(kernel);
  return status;
}

schedc_status points_check(Session *s, const char *unit, Buffer *json) {
  Points p = {.s = s, .unit = unit};
  bool cases = s->args->all_cases;
  schedc_status status = cases ? walk_cases(&p) : open_all(&p);
  if (!cases && !status) status = walk(&p);
  bool begun = cases ? p.points > 0 : p.space != NULL;
  if (begun && s->args->format == FORMAT_TEXT) put_text(&p);
  if (begun && s->args->format == FORMAT_JSON) put_json(&p, json);
  if (!cases && !status && !p.legal) status = why_none(&p);
  close_points(&p);
  return status;
}
