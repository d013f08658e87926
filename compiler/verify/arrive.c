// arrive.c - arrivals: what each hands over, for which threads it speaks, and what is known of the
// waits before it. In: what the instance's threads know. Checked at each arrival:
//   - one thread that arrives for all threads has met them, so it knows what they did (H1, H2, P4);
//   - no engine still accesses the stage that is given away, and if engines access it next, a proxy
//     fence follows what threads did to it (W3, T2, P1, P3); the same holds of everything else that
//     others access (H5, H6);
//   - no warp can be two phases behind: each is past its wait for the stage, or the phase after the
//     next one needs an arrival of its own (M6);
//   - who arrives has waited for the stage, or has met a thread that has (M4).
#include "compiler/verify/threads.h"

// ---- the plan

void th_order(Threads *t, const Ins *ins) {
  if (ins->plan.fence) th_fenced(t, ins->plan.global);
  if (ins->plan.sync && (!t->votes || t->r->warps == 1)) th_met(t);
}

// Which threads arrive, by the plan. Each warp meets by itself before one of its lanes arrives for
// it; an instance of one warp has met then.
static Arrivers arrivers(Threads *t, const Ins *ins) {
  if (t->single) return BY_THREADS;
  if (ins->plan.arrivals != t->r->warps) return BY_ONE;
  if (t->r->warps == 1) th_met(t);
  return BY_WARPS;
}

// ---- what others rely on

static void want_all(Threads *t, const Ins *ins, const char *name, u32 pc) {
  Diag *d =
      th_missing(t, PROOF_THREADS, ins->span,
                 "one thread arrives here for %u, and it is not sure that the others are done "
                 "with '%s': they have not met",
                 32 * t->r->warps, name);
  if (pc < SEVERAL) th_other_end(t, d, pc, "they touch it here");
}

static void want_fence(Threads *t, const Ins *ins, const char *name, bool global) {
  th_missing(t, PROOF_THREADS, ins->span,
             "'%s' is handed over here to an engine, and no proxy fence%s follows what threads did "
             "to it",
             name, global ? " of global memory" : "");
}

// Roles that go on when the operation arrives, as a set.
static u32 told_by(const Threads *t, const Ins *ins) {
  if (ins->op == OP_RELEASE) return t->k->ring.at[ins->arg[0]].fillers;
  if (ins->op != OP_PASS) return t->k->ring.at[ins->arg[0]].drainers;
  const Turn *turn = &t->k->turn.at[ins->arg[0]];
  u32 set = 0;
  for (u32 i = 0; i < turn->members; i++) set |= 1u << turn->member[i];
  return set;
}

static bool read_by(const Threads *t, u32 roles, u32 buf) {
  for (u32 r = 0; r < t->k->role.n; r++) {
    bool other = r != t->role || t->r->instances > 1;
    if (roles >> r & 1 && other && sc_tensor_use(t->k, r, buf) & (DOES_READ | DOES_COPY_FROM))
      return true;
  }
  return false;
}

// After `wait … read` the source of a copy out has been read, but others may not yet see what it
// wrote (H6).
static void hand_over_copies(Threads *t, const Ins *ins, u32 buf) {
  const Tensor *x = &t->now->tensor[buf];
  if ((x->store == LANDED && x->add == LANDED) || !read_by(t, told_by(t, ins), buf)) return;
  Diag *d = th_missing(t, PROOF_THREADS, ins->span,
                       "others go on here that read '%s', and a copy out to it may not be visible",
                       t->k->buf.at[buf].name);
  th_other_end(t, d, x->by_copy, "it is issued here");
}

static void hand_over_tensor(Threads *t, const Ins *ins, u32 buf, Arrivers by) {
  const Place *p = &t->now->tensor[buf].at;
  const char *name = t->k->buf.at[buf].name;
  u8 does = th_others_tensor(t, buf), wrote = DID_WRITE | DID_ADD;
  if ((p->raw & wrote && does & DOES_COPY) || (p->raw & DID_READ && does & DOES_COPY_TO))
    want_fence(t, ins, name, true);
  bool apart = (p->apart & wrote && does & (DOES_COPY | DOES_READ)) ||
               (p->apart & DID_READ && does & (DOES_COPY_TO | DOES_WRITE | DOES_ADD));
  if (by == BY_ONE && apart) want_all(t, ins, name, p->apart & wrote ? p->writer.pc : p->reader.pc);
  hand_over_copies(t, ins, buf);
}

