// draw.c - a program drawn from a seed. In: a seed. Out: for each role a list of statements.
//
// The idea: one plan for all roles is drawn, in which each move of a stage is written once; a
// role's statements are the plan with its own side of each move. So the plan itself is an order in
// which all can go on, and the program is right. Then some roles are rewritten into other words for
// the same, and half of the programs are changed in one or two places, right or not.
#include "edit.h"
#include "plan.h"

// ---- expressions

// The other position of an element of `M`.
static const Ex *other_position(Program *p, int loop) {
  switch (draw(p, 5)) {
    case 0: return ex(p, E_LOOP, loop, NULL, NULL);
    case 1: return ex(p, E_DIM, (int)draw(p, (u32)p->dims), NULL, NULL);
    case 2: return p->tiles ? some_axis(p) : number(p, 2);
    default: return number(p, chance(p, 75) ? 0 : 1);
  }
}

// An element of a table, at a loop's round or a few behind it.
static const Ex *of_table(Program *p, int loop) {
  const Ex *t = ex(p, E_LOOP, loop, NULL, NULL);
  if (chance(p, 25)) t = ex(p, E_ADD, 0, t, number(p, 1 + (int)draw(p, 2)));
  if (p->square && chance(p, 60)) {
    const Ex *u = other_position(p, loop);
    bool row = chance(p, 50);
    return ex(p, E_TABLE, 0, row ? t : u, row ? u : t);
  }
  return ex(p, E_TABLE, (int)draw(p, TABLES), t, NULL);
}

static const Ex *leaf(Program *p, const int *loop, int loops) {
  u32 what = draw(p, 100);
  if (what < 60) return ex(p, E_DIM, (int)draw(p, (u32)p->dims), NULL, NULL);
  if (what < 70 && p->elements) return ex(p, E_ELEMENT, (int)draw(p, (u32)p->elements), NULL, NULL);
  if (what < 78 && p->tiles) return some_axis(p);
  if (what < 86 && loops && p->table) return of_table(p, loop[draw(p, (u32)loops)]);
  if (what < 90 && loops) return ex(p, E_LOOP, loop[draw(p, (u32)loops)], NULL, NULL);
  return number(p, (int)draw(p, 5));
}

const Ex *draw_bound(Program *p, const int *loop, int loops) {
  const Ex *a = leaf(p, loop, loops);
  switch (draw(p, 16)) {
    case 0: return ex(p, E_ADD, 0, a, number(p, 1 + (int)draw(p, 3)));
    case 1: return ex(p, E_SUB, 0, a, number(p, 1 + (int)draw(p, 3)));
    case 2: return ex(p, E_SUB, 0, a, leaf(p, loop, loops));
    case 3: return ex(p, E_ADD, 0, a, leaf(p, loop, loops));
    case 4: return ex(p, E_MIN, 0, a, leaf(p, loop, loops));
    case 5: return ex(p, E_MAX, 0, a, leaf(p, loop, loops));
    case 6: return ex(p, E_DIV, 2 + (int)draw(p, 2), a, NULL);
    case 7: return ex(p, E_MOD, 2 + (int)draw(p, 2), a, NULL);
    case 8: return ex(p, E_MUL, 2, a, NULL);
    case 9: return number(p, (int)draw(p, 5));
    default: return a;
  }
}

static const Ex *last_round(Program *p, const Ex *t, const int *loop, int loops) {
  return ex(p, E_SUB, 0, draw_bound(p, loop, loops - 1), ex(p, E_ADD, 0, t, number(p, 1)));
}

static const Ex *of_round(Program *p, const int *loop, int loops) {
  const Ex *t = ex(p, E_LOOP, loop[loops - 1], NULL, NULL), *zero = number(p, 0);
  XKind compare = chance(p, 50) ? E_EQ : E_LT;
  if (p->table && chance(p, 50)) return ex(p, compare, 0, zero, of_table(p, loop[loops - 1]));
  switch (draw(p, 7)) {
    case 0: return ex(p, E_EQ, 0, t, zero);
    case 1: return ex(p, E_LT, 0, zero, t);
    case 2: return ex(p, E_EQ, 0, ex(p, E_MOD, 2 + (int)draw(p, 2), t, NULL), zero);
    case 3: return ex(p, E_LT, 0, t, number(p, 1 + (int)draw(p, 3)));
    case 4: return ex(p, compare, 0, zero, last_round(p, t, loop, loops));
    case 5: return ex(p, chance(p, 50) ? E_LT : E_LE, 0, draw_bound(p, loop, loops - 1), t);
    default: return ex(p, chance(p, 50) ? E_LT : E_LE, 0, t, draw_bound(p, loop, loops - 1));
  }
}

