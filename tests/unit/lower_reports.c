// What lowering refuses, one mistake a row: exactly one report, with exactly this text. (tests/bad
// has a pair for each code, with places, notes and help; this has a row for each way to get there.)
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "compiler/passes.h"

typedef struct Row {
  const char *items, *body;  // of the kernel, of its role
  const char *text;          // "": it is accepted
} Row;

static bool is_right(const char *source, const char *want) {
  Sc sc;
  jmp_buf out;
  sc_init(&sc, NULL);
  sc.unwind = &out;
  if (setjmp(out)) fail_msg("unwound");
  Text *t = sc_text(&sc, "t.sched", source, strlen(source));
  sc.text = t;
  Ast *ast = sc_parse(&sc, t);
  if (ast && !sc.errors) sc_lower(&sc, ast, NULL);
  const char *have = sc.diags ? sc.diags->text : "";
  bool right = !strcmp(have, want) && !(sc.diags && sc.diags->next);
  if (!right) {
    Str s = {.sc = &sc};
    for (const Diag *d = sc.diags; d; d = d->next) sc_diag_text(&s, t, d);
    print_error("wanted: %s\ngot:\n%s\n", want, s.at ? s.at : "nothing");
  }
  sc_free(&sc);
  return right;
}

static void check_rows(const Row *row, size_t n) {
  static char text[8192];
  u32 wrong = 0;
  for (size_t i = 0; i < n; i++) {
    snprintf(
        text, sizeof text,
        "kernel k {\n  in A : f16[M, N], cu : i32[B + 1], E : f16[M, N, 8, 8, 8, 8]\n"
        "  in alpha : f32 = 2\n  inout O : f32[M]\n  inout S : f32[M, 64], H : f16[M, 64]\n"
        "  grid (x : cdiv(M, 64), b : B) cluster (x : 2)\n  %s\n"
        "  role all[w] : 1 warpgroup {\n    reg s : f32[64], t : f32[64, 64], p : f16[64, 64]\n"
        "    %s\n  }\n}\n",
        row[i].items, row[i].body);
    wrong += !is_right(text, row[i].text);
  }
  assert_int_equal(wrong, 0);
}

#define OTHERS "S[i,j] = 1;  H[i,j] = 1 }"
#define RING "ring r : f16[64, 64]\n"
#define OTHER_ROWS "this statement does not run over the 64 rows that were voted on"
#define FILL "acquire r;  r <- A[x*64.., 0..];  commit r;  wait r\n"

#define SLOW                                                                                  \
  "this product has no 'async': each warp makes its part alone, several times slower than a " \
  "warpgroup together"

