// Lowering, seen through the text form of what comes out, and the codes of what is refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "compiler/passes.h"

// One compilation. `code` lists the codes that were reported, each followed by a space.
typedef struct Run {
  Sc sc;
  jmp_buf out;
  Kernel *k;
  Str code, ir;
} Run;

static void lower(Run *r, const char *text, const Choice *choice) {
  sc_init(&r->sc, NULL);
  r->code = r->ir = (Str){.sc = &r->sc};
  r->k = NULL;
  r->sc.unwind = &r->out;
  if (setjmp(r->out)) fail_msg("unwound");
  Text *t = sc_text(&r->sc, "t.sched", text, strlen(text));
  r->sc.text = t;
  Ast *ast = sc_parse(&r->sc, t);
  if (ast && !r->sc.errors) r->k = sc_lower(&r->sc, ast, choice);
  str_puts(&r->code, "");
  for (const Diag *d = r->sc.diags; d; d = d->next)
    str_printf(&r->code, "%s ", sc_diag_code(d->id));
  if (!r->k) return;
  assert_null(sc_wellformed(&r->sc, r->k));
  sc_print_ir(&r->ir, r->k);
}

static void has(const Run *r, const char *part) {
  if (!r->k) fail_msg("refused: %s", r->code.at);
  if (!strstr(r->ir.at, part)) fail_msg("no '%s' in\n%s", part, r->ir.at);
}

static void has_not(const Run *r, const char *part) {
  if (!r->k) fail_msg("refused: %s", r->code.at);
  if (strstr(r->ir.at, part)) fail_msg("'%s' in\n%s", part, r->ir.at);
}

// A kernel of one warpgroup role with the given declarations and body.
static void role(Run *r, const char *items, const char *body) {
  static char text[4096];
  snprintf(text, sizeof text,
           "kernel k {\n  in A : f16[M, N], cu : i32[B + 1]\n  inout O : f32[M]\n  inout S : "
           "f32[M, 64]\n"
           "  grid (x : cdiv(M, 64), b : B)\n  %s\n  role all[w] : 1 warpgroup {\n    %s\n  }\n}\n",
           items, body);
  lower(r, text, NULL);
}

// A def may be the first to name a dimension, in its body or in what it is given: it is one all the
// same.
static void dimensions_of_defs(void **state) {
  (void)state;
  Run r;
  lower(&r,
        "kernel k {\n  def half(n) = n / 2 + P\n  in A : f16[half(M), N]\n  inout O : f32[M, P]\n"
        "  grid (x : cdiv(M, 64))\n  role all : 1 warpgroup {\n    reg s : f32[64, 64]\n"
        "    s[i,j] = A[x*64 + i, j]\n    O[x*64 + i, j] = s[i,j]\n  }\n}\n",
        NULL);
  has(&r, "A : f16[M / 2 + P, N]");
  has(&r, "O : f32[M, P]");
  assert_int_equal(r.k->dim.n, 3);
  sc_free(&r.sc);
}

static const char *const params =
    "kernel k {\n"
    "  param D = 128 in { 64, 128 }, W = D == 128 ? 176 : 80, T = f16 in { f16, bf16 }, fast = "
    "true, e = 0.5\n"
    "  in A : T[M]\n  out O : f32[M]\n  require W > 4\n"
    "  case other { D = 64, fast in { false, true }, M = 3 }\n"
    "  grid (x : cdiv(M, D))\n"
    "  role all : 1 warpgroup {\n    reg s : f32[D]\n    s[i] = fast ? e : 2\n    O[x*D + i] = "
    "s[i]\n  }\n}\n";

