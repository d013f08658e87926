// reads.c - what statements read and reduce: the views and the reductions in a map's expressions,
// each once a map, in the order in which they are written. In: a kernel whose maps are all there.
// Out: Kernel.read, Kernel.fold. The one walk for everybody who asks; linear in the expressions of
// each map.
#include "compiler/ir/ir.h"

static void look_into(Kernel *k, Below *below, Xid root) {
  x_from(below, root);
  for (Xid x; (x = x_next(below));) {
    const Expr *e = &k->expr.at[x];
    if (e->op == X_LOAD) PUSH(below->sc, &k->read, ((MapRead){.view = e->ref}));
    if (e->op >= X_SUM) PUSH(below->sc, &k->fold, x);
  }
}

void sc_list_reads(Sc *sc, Kernel *k) {
  Below below = x_below(sc, k);
  for (u32 i = 0; i < k->map.n; i++) {
    Map *m = &k->map.at[i];
    m->read0 = k->read.n;
    m->fold0 = k->fold.n;
    x_begin(&below, DEP_TILE);
    look_into(k, &below, m->root);
    look_into(k, &below, m->cond);
    m->reads = k->read.n - m->read0;
    m->folds = k->fold.n - m->fold0;
  }
}

u32 sc_views_of(const Map *m) { return m->reads + (m->dst != SC_NONE); }

u32 sc_view_of(const Kernel *k, const Map *m, u32 i) {
  return i < m->reads ? k->read.at[m->read0 + i].view : m->dst;
}
