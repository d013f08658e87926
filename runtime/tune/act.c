// act.c - what operations of a role do to a timeline: what they wait for, what they take, and what
// they change when that is over. Rings are counted as their mbarriers do: a stage is full once all
// have committed it and its bytes have landed, and empty once all have released it.
#include "runtime/tune/engine.h"

#include <string.h>

#define NEAR 1e-6  // cycles: what is left of a job that has ended

static const Ins *ins_of(const Timeline *t, const Agent *a) {
  return &t->k->role.at[a->role].code.at[sc_trace_of(t, a)->at[*a->at]];
}

static const Cost *cost_of(const Timeline *t, const Agent *a) {
  return &t->scene->cost[a->role][sc_trace_of(t, a)->at[*a->at]];
}

// ---- rings

static void fill_ends(Timeline *t, Queue *q, u32 stage) {
  if (q->commits[stage] < q->fills || q->missing[stage] > 0.5) return;
  q->commits[stage] = 0;
  q->full[stage]++;
  t->news++;
}

void sc_released(Timeline *t, u32 queue, u32 stage) {
  Queue *q = &t->queue[queue];
  if (++q->releases[stage] < q->drains) return;
  q->releases[stage] = 0;
  q->empty[stage]++;
  t->news++;
}

// Each CTA of a cluster brings a share of a multicast copy to all of them.
void sc_copy_lands(Timeline *t, u32 cta, const Copy *c) {
  u32 ctas = c->multicast ? t->scene->ctas : 1;
  for (u32 i = 0; i < ctas; i++) {
    u32 to = c->multicast ? i : cta;
    Queue *q = &t->queue[to * t->queues_of_cta + c->queue];
    q->missing[c->stage] -= c->bytes / ctas;
    fill_ends(t, q, c->stage);
  }
}

static void release(Timeline *t, Agent *a, u32 ring) {
  Queue *q = sc_queue_of(t, a, ring);
  u32 stage = a->released[ring]++ % q->stages, own = (u32)(q - t->queue);
  bool others = t->k->ring.at[ring].multicast && t->scene->cluster;
  for (u32 c = 0; c < (others ? t->scene->ctas : 1); c++) {
    u32 to = others ? c * t->queues_of_cta + t->first_queue[ring] : own;
    if (to == own || t->lates == MAX_COPIES) sc_released(t, to, stage);
    else t->late[t->lates++] = (Arrival){t->m->cluster_latency, to, stage};
  }
}

// ---- copies

static bool has_room(const Timeline *t, const Agent *a, bool in) {
  const Cta *c = &t->cta[a->cta];
  return (in ? c->in.n : c->out.n) < MAX_COPIES;
}

static void send(Timeline *t, Agent *a, const Ins *ins) {
  bool in = ins->op == OP_COPYIN;
  Line *line = in ? &t->cta[a->cta].in : &t->cta[a->cta].out;
  Copy *c = &line->at[line->n++];
  *c = (Copy){.bytes = ins->plan.bytes, .from = a, .multicast = ins->flags & INS_MULTICAST};
  c->multicast &= t->scene->cluster;
  double rate = t->scene->link * (c->multicast ? t->scene->ctas : 1);
  double most = ins->op == OP_COPYADD ? t->m->add_bytes : t->m->link_bytes;
  if (rate > most) rate = most;
  c->latency = in ? t->m->memory_latency : t->m->shared_latency;
  c->cost.alone = c->bytes / rate;
  c->cost.use[PIPE_LINK] = c->cost.alone;
  c->cost.use[PIPE_SHARED] = c->bytes / t->m->shared_bytes;
  sc_share(&c->cost);
  c->job = (Job){&c->cost, c->cost.alone, 0};
  t->sum[SUM_BYTES] += c->multicast ? c->bytes / t->scene->ctas : c->bytes;
  if (!in) {
    a->out++;
    return;
  }
  u32 ring = t->k->buf.at[t->k->view.at[ins->arg[0]].buf].ring;
  const Queue *q = sc_queue_of(t, a, ring);
  c->queue = (u32)(q - t->queue) - a->cta * t->queues_of_cta;
  c->stage = a->filled[ring] % q->stages;
}

// ---- turns over instances

static bool has_turn(const Timeline *t, const Agent *a, u32 turn) {
  const Turn *u = &t->k->turn.at[turn];
  if (!sc_turn_over_instances(u)) return true;
  u32 place = sc_members_before(t->k, u, a->role) + a->inst;
  u32 mine = a->taken[turn] * t->members[turn] + place;
  return t->cta[a->cta].passed[turn] >= mine;
}

// ---- an operation

static bool may(const Timeline *t, const Agent *a, const Ins *ins) {
  switch (ins->op) {
    case OP_ACQUIRE: {
      const Queue *q = sc_queue_of(t, a, ins->arg[0]);
      u32 n = a->filled[ins->arg[0]];
      return q->empty[n % q->stages] >= n / q->stages;
    }
    case OP_WAIT: {
      const Queue *q = sc_queue_of(t, a, ins->arg[0]);
      u32 n = a->waited[ins->arg[0]];
      return q->full[n % q->stages] > n / q->stages;
    }
    case OP_TAKE: return has_turn(t, a, ins->arg[0]);
    case OP_MMA: return a->products < MAX_QUEUED;
    case OP_MMAWAIT: return a->products <= ins->plan.keep;
    case OP_COPYWAIT: return a->out <= ins->plan.keep;
    case OP_COPYIN: return has_room(t, a, true);
    case OP_COPYOUT:
    case OP_COPYADD: return has_room(t, a, false);
    default: return true;
  }
}

