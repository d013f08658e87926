// pair.c - can two executions of operations access one element? In: two accesses of one tensor, or
// of one stage. Out: true only if, for all values, two executions that differ in tile, instance or
// role access different elements, or one comes before the other.
//
// The idea: the second execution is written with variables of its own (tile, instance, rounds of
// loops, element), and all conditions around either access hold. That two positions differ is then
// a question about linear forms. It can rarely be answered for all pairs of executions at once. So
// cases are made: for one variable after the other, its value in the first execution is less than
// in the second, equal, or greater. (Numbers of several digits are compared in the same way: the
// first digit that differs decides.)
#include <string.h>

#include "compiler/facts/linear.h"
#include "compiler/verify/races.h"

enum {
  STEPS = 600,        // cases that are looked at, a pair of accesses
  LINKS = 400,        // … operations that may hand on
  MOST_QUOTIENTS = 3  // of which positions are made
};

static Place place_of(const Pair *p, u32 side) {
  const Access *a = side ? p->b : p->a;
  return (Place){a->role, a->pc, side};
}

// ---- elements

// The index variable of a position, as that execution's own variable; 0: there is none.
static Xid variable(Pair *p, u32 side, const Access *a, u32 d) {
  const Pos pos = p->v->k->view.at[a->view].at[d];
  if (pos.slice) return sc_pair_slice(p, side, d);
  if (pos.var < 0) return 0;
  return sc_restate(p, side, x_leaf(p->v->sc, p->v->k, X_IDX, TY_INT, (u32)pos.var));
}

static void put_element(Pair *p, u32 side, Xid *at) {
  const Access *a = side ? p->b : p->a;
  const u32 rank = p->v->k->view.at[a->view].rank;
  for (u32 d = 0; d < rank; d++) {
    Xid base = p->v->k->view.at[a->view].at[d].base, var = variable(p, side, a, d);
    at[d] = base ? sc_restate(p, side, base) : sc_pair_int(p, 0);
    if (var) at[d] = sc_pair_make(p, X_ADD, at[d], var);
  }
}

static void say_element(Pair *p, u32 side, const Access *a, const Xid *at) {
  const Kernel *k = p->v->k;
  const u32 rank = k->view.at[a->view].rank, buf = k->view.at[a->view].buf;
  for (u32 d = 0; d < rank; d++) {
    const Pos pos = k->view.at[a->view].at[d];
    Xid var = variable(p, side, a, d);
    i64 n = pos.slice ? sc_slice_extent(k, a, d) : var ? sc_access_extent(k, a, (u32)pos.var) : 1;
    if (var) sc_pair_say_range(p, var, sc_pair_int(p, 0), sc_pair_int(p, n));
    if (p->thorough && k->buf.at[buf].space == SP_TENSOR)
      sc_pair_say_range(p, at[d], sc_pair_int(p, 0), k->buf.at[buf].dim[d]);
  }
}

static void say_all(Pair *p, u32 side, const Xid *at) {
  const Access *a = side ? p->b : p->a;
  sc_pair_say_place(p, place_of(p, side), sc_access_writes(a));
  say_element(p, side, a, at);
  Xid cond = sc_restate(p, side, sc_access_cond(p->v->k, a));
  if (cond) sc_facts_assume(p->v->facts, cond, true);
}

static void say_relation(Pair *p, const PairVar *u) {
  if (u->relation == REL_LESS) sc_pair_say(p, X_LT, u->first, u->second);
  if (u->relation == REL_MORE) sc_pair_say(p, X_LT, u->second, u->first);
}

// Says that both accesses belong to the same fill, or the same hold: both sides have acquired, or
// waited, equally often.
static void say_stage(Pair *p) {
  Kernel *k = p->v->k;
  const View *view = &k->view.at[p->a->view];
  u32 ring = k->buf.at[view->buf].ring;
  Op op = view->fill ? OP_ACQUIRE : OP_WAIT;
  Xid a = sc_pair_count(p, place_of(p, 0), op, ring),
      b = sc_pair_count(p, place_of(p, 1), op, ring);
  sc_pair_say(p, X_EQ, a, b);
}

// ---- offsets that rise

