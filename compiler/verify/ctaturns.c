// ctaturns.c - turns that go from CTA to CTA. In: a kernel. Out: a proof that every wait for such a
// turn ends, or a witness.
//
// The idea: CTA z has the turn of a key once all CTAs before it have passed it on. So if CTA z + 1
// takes the turn, CTA z must take it, too. A condition around the `take` must then be true at z
// wherever it is true at z + 1, and a loop around it must have the same rounds at z, or more. That
// the earlier CTAs have begun is an assumption: a grid is started in order. (Where CTAs take
// tile after tile, the second one of a CTA comes after the first ones of all: so all have begun.)
//
// A key comes to each CTA once. So it must be taken by one operation of one instance, at most once
// in a tile: in no loop, or in loops whose variables are the digits of the key, as r * end + t. The
// key must be below the turn's number of keys. Where the CTAs of a cluster share a ring, a CTA that
// holds a turn could wait for another one of its cluster: there this file proves nothing.
#include "compiler/verify/barriers.h"
#include "compiler/verify/crowd.h"

typedef struct Turns {
  Verify *v;
  u32 axis;
} Turns;

// ---- one place further along the axis

static bool further(void *turns, u32 atom, Lin *out) {
  const Turns *t = turns;
  Facts *f = t->v->facts;
  const Atom a = f->atom.at[atom];
  Lin x, y, one = sc_lin_int(1);
  *out = sc_lin_atom(atom);
  if (a.op == X_AXIS && a.ref == t->axis) return sc_lin_add(out, &one, 1);
  if (a.op == X_LOAD || a.op == X_WHERE)
    if (t->v->k->expr.at[a.ref].deps & DEP_AXIS) return false;
  if (!a.a) return true;
  if (!sc_lin_map(a.a, further, turns, &x) || (a.b && !sc_lin_map(a.b, further, turns, &y)))
    return false;
  if (a.op == X_IDIV && !y.n && y.c > 0) return sc_form_divide(f, &x, y.c, out);
  *out =
      sc_lin_atom(sc_form_atom(f, (Atom){.op = a.op, .ref = a.ref, .a = &x, .b = a.b ? &y : NULL}));
  return true;
}

// Is x at no place of the axis less than at the next one? sign -1: at none greater.
static bool falls(Turns *t, const Lin *x, i64 sign) {
  Lin next, less = sc_lin_int(0);
  return sc_lin_map(x, further, t, &next) && sc_lin_add(&less, x, sign) &&
         sc_lin_add(&less, &next, -sign) && sc_form_nonneg(t->v->facts, &less);
}

// Is x the same one place further?
static bool stays(Turns *t, Xid x) {
  Lin next;
  if (!(t->v->k->expr.at[x].deps & DEP_AXIS)) return true;
  const Lin *form = sc_form(t->v->facts, x);
  return sc_lin_map(form, further, t, &next) && sc_lin_same(&next, form);
}

// ---- conditions and bounds

// Does b - a fall along the axis? Then a <= b, or a < b, holds here if it holds one place further.
// sign -1: does it rise?
static bool order_falls(Turns *t, Xid a, Xid b, i64 sign) {
  Lin x = sc_lin_int(0);
  return sc_lin_add(&x, sc_form(t->v->facts, b), 1) &&
         sc_lin_add(&x, sc_form(t->v->facts, a), -1) && falls(t, &x, sign);
}

// Where the condition is `truth` one place further, is it so here?
static bool holds_before(Turns *t, Xid x, bool truth) {
  const Expr *e = &t->v->k->expr.at[x];
  if (!(e->deps & DEP_AXIS)) return true;
  if (e->op == X_AND || e->op == X_OR)
    return holds_before(t, e->a, truth) && holds_before(t, e->b, truth);
  if (e->op == X_NOT) return holds_before(t, e->a, !truth);
  if (sc_xop[e->op].arity != 2 || t->v->k->expr.at[e->a].ty != TY_INT) return false;
  if (e->op == X_EQ || e->op == X_NE) return stays(t, e->a) && stays(t, e->b);
  if (e->op != X_LT && e->op != X_LE) return false;
  return order_falls(t, e->a, e->b, truth ? 1 : -1);
}

