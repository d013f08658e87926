// operation.c - what an operation asks of a thread: the instructions by which sm_90a carries it
// out, with the numbers of its plan. Called by plan.c; calls step.c.
#include "runtime/ptx/planner.h"

#include "compiler/layout/layout.h"

enum { NO_MAP = -3 };

// ---- rings

static Barriers barriers(const Planner *p, u32 ring, bool full) {
  const Ring *r = &p->k->ring.at[ring];
  u32 copy = r->owner == SC_NONE ? 0 : p->instance;
  return (Barriers){ring, sc_barriers_at(r, copy, full), r->stages, full};
}

// Does this thread arrive? Lane 0 of each warp does, or thread 0 alone.
static bool arrives(Planner *p, const Ins *ins) {
  bool each_warp = ins->plan.arrivals == p->role->warps;
  want_order(p, ins);
  if (each_warp && !p->alone && !ins->plan.sync) want_event(p, EV_WARP_SYNC, ALL_LANES, ARG_ANY);
  return each_warp ? !p->lane : want_thread0(p);
}

static void acquire(Planner *p, const Ins *ins) {
  u32 ring = ins->arg[0];
  bool by_one = sc_only_copies(p->k, p->r, ring);
  if (!by_one || want_thread0(p)) want_at(p, EV_WAIT, barriers(p, ring, false), ARG_ANY);
  if (!ins->plan.bytes || !want_thread0(p)) return;
  want_at(p, ins->plan.arrivals ? EV_ARRIVE_EXPECT : EV_EXPECT, barriers(p, ring, true),
          ins->plan.bytes);
}

static void commit(Planner *p, const Ins *ins) {
  if (ins->plan.arrivals && arrives(p, ins))
    want_at(p, EV_ARRIVE, barriers(p, ins->arg[0], true), ARG_ANY);
  want_stage(p, ins->arg[0], CURSOR_FILL);
}

static void wait(Planner *p, const Ins *ins) {
  want_at(p, EV_WAIT, barriers(p, ins->arg[0], true), ARG_ANY);
  if (want_more_held(p, ins->arg[0])) want_stage(p, ins->arg[0], CURSOR_NEXT);
}

static void release_by(Planner *p, const Ins *ins) {
  const Ring *r = &p->k->ring.at[ins->arg[0]];
  Barriers empty = barriers(p, ins->arg[0], false);
  if (!arrives(p, ins)) return;
  u32 ctas = sc_cluster(p->k);
  if (!r->multicast || ctas == 1) {
    want_at(p, EV_ARRIVE, empty, ARG_ANY);
    return;
  }
  for (u32 cta = 0; cta < ctas; cta++) want_at(p, EV_ARRIVE_THERE, empty, cta);
}

static void release(Planner *p, const Ins *ins) {
  release_by(p, ins);
  want_stage(p, ins->arg[0], want_more_held(p, ins->arg[0]) ? CURSOR_OLDEST : CURSOR_NEXT);
}

// ---- copies

// Bytes that one copy by this map brings, as the launcher describes it to the copy engine.
static i64 box_bytes(const Kernel *k, const TmaMap *m) {
  const Buf *part = &k->buf.at[m->part];
  i64 row = part->ext[part->rank - 1] * sc_elem[part->elem].bytes, rows = sc_stage_rows(part);
  i64 width = sc_panel_bytes(part), panels = row / width;
  if (panels % m->ctas) return rows * width / m->ctas;
  return m->whole ? rows * row / m->ctas : rows * width;
}

static bool is_map_of(const Kernel *k, const TmaMap *m, u32 tensor, u32 stage, u32 ctas) {
  const View *v = &k->view.at[tensor];
  bool is = m->tensor == v->buf && m->part == k->view.at[stage].buf && m->ctas == ctas;
  for (u32 d = 0; d < v->rank; d++) is &= m->sliced[d] == v->at[d].slice;
  return is;
}

// Asks for as many copies by this map as bring all bytes of a CTA's share. Copies into a stage name
// its full barrier.
static void copies_by(Planner *p, const Ins *ins, EventId id, u32 map, u32 ctas, bool must) {
  i64 n = ins->plan.bytes / ctas / box_bytes(p->k, &p->text->map[map]);
  bool in = id == EV_LOAD || id == EV_MULTICAST;
  u32 ring = p->k->buf.at[p->text->map[map].part].ring;
  for (i64 c = 0; c < n; c++) {
    Step *step =
        in ? want_at(p, id, barriers(p, ring, true), map) : want_event(p, id, map, ARG_ANY);
    if (ctas > 1) step->want.arg[1] = (1 << ctas) - 1;
    step->must &= must;
  }
}

// Asks for the operation's copies by the tensor map that fits, or, if several fit, by one of these,
// which differ in how much one copy brings.
static void copies(Planner *p, const Ins *ins, EventId id, u32 tensor, u32 stage, u32 ctas) {
  VEC(u32) fit = {0}, ends = {0};
  for (u32 i = 0; i < p->text->maps; i++) {
    if (is_map_of(p->k, &p->text->map[i], tensor, stage, ctas)) PUSH(p->sc, &fit, i);
  }
  if (!fit.n) want_event(p, id, NO_MAP, ARG_ANY);
  for (u32 i = 0; i < fit.n; i++) {
    u32 fork = i + 1 < fit.n ? want_fork(p) : SC_NONE;
    copies_by(p, ins, id, fit.at[i], ctas, fit.n == 1);
    if (fork == SC_NONE) break;
    PUSH(p->sc, &ends, want_goto(p));
    want_land(p, fork);
  }
  for (u32 i = 0; i < ends.n; i++) want_land(p, ends.at[i]);
}

