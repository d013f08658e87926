// spin.c - waits that are loops. `again: try_wait done; @!done bra again` (PTX
// ISA 9.0, 9.7.13.15.16: what is tried may not have ended) and `again: ld.acquire now; setp.ne p,
// now, mine; @p bra again` are one event each, at the end of which what was waited for is there.
// In: a Ptx as it was read. Out: such blocks go on without the way back; an attempt that nothing
// repeats is EV_TRY.
#include "runtime/ptx/ptx.h"

static bool is_reg(const PtxOperand *o, u32 reg) { return o->kind == OPND_REG && o->n == reg; }

// Does this set the guard of the block, by a comparison with what was looked at?
static bool compares(const PtxBlock *b, const PtxIns *ins, const PtxOperand *seen) {
  return ins->compute == COMPUTE_SETP && is_reg(&ins->operand[0], b->guard) &&
         ins->compares_unequal != b->negated &&
         (is_reg(&ins->operand[1], (u32)seen->n) || is_reg(&ins->operand[2], (u32)seen->n));
}

static bool repeats(const Ptx *ptx, u32 number, const PtxIns *wait) {
  const PtxBlock *b = &ptx->block.at[number];
  const PtxOperand *done = &wait->operand[0];
  bool compared = false;
  if (b->jump != number || b->guard == SC_NONE || done->kind != OPND_REG) return false;
  for (u32 i = b->first; i < b->first + b->n; i++) {
    const PtxIns *ins = &ptx->ins.at[i];
    if (ins->event && ins != wait) return false;
    compared |= ins > wait && compares(b, ins, done);
  }
  return wait->event == EV_LOOK ? compared : b->negated && b->guard == done->n;
}

void sc_ptx_fold_spins(Ptx *ptx) {
  for (u32 b = 0; b < ptx->block.n; b++) {
    PtxBlock *at = &ptx->block.at[b];
    for (u32 i = at->first; i < at->first + at->n; i++) {
      PtxIns *ins = &ptx->ins.at[i];
      if (ins->event != EV_WAIT && ins->event != EV_LOOK) continue;
      if (repeats(ptx, b, ins)) at->jump = at->guard = SC_NONE;
      else ins->event = EV_TRY;
    }
  }
}
