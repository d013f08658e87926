// ghost.c - remembers values of expressions over loop variables for the other roles. In: an
// expression such as `mask[t]`, which a process needs in some round. Out: the zone variable that
// has its value, the same for every process that asks in the corresponding round.
//
// The idea: expressions of two roles are the same function if they differ only in which loops they
// name, and in how they write places of tensors. Places are compared as linear forms: a multiple of
// a loop's count, and a term that is the same for the whole tile. A ghost remembers one value and
// the loop variables for which it holds, as zone variables of their own. To forget a ghost is
// always sound: the next process that asks gets a value about which nothing is known.
#include "compiler/verify/protocol.h"

enum { SAME_STEPS = 400 };

// ---- places of a tensor, which two roles may write in different ways

// The difference of two places: by * (the ghost's variable - the process's) + c, or c alone.
typedef struct Shift {
  u32 its, own;  // zone variables; SC_NONE: none
  i64 by, c;     // by > 0
} Shift;

// The loop's variable as a form: the one that the ghost remembers, or (ghost SC_NONE) the present
// one. False: the ghost remembers none for this loop.
static bool count_of(Symbolic *m, u32 ghost, u32 process, u32 loop, Lin *out) {
  u32 var = m->p->slot[process] + m->p->process.at[process].script->loop_depth[loop], i = 0;
  u8 modulus = m->modulus[var], remainder = m->remainder[var];
  if (ghost != SC_NONE) {
    const Ghost *g = &m->ghost[ghost];
    while (i < g->args && g->loop[i] != loop) i++;
    if (i == g->args) return false;
    var = symbolic_ghost_var(m, ghost) + 1 + i;
    modulus = g->modulus[i];
    remainder = g->remainder[i];
  }
  *out = sc_zone_form(m, var);
  out->at[0].by = modulus;
  out->c = remainder;
  return true;
}

static bool loop_value(Symbolic *m, u32 ghost, u32 process, u32 loop, Lin *out) {
  const Script *s = m->p->process.at[process].script;
  Lin count, one = sc_lin_int(1);
  if (s->loop_head[loop] == SC_NONE || !count_of(m, ghost, process, loop, &count)) return false;
  const Step *step = &s->step.at[s->loop_head[loop]];
  if (step->count != COUNT_BACK) return *out = count, true;
  sc_lin_copy(out, sc_form(m->f, step->y));
  return !sc_lin_any(out, sc_symbolic_moves, m) && sc_lin_add(out, &count, -1) &&
         sc_lin_add(out, &one, -1);
}

// A place as a form over zone variables and what is the same for a whole tile.
static bool place(Symbolic *m, u32 ghost, u32 process, Xid x, Lin *out) {
  Lin form;
  sc_lin_copy(&form, sc_form(m->f, x));
  *out = sc_lin_int(form.c);
  for (u32 i = 0; i < form.n; i++) {
    const Atom *a = &m->f->atom.at[form.at[i].atom[0]];
    bool alone = !form.at[i].atom[1] && a->op == X_LOOP;
    Lin value = {.n = 1, .at = {form.at[i]}};
    if (!alone && sc_lin_any(&value, sc_symbolic_moves, m)) return false;
    if (alone && !loop_value(m, ghost, process, a->ref, &value)) return false;
    if (!sc_lin_add(out, &value, alone ? form.at[i].by : 1)) return false;
  }
  return true;
}

static u32 zone_var(const Symbolic *m, const Lin *x, u32 term) {
  return x->n == 2 && !x->at[term].atom[1] ? sc_zone_of(m, x->at[term].atom[0]) : SC_NONE;
}

// The difference of the ghost's place x and the process's place y. False: it has no such form.
static bool shifted(Symbolic *m, u32 ghost, u32 process, Xid x, Xid y, Shift *out) {
  Lin d, now;
  *out = (Shift){SC_NONE, SC_NONE, 1, 0};
  if (!place(m, ghost, m->ghost[ghost].process, x, &d) || !place(m, SC_NONE, process, y, &now))
    return false;
  if (!sc_lin_add(&d, &now, -1) || !sc_know(m->f, &d)) return false;
  out->c = d.c;
  if (!d.n) return true;
  u32 a = zone_var(m, &d, 0), b = zone_var(m, &d, 1);
  if (a == SC_NONE || b == SC_NONE || d.at[0].by + d.at[1].by) return false;
  bool first = a >= symbolic_ghost_var(m, 0);
  i64 by = d.at[!first].by;
  *out = (Shift){first ? a : b, first ? b : a, by < 0 ? -by : by, by < 0 ? -d.c : d.c};
  return true;
}

static bool same_place(Symbolic *m, u32 ghost, u32 process, Xid x, Xid y) {
  Shift d;
  if (!shifted(m, ghost, process, x, y, &d) || d.c % d.by) return false;
  if (d.its == SC_NONE) return !d.c;
  i64 c = -d.c / d.by;  // the ghost's variable is the other and this
  return zone_implies(&m->zone, d.its, d.own, c) && zone_implies(&m->zone, d.own, d.its, -c);
}

