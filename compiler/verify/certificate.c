// certificate.c - gathers the verdicts of the provers in a certificate, and prints it. In: what a
// prover found. Out: the worst verdict on each statement, with the reason that was given first.
#include <stdarg.h>
#include <string.h>

#include "compiler/passes.h"
#include "compiler/verify/verify.h"

const ProofInfo sc_proof[PROOF_COUNT] = {
#define PROOF(id, rule, statement) {#id, rule, statement},
#include "compiler/verify/proof.def"
#undef PROOF
};

static bool worse(const Verify *v, ProofId id, Verdict verdict) {
  return verdict > v->cert->proof[id].verdict;
}

void sc_incomplete(Verify *v, ProofId id, Span span, const char *why, ...) {
  if (!worse(v, id, VERDICT_INCOMPLETE)) return;
  va_list args;
  va_start(args, why);
  v->cert->proof[id] = (Proof){VERDICT_INCOMPLETE, 0, span, sc_vprintf(v->sc, why, args)};
  va_end(args);
}

void sc_checked(Verify *v, ProofId id, u32 upto, Span span, const char *why, ...) {
  if (!worse(v, id, VERDICT_CHECKED)) return;
  va_list args;
  va_start(args, why);
  v->cert->proof[id] = (Proof){VERDICT_CHECKED, upto, span, sc_vprintf(v->sc, why, args)};
  va_end(args);
}

void sc_rejected(Verify *v, ProofId id) {
  v->cert->proof[id] = (Proof){.verdict = VERDICT_REJECTED};
}

Diag *sc_bad_plan(Verify *v, ProofId id, Span span, const char *message, ...) {
  if (!worse(v, id, VERDICT_REJECTED)) return NULL;
  va_list args;
  va_start(args, message);
  Diag *d = sc_vreport(v->sc, D_I_PLAN, span, message, args);
  va_end(args);
  sc_help(v->sc, d, "the schedule is not at fault: please report it, with the parameters");
  sc_rejected(v, id);
  return d;
}

void sc_assume(Verify *v, const char *what, ...) {
  va_list args;
  va_start(args, what);
  const char *text = sc_vprintf(v->sc, what, args);
  va_end(args);
  Key *key = sc_key(v->sc, &v->assumed, 0, text, strlen(text));
  if (!key->number) PUSH(v->sc, &v->cert->assumption, text);
  key->number = 1;
}

void sc_report_open(Sc *sc, const Certificate *c) {
  Diag *d = NULL;
  if (c->verdict == VERDICT_PROVED || c->verdict == VERDICT_REJECTED) return;
  for (u32 i = 0; i < PROOF_COUNT; i++) {
    const Proof *p = &c->proof[i];
    if (p->verdict == VERDICT_PROVED) continue;
    if (!d)
      d = sc_report(sc, D_V_OPEN, c->kernel->span, "not all of '%s' is proved", c->kernel->name);
    sc_note(sc, d, p->span, "%s: %s", sc_proof[i].statement, p->why);
  }
  if (d)
    sc_help(sc, d,
            "it may be right or wrong: `schedc test` tries its cases; loops that all roles write "
            "with the same bounds and nesting are proved best; `schedc explain V.open` says more");
}

const char *sc_verdict_text(Verdict verdict) {
  static const char *const text[] = {"proved for all trip counts", "checked", "incomplete",
                                     "rejected"};
  return text[verdict];
}

void sc_print_certificate(Str *out, const Certificate *c) {
  const Kernel *k = c->kernel;
  str_printf(out, "kernel %s: %s\n", k->name, sc_verdict_text(c->verdict));
  for (u32 i = 0; i < PROOF_COUNT; i++) {
    const Proof *p = &c->proof[i];
    str_printf(out, "  %s: %s", sc_proof[i].statement, sc_verdict_text(p->verdict));
    if (p->verdict == VERDICT_CHECKED) str_printf(out, " up to %u", p->upto);
    if (p->why) str_printf(out, ": %s", p->why);
    str_puts(out, "\n");
  }
  for (u32 i = 0; i < c->assumption.n; i++) str_printf(out, "  assumed: %s\n", c->assumption.at[i]);
  for (u32 i = 0; i < k->ring.n && c->least; i++) {
    const Ring *r = &k->ring.at[i];
    if (!c->least[i]) continue;
    str_printf(out, "  ring %s: %u stages, at least %u, %u to spare\n", r->name, r->stages,
               c->least[i], r->stages - c->least[i]);
  }
}

const char *sc_tile_text(Sc *sc, const Kernel *k, const i64 *axis) {
  Str s = {.sc = sc};
  for (u32 i = 0; i < k->axis.n; i++)
    str_printf(&s, "%s%s = %lld", i ? ", " : "tile ", k->axis.at[i].name, (long long)axis[i]);
  return k->axis.n ? s.at : "the only tile";
}
