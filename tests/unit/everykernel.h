// everykernel.h - every kernel of a folder, compiled up to `place`, and what the proofs of
// barriers.c, threads.c and resources.c say of it. The including file has included cmocka.h.
#ifndef EVERYKERNEL_H
#define EVERYKERNEL_H

#include <dirent.h>
#include <stdlib.h>

#include "compiler/verify/verify.h"
#include "files.h"
#include "fixture.h"

static const ProofId mine[] = {PROOF_ARRIVALS, PROOF_NAMED, PROOF_THREADS, PROOF_PHASES,
                               PROOF_MEMORY};

// What the provers say; errors are left in `sc`.
static inline Certificate *prove(Sc *sc, Kernel *k) {
  Certificate *cert = NEW(sc, Certificate);
  Verify v = {sc, k, sc_facts(sc, k), cert};
  sc_prove_resources(&v);
  sc_prove_barriers(&v);
  sc_prove_threads(&v);
  sc_prove_dealt(&v);
  return cert;
}

static inline void forget_reports(Sc *sc) {
  sc->errors = 0;
  sc->diags = NULL;
  sc->diag_end = &sc->diags;
}

typedef void With(Sc *sc, Kernel *k, void *user);

// The kernel with each value of each parameter's domain, the others as they are, where they fit.
static inline u32 with_params(Sc *sc, Compilation c, With *with, void *user) {
  const Kernel *k = c.k;
  u32 kernels = 0;
  for (u32 i = 0; i < k->param.n; i++) {
    const Param *p = &k->param.at[i];
    for (u32 v = 0; v < p->domain.n; v++) {
      schedc_param other = {p->name, sc_value_text(sc, &p->domain.at[v])};
      c.choice.param = &other;
      c.choice.params = 1;
      forget_reports(sc);
      if (!sc_compile(sc, &c, "ast", "place")) continue;
      with(sc, (Kernel *)c.k, user);
      kernels++;
    }
  }
  forget_reports(sc);
  return kernels;
}

static inline u32 with_kernels(const char *path, With *with, void *user, bool params) {
  size_t n;
  char *source = read_file(path, &n);
  Fixture f;
  sc_init(&f.sc, NULL);
  f.sc.unwind = &f.unwind;
  f.sc.text = sc_text(&f.sc, path, source, n);
  const Ast *ast = sc_parse(&f.sc, f.sc.text);
  u32 kernels = 0;
  for (const Node *u = ast->file->a; u; u = u->next) {
    if (u->kind != ND_KERNEL) continue;
    Compilation c = {.ast = ast, .choice = {.unit = u->name}};
    if (!sc_compile(&f.sc, &c, "ast", "place")) {
      if (!strstr(path, "unusual")) fail_msg("%s: %s", path, f.sc.diags->text);
      continue;  // a false alarm of an earlier stage: tests/unusual/refused.txt
    }
    with(&f.sc, (Kernel *)c.k, user);  // it is the test's own
    kernels++;
    if (params) kernels += with_params(&f.sc, c, with, user);
  }
  sc_free(&f.sc);
  free(source);
  return kernels;
}

static inline u32 with_folder(const char *folder, With *with, void *user, bool params) {
  DIR *d = opendir(folder);
  u32 kernels = 0;
  assert_non_null(d);
  for (const struct dirent *e; (e = readdir(d));) {
    const char *dot = strrchr(e->d_name, '.');
    char path[512];
    if (!dot || strcmp(dot, ".sched") != 0) continue;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    kernels += with_kernels(path, with, user, params);
  }
  closedir(d);
  return kernels;
}

#endif
