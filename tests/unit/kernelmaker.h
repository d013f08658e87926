// kernelmaker.h - kernels by hand, for tests of what runs them.
#ifndef KERNELMAKER_H
#define KERNELMAKER_H

#include <string.h>

#include "runtime/run.h"

static inline u32 km_buf(Sc *sc, Kernel *k, Space space, Elem elem, u32 rank, const Xid *dim) {
  Buf b = {.name = "x",
           .space = space,
           .elem = elem,
           .rank = (u8)rank,
           .ring = SC_NONE,
           .role = SC_NONE};
  for (u32 i = 0; i < rank; i++) {
    b.dim[i] = dim[i];
    x_const_int(k, dim[i], &b.ext[i]);
  }
  PUSH(sc, &k->buf, b);
  return k->buf.n - 1;
}

// A view whose positions are these variables (-1: position 0).
static inline u32 km_view(Sc *sc, Kernel *k, u32 buf, const i8 *var) {
  View v = {.buf = buf, .rank = k->buf.at[buf].rank};
  for (u32 i = 0; i < v.rank; i++) v.at[i].var = var[i];
  PUSH(sc, &k->view, v);
  return k->view.n - 1;
}

// A view whose positions are these expressions, as specifications have them.
static inline u32 km_at(Sc *sc, Kernel *k, u32 buf, const Xid *at) {
  View v = {.buf = buf, .rank = k->buf.at[buf].rank};
  for (u32 i = 0; i < v.rank; i++) v.at[i] = (Pos){.base = at[i], .var = -1};
  PUSH(sc, &k->view, v);
  return k->view.n - 1;
}

static inline u32 km_map(Sc *sc, Kernel *k, u32 dst, Xid root, u32 outs, u32 vars,
                         const Xid *extent) {
  Map m = {.dst = dst, .root = root, .outs = (u8)outs, .vars = (u8)vars};
  for (u32 i = 0; i < vars; i++) m.var[i] = (Var){"v", extent[i]};
  PUSH(sc, &k->map, m);
  return k->map.n - 1;
}

// Room for a launch's values: 8 dimensions, 8 scalars, so many tensors.
static inline Binding km_binding(Sc *sc, const Kernel *k, u32 bufs) {
  return (Binding){.k = k,
                   .dim = NEWS(sc, i64, 8),
                   .arg = NEWS(sc, double, 8),
                   .buf = NEWS(sc, TensorRef, bufs)};
}

// For tests whose state is a Fix with these members, made and ended by setup and teardown.
#define BEGIN       \
  Fix *f = *state;  \
  Sc *sc = &f->sc;  \
  Kernel *k = f->k; \
  (void)sc, (void)k
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#define VIEW(buf, ...) km_view(sc, k, buf, (const i8[]){__VA_ARGS__})
#define AT(buf, ...) km_at(sc, k, buf, (const Xid[]){__VA_ARGS__})
#define LOADV(view) x_leaf(sc, k, X_LOAD, TY_REAL, view)
#define IDX(v) x_leaf(sc, k, X_IDX, TY_INT, v)
#define INT(v) x_int(sc, k, v)
#define REAL(v) x_real(sc, k, v)
#define OP1(op, a) x_make(sc, k, X_##op, a, 0, 0)
#define OP2(op, a, b) x_make(sc, k, X_##op, a, b, 0)
#define OP3(op, a, b, c) x_make(sc, k, X_##op, a, b, c)
#define REDUCE(op, v, e) x_reduce(sc, k, X_##op, v, e)
#define DIM(i) x_leaf(sc, k, X_DIM, TY_INT, i)

#endif