static void finish(Timeline *t, Agent *a) {
  const Ins *ins = ins_of(t, a);
  const Cost *cost = cost_of(t, a);
  u32 what = ins->arg[0];
  for (u32 p = 0; cost->pipes && p < PIPE_COUNT; p++) t->sum[p] += cost->use[p];
  if (sc_on_map((Op)ins->op)) t->sum[SUM_BYTES] += cost->bytes;
  a->doing = DOING_NEXT;
  switch (ins->op) {
    case OP_ACQUIRE: {
      Queue *q = sc_queue_of(t, a, what);
      q->missing[a->filled[what] % q->stages] += ins->plan.bytes;
      break;
    }
    case OP_COMMIT: {
      Queue *q = sc_queue_of(t, a, what);
      u32 stage = a->filled[what]++ % q->stages;
      q->commits[stage]++;
      fill_ends(t, q, stage);
      break;
    }
    case OP_WAIT: a->waited[what]++; break;
    case OP_RELEASE: release(t, a, what); break;
    case OP_COPYIN:
    case OP_COPYOUT:
    case OP_COPYADD: send(t, a, ins); break;
    case OP_MMA:
      if (!a->products) a->since = t->now;
      a->product[a->products++] = (Job){cost, cost->alone, 0};
      a->doing = DOING_ISSUE;
      break;
    case OP_TAKE: a->taken[what]++; break;
    case OP_PASS:
      t->cta[a->cta].passed[what]++;
      t->news++;
      break;
    case OP_ENDFOR:
      if (t->anchor[a->tile] == a - t->agent) sc_round_ends(t, a);
      break;
    default: break;
  }
  ++*a->at;
}

// ---- tiles

// The rounds of a tile that another instance takes. Rings of its own have none.
static void pass_by(const Timeline *t, Agent *a) {
  const Trace *trace = sc_trace_of(t, a);
  for (u32 i = 0; i < trace->n; i++) {
    const Ins *ins = &t->k->role.at[a->role].code.at[trace->at[i]];
    bool ring = ins->op == OP_COMMIT || ins->op == OP_WAIT || ins->op == OP_RELEASE;
    if (!ring || t->k->ring.at[ins->arg[0]].owner != SC_NONE) continue;
    if (ins->op == OP_COMMIT) a->filled[ins->arg[0]]++;
    if (ins->op == OP_WAIT) a->waited[ins->arg[0]]++;
    if (ins->op == OP_RELEASE) a->released[ins->arg[0]]++;
  }
}

// A single loading thread draws before its last fill, which most often waits for its stage; in a
// cluster, behind it.
void sc_enter_tile(const Timeline *t, Agent *a) {
  const Trace *trace = sc_trace_of(t, a);
  *a->at = 0;
  a->drew = a->role != t->drawer;
  a->draw_at = trace->n - 1;
  for (u32 i = trace->n; i-- > 0 && !a->drew && !t->scene->cluster;) {
    if (t->k->role.at[a->role].code.at[trace->at[i]].op != OP_ACQUIRE) continue;
    a->draw_at = i;
    break;
  }
}

static void leave_tile(Timeline *t, Agent *a) {
  if (++t->ended[a->tile] == t->agents) t->end[a->tile] = t->now;
  a->tile++;
  a->doing = a->tile < t->scene->tiles ? DOING_NEXT : DOING_END;
  if (a->doing == DOING_NEXT) sc_enter_tile(t, a);
}

static void start(Agent *a, const Cost *cost, double cycles, Doing doing) {
  a->doing = doing;
  a->job = (Job){cost, cycles, 0};
}

static bool next(Timeline *t, Agent *a) {
  if (*a->at == 0 && a->tile >= t->cta[a->cta].drawn) return false;
  if (*a->at == 0 && !sc_owns(&t->k->role.at[a->role], a->tile, a->inst)) {
    pass_by(t, a);
    leave_tile(t, a);
    return true;
  }
  if (*a->at == sc_trace_of(t, a)->n) {
    leave_tile(t, a);
    return true;
  }
  if (!a->drew && *a->at == a->draw_at) {
    start(a, &t->idle, t->m->draw_latency, DOING_DRAW);
    return true;
  }
  const Ins *ins = ins_of(t, a);
  if (!may(t, a, ins)) return false;
  const Cost *cost = cost_of(t, a);
  if (ins->op == OP_MMA) start(a, &t->idle, cost->issue, DOING_JOB);
  else start(a, cost, cost->alone, DOING_JOB);
  return true;
}

double sc_backlog(const Timeline *t, const Agent *a) {
  double left = 0;
  for (u32 i = 0; i < a->products; i++) left += a->product[i].left;
  const Cost *last = a->product[a->products ? a->products - 1 : 0].cost;
  return a->products ? left - t->m->wgmma_queue * last->slice : 0;
}

bool sc_act(Timeline *t, Agent *a) {
  switch (a->doing) {
    case DOING_JOB:
      if (a->job.left > NEAR) return false;
      finish(t, a);
      return true;
    case DOING_DRAW:
      if (a->job.left > NEAR) return false;
      a->drew = true;
      a->doing = DOING_NEXT;
      t->cta[a->cta].drawn++;
      t->news++;
      return true;
    case DOING_ISSUE:
      if (sc_backlog(t, a) > NEAR) return false;
      a->doing = DOING_NEXT;
      return true;
    case DOING_NEXT:
      if (a->seen == t->news) return false;
      if (next(t, a)) return true;
      a->seen = t->news;
      return false;
    case DOING_END: return false;
  }
  return false;
}
