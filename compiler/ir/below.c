// below.c - what an expression is made of. In: a kernel's expressions, some of them as roots. Out:
// each node below them once, however many ways lead to it: a node before what is below it, left
// before right. Invariant: a walk costs what it meets, not what the kernel has, and no recursion;
// the marks are numbers of walks, so the next walk need not clear them.
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
