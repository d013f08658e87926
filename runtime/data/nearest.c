// nearest.c - which of some shapes is nearest to another one: this text stands in C headers with
// variants, too, and is compiled there as C99 or C++. In: dimensions. Out: a distance. Dimensions
// are compared by their buckets: powers of two, so that a step is a doubling.
#ifndef SCHEDC_LAUNCHER
#include "runtime/data/nearest.h"
#endif

SCL_API int64_t scl_bucket(int64_t dim) {
  int64_t power = 1;
  if (dim <= 0) return 0;
  while (power <= dim / 2) power *= 2;
  // Nearer to the next one from sqrt(2) times a power on.
  return (double)dim * (double)dim >= 2.0 * (double)power * (double)power ? power * 2 : power;
}

static inline unsigned scl_doublings(int64_t bucket) {
  unsigned n = 0;
  for (; bucket; bucket /= 2) n++;
  return n;
}

SCL_API void scl_compare_dim(SclApart *apart, int64_t a, int64_t b) {
  const unsigned x = scl_doublings(scl_bucket(a)), y = scl_doublings(scl_bucket(b));
  apart->doublings += x > y ? x - y : y - x;
  apart->differ |= a != b;
}

SCL_API unsigned scl_distance(SclApart apart) {
  return apart.doublings ? 2 * apart.doublings : (unsigned)apart.differ;
}

SCL_API unsigned scl_nearest(const int64_t *shape, unsigned shapes, unsigned dims,
                             const int64_t *at) {
  unsigned best = shapes, least = 2 * SCL_FARTHEST + 1;
  for (unsigned i = 0; i < shapes; i++) {
    SclApart apart = {0, 0};
    for (unsigned d = 0; d < dims; d++) scl_compare_dim(&apart, shape[i * dims + d], at[d]);
    if (scl_distance(apart) >= least) continue;
    least = scl_distance(apart);
    best = i;
  }
  return best;
}
