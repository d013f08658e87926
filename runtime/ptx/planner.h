// planner.h - shared by plan.c, operation.c, draw.c and step.c, which make the program of what is
// wanted: where in it they are, and for whom.
#ifndef SC_PLANNER_H
#define SC_PLANNER_H

#include "runtime/ptx/ptx.h"

enum { WARP = 32, GROUP = 128 };
#define ALL_LANES ((i64)0xffffffff)

typedef struct Planner {
  Sc *sc;
  const Kernel *k;
  const CudaText *text;
  const Role *role;
  u32 r, instance, warp, lane;  // the warp of its instance
  bool alone;                   // lane 0 is the role
  bool dead;                    // no launch gets here
  u8 kind;                      // SIDE_*: of the rounds of a loop that is split; 0: outside of one
  u8 *const *all_dead;
  u32 open[SC_MAX_NEST], opens;  // `if`s that a draw may leave: their forks
  Span span;
  Wanted w;
} Planner;

// ---- operation.c
void want_operation(Planner *p, const Ins *ins);
// The first turn is passed on by the last of those who take it.
void want_first_turns(Planner *p);

// ---- draw.c
bool want_alone(const Kernel *k, const Role *r);  // one thread can do all that the role does
// The operation before which the role has its next tile; SC_NONE: the grid is not dynamic.
u32 want_draw_at(const Planner *p);
void want_next_tile(Planner *p);
// Arrivals at a slot's empty barrier; 0: there are no slots.
u32 want_readers(const Kernel *k);
Barriers want_slots(const Kernel *k, bool full);

// ---- step.c: each adds to the program
// An event of the operation at p->span, whose numbers are these (ARG_ANY: any).
Step *want_event(Planner *p, EventId id, i64 first, i64 second);
// Such an event at the barrier of the stage that the role's cursor stands at.
Step *want_at(Planner *p, EventId id, Barriers of, i64 number);
bool want_more_held(const Planner *p, u32 ring);       // than one stage at once, by the role
void want_stage(Planner *p, u32 ring, Cursor cursor);  // the cursor goes on
u32 want_fork(Planner *p);                             // goes on, or to where want_land says
u32 want_goto(Planner *p);                             // goes to where want_land says
void want_land(Planner *p, u32 step);                  // that fork, or goto, leads here
// The end of a loop's body, which began at that step; if it is not dead, it has other rounds.
void want_round(Planner *p, u32 step);
void want_meet(Planner *p);                   // the warps of the instance meet
void want_order(Planner *p, const Ins *ins);  // what the plan puts before an operation
bool want_thread0(const Planner *p);          // is it the instance's first?
typedef enum Sure { UNSURE, SURE } Sure;
Sure want_sure(const Planner *p, Xid x, i64 *out);  // the value, if the instance decides it

#endif
