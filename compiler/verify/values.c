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

static bool leaf(void *world, const Expr *e, i64 *out) {
  World *w = world;
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

enum { LEVELS = 200 };  // recursion is bounded: a call of the library has a small stack

static bool evaluate(const Numbers *n, const Expr *e, i64 *out) {
  i64 a = 0, b = 0;
  if (e->ty == TY_REAL) return false;
  if (!sc_xop[e->op].arity) return n->leaf(n->of, e, out);
  if (x_reduces(e->op) || n->k->expr.at[e->a].ty == TY_REAL) return false;
  if (!sc_number(n, e->a, &a)) return false;
  if (e->op == X_WHERE) return sc_number(n, a ? e->b : e->c, out);
  if ((e->op == X_AND && !a) || (e->op == X_OR && a)) return *out = a, true;
  return sc_number(n, e->b, &b) && sc_int_op((ExprOp)e->op, a, b, out);
}

bool sc_number(const Numbers *n, Xid x, i64 *out) {
  Effort *effort = n->effort;
  *out = 0;
  if (!x) return true;
  if (!effort->steps || effort->levels == LEVELS) return effort->spent = true, false;
  effort->steps--;
  effort->levels++;
  bool known = evaluate(n, &n->k->expr.at[x], out);
  effort->levels--;
  return known;
}

Numbers sc_numbers(World *w) { return (Numbers){w->v->k, leaf, w, w->known, &w->effort}; }

bool sc_value(World *w, Xid x, i64 *out) {
  const Numbers n = sc_numbers(w);
  return sc_number(&n, x, out);
}
