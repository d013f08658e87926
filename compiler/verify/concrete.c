// concrete.c - a run of the protocol with everything known. In: dimensions, scalars, a tile, a rule
// for the elements of tensors. Out: the answers to conditions and loops, by plain evaluation.
#include "compiler/verify/protocol.h"

enum { VALUE_STEPS = 20000 };  // of a question

static u32 scrambled(u32 buf, i64 at) {
  u32 h = (u32)at * 2654435761u ^ buf * 40503u;
  return (h ^ h >> 13) * 2246822519u >> 8;
}

static i64 at_least_0(i64 x) { return x < 0 ? 0 : x; }

static i64 by_rule(u32 rule, u32 buf, const i64 *at, u32 rank) {
  i64 last = rank ? at[rank - 1] : 0, place = 0, sum = 0;
  for (u32 d = 0; d < rank; d++) place = (place * 31 + at[d]) & 0xffff;
  switch (rule) {
    case 0: return 0;
    case 1: return last;
    case 2: return 64 * last;
    case 3:
      for (i64 i = 0; i < last && i < 1000; i++) sum += scrambled(0, i) % 201;
      return sum;
    case 4: return scrambled(buf, place) % 8;
    case 5: return -1;
    case 7: return 600;
    default: return (i64)(scrambled(buf, place) % 8) - 4;
  }
}

// As a part of the question that is being answered.
static bool value(Concrete *c, Xid x, i64 *out) {
  const Numbers n = sc_concrete_numbers(c);
  return sc_number(&n, x, out);
}

// An element of a tensor, by the sample's rule.
static bool by_sample(Concrete *c, u32 buf, const i64 *at, i64 *out) {
  const Buf *b = &c->p->k->buf.at[buf];
  u32 rule = b->rising && c->s->data >= RISING_RULES ? RISING_RULES - 1 : c->s->data;
  bool names = c->s->list && c->s->list[buf] && c->s->negative != buf;
  i64 least, end;
  *out = by_rule(rule, buf, at, b->rank);
  if (!b->end) return *out = names ? at_least_0(*out) : *out, true;
  if (!value(c, b->least, &least) || !value(c, b->end, &end)) return false;
  if (*out >= end) *out = end - 1;
  if (*out < least) *out = least;
  return least < end;
}

// Is this a CTA past the grid's end, which fills up the last cluster?
static bool is_surplus(Concrete *c) {
  for (u32 i = 0; i < c->p->k->axis.n; i++) {
    const Axis *x = &c->p->k->axis.at[i];
    i64 n;
    if (x->cluster > 1 && value(c, x->extent, &n) && c->s->axis[i] + c->rank >= n) return true;
  }
  return false;
}

static bool element(Concrete *c, const Expr *e, i64 *out) {
  const View *v = &c->p->k->view.at[e->ref];
  const Buf *b = &c->p->k->buf.at[v->buf];
  i64 at[SC_MAX_RANK] = {0};
  if (b->space != SP_TENSOR || b->elem != EL_I32) return false;
  bool inside = true;  // (a run that reads beyond a tensor ends there, in a tile of the grid)
  for (u32 d = 0; d < v->rank; d++) {
    i64 extent;
    if (v->at[d].base && !value(c, v->at[d].base, &at[d])) return false;
    if (!value(c, b->dim[d], &extent)) return false;
    inside &= at[d] >= 0 && at[d] < extent;
  }
  if (inside) return by_sample(c, v->buf, at, out);
  return *out = 0, is_surplus(c);
}

static bool leaf(void *concrete, const Expr *e, i64 *out) {
  Concrete *c = concrete;
  const Axis *x = e->op == X_AXIS ? &c->p->k->axis.at[e->ref] : NULL;
  switch (e->op) {
    case X_INT:
    case X_BOOL: *out = e->num.i; return true;
    case X_DIM: *out = c->s->dim[e->ref]; return true;
    case X_ARG: *out = c->s->arg[e->ref]; return true;
    case X_AXIS: *out = c->s->axis[e->ref] + (x->cluster > 1 ? c->rank : 0); return true;
    case X_LOOP: *out = c->now ? c->now[e->ref] : 0; return c->now != NULL;
    case X_LOAD: return element(c, e, out);
    default: return false;
  }
}

Numbers sc_concrete_numbers(Concrete *c) { return (Numbers){c->p->k, leaf, c, NULL, &c->effort}; }

bool sc_concrete_element(Concrete *c, u32 buf, const i64 *at, i64 *out) {
  c->effort.steps = VALUE_STEPS;
  return by_sample(c, buf, at, out);
}

bool sc_concrete_value(Concrete *c, Xid x, i64 *out) {
  c->effort.steps = VALUE_STEPS;
  bool known = value(c, x, out);
  c->spent += VALUE_STEPS - c->effort.steps;
  return known;
}

bool sc_concrete_ctas(Concrete *c, u32 axis, i64 most, i64 *n) {
  const Axis *x = &c->p->k->axis.at[axis];
  if (!sc_concrete_value(c, x->extent, n) || *n > most) return false;
  *n = (*n + x->cluster - 1) / x->cluster * x->cluster;
  return true;
}

static Answer ask(Run *r, u32 process, const Step *s) {
  Concrete *c = r->evaluator;
  i64 x = 0, y = 0, *it;
  c->now = c->loop + (size_t)process * c->p->k->loop.n;
  c->rank = c->p->process.at[process].rank;
  it = &c->now[s->ref];
  if (s->kind == STEP_NEXT) {
    *it += s->count == COUNT_BACK ? -1 : 1;
    return NO;
  }
  if (!sc_concrete_value(c, s->x, &x) || !sc_concrete_value(c, s->y, &y)) return UNKNOWN;
  if (s->kind == STEP_IF) return x ? YES : NO;
  if (s->kind == STEP_ENTER) *it = s->count == COUNT_BACK ? y - 1 : x;
  if (s->kind == STEP_ENTER) return YES;
  return (s->count == COUNT_BACK ? *it >= x : *it < y) ? YES : NO;
}

void sc_concrete_begin(Concrete *c, Run *r, Sc *sc, const Protocol *p, const Sample *s) {
  *c = (Concrete){.p = p, .s = s};
  c->loop = NEWS(sc, i64, p->process.n * p->k->loop.n + 1);
  sc_run_begin(r, sc, p);
  r->ask = ask;
  r->evaluator = c;
}
