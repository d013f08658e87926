// range.c - lists the integers of a kernel's code whose range a launch must check, as kernels
// compute them with 32 bits (launchrange.c). In: a kernel, and what launches it. Out: terms of a
// table. Each comes after all that its range depends on: its operands, a loop variable's bounds,
// the extent of a tile's axis.
#include "runtime/cuda/gpu.h"

typedef struct Terms {
  Sc *sc;
  const Kernel *k;
  const Launch *launch;  // NULL: the kernel is the whole
  const u32 *node;       // by expression: what a launch evaluates of it
  TermList *out;
  u32 *made;             // by expression: its term; 0: it has none yet
  u32 *from, *to;        // by loop: its bounds
  i64 var[SC_MAX_VARS];  // largest extent of a variable of this number
  VEC(Xid) pending;
} Terms;

// ---- a term, and what it depends on

static u32 depends_on(const Terms *t, Xid x, Xid on[SC_MAX_OPERANDS]) {
  const Expr *e = &t->k->expr.at[x];
  u32 n = 0;
  if (e->op == X_AXIS) on[n++] = t->k->axis.at[e->ref].extent;
  if (e->op == X_LOOP && t->from[e->ref]) on[n++] = t->from[e->ref];
  if (e->op == X_LOOP && t->to[e->ref]) on[n++] = t->to[e->ref];
  return n ? n : x_operands(t->k, x, on);
}

static SclTerm element(const Terms *t, const Expr *e, SclTerm term) {
  const Buf *b = &t->k->buf.at[t->k->view.at[e->ref].buf];
  term.number = !(e->deps & DEP_TILE);
  if (b->least && b->end) {
    term.a = t->node[b->least];
    term.b = t->node[b->end];
  }
  return term;
}

static SclTerm leaf(const Terms *t, const Expr *e, SclTerm term) {
  const Launch *l = t->launch;
  switch (e->op) {
    case X_INT: term.number = e->num.i; break;
    case X_DIM: term.a = l ? l->dim[e->ref] : e->ref; break;
    case X_ARG: term.a = l ? l->arg[e->ref] : e->ref; break;
    case X_INST: term.number = (i64)t->k->role.at[e->ref].instances - 1; break;
    case X_IDX: term.number = t->var[e->ref % SC_MAX_VARS]; break;
    case X_LOOP:
      term.a = t->made[t->from[e->ref]];
      term.b = t->made[t->to[e->ref]];
      break;
    case X_AXIS:
      term.a = t->made[t->k->axis.at[e->ref].extent];
      term.number = (i64)t->k->axis.at[e->ref].cluster - 2;
      break;
    case X_LOAD: return element(t, e, term);
    default: break;  // a real or a truth
  }
  return term;
}

static SclTerm term_of(const Terms *t, const Expr *e) {
  SclTerm term = {.op = (SclOp)e->op, .integer = e->ty == TY_INT};
  term.elements = (e->deps & (DEP_FETCH | DEP_TILE)) != 0;
  term.operands = sc_xop[e->op].arity;
  if (!term.operands) return leaf(t, e, term);
  if (x_reduces(e->op)) term.number = t->var[e->ref];
  term.a = t->made[e->a];
  term.b = t->made[e->b];
  term.c = t->made[e->c];
  term.compares = (e->op == X_LT || e->op == X_LE) && t->k->expr.at[e->a].ty == TY_INT;
  return term;
}

// Adds terms for all that the expression depends on, and then for the expression.
static void need(void *terms, Xid root, Span at) {
  Terms *t = terms;
  Xid on[SC_MAX_OPERANDS];
  if (root) PUSH(t->sc, &t->pending, root);
  while (t->pending.n) {
    Xid x = t->pending.at[t->pending.n - 1];
    u32 n = depends_on(t, x, on), before = t->pending.n;
    for (u32 i = n; i-- > 0 && !t->made[x];)
      if (!t->made[on[i]]) PUSH(t->sc, &t->pending, on[i]);
    if (t->pending.n > before) continue;
    t->pending.n--;
    if (t->made[x]) continue;
    t->made[x] = t->out->term.n;
    PUSH(t->sc, &t->out->term, term_of(t, &t->k->expr.at[x]));
    PUSH(t->sc, &t->out->of, ((TermOf){x, at}));
  }
}

// ---- what the code evaluates

static void need_ins(Terms *t, const Ins *ins) { sc_ins_exprs(t->k, ins, need, t); }

static void find_bounds(Terms *t, const Ins *ins) {
  if (ins->op == OP_FOR) {
    t->from[ins->arg[0]] = ins->arg[1];
    t->to[ins->arg[0]] = ins->arg[2];
  }
  if (!sc_on_map(ins->op)) return;
  const Map *m = &t->k->map.at[ins->arg[0]];
  for (u32 v = 0; v < m->vars; v++) {
    i64 n;
    if (x_const_int(t->k, m->var[v].extent, &n) && n > t->var[v]) t->var[v] = n;
  }
}

static void each_ins(Terms *t, void (*visit)(Terms *, const Ins *)) {
  for (u32 i = 0; i < t->k->role.n; i++) {
    const Code *code = &t->k->role.at[i].code;
    for (u32 pc = 0; pc < code->n; pc++) visit(t, &code->at[pc]);
  }
}

// Of tensors: positions are compared with them.
static void need_dimensions(Terms *t) {
  for (u32 i = 0; i < t->k->buf.n; i++) {
    const Buf *b = &t->k->buf.at[i];
    for (u32 d = 0; d < b->rank && b->space == SP_TENSOR; d++) need(t, b->dim[d], b->span);
  }
}

void sc_terms(Sc *sc, const Kernel *k, const Launch *launch, const u32 *node, TermList *out) {
  Terms t = {.sc = sc, .k = k, .launch = launch, .node = node, .out = out};
  t.made = NEWS(sc, u32, k->expr.n + 1);
  t.from = NEWS(sc, u32, k->loop.n + 1);
  t.to = NEWS(sc, u32, k->loop.n + 1);
  each_ins(&t, find_bounds);
  sc_grid_exprs(k, need, &t);
  need_dimensions(&t);
  each_ins(&t, need_ins);
}
