// stmt.c - statements -> the code of a role, one after the other as they are written.
// Conditions and loops that the parameters decide vanish; a loop whose variable indexes a register
// tile is unrolled: its body is lowered as a loop first, and taken back when a register position
// asks for a constant.
// Called by bind.c; calls copy.c, map.c, declare.c and def.c for what stands in a role, and code.c.
#include "compiler/lower/lower.h"

static void statement(Low *l, const Node *n);

static bool stopped(const Low *l) { return l->dead || l->unroll != SC_NONE; }

// ---- rings and turns

static Name *named(Low *l, const Node *n) {
  const Node *base = n->kind == ND_INDEX ? n->a : n;
  if (base->kind != ND_NAME) {
    if (base->kind != ND_ERROR) low_error(l, D_N_KIND, base->span, "a name is needed here");
    return NULL;
  }
  Name *name = low_find(l, base->name);
  if (!name) low_unbound(l, base->name, base->span);
  return name && low_is_there(l, name, n->span) ? name : NULL;
}

static void not_this(Low *l, const Node *n, const Name *name, const char *wanted) {
  Diag *d = low_error(l, D_N_KIND, n->span, "'%s' is %s: %s is needed here", name->name,
                      low_kind_text(l, name), wanted);
  sc_note(l->sc, d, name->span, "declared here");
}

// Takes and passes are checked even where the turn has vanished.
static void use_turn(Low *l, const Node *n, const Name *name, bool take, Span at) {
  const Turn *t = &l->k->turn.at[name->ref];
  Xid key = 0;
  if (t->axis == SC_NONE && !sc_is_member(t, l->role)) {
    Diag *d =
        low_error(l, D_R6_MEMBER, at, "this role does not take part in the turn '%s'", t->name);
    sc_note(l->sc, d, t->span, "declared here");
    sc_help(l->sc, d, "add '%s' to its roles", l->k->role.at[l->role].name);
    return;
  }
  u32 positions = 0;
  for (const Node *p = n->kind == ND_INDEX ? n->b : NULL; p; p = p->next) positions++;
  if (positions != (t->keys ? 1 : 0)) {
    Diag *d = low_error(l, D_R9_RANK, n->span,
                        t->keys ? "the turn '%s' is one for each key: %s[…]"
                                : "the turn '%s' has no key: just '%s'",
                        t->name, t->name);
    sc_note(l->sc, d, t->span, "declared here");
    return;
  }
  if (positions && !(key = low_int(l, n->b))) return;
  if (key && low_at(l, key)->deps & (DEP_INST | DEP_IDX | DEP_TILE)) {
    low_error(l, D_R5_CONDITION, n->b->span,
              "the key of a turn must be the same for all that take it");
    return;
  }
  if (low_ordered(l, at, "a turn") && t->active)
    low_emit(l, take ? OP_TAKE : OP_PASS, 0, name->ref, key, 0, at);
}

// One element of acquire, commit, release, or a ring in wait.
static void use_ring(Low *l, Op op, const Name *name, Span at) {
  if (!low_ordered(l, at, "a ring operation")) return;
  low_use_ring(l, name->ring);
  u64 bit = 1ull << name->ring->number;
  if (op == OP_ACQUIRE) l->filling |= bit;
  if (op == OP_COMMIT) l->filling &= ~bit;
  low_emit(l, op, 0, name->ring->id, 0, 0, at);
}

static void ring_list(Low *l, const Node *n, Op op) {
  for (const Node *e = n->a; e && !stopped(l); e = e->next) {
    Name *name = named(l, e);
    Span at = n->a->next ? e->span : n->span;
    if (!name) continue;
    if (name->kind == NM_TURN && op != OP_COMMIT) use_turn(l, e, name, op == OP_ACQUIRE, at);
    else if (name->kind == NM_RING && e->kind == ND_NAME) use_ring(l, op, name, at);
    else not_this(l, e, name, op == OP_COMMIT ? "a ring" : "a ring or turn");
  }
}

static bool is_space(const Low *l, const Name *n, Space space) {
  return n->kind == NM_BUF && l->k->buf.at[n->ref].space == space;
}

static void copy_wait(Low *l, const Node *n, const Name *name, i64 keep, Span at) {
  const Buf *b = &l->k->buf.at[name->ref];
  if (!(b->dir & F_OUT)) {
    Diag *d = low_error(l, D_N_WRITE, at, "nothing is copied out to '%s', an input", b->name);
    sc_note(l->sc, d, b->span, "declared here");
    sc_help(l->sc, d, "what a copy brings is waited for by its ring: wait r");
    return;
  }
  if (low_ordered(l, at, "a wait for a copy"))
    low_emit(l, OP_COPYWAIT, n->flags & F_READ ? INS_READ : 0, name->ref, (u32)keep, 0, at);
}

