// spaceprobe.c - what a probe says of a point, held against schedc_instantiate and against the
// emitted text; and the example of schedc.h.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "spacekit.h"

// ---- refusals

static schedc_probe probe_with(Fixture *f, const schedc_space *space, const char *name,
                               const char *value) {
  schedc_point point = SCHEDC_POINT_INIT;
  schedc_probe probe = SCHEDC_PROBE_INIT;
  point.param_count = 1;
  point.params[0] = (schedc_param){name, value};
  assert_int_equal(schedc_space_probe(space, f->context, &point, &probe), SCHEDC_OK);
  return probe;
}

static void refusals_have_codes(void **state) {
  Fixture *f = *state;
  static const char text[] =
      "kernel k {\n"
      "  param A = 0 in { 0 .. 8 }\n" ARGUMENTS
      "  require A != 1\n"
      "  ring r : f32[64, 32] * (A == 2 ? 40 : 1)\n"
      "  ring unused : f32[64, 64] * (A == 7 ? 60 : 1)\n"
      "  role load : 1 warp { r <- X[x*64..] }\n"
      "  role all : 1 warpgroup, A == 4 ? 24 : 128 regs {\n"
      "    reg v : f32[64, A == 3 ? 1024 : 32]\n"
      "    wait r\n"
      "    v[i,j] = 1\n"
      "    v[i,j] = v[i,j] + 1\n"
      "    if A != 5 { release r }\n"
      "    Y[x*64 + i, j] = v[i,j]\n"
      "  }\n"
      "}\n";
  static const char *const code[] = {NULL, "P.require",     "R8.smem", "R8.live",
                                     NULL, "R5.unreleased", NULL};
  schedc_space *space = open_space(f, text, NULL, NULL, NULL, 0);
  for (int a = 0; a < 7; a++) {
    char value[8];
    sprintf(value, "%d", a);
    schedc_probe probe = probe_with(f, space, "A", value);
    if (a == 4) continue;
    assert_int_equal(probe.legal, !code[a]);
    if (code[a]) assert_string_equal(probe.refusal, code[a]);
    else assert_true(probe.meaning[0] || probe.meaning[1]);
  }
  assert_true(probe_with(f, space, "A", "7").legal);  // a ring that nobody uses takes no memory
  assert_string_equal(probe_with(f, space, "A", "9").refusal, "P.domain");
  assert_string_equal(probe_with(f, space, "A", "f16").refusal, "P.value");
  assert_string_equal(probe_with(f, space, "B", "1").refusal, "P.unknown");
  assert_int_equal(f->heard.reports, 0);  // a probe says nothing
  schedc_space_free(space);
}

// ---- … against what makes kernels

typedef struct Text {
  char *at;
  size_t n;
} Text;

static int keep(void *user, const char *bytes, size_t n) {
  Text *t = user;
  t->at = realloc(t->at, t->n + n + 1);
  memcpy(t->at + t->n, bytes, n);
  t->n += n;
  return 0;
}

// Without comments, in which parameters and lines of the schedule are cited.
static void strip(Text *t) {
  size_t to = 0;
  for (size_t i = 0; i < t->n;) {
    if (i + 1 < t->n && t->at[i] == '/' && t->at[i + 1] == '/') {
      while (i < t->n && t->at[i] != '\n') i++;
    } else if (i + 1 < t->n && t->at[i] == '/' && t->at[i + 1] == '*') {
      for (i += 2; i + 1 < t->n && (t->at[i] != '*' || t->at[i + 1] != '/');) i++;
      i += 2;
    } else {
      bool blank = t->at[i] == ' ' || t->at[i] == '\n';
      if (blank) i++;
      else t->at[to++] = t->at[i++];
    }
  }
  t->n = to;
}

static uint64_t fnv(const char *at, size_t n) {
  uint64_t h = 14695981039346656037u;
  for (size_t i = 0; i < n; i++) h = (h ^ (uint8_t)at[i]) * 1099511628211u;
  return h;
}

