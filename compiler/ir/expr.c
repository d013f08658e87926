// expr.c - the expressions of a kernel: a hash-consed DAG. In: operands that exist. Out: the number
// of the one node that says this, made if need be; so that "the roles agree on a condition" is
// equality of numbers. Invariant: a node's operands have smaller numbers than the node, whatever
// depends on nothing is folded, and types are as expr.def's signature says.
//
// What folds must not be visible in any result: integers and truths fold where nothing overflows,
// reals only where every precision gives the same (selection by a known condition, negation of a
// constant). Commutative operations on integers find an equal node with its operands swapped, which
// keeps the order in which people wrote them.
#include "compiler/ir/ir.h"

#include <string.h>

// ---- finding and making nodes

Kernel *sc_kernel(Sc *sc) {
  Kernel *k = NEW(sc, Kernel);
  PUSH(sc, &k->expr, (Expr){0});
  k->hash_cap = 64;
  k->hash = NEWS(sc, u32, k->hash_cap);
  return k;
}

static u64 mix(u64 h, u64 v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 29;
}

// A fetched element is the same whichever of two equal views names it; other loads keep their own
// view, whose span reports point at.
static u64 hash_of(const Kernel *k, const Expr *e) {
  u64 bits;
  memcpy(&bits, &e->num, sizeof bits);
  u64 h = mix(mix(mix(e->op + 31u * e->ty, e->a), (u64)e->b << 32 | e->c), bits);
  if (!x_fetches(e)) return mix(h, e->ref);
  const View *v = &k->view.at[e->ref];
  h = mix(h, v->buf);
  for (u32 i = 0; i < v->rank; i++) h = mix(h, v->at[i].base);
  return h;
}

static bool same(const Kernel *k, const Expr *p, const Expr *q) {
  if (p->op != q->op || p->ty != q->ty || p->deps != q->deps || p->a != q->a || p->b != q->b ||
      p->c != q->c || memcmp(&p->num, &q->num, sizeof p->num))
    return false;
  if (p->ref == q->ref || !x_fetches(p)) return p->ref == q->ref;
  const View *v = &k->view.at[p->ref], *w = &k->view.at[q->ref];
  return v->buf == w->buf && sc_same_place(v, w);
}

// Where the node is in the table, or the free slot where it belongs.
static u32 *slot_of(const Kernel *k, const Expr *e) {
  u32 i = (u32)hash_of(k, e) & (k->hash_cap - 1);
  while (k->hash[i] && !same(k, &k->expr.at[k->hash[i]], e)) i = (i + 1) & (k->hash_cap - 1);
  return &k->hash[i];
}

static Xid intern(Sc *sc, Kernel *k, Expr e) {
  u32 *slot = slot_of(k, &e);
  if (*slot) return *slot;
  if (k->expr.n >= k->hash_cap / 2) {
    u32 *wide = NEWS(sc, u32, k->hash_cap * 2);  // may unwind: the old table stays whole
    k->hash = wide;
    k->hash_cap *= 2;
    for (Xid x = 1; x < k->expr.n; x++) *slot_of(k, &k->expr.at[x]) = x;
    slot = slot_of(k, &e);
  }
  PUSH(sc, &k->expr, e);
  return *slot = k->expr.n - 1;
}

void x_forget(Kernel *k, u32 n) {
  memset(k->hash, 0, sizeof *k->hash * k->hash_cap);
  k->expr.n = n;
  for (Xid x = 1; x < n; x++) *slot_of(k, &k->expr.at[x]) = x;
}

// ---- leaves

Xid x_int(Sc *sc, Kernel *k, i64 v) {
  return intern(sc, k, (Expr){.op = X_INT, .ty = TY_INT, .num.i = v});
}
Xid x_real(Sc *sc, Kernel *k, double v) {
  return intern(sc, k, (Expr){.op = X_REAL, .ty = TY_REAL, .num.f = v});
}
Xid x_bool(Sc *sc, Kernel *k, bool v) {
  return intern(sc, k, (Expr){.op = X_BOOL, .ty = TY_BOOL, .num.i = v});
}

static void load_deps(const Kernel *k, Expr *e) {
  const View *v = &k->view.at[e->ref];
  const Buf *b = &k->buf.at[v->buf];
  for (u32 i = 0; i < v->rank; i++) {
    const Expr *base = &k->expr.at[v->at[i].base];
    e->deps |= base->deps;
    e->vars |= base->vars;
    if (v->at[i].var >= 0) e->vars |= (u8)(1u << v->at[i].var);
  }
  if (e->vars) e->deps |= DEP_IDX;
  bool constant =
      b->space == SP_TENSOR && b->dir == SCHEDC_IN;  // nothing writes it while the kernel runs
  e->deps |= constant && !(e->deps & (DEP_IDX | DEP_TILE)) ? DEP_FETCH : DEP_TILE;
}

