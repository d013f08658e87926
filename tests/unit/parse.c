// Text to tree: golden trees, expressions, numbers, spans, limits, hostile bytes, recovery.
// SCHEDC_UPDATE=1 rewrites the golden files.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "files.h"
#include "fixture.h"
#include "roundtrip.h"

// Forgets the reports, for another text in the same test.
static void restart(Sc *sc) {
  sc->diags = NULL;
  sc->diag_end = &sc->diags;
  sc->errors = 0;
}

static const Ast *parse(Sc *sc, const char *text) { return parse_text(sc, text, strlen(text)); }

// The tree of an expression.
static const char *expression(Sc *sc, const char *text) {
  restart(sc);
  const Ast *ast = parse(sc, sc_printf(sc, "kernel k { require %s }", text));
  assert_int_equal(sc->errors, 0);
  Str s = {.sc = sc};
  Ast alone = {.text = ast->text, .file = ast->file->a->a->a};
  sc_print_ast(&s, &alone);
  s.at[s.n - 1] = 0;
  return s.at;
}

static const char *first_code(Sc *sc) { return sc->diags ? sc_diag_code(sc->diags->id) : "none"; }

static void expect_code(Sc *sc, const char *text, const char *code) {
  restart(sc);
  parse(sc, text);
  if (strcmp(first_code(sc), code) != 0) fail_msg("%s, not %s: %.200s", first_code(sc), code, text);
}

// ---- trees

static void trees(void **state) {
  Sc *sc = &((Fixture *)*state)->sc;
  static const char *const names[] = {"fa3_fwd", "every"};
  for (u32 i = 0; i < COUNT(names); i++) {
    size_t n;
    char *text = read_file(sc_printf(sc, "tests/golden/%s.sched", names[i]), &n);
    const Ast *ast = parse_text(sc, text, n);
    assert_int_equal(sc->errors, 0);
    golden(sc_printf(sc, "tests/golden/%s.ast", names[i]), tree_text(sc, ast));
    free(text);
  }
}

static void expressions(void **state) {
  Sc *sc = &((Fixture *)*state)->sc;
  static const struct {
    const char *text, *tree;
  } pairs[] = {
      {"a - b - c", "(binary - (binary - (name a) (name b)) (name c))"},
      {"a + b * c", "(binary + (name a) (binary * (name b) (name c)))"},
      {"-a * b", "(binary * (unary - (name a)) (name b))"},
      {"a - -b", "(binary - (name a) (unary - (name b)))"},
      {"not a == b", "(unary not (binary == (name a) (name b)))"},
      {"not a and b or c", "(binary or (binary and (unary not (name a)) (name b)) (name c))"},
      {"a ? b : c ? d : e", "(select (name a) (name b) (select (name c) (name d) (name e)))"},
      {"a or b ? c : d", "(select (binary or (name a) (name b)) (name c) (name d))"},
      {"sum(j) a*b + c", "(binary + (reduce sum j (binary * (name a) (name b))) (name c))"},
      {"a * sum(j) b * c", "(binary * (name a) (reduce sum j (binary * (name b) (name c))))"},
      {"sum(i) sum(j) x", "(reduce sum i (reduce sum j (name x)))"},
      {"sum(j) a * -sum(k) b",
       "(reduce sum j (binary * (name a) (unary - (reduce sum k (name b)))))"},
      {"-sum(j) x", "(unary - (reduce sum j (name x)))"},
      {"sum(j) (-x)", "(reduce sum j (unary - (name x)))"},
      {"max(j) s - 1", "(binary - (reduce max j (name s)) (int 1))"},
      {"max(a, b) - 1", "(binary - (apply max [(name a) (name b)]) (int 1))"},
      {"max(a, max(j) s)", "(apply max [(name a) (reduce max j (name s))])"},
      {"min(j) (a)", "(reduce min j (name a))"},
      {"x[i<-1]", "(index (name x) (binary < (name i) (unary - (int 1))))"},
      {"x[0..]", "(index (name x) (slice (int 0)))"},
      {"007 + 1.50", "(binary + (int 7) (real 1.50))"},
      {"keep + read * by", "(binary + (name keep) (binary * (name read) (name by)))"},
  };
  for (u32 i = 0; i < COUNT(pairs); i++) {
    assert_string_equal(expression(sc, pairs[i].text), pairs[i].tree);
  }
}

static void numbers(void **state) {
  Sc *sc = &((Fixture *)*state)->sc;
  static const struct {
    const char *text;
    double value;
  } reals[] = {{"0.1", 0.1},           {"1e-3", 1e-3},
               {"1.25E+2", 125},       {"0.0", 0},
               {"4.9e-324", 4.9e-324}, {"1e22", 1e22},
               {"0e99999999999", 0},   {"1.7976931348623157e308", 1.7976931348623157e308}};
  for (u32 i = 0; i < COUNT(reals); i++) {
    restart(sc);
    const Ast *ast = parse(sc, sc_printf(sc, "kernel k { require %s }", reals[i].text));
    assert_int_equal(sc->errors, 0);
    const Node *n = ast->file->a->a->a;
    assert_int_equal(n->kind, ND_REAL);
    assert_true(n->num.f == reals[i].value);
  }
  restart(sc);
  const Ast *ast = parse(sc, "kernel k { require 9223372036854775807 }");
  assert_true(ast->file->a->a->a->num.i == INT64_MAX);
  static const char *const bad[] = {
      "9223372036854775808", "1e309", "1e-400", "1.", ".5", "1.x", "0x10", "1e", "1e+"};
  for (u32 i = 0; i < COUNT(bad); i++) {
    expect_code(sc, sc_printf(sc, "kernel k { require %s }", bad[i]), "S.number");
  }
}

