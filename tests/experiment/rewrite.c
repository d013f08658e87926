// rewrite.c - edits of a role. In: a program. Out: the same program, edited in place.
//
// Rewrites say the same sequence of operations in other words: a loop with its first or last round
// taken out, cut in two, unrolled, turned round, shifted; conditions said twice or turned about.
// Mutations are the slips of people: a step lost, doubled, moved, a bound off by one, a stage less,
// another condition.
#include "edit.h"

enum { MAX_PLACES = 200 };

typedef struct Places {
  Place place[MAX_PLACES];
  u32 n;
} Places;

static void find_places(Places *all, St **list, const Place *outer) {
  for (; *list; list = &(*list)->next) {
    if (all->n == MAX_PLACES) return;
    Place here = *outer, inside = *outer;
    here.at = list;
    all->place[all->n++] = here;
    if ((*list)->kind == S_FOR && inside.loops < 8) inside.loop[inside.loops++] = (*list)->ref;
    find_places(all, &(*list)->body, &inside);
    find_places(all, &(*list)->other, outer);
  }
}

static Places *places(Program *p, int role) {
  Places *all = NEW(p->sc, Places);
  find_places(all, &p->role[role].body, &(Place){0});
  return all;
}

// ---- the same in other words

const Ex *add(Program *p, const Ex *x, int c) {
  return c ? ex(p, c > 0 ? E_ADD : E_SUB, 0, x, number(p, c > 0 ? c : -c)) : x;
}

static const Ex *loop_value(Program *p, const St *s) { return ex(p, E_LOOP, s->ref, NULL, NULL); }

static St *one_round(Program *p, const St *s, const Ex *of) {
  St *body = copy_list(p, s->body);
  substitute(p, body, s->ref, of);
  return body;
}

static St *loop_like(Program *p, const St *s, const Ex *x, const Ex *y) {
  St *l = st(p, S_FOR, s->ref, copy_list(p, s->body));
  l->reversed = s->reversed;
  l->x = x;
  l->y = y;
  return l;
}

St *when(Program *p, const Ex *c, St *body) {
  St *s = st(p, S_IF, 0, body);
  s->x = c;
  return s;
}

// All of these return what takes the statement's place; NULL: it does not apply.

static St *peel(Program *p, const St *s) {
  bool low = chance(p, 60), guard = chance(p, 60);
  const Ex *next = low ? add(p, s->x, 1) : s->x, *end = low ? s->y : add(p, s->y, -1);
  const Ex *first = low ? s->x : add(p, s->y, -1), *some = ex(p, E_LT, 0, s->x, s->y);
  St *rest = loop_like(p, s, next, end), *round = one_round(p, s, first), *list = NULL;
  bool before = low != s->reversed;
  if (!guard) round = when(p, some, round);
  append(&list, before ? round : rest);
  append(&list, before ? rest : round);
  return guard ? when(p, some, list) : list;
}

static St *cut(Program *p, const St *s, const Place *at) {
  const Ex *e = draw_bound(p, at->loop, at->loops);
  St *low = loop_like(p, s, s->x, ex(p, E_MIN, 0, e, s->y)), *list = NULL;
  St *high = loop_like(p, s, ex(p, E_MAX, 0, e, s->x), s->y);
  append(&list, s->reversed ? high : low);
  append(&list, s->reversed ? low : high);
  return list;
}

static St *unroll(Program *p, const St *s) {
  if (s->reversed || s->x->kind != E_INT || s->x->n) return NULL;
  const Ex *zero = number(p, 0), *t = loop_value(p, s), *twice = ex(p, E_MUL, 2, t, NULL);
  St *pairs = loop_like(p, s, zero, ex(p, E_DIV, 2, s->y, NULL));
  pairs->body = one_round(p, s, twice);
  append(&pairs->body, one_round(p, s, add(p, twice, 1)));
  const Ex *odd = ex(p, E_EQ, 0, ex(p, E_MOD, 2, s->y, NULL), number(p, 1));
  const Ex *some = ex(p, E_AND, 0, ex(p, E_LT, 0, zero, s->y), odd);
  pairs->next = when(p, some, one_round(p, s, add(p, s->y, -1)));
  return pairs;
}