Xid x_leaf(Sc *sc, Kernel *k, ExprOp op, Ty ty, u32 ref) {
  Expr e = {.op = op, .ty = ty, .ref = ref};
  switch (op) {
    case X_DIM:
    case X_ARG: e.deps = DEP_DIM; break;
    case X_AXIS: e.deps = DEP_AXIS; break;
    case X_INST: e.deps = DEP_INST; break;
    case X_LOOP: e.deps = DEP_LOOP; break;
    case X_IDX:
      if (ref >= SC_MAX_VARS) return 0;
      e.deps = DEP_IDX;
      e.vars = (u8)(1u << ref);
      break;
    case X_LOAD: load_deps(k, &e); break;
    default: return 0;
  }
  return intern(sc, k, e);
}

// ---- signatures

static bool ty_fits(char sig, u8 ty) {
  switch (sig) {
    case 'i': return ty == TY_INT;
    case 'r': return ty == TY_REAL;
    case 'b': return ty == TY_BOOL;
    default: return ty != TY_BOOL;
  }
}

static Xid to_real(Sc *sc, Kernel *k, Xid a) {
  const Expr *e = &k->expr.at[a];
  if (e->ty != TY_INT) return a;
  i64 v = e->num.i;
  if (e->op == X_INT && v >= -(1ll << 53) && v <= 1ll << 53) return x_real(sc, k, (double)v);
  return intern(sc, k,
                (Expr){.op = X_TOREAL, .ty = TY_REAL, .deps = e->deps, .vars = e->vars, .a = a});
}

// Makes the operands fit the signature, or returns false. `*ty` is the result's type.
static bool fit(Sc *sc, Kernel *k, ExprOp op, Xid *x, u8 *ty) {
  const char *sig = sc_xop[op].sig;
  u32 n = sc_xop[op].arity;
  bool real = false;
  for (u32 i = 0; i < n; i++) real |= sig[i] == '*' && k->expr.at[x[i]].ty == TY_REAL;
  for (u32 i = 0; i < n; i++) {
    if (sig[i] == 'r' || (sig[i] == '*' && real)) x[i] = to_real(sc, k, x[i]);
    if (!ty_fits(sig[i], k->expr.at[x[i]].ty)) return false;
  }
  char r = sig[n];
  *ty = r == 'b' ? TY_BOOL : r == 'r' || (r == '*' && real) ? TY_REAL : TY_INT;
  return true;
}

// ---- folding

typedef enum Fold { FOLD_NOT, FOLD_DONE, FOLD_WRONG } Fold;

// Constant operands of integer operations.
static Fold fold_constants(Sc *sc, Kernel *k, ExprOp op, u8 ty, Xid a, Xid b, Xid *out) {
  const Expr *p = &k->expr.at[a], *q = &k->expr.at[b];
  if (p->op != X_INT || (sc_xop[op].arity == 2 && q->op != X_INT)) return FOLD_NOT;
  i64 v;
  if (!sc_int_op(op, p->num.i, q->num.i, &v)) return FOLD_WRONG;
  *out = ty == TY_BOOL ? x_bool(sc, k, v) : x_int(sc, k, v);
  return FOLD_DONE;
}

static bool is_int(const Kernel *k, Xid x, i64 v) {
  return k->expr.at[x].op == X_INT && k->expr.at[x].num.i == v;
}

// Identities on integers, one operand known or both equal; 0: none applies.
static Xid fold_ints(Sc *sc, Kernel *k, ExprOp op, Xid a, Xid b) {
  switch (op) {
    case X_ADD: return is_int(k, a, 0) ? b : is_int(k, b, 0) ? a : 0;
    case X_SUB: return is_int(k, b, 0) ? a : a == b ? x_int(sc, k, 0) : 0;
    case X_MUL:
      return is_int(k, a, 0) || is_int(k, b, 1) ? a : is_int(k, b, 0) || is_int(k, a, 1) ? b : 0;
    case X_IDIV:
    case X_CDIV: return is_int(k, b, 1) ? a : 0;
    case X_MOD: return is_int(k, b, 1) ? x_int(sc, k, 0) : 0;
    case X_MIN:
    case X_MAX: return a == b ? a : 0;
    case X_LE:
    case X_EQ: return a == b ? x_bool(sc, k, true) : 0;
    case X_LT:
    case X_NE: return a == b ? x_bool(sc, k, false) : 0;
    default: return 0;
  }
}

