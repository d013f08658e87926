// Facts of integers: a list of what must be proved. (facts_random.c: nothing is that is not so.)
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiler/facts/path.h"
#include "factskit.h"

// ---- what must be proved

#define BELOW(a, b) assert_true(sc_fact_less(f->facts, a, b))
#define NONNEG(x) assert_true(sc_fact_nonneg(f->facts, x))
#define ADD(a, b) X(ADD, a, b)
#define SUB(a, b) X(SUB, a, b)
#define MUL(a, b) X(MUL, a, b)

static void require(Fix *f, Xid cond) { PUSH(&f->sc, &f->k->require, ((Require){.cond = cond})); }

static Xid divides(Fix *f, Xid a, Xid b) { return X(EQ, X(MOD, a, b), INT(0)); }

static void quotients_and_remainders(void **state) {
  Fix *f = *state;
  Xid down = X(IDIV, f->n, INT(64)), up = X(CDIV, f->n, INT(64));
  know(f);
  NONNEG(down);
  NONNEG(SUB(f->n, MUL(down, INT(64))));
  NONNEG(SUB(MUL(up, INT(64)), f->n));
  BELOW(MUL(up, INT(64)), ADD(f->n, INT(64)));
  BELOW(X(MOD, f->n, INT(64)), INT(64));
  NONNEG(X(MOD, f->s, INT(64)));
  Xid some = X(MAX, f->m, INT(1));
  NONNEG(SUB(f->n, MUL(X(IDIV, f->n, some), some)));
  NONNEG(X(IDIV, f->n, some));
  assert_false(sc_fact_nonneg(f->facts, X(IDIV, f->n, f->m)));  // m may be 0
  assert_true(sc_fact_equal(f->facts, X(IDIV, ADD(f->n, INT(64)), INT(64)), ADD(down, INT(1))));
  assert_true(sc_fact_equal(f->facts, X(IDIV, X(IDIV, f->n, INT(4)), INT(16)), down));
  assert_true(sc_fact_equal(f->facts, X(IDIV, ADD(X(IDIV, f->n, INT(4)), INT(3)), INT(16)),
                            X(IDIV, ADD(f->n, INT(12)), INT(64))));
  assert_false(sc_fact_nonneg(f->facts, f->s));
  assert_false(sc_fact_nonneg(f->facts, X(IDIV, f->s, INT(64))));
}

static void tiles_of_the_grid(void **state) {
  Fix *f = *state;
  axis(f, X(CDIV, f->n, INT(64)), 1);
  axis(f, X(CDIV, f->n, INT(128)), 2);
  know(f);
  BELOW(MUL(f->a, INT(64)), f->n);
  assert_false(sc_fact_less(f->facts, ADD(MUL(f->a, INT(64)), INT(63)), f->n));
  assert_false(sc_fact_less(f->facts, MUL(f->c, INT(128)), f->n));  // it may be past the end, …
  assert_true(sc_fact_past(f->facts, 1, ADD(MUL(f->c, INT(128)), MUL(f->w, INT(64))), f->n));
  assert_false(sc_fact_past(f->facts, 1, MUL(f->c, INT(64)), f->n));
}

static void whole_tiles(void **state) {
  Fix *f = *state;
  require(f, divides(f, f->n, INT(64)));
  axis(f, X(CDIV, f->n, INT(64)), 1);
  axis(f, f->m, 1);
  know(f);
  assert_true(sc_fact_inside(f->facts, MUL(f->a, INT(64)), 64, f->n));
  assert_false(sc_fact_inside(f->facts, MUL(f->a, INT(64)), 65, f->n));
  assert_true(sc_fact_multiple(f->facts, f->n, 32));
  assert_true(sc_fact_equal(f->facts, X(CDIV, f->n, INT(64)), X(IDIV, f->n, INT(64))));
}

// h * G / H is below G where heads share: but for G = 0, which a requirement excludes.
static void shared_heads(void **state) {
  Fix *f = *state;
  axis(f, f->n, 1);
  axis(f, INT(1), 1);
  Xid shared = X(IDIV, MUL(f->a, f->m), f->n);
  know(f);
  assert_false(sc_fact_less(f->facts, shared, f->m));
  require(f, divides(f, f->n, f->m));
  know(f);
  BELOW(shared, f->m);
  NONNEG(shared);
}

