// flow_tensor.c - tensors in global memory, as threads and the copy engine of one instance touch
// them: what must have been waited for (R3), where threads must meet, and where a proxy fence is
// missing between what they do and what the copy engine does. Copies out are in no order among
// themselves or with anything else until they are visible (PTX ISA 9.0, 9.7.9.25: bulk copies), so
// what may meet the same place waits for them. Places are told apart only between threads: a tensor
// counts as one place for copies.
#include "flow.h"

// ---- copies out that may be on their way

static const char *deed(const Ins *ins, const Access *a) {
  if (!a->write) return "read";
  return ins->op == OP_MAPADD || ins->op == OP_COPYADD ? "added to" : "written";
}

// No copy out of these kinds to the tensor may still be on its way (R3).
static void want_seen(Flow *f, const Ins *ins, const Access *a, u32 kinds) {
  const View *v = &f->k->view.at[a->view];
  const Queue *q = &f->now->copy;
  u32 i = q->n;
  while (i && (q->at[i - 1].dst != v->buf || !(sc_unseen(f, &q->at[i - 1]) & kinds))) i--;
  if (!i && !(f->now->unseen[v->buf] & kinds)) return;
  if (f->report) {
    Diag *d = sc_report(f->sc, D_R3_VISIBLE, a->async ? ins->span : v->span,
                        "'%s' is %s while copies out to it may not be visible yet",
                        sc_buf_name(f, v->buf), deed(ins, a));
    u32 site = i ? q->at[i - 1].site : f->now->unseen_site[v->buf];
    sc_note(f->sc, d, f->r->code.at[site].span, "copied out here");
    sc_help(f->sc, d, "'wait %s' before it (not 'read', which only says that the stage is free)",
            sc_buf_name(f, v->buf));
  }
  sc_retire_copies(f, i, true);
  f->now->unseen[v->buf] = 0;
}

// The thread that issued the copies knows that they have read their stages, or are visible; the
// others will when they meet.
void sc_note_copies(State *s, const Kernel *k, u32 n, bool seen) {
  for (u32 i = 0; i < n; i++) {
    const Flight *flight = &s->copy.at[i];
    Ref from = flight->ref[0];
    if (from.ring != SC_NONE) s->ring[from.ring].hold[from.hold].dirt.set |= APART_COPIED;
    if (seen) s->tensor[flight->dst].set |= APART_COPIED;
  }
  for (u32 i = 0; i < k->buf.n && seen; i++) {
    if (s->unseen[i]) s->tensor[i].set |= APART_COPIED;
  }
}

// ---- threads

// Is it the same thread that did what `before` says and that does this, wherever the tensor's
// elements are the same? Narrow ones change hands within a quad on their way to whole words.
static bool by_same(const Flow *f, Touch before, const Access *a, bool other_wrote) {
  const Buf *b = &f->k->buf.at[f->k->view.at[a->view].buf];
  if (other_wrote != a->write && sc_elem[b->elem].bytes < 4) return false;
  return sc_apart(f->uses, &f->r->code, before, (Touch){f->pc, a->view});
}

bool sc_tensor_meets(const Flow *f, const Ins *ins, const Access *a) {
  const Dirt *d = &f->now->tensor[f->k->view.at[a->view].buf];
  bool adds = ins->op == OP_MAPADD && a->write;
  if (d->set & APART_COPIED || (d->set & APART_ADDED && !adds)) return true;
  if (d->set & APART_WROTE && !by_same(f, d->writer, a, true)) return true;
  return a->write && d->set & APART_READ && !by_same(f, d->reader, a, false);
}

static Touch only(const Flow *f, bool another, Touch before, const Access *a) {
  bool same = before.pc == f->pc && before.view == a->view;
  return another && !same ? (Touch){SC_NONE, SC_NONE} : (Touch){f->pc, a->view};
}

void sc_touch_tensor(Flow *f, const Ins *ins, const Access *a) {
  Dirt *d = &f->now->tensor[f->k->view.at[a->view].buf];
  bool adds = ins->op == OP_MAPADD && a->write;
  want_seen(f, ins, a, adds ? UNSEEN_STORE : UNSEEN_ANY);
  if (adds) {
    d->set |= DIRT_ADDED | APART_ADDED;
  } else if (a->write) {
    d->writer = only(f, d->set & APART_WROTE, d->writer, a);
    d->set |= DIRT_WROTE | APART_WROTE;
  } else {
    d->reader = only(f, d->set & APART_READ, d->reader, a);
    d->set |= DIRT_READ | APART_READ;
  }
}

// ---- copies, and what others are told

u32 sc_copy_tensor(Flow *f, const Ins *ins) {
  bool in = ins->op == OP_COPYIN, add = ins->op == OP_COPYADD;
  Access a = {ins->arg[in ? 1 : 0], !in, true};
  u8 dirt = f->now->tensor[f->k->view.at[a.view].buf].set;
  want_seen(f, ins, &a, in ? UNSEEN_ANY : add ? UNSEEN_STORE : UNSEEN_ADD);
  if (in) dirt &= (u8) ~(DIRT_READ | APART_READ);
  if (add) dirt &= (u8) ~(DIRT_ADDED | APART_ADDED);
  if (dirt & (DIRT_WROTE | DIRT_READ | DIRT_ADDED)) return NEED_FENCE | NEED_MEET | NEED_GLOBAL;
  return dirt & (APART_WROTE | APART_READ | APART_ADDED) ? NEED_MEET : 0;
}

// What the other roles, or other instances of this one, do: all their bits of a table by role.
static u8 elsewhere(const Flow *f, const u8 *table, u32 width, u32 at) {
  u8 all = 0;
  for (u32 r = 0; r < f->k->role.n; r++) {
    if (r != f->role || f->k->role.at[r].instances > 1) all |= table[r * width + at];
  }
  return all;
}

u32 sc_hand_over(const Flow *f, const Ins *ins) {
  const Kernel *k = f->k;
  bool one = ins->op != OP_PASS && ins->plan.arrivals < f->r->warps;  // arrives for all warps
  u32 need = 0;
  for (u32 r = 0; r < k->ring.n; r++) {
    const RingState *ring = &f->now->ring[r];
    u8 dirt = 0;
    for (u32 h = 0; h < ring->held; h++) dirt |= ring->hold[h].dirt.set;
    if (!(dirt & DIRT_WROTE) || k->ring.at[r].owner != SC_NONE) continue;
    if (elsewhere(f, f->uses->ring, k->ring.n, r) & USE_ASYNC) need |= NEED_FENCE;
  }
  for (u32 b = 0; b < k->buf.n; b++) {
    u8 dirt = f->now->tensor[b].set, copies = elsewhere(f, f->uses->tensor, k->buf.n, b);
    if ((dirt & (DIRT_WROTE | DIRT_ADDED) && copies) || (dirt & DIRT_READ && copies & COPY_TO))
      need |= NEED_FENCE | NEED_GLOBAL;
    if (one && ((dirt & (DIRT_WROTE | DIRT_ADDED | APART_WROTE | APART_ADDED) && copies) ||
                (dirt & (DIRT_READ | APART_READ) && copies & COPY_TO)))
      need |= NEED_MEET;
  }
  return need;
}
