// slips.c - edits of accesses, of turns over CTAs, and of elements of the list of two dimensions.
// In: a role's statements. Out: the same, edited in place.
#include "edit.h"

// Each axis taken for the next one.
static const Ex *other_axis(Program *p, const Ex *x) {
  if (!x) return NULL;
  if (x->kind == E_TILE) return ex(p, E_TILE, (x->n + 1) % p->axes, NULL, NULL);
  return ex(p, x->kind, x->n, other_axis(p, x->a), other_axis(p, x->b));
}

static void other_tensor(Program *p, St *s) {
  int to = (int)draw(p, (u32)p->tensors);
  bool square = p->tensor[to] == SHAPE_SQUARE, crossed = p->tensor[to] == SHAPE_CROSSED;
  if (crossed && s->touch >= TOUCH_GET) return;
  s->ref = to;
  if (square != (s->y != NULL)) s->y = square ? number(p, 0) : NULL;
  s->reversed = crossed && s->reversed;
}

static void other_place(Program *p, St *s) {
  const Ex *x = s->x, **at = s->y && chance(p, 50) ? &s->y : &s->x;
  u32 what = draw(p, 4);
  if (what == 0 && s->y) {
    s->x = s->y;
    s->y = x;
  } else if (what == 0 && p->tensor[s->ref] == SHAPE_CROSSED) {
    s->reversed = !s->reversed;
  } else if (what == 1 && p->axes > 1) {
    *at = other_axis(p, *at);
  } else {
    *at = add(p, *at, chance(p, 50) ? 1 : -1);
  }
}

// (What holds is that a cell is within its stage.)
void change_cell(Program *p, St *s, const int *loop, int loops) {
  u32 what = draw(p, 4);
  if (what == 0) s->touch = (Touch)draw(p, TOUCH_GET);
  else if (what == 1) s->ref = (int)draw(p, (u32)p->rings);
  else s->x = draw_cell(p, loop, loops);
  if (cells_in(p, s->ref) == 1) s->x = NULL;
}

void change_settle(Program *p, St *s) {
  if (chance(p, 50)) s->with = !s->with;
  else s->reversed = !s->reversed;
}

void change_touch(Program *p, St *s) {
  switch (draw(p, 4)) {
    case 0: s->touch = s->touch > TOUCH_GET ? TOUCH_PUT : (Touch)draw(p, TOUCH_GET); return;
    case 1: other_tensor(p, s); return;
    default: other_place(p, s);
  }
}

static St *waited_for(Program *p, const St *settle, int keep, bool reads) {
  St *s = copy_one(p, settle);
  s->with = keep;
  s->reversed = reads;
  return s;
}

// for { wait; copy out; wait for it; release }: the last two a round later, with one copy kept.
St *settle_lagged(Program *p, const St *s) {
  const St *drain = s->body, *put = drain && drain->kind == S_DRAIN ? drain->body : NULL;
  const St *last = put && put->kind == S_TOUCH && put->touch >= TOUCH_PUT ? put->next : NULL;
  bool ok = last && last->kind == S_SETTLE && !last->next && !drain->next && !last->with;
  if (!ok || p->ring[drain->ref].stages < 2) return NULL;
  const Ex *t = ex(p, E_LOOP, s->ref, NULL, NULL);
  bool reads = last->reversed || chance(p, 60);
  St *own = copy_list(p, s), *give = waited_for(p, last, 1, reads);
  append(&give, st(p, S_RELEASE, drain->ref, NULL));
  own->body = st(p, S_WAIT, drain->ref, NULL);
  append(&own->body, copy_one(p, put));
  append(
      &own->body,
      when(p, s->reversed ? ex(p, E_LT, 0, t, add(p, s->y, -1)) : ex(p, E_LT, 0, s->x, t), give));
  St *end = waited_for(p, last, 0, last->reversed);
  append(&end, st(p, S_RELEASE, drain->ref, NULL));
  own->next = when(p, ex(p, E_LT, 0, s->x, s->y), end);
  return own;
}

void settle_later(Program *p, St **list) {
  for (; *list; list = &(*list)->next) {
    St *lagged = (*list)->kind == S_FOR && chance(p, 60) ? settle_lagged(p, *list) : NULL;
    if (lagged) put_in_place(list, lagged);
    settle_later(p, &(*list)->body);
    settle_later(p, &(*list)->other);
  }
}

// ---- rows for columns

static const Ex *turned(Program *p, const Ex *x) {
  if (!x) return NULL;
  if (x->kind == E_TABLE && x->b) return ex(p, E_TABLE, 0, x->b, x->a);
  return ex(p, x->kind, x->n, turned(p, x->a), turned(p, x->b));
}

static bool reads_square(const Ex *x) {
  return x && ((x->kind == E_TABLE && x->b) || reads_square(x->a) || reads_square(x->b));
}

static bool reads_tile(const Ex *x) {
  return x && (x->kind == E_TILE || reads_tile(x->a) || reads_tile(x->b));
}

bool change_axis(Program *p, St *s) {
  bool done = false;
  for (; s && !done; s = s->next) {
    done = reads_tile(s->x) && chance(p, 50);
    if (done) s->x = other_axis(p, s->x);
    else done = change_axis(p, s->body) || change_axis(p, s->other);
  }
  return done;
}

bool turn_square(Program *p, St *s) {
  bool done = false;
  for (; s && !done; s = s->next) {
    done = reads_square(s->x) && chance(p, 70);
    if (done) s->x = turned(p, s->x);
    else done = turn_square(p, s->body) || turn_square(p, s->other);
  }
  return done;
}

// ---- turns over CTAs