// One of n parts of a dimension, and a place in it.
static void places_in_parts(void **state) {
  Fix *f = *state;
  Xid part = X(IDIV, f->n, INT(4));
  axis(f, INT(4), 1);
  axis(f, INT(1), 1);
  ins(f, OP_FOR, 0, 0, part);
  know(f);
  BELOW(ADD(MUL(f->a, part), f->i), f->n);
  assert_false(sc_fact_less(f->facts, ADD(ADD(MUL(f->a, part), f->i), INT(1)), f->n));
}

static void parts_of_unknown_number(void **state) {
  Fix *f = *state;
  Xid part = X(IDIV, f->n, f->m);
  axis(f, f->m, 1);
  axis(f, INT(1), 1);
  ins(f, OP_FOR, 0, 0, part);
  know(f);
  BELOW(ADD(MUL(f->a, part), f->i), f->n);
}

static void least_and_greatest(void **state) {
  Fix *f = *state;
  axis(f, INT(1), 1);
  axis(f, INT(1), 1);
  ins(f, OP_FOR, 0, X(MAX, f->s, INT(0)), X(MIN, f->n, f->m));
  know(f);
  NONNEG(f->i);
  BELOW(f->i, f->n);
  BELOW(f->i, X(MIN, f->n, f->m));
  NONNEG(SUB(X(MAX, f->n, f->s), X(MIN, f->n, f->m)));
  NONNEG(SUB(SUB(ADD(f->n, f->m), X(MIN, f->n, f->m)), X(MAX, f->n, f->m)));
  Xid chosen = x_make(&f->sc, f->k, X_WHERE, X(LT, f->n, f->m), SUB(f->m, f->n), SUB(f->n, f->m));
  NONNEG(chosen);
}

static bool refuted(Fix *f, Xid cond) { return sc_facts_refute(f->facts, cond, true); }

// What contradicts itself is true of nothing; behind it all is as before.
static void contradictions(void **state) {
  Fix *f = *state;
  Xid rest = X(MOD, f->s, INT(3)), odd = X(EQ, X(MOD, f->s, INT(2)), INT(1));
  know(f);
  assert_true(refuted(f, X(AND, X(LT, INT(5), f->s), X(LT, f->s, INT(3)))));
  assert_true(refuted(f, X(AND, X(EQ, rest, INT(0)), X(EQ, rest, INT(1)))));
  assert_true(refuted(f, X(AND, X(NE, rest, INT(0)), X(EQ, rest, INT(0)))));
  assert_true(refuted(f, X(EQ, MUL(f->s, INT(2)), INT(5))));
  assert_true(refuted(f, X(AND, X(EQ, f->n, INT(0)), X(LT, INT(0), MUL(f->n, f->m)))));
  assert_false(refuted(f, X(AND, X(LT, INT(5), f->s), X(LT, f->s, INT(7)))));
  assert_false(refuted(f, X(AND, X(EQ, rest, INT(0)), odd)));
  assert_false(refuted(f, X(AND, X(NE, rest, INT(0)), X(NE, rest, INT(1)))));
  assert_false(sc_fact_nonneg(f->facts, f->s));
}

static void conditions(void **state) {
  Fix *f = *state;
  axis(f, INT(1), 1);
  axis(f, INT(1), 1);
  ins(f, OP_IF, X(AND, X(LT, INT(2), f->s), X(NE, f->n, INT(0))), 0, 0);
  know(f);
  BELOW(INT(2), f->s);
  NONNEG(SUB(f->n, INT(1)));
  sc_facts_at(f->facts, &f->k->role.at[0].code, 1);  // before it
  assert_false(sc_fact_less(f->facts, INT(2), f->s));
  ins(f, OP_ELSE, 0, 0, 0);
  ins(f, OP_IF, X(EQ, f->s, INT(7)), 0, 0);
  sc_facts_at(f->facts, &f->k->role.at[0].code, 4);
  assert_false(sc_fact_less(f->facts, INT(2), f->n));
  assert_true(sc_fact_equal(f->facts, f->s, INT(7)));
}

