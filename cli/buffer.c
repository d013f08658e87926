// buffer.c - bytes that grow, and whole files.
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void *need(void *block) {
  if (block) return block;
  fputs("schedc: out of memory\n", stderr);
  exit(EXIT_ENVIRONMENT);
}

// Room for n bytes more, and a NUL.
static void make_room(Buffer *b, size_t n) {
  if (n >= SIZE_MAX / 4 || b->n >= SIZE_MAX / 4) need(NULL);
  if (b->n + n + 1 <= b->cap) return;
  b->cap = (b->n + n + 1) * 2;
  b->at = need(realloc(b->at, b->cap));
}

int buffer_write(void *buffer, const char *bytes, size_t n) {
  Buffer *b = buffer;
  make_room(b, n);
  if (n) memcpy(b->at + b->n, bytes, n);
  b->n += n;
  b->at[b->n] = 0;
  return 0;
}

void buffer_puts(Buffer *b, const char *text) { buffer_write(b, text, strlen(text)); }

void buffer_printf(Buffer *b, const char *fmt, ...) {
  va_list ap, again;
  va_start(ap, fmt);
  va_copy(again, ap);
  int n = vsnprintf(NULL, 0, fmt, ap);
  make_room(b, (size_t)n);
  b->n += (size_t)vsnprintf(b->at + b->n, (size_t)n + 1, fmt, again);
  va_end(again);
  va_end(ap);
}

bool stdin_read(Buffer *out) {
  char part[65536];
  size_t n;
  buffer_write(out, "", 0);
  while ((n = fread(part, 1, sizeof part, stdin)) > 0) buffer_write(out, part, n);
  return !ferror(stdin);
}

bool file_write(const char *path, const void *bytes, size_t n) {
  FILE *f = strcmp(path, "-") == 0 ? stdout : fopen(path, "wb");
  if (!f) return false;
  bool good = fwrite(bytes, 1, n, f) == n;
  if (f == stdout) return fflush(f) == 0 && good;
  return fclose(f) == 0 && good;
}

// A file of its own beside `path`; what is there is a plain file, or nothing.
static bool replace_file(const char *path, const void *bytes, size_t n, const struct stat *old) {
  size_t room = strlen(path) + 40;
  char *temporary = need(malloc(room));
  snprintf(temporary, room, "%s.schedc-%ld", path, (long)getpid());
  bool good = file_write(temporary, bytes, n);
  if (good && old) good = chmod(temporary, old->st_mode & 07777) == 0;
  good = good && rename(temporary, path) == 0;
  int why = errno;
  if (!good) unlink(temporary);
  free(temporary);
  errno = why;
  return good;
}

bool file_replace(const char *path, const void *bytes, size_t n) {
  struct stat old;
  if (strcmp(path, "-") == 0) return file_write(path, bytes, n);
  if (stat(path, &old) != 0) return errno == ENOENT && replace_file(path, bytes, n, NULL);
  return S_ISREG(old.st_mode) ? replace_file(path, bytes, n, &old) : file_write(path, bytes, n);
}

int stdout_write(void *user, const char *bytes, size_t n) {
  (void)user;
  return fwrite(bytes, 1, n, stdout) != n;
}
