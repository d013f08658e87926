// live.c - how many registers a role's tiles take at the worst point: liveness, by backward data
// flow over structured code. While a product is in flight, its accumulator and its register operand
// stay live, also where the code names them no more: up to the wait that retires the product, which
// the forward walk of flow/walk.c finds.
#include "compiler/flow/flow.h"
#include "compiler/layout/layout.h"
#include "compiler/place/place.h"

#include <string.h>

typedef u64 *Set;

typedef struct Keep {  // a wait keeps a tile alive until it is over
  u32 tile, next;      // next + 1 in the list, 0: the end
} Keep;

typedef struct Live {
  Sc *sc;
  const Kernel *k;
  const Code *code;
  u32 words;
  Set now;
  Set *head;   // by operation: live at the start of a loop's body
  Set *after;  // by depth: live after the block
  Set *other;  // by depth: live at the start of its `else`
  bool *in_else;
  u32 depth;
  u32 *kept;  // by operation: its first Keep + 1
  VEC(Keep) keep;
  bool changed;
  Worst worst;
} Live;

static Set new_set(Live *l) { return NEWS(l->sc, u64, l->words + 1); }
static void set_copy(Live *l, Set to, const u64 *from) { memcpy(to, from, l->words * sizeof *to); }
static void add(Set s, u32 buf) { s[buf / 64] |= (u64)1 << buf % 64; }
static void drop(Set s, u32 buf) { s[buf / 64] &= ~((u64)1 << buf % 64); }

static bool unite(Live *l, Set into, const u64 *from) {
  u64 fresh = 0;
  for (u32 i = 0; i < l->words; i++) {
    fresh |= from[i] & ~into[i];
    into[i] |= from[i];
  }
  return fresh != 0;
}

static void weigh(Live *l, u32 pc) {
  u32 tiles = 0, all = 0;
  for (u32 w = 0; w < l->words; w++) {
    for (u64 set = l->now[w]; set; set &= set - 1) {
      const Buf *b = &l->k->buf.at[w * 64 + (u32)__builtin_ctzll(set)];
      u32 regs = sc_tile_regs(l->k, b);
      all += regs;
      if (b->rank > 1) tiles += regs;
    }
  }
  u32 need = tiles + FOR_TILES > all + FOR_ALL ? tiles + FOR_TILES : all + FOR_ALL;
  if (!all || need < l->worst.need) return;
  l->worst.pc = pc;
  l->worst.need = need;
  l->worst.all = all;
  set_copy(l, l->worst.live, l->now);
}

// ---- one operation, backwards

static void use_and_define(Live *l, u32 pc) {
  const Ins *ins = &l->code->at[pc];
  const Kernel *k = l->k;
  for (u32 i = ins->accesses; i > 0; i--) {  // the write is last
    const ViewAccess *a = sc_view_access(k, ins, i - 1);
    const View *v = &k->view.at[a->view];
    if (k->buf.at[v->buf].space != SP_REG) continue;
    if (a->write && sc_writes_all(k, ins, v)) drop(l->now, v->buf);
    else if (!a->write) add(l->now, v->buf);
  }
  for (u32 at = l->kept[pc]; at; at = l->keep.at[at - 1].next) add(l->now, l->keep.at[at - 1].tile);
}

static bool at_least_once(const Live *l, const Ins *loop) {
  i64 from, to;
  return x_const_int(l->k, loop->arg[1], &from) && x_const_int(l->k, loop->arg[2], &to) &&
         from < to;
}

static Set at_depth(Live *l, Set *sets) {
  if (!sets[l->depth]) sets[l->depth] = new_set(l);
  return sets[l->depth];
}

static void enter(Live *l, u32 pc) {  // a block's end: the walk goes backwards
  const Ins *ins = &l->code->at[pc];
  set_copy(l, at_depth(l, l->after), l->now);
  l->in_else[l->depth] = false;
  l->depth++;
  if (ins->op != OP_ENDFOR) return;
  u32 open = ins->nest;
  if (!l->head[open]) l->head[open] = new_set(l);
  unite(l, l->now, l->head[open]);
}

static void leave(Live *l, u32 pc) {
  const Ins *ins = &l->code->at[pc];
  l->depth--;
  if (ins->op == OP_FOR) {
    l->changed |= unite(l, l->head[pc], l->now);
    if (at_least_once(l, ins)) return;
  }
  unite(l, l->now, l->in_else[l->depth] ? l->other[l->depth] : l->after[l->depth]);
}

static void other(Live *l) {
  l->depth--;
  set_copy(l, at_depth(l, l->other), l->now);
  set_copy(l, l->now, l->after[l->depth]);
  l->in_else[l->depth++] = true;
}

static void back(Live *l) {
  l->changed = false;
  l->depth = 0;
  memset(l->now, 0, l->words * sizeof *l->now);
  for (u32 pc = l->code->n; pc-- > 0;) {
    u8 effects = sc_op[l->code->at[pc].op].effects;
    if (effects & CLOSES) enter(l, pc);
    if (effects & SPLITS) other(l);
    weigh(l, pc);  // just after the operation
    if (effects & OPENS) leave(l, pc);
    use_and_define(l, pc);
    weigh(l, pc);  // just before it
  }
}

static void keep_until(void *user, u32 pc, const Flight *flight) {
  Live *l = user;
  u32 tile[2] = {flight->dst, flight->operand};
  for (u32 i = 0; i < 2; i++) {
    u32 at = l->kept[pc];
    while (at && l->keep.at[at - 1].tile != tile[i]) at = l->keep.at[at - 1].next;
    if (at || tile[i] == SC_NONE) continue;
    PUSH(l->sc, &l->keep, ((Keep){tile[i], l->kept[pc]}));
    l->kept[pc] = l->keep.n;
  }
}

Worst sc_worst(Sc *sc, Kernel *k, Facts *facts, u32 role) {
  const Role *r = &k->role.at[role];
  const u32 n = r->code.n, deepest = sc_deepest(&r->code);
  Live l = {.sc = sc, .k = k, .code = &r->code, .words = k->buf.n / 64 + 1};
  l.now = new_set(&l);
  l.worst.live = new_set(&l);
  l.head = NEWS(sc, Set, n + 1);
  l.after = NEWS(sc, Set, deepest + 2);
  l.other = NEWS(sc, Set, deepest + 2);
  l.in_else = NEWS(sc, bool, deepest + 2);
  l.kept = NEWS(sc, u32, n + 1);
  Flow f = {.sc = sc, .k = k, .facts = facts, .role = role, .retired = keep_until, .user = &l};
  if (facts) sc_walk(&f);
  do back(&l);
  while (l.changed);
  return l.worst;
}
