// crowd.c - runs all CTAs of a small grid together, each in its tile, with the turns that pass from
// one to the next. In: a kernel with turns over CTAs. Out: how far all of them can go on.
//
// The idea: each CTA (or cluster) is a run of its own that begins with empty rings and never waits
// for a multiprocessor. A launch has every wait that this run has, so a deadlock found here is one
// of a launch as well. A turn over CTAs is a counter for each key and each place on the other axes.
// To take the turn is to wait until the counter is the CTA's own place along the axis.
#include "compiler/verify/crowd.h"

#include <string.h>

enum { UNIT_STEPS = 4000, ALL_STEPS = 1500000 };

// ---- turns

const Step *sc_crowd_step(const Unit *u, u32 process) {
  return &u->crowd->p->process.at[process].script->step.at[u->run.at[process]];
}

static Concrete *concrete_of(const Unit *u, u32 process) {
  Concrete *c = u->run.evaluator;
  c->now = c->loop + (size_t)process * c->p->k->loop.n;
  c->rank = c->p->process.at[process].rank;
  return c;
}

i64 sc_crowd_key(const Unit *u, u32 process, const Step *s) {
  const Protocol *p = u->crowd->p;
  i64 key = 0;
  Xid x = p->k->role.at[p->process.at[process].role].code.at[s->pc].arg[1];
  if (!sc_concrete_value(concrete_of(u, process), x, &key)) u->crowd->unknown = true;
  return key;
}

i64 sc_crowd_index(const Unit *u, u32 process, u32 axis) {
  const Axis *x = &u->crowd->p->k->axis.at[axis];
  return u->s.axis[axis] + (x->cluster > 1 ? u->crowd->p->process.at[process].rank : 0);
}

// The place of a CTA on all axes but one.
static u32 place_of(const Unit *u, u32 process, u32 axis) {
  i64 place = 0;
  for (u32 i = 0; i < u->crowd->p->k->axis.n; i++)
    if (i != axis) place = place * u->crowd->ctas[i] + sc_crowd_index(u, process, i);
  return (u32)place;
}

i64 sc_crowd_keys(const Unit *u, u32 turn) {
  Concrete c = {.p = u->crowd->p, .s = &u->s};
  const Turn *t = &u->crowd->p->k->turn.at[turn];
  i64 keys = 1;
  if (t->keys && !sc_concrete_value(&c, t->keys, &keys)) u->crowd->unknown = true;
  if (keys > CROWD_KEYS) u->crowd->unknown = true;
  return keys;
}

u32 sc_crowd_counter(const Unit *u, u32 process, const Step *s) {
  const Turn *t = &u->crowd->p->k->turn.at[s->ref];
  i64 key = t->keys ? sc_crowd_key(u, process, s) : 0;
  if (key < 0 || key >= sc_crowd_keys(u, s->ref) || u->crowd->unknown) return SC_NONE;
  return (s->ref * CROWD_PLACES + place_of(u, process, t->axis)) * CROWD_KEYS + (u32)key;
}

static bool may_take(const Run *r, u32 process, const Step *s) {
  const Unit *u = (const Unit *)r;
  u32 counter = sc_crowd_counter(u, process, s);
  i64 index = sc_crowd_index(u, process, u->crowd->p->k->turn.at[s->ref].axis);
  return counter != SC_NONE && u->crowd->counter[counter] == index;
}

static void turned(Run *r, u32 process, const Step *s) {
  const Unit *u = (const Unit *)r;
  Event e = {u, process, s->pc, sc_crowd_counter(u, process, s), s->kind == STEP_PASS};
  PUSH(u->crowd->v->sc, &u->crowd->event, e);
  if (e.pass && e.counter != SC_NONE) u->crowd->counter[e.counter]++;
}

// ---- CTAs

static void add_unit(Crowd *c) {
  Unit *u = NEW(c->v->sc, Unit);
  u->crowd = c;
  sc_concrete_begin(&u->c, &u->run, c->v->sc, c->p, &u->s);
  u->run.may_take = may_take;
  u->run.turned = turned;
  PUSH(c->v->sc, &c->unit, u);
}

// False: there are too many, or it is not known how many.
static bool count_units(Crowd *c) {
  const Kernel *k = c->p->k;
  Concrete concrete = {.p = c->p, .s = c->s};
  i64 units = 1, ctas = 1;
  for (u32 i = 0; i < k->axis.n; i++) {
    if (!sc_concrete_ctas(&concrete, i, CROWD_PLACES, &c->ctas[i]) || c->ctas[i] < 1) return false;
    units *= c->ctas[i] / k->axis.at[i].cluster;
    ctas *= c->ctas[i];
    if (units > CROWD_UNITS || ctas > CROWD_PLACES) return false;
  }
  c->units = (u32)units;
  return true;
}

static void begin(Crowd *c) {
  const Kernel *k = c->p->k;
  while (c->unit.n < c->units) add_unit(c);
  for (u32 n = 0; n < c->units; n++) {
    Unit *u = c->unit.at[n];
    i64 left = n;
    sc_run_again(&u->run);
    u->run.most = UNIT_STEPS;
    u->s = *c->s;
    for (u32 i = 0; i < k->axis.n; i++) {
      i64 by = k->axis.at[i].cluster, units = c->ctas[i] / by;
      u->s.axis[i] = left % units * by;
      left /= units;
    }
  }
  memset(c->counter, 0, sizeof *c->counter * k->turn.n * CROWD_PLACES * CROWD_KEYS);
  c->event.n = 0;
  c->unknown = false;
}

// All go on as far as they can. False: it is not known how far.
static bool go_on(Crowd *c) {
  bool moved = true;
  while (moved) {
    moved = false;
    for (u32 i = 0; i < c->units; i++) {
      Run *r = &c->unit.at[i]->run;
      u64 before = r->steps;
      Outcome o = sc_run_on(r);
      c->spent += r->steps - before;
      moved |= r->steps > before;
      if ((o != OUT_DONE && o != OUT_STUCK) || c->unknown) return false;
    }
  }
  return true;
}

bool sc_crowd_run(Crowd *c) {
  if (c->spent > ALL_STEPS || !count_units(c)) return false;
  begin(c);
  return go_on(c);
}

Crowd *sc_crowd(Verify *v, const Protocol *p, Sample *s) {
  Crowd *c = NEW(v->sc, Crowd);
  *c = (Crowd){.v = v, .p = p, .s = s};
  c->counter = NEWS(v->sc, u32, v->k->turn.n * CROWD_PLACES * CROWD_KEYS);
  return c;
}
