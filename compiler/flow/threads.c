// threads.c - compares two operations by threads and columns: whether one statement may follow
// another without a sync, and how much of a register tile an operation touches or writes.
#include "compiler/flow/flow.h"
#include "compiler/layout/layout.h"

// A base that depends on a loop has another value in each round. An element is accessed by the same
// thread in two rounds only if the base advances by whole tiles.
bool sc_needs_no_sync(Facts *facts, const Kernel *k, const Code *code, Touch x, Touch y) {
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
    if (sc_fact_disjoint_rounds(facts, at->base, n, bt->base, m)) return true;
    same &= n == m && sc_fact_equal(facts, at->base, bt->base);
    same &= sc_fact_steps(facts, at->base, n);
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
