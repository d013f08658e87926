// search.h - which program is measured next, for how long, and which is best. A search knows
// programs by number, and times; it runs nothing, keeps no clock and is the same everywhere.
//
// Rungs. On the first rung every program is measured briefly, in the order in which the cost model
// has them; the best go on to a rung on which each is measured for longer (successive halving,
// Jamieson and Talwalkar 2016), until `top` are left: the finalists. These are verified. Those that
// pass take turns in the finals, in which launches last long enough for the chip to be as warm as
// it gets.
//
// The reference. Clocks and temperatures drift, so a time means little by itself: one program, the
// default, is measured over and over between the others, and what counts is the ratio to the
// reference's time at that moment.
#ifndef SC_SEARCH_H
#define SC_SEARCH_H

#include "base/base.h"

#define SC_NO_PROGRAM UINT32_MAX

typedef struct Program {
  double predicted;  // ms, by the cost model; infinite: it has no opinion
  u32 rung;          // rungs on which it was measured
  bool passed_over;  // it does not take part
  bool out;          // it is being measured or verified
  bool failed;       // it could not be built, run or verified
  bool verified;     // its results were right
  u32 moment;        // of the last rung: how many times had been told when this one was
  double ms;         // of the last rung, or the median of its turns in the finals
  double beside;  // of the last rung: the default's, measured on the same machine; 0: by the moment
  double ratio;   // to the reference; smaller is better
  double spread;  // how uncertain its ratio in the finals is: two standard errors
  u32 turns;      // of the finals in which it was measured
  double *turn;   // the time of each
} Program;

typedef enum Phase { PHASE_RUNG, PHASE_VERIFY, PHASE_FINALS, PHASE_DONE } Phase;

// What is to be done next.
typedef enum Errand { ERRAND_WAIT, ERRAND_MEASURE, ERRAND_VERIFY, ERRAND_DONE } Errand;
typedef struct Order {
  Errand errand;
  u32 program;
  u32 rung;   // of the finals: the first number that no rung has
  double ms;  // so long should the launches that are measured take together
  bool finals;
  bool reference;
} Order;

typedef struct Rungs {
  u32 n;            // at least 1
  double ms;        // of the first; each further one has four times as much
  u32 keep;         // one of so many goes on to the next
  u32 top;          // finalists, at least
  u32 turns;        // of the finals
  double final_ms;  // of each turn
  u32 between;      // measurements between two of the reference
  double tie;       // what is faster by no more than this part is not faster
} Rungs;

typedef struct Moment {
  u32 at;
  double ms;
} Moment;

typedef struct Search {
  Sc *sc;
  Rungs rungs;
  Program *at;
  u32 n;
  u32 first;      // the default; SC_NO_PROGRAM: there is none
  u32 reference;  // SC_NO_PROGRAM: nothing works
  Phase phase;
  u32 rung, turn;
  u32 *queue, queued, next;  // of this phase
  u32 *rank;                 // by about the predicted time, the default first
  u32 out, told, since;      // orders out; times told in all; since the reference was measured
  bool reference_out;
  bool hurried;
  VEC(Moment) moment;    // when the reference was measured in this phase
  u32 *ranked, *merged;  // by merit, if is_ranked; and room to find out
  bool is_ranked;
  double *spread;  // room for the noise
} Search;

// first: the default's number, or SC_NO_PROGRAM. Programs are as new, with their predictions.
void sc_search_begin(Search *s, Sc *sc, Program *programs, u32 n, u32 first, const Rungs *rungs);
// Before the first order: this program is the first to be measured beside the default, if it takes
// part.
void sc_search_first(Search *s, u32 program);
Order sc_search_ask(Search *s);
// What came of an order: its time in ms, or (ok false) nothing. Of an order to verify, whether the
// results were right. beside: the default's time on the machine that measured it, if that is not
// the one that measures the reference; else 0.
void sc_search_tell(Search *s, const Order *order, bool ok, double ms, double beside);
void sc_search_lost(Search *s, const Order *order);  // nobody knows: it will be asked for again
void sc_search_hurry(Search *s);  // no further rung: what is known decides who is in the finals
// The winner. SC_NO_PROGRAM: nothing was verified and measured in the finals.
u32 sc_search_best(const Search *s);
// What the ratios of the finals are uncertain by: the median of the spreads. 0: none yet.
double sc_search_noise(const Search *s);
// The program at a place, best first: of the finals by ratio, then those that got further, then by
// prediction; what failed, and what was passed over, is last.
u32 sc_search_ranked(Search *s, u32 place);
// How many orders may still come, if nothing fails.
u64 sc_search_left(const Search *s);

#endif
