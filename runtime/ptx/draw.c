// draw.c - what the draw of tiles asks of a thread, in a dynamic grid: one role draws each tile,
// and hands it on to the others through two slots in shared memory, which are filled and emptied
// like a ring's stages. Called by plan.c; calls step.c.
#include "runtime/ptx/planner.h"

bool want_alone(const Kernel *k, const Role *r) {
  for (u32 i = 0; i < r->code.n; i++) {
    const Ins *ins = &r->code.at[i];
    if (sc_on_map(ins->op) || sc_on_product(ins->op)) return false;
    if (ins->op == OP_TAKE && k->turn.at[ins->arg[0]].axis == SC_NONE) return false;
  }
  return r->warps == 1;
}

static bool is_one_thread(const Kernel *k, u32 r) {
  return k->role.at[r].instances == 1 && want_alone(k, &k->role.at[r]);
}

static bool loads(const Role *r) {
  u32 i = 0;
  while (i < r->code.n && r->code.at[i].op != OP_COPYIN) i++;
  return i < r->code.n;
}

// The first role of one thread that loads, else the first of one thread, else the first.
static u32 drawer(const Kernel *k) {
  u32 first = SC_NONE;
  for (u32 r = 0; r < k->role.n; r++) {
    if (!is_one_thread(k, r)) continue;
    if (loads(&k->role.at[r])) return r;
    if (first == SC_NONE) first = r;
  }
  return first == SC_NONE ? 0 : first;
}

// How many arrivals a slot's empty barrier expects: one of each warp that reads the slot. A role of
// one thread that draws does not read it, except in the other CTAs of a cluster.
u32 want_readers(const Kernel *k) {
  u32 n = 0, d = drawer(k), ctas = sc_cluster(k);
  bool knows = is_one_thread(k, d);
  for (u32 r = 0; r < k->role.n; r++)
    n += knows && r == d ? 0 : k->role.at[r].warps * k->role.at[r].instances;
  return knows ? n * ctas + ctas - 1 : n * ctas;
}

Barriers want_slots(const Kernel *k, bool full) {
  return (Barriers){k->ring.n, sc_slot_barriers(k) + (full ? 0 : 16), 2, full};
}

static void draw(Planner *p) {
  u32 ctas = sc_cluster(p->k);
  if (!want_readers(p->k)) return;
  want_at(p, EV_WAIT, want_slots(p->k, false), ARG_ANY);
  if (ctas == 1) {
    want_at(p, EV_ARRIVE, want_slots(p->k, true), ARG_ANY);
    return;
  }
  want_at(p, EV_ARRIVE_EXPECT, want_slots(p->k, true), sc_slot_bytes(p->k));
  for (u32 i = 0; i < ctas; i++) {
    for (u32 n = 0; n < sc_slot_bytes(p->k); n += 16) want_event(p, EV_SEND, i, i);
  }
}

static void read_slot(Planner *p) {
  want_at(p, EV_WAIT, want_slots(p->k, true), ARG_ANY);
  if (!p->alone) want_event(p, EV_WARP_SYNC, ALL_LANES, ARG_ANY);
  if (p->lane) return;
  want_at(p, sc_cluster(p->k) > 1 ? EV_ARRIVE_THERE : EV_ARRIVE, want_slots(p->k, false),
          sc_cluster(p->k) > 1 ? 0 : ARG_ANY);
}

// In a cluster the first CTA draws, and the others announce the bytes that it sends them
// (expect_tx).
static void draw_or_expect(Planner *p, bool reads) {
  bool cluster = sc_cluster(p->k) > 1;
  u32 fork = cluster ? want_fork(p) : SC_NONE;
  draw(p);
  if (!cluster) return;
  u32 end = want_goto(p);
  want_land(p, fork);
  want_at(p, EV_ARRIVE_EXPECT, want_slots(p->k, true), sc_slot_bytes(p->k));
  if (reads) read_slot(p);
  want_land(p, end);
}

void want_next_tile(Planner *p) {
  Span span = p->span;
  p->span = p->role->span;
  if (p->r != drawer(p->k)) {
    read_slot(p);
  } else if (is_one_thread(p->k, p->r)) {
    draw_or_expect(p, true);
  } else {
    if (!p->instance && want_thread0(p)) draw_or_expect(p, false);
    read_slot(p);
  }
  want_stage(p, p->k->ring.n, CURSOR_FILL);
  want_stage(p, p->k->ring.n, CURSOR_NEXT);
  p->span = span;
}

// The operation before which a role gets its next tile. A role of one thread that draws does so
// before the last fill of a tile, if only ends of `if`s follow that and its cluster is one CTA; all
// others get the tile at the end of the present one.
u32 want_draw_at(const Planner *p) {
  const Code *code = &p->role->code;
  u32 end = code->n - 1, pc = end;
  if (p->r != drawer(p->k) || !is_one_thread(p->k, p->r) || sc_cluster(p->k) > 1 ||
      p->role->one_tile)
    return end;
  for (; code->at[pc - 1].op == OP_ENDIF; pc--) {
    if (code->at[code->at[pc - 1].nest].op != OP_IF) return end;
  }
  while (code->at[pc - 1].op == OP_COMMIT || code->at[pc - 1].op == OP_COPYIN) pc--;
  return code->at[pc - 1].op == OP_ACQUIRE ? pc - 1 : end;
}
