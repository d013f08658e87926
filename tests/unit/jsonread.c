// jsonread.c - the reader of JSON: what it takes, what it refuses and where, and that bytes drawn
// around valid texts neither crash it nor make it read past their end.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/jsonread.h"
#include "fixture.h"

static const JsonValue *read_text(Fixture *f, const char *text, JsonFault *fault) {
  return sc_json_read(&f->sc, text, strlen(text), fault);
}

static void values_are_read(void **state) {
  JsonFault fault;
  const JsonValue *v = read_text(
      *state, " {\"a\\u00e9\\ud83d\\ude00\\n\": [1, -2.5e1, true, null], \"b\": \"\"}\n", &fault);
  assert_non_null(v);
  const JsonValue *a = sc_json_member(v, "a\xc3\xa9\xf0\x9f\x98\x80\n");
  assert_non_null(a);
  assert_int_equal(a->kind, JSON_ARRAY);
  assert_true(a->first->number == 1 && a->first->next->number == -25);
  assert_string_equal(a->first->next->text, "-2.5e1");
  assert_true(a->first->next->next->truth);
  assert_int_equal(a->first->next->next->next->kind, JSON_NULL);
  assert_null(a->first->next->next->next->next);
  assert_string_equal(sc_json_member(v, "b")->text, "");
  assert_null(sc_json_member(v, "c"));
}

static void what_is_wrong_is_refused(void **state) {
  static const struct {
    const char *text;
    u32 at;
    bool ended;
  } wrong[] = {
      {"", 0, true},
      {"{\"a\":1", 6, true},
      {"{\"a", 3, true},
      {"\"\\u00", 5, true},
      {"tru", 3, true},
      {"{\"a\":1,}", 7, false},
      {"[1,]", 3, false},
      {"[1 2]", 3, false},
      {"01", 1, false},
      {"[1.]", 3, false},
      {"[1e]", 3, false},
      {"[+1]", 1, false},
      {"[1e999]", 6, false},
      {"\"\t\"", 1, false},
      {"\"\\x\"", 2, false},
      {"\"\\u0000\"", 7, false},
      {"\"\\ud800\"", 7, false},
      {"\"\\ud800\\u0041\"", 13, false},
      {"\"\xff\"", 1, false},
      {"{\"a\":1,\"a\":2}", 10, false},
      {"1 1", 2, false},
      {"nul]", 3, false},
  };
  for (size_t i = 0; i < COUNT(wrong); i++) {
    JsonFault fault = {0};
    if (read_text(*state, wrong[i].text, &fault)) fail_msg("taken: %s", wrong[i].text);
    if (fault.at != wrong[i].at || fault.ended != wrong[i].ended)
      fail_msg("%s: %s at %u", wrong[i].text, fault.what, fault.at);
  }
}

static void nesting_is_bounded(void **state) {
  char deep[100] = "";
  JsonFault fault;
  for (int i = 0; i < 32; i++) deep[i] = '[', deep[63 - i] = ']';
  assert_non_null(read_text(*state, deep, &fault));
  for (int i = 0; i < 33; i++) deep[i] = '[', deep[65 - i] = ']';
  assert_null(read_text(*state, deep, &fault));
  assert_non_null(strstr(fault.what, "32 deep"));
}

// Each byte of a valid text replaced by each of these, and cut off behind it; and the text cut off
// before it, which is all that is wrong then.
static void damaged_texts_end(void **state) {
  static const char valid[] = "{\"a\\u00e9\":[1.5e-3,true,{\"b\":\"\\\\\xc3\xa9\"}],\"c\":null}";
  static const char bytes[] = "\"\\u{}[]:,0-.e\xc3\x01 t";
  char text[sizeof valid];
  JsonFault fault;
  Fixture *f = *state;
  for (size_t i = 0; i + 1 < sizeof valid; i++) {
    for (size_t b = 0; b < sizeof bytes; b++) {  // the last is a NUL
      memcpy(text, valid, sizeof valid);
      text[i] = bytes[b];
      if (!sc_json_read(&f->sc, text, sizeof text - 1, &fault)) assert_true(fault.at < sizeof text);
      text[i + 1] = 0;
      if (!sc_json_read(&f->sc, text, i + 1, &fault)) assert_true(fault.at <= i + 1);
    }
    memcpy(text, valid, sizeof valid);
    text[i] = 0;
    if (sc_json_read(&f->sc, text, i, &fault) || !fault.ended) fail_msg("cut: %s", text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(values_are_read), TEST(what_is_wrong_is_refused),
                                     TEST(nesting_is_bounded), TEST(damaged_texts_end)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
