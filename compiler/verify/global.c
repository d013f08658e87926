// global.c - the proof GLOBAL: no two accesses of a tensor race. In: a kernel with its plan. Out:
// a verdict, with a report where two executions touch one element and nothing orders them.
//
// It looks at each tensor that the kernel writes, and at each pair of accesses of which one is a
// write (sums of one kind commute). Two executions of such a pair by one instance in one tile are
// in its program's order, which is proved by `flow` and THREADS, except for copies that the program
// overtakes (lingers.c). All others must access different elements for all values, or be ordered
// (pair.c, handed.c). Where neither is proved, a concrete race is searched for (race.c).
#include "compiler/verify/races.h"

static void unsure(Races *v, const Access *a, const Access *b) {
  const Kernel *k = v->k;
  const Text *text = v->sc->text;
  Span at = k->role.at[a->role].code.at[a->pc].span,
       other = k->role.at[b->role].code.at[b->pc].span;
  const char *name = k->buf.at[k->view.at[a->view].buf].name;
  u32 line = sc_line_col(text, at.lo).line, to = sc_line_col(text, other.lo).line;
  if (a == b || line == to)
    sc_incomplete(v->proof, PROOF_GLOBAL, at,
                  "line %u may touch an element of '%s' in two tiles, instances or roles%s", line,
                  name, sc_pair_remedy(v, a, b, false));
  else
    sc_incomplete(
        v->proof, PROOF_GLOBAL, at,
        "lines %u and %u may touch one element of '%s' in two tiles, instances or roles%s", line,
        to, name, sc_pair_remedy(v, a, b, false));
}

void sc_prove_global(Verify *proof) {
  Races v = sc_races(proof, PROOF_GLOBAL);
  for (u32 i = 0; i < v.k->buf.n; i++)
    if (v.k->buf.at[i].space == SP_TENSOR) sc_prove_accesses(&v, i, false, unsure);
}
