// Tests of layouts: each thread's elements are those of the PTX ISA's figures, every element has a
// holder, and what moves a statement's elements is chosen by how they lie.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "fixture.h"
#include "compiler/layout/layout.h"

// PTX ISA 9.0, wgmma, register fragment of D: row and column of element e of a thread; of one warp,
// mma.m16n8k16, fragment of D, block after block of 8 columns.
static void expect_fragment(u32 warps, u32 columns) {
  const Layout *layout = sc_layout(LAY_ACC, warps);
  u32 rows = 16 * warps;
  for (u32 thread = 0; thread < 32 * warps; thread++) {
    for (u32 block = 0; block < 2; block++) {
      for (u32 e = 0; e < columns / 2; e++) {
        u32 lane = thread % 32, group = lane / 4, in_group = lane % 4;
        u32 row = rows * block + 16 * (thread / 32) + group + (e % 4 < 2 ? 0 : 8);
        u32 col = 8 * (e / 4) + 2 * in_group + e % 2;
        Holder h = sc_holder(layout, row, col);
        assert_int_equal(h.lane, lane);
        assert_int_equal(h.warp, thread / 32);
        assert_int_equal(h.block, block);
        assert_int_equal(h.elem, e);
      }
    }
  }
}

static void tiles(void **state) {
  (void)state;
  expect_fragment(4, 8);
  expect_fragment(4, 176);
  expect_fragment(1, 8);
  expect_fragment(1, 64);
}

// A vector's element is where the tile beside it has the row or column, at the first of its
// holders.
static void vectors(void **state) {
  (void)state;
  for (u32 warps = 1; warps <= 4; warps += 3) {
    const Layout *tile = sc_layout(LAY_ACC, warps);
    for (u32 i = 0; i < 128; i++) {
      Holder along_rows = sc_holder(sc_layout(LAY_ROW, warps), i, 0), row = sc_holder(tile, i, 0);
      assert_int_equal(along_rows.lane, row.lane);
      assert_int_equal(along_rows.warp, row.warp);
      assert_int_equal(along_rows.block, row.block);
      assert_int_equal(along_rows.elem, row.elem / 2);
      Holder along_cols = sc_holder(sc_layout(LAY_COL, warps), 0, i), col = sc_holder(tile, 0, i);
      assert_int_equal(along_cols.lane, col.lane);
      assert_int_equal(along_cols.warp, 0);
      assert_int_equal(along_cols.elem, col.elem / 4 * 2 + col.elem % 2);
    }
  }
}

// Part q of a partial vector is of the columns that lane q of a quad holds.
static void parts(void **state) {
  (void)state;
  for (u32 j = 0; j < 256; j++)
    assert_int_equal(sc_holder(sc_layout(LAY_ACC, 4), 0, j).lane % 4, j / 2 % 4);
}

// ---- of a kernel

static const char frame[] =
    "kernel k {\n  in X : f16[M, 64]\n  inout Y : f32[M, 64], H : f16[M, 64], V : f32[M]\n"
    "  grid (x : cdiv(M, 128))\n  ring r : f16[128, 64], g : f32[64], f : f32[128, 64]\n"
    "  role load : 1 warp { r <- X[x*128..] }\n"
    "  role pad : 1 warp { acquire g, f;  g[j] = 0;  f[i,j] = 0;  commit g, f }\n"
    "  role math : 1 warpgroup {\n"
    "    reg s : f32[128, 64] = 0, p : f16[128, 64] = 0, b : e4m3[128, 64] = 0, m : f32[128] = 0, "
    "c : f32[64] = 0\n    wait r, g, f\n    %s\n    release r, g, f\n"
    "    Y[x*128 + i, j] = s[i,j] + c[j] + m[i] + p[i,j]\n  }\n}\n";

// The last of the statements that stand for %s.
static const Map *statement(void **state, const char *body, const Kernel **kernel) {
  Fixture *f = *state;
  end(state), begin(state);
  const Kernel *k = compile(f, "t.sched", sc_printf(&f->sc, frame, body));
  const Code *code = &k->role.at[2].code;
  u32 at = 0;
  while (code->at[at].op != OP_RELEASE) at++;
  while (code->at[at].op != OP_MAP && code->at[at].op != OP_MAPADD) at--;
  *kernel = k;
  return &k->map.at[code->at[at].arg[0]];
}

static Move move_of(void **state, const char *body) {
  const Kernel *k;
  return (Move)statement(state, body, &k)->move;
}

