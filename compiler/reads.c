// reads.c - what statements read and reduce: the views and the reductions in a map's expressions,
// each once a map, in the order in which they are written. In: a kernel whose maps are all there.
// Out: Kernel.read, Kernel.fold. The one walk for everybody who asks; linear in the expressions of
// each map.
#include "ir.h"

typedef struct Reads {
  Sc *sc;
  Kernel *k;
  VEC(Xid) pending;
  u32 *seen;  // by expression: the last map that met it, + 1
} Reads;

static bool reduces(const Expr *e) { return e->op == X_SUM || e->op == X_RMAX || e->op == X_RMIN; }

static void look_into(Reads *r, u32 map, Xid root) {
  if (root) PUSH(r->sc, &r->pending, root);
  while (r->pending.n) {
    Xid x = r->pending.at[--r->pending.n], operand[SC_MAX_OPERANDS];
    const Expr *e = &r->k->expr.at[x];
    if (r->seen[x] == map + 1 || !(e->deps & DEP_TILE)) continue;
    r->seen[x] = map + 1;
    if (e->op == X_LOAD) PUSH(r->sc, &r->k->read, ((MapRead){.view = e->ref}));
    if (reduces(e)) PUSH(r->sc, &r->k->fold, x);
    u32 n = x_operands(r->k, x, operand);
    while (n-- > 0)  // the first operand is looked into first
      if (operand[n]) PUSH(r->sc, &r->pending, operand[n]);
  }
}

void sc_list_reads(Sc *sc, Kernel *k) {
  Reads r = {.sc = sc, .k = k, .seen = NEWS(sc, u32, k->expr.n + 1)};
  for (u32 i = 0; i < k->map.n; i++) {
    Map *m = &k->map.at[i];
    m->read0 = k->read.n;
    m->fold0 = k->fold.n;
    look_into(&r, i, m->root);
    look_into(&r, i, m->cond);
    m->reads = k->read.n - m->read0;
    m->folds = k->fold.n - m->fold0;
  }
}

u32 sc_views_of(const Map *m) { return m->reads + (m->dst != SC_NONE); }

u32 sc_view_of(const Kernel *k, const Map *m, u32 i) {
  return i < m->reads ? k->read.at[m->read0 + i].view : m->dst;
}
