// search.c - successive halving with a reference, and finals in turns. In: programs with predicted
// times. Out: orders, one by one, and a winner. Any number of orders may be out at a time; a phase
// begins when all of the one before it are in, so that the orders of a phase depend on nothing but
// what was told in phases before.
#include "runtime/tune/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- order

// In qsort the programs cannot be reached: what is compared travels along.
typedef struct Rated {
  double value;
  u32 program;
} Rated;

static int by_value(const void *a, const void *b) {
  const Rated *x = a, *y = b;
  if (x->value != y->value) return x->value < y->value ? -1 : 1;
  return x->program < y->program ? -1 : x->program > y->program;
}

// Predictions that differ by less than a tenth say little, and programs with nearly the same ones
// often fail alike: they come in an order that is mixed, always in the same way.
static void rank_by_prediction(Search *s) {
  const double blur = 0.1, golden = 0.618033988749895;
  Rated *rated = NEWS(s->sc, Rated, s->n + 1);
  for (u32 i = 0; i < s->n; i++) {
    double mixed = fmod(i * golden, 1);
    rated[i] = (Rated){s->at[i].predicted * (1 + blur * mixed), i};
  }
  qsort(rated, s->n, sizeof *rated, by_value);
  for (u32 i = 0; i < s->n; i++) s->rank[i] = rated[i].program;
}

// The programs of `list`, the smallest value first.
static void sort(Search *s, u32 *list, u32 n, double (*value)(const Program *p)) {
  Rated *rated = NEWS(s->sc, Rated, n + 1);
  for (u32 i = 0; i < n; i++) rated[i] = (Rated){value(&s->at[list[i]]), list[i]};
  qsort(rated, n, sizeof *rated, by_value);
  for (u32 i = 0; i < n; i++) list[i] = rated[i].program;
}

static double ratio(const Program *p) { return p->ratio; }

// ---- the reference

// The default, as long as it works; then what should be best.
static void choose_reference(Search *s) {
  s->reference = SC_NO_PROGRAM;
  for (u32 i = 0; i < s->n && s->reference == SC_NO_PROGRAM; i++)
    if (!s->at[s->rank[i]].failed) s->reference = s->rank[i];
  s->moment.n = 0;
  s->since = s->rungs.between;
}

// Its time at a moment: on the line between the measurements before and after it.
static double reference_at(const Search *s, u32 moment) {
  const Moment *m = s->moment.at;
  u32 n = s->moment.n, i = 0;
  if (!n) return 0;
  while (i < n && m[i].at < moment) i++;
  if (i == 0 || i == n) return m[i ? n - 1 : 0].ms;
  double part = (double)(moment - m[i - 1].at) / (m[i].at - m[i - 1].at);
  return m[i - 1].ms + part * (m[i].ms - m[i - 1].ms);
}

// ---- phases

static void begin_phase(Search *s, Phase phase, u32 n) {
  s->phase = phase;
  s->queued = n;
  s->next = 0;
  s->moment.n = 0;
  s->since = s->rungs.between;  // the reference is first
}

static u32 finalists(const Search *s) { return s->rungs.top < s->n ? s->rungs.top : s->n; }

// Those that were measured on this rung, the fastest first. In a hurry some were not: they follow,
// in the order in which they came here.
static void rank_rung(Search *s) {
  u32 *waiting = NEWS(s->sc, u32, s->n + 1), left = 0, n = 0;
  for (u32 i = 0; s->rung && i < s->queued; i++) {
    const Program *p = &s->at[s->queue[i]];
    if (!p->failed && p->rung == s->rung) waiting[left++] = s->queue[i];
  }
  for (u32 i = 0; i < s->n; i++) {
    Program *p = &s->at[i];
    if (p->failed || p->rung <= s->rung) continue;
    double reference = p->beside > 0 ? p->beside : reference_at(s, p->moment);
    p->ratio = reference > 0 ? p->ms / reference : p->ms;
    s->queue[n++] = i;
  }
  sort(s, s->queue, n, ratio);
  if (left) memcpy(s->queue + n, waiting, left * sizeof *waiting);
  s->queued = n + left;
}

