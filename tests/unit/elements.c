// Tests of how the elements of a statement are written: what is tested before an access, what is
// read together.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "fixture.h"

static const char *emit(Fixture *f, const char *source) {
  Str out = {.sc = &f->sc};
  const CudaText *t = sc_cuda(&f->sc, compile(f, "test.sched", source), &(CudaOptions){0});
  str_put(&out, t->text.at, t->text.n);
  return one_line(&f->sc, out.at);
}

static void lacks(const char *text, const char *part) {
  if (strstr(text, part)) fail_msg("'%s' should not be in\n%s", part, text);
}

// A tile may be wider than the tensor, whose last columns it then passes.
static void columns_past_the_end(void **state) {
  const char *t =
      emit(*state,
           "kernel k {\n  in X : f32[M, 100]\n  out Y : f32[M, 100]\n  grid (x : cdiv(M, 64))\n"
           "  role r : 1 warpgroup, 128 regs {\n    reg a : f32[64, 128]\n"
           "    a[i,j] = X[x*64 + i, j]\n    Y[x*64 + i, j] = a[i,j]\n  }\n}\n");
  has(t, "sc_rows<float> rows = {{args.X + (x_tile * 64 + row0) * X_stride_0 + col0, ");
  has(t, "{x_tile * 64 + row0 < args.M ? 100 - col0 : 0, ");
  has(t, "if (n % 8 == 0) sc_load_pairs_f32(rows, 8 * n, read);");
  has(t, "const int left = 100;");
  has(t, "if (row < args.M) sc_store_pair_f32(row_out + 8 * n, a + 4 * n + 2 * r, left - 8 * n");
}

// Where extents and instances say that all is inside, nothing is tested.
static void inside_by_their_form(void **state) {
  const char *t = emit(*state,
                       "kernel k {\n  in X : f32[128, 64]\n  out Y : f32[128, 64]\n"
                       "  role r[w] : 2 warpgroups, 128 regs {\n    reg a : f32[64, 64]\n"
                       "    a[i,j] = X[64*w + i, j]\n    Y[64*w + i, j] = a[i,j]\n  }\n}\n");
  lacks(t, "< 128");
  lacks(t, "< 64");
  t = emit(*state,
           "kernel k {\n  in X : f32[120, 64]\n  out Y : f32[120, 64]\n"
           "  role r[w] : 2 warpgroups, 128 regs {\n    reg a : f32[64, 64]\n"
           "    a[i,j] = X[64*w + i, j]\n    Y[64*w + i, j] = a[i,j]\n  }\n}\n");
  has(t, "+ row0 < 120 ? 64 - col0 : 0, ");
  has(t, "if (row < 120) sc_store_pair_f32(");
}

// Rows of a tensor that is only read: by 16 bytes where 16-bit rows are known to lie so, or where
// the emitted code finds that they do; else in pairs. Not so if nobody may ask for them, nor what
// the kernel also writes, nor a vector along the columns.
static void rows_of_tensors(void **state) {
  static const struct {
    const char *in, *statement, *has, *lacks;
  } tried[] = {
      {"in X : f16[M, 64]", "s[i,j] = X[x*64 + i, j]",
       "if (n % 8 == 0) sc_load_wide_f16<false>(rows, 8 * n, lane & 3, read);", "args.X["},
      {"in X : bf16[M, N]", "s[i,j] = X[x*64 + i, j]",
       "sc_load_wide_bf16<true>(rows, 8 * n, lane & 3, read);", "args.X["},
      {"in X : f16[M, N]", "s[i,j] = X[j, x*64 + i]", "args.X[", "sc_rows"},
      {"in X : e4m3[M, N]", "s[i,j] = X[x*64 + i, j]", "sc_load_pairs_e4m3(rows, 8 * n, read);",
       "args.X["},
      {"in X : f16[M, 64]", "s[i,j] = where(40 <= j and j < 56, X[x*64 + i, j], s[i,j])",
       "if (n % 8 == 0 || n == 5) sc_load_wide_f16<false>(rows, 8 * (n - n % 8), ", "args.X["},
      {"in X : f16[M, 64]", "s[i,j] = where(N > 5, X[x*64 + i, j], s[i,j])", "args.X[", "sc_rows"},
      {"in X : f16[M, N]", "s[i,j] = X[x*64 + i, j - 2]", "args.X[", "sc_rows"},
      {"in X : f16[M, N]", "s[i,j] = X[j, j]", "args.X[", "sc_rows"},
      {"in X : f32[N]", "s[i,j] = X[j]", "args.X[", "sc_rows"},
      {"inout X : f16[M, 64]", "s[i,j] = X[x*64 + i, j];  X[x*64 + i, j] = s[i,j]", "args.X[",
       "sc_rows"},
  };
  for (u32 i = 0; i < COUNT(tried); i++) {
    Fixture *f = *state;
    const char *t = emit(
        f, sc_printf(&f->sc,
                     "kernel k {\n  %s\n  out Y : f32[M, N]\n  grid (x : cdiv(M, 64))\n"
                     "  role r : 1 warpgroup, 200 regs {\n    reg s : f32[64, 64] = 0\n    %s\n"
                     "    Y[x*64 + i, j] = s[i,j]\n  }\n}\n",
                     tried[i].in, tried[i].statement));
    has(t, tried[i].has);
    lacks(t, tried[i].lacks);
  }
}

