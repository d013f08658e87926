// handed.c - does one of two executions in the same tile always come before the other? In: a pair
// with what is known of it. Out: true only if a ring or a turn says so.
//
// The idea: the n-th wait of a ring comes after all n-th commits, and the n-th acquire after all
// releases number n - stages, as each tile begins with empty rings. (That all take part equally
// often in each tile, that waits end, and that an arrival speaks for all of an instance's threads
// is proved elsewhere: COUNTS, ORDER, PHASES, THREADS. Not all of the last, though: see "threads".)
// So the first access, of an instance that has committed n times before it, comes before the second
// if that one's instance has waited at least n + 1 times.
#include "compiler/verify/races.h"

#include "compiler/facts/linear.h"

// The operation by which one side hands something on, and the one by which the other side waits for
// that.
typedef struct Channel {
  Op gives, takes;
  u32 ref;    // ring or turn
  i64 later;  // so many of `takes` hear of nothing
} Channel;

// Does `from` come before `to`?
typedef struct Order {
  Pair *p;
  Place from, to;
  const Access *access;  // of `from`
  u32 links;             // so many other roles may hand on
} Order;

// given + later < taken
static bool suffices(Order *o, Xid given, i64 later, Xid taken) {
  Xid least = given ? sc_pair_make(o->p, X_ADD, given, sc_pair_int(o->p, later)) : 0;
  return least && taken && sc_fact_less(o->p->v->facts, least, taken);
}

// The operation at which a role's fills arrive. A fill by copies alone may arrive at its acquire:
// then nothing between that and its commit is handed over with it.
static Op arrives_by(const Kernel *k, u32 role, u32 ring) {
  const Code *code = &k->role.at[role].code;
  for (u32 pc = 0; pc < code->n; pc++) {
    const Ins *ins = &code->at[pc];
    if (ins->op == OP_ACQUIRE && ins->arg[0] == ring && ins->plan.arrivals) return OP_ACQUIRE;
  }
  return OP_COMMIT;
}

static bool does(const Kernel *k, u32 role, Op op, u32 ref) {
  return sc_first_op(k, role, op, ref, 0) != SC_NONE;
}

// ---- threads

// Does THREADS mind that an instance's threads have met between this access and what others tell
// them, or they tell others? Of a tensor it does so for what one writes and another reads: that no
// two write one element is taken for granted. Of a stage it does so only while that is held or
// filled.
static bool minded(const Kernel *k, const Access *a) {
  const View *v = &k->view.at[a->view];
  u8 all = 0;
  if (k->buf.at[v->buf].space == SP_STAGE) return false;
  for (u32 r = 0; r < k->role.n; r++)
    if (r != a->role || k->role.at[r].instances > 1) all |= sc_tensor_use(k, r, v->buf);
  return all & (sc_access_writes(a) ? DOES_COPY | DOES_READ : DOES_COPY_TO | DOES_WRITE | DOES_ADD);
}

// Does what the first instance gives speak for all threads that make the access?
static bool speaks_for_all(const Order *o, Channel c) {
  const Kernel *k = o->p->v->k;
  if (!sc_access_by_threads(o->access) || c.gives == OP_PASS || minded(k, o->access)) return true;
  return sc_met_before(k, o->access, c.gives, c.ref);
}

// Do all threads that make the second access know of what its instance takes? (Where a role fills a
// ring by copies alone, thread 0 waits for the empty stage.)
static bool told_to_all(const Order *o, Channel c) {
  const Kernel *k = o->p->v->k;
  const Access *to = o->to.side == FIRST_SIDE ? o->p->a : o->p->b;
  if (c.takes != OP_ACQUIRE || o->to.side >= LINK_SIDE || !sc_access_by_threads(to)) return true;
  if (k->buf.at[k->view.at[to->view].buf].space == SP_STAGE) return true;  // THREADS minds
  return minded(k, to) || !sc_only_copies(k, to->role, c.ref) || sc_met_after(k, to, c.ref);
}

// Do both operations belong to one instance? Only then is a private ring the same ring for both.
static bool own(const Order *o) {
  bool one = o->from.side == o->to.side || sc_pair_one_execution(o->p);
  return o->from.role == o->to.role && o->to.side < LINK_SIDE && one;
}

// When a stage is full, the copy that filled it has read its source.
static bool landed(Order *o) {
  const Kernel *k = o->p->v->k;
  const Ins *ins = &k->role.at[o->from.role].code.at[o->from.pc];
  if (ins->op != OP_COPYIN) return false;
  u32 ring = k->buf.at[k->view.at[ins->arg[0]].buf].ring;
  if (k->ring.at[ring].owner != SC_NONE && !own(o)) return false;
  if (!does(k, o->to.role, OP_WAIT, ring)) return false;
  return suffices(o, sc_pair_count(o->p, o->from, OP_ACQUIRE, ring), -1,
                  sc_pair_count(o->p, o->to, OP_WAIT, ring));
}