static void moves(void **state) {
  assert_int_equal(move_of(state, "s[i,j] = f[i,j]"), MOVE_ELEMS);
  assert_int_equal(move_of(state, "p[i,j] = r[i,j]"), MOVE_FRAGMENT);
  assert_int_equal(move_of(state, "p[i,j] = 2 * r[i,j]"), MOVE_ELEMS);
  assert_int_equal(move_of(state, "r[i,j] = p[i,j]"), MOVE_FRAGMENT);
  assert_int_equal(move_of(state, "r[i,j] = s[i,j]"), MOVE_FRAGMENT);
  assert_int_equal(move_of(state, "f[i,j] = s[i,j]"), MOVE_ELEMS);
  assert_int_equal(move_of(state, "b[i,j] = s[i,j]"), MOVE_BYTES);
  assert_int_equal(move_of(state, "m[i] = 2 * m[i]"), MOVE_ROWS);
  assert_int_equal(move_of(state, "f[i,0] = m[i]"), MOVE_ROWS);
  assert_int_equal(move_of(state, "g[j] = c[j]"), MOVE_COLUMNS);
  assert_int_equal(move_of(state, "g[j] = 2 * g[j]"), MOVE_STRIDED);
  assert_int_equal(move_of(state, "H[x*128 + i, j] = s[i,j]"), MOVE_WIDE);
  assert_int_equal(move_of(state, "H[x*128 + i, j] = s[i,j] if j < 5"), MOVE_ELEMS);
  assert_int_equal(move_of(state, "H[x*128 + i, 8*x + j] = s[i,j]"), MOVE_WIDE_TRIED);
  assert_int_equal(move_of(state, "H[x*128 + i, j - 8] = s[i,j]"), MOVE_ELEMS);
  assert_int_equal(move_of(state, "Y[x*128 + i, j] = s[i,j]"), MOVE_PAIRS);
  assert_int_equal(move_of(state, "Y[x*128 + i, j] += s[i,j]"), MOVE_ADD_ROWS);
  assert_int_equal(move_of(state, "V[x*128 + i] = m[i]"), MOVE_ROWS);
}

// The move of the only statement of a role that fills the stage `b` from the stage `a`.
static Move between(void **state, const char *a, const char *b, const char *body) {
  static const char text[] =
      "kernel k {\n  in X : e4m3[M, N], W : f16[M, N]\n  ring a : %s, b : "
      "%s\n"
      "  role load : 1 warp { a <- %s[0.., 0..] }\n"
      "  role flip : 1 warpgroup { wait a;  acquire b;  %s;  commit b;  release a }\n"
      "  role store : 1 warp { wait b;  release b }\n}\n";
  Fixture *f = *state;
  end(state), begin(state);
  const Kernel *k =
      compile(f, "t.sched", sc_printf(&f->sc, text, a, b, *a == 'f' ? "W" : "X", body));
  return (Move)k->map.at[0].move;
}

static void transpositions(void **state) {
  const char *turn = "b[j,i] = a[i,j]";
  assert_int_equal(between(state, "e4m3[64, 96]", "e4m3[96, 64]", turn), MOVE_TURNED);
  assert_int_equal(between(state, "e4m3[32, 32]", "e4m3[32, 32]", turn), MOVE_TURNED);
  assert_int_equal(between(state, "e4m3[32, 32]", "e4m3[32, 32]", "b[i,j] = a[i,j]"), MOVE_STRIDED);
  assert_int_equal(between(state, "e4m3[32, 32]", "e4m3[32, 32]", "b[j,i] = 2 * a[i,j]"),
                   MOVE_STRIDED);
  assert_int_equal(between(state, "e4m3[32, 32]", "e5m2[32, 32]", turn), MOVE_STRIDED);
  assert_int_equal(between(state, "f16[32, 32]", "f16[32, 32]", turn), MOVE_STRIDED);
  // rows of 48 bytes have no swizzle
  assert_int_equal(between(state, "e4m3[64, 48]", "e4m3[48, 64]", turn), MOVE_STRIDED);
}

static const Buf *tile(const Kernel *k, const char *name) {
  for (u32 i = 0; i < k->buf.n; i++)
    if (!strcmp(k->buf.at[i].name, name)) return &k->buf.at[i];
  fail_msg("no '%s'", name);
  return NULL;
}

static void registers(void **state) {
  Fixture *f = *state;
  const Kernel *k = compile(f, "t.sched", sc_printf(&f->sc, frame, "s[i,j] = c[j]"));
  assert_int_equal(sc_blocks(k, tile(k, "s")), 2);
  assert_int_equal(sc_block_elems(k, tile(k, "s")), 32);
  assert_int_equal(sc_tile_regs(k, tile(k, "s")), 64);
  assert_int_equal(sc_tile_regs(k, tile(k, "p")), 32);
  assert_int_equal(sc_tile_regs(k, tile(k, "b")), 16);
  assert_int_equal(sc_tile_regs(k, tile(k, "m")), 4);
  assert_int_equal(sc_tile_regs(k, tile(k, "c")), 16);
}