typedef struct Made {
  uint64_t meaning[2], text;
} Made;

typedef struct Judged {
  Made *made;
  size_t n;
  uint64_t legal, refused;
} Judged;

// The first error that instantiating reports, in another context.
static void first_code(void *user, const schedc_diagnostic *d) {
  char *code = user;
  if (!*code && d->severity == SCHEDC_ERROR) strcpy(code, d->code);
}

static void judge(Fixture *f, schedc_context *loud, char *code, const schedc_space *space,
                  const schedc_point *point, Judged *out) {
  schedc_probe probe = SCHEDC_PROBE_INIT;
  schedc_kernel *kernel;
  Text text = {0};
  *code = 0;
  assert_int_equal(schedc_space_probe(space, f->context, point, &probe), SCHEDC_OK);
  schedc_status status = schedc_space_instantiate(&kernel, loud, space, point);
  assert_int_equal(probe.legal, status == SCHEDC_OK);
  out->legal += status == SCHEDC_OK;
  out->refused += status != SCHEDC_OK;
  if (status) assert_string_equal(probe.refusal, code);
  if (status) return;
  assert_int_equal(schedc_build(loud, kernel, SCHEDC_CUDA_C, NULL, keep, &text, NULL), SCHEDC_OK);
  strip(&text);
  out->made[out->n++] = (Made){{probe.meaning[0], probe.meaning[1]}, fnv(text.at, text.n)};
  free(text.at);
  schedc_kernel_free(kernel);
}

static Judged judge_some(Fixture *f, const char *path, const schedc_param *params, size_t n,
                         unsigned one_in) {
  enum { MOST = 4096 };
  char code[32] = "";
  schedc_options options = SCHEDC_OPTIONS_INIT;
  options.sink = first_code;
  options.sink_user = code;
  schedc_context *loud;
  assert_int_equal(schedc_open(&loud, &options), SCHEDC_OK);
  char *text = text_of_file(path);
  schedc_space *space = open_space(f, text, NULL, NULL, params, n);
  schedc_cursor cursor = SCHEDC_CURSOR_INIT;
  schedc_point point = SCHEDC_POINT_INIT;
  Judged out = {.made = calloc(MOST, sizeof(Made))};
  while (schedc_space_next(space, f->context, &cursor, &point) == SCHEDC_OK && out.n < MOST)
    if (point.index / 44 * 2654435761u % one_in == 0) judge(f, loud, code, space, &point, &out);
  schedc_space_free(space);
  schedc_close(loud);
  free(text);
  return out;
}

// Equal meanings: the same text. Out: how many meanings there are among so many texts.
static void compare_meanings(const Judged *j, size_t *meanings, size_t *texts) {
  *meanings = *texts = 0;
  for (size_t a = 0; a < j->n; a++) {
    bool meant = false, written = false;
    for (size_t b = 0; b < a; b++) {
      bool same = !memcmp(j->made[a].meaning, j->made[b].meaning, sizeof j->made[a].meaning);
      if (same) assert_true(j->made[a].text == j->made[b].text);
      meant |= same;
      written |= j->made[a].text == j->made[b].text;
    }
    *meanings += !meant;
    *texts += !written;
  }
}

static void probes_agree_with_kernels(void **state) {
  static const struct {
    const char *path;
    schedc_param fixed[2];
    size_t params;
    unsigned one_in;
  } of[] = {
      {"schedules/gemm.sched", {{0}}, 0, 1},
      {"schedules/fa3_bwd.sched", {{0}}, 0, 1},
      {"schedules/fa3_stale.sched", {{0}}, 0, 61},
      {"schedules/fa3_stale.sched", {{"D", "64"}, {"causal", "true"}}, 2, 197},
      {"schedules/fa3_stale.sched", {{"D", "256"}}, 1, 61},
      {"schedules/fa3_fwd.sched", {{0}}, 0, 23},
  };
  for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
    size_t meanings, texts;
    Judged j = judge_some(*state, of[i].path, of[i].fixed, of[i].params, of[i].one_in * ONE_IN);
    compare_meanings(&j, &meanings, &texts);
    assert_true(ONE_IN > 1 || (j.legal && j.refused));
    assert_int_equal(meanings, texts);  // not promised, but so for these
    free(j.made);
  }
}

