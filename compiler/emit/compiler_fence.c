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
// In: a checked role. Out: Cuda.unfenced. Each tile is followed on its own, from where a product
// into it ends to where it is fenced, but not past the last operation that touches it. So the cost
// grows with the code in which a tile is unfenced, and registers limit how many tiles there are.
// Called by frame.c; calls mma.c.
#include "compiler/emit/emit.h"
#include "compiler/flow/flow.h"

#include <stdlib.h>

typedef struct Search {
  Cuda *c;
  const Code *code;
  VEC(Unfenced) end;  // products into a tile may end at an operation
  u32 *last;          // by tile: from this operation on, none touches it, and no loop leads to one
  u32 *met;           // by operation: the tile (from 1) that was followed to it last
  VEC(u32) pending;   // where the tile is unfenced
} Search;

static void note_end(void *user, u32 pc, const Flight *flight) {
  Search *f = user;
  PUSH(f->c->sc, &f->end, ((Unfenced){pc, flight->dst}));
}

static bool touches(const Ins *ins) { return sc_on_map(ins->op) || ins->op == OP_MMAWARP; }

static bool accesses(const Kernel *k, const Ins *ins, u32 buf) {
  for (u32 i = 0; i < ins->accesses; i++) {
    if (k->view.at[sc_view_access(k, ins, i)->view].buf == buf) return true;
  }
  return false;
}

static bool fences(const Kernel *k, const Ins *ins, u32 buf) {
  if (ins->op != OP_MMAWAIT) return (ins->op == OP_MMA || touches(ins)) && accesses(k, ins, buf);
  const u32 *list = &k->list.at[ins->arg[0]];
  for (u32 i = 1; i <= list[0]; i++) {
    if (list[i] == buf) return true;
  }
  return false;
}

// Finds Search.last for each tile: the last operation that touches it, or the end of the outermost
// loop around that, as the loop may lead back to it.
static void find_last(Search *f) {
  const Kernel *k = f->c->k;
  u32 loop = 0;
  for (u32 pc = 0; pc < f->code->n; pc++) {
    const Ins *ins = &f->code->at[pc];
    if (ins->op == OP_FOR && loop < pc) loop = ins->nest;
    for (u32 i = 0; touches(ins) && i < ins->accesses; i++) {
      u32 buf = k->view.at[sc_view_access(k, ins, i)->view].buf;
      f->last[buf] = (loop > pc ? loop : pc) + 1;
    }
  }
}

static void go_to(Search *f, u32 buf, u32 pc) {
  if (pc >= f->last[buf] || f->met[pc] == buf + 1) return;
  f->met[pc] = buf + 1;
  PUSH(f->c->sc, &f->pending, pc);
}

// Follows the tile, which is unfenced after the operation, to all operations that may come next.
static void go_on(Search *f, u32 buf, u32 pc) {
  const Ins *ins = &f->code->at[pc];
  u8 effects = sc_op[ins->op].effects;
  if (!(effects & SPLITS)) go_to(f, buf, pc + 1);
  if (effects & (OPENS | SPLITS) || ins->op == OP_ENDFOR) go_to(f, buf, ins->nest + 1);
}

static void follow(Search *f, u32 buf) {
  const Kernel *k = f->c->k;
  while (f->pending.n) {
    u32 pc = f->pending.at[--f->pending.n];
    const Ins *ins = &f->code->at[pc];
    if (!fences(k, ins, buf)) go_on(f, buf, pc);
    else if (touches(ins)) PUSH(f->c->sc, &f->c->unfenced, ((Unfenced){pc, buf}));
  }
}

static int by_number(u32 a, u32 b) { return a < b ? -1 : a > b; }

static int by_tile(const void *a, const void *b) {
  const Unfenced *x = a, *y = b;
  return x->buf != y->buf ? by_number(x->buf, y->buf) : by_number(x->pc, y->pc);
}

static int by_operation(const void *a, const void *b) {
  const Unfenced *x = a, *y = b;
  return by_number(x->pc, y->pc);
}

void cu_find_unfenced(Cuda *c) {
  Search f = {.c = c, .code = &c->k->role.at[c->r].code};
  Kernel *k = (Kernel *)c->k;  // changed only by a walk that derives
  Flow w = {.sc = c->sc, .k = k, .facts = c->always, .role = c->r, .retired = note_end, .user = &f};
  c->unfenced.n = c->fenced = 0;
  sc_walk(&w);
  if (!f.end.n) return;
  f.last = NEWS(c->sc, u32, k->buf.n + 1);
  f.met = NEWS(c->sc, u32, f.code->n + 1);
  find_last(&f);
  qsort(f.end.at, f.end.n, sizeof *f.end.at, by_tile);
  for (u32 i = 0; i < f.end.n; i++) {
    Unfenced end = f.end.at[i];
    if (!fences(k, &f.code->at[end.pc], end.buf)) go_on(&f, end.buf, end.pc);
    follow(&f, end.buf);
  }
  if (c->unfenced.n) qsort(c->unfenced.at, c->unfenced.n, sizeof *c->unfenced.at, by_operation);
}

// Fences the unfenced tiles that the operation touches, in the order in which it reads and writes
// them.
void cu_fence_unfenced(Cuda *c, const Ins *ins) {
  u32 from = c->fenced;
  while (c->fenced < c->unfenced.n && c->unfenced.at[c->fenced].pc == c->pc) c->fenced++;
  for (u32 i = 0; i < ins->accesses && from < c->fenced; i++) {
    u32 buf = c->k->view.at[sc_view_access(c->k, ins, i)->view].buf;
    for (u32 l = from; l < c->fenced; l++) {
      if (c->unfenced.at[l].buf != buf) continue;
      c->unfenced.at[l].buf = SC_NONE;  // once
      cu_compiler_fence(c, buf);
    }
  }
}
