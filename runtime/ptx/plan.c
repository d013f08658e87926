// plan.c - makes the program that one thread has to execute: a kernel's operations with their plan,
// as the sequences of instructions by which sm_90a carries them out. In: a kernel after `place`,
// and the thread. Out: a program of events with choices: a loop whose number of rounds depends on
// data has any number of them, and a condition that data decides goes both ways.
//
// Which thread does what. What the threads of an instance do together (waits, products, syncs),
// each of them does. What is done once for an instance, its thread 0 does. A warp's arrival is made
// by lane 0, after the lanes have met. A role of one warp that only copies, waits and arrives is
// run by its lane 0 alone.
#include "runtime/ptx/planner.h"

// ---- blocks

// Ends a block. The sync of its plan has the line of the operation before it.
static void close_block(Planner *p, u32 pc) {
  u32 first = p->w.step.n;
  p->span = p->role->code.at[pc].span;
  p->dead = p->all_dead[p->r][pc] & NEVER;
  want_order(p, &p->role->code.at[pc]);
  for (; first < p->w.step.n; first++) p->w.step.at[first].want.line = 0;
}

static void code(Planner *p, u32 from, u32 to);

static void rounds(Planner *p, u32 pc) {
  const Ins *ins = &p->role->code.at[pc];
  i64 first, end;
  bool known =
      !ins->plan.side && want_sure(p, ins->arg[1], &first) && want_sure(p, ins->arg[2], &end);
  if (known && first >= end) return;
  u32 over = known ? SC_NONE : want_fork(p), again = p->w.step.n;
  code(p, pc + 1, ins->nest);
  close_block(p, ins->nest);
  p->span = ins->span;
  bool once = known && end - first <= 1;
  p->dead = p->all_dead[p->r][pc] || once;
  want_round(p, again);
  if (!known) want_land(p, over);
}

// A loop whose rounds are of two kinds is two loops, each of which may have no round.
static void loop(Planner *p, u32 pc) {
  bool split = p->role->code.at[pc].plan.side;
  for (u8 kind = SIDE_FIRST; split && kind <= SIDE_LAST; kind++) {
    u32 first = p->w.step.n;
    p->kind = kind;
    rounds(p, pc);
    p->w.halves++;
    while (first < p->w.step.n) p->w.step.at[first++].half = p->w.halves;
  }
  p->kind = 0;
  if (!split) rounds(p, pc);
}

static void side(Planner *p, u32 from, u32 end) {
  code(p, from, end);
  close_block(p, end);
}

static void branch(Planner *p, const Ins *ins, u32 pc, u32 mid, u32 end) {
  i64 holds = 0;
  if (ins->plan.side) {  // of a vote: it is no branch in rounds of one kind
    if (ins->plan.side == p->kind) side(p, pc + 1, mid);
    return;
  }
  bool known = ins->op == OP_IF && want_sure(p, ins->arg[0], &holds);
  if (known) {
    if (holds) side(p, pc + 1, mid);
    else if (end != mid) side(p, mid + 1, end);
    return;
  }
  p->open[p->opens++] = want_fork(p);
  side(p, pc + 1, mid);
  u32 fork = p->open[--p->opens], over = end != mid ? want_goto(p) : SC_NONE;
  want_land(p, fork);
  if (end == mid) return;
  side(p, mid + 1, end);
  want_land(p, over);
}

// Closes the `if`s around the last fill of a tile before the draw, and opens them again after it.
static void draw_between(Planner *p) {
  for (u32 i = 0; i < p->opens; i++) want_land(p, p->open[i]);
  want_next_tile(p);
  for (u32 i = 0; i < p->opens; i++) p->open[i] = want_fork(p);
}

static void code(Planner *p, u32 from, u32 to) {
  const Code *c = &p->role->code;
  u32 draws = p->k->grid == GRID_DYNAMIC ? want_draw_at(p) : SC_NONE;
  for (u32 pc = from; pc < to; pc++) {
    const Ins *ins = &c->at[pc];
    if (pc == draws) draw_between(p);
    p->dead = p->all_dead[p->r][pc] & NEVER;
    want_operation(p, ins);
    if (ins->plan.early) {
      p->span = ins[1].span;
      want_event(p, EV_MMA_WAIT, ins[1].plan.keep, ARG_ANY);
    }
    if (ins->op == OP_FOR) {
      loop(p, pc);
      pc = ins->nest;
    } else if (ins->op == OP_IF || ins->op == OP_VOTE) {
      u32 mid = ins->nest, end = sc_closed_by(c, pc);
      branch(p, ins, pc, mid, end);
      pc = end;
    }
  }
}

// Ends a tile. Here lands the fork that skips a tile of another instance.
static void skip_tile(Planner *p, u32 fork) {
  u32 own = want_goto(p);
  want_land(p, fork);
  for (u32 i = 0; i < p->k->ring.n; i++) {
    bool own_ring = p->k->ring.at[i].owner != SC_NONE;
    Step skip = {.op = STEP_SKIP, .span = p->span, .barrier = {.ring = i}};
    if (!own_ring) PUSH(p->sc, &p->w.step, skip);
  }
  want_land(p, own);
}

