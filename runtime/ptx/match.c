// match.c - is every path of a thread a path of the wanted program? In: a Thread and a Wanted. Out:
// the first Mismatch. The wanted program is a nondeterministic automaton (automaton.c). The set of
// its steps that may come next is carried along the thread's blocks, and each pair of block and set
// is visited once. (Where values are followed, a set is passed by that contains one which has been
// visited with the same values.) Where no step of the set fits an event, or the thread's end, there
// is a mismatch. A wanted event, or another round of a loop, that no path contains is missing.
//
// The first pass compares all events; those at a ring's barriers need only belong to the right
// ring. Then there is a pass for each ring, with the values that addresses and parities have along
// each path (follow.c). The automaton moves the role's cursors as the plan does, and the barrier
// must be that of the cursor's stage, the parity that of its phase. Only where tiles of other
// instances are skipped does data decide how far cursors move: there an unknown address may be that
// of any stage.
#include "runtime/ptx/automaton.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

// With so many states at one block, or so many for each place of the cursors, values are widened.
enum { MANY = 128, MANY_OF_PLACE = 16 };

// The state of a path where a block begins.
typedef struct State {
  u64 hash;  // of all that follows, where it is kept
  Set set;
  Known *at;  // by register that is followed
} State;

typedef struct Visit {
  u32 block;
  State state;
  const Event *before;
} Visit;

struct Matcher {
  Sc *sc;
  const Ptx *ptx;
  const Thread *thread;
  Automaton automaton;
  Follower *follower;
  u32 followed;  // registers
  struct {
    VEC(State) at;
  } * seen;  // by block
  VEC(Visit) pending;
  VEC(u8 *) slab;   // states of a pass; those of the next take their place
  size_t used;      // bytes of them
  State now, back;  // scratch
  VEC(Event) event;
  u64 *rings;  // by the thread's events: at whose barriers it may be
  Mismatch wrong;
};

Matcher *sc_ptx_matcher(Sc *sc, const Ptx *ptx) {
  Matcher *m = NEW(sc, Matcher);
  m->sc = sc;
  m->ptx = ptx;
  m->seen = sc_new(sc, sizeof *m->seen * (ptx->block.n + 1));
  m->follower = sc_ptx_follower(sc, ptx);
  return m;
}

// ---- states

enum { SLAB = 1 << 18 };

// Room for a state, which is kept until the next pass begins.
static State new_state(Matcher *m) {
  size_t set = m->automaton.words * sizeof(u64), all = set + (m->followed + 1) * sizeof(Known);
  size_t left = SLAB - m->used % SLAB;
  if (left < all) m->used += left;
  if (m->used / SLAB == m->slab.n) PUSH(m->sc, &m->slab, NEWS(m->sc, u8, SLAB));
  u8 *at = m->slab.at[m->used / SLAB] + m->used % SLAB;
  m->used += all;
  return (State){0, {(u64 *)(void *)at}, (Known *)(void *)(at + set)};
}

static void copy(const Matcher *m, State to, State from) {
  memcpy(to.set.bit, from.set.bit, m->automaton.words * sizeof(u64));
  memcpy(to.at, from.at, m->followed * sizeof(Known));
}

static u64 hash(const Matcher *m, State s) {
  XXH64_hash_t set = XXH3_64bits(s.set.bit, m->automaton.words * sizeof(u64));
  return XXH3_64bits_withSeed(s.at, m->followed * sizeof(Known), set);
}

static bool same(const Matcher *m, State a, State b) {
  bool is = a.hash == b.hash && !memcmp(a.set.bit, b.set.bit, m->automaton.words * sizeof(u64));
  for (u32 i = 0; i < m->followed && is; i++) is = sc_ptx_same(a.at[i], b.at[i]);
  return is;
}

// Has b reached all that a has? Then what fits a from here on fits b, too. Where the block of a
// condition has no event of the thread, it may have reached many steps, and nearly each path has
// another set of them: without this there would be too many.
static bool covers(const Matcher *m, State a, State b) {
  bool is = true;
  for (u32 i = 0; i < m->followed && is; i++) is = sc_ptx_same(a.at[i], b.at[i]);
  for (u32 w = 0; w < m->automaton.words && is; w++) is = !(a.set.bit[w] & ~b.set.bit[w]);
  return is;
}

// ---- blocks

static void differ(Matcher *m, Set s, const Event *found, const Event *before) {
  if (m->wrong.any) return;
  const Event *kept = found;
  if (found) {
    Event *event = NEW(m->sc, Event);
    *event = *found;
    kept = event;
  }
  m->wrong = (Mismatch){true, kept, before, sc_ptx_due(&m->automaton, s), false};
}

static bool is_new(const Matcher *m, u32 block, State s) {
  for (u32 i = 0; i < m->seen[block].at.n; i++) {
    State seen = m->seen[block].at.at[i];
    if (m->followed ? covers(m, seen, s) : same(m, seen, s)) return false;
  }
  return true;
}

// Forgets registers that have had other values at this block. A cursor of a ring has few values; a
// register with many, such as a sum over a loop of unknown length, is treated as unknown from here
// on.
static void widen(const Matcher *m, u32 block, Known *at) {
  for (u32 i = 0; i < m->seen[block].at.n; i++) {
    const Known *other = m->seen[block].at.at[i].at;
    for (u32 r = 0; r < m->followed; r++) {
      if (!sc_ptx_same(at[r], other[r])) at[r] = (Known){0};
    }
  }
}

