// inverse.c - quotients by a value of a row: x / v becomes x * (1 / v) where x differs by column
// and v does not. A thread holds many columns of few rows, so the emitter divides once a row; and
// all that reads the kernel, the interpreter among it, computes the same. In: statements whose rows
// and columns are known. Out: the roots of maps, and Kernel.fold. Called by assign.c; linear in the
// expressions of each map.
#include "compiler/layout/layout.h"

typedef struct Inverses {
  Sc *sc;
  Kernel *k;
  const Map *m;
  u32 map, room;  // which map is at hand, from 1; expressions that the tables have room for
  u32 *of;        // by expression: the last map that met it …
  Xid *instead;   // … and what stands for it there
} Inverses;

static bool varies(const Kernel *k, Xid x, i8 var) {
  return var >= 0 && k->expr.at[x].vars >> var & 1;
}

// Is it a quotient of reals by a value that is the same in all columns, but not everywhere?
static bool divides_by_row(const Inverses *v, Xid x) {
  const Expr *e = &v->k->expr.at[x];
  return e->op == X_DIV && varies(v->k, x, v->m->col) && !varies(v->k, e->b, v->m->col) &&
         !x_uniform(v->k, e->b);
}

static Xid instead_of(Inverses *v, Xid x);

static Xid rebuilt(Inverses *v, Xid x) {
  const Expr e = v->k->expr.at[x];  // a copy: the table grows below
  if (e.op == X_LOAD) return x;     // positions are integers
  Xid a = instead_of(v, e.a), b = instead_of(v, e.b), c = instead_of(v, e.c);
  if (divides_by_row(v, x)) {
    Xid inverse = x_make(v->sc, v->k, X_DIV, x_real(v->sc, v->k, 1), b, 0);
    return x_make(v->sc, v->k, X_MUL, a, inverse, 0);
  }
  if (a == e.a && b == e.b && c == e.c) return x;
  if (x_reduces(e.op)) return x_reduce(v->sc, v->k, e.op, e.ref, a);
  return x_make(v->sc, v->k, e.op, a, b, c);
}

static Xid instead_of(Inverses *v, Xid x) {
  if (!x || x >= v->room) return x;  // 0: no operand; what was made here is as it should be
  if (v->of[x] != v->map) {
    Xid y = rebuilt(v, x);
    v->of[x] = v->map;
    v->instead[x] = y;
  }
  return v->instead[x];
}

void sc_invert_rows(Sc *sc, Kernel *k) {
  Inverses v = {.sc = sc, .k = k, .room = k->expr.n};
  v.of = NEWS(sc, u32, v.room);
  v.instead = NEWS(sc, Xid, v.room);
  for (u32 i = 0; i < k->map.n; i++) {
    Map *m = &k->map.at[i];
    if (!m->held || !sc_extent(k, m, m->row)) continue;
    v.m = m;
    v.map = i + 1;
    m->root = instead_of(&v, m->root);
    m->cond = instead_of(&v, m->cond);
    for (u32 f = m->fold0; f < m->fold0 + m->folds; f++)
      k->fold.at[f] = instead_of(&v, k->fold.at[f]);
  }
}
