// barrier.c - named barriers of a CTA [N1, N2], the barrier of a cluster, and the CTA's pool of
// registers (setmaxnreg, [R1]). PTX ISA 9.0, 9.7.13.1, 9.7.13.4, 9.7.19.5.
#include "model.h"

// ---- named barriers: warps arrive

static void complete(Named *b) {
  md_drop(b->done);
  b->done = md_noted(md_settle(&b->brings), b->comp, b->generation + 1);
  b->generation++;
  b->arrived = 0;
  b->last_any = b->any;
  b->any = 0;
  for (u32 i = 0; i < COUNT(b->warps); i++) b->warps[i] = 0;
  md_wake(&b->waiters);
}

// The warp's lanes are all here. An arrival belongs to the next use of the barrier only if it comes
// after the one before: else hardware would count it there [N2].
static void arrive(Thread *t, Named *b, u32 id, u32 threads) {
  u32 warp = t->number / LANES;
  if (!b->comp) b->comp = md_component(t->cta->gang);
  if (!threads || threads % LANES || threads > t->cta->threads)
    md_fault("N1", t->where, "named barrier %u is for %u threads: not whole warps of the CTA", id,
             threads);
  if (b->arrived && b->threads != threads)
    md_fault("N1", t->where, "%s comes to named barrier %u for %u threads, others came for %u",
             md_thread_name(t), id, threads, b->threads);
  if (b->warps[warp / 32] >> warp % 32 & 1)
    md_fault("N2", t->where,
             "%s comes to named barrier %u again before its generation %u is complete",
             md_thread_name(t), id, b->generation);
  if (!md.lenient && !md_knows(t->mind, b->comp, b->generation))
    md_fault("N2", t->where,
             "%s comes to named barrier %u for generation %u, and nothing tells it that generation "
             "%u is complete",
             md_thread_name(t), id, b->generation, b->generation - 1);
  b->threads = threads;
  b->warps[warp / 32] |= 1u << warp % 32;
  b->arrived += LANES;
  for (u32 i = 0; i < LANES; i++) {
    if (!md.options.together || !i) md_tell(&b->brings, t->warp->lane[i].mind);
  }
  if (b->arrived == threads) complete(b);
}

static Named *named(Thread *t, u32 id) {
  if (id >= NAMED_BARRIERS) md_fault("N1", t->where, "there is no named barrier %u", id);
  return &t->cta->named[id];
}

// The lanes meet, and the last one arrives for all. The generation that the warp arrived for.
static u32 warp_arrives(Thread *t, u32 id, u32 threads, u32 op, bool value) {
  Named *b = named(t, id);
  u32 *lane = t->warp->value[t->warp->round & 1];
  lane[t->number % LANES] = value;
  if (md_meet(op, (u64)id << 32 | threads)) {
    for (u32 i = 0; i < LANES; i++) b->any |= lane[i];
    t->warp->generation = b->generation;
    arrive(t, b, id, threads);
    md_part();
  }
  return t->warp->generation;
}

static u32 sync(Thread *t, u32 id, u32 threads, bool value) {
  u32 generation = warp_arrives(t, id, threads, MEET_BAR_SYNC, value);
  Named *b = named(t, id);
  while (b->generation == generation)
    md_wait(&b->waiters,
            (Waiting){.what = WAITS_NAMED, .a = id, .b = generation, .where = t->where});
  md_learn(t->mind, b->done);
  return b->last_any;
}

void md_bar_sync(unsigned id, unsigned threads) {
  md.self->where = HERE;
  sync(md.self, id, threads, false);
}

int md_any_together(int x, unsigned id, unsigned threads) {
  md.self->where = HERE;
  return (int)sync(md.self, id, threads, x != 0);
}

void md_bar_arrive(unsigned id, unsigned threads) {
  md.self->where = HERE;
  warp_arrives(md.self, id, threads, MEET_BAR_ARRIVE, false);
}

void md_cta_sync(void) {
  md.self->where = HERE;
  sync(md.self, 0, md.self->cta->threads, false);
}

int md_any_gave_up(const unsigned *waits, unsigned barrier) {
  md.self->where = HERE;
  return (int)sync(md.self, barrier, GROUP_THREADS, *(const volatile unsigned *)waits != 0);
}

// ---- the barrier of a cluster: threads arrive, one by one; those that have left count as arrived

void md_cluster_check(Gang *g) {
  if (!g->arrived || g->arrived < g->live) return;
  md_drop(g->done);
  g->done = md_settle(&g->brings);
  g->arrived = 0;
  g->generation++;
  md_wake(&g->waiters);
}

void md_cluster_sync(void) {
  Thread *t = md.self;
  Gang *g = t->cta->gang;
  t->where = HERE;
  u32 generation = g->generation;
  md_tell(&g->brings, t->mind);
  g->arrived++;
  md_cluster_check(g);
  while (g->generation == generation)
    md_wait(&g->waiters, (Waiting){.what = WAITS_CLUSTER, .where = t->where});
  md_learn(t->mind, g->done);
}

// ---- registers

void md_setmaxnreg(int registers, int increase) {
  Thread *t = md.self;
  Warp *w = t->warp;
  Cta *c = t->cta;
  t->where = HERE;
  u32 n = (u32)registers;
  md_converge(MEET_REGISTERS, n * 2 + (increase != 0));
  if (n < 24 || n > 256 || n % 8)
    md_fault("R1", t->where, "setmaxnreg asks for %u registers: 24 to 256, in eights", n);
  if (t->number % LANES == 0) {
    if (increase ? n < w->registers : n > w->registers)
      md_fault("R1", t->where, "setmaxnreg.%s to %u registers, but the warp has %u",
               increase ? "inc" : "dec", n, w->registers);
    while (increase && c->registers < (n - w->registers) * LANES)
      md_wait(&c->register_waiters,
              (Waiting){.what = WAITS_REGISTERS, .a = n, .b = c->registers, .where = t->where});
    c->registers += w->registers * LANES;
    c->registers -= n * LANES;
    w->registers = n;
    if (!increase) md_wake(&c->register_waiters);
  }
  md_converge(MEET_REGISTERS, n * 2 + (increase != 0));
}