// May x and y have the same value for some values of the loops?
static bool may_meet(const Symbolic *m, Xid x, Xid y) {
  u8 a = m->p->k->expr.at[x].deps, b = m->p->k->expr.at[y].deps;
  return a & DEP_LOOP && b & DEP_LOOP;
}

// ---- the same expression

// Do equal counts of the two loops mean equal variables? Of loops that run backwards they do if
// both have the same end and count from it, and if that end is no other one in another round of a
// loop around.
static bool same_count(const Symbolic *m, const Ghost *g, u32 arg, const Step *s) {
  const Script *of = m->p->process.at[g->process].script;
  const Step *t = &of->step.at[of->loop_head[g->loop[arg]]];
  bool same_end = s->y == t->y && !(m->p->k->expr.at[s->y].deps & DEP_LOOP);
  return (s->count == COUNT_BACK) == (t->count == COUNT_BACK) &&
         (s->count != COUNT_BACK || same_end);
}

static bool same_loop(const Symbolic *m, const Ghost *g, u32 ghost, u32 process, u32 loop, u32 of) {
  const Script *s = m->p->process.at[process].script;
  u32 var = m->p->slot[process] + s->loop_depth[loop];
  for (u32 i = 0; i < g->args; i++) {
    if (g->loop[i] != of) continue;
    u32 arg = symbolic_ghost_var(m, ghost) + 1 + i;
    if (s->loop_head[loop] == SC_NONE || !same_count(m, g, i, &s->step.at[s->loop_head[loop]]))
      return false;
    if (g->modulus[i] != m->modulus[var] || g->remainder[i] != m->remainder[var]) return false;
    return zone_implies(&m->zone, arg, var, 0) && zone_implies(&m->zone, var, arg, 0);
  }
  return false;
}

// Elements of one tensor, with positions in the same dimensions? (One that is 0 is no operand.)
static bool same_dimensions(const View *v, const View *w) {
  bool same = v->buf == w->buf && v->rank == w->rank;
  for (u32 d = 0; d < v->rank && same; d++) same = !v->at[d].base == !w->at[d].base;
  return same;
}

// Has y the same value for the process as x has for the ghost? ghost SC_NONE: are they the same
// function, whatever values the loops have?
static bool same(Symbolic *m, u32 ghost, u32 process, Xid x, Xid y, u32 *steps) {
  const Kernel *k = m->p->k;
  const Expr *a = &k->expr.at[x], *b = &k->expr.at[y];
  Xid of_a[SC_MAX_OPERANDS], of_b[SC_MAX_OPERANDS];
  if (!*steps || !--*steps || a->op != b->op || a->ty != b->ty) return false;
  if (a->op == X_LOOP)
    return ghost == SC_NONE || same_loop(m, &m->ghost[ghost], ghost, process, b->ref, a->ref);
  if (x == y && !(a->deps & DEP_LOOP)) return true;
  if (a->op == X_LOAD) {
    if (!same_dimensions(&k->view.at[a->ref], &k->view.at[b->ref])) return false;
  } else if (a->ref != b->ref || a->num.i != b->num.i) {
    return false;
  }
  u32 n = x_operands(k, x, of_a);
  if (n != x_operands(k, y, of_b)) return false;
  for (u32 i = 0; i < n; i++) {
    if (same(m, ghost, process, of_a[i], of_b[i], steps)) continue;
    if (a->op != X_LOAD) return false;
    bool meet = ghost == SC_NONE ? may_meet(m, of_a[i], of_b[i])
                                 : same_place(m, ghost, process, of_a[i], of_b[i]);
    if (!meet) return false;
  }
  return true;
}

static bool list_loops(Symbolic *m, Xid x, Ghost *g) {
  x_begin(&m->below, DEP_LOOP);
  x_from(&m->below, x);
  for (Xid e; (e = x_next(&m->below));) {
    if (m->p->k->expr.at[e].op != X_LOOP) continue;
    if (g->args == GHOST_VARS - 1) return false;
    g->loop[g->args++] = m->p->k->expr.at[e].ref;
  }
  return true;
}

static void drop(Symbolic *m, u32 ghost) {
  m->renumbered = true;
  m->ghosts--;
  for (u32 g = ghost; g < m->ghosts; g++) {
    m->ghost[g] = m->ghost[g + 1];
    for (u32 v = 0; v < GHOST_VARS; v++)
      zone_copy(&m->zone, symbolic_ghost_var(m, g) + v, symbolic_ghost_var(m, g + 1) + v, 0);
  }
  for (u32 v = 0; v < GHOST_VARS; v++) zone_forget(&m->zone, symbolic_ghost_var(m, m->ghosts) + v);
}

