// strip_view.c - reads and writes the elements of views along a strip. In: a run, and where its
// strips are. Out: a load's values in its slot, or a strip's values in dst. Invariant: elements
// outside a view read as 0, and are not written.
//
// The idea: along a strip a view's elements are evenly spaced, so a window (the first one's
// address, a step, bounds) describes all of them, and one call converts them. Contiguous elements
// that already have the type of the computation are used where they lie. Only where a computed
// position varies along the strip, each element's address is computed by itself. strip_run.c calls
// it, once for each strip.
#include "runtime/spec/strip_run.h"

// ---- where they are

// The elements of a view along the current strip: element i, lo <= i < hi, is `step` elements after
// the one before. Where a computed position varies along the strip, each has its own offset
// instead.
typedef struct Window {
  char *at;
  i64 step, lo, hi;
  bool scattered;
} Window;

static u8 element_bytes(u8 store) { return store == STORE_F64 ? 8 : sc_elem[store].bytes; }

// Adds the offset of a computed position to *offset. False: the position lies outside.
static bool add_position(const Operand *o, u32 i, i64 at, i64 *offset) {
  if (at < 0 || at >= o->pos_dim[i]) return false;
  *offset += at * o->pos_stride[i];
  return true;
}

static Window window(const Run *r, const Site *site, i8 x) {
  const Operand *o = &r->op[site->view];
  i64 n = length(r, x), offset = 0;
  Window w = {.hi = n};
  bool inside = o->at;
  for (u32 v = 0; site->vars >> v; v++) {
    if (!(site->vars >> v & 1)) continue;
    i64 at = r->start[v];
    if ((i8)v == x) {
      w.step = o->stride[v];
      if (o->lo[v] > at) w.lo = o->lo[v] - at;
      if (o->hi[v] - at < n) w.hi = o->hi[v] - at;
    } else {
      at += r->off[v];
      inside &= at >= o->lo[v] && at < o->hi[v];
    }
    offset += at * o->stride[v];
  }
  for (u32 i = 0; i < SC_MAX_RANK; i++) {
    if (!site->pos[i].slot) continue;
    const i64 *p = (const void *)values(r, site->pos[i]);
    if (site->pos[i].one || n == 1) inside = inside && add_position(o, i, *p, &offset);
    else w.scattered = true;
  }
  if (!inside || w.hi < w.lo) w.lo = w.hi = 0;
  w.at = (char *)o->at + offset * element_bytes(o->store);
  return w;
}

// The address of element i of a scattered window; NULL: it lies outside.
static char *scattered(const Run *r, const Site *site, const Window *w, i64 i) {
  const Operand *o = &r->op[site->view];
  i64 offset = i * w->step;
  for (u32 d = 0; d < SC_MAX_RANK; d++) {
    const Ref *p = &site->pos[d];
    if (p->slot && !p->one && !add_position(o, d, ((const i64 *)values(r, *p))[i], &offset))
      return NULL;
  }
  return w->at + offset * element_bytes(o->store);
}

// ---- reading

// Copies the window's elements to `to`, and 0 for elements outside.
static void copy_in(const Run *r, const Site *site, const Window *w, u8 ty, char *to, i64 n) {
  const Operand *o = &r->op[site->view];
  const Reals *kind = sc_reals(r->s, ty);
  if (w->lo > 0 || w->hi < n || w->scattered) kind->fill(to, 0, (size_t)n);
  if (!w->scattered) {
    if (w->hi > w->lo)
      kind->load(o->store, to + w->lo * kind->bytes,
                 w->at + w->lo * w->step * element_bytes(o->store), w->step,
                 (size_t)(w->hi - w->lo));
    return;
  }
  for (i64 i = w->lo; i < w->hi; i++) {
    const char *at = scattered(r, site, w, i);
    if (at) kind->load(o->store, to + i * kind->bytes, at, 1, 1);
  }
}

void sc_strip_load(Run *r, const Step *t) {
  const Site *site = &r->s->site.at[t->ref];
  const Operand *o = &r->op[site->view];
  const Reals *kind = sc_reals(r->s, t->ty);
  i64 n = length(r, t->x);
  Window w = window(r, site, t->x);
  char *to = r->base + r->s->slot.at[t->slot].offset;
  i64 part = o->part * element_bytes(o->store);
  if (site->partial && part) {
    u64 sides[PARTS * STRIP];
    for (u32 q = 0; q < PARTS; q++, w.at += part)
      copy_in(r, site, &w, t->ty, (char *)sides + q * n * kind->bytes, n);
    kind->join(X_SUM, to, sides, (size_t)n, (size_t)n);
  } else {
    w.at += (i64)r->q * part;
    bool whole = w.lo == 0 && w.hi == n && !w.scattered;
    bool direct = whole && kind->store == o->store && (w.step == 1 || n == 1);
    if (direct) to = w.at;
    else copy_in(r, site, &w, t->ty, to, n);
  }
  r->row[t->slot] = to;
}

// ---- writing

// Saves the values [lo, hi) of the strip in dst.
static void save(const Run *r, const Window *w, u8 ty, const char *from, i64 lo, i64 hi) {
  const Site *site = &r->s->dst;
  const Operand *o = &r->op[site->view];
  const Reals *kind = sc_reals(r->s, ty);
  if (!w->scattered) {
    kind->save(o->store, o->elem, w->at + lo * w->step * element_bytes(o->store), w->step,
               from + lo * kind->bytes, (size_t)(hi - lo));
    return;
  }
  for (i64 i = lo; i < hi; i++) {
    char *at = scattered(r, site, w, i);
    if (at) kind->save(o->store, o->elem, at, 1, from + i * kind->bytes, 1);
  }
}

// Tells whoever follows the run's writes that elements [lo, hi) of the strip are written.
static void tell(const Run *r, i64 lo, i64 hi) {
  i64 from[SC_MAX_VARS] = {0}, to[SC_MAX_VARS] = {0};
  for (u32 i = 0; i < r->s->outers; i++) {
    from[r->s->outer[i]] = r->start[r->s->outer[i]];
    to[r->s->outer[i]] = from[r->s->outer[i]] + 1;
  }
  if (r->s->v >= 0) {
    from[r->s->v] = r->start[r->s->v] + lo;
    to[r->s->v] = r->start[r->s->v] + hi;
  }
  r->watch->wrote(r->watch->user, from, to);
}

void sc_strip_write(const Run *r, u8 ty, const char *from, const u8 *mask, u32 q) {
  const Operand *o = &r->op[r->s->dst.view];
  Window w = window(r, &r->s->dst, r->s->v);
  u64 sum[STRIP];
  w.at += (i64)q * o->part * element_bytes(o->store);
  if (r->mode == ACCUMULATE) {
    const Reals *kind = sc_reals(r->s, ty);
    i64 n = length(r, r->s->v);
    StripFn *add = kind->op[X_ADD];
    u64 old[STRIP];
    copy_in(r, &r->s->dst, &w, ty, (char *)old, n);
    add(sum, old, from, NULL, 0, (size_t)n);
    from = (const char *)sum;
  }
  for (i64 lo = w.lo, hi; lo < w.hi; lo = hi) {
    hi = w.hi;
    if (mask) {
      while (lo < w.hi && !mask[lo]) lo++;
      for (hi = lo; hi < w.hi && mask[hi]; hi++) continue;
    }
    if (lo == hi) continue;
    save(r, &w, ty, from, lo, hi);
    if (r->watch) tell(r, lo, hi);
  }
}
