// launchvalue.c - a kernel's expressions as value.c evaluates them. In: a kernel, and the
// dimensions and arguments known so far. Out: for every expression whether its value is known, and
// the value. A real default such as 1 / sqrt(D) is rounded to f32 once, by whoever binds it.
#include "runtime/data/launchvalue.h"

const char *const sc_launch_op[SCL_OPS] = {
#define X(id, ...) #id,
#include "compiler/ir/expr.def"
};

SclNode sc_launch_node(const Kernel *k, const Expr *e) {
  SclNode n = {.op = e->deps & ~DEP_DIM || x_reduces(e->op) ? SCL_LOAD : (SclOp)e->op};
  if (n.op == SCL_LOAD) return n;
  if (n.op == SCL_REAL) n.real = e->num.f;
  if (n.op == SCL_INT || n.op == SCL_BOOL) n.number = e->num.i;
  n.a = n.op == SCL_DIM || n.op == SCL_ARG ? e->ref : e->a;
  n.b = e->b;
  n.c = e->c;
  n.of_reals = (sc_xop[e->op].arity ? k->expr.at[e->a].ty : e->ty) == TY_REAL;
  return n;
}

void sc_launch_values(Sc *sc, const Kernel *k, const LaunchKnown *in, SclValue *out) {
  SclNode *node = NEWS(sc, SclNode, k->expr.n);
  for (Xid x = 1; x < k->expr.n; x++) {
    node[x] = sc_launch_node(k, &k->expr.at[x]);
    if ((node[x].op == SCL_DIM && !in->dim_known[node[x].a]) ||
        (node[x].op == SCL_ARG && !in->arg_known[node[x].a]))
      node[x] = (SclNode){SCL_LOAD};
  }
  scl_evaluate(node, k->expr.n, in->dim, in->arg, out);
}