// The default takes part in the finals whatever its place.
static void add_default(Search *s) {
  if (s->first == SC_NO_PROGRAM || s->at[s->first].failed) return;
  for (u32 i = 0; i < s->queued; i++)
    if (s->queue[i] == s->first) return;
  s->queue[s->queued++] = s->first;
}

static void end_rung(Search *s) {
  rank_rung(s);
  u32 most = finalists(s), n = s->queued / s->rungs.keep;
  if (n < most) n = most;
  if (n > s->queued) n = s->queued;
  bool last = s->hurried || s->rung + 1 >= s->rungs.n || s->queued <= most;
  s->rung++;
  if (!last) {
    begin_phase(s, PHASE_RUNG, n);
    return;
  }
  s->queued = n < most ? n : most;
  add_default(s);
  begin_phase(s, PHASE_VERIFY, s->queued);
}

static void begin_turn(Search *s) {
  u32 n = 0;
  for (u32 i = 0; i < s->n; i++)
    if (s->at[i].verified && !s->at[i].failed) s->queue[n++] = i;
  sort(s, s->queue, n, ratio);
  // Each turn begins with another program.
  u32 *turned = NEWS(s->sc, u32, n + 1);
  for (u32 i = 0; i < n; i++) turned[i] = s->queue[(i + s->turn) % n];
  memcpy(s->queue, turned, n * sizeof *turned);
  bool more = n && s->turn < s->rungs.turns;
  begin_phase(s, more ? PHASE_FINALS : PHASE_DONE, more ? n : 0);
}

// The time of the default, or of what stands for it, in a turn; 0: it was not measured.
static double reference_turn(const Search *s, u32 turn) {
  const Program *p = s->first != SC_NO_PROGRAM ? &s->at[s->first] : NULL;
  if (!p || !p->verified || p->failed) {
    p = NULL;
    for (u32 i = 0; i < s->n && !p; i++)
      if (s->at[i].verified && !s->at[i].failed && s->at[i].turns > turn) p = &s->at[i];
  }
  return p && p->turns > turn ? p->turn[turn] : 0;
}

// Two standard errors of the median of n values, which become their distances from it. Of normal
// ones the deviation is 1.48 times the median distance, and the median's standard error 1.25 times
// the deviation over sqrt(n). A turn that is far off alone does not matter.
static double uncertainty(double *v, u32 n, double middle) {
  for (u32 i = 0; i < n; i++) v[i] = fabs(v[i] - middle);
  return 2 * 1.2533 * 1.4826 * sc_median(v, n) / sqrt(n);
}

static void rate(Search *s, Program *p) {
  double *v = NEWS(s->sc, double, p->turns + 1), *ms = NEWS(s->sc, double, p->turns + 1);
  for (u32 i = 0; i < p->turns; i++) {
    double reference = reference_turn(s, i);
    v[i] = reference > 0 ? p->turn[i] / reference : 1;
    ms[i] = p->turn[i];
  }
  p->ratio = sc_median(v, p->turns);
  p->ms = sc_median(ms, p->turns);
  p->spread = uncertainty(v, p->turns, p->ratio);
}

static void end_turn(Search *s) {
  s->turn++;
  for (u32 i = 0; i < s->n; i++)
    if (s->at[i].verified && !s->at[i].failed && s->at[i].turns) rate(s, &s->at[i]);
  begin_turn(s);
}

static void end_phase(Search *s) {
  s->is_ranked = false;
  switch (s->phase) {
    case PHASE_RUNG: end_rung(s); break;
    case PHASE_VERIFY: begin_turn(s); break;
    case PHASE_FINALS: end_turn(s); break;
    case PHASE_DONE: break;
  }
}

