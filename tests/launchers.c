// launchers.c - four threads launch one loaded kernel as fast as they can, each with a library
// context, a stream and inputs of its own, and each launch with an output of its own: each must be
// written, by the right launch. tests/device.py builds it with libschedc and the model of a GPU,
// whose memory is the host's.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#include <schedc.h>

int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxPushCurrent_v2(void *context);
int cuCtxSynchronize(void);
int cuMemAlloc_v2(uint64_t *at, size_t bytes);
int cuStreamSynchronize(void *stream);
int cuStreamCreate(void **stream, unsigned flags);

enum { THREADS = 4, LAUNCHES = 100, ROUNDS = 12, ROWS = 4, COLUMNS = 8, ELEMENTS = ROWS * COLUMNS };

static const char text[] =
    "kernel move {\n"
    "  in X : f32[M, 8]\n"
    "  out Y : f32[M, 8]\n"
    "  grid (x : cdiv(M, 64))\n"
    "  role all : 1 warpgroup, 64 regs {\n"
    "    reg v : f32[64, 8]\n"
    "    v[i,j] = X[x*64 + i, j]\n"
    "    Y[x*64 + i, j] = v[i,j]\n"
    "  }\n"
    "}\n";

typedef struct Launcher {
  void *device_context;
  schedc_loaded *loaded;
  float value, *x, *y;
  int failed;
  pthread_t thread;
} Launcher;

static pthread_barrier_t all;  // so that their launches meet

static void print_diagnostic(void *user, const schedc_diagnostic *d) {
  (void)user;
  fputs(d->rendered, stdout);
}

static schedc_context *open_context(void) {
  schedc_options options = SCHEDC_OPTIONS_INIT;
  schedc_context *context = NULL;
  options.sink = print_diagnostic;
  schedc_open(&context, &options);
  return context;
}

static float *allocate(size_t elements) {
  uint64_t at = 0;
  return cuMemAlloc_v2(&at, elements * sizeof(float)) ? NULL : (float *)(uintptr_t)at;
}

static void *launch_all(void *arg) {
  Launcher *l = arg;
  schedc_context *context = open_context();
  void *stream = NULL;
  l->failed = cuCtxPushCurrent_v2(l->device_context) || cuStreamCreate(&stream, 1);
  for (int round = 0; round < ROUNDS; round++) {
    pthread_barrier_wait(&all);
    for (int i = 0; i < LAUNCHES && !l->failed; i++) {
      const schedc_tensor tensors[] = {
          {"X", l->x, SCHEDC_F32, 2, {ROWS, COLUMNS}, {COLUMNS, 1}},
          {"Y",
           l->y + (size_t)(round * LAUNCHES + i) * ELEMENTS,
           SCHEDC_F32,
           2,
           {ROWS, COLUMNS},
           {COLUMNS, 1}},
      };
      l->failed =
          schedc_launch(context, l->loaded, stream, tensors, 2, NULL, 0, NULL, 0) != SCHEDC_OK;
    }
    l->failed |= cuStreamSynchronize(stream);
  }
  schedc_close(context);
  return NULL;
}

// Elements that are not the thread's.
static int count_wrong(const Launcher *l) {
  int wrong = 0;
  for (int i = 0; i < ROUNDS * LAUNCHES * ELEMENTS; i++) wrong += !(l->y[i] == l->value);
  return wrong;
}

static schedc_status load(schedc_context *context, schedc_kernel **kernel, schedc_loaded **loaded) {
  schedc_source *source;
  schedc_status status = schedc_parse(&source, context, "move.sched", text, sizeof text - 1);
  if (!status) status = schedc_instantiate(kernel, context, source, NULL, NULL, NULL, 0);
  schedc_source_free(source);
  return status ? status : schedc_load(loaded, context, *kernel, NULL);
}

int main(void) {
  Launcher launcher[THREADS];
  schedc_context *context = open_context();
  schedc_kernel *kernel = NULL;
  schedc_loaded *loaded = NULL;
  void *device_context;
  int wrong = 0;
  if (cuDevicePrimaryCtxRetain(&device_context, 0) || cuCtxPushCurrent_v2(device_context)) return 1;
  if (load(context, &kernel, &loaded)) return 1;
  pthread_barrier_init(&all, NULL, THREADS);
  for (int t = 0; t < THREADS; t++) {
    Launcher *l = &launcher[t];
    *l = (Launcher){device_context,
                    loaded,
                    (float)(t + 1),
                    allocate(ELEMENTS),
                    allocate((size_t)ROUNDS * LAUNCHES * ELEMENTS),
                    0,
                    0};
    if (!l->x || !l->y) return 1;
    for (int i = 0; i < ELEMENTS; i++) l->x[i] = l->value;
    pthread_create(&l->thread, NULL, launch_all, l);
  }
  for (int t = 0; t < THREADS; t++) pthread_join(launcher[t].thread, NULL);
  if (cuCtxSynchronize()) wrong = 1;
  for (int t = 0; t < THREADS; t++) wrong += launcher[t].failed + count_wrong(&launcher[t]);
  printf("%d wrong of %d elements\n", wrong, THREADS * ROUNDS * LAUNCHES * ELEMENTS);
  schedc_unload(loaded);
  schedc_kernel_free(kernel);
  schedc_close(context);
  return wrong != 0;
}
