// fakedriver.h - a CUDA driver of one's own, which writes down what it is asked for, and kernels
// loaded with it. The including file has included cmocka.h.
#ifndef FAKEDRIVER_H
#define FAKEDRIVER_H

#include <string.h>

#include "runtime/cuda/gpu.h"

// ---- a driver that notes

typedef struct DriverLog {
  u32 encoded, replaced, launches, overlapping, memsets;
  bool zeroing;  // asked for, and not waited for yet
  u64 memset_bytes;
  unsigned grid, threads, shared;
  u64 extent[5], stride[5];
  unsigned box[5];
  unsigned char args[512];
  size_t arg_bytes;
  u32 maps;
  bool capturing, refuse_stride_0, lost;
  _Alignas(16) unsigned char host[4096];
} DriverLog;
static DriverLog note;
static int the_context;
static int room_for_clusters = 1000;  // those that the GPU holds at once
static void *current = &the_context;

static inline int fake_text(int e, const char **text) {
  return *text = e ? "an error" : "no error", 0;
}
static inline int fake_current(void **context) { return *context = current, 0; }
static inline int fake_device(int *device) { return *device = 0, 0; }
static inline int fake_attribute(int *v, int attribute, int device) {
  (void)device;
  *v = attribute == 16 ? 132 : attribute == 75 ? 9 : 0;
  return 0;
}
static inline int fake_push(void *context) { return current = context, 0; }
static inline int fake_pop(void **context) { return *context = current, 0; }
static inline int fake_module(void **module, const void *image) {
  (void)image;
  *module = &note;
  return 0;
}
static inline int fake_unload(void *module) { return module != &note; }
static inline int fake_function(void **f, void *module, const char *name) {
  (void)module, (void)name;
  *f = &note;
  return 0;
}
static inline int fake_set(void *f, int attribute, int value) {
  (void)f, (void)attribute, (void)value;
  return 0;
}
static inline int fake_clusters(int *n, void *f, const CUlaunchConfig *launch) {
  assert_true(f == &note && launch->gridDimX > 1 && launch->blockDimX && !launch->numAttrs);
  *n = room_for_clusters;
  return 0;
}
static inline int fake_alloc(u64 *at, size_t bytes) {
  (void)bytes;
  *at = 0x10000000;
  return 0;
}
static inline int fake_free(u64 at) { return at == 0; }
static inline int fake_memset(u64 at, unsigned char v, size_t n) {
  (void)at, (void)v, (void)n;
  note.zeroing = true;
  return 0;
}
static inline int fake_wait(void *stream) {
  if (!stream) note.zeroing = false;
  return 0;
}
static inline int fake_memset_async(u64 at, unsigned char v, size_t n, void *stream) {
  (void)stream;
  assert_true(at % 256 == 0 && v == 0);
  note.memsets++;
  note.memset_bytes = n;
  return 0;
}
static inline int fake_host(void **at, size_t bytes, unsigned flags) {
  (void)flags;
  assert_true(bytes <= sizeof note.host);
  *at = note.host;
  return 0;
}
static inline int fake_host_free(void *at) { return at != note.host; }
static inline int fake_host_device(u64 *device, void *at, unsigned flags) {
  (void)at, (void)flags;
  *device = 0x20000000;
  return 0;
}
static inline int fake_capturing(void *stream, int *status) {
  (void)stream;
  *status = note.capturing;
  return 0;
}
static inline int fake_stream_id(void *stream, unsigned long long *id) {
  return *id = (uintptr_t)stream, note.lost;
}
static inline int fake_encode(void *map, int type, unsigned rank, void *address, const u64 *dims,
                              const u64 *strides, const unsigned *box,
                              const unsigned *element_strides, int interleave, int swizzle,
                              int promotion, int fill) {
  (void)type, (void)element_strides, (void)interleave, (void)swizzle, (void)promotion, (void)fill;
  assert_int_equal((uintptr_t)map % 64, 0);
  assert_int_equal(rank, 5);
  for (u32 i = 0; i < 5; i++) {
    assert_true(dims[i] >= 1 && dims[i] <= (u64)1 << 32 && box[i] >= 1 && box[i] <= 256);
    note.extent[i] = dims[i];
    note.box[i] = box[i];
    if (i) note.stride[i] = strides[i - 1];
    if (i && strides[i - 1] == 0 && note.refuse_stride_0) return 1;
    assert_true(!i || strides[i - 1] % 16 == 0);
  }
  note.encoded++;
  memcpy(map, &address, sizeof address);
  return (uintptr_t)address % 16 != 0;
}
static inline int fake_replace(void *map, void *address) {
  note.replaced++;
  memcpy(map, &address, sizeof address);
  return 0;
}
static inline int fake_launch(const CUlaunchConfig *l, void *f, void **params, void **extra) {
  assert_true(f == &note && l->gridDimY == 1 && l->gridDimZ == 1 && l->blockDimY == 1 &&
              l->blockDimZ == 1 && !extra && !note.zeroing);
  for (u32 i = 0; i < l->numAttrs; i++) {
    assert_int_equal(l->attrs[i].id, 6);  // programmatic stream serialization
    note.overlapping += l->attrs[i].value.programmaticStreamSerializationAllowed;
  }
  note.launches++;
  note.grid = l->gridDimX;
  note.threads = l->blockDimX;
  note.shared = l->sharedMemBytes;
  if (note.arg_bytes) memcpy(note.args, params[note.maps], note.arg_bytes);
  return 0;
}

