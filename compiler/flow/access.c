// access.c - what operations touch: for each, the views that it reads and writes and the proxy
// through which it does; for each role and ring, the ways in which the role uses it. derive, flow
// and place ask here.
#include "compiler/flow/flow.h"
#include "compiler/layout/layout.h"

#include <string.h>

static void put(Uses *u, u32 view, bool write, bool async) {
  PUSH(u->sc, &u->at, ((Access){view, write, async}));
}

static void put_product(Uses *u, const Product *p, bool async) {
  put(u, p->a, false, async);
  put(u, p->b, false, async);
  if (p->acc) put(u, p->dst, false, async);
  put(u, p->dst, true, async);
}

static void put_map(Uses *u, u32 m) {
  const Map *map = &u->k->map.at[m];
  for (u32 i = 0; i < sc_views_of(map); i++)
    put(u, sc_view_of(u->k, map, i), i == map->reads, false);
}

// What is read, then what is written.
u32 sc_accesses(Uses *u, const Ins *ins) {
  const char *args = sc_op[ins->op].args;
  bool async = sc_op[ins->op].effects & ASYNC;
  u->at.n = 0;
  if (sc_on_product(ins->op)) put_product(u, &u->k->product.at[ins->arg[0]], async);
  if (sc_on_map(ins->op)) put_map(u, ins->arg[0]);
  for (size_t i = strlen(args); i-- > 0;) {
    if (args[i] == 'v' || args[i] == 'w') put(u, ins->arg[i], args[i] == 'w', async);
  }
  return u->at.n;
}

static void note_use(Uses *u, u8 *use, const Ins *ins) {
  const Kernel *k = u->k;
  if (ins->op == OP_ACQUIRE || ins->op == OP_COMMIT) use[ins->arg[0]] |= USE_FILL;
  if (ins->op == OP_WAIT || ins->op == OP_RELEASE) use[ins->arg[0]] |= USE_DRAIN;
  u32 n = sc_accesses(u, ins);
  for (u32 i = 0; i < n; i++) {
    const Access *a = &u->at.at[i];
    const View *v = &k->view.at[a->view];
    const Buf *b = &k->buf.at[v->buf];
    if (b->space != SP_STAGE) continue;
    if (v->fill) use[b->ring] |= a->async ? USE_COPY : USE_STORE;
    else use[b->ring] |= a->async ? USE_ASYNC : a->write ? USE_THREADS | USE_INPLACE : USE_THREADS;
    if (ins->op == OP_MMA) use[b->ring] |= USE_PRODUCT;
  }
}

static void note_tensors(Uses *u, u8 *use, const Ins *ins) {
  const Kernel *k = u->k;
  u32 n = sc_accesses(u, ins);
  for (u32 i = 0; i < n; i++) {
    const Access *a = &u->at.at[i];
    u32 buf = k->view.at[a->view].buf;
    if (k->buf.at[buf].space != SP_TENSOR) continue;
    if (!a->write) use[buf] |= a->async ? DOES_COPY_FROM : DOES_READ;
    else if (ins->op == OP_COPYADD) use[buf] |= DOES_COPY_TO | DOES_COPY_ADD;
    else if (a->async) use[buf] |= DOES_COPY_TO;
    else use[buf] |= ins->op == OP_MAPADD ? DOES_ADD : DOES_WRITE;
  }
}

Uses *sc_uses(Sc *sc, const Kernel *k) {
  Uses *u = NEW(sc, Uses);
  u->sc = sc;
  u->k = k;
  u->below = x_below(sc, k);
  u->facts = sc_facts(sc, k);
  u->ring = NEWS(sc, u8, k->role.n * k->ring.n + 1);
  u->tensor = NEWS(sc, u8, k->role.n * k->buf.n + 1);
  for (u32 r = 0; r < k->role.n; r++) {
    const Code *code = &k->role.at[r].code;
    for (u32 i = 0; i < code->n; i++) {
      note_use(u, u->ring + r * k->ring.n, &code->at[i]);
      note_tensors(u, u->tensor + r * k->buf.n, &code->at[i]);
    }
  }
  return u;
}

bool sc_ring_async(const Uses *u, u32 ring) {
  u8 all = 0;
  for (u32 r = 0; r < u->k->role.n; r++) all |= sc_ring_use(u, r, ring);
  return all & (USE_COPY | USE_ASYNC);
}

