// ghost.c - values of expressions over loop variables, remembered for the other roles. In: an
// expression such as `mask[t]`, asked for by a process in some round. Out: the zone variable that
// has its value, the same for every process that asks in the round with the same number.
//
// The idea: expressions of two roles are the same function if they differ in their loops alone. A
// ghost remembers one value and the loop variables for which it holds, as zone variables of their
// own. To forget one is always sound: the next who asks gets a value about which nothing is known.
#include "compiler/verify/protocol.h"

enum { SAME_STEPS = 400 };

// Counts of loops that run backwards are those of the same value only from the same end on.
static bool same_count(const Mind *m, const Ghost *g, u32 arg, const Step *s) {
  const Script *of = m->p->process.at[g->process].script;
  const Step *t = &of->step.at[of->loop_head[g->loop[arg]]];
  return (s->count == COUNT_BACK) == (t->count == COUNT_BACK) &&
         (s->count != COUNT_BACK || s->y == t->y);
}

static bool same_loop(const Mind *m, const Ghost *g, u32 ghost, u32 process, u32 loop, u32 of) {
  const Script *s = m->p->process.at[process].script;
  u32 var = m->p->slot[process] + s->loop_depth[loop];
  for (u32 i = 0; i < g->args; i++) {
    if (g->loop[i] != of) continue;
    u32 arg = mind_ghost_var(m, ghost) + 1 + i;
    if (s->loop_head[loop] == SC_NONE || !same_count(m, g, i, &s->step.at[s->loop_head[loop]]))
      return false;
    if (g->modulus[i] != m->modulus[var] || g->remainder[i] != m->remainder[var]) return false;
    return zone_implies(&m->zone, arg, var, 0) && zone_implies(&m->zone, var, arg, 0);
  }
  return false;
}

// Is y, for the process, what x is for the ghost? ghost SC_NONE: whatever the loops' values are.
static bool same(const Mind *m, u32 ghost, u32 process, Xid x, Xid y, u32 *steps) {
  const Kernel *k = m->p->k;
  const Expr *a = &k->expr.at[x], *b = &k->expr.at[y];
  Xid of_a[SC_MAX_OPERANDS], of_b[SC_MAX_OPERANDS];
  if (!*steps || !--*steps || a->op != b->op || a->ty != b->ty) return false;
  if (a->op == X_LOOP)
    return ghost == SC_NONE || same_loop(m, &m->ghost[ghost], ghost, process, b->ref, a->ref);
  if (x == y && !(a->deps & DEP_LOOP)) return true;
  if (a->op == X_LOAD) {
    const View *v = &k->view.at[a->ref], *w = &k->view.at[b->ref];
    if (v->buf != w->buf || v->rank != w->rank) return false;
  } else if (a->ref != b->ref || a->num.i != b->num.i) {
    return false;
  }
  u32 n = x_operands(k, x, of_a);
  if (n != x_operands(k, y, of_b)) return false;
  for (u32 i = 0; i < n; i++)
    if (!same(m, ghost, process, of_a[i], of_b[i], steps)) return false;
  return true;
}

static bool list_loops(Mind *m, Xid x, Ghost *g) {
  x_begin(&m->below, DEP_LOOP);
  x_from(&m->below, x);
  for (Xid e; (e = x_next(&m->below));) {
    if (m->p->k->expr.at[e].op != X_LOOP) continue;
    if (g->args == GHOST_VARS - 1) return false;
    g->loop[g->args++] = m->p->k->expr.at[e].ref;
  }
  return true;
}

static void drop(Mind *m, u32 ghost) {
  m->ghosts--;
  for (u32 g = ghost; g < m->ghosts; g++) {
    m->ghost[g] = m->ghost[g + 1];
    for (u32 v = 0; v < GHOST_VARS; v++)
      zone_copy(&m->zone, mind_ghost_var(m, g) + v, mind_ghost_var(m, g + 1) + v, 0);
  }
  for (u32 v = 0; v < GHOST_VARS; v++) zone_forget(&m->zone, mind_ghost_var(m, m->ghosts) + v);
}

