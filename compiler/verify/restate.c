// restate.c - writes expressions for one of two executions. In: an expression of a role's code.
// Out: the same expression with the variables of that execution (its tile, instance, rounds of
// loops, element), and what the code around an operation says of these variables.
//
// Variables that the kernel does not have are numbered like loops past its own, so that linear
// forms can contain them.
#include "compiler/verify/races.h"

#include "compiler/facts/linear.h"

enum { OF_AXIS, OF_INST, OF_INDEX, OF_SLICE, OF_LOOP, OF_LOAD, OF_COUNT };

static Xid fresh(Pair *p, u32 side, u32 what, u32 number) {
  u32 ref = p->v->k->loop.n + (number * OF_COUNT + what) * PAIR_SIDES + side;
  return x_leaf(p->v->sc, p->v->k, X_LOOP, TY_INT, ref);
}

Xid sc_pair_fresh(Pair *p, ExprOp op, u32 ref) {
  return fresh(p, SECOND_SIDE, op == X_AXIS ? OF_AXIS : op == X_INST ? OF_INST : OF_LOOP, ref);
}

Xid sc_pair_slice(Pair *p, u32 side, u32 d) { return fresh(p, side, OF_SLICE, d); }

static Xid leaf(Pair *p, u32 side, Xid x) {
  const Expr e = p->v->k->expr.at[x];
  for (u32 i = 0; i < p->vars; i++) {
    const PairVar *u = &p->var[i];
    bool of = side == SECOND_SIDE || (side % 2 && e.op == X_AXIS);
    if (of && u->op == e.op && u->ref == e.ref)
      return u->relation == REL_EQUAL ? u->first : u->second;
  }
  switch (e.op) {
    case X_INST: return fresh(p, side, OF_INST, e.ref);
    case X_IDX: return fresh(p, side, OF_INDEX, e.ref);
    case X_LOOP: return fresh(p, side, OF_LOOP, e.ref);
    // what lies in registers or in a stage may be anything
    case X_LOAD: return e.ty == TY_INT ? fresh(p, side, OF_LOAD, x) : x;
    default: return x;
  }
}

static Xid element(Pair *p, u32 side, Xid x) {
  Kernel *k = p->v->k;
  const Expr e = k->expr.at[x];
  View v = k->view.at[e.ref];
  bool same = true;
  for (u32 i = 0; i < v.rank; i++) {
    Xid was = v.at[i].base;
    if (was && !(v.at[i].base = sc_restate(p, side, was))) return 0;
    same &= v.at[i].base == was;
  }
  if (same) return x;
  PUSH(p->v->sc, &k->view, v);
  return x_leaf(p->v->sc, k, X_LOAD, (Ty)e.ty, k->view.n - 1);
}

// Is it an integer that data of registers, stages or tensors choose or add up?
static bool found(const Kernel *k, const Expr *e) {
  bool chosen = e->op == X_WHERE && k->expr.at[e->a].deps & DEP_TILE;
  return e->ty == TY_INT && e->deps & DEP_TILE && (chosen || e->op >= X_SUM);
}

static Xid restated(Pair *p, u32 side, Xid x) {
  const Expr e = p->v->k->expr.at[x];
  u8 moves = DEP_AXIS | DEP_INST | DEP_LOOP | DEP_IDX | DEP_TILE;
  if (found(p->v->k, &e)) return fresh(p, side, OF_LOAD, x);
  if (!(e.deps & moves) || e.op >= X_SUM) return x;
  if (x_fetches(&e)) return element(p, side, x);
  if (!sc_xop[e.op].arity) return leaf(p, side, x);
  Xid all[3] = {e.a, e.b, e.c};
  for (u32 i = 0; i < sc_xop[e.op].arity; i++)
    if (!(all[i] = sc_restate(p, side, all[i]))) return 0;
  return x_make(p->v->sc, p->v->k, e.op, all[0], all[1], all[2]);
}

static void make_room(Sc *sc, Restated *r, Xid x) {
  if (x < r->room) return;
  u32 room = x * 2 + 64;
  r->is = sc_grow(sc, r->is, sizeof *r->is * r->room, sizeof *r->is * room);
  r->when = sc_grow(sc, r->when, sizeof *r->when * r->room, sizeof *r->when * room);
  r->room = room;
}

Xid sc_restate(Pair *p, u32 side, Xid x) {
  Restated *r = &p->v->restated[side];
  if (!side || !x) return x;
  make_room(p->v->sc, r, x);
  if (r->when[x] == p->v->epoch) return r->is[x];
  Xid y = restated(p, side, x);
  r->when[x] = p->v->epoch;
  return r->is[x] = y;
}

// ---- what holds at a place

Xid sc_pair_make(Pair *p, ExprOp op, Xid a, Xid b) {
  return x_make(p->v->sc, p->v->k, op, a, b, 0);
}

Xid sc_pair_int(Pair *p, i64 n) { return x_int(p->v->sc, p->v->k, n); }

void sc_pair_say(Pair *p, ExprOp op, Xid a, Xid b) {
  Xid cond = a && b ? sc_pair_make(p, op, a, b) : 0;
  if (cond) sc_facts_assume(p->v->facts, cond, true);
}

