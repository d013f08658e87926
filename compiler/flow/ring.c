// ring.c - how the operations on rings and turns change the state of a role: its holds, fills and
// turns. As in step.c, the state goes on after a fault as if there had been none.
#include "compiler/flow/flow.h"

// ---- rings

static void too_deep(Flow *f, const Ins *ins, const char *what) {
  const RingState *r = &f->now->ring[ins->arg[0]];
  const Ring *ring = &f->k->ring.at[ins->arg[0]];
  if (!sc_blame(f, &f->blamed_ring[ins->arg[0]])) return;
  const char *all =
      ring->stages == 1 ? "the only stage" : sc_printf(f->sc, "all %u stages", ring->stages);
  Diag *d = sc_report(f->sc, D_R5_DEPTH, ins->span,
                      "'%s %s' can never go on: this role holds %s of it", what, ring->name, all);
  sc_note(f->sc, d, f->r->code.at[r->hold[0].site].span, "the oldest of them is held from here");
  sc_help(f->sc, d, "release one before, or give '%s' more stages", ring->name);
}

void sc_step_acquire(Flow *f, Ins *ins) {
  RingState *r = &f->now->ring[ins->arg[0]];
  const Ring *ring = &f->k->ring.at[ins->arg[0]];
  if (r->open && sc_blame(f, &f->blamed_ring[ins->arg[0]])) {
    Diag *d = sc_report(f->sc, D_R5_FILL, ins->span, "a fill of '%s' is open already", ring->name);
    sc_note(f->sc, d, f->r->code.at[r->fill.site].span,
            "acquired here, and not committed on the way");
    sc_help(f->sc, d, "'commit %s' before acquiring the next stage", ring->name);
  }
  if (r->held >= ring->stages) too_deep(f, ins, "acquire");
  if (ins->plan.arrivals) sc_want_order(f, ins, sc_hand_over(f, ins, true));
  if (ring->owner == SC_NONE && sc_only_copies(f->k, f->role, ins->arg[0])) f->now->elected = true;
  r->open = true;
  r->landing = r->stored = 0;
  r->fill = (Hold){.site = f->pc};
}

void sc_step_commit(Flow *f, Ins *ins) {
  RingState *r = &f->now->ring[ins->arg[0]];
  const char *name = f->k->ring.at[ins->arg[0]].name;
  if (!r->open && sc_blame(f, &f->blamed_ring[ins->arg[0]])) {
    Diag *d = sc_report(f->sc, D_R5_FILL, ins->span,
                        "there is nothing to commit: no fill of '%s' is open here", name);
    sc_help(f->sc, d, "'acquire %s' before it", name);
  }
  bool wrote =
      r->open && r->fill.unordered.set & UNFENCED_WRITE && sc_ring_async(f->k, ins->arg[0]);
  u32 told = ins->plan.arrivals ? sc_hand_over(f, ins, ins->plan.arrivals < f->r->warps) : 0;
  sc_want_order(f, ins, (wrote ? NEED_FENCE : 0) | told);
  r->open = false;
  r->landing = r->stored = 0;
  r->fill = (Hold){0};
}

void sc_step_wait(Flow *f, Ins *ins) {
  RingState *r = &f->now->ring[ins->arg[0]];
  const Ring *ring = &f->k->ring.at[ins->arg[0]];
  if (r->held >= ring->stages) too_deep(f, ins, "wait");
  if (r->held == MAX_HOLDS) {
    if (sc_blame(f, &f->blamed_ring[ins->arg[0]])) {
      Diag *d = sc_report(f->sc, D_R5_DEPTH, ins->span, "more than %d stages of '%s' are held here",
                          MAX_HOLDS, ring->name);
      sc_help(f->sc, d, "release the older ones first");
    }
    sc_release_hold(f->now, ins->arg[0]);
  }
  r->hold[r->held++] = (Hold){.site = f->pc, .older = f->now->product.n};
  u8 *most = &f->k->most_held[f->role * f->k->ring.n + ins->arg[0]];
  if (f->derive && r->held > *most) *most = (u8)r->held;
}

static bool refilled_by_copies(const Flow *f, u32 ring) {
  for (u32 r = 0; r < f->k->role.n; r++) {
    if (sc_ring_use(f->k, r, ring) & USE_COPY) return true;
  }
  return false;
}

// One arrival stands for all warps, even for a warp that may still be waiting for this fill. Once
// the barrier is two phases further, its parity is the old one again, and that warp waits for ever.
static void want_past(Flow *f, const Ins *ins, const Hold *hold) {
  if (ins->plan.sync || !f->report) return;
  const char *name = f->k->ring.at[ins->arg[0]].name;
  Diag *d = sc_report(f->sc, D_R5_COUNT, ins->span,
                      "'%s' is released with one arrival for %u warps, and nothing tells that all "
                      "of them are past their wait",
                      name, f->r->warps);
  sc_note(f->sc, d, f->r->code.at[hold->site].span, "they wait here");
  sc_help(f->sc, d, "add 'sync' to its plan, or let each warp arrive");
}

