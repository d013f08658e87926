// declare.c - declarations: tensors and scalars (and with them launch dimensions), rings, register
// tiles, the grid, turns and roles -> the kernel's tables.
// Called by bind.c, seq.c, stmt.c and round.c; calls expr.c for extents, and scope.c.
#include "compiler/lower/lower.h"

bool low_element_type(Low *l, const Node *type, Elem *out) {
  const Name *n = low_find(l, type->name);
  if (n && n->kind == NM_ELEM) return *out = (Elem)n->elem, true;
  if (!n && low_elem_named(type->name, out)) return true;
  Span at = type->name_span.hi ? type->name_span : type->span;
  if (!n) return low_unbound_type(l, type->name, at), false;
  if (n->kind == NM_BAD) return false;
  Diag *d = low_error(l, D_N_KIND, at, "'%s' is %s, not an element type", type->name,
                      low_kind_text(l, n));
  sc_note(l->sc, d, n->span, "declared here");
  return false;
}

static bool rank_of(Low *l, const Node *type, u8 *rank) {
  u32 n = 0;
  for (const Node *d = type->a; d; d = d->next) n++;
  *rank = (u8)(n <= SC_MAX_RANK ? n : 0);
  if (n > SC_MAX_RANK)
    low_error(l, D_R9_RANK, type->span, "at most %d dimensions are possible, and these are %u",
              SC_MAX_RANK, n);
  return n <= SC_MAX_RANK;
}

// ---- tensors and scalars

bool low_integers_below(Low *l, const Node *n) {
  for (Xid x; (x = x_next(&l->below));) {
    if (low_at(l, x)->ty != TY_REAL) continue;
    Diag *d = low_error(l, D_R9_UNIFORM, n->span,
                        "a launch works this out, and so does the kernel: of reals they may get "
                        "different answers");
    sc_help(l->sc, d, "let the caller give an i32 scalar for what the reals decide");
    return false;
  }
  return true;
}

static bool of_integers(Low *l, const Node *n, Xid x) {
  x_begin(&l->below, 0);
  x_from(&l->below, x);
  return low_integers_below(l, n);
}

// Is what a launch works out made of what that knows?
static bool known_at_launch(Low *l, const Node *n, Xid x, const char *what) {
  if (!x || !(low_at(l, x)->deps & ~DEP_DIM)) return x;
  low_error(l, D_R9_UNIFORM, n->span, "%s built from params, dimensions and scalars", what);
  return false;
}

static void scalar(Low *l, const Node *group, const Node *name, Elem elem, bool input) {
  Name *n = low_declare(l, name->name, name->span, NM_BAD);
  if (!input) {
    Diag *d = low_error(l, D_R9_RANK, name->span,
                        "'%s' has no dimensions: only 'in' scalars are possible", name->name);
    sc_help(l->sc, d, "give it a dimension: %s : f32[1]", name->name);
    return;
  }
  if (elem != EL_F32 && elem != EL_I32) {
    low_error(l, D_R9_TYPE, group->b->span, "a scalar is f32 or i32");
    return;
  }
  Xid init = 0;
  if (group->c) {
    init = elem == EL_I32 ? low_int(l, group->c) : low_real(l, group->c, low_uniform(l, group->c));
    if (!known_at_launch(l, group->c, init, "a scalar's default is")) return;
  }
  PUSH(l->sc, &l->k->arg, ((Arg){name->name, name->span, (u8)elem, init}));
  n->kind = NM_VALUE;
  n->x = x_leaf(l->sc, l->k, X_ARG, sc_elem_ty(elem), l->k->arg.n - 1);
}

// An integer of params and launch dimensions; 0: a report was made.
static Xid extent(Low *l, const Node *n, const char *what) {
  l->dims = true;
  Xid x = low_int(l, n);
  l->dims = false;
  if (!x) return 0;
  if (!(low_at(l, x)->deps & ~DEP_DIM)) return of_integers(l, n, x) ? x : 0;
  low_error(l, D_R9_UNIFORM, n->span, "%s is built from params and launch dimensions", what);
  return 0;
}

