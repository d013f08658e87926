// alike.c - votes that all warps of an instance take together: which of them need a barrier, and
// which loops they split. In: a lowered role. Out: Plan.sync and Plan.side; Buf.alike.
//
// A vector is alike if it holds one value in all of its rows: each value that it is given is made
// of constants, of what is the same for the whole instance, and of vectors that are alike; it is
// given to all rows at once, and never in the block of a vote that each warp takes by itself. Each
// thread computes that value, so that a vote on such vectors alone needs no barrier.
//
// A loop is split in two if its rounds are of two kinds, and those of the second come last: votes
// together ask whether an alike vector is equal to a constant, or is not; only blocks of one of the
// two answers change the vector, and none of these votes follows in the round. So the answer is the
// same in a whole round, and once it is the other one, it stays. Then no branch stands between the
// products of a round (measured: a branch there costs 6 % of the time of fa3_stale).
#include "compiler/flow/flow.h"

typedef struct Alike {
  const Kernel *k;
  Code *code;
  u32 role;
  Below below;
  bool *is;  // by buf
} Alike;

// ---- values that are the same in all rows

static bool reads_own_row(const Kernel *k, const View *v) {
  return v->rank == 1 && v->at[0].var == 0 && !v->at[0].base && k->buf.at[v->buf].space == SP_REG;
}

static bool value_is_alike(Alike *a, Xid root) {
  x_begin(&a->below, 0);
  x_from(&a->below, root);
  for (Xid x; (x = x_next(&a->below));) {
    const Expr *e = &a->k->expr.at[x];
    if (x_uniform(a->k, x)) continue;
    if (e->op == X_IDX || e->op == X_SUM || e->op == X_RMAX || e->op == X_RMIN) return false;
    if (e->op != X_LOAD) continue;
    const View *v = &a->k->view.at[e->ref];
    if (!reads_own_row(a->k, v) || !a->is[v->buf]) return false;
  }
  return true;
}

static bool gives_alike(Alike *a, const Ins *ins) {
  if (ins->op != OP_MAP) return false;
  const Map *m = &a->k->map.at[ins->arg[0]];
  const View *dst = &a->k->view.at[m->dst];
  return sc_writes_all(a->k, ins, dst) && value_is_alike(a, m->root);
}

// Strikes out the vectors that one operation gives different values. False: there is none.
static bool strike(Alike *a) {
  bool any = false;
  u32 apart = 0;
  for (u32 pc = 0; pc < a->code->n; pc++) {
    const Ins *ins = &a->code->at[pc];
    if (ins->op == OP_VOTE && !(ins->flags & INS_TOGETHER)) apart++;
    if (ins->op == OP_ENDVOTE && !(a->code->at[ins->nest].flags & INS_TOGETHER)) apart--;
    for (u32 i = 0; i < ins->accesses; i++) {
      const ViewAccess *at = sc_view_access(a->k, ins, i);
      u32 buf = a->k->view.at[at->view].buf;
      if (!at->write || !a->is[buf] || (!apart && gives_alike(a, ins))) continue;
      a->is[buf] = false;
      any = true;
    }
  }
  return any;
}

static void find(Alike *a) {
  enum { MOST_PASSES = 8 };  // then none is taken to be alike, and votes have barriers
  for (u32 i = 0; i < a->k->buf.n; i++) {
    const Buf *b = &a->k->buf.at[i];
    a->is[i] = b->space == SP_REG && b->role == a->role && b->layout == LAY_ROW && !b->partial;
  }
  for (u32 n = 0; strike(a); n++) {
    for (u32 i = 0; i < a->k->buf.n && n == MOST_PASSES; i++) a->is[i] = false;
  }
}

// ---- loops of two kinds of rounds

// What a vote asks: is the vector equal to the constant, or is it not?
typedef struct Question {
  u32 buf;  // SC_NONE: something else
  double than;
  bool equal;
} Question;

static Question asked(const Alike *a, const Ins *ins) {
  Question none = {.buf = SC_NONE};
  if (ins->op != OP_VOTE || !(ins->flags & INS_TOGETHER)) return none;
  const Expr *e = &a->k->expr.at[a->k->map.at[ins->arg[0]].root];
  if (e->op != X_EQ && e->op != X_NE) return none;
  const Expr *left = &a->k->expr.at[e->a], *right = &a->k->expr.at[e->b];
  if (left->op != X_LOAD || right->op != X_REAL) return none;
  const View *v = &a->k->view.at[left->ref];
  if (!reads_own_row(a->k, v) || !a->is[v->buf]) return none;
  return (Question){v->buf, right->num.f, e->op == X_EQ};
}

