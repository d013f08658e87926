// wellformed_code.c - what roles and the specification do with a kernel's tables: who may touch
// what, which variables and loops are in scope, block structure, uniform operands. In: tables that
// wellformed.c found sound. Out: Check.wrong.
#include "compiler/ir/wellformed.h"

void sc_bad(Check *c, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  if (!c->wrong) c->wrong = sc_vprintf(c->sc, fmt, ap);
  va_end(ap);
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

// ---- what an operation may name

// Who may touch a buffer: registers are their role's, stages their ring's participants'.
static void check_access(Check *c, u32 view, bool write) {
  const Kernel *k = c->k;
  const View *v = &k->view.at[view];
  const Buf *b = &k->buf.at[v->buf];
  if (c->spec) {
    if (b->space != SP_TENSOR && b->space != SP_SPEC)
      sc_bad(c, "the specification touches '%s', which is storage of a role", b->name);
    return;
  }
  for (u32 d = 0; d < v->rank; d++)
    if (!x_uniform(k, v->at[d].base)) sc_bad(c, "'%s': a position's base is not uniform", b->name);
  if (b->space == SP_SPEC) sc_bad(c, "'%s' of the specification is used in a role", b->name);
  if (b->space == SP_REG && b->role != c->role) sc_bad(c, "'%s' is another role's tile", b->name);
  if (write && sc_is_argument(b) && !sc_is_output(b))
    sc_bad(c, "'%s' is written, but only an input", b->name);
  if (b->space != SP_STAGE) return;
  const Ring *r = &k->ring.at[b->ring];
  if (!((v->fill ? r->fillers : r->drainers) >> c->role & 1))
    sc_bad(c, "'%s' is used by a role that does not %s its ring", b->name,
           v->fill ? "fill" : "drain");
}

static void check_node(Check *c, Xid x) {
  const Expr *e = &c->k->expr.at[x];
  if (e->op == X_INST && e->ref != c->role) sc_bad(c, "expression %u: another role's instance", x);
  if (e->op == X_LOOP && !c->open[e->ref])
    sc_bad(c, "expression %u: a loop's variable outside the loop", x);
  if (e->op == X_AXIS && c->role == SC_NONE)
    sc_bad(c, "expression %u: a grid index in the specification", x);
  if (x_reduces(e->op) && (!c->map || e->ref < c->map->outs || e->ref >= c->map->vars))
    sc_bad(c, "expression %u: reduces a variable that is not the map's to reduce", x);
  if (e->op == X_LOAD) check_access(c, e->ref, false);
}

// Visits all that is below x and not yet visited in this walk.
static void walk(Check *c, Xid x) {
  x_from(&c->below, x);
  while (!c->wrong && (x = x_next(&c->below))) check_node(c, x);
}

// An operand that is the same for the whole instance.
static void check_uniform(Check *c, Xid x, Ty ty, bool optional) {
  if (x >= c->k->expr.n || (!x && !optional)) {
    sc_bad(c, "an operand is no expression");
    return;
  }
  if (!x) return;
  if (c->k->expr.at[x].ty != ty) sc_bad(c, "an operand has the wrong type");
  if (!x_uniform(c->k, x)) sc_bad(c, "an operand is not uniform");
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
  if (view >= c->k->view.n) sc_bad(c, "an operand is no view");
  return view < c->k->view.n;
}

// A position in a register tile lies inside it: its offset is a constant and there is room for the
// variable.
static void check_inside(Check *c, u32 view, const i64 *extent) {
  const View *v = &c->k->view.at[view];
  const Buf *b = &c->k->buf.at[v->buf];
  for (u32 d = 0; d < v->rank && b->space == SP_REG; d++) {
    i64 base, need = v->at[d].var < 0 ? 1 : extent[v->at[d].var];
    if (!x_const_int(c->k, v->at[d].base, &base) || base < 0 || base > b->ext[d] ||
        need > b->ext[d] - base)
      sc_bad(c, "'%s': a position outside the tile, or not known", b->name);
  }
}

static void check_vars(Check *c, const Map *m, i64 *extent) {
  for (u32 i = 0; i < m->vars; i++) {
    Xid e = m->var[i].extent;
    if (e >= c->k->expr.n) sc_bad(c, "a map's extent is no expression");
    else if (c->spec) sc_check_scalar(c, e, TY_INT, DEP_DIM, "an extent");
    else if (!x_const_int(c->k, e, &extent[i]) || extent[i] < 0)
      sc_bad(c, "a map's extent is not a known number");
  }
}

static void check_dst(Check *c, const Map *m, Op op, const i64 *extent) {
  const Kernel *k = c->k;
  const View *v = &k->view.at[m->dst];
  const Buf *b = &k->buf.at[v->buf];
  bool twice = false;
  if (view_vars(k, v, &twice) != (1u << m->outs) - 1 || twice)
    sc_bad(c, "a map's destination does not name each of its variables once");
  if (op == OP_MAPADD && b->space != SP_TENSOR) sc_bad(c, "only tensors are added to");
  if (m->parts && !b->partial) sc_bad(c, "'%s' has no parts", b->name);
  check_access(c, m->dst, true);
  walk_view(c, m->dst);
  if (!c->spec) check_inside(c, m->dst, extent);
}

static void check_map(Check *c, u32 map, Op op) {
  const Kernel *k = c->k;
  if (map >= k->map.n) {
    sc_bad(c, "an operand is no map");
    return;
  }
  const Map *m = &k->map.at[map];
  bool votes = op == OP_VOTE;
  i64 extent[SC_MAX_VARS] = {0};
  check_vars(c, m, extent);
  if (!m->root || m->root >= k->expr.n || m->cond >= k->expr.n ||
      (m->dst != SC_NONE && m->dst >= k->view.n))
    sc_bad(c, "a map's root, condition or destination is out of range");
  if (c->wrong) return;
  const Expr *root = &k->expr.at[m->root], *cond = &k->expr.at[m->cond];
  if ((m->dst == SC_NONE) != votes) sc_bad(c, "a map has a destination, a vote has none");
  if ((root->ty == TY_BOOL) != votes || (m->cond && cond->ty != TY_BOOL))
    sc_bad(c, "a map's root or condition has the wrong type");
  if ((root->vars | cond->vars) >> m->outs)
    sc_bad(c, "a map uses a variable that it does not have");
  if (c->wrong) return;
  c->map = m;
  walk(c, m->root);
  walk(c, m->cond);
  if (m->dst != SC_NONE) check_dst(c, m, op, extent);
  c->map = NULL;
}

static void check_product(Check *c, u32 product) {
  const Kernel *k = c->k;
  if (product >= k->product.n) {
    sc_bad(c, "an operand is no product");
    return;
  }
  const Product *q = &k->product.at[product];
  const i64 extent[SC_MAX_VARS] = {q->m, q->n, q->k};
  const u32 view[3] = {q->dst, q->a, q->b};
  static const u8 vars[3] = {1 | 2, 1 | 4, 2 | 4};
  static const char *const name[3] = {"destination", "left factor", "right factor"};
  for (u32 i = 0; i < 3; i++) {
    bool twice = false;
    if (!view_exists(c, view[i])) return;
    const View *v = &k->view.at[view[i]];
    const Buf *b = &k->buf.at[v->buf];
    if (view_vars(k, v, &twice) != vars[i] || twice)
      sc_bad(c, "a product's %s has the wrong variables", name[i]);
    if (i == 0 ? b->space != SP_REG : b->space != SP_STAGE && (i == 2 || b->space != SP_REG))
      sc_bad(c, "a product's %s is in the wrong space", name[i]);
    check_access(c, view[i], i == 0);
    walk_view(c, view[i]);
    if (!c->wrong) check_inside(c, view[i], extent);
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
    sc_bad(c, "a copy is between a tensor and a stage");
    return;
  }
  if (s->fill != in) sc_bad(c, "copies in fill a stage, copies out read a held one");
  if (slices(t) != b->rank) sc_bad(c, "a copy's slice has not the stage's rank");
  check_access(c, ins->arg[0], true);
  check_access(c, ins->arg[1], false);
  walk_view(c, tensor);
  walk_view(c, stage);
}

static void check_list(Check *c, u32 list) {
  const Kernel *k = c->k;
  if (list >= k->list.n || !k->list.at[list] || k->list.at[list] >= k->list.n - list) {
    sc_bad(c, "an operand is no list, or an empty one");
    return;
  }
  for (u32 i = 1; i <= k->list.at[list]; i++) {
    u32 b = k->list.at[list + i];
    if (b >= k->buf.n || k->buf.at[b].space != SP_REG || k->buf.at[b].role != c->role)
      sc_bad(c, "a list names what is not the role's tile");
  }
}

static void check_ring_use(Check *c, const Ins *ins) {
  if (ins->arg[0] >= c->k->ring.n) {
    sc_bad(c, "an operand is no ring");
    return;
  }
  const Ring *r = &c->k->ring.at[ins->arg[0]];
  bool fills = ins->op == OP_ACQUIRE || ins->op == OP_COMMIT;
  (fills ? c->fill : c->drain)[ins->arg[0]] |= (u16)(1u << c->role);
  if (r->owner != SC_NONE && r->owner != c->role)
    sc_bad(c, "ring '%s' is private to another role", r->name);
}

static void check_turn_use(Check *c, const Ins *ins) {
  if (ins->arg[0] >= c->k->turn.n) {
    sc_bad(c, "an operand is no turn");
    return;
  }
  const Turn *t = &c->k->turn.at[ins->arg[0]];
  if (t->axis == SC_NONE && !sc_is_member(t, c->role))
    sc_bad(c, "turn '%s' is taken or passed by a role that is no member", t->name);
  if (!t->active) sc_bad(c, "turn '%s' is taken or passed, but not active", t->name);
  if (ins->arg[1] && !t->keys) sc_bad(c, "turn '%s' has no keys", t->name);
}

// ---- operations

static void check_for(Check *c, const Ins *ins) {
  const Kernel *k = c->k;
  u32 loop = ins->arg[0];
  if (loop >= k->loop.n || k->loop.at[loop].role != c->role || c->used[loop]) {
    sc_bad(c, "no loop, or one of another role, or used twice");
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
    case 'm':
    case 'c': check_map(c, ins->arg[0], ins->op); break;
    case 'p': check_product(c, ins->arg[0]); break;
    case 'w': check_copy(c, ins); break;
    case 'l': check_list(c, ins->arg[0]); break;
    case 'g':
      if (ins->arg[0] >= c->k->buf.n || c->k->buf.at[ins->arg[0]].space != SP_TENSOR)
        sc_bad(c, "an operand is no tensor");
      break;
    case 'o': check_for(c, ins); break;
    case 'x': check_uniform(c, ins->arg[0], TY_BOOL, false); break;
    default: break;
  }
}

// Openers and closers match, and each knows its partner; an `else` closes its `if` and opens in
// turn. `from`: the innermost open block. Returns the new one.
static u32 check_nest(Check *c, const Code *code, u32 i, u32 from, u32 *outer) {
  const Ins *ins = &code->at[i];
  u8 effects = sc_op[ins->op].effects;
  if (effects & OPENS) outer[i] = from;
  if (!(effects & (CLOSES | SPLITS))) return effects & OPENS ? i : from;
  const Ins *head = from == SC_NONE ? NULL : &code->at[from];
  // The next row that closes or splits; where it splits, the one after it closes.
  Op end = head ? head->op + 1 : 0;
  while (head && !(sc_op[end].effects & (CLOSES | SPLITS))) end++;
  bool fits = head && (ins->op == end || (sc_op[end].effects & SPLITS && ins->op == end + 1));
  if (!fits || head->nest != i || (effects & CLOSES && ins->nest != from)) {
    sc_bad(c, "'%s' does not close the block that is open", sc_op[ins->op].text);
    return from;
  }
  if (head->op == OP_FOR) c->open[head->arg[0]] = false;
  outer[i] = outer[from];
  return effects & CLOSES ? outer[from] : i;
}

// around: the innermost block that is open around the operation, an `else` counted as one.
static void check_around(Check *c, const Code *code, u32 i, u32 around) {
  if (around != SC_NONE && code->at[around].op == OP_ELSE) around = code->at[around].around;
  if (code->at[i].around != around) sc_bad(c, "it is not in the block that it says");
}

void sc_check_role(Check *c, u32 role) {
  const Role *r = &c->k->role.at[role];
  const Code *code = &r->code;
  if (!code->n || code->at[0].op != OP_TILE || code->at[code->n - 1].op != OP_ENDTILE) {
    sc_bad(c, "role '%s': its code is not framed by tile and endtile", r->name);
    return;
  }
  u32 from = SC_NONE, vote = SC_NONE, *outer = NEWS(c->sc, u32, code->n);
  c->role = role;
  for (u32 i = 0; i < code->n && !c->wrong; i++) {
    const Ins *ins = &code->at[i];
    x_begin(&c->below, 0);
    if (vote != SC_NONE && sc_op[ins->op].effects & COLLECTIVE)
      sc_bad(c, "'%s' under a vote", sc_op[ins->op].text);
    if (vote != SC_NONE && ins->op == OP_VOTE && ins->flags & INS_TOGETHER &&
        !(code->at[vote].flags & INS_TOGETHER))
      sc_bad(c, "a vote together under one of each warp");
    u32 before = from;
    from = check_nest(c, code, i, from, outer);
    check_around(c, code, i, sc_op[ins->op].effects & CLOSES ? from : before);
    if (ins->op == OP_VOTE && vote == SC_NONE) vote = i;
    if (ins->op == OP_ENDVOTE && ins->nest == vote) vote = SC_NONE;
    if (!c->wrong) check_operation(c, ins);
    if (c->wrong)
      c->wrong = sc_printf(c->sc, "role '%s', operation %u (%s): %s", r->name, i,
                           sc_op[ins->op].text, c->wrong);
  }
  c->role = SC_NONE;
}

// What the rings say of their users is what the code does.
void sc_check_users(Check *c) {
  for (u32 i = 0; i < c->k->ring.n; i++) {
    const Ring *r = &c->k->ring.at[i];
    if (r->fillers != c->fill[i] || r->drainers != c->drain[i])
      sc_bad(c, "ring '%s': its fillers or drainers are not those of the code", r->name);
  }
}

void sc_check_spec(Check *c) {
  c->spec = true;
  for (u32 i = 0; i < c->k->spec.n && !c->wrong; i++) {
    x_begin(&c->below, 0);
    check_map(c, c->k->spec.at[i], OP_MAP);
    if (c->wrong) c->wrong = sc_printf(c->sc, "specification, equation %u: %s", i, c->wrong);
  }
  c->spec = false;
}