// The register tiles of one `wait` make one wait for products.
static void product_wait(Low *l, const Node *n, i64 keep) {
  VEC(u32) tile = {0};
  for (const Node *e = n->a; e; e = e->next) {
    const Name *name = e->kind == ND_NAME ? low_find(l, e->name) : NULL;
    if (name && is_space(l, name, SP_REG)) PUSH(l->sc, &tile, name->ref);
  }
  if (!low_ordered(l, n->span, "a wait for a product")) return;
  u32 list = l->k->list.n;
  PUSH(l->sc, &l->k->list, tile.n);
  for (u32 i = 0; i < tile.n; i++) PUSH(l->sc, &l->k->list, tile.at[i]);
  low_emit(l, OP_MMAWAIT, 0, list, (u32)keep, 0, n->span);
}

// The tensor to which this role has copied of the ring; NULL: none.
static const char *copied_to(Low *l, const RingDecl *ring) {
  const Kernel *k = l->k;
  for (u32 i = l->code->n; i-- > 0;) {
    const Ins *ins = &l->code->at[i];
    if (ins->op != OP_COPYOUT && ins->op != OP_COPYADD) continue;
    if (k->buf.at[k->view.at[ins->arg[1]].buf].ring == ring->id)
      return k->buf.at[k->view.at[ins->arg[0]].buf].name;
  }
  return NULL;
}

static void not_of_rings(Low *l, const Node *n, const Name *ring) {
  Diag *d =
      low_error(l, D_N_KIND, n->span, "'%s' stands with copies out and products, not with rings",
                n->b ? "keep" : "read");
  sc_note(l->sc, d, ring->span, "'%s' is a ring", ring->name);
  const char *to = copied_to(l, ring->ring);
  if (to)
    sc_help(l->sc, d, "name the tensor that is copied to: wait %s%s", to,
            n->b ? " keep …" : " read");
  else
    sc_help(l->sc, d, "name the tensor that is copied to%s",
            n->b ? ", or the register tile of a product" : "");
}

static void wait(Low *l, const Node *n) {
  i64 keep = 0;
  if (n->b && !low_const(l, n->b, "'keep'", 0, 64, &keep)) return;
  bool products = false;
  for (const Node *e = n->a; e && !stopped(l); e = e->next) {
    Name *name = named(l, e);
    Span at = n->a->next ? e->span : n->span;
    if (!name) continue;
    if (name->kind == NM_RING && !n->b && !(n->flags & F_READ)) {
      use_ring(l, OP_WAIT, name, at);
    } else if (name->kind == NM_RING) {
      not_of_rings(l, n, name);
    } else if (is_space(l, name, SP_TENSOR)) {
      copy_wait(l, n, name, keep, at);
    } else if (is_space(l, name, SP_REG) && !(n->flags & F_READ)) {
      if (!products) product_wait(l, n, keep);
      products = true;
    } else {
      not_this(l, e, name, "a ring, a product's register tile or a tensor");
    }
  }
}

// ---- blocks

static void block(Low *l, const Node *n) {
  if (n->kind == ND_ERROR || !low_enter(l, n->span)) return;
  low_push(l);
  for (const Node *s = n->a; s && !stopped(l); s = s->next) statement(l, s);
  low_pop(l);
  low_leave(l);
}

// A def that is a block of statements.
static void expand(Low *l, const Node *n) {
  Use u;
  if (!low_enter_def(l, n, &u)) return;
  if (u.def->node->b->kind != ND_BLOCK) {
    Diag *d =
        low_error(l, D_N_KIND, n->span, "'%s' is a value, not a block of statements", n->name);
    sc_note(l->sc, d, u.def->span, "declared here");
  } else {
    block(l, u.def->node->b);
  }
  low_leave_def(l, &u);
}

static void conditional(Low *l, const Node *n) {
  bool known;
  Xid c = low_bool(l, n->a);
  if (!c) return;
  if (x_const_bool(l->k, c, &known)) {
    if (known) block(l, n->b);
    else if (n->c) statement(l, n->c);
    return;
  }
  if (!x_uniform(l->k, c)) {
    low_uniform(l, n->a);  // reports
    return;
  }
  Span outer = l->undecided;
  if (!low_decidable(l, c)) l->undecided = n->a->span, l->told = false;
  low_emit(l, OP_IF, 0, c, 0, 0, span_to(n->span, n->a->span));
  block(l, n->b);
  if (n->c && !stopped(l)) {
    low_emit(l, OP_ELSE, 0, 0, 0, 0, n->c->span);
    statement(l, n->c);
  }
  if (!stopped(l)) low_emit(l, OP_ENDIF, 0, 0, 0, 0, n->span);
  l->undecided = outer;
}

