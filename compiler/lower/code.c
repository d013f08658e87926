// code.c - appends operations to the code of a role, with the blocks that they open and close, and
// checks where an operation may stand on which all roles have to agree. Called by the files of
// statements.
#include "compiler/lower/lower.h"

// What opened the innermost block that is open, an `if` also behind its `else`.
static u32 innermost(const Low *l) {
  if (!l->open.n) return SC_NONE;
  u32 open = l->open.at[l->open.n - 1];
  return sc_op[l->code->at[open].op].effects & SPLITS ? l->code->at[open].around : open;
}

void low_emit(Low *l, Op op, u8 flags, u32 a, u32 b, u32 c, Span at) {
  Ins ins = {.op = (u8)op, .flags = flags, .arg = {a, b, c}, .nest = SC_NONE, .span = at};
  u32 here = l->code->n;
  u8 effects = sc_op[op].effects;
  ins.around = innermost(l);
  if (effects & OPENS) PUSH(l->sc, &l->open, here);
  if (effects & (CLOSES | SPLITS)) {
    u32 partner = l->open.at[--l->open.n];
    l->code->at[partner].nest = here;
    if (effects & CLOSES) {
      ins.nest = partner;
      ins.around = innermost(l);
    }
  }
  if (effects & SPLITS) PUSH(l->sc, &l->open, here);
  PUSH(l->sc, l->code, ins);
}

bool low_ordered(Low *l, Span at, const char *what) {
  if (l->told && (l->vote || l->undecided.hi)) return false;  // one report a condition
  l->told = l->vote || l->undecided.hi;
  if (l->vote) {
    Diag *d = low_error(l, D_R9_VOTE, at, "%s stands in a vote's block", what);
    sc_help(l->sc, d,
            l->apart ? "each warp decides for itself whether it runs the block: no ring, turn or "
                       "async product inside"
                     : "what registers hold decides whether the block is run: no ring, turn or "
                       "async product inside");
    return false;
  }
  if (!l->undecided.hi) return true;
  Diag *d = low_error(l, D_R5_CONDITION, at, "%s depends on a condition that roles cannot agree on",
                      what);
  sc_note(l->sc, d, l->undecided, "this one");
  sc_help(
      l->sc, d,
      "build it from params, dimensions, scalars, elements of `in` tensors, grid indices and loop "
      "variables: not from the instance, and not from registers or stages");
  return false;
}

bool low_is_filling(const Low *l, u32 buf) {
  const Buf *b = &l->k->buf.at[buf];
  if (b->space != SP_STAGE) return false;
  for (u32 i = 0; i < l->ring.n; i++) {
    if (l->ring.at[i]->id == b->ring) return l->filling >> l->ring.at[i]->number & 1;
  }
  return false;
}

// ---- what all roles see alike

// Has x the same value in all roles and instances of a CTA, at the same tile and in the same
// rounds?
bool low_decidable(const Low *l, Xid x) {
  return !(low_at(l, x)->deps & (DEP_INST | DEP_IDX | DEP_TILE));
}
