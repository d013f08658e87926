// standstill.c - finds why CTAs wait for turns for ever. In: a crowd of CTAs that cannot go on.
// Out: the one that waits in vain, or a circle of processes that wait for each other.
#include "compiler/verify/crowd.h"

static bool is_cta_turn(const Crowd *c, const Step *s) {
  return s->kind == STEP_TAKE && c->p->k->turn.at[s->ref].axis != SC_NONE;
}

static bool at_end(const Waiter *w) { return sc_crowd_step(w->unit, w->process)->kind == STEP_END; }

static bool waits(const Waiter *w) {
  return !at_end(w) && sc_run_blocked(&w->unit->run, w->process);
}

// Does the process hold the turn of this counter?
static bool holds(const Crowd *c, const Waiter *w, u32 counter) {
  bool held = false;
  for (u32 i = 0; i < c->event.n; i++) {
    const Event *e = &c->event.at[i];
    if (e->unit == w->unit && e->process == w->process && e->counter == counter) held = !e->pass;
  }
  return held;
}

static bool takes(const Crowd *c, u32 process, u32 turn) {
  const Script *s = c->p->process.at[process].script;
  for (u32 i = 0; i < s->step.n; i++)
    if (s->step.at[i].kind == STEP_TAKE && s->step.at[i].ref == turn) return true;
  return false;
}

// Is it in the CTA at `index` along the axis, beside that of `w`?
static bool is_beside(const Crowd *c, const Waiter *w, const Waiter *other, u32 axis, i64 index) {
  for (u32 i = 0; i < c->p->k->axis.n; i++) {
    i64 want = i == axis ? index : sc_crowd_index(w->unit, w->process, i);
    if (sc_crowd_index(other->unit, other->process, i) != want) return false;
  }
  return true;
}

// Finds the process that holds the turn, or else will take it, in the CTA whose turn it is. False:
// there is none.
static bool holder(const Crowd *c, const Waiter *w, Waiter *out) {
  const Step *s = sc_crowd_step(w->unit, w->process);
  const u32 axis = c->p->k->turn.at[s->ref].axis,
            counter = sc_crowd_counter(w->unit, w->process, s);
  bool some = false;
  for (u32 u = 0; u < c->units; u++) {
    for (u32 i = 0; i < c->p->process.n; i++) {
      Waiter other = {c->unit.at[u], i};
      if (!is_beside(c, w, &other, axis, c->counter[counter]) || !waits(&other)) continue;
      bool has = holds(c, &other, counter);
      if (has || (!some && takes(c, i, s->ref))) *out = other, some = true;
      if (has) return true;
    }
  }
  return some;
}

// The turn has passed the CTA of `w`. Did that CTA have it before, or did another CTA pass it on
// too often? If another instance of the CTA had it, both may in another order have it at once; then
// a later CTA waits in vain, if there is one.
static Cause had_before(const Crowd *c, const Waiter *w, u32 counter, i64 index) {
  const Process *me = &c->p->process.at[w->process];
  const u32 axis = c->p->k->turn.at[sc_crowd_step(w->unit, w->process)->ref].axis;
  bool other = false, behind = false;
  for (u32 i = 0; i < c->event.n; i++) {
    const Event *e = &c->event.at[i];
    if (e->counter != counter || !e->pass) continue;
    bool here = e->unit == w->unit && c->p->process.at[e->process].rank == me->rank;
    if (here && e->process == w->process) return CAUSE_AGAIN;
    other |= here;
    behind |= sc_crowd_index(e->unit, e->process, axis) == index + 1;
  }
  return !other ? CAUSE_TWICE : behind ? CAUSE_AGAIN : CAUSE_NONE;
}

// Finds the process that `w` waits for (CAUSE_CIRCLE), or why it waits in vain.
static Cause awaited(const Crowd *c, const Waiter *w, Waiter *out) {
  const Step *s = sc_crowd_step(w->unit, w->process);
  if (!is_cta_turn(c, s)) {
    *out = (Waiter){w->unit, sc_awaited(&w->unit->run, w->process)};
    return out->process != SC_NONE && waits(out) ? CAUSE_CIRCLE : CAUSE_NONE;
  }
  i64 index = sc_crowd_index(w->unit, w->process, c->p->k->turn.at[s->ref].axis);
  u32 counter = sc_crowd_counter(w->unit, w->process, s);
  if (counter == SC_NONE) return CAUSE_KEY;
  if (c->counter[counter] < index) return holder(c, w, out) ? CAUSE_CIRCLE : CAUSE_NEVER;
  return had_before(c, w, counter, index);
}

static bool same(const Waiter *a, const Waiter *b) {
  return a->unit == b->unit && a->process == b->process;
}

// The circle in which a chain of waiters ends. It begins with a process that waits for a turn over
// CTAs.
static Standstill circle(const Crowd *c, const Waiter *chain, u32 n, const Waiter *again) {
  Standstill s = {CAUSE_NONE};
  u32 from = 0, first = 0;
  while (!same(&chain[from], again)) from++;
  for (first = from; first < n; first++)
    if (is_cta_turn(c, sc_crowd_step(chain[first].unit, chain[first].process))) break;
  if (first == n) return s;
  s.cause = CAUSE_CIRCLE;
  for (u32 i = 0; i < n - from; i++)
    s.waiter[s.n++] = chain[from + (first - from + i) % (n - from)];
  return s;
}

static Standstill follow(const Crowd *c, Waiter w) {
  Waiter chain[CROWD_CIRCLE], next;
  for (u32 n = 0; n < CROWD_CIRCLE; w = next) {
    chain[n++] = w;
    Cause cause = awaited(c, &w, &next);
    if (cause != CAUSE_CIRCLE) return (Standstill){cause, 1, {w}};
    for (u32 i = 0; i < n; i++)
      if (same(&chain[i], &next)) return circle(c, chain, n, &next);
  }
  return (Standstill){CAUSE_NONE};
}

static Standstill standstill(const Crowd *c) {
  for (u32 u = 0; u < c->units; u++) {
    for (u32 i = 0; i < c->p->process.n; i++) {
      Waiter w = {c->unit.at[u], i};
      if (at_end(&w) || !is_cta_turn(c, sc_crowd_step(w.unit, i))) continue;
      Standstill s = follow(c, w);
      if (s.cause != CAUSE_NONE) return s;
    }
  }
  return (Standstill){CAUSE_NONE};
}

typedef struct Search {
  Crowd *c;
  Standstill *why;
} Search;

static bool stands_still(void *search) {
  const Search *q = search;
  Crowd *c = q->c;
  if (!sc_crowd_run(c)) return false;
  *q->why = standstill(c);
  if (q->why->cause == CAUSE_NONE) return false;
  c->spent = 0;  // as many again to make it small
  const Waiter *w = &q->why->waiter[0];
  for (u32 i = 0; i < c->p->k->axis.n; i++) c->s->axis[i] = sc_crowd_index(w->unit, w->process, i);
  return true;
}

Crowd *sc_find_standstill(Verify *v, const Protocol *p, Sample *s, Standstill *why) {
  Search q = {sc_crowd(v, p, s), why};
  return sc_search(v, p, s, stands_still, &q) ? q.c : NULL;
}
