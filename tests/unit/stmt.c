// Tests of emitted code as a tree of statements: how it is printed, and which names it uses.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiler/emit/emit.h"
#include "fixture.h"

#define NAME "a_name_that_is_fairly_long"
#define MORE "one_more_of_these_names"

// Blocks with braces and without.
static void put_blocks(Cuda *c) {
  cu_open(c, "if (x > 0)");
  cu_line(c, "f(x);");
  cu_else(c, "else");
  cu_line(c, "g(x);");
  cu_close(c);
  cu_open_scope(c);
  cu_open_unrolled(c, "e", 2);
  cu_line(c, "s[e] = 0;");
  cu_close(c);
  cu_close(c);
  cu_open_scope(c);
  cu_var(c, "const int limit = 1;");
  cu_line(c, "f(limit);");
  cu_close(c);
  cu_open(c, "if (x > 1)");
  cu_open_scope(c);
  cu_var(c, "const int limit = 2;");
  cu_line(c, "f(limit);");
  cu_close(c);
  cu_close(c);
  cu_open(c, "if (x > 3)");
  cu_line(c, "f(x);");
  cu_note(c, "why");
  cu_close(c);
  cu_remark(c, "#line 7  // if x > 0 {");
}

static void put_long_lines(Cuda *c) {
  cu_open(c, "if (x > 2)");
  cu_line(c, "f(" NAME ", another_name + " MORE " * 12345678, " NAME ");");
  cu_close(c);
  cu_line(c, "x[0] = at<128, 256>(" NAME " * (another_name + " MORE
             "), at<1, 2>(another_name, another_name));");
  cu_note(c, "why");
  cu_line(c, "x[" NAME " + another_name + " MORE
             " + another_name] = x > 0 ? another_name : x > 1 ? one : two;");
  cu_line(c, "f(" NAME " + another_name * " MORE ", " NAME " + another_name + " MORE ");");
  cu_var(c, "const bool yes = " NAME " * another_name + one > 0 && another_name > 2 || " MORE
            " && another_name > 0;");
  cu_var(c,
         "const bool no = " NAME " * another_name + " MORE " > 0 && another_name + " MORE " > 0;");
}

// Braces only where something needs them, and lines that are broken where they hold together least.
static void layout(void **state) {
  Fixture *f = *state;
  static const char laid_out[] =
      "  if (x > 0) {\n    f(x);\n  } else {\n    g(x);\n  }\n"
      "  #pragma unroll\n  for (int e = 0; e < 2; e++) s[e] = 0;\n"
      "  {\n    const int limit = 1;\n    f(limit);\n  }\n"
      "  if (x > 1) {\n    const int limit = 2;\n    f(limit);\n  }\n"
      "  if (x > 3) {\n    f(x);  // why\n  }\n"
      "  #line 7  // if x > 0 {\n"
      "  if (x > 2)\n    f(a_name_that_is_fairly_long, another_name + one_more_of_these_names * "
      "12345678, "
      "a_name_that_is_fairly_long);\n"
      "  // why\n"
      "  x[0] = at<128, 256>(a_name_that_is_fairly_long * (another_name + "
      "one_more_of_these_names),\n"
      "                      at<1, 2>(another_name, another_name));\n"
      "  x[a_name_that_is_fairly_long + another_name + one_more_of_these_names + another_name] =\n"
      "      x > 0 ? another_name : x > 1 ? one : two;\n"
      "  f(a_name_that_is_fairly_long + another_name * one_more_of_these_names,\n"
      "    a_name_that_is_fairly_long + another_name + one_more_of_these_names);\n"
      "  const bool yes = a_name_that_is_fairly_long * another_name + one > 0 && another_name > 2 "
      "||\n"
      "      one_more_of_these_names && another_name > 0;\n"
      "  const bool no = a_name_that_is_fairly_long * another_name + one_more_of_these_names > 0 "
      "&&\n"
      "      another_name + one_more_of_these_names > 0;\n";
  Str out = {.sc = &f->sc};
  Cuda c = {.sc = &f->sc};
  const Stmt *all = cu_begin(&c);
  put_blocks(&c);
  put_long_lines(&c);
  cu_put_block(&out, 1, all);
  assert_string_equal(out.at, laid_out);
}

// A name counts where a statement has it: not in a text that is thrown away, nor in a comment.
static void counted(void **state) {
  Fixture *f = *state;
  static const char *const name[] = {"row", "row0", "lane", "warp"};
  Str out = {.sc = &f->sc};
  Cuda c = {.sc = &f->sc};
  const Stmt *all = cu_begin(&c);
  for (u32 i = 0; i < COUNT(name); i++) cu_name(&c, name[i]);
  assert_string_equal(cu_text(&c, "$row0 + %d", 1), "$row0 + 1");
  cu_remark(&c, "// $row0");
  cu_open(&c, "if (%s)", cu_text(&c, "$row == $%s", "lane"));
  cu_var(&c, "const int x = $lane + 2*$warp;");
  cu_close(&c);
  cu_put_block(&out, 0, all);
  assert_string_equal(out.at, "// $row0\nif (row == lane) const int x = lane + 2*warp;\n");
  assert_true(!cu_used(&c, "row0") && cu_used(&c, "row"));
  assert_true(cu_used(&c, "lane") && cu_used(&c, "warp"));
}

// A block goes where it is put, however late, and what follows stays behind it.
static void inserted(void **state) {
  Fixture *f = *state;
  Str out = {.sc = &f->sc};
  Cuda c = {.sc = &f->sc};
  const Stmt *all = cu_begin(&c);
  cu_line(&c, "a;");
  Stmt *after = cu_begin(&c);
  cu_line(&c, "c;");
  cu_line(&c, "d;");
  cu_close(&c);
  cu_insert(&c, NULL, after);
  cu_line(&c, "e;");
  Stmt *none = cu_begin(&c);
  cu_close(&c);
  cu_insert(&c, NULL, none);
  cu_put_block(&out, 0, all);
  assert_string_equal(out.at, "c;\nd;\na;\ne;\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(layout), TEST(counted), TEST(inserted)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
