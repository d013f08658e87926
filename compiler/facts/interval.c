// interval.c - arithmetic of intervals: from the intervals of the operands, the interval of the
// result. A bound that is farther from 0 than SC_FAR is cut there: facts.h says why no value lies
// beyond.
#include "compiler/facts/facts.h"

__extension__ typedef __int128 Wide;

static i64 least(i64 a, i64 b) { return a < b ? a : b; }
static i64 most(i64 a, i64 b) { return a > b ? a : b; }
static i64 cut(Wide v) { return v > SC_FAR ? SC_FAR : v < -SC_FAR ? -SC_FAR : (i64)v; }
static Interval interval(Wide lo, Wide hi) { return (Interval){cut(lo), cut(hi)}; }

Interval sc_interval_both(Interval a, Interval b) {
  return (Interval){least(a.lo, b.lo), most(a.hi, b.hi)};
}

static Interval product(Interval a, Interval b) {
  Wide p[4] = {(Wide)a.lo * b.lo, (Wide)a.lo * b.hi, (Wide)a.hi * b.lo, (Wide)a.hi * b.hi};
  Wide lo = p[0], hi = p[0];
  for (u32 i = 1; i < 4; i++) {
    if (p[i] < lo) lo = p[i];
    if (p[i] > hi) hi = p[i];
  }
  return interval(lo, hi);
}

static i64 divide(ExprOp op, i64 a, i64 b) {
  return op == X_CDIV ? -sc_floordiv(-a, b) : sc_floordiv(a, b);
}

// Quotients are monotone in each operand as long as the divisor keeps its sign: [lo, hi] does.
static bool quotients(ExprOp op, Interval a, i64 lo, i64 hi, Interval *out) {
  if (lo > hi) return false;
  const i64 n[2] = {a.lo, a.hi}, d[2] = {lo, hi};
  i64 first = divide(op, a.lo, lo);
  *out = (Interval){first, first};
  for (u32 i = 1; i < 4; i++) {
    i64 q = divide(op, n[i / 2], d[i % 2]);
    *out = sc_interval_both(*out, (Interval){q, q});
  }
  return true;
}

// What is divided by 0 is never evaluated: the tensors are empty.
static Interval quotient(ExprOp op, Interval a, Interval b) {
  Interval up, down;
  bool above = quotients(op, a, most(b.lo, 1), b.hi, &up);
  bool below = quotients(op, a, b.lo, least(b.hi, -1), &down);
  if (above && below) return sc_interval_both(up, down);
  return above ? up : below ? down : (Interval){0, 0};
}

static Interval modulo(Interval a, Interval b) {
  if (b.lo > 0 && a.lo >= 0 && a.hi < b.lo) return a;
  return (Interval){least(0, b.lo + 1), most(0, b.hi - 1)};
}

Interval sc_interval(ExprOp op, Interval a, Interval b) {
  switch (op) {
    case X_NEG: return (Interval){-a.hi, -a.lo};
    case X_ABS: return (Interval){a.lo > 0 ? a.lo : a.hi < 0 ? -a.hi : 0, most(-a.lo, a.hi)};
    case X_ADD: return interval((Wide)a.lo + b.lo, (Wide)a.hi + b.hi);
    case X_SUB: return interval((Wide)a.lo - b.hi, (Wide)a.hi - b.lo);
    case X_MUL: return product(a, b);
    case X_IDIV:
    case X_CDIV: return quotient(op, a, b);
    case X_MOD: return modulo(a, b);
    case X_MIN: return (Interval){least(a.lo, b.lo), least(a.hi, b.hi)};
    case X_MAX: return (Interval){most(a.lo, b.lo), most(a.hi, b.hi)};
    default: return (Interval){-SC_FAR, SC_FAR};
  }
}
