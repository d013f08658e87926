// range.c - do the integers of a kernel's code fit in the 32 bits that the emitted code gives them?
// In: a kernel, and its dimensions. Out: yes, or a report at the first place that may leave them.
// The idea: an interval for every expression, from exact dimensions and scalars, with tile indices,
// instances and loop variables anywhere in their ranges. Operands have smaller numbers than what is
// made of them, so one walk over the table does; loops' bounds are known after a walk, so there are
// as many walks as loops nest. What depends on elements of tensors is not bounded, but for those
// that name places (`let n = len[b]`): they are taken to be no larger than the largest extent.
#include "compiler/facts/facts.h"
#include "runtime/cuda/gpu.h"

typedef struct Range {
  i64 lo, hi;
  bool known;
} Range;

typedef struct Ranges {
  Sc *sc;
  const Kernel *k;
  const Binding *b;
  Range *at;    // by expression
  i64 *terms;   // by expression: the largest that a sum of its terms may be, whatever their signs
  Below below;  // what has been checked
  Range *loop;
  i64 var[SC_MAX_VARS];  // largest extent of a variable of this number
  i64 extent;            // of all tensors
  bool bad;
} Ranges;

// Room for what the emitter adds to positions: rows and columns of a tile, the step of a persistent
// grid.
enum { LIMIT = INT32_MAX - (1 << 17) };

static Range range(i64 lo, i64 hi) {
  Interval cut = sc_interval(X_ADD, (Interval){lo, hi}, (Interval){0, 0});
  return (Range){cut.lo, cut.hi, true};
}

static i64 most(i64 a, i64 b) { return a > b ? a : b; }

static i64 sum(i64 a, i64 b) { return sc_interval(X_ADD, (Interval){a, a}, (Interval){b, b}).lo; }

static Interval interval(Range a) { return (Interval){a.lo, a.hi}; }

static Range leaf(const Ranges *r, const Expr *e) {
  switch (e->op) {
    case X_INT: return range(e->num.i, e->num.i);
    case X_DIM: return range(r->b->dim[e->ref], r->b->dim[e->ref]);
    case X_ARG: return range((i64)r->b->arg[e->ref], (i64)r->b->arg[e->ref]);
    case X_INST: return range(0, r->k->role.at[e->ref].instances - 1);
    case X_LOOP: return r->loop[e->ref];
    case X_IDX: return range(0, r->var[e->ref % SC_MAX_VARS]);
    case X_AXIS: {
      const Axis *x = &r->k->axis.at[e->ref];
      Range n = r->at[x->extent];
      return n.known ? range(0, most(0, n.hi + x->cluster - 2)) : n;
    }
    case X_LOAD: return e->deps & DEP_TILE ? (Range){0} : range(-r->extent, r->extent);
    default: return (Range){0};
  }
}

static Range value(const Ranges *r, const Expr *e) {
  const Range a = r->at[e->a], b = r->at[e->b], c = r->at[e->c];
  const u8 arity = sc_xop[e->op].arity;
  if (!arity) return leaf(r, e);
  bool known = arity == 1 ? a.known : arity == 2 ? a.known && b.known : b.known && c.known;
  Interval is = arity == 3 ? sc_interval_both(interval(b), interval(c))
                           : sc_interval((ExprOp)e->op, interval(a), interval(b));
  return known && e->op < X_SUM ? range(is.lo, is.hi) : (Range){0};
}

static void walk(Ranges *r) {
  for (Xid x = 1; x < r->k->expr.n; x++) {
    const Expr *e = &r->k->expr.at[x];
    if (e->ty == TY_INT && e->a < x && e->b < x && e->c < x) r->at[x] = value(r, e);
  }
}

static Range bound(const Ranges *r, Xid x) { return x ? r->at[x] : range(0, 0); }

// The loops whose bounds are known now. True if there were new ones.
static bool find_loops(Ranges *r) {
  bool found = false;
  for (u32 i = 0; i < r->k->role.n; i++) {
    const Code *code = &r->k->role.at[i].code;
    for (u32 pc = 0; pc < code->n; pc++) {
      const Ins *ins = &code->at[pc];
      if (ins->op != OP_FOR || r->loop[ins->arg[0]].known) continue;
      Range from = bound(r, ins->arg[1]), to = bound(r, ins->arg[2]);
      if (!from.known || !to.known) continue;
      r->loop[ins->arg[0]] = range(from.lo, most(from.lo, to.hi - 1));
      found = true;
    }
  }
  return found;
}

// ---- what the code evaluates

static void check(Ranges *r, Xid root, Span at);

static void check_view(Ranges *r, u32 view, Span at) {
  const View *v = &r->k->view.at[view];
  for (u32 i = 0; i < v->rank; i++) check(r, v->at[i].base, at);
}

