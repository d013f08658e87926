// ranged.c - what a schedule says of the elements of its inputs, `in 0 .. n` and `rising`, held
// against tensors in host memory. In: a binding. Out: whether all elements are as declared, or a
// report on the first one that is not. Proofs rely on this. (cuda/elements.c brings here what lies
// in a GPU's memory, if a caller asks for that.) And before there are tensors: what is said of
// elements and of shapes under some dimensions and scalars.
#include "runtime/run.h"
#include "runtime/data/launchvalue.h"
#include "compiler/passes.h"

#include <math.h>

typedef struct Ranged {
  Sc *sc;
  const Kernel *k;
  const Buf *buf;
  const TensorRef *at;
  i64 least, end;  // of the tensor's elements, if its declaration says so
} Ranged;

static const SclValue *values_of(Sc *sc, const Kernel *k, const LaunchKnown *in) {
  SclValue *value = NEWS(sc, SclValue, k->expr.n + 1);
  sc_launch_values(sc, k, in, value);
  return value;
}

static const SclValue *values_in(Sc *sc, const Binding *b) {
  const Kernel *k = b->k;
  bool *known = NEWS(sc, bool, k->dim.n + k->arg.n + 1);
  for (u32 i = 0; i < k->dim.n + k->arg.n; i++) known[i] = true;
  const LaunchKnown in = {b->dim, known, b->arg, known};
  return values_of(sc, k, &in);
}

static Diag *report(const Ranged *r, const Extent *x, size_t i, i64 element, const char *why) {
  Str place = {.sc = r->sc};
  i64 at[SC_MAX_RANK];
  for (size_t d = x->rank; d-- > 0; i /= (size_t)x->shape[d])
    at[d] = (i64)(i % (size_t)x->shape[d]);
  for (size_t d = 0; d < x->rank; d++)
    str_printf(&place, "%s%lld", d ? ", " : "", (long long)at[d]);
  Diag *d = sc_report(r->sc, D_T_ELEMENT, r->buf->span, "element [%s] of '%s' is %lld, %s",
                      place.at, r->buf->name, (long long)element, why);
  sc_help(r->sc, d, "give a list that is as its declaration says, as in --set '%s=[…]'",
          r->buf->name);
  return d;
}

static bool fits(const Ranged *r) {
  const Extent x = {r->at->shape, r->at->stride, r->buf->rank};
  i64 last = INT64_MIN;
  if (sc_elements(&x) && r->buf->end && r->least >= r->end) {
    sc_report(
        r->sc, D_T_REQUIRE, r->buf->span,
        "'%s' has elements, but the range in which they are declared is empty here: %lld .. %lld",
        r->buf->name, (long long)r->least, (long long)r->end);
    return false;
  }
  for (size_t i = 0, n = sc_elements(&x); i < n; i++) {
    i64 element = (i64)sc_get_elem(EL_I32, r->at->at, sc_where(&x, i));
    if (r->buf->end && (element < r->least || element >= r->end)) {
      const char *range = sc_printf(r->sc, "%lld .. %lld", (long long)r->least, (long long)r->end);
      return report(r, &x, i, element, sc_printf(r->sc, "but it is declared in %s", range)), false;
    }
    if (r->buf->rising && element < last)
      return report(r, &x, i, element, "less than the one before, but it is declared rising"),
             false;
    last = element;
  }
  return true;
}

bool sc_elements_fit(Sc *sc, const Binding *b) {
  const Kernel *k = b->k;
  const SclValue *value = NULL;
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *buf = &k->buf.at[i];
    if (!sc_is_promised(buf) || !b->buf[i].at) continue;
    if (!value) value = values_in(sc, b);
    Ranged r = {sc, k, buf, &b->buf[i], value[buf->least].i, value[buf->end].i};
    if (buf->end && !(value[buf->least].known && value[buf->end].known)) {
      sc_report(sc, D_T_ELEMENT, buf->span, "the range of the elements of '%s' has no value here",
                buf->name);
      return false;
    }
    if (!fits(&r)) return false;
  }
  return true;
}

bool sc_call_fits(Sc *sc, const Binding *b) {
  if (!sc_elements_fit(sc, b)) return false;
  for (u32 i = 0; i < b->k->launch.n; i++) {
    const Binding *one = sc_bind_launch(sc, b, &b->k->launch.at[i]);
    if (!one || !sc_elements_fit(sc, one)) return false;
  }
  return true;
}

enum { DRAWN = 16 };  // integers of which nothing is said are from 0 to 15

// Gives scalars their defaults, as far as these follow from what is known.
static void take_defaults(Sc *sc, const Kernel *k, const LaunchKnown *in, double *arg,
                          bool *known) {
  for (u32 a = 0; a < k->arg.n; a++) {
    const Xid init = k->arg.at[a].init;
    known[a] = !isnan(arg[a]);
    if (known[a] || !init) continue;
    const SclValue v = values_of(sc, k, in)[init];
    known[a] = v.known;
    arg[a] = k->expr.at[init].ty == TY_REAL ? v.f : (double)v.i;
  }
}

// Of each expression, with scalars that are NaN at their defaults.
static const SclValue *values_with(Sc *sc, const Kernel *k, const i64 *dim, const bool *known,
                                   double *arg) {
  bool *told = NEWS(sc, bool, k->arg.n + 1);
  const LaunchKnown in = {dim, known, arg, told};
  take_defaults(sc, k, &in, arg, told);
  return values_of(sc, k, &in);
}

void sc_element_range(Sc *sc, const Kernel *k, const i64 *dim, const bool *known, double *arg,
                      u32 buf, i64 *least, i64 *end) {
  const SclValue *value = values_with(sc, k, dim, known, arg);
  const Buf *b = &k->buf.at[buf];
  bool said = b->end && value[b->least].known && value[b->end].known;
  *least = said ? value[b->least].i : 0;
  *end = said ? value[b->end].i : DRAWN;
}

bool sc_tensor_shape(Sc *sc, const Kernel *k, const i64 *dim, const bool *known, double *arg,
                     u32 buf, i64 *shape) {
  const SclValue *value = values_with(sc, k, dim, known, arg);
  for (u32 d = 0; d < k->buf.at[buf].rank; d++) {
    if (!value[k->buf.at[buf].dim[d]].known) return false;
    shape[d] = value[k->buf.at[buf].dim[d]].i;
  }
  return true;
}