// The next time that the instance gives, in the block of the access; SC_NONE: that is not known.
static u32 next_give(const Code *code, u32 pc, Channel c) {
  u32 depth = 0;
  while (++pc < code->n) {
    const Ins *ins = &code->at[pc];
    u8 effects = sc_op[ins->op].effects;
    if (ins->op == c.gives && ins->arg[0] == c.ref) return depth ? SC_NONE : pc;
    if (!depth && effects & (CLOSES | SPLITS)) return SC_NONE;
    depth += (effects & OPENS) != 0;
    depth -= (effects & CLOSES) != 0;
  }
  return SC_NONE;
}

// Is the access over when its own instance gives? (A copy in may be: the instance has waited for
// the stage itself.)
static bool over_when_given(const Order *o, Channel c) {
  const Kernel *k = o->p->v->k;
  if (sc_over_before(k, o->access, c.gives, c.ref)) return true;
  u32 pc = next_give(&k->role.at[o->from.role].code, o->from.pc, c);
  Order own = *o;
  own.to = (Place){o->from.role, pc, o->from.side};
  return pc != SC_NONE && landed(&own);
}

static bool through(Order *o, Channel c) {
  const Kernel *k = o->p->v->k;
  if (!does(k, o->from.role, c.gives, c.ref) || !does(k, o->to.role, c.takes, c.ref)) return false;
  if (!over_when_given(o, c) || !speaks_for_all(o, c) || !told_to_all(o, c)) return false;
  return suffices(o, sc_pair_count(o->p, o->from, c.gives, c.ref), c.later,
                  sc_pair_count(o->p, o->to, c.takes, c.ref));
}

// ---- turns over instances

// Has `from` the turn before `to` has it equally often? (Not if both are one instance: that has it
// again only when it has passed it on.)
static bool first_goes_before(const Order *o, u32 from, u32 to, bool *known) {
  *known = true;
  if (from != to) return from < to;
  for (u32 i = 0; i < o->p->vars; i++) {
    const PairVar *u = &o->p->var[i];
    if (u->op != X_INST || u->relation == REL_ANY) continue;
    return u->relation == (o->from.side ? REL_MORE : REL_LESS);
  }
  *known = false;
  return false;
}

static bool by_turn(Order *o, u32 turn) {
  if (o->from.side + o->to.side != 1) return false;
  const Kernel *k = o->p->v->k;
  const Turn *t = &k->turn.at[turn];
  bool known, both = sc_turn_goes_over(t, o->from.role) && sc_turn_goes_over(t, o->to.role);
  if (!both || sc_turn_is_dealt(k, t)) return false;
  bool before = first_goes_before(o, sc_members_before(k, t, o->from.role),
                                  sc_members_before(k, t, o->to.role), &known);
  return known && through(o, (Channel){OP_PASS, OP_TAKE, turn, !before});
}

// ---- one before the other

static bool before(Order *o);

// Does the role hand on only after the first access? That must hold of each operation that may be
// the last one that `to` has heard of.
static bool given_after(Order *o, u32 role, Channel c, Xid heard) {
  Pair *p = o->p;
  const Code *code = &p->v->k->role.at[role].code;
  bool ok = true;
  for (u32 pc = 0; pc < code->n && ok; pc++) {
    if (code->at[pc].op != c.gives || code->at[pc].arg[0] != c.ref) continue;
    if (!p->links) return false;
    p->links--;
    Order link = *o;
    link.to = (Place){role, pc, LINK_SIDE + 2 * (MOST_LINKS - o->links) + o->from.side};
    link.links--;
    u32 mark = sc_facts_mark(p->v->facts);
    sc_pair_say_place(p, link.to, sc_access_writes(o->access));
    sc_pair_say(p, X_EQ, sc_pair_count(p, link.to, c.gives, c.ref), heard);
    ok = before(&link);
    sc_facts_drop(p->v->facts, mark);
  }
  return ok;
}

