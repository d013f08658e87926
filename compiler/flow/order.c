// order.c - the order between operations: the fences and syncs that an operation needs before it,
// and the products and copies that have ended. In derive mode they are written into the operation's
// plan; otherwise the plan is compared with them. Called by step.c, ring.c and tensor.c; calls
// report.c and state.c.
#include "compiler/flow/flow.h"

// What the operation touches that others of the threads touched before: a tensor, else a stage. A
// vote's block has no other operations that are ordered.
static const Buf *shared_buf(const Flow *f, const Ins *ins) {
  const Buf *shared = NULL;
  for (u32 i = 0; i < ins->accesses; i++) {
    const ViewAccess *a = sc_view_access(f->k, ins, i);
    u32 buf = f->k->view.at[a->view].buf;
    const Buf *b = &f->k->buf.at[buf];
    u8 met = UNSYNCED_WRITE | UNSYNCED_ADD | UNSYNCED_COPY | (a->write ? UNSYNCED_READ : 0);
    if (b->space == SP_TENSOR && f->now->tensor[buf].set & met) return b;
    if (b->space == SP_STAGE || (b->space == SP_TENSOR && !shared)) shared = b;
  }
  return shared;
}

static void report_vote(Flow *f, const Ins *ins) {
  const Buf *b = shared_buf(f, ins);
  Diag *d = sc_report(
      f->sc, D_R7_VOTE, ins->span,
      "here the role's warps would have to synchronize, but a vote's block is run by some of "
      "them only");
  sc_help(f->sc, d, "move it, or the other statement that accesses %s'%s', out of the 'vote'",
          b->space == SP_STAGE ? "the stage of " : "", sc_buf_name(f, (u32)(b - f->k->buf.at)));
}

void sc_want_order(Flow *f, Ins *ins, u32 need) {
  bool fence = need & NEED_FENCE, sync = need & NEED_SYNC, global = need & NEED_GLOBAL;
  if (f->derive) {
    ins->plan.fence |= fence;
    ins->plan.global |= global;
    ins->plan.sync |= sync;
  } else if (f->report) {
    if (fence && !ins->plan.fence) {
      Diag *d = sc_report(f->sc, D_R7_FENCE, ins->span,
                          "'%s' needs a proxy fence before it: threads accessed a stage that an "
                          "engine accesses next",
                          sc_op[ins->op].text);
      sc_help(f->sc, d, "add 'fence' to its plan");
    }
    if (global && ins->plan.fence && !ins->plan.global) {
      Diag *d = sc_report(f->sc, D_R7_FENCE, ins->span,
                          "'%s' needs a proxy fence of global memory before it: threads accessed a "
                          "tensor that the copy engine accesses next",
                          sc_op[ins->op].text);
      sc_help(f->sc, d, "add 'global' to its plan");
    }
    if (sync && !ins->plan.sync) {
      Diag *d = sc_report(
          f->sc, D_R7_SYNC, ins->span,
          "the instance's threads must synchronize before '%s': it touches what others of "
          "them wrote or read",
          sc_op[ins->op].text);
      sc_help(f->sc, d, "add 'sync' to its plan");
    }
  }
  if (ins->plan.fence) sc_state_fence(f->now, f->k, ins->plan.global);
  if (!ins->plan.sync) return;
  if (f->votes && f->report) report_vote(f, ins);
  sc_state_sync(f->now, f->k);
}

// All warps of the instance issue a product together. So a thread that has waited for it knows that
// all warps are past the waits before its issue.
static void note_past(State *s, const Kernel *k, u32 retired) {
  for (u32 r = 0; r < k->ring.n; r++) {
    for (u32 i = 0; i < s->ring[r].held; i++) {
      Hold *h = &s->ring[r].hold[i];
      h->all_past |= retired > h->older;
      h->older -= retired < h->older ? retired : h->older;
    }
  }
}

void sc_retire_products(Flow *f, u32 n) {
  for (u32 i = 0; i < n && f->retired; i++) f->retired(f->user, f->pc, &f->now->product.at[i]);
  note_past(f->now, f->k, n);
  sc_retire(&f->now->product, n);
}

// After a fault the n oldest products count as waited for, so that a wait that comes too late is
// not reported as another fault.
void sc_fault_products(Flow *f, u32 n) {
  for (u32 i = 0; i < n; i++) sc_blame(f, &f->blamed_buf[f->now->product.at[i].dst]);
  sc_retire_products(f, n);
}

u32 sc_unseen_turn(u32 turn) {
  return 1u << (UNSEEN_TURNS + (turn < MAX_TURNS ? turn : MAX_TURNS - 1));
}

void sc_retire_copies(Flow *f, u32 n, bool seen) {
  Queue *q = &f->now->copy;
  for (u32 i = 0; i < n && !seen; i++) {
    f->now->unseen[q->at[i].dst] |= q->at[i].unseen;
    f->now->unseen_site[q->at[i].dst] = q->at[i].site;
  }
  sc_retire(q, n);
}
