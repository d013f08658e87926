// verify.c - the pass `verify`: it runs the provers and gathers what they say in a certificate.
//
// In: a kernel with plan, layouts and places. Out: Kernel.certificate, and an error for each
// statement that has a witness against it.
#include "compiler/verify/verify.h"
#include "compiler/passes.h"

static u8 worst(const Certificate *c) {
  u8 verdict = VERDICT_PROVED;
  for (u32 i = 0; i < PROOF_COUNT; i++)
    if (c->proof[i].verdict > verdict) verdict = c->proof[i].verdict;
  return verdict;
}

const Certificate *sc_verify(Sc *sc, const Kernel *k) {
  Certificate *cert = NEW(sc, Certificate);
  cert->kernel = k;
  cert->least = NEWS(sc, u32, k->ring.n + 1);
  Verify v = {sc, k, sc_facts(sc, k), cert};
  sc_facts_thorough(v.facts);
  sc_prove_resources(&v);
  sc_prove_barriers(&v);
  sc_prove_threads(&v);
  sc_prove_protocol(&v);
  sc_prove_shared(&v);
  sc_prove_global(&v);
  cert->verdict = worst(cert);
  return cert;
}