static void copy_in(Planner *p, const Ins *ins) {
  u32 ctas = ins->flags & INS_MULTICAST ? sc_cluster(p->k) : 1;
  if (want_thread0(p))
    copies(p, ins, ctas > 1 ? EV_MULTICAST : EV_LOAD, ins->arg[1], ins->arg[0], ctas);
}

// Asks for a copy out. In a cluster it may be skipped, as CTAs past the end of the grid write
// nothing.
static void copy_out(Planner *p, const Ins *ins) {
  if (!want_thread0(p)) return;
  u32 fork = sc_cluster(p->k) > 1 ? want_fork(p) : SC_NONE;
  copies(p, ins, ins->op == OP_COPYADD ? EV_REDUCE : EV_STORE, ins->arg[0], ins->arg[1], 1);
  if (fork != SC_NONE) want_land(p, fork);
  want_event(p, EV_BULK_COMMIT, ARG_ANY, ARG_ANY);
}

// ---- products

// Is the contracted index (variable 2) not the last dimension of this operand?
static bool is_mn_major(const Kernel *k, u32 view) {
  const View *v = &k->view.at[view];
  return k->buf.at[v->buf].space == SP_STAGE && v->at[v->rank - 1].var != 2;
}

static void product(Planner *p, const Product *m) {
  enum { ROWS = 64, SLICE = 32 };  // of one instruction; bytes of the contracted index
  const Kernel *k = p->k;
  const Buf *a = &k->buf.at[k->view.at[m->a].buf], *b = &k->buf.at[k->view.at[m->b].buf];
  i64 each = SLICE / sc_elem[b->elem].bytes, chunks = m->n / m->cols;
  i64 lies = (a->space == SP_REG ? MMA_REGS : 0) | (is_mn_major(k, m->a) ? MMA_A_MN : 0) |
             (is_mn_major(k, m->b) ? MMA_B_MN : 0);
  want_event(p, EV_MMA_FENCE, ARG_ANY, ARG_ANY);
  for (i64 i = 0; i < m->m / ROWS * chunks; i++) {
    for (i64 s = 0; s < m->k / each; s++) {
      Step *step = want_event(p, EV_MMA, m->cols, each);
      step->want.arg[2] = (i64)a->elem << 8 | b->elem;
      step->want.arg[3] = lies | (s || m->acc ? MMA_ADDS : 0);
    }
  }
  want_event(p, EV_MMA_COMMIT, ARG_ANY, ARG_ANY);
}

// ---- turns

// This instance's number among them.
static u32 place_in(const Planner *p, const Turn *t) {
  return sc_members_before(p->k, t, p->r) + p->instance;
}

// How many threads use a named barrier of a turn: those that wait there, and as many that pass it
// on.
static i64 threads_of(const Planner *p) { return 2 * WARP * p->role->warps; }

static void take(Planner *p, const Turn *t) {
  if (t->axis == SC_NONE) {
    want_event(p, EV_BAR_SYNC, t->barrier + place_in(p, t), threads_of(p));
    return;
  }
  if (want_thread0(p)) {
    want_event(p, EV_LOOK, ARG_ANY, ARG_ANY);
    want_event(p, EV_FENCE, ARG_ANY, ARG_ANY);
  }
  want_meet(p);
}

static void pass(Planner *p, const Turn *t) {
  if (t->axis == SC_NONE) {
    u32 next = (place_in(p, t) + 1) % sc_members(p->k, t);
    want_event(p, EV_BAR_ARRIVE, t->barrier + next, threads_of(p));
    return;
  }
  want_meet(p);
  if (!want_thread0(p)) return;
  want_event(p, EV_FENCE, ARG_ANY, ARG_ANY);
  want_event(p, EV_HAND_ON, 1, ARG_ANY);
}

// The turn's last member passes it on to the first one when the kernel begins.
void want_first_turns(Planner *p) {
  for (u32 i = 0; i < p->k->turn.n; i++) {
    const Turn *t = &p->k->turn.at[i];
    if (!sc_turn_over_instances(t) || t->member[t->members - 1] != p->r) continue;
    if (p->instance + 1 == p->role->instances)
      want_event(p, EV_BAR_ARRIVE, t->barrier, threads_of(p));
  }
}

// ---- operations

void want_operation(Planner *p, const Ins *ins) {
  const Kernel *k = p->k;
  p->span = ins->span;
  bool later = ins->op == OP_COMMIT || ins->op == OP_RELEASE;
  if (!later) want_order(p, ins);
  switch ((Op)ins->op) {
    case OP_ACQUIRE: acquire(p, ins); break;
    case OP_COPYIN: copy_in(p, ins); break;
    case OP_COMMIT: commit(p, ins); break;
    case OP_WAIT: wait(p, ins); break;
    case OP_RELEASE: release(p, ins); break;
    case OP_MMA: product(p, &k->product.at[ins->arg[0]]); break;
    case OP_MMAWAIT:
      if (!ins[-1].plan.early) want_event(p, EV_MMA_WAIT, ins->plan.keep, ARG_ANY);
      break;
    case OP_COPYOUT:
    case OP_COPYADD: copy_out(p, ins); break;
    case OP_COPYWAIT:
      if (want_thread0(p))
        want_event(p, ins->flags & INS_READ ? EV_BULK_READ : EV_BULK_WAIT, ins->plan.keep, ARG_ANY);
      break;
    case OP_TAKE: take(p, &k->turn.at[ins->arg[0]]); break;
    case OP_PASS: pass(p, &k->turn.at[ins->arg[0]]); break;
    default: break;
  }
}