static bool same_range_before(Turns *t, const Ins *loop) {
  return falls(t, sc_form(t->v->facts, loop->arg[1]), -1) &&
         falls(t, sc_form(t->v->facts, loop->arg[2]), 1);
}

// Do all conditions and bounds around the operation hold one place before, too?
static bool taken_before(Turns *t, const Code *code, u32 pc) {
  bool ok = true;
  sc_facts_at(t->v->facts, code, 1);
  for (u32 i = 0; i < pc && ok; i++) {
    const Ins *ins = &code->at[i];
    if (ins->op != OP_IF && ins->op != OP_FOR) continue;
    u32 end = sc_closed_by(code, i);
    if (end < pc) i = end;
    else if (ins->op == OP_IF) ok = holds_before(t, ins->arg[0], pc < ins->nest);
    else ok = same_range_before(t, ins);
  }
  return ok && stays(t, code->at[pc].arg[1]);
}

// ---- once

static u32 takes_of(const Kernel *k, u32 turn) {
  u32 n = 0;
  for (u32 r = 0; r < k->role.n; r++) {
    const Code *code = &k->role.at[r].code;
    for (u32 i = 0; i < code->n; i++) n += code->at[i].op == OP_TAKE && code->at[i].arg[0] == turn;
  }
  return n;
}

// May the atom change from round to round of a loop? An element of a tensor is not looked into.
static bool changes(const void *turns, u32 atom) {
  const Atom *a = &((const Turns *)turns)->v->facts->atom.at[atom];
  return a->op == X_LOOP || a->op == X_LOAD || a->op == X_WHERE ||
         sc_lin_any(a->a, changes, turns) || sc_lin_any(a->b, changes, turns);
}

// How much a key grows from a round of the loop to the next; or falls, if the number is known.
// False: it does not do so evenly, or other loops tell by how much.
static bool step_of(const Turns *t, const Lin *key, u32 variable, Lin *step) {
  Facts *f = t->v->facts;
  u32 at = 0;
  for (u32 i = 0; i < key->n; i++) {
    for (u32 j = 0; j < LIN_DEGREE && key->at[i].atom[j]; j++) {
      const Atom *a = &f->atom.at[key->at[i].atom[j]];
      if (a->op != X_LOOP && changes(t, key->at[i].atom[j])) return false;
      if (a->op == X_LOOP && a->ref == variable) at = key->at[i].atom[j];
    }
  }
  if (!at) return false;
  Lin next = sc_lin_atom(at);
  next.c = 1;
  sc_lin_copy(step, key);
  if (!sc_lin_replace(step, at, &next) || !sc_lin_add(step, key, -1) ||
      sc_lin_any(step, changes, t))
    return false;
  if (!step->n && step->c < 0) step->c = -step->c;
  return true;
}

// Are a loop's bounds the same in all rounds of the loops around it? Then *width becomes the range
// of the keys of all its rounds.
static bool widen(const Turns *t, const Ins *loop, const Lin *step, Lin *width) {
  const Lin *from = sc_form(t->v->facts, loop->arg[1]);
  Lin rounds;
  sc_lin_copy(&rounds, sc_form(t->v->facts, loop->arg[2]));
  return sc_lin_add(&rounds, from, -1) && !sc_lin_any(&rounds, changes, t) &&
         !sc_lin_any(from, changes, t) && sc_lin_mul(width, &rounds, step);
}

// Is the key another one in each round of the loops around the operation? From the innermost one
// outwards: a round of a loop must move it beyond all keys of the loops within.
static bool differs(Turns *t, const Role *r, u32 pc) {
  Facts *f = t->v->facts;
  Lin key, width = sc_lin_int(1), step, more;
  bool ok = true;
  sc_facts_at(f, &r->code, pc);
  sc_lin_copy(&key, sc_form(f, r->code.at[pc].arg[1]));
  for (u32 i = pc, inner = SC_NONE; i-- > 1 && ok;) {
    const Ins *loop = &r->code.at[i];
    if (loop->op != OP_FOR || loop->nest < pc) continue;
    if (inner != SC_NONE) ok = widen(t, &r->code.at[inner], &step, &width);
    ok = ok && step_of(t, &key, loop->arg[0], &step);
    if (ok) sc_lin_copy(&more, &step);
    ok = ok && sc_lin_add(&more, &width, -1) && sc_form_nonneg(f, &more);
    inner = i;
  }
  return ok;
}

