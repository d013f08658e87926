// plan.h - the common plan of all roles while it is drawn: draw.c, touching.c.
#ifndef EXPERIMENT_PLAN_H
#define EXPERIMENT_PLAN_H

#include "program.h"

typedef struct Plan {
  Program *p;
  bool fills[MAX_ROLES][MAX_RINGS], drains[MAX_ROLES][MAX_RINGS];
  bool turns[MAX_ROLES][MAX_TURNS];
  int loop[8], loops;                 // around the place
  u32 busy, filled;                   // rings that are filled or held around it; that are filled
  const Ex *bound[2], *condition[2];  // drawn before, and likely to be used again
  const Ex *place[MAX_TENSORS][2];    // … of tensors
  bool ordered;                       // a turn over CTAs has been taken
  int left;                           // statements that may still be drawn
} Plan;

// draw.c
St *plan_list(Plan *d, u32 most);
int free_ring(Plan *d);

// places.c: axes of the grid, and positions.
void draw_axes(Program *p);
const Ex *some_axis(Program *p);
const Ex *times(Program *p, const Ex *x, int by);
const Ex *sum(Program *p, const Ex *x, const Ex *y);
// Fills in the positions of an access, or of a copy into a stage (FILL).
void draw_place(Plan *d, int tensor, St *of);

// cells.c: accesses of stages.
void draw_cells(Program *p);
St *cells_of(Plan *d, int ring, bool fill);
St *plan_cell(Plan *d);

// touching.c: accesses of tensors that roles write.
void draw_tensors(Program *p);
void draw_order(Program *p);
St *plan_touching(Plan *d);
St *plan_order(Plan *d);

#endif