// A vector along the columns, in a stage: two elements a load, which serve both rows; one by one
// from an odd place.
static void pairs_along_columns(void **state) {
  static const struct {
    const char *elem, *from;
    bool pairs;
  } tried[] = {{"f32", "", true},  {"f32", "2*w + ", true}, {"f32", "w + ", false},
               {"f16", "", true},  {"bf16", "", true},      {"f16", "w + ", false},
               {"e4m3", "", false}};
  for (u32 i = 0; i < COUNT(tried); i++) {
    Fixture *f = *state;
    const char *elem = tried[i].elem, *from = tried[i].from;
    const char *source =
        sc_printf(&f->sc,
                  "kernel k {\n  in X : f32[M, 64], v : %s[80]\n  out Y : f16[M, 64]\n  grid (x : "
                  "cdiv(M, 128))\n"
                  "  ring r : %s[80]\n  role load : 1 warp, 24 regs { r <- v[0..] }\n"
                  "  role math[w] : 2 warpgroups, 128 regs {\n    reg a : f32[64, 64], b : f16[64, "
                  "64]\n    wait r\n"
                  "    a[i,j] = X[x*128 + 64*w + i, j] * r[%sj]\n    b[i,j] = a[i,j] + r[%sj]\n    "
                  "release r\n"
                  "    Y[x*128 + 64*w + i, j] = b[i,j]\n  }\n}\n",
                  elem, elem, from, from);
    const char *t = emit(f, source), *pair = sc_printf(&f->sc, "float2 pair = sc_pair_%s(", elem);
    if (tried[i].pairs) {
      has(t, pair);
      has(t, " * (e & 1 ? pair.y : pair.x);");
      has(t, "sc_pack_f16(a[e] + pair.x, a[e + 1] + pair.y);");
      lacks(t, "sc_lds32(smem");
      lacks(t, "sc_lds16(smem");
    } else {
      lacks(t, pair);
    }
  }
}

// A loop of few rounds over values of rows, as where warps' results are joined, is unrolled, so
// that its reads overlap; not one of many rounds, not one that computes tiles, and not one with a
// sync in each round, as where memory is written.
static void joins_unroll(void **state) {
  static const struct {
    const char *rounds, *body, *before;
  } tried[] = {
      {"8", "m[i] = m[i] + r[16*v + i]", "#pragma unroll for (int v = 0; v < 8; v++)"},
      {"9", "m[i] = m[i] + r[16*v + i]", "#pragma unroll 1 for (int v = 0; v < 9; v++)"},
      {"8", "a[i,j] = a[i,j] + r[16*v + i]", "#pragma unroll 1 for (int v = 0; v < 8; v++)"},
      {"8", "Y[x*64 + i, v] = m[i]", "#pragma unroll 1 for (int v = 0; v < 8; v++)"},
      {"N", "m[i] = m[i] + r[i]", "#pragma unroll 1 for (int v = 0; v < args.N; v++)"}};
  for (u32 i = 0; i < COUNT(tried); i++) {
    Fixture *f = *state;
    has(emit(f, sc_printf(&f->sc,
                          "kernel k {\n  in v : f32[256], Z : f32[N]\n  out Y : f32[M, 8]\n"
                          "  grid (x : cdiv(M, 64))\n  ring r : f32[256]\n"
                          "  role load : 1 warp, 24 regs { r <- v[0..] }\n"
                          "  role join : 4 warps, 128 regs {\n"
                          "    reg a : f32[64, 8] = 0, m : f32[64] = 0\n    wait r\n"
                          "    for v in 0 .. %s { %s }\n    release r\n"
                          "    Y[x*64 + i, j] = a[i,j] + m[i]\n  }\n}\n",
                          tried[i].rounds, tried[i].body)),
        tried[i].before);
  }
}

