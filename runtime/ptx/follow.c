// follow.c - computes the addresses and parities of some events along one path. In: a sliced Ptx, a
// thread that was traced, and which of its events are followed. Out: the registers from which the
// operands of these events are computed, so that paths can be walked with the values of these.
//
// thread.c joins the values of all ways into a block, so it knows nothing of a cursor that goes
// round a ring. Here nothing is joined: the caller has a state for each path. So that these are
// few, a state keeps only registers that the operands are computed from, only while they are live,
// and branches are decided only by registers that are kept anyway. A cursor has as many values as
// its ring has stages.
#include <string.h>

#include "runtime/ptx/ptx.h"

struct Follower {
  const Ptx *ptx;
  const Thread *thread;
  const bool *event;  // by number: it is followed
  u32 *sets;          // by register: instructions that set it
  u32 *number;        // by register: where a state keeps its value
  u32 *reg, n;        // the registers that are kept, in that order
  bool *kept, *try;   // by register
  bool more;          // one was marked
  bool *decides;      // by block: its guard is kept, too
  bool *live;         // by block and kept register: its value where the block begins gets there
  Registers r;
};

Follower *sc_ptx_follower(Sc *sc, const Ptx *ptx) {
  Follower *f = NEW(sc, Follower);
  u32 regs = ptx->regs + 1;
  f->ptx = ptx;
  f->sets = NEWS(sc, u32, regs);
  f->number = NEWS(sc, u32, 2 * regs);
  f->reg = f->number + regs;
  f->live = NEWS(sc, bool, (size_t)ptx->block.n *regs);
  f->kept = NEWS(sc, bool, 2 * regs);
  f->try = f->kept + regs;
  f->decides = NEWS(sc, bool, ptx->block.n + 1);
  f->r = (Registers){NEWS(sc, Known, regs), 0, ptx};
  return f;
}

// ---- operands

typedef void Visit(Follower *f, u32 reg, bool *at);

static void each(Follower *f, const PtxOperand *o, Visit *visit, bool *at) {
  if (o->kind == OPND_REG) visit(f, (u32)o->n, at);
  if (o->kind != OPND_LIST && o->kind != OPND_AT) return;
  for (i64 i = 0; i < o->n; i++) each(f, &f->ptx->list.at[o->first + i], visit, at);
}

static void mark(Follower *f, u32 reg, bool *at) {
  if (reg + 1 == f->ptx->regs || at[reg]) return;  // the last one stands for the unknown
  f->more = at[reg] = true;
}
static void count(Follower *f, u32 reg, bool *at) {
  (void)at;
  f->sets[reg]++;
}
static void unmark(Follower *f, u32 reg, bool *at) {
  (void)f;
  at[reg] = false;
}

// Does the instruction set a register of the set?
static bool sets_one(const Follower *f, const PtxIns *ins, const bool *at) {
  const PtxOperand *to = &ins->operand[0];
  if (ins->event || ins->compute == COMPUTE_NOTHING || !ins->operands) return false;
  if (to->kind == OPND_REG) return at[to->n];
  for (i64 i = 0; to->kind == OPND_LIST && i < to->n; i++) {
    const PtxOperand *one = &f->ptx->list.at[to->first + i];
    if (one->kind == OPND_REG && at[one->n]) return true;
  }
  return false;
}

static void each_source(Follower *f, const PtxIns *ins, Visit *visit, bool *at) {
  for (u32 i = 1; i < ins->operands && ins->compute > COMPUTE_UNKNOWN; i++)
    each(f, &ins->operand[i], visit, at);
}

// Visits the operands of an event that are its address and its parity.
static void each_number(Follower *f, const PtxIns *ins, Visit *visit, bool *at) {
  const char *letter = sc_ptx_event[ins->event].operands;
  for (u32 i = 0; letter[i] && i < ins->operands; i++) {
    if (strchr("arq", letter[i])) each(f, &ins->operand[i], visit, at);
  }
}

// ---- which registers

// Adds the registers from which those of the set are computed.
static void take_sources(Follower *f, bool *at) {
  do {
    f->more = false;
    for (u32 i = f->ptx->ins.n; i-- > 0;) {
      const PtxIns *ins = &f->ptx->ins.at[i];
      if (sets_one(f, ins, at)) each_source(f, ins, mark, at);
    }
  } while (f->more);
}

static void choose(Follower *f) {
  const Ptx *ptx = f->ptx;
  memset(f->decides, 0, ptx->block.n * sizeof *f->decides);
  memset(f->kept, 0, ptx->regs * sizeof *f->kept);
  memset(f->sets, 0, ptx->regs * sizeof *f->sets);
  for (u32 b = 0; b < ptx->block.n; b++) {
    u32 event = f->thread->first[b];
    for (u32 i = ptx->block.at[b].first; i < ptx->block.at[b].first + ptx->block.at[b].n; i++) {
      const PtxIns *ins = &ptx->ins.at[i];
      if (ins->event && f->event[event++]) each_number(f, ins, mark, f->kept);
      if (!ins->event && ins->compute != COMPUTE_NOTHING && ins->operands)
        each(f, &ins->operand[0], count, NULL);
    }
  }
  take_sources(f, f->kept);
}

// ---- where their values matter

static bool *live_in(const Follower *f, u32 block) { return f->live + (size_t)block * f->n; }

// Liveness: makes the set of registers that are live at the end of a block that at its beginning. A
// register is live only if an event's operand or a deciding guard depends on it: a loop counter on
// which only itself depends is not.
static void read_in(Follower *f, u32 b, bool *at) {
  const PtxBlock *block = &f->ptx->block.at[b];
  u32 event = f->thread->first[b + 1];
  if (f->decides[b]) mark(f, block->guard, at);
  for (u32 i = block->first + block->n; i-- > block->first;) {
    const PtxIns *ins = &f->ptx->ins.at[i];
    if (ins->event && f->event[--event]) each_number(f, ins, mark, at);
    if (!sets_one(f, ins, at)) continue;
    each(f, &ins->operand[0], unmark, at);
    each_source(f, ins, mark, at);
  }
}

