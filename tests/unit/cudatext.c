// Tests of what the schedule's own text may do to the emitted text: nothing. Names, comments,
// paths, numbers, sizes.
#define _GNU_SOURCE  // memmem
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <stdio.h>

#include "compiler/emit/emit.h"
#include "fixture.h"

static void names(void **state) {
  Fixture *f = *state;
  static const char *const kept[] = {"a",  "q",   "k",     "BM", "last",
                                     "z9", "old", "limit", "T",  "mapped"};
  static const char *const taken[] = {"int",    "args",   "class",  "threadIdx", "sc_exp2", "__x",
                                      "a_",     "k_fill", "x_tile", "Q_stride",  "old_19",  "Q_map",
                                      "k_full", "turn1",  "tiles",  "restrict"};
  for (u32 i = 0; i < COUNT(kept); i++) assert_string_equal(sc_cuda_name(&f->sc, kept[i]), kept[i]);
  for (u32 i = 0; i < COUNT(taken); i++) {
    const char *name = sc_cuda_name(&f->sc, taken[i]);
    assert_int_equal(strlen(name), strlen(taken[i]) + 1);
    assert_string_equal(name + strlen(taken[i]), "_");
    assert_memory_equal(name, taken[i], strlen(taken[i]));
  }
}

static void comments(void **state) {
  Fixture *f = *state;
  static const char *const row[] = {"x = 1",
                                    "ends \\",
                                    "two\nlines",
                                    "a */ b",
                                    "a ?"
                                    "?/",
                                    "\033[2J\177",
                                    "a / b // c"};
  for (u32 i = 0; i < COUNT(row); i++) {
    Str s = {.sc = &f->sc};
    sc_cuda_comment(&s, row[i], strlen(row[i]));
    assert_int_equal(s.n, strlen(row[i]));
    assert_null(strpbrk(s.at, "\n\r\\\033"));
    assert_null(strstr(s.at, "*/"));
    assert_null(strstr(s.at,
                       "?"
                       "?/"));
  }
}

static void paths(void **state) {
  Fixture *f = *state;
  Str s = {.sc = &f->sc};
  const Kernel k = {.text = sc_text(&f->sc, "a\"b\\c\n?/\303\2441.sched", "", 0)};
  cu_put_line(&s, &k);
  assert_string_equal(s.at, "#line 1 \"a'b\\134c\\012\\077/\\303\\2441.sched\"\n");
}

// A schedule whose every name means something to C++ or to the emitter, from a file with a name
// that would end the line.
static const char hostile[] =
    "kernel int {\n"
    "  param class = 64\n"
    "  in sizeof : f16[new, 64], threadIdx : f16[64, 64]\n"
    "  out float : f32[new, 64]\n"
    "  grid (tile0 : cdiv(new, 64))\n"
    "  ring slot : f16[64, 64], k_fill : f16[64, 64]  // a comment that ends in \\\n"
    "  role k : 1 warp, 24 regs { slot <- sizeof[tile0*64..];  k_fill <- threadIdx[0..] }\n"
    "  role a : 1 warpgroups, 240 regs {\n"
    "    reg args_ : f32[64, 64]\n"
    "    wait slot, k_fill\n"
    "    async args_[i,j] = slot[i,d] @ k_fill[j,d]\n"
    "    wait args_;  release slot, k_fill\n"
    "    float[tile0*64 + i, j] = args_[i,j]\n"
    "  }\n"
    "}\n";

static void names_in_place(void **state) {
  Fixture *f = *state;
  const CudaText *t = cuda_of(f, "x\"\n#error out\n.sched", hostile);
  assert_non_null(t);
  assert_string_equal(t->name, "int_");
  assert_null(strstr(t->text.at, "\n#error"));
  assert_non_null(strstr(t->text.at, "#line 1 \"x'\\012#error out\\012.sched\"\n"));
  assert_non_null(strstr(t->text.at, "float args__["));
  assert_non_null(strstr(t->text.at, "float *float_;"));
  assert_non_null(strstr(t->text.at, "  int new_;"));
  assert_null(strstr(t->text.at, "\\\n"));
}

