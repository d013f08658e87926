// places.c - the axes of a grid, and positions of accesses, in the common plan. In: a plan. Out:
// how tiles lie, and expressions of loop variables, of the tile, of dimensions.
//
// Positions are drawn again that were drawn before; some with rows taken for columns, and in some
// one axis of several is left out or counted as another.
#include "plan.h"

const Ex *sum(Program *p, const Ex *x, const Ex *y) { return ex(p, E_ADD, 0, x, y); }

const Ex *times(Program *p, const Ex *x, int by) { return by == 1 ? x : ex(p, E_MUL, by, x, NULL); }

// ---- the grid

static int tiles(const Program *p) {
  int n = 1;
  for (int a = 0; a < p->axes; a++) {
    bool wide = p->cluster && a == p->cluster_axis;
    n *= wide ? (p->axis[a].extent + 1) / 2 * 2 : p->axis[a].extent;
  }
  return n;
}

static int some_long_axis(Program *p) {
  int a = (int)draw(p, (u32)p->axes);
  for (int i = 0; i < p->axes && p->axis[a].extent == 1; i++) a = (a + 1) % p->axes;
  return a;
}

void draw_axes(Program *p) {
  u32 what = draw(p, 20);
  p->axes = !p->tiles ? 0 : what < 10 ? 1 : what < 17 ? 2 : 3;
  for (int a = 0; a < p->axes; a++)
    p->axis[a] = (Line){.extent = p->axes == 1 ? 3 : 1 + (int)(draw(p, 12) + 4) / 6};
  p->cluster_axis = p->order_axis = 0;
  if (p->axes > 1) p->axis[draw(p, (u32)p->axes)].extent = 2 + (int)draw(p, 2);
  if (p->axes) p->cluster_axis = some_long_axis(p);
  for (int a = 0; a < p->axes; a++)
    if (tiles(p) > MOST_TILES && p->axis[a].extent > 2) p->axis[a].extent = 2;
  p->order_axis = p->cluster_axis;
  if (p->axes && !(p->cluster && chance(p, 75))) p->order_axis = some_long_axis(p);
  for (int a = 0; a < p->axes; a++) {
    if (chance(p, 15)) p->axis[a].by = 1 + (int)draw(p, 2);
    p->axis[a].reversed = chance(p, 15);
  }
}

const Ex *some_axis(Program *p) { return ex(p, E_TILE, (int)draw(p, (u32)p->axes), NULL, NULL); }

// The tile in one number, each of which is one tile's; or nearly so.
static const Ex *tile_number(Program *p) {
  const Ex *all = NULL;
  int by = 1, skip = chance(p, 10) ? (int)draw(p, 3) : -1;
  for (int a = 0; a < p->axes; a++) {
    const Ex *x = times(p, ex(p, E_TILE, a, NULL, NULL), by);
    if (a != skip) all = all ? sum(p, all, x) : x;
    if (chance(p, 95)) by *= p->axis[a].extent;
  }
  return all ? all : number(p, 0);
}

// ---- positions

static bool in_scope(const Plan *d, const Ex *x) {
  for (int v = 0; v < d->p->vars; v++) {
    bool around = false;
    for (int i = 0; i < d->loops; i++) around |= d->loop[i] == v;
    if (!around && reads_loop(x, v)) return false;
  }
  return true;
}

static const Ex *base(Plan *d) {
  Program *p = d->p;
  if (d->loops && chance(p, 80))
    return ex(p, E_LOOP, d->loop[chance(p, 70) ? d->loops - 1 : (int)draw(p, (u32)d->loops)], NULL,
              NULL);
  if (chance(p, 20)) return draw_bound(p, d->loop, d->loops);
  return number(p, (int)draw(p, 3));
}

static const Ex *within_tile(Plan *d) {
  Program *p = d->p;
  const Ex *x = base(d);
  switch (draw(p, 12)) {
    case 0: return sum(p, x, number(p, 1 + (int)draw(p, 2)));
    case 1: return ex(p, E_MOD, 2 + (int)draw(p, 2), x, NULL);
    case 2: return ex(p, E_DIV, 2, x, NULL);
    case 3: return sum(p, times(p, x, 2), number(p, (int)draw(p, 2)));
    case 4: return ex(p, E_SUB, 0, draw_bound(p, d->loop, d->loops), x);
    case 5: return sum(p, x, base(d));
    case 6: return sum(p, times(p, x, 2 + (int)draw(p, 3)), base(d));
    case 7: return draw_bound(p, d->loop, d->loops);
    default: return x;
  }
}

// The position in one dimension.
static const Ex *along(Plan *d, Shape shape) {
  Program *p = d->p;
  const Ex *x = within_tile(d);
  int room = tiles(p) > 4 ? 8 : p->axes > 1 ? 14 : 20;
  if (shape == SHAPE_FLAT && chance(p, 80)) x = times(p, x, 2);
  if (shape == SHAPE_CROSSED) room = 5;
  if (p->tiles && chance(p, p->order ? 40 : 70)) {
    const Ex *n = chance(p, 85) ? tile_number(p) : some_axis(p);
    x = sum(p, x, times(p, n, chance(p, 80) ? room : 1 + (int)draw(p, 4)));
  }
  return x;
}

// One position of two: it tells the tile, an axis of it, the round, or nothing.
static const Ex *one_of_two(Plan *d) {
  Program *p = d->p;
  u32 what = draw(p, 10);
  if (what < 3 && p->tiles) return chance(p, 60) ? tile_number(p) : some_axis(p);
  if (what < 5) return number(p, (int)draw(p, 3));
  return what < 6 ? within_tile(d) : base(d);
}

static void new_place(Plan *d, int tensor) {
  const Ex **to = d->place[tensor];
  bool square = d->p->tensor[tensor] == SHAPE_SQUARE;
  to[0] = square ? one_of_two(d) : along(d, d->p->tensor[tensor]);
  to[1] = square ? one_of_two(d) : NULL;
}

void draw_place(Plan *d, int tensor, St *of) {
  Program *p = d->p;
  const Ex **was = d->place[tensor];
  bool square = p->tensor[tensor] == SHAPE_SQUARE;
  bool again = was[0] && in_scope(d, was[0]) && (!was[1] || in_scope(d, was[1]));
  if (!again || !chance(p, 70)) new_place(d, tensor);
  bool turned = square && chance(p, 10);
  of->x = was[turned];
  of->y = square ? was[!turned] : NULL;
  of->reversed = p->tensor[tensor] == SHAPE_CROSSED && chance(p, 35);
}
