// wellformed.c - the structural invariants of the IR, on which every pass relies. In: a kernel after any
// pass, or made from IR text. Out: a description of the first invariant that is broken, or NULL. What
// the schedule's author can get wrong is not checked here: whatever this file finds is a fault of the
// compiler (or of hand-written IR text). Numbers are checked before they are followed, so that any
// contents of the tables are safe to look at.
#include "ir.h"

#include <string.h>

typedef struct Check {
  Sc *sc;
  const Kernel *k;
  const char *wrong;    // the first broken invariant
  u32 *stamp, epoch;    // expressions seen in this walk
  VEC(Xid) stack;
  bool *open, *used;    // loops: around the current operation; by some FOR
  u16 *fill, *drain;    // rings: the roles whose code fills and drains them
  bool *copied, *stored, *read;
  u32 role;             // SC_NONE: not inside one
  bool spec;
  const Map *map;       // the map whose expression is walked
} Check;

__attribute__((format(printf, 2, 3))) static void bad(Check *c, const char *fmt, ...) {
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
      bad(c, "expression %u: operand %u is missing, too many or not before it", x, i);
      return;
    }
  }
  for (u32 i = 0; i <= n && n; i++) {
    u8 ty = i < n ? c->k->expr.at[operand[i]].ty : e->ty;
    if (sig[i] == '*' && star < 0) star = ty;
    u8 want = sig[i] == 'i' ? TY_INT : sig[i] == 'r' ? TY_REAL : sig[i] == 'b' ? TY_BOOL : (u8)star;
    if (ty != want || (sig[i] == '*' && ty == TY_BOOL)) bad(c, "expression %u: types differ from the signature", x);
    if (i == n) break;
    deps |= c->k->expr.at[operand[i]].deps;
    vars |= c->k->expr.at[operand[i]].vars;
  }
  if (e->op >= X_SUM) {
    if (e->ref >= SC_MAX_VARS) bad(c, "expression %u: reduces no variable", x);
    else vars &= (u8) ~(1u << e->ref);
    deps = (u8)((deps & ~(vars ? 0 : DEP_IDX)) | DEP_TILE);
  }
  if (n && (e->deps != deps || e->vars != vars)) bad(c, "expression %u: its dependences are not its operands'", x);
}

