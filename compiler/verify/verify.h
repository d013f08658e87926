// verify.h - the pass that proves a kernel safe between its roles, and the certificate that it
// leaves. It reads the IR with its plan, its layouts and its places, and believes nothing of how
// they were made: no function of flow/, place/ or emit/ is called from here. (facts/ answers
// questions about integers for both.)
#ifndef SC_VERIFY_H
#define SC_VERIFY_H

#include "compiler/facts/facts.h"
#include "compiler/ir/ir.h"

// How far a statement is known to hold. The verdict on a kernel is the worst of its statements.
typedef enum Verdict {
  VERDICT_PROVED,      // for all trip counts, under the certificate's assumptions
  VERDICT_CHECKED,     // for all dimensions up to a bound
  VERDICT_INCOMPLETE,  // not known: the prover says why
  VERDICT_REJECTED     // it does not hold: there is a witness
} Verdict;

typedef enum ProofId {
#define PROOF(id, rule, statement) PROOF_##id,
#include "compiler/verify/proof.def"
#undef PROOF
  PROOF_COUNT
} ProofId;

typedef struct Proof {
  u8 verdict;       // Verdict
  u32 upto;         // CHECKED: the bound
  Span span;        // INCOMPLETE: where the prover gave up
  const char *why;  // CHECKED, INCOMPLETE: a clause without a full stop; else NULL
} Proof;

typedef struct ProofInfo {
  const char *name, *rule, *statement;
} ProofInfo;
extern const ProofInfo sc_proof[PROOF_COUNT];

typedef struct Certificate {
  const Kernel *kernel;
  u8 verdict;  // Verdict
  Proof proof[PROOF_COUNT];
  VEC(const char *) assumption;  // each a sentence without its full stop, once
  // By ring, if it was asked for: with fewer stages the proof of ORDER does not close; 0: not
  // known.
  u32 *least;
  u32 states;  // that the proof of ORDER and COUNTS went through
} Certificate;

// A known difference of two integers, given as atoms of facts/ (atom 0 is the number 0):
// a - b >= least.
typedef struct Apart {
  u32 a, b;
  i64 least;
} Apart;

// A proof under way.
typedef struct Verify {
  Sc *sc;
  const Kernel *k;
  Facts *facts;
  Certificate *cert;
  bool depths;       // how many stages rings need is asked for
  bool refused;      // an earlier pass refuses the kernel: it cannot be run
  VEC(Apart) apart;  // protocol: remembered over its attempts
  Keys assumed;      // the texts that the certificate has
  // THREADS leaves for GLOBAL, by role and operation that copies out: which of the role's copies
  // out to the same tensor may not be visible when it is issued, as a set of sc_copy_bit. (NULL:
  // any.)
  u64 **overtaken;
} Verify;

// A role's copy out in a set of them. (Those past the last bit share it.)
static inline u64 sc_copy_bit(const Code *code, u32 pc) {
  u32 n = 0;
  for (u32 i = 0; i < pc; i++) n += code->at[i].op == OP_COPYOUT;
  return (u64)1 << (n < 63 ? n : 63);
}

const char *sc_verdict_text(Verdict verdict);
void sc_report_open(Sc *sc, const Certificate *certificate);  // a warning, if something is

// certificate.c: "tile x = 0, y = 1"
const char *sc_tile_text(Sc *sc, const Kernel *k, const i64 *axis);
// What provers say. The worst verdict on a statement stays, and of equals the first.
void sc_incomplete(Verify *v, ProofId id, Span span, const char *why, ...)
    __attribute__((format(printf, 4, 5)));
void sc_checked(Verify *v, ProofId id, u32 upto, Span span, const char *why, ...)
    __attribute__((format(printf, 5, 6)));
// The caller has reported an error (sc_report) that is a witness against the statement.
void sc_rejected(Verify *v, ProofId id);
void sc_assume(Verify *v, const char *what, ...) __attribute__((format(printf, 2, 3)));
// What derive, layout or place worked out is not enough: a defect of the compiler, reported as
// I.plan. NULL if the statement has been rejected before.
Diag *sc_bad_plan(Verify *v, ProofId id, Span span, const char *message, ...)
    __attribute__((format(printf, 4, 5)));

// values.c: the integers of a run that is tried, and how much may still be spent on them.
// Expressions share their operands, and a question meets these as often as they are written.
typedef struct Effort {
  u32 steps;   // nodes of expressions that may still be met
  u32 levels;  // of an expression that are being evaluated
  bool spent;  // one was not evaluated: it took too many of either
} Effort;
typedef struct Numbers {
  const Kernel *k;
  bool (*leaf)(void *of, const Expr *e, i64 *out);  // false: it is not known
  void *of;
  const bool *known;  // by argument: has it a value? NULL: all have
  Effort *effort;
} Numbers;
// An integer or a truth; no expression (0) is the number 0. False: there is no value. (An operand
// that its condition makes irrelevant need not have one.)
bool sc_number(const Numbers *n, Xid x, i64 *out);
// allowed.c: a required equation gives a dimension, which is one of its sides alone, the value of
// the other side. `kept` stays as it is; SC_NONE: none does.
void sc_solve(const Numbers *n, u32 kept, i64 *dim);
// May a launch have them? What depends on reals, or on scalars without a value, may be
// anything.
bool sc_is_allowed(const Numbers *n);

// The provers, each of the rows of proof.def that name its file.
void sc_prove_protocol(Verify *v);
void sc_prove_dealt(Verify *v);
void sc_prove_barriers(Verify *v);
void sc_prove_threads(Verify *v);
void sc_prove_shared(Verify *v);
void sc_prove_global(Verify *v);
void sc_prove_resources(Verify *v);
void sc_prove_within(Verify *v);
void sc_prove_divisors(Verify *v);

#endif
