// expr.c - expressions as CUDA C. In: an expression, and the element for which it is written, if it
// depends on one. Out: its text. Integers have 32 bits in kernels: before each launch the launcher
// checks, with the actual dimensions, that no integer of the schedule leaves that range. Reals are
// f32; exp, exp2, log and log2 are approximated by the hardware (exp2: ex2.approx.ftz, PTX
// ISA 9.0).
//
// Called by the files of statements; calls tile.c for elements, and name.c.
#include "compiler/emit/emit.h"

#include <math.h>
#include <string.h>

// Reports that the text has become too long: a value without a name from share.c is written out at
// each use.
static void too_long(Cuda *c) {
  Diag *d = sc_report(c->sc, D_P_LIMIT, c->at,
                      "the code for this would be longer than %d MiB: what may divide by zero is "
                      "written out wherever it is used",
                      CU_MAX_TEXT >> 20);
  sc_help(c->sc, d, "say that what divides is positive: require … > 0");
  sc_unwind(c->sc, SCHEDC_ELIMIT);
}

const char *cu_text(Cuda *c, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  const char *s = sc_vprintf(c->sc, fmt, ap);
  va_end(ap);
  c->written += strlen(s);
  if (c->written > CU_MAX_TEXT) too_long(c);
  return s;
}

const char *cu_paren(Cuda *c, Txt t, int prec) {
  return t.prec >= prec ? t.s : cu_text(c, "(%s)", t.s);
}

Txt cu_int(Cuda *c, i64 n) {
  return (Txt){cu_text(c, "%lld", (long long)n), n < 0 ? P_UNARY : P_NAME, true, n};
}

bool cu_is(Txt t, i64 n) { return t.known && t.value == n; }

Txt cu_sum(Cuda *c, Txt a, Txt b) {
  return cu_is(b, 0) ? a : cu_is(a, 0) ? b : cu_binary(c, X_ADD, true, a, b);
}

Txt cu_uniform(Cuda *c, Xid x) { return x ? cu_expr(c, NULL, x) : cu_int(c, 0); }

const char *cu_less(Cuda *c, Xid x, i64 n) {
  const Expr *e = &c->k->expr.at[x];
  i64 v;
  if (!x || e->op == X_INT) return cu_text(c, "%lld", (long long)((x ? e->num.i : 0) - n));
  if (e->op == X_SUB && !c->xname[x] && x_const_int(c->k, e->b, &v) && v > 0)
    return cu_less(c, e->a, n + v);
  return cu_text(c, "%s - %lld", cu_paren(c, cu_expr(c, NULL, x), P_ADD), (long long)n);
}

const char *cu_ctype(const Cuda *c, Xid x) {
  u8 ty = c->k->expr.at[x].ty;
  return ty == TY_REAL ? "float" : ty == TY_INT ? "int" : "bool";
}

static const char *real_text(Cuda *c, double v) {
  const float f = (float)v;
  if (isinf(f)) return f > 0 ? "SC_INF" : "-SC_INF";
  Str s = {.sc = c->sc};
  str_float(&s, f);
  return cu_text(c, "%sf", s.at);
}

static Txt call1(Cuda *c, const char *f, Txt a) {
  return (Txt){cu_text(c, "%s(%s)", f, a.s), P_ATOM};
}
static Txt call2(Cuda *c, const char *f, Txt a, Txt b) {
  return (Txt){cu_text(c, "%s(%s, %s)", f, a.s, b.s), P_ATOM};
}
static Txt infix(Cuda *c, Txt a, const char *op, Txt b, int prec) {
  // The right operand is put in parentheses at equal precedence: a - (b - c).
  return (Txt){cu_text(c, "%s %s %s", cu_paren(c, a, prec), op, cu_paren(c, b, prec + 1)),
               (u8)prec};
}

static bool literal(Txt t) {
  return (*t.s >= '0' && *t.s <= '9') || (*t.s == '-' && t.s[1] >= '0' && t.s[1] <= '9');
}

static const char *text_of(ExprOp op, bool integer) {
  return integer ? sc_xop[op].c_int : sc_xop[op].c;
}

static Txt unary(Cuda *c, ExprOp op, const char *text, Txt a) {
  if (sc_is_function(text)) return call1(c, text, a);
  return (Txt){cu_text(c, "%s%s", text, cu_paren(c, a, op == X_NEG ? P_ATOM : P_UNARY)), P_UNARY};
}

