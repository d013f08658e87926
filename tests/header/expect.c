// expect.c - what the library's own launcher asks of the driver for a launch, as text: the other
// opinion on headers.
//   expect FILE KERNEL [SCALAR=VALUE | TENSOR=ADDRESS:EXTENT,EXTENT…:STRIDE,STRIDE…] …
// The first line lists the functions: name, size of the argument block, tensor maps.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "asked.h"
#include "runtime/cuda/gpu.h"

enum { SMS = 132, MEMORY = 0x7000000, WORKSPACE = 0x6000000 };

// ---- a driver that prints

static Loaded loaded;

static int text_of(int e, const char **text) { return *text = e ? "an error" : "no error", 0; }
static int current(void **context) { return *context = &loaded, 0; }
static int device(int *number) { return *number = 0, 0; }
static int attribute(int *v, int which, int number) {
  (void)number;
  return *v = which == 16 ? SMS : which == 75 ? 9 : 0, 0;
}
static int push(void *context) { return (void)context, 0; }
static int load_module(void **module, const void *image) {
  return (void)image, *module = &loaded, 0;
}
static int unload_module(void *module) { return (void)module, 0; }
static int function(void **f, void *module, const char *name) {
  (void)module;
  printf("function %s\n", name);
  return *(const char **)f = name, 0;
}
static int set_function(void *f, int which, int value) {
  return printf("attribute %s %d %d\n", (char *)f, which, value), 0;
}
static int clusters(int *n, void *f, const CUlaunchConfig *launch) {
  const unsigned grid[] = {launch->gridDimX, launch->gridDimY, launch->gridDimZ};
  const unsigned block[] = {launch->blockDimX, launch->blockDimY, launch->blockDimZ};
  say_clusters(f, grid, block, launch->sharedMemBytes);
  return *n = 5, 0;
}
static int allocate(u64 *at, size_t bytes) { return *at = bytes ? MEMORY : 0, 0; }
static int release(u64 at) { return (void)at, 0; }
static int clear(u64 at, unsigned char v, size_t n) { return (void)at, (void)v, (void)n, 0; }
static int clear_later(u64 at, unsigned char v, size_t n, void *stream) {
  (void)stream;
  printf("zero %llx %d %zu\n", (unsigned long long)at, v, n);
  return 0;
}
static int capturing(void *stream, int *status) { return (void)stream, *status = 0, 0; }
static int stream_id(void *stream, unsigned long long *id) { return *id = (uintptr_t)stream, 0; }
static int synchronize(void *stream) { return (void)stream, 0; }
static int encode(void *map, int type, unsigned rank, void *at, const u64 *extent,
                  const u64 *stride, const unsigned *box, const unsigned *step, int interleave,
                  int swizzle, int promotion, int fill) {
  memcpy(map, &at, sizeof at);
  say_map(map, type, rank, extent, stride, box, step, interleave, swizzle, promotion, fill);
  return 0;
}
static int replace(void *map, void *at) { return memcpy(map, &at, sizeof at), 0; }
static const SclStep *step_of(const char *name) {
  const SclTable *t = &loaded.tabled.table;
  u32 i = 0;
  while (i < t->steps && strcmp(t->function[t->step[i].function].name, name)) i++;
  return i < t->steps ? &t->step[i] : NULL;
}
// The number of tiles is last. NULL: the function that checks lists.
static size_t block_bytes(const SclStep *s) {
  return s ? loaded.tabled.table.slot[s->slot.to - 1].offset + 4 : sizeof(SclLists);
}
static u32 maps(const SclStep *s) { return s ? s->map.to - s->map.from : 0; }
static int launch(const CUlaunchConfig *l, void *f, void **param, void **extra) {
  const SclStep *s = step_of(f);
  const unsigned size[] = {l->gridDimX,  l->gridDimY,  l->gridDimZ,      l->blockDimX,
                           l->blockDimY, l->blockDimZ, l->sharedMemBytes};
  const CUlaunchAttribute *a = l->attrs;
  const int overlaps = l->numAttrs && a->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
                           ? a->value.programmaticStreamSerializationAllowed
                           : 0;
  say_launch(f, 0, overlaps, size, param, maps(s), block_bytes(s), extra);
  return 0;
}