static void check_load(Check *c, Xid x, const Expr *e) {
  const Kernel *k = c->k;
  if (e->ref >= k->view.n) {
    bad(c, "expression %u: loads no view", x);
    return;
  }
  const View *v = &k->view.at[e->ref];
  u8 deps = 0, vars = 0;
  for (u32 i = 0; i < v->rank; i++) {
    if (v->at[i].base >= x || v->at[i].slice) {
      bad(c, "expression %u: loads a slice, or a place computed after it", x);
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
    bad(c, "expression %u: its dependences are not its view's", x);
  if (e->ty != (sc_elem[b->elem].flt ? TY_REAL : TY_INT)) bad(c, "expression %u: not the element's type", x);
}

static void check_leaf(Check *c, Xid x, const Expr *e) {
  const Kernel *k = c->k;
  static const u8 deps[] = {[X_DIM] = DEP_DIM, [X_ARG] = DEP_DIM, [X_AXIS] = DEP_AXIS,
                            [X_INST] = DEP_INST, [X_LOOP] = DEP_LOOP, [X_IDX] = DEP_IDX};
  const u32 most[] = {[X_INT] = UINT32_MAX,   [X_REAL] = UINT32_MAX,  [X_BOOL] = UINT32_MAX,
                      [X_DIM] = k->dim.n,     [X_ARG] = k->arg.n,     [X_AXIS] = k->axis.n,
                      [X_INST] = k->role.n,   [X_LOOP] = k->loop.n,   [X_IDX] = SC_MAX_VARS};
  if (e->ref >= most[e->op]) {
    bad(c, "expression %u: names a %s that does not exist", x, sc_xop[e->op].text);
    return;
  }
  u8 ty = e->op == X_REAL ? TY_REAL : e->op == X_BOOL ? TY_BOOL : TY_INT;
  if (e->op == X_ARG && sc_elem[k->arg.at[e->ref].elem].flt) ty = TY_REAL;
  if (e->ty != ty) bad(c, "expression %u: a %s of the wrong type", x, sc_xop[e->op].text);
  if (e->deps != deps[e->op] || e->vars != (e->op == X_IDX ? 1u << e->ref : 0))
    bad(c, "expression %u: a leaf with the wrong dependences", x);
  if (e->op == X_BOOL && e->num.i != 0 && e->num.i != 1) bad(c, "expression %u: a truth is 0 or 1", x);
}

static void check_exprs(Check *c) {
  for (Xid x = 1; x < c->k->expr.n && !c->wrong; x++) {
    const Expr *e = &c->k->expr.at[x];
    if (e->op >= X_COUNT || e->ty > TY_BOOL) bad(c, "expression %u: no such operation or type", x);
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
      bad(c, "view %u: no such storage, or not its rank", i);
      return;
    }
    if (v->fill && k->buf.at[v->buf].space != SP_STAGE) bad(c, "view %u: fills what is no stage", i);
    for (u32 d = 0; d < v->rank; d++) {
      const Pos *p = &v->at[d];
      if (p->base >= k->expr.n || p->var < -1 || p->var >= SC_MAX_VARS || (p->slice && p->var >= 0))
        bad(c, "view %u: position %u is malformed", i, d);
    }
  }
}

// Positions' types can be looked at once the expressions are known to be sound.
static void check_positions(Check *c) {
  for (u32 i = 0; i < c->k->view.n; i++)
    for (u32 d = 0; d < c->k->view.at[i].rank; d++)
      if (c->k->expr.at[c->k->view.at[i].at[d].base].ty != TY_INT) bad(c, "view %u: a position is no integer", i);
}

static void check_bufs(Check *c) {
  const Kernel *k = c->k;
  for (u32 i = 0; i < k->buf.n && !c->wrong; i++) {
    const Buf *b = &k->buf.at[i];
    if (!b->name || b->space > SP_SPEC || b->elem >= EL_COUNT || b->rank > SC_MAX_RANK || b->dir > 3) {
      bad(c, "storage %u: no name, space, element, rank or direction", i);
      return;
    }
    bool fixed = b->space == SP_STAGE || b->space == SP_REG;
    for (u32 d = 0; d < b->rank; d++)
      if (fixed ? b->ext[d] < 1 : b->dim[d] == 0 || b->dim[d] >= k->expr.n) bad(c, "'%s': dimension %u is malformed", b->name, d);
    const Ring *r = b->space == SP_STAGE && b->ring < k->ring.n ? &k->ring.at[b->ring] : NULL;
    if (b->space == SP_STAGE && (!r || i < r->part0 || i - r->part0 >= r->parts || b->role != r->owner))
      bad(c, "'%s': a stage that is no part of its ring", b->name);
    if (b->space == SP_REG && (b->role >= k->role.n || b->rank > 2)) bad(c, "'%s': a tile of no role, or of rank over 2", b->name);
    if (b->partial && b->space != SP_REG) bad(c, "'%s': only registers are partial", b->name);
  }
}

static void check_rings(Check *c) {
  const Kernel *k = c->k;
  for (u32 i = 0; i < k->ring.n; i++) {
    const Ring *r = &k->ring.at[i];
    if (!r->name || !r->stages || !r->parts) bad(c, "ring %u: no name, stages or parts", i);
    if (r->parts > k->buf.n || r->part0 > k->buf.n - r->parts || (r->owner != SC_NONE && r->owner >= k->role.n)) {
      bad(c, "ring %u: parts or owner out of range", i);
      return;
    }
    for (u32 b = r->part0; b < r->part0 + r->parts; b++)
      if (k->buf.at[b].space != SP_STAGE || k->buf.at[b].ring != i) bad(c, "ring '%s': a part is not its own", r->name);
  }
  for (u32 i = 0; i < k->turn.n; i++) {
    const Turn *t = &k->turn.at[i];
    if (!t->name || t->members > SC_MAX_ROLES || (t->axis != SC_NONE && t->axis >= k->axis.n) || t->keys >= k->expr.n)
      bad(c, "turn %u: name, members, axis or keys out of range", i);
    for (u32 m = 0; m < t->members && m < SC_MAX_ROLES; m++)
      if (t->member[m] >= k->role.n) bad(c, "turn %u: a member is no role", i);
  }
}

// An expression outside roles: its type, and nothing but what `deps` allows.
static void check_scalar(Check *c, Xid x, Ty ty, u8 deps, const char *what) {
  if (x >= c->k->expr.n) {
    bad(c, "%s: no such expression", what);
    return;
  }
  if (!x) return;
  const Expr *e = &c->k->expr.at[x];
  if (e->ty != ty) bad(c, "%s: not of the type that stands there", what);
  if (e->deps & ~deps) bad(c, "%s: depends on what is not known there", what);
}

static void check_interface(Check *c) {
  const Kernel *k = c->k;
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *b = &k->buf.at[i];
    for (u32 d = 0; d < b->rank && (b->space == SP_TENSOR || b->space == SP_SPEC); d++)
      check_scalar(c, b->dim[d], TY_INT, DEP_DIM, "a tensor's dimension");
  }
  for (u32 i = 0; i < k->arg.n; i++) {
    const Arg *a = &k->arg.at[i];
    if (!a->name || a->elem >= EL_COUNT) bad(c, "argument %u: no name or type", i);
    else check_scalar(c, a->init, sc_elem[a->elem].flt ? TY_REAL : TY_INT, DEP_DIM, "an argument's default");
  }
  for (u32 i = 0; i < k->require.n; i++) {
    if (!k->require.at[i].cond) bad(c, "require %u: no condition", i);
    check_scalar(c, k->require.at[i].cond, TY_BOOL, DEP_DIM, "a requirement");
  }
  for (u32 i = 0; i < k->axis.n; i++) {
    const Axis *a = &k->axis.at[i];
    if (!a->name || !a->extent || !a->cluster) bad(c, "axis %u: no name, extent or cluster", i);
    check_scalar(c, a->extent, TY_INT, DEP_DIM | DEP_FETCH, "an axis' extent");
    check_scalar(c, a->section, TY_INT, DEP_DIM | DEP_FETCH, "an axis' section");
  }
  for (u32 i = 0; i < k->turn.n; i++) check_scalar(c, k->turn.at[i].keys, TY_INT, DEP_DIM, "a turn's keys");
  for (u32 i = 0; i < k->dim.n; i++)
    if (!k->dim.at[i].name) bad(c, "dimension %u: no name", i);
  for (u32 i = 0; i < k->param.n; i++)
    if (!k->param.at[i].name) bad(c, "parameter %u: no name", i);
  for (u32 i = 0; i < k->let.n; i++)
    if (!k->let.at[i].name || k->let.at[i].value >= k->expr.n) bad(c, "let %u: no name or value", i);
}

