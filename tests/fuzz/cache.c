// cache.c - libFuzzer target: any bytes as an entry of the cache. As they are, and behind a head
// with a checksum that fits, so that what lies behind it is reached too. The parts of an accepted
// image lie inside it.
//   clang -fsanitize=fuzzer,address,undefined -Iinclude -Ilang -Icompiler -Iruntime
//   tests/fuzz/cache.c …
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "runtime/cuda/build.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void inside(const uint8_t *image, size_t n, Blob part) {
  const uint8_t *at = part.at;
  if (at < image || part.n > n || at + part.n > image + n) abort();
}

static void try(const uint8_t *image, size_t n) {
  Blob key, log, code;
  if (!sc_cache_parse(image, n, &key, &log, &code)) return;
  inside(image, n, key);
  inside(image, n, log);
  inside(image, n, code);
}

// With a head that is right but for lengths, which the first three bytes give: the last of them may
// be off by a few.
static void with_head(const uint8_t *bytes, size_t n) {
  enum { HEAD = 48, CHECK = 16, AFTER = 24 };
  uint8_t *image = malloc(HEAD + n);
  if (!image || n < 3) {
    free(image);
    return;
  }
  uint64_t length[3] = {bytes[0] % 32, bytes[1] % 32, 0};
  length[2] = n - length[0] - length[1] + bytes[2] % 4;
  memcpy(image, "schedc cubin 2\n", CHECK);
  memcpy(image + AFTER, length, sizeof length);
  memcpy(image + HEAD, bytes, n);
  uint64_t sum = XXH3_64bits(image + AFTER, HEAD + n - AFTER);
  memcpy(image + CHECK, &sum, sizeof sum);
  try(image, HEAD + n);
  free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  try(bytes, n);
  with_head(bytes, n);
  return 0;
}
