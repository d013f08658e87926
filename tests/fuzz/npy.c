// npy.c - fuzz target: any bytes as an .npy file. An accepted image's data lies inside it.
#include <stdlib.h>

#include "tests/unit/npy_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  Npy npy;
  if (parse_image(&npy, bytes, n)) return -1;
  const uint8_t *data = npy.data;
  if (data < bytes || data + npy.size > bytes + n) abort();
  char header[1024];
  if (!sc_npy_header(header, sizeof header, npy.descr, npy.bytes, npy.shape, npy.rank)) abort();
  return 0;
}
