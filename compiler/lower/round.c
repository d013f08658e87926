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

#include <stdlib.h>

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

// An equation whose value is read, and how it feeds what reads it.
typedef struct Feed {
  u32 eq;
  u8 how;
} Feed;
typedef VEC(Feed) FeedList;

typedef struct Feeds {
  Low *l;
  FeedList read;  // by equation, one after the other: what its value is made of
  u32 *read0;     // by equation: its first in `read`; those of the next one end it
  bool *sums;     // by equation: its value comes of a sum
  u32 *definer;   // by buf: the latest equation so far that defines it, or SC_NONE
  u32 *seen;      // [3 * x + kind of visit]: the scan that has been there
  u32 scan;
  FeedList pending;  // what the exponentials at hand are taken of, on the way back
  u8 *fed;           // by equation: how it feeds these exponentials
  VEC(u32) met;      // those of which `fed` is not 0
} Feeds;

static const Map *equation(const Feeds *f, u32 e) { return &f->l->k->map.at[f->l->k->spec.at[e]]; }

static bool is_new(Feeds *f, Xid x, u32 visit) {
  u32 *seen = &f->seen[3 * x + visit];
  bool new = *seen != f->scan;
  *seen = f->scan;
  return new;
}

// Lists what the value of x is made of; *sums: a sum is among it. Nothing is followed where an
// error of the operand stays small: logarithms and bounded functions, comparisons, integers; nor
// through exponentials, which are looked at by themselves.
static void follow(Feeds *f, Xid x, u8 how, FeedList *to, bool *sums) {
  const Expr *p = low_at(f->l, x);
  if (!x || p->ty != TY_REAL || !is_new(f, x, how)) return;
  if (sc_xop[p->op].error != ERROR_PASSES) return;
  u32 d = p->op == X_LOAD ? f->definer[f->l->k->view.at[p->ref].buf] : SC_NONE;
  switch (p->op) {
    case X_LOAD:
      if (d == SC_NONE) return;
      PUSH(f->l->sc, to, ((Feed){d, how}));
      *sums |= how == DIRECT && f->sums[d];
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

// Lists what the exponentials in x are taken of.
static void find_exponentials(Feeds *f, Xid x) {
  bool sums = false;
  if (!x || !is_new(f, x, 0)) return;
  const Expr *p = low_at(f->l, x);
  if (is_exponential(f->l, x)) follow(f, p->a, DIRECT, &f->pending, &sums);
  Xid harmless = logistic(f->l, x);
  if (harmless) {
    find_exponentials(f, p->a);
    find_exponentials(f, low_at(f->l, harmless)->a);
    return;
  }
  const Xid operand[] = {p->a, p->b, p->c};
  for (u32 i = 0; i < sc_xop[p->op].arity; i++) find_exponentials(f, operand[i]);
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

// Walks back from what exponentials are taken of to all that feeds it. What goes through an extreme
// is one from there on.
static void walk_back(Feeds *f) {
  while (f->pending.n) {
    Feed at = f->pending.at[--f->pending.n];
    u8 *fed = &f->fed[at.eq];
    if (*fed & at.how) continue;
    if (!*fed) PUSH(f->l->sc, &f->met, at.eq);
    *fed |= at.how;
    for (u32 i = f->read0[at.eq]; i < f->read0[at.eq + 1]; i++) {
      Feed from = f->read.at[i];
      if (at.how == EXTREME) from.how = EXTREME;
      PUSH(f->l->sc, &f->pending, from);
    }
  }
}

static int by_number(const void *a, const void *b) {
  u32 x = *(const u32 *)a, y = *(const u32 *)b;
  return (x > y) - (x < y);
}

// One equation more, after all before it.
static void read_equation(Feeds *f, u32 e) {
  const Map *m = equation(f, e);
  f->scan++;
  f->read0[e] = f->read.n;
  follow(f, m->root, DIRECT, &f->read, &f->sums[e]);
  f->read0[e + 1] = f->read.n;
  f->scan++;
  find_exponentials(f, m->root);
  walk_back(f);
  if (f->met.n) qsort(f->met.at, f->met.n, sizeof *f->met.at, by_number);
  for (u32 i = 0; i < f->met.n; i++) {
    u8 *fed = &f->fed[f->met.at[i]];
    if (*fed == DIRECT) warn(f, f->met.at[i], e);
    *fed = 0;
  }
  f->met.n = 0;
  f->definer[f->l->k->view.at[m->dst].buf] = e;
}

void low_warn_exponents(Low *l) {
  u32 n = l->k->spec.n;
  Feeds f = {.l = l,
             .read0 = NEWS(l->sc, u32, n + 1),
             .sums = NEWS(l->sc, bool, n),
             .definer = NEWS(l->sc, u32, l->k->buf.n),
             .seen = NEWS(l->sc, u32, (size_t)3 * l->k->expr.n),
             .fed = NEWS(l->sc, u8, n)};
  for (u32 b = 0; b < l->k->buf.n; b++) f.definer[b] = SC_NONE;
  for (u32 e = 0; e < n; e++) read_equation(&f, e);
}
