// header.c - a kernel or sequence as a C header: its machine code, and functions that load and
// launch it with nothing but the driver. In: what the launcher goes by (tensor maps, the order of
// arguments, the grid). Out: C99, also good as C++. The functions do what load.c and launch.c do,
// with everything that is known when they are written as a constant; dimensions and strides are the
// caller's.
#include "runtime/cuda/header.h"

#include <string.h>

void hd_put(Header *h, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  str_puts(h->out, sc_vprintf(h->sc, fmt, ap));
  va_end(ap);
}

const char *hd_field(const Header *h, Sym name) { return sc_cuda_name(h->sc, name); }

// What is written: a kernel, or a sequence's kernels, each once.
typedef struct Whole {
  const Kernel *k;
  const CudaText *text;
  u32 launches;
  u32 *function;  // of each launch: which one
  u32 functions;
  bool workspace, dynamic;  // it needs one; a grid is
  bool clusters;            // of some grid of clusters there may be fewer than tiles
} Whole;

static const Kernel *kernel_at(const Whole *w, u32 launch) {
  return w->k->launch.n ? w->k->launch.at[launch].kernel : w->k;
}

static Whole look(Sc *sc, const Kernel *k, const CudaText *text) {
  Whole w = {.k = k, .text = text, .launches = k->launch.n ? k->launch.n : 1};
  w.function = NEWS(sc, u32, w.launches);
  for (u32 i = 0; i < w.launches; i++) {
    u32 j = 0;
    while (kernel_at(&w, j) != kernel_at(&w, i)) j++;
    w.function[i] = j < i ? w.function[j] : w.functions++;
    w.workspace |= hd_has_turns(kernel_at(&w, i));
    w.clusters |= hd_asks_for_room(kernel_at(&w, i));
    w.dynamic |= kernel_at(&w, i)->grid == GRID_DYNAMIC;
  }
  for (u32 i = 0; i < k->buf.n; i++) w.workspace |= k->buf.at[i].workspace;
  return w;
}

static bool is_first(const Whole *w, u32 launch) {
  for (u32 i = 0; i < launch; i++) {
    if (w->function[i] == w->function[launch]) return false;
  }
  return true;
}

// What follows is about the kernel or sequence as a whole …
static void turn_to_whole(Header *h, const Whole *w) {
  h->k = w->k;
  h->text = w->text;
  h->name = h->file;
}

// … or about the kernel of a launch.
static void turn_to_step(Header *h, const Whole *w, u32 launch) {
  turn_to_whole(h, w);
  h->number = w->function[launch];
  if (!w->k->launch.n) return;
  h->k = kernel_at(w, launch);
  h->text = w->text->step[launch];
  h->name = sc_printf(h->sc, "%s_%s", h->file, h->text->name);
}

// ---- the interface

static void comment(Header *h, const Whole *w) {
  const char *n = h->file;
  hd_put(h, "/* %s for NVIDIA Hopper (sm_90a), built by schedc %s from ", n, schedc_version());
  sc_cuda_origin(h->out, h->k);
  hd_put(h, ".\n");
  for (u32 i = 0; i < h->k->launch.n; i++)
    hd_put(h, "%s%s", i ? ", " : " * Launches in this order: ", kernel_at(w, i)->name);
  if (h->k->launch.n) hd_put(h, ".\n");
  hd_put(
      h,
      " * It needs the CUDA driver alone: cuda.h of the toolkit (12.0 or newer), and -lcuda.\n"
      " *\n"
      " *   %s_kernel kernel;  CUresult e = %s_load(&kernel);       on the current context\n"
      " *   %s_args args = ...;      e = %s_launch(&kernel, &args, stream);\n"
      " *   %s_unload(&kernel);\n"
      " *\n"
      " * A launch is asynchronous, allocates nothing and may be captured in a graph. Threads "
      "that share a\n"
      " * kernel launch it one at a time. What the schedule requires is checked "
      "(CUDA_ERROR_INVALID_VALUE), and\n"
      " * the alignment of tensors (CUDA_ERROR_MISALIGNED_ADDRESS), before anything is enqueued; "
      "not, that\n"
      " * products of dimensions stay within 32 bits: schedc_launch does. */\n",
      n, n, n, n, n);
}