static const Row declared[] = {
    {"in Z : half[M]", "", "'half' is not declared"},
    {"in Z : M[M]", "", "'M' is a value, not an element type"},
    {"in Z : f32[2, 2, 2, 2, 2, 2, 2]", "", "at most 6 dimensions are possible, and these are 7"},
    {"out Z : f32", "", "'Z' has no dimensions: only 'in' scalars are possible"},
    {"in Z : f16", "", "a scalar is f32 or i32"},
    {"in Z : i32 = 1.5", "", "an integer is needed here, and this is a real"},
    {"in n : i32\n  in Z : f32[n]", "", ""},
    {"in Z : f32[0 - 4]", "", "this dimension is -4"},
    {"in Z : f32[4] = 3", "", "only scalars have defaults"},
    {"in Z : f32[alpha]", "", "an integer is needed here, and this is a real"},
    {"ring r : f32[1000000, 1000]", "", "this tile is larger than any memory on the chip"},
    {"ring r : f32", "", "a tile has at least one dimension"},
    {"ring r : f32[64] * 65", "", "the number of stages is 65: it must be from 1 to 64"},
    {"ring r : { a : f32[64], a : f32[64] }", "", "'a' is declared twice"},
    {"", "reg z : f32[4, 4, 4]", "a register tile has one or two dimensions"},
    {"", "reg z : f32[4, 4] partial",
     "'partial' is for f32 vectors: a part of each element for each lane of a quad"},
    {"grid (y : M)", "", "a kernel has one grid"},
    {"role more : 33 warps { }", "", "the number of instances is 33: it must be from 1 to 32"},
    {"role more : 1 warp, 30 regs { }", "",
     "registers of a thread are given in multiples of 8, and this is 30"},
    {"turn t : O", "", "a turn passes over roles or a grid index, and 'O' is a tensor"},
    {"turn t : nobody", "", "'nobody' is not declared"},
    {"turn t : all, x", "", "a turn passes over roles, or over one grid index"},
    {"turn t[y : 3] : all", "", "only turns over CTAs have keys"},
    {"turn t : all if M > 3", "", "whether there is a turn must be known at compile time"},
    {"ring r : f32[64] if M > 3", "acquire r",
     "whether there is a ring must be known at compile time"},
    {"role more : 1 warp if M > 3 { }\n  turn t : all, more", "",
     "whether there is a role must be known at compile time"},
    {"ring r : f32[64] if 3", "", "a truth is needed here, and this is an integer"},
    {"ring r, r2 : f32[64] if 1 > 2", "wait r2",
     "the ring 'r2' is not there: its guard '1 > 2' is false"},
    {"ring r : { a : f32[64] } if 1 > 2", "r.a[i] = 0",
     "the ring 'r' is not there: its guard '1 > 2' is false"},
    {"ring r : f32[0 - 3] if (1 >\n 2)", "wait r;  s[i] = r[i];  release r",
     "the ring 'r' is not there: its guard '(1 > …' is false"},
    {"require x > 3", "", "'x' is not declared"},
    {"work x", "", "'x' is not declared"},
    {"work cu[0]", "", "work is counted from params, dimensions and scalars"},
    {"work 1.5", "", "an integer is needed here, and this is a real"},
    {"work M\n  work 2 * M", "", "'k' has said its work already"},
    {"work M * M", "", ""},
    {"require cu[0] > 3", "", "a requirement is about params, dimensions and scalars"},
    {"case c { M = 0 - 1 }", "", "a dimension is an integer from 0"},
    {"case c { M = 1.5 }", "", "a dimension is an integer from 0"},
    {"case c { cu = 3 }", "", "the elements of a tensor are given as [a, b, …]"},
    {"case c { M = [3] }", "",
     "[a, b, …] is for tensors: a choice of values is written in { a, b, … }"},
    {"case c { M = 3 }\n  case c { M = 4 }", "", "there are two cases 'c'"},
    {"param P = 3 + M", "", "'M' is not declared"},
    {"param P = sqrt(2.0) in { 1 + 0.5, abs(-sqrt(2.0)) }", "", ""},
    {"param P = 2 * sqrt(4.0) in { exp(0.0) * 4, log2(exp2(8.0)) / 2, tanh(0.0) + 3 }", "", ""},
    {"let v[i] = 3", "", "a vector belongs to a role: nobody holds it here"},
    {"def f(a, a) = a", "", "'a' is declared twice"},
    {"let E5 = T == f16 ? 1 : 2", "", "'T' is not declared"},
    {"param T = f16, U = T == e4m3 ? f32 : T\n  ring r : U[64, 64]", "", ""},
    {"param T = f16\n  let v = T == 3 ? 1 : 2", "", "an element type is needed here"},
    {"let v = f16 + 1", "", "'f16' is an element type, not a value"},
};

static void declarations(void **state) {
  (void)state;
  check_rows(declared, COUNT(declared));
}

