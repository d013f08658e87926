// strip.c - compiled maps against an evaluator that takes one element at a time: the maps of
// FlashAttention, parts, bounds, conditions, aliasing, gathers, and random expressions.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernelmaker.h"
#include "mathf.h"

typedef struct Fix {
  Sc sc;
  jmp_buf home;
  Kernel *k;
  Binding b;
  Operand *op;  // by view, for up to 64 views
} Fix;

static int setup(void **state) {
  Fix *f = calloc(1, sizeof *f);
  sc_init(&f->sc, NULL);
  if (setjmp(f->home)) return -1;
  f->sc.unwind = &f->home;
  f->k = sc_kernel(&f->sc);
  f->b = (Binding){.k = f->k,
                   .dim = NEWS(&f->sc, i64, 8),
                   .arg = NEWS(&f->sc, double, 8),
                   .buf = NEWS(&f->sc, TensorRef, 64)};
  f->op = NEWS(&f->sc, Operand, 64);
  *state = f;
  return 0;
}

static int teardown(void **state) {
  Fix *f = *state;
  sc_free(&f->sc);
  free(f);
  return 0;
}

#define BEGIN       \
  Fix *f = *state;  \
  Sc *sc = &f->sc;  \
  Kernel *k = f->k; \
  (void)sc, (void)k

static u64 rng(u64 *s) {
  *s ^= *s << 13, *s ^= *s >> 7, *s ^= *s << 17;
  return *s;
}

static float uniform(u64 *s) { return (float)((i64)(rng(s) >> 40) - (1 << 23)) * 0x1p-22f; }

// A register tile: row-major f32, partial if k says so; every view of `buf` gets its operand.
static float *tile(Fix *f, u32 buf, Elem elem, i64 rows, i64 cols) {
  Kernel *k = f->k;
  i64 part = k->buf.at[buf].partial ? rows * (cols ? cols : 1) : 0;
  float *at = NEWS(&f->sc, float, (part ? 4 : 1) * rows * (cols ? cols : 1));
  for (u32 v = 0; v < k->view.n; v++) {
    const View *w = &k->view.at[v];
    if (w->buf != buf) continue;
    Operand *o = &f->op[v];
    *o = (Operand){.at = at, .store = elem == EL_I32 ? EL_I32 : EL_F32, .elem = elem, .part = part};
    for (u32 i = 0; i < w->rank; i++) {
      if (w->at[i].var < 0) continue;
      o->stride[w->at[i].var] += i + 1 < w->rank ? cols : 1;
      o->hi[w->at[i].var] = i + 1 < w->rank || !cols ? rows : cols;
    }
  }
  return at;
}

static void run_rows(Fix *f, u32 map, i64 row0, i64 row1) {
  Strip *s = sc_strip(&f->sc, f->k, &f->k->map.at[map]);
  Env env;
  env_init(&f->sc, &env, f->k, &f->b);
  void *scratch = aligned_alloc(64, sc_strip_scratch(s) + 64);
  memset(scratch, 0xff, sc_strip_scratch(s));
  sc_strip_run(s, &env, f->op, row0, row1, scratch);
  free(scratch);
}

static void run_map(Fix *f, u32 map) { run_rows(f, map, 0, INT64_MAX); }

static void randomise(float *at, i64 n, u64 seed) {
  for (i64 i = 0; i < n; i++) at[i] = uniform(&seed);
}

// ---- one element at a time

typedef struct Val {
  double r;
  i64 i;
} Val;

static Val naive(Fix *f, const Map *m, Xid e, i64 *idx, int part);

static double element(Fix *f, u32 view, const i64 *idx, int part) {
  const View *v = &f->k->view.at[view];
  const Operand *o = &f->op[view];
  i64 at = 0;
  for (u32 i = 0; i < v->rank; i++) {
    i8 var = v->at[i].var;
    if (var < 0) continue;
    if (idx[var] < o->lo[var] || idx[var] >= o->hi[var]) return 0;
  }
  for (u32 i = 0; i < SC_MAX_VARS; i++) at += idx[i] * o->stride[i];
  if (o->part && part < 0) {
    const float *p = o->at;
    return (p[at] + p[at + o->part]) + (p[at + 2 * o->part] + p[at + 3 * o->part]);
  }
  return sc_get_elem(o->store, o->at, at + (part < 0 ? 0 : part) * o->part);
}