static bool tensor_dims(Low *l, const Node *type, Buf *b) {
  u32 i = 0;
  bool ok = true;
  for (const Node *d = type->a; d; d = d->next, i++) {
    b->dim[i] = extent(l, d, "a tensor's dimension");
    i64 known;
    ok &= b->dim[i] != 0;
    if (b->dim[i] && x_const_int(l->k, b->dim[i], &known) && known < 0) {
      low_error(l, D_R9_RANGE, d->span, "this dimension is %lld", (long long)known);
      ok = false;
    }
  }
  return ok;
}

// What a declaration says of the elements: `in 0 .. n`, `rising`.
static bool elements(Low *l, const Node *group, bool input, Buf *b) {
  const Node *range = group->d;
  Span at = range ? range->span : group->span;
  if (!range && !(group->flags & F_RISING)) return true;
  if (!input || !b->rank || b->elem != EL_I32) {
    low_error(l, D_R9_TYPE, at, "only of the elements of an `in` tensor of i32 can this be said");
    return false;
  }
  if (group->flags & F_RISING && b->rank > 1) {
    low_error(l, D_R9_RANK, at, "only a tensor of one dimension can be rising");
    return false;
  }
  b->rising = group->flags & F_RISING;
  if (!range) return true;
  b->least = extent(l, range->a, "the range of a tensor's elements");
  b->end = extent(l, range->b, "the range of a tensor's elements");
  return b->least && b->end;
}

static void tensor(Low *l, const Node *group, const Node *name, Buf b) {
  b.name = name->name;
  b.span = name->span;
  Name *n = low_declare(l, name->name, name->span, NM_BUF);
  if (group->c && !b.workspace) {
    Diag *d = low_error(l, D_N_KIND, group->c->span, "only scalars have defaults");
    sc_help(l->sc, d, "a workspace of a sequence can be set to 0");
  }
  PUSH(l->sc, &l->k->buf, b);
  n->ref = l->k->buf.n - 1;
}

void low_tensors(Low *l, const Node *item, bool workspace) {
  bool there;
  low_guard(l, item->b, "tensor", &there);
  if (!there) low_leave_out(l, item, NULL);
  for (const Node *g = item->a; g && there; g = g->next) {
    if (g->kind != ND_GROUP || g->b->kind != ND_TYPE) continue;
    Buf b = {.space = SP_TENSOR,
             .dir = (u8)(workspace ? F_IN | F_OUT : item->flags & (F_IN | F_OUT)),
             .workspace = workspace,
             .zeroed = workspace && g->c,
             .ring = SC_NONE,
             .role = SC_NONE};
    Elem elem = EL_F32;
    bool ok = low_element_type(l, g->b, &elem);
    Value zero;
    b.elem = (u8)elem;
    // Its dimensions are declared even so, for what else names them.
    ok &= rank_of(l, g->b, &b.rank) && (!b.rank || tensor_dims(l, g->b, &b));
    ok &= elements(l, g, !workspace && item->flags == F_IN, &b);
    if (ok && b.zeroed &&
        (!low_value(l, g->c, &zero) || zero.kind > VAL_REAL ||
         (zero.kind == VAL_INT ? zero.num.i != 0 : zero.num.f != 0)))
      low_error(l, D_N_KIND, g->c->span, "a workspace can be set to 0 only");
    for (const Node *n = g->a; n; n = n->next) {
      if (!ok) low_declare(l, n->name, n->span, NM_BAD);
      else if (b.rank) tensor(l, g, n, b);
      else scalar(l, g, n, elem, !workspace && !(item->flags & F_OUT));
    }
  }
}

// ---- rings and register tiles

static bool constant_dims(Low *l, const Node *type, Buf *b) {
  i64 bytes = sc_elem[b->elem].bytes;
  u32 i = 0;
  for (const Node *d = type->a; d; d = d->next, i++) {
    if (!low_const(l, d, "this dimension", 1, 1 << 20, &b->ext[i])) return false;
    bytes *= b->ext[i];
    if (bytes > 1 << 24) {
      low_error(l, D_R9_RANGE, type->span, "this tile is larger than any memory on the chip");
      return false;
    }
  }
  if (i) return true;
  low_error(l, D_R9_RANK, type->span, "a tile has at least one dimension");
  return false;
}