// An extent chosen by the condition of an `if` around is known there, in both of its parts.
static void choices_that_are_made(void **state) {
  Fix *f = *state;
  axis(f, INT(1), 1);
  axis(f, INT(1), 1);
  Xid same = X(EQ, f->n, f->m), rest = X(MIN, f->m, INT(9));
  Xid extent = x_make(&f->sc, f->k, X_WHERE, same, INT(0), f->n);
  ins(f, OP_IF, same, 0, 0);
  know(f);
  NONNEG(SUB(INT(0), extent));
  assert_false(sc_fact_at_most(f->facts, rest, extent));
  ins(f, OP_ELSE, 0, 0, 0);
  know(f);
  NONNEG(SUB(extent, f->n));
  assert_false(sc_fact_at_most(f->facts, f->m, extent));
  ins(f, OP_ENDIF, 0, 0, 0);
  know(f);
  assert_false(sc_fact_at_most(f->facts, f->n, extent));
}

// So are those that say the same, or the contrary, in other words.
static void choices_in_other_words(void **state) {
  Fix *f = *state;
  axis(f, INT(1), 1);
  axis(f, INT(1), 1);
  static const struct {
    ExprOp outside, choice;
    bool turned;  // the choice has its operands the other way round
    bool truth;   // what it is where the condition outside holds
    bool either;  // and elsewhere it may be either
  } row[] = {
      {X_NE, X_EQ, false, false, false}, {X_EQ, X_EQ, true, true, false},
      {X_NE, X_EQ, true, false, false},  {X_LT, X_LE, true, false, false},
      {X_LE, X_LT, true, false, false},  {X_EQ, X_NE, false, false, false},
      {X_LT, X_EQ, false, false, true},  {X_LT, X_NE, true, true, true},
  };
  for (u32 i = 0; i < COUNT(row); i++) {
    Xid a = row[i].turned ? f->m : f->n, b = row[i].turned ? f->n : f->m;
    Xid outside = x_make(&f->sc, f->k, row[i].outside, f->n, f->m, 0);
    Xid choice = x_make(&f->sc, f->k, row[i].choice, a, b, 0);
    Xid extent = x_make(&f->sc, f->k, X_WHERE, choice, INT(7), INT(9));
    ins(f, OP_IF, outside, 0, 0);
    know(f);
    NONNEG(SUB(extent, INT(row[i].truth ? 7 : 9)));
    NONNEG(SUB(INT(row[i].truth ? 7 : 9), extent));
    ins(f, OP_ELSE, 0, 0, 0);
    know(f);
    if (row[i].either) {
      assert_false(sc_fact_at_most(f->facts, extent, INT(8)));
    } else {
      NONNEG(SUB(extent, INT(row[i].truth ? 9 : 7)));
      NONNEG(SUB(INT(row[i].truth ? 9 : 7), extent));
    }
    ins(f, OP_ENDIF, 0, 0, 0);
    know(f);
    assert_false(sc_fact_at_most(f->facts, extent, INT(8)));
    assert_false(sc_fact_at_most(f->facts, INT(8), extent));
  }
}

static void multiples_and_rounds(void **state) {
  Fix *f = *state;
  axis(f, INT(1), 1);
  axis(f, INT(1), 1);
  ins(f, OP_FOR, 0, 0, INT(4));
  know(f);
  Xid even = MUL(f->i, INT(64)), odd = ADD(even, INT(32));
  assert_true(sc_fact_multiple(f->facts, ADD(even, INT(128)), 64));
  assert_false(sc_fact_multiple(f->facts, odd, 64));
  assert_true(sc_fact_multiple(f->facts, X(MIN, even, INT(96)), 32));
  assert_true(sc_fact_steps(f->facts, odd, 64));
  assert_true(sc_fact_steps(f->facts, ADD(odd, f->s), 64));
  assert_false(sc_fact_steps(f->facts, even, 128));
  assert_true(sc_fact_disjoint_rounds(f->facts, even, 32, odd, 32));
  assert_false(sc_fact_disjoint_rounds(f->facts, even, 33, odd, 32));
  assert_true(sc_fact_disjoint(f->facts, f->i, 1, ADD(f->i, INT(1)), 1));
  assert_false(sc_fact_disjoint_rounds(f->facts, f->i, 1, ADD(f->i, INT(1)), 1));
  assert_true(sc_fact_disjoint_rounds(f->facts, f->s, 8, ADD(f->s, INT(8)), 8));
}