static void tensor_field(Header *h, u32 i) {
  const Buf *b = &h->k->buf.at[i];
  static const char *const how[] = {"", "read", "written", "read and written"};
  Str shape = {.sc = h->sc};
  for (u32 d = 0; d < b->rank; d++) {
    if (d) str_puts(&shape, ", ");
    sc_print_infix(&shape, h->k, b->dim[d]);
  }
  hd_put(h, "  CUdeviceptr %s;  /* %s[%s], %s */\n", hd_field(h, b->name), sc_elem[b->elem].text,
         shape.at ? shape.at : "", how[b->dir & 3]);
  if (b->rank)
    hd_put(h, "  int64_t %s_stride[%u];  /* elements; the last is 1 */\n", hd_field(h, b->name),
           b->rank);
}

static void tensor_fields(Header *h, bool workspace) {
  for (u32 i = 0; i < h->k->buf.n; i++) {
    const Buf *b = &h->k->buf.at[i];
    if (b->space == SP_TENSOR && b->workspace == workspace) tensor_field(h, i);
  }
}

static void args_type(Header *h, const Whole *w) {
  const Kernel *k = h->k;
  hd_put(h, "typedef struct %s_args {\n", h->file);
  tensor_fields(h, false);
  for (u32 i = 0; i < k->dim.n; i++) hd_put(h, "  int64_t %s;\n", hd_field(h, k->dim.at[i].name));
  for (u32 i = 0; i < k->arg.n; i++) {
    const Arg *a = &k->arg.at[i];
    hd_put(h, "  %s %s;", a->elem == EL_I32 ? "int32_t" : "float", hd_field(h, a->name));
    if (a->init) {
      hd_put(h, "  /* in the schedule ");
      sc_print_infix(h->out, k, a->init);
      hd_put(h, " where it is not given */");
    }
    hd_put(h, "\n");
  }
  if (w->workspace)
    hd_put(h,
           "  CUdeviceptr workspace;  /* %s_workspace(args) bytes at a multiple of 256; one for "
           "launches that may\n"
           "                             overlap each; a launch sets what must be zero in it */\n",
           h->file);
  bool inside = false;
  for (u32 i = 0; i < k->buf.n; i++) inside |= k->buf.at[i].workspace;
  if (inside)
    hd_put(h, "  /* Not the caller's: tensors in the workspace, which a launch places. */\n");
  tensor_fields(h, true);
  hd_put(h, "} %s_args;\n\n", h->file);
}

static void kernel_type(Header *h, const Whole *w) {
  hd_put(h,
         "typedef struct %s_kernel {\n"
         "  CUmodule module;\n"
         "  CUfunction function[%u];\n"
         "  CUdeviceptr memory;  /* zeros, a place for writes that mean nothing, counters */\n"
         "  int sms;\n",
         h->file, w->functions);
  if (w->clusters)
    hd_put(h, "  int room[%u];  /* clusters at once, of each function */\n", w->functions);
  if (w->dynamic)
    hd_put(h,
           "  unsigned captured;   /* launches */\n"
           "  struct {\n"
           "    unsigned long long id, used;\n"
           "  } stream[%d];       /* each that launches has a counter; when last: 0 for never */\n"
           "  unsigned long long clock;\n",
           STREAMS);
  hd_put(h, "} %s_kernel;\n\n", h->file);
}

static void code(Header *h, const Binary *cubin) {
  const unsigned char *at = cubin->at;
  hd_put(h, "static const uint64_t %s_code[%zu] = {", h->file, (cubin->n + 7) / 8);
  for (size_t i = 0; i < cubin->n; i += 8) {
    u64 word = 0;
    for (size_t b = 0; b < 8 && i + b < cubin->n; b++) word |= (u64)at[i + b] << 8 * b;
    hd_put(h, i % 40 ? " 0x%llxu," : "\n  0x%llxu,", (unsigned long long)word);
  }
  hd_put(h, "\n};\n\n");
}

