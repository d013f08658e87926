// Tests of launcher.c by itself: values of launch time against the compiler's arithmetic, on what
// is at the edges of 64 bits; and what a table has of a sequence.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fakedriver.h"

static const SclOp integer[] = {SCL_NEG,  SCL_ABS, SCL_ADD, SCL_SUB, SCL_MUL, SCL_IDIV, SCL_MOD,
                                SCL_CDIV, SCL_MIN, SCL_MAX, SCL_LT,  SCL_LE,  SCL_EQ,   SCL_NE};
static const i64 edge[] = {0,
                           1,
                           -1,
                           2,
                           -2,
                           3,
                           -3,
                           7,
                           -7,
                           64,
                           INT32_MAX,
                           INT32_MIN,
                           1ll << 31,
                           1ll << 32,
                           1ll << 62,
                           INT64_MAX,
                           INT64_MAX - 1,
                           INT64_MIN,
                           INT64_MIN + 1};

// What it is with a as operand of a launch and b as a constant.
static SclValue value_of(SclOp op, i64 a, i64 b) {
  const SclNode node[] = {
      {SCL_LOAD}, {SCL_DIM}, {.op = SCL_INT, .number = b}, {.op = op, .a = 1, .b = 2}};
  SclValue value[COUNT(node)];
  scl_evaluate(node, COUNT(node), &a, NULL, value);
  return value[COUNT(node) - 1];
}

static void integers_are_the_compilers(void **state) {
  (void)state;
  for (u32 op = 0; op < COUNT(integer); op++) {
    for (u32 i = 0; i < COUNT(edge); i++) {
      for (u32 j = 0; j < COUNT(edge); j++) {
        i64 want = 0;
        bool known = sc_int_op((ExprOp)integer[op], edge[i], edge[j], &want);
        SclValue got = value_of(integer[op], edge[i], edge[j]);
        if (got.known != known || (known && got.i != want))
          fail_msg("%s of %lld and %lld: %lld, known: %d", sc_xop[integer[op]].text,
                   (long long)edge[i], (long long)edge[j], (long long)got.i, got.known);
      }
    }
  }
}

// What does not fit is the nearest that does, so that a grid that is too large stays so.
static void overflow_saturates(void **state) {
  (void)state;
  assert_true(value_of(SCL_MUL, 1ll << 40, 1ll << 40).i == INT64_MAX);
  assert_true(value_of(SCL_MUL, 1ll << 40, -(1ll << 40)).i == INT64_MIN);
  assert_true(value_of(SCL_ADD, INT64_MAX, 1).i == INT64_MAX);
  assert_true(value_of(SCL_SUB, INT64_MIN, 1).i == INT64_MIN);
  assert_true(value_of(SCL_IDIV, 5, 0).i == 0);
}

// A kernel that is launched twice is one function; workspaces come after the caller's tensors,
// those that begin as zeros first.
static void tables_of_sequences(void **state) {
  (void)state;
  static Fixture f;
  begin(&f, ordered, "both", false);
  const SclTable *t = &f.l.tabled.table;
  assert_int_equal(t->functions, 1);
  assert_int_equal(t->steps, 2);
  assert_int_equal(t->turns, 2);
  assert_int_equal(t->given, 1);
  assert_int_equal(t->tensors, 2);
  assert_int_equal(t->tensor[1].kind, SCL_ZEROED);
  assert_string_equal(f.l.k->buf.at[f.l.tabled.tensor[1]].name, "Y");
  assert_int_equal(t->step[1].block % 16, 0);
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(integers_are_the_compilers),
      cmocka_unit_test(overflow_saturates),
      cmocka_unit_test(tables_of_sequences),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
