// lead.c - rank 0's side of a search under a launcher. In: trials of rungs. Out: outcomes, from
// whoever measured them. Everything is done between two trials of its own: who connects is let in,
// lines are read. A rank that is lost, or says nothing for five minutes, loses only what it has not
// answered: that goes to others.
#include "cli/ranks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SILENCE = 300, GREETING = 10 };  // seconds

typedef struct Rank {
  Wire wire;
  int number;  // -1: it has not said who it is
  double heard;
  unsigned room;  // trials that it may have at a time
  uint32_t *has;
  unsigned n;
} Rank;

static const char LOST[] = "is lost";  // why a rank is dropped that hears or says no more

typedef struct Came {
  uint32_t program;
  schedc_outcome outcome;
  char code[64];
} Came;

struct Lead {
  const Args *args;
  Rendezvous rendezvous;
  int listener;
  Rank *rank;
  size_t ranks, size;
  Buffer common, shape;  // what ranks must be like; the line that begins the shape
  size_t number;         // of the shape
  bool is_open;          // trials of it may be taken
  Came *came, told;
  size_t n, cap;
  uint64_t *measured;  // by rank, of this shape
};

// ---- what comes back

static void put_outcome(Lead *l, uint32_t program, schedc_status status, double ms,
                        const char *code) {
  if (l->n == l->cap) l->came = need(realloc(l->came, (l->cap = 2 * l->cap + 8) * sizeof *l->came));
  Came *c = &l->came[l->n++];
  *c = (Came){.program = program, .outcome = SCHEDC_OUTCOME_INIT};
  c->outcome.status = status;
  c->outcome.ms = ms;
  snprintf(c->code, sizeof c->code, "%s", code);
}

// It had this trial, and has it no more.
static bool had(Rank *r, uint32_t program) {
  for (unsigned i = 0; i < r->n; i++) {
    if (r->has[i] != program) continue;
    r->has[i] = r->has[--r->n];
    return true;
  }
  return false;
}

static void drop(Lead *l, Rank *r, const char *why) {
  if (r->number >= 0)
    cli_fail(l->args, "rank %d %s; what it had (%u) is measured by others", r->number, why, r->n);
  while (r->n) put_outcome(l, r->has[--r->n], SCHEDC_ECANCEL, 0, "");
  wire_close(&r->wire);
  free(r->has);
  *r = l->rank[--l->ranks];
}

// ---- who comes

static void let_in(Lead *l) {
  int fd;
  while (l->ranks < 2 * l->size && (fd = accept(l->listener, NULL, NULL)) >= 0)
    l->rank[l->ranks++] = (Rank){.wire = {.fd = fd}, .number = -1, .heard = seconds()};
}

static bool is_here(const Lead *l, int number) {
  for (size_t i = 0; i < l->ranks; i++)
    if (l->rank[i].number == number) return true;
  return false;
}

// `hello TOKEN RANK ROOM COMMON`. False: it is none of us, or unlike us.
static bool greet(Lead *l, Rank *r, char *rest, const char **why) {
  if (strcmp(wire_word(&rest), "hello") != 0 || strcmp(wire_word(&rest), l->rendezvous.token) != 0)
    return false;
  int number = atoi(wire_word(&rest)), room = atoi(wire_word(&rest));
  if (number < 1 || (size_t)number >= l->size || room < 1 || room > 1000 || is_here(l, number))
    return false;
  if (strcmp(rest, l->common.at) != 0) {
    cli_fail(l->args, "rank %d is left out: it has '%s', and rank 0 '%s'", number, rest,
             l->common.at);
    wire_send(&r->wire, "refused %s", l->common.at);
    return false;
  }
  r->number = number;
  r->room = (unsigned)room;
  r->has = need(calloc(r->room, sizeof *r->has));
  *why = LOST;
  return wire_send(&r->wire, "welcome") && (!l->is_open || wire_send(&r->wire, "%s", l->shape.at));
}

// `outcome SHAPE PROGRAM STATUS MS LAUNCHES REFERENCE CODE`
static bool take_outcome(Lead *l, Rank *r, char *rest) {
  if (strcmp(wire_word(&rest), "outcome") != 0) return false;
  size_t shape = (size_t)atoll(wire_word(&rest));
  uint32_t program = (uint32_t)atoll(wire_word(&rest));
  int status = atoi(wire_word(&rest));
  double ms = strtod(wire_word(&rest), NULL);
  uint64_t launches = (uint64_t)atoll(wire_word(&rest));
  double reference = strtod(wire_word(&rest), NULL);
  if (status < 0 || status > SCHEDC_ECANCEL || (!status && !(ms > 0)) || !(reference >= 0))
    return false;
  if (shape != l->number || !l->is_open || !had(r, program)) return true;  // it came too late
  put_outcome(l, program, (schedc_status)status, ms, rest);
  l->measured[r->number]++;
  l->came[l->n - 1].outcome.launches = launches;
  l->came[l->n - 1].outcome.reference_ms = reference;
  return true;
}