// An element of a list of integers, or a quotient of one: as the element does, it never falls.
static bool is_offset(const Kernel *k, const Expr *e) {
  i64 by;
  if (e->op == X_IDIV || e->op == X_CDIV) return x_const_int(k, e->b, &by) && by > 0;
  return x_fetches(e) && e->ty == TY_INT && k->view.at[e->ref].rank == 1;
}

// Collects the offsets that an expression contains and that depend on any of `deps`, each behind
// those that it is made of. (Those of conditions may not have been asked for.)
static void gather(Pair *p, Xid x, u8 deps) {
  const Kernel *k = p->v->k;
  x_begin(&p->v->below, deps);
  x_from(&p->v->below, x);
  for (Xid y; (y = x_next(&p->v->below));) {
    if (!is_offset(k, &k->expr.at[y])) continue;
    u32 i = p->offsets;
    while (i && p->offset[i - 1] > y) i--;
    if ((i && p->offset[i - 1] == y) || p->offsets == PAIR_OFFSETS || !sc_pair_defined(p, y))
      continue;
    memmove(&p->offset[i + 1], &p->offset[i], (p->offsets++ - i) * sizeof *p->offset);
    p->offset[i] = y;
  }
}

// Collects them in the conditions under which an access is reached, and in the bounds of the loops
// around it.
static void gather_conditions(Pair *p, u32 side) {
  const Place at = place_of(p, side);
  const Code *code = &p->v->k->role.at[at.role].code;
  for (u32 pc = code->at[at.pc].around; pc != SC_NONE; pc = code->at[pc].around) {
    const Ins *ins = &code->at[pc];
    if (ins->op == OP_IF) gather(p, sc_restate(p, side, ins->arg[0]), DEP_FETCH);
    for (u32 i = 1; i <= 2 && ins->op == OP_FOR; i++)
      gather(p, sc_restate(p, side, ins->arg[i]), DEP_FETCH | DEP_AXIS | DEP_LOOP);
  }
  gather(p, sc_restate(p, side, sc_access_cond(p->v->k, side ? p->b : p->a)), DEP_FETCH);
}

// Shares of a number: `n * x / 8` never falls with x. What follows from that takes too many steps
// if it must be found each time.
static void say_shares(Pair *p, Xid x, Xid y) {
  const Expr *a = &p->v->k->expr.at[x], *b = &p->v->k->expr.at[y];
  bool both = a->op == b->op && a->b == b->b && !((a->deps | b->deps) & DEP_FETCH);
  if (both && sc_fact_at_most(p->v->facts, x, y)) sc_pair_say(p, X_LE, x, y);
}

static void say_rising(Pair *p, Xid x, Xid y) {
  const Kernel *k = p->v->k;
  if (!x_fetches(&k->expr.at[x]) || !x_fetches(&k->expr.at[y])) {  // quotients of elements follow
    say_shares(p, x, y);
    return;
  }
  const View *v = &k->view.at[k->expr.at[x].ref], *w = &k->view.at[k->expr.at[y].ref];
  const Buf *list = &k->buf.at[v->buf];
  if (v->buf != w->buf || !(list->rising || p->supposes)) return;
  Xid from = v->at[0].base, to = w->at[0].base, n = list->dim[0];
  if (!sc_fact_at_most(p->v->facts, from, to)) return;
  // what lies beyond the list is 0
  if (!sc_fact_nonneg(p->v->facts, from) || !sc_fact_inside(p->v->facts, to, 1, n)) return;
  if (!list->rising) p->supposed = list;
  sc_pair_say(p, X_LE, x, y);
}

static void say_offsets(Pair *p) {
  const u32 rank = p->v->k->view.at[p->a->view].rank;
  p->offsets = 0;
  for (u32 d = 0; d < rank; d++) {
    gather(p, p->a_at[d], DEP_FETCH);
    gather(p, p->b_at[d], DEP_FETCH);
  }
  for (u32 side = 0; side < 2; side++) gather_conditions(p, side);
  for (u32 i = 0; i < p->offsets; i++)
    for (u32 j = 0; j < p->offsets; j++)
      if (i != j) say_rising(p, p->offset[i], p->offset[j]);
}

