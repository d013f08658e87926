// absent.c - guards, and what a false one leaves out of a kernel's or sequence's arguments:
// tensors, scalars and the dimensions that only they have -> names whose use is reported. A
// kernel's names are declared where they stand. Those of a sequence, and dimensions, wait for all
// that is there: the same name may be that of something else. Called by declare.c, bind.c and
// seq.c; calls expr.c for guards, and scope.c.
#include "compiler/lower/lower.h"

#include <string.h>

// ---- guards

bool low_guard(Low *l, const Node *n, const char *what, bool *holds) {
  *holds = true;
  l->guard = true;
  Xid c = n ? low_bool(l, n) : 0;
  l->guard = false;
  if (!n || (c && x_const_bool(l->k, c, holds))) return true;
  *holds = true;
  if (!c) return false;
  Diag *d =
      low_error(l, D_P_CONST, n->span, "whether there is a %s must be known at compile time", what);
  sc_help(l->sc, d, "use params and literals; launch dimensions and scalars are not known yet");
  return false;
}

// ---- tensors, scalars and dimensions

static Name *absent(Low *l, const Node *n, const char *what, LeftOut out) {
  const Node *guard = out.step ? out.step->a : out.item->b;
  Name *name = low_declare_absent(l, n->name, (out.step ? out.step : n)->span, what, guard->span);
  PUSH(l->sc, &l->absent, name);
  return name;
}

static const char *what_is(const Node *item, const Node *group) {
  return item->kind == ND_WORKSPACE ? "workspace" : group->b->a ? "tensor" : "scalar";
}

// `again`: but for what is there, or said already.
static void absent_names(Low *l, LeftOut out, bool again) {
  bool made = out.item->kind == ND_WORKSPACE || out.item->flags & F_OUT;
  for (const Node *g = out.item->a; g; g = g->next) {
    for (const Node *n = g->kind == ND_GROUP ? g->a : NULL; n; n = n->next) {
      Name *name = again ? low_find(l, n->name) : NULL;
      if (!name) name = absent(l, n, what_is(out.item, g), out);
      if (name->kind == NM_ABSENT) name->made |= made;
    }
  }
}

void low_leave_out(Low *l, const Node *item, const Node *step) {
  LeftOut out = {item, step};
  PUSH(l->sc, &l->left_out, out);
  if (item->kind == ND_TENSOR && !step) absent_names(l, out, false);
}

// Free names among the extents of what is not there.
static void absent_dimensions(Low *l, const Node *n, LeftOut out, u32 depth) {
  double value;
  Elem elem;
  for (; n && depth < LOW_MAX_NEST; n = n->next) {
    bool free = n->kind == ND_NAME && !low_find(l, n->name);
    if (free && !low_constant_named(n->name, &value) && !low_elem_named(n->name, &elem))
      absent(l, n, "dimension", out);
    absent_dimensions(l, n->a, out, depth + 1);
    absent_dimensions(l, n->b, out, depth + 1);
    absent_dimensions(l, n->c, out, depth + 1);
  }
}

void low_list_absent(Low *l) {
  for (u32 i = 0; i < l->absent.n; i++) {
    const Name *n = l->absent.at[i];
    bool taken = strcmp(n->what, "workspace") != 0;  // that, no launch takes
    if (taken) PUSH(l->sc, &l->k->absent, ((Absent){n->name, low_why_absent(l, n)}));
  }
}

void low_absent_tensors(Low *l) {
  for (u32 i = 0; i < l->left_out.n; i++) {
    LeftOut out = l->left_out.at[i];
    absent_names(l, out, true);
    for (const Node *g = out.item->a; g; g = g->next) {
      if (g->kind != ND_GROUP) continue;
      absent_dimensions(l, g->b->a, out, 0);
      absent_dimensions(l, g->d, out, 0);
    }
  }
}
