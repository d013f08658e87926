// atoms.c - the atoms of forms in a symbolic run. In: an atom. Out: whether it is a zone
// variable, and whether it has another value in another round of a loop, or in another CTA of the
// cluster.
#include "compiler/verify/protocol.h"

enum { ZONE_ATOM = 1 << 20 };  // an index variable that no expression has

Lin sc_zone_form(Symbolic *m, u32 var) {
  return sc_lin_atom(sc_form_atom(m->f, (Atom){.op = X_IDX, .ref = ZONE_ATOM + var}));
}

u32 sc_zone_of(const Symbolic *m, u32 atom) {
  const Atom *a = &m->f->atom.at[atom];
  return a->op == X_IDX && a->ref >= ZONE_ATOM ? a->ref - ZONE_ATOM : SC_NONE;
}

static bool of_rank(const Symbolic *m, const Atom *a) {
  return a->op == X_AXIS && m->p->ranks > 1 && m->p->k->axis.at[a->ref].cluster > 1;
}

// Is the atom an index of a clustered axis divided by the cluster's size? All CTAs of the cluster
// have the same value of that.
static bool of_cluster(const Symbolic *m, const Atom *a) {
  if (a->op != X_IDIV || a->b->n || a->a->n != 1 || a->a->at[0].atom[1]) return false;
  const Atom *x = &m->f->atom.at[a->a->at[0].atom[0]];
  i64 n = of_rank(m, x) ? m->p->k->axis.at[x->ref].cluster : 0;
  return n && a->a->at[0].by == 1 && a->a->c % n == 0 && a->b->c % n == 0;
}

static bool element_moves(const Symbolic *m, Xid x) {
  const Expr *e = &m->p->k->expr.at[x];
  const View *v = e->op == X_LOAD ? &m->p->k->view.at[e->ref] : NULL;
  if (!v) return true;
  for (u32 d = 0; d < v->rank; d++)
    if (v->at[d].base && sc_lin_any(sc_form(m->f, v->at[d].base), sc_symbolic_moves, m))
      return true;
  return false;
}

// Has the atom another value in another round of a loop, or in another CTA of the cluster?
bool sc_symbolic_moves(const void *symbolic, u32 atom) {
  const Symbolic *m = symbolic;
  const Atom *a = &m->f->atom.at[atom];
  if (sc_symbolic_turns(m, atom)) return true;
  if (m->p->ranks == 1 || !(a->deps & DEP_AXIS) || of_cluster(m, a)) return false;
  bool element = a->op == X_LOAD || a->op == X_WHERE;
  return of_rank(m, a) ||
         (element && m->p->k->expr.at[a->ref].deps & DEP_AXIS && element_moves(m, a->ref)) ||
         sc_lin_any(a->a, sc_symbolic_moves, m) || sc_lin_any(a->b, sc_symbolic_moves, m);
}

// Has the atom another value in another round of a loop?
bool sc_symbolic_turns(const void *symbolic, u32 atom) {
  return ((const Symbolic *)symbolic)->f->atom.at[atom].deps & DEP_LOOP;
}
