// tensorsum.h - how the tensor cores of a Hopper GPU add products up, to the bit.
//
// No document says it; it was measured on an H200 (tests/gpu/sums.py, bench/results/sums.json). One
// instruction adds 16 products of 16-bit factors, or 32 of 8-bit factors, to an f32. The products
// are exact. All these numbers are aligned to the largest exponent among them, and what lies more
// than 25 bits below it is cut off; 13 if the factors have 8 bits. (The exponent of a product is
// the sum of its factors', even if the product of their significands reaches 2. A factor below the
// normal numbers has the least normal exponent.) Their sum is exact, and is cut off once more: to
// the 24 bits of an f32, or to 14.
#ifndef SC_TENSORSUM_H
#define SC_TENSORSUM_H

#include "compiler/ir/expr.h"

// What is known of the factors.
typedef struct TensorSum {
  bool bytes;    // they have 8 bits
  u32 least[2];  // of either, the exponent field that an f32 has for the least normal number
} TensorSum;
TensorSum sc_tensor_sum(Elem a, Elem b);  // two narrow types, both of 16 bits or both of 8

// Adds n products of factors that lie one behind the other, 16 or 32 to an instruction.
float sc_tensor_dot(const TensorSum *t, float acc, const float *a, const float *b, size_t n);

#endif