static const Driver fake = {.cuGetErrorString = fake_text,
                            .cuCtxGetCurrent = fake_current,
                            .cuCtxGetDevice = fake_device,
                            .cuDeviceGetAttribute = fake_attribute,
                            .cuCtxPushCurrent = fake_push,
                            .cuCtxPopCurrent = fake_pop,
                            .cuModuleLoadData = fake_module,
                            .cuModuleUnload = fake_unload,
                            .cuModuleGetFunction = fake_function,
                            .cuFuncSetAttribute = fake_set,
                            .cuOccupancyMaxActiveClusters = fake_clusters,
                            .cuMemAlloc = fake_alloc,
                            .cuMemFree = fake_free,
                            .cuMemsetD8 = fake_memset,
                            .cuMemHostAlloc = fake_host,
                            .cuMemFreeHost = fake_host_free,
                            .cuMemHostGetDevicePointer = fake_host_device,
                            .cuMemsetD8Async = fake_memset_async,
                            .cuStreamSynchronize = fake_wait,
                            .cuStreamGetId = fake_stream_id,
                            .cuStreamIsCapturing = fake_capturing,
                            .cuTensorMapEncodeTiled = fake_encode,
                            .cuTensorMapReplaceAddress = fake_replace,
                            .cuLaunchKernelEx = fake_launch};

// ---- kernels

typedef struct Fixture {
  Sc sc;
  jmp_buf unwind;
  Loaded l;
} Fixture;

static inline void begin(Fixture *f, const char *source, const char *unit, bool debug_waits) {
  memset(&note, 0, sizeof note);
  current = &the_context;
  sc_init(&f->sc, NULL);
  f->sc.unwind = &f->unwind;
  if (setjmp(f->unwind)) fail_msg("unwound");
  f->sc.text = sc_text(&f->sc, "test.sched", source, strlen(source));
  const Ast *ast = sc_parse(&f->sc, f->sc.text);
  Compilation c = {.ast = ast, .choice = {.unit = unit}};
  const Kernel *k = !f->sc.errors && sc_compile(&f->sc, &c, "ast", "place") ? c.k : NULL;
  for (const Diag *d = f->sc.diags; d; d = d->next) print_message("%s\n", d->text);
  assert_non_null(k);
  assert_true(sc_emit_all(&f->sc, k, &(BuildOptions){.emission = {debug_waits}}, &f->l));
  assert_null(sc_load(&f->l, &fake));
  const SclStep *s = &f->l.tabled.table.step[0];
  // the number of tiles is last
  note.arg_bytes = f->l.tabled.table.slot[s->slot.to - 1].offset + 4;
  note.maps = s->map.to - s->map.from;
  assert_true(note.arg_bytes <= sizeof note.args);
}

