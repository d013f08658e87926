// replay.h - shared by those who look for a race in one tile with concrete numbers.
#ifndef SC_REPLAY_H
#define SC_REPLAY_H

#include "compiler/verify/races.h"

// ---- values.c
enum { REPLAY_LOOPS = 64 };
typedef struct Replay Replay;
// What expressions are evaluated in.
typedef struct World {
  Races *v;
  const Case *kase;  // whose tensors are known; NULL: none are
  bool lent;         // it is a sequence's: a run of the kernel has no such case
  i64 *dim, *arg;
  bool *known;  // by argument
  i64 axis[SC_MAX_AXES], inst, index[SC_MAX_VARS];
  i64 loop[REPLAY_LOOPS];
  Effort effort;   // that is left
  Replay *replay;  // room for sc_replay
} World;
Numbers sc_numbers(World *w);
bool sc_value(World *w, Xid x, i64 *out);  // false: it is not known

// ---- worlds.c
// Fills `w` with dimensions and scalars that are allowed, and looks at them, until `look` is true.
bool sc_each_world(Races *v, World *w, bool (*look)(void *user), void *user);

// ---- replay.c
// An execution of one of the two accesses that are looked at.
typedef struct Execution {
  bool second;  // of access b
  bool over;
  bool turned;          // the instance had heard of a turn over CTAs, in this tile
  bool passed;          // one was passed on later in this tile, by somebody who may know of it
  u32 proc, time, end;  // end: when the instance knew that it was over
  u32 landing;          // a copy in: which component of clocks says that it has landed …
  u32 fill;             // … from this value on. Of a stage: the number of the fill or hold
  u32 *clock;           // what the instance knew at its issue
  i64 axis[SC_MAX_AXES], inst, base[SC_MAX_RANK], loop[REPLAY_LOOPS];
} Execution;

// The first executions, as many as there is room for: others are not looked at. What `clock` points
// at is kept for the next ones.
typedef struct Executions {
  Execution *at;
  u32 n, most;
} Executions;

// All roles in the tile that `w` names, from empty rings. False: it is not known what they do, or
// they cannot go on.
bool sc_replay(World *w, const Access *a, const Access *b, Executions *out);
// Does an instance with this clock know that the execution is over?
bool sc_execution_known(const u32 *clock, const Execution *d);

// ---- racereport.c
typedef struct Race {
  const Access *a, *b;
  const World *world;  // dimensions and the case
  const Execution *first, *second;
  i64 at[SC_MAX_RANK];  // the element
  bool one_tile;
} Race;
void sc_report_race(Races *v, const Race *r);

#endif
