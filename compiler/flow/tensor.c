// tensor.c - tensors in global memory, as threads and the copy engine access them for one instance:
// what must have been waited for (R3), where the threads need a sync, and where a proxy fence is
// needed between them and the copy engine. Copies out are in no order with each other or with
// anything else until they are visible (PTX ISA 9.0, 9.7.9.25: bulk copies), so every access that
// may touch the same elements must wait for them. Elements are compared only between two accesses
// by threads: a copy counts as an access of the whole tensor.
#include "compiler/flow/flow.h"

// ---- copies out that may be on their way

static const char *deed(const Ins *ins, const ViewAccess *a) {
  if (!a->write) return "read";
  return ins->op == OP_MAPADD || ins->op == OP_COPYADD ? "added to" : "written";
}

// An operation that issued the copy, of one of these kinds if it is known.
static u32 site_of(const Flow *f, const Flight *copy, u32 kinds) {
  bool adds = f->r->code.at[copy->site].op == OP_COPYADD;
  return (adds ? UNSEEN_ADD : UNSEEN_STORE) & kinds ? copy->site : copy->also;
}

// No copy out of these kinds to the tensor may still be on its way (R3).
static void want_seen(Flow *f, const Ins *ins, const ViewAccess *a, u32 kinds) {
  const View *v = &f->k->view.at[a->view];
  const Queue *q = &f->now->copy;
  u32 i = q->n;
  while (i && (q->at[i - 1].dst != v->buf || !(q->at[i - 1].unseen & kinds))) i--;
  if (!i && !(f->now->unseen[v->buf] & kinds)) return;
  if (f->report) {
    Diag *d = sc_report(f->sc, D_R3_VISIBLE, a->async ? ins->span : v->span,
                        "'%s' is %s while copies out to it may not be visible yet",
                        sc_buf_name(f, v->buf), deed(ins, a));
    u32 site = i ? site_of(f, &q->at[i - 1], kinds) : f->now->unseen_site[v->buf];
    sc_note(f->sc, d, f->r->code.at[site].span, "copied out here");
    sc_help(f->sc, d, "'wait %s' before it (not 'read', which only says that the stage is free)",
            sc_buf_name(f, v->buf));
  }
  sc_retire_copies(f, i, true);
  f->now->unseen[v->buf] = 0;
}

// After the wait, the thread that issued the copies knows that they have read their stages, or are
// visible. The others know it after a sync.
void sc_note_copies(State *s, const Kernel *k, u32 n, bool seen) {
  for (u32 i = 0; i < n; i++) {
    const Flight *flight = &s->copy.at[i];
    Ref from = flight->ref[0];
    if (from.ring != SC_NONE) s->ring[from.ring].hold[from.hold].unordered.set |= UNSYNCED_COPY;
    if (seen) s->tensor[flight->dst].set |= UNSYNCED_COPY;
  }
  for (u32 i = 0; i < k->buf.n && seen; i++) {
    if (s->unseen[i]) s->tensor[i].set |= UNSYNCED_COPY;
  }
}

// ---- threads

// Is each element that both `before` and this access touch touched by the same thread?
static bool by_same(const Flow *f, Touch before, const ViewAccess *a) {
  return sc_needs_no_sync(f->facts, f->k, &f->r->code, before, (Touch){f->pc, a->view});
}

bool sc_tensor_needs_sync(const Flow *f, const Ins *ins, const ViewAccess *a) {
  const Unordered *d = &f->now->tensor[f->k->view.at[a->view].buf];
  bool adds = ins->op == OP_MAPADD && a->write;
  if (d->set & UNSYNCED_COPY || (d->set & UNSYNCED_ADD && !adds)) return true;
  if (d->set & UNSYNCED_WRITE && !by_same(f, d->writer, a)) return true;
  return a->write && d->set & UNSYNCED_READ && !by_same(f, d->reader, a);
}

static Touch only(const Flow *f, bool another, Touch before, const ViewAccess *a) {
  bool same = before.pc == f->pc && before.view == a->view;
  return another && !same ? (Touch){SC_NONE, SC_NONE} : (Touch){f->pc, a->view};
}

void sc_touch_tensor(Flow *f, const Ins *ins, const ViewAccess *a) {
  Unordered *d = &f->now->tensor[f->k->view.at[a->view].buf];
  bool adds = ins->op == OP_MAPADD && a->write;
  want_seen(f, ins, a, UNSEEN_ANY);
  if (adds) {
    d->set |= UNFENCED_ADD | UNSYNCED_ADD;
  } else if (a->write) {
    d->writer = only(f, d->set & UNSYNCED_WRITE, d->writer, a);
    d->set |= UNFENCED_WRITE | UNSYNCED_WRITE;
  } else {
    d->reader = only(f, d->set & UNSYNCED_READ, d->reader, a);
    d->set |= UNFENCED_READ | UNSYNCED_READ;
  }
}

