// adds.c - tensors to which both threads and the copy engine add. Additions of one kind are atomic
// towards each other, but not towards the other kind (model/README.md, T3). In: a kernel in which
// each role is right by itself. Out: a report for each tensor to which both add. There is none if
// no other instance or tile can touch the elements: then the order within the role, which tensor.c
// asks for, is enough.
#include "compiler/flow/flow.h"

typedef struct Add {
  u32 role, pc, view;
} Add;

// The set of axes on which the positions of a view depend.
static u32 axes_of(Below *below, const View *v) {
  const Kernel *k = below->k;
  u32 axes = 0;
  x_begin(below, DEP_AXIS | DEP_FETCH);
  for (u32 d = 0; d < v->rank; d++) x_from(below, v->at[d].base);
  for (Xid x; (x = x_next(below));)
    if (k->expr.at[x].op == X_AXIS) axes |= 1u << k->expr.at[x].ref;
  return axes;
}

// Does the position depend on each axis of the grid and on the instance? (Whether positions of
// different tiles or instances overlap all the same is proved by verify/global.c.)
static bool is_own(Below *below, const Add *a) {
  const Kernel *k = below->k;
  const View *v = &k->view.at[a->view];
  bool instance = k->role.at[a->role].instances == 1;
  for (u32 d = 0; d < v->rank; d++) instance |= k->expr.at[v->at[d].base].deps & DEP_INST;
  return instance && axes_of(below, v) == (1u << k->axis.n) - 1;
}

// Additions to one tensor: of each kind the first one, or one of another role, or one to elements
// that others may touch.
typedef struct Adds {
  Add by[2];  // by threads, by the copy engine
  bool any[2], shared;
} Adds;

static void note_add(Below *below, Adds *all, const Add *a, bool copies) {
  const Add *first = all->any[0] ? &all->by[0] : &all->by[1];
  bool shared = !is_own(below, a) || ((all->any[0] || all->any[1]) && first->role != a->role);
  if (!all->any[copies] || (shared && !all->shared)) all->by[copies] = *a;
  all->any[copies] = true;
  all->shared |= shared;
}

static Adds *find_adds(Sc *sc, const Kernel *k) {
  Below below = x_below(sc, k);
  Adds *of = NEWS(sc, Adds, k->buf.n + 1);
  for (u32 r = 0; r < k->role.n; r++) {
    const Code *code = &k->role.at[r].code;
    for (u32 pc = 0; pc < code->n; pc++) {
      const Ins *ins = &code->at[pc];
      bool copies = ins->op == OP_COPYADD;
      if (!copies && ins->op != OP_MAPADD) continue;
      Add a = {r, pc, copies ? ins->arg[0] : k->map.at[ins->arg[0]].dst};
      note_add(&below, &of[k->view.at[a.view].buf], &a, copies);
    }
  }
  return of;
}

void sc_check_adds(Sc *sc, const Kernel *k) {
  const Adds *of = find_adds(sc, k);
  for (u32 b = 0; b < k->buf.n; b++) {
    const Adds *all = &of[b];
    if (k->buf.at[b].space != SP_TENSOR || !all->any[0] || !all->any[1] || !all->shared) continue;
    const Add *thread = &all->by[0], *copy = &all->by[1];
    Diag *d = sc_report(sc, D_R3_ADDS, k->role.at[copy->role].code.at[copy->pc].span,
                        "'%s' is added to by the copy engine, and by threads elsewhere: sums of "
                        "the two kinds may be lost",
                        k->buf.at[b].name);
    sc_note(sc, d, k->role.at[thread->role].code.at[thread->pc].span, "threads add to it here");
    sc_help(sc, d,
            "let one kind add: the threads' sums can go through a stage, or the stage's be read "
            "and added by threads");
  }
}
