// The language front end: golden trees, the formatter on everything there is and on random texts,
// limits, recovery, hostile bytes. SCHEDC_UPDATE=1 rewrites the golden files.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "roundtrip.h"

// ---- a compilation for each test

typedef struct Bench {
  Sc sc;
  jmp_buf unwind;
} Bench;

static int set_up(void **state) {
  Bench *b = calloc(1, sizeof *b);
  sc_init(&b->sc, NULL);
  b->sc.unwind = &b->unwind;
  *state = b;
  return 0;
}

static int tear_down(void **state) {
  Bench *b = *state;
  sc_free(&b->sc);
  free(b);
  return 0;
}

// Forgets the reports, for another text in the same test.
static void restart(Sc *sc) {
  sc->diags = NULL;
  sc->diag_end = &sc->diags;
  sc->errors = 0;
}

static char *read_file(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  if (!f) fail_msg("cannot open %s", path);
  char *bytes = NULL;
  size_t cap = 0;
  *n = 0;
  do {
    bytes = realloc(bytes, cap += 1 << 16);
    *n += fread(bytes + *n, 1, cap - *n - 1, f);
  } while (*n == cap - 1);
  bytes[*n] = 0;
  fclose(f);
  return bytes;
}

static void golden(const char *path, const char *text) {
  if (getenv("SCHEDC_UPDATE")) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
  }
  size_t n;
  char *want = read_file(path, &n);
  assert_string_equal(text, want);
  free(want);
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
  Sc *sc = &((Bench *)*state)->sc;
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
  Sc *sc = &((Bench *)*state)->sc;
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
  Sc *sc = &((Bench *)*state)->sc;
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
  Sc *sc = &((Bench *)*state)->sc;
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
  Sc *sc = &((Bench *)*state)->sc;
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

// ---- the formatter

static void formatted(void **state) {
  Sc *sc = &((Bench *)*state)->sc;
  size_t n;
  char *text = read_file("tests/golden/untidy.sched", &n);
  const Ast *ast = parse_text(sc, text, n);
  assert_int_equal(sc->errors, 0);
  golden("tests/golden/untidy.fmt", source_text(sc, ast).at);
  free(text);
  text = read_file("tests/golden/fa3_fwd.sched", &n);
  golden("tests/golden/fa3_fwd.sched", source_text(sc, parse_text(sc, text, n)).at);
  free(text);
}

// Whether the text is without errors.
static bool check_roundtrip(const char *name, const char *text, size_t n) {
  Sc sc;
  jmp_buf unwind;
  sc_init(&sc, NULL);
  sc.unwind = &unwind;
  if (setjmp(unwind)) fail_msg("%s: out of memory", name);
  const char *wrong = roundtrip(&sc, text, n);
  if (wrong) fail_msg("%s: %s\n%.*s", name, wrong, (int)n, text);
  if (sc.errors && getenv("SCHEDC_SHOW")) {
    Str s = {.sc = &sc};
    sc_diag_text(&s, sc.text, sc.diags);
    fputs(s.at, stderr);
  }
  bool good = !sc.errors;
  sc_free(&sc);
  return good;
}

static void all_schedules(void **state) {
  (void)state;
  static const char *const patterns[] = {"schedules/*.sched", "tests/corpus/*.sched",
                                         "tests/golden/*.sched", "tests/bad/*.sched"};
  u32 files = 0;
  for (u32 i = 0; i < COUNT(patterns); i++) {
    glob_t found;
    if (glob(patterns[i], 0, NULL, &found)) continue;
    for (size_t k = 0; k < found.gl_pathc; k++, files++) {
      size_t n;
      char *text = read_file(found.gl_pathv[k], &n);
      check_roundtrip(found.gl_pathv[k], text, n);
      free(text);
    }
    globfree(&found);
  }
  assert_true(files > 10);
}

// ---- random texts: every production, with white space and comments wherever they may stand

