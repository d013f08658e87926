// tunereport.c - what `schedc tune` says: progress while it runs, and at the end the candidates,
// which of them is chosen, and why.
#include "cli/tune.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 12 };

// ---- points

// What a param has where a point does not say it.
static const char *usual(const Tune *t, const char *name) {
  schedc_space_param_info p = SCHEDC_SPACE_PARAM_INFO_INIT;
  for (size_t i = 0; schedc_space_param_at(t->space, i, &p) == SCHEDC_OK; i++)
    if (strcmp(p.name, name) == 0) return p.value;
  return NULL;
}

// The params that differ from the default's: "BM=128 stages=4".
static void put_point(const Tune *t, const schedc_point *point, Buffer *to) {
  size_t from = to->n;
  for (size_t i = 0; i < point->param_count; i++) {
    const schedc_param *p = &point->params[i];
    const char *value = usual(t, p->name);
    if (!value || strcmp(value, p->value) != 0)
      buffer_printf(to, "%s%s=%s", to->n > from ? " " : "", p->name, p->value);
  }
  if (to->n == from) buffer_puts(to, "(default)");
}

static void put_candidate(const Tune *t, const schedc_candidate *c, Buffer *to) {
  if (c->is_default) buffer_puts(to, "(default)");
  else put_point(t, &c->point, to);
}

// ---- progress

static void progress_text(const Tune *t, Buffer *to) {
  const schedc_tune_state *s = &t->state;
  buffer_printf(to, "tune: %llu done, %llu left", (unsigned long long)s->done,
                (unsigned long long)s->left);
  if (s->failed) buffer_printf(to, ", %llu failed", (unsigned long long)s->failed);
  if (s->best_ms > 0)
    buffer_printf(to, "; best %.4f ms, %.3f of the default", s->best_ms, s->best_ratio);
  buffer_printf(to, "; %.0f s; ", s->seconds);
  if (!s->point) {
    buffer_puts(to, "building");
    return;
  }
  buffer_puts(to, s->is_verifying ? "verifying " : s->is_final ? "finals: " : "measuring ");
  put_point(t, s->point, to);
}

void tune_progress(Tune *t) {
  enum { COLUMNS = 110 };
  double now = seconds(), pause = t->terminal ? 0.1 : 5;
  if (!t->shown && !t->terminal) t->shown = now;  // what ends soon says nothing
  if (now - t->shown < pause) return;
  Buffer line = {0};
  t->shown = now;
  progress_text(t, &line);
  if (t->terminal) fprintf(stderr, "\r%.*s\033[K", COLUMNS, line.at);
  else fprintf(stderr, "%s\n", line.at);
  free(line.at);
}

// ---- text

static void text_head(const Tune *t) {
  const char *name = schedc_kernel_case_name(t->kernel, t->kase);
  schedc_space_param_info p = SCHEDC_SPACE_PARAM_INFO_INIT;
  size_t n = 0;
  printf("%s  (%s%s%s)\n", schedc_kernel_name(t->kernel), t->args->operand[0],
         name ? ", case " : "", name ? name : "");
  for (size_t i = 0; schedc_space_param_at(t->space, i, &p) == SCHEDC_OK; i++) {
    if (p.varies) continue;
    printf("%s%s = %s", n++ ? ", " : "  params  ", p.name, p.value ? p.value : "?");
  }
  if (n) putchar('\n');
  for (size_t i = 0; i < t->data.dim_count; i++)
    printf("%s%s = %lld", i ? ", " : "  dims    ", t->data.dims[i].name,
           (long long)t->data.dims[i].value);
  if (t->data.dim_count) putchar('\n');
  for (size_t i = 0; i < tune_kinds(t->args); i++)
    printf("%s%s", i ? ", " : "  inputs  right on ", tune_kind(t->args, i));
  for (size_t i = 0; i < t->args->measured; i++)
    printf("%s%s", i ? ", " : "; measured on ", tune_kind(t->args, i));
  putchar('\n');
}