static void refuse(Ranges *r, Xid x, Span at) {
  Str s = {.sc = r->sc};
  r->bad = true;
  sc_print_named(&s, r->k, x);
  Diag *d = sc_report(r->sc, D_T_RANGE, at,
                      "'%s' may be as %s as %lld here: emitted code has 32 bits for it", s.at,
                      r->at[x].hi > LIMIT ? "large" : "small",
                      (long long)(r->at[x].hi > LIMIT ? r->at[x].hi : r->at[x].lo));
  Str dims = {.sc = r->sc};
  for (u32 i = 0; i < r->k->dim.n; i++) {
    str_printf(&dims, "%s%s = %lld", i ? ", " : "", r->k->dim.at[i].name, (long long)r->b->dim[i]);
  }
  if (dims.n) sc_help(r->sc, d, "dimensions: %s", dims.at);
}

// Comparisons are written as one index against a sum of all other terms, whatever their order.
static void find_terms(Ranges *r) {
  for (Xid x = 1; x < r->k->expr.n; x++) {
    const Expr *e = &r->k->expr.at[x];
    const Range *v = &r->at[x];
    if (e->op == X_ADD || e->op == X_SUB) r->terms[x] = sum(r->terms[e->a], r->terms[e->b]);
    else if (v->known) r->terms[x] = most(-v->lo, v->hi);
  }
}

// Each expression below `root`, if it has not been checked for another.
static void check(Ranges *r, Xid root, Span at) {
  x_from(&r->below, root);
  for (Xid x; !r->bad && (x = x_next(&r->below));) {
    const Expr *e = &r->k->expr.at[x];
    const Range *v = &r->at[x];
    if (e->ty == TY_INT && v->known && (v->lo < -(i64)LIMIT || v->hi > LIMIT)) refuse(r, x, at);
    if ((e->op == X_LT || e->op == X_LE) && r->k->expr.at[e->a].ty == TY_INT) {
      if (sum(r->terms[e->a], r->terms[e->b]) > LIMIT)
        refuse(r, r->terms[e->a] > r->terms[e->b] ? e->a : e->b, at);
    }
  }
}

static void check_map(Ranges *r, const Map *m, Span at) {
  check(r, m->root, at);
  check(r, m->cond, at);
  if (m->dst != SC_NONE) check_view(r, m->dst, at);
}

static void check_ins(Ranges *r, const Ins *ins) {
  const char *args = sc_op[ins->op].args;
  for (u32 i = 0; args[i]; i++) {
    u32 a = ins->arg[i];
    if (args[i] == 'x') check(r, a, ins->span);
    if (args[i] == 'v' || args[i] == 'w') check_view(r, a, ins->span);
  }
  if (sc_on_map(ins->op)) check_map(r, &r->k->map.at[ins->arg[0]], ins->span);
  if (!sc_on_product(ins->op)) return;
  const Product *p = &r->k->product.at[ins->arg[0]];
  check_view(r, p->dst, ins->span);
  check_view(r, p->a, ins->span);
  check_view(r, p->b, ins->span);
}

static void find_extents(Ranges *r) {
  const Kernel *k = r->k;
  for (u32 i = 0; i < k->role.n; i++) {
    for (u32 pc = 0; pc < k->role.at[i].code.n; pc++) {
      const Ins *ins = &k->role.at[i].code.at[pc];
      if (!sc_on_map(ins->op)) continue;
      const Map *m = &k->map.at[ins->arg[0]];
      for (u32 v = 0; v < m->vars; v++) {
        i64 n;
        if (x_const_int(k, m->var[v].extent, &n) && n > r->var[v]) r->var[v] = n;
      }
    }
  }
  for (u32 i = 0; i < k->buf.n; i++) {
    for (u32 d = 0; k->buf.at[i].space == SP_TENSOR && d < k->buf.at[i].rank; d++) {
      if (r->b->buf[i].shape[d] > r->extent) r->extent = r->b->buf[i].shape[d];
    }
  }
}

bool sc_range(Sc *sc, const Kernel *k, const Binding *b) {
  Ranges r = {.sc = sc, .k = k, .b = b};
  r.at = NEWS(sc, Range, k->expr.n + 1);
  r.terms = NEWS(sc, i64, k->expr.n + 1);
  r.below = x_below(sc, k);
  r.loop = NEWS(sc, Range, k->loop.n + 1);
  find_extents(&r);
  do {
    walk(&r);
  } while (find_loops(&r));
  find_terms(&r);
  x_begin(&r.below, 0);
  for (u32 i = 0; i < k->dim.n && !r.bad; i++) {
    if (b->dim[i] <= LIMIT) continue;
    r.bad = true;
    sc_report(sc, D_T_RANGE, k->dim.at[i].span, "%s = %lld: emitted code has 32 bits for it",
              k->dim.at[i].name, (long long)b->dim[i]);
  }
  for (u32 i = 0; i < k->axis.n && !r.bad; i++) {
    check(&r, k->axis.at[i].extent, k->axis.at[i].span);
    check(&r, k->axis.at[i].section, k->axis.at[i].span);
  }
  for (u32 i = 0; i < k->turn.n && !r.bad; i++) check(&r, k->turn.at[i].keys, k->turn.at[i].span);
  for (u32 i = 0; i < k->role.n; i++) {
    for (u32 pc = 0; pc < k->role.at[i].code.n && !r.bad; pc++)
      check_ins(&r, &k->role.at[i].code.at[pc]);
  }
  return !r.bad;
}