// Is there a third role that had heard of the first access before `to` heard of that role?
static bool linked(Order *o, Channel c) {
  Pair *p = o->p;
  const Kernel *k = p->v->k;
  if (!o->links || !does(k, o->to.role, c.takes, c.ref) || !told_to_all(o, c)) return false;
  Xid taken = sc_pair_count(p, o->to, c.takes, c.ref);
  Xid heard = taken ? sc_pair_make(p, X_SUB, taken, sc_pair_int(p, c.later + 1)) : 0;
  if (!heard || !sc_fact_nonneg(p->v->facts, heard)) return false;
  for (u32 r = 0; r < k->role.n; r++) {
    Channel of = c;
    if (c.gives == OP_COMMIT) of.gives = arrives_by(k, r, c.ref);
    if (does(k, r, of.gives, c.ref) && given_after(o, r, of, heard)) return true;
  }
  return false;
}

static bool through_ring(Order *o, u32 ring) {
  const Kernel *k = o->p->v->k;
  const Channel fills = {arrives_by(k, o->from.role, ring), OP_WAIT, ring, 0};
  const Channel drains = {OP_RELEASE, OP_ACQUIRE, ring, k->ring.at[ring].stages};
  return through(o, fills) || through(o, drains);
}

static bool before(Order *o) {
  const Kernel *k = o->p->v->k;
  bool ok = landed(o);
  for (u32 i = 0; i < k->ring.n && !ok; i++)
    ok = k->ring.at[i].owner == SC_NONE && through_ring(o, i);
  for (u32 i = 0; i < k->turn.n && !ok; i++) ok = by_turn(o, i);
  for (u32 i = 0; i < k->ring.n && !ok; i++) {
    if (k->ring.at[i].owner != SC_NONE) continue;
    ok = linked(o, (Channel){OP_COMMIT, OP_WAIT, i, 0}) ||
         linked(o, (Channel){OP_RELEASE, OP_ACQUIRE, i, k->ring.at[i].stages});
  }
  return ok;
}

bool sc_pair_ordered(Pair *p, bool chains) {
  const Place a = {p->a->role, p->a->pc, 0}, b = {p->b->role, p->b->pc, 1};
  const u32 links = chains ? MOST_LINKS : 0;
  return before(&(Order){p, a, b, p->a, links}) || before(&(Order){p, b, a, p->b, links});
}

// ---- turns over CTAs

static bool of_turn(const Ins *ins, u32 turn) {
  return (ins->op == OP_TAKE || ins->op == OP_PASS) && ins->arg[0] == turn;
}

// Is the turn taken or passed on in a loop around the access that began after the `take`? Then some
// rounds of the access may be beyond the turn.
static bool of_later_round(const Code *code, u32 take, u32 pc, u32 turn) {
  for (u32 i = take + 1; i < pc; i++) {
    if (code->at[i].op != OP_FOR || code->at[i].nest < pc) continue;
    for (u32 j = i; j < code->at[i].nest; j++)
      if (of_turn(&code->at[j], turn)) return true;
  }
  return false;
}

// Does the instance know that the access is over when it comes to a `pass` or `take` behind it?
static bool over_at(Pair *p, const Access *a, u32 side, u32 next) {
  const Ins *ins = &p->v->k->role.at[a->role].code.at[next];
  if (sc_over_before(p->v->k, a, ins->op, ins->arg[0])) return true;
  return before(&(Order){p, {a->role, a->pc, side}, {a->role, next, side}, a, MOST_LINKS});
}

// The `take` before the access, in no block that is over by then, nor on the other side of an `if`
// around it; SC_NONE: there is none, or such a block takes the turn or passes it on.
static u32 last_take(const Code *code, u32 pc, u32 turn) {
  u32 depth = 0;
  while (pc-- > 0) {
    const Ins *ins = &code->at[pc];
    const u8 effects = sc_op[ins->op].effects;
    if (of_turn(ins, turn)) return depth || ins->op == OP_PASS ? SC_NONE : pc;
    depth += effects & CLOSES || (effects & SPLITS && !depth);
    depth -= effects & OPENS && depth;
  }
  return SC_NONE;
}

// The next operation behind an access, past the other side of an `if` around it; NULL: there is
// none. depth: of blocks that began behind the access, which may be left out.
static const Ins *next_behind(const Code *code, u32 *pc, u32 *depth) {
  while (++*pc < code->n) {
    const Ins *ins = &code->at[*pc];
    const u8 effects = sc_op[ins->op].effects;
    if (effects & SPLITS && !*depth) *pc = ins->nest;
    if (effects & SPLITS) continue;
    *depth += (effects & OPENS) != 0;
    *depth -= effects & CLOSES && *depth;
    return ins;
  }
  return NULL;
}