typedef struct Random {
  Str s;
  u64 seed;
  u32 depth;
  u32 brackets;  // open ( and [: newlines are free
} Random;

static u32 below(Random *r, u32 n) {
  r->seed = r->seed * 6364136223846793005u + 1442695040888963407u;
  return (u32)(r->seed >> 33) % n;
}

static void newline(Random *r) {
  static const char *const comments[] = {
      "", "", " // c", "//c\n // own\n", "\n", "\n\n\n", "// \xe2\x82\xac\r\n//\n"};
  str_printf(&r->s, "%s\n", comments[below(r, COUNT(comments))]);
}

static void out(Random *r, const char *token) {
  static const char *const spaces[] = {" ", " ", "  ", "\t", " "};
  str_puts(&r->s, token);
  str_puts(&r->s, spaces[below(r, COUNT(spaces))]);
  char last = token[strlen(token) - 1];
  if (last == '(' || last == '[') r->brackets++;
  if (last == ')' || last == ']') r->brackets--;
  bool more = strchr(",:=+-*/%@<>?{", last) || (r->brackets && !below(r, 3));
  if (more && !below(r, 12)) newline(r);
}

static void expr(Random *r);

static const char *name(Random *r) {
  static const char *const names[] = {
      "a", "b", "x", "stages", "keep", "read", "partial", "long_name_of_a_thing", "T"};
  return names[below(r, COUNT(names))];
}

static void list(Random *r, void (*each)(Random *)) {
  for (u32 n = 1 + below(r, 3); n; n--) {
    each(r);
    if (n > 1) out(r, ",");
  }
}

static void position(Random *r) {
  expr(r);
  if (!below(r, 4)) out(r, "..");
}

static void place(Random *r) {
  out(r, name(r));
  if (!below(r, 5)) {
    out(r, ".");
    out(r, name(r));
  }
  if (!below(r, 4)) return;
  out(r, "[");
  list(r, position);
  out(r, "]");
}

static void atom(Random *r) {
  static const char *const literals[] = {"0",    "1",      "17",   "64",    "1.5",
                                         "1e-3", "2.50e4", "true", "false", "inf"};
  switch (r->depth > 6 ? 0 : below(r, 8)) {
    case 0:
    case 1: out(r, literals[below(r, COUNT(literals))]); break;
    case 2:
      out(r, "(");
      expr(r);
      out(r, ")");
      break;
    case 3:
      out(r, name(r));
      out(r, "(");
      list(r, expr);
      out(r, ")");
      break;
    case 4:
      out(r, below(r, 2) ? "max" : "min");
      out(r, "(");
      expr(r);
      out(r, ",");
      expr(r);
      out(r, ")");
      break;
    default: r->depth > 4 ? out(r, name(r)) : place(r);
  }
}

static void product(Random *r) {
  static const char *const ops[] = {"*", "/", "%", "@", "*"};
  while (!below(r, 8)) out(r, "-");
  atom(r);
  while (!below(r, 3)) {
    out(r, ops[below(r, COUNT(ops))]);
    if (!below(r, 6)) out(r, "-");
    atom(r);
  }
  if (below(r, 8)) return;
  out(r, "*");
  out(r, below(r, 2) ? "sum" : "max");
  out(r, "(");
  out(r, "j");
  out(r, ")");
  atom(r);
}

static void sum(Random *r) {
  product(r);
  while (!below(r, 3)) {
    out(r, below(r, 2) ? "+" : "-");
    product(r);
  }
}

static void condition(Random *r) {
  static const char *const ops[] = {"<", "<=", ">", ">=", "==", "!="};
  if (!below(r, 4)) out(r, "not");
  sum(r);
  if (below(r, 2)) {
    out(r, ops[below(r, COUNT(ops))]);
    sum(r);
  }
}