void sc_search_begin(Search *s, Sc *sc, Program *programs, u32 n, u32 first, const Rungs *rungs) {
  *s = (Search){.sc = sc, .rungs = *rungs, .at = programs, .n = n, .first = first};
  s->queue = NEWS(sc, u32, n + 1);
  s->rank = NEWS(sc, u32, n + 1);
  s->ranked = NEWS(sc, u32, n + 1);
  s->merged = NEWS(sc, u32, n + 1);
  s->spread = NEWS(sc, double, n + 1);
  for (u32 i = 0; i < n; i++) programs[i].turn = NEWS(sc, double, rungs->turns + 1);
  rank_by_prediction(s);
  u32 place = 0;
  while (place < n && s->rank[place] != first) place++;
  if (place < n) {
    memmove(s->rank + 1, s->rank, place * sizeof *s->rank);
    s->rank[0] = first;
  }
  u32 taking = 0;
  for (u32 i = 0; i < n; i++)
    if (!programs[s->rank[i]].passed_over) s->queue[taking++] = s->rank[i];
  choose_reference(s);
  begin_phase(s, taking ? PHASE_RUNG : PHASE_DONE, taking);
}

void sc_search_first(Search *s, u32 program) {
  u32 to = s->first != SC_NO_PROGRAM && s->queued, at = to;
  while (at < s->queued && s->queue[at] != program) at++;
  if (at >= s->queued) return;
  memmove(s->queue + to + 1, s->queue + to, (at - to) * sizeof *s->queue);
  s->queue[to] = program;
}

// ---- orders

static double rung_ms(const Search *s) {
  double ms = s->rungs.ms;
  for (u32 i = 0; i < s->rung; i++) ms *= 4;
  return ms;
}

static Order order(Search *s, u32 program, bool reference) {
  s->out++;
  s->at[program].out = true;
  if (s->phase == PHASE_VERIFY)
    return (Order){.errand = ERRAND_VERIFY, .program = program, .rung = s->rung};
  bool finals = s->phase == PHASE_FINALS;
  return (Order){.errand = ERRAND_MEASURE,
                 .program = program,
                 .rung = s->rung,
                 .ms = finals ? s->rungs.final_ms : rung_ms(s),
                 .finals = finals,
                 .reference = reference};
}

// Is it the reference's turn? In the finals it is one of many, and has a turn anyhow.
static bool reference_is_due(const Search *s) {
  return s->phase == PHASE_RUNG && s->rungs.between && s->since >= s->rungs.between &&
         s->reference != SC_NO_PROGRAM && !s->reference_out && s->next < s->queued;
}

static bool is_over(const Search *s, u32 program) {
  const Program *p = &s->at[program];
  return p->failed || p->passed_over || p->out || (s->phase == PHASE_RUNG && p->rung > s->rung);
}

Order sc_search_ask(Search *s) {
  for (;;) {
    while (s->next < s->queued && is_over(s, s->queue[s->next])) s->next++;
    if (s->hurried && s->phase == PHASE_RUNG) s->next = s->queued;
    if (reference_is_due(s)) {
      s->since = 0;
      s->reference_out = true;
      return order(s, s->reference, true);
    }
    if (s->next < s->queued) {
      s->since++;
      return order(s, s->queue[s->next++], false);
    }
    if (s->out) return (Order){.errand = ERRAND_WAIT};
    if (s->phase == PHASE_DONE) return (Order){.errand = ERRAND_DONE};
    end_phase(s);
  }
}

static void came_back(Search *s, const Order *o) {
  s->out--;
  s->at[o->program].out = false;
  if (o->reference) s->reference_out = false;
}

static void fail(Search *s, u32 program) {
  s->at[program].failed = true;
  if (program == s->reference) choose_reference(s);
}

void sc_search_tell(Search *s, const Order *o, bool ok, double ms, double beside) {
  Program *p = &s->at[o->program];
  s->is_ranked = false;
  came_back(s, o);
  if (!ok) {
    fail(s, o->program);
    return;
  }
  if (o->errand == ERRAND_VERIFY) {
    p->verified = true;
    return;
  }
  u32 now = s->told++;
  if (o->finals) {
    if (p->turns < s->rungs.turns) p->turn[p->turns++] = ms;
    return;
  }
  if (o->program == s->reference) PUSH(s->sc, &s->moment, ((Moment){now, ms}));
  p->rung = o->rung + 1;
  p->moment = now;
  p->ms = ms;
  p->beside = beside;
}

