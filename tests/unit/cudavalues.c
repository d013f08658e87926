// Tests of the emitted text of element-wise statements: what is read where it is written, votes
// over tiles of several blocks of rows, and reductions of stages beside vectors in registers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiler/emit/emit.h"
#include "fixture.h"

static const char frame[] =
    "kernel k {\n  in X : f32[M, 64]\n  inout Y : f32[M, 64], G : f32[4, 64]\n  grid (x : cdiv(M, "
    "128))\n"
    "  ring r : f32[64, 64] * 2, c : f32[64, 20]\n  role load : 1 warp { r <- X[x*64..] }\n"
    "  role cols : 1 warp { c <- X[x*64.., 0..] }\n"
    "  role math : 1 warpgroup {\n    reg s : f32[64, 64] = 0, g : f32[64, 32] = 0, m : f32[64] = "
    "0, n : f32[64] = 0\n"
    "    reg p : f16[64, 64] = 0, h : f16[64, 32] = 0, t : f32[128, 64] = 0, u : f32[128] = 0\n    "
    "wait r, c\n"
    "    %s\n    release r, c\n    Y[x*64 + i, j] = s[i,j] + p[i,j] + m[i]\n  }\n}\n";

// The text, on lines joined by one space; or what is reported.
static const char *emitted(void **state, const char *body) {
  Fixture *f = *state;
  end(state), begin(state);
  const Kernel *k = try_compile(f, "t.sched", sc_printf(&f->sc, frame, body));
  const CudaText *t = k ? sc_cuda(&f->sc, k, &(CudaOptions){0}) : NULL;
  return t ? one_line(&f->sc, t->text.at) : f->sc.diags->text;
}

// Columns of a tile that are read by the statement that writes them are all read first.
static void shifted_columns(void **state) {
  has(emitted(state, "s[i,j+16] = s[i,j+8] + g[i,j]"),
      "float x[16]; #pragma unroll for (int e = 0; e < 16; e++) x[e] = s[e + 4] + g[e]; "
      "#pragma unroll for (int e = 0; e < 16; e++) s[e + 8] = x[e];");
  has(emitted(state, "s[i,j+16] = where(j < 16, s[i,j+8] + g[i,j], s[i,j+16])"),
      "x[e] = s[e + 4] + g[e]; #pragma unroll for (int e = 0; e < 8; e++) s[e + 8] = x[e];");
  has(emitted(state, "p[i,j+24] = p[i,j+16] + h[i,j]"),
      "u32 x[8]; #pragma unroll for (int e = 0; e < 16; e += 2) x[e / 2] = sc_pack_f16(");
  has(emitted(state, "p[i,j+24] = p[i,j+16] + h[i,j]"),
      "for (int e = 0; e < 8; e++) p[e + 6] = x[e];");
  has(emitted(state, "s[i,j+16] = s[i,j+16] + g[i,j]"), "e < 16; e++) s[e + 8] = s[e + 8] + g[e];");
}

// In shared and global memory an element may be another thread's: it is not read by the statement
// that writes it.
static void others_elements(void **state) {
  static const char elsewhere[] =
      "is read at other elements than those that the same statement writes";
  has(emitted(state, "r[i,j] = r[j,i]"), elsewhere);
  has(emitted(state, "r[i,j] = r[i,j] + r[0,j]"), elsewhere);
  has(emitted(state, "r[i,j+8] = r[i,j+0*x] + g[i,j]"), elsewhere);
  has(emitted(state, "Y[i,j] = s[i,j] + Y[j,i]"), elsewhere);
  has(emitted(state, "G[x,j] = G[x/2,j]"), elsewhere);
  has(emitted(state, "r[i,j] = 2 * r[i,j]"), "sc_sts32(");
  has(emitted(state, "g[i,j] = 1;  r[i,j+32] = g[i,j] + r[i,0]"), "sc_sts32(");
  has(emitted(state, "Y[x*64 + i + 64, j] = Y[x*64 + i, j] + s[i,j]"), "args.Y[");
  has(emitted(state, "G[x + 1, j] = G[x, j]"), "args.G[");
}

// A warp has rows in every block of a tile, and votes on all of them.
static void votes_of_blocks(void **state) {
  has(emitted(state, "vote any(u[i] > 1) { t[i,j] = t[i,j] * u[i] }"),
      "bool vote1 = false; #pragma unroll for (int b = 0; b < 2; b++) vote1 |= u[2 * b + 0] > 1.0f "
      "|| u[2 * b + 1] > "
      "1.0f; if (sc_any(vote1)) {");
  has(emitted(state, "vote any(m[i] > 1) { m[i] = 1 }"),
      "if (sc_any(m[0] > 1.0f || m[1] > 1.0f)) {");
}

// Rows of a stage are reduced into a vector in registers, whose threads they then are.
static void rows_of_stages(void **state) {
  const char *t = emitted(state, "m[i] = m[i] + sum(j) r[i,j]");
  has(t, "sc_pairs_f32(sc_at_lane<128, 64>(");
  has(t, "for (int e = 4 * n; e < 4 * n + 4; e++) sum_j[sc_row(e)] += four[e & 3];");
  has(t, "m[r] = m[r] + sum_j[r];");
  has(emitted(state, "m[i] = m[i] + sum(j) c[i,j]"),
      "a reduction of rows whose length is no multiple of 8");  // 20 columns
  has(emitted(state, "m[i] = 0;  n[j] = n[j] + sum(i) r[i,j];  s[i,j] = n[j]"),
      "a reduction that does not run along the rows");
}