static const Driver driver = {.cuGetErrorString = text_of,
                              .cuCtxGetCurrent = current,
                              .cuCtxGetDevice = device,
                              .cuDeviceGetAttribute = attribute,
                              .cuCtxPushCurrent = push,
                              .cuCtxPopCurrent = current,
                              .cuModuleLoadData = load_module,
                              .cuModuleUnload = unload_module,
                              .cuModuleGetFunction = function,
                              .cuFuncSetAttribute = set_function,
                              .cuOccupancyMaxActiveClusters = clusters,
                              .cuMemAlloc = allocate,
                              .cuMemFree = release,
                              .cuMemsetD8 = clear,
                              .cuMemsetD8Async = clear_later,
                              .cuStreamIsCapturing = capturing,
                              .cuStreamGetId = stream_id,
                              .cuStreamSynchronize = synchronize,
                              .cuTensorMapEncodeTiled = encode,
                              .cuTensorMapReplaceAddress = replace,
                              .cuLaunchKernelEx = launch};

// ---- a launch

static const Kernel *compile(Sc *sc, const char *path, const char *unit) {
  static char source[1 << 16];
  FILE *f = fopen(path, "rb");
  size_t n = f ? fread(source, 1, sizeof source, f) : 0;
  if (f) fclose(f);
  sc->text = sc_text(sc, path, source, n);
  Compilation c = {.text = sc->text, .choice = {.unit = unit}};
  return sc_compile(sc, &c, NULL, "place") ? c.k : NULL;
}

static void say_functions(void) {
  const SclTable *t = &loaded.tabled.table;
  for (u32 i = 0; i < t->steps; i++) {
    const SclStep *s = &t->step[i];
    printf("%s %zu %u ", t->function[s->function].name, block_bytes(s), maps(s));
  }
  if (t->checks) printf("%s %zu %u ", t->function[t->checker].name, block_bytes(NULL), 0u);
  printf("\n");
}

static void read_tensor(const Kernel *k, const char *name, const char *text,
                        schedc_tensor *tensor) {
  u32 i = 0;
  char *end;
  while (i < loaded.tensors && strcmp(k->buf.at[loaded.tabled.tensor[i]].name, name)) i++;
  if (i == loaded.tensors) exit(2);
  const Buf *b = &k->buf.at[loaded.tabled.tensor[i]];
  schedc_tensor *t = &tensor[i];
  *t = (schedc_tensor){.type = (schedc_type)b->elem, .rank = b->rank};
  t->data = (void *)(uintptr_t)strtoull(text, &end, 16);
  for (size_t d = 0; d < t->rank; d++) t->shape[d] = strtoll(end + 1, &end, 10);
  for (size_t d = 0; d < t->rank; d++) t->strides[d] = strtoll(end + 1, &end, 10);
}

static void read_scalar(const Kernel *k, const char *name, const char *text, double *scalar) {
  u32 i = 0;
  while (i < k->arg.n && strcmp(k->arg.at[i].name, name)) i++;
  if (i == k->arg.n) exit(2);
  scalar[i] = strtod(text, NULL);
}

int main(int argc, char **argv) {
  Sc sc;
  jmp_buf unwind;
  static schedc_tensor tensor[32];
  static double scalar[32];
  sc_init(&sc, NULL);
  sc.unwind = &unwind;
  if (setjmp(unwind) || argc < 3) return 3;
  const Kernel *k = compile(&sc, argv[1], argv[2]);
  if (!k || !sc_emit_all(&sc, k, &(BuildOptions){0}, &loaded)) return 2;
  say_functions();
  for (int i = 3; i < argc; i++) {
    char *eq = strchr(argv[i], '=');
    *eq = 0;
    if (strchr(eq + 1, ':')) read_tensor(k, argv[i], eq + 1, tensor);
    else read_scalar(k, argv[i], eq + 1, scalar);
  }
  if (sc_load(&loaded, &driver)) return 3;
  const LaunchCall call = {
      .tensor = tensor, .scalar = scalar, .workspace = WORKSPACE, .workspace_bytes = SIZE_MAX};
  if (sc_launch(&sc, &loaded, &call)) printf("refused\n");
  else printf("workspace %zu\n", sc_plan(&sc, &loaded, &call)->bytes);
  sc_unload(&loaded);
  sc_free(&sc);
  return 0;
}
