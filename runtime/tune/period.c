// period.c - the steady state of long loops. In: the state of a timeline each time its anchor, the
// agent with the longest way, ends a round. If all is as it was some rounds ago, but for places and
// counts, and if all agents are about to do what they have done since, what follows is known: the
// timeline goes on by as many such periods as there are. Out: the same state, later.
#include "runtime/tune/engine.h"

#include <string.h>

enum { KEPT = 8 };
#define SAME 2  // cycles that times may differ by

// The state at the end of a round.
typedef struct Round {
  u32 tile, place;
  double now;
  u32 *count, *tiles;
  double *sum;
  i64 *state;    // what must be equal
  double *left;  // times that must be nearly equal
  u32 states, lefts;
} Round;

struct Period {
  Round round[KEPT];  // the last ones; the oldest is written over
  u32 rounds;
  u32 room;
};

static u32 state_room(const Timeline *t) {
  u32 n =
      SC_MAX_CTAS + t->agents * (8 + MAX_QUEUED + t->k->turn.n + 3 * t->k->ring.n) + 2 * MAX_COPIES;
  for (u32 i = 0; i < t->queues; i++) n += 2 + 5 * t->queue[i].stages;
  return n + 4 * MAX_COPIES * t->scene->ctas;
}

struct Period *sc_period(Timeline *t) {
  return NEW(t->sc, struct Period);
}

static void put(Round *r, i64 v) { r->state[r->states++] = v; }
static void put_left(Round *r, double v) { r->left[r->lefts++] = v; }

static i64 total(const u32 *at, u32 n) {
  i64 all = 0;
  for (u32 i = 0; i < n; i++) all += at[i];
  return all;
}

static void put_queue(Round *r, const Queue *q) {
  put(r, total(q->empty, q->stages) % q->stages);
  for (u32 s = 0; s < q->stages; s++) {
    put(r, (i64)q->full[s] - (i64)q->empty[s]);
    put(r, q->commits[s]);
    put(r, q->releases[s]);
    put_left(r, q->missing[s]);
  }
}

// Is it one of a role whose tiles are dealt, and does it wait while another's tile is worked on?
static bool stands_by(const Timeline *t, const Round *r, const Agent *a) {
  return t->k->role.at[a->role].one_tile && a->tile != r->tile && a->doing == DOING_NEXT;
}

// How far an agent is before or behind a ring.
static void put_place(const Timeline *t, Round *r, const Agent *a, u32 ring) {
  const Ring *of = &t->k->ring.at[ring];
  if (stands_by(t, r, a)) return;
  const Queue *q = sc_queue_of(t, a, ring);
  if (of->fillers >> a->role & 1) put(r, a->filled[ring] - total(q->empty, q->stages));
  if (!(of->drainers >> a->role & 1)) return;
  put(r, a->waited[ring] - total(q->full, q->stages));
  put(r, a->released[ring] - total(q->empty, q->stages));
}

static void put_agent(const Timeline *t, Round *r, const Agent *a) {
  const Trace *trace = sc_trace_of(t, a);
  put(r, a->doing == DOING_END ? -1 : (i64)a->tile);
  if (a->doing == DOING_END) return;
  put(r, *a->at < trace->n ? (i64)trace->at[*a->at] : -1);
  put(r, a->doing);
  put(r, a->drew);
  put(r, a->out);
  put_left(r, a->doing == DOING_JOB || a->doing == DOING_DRAW ? a->job.left : 0);
  put(r, a->products);
  for (u32 i = 0; i < a->products; i++) put_left(r, a->product[i].left);
  for (u32 u = 0; u < t->k->turn.n; u++)
    if (sc_is_member(&t->k->turn.at[u], a->role))
      put(r, (i64)t->cta[a->cta].passed[u] - (i64)a->taken[u] * t->members[u]);
  for (u32 i = 0; i < t->k->ring.n; i++) put_place(t, r, a, i);
}

static void put_line(Round *r, const Line *line) {
  put(r, line->n);
  for (u32 i = 0; i < line->n; i++) {
    put_left(r, line->at[i].latency > 0 ? line->at[i].latency : 0);
    put_left(r, line->at[i].job.left);
    put(r, line->at[i].stage);
  }
}

