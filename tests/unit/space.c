// space.c - the space of a unit's params: what they are for, domains that are ranges or depend on
// other params, the order and the numbers of points, and what a `require` passes by.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spacekit.h"

static schedc_space_param_info info_of(const schedc_space *space, const char *name) {
  schedc_space_param_info info = SCHEDC_SPACE_PARAM_INFO_INIT;
  for (size_t i = 0; i < schedc_space_param_count(space); i++) {
    assert_int_equal(schedc_space_param_at(space, i, &info), SCHEDC_OK);
    if (strcmp(info.name, name) == 0) return info;
  }
  fail_msg("no param %s", name);
  return info;
}

static const char *domain_of(const schedc_space *space, const char *name) {
  static char text[256];
  schedc_space_param_info info = info_of(space, name);
  text[0] = 0;
  for (size_t i = 0; i < info.domain_count; i++)
    sprintf(text + strlen(text), "%s%s", i ? " " : "", info.domain[i]);
  return text;
}

// "1.2 1.4 2.4": the values of all points in order, with their numbers if wanted.
static const char *walk(Fixture *f, const schedc_space *space, bool numbers, uint64_t *refused) {
  static char text[4096];
  schedc_cursor cursor = SCHEDC_CURSOR_INIT;
  schedc_point point = SCHEDC_POINT_INIT;
  schedc_status status;
  char *to = text;
  *to = 0;
  while ((status = schedc_space_next(space, f->context, &cursor, &point)) == SCHEDC_OK) {
    to += sprintf(to, "%s", to > text ? " " : "");
    if (numbers) to += sprintf(to, "%llu:", (unsigned long long)point.index);
    for (size_t i = 0; i < point.param_count; i++)
      to += sprintf(to, "%s%s", i ? "." : "", point.params[i].value);
    assert_true(to < text + sizeof text - 100);
  }
  assert_int_equal(status, SCHEDC_EARG);
  if (refused) *refused = cursor.refused;
  return text;
}

static uint64_t count(Fixture *f, const schedc_space *space) {
  uint64_t points = 0;
  assert_int_equal(schedc_space_count(space, f->context, &points), SCHEDC_OK);
  return points;
}

// ---- what params are for

// Tensors, whether they are there, their elements, scalars' defaults, the specification, defs that
// it uses, and defaults of such params.
static void kinds_are_inferred(void **state) {
  schedc_space *space = open_space(*state,
                                   "kernel k {\n"
                                   "  param T = f32 in { f32, f16 }\n"
                                   "  param base = 16 in { 16, 32 }\n"
                                   "  param W = 2 * base in { 32, 64 }\n"
                                   "  param S = 2\n"
                                   "  param A = 1, B = 3, g = 1, BM = 64 in { 64, 128 }\n"
                                   "  param early = W in { 0, 32 }\n"
                                   "  param more = false in { false, true }, end = 1 in { 1, 2 }\n"
                                   "  def twice(g) = g * A\n"
                                   "  def thrice(x) = x * B\n"
                                   "  in X : T[M, W]\n"
                                   "  in a : f32 = 1.0 / S\n"
                                   "  in Z : f32[M] if more\n"
                                   "  in L : i32[M] in 0 .. end\n"
                                   "  out Y : f32[M, W]\n"
                                   "  spec { Y[i,j] = twice(X[i,j]) }\n"
                                   "  grid (x : cdiv(M, BM))\n"
                                   "  role r : 1 warp { }\n"
                                   "}\n",
                                   NULL, NULL, NULL, 0);
  static const char *const problem[] = {"T", "base", "W", "S", "A", "more", "end"};
  static const char *const tuning[] = {"B", "g", "BM", "early"};
  for (size_t i = 0; i < sizeof problem / sizeof *problem; i++)
    assert_int_equal(info_of(space, problem[i]).kind, SCHEDC_PROBLEM);
  for (size_t i = 0; i < sizeof tuning / sizeof *tuning; i++)
    assert_int_equal(info_of(space, tuning[i]).kind, SCHEDC_TUNING);
  assert_false(info_of(space, "W").varies);
  assert_false(info_of(space, "B").varies);  // it has no domain
  assert_true(info_of(space, "BM").varies);
  assert_string_equal(info_of(space, "W").value, "32");
  assert_string_equal(info_of(space, "W").written, "32, 64");
  assert_null(info_of(space, "B").written);
  assert_int_equal(info_of(space, "T").type, SCHEDC_VALUE_ELEMENT);
  schedc_space_free(space);
}

