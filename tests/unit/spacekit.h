// spacekit.h - a space over a text, and the rest of a small kernel. The including file has included
// cmocka.h.
#ifndef SPACEKIT_H
#define SPACEKIT_H

#include <stdbool.h>
#include <stdio.h>

#include "apikit.h"
#include "files.h"

#define ROLES                              \
  "  role all : 1 warpgroup, 128 regs {\n" \
  "    reg v : f32[64, 32]\n"              \
  "    v[i,j] = X[x*64 + i, j]\n"          \
  "    Y[x*64 + i, j] = v[i,j]\n"          \
  "  }\n"                                  \
  "}\n"
#define ARGUMENTS "  in X : f32[M, 32]\n  out Y : f32[M, 32]\n  grid (x : cdiv(M, 64))\n"

static inline schedc_space *open_space(Fixture *f, const char *text, const char *unit,
                                       const char *kase, const schedc_param *params, size_t n) {
  schedc_space *space = NULL;
  schedc_source *source = parse(f, text);
  assert_int_equal(schedc_space_new(&space, f->context, source, unit, kase, params, n), SCHEDC_OK);
  schedc_source_free(source);  // the space keeps it
  return space;
}

static inline char *text_of_file(const char *path) {
  size_t n;
  return read_file(path, &n);
}

#endif
