// tell.c - reports of the proofs THREADS and PHASES about an operation. Nothing is reported while
// the walk still changes what is known: what holds on every path is known only at its end.
#include <stdarg.h>

#include "compiler/verify/threads.h"

Diag *th_missing(Threads *t, ProofId id, Span span, const char *message, ...) {
  if (!t->report) return NULL;
  va_list args;
  va_start(args, message);
  const char *text = sc_vprintf(t->v->sc, message, args);
  va_end(args);
  return sc_bad_plan(t->v, id, span, "%s", text);
}

void th_other_end(Threads *t, Diag *d, u32 pc, const char *what) {
  if (d) sc_note(t->v->sc, d, t->r->code.at[pc].span, "%s", what);
}

void th_unsure(Threads *t, const char *what, const char *name) {
  Span span = t->r->code.at[t->pc].span;
  if (!t->report) return;
  sc_incomplete(t->v, PROOF_THREADS, span, "'%s': %s '%s'", t->r->name, what, name);
  sc_incomplete(t->v, PROOF_PHASES, span, "'%s': %s '%s'", t->r->name, what, name);
}