// Wherever the turn may be passed on next, is the access over? What stands in a block may be left
// out, so all is looked at up to what does not.
static bool over_when_passed(Pair *p, const Access *a, u32 side, u32 turn) {
  const Code *code = &p->v->k->role.at[a->role].code;
  u32 depth = 0, pc = a->pc;
  bool some = false;
  for (const Ins *ins; (ins = next_behind(code, &pc, &depth));) {
    if (!of_turn(ins, turn)) continue;
    if (ins->op == OP_TAKE || !over_at(p, a, side, pc)) return false;
    some = true;
    if (!depth) return true;
  }
  return some;
}

// The turn that the instance has when it comes to the access, and keeps until that is over: the
// number of its `take`; SC_NONE: it has none.
static u32 taken_at(Pair *p, const Access *a, u32 side, u32 turn) {
  const Code *code = &p->v->k->role.at[a->role].code;
  const u32 take = last_take(code, a->pc, turn);
  if (take == SC_NONE || of_later_round(code, take, a->pc, turn)) return SC_NONE;
  return over_when_passed(p, a, side, turn) ? take : SC_NONE;
}

// Are these the keys of one turn? (Each is an operation's in the execution of its side.)
static bool one_key(Pair *p, const Ins *first, const Ins *second) {
  Xid a = first->arg[1], b = second->arg[1];
  if (!a || !b) return a == b;
  b = sc_restate(p, SECOND_SIDE, b);
  return b && sc_fact_equal(p->v->facts, a, b);
}

// Has an instance that comes to the access taken that turn? (It may have passed it on since.)
static bool has_taken(Pair *p, const Access *a, u32 side, const Ins *take) {
  const Code *code = &p->v->k->role.at[a->role].code;
  u32 depth = 0;
  for (u32 pc = a->pc; pc-- > 0;) {
    const Ins *ins = &code->at[pc];
    const u8 effects = sc_op[ins->op].effects;
    bool takes = !depth && ins->op == OP_TAKE && ins->arg[0] == take->arg[0];
    if (takes && (side ? one_key(p, take, ins) : one_key(p, ins, take))) return true;
    depth += effects & CLOSES || (effects & SPLITS && !depth);
    depth -= effects & OPENS && depth;
  }
  return false;
}

// Does the instance still take a turn, once the access is over, that the other one has taken when
// it comes to its access?
static bool takes_later(Pair *p, const Access *a, const Access *to, u32 side, u32 turn) {
  const Code *code = &p->v->k->role.at[a->role].code;
  u32 depth = 0, pc = a->pc;
  for (const Ins *ins; (ins = next_behind(code, &pc, &depth));) {
    if (depth || ins->op != OP_TAKE || ins->arg[0] != turn) continue;
    if (over_at(p, a, side, pc) && has_taken(p, to, !side, ins)) return true;
  }
  return false;
}

// What an instance does before it takes a turn is over when it passes that on; and whoever takes it
// later knows of that from then on.
static bool earlier_turn(Pair *p, u32 turn) {
  const u8 relation = p->var[p->v->k->turn.at[turn].axis].relation;
  if (relation != REL_LESS && relation != REL_MORE) return false;
  const u32 side = relation == REL_LESS ? FIRST_SIDE : SECOND_SIDE;
  const Access *from = side ? p->b : p->a, *to = side ? p->a : p->b;
  u32 take = taken_at(p, from, side, turn);
  const Code *code = &p->v->k->role.at[from->role].code;
  bool has = take != SC_NONE && has_taken(p, to, !side, &code->at[take]);
  return has || takes_later(p, from, to, side, turn);
}

// CTAs that take a turn with one key do so in the order of the axis, if all their other indices are
// the same; and so do instances that deal tiles among them. (Of two executions that may be in one
// tile the turn says nothing: both may stand within it.)
static bool takes_turn(Pair *p, u32 turn) {
  const Kernel *k = p->v->k;
  const Turn *t = &k->turn.at[turn];
  const Role *r = &k->role.at[p->a->role];
  if (!sc_turn_over_ctas(t) || p->a->role != p->b->role) return false;
  if (r->instances > 1 && !r->one_tile) return false;
  if (p->var[t->axis].relation == REL_ANY) return false;
  for (u32 i = 0; i < p->axes; i++)
    if (i != t->axis && p->var[i].relation != REL_EQUAL) return false;
  if (earlier_turn(p, turn)) return true;
  u32 a = taken_at(p, p->a, 0, turn), b = taken_at(p, p->b, 1, turn);
  return a != SC_NONE && b != SC_NONE && one_key(p, &r->code.at[a], &r->code.at[b]);
}

bool sc_pair_takes_turns(Pair *p) {
  for (u32 i = 0; i < p->v->k->turn.n; i++)
    if (takes_turn(p, i)) return true;
  return false;
}
