// follow.c - another rank than 0: it measures what it is sent, on a GPU of its own, each beside its
// own default, and says nothing on standard output. In: lines of rank 0. Out: lines with what came
// of trials. It ends with rank 0.
#include "cli/ranks.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOOKING = 60, BETWEEN = 16 };  // seconds; measurements from one of the default to the next

// A trial that was sent; its point's texts are those of `line`.
typedef struct Sent {
  schedc_trial trial;
  char *line;
} Sent;

typedef struct Follower {
  const Args *args;
  const Launcher *who;
  Rendezvous rendezvous;
  Wire wire;
  Tune *tune;
  size_t shape;     // that is open here
  size_t later;     // that rank 0 has begun, if it is behind that
  long usual;       // the default's program; -1: there is none
  double usual_ms;  // 0: not known
  unsigned since;   // that was measured
  Sent *sent;       // of this shape: those from `next` on wait
  size_t n, next, cap;
} Follower;

static int lost(const Follower *f) {
  return cli_fail(f->args, "rank %d has lost rank 0", f->who->rank);
}

// ---- measuring

static bool measure(Follower *f, const schedc_trial *trial, schedc_outcome *out) {
  *out = (schedc_outcome)SCHEDC_OUTCOME_INIT;
  return !schedc_meter_run(f->tune->session.context, f->tune->meter, trial, out);
}

// The default's time, as long as this trial takes.
static bool measure_usual(Follower *f, const schedc_trial *like) {
  schedc_trial t = *like;
  schedc_outcome out;
  if (f->usual < 0 || (f->usual_ms > 0 && f->since < BETWEEN)) return true;
  t.program = (uint32_t)f->usual;
  t.is_reference = 1;
  t.point = (schedc_point)SCHEDC_POINT_INIT;
  if (!measure(f, &t, &out)) return false;
  f->usual_ms = out.status ? 0 : out.ms;
  f->since = 0;
  return true;
}

static int measure_next(Follower *f) {
  const schedc_trial *t = &f->sent[f->next++].trial;
  schedc_outcome out;
  if (!measure_usual(f, t) || !measure(f, t, &out))
    return session_status(&f->tune->session, SCHEDC_EUNAVAIL);
  f->since++;
  bool told = wire_send(&f->wire, "outcome %zu %u %d %.17g %llu %.17g %s", f->shape, t->program,
                        (int)out.status, out.ms, (unsigned long long)out.launches, f->usual_ms,
                        out.code ? out.code : "");
  return told ? EXIT_GOOD : lost(f);
}

// ---- lines

static void forget(Follower *f) {
  for (size_t i = 0; i < f->n; i++) free(f->sent[i].line);
  f->n = f->next = 0;
}

static void forget_waiting(Follower *f) {
  while (f->n > f->next) free(f->sent[--f->n].line);
}

// `trial SHAPE PROGRAM RUNG MS NAME=VALUE …`, without its first two words.
static void take_trial(Follower *f, const char *text) {
  if (f->n == f->cap) f->sent = need(realloc(f->sent, (f->cap = 2 * f->cap + 8) * sizeof *f->sent));
  char *line = need(strdup(text)), *rest = line;
  schedc_trial t = SCHEDC_TRIAL_INIT;
  t.kind = SCHEDC_TRIAL_MEASURE;
  t.program = (uint32_t)atoll(wire_word(&rest));
  t.rung = (unsigned)atoi(wire_word(&rest));
  t.ms = strtod(wire_word(&rest), NULL);
  while (*rest && t.point.param_count < SCHEDC_MAX_VARIED) {
    char *name = wire_word(&rest), *value = strchr(name, '=');
    if (!value) continue;
    *value = 0;
    t.point.params[t.point.param_count++] = (schedc_param){name, value + 1};
  }
  f->sent[f->n++] = (Sent){t, line};
  schedc_meter_prepare(f->tune->meter, &t);
}

