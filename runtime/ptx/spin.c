// spin.c - makes one event of a wait that is a loop: of `again: try_wait done; @!done bra again`
// (PTX ISA 9.0, 9.7.13.15.16: try_wait may return before the phase is complete), and of `again:
// ld.acquire now; setp.ne p, now, mine; @p bra again`. In: a Ptx as it was read. Out: such a block
// has no edge back to itself. A try_wait that no loop repeats becomes EV_TRY.
#include "runtime/ptx/ptx.h"

static bool is_reg(const PtxOperand *o, u32 reg) { return o->kind == OPND_REG && o->n == reg; }

// Does the instruction set the block's guard by comparing the value that was loaded?
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