// False: it is to be dropped.
static bool read_lines(Lead *l, Rank *r, const char **why) {
  for (char *line; (line = wire_line(&r->wire, 0)); r->heard = seconds()) {
    *why = "speaks another language";
    if (r->number < 0 ? !greet(l, r, line, why) : !take_outcome(l, r, line)) return false;
  }
  *why = LOST;
  if (r->wire.fd < 0) return false;
  *why = "has said nothing for five minutes";
  return seconds() - r->heard < (r->number < 0 ? GREETING : SILENCE) || (r->number >= 0 && !r->n);
}

static void look_round(Lead *l) {
  const char *why;
  let_in(l);
  for (size_t i = l->ranks; i-- > 0;)
    if (!read_lines(l, &l->rank[i], &why)) drop(l, &l->rank[i], why);
}

// ---- schedc_elsewhere

static bool send_trial(const Lead *l, Rank *r, const schedc_trial *t) {
  Buffer line = {0};
  buffer_printf(&line, "trial %zu %u %u %.17g", l->number, t->program, t->rung, t->ms);
  for (size_t i = 0; i < t->point.param_count; i++)
    buffer_printf(&line, " %s=%s", t->point.params[i].name, t->point.params[i].value);
  bool sent = wire_send(&r->wire, "%s", line.at);
  free(line.at);
  return sent;
}

// To the one that has the most room.
static int take(void *user, const schedc_trial *t) {
  Lead *l = user;
  Rank *best = NULL;
  look_round(l);
  for (size_t i = 0; i < l->ranks; i++) {
    Rank *r = &l->rank[i];
    if (r->number < 0 || r->n == r->room) continue;
    if (!best || r->room - r->n > best->room - best->n) best = r;
  }
  if (!best) return 0;
  if (!best->n) best->heard = seconds();
  best->has[best->n++] = t->program;
  if (!send_trial(l, best, t)) drop(l, best, "does not read");
  return 1;
}

static int collect(void *user, uint32_t *program, schedc_outcome *outcome) {
  Lead *l = user;
  if (!l->n) look_round(l);
  if (!l->n) return 0;
  l->told = l->came[--l->n];
  *program = l->told.program;
  *outcome = l->told.outcome;
  outcome->code = *l->told.code ? l->told.code : NULL;
  return 1;
}

static void forget(void *user) {
  Lead *l = user;
  for (size_t i = 0; i < l->ranks; i++) {
    l->rank[i].n = 0;
    if (l->rank[i].number >= 0) wire_send(&l->rank[i].wire, "forget %zu", l->number);
  }
  l->n = 0;
}

// ---- shapes

Lead *lead_open(const Args *args, const Launcher *who) {
  const char *why;
  Lead *l = need(calloc(1, sizeof *l));
  *l = (Lead){.args = args, .size = (size_t)who->size, .listener = -1};
  l->rank = need(calloc(2 * l->size, sizeof *l->rank));
  l->measured = need(calloc(l->size, sizeof *l->measured));
  rendezvous_name(&l->rendezvous, args->store);
  l->listener = rendezvous_open(&l->rendezvous, &why);
  if (l->listener >= 0) return l;
  cli_fail(args, "the other ranks cannot be told where rank 0 is, by '%s': %s", l->rendezvous.path,
           why);
  lead_close(l);
  return NULL;
}

// The number of the default's program, or -1.
static long default_program(const Tune *t) {
  schedc_candidate c = SCHEDC_CANDIDATE_INIT;
  for (size_t i = 0; !schedc_tuner_at(t->tuner, i, &c); i++)
    if (c.is_default) return (long)c.program;
  return -1;
}

void lead_begin(Lead *l, size_t shape, Tune *t, schedc_elsewhere *e) {
  *e = (schedc_elsewhere){sizeof *e, l, take, collect, forget};
  l->number = shape;
  memset(l->measured, 0, l->size * sizeof *l->measured);
  t->elsewhere = l->measured;
  l->is_open = true;
  l->common.n = l->shape.n = 0;
  common_words(t, &l->common);
  buffer_printf(&l->shape, "shape %zu %ld", shape, default_program(t));
  for (size_t i = 0; i < l->ranks; i++)
    if (l->rank[i].number >= 0) wire_send(&l->rank[i].wire, "%s", l->shape.at);
}

void lead_end(Lead *l) {
  l->is_open = false;
  for (size_t i = 0; i < l->ranks; i++)
    if (l->rank[i].number >= 0) wire_send(&l->rank[i].wire, "end %zu", l->number);
}

void lead_close(Lead *l) {
  if (!l) return;
  for (size_t i = 0; i < l->ranks; i++) {
    wire_send(&l->rank[i].wire, "done");
    wire_close(&l->rank[i].wire);
    free(l->rank[i].has);
  }
  if (l->listener >= 0) close(l->listener);
  rendezvous_close(&l->rendezvous);
  free(l->rank);
  free(l->common.at);
  free(l->shape.at);
  free(l->came);
  free(l->measured);
  free(l);
}
