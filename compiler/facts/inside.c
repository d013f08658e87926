// inside.c - which elements of inputs that all roles see alike are never read beyond their tensor.
// In: a kernel. Out: View.inside. Beyond a tensor reads 0, whatever is declared of its elements.
//
// What is asked must hold wherever the element is read. So only that is known of its place which
// loops and the grid say of their variables there: not the conditions around.
#include "compiler/facts/linear.h"

typedef struct Marker {
  Kernel *k;
  Facts *facts;
  Below below;
  const Ins **loop;  // by number
} Marker;

static void find_loops(Sc *sc, Marker *m) {
  m->loop = NEWS(sc, const Ins *, m->k->loop.n + 1);
  for (u32 r = 0; r < m->k->role.n; r++) {
    const Code *code = &m->k->role.at[r].code;
    for (u32 pc = 0; pc < code->n; pc++)
      if (code->at[pc].op == OP_FOR) m->loop[code->at[pc].arg[0]] = &code->at[pc];
  }
}

// What is known of the variables in the element's positions, and in the bounds of their loops.
static void say_variables(Marker *m, const View *v) {
  x_begin(&m->below, DEP_AXIS | DEP_LOOP);
  for (u32 d = 0; d < v->rank; d++)
    if (v->at[d].base) x_from(&m->below, v->at[d].base);
  for (Xid x; (x = x_next(&m->below));) {
    const Expr e = m->k->expr.at[x];
    const Ins *loop = e.op == X_LOOP ? m->loop[e.ref] : NULL;
    if (e.op == X_AXIS) sc_said_axis(m->facts, e.ref);
    if (!loop) continue;
    sc_said_loop(m->facts, loop);
    x_from(&m->below, loop->arg[1]);
    x_from(&m->below, loop->arg[2]);
  }
}

static bool is_inside(Marker *m, const View *v) {
  const u32 mark = sc_facts_mark(m->facts);
  bool ok = true;
  say_variables(m, v);
  for (u32 d = 0; d < v->rank && ok; d++)
    ok = sc_fact_inside(m->facts, v->at[d].base, 1, m->k->buf.at[v->buf].dim[d]);
  sc_facts_drop(m->facts, mark);
  return ok;
}

// (The operands of an expression have smaller numbers, so elements in positions come first.)
void sc_mark_inside(Sc *sc, Kernel *k) {
  Marker m = {.k = k, .facts = NULL, .below = x_below(sc, k)};
  for (Xid x = 1; x < k->expr.n; x++) {
    const Expr e = k->expr.at[x];
    if (!x_fetches(&e)) continue;
    if (!m.facts) {
      find_loops(sc, &m);
      m.facts = sc_facts(sc, k);
      sc_facts_elements(m.facts);
    }
    k->view.at[e.ref].inside = is_inside(&m, &k->view.at[e.ref]);
  }
}