static void expressions(void **state) {
  (void)state;
  static const Row row[] = {
      {"", "s[i] = exp(1, 2)", "'exp' takes 1 argument, not 2"},
      {"", "s[i] = where(true, 1)", "'where' takes 3 arguments, not 2"},
      {"", "s[i] = frob(1)", "'frob' is not declared"},
      {"", "s[i] = alpha(1)", "'alpha' is a value, not a def or function"},
      {"def f(a) { s[i] = a }", "s[i] = f(1)", "'f' is a block of statements, not a value"},
      {"def f(a) = a", "f(1)", "'f' is a value, not a block of statements"},
      {"def f(a) = a", "s[i] = f", "'f' is a def, not a value"},
      {"", "s[i] = all", "'all' is a role, not a value"},
      {"", "s[i] = sum(w) t[i,w]", "'w' is a value here, it cannot be reduced over"},
      {"", "t[i,j] = sum(j) t[i,j]", "'j' is an index of this statement already"},
      {"", "let v = sum(j) j", "a reduction stands in element-wise statements only"},
      {"", "s[i] = t[i,j] @ t[j,i] + 1", "a product stands alone on the right of its statement"},
      {"", "s[i] = sum(a) sum(b1) sum(c) sum(d) sum(e) sum(f) sum(g) sum(h) a",
       "a statement has at most 8 indices, its reductions' counted"},
      {"", "if s { }", "'s' is a register tile, not a value"},
      {"", "let v[i] = s[i]\n    if v[0] > 0 { }",
       "an element of 'v' is not a value that all see alike"},
      {"", "s[i] = w == 0 ? 1 : 0", ""},
      {"", "s[i] = where((w == 0) == (x > 3), 1, 0) + where((w == 0) != (x > 3), 2, 3)", ""},
      {"", "s[i] = where(w == 0 ? x == 1 : x == 2, 1, 0)", ""},
      {"", "s[i] = s.part", "'s' is a register tile: it has no parts"},
      {"", "s[i] = t[i, i]", "the index 'i' stands in two positions"},
      {"", "s[i] = t[i..]", "'t' has 2 dimensions, not 1"},
      {"", "s[i] = t[i, 0..]", "a slice stands in copies only"},
      {"", "s[i] = alpha[i]", "'alpha' is a value: it has no elements"},
      {"", "s[i] = nobody[i]", "'nobody' is not declared"},
      {"", "s[i] = -true", "a number is needed here, and this is a truth"},
      {"", "s[i] = not 1", "a truth is needed here, and this is an integer"},
      {"", "let v = S[0, 0]", "an element of 'S' is not a value that all see alike"},
      {"def f(v, k) = sum(k) v[0, k]", "s[i] = f(t, j)",
       "a register tile is indexed by plain indices"},
      {"def f(v, r, k) = sum(k) v[r, k]", "s[i] = f(t, i, j)", ""},
      {"def big(c) = c * 2", "s[i] = big(inf) + big(f16 == f16 ? 1 : 2)", ""},
  };
  check_rows(row, COUNT(row));
}

static void assignments(void **state) {
  (void)state;
  static const Row row[] = {
      {"", "s = 3", "the left side has no indices"},
      {"", "t[i,i] = 3", "the index 'i' stands in two positions"},
      {"", "S[i,i] = s[i]", "the index 'i' stands twice on the left"},
      {"", "s[i] = 3 if x > 2", "only stores to tensors take a condition"},
      {"", "O[x*64 + i] = s[i] if s[i] > 2", ""},
      {"", "s[i] = 1\n    s[i] += s[i]", ""},
      {RING, "acquire r;  r[i,j] += t[i,j];  commit r;  wait r;  release r",
       "the stage of 'r' that is being filled has no value yet"},
      {"", "H[x*64 + i, j] += t[i,j]", "adding into a tensor needs f32 elements, and 'H' has f16"},
      {"", "async s[i] = 3", "'async' stands before products only"},
      {"", "reg n : i32[64]\n    n[i] = 1.5", "an i32 holds integers, and this is a real"},
      {"", "reg n : i32[64]\n    n[i] = i\n    s[i] = n[i] / 2 + 1.5",
       "an integer quotient is used as a real: it is rounded down first"},
      {"", "let w2[x] = 1", "'x' is a value here, not an index"},
      {"", "let v[i, i] = 1", "the left side names distinct plain indices"},
      {"", "vote any(sum(j) t[i,j] > 0) { }", "a vote's condition has no reduction"},
      {"", "vote any(x > 0) { }", "a vote is about rows, and no index stands here"},
      {"", "reg z : f32[128]\n    z[i] = 0\n    vote any(z[i] > 0) { vote any(z[i] > 1) { } }",
       "a vote in another one's block is on 64 rows at most, 16 of each warp; these are 128"},
      {"", "reg z : f32[32] = 0\nvote any(s[i] > 0) { vote any(z[i] > 1) { } }", OTHER_ROWS},
      {"", "vote any(s[i] > 0) { let v[j] = p[0 + j, j] }",
       "the index 'j' stands in two positions"},
      {"", "reg z : f32[32]\n    vote any(s[i] > 0) { z[i] = 1 }", OTHER_ROWS},
      {"", "for i in s[0] .. 3 { }", "an element of 's' is not a value that all see alike"},
      {"", "for i in 0 .. 1.5 { }", "an integer is needed here, and this is a real"},
      {"", "acquire s", "'s' is a register tile: a ring or turn is needed here"},
      {"", "commit s", "'s' is a register tile: a ring is needed here"},
      {"", "wait alpha",
       "'alpha' is a value: a ring, a product's register tile or a tensor is needed here"},
      {"", "wait A", "nothing is copied out to 'A', an input"},
      {RING, "wait r keep 1", "'keep' stands with copies out and products, not with rings"},
      {"", "wait nobody", "'nobody' is not declared"},
      {"turn t2[y : 2] : x", "acquire t2", "the turn 't2' is one for each key: t2[…]"},
      {"turn t2[y : 2] : x", "acquire t2[w];  release t2[0]",
       "the key of a turn must be the same for all that take it"},
      {"", "if x > 1 { ring z : f32[64] }", "a ring is declared in the kernel, or first in a role"},
  };
  check_rows(row, COUNT(row));
}