static Val reduce_naive(Fix *f, const Map *m, const Expr *p, i64 *idx, int part) {
  i64 n = 0;
  x_const_int(f->k, m->var[p->ref].extent, &n);
  double r = p->op == X_SUM ? 0 : p->op == X_RMAX ? -INFINITY : INFINITY;
  for (i64 j = 0; j < n; j++) {
    idx[p->ref] = j;
    if (p->op == X_SUM && part >= 0 && j / 2 % 4 != part) continue;
    double v = naive(f, m, p->a, idx, -1).r;
    r = p->op == X_SUM ? r + v : p->op == X_RMAX ? fmax(r, v) : fmin(r, v);
  }
  return (Val){r, (i64)r};
}

static Val naive(Fix *f, const Map *m, Xid e, i64 *idx, int part) {
  const Expr *p = &f->k->expr.at[e];
  Val a = {0}, b = {0};
  if (p->op >= X_SUM) return reduce_naive(f, m, p, idx, part);
  if (p->op == X_LOAD) {
    double v = element(f, p->ref, idx, f->k->buf.at[f->k->view.at[p->ref].buf].partial ? part : -1);
    return (Val){v, (i64)v};
  }
  if (p->a) a = naive(f, m, p->a, idx, part);
  if (p->b) b = naive(f, m, p->b, idx, part);
  float x = (float)a.r, y = (float)b.r, r = 0;
  bool reals = p->a && f->k->expr.at[p->a].ty == TY_REAL;
  switch (p->op) {
    case X_INT:
    case X_BOOL: return (Val){(double)p->num.i, p->num.i};
    case X_REAL: return (Val){(float)p->num.f, 0};
    case X_IDX: return (Val){(double)idx[p->ref], idx[p->ref]};
    case X_TOREAL: return (Val){(float)a.i, 0};
    case X_NOT: return (Val){0, !a.i};
    case X_AND: return (Val){0, a.i && b.i};
    case X_OR: return (Val){0, a.i || b.i};
    case X_WHERE: return a.i ? b : naive(f, m, p->c, idx, part);
    case X_LT: return (Val){0, reals ? x < y : a.i < b.i};
    case X_LE: return (Val){0, reals ? x <= y : a.i <= b.i};
    case X_EQ: return (Val){0, reals ? x == y : a.i == b.i};
    case X_NE: return (Val){0, reals ? x != y : a.i != b.i};
    default: break;
  }
  if (p->ty == TY_INT) {
    i64 v = 0;
    sc_int_op(p->op, a.i, b.i, &v);
    return (Val){(double)v, v};
  }
  switch (p->op) {
    case X_EXP2: r = mf_exp2(x); break;
    case X_EXP: r = mf_exp(x); break;
    case X_TANH: r = mf_tanh(x); break;
    case X_SQRT: r = sqrtf(x); break;
    case X_NEG: r = -x; break;
    case X_ABS: r = fabsf(x); break;
    case X_ADD: r = x + y; break;
    case X_SUB: r = x - y; break;
    case X_MUL: r = x * y; break;
    case X_DIV: r = x / y; break;
    case X_MIN: r = fminf(x, y); break;
    case X_MAX: r = fmaxf(x, y); break;
    default: fail();
  }
  return (Val){r, 0};
}

static void assert_near(double got, double want, double eps) {
  if (got == want || (isnan(got) && isnan(want))) return;
  if (fabs(got - want) <= eps * (1 + fabs(want))) return;
  fail_msg("%.9g where %.9g is right", got, want);
}

// Runs the map and compares every element of dst with what it should be. The naive evaluator reads
// the operands before anything is written.
static void check(Fix *f, u32 map, double eps) {
  const Map *m = &f->k->map.at[map];
  i64 ext[SC_MAX_VARS] = {0}, idx[SC_MAX_VARS] = {0}, n = 1;
  for (u32 v = 0; v < m->vars; v++) x_const_int(f->k, m->var[v].extent, &ext[v]);
  for (u32 v = 0; v < m->outs; v++) n *= ext[v];
  const Operand *o = &f->op[m->dst];
  int parts = o->part ? 4 : 1;
  double *want = malloc((size_t)(n * parts + 1) * sizeof *want);
  for (int pass = 0; pass < 2; pass++) {
    if (pass) run_map(f, map);
    for (i64 e = 0; e < n; e++) {
      i64 rest = e;
      for (u32 v = m->outs; v-- > 0; rest /= ext[v]) idx[v] = rest % ext[v];
      for (int q = 0; q < parts; q++) {
        double now = element(f, m->dst, idx, parts == 4 ? q : -1);
        if (pass) {
          assert_near(now, want[e * parts + q], eps);
          continue;
        }
        Val v = naive(f, m, m->root, idx, m->parts ? q : -1);
        bool real = f->k->expr.at[m->root].ty == TY_REAL;
        double value = real ? sc_round(o->elem, (float)v.r) : (double)v.i;
        if (parts == 4 && !m->parts && q) value = 0;
        if (m->cond && !naive(f, m, m->cond, idx, -1).i) value = now;
        want[e * parts + q] = value;
      }
    }
  }
  free(want);
}

