// access.c - accesses of stages, tensors and register tiles, by threads and by engines: what must
// have ended, what must be known to the thread that makes the access, and through which proxy.
//   - what an engine may still write or read is touched by nobody else (T1, W2, W3);
//   - what one thread wrote, another touches after they have met, and so for reads before writes;
//   - between an access by threads and one by an engine is a proxy fence (P1, P3).
#include "compiler/verify/threads.h"

static const Buf *buf_of(const Threads *t, u32 view) {
  return &t->k->buf.at[t->k->view.at[view].buf];
}

// ---- others

// The bits that a table by role has at `at`, united over all roles that can run beside this
// instance: the other roles, and its own role if that has several instances.
static u8 elsewhere(const Threads *t, const u8 *table, u32 width, u32 at) {
  u8 all = 0;
  for (u32 r = 0; r < t->k->role.n; r++)
    if (r != t->role || t->r->instances > 1) all |= table[r * width + at];
  return all;
}

u8 th_others_ring(const Threads *t, u32 ring) {
  if (t->k->ring.at[ring].owner != SC_NONE) return 0;
  return elsewhere(t, t->k->ring_use, t->k->ring.n, ring);
}

u8 th_others_tensor(const Threads *t, u32 buf) {
  return elsewhere(t, t->k->tensor_use, t->k->buf.n, buf);
}

// Can an access by another role or instance conflict with this one, so that their order matters?
static bool others_meet(const Threads *t, const ViewAccess *a) {
  const View *v = &t->k->view.at[a->view];
  const Buf *b = buf_of(t, a->view);
  if (b->space == SP_TENSOR)
    return th_others_tensor(t, v->buf) &
           (a->write ? DOES_COPY | DOES_READ : DOES_COPY_TO | DOES_WRITE | DOES_ADD);
  if (b->space != SP_STAGE) return false;
  if (v->fill) return th_others_ring(t, b->ring) & USE_STORE;
  return th_others_ring(t, b->ring) & (a->write ? USE_THREADS | USE_ASYNC : USE_INPLACE);
}

// ---- threads among themselves

// Of two maps of the instance, does the same thread touch each element that both do, in whichever
// rounds of their loops? It does where the views lie alike over the threads and are either at the
// same place or, in another round, whole tiles apart; or nothing is touched by both.
static bool by_same_thread(const Threads *t, Access x, u32 pc, u32 view) {
  const Kernel *k = t->k;
  Facts *facts = t->v->facts;
  if (x.pc == SEVERAL || !sc_on_map(t->r->code.at[pc].op)) return false;
  const Map *m = &k->map.at[t->r->code.at[x.pc].arg[0]], *n = &k->map.at[t->r->code.at[pc].arg[0]];
  const View *a = &k->view.at[x.view], *b = &k->view.at[view];
  if (a->buf != b->buf) return true;  // two parts of a stage
  bool alike = sc_same_threads(k, m, a, n, b);
  for (u32 d = 0; d < a->rank; d++) {
    const Pos *p = &a->at[d], *q = &b->at[d];
    i64 wide = p->var < 0 ? 1 : sc_extent(k, m, p->var),
        other = q->var < 0 ? 1 : sc_extent(k, n, q->var);
    if (sc_fact_disjoint_rounds(facts, p->base, wide, q->base, other)) return true;
    alike = alike && wide == other && sc_fact_equal(facts, p->base, q->base) &&
            sc_fact_steps(facts, p->base, wide);
  }
  return alike;
}

static void have_not_met(Threads *t, Span span, const char *name, u32 pc) {
  Diag *d = th_missing(t, PROOF_THREADS, span,
                       "threads of '%s' touch '%s' here, and it is not sure that other threads are "
                       "done with it: they have not met",
                       t->r->name, name);
  if (pc < SEVERAL) th_other_end(t, d, pc, "the others touch it here");
}

static void have_not_fenced(Threads *t, const Ins *ins, const char *name, bool global) {
  th_missing(t, PROOF_THREADS, ins->span,
             "an engine touches '%s' here after threads, with no proxy fence%s between", name,
             global ? " of global memory" : "");
}

// The threads that make the access must know what other instances did before it.
static void want_heard(Threads *t, const Place *p, const ViewAccess *a, Span span) {
  if (!p->heard || t->single || !others_meet(t, a)) return;
  th_missing(t, PROOF_THREADS, span,
             "'%s' is touched here by threads that have not met since thread 0 waited for others "
             "that touch it (H3)",
             buf_of(t, a->view)->name);
}

// This thread must know that the instance's other threads are done with the place: with accesses of
// the kinds `against`.
static void want_met(Threads *t, const Place *p, u8 against, u32 view, Span span) {
  u8 open = p->apart & against;
  if (t->single) return;
  if (open & DID_WRITE && by_same_thread(t, p->writer, t->pc, view)) open &= (u8)~DID_WRITE;
  if (open & DID_READ && by_same_thread(t, p->reader, t->pc, view)) open &= (u8)~DID_READ;
  if (open)
    have_not_met(t, span, buf_of(t, view)->name,
                 open & DID_WRITE  ? p->writer.pc
                 : open & DID_READ ? p->reader.pc
                                   : SEVERAL);
}