static bool tile_type(Low *l, const Node *type, Buf *b) {
  Elem elem = EL_F32;
  if (type->kind != ND_TYPE || !low_element_type(l, type, &elem) || !rank_of(l, type, &b->rank))
    return false;
  b->elem = (u8)elem;
  return constant_dims(l, type, b);
}

static u32 count_parts(const Node *record) {
  u32 n = 0;
  for (const Node *g = record->a; g; g = g->next) {
    for (const Node *p = g->a; p; p = p->next) n++;
  }
  return n;
}

static bool record_parts(Low *l, const Node *record, RingDecl *d, Buf b) {
  u32 at = 0;
  for (const Node *g = record->a; g; g = g->next) {
    if (g->kind != ND_GROUP || !tile_type(l, g->b, &b)) return false;
    for (const Node *p = g->a; p; p = p->next) {
      for (u32 i = 0; i < at; i++) {
        if (d->part[i].name != p->name) continue;
        sc_note(l->sc, low_error(l, D_N_TWICE, p->span, "'%s' is declared twice", p->name),
                d->part[i].span, "a part");
        return false;
      }
      b.name = p->name;
      b.span = p->span;
      d->part[at++] = b;
    }
  }
  return true;
}

static RingDecl *ring_decl(Low *l, const Node *g, const Node *name, u32 owner) {
  i64 stages = 1;
  Buf b = {.name = name->name, .span = name->span, .space = SP_STAGE, .role = owner};
  RingDecl *d = NEW(l->sc, RingDecl);
  d->ring = (Ring){.name = name->name, .span = name->span, .parts = 1, .owner = owner};
  d->id = SC_NONE;
  d->number = l->ring.n;
  if (g->b->kind == ND_RECORD) d->ring.parts = count_parts(g->b);
  if (!d->ring.parts) return NULL;
  d->part = NEWS(l->sc, Buf, d->ring.parts);
  if (g->b->kind == ND_RECORD ? !record_parts(l, g->b, d, b) : !tile_type(l, g->b, &b)) return NULL;
  if (g->b->kind != ND_RECORD) *d->part = b;
  if (g->d && !low_const(l, g->d, "the number of stages", 1, 64, &stages)) return NULL;
  d->ring.stages = (u32)stages;
  if (l->ring.n == LOW_MAX_RINGS) {
    low_error(l, D_P_LIMIT, name->span, "a kernel has at most %d rings", LOW_MAX_RINGS);
    return NULL;
  }
  PUSH(l->sc, &l->ring, d);
  return d;
}

void low_rings(Low *l, const Node *item, u32 owner) {
  bool there, ok = low_guard(l, item->b, "ring", &there);
  for (const Node *g = item->a; g; g = g->next) {
    if (g->kind != ND_GROUP) continue;
    for (const Node *n = g->a; n; n = n->next) {
      if (ok && !there) {  // not looked at: extents may make sense only where it is
        low_declare_absent(l, n->name, n->span, "ring", item->b->span);
        continue;
      }
      RingDecl *d = ok ? ring_decl(l, g, n, owner) : NULL;
      low_declare(l, n->name, n->span, d ? NM_RING : NM_BAD)->ring = d;
    }
  }
}

bool low_regs(Low *l, const Node *g, u32 *first, u32 *count) {
  Buf b = {.space = SP_REG, .ring = SC_NONE, .role = l->role, .partial = g->flags & F_PARTIAL};
  bool ok = g->kind == ND_GROUP && tile_type(l, g->b, &b);
  if (ok && b.rank > 2) {
    low_error(l, D_R9_RANK, g->b->span, "a register tile has one or two dimensions");
    ok = false;
  }
  if (ok && b.partial && (b.rank != 1 || b.elem != EL_F32)) {
    low_error(l, D_R9_TILE, g->span,
              "'partial' is for f32 vectors: a part of each element for each lane of a quad");
    ok = false;
  }
  *first = l->k->buf.n;
  *count = 0;
  for (const Node *n = g->a; n; n = n->next) {
    Name *name = low_declare(l, n->name, n->span, ok ? NM_BUF : NM_BAD);
    if (!ok) continue;
    b.name = n->name;
    b.span = n->span;
    name->ref = l->k->buf.n;
    PUSH(l->sc, &l->k->buf, b);
    ++*count;
  }
  return ok;
}

