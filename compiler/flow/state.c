// state.c - the abstract state of a role: products and copies in flight, stages held, fills
// open, turns held, tiles defined, what threads accessed since the last fence and sync. The state
// space is finite: queues and holds are bounded, everything else is a set.
#include "compiler/flow/flow.h"

#include <string.h>

State *sc_state(Sc *sc, const Kernel *k) {
  State *s = NEW(sc, State);
  s->ring = NEWS(sc, RingState, k->ring.n + 1);
  s->turn = NEWS(sc, TurnState, k->turn.n + 1);
  s->defined = NEWS(sc, u64, k->buf.n + 1);
  s->tensor = NEWS(sc, Unordered, k->buf.n + 1);
  s->unseen = NEWS(sc, u32, k->buf.n + 1);
  s->unseen_site = NEWS(sc, u32, k->buf.n + 1);
  s->waited = SC_NONE;
  return s;
}

void sc_state_clear(State *s, const Kernel *k) {
  s->product.n = s->copy.n = s->path.n = 0;
  s->waited = SC_NONE;
  s->elected = false;
  memset(s->ring, 0, k->ring.n * sizeof *s->ring);
  memset(s->turn, 0, k->turn.n * sizeof *s->turn);
  memset(s->defined, 0, k->buf.n * sizeof *s->defined);
  memset(s->tensor, 0, k->buf.n * sizeof *s->tensor);
  memset(s->unseen, 0, k->buf.n * sizeof *s->unseen);
}

static void copy_queue(Queue *to, const Queue *from) {
  to->n = from->n;
  memcpy(to->at, from->at, from->n * sizeof *to->at);
}

void sc_state_copy(State *to, const State *from, const Kernel *k) {
  copy_queue(&to->product, &from->product);
  copy_queue(&to->copy, &from->copy);
  to->waited = from->waited;
  to->elected = from->elected;
  if (k->ring.n) memcpy(to->ring, from->ring, k->ring.n * sizeof *to->ring);
  if (k->turn.n) memcpy(to->turn, from->turn, k->turn.n * sizeof *to->turn);
  memcpy(to->defined, from->defined, k->buf.n * sizeof *to->defined);
  memcpy(to->tensor, from->tensor, k->buf.n * sizeof *to->tensor);
  memcpy(to->unseen, from->unseen, k->buf.n * sizeof *to->unseen);
  memcpy(to->unseen_site, from->unseen_site, k->buf.n * sizeof *to->unseen_site);
  memcpy(to->path.at, from->path.at, from->path.n * sizeof *to->path.at);
  to->path.n = from->path.n;
}

// ---- the joined part

static bool join_touch(Touch *into, bool known, const Touch *from, bool other) {
  if (!other || (known && into->pc == from->pc && into->view == from->view)) return false;
  bool changed = !known || into->pc != SC_NONE;
  *into = known ? (Touch){SC_NONE, SC_NONE} : *from;
  return changed;
}

static bool join_unordered(Unordered *into, const Unordered *from) {
  u8 set = into->set | from->set;
  bool changed = set != into->set;
  changed |= join_touch(&into->writer, into->set & UNSYNCED_WRITE, &from->writer,
                        from->set & UNSYNCED_WRITE);
  changed |= join_touch(&into->reader, into->set & UNSYNCED_READ, &from->reader,
                        from->set & UNSYNCED_READ);
  into->set = set;
  return changed;
}

static bool join_flights(Queue *into, const Queue *from) {
  bool changed = false;
  for (u32 i = 0; i < into->n && i < from->n; i++) {
    Flight *a = &into->at[i];
    const Flight *b = &from->at[i];
    bool more = (b->unseen & ~a->unseen) != 0;
    if (b->site != a->site) a->also = more && b->also != b->site ? b->also : b->site;
    changed |= more;
    a->unseen |= b->unseen;
  }
  return changed;
}

static bool join_hold(Hold *into, const Hold *from) {
  bool changed = join_unordered(&into->unordered, &from->unordered) || from->older > into->older ||
                 (into->all_past && !from->all_past);
  if (from->older > into->older) into->older = from->older;
  into->all_past &= from->all_past;
  return changed;
}

bool sc_state_join(State *into, const State *from, const Kernel *k) {
  bool changed = from->elected && !into->elected;
  into->elected |= from->elected;
  changed |= join_flights(&into->product, &from->product);
  changed |= join_flights(&into->copy, &from->copy);
  for (u32 r = 0; r < k->ring.n; r++) {
    RingState *a = &into->ring[r];
    const RingState *b = &from->ring[r];
    for (u32 h = 0; h < a->held && h < b->held; h++) changed |= join_hold(&a->hold[h], &b->hold[h]);
    if (a->open && b->open) changed |= join_unordered(&a->fill.unordered, &b->fill.unordered);
    changed |= (b->landing & ~a->landing) != 0 || (b->stored & ~a->stored) != 0;
    if (!a->landing) a->copy = b->copy;
    if (!a->stored) a->store = b->store;
    a->landing |= b->landing;
    a->stored |= b->stored;
    if (!a->gave) a->gave = b->gave;
  }
  for (u32 i = 0; i < k->buf.n; i++) {
    changed |=
        (into->defined[i] & ~from->defined[i]) != 0 || (from->unseen[i] & ~into->unseen[i]) != 0;
    changed |= join_unordered(&into->tensor[i], &from->tensor[i]);
    into->defined[i] &= from->defined[i];
    if (!into->unseen[i]) into->unseen_site[i] = from->unseen_site[i];
    into->unseen[i] |= from->unseen[i];
  }
  return changed;
}