static void arithmetic(Header *h, const Whole *w) {
  const char *n = h->file;
  hd_put(h, "static inline int64_t %s_min(int64_t x, int64_t y) { return x < y ? x : y; }\n", n);
  hd_put(h, "static inline int64_t %s_max(int64_t x, int64_t y) { return x > y ? x : y; }\n", n);
  hd_put(h,
         "static inline int64_t %s_floordiv(int64_t x, int64_t y) {\n"
         "  return y ? x / y - (x %% y != 0 && (x < 0) != (y < 0)) : 0;\n"
         "}\n",
         n);
  hd_put(
      h,
      "static inline int64_t %s_floormod(int64_t x, int64_t y) { return x - %s_floordiv(x, y) * y; "
      "}\n",
      n, n);
  hd_put(h,
         "static inline int64_t %s_cdiv(int64_t x, int64_t y) { return -%s_floordiv(-x, y); }\n\n",
         n, n);
  if (w->workspace)
    hd_put(h,
           "/* -1: too large, or an operand is */\n"
           "static inline int64_t %s_times(int64_t x, int64_t y) {\n"
           "  return x < 0 || y < 0 || (y && x > (INT64_C(1) << 48) / y) ? -1 : x * y;\n"
           "}\n\n",
           n);
}

// ---- loading

// Grids that are not dynamic have no counters, but the zeros and the place for writes before them.
static int device_bytes(const Whole *w) {
  return COUNTERS_AT + (w->dynamic ? (STREAMS + CAPTURES) * COUNTER_BYTES : 0);
}

// As load.c's find_room.
static void find_room(Header *h) {
  hd_put(
      h,
      "/* Clusters that run at once: those that are launched may wait for each other. */\n"
      "static inline CUresult %s_find_room(%s_kernel *k, int number, unsigned ctas, unsigned "
      "threads, "
      "unsigned bytes) {\n"
      "  CUlaunchConfig launch;\n  CUresult e;\n"
      "  memset(&launch, 0, sizeof launch);\n"
      "  launch.gridDimX = ctas;\n  launch.blockDimX = threads;\n  launch.sharedMemBytes = bytes;\n"
      "  launch.gridDimY = launch.gridDimZ = launch.blockDimY = launch.blockDimZ = 1;\n"
      "  e = cuOccupancyMaxActiveClusters(&k->room[number], k->function[number], &launch);\n"
      "  return e || k->room[number] ? e : CUDA_ERROR_INVALID_VALUE;\n"
      "}\n\n",
      h->file, h->file);
}

static void load(Header *h, const Whole *w) {
  const char *n = h->file;
  if (w->clusters) find_room(h);
  hd_put(h,
         "static inline void %s_unload(%s_kernel *k) {\n"
         "  if (k->memory) cuMemFree(k->memory);\n"
         "  if (k->module) cuModuleUnload(k->module);\n"
         "  memset(k, 0, sizeof *k);\n"
         "}\n\n",
         n, n);
  hd_put(h,
         "static inline CUresult %s_load(%s_kernel *k) {\n"
         "  CUdevice device;\n"
         "  CUresult e;\n"
         "  memset(k, 0, sizeof *k);\n"
         "  e = cuCtxGetDevice(&device);\n"
         "  if (!e) e = cuDeviceGetAttribute(&k->sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, "
         "device);\n"
         "  if (!e) e = cuModuleLoadData(&k->module, %s_code);\n",
         n, n, n);
  for (u32 i = 0; i < w->launches; i++) {
    if (!is_first(w, i)) continue;
    turn_to_step(h, w, i);
    hd_put(h,
           "  if (!e) e = cuModuleGetFunction(&k->function[%u], k->module, \"%s\");\n"
           "  if (!e) e = cuFuncSetAttribute(k->function[%u], "
           "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, %u);\n",
           h->number, h->text->name, h->number, h->k->smem);
    if (hd_asks_for_room(h->k))
      hd_put(h, "  if (!e) e = %s_find_room(k, %u, %u, %u, %u);\n", n, h->number, sc_cluster(h->k),
             h->k->threads, h->k->smem);
  }
  turn_to_whole(h, w);
  hd_put(h,
         "  if (!e) e = cuMemAlloc(&k->memory, %d);\n"
         "  if (!e) e = cuMemsetD8(k->memory, 0, %d);\n"
         "  if (!e) e = cuStreamSynchronize(NULL);\n"
         "  if (e) %s_unload(k);\n"
         "  return e;\n"
         "}\n\n",
         device_bytes(w), device_bytes(w), n);
}

// ---- checks

