// residue.c - makes quotients of one number by several divisors comparable. In: the conditions and
// bounds of a protocol. Out: families of quotients. For each remainder r of the number, every
// quotient of a family is a multiple of one variable q plus a constant.
//
// The idea: with n = 2 q + r, n / 2 is q, and a loop to n has two rounds for each round of a loop
// to n / 2, and r more. Each r has a proof of its own. Where a condition asks for the remainder of
// a loop's variable modulo c, the loop's bound must be a multiple of c plus a constant. The
// variable is then c times a zone variable plus a remainder, which is known at any time.
#include "compiler/verify/protocol.h"

#include <string.h>

enum { MEMBERS = 64 };

typedef struct Member {
  Lin of;       // without its constant
  i64 at, div;  // floor((of + at) / div)
} Member;

typedef struct Finder {
  Facts *f;
  const Protocol *p;
  VEC(Member) member;
  VEC(bool) met;  // by atom: forms share them
  u32 *modulus;
} Finder;

// ---- what is compared

static void note(Finder *d, const Lin *of, i64 at, i64 div) {
  Member m = {.at = at, .div = div};
  sc_lin_copy(&m.of, of);
  m.of.c = 0;
  for (u32 i = 0; i < d->member.n; i++) {
    const Member *o = &d->member.at[i];
    if (o->at == at && o->div == div && sc_lin_same(&o->of, &m.of)) return;
  }
  if (d->member.n < MEMBERS) PUSH(d->p->sc, &d->member, m);
}

static bool member_of(Facts *f, u32 atom, Member *m) {
  const Atom *a = &f->atom.at[atom];
  if (a->op == X_IDIV && (a->b->n || a->b->c < 1)) return false;
  if (a->op == X_IDIV) sc_lin_copy(&m->of, a->a);
  else m->of = sc_lin_atom(atom);
  m->at = m->of.c;
  m->of.c = 0;
  m->div = a->op == X_IDIV ? a->b->c : 1;
  return true;
}

static i64 lcm(i64 a, i64 b) { return a / sc_gcd(a, b) * b; }

static void find_in_form(Finder *d, const Lin *x);

// If the atom divides a loop's variable by c, notes that the variable's remainder modulo c must be
// known.
static void find_modulus(Finder *d, const Atom *a) {
  for (u32 i = 0; i < a->a->n && !a->b->n && a->b->c > 0 && a->b->c <= MAX_CASES; i++) {
    const Term *t = &a->a->at[i];
    const Atom *of = &d->f->atom.at[t->atom[0]];
    if (of->op != X_LOOP || t->atom[1]) continue;
    u32 *m = &d->modulus[of->ref];
    i64 n = lcm(*m, a->b->c / sc_gcd(a->b->c, t->by));
    if (n <= MAX_CASES) *m = (u32)n;
  }
}

static void find_in_atom(Finder *d, u32 atom) {
  const Atom a = d->f->atom.at[atom];
  Member m;
  while (d->met.n <= atom) PUSH(d->p->sc, &d->met, false);
  if (d->met.at[atom]) return;
  d->met.at[atom] = true;
  bool inside = a.op == X_MIN || a.op == X_MAX || a.op == X_WHERE || (a.varies && a.op == X_IDIV);
  if (a.op == X_IDIV && a.varies) find_modulus(d, &a);
  if (inside && a.a) find_in_form(d, a.a);
  if (inside && a.b) find_in_form(d, a.b);
  if (!a.varies && a.op != X_LOOP && member_of(d->f, atom, &m)) note(d, &m.of, m.at, m.div);
}

static void find_in_form(Finder *d, const Lin *x) {
  for (u32 i = 0; i < x->n; i++)
    for (u32 j = 0; j < LIN_DEGREE && x->at[i].atom[j]; j++) find_in_atom(d, x->at[i].atom[j]);
}

static void find_in_value(Finder *d, Xid x) {
  Lin known;
  sc_lin_copy(&known, sc_form(d->f, x));
  if (sc_know(d->f, &known)) find_in_form(d, &known);
}

