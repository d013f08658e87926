// group.c - finds the equations of a specification that read each other, and the loop that they
// share. In: a kernel's spec maps. Out: each equation's strip, its reads and its group; for each
// group its loop, or the iterations of the loop that a sample takes. spec.c calls it before
// anything runs.
//
// The idea: equations that read each other usually do so at equal outer indices (batch, head, row).
// Output variables that stand at the same place of a read are joined into classes (union-find). A
// class that each equation of the group has once becomes a level of the loop around all of them. An
// equation that depends on inputs alone and is read by equations with more indices (where a
// sequence ends, which one a row belongs to) would leave no common class: it is a group of its own,
// and runs first.
#include <math.h>

#include "runtime/spec/spec.h"

// ---- which equations read which values

static u32 find(const Spec *s, u32 node) {
  while (s->up[node] != node) node = s->up[node] = s->up[s->up[node]];
  return node;
}

static void unite(Spec *s, u32 a, u32 b) {
  a = find(s, a);
  b = find(s, b);
  s->broken[a] |= s->broken[b];
  s->up[b] = a;
}

static u32 node_of(u32 eq, i8 var) { return eq * SC_MAX_VARS + (u32)var; }

// Sets up equation e: its strip, and what its views read.
static void read_equation(Spec *s, u32 e) {
  const Kernel *k = s->k;
  Eq *eq = &s->eq[e];
  eq->m = &k->map.at[k->spec.at[e]];
  eq->group = e;
  eq->buf = k->view.at[eq->m->dst].buf;
  const Buf *b = &k->buf.at[eq->buf];
  eq->output = sc_is_output(b);
  eq->strip = sc_strip_spec(s->maker, eq->m, s->exact);
  for (i8 v = 0; v < SC_MAX_VARS; v++) s->up[node_of(e, v)] = node_of(e, v);
  for (u32 v = 0; v < eq->m->vars; v++) eq->extent[v] = env_int(&s->env, eq->m->var[v].extent);
  x_begin(&s->below, 0);
  for (u32 i = 0; i < k->view.at[eq->m->dst].rank; i++)
    x_from(&s->below, k->view.at[eq->m->dst].at[i].base);
  x_from(&s->below, eq->m->cond);
  x_from(&s->below, eq->m->root);
  for (Xid x; (x = x_next(&s->below));) {
    const Expr *p = &k->expr.at[x];
    if (p->op != X_LOAD) continue;
    u32 buf = k->view.at[p->ref].buf;
    Read read = {.view = p->ref, .def = s->definer[buf]};
    PUSH(s->sc, &eq->reads, read);
  }
  s->definer[eq->buf] = e;
}

// Marks the equations that eq reads and that have fewer indices: they are computed before it.
static void serve_larger(Spec *s, const Eq *eq) {
  for (u32 i = 0; i < eq->reads.n; i++) {
    u32 def = eq->reads.at[i].def;
    if (def != SC_NONE && eq->m->outs > s->eq[def].m->outs) s->eq[def].before = true;
  }
}

static void choose_before(Spec *s) {
  for (u32 e = 0; e < s->eqs; e++) serve_larger(s, &s->eq[e]);
  for (u32 e = 0; e < s->eqs; e++) {
    Eq *eq = &s->eq[e];
    for (u32 i = 0; i < eq->reads.n; i++)
      eq->before &= eq->reads.at[i].def == SC_NONE || s->eq[eq->reads.at[i].def].before;
  }
}

// Equation e reads what equation d defines: their groups join, and so do their index variables
// where they stand at the same position. A variable of d that e has elsewhere cannot be common.
static void link_read(Spec *s, u32 e, u32 d, const View *read) {
  const View *dst = &s->k->view.at[s->eq[d].m->dst];
  u32 from = s->eq[e].group, to = s->eq[d].group;
  for (u32 i = 0; i <= e; i++)
    if (s->eq[i].group == from) s->eq[i].group = to;
  for (u32 i = 0; i < dst->rank; i++) {
    i8 w = sc_plain_var(s->k, &dst->at[i]), u = sc_plain_var(s->k, &read->at[i]);
    if (w < 0) continue;
    if (u >= 0 && u < s->eq[e].m->outs) unite(s, node_of(d, w), node_of(e, u));
    else s->broken[find(s, node_of(d, w))] = true;
  }
}

static void link_reads(Spec *s) {
  for (u32 e = 0; e < s->eqs; e++)
    for (u32 i = 0; i < s->eq[e].reads.n; i++) {
      const Read *r = &s->eq[e].reads.at[i];
      if (r->def != SC_NONE && !s->eq[r->def].before)
        link_read(s, e, r->def, &s->k->view.at[r->view]);
    }
}

void sc_spec_groups(Spec *s) {
  const Kernel *k = s->k;
  s->eqs = k->spec.n;
  s->eq = NEWS(s->sc, Eq, s->eqs);
  s->definer = NEWS(s->sc, u32, k->buf.n);
  s->up = NEWS(s->sc, u32, s->eqs * SC_MAX_VARS);
  s->broken = NEWS(s->sc, bool, s->eqs *SC_MAX_VARS);
  s->below = x_below(s->sc, k);
  s->maker = sc_strip_maker(s->sc, k);
  for (u32 i = 0; i < k->buf.n; i++) s->definer[i] = SC_NONE;
  for (u32 e = 0; e < s->eqs; e++) read_equation(s, e);
  choose_before(s);
  link_reads(s);
}

// ---- the loop of a group