static void check_cases(Check *c) {
  const Kernel *k = c->k;
  const u32 most[] = {[CASE_DIM] = k->dim.n, [CASE_ARG] = k->arg.n, [CASE_TENSOR] = k->buf.n, [CASE_PARAM] = k->param.n};
  for (u32 i = 0; i < k->kase.n; i++) {
    for (u32 j = 0; j < k->kase.at[i].bind.n; j++) {
      const CaseBind *b = &k->kase.at[i].bind.at[j];
      if (b->kind > CASE_PARAM || b->ref >= most[b->kind]) bad(c, "case '%s': binds what does not exist", k->kase.at[i].name);
      else if (b->kind == CASE_TENSOR && k->buf.at[b->ref].space != SP_TENSOR) bad(c, "case '%s': binds no tensor", k->kase.at[i].name);
    }
  }
}

// ---- what an operation may name

// Who may touch a place: registers are their role's, stages their ring's participants'.
static void check_access(Check *c, u32 view, bool write) {
  const Kernel *k = c->k;
  const View *v = &k->view.at[view];
  const Buf *b = &k->buf.at[v->buf];
  if (c->spec) {
    if (b->space != SP_TENSOR && b->space != SP_SPEC) bad(c, "the specification touches '%s', which is storage of a role", b->name);
    return;
  }
  for (u32 d = 0; d < v->rank; d++)
    if (!x_uniform(k, v->at[d].base)) bad(c, "'%s': a position's base is not uniform", b->name);
  if (b->space == SP_SPEC) bad(c, "'%s' of the specification is used in a role", b->name);
  if (b->space == SP_REG && b->role != c->role) bad(c, "'%s' is another role's tile", b->name);
  if (b->space == SP_TENSOR && write && !(b->dir & SCHEDC_OUT) && !b->workspace) bad(c, "'%s' is written, but only an input", b->name);
  if (b->space != SP_STAGE) return;
  const Ring *r = &k->ring.at[b->ring];
  if (!((v->fill ? r->fillers : r->drainers) >> c->role & 1))
    bad(c, "'%s' is used by a role that does not %s its ring", b->name, v->fill ? "fill" : "drain");
}

