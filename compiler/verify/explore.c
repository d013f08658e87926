// explore.c - all runs of a tile, for all values of its conditions. In: a protocol. Out: whether
// every run ends with all processes in agreement, or how one does not.
//
// The idea: one tile, from empty rings to empty rings, is enough. Every order in which processes go
// on leads to the same end, so all of them may be thought to finish a tile before any begins the
// next. A run goes on as far as it can. Where conditions are open it branches on one of them, and
// the zone is widened there, so that there are finitely many states. A state that lies within an
// earlier one is not explored again.
#include "compiler/verify/protocol.h"

#include <string.h>

enum { RUN_STEPS = 1 << 22 };

typedef struct State {
  u8 *key;  // the discrete part
  i32 *bound;
  u32 ghosts;
  Ghost ghost[MAX_GHOSTS];
  u32 ask_i, ask_j;
  i64 ask_c;
  u32 next;  // of the same hash, + 1
} State;

typedef struct Explorer {
  Sc *sc;
  Run run;
  Symbolic symbolic;
  i64 most;
  u32 states;  // of a case, at most
  u32 key_bytes;
  VEC(State) state;
  u32 bucket[1024];
  VEC(u32) pending;  // 2 * state + side
  u64 resumed;       // steps of the run when the last question was answered
} Explorer;

// ---- states

// Counts are compared, never used: of each ring, and of each turn, only differences are kept.
static void settle(Run *r) {
  const Protocol *p = r->p;
  for (u32 c = 0; c < p->channel.n; c++) {
    const Channel *ch = &p->channel.at[c];
    u32 low = UINT32_MAX;
    for (u32 i = 0; i < ch->fills.n; i++)
      if (r->count[ch->fills.at[i]] < low) low = r->count[ch->fills.at[i]];
    for (u32 i = 0; i < ch->drains.n; i++)
      if (r->count[ch->drains.at[i] + 1] < low) low = r->count[ch->drains.at[i] + 1];
    for (u32 i = 0; i < ch->fills.n; i++) r->count[ch->fills.at[i]] -= low;
    for (u32 i = 0; i < ch->drains.n; i++) r->count[ch->drains.at[i]] -= low;
    for (u32 i = 0; i < ch->drains.n; i++) r->count[ch->drains.at[i] + 1] -= low;
  }
}

static void settle_turn(Run *r, u32 turn, u32 rank) {
  u32 turns = r->p->k->turn.n, low = UINT32_MAX;
  for (u32 i = 0; i < r->p->process.n; i++) {
    const Process *q = &r->p->process.at[i];
    u32 *taken = &r->taken[i * turns + turn];
    if (q->rank == rank && q->member[turn] != SC_NONE && *taken < low) low = *taken;
    if (!r->p->members[turn] && *taken > 2) *taken = 2;
  }
  for (u32 i = 0; i < r->p->process.n; i++) {
    const Process *q = &r->p->process.at[i];
    if (q->rank == rank && q->member[turn] != SC_NONE) r->taken[i * turns + turn] -= low;
  }
}

static void settle_turns(Run *r) {
  for (u32 t = 0; t < r->p->k->turn.n; t++)
    for (u32 rank = 0; rank < r->p->ranks; rank++) settle_turn(r, t, rank);
}

static u32 key_words(const Protocol *p) {
  return p->process.n * (1 + p->k->turn.n) + p->counts + 3 * MAX_GHOSTS + 1;
}

static u32 turn_bytes(const Protocol *p) { return p->k->turn.n * p->ranks; }
static u32 loop_bytes(const Protocol *p) { return p->loops + 1; }

