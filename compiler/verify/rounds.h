// rounds.h - a wait that takes an older round of a stage for its own, shown by a run of tiles.
#ifndef SC_ROUNDS_H
#define SC_ROUNDS_H

#include "compiler/verify/protocol.h"

typedef struct Arrival {
  u32 role, instance, pc;
  i64 axis[SC_MAX_AXES];  // its tile
} Arrival;

typedef struct Mistake {
  bool found, ended;
  Arrival waits;
  u32 ring, stage, round;  // it may be taken for the one after it
  Arrival ends;            // who ends it, if the run comes to that
} Mistake;

// In one CTA, or cluster. `s`: dimensions, and the tile of the wait. False: no run was found.
bool sc_find_mistake(Verify *v, const Protocol *p, Sample *s, Mistake *m);

#endif