static St *shift(Program *p, const St *s) {
  int by = 1 + (int)draw(p, 2);
  St *l = loop_like(p, s, add(p, s->x, by), add(p, s->y, by));
  substitute(p, l->body, s->ref, add(p, loop_value(p, s), -by));
  return l;
}

static St *turn_round(Program *p, const St *s) {
  St *l = loop_like(p, s, s->x, s->y);
  l->reversed = !s->reversed;
  const Ex *last = add(p, ex(p, E_ADD, 0, s->x, s->y), -1);
  substitute(p, l->body, s->ref, ex(p, E_SUB, 0, last, loop_value(p, s)));
  return l;
}

static St *only_if_some(Program *p, const St *s) {
  return when(p, ex(p, E_LT, 0, s->x, s->y), loop_like(p, s, s->x, s->y));
}

static St *rewritten_loop(Program *p, const St *s, const Place *at) {
  switch (draw(p, 8)) {
    case 0:
    case 1: return peel(p, s);
    case 2:
    case 3: return cut(p, s, at);
    case 4: return unroll(p, s);
    case 5: return shift(p, s);
    case 6: return turn_round(p, s);
    default: return only_if_some(p, s);
  }
}

static const Ex *opposite(Program *p, const Ex *c) {
  if (c->kind == E_NOT) return c->a;
  if (c->kind == E_EQ || c->kind == E_NE)
    return ex(p, c->kind == E_EQ ? E_NE : E_EQ, 0, c->a, c->b);
  if (c->kind == E_LT || c->kind == E_LE)
    return ex(p, c->kind == E_LT ? E_LE : E_LT, 0, c->b, c->a);
  return ex(p, E_NOT, 0, c, NULL);
}

static St *rewritten_if(Program *p, const St *s) {
  St *first = when(p, s->x, copy_list(p, s->body)), *rest = NULL;
  if (s->other) {
    if (chance(p, 50)) {
      first->next = when(p, opposite(p, s->x), copy_list(p, s->other));
      return first;
    }
    St *about = when(p, opposite(p, s->x), copy_list(p, s->other));
    about->other = copy_list(p, s->body);
    return s->body ? about : first;
  }
  if (!s->body || !s->body->next) return NULL;
  rest = first->body->next;
  first->body->next = NULL;
  first->next = when(p, s->x, rest);
  return first;
}

void put_in_place(St **at, St *list) {
  St *next = (*at)->next;
  *at = list;
  append(at, next);
}

void rewrite(Program *p, int role) {
  Places *all = places(p, role);
  if (size(p->role[role].body) > 60) return;
  for (u32 tries = 0; tries < 8 && all->n; tries++) {
    const Place *at = &all->place[draw(p, all->n)];
    const St *s = *at->at;
    St *list = s->kind == S_FOR && p->order && chance(p, 40) ? order_lagged(p, s, true) : NULL;
    if (!list && s->kind == S_FOR && chance(p, 60)) list = settle_lagged(p, s);
    if (!list)
      list = s->kind == S_FOR     ? rewritten_loop(p, s, at)
             : s->kind == S_IF    ? rewritten_if(p, s)
             : s->kind == S_ORDER ? order_into_loop(p, s, true)
                                  : NULL;
    if (!list) continue;
    put_in_place(at->at, list);
    return;
  }
}

// ---- mistakes

static bool is_bracket(const St *s) { return s->kind <= S_ORDER; }

// The next statement is drawn into the bracket, or what is inside comes out.
static void widen(Program *p, St **at) {
  St *s = *at, *next = s->next;
  if (next && (!s->body || chance(p, 60))) {
    s->next = next->next;
    next->next = NULL;
    append(&s->body, next);
  } else if (s->body) {
    St *body = s->body;
    s->body = NULL;
    append(&body, s->next);
    s->next = body;
  }
}

