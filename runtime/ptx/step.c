// step.c - appends steps to the wanted program. In: a Planner, which says where the program has
// come to. Called by plan.c, operation.c and draw.c.
#include "runtime/ptx/planner.h"

// ---- the program

Step *want_event(Planner *p, EventId id, i64 first, i64 second) {
  Step s = {.op = STEP_EVENT, .span = p->span, .must = !p->dead};
  bool placed = p->span.hi > p->span.lo;
  s.want = (Event){.id = (u8)id,
                   .line = placed ? sc_line_col(p->k->text, p->span.lo).line : 0,
                   .at = ARG_ANY,
                   .arg = {first, second, ARG_ANY, ARG_ANY}};
  PUSH(p->sc, &p->w.step, s);
  return &p->w.step.at[p->w.step.n - 1];
}

bool want_more_held(const Planner *p, u32 ring) {
  return ring < p->k->ring.n && sc_most_held(p->k, p->r, ring) > 1;
}

static Cursor cursor_of(const Planner *p, EventId id, Barriers of) {
  bool drains = of.full == (id == EV_WAIT);
  if (!drains) return CURSOR_FILL;
  return want_more_held(p, of.ring) && !of.full ? CURSOR_OLDEST : CURSOR_NEXT;
}

Step *want_at(Planner *p, EventId id, Barriers of, i64 number) {
  Step *s = want_event(p, id, number, ARG_ANY);
  s->want.at = of.at;
  s->barrier = of;
  s->cursor = (u8)cursor_of(p, id, of);
  return s;
}

void want_stage(Planner *p, u32 ring, Cursor cursor) {
  Step s = {.op = STEP_STAGE, .span = p->span, .barrier = {.ring = ring}, .cursor = (u8)cursor};
  PUSH(p->sc, &p->w.step, s);
}

u32 want_fork(Planner *p) {
  PUSH(p->sc, &p->w.step, ((Step){.op = STEP_FORK}));
  return p->w.step.n - 1;
}

u32 want_goto(Planner *p) {
  PUSH(p->sc, &p->w.step, ((Step){.op = STEP_GOTO}));
  return p->w.step.n - 1;
}

void want_round(Planner *p, u32 step) {
  bool must = false;
  for (u32 i = step; i < p->w.step.n && !p->dead; i++) must |= p->w.step.at[i].must;
  Step round = {.op = STEP_ROUND, .to = step, .span = p->span, .must = must};
  PUSH(p->sc, &p->w.step, round);
}

void want_land(Planner *p, u32 step) { p->w.step.at[step].to = p->w.step.n; }

bool want_thread0(const Planner *p) { return !p->warp && !p->lane; }

void want_meet(Planner *p) {
  if (p->alone) return;
  if (p->role->warps == 1) want_event(p, EV_WARP_SYNC, ALL_LANES, ARG_ANY);
  else want_event(p, EV_BAR_SYNC, p->role->barrier + p->instance, WARP * p->role->warps);
}

void want_order(Planner *p, const Ins *ins) {
  if (ins->plan.fence)
    want_event(p, ins->plan.global ? EV_FENCE : EV_FENCE_SHARED, ARG_ANY, ARG_ANY);
  if (!ins->plan.sync) return;
  if (ins->op == OP_VOTE && ins->flags & INS_TOGETHER)
    want_event(p, EV_BAR_RED, p->role->barrier + p->instance, WARP * p->role->warps);
  else want_meet(p);
}

// ---- values that the instance decides

enum { DEEP = 16 };  // operands share operands: deeper ones are not looked at

static Sure sure(const Planner *p, Xid x, i64 *out, u32 depth);

// The value of `and` or `or`, which one operand may decide alone: `w == 0 and …`.
static Sure sure_truth(const Planner *p, const Expr *e, i64 *out, u32 depth) {
  i64 a = 0, b = 0;
  Sure of_a = sure(p, e->a, &a, depth), of_b = sure(p, e->b, &b, depth);
  bool ends = e->op == X_OR;
  if ((of_a && (a != 0) == ends) || (of_b && (b != 0) == ends)) return *out = ends, SURE;
  return of_a && of_b ? (*out = !ends, SURE) : UNSURE;
}

static Sure sure(const Planner *p, Xid x, i64 *out, u32 depth) {
  *out = 0;
  if (!x) return SURE;
  const Expr *e = &p->k->expr.at[x];
  i64 a, b;
  if (e->op == X_INT || e->op == X_BOOL) return *out = e->num.i, SURE;
  if (e->op == X_INST && e->ref == p->r) return *out = p->instance, SURE;
  if (depth == DEEP) return UNSURE;
  if (e->op == X_AND || e->op == X_OR) return sure_truth(p, e, out, depth + 1);
  if (e->deps & ~DEP_INST || sc_xop[e->op].arity == 0 || sc_xop[e->op].arity > 2) return UNSURE;
  if (!sure(p, e->a, &a, depth + 1) || !sure(p, e->b, &b, depth + 1)) return UNSURE;
  return sc_int_op((ExprOp)e->op, a, b, out) ? SURE : UNSURE;
}

Sure want_sure(const Planner *p, Xid x, i64 *out) { return sure(p, x, out, 0); }
