// map.c - element-wise statements, vectors, votes' conditions, and the specification -> maps.
// Out: maps whose first variables are those of the left side, in order, each with an extent; the
// right side converted to what the left side holds.
//
// A `partial` vector is four parts, one a lane of a quad. A statement acts on the parts when it is
// linear in them: scaling, adding, summing over columns (each lane has its own columns). Anything
// else needs the total.
// Called by stmt.c, bind.c and seq.c; calls product.c and copy.c for what looks like an
// assignment, view.c and expr.c for its sides, round.c for types, and code.c.
#include "compiler/lower/lower.h"

// ---- partial vectors

typedef enum Parts { PLAIN, ZERO, LINEAR, TOTAL } Parts;

static Parts parts_of(const Low *l, Xid x, u32 *steps) {
  const Expr *e = low_at(l, x);
  if (++*steps > 10000) return TOTAL;
  if (e->op == X_LOAD) return l->k->buf.at[l->k->view.at[e->ref].buf].partial ? LINEAR : PLAIN;
  if ((e->op == X_INT && !e->num.i) || (e->op == X_REAL && e->num.f == 0)) return ZERO;
  if (!sc_xop[e->op].arity) return PLAIN;
  Parts a = parts_of(l, e->a, steps), b = e->b ? parts_of(l, e->b, steps) : PLAIN;
  Parts c = e->c ? parts_of(l, e->c, steps) : PLAIN;
  if (a == TOTAL || b == TOTAL || c == TOTAL) return TOTAL;
  bool plain = a < LINEAR && b < LINEAR && c < LINEAR;
  switch (e->op) {
    case X_SUM: return a == LINEAR ? TOTAL : LINEAR;
    case X_TOREAL:
    case X_NEG: return a;
    case X_ADD:
    case X_SUB: return a == ZERO ? b : b == ZERO ? a : a == b ? a : TOTAL;
    case X_MUL: return plain ? PLAIN : a == LINEAR && b == LINEAR ? TOTAL : LINEAR;
    case X_DIV: return plain ? PLAIN : a == LINEAR && b == PLAIN ? LINEAR : TOTAL;
    case X_WHERE:
      if (plain) return b == ZERO && c == ZERO ? ZERO : PLAIN;
      return a != LINEAR && b != PLAIN && c != PLAIN ? LINEAR : TOTAL;
    default: return plain ? PLAIN : TOTAL;
  }
}

static bool by_parts(const Low *l, Xid root) {
  u32 steps = 0;
  Parts p = parts_of(l, root, &steps);
  return p == ZERO || p == LINEAR;
}

// ---- the left side

static bool writable(Low *l, const Node *left, u32 buf) {
  const Buf *b = &l->k->buf.at[buf];
  if (b->space != SP_TENSOR || b->dir & F_OUT) return true;
  Diag *d = low_error(l, D_N_WRITE, left->span, "'%s' is an input: it cannot be written", b->name);
  sc_note(l->sc, d, b->span, "declared here");
  sc_help(l->sc, d, "declare it 'out' or 'inout'");
  return false;
}

static bool is_element(Low *l, const Node *left) {
  if (left->kind == ND_INDEX) return true;
  if (left->kind == ND_ERROR) return false;
  Diag *d = low_error(l, D_N_WRITE, left->span, "the left side has no indices");
  sc_help(l->sc, d, "write x[i, j] = …; a value that does not change is a 'let'");
  return false;
}

// The left side's view; its free names become the statement's variables.
static u32 left_view(Low *l, const Node *left) {
  u32 buf;
  if (!is_element(l, left) || !low_buf(l, left->a, &buf) || !writable(l, left, buf)) return SC_NONE;
  l->stmt->make = true;
  u32 view = low_view(l, left, buf, low_is_filling(l, buf));
  l->stmt->make = false;
  if (view == SC_NONE) return view;
  const View *v = &l->k->view.at[view];
  for (u32 i = 0; i < v->rank; i++) {
    for (u32 j = 0; j < i; j++) {
      if (v->at[i].var < 0 || v->at[i].var != v->at[j].var) continue;
      low_error(l, D_N_INDEX, left->span, "the index '%s' stands twice on the left",
                l->stmt->var[v->at[i].var].name);
      return SC_NONE;
    }
  }
  return view;
}

