// points.c - the points of a space: a walk through its steps, which gives each param a value and
// looks at each `require` as soon as it can. In: a ParamSpace, and the choices of the point before.
// Out: the next point that meets all requirements. Where one does not hold, all points that share
// the params before it are passed by at once. What fails here is no report: it makes a param
// unknown, and `lower` will say so of the point. Called by space.c; calls params.c and def.c.
#include "compiler/lower/space.h"

typedef struct Walk {
  Sc *sc;
  const ParamSpace *s;
  Low **low;    // by kernel
  Name **name;  // by step: a param's, once it is declared there
  bool *there;  // by step: a def that is declared
  bool usual;   // nothing varies
  // by param
  Values *domain;
  u32 *choice;  // of its domain
  Value *value;
  bool *known;
} Walk;

static Walk *open_walk(Sc *sc, const ParamSpace *s) {
  Walk *w = NEW(sc, Walk);
  *w = (Walk){.sc = sc,
              .s = s,
              .low = NEWS(sc, Low *, s->kernel.n + 1),
              .name = NEWS(sc, Name *, s->step.n + 1),
              .there = NEWS(sc, bool, s->step.n + 1),
              .domain = NEWS(sc, Values, s->param.n + 1),
              .choice = NEWS(sc, u32, s->param.n + 1),
              .value = NEWS(sc, Value, s->param.n + 1),
              .known = NEWS(sc, bool, s->param.n + 1)};
  for (u32 k = 0; k < s->kernel.n; k++) {
    w->low[k] = NEW(sc, Low);
    low_open(w->low[k], sc, s->ast, s->kernel.at[k]);
  }
  return w;
}

// ---- values

// A value that the text gives, without a report.
static bool quiet_value(Low *l, const Node *n, Value *v) {
  Reports before = sc_said(l->sc);
  bool ok = low_value(l, n, v);
  return !sc_unsay(l->sc, before) && ok;
}

// The caller's value, the case's or the default.
static bool usual_value(Walk *w, Low *l, const Node *def, Value *v) {
  Given g = {.choice = &w->s->choice, .kase = w->s->kase};
  if (!quiet_value(l, def->a, v)) return false;
  Reports before = sc_said(l->sc);
  low_chosen(l, &g, def, v);
  return !sc_unsay(l->sc, before);
}

// The domain, each value once. Its kind is the default's; where that fails, its first value's.
static bool find_domain(Low *l, const Node *def, Values *out) {
  Value v;
  Values all = {0};
  const Node *first = def->b->kind == ND_RANGE ? def->b->a : def->b;
  out->n = 0;
  if (!quiet_value(l, def->a, &v) && !quiet_value(l, first, &v)) return false;
  if (!low_domain(l, def, v.kind, &all)) return false;
  for (u32 i = 0; i < all.n; i++) {
    bool have = false;
    for (u32 j = 0; j < out->n; j++) have |= sc_same_value(out->at[j], all.at[i]);
    if (!have) PUSH(l->sc, out, all.at[i]);
  }
  return true;
}

static void vary(Walk *w, Low *l, u32 param, const Node *def) {
  const SpaceParam *p = &w->s->param.at[param];
  Values *domain = &w->domain[param];
  if (p->steady && p->domain.n) {
    *domain = p->domain;
  } else {
    Reports before = sc_said(w->sc);
    find_domain(l, def, domain);
    if (sc_unsay(w->sc, before)) domain->n = 0;
  }
  w->known[param] = w->choice[param] < domain->n;
  if (w->known[param]) w->value[param] = domain->at[w->choice[param]];
}

static void set_param(Walk *w, u32 at) {
  const SpaceStep *step = &w->s->step.at[at];
  const SpaceParam *p = &w->s->param.at[step->param];
  Low *l = w->low[step->kernel];
  u32 i = step->param;
  if (!w->name[at]) w->name[at] = low_declare(l, p->name, step->node->name_span, NM_BAD);
  if (!step->again && p->varies && !w->usual) vary(w, l, i, step->node);
  else if (!step->again) w->known[i] = usual_value(w, l, step->node, &w->value[i]);
  if (w->known[i]) low_bind_param(l, w->name[at], w->value[i]);
  else w->name[at]->kind = NM_BAD;
}

static bool met(Walk *w, const SpaceStep *step) {
  Low *l = w->low[step->kernel];
  bool holds = true;
  Reports before = sc_said(l->sc);
  Xid c = low_bool(l, step->node->a);
  bool failed = sc_unsay(l->sc, before);
  return failed || !c || !x_const_bool(l->k, c, &holds) || holds;
}

// ---- steps

static bool is_choice(const Walk *w, u32 at) {
  const SpaceStep *step = &w->s->step.at[at];
  return step->node->kind == ND_PARAMDEF && !step->again && w->s->param.at[step->param].varies;
}