static inline void end(Fixture *f) {
  sc_unload(&f->l);
  assert_ptr_equal(current, &the_context);
  sc_free(&f->sc);
}

static inline schedc_status launch(Fixture *f, const schedc_tensor *t, const double *scalar) {
  f->sc.diags = NULL;
  f->sc.diag_end = &f->sc.diags;
  f->sc.errors = 0;
  return sc_launch(&f->sc, &f->l, &(LaunchCall){.tensor = t, .scalar = scalar});
}

#define DATA(n) ((void *)(uintptr_t)(n))

// ---- schedules

static const char copy[] =
    "kernel copy {\n"
    "  in X : f16[B, M, 64]\n"
    "  out Y : f16[B, M, 64]\n"
    "  spec { Y[b,i,j] = X[b,i,j] }\n"
    "  grid (x : cdiv(M, 64), b : B) persistent\n"
    "  ring r : f16[64, 64] * 2\n"
    "  role load : 1 warp, 24 regs { r <- X[b, x*64..] }\n"
    "  role work : 1 warpgroup, 128 regs {\n"
    "    reg s : f16[64, 64]\n"
    "    wait r;  s[i,j] = r[i,j];  release r\n"
    "    Y[b, x*64 + i, j] = s[i,j]\n"
    "  }\n"
    "}\n";

enum { X_AT = 0x40000000, Y_AT = 0x50000000 };

static inline void set(schedc_tensor *t, u64 at, i64 b, i64 m) {
  *t = (schedc_tensor){.data = DATA(at),
                       .type = SCHEDC_F16,
                       .rank = 3,
                       .shape = {b, m, 64},
                       .strides = {m * 64, 64, 1}};
}

static const char dynamic[] =
    "kernel d {\n"
    "  in X : f16[M, 64], a : i32 = 3\n"
    "  out Y : f16[M, 64]\n"
    "  spec { Y[i,j] = X[i,j] }\n"
    "  grid (x : cdiv(M, 64)) dynamic\n"
    "  ring r : f16[64, 64]\n"
    "  let far = x * a\n"
    "  role load : 1 warp, 24 regs { r <- X[x*64..] }\n"
    "  role work : 1 warpgroup, 128 regs {\n"
    "    reg s : f16[64, 64]\n"
    "    wait r;  s[i,j] = where(far < 0, 0, r[i,j]);  release r\n"
    "    Y[x*64 + i, j] = s[i,j]\n"
    "  }\n"
    "}\n";

static const char ordered[] =
    "kernel part {\n"
    "  in X : f32[M, 64]\n"
    "  inout Y : f32[64, 64]\n"
    "  grid (x : cdiv(M, 64))\n"
    "  ring r : f32[64, 64]\n"
    "  turn go[t : 7] : x\n"
    "  role all : 1 warp, 24 regs {\n"
    "    r <- X[x*64..]\n"
    "    wait r;  acquire go[2];  Y[0.., 0..] += r;  wait Y;  release go[2];  release r\n"
    "  }\n"
    "}\n"
    "sequence both {\n"
    "  workspace Y : f32[64, 64] = 0\n"
    "  part\n"
    "  part\n"
    "}\n";

static inline void refused(Fixture *f, const schedc_tensor *t, DiagId id, const char *word) {
  u32 before = note.launches;
  assert_int_not_equal(launch(f, t, NULL), SCHEDC_OK);
  assert_int_equal(note.launches, before);
  assert_non_null(f->sc.diags);
  assert_string_equal(sc_diag_code(f->sc.diags->id), sc_diag_code(id));
  if (!strstr(f->sc.diags->text, word)) fail_msg("'%s' lacks '%s'", f->sc.diags->text, word);
}

#endif