static void check_node(Check *c, Xid x) {
  const Expr *e = &c->k->expr.at[x];
  if (e->op == X_INST && e->ref != c->role) bad(c, "expression %u: another role's instance", x);
  if (e->op == X_LOOP && !c->open[e->ref]) bad(c, "expression %u: a loop's variable outside the loop", x);
  if (e->op == X_AXIS && c->role == SC_NONE) bad(c, "expression %u: a grid index in the specification", x);
  if (e->op >= X_SUM && (!c->map || e->ref < c->map->outs || e->ref >= c->map->vars))
    bad(c, "expression %u: reduces a variable that is not the map's to reduce", x);
  if (e->op != X_LOAD) return;
  const View *v = &c->k->view.at[e->ref];
  check_access(c, e->ref, false);
  const Buf *b = &c->k->buf.at[v->buf];
  if (b->space == SP_STAGE && !v->fill) c->read[b->ring] = true;
}

// Visits all that is below x and not yet visited in this walk.
static void walk(Check *c, Xid x) {
  Xid operand[SC_MAX_OPERANDS] = {x};
  for (u32 n = x != 0;; n = x_operands(c->k, c->stack.at[--c->stack.n], operand)) {
    for (u32 i = 0; i < n; i++) {
      if (c->stamp[operand[i]] == c->epoch) continue;
      c->stamp[operand[i]] = c->epoch;
      check_node(c, operand[i]);
      PUSH(c->sc, &c->stack, operand[i]);
    }
    if (!c->stack.n || c->wrong) return;
  }
}

// An operand that is the same for the whole instance.
static void check_uniform(Check *c, Xid x, Ty ty, bool optional) {
  if (x >= c->k->expr.n || (!x && !optional)) {
    bad(c, "an operand is no expression");
    return;
  }
  if (!x) return;
  if (c->k->expr.at[x].ty != ty) bad(c, "an operand has the wrong type");
  if (!x_uniform(c->k, x)) bad(c, "an operand is not uniform");
  walk(c, x);
}

// The variables that a view's positions use; sets *twice if one stands in two places.
static u8 view_vars(const Kernel *k, const View *v, bool *twice) {
  u8 vars = 0;
  for (u32 d = 0; d < v->rank; d++) {
    u8 here = k->expr.at[v->at[d].base].vars;
    if (v->at[d].var >= 0) here |= (u8)(1u << v->at[d].var);
    *twice |= (vars & here) != 0;
    vars |= here;
  }
  return vars;
}

static void walk_view(Check *c, u32 view) {
  for (u32 d = 0; d < c->k->view.at[view].rank; d++) walk(c, c->k->view.at[view].at[d].base);
}

static bool view_exists(Check *c, u32 view) {
  if (view >= c->k->view.n) bad(c, "an operand is no view");
  return view < c->k->view.n;
}

