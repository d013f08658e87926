// replay.c - one tile with concrete numbers: what each role instance does, and what it knows of the
// others when it does it. In: dimensions and a tile, and two accesses. Out: their executions, each
// with a clock.
//
// The idea: what instances do does not depend on timing, so every order in which they can go on has
// the same happens-before relation. A vector clock has a component for each instance, which counts
// its operations, and one for each ring and filler, which counts the fills that have landed. A wait
// passes on what all fillers knew when they arrived, an acquire what all drainers knew. A wait for
// products or copies out is taken to cover all older ones, which may be more than it does: then two
// accesses that are found without an order have none.
#include "compiler/verify/replay.h"

#include <string.h>

enum { STEPS = 20000, FILLS = 256, MAX_PROCS = 32 };

typedef struct Proc {
  u32 role, inst, pc;
  u32 *clock;
  u32 *acquired, *committed, *waited, *released;  // by ring
  u32 *taken;                                     // by turn
  i64 loop[REPLAY_LOOPS];
  bool done;
} Proc;

// What has been handed on, by the number of the fill: how many have arrived, and what they knew.
typedef struct Hands {
  u32 n[FILLS];
  u32 *clock[FILLS];
} Hands;

struct Replay {
  World *w;
  const Kernel *k;
  const Access *a, *b;
  Executions *out;
  Proc proc[MAX_PROCS];
  u32 procs, words, steps;
  Hands *full, *empty;  // by ring
  Hands *passed;        // by turn
  bool failed;
};

static u32 landing_word(const Replay *r, u32 ring, u32 proc) {
  return r->procs + ring * r->procs + proc;
}

static void join(const Replay *r, u32 *to, const u32 *from) {
  for (u32 i = 0; from && i < r->words; i++)
    if (from[i] > to[i]) to[i] = from[i];
}

// ---- hands

static void hand_on(Replay *r, Hands *h, u32 number, const Proc *p) {
  if (number >= FILLS) r->failed = true;
  if (r->failed) return;
  if (!h->clock[number]) h->clock[number] = NEWS(r->w->v->sc, u32, r->words);
  if (!h->n[number]) memset(h->clock[number], 0, sizeof(u32) * r->words);
  join(r, h->clock[number], p->clock);
  h->n[number]++;
}

// How many take part in each fill (or drain) of the ring in one tile.
static u32 parties(const Replay *r, u32 ring, Op op) {
  u32 n = 0;
  for (u32 i = 0; i < r->procs; i++)
    n += sc_first_op(r->k, r->proc[i].role, op, ring, 0) != SC_NONE;
  return n;
}

static bool private_ring(const Replay *r, u32 ring) { return r->k->ring.at[ring].owner != SC_NONE; }

static bool acquire(Replay *r, Proc *p, u32 ring) {
  u32 n = p->acquired[ring], stages = r->k->ring.at[ring].stages;
  const Hands *h = &r->empty[ring];
  if (n >= FILLS) r->failed = true;
  if (r->failed) return false;
  if (!private_ring(r, ring) && n >= stages) {
    if (h->n[n - stages] < parties(r, ring, OP_RELEASE)) return false;
    join(r, p->clock, h->clock[n - stages]);
  }
  p->acquired[ring]++;
  return true;
}

static bool wait_for(Replay *r, Proc *p, u32 ring) {
  u32 n = p->waited[ring];
  if (n >= FILLS) r->failed = true;
  if (r->failed) return false;
  p->waited[ring]++;
  if (private_ring(r, ring)) {
    p->clock[landing_word(r, ring, (u32)(p - r->proc))] = n + 1;
    return true;
  }
  if (r->full[ring].n[n] < parties(r, ring, OP_COMMIT)) {
    p->waited[ring]--;
    return false;
  }
  join(r, p->clock, r->full[ring].clock[n]);
  for (u32 i = 0; i < r->procs; i++) p->clock[landing_word(r, ring, i)] = n + 1;
  return true;
}

// ---- turns over instances

// The number of the instance's next take, counted over all takes of the turn.
static u32 due(const Replay *r, const Turn *t, const Proc *p, u32 turn) {
  return p->taken[turn] * sc_members(r->k, t) + sc_members_before(r->k, t, p->role) + p->inst;
}

// Is the turn free within a tile? It is where tiles are dealt out, as each tile's owner has it
// once, and if it goes over CTAs.
static bool is_free(const Replay *r, const Turn *t) {
  return !sc_turn_over_instances(t) || sc_turn_is_dealt(r->k, t);
}

static bool take(Replay *r, Proc *p, u32 turn) {
  const Turn *t = &r->k->turn.at[turn];
  if (sc_turn_over_ctas(t)) p->clock[r->words - 1] = 1;
  if (is_free(r, t)) return true;
  u32 n = due(r, t, p, turn);
  if (n >= FILLS) r->failed = true;
  if (r->failed || (n && !r->passed[turn].n[n - 1])) return false;
  if (n) join(r, p->clock, r->passed[turn].clock[n - 1]);
  return true;
}

