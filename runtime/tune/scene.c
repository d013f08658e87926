// scene.c - a timeline before its first event: the agents, rings and turns of its CTAs.
#include "compiler/passes.h"
#include "runtime/tune/engine.h"

u32 sc_agents(const Kernel *k) {
  u32 n = 0;
  for (u32 r = 0; r < k->role.n; r++) n += k->role.at[r].instances;
  return n;
}

// The instances of these roles that take part in each fill or drain of the ring.
static u32 takers(const Kernel *k, u16 roles, u32 ring) {
  u32 n = 0;
  for (u32 r = 0; r < k->role.n; r++) n += roles >> r & 1 ? sc_takers(k, r, ring) : 0;
  return n;
}

static u32 *counters(Timeline *t, u32 n) {
  u32 *at = t->count + t->counts;
  t->counts += n;
  return at;
}

static u32 counters_wanted(const Timeline *t) {
  const Kernel *k = t->k;
  u32 n = t->agents * (1 + k->turn.n + 3 * k->ring.n) + t->scene->ctas * k->turn.n;
  for (u32 r = 0; r < k->ring.n; r++)
    n += 2 * t->scene->ctas * sc_ring_copies(k, &k->ring.at[r]) * k->ring.at[r].stages;
  return n;
}

static void open_queues(Timeline *t) {
  const Kernel *k = t->k;
  t->first_queue = NEWS(t->sc, u32, k->ring.n + 1);
  for (u32 r = 0; r < k->ring.n; r++) {
    t->first_queue[r] = t->queues_of_cta;
    t->queues_of_cta += sc_ring_copies(k, &k->ring.at[r]);
  }
  t->queues = t->queues_of_cta * t->scene->ctas;
  t->queue = NEWS(t->sc, Queue, t->queues + 1);
  for (u32 c = 0; c < t->scene->ctas; c++) {
    for (u32 r = 0; r < k->ring.n; r++) {
      const Ring *ring = &k->ring.at[r];
      bool all = ring->multicast && t->scene->cluster;
      for (u32 i = 0; i < sc_ring_copies(k, ring); i++) {
        Queue *q = &t->queue[c * t->queues_of_cta + t->first_queue[r] + i];
        *q = (Queue){.stages = ring->stages,
                     .fills = takers(k, ring->fillers, r),
                     .drains = takers(k, ring->drainers, r) * (all ? t->scene->ctas : 1),
                     .full = counters(t, ring->stages),
                     .empty = counters(t, ring->stages),
                     .commits = NEWS(t->sc, u32, ring->stages),
                     .releases = NEWS(t->sc, u32, ring->stages),
                     .missing = NEWS(t->sc, double, ring->stages)};
      }
    }
  }
}

static void open_agents(Timeline *t) {
  const Kernel *k = t->k;
  t->agent = NEWS(t->sc, Agent, t->agents);
  Agent *a = t->agent;
  for (u32 c = 0; c < t->scene->ctas; c++) {
    t->cta[c] =
        (Cta){.passed = counters(t, k->turn.n), .drawn = t->drawer == SC_NONE ? UINT32_MAX : 1};
    for (u32 r = 0; r < k->role.n; r++) {
      for (u32 i = 0; i < k->role.at[r].instances; i++, a++) {
        *a = (Agent){.role = r, .inst = i, .cta = c};
        a->at = counters(t, 1);
        a->taken = counters(t, k->turn.n);
        a->filled = counters(t, k->ring.n);
        a->waited = counters(t, k->ring.n);
        a->released = counters(t, k->ring.n);
        sc_enter_tile(t, a);
      }
    }
  }
}

// Of each tile the agent with the longest way, of those whose tile it is.
static void find_anchors(Timeline *t) {
  t->anchor = NEWS(t->sc, u32, t->scene->tiles);
  for (u32 tile = 0; tile < t->scene->tiles; tile++) {
    u32 longest = 0;
    for (u32 i = 0; i < t->agents; i++) {
      const Role *r = &t->k->role.at[t->agent[i].role];
      const Trace *trace = &t->scene->trace[tile * t->agents + i];
      if (!sc_owns(r, tile, t->agent[i].inst)) continue;
      if (trace->n <= longest) continue;
      longest = trace->n;
      t->anchor[tile] = i;
    }
  }
}

static void count_members(Timeline *t) {
  t->members = NEWS(t->sc, u32, t->k->turn.n + 1);
  for (u32 u = 0; u < t->k->turn.n; u++) t->members[u] = sc_members(t->k, &t->k->turn.at[u]);
}

Timeline *sc_open_timeline(Sc *sc, const Scene *scene) {
  Timeline *t = NEW(sc, Timeline);
  *t = (Timeline){.sc = sc, .scene = scene, .k = scene->k, .m = scene->machine};
  t->of_cta = sc_agents(t->k);
  t->agents = t->of_cta * scene->ctas;
  t->drawer = t->k->grid == GRID_DYNAMIC ? sc_drawer(t->k) : SC_NONE;
  t->idle.alone = 1;
  t->news = 1;
  t->count = NEWS(sc, u32, counters_wanted(t));
  t->sum = NEWS(sc, double, SUMS);
  t->end = NEWS(sc, double, scene->tiles);
  t->ended = NEWS(sc, u32, scene->tiles);
  t->cta = NEWS(sc, Cta, scene->ctas);
  t->period = sc_period(t);
  for (u32 i = 0; i < SC_MAX_CTAS; i++) t->served[i] = NOBODY;
  count_members(t);
  open_queues(t);
  open_agents(t);
  find_anchors(t);
  return t;
}
