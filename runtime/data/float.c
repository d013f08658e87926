// float.c - element types to and from f32. Each conversion is branch-free arithmetic on the bits of
// an f32, so that the bulk loops vectorise; one encoder and one decoder serve all four narrow
// types.
//
// The idea: an f32 whose exponent field holds a narrow float's is that float times a power of two,
// so one exact multiplication decodes normals and denormals alike. Encoding normals adds half a
// unit in the last place to the bits; denormals are rounded by the adder, at a magic number whose
// last place is the smallest denormal.
#include "runtime/data/clones.h"
#include "runtime/data/mathf.h"
#include "runtime/run.h"

#include <math.h>

// A narrow format: `mant` explicit mantissa bits, exponent bias, the code that overflow goes to
// (infinity or the largest finite value), and that of a NaN; as f32 bits, the largest finite value,
// and again what overflow and NaN are. All constants where it is used.
typedef struct Format {
  u32 mant, bias, over, nan, max_bits, over_bits, nan_bits;
} Format;
static const Format F16 = {10, 15, 0x7c00, 0x7e00, 0x477fe000, 0x7f800000, 0x7fc00000},
                    E4M3 = {3, 7, 0x7e, 0x7f, 0x43e00000, 0x43e00000, 0x7ff00000},
                    E5M2 = {2, 15, 0x7b, 0x7f, 0x47600000, 0x47600000, 0x7fe00000};

// |v| given as bits `u` -> code without sign. Nearest even.
static inline u32 encode(Format f, u32 u) {
  u32 drop = 23 - f.mant;
  u32 normal = (u + ((1u << (drop - 1)) - 1) + ((u >> drop) & 1)) >> drop;
  normal -= (127 - f.bias) << f.mant;
  u32 magic = (127 + 23 + 1 - f.bias - f.mant) << 23;
  u32 denormal = mf_bits(mf_float(u) + mf_float(magic)) - magic;
  u32 code = u < (128 - f.bias) << 23 ? denormal : normal;
  code = code < f.over ? code : f.over;
  return u > 0x7f800000 ? f.nan : code;
}

// v encoded and decoded, without the way there and back.
static inline float rounded(Format f, float v) {
  u32 u = mf_bits(v) & 0x7fffffff, drop = 23 - f.mant;
  u32 normal = (u + ((1u << (drop - 1)) - 1) + ((u >> drop) & 1)) & ~((1u << drop) - 1);
  float magic = mf_float((127 + 23 + 1 - f.bias - f.mant) << 23);
  u32 denormal = mf_bits(mf_float(u) + magic - magic);
  u32 r = u < (128 - f.bias) << 23 ? denormal : normal;
  r = r > f.max_bits ? f.over_bits : r;
  r = u > 0x7f800000 ? f.nan_bits : r;
  return mf_float(r | (mf_bits(v) & 0x80000000));
}

// Code without sign -> |v|; codes from `top` on are infinity and NaN, or (E4M3) NaN alone.
static inline float decode(Format f, u32 code, u32 top) {
  float v = mf_float(code << (23 - f.mant)) * mf_float((254 - f.bias) << 23);
  u32 special = 0x7f800000 | (code == f.over ? 0 : 0x400000);
  return code >= top ? mf_float(special | code << (23 - f.mant)) : v;
}

static inline u16 to_f16(float v) {
  u32 u = mf_bits(v);
  return (u16)(encode(F16, u & 0x7fffffff) | (u >> 16 & 0x8000));
}

static inline u16 to_bf16(float v) {
  u32 u = mf_bits(v);
  u32 rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
  return (u16)((u & 0x7fffffff) > 0x7f800000 ? (u >> 16 & 0x8000) | 0x7fc0 : rounded);
}

static inline u8 to_e4m3(float v) {
  u32 u = mf_bits(v);
  return (u8)(encode(E4M3, u & 0x7fffffff) | (u >> 24 & 0x80));
}

static inline u8 to_e5m2(float v) {
  u32 u = mf_bits(v);
  return (u8)(encode(E5M2, u & 0x7fffffff) | (u >> 24 & 0x80));
}

static inline float of_f16(u16 v) {
  return mf_float(mf_bits(decode(F16, v & 0x7fff, 0x7c00)) | (u32)(v & 0x8000) << 16);
}