static void params_by_caller_case_and_default(void **state) {
  (void)state;
  Run r;
  lower(&r, params, NULL);
  has(&r, "param W = 176");
  has(&r, "s[i] = 0.5");
  sc_free(&r.sc);
  lower(&r, params, &(Choice){.case_name = "other"});
  has(&r, "param W = 80");
  has(&r, "s[i] = 2.0");
  sc_free(&r.sc);
  schedc_param given[] = {{"D", "128"}, {"T", "bf16"}, {"e", "-1.5"}, {"fast", "true"}};
  lower(&r, params, &(Choice){.case_name = "other", .param = given, .params = 4});
  has(&r, "param W = 176");
  has(&r, "in A : bf16[M]");
  has(&r, "s[i] = -1.5");
  sc_free(&r.sc);
}

static void params_refused(void **state) {
  (void)state;
  static const struct {
    const char *name, *value, *code;
  } bad[] = {
      {"D", "100", "P.domain "},
      {"D", "f16", "P.value "},
      {"D", "64x", "P.value "},
      {"fast", "1", "P.value "},
      {"T", "f32", "P.domain "},
      {"E", "1", "P.unknown "},
      {"D", "99999999999999999999", "P.value "},
      {"W", "4", "P.require "},
  };
  for (size_t i = 0; i < COUNT(bad); i++) {
    Run r;
    schedc_param p = {bad[i].name, bad[i].value};
    lower(&r, params, &(Choice){.param = &p, .params = 1});
    assert_null(r.k);
    assert_string_equal(r.code.at, bad[i].code);
    sc_free(&r.sc);
  }
  Run r;
  lower(&r, params, &(Choice){.case_name = "none"});
  assert_string_equal(r.code.at, "P.case ");
  assert_string_equal(r.sc.diags->help, "its cases are: other");
  sc_free(&r.sc);
  lower(&r, params, &(Choice){.unit = "none"});
  assert_string_equal(r.code.at, "P.unit ");
  assert_string_equal(r.sc.diags->help, "the file has: k");
  sc_free(&r.sc);
}

static void partial_vectors(void **state) {
  (void)state;
  static const struct {
    const char *right, *map;
  } row[] = {
      {"l[i] * a[i] + sum(j) s[i,j]", "parts l[i] ="},
      {"l[i] / a[i] - 0", "parts l[i] ="},
      {"where(a[i] > 0, l[i], 0)", "parts l[i] ="},
      {"0", "parts l[i] ="},
      {"a[i]", "] l[i] ="},         // a total goes into part 0
      {"l[i] + a[i]", "] l[i] ="},  // adding a total to each part would add it four times
      {"l[i] * l[i]", "] l[i] ="},
      {"a[i] / l[i]", "] l[i] ="},
      {"exp2(l[i])", "] l[i] ="},
      {"where(l[i] > 0, l[i], 0)", "] l[i] ="},
      {"l[i] * sum(j) s[i,j]", "] l[i] ="},
  };
  for (size_t i = 0; i < COUNT(row); i++) {
    char body[512];
    Run r;
    snprintf(body, sizeof body,
             "reg s : f32[64, 64] = 1, a : f32[64] = 1, l : f32[64] = 1 partial\n    l[i] = %s",
             row[i].right);
    role(&r, "", body);
    has(&r, row[i].map);
    sc_free(&r.sc);
  }
}

static void loops_unroll_for_registers_only(void **state) {
  (void)state;
  Run r;
  role(&r, "",
       "reg t : f32[64, 64] = 0, y : f32[64, 8] = 0\n    for c in reversed 2 .. 4 { let at = 8*c\n "
       "y[i,j] = t[i, at + j] }");
  has(&r, "y[i, j] = t[i, 24 + j]");
  has(&r, "y[i, j] = t[i, 16 + j]");
  has_not(&r, "for c");
  sc_free(&r.sc);
  role(&r, "",
       "reg s : f32[64] = 0\n    for c in 0 .. 4 { s[i] = s[i] + c }\n    for c in 3 .. 3 { s[i] = "
       "7 }");
  has(&r, "for c in 0 .. 4 {");
  has_not(&r, "7");
  sc_free(&r.sc);
  role(&r, "", "reg t : f32[64, 64] = 0\n    for c in 0 .. N { t[i, 8*c + j] = 0 }");
  assert_string_equal(r.code.at, "R9.tile ");
  sc_free(&r.sc);
}

