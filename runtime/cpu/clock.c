// clock.c - who knows what: mbarriers, and vector clocks over role instances, their products and
// copies out, the copies in, and the proxy through which memory is touched. One execution finds
// every race, because generations and happens-before are the same in all executions as long as each
// wait knows that the phase before its own is over (else X.phase). After Lamport (1978), Mattern
// (1989); the promises of PTX ISA 9.0, 9.7.13.15 (mbarrier), 9.7.9.25 (bulk copies), 9.7.15 (wgmma)
// and 8.8 (proxies).
#include "runtime/cpu/machine.h"

#include <string.h>

void sc_poison(Elem elem, float *at, u64 n) {
  u32 bits = elem == EL_I32 ? 0x80000000u : 0x7fc00000u;
  float value;
  memcpy(&value, &bits, sizeof value);
  for (u64 i = 0; i < n; i++) at[i] = value;
}

void sc_join(u32 *to, const u32 *from, u32 n) {
  for (u32 i = 0; i < n; i++) to[i] = to[i] > from[i] ? to[i] : from[i];
}

static u32 *own(const Inst *in) { return in->clock + in->id * C_INST; }

// ---- barriers

void sc_barrier_init(Barrier *b, u32 count, u32 words) {
  b->count = b->pending = count;
  b->tx = 0;
  b->phase = 0;
  memset(b->done, 0, words * sizeof *b->done);
  memset(b->arriving, 0, words * sizeof *b->arriving);
}

// What nobody may rely on any more turns to poison.
static void free_stage(const Slot *s, Stage *stage) {
  const Kernel *k = s->inst[0].env.k;
  for (u32 i = 0; i < stage->parts; i++) {
    Part *p = &stage->part[i];
    if (!p->clean) sc_poison((Elem)k->buf.at[p->buf].elem, p->at, p->elems);
    p->clean = true;
  }
}

static void settle(Slot *s, Barrier *b) {
  if (b->pending || b->tx || !b->count) return;
  b->phase++;
  b->pending = b->count;
  b->arriving[b->word] = b->phase;
  sc_join(b->done, b->arriving, s->words);
  memset(b->arriving, 0, s->words * sizeof *b->arriving);
  if (b->frees) free_stage(s, b->frees);
}

bool sc_barrier_test(const Barrier *b, u32 generation) { return (b->phase ^ generation) & 1; }

// An arrival that is not the whole instance's comes from one elected thread: it knows of the
// others' accesses only what the last sync told it.
void sc_arrive(Inst *in, Barrier *b, u32 arrivals, bool whole) {
  for (u32 i = 0; i < arrivals; i++) {
    sc_join(b->arriving, in->clock, in->slot->words);
    u32 *mine = &b->arriving[in->id * C_INST + C_TIME];
    if (whole && *mine < in->now) *mine = in->now;
    if (b->pending) b->pending--;
    settle(in->slot, b);
  }
  in->now++;
}

void sc_expect(Slot *s, Barrier *b, i64 bytes) {
  b->tx += bytes;
  settle(s, b);
}

void sc_land(Slot *s, Barrier *b, i64 bytes, u32 word, u32 value) {
  if (b->arriving[word] < value) b->arriving[word] = value;
  b->tx -= bytes;
  settle(s, b);
}

// ---- syncs and fences

// Generic accesses that the instance knows of, its own included, come before its later async ones.
void sc_fence(Inst *in, bool global) {
  for (u32 i = 0; i < in->slot->insts; i++) {
    u32 *of = in->clock + i * C_INST;
    if (of[C_FENCE] < of[C_TIME]) of[C_FENCE] = of[C_TIME];
    if (global && of[C_GLOBAL] < of[C_TIME]) of[C_GLOBAL] = of[C_TIME];
  }
  if (global) own(in)[C_GLOBAL] = in->now;
  own(in)[C_FENCE] = in->now++;
}

// All threads of the instance know of each other's accesses.
void sc_sync(Inst *in) { own(in)[C_TIME] = in->now++; }

// ---- tiles

// The words of a clock that say which rounds of stages are over.
static void join_stages(const Inst *in, u32 *to, const u32 *from) {
  u32 first = in->m->p->part_words;
  sc_join(to + first, from + first, in->slot->words - first);
}

// By the hidden ring whoever begins a tile knows what all knew as they began the second before it.
void sc_hear_of_draw(Inst *in) {
  u32 **knew = in->slot->knew;
  u64 n = in->iter;
  if (n >= 2) join_stages(in, in->clock, knew[(n - 2) % COUNT(in->slot->knew)]);
  join_stages(in, knew[n % COUNT(in->slot->knew)], in->clock);
}

