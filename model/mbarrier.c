// mbarrier.c - mbarriers [M1 to M6] (PTX ISA 9.0, 9.7.13.15). A phase is complete when no arrival
// is pending and as many bytes have come as were expected; a wait names it by its parity, passes if
// the newest phase that is complete has that parity, and may fail for no reason.
//
// Three conditions make one run speak for all (README.md): whoever contributes to a phase knows
// that the one before is complete [M4]; whoever waits for a phase does, too, else the parity could
// be that of an older one [M5]; and what completes the next phase comes after all waits for this
// one, else a slow waiter misses it [M6].
#include <stdlib.h>

#include "model.h"

enum { MBAR_BYTES = 8, MAX_TX = (1 << 20) - 1 };

Mbar *md_mbar(Cta *c, u32 at) {
  const void *where = md.self->where;
  if (at % MBAR_BYTES) md_fault("M1", where, "an mbarrier is not at a multiple of 8 bytes");
  Mbar *b = c->mbar[at / MBAR_BYTES];
  if (!b) md_fault("M1", where, "%s is no mbarrier", md_shared_name(c, at));
  return b;
}

// Does the thread know that it was initialised; from another CTA or for an engine, with the fence
// after it [M1]?
static void check_init(Thread *t, Cta *c, const Mbar *b, bool fenced) {
  if (md.lenient) return;
  u32 epoch = fenced ? b->fence_epoch : b->init_epoch;
  if (fenced && !epoch)
    md_fault("M1", t->where, "%s uses %s, whose initialisation is not fenced (fence.mbarrier_init)",
             md_thread_name(t), md_mbar_name(c, b->at, b->phase));
  if (!md_knows(t->mind, b->init_comp, epoch))
    md_fault("M1", t->where, "%s uses %s, and nothing tells it that it has been initialised",
             md_thread_name(t), md_mbar_name(c, b->at, b->phase));
}

void md_mbar_init(unsigned bar, unsigned count) {
  Thread *t = md.self;
  Cta *c = t->cta;
  t->where = HERE;
  u32 at = md_offset(c, bar, MBAR_BYTES);
  if (at % MBAR_BYTES) md_fault("M1", t->where, "an mbarrier is not at a multiple of 8 bytes");
  if (c->mbar[at / MBAR_BYTES])
    md_fault("M1", t->where, "%s is initialised twice", md_mbar_name(c, at, 0));
  if (!count || count > MAX_TX)
    md_fault("M2", t->where, "%s is initialised for %u arrivals", md_shared_name(c, at), count);
  Mbar *b = md_new(sizeof *b);
  *b = (Mbar){.at = at,
              .count = count,
              .pending = count,
              .comp = md_component(c->gang),
              .init_comp = t->mind->comp,
              .init_epoch = t->mind->epoch};
  b->waited = md_new(2 * c->gang->threads * sizeof *b->waited);
  b->epoch = b->waited + c->gang->threads;
  c->mbar[at / MBAR_BYTES] = b;
  APPEND(&c->bars, b);
  for (u32 i = 0; i < MBAR_BYTES / 4; i++) {
    Cell *cell = &c->cell[at / 4 + i];
    if (cell->write || cell->set)
      md_fault("R10", t->where, "%s is initialised where threads or engines have other data",
               md_mbar_name(c, at, 0));
    *cell = (Cell){STAMP_MBARRIER, 0};
  }
}

void md_mbar_init_fence(void) {
  Thread *t = md.self;
  t->where = HERE;
  for (u32 i = 0; i < t->cta->bars.n; i++) {
    Mbar *b = t->cta->bars.at[i];
    if (b->init_comp == t->mind->comp && !b->fence_epoch) b->fence_epoch = t->mind->epoch;
  }
}

// ---- phases

// All threads that waited for the phase before are known to have passed [M6].
static void check_waits(Cta *c, const Mbar *b, const Know *all, const void *where) {
  for (u32 i = 0; i < c->gang->threads && !md.lenient; i++) {
    if (b->waited[i] != b->phase + 1) continue;
    const Thread *t = &c->gang->cta[i / c->threads].thread[i % c->threads];
    if (md_clock(all, CAUSED)[t->mind->comp] >= b->epoch[i]) continue;
    md_fault("M6", where,
             "%s can be complete before %s has seen that the generation before is: that wait would "
             "miss it",
             md_mbar_name(c, b->at, b->phase), md_thread_name(t));
  }
}

