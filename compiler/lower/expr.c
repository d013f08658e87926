// expr.c - expressions: syntax -> the kernel's expression graph, with types. Conditions that
// the parameters decide disappear here, and with them the branch that is not taken (it need not
// make sense for these parameters).
// Called by all above; calls view.c for elements and def.c for functions and defs. These three call
// each other, as positions and arguments are expressions, too.
#include "compiler/lower/lower.h"

#include <string.h>

static Ty ty_of(const Low *l, Xid x) { return (Ty)low_at(l, x)->ty; }

static const char *ty_text(Ty ty) {
  return ty == TY_INT ? "an integer" : ty == TY_REAL ? "a real" : "a truth";
}

// ---- making nodes

// Keeps the depth of the graph, so that a long chain of `let`s cannot make later passes recurse too
// deep.
static Xid measured(Low *l, Span at, Xid x) {
  if (!x) return 0;
  while (l->depth.n < l->k->expr.n) {
    Xid operand[SC_MAX_OPERANDS];
    u16 deepest = 0;
    for (u32 i = x_operands(l->k, l->depth.n, operand); i--;) {
      if (l->depth.at[operand[i]] > deepest) deepest = l->depth.at[operand[i]];
    }
    PUSH(l->sc, &l->depth, (u16)(deepest + (deepest < UINT16_MAX)));
  }
  if (l->depth.at[x] <= LOW_MAX_DEPTH) return x;
  low_error(l, D_P_LIMIT, at, "this value is computed in more than %d steps, one from the other",
            LOW_MAX_DEPTH);
  l->dead = true;
  return 0;
}

Xid low_make(Low *l, Span at, ExprOp op, Xid a, Xid b, Xid c) {
  u32 n = sc_xop[op].arity;
  if (!a || (n > 1 && !b) || (n > 2 && !c)) return 0;
  Xid x = x_make(l->sc, l->k, op, a, b, c);
  if (!x) {
    i64 zero;
    bool by_zero = x_divides(op) && x_const_int(l->k, b, &zero) && !zero;
    low_error(l, D_R9_RANGE, at, by_zero ? "division by zero" : "the value does not fit 64 bits");
  }
  return measured(l, at, x);
}

static const Node *bare(const Node *n) {
  while (n->kind == ND_UNARY && n->op == AST_NEG) n = n->a;
  return n;
}

Xid low_real(Low *l, const Node *n, Xid x) {
  if (!x) return 0;
  if (ty_of(l, x) == TY_REAL) return x;
  if (ty_of(l, x) == TY_BOOL) {
    low_error(l, D_R9_TYPE, n->span, "a number is needed here, and this is a truth");
    return 0;
  }
  const Node *inner = bare(n);
  if (inner->kind == ND_BINARY && inner->op == AST_DIV) {
    Diag *d = low_error(l, D_R9_QUOTIENT, n->span,
                        "an integer quotient is used as a real: it is rounded down first");
    sc_help(l->sc, d,
            l->spec ? "write 1.0 * a / b for the real quotient, 1.0 * (a - a %% b) / b if it is "
                      "meant to be whole"
                    : "write 1.0 * a / b for the real quotient; name the quotient with 'let' if it "
                      "is meant to be whole");
    return 0;
  }
  return low_make(l, n->span, X_TOREAL, x, 0, 0);
}

// An intermediate of the specification from which this value comes; NULL: none.
static const Buf *intermediate_in(Low *l, Xid value) {
  x_begin(&l->below, DEP_TILE);
  x_from(&l->below, value);
  for (Xid x; (x = x_next(&l->below));) {
    if (low_at(l, x)->op != X_LOAD) continue;
    const Buf *b = &l->k->buf.at[l->k->view.at[low_at(l, x)->ref].buf];
    if (b->space == SP_SPEC) return b;
    x_skip(&l->below);
  }
  return NULL;
}