static void check(Header *h) {
  const Kernel *k = h->k;
  hd_put(h, "static inline CUresult %s_check(const %s_args *a) {\n  (void)a;\n", h->file, h->file);
  for (u32 i = 0; i < k->dim.n; i++) {
    const char *dim = hd_field(h, k->dim.at[i].name);
    hd_put(h, "  if (a->%s < 0 || a->%s > INT32_MAX) return CUDA_ERROR_INVALID_VALUE;\n", dim, dim);
  }
  for (u32 i = 0; i < k->require.n; i++) {
    h->where = k->require.at[i].span;
    hd_put(h, "  if (!(");
    hd_expression(h, k->require.at[i].cond);
    hd_put(h, ")) return CUDA_ERROR_INVALID_VALUE;\n");
  }
  hd_put(h, "  return CUDA_SUCCESS;\n}\n\n");
}

// ---- the workspace: counters of turns over CTAs, then tensors, those that begin as zeros first

// Rows start at multiples of 16 bytes, as binding.c has them; a vector has room for a slice behind
// it.
static void place_tensor(Header *h, const Buf *b) {
  const char *name = hd_field(h, b->name);
  u32 bytes = sc_elem[b->elem].bytes;
  h->where = b->span;
  hd_put(h, "  a->%s = a->workspace + *bytes;\n  step = 1;\n", name);
  for (u32 d = b->rank; d-- > 0;) {
    hd_put(h, "  a->%s_stride[%u] = step;\n  step = %s_times(step, ", name, d, h->file);
    hd_expression(h, b->dim[d]);
    hd_put(h, ");\n");
    if (d + 1u < b->rank) continue;
    if (b->rank == 1) hd_put(h, "  if (step >= 0) step += %d;\n", WORKSPACE_ALIGN / 4);
    else
      hd_put(h, "  if (step >= 0) step = (step + %u) / %u * %u;\n", 16 / bytes - 1, 16 / bytes,
             16 / bytes);
  }
  hd_put(h,
         "  if (step < 0) return CUDA_ERROR_INVALID_VALUE;\n"
         "  *bytes += ((size_t)step * %u + %d) / %d * %d;\n",
         bytes, WORKSPACE_ALIGN - 1, WORKSPACE_ALIGN, WORKSPACE_ALIGN);
}

static void workspace(Header *h, const Whole *w) {
  const char *n = h->file;
  bool tensors = false;
  for (u32 i = 0; i < w->k->buf.n; i++) tensors |= w->k->buf.at[i].workspace;
  hd_put(
      h,
      "static inline CUresult %s_place(%s_args *a, size_t *turns, size_t *zeros, size_t *bytes) {\n"
      "%s  *bytes = 0;\n",
      n, n, tensors ? "  int64_t step;\n" : "");
  for (u32 i = 0; i < w->launches; i++) {
    turn_to_step(h, w, i);
    hd_put(h, "  turns[%u] = *bytes;\n", i);
    if (hd_has_turns(h->k)) hd_put(h, "  *bytes += %s_turns(a, NULL);\n", h->name);
  }
  turn_to_whole(h, w);
  for (u32 zeroed = 2; zeroed-- > 0;) {
    for (u32 i = 0; i < w->k->buf.n; i++) {
      const Buf *b = &w->k->buf.at[i];
      if (b->workspace && b->zeroed == zeroed) place_tensor(h, b);
    }
    if (zeroed) hd_put(h, "  *zeros = *bytes;\n");
  }
  hd_put(h,
         "  return CUDA_SUCCESS;\n}\n\n"
         "/* SIZE_MAX: larger than any memory */\n"
         "static inline size_t %s_workspace(const %s_args *args) {\n"
         "  %s_args a = *args;\n  size_t turns[%u], zeros, bytes;\n"
         "  return %s_place(&a, turns, &zeros, &bytes) ? SIZE_MAX : bytes;\n}\n\n",
         n, n, n, w->launches, n);
}

// ---- launching

