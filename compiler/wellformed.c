// wellformed.c - the structural invariants of the IR, on which every pass relies. In: a kernel
// after any pass, or made from IR text. Out: a description of the first invariant that is broken,
// or NULL. What the schedule's author can get wrong is not checked here: whatever this file finds
// is a fault of the compiler (or of hand-written IR text). Numbers are checked before they are
// followed, so that any contents of the tables are safe to look at.
#include "wellformed.h"

void sc_bad(Check *c, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  if (!c->wrong) c->wrong = sc_vprintf(c->sc, fmt, ap);
  va_end(ap);
}

// ---- the tables by themselves

// Operands exist, are smaller, and have the signature's types.
static void check_operands(Check *c, Xid x, const Expr *e) {
  const Xid operand[3] = {e->a, e->b, e->c};
  const char *sig = sc_xop[e->op].sig;
  u32 n = sc_xop[e->op].arity;
  int star = -1;
  u8 deps = 0, vars = 0;
  for (u32 i = 0; i < 3; i++) {
    if (operand[i] >= x || (operand[i] != 0) != (i < n)) {
      sc_bad(c, "expression %u: operand %u is missing, too many or not before it", x, i);
      return;
    }
  }
  for (u32 i = 0; i <= n && n; i++) {
    u8 ty = i < n ? c->k->expr.at[operand[i]].ty : e->ty;
    if (sig[i] == '*' && star < 0) star = ty;
    u8 want = sig[i] == 'i' ? TY_INT : sig[i] == 'r' ? TY_REAL : sig[i] == 'b' ? TY_BOOL : (u8)star;
    if (ty != want || (sig[i] == '*' && ty == TY_BOOL))
      sc_bad(c, "expression %u: types differ from the signature", x);
    if (i == n) break;
    deps |= c->k->expr.at[operand[i]].deps;
    vars |= c->k->expr.at[operand[i]].vars;
  }
  if (e->op >= X_SUM) {
    if (e->ref >= SC_MAX_VARS) sc_bad(c, "expression %u: reduces no variable", x);
    else vars &= (u8) ~(1u << e->ref);
    deps = (u8)((deps & ~(vars ? 0 : DEP_IDX)) | DEP_TILE);
  }
  if (n && (e->deps != deps || e->vars != vars))
    sc_bad(c, "expression %u: its dependences are not its operands'", x);
}

static void check_load(Check *c, Xid x, const Expr *e) {
  const Kernel *k = c->k;
  if (e->ref >= k->view.n) {
    sc_bad(c, "expression %u: loads no view", x);
    return;
  }
  const View *v = &k->view.at[e->ref];
  u8 deps = 0, vars = 0;
  for (u32 i = 0; i < v->rank; i++) {
    if (v->at[i].base >= x || v->at[i].slice) {
      sc_bad(c, "expression %u: loads a slice, or a place computed after it", x);
      return;
    }
    deps |= k->expr.at[v->at[i].base].deps;
    vars |= k->expr.at[v->at[i].base].vars;
    if (v->at[i].var >= 0) vars |= (u8)(1u << v->at[i].var);
  }
  const Buf *b = &k->buf.at[v->buf];
  if (vars) deps |= DEP_IDX;
  bool fetch = b->space == SP_TENSOR && b->dir == SCHEDC_IN && !(deps & (DEP_IDX | DEP_TILE));
  if (e->deps != (deps | (fetch ? DEP_FETCH : DEP_TILE)) || e->vars != vars)
    sc_bad(c, "expression %u: its dependences are not its view's", x);
  if (e->ty != (sc_elem[b->elem].flt ? TY_REAL : TY_INT))
    sc_bad(c, "expression %u: not the element's type", x);
}

