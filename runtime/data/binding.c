// binding.c - the caller's tensors and scalars, as given.c matches them to a kernel, checked. In:
// what the caller gave, trusted in nothing. Out: a Binding with which the kernel may run, or T
// diagnostics that name the tensor and point at its declaration. The invariant: after
// sc_bind_tensors each dimension has one value, every tensor's shape is what its declaration says
// under these values, and every element is addressable without 64-bit overflow.
#include "runtime/run.h"
#include "runtime/data/launchvalue.h"
#include "compiler/passes.h"

#include <math.h>
#include <string.h>

typedef struct Binder {
  Sc *sc;
  const Kernel *k;
  Binding *b;
  bool *dim_known, *arg_known;
  u32 *dim_from;  // the buf whose shape bound the dimension
  SclValue *value;
  bool stale;  // a dimension is known that `value` was worked out without
} Binder;

static void evaluate(Binder *bd) {
  LaunchKnown known = {bd->b->dim, bd->dim_known, bd->b->arg, bd->arg_known};
  sc_launch_values(bd->sc, bd->k, &known, bd->value);
  bd->stale = false;
}

static Elem elem_of(schedc_type type) { return (u32)type < EL_COUNT ? (Elem)type : EL_COUNT; }

// ---- one tensor by itself: type, rank, strides, address

static bool fits_type(Sc *sc, const Buf *buf, const schedc_tensor *t) {
  Elem got = elem_of(t->type);
  if (got == buf->elem) return true;
  Diag *d =
      sc_report(sc, D_T_TYPE, buf->span, "tensor '%s' is given as %s, but declared %s", buf->name,
                got == EL_COUNT ? "an unknown type" : sc_elem[got].text, sc_elem[buf->elem].text);
  sc_help(sc, d, "convert the tensor, or choose another value of the parameter that sets its type");
  return false;
}

static bool fits_rank(Sc *sc, const Buf *buf, const schedc_tensor *t) {
  if (t->rank != buf->rank) {
    sc_report(sc, D_T_RANK, buf->span,
              "tensor '%s' is given with %zu dimension%s, but declared with %u", buf->name, t->rank,
              t->rank == 1 ? "" : "s", buf->rank);
    return false;
  }
  for (u32 d = 0; d < buf->rank; d++) {
    if (t->shape[d] >= 0) continue;
    sc_report(sc, D_T_SHAPE, buf->span, "tensor '%s' has a negative extent, %lld in dimension %u",
              buf->name, (long long)t->shape[d], d);
    return false;
  }
  return true;
}

static bool is_empty(const schedc_tensor *t) {
  for (size_t d = 0; d < t->rank; d++) {
    if (t->shape[d] == 0) return true;
  }
  return false;
}

// The last element's distance in bytes fits in 63 bits.
static bool addressable(const Buf *buf, const schedc_tensor *t) {
  i64 reach = 0, step;
  for (u32 d = 0; d < buf->rank; d++) {
    if (t->shape[d] <= 1) continue;
    if (__builtin_mul_overflow(t->shape[d] - 1, t->strides[d], &step)) return false;
    if (__builtin_add_overflow(reach, step, &reach)) return false;
  }
  return !__builtin_add_overflow(reach, 1, &reach) &&
         !__builtin_mul_overflow(reach, (i64)sc_elem[buf->elem].bytes, &reach);
}