// ---- apart

// Is a < b, shown in one step, or with an offset between the two?
static bool less(Pair *p, Xid a, Xid b) {
  if (sc_fact_less(p->v->facts, a, b)) return true;
  for (u32 i = 0; p->thorough && i < p->offsets; i++)
    if (sc_fact_less(p->v->facts, a, p->offset[i]) && sc_fact_at_most(p->v->facts, p->offset[i], b))
      return true;
  return false;
}

// How two positions may differ: the first's is less, or it is more.
enum { WAY_LESS = 1, WAY_MORE = 2, WAY_BOTH = 3 };

static bool has_atom(const Term *t, u32 atom) {
  return t->atom[0] == atom || t->atom[1] == atom || t->atom[2] == atom;
}

// Adds how the positions differ if this variable does. False: the variable's relation is not
// decided yet, so this is not known.
static bool add_ways(Pair *p, const PairVar *u, const Lin *by, u32 *ways) {
  const Lin *first = sc_form(p->v->facts, u->first), *second = sc_form(p->v->facts, u->second);
  for (u32 i = 0; i < by->n; i++) {
    bool of_second = has_atom(&by->at[i], second->at[0].atom[0]);
    if (!of_second && !has_atom(&by->at[i], first->at[0].atom[0])) continue;
    if (u->relation == REL_ANY && u->op == X_AXIS) return false;
    // loops from offset to offset are apart as a whole
    if (u->relation == REL_ANY && p->offsets) *ways = WAY_BOTH;
    bool rises = (by->at[i].by > 0) == of_second;
    if (u->relation == REL_LESS) *ways |= rises ? WAY_LESS : WAY_MORE;
    if (u->relation == REL_MORE) *ways |= rises ? WAY_MORE : WAY_LESS;
  }
  return true;
}

static bool is_no_leaf(const void *facts, u32 atom) {
  return ((const Facts *)facts)->atom.at[atom].op >= X_LOAD;
}

// Which of the two ways to prove a and b different can succeed? (Most would fail, and this question
// is cheap.)
static u32 ways_apart(Pair *p, Xid a, Xid b) {
  Facts *f = p->v->facts;
  Lin by = sc_lin_int(0);
  u32 ways = 0;
  bool known = sc_lin_add(&by, sc_form(f, b), 1) && sc_lin_add(&by, sc_form(f, a), -1);
  if (!known || !sc_know(f, &by) || sc_lin_any(&by, is_no_leaf, f)) return WAY_BOTH;
  for (u32 i = 0; i < p->vars; i++)
    if (!add_ways(p, &p->var[i], &by, &ways)) return 0;
  return ways || p->a == p->b ? ways : WAY_BOTH;
}

static bool apart(Pair *p) {
  const u32 rank = p->v->k->view.at[p->a->view].rank;
  for (u32 d = 0; d < rank; d++) {
    Xid a = p->a_at[d], b = p->b_at[d];
    u32 ways = a && b && a != b ? ways_apart(p, a, b) : 0;
    if ((ways & WAY_LESS && less(p, a, b)) || (ways & WAY_MORE && less(p, b, a))) return true;
  }
  return false;
}

// ---- ordered

// Says that both touch the same element: only then does their order matter.
static void say_meeting(Pair *p) {
  const u32 rank = p->v->k->view.at[p->a->view].rank;
  for (u32 d = 0; d < rank; d++) sc_pair_say(p, X_EQ, p->a_at[d], p->b_at[d]);
}

// Does a copy fill the stage? It has landed when the stage is full, and not before; where it is
// multicast, others copy for it who know nothing of this CTA. So no order is shown to what else is
// done to its part of the fill.
static bool fills_by_copy(const Pair *p) {
  return p->stage && (p->a->kind == ACCESS_PUT || p->b->kind == ACCESS_PUT);
}

static bool settled(Pair *p, bool last) {
  if (apart(p)) return true;
  if (!p->thorough || fills_by_copy(p)) return false;
  Facts *f = p->v->facts;
  u32 mark = sc_facts_mark(f);
  say_meeting(p);
  bool ok = sc_pair_one_tile(p) ? sc_pair_ordered(p, last) : sc_pair_takes_turns(p);
  sc_facts_drop(f, mark);
  return ok;
}