// Registers of reals from which this value comes; NULL: none.
static const Buf *reals_in(Low *l, Xid value) {
  x_begin(&l->below, DEP_TILE);
  x_from(&l->below, value);
  for (Xid x; (x = x_next(&l->below));) {
    const Expr *e = low_at(l, x);
    if (e->ty == TY_BOOL) x_skip(&l->below);
    else if (e->op == X_LOAD && e->ty == TY_REAL) {
      const Buf *b = &l->k->buf.at[l->k->view.at[e->ref].buf];
      if (b->space == SP_REG) return b;
    }
  }
  return NULL;
}

// x, which n says, as what is kept in elements of type `elem`.
static Xid converted(Low *l, const Node *n, Xid x, Elem elem) {
  if (!x || elem != EL_I32) return low_real(l, n, x);
  if (low_at(l, x)->ty == TY_INT) return x;
  Diag *d = low_error(l, D_R9_TYPE, n->span, "an i32 holds integers, and this is %s",
                      low_at(l, x)->ty == TY_REAL ? "a real" : "a truth");
  const Buf *reals = reals_in(l, x);
  if (!reals) return 0;
  sc_note(l->sc, d, reals->span, "'%s' holds reals", reals->name);
  sc_help(l->sc, d, "integers are kept by 'reg %s : i32[…]'; a vector of 'let' holds reals",
          reals->name);
  return 0;
}

// How many of its variables the statement runs over: those of the left side, and those over which
// something is reduced that has not been folded away.
static u8 variables(Low *l, u8 outs, Xid root, Xid cond) {
  u8 n = outs;
  x_begin(&l->below, DEP_TILE);
  x_from(&l->below, root);
  x_from(&l->below, cond);
  for (Xid x; (x = x_next(&l->below));) {
    const Expr *e = low_at(l, x);
    if (x_reduces(e->op) && e->ref >= n) n = (u8)(e->ref + 1);
  }
  return n;
}

static u32 put_map(Low *l, const Stmt *s, u8 outs, u32 dst, Xid root, Xid cond) {
  Map m = {.span = s->span, .dst = dst, .root = root, .cond = cond, .outs = outs};
  m.vars = variables(l, outs, root, cond);
  for (u32 v = 0; v < m.vars; v++) m.var[v] = (Var){s->var[v].name, s->var[v].extent};
  if (dst != SC_NONE && l->k->buf.at[l->k->view.at[dst].buf].partial) m.parts = by_parts(l, root);
  PUSH(l->sc, &l->k->map, m);
  return l->k->map.n - 1;
}

// In a vote a statement acts on the rows of the warp: its first index runs over the same rows.
static bool rows_of_vote(Low *l, const Stmt *s, u8 outs) {
  i64 rows = 0;
  if (!l->vote || (outs && x_const_int(l->k, s->var[0].extent, &rows) && rows == l->vote))
    return true;
  Diag *d = low_error(l, D_R9_VOTE, s->span,
                      "this statement does not run over the %u rows that were voted on", l->vote);
  sc_help(l->sc, d, "the first index on the left is the row");
  return false;
}

