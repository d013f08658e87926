// count.c - how often an operation has been done. In: a role's code and a place in it. Out: an
// expression over the variables of the loops around that place: how often the role has done an
// operation in this tile when it comes there. A loop of which each round does it equally often
// gives a product; what differs from round to round has no form.
//
// The expression also contains what the role need not have evaluated: the bounds of a loop within
// one that has no round. Those are given as well, because nothing may be concluded from their
// having a value.
#include "compiler/verify/races.h"

typedef struct Count {
  Races *v;
  const Code *code;
  u32 pc;  // the place
  Op op;
  u32 ref;
  bool known;
  u32 skipped;  // so many blocks around may be left out
  Xid unasked;  // a sum of what stands in such blocks
} Count;

static Xid make(Count *c, ExprOp op, Xid a, Xid b, Xid d) {
  Xid x = c->known ? x_make(c->v->sc, c->v->k, op, a, b, d) : 0;
  c->known = x != 0;
  return x;
}

static Xid number(Count *c, i64 n) { return x_int(c->v->sc, c->v->k, n); }

static void note(Count *c, Xid x) {
  if (!c->skipped || !c->known || !x) return;
  if (c->v->k->expr.at[x].ty == TY_BOOL) x = make(c, X_WHERE, x, number(c, 1), number(c, 0));
  c->unasked = c->unasked ? make(c, X_ADD, c->unasked, x, 0) : x;
}

static Xid count(Count *c, u32 from, u32 to);

// The rounds that are over, as values of the loop's variable from `from` to below `to`: all of a
// loop that has ended; with the place inside, those before the present one.
typedef struct Rounds {
  Xid from, to;
} Rounds;

static Rounds rounds_of(Count *c, u32 pc) {
  const Ins *loop = &c->code->at[pc];
  if (pc >= c->pc || c->pc > loop->nest) return (Rounds){loop->arg[1], loop->arg[2]};
  Xid now = x_leaf(c->v->sc, c->v->k, X_LOOP, TY_INT, loop->arg[0]);
  if (!(loop->flags & INS_REVERSED)) return (Rounds){loop->arg[1], now};
  return (Rounds){make(c, X_ADD, now, number(c, 1), 0), loop->arg[2]};
}

static Xid length(Count *c, Rounds r) {
  return make(c, X_MAX, make(c, X_SUB, r.to, r.from, 0), number(c, 0), 0);
}

// Does the condition divide the rounds of the loop in two, as `t < e` or `e <= t` does? Then: the
// first value of t in the upper part, and whether the condition holds below it. 0: it does not.
static Xid divides(Count *c, Xid cond, u32 loop, bool *below) {
  const Expr *e = &c->v->k->expr.at[cond];
  const Expr *a = &c->v->k->expr.at[e->a], *b = &c->v->k->expr.at[e->b];
  bool order = e->op == X_LT || e->op == X_LE;
  bool left = order && a->op == X_LOOP && a->ref == loop;
  bool right = order && b->op == X_LOOP && b->ref == loop;
  if (left == right || x_names_loop(&c->v->inner, left ? e->b : e->a, loop)) return 0;
  *below = left;
  Xid at = left ? e->b : e->a;  // t < at, t <= at, at < t, at <= t
  return (e->op == X_LE) == left ? make(c, X_ADD, at, number(c, 1), 0) : at;
}

// The sum over the rounds, if each round does it `each` times.
static Xid over_rounds(Count *c, Rounds r, Xid each, u32 loop) {
  const Expr e = c->v->k->expr.at[each];
  bool below;
  if (!x_names_loop(&c->v->inner, each, loop)) return make(c, X_MUL, length(c, r), each, 0);
  Xid at = e.op == X_WHERE ? divides(c, e.a, loop, &below) : 0;
  if (!at || x_names_loop(&c->v->inner, e.b, loop) || x_names_loop(&c->v->inner, e.c, loop))
    return c->known = false, 0;
  Rounds low = {r.from, make(c, X_MIN, r.to, at, 0)}, high = {make(c, X_MAX, r.from, at, 0), r.to};
  Xid yes = make(c, X_MUL, length(c, below ? low : high), e.b, 0);
  return make(c, X_ADD, yes, make(c, X_MUL, length(c, below ? high : low), e.c, 0), 0);
}

static Xid in_loop(Count *c, u32 pc) {
  const Ins *loop = &c->code->at[pc];
  u32 place = c->pc;
  bool inside = pc < place && place <= loop->nest;
  c->pc = UINT32_MAX;  // of a whole round
  c->skipped++;
  Xid each = count(c, pc + 1, loop->nest);
  c->skipped--;
  c->pc = place;
  i64 n;
  if (!c->known) return 0;
  bool none = x_const_int(c->v->k, each, &n) && !n;
  for (u32 i = 1; i <= 2 && !none; i++) note(c, loop->arg[i]);
  Xid sum = none ? each : over_rounds(c, rounds_of(c, pc), each, loop->arg[0]);
  return inside ? make(c, X_ADD, sum, count(c, pc + 1, place), 0) : sum;
}

static Xid in_branch(Count *c, u32 pc, u32 mid, u32 end) {
  const Ins *branch = &c->code->at[pc];
  if (pc < c->pc && c->pc <= mid) return count(c, pc + 1, c->pc);
  if (mid < c->pc && c->pc <= end) return count(c, mid + 1, c->pc);
  c->skipped++;
  Xid yes = count(c, pc + 1, mid), no = end > mid ? count(c, mid + 1, end) : number(c, 0);
  c->skipped--;
  if (yes != no) note(c, branch->arg[0]);
  return make(c, X_WHERE, branch->arg[0], yes, no);
}

static Xid count(Count *c, u32 from, u32 to) {
  Xid sum = number(c, 0);
  for (u32 pc = from; pc < to && c->known; pc++) {
    const Ins *ins = &c->code->at[pc];
    Xid more = 0;
    if (ins->op == OP_IF) {
      u32 mid = ins->nest, end = sc_closed_by(c->code, pc);
      more = in_branch(c, pc, mid, end);
      pc = end;
    } else if (ins->op == OP_FOR) {
      more = in_loop(c, pc);
      pc = ins->nest;
    } else if (ins->op == c->op && ins->arg[0] == c->ref) {
      more = number(c, 1);
    }
    if (more) sum = make(c, X_ADD, sum, more, 0);
  }
  return sum;
}

Xid sc_count_before(Races *v, const Code *code, u32 pc, Op op, u32 ref, Xid *unasked) {
  Count c = {.v = v, .code = code, .pc = pc, .op = op, .ref = ref, .known = true};
  Xid sum = count(&c, 0, pc);
  *unasked = c.unasked;
  return c.known ? sum : 0;
}