// ---- the maps of FlashAttention

static void softmax_of_a_tile(void **state) {
  BEGIN;
  const Xid dim[] = {INT(64), INT(176)};
  u32 s = km_buf(sc, k, SP_REG, EL_F32, 2, dim), m = km_buf(sc, k, SP_REG, EL_F32, 1, dim);
  u32 p = km_buf(sc, k, SP_REG, EL_F16, 2, dim), l = km_buf(sc, k, SP_REG, EL_F32, 1, dim);
  k->buf.at[l].partial = true;
  u32 sv = VIEW(s, 0, 1), mv = VIEW(m, 0), pv = VIEW(p, 0, 1), lv = VIEW(l, 0);
  Xid c = REAL(0.1275);
  u32 top = km_map(sc, k, mv, OP2(MAX, LOADV(mv), REDUCE(RMAX, 1, LOADV(sv))), 1, 2, dim);
  u32 ex = km_map(sc, k, sv, OP1(EXP2, OP2(SUB, OP2(MUL, LOADV(sv), c), OP2(MUL, LOADV(mv), c))), 2,
                  2, dim);
  u32 sum = km_map(sc, k, lv, OP2(ADD, OP2(MUL, LOADV(lv), LOADV(mv)), REDUCE(SUM, 1, LOADV(sv))),
                   1, 2, dim);
  k->map.at[sum].parts = true;
  u32 cast = km_map(sc, k, pv, LOADV(sv), 2, 2, dim);
  u32 total = km_map(sc, k, mv, LOADV(lv), 1, 1, dim);
  u32 spread = km_map(sc, k, lv, OP2(MUL, LOADV(lv), LOADV(mv)), 1, 1, dim);
  randomise(tile(f, s, EL_F32, 64, 176), 64 * 176, 1);
  randomise(tile(f, m, EL_F32, 64, 0), 64, 2);
  tile(f, p, EL_F16, 64, 176);
  randomise(tile(f, l, EL_F32, 64, 0), 256, 3);
  check(f, top, 0);
  check(f, ex, 0);
  check(f, cast, 0);
  check(f, sum, 1e-5);
  check(f, total, 0);
  check(f, spread, 0);
}

// where(t*BN + j < N and t*BN + j <= 64*w + i + N - M, s[i,j], -inf)
static void causal_mask(void **state) {
  BEGIN;
  const Xid dim[] = {INT(64), INT(300)};
  u32 s = km_buf(sc, k, SP_REG, EL_F32, 2, dim), sv = VIEW(s, 0, 1);
  Xid n = DIM(0), col = OP2(ADD, OP2(MUL, DIM(1), INT(3)), IDX(1));
  Xid row = OP2(SUB, OP2(ADD, OP2(ADD, OP2(MUL, INT(64), DIM(2)), IDX(0)), n), DIM(3));
  Xid keep = OP2(AND, OP2(LT, col, n), OP2(LE, col, row));
  u32 map = km_map(sc, k, sv, OP3(WHERE, keep, LOADV(sv), REAL(-INFINITY)), 2, 2, dim);
  float *at = tile(f, s, EL_F32, 64, 300);
  randomise(at, 64 * 300, 4);
  memcpy(f->b.dim, (i64[]){290, 7, 3, 100}, 4 * sizeof(i64));
  run_rows(f, map, 16, 48);
  u64 seed = 4;
  for (i64 i = 0; i < 64; i++)
    for (i64 j = 0; j < 300; j++) {
      float was = uniform(&seed);
      bool kept = 21 + j < 290 && 21 + j <= 192 + i + 190;
      bool masked = i >= 16 && i < 48 && !kept;
      assert_true(at[i * 300 + j] == (masked ? -INFINITY : was));
    }
}

