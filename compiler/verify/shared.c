// shared.c - the proof SHARED: no two accesses of a stage race. In: a kernel with its plan. Out: a
// verdict, with a report where two executions touch one element and nothing orders them.
//
// All instances that fill one stage at the same time must touch different elements, or another ring
// or a turn must order them. The same holds of instances that hold a stage, where one of them
// writes. The ring itself orders all accesses of a fill before those of the holds, and these before
// the next fill (ARRIVALS, COUNTS, PHASES), and an arrival speaks for all that was done before it
// (THREADS). A private ring belongs to one instance.
#include "compiler/verify/races.h"

static void give_up(Races *v, u32 part) {
  const Ring *r = &v->k->ring.at[v->k->buf.at[part].ring];
  sc_incomplete(v->proof, PROOF_SHARED, r->span, "stages of '%s' are accessed in too many places",
                r->name);
}

static void prove_pair(Races *v, const Access *a, const Access *b) {
  Pair p = sc_pair(v, a, b, true), again = p;
  again.thorough = true;
  if (sc_pair_safe(&p) || sc_pair_safe(&again)) return;
  if (!v->cases) {
    give_up(v, v->k->view.at[a->view].buf);
    return;
  }
  if (sc_find_race(v, a, b)) return;
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

static bool one_instance(const Kernel *k, const Access *a, const Access *b) {
  const Role *r = &k->role.at[a->role];
  return a->role == b->role && (r->instances == 1 || r->one_tile);
}

// Do all accesses belong to one instance?
static bool by_one(const Races *v, const Accesses *all) {
  for (u32 i = 0; i < all->n; i++)
    if (!one_instance(v->k, &all->at[0], &all->at[i])) return false;
  return true;
}

static void prove_part(Races *v, u32 part, bool fill) {
  Accesses all = sc_accesses(v, part, fill);
  if (by_one(v, &all)) return;
  for (u32 i = 0; i < all.n; i++) {
    for (u32 j = i; j < all.n; j++) {
      const Access *a = &all.at[i], *b = &all.at[j];
      if (sc_races_rejected(v)) return;
      if (!v->cases) give_up(v, part);
      if (v->cases && !one_instance(v->k, a, b) && sc_accesses_conflict(a, b)) prove_pair(v, a, b);
    }
  }
}

void sc_prove_shared(Verify *proof) {
  Races v = sc_races(proof, PROOF_SHARED);
  for (u32 i = 0; i < v.k->buf.n; i++) {
    const Buf *b = &v.k->buf.at[i];
    if (b->space != SP_STAGE || v.k->ring.at[b->ring].owner != SC_NONE) continue;
    prove_part(&v, i, true);
    prove_part(&v, i, false);
  }
}
