// launchvalue.h - values of launch-time expressions: see launchvalue.c.
#ifndef SC_LAUNCHVALUE_H
#define SC_LAUNCHVALUE_H

#include "compiler/ir/ir.h"

// Dimensions and scalar arguments, by number, and which of them are known.
typedef struct LaunchKnown {
  const i64 *dim;
  const bool *dim_known;
  const double *arg;
  const bool *arg_known;
} LaunchKnown;

// `known` is false for what depends on anything else, and for integer overflow or division by zero.
typedef struct LaunchValue {
  bool known;
  i64 i;     // integers and truths
  double f;  // reals
} LaunchValue;

// `out` has room for k->expr.n entries.
void sc_launch_values(const Kernel *k, const LaunchKnown *in, LaunchValue *out);

#endif
