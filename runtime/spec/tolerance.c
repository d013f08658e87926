// tolerance.c - decides whether an output is right. In: bound tensors after a run. Out: for each
// output, its distance from the specification, and the distance that is allowed.
//
// The idea is FlashAttention's: evaluate the specification exactly (ref), and once more with every
// named value rounded to its element type (pt). The error of pt says how much error a right kernel
// may have:
//   max  |out - ref| <= 2 max |pt - ref| + 2 max |(ref + 0.3 - 0.3) - ref|   (in the output's type)
//   mean |out - ref| <= 1.5 mean |pt - ref| + chance, or the mean of half a unit in ref's last
//   place
// The lower bound of the mean matters where pt happens to be exact. Sums of products that tensor
// cores can add up are added in pt as these do (strip.c, tensorsum.h). Tensor cores truncate, which
// makes the exponent in a softmax too small by more than rounding would.
//
// Chance: the factor 1.5 allows for what the kernel rounds otherwise than pt. But the means of two
// sets of n errors differ even if both come from one distribution: each mean varies by about the
// standard deviation of an error's size over sqrt(n), and three times that is allowed. The root of
// the mean of pt's squared errors is taken for the deviation. For normal errors that is two thirds
// more, which covers the variation of both means, and it is not too small where a few errors happen
// to be alike. A single element has the bound of the largest error alone.
//
// An f32 output has the bounds of pt if a value is rounded to a narrow type on the way to it, both
// in the kernel and in the specification (narrow.c). All other f32 outputs are sums in f32. They
// may be off by 1e-3 where the largest value is between 1 and 64, in proportion by less below and
// by more above, but never by less than 1e-5. Where pt gives the bounds, a hundredth of that is
// added for the errors of f32; or 2^-19 of the largest value, if that is more: where the named
// values are exact in their types, pt is a sum in f32 as well, and says nothing of sums in another
// order. Where products have 8-bit factors, which the tensor cores of Hopper add up with about 14
// bits, f32 outputs may be off by 2^-10 of the largest value, and in the mean by 2^-12. Sums are
// truncated once more for every 32 terms. So where the longest sum of the specification has n
// terms, the bound of the mean is sqrt(n / 32) times that, and the bound of the largest, whose
// terms may all have one sign, n / 32 times. (Measured on an H200 in 2^-10: 1.6 for n = 256, 2.7
// for 1024, 6.7 for 4096; of one sign, 14 for 1024. The model has the same.) Integers must be
// equal.
//
// If the specification is sampled, all this holds of the sample; the other elements must not be
// NaN, unless some of the sample are, or should be. Infinities and NaN must be where the
// specification has them. A value that the type cannot hold may be what a conversion makes of it:
// infinity, or the largest number.
//
// A bound may be so wide that it proves nothing, where rounding errors are as large as the output.
// So the looseness tells how wrong an output could be if all elements were off by the same part of
// their values. On normal inputs it is at most 0.05 for any schedule, shipped or of the corpus
// (with e4m3 products; without them 0.007). The ceiling is 0.2. An output of zeros has no size to
// compare with.
#include <math.h>
#include <string.h>

#include "runtime/run.h"

#define CEILING 0.2  // of an output's looseness

// By how much an f32 output may be off, given its largest value.
static double absolute(double largest) {
  return 1e-3 * (largest > 64 ? largest / 64 : largest > 1 ? 1 : fmax(largest, 0.01));
}

// Does the kernel have products of 8-bit factors?
static bool adds_coarsely(const Kernel *k) {
  for (u32 i = 0; i < k->product.n; i++) {
    const Buf *factor = &k->buf.at[k->view.at[k->product.at[i].b].buf];
    if (sc_elem[factor->elem].bytes == 1) return true;
  }
  for (u32 i = 0; i < k->launch.n; i++)
    if (adds_coarsely(k->launch.at[i].kernel)) return true;
  return false;
}

static size_t elements(const TensorRef *t, u32 rank) {
  size_t n = 1;
  for (u32 i = 0; i < rank; i++) n *= (size_t)t->shape[i];
  return n;
}

// |(v + 0.3 - 0.3) - v| in the type's arithmetic.
static double grain(Elem elem, double v) {
  if (!isfinite(v) || fabs(v) > sc_elem[elem].max) return 0;
  float r = sc_round(elem, (float)v);
  return fabs((double)sc_round(elem, sc_round(elem, r + 0.3f) - 0.3f) - r);
}

