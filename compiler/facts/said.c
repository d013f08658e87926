// said.c - what is said of integers: by what the kernel requires, by its grid, and by the loops and
// conditions around an operation. In: a kernel, and a place in a role's code. Out: facts that hold
// there, on the stack of facts.c.
#include "compiler/facts/linear.h"

// ---- conditions

static void say_less(Facts *f, Xid a, Xid b, i64 by) {  // a + by <= b
  Lin g = sc_lin_int(-by);
  bool known = sc_lin_add(&g, sc_form(f, b), 1) && sc_lin_add(&g, sc_form(f, a), -1);
  if (known) sc_fact_push(f, FACT_SAID, &g);
  else sc_fact_vague(f, DEP_LOOP | DEP_INST);
}

static void say_equal(Facts *f, Xid a, Xid b) {
  Lin zero = sc_lin_int(0);
  say_less(f, a, b, 0);
  say_less(f, b, a, 0);
  bool ok = sc_lin_add(&zero, sc_form(f, a), 1) && sc_lin_add(&zero, sc_form(f, b), -1);
  if (ok && sc_know(f, &zero)) sc_fact_zero(f, &zero);
}

// (The form of a remainder has more values than it.)
static Interval values_of(Facts *f, Xid x) {
  const Expr e = f->k->expr.at[x];
  i64 n;
  if (e.op == X_MOD && x_const_int(f->k, e.b, &n) && n > 0) return (Interval){0, n - 1};
  return sc_form_interval(f, sc_form(f, x));
}

// Of two of which one cannot be less than the other: `t % 3 != 0` says that it is more.
static void say_differ(Facts *f, Xid a, Xid b) {
  Lin difference = sc_lin_int(0);
  const Interval x = values_of(f, a), y = values_of(f, b);
  if (!sc_lin_add(&difference, sc_form(f, a), 1) || !sc_lin_add(&difference, sc_form(f, b), -1))
    return;
  Interval by = sc_form_interval(f, &difference);
  if (by.lo >= 0 || x.lo >= y.hi) say_less(f, b, a, 1);
  else if (by.hi <= 0 || x.hi <= y.lo) say_less(f, a, b, 1);
}

static void say_order(Facts *f, const Expr *e, bool truth) {  // LT, LE
  bool strict = (e->op == X_LT) == truth;
  say_less(f, truth ? e->a : e->b, truth ? e->b : e->a, strict);
}

enum { CONDITIONS = 64 };

// Conditions share their operands: of one that is written out in too many, the rest says nothing.
static void say(Facts *f, Xid cond, bool truth, u32 *steps) {
  const Expr *e = &f->k->expr.at[cond];
  bool integers = f->k->expr.at[e->a].ty == TY_INT;
  if (!*steps || !--*steps) {
    sc_fact_vague(f, e->deps);
  } else if (e->op == (truth ? X_AND : X_OR)) {
    say(f, e->a, truth, steps);
    say(f, e->b, truth, steps);
  } else if (e->op == X_NOT) {
    say(f, e->a, !truth, steps);
  } else if ((e->op == X_LT || e->op == X_LE) && integers) {
    say_order(f, e, truth);
  } else if (e->op == (truth ? X_EQ : X_NE) && integers) {
    say_equal(f, e->a, e->b);
  } else {
    sc_fact_vague(f, e->deps);
    if ((e->op == X_EQ || e->op == X_NE) && integers) say_differ(f, e->a, e->b);
  }
}

void sc_facts_assume(Facts *f, Xid cond, bool truth) {
  sc_fact_vague(f, 0);  // what is solved and narrowed now comes after the mark
  say(f, cond, truth, &(u32){CONDITIONS});
}

// A condition as one of few: of integers `a < b` or `a == b`, or itself; and whether it says that
// this holds, or that it does not.
typedef struct Asked {
  ExprOp op;
  Xid a, b;
  bool holds;
} Asked;

