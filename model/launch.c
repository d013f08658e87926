// launch.c - a launch: as many clusters as the multiprocessors have room for are there at once, and
// the others follow. In: what cuLaunchKernel got. Out: memory as the kernel leaves it, or a fault.
#include <stdlib.h>
#include <string.h>

#include "driver.h"

Model md;
MdIndex md_thread_index, md_cta_index, md_grid_size;

enum {
  SHARED_BASE =
      1024,  // where dynamic shared memory begins in a CTA's window: below is the system's
  USUAL_SHARED = 48 << 10,
  ALL_REGISTERS = 65536,
  ASYNC_COMPONENTS =
      256,  // for each CTA: mbarriers, named barriers, warpgroups, threads with bulk groups
};

static Fiber *fibers;
static u32 fiber_count;

static u32 rank_window(const Cta *c) { return c->rank << 24 | SHARED_BASE; }

unsigned md_shared(void) { return rank_window(md.self->cta); }
int md_cta_rank(void) { return (int)md.self->cta->rank; }

u32 md_offset(const Cta *c, u32 at, u32 bytes) {
  u32 first = rank_window(c);
  if (at < first || at - first > c->bytes || bytes > c->bytes - (at - first))
    md_fault("R8", md.self->where,
             "%s reaches for %u bytes at 0x%x: its CTA has %u bytes of shared memory, from 0x%x on",
             md_thread_name(md.self), bytes, at, c->bytes, first);
  return at - first;
}

u32 md_component(Gang *g) {
  if (g->comps == md.comps)
    md_fault("model", NULL, "a CTA has more than %d barriers and the like", ASYNC_COMPONENTS);
  return g->comps++;
}

// ---- from one launch to the next

// Launches that may overlap run one after the other here, so it is asserted that their threads
// wait: those that touch tensors, and all others, for a later launch that waits for this one takes
// the end of those before it for granted.
void md_behind(const Thread *t) {
  if (!t->behind && !md.lenient)
    md_fault("G1", t->where,
             "%s touches global memory, and the launch before may still run: griddepcontrol.wait "
             "comes first",
             md_thread_name(t));
}

void md_grid_wait(void) {
  md.self->where = HERE;
  md.self->behind = true;
}

void md_grid_go(void) { md.self->where = HERE; }

// ---- lists

void md_not_promised(const int *at, long long least, long long end) {
  const char *name = md_global_name((uintptr_t)at);
  if (*at >= least && *at < end)
    md_fault("promise", HERE,
             "the element at %s is %d, less than the one before, but it is declared rising", name,
             *at);
  md_fault("promise", HERE, "the element at %s is %d, but it is declared in %lld .. %lld", name,
           *at, least, end);
}

// ---- from one CTA to another

Cta *md_cta(Thread *t, int rank) {
  Gang *g = t->cta->gang;
  if (rank < 0 || (u32)rank == t->cta->rank) return t->cta;
  if ((u32)rank >= g->ctas)
    md_fault("T6", t->where, "there is no CTA %d in a cluster of %u", rank, g->ctas);
  Cta *c = &g->cta[rank];
  if (md.lenient) return c;
  if (!c->live)
    md_fault("T6", t->where, "%s touches CTA %d of its cluster, which has ended", md_thread_name(t),
             rank);
  if (!md_knows(t->mind, c->thread[0].mind->comp, 1))
    md_fault("T6", t->where,
             "%s touches CTA %d of its cluster, and nothing tells it that this one has begun",
             md_thread_name(t), rank);
  c->visit[t->mind->comp] = t->mind->epoch;
  return c;
}

static void check_visits(const Cta *c, const Mind *all) {
  for (u32 i = 0; i < c->gang->threads && !md.lenient; i++) {
    if (md_knows(all, i, c->visit[i])) continue;
    const Thread *t = &c->gang->cta[i / c->threads].thread[i % c->threads];
    md_fault("T6", t->where, "%s touches CTA %u, and nothing keeps that one from ending before",
             md_thread_name(t), c->rank);
  }
}

