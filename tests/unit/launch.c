// Tests of what a launch does before the GPU has to do with it: checks that name the tensor,
// integers bounded to 32 bits, tensor maps, argument blocks, workspaces, counters. The driver is
// one of our own, which writes down what it is asked for.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "cuda/gpu.h"

// ---- a driver that notes

typedef struct DriverLog {
  u32 encoded, replaced, launches, memsets;
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
static int context_a, context_b;
static void *current = &context_a;

static int fake_text(int e, const char **text) { return *text = e ? "an error" : "no error", 0; }
static int fake_current(void **context) { return *context = current, 0; }
static int fake_device(int *device) { return *device = 0, 0; }
static int fake_attribute(int *v, int attribute, int device) {
  (void)device;
  *v = attribute == 16 ? 132 : attribute == 75 ? 9 : 0;
  return 0;
}
static int fake_push(void *context) { return current = context, 0; }
static int fake_pop(void **context) { return *context = current, 0; }
static int fake_module(void **module, const void *image) {
  (void)image;
  *module = &note;
  return 0;
}
static int fake_unload(void *module) { return module != &note; }
static int fake_function(void **f, void *module, const char *name) {
  (void)module, (void)name;
  *f = &note;
  return 0;
}
static int fake_set(void *f, int attribute, int value) {
  (void)f, (void)attribute, (void)value;
  return 0;
}
static int fake_alloc(u64 *at, size_t bytes) {
  (void)bytes;
  *at = 0x10000000;
  return 0;
}
static int fake_free(u64 at) { return at == 0; }
static int fake_memset(u64 at, unsigned char v, size_t n) {
  (void)at, (void)v, (void)n;
  note.zeroing = true;
  return 0;
}
static int fake_wait(void *stream) {
  if (!stream) note.zeroing = false;
  return 0;
}
static int fake_memset_async(u64 at, unsigned char v, size_t n, void *stream) {
  (void)stream;
  assert_true(at % 256 == 0 && v == 0);
  note.memsets++;
  note.memset_bytes = n;
  return 0;
}
static int fake_host(void **at, size_t bytes, unsigned flags) {
  (void)flags;
  assert_true(bytes <= sizeof note.host);
  *at = note.host;
  return 0;
}
static int fake_host_free(void *at) { return at != note.host; }
static int fake_host_device(u64 *device, void *at, unsigned flags) {
  (void)at, (void)flags;
  *device = 0x20000000;
  return 0;
}
static int fake_capturing(void *stream, int *status) {
  (void)stream;
  *status = note.capturing;
  return 0;
}
static int fake_stream_id(void *stream, u64 *id) { return *id = (uintptr_t)stream, note.lost; }
static int fake_encode(void *map, int type, unsigned rank, void *address, const u64 *dims,
                       const u64 *strides, const unsigned *box, const unsigned *element_strides,
                       int interleave, int swizzle, int promotion, int fill) {
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
static int fake_replace(void *map, void *address) {
  note.replaced++;
  memcpy(map, &address, sizeof address);
  return 0;
}
static int fake_launch(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                       unsigned bz, unsigned shared, void *stream, void **params, void **extra) {
  (void)stream;
  assert_true(f == &note && gy == 1 && gz == 1 && by == 1 && bz == 1 && !extra && !note.zeroing);
  note.launches++;
  note.grid = gx;
  note.threads = bx;
  note.shared = shared;
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
                            .cuLaunchKernel = fake_launch};

// ---- kernels

typedef struct Fixture {
  Sc sc;
  jmp_buf unwind;
  Loaded l;
} Fixture;

static void begin(Fixture *f, const char *source, const char *unit, bool debug_waits) {
  memset(&note, 0, sizeof note);
  current = &context_a;
  sc_init(&f->sc, NULL);
  f->sc.unwind = &f->unwind;
  if (setjmp(f->unwind)) fail_msg("unwound");
  f->sc.text = sc_text(&f->sc, "test.sched", source, strlen(source));
  const Ast *ast = sc_parse(&f->sc, f->sc.text);
  const Kernel *k = f->sc.errors ? NULL : sc_compile_to(&f->sc, ast, &(Choice){.unit = unit}, NULL);
  for (const Diag *d = f->sc.diags; d; d = d->next) print_message("%s\n", d->text);
  assert_non_null(k);
  assert_true(sc_emit_all(&f->sc, k, &(CudaOptions){debug_waits}, &f->l));
  assert_null(sc_load(&f->l, &fake));
  note.arg_bytes = sc_arg_bytes(f->l.step[0].k, f->l.step[0].text);
  note.maps = f->l.step[0].text->maps;
  assert_true(note.arg_bytes <= sizeof note.args);
}

static void end(Fixture *f) {
  sc_unload(&f->l);
  assert_ptr_equal(current, &context_a);
  sc_free(&f->sc);
}

static schedc_status launch(Fixture *f, const schedc_tensor *t, const double *scalar) {
  f->sc.diags = NULL;
  f->sc.diag_end = &f->sc.diags;
  f->sc.errors = 0;
  return sc_launch(&f->sc, &f->l, &(LaunchCall){.tensor = t, .scalar = scalar});
}

#define DATA(n) ((void *)(uintptr_t)(n))

static void refused(Fixture *f, const schedc_tensor *t, DiagId id, const char *word) {
  u32 before = note.launches;
  assert_int_not_equal(launch(f, t, NULL), SCHEDC_OK);
  assert_int_equal(note.launches, before);
  assert_non_null(f->sc.diags);
  assert_string_equal(sc_diag_code(f->sc.diags->id), sc_diag_code(id));
  if (!strstr(f->sc.diags->text, word)) fail_msg("'%s' lacks '%s'", f->sc.diags->text, word);
}

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

static void set(schedc_tensor *t, u64 at, i64 b, i64 m) {
  *t = (schedc_tensor){.data = DATA(at),
                       .type = SCHEDC_F16,
                       .rank = 3,
                       .shape = {b, m, 64},
                       .strides = {m * 64, 64, 1}};
}

static void plans_are_kept(void **state) {
  (void)state;
  static Fixture f;
  schedc_tensor t[2];
  begin(&f, copy, NULL, false);
  set(&t[0], X_AT, 2, 100);
  set(&t[1], Y_AT, 2, 100);
  assert_int_equal(launch(&f, t, NULL), SCHEDC_OK);
  assert_int_equal(note.encoded, 1);
  assert_int_equal(note.grid, 4);
  assert_int_equal(note.threads, f.l.k->threads);
  assert_int_equal(launch(&f, t, NULL), SCHEDC_OK);
  t[0].data = DATA(X_AT + 16);
  assert_int_equal(launch(&f, t, NULL), SCHEDC_OK);
  assert_int_equal(note.encoded, 1);
  assert_int_equal(note.replaced, 1);
  for (i64 m = 1; m <= 9; m++) {  // one more than are remembered
    set(&t[0], X_AT, 1, m * 64);
    set(&t[1], Y_AT, 1, m * 64);
    assert_int_equal(launch(&f, t, NULL), SCHEDC_OK);
    assert_int_equal(note.grid, m);
  }
  assert_int_equal(note.encoded, 10);
  set(&t[0], X_AT, 2, 100);
  set(&t[1], Y_AT, 2, 100);
  assert_int_equal(launch(&f, t, NULL), SCHEDC_OK);
  assert_int_equal(note.encoded, 11);
  end(&f);
}

static void arguments_lie_as_declared(void **state) {
  (void)state;
  static Fixture f;
  schedc_tensor t[2];
  begin(&f, copy, NULL, false);
  set(&t[0], X_AT, 3, 130);
  set(&t[1], Y_AT, 3, 130);
  t[1].strides[0] = 20000;
  assert_int_equal(launch(&f, t, NULL), SCHEDC_OK);
  struct {
    u64 y;
    i64 stride[3];
    int b, m, tiles;
  } want = {Y_AT, {20000, 64, 1}, 3, 130, 9};
  assert_memory_equal(note.args, &want, offsetof(__typeof__(want), tiles) + 4);
  assert_int_equal(note.extent[1], 130);
  assert_int_equal(note.extent[2], 3);
  assert_int_equal(note.stride[2], 130 * 64 * 2);
  end(&f);
}

static void tensors_are_checked(void **state) {
  (void)state;
  static Fixture f;
  schedc_tensor good[2], t[2];
  begin(&f, copy, NULL, false);
  set(&good[0], X_AT, 2, 100);
  set(&good[1], Y_AT, 2, 100);
#define BAD(which, change, code, word) \
  memcpy(t, good, sizeof t), t[which].change, refused(&f, t, code, word)
  BAD(0, data = DATA(X_AT + 2), D_T_ALIGN, "'X'");
  BAD(1, data = DATA(Y_AT + 8), D_T_ALIGN, "'Y'");
  BAD(0, data = NULL, D_T_NULL, "'X'");
  BAD(0, strides[1] = 68, D_T_ALIGN, "'X'");
  BAD(1, strides[0] = 6404, D_T_ALIGN, "'Y'");
  BAD(0, strides[0] = (i64)1 << 39, D_T_ALIGN, "'X'");
  BAD(0, type = SCHEDC_BF16, D_T_TYPE, "'X'");
  BAD(0, rank = 2, D_T_RANK, "'X'");
  BAD(1, shape[2] = 32, D_T_SHAPE, "'Y'");
  BAD(0, strides[2] = 2, D_T_STRIDE, "'X'");
  BAD(0, strides[0] = -6400, D_T_STRIDE, "'X'");
  BAD(1, strides[0] = 0, D_T_STRIDE, "'Y'");
#undef BAD
  assert_int_equal(launch(&f, good, NULL), SCHEDC_OK);
  good[0].data = DATA(X_AT + 4);  // a plan that is remembered still looks at addresses
  refused(&f, good, D_T_ALIGN, "'X'");
  good[0].data = DATA(X_AT);
  current = &context_b;
  refused(&f, good, D_G_RUN, "another CUDA context is current");
  current = NULL;
  refused(&f, good, D_G_RUN, "no CUDA context is current");
  current = &context_a;
  end(&f);
}

static void broadcast_has_stride_zero(void **state) {
  (void)state;
  static Fixture f;
  schedc_tensor t[2];
  begin(&f, copy, NULL, false);
  set(&t[0], X_AT, 4, 64);
  set(&t[1], Y_AT, 4, 64);
  t[0].strides[0] = 0;
  assert_int_equal(launch(&f, t, NULL), SCHEDC_OK);
  assert_int_equal(note.extent[2], 4);
  assert_int_equal(note.stride[2], 0);
  note.refuse_stride_0 = true;
  set(&t[0], X_AT, 5, 64);
  set(&t[1], Y_AT, 5, 64);
  t[0].strides[0] = 0;
  refused(&f, t, D_T_STRIDE, "'X'");
  end(&f);
}

static void empty_tensors(void **state) {
  (void)state;
  static Fixture f;
  schedc_tensor t[2];
  begin(&f, copy, NULL, false);
  set(&t[0], 0, 0, 100);
  set(&t[1], 0, 0, 100);
  assert_int_equal(launch(&f, t, NULL), SCHEDC_OK);
  set(&t[0], X_AT + 2, 2, 0);  // a slice of no rows may start anywhere
  set(&t[1], Y_AT + 2, 2, 0);
  assert_int_equal(launch(&f, t, NULL), SCHEDC_OK);
  assert_int_equal(note.launches, 0);
  end(&f);
}

static void integers_stay_in_range(void **state) {
  (void)state;
  static Fixture f;
  schedc_tensor t[2];
  begin(&f, copy, NULL, false);
  set(&t[0], X_AT, 3, 40000000);  // 7.7 billion elements
  set(&t[1], Y_AT, 3, 40000000);
  assert_int_equal(launch(&f, t, NULL), SCHEDC_OK);
  set(&t[0], X_AT, 1, 2200000000);
  set(&t[1], Y_AT, 1, 2200000000);
  refused(&f, t, D_T_RANGE, "M");
  set(&t[0], X_AT, 100000, 2000000);  // 3 billion tiles
  set(&t[1], Y_AT, 100000, 2000000);
  refused(&f, t, D_T_RANGE, "grid");
  end(&f);
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

static u64 counter_of(const Fixture *f) {
  u64 at;
  for (u32 i = 0;; i++) {
    const ArgSlot *s = &f->l.plan[0].step[0].slot[i];
    memcpy(&at, note.args + s->offset, sizeof at);
    if (s->kind == SLOT_COUNTER) return at;
  }
}

// The counter of a launch on a stream.
static u64 launch_on(Fixture *f, const schedc_tensor *t, u64 stream) {
  LaunchCall call = {.stream = DATA(stream), .tensor = t};
  assert_int_equal(sc_launch(&f->sc, &f->l, &call), SCHEDC_OK);
  return counter_of(f);
}

static void counters_differ(void **state) {
  (void)state;
  static Fixture f;
  begin(&f, dynamic, NULL, false);
  const schedc_tensor t[2] = {
      {.data = DATA(X_AT), .type = SCHEDC_F16, .rank = 2, .shape = {1000, 64}, .strides = {64, 1}},
      {.data = DATA(Y_AT), .type = SCHEDC_F16, .rank = 2, .shape = {1000, 64}, .strides = {64, 1}}};
  u64 own = launch_on(&f, t, 0), other = launch_on(&f, t, 1);
  assert_int_not_equal(own, other);
  for (u32 i = 0; i < 1000; i++)  // a long launch on stream 1 may outlast them all
    assert_int_equal(launch_on(&f, t, 0), own);
  for (u32 i = 2; i < STREAMS; i++) {
    u64 at = launch_on(&f, t, i);
    assert_true(at != own && at != other);
  }
  assert_int_equal(launch_on(&f, t, 0), own);
  assert_int_equal(launch_on(&f, t, STREAMS), other);  // of the stream that is the longest without
  note.capturing = true;
  u64 last = launch_on(&f, t, 0);
  assert_true(last >= f.l.device + COUNTERS_AT + STREAMS * COUNTER_BYTES);
  for (u32 i = 1; i < CAPTURES; i++, last = counter_of(&f))
    assert_int_equal(launch_on(&f, t, 0), last + COUNTER_BYTES);
  note.capturing = false;
  assert_int_equal(launch_on(&f, t, 0), own);
  note.lost = true;
  assert_int_equal(launch(&f, t, NULL), SCHEDC_EUNAVAIL);
  assert_int_equal(f.sc.diags->id, D_G_RUN);
  note.lost = false;
  // Scalars are part of what is checked, and bound what is computed from them.
  assert_int_equal(launch(&f, t, (double[]){5}), SCHEDC_OK);
  assert_int_equal(launch(&f, t, (double[]){2e9}), SCHEDC_EINPUT);
  assert_int_equal(f.sc.diags->id, D_T_RANGE);
  assert_non_null(strstr(f.sc.diags->text, "far"));
  end(&f);
}

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

static void workspaces_are_the_callers(void **state) {
  (void)state;
  static Fixture f;
  const schedc_tensor t[1] = {
      {.data = DATA(X_AT), .type = SCHEDC_F32, .rank = 2, .shape = {1000, 64}, .strides = {64, 1}}};
  begin(&f, ordered, "both", false);
  LaunchCall call = {.tensor = t};
  const LaunchPlan *p = sc_plan(&f.sc, &f.l, &call);
  assert_non_null(p);
  assert_int_equal(p->bytes, 2 * 256 + 64 * 64 * 4);
  assert_int_equal(p->zeroed, p->bytes);
  refused(&f, t, D_T_NULL, "workspace");
  call.workspace = 0x60000000;
  call.workspace_bytes = p->bytes;
  assert_int_equal(sc_launch(&f.sc, &f.l, &call), SCHEDC_OK);
  assert_int_equal(note.memsets, 1);
  assert_int_equal(note.memset_bytes, p->bytes);
  assert_int_equal(note.launches, 2);
  call.workspace += 16;
  assert_int_equal(sc_launch(&f.sc, &f.l, &call), SCHEDC_EINPUT);
  end(&f);
}

#define STAGE(name, from, to)                                       \
  "kernel " name " {\n  in " from " : f16[M, 64]\n  out " to        \
  " : f16[M, 64]\n  grid (x : cdiv(M, 64))\n"                       \
  "  role all : 1 warpgroup, 128 regs {\n    reg s : f16[64, 64]\n" \
  "    s[i,j] = " from "[x*64 + i, j]\n    " to "[x*64 + i, j] = s[i,j]\n  }\n}\n"

// What is found out about the second kernel's tensors keeps the first from being launched.
static void sequences_start_whole(void **state) {
  (void)state;
  static Fixture f;
  begin(&f, STAGE("first", "X", "Y") STAGE("second", "Y", "Z") "sequence both { first; second }\n",
        "both", false);
  schedc_tensor t[3];
  for (u32 i = 0; i < 3; i++)
    t[i] = (schedc_tensor){.data = DATA((u64)X_AT * (i + 1)),
                           .type = SCHEDC_F16,
                           .rank = 2,
                           .shape = {100, 64},
                           .strides = {64, 1}};
  assert_int_equal(launch(&f, t, NULL), SCHEDC_OK);
  assert_int_equal(note.launches, 2);
  t[2].data = DATA((u64)X_AT * 3 + 8);
  refused(&f, t, D_T_ALIGN, "'Z' is not a multiple of 16 bytes");
  t[2].data = DATA((u64)X_AT * 3 + 1);
  refused(&f, t, D_T_ALIGN, "'Z'");
  end(&f);
}

static const char turns[] =
    "kernel k {\n"
    "  in X : f16[M, 64], W : f16[64, 64]\n"
    "  out Y : f32[M, 64]\n"
    "  grid (x : cdiv(M, 128))\n"
    "  ring w : f16[64, 64], r : f16[128, 64] * 2\n"
    "  turn go : math\n"
    "  role load : 1 warp, 40 regs { w <- W[0.., 0..];  r <- X[x*128..] }\n"
    "  role math[w2] : 2 warpgroups, 128 regs {\n"
    "    reg t : f16[64, 64], y : f32[64, 64]\n"
    "    wait w, r\n"
    "    t[i,k] = r[64*w2 + i, k]\n"
    "    r[64*w2 + i, k] = 2 * t[i,k]\n"
    "    acquire go\n"
    "    async y[i,j] = r[64*w2 + i, k] @ w[j,k]\n"
    "    release go\n"
    "    wait y;  release w, r\n"
    "    Y[x*128 + 64*w2 + i, j] = y[i,j]\n"
    "  }\n"
    "}\n";

// An entry that a step's kernel wrote, of the first site of a kind, and what is made of it.
static void told(Fixture *f, u32 step, WaitKind kind, u32 thread, u32 saw, u32 generation,
                 const char *text) {
  const CudaText *t = f->l.step[step].text;
  u32 site = 0, *at = (u32 *)(void *)note.host;
  for (u32 i = 0; i < step; i++) at += f->l.step[i].text->wait_words;
  while (t->site[site].kind != kind) assert_true(++site < t->sites);
  at += (1 + site * (f->l.step[step].k->threads / 32) + thread / 32) * WAIT_WORDS;
  at[0] = 13, at[1] = thread, at[2] = kind == WAIT_CTA_TURN ? saw : 1024 + saw, at[3] = generation;
  f->sc.diags = NULL, f->sc.diag_end = &f->sc.diags;
  assert_int_equal(sc_report_waits(&f->sc, &f->l), SCHEDC_EFAULT);
  assert_int_equal(f->sc.diags->id, D_G_WAIT);
  assert_string_equal(f->sc.diags->text, text);
  assert_null(f->sc.diags->next);
  assert_true(f->sc.diags->at.hi > f->sc.diags->at.lo);
  assert_int_equal(sc_report_waits(&f->sc, &f->l), SCHEDC_OK);  // said once
}

static void waits_are_told(void **state) {
  (void)state;
  static Fixture f;
  schedc_tensor t[2];
  begin(&f, copy, NULL, true);
  set(&t[0], X_AT, 2, 100);
  set(&t[1], Y_AT, 2, 100);
  assert_int_equal(launch(&f, t, NULL), SCHEDC_OK);
  assert_int_equal(sc_report_waits(&f.sc, &f.l), SCHEDC_OK);
  const Kernel *k = f.l.k;
  told(&f, 0, WAIT_FULL, 200, k->ring.at[0].barrier + 8, 17,
       "'work' (CTA 12, thread 200) waited in vain for fill 35 of 'r': full barrier, stage 1, "
       "generation 17");
  told(&f, 0, WAIT_EMPTY, 0, k->ring.at[0].barrier + 16, 3,
       "'load' (CTA 12, thread 0) waited in vain for the release of fill 6 of 'r': empty barrier, "
       "stage 0, generation 3");
  end(&f);
  begin(&f, dynamic, NULL, true);
  told(&f, 0, WAIT_TILE_FULL, 130, sc_slot_barriers(f.l.k) + 8, 2,
       "'work' (CTA 12, thread 130) waited in vain for tile 5 that this CTA draws: full barrier of "
       "the next tile, slot 1, generation 2");
  told(&f, 0, WAIT_TILE_EMPTY, 0, sc_slot_barriers(f.l.k) + 16, 2,
       "'load' (CTA 12, thread 0) waited in vain for tile 4 that this CTA draws to be read by all "
       "roles: empty barrier of the next tile, slot 0, generation 2");
  end(&f);
  begin(&f, ordered, "both", true);  // two launches of one kernel: the second one's
  told(&f, 1, WAIT_CTA_TURN, 0, 3, 4,
       "'all' (CTA 12, thread 0) waited in vain for turn 4 of 'go', which was passed on 3 times");
  end(&f);
}

// Instances tell of themselves, each once; of turns and meetings by the barrier's number.
static void waits_of_instances_are_told(void **state) {
  (void)state;
  static Fixture f;
  begin(&f, turns, NULL, true);
  const Kernel *k = f.l.k;
  u32 named = f.l.step[0].text->named;
  assert_true(k->role.at[1].meet && named >= k->smem);
  told(&f, 0, WAIT_TURN, 256, named + 8 * (k->turn.at[0].barrier + 1), 2,
       "'math[1]' (CTA 12, thread 256) waited in vain for its turn 'go': named barrier 2, "
       "generation 2");
  told(&f, 0, WAIT_MEET, 255, named + 8u * k->role.at[1].meet, 0,
       "'math[0]' (CTA 12, thread 255) waited in vain for the other warps of its warpgroup: named "
       "barrier 3, generation 0");
  const CudaText *text = f.l.step[0].text;
  u32 *at = (u32 *)(void *)note.host + WAIT_WORDS;
  for (u32 i = 0; i < k->threads / 32 * text->sites; i++) at[i * WAIT_WORDS] = 1;
  f.sc.diags = NULL, f.sc.diag_end = &f.sc.diags;
  assert_int_equal(sc_report_waits(&f.sc, &f.l), SCHEDC_EFAULT);
  u32 reports = 0;
  for (const Diag *d = f.sc.diags; d; d = d->next) reports++;
  u32 expected = 0;
  for (u32 i = 0; i < text->sites; i++) expected += k->role.at[text->site[i].role].instances;
  assert_int_equal(reports, expected);
  end(&f);
}

static int write_nothing(void *user, const char *text, size_t n) {
  (void)user, (void)text, (void)n;
  return 0;
}

static void hear(void *user, const schedc_diagnostic *d) { strcpy(user, d->code); }

// Without a driver, NVRTC or a current context; the arguments are looked at first.
static void loading_says_what_is_missing(void **state) {
  (void)state;
  char code[32] = "", why[8] = "";
  schedc_options options = SCHEDC_OPTIONS_INIT;
  schedc_context *context;
  schedc_source *source;
  schedc_kernel *kernel;
  schedc_loaded *loaded = (schedc_loaded *)&note;
  size_t bytes;
  options.sink = hear;
  options.sink_user = code;
  assert_int_equal(schedc_open(&context, &options), SCHEDC_OK);
  assert_int_equal(schedc_parse(&source, context, "copy.sched", copy, sizeof copy - 1), SCHEDC_OK);
  assert_int_equal(schedc_instantiate(&kernel, context, source, NULL, NULL, NULL, 0), SCHEDC_OK);
  assert_int_equal(schedc_load(&loaded, context, NULL, NULL), SCHEDC_EARG);
  assert_null(loaded);
  assert_int_equal(schedc_load(&loaded, context, kernel, NULL), SCHEDC_EUNAVAIL);
  assert_null(loaded);
  assert_int_equal(strncmp(code, "G.", 2), 0);
  assert_int_equal(schedc_launch(context, NULL, NULL, NULL, NULL, NULL, 0), SCHEDC_EARG);
  assert_int_equal(schedc_workspace_size(context, NULL, NULL, NULL, &bytes), SCHEDC_EARG);
  assert_int_equal(schedc_check_waits(context, NULL), SCHEDC_EARG);
  schedc_build_options build = SCHEDC_BUILD_OPTIONS_INIT;
  build.debug_waits = 1;  // whom would a header tell?
  assert_int_equal(
      schedc_build(context, kernel, SCHEDC_C_HEADER, &build, write_nothing, NULL, NULL),
      SCHEDC_EARG);
  assert_int_equal(schedc_build(context, kernel, SCHEDC_CUDA_C, &build, write_nothing, NULL, NULL),
                   SCHEDC_OK);
  if (schedc_gpu_available(context, why, sizeof why)) assert_true(strlen(why) == sizeof why - 1);
  schedc_unload(NULL);
  schedc_kernel_free(kernel);
  schedc_source_free(source);
  schedc_close(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plans_are_kept),
      cmocka_unit_test(arguments_lie_as_declared),
      cmocka_unit_test(tensors_are_checked),
      cmocka_unit_test(broadcast_has_stride_zero),
      cmocka_unit_test(empty_tensors),
      cmocka_unit_test(integers_stay_in_range),
      cmocka_unit_test(counters_differ),
      cmocka_unit_test(workspaces_are_the_callers),
      cmocka_unit_test(sequences_start_whole),
      cmocka_unit_test(waits_are_told),
      cmocka_unit_test(waits_of_instances_are_told),
      cmocka_unit_test(loading_says_what_is_missing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