Txt cu_binary(Cuda *c, ExprOp op, bool integer, Txt a, Txt b) {
  static const u8 precedence[] = {[BIND_OR] = P_OR, [BIND_AND] = P_AND, [BIND_EQ] = P_EQ,
                                  [BIND_LT] = P_LT, [BIND_SUM] = P_ADD, [BIND_TERM] = P_MUL};
  const char *text = text_of(op, integer);
  if (sc_is_function(text)) return call2(c, text, a, b);
  if (op == X_LT && literal(a)) return infix(c, b, ">", a, P_LT);
  if (op == X_LE && literal(a)) return infix(c, b, ">=", a, P_LT);
  if (op == X_ADD && integer)  // a + (b - c) is a + b - c
    return (Txt){cu_text(c, "%s + %s", cu_paren(c, a, P_ADD), cu_paren(c, b, P_ADD)), P_ADD};
  return infix(c, a, text, b, precedence[sc_xop[op].binds]);
}

// Is it at least 0, wherever it is evaluated?
static bool nonneg(const Cuda *c, Xid x) {
  if (!c->sign[x]) c->sign[x] = sc_fact_nonneg(c->always, x) ? 1 : -1;
  return c->sign[x] > 0;
}

// May the value be any of 32 bits? Those that are made of elements may, as no launch looks at them.
// What is added to others, up to ROOM, stays within 32 bits (launchrange.c).
bool cu_any_int(const Cuda *c, Xid x) { return c->k->expr.at[x].deps & (DEP_FETCH | DEP_TILE); }
enum { ROOM = 1 << 16 };

Facts *cu_here(Cuda *c) {
  sc_facts_at(c->here, &c->k->role.at[c->r].code, c->pc);
  return c->here;
}

// Is it a quotient, of which not all that holds everywhere says that its divisor is positive?
bool cu_may_divide_by_0(Cuda *c, const Expr *e) {
  return x_divides(e->op) && !sc_fact_less(c->always, 0, e->b);
}

// Rounded up, of numbers that are not negative, by adding to the dividend: but not what may be
// large, as the sum is no integer of the schedule, and no launch looks at it.
static Txt quotient(Cuda *c, const Expr *e, Txt a, Txt b) {
  bool plain = nonneg(c, e->a) && nonneg(c, e->b), room = !cu_any_int(c, e->a);
  i64 n;
  if (c->unasked && cu_may_divide_by_0(c, e) && !sc_fact_less(cu_here(c), 0, e->b))
    b = call1(c, "sc_nonzero", b);
  if (plain && room && e->op == X_CDIV && x_const_int(c->k, e->b, &n) && n <= ROOM)
    return infix(c, infix(c, a, "+", cu_int(c, n - 1), P_ADD), "/", b, P_MUL);
  if (plain && e->op != X_CDIV) return infix(c, a, sc_xop[e->op].text, b, P_MUL);
  return call2(c, sc_xop[e->op].c_int, a, b);
}

const char *cu_axis_name(Cuda *c, u32 axis) {
  return cu_text(c, "%s_tile", c->k->axis.at[axis].name);
}

// A stride that a role keeps in a variable: `args` lies in memory, which NVRTC takes each wait to
// change, so that it would multiply by args.X_stride[d] again in each round of a loop.
const char *cu_stride_name(Cuda *c, u32 buf, u32 dim) {
  return cu_text(c, "%s_stride_%u", c->name[buf], dim);
}

const char *cu_axis(Cuda *c, u32 axis) { return cu_text(c, "$%s", cu_axis_name(c, axis)); }

Txt cu_clusters(Cuda *c, const Axis *x) {
  Txt e = cu_expr(c, NULL, x->extent);
  if (x->cluster == 1) return e;
  return (Txt){cu_text(c, "(%s + %u) / %u", cu_paren(c, e, P_ADD), x->cluster - 1, x->cluster),
               P_MUL};
}

// (Operands have smaller numbers.)
const bool *cu_find_compared(Sc *sc, const Kernel *k) {
  bool *compared = NEWS(sc, bool, k->expr.n + 1);
  Xid operand[SC_MAX_OPERANDS];
  for (Xid x = k->expr.n; x-- > 1;) {
    if (!x_uniform(k, x) || !(compared[x] || k->expr.at[x].ty == TY_BOOL)) continue;
    for (u32 i = x_operands(k, x, operand); i-- > 0;) compared[operand[i]] = true;
  }
  return compared;
}

