// match.c - is every path of a thread one of what is wanted? In: a Thread and a Wanted. Out: the
// first Mismatch. The wanted program is a nondeterministic automaton; along the thread's blocks the
// set of its steps goes that may come next, and each pair of block and set is visited once. Where
// an event, or the end, finds no step in the set, the two differ. Another round of a loop begins
// where the thread goes back (loop.c), and nowhere else; if it does so amid a round, as compilers
// of C turn loops, the round's end is free. What is wanted and never met on any path, an event or
// another round, is missing.
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

static void set_bit(Set s, u32 bit) { s.bit[bit / 64] |= (u64)1 << bit % 64; }

// The step, and what it leads to without an event or another round of a loop.
static void add(const Matcher *m, Set s, u32 step) {
  while (!has(s, step)) {
    const Step *at = &m->wanted->step.at[step];
    set_bit(s, step);
    if (at->op == STEP_FORK) add(m, s, at->to);
    if (at->op == STEP_EVENT || at->op == STEP_END) return;
    step = at->op == STEP_GOTO ? at->to : step + 1;
  }
}

// Behind the steps: the thread has gone back amid a round of the loop that ends at this step.
static u32 turned(const Matcher *m, u32 round) { return m->wanted->step.n + round; }

static Set empty(Matcher *m) { return (Set){NEWS(m->sc, u64, m->words)}; }

// Another round of any loop that the set stands at the end of; only of those whose rounds have been
// turned, if that is asked for. The set without what says which have.
static Set next_round(Matcher *m, Set s, bool if_turned) {
  Set next = empty(m);
  for (u32 i = 0; i < m->wanted->step.n; i++)
    if (has(s, i)) set_bit(next, i);
  for (bool more = true; more;) {
    more = false;
    for (u32 i = 0; i < m->wanted->step.n; i++) {
      const Step *at = &m->wanted->step.at[i];
      if (!has(next, i) || at->op != STEP_ROUND || (if_turned && !has(s, turned(m, i)))) continue;
      m->met[i] = true;
      if (has(next, at->to)) continue;
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

// Does the set stand in this loop?
static bool stands_in(const Matcher *m, Set s, u32 round) {
  for (u32 i = m->wanted->step.at[round].to; i < round; i++)
    if (has(s, i) && m->wanted->step.at[i].op == STEP_EVENT) return true;
  return false;
}

// The thread goes back, at the end of a round or amid one.
static Set go_back(Matcher *m, Set s) {
  Set next = next_round(m, s, false);
  bool at_end = false;
  for (u32 i = 0; i < m->wanted->step.n; i++) at_end |= has(next, i) != has(s, i);
  for (u32 i = 0; i < m->wanted->step.n && !at_end; i++) {
    bool amid = m->wanted->step.at[i].op == STEP_ROUND && stands_in(m, s, i);
    if (amid || has(s, turned(m, i))) set_bit(next, turned(m, i));
  }
  return next;
}

// If it has gone back amid a round that is over now, the next one may begin.
static void end_round(Matcher *m, Set *s) {
  for (u32 i = 0; i < m->wanted->step.n; i++) {
    if (!has(*s, turned(m, i)) || !has(*s, i)) continue;
    *s = next_round(m, *s, true);
    return;
  }
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
      if (i >= m->wanted->step.n) set_bit(next, i);
      if (i >= m->wanted->step.n || !is_met(&m->wanted->step.at[i], e)) continue;
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

// On by these ways out of a block.
static void leave(Matcher *m, u32 block, u8 ways, Set s, const Event *before) {
  const PtxBlock *at = &m->ptx->block.at[block];
  Set back = ways & at->back ? go_back(m, s) : s;
  if (ways & GOES_NEXT) visit(m, at->next, at->back & GOES_NEXT ? back : s, before);
  if (ways & GOES_JUMP) visit(m, at->jump, at->back & GOES_JUMP ? back : s, before);
  if (!(ways & (GOES_NEXT | GOES_JUMP))) end(m, s, before);
}

static void walk(Matcher *m, Visit v) {
  const Thread *t = m->thread;
  for (u32 i = t->first[v.block]; i < t->first[v.block + 1]; i++) {
    if (!advance(m, &v.set, &t->event[i], v.before)) return;
    v.before = &t->event[i];
  }
  leave(m, v.block, t->ways[v.block], v.set, v.before);
}

static void begin(Matcher *m, const Thread *t, const Wanted *w) {
  m->thread = t;
  m->wanted = w;
  m->words = 2 * w->step.n / 64 + 1;
  m->met = NEWS(m->sc, bool, w->step.n + 1);
  m->pending.n = 0;
  m->wrong = (Mismatch){0};
  for (u32 b = 0; b < m->ptx->block.n; b++) m->seen[b].at.n = 0;
}

static void find_missing(Matcher *m) {
  for (u32 i = 0; i < m->wanted->step.n && !m->wrong.any; i++) {
    const Step *at = &m->wanted->step.at[i];
    if (at->must && !m->met[i]) m->wrong = (Mismatch){true, NULL, NULL, at, true};
  }
}

Mismatch sc_ptx_match(Matcher *m, const Thread *t, const Wanted *w) {
  begin(m, t, w);
  Set s = empty(m);
  const Event *before = NULL;
  add(m, s, 0);
  for (u32 i = 0; i < t->straight.n; i++) {
    if (t->straight.at[i].id == EV_NONE) {
      s = go_back(m, s);
      continue;
    }
    if (!advance(m, &s, &t->straight.at[i], before)) return m->wrong;
    before = &t->straight.at[i];
  }
  leave(m, t->last, t->onwards, s, before);
  while (m->pending.n && !m->wrong.any) walk(m, m->pending.at[--m->pending.n]);
  find_missing(m);
  return m->wrong;
}