// for { wait; body; release } becomes wait; for { wait; body; release }; release, a round less.
static bool lag(Program *p, St **at) {
  const St *s = *at;
  if (s->kind != S_FOR || s->reversed || !s->body || s->body->kind != S_DRAIN) return false;
  int ring = s->body->ref;
  const Ex *first = s->x, *some = ex(p, E_LT, 0, s->x, s->y);
  St *rest = loop_like(p, s, add(p, s->x, 1), s->y), *body = rest->body, *inside = body->body;
  St *after = body->next, *list = st(p, S_WAIT, ring, NULL);
  rest->body = st(p, S_WAIT, ring, NULL);
  append(&rest->body, inside);
  append(&rest->body, st(p, S_RELEASE, ring, NULL));
  append(&rest->body, after);
  St *round = copy_list(p, inside);
  append(&round, copy_list(p, after));
  substitute(p, round, s->ref, first);
  append(&list, round);
  append(&list, rest);
  append(&list, st(p, S_RELEASE, ring, NULL));
  put_in_place(at, when(p, some, list));
  return true;
}

static void change_loop(Program *p, const Place *at) {
  St *s = *at->at;
  int off = chance(p, 50) ? 1 : -1;
  switch (draw(p, 6)) {
    case 0: s->x = add(p, s->x, off); return;
    case 1: s->y = draw_bound(p, at->loop, at->loops); return;
    case 2: s->reversed = !s->reversed; return;
    case 3:
      if (lag(p, at->at)) return;
      break;
    default: break;
  }
  s->y = add(p, s->y, off);
}

static void change_if(Program *p, const Place *at) {
  St *s = *at->at;
  switch (draw(p, 4)) {
    case 0: s->x = opposite(p, s->x); return;
    case 1: put_in_place(at->at, s->body); return;
    case 2:
      if (s->x->kind == E_LT || s->x->kind == E_LE) {
        s->x = ex(p, s->x->kind == E_LT ? E_LE : E_LT, 0, s->x->a, s->x->b);
        return;
      }
    // fall through
    default: s->x = draw_condition(p, at->loop, at->loops); return;
  }
}

static void twice(Program *p, St *s) {
  St *again = NEW(p->sc, St), *next = s->next;
  s->next = NULL;
  again = copy_list(p, s);
  again->next = next;
  s->next = again;
}

static void swap(St **at) {
  St *a = *at, *b = a->next;
  if (!b) return;
  a->next = b->next;
  b->next = a;
  *at = b;
}

static void guard(Program *p, const Place *at) {
  St *s = *at->at, *next = s->next;
  s->next = NULL;
  St *w = when(p, draw_condition(p, at->loop, at->loops), s);
  w->next = next;
  *at->at = w;
}

static void change_step(Program *p, const Place *at) {
  St *s = *at->at;
  switch (draw(p, 10)) {
    case 0: *at->at = s->next; return;
    case 1: twice(p, s); return;
    case 2: guard(p, at); return;
    case 3:
    case 4: swap(at->at); return;
    case 5:
      if (is_bracket(s) && s->kind < S_TURN) s->ref = (int)draw(p, (u32)p->rings);
      return;
    default:
      if (is_bracket(s)) widen(p, at->at);
      else swap(at->at);
  }
}

void mutate(Program *p) {
  int role = (int)draw(p, (u32)p->roles), ring = (int)draw(p, (u32)p->rings);
  u32 what = draw(p, 10);
  for (int r = 0; r < p->roles && p->order && chance(p, 60); r++)
    if (slip_of_order(p, &p->role[r].body)) return;
  for (int r = 0; r < p->roles && p->square && chance(p, 60); r++)
    if (turn_square(p, p->role[r].body)) return;
  for (int r = 0; r < p->roles && p->axes > 1 && chance(p, 25); r++)
    if (change_axis(p, p->role[r].body)) return;
  if (what == 0 && p->ring[ring].stages > 1) {
    p->ring[ring].stages--;
    return;
  }
  Places *all = places(p, role);
  if (!all->n) return;
  const Place *at = &all->place[draw(p, all->n)];
  const St *s = *at->at;
  if (s->kind == S_TOUCH && what < 7) change_touch(p, *at->at);
  else if (s->kind == S_CELL && what < 7) change_cell(p, *at->at, at->loop, at->loops);
  else if (s->kind == S_SETTLE && what < 5) change_settle(p, *at->at);
  else if (s->kind == S_ORDER && s->x && what < 4) change_key(p, *at->at);
  else if (what < 4) change_step(p, at);
  else if (s->kind == S_FOR) change_loop(p, at);
  else if (s->kind == S_IF) change_if(p, at);
  else change_step(p, at);
}
