// buffer.c - bytes that grow, and whole files.
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void *need(void *block) {
  if (block) return block;
  fputs("schedc: out of memory\n", stderr);
  exit(EXIT_ENVIRONMENT);
}

int buffer_write(void *buffer, const char *bytes, size_t n) {
  Buffer *b = buffer;
  if (n >= SIZE_MAX / 4 || b->n >= SIZE_MAX / 4) need(NULL);
  if (b->n + n + 1 > b->cap) {
    b->cap = (b->n + n + 1) * 2;
    b->at = need(realloc(b->at, b->cap));
  }
  if (n) memcpy(b->at + b->n, bytes, n);
  b->n += n;
  b->at[b->n] = 0;
  return 0;
}

void buffer_puts(Buffer *b, const char *text) { buffer_write(b, text, strlen(text)); }

void buffer_printf(Buffer *b, const char *fmt, ...) {
  char text[1024];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  buffer_puts(b, text);
}

bool file_read(const char *path, Buffer *out) {
  FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
  if (!f) return false;
  char part[65536];
  size_t n;
  buffer_write(out, "", 0);
  while ((n = fread(part, 1, sizeof part, f)) > 0) buffer_write(out, part, n);
  int failed = ferror(f) ? errno : 0;
  if (f != stdin) fclose(f);
  errno = failed;
  return !failed;
}

bool file_write(const char *path, const void *bytes, size_t n) {
  FILE *f = strcmp(path, "-") == 0 ? stdout : fopen(path, "wb");
  if (!f) return false;
  bool good = fwrite(bytes, 1, n, f) == n;
  if (f == stdout) return fflush(f) == 0 && good;
  return fclose(f) == 0 && good;
}

int stdout_write(void *user, const char *bytes, size_t n) {
  (void)user;
  return fwrite(bytes, 1, n, stdout) != n;
}
