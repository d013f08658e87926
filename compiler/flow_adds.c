// flow_adds.c - sums by threads and sums by the copy engine (T3): each kind is atomic among itself, not with the other. In: a
// kernel whose roles are right, each for itself. Out: a report for each tensor to which both add, unless no other instance or
// tile can touch what one adds to: then the order within the role, which flow_tensor.c asks for, is enough.
#include "flow.h"

typedef struct Add {
  u32 role, pc, view;
} Add;

// Does x depend on the axis?
static bool on_axis(const Uses *u, Xid root, u32 axis) {
  const Kernel *k = u->k;
  VEC(Xid) pending = {0};
  bool *seen = NEWS(u->sc, bool, k->expr.n + 1);
  if (root) PUSH(u->sc, &pending, root);
  while (pending.n) {
    Xid x = pending.at[--pending.n], operand[SC_MAX_OPERANDS];
    const Expr *e = &k->expr.at[x];
    if (seen[x] || !(e->deps & (DEP_AXIS | DEP_FETCH))) continue;
    seen[x] = true;
    if (e->op == X_AXIS && e->ref == axis) return true;
    u32 n = x_operands(k, x, operand);
    for (u32 i = 0; i < n; i++) {
      if (operand[i]) PUSH(u->sc, &pending, operand[i]);
    }
  }
  return false;
}

// Is the place another one in each tile and instance?
static bool is_own(const Uses *u, const Add *a) {
  const Kernel *k = u->k;
  const View *v = &k->view.at[a->view];
  bool instance = k->role.at[a->role].instances == 1;
  for (u32 d = 0; d < v->rank; d++) instance |= k->expr.at[v->at[d].base].deps & DEP_INST;
  for (u32 i = 0; i < k->axis.n; i++) {
    bool found = false;
    for (u32 d = 0; d < v->rank && !found; d++) found = on_axis(u, v->at[d].base, i);
    if (!found) return false;
  }
  return instance;
}

// The first addition to the tensor by copies, or by threads.
static bool find_add(Uses *u, u32 tensor, bool copies, Add *out) {
  const Kernel *k = u->k;
  for (out->role = 0; out->role < k->role.n; out->role++) {
    const Code *code = &k->role.at[out->role].code;
    for (out->pc = 0; out->pc < code->n; out->pc++) {
      const Ins *ins = &code->at[out->pc];
      if (ins->op != (copies ? OP_COPYADD : OP_MAPADD)) continue;
      out->view = copies ? ins->arg[0] : k->map.at[ins->arg[0]].dst;
      if (k->view.at[out->view].buf == tensor) return true;
    }
  }
  return false;
}

void sc_check_adds(Sc *sc, Kernel *k, Uses *u) {
  for (u32 b = 0; b < k->buf.n; b++) {
    Add thread, copy;
    if (k->buf.at[b].space != SP_TENSOR || !find_add(u, b, false, &thread) || !find_add(u, b, true, &copy)) continue;
    if (thread.role == copy.role && is_own(u, &thread) && is_own(u, &copy)) continue;
    Diag *d = sc_report(sc, D_R3_ADDS, k->role.at[copy.role].code.at[copy.pc].span,
                        "'%s' is added to by the copy engine, and by threads elsewhere: sums of the two kinds may be lost",
                        k->buf.at[b].name);
    sc_note(sc, d, k->role.at[thread.role].code.at[thread.pc].span, "threads add to it here");
    sc_help(sc, d, "let one kind add: the threads' sums can go through a stage, or the stage's be read and added by threads");
  }
}