// A place in a register tile lies inside it: its offset is a constant and there is room for the variable.
static void check_inside(Check *c, u32 view, const i64 *extent) {
  const View *v = &c->k->view.at[view];
  const Buf *b = &c->k->buf.at[v->buf];
  for (u32 d = 0; d < v->rank && b->space == SP_REG; d++) {
    i64 base, need = v->at[d].var < 0 ? 1 : extent[v->at[d].var];
    if (!x_const_int(c->k, v->at[d].base, &base) || base < 0 || base > b->ext[d] || need > b->ext[d] - base)
      bad(c, "'%s': a position outside the tile, or not known", b->name);
  }
}

static void check_vars(Check *c, const Map *m, i64 *extent) {
  if (m->vars > SC_MAX_VARS || m->outs > m->vars) {
    bad(c, "a map has more variables than there are");
    return;
  }
  for (u32 i = 0; i < m->vars; i++) {
    Xid e = m->var[i].extent;
    if (e >= c->k->expr.n) bad(c, "a map's extent is no expression");
    else if (c->spec) check_scalar(c, e, TY_INT, DEP_DIM, "an extent");
    else if (!x_const_int(c->k, e, &extent[i]) || extent[i] < 0) bad(c, "a map's extent is not a known number");
  }
}

static void check_dst(Check *c, const Map *m, Op op, const i64 *extent) {
  const Kernel *k = c->k;
  const View *v = &k->view.at[m->dst];
  const Buf *b = &k->buf.at[v->buf];
  bool twice = false;
  if (view_vars(k, v, &twice) != (1u << m->outs) - 1 || twice)
    bad(c, "a map's destination does not name each of its variables once");
  if (op == OP_MAPADD && b->space != SP_TENSOR) bad(c, "only tensors are added to");
  if (m->parts && !b->partial) bad(c, "'%s' has no parts", b->name);
  check_access(c, m->dst, true);
  walk_view(c, m->dst);
  if (!c->spec) check_inside(c, m->dst, extent);
  if (b->space == SP_STAGE && v->fill) c->stored[b->ring] = true;
}

static void check_map(Check *c, u32 map, Op op) {
  const Kernel *k = c->k;
  if (map >= k->map.n) {
    bad(c, "an operand is no map");
    return;
  }
  const Map *m = &k->map.at[map];
  bool votes = op == OP_VOTE;
  i64 extent[SC_MAX_VARS] = {0};
  check_vars(c, m, extent);
  if (!m->root || m->root >= k->expr.n || m->cond >= k->expr.n || (m->dst != SC_NONE && m->dst >= k->view.n))
    bad(c, "a map's root, condition or destination is out of range");
  if (c->wrong) return;
  const Expr *root = &k->expr.at[m->root], *cond = &k->expr.at[m->cond];
  if ((m->dst == SC_NONE) != votes) bad(c, "a map has a destination, a vote has none");
  if ((root->ty == TY_BOOL) != votes || (m->cond && cond->ty != TY_BOOL)) bad(c, "a map's root or condition has the wrong type");
  if ((root->vars | cond->vars) >> m->outs) bad(c, "a map uses a variable that it does not have");
  if (c->wrong) return;
  c->map = m;
  walk(c, m->root);
  walk(c, m->cond);
  if (m->dst != SC_NONE) check_dst(c, m, op, extent);
  c->map = NULL;
}

