// extent.c - where the elements of a tensor with strides are. In: an extent that can be addressed
// (shapes and strides that are not negative, and do not overflow). Elements are numbered row by
// row, the last dimension fastest, as if there were no strides.
#include "runtime/run.h"

size_t sc_elements(const Extent *x) {
  size_t n = 1;
  for (size_t d = 0; d < x->rank; d++) n *= (size_t)x->shape[d];
  return n;
}

size_t sc_storage(const Extent *x) {
  i64 n = 1;
  for (size_t d = 0; d < x->rank; d++) {
    if (x->shape[d] <= 0) return 0;
    n += (x->shape[d] - 1) * x->stride[d];
  }
  return (size_t)n;
}

size_t sc_run_length(const Extent *x) {
  i64 run = 1;
  if (!x->stride) return sc_elements(x);
  for (size_t d = x->rank; d-- > 0;) {
    if (x->shape[d] != 1 && x->stride[d] != run) return (size_t)run;
    run *= x->shape[d];
  }
  return (size_t)run;
}

i64 sc_where(const Extent *x, size_t i) {
  i64 at = 0;
  if (!x->stride) return (i64)i;
  for (size_t d = x->rank; d-- > 0;) {
    at += (i64)(i % (size_t)x->shape[d]) * x->stride[d];
    i /= (size_t)x->shape[d];
  }
  return at;
}
