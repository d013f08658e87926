// diag.c - the text form of reports, compared exactly; JSON and SARIF through the same report.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/base.h"
#include "base/json.h"

typedef struct Fixture {
  Sc sc;
  const Text *text;
  Str out;
} Fixture;

static Fixture open_text(const char *text) {
  Fixture f;
  sc_init(&f.sc, NULL);
  jmp_buf none;
  f.sc.unwind = &none;
  f.text = sc_text(&f.sc, "a.sched", text, strlen(text));
  f.out = (Str){0};
  return f;
}

static const char *render(Fixture *f, const Diag *d) {
  f->out = (Str){.sc = &f->sc};
  sc_diag_text(&f->out, f->text, d);
  return f->out.at;
}

static void one_place(void **state) {
  (void)state;
  Fixture f = open_text("one\ntwo words\n");
  Diag *d = sc_report(&f.sc, D_S_TOKEN, (Span){8, 13}, "no %s here", "words");
  sc_help(&f.sc, d, "remove it");
  assert_string_equal(render(&f, d),
                      "a.sched:2:5: error[S.token]: no words here\n"
                      "    2 | two words\n"
                      "      |     ^^^^^\n"
                      "      = help: remove it\n");
  sc_free(&f.sc);
}

static void notes_share_a_line(void **state) {
  (void)state;
  Fixture f = open_text("async o += p @ v\nx\nwait s;  release v\n");
  Diag *d = sc_report(&f.sc, D_S_TOKEN, (Span){28, 37}, "released too early");
  sc_note(&f.sc, d, (Span){0, 5}, "reads v");
  sc_note(&f.sc, d, (Span){28, 37}, "'load' may refill the stage now");
  sc_note(&f.sc, d, (Span){19, 25}, "covers 's'");
  assert_string_equal(render(&f, d),
                      "a.sched:3:10: error[S.token]: released too early\n"
                      "    1 | async o += p @ v\n"
                      "      | ----- reads v\n"
                      "    3 | wait s;  release v\n"
                      "      | ------ covers 's'\n"
                      "      |          ^^^^^^^^^ 'load' may refill the stage now\n");
  sc_free(&f.sc);
}

static void far_lines_show_a_gap(void **state) {
  (void)state;
  Fixture f = open_text("a\n\n\n\nb\n");
  Diag *d = sc_report(&f.sc, D_S_TOKEN, (Span){5, 6}, "b");
  sc_note(&f.sc, d, (Span){0, 1}, "a");
  assert_string_equal(
      render(&f, d),
      "a.sched:5:1: error[S.token]: b\n    1 | a\n      | - a\n  ...\n    5 | b\n      | ^\n");
  sc_free(&f.sc);
}

static void odd_places(void **state) {
  (void)state;
  Fixture f = open_text("\tx\r\n{\n}");
  assert_string_equal(render(&f, sc_report(&f.sc, D_S_TOKEN, (Span){1, 2}, "tab")),
                      "a.sched:1:2: error[S.token]: tab\n    1 | \tx\n      | \t^\n");
  assert_string_equal(render(&f, sc_report(&f.sc, D_S_TOKEN, (Span){4, 7}, "two lines")),
                      "a.sched:2:1: error[S.token]: two lines\n    2 | {\n      | ^\n");
  assert_string_equal(render(&f, sc_report(&f.sc, D_S_TOKEN, (Span){7, 7}, "end")),
                      "a.sched:3:2: error[S.token]: end\n    3 | }\n      |  ^\n");
  sc_free(&f.sc);
}

static void long_lines_are_cut(void **state) {
  (void)state;
  char text[1001];
  memset(text, 'x', 1000);
  text[1000] = 0;
  Fixture f = open_text(text);
  const char *got = render(&f, sc_report(&f.sc, D_S_TOKEN, (Span){500, 503}, "middle"));
  assert_true(strlen(got) < 400);
  const char *line = strstr(got, "| …"), *caret = strstr(got, "^^^\n");
  assert_non_null(line);
  assert_non_null(caret);
  const char *under = strrchr(got, '|');
  assert_int_equal(caret - under - 2, 1 + 60);  // the ellipsis is one column
  sc_free(&f.sc);
}

