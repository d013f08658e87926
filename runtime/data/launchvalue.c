// launchvalue.c - what expressions over launch dimensions and scalar arguments are worth before a
// kernel starts. In: a kernel, and the dimensions and arguments known so far. Out: for every
// expression whether its value is known, and the value. Reals are double: a default such as 1 /
// sqrt(D) is rounded to f32 once, by whoever binds it. The idea: operands have smaller numbers than
// what is made from them, so one walk over the table in order needs no recursion, however deep the
// expressions are.
#include "runtime/data/launchvalue.h"

#include <math.h>

static void put_int(LaunchValue *v, i64 i) {
  v->known = true;
  v->i = i;
}

static void put_real(LaunchValue *v, double f) {
  v->known = true;
  v->f = f;
}

static void unary(LaunchValue *v, ExprOp op, Ty ty, const LaunchValue *a) {
  if (ty == TY_INT) {
    v->known = sc_int_op(op, a->i, 0, &v->i);
    return;
  }
  switch (op) {
    case X_TOREAL: put_real(v, (double)a->i); return;
    case X_NOT: put_int(v, !a->i); return;
    case X_NEG: put_real(v, -a->f); return;
    case X_ABS: put_real(v, fabs(a->f)); return;
    case X_EXP: put_real(v, exp(a->f)); return;
    case X_EXP2: put_real(v, exp2(a->f)); return;
    case X_LOG: put_real(v, log(a->f)); return;
    case X_LOG2: put_real(v, log2(a->f)); return;
    case X_SQRT: put_real(v, sqrt(a->f)); return;
    case X_RSQRT: put_real(v, 1 / sqrt(a->f)); return;
    case X_TANH: put_real(v, tanh(a->f)); return;
    default: return;
  }
}

static void binary_int(LaunchValue *v, ExprOp op, i64 a, i64 b) {
  if (op == X_AND) put_int(v, a && b);
  else if (op == X_OR) put_int(v, a || b);
  else v->known = sc_int_op(op, a, b, &v->i);
}

static void binary_real(LaunchValue *v, ExprOp op, double a, double b) {
  switch (op) {
    case X_ADD: put_real(v, a + b); return;
    case X_SUB: put_real(v, a - b); return;
    case X_MUL: put_real(v, a * b); return;
    case X_DIV: put_real(v, a / b); return;
    case X_MIN: put_real(v, fmin(a, b)); return;
    case X_MAX: put_real(v, fmax(a, b)); return;
    case X_LT: put_int(v, a < b); return;
    case X_LE: put_int(v, a <= b); return;
    case X_EQ: put_int(v, a == b); return;
    case X_NE: put_int(v, a != b); return;
    default: return;
  }
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
    } else if (arity == 1) {
      if (out[e->a].known) unary(v, e->op, e->ty, &out[e->a]);
    } else if (arity == 2) {
      const LaunchValue *a = &out[e->a], *b = &out[e->b];
      if (!a->known || !b->known) continue;
      if (k->expr.at[e->a].ty == TY_REAL) binary_real(v, e->op, a->f, b->f);
      else binary_int(v, e->op, a->i, b->i);
    } else if (out[e->a].known) {
      *v = out[out[e->a].i ? e->b : e->c];
    }
  }
}