static const char sometimes[] =
    "kernel k {\n"
    "  param twice = false in { false, true }, by = 1 in { 1, 2 }\n"
    "  in X : f32[M, 64]\n"
    "  out Y : f32[M, 64]\n"
    "  grid (x : cdiv(M, 64))\n"
    "  role r : 1 warpgroup {\n"
    "    reg v : f32[64, 64]\n"
    "    v[i,j] = X[64*x + i, j]\n"
    "    if twice { v[i,j] = v[i,j] * by }\n"
    "    Y[64*x + i, j] = v[i,j]\n"
    "  }\n"
    "}\n";

// Points that differ in what nothing uses any more are one program.
static void equal_programs_have_one_meaning(void **state) {
  Fixture *f = *state;
  schedc_space *space = open_space(f, sometimes, NULL, NULL, NULL, 0);
  schedc_point point = SCHEDC_POINT_INIT;
  schedc_probe a = SCHEDC_PROBE_INIT, b = SCHEDC_PROBE_INIT;
  point.param_count = 2;
  point.params[0] = (schedc_param){"twice", "false"};
  point.params[1] = (schedc_param){"by", "1"};
  assert_int_equal(schedc_space_probe(space, f->context, &point, &a), SCHEDC_OK);
  point.params[1].value = "2";
  assert_int_equal(schedc_space_probe(space, f->context, &point, &b), SCHEDC_OK);
  assert_true(a.legal && b.legal);
  assert_memory_equal(a.meaning, b.meaning, sizeof a.meaning);
  point.params[0].value = "true";
  assert_int_equal(schedc_space_probe(space, f->context, &point, &b), SCHEDC_OK);
  assert_memory_not_equal(a.meaning, b.meaning, sizeof a.meaning);
  schedc_space_free(space);
}

// ---- the header's example

static int used;

static void use(schedc_kernel *kernel, const schedc_point *point) {
  used += kernel && point->param_count > 0;
}

static void example(schedc_context *context, const schedc_source *source) {
  // begin
  schedc_space *space;
  schedc_param d = {"D", "128"};
  schedc_space_new(&space, context, source, NULL, NULL, &d, 1);
  schedc_cursor cursor = SCHEDC_CURSOR_INIT;
  schedc_point point = SCHEDC_POINT_INIT;
  schedc_probe probe = SCHEDC_PROBE_INIT;
  while (!schedc_space_next(space, context, &cursor, &point)) {
    if (schedc_space_probe(space, context, &point, &probe) || !probe.legal) continue;
    schedc_kernel *kernel;
    schedc_space_instantiate(&kernel, context, space, &point);
    use(kernel, &point);
    schedc_kernel_free(kernel);
  }
  schedc_space_free(space);
  // end
}

static void the_example_of_the_header_works(void **state) {
  Fixture *f = *state;
  char *text = text_of_file("schedules/fa3_alone.sched");
  schedc_source *source = parse(f, text);
  used = 0;
  example(f->context, source);
  assert_int_equal(used, 8);
  schedc_source_free(source);
  free(text);
  char *header = text_of_file("include/schedc.h"), *here = text_of_file("tests/unit/spaceprobe.c");
  char *line = strstr(here, "// begin\n") + 9;
  for (char *end; strncmp(line, "  // end", 8); line = end + 1) {
    char want[256];
    end = strchr(line, '\n');
    sprintf(want, "\n *   %.*s\n", (int)(end - line - 2), line + 2);
    assert_non_null(strstr(header, want));
  }
  free(header);
  free(here);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(refusals_have_codes),
      TEST(probes_agree_with_kernels),
      TEST(equal_programs_have_one_meaning),
      TEST(the_example_of_the_header_works),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