static u32 assignment(Low *l, const Node *n, const Node *left, const Node *right, const Node *cond,
                      bool add) {
  Stmt s;
  low_begin(l, &s, n->span);
  u32 dst = left_view(l, left);
  u8 outs = s.n;
  if (dst == SC_NONE) return low_end(l, &s, false), SC_NONE;
  const Buf b = l->k->buf.at[l->k->view.at[dst].buf];
  Xid root = converted(l, right, low_expr(l, right), b.elem), c = cond ? low_bool(l, cond) : 0;
  if (add && b.space != SP_TENSOR && root) {
    if (l->k->view.at[dst].fill) {
      low_error(l, D_N_READ, left->span, "the stage of '%s' that is being filled has no value yet",
                b.name);
      root = 0;
    } else {
      root = low_make(l, n->span, X_ADD, x_leaf(l->sc, l->k, X_LOAD, sc_elem_ty(b.elem), dst), root,
                      0);
    }
  }
  if (cond && b.space != SP_TENSOR && c) {
    Diag *d = low_error(l, D_N_WRITE, cond->span, "only stores to tensors take a condition");
    sc_help(l->sc, d, "select: %s[…] = where(c, e, %s[…])", b.name, b.name);
    c = 0;
  }
  bool ok = low_end(l, &s, root && (c || !cond));
  if (!ok || !rows_of_vote(l, &s, outs)) return SC_NONE;
  return put_map(l, &s, outs, dst, root, c);
}

static bool is_stage(Low *l, const Node *n) {
  const Node *named = n->kind == ND_FIELD ? n->a : n;
  if (named->kind != ND_NAME) return false;
  const Name *name = low_find(l, named->name);
  return name && (name->kind == NM_RING ||
                  (name->kind == NM_BUF && l->k->buf.at[name->ref].space == SP_STAGE));
}

void low_assign(Low *l, const Node *n) {
  if (n->b->kind == ND_BINARY && n->b->op == AST_MATMUL) {
    low_product(l, n);
    return;
  }
  if (n->flags & F_ASYNC) {
    low_error(l, D_R9_PRODUCT, n->span, "'async' stands before products only");
    return;
  }
  bool add = n->op == AST_SETADD;
  if (add && is_stage(l, n->b)) {
    low_copy_add(l, n);
    return;
  }
  u32 map = assignment(l, n, n->a, n->b, n->c, add);
  if (map == SC_NONE) return;
  const Buf *b = &l->k->buf.at[l->k->view.at[l->k->map.at[map].dst].buf];
  bool to_memory = add && b->space == SP_TENSOR;
  if (to_memory && b->elem != EL_F32) {
    Diag *d = low_error(l, D_R9_TYPE, n->a->span,
                        "adding into a tensor needs f32 elements, and '%s' has %s", b->name,
                        sc_elem[b->elem].text);
    sc_note(l->sc, d, b->span, "declared here");
    sc_help(l->sc, d, "copies add all elements but those of 8 bits: '%s[…] += stage'", b->name);
    return;
  }
  low_emit(l, to_memory ? OP_MAPADD : OP_MAP, 0, map, 0, 0, n->span);
}

// ---- register tiles set to a value, vectors, votes

void low_init(Low *l, u32 buf, const Node *value, Span at) {
  static const char *const names[SC_MAX_RANK] = {"i", "j", "k", "l", "m", "n"};
  const Buf b = l->k->buf.at[buf];
  Xid root = converted(l, value, low_uniform(l, value), b.elem);
  if (!root) return;
  Stmt s;
  low_begin(l, &s, at);
  View v = {.span = at, .buf = buf, .rank = b.rank};
  for (u32 i = 0; i < b.rank; i++) v.at[i].var = (i8)low_new_var(l, names[i], at);
  PUSH(l->sc, &l->k->view, v);
  if (low_end(l, &s, true))
    low_emit(l, OP_MAP, 0, put_map(l, &s, b.rank, l->k->view.n - 1, root, 0), 0, 0, at);
}

