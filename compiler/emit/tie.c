// tie.c - tiles that a wait hands back without naming them. `wait o` ends older products, too. What
// is done with their tiles after it depends, for a compiler of C, on their issue and not on the
// wait, so it might be begun before it. A tile is tied at a wait that names it and at the next
// product into it; any other that is handed back is loose, and is tied where threads touch it next.
// So loops that only add to it pay nothing.
//
// In: a checked role. Out: Cuda.loose, by forward data flow over its code.
// Called by frame.c; calls mma.c.
#include "compiler/emit/emit.h"
#include "compiler/flow/flow.h"

typedef struct Loose {
  Cuda *c;
  const Code *code;
  bool *ends, *ties;  // by operation and buf: a product into the tile may end here; it is tied here
} Loose;

static bool *row(const Cuda *c, bool *table, u32 pc) { return table + (size_t)pc * c->k->buf.n; }

static void note_end(void *user, u32 pc, const Flight *flight) {
  Loose *l = user;
  row(l->c, l->ends, pc)[flight->dst] = true;
}

static bool touches(const Ins *ins) { return sc_on_map(ins->op) || ins->op == OP_MMAWARP; }

static void note_ties(Loose *l, u32 pc) {
  const Kernel *k = l->c->k;
  const Ins *ins = &l->code->at[pc];
  bool *ties = row(l->c, l->ties, pc);
  if (ins->op == OP_MMAWAIT) {
    const u32 *list = &k->list.at[ins->arg[0]];
    for (u32 i = 1; i <= list[0]; i++) ties[list[i]] = true;
  } else if (ins->op == OP_MMA || touches(ins)) {
    for (u32 i = 0; i < ins->accesses; i++)
      ties[k->view.at[sc_view_access(k, ins, i)->view].buf] = true;
  }
}

// What is loose after one operation is so before another. True if that is new.
static bool flow_to(const Loose *l, u32 from, u32 to) {
  bool changed = false;
  if (to >= l->code->n) return false;
  bool *in = row(l->c, l->c->loose, to), *before = row(l->c, l->c->loose, from);
  const bool *ends = row(l->c, l->ends, from), *ties = row(l->c, l->ties, from);
  for (u32 b = 0; b < l->c->k->buf.n; b++) {
    bool out = (before[b] || ends[b]) && !ties[b];
    changed |= out && !in[b];
    in[b] |= out;
  }
  return changed;
}

static bool pass(const Loose *l) {
  bool changed = false;
  for (u32 pc = 0; pc < l->code->n; pc++) {
    const Ins *ins = &l->code->at[pc];
    u8 effects = sc_op[ins->op].effects;
    if (!(effects & SPLITS)) changed |= flow_to(l, pc, pc + 1);
    if (effects & (OPENS | SPLITS) || ins->op == OP_ENDFOR)
      changed |= flow_to(l, pc, ins->nest + 1);
  }
  return changed;
}

void cu_find_loose(Cuda *c) {
  Loose l = {.c = c, .code = &c->k->role.at[c->r].code};
  size_t n = (size_t)l.code->n * c->k->buf.n + 1;
  Kernel *k = (Kernel *)c->k;  // changed only by a walk that derives
  Flow f = {.sc = c->sc, .k = k, .facts = c->always, .role = c->r, .retired = note_end, .user = &l};
  c->loose = NEWS(c->sc, bool, n);
  l.ends = NEWS(c->sc, bool, n);
  l.ties = NEWS(c->sc, bool, n);
  sc_walk(&f);
  for (u32 pc = 0; pc < l.code->n; pc++) note_ties(&l, pc);
  while (pass(&l)) {
  }
}

void cu_tie_loose(Cuda *c, const Ins *ins) {
  if (!touches(ins)) return;
  for (u32 i = 0; i < ins->accesses; i++) {
    u32 buf = c->k->view.at[sc_view_access(c->k, ins, i)->view].buf;
    if (!row(c, c->loose, c->pc)[buf]) continue;
    row(c, c->loose, c->pc)[buf] = false;  // once
    cu_tie(c, buf);
  }
}