// The operation that the last statement's value ends in.
static ExprOp ends_in(void **state, const char *body) {
  const Kernel *k;
  const Map *m = statement(state, body, &k);
  const Expr *e = &k->expr.at[m->root];
  if (!x_reduces(e->op)) return (ExprOp)e->op;
  assert_int_equal(m->folds, 1);
  assert_int_equal(k->fold.at[m->fold0], m->root);
  return (ExprOp)k->expr.at[e->a].op;
}

// A quotient by a value of its row is a product with its inverse; others are divisions.
static void quotients(void **state) {
  assert_int_equal(ends_in(state, "s[i,j] = s[i,j] / m[i]"), X_MUL);
  assert_int_equal(ends_in(state, "s[i,j] = 1 / (s[i,j] / (2 * m[i]))"), X_DIV);
  assert_int_equal(ends_in(state, "m[i] = max(j) s[i,j] / m[i]"), X_MUL);
  assert_int_equal(ends_in(state, "s[i,j] = s[i,j] / c[j]"), X_DIV);
  assert_int_equal(ends_in(state, "s[i,j] = s[i,j] / p[i,j]"), X_DIV);
  assert_int_equal(ends_in(state, "s[i,j] = s[i,j] / (1.0 * M)"), X_DIV);
  assert_int_equal(ends_in(state, "m[i] = m[i] / (1 + m[i])"), X_DIV);
}

// Threads of one statement are those of another: if its elements stay with their holders.
static bool alike(void **state, const char *first, const char *second) {
  Fixture *f = *state;
  end(state), begin(state);
  const char *body = sc_printf(&f->sc, "%s\n    %s", first, second);
  const Kernel *k = compile(f, "t.sched", sc_printf(&f->sc, frame, body));
  const Code *code = &k->role.at[2].code;
  const Map *m[2] = {0};
  u32 at = 0, n = 2;
  while (code->at[at].op != OP_RELEASE) at++;
  for (; n; at--)
    if (code->at[at].op == OP_MAP) m[--n] = &k->map.at[code->at[at].arg[0]];
  return sc_same_threads(k, m[0], &k->view.at[m[0]->dst], m[1], &k->view.at[m[1]->dst]);
}

static void threads(void **state) {
  assert_true(alike(state, "f[i,j] = s[i,j]", "f[i,j] = 2 * s[i,j]"));
  assert_true(alike(state, "f[i,j] = s[i,j]", "f[i,j] = m[i]"));
  assert_true(alike(state, "f[i,j] = 0", "f[i,j] = 1"));
  assert_false(alike(state, "f[i,j] = s[i,j]", "f[i,j] = 1"));
  assert_true(alike(state, "r[i,j] = s[i,j]", "r[i,j] = 2 * s[i,j]"));
  assert_true(alike(state, "H[x*128 + i, j] = s[i,j]", "H[x*128 + i, j] = p[i,j]"));
  assert_false(alike(state, "H[x*128 + i, j] = s[i,j]", "H[x*128 + i, j] = s[i,j] if j < 5"));
  assert_false(alike(state, "f[i,0] = m[i]", "f[i,0] = 2 * m[i]"));
}

// A condition that hides the loop's variable in `where` may keep the slice inside.
static void slices_under_conditions(void **state) {
  static const char text[] =
      "kernel k {\n  in X : f32[M, 128]\n  out Y : f32[M, 64]\n  grid (x : cdiv(M, 64))\n"
      "  role all : 1 warpgroup, 128 regs {\n    ring c : f32[64, 128]\n"
      "    reg s : f32[64, 64] = 0\n    c <- X[x*64.., 0..]\n    wait c\n"
      "    for t in 0 .. 4 {\n      if %s { s[i,j] = s[i,j] + c[i, t*64 + j] }\n    }\n"
      "    Y[x*64 + i, j] = s[i,j]\n    release c\n  }\n}\n";
  Fixture *f = *state;
  assert_non_null(try_compile(f, "t.sched", sc_printf(&f->sc, text, "(t < 2 ? 1 : 0) == 1")));
  end(state), begin(state);
  assert_null(try_compile(f, "t.sched", sc_printf(&f->sc, text, "M > 5")));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(tiles),   TEST(vectors),        TEST(parts),
      TEST(moves),   TEST(transpositions), TEST(registers),
      TEST(threads), TEST(quotients),      TEST(slices_under_conditions)};
  return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
