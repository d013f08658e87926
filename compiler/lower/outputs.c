// outputs.c - what a kernel does to its outputs, which hold nothing before it runs: each is stored
// to, and what is added to was stored to. A kernel of a sequence is held to it as one alone. Called
// by bind.c, once all roles and their accesses are there.
#include "compiler/lower/lower.h"

// What an operation adds to, or stores to, in a tensor; NULL: nothing.
static const View *added(const Kernel *k, const Ins *ins) {
  if (ins->op == OP_MAPADD) return &k->view.at[k->map.at[ins->arg[0]].dst];
  return ins->op == OP_COPYADD ? &k->view.at[ins->arg[0]] : NULL;
}

static const View *stored(const Kernel *k, const Ins *ins) {
  if (ins->op == OP_MAP) return &k->view.at[k->map.at[ins->arg[0]].dst];
  return ins->op == OP_COPYOUT ? &k->view.at[ins->arg[0]] : NULL;
}

static bool is_empty(const Kernel *k, const Buf *b) {
  bool empty = false;
  i64 n;
  for (u32 d = 0; d < b->rank; d++) empty |= x_const_int(k, b->dim[d], &n) && n == 0;
  return empty;
}

static void only_added(Sc *sc, const Buf *b, Span at) {
  Diag *d = sc_report(sc, D_N_READ, at,
                      "this adds to '%s', an output that nothing has been stored to", b->name);
  sc_note(sc, d, b->span, "declared here");
  sc_help(sc, d, "declare it 'inout', so that the caller says what it begins with");
}

static void never_stored(Sc *sc, const Buf *b) {
  Diag *d = sc_report(sc, D_N_UNWRITTEN, b->span, "nothing is stored to '%s', an output", b->name);
  sc_help(sc, d,
          "store to it in a role; if params decide whether one does, declare it under the same "
          "guard: 'out %s : … if …'",
          b->name);
}

void low_outputs(Low *l) {
  const Kernel *k = l->k;
  bool *stores = NEWS(l->sc, bool, k->buf.n + 1);
  Span *adds = NEWS(l->sc, Span, k->buf.n + 1);
  for (u32 r = 0; r < k->role.n; r++) {
    const Code *code = &k->role.at[r].code;
    for (u32 i = 0; i < code->n; i++) {
      const View *to = stored(k, &code->at[i]), *sum = added(k, &code->at[i]);
      if (to) stores[to->buf] = true;
      if (sum && !adds[sum->buf].hi) adds[sum->buf] = code->at[i].span;
    }
  }
  for (u32 i = 0; i < k->buf.n && !sc_at_limit(l->sc); i++) {
    const Buf *b = &k->buf.at[i];
    if (b->dir != F_OUT || stores[i]) continue;
    if (adds[i].hi) only_added(l->sc, b, adds[i]);
    else if (!is_empty(k, b)) never_stored(l->sc, b);
  }
}
