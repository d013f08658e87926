// timeline.c - some tiles in a row on a multiprocessor, or a cluster of them: a discrete-event
// simulation of its roles. In: the operations of each role instance in each tile, and what they
// cost. Out: when each tile ends, and how much of each pipe was used. Between two events every job
// goes on at a rate; where jobs want more of a pipe than there is, all who use it slow down alike.
// Doubles are added, multiplied and divided only: the same on all machines.
#include "runtime/tune/engine.h"

#include <string.h>

#define NEAR 1e-6  // cycles: what is left of a job that has ended
#define NEVER 1e30

// ---- jobs

typedef struct Active {
  Job *job;
  u32 sm;
} Active;

typedef struct Jobs {
  Active at[2 * SC_MAX_AGENTS + 2 * SC_MAX_CTAS];
  u32 n;
} Jobs;

static void add_job(Jobs *jobs, Job *job, u32 sm) {
  job->rate = 1;
  jobs->at[jobs->n++] = (Active){job, sm};
}

static u32 sms_of(const Timeline *t) { return t->scene->cluster ? t->scene->ctas : 1; }
static u32 sm_of(const Timeline *t, const Agent *a) { return t->scene->cluster ? a->cta : 0; }

// Tensor cores stay with a warpgroup while it has products for them, and then turn to the one that
// has waited longest: products of two do not mix.
static void find_served(Timeline *t) {
  for (u32 sm = 0; sm < sms_of(t); sm++) {
    if (t->served[sm] != NOBODY && t->agent[t->served[sm]].products) continue;
    t->served[sm] = NOBODY;
    for (u32 i = 0; i < t->agents; i++) {
      const Agent *a = &t->agent[i];
      if (!a->products || sm_of(t, a) != sm) continue;
      if (t->served[sm] == NOBODY || a->since < t->agent[t->served[sm]].since) t->served[sm] = i;
    }
  }
}

static void find_jobs(Timeline *t, Jobs *jobs) {
  jobs->n = 0;
  find_served(t);
  for (u32 i = 0; i < t->agents; i++) {
    Agent *a = &t->agent[i];
    u32 sm = sm_of(t, a);
    if (a->doing == DOING_JOB || a->doing == DOING_DRAW) add_job(jobs, &a->job, sm);
    if (t->served[sm] == i) add_job(jobs, &a->product[0], sm);
  }
  for (u32 i = 0; i < t->scene->ctas; i++) {
    Cta *c = &t->cta[i];
    u32 sm = t->scene->cluster ? i : 0;
    if (c->in.n && c->in.at[0].latency <= NEAR) add_job(jobs, &c->in.at[0].job, sm);
    if (c->out.n && c->out.at[0].latency <= NEAR) add_job(jobs, &c->out.at[0].job, sm);
  }
}

// A pipe of which more is wanted than there is slows all who use it.
static void share_pipe(Jobs *jobs, Pipe pipe, u32 sm) {
  double load = 0;
  for (u32 i = 0; i < jobs->n; i++) {
    const Job *j = jobs->at[i].job;
    if (jobs->at[i].sm == sm) load += j->cost->use[pipe] * j->rate / j->cost->alone;
  }
  if (load <= 1) return;
  for (u32 i = 0; i < jobs->n; i++) {
    Job *j = jobs->at[i].job;
    if (jobs->at[i].sm == sm && j->cost->use[pipe] > 0) j->rate /= load;
  }
}

// Tensor cores take their accumulators from the registers and put them back, which instructions of
// the same quarter wait for.
static void give_way(const Timeline *t, const Active *a) {
  const double *use = a->job->cost->use;
  bool instructions = use[PIPE_ISSUE] > 0 && use[PIPE_TENSOR] <= 0;
  if (instructions && t->served[a->sm] != NOBODY) a->job->rate = 1 - t->m->tensor_ports;
}

static void find_rates(const Timeline *t, Jobs *jobs) {
  static const Pipe order[] = {PIPE_TENSOR, PIPE_MUFU,   PIPE_ALU, PIPE_FMA,
                               PIPE_ISSUE,  PIPE_SHARED, PIPE_LINK};
  for (u32 i = 0; i < jobs->n; i++) give_way(t, &jobs->at[i]);
  for (u32 p = 0; p < COUNT(order); p++)
    for (u32 sm = 0; sm < sms_of(t); sm++) share_pipe(jobs, order[p], sm);
}

