// program.c - what is worked out once a kernel before any of it runs: strips, sizes, the order of
// tiles, and the memory of every slot. From here on nothing is allocated.
#include "runtime/cpu/machine.h"

#include <string.h>
#include <unistd.h>

enum { DEFAULT_SMS = 4 };

static u64 times(Sc *sc, u64 a, i64 b) {
  u64 out;
  if (b < 0 || __builtin_mul_overflow(a, (u64)b, &out) || out > SIZE_MAX / 64)
    sc_unwind(sc, SCHEDC_ELIMIT);
  return out;
}

// ---- the grid

void sc_grid(Sc *sc, Grid *g, const Kernel *k, Env *env) {
  *g = (Grid){.axes = k->axis.n, .ctas = sc_cluster(k), .total = 1};
  for (u32 i = 0; i < g->axes; i++) {
    const Axis *a = &k->axis.at[i];
    i64 n = env_int(env, a->extent), c = a->cluster;
    g->tiles[i] = n < 0 ? 0 : n;
    g->units[i] = g->tiles[i] / c + (g->tiles[i] % c != 0);
    i64 s = a->section ? env_int(env, a->section) : 0;
    if (a->section) g->section[i] = s / c > 1 ? s / c : 1;
    g->total = times(sc, g->total, g->units[i]);
  }
}

// ---- maps

// Scratch of the plans of a kernel's maps.
typedef struct Finder {
  Env env;
  StripMaker *maker;
} Finder;

static bool tracked(const Program *p, u32 view) {
  return p->global.of[p->k->view.at[view].buf].cell;
}

// The condition that the map divides by 0, or reads outside of a list.
static Strip *failing(Program *p, Finder *f, const Map *m) {
  Map *fails = NEW(p->sc, Map);
  *fails = *m;
  fails->root = m->fails;
  fails->cond = 0;
  fails->dst = SC_NONE;
  fails->parts = false;
  return sc_strip(f->maker, fails);
}

static void need_scratch(Program *p, const Strip *s) {
  const size_t need = sc_strip_scratch(s);
  if (p->scratch < need) p->scratch = need;
}

static void plan_map(Program *p, Finder *f, u32 number) {
  const Map *m = &p->k->map.at[number];
  MapPlan *to = &p->map[number];
  if (to->strip) return;
  to->strip = sc_strip(f->maker, m);
  for (u32 i = 0; i < sc_views_of(m); i++) to->global |= tracked(p, sc_view_of(p->k, m, i));
  for (u32 v = 0; v < m->vars; v++) to->ext[v] = env_int(&f->env, m->var[v].extent);
  need_scratch(p, to->strip);
  if (!m->fails) return;
  to->fails = failing(p, f, m);
  need_scratch(p, to->fails);
}

static void plan_product(Program *p, const Ins *i) {
  const Product *x = &p->k->product.at[i->arg[0]];
  size_t need = sc_product_scratch(x);
  if (p->scratch < need) p->scratch = need;
  if (i->op == OP_MMA) p->acc[p->k->view.at[x->dst].buf] = true;
}

static void plan_code(Program *p, Finder *f, u32 role) {
  const Role *r = &p->k->role.at[role];
  for (u32 pc = 0; pc < r->code.n; pc++) {
    const Ins *i = &r->code.at[pc];
    if (sc_on_map(i->op)) plan_map(p, f, i->arg[0]);
    if (sc_on_product(i->op)) plan_product(p, i);
    if (i->op == OP_MAPADD || i->op == OP_COPYADD) p->talks = true;
    if (i->op == OP_TAKE && p->k->turn.at[i->arg[0]].axis != SC_NONE)
      p->talks = p->cta_turns = true;
  }
}

// ---- turns

static void plan_turns(Sc *sc, Program *p, Env *env) {
  const Kernel *k = p->k;
  p->counter = NEWS(sc, u32 *, k->turn.n + 1);
  p->left = NEWS(sc, Known *, k->turn.n + 1);
  p->keys = NEWS(sc, i64, k->turn.n + 1);
  p->token0 = NEWS(sc, u32, k->turn.n + 1);
  for (u32 t = 0; t < k->turn.n; t++) {
    const Turn *turn = &k->turn.at[t];
    p->token0[t] = p->tokens;
    if (turn->axis == SC_NONE) {
      p->tokens += sc_members(k, turn);
      continue;
    }
    p->keys[t] = turn->keys ? env_int(env, turn->keys) : 1;
    u64 n = times(sc, 1, p->keys[t] > 0 ? p->keys[t] : 0);
    for (u32 a = 0; a < p->grid.axes; a++) {
      if (a != turn->axis) n = times(sc, n, p->grid.units[a] * k->axis.at[a].cluster);
    }
    p->counter[t] = NEWS(sc, u32, n + 1);
    p->left[t] = NEWS(sc, Known, n + 1);
  }
}

// ---- the program