// Of a shape that this rank has not opened yet, or has closed, there is nothing to do. *over: this
// shape is, or (*all) the search.
static void obey(Follower *f, char *rest, bool *over, bool *all) {
  const char *verb = wire_word(&rest);
  *all = strcmp(verb, "done") == 0;
  size_t shape = (size_t)atoll(wire_word(&rest));
  *over = *all || shape > f->shape || (shape == f->shape && strcmp(verb, "end") == 0);
  if (!*all && shape >= f->shape && strcmp(verb, "shape") == 0) {
    f->later = shape;
    f->usual = atol(wire_word(&rest));
  }
  if (*over || shape < f->shape) return;
  if (strcmp(verb, "forget") == 0) forget_waiting(f);
  else if (strcmp(verb, "trial") == 0) take_trial(f, rest);
}

// One shape, from its first trial to its end.
static int serve(Follower *f, bool *all) {
  bool over = false;
  int code = EXIT_GOOD;
  while (!code && !over && !tune_interrupted()) {
    char *line = wire_line(&f->wire, f->next < f->n ? 0 : 1000);
    if (line) obey(f, line, &over, all);
    else if (f->wire.fd < 0) code = lost(f);
    else if (f->next < f->n) code = measure_next(f);
  }
  return code;
}

// ---- coming and going

static int refused(const Follower *f, const char *by, const char *here) {
  return cli_fail(f->args, "rank %d is refused: it has '%s', and rank 0 '%s'", f->who->rank, here,
                  by);
}

// Whoever answers at the place may be another: the file may be an old one.
static bool is_welcome(Follower *f, const char *common, int *code) {
  unsigned jobs = launcher_jobs(f->who, f->args);
  if (!wire_send(&f->wire, "hello %s %d %u %s", f->rendezvous.token, f->who->rank, 2 * jobs + 2,
                 common))
    return false;
  char *line = wire_line(&f->wire, 10000);
  if (line && strcmp(line, "welcome") == 0) return true;
  if (line && strcmp(wire_word(&line), "refused") == 0) *code = refused(f, line, common);
  return false;
}

static double patience(void) {
  const char *text = getenv("SCHEDC_RANKS_SECONDS");
  double said = text ? strtod(text, NULL) : 0;
  return said > 0 ? said : LOOKING;
}

static int join(Follower *f) {
  const struct timespec nap = {.tv_nsec = 100000000};
  Buffer common = {0};
  int code = EXIT_GOOD;
  common_words(f->tune, &common);
  rendezvous_name(&f->rendezvous, f->args->store);
  double end = seconds() + patience();
  bool joined = false;
  while (!joined && !code && seconds() < end && !tune_interrupted()) {
    joined = rendezvous_find(&f->rendezvous, &f->wire) && is_welcome(f, common.at, &code);
    if (joined || code) break;
    wire_close(&f->wire);
    nanosleep(&nap, NULL);
  }
  if (!joined && !code)
    code = cli_fail(f->args,
                    "rank %d finds no rank 0 by '%s' within %.0f s: all ranks must see the same "
                    "folder, and have a "
                    "way to rank 0's machine",
                    f->who->rank, f->rendezvous.path, patience());
  free(common.at);
  return code;
}

static int one_shape(Follower *f, const Args *args, bool *all) {
  Tune t = {.args = args, .who = f->who, .state = SCHEDC_TUNE_STATE_INIT};
  f->tune = &t;
  f->usual_ms = 0;
  int code = tune_open(&t);
  if (!code) code = tune_meter(&t);
  if (!code && f->wire.fd < 0) code = join(f);
  if (!code) code = serve(f, all);
  tune_close(&t);
  forget(f);
  return code;
}

int follow(const Args *args, const Launcher *who, const Shapes *shapes) {
  Follower f = {.args = args, .who = who, .wire = {.fd = -1}};
  int code = EXIT_GOOD;
  bool all = false;
  for (; f.shape < shapes->n && !code && !all && !tune_interrupted(); f.shape++)
    if (f.shape >= f.later) code = one_shape(&f, &shapes->at[f.shape], &all);
  wire_close(&f.wire);
  rendezvous_close(&f.rendezvous);
  free(f.sent);
  return code;
}