static bool fits_layout(Sc *sc, const Buf *buf, const schedc_tensor *t) {
  u32 last = buf->rank - 1u;
  if (is_empty(t)) return true;
  if (!t->data) {
    sc_report(sc, D_T_NULL, buf->span, "tensor '%s' has no data: its pointer is NULL", buf->name);
    return false;
  }
  u32 bytes = sc_elem[buf->elem].bytes;
  if ((uintptr_t)t->data % bytes) {
    sc_report(sc, D_T_ALIGN, buf->span,
              "the address of tensor '%s' is not a multiple of its elements' %u bytes", buf->name,
              bytes);
    return false;
  }
  for (u32 d = 0; d < buf->rank; d++) {
    if (t->shape[d] == 1) continue;
    if (t->strides[d] < 0) {
      sc_report(sc, D_T_STRIDE, buf->span,
                "tensor '%s' has a negative stride, %lld in dimension %u", buf->name,
                (long long)t->strides[d], d);
      return false;
    }
    if (d == last && t->strides[d] != 1) {
      Diag *g = sc_report(sc, D_T_STRIDE, buf->span,
                          "the last dimension of tensor '%s' is not contiguous: its stride is %lld",
                          buf->name, (long long)t->strides[d]);
      sc_help(sc, g, "make a contiguous copy, or declare the dimensions in the order of memory");
      return false;
    }
  }
  if (!addressable(buf, t)) {
    sc_report(sc, D_T_SHAPE, buf->span, "tensor '%s' is larger than the address space", buf->name);
    return false;
  }
  if ((buf->dir & F_OUT) && !scl_apart(buf->rank, t->shape, t->strides)) {
    sc_report(sc, D_T_STRIDE, buf->span,
              "elements of output '%s' share memory: its strides overlap", buf->name);
    return false;
  }
  return true;
}

static void take_tensor(Binder *bd, u32 number, const schedc_tensor *t) {
  const Buf *buf = &bd->k->buf.at[number];
  if (!fits_type(bd->sc, buf, t) || !fits_rank(bd->sc, buf, t) || !fits_layout(bd->sc, buf, t))
    return;
  TensorRef *ref = &bd->b->buf[number];
  ref->at = t->data;
  for (u32 d = 0; d < buf->rank; d++) {
    ref->shape[d] = t->shape[d];
    ref->stride[d] = t->shape[d] <= 1 ? 1 : t->strides[d];
  }
}

static void take_tensors(Binder *bd, const Arguments *given) {
  const Kernel *k = bd->k;
  u32 *which = NEWS(bd->sc, u32, k->buf.n + 1);
  sc_given_tensors(bd->sc, k, given, which);
  for (u32 i = 0; i < k->buf.n; i++)
    if (which[i] != SC_NONE) take_tensor(bd, i, &given->tensor[which[i]]);
}

// ---- dimensions out of shapes

// Binds the one unknown dimension of x so that x == want, through + - and multiplication by what is
// known: `i32[B + 1]` says what B is. False: nothing could be bound here.
static bool solve(Binder *bd, Xid x, i64 want, u32 from) {
  for (;;) {
    const Expr *e = &bd->k->expr.at[x];
    if (e->op == X_DIM) {
      if (bd->dim_known[e->ref] || want < 0) return false;
      bd->dim_known[e->ref] = true;
      bd->b->dim[e->ref] = want;
      bd->dim_from[e->ref] = from;
      bd->stale = true;
      return true;
    }
    if (sc_xop[e->op].arity != 2) return false;
    if (bd->stale) evaluate(bd);
    SclValue a = bd->value[e->a], b = bd->value[e->b];
    if (a.known == b.known) return false;
    i64 c = a.known ? a.i : b.i;
    bool overflow;
    switch (e->op) {
      case X_ADD: overflow = __builtin_sub_overflow(want, c, &want); break;
      case X_SUB:
        overflow = a.known ? __builtin_sub_overflow(c, want, &want)
                           : __builtin_add_overflow(want, c, &want);
        break;
      case X_MUL:
        overflow = c <= 0 || want % c != 0;
        if (!overflow) want /= c;
        break;
      default: return false;
    }
    if (overflow) return false;
    x = a.known ? e->b : e->a;
  }
}

static void bind_dims(Binder *bd) {
  const Kernel *k = bd->k;
  for (bool again = true; again;) {
    again = false;
    for (u32 i = 0; i < k->buf.n; i++) {
      if (!sc_is_argument(&k->buf.at[i])) continue;
      for (u32 d = 0; d < k->buf.at[i].rank; d++) {
        again |= solve(bd, k->buf.at[i].dim[d], bd->b->buf[i].shape[d], i);
      }
    }
  }
  if (bd->stale) evaluate(bd);
  for (u32 i = 0; i < k->dim.n; i++) {
    if (bd->dim_known[i]) continue;
    sc_report(bd->sc, D_T_SHAPE, k->dim.at[i].span, "no tensor's shape says what '%s' is",
              k->dim.at[i].name);
  }
}

