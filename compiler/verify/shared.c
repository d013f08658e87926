// shared.c - the proof SHARED: no two accesses of a stage race. In: a kernel with its plan. Out: a
// verdict, with a report where two executions touch one element and nothing orders them.
//
// All instances that fill one stage at the same time must touch different elements, or another ring
// or a turn must order them. The same holds of instances that hold a stage, where one of them
// writes. The ring itself orders all accesses of a fill before those of the holds, and these before
// the next fill (ARRIVALS, COUNTS, PHASES), and an arrival speaks for all that was done before it
// (THREADS). A private ring belongs to one instance.
#include "compiler/verify/races.h"

static void unsure(Races *v, const Access *a, const Access *b) {
  const Kernel *k = v->k;
  const Buf *part = &k->buf.at[k->view.at[a->view].buf];
  const Role *r = &k->role.at[a->role], *s = &k->role.at[b->role];
  sc_incomplete(v->proof, PROOF_SHARED, r->code.at[a->pc].span,
                "'%s' and '%s' may touch one element of a stage of '%s' (lines %u and %u)%s",
                r->name, s->name, k->ring.at[part->ring].name,
                sc_line_col(v->sc->text, r->code.at[a->pc].span.lo).line,
                sc_line_col(v->sc->text, s->code.at[b->pc].span.lo).line,
                sc_pair_remedy(v, a, b, true));
}

void sc_prove_shared(Verify *proof) {
  Races v = sc_races(proof, PROOF_SHARED);
  for (u32 i = 0; i < v.k->buf.n; i++) {
    const Buf *b = &v.k->buf.at[i];
    if (b->space != SP_STAGE || v.k->ring.at[b->ring].owner != SC_NONE) continue;
    sc_prove_accesses(&v, i, true, unsure);
    sc_prove_accesses(&v, i, false, unsure);
  }
}