static void check_leaf(Check *c, Xid x, const Expr *e) {
  const Kernel *k = c->k;
  static const u8 deps[] = {[X_DIM] = DEP_DIM,   [X_ARG] = DEP_DIM,   [X_AXIS] = DEP_AXIS,
                            [X_INST] = DEP_INST, [X_LOOP] = DEP_LOOP, [X_IDX] = DEP_IDX};
  const u32 most[] = {[X_INT] = UINT32_MAX, [X_REAL] = UINT32_MAX, [X_BOOL] = UINT32_MAX,
                      [X_DIM] = k->dim.n,   [X_ARG] = k->arg.n,    [X_AXIS] = k->axis.n,
                      [X_INST] = k->role.n, [X_LOOP] = k->loop.n,  [X_IDX] = SC_MAX_VARS};
  if (e->ref >= most[e->op]) {
    sc_bad(c, "expression %u: names a %s that does not exist", x, sc_xop[e->op].text);
    return;
  }
  u8 ty = e->op == X_REAL ? TY_REAL : e->op == X_BOOL ? TY_BOOL : TY_INT;
  if (e->op == X_ARG && sc_elem[k->arg.at[e->ref].elem].flt) ty = TY_REAL;
  if (e->ty != ty) sc_bad(c, "expression %u: a %s of the wrong type", x, sc_xop[e->op].text);
  if (e->deps != deps[e->op] || e->vars != (e->op == X_IDX ? 1u << e->ref : 0))
    sc_bad(c, "expression %u: a leaf with the wrong dependences", x);
  if (e->op == X_BOOL && e->num.i != 0 && e->num.i != 1)
    sc_bad(c, "expression %u: a truth is 0 or 1", x);
}

static void check_exprs(Check *c) {
  for (Xid x = 1; x < c->k->expr.n && !c->wrong; x++) {
    const Expr *e = &c->k->expr.at[x];
    if (e->op >= X_COUNT || e->ty > TY_BOOL)
      sc_bad(c, "expression %u: no such operation or type", x);
    else if (e->op == X_LOAD) check_load(c, x, e);
    else if (sc_xop[e->op].arity) check_operands(c, x, e);
    else check_leaf(c, x, e);
  }
}

static void check_views(Check *c) {
  const Kernel *k = c->k;
  for (u32 i = 0; i < k->view.n && !c->wrong; i++) {
    const View *v = &k->view.at[i];
    if (v->buf >= k->buf.n || v->rank != k->buf.at[v->buf].rank) {
      sc_bad(c, "view %u: no such storage, or not its rank", i);
      return;
    }
    if (v->fill && k->buf.at[v->buf].space != SP_STAGE)
      sc_bad(c, "view %u: fills what is no stage", i);
    for (u32 d = 0; d < v->rank; d++) {
      const Pos *p = &v->at[d];
      if (p->base >= k->expr.n || p->var < -1 || p->var >= SC_MAX_VARS || (p->slice && p->var >= 0))
        sc_bad(c, "view %u: position %u is malformed", i, d);
    }
  }
}

// Positions' types can be looked at once the expressions are known to be sound.
static void check_positions(Check *c) {
  for (u32 i = 0; i < c->k->view.n; i++)
    for (u32 d = 0; d < c->k->view.at[i].rank; d++)
      if (c->k->expr.at[c->k->view.at[i].at[d].base].ty != TY_INT)
        sc_bad(c, "view %u: a position is no integer", i);
}

static void check_bufs(Check *c) {
  const Kernel *k = c->k;
  for (u32 i = 0; i < k->buf.n && !c->wrong; i++) {
    const Buf *b = &k->buf.at[i];
    if (!b->name || b->space > SP_SPEC || b->elem >= EL_COUNT || b->rank > SC_MAX_RANK ||
        b->dir > 3) {
      sc_bad(c, "storage %u: no name, space, element, rank or direction", i);
      return;
    }
    bool fixed = b->space == SP_STAGE || b->space == SP_REG;
    for (u32 d = 0; d < b->rank; d++)
      if (fixed ? b->ext[d] < 1 : b->dim[d] == 0 || b->dim[d] >= k->expr.n)
        sc_bad(c, "'%s': dimension %u is malformed", b->name, d);
    const Ring *r = b->space == SP_STAGE && b->ring < k->ring.n ? &k->ring.at[b->ring] : NULL;
    if (b->space == SP_STAGE &&
        (!r || i < r->part0 || i - r->part0 >= r->parts || b->role != r->owner))
      sc_bad(c, "'%s': a stage that is no part of its ring", b->name);
    if (b->space == SP_REG && (b->role >= k->role.n || b->rank > 2))
      sc_bad(c, "'%s': a tile of no role, or of rank over 2", b->name);
    if (b->partial && b->space != SP_REG) sc_bad(c, "'%s': only registers are partial", b->name);
  }
}

