// participants.c - who takes part in each ring: read off the code of all roles, once it stands.
// Out: the fillers, drainers and kinds of access of every ring; a ring that only one side uses is
// an error.
#include "lower.h"

// The ring whose stage a role touches through the view, if it is one; a held stage has been waited
// for.
static Ring *touched(Low *l, u32 role, u32 view) {
  const View *v = &l->k->view.at[view];
  const Buf *b = &l->k->buf.at[v->buf];
  if (b->space != SP_STAGE) return NULL;
  Ring *r = &l->k->ring.at[b->ring];
  if (!v->fill && !(r->drainers >> role & 1)) {
    Diag *d = low_error(l, D_R5_HOLD, v->span, "the role '%s' holds no stage of '%s'",
                        l->k->role.at[role].name, r->name);
    sc_note(l->sc, d, r->span, "declared here");
    sc_help(l->sc, d, "'wait %s' before it is read, 'acquire %s' before it is filled", r->name,
            r->name);
  }
  return r;
}

// A walk over expressions; `stamp` tells which nodes the present one has met.
typedef struct Walk {
  u32 *met;
  u32 stamp;
  VEC(Xid) todo;
} Walk;

// Marks the rings whose stages the expression reads. Uniform operands read none.
static void reads(Low *l, u32 role, Xid root, Walk *w) {
  if (!root) return;
  w->stamp++;
  PUSH(l->sc, &w->todo, root);
  while (w->todo.n) {
    Xid x = w->todo.at[--w->todo.n], operand[SC_MAX_OPERANDS];
    if (w->met[x] == w->stamp || !(low_at(l, x)->deps & DEP_TILE)) continue;
    w->met[x] = w->stamp;
    for (u32 i = x_operands(l->k, x, operand); i--;) PUSH(l->sc, &w->todo, operand[i]);
    Ring *r = low_at(l, x)->op == X_LOAD ? touched(l, role, low_at(l, x)->ref) : NULL;
    if (r) r->read = true;
  }
}

static void map_access(Low *l, u32 role, const Map *m, Walk *w) {
  reads(l, role, m->root, w);
  reads(l, role, m->cond, w);
  Ring *r = m->dst == SC_NONE ? NULL : touched(l, role, m->dst);
  if (r && l->k->view.at[m->dst].fill) r->stored = true;
}

static void product_access(Low *l, u32 role, const Product *p, bool by_threads) {
  Ring *a = touched(l, role, p->a), *b = touched(l, role, p->b);
  if (a) a->read |= by_threads;
  if (b) b->read |= by_threads;
}

static void access(Low *l, u32 role, const Ins *ins, Walk *w) {
  const Kernel *k = l->k;
  switch (ins->op) {
    case OP_COPYIN: {
      Ring *r = touched(l, role, ins->arg[0]);
      r->copied = true;
      r->multicast |= (ins->flags & INS_MULTICAST) != 0;
      break;
    }
    case OP_COPYOUT:
    case OP_COPYADD:
      touched(l, role, ins->arg[1]);
      break;
    case OP_MAP:
    case OP_MAPADD:
    case OP_VOTE:
      map_access(l, role, &k->map.at[ins->arg[0]], w);
      break;
    case OP_MMA:
    case OP_MMAWARP:
      product_access(l, role, &k->product.at[ins->arg[0]], ins->op == OP_MMAWARP);
      break;
    default:
      break;
  }
}

static void sides(Low *l, u32 role, const Ins *ins) {
  Ring *ring = l->k->ring.at;
  if (ins->op == OP_ACQUIRE || ins->op == OP_COMMIT) ring[ins->arg[0]].fillers |= (u16)(1u << role);
  if (ins->op == OP_WAIT || ins->op == OP_RELEASE) ring[ins->arg[0]].drainers |= (u16)(1u << role);
}

void low_participants(Low *l) {
  Walk w = {.met = NEWS(l->sc, u32, l->k->expr.n)};
  for (u32 r = 0; r < l->k->role.n; r++) {
    const Code *code = &l->k->role.at[r].code;
    for (u32 i = 0; i < code->n; i++) sides(l, r, &code->at[i]);
  }
  for (u32 r = 0; r < l->k->role.n; r++) {
    const Code *code = &l->k->role.at[r].code;
    for (u32 i = 0; i < code->n; i++) access(l, r, &code->at[i], &w);
  }
  for (u32 i = 0; i < l->k->ring.n; i++) {
    const Ring *r = &l->k->ring.at[i];
    if (!r->fillers == !r->drainers) continue;  // with neither, the stage in use is not held
    Diag *d = low_error(l, D_R5_UNUSED, r->span,
                        r->fillers ? "the ring '%s' is filled, and nobody waits for it"
                                   : "the ring '%s' is used, and nobody fills it",
                        r->name);
    sc_help(l->sc, d,
            r->fillers ? "'wait %s' and 'release %s' where its tiles are used"
                       : "%s <- G[…], or 'acquire %s' … 'commit %s'",
            r->name, r->name, r->name);
  }
}