// NVRTC sees a number before every line of the kernel, and the text is otherwise the same.
static void lines(void **state) {
  Fixture *f = *state;
  const CudaText *t = cuda_of(f, "t.sched", hostile);
  const char *lined = sc_cuda_lined(&f->sc, t), *kernel = strstr(lined, "extern \"C\"");
  u32 of_product = 0;
  assert_non_null(kernel);
  for (const char *p = kernel, *end; *p; p = end + 1) {
    end = strchr(p, '\n');
    bool directive = !strncmp(p + strspn(p, " "), "#line ", 6);
    const char *before = p - 1;
    while (before > lined && before[-1] != '\n') before--;
    if (!directive) assert_int_equal(strncmp(before + strspn(before, " "), "#line ", 6), 0);
    if (!directive && memmem(p, (size_t)(end - p), "wgmma_commit", 12)) {
      assert_int_equal(strncmp(before + strspn(before, " "), "#line 11", 8), 0);
      of_product++;
    }
  }
  assert_true(of_product == 1);
}

// A value used twice in the next, forty times over; without names the last would be 2^40 long.
static const char *growing(Fixture *f, const char *next) {
  Str s = {.sc = &f->sc};
  str_puts(
      &s,
      "kernel k {\n  in A : f32[M, 64]\n  out C : f32[M, 64]\n  grid (x : cdiv(M, 64))\n"
      "  role r : 1 warpgroups {\n    reg c : f32[64, 64] = 0.0\n    for t in 0 .. M {\n      let "
      "v0 = t % (x + 2)\n");
  for (u32 i = 1; i < 40; i++) {
    str_printf(&s, "      let v%u = ", i);
    for (const char *p = next; *p; p++)
      str_printf(&s, *p == 'v' ? "v%u" : "%c", *p == 'v' ? i - 1 : (u32)*p);
    str_puts(&s, "\n");
  }
  str_puts(
      &s,
      "      if v39 > 3 { c[i,j] = c[i,j] + 1.0 }\n    }\n    C[x*64 + i, j] = c[i,j]\n  }\n}\n");
  return s.at;
}

static void growth(void **state) {
  Fixture *f = *state;
  const CudaText *t = cuda_of(f, "t.sched", growing(f, "min(v, 7) * (v % 5)"));
  assert_true(t->text.n < 16000);
}

// What may divide by zero is not computed where it is not wanted: it has no name, but a limit.
static void growth_of_quotients(void **state) {
  Fixture *f = *state;
  const char *source = growing(f, "min(v, 7) * (v % M)");
  if (!setjmp(f->unwind)) {
    cuda_of(f, "t.sched", source);
    fail();
  }
  assert_int_equal(f->sc.why, SCHEDC_ELIMIT);
  assert_int_equal(f->sc.diags->id, D_P_LIMIT);
  Span at = f->sc.diags->at;
  assert_memory_equal(source + at.lo, "if v39 > 3", 10);
}

// One text: a function for each kernel, however often it is launched, and what they call once.
static void sequences(void **state) {
  Fixture *f = *state;
  static const char role[] =
      "  grid (x : cdiv(M, 64))\n  ring r : f16[64, 64]\n"
      "  role load : 1 warp, 24 regs { r <- A[x*64..] }\n"
      "  role math : 1 warpgroup, 240 regs {\n    reg c : f32[64, 64]\n    wait r\n"
      "    async c[i,j] = r[i,d] @ r[j,d]\n    wait c;  release r\n"
      "    C[x*64 + i, j] = c[i,j]\n  }\n}\n";
  Str s = {.sc = &f->sc};
  str_printf(&s, "kernel one {\n  in A : f16[M, 64]\n  out C : f32[M, 64]\n%s", role);
  str_printf(&s, "kernel int {\n  in A : f16[M, 64]\n  out C : f32[M, 64]\n%s", role);
  str_puts(&s, "sequence all {\n  one\n  int\n  one\n}\n");
  const CudaText *t = cuda_of(f, "t.sched", s.at);
  assert_non_null(t);
  const char *text = t->text.at;
  assert_non_null(strstr(text, "// Its kernels, to be launched in this order: one, int, one\n"));
  assert_int_equal(count(text, "extern \"C\" __global__"), 2);
  assert_int_equal(count(text, "DEV void sc_mbar_init("), 1);
  assert_int_equal(count(text, "DEV void sc_wgmma_f16_n64_ss("), 1);
  assert_int_equal(count(text, "struct one_args {"), 1);
  assert_int_equal(count(text, "struct int__args {"), 1);
  assert_string_equal(t->step[1]->name, "int_");
  assert_ptr_equal(t->step[2], t->step[0]);
}

