// known.c - what the threads of an instance have done and know: how operations change it, and what
// remains where two paths meet. A join only ever lowers a number and enlarges a set, so a walk that
// repeats loops ends.
#include <string.h>

#include "compiler/verify/threads.h"

static const Stage fresh_stage = {.product = LANDED, .copy = LANDED};

Known *th_known(Sc *sc, const Kernel *k) {
  u32 stages = k->ring.n * (MOST_HOLDS + 1);
  Known *n = NEW(sc, Known);
  n->held = NEWS(sc, u32, k->ring.n + 1);
  n->open = NEWS(sc, bool, k->ring.n + 1);
  n->stage = NEWS(sc, Stage, stages + 1);
  n->tile = NEWS(sc, Tile, k->buf.n + 1);
  n->tensor = NEWS(sc, Tensor, k->buf.n + 1);
  for (u32 i = 0; i < stages; i++) n->stage[i] = fresh_stage;
  for (u32 i = 0; i < k->buf.n; i++) {
    n->tile[i].into = n->tile[i].from = LANDED;
    n->tensor[i].store = n->tensor[i].add = LANDED;
  }
  return n;
}

void th_known_copy(Known *to, const Known *from, const Kernel *k) {
  memcpy(to->held, from->held, k->ring.n * sizeof *to->held);
  memcpy(to->open, from->open, k->ring.n * sizeof *to->open);
  memcpy(to->stage, from->stage, k->ring.n * (MOST_HOLDS + 1) * sizeof *to->stage);
  memcpy(to->tile, from->tile, k->buf.n * sizeof *to->tile);
  memcpy(to->tensor, from->tensor, k->buf.n * sizeof *to->tensor);
  to->turns = from->turns;
  to->heard = from->heard;
  memcpy(to->path.at, from->path.at, from->path.n * sizeof *to->path.at);
  to->path.n = from->path.n;
}

// ---- two paths meet

static bool least(u8 *into, u8 from) {
  bool less = from < *into;
  if (less) *into = from;
  return less;
}

// Keeps the smaller age, with the operation that it belongs to.
static bool newest(u8 *into, u8 from, u32 *site, u32 from_site) {
  if (!least(into, from)) return false;
  *site = from_site;
  return true;
}

static bool grow(u8 *into, u8 from) {
  bool more = from & ~*into;
  *into |= from;
  return more;
}

static bool grow_set(u64 *into, u64 from) {
  bool more = (from & ~*into) != 0;
  *into |= from;
  return more;
}

static bool either(bool *into, bool from) {
  bool more = from && !*into;
  *into |= from;
  return more;
}

static bool both(bool *into, bool from) {
  bool less = *into && !from;
  *into &= from;
  return less;
}

static bool join_access(Access *into, const Access *from, bool had, bool has) {
  if (!has || (had && (into->pc == SEVERAL || (into->pc == from->pc && into->view == from->view))))
    return false;
  *into = had ? (Access){SEVERAL, 0} : *from;
  return true;
}

static bool join_place(Place *into, const Place *from) {
  bool changed =
      join_access(&into->writer, &from->writer, into->apart & DID_WRITE, from->apart & DID_WRITE);
  changed |=
      join_access(&into->reader, &from->reader, into->apart & DID_READ, from->apart & DID_READ);
  changed |= grow(&into->apart, from->apart);
  changed |= grow(&into->raw, from->raw);
  changed |= either(&into->heard, from->heard);
  return either(&into->elect, from->elect) || changed;
}

static bool join_stage(Stage *into, const Stage *from) {
  bool changed = join_place(&into->at, &from->at);
  changed |= newest(&into->product, from->product, &into->by_product, from->by_product);
  changed |= newest(&into->copy, from->copy, &into->by_copy, from->by_copy);
  changed |= least(&into->issued, from->issued);
  changed |= both(&into->past, from->past);
  changed |= either(&into->elected, from->elected);
  changed |= grow_set(&into->landing, from->landing);
  changed |= grow_set(&into->stored, from->stored);
  return either(&into->told, from->told) || changed;
}

static bool join_tile(Tile *into, const Tile *from) {
  bool changed = newest(&into->into, from->into, &into->by_into, from->by_into);
  return newest(&into->from, from->from, &into->by_from, from->by_from) || changed;
}

static bool join_tensor(Tensor *into, const Tensor *from) {
  bool changed = join_place(&into->at, &from->at);
  changed |= newest(&into->store, from->store, &into->by_copy, from->by_copy);
  changed |= newest(&into->add, from->add, &into->by_copy, from->by_copy);
  changed |= grow_set(&into->stores, from->stores);
  return grow_set(&into->turns, from->turns) || changed;
}

static bool holds_same(const Known *a, const Known *b, const Kernel *k) {
  bool same = a->turns == b->turns;
  for (u32 r = 0; r < k->ring.n; r++) same &= a->held[r] == b->held[r] && a->open[r] == b->open[r];
  return same;
}

static bool lands_alike(u8 a, u8 b, bool aged) {
  return aged ? a == b : (a == LANDED) == (b == LANDED);
}

