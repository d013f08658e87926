// tolerance.c - is an output right? In: bound tensors after a run. Out: for each output, its
// distance from the specification and what is allowed.
//
// The idea is FlashAttention's: evaluate the specification exactly (ref), and once more with every
// named value rounded to the kernel's element type (pt). What that rounding costs says how much
// error is honest:
//   max  |out - ref| <= 2 max |pt - ref| + 2 max |(ref + 0.3 - 0.3) - ref|   (in the output's type)
//   mean |out - ref| <= 1.5 mean |pt - ref|, or the mean of half a unit in ref's last place
// The floor of the mean matters where pt happens to be exact. f32 outputs (log-sum-exp, row sums)
// are held to 1e-3 where the largest value is between 1 and 64, to less or more in proportion
// beyond, at least to 1e-5; to 2^-10 of the largest value, in the mean to 2^-12, where products
// have 8-bit factors, which the tensor cores of Hopper add up with about 14 bits; integers to
// equality. Of a sampled specification this is said of the sample; the other elements must not be
// NaN, unless some of the sample are. Infinities and NaN must be where the specification has them.
// Values that the type cannot hold may be what a conversion makes of them: infinity, or the largest
// number.
#include <math.h>
#include <string.h>

#include "run.h"

// What an f32 output may be off, given its largest value.
static double absolute(double largest) {
  return 1e-3 * (largest > 64 ? largest / 64 : largest > 1 ? 1 : fmax(largest, 0.01));
}

// Has it products of 8-bit factors?
static bool adds_coarsely(const Kernel *k) {
  for (u32 i = 0; i < k->product.n; i++) {
    const Buf *factor = &k->buf.at[k->view.at[k->product.at[i].b].buf];
    if (sc_elem[factor->elem].bytes == 1) return true;
  }
  for (u32 i = 0; i < k->launch.n; i++)
    if (adds_coarsely(k->launch.at[i].kernel)) return true;
  return false;
}

// The kernel's element type: the first narrow input's.
static Elem narrow_type(const Kernel *k) {
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *b = &k->buf.at[i];
    bool narrow = sc_elem[b->elem].flt && sc_elem[b->elem].bytes < 4;
    if (b->space == SP_TENSOR && b->dir & SCHEDC_IN && narrow) return b->elem;
  }
  return EL_F32;
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

// Half the distance of neighbours at v.
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

// ref as the output's type can hold it, if the type saturates.
static double held(Elem elem, double ref) {
  if (!isfinite(ref) || fabs(ref) <= sc_elem[elem].max) return ref;
  double r = sc_round(elem, (float)ref);
  return isfinite(r) ? r : ref;
}

// Distance of an element; infinite where no distance would do. An overflow to infinity is as far
// from a finite value as the largest number is: results on both sides of the edge are near each
// other.
static double distance(Elem elem, double out, double ref) {
  if (out == ref || (isnan(out) && isnan(ref))) return 0;
  if (isinf(out) && isfinite(ref) && sc_elem[elem].flt && (out > 0) == (ref > 0)) {
    return fmax(0, sc_elem[elem].max - fabs(ref));
  }
  return isfinite(out) && isfinite(ref) ? fabs(out - ref) : INFINITY;
}

typedef struct Sums {
  double max_pt, sum_pt, max_grain, sum_unit, max_ref, sum_error;
  bool nan;  // some element of the specification is
} Sums;

// The place of element n (row-major) of box `box`, and its offset in the tensor.
static i64 place(const TensorRef *t, u32 rank, const Boxes *in, i64 box, size_t n, i64 *idx) {
  i64 at = 0;
  for (u32 i = rank; i-- > 0; n /= (size_t)in->extent[i]) {
    idx[i] = in->origin[box][i] + (i64)(n % (size_t)in->extent[i]);
    at += idx[i] * t->stride[i];
  }
  return at;
}

static void compare_element(schedc_error *e, Sums *s, Elem elem, double out, double ref, double pt,
                            const i64 *idx) {
  ref = held(elem, ref);
  double error = distance(elem, out, ref),
         rounding = isfinite(ref) && isfinite(pt) ? fabs(pt - ref) : 0;
  s->max_pt = fmax(s->max_pt, rounding);
  s->sum_pt += rounding;
  if (sc_elem[elem].flt && sc_elem[elem].bytes < 4) {
    s->max_grain = fmax(s->max_grain, grain(elem, ref));
    s->sum_unit += half_unit(elem, ref);
  }
  if (isfinite(ref)) s->max_ref = fmax(s->max_ref, fabs(ref));
  s->sum_error += error;
  s->nan |= isnan(ref);
  e->unwritten += isnan(out) && !isnan(ref);
  if (error > e->max_error || e->elements == 0) {
    e->max_error = error;
    e->worst_out = out;
    e->worst_ref = ref;
    memcpy(e->worst, idx, sizeof e->worst);
  }
  e->elements++;
}

static void set_allowed(schedc_error *e, const Sums *s, Elem elem, bool coarse) {
  double n = e->elements ? (double)e->elements : 1;
  if (elem == EL_F32) {
    e->max_allowed = fmax(absolute(s->max_ref), coarse ? s->max_ref / 1024 : 0);
    e->mean_allowed = fmax(absolute(s->max_ref), coarse ? s->max_ref / 4096 : 0);
  } else if (sc_elem[elem].flt) {
    e->max_allowed = 2 * s->max_pt + 2 * s->max_grain;
    e->mean_allowed = fmax(1.5 * s->sum_pt, s->sum_unit) / n;
  }
  e->mean_error = s->sum_error / n;
  e->pass = e->max_error <= e->max_allowed && e->mean_error <= e->mean_allowed && !e->unwritten;
}

// Counts an output's NaN. The last dimension is contiguous.
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

static void compare_output(const Kernel *k, const Binding *b, u32 buf, const Boxes *ref,
                           const Boxes *pt, schedc_error *e) {
  const TensorRef *t = &b->buf[buf];
  u32 rank = k->buf.at[buf].rank;
  Elem elem = k->buf.at[buf].elem;
  size_t size = e->size, n = 1, at = 0;
  Sums s = {0};
  *e = (schedc_error){.size = size, .tensor = k->buf.at[buf].name, .total = elements(t, rank)};
  for (u32 i = 0; i < rank; i++) n *= (size_t)ref->extent[i];
  for (i64 box = 0; box < ref->n; box++)
    for (size_t i = 0; i < n; i++, at++) {
      i64 idx[SC_MAX_RANK] = {-1, -1, -1, -1, -1, -1}, offset = place(t, rank, ref, box, i, idx);
      compare_element(e, &s, elem, sc_get_elem(elem, t->at, offset), ref->at[at], pt->at[at], idx);
    }
  if (e->elements < e->total && !s.nan && sc_elem[elem].flt) count_unwritten(e, t, rank, elem);
  set_allowed(e, &s, elem, adds_coarsely(k));
}

static bool is_output(const Buf *b) {
  return b->space == SP_TENSOR && b->dir & SCHEDC_OUT && !b->workspace;
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
  schedc_status status = sc_spec(&own, k, b, true, EL_F32, threads, sample, ref);
  if (status == SCHEDC_OK) status = sc_spec(&own, k, b, false, narrow_type(k), threads, sample, pt);
  for (u32 i = 0, n = 0; status == SCHEDC_OK && i < k->buf.n; i++)
    if (is_output(&k->buf.at[i])) compare_output(k, b, i, &ref[i], &pt[i], &errors[n++]);
  sc_free(&own);
  return status;
}