static void tiles(Planner *p) {
  const Kernel *k = p->k;
  const Code *c = &p->role->code;
  bool once = sc_one_tile(k), at_end = k->grid == GRID_DYNAMIC && want_draw_at(p) == c->n - 1;
  u32 over = once ? SC_NONE : want_fork(p), again = p->w.step.n;
  u32 other = p->role->one_tile ? want_fork(p) : SC_NONE;  // it is another instance's
  code(p, 1, c->n - 1);
  if (other != SC_NONE) skip_tile(p, other);
  close_block(p, c->n - 1);
  if (at_end) want_next_tile(p);
  if (once) return;
  p->span = p->role->span;
  want_round(p, again);
  want_land(p, over);
}

// ---- the frame

static bool has_barriers(const Kernel *k) { return k->ring.n || k->grid == GRID_DYNAMIC; }

static void cluster_meets(Planner *p) {
  want_event(p, EV_CLUSTER_ARRIVE, ARG_ANY, ARG_ANY);
  want_event(p, EV_CLUSTER_WAIT, ARG_ANY, ARG_ANY);
}

static void init(Planner *p, u32 at, u32 n, u32 count) {
  for (u32 i = 0; i < n; i++) want_event(p, EV_INIT, count, ARG_ANY)->want.at = at + 8 * i;
}

// Thread 0 initialises every barrier, and then all threads meet.
static void barriers(Planner *p, u32 tid) {
  const Kernel *k = p->k;
  if (!has_barriers(k)) return;
  for (u32 i = 0; i < k->ring.n && !tid; i++) {
    const Ring *r = &k->ring.at[i];
    for (u32 n = 0; n < sc_ring_copies(k, r); n++) {
      init(p, sc_barriers_at(r, n, true), r->stages, r->full_count);
      init(p, sc_barriers_at(r, n, false), r->stages, r->empty_count);
    }
  }
  if (k->grid == GRID_DYNAMIC && want_readers(k) && !tid) {
    init(p, want_slots(k, true).at, 2, 1);
    init(p, want_slots(k, false).at, 2, want_readers(k));
  }
  if (!tid) want_event(p, EV_INIT_FENCE, ARG_ANY, ARG_ANY);
  if (sc_cluster(k) > 1) cluster_meets(p);
  else want_event(p, EV_BAR_SYNC, 0, ARG_UNKNOWN);
}

// What every thread of a sequence's kernel does before it touches a tensor. It lets the next launch
// begin early unless the grid is large.
static void neighbours(Planner *p) {
  if (p->k->follows) want_event(p, EV_GRID_WAIT, ARG_ANY, ARG_ANY);
  if (!p->k->precedes) return;
  u32 large = want_fork(p);
  want_event(p, EV_GRID_GO, ARG_ANY, ARG_ANY);
  want_land(p, large);
}

static void find_role(Planner *p, u32 tid) {
  u32 warp = tid / WARP, r = sc_role_of_warp(p->k, warp, &p->instance);
  p->lane = tid % WARP;
  p->w.role = r;
  if (r == SC_NONE) return;
  p->r = r;
  p->role = &p->k->role.at[r];
  p->w.instance = p->instance;
  p->warp = (warp - p->role->first_warp) % p->role->warps;
  p->alone = want_alone(p->k, p->role);
}

// Asks for setmaxnreg, with the number of the roles that the thread's warpgroup has.
static void registers(Planner *p, u32 tid) {
  u32 group = tid / GROUP, entry = sc_entry_registers(p->k);
  for (u32 r = 0; r < p->k->role.n; r++) {
    const Role *ro = &p->k->role.at[r];
    u32 first = ro->first_warp / 4, last = (ro->first_warp + ro->warps * ro->instances - 1) / 4u;
    if (!ro->regs || group < first || group > last) continue;
    p->span = ro->span;
    want_event(p, ro->regs < entry ? EV_REGS_FEWER : EV_REGS_MORE, ro->regs, ARG_ANY)->want.line =
        0;
    return;
  }
}

Wanted sc_ptx_wanted(Sc *sc, const Kernel *k, const CudaText *text, u8 *const *dead, u32 tid) {
  Planner p = {.sc = sc, .k = k, .text = text, .all_dead = dead, .span = k->span};
  find_role(&p, tid);
  barriers(&p, tid);
  neighbours(&p);
  for (u32 i = 0; i < p.w.step.n; i++) p.w.step.at[i].want.line = 0;
  registers(&p, tid);
  if (p.role && (!p.alone || !p.lane)) {
    p.span = p.role->span;
    want_first_turns(&p);
    tiles(&p);
  }
  p.span = k->span;
  u32 end = p.w.step.n;
  if (sc_cluster(k) > 1) cluster_meets(&p);
  for (; end < p.w.step.n; end++) p.w.step.at[end].want.line = 0;
  PUSH(sc, &p.w.step, ((Step){.op = STEP_END, .span = k->span}));
  return p.w;
}
