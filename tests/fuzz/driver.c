// driver.c - runs a fuzz target on mutants of seed files for a bounded time, the same mutants every
// time, or those of the number SCHEDC_FUZZ_SEED (with libFuzzer instead: clang -fsanitize=fuzzer
// and the target alone). A crash is the sanitizer's; before each input it is written to the file
// named by SCHEDC_FUZZ_LAST, if that is set. A target returns -1 for what it is right to refuse; if
// it refuses all mutants, the seeds are of no use, which is exit code 4.
//
//   fuzz_NAME SECONDS [SEED-FILE …]
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_INPUT = 1 << 16, MAX_SEEDS = 512 };

typedef struct Bytes {
  uint8_t at[MAX_INPUT];
  size_t n;
} Bytes;

static uint64_t next(uint64_t *state) {  // splitmix64
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static void replace(Bytes *b, size_t at, size_t cut, const uint8_t *in, size_t n) {
  if (b->n - cut + n > MAX_INPUT) return;
  memmove(b->at + at + n, b->at + at + cut, b->n - at - cut);
  if (n) memcpy(b->at + at, in, n);
  b->n += n - cut;
}

// One change: a byte, a range removed, a piece of another seed put in, a token put in.
static void mutate(Bytes *b, const Bytes *other, uint64_t *state) {
  static const char *const token[] = {"wait ",
                                      "release ",
                                      "(",
                                      "[",
                                      "{",
                                      "}",
                                      "]",
                                      ")",
                                      "..",
                                      "0",
                                      "-",
                                      "not ",
                                      "9223372036854775807",
                                      " @ ",
                                      "if ",
                                      "for t in 0 .. 9 {",
                                      "1e999",
                                      "\n",
                                      "\0",
                                      "\xff",
                                      " = ",
                                      "sum(j) ",
                                      "def f(x) = f(x)"};
  size_t at = next(state) % (b->n + 1), left = b->n - at;
  uint8_t byte = (uint8_t)next(state);
  switch (next(state) % 4) {
    case 0:
      if (left) b->at[at] = byte;
      return;
    case 1:
      if (left) replace(b, at, next(state) % (left < 64 ? left : 64) + 1, NULL, 0);
      return;
    case 2: {
      if (!other->n) return;
      size_t from = next(state) % other->n, n = next(state) % 128;
      uint8_t piece[128];
      if (n > other->n - from) n = other->n - from;
      memcpy(piece, other->at + from, n);
      replace(b, at, 0, piece, n);
      return;
    }
    default: {
      const char *t = token[next(state) % (sizeof token / sizeof *token)];
      replace(b, at, 0, (const uint8_t *)t, *t ? strlen(t) : 1);
      return;
    }
  }
}

static void save(const Bytes *b) {
  const char *path = getenv("SCHEDC_FUZZ_LAST");
  FILE *f = path ? fopen(path, "wb") : NULL;
  if (!f) return;
  fwrite(b->at, 1, b->n, f);
  fclose(f);
}

int main(int argc, char **argv) {
  double limit = argc > 1 ? atof(argv[1]) : 5;
  const char *number = getenv("SCHEDC_FUZZ_SEED");
  size_t seeds = 0, runs = 0, taken = 0;
  Bytes *seed = calloc(MAX_SEEDS, sizeof *seed), *input = calloc(1, sizeof *input);
  if (!seed || !input) return 3;
  for (int i = 2; i < argc && seeds < MAX_SEEDS; i++) {
    FILE *f = fopen(argv[i], "rb");
    if (!f) continue;
    seed[seeds].n = fread(seed[seeds].at, 1, MAX_INPUT, f);
    seeds++;
    fclose(f);
  }
  if (!seeds) seeds = 1;  // the empty input
  uint64_t state = number ? strtoull(number, NULL, 10) : 1;
  printf("seed %llu\n", (unsigned long long)state);
  fflush(stdout);
  time_t start = time(NULL);
  for (; difftime(time(NULL), start) < limit; runs++) {
    // Every other one is a mutant; the others are the seeds themselves, as long as there are more.
    int mutant = runs % 2 || runs >= 2 * seeds;
    *input = seed[runs / 2 % seeds];
    if (mutant) {
      for (uint64_t n = next(&state) % 6; n-- > 0;)
        mutate(input, &seed[next(&state) % seeds], &state);
    }
    save(input);
    uint8_t *exact = malloc(input->n + 1);  // so that reading past the end is seen
    if (!exact) return 3;
    memcpy(exact, input->at, input->n);
    exact = realloc(exact, input->n ? input->n : 1);
    int refused = LLVMFuzzerTestOneInput(exact, input->n);
    taken += !refused && mutant;
    free(exact);
  }
  printf("%zu inputs from %zu seeds, %zu mutants taken\n", runs, seeds, taken);
  free(seed);
  free(input);
  return taken ? 0 : 4;
}
