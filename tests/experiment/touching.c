// touching.c - accesses of tensors that roles write, in the common plan. In: a plan. Out:
// statements of it: a word through a ring about what was stored, accesses in a turn, or alone.
//
// The plan says nothing of whether they race: mostly they do not, as positions are drawn again that
// were drawn before, and what one role stores before it fills a stage another reads behind it.
#include "plan.h"

void draw_tensors(Program *p) {
  if (!chance(p, 40)) return;
  p->tensors = 1 + (int)draw(p, MAX_TENSORS);
  for (int i = 0; i < p->tensors; i++)
    p->tensor[i] = chance(p, 55) ? SHAPE_ROWS : (Shape)draw(p, SHAPE_CROSSED + 1);
}

void draw_order(Program *p) {
  p->order = chance(p, 60);
  if (p->order && chance(p, 85)) p->axis[p->order_axis].reversed = false;
  if (!p->order || chance(p, 35)) return;
  const Ex *n = ex(p, E_DIM, (int)draw(p, (u32)p->dims), NULL, NULL);
  p->keys = chance(p, 40) ? n : chance(p, 60) ? sum(p, n, number(p, 1)) : number(p, 3);
}

// ---- accesses

static u32 several(const Program *p) {
  u32 all = 0;
  for (int r = 0; r < p->roles; r++)
    all |= (u32)(p->role[r].instances > 1 && !p->role[r].dealt) << r;
  return all;
}

static St *touch(Plan *d, int tensor, Touch how, u32 who) {
  Program *p = d->p;
  St *s = st(p, S_TOUCH, tensor, NULL);
  s->touch = how;
  s->who = who;
  draw_place(d, tensor, s);
  if (who & several(p) && chance(p, how == TOUCH_STORE || how == TOUCH_PUT ? 80 : 40)) {
    const Ex *w = ex(p, E_INSTANCE, 0, NULL, NULL);
    if (s->y && chance(p, 60)) s->y = chance(p, 50) ? w : sum(p, s->y, times(p, w, 4));
    else s->x = chance(p, 70) ? sum(p, s->x, times(p, w, 10)) : sum(p, times(p, s->x, 2), w);
  }
  return s;
}

static Touch some_touch(Program *p) {
  u32 what = draw(p, 10);
  return what < 4 ? TOUCH_LOAD : what < 8 ? TOUCH_STORE : TOUCH_ADD;
}

static u32 members(const Plan *d, const bool (*of)[MAX_RINGS], int ring) {
  u32 all = 0;
  for (int r = 0; r < d->p->roles; r++) all |= (u32)of[r][ring] << r;
  return all;
}

static bool may_copy(const Program *p, int ring, int tensor) {
  return cells_in(p, ring) == 1 && !p->ring[ring].shared && p->tensor[tensor] != SHAPE_CROSSED;
}

// The stage is a copy of rows that roles write.
static void copy_in(Plan *d, St *s, u32 who) {
  s->with = (int)draw(d->p, (u32)d->p->tensors);
  if (d->p->tensor[s->with] == SHAPE_CROSSED) return;
  draw_place(d, s->with, s);
  if (chance(d->p, 50)) s->body = NULL;
  if (chance(d->p, 30)) s->next = touch(d, s->with, TOUCH_STORE, who);
}

static St *settle(Program *p, int tensor, u32 who, int keep) {
  St *s = st(p, S_SETTLE, tensor, NULL);
  s->who = who;
  s->reversed = chance(p, 25);
  s->with = keep;
  return s;
}

static St *copy_out(Plan *d, int tensor, int ring, u32 who, Touch how) {
  St *s = touch(d, tensor, how, who);
  s->with = ring;
  return s;
}

// Some wait for all but the newest one or two before they copy again to where they did.
static St *copies_out(Plan *d, int tensor, int ring, u32 who) {
  Program *p = d->p;
  Touch how = chance(p, 75) ? TOUCH_PUT : TOUCH_PUT_ADD, other = chance(p, 85) ? how : TOUCH_PUT;
  St *all = copy_out(d, tensor, ring, who, how);
  bool keep = chance(p, 20);
  if (chance(p, keep ? 60 : 15)) {
    if (keep) d->place[tensor][0] = NULL;
    append(&all, copy_out(d, tensor, ring, who, other));
  }
  if (keep) {
    St *again = all->next && chance(p, 40) ? copy_one(p, all->next) : copy_one(p, all);
    append(&all, settle(p, tensor, who, 1 + chance(p, 20)));
    append(&all, again);
  }
  append(&all, settle(p, tensor, who, 0));
  return all;
}

