// factskit.h - a kernel without text, for tests of facts: two dimensions, a scalar, two axes, an
// instance and a loop, and expressions of them.
#ifndef FACTSKIT_H
#define FACTSKIT_H

#include <string.h>

#include "compiler/facts/facts.h"

typedef struct Fix {
  Sc sc;
  Kernel *k;
  Facts *facts;
  Xid n, m, s, a, c, w,
      i;  // dimensions N, M; scalar; axes: plain, in clusters of 2; instance; loop
  u64 random;
} Fix;

enum { INSTANCES = 2 };

static inline void ins(Fix *f, Op op, u32 a, u32 b, u32 c) {
  PUSH(&f->sc, &f->k->role.at[0].code, ((Ins){.op = op, .arg = {a, b, c}}));
}

static inline void begin(Fix *f) {
  sc_init(&f->sc, NULL);
  Sc *sc = &f->sc;
  Kernel *k = f->k = sc_kernel(sc);
  f->n = x_leaf(sc, k, X_DIM, TY_INT, 0);
  f->m = x_leaf(sc, k, X_DIM, TY_INT, 1);
  f->s = x_leaf(sc, k, X_ARG, TY_INT, 0);
  f->a = x_leaf(sc, k, X_AXIS, TY_INT, 0);
  f->c = x_leaf(sc, k, X_AXIS, TY_INT, 1);
  f->w = x_leaf(sc, k, X_INST, TY_INT, 0);
  f->i = x_leaf(sc, k, X_LOOP, TY_INT, 0);
  PUSH(sc, &k->role, ((Role){.instances = INSTANCES}));
  PUSH(sc, &k->loop, ((Loop){.name = "i"}));
  ins(f, OP_TILE, 0, 0, 0);
}

static inline int set_up(void **state) {
  static Fix f;
  memset(&f, 0, sizeof f);
  begin(&f);
  *state = &f;
  return 0;
}

static inline int tear_down(void **state) {
  sc_free(&((Fix *)*state)->sc);
  return 0;
}

static inline void axis(Fix *f, Xid extent, u32 cluster) {
  PUSH(&f->sc, &f->k->axis, ((Axis){.name = "a", .extent = extent, .cluster = cluster}));
}

// The facts inside of everything that the code opens.
static inline void know(Fix *f) {
  f->facts = sc_facts(&f->sc, f->k);
  sc_facts_at(f->facts, &f->k->role.at[0].code, f->k->role.at[0].code.n);
}

#define X(op, a, b) x_make(&f->sc, f->k, X_##op, a, b, 0)
#define INT(v) x_int(&f->sc, f->k, v)

#endif
