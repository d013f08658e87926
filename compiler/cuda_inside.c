// cuda_inside.c - what is known of integers by their form, and so what lies inside a tensor. Out: the tests that threads
// make before they read or write (outside, reads give 0 and writes do nothing); none where the grid, a loop or a condition
// around the statement says so already.
#include "cuda.h"

// ---- what is known where the statement being written stands

// Expressions share their operands: a proof that takes too many steps is given up, and a test written.
enum { STEPS = 1000 };

typedef struct Proof {
  const Kernel *k;
  const Cuda *c;  // NULL: whatever the place
  u32 steps;
} Proof;

static bool go_on(Proof *q) { return q->steps && q->steps--; }

// The nearest operation before *at in whose block the statement stands, with *at moved to it; NULL: none. (Of a condition
// in whose other branch it stands, nothing is known.)
static const Ins *around(const Cuda *c, u32 *at) {
  const Code *code = &c->k->role.at[c->r].code;
  u32 depth = 0;
  bool other = false;
  while ((*at)-- > 0) {
    const Ins *ins = &code->at[*at];
    u32 effects = sc_op[ins->op].effects;
    if (effects & SPLITS) other |= !depth;
    else if (effects & CLOSES) depth++;
    else if (effects & OPENS && depth) depth--;
    else if (effects & OPENS && ins->op == OP_IF && other) other = false;
    else if (effects & OPENS) return ins;
  }
  return NULL;
}

static const Ins *loop_of(Proof *q, u32 loop) {
  if (!q->c) return NULL;
  u32 at = q->c->pc;
  for (const Ins *ins; (ins = around(q->c, &at));) {
    if (ins->op == OP_FOR && ins->arg[0] == loop) return ins;
  }
  return NULL;
}

static bool nonneg(Proof *q, Xid x);

// Does the condition say that `x` is more than something that is not negative?
static bool says_positive(Proof *q, Xid cond, Xid x) {
  const Expr *e = &q->k->expr.at[cond];
  if (!go_on(q)) return false;
  if (e->op == X_AND) return says_positive(q, e->a, x) || says_positive(q, e->b, x);
  return e->op == X_LT && e->b == x && nonneg(q, e->a);
}

static bool positive(Proof *q, Xid x) {
  if (!q->c) return false;
  u32 at = q->c->pc;
  for (const Ins *ins; (ins = around(q->c, &at));) {
    if (ins->op == OP_IF && says_positive(q, ins->arg[0], x)) return true;
  }
  return false;
}

static bool nonneg(Proof *q, Xid x) {
  const Expr *e = &q->k->expr.at[x];
  const Ins *loop;
  i64 n;
  if (!go_on(q)) return false;
  switch (e->op) {
    case X_INT: return e->num.i >= 0;
    case X_DIM: case X_AXIS: case X_INST: return true;
    case X_LOOP: return (loop = loop_of(q, e->ref)) && nonneg(q, loop->arg[1]);
    case X_SUB: return x_const_int(q->k, e->b, &n) && n <= 1 && (n == 1 ? positive(q, e->a) : nonneg(q, e->a));
    case X_ADD: case X_MUL: case X_MIN: case X_IDIV: case X_CDIV: return nonneg(q, e->a) && nonneg(q, e->b);
    case X_MAX: return nonneg(q, e->a) || nonneg(q, e->b);
    case X_MOD: return nonneg(q, e->b);
    case X_WHERE: return nonneg(q, e->b) && nonneg(q, e->c);
    default: return false;
  }
}

bool cu_nonneg(const Kernel *k, Xid x) { return nonneg(&(Proof){k, NULL, STEPS}, x); }

static bool multiple(Proof *q, Xid x, i64 n) {
  const Expr *e = &q->k->expr.at[x];
  i64 v;
  if (x_const_int(q->k, x, &v)) return v % n == 0;
  if (!go_on(q)) return false;
  if (e->op == X_MUL) return multiple(q, e->a, n) || multiple(q, e->b, n);
  return (e->op == X_ADD || e->op == X_SUB) && multiple(q, e->a, n) && multiple(q, e->b, n);
}