static void specifications(void **state) {
  (void)state;
  static const Row row[] = {
      {"spec { O[i] = 1;  S[i,j] = 1;  H[i,j] = 1;  O.x[i] = 1 }", "",
       "an equation defines an output or a name of its own"},
      {"spec { O[i] = 1;  S[i,j] = S[i,j];  H[i,j] = 1;  O[i] = 2 }", "",
       "'O' has an equation already"},
      {"spec { O[0] = 1;  S[i,j] = 1;  H[i,j] = 1 }", "",
       "an equation says every element: the left side names plain indices"},
      {"spec { O[i] = 1;  S[i,j] = 1;  H[i,j] = 1;  alpha[i] = O[i] }", "",
       "'alpha' is a value already"},
      {"out P : f32[M]\n spec { O[i] = P[i]; P[i] = 1; " OTHERS, "", "'P' has no value yet"},
      {"spec { Z[i] = 1;  Y[i] = Z[i];  O[i] = 1;  S[i,j] = 1;  H[i,j] = 1 }", "",
       "nothing says how far the index 'i' runs"},
      {"spec { Z[i] = 1;  O[i] = Z[i];  S[i,j] = 1;  H[i,j] = 1 }", "", ""},
      {"spec { Z[i] = 1;  O[i] = 1;  S[i,j] = 1;  H[i,j] = 1 }", "", ""},
      {"spec { O[i] = sum(j) A[i,j] * x;  S[i,j] = 1;  H[i,j] = 1 }", "", "'x' is not declared"},
      {"spec { O[i] = A[cu[0], 2*i] + cu[i/2];  S[i,j] = 1;  H[i,j] = 1 }", "", ""},
  };
  check_rows(row, COUNT(row));
}

#define PREFIX "sum(k) where(k <= i, A[k,0], 0);  "
#define COUNTED(name) \
  "the tolerance counts the sum '" name "' as rounded to f16, and it feeds an exponential"

static void stated_types(void **state) {
  (void)state;
  static const Row row[] = {
      {"param T = bf16\n spec { Z : T[i] = A[i,0];  O[i] = Z[i];  " OTHERS, "", ""},
      {"spec { Z : i32[i] = A[i,0];  O[i] = Z[i];  " OTHERS, "",
       "an intermediate holds reals, not i32"},
      {"spec { Z : half[i] = A[i,0];  O[i] = Z[i];  " OTHERS, "", "'half' is not declared"},
      {"spec { O : f32[i] = A[i,0];  " OTHERS, "",
       "'O' is an output, and its type is declared already"},
      {"spec { Z : f32 = 1;  O[i] = A[i,0];  " OTHERS, "", "the left side has no indices"},
      {"spec { Z : f32[0] = 1;  O[i] = A[i,0];  " OTHERS, "",
       "the left side names distinct plain indices"},
  };
  check_rows(row, COUNT(row));
}