static void check_product(Check *c, u32 product, Op op) {
  const Kernel *k = c->k;
  if (product >= k->product.n) {
    bad(c, "an operand is no product");
    return;
  }
  const Product *q = &k->product.at[product];
  const i64 extent[SC_MAX_VARS] = {q->m, q->n, q->k};
  const u32 view[3] = {q->dst, q->a, q->b};
  static const u8 vars[3] = {1 | 2, 1 | 4, 2 | 4};
  static const char *const name[3] = {"destination", "left factor", "right factor"};
  if (q->m < 1 || q->n < 1 || q->k < 1) bad(c, "a product of nothing");
  for (u32 i = 0; i < 3; i++) {
    bool twice = false;
    if (!view_exists(c, view[i])) return;
    const View *v = &k->view.at[view[i]];
    const Buf *b = &k->buf.at[v->buf];
    if (view_vars(k, v, &twice) != vars[i] || twice) bad(c, "a product's %s has the wrong variables", name[i]);
    if (i == 0 ? b->space != SP_REG : b->space != SP_STAGE && (i == 2 || b->space != SP_REG))
      bad(c, "a product's %s is in the wrong space", name[i]);
    check_access(c, view[i], i == 0);
    walk_view(c, view[i]);
    if (!c->wrong) check_inside(c, view[i], extent);
    if (b->space == SP_STAGE && !v->fill && op == OP_MMAWARP) c->read[b->ring] = true;
  }
}

static u32 slices(const View *v) {
  u32 n = 0;
  for (u32 d = 0; d < v->rank; d++) n += v->at[d].slice;
  return n;
}

// Between a tensor's slice and a stage.
static void check_copy(Check *c, const Ins *ins) {
  const Kernel *k = c->k;
  bool in = ins->op == OP_COPYIN;
  if (!view_exists(c, ins->arg[0]) || !view_exists(c, ins->arg[1])) return;
  u32 tensor = ins->arg[in], stage = ins->arg[!in];
  const View *t = &k->view.at[tensor], *s = &k->view.at[stage];
  const Buf *b = &k->buf.at[s->buf];
  if (k->buf.at[t->buf].space != SP_TENSOR || b->space != SP_STAGE) {
    bad(c, "a copy is between a tensor and a stage");
    return;
  }
  if (s->fill != in) bad(c, "copies in fill a stage, copies out read a held one");
  if (slices(t) != b->rank) bad(c, "a copy's slice has not the stage's rank");
  for (u32 d = 0; d < t->rank; d++)
    if (t->at[d].var >= 0) bad(c, "a copy has no index variables");
  for (u32 d = 0; d < s->rank; d++)
    if (s->at[d].var >= 0) bad(c, "a copy has no index variables");
  check_access(c, ins->arg[0], true);
  check_access(c, ins->arg[1], false);
  walk_view(c, tensor);
  walk_view(c, stage);
  if (in) c->copied[b->ring] = true;
}

static void check_list(Check *c, u32 list) {
  const Kernel *k = c->k;
  if (list >= k->list.n || !k->list.at[list] || k->list.at[list] >= k->list.n - list) {
    bad(c, "a list of tiles is out of range or empty");
    return;
  }
  for (u32 i = 1; i <= k->list.at[list]; i++) {
    u32 b = k->list.at[list + i];
    if (b >= k->buf.n || k->buf.at[b].space != SP_REG || k->buf.at[b].role != c->role) bad(c, "a list names what is not the role's tile");
  }
}

static void check_ring_use(Check *c, const Ins *ins) {
  if (ins->arg[0] >= c->k->ring.n) {
    bad(c, "an operand is no ring");
    return;
  }
  const Ring *r = &c->k->ring.at[ins->arg[0]];
  bool fills = ins->op == OP_ACQUIRE || ins->op == OP_COMMIT;
  (fills ? c->fill : c->drain)[ins->arg[0]] |= (u16)(1u << c->role);
  if (r->owner != SC_NONE && r->owner != c->role) bad(c, "ring '%s' is private to another role", r->name);
}

static void check_turn_use(Check *c, const Ins *ins) {
  if (ins->arg[0] >= c->k->turn.n) {
    bad(c, "an operand is no turn");
    return;
  }
  const Turn *t = &c->k->turn.at[ins->arg[0]];
  bool member = t->axis != SC_NONE;
  for (u32 i = 0; i < t->members; i++) member |= t->member[i] == c->role;
  if (!member) bad(c, "turn '%s' is taken or passed by a role that is no member", t->name);
  if (!t->active) bad(c, "turn '%s' is taken or passed, but not active", t->name);
  if (ins->arg[1] && !t->keys) bad(c, "turn '%s' has no keys", t->name);
}

