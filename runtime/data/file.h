// file.h - files of the caller, read with a bound. What is opened is closed by whoever called, also
// when a call has unwound.
#ifndef SC_FILE_H
#define SC_FILE_H

#include "base/base.h"

typedef struct File {
  int fd;    // -1: none
  i64 size;  // of a regular file; -1: it is none
} File;
static inline File sc_no_file(void) { return (File){-1, -1}; }
void sc_file_close(File *f);

// False after a report (F.read), as the next two.
bool sc_file_open(Sc *sc, const char *path, File *f);
// *n: less than `room` at the file's end alone.
bool sc_file_read(Sc *sc, const File *f, void *to, size_t room, size_t *n);

// All of it, which may be `limit` bytes, a whole number of MiB.
typedef struct Image {
  const char *at;
  size_t n;
} Image;
bool sc_file_all(Sc *sc, const File *f, size_t limit, Image *out);

#endif