static const Ex *of_tile(Program *p, const int *loop, int loops) {
  const Ex *a = draw_bound(p, loop, loops);
  switch (draw(p, 5)) {
    case 0: return ex(p, E_LT, 0, number(p, (int)draw(p, 3)), a);
    case 1: return ex(p, E_EQ, 0, ex(p, E_MOD, 2, a, NULL), number(p, (int)draw(p, 2)));
    case 2: return ex(p, E_NE, 0, a, number(p, (int)draw(p, 3)));
    default: return ex(p, chance(p, 50) ? E_LT : E_LE, 0, a, draw_bound(p, loop, loops));
  }
}

const Ex *draw_condition(Program *p, const int *loop, int loops) {
  const Ex *c = loops && chance(p, 70) ? of_round(p, loop, loops) : of_tile(p, loop, loops);
  u32 more = draw(p, 12);
  if (more == 0) return ex(p, E_NOT, 0, c, NULL);
  if (more > 2) return c;
  return ex(p, more == 1 ? E_AND : E_OR, 0, c, of_tile(p, loop, loops));
}

static const Ex *bound(Plan *d) {
  u32 i = draw(d->p, 2);
  if (d->bound[i] && chance(d->p, 60)) return d->bound[i];
  const Ex *x = draw_bound(d->p, d->loop, d->loops);
  if (!d->loops) d->bound[i] = x;
  return x;
}

static const Ex *condition(Plan *d) {
  u32 i = draw(d->p, 2);
  if (d->condition[i] && chance(d->p, 50)) return d->condition[i];
  const Ex *x = draw_condition(d->p, d->loop, d->loops);
  if (!d->loops) d->condition[i] = x;
  return x;
}

// ---- the plan

static St *plan_loop(Plan *d) {
  Program *p = d->p;
  St *s = st(p, S_FOR, p->vars++, NULL);
  s->x = chance(p, 75) ? number(p, 0) : chance(p, 60) ? number(p, 1 + (int)draw(p, 2)) : bound(d);
  s->y = bound(d);
  s->reversed = chance(p, 15);
  d->loop[d->loops++] = s->ref;
  s->body = plan_list(d, 3);
  d->loops--;
  return s;
}

static St *move(Plan *d, int ring) {
  St *s = st(d->p, S_MOVE, ring, cells_of(d, ring, true));
  s->other = cells_of(d, ring, false);
  return s;
}

static St *around(Plan *d, SKind kind, int ring, u32 most) {
  bool filled = d->busy >> ring & 1, opens = kind == S_OPEN, own = d->p->ring[ring].owner >= 0;
  if (filled) return move(d, ring);
  St *first = own ? NULL : cells_of(d, ring, opens);
  d->busy |= 1u << ring;
  d->filled |= (u32)opens << ring;
  St *s = st(d->p, kind, ring, first);
  if (chance(d->p, 90)) append(&s->body, plan_list(d, most));
  d->busy ^= 1u << ring;
  d->filled &= d->busy;
  s->other = own ? NULL : cells_of(d, ring, !opens);
  return s;
}

int free_ring(Plan *d) {
  int ring = (int)draw(d->p, (u32)d->p->rings);
  for (u32 i = 0; i < 3 && d->busy >> ring & 1; i++) ring = (int)draw(d->p, (u32)d->p->rings);
  return ring;
}

