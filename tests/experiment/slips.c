// slips.c - edits of accesses, of turns over CTAs, and of elements of the list of two dimensions.
// In: a role's statements. Out: the same, edited in place.
#include "edit.h"

void change_touch(Program *p, St *s) {
  switch (draw(p, 4)) {
    case 0: s->touch = (Touch)draw(p, TOUCHES); return;
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

St *order_into_loop(Program *p, const St *s, bool right) {
  const St *loop = s->body;
  if (!loop || loop->kind != S_FOR || loop->next || (s->x && reads_loop(s->x, loop->ref)))
    return NULL;
  St *own = copy_list(p, loop), *body = own->body;
  const Ex *t = ex(p, E_LOOP, loop->ref, NULL, NULL), *last = add(p, loop->y, -1);
  const Ex *first = loop->reversed ? last : loop->x, *end = loop->reversed ? loop->x : last;
  own->body = when(p, ex(p, E_EQ, 0, t, first), step_of_order(p, S_TAKE_KEY, s->x));
  St *pass = when(p, ex(p, E_EQ, 0, t, right ? end : first), step_of_order(p, S_PASS_KEY, s->y));
  append(&own->body, body);
  append(&own->body, pass);
  return own;
}

// As steps of their own, passed on early on one of two ways.
static St *apart(Program *p, const St *s) {
  St *list = step_of_order(p, S_TAKE_KEY, s->x), *pass = step_of_order(p, S_PASS_KEY, s->y);
  u32 what = draw(p, 3);
  const Ex *c = draw_condition(p, NULL, 0);
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
  St *s = *at, *loop;
  switch (draw(p, 6)) {
    case 0:
    case 1:
      if (s->x) change_key(p, s);
      return;
    case 2: put_in_place(at, apart(p, s)); return;
    case 3: beside(p, s); return;
    default:
      loop = order_into_loop(p, s, false);
      if (loop) put_in_place(at, loop);
  }
}

bool slip_of_order(Program *p, St **list) {
  for (; *list; list = &(*list)->next) {
    if ((*list)->kind == S_ORDER) {
      one_slip_of_order(p, list);
      return true;
    }
    if (slip_of_order(p, &(*list)->body) || slip_of_order(p, &(*list)->other)) return true;
  }
  return false;
}
