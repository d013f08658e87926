// below.c - a walk over an expression and all that it is made of. In: a kernel's expressions, and
// the roots to start from. Out: each node that can be reached from a root, once, however many
// expressions share it; a node comes before its operands, and the left operand's side before the
// right one's.
//
// Invariant: the time depends on the nodes reached, not on the size of the kernel, and there is no
// recursion. A node is marked with the number of the walk that has reached it, so that the next
// walk need not clear the marks.
#include "compiler/ir/ir.h"

Below x_below(Sc *sc, const Kernel *k) { return (Below){.sc = sc, .k = k}; }

// The kernel may have got more expressions since the last walk.
static void make_room(Below *b) {
  if (b->room >= b->k->expr.n) return;
  u32 room = b->k->expr.n * 2;
  b->met = sc_grow(b->sc, b->met, sizeof *b->met * b->room, sizeof *b->met * room);
  b->room = room;
}

void x_begin(Below *b, u8 deps) {
  make_room(b);
  b->walk++;
  b->deps = deps;
  b->last = 0;
  b->pending.n = 0;
}

void x_from(Below *b, Xid root) {
  if (root) PUSH(b->sc, &b->pending, root);
}

void x_visit(void *below, Xid x, Span at) {
  (void)at;
  x_from(below, x);
}

void x_skip(Below *b) { b->last = 0; }

Xid x_next(Below *b) {
  if (b->last) {
    Xid operand[SC_MAX_OPERANDS];
    for (u32 n = x_operands(b->k, b->last, operand); n--;) PUSH(b->sc, &b->pending, operand[n]);
  }
  b->last = 0;
  while (b->pending.n && !b->last) {
    Xid x = b->pending.at[--b->pending.n];
    if (b->met[x] == b->walk || (b->deps && !(b->k->expr.at[x].deps & b->deps))) continue;
    b->met[x] = b->walk;
    b->last = x;
  }
  return b->last;
}

// Is it the index of an axis divided by a multiple of the number of CTAs that a cluster has along
// it?
static bool of_clusters(const Kernel *k, const Expr *e) {
  const Expr *a = &k->expr.at[e->a];
  i64 by;
  if (e->op != X_IDIV || a->op != X_AXIS || !x_const_int(k, e->b, &by)) return false;
  return by > 0 && by % k->axis.at[a->ref].cluster == 0;
}

bool x_reads_rank(Below *b, Xid root) {
  x_begin(b, DEP_AXIS);
  x_from(b, root);
  for (Xid x; (x = x_next(b));) {
    const Expr *e = &b->k->expr.at[x];
    if (e->op == X_AXIS && b->k->axis.at[e->ref].cluster > 1) return true;
    if (of_clusters(b->k, e)) x_skip(b);
  }
  return false;
}

bool x_names_loop(Below *b, Xid root, u32 loop) {
  x_begin(b, DEP_LOOP);
  x_from(b, root);
  for (Xid x; (x = x_next(b));)
    if (b->k->expr.at[x].op == X_LOOP && b->k->expr.at[x].ref == loop) return true;
  return false;
}
