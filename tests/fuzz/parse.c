// parse.c - fuzz target: any bytes as a schedule. No crash, no hang, and what parses survives the
// formatter.
#include <stdio.h>
#include <stdlib.h>

#include "../unit/roundtrip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Sc sc;
  jmp_buf unwind;
  sc_init(&sc, NULL);
  sc.unwind = &unwind;
  if (!setjmp(unwind)) {
    const char *wrong = roundtrip(&sc, (const char *)data, size);
    if (wrong) {
      fprintf(stderr, "%s\n", wrong);
      abort();
    }
  }
  sc_free(&sc);
  return 0;
}
