// file.c - files of the caller, read with a bound. In: a path, and how many bytes it may have. Out:
// its bytes, or a report that says what is wrong with it, in words of the system's where it is
// that.
#include "runtime/data/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool failed(Sc *sc, const char *what) {
  sc_report(sc, D_F_READ, (Span){0, 0}, "%s: %s", what, strerror(errno));
  return false;
}

bool sc_file_open(Sc *sc, const char *path, File *f) {
  struct stat about;
  *f = sc_no_file();
  f->fd = open(path, O_RDONLY | O_CLOEXEC);
  if (f->fd < 0 || fstat(f->fd, &about)) return failed(sc, "cannot open the file");
  if (S_ISREG(about.st_mode)) f->size = about.st_size;
  return true;
}

void sc_file_close(File *f) {
  if (f->fd >= 0) close(f->fd);
  f->fd = -1;
}

bool sc_file_read(Sc *sc, const File *f, void *to, size_t room, size_t *n) {
  for (*n = 0; *n < room;) {
    ssize_t got = read(f->fd, (char *)to + *n, room - *n);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(sc, "cannot read the file");
    if (!got) break;
    *n += (size_t)got;
  }
  return true;
}

// Twice as much room whenever it is full: how long a file is that is no regular one is not known.
bool sc_file_all(Sc *sc, const File *f, size_t limit, Image *out) {
  size_t got, room = f->size < 0 ? 1 << 16 : (u64)f->size < limit ? (size_t)f->size + 1 : limit + 1;
  *out = (Image){0};
  for (;; room = room < limit / 2 ? room * 2 : limit + 1) {
    char *at = sc_new(sc, room);
    if (out->n) memcpy(at, out->at, out->n);
    if (!sc_file_read(sc, f, at + out->n, room - out->n, &got)) return false;
    out->at = at;
    out->n += got;
    if (out->n < room) return true;
    if (room > limit) break;
  }
  sc_report(sc, D_F_READ, (Span){0, 0}, "the %s more than %zu MiB, which is the limit",
            f->size < 0 ? "device or pipe gives" : "file has", limit >> 20);
  return false;
}
