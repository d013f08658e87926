// match.c - is every path of a thread one of what is wanted? In: a Thread and a Wanted. Out: the
// first Mismatch. The wanted program is a nondeterministic automaton; along the thread's blocks the
// set of its steps goes that may come next, and each pair of block and set is visited once. Where
// an event, or the end, finds no step in the set, the two differ. Another round of a loop begins
// where the thread jumps back, and nowhere else; if it does so amid a round, as compilers of C turn
// loops, the round's end is free. What is wanted and never met on any path is missing.
#include "runtime/ptx/ptx.h"

#include <string.h>

typedef struct Set {
  u64 *bit;
} Set;

typedef struct Visit {
  u32 block;
  Set set;
  const Event *before;
} Visit;

struct Matcher {
  Sc *sc;
  const Ptx *ptx;
  const Thread *thread;
  const Wanted *wanted;
  u32 words;  // of a set
  struct {
    VEC(Set) at;
  } * seen;  // by block
  VEC(Visit) pending;
  bool *met;  // by step
  Mismatch wrong;
};

Matcher *sc_ptx_matcher(Sc *sc, const Ptx *ptx) {
  Matcher *m = NEW(sc, Matcher);
  m->sc = sc;
  m->ptx = ptx;
  m->seen = sc_new(sc, sizeof *m->seen * (ptx->block.n + 1));
  return m;
}

// ---- sets of steps

static bool has(Set s, u32 step) { return s.bit[step / 64] >> step % 64 & 1; }

// The step, and what it leads to without an event or another round of a loop.
static void add(const Matcher *m, Set s, u32 step) {
  while (!has(s, step)) {
    const Step *at = &m->wanted->step.at[step];
    s.bit[step / 64] |= (u64)1 << step % 64;
    if (at->op == STEP_FORK) add(m, s, at->to);
    if (at->op == STEP_EVENT || at->op == STEP_END) return;
    step = at->op == STEP_GOTO ? at->to : step + 1;
  }
}

// Behind the last step: the thread has jumped back amid a round.
static u32 turned(const Matcher *m) { return m->wanted->step.n; }

static Set empty(Matcher *m) { return (Set){NEWS(m->sc, u64, m->words)}; }

// The thread jumps back: it may be another round of any loop that the set stands at the end of.
static Set next_round(Matcher *m, Set s) {
  Set next = empty(m);
  memcpy(next.bit, s.bit, m->words * sizeof(u64));
  for (bool more = true; more;) {
    more = false;
    for (u32 i = 0; i < m->wanted->step.n; i++) {
      const Step *at = &m->wanted->step.at[i];
      if (!has(next, i) || at->op != STEP_ROUND || has(next, at->to)) continue;
      add(m, next, at->to);
      more = true;
    }
  }
  return next;
}

static bool is_met(const Step *step, const Event *e) {
  const Event *w = &step->want;
  if (step->op != STEP_EVENT || w->id != e->id) return false;
  if (w->line && e->line && w->line != e->line) return false;
  for (u32 i = 0; i < EVENT_ARGS; i++) {
    if (w->arg[i] != ARG_ANY && w->arg[i] != e->arg[i]) return false;
  }
  if (!step->stages || (e->at == ARG_UNKNOWN && w->id != EV_INIT)) return true;
  return e->at >= w->at && e->at < w->at + 8 * step->stages && (e->at - w->at) % 8 == 0;
}

// The thread jumps back, at the end of a round or amid one.
static Set jump_back(Matcher *m, Set s) {
  Set next = next_round(m, s);
  u32 bit = turned(m);
  if (!memcmp(next.bit, s.bit, m->words * sizeof(u64))) next.bit[bit / 64] |= (u64)1 << bit % 64;
  return next;
}

// If it has jumped back amid the round that is over now, the next one may begin.
static void end_round(Matcher *m, Set *s) {
  u32 bit = turned(m);
  if (!has(*s, bit)) return;
  Set without = empty(m), next;
  memcpy(without.bit, s->bit, m->words * sizeof(u64));
  without.bit[bit / 64] &= ~((u64)1 << bit % 64);
  next = next_round(m, without);
  if (memcmp(next.bit, without.bit, m->words * sizeof(u64))) *s = next;
}