// Spans are what reports underline: a node's begins and ends with its text, its parentheses
// included.
static void spans(void **state) {
  Sc *sc = &((Fixture *)*state)->sc;
  const Ast *ast = parse(sc, "kernel k {\n  let x = (a + b) * c[i, j]  // end\n}\n");
  const Node *let = ast->file->a->a, *product = let->a->a;
  static const struct { u32 lo, hi; } want[] = {{13, 38}, {21, 38}, {21, 28}, {31, 38}};
  const Node *nodes[] = {let, product, product->a, product->b};
  for (u32 i = 0; i < COUNT(want); i++) {
    assert_int_equal(nodes[i]->span.lo, want[i].lo);
    assert_int_equal(nodes[i]->span.hi, want[i].hi);
  }
}

static void ends_of_statements(void **state) {
  Sc *sc = &((Fixture *)*state)->sc;
  const char *split =
      "kernel k {\n\n role r : 1 warp, \n 24 regs {\n a = b +\n\n c; \n d = f(\n1\n)\n if a { "
      "}\n\n else { }\n}\n}";
  const char *tidy =
      "kernel k { role r : 1 warp, 24 regs { a = b + c; d = f(1); if a { } else { } } }";
  const char *first = tree_text(sc, parse(sc, split));
  assert_int_equal(sc->errors, 0);
  assert_string_equal(first, tree_text(sc, parse(sc, tidy)));
  const Ast *ast = parse(sc, "\xef\xbb\xbfkernel k {\r\n\tlet a = 1\r\n} // last");
  assert_int_equal(sc->errors, 0);
  assert_int_equal(ast->comments.n, 1);
  expect_code(sc, "kernel k { if a { } ; else { } }", "S.token");
  expect_code(sc, "kernel k { role r : 1 warp { a = 1 b = 2 } }", "S.token");
}

// ---- limits and hostile texts

static char *repeat(Sc *sc, const char *head, const char *each, u32 n, const char *middle,
                    const char *close, const char *tail) {
  Str s = {.sc = sc};
  str_puts(&s, head);
  for (u32 i = 0; i < n; i++) str_puts(&s, each);
  str_puts(&s, middle);
  for (u32 i = 0; i < n; i++) str_puts(&s, close);
  str_puts(&s, tail);
  return s.at;
}

static void nesting(void **state) {
  Sc *sc = &((Fixture *)*state)->sc;
  static const struct {
    const char *head, *each, *middle, *close, *tail;
  } kinds[] = {
      {"kernel k { let x = ", "(", "1", ")", " }"},
      {"kernel k { let x = ", "f(", "1", ")", " }"},
      {"kernel k { let x = ", "a[", "1", "]", " }"},
      {"kernel k { let x = ", "not ", "1", "", " }"},
      {"kernel k { let x = ", "-", "1", "", " }"},
      {"kernel k { let x = ", "1 + -(", "1", ")", " }"},
      {"kernel k { let x = ", "sum(j) ", "1", "", " }"},
      {"kernel k { let x = ", "a ? 1 : ", "1", "", " }"},
      {"kernel k { let x = ", "a ? ", "1", " : 1", " }"},
      {"kernel k { let x = ", "x * -sum(i) ", "1", "", " }"},
      {"kernel k { role r : 1 warp { ", "if a { ", "x = 1", " }", " } }"},
      {"kernel k { role r : 1 warp { ", "if a { } else ", "if b { }", "", " } }"},
      {"kernel k { role r : 1 warp { ", "for i in 0 .. 1 { vote any(x) { ", "x = 1", " } }",
       " } }"},
      {"", "{", "", "}", ""},
      {"", "(", "", "", ""},
      {"kernel k ", "{", "", "", ""},
  };
  static const u32 many[] = {65, 130, 1000, 5000, 100000};
  for (u32 i = 0; i < COUNT(kinds); i++) {
    restart(sc);
    parse(sc, repeat(sc, kinds[i].head, kinds[i].each, 20, kinds[i].middle, kinds[i].close,
                     kinds[i].tail));
    if (kinds[i].head[0] && kinds[i].middle[0]) assert_int_equal(sc->errors, 0);
    for (u32 k = 0; k < COUNT(many); k++) {
      restart(sc);
      const Ast *ast = parse(sc, repeat(sc, kinds[i].head, kinds[i].each, many[k], kinds[i].middle,
                                        kinds[i].close, kinds[i].tail));
      assert_non_null(tree_text(sc, ast));
      assert_true(sc->errors > 0 && sc->errors <= SC_MAX_ERRORS);
      if (kinds[i].middle[0]) assert_string_equal(first_code(sc), "S.nest");
    }
  }
}