// Those who fill a ring store, those who drain it read, or the other way about.
static St *word_by(Plan *d, int tensor, int ring) {
  Program *p = d->p;
  St *s = st(p, S_MOVE, ring, NULL);
  Touch first = chance(p, 60) ? TOUCH_STORE : some_touch(p);
  Touch second = chance(p, 60) ? TOUCH_LOAD : some_touch(p);
  if (d->busy >> ring & 1) return s;
  u32 fill = members(d, (const bool(*)[MAX_RINGS])d->fills, ring);
  u32 drain = members(d, (const bool(*)[MAX_RINGS])d->drains, ring);
  s->body = cells_of(d, ring, true);
  append(&s->body, touch(d, tensor, first, fill));
  if (chance(p, 25)) append(&s->body, touch(d, tensor, some_touch(p), fill));
  bool copies = may_copy(p, ring, tensor);
  if (copies && p->ring[ring].copied && chance(p, 60)) copy_in(d, s, fill);
  if (copies && chance(p, 60)) s->other = copies_out(d, tensor, ring, drain);
  else if (chance(p, 85)) s->other = touch(d, tensor, second, drain);
  append(&s->other, cells_of(d, ring, false));
  return s;
}

static St *word(Plan *d, int tensor) { return word_by(d, tensor, free_ring(d)); }

static St *in_turn(Plan *d, int tensor) {
  Program *p = d->p;
  int turn = (int)draw(p, (u32)p->turns);
  u32 who = 0;
  for (int r = 0; r < p->roles; r++) who |= (u32)d->turns[r][turn] << r;
  St *s = st(p, S_TURN, turn, touch(d, tensor, some_touch(p), who));
  if (chance(p, 50)) append(&s->body, touch(d, tensor, some_touch(p), who));
  if (chance(p, 30)) append(&s, touch(d, tensor, some_touch(p), 1u << draw(p, (u32)p->roles)));
  return s;
}

// Who drains a ring tells others of what it does there by another ring, within the bracket or
// behind it.
static St *relay(Plan *d, int tensor) {
  Program *p = d->p;
  int from = free_ring(d), to = free_ring(d);
  const bool(*fills)[MAX_RINGS] = (const bool(*)[MAX_RINGS])d->fills;
  const bool(*drains)[MAX_RINGS] = (const bool(*)[MAX_RINGS])d->drains;
  u32 middle = members(d, drains, from) & members(d, fills, to);
  if (!middle || from == to || d->busy >> from & 1 || d->busy >> to & 1) return word(d, tensor);
  bool copies = may_copy(p, from, tensor);
  St *s = st(p, S_HOLD, from, NULL), *told = st(p, S_MOVE, to, NULL);
  s->body = copies ? copies_out(d, tensor, from, middle) : touch(d, tensor, TOUCH_STORE, middle);
  told->other = touch(d, tensor, TOUCH_LOAD, members(d, drains, to));
  append(chance(p, 60) ? &s->body : &s, told);
  return s;
}

// ---- turns over CTAs

static const Ex *add_one(Program *p, const Ex *x) { return sum(p, x, number(p, 1)); }

static int alone(Program *p) {
  int role = (int)draw(p, (u32)p->roles);
  for (int i = 0; i < p->roles && p->role[role].instances > 1; i++) role = (role + 1) % p->roles;
  return role;
}

static const Ex *key(Plan *d) {
  Program *p = d->p;
  if (!p->keys) return NULL;
  if (d->loops && chance(p, 80)) return ex(p, E_LOOP, d->loop[d->loops - 1], NULL, NULL);
  return chance(p, 85) ? number(p, chance(p, 80) ? 0 : 1) : draw_bound(p, d->loop, d->loops);
}

static St *touches_with_key(Plan *d, const St *order) {
  Program *p = d->p;
  St *all = NULL;
  for (u32 n = 1 + draw(p, 2); n > 0; n--) {
    int tensor = (int)draw(p, (u32)p->tensors);
    const Ex **last = d->place[tensor];
    if (chance(p, 70)) last[0] = order->x ? order->x : number(p, 1);
    if (p->tensor[tensor] == SHAPE_SQUARE && !last[1]) last[1] = number(p, 0);
    append(&all, touch(d, tensor, some_touch(p), chance(p, 90) ? order->who : 1));
  }
  return all;
}

