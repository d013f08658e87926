// target.h - inside `target`: what the instructions of the target (sm_90a) cannot carry.
#ifndef SC_TARGET_H
#define SC_TARGET_H

#include "compiler/facts/facts.h"
#include "compiler/layout/layout.h"

typedef struct Target {
  Sc *sc;
  const Kernel *k;
  Facts *facts;  // where that operation stands
  u32 warps;     // of the role whose operation is looked at
} Target;

// Reports G.emit: "'name' what", or `what` alone; help: NULL for none.
void tgt_cannot(Target *s, Span at, const char *what, const char *name, const char *help);
const Buf *tgt_buf(const Target *s, u32 view);

void tgt_statement(Target *s, const Map *m, bool add);     // map.c
void tgt_product(Target *s, const Product *p, bool warp);  // mma.c
void tgt_permuted(Target *s);                              // mma.c, once for all products
void tgt_copy(Target *s, const Ins *ins);                  // copy.c

#endif
