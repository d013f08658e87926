// fails.c - where an element-wise statement divides an integer by 0, or reads an integer that is
// the same for all elements outside of its list. In: a kernel whose code stands. Out: Map.fails: a
// truth over the statement's indices, for the interpreter, which computes elements by strips, and
// what is uniform before all elements.
//
// What a condition leaves out is not computed: so `where(j > 0, 6 / j, 0)` does not fail. Each
// value below the statement's is looked at once, operands first.
#include <stdlib.h>

#include "compiler/ir/ir.h"

typedef struct Finder {
  Sc *sc;
  Kernel *k;
  Below below;
  VEC(Xid) order;  // what is below the statement
  Xid *fails;      // by expression; 0: nowhere
  u32 room;
} Finder;

static Xid either(Finder *f, Xid a, Xid b) {
  return a && b ? x_make(f->sc, f->k, X_OR, a, b, 0) : a ? a : b;
}

// b, where `cond` holds, or where it does not.
static Xid where(Finder *f, Xid cond, bool holds, Xid b) {
  Xid when = holds ? cond : x_make(f->sc, f->k, X_NOT, cond, 0, 0);
  return b ? x_make(f->sc, f->k, X_AND, when, b, 0) : 0;
}

// For some value of the variable that is reduced over.
static Xid somewhere(Finder *f, u32 var, Xid b) {
  if (!b) return 0;
  Xid zero = x_int(f->sc, f->k, 0), one = x_int(f->sc, f->k, 1);
  Xid times = x_reduce(f->sc, f->k, X_SUM, var, x_make(f->sc, f->k, X_WHERE, b, one, zero));
  return x_make(f->sc, f->k, X_LT, zero, times, 0);
}

static bool reads_list(const Expr *e) { return x_fetches(e) && e->ty == TY_INT; }

// In the places that an element is read from; and of a list, outside of it.
static Xid fails_to_read(Finder *f, const Expr *e) {
  const View *v = &f->k->view.at[e->ref];
  const Xid *dim = f->k->buf.at[v->buf].dim;
  Xid some = 0, zero = x_int(f->sc, f->k, 0);
  for (u32 d = 0; d < v->rank; d++) {
    Xid at = v->at[d].base ? v->at[d].base : zero;
    some = either(f, some, f->fails[v->at[d].base]);
    if (!reads_list(e)) continue;
    some = either(f, some, x_make(f->sc, f->k, X_LT, at, zero, 0));
    some = either(f, some, x_make(f->sc, f->k, X_LE, dim[d], at, 0));
  }
  return some;
}

static Xid fails_at(Finder *f, const Expr *e) {
  Xid a = f->fails[e->a], b = f->fails[e->b], c = f->fails[e->c];
  i64 by;
  if (e->op == X_LOAD) return fails_to_read(f, e);
  if (x_reduces(e->op)) return somewhere(f, e->ref, a);
  if (e->op == X_AND || e->op == X_WHERE) b = where(f, e->a, true, b);
  if (e->op == X_OR) b = where(f, e->a, false, b);
  if (e->op == X_WHERE) c = where(f, e->a, false, c);
  if (x_divides(e->op) && !x_const_int(f->k, e->b, &by))
    c = x_make(f->sc, f->k, X_EQ, e->b, x_int(f->sc, f->k, 0), 0);
  return either(f, a, either(f, b, c));
}

// Lists what is below the statement in the order in which it is computed. Is something of it
// divided, or read where a condition may leave it out?
static bool meet(Finder *f, const Map *m) {
  bool divides = false, reads = false, chooses = false;
  i64 by;
  f->order.n = 0;
  x_begin(&f->below, 0);
  x_from(&f->below, m->root);
  x_from(&f->below, m->cond);
  for (Xid x; (x = x_next(&f->below));) {
    const Expr *e = &f->k->expr.at[x];
    divides |= x_divides(e->op) && !x_const_int(f->k, e->b, &by);
    reads |= reads_list(e);
    chooses |= !x_uniform(f->k, x) && (e->op == X_WHERE || e->op == X_AND || e->op == X_OR);
    PUSH(f->sc, &f->order, x);
  }
  const bool may = divides || (reads && (chooses || m->cond));
  if (may) sc_sort_u32(f->order.at, f->order.n);
  return may;
}

static void find(Finder *f, Map *m) {
  if (!meet(f, m)) return;
  if (f->room < f->k->expr.n) {
    f->room = 2 * f->k->expr.n;
    f->fails = NEWS(f->sc, Xid, f->room);
  }
  for (u32 i = 0; i < f->order.n; i++) {
    const Expr e = f->k->expr.at[f->order.at[i]];
    f->fails[f->order.at[i]] = fails_at(f, &e);
  }
  m->fails = f->fails[m->root];
  if (m->cond) m->fails = either(f, f->fails[m->cond], where(f, m->cond, true, m->fails));
  for (u32 i = 0; i < f->order.n; i++) f->fails[f->order.at[i]] = 0;
}

// (What the specification divides is no matter of the kernel's.)
void sc_find_failures(Sc *sc, Kernel *k) {
  Finder f = {.sc = sc, .k = k, .below = x_below(sc, k)};
  bool *spec = NEWS(sc, bool, k->map.n + 1);
  for (u32 i = 0; i < k->spec.n; i++) spec[k->spec.at[i]] = true;
  for (u32 i = 0; i < k->map.n; i++)
    if (!spec[i]) find(&f, &k->map.at[i]);
}