// Adds "B = 2, H = 3" for the dimensions and scalars that x depends on.
static void put_values(const Binder *bd, Str *out, Xid root) {
  const Kernel *k = bd->k;
  bool *used = NEWS(bd->sc, bool, root + 1), first = true;
  used[root] = true;
  for (Xid x = root; x > 0; x--) {  // operands have smaller numbers
    const Expr *e = &k->expr.at[x];
    const Xid arg[] = {e->a, e->b, e->c};
    if (!used[x]) continue;
    for (u32 i = 0; i < sc_xop[e->op].arity; i++) {
      if (arg[i] < x) used[arg[i]] = true;
    }
  }
  for (Xid x = 1; x <= root; x++) {
    const Expr *e = &k->expr.at[x];
    if (!used[x] || (e->op != X_DIM && e->op != X_ARG)) continue;
    if (!first) str_puts(out, ", ");
    first = false;
    const Arg *scalar = e->op == X_ARG ? &k->arg.at[e->ref] : NULL;
    str_printf(out, "%s = ", scalar ? scalar->name : k->dim.at[e->ref].name);
    if (scalar && scalar->elem != EL_I32) str_real(out, bd->b->arg[e->ref]);
    else
      str_printf(out, "%lld",
                 scalar ? (long long)bd->b->arg[e->ref] : (long long)bd->b->dim[e->ref]);
  }
}

// The dimension that x names, or that is the only one bound from another tensor in it: where its
// value is from.
static void note_origin(const Binder *bd, Diag *report, Xid x, u32 not_here) {
  const Expr *e = &bd->k->expr.at[x];
  if (e->op != X_DIM) {
    Str s = {.sc = bd->sc};
    put_values(bd, &s, x);
    if (s.n) sc_help(bd->sc, report, "%s", s.at);
    return;
  }
  u32 from = bd->dim_from[e->ref];
  if (from == SC_NONE || from == not_here) return;
  sc_note(bd->sc, report, bd->k->buf.at[from].span, "%s = %lld comes from '%s'",
          bd->k->dim.at[e->ref].name, (long long)bd->b->dim[e->ref], bd->k->buf.at[from].name);
}

// A param of the problem that may be the extent, and may have the value that the tensor has.
static void help_param(const Binder *bd, Diag *report, i64 is, i64 got) {
  for (u32 i = 0; i < bd->k->param.n; i++) {
    const Param *p = &bd->k->param.at[i];
    bool fits = !p->domain.n;
    if (!p->problem || p->value.kind != VAL_INT || p->value.num.i != is) continue;
    for (u32 j = 0; j < p->domain.n; j++) fits |= p->domain.at[j].num.i == got;
    if (!fits) continue;
    sc_help(bd->sc, report, "the param %s is %lld, too: if it is this extent, let %s = %lld",
            p->name, (long long)is, p->name, (long long)got);
    return;
  }
}

static void check_shape(const Binder *bd, u32 number) {
  const Kernel *k = bd->k;
  const Buf *buf = &k->buf.at[number];
  for (u32 d = 0; d < buf->rank; d++) {
    SclValue want = bd->value[buf->dim[d]];
    i64 got = bd->b->buf[number].shape[d];
    if (want.known && want.i == got) continue;
    Str dim = {.sc = bd->sc};
    sc_print_infix(&dim, k, buf->dim[d]);
    if (!want.known) {
      sc_report(bd->sc, D_T_SHAPE, buf->span,
                "dimension %u of tensor '%s', %s, has no 64-bit value", d, buf->name, dim.at);
      continue;
    }
    bool constant = k->expr.at[buf->dim[d]].op == X_INT;
    Diag *r = constant
                  ? sc_report(bd->sc, D_T_SHAPE, buf->span,
                              "tensor '%s' has extent %lld in dimension %u, where %lld is declared",
                              buf->name, (long long)got, d, (long long)want.i)
                  : sc_report(bd->sc, D_T_SHAPE, buf->span,
                              "tensor '%s' has extent %lld in dimension %u, but %s is %lld",
                              buf->name, (long long)got, d, dim.at, (long long)want.i);
    note_origin(bd, r, buf->dim[d], number);
    if (constant) help_param(bd, r, want.i, got);
  }
}