// ---- copies, and what others are told

u32 sc_copy_tensor(Flow *f, const Ins *ins) {
  bool in = ins->op == OP_COPYIN, add = ins->op == OP_COPYADD;
  ViewAccess a = {ins->arg[in ? 1 : 0], !in, true};
  u8 unordered = f->now->tensor[f->k->view.at[a.view].buf].set;
  want_seen(f, ins, &a, in ? UNSEEN_ANY : add ? UNSEEN_STORE : UNSEEN_ADD);
  if (in) unordered &= (u8) ~(UNFENCED_READ | UNSYNCED_READ);
  if (unordered & (UNFENCED_WRITE | UNFENCED_READ | UNFENCED_ADD))
    return NEED_FENCE | NEED_SYNC | NEED_GLOBAL;
  return unordered & (UNSYNCED_WRITE | UNSYNCED_READ | UNSYNCED_ADD) ? NEED_SYNC : 0;
}

// The bits that a table by role has at `at`, united over all roles that can run beside this
// instance: the other roles, and its own role if that has several instances.
static u8 elsewhere(const Flow *f, const u8 *table, u32 width, u32 at) {
  u8 all = 0;
  for (u32 r = 0; r < f->k->role.n; r++) {
    if (r != f->role || f->k->role.at[r].instances > 1) all |= table[r * width + at];
  }
  return all;
}

static u8 others_ring(const Flow *f, u32 ring) {
  return elsewhere(f, f->k->ring_use, f->k->ring.n, ring);
}
static u8 others_tensor(const Flow *f, u32 buf) {
  return elsewhere(f, f->k->tensor_use, f->k->buf.n, buf);
}

// Does what others do to a tensor need an order with a write, or with a read? (Stores by several
// roles or instances are assumed to write different elements: where they do not, no order makes
// that right.)
static bool conflicts(bool write, u8 does) {
  return does & (write ? DOES_COPY | DOES_READ : DOES_COPY_TO | DOES_WRITE | DOES_ADD);
}

// May the two views of a tensor name one element, in a tile?
static bool may_meet(const Flow *f, const View *v, const Ins *by, const View *w, const Ins *other) {
  i64 ext[2][SC_MAX_VARS];
  sc_extents(f->k, by, ext[0]);
  sc_extents(f->k, other, ext[1]);
  for (u32 d = 0; d < v->rank; d++) {
    const Pos *at = &v->at[d], *bt = &w->at[d];
    i64 n = at->var < 0 ? 1 : ext[0][(u32)at->var], m = bt->var < 0 ? 1 : ext[1][(u32)bt->var];
    if (sc_fact_disjoint_rounds(f->facts, at->base, n, bt->base, m)) return false;
  }
  return true;
}

// Do threads of another role store to what this access writes, before it or after it?
static bool stored_by_others(const Flow *f, const ViewAccess *a) {
  const Kernel *k = f->k;
  const View *v = &k->view.at[a->view];
  const Ins *by = &f->r->code.at[f->pc];
  for (u32 r = 0; r < k->role.n; r++) {
    const Code *code = &k->role.at[r].code;
    if (r == f->role || !(sc_tensor_use(k, r, v->buf) & (DOES_WRITE | DOES_ADD))) continue;
    for (u32 pc = 0; pc < code->n; pc++) {
      const Ins *ins = &code->at[pc];
      bool sums = ins->op == OP_MAPADD && by->op == OP_MAPADD;
      for (u32 i = 0; i < ins->accesses && sc_on_map(ins->op) && !sums; i++) {
        const ViewAccess *b = sc_view_access(k, ins, i);
        const View *w = &k->view.at[b->view];
        if (b->write && w->buf == v->buf && may_meet(f, v, by, w, ins)) return true;
      }
    }
  }
  return false;
}

// Do other roles or instances access what this access writes, or write what it reads?
bool sc_others_matter(const Flow *f, const ViewAccess *a) {
  const View *v = &f->k->view.at[a->view];
  const Buf *b = &f->k->buf.at[v->buf];
  if (b->space == SP_TENSOR)
    return conflicts(a->write, others_tensor(f, v->buf)) || (a->write && stored_by_others(f, a));
  if (b->space != SP_STAGE || f->k->ring.at[b->ring].owner != SC_NONE) return false;
  if (v->fill) return others_ring(f, b->ring) & USE_STORE;
  return others_ring(f, b->ring) & (a->write ? USE_THREADS | USE_ASYNC : USE_INPLACE);
}