static bool is_about(Question q, Question of) { return q.buf == of.buf && q.than == of.than; }

static bool writes(const Alike *a, const Ins *ins, u32 buf) {
  for (u32 i = 0; i < ins->accesses; i++) {
    const ViewAccess *at = sc_view_access(a->k, ins, i);
    if (at->write && a->k->view.at[at->view].buf == buf) return true;
  }
  return false;
}

// Is the answer to q the same in a whole round of [from, to), and may it change only from the one
// of `first`?
static bool settles(const Alike *a, u32 from, u32 to, Question q, bool first) {
  bool written = false;
  u32 inside = 0;  // up to here reaches a block of that answer
  for (u32 pc = from; pc < to; pc++) {
    const Ins *ins = &a->code->at[pc];
    Question here = asked(a, ins);
    if (here.buf == q.buf && written) return false;
    if (is_about(here, q) && here.equal == first && ins->nest > inside) inside = ins->nest;
    if (!writes(a, ins, q.buf)) continue;
    if (pc >= inside) return false;
    written = true;
  }
  return true;
}

// Is the vector set on every way to the operation `at`, whatever conditions say? The loop's head
// asks it in every round, also where no vote is reached.
static bool is_set_before(const Alike *a, u32 at, u32 buf) {
  for (u32 pc = 0; pc < at; pc++) {
    const Ins *ins = &a->code->at[pc];
    if (writes(a, ins, buf)) return true;
    if (!(sc_op[ins->op].effects & OPENS)) continue;
    u32 end = sc_closed_by(a->code, pc);
    if (end < at) pc = end;
    else if (ins->op == OP_IF && ins->nest < at) pc = ins->nest;
  }
  return false;
}

static void split(Alike *a, Ins *loop, u32 from, Question q, bool first) {
  loop->plan.side = SIDE_FIRST;
  for (u32 pc = from; pc < loop->nest; pc++) {
    Ins *ins = &a->code->at[pc];
    Question here = asked(a, ins);
    if (is_about(here, q)) ins->plan.side = here.equal == first ? SIDE_FIRST : SIDE_LAST;
  }
}

static void split_loop(Alike *a, u32 pc) {
  Ins *loop = &a->code->at[pc];
  Question q = {.buf = SC_NONE};
  for (u32 i = pc + 1; i < loop->nest; i++) {
    if (a->code->at[i].op == OP_FOR) return;
    if (q.buf == SC_NONE) q = asked(a, &a->code->at[i]);
  }
  if (q.buf == SC_NONE || !is_set_before(a, pc, q.buf)) return;
  if (settles(a, pc + 1, loop->nest, q, q.equal)) split(a, loop, pc + 1, q, q.equal);
  else if (settles(a, pc + 1, loop->nest, q, !q.equal)) split(a, loop, pc + 1, q, !q.equal);
}

void sc_plan_votes(Sc *sc, Kernel *k, u32 role) {
  Role *r = &k->role.at[role];
  Alike a = {.k = k, .code = &r->code, .role = role, .below = {.sc = sc, .k = k}};
  bool any = false;
  for (u32 pc = 0; pc < r->code.n; pc++)
    any |= r->code.at[pc].op == OP_VOTE && r->code.at[pc].flags & INS_TOGETHER;
  if (!any) return;
  a.is = NEWS(sc, bool, k->buf.n + 1);
  find(&a);
  for (u32 i = 0; i < k->buf.n; i++)
    if (k->buf.at[i].role == role) k->buf.at[i].alike = a.is[i];
  for (u32 pc = 0; pc < r->code.n; pc++) {
    Ins *ins = &r->code.at[pc];
    if (ins->op == OP_FOR) split_loop(&a, pc);
    if (ins->op == OP_VOTE && ins->flags & INS_TOGETHER && r->warps > 1)
      ins->plan.sync = !value_is_alike(&a, k->map.at[ins->arg[0]].root);
  }
}
