// slips.c - edits of accesses, of turns over CTAs, and of elements of the list of two dimensions.
// In: a role's statements. Out: the same, edited in place.
#include "edit.h"

void change_touch(Program *p, St *s) {
  switch (draw(p, 4)) {
    case 0: s->touch = s->touch > TOUCH_GET ? TOUCH_PUT : (Touch)draw(p, TOUCH_GET); return;
    case 1: s->ref = (int)draw(p, (u32)p->tensors); return;
    default: s->x = add(p, s->x, chance(p, 50) ? 1 : -1);
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
  const Ex *x = ex(p, E_TILE, 0, NULL, NULL);
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