static void check_rings(Check *c) {
  const Kernel *k = c->k;
  for (u32 i = 0; i < k->ring.n; i++) {
    const Ring *r = &k->ring.at[i];
    if (!r->name || !r->stages || !r->parts) sc_bad(c, "ring %u: no name, stages or parts", i);
    if (r->parts > k->buf.n || r->part0 > k->buf.n - r->parts ||
        (r->owner != SC_NONE && r->owner >= k->role.n)) {
      sc_bad(c, "ring %u: parts or owner out of range", i);
      return;
    }
    for (u32 b = r->part0; b < r->part0 + r->parts; b++)
      if (k->buf.at[b].space != SP_STAGE || k->buf.at[b].ring != i)
        sc_bad(c, "ring '%s': a part is not its own", r->name);
  }
  for (u32 i = 0; i < k->turn.n; i++) {
    const Turn *t = &k->turn.at[i];
    if (!t->name || t->members > SC_MAX_ROLES || (t->axis != SC_NONE && t->axis >= k->axis.n) ||
        t->keys >= k->expr.n)
      sc_bad(c, "turn %u: name, members, axis or keys out of range", i);
    for (u32 m = 0; m < t->members && m < SC_MAX_ROLES; m++)
      if (t->member[m] >= k->role.n) sc_bad(c, "turn %u: a member is no role", i);
  }
}

// An expression outside roles: its type, and nothing but what `deps` allows.
void sc_check_scalar(Check *c, Xid x, Ty ty, u8 deps, const char *what) {
  if (x >= c->k->expr.n) {
    sc_bad(c, "%s: no such expression", what);
    return;
  }
  if (!x) return;
  const Expr *e = &c->k->expr.at[x];
  if (e->ty != ty) sc_bad(c, "%s: not of the type that stands there", what);
  if (e->deps & ~deps) sc_bad(c, "%s: depends on what is not known there", what);
}

static void check_interface(Check *c) {
  const Kernel *k = c->k;
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *b = &k->buf.at[i];
    for (u32 d = 0; d < b->rank && (b->space == SP_TENSOR || b->space == SP_SPEC); d++)
      sc_check_scalar(c, b->dim[d], TY_INT, DEP_DIM, "a tensor's dimension");
  }
  for (u32 i = 0; i < k->arg.n; i++) {
    const Arg *a = &k->arg.at[i];
    if (!a->name || a->elem >= EL_COUNT) sc_bad(c, "argument %u: no name or type", i);
    else
      sc_check_scalar(c, a->init, sc_elem[a->elem].flt ? TY_REAL : TY_INT, DEP_DIM,
                      "an argument's default");
  }
  for (u32 i = 0; i < k->require.n; i++) {
    if (!k->require.at[i].cond) sc_bad(c, "require %u: no condition", i);
    sc_check_scalar(c, k->require.at[i].cond, TY_BOOL, DEP_DIM, "a requirement");
  }
  sc_check_scalar(c, k->work, TY_INT, DEP_DIM, "the work");
  for (u32 i = 0; i < k->axis.n; i++) {
    const Axis *a = &k->axis.at[i];
    if (!a->name || !a->extent || !a->cluster) sc_bad(c, "axis %u: no name, extent or cluster", i);
    sc_check_scalar(c, a->extent, TY_INT, DEP_DIM | DEP_FETCH, "an axis' extent");
    sc_check_scalar(c, a->section, TY_INT, DEP_DIM | DEP_FETCH, "an axis' section");
  }
  for (u32 i = 0; i < k->turn.n; i++)
    sc_check_scalar(c, k->turn.at[i].keys, TY_INT, DEP_DIM, "a turn's keys");
  for (u32 i = 0; i < k->dim.n; i++)
    if (!k->dim.at[i].name) sc_bad(c, "dimension %u: no name", i);
  for (u32 i = 0; i < k->param.n; i++)
    if (!k->param.at[i].name) sc_bad(c, "parameter %u: no name", i);
  for (u32 i = 0; i < k->let.n; i++)
    if (!k->let.at[i].name || k->let.at[i].value >= k->expr.n)
      sc_bad(c, "let %u: no name or value", i);
}

static void check_cases(Check *c) {
  const Kernel *k = c->k;
  const u32 most[] = {[CASE_DIM] = k->dim.n,
                      [CASE_ARG] = k->arg.n,
                      [CASE_TENSOR] = k->buf.n,
                      [CASE_PARAM] = k->param.n};
  for (u32 i = 0; i < k->kase.n; i++) {
    for (u32 j = 0; j < k->kase.at[i].bind.n; j++) {
      const CaseBind *b = &k->kase.at[i].bind.at[j];
      if (b->kind > CASE_PARAM || b->ref >= most[b->kind])
        sc_bad(c, "case '%s': binds what does not exist", k->kase.at[i].name);
      else if (b->kind == CASE_TENSOR && k->buf.at[b->ref].space != SP_TENSOR)
        sc_bad(c, "case '%s': binds no tensor", k->kase.at[i].name);
    }
  }
}