// The two 8-bit types may meet in a product.
static void types_of_8_bits(void **state) {
  Fixture *f = *state;
  const Kernel *k =
      compile(f, "t.sched",
              "kernel k {\n  in X : e4m3[M, 64], W : e5m2[64, 64]\n  out Y : f32[M, 64]\n"
              "  grid (x : cdiv(M, 64))\n  ring a : e4m3[64, 64], b : e5m2[64, 64]\n"
              "  role load : 1 warp { a <- X[x*64..];  b <- W[0..] }\n"
              "  role math : 1 warpgroup {\n    reg s : f32[64, 64]\n    wait a, b\n"
              "    async s[i,j] = a[i,k] @ b[j,k]\n    wait s\n"
              "    async s[i,j] += a[i,k] @ a[j,k]\n    wait s;  release a, b\n"
              "    Y[x*64 + i, j] = s[i,j]\n  }\n}\n");
  const CudaText *t = sc_cuda(&f->sc, k, &(CudaOptions){0});
  assert_non_null(t);
  has(t->text.at, "DEV void sc_wgmma_e4m3_e5m2_n64_ss(");
  has(t->text.at, "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e5m2 {");
  has(t->text.at, "DEV void sc_wgmma_e4m3_n64_ss(");
  has(t->text.at, "sc_wgmma_e4m3_e5m2_n64_ss<0, 0>(s, a_desc, b_desc, 0);");
}

// A quotient that is rounded up is written as a sum only where that has 32 bits.
static void rounded_up(void **state) {
  has(emitted(state, "s[i,j] = s[i,j] + cdiv(M, 64)"), "(args.M + 63) / 64");
  has(emitted(state, "s[i,j] = s[i,j] + cdiv(M, 100000)"), "sc_cdiv(args.M, 100000)");
  has(emitted(state, "s[i,j] = s[i,j] + cdiv(M, M + 1)"), "sc_cdiv(args.M, args.M + 1)");
}

// Elements may have any of 32 bits: what is added to them fits, whatever they are.
static void made_of_elements(void **state) {
  Fixture *f = *state;
  const Kernel *k = compile(
      f, "t.sched",
      "kernel k {\n  in n : i32[M]\n  out Y : f32[M, 64]\n  grid (x : M)\n  role all : 1 warpgroup "
      "{\n"
      "    reg s : f32[64, 64] = 0\n    for t in reversed 0 .. n[x] { s[i,j] = s[i,j] + t }\n"
      "    s[i,j] = where(j <= n[x] + i - M, s[i,j], cdiv(max(n[x], 0), 64))\n"
      "    Y[max(n[x], 0) + i, max(n[x], 1) + j] = s[i,j]\n  }\n}\n");
  const CudaText *t = sc_cuda(&f->sc, k, &(CudaOptions){0});
  assert_non_null(t);
  const char *text = one_line(&f->sc, t->text.at);
  has(text, "for (int t = max(args.n_[x_tile], -0x7fffffff) - 1; t >= 0; t--)");
  has(text, "{sc_limit(0ll + args.n_[x_tile] + 1 - args.M) + row0 - col0,");
  has(text, "sc_cdiv(max(args.n_[x_tile], 0), 64)");
  has(text, "const int left = 64 - min(max(args.n_[x_tile], 1), 0x7ffe0000);");
  has(text, "const int row = min(max(args.n_[x_tile], 0), 0x7ffe0000) + row0 + 8 * r;");
}

// Two roles that ask one condition of reals get one answer: a product in a sum is no part of one
// operation in one of them and not in the other.
static void asked_of_reals(void **state) {
  Fixture *f = *state;
  const Kernel *k =
      compile(f, "t.sched",
              "kernel k {\n  in a, b, c : f32, X : f32[64]\n  out Y : f32[64]\n  ring r : f32[64]\n"
              "  role load : 1 warp { if a * 3.0 + b > c { r <- X[0..] } }\n"
              "  role math : 1 warpgroup {\n    reg s : f32[64] = 0\n"
              "    if a * 3.0 + b > c { wait r;  s[i] = r[i];  release r }\n"
              "    if a * 3.0 - b > c { s[i] = s[i] + (a * 3.0 + c) }\n    Y[i] = s[i]\n  }\n}\n");
  const CudaText *t = sc_cuda(&f->sc, k, &(CudaOptions){0});
  assert_non_null(t);
  const char *text = one_line(&f->sc, t->text.at), *asked = "if (args.c < sc_plus(args.a * 3.0f, ";
  const char *first = strstr(text, asked);
  assert_non_null(first);
  assert_non_null(strstr(first + 1, asked));
  has(text, "if (args.c < sc_plus(args.a * 3.0f, -args.b_))");
  has(text, "+ (args.a * 3.0f + args.c)");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(shifted_columns), TEST(others_elements), TEST(votes_of_blocks),  TEST(rows_of_stages),
      TEST(types_of_8_bits), TEST(rounded_up),      TEST(made_of_elements), TEST(asked_of_reals)};
  return cmocka_run_group_tests_name("cudavalues", tests, NULL, NULL);
}
