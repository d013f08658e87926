// buffer.c - bytes that grow, and whole files.
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
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

bool file_put(FILE *f, const void *bytes, size_t n) {
  return fwrite(bytes, 1, n, f) == n && fflush(f) == 0;
}

static bool put_and_close(int fd, const void *bytes, size_t n) {
  FILE *f = fd < 0 ? NULL : fdopen(fd, "wb");
  if (!f) return false;
  bool good = file_put(f, bytes, n);
  return fclose(f) == 0 && good;
}

// A file beside `path` that nobody had before; its name in `name`.
static int open_new(const char *path, char *name, size_t room) {
  enum { ATTEMPTS = 100 };
  for (int i = 0; i < ATTEMPTS; i++) {
    snprintf(name, room, "%s.schedc-%ld-%d", path, (long)getpid(), i);
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

// What is at `path` is a plain file, or nothing.
static bool replace_file(const char *path, const void *bytes, size_t n, const struct stat *old) {
  size_t room = strlen(path) + 60;
  char *temporary = need(malloc(room));
  int fd = open_new(path, temporary, room);
  bool good = fd >= 0;
  if (good && old) good = fchmod(fd, old->st_mode & 07777) == 0;
  if (fd >= 0) good = put_and_close(fd, bytes, n) && good;
  good = good && rename(temporary, path) == 0;
  int why = errno;
  if (!good && fd >= 0) unlink(temporary);
  free(temporary);
  errno = why;
  return good;
}

bool file_replace(const char *path, const void *bytes, size_t n) {
  struct stat old;
  if (strcmp(path, "-") == 0) return file_put(stdout, bytes, n);
  if (stat(path, &old) != 0) return errno == ENOENT && replace_file(path, bytes, n, NULL);
  if (S_ISREG(old.st_mode)) return replace_file(path, bytes, n, &old);
  return put_and_close(open(path, O_WRONLY | O_CLOEXEC), bytes, n);
}

int stdout_write(void *user, const char *bytes, size_t n) {
  (void)user;
  return fwrite(bytes, 1, n, stdout) != n;
}
