// inside.c - tests that an element lies inside its tensor. Threads make them before they read or
// write: outside, a read gives 0 and a write does nothing. A test is left out where the facts
// around the statement already imply it.
//
// Called by the files of statements and by tile.c; calls tile.c and expr.c for positions.
#include "compiler/emit/emit.h"

bool cu_multiple(Cuda *c, Xid x, i64 n) { return sc_fact_multiple(cu_here(c), x, n); }

// Do all places of a position lie inside a dimension, whatever value the map's variable has?
static bool inside_whole(Cuda *c, const At *at, const Pos *p, Xid dim) {
  i64 extent;
  if (!at->map || !x_const_int(c->k, at->map->var[p->var].extent, &extent)) return false;
  return sc_fact_inside(cu_here(c), p->base, extent, dim);
}

const char *cu_inside(Cuda *c, const At *at, const View *v, bool rows, bool cols) {
  Str s = {.sc = c->sc};
  const Buf *b = &c->k->buf.at[v->buf];
  for (u32 d = 0; d < v->rank; d++) {
    const Pos *p = &v->at[d];
    bool is_row = p->var >= 0 && p->var == at->row, is_col = p->var >= 0 && p->var == at->col;
    if ((is_row && !rows) || (is_col && !cols)) continue;
    if ((is_row || is_col) && inside_whole(c, at, p, b->dim[d])) continue;
    bool low = p->base && !sc_fact_nonneg(cu_here(c), p->base);
    bool high = p->var >= 0 || !sc_fact_less(cu_here(c), p->base, b->dim[d]);
    if (!low && !high) continue;
    const char *pos = cu_paren(c, cu_coordinate(c, at, p), P_ADD);
    if (s.n) str_puts(&s, " && ");
    if (low) str_printf(&s, "%s >= 0%s", pos, high ? " && " : "");
    if (high) str_printf(&s, "%s < %s", pos, cu_paren(c, cu_expr(c, NULL, b->dim[d]), P_ADD));
  }
  return s.n ? s.at : NULL;
}

const char *cu_columns_left(Cuda *c, const View *v) {
  const Pos *last = &v->at[v->rank - 1];
  const Buf *b = &c->k->buf.at[v->buf];
  Txt all = cu_uniform(c, b->dim[b->rank - 1]);
  return last->base ? cu_binary(c, X_SUB, true, all, cu_near(c, last->base)).s : all.s;
}

// ---- CTAs past the end of the grid, which fill up its last cluster: they do all but write

// Is the view outside of its tensor wherever the axis is past its end?
static bool leaves(Cuda *c, const View *v, u32 axis) {
  for (u32 d = 0; d < v->rank; d++) {
    if (v->at[d].base && sc_fact_past(cu_here(c), axis, v->at[d].base, c->k->buf.at[v->buf].dim[d]))
      return true;
  }
  return false;
}

const char *cu_in_grid(Cuda *c, const View *v) {
  Str s = {.sc = c->sc};
  for (u32 i = 0; i < c->k->axis.n; i++) {
    const Axis *x = &c->k->axis.at[i];
    if (x->cluster == 1 || cu_multiple(c, x->extent, x->cluster) || leaves(c, v, i)) continue;
    str_printf(&s, "%s%s < %s", s.n ? " && " : "", cu_axis(c, i),
               cu_paren(c, cu_expr(c, NULL, x->extent), P_ADD));
  }
  return s.n ? s.at : NULL;
}