static void note_access(Threads *t, Place *p, u8 did, u32 view) {
  Access *one = did == DID_WRITE ? &p->writer : &p->reader;
  bool other = p->apart & did && (one->pc != t->pc || one->view != view);
  if (did != DID_ADD) *one = other ? (Access){SEVERAL, 0} : (Access){t->pc, view};
  p->raw |= did;
  if (!t->single) p->apart |= did;
}

// ---- stages

// The stage that a view names: the newest that is held, or the one that is being filled. NULL:
// there is none.
static Stage *stage_of(Threads *t, u32 view) {
  u32 ring = buf_of(t, view)->ring, held = t->now->held[ring];
  bool fill = t->k->view.at[view].fill;
  if (fill ? t->now->open[ring] : held)
    return fill ? th_fill(t->now, ring) : th_stage(t->now, ring, held - 1);
  th_unsure(t, "it does not hold a stage that it uses, of", t->k->ring.at[ring].name);
  return NULL;
}

static void in_flight(Threads *t, Span span, const char *name, const char *what, u32 site) {
  Diag *d = th_missing(t, PROOF_THREADS, span, "'%s' is touched here while %s may be under way",
                       name, what);
  th_other_end(t, d, site, "issued here");
}

// The bit for the view's part of a stage in a set of parts.
static u64 part_bit(Threads *t, u32 view) {
  const Buf *b = buf_of(t, view);
  u32 part = t->k->view.at[view].buf - t->k->ring.at[b->ring].part0;
  if (part < 64) return (u64)1 << part;
  th_unsure(t, "a stage has more parts than this proof tells apart, of",
            t->k->ring.at[b->ring].name);
  return 0;
}

// Until the stage is full, a part into which a copy lands is the copy's alone (T1).
static void want_own_part(Threads *t, Span span, u32 view, u64 others) {
  if (!(others & part_bit(t, view))) return;
  th_missing(t, PROOF_THREADS, span,
             "'%s' is touched here in a fill in which a copy lands in it, too (T1)",
             buf_of(t, view)->name);
}

static void thread_stage(Threads *t, const ViewAccess *a) {
  const View *v = &t->k->view.at[a->view];
  const char *name = buf_of(t, a->view)->name;
  Stage *s = stage_of(t, a->view);
  if (!s) return;
  if (v->fill) want_own_part(t, v->span, a->view, s->landing);
  if (v->fill) s->stored |= part_bit(t, a->view);
  want_heard(t, &s->at, a, v->span);
  want_met(t, &s->at, a->write ? DID_WRITE | DID_READ : DID_WRITE, a->view, v->span);
  if (!a->write) return;
  if (s->at.elect && !t->single) have_not_met(t, v->span, name, SEVERAL);
  if (s->product != LANDED) in_flight(t, v->span, name, "a product that reads it", s->by_product);
  if (s->copy != LANDED) in_flight(t, v->span, name, "a copy that reads it", s->by_copy);
  if (v->fill && s->elected && !t->single) have_not_met(t, v->span, name, s->site);
}

// An engine reads a stage for the instance: its tensor cores for all warps, a copy for thread 0.
static Stage *engine_stage(Threads *t, const Ins *ins, u32 view) {
  ViewAccess read = {view, false, true};
  const char *name = buf_of(t, view)->name;
  Stage *s = stage_of(t, view);
  if (!s) return NULL;
  if (ins->op == OP_MMA) want_heard(t, &s->at, &read, ins->span);
  if (s->at.raw & DID_WRITE) have_not_fenced(t, ins, name, false);
  if (s->at.apart & DID_WRITE) have_not_met(t, ins->span, name, s->at.writer.pc);
  return s;
}

// ---- tensors

static void want_seen(Threads *t, Span span, u32 buf, bool stores, bool adds) {
  const Tensor *x = &t->now->tensor[buf];
  if ((stores && x->store != LANDED) || (adds && x->add != LANDED))
    in_flight(t, span, t->k->buf.at[buf].name, "a copy out to it", x->by_copy);
}

static void thread_tensor(Threads *t, const Ins *ins, const ViewAccess *a) {
  const View *v = &t->k->view.at[a->view];
  const Place *p = &t->now->tensor[v->buf].at;
  u8 against = ins->op == OP_MAPADD && a->write ? DID_WRITE | DID_READ
               : a->write                       ? DID_WRITE | DID_READ | DID_ADD
                                                : DID_WRITE | DID_ADD;
  want_seen(t, v->span, v->buf, true, true);
  want_heard(t, p, a, v->span);
  want_met(t, p, against, a->view, v->span);
  if (p->elect && !t->single) have_not_met(t, v->span, t->k->buf.at[v->buf].name, SEVERAL);
}

// ---- register tiles

