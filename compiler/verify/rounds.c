// rounds.c - runs the tiles of one CTA, or cluster, one after the other, with concrete numbers. In:
// a kernel whose tiles are dealt to instances. Out: a wait that may take an older phase of a stage
// for its own, if a run has one. (A round is one use of all stages of a ring; it is a phase of each
// barrier.)
//
// The idea: a wait is safe if the waiter knows that the phase before is complete. Such knowledge
// comes from waits and turns alone, and is the same in every order in which the instances can go
// on. So one order is run, in which each barrier and each turn hands on what those knew who arrived
// at it. The arrival of a multicast copy hands on nothing of what its issuer knew. In a dynamic
// grid, the draw of a tile hands on what all knew when they began the second tile before it.
#include "compiler/verify/rounds.h"

#include <string.h>

enum { TILES = 64, STEPS = 8000, ALL_STEPS = 2000000, MANY = 1 << 20 };

typedef struct Barrier {
  u32 need;     // arrivals that end a round
  u32 arrived;  // … of the present one
  u32 over;     // rounds
  u32 *told, *arriving;
  Arrival last[2];  // that ended an even round, an odd one
} Barrier;

// An instance in one CTA of a cluster, in one of its tiles.
typedef struct Walker {
  const Process *process;
  u32 number, instance;
  u32 tile, at;
  bool begun, skips, done;
  u32 *knows;                                     // by barrier: so many rounds are over
  u32 *acquired, *committed, *waited, *released;  // by ring
  Sample s;
  Concrete c;
  Run run;
} Walker;

typedef struct Token {
  u32 at;
  u32 *told;
} Token;

typedef struct Rounds {
  Verify *v;
  const Kernel *k;
  const Protocol *p;
  Sample *s;
  VEC(Walker) walker;
  VEC(Barrier) barrier;
  u32 *first;    // by ring: its first barrier of rank 0; of each stage full, then empty
  Token *token;  // by turn and rank
  u32 begun[TILES], *told[TILES];  // by tile: walkers that have begun it, and what they knew
  u32 tiles, steps, spent;
  Mistake *mistake;
  const Barrier *of;  // the mistake's
  const Walker *who;
} Rounds;

// ---- what is there

static u32 cluster(const Rounds *r) { return r->p->ranks; }

static bool is_shared(const Rounds *r, u32 ring) { return r->k->ring.at[ring].owner == SC_NONE; }

static void add_walkers(Rounds *r, const Process *q) {
  Sc *sc = r->v->sc;
  const Role *role = &r->k->role.at[q->role];
  bool apart = sc_instances_apart(r->p, q->role);
  for (u32 i = 0; i < (apart ? 1 : role->instances); i++) {
    Walker w = {.process = q, .instance = apart ? q->instance : i};
    w.number = r->walker.n;
    w.acquired = NEWS(sc, u32, 4 * r->k->ring.n + 1);
    w.committed = w.acquired + r->k->ring.n;
    w.waited = w.committed + r->k->ring.n;
    w.released = w.waited + r->k->ring.n;
    w.knows = NEWS(sc, u32, r->barrier.n + 1);
    PUSH(sc, &r->walker, w);
  }
}

// How many arrivals a fill or drain gets. Of instances that take tiles in turn, one takes part in
// each.
static u32 parties(const Rounds *r, u32 ring, u32 rank, bool fills) {
  u32 n = 0;
  for (u32 i = 0; i < r->walker.n; i++) {
    const Walker *w = &r->walker.at[i];
    if ((fills ? w->process->fill : w->process->drain)[ring] == SC_NONE) continue;
    if (w->process->rank != rank && !r->k->ring.at[ring].multicast) continue;
    n += !r->k->role.at[w->process->role].one_tile || !w->instance;
  }
  return n;
}

