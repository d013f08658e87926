// seal.c - marks machine code that leaves the library, and checks it when it comes back. In: a
// kernel's text, and its code. Out: the code with a seal after it, which the driver does not read:
// hashes of the text and of the code. The seal guards against mistakes (another kernel's code,
// other parameters, half a file), not against malice.
#include "runtime/cuda/build.h"

#include <string.h>

typedef struct Seal {
  char magic[16];
  u64 text, code;  // hashes
} Seal;

static Seal seal_of(const CudaText *text, const void *code, size_t n) {
  Seal s = {.text = sc_hash(text->text.at, text->text.n), .code = sc_hash(code, n)};
  memcpy(s.magic, "schedc sealed 1\n", sizeof s.magic);
  return s;
}

Blob sc_seal(Sc *sc, const CudaText *text, Blob code) {
  Seal s = seal_of(text, code.at, code.n);
  char *at = sc_new(sc, code.n + sizeof s);
  memcpy(at, code.at, code.n);
  memcpy(at + code.n, &s, sizeof s);
  return (Blob){at, code.n + sizeof s};
}

const char *sc_unseal(Sc *sc, const CudaText *text, Blob sealed, const void **code) {
  Seal is;
  if (sealed.n <= sizeof is) return "it is too short";
  char *at = sc_new(sc, sealed.n);  // a copy: aligned, and the caller's to free
  size_t n = sealed.n - sizeof is;
  memcpy(at, sealed.at, sealed.n);
  memcpy(&is, at + n, sizeof is);
  Seal want = seal_of(text, at, n);
  *code = at;
  if (memcmp(is.magic, want.magic, sizeof is.magic) != 0)
    return "schedc has not written it as machine code, or it is cut off";
  if (is.code != want.code) return "it is damaged";
  return is.text == want.text ? NULL
                              : "it is of another kernel, other parameters, or another schedc";
}