// Is each key taken once at most in a tile?
static bool taken_once(Turns *t, const Role *r, u32 pc) {
  const Ins *take = &r->code.at[pc];
  if (r->instances > 1 && !r->one_tile) return false;
  if (takes_of(t->v->k, take->arg[0]) != 1) return false;
  for (u32 i = 1; i < pc; i++) {
    const Ins *ins = &r->code.at[i];
    if (ins->op == OP_FOR && ins->nest > pc) return take->arg[1] && differs(t, r, pc);
  }
  return true;
}

// Is the key one of those that the turn has?
static bool key_exists(Turns *t, const Role *r, u32 pc) {
  const Ins *take = &r->code.at[pc];
  const Turn *turn = &t->v->k->turn.at[take->arg[0]];
  if (!turn->keys || !take->arg[1]) return true;
  sc_facts_at(t->v->facts, &r->code, pc);
  return sc_fact_nonneg(t->v->facts, take->arg[1]) &&
         sc_fact_less(t->v->facts, take->arg[1], turn->keys);
}

static bool cluster_shares(const Kernel *k, u32 axis) {
  for (u32 r = 0; r < k->ring.n; r++)
    if (k->axis.at[axis].cluster > 1 && k->ring.at[r].multicast) return true;
  return false;
}

static const char *unclear(Turns *t, u32 role, u32 pc) {
  const Role *r = &t->v->k->role.at[role];
  if (!taken_once(t, r, pc)) return "it is not clear that a tile takes each key of this turn once";
  if (!key_exists(t, r, pc)) return "it is not clear that the turn has this key";
  return cluster_shares(t->v->k, t->axis)
             ? "CTAs of a cluster that share a ring take this turn from each other"
             : NULL;
}

// ---- all of them

// Why it is not proved that who takes this turn gets it; NULL: it is.
static const char *unproved(Verify *v, u32 role, u32 pc) {
  const Code *code = &v->k->role.at[role].code;
  Turns t = {v, v->k->turn.at[code->at[pc].arg[0]].axis};
  const char *why = unclear(&t, role, pc);
  if (why || taken_before(&t, code, pc)) return why;
  return "it is not clear that every CTA before this one takes this turn, too";
}

static void look_for_witness(Verify *v) {
  const Protocol *p = sc_protocol(v, (Way){0}, sc_cluster(v->k));
  Standstill why;
  const Crowd *c = sc_find_standstill(v, p, sc_sample(v), &why);
  if (c) sc_report_standstill(v, c, &why);
}

// Does whoever takes a turn pass it on, with the key that it was taken with?
static bool are_passed_on(Verify *v, u32 role) {
  bool all = true;
  for (u32 i = 0; i < v->k->turn.n; i++)
    if (sc_turn_over_ctas(&v->k->turn.at[i])) all &= !sc_turn_brackets(v, role, i).unsure;
  return all;
}

void sc_prove_cta_turns(Verify *v) {
  bool all = true;
  for (u32 r = 0; r < v->k->role.n; r++) {
    const Code *code = &v->k->role.at[r].code;
    all &= are_passed_on(v, r);
    for (u32 i = 0; i < code->n; i++) {
      const Ins *ins = &code->at[i];
      const Turn *t = ins->op == OP_TAKE ? &v->k->turn.at[ins->arg[0]] : NULL;
      if (!t || !sc_turn_over_ctas(t)) continue;
      sc_assume(v, "the CTAs of a grid begin in its order");
      if (v->k->grid != GRID_PLAIN)
        sc_assume(v, "all CTAs of a launch run at once (it has no more than an idle GPU holds)");
      const char *why = unproved(v, r, i);
      if (!why) continue;
      sc_incomplete(v, PROOF_ORDER, ins->span, "%s", why);
      all = false;
    }
  }
  if (!all && v->cert->proof[PROOF_ORDER].verdict != VERDICT_REJECTED) look_for_witness(v);
}