// A number that is given to another expression is that one's: whether it varies, too.
static void expressions_taken_back(void **state) {
  Fix *f = *state;
  axis(f, INT(1), 1);
  axis(f, INT(1), 1);
  ins(f, OP_FOR, 0, 0, INT(4));
  know(f);
  u32 kept = f->k->expr.n, five = INT(5);
  Xid before = x_make(&f->sc, f->k, X_WHERE, X(LT, f->s, five), f->n, f->m);
  assert_true(sc_fact_steps(f->facts, before, 4));
  x_forget(f->k, kept);
  sc_facts_forget(f->facts, kept);
  sc_facts_at(f->facts, &f->k->role.at[0].code, f->k->role.at[0].code.n);
  Xid after = x_make(&f->sc, f->k, X_WHERE, X(LT, f->i, INT(6)), f->n, f->m);
  assert_int_equal(before, after);
  assert_false(sc_fact_steps(f->facts, after, 4));
}

static void what_a_loop_reaches(void **state) {
  Fix *f = *state;
  i64 lo, hi;
  axis(f, INT(1), 1);
  axis(f, INT(1), 1);
  ins(f, OP_FOR, 0, INT(1), INT(4));
  know(f);
  assert_true(sc_fact_reaches(f->facts, ADD(MUL(f->i, INT(64)), f->w), &lo, &hi));
  assert_true(lo == 64 && hi == 3 * 64 + INSTANCES - 1);
  assert_false(sc_fact_reaches(f->facts, ADD(f->i, f->n), &lo, &hi));
  assert_false(sc_fact_reaches(f->facts, X(MOD, f->i, INT(2)), &lo, &hi));
  ins(f, OP_IF, X(NE, f->i, INT(3)), 0, 0);
  sc_facts_at(f->facts, &f->k->role.at[0].code, 3);
  assert_false(sc_fact_reaches(f->facts, f->i, &lo, &hi));
}

// An expression without an end in sight costs no more than a bounded effort.
static void deep_expressions(void **state) {
  Fix *f = *state;
  Xid x = f->s, y = f->n;
  for (u32 i = 0; i < 300; i++) {
    Xid z = X(MIN, ADD(x, f->m), X(MAX, y, ADD(x, INT(i))));
    y = x;
    x = z;
  }
  know(f);
  assert_false(sc_fact_nonneg(f->facts, x));
  assert_false(sc_fact_less(f->facts, x, y));
}

// Both sides of a conjunction are the one before: 2^30 comparisons, if each is taken apart anew.
static void deep_conditions(void **state) {
  Fix *f = *state;
  Xid c = X(LT, f->n, f->m), d = X(LT, INT(3), f->s);
  for (u32 i = 0; i < 30; i++) c = X(AND, X(AND, c, d), X(AND, d, X(AND, c, X(LT, f->n, INT(i)))));
  require(f, c);
  know(f);
  BELOW(f->n, f->m);
}

static void sums_of_many_terms(void **state) {
  Fix *f = *state;
  Xid some = 0, all = INT(0);
  for (i64 i = 1; i <= 20; i++) {
    all = ADD(all, X(MIN, f->s, INT(i)));
    if (i == 12) some = all;
  }
  know(f);
  assert_true(sc_fact_equal(f->facts, all, all));
  assert_false(sc_fact_equal(f->facts, some, all));
  assert_false(sc_fact_nonneg(f->facts, SUB(all, some)));
}

int main(void) {
#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(quotients_and_remainders),
      TEST(contradictions),
      TEST(tiles_of_the_grid),
      TEST(whole_tiles),
      TEST(shared_heads),
      TEST(places_in_parts),
      TEST(parts_of_unknown_number),
      TEST(least_and_greatest),
      TEST(conditions),
      TEST(choices_that_are_made),
      TEST(choices_in_other_words),
      TEST(multiples_and_rounds),
      TEST(expressions_taken_back),
      TEST(what_a_loop_reaches),
      TEST(deep_expressions),
      TEST(deep_conditions),
      TEST(sums_of_many_terms),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
