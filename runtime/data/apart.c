// apart.c - does an output of a run in host memory share memory with another tensor? In: tensors
// that are bound. Outputs are filled with NaN before a run, so that another tensor's elements would
// be lost. What lies between the elements of one (its padding, the columns of another view of the
// same array) may be the other's: where the ranges of two meet, their bytes are marked. Called by
// run.c of the API; calls extent.c.
#include "runtime/run.h"

typedef struct Bytes {
  const char *from, *to;  // of the first element, and behind the last
  Extent extent;
  size_t elem;
} Bytes;

static Bytes bytes_of(const Binding *b, u32 i) {
  const Buf *buf = &b->k->buf.at[i];
  const TensorRef *t = &b->buf[i];
  Bytes x = {t->at, t->at, {t->shape, t->stride, buf->rank}, sc_elem[buf->elem].bytes};
  x.to += sc_storage(&x.extent) * x.elem;
  return x;
}

// Goes through the bytes of x from `from` on, before `to`: marks them, or finds a marked one.
static bool walk(const Bytes *x, const char *from, const char *to, u8 *marks, bool mark) {
  size_t run = sc_run_length(&x->extent), n = sc_elements(&x->extent);
  for (size_t i = 0; i < n; i += run) {
    const char *at = x->from + (size_t)sc_where(&x->extent, i) * x->elem, *end = at + run * x->elem;
    if (at < from) at = from;
    if (end > to) end = to;
    for (; at < end; at++) {
      size_t bit = (size_t)(at - from);
      if (mark) marks[bit / 8] |= (u8)(1 << bit % 8);
      else if (marks[bit / 8] >> bit % 8 & 1) return true;
    }
  }
  return false;
}

static bool meet(Sc *sc, const Bytes *a, const Bytes *b) {
  const char *from = a->from > b->from ? a->from : b->from, *to = a->to < b->to ? a->to : b->to;
  if (from >= to) return false;
  u8 *marks = NEWS(sc, u8, (size_t)(to - from) / 8 + 1);
  walk(a, from, to, marks, true);
  return walk(b, from, to, marks, false);
}

bool sc_outputs_apart(Sc *sc, const Binding *b) {
  const Kernel *k = b->k;
  for (u32 i = 0; i < k->buf.n; i++) {
    if (!sc_is_argument(&k->buf.at[i]) || k->buf.at[i].dir != SCHEDC_OUT) continue;
    Bytes output = bytes_of(b, i);
    for (u32 n = 0; n < k->buf.n; n++) {
      if (n == i || !sc_is_argument(&k->buf.at[n])) continue;
      Bytes other = bytes_of(b, n);
      if (!meet(sc, &output, &other)) continue;
      Diag *d = sc_report(sc, D_T_OVERLAP, k->buf.at[i].span,
                          "'%s' is an output, and shares memory with '%s'", k->buf.at[i].name,
                          k->buf.at[n].name);
      sc_note(sc, d, k->buf.at[n].span, "declared here");
      sc_help(sc, d, "give it memory of its own: it is filled with NaN before the run");
      return false;
    }
  }
  return true;
}