bool th_known_alike(const Known *a, const Known *b, const Kernel *k, bool aged) {
  bool alike = holds_same(a, b, k);
  for (u32 r = 0; r < k->ring.n && alike; r++) {
    for (u32 h = 0; h < a->held[r]; h++) {
      const Stage *x = th_stage(a, r, h), *y = th_stage(b, r, h);
      alike &= lands_alike(x->product, y->product, aged) && lands_alike(x->copy, y->copy, aged);
    }
  }
  for (u32 i = 0; i < k->buf.n && alike; i++) {
    const Tile *x = &a->tile[i], *y = &b->tile[i];
    const Tensor *t = &a->tensor[i], *u = &b->tensor[i];
    alike = lands_alike(x->into, y->into, aged) && lands_alike(x->from, y->from, aged) &&
            lands_alike(t->store, u->store, aged) && lands_alike(t->add, u->add, aged);
  }
  return alike;
}

bool th_known_join(Known *into, const Known *from, const Kernel *k, bool *changed) {
  bool same = holds_same(into, from, k);
  *changed |= either(&into->heard, from->heard);
  for (u32 r = 0; r < k->ring.n; r++) {
    for (u32 h = 0; h < into->held[r]; h++)
      *changed |= join_stage(th_stage(into, r, h), th_stage(from, r, h));
    if (into->open[r]) *changed |= join_stage(th_fill(into, r), th_fill(from, r));
  }
  for (u32 b = 0; b < k->buf.n; b++) {
    u8 space = k->buf.at[b].space;
    if (space == SP_REG) *changed |= join_tile(&into->tile[b], &from->tile[b]);
    if (space == SP_TENSOR) *changed |= join_tensor(&into->tensor[b], &from->tensor[b]);
  }
  return same;
}

// ---- what threads learn together

// The first stage that is held or open of those with number *i and up; NULL: there is none.
static Stage *stage_from(const Threads *t, u32 *i) {
  for (; *i < t->k->ring.n * (MOST_HOLDS + 1); ++*i) {
    u32 ring = *i / (MOST_HOLDS + 1), hold = *i % (MOST_HOLDS + 1);
    if (hold == MOST_HOLDS ? t->now->open[ring] : hold < t->now->held[ring])
      return &t->now->stage[*i];
  }
  return NULL;
}
static void meet_at(Place *p) {
  p->apart = 0;
  p->elect = p->heard = false;
}

void th_met(Threads *t) {
  Stage *s;
  t->now->heard = false;
  for (u32 i = 0; (s = stage_from(t, &i)); i++) {
    meet_at(&s->at);
    s->past = true;
    s->elected = false;
  }
  for (u32 b = 0; b < t->k->buf.n; b++) meet_at(&t->now->tensor[b].at);
}

void th_heard(Threads *t) {
  Stage *s;
  t->now->heard = true;
  for (u32 i = 0; (s = stage_from(t, &i)); i++) s->at.heard = true;
  for (u32 b = 0; b < t->k->buf.n; b++) t->now->tensor[b].at.heard = true;
}

void th_fenced(Threads *t, bool global) {
  Stage *s;
  for (u32 i = 0; (s = stage_from(t, &i)); i++) s->at.raw = 0;
  for (u32 b = 0; b < t->k->buf.n && global; b++) t->now->tensor[b].at.raw = 0;
}

// ---- groups

static void older(u8 *age) { *age += *age < OLDEST; }

static void end(u8 *age, u32 keep) {
  if (*age != LANDED && *age >= keep) *age = LANDED;
}

void th_product_issued(Threads *t) {
  Stage *s;
  for (u32 i = 0; (s = stage_from(t, &i)); i++) {
    older(&s->product);
    s->issued += s->issued < OLDEST;
  }
  for (u32 b = 0; b < t->k->buf.n; b++) {
    older(&t->now->tile[b].into);
    older(&t->now->tile[b].from);
  }
}

// All warps issue a product together. So a thread that knows that the product has ended knows that
// all warps are past their waits before its issue. (CUTLASS's pipelines rely on this; PTX does not
// say it.)
void th_products_waited(Threads *t, u32 keep) {
  Stage *s;
  for (u32 i = 0; (s = stage_from(t, &i)); i++) {
    end(&s->product, keep);
    s->past |= s->issued > keep;
  }
  for (u32 b = 0; b < t->k->buf.n; b++) {
    end(&t->now->tile[b].into, keep);
    end(&t->now->tile[b].from, keep);
  }
}

void th_copy_issued(Threads *t) {
  Stage *s;
  for (u32 i = 0; (s = stage_from(t, &i)); i++) older(&s->copy);
  for (u32 b = 0; b < t->k->buf.n; b++) {
    older(&t->now->tensor[b].store);
    older(&t->now->tensor[b].add);
  }
}

// Bulk groups belong to the thread that committed them: it alone waits for them and knows that they
// have ended.
void th_copies_waited(Threads *t, u32 keep, bool read) {
  Stage *s;
  for (u32 i = 0; (s = stage_from(t, &i)); i++) {
    const u8 before = s->copy;
    end(&s->copy, keep);
    s->at.elect |= s->copy != before;
  }
  for (u32 b = 0; b < t->k->buf.n && !read; b++) {
    Tensor *x = &t->now->tensor[b];
    u8 store = x->store, add = x->add;
    end(&x->store, keep);
    end(&x->add, keep);
    if (x->store == LANDED && x->add == LANDED) x->turns = 0;
    if (x->store == LANDED) x->stores = 0;
    x->at.elect |= x->store != store || x->add != add;
  }
}