static void terminals_are_safe(void **state) {
  (void)state;
  Fixture f = open_text("a\x1b[2Jb\n");
  const char *got = render(&f, sc_report(&f.sc, D_S_TOKEN, (Span){1, 2}, "escape"));
  assert_null(strchr(got, 0x1b));
  sc_free(&f.sc);
}

typedef struct Sink {
  char at[8192];
  size_t n;
} Sink;

static int sink_write(void *user, const char *bytes, size_t n) {
  Sink *s = user;
  if (s->n + n >= sizeof s->at) return 1;
  memcpy(s->at + s->n, bytes, n);
  s->at[s->n += n] = 0;
  return 0;
}

static void json_escapes(void **state) {
  (void)state;
  Sink s = {.n = 0};
  Json j = {.write = sink_write, .user = &s};
  json_open(&j, '[');
  json_text(&j, "q\" b\\ n\n t\t \x01 \xc3\xa4 \xff \xed\xa0\x80");
  json_text(&j, NULL);
  json_int(&j, INT64_MIN);
  json_real(&j, 0.5);
  json_real(&j, -1.0 / 0.0);
  json_open(&j, '{');
  json_key(&j, "k");
  json_bool(&j, true);
  json_close(&j, '}');
  json_close(&j, ']');
  assert_false(j.failed);
  assert_string_equal(s.at,
                      "[\"q\\\" b\\\\ n\\n t\\u0009 \\u0001 \xc3\xa4 \xef\xbf\xbd "
                      "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\",null,-9223372036854775808,0.5,\"-"
                      "inf\",{\"k\":true}]");
}

static int refuse(void *user, const char *bytes, size_t n) {
  (void)bytes;
  (void)n;
  return ++*(int *)user > 2;
}

static void writers_may_refuse(void **state) {
  (void)state;
  int calls = 0;
  schedc_diagnostic d = {
      .size = sizeof d, .code = "S.token", .file = "a", .text = "t", .rendered = ""};
  assert_int_equal(schedc_write_json(&d, refuse, &calls), SCHEDC_EIO);
  assert_int_equal(calls, 3);  // not called again after it refused
  assert_int_equal(schedc_sarif_begin(NULL, NULL), SCHEDC_EARG);
}

static void json_of_a_report(void **state) {
  (void)state;
  Sink s = {.n = 0};
  schedc_note note = {{1, 2, 1, 2, 1, 4}, "here"};
  schedc_diagnostic d = {.size = sizeof d,
                         .code = "S.token",
                         .file = "a b",
                         .where = {5, 1, 2, 1, 2, 2},
                         .text = "wrong",
                         .notes = &note,
                         .note_count = 1,
                         .rendered = ""};
  assert_int_equal(schedc_write_json(&d, sink_write, &s), SCHEDC_OK);
  assert_string_equal(
      s.at,
      "{\"severity\":\"error\",\"code\":\"S.token\",\"file\":\"a "
      "b\",\"range\":{\"offset\":5,\"length\":1,"
      "\"line\":2,\"column\":1,\"end_line\":2,\"end_column\":2},\"text\":\"wrong\",\"help\":null,"
      "\"notes\":[{\"range\":{\"offset\":1,\"length\":2,\"line\":1,\"column\":2,\"end_line\":1,"
      "\"end_column\":4},\"text\":\"here\"}]}");
  s.n = 0;
  assert_int_equal(schedc_sarif_result(&d, 1, sink_write, &s), SCHEDC_OK);
  assert_non_null(strstr(s.at, "\"uri\":\"a%20b\""));
  assert_non_null(strstr(s.at, "\"codeFlows\":[{\"threadFlows\""));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_place),
      cmocka_unit_test(notes_share_a_line),
      cmocka_unit_test(far_lines_show_a_gap),
      cmocka_unit_test(odd_places),
      cmocka_unit_test(long_lines_are_cut),
      cmocka_unit_test(terminals_are_safe),
      cmocka_unit_test(json_escapes),
      cmocka_unit_test(writers_may_refuse),
      cmocka_unit_test(json_of_a_report),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