static void text_search(const Tune *t) {
  schedc_tuner_info info = SCHEDC_TUNER_INFO_INIT;
  const char *code;
  uint64_t points;
  schedc_tuner_get_info(t->tuner, &info);
  printf("  points  %llu, of which %llu are legal: %u programs", (unsigned long long)info.points,
         (unsigned long long)info.legal, info.programs);
  for (size_t i = 0; schedc_tuner_refusal(t->tuner, i, &code, &points) == SCHEDC_OK; i++)
    printf("%s%llu %s", i ? ", " : "; refused: ", (unsigned long long)points, code);
  printf("\n  trials  %llu in %.1f s on %s", (unsigned long long)t->state.done, t->state.seconds,
         t->about.name);
  for (int i = 1; t->elsewhere && i < t->who->size; i++)
    printf("%s%llu", i > 1 ? ", " : "; by the other ranks ", (unsigned long long)t->elsewhere[i]);
  if (t->state.known) printf(", %llu known from the store", (unsigned long long)t->state.known);
  if (t->state.failed) printf(", %llu failed", (unsigned long long)t->state.failed);
  printf("%s\n\n", t->interrupted ? ", interrupted" : t->state.hurried ? ", out of time" : "");
}

// Of the finals those that were measured; before them, what was measured at all.
static bool has_row(const schedc_candidate *c) { return !c->failed && (c->turns || c->rungs); }

static void text_row(const Tune *t, size_t rank, const schedc_candidate *c) {
  Buffer name = {0};
  put_candidate(t, c, &name);
  printf("  %4zu  %-48s %10.4f", rank, name.at, c->ms);
  if (c->ratio > 0) printf("  %6.3f", c->ratio);
  else printf("  %6s", "-");
  if (c->predicted_ms > 0) printf("  %10.4f", c->predicted_ms);
  else printf("  %10s", "-");
  if (c->turns > 1) printf("  %4.1f %%\n", c->spread * 100);
  else printf("  %6s\n", c->verified ? "-" : "not verified");
  free(name.at);
}

static void text_rows(const Tune *t) {
  schedc_candidate c = SCHEDC_CANDIDATE_INIT;
  printf("  %4s  %-48s %10s  %6s  %10s  %6s\n", "rank", "params", "ms", "ratio", "predicted",
         "noise");
  for (size_t i = 0; schedc_tuner_at(t->tuner, i, &c) == SCHEDC_OK; i++)
    if (has_row(&c) && (i < MOST_ROWS || c.is_default)) text_row(t, i + 1, &c);
}

// What failed, by its code; and by name what was wrong.
static void text_failures(const Tune *t) {
  schedc_candidate c = SCHEDC_CANDIDATE_INIT;
  Buffer seen = {0};
  buffer_puts(&seen, "\n");
  for (size_t i = 0; schedc_tuner_at(t->tuner, i, &c) == SCHEDC_OK; i++) {
    Buffer line = {0};
    const char *code = c.code ? c.code : "failed";
    buffer_printf(&line, "\n%s\n", code);
    if (c.failed && strcmp(code, "wrong") == 0) {
      Buffer name = {0};
      put_candidate(t, &c, &name);
      printf("        %-48s wrong results\n", name.at);
      free(name.at);
    } else if (c.failed && !strstr(seen.at, line.at)) {
      schedc_candidate other = SCHEDC_CANDIDATE_INIT;
      size_t n = 0;
      for (size_t k = i; schedc_tuner_at(t->tuner, k, &other) == SCHEDC_OK; k++)
        n += other.failed && strcmp(other.code ? other.code : "failed", code) == 0;
      printf("        %zu failed: %s\n", n, code);
      buffer_puts(&seen, line.at + 1);
    }
    free(line.at);
  }
  free(seen.at);
}

static void text_choice(const Tune *t) {
  schedc_candidate best = SCHEDC_CANDIDATE_INIT, first = SCHEDC_CANDIDATE_INIT;
  schedc_tuner_info info = SCHEDC_TUNER_INFO_INIT;
  Buffer name = {0};
  schedc_tuner_get_info(t->tuner, &info);
  if (schedc_tuner_best(t->tuner, &best)) {
    puts("\n  chosen: nothing, as nothing was verified and measured in the finals");
    return;
  }
  put_candidate(t, &best, &name);
  schedc_tuner_at(t->tuner, 0, &first);
  printf("\n  chosen: %s", name.at);
  if (best.is_default && first.is_default) printf(", as nothing is faster\n");
  else if (best.is_default)
    printf(", as the first is faster by less than the noise (%.1f %%) or a tie\n",
           info.noise * 100);
  else
    printf(", %.1f %% faster than the default; the noise is %.1f %%\n", (1 / best.ratio - 1) * 100,
           info.noise * 100);
  free(name.at);
}

void tune_text(const Tune *t) {
  text_head(t);
  text_search(t);
  text_rows(t);
  text_failures(t);
  text_choice(t);
}

