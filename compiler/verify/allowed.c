// allowed.c - which numbers a launch may have. In: a kernel, and integers of a run that is tried.
// Out: whether what is required holds, tensors have a shape, the ranges that are promised of
// elements are not empty, and sections of axes are not. What a search does not know may be so. And
// what a required equation says of a dimension.
#include "compiler/verify/verify.h"

// Does it depend on what searches do not know: a real, or a scalar without a value?
static bool depends(const Numbers *n, Xid x, u32 *steps) {
  const Expr *e = &n->k->expr.at[x];
  Xid operand[SC_MAX_OPERANDS];
  if (!*steps || !--*steps || e->ty == TY_REAL) return true;
  if (e->op == X_ARG) return n->known && !n->known[e->ref];
  bool found = false;
  for (u32 i = x_operands(n->k, x, operand); i-- > 0 && !found;)
    found = depends(n, operand[i], steps);
  return found;
}

static bool is_beyond(const Numbers *n, Xid x) { return depends(n, x, &(u32){1000}); }

// What divides by 0 has no value, and a launch is refused.
static bool may_hold(const Numbers *n, Xid cond) {
  const Expr *e = &n->k->expr.at[cond];
  i64 holds;
  if (e->op == X_AND) return may_hold(n, e->a) && may_hold(n, e->b);
  return sc_number(n, cond, &holds) ? holds : is_beyond(n, cond);
}

static bool is_at_least(const Numbers *n, Xid x, i64 least) {
  i64 is;
  return sc_number(n, x, &is) ? is >= least : is_beyond(n, x);
}

static bool has_shape(const Numbers *n, const Buf *b) {
  for (u32 d = 0; d < b->rank && b->space == SP_TENSOR; d++)
    if (!is_at_least(n, b->dim[d], 0)) return false;
  return true;
}

// Of a list that has elements: is the range in which they are promised to be not empty?
static bool has_range(const Numbers *n, const Buf *b) {
  i64 size, least, end;
  if (!b->end) return true;
  for (u32 d = 0; d < b->rank; d++)
    if (!sc_number(n, b->dim[d], &size) || size <= 0) return true;
  if (sc_number(n, b->least, &least) && sc_number(n, b->end, &end)) return least < end;
  return is_beyond(n, b->least) || is_beyond(n, b->end);
}

// `M == H + 64`; and so of the parts of an `and`.
static void solve(const Numbers *n, Xid cond, u32 kept, i64 *dim) {
  const Expr *e = &n->k->expr.at[cond];
  i64 value;
  if (e->op == X_AND) {
    solve(n, e->a, kept, dim);
    solve(n, e->b, kept, dim);
  }
  for (u32 i = 0; e->op == X_EQ && i < 2; i++) {
    const Expr *side = &n->k->expr.at[i ? e->b : e->a];
    if (side->op != X_DIM || side->ref == kept || !sc_number(n, i ? e->a : e->b, &value)) continue;
    if (value >= 0) dim[side->ref] = value;
    return;
  }
}

void sc_solve(const Numbers *n, u32 kept, i64 *dim) {
  for (u32 i = 0; i < n->k->require.n; i++) solve(n, n->k->require.at[i].cond, kept, dim);
}

bool sc_is_allowed(const Numbers *n) {
  const Kernel *k = n->k;
  bool all = true;
  for (u32 i = 0; i < k->require.n && all; i++) all = may_hold(n, k->require.at[i].cond);
  for (u32 i = 0; i < k->buf.n && all; i++)
    all = has_shape(n, &k->buf.at[i]) && has_range(n, &k->buf.at[i]);
  for (u32 i = 0; i < k->axis.n && all; i++)
    all = !k->axis.at[i].section || is_at_least(n, k->axis.at[i].section, 1);
  return all;
}