static void votes(void **state) {
  BEGIN;
  const Xid dim[] = {INT(64)};
  u32 r = km_buf(sc, k, SP_REG, EL_F32, 1, dim), rv = VIEW(r, 0);
  k->buf.at[r].partial = true;
  Xid holds = OP1(NOT, OP2(LE, LOADV(rv), REAL(10)));
  u32 each = km_map(sc, k, SC_NONE, holds, 1, 1, dim),
      whole = km_map(sc, k, SC_NONE, holds, 1, 1, dim);
  k->map.at[each].parts = true;
  float *at = tile(f, r, EL_F32, 64, 0);
  Env env;
  env_init(sc, &env, k, &f->b);
  Strip *parts = sc_strip(sc, k, &k->map.at[each]), *sum = sc_strip(sc, k, &k->map.at[whole]);
  char *scratch = aligned_alloc(64, 1 << 16);
  assert_false(sc_strip_any(parts, &env, f->op, 0, 64, scratch));
  at[64 + 20] = 6;
  at[128 + 20] = 6;
  assert_false(sc_strip_any(parts, &env, f->op, 16, 32, scratch));
  assert_true(sc_strip_any(sum, &env, f->op, 16, 32, scratch));
  assert_false(sc_strip_any(sum, &env, f->op, 32, 64, scratch));
  at[192 + 40] = NAN;
  assert_true(sc_strip_any(parts, &env, f->op, 32, 48, scratch));
  assert_false(sc_strip_any(parts, &env, f->op, 48, 64, scratch));
  free(scratch);
}

// ---- places

static void outside_reads_zero(void **state) {
  BEGIN;
  const Xid dim[] = {INT(40), INT(50)};
  u32 a = km_buf(sc, k, SP_TENSOR, EL_F16, 2, dim), b = km_buf(sc, k, SP_TENSOR, EL_F32, 2, dim);
  u32 av = VIEW(a, 0, 1), bv = VIEW(b, 0, 1);
  u32 map = km_map(sc, k, bv, OP2(ADD, LOADV(av), REAL(1)), 2, 2, dim);
  u16 from[40 * 50];
  float to[40 * 64];
  for (i64 i = 0; i < 40 * 50; i++) from[i] = sc_to_f16((float)i);
  for (i64 i = 0; i < 40 * 64; i++) to[i] = -5;
  f->op[av] = (Operand){from, EL_F16, EL_F16, {50, 1}, {2, 3}, {30, 45}, 0, {0}, {0}};
  f->op[bv] = (Operand){to, EL_F32, EL_F32, {64, 1}, {0, 1}, {39, 49}, 0, {0}, {0}};
  run_map(f, map);
  for (i64 i = 0; i < 40; i++)
    for (i64 j = 0; j < 64; j++) {
      bool inside = i >= 2 && i < 30 && j >= 3 && j < 45, written = i < 39 && j >= 1 && j < 49;
      float want = !written ? -5 : inside ? sc_round(EL_F16, (float)(i * 50 + j)) + 1 : 1;
      assert_true(to[i * 64 + j] == want);
    }
}

static void transposes(void **state) {
  BEGIN;
  const Xid dim[] = {INT(70), INT(300)}, tdim[] = {INT(300), INT(70)};
  u32 a = km_buf(sc, k, SP_STAGE, EL_BF16, 2, tdim), b = km_buf(sc, k, SP_STAGE, EL_BF16, 2, dim);
  u32 av = VIEW(a, 1, 0), bv = VIEW(b, 0, 1);
  u32 map = km_map(sc, k, bv, LOADV(av), 2, 2, dim);
  randomise(tile(f, a, EL_BF16, 300, 70), 300 * 70, 5);
  tile(f, b, EL_BF16, 70, 300);
  check(f, map, 0);
}