// ---- time

static void sooner(double *least, double when) {
  if (when < *least) *least = when;
}

static double line_next(const Line *line) {
  double least = NEVER;
  for (u32 i = 0; i < line->n; i++)
    if (line->at[i].latency > NEAR) sooner(&least, line->at[i].latency);
  return least;
}

// How long until something ends.
static double next_event(const Timeline *t, const Jobs *jobs) {
  double least = NEVER;
  for (u32 i = 0; i < jobs->n; i++) sooner(&least, jobs->at[i].job->left / jobs->at[i].job->rate);
  for (u32 i = 0; i < t->agents; i++) {
    const Agent *a = &t->agent[i];
    if (a->doing == DOING_ISSUE && t->served[sm_of(t, a)] == i)
      sooner(&least, sc_backlog(t, a) / a->product[0].rate);
  }
  for (u32 i = 0; i < t->scene->ctas; i++) {
    sooner(&least, line_next(&t->cta[i].in));
    sooner(&least, line_next(&t->cta[i].out));
  }
  for (u32 i = 0; i < t->lates; i++) sooner(&least, t->late[i].latency);
  return least;
}

static void pass_line(Line *line, double dt) {
  for (u32 i = 0; i < line->n; i++) line->at[i].latency -= dt;
}

static void pass_time(Timeline *t, Jobs *jobs, double dt) {
  for (u32 i = 0; i < jobs->n; i++) jobs->at[i].job->left -= jobs->at[i].job->rate * dt;
  for (u32 i = 0; i < t->scene->ctas; i++) {
    pass_line(&t->cta[i].in, dt);
    pass_line(&t->cta[i].out, dt);
  }
  for (u32 i = 0; i < t->lates; i++) t->late[i].latency -= dt;
  t->now += dt;
}

// ---- what ends by itself

static bool line_ends(Line *line) {
  if (!line->n || line->at[0].latency > NEAR || line->at[0].job.left > NEAR) return false;
  return true;
}

static void drop_first(Line *line) {
  line->n--;
  memmove(line->at, line->at + 1, line->n * sizeof *line->at);
  for (u32 i = 0; i < line->n; i++) line->at[i].job.cost = &line->at[i].cost;
}

static bool end_copies(Timeline *t) {
  bool any = false;
  for (u32 i = 0; i < t->scene->ctas; i++) {
    Cta *c = &t->cta[i];
    if (line_ends(&c->in)) {
      sc_copy_lands(t, i, &c->in.at[0]);
      drop_first(&c->in);
      any = true;
    }
    if (line_ends(&c->out)) {
      c->out.at[0].from->out--;
      drop_first(&c->out);
      any = true;
    }
  }
  return any;
}

static bool end_products(Timeline *t) {
  bool any = false;
  for (u32 i = 0; i < t->agents; i++) {
    Agent *a = &t->agent[i];
    if (!a->products || a->product[0].left > NEAR) continue;
    a->products--;
    memmove(a->product, a->product + 1, a->products * sizeof *a->product);
    any = true;
  }
  return any;
}

static bool end_arrivals(Timeline *t) {
  u32 kept = 0, had = t->lates;
  for (u32 i = 0; i < had; i++) {
    if (t->late[i].latency > NEAR) t->late[kept++] = t->late[i];
    else sc_released(t, t->late[i].queue, t->late[i].stage);
  }
  t->lates = kept;
  return kept < had;
}

// All that can happen now.
static void settle(Timeline *t) {
  for (bool any = true; any;) {
    any = end_copies(t);
    any |= end_products(t);
    any |= end_arrivals(t);
    for (u32 i = 0; i < t->agents; i++)
      while (sc_act(t, &t->agent[i])) any = true;
  }
}

Ran sc_timeline(Sc *sc, const Scene *scene) {
  Timeline *t = sc_open_timeline(sc, scene);
  Jobs jobs;
  for (;;) {
    settle(t);
    find_jobs(t, &jobs);
    find_rates(t, &jobs);
    double dt = next_event(t, &jobs);
    if (dt >= NEVER) break;
    pass_time(t, &jobs, dt);
  }
  Ran ran = {.end = t->end, .finished = t->ended[scene->tiles - 1] == t->agents};
  for (u32 p = 0; p < PIPE_COUNT; p++) ran.busy[p] = t->sum[p];
  ran.bytes = t->sum[SUM_BYTES];
  return ran;
}