static Barrier *barrier(const Rounds *r, u32 ring, u32 rank, u32 number, bool full) {
  const u32 stages = r->k->ring.at[ring].stages;
  return &r->barrier.at[r->first[ring] + 2 * (rank * stages + number % stages) + !full];
}

static void add_barriers(Rounds *r) {
  for (u32 i = 0; i < r->k->ring.n; i++) {
    r->first[i] = r->barrier.n;
    for (u32 n = 0; n < 2 * cluster(r) * r->k->ring.at[i].stages; n++)
      PUSH(r->v->sc, &r->barrier, ((Barrier){0}));
  }
  for (u32 i = 0; i < r->barrier.n; i++) {
    r->barrier.at[i].told = NEWS(r->v->sc, u32, r->barrier.n);
    r->barrier.at[i].arriving = NEWS(r->v->sc, u32, r->barrier.n);
  }
}

static void count_parties(Rounds *r) {
  for (u32 i = 0; i < r->k->ring.n; i++) {
    const u32 stages = r->k->ring.at[i].stages;
    for (u32 n = 0; n < 2 * cluster(r) * stages; n++)
      r->barrier.at[r->first[i] + n].need = parties(r, i, n / 2 / stages, n % 2 == 0);
  }
}

static Rounds *make(Verify *v, const Protocol *p, Sample *s, Mistake *mistake) {
  Rounds *r = NEW(v->sc, Rounds);
  Sc *sc = v->sc;
  *r = (Rounds){.v = v, .k = v->k, .p = p, .s = s, .mistake = mistake};
  r->first = NEWS(sc, u32, r->k->ring.n + 1);
  add_barriers(r);
  for (u32 i = 0; i < p->process.n; i++) add_walkers(r, &p->process.at[i]);
  count_parties(r);
  for (u32 i = 0; i < r->walker.n; i++) {
    Walker *w = &r->walker.at[i];
    sc_concrete_begin(&w->c, &w->run, sc, p, &w->s);
  }
  r->token = NEWS(sc, Token, r->k->turn.n * cluster(r) + 1);
  for (u32 i = 0; i < r->k->turn.n * cluster(r); i++)
    r->token[i].told = NEWS(sc, u32, r->barrier.n + 1);
  for (u32 i = 0; i < TILES; i++) r->told[i] = NEWS(sc, u32, r->barrier.n + 1);
  return r;
}

// ---- what is known

static void join(const Rounds *r, u32 *to, const u32 *from) {
  for (u32 i = 0; i < r->barrier.n; i++)
    if (to[i] < from[i]) to[i] = from[i];
}

static void forget(const Rounds *r, u32 *words) { memset(words, 0, r->barrier.n * sizeof *words); }

static Arrival arrival(const Walker *w) {
  Arrival a = {.role = w->process->role, .instance = w->instance};
  a.pc = w->process->script->step.at[w->at].pc;
  memcpy(a.axis, w->s.axis, sizeof a.axis);
  return a;
}

// told: who waits for this round will know what the walker knows.
static void arrive(Rounds *r, const Walker *w, Barrier *b, bool told) {
  if (told) join(r, b->arriving, w->knows);
  if (++b->arrived < b->need) return;
  b->last[b->over % 2] = arrival(w);
  b->arrived = 0;
  b->arriving[b - r->barrier.at] = ++b->over;
  join(r, b->told, b->arriving);
  forget(r, b->arriving);
}

// Waits for the end of a round. False: the round is not over, or the wait may take an older one for
// it.
static bool await(Rounds *r, Walker *w, Barrier *b, u32 round) {
  if (round && w->knows[b - r->barrier.at] < round) {
    if (!r->who) r->of = b, r->who = w, r->mistake->round = round - 1;
    return false;
  }
  if (b->over <= round) return false;
  join(r, w->knows, b->told);
  return true;
}

// ---- operations

