// nearest.h - which of some shapes is near another one: see nearest.c.
#ifndef SCL_NEAREST_H
#define SCL_NEAREST_H

#include <stdint.h>

#ifndef SCL_API
#define SCL_API
#endif

enum { SCL_FARTHEST = 3 };  // so many doublings apart is near, all dimensions together

// How far two shapes are apart; begins as zeros.
typedef struct SclApart {
  unsigned doublings;
  int differ;  // in some dimension
} SclApart;

// The power of two that is nearest by ratio to a dimension; 0 stays 0.
SCL_API int64_t scl_bucket(int64_t dim);
// Another dimension, which is `a` in one shape and `b` in the other.
SCL_API void scl_compare_dim(SclApart *apart, int64_t a, int64_t b);
// Less is nearer; 0: the same shape. More than 2 * SCL_FARTHEST is not near.
SCL_API unsigned scl_distance(SclApart apart);
// Of `shapes` rows of `dims` each, the nearest to `at`: of equally near ones the first; `shapes` if
// none is near.
SCL_API unsigned scl_nearest(const int64_t *shape, unsigned shapes, unsigned dims,
                             const int64_t *at);

#endif