static Asked asked_by(const Facts *f, Xid cond) {
  const Expr *e = &f->k->expr.at[cond];
  bool holds = true;
  for (; e->op == X_NOT; e = &f->k->expr.at[cond]) {
    cond = e->a;
    holds = !holds;
  }
  bool integers = f->k->expr.at[e->a].ty == TY_INT;
  if (integers && e->op == X_LT) return (Asked){X_LT, e->a, e->b, holds};
  if (integers && e->op == X_LE) return (Asked){X_LT, e->b, e->a, !holds};
  if (!integers || (e->op != X_EQ && e->op != X_NE)) return (Asked){e->op, cond, 0, holds};
  bool in_order = e->a < e->b;
  return (Asked){X_EQ, in_order ? e->a : e->b, in_order ? e->b : e->a, holds == (e->op == X_EQ)};
}

// (Of two integers of which one is less, the two are not equal.)
bool sc_facts_decided(const Facts *f, Xid cond, bool *truth) {
  const Asked asked = asked_by(f, cond);
  for (u32 i = f->open.n; i-- > 0;) {
    if (!f->open.at[i].cond) continue;
    const Asked open = asked_by(f, f->open.at[i].cond);
    const bool holds = open.holds != f->open.at[i].otherwise;
    const bool alike = open.a == asked.a && open.b == asked.b;
    const bool turned = open.a == asked.b && open.b == asked.a;
    const bool less = open.op == X_LT && asked.op == X_EQ && holds && (alike || turned);
    if (!less && (open.op != asked.op || !alike)) continue;
    *truth = asked.holds == (holds && !less);
    return true;
  }
  return false;
}

bool sc_facts_refute(Facts *f, Xid cond, bool truth) {
  const u32 mark = sc_facts_mark(f);
  sc_facts_assume(f, cond, truth);
  const bool never = f->nevers;
  sc_facts_drop(f, mark);
  return never;
}

// ---- places

static Lin leaf(Facts *f, ExprOp op, u32 ref) {
  return sc_lin_atom(sc_form_atom(f, (Atom){.op = op, .ref = ref}));
}

void sc_said_loop(Facts *f, const Ins *loop) {
  Lin v = leaf(f, X_LOOP, loop->arg[0]), low = v, high = sc_lin_int(-1), rounds = high;
  f->atom.at[v.at[0].atom[0]].varies = true;
  const Lin *from = sc_form(f, loop->arg[1]), *to = sc_form(f, loop->arg[2]);
  if (sc_lin_add(&low, from, -1)) sc_fact_push(f, FACT_LOOP, &low);
  if (sc_lin_add(&high, to, 1) && sc_lin_add(&high, &v, -1)) sc_fact_push(f, FACT_LOOP, &high);
  bool some = sc_lin_add(&rounds, to, 1) && sc_lin_add(&rounds, from, -1) &&
              sc_form_interval(f, &rounds).hi >= 0;
  if (!some) sc_fact_vague(f, DEP_LOOP);
}

// In a tile; those that fill up the last cluster are past the end of an axis.
void sc_said_axis(Facts *f, u32 axis) {
  const Axis *x = &f->k->axis.at[axis];
  const Lin *extent = sc_form(f, x->extent);
  Lin g = sc_lin_int(-1), v = leaf(f, X_AXIS, axis);
  if (x->cluster == 1 && sc_lin_add(&g, extent, 1) && sc_lin_add(&g, &v, -1)) {
    sc_fact_push(f, FACT_SAID, &g);
  }
}

static void step(Facts *f, const Ins *ins) {
  u8 effects = sc_op[ins->op].effects;
  if (effects & OPENS) {
    PUSH(f->sc, &f->open, ((Block){.mark = f->fact.n, .cond = ins->op == OP_IF ? ins->arg[0] : 0}));
    for (u32 i = 0; i < f->k->axis.n && ins->op == OP_TILE; i++) sc_said_axis(f, i);
    if (ins->op == OP_FOR) sc_said_loop(f, ins);
    if (ins->op == OP_IF) sc_facts_assume(f, ins->arg[0], true);
  } else if (effects & (SPLITS | CLOSES) && f->open.n) {
    Block *b = &f->open.at[f->open.n - 1];
    sc_facts_drop(f, b->mark);
    b->otherwise = true;
    if (effects & CLOSES) f->open.n--;
    else sc_facts_assume(f, b->cond, false);
  }
}