// Pairs of 16-bit elements become words of four: each of the four takes its own half.
static void bytes_from_pairs(void **state) {
  const char *t = emit(
      *state,
      "kernel k {\n  in X : f16[M, 64]\n  out Y : e4m3[M, 64]\n  grid (x : cdiv(M, 64))\n"
      "  role r : 1 warpgroup, 128 regs {\n    reg a : f16[64, 64], b : e4m3[64, 64]\n"
      "    a[i,j] = X[x*64 + i, j]\n    b[i,j] = a[i,j]\n    Y[x*64 + i, j] = b[i,j]\n  }\n}\n");
  has(t, "y[q] = sc_of_f16(a[e / 2] >> 16 * (e & 1) & 0xffff);");
}

// Tiles of 16 bits move between stages and registers by blocks of 16 rows and 16 columns, if those
// lie so.
static void fragments(void **state) {
  static const char *const from[] = {"", "8 + ", "16*w + ", "4 + "};
  for (u32 i = 0; i < COUNT(from); i++) {
    Fixture *f = *state;
    const char *source = sc_printf(
        &f->sc,
        "kernel k {\n  in X : f16[M, 128]\n  out Y : f16[M, 128]\n  grid (x : cdiv(M, 128))\n"
        "  ring r : f16[128, 128]\n  role load : 1 warp, 24 regs { r <- X[x*128..] }\n"
        "  role math[w] : 2 warpgroups, 128 regs {\n    ring o : f16[64, 128]\n"
        "    reg a : f16[64, 64], b : f16[64, 128]\n"
        "    wait r\n    a[i,j] = r[64*w + i, %sj]\n    release r\n    b[i,j] = 0\n    acquire o\n"
        "    o[i, %sj] = a[i,j]\n    commit o\n    wait o\n    b[i, 16 + j] = o[i,j] * a[i,j]\n    "
        "release o\n"
        "    Y[x*128 + 64*w + i, j] = b[i,j]\n  }\n}\n",
        from[i], from[i]);
    const char *t = emit(f, source);
    bool whole = strcmp(from[i], "4 + "), blocks = whole && strcmp(from[i], "8 + ");
    (whole ? has : lacks)(t, "sc_ldmatrix(sc_at");
    (whole ? has : lacks)(t, "sc_stmatrix(sc_at");
    // the blocks of a panel have the lane's part of the address in common
    (blocks ? has : lacks)(t, "sc_ldmatrix(sc_at_lane<128, 128>(smem + r_stage, ");
    (blocks ? has : lacks)(t, "sc_stmatrix(sc_at_lane<128, 64>(smem + ");
    (blocks ? has : lacks)(t, "= sc_here(32 * warp + lane);");
    has(t, "sc_pairs_f16(");  // what is more than a tile of a stage is read in pairs, …
    (whole ? lacks : has)(t, "sc_of_f16(sc_lds16(");  // … from odd places one by one
  }
}

// In a loop the lane's part of such an address may wait in a register, so it is not worked out
// anew.
static void fragments_in_loops(void **state) {
  const char *t = emit(*state,
                       "kernel k {\n  in X : f16[M, 64]\n  out Y : f16[64, 64]\n"
                       "  ring r : f16[64, 64]\n"
                       "  role load : 1 warp, 24 regs { for t in 0 .. M/64 { r <- X[t*64..] } }\n"
                       "  role math : 1 warpgroup, 128 regs {\n    reg a : f16[64, 64] = 0\n"
                       "    for t in 0 .. M/64 { wait r;  a[i,j] = r[i,j];  release r }\n"
                       "    Y[i,j] = a[i,j]\n  }\n}\n");
  has(t, "sc_ldmatrix(sc_at_lane<128, 64>(smem + r_stage, 16 * warp + (lane & 15), ");
  lacks(t, "sc_here(");
}