static St *plan_one(Plan *d) {
  Program *p = d->p;
  u32 what = draw(p, 100);
  int ring = free_ring(d);
  d->left--;
  St *cell = p->cells && d->busy && chance(p, 40) ? plan_cell(d) : NULL;
  if (cell) return cell;
  if (p->tensors && chance(p, p->order && !d->ordered ? 50 : 35)) return plan_touching(d);
  if (what < 30 && d->loops < 2 && p->vars < MAX_VARS / 2) return plan_loop(d);
  if (what < 45) {
    St *s = st(p, S_IF, 0, NULL);
    s->x = condition(d);
    s->body = plan_list(d, 2);
    if (chance(p, 40)) s->other = plan_list(d, 2);
    return s;
  }
  if (what < 52) return around(d, S_OPEN, ring, 1);
  if (what < 60) return around(d, S_HOLD, ring, 2);
  if (what < 70 && p->turns) return st(p, S_TURN, (int)draw(p, (u32)p->turns), plan_list(d, 2));
  return move(d, ring);
}

St *plan_list(Plan *d, u32 most) {
  St *list = NULL;
  for (u32 n = 1 + draw(d->p, most); n > 0 && d->left > 0; n--) append(&list, plan_one(d));
  return list;
}

// ---- a role's side of it

static St *side(const Plan *d, int role, const St *s);

static St *bracket(const Plan *d, SKind kind, const St *s, int role, bool around) {
  St *body = side(d, role, s->body), *own = st(d->p, kind, s->ref, body);
  if (around) return own;
  own->body = side(d, role, s->other);
  if (kind == S_FILL) {
    own->next = body;
    return own;
  }
  append(&body, own);
  return body;
}

static St *side_of_move(const Plan *d, int role, const St *s) {
  bool fills = d->fills[role][s->ref], drains = d->drains[role][s->ref];
  St *own = fills ? st(d->p, S_FILL, s->ref, side(d, role, s->body)) : NULL;
  if (own && s->x) {
    own->x = s->x;
    own->y = s->y;
    own->with = s->with;
  }
  if (drains) append(&own, st(d->p, S_DRAIN, s->ref, side(d, role, s->other)));
  return own;
}

static St *side_of_ring(const Plan *d, int role, const St *s) {
  bool fills = d->fills[role][s->ref], drains = d->drains[role][s->ref];
  if (s->kind == S_MOVE) return side_of_move(d, role, s);
  if (fills && drains) {
    St *own = st(d->p, S_FILL, s->ref, NULL);
    own->next = st(d->p, S_DRAIN, s->ref, NULL);
    own->next->next = side(d, role, s->body);
    return own;
  }
  if (fills) return bracket(d, S_FILL, s, role, s->kind == S_OPEN);
  if (drains) return bracket(d, S_DRAIN, s, role, s->kind == S_HOLD);
  return side(d, role, s->body);
}

static St *own_order(Program *p, const St *s, St *body) {
  St *own = st(p, S_ORDER, 0, body);
  own->x = s->x;
  own->y = s->y;
  return own;
}

static St *side_of(const Plan *d, int role, const St *s) {
  St *own = NULL;
  if (s->kind == S_MOVE || s->kind == S_OPEN || s->kind == S_HOLD) return side_of_ring(d, role, s);
  if (s->kind == S_TOUCH || s->kind == S_SETTLE || s->kind == S_CELL)
    return s->who >> role & 1 ? copy_one(d->p, s) : NULL;
  St *body = side(d, role, s->body), *other = side(d, role, s->other);
  if (s->kind == S_ORDER && !(s->who >> role & 1)) return body;
  if (s->kind == S_ORDER) return own_order(d->p, s, body);
  if (s->kind == S_TURN) return d->turns[role][s->ref] ? st(d->p, S_TURN, s->ref, body) : body;
  if (!body && !other && chance(d->p, 95)) return NULL;
  own = st(d->p, s->kind, s->ref, body);
  own->other = other;
  own->x = s->x;
  own->y = s->y;
  own->reversed = s->reversed;
  return own;
}

static St *side(const Plan *d, int role, const St *s) {
  St *list = NULL;
  for (; s; s = s->next) append(&list, side_of(d, role, s));
  return list;
}

// ---- who takes part

// Copies are one instance's.
static void draw_copies(Plan *d, int ring) {
  Program *p = d->p;
  int fillers = 0;
  for (int role = 0; role < p->roles; role++)
    fillers += d->fills[role][ring] * p->role[role].instances;
  p->ring[ring].copied = fillers == 1 && chance(p, p->cluster ? 70 : p->tensors ? 45 : 10);
  p->ring[ring].shared = p->ring[ring].copied && p->cluster && chance(p, 80);
}