// A step of the set, what is wanted there: an event, or else the end of a round or of the thread.
static const Step *some(const Matcher *m, Set s) {
  const Step *end = NULL;
  for (u32 i = 0; i < m->wanted->step.n; i++) {
    const Step *at = &m->wanted->step.at[i];
    if (has(s, i) && at->op == STEP_EVENT) return at;
    if (has(s, i) && !end && (at->op == STEP_ROUND || at->op == STEP_END)) end = at;
  }
  return end;
}

static void differ(Matcher *m, Set s, const Event *found, const Event *before) {
  if (!m->wrong.any) m->wrong = (Mismatch){true, found, before, some(m, s), false};
}

// What may come after an event. False: it may not come.
static bool advance(Matcher *m, Set *s, const Event *e, const Event *before) {
  Set next = empty(m);
  bool any = false;
  for (u32 w = 0; w < m->words; w++) {
    for (u64 bits = s->bit[w]; bits; bits &= bits - 1) {
      u32 i = w * 64 + (u32)__builtin_ctzll(bits);
      if (i == turned(m)) next.bit[w] |= bits & -bits;
      if (i == turned(m) || !is_met(&m->wanted->step.at[i], e)) continue;
      any = m->met[i] = true;
      add(m, next, i + 1);
    }
  }
  if (!any) differ(m, *s, e, before);
  else *s = next;
  if (any) end_round(m, s);
  return any;
}

static void end(Matcher *m, Set s, const Event *before) {
  if (!has(s, m->wanted->step.n - 1)) differ(m, s, NULL, before);
}

// ---- blocks

static void visit(Matcher *m, u32 block, Set s, const Event *before) {
  for (u32 i = 0; i < m->seen[block].at.n; i++) {
    if (!memcmp(m->seen[block].at.at[i].bit, s.bit, m->words * sizeof(u64))) return;
  }
  PUSH(m->sc, &m->seen[block].at, s);
  PUSH(m->sc, &m->pending, ((Visit){block, s, before}));
}

static void walk(Matcher *m, Visit v) {
  const Thread *t = m->thread;
  const PtxBlock *at = &m->ptx->block.at[v.block];
  for (u32 i = t->first[v.block]; i < t->first[v.block + 1]; i++) {
    if (!advance(m, &v.set, &t->event[i], v.before)) return;
    v.before = &t->event[i];
  }
  u8 ways = t->ways[v.block];
  if (ways & GOES_NEXT) visit(m, at->next, v.set, v.before);
  if (ways & GOES_JUMP)
    visit(m, at->jump, at->jump <= v.block ? jump_back(m, v.set) : v.set, v.before);
  if (!(ways & (GOES_NEXT | GOES_JUMP))) end(m, v.set, v.before);
}

static void begin(Matcher *m, const Thread *t, const Wanted *w) {
  m->thread = t;
  m->wanted = w;
  m->words = w->step.n / 64 + 1;
  m->met = NEWS(m->sc, bool, w->step.n + 1);
  m->pending.n = 0;
  m->wrong = (Mismatch){0};
  for (u32 b = 0; b < m->ptx->block.n; b++) m->seen[b].at.n = 0;
}

static void find_missing(Matcher *m) {
  for (u32 i = 0; i < m->wanted->step.n && !m->wrong.any; i++) {
    const Step *at = &m->wanted->step.at[i];
    if (at->op == STEP_EVENT && at->must && !m->met[i])
      m->wrong = (Mismatch){true, NULL, NULL, at, true};
  }
}

Mismatch sc_ptx_match(Matcher *m, const Thread *t, const Wanted *w) {
  begin(m, t, w);
  Set s = empty(m);
  const Event *before = NULL;
  add(m, s, 0);
  for (u32 i = 0; i < t->straight.n; i++) {
    if (t->straight.at[i].id == EV_NONE) {
      s = next_round(m, s);
      continue;
    }
    if (!advance(m, &s, &t->straight.at[i], before)) return m->wrong;
    before = &t->straight.at[i];
  }
  if (t->then[0] == SC_NONE && t->then[1] == SC_NONE) end(m, s, before);
  for (u32 i = 0; i < 2; i++) {
    if (t->then[i] != SC_NONE) visit(m, t->then[i], s, before);
  }
  while (m->pending.n && !m->wrong.any) walk(m, m->pending.at[--m->pending.n]);
  find_missing(m);
  return m->wrong;
}