// The indices that a vector or an equation of the specification names: they are new, and plain.
static bool plain_indices(Low *l, const Node *list) {
  bool ok = true;
  for (const Node *i = list; i; i = i->next) {
    const Name *old = i->kind == ND_NAME ? low_find(l, i->name) : NULL;
    if (old && old->kind != NM_INDEXNAME) {
      Diag *d = low_error(l, D_N_INDEX, i->span, "'%s' is %s here, not an index", i->name,
                          low_kind_text(l, old));
      sc_note(l->sc, d, old->span, "declared here");
      ok = false;
    } else if (i->kind != ND_NAME || low_var(l, old ? old->index : i->name) >= 0) {
      low_error(l, D_N_INDEX, i->span, "the left side names distinct plain indices");
      ok = false;
    } else if (l->stmt->n >= SC_MAX_RANK) {
      low_error(l, D_R9_RANK, i->span, "at most %d dimensions are possible", SC_MAX_RANK);
      return false;
    } else {
      low_new_var(l, old ? old->index : i->name, i->span);
    }
  }
  return ok;
}

// A buffer with a dimension for each of the first `rank` variables of the statement, SC_MAX_RANK at
// most.
static u32 buf_of_indices(Low *l, const Stmt *s, Buf b, u8 rank) {
  View v = {.span = b.span, .rank = rank};
  b.rank = rank;
  b.ring = SC_NONE;
  for (u32 i = 0; i < rank && i < SC_MAX_RANK; i++) {
    b.dim[i] = s->var[i].extent;
    if (b.space == SP_REG) x_const_int(l->k, b.dim[i], &b.ext[i]);
    v.at[i].var = (i8)i;
  }
  PUSH(l->sc, &l->k->buf, b);
  v.buf = l->k->buf.n - 1;
  PUSH(l->sc, &l->k->view, v);
  return v.buf;
}

void low_vector(Low *l, const Node *bind) {
  Stmt s;
  low_begin(l, &s, bind->span);
  bool ok = plain_indices(l, bind->b);
  u8 outs = s.n;
  Xid root = ok ? low_real(l, bind->a, low_expr(l, bind->a)) : 0;
  ok = low_end(l, &s, root != 0) && rows_of_vote(l, &s, outs);
  Name *name = low_declare(l, bind->name, bind->name_span, ok ? NM_BUF : NM_BAD);
  if (!ok) return;
  Buf b = {.name = bind->name,
           .span = bind->name_span,
           .space = SP_REG,
           .elem = EL_F32,
           .role = l->role};
  name->ref = buf_of_indices(l, &s, b, outs);
  low_emit(l, OP_MAP, 0, put_map(l, &s, outs, l->k->view.n - 1, root, 0), 0, 0, bind->span);
}

// A vote in another one's block: the warps' rows lie in one block of the warpgroup's, 16 each.
static bool in_one_block(Low *l, const Node *n) {
  const u32 warps = l->k->role.at[l->role].warps;
  if (l->vote <= 16 * warps || warps == 1) return true;
  low_error(l, D_R9_VOTE, n->span,
            "a vote in another one's block is on %u rows at most, 16 of each warp; these are %u",
            16 * warps, l->vote);
  return false;
}

// All warps of the instance meet in a vote together. It asks registers alone: what other threads
// write is theirs only behind the vote.
static bool may_vote_together(Low *l, const Node *n, u32 view0) {
  if (l->apart) {
    Diag *d = low_error(l, D_R9_VOTE, n->span,
                        "the warps vote together here, in the block of a vote of each warp");
    sc_help(l->sc, d, "not all warps run the block: move this vote out of it");
    return false;
  }
  for (u32 v = view0; v < l->k->view.n; v++) {
    const Buf *b = &l->k->buf.at[l->k->view.at[v].buf];
    if (b->space == SP_REG) continue;
    Diag *d = low_error(l, D_R9_VOTE, l->k->view.at[v].span,
                        "warps vote together on what their registers hold, and '%s' is %s", b->name,
                        b->space == SP_STAGE ? "a stage" : "a tensor");
    sc_help(l->sc, d, "take it into a vector first: let v[i] = …");
    return false;
  }
  return true;
}