static void look(const Timeline *t, Round *r, const Agent *anchor) {
  r->tile = anchor->tile;
  r->place = sc_trace_of(t, anchor)->at[*anchor->at];
  r->now = t->now;
  memcpy(r->count, t->count, t->counts * sizeof *t->count);
  memcpy(r->sum, t->sum, SUMS * sizeof *t->sum);
  for (u32 i = 0; i < t->agents; i++) r->tiles[i] = t->agent[i].tile;
  r->states = r->lefts = 0;
  for (u32 i = 0; i < t->agents; i++) put_agent(t, r, &t->agent[i]);
  for (u32 i = 0; i < t->queues; i++) put_queue(r, &t->queue[i]);
  for (u32 i = 0; i < t->scene->ctas; i++) {
    put_line(r, &t->cta[i].in);
    put_line(r, &t->cta[i].out);
  }
  for (u32 i = 0; i < COUNT(t->served); i++) put(r, t->served[i]);
  for (u32 i = 0; i < t->lates; i++) put_left(r, t->late[i].latency);
}

static bool alike(const Timeline *t, const Round *a, const Round *b) {
  if (a->tile != b->tile || a->place != b->place) return false;
  if (a->states != b->states || a->lefts != b->lefts) return false;
  if (memcmp(a->tiles, b->tiles, t->agents * sizeof *a->tiles)) return false;
  if (memcmp(a->state, b->state, a->states * sizeof *a->state)) return false;
  for (u32 i = 0; i < a->lefts; i++) {
    double apart = a->left[i] - b->left[i];
    if (apart > SAME || apart < -SAME) return false;
  }
  return true;
}

// What an agent waits for that stands by comes nearer with each round, unless it is its turn.
static bool waits_for_ring(const Timeline *t, const Agent *a) {
  const Trace *trace = sc_trace_of(t, a);
  if (*a->at >= trace->n) return true;
  u8 op = t->k->role.at[a->role].code.at[trace->at[*a->at]].op;
  return op == OP_WAIT || op == OP_ACQUIRE;
}

// How often all agents will do again what they have done since then.
static u32 repeats(const Timeline *t, const Round *then) {
  u32 least = UINT32_MAX;
  for (u32 i = 0; i < t->agents; i++) {
    const Agent *a = &t->agent[i];
    const Trace *trace = sc_trace_of(t, a);
    u32 at = *a->at, was = then->count[a->at - t->count], step = at - was, same = 0;
    if (stands_by(t, then, a) && waits_for_ring(t, a)) return 0;
    if (a->doing == DOING_END || !step) continue;
    while (at + same < trace->n && trace->at[at + same] == trace->at[was + same]) same++;
    if (same / step < least) least = same / step;
  }
  return least == UINT32_MAX ? 0 : least;
}

static void go_on(Timeline *t, const Round *then, u32 times) {
  for (u32 i = 0; i < t->counts; i++) t->count[i] += times * (t->count[i] - then->count[i]);
  for (u32 i = 0; i < SUMS; i++) t->sum[i] += times * (t->sum[i] - then->sum[i]);
  t->now += times * (t->now - then->now);
}

static void make_room(const Timeline *t, Round *r) {
  if (r->count) return;
  r->count = NEWS(t->sc, u32, t->counts);
  r->tiles = NEWS(t->sc, u32, t->agents);
  r->sum = NEWS(t->sc, double, SUMS);
  r->state = NEWS(t->sc, i64, state_room(t));
  r->left = NEWS(t->sc, double, state_room(t));
}

void sc_round_ends(Timeline *t, const Agent *a) {
  struct Period *p = t->period;
  Round *r = &p->round[p->rounds % KEPT];
  make_room(t, r);
  look(t, r, a);
  u32 kept = p->rounds < KEPT - 1 ? p->rounds : KEPT - 1;
  p->rounds++;
  for (u32 back = 1; back <= kept; back++) {
    const Round *then = &p->round[(p->rounds - 1 - back) % KEPT];
    u32 times = alike(t, r, then) ? repeats(t, then) : 0;
    if (times < 2) continue;
    go_on(t, then, times - 1);
    p->rounds = 0;
    return;
  }
}
