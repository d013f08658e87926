// Tree to text: the formatter on golden files, all schedules, random texts and parts of a text.
// SCHEDC_UPDATE=1 rewrites the golden files.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <glob.h>

#include "files.h"
#include "fixture.h"
#include "randomtext.h"
#include "roundtrip.h"

static void formatted(void **state) {
  Sc *sc = &((Fixture *)*state)->sc;
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

static void random_texts(void **state) {
  Sc *sc = &((Fixture *)*state)->sc;
  u32 good = 0;
  for (u64 seed = 1; seed <= 400; seed++) {
    Random r = {.s = {.sc = sc}, .seed = seed * 0x9e3779b97f4a7c15u};
    out(&r, "kernel k");
    block(&r, item);
    good += check_roundtrip("random text", r.s.at, r.s.n);
  }
  assert_true(good > 390);
}

// What is cut off anywhere, or lacks any one byte, is read to its end; the tree is whole if nothing
// is reported.
static void cut_texts(void **state) {
  (void)state;
  size_t n;
  char *text = read_file("tests/golden/every.sched", &n);
  for (size_t i = 0; i < n; i += ONE_IN) check_roundtrip("prefix", text, i);
  char *less = malloc(n);
  for (size_t i = 0; i < n; i += ONE_IN) {
    memcpy(less, text, i);
    memcpy(less + i, text + i + 1, n - i - 1);
    check_roundtrip("one byte less", less, n - 1);
  }
  free(less);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(formatted), TEST(all_schedules), TEST(random_texts),
                                     TEST(cut_texts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
