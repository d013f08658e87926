// dead.c - finds operations that no launch executes, by the conditions and loops around them: the C
// compiler may find that as well, and leave them out. In: a kernel. Out: by role and operation,
// whether it is one of these (NEVER), and whether it is a loop that has at most one round in every
// launch (ONE_ROUND).
#include "runtime/ptx/ptx.h"

#include "compiler/facts/facts.h"

typedef struct Search {
  const Kernel *k;
  Facts *facts;
  const Code *code;
  u8 *dead;
} Search;

enum { DEEP = 16 };  // operands share operands: deeper ones are not looked at

// Is x certain to have this value?
static bool is_sure(const Search *s, Xid x, bool truth, u32 depth) {
  const Expr *e = &s->k->expr.at[x];
  bool value;
  if (depth == DEEP) return false;
  if (x_const_bool(s->k, x, &value)) return value == truth;
  if (sc_facts_refute(s->facts, x, !truth)) return true;
  switch ((ExprOp)e->op) {
    case X_NOT: return is_sure(s, e->a, !truth, depth + 1);
    case X_AND:
    case X_OR: {
      bool a = is_sure(s, e->a, truth, depth + 1);
      return (e->op == X_AND) == truth ? a && is_sure(s, e->b, truth, depth + 1)
                                       : a || is_sure(s, e->b, truth, depth + 1);
    }
    case X_LT:
      if (truth) return sc_fact_less(s->facts, e->a, e->b);
      return sc_fact_at_most(s->facts, e->b, e->a);
    case X_LE:
      if (!truth) return sc_fact_less(s->facts, e->b, e->a);
      return sc_fact_at_most(s->facts, e->a, e->b);
    case X_EQ:
    case X_NE:
      if ((e->op == X_EQ) == truth) return sc_fact_equal(s->facts, e->a, e->b);
      return sc_fact_less(s->facts, e->a, e->b) || sc_fact_less(s->facts, e->b, e->a);
    default: return false;
  }
}

// Marks the operations as dead, with the end of their block, whose plan may have a sync.
static void mark(const Search *s, u32 from, u32 end) {
  for (u32 pc = from; pc <= end; pc++) s->dead[pc] = NEVER;
}

static void look_at(const Search *s, u32 pc) {
  const Ins *ins = &s->code->at[pc];
  u32 mid = ins->nest;
  if (ins->op != OP_IF && ins->op != OP_FOR) return;
  sc_facts_at(s->facts, s->code, pc);
  if (ins->op == OP_FOR) {
    if (sc_fact_at_most(s->facts, ins->arg[2], ins->arg[1])) mark(s, pc + 1, mid);
    if (sc_fact_apart(s->facts, ins->arg[2], -1, ins->arg[1])) s->dead[pc] |= ONE_ROUND;
    return;
  }
  if (is_sure(s, ins->arg[0], false, 0)) mark(s, pc + 1, mid);
  if (s->code->at[mid].op == OP_ELSE && is_sure(s, ins->arg[0], true, 0))
    mark(s, mid + 1, s->code->at[mid].nest);
}

u8 **sc_ptx_dead(Sc *sc, const Kernel *k) {
  u8 **dead = NEWS(sc, u8 *, k->role.n + 1);
  Search s = {.k = k, .facts = sc_facts(sc, k)};
  for (u32 r = 0; r < k->role.n; r++) {
    s.code = &k->role.at[r].code;
    s.dead = dead[r] = NEWS(sc, u8, s.code->n + 1);
    for (u32 pc = 0; pc < s.code->n; pc++) {
      if (!s.dead[pc]) look_at(&s, pc);
    }
  }
  return dead;
}