static void defs_are_hygienic(void **state) {
  (void)state;
  Run r;
  // The def's `old` and its reduction's `j` are not the caller's.
  role(&r, "def total(v, r) = sum(j) v[r, j]",
       "reg s : f32[64, 64] = 1, t : f32[64, 64] = 2, old : f32[64] = 3\n"
       "    def keep(x, n) { let old[i] = x[i];  x[i] = old[i] * n }\n"
       "    let n = 5\n    keep(old, n + 1)\n    t[i,j] = total(s, i) * j");
  has(&r, "old.2[i] = old[i]");
  has(&r, "old[i] = old.2[i] * 6.0");
  has(&r, "t[i, j] = sum(j.2, s[i, j.2]) * real.of(j)");
  sc_free(&r.sc);
  role(&r, "", "reg s : f32[64] = 0\n    def f(n) = g(n)\n    def g(n) = f(n)\n    s[i] = f(1)");
  assert_string_equal(r.code.at, "N.recursion ");
  sc_free(&r.sc);
  role(&r, "",
       "reg s : f32[64] = 0\n    def sq(v) = v * v\n    s[i] = sq(sq(s[i]))");  // no recursion:
                                                                                // arguments come
                                                                                // first
  has(&r, "s[i] = s[i] * s[i] * (s[i] * s[i])");
  sc_free(&r.sc);
}

static void elements_of_in_tensors_are_values(void **state) {
  (void)state;
  Run r;
  role(&r, "let n = cu[b + 1] - cu[b]",
       "reg s : f32[64] = 0\n    let m = cu[b + 1] - cu[b]\n    if m > 3 { s[i] = 1 }\n    if n > "
       "3 { s[i] = 2 }");
  has(&r,
      "if 3 < n {\n        map [i < 64] s[i] = 1.0\n      }\n      if 3 < n {");  // one value, by
                                                                                  // either name
  sc_free(&r.sc);
  role(&r, "", "let m = S[0, 0]");
  assert_string_equal(r.code.at, "R9.uniform ");
  sc_free(&r.sc);
}

static void ring_that_params_make_unused_takes_no_memory(void **state) {
  (void)state;
  Run r;
  role(&r, "param staged = false\n  ring c : f32[64, 64]",
       "reg s : f32[64, 64] = 0\n    if staged { acquire c;  c[i,j] = s[i,j];  commit c;  wait c;  "
       "S[x*64.., 0..] <- c;  wait S;  release c }");
  has_not(&r, "ring c");
  sc_free(&r.sc);
}

// The role `store` and its ring, with or without them; a turn goes round those who are there.
static void guards(void **state) {
  (void)state;
  static const char *const text =
      "kernel k {\n  param staged = true, n = staged ? 2 : 0\n  in A : f32[M, 64]\n"
      "  inout O : f32[M, 64]\n  grid (x : M)\n"
      "  ring c : f32[64 / n, 64] * n if staged\n  turn t : main, store\n"
      "  turn no : main, store if n > 5\n"
      "  role main : 1 warpgroup {\n    acquire t;  release t;  acquire no;  release no\n    reg s "
      ": f32[64, 64] = 0\n"
      "    if staged { acquire c;  c[i,j] = 1;  commit c } else { O[x*64 + i, j] = s[i,j] }\n  }\n"
      "  role store : n warps, 40 regs if staged {\n    acquire t;  release t;  acquire no;  "
      "release no\n"
      "    wait c;  O[x, j] = c[0, j];  release c\n  }\n}\n";
  Run r;
  lower(&r, text, NULL);
  has(&r, "ring c");
  has(&r, "role store");
  has(&r, "among main & store");
  assert_true(r.k->turn.at[0].active);
  assert_false(r.k->turn.at[1].active);
  assert_int_equal(r.k->ring.at[0].fillers, 1);
  assert_int_equal(r.k->ring.at[0].drainers, 2);
  sc_free(&r.sc);
  lower(&r, text, &(Choice){.param = &(schedc_param){"staged", "false"}, .params = 1});
  has_not(&r, "ring");
  has_not(&r, "store");
  assert_int_equal(r.k->role.n, 1);
  assert_int_equal(r.k->buf.n, 3);  // A, O, s
  assert_false(r.k->turn.at[0].active);
  sc_free(&r.sc);
  // Without a role, what it filled has one side.
  role(&r, "ring c : f32[64]\n  role fill : 1 warp if false { acquire c;  c[i] = 1;  commit c }",
       "reg s : f32[64]\n    wait c;  s[i] = c[i];  release c");
  assert_string_equal(r.code.at, "R5.unused ");
  sc_free(&r.sc);
  lower(&r, "kernel k {\n  in A : f32[M]\n  out O : f32[M]\n  role none : 1 warp if false { }\n}\n",
        NULL);
  assert_string_equal(r.code.at, "N.kind ");
  sc_free(&r.sc);
}

