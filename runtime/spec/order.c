// order.c - finds the tensors that have the same bits after every run. In: a kernel or sequence.
// Out: by tensor, whether it depends on sums in no fixed order: CTAs add to it without a turn over
// CTAs, or it is computed from such sums.
#include "runtime/run.h"

// Does a role read the tensor, or a bound depend on it? Reads by the specification do not count.
static bool reads(const Kernel *k, u32 buf) {
  for (Xid x = 1; x < k->expr.n; x++) {
    const Expr *e = &k->expr.at[x];
    if (e->op == X_LOAD && !(e->deps & DEP_TILE) && k->view.at[e->ref].buf == buf) return true;
  }
  for (u32 r = 0; r < k->role.n; r++)
    if (sc_tensor_use(k, r, buf) & (DOES_READ | DOES_COPY_FROM)) return true;
  return false;
}

// Marks the tensors that some role adds to while it holds no turn over CTAs.
static void mark_added(const Kernel *k, bool *mark) {
  for (u32 r = 0; r < k->role.n; r++) {
    int held = 0;
    for (u32 i = 0; i < k->role.at[r].code.n; i++) {
      const Ins *ins = &k->role.at[r].code.at[i];
      if (ins->op == OP_TAKE) held += k->turn.at[ins->arg[0]].axis != SC_NONE;
      if (ins->op == OP_PASS) held -= k->turn.at[ins->arg[0]].axis != SC_NONE;
      if (held > 0) continue;
      if (ins->op == OP_MAPADD) mark[k->view.at[k->map.at[ins->arg[0]].dst].buf] = true;
      if (ins->op == OP_COPYADD) mark[k->view.at[ins->arg[0]].buf] = true;
    }
  }
}

// If the kernel reads a marked tensor, marks everything that it writes.
static void spread(const Kernel *k, bool *mark) {
  bool spreads = false;
  for (u32 i = 0; i < k->buf.n; i++) spreads |= mark[i] && reads(k, i);
  for (u32 i = 0; i < k->buf.n && spreads; i++) {
    const Buf *b = &k->buf.at[i];
    mark[i] |= b->space == SP_TENSOR && b->dir & SCHEDC_OUT;
  }
}

bool *sc_unordered(Sc *sc, const Kernel *k) {
  bool *mark = NEWS(sc, bool, k->buf.n + 1);
  mark_added(k, mark);
  spread(k, mark);
  for (u32 l = 0; l < k->launch.n; l++) {
    const Launch *step = &k->launch.at[l];
    bool *inner = NEWS(sc, bool, step->kernel->buf.n + 1);
    mark_added(step->kernel, inner);
    for (u32 i = 0; i < step->kernel->buf.n; i++) {
      if (step->tensor[i] != SC_NONE) inner[i] |= mark[step->tensor[i]];
    }
    spread(step->kernel, inner);
    for (u32 i = 0; i < step->kernel->buf.n; i++) {
      if (step->tensor[i] != SC_NONE) mark[step->tensor[i]] |= inner[i];
    }
  }
  return mark;
}