// Takes a step. False: no point goes on from here.
static bool take(Walk *w, u32 at) {
  const SpaceStep *step = &w->s->step.at[at];
  Low *l = w->low[step->kernel];
  l->exprs = 0;  // the limit is for each step
  if (step->node->kind == ND_REQUIRE) return met(w, step);
  if (step->node->kind == ND_PARAMDEF) {
    set_param(w, at);
    return !is_choice(w, at) || w->usual || w->known[step->param];
  }
  if (!w->there[at]) low_def(l, step->node, l->base, l->top);
  w->there[at] = true;
  return true;
}

// How many points the domains have from a step on, whatever is required of them.
static u64 below(Walk *w, u32 at) {
  const ParamSpace *s = w->s;
  u64 all = 1;
  bool steady = true;
  for (u32 i = at; i < s->step.n; i++) {
    if (!is_choice(w, i)) continue;
    const SpaceParam *p = &s->param.at[s->step.at[i].param];
    steady &= p->steady;
    if (__builtin_mul_overflow(all, p->domain.n, &all)) sc_unwind(w->sc, SCHEDC_ELIMIT);
  }
  if (steady) return all;
  while (at < s->step.n && !is_choice(w, at)) {
    if (s->step.at[at].node->kind != ND_REQUIRE) take(w, at);
    at++;
  }
  u32 param = s->step.at[at].param;
  all = 0;
  for (w->choice[param] = 0; take(w, at); w->choice[param]++) {
    if (__builtin_add_overflow(all, below(w, at + 1), &all)) sc_unwind(w->sc, SCHEDC_ELIMIT);
  }
  w->choice[param] = 0;
  return all;
}

// To the next value of the last param before a step that has one; those behind it begin again. Out:
// where to go on, or SC_NONE.
static u32 advance(Walk *w, u32 before) {
  while (before-- > 0) {
    if (!is_choice(w, before)) continue;
    u32 param = w->s->step.at[before].param;
    if (++w->choice[param] < w->domain[param].n) return before;
    w->choice[param] = 0;
  }
  return SC_NONE;
}

bool sc_space_next(Sc *sc, const ParamSpace *s, SpaceCursor *c, Value *value) {
  Walk *w = open_walk(sc, s);
  u32 at = 0;
  for (u32 i = 0; i < s->varied.n; i++) w->choice[s->varied.at[i]] = c->choice[i];
  if (c->begun) {
    while (at < s->step.n && take(w, at)) at++;
    c->index++;
    at = advance(w, at);
  }
  c->begun = true;
  while (at < s->step.n) {
    while (at < s->step.n && take(w, at)) at++;
    if (at == s->step.n) break;
    u64 lost = is_choice(w, at) ? 0 : below(w, at + 1);
    c->index += lost;
    c->refused += lost;
    at = advance(w, at);
  }
  for (u32 i = 0; i < s->varied.n && at != SC_NONE; i++) {
    c->choice[i] = w->choice[s->varied.at[i]];
    value[i] = w->value[s->varied.at[i]];
  }
  return at != SC_NONE;
}

u64 sc_space_count(Sc *sc, const ParamSpace *s) { return below(open_walk(sc, s), 0); }

// ---- what is known beforehand

// The domain of a param, with reports.
static void settle_domain(Low *l, SpaceParam *p, const Node *def) {
  if (!find_domain(l, def, &p->domain)) return;
  p->texts = sc_value_texts(l->sc, &p->domain);
  if (p->domain.n) p->kind = p->domain.at[0].kind;
  if (p->domain.n) return;
  low_error(l, D_P_DOMAIN, def->b->span, "the domain of '%s' is empty", p->name);
}

// What the caller gives is no value of the param, unless its default is none.
static void complain(Walk *w, Low *l, const Node *def) {
  Given g = {.choice = &w->s->choice, .kase = w->s->kase};
  Value v;
  if (quiet_value(l, def->a, &v)) low_chosen(l, &g, def, &v);
}

void sc_space_values(Sc *sc, ParamSpace *s) {
  Walk *w = open_walk(sc, s);
  w->usual = true;
  for (u32 i = 0; i < s->step.n; i++) {
    const SpaceStep *step = &s->step.at[i];
    if (step->node->kind == ND_REQUIRE) continue;
    take(w, i);
    if (step->node->kind == ND_DEF || step->again) continue;
    SpaceParam *p = &s->param.at[step->param];
    Low *l = w->low[step->kernel];
    if (p->fixed && !w->known[step->param]) complain(w, l, step->node);
    if (w->known[step->param]) {
      p->kind = w->value[step->param].kind;
      p->usual = sc_value_text(l->sc, &w->value[step->param]);
    }
    if (p->steady) settle_domain(l, p, step->node);
  }
}