static void expr(Random *r) {
  r->depth++;
  if (r->depth > 5) {
    atom(r);
  } else if (below(r, 3)) {
    sum(r);
  } else {
    condition(r);
    if (!below(r, 2)) {
      out(r, below(r, 2) ? "and" : "or");
      condition(r);
    }
    if (!below(r, 3)) {
      out(r, "?");
      expr(r);
      out(r, ":");
      expr(r);
    }
  }
  r->depth--;
}

static void plain_name(Random *r) { out(r, name(r)); }

static void type(Random *r) {
  out(r, name(r));
  if (!below(r, 5)) return;
  out(r, "[");
  list(r, expr);
  out(r, "]");
}

static void tile(Random *r) {
  list(r, plain_name);
  out(r, ":");
  type(r);
  if (!below(r, 3)) {
    out(r, "=");
    expr(r);
  }
}

static void part(Random *r) {
  list(r, plain_name);
  out(r, ":");
  type(r);
}

static void ring(Random *r) {
  list(r, plain_name);
  out(r, ":");
  if (below(r, 2)) {
    type(r);
  } else {
    out(r, "{");
    list(r, part);
    if (!below(r, 3)) newline(r);
    out(r, "}");
  }
  if (below(r, 2)) {
    out(r, "*");
    expr(r);
  }
}

static void set(Random *r) {
  out(r, "{");
  list(r, expr);
  if (!below(r, 3)) newline(r);
  out(r, "}");
}

static void param(Random *r) {
  out(r, name(r));
  out(r, "=");
  expr(r);
  if (below(r, 2)) return;
  out(r, "in");
  set(r);
}

static void fact(Random *r) {
  out(r, name(r));
  switch (below(r, 3)) {
    case 0:
      out(r, "=");
      expr(r);
      break;
    case 1:
      out(r, "in");
      set(r);
      break;
    default:
      out(r, "=");
      out(r, "[");
      list(r, expr);
      out(r, "]");
  }
}

static void bind(Random *r) {
  out(r, name(r));
  if (below(r, 2)) {
    out(r, "[");
    list(r, plain_name);
    out(r, "]");
  }
  out(r, "=");
  expr(r);
}

static void block(Random *r, void (*each)(Random *)) {
  r->depth++;
  out(r, "{");
  for (u32 n = below(r, 4); n; n--) {
    each(r);
    if (n > 1 && !below(r, 3)) out(r, ";");
    else if (n > 1 || below(r, 2)) newline(r);
  }
  str_puts(&r->s, "} ");
  r->depth--;
}

static void local(Random *r) {
  switch (below(r, 3)) {
    case 0:
      out(r, "ring");
      list(r, ring);
      break;
    case 1:
      out(r, "let");
      list(r, bind);
      break;
    default:
      out(r, "def f (");
      list(r, plain_name);
      out(r, ")");
      out(r, "=");
      expr(r);
  }
}

static void verb(Random *r) {
  static const char *const verbs[] = {"acquire", "commit", "wait", "release"};
  u32 which = below(r, COUNT(verbs));
  out(r, verbs[which]);
  list(r, plain_name);
  if (which == 2 && !below(r, 2)) out(r, "read");
  if (which == 2 && !below(r, 2)) {
    out(r, "keep");
    expr(r);
  }
}

static void assign(Random *r) {
  if (!below(r, 3)) out(r, "async");
  place(r);
  out(r, below(r, 3) ? "=" : "+=");
  expr(r);
  if (!below(r, 4)) {
    out(r, "if");
    expr(r);
  }
}

static void statement(Random *r);

static void branch(Random *r) {
  out(r, "if");
  expr(r);
  block(r, statement);
  if (!below(r, 4)) newline(r);
  if (below(r, 2)) return;
  out(r, "else");
  if (r->depth < 4 && !below(r, 2)) branch(r);
  else block(r, statement);
}

