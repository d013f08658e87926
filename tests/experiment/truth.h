// truth.h - a program with all values given, as lists of operations: made by truth.c, played by
// played.c.
#ifndef EXPERIMENT_TRUTH_H
#define EXPERIMENT_TRUTH_H

#include "program.h"

enum {
  MOST_CTAS = MOST_TILES,
  MOST_PLAYERS = MAX_ROLES * MAX_INSTANCES * MOST_CTAS,
  MOST_OPS = 1 << 18,
  MOST_NUMBERS = 1 << 16,
  SEARCHED_OPS = 20000,  // of the many runs of a search
  SEARCHED_NUMBERS = 8000,
  TIMED_NUMBERS = 1 << 10,  // of a run in which accesses are compared
  // What is known of a player: how far it has come, how many of its copies out of each tensor are
  // visible, how many of its copies into each ring have landed, how many of its copies out have
  // read their stages.
  CLOCKS = 1 + 2 * MAX_TENSORS + MAX_RINGS,
  TIMES = CLOCKS * MOST_PLAYERS,
  KEYS = MOST_KEYS * MOST_TILES / 2,  // over all axes but that of the turn
  ELEMENTS = CROSS * CROSS            // of a tensor
};

// What is done to a stage: by threads, by copies into it, by copies out of it.
enum { STAGE_LOAD, STAGE_STORE, STAGE_FILL, STAGE_READ, STAGE_WAYS };
enum { MOST_CELLS = 3 * CELLS };  // of a ring
enum { OPS = 6 };                 // acquire, commit, wait, release, take, pass
typedef enum OpKind {
  ACQUIRE,
  COMMIT,
  WAIT,
  RELEASE,
  TAKE,
  PASS,
  TAKE_KEY,  // of a turn over CTAs
  PASS_KEY,
  SETTLE,
  SETTLE_READ,
  ISSUE,  // of a copy out
  CELL_LOAD,
  CELL_STORE,
  ACCESS  // … and the kinds of Touch from here on
} OpKind;

typedef struct Act {
  u8 kind, ref;  // (of a copy: the tensor, and 4 times the ring)
  u16 number;  // CELL: which cell of the ring; else which fill of the ring, key, place in a tensor;
               // SETTLE: keep so many
} Act;

// An instance of a role in a CTA.
typedef struct Player {
  int role, instance, cta;
  Act op[MOST_OPS];
  u32 n, at;
  u32 puts[MAX_TENSORS];  // issued
  u32 fills[MAX_RINGS];   // committed
  u32 held[MAX_RINGS];    // the newest fill that was waited for
  int seat[MAX_TURNS];    // -1: no member
  u32 time[TIMES];        // how much it knows of each other's list
} Player;

// By ring and role: how many instances have done it, for each fill by its number.
typedef struct Done {
  u8 by[MOST_CTAS][MAX_RINGS][MAX_ROLES][MOST_NUMBERS];
} Done;

// What those who did it knew, for each fill by its number.
typedef struct Told {
  u32 time[MOST_CTAS][MAX_RINGS][TIMED_NUMBERS][TIMES];
} Told;

typedef struct Last {  // when an access was over, by the clock of its kind
  u32 time;
  int of;  // the ring; of a copy out's read of a stage: the tensor
} Last;

struct Truth {
  const Program *p;
  const Setting *s;
  int tile, instance;
  int axis[MAX_AXES];  // of the tile
  bool surplus;        // it fills up a cluster
  i64 var[MAX_VARS];
  bool wrong;  // a number does not fit, or a list is too long
  bool many;   // this is one of many runs
  bool apart;  // each tile (or cluster of them) is other CTAs'
  int tiles, ctas;
  bool timed;  // accesses are compared
  bool back;   // the last player goes on first
  Player player[MOST_PLAYERS];
  int players;
  // by ring (then turn) and operation, of one tile of one player
  u32 count[MAX_RINGS + MAX_TURNS][OPS];
  u32 number[MOST_CTAS][MAX_ROLES][MAX_RINGS][OPS];  // of the next, over all tiles
  bool fills[MAX_ROLES][MAX_RINGS], drains[MAX_ROLES][MAX_RINGS];
  int seats[MAX_TURNS], token[MOST_CTAS][MAX_TURNS];
  u32 turn_time[MOST_CTAS][MAX_TURNS][TIMES];
  u8 passes[KEYS][MOST_CTAS];  // of each key, by tile
  bool twice;     // a tile passes a key on twice: then it depends on the order who gets it next
  int key[KEYS];  // whose turn it is
  u32 key_time[KEYS][TIMES];
  bool taken[MAX_TURNS];  // by somebody, some time
  Done committed, released;
  Told filled, drained;
  u32 most_number;
  u32 fills_before[MAX_RINGS];  // of the tile before, in the same cluster
  // Of each element, when each player has last touched it in each way in this run.
  Last last[MAX_TENSORS][ELEMENTS][TOUCHES][MOST_PLAYERS];
  u32 touched[MAX_TENSORS][ELEMENTS];  // in which run
  // … of each cell of a stage.
  Last stage[MOST_CTAS][MAX_RINGS][MOST_CELLS][STAGE_WAYS][MOST_PLAYERS];
  u32 used[MOST_CTAS][MAX_RINGS][MOST_CELLS];
  u32 runs;
  bool races;
};

// truth.c: makes the lists. FINE or UNEVEN; else the setting is not allowed, or they are too long.
Fate truth_prepare(Truth *t, const Program *p, const Setting *s);
// played.c: everybody as far as possible. True: all have ended. Out: t->races.
bool truth_play(Truth *t);

#endif
