// strip_run.h - a run of a Strip, between strip_run.c (which goes through its steps) and
// strip_view.c (which reads and writes the elements of views).
#ifndef SC_STRIP_RUN_H
#define SC_STRIP_RUN_H

#include "runtime/spec/strip.h"

typedef enum Mode { WRITE, ACCUMULATE, STASH, UNSTASH, TEST } Mode;

typedef struct Run {
  const Strip *s;
  Env *env;
  const Operand *op;
  Mode mode;
  const Watch *watch;
  char *base;  // the scratch
  char **row;  // where each slot's values are now
  i64 from[SC_MAX_VARS], to[SC_MAX_VARS];
  i64 start[SC_MAX_VARS];  // first value of the current strip over a variable
  i64 len[SC_MAX_VARS];    // values in it
  i64 off[SC_MAX_VARS];    // which of them a loop over it is at
  u32 q;                   // the current part
  bool found;              // TEST: the condition held
} Run;

// Where the values are that a step takes as an operand.
static inline const char *values(const Run *r, Ref ref) {
  const char *at = r->row[ref.slot];
  if (ref.var >= 0) at += r->off[ref.var] * ref.bytes;
  if (ref.part) {
    i8 x = r->s->slot.at[ref.slot].x;
    at += (i64)r->q * (x < 0 ? 1 : r->s->cap[x]) * ref.bytes;
  }
  return at;
}

static inline i64 length(const Run *r, i8 x) { return x < 0 ? 1 : r->len[x]; }

// The elements that LOAD t reads, or a copy of them, become its slot's values.
void sc_strip_load(Run *r, const Step *t);

// Writes the strip's values (of part q) to dst where `mask` (NULL: everywhere) says so and dst has
// elements.
void sc_strip_write(const Run *r, u8 ty, const char *from, const u8 *mask, u32 q);

#endif