// A sum of reals, or a difference, of which a truth is made. All roles that ask for it must get the
// same answer. (The C compiler makes one operation of a product and a sum, or does not, by what
// else each role does with the product.)
static Txt compared_sum(Cuda *c, ExprOp op, Txt a, Txt b) {
  return call2(c, "sc_plus", a, op == X_SUB ? unary(c, X_NEG, "-", b) : b);
}

static Txt leaf(Cuda *c, const At *at, const Expr *e) {
  const Kernel *k = c->k;
  switch (e->op) {
    case X_INT: return cu_int(c, e->num.i);
    case X_REAL: {
      const char *s = real_text(c, e->num.f);
      return (Txt){s, *s == '-' ? P_UNARY : P_ATOM};
    }
    case X_BOOL: return (Txt){e->num.i ? "true" : "false", P_ATOM};
    case X_DIM:
      return (Txt){cu_text(c, "args.%s", sc_cuda_name(c->sc, k->dim.at[e->ref].name)), P_NAME};
    case X_ARG:
      return (Txt){cu_text(c, "args.%s", sc_cuda_name(c->sc, k->arg.at[e->ref].name)), P_NAME};
    case X_AXIS: return (Txt){cu_axis(c, e->ref), P_NAME};
    case X_INST: return (Txt){"$instance", P_NAME};
    case X_LOOP: return (Txt){c->loop[e->ref], P_NAME};
    case X_IDX: return (int)e->ref == at->row ? cu_row(c, at) : cu_col(c, at);
    default: return (Txt){cu_load(c, at, e->ref), P_ATOM};
  }
}

// The text for a value that was computed before the loop over elements, or at its head.
static Txt hoisted(Cuda *c, const At *at, const Hoist *h) {
  if (h->kind == HOIST_VECTOR2) {
    return at->odd < 0 ? (Txt){cu_text(c, "(e & 1 ? %s.y : %s.x)", h->name, h->name), P_ATOM}
                       : (Txt){cu_text(c, "%s.%c", h->name, at->odd ? 'y' : 'x'), P_ATOM};
  }
  if (h->kind == HOIST_VECTOR4)
    return (Txt){cu_text(c, at->odd > 0 ? "%s[(%s) & 3]" : "%s[%s & 3]", h->name, at->e), P_ATOM};
  const char *s = h->by_row ? cu_text(c, "%s[%s]", h->name, at->r.s) : h->name;
  if (h->kind == HOIST_BELOW) return (Txt){cu_text(c, "%s < %s", cu_col_step(c, at), s), P_LT};
  if (h->kind == HOIST_ABOVE) return (Txt){cu_text(c, "%s > %s", cu_col_step(c, at), s), P_LT};
  return (Txt){s, P_ATOM};
}

Txt cu_expr(Cuda *c, const At *at, Xid x) {
  const Expr *e = &c->k->expr.at[x];
  const Hoist *h = &c->hoist[x];
  if (at && h->name && h->statement == c->statement) return hoisted(c, at, h);
  if (c->xname[x]) return (Txt){c->xname[x], P_NAME};
  if (at && at->element && c->use[x].element == at->element) return (Txt){c->use[x].name, P_NAME};
  u8 arity = sc_xop[e->op].arity;
  if (arity == 0) return leaf(c, at, e);
  Txt a = cu_expr(c, at, e->a), b = {0}, d = {0};
  if (arity > 1) b = cu_expr(c, at, e->b);
  if (arity > 2) d = cu_expr(c, at, e->c);
  bool integer = c->k->expr.at[e->a].ty == TY_INT;
  switch (e->op) {
    case X_TOREAL: return unary(c, e->op, "(float)", a);
    case X_IDIV:
    case X_MOD:
    case X_CDIV: return quotient(c, e, a, b);
    case X_WHERE:
      return (Txt){cu_text(c, "%s ? %s : %s", cu_paren(c, a, P_COND + 1), cu_paren(c, b, P_COND),
                           cu_paren(c, d, P_COND)),
                   P_COND};
    default:
      if (!integer && (e->op == X_ADD || e->op == X_SUB) && c->compared[x])
        return compared_sum(c, e->op, a, b);
      if (arity == 1) return unary(c, e->op, text_of(e->op, integer), a);
      return cu_binary(c, e->op, integer, a, b);
  }
}
