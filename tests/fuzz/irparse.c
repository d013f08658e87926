// irparse.c - fuzz target: any bytes as IR text. What can be read prints, and prints again from the
// print; and every pass takes it without a crash and leaves it well-formed.
#include <assert.h>
#include <setjmp.h>
#include <string.h>

#include "passes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(Sc *sc, const char *bytes, size_t n) {
  Kernel *k = sc_parse_ir(sc, sc_text(sc, "fuzz", bytes, n));
  assert(!k == (sc->errors > 0));
  if (!k) return;
  Str once = {.sc = sc}, twice = {.sc = sc};
  sc_print_ir(&once, k);
  Kernel *back = sc_parse_ir(sc, sc_text(sc, "again", once.at, once.n));
  assert(back);
  sc_print_ir(&twice, back);
  assert(once.n == twice.n && !memcmp(once.at, twice.at, once.n));
  for (const Pass *p = sc_pipeline; p->name && !k->launch.n; p++) {
    if (p->run && !p->run(sc, k)) return;
    assert(!sc_wellformed(sc, k));
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Sc sc;
  jmp_buf unwind;
  sc_init(&sc, NULL);
  sc.unwind = &unwind;
  if (!setjmp(unwind)) use(&sc, (const char *)data, size);
  sc_free(&sc);
  return 0;
}
