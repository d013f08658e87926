// round.c - the types of a specification's intermediates, to which its second evaluation (`pt`,
// runtime/spec/tolerance.c) rounds them. In: the equations. Out: an element type for each, and a
// warning where that rounding makes the tolerance so wide that it is useless.
//
// What rounding to these types costs in `pt` is an error that the kernel is allowed, too. It
// becomes useless where a sum feeds an exponential: if the sum is large, rounding it changes it by
// tenths or whole units, which the exponential turns into factors. A softmax is no such case: it
// subtracts the largest of the same values first, so that the weights stay between 0 and 1, and
// what rounding the values costs is what FlashAttention's authors allow.
//
// Called by map.c; calls declare.c for a type that is stated.
#include "compiler/lower/lower.h"

#include <string.h>

Elem low_narrow_type(const Kernel *k) {
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *b = &k->buf.at[i];
    if (b->space == SP_TENSOR && b->dir & F_IN && sc_is_narrow(b->elem)) return b->elem;
  }
  return EL_F32;
}

bool low_value_type(Low *l, const Node *type, Xid root, u8 *elem) {
  // Integers are not rounded: they say which elements belong together.
  *elem = low_at(l, root)->op == X_TOREAL ? EL_F32 : l->narrow;
  if (!type) return true;
  Elem stated;
  if (!low_element_type(l, type, &stated)) return false;
  *elem = (u8)stated;
  if (*elem != EL_I32) return true;
  Diag *d = low_error(l, D_R9_TYPE, type->span, "an intermediate holds reals, not %s",
                      sc_elem[*elem].text);
  sc_help(l->sc, d, "leave the type out: what is an integer is never rounded");
  return false;
}

// ---- sums that feed an exponential

// How the value of an equation feeds another: as it is, or as the largest or smallest of many.
enum { DIRECT = 1, EXTREME = 2 };

typedef struct Feeds {
  Low *l;
  u32 eqs;
  u8 *how;       // [e * eqs + d]: how equation d feeds the value of equation e
  bool *sums;    // by equation: its value comes of a sum
  u32 *definer;  // by buf: the latest equation so far that defines it, or SC_NONE
  u32 *seen;     // [3 * x + kind of visit]: the scan that has been there
  u32 scan;
} Feeds;

static const Map *equation(const Feeds *f, u32 e) { return &f->l->k->map.at[f->l->k->spec.at[e]]; }

static bool is_new(Feeds *f, Xid x, u32 visit) {
  u32 *seen = &f->seen[3 * x + visit];
  bool new = *seen != f->scan;
  *seen = f->scan;
  return new;
}

// Equation d, and all that feeds it, feeds the value of which `to` tells.
static void add_read(const Feeds *f, u32 d, u8 how, u8 *to) {
  if (d == SC_NONE || to[d] & how) return;
  to[d] |= how;
  for (u32 i = 0; i < f->eqs; i++) {
    u8 through = f->how[(size_t)d * f->eqs + i];
    to[i] |= how == EXTREME && through ? EXTREME : through;
  }
}

// What the value of x comes of, for `to`; *sums: a sum is among it. Nothing is followed where an
// error of the operand stays small: logarithms and bounded functions, comparisons, integers; nor
// through exponentials, which are looked at by themselves.
static void follow(Feeds *f, Xid x, u8 how, u8 *to, bool *sums) {
  const Expr *p = low_at(f->l, x);
  if (!x || p->ty != TY_REAL || !is_new(f, x, how)) return;
  if (sc_xop[p->op].error != ERROR_PASSES) return;
  u32 d = p->op == X_LOAD ? f->definer[f->l->k->view.at[p->ref].buf] : SC_NONE;
  switch (p->op) {
    case X_LOAD:
      add_read(f, d, how, to);
      *sums |= how == DIRECT && d != SC_NONE && f->sums[d];
      return;
    case X_RMAX:
    case X_RMIN: follow(f, p->a, EXTREME, to, sums); return;
    case X_SUM: *sums |= how == DIRECT; break;
    default: break;
  }
  const Xid operand[] = {p->a, p->b, p->c};
  for (u32 i = 0; i < sc_xop[p->op].arity; i++) follow(f, operand[i], how, to, sums);
}

