// launchvalue.c - what expressions over launch dimensions and scalar arguments are worth before a
// kernel starts. In: a kernel, and the dimensions and arguments known so far. Out: for every
// expression whether its value is known, and the value. Reals are double: a default such as 1 /
// sqrt(D) is rounded to f32 once, by whoever binds it. The idea: operands have smaller numbers than
// what is made from them, so one walk over the table in order needs no recursion, however deep the
// expressions are.
#include "runtime/data/launchvalue.h"

static void put_int(LaunchValue *v, i64 i) {
  v->known = true;
  v->i = i;
}

static void put_real(LaunchValue *v, double f) {
  v->known = true;
  v->f = f;
}

static void operate(LaunchValue *v, const Expr *e, Ty of, const LaunchValue *a,
                    const LaunchValue *b) {
  double f;
  if (e->op == X_TOREAL) put_real(v, (double)a->i);
  else if (of != TY_REAL) v->known = sc_int_op(e->op, a->i, b->i, &v->i);
  else if (!sc_real_op(e->op, a->f, b->f, &f)) return;
  else if (e->ty == TY_REAL) put_real(v, f);
  else put_int(v, f != 0);
}

static void leaf(LaunchValue *v, const Expr *e, const LaunchKnown *in) {
  switch (e->op) {
    case X_INT:
    case X_BOOL: put_int(v, e->num.i); return;
    case X_REAL: put_real(v, e->num.f); return;
    case X_DIM:
      if (in->dim_known[e->ref]) put_int(v, in->dim[e->ref]);
      return;
    case X_ARG:
      if (!in->arg_known[e->ref]) return;
      if (e->ty == TY_INT) put_int(v, (i64)in->arg[e->ref]);
      else put_real(v, in->arg[e->ref]);
      return;
    default: return;
  }
}

void sc_launch_values(const Kernel *k, const LaunchKnown *in, LaunchValue *out) {
  for (Xid x = 1; x < k->expr.n; x++) {
    const Expr *e = &k->expr.at[x];
    LaunchValue *v = &out[x];
    *v = (LaunchValue){0};
    u8 arity = sc_xop[e->op].arity;
    if ((e->deps & ~DEP_DIM) || e->op == X_SUM || e->op == X_RMAX || e->op == X_RMIN) continue;
    if (arity == 0) {
      leaf(v, e, in);
    } else if (e->a >= x || e->b >= x || e->c >= x) {
      continue;  // not made by expr.c
    } else if (e->op == X_WHERE) {
      if (out[e->a].known) *v = out[out[e->a].i ? e->b : e->c];
    } else if (out[e->a].known && (arity == 1 || out[e->b].known)) {
      operate(v, e, k->expr.at[e->a].ty, &out[e->a], &out[e->b]);
    }
  }
}
