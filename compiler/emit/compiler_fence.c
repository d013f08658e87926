// compiler_fence.c - compiler fences on register tiles. A product writes its tile's registers
// behind the back of the C compiler, which sees that they change where the product is issued and
// does not know that they must not be used before the wait. A fence (an empty asm statement that
// claims to change the registers) after the wait keeps it from moving their use to before it.
//
// Which tiles? One that the wait names is fenced right after it, and one that a product writes is
// fenced before the product is issued (mma.c). But `wait o` also ends all products older than the
// one into `o`: their tiles are unfenced from there on, and are fenced here, just before threads
// next touch them. In a loop that only adds to such a tile, no fence is needed.
//
// In: a checked role. Out: Cuda.unfenced, by forward data flow over its code.
// Called by frame.c; calls mma.c.
#include "compiler/emit/emit.h"
#include "compiler/flow/flow.h"

typedef struct Search {
  Cuda *c;
  const Code *code;
  // by operation and buf: a product into the tile may end here; the tile is fenced here
  bool *ends, *fenced;
} Search;

static bool *row(const Cuda *c, bool *table, u32 pc) { return table + (size_t)pc * c->k->buf.n; }

static void note_end(void *user, u32 pc, const Flight *flight) {
  Search *s = user;
  row(s->c, s->ends, pc)[flight->dst] = true;
}

static bool touches(const Ins *ins) { return sc_on_map(ins->op) || ins->op == OP_MMAWARP; }

static void note_fences(Search *s, u32 pc) {
  const Kernel *k = s->c->k;
  const Ins *ins = &s->code->at[pc];
  bool *fenced = row(s->c, s->fenced, pc);
  if (ins->op == OP_MMAWAIT) {
    const u32 *list = &k->list.at[ins->arg[0]];
    for (u32 i = 1; i <= list[0]; i++) fenced[list[i]] = true;
  } else if (ins->op == OP_MMA || touches(ins)) {
    for (u32 i = 0; i < ins->accesses; i++)
      fenced[k->view.at[sc_view_access(k, ins, i)->view].buf] = true;
  }
}

// What is unfenced after one operation is unfenced before another. True if that is new.
static bool flow_to(const Search *s, u32 from, u32 to) {
  bool changed = false;
  if (to >= s->code->n) return false;
  bool *in = row(s->c, s->c->unfenced, to), *before = row(s->c, s->c->unfenced, from);
  const bool *ends = row(s->c, s->ends, from), *fenced = row(s->c, s->fenced, from);
  for (u32 b = 0; b < s->c->k->buf.n; b++) {
    bool out = (before[b] || ends[b]) && !fenced[b];
    changed |= out && !in[b];
    in[b] |= out;
  }
  return changed;
}

static bool pass(const Search *s) {
  bool changed = false;
  for (u32 pc = 0; pc < s->code->n; pc++) {
    const Ins *ins = &s->code->at[pc];
    u8 effects = sc_op[ins->op].effects;
    if (!(effects & SPLITS)) changed |= flow_to(s, pc, pc + 1);
    if (effects & (OPENS | SPLITS) || ins->op == OP_ENDFOR)
      changed |= flow_to(s, pc, ins->nest + 1);
  }
  return changed;
}

void cu_find_unfenced(Cuda *c) {
  Search s = {.c = c, .code = &c->k->role.at[c->r].code};
  size_t n = (size_t)s.code->n * c->k->buf.n + 1;
  Kernel *k = (Kernel *)c->k;  // changed only by a walk that derives
  Flow f = {.sc = c->sc, .k = k, .facts = c->always, .role = c->r, .retired = note_end, .user = &s};
  c->unfenced = NEWS(c->sc, bool, n);
  s.ends = NEWS(c->sc, bool, n);
  s.fenced = NEWS(c->sc, bool, n);
  sc_walk(&f);
  for (u32 pc = 0; pc < s.code->n; pc++) note_fences(&s, pc);
  while (pass(&s)) {
  }
}

void cu_fence_unfenced(Cuda *c, const Ins *ins) {
  if (!touches(ins)) return;
  for (u32 i = 0; i < ins->accesses; i++) {
    u32 buf = c->k->view.at[sc_view_access(c->k, ins, i)->view].buf;
    if (!row(c, c->unfenced, c->pc)[buf]) continue;
    row(c, c->unfenced, c->pc)[buf] = false;  // once
    cu_compiler_fence(c, buf);
  }
}