// ---- threads

static void cta_ended(Cta *c) {
  Mind all = {md_settle(&c->leaving), MD_NONE, 0, {0}};
  md_mbar_leave(c, &all);
  check_visits(c, &all);
  md_drop(all.know);
}

static void ended(Thread *t) {
  Warp *w = t->warp;
  t->where = NULL;
  if (w->met) {
    md_note(w->waiters->where, "%s waits at %s for all lanes of the warp",
            md_thread_name(w->waiters), md_meet_name(w->op));
    md_fault("W5", NULL, "%s ends while lanes of its warp wait for it", md_thread_name(t));
  }
  if (t->fragments)
    md_fault("W2", NULL, "%s ends, and has not waited for all of its products", md_thread_name(t));
  if (!t->behind && !md.lenient)
    md_fault("G1", NULL, "%s ends, and has not waited for the launch before, which may still run",
             md_thread_name(t));
  md_bulk_ended(t);
  md_tell(&t->cta->leaving, t->mind);
  t->live = false;
  w->ended++;
  w->ready &= ~(1u << t->number % LANES);
  Gang *g = t->cta->gang;
  if (!--t->cta->live) cta_ended(t->cta);
  if (!--g->live) md.ended = true;
  md_cluster_check(g);
}

// A stack goes on to the next thread that gets it, of this launch or a later one.
void md_thread_main(void *first) {
  (void)first;
  for (;;) {
    md.launch->f->kernel->call(md.launch->param);
    ended(md.self);
    md_fiber_leave(md.self->fiber);
  }
}

// ---- clusters

static void drop_all(Brings *b) {
  for (u32 i = 0; i < b->n; i++) md_drop(b->at[i].know);
  b->n = 0;
}

static void forget_cta(Cta *c) {
  md_mbar_free(c);
  md_products_free(c);
  for (u32 i = 0; i < NAMED_BARRIERS; i++) {
    Named *b = &c->named[i];
    Brings brings = b->brings;
    drop_all(&brings);
    md_drop(b->done);
    *b = (Named){.brings = brings};
  }
  drop_all(&c->leaving);
  for (u32 i = 0; i < c->threads; i++) {
    md_drop(c->thread[i].own.know);
    c->thread[i].own.know = NULL;
    c->thread[i].bulk.n = 0;
  }
  for (u32 i = 0; i < c->threads / LANES; i++) {
    md_drop(c->warp[i].mind.know);
    c->warp[i].mind.know = NULL;
  }
}

static void forget_gang(Gang *g) {
  md_finish_events(g);
  for (u32 i = 0; i < g->ctas; i++) forget_cta(&g->cta[i]);
  drop_all(&g->brings);
  md_drop(g->done);
  g->done = NULL;
}

static void start_thread(Cta *c, u32 i) {
  Thread *t = &c->thread[i];
  Thread was = *t;
  md_fiber_forget(was.fiber, was.low ? was.low : was.fiber->stack);
  memset(t, 0, sizeof *t);
  t->fiber = was.fiber;
  t->bulk = was.bulk;
  t->number = i;
  t->id = c->rank * c->threads + i;
  t->cta = c;
  t->warp = &c->warp[i / LANES];
  t->live = true;
  t->behind = !md.launch->overlaps;
  t->low = t->fiber->stack + STACK_BYTES;
  t->own = (Mind){.comp = t->id, .epoch = 1};
  t->mind = md.options.together ? &t->warp->mind : &t->own;
  APPEND(&t->bulk, ((BulkGroup){0}));
  md_start(t);
}