static void chains(void **state) {
  Sc *sc = &((Fixture *)*state)->sc;
  parse(sc, repeat(sc, "kernel k { let x = 1", " + 1", 1000, "", "", " }"));
  assert_int_equal(sc->errors, 0);
  restart(sc);
  parse(sc, repeat(sc, "kernel k { let x = 1", " + 1", 1001, "", "", " }"));
  assert_string_equal(first_code(sc), "S.nest");
  restart(sc);
  parse(sc, repeat(sc, "kernel k { let x = f(1", ", 1", 100000, "", "", ") }"));
  assert_int_equal(sc->errors, 0);
}

// The table of names grows; equal names stay one.
static void many_names(void **state) {
  Sc *sc = &((Fixture *)*state)->sc;
  Str s = {.sc = sc};
  str_puts(&s, "kernel k { let x = f(first");
  for (u32 i = 0; i < 3000; i++) str_printf(&s, ", n%u", i);
  str_puts(&s, ", first) }");
  const Ast *ast = parse(sc, s.at);
  assert_int_equal(sc->errors, 0);
  const Node *first = ast->file->a->a->a->a->a, *last = first;
  while (last->next) last = last->next;
  assert_ptr_equal(first->name, last->name);
  assert_string_equal(first->next->name, "n0");
}

static void strange_bytes(void **state) {
  Sc *sc = &((Fixture *)*state)->sc;
  static const char nul[] = "kernel k { let x = \0 1 }";
  parse_text(sc, nul, sizeof nul - 1);
  assert_string_equal(first_code(sc), "S.char");
  static const char in_comment[] = "kernel k { } // a \0 b";
  restart(sc);
  parse_text(sc, in_comment, sizeof in_comment - 1);
  assert_string_equal(first_code(sc), "S.char");
  expect_code(sc, "kernel k { } // \x1b[31m", "S.char");
  expect_code(sc, "kernel k { } // \x7f", "S.char");
  expect_code(sc, "kernel \x01 { }", "S.char");
  expect_code(sc, "kernel \xff { }", "S.char");
  expect_code(sc, "kernel k\xc3\xa9 { }", "S.char");
  expect_code(sc, "kernel k { let x = \"text\" }", "S.char");
  expect_code(sc, "kernel k { /* x */ }", "S.char");
  expect_code(sc, "", "none");
  expect_code(sc, "// only a comment", "none");
}

// ---- recovery

static u32 count_lines(Sc *sc, u32 *lines, u32 cap) {
  u32 n = 0;
  for (const Diag *d = sc->diags; d; d = d->next) {
    if (n < cap) lines[n++] = sc_line_col(sc->text, d->at.lo).line;
  }
  return n;
}

static void recovery(void **state) {
  Sc *sc = &((Fixture *)*state)->sc;
  static const struct {
    const char *text;
    u32 n, lines[4];
  } cases[] = {
      {"kernel k {\n role r 1 warp {\n x = (\n }\n let = 1\n}", 2, {2, 5}},
      {"kernel k {\n role r : 1 warp {\n x = (1\n y = 2 +\n }\n let = 1\n}", 3, {4, 5, 6}},
      {"kernel k {\n param a = 1 in { 1 +, 2,\n 3\n }\n let = 1\n}", 2, {2, 5}},
      {"kernel (k) {\n a b c { d }\n}\nkernel l { let = 1 }", 2, {1, 4}},
      {"kernel k {\n let x = 1\nkernel l {\n let = 1\n}", 2, {3, 4}},
      {"}\nkernel k { }\n}\n", 2, {1, 3}},
      {"kernel k {\n let x = [\n let y = 1\n let = 2 }", 2, {2, 4}},
      {"kernel k {\n role r : 1 warp\n {\n x = = 1\n }\n}", 2, {2, 4}},
  };
  for (u32 i = 0; i < COUNT(cases); i++) {
    restart(sc);
    parse(sc, cases[i].text);
    u32 lines[8], n = count_lines(sc, lines, COUNT(lines));
    bool same = n == cases[i].n;
    for (u32 k = 0; same && k < n; k++) same = lines[k] == cases[i].lines[k];
    if (!same) {
      Str s = {.sc = sc};
      for (const Diag *d = sc->diags; d; d = d->next) sc_diag_text(&s, sc->text, d);
      fail_msg("case %u:\n%s", i, s.at);
    }
  }
  restart(sc);
  parse(sc, repeat(sc, "kernel k {\n", "let = 1\n", 1000, "", "", "}"));
  assert_int_equal(sc->errors, SC_MAX_ERRORS);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(trees),   TEST(expressions),        TEST(numbers),
                                     TEST(spans),   TEST(ends_of_statements), TEST(nesting),
                                     TEST(chains),  TEST(many_names),         TEST(strange_bytes),
                                     TEST(recovery)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
