// mathf.h - elementary functions of f32, for loops that the C compiler vectorises: no branches, no
// tables, no calls. Error at most 2 units in the last place (tests/unit/mathf.c measures it); NaN
// in, NaN out; results below the smallest normal number are 0, as ex2.approx.ftz gives. The same
// bits on every machine, unlike libm's.
//
// exp and exp2: 2^n times a polynomial on [-1/2, 1/2], fitted for least relative error. log, log2
// and tanh are rare (once a row, not once an element): they work in f64, where the textbook series
// is enough.
#ifndef SC_MATHF_H
#define SC_MATHF_H

#include "base/base.h"

#include <math.h>
#include <string.h>

static inline u32 mf_bits(float v) {
  u32 u;
  memcpy(&u, &v, 4);
  return u;
}

static inline float mf_float(u32 u) {
  float v;
  memcpy(&v, &u, 4);
  return v;
}

static inline u64 mf_bits64(double v) {
  u64 u;
  memcpy(&u, &v, 8);
  return u;
}

static inline double mf_double(u64 u) {
  double v;
  memcpy(&v, &u, 8);
  return v;
}

// Adding it leaves a rounded integer in the low bits of the sum.
#define MF_ROUND 0x1.8p23f

static inline float mf_exp2(float x) {
  float t = x + MF_ROUND;
  float f = x - (t - MF_ROUND);
  float p = 0x1.41fbbap-13f;
  p = p * f + 0x1.5f3e54p-10f;
  p = p * f + 0x1.3b2d4cp-7f;
  p = p * f + 0x1.c6aee8p-5f;
  p = p * f + 0x1.ebfbdcp-3f;
  p = p * f + 0x1.62e430p-1f;
  p = p * f + 1.0f;
  float r = mf_float(mf_bits(p) + (mf_bits(t) << 23));
  r = x >= 128 ? INFINITY : r;
  r = x < -126 ? 0 : r;
  return x != x ? x : r;
}

static inline float mf_exp(float x) {
  float t = x * 0x1.715476p+0f + MF_ROUND;
  float n = t - MF_ROUND;
  float f = (x - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
  float p = 0x1.6ae722p-10f;
  p = p * f + 0x1.126790p-7f;
  p = p * f + 0x1.555822p-5f;
  p = p * f + 0x1.55541ap-3f;
  p = p * f + 0x1.fffffcp-2f;
  p = p * (f * f) + f + 1.0f;
  float r = mf_float(mf_bits(p) + (mf_bits(t) << 23));
  r = x > 0x1.62e42ep6f ? INFINITY : r;
  r = x < -0x1.5d589ep6f ? 0 : r;
  return x != x ? x : r;
}

// Natural logarithm times `unit`, in f64: x = 2^e m, m in [sqrt 1/2, sqrt 2), and ln m by the
// series of artanh((m - 1) / (m + 1)).
static inline double mf_log_of(double x, double unit) {
  u64 u = mf_bits64(x) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
  double e = (double)(i32)(u32)(u >> 52) - 1023;
  double m = mf_double((u & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu);
  double s = (m - 1) / (m + 1), q = s * s;
  double p = 2.0 / 11;
  p = p * q + 2.0 / 9;
  p = p * q + 2.0 / 7;
  p = p * q + 2.0 / 5;
  p = p * q + 2.0 / 3;
  p = p * q + 2;
  return (e * 0x1.62e42fefa39efp-1 + p * s) * unit;
}

static inline float mf_log_ends(float x, float r) {
  r = x == INFINITY ? INFINITY : r;
  r = x == 0 ? -INFINITY : r;
  r = x < 0 ? NAN : r;
  return x != x ? x : r;
}

static inline float mf_log(float x) { return mf_log_ends(x, (float)mf_log_of(x, 1)); }
static inline float mf_log2(float x) {
  return mf_log_ends(x, (float)mf_log_of(x, 0x1.71547652b82fep+0));
}

static inline float mf_tanh(float x) {
  double a = fabs((double)x), y = a > 10 ? 20 : 2 * a;
  double t = y * 0x1.71547652b82fep+0 + 0x1.8p52;
  double f = y - (t - 0x1.8p52) * 0x1.62e42fefa39efp-1;
  double p = 1.0 / 3628800;
  p = p * f + 1.0 / 362880;
  p = p * f + 1.0 / 40320;
  p = p * f + 1.0 / 5040;
  p = p * f + 1.0 / 720;
  p = p * f + 1.0 / 120;
  p = p * f + 1.0 / 24;
  p = p * f + 1.0 / 6;
  p = p * f + 0.5;
  p = p * f + 1;
  p = p * f + 1;
  double e = mf_double(mf_bits64(p) + (mf_bits64(t) << 52));
  double r = a < 0x1p-12 ? a - a * a * a * (1.0 / 3) : (e - 1) / (e + 1);
  r = x < 0 ? -r : r;
  return x != x || x == 0 ? x : (float)r;
}

#endif