// What is needed (NEED_*) for the stages of shared rings that are held, or filled together with
// others, and that these threads have accessed.
static u32 hand_over_stages(const Flow *f, bool one) {
  const Kernel *k = f->k;
  u32 need = 0;
  for (u32 r = 0; r < k->ring.n; r++) {
    const RingState *ring = &f->now->ring[r];
    u8 unordered = 0, use = k->ring.at[r].owner == SC_NONE ? others_ring(f, r) : 0;
    for (u32 h = 0; h < ring->held; h++) unordered |= ring->hold[h].unordered.set;
    if (unordered & UNFENCED_WRITE && use & USE_ASYNC) need |= NEED_FENCE;
    if (one && unordered & (UNFENCED_WRITE | UNSYNCED_WRITE) && use & (USE_THREADS | USE_ASYNC))
      need |= NEED_SYNC;
    if (one && unordered & (UNFENCED_READ | UNSYNCED_READ) && use & USE_INPLACE) need |= NEED_SYNC;
    bool filled = ring->open && ring->fill.unordered.set & (UNSYNCED_WRITE | UNSYNCED_READ);
    if (one && filled && use & USE_STORE) need |= NEED_SYNC;
  }
  return need;
}

static u32 hand_over_tensors(const Flow *f, bool one) {
  u32 need = 0;
  for (u32 b = 0; b < f->k->buf.n; b++) {
    u8 unordered = f->now->tensor[b].set, does = others_tensor(f, b);
    bool wrote = unordered & (UNFENCED_WRITE | UNFENCED_ADD), read = unordered & UNFENCED_READ;
    if ((wrote && does & DOES_COPY) || (read && does & DOES_COPY_TO))
      need |= NEED_FENCE | NEED_GLOBAL;
    wrote |= (unordered & (UNSYNCED_WRITE | UNSYNCED_ADD)) != 0;
    read |= (unordered & UNSYNCED_READ) != 0;
    if (one && ((wrote && conflicts(true, does)) || (read && conflicts(false, does))))
      need |= NEED_SYNC;
  }
  return need;
}

// The roles, as a set, that go on when this operation arrives.
static u32 told_by(const Flow *f, const Ins *ins) {
  u32 set = 0;
  if (ins->op == OP_RELEASE) return f->k->ring.at[ins->arg[0]].fillers;
  if (ins->op != OP_PASS) return f->k->ring.at[ins->arg[0]].drainers;
  const Turn *t = &f->k->turn.at[ins->arg[0]];
  for (u32 i = 0; i < t->members; i++) set |= 1u << t->member[i];
  return set;
}

// Does one of them read the tensor, other than this instance?
static bool read_by(const Flow *f, u32 roles, u32 buf) {
  for (u32 r = 0; r < f->k->role.n; r++) {
    bool other = r != f->role || f->k->role.at[r].instances > 1;
    if (roles >> r & 1 && other && sc_tensor_use(f->k, r, buf) & (DOES_READ | DOES_COPY_FROM))
      return true;
  }
  return false;
}

// The last copy in flight to the tensor that is not visible yet, from 1; 0: there is none.
static u32 unseen_flight(const Queue *q, u32 tensor) {
  u32 i = q->n;
  while (i && (q->at[i - 1].dst != tensor || !(q->at[i - 1].unseen & UNSEEN_ANY))) i--;
  return i;
}

// A copy out of which only the source has been waited for may not be visible yet: those who are
// told to go on must not read the tensor.
static void want_told(Flow *f, const Ins *ins) {
  u32 told = told_by(f, ins);
  for (u32 b = 0; b < f->k->buf.n; b++) {
    Queue *q = &f->now->copy;
    u32 in_flight = unseen_flight(q, b);
    if ((!(f->now->unseen[b] & UNSEEN_ANY) && !in_flight) || !read_by(f, told, b)) continue;
    if (f->report) {
      Diag *d = sc_report(
          f->sc, D_R3_VISIBLE, ins->span,
          "others are told to go on, and read '%s', while copies out to it may not be visible yet",
          sc_buf_name(f, b));
      u32 site = in_flight ? q->at[in_flight - 1].site : f->now->unseen_site[b];
      sc_note(f->sc, d, f->r->code.at[site].span, "copied out here");
      sc_help(f->sc, d, "'wait %s' before it (not 'read', which only says that the stage is free)",
              sc_buf_name(f, b));
    }
    for (u32 i = 0; i < in_flight; i++)
      if (q->at[i].dst == b) q->at[i].unseen = 0;  // that has been reported
    f->now->unseen[b] = 0;
  }
}

u32 sc_hand_over(Flow *f, const Ins *ins, bool one) {
  want_told(f, ins);
  return hand_over_stages(f, one) | hand_over_tensors(f, one);
}