// Who takes the turn next hears of what the instance has done, or knows to be over. (Of its own,
// also of what it has not waited for.)
static void tell_next(Replay *r, const Proc *p) {
  for (u32 i = 0; i < r->out->n; i++) {
    Execution *d = &r->out->at[i];
    d->passed |= d->proc == (u32)(p - r->proc) || sc_execution_known(p->clock, d);
  }
}

static void pass(Replay *r, Proc *p, u32 turn) {
  const Turn *t = &r->k->turn.at[turn];
  if (sc_turn_over_ctas(t)) tell_next(r, p);
  if (is_free(r, t)) return;
  hand_on(r, &r->passed[turn], due(r, t, p, turn), p);
  p->taken[turn]++;
}

// ---- accesses

static void note(Replay *r, Proc *p, const Access *a, bool second) {
  const Ins *ins = &r->k->role.at[p->role].code.at[p->pc];
  const View *v = &r->k->view.at[a->view];
  const Buf *b = &r->k->buf.at[v->buf];
  if (r->out->n == r->out->most) return;
  Execution *out = &r->out->at[r->out->n++];
  Execution d = {.second = second, .proc = (u32)(p - r->proc), .inst = p->inst, .landing = SC_NONE};
  for (u32 i = 0; i < v->rank; i++)
    if (v->at[i].base && !sc_value(r->w, v->at[i].base, &d.base[i])) r->failed = true;
  memcpy(d.axis, r->w->axis, sizeof d.axis);
  memcpy(d.loop, p->loop, sizeof d.loop);
  d.clock = out->clock ? out->clock : NEWS(r->w->v->sc, u32, r->words);
  memcpy(d.clock, p->clock, r->words * sizeof *d.clock);
  d.time = p->clock[d.proc];
  d.turned = p->clock[r->words - 1];
  d.over = sc_access_by_threads(a);
  d.end = d.time;
  if (ins->op == OP_COPYIN) {
    u32 ring = r->k->buf.at[r->k->view.at[ins->arg[0]].buf].ring;
    d.landing = landing_word(r, ring, d.proc);
    d.fill = p->acquired[ring];
  }
  if (b->space == SP_STAGE) d.fill = v->fill ? p->acquired[b->ring] : p->waited[b->ring];
  *out = d;
}

static void touch(Replay *r, Proc *p) {
  p->clock[p - r->proc]++;
  const Access *both[] = {r->a, r->b};
  for (u32 i = 0; i < 2; i++) {
    const Access *a = both[i];
    if (a->role != p->role || a->pc != p->pc || (i && r->a == r->b)) continue;
    note(r, p, a, i);
  }
}

// Notes which executions are over for the instance after a wait for products or copies out. (The
// wait is counted behind this.)
static void finish(Replay *r, const Proc *p, const Ins *wait) {
  u32 me = (u32)(p - r->proc);
  for (u32 i = 0; i < r->out->n; i++) {
    Execution *d = &r->out->at[i];
    const Access *a = d->second ? r->b : r->a;
    const Ins *ins = &r->k->role.at[a->role].code.at[a->pc];
    bool product = ins->op == OP_MMA, out = ins->op == OP_COPYOUT || ins->op == OP_COPYADD;
    bool read = wait->flags & INS_READ;
    if (d->proc != me || d->over || memcmp(d->axis, r->w->axis, sizeof d->axis)) continue;
    if (wait->op == OP_MMAWAIT ? !product : !out || (read && sc_access_writes(a))) continue;
    d->over = true;
    d->end = p->clock[me] + 1;
  }
}

bool sc_execution_known(const u32 *clock, const Execution *d) {
  if (d->landing != SC_NONE) return clock[d->landing] >= d->fill;
  return d->over && clock[d->proc] >= d->end;
}

// ---- control

static bool enter_loop(Replay *r, Proc *p, const Ins *ins) {
  i64 from, to;
  if (!sc_value(r->w, ins->arg[1], &from) || !sc_value(r->w, ins->arg[2], &to) ||
      ins->arg[0] >= REPLAY_LOOPS)
    return r->failed = true, false;
  p->loop[ins->arg[0]] = ins->flags & INS_REVERSED ? to - 1 : from;
  p->pc = from < to ? p->pc + 1 : ins->nest + 1;
  return true;
}

static bool next_round(Replay *r, Proc *p, const Ins *end) {
  const Ins *ins = &r->k->role.at[p->role].code.at[end->nest];
  i64 from, to, *v = &p->loop[ins->arg[0]];
  if (!sc_value(r->w, ins->arg[1], &from) || !sc_value(r->w, ins->arg[2], &to))
    return r->failed = true, false;
  *v += ins->flags & INS_REVERSED ? -1 : 1;
  p->pc = *v >= from && *v < to ? end->nest + 1 : p->pc + 1;
  return true;
}

