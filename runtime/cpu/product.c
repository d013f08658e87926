// product.c - c (+)= a @ b in f32: what a wgmma or mma.sync computes, fast enough that the
// interpreter is used. b is packed into panels of 16 columns, so that a block of rows keeps its
// accumulators in vector registers and each step is one broadcast and one multiply-add a row. The
// sum over k runs in order, whatever the policy or the rows asked for: equal operands give equal
// bits. After Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008).
#include "runtime/cpu/machine.h"

#include <string.h>

enum { PANEL = 16 };
typedef float Lanes __attribute__((vector_size(PANEL * sizeof(float))));

// `rows` rows of c by one panel. Inlined with constant `rows`, so that acc stays in registers.
static inline __attribute__((always_inline)) void block(u32 rows, float *c, i64 crow, i64 ccol,
                                                        const float *a, i64 arow, i64 ak,
                                                        const float *b, i64 cols, i64 k, bool acc) {
  Lanes sum[PANEL];
  float edge[PANEL];
  for (u32 r = 0; r < rows; r++) {
    memset(edge, 0, sizeof edge);
    if (acc) {
      for (i64 j = 0; j < cols; j++) edge[j] = c[r * crow + j * ccol];
    }
    memcpy(&sum[r], edge, sizeof edge);
  }
  for (i64 i = 0; i < k; i++) {
    Lanes line;
    memcpy(&line, b + i * PANEL, sizeof line);
    for (u32 r = 0; r < rows; r++) sum[r] += a[r * arow + i * ak] * line;
  }
  for (u32 r = 0; r < rows; r++) {
    memcpy(edge, &sum[r], sizeof edge);
    for (i64 j = 0; j < cols; j++) c[r * crow + j * ccol] = edge[j];
  }
}

#define KERNEL(name, at_once, attribute)                                                     \
  attribute static void name(float *c, i64 crow, i64 ccol, const float *a, i64 arow, i64 ak, \
                             const float *b, i64 rows, i64 cols, i64 k, bool acc) {          \
    i64 r = 0;                                                                               \
    for (; r + at_once <= rows; r += at_once) {                                              \
      block(at_once, c + r * crow, crow, ccol, a + r * arow, arow, ak, b, cols, k, acc);     \
    }                                                                                        \
    for (; r < rows; r++)                                                                    \
      block(1, c + r * crow, crow, ccol, a + r * arow, arow, ak, b, cols, k, acc);           \
  }

KERNEL(multiply_any, 2, )
#if defined(__x86_64__)
KERNEL(multiply_avx2, 4, __attribute__((target("avx2,fma"))))
KERNEL(multiply_avx512, 16, __attribute__((target("avx512f,avx2,fma"))))
#endif

void sc_product_kernel(Program *p) {
  p->multiply = multiply_any;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) {
    p->multiply = multiply_avx512;
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    p->multiply = multiply_avx2;
  }
#endif
}

size_t sc_product_scratch(const Product *p) { return sizeof(float) * PANEL * (size_t)p->k; }

// One panel of b, [k][16]; columns past the end are 0.
static void pack(float *to, const float *b, i64 bcol, i64 bk, i64 cols, i64 k) {
  if (cols < PANEL) memset(to, 0, sizeof(float) * PANEL * (size_t)k);
  if (bcol == 1) {
    for (i64 i = 0; i < k; i++) memcpy(to + i * PANEL, b + i * bk, sizeof(float) * (size_t)cols);
    return;
  }
  for (i64 i = 0; i < k; i++) {
    for (i64 j = 0; j < cols; j++) to[i * PANEL + j] = b[j * bcol + i * bk];
  }
}

void sc_multiply(const Program *p, void *scratch, float *c, i64 crow, i64 ccol, const float *a,
                 i64 arow, i64 ak, const float *b, i64 bcol, i64 bk, i64 m, i64 n, i64 k,
                 bool acc) {
  for (i64 j = 0; j < n; j += PANEL) {
    i64 cols = n - j < PANEL ? n - j : PANEL;
    pack(scratch, b + j * bcol, bcol, bk, cols, k);
    p->multiply(c + j * ccol, crow, ccol, a, arow, ak, scratch, m, cols, k, acc);
  }
}