// A stage that is held may have been changed in place while other roles hold it, too: they must see
// the change. And so where others store to the same fill.
static void hand_over_stages(Threads *t, const Ins *ins, u32 ring, Arrivers by) {
  u8 does = th_others_ring(t, ring);
  for (u32 h = 0; h < t->now->held[ring]; h++) {
    const Place *p = &th_stage(t->now, ring, h)->at;
    const char *name = t->k->ring.at[ring].name;
    if (p->raw & DID_WRITE && does & USE_ASYNC) want_fence(t, ins, name, false);
    bool apart = (p->apart & DID_WRITE && does & (USE_THREADS | USE_ASYNC)) ||
                 (p->apart & DID_READ && does & USE_INPLACE);
    if (by == BY_ONE && apart) want_all(t, ins, name, p->writer.pc);
  }
  if (by != BY_ONE || !t->now->open[ring] || !(does & USE_STORE)) return;
  const Place *p = &th_fill(t->now, ring)->at;
  if (p->apart) want_all(t, ins, t->k->ring.at[ring].name, p->writer.pc);
}

// A private ring hands over nothing: no other instance waits at its barriers.
static void hand_over(Threads *t, const Ins *ins, Arrivers by) {
  bool of_turn = ins->op == OP_PASS;
  if (!of_turn && t->k->ring.at[ins->arg[0]].owner != SC_NONE) return;
  for (u32 b = 0; b < t->k->buf.n; b++)
    if (t->k->buf.at[b].space == SP_TENSOR) hand_over_tensor(t, ins, b, by);
  for (u32 r = 0; r < t->k->ring.n; r++) hand_over_stages(t, ins, r, by);
}

// ---- waits and arrivals for one stage

static void may_be_behind(Threads *t, const Ins *ins, const Stage *s, const char *name) {
  Diag *d = th_missing(t, PROOF_PHASES, ins->span,
                       "one thread arrives for '%s' here, and another warp may still wait for its "
                       "stage: two phases later it would wait for ever (M6)",
                       name);
  th_other_end(t, d, s->site, "it waits here");
}

// An arrival at the full barrier.
static void arrive_full(Threads *t, const Ins *ins, Stage *s, Arrivers by) {
  u32 ring = ins->arg[0];
  const char *name = t->k->ring.at[ring].name;
  u8 all = 0;
  for (u32 r = 0; r < t->k->role.n; r++) all |= sc_ring_use(t->k, r, ring);
  if (s->at.raw & DID_WRITE && all & (USE_COPY | USE_ASYNC)) want_fence(t, ins, name, false);
  if (by == BY_ONE && s->at.apart) want_all(t, ins, name, s->at.writer.pc);
  if (by == BY_ONE && !s->past && !s->elected) may_be_behind(t, ins, s, name);
  if (by == BY_WARPS && s->elected)
    th_missing(t, PROOF_PHASES, ins->span,
               "warps arrive for '%s' here, and only thread 0 has waited for its stage (M4)", name);
  hand_over(t, ins, by);
}

// Where the role fills the ring by copies alone, thread 0 waits for the empty stage; else all do.
// If the plan says so, thread 0 arrives with the bytes at once.
void th_acquired(Threads *t, const Ins *ins) {
  u32 ring = ins->arg[0];
  Stage *s = th_fill(t->now, ring);
  bool elected = sc_only_copies(t->k, t->role, ring) && !t->single;
  if (t->now->open[ring]) th_unsure(t, "a fill is open already, of", t->k->ring.at[ring].name);
  *s = (Stage){.product = LANDED, .copy = LANDED, .site = t->pc, .past = t->single};
  s->elected = elected;
  s->at.heard = t->now->heard;
  t->now->open[ring] = true;
  if (elected && t->k->ring.at[ring].owner == SC_NONE) th_heard(t);
  if (!ins->plan.arrivals || !ins->plan.bytes) return;
  arrive_full(t, ins, s, t->single ? BY_THREADS : BY_ONE);
  s->told = true;
}