bool cu_multiple(const Kernel *k, Xid x, i64 n) { return multiple(&(Proof){k, NULL, STEPS}, x, n); }

static bool is_const(Proof *q, Xid x, i64 *n) { return x ? x_const_int(q->k, x, n) : (*n = 0, true); }

// limit / n, rounded down?
static bool is_part(Proof *q, Xid x, Xid limit, Xid n) {
  const Expr *e = &q->k->expr.at[x];
  return e->op == X_IDIV && e->a == limit && e->b == n;
}

static bool below(Proof *q, Xid x, Xid limit);

static bool at_most(Proof *q, Xid x, Xid limit) {
  if (!go_on(q)) return false;
  const Expr *e = &q->k->expr.at[x];
  i64 v, n;
  if (x == limit) return true;
  if (is_const(q, x, &v) && is_const(q, limit, &n)) return v <= n;
  switch (e->op) {
    case X_MIN: return at_most(q, e->a, limit) || at_most(q, e->b, limit);
    case X_MAX: return at_most(q, e->a, limit) && at_most(q, e->b, limit);
    case X_WHERE: return at_most(q, e->b, limit) && at_most(q, e->c, limit);
    case X_MUL: return is_part(q, e->b, limit, e->a) || is_part(q, e->a, limit, e->b);
    default: return below(q, x, limit);
  }
}

// One of n places, each of limit / n, and one place in it.
static bool place_in_part(Proof *q, Xid part, Xid place, Xid limit) {
  const Expr *p = &q->k->expr.at[part];
  if (p->op != X_MUL || !below(q, place, p->b)) return false;
  const Expr *size = &q->k->expr.at[p->b];
  return size->op == X_IDIV && size->a == limit && below(q, p->a, size->b);
}

// (x * limit) / n with x < n, as heads share heads: limit is taken not to be 0.
static bool scaled(Proof *q, const Expr *division, Xid limit) {
  const Expr *p = &q->k->expr.at[division->a];
  if (p->op != X_MUL) return false;
  return (p->b == limit && below(q, p->a, division->b)) || (p->a == limit && below(q, p->b, division->b));
}

// x + n < limit + m, where n <= m.
static bool shifted(Proof *q, Xid x, Xid limit) {
  const Expr *e = &q->k->expr.at[x], *to = &q->k->expr.at[limit];
  i64 n = 0, m;
  if (to->op != X_ADD || !is_const(q, to->b, &m)) return false;
  if (e->op == X_ADD && is_const(q, e->b, &n)) return n <= m && below(q, e->a, to->a);
  return m >= 0 && below(q, x, to->a);
}

static bool below(Proof *q, Xid x, Xid limit) {
  if (!go_on(q)) return false;
  const Kernel *k = q->k;
  const Expr *e = &k->expr.at[x];
  const Ins *loop;
  i64 lo, hi, n;
  if (is_const(q, limit, &n) && (x ? x_range(k, x, &lo, &hi) : (hi = 0, true))) return hi < n;
  if (shifted(q, x, limit)) return true;
  switch (e->op) {
    case X_AXIS: return k->axis.at[e->ref].cluster == 1 && at_most(q, k->axis.at[e->ref].extent, limit);
    case X_LOOP: return (loop = loop_of(q, e->ref)) && at_most(q, loop->arg[2], limit);
    case X_SUB: return is_const(q, e->b, &n) && n >= 0 && (n > 0 ? at_most(q, e->a, limit) : below(q, e->a, limit));
    case X_ADD: return place_in_part(q, e->a, e->b, limit) || place_in_part(q, e->b, e->a, limit);
    case X_IDIV: return scaled(q, e, limit);
    case X_MOD: return at_most(q, e->b, limit);
    case X_MIN: return below(q, e->a, limit) || below(q, e->b, limit);
    case X_MAX: return below(q, e->a, limit) && below(q, e->b, limit);
    case X_WHERE: return below(q, e->b, limit) && below(q, e->c, limit);
    default: return false;
  }
}