// ---- operations

static void check_for(Check *c, const Ins *ins) {
  const Kernel *k = c->k;
  u32 loop = ins->arg[0];
  if (loop >= k->loop.n || !k->loop.at[loop].name || k->loop.at[loop].role != c->role || c->used[loop]) {
    bad(c, "no loop, or one without a name, of another role, or used twice");
    return;
  }
  check_uniform(c, ins->arg[1], TY_INT, false);
  check_uniform(c, ins->arg[2], TY_INT, false);
  c->open[loop] = c->used[loop] = true;
}

static void check_operation(Check *c, const Ins *ins) {
  switch (sc_op[ins->op].args[0]) {
    case 'r': check_ring_use(c, ins); break;
    case 'u':
      check_turn_use(c, ins);
      check_uniform(c, ins->arg[1], TY_INT, true);
      break;
    case 'm': check_map(c, ins->arg[0], ins->op); break;
    case 'p': check_product(c, ins->arg[0], ins->op); break;
    case 'v': check_copy(c, ins); break;
    case 'l': check_list(c, ins->arg[0]); break;
    case 'g':
      if (ins->arg[0] >= c->k->buf.n || c->k->buf.at[ins->arg[0]].space != SP_TENSOR) bad(c, "an operand is no tensor");
      break;
    case 'o': check_for(c, ins); break;
    case 'x': check_uniform(c, ins->arg[0], TY_BOOL, false); break;
    default: break;
  }
  u8 flags = ins->op == OP_FOR ? INS_REVERSED : ins->op == OP_COPYIN ? INS_MULTICAST : ins->op == OP_COPYWAIT ? INS_READ : 0;
  if (ins->flags & ~flags) bad(c, "a flag that the operation does not have");
}

// Openers and closers match, and each knows its partner; an `else` closes its `if` and opens in turn.
// `from`: the innermost open block. Returns the new one.
static u32 check_nest(Check *c, const Code *code, u32 i, u32 from, u32 *outer) {
  const Ins *ins = &code->at[i];
  u16 effects = sc_op[ins->op].effects;
  if (effects & OPENS) outer[i] = from;
  if (!(effects & (CLOSES | SPLITS))) return effects & OPENS ? i : from;
  const Ins *head = from == SC_NONE ? NULL : &code->at[from];
  Op end = head ? head->op + 1 : 0;  // the next row that closes or splits; after a split, the next but one
  while (head && !(sc_op[end].effects & (CLOSES | SPLITS))) end++;
  bool fits = head && (ins->op == end || (sc_op[end].effects & SPLITS && ins->op == end + 1));
  if (!fits || head->nest != i || (effects & CLOSES && ins->nest != from)) {
    bad(c, "'%s' does not close the block that is open", sc_op[ins->op].text);
    return from;
  }
  if (head->op == OP_FOR) c->open[head->arg[0]] = false;
  outer[i] = outer[from];
  return effects & CLOSES ? outer[from] : i;
}

// No ring operation, turn or asynchronous operation under a vote.
static void check_vote(Check *c, Op op) {
  if (sc_op[op].unit == UNIT_sync || sc_op[op].unit == UNIT_tma || sc_op[op].effects & (STARTS | RETIRES))
    bad(c, "'%s' under a vote", sc_op[op].text);
}