// A note where the value that is at fault got its name.
static void note_value(Low *l, Diag *d, const Node *n) {
  const Name *name = n->kind == ND_NAME ? low_find(l, n->name) : NULL;
  if (name && name->kind == NM_VALUE)
    sc_note(l->sc, d, name->span, "'%s' is declared here", n->name);
}

static Xid need(Low *l, const Node *n, Ty ty) {
  Xid x = low_expr(l, n);
  if (!x || ty_of(l, x) == ty) return x;
  Diag *d = low_error(l, D_R9_TYPE, n->span, "%s is needed here, and this is %s", ty_text(ty),
                      ty_text(ty_of(l, x)));
  note_value(l, d, n);
  if (ty == TY_BOOL) sc_help(l->sc, d, "compare it: x != 0");
  const Buf *from = ty == TY_INT ? intermediate_in(l, x) : NULL;
  if (from)
    sc_help(l->sc, d, "the intermediate '%s' holds reals: write 'def %s(…) = …' instead",
            from->name, from->name);
  else if (ty == TY_INT && ty_of(l, x) == TY_REAL)
    sc_help(l->sc, d, "make it of integers alone: their quotient is rounded down, a * b / c");
  return 0;
}

Xid low_int(Low *l, const Node *n) { return need(l, n, TY_INT); }
Xid low_bool(Low *l, const Node *n) { return need(l, n, TY_BOOL); }

Xid low_uniform(Low *l, const Node *n) {
  Xid x = low_expr(l, n);
  if (!x || x_uniform(l->k, x)) return x;
  Diag *d =
      low_error(l, D_R9_UNIFORM, n->span, "this value is not the same for the whole role instance");
  sc_help(l->sc, d,
          "conditions, bounds and values outside of element-wise statements are built from params, "
          "dimensions, scalars, grid indices, loop variables and elements of 'in' tensors");
  return 0;
}

// Notes where a value comes from that only a launch knows.
static void note_launch(Low *l, Diag *d, const Node *n, Xid value) {
  if (low_at(l, value)->op != X_DIM) note_value(l, d, n);
  x_begin(&l->below, DEP_DIM);
  x_from(&l->below, value);
  for (Xid x; (x = x_next(&l->below));) {
    const Expr *e = low_at(l, x);
    if (e->op != X_DIM) continue;
    const Dim *dim = &l->k->dim.at[e->ref];
    sc_note(l->sc, d, dim->span, "'%s' is a launch dimension", dim->name);
    return;
  }
}

bool low_const(Low *l, const Node *n, const char *what, i64 lo, i64 hi, i64 *out) {
  Xid x = low_int(l, n);
  if (!x) return false;
  if (!x_const_int(l->k, x, out)) {
    Diag *d = low_error(l, D_P_CONST, n->span, "%s must be known at compile time", what);
    note_launch(l, d, n, x);
    sc_help(l->sc, d, "use params and literals; launch dimensions and scalars are not known yet");
    return false;
  }
  if (*out >= lo && *out <= hi) return true;
  low_error(l, D_R9_RANGE, n->span, "%s is %lld: it must be from %lld to %lld", what,
            (long long)*out, (long long)lo, (long long)hi);
  return false;
}

// ---- names

static Xid wrong_kind(Low *l, const Node *n, Name *name) {
  if (!low_is_there(l, name, n->span) || name->told) return 0;
  const Name *hidden = low_hidden(l, name);
  if (hidden && hidden->kind != NM_VALUE) hidden = NULL;
  Diag *d =
      low_error(l, D_N_KIND, n->span, "'%s' is %s, not a value", n->name, low_kind_text(l, name));
  sc_note(l->sc, d, name->span, "declared here");
  name->told = hidden;
  if (hidden) {
    sc_note(l->sc, d, hidden->span, "it hides this value");
    sc_help(l->sc, d, "if the value is meant, give one of the two another name");
  } else if (name->kind == NM_BUF || name->kind == NM_RING)
    sc_help(l->sc, d, "name an element: %s[i, …]%s", n->name,
            l->stmt && l->stmt->pos ? "; an index needs a name of its own" : "");
  else if (name->kind == NM_DEF) sc_help(l->sc, d, "expand it: %s(…)", n->name);
  return 0;
}

