// slice.c - leaves out of a function the instructions that decide neither a branch nor an operand
// of an event, and those whose results the thread's number and constants do not determine. In: a
// Ptx. Out: the same blocks with the instructions that remain (about one in twenty), and new
// numbers for their registers; the last register stands for all unknown values. The walks for each
// thread are short then.
#include "runtime/ptx/ptx.h"

typedef struct Slicer {
  Ptx *ptx;
  bool *wanted;  // by register
  bool *known;   // by register: it may be a number of which something is known
  bool more;     // one was found since the last pass
} Slicer;

// Marks the registers of an operand, or asks whether one of them is marked.
static bool each(Slicer *s, const PtxOperand *o, bool mark) {
  bool any = false;
  if (o->kind == OPND_REG) {
    if (mark && !s->wanted[o->n]) s->more = s->wanted[o->n] = true;
    return s->wanted[o->n];
  }
  if (o->kind != OPND_LIST && o->kind != OPND_AT) return false;
  for (i64 i = 0; i < o->n; i++) any |= each(s, &s->ptx->list.at[o->first + i], mark);
  return any;
}

static bool matters(const PtxIns *ins, u32 operand) {
  enum { SCALE = 3 };  // of a product: is there something to add to?
  if (ins->event == EV_MMA) return operand == SCALE;
  const char *letter = sc_ptx_event[ins->event].operands;
  for (u32 i = 0; i < operand && *letter; i++) letter++;
  return *letter && *letter != '_' && *letter != 'p';
}

static bool is_left(Slicer *s, const PtxIns *ins) {
  if (ins->event) return true;
  return ins->compute != COMPUTE_NOTHING && ins->operands && each(s, &ins->operand[0], false);
}

static void follow(Slicer *s, const PtxIns *ins) {
  if (!is_left(s, ins)) return;
  for (u32 i = 0; i < ins->operands; i++) {
    if (ins->event ? matters(ins, i) : i && ins->compute > COMPUTE_UNKNOWN)
      each(s, &ins->operand[i], true);
  }
}

static void find_wanted(Slicer *s) {
  for (u32 b = 0; b < s->ptx->block.n; b++) {
    u32 guard = s->ptx->block.at[b].guard;
    if (guard != SC_NONE) s->wanted[guard] = true;
  }
  do {
    s->more = false;
    for (u32 i = s->ptx->ins.n; i-- > 0;) follow(s, &s->ptx->ins.at[i]);
  } while (s->more);
}

// ---- what may be known

static bool may_be_known(const Slicer *s, const PtxOperand *o) {
  if (o->kind == OPND_REG) return s->known[o->n];
  if (o->kind == OPND_LIST) return o->n && may_be_known(s, &s->ptx->list.at[o->first]);
  return o->kind != OPND_OTHER && o->kind != OPND_AT;
}

// May the result be known? Of a sum it may if an address in it is known, of a conjunction if one
// side is.
static bool result_may(const Slicer *s, const PtxIns *ins) {
  bool all = true, one = false;
  for (u32 i = 1; i < ins->operands; i++) {
    bool may = may_be_known(s, &ins->operand[i]);
    all &= may;
    one |= may && ins->operand[i].kind != OPND_NUM;
  }
  switch ((Compute)ins->compute) {
    case COMPUTE_NOTHING:
    case COMPUTE_UNKNOWN: return false;
    case COMPUTE_ADD:
    case COMPUTE_SUB:
    case COMPUTE_MAD:
    case COMPUTE_SETP2: return one || all;
    case COMPUTE_OR: return all || one;
    case COMPUTE_AND: return all || (one && ins->bits == 1);
    case COMPUTE_SELP: return may_be_known(s, &ins->operand[3]);
    case COMPUTE_SHFL: return may_be_known(s, &ins->operand[1]);
    case COMPUTE_MAPA: return may_be_known(s, &ins->operand[2]);
    default: return all;
  }
}

static void note_known(Slicer *s, const PtxIns *ins) {
  const PtxOperand *to = &ins->operand[0];
  if (!ins->operands || !result_may(s, ins)) return;
  if (to->kind == OPND_LIST && to->n) to = &s->ptx->list.at[to->first];
  if (to->kind == OPND_REG && !s->known[to->n]) s->more = s->known[to->n] = true;
}

static void find_known(Slicer *s) {
  do {
    s->more = false;
    for (u32 i = 0; i < s->ptx->ins.n; i++) note_known(s, &s->ptx->ins.at[i]);
  } while (s->more);
  for (u32 i = 0; i < s->ptx->regs; i++) s->wanted[i] &= s->known[i];
}

// ---- what is left

static void rename_operand(PtxOperand *o, const bool *wanted, const u32 *number) {
  if (o->kind != OPND_REG) return;
  if (wanted[o->n]) o->n = number[o->n];
  else o->kind = OPND_OTHER;
}

static void rename_all(Slicer *s, Sc *sc) {
  Ptx *ptx = s->ptx;
  u32 *number = NEWS(sc, u32, ptx->regs + 1), n = 0;
  for (u32 i = 0; i < ptx->regs; i++) {
    if (s->wanted[i]) number[i] = n++;
  }
  for (u32 i = 0; i < ptx->regs; i++) {
    if (!s->wanted[i]) number[i] = n;
  }
  for (u32 i = 0; i < ptx->ins.n; i++) {
    for (u32 j = 0; j < ptx->ins.at[i].operands; j++)
      rename_operand(&ptx->ins.at[i].operand[j], s->wanted, number);
  }
  for (u32 i = 0; i < ptx->list.n; i++) rename_operand(&ptx->list.at[i], s->wanted, number);
  for (u32 b = 0; b < ptx->block.n; b++) {
    PtxBlock *at = &ptx->block.at[b];
    if (at->guard != SC_NONE) at->guard = number[at->guard];
  }
  ptx->regs = n + 1;
}

void sc_ptx_slice(Sc *sc, Ptx *ptx) {
  Slicer s = {.ptx = ptx};
  u32 n = 0;
  s.wanted = NEWS(sc, bool, ptx->regs + 1);
  s.known = NEWS(sc, bool, ptx->regs + 1);
  find_wanted(&s);
  find_known(&s);
  for (u32 b = 0; b < ptx->block.n; b++) {
    PtxBlock *at = &ptx->block.at[b];
    u32 first = n;
    for (u32 i = at->first; i < at->first + at->n; i++) {
      if (is_left(&s, &ptx->ins.at[i])) ptx->ins.at[n++] = ptx->ins.at[i];
    }
    at->first = first;
    at->n = n - first;
  }
  ptx->ins.n = n;
  rename_all(&s, sc);
}
