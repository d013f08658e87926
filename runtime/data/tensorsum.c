// tensorsum.c - sums of products as the tensor cores of Hopper have them. In: factors, as f32. Out:
// an f32, to the bit. See tensorsum.h.
#include "runtime/data/tensorsum.h"

#include <string.h>

#include "runtime/data/clones.h"
#include "runtime/data/mathf.h"

enum { WIDE = 16, MOST = 32, BIAS = 127, ONES = 255 };

TensorSum sc_tensor_sum(Elem a, Elem b) {
  static const u32 least[EL_COUNT] = {
      [EL_F16] = BIAS - 14, [EL_BF16] = 1, [EL_E4M3] = BIAS - 6, [EL_E5M2] = BIAS - 14};
  return (TensorSum){.bytes = a == EL_E4M3 || a == EL_E5M2, .least = {least[a], least[b]}};
}

static size_t depth_of(const TensorSum *t) { return t->bytes ? MOST : WIDE; }

static inline double power(i32 exponent) {
  const u64 bits = (u64)(1023 + exponent) << 52;
  double p;
  memcpy(&p, &bits, sizeof p);
  return p;
}

// The first so many bits of a significand, of which an f32 below the normal numbers has fewer.
static inline float cut(double x, u32 bits) {
  u64 all;
  memcpy(&all, &x, sizeof all);
  all &= ~(u64)0 << (53 - bits);
  memcpy(&x, &all, sizeof x);
  return (float)(fabs(x) < 0x1p-126 ? __builtin_trunc(x * 0x1p149) * 0x1p-149 : x);
}

static inline i32 exponent_field(float x, u32 least) {
  const u32 field = mf_bits(x) >> 23 & ONES;
  return (i32)(field > least ? field : least);
}

// One instruction; `fraction` bits below the largest exponent count.
static inline float add(const TensorSum *t, float acc, const float *restrict a,
                        const float *restrict b, u32 depth, i32 fraction, u32 kept) {
  i32 most = acc == 0 ? 0 : exponent_field(acc, 1) + BIAS;
  double term[MOST];
  for (u32 k = 0; k < depth; k++) {
    const i32 both = exponent_field(a[k], t->least[0]) + exponent_field(b[k], t->least[1]);
    const bool zero = (a[k] == 0) | (b[k] == 0);
    const i32 exponent = zero ? 0 : both;
    most = exponent > most ? exponent : most;
  }
  const i32 last = most - 2 * BIAS - fraction;  // 2 to this is a unit
  const double units = power(-last);
  for (u32 k = 0; k < depth; k++) term[k] = __builtin_trunc((double)a[k] * (double)b[k] * units);
  for (u32 k = 4; k < depth; k += 4)  // exact, in any order
    for (u32 i = 0; i < 4; i++) term[i] += term[k + i];
  const double all = term[0] + term[1] + term[2] + term[3] + __builtin_trunc((double)acc * units);
  return cut(all * power(last), kept);
}

SC_CLONES static float add_all(const TensorSum *t, float acc, const float *a, const float *b,
                               size_t n) {
  if (t->bytes)
    for (size_t i = 0; i < n; i += MOST) acc = add(t, acc, a + i, b + i, MOST, 13, 14);
  else
    for (size_t i = 0; i < n; i += WIDE) acc = add(t, acc, a + i, b + i, WIDE, 25, 24);
  return acc;
}

// The last ones, fewer than an instruction has: the others are 0.
static float add_rest(const TensorSum *t, float acc, const float *a, const float *b, size_t n) {
  float x[MOST] = {0}, y[MOST] = {0};
  memcpy(x, a, n * sizeof *x);
  memcpy(y, b, n * sizeof *y);
  return add_all(t, acc, x, y, depth_of(t));
}

float sc_tensor_dot(const TensorSum *t, float acc, const float *a, const float *b, size_t n) {
  const size_t rest = n % depth_of(t);
  acc = add_all(t, acc, a, b, n - rest);
  return rest ? add_rest(t, acc, a + n - rest, b + n - rest, rest) : acc;
}