void th_committed(Threads *t, const Ins *ins) {
  u32 ring = ins->arg[0];
  Stage *s = th_fill(t->now, ring);
  if (!t->now->open[ring]) th_unsure(t, "no fill is open, of", t->k->ring.at[ring].name);
  if (ins->plan.arrivals) {  // else nothing is emitted
    th_order(t, ins);
    arrive_full(t, ins, s, arrivers(t, ins));
  }
  t->now->open[ring] = false;
}

void th_waited(Threads *t, const Ins *ins) {
  u32 ring = ins->arg[0], held = t->now->held[ring];
  if (held == MOST_HOLDS) {
    th_unsure(t, "more stages are held than this proof tells apart, of", t->k->ring.at[ring].name);
    return;
  }
  *th_stage(t->now, ring, held) =
      (Stage){.product = LANDED, .copy = LANDED, .site = t->pc, .past = t->single};
  th_stage(t->now, ring, held)->at.heard = t->now->heard;
  t->now->held[ring]++;
}

static void given_away(Threads *t, const Ins *ins, const Stage *s, const char *name) {
  Diag *d = NULL;
  if (s->product != LANDED || s->copy != LANDED)
    d = th_missing(t, PROOF_THREADS, ins->span, "'%s' is released here while %s may still read it",
                   name, s->product != LANDED ? "a product" : "a copy out");
  th_other_end(t, d, s->product != LANDED ? s->by_product : s->by_copy, "issued here");
}

static bool filled_by_copies(const Threads *t, u32 ring) {
  for (u32 r = 0; r < t->k->role.n; r++)
    if (sc_ring_use(t->k, r, ring) & USE_COPY) return true;
  return false;
}

// An arrival at the empty barrier, for the oldest stage that is held.
void th_released(Threads *t, const Ins *ins) {
  u32 ring = ins->arg[0];
  const char *name = t->k->ring.at[ring].name;
  Stage *s = th_stage(t->now, ring, 0);
  th_order(t, ins);
  Arrivers by = arrivers(t, ins);
  if (!t->now->held[ring]) {
    th_unsure(t, "no stage is held, of", name);
    return;
  }
  given_away(t, ins, s, name);
  if (s->at.raw && filled_by_copies(t, ring)) want_fence(t, ins, name, false);
  if (by == BY_ONE && s->at.apart)
    want_all(t, ins, name, s->at.apart & DID_WRITE ? s->at.writer.pc : s->at.reader.pc);
  if (by == BY_ONE && !s->past && !t->warps_fill[ring]) may_be_behind(t, ins, s, name);
  hand_over(t, ins, by);
  t->now->held[ring]--;
  for (u32 h = 0; h < t->now->held[ring]; h++) s[h] = s[h + 1];
}

// Turns over instances: each thread arrives. Over CTAs: the threads meet, and thread 0 runs a fence
// and passes the turn on; what was copied out under it must be visible.
void th_passed(Threads *t, const Ins *ins) {
  u32 turn = ins->arg[0];
  t->now->turns &= ~th_turn_bit(turn);
  if (t->k->turn.at[turn].axis == SC_NONE) {
    hand_over(t, ins, BY_THREADS);
    return;
  }
  th_met(t);
  th_fenced(t, true);
  for (u32 b = 0; b < t->k->buf.n; b++) {
    const Tensor *x = &t->now->tensor[b];
    if (t->k->buf.at[b].space != SP_TENSOR || !(x->turns & th_turn_bit(turn))) continue;
    Diag *d = th_missing(t, PROOF_THREADS, ins->span,
                         "'%s' is passed on here while a copy out to '%s' may not be visible",
                         t->k->turn.at[turn].name, t->k->buf.at[b].name);
    th_other_end(t, d, x->by_copy, "it is issued here");
  }
}

// The tile may be the CTA's last, and engines must be done with its shared memory by then (T6): so
// no stage may be held or open here.
void th_ended(Threads *t) {
  for (u32 r = 0; r < t->k->ring.n; r++)
    if (t->now->held[r] || t->now->open[r])
      th_unsure(t, "a tile ends with a stage, of", t->k->ring.at[r].name);
}
