// verify.c - the pass `verify`: it runs the provers and gathers what they say in a certificate.
//
// In: a kernel with plan, layouts and places. Out: a Certificate, and an error for each statement
// that has a witness against it.
#include "compiler/verify/verify.h"
#include "compiler/passes.h"

static u8 worst(const Certificate *c) {
  u8 verdict = VERDICT_PROVED;
  for (u32 i = 0; i < PROOF_COUNT; i++)
    if (c->proof[i].verdict > verdict) verdict = c->proof[i].verdict;
  return verdict;
}

// Notes as assumptions the requirements that a launcher checks before each launch.
static void assume_requirements(Verify *v) {
  for (u32 i = 0; i < v->k->require.n; i++) {
    Str s = {.sc = v->sc};
    if (!(v->k->expr.at[v->k->require.at[i].cond].deps & DEP_DIM)) continue;
    sc_print_named(&s, v->k, v->k->require.at[i].cond);
    sc_assume(v, "%s (a launch is refused where it does not hold)", s.at);
  }
}

// Notes as assumptions what a run or a launch holds lists against.
static void assume_elements(Verify *v) {
  for (u32 i = 0; i < v->k->buf.n; i++) {
    const Buf *b = &v->k->buf.at[i];
    Str s = {.sc = v->sc};
    sc_print_elements(&s, v->k, b);
    if (s.n)
      sc_assume(v,
                "the elements of '%s' are as declared, %s (a launch checks it, if it is not told "
                "to trust them)",
                b->name, s.at);
  }
}

static bool may_grow(const Expr *e) {
  const bool picks = e->op == X_MIN || e->op == X_MAX || e->op == X_WHERE || e->op == X_MOD;
  const bool makes = sc_xop[e->op].arity || e->op == X_SUM;
  return e->ty == TY_INT && e->deps & (DEP_FETCH | DEP_TILE) && makes && !picks;
}

static void assume_fits(Verify *v, const Expr *e) {
  const Buf *b = &v->k->buf.at[v->k->view.at[e->ref].buf];
  if (e->ty == TY_INT && !(b->least && b->end))
    sc_assume(v,
              "integers that are made of elements of '%s' fit in 32 bits (nothing is declared of "
              "these, so no launch can tell)",
              b->name);
}

// Notes as assumptions that integers fit which are made of elements that may be any. Of others a
// launch checks it.
static void assume_integers(Verify *v) {
  const Kernel *k = v->k;
  Below all = x_below(v->sc, k), made = x_below(v->sc, k);
  x_begin(&all, DEP_FETCH | DEP_TILE);
  sc_grid_exprs(k, x_visit, &all);
  for (u32 i = 0; i < k->role.n; i++)
    for (u32 pc = 0; pc < k->role.at[i].code.n; pc++)
      sc_ins_exprs(k, &k->role.at[i].code.at[pc], x_visit, &all);
  x_begin(&made, DEP_FETCH | DEP_TILE);
  for (Xid x; (x = x_next(&all));) {
    Xid operand[SC_MAX_OPERANDS];
    const u32 n = may_grow(&k->expr.at[x]) ? x_operands(k, x, operand) : 0;
    for (u32 i = 0; i < n; i++) x_from(&made, operand[i]);
  }
  for (Xid x; (x = x_next(&made));) {
    const Expr *e = &k->expr.at[x];
    if (e->op == X_LOAD) assume_fits(v, e);
    if (e->op == X_LOAD || e->ty == TY_BOOL) x_skip(&made);
  }
}

static Facts *facts_of(Sc *sc, const Kernel *k) {
  Facts *f = sc_facts(sc, k);
  sc_facts_thorough(f);
  sc_facts_elements(f);
  return f;
}

static Certificate *prove(Sc *sc, const Kernel *k, bool depths) {
  Certificate *cert = NEW(sc, Certificate);
  cert->kernel = k;
  if (depths) cert->least = NEWS(sc, u32, k->ring.n + 1);
  Verify v = {.sc = sc, .k = k, .facts = facts_of(sc, k), .cert = cert, .depths = depths};
  assume_requirements(&v);
  assume_elements(&v);
  assume_integers(&v);
  sc_prove_resources(&v);
  sc_prove_barriers(&v);
  sc_prove_threads(&v);
  sc_prove_dealt(&v);
  sc_prove_protocol(&v);
  sc_prove_shared(&v);
  sc_prove_global(&v);
  // last: how far the others get depends on what was asked before them
  sc_prove_within(&v);
  sc_prove_divisors(&v);
  cert->verdict = worst(cert);
  return cert;
}

const Certificate *sc_verify(Sc *sc, const Kernel *k) {
  const Certificate *cert = prove(sc, k, false);
  sc_report_open(sc, cert);
  return cert;
}

const Certificate *sc_certify(Sc *sc, const Kernel *k) { return prove(sc, k, true); }

void sc_verify_waits(Sc *sc, const Kernel *k) {
  Certificate *cert = NEW(sc, Certificate);
  Verify v = {.sc = sc, .k = k, .facts = facts_of(sc, k), .cert = cert, .refused = true};
  sc_prove_protocol(&v);
  sc_prove_dealt(&v);
}