static void conditions_that_all_roles_share(void **state) {
  (void)state;
  static const struct {
    const char *condition, *code;
  } row[] = {
      {"t < N - 4*x", ""},         {"t % 3 == cdiv(N, M)", ""}, {"(t + 1)*2 >= cu[b]", ""},
      {"w == 0", "R5.condition "}, {"t * t < 9", ""},           {"cu[t] * N < 9", ""},
  };
  for (size_t i = 0; i < COUNT(row); i++) {
    char body[512];
    Run r;
    snprintf(body, sizeof body,
             "ring r : f16[64, 64]\n    for t in 0 .. 5 { if %s { r <- A[x*64.., t*64..];  wait r; "
             " release r } }",
             row[i].condition);
    role(&r, "", body);
    assert_string_equal(r.code.at, row[i].code);
    sc_free(&r.sc);
  }
}

static void integers(void **state) {
  (void)state;
  static const struct {
    const char *right, *code;
  } row[] = {
      {"(N / 2) * 1.0", "R9.quotient "},
      {"9223372036854775807 + 1", "R9.range "},
      {"N % 0", "R9.range "},
      {"1.5 % 2", "R9.type "},
      {"N > 2", "R9.type "},
      {"1 / sqrt(N)", ""},
      {"1.0 * N / 2", ""},
      {"cdiv(N, 2)", ""},
  };
  for (size_t i = 0; i < COUNT(row); i++) {
    char body[256];
    Run r;
    snprintf(body, sizeof body, "reg s : f32[64] = 0\n    s[i] = %s", row[i].right);
    role(&r, "", body);
    assert_string_equal(r.code.at, row[i].code);
    sc_free(&r.sc);
  }
}

static const char *const sequence =
    "kernel first {\n  param T = f16\n  in A : f32[M], s : f32 = 2\n  out W : T[M]\n  grid (x : "
    "cdiv(M, 64))\n"
    "  role r : 1 warpgroup { reg v : f32[64]\n v[i] = A[x*64 + i] * s\n W[x*64 + i] = v[i] }\n}\n"
    "kernel second {\n  param T = f16\n  in W : T[M]\n  out O : f32[M]\n  grid (x : cdiv(M, 64))\n"
    "  role r : 1 warpgroup { reg v : f32[64]\n v[i] = W[x*64 + i]\n O[x*64 + i] = v[i] }\n}\n";

