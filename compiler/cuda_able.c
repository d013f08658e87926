// cuda_able.c - what the emitter cannot write, found before it writes: rather than code that is
// wrong, there is none. In: a placed kernel. Out: true, or reports. The invariant: register tiles
// that pass are whole accumulator blocks, and reductions stay within a row, whose four lanes are
// one quad.
#include "passes.h"

#include <string.h>

// The rows of a block: four warps of 16, or one.
static i64 block_rows(const Role *r) { return r->warps == 1 ? 16 : 64; }

static bool able_tile(Sc *sc, const Kernel *k, const Buf *b) {
  if (b->space != SP_REG || b->rank != 2) return true;
  i64 rows = block_rows(&k->role.at[b->role]);
  if (b->ext[0] % rows == 0 && b->ext[1] % 8 == 0) return true;
  Diag *d =
      sc_report(sc, D_G_EMIT, b->span,
                "the tile '%s' of %lld x %lld is not made of blocks of %lld rows and 8 columns",
                b->name, (long long)b->ext[0], (long long)b->ext[1], (long long)rows);
  sc_help(sc, d, "pad the tile");
  return false;
}

// Does x, below a reduction of variable `var`, read a register tile with it as the row?
static bool reads_down(const Kernel *k, Xid root, u32 var, u8 *seen) {
  memset(seen, 0, k->expr.n);
  seen[root] = 1;
  for (Xid x = root; x > 0; x--) {  // operands have smaller numbers
    const Expr *e = &k->expr.at[x];
    if (!seen[x]) continue;
    if (e->op == X_LOAD) {
      const View *v = &k->view.at[e->ref];
      const Buf *b = &k->buf.at[v->buf];
      if (b->space == SP_REG && b->rank == 2 && v->at[0].var == (i8)var) return true;
      continue;
    }
    const Xid arg[] = {e->a, e->b, e->c};
    for (u32 i = 0; i < sc_xop[e->op].arity; i++) seen[arg[i]] = 1;
  }
  return false;
}

static bool able_map(Sc *sc, const Kernel *k, const Map *m, u8 *reached, u8 *seen) {
  memset(reached, 0, k->expr.n);
  reached[m->root] = reached[m->cond] = 1;
  for (Xid x = m->root > m->cond ? m->root : m->cond; x > 0; x--) {
    const Expr *e = &k->expr.at[x];
    if (!reached[x]) continue;
    bool reduction = e->op == X_SUM || e->op == X_RMAX || e->op == X_RMIN;
    if (reduction && reads_down(k, e->a, e->ref, seen)) {
      Diag *d = sc_report(sc, D_G_EMIT, m->span, "a reduction along a column goes across warps");
      sc_help(sc, d, "put the tile through a ring, from which any thread reads any element");
      return false;
    }
    const Xid arg[] = {e->a, e->b, e->c};
    for (u32 i = 0; i < sc_xop[e->op].arity; i++) reached[arg[i]] = 1;
  }
  return true;
}

bool sc_cuda_able(Sc *sc, const Kernel *k) {
  u8 *reached = sc_new(sc, k->expr.n + 1), *seen = sc_new(sc, k->expr.n + 1);
  bool able = true;
  for (u32 i = 0; i < k->buf.n; i++) able &= able_tile(sc, k, &k->buf.at[i]);
  for (u32 r = 0; r < k->role.n; r++) {
    const Role *role = &k->role.at[r];
    for (u32 i = 0; i < role->code.n; i++) {
      const Ins *ins = &role->code.at[i];
      bool map = ins->op == OP_MAP || ins->op == OP_MAPADD || ins->op == OP_VOTE;
      if (map) able &= able_map(sc, k, &k->map.at[ins->arg[0]], reached, seen);
    }
  }
  return able;
}
