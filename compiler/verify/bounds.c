// bounds.c - writes what the facts say of a kernel's values as bounds of a zone. In: the values
// that the conditions of a protocol compare. Out: for each two of them a lower bound of their
// difference, as large as is easy to show. It is worked out once for all attempts at a proof.
#include "compiler/verify/protocol.h"

enum { NEAR = 3 };  // bounds are looked for so far from 0

static bool at_least(Symbolic *m, const Lin *x, i64 c) {
  Lin more = *x;
  more.c -= c;
  return sc_form_nonneg(m->f, &more);
}

// The largest c for which x >= c is easy to show.
static i64 least(Symbolic *m, const Lin *x) {
  i64 c = sc_form_interval(m->f, x).lo;
  if (c < -1 && at_least(m, x, -1)) c = -1;
  while (c >= -1 && c < NEAR && at_least(m, x, c + 1)) c++;
  return c;
}

// A lower bound of the difference of two values, worked out once for all attempts.
static i64 least_of(Symbolic *m, u32 a, u32 b) {
  Verify *v = m->v;
  for (u32 i = 0; i < v->apart.n; i++)
    if (v->apart.at[i].a == a && v->apart.at[i].b == b) return v->apart.at[i].least;
  Lin x = a ? sc_value_form(m, a) : sc_lin_int(0), y = b ? sc_value_form(m, b) : sc_lin_int(0);
  bool fits = sc_lin_add(&x, &y, -1) && sc_know(m->f, &x);
  i64 c = fits ? least(m, &x) : -SC_FAR;
  PUSH(m->sc, &v->apart, ((Apart){a, b, c}));
  return c;
}

// What the number that a family divides is at least, says more of its quotient in each case: of
// n = 2 q - 1, which is the number's case in which q is (n + 1) / 2, n >= 0 says that q >= 1.
static void bound_family(Symbolic *m, const Family *f, u32 rest) {
  Lin x = *f->of;
  x.c = f->at;
  i64 c = sc_know(m->f, &x) ? least(m, &x) : -SC_FAR;
  i64 least_q = -sc_floordiv(f->unit * rest + f->unit - 1 - c, f->unit * f->parts);
  for (u32 i = 0; i < m->room; i++)
    if (m->value[i] == f->q && c > -ZONE_NONE)
      zone_learn(&m->zone, 0, symbolic_first_value(m) + i, -least_q);
}

void sc_symbolic_facts(Symbolic *m) {
  u32 rest = m->which;
  for (u32 i = 0; i < m->residues->n; i++) {
    bound_family(m, &m->residues->family[i], rest % m->residues->family[i].parts);
    rest /= m->residues->family[i].parts;
  }
  for (u32 i = 0; i <= m->room; i++) {
    for (u32 j = 0; j <= m->room; j++) {
      if (i == j) continue;
      i64 c = least_of(m, i ? m->value[i - 1] : 0, j ? m->value[j - 1] : 0);  // x_i - x_j >= c
      u32 a = i ? symbolic_first_value(m) + i - 1 : 0, b = j ? symbolic_first_value(m) + j - 1 : 0;
      if (c > -ZONE_NONE) zone_learn(&m->zone, b, a, -c);
    }
  }
}
