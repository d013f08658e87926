// trace.c - what role instances run in a tile: their loops and branches are run, which depend on
// dimensions, scalars, the tile and elements of tensors that nothing writes. Out: the operations in
// order, without those that cost nothing. What a vote decides on is seldom, and left out; but
// `any(x[i] == 0)`, where a count has run out, is usual. A loop whose rounds do not differ is run
// once and repeated.
#include "runtime/tune/timeline.h"

#include <string.h>

enum { MOST_LOOKS = 256 };

// Which blocks hold a bound or a condition that depends on a loop's variable?
static void find_varying(const Kernel *k, const Code *code, bool *varies) {
  u32 open[SC_MAX_NEST + 8], depth = 0;
  for (u32 i = 0; i < code->n; i++) {
    const Ins *ins = &code->at[i];
    bool here = sc_control_deps(k, ins) & DEP_LOOP;
    for (u32 d = 0; d < depth; d++) varies[open[d]] |= here;
    if (sc_op[ins->op].effects & OPENS) open[depth++] = i;
    if (sc_op[ins->op].effects & CLOSES) depth--;
  }
}

void sc_tracer(Sc *sc, Tracer *t, const Kernel *k, const Binding *b) {
  *t = (Tracer){.sc = sc, .varying = NEWS(sc, bool *, k->role.n + 1)};
  env_init(sc, &t->env, k, b);
  for (u32 r = 0; r < k->role.n; r++) {
    t->varying[r] = NEWS(sc, bool, k->role.at[r].code.n + 1);
    find_varying(k, &k->role.at[r].code, t->varying[r]);
  }
}

bool sc_instances_alike(const Kernel *k, u32 role) {
  const Code *code = &k->role.at[role].code;
  for (u32 i = 0; i < code->n; i++)
    if (sc_control_deps(k, &code->at[i]) & DEP_INST) return false;
  return true;
}

static void enter(Tracer *t, u32 role) {
  t->code = &t->env.k->role.at[role].code;
  t->varies = t->varying[role];
  env_touch(&t->env);
}

static void put(Tracer *t, u32 at) {
  if (++t->operations > SC_MOST_OPERATIONS) sc_unwind(t->sc, SCHEDC_ELIMIT);
  PUSH(t->sc, &t->at, at);
}

// The operations from `first` on, `times` times more.
static void repeat(Tracer *t, u32 first, i64 times) {
  u32 n = t->at.n - first;
  for (i64 i = 0; i < times && n; i++) {
    for (u32 j = 0; j < n; j++) put(t, t->at.at[first + j]);
  }
}

static void walk(Tracer *t, u32 at, u32 end);

static void walk_loop(Tracer *t, u32 at) {
  const Ins *ins = &t->code->at[at];
  i64 from = env_int(&t->env, ins->arg[1]), to = env_int(&t->env, ins->arg[2]);
  put(t, at);
  for (i64 i = from; i < to; i++) {
    u32 first = t->at.n;
    t->env.loop[ins->arg[0]] = ins->flags & INS_REVERSED ? to - 1 - (i - from) : i;
    env_touch(&t->env);
    walk(t, at + 1, ins->nest);
    put(t, ins->nest);
    if (t->varies[at]) continue;
    repeat(t, first, to - i - 1);
    break;
  }
}

// Which part of a conditional is run: operations [*from, *to). Returns where it ends.
static u32 branch(Tracer *t, u32 at, u32 *from, u32 *to) {
  const Ins *ins = &t->code->at[at];
  bool has_else = t->code->at[ins->nest].op == OP_ELSE;
  u32 last = has_else ? t->code->at[ins->nest].nest : ins->nest;
  bool holds = env_bool(&t->env, ins->arg[0]);
  *from = holds ? at + 1 : has_else ? ins->nest + 1 : last;
  *to = holds ? ins->nest : last;
  return last;
}

static bool is_usual(const Kernel *k, const Ins *vote) {
  if (vote->plan.side) return vote->plan.side == SIDE_FIRST;
  const Expr *e = &k->expr.at[k->map.at[vote->arg[0]].root];
  const Expr *zero = &k->expr.at[e->b];
  return e->op == X_EQ && zero->op == X_REAL && zero->num.f == 0;
}

// Nesting is limited (SC_MAX_NEST), and so is the recursion.
static void walk(Tracer *t, u32 at, u32 end) {
  for (; at < end; at++) {
    const Ins *ins = &t->code->at[at];
    u32 from, to;
    if (ins->op == OP_FOR) {
      walk_loop(t, at);
      at = ins->nest;
    } else if (ins->op == OP_IF) {
      put(t, at);
      at = branch(t, at, &from, &to);
      walk(t, from, to);
    } else {
      if (!ins->plan.side) put(t, at);  // else it is no branch
      if (ins->op != OP_VOTE) continue;
      if (is_usual(t->env.k, ins)) walk(t, at + 1, ins->nest);
      at = ins->nest;
    }
  }
}

Trace sc_trace(Tracer *t, u32 role) {
  enter(t, role);
  t->at.n = t->at.cap = 0;
  walk(t, 0, t->code->n);
  return (Trace){t->at.at, t->at.n};
}

// ---- the length of a tile

static double length(Tracer *t, Op op, u32 at, u32 end);

// A loop whose rounds differ is as long as its first, last and middle round say; of many such loops
// in each other, one round is looked at.
static double loop_length(Tracer *t, Op op, u32 at) {
  const Ins *ins = &t->code->at[at];
  i64 from = env_int(&t->env, ins->arg[1]), to = env_int(&t->env, ins->arg[2]);
  if (from >= to) return 0;
  const i64 round[] = {from, from + (to - from) / 2, to - 1};
  double all = 0;
  u32 rounds = t->varies[at] && to - from > 1 && t->looks < MOST_LOOKS ? 3 : 1;
  t->looks += rounds;
  for (u32 i = 0; i < rounds; i++) {
    t->env.loop[ins->arg[0]] = round[i];
    env_touch(&t->env);
    all += length(t, op, at + 1, ins->nest);
  }
  return all / rounds * (double)(to - from);
}

static double length(Tracer *t, Op op, u32 at, u32 end) {
  double all = 0;
  for (; at < end; at++) {
    const Ins *ins = &t->code->at[at];
    u32 from, to;
    all += ins->op == op;
    if (ins->op == OP_FOR) {
      all += loop_length(t, op, at);
      at = ins->nest;
    } else if (ins->op == OP_IF) {
      at = branch(t, at, &from, &to);
      all += length(t, op, from, to);
    } else if (ins->op == OP_VOTE) {
      if (is_usual(t->env.k, ins)) all += length(t, op, at + 1, ins->nest);
      at = ins->nest;
    }
  }
  return all;
}

static bool does(const Code *code, Op op) {
  for (u32 i = 0; i < code->n; i++)
    if (code->at[i].op == op) return true;
  return false;
}

double sc_tile_products(Tracer *t) {
  const Kernel *k = t->env.k;
  static const Op kinds[] = {OP_MMA, OP_COPYIN, OP_MAP};
  double all = 0;
  for (u32 i = 0; i < COUNT(kinds) && !all; i++) {
    for (u32 r = 0; r < k->role.n; r++) {
      if (!does(&k->role.at[r].code, kinds[i])) continue;
      enter(t, r);
      t->looks = 0;
      all += length(t, kinds[i], 0, t->code->n);
    }
  }
  return all;
}
