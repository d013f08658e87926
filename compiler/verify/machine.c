// machine.c - the processes of a kernel, what they share, and how they go on.
//
// Between processes only counts matter: a fill waits until all who drain the ring have released a
// stage, a wait until all who fill it have committed. What a process may do stays possible whatever
// the others do, so every order of going on leads to the same end, and one is enough.
#include "compiler/verify/protocol.h"

#include <string.h>

// ---- processes and channels

static bool takes_turns(const Kernel *k, u32 role) {
  for (u32 t = 0; t < k->turn.n; t++)
    if (sc_turn_goes_over(&k->turn.at[t], role)) return true;
  return false;
}

static u32 *none(Sc *sc, u32 n) {
  u32 *at = NEWS(sc, u32, n + 1);
  for (u32 i = 0; i < n; i++) at[i] = SC_NONE;
  return at;
}

// Instances of a role that takes turns are processes of their own, as each waits at another time.
// The instances of any other role do the same at any time, so one process stands for all. Of a role
// that deals its tiles out (`one tile each`), one instance takes part in a tile.
static void add_processes(Protocol *p, u32 role, u32 rank, const Script *script) {
  const Kernel *k = p->k;
  const Role *r = &k->role.at[role];
  bool turns = takes_turns(k, role);
  for (u32 i = 0; i < script->step.n; i++) turns |= script->step.at[i].kind == STEP_TAKE;
  u32 n = turns && !r->one_tile ? r->instances : 1;
  for (u32 i = 0; i < n; i++) {
    Process q = {.role = role, .instance = i, .rank = rank, .script = script};
    q.channel = none(p->sc, k->ring.n);
    q.fill = none(p->sc, k->ring.n);
    q.drain = none(p->sc, k->ring.n);
    q.member = none(p->sc, k->turn.n);
    PUSH(p->sc, &p->process, q);
  }
}

bool sc_instances_apart(const Protocol *p, u32 role) {
  for (u32 i = 0; i < p->process.n; i++)
    if (p->process.at[i].role == role && p->process.at[i].instance) return true;
  return false;
}

// The channel of a private ring whose copies are multicast: each instance shares it with those of
// the same number in the other CTAs of the cluster. SC_NONE: none of them has one yet.
static u32 channel_of_peers(const Protocol *p, u32 ring, u32 process) {
  const Process *q = &p->process.at[process];
  for (u32 i = 0; i < process && p->k->ring.at[ring].multicast; i++) {
    const Process *o = &p->process.at[i];
    if (o->role == q->role && o->instance == q->instance) return o->channel[ring];
  }
  return SC_NONE;
}

static u32 channel_of(Protocol *p, u32 ring, u32 process, u32 *shared) {
  const Ring *r = &p->k->ring.at[ring];
  u32 rank = p->process.at[process].rank,
      *known = &shared[ring * p->ranks + (r->multicast ? 0 : rank)];
  if (r->owner != SC_NONE) *known = channel_of_peers(p, ring, process);
  if (*known != SC_NONE) return *known;
  PUSH(p->sc, &p->channel, ((Channel){.ring = ring, .stages = r->stages}));
  return *known = p->channel.n - 1;
}

static void connect(Protocol *p, u32 process, u32 *shared) {
  Process *q = &p->process.at[process];
  for (u32 r = 0; r < p->k->ring.n; r++) {
    u8 use = sc_ring_use(p->k, q->role, r);
    if (!(use & (USE_FILL | USE_DRAIN))) continue;
    u32 c = q->channel[r] = channel_of(p, r, process, shared);
    if (use & USE_FILL) {
      q->fill[r] = p->counts++;
      PUSH(p->sc, &p->channel.at[c].fills, q->fill[r]);
    }
    if (use & USE_DRAIN) {
      q->drain[r] = p->counts;
      PUSH(p->sc, &p->channel.at[c].drains, q->drain[r]);
      p->counts += 2;
    }
  }
}

// Numbers the turn's members in their order. A turn over CTAs, or from tile to tile, gets none:
// within a tile nobody waits for it.
static void seat(Protocol *p, u32 turn) {
  const Turn *t = &p->k->turn.at[turn];
  if (!sc_turn_over_instances(t) || sc_turn_is_dealt(p->k, t)) return;
  p->members[turn] = sc_members(p->k, t);
  for (u32 i = 0; i < p->process.n; i++) {
    Process *q = &p->process.at[i];
    if (sc_is_member(t, q->role))
      q->member[turn] = sc_members_before(p->k, t, q->role) + q->instance;
  }
}