// ---- the exact part

bool sc_same_flight(const Flight *a, const Flight *b) {
  return a->dst == b->dst && a->operand == b->operand && !memcmp(a->ref, b->ref, sizeof a->ref);
}

static bool same_queue(const Queue *a, const Queue *b) {
  if (a->n != b->n) return false;
  for (u32 i = 0; i < a->n; i++) {
    if (!sc_same_flight(&a->at[i], &b->at[i])) return false;
  }
  return true;
}

bool sc_state_same(const State *a, const State *b, const Kernel *k) {
  for (u32 r = 0; r < k->ring.n; r++) {
    if (a->ring[r].held != b->ring[r].held || a->ring[r].open != b->ring[r].open) return false;
  }
  for (u32 t = 0; t < k->turn.n; t++) {
    if (a->turn[t].held != b->turn[t].held) return false;
    if (a->turn[t].held && a->turn[t].key != b->turn[t].key) return false;
  }
  return same_queue(&a->product, &b->product) && same_queue(&a->copy, &b->copy);
}

bool sc_state_same_tiles(const State *a, const State *b, const Kernel *k) {
  return !memcmp(a->defined, b->defined, k->buf.n * sizeof *a->defined);
}

u32 sc_state_weight(const State *s, const Kernel *k) {
  u32 n = s->product.n + s->copy.n;
  for (u32 r = 0; r < k->ring.n; r++) n += s->ring[r].held + s->ring[r].open;
  for (u32 t = 0; t < k->turn.n; t++) n += s->turn[t].held;
  return n;
}

// ---- queues and holds

u32 sc_flight_to(const Queue *q, u32 dst, u32 skip) {
  for (u32 i = q->n; i > 0; i--) {
    if (q->at[i - 1].dst == dst && skip-- == 0) return i;
  }
  return 0;
}

u32 sc_flight_reading(const Queue *q, u32 ring, u32 hold) {
  for (u32 i = q->n; i > 0; i--) {
    const Ref *ref = q->at[i - 1].ref;
    for (u32 j = 0; j < 2; j++) {
      if (ref[j].ring == ring && ref[j].hold == hold) return i;
    }
  }
  return 0;
}

u32 sc_flight_operand(const Queue *q, u32 tile) {
  for (u32 i = q->n; i > 0; i--) {
    if (q->at[i - 1].operand == tile) return i;
  }
  return 0;
}

void sc_retire(Queue *q, u32 n) {
  q->n -= n;
  memmove(q->at, q->at + n, q->n * sizeof *q->at);
}

static void shift_refs(Queue *q, u32 ring) {
  for (u32 i = 0; i < q->n; i++) {
    for (u32 j = 0; j < 2; j++) {
      Ref *ref = &q->at[i].ref[j];
      if (ref->ring == ring && ref->hold) ref->hold--;
    }
  }
}

void sc_release_hold(State *s, u32 ring) {
  RingState *r = &s->ring[ring];
  shift_refs(&s->product, ring);
  shift_refs(&s->copy, ring);
  r->held--;
  memmove(r->hold, r->hold + 1, r->held * sizeof *r->hold);
}

// ---- fences and syncs

// A fence orders what this thread did. What the other threads did is ordered when they, too, have
// fenced it and a sync has followed. So a write that is fenced now still waits for its sync.
static void fence(Unordered *d) {
  if (d->set & UNFENCED_WRITE) d->set |= UNSYNCED_WRITE;
  if (d->set & UNFENCED_ADD) d->set |= UNSYNCED_ADD;
  d->set &= (u8) ~(UNFENCED_WRITE | UNFENCED_READ | UNFENCED_ADD);
}

static void synchronize(Unordered *d) {
  d->set &= (u8) ~(UNSYNCED_WRITE | UNSYNCED_READ | UNSYNCED_ADD | UNSYNCED_COPY);
}

static void stages(State *s, const Kernel *k, void change(Unordered *)) {
  for (u32 r = 0; r < k->ring.n; r++) {
    for (u32 h = 0; h < s->ring[r].held; h++) change(&s->ring[r].hold[h].unordered);
    change(&s->ring[r].fill.unordered);
  }
}

void sc_state_fence(State *s, const Kernel *k, bool global) {
  stages(s, k, fence);
  for (u32 i = 0; i < k->buf.n && global; i++) fence(&s->tensor[i]);
}

void sc_state_sync(State *s, const Kernel *k) {
  stages(s, k, synchronize);
  s->elected = false;
  for (u32 r = 0; r < k->ring.n; r++) {
    for (u32 h = 0; h < s->ring[r].held; h++) s->ring[r].hold[h].all_past = true;
  }
  for (u32 i = 0; i < k->buf.n; i++) synchronize(&s->tensor[i]);
}