// A def that names a value, used twice: each value has a name of its own.
static void lets_of_defs(void **state) {
  const char *t =
      text_of(*state,
              "kernel k {\n  in A : f32[M, 64]\n  out C : f32[M, 64]\n  grid (x : cdiv(M, 64))\n"
              "  role r : 1 warpgroup, 128 regs {\n    reg c : f32[64, 64] = 0\n"
              "    def add(t) {\n      let first = t * M\n"
              "      c[i,j] = c[i,j] + A[first + i, j]\n    }\n"
              "    add(x)\n    add(x + 1)\n    C[x*64 + i, j] = c[i,j]\n  }\n}\n");
  assert_int_equal(count(t, "const int first = x_tile * args.M;"), 1);
  assert_int_equal(count(t, "const int first_2 = (x_tile + 1) * args.M;"), 1);
  assert_int_equal(count(t, "const int first = "), 1);
  has(t, "args.A + (first + ");
  has(t, "args.A + (first_2 + ");
}

// Names of places in shared memory and of tensor maps, which the schedule has too: nothing has two
// meanings.
static void names_of_places(void **state) {
  const char *t = text_of(
      *state,
      "kernel k {\n  in Q : f16[M, 64], Q_map : f16[64, 64]\n  out C : f32[M, 64]\n"
      "  grid (x : cdiv(M, 64))\n  ring ab : { a : f16[64, 64], b : f16[32, 64] }\n"
      "  ring ab_a : f16[64, 64]\n  ring ab_full : f16[64, 64] * 2\n"
      "  role load : 1 warp, 24 regs {\n    acquire ab;  ab.a <- Q[x*64..];  ab.b <- "
      "Q[x*64..];  commit ab\n"
      "    ab_a <- Q_map[0..];  ab_full <- Q_map[0..]\n  }\n"
      "  role math : 1 warpgroup, 240 regs {\n"
      "    let ab_bytes = x * M\n    reg ab_empty : f32[64, 64], ab_stage : f32[64, 64] = 0\n"
      "    wait ab, ab_a, ab_full\n    async ab_empty[i,j] = ab.a[i,d] @ ab_a[j,d]\n"
      "    wait ab_empty\n    release ab, ab_a, ab_full\n"
      "    C[x*64 + i, j] = ab_empty[i,j] + ab_stage[i,j] + ab_bytes\n  }\n}\n");
  static const char *const once[] = {
      " ab_a_stage = ",    " ab_b_stage = ",      " ab_a_stage_5 = ",     " ab_full__stage = ",
      " ab_full = ",       " ab_full__full = ",   " ab_full__bytes = ",   " ab_bytes = ",
      " ab_bytes_ = ",     " ab_empty = ",        " ab_empty_[32]",       " ab_stage_[32]",
      " TensorMap Q_map,", " TensorMap Q_map_2,", " TensorMap Q_map_map,"};
  each_once(t, once, COUNT(once));
}

// Tiles that are called as the emitter calls its loops: of words of four 8-bit elements, of
// products by a warp.
static void names_of_loops(void **state) {
  const char *t =
      text_of(*state,
              "kernel k {\n  in A : f16[M, 64]\n  out C : f32[M, 16], D : e4m3[M, 64]\n"
              "  grid (x : cdiv(M, 64))\n  ring r : f16[64, 64]\n"
              "  role load : 1 warp { r <- A[x*64..] }\n"
              "  role one : 1 warp {\n    reg n_k : f32[16, 16]\n    wait r\n"
              "    n_k[i,j] = r[i,d] @ r[j,d]\n    release r\n    C[x*64 + i, j] = n_k[i,j]\n  }\n"
              "  role four : 1 warpgroup {\n    reg q : f32[64, 64], b : e4m3[64, 64]\n"
              "    q[i,j] = A[x*64 + i, j]\n    b[i,j] = q[i,j]\n    D[x*64 + i, j] = b[i,j]\n"
              "  }\n}\n");
  has(t, "for (int n_k2 = 0; n_k2 < 64; n_k2 += 16)");
  has(t, "+ 8 * (at >> 3 & 1)");
  has(t, "y[q2] = q[e];");
}