u32 sc_ghost(Symbolic *m, u32 process, Xid x) {
  const Script *s = m->p->process.at[process].script;
  Ghost g = {.x = x, .process = process};
  for (u32 i = 0; i < m->ghosts; i++)
    if (same(m, i, process, m->ghost[i].x, x, &(u32){SAME_STEPS})) return symbolic_ghost_var(m, i);
  if (m->p->ranks > 1 || !list_loops(m, x, &g)) return SC_NONE;
  for (u32 i = 0; i < g.args; i++)
    if (s->loop_head[g.loop[i]] == SC_NONE) return SC_NONE;
  m->wants |= !m->haunted;
  if (!m->haunted) return SC_NONE;
  if (m->ghosts == MAX_GHOSTS) drop(m, 0);
  u32 var = symbolic_ghost_var(m, m->ghosts);
  for (u32 i = 0; i < g.args; i++) {
    u32 of = m->p->slot[process] + s->loop_depth[g.loop[i]];
    zone_copy(&m->zone, var + 1 + i, of, 0);
    g.modulus[i] = m->modulus[of];
    g.remainder[i] = m->remainder[of];
  }
  bool condition = m->p->k->expr.at[x].ty == TY_BOOL;
  Interval in = condition ? (Interval){0, 1} : sc_form_interval(m->f, sc_form(m->f, x));
  if (in.lo > -ZONE_NONE) zone_learn(&m->zone, 0, var, -in.lo);
  if (in.hi < ZONE_NONE) zone_learn(&m->zone, var, 0, in.hi);
  m->ghost[m->ghosts++] = g;
  return var;
}

// ---- forgetting

// Finds how far apart the places are at which the ghost's expression x and the process's y read a
// tensor.
static bool find_shift(Symbolic *m, u32 ghost, u32 process, Xid x, Xid y, Shift *out, u32 *steps) {
  const Kernel *k = m->p->k;
  Xid of_x[SC_MAX_OPERANDS], of_y[SC_MAX_OPERANDS];
  u32 n = x_operands(k, x, of_x);
  if (!*steps || !--*steps || n != x_operands(k, y, of_y)) return false;
  bool load = k->expr.at[x].op == X_LOAD;
  for (u32 i = 0; i < n; i++) {
    if (load && shifted(m, ghost, process, of_x[i], of_y[i], out) && out->its != SC_NONE)
      return true;
    if (find_shift(m, ghost, process, of_x[i], of_y[i], out, steps)) return true;
  }
  return false;
}

// Can the process still come to the step in the round that the ghost's value belongs to?
static bool may_come(const Run *r, u32 process, u32 step, u32 loop, const Shift *d) {
  const Symbolic *m = r->evaluator;
  const Script *s = m->p->process.at[process].script;
  u32 head = s->loop_head[loop], at = r->at[process], end = s->step.at[head].to;
  if (at < head) return true;
  if (at >= end) return s->step.at[head].depth > 0;
  i64 c = sc_floordiv(-d->c, d->by);
  bool beyond = zone_implies(&m->zone, d->its, d->own, c - 1);
  bool there = d->c % d->by == 0 && zone_implies(&m->zone, d->own, d->its, -c) &&
               zone_implies(&m->zone, d->its, d->own, c);
  return !beyond && !(there && at > step);
}

// Does the process's step use the ghost's function? Then: in which loop, and at which distance from
// the ghost's place.
static bool asks(Symbolic *m, u32 ghost, u32 process, const Step *s, u32 *loop, Shift *d) {
  const Ghost *g = &m->ghost[ghost];
  const Script *of = m->p->process.at[process].script;
  Xid found = 0;
  x_begin(&m->below, DEP_LOOP);
  x_from(&m->below, s->x);
  x_from(&m->below, s->y);
  for (Xid e; !found && (e = x_next(&m->below));)
    if (same(m, SC_NONE, 0, g->x, e, &(u32){SAME_STEPS})) found = e;
  Ghost loops = {0};
  if (!found || !list_loops(m, found, &loops) || !loops.args) return false;
  *loop = loops.loop[0];
  u32 own = m->p->slot[process] + of->loop_depth[*loop];
  if (of->loop_head[*loop] == SC_NONE) return false;
  if (!find_shift(m, ghost, process, g->x, found, d, &(u32){SAME_STEPS}) || d->own != own)
    *d = (Shift){symbolic_ghost_var(m, ghost) + 1, own, 1, 0};
  return true;
}

static bool needed(Run *r, u32 ghost) {
  Symbolic *m = r->evaluator;
  for (u32 p = 0; p < m->p->process.n; p++) {
    const Script *s = m->p->process.at[p].script;
    for (u32 i = 0; i < s->step.n; i++) {
      const Step *step = &s->step.at[i];
      u32 loop;
      Shift d;
      bool has = step->kind == STEP_IF || step->kind == STEP_ENTER || step->kind == STEP_HEAD;
      if (has && asks(m, ghost, p, step, &loop, &d) && may_come(r, p, i, loop, &d)) return true;
    }
  }
  return false;
}

void sc_ghosts_tidy(Run *r) {
  Symbolic *m = r->evaluator;
  for (u32 g = m->ghosts; g-- > 0;)
    if (!needed(r, g)) drop(m, g);
}
