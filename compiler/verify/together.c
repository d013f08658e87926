// together.c - the proof NAMED: do all warps of an instance go the same way where they vote
// together? In: a placed kernel. Out: reports where the plan lacks a barrier, or where it takes a
// loop for one of two kinds of rounds that it is not.
//
// A vote together without a barrier is one whose outcome each thread knows by itself: all vectors
// that it asks hold one value in all rows. What holds one value is carried forward over all paths:
// a vector does behind a statement that gives all of its rows a value made of constants, of uniform
// values and of such vectors; after a block that may be left out, or a loop, if it does with and
// without it. (Other than flow/alike.c, which asks whether a vector does everywhere.) A vector that
// nothing has set yet counts as such: that none is read before it is set, the data flow has proved.
//
// A loop that is split has rounds of the first kind while the vector is equal to the constant, or
// while it is not. Its head asks that in every round, so the vector is set on every way to it. In a
// round of either kind each vote must find the answer of that kind, so the vector must not have
// been set before in the round; in those of the last kind it is never set.
#include "compiler/verify/barriers.h"

#include <string.h>

typedef struct Same {
  Verify *v;
  const Kernel *k;
  const Role *r;
  Below below;
  bool *now;    // by buf: it holds one value in all rows here
  bool *set;    // by buf, behind `now`: it is set on every way to here
  bool **head;  // by loop: the same, where a round begins
  bool changed, report;
} Same;

// ---- vectors that hold one value

static bool is_vector(const Same *s, const View *v) {
  const Buf *b = &s->k->buf.at[v->buf];
  return b->space == SP_REG && b->rank == 1 && !b->partial && v->at[0].var == 0 && !v->at[0].base;
}

static bool is_one_value(Same *s, Xid root) {
  const Kernel *k = s->k;
  x_begin(&s->below, DEP_IDX | DEP_TILE);
  x_from(&s->below, root);
  for (Xid x; (x = x_next(&s->below));) {
    const Expr *e = &k->expr.at[x];
    if (e->op == X_LOAD && (!is_vector(s, &k->view.at[e->ref]) || !s->now[k->view.at[e->ref].buf]))
      return false;
    if (e->op == X_IDX || e->op == X_SUM || e->op == X_RMAX || e->op == X_RMIN) return false;
  }
  return true;
}

static void assign(Same *s, const Ins *ins, bool apart) {
  for (u32 i = 0; i < ins->accesses; i++) {
    const ViewAccess *a = sc_view_access(s->k, ins, i);
    const View *v = &s->k->view.at[a->view];
    if (!a->write || s->k->buf.at[v->buf].space != SP_REG) continue;
    i64 rows = 0;
    const Map *m = ins->op == OP_MAP ? &s->k->map.at[ins->arg[0]] : NULL;
    bool whole = m && !m->cond && is_vector(s, v) && x_const_int(s->k, m->var[0].extent, &rows) &&
                 rows == s->k->buf.at[v->buf].ext[0];
    s->now[v->buf] = !apart && whole && is_one_value(s, m->root);
    s->set[v->buf] = true;
  }
}

// ---- rounds of two kinds

// What a vote asks of a vector: is it equal to the constant, or is it not?
typedef struct Asked {
  u32 buf;  // SC_NONE: something else
  double than;
  bool equal;
} Asked;

static Asked asked(const Kernel *k, const Ins *vote) {
  const Expr *e = &k->expr.at[k->map.at[vote->arg[0]].root];
  const Expr *a = &k->expr.at[e->a], *b = &k->expr.at[e->b];
  bool is = (e->op == X_EQ || e->op == X_NE) && a->op == X_LOAD && b->op == X_REAL;
  if (!is || !(vote->flags & INS_TOGETHER)) return (Asked){.buf = SC_NONE};
  return (Asked){k->view.at[a->ref].buf, b->num.f, e->op == X_EQ};
}

static bool sets(const Kernel *k, const Ins *ins, u32 buf) {
  for (u32 i = 0; i < ins->accesses; i++) {
    const ViewAccess *a = sc_view_access(k, ins, i);
    if (a->write && k->view.at[a->view].buf == buf) return true;
  }
  return false;
}

// Goes through a round of the kind `side`, [from, to), of a loop that asks for the vector of
// `first`. Does each vote that is passed find the answer of that kind?
static bool goes_through(Same *s, u32 from, u32 to, const Ins *first, u8 side) {
  Asked is = asked(s->k, first);
  bool equal = is.equal == (first->plan.side == SIDE_FIRST), set = false;  // … in the first kind
  for (u32 pc = from; pc < to; pc++) {
    const Ins *ins = &s->r->code.at[pc];
    if (ins->op == OP_FOR) return false;
    set |= sets(s->k, ins, is.buf);
    if (ins->op != OP_VOTE || !ins->plan.side) continue;
    Asked here = asked(s->k, ins);
    if (set || here.buf != is.buf || here.than != is.than) return false;
    if ((here.equal == equal) != (ins->plan.side == SIDE_FIRST)) return false;
    if (ins->plan.side != side) pc = ins->nest;
  }
  return !set || side == SIDE_FIRST;
}