// What is added along a tensor's rows has addresses that differ by constants.
static void added_to_rows(void **state) {
  const char *t =
      emit(*state,
           "kernel k {\n  in X : f32[M, 60]\n  inout Y : f32[M, 60]\n  grid (x : cdiv(M, 64))\n"
           "  role r : 1 warpgroup, 128 regs {\n    reg a : f32[64, 64]\n"
           "    a[i,j] = X[x*64 + i, j]\n    Y[x*64 + i, j] += a[i,j]\n  }\n}\n");
  has(t, "float *row_out = args.Y + row * Y_stride_0 + col0;");
  has(t, "if (row < args.M && col0 + sc_col(e) < 60) sc_add(row_out + sc_col(e), a[e]);");
  has(t,
      "if (row < args.M && col0 + sc_col(e + 1) < 60) sc_add(row_out + sc_col(e + 1), a[e + 1]);");
}

// Two kernels that pass tiles on in a workspace.
static const char *passing(Fixture *f, const char *shape, const char *adds, const char *reads) {
  const char *source =
      sc_printf(&f->sc,
                "kernel one {\n  in X : f32[M, 64]\n  inout W : f32[%s]\n  grid (x : cdiv(M, 64))\n"
                "  role r[w] : 2 warpgroups, 128 regs {\n    reg a : f32[64, 32]\n"
                "    a[i,j] = X[x*64 + i, 32*w + j]\n    %s\n  }\n}\n"
                "kernel two {\n  in W : f32[%s]\n  out Y : f32[M, 64]\n  grid (x : cdiv(M, 64))\n"
                "  role r : 1 warpgroup, 128 regs {\n    ring s : f32[64, 64]\n    reg b : f32[64, "
                "64]\n    %s\n"
                "    Y[x*64 + i, j] = b[i,j] * 2\n  }\n}\n"
                "sequence both {\n  workspace W : f32[%s] = 0\n  one\n  two\n}\n",
                shape, adds, shape, reads, shape);
  return emit(f, source);
}

// A workspace that threads alone see is kept in the order of accumulators: four elements of a
// thread side by side.
static void blocked_workspaces(void **state) {
  static const char tiles[] = "cdiv(M, 64), 64, 64", tall[] = "cdiv(M, 64), 128, 64";
  static const char adds[] = "W[x, i, 32*w + j] += a[i,j]", reads[] = "b[i,j] = W[x, i, j] + 1";
  const char *t = passing(*state, tiles, adds, reads);
  // The address of what is added is worked out there, not between products before it.
  has(t, "float *out = args.W + 4 * sc_here(thread) + x_tile * W_stride_0 + 32 * instance * 64;");
  has(t, "sc_add4(out + 512 * n, a + 4 * n);");
  has(t, "sc_load4(args.W + 4 * thread + x_tile * W_stride_0 + 512 * n, four);");
  has(t, "b_[e] = four[e & 3] + 1.0f;");
  t = passing(*state, tall, "W[x, 64*w + i, j] = a[i,j] * 3", "b[i,j] = W[x, 64 + i, j]");
  has(t, "float *out = args.W + 4 * thread + x_tile * W_stride_0 + 64 * instance * 64ll;");
  has(t, "x[e] = a[e] * 3.0f;");
  has(t, "sc_store4(out + 512 * n, x + 4 * n);");
  has(t, "+ 64 * 64ll + 512 * n, four);");
  // Elsewhere in it, elements are found one by one.
  t = passing(*state, tall, "W[x, 8*w + i, j] += a[i,j]", "b[i,j] = W[x, i, j]");
  has(t, "sc_add(&args.W[sc_block_at<64>(8 * instance + row0 + 8 * sc_row(e), col0 + sc_col(e)) +");
  // Rows, where the copy engine takes part, where the last dimensions are no whole tiles, and
  // outside of a sequence.
  lacks(passing(*state, tiles, adds, "s <- W[x];  wait s;  b[i,j] = s[i,j];  release s"),
        "sc_add4");
  lacks(passing(*state, "cdiv(M, 64), 64, 60", adds, reads), "sc_add4");
  lacks(passing(*state, "cdiv(M, 64), 60, 64", adds, reads), "sc_add4");
  lacks(passing(*state, "cdiv(M, 64), 64, M", adds, reads), "sc_add4");
}

