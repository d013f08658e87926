// pipeline.c - the table of all stages, from the text to the machine code, and the one function
// that walks it. In: what the caller has, and where to stop. Out: what the stages make, each from
// what the ones before it made. A sequence is compiled kernel by kernel. Builds with checks look at
// the IR after lowering and after every pass: what a pass breaks is reported as its fault.
#include "compiler/passes.h"

#include <string.h>

#if !defined NDEBUG || defined SC_CHECK
enum { CHECKED = 1 };
#else
enum { CHECKED = 0 };
#endif

static bool parse(Sc *sc, Compilation *c) {
  c->ast = sc_parse(sc, c->text);
  return true;
}

static bool lower(Sc *sc, Compilation *c) {
  return (c->k = sc_lower(sc, c->ast, &c->choice)) != NULL;
}

static bool cuda(Sc *sc, Compilation *c) {
  return (c->cuda = sc_cuda(sc, c->k, &c->emission)) != NULL;
}

static bool cubin(Sc *sc, Compilation *c) { return c->assemble(sc, c); }

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

static bool verify(Sc *sc, Compilation *c) {
  const Kernel *k = c->k;
  if (!k->launch.n) PUSH(sc, &c->certificate, sc_verify(sc, k));
  for (u32 i = 0; i < k->launch.n + k->given.n; i++)
    if (!launched_before(k, i)) PUSH(sc, &c->certificate, sc_verify(sc, step_kernel(k, i)));
  return true;
}

// What does not fit the GPU does not hide what roles do to each other.
static bool target(Sc *sc, Kernel *k) {
  bool ok = sc_target(sc, k);
  if (!ok) sc_verify_waits(sc, k);
  return ok;
}

static bool place(Sc *sc, Kernel *k) {
  bool ok = sc_place(sc, k);
  if (!ok) sc_verify_waits(sc, k);
  return ok;
}

static void dump_ast(Str *out, const Compilation *c) { sc_print_ast(out, c->ast); }
static void dump_ir(Str *out, const Compilation *c) { sc_print_ir(out, c->k); }
static void dump_layout(Str *out, const Compilation *c) { sc_print_layout(out, c->k); }
static void dump_place(Str *out, const Compilation *c) { sc_print_place(out, c->k); }
static void dump_certificates(Str *out, const Compilation *c) {
  for (u32 i = 0; i < c->certificate.n; i++) sc_print_certificate(out, c->certificate.at[i]);
}
static void dump_cuda(Str *out, const Compilation *c) {
  str_put(out, c->cuda->text.at, c->cuda->text.n);
}
static void dump_code(Str *out, const Compilation *c) { str_put(out, c->code, c->code_bytes); }

const Pass sc_pipeline[] = {
    {"ast", "the syntax tree", parse, NULL, dump_ast},
    {"lower", "the kernel as IR: names resolved, definitions expanded, types and extents checked",
     lower, NULL, dump_ir},
    {"layout", "which thread holds which element, and how each statement's elements move", NULL,
     sc_lay_out, dump_layout},
    {"derive", "… with barrier counts, bytes, wait-group numbers, fences and syncs", NULL,
     sc_derive, dump_ir},
    {"flow",
     "… checked by data flow within each role (R1-R5, R7): the same text, if there is no error",
     NULL, sc_flow, dump_ir},
    {"target", "… checked for what no instruction of the GPU carries: the same, if there is none",
     NULL, target, dump_ir},
    {"place", "shared memory, barriers, warps and registers as they are placed (R8)", NULL, place,
     dump_place},
    {"verify", "what is proved of all roles together, for every trip count (R5, R6, R10)", verify,
     NULL, dump_certificates},
    {"cuda", "CUDA C for sm_90a", cuda, NULL, dump_cuda},
    {"cubin", "machine code for sm_90a, by NVRTC", cubin, NULL, dump_code},
    {0},
};

static const Pass probing[] = {
    {"lower", .run = lower},        {"stages", .each = sc_stages_fit},
    {"layout", .each = sc_lay_out}, {"tiles", .each = sc_tiles_fit},
    {"derive", .each = sc_derive},  {"flow", .each = sc_flow},
    {"target", .each = sc_target},  {"place", .each = sc_place},
};

static bool sound(Sc *sc, const Kernel *k, const char *stage) {
  const char *wrong = CHECKED ? sc_wellformed(sc, k) : NULL;
  if (wrong) sc_report(sc, D_I_INTERNAL, k->span, "after '%s' of '%s': %s", stage, k->name, wrong);
  return !wrong;
}

// The pass over a kernel, or over every kernel of a sequence. The compiler made them and owns them
// still, hence the cast: `const` is for those who come after.
static bool over_kernels(Sc *sc, const Pass *pass, const Kernel *k) {
  bool ok = k->launch.n || pass->each(sc, (Kernel *)k);
  for (u32 i = 0; i < k->launch.n + k->given.n; i++)
    if (!launched_before(k, i)) ok &= pass->each(sc, step_kernel(k, i));
  return ok;
}

static bool run(Sc *sc, const Pass *pass, Compilation *c) {
  bool ok = pass->run ? pass->run(sc, c) : over_kernels(sc, pass, c->k);
  return ok && !sc->errors && (!c->k || sound(sc, c->k, pass->name));
}

const Pass *sc_pass(const char *name) {
  const Pass *p = sc_pipeline;
  while (p->name && strcmp(p->name, name) != 0) p++;
  return p->name ? p : NULL;
}

bool sc_compile(Sc *sc, Compilation *c, const char *have, const char *to) {
  const Pass *p = have ? sc_pass(have) + 1 : sc_pipeline, *last = sc_pass(to);
  for (; p <= last; p++)
    if (!run(sc, p, c)) return false;
  return true;
}

bool sc_probe(Sc *sc, Compilation *c) {
  for (u32 i = 0; i < COUNT(probing); i++)
    if (!run(sc, &probing[i], c)) return false;
  return true;
}
