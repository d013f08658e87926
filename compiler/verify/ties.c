// ties.c - zone variables that say something of each other. In: what is known of some values. Out:
// what follows of others: of a difference from its terms, and of them from it; of a number from its
// quotients, and of them from it.
#include "compiler/verify/protocol.h"

// The zone variable of a value; 0: there is none.
static u32 known_value(const Symbolic *m, u32 atom) {
  for (u32 i = 0; i < m->room; i++)
    if (m->value[i] == atom) return symbolic_first_value(m) + i;
  return 0;
}

// x_i - x_j is at most what x_k - x_l is.
static bool as_little(Zone *z, u32 i, u32 j, u32 k, u32 l) {
  i32 most = z->bound[k * z->n + l];
  return most == ZONE_NONE || zone_learn(z, i, j, most);
}

static bool tie_difference(Symbolic *m, u32 v, const Lin *x) {
  const Term *s = &x->at[0], *t = &x->at[1];
  bool two = x->n == 2 && !s->atom[1] && !t->atom[1] && (s->by == 1 || s->by == -1);
  if (!two || t->by != -s->by) return true;
  u32 a = known_value(m, s->by == 1 ? s->atom[0] : t->atom[0]),
      b = known_value(m, s->by == 1 ? t->atom[0] : s->atom[0]);
  Zone *z = &m->zone;
  return !a || !b ||
         (as_little(z, v, 0, a, b) && as_little(z, 0, v, b, a) && as_little(z, a, b, v, 0) &&
          as_little(z, b, a, 0, v));
}

// q is the quotient of x + c by n: c and n are small, so no sum overflows.
static bool tie_quotient(Zone *z, u32 q, u32 x, i64 c, i64 n) {
  const i32 *bound = z->bound;
  i32 q_most = bound[q * z->n], q_least = bound[q];  // q_least: what -q is at most
  if (q_most != ZONE_NONE && !zone_learn(z, x, 0, n * q_most + n - 1 - c)) return false;
  if (q_least != ZONE_NONE && !zone_learn(z, 0, x, n * q_least + c)) return false;
  i32 x_most = bound[x * z->n], x_least = bound[x];
  if (x_most != ZONE_NONE && !zone_learn(z, q, 0, sc_floordiv(x_most + c, n))) return false;
  return x_least == ZONE_NONE || zone_learn(z, 0, q, -sc_floordiv(c - x_least, n));
}

// Ties a value that is a quotient by a constant to the number that it divides.
static bool tie_to_number(Symbolic *m, u32 v, const Atom *a) {
  bool small = a->op == X_IDIV && !a->b->n && a->b->c > 0 && a->b->c < ZONE_NONE &&
               a->a->c < ZONE_NONE && a->a->c > -ZONE_NONE;
  for (u32 i = 0; i < m->room && small; i++) {
    Lin x = sc_value_form(m, m->value[i]);
    x.c = a->a->c;
    if (sc_lin_same(&x, a->a))
      return tie_quotient(&m->zone, v, symbolic_first_value(m) + i, a->a->c, a->b->c);
  }
  return true;
}

bool sc_symbolic_tie(Symbolic *m) {
  bool ok = true;
  for (u32 i = 0; i < m->room && ok; i++) {
    const Lin x = sc_value_form(m, m->value[i]);
    u32 v = symbolic_first_value(m) + i;
    ok = tie_difference(m, v, &x) && tie_to_number(m, v, &m->f->atom.at[m->value[i]]);
  }
  return ok;
}
