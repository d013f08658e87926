// bench.h - the variants of `schedc bench`: one kernel each, at one point of what --vary names, on
// inputs of its own.
#ifndef BENCH_H
#define BENCH_H

#include "cli/cli.h"

typedef struct Variant {
  Args args;         // the command line's, with this variant's settings
  char *operand[2];  // file and kernel
  Buffer name;       // what tells it from the others
  bool opened;
  Session session;
  schedc_kernel *kernel;
  size_t kase;
  Data data;
  schedc_work work;
  schedc_error *errors;
  size_t outputs;
  bool right;
  bool is_tuned;  // params as a store has them, beside the variant before it …
  bool gone;      // … but nobody named one, and there is nothing to say
  Tuned tuned;
  bool out;     // it is left out: a report says why, and the others go on
  Buffer code;  // … its code, "R8.smem",
  Buffer why;   // … and what it says
} Variant;

typedef struct Variants {
  const Args *args;
  size_t n;
  Variant *at;
} Variants;
// All that the command line names. Returns 0, or an exit code after a message. Where --vary asks
// for several, one that the schedule refuses is left out.
int variants_make(Variants *v);
int variant_fill(Variant *v);  // its tensors; may leave it out
// After `code`: in a sweep the variant is left out if the session has reported why. Returns 0 then,
// else the code.
int variant_leave(Variant *v, Session *said, int code);
void variants_free(Variants *v);

#endif
