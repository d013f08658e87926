// shares.c - rings whose copies the CTAs of a cluster share. In: such a ring. Out: nothing, if the
// CTAs make the same multicast copies in the same fills; else ARRIVALS, SHARED or PHASES stay open.
//
// In a multicast each CTA sends its share to all. So where one does not, the others lack bytes, and
// what they send lands in a fill of it that does not expect it. Where one shares another slice, the
// others get a stage of two slices. That all CTAs fill the ring equally often is COUNTS.
//
// A release goes to the empty barriers of all CTAs. That these have had all releases of the round
// before is known to who has waited for a fill to which every CTA gave a share (M4).
#include "compiler/verify/barriers.h"

static bool fills(const Kernel *k, const Ins *ins, u32 ring) {
  if (ins->op == OP_ACQUIRE) return ins->arg[0] == ring;
  return ins->op == OP_COPYIN && k->buf.at[k->view.at[ins->arg[0]].buf].ring == ring;
}

static bool block_reads_rank(Below *below, const Ins *ins) {
  if (ins->op == OP_IF) return x_reads_rank(below, ins->arg[0]);
  if (ins->op != OP_FOR) return false;
  return x_reads_rank(below, ins->arg[1]) || x_reads_rank(below, ins->arg[2]);
}

// Does no block around the role's fills of the ring depend on the CTA's place in its cluster?
static bool alike_in_cluster(const Verify *v, const Code *code, u32 ring) {
  Below below = x_below(v->sc, v->k);
  for (u32 pc = 0; pc < code->n; pc++) {
    for (u32 i = 0; i < pc && fills(v->k, &code->at[pc], ring); i++) {
      bool around = sc_op[code->at[i].op].effects & OPENS && sc_closed_by(code, i) > pc;
      if (around && block_reads_rank(&below, &code->at[i])) return false;
    }
  }
  return true;
}

void sc_prove_shares(Verify *v, u32 ring) {
  static const ProofId both[] = {PROOF_ARRIVALS, PROOF_SHARED};
  const Kernel *k = v->k;
  const char *name = k->ring.at[ring].name;
  Span alone = k->ring.at[ring].span;
  bool heard = false;
  for (u32 r = 0; r < k->role.n; r++) {
    const Code *code = &k->role.at[r].code;
    Brackets b = sc_ring_brackets(v, r, ring);
    heard |= b.fill.any && !b.alone;
    if (b.unlike && b.alone) alone = code->at[b.alone].span;
    if (!b.fill.any || alike_in_cluster(v, code, ring)) continue;
    for (u32 i = 0; i < COUNT(both) && b.unlike; i++)
      sc_incomplete(v, both[i], code->at[b.unlike].span,
                    "a CTA may share its copies into '%s' in fills in which others of its cluster "
                    "do not",
                    name);
    if (!b.unlike)
      sc_incomplete(v, PROOF_SHARED, k->ring.at[ring].span,
                    "a CTA may share another slice into '%s' than the others of its cluster in the "
                    "same fill",
                    name);
  }
  if (!heard)
    sc_incomplete(v, PROOF_PHASES, alone,
                  "nothing of this fill of '%s' comes from the other CTAs of the cluster, and they "
                  "may not have had the releases of the round before it (M4); where other fills "
                  "of '%s' are copies by 'multicast', let this be one, too",
                  name, name);
}
