// automaton.h - shared by match.c and automaton.c: the wanted program as a nondeterministic
// automaton, and the set of its steps at which a thread may stand.
#ifndef SC_AUTOMATON_H
#define SC_AUTOMATON_H

#include "runtime/ptx/ptx.h"

// The ring whose cursors are counted.
typedef struct Focus {
  u32 ring;           // SC_NONE: none is
  u32 stages;         // 0: the thread has to do with none of its barriers
  u32 size[CURSORS];  // how many values each cursor takes; 1: it does not move
  bool skips;         // they go on as far as data says
} Focus;

// Bits: for each step and each number that says where all cursors stand, may the thread be there?
// Behind these a bit for each step that ends a round: the thread has gone back amid it.
typedef struct Set {
  u64 *bit;
} Set;

typedef struct Automaton {
  Sc *sc;
  const Wanted *wanted;
  Focus focus;
  u32 places;       // of the cursors, all together
  u32 words;        // of a set
  Set next, other;  // scratch
  bool *met;        // by step: a path has it
} Automaton;

// One that stands before everything; `at` becomes its set.
Automaton sc_ptx_automaton(Sc *sc, const Wanted *w, u32 ring, Set *at);
// False: it may not come, and the set is as it was. rings: those at whose barriers it may be, bit
// by number; those from 63 on share the last bit.
bool sc_ptx_advance(Automaton *a, Set at, const Event *e, u64 *rings);
void sc_ptx_go_back(Automaton *a, Set at);  // the thread begins another round of a loop
bool sc_ptx_may_end(const Automaton *a, Set at);
// One of the steps that may come, with the numbers that are due there: an event, or else the end of
// a round or of the thread. NULL: there is none.
const Step *sc_ptx_due(const Automaton *a, Set at);

#endif
