// place.h - shared by the parts of place: limits, and how many registers tiles take.
#ifndef SC_PLACE_H
#define SC_PLACE_H

#include "compiler/facts/facts.h"
#include "compiler/passes.h"

enum {
  SMEM_LIMIT = 232448,  // bytes a CTA can have: 227 KB
  REGS_LIMIT = 65536,   // registers of a multiprocessor
  THREADS_LIMIT = 1024,
  NAMED_LIMIT = 16,  // named barriers of a CTA
  SETMAXNREG_LO = 24,
  SETMAXNREG_HI = 256,
  FOR_TILES = 32,  // registers that matrices have to leave to everything else,
  FOR_ALL = 24     // and matrices and vectors together (place.c)
};

// live.c: the worst point of a role.
typedef struct Worst {
  u32 pc;    // the operation
  u32 all;   // registers that tiles take there
  u32 need;  // registers that a thread needs in all, those of tiles included; 0: there are no tiles
  u64 *live;  // bit b % 64 of word b / 64: buf b
} Worst;
// facts NULL: of what the code names alone, which is a lower bound.
Worst sc_worst(Sc *sc, Kernel *k, Facts *facts, u32 role);

#endif