// `and`, `or`, `not`, negation and selection; 0: nothing to fold.
static Xid fold_logic(Sc *sc, Kernel *k, ExprOp op, Xid a, Xid b, Xid c) {
  const Expr *p = &k->expr.at[a], *q = &k->expr.at[b];
  bool pk = p->op == X_BOOL, qk = q->op == X_BOOL;
  switch (op) {
    case X_AND: return a == b ? a : pk ? (p->num.i ? b : a) : qk ? (q->num.i ? a : b) : 0;
    case X_OR: return a == b ? a : pk ? (p->num.i ? a : b) : qk ? (q->num.i ? b : a) : 0;
    case X_NOT: return pk ? x_bool(sc, k, !p->num.i) : p->op == X_NOT ? p->a : 0;
    case X_NEG: return p->op == X_REAL ? x_real(sc, k, -p->num.f) : p->op == X_NEG ? p->a : 0;
    case X_WHERE: return b == c ? b : pk ? (p->num.i ? b : c) : 0;
    case X_TOREAL: return to_real(sc, k, a);
    default: return 0;
  }
}

// An equal node with its operands swapped, of operations on integers and truths that commute; or 0.
static Xid find_swapped(const Kernel *k, Expr e) {
  bool commutes = e.op == X_ADD || e.op == X_MUL || e.op == X_MIN || e.op == X_MAX ||
                  e.op == X_EQ || e.op == X_NE || e.op == X_AND || e.op == X_OR;
  if (!commutes || k->expr.at[e.a].ty == TY_REAL) return 0;
  Xid a = e.a;
  e.a = e.b;
  e.b = a;
  return *slot_of(k, &e);
}

Xid x_make(Sc *sc, Kernel *k, ExprOp op, Xid a, Xid b, Xid c) {
  u32 n = sc_xop[op].arity;
  Xid x[3] = {a, n > 1 ? b : 0, n > 2 ? c : 0}, folded = 0;
  for (u32 i = 0; i < n; i++)
    if (!x[i]) return 0;
  Expr e = {.op = op};
  if (!n || x_reduces(op) || !fit(sc, k, op, x, &e.ty)) return 0;
  folded = fold_logic(sc, k, op, x[0], x[1], x[2]);
  if (folded) return folded;
  if (n <= 2 && k->expr.at[x[0]].ty == TY_INT) {
    Fold f = fold_constants(sc, k, op, e.ty, x[0], x[1], &folded);
    if (f != FOLD_NOT) return f == FOLD_DONE ? folded : 0;
    if (x_divides(op) && is_int(k, x[1], 0)) return 0;
    if ((folded = fold_ints(sc, k, op, x[0], x[1]))) return folded;
  }
  for (u32 i = 0; i < n; i++) {
    e.deps |= k->expr.at[x[i]].deps;
    e.vars |= k->expr.at[x[i]].vars;
  }
  e.a = x[0];
  e.b = x[1];
  e.c = x[2];
  Xid swapped = find_swapped(k, e);
  return swapped ? swapped : intern(sc, k, e);
}

Xid x_reduce(Sc *sc, Kernel *k, ExprOp op, u32 var, Xid body) {
  if (!body || op < X_SUM || var >= SC_MAX_VARS) return 0;
  const Expr *p = &k->expr.at[body];
  if (p->ty == TY_BOOL) return 0;
  Expr e = {.op = op, .ty = p->ty, .deps = p->deps | DEP_TILE, .a = body, .ref = var};
  e.vars = p->vars & (u8) ~(1u << var);
  if (!e.vars) e.deps &= (u8)~DEP_IDX;
  return intern(sc, k, e);
}

bool x_const_int(const Kernel *k, Xid e, i64 *out) {
  *out = k->expr.at[e].num.i;
  return k->expr.at[e].op == X_INT;
}

bool x_const_bool(const Kernel *k, Xid e, bool *out) {
  *out = k->expr.at[e].num.i;
  return k->expr.at[e].op == X_BOOL;
}

u32 x_operands(const Kernel *k, Xid e, Xid out[SC_MAX_OPERANDS]) {
  const Expr *p = &k->expr.at[e];
  Xid all[SC_MAX_OPERANDS] = {p->a, p->b, p->c};
  u32 n = 3, kept = 0;
  if (p->op == X_LOAD) {
    const View *v = &k->view.at[p->ref];
    for (u32 i = 0; i < v->rank; i++) all[n++] = v->at[i].base;
  }
  for (u32 i = 0; i < n; i++)
    if (all[i]) out[kept++] = all[i];
  return kept;
}