void change_key(Program *p, St *s) {
  u32 what = draw(p, 3);
  const Ex *by = add(p, s->x, chance(p, 50) ? 1 : -1);
  if (what != 1) s->x = by;
  if (what != 2) s->y = by;
}

static St *step_of_order(Program *p, SKind kind, const Ex *key) {
  St *s = st(p, kind, 0, NULL);
  s->x = s->y = key;
  return s;
}

static St *in_round(Program *p, const St *loop, const Ex *round, St *body) {
  return when(p, ex(p, E_EQ, 0, ex(p, E_LOOP, loop->ref, NULL, NULL), round), body);
}

// What it is around is one loop, which its key does not depend on.
static bool is_around_loop(const St *s) {
  const St *loop = s->body;
  return loop && loop->kind == S_FOR && !loop->next && !(s->x && reads_loop(s->x, loop->ref));
}

St *order_into_loop(Program *p, const St *s, bool right) {
  if (!is_around_loop(s)) return NULL;
  St *own = copy_list(p, s->body), *body = own->body;
  const Ex *last = add(p, own->y, -1), *first = own->reversed ? last : own->x;
  const Ex *end = own->reversed ? own->x : last;
  own->body = in_round(p, own, first, step_of_order(p, S_TAKE_KEY, s->x));
  append(&own->body, body);
  append(&own->body, in_round(p, own, right ? end : first, step_of_order(p, S_PASS_KEY, s->y)));
  return own;
}

// Taken before a loop that has a round, and passed on in its first or last.
static St *passed_on_in_loop(Program *p, const St *s) {
  if (!is_around_loop(s)) return NULL;
  St *list = step_of_order(p, S_TAKE_KEY, s->x), *own = copy_list(p, s->body);
  own->y = ex(p, E_MAX, 0, own->y, add(p, own->x, 1));
  const Ex *round = chance(p, 50) ? own->x : add(p, own->y, -1);
  append(&own->body, in_round(p, own, round, step_of_order(p, S_PASS_KEY, s->y)));
  append(&list, own);
  return list;
}

St *order_lagged(Program *p, const St *s, bool right) {
  const St *order = s->body;
  if (!order || order->kind != S_ORDER || order->next || s->reversed || !order->x) return NULL;
  St *own = copy_list(p, s);
  const Ex *t = ex(p, E_LOOP, s->ref, NULL, NULL);
  const Ex *before = right ? with_loop(p, order->y, s->ref, add(p, t, -1)) : order->y;
  own->body = when(p, ex(p, E_LT, 0, s->x, t), step_of_order(p, S_PASS_KEY, before));
  append(&own->body, step_of_order(p, S_TAKE_KEY, order->x));
  append(&own->body, copy_list(p, order->body));
  append(&own->body, in_round(p, s, add(p, s->y, -1), step_of_order(p, S_PASS_KEY, order->y)));
  return own;
}

// Taken and passed on in one of two branches, with the accesses in both.
static St *on_one_side(Program *p, const St *s, const Ex *c) {
  St *list = when(p, c, step_of_order(p, S_TAKE_KEY, s->x));
  append(&list->body, copy_list(p, s->body));
  list->other = copy_list(p, s->body);
  append(&list, when(p, c, step_of_order(p, S_PASS_KEY, s->y)));
  return list;
}

// As steps of their own, passed on early on one of two ways.
static St *apart(Program *p, const St *s) {
  St *list = step_of_order(p, S_TAKE_KEY, s->x), *pass = step_of_order(p, S_PASS_KEY, s->y);
  u32 what = draw(p, 4);
  const Ex *x = ex(p, E_TILE, p->order_axis, NULL, NULL);
  const Ex *n = chance(p, 50) ? number(p, 1 + (int)draw(p, 2)) : draw_bound(p, NULL, 0);
  const Ex *c = chance(p, 60) ? ex(p, E_LT, 0, x, n) : draw_condition(p, NULL, 0);
  if (what == 3) return on_one_side(p, s, c);
  if (what == 0) append(&list, when(p, c, pass));
  append(&list, copy_list(p, s->body));
  append(&list, what == 0 ? when(p, ex(p, E_NOT, 0, c, NULL), copy_one(p, pass)) : pass);
  return what == 1 ? when(p, c, list) : list;
}

// What is behind the turn is drawn out of it, or its body is moved before it.
static void beside(Program *p, St *s) {
  St *body = s->body, *rest = s->next;
  if (!body) return;
  s->body = chance(p, 50) ? body->next : NULL;
  if (s->body) body->next = NULL;
  append(&body, rest);
  s->next = body;
}

static void one_slip_of_order(Program *p, St **at) {
  St *s = *at, *loop = NULL;
  switch (draw(p, 8)) {
    case 0:
      if (s->x) change_key(p, s);
      return;
    case 1:
    case 2: put_in_place(at, apart(p, s)); return;
    case 3: beside(p, s); return;
    case 4: loop = order_into_loop(p, s, false); break;
    default: loop = passed_on_in_loop(p, s);
  }
  if (loop) put_in_place(at, loop);
}

bool slip_of_order(Program *p, St **list) {
  for (; *list; list = &(*list)->next) {
    St *lagged = (*list)->kind == S_FOR && chance(p, 40) ? order_lagged(p, *list, false) : NULL;
    if (lagged) {
      put_in_place(list, lagged);
      return true;
    }
    if ((*list)->kind == S_ORDER) {
      one_slip_of_order(p, list);
      return true;
    }
    if (slip_of_order(p, &(*list)->body) || slip_of_order(p, &(*list)->other)) return true;
  }
  return false;
}
