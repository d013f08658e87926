// barriers.h - shared by the proofs of ARRIVALS and NAMED, and (of turns over CTAs) of ORDER.
#ifndef SC_BARRIERS_H
#define SC_BARRIERS_H

#include "compiler/layout/layout.h"
#include "compiler/verify/verify.h"

// How many arrive each time, and where that was first seen.
typedef struct Tally {
  bool any;
  u32 each, pc;
} Tally;

// What an instance of a role does for each fill and each release of a ring. turns: it takes or
// passes the turn at all.
typedef struct Brackets {
  Tally fill, release;
  bool turns;
  bool unsure;  // something of it has been left open
  u64 shared;   // parts that multicast copies bring in a fill
  u32 unlike;   // … not in each: where they are others; 0: nowhere
  u32 alone;    // a fill without any ends here; 0: there is none
} Brackets;

// brackets.c: what differs from path to path is reported, or leaves the proof incomplete.
Brackets sc_ring_brackets(Verify *v, u32 role, u32 ring);
Brackets sc_turn_brackets(Verify *v, u32 role, u32 turn);

// shares.c
void sc_prove_shares(Verify *v, u32 ring);

// together.c
void sc_prove_together(Verify *v, u32 role);

// named.c
void sc_prove_named(Verify *v);

#endif