// ---- JSON

static void json_point(Json *j, const schedc_point *p) {
  json_open(j, '{');
  for (size_t i = 0; i < p->param_count; i++)
    json_key(j, p->params[i].name), json_text(j, p->params[i].value);
  json_close(j, '}');
}

static void json_candidate(Json *j, const schedc_candidate *c) {
  json_open(j, '{');
  json_key(j, "params"), json_point(j, &c->point);
  json_key(j, "default"), json_bool(j, c->is_default);
  json_key(j, "verified"), json_bool(j, c->verified && !c->failed);
  json_key(j, "failed"), json_text(j, !c->failed ? NULL : c->code ? c->code : "failed");
  json_key(j, "rungs"), json_uint(j, c->rungs);
  json_key(j, "turns"), json_uint(j, c->turns);
  json_key(j, "ms"), json_real(j, c->ms);
  json_key(j, "ratio"), json_real(j, c->ratio);
  json_key(j, "noise"), json_real(j, c->spread);
  json_key(j, "predicted_ms"), json_real(j, c->predicted_ms);
  json_close(j, '}');
}

// The first n kinds of inputs.
static void json_kinds(const Tune *t, size_t n, Json *j) {
  json_open(j, '[');
  for (size_t i = 0; i < n; i++) json_text(j, tune_kind(t->args, i));
  json_close(j, ']');
}

static void json_search(const Tune *t, Json *j) {
  schedc_tuner_info info = SCHEDC_TUNER_INFO_INIT;
  const char *code;
  uint64_t points;
  schedc_tuner_get_info(t->tuner, &info);
  json_key(j, "points"), json_uint(j, info.points);
  json_key(j, "legal"), json_uint(j, info.legal);
  json_key(j, "programs"), json_uint(j, info.programs);
  json_key(j, "refused"), json_open(j, '{');
  for (size_t i = 0; schedc_tuner_refusal(t->tuner, i, &code, &points) == SCHEDC_OK; i++)
    json_key(j, code), json_uint(j, points);
  json_close(j, '}');
  json_key(j, "trials"), json_uint(j, t->state.done);
  if (t->elsewhere) {
    json_key(j, "elsewhere"), json_open(j, '[');
    for (int i = 1; i < t->who->size; i++) json_uint(j, t->elsewhere[i]);
    json_close(j, ']');
  }
  json_key(j, "known"), json_uint(j, t->state.known);
  json_key(j, "failed"), json_uint(j, t->state.failed);
  json_key(j, "seconds"), json_real(j, t->state.seconds);
  json_key(j, "noise"), json_real(j, info.noise);
  json_key(j, "interrupted"), json_bool(j, t->interrupted);
  json_key(j, "hurried"), json_bool(j, t->state.hurried);
}

static void json_found(const Tune *t, Json *j) {
  schedc_candidate c = SCHEDC_CANDIDATE_INIT;
  json_key(j, "kernel"), json_text(j, schedc_kernel_name(t->kernel));
  json_key(j, "case"), json_text(j, schedc_kernel_case_name(t->kernel, t->kase));
  json_key(j, "dims"), json_open(j, '{');
  for (size_t i = 0; i < t->data.dim_count; i++)
    json_key(j, t->data.dims[i].name), json_int(j, t->data.dims[i].value);
  json_close(j, '}');
  json_key(j, "inputs"), json_kinds(t, tune_kinds(t->args), j);
  json_key(j, "measured"), json_kinds(t, t->args->measured, j);
  json_key(j, "device"), json_text(j, t->about.name);
  json_search(t, j);
  json_key(j, "candidates"), json_open(j, '[');
  for (size_t i = 0; schedc_tuner_at(t->tuner, i, &c) == SCHEDC_OK; i++)
    if (c.failed || c.rungs) json_candidate(j, &c);
  json_close(j, ']');
  json_key(j, "chosen");
  if (schedc_tuner_best(t->tuner, &c)) json_text(j, NULL);
  else json_candidate(j, &c);
}

void tune_json(const Tune *t, bool found, Json *j) {
  json_open(j, '{');
  json_key(j, "file"), json_text(j, t->args->operand[0]);
  if (found) json_found(t, j);
  json_key(j, "reports"), json_open(j, '[');
  if (t->session.reports.n) json_raw(j, t->session.reports.at);
  json_close(j, ']'), json_close(j, '}');
}