static void statement(Random *r) {
  switch (below(r, r->depth > 4 ? 6 : 10)) {
    case 0: local(r); break;
    case 1: verb(r); break;
    case 2:
    case 3: assign(r); break;
    case 4:
      place(r);
      out(r, "<-");
      place(r);
      if (!below(r, 3)) out(r, "multicast");
      break;
    case 5:
      out(r, name(r));
      out(r, "(");
      if (below(r, 2)) list(r, expr);
      out(r, ")");
      break;
    case 6:
      out(r, "reg");
      list(r, tile);
      if (!below(r, 3)) out(r, "partial");
      break;
    case 7: branch(r); break;
    case 8:
      out(r, "vote any (");
      expr(r);
      out(r, ")");
      block(r, statement);
      break;
    default:
      out(r, "for t in");
      if (below(r, 2)) out(r, "reversed");
      expr(r);
      out(r, "..");
      expr(r);
      block(r, statement);
  }
}

static void equation(Random *r) {
  place(r);
  out(r, "=");
  expr(r);
}

static void axis(Random *r) {
  if (!below(r, 3)) out(r, "reversed");
  out(r, "x :");
  expr(r);
  if (!below(r, 3)) {
    out(r, "by");
    expr(r);
  }
}

static void item(Random *r) {
  static const char *const directions[] = {"in", "out", "inout"};
  switch (below(r, 9)) {
    case 0:
      out(r, "param");
      list(r, param);
      break;
    case 1:
      out(r, directions[below(r, 3)]);
      list(r, tile);
      break;
    case 2:
      out(r, "require");
      expr(r);
      break;
    case 3:
      out(r, "spec");
      block(r, equation);
      break;
    case 4:
      out(r, "case c {");
      list(r, fact);
      out(r, "}");
      break;
    case 5:
      out(r, "grid (");
      list(r, axis);
      out(r, ")");
      if (below(r, 2)) out(r, "persistent");
      break;
    case 6:
      out(r, "turn t :");
      list(r, plain_name);
      if (below(r, 2)) {
        out(r, "if");
        expr(r);
      }
      break;
    case 7: local(r); break;
    default:
      out(r, below(r, 2) ? "role r :" : "role r[w] :");
      expr(r);
      out(r, below(r, 2) ? "warps" : "warpgroup");
      if (below(r, 2)) out(r, ", one tile each");
      if (below(r, 2)) out(r, ","), expr(r), out(r, "regs");
      block(r, statement);
  }
}

static void random_texts(void **state) {
  Sc *sc = &((Bench *)*state)->sc;
  u32 good = 0;
  for (u64 seed = 1; seed <= 400; seed++) {
    Random r = {.s = {.sc = sc}, .seed = seed * 0x9e3779b97f4a7c15u};
    out(&r, "kernel k");
    block(&r, item);
    good += check_roundtrip("random text", r.s.at, r.s.n);
  }
  assert_true(good > 390);
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
  Sc *sc = &((Bench *)*state)->sc;
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
  Sc *sc = &((Bench *)*state)->sc;
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
  Sc *sc = &((Bench *)*state)->sc;
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
  Sc *sc = &((Bench *)*state)->sc;
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

// What is cut off anywhere, or lacks any one byte, is read to its end; the tree is whole if nothing
// is reported.
static void cut_texts(void **state) {
  (void)state;
  size_t n;
  char *text = read_file("tests/golden/every.sched", &n);
  for (size_t i = 0; i < n; i++) check_roundtrip("prefix", text, i);
  char *less = malloc(n);
  for (size_t i = 0; i < n; i++) {
    memcpy(less, text, i);
    memcpy(less + i, text + i + 1, n - i - 1);
    check_roundtrip("one byte less", less, n - 1);
  }
  free(less);
  free(text);
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
  Sc *sc = &((Bench *)*state)->sc;
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

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(trees),         TEST(expressions),        TEST(numbers),
      TEST(spans),         TEST(ends_of_statements), TEST(formatted),
      TEST(all_schedules), TEST(random_texts),       TEST(nesting),
      TEST(chains),        TEST(many_names),         TEST(strange_bytes),
      TEST(cut_texts),     TEST(recovery),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