static void draw_rings(Plan *d) {
  Program *p = d->p;
  for (int r = 0; r < p->rings; r++) {
    int filler = (int)draw(p, (u32)p->roles), drainer = (int)draw(p, (u32)p->roles - 1);
    drainer += drainer >= filler;
    p->ring[r].stages = 1 + (int)draw(p, 3);
    p->ring[r].owner = -1;
    if (chance(p, 8) && !p->role[filler].dealt) p->ring[r].owner = drainer = filler;
    d->fills[filler][r] = d->drains[drainer][r] = true;
    if (p->ring[r].owner >= 0) continue;
    for (int role = 0; role < p->roles; role++) {
      bool other = role != filler && role != drainer;
      d->fills[role][r] |= other && chance(p, 12);
      d->drains[role][r] |= other && !d->fills[role][r] && chance(p, 25);
    }
    draw_copies(d, r);
  }
}

static void draw_turns(Plan *d) {
  Program *p = d->p;
  for (int t = 0; t < p->turns; t++) {
    int threads = 0;
    Baton *b = &p->turn[t];
    b->members = 0;
    for (int r = 0; r < p->roles; r++) {
      bool with_others =
          p->role[r].dealt ? !b->members : !b->members || !p->role[b->member[0]].dealt;
      if (!with_others || !chance(p, 50)) continue;
      b->member[b->members++] = r;
      threads += p->role[r].instances;
      d->turns[r][t] = true;
    }
    if (threads > 1) continue;
    for (int r = 0; r < p->roles; r++) d->turns[r][t] = false;
    p->turns = t;
  }
}

static void draw_frame(Plan *d) {
  Program *p = d->p;
  p->roles = 2 + (int)(draw(p, 5) * draw(p, 4) / 5);
  p->roles = p->roles > MAX_ROLES ? MAX_ROLES : p->roles;
  p->rings = 1 + (int)draw(p, MAX_RINGS);
  draw_tensors(p);
  draw_cells(p);
  p->dims = 1 + (int)(draw(p, 6) * draw(p, 6) / 10);
  p->turns = chance(p, p->tensors ? 45 : 30) ? 1 + (int)draw(p, MAX_TURNS) : 0;
  p->elements = chance(p, 25) ? 1 + (int)draw(p, MAX_ELEMENTS) : 0;
  p->scalars = chance(p, 50);
  p->tiles = chance(p, p->tensors ? 50 : 20);
  p->table = chance(p, 15);
  p->square = p->table && chance(p, 60);
  for (int r = 0; r < p->roles; r++) p->role[r].instances = 1 + chance(p, 20);
  p->ctas = p->tiles && chance(p, 30);
  p->dynamic = !p->ctas && chance(p, 25);
  p->cluster = p->tiles && chance(p, p->tensors ? 30 : 20);
  draw_axes(p);
  for (int r = 0; r < p->roles && p->tiles && !p->ctas; r++)
    p->role[r].dealt = p->role[r].instances > 1 && chance(p, 50);
  for (int i = 0; i < p->dims; i++) p->least[i] = chance(p, 20) ? 1 + (int)draw(p, 2) : 0;
  p->ordered = p->dims > 1 && chance(p, 15);
  if (p->tensors && p->tiles) draw_order(p);
}

Program *sc_draw(Sc *sc, u64 seed) {
  Plan d = {.p = NEW(sc, Program), .left = 8};
  Program *p = d.p;
  p->sc = sc;
  p->seed = (seed + 1) * 0x9e3779b97f4a7c15ull;
  draw_frame(&d);
  if (p->order) d.left = 5;
  draw_rings(&d);
  draw_turns(&d);
  St *all = plan_list(&d, 4);
  for (int r = 0; r < p->roles; r++) p->role[r].body = side(&d, r, all);
  for (int r = 0; r < p->roles && p->tensors; r++) settle_later(p, &p->role[r].body);
  for (u32 n = draw(p, 4); n > 0; n--) rewrite(p, (int)draw(p, (u32)p->roles));
  if (chance(p, 50))
    for (u32 n = 1 + draw(p, 2); n > 0; n--) mutate(p);
  return p;
}