static void visit(Matcher *m, u32 block, State s, const Event *before) {
  if (m->followed) sc_ptx_forget(m->follower, block, s.at);
  if (m->seen[block].at.n > MANY + MANY_OF_PLACE * m->automaton.places) widen(m, block, s.at);
  s.hash = hash(m, s);
  if (!is_new(m, block, s)) return;
  State fresh = new_state(m);
  copy(m, fresh, s);
  fresh.hash = s.hash;
  PUSH(m->sc, &m->seen[block].at, fresh);
  PUSH(m->sc, &m->pending, ((Visit){block, fresh, before}));
}

// Goes on along one edge out of a block, with a copy of the state.
static void go(Matcher *m, u32 to, bool back, State s, const Event *before) {
  copy(m, m->back, s);
  if (back) sc_ptx_go_back(&m->automaton, m->back.set);
  visit(m, to, m->back, before);
}

static void leave(Matcher *m, u32 block, u8 ways, State s, const Event *before) {
  const PtxBlock *at = &m->ptx->block.at[block];
  if (ways & GOES_NEXT) go(m, at->next, at->back & GOES_NEXT, s, before);
  if (ways & GOES_JUMP) go(m, at->jump, at->back & GOES_JUMP, s, before);
  bool ends = !(ways & (GOES_NEXT | GOES_JUMP));
  if (ends && !sc_ptx_may_end(&m->automaton, s.set)) differ(m, s.set, NULL, before);
}

static void walk(Matcher *m, Visit v) {
  const Thread *t = m->thread;
  u32 first = t->first[v.block], n = t->first[v.block + 1] - first;
  u8 ways = t->ways[v.block];
  m->event.n = 0;
  for (u32 i = 0; i < n; i++) PUSH(m->sc, &m->event, t->event[first + i]);
  copy(m, m->now, v.state);
  if (m->followed) ways = sc_ptx_run(m->follower, v.block, m->now.at, m->event.at);
  for (u32 i = 0; i < n; i++) {
    if (!sc_ptx_advance(&m->automaton, m->now.set, &m->event.at[i], &m->rings[first + i])) {
      differ(m, m->now.set, &m->event.at[i], v.before);
      return;
    }
    v.before = &t->event[first + i];
  }
  leave(m, v.block, ways, m->now, v.before);
}

// ---- one pass

static void begin(Matcher *m, const Wanted *w, u32 ring) {
  m->used = 0;
  m->pending.n = 0;
  for (u32 b = 0; b < m->ptx->block.n; b++) m->seen[b].at.n = 0;
  m->automaton = sc_ptx_automaton(m->sc, w, ring, &m->now.set);
  m->now.at = NEWS(m->sc, Known, m->followed + 1);
  m->back = new_state(m);
}

// One pass: first the thread's straight path, then all paths from the end of it.
static void pass(Matcher *m) {
  const Thread *t = m->thread;
  const Event *before = NULL;
  u64 rings = 0;
  for (u32 i = 0; i < t->straight.n; i++) {
    const Event *e = &t->straight.at[i];
    if (e->id == EV_NONE) {
      sc_ptx_go_back(&m->automaton, m->now.set);
      continue;
    }
    if (!sc_ptx_advance(&m->automaton, m->now.set, e, &rings)) {
      differ(m, m->now.set, e, before);
      return;
    }
    before = e;
  }
  if (m->followed) sc_ptx_begin(m->follower, m->now.at);
  leave(m, t->last, t->onwards, m->now, before);
  while (m->pending.n && !m->wrong.any) walk(m, m->pending.at[--m->pending.n]);
}

static u32 other_half(u32 half) { return half % 2 ? half + 1 : half - 1; }

static void find_missing(Matcher *m) {
  const Wanted *w = m->automaton.wanted;
  bool *any = NEWS(m->sc, bool, w->halves + 1);  // by half: some of it was met
  for (u32 i = 0; i < w->step.n; i++)
    any[w->step.at[i].half] |= w->step.at[i].must && m->automaton.met[i];
  for (u32 i = 0; i < w->step.n && !m->wrong.any; i++) {
    const Step *at = &w->step.at[i];
    bool left_out = at->half && !any[at->half] && any[other_half(at->half)];
    if (at->must && !m->automaton.met[i] && !left_out)
      m->wrong = (Mismatch){true, NULL, NULL, at, true};
  }
}

// ---- ring by ring

static void follow(Matcher *m, const Wanted *w, u32 ring) {
  u32 events = m->thread->first[m->ptx->block.n];
  bool *of_ring = NEWS(m->sc, bool, events + 1);
  for (u32 i = 0; i < events; i++) of_ring[i] = m->rings[i] >> (ring < 63 ? ring : 63) & 1;
  m->followed = sc_ptx_follow(m->follower, m->thread, of_ring);
  begin(m, w, ring);
  if (m->automaton.focus.stages) pass(m);
}

Mismatch sc_ptx_match(Matcher *m, const Thread *t, const Wanted *w) {
  u32 rings = 0;
  m->thread = t;
  m->wrong = (Mismatch){0};
  m->followed = 0;
  m->rings = NEWS(m->sc, u64, t->first[m->ptx->block.n] + 1);
  begin(m, w, SC_NONE);
  pass(m);
  find_missing(m);
  for (u32 i = 0; i < w->step.n; i++) {
    const Barriers *b = &w->step.at[i].barrier;
    if (b->stages && b->ring >= rings) rings = b->ring + 1;
  }
  for (u32 r = 0; r < rings && !m->wrong.any; r++) follow(m, w, r);
  return m->wrong;
}
