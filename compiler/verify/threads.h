// threads.h - shared by the proofs THREADS and PHASES: what the threads of an instance have done
// and have learnt, and the operations on it.
#ifndef SC_VERIFY_THREADS_H
#define SC_VERIFY_THREADS_H

#include "compiler/facts/path.h"
#include "compiler/layout/layout.h"
#include "compiler/verify/verify.h"

// What threads did to a place: bits of a set.
enum { DID_WRITE = 1, DID_READ = 2, DID_ADD = 4 };

#define SEVERAL (SC_NONE - 1)  // of accesses: not one alone
enum {
  MOST_HOLDS = 16,  // held stages of a ring that are told apart
  LANDED = 255,     // an age: there is none in flight
  OLDEST = 250      // … it ends here
};

// A map of the role's code, and a view of it.
typedef struct Access {
  u32 pc, view;
} Access;

// What is open about a place that threads access.
typedef struct Place {
  u8 apart;    // DID_*: by threads of the instance, and not all of them know that it is done
  u8 raw;      // DID_*: no proxy fence has followed
  bool elect;  // a copy out has ended there, as thread 0 alone knows
  // others have done with it what thread 0 alone may have heard of: it waited for an empty stage
  bool heard;
  Access writer, reader;  // the accesses that are apart, if it is one; else pc SEVERAL
} Place;

// A stage that is held or being filled. Ages: how many groups, at least, have been committed since
// the newest product or copy out that may still read it; a wait for all but n groups ends those of
// age n and more (PTX ISA 9.0, 9.7.15.7, 9.7.9.25).
typedef struct Stage {
  Place at;
  u8 product, copy;     // ages
  u8 issued;            // products, at least, since the wait
  bool past;            // all warps are past their wait for it
  bool elected;         // thread 0 alone has waited for it, and the others have not met it
  bool told;            // its full barrier has had its arrival
  u64 landing, stored;  // parts of an open fill: copies land there, threads touched them
  u32 site, by_product, by_copy;  // where it was waited for, or acquired; of those in flight
} Stage;

// A register tile. Ages of the newest product in flight into it, and of the newest that reads it.
typedef struct Tile {
  u8 into, from;
  u32 by_into, by_from;
} Tile;

// A tensor. Ages of the newest copy out that stores to it, and of the newest that adds to it, of
// those that may not be visible.
typedef struct Tensor {
  Place at;
  u8 store, add;
  u64 stores;  // copies that store to it and may not be visible: a set of sc_copy_bit
  u64 turns;   // held at the issue of some of them: bit t for turn t
  u32 by_copy;
} Tensor;

// What holds before an operation, on every path.
typedef struct Known {
  u32 *held;   // by ring
  bool *open;  // by ring: a fill is open
  Stage
      *stage;  // by ring, MOST_HOLDS + 1 each: the held ones from the oldest on, the open one last
  Tile *tile;  // by buf
  Tensor *tensor;
  u64 turns;   // that are held, bit t for turn t
  bool heard;  // thread 0 alone has waited for others, for all
  Path path;   // of a role that is walked path by path: what is true
} Known;

static inline u64 th_turn_bit(u32 turn) { return (u64)1 << turn % 64; }

enum { MAX_WAYS = 16 };
// What holds on each of the ways that lead to an operation. Those past n are room.
typedef struct Ways {
  u32 n;
  Known *at[MAX_WAYS];
} Ways;

typedef struct Threads {
  Verify *v;
  const Kernel *k;
  u32 role;
  const Role *r;
  bool single;           // one thread is all of it
  bool *warps_fill;      // by ring: each warp arrives at each of the role's fills
  Known *now;            // of the way that is followed
  Ways ways;             // all that lead to the operation
  PathFacts *asked;      // NULL, or ways on which other things are held are told apart
  const Known *nothing;  // what holds where a tile begins
  Ways **head;           // by operation: what holds where a loop begins, over all rounds so far
  Ways **saved;          // two for each depth: what holds before a block, and at the end of a side
  u32 pc, depth, votes;
  bool changed;  // some loop's head holds less than before
  bool report;   // nothing changes any more: say what is wrong
} Threads;

// Who arrives: every thread; a lane of each warp, after the warp has met; thread 0 for all.
typedef enum Arrivers { BY_THREADS, BY_WARPS, BY_ONE } Arrivers;

static inline Stage *th_stage(const Known *n, u32 ring, u32 hold) {
  return &n->stage[ring * (MOST_HOLDS + 1) + hold];
}
static inline Stage *th_fill(const Known *n, u32 ring) { return th_stage(n, ring, MOST_HOLDS); }

// known.c
Known *th_known(Sc *sc, const Kernel *k);
void th_known_copy(Known *to, const Known *from, const Kernel *k);
// Is the same under way? aged: issued in the same order, too.
bool th_known_alike(const Known *a, const Known *b, const Kernel *k, bool aged);
// What both know. False: they hold different stages. changed: whether `into` knows less now.
bool th_known_join(Known *into, const Known *from, const Kernel *k, bool *changed);
void th_met(Threads *t);                  // all threads of the instance
void th_heard(Threads *t);                // thread 0, of what others have done
void th_fenced(Threads *t, bool global);  // each thread ran a proxy fence
void th_product_issued(Threads *t);       // one commit group
void th_products_waited(Threads *t, u32 keep);
void th_copy_issued(Threads *t);
void th_copies_waited(Threads *t, u32 keep, bool read);

// access.c: before each it is said what is missing; then it is noted.
void th_by_threads(Threads *t, const Ins *ins);
void th_by_products(Threads *t, const Ins *ins);
void th_copy_in(Threads *t, const Ins *ins);
void th_copy_out(Threads *t, const Ins *ins);
// What others do to a ring's held stages (USE_*), or to a tensor (DOES_*): other roles, and other
// instances of this one.
u8 th_others_ring(const Threads *t, u32 ring);
u8 th_others_tensor(const Threads *t, u32 buf);

// arrive.c
void th_acquired(Threads *t, const Ins *ins);
void th_committed(Threads *t, const Ins *ins);
void th_waited(Threads *t, const Ins *ins);
void th_released(Threads *t, const Ins *ins);
void th_passed(Threads *t, const Ins *ins);
void th_ended(Threads *t);                  // a tile
void th_order(Threads *t, const Ins *ins);  // the fence and the sync of its plan

// tell.c
Diag *th_missing(Threads *t, ProofId id, Span span, const char *message, ...)
    __attribute__((format(printf, 4, 5)));
void th_other_end(Threads *t, Diag *d, u32 pc, const char *what);
void th_unsure(Threads *t, const char *what, const char *name);

#endif
