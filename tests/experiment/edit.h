// edit.h - parts of edits of a role: rewrite.c, slips.c.
#ifndef EXPERIMENT_EDIT_H
#define EXPERIMENT_EDIT_H

#include "program.h"

typedef struct Place {
  St **at;
  int loop[8], loops;  // around it
} Place;

// rewrite.c
const Ex *add(Program *p, const Ex *x, int c);
St *when(Program *p, const Ex *c, St *body);
void put_in_place(St **at, St *list);

// slips.c: accesses, axes, keys, lists of two dimensions. False: the slip does not apply.
void change_touch(Program *p, St *s);
void change_settle(Program *p, St *s);
void change_cell(Program *p, St *s, const int *loop, int loops);
// The same with copies out waited for in the next round of a loop. NULL: it is no such loop.
St *settle_lagged(Program *p, const St *s);
void settle_later(Program *p, St **list);  // … of some loops
bool change_axis(Program *p, St *list);
void change_key(Program *p, St *s);
bool turn_square(Program *p, St *list);
bool slip_of_order(Program *p, St **list);
// A turn over CTAs that is taken and passed on by conditions in the loop that it was around; right,
// or passed on in another round. NULL: there is no loop.
St *order_into_loop(Program *p, const St *s, bool right);
// A loop around a turn, which is passed on in the next round; right, or with that round's key.
St *order_lagged(Program *p, const St *s, bool right);

#endif