static void write_key(const Explorer *e, u8 *key) {
  const Run *r = &e->run;
  const Protocol *p = r->p;
  u32 *at = (u32 *)(void *)key, turns = p->process.n * p->k->turn.n;
  memcpy(at, r->at, sizeof(u32) * p->process.n);
  memcpy(at += p->process.n, r->count, sizeof(u32) * p->counts);
  memcpy(at += p->counts, r->taken, sizeof(u32) * turns);
  at += turns;
  *at++ = e->symbolic.ghosts;
  for (u32 g = 0; g < MAX_GHOSTS; g++, at += 3) {
    const Ghost *ghost = &e->symbolic.ghost[g];
    if (g >= e->symbolic.ghosts) continue;
    at[0] = ghost->x;
    memcpy(&at[1], ghost->modulus, sizeof ghost->modulus);
    memcpy(&at[2], ghost->remainder, sizeof ghost->remainder);
  }
  u8 *rest = (u8 *)at;
  memcpy(rest, r->turn, turn_bytes(p));
  memcpy(rest += turn_bytes(p), e->symbolic.modulus, loop_bytes(p));
  memcpy(rest + loop_bytes(p), e->symbolic.remainder, loop_bytes(p));
}

static void read_key(Explorer *e, const u8 *key) {
  Run *r = &e->run;
  const Protocol *p = r->p;
  const u32 *at = (const u32 *)(const void *)key;
  u32 turns = p->process.n * p->k->turn.n;
  memcpy(r->at, at, sizeof(u32) * p->process.n);
  memcpy(r->count, at += p->process.n, sizeof(u32) * p->counts);
  memcpy(r->taken, at += p->counts, sizeof(u32) * turns);
  const u8 *rest = (const u8 *)(at + turns + 1 + 3 * MAX_GHOSTS);
  memcpy(r->turn, rest, turn_bytes(p));
  memcpy(e->symbolic.modulus, rest += turn_bytes(p), loop_bytes(p));
  memcpy(e->symbolic.remainder, rest + loop_bytes(p), loop_bytes(p));
}

static u32 hash(const u8 *key, u32 n) {
  u32 h = 2166136261u;
  for (u32 i = 0; i < n; i++) h = (h ^ key[i]) * 16777619u;
  return (h ^ h >> 15) % 1024;
}

// Has the present state been explored, as a part of another?
static bool met(const Explorer *e, const u8 *key, u32 h) {
  for (u32 i = e->bucket[h]; i; i = e->state.at[i - 1].next) {
    const State *s = &e->state.at[i - 1];
    Zone was = {e->symbolic.zone.n, s->bound};
    if (!memcmp(s->key, key, e->key_bytes) && zone_within(&e->symbolic.zone, &was)) return true;
  }
  return false;
}

static void keep(Explorer *e, u8 *key, u32 h) {
  const Symbolic *m = &e->symbolic;
  State s = {.key = key, .ghosts = m->ghosts, .next = e->bucket[h]};
  s.ask_i = m->ask_i;
  s.ask_j = m->ask_j;
  s.ask_c = m->ask_c;
  s.bound = sc_new(e->sc, zone_bytes(m->zone.n));
  memcpy(s.bound, m->zone.bound, zone_bytes(m->zone.n));
  memcpy(s.ghost, m->ghost, sizeof s.ghost);
  PUSH(e->sc, &e->state, s);
  e->bucket[h] = e->state.n;
  for (u32 side = 0; side < 2; side++) PUSH(e->sc, &e->pending, 2 * (e->state.n - 1) + side);
}

// Restores a state, and answers its question. False: the question cannot have this answer.
static bool resume(Explorer *e, u32 pending) {
  const State s = e->state.at[pending / 2];
  Symbolic *m = &e->symbolic;
  read_key(e, s.key);
  memcpy(m->zone.bound, s.bound, zone_bytes(m->zone.n));
  memcpy(m->ghost, s.ghost, sizeof s.ghost);
  m->ghosts = s.ghosts;
  e->resumed = e->run.steps;
  bool can = pending % 2 ? zone_learn(&m->zone, s.ask_i, s.ask_j, s.ask_c)
                         : zone_learn(&m->zone, s.ask_j, s.ask_i, -s.ask_c - 1);
  return can && sc_symbolic_tie(m);
}