static const char pair_of_kernels[] =
    "kernel first {\n"
    "  param D = 32 in { 32, 64 }, BM = 64 in { 32, 64 }\n"
    "  in X : f32[M, D]\n"
    "  out P : f32[cdiv(M, BM), D]\n"
    "  grid (x : cdiv(M, BM))\n"
    "  role r : 1 warpgroup { reg v : f32[64, D] = 0\n P[x + i, j] = v[i,j] if i == 0 }\n"
    "}\n"
    "kernel second {\n"
    "  param BM = 64 in { 32, 64 }, D = 32 in { 32, 64 }, twice = 1 in { 1, 2 }\n"
    "  in P : f32[cdiv(M, BM), D]\n"
    "  out Y : f32[M, D]\n"
    "  require twice * BM <= 64\n"
    "  grid (x : cdiv(M, 64))\n"
    "  role r : 1 warpgroup { reg v : f32[64, D] = 0\n Y[64*x + i, j] = v[i,j] }\n"
    "}\n"
    "sequence both {\n"
    "  workspace P : f32[cdiv(M, BM), D]\n"
    "  first\n"
    "  second\n"
    "}\n";

// What a sequence keeps to itself is no problem of its caller's; params of one name are one.
static void sequences_unite_params(void **state) {
  Fixture *f = *state;
  uint64_t refused;
  schedc_space *space = open_space(f, pair_of_kernels, NULL, NULL, NULL, 0);
  assert_int_equal(schedc_space_param_count(space), 3);
  assert_int_equal(info_of(space, "D").kind, SCHEDC_PROBLEM);
  assert_int_equal(info_of(space, "BM").kind, SCHEDC_TUNING);
  assert_string_equal(walk(f, space, true, &refused), "0:32.1 1:32.2 2:64.1");
  assert_int_equal(refused, 1);
  schedc_point point = SCHEDC_POINT_INIT;
  schedc_cursor cursor = SCHEDC_CURSOR_INIT;
  schedc_probe probe = SCHEDC_PROBE_INIT;
  assert_int_equal(schedc_space_next(space, f->context, &cursor, &point), SCHEDC_OK);
  assert_int_equal(schedc_space_probe(space, f->context, &point, &probe), SCHEDC_OK);
  assert_true(probe.legal);
  schedc_space_free(space);
  space = open_space(f, pair_of_kernels, "first", NULL, NULL, 0);
  assert_int_equal(info_of(space, "BM").kind, SCHEDC_PROBLEM);  // P is its caller's
  assert_string_equal(walk(f, space, false, NULL), "");
  schedc_space_free(space);
}

// Which kernels a sequence launches, and what its own defs say, is its caller's business.
static void guards_and_defs_of_sequences(void **state) {
  schedc_space *space =
      open_space(*state,
                 "kernel k {\n"
                 "  param A = 1 in { 1, 2 }, B = 1 in { 1, 2 }, C = 1 in { 1, 2 }\n"
                 "  in X : f32[M]\n"
                 "  out Y : f32[M]\n"
                 "  role r : 1 warp { }\n"
                 "}\n"
                 "kernel l {\n"
                 "  in X : f32[M], g : f32\n"
                 "  out Z : f32[M]\n"
                 "  role r : 1 warp { }\n"
                 "}\n"
                 "sequence s {\n"
                 "  k\n"
                 "  l if A > 1\n"
                 "  def more(x) = x + B\n"
                 "  def fits(n) = C * n < 9\n"
                 "  require fits(M)\n"
                 "  spec { Y[i] = more(X[i]) }\n"
                 "}\n",
                 NULL, NULL, NULL, 0);
  assert_int_equal(info_of(space, "A").kind, SCHEDC_PROBLEM);
  assert_int_equal(info_of(space, "B").kind, SCHEDC_PROBLEM);
  assert_int_equal(info_of(space, "C").kind, SCHEDC_TUNING);
  schedc_space_free(space);
}

