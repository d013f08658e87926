// npy_image.h - a whole .npy file in memory; the library reads its header and its data apart.
#ifndef NPY_IMAGE_H
#define NPY_IMAGE_H

#include "runtime/run.h"

// The data points into the image. NULL, or what is wrong.
static inline const char *parse_image(Npy *out, const void *image, size_t n) {
  const char *wrong = sc_npy_head(out, image, n);
  if (wrong) return wrong;
  size_t before = (size_t)((const u8 *)out->data - (const u8 *)image);
  return out->size > n - before ? sc_npy_short : NULL;
}

#endif
