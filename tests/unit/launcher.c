// Tests of launcher.c by itself: values of launch time against the compiler's arithmetic, on what
// is at the edges of 64 bits; what a table has of a sequence; and what is refused where no binding
// has looked at it before.
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

// ---- lists

static const char listed[] =
    "kernel make {\n"
    "  in n : i32[P]\n"
    "  out at : i32[P]\n"
    "  role a : 1 warpgroup, 64 regs { reg x : i32[64];  x[i] = n[i];  at[i] = x[i] }\n"
    "}\n"
    "kernel use {\n"
    "  in at : i32[P] in 0 .. Q rising, p, q, r, s, u : i32[P] in 1 .. Q + 1, X : f32[Q]\n"
    "  out Y : f32[P]\n"
    "  role a : 1 warpgroup, 64 regs {\n"
    "    reg y : f32[64]\n"
    "    y[i] = where(at[i] + p[i] + q[i] + r[i] + s[i] + u[i] > 7, X[i], 0);  Y[i] = y[i]\n"
    "  }\n"
    "}\n"
    "sequence all {\n"
    "  workspace at : i32[P]\n"
    "  make\n"
    "  use\n"
    "  use\n"
    "  make\n"
    "  use\n"
    "}\n";

enum { P = 3000, Q = 40 };

static void give_lists(schedc_tensor *t, const Fixture *f, i64 q) {
  for (u32 i = 0; i < f->l.tensors; i++) {
    const Buf *b = sc_tabled(f->l.k, &f->l.tabled, i);
    const i64 n = !strcmp(b->name, "X") ? q : P;
    t[i] = (schedc_tensor){NULL, DATA(X_AT + 0x10000 * i), (schedc_type)b->elem, 1, {n}, {1}};
  }
}

// Lists that no kernel writes are looked at first; others before a kernel that relies on them, and
// again where one has written them since: four by one launch, at most.
static void lists_of_sequences(void **state) {
  (void)state;
  static const u32 checks[] = {2, 1, 0, 0, 1}, lists[] = {4, 1, 1, 1};
  static Fixture f;
  begin(&f, listed, "all", false);
  const SclTable *t = &f.l.tabled.table;
  assert_int_equal(t->steps, COUNT(checks));
  for (u32 i = 0; i < t->steps; i++)
    assert_int_equal(t->step[i].check.to - t->step[i].check.from, checks[i]);
  assert_int_equal(t->checks, COUNT(lists));
  for (u32 i = 0; i < t->checks; i++) assert_int_equal(t->check[i].lists, lists[i]);
  assert_string_equal(t->function[t->checker].name, "sc_check_lists");
  const u32 again = t->check[3].list[0].tensor;
  assert_string_equal(sc_tabled(f.l.k, &f.l.tabled, again)->name, "at");
  assert_true(t->check[3].list[0].rising);
  Tabled trusting;
  sc_table(&f.sc, f.l.k, f.l.text, true, &trusting);
  assert_int_equal(trusting.table.checks, 0);
  assert_int_equal(trusting.table.functions, 2);
  end(&f);
}

// A kernel that lists are checked for does not begin before that is over, nor the check before the
// kernel in front of it has ended.
static void lists_are_checked_in_order(void **state) {
  (void)state;
  static Fixture f;
  schedc_tensor t[9];
  begin(&f, listed, "all", false);
  give_lists(t, &f, Q);
  const LaunchCall call = {.tensor = t, .workspace = Y_AT, .workspace_bytes = 1 << 20};
  assert_int_equal(sc_launch(&f.sc, &f.l, &call), SCHEDC_OK);
  assert_int_equal(note.launches, 5 + 4);
  assert_int_equal(note.overlapping, 2);  // the second `use`, and the `make` behind it
  const SclLists *first = f.l.last->lists, *last = first + 3;
  assert_int_equal(first->lists, 4);
  assert_int_equal(last->lists, 1);
  assert_int_equal(last->list[0].at, Y_AT);
  assert_int_equal(last->list[0].elements, P);
  assert_int_equal(last->list[0].stride[0], 1);
  assert_int_equal(last->list[0].end, Q);
  assert_int_equal(first->list[0].least, 1);
  assert_int_equal(first->list[0].end, Q + 1);
  assert_false(first->list[0].rising);
  give_lists(t, &f, 0);  // no element may be in 1 .. 1
  assert_int_equal(sc_launch(&f.sc, &f.l, &call), SCHEDC_EINPUT);
  assert_string_equal(sc_diag_code(f.sc.diags->id), "T.require");
  assert_non_null(strstr(f.sc.diags->text, "'p' has elements"));
  assert_int_equal(note.launches, 5 + 4);
  end(&f);
}

// ---- what a C header's launch refuses: nobody has looked at extents and strides before

static const char shared[] =
    "kernel shared {\n"
    "  in n : i32, X : f32[M / n, 64]\n"
    "  out Y : f32[M / n, 64]\n"
    "  role a : 1 warpgroup, 64 regs { reg s : f32[64, 64];  s[i,j] = X[i,j];  Y[i,j] = s[i,j] }\n"
    "}\n";

static SclWhy refusal(Fixture *f, i64 m, double n, i64 x_stride, i64 y_stride) {
  static _Alignas(64) char room[1 << 14];
  const i64 stride[2][2] = {{x_stride, 1}, {y_stride, 1}};
  const SclGiven given[2] = {{X_AT, stride[0]}, {Y_AT, stride[1]}};
  const SclCall call = {.tensor = given, .dim = &m, .scalar = &n};
  SclPlan plan;
  assert_true(scl_lay_out(&f->l.tabled.table, &plan, room) <= sizeof room);
  return scl_make_plan(&(SclJob){&f->l.tabled.table, &f->l.kernel, f->l.function, &call, &plan})
      .why;
}

static void written_elements_are_apart(void **state) {
  (void)state;
  static Fixture f;
  begin(&f, shared, NULL, false);
  assert_int_equal(refusal(&f, 64, 1, 64, 64), SCL_FINE);
  assert_int_equal(refusal(&f, 64, 1, 0, 64), SCL_FINE);
  assert_int_equal(refusal(&f, 64, 1, 64, 0), SCL_SHARED_ELEMENTS);
  assert_int_equal(refusal(&f, 64, 1, 64, 63), SCL_SHARED_ELEMENTS);
  assert_int_equal(refusal(&f, 1, 1, 64, 0), SCL_FINE);
  assert_int_equal(refusal(&f, 64, 1, 64, INT64_MAX / 2), SCL_SHARED_ELEMENTS);
  end(&f);
}

static void extents_have_values(void **state) {
  (void)state;
  static Fixture f;
  begin(&f, shared, NULL, false);
  assert_int_equal(refusal(&f, 64, 2, 64, 64), SCL_FINE);
  assert_int_equal(refusal(&f, 64, 0, 64, 64), SCL_NO_SIZE);
  assert_int_equal(refusal(&f, 64, -2, 64, 64), SCL_NO_SIZE);
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(integers_are_the_compilers), cmocka_unit_test(overflow_saturates),
      cmocka_unit_test(tables_of_sequences),        cmocka_unit_test(lists_of_sequences),
      cmocka_unit_test(lists_are_checked_in_order), cmocka_unit_test(written_elements_are_apart),
      cmocka_unit_test(extents_have_values),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