static bool branch(Replay *r, Proc *p, const Ins *ins) {
  i64 c;
  if (!sc_value(r->w, ins->arg[0], &c)) return r->failed = true, false;
  p->pc = c ? p->pc + 1 : ins->nest + 1;
  return true;
}

// One operation; false: it waits, or nothing is known of it.
static bool step(Replay *r, Proc *p) {
  const Ins *ins = &r->k->role.at[p->role].code.at[p->pc];
  const u32 ring = ins->arg[0];
  switch ((Op)ins->op) {
    case OP_FOR: return enter_loop(r, p, ins);
    case OP_ENDFOR: return next_round(r, p, ins);
    case OP_IF: return branch(r, p, ins);
    case OP_ELSE: p->pc = ins->nest; return true;
    case OP_VOTE: p->pc = ins->nest + 1; return true;  // who does it is not known
    case OP_ENDTILE: return p->done = true, true;
    case OP_ACQUIRE:
      if (!acquire(r, p, ring)) return false;
      break;
    case OP_WAIT:
      if (!wait_for(r, p, ring)) return false;
      break;
    case OP_TAKE:
      if (!take(r, p, ring)) return false;
      break;
    case OP_COMMIT: hand_on(r, &r->full[ring], p->committed[ring]++, p); break;
    case OP_RELEASE: hand_on(r, &r->empty[ring], p->released[ring]++, p); break;
    case OP_PASS: pass(r, p, ring); break;
    case OP_MMAWAIT:
    case OP_COPYWAIT: finish(r, p, ins); break;
    default: break;
  }
  touch(r, p);
  p->pc++;
  return true;
}

static void load_world(World *w, const Proc *p) {
  w->inst = p->inst;
  memcpy(w->loop, p->loop, sizeof w->loop);
}

// Lets each process go on as far as it can. False: none could.
static bool go_on(Replay *r) {
  bool moved = false;
  for (u32 i = 0; i < r->procs; i++) {
    Proc *p = &r->proc[i];
    for (;;) {
      load_world(r->w, p);
      if (p->done || r->failed || !r->steps || !step(r, p)) break;
      r->steps--;
      moved = true;
    }
  }
  return moved;
}

// ---- the tile

static void add_proc(Replay *r, u32 role, u32 inst) {
  Sc *sc = r->w->v->sc;
  u32 rings = r->k->ring.n + 1;
  Proc p = {.role = role, .inst = inst};
  p.acquired = NEWS(sc, u32, 4 * rings);
  p.committed = p.acquired + rings;
  p.waited = p.committed + rings;
  p.released = p.waited + rings;
  p.taken = NEWS(sc, u32, r->k->turn.n + 1);
  if (r->procs < MAX_PROCS) r->proc[r->procs] = p;
  r->procs++;
}

static Replay *make(World *w) {
  Sc *sc = w->v->sc;
  const Kernel *k = w->v->k;
  Replay *r = NEW(sc, Replay);
  *r = (Replay){.w = w, .k = k};
  for (u32 i = 0; i < k->role.n; i++)
    for (u32 n = 0; n < (k->role.at[i].one_tile ? 1 : k->role.at[i].instances); n++)
      add_proc(r, i, n);
  r->words = r->procs + r->procs * k->ring.n + 1;  // the last: a turn over CTAs was taken
  for (u32 i = 0; i < r->procs && i < MAX_PROCS; i++) r->proc[i].clock = NEWS(sc, u32, r->words);
  r->full = NEWS(sc, Hands, k->ring.n + 1);
  r->empty = NEWS(sc, Hands, k->ring.n + 1);
  r->passed = NEWS(sc, Hands, k->turn.n + 1);
  return r;
}

static void forget(Hands *h) { memset(h->n, 0, sizeof h->n); }

// Sets all processes to the beginning of the tile.
static void begin(Replay *r) {
  const u32 rings = r->k->ring.n, turns = r->k->turn.n;
  for (u32 i = 0; i < r->procs; i++) {
    Proc *p = &r->proc[i];
    p->pc = 0;
    p->done = false;
    memset(p->clock, 0, sizeof(u32) * r->words);
    memset(p->acquired, 0, sizeof(u32) * 4 * (rings + 1));
    memset(p->taken, 0, sizeof(u32) * (turns + 1));
  }
  for (u32 i = 0; i < rings; i++) forget(&r->full[i]), forget(&r->empty[i]);
  for (u32 i = 0; i < turns; i++) forget(&r->passed[i]);
}

bool sc_replay(World *w, const Access *a, const Access *b, Executions *out) {
  if (!w->replay) w->replay = make(w);
  Replay *r = w->replay;
  if (r->procs > MAX_PROCS) return false;
  r->a = a;
  r->b = b;
  r->out = out;
  r->steps = STEPS;
  r->failed = false;
  begin(r);
  while (!r->failed && go_on(r)) {
  }
  for (u32 i = 0; i < r->procs; i++) r->failed |= !r->proc[i].done;
  return !r->failed;
}