static void vote(Low *l, const Node *n) {
  bool together = n->flags & F_TOGETHER, apart = l->apart;
  u32 map = low_condition(l, n->a, together), outer = l->vote;
  if (map == SC_NONE) return;
  i64 rows = 0;
  x_const_int(l->k, l->k->map.at[map].var[0].extent, &rows);
  low_emit(l, OP_VOTE, together ? INS_TOGETHER : 0, map, 0, 0, span_to(n->span, n->a->span));
  l->vote = (u32)rows;
  l->apart |= !together;
  l->told = false;
  block(l, n->b);
  l->vote = outer;
  l->apart = apart;
  if (!stopped(l)) low_emit(l, OP_ENDVOTE, 0, 0, 0, 0, n->span);
}

// ---- loops

// How far the kernel's tables are, so that a loop's body can be taken back.
typedef struct Mark {
  u32 expr, view, map, product, list, buf, ring, loop, let, code, open, depth;
  u64 filling;
} Mark;

static Mark mark(const Low *l) {
  const Kernel *k = l->k;
  return (Mark){k->expr.n, k->view.n, k->map.n,   k->product.n, k->list.n,  k->buf.n,  k->ring.n,
                k->loop.n, k->let.n,  l->code->n, l->open.n,    l->depth.n, l->filling};
}

static void take_back(Low *l, const Mark *m) {
  Kernel *k = l->k;
  x_forget(k, m->expr);
  sc_facts_forget(l->facts, m->expr);
  k->view.n = m->view;
  k->map.n = m->map;
  k->product.n = m->product;
  k->list.n = m->list;
  k->buf.n = m->buf;
  k->ring.n = m->ring;
  k->loop.n = m->loop;
  k->let.n = m->let;
  l->code->n = m->code;
  l->open.n = m->open;
  if (l->depth.n > m->expr) l->depth.n = m->expr;
  l->filling = m->filling;
  for (u32 i = 0; i < l->ring.n; i++) {
    if (l->ring.at[i]->id != SC_NONE && l->ring.at[i]->id >= m->ring) l->ring.at[i]->id = SC_NONE;
  }
}

static void body(Low *l, const Node *n, Xid variable) {
  low_push(l);
  low_declare(l, n->name, n->name_span, NM_VALUE)->x = variable;
  block(l, n->d);
  low_pop(l);
}

static void unrolled(Low *l, const Node *n, i64 from, i64 to) {
  u32 errors = l->sc->errors;
  for (i64 i = from; i < to && !stopped(l) && l->sc->errors == errors; i++) {
    if (!low_spend(l, &l->stmts, LOW_MAX_STMTS, "statements", n->span)) return;
    body(l, n, x_int(l->sc, l->k, n->flags & F_REVERSED ? to - 1 - (i - from) : i));
  }
}

static void looped(Low *l, const Node *n, Xid from, Xid to) {
  Mark start = mark(l);
  Span outer = l->undecided, head = span_to(n->span, n->b->span);
  u32 loop = l->k->loop.n;
  PUSH(l->sc, &l->k->loop, ((Loop){n->name, l->role, n->name_span.hi ? n->name_span : n->span}));
  if (!low_decidable(l, from) || !low_decidable(l, to)) {
    l->undecided = span_to(n->a->span, n->b->span);
    l->told = false;
  }
  low_emit(l, OP_FOR, n->flags & F_REVERSED ? INS_REVERSED : 0, loop, from, to, head);
  body(l, n, x_leaf(l->sc, l->k, X_LOOP, TY_INT, loop));
  if (!stopped(l)) low_emit(l, OP_ENDFOR, 0, 0, 0, 0, n->span);
  l->undecided = outer;
  if (l->unroll != loop) return;
  PUSH(l->sc, &l->unrolled, n);
  i64 a, b;
  bool known = x_const_int(l->k, from, &a) && x_const_int(l->k, to, &b);
  take_back(l, &start);
  l->unroll = SC_NONE;
  if (known) {
    unrolled(l, n, a, b);
    return;
  }
  Diag *d =
      low_error(l, D_R9_TILE, head,
                "'%s' indexes a register tile: its bounds must be known at compile time", n->name);
  sc_help(l->sc, d, "registers have no addresses, so that such a loop is unrolled");
}

