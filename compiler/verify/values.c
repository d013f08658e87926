// values.c - evaluates expressions of integers and truths, with concrete dimensions, in one tile,
// instance and round. In: an expression. Out: its value, or false where it depends on something
// that no case gives.
#include "compiler/verify/replay.h"

// An element of a tensor that the case lists. Elements past the end of the list are like its last.
static bool element(World *w, const Expr *e, i64 *out) {
  const Kernel *k = w->v->k;
  const View *v = &k->view.at[e->ref];
  const Buf *b = &k->buf.at[v->buf];
  const CaseBind *list = e->deps & DEP_FETCH ? sc_case_bind(w->kase, CASE_TENSOR, v->buf) : NULL;
  i64 at = 0;
  for (u32 d = 0; d < v->rank; d++) {
    i64 base = 0, n;
    if (!sc_value(w, b->dim[d], &n) || (v->at[d].base && !sc_value(w, v->at[d].base, &base)))
      return false;
    if (base < 0 || base >= n) return false;
    at = at * n + base;
  }
  if (!list || !list->value.n) return false;
  *out = list->value.at[at < list->value.n ? at : list->value.n - 1].num.i;
  return true;
}

static bool leaf(World *w, const Expr *e, i64 *out) {
  switch (e->op) {
    case X_INT:
    case X_BOOL: return *out = e->num.i, true;
    case X_DIM: return *out = w->dim[e->ref], true;
    case X_ARG: return *out = w->arg[e->ref], w->known[e->ref];
    case X_AXIS: return *out = w->axis[e->ref], true;
    case X_INST: return *out = w->inst, true;
    case X_IDX: return *out = w->index[e->ref], true;
    case X_LOOP:
      if (e->ref < REPLAY_LOOPS) *out = w->loop[e->ref];
      return e->ref < REPLAY_LOOPS;
    case X_LOAD: return element(w, e, out);
    default: return false;
  }
}

static bool choose(World *w, const Expr *e, i64 *out) {
  i64 c;
  return sc_value(w, e->a, &c) && sc_value(w, c ? e->b : e->c, out);
}

static bool logic(World *w, const Expr *e, i64 *out) {
  if (!sc_value(w, e->a, out)) return false;
  if (e->op == X_NOT) return *out = !*out, true;
  return *out == (e->op == X_OR) || sc_value(w, e->b, out);
}

bool sc_value(World *w, Xid x, i64 *out) {
  const Expr *e = &w->v->k->expr.at[x];
  i64 a, b = 0;
  if (!w->steps) return false;
  w->steps--;
  if (e->ty == TY_REAL) return false;
  if (!sc_xop[e->op].arity) return leaf(w, e, out);
  if (e->op == X_WHERE) return choose(w, e, out);
  if (e->op == X_AND || e->op == X_OR || e->op == X_NOT) return logic(w, e, out);
  if (e->op >= X_SUM || w->v->k->expr.at[e->a].ty != TY_INT) return false;
  if (!sc_value(w, e->a, &a) || (sc_xop[e->op].arity == 2 && !sc_value(w, e->b, &b))) return false;
  return sc_int_op((ExprOp)e->op, a, b, out);
}