// As launch.c's next_counter.
static void counter(Header *h) {
  const char *n = h->file;
  hd_put(
      h,
      "/* The tile counter of a launch is 0 again when it has ended. What is launched on a stream "
      "runs in\n"
      " * order and shares one; each captured launch has its own, and so may overlap others. */\n"
      "static inline CUresult %s_counter(%s_kernel *k, CUstream stream, CUdeviceptr *counter) {\n"
      "  CUstreamCaptureStatus capturing;\n"
      "  unsigned long long id;\n"
      "  unsigned i, at = 0;\n"
      "  CUresult e = cuStreamIsCapturing(stream, &capturing);\n"
      "  if (e) return e;\n"
      "  *counter = k->memory + %d;\n"
      "  if (capturing != CU_STREAM_CAPTURE_STATUS_NONE) {\n"
      "    *counter += (%u + k->captured++ %% %u) * %d;\n"
      "    return CUDA_SUCCESS;\n"
      "  }\n",
      n, n, COUNTERS_AT, STREAMS, CAPTURES, COUNTER_BYTES);
  hd_put(h,
         "  e = cuStreamGetId(stream, &id);\n"
         "  if (e) return e;\n"
         "  for (i = 0; i < %u && k->stream[at].used; i++) {  /* its own, else the one unused for "
         "longest */\n"
         "    if (k->stream[i].used && k->stream[i].id == id) {\n"
         "      at = i;\n"
         "      break;\n"
         "    }\n"
         "    if (k->stream[i].used < k->stream[at].used) at = i;\n"
         "  }\n"
         "  k->stream[at].id = id;\n"
         "  k->stream[at].used = ++k->clock;\n"
         "  *counter += at * %d;\n"
         "  return CUDA_SUCCESS;\n"
         "}\n\n",
         STREAMS, COUNTER_BYTES);
}

static void launch(Header *h, const Whole *w) {
  const char *n = h->file;
  hd_put(h,
         "static inline CUresult %s_launch(%s_kernel *k, const %s_args *args, CUstream stream) {\n",
         n, n, n);
  for (u32 i = 0; i < w->launches; i++) {
    turn_to_step(h, w, i);
    hd_put(h, "  %s_plan plan%u;\n", h->name, i);
  }
  if (w->workspace)
    hd_put(h,
           "  %s_args placed = *args, *const a = &placed;\n  size_t turns[%u], zeros, bytes;\n"
           "  CUresult e = %s_check(a);\n"
           "  if (!e) e = %s_place(a, turns, &zeros, &bytes);\n"
           "  if (!e && bytes && !a->workspace) e = CUDA_ERROR_INVALID_VALUE;\n"
           "  if (!e && bytes && a->workspace %% %d) e = CUDA_ERROR_MISALIGNED_ADDRESS;\n",
           n, w->launches, n, n, WORKSPACE_ALIGN);
  else hd_put(h, "  const %s_args *const a = args;\n  CUresult e = %s_check(a);\n", n, n);
  for (u32 i = 0; i < w->launches; i++) {
    turn_to_step(h, w, i);
    hd_put(h, "  if (!e) e = %s_tensors(a);\n  if (!e) e = %s_prepare(&plan%u, k, a", h->name,
           h->name, i);
    if (h->k->grid == GRID_DYNAMIC) hd_put(h, ", stream");
    if (hd_has_turns(h->k)) hd_put(h, ", a->workspace + turns[%u]", i);
    hd_put(h, ");\n");
  }
  if (w->workspace)
    hd_put(h, "  if (!e && zeros) e = cuMemsetD8Async(a->workspace, 0, zeros, stream);\n");
  for (u32 i = 0; i < w->launches; i++) {
    turn_to_step(h, w, i);
    hd_put(h, "  if (!e) e = %s_enqueue(&plan%u, k, stream);\n", h->name, i);
  }
  hd_put(h, "  return e;\n}\n");
}

bool sc_header(Str *out, const Kernel *k, const CudaText *text, const Binary *cubin) {
  Header h = {.sc = out->sc, .out = out, .file = text->name, .where = k->span};
  const Whole w = look(out->sc, k, text);
  turn_to_whole(&h, &w);
  comment(&h, &w);
  hd_put(&h,
         "#ifndef SCHEDC_%s_H\n#define SCHEDC_%s_H\n\n#include <cuda.h>\n#include "
         "<stddef.h>\n#include <stdint.h>\n"
         "#include <string.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
         h.file, h.file);
  args_type(&h, &w);
  kernel_type(&h, &w);
  arithmetic(&h, &w);
  if (w.dynamic) counter(&h);
  check(&h);
  for (u32 i = 0; i < w.launches; i++) {
    turn_to_step(&h, &w, i);
    if (is_first(&w, i)) hd_step(&h);
  }
  turn_to_whole(&h, &w);
  if (w.workspace) workspace(&h, &w);
  code(&h, cubin);
  load(&h, &w);
  launch(&h, &w);
  hd_put(&h, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
  return !h.refused;
}