// Some rounds of a ring that the CTAs of a cluster share: too many of them, if a CTA waits for the
// turn while another one waits for its release. NULL: there is no such ring.
static St *shared_rounds(Plan *d) {
  Program *p = d->p;
  int ring = 0;
  while (ring < p->rings && (!p->ring[ring].shared || d->busy >> ring & 1)) ring++;
  if (ring == p->rings) return NULL;
  St *s = st(p, S_FOR, p->vars++, st(p, S_MOVE, ring, NULL));
  s->x = number(p, 0);
  s->y = chance(p, 50) ? number(p, 1 + (int)draw(p, 3)) : draw_bound(p, d->loop, d->loops);
  return s;
}

static St *with_key(Plan *d) {
  Program *p = d->p;
  int role = alone(p);
  St *s = st(p, S_ORDER, 0, NULL);
  s->who = 1u << role;
  s->x = s->y = key(d);
  if (chance(p, 45)) {
    s->body = st(p, S_FOR, p->vars++, NULL);
    s->body->x = number(p, 0);
    s->body->y = draw_bound(p, d->loop, d->loops);
    s->body->body = touches_with_key(d, s);
    return s;
  }
  s->body = touches_with_key(d, s);
  if (p->cluster && chance(p, 50)) append(&s->body, shared_rounds(d));
  if (chance(p, 20)) append(&s->body, plan_list(d, 1));
  return s;
}

// All keys, or as many as a tile has, or any number.
static const Ex *last_key(Plan *d) {
  Program *p = d->p;
  const Ex *x = ex(p, E_TILE, p->order_axis, NULL, NULL);
  switch (draw(p, 8)) {
    case 0: return ex(p, E_SUB, 0, p->keys, x);
    case 1: return ex(p, E_MIN, 0, p->keys, add_one(p, x));
    case 2: return ex(p, E_MIN, 0, p->keys, draw_bound(p, d->loop, d->loops));
    default: return p->keys;
  }
}

// In a loop over all keys, or where the plan is.
St *plan_order(Plan *d) {
  Program *p = d->p;
  d->ordered = true;
  if (!p->keys || d->loops || chance(p, 25)) return with_key(d);
  St *s = st(p, S_FOR, p->vars++, NULL);
  s->x = number(p, 0);
  s->y = last_key(d);
  s->reversed = chance(p, 15);
  d->loop[d->loops++] = s->ref;
  if (chance(p, 30)) s->body = plan_list(d, 1);
  append(&s->body, with_key(d));
  if (chance(p, 20)) append(&s->body, plan_list(d, 1));
  d->loops--;
  return s;
}

// A word in each round of a loop of its own, where copies out may be waited for later (slips.c).
static St *stream(Plan *d, int tensor) {
  Program *p = d->p;
  St *s = st(p, S_FOR, p->vars++, NULL);
  s->x = number(p, chance(p, 80) ? 0 : 1);
  s->y = draw_bound(p, d->loop, d->loops);
  s->reversed = chance(p, 15);
  d->loop[d->loops++] = s->ref;
  int ring = free_ring(d);
  for (int i = 0; i < p->rings && !(may_copy(p, ring, tensor) && p->ring[ring].stages > 1); i++)
    ring = (ring + 1) % p->rings;
  s->body = word_by(d, tensor, ring);
  if (may_copy(p, ring, tensor) && s->body->body && chance(p, 80)) {
    u32 drain = members(d, (const bool(*)[MAX_RINGS])d->drains, ring);
    s->body->other = touch(d, tensor, TOUCH_PUT, drain);
    s->body->other->with = ring;
    s->body->other->next = settle(p, tensor, drain, 0);
  }
  d->loops--;
  return s;
}

St *plan_touching(Plan *d) {
  Program *p = d->p;
  int tensor = (int)draw(p, (u32)p->tensors);
  u32 what = draw(p, 12);
  if (p->order && chance(p, d->ordered ? 10 : 60)) return plan_order(d);
  if (what < 2) return relay(d, tensor);
  if (what < 6) return word(d, tensor);
  if (what < 8 && p->turns) return in_turn(d, tensor);
  if (what < 10 && d->loops < 2 && p->vars < MAX_VARS / 2) return stream(d, tensor);
  return touch(d, tensor, some_touch(p), 1u << draw(p, (u32)p->roles));
}