// ---- accesses

static bool writes(AccessKind kind) { return kind == A_WRITE || kind == A_COPY; }
static bool generic(AccessKind kind) { return kind == A_READ || kind == A_WRITE; }

static bool disjoint(const Rect *a, const Rect *b) {
  return a->hi[0] <= b->lo[0] || b->hi[0] <= a->lo[0] || a->hi[1] <= b->lo[1] ||
         b->hi[1] <= a->lo[1];
}

static bool inside(const Rect *a, const Rect *b) {
  return a->lo[0] >= b->lo[0] && a->hi[0] <= b->hi[0] && a->lo[1] >= b->lo[1] &&
         a->hi[1] <= b->hi[1];
}

// Does `old` come before what `in` does now? Generic accesses of one instance keep the program's
// order; between the proxies a fence must lie on the path.
static bool before(const Inst *in, const Access *old, AccessKind kind) {
  if (!generic(old->kind)) return in->clock[old->word] >= old->value;
  if (generic(kind)) return old->inst == in->id || in->clock[old->word] >= old->value;
  return in->clock[old->word] >= old->value &&
         in->clock[old->word - C_TIME + C_FENCE] >= old->value;
}

// Whatever will be known to come after `now` will be known to come after `old`, wherever it lies:
// all of `old` was overwritten, or done again by the same agent, whose epochs only grow. (As
// FastTrack's epochs: Flanagan, Freund 2009.)
static bool covers(const Access *now, const Access *old) {
  return inside(&old->at, &now->at) &&
         (writes(now->kind) || (now->kind == old->kind && now->word == old->word));
}

// Makes one rectangle of both, if they are one: a loop's accesses, column by column.
static bool join(Rect *to, const Rect *more) {
  for (u32 d = 0; d < 2; d++) {
    if (to->lo[!d] != more->lo[!d] || to->hi[!d] != more->hi[!d]) continue;
    if (to->hi[d] < more->lo[d] || more->hi[d] < to->lo[d]) return false;
    if (to->lo[d] > more->lo[d]) to->lo[d] = more->lo[d];
    if (to->hi[d] < more->hi[d]) to->hi[d] = more->hi[d];
    return true;
  }
  return false;
}

// Nothing that a later access may race with is left out of the log.
static bool record(Inst *in, Part *p, const Access *now) {
  u32 n = 0;
  for (u32 i = 0; i < p->n; i++) {
    if (covers(now, &p->log[i])) continue;
    if (n != i) p->log[n] = p->log[i];
    n++;
  }
  p->n = n;
  for (u32 i = 0; i < n; i++) {
    Access *old = &p->log[i];
    if (old->kind == now->kind && old->inst == now->inst && old->pc == now->pc &&
        old->word == now->word && old->value == now->value && join(&old->at, &now->at))
      return true;
  }
  if (n < LOG) return p->log[p->n++] = *now, true;
  const Buf *b = &in->env.k->buf.at[p->buf];
  sc_fault(in, D_X_LIMIT, sc_here(in),
           "more than %d accesses to '%s' have to be kept in mind at once", LOG,
           in->env.k->ring.at[b->ring].name);
  sc_fault_help(in,
                "access it in larger rectangles, or release other stages less often in between");
  return false;
}

bool sc_access(Inst *in, Part *p, AccessKind kind, u32 word, u32 value, Rect at) {
  for (u32 i = 0; i < p->n; i++) {
    const Access *old = &p->log[i];
    if (disjoint(&old->at, &at)) continue;
    if ((writes(kind) || writes(old->kind)) && !before(in, old, kind))
      return sc_race(in, p, old, kind);
  }
  if (writes(kind)) p->clean = false;
  return record(in, p, &(Access){(u8)kind, in->id, in->at, word, value, at});
}

bool sc_may_release(Inst *in, const Stage *s, u32 ring) {
  for (u32 i = 0; i < s->parts; i++) {
    for (u32 j = 0; j < s->part[i].n; j++) {
      const Access *a = &s->part[i].log[j];
      if (a->inst != in->id || (a->kind != A_MMA && a->kind != A_OUT)) continue;
      if (in->clock[a->word] >= a->value) continue;
      const char *name = in->env.k->ring.at[ring].name;
      sc_fault(in, D_X_RACE, sc_here(in),
               "a stage of '%s' is released while a %s may still read it", name,
               a->kind == A_MMA ? "product" : "copy out");
      sc_fault_note(in, in->of->code.at[a->pc].span, "reads it; not waited for");
      sc_fault_help(in, "wait for it before the stage is released");
      return false;
    }
  }
  return true;
}