static void from_next(const Follower *f, u32 next, bool *at) {
  for (u32 i = 0; i < f->n && next < f->ptx->block.n; i++) at[f->reg[i]] |= live_in(f, next)[i];
}

static void find_live(Follower *f) {
  f->n = 0;
  for (u32 r = 0; r < f->ptx->regs; r++) {
    f->number[r] = f->n;
    if (f->kept[r]) f->reg[f->n++] = r;
  }
  memset(f->live, 0, (size_t)f->ptx->block.n * f->n);
  for (bool more = true; more;) {
    more = false;
    for (u32 b = f->ptx->block.n; b-- > 0;) {
      if (!f->thread->ways[b]) continue;
      for (u32 i = 0; i < f->n; i++) f->try[f->reg[i]] = false;
      from_next(f, f->ptx->block.at[b].next, f->try);
      from_next(f, f->ptx->block.at[b].jump, f->try);
      read_in(f, b, f->try);
      for (u32 i = 0; i < f->n; i++) {
        if (f->try[f->reg[i]] && !live_in(f, b)[i]) more = live_in(f, b)[i] = true;
      }
    }
  }
}

// ---- branches

static bool matters_at(const Follower *f, u32 block, u32 reg) {
  return f->kept[reg] && live_in(f, block)[f->number[reg]];
}

// Is the block's guard computed only from registers that are live where the block begins, and from
// registers that never change? (Where all of them never change, thread.c has decided the branch.)
static void decide(Follower *f, u32 b) {
  const PtxBlock *block = &f->ptx->block.at[b];
  bool decides = true, follows = false;
  memset(f->try, 0, f->ptx->regs * sizeof *f->try);
  mark(f, block->guard, f->try);
  for (u32 i = block->first + block->n; i-- > block->first;) {
    const PtxIns *ins = &f->ptx->ins.at[i];
    if (!sets_one(f, ins, f->try)) continue;
    each(f, &ins->operand[0], unmark, f->try);
    each_source(f, ins, mark, f->try);
  }
  for (u32 r = 0; r < f->ptx->regs; r++) {
    follows |= f->try[r] && matters_at(f, b, r);
    f->try[r] &= !matters_at(f, b, r);
  }
  take_sources(f, f->try);
  for (u32 r = 0; r < f->ptx->regs; r++)
    decides &= !f->try[r] || f->sets[r] < 2 || matters_at(f, b, r);
  f->decides[b] = decides && follows;
}

static void keep_guards(Follower *f) {
  for (u32 b = 0; b < f->ptx->block.n; b++) {
    if (f->thread->ways[b] && f->ptx->block.at[b].guard != SC_NONE) decide(f, b);
  }
  for (u32 b = 0; b < f->ptx->block.n; b++) {
    if (f->decides[b]) mark(f, f->ptx->block.at[b].guard, f->kept);
  }
  take_sources(f, f->kept);
}

u32 sc_ptx_follow(Follower *f, const Thread *t, const bool *events) {
  f->thread = t;
  f->event = events;
  f->r.tid = t->tid;
  memset(f->r.at, 0, f->ptx->regs * sizeof *f->r.at);
  choose(f);
  find_live(f);
  keep_guards(f);
  find_live(f);
  return f->n;
}

// ---- values

void sc_ptx_forget(const Follower *f, u32 block, Known *at) {
  for (u32 i = 0; i < f->n; i++) {
    if (!live_in(f, block)[i]) at[i] = (Known){0};
  }
}

void sc_ptx_begin(const Follower *f, Known *at) {
  for (u32 i = 0; i < f->n; i++) at[i] = f->thread->after[f->reg[i]];
}

static void load(Follower *f, const Known *at) {
  for (u32 i = 0; i < f->n; i++) f->r.at[f->reg[i]] = at[i];
}

static void store(const Follower *f, Known *at) {
  for (u32 i = 0; i < f->n; i++) at[i] = f->r.at[f->reg[i]];
}

// Puts an event's address and its parity, the first argument, into `event`.
static void put_numbers(const Event *now, Event *event) {
  event->at = now->at;
  event->exact = now->exact;
  if (event->id == EV_WAIT) event->arg[0] = now->arg[0];
}

static u8 ways_out(const Follower *f, u32 b) {
  const PtxBlock *at = &f->ptx->block.at[b];
  u8 ways = f->thread->ways[b];
  if (!f->decides[b] || at->jump == SC_NONE) return ways;
  Known v = f->r.at[at->guard];
  if (v.base != BASE_NUM) return ways;
  return ways & ((v.n != 0) != at->negated ? GOES_JUMP : GOES_NEXT);
}

u8 sc_ptx_run(Follower *f, u32 block, Known *at, Event *event) {
  const PtxBlock *b = &f->ptx->block.at[block];
  u32 number = f->thread->first[block];
  load(f, at);
  for (u32 i = b->first; i < b->first + b->n; i++) {
    const PtxIns *ins = &f->ptx->ins.at[i];
    if (ins->event && f->event[number++]) {
      Event now = sc_ptx_event_of(&f->r, ins);
      put_numbers(&now, event);
    }
    event += ins->event != EV_NONE;
    if (sets_one(f, ins, f->kept)) sc_ptx_compute(&f->r, ins, &f->thread->lane0[i]);
  }
  store(f, at);
  return ways_out(f, block);
}