static const char guarded_kernels[] =
    "kernel k {\n"
    "  param A = 1 in { 1, 2 }, B = 1 in { 1, 2 }, C = 1 in { 1, 2 }\n"
    "  in X : f32[M]\n"
    "  out Y : f32[M, B]\n"
    "  require A == 1\n"
    "  role r : 1 warp { }\n"
    "}\n"
    "kernel l {\n"
    "  in X : f32[M]\n"
    "  out Z : f32[M]\n"
    "  role r : 1 warp { }\n"
    "}\n"
    "sequence s {\n"
    "  workspace Y : f32[M, B] if C == 1\n"
    "  k if true\n"
    "  l\n"
    "}\n"
    "sequence sure {\n"
    "  k\n"
    "  k if true\n"
    "}\n";

// What a kernel requires is asked where it is launched. A workspace that is not always one may be
// its caller's.
static void guarded_kernels_refuse_nothing(void **state) {
  Fixture *f = *state;
  uint64_t refused;
  schedc_space *space = open_space(f, guarded_kernels, "s", NULL, NULL, 0);
  assert_int_equal(info_of(space, "A").kind, SCHEDC_TUNING);
  assert_int_equal(info_of(space, "B").kind, SCHEDC_PROBLEM);
  assert_int_equal(info_of(space, "C").kind, SCHEDC_PROBLEM);
  assert_string_equal(walk(f, space, false, &refused), "1 2");
  assert_int_equal(refused, 0);
  schedc_space_free(space);
  space = open_space(f, guarded_kernels, "sure", NULL, NULL, 0);
  assert_string_equal(walk(f, space, false, &refused), "1.1 1.2");
  schedc_space_free(space);
}

// ---- domains

static const char ranges[] =
    "kernel k {\n"
    "  param A = 3 in { 1 .. 4 }, B = 16 in { 8, 16 .. 6 * A + 31 by 16, 16, 8 }\n"
    "  param C = 1 in { -1 .. 2 }\n"
    "  param D = 0.5 in { 0.5, 1 }\n" ARGUMENTS ROLES;

static void domains_may_be_ranges(void **state) {
  Fixture *f = *state;
  const schedc_param fixed[] = {{"A", "3"}};
  schedc_space *space = open_space(f, ranges, NULL, NULL, fixed, 1);
  assert_string_equal(domain_of(space, "B"), "8 16 32 48");  // each once, the end is not in it
  assert_string_equal(domain_of(space, "C"), "-1 0 1");
  assert_string_equal(domain_of(space, "D"), "0.5 1.0");
  assert_string_equal(info_of(space, "B").written, "8, 16 .. 6 * A + 31 by 16, 16, 8");
  assert_int_equal(count(f, space), 4 * 3 * 2);
  schedc_space_free(space);
  schedc_kernel *kernel = NULL;
  schedc_source *source = parse(f, ranges);
  const schedc_param inside[] = {{"B", "48"}}, end[] = {{"A", "4"}}, between[] = {{"B", "17"}};
  assert_int_equal(schedc_instantiate(&kernel, f->context, source, NULL, NULL, inside, 1),
                   SCHEDC_OK);
  schedc_kernel_free(kernel);
  assert_int_equal(schedc_instantiate(&kernel, f->context, source, NULL, NULL, end, 1),
                   SCHEDC_EINPUT);
  assert_string_equal(f->heard.code, "P.domain");
  assert_non_null(strstr(f->heard.rendered, "the domain is 1, 2, 3"));
  assert_int_equal(schedc_instantiate(&kernel, f->context, source, NULL, NULL, between, 1),
                   SCHEDC_EINPUT);
  schedc_source_free(source);
}

// A domain that changes from point to point; the counts are those of its values.
static void domains_may_depend_on_params(void **state) {
  Fixture *f = *state;
  uint64_t refused;
  schedc_space *space = open_space(f,
                                   "kernel k {\n"
                                   "  param A = 2 in { 1 .. 4 }\n"
                                   "  param N = A\n"
                                   "  param B = 0 in { 0 .. N }\n"
                                   "  param C = true in { false, true }\n"
                                   "  require A != 2 or not C\n"
                                   "  require A > 1\n" ARGUMENTS ROLES,
                                   NULL, NULL, NULL, 0);
  assert_int_equal(info_of(space, "B").domain_count, 0);
  assert_string_equal(info_of(space, "B").written, "0 .. N");
  assert_int_equal(count(f, space), 12);
  assert_string_equal(walk(f, space, true, &refused),
                      "2:2.0.false 4:2.1.false 6:3.0.false 7:3.0.true 8:3.1.false 9:3.1.true "
                      "10:3.2.false 11:3.2.true");
  assert_int_equal(refused, 4);
  schedc_space_free(space);
}