// b[i,d] = sum(j) exp(s[i,j]) * v[j,d], and the same transposed: both kinds of nest.
static void sums_of_products(void **state) {
  BEGIN;
  const Xid dim[] = {INT(20), INT(270), INT(300)}, sd[] = {dim[0], dim[2]}, vd[] = {dim[2], dim[1]};
  const Xid wd[] = {dim[1], dim[2]};
  u32 s = km_buf(sc, k, SP_REG, EL_F32, 2, sd), v = km_buf(sc, k, SP_STAGE, EL_F32, 2, vd);
  u32 w = km_buf(sc, k, SP_STAGE, EL_F32, 2, wd), o = km_buf(sc, k, SP_REG, EL_F32, 2, dim);
  u32 sv = VIEW(s, 0, 2), vv = VIEW(v, 2, 1), wv = VIEW(w, 1, 2), ov = VIEW(o, 0, 1);
  Xid e = OP3(WHERE, OP2(LT, LOADV(sv), REAL(0)), REAL(0), OP1(EXP, LOADV(sv)));
  u32 rows = km_map(sc, k, ov, REDUCE(SUM, 2, OP2(MUL, e, LOADV(vv))), 2, 3, dim);
  u32 dots = km_map(sc, k, ov, REDUCE(SUM, 2, OP2(MUL, e, LOADV(wv))), 2, 3, dim);
  u32 top = km_map(sc, k, ov, REDUCE(RMAX, 2, OP2(ADD, e, LOADV(vv))), 2, 3, dim);
  u32 low = km_map(sc, k, ov, REDUCE(RMIN, 2, OP2(ADD, e, LOADV(wv))), 2, 3, dim);
  randomise(tile(f, s, EL_F32, 20, 300), 20 * 300, 6);
  randomise(tile(f, v, EL_F32, 300, 270), 300 * 270, 7);
  randomise(tile(f, w, EL_F32, 270, 300), 300 * 270, 8);
  tile(f, o, EL_F32, 20, 270);
  check(f, rows, 1e-4);
  check(f, dots, 1e-4);
  check(f, top, 0);
  check(f, low, 0);
}

// The same bits however rows are dealt out.
static void cuts_do_not_show(void **state) {
  BEGIN;
  const Xid dim[] = {INT(150), INT(300)};
  u32 s = km_buf(sc, k, SP_REG, EL_F32, 2, dim), l = km_buf(sc, k, SP_REG, EL_F32, 1, dim);
  u32 sv = VIEW(s, 0, 1), lv = VIEW(l, 0);
  u32 map = km_map(sc, k, lv, REDUCE(SUM, 1, OP1(EXP, LOADV(sv))), 1, 2, dim);
  randomise(tile(f, s, EL_F32, 150, 300), 150 * 300, 13);
  float *at = tile(f, l, EL_F32, 150, 0), whole[150];
  run_map(f, map);
  memcpy(whole, at, sizeof whole);
  memset(at, 0, sizeof whole);
  run_rows(f, map, 0, 7);
  run_rows(f, map, 100, 150);
  run_rows(f, map, 7, 100);
  assert_memory_equal(at, whole, sizeof whole);
}

// b[i] = max(j) sum(d) q[i,d] * k[j,d]: a reduction inside a reduction.
static void nested_reductions(void **state) {
  BEGIN;
  const Xid dim[] = {INT(20), INT(270), INT(33)}, qd[] = {dim[0], dim[2]}, kd[] = {dim[1], dim[2]};
  u32 q = km_buf(sc, k, SP_REG, EL_F32, 2, qd), kk = km_buf(sc, k, SP_STAGE, EL_F32, 2, kd);
  u32 o = km_buf(sc, k, SP_REG, EL_F32, 1, dim);
  u32 qv = VIEW(q, 0, 2), kv = VIEW(kk, 1, 2), ov = VIEW(o, 0);
  Xid dot = REDUCE(SUM, 2, OP2(MUL, LOADV(qv), LOADV(kv)));
  u32 top = km_map(sc, k, ov, REDUCE(RMAX, 1, OP2(SUB, dot, OP1(TOREAL, IDX(1)))), 1, 3, dim);
  u32 count = km_map(
      sc, k, ov, OP2(ADD, REDUCE(SUM, 1, OP1(TOREAL, IDX(1))), REDUCE(SUM, 2, REAL(2))), 1, 3, dim);
  randomise(tile(f, q, EL_F32, 20, 33), 20 * 33, 9);
  randomise(tile(f, kk, EL_F32, 270, 33), 270 * 33, 10);
  tile(f, o, EL_F32, 20, 0);
  check(f, top, 1e-5);
  check(f, count, 1e-5);
}