static void sequences(void **state) {
  (void)state;
  char text[2048];
  Run r;
  snprintf(text, sizeof text,
           "%ssequence s {\n  workspace W : T[M] = 0\n  first\n  second\n  spec { O[i] = A[i] * s "
           "}\n}\n",
           sequence);
  lower(&r, text, &(Choice){.param = &(schedc_param){"T", "bf16"}, .params = 1});
  has(&r, "workspace inout W : bf16[M], zeroed");
  has(&r, "map [i < M] O[i] = A[i] * s");
  assert_int_equal(r.k->launch.n, 2);
  assert_int_equal(r.k->launch.at[1].kernel->param.at[0].value.num.i, EL_BF16);
  sc_free(&r.sc);
  // What is launched twice is one kernel.
  snprintf(text, sizeof text, "%ssequence s {\n  first\n  second\n  first\n}\n", sequence);
  lower(&r, text, NULL);
  assert_int_equal(r.k->launch.n, 3);
  assert_ptr_equal(r.k->launch.at[0].kernel, r.k->launch.at[2].kernel);
  assert_ptr_not_equal(r.k->launch.at[0].kernel, r.k->launch.at[1].kernel);
  sc_free(&r.sc);
  // What is given makes an input.
  snprintf(
      text, sizeof text,
      "%skernel third {\n  in A : f32[M], s : f32 = 2\n  out P : f32[M]\n  grid (x : cdiv(M, 64))\n"
      "  role r : 1 warpgroup { reg v : f32[64]\n v[i] = A[x*64 + i] * s\n P[x*64 + i] = v[i] "
      "}\n}\n"
      "sequence s {\n  given first\n  second\n  third\n}\n",
      sequence);
  lower(&r, text, NULL);
  has(&r, "in W : f16[M]");
  has(&r, "given kernel first {");
  assert_int_equal(r.k->launch.n, 2);
  assert_int_equal(r.k->given.n, 1);
  sc_free(&r.sc);
  // Without the workspace, W is an output: it is written before it is read.
  snprintf(text, sizeof text, "%ssequence s {\n  first\n  second\n}\n", sequence);
  lower(&r, text, NULL);
  has(&r, "out W : f16[M]");
  sc_free(&r.sc);
}

// A sequence holds its kernels to what they do to outputs, as each alone is.
static void outputs_of_kernels(void **state) {
  (void)state;
  static const struct {
    const char *body, *code;
  } row[] = {
      {"W[x*64 + i] = v[i]", ""},
      {"if M < 0 { W[x*64 + i] = v[i] }", ""},
      {"for t in 0 .. M { W[x*64 + i] = v[i] }", ""},
      {"W[x*64 + i] = v[i] if x*64 + i < M", ""},
      {"W[x*64 + i] = v[i];  W[x*64 + i] += v[i]", ""},
      {"W[x*64 + i] += v[i]", "N.read "},
      {"v[i] = 1", "N.unwritten "},
      {"if 1 < 0 { W[x*64 + i] = v[i] }", "N.unwritten "},
  };
  for (size_t i = 0; i < COUNT(row); i++) {
    char text[1024];
    Run r;
    snprintf(text, sizeof text,
             "kernel k {\n  in A : f32[M]\n  out W : f32[M], E : f32[0, M]\n"
             "  grid (x : cdiv(M, 64))\n"
             "  role r : 1 warpgroup { reg v : f32[64] = 1\n %s }\n}\nsequence s {\n  k\n}\n",
             row[i].body);
    lower(&r, text, NULL);
    assert_string_equal(r.code.at, row[i].code);
    sc_free(&r.sc);
  }
}

