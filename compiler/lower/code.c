// code.c - appends operations to the code of a role, with the blocks that they open and close, and
// checks where an operation may stand on which all roles have to agree. Called by the files of
// statements.
#include "compiler/lower/lower.h"

void low_emit(Low *l, Op op, u8 flags, u32 a, u32 b, u32 c, Span at) {
  Ins ins = {.op = (u8)op, .flags = flags, .arg = {a, b, c}, .nest = SC_NONE, .span = at};
  u32 here = l->code->n;
  u8 effects = sc_op[op].effects;
  if (effects & OPENS) PUSH(l->sc, &l->open, here);
  if (effects & (CLOSES | SPLITS)) {
    u32 partner = l->open.at[--l->open.n];
    l->code->at[partner].nest = here;
    if (effects & CLOSES) ins.nest = partner;
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
            "each warp decides for itself whether it runs the block: no ring, turn or async "
            "product inside");
    return false;
  }
  if (!l->undecided.hi) return true;
  Diag *d = low_error(l, D_R5_CONDITION, at, "%s depends on a condition that roles cannot agree on",
                      what);
  sc_note(l->sc, d, l->undecided, "this one");
  sc_help(l->sc, d,
          "build it from params, dimensions, scalars, grid indices, loop variables and "
          "kernel-level lets; "
          "loop variables only by +, -, min, max, comparisons, and * / by constants");
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

static bool decidable(const Low *l, Xid x, u32 *steps) {
  const Expr *e = low_at(l, x);
  i64 c;
  if (++*steps > 2000 || e->deps & (DEP_INST | DEP_IDX | DEP_TILE)) return false;
  if (!(e->deps & DEP_LOOP)) return true;
  switch (e->op) {
    case X_LOOP: return true;
    case X_MUL:
      if (!x_const_int(l->k, e->a, &c) && !x_const_int(l->k, e->b, &c)) return false;
      break;
    case X_IDIV:
    case X_CDIV:
    case X_MOD:
      if (!x_const_int(l->k, e->b, &c)) return false;
      break;
    case X_NEG:
    case X_NOT:
    case X_ADD:
    case X_SUB:
    case X_MIN:
    case X_MAX:
    case X_LT:
    case X_LE:
    case X_EQ:
    case X_NE:
    case X_AND:
    case X_OR:
    case X_WHERE: break;
    default: return false;
  }
  return decidable(l, e->a, steps) && (!e->b || decidable(l, e->b, steps)) &&
         (!e->c || decidable(l, e->c, steps));
}

// Is x built so that "do the roles agree" is decidable? What no loop variable is in has one value a
// tile, the same in all roles, however it is computed.
bool low_decidable(const Low *l, Xid x) {
  u32 steps = 0;
  return decidable(l, x, &steps);
}
