// timeline.c - some tiles in a row on a multiprocessor, or a cluster of them: a discrete-event
// simulation of its roles. In: the operations of each role instance in each tile, and what they
// cost. Out: when each tile ends, and how much of each pipe was used. Between two events every job
// goes on at a rate; where jobs want more of a pipe than there is, all who use it slow down alike.
// Doubles are added, multiplied and divided only: the same on all machines.
#include "runtime/tune/engine.h"

#include <string.h>

#define NEAR 1e-6  // cycles: what is left of a job that has ended
#define NEVER 1e30
#define LEAST 0.05  // of a pipe, what products leave to others

// ---- jobs

typedef struct Jobs {
  Job *at[2 * SC_MAX_AGENTS + 2 * SC_MAX_CTAS];
  u32 n;
} Jobs;

static bool is_product(const Job *job) { return job->cost->pipes >> PIPE_TENSOR & 1; }

static void add_job(Jobs *jobs, Job *job, bool behind_tensor, const schedc_machine *m) {
  bool instructions = job->cost->pipes >> PIPE_ISSUE & 1 && !is_product(job);
  job->rate = behind_tensor && instructions ? 1 - m->tensor_ports : 1;
  jobs->at[jobs->n++] = job;
}

// Tensor cores stay with a warpgroup while it has products for them, and then turn to the one that
// has waited longest: products of two do not mix. The multiprocessor has the agents [from, to).
static void find_served(Timeline *t, u32 sm, u32 from, u32 to) {
  t->served[sm] = NOBODY;
  for (u32 i = from; i < to; i++) {
    const Agent *a = &t->agent[i];
    if (!a->products) continue;
    if (t->served[sm] == NOBODY || a->since < t->agent[t->served[sm]].since) t->served[sm] = i;
  }
}

// A pipe of which more is wanted than there is slows all who use it, but a product, which takes its
// operands from shared memory before others are served.
static void share_pipe(Jobs *jobs, u32 first, Pipe pipe) {
  double load = 0, there = 1;
  for (u32 i = first; i < jobs->n; i++) {
    const Job *job = jobs->at[i];
    *(is_product(job) ? &there : &load) +=
        (is_product(job) ? -1 : 1) * job->cost->share[pipe] * job->rate;
  }
  if (there < LEAST) there = LEAST;
  if (load <= there) return;
  for (u32 i = first; i < jobs->n; i++) {
    Job *job = jobs->at[i];
    if (!is_product(job) && job->cost->pipes >> pipe & 1) job->rate *= there / load;
  }
}

static void find_rates(Jobs *jobs, u32 first) {
  static const Pipe order[] = {PIPE_TENSOR, PIPE_MUFU,   PIPE_ALU, PIPE_FMA,
                               PIPE_ISSUE,  PIPE_SHARED, PIPE_LINK};
  u32 pipes = 0, twice = 0;  // that somebody uses, that several do
  for (u32 i = first; i < jobs->n; i++) {
    twice |= pipes & jobs->at[i]->cost->pipes;
    pipes |= jobs->at[i]->cost->pipes;
  }
  for (u32 p = 0; p < COUNT(order); p++)
    if (twice >> order[p] & 1) share_pipe(jobs, first, order[p]);
}

// All that goes on on a multiprocessor, which has the CTAs [from, to).
static void find_jobs(Timeline *t, Jobs *jobs, u32 sm, u32 from, u32 to) {
  u32 first = jobs->n;
  find_served(t, sm, from * t->of_cta, to * t->of_cta);
  bool busy = t->served[sm] != NOBODY;
  for (u32 i = from * t->of_cta; i < to * t->of_cta; i++) {
    Agent *a = &t->agent[i];
    if (a->doing == DOING_JOB || a->doing == DOING_DRAW) add_job(jobs, &a->job, busy, t->m);
  }
  if (busy) add_job(jobs, &t->agent[t->served[sm]].product[0], false, t->m);
  for (u32 i = from; i < to; i++) {
    Cta *c = &t->cta[i];
    if (c->in.n && c->in.at[0].latency <= NEAR) add_job(jobs, &c->in.at[0].job, false, t->m);
    if (c->out.n && c->out.at[0].latency <= NEAR) add_job(jobs, &c->out.at[0].job, false, t->m);
  }
  find_rates(jobs, first);
}

static void find_all_jobs(Timeline *t, Jobs *jobs) {
  jobs->n = 0;
  u32 ctas = t->scene->ctas;
  if (!t->scene->cluster) find_jobs(t, jobs, 0, 0, ctas);
  for (u32 i = 0; t->scene->cluster && i < ctas; i++) find_jobs(t, jobs, i, i, i + 1);
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
  for (u32 i = 0; i < jobs->n; i++) sooner(&least, jobs->at[i]->left / jobs->at[i]->rate);
  for (u32 i = 0; i < t->agents; i++) {
    const Agent *a = &t->agent[i];
    if (a->doing == DOING_ISSUE && t->served[t->scene->cluster ? a->cta : 0] == i)
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
  for (u32 i = 0; i < jobs->n; i++) jobs->at[i]->left -= jobs->at[i]->rate * dt;
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
      t->news++;
      any = true;
    }
    if (line_ends(&c->out)) {
      c->out.at[0].from->out--;
      drop_first(&c->out);
      t->news++;
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
    t->news++;
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
      while (t->agent[i].job.left <= NEAR && sc_act(t, &t->agent[i])) any = true;
  }
}

Ran sc_timeline(Sc *sc, const Scene *scene) {
  Timeline *t = sc_open_timeline(sc, scene);
  Jobs jobs;
  for (;;) {
    settle(t);
    find_all_jobs(t, &jobs);
    double dt = next_event(t, &jobs);
    if (dt >= NEVER) break;
    pass_time(t, &jobs, dt);
  }
  Ran ran = {.end = t->end, .finished = t->ended[scene->tiles - 1] == t->agents};
  for (u32 p = 0; p < PIPE_COUNT; p++) ran.busy[p] = t->sum[p];
  ran.bytes = t->sum[SUM_BYTES];
  return ran;
}