// Do the facts say the contrary of a relation? Then there are no such executions.
static bool never(Pair *p) {
  if (p->v->facts->nevers) return true;
  for (u32 i = 0; i < p->vars; i++) {
    const PairVar *u = &p->var[i];
    if (u->relation == REL_LESS && sc_fact_at_most(p->v->facts, u->second, u->first)) return true;
    if (u->relation == REL_MORE && sc_fact_at_most(p->v->facts, u->first, u->second)) return true;
  }
  return false;
}

// ---- quotients

// Quotients by constants in the positions: `t / 3`, as such or in `t % 3`.
typedef struct Quotients {
  u32 n;
  Xid of[MOST_QUOTIENTS];
} Quotients;

static Quotients quotients_in(Pair *p, const Xid *at) {
  const Kernel *k = p->v->k;
  const u32 rank = k->view.at[p->a->view].rank;
  Quotients all = {0};
  i64 by;
  x_begin(&p->v->below, DEP_AXIS | DEP_LOOP | DEP_INST);
  for (u32 d = 0; d < rank; d++) x_from(&p->v->below, at[d]);
  for (Xid x; all.n < MOST_QUOTIENTS && (x = x_next(&p->v->below));) {
    const Expr e = k->expr.at[x];
    if ((e.op != X_MOD && e.op != X_IDIV) || !x_const_int(k, e.b, &by) || by < 2) continue;
    Xid q = sc_pair_make(p, X_IDIV, e.a, e.b);
    u32 i = 0;
    while (i < all.n && all.of[i] != q) i++;
    if (q && i == all.n) all.of[all.n++] = q;
  }
  return all;
}

// Tries the three relations of a quotient in the two executions: with each, the positions must
// differ or be ordered. (The n-th quotient of one list is compared with the n-th of the other.)
static bool by_quotients(Pair *p, const Quotients *a, const Quotients *b, u32 from) {
  static const ExprOp order[] = {X_LT, X_EQ, X_LT};
  Facts *f = p->v->facts;
  bool ok = true;
  if (from == a->n || from == b->n) return false;
  for (u32 i = 0; i < COUNT(order) && ok; i++) {
    u32 mark = sc_facts_mark(f);
    Xid x = a->of[from], y = b->of[from];
    sc_pair_say(p, order[i], i == 2 ? y : x, i == 2 ? x : y);
    ok = settled(p, true) || never(p) || by_quotients(p, a, b, from + 1);
    sc_facts_drop(f, mark);
  }
  return ok;
}

static bool decided(const Pair *p) {
  for (u32 i = 0; i < p->vars; i++)
    if (p->var[i].relation == REL_ANY) return false;
  return true;
}

// ---- cases

static bool split(Pair *p);

// Is the pair proved safe with the relations decided so far? If not, another variable is split.
static bool solved(Pair *p) {
  Facts *f = p->v->facts;
  if (!p->steps || !p->v->cases) return false;
  p->steps--;
  p->v->cases--;
  if (sc_pair_one_execution(p) && sc_pair_in_program(p)) return true;
  u32 mark = sc_facts_mark(f);
  put_element(p, 1, p->b_at);
  for (u32 i = 0; i < p->vars; i++) say_relation(p, &p->var[i]);
  say_all(p, 1, p->b_at);
  if (p->stage && p->thorough) say_stage(p);
  if (p->thorough) say_offsets(p);
  bool last = decided(p), ok = settled(p, last) || (p->thorough && never(p));
  if (!ok && last && p->thorough) {
    Quotients a = quotients_in(p, p->a_at), b = quotients_in(p, p->b_at);
    ok = by_quotients(p, &a, &b, 0);
  }
  sc_facts_drop(f, mark);
  return ok || split(p);
}

// Can the variable have different values in the two executions?
static bool may_differ(const Pair *p, const PairVar *u) {
  const Kernel *k = p->v->k;
  i64 n;
  bool one = u->op == X_AXIS && x_const_int(k, k->axis.at[u->ref].extent, &n) && n == 1;
  return !one || k->axis.at[u->ref].cluster > 1;
}

