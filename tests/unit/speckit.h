// speckit.h - a hand-made kernel with a specification, attention among them, and an allocator that
// counts. The including file has included cmocka.h.
#ifndef SPECKIT_H
#define SPECKIT_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernelmaker.h"

enum { MAX_BUFS = 16 };

typedef struct Fix {
  Sc sc;
  jmp_buf home;
  Kernel *k;
  Binding b;
  double *to[MAX_BUFS];
  size_t peak, now;  // bytes asked of the allocator
  int left;          // allocations before it fails; negative: never
} Fix;

static inline void *counted_alloc(void *user, size_t n) {
  Fix *f = user;
  if (f->left >= 0 && f->left-- == 0) return NULL;
  size_t *at = malloc(n + 16);
  *at = n;
  f->now += n;
  if (f->now > f->peak) f->peak = f->now;
  return at + 2;
}

static inline void counted_free(void *user, void *at) {
  Fix *f = user;
  size_t *block = (size_t *)at - 2;
  f->now -= *block;
  free(block);
}

static inline int setup(void **state) {
  Fix *f = calloc(1, sizeof *f);
  f->left = -1;
  sc_init(&f->sc, &(schedc_allocator){counted_alloc, counted_free, f});
  if (setjmp(f->home)) return -1;
  f->sc.unwind = &f->home;
  f->k = sc_kernel(&f->sc);
  f->b = km_binding(&f->sc, f->k, MAX_BUFS);
  *state = f;
  return 0;
}

static inline int teardown(void **state) {
  Fix *f = *state;
  for (int i = 0; i < MAX_BUFS; i++) free(f->to[i]);
  sc_free(&f->sc);
  assert_true(f->now == 0);
  free(f);
  return 0;
}

// A contiguous tensor filled with values that its element type holds exactly.
static inline u32 tensor(Fix *f, Elem elem, u8 dir, u32 rank, const Xid *dim, const i64 *shape) {
  u32 t = km_buf(&f->sc, f->k, SP_TENSOR, elem, rank, dim);
  f->k->buf.at[t].dir = dir;
  i64 n = 1;
  for (u32 i = rank; i-- > 0; n *= shape[i]) {
    f->b.buf[t].shape[i] = shape[i];
    f->b.buf[t].stride[i] = n;
  }
  f->b.buf[t].at = sc_new(&f->sc, (size_t)(n + 1) * sc_elem[elem].bytes);
  u64 seed = t + 1;
  for (i64 i = 0; i < n; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    sc_set_elem(elem, f->b.buf[t].at, i, (double)((i64)(seed >> 33) % 1000 - 500) / 256);
  }
  if (dir & SCHEDC_OUT) f->to[t] = malloc((size_t)(n + 1) * sizeof(double));
  return t;
}

static inline size_t box_size(const Fix *f, u32 t, const Boxes *of) {
  size_t n = 1;
  for (u32 i = 0; i < f->k->buf.at[t].rank; i++) n *= (size_t)of->extent[i];
  return n;
}

// Every intermediate, rounded to one type.
static inline void round_values(Fix *f, Elem round) {
  for (u32 i = 0; i < f->k->buf.n; i++)
    if (f->k->buf.at[i].space == SP_SPEC) f->k->buf.at[i].elem = (u8)round;
}

// Evaluates the specification into f->to.
static inline schedc_status spec(Fix *f, bool exact, unsigned threads) {
  Boxes out[MAX_BUFS] = {0};
  Sc own;
  jmp_buf home;
  sc_init(&own, &f->sc.alloc);
  own.unwind = &home;
  schedc_status status = setjmp(home) ? own.why : SCHEDC_OK;
  if (!status) status = sc_spec(&own, f->k, &f->b, exact, threads, NULL, out, NULL);
  for (u32 t = 0; status == SCHEDC_OK && t < MAX_BUFS; t++) {
    if (!f->to[t]) continue;
    assert_int_equal(out[t].n, 1);
    memcpy(f->to[t], out[t].at, box_size(f, t, &out[t]) * sizeof(double));
  }
  sc_free(&own);
  return status;
}

static inline double get(Fix *f, u32 t, i64 at) {
  return sc_get_elem(f->k->buf.at[t].elem, f->b.buf[t].at, at);
}

