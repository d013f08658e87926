// spec.h - the evaluation of a specification, between group.c (which finds the loops that equations
// share) and spec.c (which keeps their values and runs them).
#ifndef SC_SPEC_H
#define SC_SPEC_H

#include <stdatomic.h>

#include "runtime/spec/strip.h"

// A named value, or an input: where it is and how it is laid out. Dimensions of intermediates that
// the group's loop runs over have stride 0: only the current value is kept.
typedef struct Store {
  char *at;  // NULL: an intermediate, at `offset` of each worker's block
  size_t offset;
  u8 store, elem;
  i64 stride[SC_MAX_RANK], shape[SC_MAX_RANK];
} Store;

// What a view of an equation reads: a value that an earlier equation defines, or a tensor as it was
// given.
typedef struct Read {
  u32 view;
  u32 def;  // the equation; SC_NONE: the tensor
} Read;

typedef struct Eq {
  const Map *m;
  Strip *strip;
  u32 buf;
  bool output;          // buf is an output, not an intermediate
  u32 group;            // equations that read each other, by one of them
  bool before;          // a group of its own, run before the others
  i8 var[SC_MAX_VARS];  // level of the group's loop -> output variable
  i64 extent[SC_MAX_VARS];
  VEC(Read) reads;
} Eq;

typedef struct Spec {
  Sc *sc;
  const Kernel *k;
  const Binding *b;
  bool exact;
  const Sample *sample;
  bool sampled;  // some group's loop is
  Sc *keep;      // the outputs' arena
  Boxes *out;    // by buf
  u32 eqs;
  Eq *eq;
  u32 *definer;    // by buf: the latest equation so far that defines it, or SC_NONE
  Store *defined;  // by buf: named values
  Store *input;    // by buf: tensors as they were given
  Env env;
  u32 *up;       // union-find over (equation, output variable)
  bool *broken;  // by representative of a set there: not usable as a level of a loop
  size_t block;  // bytes of a worker's intermediates
  Below below;
  StripMaker *maker;
  double done, all;  // iterations of the tasks that have ended, and of all
} Spec;

// A group's loop, shared by its workers.
typedef struct Task {
  const Spec *spec;
  u32 group, depth;
  i64 extent[SC_MAX_VARS];
  i64 total;          // iterations to be run
  const i64 *pass;    // the numbers of those; NULL: all of them
  atomic_llong next;  // the first that no worker has taken
  bool stopped;       // by the caller, whose thread alone writes it
} Task;

// Fills s->eq: what each equation reads, its group, and which groups are run before the others.
void sc_spec_groups(Spec *s);

// Fills the loop of t->group: depth and extents, and which iterations of it are run. Sets eq->var.
void sc_spec_loop(Spec *s, Task *t);

// Is output variable v of the equation one that its group's loop, of that depth, runs over?
bool sc_spec_in_loop(const Eq *eq, u32 depth, i8 v);

#endif