static void sums_in_exponents(void **state) {
  (void)state;
  static const Row row[] = {
      {"spec { Z[i] = " PREFIX "O[i] = exp(Z[i] - Z[0]);  " OTHERS, "", COUNTED("Z")},
      {"spec { Z[i] = sum(j) A[i,j];  O[i] = 1 + exp2(-2 * Z[i]);  " OTHERS, "", COUNTED("Z")},
      {"spec { Z[i] = sum(j) A[i,j];  O[i] = sum(j) where(j < 3, A[i,j] * exp(Z[i]), 0);  " OTHERS,
       "", COUNTED("Z")},
      {"spec { Z[i] = " PREFIX "Y : f32[i] = Z[i] + A[i,0];  O[i] = exp(Y[i]);  " OTHERS, "",
       COUNTED("Z")},
      {"spec { Z : f32[i] = " PREFIX "Y[i] = Z[i] + A[i,0];  O[i] = exp(Y[i]);  " OTHERS, "",
       COUNTED("Y")},
      {"spec { Z : f32[i] = " PREFIX "O[i] = exp(Z[i]);  " OTHERS, "", ""},
      {"spec { Z : f16[i] = " PREFIX "O[i] = exp(Z[i]);  " OTHERS, "", ""},
      // What is no sum; what is none of reals; an output, which is rounded to its own type.
      {"spec { Z[i] = 2 * A[i,0];  O[i] = exp(Z[i]);  " OTHERS, "", ""},
      {"spec { Z[i] = sum(b) where(cu[b] <= i, 1, 0);  O[i] = exp(Z[i]);  " OTHERS, "", ""},
      {"spec { H[i,j] = sum(d) A[i,d];  O[i] = exp(H[i,0]);  S[i,j] = 1 }", "", ""},
      {"spec { Z[i] = sum(j) A[i,j];  O[i] = exp(where(Z[i] > 0, 1, 2));  " OTHERS, "", ""},
      // A softmax, with the largest and with the sum's logarithm subtracted.
      {"spec { P[i,j] = sum(k) A[i,k] * A[j,k];  X[i] = max(j) P[i,j];  "
       "Z[i] = sum(j) exp(P[i,j] - X[i]);  Y[i] = X[i] + log(Z[i]);  "
       "O[i] = sum(j) exp(P[i,j] - Y[i]) * A[j,0];  " OTHERS,
       "", ""},
      {"spec { P[i,j] = sum(k) A[i,k] * A[j,k];  Q : f32[i,j] = P[i,j] + 1;  "
       "X[i] = max(j) Q[i,j];  O[i] = sum(j) exp(P[i,j] - X[i]) * A[j,0];  " OTHERS,
       "", ""},
      {"spec { P[i,j] = sum(k) A[i,k] * A[j,k];  X[i] = max(j) A[i,j];  "
       "O[i] = sum(j) exp(P[i,j] - X[i]) * A[j,0];  " OTHERS,
       "", COUNTED("P")},
      // Logarithms, and functions that are bounded.
      {"spec { Z[i] = sum(j) A[i,j];  O[i] = exp(2 * log(Z[i]) + tanh(Z[i]));  " OTHERS, "", ""},
      {"spec { Z[i] = sum(j) A[i,j];  O[i] = Z[i] / (1 + exp(-Z[i]));  " OTHERS, "", ""},
      {"spec { Z[i] = sum(j) A[i,j];  O[i] = Z[i] / (exp(-Z[i]) + 1.0);  " OTHERS, "", ""},
      {"spec { Z[i] = sum(j) A[i,j];  O[i] = 1 / (exp(-Z[i]) + (0 - 1));  " OTHERS, "",
       COUNTED("Z")},
      {"spec { Z[i] = sum(j) A[i,j];  O[i] = exp(Z[i]) / (1 + exp(Z[i]));  " OTHERS, "",
       COUNTED("Z")},
  };
  check_rows(row, COUNT(row));
}

