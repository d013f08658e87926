// facts.h - what is known of integers. Every question about an integer whose value only a launch
// decides is asked here: is it not negative, below another, a multiple, the same.
#ifndef SC_FACTS_H
#define SC_FACTS_H

#include "compiler/ir/ir.h"

// ---- interval.c
// From the least to the greatest value. Nothing is as far from 0 as SC_FAR: the launcher refuses
// what leaves 32 bits.
typedef struct Interval {
  i64 lo, hi;
} Interval;
#define SC_FAR ((i64)1 << 62)
Interval sc_interval(ExprOp op, Interval a, Interval b);  // of ADD … CDIV, MIN, MAX, NEG and ABS
Interval sc_interval_both(Interval a, Interval b);        // all values of one and of the other

// ---- said.c
typedef struct Facts Facts;
// Dimensions are not negative, and what the kernel requires holds.
Facts *sc_facts(Sc *sc, const Kernel *k);
// … and what the grid, loops and conditions say around operation `pc` of a role's code. (NULL: of
// no code, nothing more.)
void sc_facts_at(Facts *f, const Code *code, u32 pc);
// Would the facts contradict themselves if the condition held too, or did not?
bool sc_facts_refute(Facts *f, Xid cond, bool truth);
void sc_facts_forget(Facts *f, u32 exprs);  // expressions from this one on are taken back
// From now on what the schedule says of the shapes of tensors, and of the elements of its inputs,
// is believed: for proofs, not for what is emitted.
void sc_facts_elements(Facts *f);

// ---- inside.c
void sc_mark_inside(Sc *sc, Kernel *k);  // sets View.inside

// ---- prove.c
void sc_facts_thorough(Facts *f);  // from now on more effort is made
// Each is true only if it holds for all values that the facts allow. The effort is bounded: false
// says nothing. 0 stands for zero.
bool sc_fact_nonneg(Facts *f, Xid x);
bool sc_fact_less(Facts *f, Xid a, Xid b);          // a < b
bool sc_fact_at_most(Facts *f, Xid a, Xid b);       // a <= b
bool sc_fact_apart(Facts *f, Xid a, i64 n, Xid b);  // a + n <= b
bool sc_fact_equal(Facts *f, Xid a, Xid b);
bool sc_fact_multiple(Facts *f, Xid x, i64 n);
bool sc_fact_inside(Facts *f, Xid x, i64 n, Xid dim);  // 0 <= x and x + n <= dim
bool sc_fact_within(Facts *f, Xid x, i64 n, i64 dim);
// Have [a, a + n) and [b, b + m) no number in common? The second also asks it of a in one round of
// the loops around and b in any other.
bool sc_fact_disjoint(Facts *f, Xid a, i64 n, Xid b, i64 m);
bool sc_fact_disjoint_rounds(Facts *f, Xid a, i64 n, Xid b, i64 m);
// Does x change by multiples of n from one round of the loops to another?
bool sc_fact_steps(Facts *f, Xid x, i64 n);
// Is x at least `bound` in the tiles past the end of a grid axis, which fill up its last cluster?
bool sc_fact_past(Facts *f, u32 axis, Xid x, Xid bound);
// The least and the greatest value of x, if some round of the loops around has each of them.
bool sc_fact_reaches(Facts *f, Xid x, i64 *lo, i64 *hi);

#endif
