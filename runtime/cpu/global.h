// global.h - accesses to tensors in global memory: which elements, by whom, and what is remembered
// of them. Included by machine.h.
#ifndef SC_GLOBAL_H
#define SC_GLOBAL_H

#include "runtime/run.h"

typedef enum DeedKind {
  G_READ,    // by threads
  G_STORE,   // by threads
  G_ADD,     // by threads: an atomic sum
  G_LOAD,    // a copy into a stage reads
  G_PUT,     // a copy out writes
  G_PUTADD,  // a copy out adds
  G_END      // in logs: the job is over
} DeedKind;

// An access, but for where: it lies before whoever's clock has clock[word] >= value. (A copy that
// is sent to several CTAs has read its tensor when it has landed in any: `words` of them, `apart`.)
typedef struct Deed {
  u64 job, unit;  // whose; of which tile: a unit of the grid …
  u32 inst, pc;   // the instance in its slot, with its CTA's rank in that unit; where in its code
  u32 word, value, words, apart;
  u8 kind;
} Deed;

// Elements of a tensor, by their row-major number: `first`, and from there n[i] steps of step[i]
// each way. Steps fall.
typedef struct Box {
  i64 first;
  u32 loops;
  i64 n[SC_MAX_RANK], step[SC_MAX_RANK];
} Box;

static inline bool sc_knows(const u32 *clock, const Deed *d) {
  for (u32 i = 0; i < d->words; i++)
    if (clock[d->word + i * d->apart] >= d->value) return true;
  return false;
}

typedef struct Touch {
  Deed by;
  u32 buf;
  Box at;
} Touch;

// Of a tensor that the kernel writes: for each element, by its row-major number, which accesses a
// later one may race with: a list of links; 0: none.
typedef struct Shadow {
  u32 *cell;  // NULL: nobody writes the tensor
  i64 step[SC_MAX_RANK];
} Shadow;

typedef struct Link {
  u32 deed, next;
} Link;

enum { MEMO = 256 };

typedef struct Global {
  Shadow *of;  // by buf
  VEC(Deed) deed;
  VEC(Link) link;
  VEC(u32) kept;   // scratch
  u32 same[MEMO];  // deeds, by hash: one that is done again is the same
  struct {
    u32 from, deed, to;
  } memo[MEMO];  // steps from list to list, by hash
} Global;

// What is known of other CTAs: of each that passed a turn on, how many of its passes. Immutable.
typedef struct Heard {
  u32 passer, passes;
} Heard;
typedef struct Known {
  const Heard *at;
  u32 n;
} Known;

// An instance that has passed on turns over CTAs, and its clock each time.
typedef struct Passer {
  u64 job;
  VEC(u32 *) clock;
} Passer;

// What a machine has yet to tell of the accesses of its jobs, in their order: written by its
// thread, read by the one that called the library.
typedef struct Log {
  char *at;
  size_t each;  // bytes of an entry: a Touch, and the clock of who did it
  atomic_uint put, taken;
} Log;

#endif
