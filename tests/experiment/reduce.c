// reduce.c - a program made as small as it can be while something stays true of it. In: a program
// and a test. Out: the program, edited in place.
//
// The idea: each statement in turn is dropped, or its body put in its place, each expression
// becomes one of its parts or a small number, each instance, stage and element goes; what does not
// pass the test is put back, until nothing goes any more.
#include "program.h"

#include <string.h>

typedef struct Reducer {
  Program *p;
  bool (*holds)(void *, const Program *);
  void *user;
  bool changed;
} Reducer;

static bool holds(Reducer *r) {
  bool ok = r->holds(r->user, r->p);
  r->changed |= ok;
  return ok;
}

static bool try_ex(Reducer *r, const Ex **at, const Ex *by) {
  const Ex *was = *at;
  if (!by) return false;
  *at = by;
  if (holds(r)) return true;
  *at = was;
  return false;
}

static int weight(const Ex *x) {
  if (!x) return 0;
  return (x->kind == E_INT ? x->n != 0 : 2) + weight(x->a) + weight(x->b);
}

static bool is_truth(const Ex *x) { return x->kind >= E_LT; }

// What may take the place of x: constants and its parts, the smallest first.
static u32 smaller(Reducer *r, const Ex *x, const Ex **to) {
  const Ex *all[] = {number(r->p, 0), number(r->p, 1), x->a, x->b};
  u32 n = 0;
  for (u32 i = 0; i < COUNT(all); i++)
    if (all[i] && is_truth(all[i]) == is_truth(x) && weight(all[i]) < weight(x)) to[n++] = all[i];
  return n;
}

static void reduce_ex(Reducer *r, const Ex **at) {
  const Ex *to[4];
  for (bool again = true; again;) {
    u32 n = smaller(r, *at, to);
    again = false;
    for (u32 i = 0; i < n && !again; i++) again = try_ex(r, at, to[i]);
  }
  for (u32 side = 0; side < 2; side++) {
    const Ex *x = *at, *part = side ? x->b : x->a;
    u32 n = part ? smaller(r, part, to) : 0;
    bool found = false;
    for (u32 i = 0; i < n && !found; i++)
      found = try_ex(r, at, ex(r->p, x->kind, x->n, side ? x->a : to[i], side ? to[i] : x->b));
  }
}

static bool try_list(Reducer *r, St **at, St *by) {
  St *was = *at;
  *at = by;
  if (holds(r)) return true;
  *at = was;
  return false;
}

static bool replace_by(Reducer *r, St **at, const St *body) {
  St *list = copy_list(r->p, body);
  append(&list, (*at)->next);
  return try_list(r, at, list);
}

static void reduce_list(Reducer *r, St **at) {
  while (*at) {
    St *s = *at;
    if (try_list(r, at, s->next) || (s->body && replace_by(r, at, s->body)) ||
        (s->other && replace_by(r, at, s->other)))
      continue;
    if (s->reversed) {
      s->reversed = false;
      if (!holds(r)) s->reversed = true;
    }
    if (s->x) reduce_ex(r, &s->x);
    if (s->y) reduce_ex(r, &s->y);
    reduce_list(r, &s->body);
    reduce_list(r, &s->other);
    at = &(*at)->next;
  }
}

static void reduce_int(Reducer *r, int *at, int to) {
  int was = *at;
  if (was == to) return;
  *at = to;
  if (!holds(r)) *at = was;
}

static void reduce_bool(Reducer *r, bool *at) {
  if (!*at) return;
  *at = false;
  if (!holds(r)) *at = true;
}

static void flatten(Reducer *r, Shape *s) {
  if (*s != SHAPE_FLAT) return;
  *s = SHAPE_ROWS;
  if (!holds(r)) *s = SHAPE_FLAT;
}

static void reduce_grid(Reducer *r) {
  Program *p = r->p;
  reduce_bool(r, &p->dynamic);
  for (int a = 0; a < p->axes; a++) {
    reduce_bool(r, &p->axis[a].reversed);
    reduce_int(r, &p->axis[a].by, 0);
    for (int n = 1; n < p->axis[a].extent; n++) reduce_int(r, &p->axis[a].extent, n);
  }
}

static void reduce_frame(Reducer *r) {
  Program *p = r->p;
  for (int i = 0; i < p->roles; i++) {
    reduce_bool(r, &p->role[i].dealt);
    if (!p->role[i].dealt) reduce_int(r, &p->role[i].instances, 1);
  }
  for (int i = 0; i < p->rings; i++) {
    reduce_bool(r, &p->ring[i].shared);
    if (!p->ring[i].shared) reduce_bool(r, &p->ring[i].copied);
  }
  for (int i = 0; i < p->rings; i++) reduce_int(r, &p->ring[i].stages, 1);
  for (int i = 0; i < p->dims; i++) reduce_int(r, &p->least[i], 0);
  reduce_bool(r, &p->ordered);
  bool shared = false;
  for (int i = 0; i < p->rings; i++) shared |= p->ring[i].shared;
  if (!shared) reduce_bool(r, &p->cluster);
  reduce_grid(r);
  if (!p->order && !p->cluster) reduce_bool(r, &p->tiles);
  reduce_bool(r, &p->scalars);
  reduce_int(r, &p->turns, 0);
  reduce_int(r, &p->elements, 0);
  for (int i = 0; i < p->tensors; i++) flatten(r, &p->tensor[i]);
}

void reduce(Program *p, bool (*test)(void *, const Program *), void *user) {
  Reducer r = {.p = p, .holds = test, .user = user, .changed = true};
  for (int times = 0; r.changed && times < 10; times++) {
    r.changed = false;
    reduce_frame(&r);
    for (int i = 0; i < p->roles; i++) reduce_list(&r, &p->role[i].body);
  }
}
