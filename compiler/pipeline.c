// pipeline.c - the compiler as a table. In: a tree and a choice of parameters. Out: a kernel that
// every pass accepted, or NULL and reports. A sequence is compiled kernel by kernel. Builds with
// checks look at the IR after lowering and after every pass: what a pass breaks is reported as its
// fault.
#include "passes.h"

#include <string.h>

#if !defined NDEBUG || defined SC_CHECK
enum { CHECKED = 1 };
#else
enum { CHECKED = 0 };
#endif

const Pass sc_pipeline[] = {
    {"layout", "which thread holds which element, and how each statement's elements move",
     sc_lay_out, sc_print_layout},
    {"derive", "… with barrier counts, bytes, wait-group numbers, fences and meetings", sc_derive,
     sc_print_ir},
    {"flow",
     "… checked by data flow within each role (R1-R5, R7): the same text, if there is no error",
     sc_flow, sc_print_ir},
    {"target",
     "what the GPU's instructions cannot carry is reported: the same, if there is no error",
     sc_target, sc_print_layout},
    {"place", "shared memory, barriers, warps and registers as they are placed (R8)", sc_place,
     sc_print_place},
    {"cuda", "CUDA C for sm_90a", NULL, sc_print_cuda},
    {NULL, NULL, NULL, NULL},
};

static bool sound(Sc *sc, const Kernel *k, const char *pass) {
  const char *wrong = CHECKED ? sc_wellformed(sc, k) : NULL;
  if (wrong) sc_report(sc, D_I_INTERNAL, k->span, "after '%s' of '%s': %s", pass, k->name, wrong);
  return !wrong;
}

// A sequence's steps, and then those that it is given.
static Kernel *step_kernel(const Kernel *k, u32 step) {
  u32 n = k->launch.n;
  return (Kernel *)(step < n ? &k->launch.at[step] : &k->given.at[step - n])->kernel;
}

// Is this the kernel of an earlier step? Then it has been through the pass.
static bool launched_before(const Kernel *k, u32 step) {
  for (u32 i = 0; i < step; i++)
    if (step_kernel(k, i) == step_kernel(k, step)) return true;
  return false;
}

// The pass over a kernel, or over every kernel of a sequence. The compiler made them and owns them
// still, hence the cast: `const` is for those who come after.
static bool run(Sc *sc, const Pass *pass, Kernel *k) {
  if (!pass->run) return true;
  bool ok = k->launch.n || pass->run(sc, k);
  for (u32 i = 0; i < k->launch.n + k->given.n; i++)
    if (!launched_before(k, i)) ok &= pass->run(sc, step_kernel(k, i));
  return ok && !sc->errors && sound(sc, k, pass->name);
}

Kernel *sc_compile_to(Sc *sc, const Ast *ast, const Choice *choice, const char *stage) {
  Kernel *k = sc_lower(sc, ast, choice);
  if (!k || sc->errors || !sound(sc, k, "lower")) return NULL;
  bool last = stage && !strcmp(stage, "lower");
  for (const Pass *p = sc_pipeline; p->name && !last; p++) {
    if (!run(sc, p, k)) return NULL;
    last = stage && !strcmp(stage, p->name);
  }
  return k;
}