// ---- exploring

// Branches on an open question. False: there are too many states. A condition may take several
// questions. While no process has gone on since the last one, the zone is not widened: that would
// forget the answer, and the state would count as explored.
static bool branch(Explorer *e) {
  bool moved = e->run.steps != e->resumed;
  if (moved) {
    settle(&e->run);
    settle_turns(&e->run);
    sc_ghosts_tidy(&e->run);
    zone_widen(&e->symbolic.zone, e->most);
    if (sc_run_on(&e->run) != OUT_OPEN) return false;  // widening opens questions, and closes none
  }
  u8 *key = sc_new(e->sc, e->key_bytes);
  write_key(e, key);
  u32 h = hash(key, e->key_bytes);
  if (!moved || !met(e, key, h)) keep(e, key, h);
  return e->state.n < e->states;
}

static void start(Explorer *e, const Protocol *p) {
  Symbolic *m = &e->symbolic;
  sc_run_begin(&e->run, e->sc, p);
  e->run.most = RUN_STEPS;
  m->zone.n = symbolic_vars(m);
  m->zone.bound = sc_new(e->sc, zone_bytes(m->zone.n));
  m->ghosts = 0;
  zone_clear(&m->zone);
  sc_symbolic_facts(m);
  memset(m->modulus, 1, loop_bytes(p));
  memset(m->remainder, 0, loop_bytes(p));
  e->state.n = e->pending.n = 0;
  e->resumed = UINT64_MAX;
  memset(e->bucket, 0, sizeof e->bucket);
}

static Outcome explore(Explorer *e) {
  Outcome o = sc_run_on(&e->run);
  for (;;) {
    if (o == OUT_OPEN && !branch(e)) return OUT_EXHAUSTED;
    if (o != OUT_OPEN && o != OUT_DONE) return o;
    bool some = false;
    while (!some && e->pending.n) some = resume(e, e->pending.at[--e->pending.n]);
    if (!some) return OUT_DONE;
    o = sc_run_on(&e->run);
  }
}

// Proves one case. It begins again, with more room, when a value that has no zone variable turned
// out to matter.
static Outcome prove_case(Explorer *e, const Protocol *p) {
  Symbolic *m = &e->symbolic;
  for (;;) {
    m->room = m->values;
    start(e, p);
    Outcome o = explore(e);
    bool ghosts = m->wants && m->values == m->room && !m->haunted;
    m->haunted |= ghosts;
    if (o != OUT_UNKNOWN || (!ghosts && m->values == m->room)) return o;
  }
}

Explored sc_explore(Verify *v, const Protocol *p, Expand expand, i64 most, u32 budget) {
  Explorer *e = NEW(v->sc, Explorer);
  *e = (Explorer){.sc = v->sc, .most = most};
  sc_facts_at(v->facts, &v->k->role.at[0].code, 1);
  Residues residues = sc_residues(v, p);
  e->symbolic = (Symbolic){
      .v = v, .sc = v->sc, .f = v->facts, .p = p, .residues = &residues, .expand = expand};
  e->symbolic.below = x_below(v->sc, v->k);
  e->symbolic.told = NEWS(v->sc, Told, v->k->expr.n);
  e->symbolic.modulus = NEWS(v->sc, u8, loop_bytes(p));
  e->symbolic.remainder = NEWS(v->sc, u8, loop_bytes(p));
  e->run.ask = sc_symbolic_ask;
  e->run.evaluator = &e->symbolic;
  e->key_bytes = (u32)sizeof(u32) * key_words(p) + turn_bytes(p) + 2 * loop_bytes(p);
  Outcome o = OUT_DONE;
  u32 states = 0;
  for (e->symbolic.which = 0; e->symbolic.which < residues.cases && o == OUT_DONE;
       e->symbolic.which++) {
    e->states = budget - states;
    o = prove_case(e, p);
    states += e->state.n;
  }
  return (Explored){o, states, e->symbolic.who, e->symbolic.why};
}
