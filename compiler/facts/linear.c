// linear.c - linear forms: sums of products of atoms, in canonical form, so that forms which are
// equal as polynomials are equal field by field. A coefficient of more than 60 binary digits is
// refused, so that nothing overflows.
#include "compiler/facts/linear.h"

#include <string.h>

static bool small(i64 v) { return v >= -((i64)1 << 60) && v <= (i64)1 << 60; }

static bool plus(i64 a, i64 b, i64 *out) {
  return !__builtin_add_overflow(a, b, out) && small(*out);
}

static bool times(i64 a, i64 b, i64 *out) {
  return !__builtin_mul_overflow(a, b, out) && small(*out);
}

i64 sc_gcd(i64 a, i64 b) {
  while (b) {
    i64 r = a % b;
    a = b;
    b = r;
  }
  return a < 0 ? -a : a;
}

static int compare(const Term *a, const Term *b) {
  for (u32 i = 0; i < LIN_DEGREE; i++) {
    if (a->atom[i] != b->atom[i]) return a->atom[i] > b->atom[i] ? 1 : -1;
  }
  return 0;
}

void sc_lin_copy(Lin *to, const Lin *from) {
  to->c = from->c;
  to->n = from->n;
  memmove(to->at, from->at, from->n * sizeof(Term));
}

bool sc_lin_same(const Lin *a, const Lin *b) {
  if (a->c != b->c || a->n != b->n) return false;
  for (u32 i = 0; i < a->n; i++) {
    if (a->at[i].by != b->at[i].by || compare(&a->at[i], &b->at[i])) return false;
  }
  return true;
}

i64 sc_lin_step(const Lin *x) {
  i64 step = 0;
  for (u32 i = 0; i < x->n; i++) step = sc_gcd(step, x->at[i].by);
  return step;
}

static bool add_term(Lin *to, Term t) {
  u32 i = 0;
  while (i < to->n && compare(&to->at[i], &t) > 0) i++;
  if (!t.by) return true;
  if (i < to->n && !compare(&to->at[i], &t)) {
    if (!plus(to->at[i].by, t.by, &to->at[i].by)) return false;
    if (to->at[i].by) return true;
    to->n--;
    memmove(to->at + i, to->at + i + 1, (to->n - i) * sizeof t);
    return true;
  }
  if (to->n == LIN_TERMS) return false;
  memmove(to->at + i + 1, to->at + i, (to->n - i) * sizeof t);
  to->n++;
  to->at[i] = t;
  return true;
}

bool sc_lin_add(Lin *to, const Lin *x, i64 by) {
  i64 c;
  if (!times(x->c, by, &c) || !plus(to->c, c, &to->c)) return false;
  for (u32 i = 0; i < x->n; i++) {
    Term t = x->at[i];
    if (!times(t.by, by, &t.by) || !add_term(to, t)) return false;
  }
  return true;
}

// The atoms of both, merged.
static bool multiply(const Term *a, const Term *b, Term *out) {
  u32 i = 0, j = 0;
  if (!times(a->by, b->by, &out->by)) return false;
  for (u32 n = 0; n < LIN_DEGREE; n++) {
    bool first = i < LIN_DEGREE && (j == LIN_DEGREE || a->atom[i] >= b->atom[j]);
    out->atom[n] = first ? a->atom[i++] : b->atom[j++];
  }
  return (i == LIN_DEGREE || !a->atom[i]) && (j == LIN_DEGREE || !b->atom[j]);
}

bool sc_lin_mul(Lin *out, const Lin *a, const Lin *b) {
  *out = sc_lin_int(0);
  if (!sc_lin_add(out, a, b->c)) return false;
  for (u32 j = 0; j < b->n; j++) {
    Term t = b->at[j];
    if (!times(t.by, a->c, &t.by) || !add_term(out, t)) return false;
    for (u32 i = 0; i < a->n; i++) {
      if (!multiply(&a->at[i], &b->at[j], &t) || !add_term(out, t)) return false;
    }
  }
  return true;
}

bool sc_lin_any(const Lin *x, LinIs *is, const void *user) {
  for (u32 i = 0; x && i < x->n; i++)
    for (u32 j = 0; j < LIN_DEGREE && x->at[i].atom[j]; j++)
      if (is(user, x->at[i].atom[j])) return true;
  return false;
}

static bool is_same(const void *atom, u32 other) { return *(const u32 *)atom == other; }

bool sc_lin_mentions(const Lin *x, u32 atom) { return sc_lin_any(x, is_same, &atom); }

// (What is behind a form's terms need not be set.)
static void set_int(Lin *x, i64 c) {
  x->c = c;
  x->n = 0;
}

bool sc_lin_map(const Lin *x, LinOf *of, void *user, Lin *out) {
  Lin term, factor, product;
  set_int(out, x->c);
  for (u32 i = 0; i < x->n; i++) {
    set_int(&term, x->at[i].by);
    for (u32 j = 0; j < LIN_DEGREE && x->at[i].atom[j]; j++) {
      if (!of(user, x->at[i].atom[j], &factor) || !sc_lin_mul(&product, &term, &factor))
        return false;
      sc_lin_copy(&term, &product);
    }
    if (!sc_lin_add(out, &term, 1)) return false;
  }
  return true;
}

typedef struct Replacing {
  u32 atom;
  const Lin *by;
} Replacing;

static bool replaced(void *user, u32 atom, Lin *out) {
  const Replacing *r = user;
  if (atom == r->atom) sc_lin_copy(out, r->by);
  else *out = sc_lin_atom(atom);
  return true;
}

bool sc_lin_replace(Lin *p, u32 atom, const Lin *by) {
  const Lin from = *p;
  return sc_lin_map(&from, replaced, &(Replacing){atom, by}, p);
}