// The stages of a ring are released in order, so whoever waits for one release has heard of all
// before it. Only instances that deal tiles among them release in no fixed order.
static void hear_of_releases(const Rounds *r, Walker *w, u32 ring, u32 released) {
  const u32 stages = r->k->ring.at[ring].stages;
  for (u32 i = 0; i < r->k->role.n; i++)
    if (r->k->ring.at[ring].drainers >> i & 1 && r->k->role.at[i].one_tile) return;
  for (u32 n = released; n > 0 && n + stages > released; n--) {
    const Barrier *b = barrier(r, ring, w->process->rank, n - 1, false);
    u32 *rounds = &w->knows[b - r->barrier.at], over = (n - 1) / stages + 1;
    if (*rounds < over) *rounds = over;
  }
}

static bool acquire(Rounds *r, Walker *w, u32 ring) {
  const u32 stages = r->k->ring.at[ring].stages, n = w->acquired[ring], round = n / stages;
  Barrier *empty = barrier(r, ring, w->process->rank, n, false);
  if (!w->skips && round && !await(r, w, empty, round - 1)) return false;
  if (!w->skips && round) hear_of_releases(r, w, ring, n - stages + 1);
  w->acquired[ring]++;
  return true;
}

static bool wait_for(Rounds *r, Walker *w, u32 ring) {
  const u32 n = w->waited[ring];
  Barrier *full = barrier(r, ring, w->process->rank, n, true);
  if (!w->skips && !await(r, w, full, n / r->k->ring.at[ring].stages)) return false;
  w->waited[ring]++;
  return true;
}

static void hand_on(Rounds *r, Walker *w, u32 ring, bool fills) {
  const u32 n = fills ? w->committed[ring]++ : w->released[ring]++;
  bool all = r->k->ring.at[ring].multicast;
  for (u32 rank = 0; rank < cluster(r) && !w->skips; rank++) {
    bool mine = rank == w->process->rank;
    if (mine || all) arrive(r, w, barrier(r, ring, rank, n, fills), mine || !fills);
  }
}

static bool turn(Rounds *r, Walker *w, u32 number, bool take) {
  const Turn *t = &r->k->turn.at[number];
  Token *token = &r->token[number * cluster(r) + w->process->rank];
  u32 mine = sc_members_before(r->k, t, w->process->role) + w->instance;
  if (t->axis != SC_NONE || w->skips) return true;
  if (take && token->at != mine) return false;
  if (take) join(r, w->knows, token->told);
  else {
    join(r, token->told, w->knows);
    token->at = (mine + 1) % sc_members(r->k, t);
  }
  return true;
}

static bool step(Rounds *r, Walker *w) {
  const Step *s = &w->process->script->step.at[w->at];
  if (s->kind <= STEP_RELEASE && !is_shared(r, s->ref)) return w->at++, true;
  switch ((StepKind)s->kind) {
    case STEP_ACQUIRE: return acquire(r, w, s->ref) && ++w->at;
    case STEP_WAIT: return wait_for(r, w, s->ref) && ++w->at;
    case STEP_TAKE:
    case STEP_PASS: return turn(r, w, s->ref, s->kind == STEP_TAKE) && ++w->at;
    case STEP_COMMIT:
    case STEP_RELEASE: hand_on(r, w, s->ref, s->kind == STEP_COMMIT); return ++w->at;
    case STEP_END: w->tile++; return w->begun = false, true;
    case STEP_GO: w->at = s->to; return true;
    default: break;
  }
  Answer a = w->run.ask(&w->run, (u32)(w->process - r->p->process.at), s);
  if (a == UNKNOWN) return w->done = true, false;
  w->at = a == NO ? s->to : w->at + 1;
  return true;
}

// ---- tiles

// How many units (CTAs, or clusters of them) the grid has along an axis. False: it is not known.
static bool units(Rounds *r, u32 axis, i64 *n) {
  Concrete c = {.p = r->p, .s = r->s};
  if (!sc_concrete_ctas(&c, axis, MANY, n)) return false;
  *n /= r->k->axis.at[axis].cluster;
  return true;
}