// s[i,j] = s[i,j] / sum(j) s[i,j], s[i,j] = s[j,i]: the right side is read whole first.
static void reads_before_writes(void **state) {
  BEGIN;
  const Xid dim[] = {INT(300), INT(300), INT(300)};
  u32 s = km_buf(sc, k, SP_REG, EL_F32, 2, dim), sv = VIEW(s, 0, 1), tv = VIEW(s, 1, 0);
  u32 rv = VIEW(s, 0, 2);
  u32 flip = km_map(sc, k, sv, LOADV(tv), 2, 2, dim);
  u32 norm = km_map(sc, k, sv, OP2(DIV, LOADV(sv), REDUCE(SUM, 2, LOADV(rv))), 2, 3, dim);
  float *at = tile(f, s, EL_F32, 300, 300);
  randomise(at, 90000, 11);
  k->map.at[flip].cond = OP2(NE, IDX(0), INT(5));
  check(f, flip, 0);
  for (i64 i = 0; i < 90000; i++) at[i] = fabsf(at[i]) + 1;
  check(f, norm, 1e-5);
}

static void conditions(void **state) {
  BEGIN;
  const Xid dim[] = {INT(33), INT(280)};
  u32 s = km_buf(sc, k, SP_REG, EL_F32, 2, dim), sv = VIEW(s, 0, 1);
  u32 map = km_map(sc, k, sv, OP1(NEG, LOADV(sv)), 2, 2, dim);
  k->map.at[map].cond = OP2(EQ, OP2(MOD, OP2(ADD, IDX(0), IDX(1)), INT(3)), INT(0));
  randomise(tile(f, s, EL_F32, 33, 280), 33 * 280, 12);
  check(f, map, 0);
  k->map.at[map].cond = OP2(LT, IDX(0), INT(7));
  check(f, map, 0);
}

static void adds_to_tensors(void **state) {
  BEGIN;
  const Xid dim[] = {INT(8), INT(24)};
  u32 t = km_buf(sc, k, SP_TENSOR, EL_F32, 2, dim), x = km_buf(sc, k, SP_REG, EL_F32, 2, dim);
  u32 tv = VIEW(t, 0, 1), xv = VIEW(x, 0, 1);
  u32 map = km_map(sc, k, tv, LOADV(xv), 2, 2, dim);
  float *to = tile(f, t, EL_F32, 8, 24), *from = tile(f, x, EL_F32, 8, 24);
  for (i64 i = 0; i < 192; i++) to[i] = (float)i, from[i] = 0.5f;
  f->op[tv].hi[0] = 6;
  Env env;
  env_init(sc, &env, k, &f->b);
  Strip *s = sc_strip(sc, k, &k->map.at[map]);
  void *scratch = aligned_alloc(64, sc_strip_scratch(s) + 64);
  sc_strip_add(s, &env, f->op, 0, 8, scratch);
  sc_strip_add(s, &env, f->op, 2, 4, scratch);
  for (i64 i = 0; i < 192; i++)
    assert_true(to[i] == (float)i + (i / 24 >= 6 ? 0 : i / 24 == 2 || i / 24 == 3 ? 1 : 0.5f));
  free(scratch);
}

static void integer_tiles(void **state) {
  BEGIN;
  const Xid dim[] = {INT(5), INT(40)};
  u32 a = km_buf(sc, k, SP_REG, EL_I32, 2, dim), b = km_buf(sc, k, SP_REG, EL_F32, 2, dim);
  u32 c = km_buf(sc, k, SP_REG, EL_I32, 1, dim);
  u32 av = VIEW(a, 0, 1), bv = VIEW(b, 0, 1), cv = VIEW(c, 0);
  Xid x = x_leaf(sc, k, X_LOAD, TY_INT, av);
  Xid e = OP2(ADD, OP2(MUL, OP2(IDIV, x, INT(3)), INT(-2)), OP2(CDIV, IDX(1), INT(7)));
  u32 ints = km_map(sc, k, av, OP2(MAX, e, OP1(ABS, x)), 2, 2, dim);
  u32 wide = km_map(sc, k, bv, x, 2, 2, dim);
  u32 sums = km_map(sc, k, cv, OP2(SUB, REDUCE(SUM, 1, x), REDUCE(RMIN, 1, x)), 1, 2, dim);
  i32 *at = (i32 *)tile(f, a, EL_I32, 5, 40), *to = (i32 *)tile(f, c, EL_I32, 5, 0);
  float *real = tile(f, b, EL_F32, 5, 40);
  for (i32 i = 0; i < 200; i++) at[i] = i * 37 % 101 - 50;
  check(f, ints, 0);
  run_map(f, wide);
  run_map(f, sums);
  for (i32 i = 0; i < 5; i++) {
    i32 sum = 0, low = INT32_MAX;
    for (i32 j = 0; j < 40; j++) {
      i32 v = at[i * 40 + j];
      assert_true(real[i * 40 + j] == (float)v);
      sum += v;
      low = v < low ? v : low;
    }
    assert_int_equal(to[i], sum - low);
  }
}