// (Bytes that an engine brings come at any time after it was asked for them.)
static void note_who_came(Mbar *b) {
  Brings *came = &b->came[b->phase % 2];
  bool engines = false;
  came->n = 0;
  for (u32 i = 0; i < b->brings.n; i++) {
    const Bring *x = &b->brings.at[i];
    engines |= x->causal;
    APPEND(came, ((Bring){.comp = x->comp, .epoch = x->epoch}));
  }
  if (engines) came->n = 0;
}

// Does the thread know that so many phases are complete, of which the last is one of the two newest
// ones? It has been told, or it knows of all who arrived in that.
static bool has_heard(const Thread *t, const Mbar *b, u32 phases) {
  if (md_knows(t->mind, b->comp, phases)) return true;
  const Brings *came = &b->came[(phases - 1) % 2];
  u32 known = 0;
  for (u32 i = 0; i < came->n; i++) known += md_knows(t->mind, came->at[i].comp, came->at[i].epoch);
  return known && known == came->n;
}

static void settle(Cta *c, Mbar *b, const void *where) {
  if (b->pending || b->tx) return;
  if (b->flying)
    md_fault(
        "M3", where,
        "%s is complete while %u cop%s to it %s on the way: fewer bytes are expected than come",
        md_mbar_name(c, b->at, b->phase), b->flying, b->flying == 1 ? "y" : "ies",
        b->flying == 1 ? "is" : "are");
  note_who_came(b);
  Know *all = md_settle(&b->brings);
  check_waits(c, b, all, where);
  md_drop(b->done);
  b->done = md_noted(all, b->comp, b->phase + 1);
  b->phase++;
  b->pending = b->count;
  md_wake(&b->waiters);
}

// A contribution to a phase comes after the phase before [M4].
static void check_order(Thread *t, Cta *c, const Mbar *b) {
  if (md.lenient || has_heard(t, b, b->phase)) return;
  md_fault("M4", t->where,
           "%s contributes to %s, and nothing tells it that generation %u is complete",
           md_thread_name(t), md_mbar_name(c, b->at, b->phase), b->phase - 1);
}

static void arrive(Thread *t, Cta *c, Mbar *b) {
  check_order(t, c, b);
  if (!b->pending)
    md_fault("M2", t->where, "%s arrives at %s, which has all of its %u arrivals",
             md_thread_name(t), md_mbar_name(c, b->at, b->phase), b->count);
  md_tell(&b->brings, t->mind);
  b->pending--;
}

// What a thread does with an mbarrier of its own CTA begins.
static Mbar *own(Thread *t, unsigned bar, const void *where) {
  t->where = where;
  md_pause();
  Mbar *b = md_mbar(t->cta, md_offset(t->cta, bar, MBAR_BYTES));
  check_init(t, t->cta, b, false);
  return b;
}

void md_mbar_arrive(unsigned bar, int rank) {
  Thread *t = md.self;
  t->where = HERE;
  md_pause();
  Cta *c = md_cta(t, rank);
  Mbar *b = md_mbar(c, md_offset(t->cta, bar, MBAR_BYTES));
  check_init(t, c, b, c != t->cta);
  arrive(t, c, b);
  settle(c, b, t->where);
}

void md_mbar_expect(unsigned bar, unsigned bytes, int arrives) {
  Thread *t = md.self;
  Cta *c = t->cta;
  Mbar *b = own(t, bar, HERE);
  if (arrives) arrive(t, c, b);
  else check_order(t, c, b);
  b->tx += bytes;
  if (b->tx > MAX_TX)
    md_fault("M3", t->where, "%s is told to expect 2^20 bytes or more",
             md_mbar_name(c, b->at, b->phase));
  settle(c, b, t->where);
}

// ---- engines

void md_mbar_aim(Thread *t, Cta *c, Mbar *b) {
  check_init(t, c, b, true);
  check_order(t, c, b);
  b->flying++;
  b->async_phase = b->phase + 1;
}

void md_mbar_land(Cta *c, Mbar *b, u32 bytes, u32 phase, const Bring *cause, const void *where) {
  if (b->phase != phase)
    md_fault("M3", where,
             "a copy lands on %s: generation %u, which it was for, was complete before",
             md_mbar_name(c, b->at, b->phase), phase);
  APPEND(&b->brings, *cause);
  md_keep(cause->know);
  b->flying--;
  b->tx -= bytes;
  settle(c, b, where);
}

