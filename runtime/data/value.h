// value.h - the values that expressions over launch dimensions and scalars have before a kernel
// starts: see value.c.
#ifndef SCL_VALUE_H
#define SCL_VALUE_H

#include <stddef.h>
#include <stdint.h>

#ifndef SCL_API
#define SCL_API
#endif

// Those of expr.def. (C headers have the same enumerators, in text.)
#ifndef SCHEDC_LAUNCHER
typedef enum SclOp {
#define X(id, ...) SCL_##id,
#include "compiler/ir/expr.def"
  SCL_OPS
} SclOp;
#endif

// Nodes, of which each comes after its operands. Of SCL_DIM and SCL_ARG, `a` is which one.
typedef struct SclNode {
  SclOp op;
  int of_reals;  // the operands are; of SCL_ARG: it is
  unsigned a, b, c;
  int64_t number;
  double real;
} SclNode;

typedef struct SclValue {
  int known;  // else it overflowed, or was divided by zero
  int64_t i;  // integers and truths
  double f;   // reals
} SclValue;

SCL_API int64_t scl_add(int64_t x, int64_t y, int *fits);
SCL_API int64_t scl_sub(int64_t x, int64_t y, int *fits);
SCL_API int64_t scl_mul(int64_t x, int64_t y, int *fits);
// Node 0 is none, and never known.
SCL_API void scl_evaluate(const SclNode *node, unsigned nodes, const int64_t *dim,
                          const double *scalar, SclValue *value);
// Do different indices of a tensor always mean different elements? (No extent or stride is
// negative.)
SCL_API int scl_apart(unsigned rank, const int64_t *extent, const int64_t *stride);

#endif
