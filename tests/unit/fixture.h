// fixture.h - a compilation for each test. The including file has included cmocka.h.
#ifndef FIXTURE_H
#define FIXTURE_H

#include <string.h>

#include "compiler/passes.h"

typedef struct Fixture {
  Sc sc;
  jmp_buf unwind;
} Fixture;

static inline int begin(void **state) {
  static Fixture f;
  sc_init(&f.sc, NULL);
  f.sc.unwind = &f.unwind;
  *state = &f;
  return 0;
}

static inline int end(void **state) {
  Fixture *f = *state;
  sc_free(&f->sc);
  return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

// NULL: reported.
static inline const Kernel *try_compile(Fixture *f, const char *name, const char *source) {
  f->sc.text = sc_text(&f->sc, name, source, strlen(source));
  const Ast *ast = sc_parse(&f->sc, f->sc.text);
  Compilation c = {.ast = ast};
  return ast && !f->sc.errors && sc_compile(&f->sc, &c, "ast", "place") ? c.k : NULL;
}

static inline const Kernel *compile(Fixture *f, const char *name, const char *source) {
  const Kernel *k = try_compile(f, name, source);
  if (!k) fail_msg("%s", f->sc.diags->text);
  return k;
}

static inline const CudaText *cuda_of(Fixture *f, const char *name, const char *source) {
  return sc_cuda(&f->sc, compile(f, name, source), &(CudaOptions){0});
}

static inline const char *text_of(Fixture *f, const char *source) {
  const CudaText *t = cuda_of(f, "t.sched", source);
  assert_non_null(t);
  return t->text.at;
}

// A text however its lines are broken: one space for each run of spaces and line ends.
static inline const char *one_line(Sc *sc, const char *text) {
  Str flat = {.sc = sc};
  for (const char *p = text; *p; p++) {
    bool space = strchr(" \n", *p), more = flat.n && flat.at[flat.n - 1] == ' ';
    if (!space || !more) str_put(&flat, space ? " " : p, 1);
  }
  return flat.at;
}

static inline u32 count(const char *text, const char *what) {
  u32 n = 0;
  for (const char *p = text; (p = strstr(p, what)); p++) n++;
  return n;
}

static inline void has(const char *text, const char *part) {
  if (!strstr(text, part)) fail_msg("'%s' is missing in\n%s", part, text);
}

// Each of these stands in the text, and only there.
static inline void each_once(const char *text, const char *const *what, u32 n) {
  for (u32 i = 0; i < n; i++) {
    if (count(text, what[i]) != 1) fail_msg("'%s' in:\n%s", what[i], text);
  }
}

#endif