static bool count_tiles(Rounds *r) {
  i64 all = 1, n;
  for (u32 i = 0; i < r->k->axis.n; i++) {
    if (!units(r, i, &n) || r->k->axis.at[i].section) return false;
    all = n < 1 ? 0 : all * n > MANY ? MANY : all * n;
  }
  r->tiles = all < TILES ? (u32)all : TILES;
  return true;
}

// The place of the walker's tile: the first axis is the fastest.
static void place(Rounds *r, Walker *w) {
  i64 left = w->tile, n;
  for (u32 i = 0; i < r->k->axis.n; i++) {
    const Axis *x = &r->k->axis.at[i];
    units(r, i, &n);
    i64 at = left % n;
    left /= n;
    w->s.axis[i] = (x->reversed ? n - 1 - at : at) * x->cluster;
  }
}

static bool begin(Rounds *r, Walker *w) {
  const Role *role = &r->k->role.at[w->process->role];
  const u32 tile = w->tile;
  if (tile == r->tiles) return w->done = true, false;
  if (r->k->grid == GRID_DYNAMIC && tile >= 2) {
    if (r->begun[tile - 2] < r->walker.n) return false;
    join(r, w->knows, r->told[tile - 2]);
  }
  r->begun[tile]++;
  join(r, r->told[tile], w->knows);
  place(r, w);
  w->skips = role->one_tile && tile % role->instances != w->instance;
  w->at = 0;
  return w->begun = true;
}

static bool go_on(Rounds *r) {
  bool moved = false;
  for (u32 i = 0; i < r->walker.n; i++) {
    Walker *w = &r->walker.at[i];
    while (r->steps && !w->done && w != r->who && (w->begun ? step(r, w) : begin(r, w))) {
      r->steps--;
      r->spent++;
      moved = true;
    }
  }
  return moved;
}

static void start(Rounds *r) {
  for (u32 i = 0; i < r->walker.n; i++) {
    Walker *w = &r->walker.at[i];
    w->s = *r->s;
    w->tile = 0;
    w->begun = w->done = false;
    forget(r, w->knows);
    memset(w->acquired, 0, 4 * r->k->ring.n * sizeof *w->acquired);
  }
  for (u32 i = 0; i < r->barrier.n; i++) {
    Barrier *b = &r->barrier.at[i];
    b->over = b->arrived = 0;
    forget(r, b->told);
    forget(r, b->arriving);
  }
  for (u32 i = 0; i < r->k->turn.n * cluster(r); i++) {
    r->token[i].at = 0;
    forget(r, r->token[i].told);
  }
  for (u32 i = 0; i < TILES; i++) {
    r->begun[i] = 0;
    forget(r, r->told[i]);
  }
  r->who = NULL;
  r->steps = STEPS;
}

// ---- a mistake

static bool is_mistaken(void *user) {
  Rounds *r = user;
  Mistake *m = r->mistake;
  if ((r->spent > ALL_STEPS && !m->found) || !count_tiles(r)) return false;
  start(r);
  while (go_on(r)) {
  }
  if (!r->who) return false;
  m->found = true;
  m->waits = arrival(r->who);
  m->ring = r->who->process->script->step.at[r->who->at].ref;
  m->ended = r->of->over > m->round;
  m->ends = r->of->last[m->round % 2];
  m->stage = (u32)(r->of - r->barrier.at - r->first[m->ring]) / 2 % r->k->ring.at[m->ring].stages;
  memcpy(r->s->axis, m->waits.axis, sizeof m->waits.axis);
  return true;
}

bool sc_find_mistake(Verify *v, const Protocol *p, Sample *s, Mistake *m) {
  Rounds *r = make(v, p, s, m);
  s->sms = 1;
  *m = (Mistake){0};
  return sc_search(v, p, s, is_mistaken, r);
}
