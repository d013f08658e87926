// value.c - what expressions over launch dimensions and scalar arguments are worth before a kernel
// starts, for the library and for the C headers that it writes: this text stands in each of them,
// behind value.h, and is compiled there as C99 or C++. In: nodes, dimensions and scalars. Out: for
// each node its value, and whether it is known: what overflows 64 bits is the nearest that does
// not, what is divided by zero is 0, and neither is known. Reals are double. The idea: operands
// come before what is made from them, so one walk in order needs no recursion.
#ifndef SCHEDC_LAUNCHER
#include "runtime/data/value.h"

#include <string.h>

#include "compiler/ir/ir.h"

// Functions, which headers do without.
static double scl_call(SclOp op, double x, double y) {
  double value = 0;
  return sc_real_op((ExprOp)op, x, y, &value) ? value : 0;
}
#define SCL_CALL scl_call
#endif

SCL_API int64_t scl_add(int64_t x, int64_t y, int *fits) {
  if (y > 0 ? x <= INT64_MAX - y : x >= INT64_MIN - y) return x + y;
  *fits = 0;
  return y > 0 ? INT64_MAX : INT64_MIN;
}

static inline int64_t scl_subtract(int64_t x, int64_t y, int *fits) {
  if (y > 0 ? x >= INT64_MIN + y : x <= INT64_MAX + y) return x - y;
  *fits = 0;
  return y > 0 ? INT64_MIN : INT64_MAX;
}

SCL_API int64_t scl_multiply(int64_t x, int64_t y, int *fits) {
  const int negative = (x < 0) != (y < 0);
  const uint64_t a = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
  const uint64_t b = y < 0 ? 0 - (uint64_t)y : (uint64_t)y;
  if (!b || a <= ((uint64_t)INT64_MAX + (uint64_t)negative) / b)
    return (int64_t)((uint64_t)x * (uint64_t)y);
  *fits = 0;
  return negative ? INT64_MIN : INT64_MAX;
}

// Divided by zero: 0.
static inline int64_t scl_divide(SclOp op, int64_t x, int64_t y, int *fits) {
  const int64_t negated = y == -1 ? scl_subtract(0, x, fits) : 0;
  if (!y) *fits = 0;
  if (!y || y == -1) return op == SCL_MOD ? 0 : negated;
  if (op == SCL_MOD) return x % y + (x % y != 0 && (x < 0) != (y < 0) ? y : 0);
  return x / y - (x % y != 0 && (x < 0) != (y < 0)) + (op == SCL_CDIV && x % y != 0);
}

static inline int64_t scl_integer(SclOp op, int64_t x, int64_t y, int *fits) {
  switch (op) {
    case SCL_NEG: return scl_subtract(0, x, fits);
    case SCL_NOT: return !x;
    case SCL_ABS: return x < 0 ? scl_subtract(0, x, fits) : x;
    case SCL_ADD: return scl_add(x, y, fits);
    case SCL_SUB: return scl_subtract(x, y, fits);
    case SCL_MUL: return scl_multiply(x, y, fits);
    case SCL_IDIV:
    case SCL_MOD:
    case SCL_CDIV: return scl_divide(op, x, y, fits);
    case SCL_MIN: return x < y ? x : y;
    case SCL_MAX: return x > y ? x : y;
    case SCL_LT: return x < y;
    case SCL_LE: return x <= y;
    case SCL_EQ: return x == y;
    case SCL_NE: return x != y;
    case SCL_AND: return x && y;
    case SCL_OR: return x || y;
    default: *fits = 0; return 0;
  }
}

// The smaller of two is the one that is a number, as with fmin.
static inline void scl_real(const SclNode *n, double x, double y, SclValue *out) {
  switch (n->op) {
    case SCL_NEG: out->f = -x; break;
    case SCL_ABS: out->f = x < 0 ? -x : x; break;
    case SCL_ADD: out->f = x + y; break;
    case SCL_SUB: out->f = x - y; break;
    case SCL_MUL: out->f = x * y; break;
    case SCL_DIV: out->f = x / y; break;
    case SCL_MIN: out->f = x < y || y != y ? x : y; break;
    case SCL_MAX: out->f = x > y || y != y ? x : y; break;
    case SCL_LT: out->i = x < y; break;
    case SCL_LE: out->i = x <= y; break;
    case SCL_EQ: out->i = x == y; break;
    case SCL_NE: out->i = x != y; break;
#ifdef SCL_CALL
    default: out->f = SCL_CALL(n->op, x, y); break;
#else
    default: out->known = 0;
#endif
  }
}

SCL_API void scl_evaluate(const SclNode *node, unsigned nodes, const int64_t *dim,
                          const double *scalar, SclValue *value) {
  memset(value, 0, sizeof *value);
  for (unsigned i = 1; i < nodes; i++) {
    const SclNode *n = &node[i];
    const SclValue *a = &value[n->a], *b = &value[n->b];
    SclValue *v = &value[i];
    v->known = 1;
    v->i = n->number;
    v->f = n->real;
    if (n->op == SCL_INT || n->op == SCL_BOOL || n->op == SCL_REAL) continue;
    if (n->op == SCL_DIM) {
      v->i = dim[n->a];
    } else if (n->op == SCL_ARG) {
      v->f = scalar[n->a];
      if (!n->of_reals) v->i = (int64_t)v->f;
    } else {
      v->known = a->known && (!n->b || n->op == SCL_WHERE || b->known);
      if (n->op == SCL_TOREAL) v->f = (double)a->i;
      else if (n->op == SCL_WHERE) *v = value[a->i ? n->b : n->c];
      else if (n->of_reals) scl_real(n, a->f, b->f, v);
      else v->i = scl_integer(n->op, a->i, b->i, &v->known);
      if (n->op == SCL_WHERE) v->known = v->known && a->known;
    }
  }
}