static void plan_sizes(Sc *sc, Program *p) {
  const Kernel *k = p->k;
  p->elems = NEWS(sc, u64, k->buf.n + 1);
  p->acc = NEWS(sc, bool, k->buf.n + 1);
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *b = &k->buf.at[i];
    if (b->space != SP_STAGE && b->space != SP_REG) continue;
    u64 n = b->partial ? 4 : 1;
    for (u32 d = 0; d < b->rank; d++) n = times(sc, n, b->ext[d] > 0 ? b->ext[d] : 1);
    p->elems[i] = n;
  }
  p->inst0 = NEWS(sc, u32, k->role.n + 1);
  for (u32 r = 0; r < k->role.n; r++) {
    p->inst0[r] = p->insts;
    p->insts += k->role.at[r].instances;
  }
  p->pool0 = NEWS(sc, u32, k->ring.n + 1);
  u64 words = 0;
  for (u32 r = 0; r < k->ring.n; r++) {
    const Ring *ring = &k->ring.at[r];
    u32 n = sc_ring_copies(k, ring);
    p->pool0[r] = p->pools;
    p->pools += n;
    words += (u64)n * ring->stages * (ring->parts + 2);
  }
  p->part_words = p->grid.ctas * p->insts * C_INST;
  p->words = p->part_words + (u32)times(sc, words, p->grid.ctas);
}

static void plan_jobs(Program *p) {
  u64 total = p->grid.total, sms = p->opt->sms ? p->opt->sms : DEFAULT_SMS;
  if (p->k->grid == GRID_DYNAMIC) p->talks = true;
  p->jobs = p->k->grid == GRID_PLAIN || total < sms ? total : sms;
  p->resident = p->talks ? (u32)(p->jobs < sms ? p->jobs : sms) : 1;
}

Program *sc_program(Sc *sc, const Kernel *k, const Binding *b, const schedc_run_options *opt) {
  Program *p = NEW(sc, Program);
  Finder f = {.maker = sc_strip_maker(sc, k)};
  env_init(sc, &f.env, k, b);
  p->sc = sc;
  p->k = k;
  p->b = b;
  p->opt = opt;
  p->drawer = sc_drawer(k);
  p->map = NEWS(sc, MapPlan, k->map.n + 1);
  sc_grid(sc, &p->grid, p->k, &f.env);
  plan_sizes(sc, p);
  plan_turns(sc, p, &f.env);
  sc_global(p);
  for (u32 r = 0; r < k->role.n; r++) plan_code(p, &f, r);
  plan_jobs(p);
  sc_product_kernel(p);
  atomic_store(&p->worst, UINT64_MAX);
  return p;
}

// ---- slots

static void make_barrier(Sc *sc, Program *p, Barrier *b, u32 *word) {
  b->word = (*word)++;
  b->done = NEWS(sc, u32, p->words);
  b->arriving = NEWS(sc, u32, p->words);
}

static void make_stage(Sc *sc, Program *p, Stage *s, const Ring *r, u32 *word) {
  s->parts = r->parts;
  s->part = NEWS(sc, Part, r->parts);
  for (u32 i = 0; i < r->parts; i++) {
    Part *part = &s->part[i];
    part->buf = r->part0 + i;
    part->elems = p->elems[part->buf];
    part->at = NEWS(sc, float, part->elems);
    part->word = (*word)++;
  }
  make_barrier(sc, p, &s->full, word);
  make_barrier(sc, p, &s->empty, word);
  s->empty.frees = s;
}

static void make_cta(Sc *sc, Program *p, Cta *c, u32 rank, u32 *word) {
  const Kernel *k = p->k;
  c->rank = rank;
  c->pool = NEWS(sc, Stage *, p->pools + 1);
  for (u32 r = 0; r < k->ring.n; r++) {
    const Ring *ring = &k->ring.at[r];
    u32 end = r + 1 < k->ring.n ? p->pool0[r + 1] : p->pools;
    for (u32 i = p->pool0[r]; i < end; i++) {
      c->pool[i] = NEWS(sc, Stage, ring->stages);
      for (u32 s = 0; s < ring->stages; s++) make_stage(sc, p, &c->pool[i][s], ring, word);
    }
  }
  c->token = NEWS(sc, u32, p->tokens + 1);
  c->token_clock = NEWS(sc, u32 *, p->tokens + 1);
  for (u32 t = 0; t < p->tokens; t++) c->token_clock[t] = NEWS(sc, u32, p->words);
}

static void make_inst(Sc *sc, Machine *m, Slot *s, u32 cta, u32 role, u32 number) {
  Program *p = m->p;
  const Kernel *k = p->k;
  u32 id = cta * p->insts + p->inst0[role] + number;
  Inst *in = &s->inst[id];
  *in = (Inst){.m = m, .slot = s, .cta = &s->cta[cta], .id = id, .role = role, .number = number};
  in->of = &k->role.at[role];
  env_init(sc, &in->env, k, p->b);
  in->env.inst = number;
  in->from = NEWS(sc, i64, k->loop.n + 1);
  in->to = NEWS(sc, i64, k->loop.n + 1);
  in->ring = NEWS(sc, Cursor, k->ring.n + 1);
  in->taken = NEWS(sc, u32, k->turn.n + 1);
  in->out_taken = NEWS(sc, u32, k->turn.n + 1);
  in->tally = NEWS(sc, Tally, 2 * k->ring.n + k->turn.n + 1);
  in->reg = NEWS(sc, Reg, k->buf.n + 1);
  in->clock = NEWS(sc, u32, p->words);
  for (u32 b = 0; b < k->buf.n; b++) {
    if (k->buf.at[b].space != SP_REG || k->buf.at[b].role != role) continue;
    in->reg[b].at = NEWS(sc, float, p->elems[b]);
    if (p->acc[b]) in->reg[b].aside = NEWS(sc, float, p->elems[b]);
  }
}

