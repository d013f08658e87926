// eval.c - evaluates uniform expressions, the scalars of a schedule. In: an expression without
// index variables and tiles, and an Env that says which tile, instance and iteration it is. Out:
// its value, remembered until env_touch. Reals are f32 as everywhere in a kernel, or f64 where
// e->wide says so, for specifications.
//
// A node's operands have smaller numbers than the node. The walk keeps its path in an array and
// does not recurse, as the text of a stranger decides how deep expressions are.
#include "runtime/spec/strip.h"

#define TIMELESS UINT32_MAX  // the stamp of what nothing in an Env changes

void env_init(Sc *sc, Env *e, const Kernel *k, const Binding *b) {
  u32 n = k->expr.n ? k->expr.n : 1;
  *e = (Env){.k = k, .b = b, .epoch = 1};
  e->loop = NEWS(sc, i64, k->loop.n + 1);
  e->stamp = NEWS(sc, u32, n);
  e->real = NEWS(sc, double, n);
  e->integer = NEWS(sc, i64, n);
  e->fails = NEWS(sc, u8, n);
  e->path = NEWS(sc, Xid, n + 1);
}

void env_touch(Env *e) {
  if (++e->epoch != TIMELESS) return;
  for (u32 i = 0; i < e->k->expr.n; i++)
    if (e->stamp[i] != TIMELESS) e->stamp[i] = 0;
  e->epoch = 1;
}

static bool known(const Env *e, Xid x) {
  return !x || e->stamp[x] == e->epoch || e->stamp[x] == TIMELESS;
}

static i64 int_op(Env *e, Xid x, const Expr *p) {
  i64 a = e->integer[p->a], b = e->integer[p->b], v;
  if (sc_int_op(p->op, a, b, &v)) return v;
  e->fails[x] |= x_divides(p->op) && b == 0 ? FAILS_IF_NEEDED : FAILS_ALWAYS;
  if (p->op == X_MOD || (x_divides(p->op) && b == 0)) return 0;
  bool down = p->op == X_ADD   ? a < 0
              : p->op == X_SUB ? b > 0
                               : p->op == X_MUL && (a < 0) != (b < 0);
  return down ? INT64_MIN : INT64_MAX;
}

// An operation on reals in f32, computed as strips compute it.
static float narrow_op(const Env *e, const Expr *p) {
  float a = (float)e->real[p->a], b = (float)e->real[p->b], v;
  sc_reals32.op[p->op](&v, &a, &b, NULL, 0, 1);
  return v;
}

// An element of an `in` tensor at a uniform place. Outside of it a real is 0, as in statements; an
// integer, on which loops and positions may depend, has no value.
static double fetch(Env *e, Xid x, const View *v) {
  const TensorRef *t = &e->b->buf[v->buf];
  i64 at = 0;
  bool inside = true;
  for (u32 i = 0; i < v->rank; i++) {
    i64 p = v->at[i].base ? e->integer[v->at[i].base] : 0;
    inside &= p >= 0 && p < t->shape[i];
    if (inside) at += p * t->stride[i];
  }
  u8 elem = e->k->buf.at[v->buf].elem;
  if (inside && t->at) return sc_get_elem(elem, t->at, at);
  if (inside || !sc_elem[elem].flt) e->fails[x] |= FAILS_IF_NEEDED;
  return 0;
}

static void set_int(Env *e, Xid x, i64 v) {
  e->integer[x] = v;
  e->real[x] = (double)v;
}

static void set_real(Env *e, Xid x, double v) {
  e->real[x] = e->wide ? v : (float)v;
  e->integer[x] = 0;
}

// An operation on numbers or truths.
static void operate(Env *e, Xid x, const Expr *p) {
  double v = 0;
  if (e->k->expr.at[p->a].ty != TY_REAL) {
    set_int(e, x, int_op(e, x, p));
  } else if (p->ty == TY_REAL && !e->wide) {
    set_real(e, x, narrow_op(e, p));
  } else {
    sc_real_op(p->op, e->real[p->a], e->real[p->b], &v);
    if (p->ty == TY_REAL) set_real(e, x, v);
    else set_int(e, x, v != 0);
  }
}

// The operands that a node has needed; how many.
static u32 needed(const Env *e, const Expr *p, Xid out[3 + SC_MAX_RANK]) {
  const bool a = e->integer[p->a], skips = (p->op == X_AND && !a) || (p->op == X_OR && a);
  u32 n = 0;
  out[n++] = p->a;
  if (p->op == X_WHERE) {
    out[n++] = a ? p->b : p->c;
    return n;
  }
  if (!skips) out[n++] = p->b, out[n++] = p->c;
  if (p->op != X_LOAD) return n;
  const View *v = &e->k->view.at[p->ref];
  for (u32 i = 0; i < v->rank; i++) out[n++] = v->at[i].base;
  return n;
}