u32 sc_ghost(Mind *m, u32 process, Xid x) {
  const Script *s = m->p->process.at[process].script;
  Ghost g = {.x = x, .process = process};
  for (u32 i = 0; i < m->ghosts; i++)
    if (same(m, i, process, m->ghost[i].x, x, &(u32){SAME_STEPS})) return mind_ghost_var(m, i);
  if (m->p->ranks > 1 || !list_loops(m, x, &g)) return SC_NONE;
  for (u32 i = 0; i < g.args; i++)
    if (s->loop_head[g.loop[i]] == SC_NONE) return SC_NONE;
  m->wants |= !m->haunted;
  if (!m->haunted) return SC_NONE;
  if (m->ghosts == MAX_GHOSTS) drop(m, 0);
  u32 var = mind_ghost_var(m, m->ghosts);
  for (u32 i = 0; i < g.args; i++) {
    u32 of = m->p->slot[process] + s->loop_depth[g.loop[i]];
    zone_copy(&m->zone, var + 1 + i, of, 0);
    g.modulus[i] = m->modulus[of];
    g.remainder[i] = m->remainder[of];
  }
  bool condition = m->p->k->expr.at[x].ty == TY_BOOL;
  if (condition) zone_learn(&m->zone, 0, var, 0);
  if (condition) zone_learn(&m->zone, var, 0, 1);
  m->ghost[m->ghosts++] = g;
  return var;
}

// ---- forgetting

// Can the process still come to the step with the loop's variable at the ghost's argument?
static bool may_come(const Run *r, u32 process, u32 step, u32 loop, u32 arg) {
  const Mind *m = r->mind;
  const Script *s = m->p->process.at[process].script;
  u32 head = s->loop_head[loop], at = r->at[process], end = s->step.at[head].to;
  u32 var = m->p->slot[process] + s->loop_depth[loop];
  if (at < head) return true;
  if (at >= end) return s->step.at[head].depth > 0;
  bool beyond = zone_implies(&m->zone, arg, var, -1);
  bool there = zone_implies(&m->zone, var, arg, 0) && zone_implies(&m->zone, arg, var, 0);
  return !beyond && !(there && at > step);
}

// Does the step ask for the ghost's function? Then: of which loop.
static bool asks(Mind *m, u32 ghost, const Step *s, u32 *loop) {
  const Ghost *g = &m->ghost[ghost];
  Xid found = 0;
  x_begin(&m->below, DEP_LOOP);
  x_from(&m->below, s->x);
  x_from(&m->below, s->y);
  for (Xid e; !found && (e = x_next(&m->below));)
    if (same(m, SC_NONE, 0, g->x, e, &(u32){SAME_STEPS})) found = e;
  Ghost loops = {0};
  if (!found || !list_loops(m, found, &loops) || !loops.args) return false;
  *loop = loops.loop[0];
  return true;
}

static bool needed(Run *r, u32 ghost) {
  Mind *m = r->mind;
  for (u32 p = 0; p < m->p->process.n; p++) {
    const Script *s = m->p->process.at[p].script;
    for (u32 i = 0; i < s->step.n; i++) {
      const Step *step = &s->step.at[i];
      u32 loop;
      bool has = step->kind == STEP_IF || step->kind == STEP_ENTER || step->kind == STEP_HEAD;
      if (has && asks(m, ghost, step, &loop) && s->loop_head[loop] != SC_NONE &&
          may_come(r, p, i, loop, mind_ghost_var(m, ghost) + 1))
        return true;
    }
  }
  return false;
}

void sc_ghosts_tidy(Run *r) {
  Mind *m = r->mind;
  for (u32 g = m->ghosts; g-- > 0;)
    if (!needed(r, g)) drop(m, g);
}
