// Texts: lines and columns, and reals that read back exactly, in any locale.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <string.h>

#include "base/base.h"

static void lines_and_columns(void **state) {
  (void)state;
  Sc sc;
  sc_init(&sc, NULL);
  Text *t = sc_text(&sc, "x", "ab\ncd\n", 6);
  assert_int_equal(t->lines, 3);
  LineCol p = sc_line_col(t, 4);
  assert_int_equal(p.line, 2);
  assert_int_equal(p.col, 2);
  p = sc_line_col(t, 6);  // the end of the text
  assert_int_equal(p.line, 3);
  assert_int_equal(p.col, 1);
  sc_free(&sc);
}

static void misspelt(void **state) {
  static const struct {
    const char *written, *name;
    bool near;
  } pair[] = {
      {"release", "release", false},  // that is it
      {"relase", "release", true},
      {"releasse", "release", true},
      {"rleease", "release", true},
      {"rlaxes", "release", false},
      {"wiat", "wait", true},
      {"f61", "f16", true},
      {"f8", "f16", false},
      {"x", "y", false},
      {"", "in", false},
      {"a_name_of_more_than_32_characters", "a_name_of_more_than_32_charakters", false},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(pair); i++) {
    u32 slips = sc_slips(pair[i].written);
    assert_int_equal(sc_nearer(pair[i].written, pair[i].name, &slips), pair[i].near);
  }
  u32 slips = sc_slips("relaze");
  assert_true(sc_nearer("relaze", "relax", &slips));
  assert_false(sc_nearer("relaze", "release", &slips));  // not as near
  assert_true(sc_nearer("relaze", "relate", &slips));
  assert_false(sc_nearer("relaze", "relabe", &slips));  // no nearer
}

static void print_real(Sc *sc, double v, const char *want) {
  Str s = {.sc = sc};
  str_real(&s, v);
  assert_string_equal(s.at, want);
  double back;
  if (isfinite(v) && v >= 0) {
    assert_true(sc_read_real(sc, s.at, s.n, &back));
    assert_memory_equal(&back, &v, sizeof v);
  }
}

static void check_reals(Sc *sc) {
  print_real(sc, 0, "0.0");
  print_real(sc, -0.0, "-0.0");
  print_real(sc, 1, "1.0");
  print_real(sc, 0.1, "0.1");
  print_real(sc, 1.4426950408889634, "1.4426950408889634");
  print_real(sc, 1e300, "1e+300");
  print_real(sc, 5e-324, "5e-324");
  print_real(sc, 1.5e-7, "1.5e-07");
  print_real(sc, INFINITY, "inf");
  print_real(sc, -INFINITY, "-inf");
  print_real(sc, NAN, "nan");
  double v;
  assert_false(sc_read_real(sc, "1e999", 5, &v));
  assert_true(sc_read_real(sc, "2.5e-1 trailing", 6, &v));
  assert_true(v == 0.25);
}

static void reals(void **state) {
  (void)state;
  Sc sc;
  sc_init(&sc, NULL);
  check_reals(&sc);
  // Locales with a decimal comma must change nothing (skipped silently where none is installed).
  static const char *const comma[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8"};
  for (size_t i = 0; i < COUNT(comma); i++)
    if (setlocale(LC_NUMERIC, comma[i])) check_reals(&sc);
  setlocale(LC_NUMERIC, "C");
  sc_free(&sc);
}

// Keys that begin alike, and differ in a word, in their length or in their kind, have numbers of
// their own, also when there is new room for them, and none once they are cleared.
static void keys(void **state) {
  enum { KEYS = 3000, WORDS = 7 };
  (void)state;
  Sc sc;
  Keys all = {0};
  sc_init(&sc, NULL);
  for (u32 round = 0; round < 2; round++) {
    for (u32 i = 0; i < KEYS; i++) {
      u64 words[WORDS] = {1, 2, 0, 0, 0, 0, i / WORDS};
      size_t bytes = (1 + i % WORDS) * sizeof *words;
      const u32 expected = 1 + (i % WORDS == WORDS - 1 ? i : i % WORDS);
      assert_int_equal(sc_key_number(&all, 1, words, bytes), 0);
      u32 *number = &sc_key(&sc, &all, 0, words, bytes)->number;
      assert_int_equal(*number != 0, round || i >= expected);
      *number = expected;
      assert_int_equal(sc_key_number(&all, 0, words, bytes), expected);
    }
  }
  sc_keys_clear(&all);
  assert_int_equal(sc_key_number(&all, 0, &(u64){1}, 8), 0);
  assert_int_equal(sc_key(&sc, &all, 0, "", 0)->number, 0);
  sc_free(&sc);
}

// Of so many keys some have one hash, and many stand where others would: of numbers that differ in
// their bytes, and of no bytes in kinds that differ. Each number was new when it was given.
static void keys_of_one_hash(void **state) {
  enum { KEYS = 200000 };
  (void)state;
  Sc sc;
  Keys all = {0};
  sc_init(&sc, NULL);
  for (u32 i = 0; i < KEYS; i++) {
    u32 *of_bytes = &sc_key(&sc, &all, 0, &(u64){i}, sizeof(u64))->number;
    assert_int_equal(*of_bytes, 0);
    *of_bytes = 2 * i + 1;
    u32 *of_kind = &sc_key(&sc, &all, i, "", 0)->number;
    assert_int_equal(*of_kind, 0);
    *of_kind = 2 * i + 2;
  }
  for (u32 i = 0; i < KEYS; i++) {
    assert_int_equal(sc_key_number(&all, 0, &(u64){i}, sizeof(u64)), 2 * i + 1);
    assert_int_equal(sc_key_number(&all, i, "", 0), 2 * i + 2);
  }
  sc_free(&sc);
}

static void numbers_in_order(void **state) {
  (void)state;
  u32 whole[] = {7, 4000000000u, 0, 7};
  sc_sort_u32(whole, 4);
  assert_true(whole[0] == 0 && whole[1] == 7 && whole[2] == 7 && whole[3] == 4000000000u);
  assert_true(sc_median((double[]){5, -1, 2}, 3) == 2);
  assert_true(sc_median((double[]){8, 1, 2, 4}, 4) == 3);
  assert_true(sc_median(NULL, 0) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(lines_and_columns),
                                     cmocka_unit_test(misspelt),
                                     cmocka_unit_test(reals),
                                     cmocka_unit_test(keys),
                                     cmocka_unit_test(keys_of_one_hash),
                                     cmocka_unit_test(numbers_in_order)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