static void wrong_domains_are_told(void **state) {
  Fixture *f = *state;
  static const struct {
    const char *param, *code;
  } wrong[] = {
      {"param A = 1 in { 2 .. 2 }", "P.domain"},      {"param A = 1 in { 0.5 .. 2 }", "R9.type"},
      {"param A = 1 in { 0 .. 9 by 0 }", "R9.range"}, {"param A = 1 in { 0 .. 100000 }", "P.limit"},
      {"param A = 1 in { 1, f16 }", "P.value"},       {"param A = 1 in { 1 .. b }", "N.unbound"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char text[1024];
    schedc_space *space = (schedc_space *)f;
    sprintf(text, "kernel k {\n  %s\n" ARGUMENTS ROLES, wrong[i].param);
    schedc_source *source = parse(f, text);
    assert_int_equal(schedc_space_new(&space, f->context, source, NULL, NULL, NULL, 0),
                     SCHEDC_EINPUT);
    assert_null(space);
    assert_string_equal(f->heard.code, wrong[i].code);
    schedc_source_free(source);
  }
}

// ---- points

static const char constrained[] =
    "kernel k {\n"
    "  param A = 1 in { 1, 2 }, B = 1 in { 1 .. 4 }, C = 1 in { 1 .. 1001 }\n"
    "  param E = 1 in { 1, 2 }\n"
    "  param broken = 1 / (A - 1)\n"
    "  case two { A = 2, M = 64 }\n"
    "  require odd(A + B)\n"
    "  require C == B and E == 2\n"
    "  require M > 0\n"
    "  def odd(n) = n % 2 == 1\n" ARGUMENTS ROLES;

// No default is legal, and one fails; a `require` passes by all points that it speaks of.
static void requirements_prune(void **state) {
  Fixture *f = *state;
  uint64_t refused;
  schedc_space *space = open_space(f, constrained, NULL, NULL, NULL, 0);
  assert_null(info_of(space, "broken").value);
  assert_int_equal(count(f, space), 12000);
  assert_string_equal(walk(f, space, true, &refused), "2003:1.2.2.2 6001:2.1.1.2 10005:2.3.3.2");
  assert_int_equal(refused, 11997);
  schedc_space_free(space);
  space = open_space(f, constrained, NULL, "two", NULL, 0);  // tuning goes on in spite of a case
  assert_string_equal(info_of(space, "A").value, "2");
  assert_string_equal(info_of(space, "broken").value, "1");
  assert_int_equal(count(f, space), 12000);
  schedc_space_free(space);
  const schedc_param fixed[] = {{"A", "2"}, {"C", "3"}};
  space = open_space(f, constrained, NULL, NULL, fixed, 2);
  assert_string_equal(walk(f, space, true, &refused), "5:3.2");
  assert_int_equal(refused, 5);
  schedc_space_free(space);
  assert_int_equal(f->heard.reports, 0);
}

// What a `require` speaks of decides at once: these points would take days to look at.
static void requirements_prune_early(void **state) {
  Fixture *f = *state;
  uint64_t refused;
  schedc_space *space = open_space(f,
                                   "kernel k {\n"
                                   "  param A = 1 in { 1, 2 }\n"
                                   "  param X = 1 in { 1 .. 4001 }, Y = 1 in { 1 .. 4001 }\n"
                                   "  param Z = 1 in { 1 .. 4001 }\n"
                                   "  require more(A) > 3\n"
                                   "  require X == 4000\n"
                                   "  require Y == 1\n"
                                   "  require Z == 4000\n"
                                   "  def more(n) = n + 2\n" ARGUMENTS ROLES,
                                   NULL, NULL, NULL, 0);
  alarm(30);
  assert_string_equal(walk(f, space, true, &refused), "127984003999:2.4000.1.4000");
  alarm(0);
  assert_true(refused == 127999999999);
  schedc_space_free(space);
}

// A cursor is a value: a copy goes on from where it was made.
static void cursors_are_values(void **state) {
  Fixture *f = *state;
  schedc_space *space = open_space(f, ranges, NULL, NULL, NULL, 0);
  schedc_cursor cursor = SCHEDC_CURSOR_INIT, copy;
  schedc_point a = SCHEDC_POINT_INIT, b = SCHEDC_POINT_INIT;
  uint64_t n = 0;
  while (schedc_space_next(space, f->context, &cursor, &a) == SCHEDC_OK) {
    assert_int_equal(a.index, n++);
    copy = cursor;
    if (schedc_space_next(space, f->context, &copy, &b)) continue;
    assert_int_equal(b.index, a.index + 1);
  }
  assert_int_equal(n, count(f, space));
  schedc_space_free(space);
}

static void params_of_the_problem_vary_when_told(void **state) {
  Fixture *f = *state;
  const schedc_param range[] = {{"D", NULL}}, unknown[] = {{"E", NULL}}, wrong[] = {{"D", "f16"}};
  schedc_space *space = open_space(f, pair_of_kernels, NULL, NULL, range, 1);
  assert_string_equal(walk(f, space, false, NULL),
                      "32.32.1 32.32.2 32.64.1 64.32.1 64.32.2 64.64.1");
  schedc_space_free(space);
  schedc_source *source = parse(f, pair_of_kernels);
  assert_int_equal(schedc_space_new(&space, f->context, source, NULL, NULL, unknown, 1),
                   SCHEDC_EINPUT);
  assert_string_equal(f->heard.code, "P.unknown");
  assert_int_equal(schedc_space_new(&space, f->context, source, NULL, NULL, wrong, 1),
                   SCHEDC_EINPUT);
  assert_string_equal(f->heard.code, "P.value");
  assert_int_equal(schedc_space_new(&space, f->context, source, "third", NULL, NULL, 0),
                   SCHEDC_EINPUT);
  assert_int_equal(schedc_space_new(&space, f->context, source, NULL, "small", NULL, 0),
                   SCHEDC_EINPUT);
  schedc_source_free(source);
}

static void wrong_calls_are_refused(void **state) {
  Fixture *f = *state;
  schedc_source *source = parse(f, ranges);
  schedc_space *space = (schedc_space *)f;
  const schedc_param nameless = {NULL, "1"};
  uint64_t n;
  schedc_cursor cursor = SCHEDC_CURSOR_INIT;
  schedc_point point = SCHEDC_POINT_INIT;
  schedc_probe probe = SCHEDC_PROBE_INIT;
  schedc_kernel *kernel;
  assert_int_equal(schedc_space_new(NULL, f->context, source, NULL, NULL, NULL, 0), SCHEDC_EARG);
  assert_int_equal(schedc_space_new(&space, f->context, NULL, NULL, NULL, NULL, 0), SCHEDC_EARG);
  assert_null(space);
  assert_int_equal(schedc_space_new(&space, f->context, source, NULL, NULL, &nameless, 1),
                   SCHEDC_EARG);
  assert_int_equal(schedc_space_new(&space, f->context, source, NULL, NULL, NULL, 0), SCHEDC_OK);
  schedc_source_free(source);
  assert_int_equal(schedc_space_count(NULL, f->context, &n), SCHEDC_EARG);
  assert_int_equal(schedc_space_next(space, f->context, NULL, &point), SCHEDC_EARG);
  cursor.size = 0;
  assert_int_equal(schedc_space_next(space, f->context, &cursor, &point), SCHEDC_EARG);
  point.param_count = SCHEDC_MAX_VARIED + 1;
  assert_int_equal(schedc_space_probe(space, f->context, &point, &probe), SCHEDC_EARG);
  point.param_count = 1;  // without a name
  assert_int_equal(schedc_space_probe(space, f->context, &point, &probe), SCHEDC_EARG);
  assert_int_equal(schedc_space_instantiate(&kernel, f->context, space, &point), SCHEDC_EARG);
  assert_int_equal(schedc_space_param_count(NULL), 0);
  schedc_space_free(space);
  schedc_space_free(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(kinds_are_inferred),
      TEST(sequences_unite_params),
      TEST(guarded_kernels_refuse_nothing),
      TEST(guards_and_defs_of_sequences),
      TEST(domains_may_be_ranges),
      TEST(domains_may_depend_on_params),
      TEST(wrong_domains_are_told),
      TEST(requirements_prune),
      TEST(requirements_prune_early),
      TEST(cursors_are_values),
      TEST(params_of_the_problem_vary_when_told),
      TEST(wrong_calls_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