u32 low_condition(Low *l, const Node *n, bool together) {
  Stmt s;
  low_begin(l, &s, n->span);
  s.make = true;
  Xid root = low_bool(l, n);
  u32 view0 = s.view0;
  if (!low_end(l, &s, root != 0)) return SC_NONE;
  bool reduced = false;
  for (u32 v = 0; v < s.n; v++) reduced |= !s.var[v].live;
  if (reduced || !s.n) {
    Diag *d = low_error(l, D_R9_VOTE, n->span,
                        reduced ? "a vote's condition has no reduction"
                                : "a vote is about rows, and no index stands here");
    sc_help(l->sc, d,
            reduced ? "put it into a vector first: let z[i] = max(j) …"
                    : "use 'if' for a condition that is the same for all");
    return SC_NONE;
  }
  if (!rows_of_vote(l, &s, s.n) || (!together && !in_one_block(l, n))) return SC_NONE;
  if (together && !may_vote_together(l, n, view0)) return SC_NONE;
  u32 map = put_map(l, &s, s.n, SC_NONE, root, 0);
  for (u32 v = view0; v < l->k->view.n; v++)
    l->k->map.at[map].parts |= l->k->buf.at[l->k->view.at[v].buf].partial;
  return map;
}

// ---- the specification

// The left side is a place of its own: an inout tensor on the right means its values before the
// run.
static void specify(Low *l, u32 dst, const Stmt *s, u8 outs, Xid root) {
  View left = l->k->view.at[dst];
  PUSH(l->sc, &l->done, left.buf);
  if (l->k->buf.at[left.buf].dir & F_IN) {
    PUSH(l->sc, &l->k->view, left);
    dst = l->k->view.n - 1;
  }
  PUSH(l->sc, &l->k->spec, put_map(l, s, outs, dst, root, 0));
}

// An output's type is that of its declaration.
static void refuse_type(Low *l, const Node *type, const Buf *output) {
  Diag *d = low_error(l, D_N_SPEC, type->span, "'%s' is %s, and its type is declared already",
                      output->name, output->workspace ? "a workspace" : "an output");
  sc_note(l->sc, d, output->span, "declared here");
  sc_help(l->sc, d, "leave the type out: intermediates alone state one");
}

// The equation of an output.
static void output_equation(Low *l, const Node *n, u32 buf) {
  if (n->d) refuse_type(l, n->d, &l->k->buf.at[buf]);
  for (u32 i = 0; i < l->done.n; i++) {
    if (l->done.at[i] != buf) continue;
    low_error(l, D_N_SPEC, n->a->span, "'%s' has an equation already", l->k->buf.at[buf].name);
    return;
  }
  Stmt s;
  low_begin(l, &s, n->span);
  s.output = true;
  u32 dst = left_view(l, n->a);
  u8 outs = s.n;
  bool ok = dst != SC_NONE;
  for (u32 i = 0; ok && i < l->k->view.at[dst].rank; i++) {
    if (l->k->view.at[dst].at[i].var >= 0) continue;
    low_error(l, D_N_SPEC, n->a->span,
              "an equation says every element: the left side names plain indices");
    ok = false;
  }
  Xid root = ok ? converted(l, n->b, low_expr(l, n->b), l->k->buf.at[buf].elem) : 0;
  if (low_end(l, &s, root != 0)) specify(l, dst, &s, outs, root);
  else PUSH(l->sc, &l->done, buf);
}

// The equation of a name that it introduces.
static void new_equation(Low *l, const Node *n) {
  const Node *named = n->a->a;
  Stmt s;
  low_begin(l, &s, n->span);
  bool ok = plain_indices(l, n->a->b);
  u8 outs = s.later = s.n;
  Xid root = ok ? low_real(l, n->b, low_expr(l, n->b)) : 0;
  Buf b = {.name = named->name, .span = named->span, .space = SP_SPEC, .role = SC_NONE};
  ok = low_end(l, &s, root != 0) && low_value_type(l, n->d, root, &b.elem);
  Name *name = low_declare(l, named->name, named->span, ok ? NM_BUF : NM_BAD);
  if (!ok) return;
  name->ref = buf_of_indices(l, &s, b, outs);
  if (n->d) PUSH(l->sc, &l->stated, name->ref);
  specify(l, l->k->view.n - 1, &s, outs, root);
}