static void start_cta(Cta *c, u64 number, u32 registers) {
  const u32 *grid = md.launch->grid;
  c->index[0] = (u32)(number % grid[0]);
  c->index[1] = (u32)(number / grid[0] % grid[1]);
  c->index[2] = (u32)(number / grid[0] / grid[1]);
  memset(c->smem, 0xff, c->bytes);
  memset(c->cell, 0, (c->bytes + 3) / 4 * sizeof *c->cell);
  memset(c->visit, 0, c->gang->threads * sizeof *c->visit);
  c->live = c->threads;
  c->registers = ALL_REGISTERS - registers * c->threads;
  c->register_waiters = NULL;
  for (u32 i = 0; i < c->threads / LANES; i++) {
    Warp *w = &c->warp[i];
    u32 index = w->index;
    *w = (Warp){.lane = &c->thread[i * LANES], .index = index, .registers = registers};
    w->mind = (Mind){.comp = c->rank * c->threads + i * LANES, .epoch = 1};
  }
  for (u32 i = 0; i < c->threads; i++) start_thread(c, i);
  for (u32 i = 0; i < c->threads / GROUP_THREADS; i++)
    c->tensor[i] = (Tensor){.cta = c, .thread = &c->thread[i * GROUP_THREADS]};
}

static void start_gang(Gang *g) {
  u64 first = md.begun++ * g->ctas;
  u32 registers = ALL_REGISTERS / g->cta[0].threads / 8 * 8;
  g->id = md.next_gang++;
  g->comps = g->threads;
  g->live = g->threads;
  g->arrived = g->generation = 0;
  g->waiters = NULL;
  g->busy = true;
  for (u32 i = 0; i < g->ctas; i++)
    start_cta(&g->cta[i], first + i, registers < 255 ? registers : 255);
}

bool md_refill(void) {
  bool any = false;
  md.ended = false;
  for (u32 i = 0; i < md.gangs; i++) {
    Gang *g = &md.gang[i];
    if (g->busy && !g->live) {
      forget_gang(g);
      g->busy = false;
    }
    if (!g->busy && md.begun < md.clusters) start_gang(g);
    any |= g->busy;
  }
  return any;
}

// ---- room

static void free_gangs(void) {
  for (u32 i = 0; i < md.gangs; i++) {
    for (u32 j = 0; j < md.gang[i].ctas && md.gang[i].cta; j++) {
      Cta *c = &md.gang[i].cta[j];
      for (u32 k = 0; k < c->threads && c->thread; k++) free(c->thread[k].bulk.at);
      for (u32 k = 0; k < NAMED_BARRIERS; k++) free(c->named[k].brings.at);
      free(c->smem);
      free(c->cell);
      free(c->mbar);
      free(c->bars.at);
      free(c->thread);
      free(c->warp);
      free(c->tensor);
      free(c->visit);
      free(c->leaving.at);
    }
    free(md.gang[i].brings.at);
    free(md.gang[i].cta);
  }
  free(md.gang);
  free(md.ready);
  md.gang = NULL;
  md.ready = NULL;
  md.gangs = 0;
}

static void make_fibers(u32 n) {
  if (n <= fiber_count) return;
  fibers = md_more(fibers, n * sizeof *fibers);
  memset(fibers + fiber_count, 0, (n - fiber_count) * sizeof *fibers);
  fiber_count = n;
}

static void make_cta(Cta *c, Gang *g, u32 rank, u32 threads, u32 bytes, u32 first) {
  *c = (Cta){.gang = g, .rank = rank, .threads = threads, .bytes = bytes};
  c->smem = md_new(bytes + 16);
  c->cell = md_new((bytes + 3) / 4 * sizeof *c->cell + 16);
  c->mbar = md_new((bytes / 8 + 1) * sizeof(Mbar *));
  c->thread = md_new(threads * sizeof *c->thread);
  c->warp = md_new(threads / LANES * sizeof *c->warp);
  c->tensor = md_new((threads + GROUP_THREADS - 1) / GROUP_THREADS * sizeof *c->tensor);
  c->visit = md_new(g->threads * sizeof *c->visit);
  for (u32 i = 0; i < threads; i++) c->thread[i].fiber = &fibers[first + i];
  for (u32 i = 0; i < threads / LANES; i++) c->warp[i].index = first / LANES + i;
}