static void thread_tile(Threads *t, const ViewAccess *a) {
  const View *v = &t->k->view.at[a->view];
  const Tile *x = &t->now->tile[v->buf];
  const char *name = t->k->buf.at[v->buf].name;
  if (x->into != LANDED) in_flight(t, v->span, name, "a product into it", x->by_into);
  if (a->write && x->from != LANDED)
    in_flight(t, v->span, name, "a product that reads it", x->by_from);
}

// ---- operations

// A statement's threads do not meet between what they read and what they write. So what it changes
// in place must be each thread's own.
static void want_own_elements(Threads *t, const Ins *ins) {
  const Map *m = sc_on_map(ins->op) ? &t->k->map.at[ins->arg[0]] : NULL;
  if (!m || m->dst == SC_NONE || buf_of(t, m->dst)->space == SP_REG) return;
  if (sc_one_thread_writes(t->k, m)) return;
  th_missing(t, PROOF_THREADS, ins->span,
             "several threads write one element of '%s' here, or another one than has read it",
             buf_of(t, m->dst)->name);
}

void th_by_threads(Threads *t, const Ins *ins) {
  want_own_elements(t, ins);
  for (u32 i = 0; i < ins->accesses; i++) {
    const ViewAccess *a = sc_view_access(t->k, ins, i);
    const Buf *b = buf_of(t, a->view);
    if (b->space == SP_STAGE) thread_stage(t, a);
    if (b->space == SP_TENSOR) thread_tensor(t, ins, a);
    if (b->space == SP_REG) thread_tile(t, a);
  }
  for (u32 i = 0; i < ins->accesses; i++) {
    const ViewAccess *a = sc_view_access(t->k, ins, i);
    const Buf *b = buf_of(t, a->view);
    Stage *s = b->space == SP_STAGE ? stage_of(t, a->view) : NULL;
    u8 did = !a->write ? DID_READ : ins->op == OP_MAPADD ? DID_ADD : DID_WRITE;
    if (s) note_access(t, &s->at, did, a->view);
    if (b->space == SP_TENSOR)
      note_access(t, &t->now->tensor[t->k->view.at[a->view].buf].at, did, a->view);
  }
}

// wgmma: operands in shared memory are in use until a wait covers the product, and so are its
// registers.
void th_by_products(Threads *t, const Ins *ins) {
  const Kernel *k = t->k;
  const Product *p = &k->product.at[ins->arg[0]];
  u32 left = k->view.at[p->a].buf, dst = k->view.at[p->dst].buf;
  ViewAccess a = {p->a, false, true};
  Stage *from[2] = {NULL, engine_stage(t, ins, p->b)};
  if (k->buf.at[left].space == SP_STAGE) from[0] = engine_stage(t, ins, p->a);
  else thread_tile(t, &a);
  Tile *d = &t->now->tile[dst];
  if (d->from != LANDED)
    in_flight(t, ins->span, k->buf.at[dst].name, "a product that reads it", d->by_from);
  th_product_issued(t);
  for (u32 i = 0; i < 2; i++) {
    if (!from[i]) continue;
    from[i]->product = 0;
    from[i]->by_product = t->pc;
  }
  d->into = 0;
  d->by_into = t->pc;
  if (k->buf.at[left].space != SP_REG) return;
  t->now->tile[left].from = 0;
  t->now->tile[left].by_from = t->pc;
}

// What threads did to a tensor must come before what the copy engine does for thread 0.
static void engine_tensor(Threads *t, const Ins *ins, u32 buf, u8 against) {
  const Place *p = &t->now->tensor[buf].at;
  const char *name = t->k->buf.at[buf].name;
  if (p->raw & against) have_not_fenced(t, ins, name, true);
  if (p->apart & against) have_not_met(t, ins->span, name, SEVERAL);
}

void th_copy_in(Threads *t, const Ins *ins) {
  u32 tensor = t->k->view.at[ins->arg[1]].buf;
  want_seen(t, ins->span, tensor, true, true);
  engine_tensor(t, ins, tensor, DID_WRITE | DID_ADD);
  Stage *s = stage_of(t, ins->arg[0]);
  if (!s) return;
  want_own_part(t, ins->span, ins->arg[0], s->landing | s->stored);
  s->landing |= part_bit(t, ins->arg[0]);
}

void th_copy_out(Threads *t, const Ins *ins) {
  u32 tensor = t->k->view.at[ins->arg[0]].buf;
  Tensor *x = &t->now->tensor[tensor];
  bool adds = ins->op == OP_COPYADD;
  Stage *s = engine_stage(t, ins, ins->arg[1]);
  want_seen(t, ins->span, tensor, adds, !adds);
  engine_tensor(t, ins, tensor, DID_WRITE | DID_READ | DID_ADD);
  if (t->report && !adds) t->v->overtaken[t->role][t->pc] |= x->stores;
  if (!adds) x->stores |= sc_copy_bit(&t->r->code, t->pc);
  th_copy_issued(t);
  if (s) s->copy = 0;
  if (s) s->by_copy = t->pc;
  *(adds ? &x->add : &x->store) = 0;
  x->turns |= t->now->turns;
  x->by_copy = t->pc;
}