void sc_pair_say_range(Pair *p, Xid x, Xid from, Xid end) {
  sc_pair_say(p, X_LE, from, x);
  sc_pair_say(p, X_LT, x, end);
}

static Xid leaf_in(Pair *p, u32 side, ExprOp op, u32 ref) {
  return sc_restate(p, side, x_leaf(p->v->sc, p->v->k, op, TY_INT, ref));
}

// Says where the tile lies. An access that writes to a tensor is in a tile of the grid; others, and
// all accesses of stages, may also be in the tiles past its end that fill up the last cluster.
static void say_tile(Pair *p, u32 side, bool writes) {
  Kernel *k = p->v->k;
  for (u32 i = 0; i < k->axis.n; i++) {
    Xid axis = leaf_in(p, side, X_AXIS, i);
    sc_pair_say(p, X_LE, sc_pair_int(p, 0), axis);
    if (k->axis.at[i].cluster == 1 || writes) sc_pair_say(p, X_LT, axis, k->axis.at[i].extent);
  }
}

static void say_block(Pair *p, u32 side, const Code *code, u32 pc, u32 at) {
  const Ins *ins = &code->at[pc];
  if (ins->op == OP_FOR) {
    sc_pair_say_range(p, leaf_in(p, side, X_LOOP, ins->arg[0]), sc_restate(p, side, ins->arg[1]),
                      sc_restate(p, side, ins->arg[2]));
  } else if (ins->op == OP_IF) {
    Xid cond = sc_restate(p, side, ins->arg[0]);
    if (cond) sc_facts_assume(p->v->facts, cond, at <= ins->nest);
  }
}

// Says what holds in all blocks around, of which `pc` opens the innermost.
static void say_blocks(Pair *p, u32 side, const Code *code, u32 pc, u32 at) {
  if (pc == SC_NONE) return;
  say_blocks(p, side, code, code->at[pc].around, at);
  say_block(p, side, code, pc, at);
}

void sc_pair_say_place(Pair *p, Place at, bool writes) {
  const Role *r = &p->v->k->role.at[at.role];
  say_tile(p, at.side, writes && !p->stage);
  if (at.side)
    sc_pair_say_range(p, leaf_in(p, at.side, X_INST, at.role), sc_pair_int(p, 0),
                      sc_pair_int(p, r->instances));
  say_blocks(p, at.side, &r->code, r->code.at[at.pc].around, at.pc);
}

// ---- counts

static Xid plainer(Pair *p, Xid x, u32 depth);

static Xid chosen(Pair *p, Xid x, u32 depth) {
  const Expr e = p->v->k->expr.at[x], c = p->v->k->expr.at[e.a];
  if ((c.op != X_LT && c.op != X_LE) || p->v->k->expr.at[c.a].ty != TY_INT) return x;
  if (c.op == X_LE ? sc_fact_at_most(p->v->facts, c.a, c.b) : sc_fact_less(p->v->facts, c.a, c.b))
    return plainer(p, e.b, depth);
  bool never =
      c.op == X_LE ? sc_fact_less(p->v->facts, c.b, c.a) : sc_fact_at_most(p->v->facts, c.b, c.a);
  return never ? plainer(p, e.c, depth) : x;
}

// x with each `where` replaced whose condition the facts decide.
static Xid plainer(Pair *p, Xid x, u32 depth) {
  const Expr e = p->v->k->expr.at[x];
  if (!depth--) return x;
  if (e.op == X_WHERE) return chosen(p, x, depth);
  if (e.op != X_ADD && e.op != X_SUB && e.op != X_MUL && e.op != X_MAX && e.op != X_MIN) return x;
  Xid a = plainer(p, e.a, depth), b = plainer(p, e.b, depth);
  if (e.op == X_MAX || e.op == X_MIN) {
    if (sc_fact_at_most(p->v->facts, a, b)) return e.op == X_MAX ? b : a;
    if (sc_fact_at_most(p->v->facts, b, a)) return e.op == X_MAX ? a : b;
  }
  Xid y = sc_pair_make(p, (ExprOp)e.op, a, b);
  return y ? y : x;
}

enum { PLAINER = 6 };  // levels that are looked into: operands are shared

bool sc_pair_defined(Pair *p, Xid x) {
  const Kernel *k = p->v->k;
  bool ok = true;
  x_begin(&p->v->inner, 0);
  x_from(&p->v->inner, x);
  for (Xid y; ok && (y = x_next(&p->v->inner));) {
    const Expr e = k->expr.at[y];
    const Buf *list = e.op == X_LOAD ? &k->buf.at[k->view.at[e.ref].buf] : NULL;
    if (x_divides(e.op)) ok = sc_fact_less(p->v->facts, 0, e.b);
    if (list && list->end) ok = sc_fact_less(p->v->facts, list->least, list->end);
  }
  return ok;
}

Xid sc_pair_count(Pair *p, Place at, Op op, u32 ref) {
  const Code *code = &p->v->k->role.at[at.role].code;
  Xid unasked, x = sc_restate(p, at.side, sc_count_before(p->v, code, at.pc, op, ref, &unasked));
  Xid its = sc_restate(p, at.side, unasked);
  if (x && unasked && (!its || !sc_pair_defined(p, its))) return 0;
  return x ? plainer(p, x, PLAINER) : 0;
}