static void equation(Low *l, const Node *n) {
  if (n->kind != ND_ASSIGN) return;
  if (!is_element(l, n->a)) return;
  if (n->a->a->kind != ND_NAME) {
    low_error(l, D_N_SPEC, n->a->span, "an equation defines an output or a name of its own");
    return;
  }
  const Name *old = low_find(l, n->a->a->name);
  if (!old) {
    new_equation(l, n);
    return;
  }
  if (old->kind == NM_BUF && l->k->buf.at[old->ref].space == SP_TENSOR) {
    output_equation(l, n, old->ref);
    return;
  }
  if (old->kind == NM_BAD || (old->kind == NM_ABSENT && old->made)) return;
  Diag *d =
      low_error(l, D_N_SPEC, n->a->span, "'%s' is %s already", old->name, low_kind_text(l, old));
  sc_note(l->sc, d, old->span, "declared here");
}

static bool is_used(const Low *l, u32 buf) {
  u32 views = 0;  // one is its own equation's
  for (u32 v = 0; v < l->k->view.n; v++) views += l->k->view.at[v].buf == buf;
  return views > 1;
}

// What no equation uses (these parameters may have decided so) is empty.
static void unsettled(Low *l) {
  for (u32 m = 0; m < l->k->spec.n; m++) {
    Map *map = &l->k->map.at[l->k->spec.at[m]];
    Buf *b = &l->k->buf.at[l->k->view.at[map->dst].buf];
    for (u32 v = 0; v < map->outs; v++) {
      if (map->var[v].extent) continue;
      if (!is_used(l, l->k->view.at[map->dst].buf)) {
        map->var[v].extent = b->dim[v] = x_int(l->sc, l->k, 0);
        continue;
      }
      Diag *d = low_error(l, D_R9_EXTENT, map->span, "nothing says how far the index '%s' runs",
                          map->var[v].name);
      sc_help(l->sc, d,
              "let it stand alone in a position of a tensor, here or where this is used first");
    }
  }
}

// Does a kernel of the sequence take it? Then it may be meant to pass between kernels only.
static bool is_taken(const Kernel *k, u32 buf) {
  for (u32 i = 0; i < k->launch.n; i++) {
    const Launch *step = &k->launch.at[i];
    for (u32 b = 0; b < step->kernel->buf.n; b++)
      if (step->tensor[b] == buf && step->kernel->buf.at[b].dir == F_IN) return true;
  }
  return false;
}

void low_spec(Low *l, const Node *spec) {
  Scope *back = l->scope;
  l->scope = l->base;
  low_push(l);
  l->spec = true;
  l->narrow = low_narrow_type(l->k);
  for (const Node *n = spec->a; n && !l->dead; n = n->next) equation(l, n);
  l->spec = false;
  l->scope = back;
  if (!l->sc->errors) low_warn_exponents(l);
  if (!l->sc->errors) unsettled(l);  // an equation that is at fault may have been what says it
  bool *done = NEWS(l->sc, bool, l->k->buf.n);
  for (u32 j = 0; j < l->done.n; j++) done[l->done.at[j]] = true;
  for (u32 i = 0; i < l->k->buf.n; i++) {
    const Buf *b = &l->k->buf.at[i];
    if (done[i] || !sc_is_output(b)) continue;
    Diag *d =
        low_error(l, D_N_SPEC, spec->span, "the specification does not say what '%s' is", b->name);
    sc_note(l->sc, d, b->span, "an output");
    if (!is_taken(l->k, i)) sc_help(l->sc, d, "add the equation %s[…] = …", b->name);
    else
      sc_help(l->sc, d,
              "add the equation %s[…] = …, or, if it only passes between kernels, declare it "
              "in the sequence: workspace %s : …",
              b->name, b->name);
  }
}
