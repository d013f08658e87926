// store.c - fuzz target: any bytes as a store of measured points. No crash; what is read is whole,
// comes back from what is written of it, and a verified point is found by its own key.
#include <stdlib.h>
#include <string.h>

#include "runtime/tune/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void print(Str *out, const Records *all) {
  for (u32 i = 0; i < all->record.n; i++) sc_store_print(out, &all->record.at[i]);
}

static void check(Sc *sc, const Records *all) {
  Str first = {.sc = sc}, second = {.sc = sc};
  Records again = {0};
  for (u32 i = 0; i < all->record.n; i++) {
    const schedc_store_record *r = &all->record.at[i];
    if (!sc_store_whole(r)) abort();
    if (!strcmp(r->status, "verified") && !sc_store_find(all, r)) abort();
  }
  print(&first, all);
  if (!sc_store_read(sc, sc_text(sc, "again", first.n ? first.at : "", first.n), &again)) abort();
  print(&second, &again);
  if (first.n != second.n || (first.n && memcmp(first.at, second.at, first.n) != 0)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Sc sc;
  jmp_buf unwind;
  Records all = {0};
  sc_init(&sc, NULL);
  sc.unwind = &unwind;
  if (!setjmp(unwind)) {
    bool read = sc_store_read(&sc, sc_text(&sc, "fuzz", (const char *)data, size), &all);
    if (read) check(&sc, &all);
  }
  sc_free(&sc);
  return 0;
}