// ---- the grid

static void axis(Low *l, const Node *a) {
  Axis x = {.name = a->name,
            .span = a->name_span.hi ? a->name_span : a->span,
            .reversed = a->flags & F_REVERSED,
            .cluster = 1};
  if (l->k->axis.n == SC_MAX_AXES) {
    low_error(l, D_R9_RANK, a->span, "a grid has at most %d indices", SC_MAX_AXES);
    return;
  }
  x.extent = low_int(l, a->a);
  x.section = a->b ? low_int(l, a->b) : 0;
  bool ok = x.extent && (x.section || !a->b);
  const Node *part[2] = {a->a, a->b};
  const Xid value[2] = {x.extent, x.section};
  for (int i = 0; i < 2; i++)
    if (value[i])
      ok &=
          known_at_launch(l, part[i], value[i], "the grid is") && of_integers(l, part[i], value[i]);
  i64 known;
  if (ok && x.section && x_const_int(l->k, x.section, &known) && known < 1) {
    low_error(l, D_R9_RANGE, a->b->span, "a section has at least one element");
    ok = false;
  }
  Name *n = low_declare(l, a->name, x.span, ok ? NM_VALUE : NM_BAD);
  if (!ok) return;
  PUSH(l->sc, &l->k->axis, x);
  n->x = x_leaf(l->sc, l->k, X_AXIS, TY_INT, l->k->axis.n - 1);
}

static Axis *axis_named(Low *l, Sym name, Span at) {
  for (u32 i = 0; i < l->k->axis.n; i++) {
    if (l->k->axis.at[i].name == name) return &l->k->axis.at[i];
  }
  low_error(l, D_N_KIND, at, "'%s' is no index of the grid", name);
  return NULL;
}

void low_grid(Low *l, const Node *item) {
  if (l->k->axis.n) {
    sc_note(l->sc, low_error(l, D_N_TWICE, item->span, "a kernel has one grid"),
            l->k->axis.at[0].span, "the first one");
    return;
  }
  for (const Node *a = item->a; a; a = a->next) {
    if (a->kind == ND_AXIS) axis(l, a);
  }
  i64 ctas = 1;
  for (const Node *c = item->b; c; c = c->next) {
    i64 n;
    Axis *x = c->kind == ND_CLUSTER ? axis_named(l, c->name, c->span) : NULL;
    if (!x || !low_const(l, c->a, "the size of a cluster", 1, 8, &n)) continue;
    x->cluster = (u32)n;
    ctas *= n;
  }
  if (ctas > 8)
    low_error(l, D_R9_RANGE, item->span, "a cluster of %lld CTAs: at most 8 are portable",
              (long long)ctas);
  l->k->grid = item->flags & F_PERSISTENT ? GRID_PERSISTENT
               : item->flags & F_DYNAMIC  ? GRID_DYNAMIC
                                          : GRID_PLAIN;
}

// ---- roles and turns

void low_declare_role(Low *l, const Node *item) {
  Span at = item->name_span.hi ? item->name_span : item->span;
  i64 count = 1, regs = 0;
  bool there, ok = low_guard(l, item->c, "role", &there);
  if (ok && !there) {
    low_declare(l, item->name, at, NM_ROLE);
    return;
  }
  ok = ok && (!item->b || low_const(l, item->b, "the number of instances", 1, 32, &count)) &&
       (!item->d || low_const(l, item->d, "the number of registers", 24, 256, &regs));
  if (ok && regs % 8) {
    low_error(l, D_R9_RANGE, item->d->span,
              "registers of a thread are given in multiples of 8, and this is %lld",
              (long long)regs);
    ok = false;
  }
  if (l->k->role.n == SC_MAX_ROLES) {
    low_error(l, D_P_LIMIT, at, "a kernel has at most %d roles", SC_MAX_ROLES);
    ok = false;
  }
  Name *n = low_declare(l, item->name, at, ok ? NM_ROLE : NM_BAD);
  if (!ok) return;
  n->ref = l->k->role.n;
  Role r = {.name = item->name,
            .span = at,
            .instances = (u32)count,
            .warps = item->op == AST_WARP ? 1 : 4,
            .regs = (u16)regs,
            .one_tile = item->flags & F_ONE_TILE && count > 1};
  PUSH(l->sc, &l->k->role, r);
}

