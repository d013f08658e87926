// participants.c - who takes part in each ring: read off the code of all roles, once it stands. Out: the
// fillers, drainers and kinds of access of every ring; a ring that only one side uses is an error.
#include "lower.h"

static Ring *ring_of(Low *l, u32 view) {
  const Buf *b = &l->k->buf.at[l->k->view.at[view].buf];
  return b->space == SP_STAGE ? &l->k->ring.at[b->ring] : NULL;
}

// A walk over expressions; `stamp` tells which nodes the present one has met.
typedef struct Walk {
  u32 *met;
  u32 stamp;
  VEC(Xid) todo;
} Walk;

// Marks the rings whose stages the expression reads. Uniform operands read none.
static void reads(Low *l, Xid root, Walk *w) {
  if (!root) return;
  w->stamp++;
  PUSH(l->sc, &w->todo, root);
  while (w->todo.n) {
    Xid x = w->todo.at[--w->todo.n], operand[SC_MAX_OPERANDS];
    if (w->met[x] == w->stamp || !(low_at(l, x)->deps & DEP_TILE)) continue;
    w->met[x] = w->stamp;
    for (u32 i = x_operands(l->k, x, operand); i--;) PUSH(l->sc, &w->todo, operand[i]);
    Ring *r = low_at(l, x)->op == X_LOAD ? ring_of(l, low_at(l, x)->ref) : NULL;
    if (r) r->read = true;
  }
}

static void map_access(Low *l, const Map *m, Walk *w) {
  reads(l, m->root, w);
  reads(l, m->cond, w);
  Ring *r = m->dst == SC_NONE ? NULL : ring_of(l, m->dst);
  if (r && l->k->view.at[m->dst].fill) r->stored = true;
}

static void access(Low *l, u32 role, const Ins *ins, Walk *w) {
  Kernel *k = l->k;
  switch (ins->op) {
    case OP_ACQUIRE:
    case OP_COMMIT: k->ring.at[ins->arg[0]].fillers |= (u16)(1u << role); break;
    case OP_WAIT:
    case OP_RELEASE: k->ring.at[ins->arg[0]].drainers |= (u16)(1u << role); break;
    case OP_COPYIN: {
      Ring *r = ring_of(l, ins->arg[0]);
      r->copied = true;
      r->multicast |= (ins->flags & INS_MULTICAST) != 0;
      break;
    }
    case OP_MAP:
    case OP_MAPADD:
    case OP_VOTE: map_access(l, &k->map.at[ins->arg[0]], w); break;
    case OP_MMAWARP: {
      const Product *p = &k->product.at[ins->arg[0]];
      Ring *a = ring_of(l, p->a), *b = ring_of(l, p->b);
      if (a) a->read = true;
      if (b) b->read = true;
      break;
    }
    default: break;
  }
}

void low_participants(Low *l) {
  Walk w = {.met = NEWS(l->sc, u32, l->k->expr.n)};
  for (u32 r = 0; r < l->k->role.n; r++) {
    const Code *code = &l->k->role.at[r].code;
    for (u32 i = 0; i < code->n; i++) access(l, r, &code->at[i], &w);
  }
  for (u32 i = 0; i < l->k->ring.n; i++) {
    const Ring *r = &l->k->ring.at[i];
    if (r->fillers && r->drainers) continue;
    Diag *d = low_error(l, D_R5_UNUSED, r->span, r->fillers ? "the ring '%s' is filled, and nobody waits for it"
                                                            : "the ring '%s' is used, and nobody fills it", r->name);
    sc_help(l->sc, d, r->fillers ? "'wait %s' and 'release %s' where its tiles are used"
                                 : "%s <- G[…], or 'acquire %s' … 'commit %s'", r->name, r->name, r->name);
  }
}
