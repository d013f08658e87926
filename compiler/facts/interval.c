// interval.c - arithmetic of intervals, for what is proved here and for what a launch checks: this
// text stands in emitted C headers, too, behind value.c, and is compiled there as C99 or C++. In:
// the intervals of the operands. Out: that of the result. Ends that are too far from 0 are cut at
// SC_FAR, which in headers is SCL_FAR.
#ifndef SCHEDC_LAUNCHER
#include "compiler/facts/facts.h"

#define SCL_API
#define SCL_FAR SC_FAR
#define SCL_OP(id) X_##id
#define SclOp ExprOp
#define SclInterval Interval
#define scl_interval sc_interval
#define scl_interval_both sc_interval_both
#define scl_floor sc_floordiv
#else
#define SCL_FAR ((int64_t)1 << 62)
#define SCL_OP(id) SCL_##id
typedef struct SclInterval {
  int64_t lo, hi;
} SclInterval;

static inline int64_t scl_floor(int64_t a, int64_t b) {
  int fits = 1;
  return scl_integer(SCL_IDIV, a, b, &fits);
}
#endif

static inline int64_t scl_least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t scl_most(int64_t a, int64_t b) { return a > b ? a : b; }

static inline int64_t scl_cut(int64_t v) { return scl_most(-SCL_FAR, scl_least(v, SCL_FAR)); }

static inline SclInterval scl_between(int64_t lo, int64_t hi) {
  SclInterval all;
  all.lo = scl_cut(lo);
  all.hi = scl_cut(hi);
  return all;
}

static inline int64_t scl_cut_sum(int64_t x, int64_t y) {
  const int64_t a = scl_cut(x), b = scl_cut(y);
  if (b > 0) return a > SCL_FAR - b ? SCL_FAR : a + b;
  return a < -SCL_FAR - b ? -SCL_FAR : a + b;
}

static inline int64_t scl_cut_product(int64_t x, int64_t y) {
  const int64_t a = scl_cut(x), b = scl_cut(y), far = (a < 0) == (b < 0) ? SCL_FAR : -SCL_FAR;
  if (!a || !b) return 0;
  return (a < 0 ? -a : a) > SCL_FAR / (b < 0 ? -b : b) ? far : a * b;
}

SCL_API SclInterval scl_interval_both(SclInterval a, SclInterval b) {
  SclInterval both;
  both.lo = scl_least(a.lo, b.lo);
  both.hi = scl_most(a.hi, b.hi);
  return both;
}

static inline SclInterval scl_with(SclInterval all, int64_t v) {
  return scl_interval_both(all, scl_between(v, v));
}

static inline SclInterval scl_product(SclInterval a, SclInterval b) {
  const int64_t first = scl_cut_product(a.lo, b.lo);
  SclInterval all = scl_between(first, first);
  all = scl_with(all, scl_cut_product(a.lo, b.hi));
  all = scl_with(all, scl_cut_product(a.hi, b.lo));
  return scl_with(all, scl_cut_product(a.hi, b.hi));
}

static inline int64_t scl_quotient(SclOp op, int64_t a, int64_t b) {
  return op == SCL_OP(CDIV) ? -scl_floor(-scl_cut(a), b) : scl_floor(scl_cut(a), b);
}

// Quotients are monotone in each operand as long as the divisor keeps its sign: [lo, hi] does.
static inline int scl_quotients(SclOp op, SclInterval a, int64_t lo, int64_t hi, SclInterval *out) {
  const int64_t first = lo > hi ? 0 : scl_quotient(op, a.lo, lo);
  if (lo > hi) return 0;
  *out = scl_between(first, first);
  *out = scl_with(*out, scl_quotient(op, a.lo, hi));
  *out = scl_with(*out, scl_quotient(op, a.hi, lo));
  *out = scl_with(*out, scl_quotient(op, a.hi, hi));
  return 1;
}

// What is divided by 0 is never evaluated: the tensors are empty.
static inline SclInterval scl_divided(SclOp op, SclInterval a, SclInterval b) {
  SclInterval up, down;
  const int above = scl_quotients(op, a, scl_most(b.lo, 1), b.hi, &up);
  const int below = scl_quotients(op, a, b.lo, scl_least(b.hi, -1), &down);
  if (above && below) return scl_interval_both(up, down);
  return above ? up : below ? down : scl_between(0, 0);
}

static inline SclInterval scl_modulo(SclInterval a, SclInterval b) {
  if (b.lo > 0 && a.lo >= 0 && a.hi < b.lo) return a;
  return scl_between(scl_least(0, scl_cut(b.lo) + 1), scl_most(0, scl_cut(b.hi) - 1));
}

SCL_API SclInterval scl_interval(SclOp op, SclInterval a, SclInterval b) {
  switch (op) {
    case SCL_OP(NEG): return scl_between(-scl_cut(a.hi), -scl_cut(a.lo));
    case SCL_OP(ABS):
      return scl_between(a.lo > 0   ? a.lo
                         : a.hi < 0 ? -scl_cut(a.hi)
                                    : 0,
                         scl_most(-scl_cut(a.lo), a.hi));
    case SCL_OP(ADD): return scl_between(scl_cut_sum(a.lo, b.lo), scl_cut_sum(a.hi, b.hi));
    case SCL_OP(SUB):
      return scl_between(scl_cut_sum(a.lo, -scl_cut(b.hi)), scl_cut_sum(a.hi, -scl_cut(b.lo)));
    case SCL_OP(MUL): return scl_product(a, b);
    case SCL_OP(IDIV):
    case SCL_OP(CDIV): return scl_divided(op, a, b);
    case SCL_OP(MOD): return scl_modulo(a, b);
    case SCL_OP(MIN): return scl_between(scl_least(a.lo, b.lo), scl_least(a.hi, b.hi));
    case SCL_OP(MAX): return scl_between(scl_most(a.lo, b.lo), scl_most(a.hi, b.hi));
    default: return scl_between(-SCL_FAR, SCL_FAR);
  }
}
