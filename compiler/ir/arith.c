// arith.c - what an operation computes, exactly or in f64: expr.def's columns of integers, truths
// and f64, one value at a time. (runtime/spec/strip_ops.c has the same for strips of values, and
// f32.) In: an operation and its operands. Out: its value, if it has one.
#include <math.h>

#include "compiler/ir/ir.h"

#define EXACT(e) (*out = (e), true)
#define CHECKED(op, x, y) !__builtin_##op##_overflow(x, y, out)
#define DIVIDES(e) b != 0 && !(b == -1 && a == INT64_MIN) && EXACT(e)

#define VALUE(id, e) \
  case X_##id: return (e);

bool sc_int_op(ExprOp op, i64 a, i64 b, i64 *out) {
  switch (op) {
#define NUMBER(id, text, binds, arity, f64, f32, integer, c, c_int) VALUE(id, integer)
#define INTEGERS(id, text, binds, integer, c) VALUE(id, integer)
#define COMPARES(id, text, binds, e) VALUE(id, EXACT(e))
#define TRUTHS(id, text, binds, arity, e, c) VALUE(id, EXACT(e))
#include "compiler/ir/expr.def"
    default: return false;
  }
}

i64 sc_floordiv(i64 a, i64 b) {
  i64 quotient = 0;
  sc_int_op(X_IDIV, a, b, &quotient);
  return quotient;
}

i64 sc_floormod(i64 a, i64 b) {
  i64 rest = 0;
  sc_int_op(X_MOD, a, b, &rest);
  return rest;
}

bool sc_real_op(ExprOp op, double a, double b, double *out) {
  switch (op) {
#define NUMBER(id, text, binds, arity, f64, f32, integer, c, c_int) VALUE(id, EXACT(f64))
#define REALS(id, text, binds, arity, f64, f32, error, c) VALUE(id, EXACT(f64))
#define COMPARES(id, text, binds, e) VALUE(id, EXACT(e))
#include "compiler/ir/expr.def"
    default: return false;
  }
}