// Half the distance between neighbouring values of the type at v.
static double half_unit(Elem elem, double v) {
  u16 code = 0, beside;
  if (!isfinite(v) || fabs(v) > sc_elem[elem].max) return 0;
  if (sc_elem[elem].bytes == 1) {
    u8 byte;
    sc_set_elem(elem, &byte, 0, fabs(v));
    u8 next = byte ? (u8)(byte - 1) : 1;
    return 0.5 * fabs(sc_get_elem(elem, &byte, 0) - sc_get_elem(elem, &next, 0));
  }
  sc_set_elem(elem, &code, 0, fabs(v));
  beside = code ? (u16)(code - 1) : 1;
  return 0.5 * fabs(sc_get_elem(elem, &code, 0) - sc_get_elem(elem, &beside, 0));
}

// ref, or the type's largest number if ref is beyond it and the type saturates.
static double held(Elem elem, double ref) {
  if (!isfinite(ref) || fabs(ref) <= sc_elem[elem].max) return ref;
  double r = sc_round(elem, (float)ref);
  return isfinite(r) ? r : ref;
}

// The distance of an element from the specification; infinite where any distance is too large. An
// overflow to infinity counts as the type's largest number: results on both sides of that edge are
// near each other.
static double distance(Elem elem, double out, double ref) {
  if (out == ref || (isnan(out) && isnan(ref))) return 0;
  if (isinf(out) && isfinite(ref) && sc_elem[elem].flt && (out > 0) == (ref > 0)) {
    return fmax(0, sc_elem[elem].max - fabs(ref));
  }
  return isfinite(out) && isfinite(ref) ? fabs(out - ref) : INFINITY;
}

typedef struct Sums {
  double max_pt, sum_pt, square_pt, max_grain, sum_unit, max_ref, sum_ref, sum_error;
  bool nan;  // some element of the specification is
} Sums;

// The indices of element n (row-major) of box `box`, and its offset in the tensor.
static i64 indices(const TensorRef *t, u32 rank, const Boxes *in, i64 box, size_t n, i64 *idx) {
  i64 at = 0;
  for (u32 i = rank; i-- > 0; n /= (size_t)in->extent[i]) {
    idx[i] = in->origin[box][i] + (i64)(n % (size_t)in->extent[i]);
    at += idx[i] * t->stride[i];
  }
  return at;
}

// Counts a NaN, or an infinity where the type could hold ref. It counts as an overflow on the way
// if the element is infinite, or if pt, with the specification's rounding, is no finite number
// either.
static void count_special(schedc_error *e, Elem elem, double out, double ref, double pt) {
  bool nan = isnan(out) && !isnan(ref), infinite = isinf(out) && fabs(ref) <= sc_elem[elem].max;
  bool overflow = infinite || (nan && isfinite(ref) && !isfinite(pt));
  e->overflowed += overflow;
  e->unwritten += nan && !overflow;
}

static void compare_element(schedc_error *e, Sums *s, Elem elem, double out, double ref, double pt,
                            const i64 *idx) {
  ref = held(elem, ref);
  double error = distance(elem, out, ref),
         rounding = isfinite(ref) && isfinite(pt) ? fabs(pt - ref) : 0;
  s->max_pt = fmax(s->max_pt, rounding);
  s->sum_pt += rounding;
  s->square_pt += rounding * rounding;
  if (sc_is_narrow(elem)) {
    s->max_grain = fmax(s->max_grain, grain(elem, ref));
    s->sum_unit += half_unit(elem, ref);
  }
  if (isfinite(ref)) {
    s->max_ref = fmax(s->max_ref, fabs(ref));
    s->sum_ref += fabs(ref);
  }
  s->sum_error += error;
  s->nan |= isnan(ref);
  count_special(e, elem, out, ref, pt);
  if (error > e->max_error || e->elements == 0) {
    e->max_error = error;
    e->worst_out = out;
    e->worst_ref = ref;
    memcpy(e->worst, idx, sizeof e->worst);
  }
  e->elements++;
}

// Sets the bounds that pt gives. `own`: what is added for the errors of f32.
static void allow_rounding(schedc_error *e, const Sums *s, double n, double own) {
  e->max_allowed = e->mean_allowed = 2 * s->max_pt + 2 * s->max_grain + own;
  if (n <= 1) return;
  double chance = 3 * sqrt(s->square_pt / n / (n - 1));
  e->mean_allowed = fmax(1.5 * s->sum_pt / n + chance, s->sum_unit / n) + own;
}

// Sets an output's bounds. coarse: the terms of the longest sum if products have 8-bit factors;
// else 0.
static void set_allowed(schedc_error *e, const Sums *s, Elem elem, bool by_pt, double coarse) {
  double n = e->elements ? (double)e->elements : 1, flat = absolute(s->max_ref);
  if (sc_is_narrow(elem)) {
    allow_rounding(e, s, n, 0);
  } else if (elem == EL_F32 && by_pt) {
    allow_rounding(e, s, n, fmax(flat / 100, ldexp(s->max_ref, -19)));
  } else if (elem == EL_F32) {
    e->max_allowed = e->mean_allowed = flat;
  }
  if (elem == EL_F32 && coarse > 0) {
    e->max_allowed = fmax(e->max_allowed, fmax(1, coarse / 32) * s->max_ref / 1024);
    e->mean_allowed = fmax(e->mean_allowed, fmax(1, sqrt(coarse / 32)) * s->max_ref / 4096);
  }
  e->mean_error = s->sum_error / n;
}

