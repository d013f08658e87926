// value.c - what expressions over launch dimensions and scalar arguments are worth before a kernel
// starts, for the library and for the C headers that it writes: this text stands in each of them,
// behind value.h, and is compiled there as C99 or C++. In: nodes, dimensions and scalars. Out: for
// each node its value, and whether it is known: what overflows 64 bits is the nearest that does
// not, what is divided by zero is 0, and neither is known. Reals are double. The idea: operands
// come before what is made from them, so one walk in order needs no recursion. (And whether a
// tensor's strides keep its elements apart.)
#ifndef SCHEDC_LAUNCHER
#include "runtime/data/value.h"

#include <math.h>
#include <string.h>
#endif

SCL_API int64_t scl_add(int64_t x, int64_t y, int *fits) {
  if (y > 0 ? x <= INT64_MAX - y : x >= INT64_MIN - y) return x + y;
  *fits = 0;
  return y > 0 ? INT64_MAX : INT64_MIN;
}

SCL_API int64_t scl_sub(int64_t x, int64_t y, int *fits) {
  if (y > 0 ? x >= INT64_MIN + y : x <= INT64_MAX + y) return x - y;
  *fits = 0;
  return y > 0 ? INT64_MIN : INT64_MAX;
}

SCL_API int64_t scl_mul(int64_t x, int64_t y, int *fits) {
  const int negative = (x < 0) != (y < 0);
  const uint64_t a = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
  const uint64_t b = y < 0 ? 0 - (uint64_t)y : (uint64_t)y;
  if (!b || a <= ((uint64_t)INT64_MAX + (uint64_t)negative) / b)
    return (int64_t)((uint64_t)x * (uint64_t)y);
  *fits = 0;
  return negative ? INT64_MIN : INT64_MAX;
}

static inline int scl_divides(int64_t x, int64_t y, int *fits) {
  const int divides = y != 0 && !(y == -1 && x == INT64_MIN);
  if (!divides) *fits = 0;
  return divides;
}

static inline double scl_fabs(double x) { return x < 0 ? -x : x; }

// What operations compute stands in expr.def. (Of headers header.c writes it.)
#ifndef SCHEDC_LAUNCHER
#include "runtime/data/valueops.def"

static int64_t scl_integer(SclOp op, int64_t a, int64_t b, int *fits) {
  switch (op) {
#define NUMBER(id, text, binds, arity, f64, f32, integer, c, c_int) SCL_CASE(id, integer)
#define INTEGERS(id, text, binds, integer, c) SCL_CASE(id, integer)
#define COMPARES(id, text, binds, e) SCL_CASE(id, e)
#define TRUTHS(id, text, binds, arity, e, c) SCL_CASE(id, e)
#include "compiler/ir/expr.def"
    default: *fits = 0; return 0;
  }
}

static double scl_real(SclOp op, double a, double b) {
  switch (op) {
#define NUMBER(id, text, binds, arity, f64, f32, integer, c, c_int) SCL_CASE(id, f64)
#define REALS(id, text, binds, arity, f64, f32, error, c) SCL_CASE(id, f64)
#define COMPARES(id, text, binds, e) SCL_CASE(id, e)
#include "compiler/ir/expr.def"
    default: return 0;
  }
}
#endif

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
      else if (n->of_reals) v->i = (v->f = scl_real(n->op, a->f, b->f)) != 0;
      else v->i = scl_integer(n->op, a->i, b->i, &v->known);
      if (n->op == SCL_WHERE) v->known = v->known && a->known;
    }
  }
}

// Dimensions by rising stride: each must step over all that the smaller ones reach.
SCL_API int scl_apart(unsigned rank, const int64_t *extent, const int64_t *stride) {
  int64_t reach = 0;  // of the dimensions taken so far
  unsigned taken = 0;
  int fits = 1;
  for (unsigned n = 0; n < rank && fits; n++) {
    unsigned best = rank;
    for (unsigned d = 0; d < rank; d++)
      if (!(taken >> d & 1) && (best == rank || stride[d] < stride[best])) best = d;
    taken |= 1u << best;
    if (extent[best] <= 1) continue;
    if (stride[best] <= reach) return 0;
    reach = scl_add(reach, scl_mul(extent[best] - 1, stride[best], &fits), &fits);
  }
  return fits;
}
