// verify.c - what is proved of a kernel's roles together.
#include "compiler/verify/verify.h"

#include "runtime/api/api.h"

const char *schedc_verdict_text(schedc_verdict verdict) {
  return (u32)verdict > SCHEDC_REJECTED ? "unknown" : sc_verdict_text((Verdict)verdict);
}

typedef struct VerifyJob {
  const Kernel *k;
  Verdict verdict;
} VerifyJob;

static schedc_status verify(Sc *sc, void *job) {
  VerifyJob *j = job;
  Compilation c = {.k = j->k};
  bool ok = sc_compile(sc, &c, "place", "verify");
  for (u32 i = 0; i < c.certificate.n; i++)
    if (c.certificate.at[i]->verdict > j->verdict) j->verdict = c.certificate.at[i]->verdict;
  return ok ? SCHEDC_OK : SCHEDC_EINPUT;
}

schedc_status schedc_verify(schedc_context *context, const schedc_kernel *kernel,
                            schedc_verdict *verdict) {
  if (!context || !kernel) return SCHEDC_EARG;
  VerifyJob job = {kernel->k, VERDICT_PROVED};
  schedc_status status = sc_enter_once(context, kernel->k->text, verify, &job);
  if (verdict) *verdict = (schedc_verdict)job.verdict;
  return status;
}