// What a partial vector's parts add up to is found once for statements that follow each other, and
// anew once the vector may be another: after it is written, and in a loop.
static void sums_of_parts(void **state) {
  static const struct {
    const char *body;
    u32 sums;
  } row[] = {
      {"Y[x*64 + i] = l[i];  Z[x*64 + i] = l[i] * 2", 1},
      {"Y[x*64 + i] = l[i];  l[i] = l[i] * 3;  Z[x*64 + i] = l[i]", 2},
      {"Y[x*64 + i] = l[i];  for t in 0 .. 2 { Z[x*64 + i] = l[i];  l[i] = l[i] * 3 }", 2},
      {"if M > 64 { Y[x*64 + i] = l[i] }\n Z[x*64 + i] = l[i]", 2},
  };
  for (u32 i = 0; i < COUNT(row); i++) {
    Fixture *f = *state;
    char source[512];
    snprintf(
        source, sizeof source,
        "kernel k {\n  in X : f32[M, 64]\n  out Y, Z : f32[M]\n  grid (x : cdiv(M, 64))\n"
        "  role r : 1 warpgroup, 128 regs {\n    reg s : f32[64, 64], l : f32[64] = 0 partial\n"
        "    s[i,j] = X[x*64 + i, j]\n    l[i] = sum(j) s[i,j]\n    %s\n  }\n}\n",
        row[i].body);
    const char *t = emit(f, source);
    u32 n = count(t, "[2] = {sc_quad_sum(l[0]), sc_quad_sum(l[1])};");
    if (n != row[i].sums) fail_msg("%u sums, not %u, in\n%s", n, row[i].sums, t);
  }
}

// A statement that changes some columns of a tile, or adds some up, goes over those; if a number is
// not of whole groups of eight, or the rest changes, too, over all.
static void some_columns(void **state) {
  static const struct {
    const char *body, *loop;
  } row[] = {
      {"s[i,j] = where(j < 24, exp2(s[i,j]), s[i,j])",
       "for (int e = 0; e < 12; e++) s[e] = sc_exp2(s[e]);"},
      {"s[i,j] = where(24 <= j, exp2(s[i,j]), s[i,j])",
       "for (int e = 12; e < 32; e++) s[e] = sc_exp2(s[e]);"},
      {"s[i,j] = where(j >= 8 and j < 48, exp2(s[i,j]), s[i,j])",
       "for (int e = 4; e < 24; e++) s[e] = sc_exp2(s[e]);"},
      {"l[i] = sum(j) where(16 <= j and j < 32, s[i,j], 0)",
       "for (int e = 8; e < 16; e++) sum_j[sc_row(e)] += s[e];"},
      {"s[i,j] = where(j < 23, exp2(s[i,j]), s[i,j])",
       "for (int e = 0; e < 32; e++) s[e] = sc_col(e) <"},
      {"s[i,j] = where(j < 24, s[i,j], exp2(s[i,j]))",
       "for (int e = 0; e < 32; e++) s[e] = sc_col(e) <"},
      {"s[i,j] = where(j < 24, exp2(s[i,j]), 2 * s[i,j])",
       "for (int e = 0; e < 32; e++) s[e] = sc_col(e) <"},
      {"s[i,j] = where(i < 24, exp2(s[i,j]), s[i,j])",
       "for (int e = 0; e < 32; e++) s[e] = row0 + 8 * sc_row(e) < 24 ?"},
      {"l[i] = sum(j) where(j < 24, s[i,j], 1)",
       "for (int e = 0; e < 32; e++) sum_j[sc_row(e)] += sc_col(e) <"},
      {"l[i] = max(j) where(j < 24, s[i,j], 0)", "for (int e = 0; e < 32; e++) max_j["},
  };
  for (u32 i = 0; i < COUNT(row); i++) {
    char source[512];
    snprintf(source, sizeof source,
             "kernel k {\n  in X : f32[M, 64]\n  out Y : f32[M, 64], Z : f32[M]\n  grid (x : "
             "cdiv(M, 64))\n"
             "  role r : 1 warpgroup, 128 regs {\n    reg s : f32[64, 64], l : f32[64] = 0\n    "
             "s[i,j] = X[x*64 + i, j]\n"
             "    %s\n    Y[x*64 + i, j] = s[i,j]\n    Z[x*64 + i] = l[i]\n  }\n}\n",
             row[i].body);
    has(emit(*state, source), row[i].loop);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(columns_past_the_end),
                                     TEST(inside_by_their_form),
                                     TEST(rows_of_tensors),
                                     TEST(pairs_along_columns),
                                     TEST(joins_unroll),
                                     TEST(bytes_from_pairs),
                                     TEST(fragments),
                                     TEST(fragments_in_loops),
                                     TEST(added_to_rows),
                                     TEST(blocked_workspaces),
                                     TEST(sums_of_parts),
                                     TEST(some_columns)};
  return cmocka_run_group_tests_name("elements", tests, NULL, NULL);
}
