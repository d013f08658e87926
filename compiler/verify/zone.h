// zone.h - zones: what is known of some integers as bounds on their differences (a difference-bound
// matrix). Variable 0 is the number zero.
#ifndef SC_ZONE_H
#define SC_ZONE_H

#include "base/base.h"

enum { ZONE_VARS = 32, ZONE_NONE = INT32_MAX };

// bound[i * n + j]: x_i - x_j is at most this; ZONE_NONE: there is no bound. Always closed: each
// bound is the least that follows from all of them.
typedef struct Zone {
  u32 n;
  i32 *bound;
} Zone;

static inline size_t zone_bytes(u32 n) { return sizeof(i32) * n * n; }
void zone_clear(Zone *z);  // nothing is known
// x_i - x_j <= c is learnt. False: that cannot be.
bool zone_learn(Zone *z, u32 i, u32 j, i64 c);
// Does x_i - x_j <= c follow?
static inline bool zone_implies(const Zone *z, u32 i, u32 j, i64 c) {
  return z->bound[i * z->n + j] != ZONE_NONE && z->bound[i * z->n + j] <= c;
}
void zone_forget(Zone *z, u32 i);
void zone_copy(Zone *z, u32 i, u32 j, i64 c);  // x_i becomes x_j + c; i is not j
void zone_shift(Zone *z, u32 i, i64 c);        // x_i becomes x_i + c
// Bounds beyond `most` are given up, so that there are finitely many zones; then it is closed
// again.
void zone_widen(Zone *z, i64 most);
bool zone_within(const Zone *a, const Zone *b);  // all that is in a is in b

#endif
