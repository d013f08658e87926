// sample.c - chooses the passes (iterations) of a specification's loop that are evaluated when
// there are too many. In: the loop's extents, and how long the kernel's tiles are. Out: numbers of
// passes.
//
// The idea: kernels fail at edges of tiles. So the first and the last pass are taken. Then, for
// each index, its two ends and both sides of the edge of the first, a middle and the last tile are
// taken, with the other indices drawn at random. Then come passes in which each index is drawn,
// with equal odds, from all values or from those beside edges.
#include <stdlib.h>

#include "runtime/run.h"

enum { USUAL_TILE = 64 };  // what warpgroups' products take rows by

// ---- how long tiles are

// The factor by which e multiplies a grid axis; 0: e contains none.
static i64 axis_factor(const Kernel *k, Xid e, u32 depth) {
  const Expr *p = &k->expr.at[e];
  i64 factor = 0;
  if (!e || depth > SC_MAX_NEST) return 0;
  if (p->op == X_ADD || p->op == X_SUB) {
    factor = axis_factor(k, p->a, depth + 1);
    return factor ? factor : axis_factor(k, p->b, depth + 1);
  }
  if (p->op == X_AXIS) return 1;
  if (p->op != X_MUL) return 0;
  if (k->expr.at[p->a].op == X_AXIS && x_const_int(k, p->b, &factor)) return factor;
  if (k->expr.at[p->b].op == X_AXIS && x_const_int(k, p->a, &factor)) return factor;
  return 0;
}

static i64 found_length(const Kernel *k, u32 buf, u32 dim) {
  for (u32 v = 0; v < k->view.n; v++) {
    const View *w = &k->view.at[v];
    i64 n = w->buf == buf && dim < w->rank ? axis_factor(k, w->at[dim].base, 0) : 0;
    if (n > 0) return n;
  }
  for (u32 l = 0; l < k->launch.n; l++) {
    const Launch *launch = &k->launch.at[l];
    for (u32 i = 0; i < launch->kernel->buf.n; i++) {
      i64 n = launch->tensor[i] == buf ? found_length(launch->kernel, i, dim) : 0;
      if (n) return n;
    }
  }
  return 0;
}

i64 sc_tile_length(const Kernel *k, u32 buf, u32 dim) {
  i64 n = found_length(k, buf, dim);
  return n ? n : USUAL_TILE;
}

// ---- drawing

typedef struct Draw {
  const i64 *extent, *tile;
  u32 depth;
  u64 state;
  i64 *to;
  size_t n, most;
} Draw;

// A number below n.
static i64 below(Draw *d, i64 n) { return (i64)(sc_random(&d->state) % (u64)n); }

// The value of index l on one side of the edge where tile t begins.
static i64 beside(const Draw *d, u32 l, i64 t, bool after) {
  i64 at = t * d->tile[l] - !after;
  return at < 0 ? 0 : at >= d->extent[l] ? d->extent[l] - 1 : at;
}

static i64 tiles(const Draw *d, u32 l) { return (d->extent[l] - 1) / d->tile[l] + 1; }

static i64 draw_index(Draw *d, u32 l) {
  if (below(d, 2)) return below(d, d->extent[l]);
  i64 t = below(d, tiles(d, l) + 1);
  return beside(d, l, t, below(d, 2));
}

static int ascending(const void *a, const void *b) {
  i64 x = *(const i64 *)a, y = *(const i64 *)b;
  return (x > y) - (x < y);
}

static void sort_out(Draw *d) {
  size_t kept = 0;
  qsort(d->to, d->n, sizeof *d->to, ascending);
  for (size_t i = 0; i < d->n; i++)
    if (!kept || d->to[i] != d->to[kept - 1]) d->to[kept++] = d->to[i];
  d->n = kept;
}

// Takes the pass at which index `fixed` is `at`.
static void take(Draw *d, u32 fixed, i64 at) {
  i64 number = 0;
  for (u32 l = 0; l < d->depth; l++)
    number = number * d->extent[l] + (l == fixed ? at : draw_index(d, l));
  if (d->n < d->most) d->to[d->n++] = number;
}

size_t sc_draw_places(const i64 *extent, const i64 *tile, u32 depth, size_t n, i64 *to) {
  Draw d = {.extent = extent, .tile = tile, .depth = depth, .to = to, .most = n};
  i64 total = 1;
  for (u32 l = 0; l < depth; l++) total *= extent[l];
  if (total <= 0) return 0;
  if (n >= (u64)total) {
    for (i64 i = 0; i < total; i++) to[i] = i;
    return (size_t)total;
  }
  if (d.n < n) to[d.n++] = 0;
  if (d.n < n) to[d.n++] = total - 1;
  for (u32 l = 0; l < depth; l++) {
    i64 edge[] = {1, tiles(&d, l) / 2, tiles(&d, l) - 1};
    take(&d, l, 0);
    take(&d, l, extent[l] - 1);
    for (u32 i = 0; i < COUNT(edge); i++)
      for (u32 after = 0; after < 2; after++) take(&d, l, beside(&d, l, edge[i], after));
  }
  for (u32 rounds = 0; rounds < 64; rounds++) {
    sort_out(&d);
    if (d.n == n) break;
    for (size_t i = d.n; i < n; i++) take(&d, depth, 0);
  }
  return d.n;
}