static void empty_and_special(void **state) {
  BEGIN;
  const Xid dim[] = {INT(6), INT(0)};
  u32 s = km_buf(sc, k, SP_REG, EL_F32, 2, dim), m = km_buf(sc, k, SP_REG, EL_F32, 1, dim);
  u32 sv = VIEW(s, 0, 1), mv = VIEW(m, 0);
  u32 top = km_map(sc, k, mv, REDUCE(RMAX, 1, LOADV(sv)), 1, 2, dim);
  u32 sum = km_map(sc, k, mv, REDUCE(SUM, 1, LOADV(sv)), 1, 2, dim);
  u32 nan = km_map(sc, k, mv, OP2(MIN, OP2(MAX, LOADV(mv), REAL(NAN)), REAL(3)), 1, 1, dim);
  float *at = tile(f, m, EL_F32, 6, 0);
  tile(f, s, EL_F32, 6, 1);
  run_map(f, top);
  assert_true(at[0] == -INFINITY && at[5] == -INFINITY);
  run_map(f, sum);
  assert_true(at[0] == 0 && at[5] == 0);
  memcpy(at, (float[]){NAN, 1, 4, -INFINITY, INFINITY, -0.0f}, 24);
  run_map(f, nan);
  assert_true(at[0] == 3 && at[1] == 1 && at[2] == 3 && at[3] == -INFINITY && at[4] == 3 &&
              at[5] == 0);
}

// ---- random expressions

typedef struct Gen {
  Fix *f;
  u64 seed;
  u32 view[6];
  u32 reduced;  // the variable inside the current reduction, or 0
} Gen;

static Xid random_expr(Gen *g, u32 depth) {
  Fix *f = g->f;
  Sc *sc = &f->sc;
  Kernel *k = f->k;
  u32 pick = (u32)(rng(&g->seed) % (depth ? 13 : 3));
  switch (pick) {
    case 0: return REAL((double)(rng(&g->seed) % 64) / 16 - 2);
    case 1: {
      u32 n = g->reduced ? 6 : 3;
      return LOADV(g->view[rng(&g->seed) % n]);
    }
    case 2: return OP1(TOREAL, IDX(g->reduced ? 2 : (u32)(rng(&g->seed) % 2)));
    case 3: return OP1(ABS, random_expr(g, depth - 1));
    case 4: return OP1(TANH, random_expr(g, depth - 1));
    case 5: return OP2(SUB, random_expr(g, depth - 1), random_expr(g, depth - 1));
    case 6: return OP2(MIN, random_expr(g, depth - 1), random_expr(g, depth - 1));
    case 7: {
      Xid c = OP2(LT, random_expr(g, depth - 1), random_expr(g, depth - 1));
      return OP3(WHERE, c, random_expr(g, depth - 1), random_expr(g, depth - 1));
    }
    case 8:
    case 9:
      if (!g->reduced) {
        g->reduced = 2;
        Xid body = random_expr(g, depth - 1);
        g->reduced = 0;
        return rng(&g->seed) & 1 ? REDUCE(SUM, 2, OP1(TANH, body)) : REDUCE(RMAX, 2, body);
      }
      return OP2(ADD, random_expr(g, depth - 1), random_expr(g, depth - 1));
    case 10: return OP2(MUL, OP1(TANH, random_expr(g, depth - 1)), random_expr(g, depth - 1));
    default: return OP2(ADD, random_expr(g, depth - 1), random_expr(g, depth - 1));
  }
}