static void note_used(Protocol *p, const Script *s) {
  for (u32 i = 0; i < s->step.n; i++)
    if (s->step.at[i].kind == STEP_TAKE) p->used[s->step.at[i].ref] = true;
}

Protocol *sc_protocol(Verify *v, Way way, u32 ranks) {
  Sc *sc = v->sc;
  const Kernel *k = v->k;
  Protocol *p = NEW(sc, Protocol);
  *p = (Protocol){.sc = sc, .k = k, .way = way, .ranks = ranks};
  p->used = NEWS(sc, bool, k->turn.n + 1);
  for (u32 r = 0; r < k->role.n; r++) {
    const Script *s = sc_script(v, r, way);
    note_used(p, s);
    for (u32 rank = 0; rank < ranks; rank++) add_processes(p, r, rank, s);
  }
  u32 *shared = none(sc, k->ring.n * ranks);
  p->slot = NEWS(sc, u32, p->process.n + 1);
  p->members = NEWS(sc, u32, k->turn.n + 1);
  for (u32 i = 0; i < p->process.n; i++) {
    connect(p, i, shared);
    p->slot[i] = 1 + p->loops;
    p->loops += p->process.at[i].script->depth;
  }
  for (u32 t = 0; t < k->turn.n; t++) seat(p, t);
  return p;
}

bool sc_reads_data(const Protocol *p) {
  for (u32 i = 0; i < p->process.n; i++) {
    const Script *s = p->process.at[i].script;
    for (u32 j = 0; j < s->step.n; j++) {
      const Step *step = &s->step.at[j];
      if ((p->k->expr.at[step->x].deps | p->k->expr.at[step->y].deps) & DEP_FETCH) return true;
    }
  }
  return false;
}

// ---- going on

void sc_run_begin(Run *r, Sc *sc, const Protocol *p) {
  r->p = p;
  r->at = NEWS(sc, u32, p->process.n + 1);
  r->count = NEWS(sc, u32, p->counts + 1);
  r->taken = NEWS(sc, u32, p->process.n * p->k->turn.n + 1);
  r->turn = NEWS(sc, u8, p->k->turn.n * p->ranks + 1);
  r->steps = 0;
  r->may_take = NULL;
  r->turned = NULL;
}

void sc_run_again(Run *r) {
  const Protocol *p = r->p;
  memset(r->at, 0, sizeof *r->at * p->process.n);
  memset(r->count, 0, sizeof *r->count * p->counts);
  memset(r->taken, 0, sizeof *r->taken * p->process.n * p->k->turn.n);
  memset(r->turn, 0, p->k->turn.n * p->ranks);
  r->steps = 0;
}

static u32 least(const u32 *count, const u32 *which, u32 n, u32 offset) {
  u32 l = UINT32_MAX;
  for (u32 i = 0; i < n; i++)
    if (count[which[i] + offset] < l) l = count[which[i] + offset];
  return l;
}

static const Channel *channel(const Run *r, const Process *q, const Step *s) {
  return &r->p->channel.at[q->channel[s->ref]];
}

static u8 *token(const Run *r, const Process *q, const Step *s) {
  return &r->turn[s->ref * r->p->ranks + q->rank];
}

bool sc_run_blocked(const Run *r, u32 process) {
  const Process *q = &r->p->process.at[process];
  const Step *s = &q->script->step.at[r->at[process]];
  if (s->kind == STEP_ACQUIRE) {
    const Channel *c = channel(r, q, s);
    u32 released = least(r->count, c->drains.at, c->drains.n, 1);
    return released != UINT32_MAX && r->count[q->fill[s->ref]] >= released + c->stages;
  }
  if (s->kind == STEP_WAIT) {
    const Channel *c = channel(r, q, s);
    return r->count[q->drain[s->ref]] >= least(r->count, c->fills.at, c->fills.n, 0);
  }
  if (s->kind != STEP_TAKE) return false;
  if (r->may_take && r->p->k->turn.at[s->ref].axis != SC_NONE) return !r->may_take(r, process, s);
  return r->p->members[s->ref] && *token(r, q, s) != q->member[s->ref];
}

