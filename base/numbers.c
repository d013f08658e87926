// numbers.c - sorts numbers, and finds the one in the middle.
#include "base/base.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void sc_sort(double *v, u32 n) {
  if (n) qsort(v, n, sizeof *v, by_value);
}

static int by_number(const void *a, const void *b) {
  u32 x = *(const u32 *)a, y = *(const u32 *)b;
  return (x > y) - (x < y);
}

void sc_sort_u32(u32 *v, u32 n) {
  if (n) qsort(v, n, sizeof *v, by_number);
}

double sc_median(double *v, u32 n) {
  sc_sort(v, n);
  return !n ? 0 : n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}
