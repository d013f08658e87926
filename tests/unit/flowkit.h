// flowkit.h - a kernel whose plan is derived, for tests of derive and flow. The including file has
// included cmocka.h.
#ifndef FLOWKIT_H
#define FLOWKIT_H

#include <stdlib.h>
#include <string.h>

#include "compiler/flow/flow.h"

typedef struct Fixture {
  Sc sc;
  jmp_buf unwind;
  Kernel *k;
} Fixture;

static inline void show(Sc *sc) {
  Str out = {.sc = sc};
  for (const Diag *d = sc->diags; d; d = d->next) sc_diag_text(&out, sc->text, d);
  if (out.n) print_message("%s", out.at);
}

static inline bool begin(Fixture *f, const char *source) {
  sc_init(&f->sc, NULL);
  f->sc.unwind = &f->unwind;
  f->sc.text = sc_text(&f->sc, "test.sched", source, strlen(source));
  const Ast *ast = sc_parse(&f->sc, f->sc.text);
  f->k = f->sc.errors ? NULL : sc_lower(&f->sc, ast, &(Choice){0});
  if (!f->k) show(&f->sc);
  return f->k && sc_lay_out(&f->sc, f->k) && sc_derive(&f->sc, f->k);
}

// The n-th operation of a kind in a role, from 0.
static inline Ins *find(Fixture *f, u32 role, Op op, u32 n) {
  Code *code = &f->k->role.at[role].code;
  for (u32 i = 0; i < code->n; i++) {
    if (code->at[i].op == op && n-- == 0) return &code->at[i];
  }
  fail_msg("no such operation");
  return NULL;
}

static inline const Ring *ring(Fixture *f, const char *name) {
  for (u32 i = 0; i < f->k->ring.n; i++) {
    if (!strcmp(f->k->ring.at[i].name, name)) return &f->k->ring.at[i];
  }
  fail_msg("no ring %s", name);
  return NULL;
}

static inline void accepted(const char *source) {
  Fixture f;
  assert_true(begin(&f, source));
  bool ok = sc_flow(&f.sc, f.k);
  if (!ok) show(&f.sc);
  assert_true(ok);
  sc_free(&f.sc);
}

static inline void rejected(const char *source, const char *code) {
  Fixture f;
  bool ok = begin(&f, source) && sc_flow(&f.sc, f.k);
  assert_false(ok);
  assert_non_null(f.sc.diags);
  assert_string_equal(sc_diag_code(f.sc.diags->id), code);
  if (f.sc.errors != 1) show(&f.sc);
  assert_int_equal(f.sc.errors, 1);
  sc_free(&f.sc);
}

#define HEAD                            \
  "kernel test {\n"                     \
  "  param D = 64, BM = 64, BN = 64\n"  \
  "  in Q : f16[M, D], K : f16[N, D]\n" \
  "  inout O : f32[M, D]\n"             \
  "  grid (x : cdiv(M, BM))\n"          \
  "  let n = cdiv(N, BN)\n"

#define ATTENTION_LIKE(stages, body)                                                     \
  HEAD "  ring q : f16[BM, D]\n"                                                         \
       "  ring k : f16[BN, D] * " #stages                                                \
       "\n"                                                                              \
       "  role load : 1 warp, 24 regs { q <- Q[x*BM..]\n"                                \
       "    for t in 0 .. n { k <- K[t*BN..] } }\n"                                      \
       "  role math : 1 warpgroup, 240 regs {\n"                                         \
       "    reg s : f32[BM, BN], r : f32[BM, BN], p : f16[BM, BN], o : f32[BM, D] = 0\n" \
       "    wait q\n" body                                                               \
       "\n"                                                                              \
       "    O[x*BM + i, d] = o[i,d]\n"                                                   \
       "  }\n}\n"

#endif