static u8 failures_below(const Env *e, const Expr *p) {
  Xid operand[3 + SC_MAX_RANK];
  u8 fails = 0;
  for (u32 n = needed(e, p, operand); n > 0; n--) fails |= e->fails[operand[n - 1]];
  return fails;
}

const Let *env_failed_let(const Env *e, u32 role) {
  const Let *found = NULL;
  for (Xid x = e->failed, next; x; x = next) {
    Xid operand[3 + SC_MAX_RANK];
    for (u32 i = 0; i < e->k->let.n; i++) {
      const Let *l = &e->k->let.at[i];
      if (l->value == x && (l->role == SC_NONE || l->role == role)) found = l;
    }
    next = 0;
    for (u32 n = needed(e, &e->k->expr.at[x], operand); n > 0; n--)
      if (e->fails[operand[n - 1]]) next = operand[n - 1];
  }
  return found;
}

// The value of a node whose operands are known.
static void compute(Env *e, Xid x) {
  const Expr *p = &e->k->expr.at[x];
  e->fails[x] = failures_below(e, p);
  switch ((ExprOp)p->op) {
    case X_INT:
    case X_BOOL: set_int(e, x, p->num.i); break;
    case X_REAL: set_real(e, x, p->num.f); break;
    case X_DIM: set_int(e, x, e->b->dim[p->ref]); break;
    case X_ARG:
      if (p->ty == TY_REAL) set_real(e, x, e->b->arg[p->ref]);
      else set_int(e, x, (i64)e->b->arg[p->ref]);
      break;
    case X_AXIS: set_int(e, x, e->axis[p->ref]); break;
    case X_INST: set_int(e, x, e->inst); break;
    case X_LOOP: set_int(e, x, e->loop[p->ref]); break;
    case X_LOAD:
      if (p->ty == TY_REAL) set_real(e, x, fetch(e, x, &e->k->view.at[p->ref]));
      else set_int(e, x, (i64)fetch(e, x, &e->k->view.at[p->ref]));
      break;
    case X_TOREAL: set_real(e, x, (double)e->integer[p->a]); break;
    case X_WHERE: {
      Xid from = e->integer[p->a] ? p->b : p->c;
      e->integer[x] = e->integer[from];
      e->real[x] = e->real[from];
      break;
    }
    default: operate(e, x, p);
  }
}

// The first operand that x needs and whose value is not known yet; 0: none. An operand that a
// condition makes irrelevant is not needed: `n > 0 and m / n > 2` does not divide when n is 0.
static Xid missing(const Env *e, Xid x) {
  const Expr *p = &e->k->expr.at[x];
  if (!known(e, p->a)) return p->a;
  bool a = e->integer[p->a];
  if (p->op == X_WHERE) return known(e, a ? p->b : p->c) ? 0 : a ? p->b : p->c;
  if ((p->op == X_AND && !a) || (p->op == X_OR && a)) return 0;
  if (!known(e, p->b)) return p->b;
  if (!known(e, p->c)) return p->c;
  if (p->op != X_LOAD) return 0;
  const View *v = &e->k->view.at[p->ref];
  for (u32 i = 0; i < v->rank; i++)
    if (!known(e, v->at[i].base)) return v->at[i].base;
  return 0;
}

static void need(Env *e, Xid root) {
  u32 n = 0;
  if (!known(e, root)) e->path[n++] = root;
  while (n) {
    Xid x = e->path[n - 1], before = missing(e, x);
    if (before) {
      e->path[n++] = before;
      continue;
    }
    compute(e, x);
    bool varies = e->k->expr.at[x].deps & (DEP_AXIS | DEP_INST | DEP_LOOP);
    e->stamp[x] = varies ? e->epoch : TIMELESS;
    n--;
  }
  if (!(e->fails[root] & (e->of_elements ? FAILS_ALWAYS : ~0))) return;
  e->bad = true;
  e->failed = root;
}

i64 env_int(Env *e, Xid x) { return need(e, x), e->integer[x]; }
double env_real(Env *e, Xid x) { return need(e, x), e->real[x]; }
bool env_bool(Env *e, Xid x) { return need(e, x), e->integer[x] != 0; }
