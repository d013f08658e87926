// spec.c - specifications and tolerances: attention against loops in f64, what is kept of
// intermediates, computed positions (packed sequences), and `pt`.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

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

static void *counted_alloc(void *user, size_t n) {
  Fix *f = user;
  if (f->left >= 0 && f->left-- == 0) return NULL;
  size_t *at = malloc(n + 16);
  *at = n;
  f->now += n;
  if (f->now > f->peak) f->peak = f->now;
  return at + 2;
}

static void counted_free(void *user, void *at) {
  Fix *f = user;
  size_t *block = (size_t *)at - 2;
  f->now -= *block;
  free(block);
}

static int setup(void **state) {
  Fix *f = calloc(1, sizeof *f);
  f->left = -1;
  sc_init(&f->sc, &(schedc_allocator){counted_alloc, counted_free, f});
  if (setjmp(f->home)) return -1;
  f->sc.unwind = &f->home;
  f->k = sc_kernel(&f->sc);
  f->b = (Binding){.k = f->k,
                   .dim = NEWS(&f->sc, i64, 8),
                   .arg = NEWS(&f->sc, double, 8),
                   .buf = NEWS(&f->sc, TensorRef, MAX_BUFS)};
  *state = f;
  return 0;
}

static int teardown(void **state) {
  Fix *f = *state;
  for (int i = 0; i < MAX_BUFS; i++) free(f->to[i]);
  sc_free(&f->sc);
  assert_true(f->now == 0);
  free(f);
  return 0;
}

#define BEGIN       \
  Fix *f = *state;  \
  Sc *sc = &f->sc;  \
  Kernel *k = f->k; \
  (void)sc, (void)k