// A launch dimension is the unit's, also where the body of a def is the first to name it.
static Xid new_dimension(Low *l, const Node *n) {
  Scope *user = l->scope;
  l->scope = l->base;
  Name *d = low_declare(l, n->name, n->span, NM_VALUE);
  l->scope = user;
  PUSH(l->sc, &l->k->dim, ((Dim){n->name, n->span}));
  return d->x = x_leaf(l->sc, l->k, X_DIM, TY_INT, l->k->dim.n - 1);
}

static Xid name_value(Low *l, const Node *n) {
  Name *name = low_find(l, n->name);
  double c;
  Elem elem;
  if (!name) {
    if (low_constant_named(n->name, &c)) return x_real(l->sc, l->k, c);
    if (low_elem_named(n->name, &elem)) {
      low_error(l, D_N_KIND, n->span, "'%s' is an element type, not a value", n->name);
      return 0;
    }
    if (l->dims) return new_dimension(l, n);
    return low_index(l, n->name, n->span);
  }
  switch (name->kind) {
    case NM_VALUE: return name->x;
    case NM_INDEX: return x_leaf(l->sc, l->k, X_IDX, TY_INT, name->ref);
    case NM_INDEXNAME: return low_index(l, name->index, n->span);
    default: return wrong_kind(l, n, name);
  }
}

bool low_elem(Low *l, const Node *n, Elem *out) {
  if (n->kind == ND_NAME) {
    const Name *name = low_find(l, n->name);
    if (name && name->kind == NM_ELEM) return *out = (Elem)name->elem, true;
    return !name && low_elem_named(n->name, out);
  }
  Elem a, b;
  if (n->kind != ND_SELECT || !low_elem(l, n->b, &a) || !low_elem(l, n->c, &b)) return false;
  bool c;
  if (!x_const_bool(l->k, low_bool(l, n->a), &c)) return false;
  *out = c ? a : b;
  return true;
}

// ---- operators

static const u8 binary_op[] = {
    [AST_ADD] = X_ADD, [AST_SUB] = X_SUB, [AST_MUL] = X_MUL, [AST_DIV] = X_DIV, [AST_MOD] = X_MOD,
    [AST_LT] = X_LT,   [AST_LE] = X_LE,   [AST_GT] = X_LT,   [AST_GE] = X_LE,   [AST_EQ] = X_EQ,
    [AST_NE] = X_NE,   [AST_AND] = X_AND, [AST_OR] = X_OR,
};

// The right operand of `and`, `or` is not looked at where the left one decides.
static Xid logic(Low *l, const Node *n) {
  bool known, stop = n->op == AST_OR;
  Xid a = low_bool(l, n->a);
  if (a && x_const_bool(l->k, a, &known) && known == stop) return a;
  return low_make(l, n->span, binary_op[n->op], a, low_bool(l, n->b), 0);
}