static void find_in_condition(Finder *d, Below *below, Xid x) {
  x_begin(below, 0);
  x_from(below, x);
  for (Xid e; (e = x_next(below));) {
    const Expr *c = &d->p->k->expr.at[e];
    if (c->ty != TY_BOOL) {
      x_skip(below);
      continue;
    }
    if (c->op < X_LT || c->op > X_NE || d->p->k->expr.at[c->a].ty != TY_INT) continue;
    find_in_value(d, c->a);
    find_in_value(d, c->b);
  }
}

// The bound of such a loop must be known modulo the same number: notes its quotient by that.
static void find_bound(Finder *d, const Step *s) {
  Lin x;
  Member m;
  sc_lin_copy(&x, sc_form(d->f, s->y));
  if (d->modulus[s->ref] < 2 || !sc_know(d->f, &x) || x.n != 1 || x.at[0].atom[1]) return;
  if (d->f->atom.at[x.at[0].atom[0]].varies || !member_of(d->f, x.at[0].atom[0], &m)) return;
  note(d, &m.of, m.at, m.div * d->modulus[s->ref]);
}

static void find(Finder *d) {
  Below below = x_below(d->p->sc, d->p->k);
  for (u32 time = 0; time < 2; time++) {
    for (u32 i = 0; i < d->p->process.n; i++) {
      const Script *s = d->p->process.at[i].script;
      for (u32 j = 0; j < s->step.n; j++) {
        const Step *step = &s->step.at[j];
        if (step->kind == STEP_IF && !time) find_in_condition(d, &below, step->x);
        if (step->kind != STEP_ENTER) continue;
        if (time) find_bound(d, step);
        else find_in_value(d, step->x), find_in_value(d, step->y);
      }
    }
  }
}

// ---- families

// Makes the family of all members that divide the same number. False: there is one member alone, or
// there are too many cases.
static bool make(Finder *d, u32 first, bool *used, Family *out) {
  const Member *m = &d->member.at[first];
  i64 unit = m->div, whole = m->div;
  for (u32 i = first; i < d->member.n; i++) {
    const Member *o = &d->member.at[i];
    if (used[i] || !sc_lin_same(&o->of, &m->of)) continue;
    used[i] = true;
    unit = sc_gcd(sc_gcd(unit, o->div), o->at - m->at);
    whole = lcm(whole, o->div);
    if (whole > INT32_MAX) return false;
  }
  Lin x = m->of, q;
  x.c = m->at;
  *out = (Family){.of = &m->of, .at = m->at, .unit = unit, .parts = (u32)(whole / unit)};
  if (whole / unit < 2 || whole / unit > MAX_CASES || !sc_form_divide(d->f, &x, whole, &q))
    return false;
  out->q = q.n == 1 && q.at[0].by == 1 && !q.at[0].atom[1] && !q.c ? q.at[0].atom[0] : 0;
  return out->q != 0;
}

Residues sc_residues(Verify *v, const Protocol *p) {
  Residues r = {.cases = 1, .modulus = NEWS(v->sc, u32, v->k->loop.n + 1)};
  Finder d = {.f = v->facts, .p = p, .modulus = r.modulus};
  for (u32 i = 0; i < v->k->loop.n; i++) r.modulus[i] = 1;
  if (!p->way.residues) return r;
  find(&d);
  bool *used = NEWS(v->sc, bool, d.member.n + 1);
  for (u32 i = 0; i < d.member.n && r.n < MAX_FAMILIES; i++) {
    Family *f = &r.family[r.n];
    if (used[i] || !make(&d, i, used, f) || r.cases * f->parts > MAX_CASES) continue;
    r.cases *= f->parts;
    r.n++;
  }
  return r;
}

bool sc_in_family(Facts *f, const Residues *r, u32 which, u32 atom, Lin *out) {
  Member m;
  if (!r->n || !member_of(f, atom, &m)) return false;
  for (u32 i = 0; i < r->n; which /= r->family[i].parts, i++) {
    const Family *of = &r->family[i];
    i64 off = m.at - of->at, rest = which % of->parts;
    if (!sc_lin_same(&m.of, of->of) || m.div % of->unit || off % of->unit) continue;
    if (of->parts * of->unit % m.div) continue;
    Lin q = sc_lin_atom(of->q);
    *out = sc_lin_int(sc_floordiv(rest + off / of->unit, m.div / of->unit));
    return sc_lin_add(out, &q, of->parts * of->unit / m.div);
  }
  return false;
}