static void limits(void **state) {
  (void)state;
  static char text[200000];
  Run r;
  // A chain of values, each computed from the one before.
  size_t n = (size_t)snprintf(text, sizeof text,
                              "kernel k {\n  in A : f32[M]\n  inout O : f32[M]\n  let v0 = M\n");
  for (int i = 1; i < 2000; i++)
    n += (size_t)snprintf(text + n, sizeof text - n, "  let v%d = v%d * 3 + 1\n", i, i - 1);
  snprintf(text + n, sizeof text - n, "  grid (x : M)\n  role r : 1 warp { }\n}\n");
  lower(&r, text, NULL);
  assert_string_equal(r.code.at, "P.limit ");
  sc_free(&r.sc);
  // Defs in defs, each of which uses the next twice.
  n = (size_t)snprintf(text, sizeof text,
                       "kernel k {\n  in A : f32[M]\n  inout O : f32[M]\n  grid (x : M)\n");
  for (int i = 0; i < 60; i++)
    n += (size_t)snprintf(text + n, sizeof text - n, "  def g%d(a) = g%d(a) + g%d(a)\n", i, i + 1,
                          i + 1);
  snprintf(text + n, sizeof text - n,
           "  def g60(a) = a\n  role r : 1 warp { reg s : f32[32]\n s[i] = g0(1.5) }\n}\n");
  lower(&r, text, NULL);
  assert_string_equal(r.code.at, "P.limit ");
  sc_free(&r.sc);
  // More names that are not there than a scope holds, of a kernel and of what a sequence lacks.
  for (int kept = 0; kept < 2; kept++) {
    n = (size_t)snprintf(text, sizeof text, "kernel k {\n  in A : f32[M]\n  in a");
    for (int i = 0; i < 5000; i++) n += (size_t)snprintf(text + n, sizeof text - n, ", a%d", i);
    n += (size_t)snprintf(text + n, sizeof text - n,
                          " : f32[1]%s\n  inout O : f32[M]\n  grid (x : M)\n"
                          "  role r : 1 warp { reg s : f32[16]\n s[i] = A[i];  O[i] = s[i] }\n}\n",
                          kept ? "" : " if false");
    if (kept) snprintf(text + n, sizeof text - n, "sequence s {\n  k if false\n}\n");
    lower(&r, text, NULL);
    assert_non_null(strstr(r.code.at, "P.limit "));
    sc_free(&r.sc);
  }
}

// An intermediate has the type that its equation states, else the kernel's narrow one; integers
// have f32.
static void types_of_intermediates(void **state) {
  (void)state;
  Run r;
  static const char *const text =
      "kernel k {\n  param T = bf16\n  in X : f32[M], A : f16[M], cu : i32[B]\n  inout O : f32[M]\n"
      "  spec {\n    Y[i] = X[i]\n    Z : f32[i] = X[i]\n    U : T[i] = X[i]\n"
      "    V : e4m3[i] = X[i]\n    W[i] = sum(b) where(cu[b] <= i, 1, 0)\n"
      "    O[i] = Y[i] + Z[i] + U[i] + V[i] + W[i]\n  }\n"
      "  role all : 1 warpgroup {\n    reg s : f32[64]\n    s[i] = X[i];  O[i] = s[i]\n  }\n}\n";
  lower(&r, text, NULL);
  assert_string_equal(r.code.at, "");
  has(&r, "value Y : f16[M]");
  has(&r, "value Z : f32[M]");
  has(&r, "value U : bf16[M]");
  has(&r, "value V : e4m3[M]");
  has(&r, "value W : f32[M]");
  sc_free(&r.sc);
}

int main(void) {
  const struct CMUnitTest test[] = {
      cmocka_unit_test(dimensions_of_defs),
      cmocka_unit_test(params_by_caller_case_and_default),
      cmocka_unit_test(params_refused),
      cmocka_unit_test(partial_vectors),
      cmocka_unit_test(loops_unroll_for_registers_only),
      cmocka_unit_test(defs_are_hygienic),
      cmocka_unit_test(elements_of_in_tensors_are_values),
      cmocka_unit_test(ring_that_params_make_unused_takes_no_memory),
      cmocka_unit_test(guards),
      cmocka_unit_test(conditions_that_all_roles_share),
      cmocka_unit_test(integers),
      cmocka_unit_test(types_of_intermediates),
      cmocka_unit_test(sequences),
      cmocka_unit_test(outputs_of_kernels),
      cmocka_unit_test(limits),
  };
  return cmocka_run_group_tests(test, NULL, NULL);
}