static bool split(Pair *p) {
  u32 i = 0;
  while (i < p->vars && p->var[i].relation != REL_ANY) i++;
  if (i == p->vars) return false;
  PairVar *u = &p->var[i];
  u8 first = may_differ(p, u) ? REL_LESS : REL_EQUAL;
  static const u8 all[] = {REL_LESS, REL_EQUAL, REL_MORE};
  bool ok = true;
  for (u32 n = 0; n < COUNT(all) && ok; n++) {
    if (first == REL_EQUAL && all[n] != REL_EQUAL) continue;
    u->relation = all[n];
    p->v->epoch++;
    ok = solved(p);
  }
  u->relation = REL_ANY;
  p->v->epoch++;
  return ok;
}

// ---- the pair

static void add_var(Pair *p, u8 op, u32 first, u32 second, u8 relation) {
  if (p->vars == PAIR_VARS) p->steps = 0;  // one more than are told apart: nothing is shown
  if (p->vars == PAIR_VARS) return;
  Xid x = x_leaf(p->v->sc, p->v->k, op, TY_INT, first), y = sc_pair_fresh(p, op, second);
  p->var[p->vars++] = (PairVar){x, y, relation, op, second};
}

// The innermost loop around; SC_NONE: there is none.
static u32 loop_around(const Code *code, u32 pc) {
  do pc = code->at[pc].around;
  while (pc != SC_NONE && code->at[pc].op != OP_FOR);
  return pc;
}

static u32 loops_around(const Code *code, u32 pc) {
  u32 n = 0;
  while ((pc = loop_around(code, pc)) != SC_NONE) n++;
  return n;
}

// The loops around both places, outermost first; as many are around the one as around the other.
static void add_both(Pair *p, const Code *a, u32 i, const Code *b, u32 j) {
  i = loop_around(a, i);
  j = loop_around(b, j);
  if (i == SC_NONE) return;
  add_both(p, a, i, b, j);
  add_var(p, X_LOOP, a->at[i].arg[0], b->at[j].arg[0], REL_ANY);
}

// Outermost loops pair up; what is deeper has no partner.
static void add_loops(Pair *p) {
  const Code *a = &p->v->k->role.at[p->a->role].code, *b = &p->v->k->role.at[p->b->role].code;
  u32 i = p->a->pc, j = p->b->pc, n = loops_around(a, i), m = loops_around(b, j);
  for (; n > m; n--) i = loop_around(a, i);
  for (; m > n; m--) j = loop_around(b, j);
  add_both(p, a, i, b, j);
}

Pair sc_pair(Races *v, const Access *a, const Access *b, bool stage) {
  const Kernel *k = v->k;
  Pair p = {.v = v, .a = a, .b = b, .stage = stage, .steps = STEPS, .links = LINKS};
  p.axes = k->axis.n;
  for (u32 i = 0; i < k->axis.n; i++) add_var(&p, X_AXIS, i, i, stage ? REL_EQUAL : REL_ANY);
  if (a->role == b->role && k->role.at[a->role].instances > 1 && !k->role.at[a->role].one_tile)
    add_var(&p, X_INST, a->role, b->role, REL_ANY);
  add_loops(&p);
  return p;
}

bool sc_pair_safe(Pair *p) {
  Facts *f = p->v->facts;
  p->v->epoch++;
  if (p->thorough) sc_facts_thorough(f);
  sc_facts_at(f, NULL, 0);
  u32 mark = sc_facts_mark(f);
  put_element(p, 0, p->a_at);
  say_all(p, 0, p->a_at);
  bool ok = solved(p);
  sc_facts_drop(f, mark);
  return ok;
}

const char *sc_pair_remedy(Races *v, const Access *a, const Access *b, bool stage) {
  Pair p = sc_pair(v, a, b, stage);
  p.thorough = p.supposes = true;
  if (!sc_pair_safe(&p) || !p.supposed) return "";
  return sc_printf(v->sc, "; not if the elements of '%s' never fall: declare it 'rising'",
                   p.supposed->name);
}
