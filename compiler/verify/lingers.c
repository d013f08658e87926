// lingers.c - two executions by one instance in one tile: is the earlier over when the later one
// begins? In: a pair with what is known of it. Out: true only if it always is.
//
// The idea: an access by threads is over when their program goes on. THREADS asks that copies out
// are visible before threads access the tensor, before a sum follows a store, and before a store
// follows a sum. What remains is a copy that its own program overtakes: a copy out that follows
// another one (they are in no order until the first is visible: PTX ISA 9.0, 9.7.9.25), and a write
// to what a copy in may still read.
#include "compiler/verify/races.h"

bool sc_pair_one_tile(const Pair *p) {
  for (u32 i = 0; i < p->axes; i++)
    if (p->var[i].relation != REL_EQUAL) return false;
  return true;
}

bool sc_pair_one_execution(const Pair *p) {
  const Role *r = &p->v->k->role.at[p->a->role];
  if (p->a->role != p->b->role || !sc_pair_one_tile(p)) return false;
  for (u32 i = p->axes; i < p->vars; i++)
    if (p->var[i].op == X_INST) return p->var[i].relation == REL_EQUAL;
  return r->instances == 1 || r->one_tile;
}

static const Code *code_of(const Pair *p) { return &p->v->k->role.at[p->a->role].code; }

// The `for` of a loop of the role.
static const Ins *loop_of(const Code *code, u32 number) {
  u32 pc = 0;
  while (code->at[pc].op != OP_FOR || code->at[pc].arg[0] != number) pc++;
  return &code->at[pc];
}

typedef enum Sequence { NEVER_BOTH, FIRST_EARLIER, SECOND_EARLIER, NOT_KNOWN } Sequence;

// Which comes first in the program? The outermost loop around both whose round differs decides.
static Sequence by_rounds(const Pair *p, bool *one_round) {
  const Kernel *k = p->v->k;
  const Code *code = code_of(p);
  *one_round = false;
  for (u32 i = p->axes; i < p->vars; i++) {
    const PairVar *u = &p->var[i];
    if (u->op != X_LOOP) continue;
    if (k->expr.at[u->first].ref != u->ref) break;
    if (u->relation == REL_ANY) return NOT_KNOWN;
    if (u->relation == REL_EQUAL) continue;
    bool back = loop_of(code, u->ref)->flags & INS_REVERSED;
    return (u->relation == REL_LESS) == back ? SECOND_EARLIER : FIRST_EARLIER;
  }
  *one_round = true;
  return p->a->pc < p->b->pc ? FIRST_EARLIER : SECOND_EARLIER;
}

// Do they stand on the two sides of an `if` that is asked once for both, or always answers alike?
static bool excluded(const Pair *p, bool one_round) {
  const Code *code = code_of(p);
  const u32 low = p->a->pc < p->b->pc ? p->a->pc : p->b->pc, high = p->a->pc + p->b->pc - low;
  for (u32 pc = code->at[low].around; pc != SC_NONE; pc = code->at[pc].around) {
    const Ins *branch = &code->at[pc];
    if (branch->op != OP_IF || high > sc_closed_by(code, pc)) continue;
    bool alike = one_round || !(p->v->k->expr.at[branch->arg[0]].deps & DEP_LOOP);
    if (alike && low < branch->nest && branch->nest < high) return true;
  }
  return false;
}

static Sequence in_program(const Pair *p) {
  bool one_round;
  Sequence s = by_rounds(p, &one_round);
  bool same = one_round && p->a->pc == p->b->pc;
  return same || excluded(p, one_round) ? NEVER_BOTH : s;
}

// May the later one be issued before the earlier one, a copy out as well, is visible?
static bool overtakes(const Pair *p, const Access *earlier, const Access *later) {
  u64 *const *overtaken = p->v->proof->overtaken;
  if (earlier->kind != ACCESS_PUT || !overtaken) return sc_access_lingers(earlier, later);
  u64 all = overtaken[later->role][later->pc];
  return sc_access_lingers(earlier, later) && all & sc_copy_bit(code_of(p), earlier->pc);
}

bool sc_pair_in_program(const Pair *p) {
  if (p->stage) return true;
  bool first = overtakes(p, p->a, p->b), second = overtakes(p, p->b, p->a);
  if (!first && !second) return true;
  switch (in_program(p)) {
    case NEVER_BOTH: return true;
    case FIRST_EARLIER: return !first;
    case SECOND_EARLIER: return !second;
    case NOT_KNOWN: return false;
  }
  return false;
}