// ---- scalars

static void take_scalar(Binder *bd, u32 number, double v) {
  const Arg *arg = &bd->k->arg.at[number];
  if (arg->elem == EL_I32 && (v != floor(v) || v < INT32_MIN || v > INT32_MAX)) {
    Str given = {.sc = bd->sc};
    str_real(&given, v);
    sc_report(bd->sc, D_T_SCALAR, arg->span, "scalar '%s' is an i32, but %s is given", arg->name,
              given.at);
    v = 0;
  }
  bd->b->arg[number] = arg->elem == EL_I32 ? v : (double)(float)v;
  bd->arg_known[number] = true;
}

static void take_scalars(Binder *bd, const Arguments *given) {
  const Kernel *k = bd->k;
  double *value = NEWS(bd->sc, double, k->arg.n + 1);
  sc_given_scalars(bd->sc, k, given, value);
  for (u32 i = 0; i < k->arg.n; i++)
    if (!isnan(value[i])) take_scalar(bd, i, value[i]);
}

// Defaults may use dimensions and the scalars declared before.
static void default_scalars(Binder *bd) {
  const Kernel *k = bd->k;
  for (u32 a = 0; a < k->arg.n; a++) {
    const Arg *arg = &k->arg.at[a];
    if (bd->arg_known[a]) continue;
    if (!arg->init) {
      sc_report(bd->sc, D_T_MISSING, arg->span, "scalar '%s' is not given, and has no default",
                arg->name);
      continue;
    }
    SclValue v = bd->value[arg->init];
    if (!v.known) {
      sc_report(bd->sc, D_T_SCALAR, arg->span, "the default of scalar '%s' has no value here",
                arg->name);
      continue;
    }
    take_scalar(bd, a, k->expr.at[arg->init].ty == TY_REAL ? v.f : (double)v.i);
    evaluate(bd);
  }
}

// ---- the whole

static void check_requires(const Binder *bd) {
  const Kernel *k = bd->k;
  for (u32 i = 0; i < k->require.n; i++) {
    const Require *q = &k->require.at[i];
    SclValue v = bd->value[q->cond];
    if (v.known && v.i) continue;
    Str s = {.sc = bd->sc};
    put_values(bd, &s, q->cond);
    sc_report(bd->sc, D_T_REQUIRE, q->span, "'%s' requires what %s%s%s", k->name,
              v.known ? "does not hold here" : "cannot be evaluated here", s.n ? ": " : "",
              s.n ? s.at : "");
  }
}

// Tiles are numbered by sections that are at least 1 wide.
static void check_sections(const Binder *bd) {
  for (u32 i = 0; i < bd->k->axis.n; i++) {
    const Axis *x = &bd->k->axis.at[i];
    if (x->section && bd->value[x->section].i < 1)
      sc_report(bd->sc, D_T_RANGE, x->span, "the sections of axis '%s' are %lld wide here", x->name,
                (long long)bd->value[x->section].i);
  }
}

// Workspaces are contiguous but for their rows, which start at multiples of 16 bytes.
static void shape_workspace(Binder *bd, u32 number) {
  const Buf *buf = &bd->k->buf.at[number];
  TensorRef *ref = &bd->b->buf[number];
  i64 step = 1, unit = 16 / sc_elem[buf->elem].bytes;
  for (u32 d = buf->rank; d-- > 0;) {
    SclValue v = bd->value[buf->dim[d]];
    i64 padded = 0;
    bool bad = !v.known || v.i < 0 || __builtin_add_overflow(v.i, unit - 1, &padded);
    padded = d + 1u == buf->rank ? padded / unit * unit : v.i;
    ref->shape[d] = v.i;
    ref->stride[d] = step;
    if (bad || __builtin_mul_overflow(step, padded, &step) || step > INT64_MAX / 64) {
      sc_report(bd->sc, D_T_SHAPE, buf->span, "workspace '%s' has no size here", buf->name);
      return;
    }
  }
}