// Threads test where they read and write, unless the grid, a loop or a condition says it already.
// In the last cluster may be a CTA past the end of the grid, which writes nothing.
static void tested_places(void **state) {
  Fixture *f = *state;
  const char *t = text_of(
      f,
      "kernel k {\n  in X : f32[H, G, M, 64], n : i32[H]\n  out Y : f32[H, 64]\n  inout Z : "
      "f32[64]\n"
      "  grid (h : H, g : cdiv(G, 2)) cluster (g : 2)\n  let m = H / 4\n"
      "  role r : 1 warpgroup {\n    reg s : f32[64] = 0\n"
      "    for t in 0 .. min(M, n[h]) {\n      s[i] = s[i] + X[h, g, t, i]\n"
      "      if t > 0 { s[i] = s[i] + X[h, g, t - 1, i] }\n      s[i] = s[i] + X[h, g, t + 1, i]\n "
      "   }\n"
      "    for q in 0 .. 4 {\n      for p in 0 .. m { s[i] = s[i] * X[q*m + p, 0, 0, i] }\n    }\n"
      "    Y[h, i] = s[i]\n    Z[i] += s[i]\n  }\n}\n");
  t = one_line(&f->sc, t);
  has(t,
      "s[r] = s[r] + (g_tile < args.G ? args.X[h_tile * X_stride_0 + g_tile * X_stride_1 + "
      "t * X_stride_2 + row0 + 8 * r] : 0);");
  has(t, "const long long X_stride_2 = args.X_stride[2];");
  has(t, "(g_tile < args.G ? args.X[h_tile * X_stride_0 + g_tile * X_stride_1 + (t - 1) *");
  has(t, "(g_tile < args.G && t + 1 < args.M ? args.X[");
  has(t, "(0 < args.G && 0 < args.M ? args.X[(q * m + p) * X_stride_0");
  has(t, "if (g_tile < (args.G + 1) / 2) {");
  has(t, "if ((lane & 3) == 0) args.Y[h_tile * Y_stride_0 + row] = s[r];");
}

// Vectors are rounded to their type; one along columns is written by one group of the threads that
// have it; a whole value of a partial one is one lane's.
static void vectors(void **state) {
  Fixture *f = *state;
  const char *t = one_line(
      &f->sc, text_of(f,
                      "kernel k {\n  in X : f32[M, 64], V : f32[64]\n  out Y : f32[M, 64], Z : "
                      "f32[M]\n  inout W : f32[64]\n"
                      "  grid (x : cdiv(M, 64))\n  role math : 1 warpgroup {\n"
                      "    reg s : f32[64, 64], c, d : f32[64], h : f16[64], l : f32[64] = 1 "
                      "partial, z : f32[64] = 0 partial\n"
                      "    c[j] = V[j]\n    d[j] = c[j] + 1\n    s[i,j] = X[x*64 + i, j] + d[j]\n  "
                      "  h[i] = max(j) s[i,j]\n"
                      "    l[i] = l[i] + sum(j) s[i,j]\n    z[i] = z[i] + sum(j) s[i,j]\n    "
                      "Y[x*64 + i, j] = s[i,j]\n"
                      "    W[j] = W[j] + c[j]\n    Z[x*64 + i] = l[i] + h[i] + z[i]\n  }\n}\n"));
  has(t, "l[r] = (lane & 3) == 0 ? 1.0f : 0;");
  has(t, "z[r] = 0.0f;");
  has(t, "h[r] = sc_of_f16(sc_to_f16(");
  has(t, "d[2 * (e >> 2) + (e & 1)] = c[2 * (e >> 2) + (e & 1)] + 1.0f;");
  has(t, "if ((e & 2) == 0 && thread < 4) args.W[");
}

// One column of a stage; and a kernel that does not ask where its tile is, with a name of CUDA's.
static void small_forms(void **state) {
  Fixture *f = *state;
  const char *t = one_line(
      &f->sc,
      text_of(
          f,
          "kernel norm {\n  in X : f32[64]\n  out Y : f32[64, 32]\n  role math : 1 warpgroup {\n"
          "    ring c : f32[64, 32]\n    reg r : f32[64], s : f32[64, 32] = 0\n    r[i] = X[i]\n   "
          " acquire c\n"
          "    c[i,j] = s[i,j]\n    c[i,3] = r[i]\n    commit c\n    wait c\n    Y[0.., 0..] <- "
          "c\n    wait Y read\n"
          "    release c\n  }\n}\n"));
  has(t, "for (int r = 0; r < 2; r++) { if ((lane & 3) == 0) sc_sts32(");
  has(t, "4 * 3), r_[r]);");
  has(t, "norm_(const __grid_constant__");
  assert_null(strstr(t, "place_of"));
}