static void make_gangs(u32 gangs, u32 ctas, u32 threads, u32 bytes) {
  md.comps = ctas * (threads + ASYNC_COMPONENTS);
  md.warps = gangs * ctas * threads / LANES;
  make_fibers(gangs * ctas * threads);
  md.gang = md_new(gangs * sizeof *md.gang);
  md.ready = md_new((md.warps + 63) / 64 * sizeof *md.ready);
  md.gangs = gangs;
  for (u32 i = 0; i < gangs; i++) {
    Gang *g = &md.gang[i];
    *g = (Gang){.ctas = ctas, .threads = ctas * threads};
    g->cta = md_new(ctas * sizeof *g->cta);
    for (u32 j = 0; j < ctas; j++)
      make_cta(&g->cta[j], g, j, threads, bytes, (i * ctas + j) * threads);
  }
}

// ---- the launch

int md_check_launch(const LaunchArgs *l) {
  const MdKernel *k = l->f->kernel;
  const char *name = l->f->name;
  u32 room = l->f->shared ? l->f->shared : USUAL_SHARED;
  if (!l->grid[0] || !l->grid[1] || !l->grid[2])
    return dr_refuse("a grid of %u x %u x %u CTAs for '%s': each must be 1 at least", l->grid[0],
                     l->grid[1], l->grid[2], name);
  if (l->grid[0] % k->cluster)
    return dr_refuse("a grid of %u CTAs for '%s', whose clusters have %u: it must be a multiple",
                     l->grid[0], name, k->cluster);
  if (l->block[0] > k->threads)
    return dr_refuse("a CTA of %u threads for '%s', which has __launch_bounds__(%u)", l->block[0],
                     name, k->threads);
  if (!l->block[0] || l->block[0] % LANES || l->block[1] != 1 || l->block[2] != 1)
    return dr_refuse(
        "a CTA of %u x %u x %u threads for '%s': the model runs a multiple of %d in one dimension",
        l->block[0], l->block[1], l->block[2], name, LANES);
  if (l->shared > room)
    return dr_refuse(
        "%u bytes of shared memory for '%s', which has %u: cuFuncSetAttribute gives it more, %d at "
        "most",
        l->shared, name, room, MOST_SHARED);
  return 0;
}

static void prepare(const LaunchArgs *l) {
  const MdKernel *k = l->f->kernel;
  u32 room = md.options.sms / k->cluster ? md.options.sms / k->cluster : 1;
  md.launch = l;
  md.rng = md.options.seed * 0x9e3779b97f4a7c15u + 1;
  md.clusters = (u64)l->grid[0] * l->grid[1] * l->grid[2] / k->cluster;
  md.begun = 0;
  md.lenient = md.ended = false;
  md.event.n = 0;
  md.next_gang = md.first_gang = 1;
  md_grid_size = (MdIndex){l->grid[0], l->grid[1], l->grid[2]};
  md_forget_accesses();
  md_forget_global();
  make_gangs(md.clusters < room ? (u32)md.clusters : room, k->cluster, l->block[0], l->shared);
  md.laggard = (u32)(md.options.seed % (md.warps / md.gangs + ENGINES));
  if (md.laggard >= md.warps / md.gangs) md.laggard += md.warps - md.warps / md.gangs;
}

static void tidy(bool failed) {
  md_trap(false);
  if (failed) md.event.n = 0;
  for (u32 i = 0; i < md.gangs; i++) {
    if (md.gang[i].busy) forget_gang(&md.gang[i]);
  }
  for (u32 i = 0; i < fiber_count && failed; i++) fibers[i].fresh = true;
  md_turns_free();
  md_forget_joins();
  free_gangs();
  md.self = NULL;
  md.launch = NULL;
}

int md_launch(const LaunchArgs *l) {
  if (setjmp(md.home)) {
    tidy(true);
    return LAUNCH_FAILED;
  }
  md_fault_clear();
  const char *wrong = md_options(&md.options);
  if (wrong) md_fault("model", NULL, "%s", wrong);
  prepare(l);
  md_refill();
  md_trap(true);
  md_schedule();
  tidy(false);
  return 0;
}