static Xid binary(Low *l, const Node *n) {
  Elem p, q;
  if (n->op == AST_AND || n->op == AST_OR) return logic(l, n);
  if (n->op == AST_MATMUL) {
    Diag *d =
        low_error(l, D_R9_PRODUCT, n->span, "a product stands alone on the right of its statement");
    sc_help(l->sc, d, "accumulate it into a register tile first: async x[i,j] = a[i,k] @ b[k,j]");
    return 0;
  }
  bool order = n->op >= AST_LT && n->op <= AST_NE;
  bool equality = n->op == AST_EQ || n->op == AST_NE;
  bool p_elem = equality && low_elem(l, n->a, &p), q_elem = equality && low_elem(l, n->b, &q);
  if (p_elem && q_elem) return x_bool(l->sc, l->k, (p == q) == (n->op == AST_EQ));
  if (p_elem || q_elem) {
    const Node *other = p_elem ? n->b : n->a;
    if (low_expr(l, other)) low_error(l, D_R9_TYPE, other->span, "an element type is needed here");
    return 0;
  }
  Xid a = low_expr(l, n->a), b = low_expr(l, n->b);
  if (!a || !b) return 0;
  Ty ta = ty_of(l, a), tb = ty_of(l, b);
  if (ta == TY_BOOL && tb == TY_BOOL && equality) {
    Xid both = low_make(l, n->span, X_AND, a, b, 0);
    Xid none = low_make(l, n->span, X_NOT, low_make(l, n->span, X_OR, a, b, 0), 0, 0);
    Xid same = low_make(l, n->span, X_OR, both, none, 0);
    return n->op == AST_EQ ? same : low_make(l, n->span, X_NOT, same, 0, 0);
  }
  ExprOp op = binary_op[n->op];
  if (ta == TY_REAL || tb == TY_REAL || ta == TY_BOOL || tb == TY_BOOL) {
    a = low_real(l, n->a, a);
    b = low_real(l, n->b, b);
    if (op == X_MOD && a && b) return low_error(l, D_R9_TYPE, n->span, "'%%' takes integers"), 0;
  } else if (op == X_DIV) {
    op = X_IDIV;
  }
  bool swap = order && (n->op == AST_GT || n->op == AST_GE);
  return swap ? low_make(l, n->span, op, b, a, 0) : low_make(l, n->span, op, a, b, 0);
}

static Xid unary(Low *l, const Node *n) {
  if (n->op == AST_NOT) return low_make(l, n->span, X_NOT, low_bool(l, n->a), 0, 0);
  Xid a = low_expr(l, n->a);
  if (a && ty_of(l, a) == TY_BOOL) return low_real(l, n->a, a);
  return low_make(l, n->span, X_NEG, a, 0, 0);
}

// `c ? a : b` and where(c, a, b).
static Xid selection(Low *l, Span at, const Node *cond, const Node *yes, const Node *no) {
  bool known;
  Xid c = low_bool(l, cond);
  if (!c) return 0;
  if (x_const_bool(l->k, c, &known)) return low_expr(l, known ? yes : no);
  Xid a = low_expr(l, yes), b = low_expr(l, no);
  if (!a || !b) return 0;
  if (ty_of(l, a) == TY_BOOL && ty_of(l, b) == TY_BOOL) {
    Xid other = low_make(l, at, X_NOT, c, 0, 0);
    return low_make(l, at, X_OR, low_make(l, at, X_AND, c, a, 0),
                    low_make(l, at, X_AND, other, b, 0), 0);
  }
  if (ty_of(l, a) != ty_of(l, b)) {
    a = low_real(l, yes, a);
    b = low_real(l, no, b);
  }
  return low_make(l, at, X_WHERE, c, a, b);
}

// The reduced index is a name of its own, live in the body only.
static Xid reduction(Low *l, const Node *n) {
  static const u8 op[] = {[AST_SUM] = X_SUM, [AST_MAX] = X_RMAX, [AST_MIN] = X_RMIN};
  const Name *bound = low_find(l, n->name);
  Sym name = bound && bound->kind == NM_INDEXNAME ? bound->index : n->name;
  if (bound && bound->kind != NM_INDEXNAME) {
    Diag *d = low_error(l, D_N_INDEX, n->name_span, "'%s' is %s here, it cannot be reduced over",
                        n->name, low_kind_text(l, bound));
    sc_note(l->sc, d, bound->span, "declared here");
    sc_help(l->sc, d, "choose another name for the index");
    return 0;
  }
  if (!l->stmt) {
    low_error(l, D_R9_UNIFORM, n->span, "a reduction stands in element-wise statements only");
    return 0;
  }
  int outer = low_var(l, name);
  if (outer >= 0 &&
      l->stmt->var[outer].calls == l->calls) {  // that of a def's user may have the same name
    Diag *d =
        low_error(l, D_N_INDEX, n->name_span, "'%s' is an index of this statement already", name);
    sc_help(l->sc, d, "reduce over an index of another name");
    return 0;
  }
  int v = low_new_var(l, name, n->name_span);
  if (v < 0) return 0;
  Xid body = low_expr(l, n->a);
  l->stmt->var[v].live = false;
  if (body && ty_of(l, body) == TY_BOOL) body = low_real(l, n->a, body);
  return body ? measured(l, n->span, x_reduce(l->sc, l->k, op[n->op], (u32)v, body)) : 0;
}