// A slice of 64 columns from the 48th on: the rest of a panel, and of the next; and rows from the
// 5th on.
static void slices_over_panels(void **state) {
  const char *t =
      text_of(*state,
              "kernel k {\n  in X : f16[M, 64], W : f16[72, 128]\n  out Y : f32[M, 64]\n  grid (x "
              ": cdiv(M, 64))\n"
              "  ring b : f16[72, 128]\n  role load : 1 warp { b <- W[0.., 0..] }\n"
              "  role math : 1 warpgroup {\n    reg p : f16[64, 64], y : f32[64, 64]\n    p[i,k] = "
              "X[x*64 + i, k]\n"
              "    wait b\n    async y[i,j] = p[i,k] @ b[5 + j, 48 + k]\n    wait y;  release b\n"
              "    Y[x*64 + i, j] = y[i,j]\n  }\n}\n");
  has(t, "sc_desc<128>(smem + b_stage + 5 * 128);");
  has(t, "_rs<6>(y_, p, b_desc, 0);");
  has(t, "_rs<576>(y_, p + 4, b_desc, 1);");  // 72 rows of 128 bytes
  has(t, "_rs<578>(y_, p + 8, b_desc, 1);");
  has(t, "_rs<580>(y_, p + 12, b_desc, 1);");
}

// The second panel of a copy is 64 columns past the first, wherever that is.
static void chosen_columns(void **state) {
  const char *t = text_of(
      *state,
      "kernel k {\n  in X : f16[M, 256]\n  out Y : f32[M, 128]\n  grid (x : cdiv(M, 64))\n"
      "  ring r : f16[64, 128]\n"
      "  role load : 1 warp { r <- X[x*64.., where(x % 2 == 0, 0, 128)..] }\n"
      "  role math : 1 warpgroup {\n    reg y : f32[64, 128]\n    wait r\n    y[i,j] = r[i,j]\n"
      "    release r\n    Y[x*64 + i, j] = y[i,j]\n  }\n}\n");
  has(t, "r_full, x_tile % 2 == 0 ? 0 : 128, x_tile * 64");
  has(t, "r_full, (x_tile % 2 == 0 ? 0 : 128) + 64, x_tile * 64");
}

// Bounds of loops that are chosen.
static void chosen_rounds(void **state) {
  const char *t = text_of(
      *state,
      "kernel k {\n  in X : f32[M, 64]\n  out Y : f32[M, 64]\n  grid (x : cdiv(M, 64))\n"
      "  role math : 1 warpgroup {\n    reg y : f32[64, 64] = 0\n"
      "    for t in 0 .. where(x == 0, 2, 3) { y[i,j] = y[i,j] + X[x*64 + i, j] }\n"
      "    for u in reversed where(x == 0, 1, 0) .. 3 { y[i,j] = y[i,j] + X[x*64 + i, j] }\n"
      "    Y[x*64 + i, j] = y[i,j]\n  }\n}\n");
  has(t, "for (int t = 0; t < (x_tile == 0 ? 2 : 3); t++)");
  has(t, "for (int u = 2; u >= (x_tile == 0 ? 1 : 0); u--)");
}

static void locale(void **state) {
  if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "fr_FR.UTF-8"))
    setlocale(LC_NUMERIC, "");
  const char *t = text_of(
      *state,
      "kernel k {\n  param h = 0.5\n  out C : f32[M, 64]\n  grid (x : cdiv(M, 64))\n"
      "  role r : 1 warpgroups { reg c : f32[64, 64] = 0.1;  C[x*64 + i, j] = c[i,j] }\n}\n");
  setlocale(LC_NUMERIC, "C");
  has(t, "h = 0.5");
  has(t, "0.1f");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(names),
                                     TEST(comments),
                                     TEST(paths),
                                     TEST(names_in_place),
                                     TEST(lines),
                                     TEST(growth),
                                     TEST(growth_of_quotients),
                                     TEST(sequences),
                                     TEST(lets_of_defs),
                                     TEST(names_of_places),
                                     TEST(names_of_loops),
                                     TEST(slices_over_panels),
                                     TEST(small_forms),
                                     TEST(vectors),
                                     TEST(tested_places),
                                     TEST(chosen_columns),
                                     TEST(chosen_rounds),
                                     TEST(locale)};
  return cmocka_run_group_tests_name("cudatext", tests, NULL, NULL);
}