// ---- the kernel

static void check_blocked(Check *c) {
  const Kernel *k = c->k;
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *b = &k->buf.at[i];
    i64 rows, cols;
    if (!b->blocked) continue;
    if (!b->workspace || b->elem != EL_F32 || b->rank < 2 || !x_const_int(k, b->dim[b->rank - 2], &rows) || rows % 64 ||
        !x_const_int(k, b->dim[b->rank - 1], &cols) || cols % 8)
      sc_bad(c, "'%s' cannot be blocked", b->name);
  }
}

static void check_launch(Check *c, const Launch *l) {
  const Kernel *k = c->k, *in = l->kernel;
  if (!in || in->launch.n) {
    sc_bad(c, "a launch of nothing, or of a sequence");
    return;
  }
  for (u32 i = 0; i < in->dim.n; i++)
    if (l->dim[i] >= k->dim.n) sc_bad(c, "launch of '%s': a dimension is not bound", in->name);
  for (u32 i = 0; i < in->arg.n; i++)
    if (l->arg[i] >= k->arg.n) sc_bad(c, "launch of '%s': an argument is not bound", in->name);
  for (u32 i = 0; i < in->buf.n; i++) {
    if (in->buf.at[i].space != SP_TENSOR) continue;
    if (l->tensor[i] >= k->buf.n || k->buf.at[l->tensor[i]].space != SP_TENSOR)
      sc_bad(c, "launch of '%s': a tensor is not bound", in->name);
  }
  const char *wrong = c->wrong ? NULL : sc_wellformed(c->sc, in);
  if (wrong) sc_bad(c, "kernel '%s': %s", in->name, wrong);
}

// What is given is an input of the sequence, and so is what it is made from.
static void check_given(Check *c, const Launch *l) {
  check_launch(c, l);
  for (u32 i = 0; i < l->kernel->buf.n && !c->wrong; i++) {
    const Buf *b = l->kernel->buf.at[i].space == SP_TENSOR ? &c->k->buf.at[l->tensor[i]] : NULL;
    if (b && (b->workspace || b->dir != SCHEDC_IN)) sc_bad(c, "'%s' is no input, and given", b->name);
  }
  if (!c->wrong && !c->k->launch.n) sc_bad(c, "a kernel is given something");
}

static void check_all(Check *c) {
  const Kernel *k = c->k;
  if (k->role.n > SC_MAX_ROLES) sc_bad(c, "more than %d roles", SC_MAX_ROLES);
  if (k->launch.n && (k->role.n || k->ring.n || k->turn.n || k->axis.n))
    sc_bad(c, "a sequence has code of its own");
  if (!c->wrong) check_bufs(c);
  if (!c->wrong) check_rings(c);
  if (!c->wrong) check_views(c);
  if (!c->wrong) check_exprs(c);
  if (!c->wrong) check_blocked(c);
  if (!c->wrong) check_positions(c);
  if (!c->wrong) check_interface(c);
  if (!c->wrong) check_cases(c);
  if (!c->wrong) sc_check_spec(c);
  for (u32 i = 0; i < k->role.n && !c->wrong; i++) sc_check_role(c, i);
  if (!c->wrong) sc_check_users(c);
  for (u32 i = 0; i < k->launch.n && !c->wrong; i++) check_launch(c, &k->launch.at[i]);
  for (u32 i = 0; i < k->given.n && !c->wrong; i++) check_given(c, &k->given.at[i]);
}

const char *sc_wellformed(Sc *sc, const Kernel *k) {
  Check c = {.sc = sc, .k = k, .role = SC_NONE};
  c.stamp = NEWS(sc, u32, k->expr.n);
  c.open = NEWS(sc, bool, k->loop.n);
  c.used = NEWS(sc, bool, k->loop.n);
  c.fill = NEWS(sc, u16, k->ring.n);
  c.drain = NEWS(sc, u16, k->ring.n);
  c.copied = NEWS(sc, bool, k->ring.n);
  c.stored = NEWS(sc, bool, k->ring.n);
  c.read = NEWS(sc, bool, k->ring.n);
  check_all(&c);
  return c.wrong;
}
