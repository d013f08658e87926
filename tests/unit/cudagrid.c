// Tests of emitted text: how a CTA gets its tiles, and how the CTAs of a cluster share a copy.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "fixture.h"

// A tile is drawn once, also where no role is one thread: by the first thread of the first role,
// and read by all.
static void drawn_once(void **state) {
  const char *t = text_of(
      *state,
      "kernel k {\n  in A : f32[M, 64]\n  out C : f32[M, 64]\n  grid (x : cdiv(M, 64)) dynamic\n"
      "  role r[w] : 2 warpgroups, 128 regs {\n    reg c : f32[64, 32]\n"
      "    c[i,j] = A[x*64 + i, 32*w + j]\n    C[x*64 + i, 32*w + j] = c[i,j]\n  }\n}\n");
  const char *first = strstr(t, "if (instance == 0 && thread == 0) {"),
             *draw = strstr(t, "sc_draw(args.counter)");
  assert_true(first && draw && first < draw);
  assert_int_equal(count(t, "sc_draw(args"), 1);
  const char *end = strstr(draw, "}\n"), *read = strstr(draw, "sc_lds_int4(");
  assert_true(end && read && end < read);
  has(t, "sc_ring_init(smem + slot_full, 2, 1, 8);");  // a warp's arrival each
}

static void in_order(const char *text, const char *const *what, u32 n) {
  const char *at = text;
  for (u32 i = 0; i < n; i++, at++) {
    at = strstr(at, what[i]);
    if (!at) fail_msg("'%s', the %u., is not behind the others in:\n%s", what[i], i, text);
  }
}

// The role that loads draws tiles, wherever it stands in the file: a role that only stores would
// draw when its tile is over.
static void drawn_by_the_loader(void **state) {
  const char *t = text_of(
      *state,
      "kernel k {\n  in A : f32[M, 64]\n  out C : f32[M, 64]\n  grid (x : cdiv(M, 64)) dynamic\n"
      "  ring a : f32[64, 64], c : f32[64, 64]\n"
      "  role store : 1 warp, 24 regs { wait c;  C[x*64..] <- c;  wait C read;  release c }\n"
      "  role load : 1 warp, 24 regs { a <- A[x*64..] }\n"
      "  role math : 1 warpgroup, 128 regs {\n    wait a;  acquire c\n"
      "    c[i,j] = a[i,j]\n    release a;  commit c\n  }\n}\n");
  in_order(t, (const char *[]){"role store", "role load", "sc_draw(args", "role math"}, 4);
  assert_int_equal(count(t, "sc_draw(args"), 1);
}

// One thread draws before its last copy, if nothing but an `if` is around that; else, and in
// clusters, at the end.
static void drawn_before_the_last_copy(void **state) {
  static const struct {
    const char *load, *order[9], *grid;
  } row[] = {
      {"r <- A[x*64.., 0..]",
       {"role load", "sc_draw(args", "if (++slot == 2)", "sc_tma_load(", "}", "role math"}},
      {"if N > 0 {\nfor t in 0 .. n - 1 { r <- A[x*64.., t*64..] }\nr <- A[x*64.., (n-1)*64..]\n}",
       {"if (args.N > 0) {", "for (", "sc_tma_load(", "}\n        }\n", "sc_draw(args",
        "if (++slot == 2)", "if (args.N > 0) {", "sc_tma_load(", "role math"}},
      {"if N > 0 { r <- A[x*64.., 0..] } else { r <- A[x*64.., 64..] }",
       {"sc_tma_load(", "sc_tma_load(", "}", "sc_draw(args", "if (++slot == 2)", "role math"}},
      {"for t in 0 .. n { r <- A[x*64.., t*64..] }",
       {"sc_tma_load(", "}", "sc_draw(args", "if (++slot == 2)", "role math"}},
      {"r <- A[x*64.., 0..]",
       {"role load", "sc_tma_load(", "sc_draw(args", "if (++slot == 2)", "role math"},
       "cluster (x : 2)"},
  };
  Fixture *f = *state;
  for (u32 i = 0; i < COUNT(row); i++) {
    u32 n = 0;
    while (n < COUNT(row[i].order) && row[i].order[n]) n++;
    const char *t = text_of(
        f, sc_printf(
               &f->sc,
               "kernel k {\n  in A : f16[M, N]\n  out C : f16[M, 64]\n"
               "  grid (x : cdiv(M, 64)) dynamic %s\n  ring r : f16[64, 64] * 2\n  let n = %s\n  "
               "role load : 1 warp {\n%s\n}\n"
               "  role math : 1 warpgroup {\n    reg c : f16[64, 64] = 0\n    for t in 0 .. n {\n"
               "      wait r\n      c[i,j] = r[i,j]\n      release r\n    }\n"
               "    C[x*64 + i, j] = c[i,j]\n  }\n}\n",
               row[i].grid ? row[i].grid : "", strstr(row[i].load, "for") ? "cdiv(N, 64)" : "1",
               row[i].load));
    assert_int_equal(count(t, "sc_draw(args"), 1);
    in_order(strstr(t, "role load"), row[i].order, n);
  }
}

