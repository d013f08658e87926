// access.c - what maps read and reduce, what operations read and write and through which proxy, and
// so in which ways each role uses each ring and tensor; which expressions code evaluates. The one
// place that knows. In: a kernel whose code stands. Out: Kernel.read, fold, access, ring_use,
// tensor_use; linear in the code and in the expressions of each map.
#include <string.h>

#include "compiler/ir/ir.h"

// ---- maps: each view and each reduction once a map, in the order in which they are written

static void look_into(Kernel *k, Below *below, Xid root) {
  x_from(below, root);
  for (Xid x; (x = x_next(below));) {
    const Expr *e = &k->expr.at[x];
    if (e->op == X_LOAD) PUSH(below->sc, &k->read, ((MapRead){.view = e->ref}));
    if (x_reduces(e->op)) PUSH(below->sc, &k->fold, x);
  }
}

static void list_reads(Sc *sc, Kernel *k) {
  Below below = x_below(sc, k);
  for (u32 i = 0; i < k->map.n; i++) {
    Map *m = &k->map.at[i];
    m->read0 = k->read.n;
    m->fold0 = k->fold.n;
    x_begin(&below, DEP_TILE);
    look_into(k, &below, m->root);
    look_into(k, &below, m->cond);
    m->reads = k->read.n - m->read0;
    m->folds = k->fold.n - m->fold0;
  }
}

u32 sc_views_of(const Map *m) { return m->reads + (m->dst != SC_NONE); }

u32 sc_view_of(const Kernel *k, const Map *m, u32 i) {
  return i < m->reads ? k->read.at[m->read0 + i].view : m->dst;
}

// ---- operations

typedef struct Lister {
  Sc *sc;
  Kernel *k;
} Lister;

static void put(Lister *l, u32 view, bool write, bool async) {
  PUSH(l->sc, &l->k->access, ((ViewAccess){view, write, async}));
}

static void put_product(Lister *l, const Product *p, bool async) {
  put(l, p->a, false, async);
  put(l, p->b, false, async);
  if (p->acc) put(l, p->dst, false, async);
  put(l, p->dst, true, async);
}

static void put_map(Lister *l, const Map *m) {
  for (u32 i = 0; i < sc_views_of(m); i++) put(l, sc_view_of(l->k, m, i), i == m->reads, false);
}

static void list_operation(Lister *l, Ins *ins) {
  const char *args = sc_op[ins->op].args;
  bool async = sc_op[ins->op].effects & ASYNC;
  ins->access0 = l->k->access.n;
  if (sc_on_product(ins->op)) put_product(l, &l->k->product.at[ins->arg[0]], async);
  if (sc_on_map(ins->op)) put_map(l, &l->k->map.at[ins->arg[0]]);
  for (size_t i = strlen(args); i-- > 0;)
    if (args[i] == 'v' || args[i] == 'w') put(l, ins->arg[i], args[i] == 'w', async);
  ins->accesses = l->k->access.n - ins->access0;
}

// ---- roles

static void use_ring(const Kernel *k, u8 *use, const Ins *ins) {
  if (ins->op == OP_ACQUIRE || ins->op == OP_COMMIT) use[ins->arg[0]] |= USE_FILL;
  if (ins->op == OP_WAIT || ins->op == OP_RELEASE) use[ins->arg[0]] |= USE_DRAIN;
  for (u32 i = 0; i < ins->accesses; i++) {
    const ViewAccess *a = sc_view_access(k, ins, i);
    const View *v = &k->view.at[a->view];
    const Buf *b = &k->buf.at[v->buf];
    if (b->space != SP_STAGE) continue;
    if (v->fill) use[b->ring] |= a->async ? USE_COPY : USE_STORE;
    else use[b->ring] |= a->async ? USE_ASYNC : a->write ? USE_THREADS | USE_INPLACE : USE_THREADS;
    if (ins->op == OP_MMA) use[b->ring] |= USE_PRODUCT;
  }
}

static void use_tensors(const Kernel *k, u8 *use, const Ins *ins) {
  for (u32 i = 0; i < ins->accesses; i++) {
    const ViewAccess *a = sc_view_access(k, ins, i);
    u32 buf = k->view.at[a->view].buf;
    if (k->buf.at[buf].space != SP_TENSOR) continue;
    if (!a->write) use[buf] |= a->async ? DOES_COPY_FROM : DOES_READ;
    else if (ins->op == OP_COPYADD) use[buf] |= DOES_COPY_TO | DOES_COPY_ADD;
    else if (a->async) use[buf] |= DOES_COPY_TO;
    else use[buf] |= ins->op == OP_MAPADD ? DOES_ADD : DOES_WRITE;
  }
}

void sc_list_accesses(Sc *sc, Kernel *k) {
  Lister l = {sc, k};
  list_reads(sc, k);
  k->ring_use = NEWS(sc, u8, k->role.n * k->ring.n + 1);
  k->tensor_use = NEWS(sc, u8, k->role.n * k->buf.n + 1);
  for (u32 r = 0; r < k->role.n; r++) {
    Code *code = &k->role.at[r].code;
    for (u32 i = 0; i < code->n; i++) {
      list_operation(&l, &code->at[i]);
      use_ring(k, k->ring_use + r * k->ring.n, &code->at[i]);
      use_tensors(k, k->tensor_use + r * k->buf.n, &code->at[i]);
    }
  }
}

bool sc_only_copies(const Kernel *k, u32 role, u32 ring) {
  return (sc_ring_use(k, role, ring) & (USE_COPY | USE_STORE)) == USE_COPY;
}

bool sc_warps_fill(const Kernel *k, u32 role, u32 ring) {
  return sc_ring_use(k, role, ring) & USE_FILL && !sc_only_copies(k, role, ring);
}

bool sc_ring_async(const Kernel *k, u32 ring) {
  u8 all = 0;
  for (u32 r = 0; r < k->role.n; r++) all |= sc_ring_use(k, r, ring);
  return all & (USE_COPY | USE_ASYNC);
}

// ---- expressions

void sc_grid_exprs(const Kernel *k, ExprVisit *visit, void *user) {
  for (u32 i = 0; i < k->axis.n; i++) {
    visit(user, k->axis.at[i].extent, k->axis.at[i].span);
    visit(user, k->axis.at[i].section, k->axis.at[i].span);
  }
  for (u32 i = 0; i < k->turn.n; i++) visit(user, k->turn.at[i].keys, k->turn.at[i].span);
}

void sc_ins_exprs(const Kernel *k, const Ins *ins, ExprVisit *visit, void *user) {
  u32 view[3], views = 0;
  const char *args = sc_op[ins->op].args;
  for (u32 i = 0; args[i]; i++) {
    if (args[i] == 'x') visit(user, ins->arg[i], ins->span);
    if (args[i] == 'v' || args[i] == 'w') view[views++] = ins->arg[i];
  }
  if (sc_on_map(ins->op)) {
    const Map *m = &k->map.at[ins->arg[0]];
    visit(user, m->root, ins->span);
    visit(user, m->cond, ins->span);
    if (m->dst != SC_NONE) view[views++] = m->dst;
  }
  if (sc_on_product(ins->op)) {
    const Product *p = &k->product.at[ins->arg[0]];
    view[views++] = p->dst, view[views++] = p->a, view[views++] = p->b;
  }
  for (u32 i = 0; i < views; i++) {
    const View *v = &k->view.at[view[i]];
    for (u32 d = 0; d < v->rank; d++) visit(user, v->at[d].base, ins->span);
  }
}