static void random_maps(void **state) {
  BEGIN;
  const Xid dim[] = {INT(7), INT(19), INT(21)}, ad[] = {dim[0], dim[2]}, bd[] = {dim[2], dim[1]};
  u32 x = km_buf(sc, k, SP_REG, EL_F32, 2, dim), y = km_buf(sc, k, SP_REG, EL_F32, 1, dim);
  u32 z = km_buf(sc, k, SP_REG, EL_F32, 1, dim + 1), a = km_buf(sc, k, SP_REG, EL_F32, 2, ad);
  u32 b = km_buf(sc, k, SP_STAGE, EL_F32, 2, bd), c = km_buf(sc, k, SP_REG, EL_F32, 1, dim + 2);
  u32 o = km_buf(sc, k, SP_REG, EL_F32, 2, dim), ov = VIEW(o, 0, 1);
  Gen g = {
      f, 77, {VIEW(x, 0, 1), VIEW(y, 0), VIEW(z, 1), VIEW(a, 0, 2), VIEW(b, 2, 1), VIEW(c, 2)}, 0};
  randomise(tile(f, x, EL_F32, 7, 19), 7 * 19, 21);
  randomise(tile(f, y, EL_F32, 7, 0), 7, 22);
  randomise(tile(f, z, EL_F32, 19, 0), 19, 23);
  randomise(tile(f, a, EL_F32, 7, 21), 7 * 21, 24);
  randomise(tile(f, b, EL_F32, 21, 19), 21 * 19, 25);
  randomise(tile(f, c, EL_F32, 21, 0), 21, 26);
  tile(f, o, EL_F32, 7, 19);
  for (int i = 0; i < 300; i++) {
    Xid e = random_expr(&g, 1 + (u32)i % 5);
    u32 map = km_map(sc, k, ov, e, 2, 3, dim);
    check(f, map, 2e-3);
  }
}

// Depth and sharing chosen by an enemy: no crash, no exponential time.
static void deep_and_shared(void **state) {
  BEGIN;
  const Xid dim[] = {INT(4), INT(4)};
  u32 s = km_buf(sc, k, SP_REG, EL_F32, 2, dim), sv = VIEW(s, 0, 1);
  tile(f, s, EL_F32, 4, 4)[3] = 0x1p-90f;
  Xid e = LOADV(sv);
  for (int i = 0; i < 100; i++) e = OP2(ADD, e, e);
  run_map(f, km_map(sc, k, sv, e, 2, 2, dim));
  assert_true(*((float *)f->op[sv].at + 3) == 1024);
  for (int i = 0; i < 100000; i++) e = OP1(ABS, OP2(ADD, e, REAL(i)));
  u32 deep = km_map(sc, k, sv, e, 2, 2, dim);
  jmp_buf here;
  sc->unwind = &here;
  if (!setjmp(here)) {
    sc_strip(sc, k, &k->map.at[deep]);
    fail();
  }
  assert_int_equal(sc->why, SCHEDC_ELIMIT);
}

static double ulps(float r, double want) {
  if (r == want || (isnan(r) && isnan(want)) || (float)want == r) return 0;
  if (fabs(want) < 0x1p-126) return fabsf(r) <= 0x1p-126f ? 0 : 1e9;
  int e;
  frexp(want, &e);
  return fabs(r - want) / ldexp(1, e - 24);
}

static void functions_are_accurate(void **state) {
  (void)state;
  for (u64 u = 0; u <= UINT32_MAX; u += 1009 * ONE_IN) {
    float x = mf_float((u32)u);
    assert_true(ulps(mf_exp2(x), exp2((double)x)) <= 2);
    assert_true(ulps(mf_exp(x), exp((double)x)) <= 2);
    assert_true(ulps(mf_log(x), log((double)x)) <= 2);
    assert_true(ulps(mf_log2(x), log2((double)x)) <= 2);
    assert_true(ulps(mf_tanh(x), tanh((double)x)) <= 2);
  }
  assert_true(mf_exp2(-INFINITY) == 0 && mf_exp(INFINITY) == INFINITY && mf_log(0) == -INFINITY);
  assert_true(isnan(mf_log(-1)) && isnan(mf_exp2(NAN)) && isnan(mf_tanh(NAN)) &&
              mf_tanh(-INFINITY) == -1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(softmax_of_a_tile),
      TEST(causal_mask),
      TEST(votes),
      TEST(outside_reads_zero),
      TEST(transposes),
      TEST(sums_of_products),
      TEST(cuts_do_not_show),
      TEST(nested_reductions),
      TEST(reads_before_writes),
      TEST(conditions),
      TEST(adds_to_tensors),
      TEST(integer_tiles),
      TEST(empty_and_special),
      TEST(random_maps),
      TEST(deep_and_shared),
      cmocka_unit_test(functions_are_accurate),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
