// cells.c - what threads do to stages, in the common plan. In: a plan. Out: statements of it that
// store to the stage that is being filled, or read or change a stage that is held.
//
// A stage of 64 elements has two cells, one of 32 has one. Who fill or hold a stage together mostly
// have a cell each; or one after the other the same, as a ring or a turn between them tells.
#include "plan.h"

void draw_cells(Program *p) {
  bool some = chance(p, 35);
  for (int r = 0; r < p->rings; r++) {
    p->ring[r].cells = some && chance(p, 65);
    p->ring[r].narrow = p->ring[r].cells && chance(p, 30);
  }
  p->cells = some;
}

static const Ex *parity(Program *p, const Ex *x) { return ex(p, E_MOD, 2, x, NULL); }

// Which cell; NULL: all of them.
const Ex *draw_cell(Program *p, const int *loop, int loops) {
  const Ex *w = ex(p, E_INSTANCE, 0, NULL, NULL);
  switch (draw(p, 10)) {
    case 0:
    case 1: return NULL;
    case 2: return w;
    case 3: return ex(p, E_SUB, 0, number(p, 1), w);
    case 4: return p->tiles ? parity(p, some_axis(p)) : number(p, 0);
    case 5: return loops ? parity(p, ex(p, E_LOOP, loop[draw(p, (u32)loops)], NULL, NULL)) : w;
    case 6: return parity(p, draw_bound(p, loop, loops));
    default: return number(p, (int)draw(p, 2));
  }
}

static St *cell(Program *p, int ring, Touch how, u32 who, const Ex *x) {
  St *s = st(p, S_CELL, ring, NULL);
  s->touch = how;
  s->who = who;
  s->x = cells_in(p, ring) == 1 ? NULL : x;
  return s;
}

static int instances(const Program *p, u32 who) {
  int n = 0;
  for (int r = 0; r < p->roles; r++)
    if (who >> r & 1) n += p->role[r].dealt ? 1 : p->role[r].instances;
  return n;
}

// Each instance has its own cell, if there are two of them.
static St *parts(Program *p, int ring, Touch how, u32 who) {
  St *all = NULL;
  int cell_of = (int)draw(p, 2);
  for (int r = 0; r < p->roles; r++) {
    if (!(who >> r & 1)) continue;
    bool two = p->role[r].instances > 1 && !p->role[r].dealt;
    const Ex *w = ex(p, E_INSTANCE, 0, NULL, NULL), *x = two ? w : number(p, cell_of);
    append(&all, cell(p, ring, how, 1u << r, x));
    cell_of = !cell_of;
  }
  return all;
}

static u32 who_of(const Plan *d, int ring, bool fill) {
  u32 all = 0;
  for (int r = 0; r < d->p->roles; r++) all |= (u32)(fill ? d->fills : d->drains)[r][ring] << r;
  return all;
}

static Touch some_way(Program *p, bool fill) {
  u32 what = draw(p, 10);
  return fill ? TOUCH_STORE : what < 7 ? TOUCH_LOAD : what < 9 ? TOUCH_ADD : TOUCH_STORE;
}

// What all who fill a stage, or who drain it, do to it.
St *cells_of(Plan *d, int ring, bool fill) {
  Program *p = d->p;
  if (!p->ring[ring].cells || (fill && p->ring[ring].copied) || p->ring[ring].shared) return NULL;
  u32 who = who_of(d, ring, fill);
  if (!fill && chance(p, 15)) return NULL;
  Touch how = some_way(p, fill);
  if (how != TOUCH_LOAD && instances(p, who) > 1 && chance(p, 85)) return parts(p, ring, how, who);
  St *all = cell(p, ring, how, who, chance(p, 60) ? NULL : draw_cell(p, d->loop, d->loops));
  if (chance(p, 20)) append(&all, cell(p, ring, some_way(p, fill), who, NULL));
  return all;
}

// By some of those who fill or hold a stage around the place. NULL: nobody does.
St *plan_cell(Plan *d) {
  Program *p = d->p;
  int ring = (int)draw(p, (u32)p->rings);
  for (int i = 0; i < p->rings && !(d->busy >> ring & 1); i++) ring = (ring + 1) % p->rings;
  bool fill = d->filled >> ring & 1;
  bool fits = p->ring[ring].cells && d->busy >> ring & 1 && p->ring[ring].owner < 0;
  if (!fits || p->ring[ring].shared || (fill && p->ring[ring].copied)) return NULL;
  u32 who = who_of(d, ring, fill), some = who & draw(p, 1u << p->roles);
  if (!some || chance(p, 25)) some = who;
  Touch how = some_way(p, fill);
  if (!fill && how == TOUCH_LOAD && chance(p, 40)) how = TOUCH_STORE;
  return cell(p, ring, how, some, draw_cell(p, d->loop, d->loops));
}