static void check_role(Check *c, u32 role) {
  const Role *r = &c->k->role.at[role];
  const Code *code = &r->code;
  if (!r->name || !r->instances || (r->warps != 1 && r->warps != 4)) bad(c, "role %u: no name, or instances, or not of 1 or 4 warps", role);
  if (!code->n || code->at[0].op != OP_TILE || code->at[code->n - 1].op != OP_ENDTILE) {
    bad(c, "role %u: its code is not framed by tile and endtile", role);
    return;
  }
  u32 from = SC_NONE, vote = SC_NONE, *outer = NEWS(c->sc, u32, code->n);
  c->role = role;
  for (u32 i = 0; i < code->n && !c->wrong; i++) {
    const Ins *ins = &code->at[i];
    if (ins->op >= OP_COUNT) {
      bad(c, "role %u: no such operation", role);
      return;
    }
    c->epoch++;
    if (vote != SC_NONE) check_vote(c, ins->op);
    if (i && from == SC_NONE) bad(c, "'%s' outside the tile", sc_op[ins->op].text);
    from = check_nest(c, code, i, from, outer);
    if (ins->op == OP_VOTE && vote == SC_NONE) vote = i;
    if (ins->op == OP_ENDVOTE && ins->nest == vote) vote = SC_NONE;
    if (!c->wrong) check_operation(c, ins);
    if (c->wrong) c->wrong = sc_printf(c->sc, "role '%s', operation %u (%s): %s", r->name, i, sc_op[ins->op].text, c->wrong);
  }
  if (from != SC_NONE && !c->wrong) bad(c, "role '%s': a block is not closed", r->name);
  c->role = SC_NONE;
}

// What the rings say of their users is what the code does.
static void check_users(Check *c) {
  for (u32 i = 0; i < c->k->ring.n; i++) {
    const Ring *r = &c->k->ring.at[i];
    if (r->fillers != c->fill[i] || r->drainers != c->drain[i]) bad(c, "ring '%s': its fillers or drainers are not those of the code", r->name);
    if (r->copied != c->copied[i] || r->stored != c->stored[i] || r->read != c->read[i])
      bad(c, "ring '%s': copied, stored or read is not what the code does", r->name);
  }
}

static void check_spec(Check *c) {
  c->spec = true;
  for (u32 i = 0; i < c->k->spec.n && !c->wrong; i++) {
    c->epoch++;
    check_map(c, c->k->spec.at[i], OP_MAP);
    if (c->wrong) c->wrong = sc_printf(c->sc, "specification, equation %u: %s", i, c->wrong);
  }
  c->spec = false;
}

static void check_launch(Check *c, const Launch *l) {
  const Kernel *k = c->k, *in = l->kernel;
  if (!in || in->launch.n) {
    bad(c, "a launch of nothing, or of a sequence");
    return;
  }
  for (u32 i = 0; i < in->dim.n; i++)
    if (l->dim[i] >= k->dim.n) bad(c, "launch of '%s': a dimension is not bound", in->name);
  for (u32 i = 0; i < in->arg.n; i++)
    if (l->arg[i] >= k->arg.n) bad(c, "launch of '%s': an argument is not bound", in->name);
  for (u32 i = 0; i < in->buf.n; i++) {
    if (in->buf.at[i].space != SP_TENSOR) continue;
    if (l->tensor[i] >= k->buf.n || k->buf.at[l->tensor[i]].space != SP_TENSOR) bad(c, "launch of '%s': a tensor is not bound", in->name);
  }
  const char *wrong = c->wrong ? NULL : sc_wellformed(c->sc, in);
  if (wrong) bad(c, "kernel '%s': %s", in->name, wrong);
}

static void check_all(Check *c) {
  const Kernel *k = c->k;
  if (k->role.n > SC_MAX_ROLES) bad(c, "more than %d roles", SC_MAX_ROLES);
  if (k->launch.n && (k->role.n || k->ring.n || k->turn.n || k->axis.n)) bad(c, "a sequence has code of its own");
  if (!c->wrong) check_bufs(c);
  if (!c->wrong) check_rings(c);
  if (!c->wrong) check_views(c);
  if (!c->wrong) check_exprs(c);
  if (!c->wrong) check_positions(c);
  if (!c->wrong) check_interface(c);
  if (!c->wrong) check_cases(c);
  if (!c->wrong) check_spec(c);
  for (u32 i = 0; i < k->role.n && !c->wrong; i++) check_role(c, i);
  if (!c->wrong) check_users(c);
  for (u32 i = 0; i < k->launch.n && !c->wrong; i++) check_launch(c, &k->launch.at[i]);
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