// A contiguous tensor filled with values that its element type holds exactly.
static u32 tensor(Fix *f, Elem elem, u8 dir, u32 rank, const Xid *dim, const i64 *shape) {
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

static size_t box_size(const Fix *f, u32 t, const Boxes *of) {
  size_t n = 1;
  for (u32 i = 0; i < f->k->buf.at[t].rank; i++) n *= (size_t)of->extent[i];
  return n;
}

// Evaluates the specification into f->to.
static schedc_status spec(Fix *f, bool exact, Elem round, unsigned threads) {
  Boxes out[MAX_BUFS] = {0};
  Sc own;
  jmp_buf home;
  sc_init(&own, &f->sc.alloc);
  own.unwind = &home;
  schedc_status status = setjmp(home) ? own.why : SCHEDC_OK;
  if (!status) status = sc_spec(&own, f->k, &f->b, exact, round, threads, NULL, out);
  for (u32 t = 0; status == SCHEDC_OK && t < MAX_BUFS; t++) {
    if (!f->to[t]) continue;
    assert_int_equal(out[t].n, 1);
    memcpy(f->to[t], out[t].at, box_size(f, t, &out[t]) * sizeof(double));
  }
  sc_free(&own);
  return status;
}

static double get(Fix *f, u32 t, i64 at) {
  return sc_get_elem(f->k->buf.at[t].elem, f->b.buf[t].at, at);
}

static void equation(Fix *f, u32 dst, Xid root, u32 outs, u32 vars, const Xid *extent) {
  u32 map = km_map(&f->sc, f->k, dst, root, outs, vars, extent);
  PUSH(&f->sc, &f->k->spec, map);
}

typedef struct Attention {
  i64 b, h, g, m, n, d;
  bool causal;
  u32 q, k, v, o, l;
} Attention;

// The specification of fa3_fwd as language.md has it.
static void attention(Fix *f, Attention *a) {
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
  u32 s = km_buf(sc, k, SP_SPEC, EL_F32, 4, (Xid[]){B, H, M, N});
  u32 x = km_buf(sc, k, SP_SPEC, EL_F32, 3, (Xid[]){B, H, M});

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

static void check_attention(Fix *f, const Attention *a, double eps) {
  double *s = malloc((size_t)(a->n + 1) * sizeof *s);
  for (i64 b = 0; b < a->b; b++)
    for (i64 h = 0; h < a->h; h++)
      for (i64 i = 0; i < a->m; i++) {
        i64 g = h * a->g / a->h;
        double top = -INFINITY, sum = 0;
        for (i64 j = 0; j < a->n; j++) {
          s[j] = 0;
          for (i64 d = 0; d < a->d; d++)
            s[j] += get(f, a->q, ((b * a->m + i) * a->h + h) * a->d + d) *
                    get(f, a->k, ((b * a->n + j) * a->g + g) * a->d + d);
          s[j] *= f->b.arg[0];
          if (a->causal && j > i + a->n - a->m) s[j] = -INFINITY;
          top = fmax(top, s[j]);
        }
        for (i64 j = 0; j < a->n; j++) sum += top == -INFINITY ? 0 : exp(s[j] - top);
        double l = top == -INFINITY ? -INFINITY : top + log(sum),
               got = f->to[a->l][(b * a->h + h) * a->m + i];
        assert_true(got == l || fabs(got - l) <= eps);
        for (i64 d = 0; d < a->d; d++) {
          double o = 0;
          for (i64 j = 0; j < a->n; j++)
            if (s[j] != -INFINITY)
              o += exp(s[j] - l) * get(f, a->v, ((b * a->n + j) * a->g + g) * a->d + d);
          assert_true(fabs(f->to[a->o][((b * a->m + i) * a->h + h) * a->d + d] - o) <= eps);
        }
      }
  free(s);
}

static void attention_exact(void **state) {
  BEGIN;
  Attention a = {.b = 2, .h = 4, .g = 2, .m = 19, .n = 300, .d = 24};
  attention(f, &a);
  assert_int_equal(spec(f, true, EL_F32, 2), SCHEDC_OK);
  check_attention(f, &a, 1e-12);
}

// The first rows see nothing: O = 0, L = -inf.
static void attention_causal(void **state) {
  BEGIN;
  Attention a = {.b = 1, .h = 2, .g = 1, .m = 40, .n = 33, .d = 16, .causal = true};
  attention(f, &a);
  assert_int_equal(spec(f, true, EL_F32, 3), SCHEDC_OK);
  check_attention(f, &a, 1e-12);
  assert_true(f->to[a.l][0] == -INFINITY && f->to[a.o][0] == 0);
}

static void attention_rounded(void **state) {
  BEGIN;
  Attention a = {.b = 1, .h = 2, .g = 2, .m = 17, .n = 130, .d = 64};
  attention(f, &a);
  assert_int_equal(spec(f, false, EL_F16, 1), SCHEDC_OK);
  check_attention(f, &a, 2e-2);
  for (i64 i = 0; i < 17 * 2 * 64; i++)
    assert_true(f->to[a.o][i] == sc_round(EL_F16, (float)f->to[a.o][i]));
  double *first = malloc(17 * 2 * 64 * sizeof *first);
  memcpy(first, f->to[a.o], 17 * 2 * 64 * sizeof *first);
  assert_int_equal(spec(f, false, EL_F16, 5), SCHEDC_OK);
  assert_memory_equal(first, f->to[a.o], 17 * 2 * 64 * sizeof *first);  // whatever the threads
  free(first);
}

static void empty_dimensions(void **state) {
  BEGIN;
  Attention a = {.b = 1, .h = 1, .g = 1, .m = 3, .n = 0, .d = 8};
  attention(f, &a);
  assert_int_equal(spec(f, true, EL_F32, 2), SCHEDC_OK);
  assert_true(f->to[a.l][2] == -INFINITY && f->to[a.o][23] == 0);
}

// Intermediates take a row of S, not all of it.
static void memory_is_linear(void **state) {
  BEGIN;
  Attention a = {.b = 1, .h = 2, .g = 2, .m = 512, .n = 1024, .d = 8};
  attention(f, &a);
  size_t before = f->now;
  f->peak = before;
  assert_int_equal(spec(f, true, EL_F32, 2), SCHEDC_OK);
  assert_true(f->now == before);
  assert_true(f->peak - before < 2u << 20);  // S whole would be 8 MiB
}

static void matrix_product(void **state) {
  BEGIN;
  memcpy(f->b.dim, (i64[]){33, 70, 50}, 3 * sizeof(i64));
  Xid M = DIM(0), N = DIM(1), K = DIM(2), ext[] = {M, N, K};
  u32 a = tensor(f, EL_BF16, SCHEDC_IN, 2, (Xid[]){M, K}, (i64[]){33, 50});
  u32 b = tensor(f, EL_BF16, SCHEDC_IN, 2, (Xid[]){N, K}, (i64[]){70, 50});
  u32 c = tensor(f, EL_F32, SCHEDC_OUT, 2, (Xid[]){M, N}, (i64[]){33, 70});
  Xid i = IDX(0), j = IDX(1), d = IDX(2);
  equation(f, AT(c, i, j), REDUCE(SUM, 2, OP2(MUL, LOADV(AT(a, i, d)), LOADV(AT(b, j, d)))), 2, 3,
           ext);
  assert_int_equal(spec(f, true, EL_F32, 2), SCHEDC_OK);
  for (i64 x = 0; x < 33; x++)
    for (i64 y = 0; y < 70; y++) {
      double want = 0;
      for (i64 z = 0; z < 50; z++) want += get(f, a, x * 50 + z) * get(f, b, y * 50 + z);
      assert_true(fabs(f->to[c][x * 70 + y] - want) < 1e-12);
    }
}

// y[t] = sum(j) where(j < cu[s+1] - cu[s], x[cu[s] + j] * w[perm[t], j], 0) with s = seq[t]:
// elements whose places are read from memory, some of them outside.
static void computed_positions(void **state) {
  BEGIN;
  memcpy(f->b.dim, (i64[]){40, 5}, 2 * sizeof(i64));
  Xid T = DIM(0), P = DIM(1), P1 = OP2(ADD, P, INT(1)), ext[] = {T, T};
  u32 cu = tensor(f, EL_I32, SCHEDC_IN, 1, &P1, (i64[]){6}),
      seq = tensor(f, EL_I32, SCHEDC_IN, 1, &T, (i64[]){40});
  u32 x = tensor(f, EL_F16, SCHEDC_IN, 1, &T, (i64[]){40}),
      perm = tensor(f, EL_I32, SCHEDC_IN, 1, &T, (i64[]){40});
  u32 w = tensor(f, EL_F32, SCHEDC_IN, 2, (Xid[]){T, T}, (i64[]){40, 40});
  u32 y = tensor(f, EL_F32, SCHEDC_OUT, 1, &T, (i64[]){40}),
      z = tensor(f, EL_F32, SCHEDC_OUT, 1, &T, (i64[]){40});
  const i32 cuv[] = {0, 3, 3, 20, 31, 40};
  memcpy(f->b.buf[cu].at, cuv, sizeof cuv);
  for (i32 t = 0; t < 40; t++) {
    ((i32 *)(void *)f->b.buf[seq].at)[t] = t % 5;
    ((i32 *)(void *)f->b.buf[perm].at)[t] = t == 7 ? 1000000 : t == 9 ? -1 : 39 - t;
  }
  Xid t = IDX(0), j = IDX(1);
  Xid s = x_leaf(sc, k, X_LOAD, TY_INT, AT(seq, t)), p = x_leaf(sc, k, X_LOAD, TY_INT, AT(perm, t));
  Xid from = x_leaf(sc, k, X_LOAD, TY_INT, AT(cu, s));
  Xid to = x_leaf(sc, k, X_LOAD, TY_INT, AT(cu, OP2(ADD, s, INT(1))));
  Xid xs = LOADV(AT(x, OP2(ADD, from, j))), ws = LOADV(AT(w, p, j));
  Xid term = OP3(WHERE, OP2(LT, j, OP2(SUB, to, from)), OP2(MUL, xs, ws), REAL(0));
  equation(f, AT(y, t), REDUCE(SUM, 1, term), 1, 2, ext);
  equation(f, AT(z, p), LOADV(AT(y, OP2(SUB, INT(39), t))), 1, 1, ext);
  assert_int_equal(spec(f, true, EL_F32, 2), SCHEDC_OK);
  double want[40];
  for (int a = 0; a < 40; a++) {
    int q = a % 5, row = a == 7 || a == 9 ? -1 : 39 - a;
    want[a] = 0;
    for (int b = 0; b < cuv[q + 1] - cuv[q] && row >= 0; b++)
      want[a] += get(f, x, cuv[q] + b) * get(f, w, row * 40 + b);
    assert_true(fabs(f->to[y][a] - want[a]) < 1e-12);
  }
  for (int a = 0; a < 40; a++) {
    int at = 39 - a;
    if (at == 7 || at == 9) assert_true(isnan(f->to[z][a]));  // nobody writes it
    else assert_true(f->to[z][a] == f->to[y][a]);
  }
}

// dK[j,d] = sum(i) P[i,j] * Q[i,d] reads P at another index than it is written: only b is common.
static void transposed_reads(void **state) {
  BEGIN;
  memcpy(f->b.dim, (i64[]){3, 21, 30}, 3 * sizeof(i64));
  Xid B = DIM(0), M = DIM(1), N = DIM(2), D = INT(9);
  u32 a = tensor(f, EL_F16, SCHEDC_IN, 3, (Xid[]){B, M, N}, (i64[]){3, 21, 30});
  u32 q = tensor(f, EL_F16, SCHEDC_IN, 3, (Xid[]){B, M, D}, (i64[]){3, 21, 9});
  u32 dk = tensor(f, EL_F16, SCHEDC_OUT, 3, (Xid[]){B, N, D}, (i64[]){3, 30, 9});
  u32 p = km_buf(sc, k, SP_SPEC, EL_F32, 3, (Xid[]){B, M, N});
  Xid i0 = IDX(0), i1 = IDX(1), i2 = IDX(2), i3 = IDX(3);
  equation(f, AT(p, i0, i1, i2), OP1(EXP, LOADV(AT(a, i0, i1, i2))), 3, 3, (Xid[]){B, M, N});
  equation(f, AT(dk, i0, i1, i2),
           REDUCE(SUM, 3, OP2(MUL, LOADV(AT(p, i0, i3, i1)), LOADV(AT(q, i0, i3, i2)))), 3, 4,
           (Xid[]){B, N, D, M});
  assert_int_equal(spec(f, true, EL_F32, 2), SCHEDC_OK);
  for (i64 b = 0; b < 3; b++)
    for (i64 j = 0; j < 30; j++)
      for (i64 d = 0; d < 9; d++) {
        double want = 0;
        for (i64 i = 0; i < 21; i++)
          want += exp(get(f, a, (b * 21 + i) * 30 + j)) * get(f, q, (b * 21 + i) * 9 + d);
        assert_true(fabs(f->to[dk][(b * 30 + j) * 9 + d] - want) < 1e-12);
      }
}

// Attention over packed sequences: which one a row belongs to is known before, and kept whole; S is
// not.
static void packed_sequences(void **state) {
  BEGIN;
  enum { T = 1000 };
  memcpy(f->b.dim, (i64[]){T, 3}, 2 * sizeof(i64));
  Xid N = DIM(0), B1 = DIM(1);
  u32 cu = tensor(f, EL_I32, SCHEDC_IN, 1, &B1, (i64[]){3}),
      x = tensor(f, EL_F16, SCHEDC_IN, 1, &N, (i64[]){T});
  u32 y = tensor(f, EL_F32, SCHEDC_OUT, 1, &N, (i64[]){T});
  u32 who = km_buf(sc, k, SP_SPEC, EL_F32, 1, &N),
      s = km_buf(sc, k, SP_SPEC, EL_F32, 2, (Xid[]){N, N});
  const i32 cuv[] = {0, 600, 700};
  memcpy(f->b.buf[cu].at, cuv, sizeof cuv);
  Xid i = IDX(0), j = IDX(1), c = x_leaf(sc, k, X_LOAD, TY_INT, AT(cu, j));
  Xid count = REDUCE(SUM, 1, OP3(WHERE, OP2(LE, c, i), INT(1), INT(0)));
  equation(f, AT(who, i), OP1(TOREAL, OP2(ADD, count, INT(4096))), 1, 2, (Xid[]){N, B1});
  Xid same = OP2(EQ, LOADV(AT(who, i)), LOADV(AT(who, j)));
  equation(f, AT(s, i, j), OP3(WHERE, same, LOADV(AT(x, j)), REAL(-INFINITY)), 2, 2, (Xid[]){N, N});
  equation(f, AT(y, i), REDUCE(RMAX, 1, LOADV(AT(s, i, j))), 1, 2, (Xid[]){N, N});
  for (int exact = 0; exact < 2; exact++) {
    size_t before = f->peak = f->now;
    assert_int_equal(spec(f, exact, EL_BF16, 2), SCHEDC_OK);
    assert_true(f->peak - before < 1u << 20);
    for (int a = 0; a < T; a++) {
      double top = -INFINITY;
      for (int b = a < 600 ? 0 : a < 700 ? 600 : 700; b < (a < 600 ? 600 : a < 700 ? 700 : T); b++)
        top = fmax(top, get(f, x, b));
      assert_true(f->to[y][a] == (exact ? top : sc_round(EL_BF16, (float)top)));
    }
  }
}

static void strided_inputs(void **state) {
  BEGIN;
  memcpy(f->b.dim, (i64[]){6, 7}, 2 * sizeof(i64));
  Xid M = DIM(0), N = DIM(1), ext[] = {M, N};
  u32 a = tensor(f, EL_E4M3, SCHEDC_IN, 2, ext, (i64[]){20, 30}),
      b = tensor(f, EL_F32, SCHEDC_OUT, 2, ext, (i64[]){6, 7});
  f->b.buf[a] = (TensorRef){f->b.buf[a].at + 5, {90, 2}, {6, 7}};
  f->b.buf[a].stride[0] = 60;
  equation(f, AT(b, IDX(0), IDX(1)), LOADV(AT(a, IDX(0), IDX(1))), 2, 2, ext);
  assert_int_equal(spec(f, true, EL_F32, 1), SCHEDC_OK);
  for (i64 i = 0; i < 6; i++)
    for (i64 j = 0; j < 7; j++) assert_true(f->to[b][i * 7 + j] == get(f, a, i * 60 + j * 2));
}

// ---- tolerance.c

// Stores the last evaluation's results as a kernel would.
static void store_outputs(Fix *f) {
  for (u32 t = 0; t < f->k->buf.n; t++) {
    if (!f->to[t]) continue;
    i64 n = 1;
    for (u32 i = 0; i < f->k->buf.at[t].rank; i++) n *= f->b.buf[t].shape[i];
    for (i64 i = 0; i < n; i++) sc_set_elem(f->k->buf.at[t].elem, f->b.buf[t].at, i, f->to[t][i]);
  }
}

static void honest_outputs_pass(void **state) {
  BEGIN;
  Attention a = {.b = 1, .h = 2, .g = 1, .m = 40, .n = 33, .d = 16, .causal = true};
  schedc_error e[2] = {SCHEDC_ERROR_INIT, SCHEDC_ERROR_INIT};
  attention(f, &a);
  assert_int_equal(spec(f, true, EL_F32, 2), SCHEDC_OK);
  store_outputs(f);
  size_t before = f->now;
  assert_int_equal(sc_compare(sc, k, &f->b, 2, NULL, e), SCHEDC_OK);
  assert_true(f->now == before);
  assert_true(e[0].pass && e[1].pass && e[0].size == sizeof e[0]);
  assert_int_equal(e[0].elements, 40 * 2 * 16);
  assert_true(e[0].max_error > 0 && e[0].max_allowed < 0.02 && e[0].mean_allowed < 0.002);
  assert_true(e[1].max_allowed == 1e-3);
  assert_string_equal(e[1].tensor, "x");
  assert_int_equal(spec(f, false, EL_F32, 2), SCHEDC_OK);
  store_outputs(f);  // computed in f32
  assert_int_equal(sc_compare(sc, k, &f->b, 1, NULL, e), SCHEDC_OK);
  assert_true(e[0].pass && e[1].pass);
}

static void wrong_outputs_fail(void **state) {
  BEGIN;
  Attention a = {.b = 1, .h = 2, .g = 1, .m = 40, .n = 33, .d = 16, .causal = true};
  schedc_error e[2] = {SCHEDC_ERROR_INIT, SCHEDC_ERROR_INIT};
  attention(f, &a);
  assert_int_equal(spec(f, true, EL_F32, 2), SCHEDC_OK);
  store_outputs(f);
  u16 *o = (u16 *)(void *)f->b.buf[a.o].at;
  float *l = (float *)(void *)f->b.buf[a.l].at;
  i64 at = (30 * 2 + 1) * 16 + 5;
  u16 was = o[at];
  o[at] = sc_to_f16(sc_of_f16(was) + 0.05f);
  l[3] = -1e30f;  // -inf is right: the row sees nothing
  assert_int_equal(sc_compare(sc, k, &f->b, 2, NULL, e), SCHEDC_OK);
  assert_true(!e[0].pass && !e[1].pass);
  assert_true(e[0].worst[1] == 30 && e[0].worst[2] == 1 && e[0].worst[3] == 5);
  assert_true(fabs(e[0].max_error - 0.05) < 1e-3 && e[0].unwritten == 0);
  assert_true(e[1].max_error == INFINITY && e[1].worst[2] == 3 && e[1].worst_ref == -INFINITY);
  o[at] = 0x7e00;
  l[3] = -INFINITY;
  assert_int_equal(sc_compare(sc, k, &f->b, 2, NULL, e), SCHEDC_OK);
  assert_true(!e[0].pass && e[0].unwritten == 1 && e[1].pass);
  o[at] = was;
  for (i64 i = 0; i < 40 * 2 * 16; i++)  // each within the largest error, but all of them
    o[i] = sc_to_f16(sc_of_f16(o[i]) + (float)e[0].max_allowed * 0.6f);
  assert_int_equal(sc_compare(sc, k, &f->b, 2, NULL, e), SCHEDC_OK);
  assert_true(!e[0].pass && e[0].max_error <= e[0].max_allowed &&
              e[0].mean_error > e[0].mean_allowed);
}

// NaN inputs must come out; what overflows the type must be what a conversion makes of it.
static void special_values(void **state) {
  BEGIN;
  f->b.dim[0] = 4;
  Xid N = DIM(0);
  u32 x = tensor(f, EL_F16, SCHEDC_IN, 1, &N, (i64[]){4}),
      y = tensor(f, EL_F16, SCHEDC_OUT, 1, &N, (i64[]){4});
  u32 z = tensor(f, EL_E4M3, SCHEDC_OUT, 1, &N, (i64[]){4}),
      n = tensor(f, EL_I32, SCHEDC_OUT, 1, &N, (i64[]){4});
  Xid i = IDX(0), square = OP2(MUL, LOADV(AT(x, i)), LOADV(AT(x, i)));
  equation(f, AT(y, i), square, 1, 1, &N);
  equation(f, AT(z, i), square, 1, 1, &N);
  equation(f, AT(n, i), OP2(MUL, i, i), 1, 1, &N);
  const double in[] = {NAN, 1000, 2, 0}, yout[] = {NAN, INFINITY, 4, 0}, zout[] = {NAN, 448, 4, 0};
  schedc_error e[3] = {SCHEDC_ERROR_INIT, SCHEDC_ERROR_INIT, SCHEDC_ERROR_INIT};
  for (int j = 0; j < 4; j++) {
    sc_set_elem(EL_F16, f->b.buf[x].at, j, in[j]);
    sc_set_elem(EL_F16, f->b.buf[y].at, j, yout[j]);
    sc_set_elem(EL_E4M3, f->b.buf[z].at, j, zout[j]);
    sc_set_elem(EL_I32, f->b.buf[n].at, j, j * j);
  }
  assert_int_equal(sc_compare(sc, k, &f->b, 1, NULL, e), SCHEDC_OK);
  assert_true(e[0].pass && e[1].pass && e[2].pass && e[2].max_allowed == 0);
  sc_set_elem(EL_F16, f->b.buf[y].at, 0, 0);
  sc_set_elem(EL_F16, f->b.buf[y].at, 1, 65504);
  sc_set_elem(EL_I32, f->b.buf[n].at, 3, 8);
  assert_int_equal(sc_compare(sc, k, &f->b, 1, NULL, e), SCHEDC_OK);
  assert_true(!e[0].pass && e[1].pass && !e[2].pass);
}

// ---- samples

static i64 flat(const Fix *f, u32 t, const Boxes *of, i64 box, size_t n) {
  i64 at = 0;
  i64 idx[SC_MAX_RANK];
  for (u32 i = f->k->buf.at[t].rank; i-- > 0; n /= (size_t)of->extent[i])
    idx[i] = of->origin[box][i] + (i64)(n % (size_t)of->extent[i]);
  for (u32 i = 0; i < f->k->buf.at[t].rank; i++) at += idx[i] * f->b.buf[t].stride[i];
  return at;
}

// A sample's values are those of the whole, bit for bit, exactly and rounded.
static void samples_agree(void **state) {
  BEGIN;
  Attention a = {.b = 2, .h = 4, .g = 2, .m = 75, .n = 90, .d = 16, .causal = true};
  attention(f, &a);
  for (int exact = 0; exact < 2; exact++) {
    Boxes out[MAX_BUFS] = {0};
    assert_int_equal(spec(f, exact, EL_F16, 2), SCHEDC_OK);
    assert_int_equal(sc_spec(sc, k, &f->b, exact, EL_F16, 3, &(Sample){.places = 50}, out),
                     SCHEDC_OK);
    for (u32 t = 0; t < MAX_BUFS; t++) {
      if (!f->to[t]) continue;
      size_t n = box_size(f, t, &out[t]);
      assert_int_equal(out[t].n, 50);
      assert_int_equal(n, t == a.o ? 16 : 1);
      for (size_t i = 0; i < n * 50; i++) {
        i64 at = flat(f, t, &out[t], (i64)(i / n), i % n);
        assert_true(out[t].at[i] == f->to[t][at]);
      }
      assert_int_equal(flat(f, t, &out[t], 0, 0), 0);
      assert_int_equal(flat(f, t, &out[t], 49, n - 1), 2 * 75 * 4 * (t == a.o ? 16 : 1) - 1);
    }
  }
}

static u64 compared(Fix *f, Sample sample) {
  schedc_error e[2] = {SCHEDC_ERROR_INIT, SCHEDC_ERROR_INIT};
  assert_int_equal(sc_compare(&f->sc, f->k, &f->b, 2, &sample, e), SCHEDC_OK);
  assert_true(e[0].pass && e[1].pass && e[0].total == 40 * 2 * 16 && e[1].total == 40 * 2);
  assert_int_equal(e[0].elements, e[1].elements * 16);
  return e[1].elements;
}

static void limits_of_samples(void **state) {
  BEGIN;
  Attention a = {.b = 1, .h = 2, .g = 1, .m = 40, .n = 33, .d = 16};
  attention(f, &a);
  assert_int_equal(spec(f, true, EL_F32, 2), SCHEDC_OK);
  store_outputs(f);
  assert_int_equal(compared(f, (Sample){0}), 80);
  assert_int_equal(compared(f, (Sample){.places = 80}), 80);
  assert_int_equal(compared(f, (Sample){.places = 1}), 1);
  assert_int_equal(compared(f, (Sample){.places = 30}), 30);
  assert_int_equal(compared(f, (Sample){.operations = 1u << 30}), 80);
  assert_int_equal(compared(f, (Sample){.operations = 1}), 1);
  // A row: two products of 2 * 33 * 16, two sums, and the elements.
  u64 some = compared(f, (Sample){.operations = 40000});
  assert_true(some > 8 && some < 19);
}

// What is wrong in the sample fails; what was not written fails wherever it is.
static void samples_find(void **state) {
  BEGIN;
  Attention a = {.b = 1, .h = 2, .g = 1, .m = 300, .n = 33, .d = 16};
  schedc_error e[2] = {SCHEDC_ERROR_INIT, SCHEDC_ERROR_INIT};
  Sample sample = {.places = 20};
  attention(f, &a);
  assert_int_equal(spec(f, true, EL_F32, 2), SCHEDC_OK);
  store_outputs(f);
  u16 *o = (u16 *)(void *)f->b.buf[a.o].at;
  for (i64 i = 0; i < 2 * 300 * 16; i += 16) {
    u16 was = o[i + 3];
    o[i + 3] = sc_to_f16(NAN);
    assert_int_equal(sc_compare(sc, k, &f->b, 1, &sample, e), SCHEDC_OK);
    assert_true(!e[0].pass && e[0].unwritten == 1 && e[1].pass && e[0].elements == 320);
    o[i + 3] = was;
  }
  o[(299 * 2 + 1) * 16 + 15] = sc_to_f16(9);
  assert_int_equal(sc_compare(sc, k, &f->b, 1, &sample, e), SCHEDC_OK);
  assert_true(!e[0].pass && e[0].worst[1] == 299 && e[0].worst[2] == 1 && e[0].worst[3] == 15);
}

static bool drawn(const i64 *to, size_t n, i64 place) {
  for (size_t i = 0; i < n; i++)
    if (to[i] == place) return true;
  return false;
}

static void draws(void **state) {
  (void)state;
  const i64 line = 8448, tile = 128, box[] = {4, 16, 8448}, tiles[] = {1, 1, 128};
  i64 to[1000], again[1000];
  assert_int_equal(sc_draw_places(&line, &tile, 1, 40, to), 40);
  for (int i = 1; i < 40; i++) assert_true(to[i] > to[i - 1]);
  const i64 wanted[] = {0, 127, 128, 33 * 128 - 1, 33 * 128, 8319, 8320, 8447};
  for (size_t i = 0; i < COUNT(wanted); i++) assert_true(drawn(to, 40, wanted[i]));
  assert_int_equal(sc_draw_places(box, tiles, 3, 1000, to), 1000);
  assert_int_equal(sc_draw_places(box, tiles, 3, 1000, again), 1000);
  assert_memory_equal(to, again, sizeof to);
  int edges = 0;
  u64 heads = 0;
  for (int i = 0; i < 1000; i++) {
    assert_true(to[i] >= 0 && to[i] < 4 * 16 * 8448);
    edges += to[i] % 8448 % 128 == 0 || to[i] % 8448 % 128 == 127;
    heads |= (u64)1 << to[i] / 8448;
  }
  assert_true(edges > 400 && edges < 600 && heads == UINT64_MAX);
  assert_int_equal(sc_draw_places(box, tiles, 1, 7, to), 4);  // all
  assert_int_equal(sc_draw_places(box, tiles, 3, 1, to), 1);
  assert_int_equal(sc_draw_places((i64[]){3, 0}, tiles, 2, 9, to), 0);
}

// Whichever allocation fails: a status, and nothing leaks (the allocator's balance is checked at
// the end).
static void memory_runs_out(void **state) {
  BEGIN;
  Attention a = {.b = 1, .h = 2, .g = 1, .m = 20, .n = 33, .d = 16};
  schedc_error e[2] = {SCHEDC_ERROR_INIT, SCHEDC_ERROR_INIT};
  attention(f, &a);
  int fails = 0;
  for (schedc_status got = SCHEDC_ENOMEM; got != SCHEDC_OK; fails++) {
    f->left = fails;
    size_t before = f->now;
    got = sc_compare(sc, k, &f->b, 2, NULL, e);
    f->left = -1;
    assert_true(got == SCHEDC_OK || got == SCHEDC_ENOMEM);
    assert_true(f->now == before);
  }
  assert_true(fails > 5);
}

static void no_specification(void **state) {
  BEGIN;
  assert_int_equal(spec(f, true, EL_F32, 1), SCHEDC_EARG);
}

// How long a large case takes; run with SCHEDC_LARGE=1.
static void large_case(void **state) {
  BEGIN;
  Attention a = {.b = 1, .h = 2, .g = 2, .m = 1024, .n = 1024, .d = 128};
  if (!getenv("SCHEDC_LARGE")) skip();
  attention(f, &a);
  for (int exact = 1; exact >= 0; exact--) {
    struct timespec t0, t1;
    clock_gettime(CLOCK_MONOTONIC, &t0);
    assert_int_equal(spec(f, exact, EL_F16, 2), SCHEDC_OK);
    clock_gettime(CLOCK_MONOTONIC, &t1);
    print_message("%s %.3f s\n", exact ? "exact" : "pt",
                  (double)(t1.tv_sec - t0.tv_sec) + 1e-9 * (double)(t1.tv_nsec - t0.tv_nsec));
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(attention_exact),
      TEST(attention_causal),
      TEST(attention_rounded),
      TEST(empty_dimensions),
      TEST(memory_is_linear),
      TEST(matrix_product),
      TEST(computed_positions),
      TEST(transposed_reads),
      TEST(packed_sequences),
      TEST(strided_inputs),
      TEST(honest_outputs_pass),
      TEST(wrong_outputs_fail),
      TEST(special_values),
      TEST(memory_runs_out),
      TEST(no_specification),
      TEST(samples_agree),
      TEST(limits_of_samples),
      TEST(samples_find),
      TEST(draws),
      TEST(large_case),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
