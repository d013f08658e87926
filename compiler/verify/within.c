// within.c - a part of the proof MEMORY: what threads and tensor cores touch of a stage lies inside
// it. In: a kernel. Out: nothing, if all slices do; else MEMORY stays open. (What is next to a
// stage is another one, or barriers. The emitted code makes no test, as it does of tensors.)
#include "compiler/verify/races.h"

static void prove_access(Verify *v, const Access *a) {
  const Kernel *k = v->k;
  const View *view = &k->view.at[a->view];
  const Buf *b = &k->buf.at[view->buf];
  for (u32 d = 0; b->space == SP_STAGE && d < view->rank; d++) {
    const Pos *p = &view->at[d];
    i64 wide = p->var < 0 ? 1 : sc_access_extent(k, a, (u32)p->var);
    if (!p->base || sc_fact_within(v->facts, p->base, wide, b->ext[d])) continue;
    sc_incomplete(v, PROOF_MEMORY, view->span,
                  "this may reach for elements of '%s' outside of the %lld along its dimension %u",
                  b->name, (long long)b->ext[d], d + 1);
  }
}

void sc_prove_within(Verify *v) {
  for (u32 r = 0; r < v->k->role.n; r++) {
    const Code *code = &v->k->role.at[r].code;
    for (u32 pc = 0; pc < code->n; pc++) {
      sc_facts_at(v->facts, code, pc);
      for (u32 i = 0; i < code->at[pc].accesses; i++) {
        const ViewAccess *a = sc_view_access(v->k, &code->at[pc], i);
        prove_access(v, &(Access){r, pc, a->view, 0});
      }
    }
  }
  sc_facts_at(v->facts, NULL, 0);
}
