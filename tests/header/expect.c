// expect.c - what the library's own launcher would ask of the driver for a launch, as text: the other opinion on headers.
//   expect FILE KERNEL [SCALAR=VALUE | TENSOR=ADDRESS:EXTENT,EXTENT…:STRIDE,STRIDE…] …
// The first line is the size of the argument block and the number of maps.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/gpu.h"

enum { SMS = 132, MEMORY = 0x7000000, WORKSPACE = 0x6000000 };

static const Kernel *compile(Sc *sc, const char *path, const char *unit) {
  static char source[1 << 16];
  FILE *f = fopen(path, "rb");
  size_t n = f ? fread(source, 1, sizeof source, f) : 0;
  if (f) fclose(f);
  sc->text = sc_text(sc, path, source, n);
  return sc_compile_to(sc, sc_parse(sc, sc->text), &(Choice){.unit = unit}, NULL);
}

static void read_tensor(Sc *sc, const Kernel *k, const char *name, const char *text, schedc_tensor *t) {
  u32 i = 0;
  char *end;
  while (i < k->buf.n && (strcmp(k->buf.at[i].name, name) || k->buf.at[i].space != SP_TENSOR)) i++;
  if (i == k->buf.n) exit(2);
  *t = (schedc_tensor){.name = sc_printf(sc, "%s", name), .type = (schedc_type)k->buf.at[i].elem, .rank = k->buf.at[i].rank};
  t->data = (void *)(uintptr_t)strtoull(text, &end, 16);
  for (size_t d = 0; d < t->rank; d++) t->shape[d] = strtoll(end + 1, &end, 10);
  for (size_t d = 0; d < t->rank; d++) t->strides[d] = strtoll(end + 1, &end, 10);
}

static void show_map(const Kernel *k, const TmaMap *m, const Binding *b) {
  MapShape s;
  sc_map_shape(k, m, &b->buf[m->tensor], &s);
  void *stand_in = (void *)(uintptr_t)(MEMORY + (k->buf.at[m->tensor].dir & SCHEDC_OUT ? SINK_AT : ZERO_AT));
  printf("map %d 5 %p", s.type, s.empty ? stand_in : (void *)b->buf[m->tensor].at);
  for (int i = 0; i < 5; i++) printf(" %llu", (unsigned long long)s.extent[i]);
  for (int i = 1; i < 5; i++) printf(" %llu", (unsigned long long)s.stride[i]);
  for (int i = 0; i < 5; i++) printf(" %u 1", s.box[i]);
  printf(" 1 0 %d 3 0\n", s.swizzle);
}

static void show_launch(Sc *sc, const Kernel *k, const CudaText *text, const Binding *b) {
  Grid grid;
  if (!sc_fit(sc, k, text, b) || !sc_grid(sc, k, b, SMS, &grid)) {
    printf("refused\n");
    return;
  }
  if (!grid.tiles) return;
  size_t n = sc_arg_bytes(k, text), turn = 0;
  unsigned char *args = sc_new(sc, n + 16);
  ArgSlot *slot = NEWS(sc, ArgSlot, k->buf.n + k->turn.n + 2);
  u32 slots = sc_pack(k, text, b, grid.tiles, args, slot);
  for (u32 i = 0; i < slots; i++) {
    u64 at = MEMORY + COUNTERS_AT;
    if (slot[i].kind == SLOT_TENSOR) memcpy(&at, &b->buf[slot[i].ref].at, sizeof at);
    if (slot[i].kind == SLOT_TURN) {
      i64 counters = 0;
      sc_turn_counters(sc, k, b, slot[i].ref, &counters);
      at = WORKSPACE + turn;
      turn = (turn + (size_t)counters * 4 + 255) / 256 * 256;
    }
    memcpy(args + slot[i].offset, &at, sizeof at);
  }
  if (turn) printf("zero %x 0 %zu\n", WORKSPACE, turn);
  for (u32 i = 0; i < text->maps; i++) show_map(k, &text->map[i], b);
  printf("launch 1 %u 1 1 %u 1 1 %u 1\nblock ", grid.ctas, k->threads, k->smem);
  for (size_t i = 0; i < n; i++) printf("%02x", args[i]);
  printf("\n");
}

int main(int argc, char **argv) {
  Sc sc;
  jmp_buf unwind;
  schedc_tensor tensor[32];
  schedc_scalar scalar[32];
  size_t tensors = 0, scalars = 0;
  sc_init(&sc, NULL);
  sc.unwind = &unwind;
  if (setjmp(unwind) || argc < 3) return 3;
  const Kernel *k = compile(&sc, argv[1], argv[2]);
  if (!k) return 2;
  const CudaText *text = sc_cuda(&sc, k, &(CudaOptions){0});
  printf("%zu %u\nfunction %s\nattribute 8 %u\n", sc_arg_bytes(k, text), text->maps, text->name, k->smem);
  for (int i = 3; i < argc; i++) {
    char *eq = strchr(argv[i], '=');
    *eq = 0;
    if (strchr(eq + 1, ':')) read_tensor(&sc, k, argv[i], eq + 1, &tensor[tensors++]);
    else scalar[scalars++] = (schedc_scalar){argv[i], strtod(eq + 1, NULL)};
  }
  const Binding *b = sc_bind_tensors(&sc, k, tensor, tensors, scalar, scalars);
  if (!b) printf("refused\n");
  else show_launch(&sc, k, text, b);
  sc_free(&sc);
  return 0;
}