static void leave(Facts *f) {
  sc_facts_drop(f, f->always);
  f->open.n = f->pc = 0;
  f->code = NULL;
}

void sc_facts_at(Facts *f, const Code *code, u32 pc) {
  if (code != f->code || pc < f->pc) leave(f);
  f->code = code;
  for (; code && f->pc < pc; f->pc++) step(f, &code->at[f->pc]);
}

void sc_facts_forget(Facts *f, u32 exprs) {
  leave(f);
  sc_atoms_forget(f, exprs);
}

// A launch evaluates what the kernel requires, and is refused where that divides by 0. holds: the
// condition does, so that all parts of an `and` are evaluated.
static void say_divisors(Facts *f, Xid x, bool holds, u32 *steps) {
  const Expr e = f->k->expr.at[x];
  if (!*steps || !--*steps || !sc_xop[e.op].arity || e.op >= X_SUM) return;
  say_divisors(f, e.a, holds && e.op == X_AND, steps);
  if (e.op == X_OR || e.op == X_WHERE || (e.op == X_AND && !holds)) return;
  if (e.b) say_divisors(f, e.b, holds && e.op == X_AND, steps);
  if (x_divides(e.op) && e.ty == TY_INT && sc_form_interval(f, sc_form(f, e.b)).lo == 0)
    say_less(f, 0, e.b, 1);
}

Facts *sc_facts(Sc *sc, const Kernel *k) {
  Facts *f = NEW(sc, Facts);
  *f = (Facts){.sc = sc, .k = k, .epoch = 1};
  sc_atoms_begin(f);
  for (u32 i = 0; i < k->require.n; i++) {
    say_divisors(f, k->require.at[i].cond, true, &(u32){CONDITIONS});
    sc_facts_assume(f, k->require.at[i].cond, true);
  }
  f->always = f->fact.n;
  return f;
}

// A tensor that has an element has one in its range: then the range is not empty.
static void say_range(Facts *f, const Buf *b) {
  bool some = b->end != 0;
  for (u32 d = 0; d < b->rank && some; d++)
    some = sc_form_interval(f, sc_form(f, b->dim[d])).lo > 0;
  if (some) say_less(f, b->least, b->end, 1);
}

// No tensor has a negative extent: a launch is refused where an expression for one is. (That no
// dimension is negative is known.)
static void say_extents(Facts *f, const Buf *b) {
  for (u32 d = 0; d < b->rank; d++) {
    if (!sc_xop[f->k->expr.at[b->dim[d]].op].arity) continue;
    Lin extent = sc_lin_int(0);
    sc_lin_copy(&extent, sc_form(f, b->dim[d]));
    if (sc_form_interval(f, &extent).lo < 0) sc_fact_push(f, FACT_SAID, &extent);
  }
}

// A launch is refused where a section of an axis is not at least 1 wide. (Whether its form says so
// is asked of facts of its own: atoms that nothing else has make proofs longer.)
static void say_section(Facts *f, const Axis *x) {
  i64 known;
  if (!x->section || x_const_int(f->k, x->section, &known)) return;
  Facts *alone = sc_facts(f->sc, f->k);
  if (sc_form_interval(alone, sc_form(alone, x->section)).lo < 1) say_less(f, 0, x->section, 1);
}

void sc_facts_elements(Facts *f) {
  f->elements = true;
  for (u32 i = 0; i < f->k->buf.n; i++)
    if (f->k->buf.at[i].space == SP_TENSOR) say_extents(f, &f->k->buf.at[i]);
  for (u32 i = 0; i < f->k->buf.n; i++)
    if (f->k->buf.at[i].space == SP_TENSOR) say_range(f, &f->k->buf.at[i]);
  for (u32 i = 0; i < f->k->axis.n; i++) say_section(f, &f->k->axis.at[i]);
  f->always = f->fact.n;
}