// It goes back to where it stood: nothing was learnt.
void sc_search_lost(Search *s, const Order *o) {
  came_back(s, o);
  if (o->reference) {
    s->since = s->rungs.between;
    return;
  }
  for (u32 i = 0; i < s->next; i++) {
    if (s->queue[i] == o->program) s->next = i;
  }
}

void sc_search_hurry(Search *s) { s->hurried = true; }

// ---- results

double sc_search_noise(const Search *s) {
  double *v = s->spread;
  u32 n = 0;
  for (u32 i = 0; i < s->n; i++)
    if (s->at[i].turns > 1 && i != s->first) v[n++] = s->at[i].spread;
  return sc_median(v, n);
}

static bool has_finished(const Program *p) { return p->verified && !p->failed && p->turns; }

u32 sc_search_best(const Search *s) {
  u32 best = SC_NO_PROGRAM;
  for (u32 i = 0; i < s->n; i++)
    if (has_finished(&s->at[i]) && (best == SC_NO_PROGRAM || s->at[i].ratio < s->at[best].ratio))
      best = i;
  if (best == SC_NO_PROGRAM || s->first == SC_NO_PROGRAM || !has_finished(&s->at[s->first]))
    return best;
  double noise = sc_search_noise(s), tie = noise > s->rungs.tie ? noise : s->rungs.tie;
  return s->at[best].ratio > s->at[s->first].ratio * (1 - tie) ? s->first : best;
}

static int by_merit(const Program *a, const Program *b) {
  bool last_a = a->failed || a->passed_over, last_b = b->failed || b->passed_over;
  if (last_a != last_b) return last_a ? 1 : -1;
  if (!a->turns != !b->turns) return a->turns ? -1 : 1;
  if (!a->turns && a->rung != b->rung) return a->rung > b->rung ? -1 : 1;
  double x = a->rung ? a->ratio : a->predicted, y = b->rung ? b->ratio : b->predicted;
  return (x > y) - (x < y);
}

static void rank_by_merit(Search *s) {
  u32 *list = s->ranked, *other = s->merged;
  for (u32 i = 0; i < s->n; i++) list[i] = i;
  for (u32 run = 1; run < s->n; run *= 2) {  // merges runs: what is equal keeps its order
    for (u32 from = 0; from < s->n; from += 2 * run) {
      u32 a = from, b = from + run, end = b + run;
      u32 middle = b < s->n ? b : s->n;
      if (end > s->n) end = s->n;
      for (u32 to = from; to < end; to++) {
        bool left = a < middle && (b >= end || by_merit(&s->at[list[a]], &s->at[list[b]]) <= 0);
        other[to] = list[left ? a++ : b++];
      }
    }
    u32 *t = list;
    list = other;
    other = t;
  }
  s->ranked = list;
  s->merged = other;
  s->is_ranked = true;
}

u32 sc_search_ranked(Search *s, u32 place) {
  if (!s->is_ranked) rank_by_merit(s);
  return s->ranked[place];
}

u64 sc_search_left(const Search *s) {
  u64 n = s->phase == PHASE_DONE ? 0 : s->queued - s->next, left = s->out + n, most = finalists(s);
  if (s->phase == PHASE_RUNG) {
    u64 running = s->queued;
    for (u32 r = s->rung + 1; r < s->rungs.n && !s->hurried && running > most; r++) {
      running = running / s->rungs.keep > most ? running / s->rungs.keep : most;
      left += running;
    }
  }
  if (s->phase < PHASE_VERIFY) left += most;
  if (s->phase < PHASE_FINALS) return left + most * s->rungs.turns;
  return s->phase == PHASE_FINALS ? left + (u64)s->queued * (s->rungs.turns - 1 - s->turn) : left;
}