static bool is_exponential(const Low *l, Xid x) {
  return sc_xop[low_at(l, x)->op].error == ERROR_GROWS;
}

// In 1 / (1 + exp z), the exponential; 0: x is no such quotient. The logistic function is bounded,
// and so is its slope.
static Xid logistic(const Low *l, Xid x) {
  const Expr *p = low_at(l, x), *below = low_at(l, p->b);
  if (p->op != X_DIV || below->op != X_ADD) return 0;
  Xid one = is_exponential(l, below->a) ? below->b : below->a,
      e = is_exponential(l, below->a) ? below->a : below->b;
  return is_exponential(l, e) && low_at(l, one)->op == X_REAL && low_at(l, one)->num.f > 0 ? e : 0;
}

// What the exponentials in x are taken of.
static void find_exponentials(Feeds *f, Xid x, u8 *to) {
  bool sums = false;
  if (!x || !is_new(f, x, 0)) return;
  const Expr *p = low_at(f->l, x);
  if (is_exponential(f->l, x)) follow(f, p->a, DIRECT, to, &sums);
  Xid harmless = logistic(f->l, x);
  if (harmless) {
    find_exponentials(f, p->a, to);
    find_exponentials(f, low_at(f->l, harmless)->a, to);
    return;
  }
  const Xid operand[] = {p->a, p->b, p->c};
  for (u32 i = 0; i < sc_xop[p->op].arity; i++) find_exponentials(f, operand[i], to);
}

static bool is_stated(const Low *l, u32 buf) {
  for (u32 i = 0; i < l->stated.n; i++)
    if (l->stated.at[i] == buf) return true;
  return false;
}

// Equation e takes an exponential of what equation d defines.
static void warn(const Feeds *f, u32 d, u32 e) {
  Low *l = f->l;
  u32 buf = l->k->view.at[equation(f, d)->dst].buf;
  const Buf *b = &l->k->buf.at[buf];
  if (!f->sums[d] || b->space != SP_SPEC || !sc_is_narrow(b->elem) || is_stated(l, buf)) return;
  const char *narrow = sc_elem[b->elem].text;
  Diag *w = low_error(l, D_R9_EXPONENT, b->span,
                      "the tolerance counts the sum '%s' as rounded to %s, and it feeds an "
                      "exponential",
                      b->name, narrow);
  sc_note(l->sc, w, equation(f, e)->span, "an exponential of it is taken here");
  sc_help(l->sc, w,
          "say what the kernel keeps it in: '%s : f32[…] = …', or "
          "'%s : %s[…] = …'",
          b->name, b->name, narrow);
}

// One equation more, after all before it.
static void read_equation(Feeds *f, u32 e, u8 *fed) {
  const Map *m = equation(f, e);
  f->scan++;
  follow(f, m->root, DIRECT, &f->how[(size_t)e * f->eqs], &f->sums[e]);
  f->scan++;
  memset(fed, 0, f->eqs);
  find_exponentials(f, m->root, fed);
  for (u32 d = 0; d < e; d++)
    if (fed[d] == DIRECT) warn(f, d, e);
  f->definer[f->l->k->view.at[m->dst].buf] = e;
}

// Without one there is nothing to warn of, and no table of pairs is made.
static bool has_exponentials(const Low *l) {
  for (Xid x = 1; x < l->k->expr.n; x++)
    if (is_exponential(l, x)) return true;
  return false;
}

void low_warn_exponents(Low *l) {
  u32 n = l->k->spec.n;
  if (!has_exponentials(l)) return;
  Feeds f = {.l = l,
             .eqs = n,
             .how = NEWS(l->sc, u8, (size_t)n * n),
             .sums = NEWS(l->sc, bool, n),
             .definer = NEWS(l->sc, u32, l->k->buf.n),
             .seen = NEWS(l->sc, u32, (size_t)3 * l->k->expr.n)};
  u8 *fed = NEWS(l->sc, u8, n);
  for (u32 b = 0; b < l->k->buf.n; b++) f.definer[b] = SC_NONE;
  for (u32 e = 0; e < n; e++) read_equation(&f, e, fed);
}
