// engine.h - shared by the parts of the timeline: the state of a multiprocessor, or of those of a
// cluster, while roles run on it.
#ifndef SC_ENGINE_H
#define SC_ENGINE_H

#include "runtime/tune/timeline.h"

// MAX_QUEUED: products of an agent that are issued and not yet done. An agent goes on from one only
// when no more than `wgmma_queue` of their instructions are left: 2 by SCHEDC_MACHINE_INIT, so 16
// is enough. If a caller's machine has a far longer queue, the next product waits.
enum { MAX_QUEUED = 16, MAX_COPIES = 32 };

// Something that takes time: cost.alone cycles, or more while others need the same pipes.
typedef struct Job {
  const Cost *cost;  // NULL: only a latency
  double left;       // cycles, at full speed
  double rate;
} Job;

typedef enum Doing {
  DOING_NEXT,   // the next operation, as soon as it may
  DOING_JOB,    // one that takes time
  DOING_DRAW,   // the draw of a tile
  DOING_ISSUE,  // a product whose last instructions are not yet with the tensor cores
  DOING_END
} Doing;

// An instance of a role. What only ever grows is counted in Timeline.count.
typedef struct Agent {
  u32 role, inst, cta;
  u32 tile;
  u32 draw_at;  // in this tile, the place before which the next one is drawn
  bool drew;
  Doing doing;
  u32 seen;  // the news when it last found that it must wait
  Job job;
  Job product[MAX_QUEUED];  // in flight, oldest first; the first is with the tensor cores
  u32 products;
  double since;                     // when its products began to wait for the tensor cores
  u32 out;                          // copies that leave and have not read their stage
  u32 *at;                          // place in the tile's trace
  u32 *taken;                       // by turn
  u32 *filled, *waited, *released;  // by ring
} Agent;

// A ring of a CTA, or of an instance if it is private.
typedef struct Queue {
  u32 stages;
  u32 fills, drains;        // commits and releases that complete a stage
  u32 *full, *empty;        // by stage: how often
  u32 *commits, *releases;  // of the present fill and drain
  double *missing;          // bytes that have been announced and not landed
} Queue;

// A copy on its way: first a latency, then its bytes, after those of the copies before it.
typedef struct Copy {
  double latency;
  Cost cost;
  Job job;
  Agent *from;       // copies that leave
  u32 queue, stage;  // of its CTA
  bool multicast;
  double bytes;
} Copy;

typedef struct Line {
  Copy at[MAX_COPIES];  // oldest first
  u32 n;
} Line;

// An arrival that is on its way to another CTA of the cluster.
typedef struct Arrival {
  double latency;
  u32 queue, stage;
} Arrival;

typedef struct Cta {
  Line in, out;
  u32 *passed;  // by turn
  u32 drawn;    // tiles that roles know of
} Cta;

enum { NOBODY = SC_MAX_AGENTS };

typedef struct Timeline {
  Sc *sc;
  const Scene *scene;
  const Kernel *k;
  const schedc_machine *m;
  Agent *agent;
  u32 agents, of_cta;  // in all, of a CTA
  Cta *cta;
  Queue *queue;
  u32 queues, queues_of_cta;
  u32 *first_queue;  // by ring: in its CTA
  u32 *members;      // by turn: of instances
  Arrival late[MAX_COPIES];
  u32 lates;
  u32 served[SC_MAX_CTAS];  // by multiprocessor: the agent whose products the tensor cores are at
  Cost idle;                // of what needs no pipe
  u32 *anchor;              // by tile: the agent whose rounds are looked at
  u32 drawer;               // the role that draws tiles; SC_NONE: none does
  u32 news;                 // how often something happened that agents wait for
  double now;
  double *end;  // by tile
  u32 *ended;   // by tile: agents that are through with it
  // what only grows in a round: places and counts; sums of use
  u32 *count;
  u32 counts;
  double *sum;  // by pipe, then instructions, then bytes
  struct Period *period;
} Timeline;
enum { SUM_BYTES = PIPE_COUNT, SUMS };

static inline const Trace *sc_trace_of(const Timeline *t, const Agent *a) {
  u32 n = (u32)(a - t->agent);
  return &t->scene->trace[a->tile * t->agents + n];
}

static inline Queue *sc_queue_of(const Timeline *t, const Agent *a, u32 ring) {
  bool own = t->k->ring.at[ring].owner != SC_NONE;
  return &t->queue[a->cta * t->queues_of_cta + t->first_queue[ring] + (own ? a->inst : 0)];
}

// scene.c
Timeline *sc_open_timeline(Sc *sc, const Scene *scene);

// act.c: lets an agent do what it can now. False: nothing.
bool sc_act(Timeline *t, Agent *a);
// cycles of its products that must pass before all of their instructions are issued
double sc_backlog(const Timeline *t, const Agent *a);
void sc_enter_tile(const Timeline *t, Agent *a);
// a copy has landed; a stage has been released
void sc_copy_lands(Timeline *t, u32 cta, const Copy *c);
void sc_released(Timeline *t, u32 queue, u32 stage);

// period.c
struct Period *sc_period(Timeline *t);
// The anchor of a tile ends a round: looks whether all is as it was some rounds ago, and if so goes
// on by as many such periods as all traces have.
void sc_round_ends(Timeline *t, const Agent *a);

#endif