static void act(Run *r, u32 process, const Process *q, const Step *s) {
  if (s->kind == STEP_COMMIT) r->count[q->fill[s->ref]]++;
  if (s->kind == STEP_WAIT) r->count[q->drain[s->ref]]++;
  if (s->kind == STEP_RELEASE) r->count[q->drain[s->ref] + 1]++;
  if (s->kind == STEP_TAKE) r->taken[process * r->p->k->turn.n + s->ref]++;
  if (s->kind == STEP_PASS && r->p->members[s->ref]) {
    u8 *t = token(r, q, s);
    *t = (u8)((*t + 1u) % r->p->members[s->ref]);
  }
  bool turn = s->kind == STEP_TAKE || s->kind == STEP_PASS;
  if (turn && r->turned && r->p->k->turn.at[s->ref].axis != SC_NONE) r->turned(r, process, s);
}

Answer sc_run_step(Run *r, u32 process) {
  const Process *q = &r->p->process.at[process];
  const Step *s = &q->script->step.at[r->at[process]];
  Answer a = s->kind == STEP_GO ? NO : s->kind >= STEP_IF ? r->ask(r, process, s) : YES;
  if (a == OPEN || a == UNKNOWN) return a;
  r->steps++;
  act(r, process, q, s);
  r->at[process] = a == NO ? s->to : r->at[process] + 1;
  return YES;
}

// As far as the process can go. YES: it has gone on.
static Answer advance(Run *r, u32 process) {
  const Process *q = &r->p->process.at[process];
  Answer moved = NO;
  for (;;) {
    const Step *s = &q->script->step.at[r->at[process]];
    if (s->kind == STEP_END || sc_run_blocked(r, process)) return moved;
    if (r->steps >= r->most) return moved;
    Answer a = sc_run_step(r, process);
    if (a != YES) return moved == YES && a == OPEN ? YES : a;
    moved = YES;
  }
}

static bool at_end(const Run *r, u32 process) {
  const Script *s = r->p->process.at[process].script;
  return s->step.at[r->at[process]].kind == STEP_END;
}

static bool uneven(const Run *r, const Channel *c) {
  u32 n = c->fills.n ? r->count[c->fills.at[0]] : 0;
  for (u32 i = 0; i < c->fills.n; i++)
    if (r->count[c->fills.at[i]] != n) return true;
  for (u32 i = 0; i < c->drains.n; i++)
    if (r->count[c->drains.at[i]] != n || r->count[c->drains.at[i] + 1] != n) return true;
  return false;
}

// Did some members of a CTA have the turn more often than others, so that it is not the first one's
// again at the end of the tile? Where tiles are dealt out, each must have it once, if any takes it.
// (That each member passes on what it takes is NAMED.)
static bool uneven_turn(const Run *r, u32 turn, u32 rank) {
  const Kernel *k = r->p->k;
  const Turn *t = &k->turn.at[turn];
  u32 n = sc_turn_is_dealt(k, t) ? 1 : UINT32_MAX;
  for (u32 i = 0; r->p->used[turn] && i < r->p->process.n; i++) {
    const Process *q = &r->p->process.at[i];
    u32 taken = r->taken[i * k->turn.n + turn];
    if (q->rank != rank || !sc_turn_goes_over(t, q->role)) continue;
    if (n != UINT32_MAX && taken != n) return true;
    n = taken;
  }
  return false;
}

u32 sc_run_uneven(const Run *r, u32 *turn) {
  *turn = SC_NONE;
  for (u32 c = 0; c < r->p->channel.n; c++)
    if (uneven(r, &r->p->channel.at[c])) return c;
  for (u32 t = 0; t < r->p->k->turn.n; t++)
    for (u32 rank = 0; rank < r->p->ranks; rank++)
      if (uneven_turn(r, t, rank)) *turn = t;
  return SC_NONE;
}

// Asks the process with the first open condition again, so that the evaluator keeps its question.
static Outcome ask_again(Run *r, u32 process) {
  const Process *q = &r->p->process.at[process];
  r->ask(r, process, &q->script->step.at[r->at[process]]);
  return OUT_OPEN;
}

Outcome sc_run_on(Run *r) {
  u32 open = SC_NONE, turn;
  for (bool moved = true; moved;) {
    moved = false;
    open = SC_NONE;
    for (u32 i = 0; i < r->p->process.n; i++) {
      Answer a = advance(r, i);
      if (a == UNKNOWN) return OUT_UNKNOWN;
      if (r->steps >= r->most) return OUT_EXHAUSTED;
      moved |= a == YES;
      if (a == OPEN && open == SC_NONE) open = i;
    }
  }
  if (open != SC_NONE) return ask_again(r, open);
  for (u32 i = 0; i < r->p->process.n; i++)
    if (!at_end(r, i)) return OUT_STUCK;
  return sc_run_uneven(r, &turn) != SC_NONE || turn != SC_NONE ? OUT_UNEVEN : OUT_DONE;
}