void sc_step_release(Flow *f, Ins *ins) {
  u32 ring = ins->arg[0];
  RingState *r = &f->now->ring[ring];
  const char *name = f->k->ring.at[ring].name;
  if (!r->held) {
    if (sc_blame(f, &f->blamed_ring[ring])) {
      Diag *d = sc_report(f->sc, D_R5_RELEASE, ins->span,
                          "'%s' is released, but no stage of it is held here", name);
      if (r->gave)
        sc_note(f->sc, d, f->r->code.at[r->gave - 1].span,
                "the one held before was given back here");
      sc_help(f->sc, d, "each 'release %s' gives back the stage of one 'wait %s' before it", name,
              name);
    }
    return;
  }
  u32 i = sc_flight_reading(&f->now->product, ring, 0);
  if (i) {
    if (f->report) sc_report_release(f, ring, &f->now->product.at[i - 1], false);
    sc_fault_products(f, i);
  }
  i = sc_flight_reading(&f->now->copy, ring, 0);
  if (i) {
    if (f->report) sc_report_release(f, ring, &f->now->copy.at[i - 1], true);
    sc_retire_copies(f, i, false);
  }
  bool unfenced =
      r->hold[0].unordered.set & (UNFENCED_WRITE | UNFENCED_READ) && refilled_by_copies(f, ring);
  bool one = ins->plan.arrivals < f->r->warps,
       may_lag = !r->hold[0].all_past && !sc_warps_fill(f->k, f->role, ring);
  if (f->lagging) f->lagging[f->pc] |= may_lag;
  u32 need = unfenced ? NEED_FENCE : 0;
  if (one && may_lag && f->derive) need |= NEED_SYNC;
  else if (one && may_lag) want_past(f, ins, &r->hold[0]);
  sc_want_order(f, ins, need | sc_hand_over(f, ins, one));
  sc_release_hold(f->now, ring);
  r->gave = f->pc + 1;
}

// At the end of a vote's block the warps that ran it fence what they did to stages. So the later
// release needs no fence by all warps (measured: 4 % of the time of fa3_stale).
void sc_step_endvote(Flow *f, Ins *ins) {
  bool unfenced = false;
  for (u32 r = 0; r < f->k->ring.n; r++) {
    if (!refilled_by_copies(f, r)) continue;
    for (u32 h = 0; h < f->now->ring[r].held; h++)
      unfenced |= f->now->ring[r].hold[h].unordered.set & (UNFENCED_WRITE | UNFENCED_READ);
  }
  sc_want_order(f, ins, unfenced ? NEED_FENCE : 0);
}

// ---- turns

void sc_step_take(Flow *f, Ins *ins) {
  TurnState *t = &f->now->turn[ins->arg[0]];
  const char *name = f->k->turn.at[ins->arg[0]].name;
  if (t->held && sc_blame(f, &f->blamed_turn[ins->arg[0]])) {
    Diag *d = sc_report(f->sc, D_R5_TURN, ins->span,
                        "the turn '%s' is held already: waiting for it again never ends", name);
    sc_note(f->sc, d, f->r->code.at[t->site].span, "taken here");
    sc_help(f->sc, d, "'release %s' before taking it again", name);
  }
  *t = (TurnState){true, ins->arg[1], f->pc};
  sc_state_sync(f->now, f->k);  // all of its threads wait for it together
}

// A turn over CTAs orders what is done while it is held: the next CTA must see that.
static void want_published(Flow *f, const Ins *ins) {
  u32 turn = ins->arg[0], bit = sc_unseen_turn(turn), tensor = SC_NONE;
  const Queue *q = &f->now->copy;
  for (u32 i = 0; i < f->k->buf.n; i++) {
    if (f->now->unseen[i] & bit) tensor = i;
  }
  for (u32 i = 0; i < q->n; i++) {
    if (q->at[i].unseen & bit) tensor = q->at[i].dst;
  }
  if (tensor == SC_NONE || f->k->turn.at[turn].axis == SC_NONE) return;
  if (f->report) {
    const char *name = sc_buf_name(f, tensor);
    Diag *d =
        sc_report(f->sc, D_R3_TURN, ins->span,
                  "the turn '%s' is passed on while copies out to '%s' may not be visible yet",
                  f->k->turn.at[turn].name, name);
    sc_note(f->sc, d, f->r->code.at[f->now->turn[turn].site].span, "taken here");
    sc_help(f->sc, d,
            "'wait %s' before it (not 'read'): the next CTA relies on what was done in this turn",
            name);
  }
  f->now->unseen[tensor] = 0;
}

void sc_step_pass(Flow *f, Ins *ins) {
  TurnState *t = &f->now->turn[ins->arg[0]];
  const char *name = f->k->turn.at[ins->arg[0]].name;
  if (!t->held || t->key != ins->arg[1]) {
    if (sc_blame(f, &f->blamed_turn[ins->arg[0]])) {
      Diag *d = sc_report(f->sc, D_R5_TURN, ins->span,
                          t->held ? "the turn '%s' that is passed on is not the one that is held"
                                  : "the turn '%s' is passed on, but not held here",
                          name);
      if (t->held) sc_note(f->sc, d, f->r->code.at[t->site].span, "taken here, with another index");
      sc_help(f->sc, d, "'acquire %s' before it", name);
    }
  } else {
    want_published(f, ins);
  }
  // (What is emitted for a turn over CTAs has a fence and syncs of its own.)
  if (f->k->turn.at[ins->arg[0]].axis == SC_NONE)
    sc_want_order(f, ins, sc_hand_over(f, ins, false));
  else sc_state_sync(f->now, f->k);
  t->held = false;
}
