// crowd.h - all CTAs of a small grid side by side, with the turns that go from one to the next.
#ifndef SC_CROWD_H
#define SC_CROWD_H

#include "compiler/verify/protocol.h"

typedef struct Crowd Crowd;

// A CTA, or a cluster of them, in its tile.
typedef struct Unit {
  Run run;  // first: a run's unit
  Concrete c;
  Sample s;
  Crowd *crowd;
} Unit;

// Somebody has taken a turn over CTAs, or passed it on.
typedef struct Event {
  const Unit *unit;
  u32 process, pc;
  u32 counter;
  bool pass;
} Event;

// Who waits for ever, and why.
typedef enum Cause {
  CAUSE_NONE,   // nobody does
  CAUSE_KEY,    // there is no such key
  CAUSE_AGAIN,  // its CTA has passed the turn on before
  CAUSE_TWICE,  // an earlier CTA passes it on more than once
  CAUSE_NEVER,  // an earlier CTA never takes it
  CAUSE_CIRCLE  // an earlier CTA has it, and waits
} Cause;

enum { CROWD_UNITS = 32, CROWD_PLACES = 64, CROWD_KEYS = 64, CROWD_CIRCLE = 16 };

typedef struct Waiter {
  const Unit *unit;
  u32 process;
} Waiter;

typedef struct Standstill {
  Cause cause;
  u32 n;
  Waiter waiter[CROWD_CIRCLE];  // the one that waits; CAUSE_CIRCLE: all of them
} Standstill;

struct Crowd {
  Verify *v;
  const Protocol *p;
  Sample *s;
  VEC(Unit *) unit;  // as many as any sample needed
  u32 units;
  i64 ctas[SC_MAX_AXES];  // along each axis
  u32 *counter;           // by turn, place and key: CTAs that have passed it on
  VEC(Event) event;
  bool unknown;  // a key, or more of them than are counted
  u64 spent;     // steps, in all runs
};

// ---- crowd.c
Crowd *sc_crowd(Verify *v, const Protocol *p, Sample *s);
// From the beginning, with the sample as it is, as far as all can go. False: it is not known how
// far, or there are too many CTAs, or too many steps have been taken in all.
bool sc_crowd_run(Crowd *c);
const Step *sc_crowd_step(const Unit *u, u32 process);  // at which the process is
// Of a take: the key; the CTA's place along the axis; its counter (SC_NONE: there is no such key).
i64 sc_crowd_key(const Unit *u, u32 process, const Step *s);
i64 sc_crowd_index(const Unit *u, u32 process, u32 axis);
u32 sc_crowd_counter(const Unit *u, u32 process, const Step *s);
i64 sc_crowd_keys(const Unit *u, u32 turn);  // how many there are

// ---- standstill.c
// A run in which somebody waits for ever. `s`: dimensions, and his tile. NULL: none was found.
Crowd *sc_find_standstill(Verify *v, const Protocol *p, Sample *s, Standstill *why);

// ---- turnreport.c
void sc_report_standstill(Verify *v, const Crowd *c, const Standstill *why);

#endif