// An index that a value is added to gives no extent where the value is 0, if anything else does.
static void extents_of_slices(void **state) {
  (void)state;
  static const Row row[] = {
      {"", "reg q : f32[64, 32] = 0\n    for h in 0 .. 2 { t[i,j + 32*h] = q[i,j] }", ""},
      {"", "reg q : f32[64, 32] = 0\n    for h in 0 .. 2 { q[i,j] = t[i,j + 32*h] }", ""},
      {"param h = 0", "reg q : f32[64, 32] = 0\n    q[i,j] = t[i,h + j]", ""},
      {"param h = 0", "t[i,h + j] = 0", ""},
      {"", "reg q : f32[64, 32] = 0\n    q[i,j] = t[i,j]",
       "the index 'j' runs over 32 in 'q', but over 64 in 't'"},
      {"", "reg q : f32[64, 32] = 0\n    q[i,j] = t[i,j + 0] + t[i,j]",
       "the index 'j' runs over 32 in 'q', but over 64 in 't'"},
      {RING, FILL "p[i,j] = r[i,j + 0]\n    release r", ""},
  };
  check_rows(row, COUNT(row));
}

static void copies(void **state) {
  (void)state;
  static const Row row[] = {
      {RING, "r <- A[i.., 0..]", "'i' is not declared"},
      {RING, "r <- A[x.., 0.., 0..]", "'A' has 2 dimensions, not 3"},
      {RING, "r <- A[x, 0..]", "1 of the dimensions of 'A' is sliced, and a stage of 'r' has 2"},
      {RING, "r <- E[0.., 0.., 0, 0, 0, 0]",
       "the copy engine reads along the last dimension of 'E', which is no slice here"},
      {RING, "r <- E[0.., 0, 0, 0, 0, 0..]",
       "'E' has 6 dimensions: the copy engine knows at most 5"},
      {"ring r : f16[64, 4]", "r <- A[0.., 0..]",
       "the last dimension of 'r' has 8 bytes: the copy engine needs a multiple of 16"},
      {"ring r : f32[64, 64]", "r <- A[0.., 0..]",
       "a copy does not convert: 'A' has f16, 'r' has f32"},
      {RING, "r <- t", "a copy is between a ring and a tensor, and 't' is neither"},
      {RING "ring q : f16[64, 64]", "r <- q",
       "a copy is between a ring and a tensor, and 'q' is no tensor"},
      {"", "t <- A[0.., 0..]", "a copy is between a ring and a tensor, and there is no ring here"},
      {"out Z : f16[M, N]\n  " RING, "r <- Z[0.., 0..]", "'Z' is an output: it cannot be read"},
      {RING, FILL "A[0.., 0..] <- r\n    release r", "'A' is an input: it cannot be written"},
      {RING, "r <- A[x*64.., 0..] multicast\n    wait r;  release r",
       "a multicast slice must be the same in all CTAs of the cluster"},
      {RING, "r <- A[x/2*64.., 0..] multicast\n    wait r;  release r", ""},
      {"in I : i32[9]\n  " RING, "r <- A[I[x].., 0..] multicast\n    wait r;  release r",
       "a multicast slice must be the same in all CTAs of the cluster"},
      {"in I : i32[9]\n  " RING, "r <- A[I[x/2].., 0..] multicast\n    wait r;  release r", ""},
      {"inout Z : e4m3[M, N]\n  ring r : e4m3[64, 64]",
       "r <- Z[0.., 0..]\n    wait r;  Z[0.., 0..] += r\n    wait Z read;  release r",
       "the copy engine adds no elements of 8 bits, as 'Z' has"},
      {"inout Z : i32[M, N]\n  ring r : i32[64, 64]",
       "r <- Z[0.., 0..]\n    wait r;  Z[0.., 0..] += r\n    wait Z read;  release r", ""},
      {"ring v : f16[64]", "v <- A[x/2, 0..] multicast\n    wait v;  release v",
       "a stage of 1 row cannot be shared evenly by the cluster's 2 CTAs"},
      {RING, "r.a <- A[0.., 0..]", "the ring 'r' has no part 'a'"},
      {"ring r : { a : f16[64, 64], b : f16[64, 64] }", "r <- A[0.., 0..]",
       "'r' is a ring of several parts"},
      {RING "ring q : f16[64, 64]", FILL "s[i] = sum(j) q[i,j]\n    release r",
       "the role 'all' holds no stage of 'q'"},
      {RING "def load(part) { acquire r;  part <- A[0.., 0..];  commit r }",
       "load(r);  wait r;  release r", ""},
  };
  check_rows(row, COUNT(row));
}