static void make_slot(Sc *sc, Machine *m, Slot *s) {
  Program *p = m->p;
  u32 ctas = p->grid.ctas, word = p->part_words;
  s->insts = ctas * p->insts;
  s->words = p->words;
  s->cta = NEWS(sc, Cta, ctas);
  s->inst = NEWS(sc, Inst, s->insts);
  for (u32 i = 0; i < COUNT(s->knew); i++) s->knew[i] = NEWS(sc, u32, s->words);
  for (u32 c = 0; c < ctas; c++) {
    make_cta(sc, p, &s->cta[c], c, &word);
    for (u32 r = 0; r < p->k->role.n; r++) {
      for (u32 i = 0; i < p->k->role.at[r].instances; i++) make_inst(sc, m, s, c, r, i);
    }
  }
}

Machine *sc_machine(Sc *sc, Program *p) {
  Machine *m = NEW(sc, Machine);
  m->p = p;
  m->slots = p->resident;
  m->slot = NEWS(sc, Slot, m->slots);
  m->op = NEWS(sc, Operand, p->k->view.n + 1);
  char *scratch = sc_new(sc, p->scratch + 64);
  m->scratch = (void *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
  for (u32 i = 0; i < m->slots; i++) make_slot(sc, m, &m->slot[i]);
  m->insts = m->slots * p->grid.ctas * p->insts;
  m->order = NEWS(sc, u32, m->insts + 1);
  for (u32 i = 0; i < m->insts; i++) m->order[i] = i;
  return m;
}

// ---- starting a job

static void reset_stage(const Kernel *k, const Ring *r, Stage *s, u32 words) {
  sc_barrier_init(&s->full, r->full_count, words);
  sc_barrier_init(&s->empty, r->empty_count, words);
  for (u32 i = 0; i < s->parts; i++) {
    Part *p = &s->part[i];
    if (!p->clean) sc_poison((Elem)k->buf.at[p->buf].elem, p->at, p->elems);
    p->clean = true;
    p->n = p->flying = 0;
  }
}

static void reset_cta(const Program *p, Cta *c) {
  const Kernel *k = p->k;
  for (u32 r = 0; r < k->ring.n; r++) {
    u32 end = r + 1 < k->ring.n ? p->pool0[r + 1] : p->pools;
    for (u32 i = p->pool0[r]; i < end; i++) {
      for (u32 s = 0; s < k->ring.at[r].stages; s++)
        reset_stage(k, &k->ring.at[r], &c->pool[i][s], p->words);
    }
  }
  memset(c->token, 0, p->tokens * sizeof *c->token);
  for (u32 t = 0; t < p->tokens; t++) memset(c->token_clock[t], 0, p->words * sizeof(u32));
  for (u32 t = 0; t < k->turn.n; t++) {
    if (k->turn.at[t].axis == SC_NONE && k->turn.at[t].members) c->token[p->token0[t]] = 1;
  }
}

static void reset_inst(const Program *p, Inst *in) {
  in->pc = in->at = 0;
  in->iter = in->unit = 0;
  in->heard.n = in->passer = 0;
  in->done = in->skips = in->surplus = false;
  in->mma_issued = in->mma_done = in->mma_waited = 0;
  in->out_issued = in->out_done = in->out_read = in->out_seen = 0;
  in->now = 1;
  in->row0 = in->row1 = 0;
  in->warps = 0;
  memset(in->ring, 0, p->k->ring.n * sizeof *in->ring);
  memset(in->taken, 0, p->k->turn.n * sizeof *in->taken);
  memset(in->out_taken, 0, p->k->turn.n * sizeof *in->out_taken);
  memset(in->tally, 0, (2 * p->k->ring.n + p->k->turn.n) * sizeof *in->tally);
  memset(in->clock, 0, p->words * sizeof *in->clock);
  for (u32 b = 0; b < p->k->buf.n; b++) {
    in->reg[b].flying = in->reg[b].written = in->reg[b].read = 0;
  }
}

void sc_slot_start(Machine *m, Slot *s, u64 job) {
  Program *p = m->p;
  s->busy = true;
  s->job = job;
  s->live = s->insts;
  s->events = 0;
  s->draws = 0;
  for (u32 c = 0; c < p->grid.ctas; c++) reset_cta(p, &s->cta[c]);
  for (u32 i = 0; i < s->insts; i++) reset_inst(p, &s->inst[i]);
}