static bool turn_member(Low *l, const Node *m, Turn *t, u32 *instances) {
  const Name *n = low_find(l, m->name);
  if (!n) return low_unbound(l, m->name, m->span), false;
  if (n->kind == NM_ROLE && n->ref == SC_NONE)
    return true;  // not there: the round goes on without it
  if (n->kind == NM_ROLE) {
    t->member[t->members++] = (u8)n->ref;
    *instances += l->k->role.at[n->ref].instances;
    return true;
  }
  for (u32 i = 0; n->kind == NM_VALUE && i < l->k->axis.n; i++) {
    if (l->k->axis.at[i].name != m->name) continue;
    t->axis = i;
    return true;
  }
  if (n->kind == NM_BAD) return false;
  Diag *d =
      low_error(l, D_N_KIND, m->span, "a turn passes over roles or a grid index, and '%s' is %s",
                m->name, low_kind_text(l, n));
  sc_note(l->sc, d, n->span, "declared here");
  return false;
}

// One instance of a role that deals its tiles takes each tile's turn, and the next has another
// tile: who comes behind it in the same tile waits for that tile, which the CTA may not have.
static bool dealt_alone(Low *l, const Turn *t) {
  for (u32 m = 0; t->axis == SC_NONE && t->members > 1 && m < t->members; m++) {
    const Role *r = &l->k->role.at[t->member[m]];
    if (!r->one_tile) continue;
    Diag *d = low_error(l, D_R5_TURN, t->span,
                        "the turn '%s' goes over '%s', whose tiles are dealt, and other roles",
                        t->name, r->name);
    sc_note(l->sc, d, r->span, "the instance behind has another tile, or none");
    sc_help(l->sc, d, "a turn of a role with 'one tile each' is that role's alone");
    return false;
  }
  return true;
}

void low_turn(Low *l, const Node *item) {
  Turn t = {.name = item->name,
            .span = item->name_span.hi ? item->name_span : item->span,
            .active = true,
            .axis = SC_NONE};
  u32 instances = 0, listed = 0;
  bool ok = true;
  for (const Node *m = item->a; m && listed < SC_MAX_ROLES; m = m->next, listed++)
    ok &= turn_member(l, m, &t, &instances);
  if (ok && t.axis != SC_NONE && listed > 1) {
    low_error(l, D_N_KIND, item->span, "a turn passes over roles, or over one grid index");
    ok = false;
  }
  if (ok && t.axis != SC_NONE && l->k->axis.at[t.axis].reversed) {
    Diag *d = low_error(
        l, D_R6_REVERSED, t.span,
        "'%s' counts down, and the turn goes up: a CTA could wait for one that has not started",
        l->k->axis.at[t.axis].name);
    sc_note(l->sc, d, l->k->axis.at[t.axis].span, "reversed here");
    ok = false;
  }
  if (item->c && ok) {
    t.keys = low_int(l, item->c->a);
    if (t.axis == SC_NONE)
      low_error(l, D_N_KIND, item->c->span, "only turns over CTAs have keys"), ok = false;
    ok &= known_at_launch(l, item->c->a, t.keys, "the number of a turn's keys is") &&
          of_integers(l, item->c->a, t.keys);
  }
  ok = ok && low_guard(l, item->b, "turn", &t.active);
  if (t.axis == SC_NONE && instances < 2) t.active = false;
  ok = ok && (!t.active || dealt_alone(l, &t));
  Name *n = low_declare(l, item->name, t.span, ok ? NM_TURN : NM_BAD);
  n->ref = l->k->turn.n;
  if (ok) PUSH(l->sc, &l->k->turn, t);
}
