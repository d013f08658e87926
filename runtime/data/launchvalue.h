// launchvalue.h - values of launch-time expressions: see launchvalue.c.
#ifndef SC_LAUNCHVALUE_H
#define SC_LAUNCHVALUE_H

#include "compiler/ir/ir.h"
#include "runtime/data/value.h"

// Dimensions and scalar arguments, by number, and which of them are known.
typedef struct LaunchKnown {
  const i64 *dim;
  const bool *dim_known;
  const double *arg;
  const bool *arg_known;
} LaunchKnown;

// An expression as a node, whose operands are the expressions' numbers. What depends on more than
// dimensions and scalars is SCL_LOAD, which is never known.
SclNode sc_launch_node(const Kernel *k, const Expr *e);

// Of each expression; `out` has room for k->expr.n entries.
void sc_launch_values(Sc *sc, const Kernel *k, const LaunchKnown *in, SclValue *out);

extern const char *const sc_launch_op[SCL_OPS];  // what follows SCL_ in their names

#endif