// A fill that brings nothing is doubtful where others bring what is read; a mere signal is none.
static void empty_fills(void **state) {
  (void)state;
  static const Row row[] = {
      {RING,
       "r <- A[0.., 0..]\n    wait r;  p[i,j] = r[i,j];  release r\n    acquire r;  commit r\n    "
       "wait r;  release r",
       "this fill of 'r' brings nothing"},
      {RING,
       "acquire r\n    r[i,j] = p[i,j]\n    commit r\n    wait r;  p[i,j] = r[i,j];  release r",
       ""},
      {RING,
       "acquire r\n    if x > 0 { r <- A[0.., 0..] }\n    commit r\n    wait r;  p[i,j] = r[i,j];  "
       "release r",
       ""},
      {RING, "acquire r;  commit r\n    wait r;  release r", ""},
      {RING "role one : 1 warp { r <- A[0.., 0..]\n wait r;  release r }",
       "acquire r;  commit r\n    wait r;  p[i,j] = r[i,j];  release r", ""},
  };
  check_rows(row, COUNT(row));
}

static void products(void **state) {
  (void)state;
  static const Row row[] = {
      {RING, FILL "async S[i,j] = r[i,k] @ r[j,k]\n    release r",
       "a product accumulates in a register tile of f32 with two dimensions"},
      {RING, FILL "async s[i] = r[i,k] @ r[j,k]\n    release r",
       "a product accumulates in a register tile of f32 with two dimensions"},
      {RING, FILL "async t[i,j] = exp(1) @ r[j,k]\n    release r",
       "the factors of a product are tiles: a[i, k] @ b[k, j]"},
      {RING, FILL "async t[i,j] = r[i,k] @ p[j,k]\n    release r",
       "the right factor is a held stage of a ring"},
      {RING, FILL "async t[i,j] = A[i,k] @ r[j,k]\n    release r",
       "the left factor is a register tile or a held stage of a ring"},
      {RING "ring q : f32[64, 64]", FILL "async t[i,j] = q[i,k] @ r[j,k]\n    release r",
       "factors of a product are f16, bf16, e4m3 or e5m2, and 'q' is f32"},
      {RING "ring q : bf16[64, 64]", FILL "async t[i,j] = q[i,k] @ r[j,k]\n    release r",
       "the factors have different types: bf16 and f16"},
      {RING, FILL "async t[i,j] = p[k,i] @ r[j,k]\n    release r",
       "a register tile as left factor is read as it lies: [row, contracted index]"},
      {RING, FILL "async t[i,j] = r[i,j] @ r[i,j]\n    release r",
       "a product contracts one index that is missing on the left"},
      {RING, FILL "async t[i,j] = r[i,k] @ r[j,l]\n    release r",
       "a product contracts one index, and here are more"},
      {RING, FILL "async t[i,j] = r[i,k] @ r[j,k] if x > 0\n    release r",
       "a product takes no condition"},
      {"ring r : f16[512, 64]",
       "reg z : f32[64, 512]\n    acquire r;  commit r;  wait r\n    async z[i,j] = p[i,k] @ "
       "r[j,k]\n    wait z;  release r",
       "the index 'j' of this product runs over 512: it must be a multiple of 8, at most 256"},
      {RING "role one : 1 warp { reg z : f32[64, 64]\n wait r\n async z[i,j] = r[i,k] @ r[j,k]\n "
            "wait z;  release r }",
       "r <- A[0.., 0..]", "an async product needs a warpgroup, and this role is one warp"},
      {RING, FILL "t[i,j] = r[i,k] @ r[j,k]\n    release r", SLOW},
      // Where warps are meant, or are what there is.
      {RING "role one : 1 warp { reg z : f32[64, 64]\n wait r\n z[i,j] = r[i,k] @ r[j,k]\n "
            "release r }",
       "r <- A[0.., 0..]", ""},
      {RING, FILL "vote any(s[i] > 0) { t[i,j] = r[i,k] @ r[j,k] }\n    release r", ""},
      {RING, FILL "if w > 0 { t[i,j] = r[i,k] @ r[j,k] }\n    release r", ""},
      {RING "ring q : f16[32, 64]",
       FILL "reg z : f32[32, 64]\n    acquire q;  q <- A[x*64.., 0..];  commit q;  wait q\n"
            "    z[i,j] = q[i,k] @ r[j,k]\n    release r, q",
       ""},
      {RING "ring q : f16[512, 64]",
       FILL "reg z : f32[64, 512]\n    acquire q;  q[i,j] = 1;  commit q;  wait q\n"
            "    z[i,j] = r[i,k] @ q[j,k]\n    release r, q",
       ""},
      {RING "ring q : f16[64, 128]",
       FILL "acquire q;  q[i,j] = 1;  commit q;  wait q\n"
            "    t[i,j] = q[i, 8 + k] @ r[j,k]\n    release r, q",
       ""},
      {RING "ring q : f16[64, 128]",
       FILL "acquire q;  q[i,j] = 1;  commit q;  wait q\n"
            "    t[i,j] = r[i,k] @ q[j, 8 + k]\n    release r, q",
       ""},
      {RING, FILL "async t[i, 8 + j] = r[i,k] @ r[j,k]\n    release r",
       "positions 8 to 71 of dimension 1 of 't' reach outside of its 64"},
  };
  check_rows(row, COUNT(row));
}