// Is the class of output variable v of the group's equation e an index of every equation, once?
static bool is_common(const Spec *s, u32 group, u32 e, i8 v) {
  u32 class = find(s, node_of(e, v));
  if (s->broken[class]) return false;
  for (u32 i = 0; i < s->eqs; i++) {
    u32 n = 0;
    if (s->eq[i].group != group) continue;
    for (i8 u = 0; u < s->eq[i].m->outs; u++) n += find(s, node_of(i, u)) == class;
    if (n != 1) return false;
  }
  return true;
}

// The class over which the equation with the most indices is vectorised. It does not become a level
// of the loop, even if all equations have it.
static u32 inner_class(const Spec *s, u32 group) {
  u32 best = SC_NONE, outs = 0;
  for (u32 i = 0; i < s->eqs; i++)
    if (s->eq[i].group == group && s->eq[i].m->outs > outs) {
      outs = s->eq[i].m->outs;
      best = find(s, node_of(i, s->eq[i].strip->v));
    }
  return best;
}

// Fills the group's loop: its depth, extents, and which variable of each equation each level is.
static void find_loop(Spec *s, Task *t) {
  u32 first = 0, inner = inner_class(s, t->group);
  while (s->eq[first].group != t->group) first++;
  for (i8 v = 0; v < s->eq[first].m->outs; v++) {
    u32 class = find(s, node_of(first, v));
    if (class == inner || !is_common(s, t->group, first, v)) continue;
    for (u32 i = first; i < s->eqs; i++) {
      Eq *eq = &s->eq[i];
      if (eq->group != t->group) continue;
      for (i8 u = 0; u < eq->m->outs; u++)
        if (find(s, node_of(i, u)) == class) eq->var[t->depth] = u;
      i64 n = eq->extent[eq->var[t->depth]];
      if (n > t->extent[t->depth]) t->extent[t->depth] = n;
    }
    t->depth++;
  }
  t->total = 1;
  for (u32 l = 0; l < t->depth; l++)
    if (__builtin_mul_overflow(t->total, t->extent[l], &t->total)) sc_unwind(s->sc, SCHEDC_ELIMIT);
}

bool sc_spec_in_loop(const Eq *eq, u32 depth, i8 v) {
  for (u32 l = 0; l < depth; l++)
    if (eq->var[l] == v) return true;
  return false;
}

// ---- a sample of the loop

static double extents(const Eq *eq, u32 depth, u8 vars) {
  double n = 1;
  for (i8 v = 0; v < (i8)eq->m->vars; v++)
    if (vars >> v & 1 && !sc_spec_in_loop(eq, depth, v)) n *= (double)eq->extent[v];
  return n;
}

// Operations of an iteration, roughly: two for each term of a reduction, and what it takes to
// evaluate and compare an element.
static double operations(Spec *s, const Task *t) {
  enum { ELEMENT = 64 };
  double n = 0;
  for (u32 e = 0; e < s->eqs; e++) {
    const Eq *eq = &s->eq[e];
    if (eq->group != t->group) continue;
    x_begin(&s->below, 0);
    x_from(&s->below, eq->m->root);
    for (Xid x; (x = x_next(&s->below));) {
      const Expr *p = &s->k->expr.at[x];
      if (x_reduces(p->op)) n += 2 * extents(eq, t->depth, s->k->expr.at[p->a].vars);
    }
    n += (eq->output ? ELEMENT : 2) * extents(eq, t->depth, (u8)((1u << eq->m->outs) - 1));
  }
  return n;
}

// Can an iteration's part of each output be told from the others'?
static bool separable(const Spec *s, const Task *t) {
  for (u32 e = 0; e < s->eqs; e++) {
    const View *dst = &s->k->view.at[s->eq[e].m->dst];
    if (s->eq[e].group != t->group || !s->eq[e].output) continue;
    for (u32 i = 0; i < dst->rank; i++)
      if (dst->at[i].base && sc_plain_var(s->k, &dst->at[i]) < 0) return false;
  }
  return true;
}

// The length of the kernel's tiles along level l of the loop.
static i64 tile_length(const Spec *s, const Task *t, u32 l) {
  for (u32 e = 0; e < s->eqs; e++) {
    const Eq *eq = &s->eq[e];
    const View *dst = &s->k->view.at[eq->m->dst];
    if (eq->group != t->group || !eq->output) continue;
    for (u32 i = 0; i < dst->rank; i++)
      if (sc_plain_var(s->k, &dst->at[i]) == eq->var[l]) return sc_tile_length(s->k, eq->buf, i);
  }
  return 1;
}

// Chooses as many iterations of the loop as the sample's limits allow.
static void choose_places(Spec *s, Task *t) {
  double each = operations(s, t), most = (double)t->total;
  i64 tile[SC_MAX_VARS];
  if (s->sample->places) most = fmin(most, (double)s->sample->places);
  if (s->sample->operations && each * (double)t->total > (double)s->sample->operations)
    most = fmin(most, fmax(1, (double)s->sample->operations / each));
  if (most >= (double)t->total || !separable(s, t)) return;
  for (u32 l = 0; l < t->depth; l++) tile[l] = tile_length(s, t, l);
  i64 *pass = NEWS(s->sc, i64, (size_t)most);
  t->total = (i64)sc_draw_places(t->extent, tile, t->depth, (size_t)most, pass);
  t->pass = pass;
  s->sampled = true;
}

void sc_spec_loop(Spec *s, Task *t) {
  find_loop(s, t);
  if (s->sample && !s->eq[t->group].before && t->depth) choose_places(s, t);
}
