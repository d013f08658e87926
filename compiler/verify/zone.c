// zone.c - zones as difference-bound matrices: learning a bound closes the matrix again in
// quadratic time, widening in cubic time. Bounds that do not fit 32 bits are dropped, which only
// loses knowledge.
#include "compiler/verify/zone.h"

#include <string.h>

static i32 *at(const Zone *z, u32 i, u32 j) { return &z->bound[i * z->n + j]; }

static i32 sum(i32 a, i32 b) {
  if (a == ZONE_NONE || b == ZONE_NONE) return ZONE_NONE;
  i64 c = (i64)a + b;
  if (c >= ZONE_NONE) return ZONE_NONE;
  return c < -ZONE_NONE ? -ZONE_NONE : (i32)c;
}

static void tighten(Zone *z, u32 i, u32 j, i32 c) {
  if (c < *at(z, i, j)) *at(z, i, j) = c;
}

void zone_clear(Zone *z) {
  for (u32 i = 0; i < z->n; i++)
    for (u32 j = 0; j < z->n; j++) *at(z, i, j) = i == j ? 0 : ZONE_NONE;
}

bool zone_learn(Zone *z, u32 i, u32 j, i64 c) {
  if (i == j || zone_implies(z, j, i, -c - 1)) return i == j && c >= 0;
  if (c >= ZONE_NONE || c < -ZONE_NONE || zone_implies(z, i, j, c)) return true;
  for (u32 a = 0; a < z->n; a++) {
    i32 to = sum(*at(z, a, i), (i32)c);
    for (u32 b = 0; b < z->n && to != ZONE_NONE; b++) tighten(z, a, b, sum(to, *at(z, j, b)));
  }
  return true;
}

void zone_forget(Zone *z, u32 i) {
  for (u32 j = 0; j < z->n; j++)
    if (j != i) *at(z, i, j) = *at(z, j, i) = ZONE_NONE;
}

void zone_copy(Zone *z, u32 i, u32 j, i64 c) {
  for (u32 a = 0; a < z->n; a++) {
    if (a == i) continue;
    *at(z, i, a) = *at(z, j, a);
    *at(z, a, i) = *at(z, a, j);
  }
  *at(z, i, j) = *at(z, j, i) = 0;
  zone_shift(z, i, c);
}

void zone_shift(Zone *z, u32 i, i64 c) {
  bool far = c >= ZONE_NONE || c <= -ZONE_NONE;
  if (far) {
    zone_forget(z, i);
    return;
  }
  for (u32 j = 0; j < z->n; j++) {
    if (j == i) continue;
    *at(z, i, j) = sum(*at(z, i, j), (i32)c);
    *at(z, j, i) = sum(*at(z, j, i), (i32)-c);
  }
}

static void close_all(Zone *z) {
  for (u32 k = 0; k < z->n; k++) {
    for (u32 i = 0; i < z->n; i++) {
      i32 to = *at(z, i, k);
      for (u32 j = 0; j < z->n && to != ZONE_NONE; j++) tighten(z, i, j, sum(to, *at(z, k, j)));
    }
  }
}

void zone_widen(Zone *z, i64 most) {
  bool changed = false;
  for (u32 i = 0; i < z->n; i++) {
    for (u32 j = 0; j < z->n; j++) {
      i32 *b = at(z, i, j), was = *b;
      if (was != ZONE_NONE && was > most) *b = ZONE_NONE;
      if (was < -most) *b = (i32)-most;
      changed |= *b != was;
    }
  }
  if (changed) close_all(z);
}

bool zone_within(const Zone *a, const Zone *b) {
  for (u32 i = 0; i < a->n * a->n; i++)
    if (a->bound[i] > b->bound[i]) return false;
  return true;
}