void md_mbar_leave(Cta *c, const Mind *all) {
  for (u32 i = 0; i < c->bars.n && !md.lenient; i++) {
    Mbar *b = c->bars.at[i];
    if (b->flying || !md_knows(all, b->comp, b->async_phase))
      md_fault("T6", md.self->where,
               "CTA %u ends, and nobody in it has waited for the copies of generation %u of %s",
               c->rank, b->async_phase - 1, md_mbar_name(c, b->at, b->async_phase - 1));
    if (b->tx)
      md_fault("M3", md.self->where, "CTA %u ends, and %s expects %lld more bytes", c->rank,
               md_mbar_name(c, b->at, b->phase), (long long)b->tx);
  }
}

void md_mbar_free(Cta *c) {
  for (u32 i = 0; i < c->bars.n; i++) {
    Mbar *b = c->bars.at[i];
    for (u32 j = 0; j < b->brings.n; j++) md_drop(b->brings.at[j].know);
    md_drop(b->done);
    c->mbar[b->at / MBAR_BYTES] = NULL;
    free(b->brings.at);
    free(b->came[0].at);
    free(b->came[1].at);
    free(b->waited);
    free(b);
  }
  c->bars.n = 0;
}

// ---- waits

static bool passes(const Mbar *b, u32 parity) { return (b->phase ^ parity) & 1; }

// The wait ends: which phase was it for, and was that the one that is meant?
static void passed(Thread *t, Cta *c, Mbar *b) {
  u32 generation = b->phase - 1;
  if (b->phase && !md.lenient && !has_heard(t, b, generation))
    md_fault("M5", t->where,
             "%s passes its wait for %s, and nothing tells it that generation %u is complete: the "
             "parity is that of "
             "%s as well",
             md_thread_name(t), md_mbar_name(c, b->at, generation), generation - 1,
             generation < 2 ? "a new mbarrier" : "the generation before it");
  if (!md.lenient && b->waited[t->id] == b->phase + 1)
    md_fault("M5", t->where,
             "%s passes a wait for %s that it has passed before: not the one that it means",
             md_thread_name(t), md_mbar_name(c, b->at, generation));
  if (b->phase) md_learn(t->mind, b->done);
  b->waited[t->id] = b->phase + 1;
  b->epoch[t->id] = t->mind->epoch;
}

static bool try_wait(Thread *t, Cta *c, Mbar *b, u32 parity) {
  if (!passes(b, parity)) return false;
  if (md.options.policy == POLICY_RANDOM && md_random() % 8 == 0)
    md_pause();  // it may fail, and be tried again
  if (!passes(b, parity)) return false;
  passed(t, c, b);
  return true;
}

void md_mbar_wait(unsigned bar, unsigned parity) {
  Thread *t = md.self;
  Mbar *b = own(t, bar, HERE);
  while (!try_wait(t, t->cta, b, parity))
    md_wait(&b->waiters, (Waiting){.what = WAITS_MBAR, .a = b->at, .b = parity, .where = t->where});
}

// ---- waits that are given up (--debug-waits)

enum { WORDS = 4 };  // of an entry: CTA + 1, thread, what it saw, the generation

void md_give_up(Thread *t, u32 *waits, u32 entry, u32 saw, u32 generation) {
  u32 *at = waits + (size_t)(entry + t->number / LANES) * WORDS;
  if (!t->waits.silent && !at[0]) {
    at[0] = t->cta->index[0] + 1;
    at[1] = t->number;
    at[2] = saw;
    at[3] = generation;
  }
  waits[0] = 1;
  md.lenient = true;
}

void md_mbar_wait_for(unsigned bar, unsigned generation, unsigned *waits, unsigned entry) {
  Thread *t = md.self;
  Mbar *b = own(t, bar, HERE);
  Waiting w = {.what = WAITS_MBAR,
               .bounded = true,
               .silent = waits[0] != 0,
               .a = b->at,
               .b = generation & 1,
               .where = t->where};
  while (!try_wait(t, t->cta, b, w.b)) {
    md_wait(&b->waiters, w);
    if (!t->given_up) continue;
    t->given_up = false;
    md_give_up(t, waits, entry, bar, generation);
    return;
  }
}

int md_gave_up(const unsigned *waits) {
  md.self->where = HERE;
  return *(const volatile unsigned *)waits != 0;
}