static inline void equation(Fix *f, u32 dst, Xid root, u32 outs, u32 vars, const Xid *extent) {
  u32 map = km_map(&f->sc, f->k, dst, root, outs, vars, extent);
  PUSH(&f->sc, &f->k->spec, map);
}

typedef struct Attention {
  i64 b, h, g, m, n, d;
  bool causal;
  u32 q, k, v, o, l;
} Attention;

// The specification of fa3_fwd as lang/README.md has it.
static inline void attention(Fix *f, Attention *a) {
  Sc *sc = &f->sc;
  Kernel *k = f->k;
  memcpy(f->b.dim, (i64[]){a->b, a->h, a->g, a->m, a->n}, 5 * sizeof(i64));
  f->b.arg[0] = 1 / sqrt((double)a->d);
  Xid B = DIM(0), H = DIM(1), G = DIM(2), M = DIM(3), N = DIM(4), D = INT(a->d);
  a->q = tensor(f, EL_F16, SCHEDC_IN, 4, (Xid[]){B, M, H, D}, (i64[]){a->b, a->m, a->h, a->d});
  a->k = tensor(f, EL_F16, SCHEDC_IN, 4, (Xid[]){B, N, G, D}, (i64[]){a->b, a->n, a->g, a->d});
  a->v = tensor(f, EL_F16, SCHEDC_IN, 4, (Xid[]){B, N, G, D}, (i64[]){a->b, a->n, a->g, a->d});
  a->o = tensor(f, EL_F16, SCHEDC_OUT, 4, (Xid[]){B, M, H, D}, (i64[]){a->b, a->m, a->h, a->d});
  a->l = tensor(f, EL_F32, SCHEDC_OUT, 3, (Xid[]){B, H, M}, (i64[]){a->b, a->h, a->m});
  u32 s = km_buf(sc, k, SP_SPEC, EL_F16, 4, (Xid[]){B, H, M, N});
  u32 x = km_buf(sc, k, SP_SPEC, EL_F16, 3, (Xid[]){B, H, M});

  Xid i0 = IDX(0), i1 = IDX(1), i2 = IDX(2), i3 = IDX(3), i4 = IDX(4);
  Xid scale = x_leaf(sc, k, X_ARG, TY_REAL, 0);
  Xid group = OP2(IDIV, OP2(MUL, i1, G), H);
  Xid dot =
      REDUCE(SUM, 4, OP2(MUL, LOADV(AT(a->q, i0, i2, i1, i4)), LOADV(AT(a->k, i0, i3, group, i4))));
  Xid see = OP2(LE, i3, OP2(SUB, OP2(ADD, i2, N), M));
  Xid keep = OP2(OR, x_bool(sc, k, !a->causal), see);
  equation(f, AT(s, i0, i1, i2, i3), OP3(WHERE, keep, OP2(MUL, scale, dot), REAL(-INFINITY)), 4, 5,
           (Xid[]){B, H, M, N, D});

  Xid sl = LOADV(AT(s, i0, i1, i2, i3)), xl = LOADV(AT(x, i0, i1, i2)),
      none = OP2(EQ, xl, REAL(-INFINITY));
  equation(f, AT(x, i0, i1, i2), REDUCE(RMAX, 3, sl), 3, 4, (Xid[]){B, H, M, N});
  Xid sum = REDUCE(SUM, 3, OP1(EXP, OP2(SUB, sl, xl)));
  equation(f, AT(a->l, i0, i1, i2), OP3(WHERE, none, REAL(-INFINITY), OP2(ADD, xl, OP1(LOG, sum))),
           3, 4, (Xid[]){B, H, M, N});

  // O[b,i,h,d]: variables b 0, i 1, h 2, d 3, j 4
  Xid so = LOADV(AT(s, i0, i2, i1, i4)), lo = LOADV(AT(a->l, i0, i2, i1));
  Xid og = OP2(IDIV, OP2(MUL, i2, G), H);
  Xid weighted = OP2(MUL, OP1(EXP, OP2(SUB, so, lo)), LOADV(AT(a->v, i0, i4, og, i3)));
  Xid term = OP3(WHERE, OP2(EQ, so, REAL(-INFINITY)), REAL(0), weighted);
  equation(f, AT(a->o, i0, i1, i2, i3), REDUCE(SUM, 4, term), 4, 5, (Xid[]){B, M, H, D, N});
}

#endif
