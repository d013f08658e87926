// test.h - what the files of `schedc test` share: one run, and what is known of all so far.
#ifndef CLI_TEST_H
#define CLI_TEST_H

#include "cli/cli.h"

// How much is tried: elements of all tensors together, seeds of the random policy.
typedef struct Level {
  uint64_t elements;
  int seeds;
  bool all;
} Level;

typedef struct Tally {
  size_t passed, failed, unproven, too_large, unmet, misaligned, combinations, swept;
} Tally;

// How a combination is run once.
typedef struct Run {
  InputKind inputs;
  Policy policy;  // not on a GPU
  uint64_t seed;  // of the policy
  unsigned sms;
  bool debug_waits;
} Run;

// A report of combinations that could not be instantiated.
typedef struct Refusal {
  char *report;  // text or JSON
  size_t times, places;
  Buffer where;    // "gemm small, gemm lengths -p BM=64": the first few places
  Buffer last;     // the last place
  Buffer command;  // for the first
} Refusal;

typedef struct Tester {
  Session *s;
  const char *unit, *case_name;
  size_t kase;
  Level level;
  Tally tally;
  const size_t *choice;     // of each line of the case; on the model, then of each Way
  size_t lines;             // of the case
  Pairs set;                // what a sweep sets; else empty
  Buffer left, parameters;  // lines of what is not swept; parameters that have been, each in a line
  schedc_kernel *kernel;
  Data data;
  void **kept;                // outputs of the first policy
  bool kept_any, kept_right;  // has the first policy left outputs; were they right
  schedc_error *errors;
  Progress progress;
  Buffer failures;  // JSON
  size_t told;      // failures of the case so far
  Refusal *refusal;
  size_t refusals;
  schedc_gpu *gpu;  // --on cuda, --on model
  bool no_gpu;
  uint64_t runs;  // on the model
} Tester;

// What differs between runs of a combination on the model, besides the inputs: lines of a case's
// cover, after its own.
typedef enum Way { WAY_POLICY, WAY_SMS, WAY_WAITS, WAYS } Way;

// ---- test_run.c: the runs of a combination. What is not run, and why, is added to the tally.
int test_run(Tester *t);                                // 0, or an exit code
void test_ways(const Args *args, size_t counts[WAYS]);  // how many choices there are of each

// ---- test_fail.c
void test_fail(Tester *t, const Run *run, const char *why);
void test_end_case(Tester *t);  // says how many failures of it were not told, as they were too many
void test_refuse(Tester *t, const schedc_kernel *like);  // like: an instance of the case, or NULL
void test_print_refusals(Tester *t);

#endif
