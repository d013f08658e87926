// strip.c - compiled maps: those of FlashAttention, parts, bounds, conditions, aliasing,
// reductions.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stripkit.h"

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
  Strip *parts = sc_strip(sc_strip_maker(sc, k), &k->map.at[each]),
        *sum = sc_strip(sc_strip_maker(sc, k), &k->map.at[whole]);
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

// s[i,j] = s[i,j] / sum(j) s[i,j], s[i,j] = s[j,i], s[i,j] = -1 if s[j,i] > 0: what is read is read
// whole first.
static void reads_before_writes(void **state) {
  BEGIN;
  const Xid dim[] = {INT(300), INT(300), INT(300)};
  u32 s = km_buf(sc, k, SP_REG, EL_F32, 2, dim), sv = VIEW(s, 0, 1), tv = VIEW(s, 1, 0);
  u32 rv = VIEW(s, 0, 2);
  u32 flip = km_map(sc, k, sv, LOADV(tv), 2, 2, dim), set = km_map(sc, k, sv, REAL(-1), 2, 2, dim);
  u32 norm = km_map(sc, k, sv, OP2(DIV, LOADV(sv), REDUCE(SUM, 2, LOADV(rv))), 2, 3, dim);
  float *at = tile(f, s, EL_F32, 300, 300);
  randomise(at, 90000, 11);
  k->map.at[flip].cond = OP2(NE, IDX(0), INT(5));
  check(f, flip, 0);
  k->map.at[set].cond = OP2(LT, REAL(0), LOADV(tv));
  check(f, set, 0);
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
  Strip *s = sc_strip(sc_strip_maker(sc, k), &k->map.at[map]);
  void *scratch = aligned_alloc(64, sc_strip_scratch(s) + 64);
  sc_strip_add(s, &env, f->op, 0, 8, scratch, NULL);
  sc_strip_add(s, &env, f->op, 2, 4, scratch, NULL);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(softmax_of_a_tile),  TEST(causal_mask),       TEST(votes),
      TEST(outside_reads_zero), TEST(transposes),        TEST(sums_of_products),
      TEST(cuts_do_not_show),   TEST(nested_reductions), TEST(reads_before_writes),
      TEST(conditions),         TEST(adds_to_tensors),   TEST(integer_tiles),
      TEST(empty_and_special),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