// ---- which thread touches what

// A base that depends on a loop has another value in each iteration. Two iterations access the same
// elements by the same threads only if it advances by whole tiles.
bool sc_needs_no_sync(const Uses *u, const Code *code, Touch x, Touch y) {
  const Kernel *k = u->k;
  if (x.pc == SC_NONE || y.pc == SC_NONE) return false;
  const View *a = &k->view.at[x.view], *b = &k->view.at[y.view];
  if (a->buf != b->buf) return true;
  i64 ext[2][SC_MAX_VARS];
  sc_extents(k, &code->at[x.pc], ext[0]);
  sc_extents(k, &code->at[y.pc], ext[1]);
  const Map *f = &k->map.at[code->at[x.pc].arg[0]], *g = &k->map.at[code->at[y.pc].arg[0]];
  bool same = sc_same_threads(k, f, a, g, b);
  for (u32 d = 0; d < a->rank; d++) {
    const Pos *at = &a->at[d], *bt = &b->at[d];
    i64 n = at->var < 0 ? 1 : ext[0][(u32)at->var], m = bt->var < 0 ? 1 : ext[1][(u32)bt->var];
    if (sc_fact_disjoint_rounds(u->facts, at->base, n, bt->base, m)) return true;
    same &= n == m && sc_fact_equal(u->facts, at->base, bt->base);
    same &= sc_fact_steps(u->facts, at->base, n);
  }
  return same;
}

// ---- columns of register tiles

static u64 runs_touched(i64 lo, i64 hi, i64 run) {  // [lo, hi), in runs of `run` columns
  u64 set = 0;
  for (i64 r = lo / run; r * run < hi && r < 64; r++) set |= (u64)1 << r;
  return set;
}

static u64 runs_covered(i64 lo, i64 hi, i64 run, i64 columns) {
  u64 set = 0;
  for (i64 r = 0; r < 64 && r * run < columns; r++) {
    i64 end = (r + 1) * run < columns ? (r + 1) * run : columns;
    if (lo <= r * run && end <= hi) set |= (u64)1 << r;
  }
  return set;
}

u64 sc_columns(const Kernel *k, const View *v, const i64 *ext, bool cover) {
  const Buf *b = &k->buf.at[v->buf];
  if (!b->rank) return 1;
  i64 columns = b->ext[b->rank - 1], run = columns > 512 ? (columns + 63) / 64 : 8;
  u64 all = runs_touched(0, columns, run);
  for (u32 d = 0; d < b->rank; d++) {
    const Pos *p = &v->at[d];
    i64 lo = 0;
    bool known = x_const_int(k, p->base, &lo);
    i64 n = p->var >= 0 ? ext[p->var] : p->slice ? b->ext[d] : 1;
    if (d + 1 == b->rank) {
      if (!known || lo < 0) return cover ? 0 : all;
      return cover ? runs_covered(lo, lo + n, run, columns) : runs_touched(lo, lo + n, run);
    }
    if (cover && (!known || lo != 0 || n != b->ext[d])) return 0;
  }
  return all;
}

void sc_extents(const Kernel *k, const Ins *ins, i64 ext[SC_MAX_VARS]) {
  for (u32 i = 0; i < SC_MAX_VARS; i++) ext[i] = 1;
  if (sc_on_product(ins->op)) {
    const Product *p = &k->product.at[ins->arg[0]];
    ext[0] = p->m;
    ext[1] = p->n;
    ext[2] = p->k;
  } else if (sc_on_map(ins->op)) {
    const Map *m = &k->map.at[ins->arg[0]];
    for (u32 i = 0; i < m->vars && i < SC_MAX_VARS; i++) x_const_int(k, m->var[i].extent, &ext[i]);
  }
}

bool sc_writes_all(const Kernel *k, const Ins *ins, const View *v) {
  i64 ext[SC_MAX_VARS];
  sc_extents(k, ins, ext);
  if (ins->op == OP_MAP && k->map.at[ins->arg[0]].cond) return false;
  for (u32 d = 0; d < v->rank; d++) {
    if (v->at[d].var < 0 || ext[(u32)v->at[d].var] != k->buf.at[v->buf].ext[d]) return false;
  }
  return sc_columns(k, v, ext, true) == sc_columns(k, v, ext, false);
}