static void check_split(Same *s, u32 pc) {
  const Ins *loop = &s->r->code.at[pc], *first = loop + 1, *end = &s->r->code.at[loop->nest];
  while (first < end && (first->op != OP_VOTE || !first->plan.side)) first++;
  u32 about = first < end ? asked(s->k, first).buf : SC_NONE;
  if (about != SC_NONE && s->set[about] && goes_through(s, pc + 1, loop->nest, first, SIDE_FIRST) &&
      goes_through(s, pc + 1, loop->nest, first, SIDE_LAST))
    return;
  sc_bad_plan(s->v, PROOF_NAMED, loop->span,
              "this loop is split, but its rounds are not of two kinds of which one comes last");
}

// ---- paths

static u32 width(const Same *s) { return 2 * s->k->buf.n; }

static void copy(const Same *s, bool *to, const bool *from) {
  memcpy(to, from, width(s) * sizeof *to);
}

static bool *kept(const Same *s) {
  bool *at = NEWS(s->v->sc, bool, width(s) + 1);
  copy(s, at, s->now);
  return at;
}

static void join(Same *s, const bool *other) {
  for (u32 i = 0; i < width(s); i++) s->now[i] &= other[i];
}

static void walk(Same *s, u32 from, u32 to, bool apart);

static void vote(Same *s, const Ins *ins, u32 pc, bool apart) {
  bool together = ins->flags & INS_TOGETHER;
  if (together && !ins->plan.sync && s->r->warps > 1 && s->report &&
      !is_one_value(s, s->k->map.at[ins->arg[0]].root))
    sc_bad_plan(s->v, PROOF_NAMED, ins->span,
                "warps vote together here without a barrier, on what they do not all know");
  const bool *before = kept(s);
  walk(s, pc + 1, ins->nest, apart || !together);
  join(s, before);
}

static void loop(Same *s, const Ins *ins, u32 pc, bool apart) {
  bool *head = s->head[ins->arg[0]];
  join(s, head);
  if (ins->plan.side && s->report) check_split(s, pc);
  copy(s, head, s->now);
  walk(s, pc + 1, ins->nest, apart);
  for (u32 i = 0; i < width(s); i++) {
    s->changed |= head[i] && !s->now[i];
    head[i] &= s->now[i];
  }
  copy(s, s->now, head);
}

static void branch(Same *s, u32 pc, u32 mid, u32 end, bool apart) {
  bool *before = kept(s);
  walk(s, pc + 1, mid, apart);
  const bool *yes = kept(s);
  copy(s, s->now, before);
  walk(s, mid + 1, end, apart);
  join(s, yes);
}

static void walk(Same *s, u32 from, u32 to, bool apart) {
  const Code *code = &s->r->code;
  for (u32 pc = from; pc < to; pc++) {
    const Ins *ins = &code->at[pc];
    assign(s, ins, apart);
    if (!(sc_op[ins->op].effects & OPENS)) continue;
    u32 end = sc_closed_by(code, pc);
    if (ins->op == OP_VOTE) vote(s, ins, pc, apart);
    else if (ins->op == OP_FOR) loop(s, ins, pc, apart);
    else if (ins->op == OP_IF) branch(s, pc, ins->nest, end, apart);
    else walk(s, pc + 1, end, apart);
    pc = end;
  }
}

// Is each vote that is of a kind of rounds within a loop that has them?
static void check_sides(Same *s) {
  u32 inside = 0;
  for (u32 pc = 0; pc < s->r->code.n; pc++) {
    const Ins *ins = &s->r->code.at[pc];
    if (ins->op == OP_FOR && ins->plan.side) {
      inside = ins->nest;
    } else if (ins->plan.side && pc >= inside) {
      sc_bad_plan(s->v, PROOF_NAMED, ins->span,
                  "a vote is of a kind of rounds, and no loop has it");
    }
  }
}

static void from_start(Same *s) {
  memset(s->now, true, s->k->buf.n);
  memset(s->set, false, s->k->buf.n);
  walk(s, 0, s->r->code.n, false);
}

void sc_prove_together(Verify *v, u32 role) {
  const Role *r = &v->k->role.at[role];
  Same s = {.v = v, .k = v->k, .r = r, .below = {.sc = v->sc, .k = v->k}};
  bool any = false;
  for (u32 pc = 0; pc < r->code.n; pc++)
    any |= r->code.at[pc].plan.side || r->code.at[pc].flags & INS_TOGETHER;
  if (!any) return;
  s.now = NEWS(v->sc, bool, width(&s) + 1);
  s.set = s.now + v->k->buf.n;
  s.head = NEWS(v->sc, bool *, v->k->loop.n + 1);
  for (u32 i = 0; i < v->k->loop.n; i++) {
    s.head[i] = NEWS(v->sc, bool, width(&s) + 1);
    memset(s.head[i], true, width(&s));
  }
  enum { MOST_PASSES = 64 };  // each takes at least one vector away; then none holds one value
  for (u32 n = 0; n == 0 || s.changed; n++) {
    s.changed = false;
    for (u32 i = 0; i < v->k->loop.n && n == MOST_PASSES; i++) memset(s.head[i], false, width(&s));
    from_start(&s);
  }
  s.report = true;
  from_start(&s);
  check_sides(&s);
}