// The part of their values by which all elements may be off within the bounds.
static double looseness(const schedc_error *e, const Sums *s, Elem elem) {
  if (sc_round(elem, (float)s->max_ref) == 0) return 0;
  double in_mean = e->mean_allowed * (double)e->elements / s->sum_ref;
  return fmin(e->max_allowed / s->max_ref, in_mean);
}

static void judge(schedc_error *e, const Sums *s, Elem elem) {
  bool within = e->max_error <= e->max_allowed && e->mean_error <= e->mean_allowed && !e->unwritten;
  e->looseness = looseness(e, s, elem);
  e->unproven = within && e->looseness > CEILING;
  e->pass = within && !e->unproven;
}

// Counts the NaN of an output. The last dimension is contiguous.
static void count_unwritten(schedc_error *e, const TensorRef *t, u32 rank, Elem elem) {
  enum { CHUNK = 1024 };
  float value[CHUNK];
  i64 idx[SC_MAX_RANK] = {0}, row = rank ? t->shape[rank - 1] : 1;
  e->unwritten = 0;
  for (size_t left = elements(t, rank); left; left -= (size_t)row) {
    i64 at = 0;
    for (u32 i = 0; i + 1 < rank; i++) at += idx[i] * t->stride[i];
    for (i64 j = 0, n; j < row; j += n) {
      n = row - j < CHUNK ? row - j : CHUNK;
      sc_load_elems(elem, value, t->at + (at + j) * sc_elem[elem].bytes, (size_t)n);
      for (i64 i = 0; i < n; i++) e->unwritten += isnan(value[i]);
    }
    for (u32 i = rank; i-- > 1 && ++idx[i - 1] == t->shape[i - 1];) idx[i - 1] = 0;
  }
}

static void compare_output(const Kernel *k, const Binding *b, u32 buf, u8 rounded, double coarse,
                           const Boxes *ref, const Boxes *pt, schedc_error *e) {
  const TensorRef *t = &b->buf[buf];
  u32 rank = k->buf.at[buf].rank;
  Elem elem = k->buf.at[buf].elem;
  size_t size = e->size, n = 1, at = 0;
  Sums s = {0};
  *e = (schedc_error){.size = size, .tensor = k->buf.at[buf].name, .total = elements(t, rank)};
  e->may_overflow = (rounded & MAY_OVERFLOW) != 0;
  for (u32 i = 0; i < rank; i++) n *= (size_t)ref->extent[i];
  for (i64 box = 0; box < ref->n; box++)
    for (size_t i = 0; i < n; i++, at++) {
      i64 idx[SC_MAX_RANK] = {-1, -1, -1, -1, -1, -1}, offset = indices(t, rank, ref, box, i, idx);
      compare_element(e, &s, elem, sc_get_elem(elem, t->at, offset), ref->at[at], pt->at[at], idx);
    }
  bool whole = e->elements == e->total;
  if (!whole && !s.nan && !e->overflowed && sc_elem[elem].flt) count_unwritten(e, t, rank, elem);
  bool by_pt = rounded & ROUNDED_BY_KERNEL && rounded & ROUNDED_BY_SPEC;
  set_allowed(e, &s, elem, by_pt, coarse);
  judge(e, &s, elem);
}

schedc_status sc_compare(Sc *sc, const Kernel *k, const Binding *b, unsigned threads,
                         const Sample *sample, schedc_error *errors) {
  Sc own;  // the two evaluations' results are gone when it returns
  jmp_buf home;
  sc_init(&own, &sc->alloc);
  own.unwind = &home;
  if (setjmp(home)) {
    schedc_status why = own.why;
    sc_free(&own);
    return why;
  }
  Boxes *ref = NEWS(&own, Boxes, k->buf.n), *pt = NEWS(&own, Boxes, k->buf.n);
  i64 longest = 0;
  schedc_status status = sc_spec(&own, k, b, true, threads, sample, ref, &longest);
  if (status == SCHEDC_OK) status = sc_spec(&own, k, b, false, threads, sample, pt, NULL);
  u8 *rounded = sc_rounded(&own, k);
  double coarse = adds_coarsely(k) ? fmax(1, (double)longest) : 0;
  for (u32 i = 0, n = 0; status == SCHEDC_OK && i < k->buf.n; i++)
    if (sc_is_output(&k->buf.at[i]))
      compare_output(k, b, i, rounded[i], coarse, &ref[i], &pt[i], &errors[n++]);
  sc_free(&own);
  return status;
}