static inline float round_f16(float v) { return rounded(F16, v); }
static inline float round_e4m3(float v) { return rounded(E4M3, v); }
static inline float round_e5m2(float v) { return rounded(E5M2, v); }

static inline float of_bf16(u16 v) { return mf_float((u32)v << 16); }

static inline float round_bf16(float v) { return of_bf16(to_bf16(v)); }

static inline float of_e4m3(u8 v) {
  return mf_float(mf_bits(decode(E4M3, v & 0x7f, 0x7f)) | (u32)(v & 0x80) << 24);
}

static inline float of_e5m2(u8 v) { return of_f16((u16)(v << 8)); }

u16 sc_to_f16(float v) { return to_f16(v); }
u16 sc_to_bf16(float v) { return to_bf16(v); }
u8 sc_to_e4m3(float v) { return to_e4m3(v); }
u8 sc_to_e5m2(float v) { return to_e5m2(v); }
float sc_of_f16(u16 v) { return of_f16(v); }
float sc_of_bf16(u16 v) { return of_bf16(v); }
float sc_of_e4m3(u8 v) { return of_e4m3(v); }
float sc_of_e5m2(u8 v) { return of_e5m2(v); }

// The loops over many, three for each narrow type.
#define NARROW(id, text, max, name, T)                                                       \
  SC_CLONES static void load_##name(float *restrict to, const T *restrict from, size_t n) {  \
    for (size_t i = 0; i < n; i++) to[i] = of_##name(from[i]);                               \
  }                                                                                          \
  SC_CLONES static void store_##name(T *restrict to, const float *restrict from, size_t n) { \
    for (size_t i = 0; i < n; i++) to[i] = to_##name(from[i]);                               \
  }                                                                                          \
  SC_CLONES static void round_all_##name(float *v, size_t n) {                               \
    for (size_t i = 0; i < n; i++) v[i] = round_##name(v[i]);                                \
  }
#include "compiler/ir/elem.def"

#define CASE(id, does) \
  case EL_##id: does; break;

float sc_round(Elem elem, float v) {
  switch (elem) {
#define NARROW(id, text, max, name, T) CASE(id, return round_##name(v))
#include "compiler/ir/elem.def"
    default: return v;
  }
}

void sc_round_all(Elem elem, float *v, size_t n) {
  switch (elem) {
#define NARROW(id, text, max, name, T) CASE(id, round_all_##name(v, n))
#include "compiler/ir/elem.def"
    default: break;
  }
}

void sc_load_elems(Elem elem, float *to, const void *from, size_t n) {
  switch (elem) {
#define NARROW(id, text, max, name, T) CASE(id, load_##name(to, from, n))
#include "compiler/ir/elem.def"
    default: memmove(to, from, n * 4); break;
  }
}

void sc_store_elems(Elem elem, void *to, const float *from, size_t n) {
  switch (elem) {
#define NARROW(id, text, max, name, T) CASE(id, store_##name(to, from, n))
#include "compiler/ir/elem.def"
    default: memmove(to, from, n * 4); break;
  }
}

double sc_get_elem(Elem elem, const void *at, i64 index) {
  switch (elem) {
#define NARROW(id, text, max, name, T) CASE(id, return of_##name(((const T *)at)[index]))
#include "compiler/ir/elem.def"
    case EL_I32: return ((const i32 *)at)[index];
    default: return ((const float *)at)[index];
  }
}

// To f32 by rounding to odd: what is narrower by two bits or more can then be rounded to as if from
// v itself (Boldo and Melquiond, "When double rounding is odd", 2005).
static float to_odd(double v) {
  float f = (float)v;
  if ((double)f == v || v != v) return f;
  u32 u = mf_bits(f);
  if (fabs((double)f) > fabs(v)) u--;
  return mf_float(u | 1);
}

static i32 to_i32(double v) {
  if (v != v) return 0;
  if (v <= INT32_MIN) return INT32_MIN;
  if (v >= INT32_MAX) return INT32_MAX;
  return (i32)nearbyint(v);
}

void sc_set_elem(Elem elem, void *at, i64 index, double v) {
  switch (elem) {
#define NARROW(id, text, max, name, T) CASE(id, ((T *)at)[index] = to_##name(to_odd(v)))
#include "compiler/ir/elem.def"
    case EL_I32: ((i32 *)at)[index] = to_i32(v); break;
    default: ((float *)at)[index] = (float)v; break;
  }
}