// Who waits in vain for the next tile is told of with its role's line, wherever the wait stands.
static void next_tiles_line(void **state) {
  Fixture *f = *state;
  const Kernel *k = compile(
      f, "t.sched",
      "kernel k {\n  in A : f16[M, 64]\n  out C : f16[M, 64]\n  grid (x : cdiv(M, 64)) dynamic\n"
      "  ring r : f16[64, 64] * 2\n  role load : 1 warp { r <- A[x*64..] }\n"
      "  role math : 1 warpgroup {\n    reg c : f16[64, 64]\n    wait r\n    c[i,j] = r[i,j]\n"
      "    release r\n    C[x*64 + i, j] = c[i,j]\n  }\n}\n");
  const CudaText *t = sc_cuda(&f->sc, k, &(CudaOptions){.debug_waits = true});
  u32 n = 0;
  for (u32 i = 0; i < t->sites; i++) {
    const WaitSite *w = &t->site[i];
    if (w->kind != WAIT_TILE_EMPTY && w->kind != WAIT_TILE_FULL) continue;
    assert_int_equal(w->span.lo, k->role.at[w->role].span.lo);
    n++;
  }
  assert_int_equal(n, 2);
}

// What finds a tile's place is a function of its own: it does not see what roles have named, used
// or not.
static void place_without_lets(void **state) {
  const char *t = text_of(
      *state,
      "kernel k {\n  in A : f32[M, N]\n  out C : f32[M, N]\n"
      "  grid (x : cdiv(M, 64) by N / 3, y : cdiv(N, 64)) persistent\n"
      "  let n = cdiv(N, 64), w = N / 3\n  role r : 1 warpgroup {\n    reg c : f32[64, 64]\n"
      "    c[i,j] = A[x*64 + i, y*64 + j]\n    C[x*64 + i, y*64 + j] = c[i,j]\n  }\n}\n");
  has(t, "const int width = args.N / 3;");
  has(t, "const int in_full = width * y_count;");
  has(t, "const int y_count = (args.N + 63) / 64;");
}

// What is said of tiles' places and of tiles that an instance leaves to another, in as few words as
// it takes.
static void places_of_tiles(void **state) {
  const char *t = text_of(
      *state,
      "kernel k {\n  in A : f32[M, 64]\n  inout C : f32[M, 64], D : f32[N, 64]\n"
      "  grid (reversed x : cdiv(M, 64), y : N) persistent\n  ring r : f32[64, 64] * 3\n"
      "  role load : 1 warp, 24 regs { for t in 1 .. N { for u in 0 .. M { r <- A[x*64..] } } }\n"
      "  role math[w] : 2 warpgroups, one tile each, 128 regs {\n    ring own : f32[64, 64] * 2\n"
      "    reg c : f32[64, 64] = 0\n    for t in 1 .. N { for u in 0 .. M { wait r;  c[i,j] = "
      "r[i,j];  release r } }\n"
      "    acquire own;  own[i,j] = c[i,j];  commit own\n    wait own;  C[x*64..] <- own\n"
      "    wait C read;  release own\n  }\n}\n");
  static const char *const once[] = {
      "const int x_count = (args.M + 63) / 64;", "const int rest0 = tile / x_count;",
      "return {x_count - 1 - (tile - rest0 * x_count), rest0};",
      "sc_skip(r_held, r_parity, sc_rounds(1, args.N) * sc_rounds(0, args.M), 3);",
      "owner = owner == 1 ? 0 : owner + 1)"};
  each_once(t, once, COUNT(once));
  has(t, "DEV u64 sc_rounds(int from, int to)");
  has(t, "smem + own_stage + instance * (2 * own_bytes) + own_fill * own_bytes");
}

// CTAs of a cluster bring a tile: a panel each in one copy, or rows, panel by panel; or not at all.
static void shares(void **state) {
  static const struct {
    const char *tile, *said;
  } row[] = {
      {"f16[64, 256]",
       "cta_rank * (r_bytes / 4), &X_map, smem + r_full, 0xf, 0, 0, cta_rank, 0, 0);"},
      {"f16[64, 128]",
       "cta_rank * 2048 + 8192, &X_map, smem + r_full, 0xf, 64, cta_rank * 16, 0, 0, 0);"},
      {"f16[48, 64]", "'r' is brought by 4 CTAs, each of which would take 12 rows"},
      {"f16[4, 64]", "'r' is brought by 4 CTAs, each of which would take 1 row"},
  };
  for (u32 i = 0; i < COUNT(row); i++) {
    Fixture *f = *state;
    char source[512];
    snprintf(source, sizeof source,
             "kernel k {\n  in X : %.3s[%s\n  out Y : f32[M, 64]\n  grid (x : cdiv(M, 64)) cluster "
             "(x : 4)\n  ring r : %s\n"
             "  role load : 1 warp { r <- X[0..] multicast }\n  role use : 1 warpgroup {\n    reg "
             "s : f32[64, 64] = 0\n"
             "    wait r;  release r\n    Y[x*64 + i, j] = s[i,j]\n  }\n}\n",
             row[i].tile, row[i].tile + 4, row[i].tile);
    const Kernel *k = try_compile(f, "t.sched", source);
    const CudaText *t = k ? sc_cuda(&f->sc, k, &(CudaOptions){0}) : NULL;
    has(one_line(&f->sc, t ? t->text.at : f->sc.diags->text), row[i].said);
    end(state);
    begin(state);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(drawn_once),      TEST(drawn_before_the_last_copy), TEST(drawn_by_the_loader),
      TEST(next_tiles_line), TEST(place_without_lets),         TEST(places_of_tiles),
      TEST(shares)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