static Binding *new_binding(Sc *sc, const Kernel *k) {
  Binding *b = NEW(sc, Binding);
  b->k = k;
  b->dim = NEWS(sc, i64, k->dim.n + 1);
  b->arg = NEWS(sc, double, k->arg.n + 1);
  b->buf = NEWS(sc, TensorRef, k->buf.n + 1);
  return b;
}

static Binder new_binder(Sc *sc, const Kernel *k) {
  Binder bd = {.sc = sc, .k = k, .b = new_binding(sc, k)};
  bd.dim_known = NEWS(sc, bool, k->dim.n + 1);
  bd.arg_known = NEWS(sc, bool, k->arg.n + 1);
  bd.dim_from = NEWS(sc, u32, k->dim.n + 1);
  bd.value = NEWS(sc, SclValue, k->expr.n + 1);
  for (u32 i = 0; i < k->dim.n; i++) bd.dim_from[i] = SC_NONE;
  return bd;
}

Binding *sc_bind_tensors(Sc *sc, const Kernel *k, const Arguments *given) {
  u32 before = sc->errors;
  Binder bd = new_binder(sc, k);
  take_tensors(&bd, given);
  take_scalars(&bd, given);
  if (sc->errors != before) return NULL;
  evaluate(&bd);
  bind_dims(&bd);
  if (sc->errors != before) return NULL;
  default_scalars(&bd);
  for (u32 i = 0; i < k->buf.n; i++) {
    if (sc_is_argument(&k->buf.at[i])) check_shape(&bd, i);
  }
  if (sc->errors != before) return NULL;
  for (u32 i = 0; i < k->buf.n; i++) {
    if (k->buf.at[i].workspace) shape_workspace(&bd, i);
  }
  check_requires(&bd);
  check_sections(&bd);
  return sc->errors == before ? bd.b : NULL;
}

double sc_element_bytes(const Binding *b, u32 buf) {
  const Buf *of = &b->k->buf.at[buf];
  double n = sc_elem[of->elem].bytes;
  for (u32 d = 0; d < of->rank; d++) n *= (double)b->buf[buf].shape[d];
  return n;
}

Binding *sc_bind_launch(Sc *sc, const Binding *b, const Launch *l) {
  u32 before = sc->errors;
  const Kernel *k = l->kernel;
  Binder bd = new_binder(sc, k);
  for (u32 i = 0; i < k->dim.n; i++) {
    bd.b->dim[i] = b->dim[l->dim[i]];
    bd.dim_known[i] = true;
  }
  for (u32 i = 0; i < k->arg.n; i++) {
    if (l->arg[i] == SC_NONE) continue;
    bd.b->arg[i] = b->arg[l->arg[i]];
    bd.arg_known[i] = true;
  }
  evaluate(&bd);
  default_scalars(&bd);
  for (u32 i = 0; i < k->buf.n; i++) {
    if (k->buf.at[i].space == SP_TENSOR && l->tensor[i] != SC_NONE)
      bd.b->buf[i] = b->buf[l->tensor[i]];
  }
  for (u32 i = 0; i < k->buf.n; i++) {
    if (k->buf.at[i].space == SP_TENSOR) check_shape(&bd, i);
  }
  check_requires(&bd);
  check_sections(&bd);
  return sc->errors == before ? bd.b : NULL;
}

size_t sc_tensor_bytes(const Buf *tensor, const TensorRef *at) {
  return sc_storage(&(Extent){at->shape, at->stride, tensor->rank}) * sc_elem[tensor->elem].bytes;
}
