// fixture.h - a compilation for each test. The including file has included cmocka.h.
#ifndef FIXTURE_H
#define FIXTURE_H

#include <string.h>

#include "passes.h"

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

static inline const Kernel *compile(Fixture *f, const char *name, const char *source) {
  f->sc.text = sc_text(&f->sc, name, source, strlen(source));
  const Ast *ast = sc_parse(&f->sc, f->sc.text);
  const Kernel *k = ast && !f->sc.errors ? sc_compile_to(&f->sc, ast, &(Choice){0}, NULL) : NULL;
  if (!k) fail_msg("%s", f->sc.diags->text);
  return k;
}

#endif