static void whole_files(void **state) {
  (void)state;
  static const char *const kernel =
      "kernel k {\n  in A : f32[M], s : f32\n  inout O : f32[M]\n  role r : 1 warp { reg v : "
      "f32[32]\n v[i] = A[i]\n O[i] = v[i] }\n}\n";
  static const struct {
    const char *more, *text;
  } row[] = {
      {"kernel k { }", "'k' is declared twice"},
      {"kernel empty { }", "the kernel 'empty' has no role"},
      {"kernel z { spec { }\n  spec { }\n  role r : 1 warp { } }", ""},
      {"sequence z { k\n  other }", "there is no kernel 'other'"},
      {"sequence z { }", "this sequence launches nothing"},
      {"sequence z { workspace A : f16[M]\n  k }",
       "'A' has another element type in another kernel of the sequence"},
      {"sequence z { workspace A : f32[M, M]\n  k }",
       "'A' has another rank in another kernel of the sequence"},
      {"sequence z { workspace A : f32[M] = 1\n  k }", "a workspace can be set to 0 only"},
      {"kernel j { in s : i32\n  role r : 1 warp { } }\nsequence z { k\n  j }",
       "'s' has another type in another kernel of the sequence"},
      {"kernel j { in s : f32 = 2\n  role r : 1 warp { } }\nsequence z { k\n  j }",
       "'s' has another default in another kernel of the sequence"},
      {"sequence z { given k }",
       "'k' is given, but 'A' is no input of the kernels that are launched"},
      {"sequence z { given k\n  k }",
       "'k' is given, but 'O' is no input of the kernels that are launched"},
      {"kernel j { in O, A : f32[M]\n  role r : 1 warp { } }\n"
       "sequence z { given k\n  j }",
       "'k' is given, but 's' is no input of the kernels that are launched"},
      {"kernel j { in O, A : f32[M], s : f32\n  role r : 1 warp { } }\n"
       "sequence z { workspace O : f32[M]\n  given k\n  j }",
       "'k' is given, but 'O' is no input of the kernels that are launched"},
      {"kernel j { in O, A : f32[M], s : f32\n  role r : 1 warp { } }\n"
       "sequence z { j\n  given k }",
       ""},
      {"sequence z { k\n  spec { O[i] = 2*A[i] }\n  case c { M = 4, s = 1.5 } }", ""},
  };
  static char text[4096];
  u32 wrong = 0;
  for (size_t i = 0; i < COUNT(row); i++) {
    snprintf(text, sizeof text, "%s%s\n", kernel, row[i].more);
    wrong += !is_right(text, row[i].text);
  }
  assert_int_equal(wrong, 0);
}

int main(void) {
  const struct CMUnitTest test[] = {
      cmocka_unit_test(declarations), cmocka_unit_test(expressions),
      cmocka_unit_test(assignments),  cmocka_unit_test(specifications),
      cmocka_unit_test(stated_types), cmocka_unit_test(sums_in_exponents),
      cmocka_unit_test(copies),       cmocka_unit_test(extents_of_slices),
      cmocka_unit_test(empty_fills),  cmocka_unit_test(products),
      cmocka_unit_test(whole_files),
  };
  return cmocka_run_group_tests(test, NULL, NULL);
}