// A ring's part by itself, or what has none.
static Xid field(Low *l, const Node *n) {
  u32 buf;
  if (low_buf(l, n, &buf))
    sc_help(l->sc, low_error(l, D_N_KIND, n->span, "a part of a ring is not a value"),
            "name an element: r.x[i, j]");
  return 0;
}

static Xid one(Low *l, const Node *n) {
  switch (n->kind) {
    case ND_INT: return x_int(l->sc, l->k, n->num.i);
    case ND_REAL: return x_real(l->sc, l->k, n->num.f);
    case ND_BOOL: return x_bool(l->sc, l->k, n->num.i != 0);
    case ND_NAME: return name_value(l, n);
    case ND_INDEX: return measured(l, n->span, low_load(l, n));
    case ND_APPLY: return low_apply(l, n);
    case ND_UNARY: return unary(l, n);
    case ND_BINARY: return binary(l, n);
    case ND_SELECT: return selection(l, n->span, n->a, n->b, n->c);
    case ND_REDUCE: return reduction(l, n);
    case ND_ERROR: return 0;
    case ND_FIELD: return field(l, n);
    default: low_error(l, D_N_KIND, n->span, "this is not a value"); return 0;
  }
}

Xid low_expr(Low *l, const Node *n) {
  if (!low_spend(l, &l->exprs, LOW_MAX_EXPRS, "expressions", n->span) || !low_enter(l, n->span))
    return 0;
  bool where = n->kind == ND_APPLY && !strcmp(n->name, "where") && n->a && n->a->next &&
               n->a->next->next && !n->a->next->next->next;
  Xid x = where ? selection(l, n->span, n->a, n->a->next, n->a->next->next) : one(l, n);
  low_leave(l);
  return x;
}

// ---- compile-time values

// A real that no launch decides, in double precision; `steps` bounds the walk.
static bool known_real(const Kernel *k, Xid x, double *out, u32 *steps) {
  const Expr *e = &k->expr.at[x];
  double a = 0, b = 0;
  if (!x || ++*steps > 1000) return false;
  if (e->op == X_REAL) return *out = e->num.f, true;
  if (e->op == X_INT) return *out = (double)e->num.i, true;
  if (e->deps || (e->a && !known_real(k, e->a, &a, steps)) ||
      (e->b && !known_real(k, e->b, &b, steps)))
    return false;
  if (e->op == X_TOREAL) return *out = a, true;
  return e->ty == TY_REAL && sc_real_op(e->op, a, b, out);
}

bool low_value(Low *l, const Node *n, Value *out) {
  Elem elem;
  if (low_elem(l, n, &elem)) return *out = (Value){VAL_ELEM, {.i = elem}}, true;
  Xid x = low_expr(l, n);
  u32 steps = 0;
  bool truth;
  if (!x) return false;
  *out = (Value){VAL_INT, {.i = 0}};
  if (x_const_int(l->k, x, &out->num.i)) return true;
  if (x_const_bool(l->k, x, &truth)) return *out = (Value){VAL_BOOL, {.i = truth}}, true;
  *out = (Value){VAL_REAL, {.f = 0}};
  if (ty_of(l, x) == TY_REAL && known_real(l->k, x, &out->num.f, &steps)) return true;
  Diag *d = low_error(l, D_P_CONST, n->span, "this must be known at compile time");
  sc_help(l->sc, d, "use literals and the params above");
  return false;
}
