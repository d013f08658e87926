// files.h - files that tests read, and golden ones, which SCHEDC_UPDATE=1 writes anew. The
// including file has included cmocka.h.
#ifndef FILES_H
#define FILES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// To be freed; a 0 stands behind its n bytes.
static inline char *read_file(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  if (!f) fail_msg("cannot open %s", path);
  char *bytes = NULL;
  size_t cap = 0;
  *n = 0;
  do {
    bytes = realloc(bytes, cap += 1 << 16);
    *n += fread(bytes + *n, 1, cap - *n - 1, f);
  } while (*n == cap - 1);
  bytes[*n] = 0;
  fclose(f);
  return bytes;
}

static inline void golden(const char *path, const char *text) {
  if (getenv("SCHEDC_UPDATE")) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
  }
  size_t n;
  char *want = read_file(path, &n);
  if (strcmp(text, want))
    fail_msg("%s differs; run with SCHEDC_UPDATE=1 and read the difference", path);
  free(want);
}

#endif
