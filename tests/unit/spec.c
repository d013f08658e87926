// spec.c - specifications: attention against loops in f64, what is kept of intermediates, computed
// positions (packed sequences), and `pt`.
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

#include "speckit.h"

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
  assert_int_equal(spec(f, true, 2), SCHEDC_OK);
  check_attention(f, &a, 1e-12);
}

// The first rows see nothing: O = 0, L = -inf.
static void attention_causal(void **state) {
  BEGIN;
  Attention a = {.b = 1, .h = 2, .g = 1, .m = 40, .n = 33, .d = 16, .causal = true};
  attention(f, &a);
  assert_int_equal(spec(f, true, 3), SCHEDC_OK);
  check_attention(f, &a, 1e-12);
  assert_true(f->to[a.l][0] == -INFINITY && f->to[a.o][0] == 0);
}

static void attention_rounded(void **state) {
  BEGIN;
  Attention a = {.b = 1, .h = 2, .g = 2, .m = 17, .n = 130, .d = 64};
  attention(f, &a);
  assert_int_equal(spec(f, false, 1), SCHEDC_OK);
  check_attention(f, &a, 2e-2);
  for (i64 i = 0; i < 17 * 2 * 64; i++)
    assert_true(f->to[a.o][i] == sc_round(EL_F16, (float)f->to[a.o][i]));
  double *first = malloc(17 * 2 * 64 * sizeof *first);
  memcpy(first, f->to[a.o], 17 * 2 * 64 * sizeof *first);
  assert_int_equal(spec(f, false, 5), SCHEDC_OK);
  assert_memory_equal(first, f->to[a.o], 17 * 2 * 64 * sizeof *first);  // whatever the threads
  free(first);
}

static void empty_dimensions(void **state) {
  BEGIN;
  Attention a = {.b = 1, .h = 1, .g = 1, .m = 3, .n = 0, .d = 8};
  attention(f, &a);
  assert_int_equal(spec(f, true, 2), SCHEDC_OK);
  assert_true(f->to[a.l][2] == -INFINITY && f->to[a.o][23] == 0);
}

// Intermediates take a row of S, not all of it.
static void memory_is_linear(void **state) {
  BEGIN;
  Attention a = {.b = 1, .h = 2, .g = 2, .m = 512, .n = 1024, .d = 8};
  attention(f, &a);
  size_t before = f->now;
  f->peak = before;
  assert_int_equal(spec(f, true, 2), SCHEDC_OK);
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
  assert_int_equal(spec(f, true, 2), SCHEDC_OK);
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
  assert_int_equal(spec(f, true, 2), SCHEDC_OK);
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
  assert_int_equal(spec(f, true, 2), SCHEDC_OK);
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
      s = km_buf(sc, k, SP_SPEC, EL_BF16, 2, (Xid[]){N, N});
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
    assert_int_equal(spec(f, exact, 2), SCHEDC_OK);
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
  assert_int_equal(spec(f, true, 1), SCHEDC_OK);
  for (i64 i = 0; i < 6; i++)
    for (i64 j = 0; j < 7; j++) assert_true(f->to[b][i * 7 + j] == get(f, a, i * 60 + j * 2));
}

static void no_specification(void **state) {
  BEGIN;
  assert_int_equal(spec(f, true, 1), SCHEDC_EARG);
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
    assert_int_equal(spec(f, exact, 2), SCHEDC_OK);
    clock_gettime(CLOCK_MONOTONIC, &t1);
    print_message("%s %.3f s\n", exact ? "exact" : "pt",
                  (double)(t1.tv_sec - t0.tv_sec) + 1e-9 * (double)(t1.tv_nsec - t0.tv_nsec));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(attention_exact),    TEST(attention_causal), TEST(attention_rounded),
      TEST(empty_dimensions),   TEST(memory_is_linear), TEST(matrix_product),
      TEST(computed_positions), TEST(transposed_reads), TEST(packed_sequences),
      TEST(strided_inputs),     TEST(no_specification), TEST(large_case),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
