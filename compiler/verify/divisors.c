// divisors.c - the proof DIVISORS: no integer is divided by 0. In: a kernel. Out: nothing, if all
// that its grid and its operations divide by is never 0; else DIVISORS stays open. (A GPU divides
// by 0, and goes on with any value. All other proofs take quotients so.)
//
// A value is computed where its operation is reached, an element's for all values of the indices,
// also where it lies outside of its tensor. What a condition leaves out is not computed: the side
// of a `where` that is not taken, and the second part of an `and` whose first is false. (An extent
// of a tensor has a value: a launch is refused where it has none.)
#include "compiler/facts/linear.h"
#include "compiler/verify/verify.h"

enum { STEPS = 1000 };  // of values that share operands the walk meets these again

typedef struct Divisors {
  Verify *v;
  Facts *facts;
  bool *divide;  // by expression: is something below it divided by what is no constant?
  Span at;       // of the operation
  u32 steps;
  const Map *map;
  VEC(Xid) not_0;  // a condition that holds says so of these
} Divisors;

static bool *find_divisions(Sc *sc, const Kernel *k) {
  bool *divide = NEWS(sc, bool, k->expr.n + 1);
  for (Xid x = 1; x < k->expr.n; x++) {
    const Expr *e = &k->expr.at[x];
    Xid operand[SC_MAX_OPERANDS];
    i64 by;
    u32 n = x_operands(k, x, operand);
    divide[x] = x_divides(e->op) && !x_const_int(k, e->b, &by);
    for (u32 i = 0; i < n; i++) divide[x] |= divide[operand[i]];
  }
  return divide;
}

static void give_up(Divisors *d, Xid divisor) {
  Str s = {.sc = d->v->sc};
  if (divisor && x_uniform(d->v->k, divisor)) sc_print_named(&s, d->v->k, divisor);
  sc_incomplete(d->v, PROOF_DIVISORS, d->at,
                !divisor ? "this is divided too often%s"
                : s.n ? "'%s' may be 0: say that it is not (by a require, or a range of elements), "
                        "or divide by max(…, 1)"
                      : "what this divides by may be 0: take max(…, 1) of it, or put the "
                        "quotient into a where%s",
                s.n ? s.at : "");
}

static void walk(Divisors *d, Xid x);

// Notes what the condition says is not 0, if it holds, or if it does not. (Facts are inequalities,
// and this is none.)
static void note_not_0(Divisors *d, Xid cond, bool holds) {
  const Kernel *k = d->v->k;
  const Expr *e = &k->expr.at[cond];
  i64 n;
  if (!d->steps || !--d->steps) return;
  if (e->op == X_NOT) note_not_0(d, e->a, !holds);
  if (e->op == (holds ? X_AND : X_OR)) {
    note_not_0(d, e->a, holds);
    note_not_0(d, e->b, holds);
  }
  if (e->op != (holds ? X_NE : X_EQ)) return;
  if (x_const_int(k, e->b, &n) && !n) PUSH(d->v->sc, &d->not_0, e->a);
  if (x_const_int(k, e->a, &n) && !n) PUSH(d->v->sc, &d->not_0, e->b);
}

static bool is_0_never(const Divisors *d, Xid x) {
  for (u32 i = 0; i < d->not_0.n; i++)
    if (d->not_0.at[i] == x) return true;
  return sc_fact_less(d->facts, 0, x) || sc_fact_less(d->facts, x, 0);
}

// Walks over what is computed if the condition holds, or if it does not.
static void walk_if(Divisors *d, Xid cond, bool holds, Xid x) {
  if (!d->divide[x]) return;
  const u32 mark = sc_facts_mark(d->facts), noted = d->not_0.n;
  sc_facts_assume(d->facts, cond, holds);
  note_not_0(d, cond, holds);
  walk(d, x);
  sc_facts_drop(d->facts, mark);
  d->not_0.n = noted;
}

static void walk(Divisors *d, Xid x) {
  const Expr e = d->v->k->expr.at[x];
  Xid operand[SC_MAX_OPERANDS];
  if (!d->divide[x]) return;
  if (!d->steps || !--d->steps) {
    give_up(d, 0);
    return;
  }
  if (e.op == X_WHERE || e.op == X_AND || e.op == X_OR) {
    walk(d, e.a);
    walk_if(d, e.a, e.op != X_OR, e.b);
    if (e.op == X_WHERE) walk_if(d, e.a, false, e.c);
    return;
  }
  const u32 n = x_operands(d->v->k, x, operand);
  for (u32 i = 0; i < n; i++) walk(d, operand[i]);
  if (x_divides(e.op) && !is_0_never(d, e.b)) give_up(d, e.b);
}

// What is known of an element-wise statement's indices: each is at least 0, and below its extent.
static void say_indices(Divisors *d, const Map *m) {
  for (u32 i = 0; i < m->vars; i++) {
    const Lin at = sc_lin_atom(sc_form_atom(d->facts, (Atom){.op = X_IDX, .ref = i}));
    Lin below = sc_lin_int(-1);
    sc_fact_push(d->facts, FACT_SAID, &at);
    if (sc_lin_add(&below, sc_form(d->facts, m->var[i].extent), 1) && sc_lin_add(&below, &at, -1))
      sc_fact_push(d->facts, FACT_SAID, &below);
  }
}

static void visit(void *divisors, Xid x, Span at) {
  Divisors *d = divisors;
  d->at = at;
  d->steps = STEPS;
  if (d->map && d->map->cond && x == d->map->root) walk_if(d, d->map->cond, true, x);
  else walk(d, x);
}

static void prove_operation(Divisors *d, const Ins *ins) {
  const Kernel *k = d->v->k;
  const u32 mark = sc_facts_mark(d->facts);
  d->map = sc_on_map(ins->op) ? &k->map.at[ins->arg[0]] : NULL;
  if (d->map && (d->divide[d->map->root] || d->divide[d->map->cond])) say_indices(d, d->map);
  sc_ins_exprs(k, ins, visit, d);
  sc_facts_drop(d->facts, mark);
}

void sc_prove_divisors(Verify *v) {
  const Kernel *k = v->k;
  Divisors d = {.v = v, .facts = v->facts, .divide = find_divisions(v->sc, k)};
  sc_facts_at(v->facts, NULL, 0);
  sc_grid_exprs(k, visit, &d);
  for (u32 r = 0; r < k->role.n; r++) {
    const Code *code = &k->role.at[r].code;
    for (u32 pc = 0; pc < code->n; pc++) {
      sc_facts_at(v->facts, code, pc);
      prove_operation(&d, &code->at[pc]);
    }
  }
  sc_facts_at(v->facts, NULL, 0);
}