static void loop(Low *l, const Node *n) {
  Xid from = low_int(l, n->a), to = low_int(l, n->b);
  i64 a, b;
  if (!from || !to) return;
  if (!x_uniform(l->k, from) || !x_uniform(l->k, to)) {
    low_uniform(l, x_uniform(l->k, from) ? n->b : n->a);  // reports
    return;
  }
  bool known = x_const_int(l->k, from, &a) && x_const_int(l->k, to, &b), again = false;
  for (u32 i = 0; i < l->unrolled.n; i++) again |= l->unrolled.at[i] == n;
  if (known && (again || a >= b)) unrolled(l, n, a, b);
  else looped(l, n, from, to);
}

// ---- declarations among statements

void low_let(Low *l, const Node *n) {
  Elem elem;
  for (const Node *b = n->a; b && !stopped(l); b = b->next) {
    if (b->b && l->role != SC_NONE) {
      low_vector(l, b);
    } else if (b->b) {
      Diag *d = low_error(l, D_N_KIND, b->span, "a vector belongs to a role: nobody holds it here");
      low_declare(l, b->name, b->name_span, NM_BAD);
      sc_help(l->sc, d, "move it into the role that uses it");
    } else if (low_elem(l, b->a, &elem)) {
      low_declare(l, b->name, b->name_span, NM_ELEM)->elem = (u8)elem;
    } else {
      Xid x = low_uniform(l, b->a);
      if (l->unroll != SC_NONE) return;
      low_declare(l, b->name, b->name_span, x ? NM_VALUE : NM_BAD)->x = x;
      if (x) PUSH(l->sc, &l->k->let, ((Let){b->name, l->role, x, b->span}));
    }
  }
}

static void regs(Low *l, const Node *n) {
  for (const Node *g = n->a; g && !stopped(l); g = g->next) {
    u32 first, count;
    if (!low_regs(l, g, &first, &count) || !g->c) continue;
    for (u32 i = 0; i < count && !stopped(l); i++) low_init(l, first + i, g->c, g->span);
  }
}

static void statement(Low *l, const Node *n) {
  if (stopped(l) || !low_spend(l, &l->stmts, LOW_MAX_STMTS, "statements", n->span)) return;
  switch (n->kind) {
    case ND_COPY: low_copy(l, n); break;
    case ND_ACQUIRE: ring_list(l, n, OP_ACQUIRE); break;
    case ND_COMMIT: ring_list(l, n, OP_COMMIT); break;
    case ND_RELEASE: ring_list(l, n, OP_RELEASE); break;
    case ND_WAIT: wait(l, n); break;
    case ND_ASSIGN: low_assign(l, n); break;
    case ND_LET: low_let(l, n); break;
    case ND_REG: regs(l, n); break;
    case ND_DEF: low_def(l, n, l->scope, l->scope); break;
    case ND_CALLST: expand(l, n); break;
    case ND_VOTE: vote(l, n); break;
    case ND_FOR: loop(l, n); break;
    case ND_IF:
      if (!low_enter(l, n->span)) break;
      conditional(l, n);
      low_leave(l);
      break;
    case ND_BLOCK: block(l, n); break;
    case ND_ERROR: break;
    case ND_RING:
      if (!l->open.n || l->open.n > 1) {
        low_error(l, D_N_KIND, n->span, "a ring is declared in the kernel, or first in a role");
        break;
      }
      low_rings(l, n, l->role);
      break;
    default: low_error(l, D_N_KIND, n->span, "this cannot stand in a role"); break;
  }
}

void low_role(Low *l, const Node *n, u32 role) {
  l->role = role;
  l->code = &l->k->role.at[role].code;
  l->facts = sc_facts(l->sc, l->k);
  l->open.n = 0;
  l->filling = 0;
  l->undecided = (Span){0, 0};
  low_push(l);
  if (n->sym2)
    low_declare(l, n->sym2, n->name_span, NM_VALUE)->x = x_leaf(l->sc, l->k, X_INST, TY_INT, role);
  low_emit(l, OP_TILE, 0, 0, 0, 0, n->name_span.hi ? n->name_span : n->span);
  for (const Node *s = n->a; s && !stopped(l); s = s->next) statement(l, s);
  if (!stopped(l)) low_emit(l, OP_ENDTILE, 0, 0, 0, 0, n->name_span.hi ? n->name_span : n->span);
  low_pop(l);
  l->role = SC_NONE;
}
