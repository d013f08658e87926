// input.c - test inputs: distributions under which kernels go wrong in different ways. In: an
// element type, a shape, a seed. Out: values that depend on the seed and the element's index alone,
// so that they are the same on every machine. Normal numbers are sums of uniform ones (Irwin-Hall),
// not libm's logarithms.
#include <math.h>

#include "run.h"

const char *const sc_input_name[INPUT_COUNT] = {
    [INPUT_NORMAL] = "normal", [INPUT_OUTLIERS] = "outliers", [INPUT_LARGE] = "large",
    [INPUT_EQUAL] = "equal",   [INPUT_SPIKE] = "spike",       [INPUT_SINK] = "sink",
};

// SplitMix64 (Steele, Lea and Flood, 2014) of a counter: the n-th number of a stream.
static u64 draw(u64 seed, u64 n) {
  u64 z = seed + (n + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

// Twelve uniform 16-bit numbers: mean 0, variance 1, |x| < 6.
static double normal(u64 seed, u64 n) {
  i64 sum = 0;
  for (u64 i = 0; i < 3; i++) {
    u64 z = draw(seed, 3 * n + i);
    sum += (i64)(z & 0xffff) + (i64)(z >> 16 & 0xffff) + (i64)(z >> 32 & 0xffff) + (i64)(z >> 48);
  }
  return (double)(2 * sum - 12 * 65535) / 131072;
}

// Element n, in row `row` of rows of `width` elements.
static double value(InputKind kind, u64 seed, u64 n, u64 row, u64 width) {
  double x = normal(seed, n);
  u64 other = seed ^ 0x6a09e667f3bcc908u;
  switch (kind) {
    case INPUT_OUTLIERS: return draw(other, n) % 1000 ? x : x + 10 * normal(other + 1, n);
    case INPUT_LARGE: return 8 * x;
    case INPUT_EQUAL: return normal(seed, n % width);
    case INPUT_SPIKE: return n % width == draw(other, row) % width ? 16 : x / 8;
    case INPUT_SINK: return row == 0 ? 4 * fabs(x) + 2 : x;
    default: return x;
  }
}

// A row is the last dimension; rows of INPUT_SINK are counted along the second dimension (the
// sequence), so that the first key of each batch draws all attention. Integers are left to cases:
// they get small ones.
void sc_fill_input(Elem elem, void *at, size_t n, const i64 *shape, size_t rank, InputKind kind,
                   u64 seed) {
  u64 width = rank && shape[rank - 1] > 0 ? (u64)shape[rank - 1] : 1, inner = width, along = 1;
  for (size_t i = 2; i + 1 < rank; i++) inner *= (u64)(shape[i] > 0 ? shape[i] : 1);
  if (rank > 2 && shape[1] > 0) along = (u64)shape[1];
  for (size_t i = 0; i < n; i++) {
    u64 row = kind == INPUT_SINK && rank > 2 ? i / inner % along : i / width;
    double v = elem == EL_I32 ? (double)(draw(seed, i) % 16) : value(kind, seed, i, row, width);
    sc_set_elem(elem, at, (i64)i, v);
  }
}

void sc_fill_nan(Elem elem, void *at, size_t n) {
  for (size_t i = 0; i < n; i++) sc_set_elem(elem, at, (i64)i, elem == EL_I32 ? INT32_MIN : NAN);
}