// ---- positions

// Do all places that a position names along a variable of the map lie inside a dimension?
bool cu_inside_by_form(Cuda *c, const At *at, const Pos *p, Xid dim) {
  i64 lo = 0, hi = 0, extent, end, n;
  if (!at->map || !x_const_int(c->k, dim, &n) || !x_const_int(c->k, at->map->var[p->var].extent, &extent)) return false;
  if (p->base && !x_range(c->k, p->base, &lo, &hi)) return false;
  return lo >= 0 && !__builtin_add_overflow(hi, extent, &end) && end <= n;
}

const char *cu_inside(Cuda *c, const At *at, const View *v, bool rows, bool cols) {
  Str s = {.sc = c->sc};
  const Buf *b = &c->k->buf.at[v->buf];
  for (u32 d = 0; d < v->rank; d++) {
    const Pos *p = &v->at[d];
    bool is_row = p->var >= 0 && p->var == at->row, is_col = p->var >= 0 && p->var == at->col;
    if ((is_row && !rows) || (is_col && !cols)) continue;
    if ((is_row || is_col) && cu_inside_by_form(c, at, p, b->dim[d])) continue;
    bool low = p->base && !nonneg(&(Proof){c->k, c, STEPS}, p->base);
    bool high = p->var >= 0 || !below(&(Proof){c->k, c, STEPS}, p->base, b->dim[d]);
    if (!low && !high) continue;
    const char *pos = cu_paren(c, cu_position(c, at, p), P_ADD);
    if (s.n) str_puts(&s, " && ");
    if (low) str_printf(&s, "%s >= 0%s", pos, high ? " && " : "");
    if (high) str_printf(&s, "%s < %s", pos, cu_paren(c, cu_expr(c, NULL, b->dim[d]), P_ADD));
  }
  return s.n ? s.at : NULL;
}

// ---- CTAs past the end of the grid, which fill up its last cluster: they do all but write

// Is the position outside of the dimension wherever the axis is past its end? (x * BM of a dimension in cdiv(M, BM) tiles.)
static bool past(Proof *q, Xid base, u32 axis, Xid dim) {
  const Kernel *k = q->k;
  const Expr *e = &k->expr.at[base], *extent = &k->expr.at[k->axis.at[axis].extent];
  if (!go_on(q)) return false;
  switch (e->op) {
    case X_AXIS: return e->ref == axis && k->axis.at[axis].extent == dim;
    case X_MUL: {
      const Expr *x = &k->expr.at[e->a], *y = &k->expr.at[e->b];
      Xid size = x->op == X_AXIS && x->ref == axis ? e->b : y->op == X_AXIS && y->ref == axis ? e->a : 0;
      return size && extent->op == X_CDIV && extent->a == dim && extent->b == size;
    }
    case X_ADD:
      return (past(q, e->a, axis, dim) && nonneg(q, e->b)) || (past(q, e->b, axis, dim) && nonneg(q, e->a));
    default: return false;
  }
}

static bool leaves(const Cuda *c, const View *v, u32 axis) {
  for (u32 d = 0; d < v->rank; d++) {
    if (v->at[d].base && past(&(Proof){c->k, c, STEPS}, v->at[d].base, axis, c->k->buf.at[v->buf].dim[d])) return true;
  }
  return false;
}

const char *cu_in_grid(Cuda *c, const View *v) {
  Str s = {.sc = c->sc};
  for (u32 i = 0; i < c->k->axis.n; i++) {
    const Axis *x = &c->k->axis.at[i];
    if (x->cluster == 1 || cu_multiple(c->k, x->extent, x->cluster) || leaves(c, v, i)) continue;
    str_printf(&s, "%s%s < %s", s.n ? " && " : "", cu_axis(c, i), cu_paren(c, cu_expr(c, NULL, x->extent), P_ADD));
  }
  return s.n ? s.at : NULL;
}
