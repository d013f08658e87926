// header.c - a kernel as a C header: its machine code, and functions that load and launch it with
// nothing but the driver. In: what the launcher goes by (tensor maps, the order of arguments, the
// grid). Out: C99, also good as C++. The functions do what load.c and launch.c do, with everything
// that is known when they are written as a constant; dimensions and strides are the caller's.
#include "gpu.h"

#include <string.h>

typedef struct Header {
  Sc *sc;
  Str *out;
  const Kernel *k;
  const CudaText *text;
  const char *name;  // of the function, and what all names here begin with
  Span where;        // of what is being written, for reports
  bool refused;      // something cannot be said in it; it has been reported
} Header;

__attribute__((format(printf, 2, 3))) static void put(Header *h, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  str_puts(h->out, sc_vprintf(h->sc, fmt, ap));
  va_end(ap);
}

static const char *field(const Header *h, Sym name) { return sc_cuda_name(h->sc, name); }

// A tensor that the kernel is given, by a map or by its address.
static bool is_argument(const Header *h, u32 buf) { return h->k->buf.at[buf].space == SP_TENSOR; }

static bool has_turns(const Kernel *k) {
  for (u32 i = 0; i < k->turn.n; i++) {
    if (sc_turn_over_ctas(&k->turn.at[i])) return true;
  }
  return false;
}

// ---- expressions of dimensions and scalars, in 64-bit integers and doubles

static void refuse(Header *h, const char *what) {
  if (!h->refused) {
    sc_report(h->sc, D_G_HEADER, h->where, "a C header cannot say %s, which this depends on", what);
  }
  h->refused = true;
}

static void expression(Header *h, Xid x);

static void call(Header *h, const char *f, const Expr *e) {
  put(h, "%s(", f);
  expression(h, e->a);
  put(h, ", ");
  expression(h, e->b);
  put(h, ")");
}

static void infix(Header *h, const char *op, const Expr *e) {
  put(h, "(");
  expression(h, e->a);
  put(h, " %s ", op);
  expression(h, e->b);
  put(h, ")");
}

static void prefix(Header *h, const char *op, const Expr *e) {
  put(h, "(%s", op);
  expression(h, e->a);
  put(h, ")");
}

static void choose(Header *h, const Expr *e) {
  put(h, "(");
  expression(h, e->a);
  put(h, " ? ");
  expression(h, e->b);
  put(h, " : ");
  expression(h, e->c);
  put(h, ")");
}

static void real(Header *h, double v) {
  if (v - v != 0)
    refuse(h, "an infinite number");
  else
    str_real(h->out, v);
}

// Operations that are written between their operands in C too.
static const char *const between[X_COUNT] = {
    [X_ADD] = "+", [X_SUB] = "-", [X_MUL] = "*", [X_DIV] = "/",  [X_LT] = "<",
    [X_LE] = "<=", [X_EQ] = "==", [X_NE] = "!=", [X_AND] = "&&", [X_OR] = "||",
};
static const char *const before[X_COUNT] = {[X_NEG] = "-", [X_NOT] = "!", [X_TOREAL] = "(double)"};
static const char *const called[X_COUNT] = {
    [X_IDIV] = "floordiv", [X_MOD] = "floormod", [X_CDIV] = "cdiv"};

static void expression(Header *h, Xid x) {
  const Expr *e = &h->k->expr.at[x];
  if (!x)
    put(h, "0");
  else if (e->op == X_INT)
    put(h, "INT64_C(%lld)", (long long)e->num.i);
  else if (e->op == X_BOOL)
    put(h, "%d", e->num.i != 0);
  else if (e->op == X_REAL)
    real(h, e->num.f);
  else if (e->op == X_DIM)
    put(h, "a->%s", field(h, h->k->dim.at[e->ref].name));
  else if (e->op == X_ARG)
    put(h, "a->%s", field(h, h->k->arg.at[e->ref].name));
  else if (e->op == X_WHERE)
    choose(h, e);
  else if (between[e->op])
    infix(h, between[e->op], e);
  else if (before[e->op])
    prefix(h, before[e->op], e);
  else if (called[e->op])
    call(h, sc_printf(h->sc, "%s_%s", h->name, called[e->op]), e);
  else if ((e->op == X_MIN || e->op == X_MAX) && e->ty == TY_INT)
    call(h, sc_printf(h->sc, "%s_%s", h->name, e->op == X_MIN ? "min" : "max"), e);
  else
    refuse(h, e->op == X_LOAD ? "an element of a tensor" : "a function of reals");
}

// ---- the interface

static void comment(Header *h) {
  put(h, "/* %s for NVIDIA Hopper (sm_90a), built by schedc %s from ", h->name, schedc_version());
  sc_cuda_origin(h->out, h->k);
  put(h,
      ".\n * It needs the CUDA driver alone: cuda.h of the toolkit (12.0 or newer), and -lcuda.\n"
      " *\n"
      " *   %s_kernel kernel;  CUresult e = %s_load(&kernel);       on the current context\n"
      " *   %s_args args = ...;      e = %s_launch(&kernel, &args, stream);\n"
      " *   %s_unload(&kernel);\n"
      " *\n"
      " * A launch is asynchronous, allocates nothing and may be captured in a graph. Threads that "
      "share a\n"
      " * kernel launch it one at a time. What the schedule requires is checked "
      "(CUDA_ERROR_INVALID_VALUE), and\n"
      " * the alignment of tensors (CUDA_ERROR_MISALIGNED_ADDRESS); not, that products of dimensions "
      "stay\n"
      " * within 32 bits: schedc_launch does. */\n",
      h->name, h->name, h->name, h->name, h->name);
}

static void tensor_field(Header *h, u32 i) {
  const Buf *b = &h->k->buf.at[i];
  static const char *const how[] = {"", "read", "written", "read and written"};
  Str shape = {.sc = h->sc};
  for (u32 d = 0; d < b->rank; d++) {
    if (d) str_puts(&shape, ", ");
    sc_print_infix(&shape, h->k, b->dim[d]);
  }
  put(h, "  CUdeviceptr %s;  /* %s[%s], %s */\n", field(h, b->name), sc_elem[b->elem].text,
      shape.at ? shape.at : "", how[b->dir & 3]);
  if (b->rank)
    put(h, "  int64_t %s_stride[%u];  /* elements; the last is 1 */\n", field(h, b->name), b->rank);
}

static void args_type(Header *h) {
  const Kernel *k = h->k;
  put(h, "typedef struct %s_args {\n", h->name);
  for (u32 i = 0; i < k->buf.n; i++) {
    if (is_argument(h, i)) tensor_field(h, i);
  }
  for (u32 i = 0; i < k->dim.n; i++) put(h, "  int64_t %s;\n", field(h, k->dim.at[i].name));
  for (u32 i = 0; i < k->arg.n; i++) {
    const Arg *a = &k->arg.at[i];
    put(h, "  %s %s;", a->elem == EL_I32 ? "int32_t" : "float", field(h, a->name));
    if (a->init) {
      put(h, "  /* in the schedule ");
      sc_print_infix(h->out, k, a->init);
      put(h, " where it is not given */");
    }
    put(h, "\n");
  }
  if (has_turns(k)) {
    put(h,
        "  CUdeviceptr workspace;  /* %s_workspace(args) bytes; one for launches that may overlap "
        "each */\n",
        h->name);
  }
  put(h, "} %s_args;\n\n", h->name);
  put(h,
      "typedef struct %s_kernel {\n"
      "  CUmodule module;\n"
      "  CUfunction function;\n"
      "  CUdeviceptr memory;  /* zeros, a place for writes that mean nothing, counters */\n"
      "  int sms;\n",
      h->name);
  if (k->grid == GRID_DYNAMIC) {
    put(h,
        "  unsigned captured;   /* launches */\n"
        "  struct {\n"
        "    unsigned long long id, used;\n"
        "  } stream[%d];       /* each that launches has a counter; when last: 0 for never */\n"
        "  unsigned long long clock;\n",
        STREAMS);
  }
  put(h, "} %s_kernel;\n\n", h->name);
}

static void code(Header *h, const Binary *cubin) {
  const unsigned char *at = cubin->at;
  put(h, "static const uint64_t %s_code[%zu] = {", h->name, (cubin->n + 7) / 8);
  for (size_t i = 0; i < cubin->n; i += 8) {
    u64 word = 0;
    for (size_t b = 0; b < 8 && i + b < cubin->n; b++) word |= (u64)at[i + b] << 8 * b;
    put(h, i % 40 ? " 0x%llxu," : "\n  0x%llxu,", (unsigned long long)word);
  }
  put(h, "\n};\n\n");
}

static void arithmetic(Header *h) {
  const char *n = h->name;
  put(h, "static inline int64_t %s_min(int64_t x, int64_t y) { return x < y ? x : y; }\n", n);
  put(h, "static inline int64_t %s_max(int64_t x, int64_t y) { return x > y ? x : y; }\n", n);
  put(h,
      "static inline int64_t %s_floordiv(int64_t x, int64_t y) {\n"
      "  return y ? x / y - (x %% y != 0 && (x < 0) != (y < 0)) : 0;\n"
      "}\n",
      n);
  put(h,
      "static inline int64_t %s_floormod(int64_t x, int64_t y) { return x - %s_floordiv(x, y) * y; "
      "}\n",
      n, n);
  put(h, "static inline int64_t %s_cdiv(int64_t x, int64_t y) { return -%s_floordiv(-x, y); }\n\n",
      n, n);
}

// ---- loading

// A grid that is not dynamic has no counters, but the zeros and the place for writes before them.
static int device_bytes(const Header *h) {
  return COUNTERS_AT + (h->k->grid == GRID_DYNAMIC ? (STREAMS + CAPTURES) * COUNTER_BYTES : 0);
}

static void load(Header *h) {
  const char *n = h->name;
  put(h,
      "static inline void %s_unload(%s_kernel *k) {\n"
      "  if (k->memory) cuMemFree(k->memory);\n"
      "  if (k->module) cuModuleUnload(k->module);\n"
      "  memset(k, 0, sizeof *k);\n"
      "}\n\n",
      n, n);
  put(h,
      "static inline CUresult %s_load(%s_kernel *k) {\n"
      "  CUdevice device;\n"
      "  CUresult e;\n"
      "  memset(k, 0, sizeof *k);\n"
      "  e = cuCtxGetDevice(&device);\n"
      "  if (!e) e = cuDeviceGetAttribute(&k->sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, "
      "device);\n"
      "  if (!e) e = cuModuleLoadData(&k->module, %s_code);\n"
      "  if (!e) e = cuModuleGetFunction(&k->function, k->module, \"%s\");\n"
      "  if (!e) e = cuFuncSetAttribute(k->function, "
      "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, %u);\n"
      "  if (!e) e = cuMemAlloc(&k->memory, %d);\n"
      "  if (!e) e = cuMemsetD8(k->memory, 0, %d);\n"
      "  if (!e) e = cuStreamSynchronize(NULL);\n"
      "  if (e) %s_unload(k);\n"
      "  return e;\n"
      "}\n\n",
      n, n, n, h->text->name, h->k->smem, device_bytes(h), device_bytes(h), n);
}

// ---- tensor maps

static const char *type_name(int type) {
  static const char *const name[] = {
      [0] = "UINT8", [3] = "INT32", [6] = "FLOAT16", [7] = "FLOAT32", [9] = "BFLOAT16"};
  return name[type];
}

// Extents and strides as sc_map_shape has them, by the tensor's dimensions.
static void map_dimensions(Header *h, const TmaMap *m, const Buf *t, u32 width, MapShape *shape) {
  i8 dims[5];
  u32 n = sc_cuda_map_dims(m, t->rank, dims), bytes = sc_elem[t->elem].bytes;
  for (u32 i = 0; i < n; i++) {
    if (dims[i] == MAP_PANEL_COL) {
      put(h, "  if (!none) extent[%u] = %u;\n", i, width);
    } else if (dims[i] == MAP_PANEL) {
      put(h, "  if (!none) extent[%u] = (cuuint64_t)", i);
      expression(h, t->dim[t->rank - 1]);
      put(h, " / %u;\n  stride[%u] = %llu;\n", width, i - 1, (unsigned long long)shape->stride[i]);
    } else {
      u32 d = (u32)dims[i];
      put(h, "  if (!none && ");
      expression(h, t->dim[d]);
      put(h, " > 1) {\n    extent[%u] = (cuuint64_t)", i);
      expression(h, t->dim[d]);
      put(h, ";\n");
      if (i)
        put(h, "    stride[%u] = (cuuint64_t)a->%s_stride[%u] * %u;\n", i - 1, field(h, t->name), d,
            bytes);
      put(h, "  }\n");
    }
  }
}

static void map(Header *h, u32 number) {
  const TmaMap *m = &h->text->map[number];
  const Buf *t = &h->k->buf.at[m->tensor], *part = &h->k->buf.at[m->part];
  static const char *const swizzle[] = {"NONE", "32B", "64B", "128B"};
  TensorRef large = {0};  // boxes and the like do not depend on extents
  for (u32 d = 0; d < t->rank; d++) large.shape[d] = large.stride[d] = 1 << 20;
  MapShape shape;
  sc_map_shape(h->k, m, &large, &shape);
  h->where = t->span;
  put(h, "/* %s in boxes of ring part %s */\n", t->name, part->name);
  put(h,
      "static inline CUresult %s_map%u(CUtensorMap *map, const %s_kernel *k, const %s_args *a) {\n",
      h->name, number, h->name, h->name);
  put(h,
      "  cuuint64_t extent[5] = {1, 1, 1, 1, 1}, stride[4] = {16, 16, 16, 16};\n"
      "  const cuuint32_t box[5] = {");
  for (u32 i = 0; i < 5; i++) put(h, i ? ", %u" : "%u", shape.box[i]);
  put(h, "}, step[5] = {1, 1, 1, 1, 1};\n  const int none = ");
  for (u32 d = 0; d < t->rank; d++) {
    put(h, d ? " || " : "");
    expression(h, t->dim[d]);
    put(h, " == 0");
  }
  put(h, ";  /* no elements: a stand-in for them */\n");
  map_dimensions(h, m, t, shape.box[0], &shape);
  put(h,
      "  return cuTensorMapEncodeTiled(map, CU_TENSOR_MAP_DATA_TYPE_%s, 5,\n"
      "                                (void *)(uintptr_t)(none ? k->memory + %d : a->%s), extent, "
      "stride, box, step,\n"
      "                                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_%s,\n"
      "                                CU_TENSOR_MAP_L2_PROMOTION_L2_256B, "
      "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);\n"
      "}\n\n",
      type_name(shape.type), t->dir & SCHEDC_OUT ? SINK_AT : ZERO_AT, field(h, t->name),
      swizzle[shape.swizzle]);
}

// ---- checks

// One without elements is never touched.
static void check_tensor(Header *h, u32 i) {
  const Buf *b = &h->k->buf.at[i];
  const char *name = field(h, b->name);
  unsigned align = (unsigned)sc_align_mask(h->k, h->text, i) + 1;
  h->where = b->span;
  put(h, "  if (");
  for (u32 d = 0; d < b->rank; d++) {
    put(h, d ? " && " : "");
    expression(h, b->dim[d]);
    put(h, " > 0");
  }
  put(h, b->rank ? ") {\n" : "1) {\n");
  put(h, "    if (!a->%s) return CUDA_ERROR_INVALID_VALUE;\n", name);
  put(h, "    if (a->%s %% %u) return CUDA_ERROR_MISALIGNED_ADDRESS;\n", name, align);
  for (u32 d = 0; d < b->rank; d++) {
    bool last = d + 1u == b->rank;
    put(h, "    if (");
    expression(h, b->dim[d]);
    put(h, " > 1 && ");
    if (last)
      put(h, "a->%s_stride[%u] != 1) return CUDA_ERROR_INVALID_VALUE;\n", name, d);
    else
      put(h,
          "(a->%s_stride[%u] < 0 || a->%s_stride[%u] * %u %% %u)) return "
          "CUDA_ERROR_MISALIGNED_ADDRESS;\n",
          name, d, name, d, sc_elem[b->elem].bytes, align);
  }
  put(h, "  }\n");
}

static void check(Header *h) {
  const Kernel *k = h->k;
  put(h, "static inline CUresult %s_check(const %s_args *a) {\n", h->name, h->name);
  for (u32 i = 0; i < k->dim.n; i++) {
    const char *dim = field(h, k->dim.at[i].name);
    put(h, "  if (a->%s < 0 || a->%s > INT32_MAX) return CUDA_ERROR_INVALID_VALUE;\n", dim, dim);
  }
  for (u32 i = 0; i < k->require.n; i++) {
    h->where = k->require.at[i].span;
    put(h, "  if (!(");
    expression(h, k->require.at[i].cond);
    put(h, ")) return CUDA_ERROR_INVALID_VALUE;\n");
  }
  for (u32 i = 0; i < k->buf.n; i++) {
    if (is_argument(h, i)) check_tensor(h, i);
  }
  put(h, "  return CUDA_SUCCESS;\n}\n\n");
}

// ---- the grid

static u32 cluster_of(const Kernel *k) {
  u32 n = 1;
  for (u32 i = 0; i < k->axis.n; i++) n *= k->axis.at[i].cluster;
  return n;
}

// Tiles, counted in clusters; -1: too many.
static void tiles(Header *h) {
  const Kernel *k = h->k;
  put(h,
      "static inline int64_t %s_tiles(const %s_args *a) {\n  int64_t n = 1, extent;\n  (void)a;\n",
      h->name, h->name);
  for (u32 i = 0; i < k->axis.n; i++) {
    const Axis *x = &k->axis.at[i];
    h->where = x->span;
    put(h, "  extent = %s_max(0, ", h->name);
    expression(h, x->extent);
    put(h, ");  /* %s */\n", x->name);
    if (x->cluster > 1) put(h, "  extent = (extent + %u) / %u;\n", x->cluster - 1, x->cluster);
    put(h,
        "  if (extent > INT32_MAX) return -1;\n  if (n >= 0) n = extent && n > INT32_MAX / extent "
        "? -1 : n * extent;\n"
        "  if (!extent) return 0;\n");
  }
  put(h, "  return n;\n}\n\n");
}

// Counters of turns over CTAs, one after the other.
static void workspace(Header *h) {
  const Kernel *k = h->k;
  put(h, "static inline size_t %s_turns(const %s_args *a, size_t *at) {\n  size_t n = 0;\n",
      h->name, h->name);
  for (u32 i = 0, number = 0; i < k->turn.n; i++) {
    const Turn *t = &k->turn.at[i];
    if (!sc_turn_over_ctas(t)) continue;
    h->where = t->span;
    put(h, "  if (at) at[%u] = n;\n  n += (size_t)%s_max(0, ", number++, h->name);
    if (t->keys)
      expression(h, t->keys);
    else
      put(h, "1");
    put(h, ")");
    for (u32 x = 0; x < k->axis.n; x++) {
      if (x == t->axis) continue;
      put(h, " * (size_t)%s_cdiv(", h->name);
      expression(h, k->axis.at[x].extent);
      put(h, ", %u) * %u", k->axis.at[x].cluster, k->axis.at[x].cluster);
    }
    put(h, " * 4;  /* %s */\n  n = (n + 255) / 256 * 256;\n", t->name);
  }
  put(h, "  return n;\n}\n");
  put(h, "static inline size_t %s_workspace(const %s_args *a) { return %s_turns(a, NULL); }\n\n",
      h->name, h->name, h->name);
}

// ---- launching

// The same struct as the kernel's.
static void argument_block(Header *h) {
  const Kernel *k = h->k;
  put(h, "  struct {\n");
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *b = &k->buf.at[i];
    if (is_argument(h, i) && h->text->by_thread[i])
      put(h, "    CUdeviceptr %s;\n    int64_t %s_stride[%u];\n", field(h, b->name),
          field(h, b->name), b->rank);
  }
  for (u32 i = 0; i < k->dim.n; i++) put(h, "    int32_t %s;\n", field(h, k->dim.at[i].name));
  for (u32 i = 0; i < k->arg.n; i++)
    put(h, "    %s %s;\n", k->arg.at[i].elem == EL_I32 ? "int32_t" : "float",
        field(h, k->arg.at[i].name));
  if (k->grid == GRID_DYNAMIC) put(h, "    CUdeviceptr counter;\n");
  for (u32 i = 0; i < k->turn.n; i++) {
    if (sc_turn_over_ctas(&k->turn.at[i])) put(h, "    CUdeviceptr turn%u;\n", i);
  }
  put(h, "    int32_t tiles;\n  } block;\n");
}

static void fill_block(Header *h) {
  const Kernel *k = h->k;
  put(h, "  memset(&block, 0, sizeof block);\n");
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *b = &k->buf.at[i];
    const char *name = field(h, b->name);
    if (!is_argument(h, i) || !h->text->by_thread[i]) continue;
    put(h, "  block.%s = a->%s;\n", name, name);
    for (u32 d = 0; d < b->rank; d++) {
      put(h, "  block.%s_stride[%u] = ", name, d);
      expression(h, b->dim[d]);
      put(h, " > 1 ? a->%s_stride[%u] : 1;\n", name, d);
    }
  }
  for (u32 i = 0; i < k->dim.n; i++)
    put(h, "  block.%s = (int32_t)a->%s;\n", field(h, k->dim.at[i].name),
        field(h, k->dim.at[i].name));
  for (u32 i = 0; i < k->arg.n; i++)
    put(h, "  block.%s = a->%s;\n", field(h, k->arg.at[i].name), field(h, k->arg.at[i].name));
  if (k->grid == GRID_DYNAMIC)
    put(h, "  e = %s_counter(k, stream, &block.counter);\n  if (e) return e;\n", h->name);
  for (u32 i = 0, number = 0; i < k->turn.n; i++) {
    if (sc_turn_over_ctas(&k->turn.at[i]))
      put(h, "  block.turn%u = a->workspace + turn[%u];\n", i, number++);
  }
  put(h, "  block.tiles = (int32_t)tiles;\n");
}

// As launch.c's next_counter.
static void counter(Header *h) {
  const char *n = h->name;
  put(h,
      "/* The tile counter of a launch is 0 again when it has ended. What is launched on a stream runs in\n"
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
  put(h,
      "  e = cuStreamGetId(stream, &id);\n"
      "  if (e) return e;\n"
      "  for (i = 0; i < %u && k->stream[at].used; i++) {  /* its own, else the one unused for longest */\n"
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

static void launch(Header *h) {
  const Kernel *k = h->k;
  const char *n = h->name;
  u32 ctas = cluster_of(k), turns = 0;
  for (u32 i = 0; i < k->turn.n; i++) turns += sc_turn_over_ctas(&k->turn.at[i]);
  put(h, "static inline CUresult %s_launch(%s_kernel *k, const %s_args *a, CUstream stream) {\n", n,
      n, n);
  if (h->text->maps) put(h, "  CUtensorMap map[%u];\n", h->text->maps);
  argument_block(h);
  put(h, "  void *param[%u];\n  int64_t tiles, clusters;\n  CUresult e = %s_check(a);\n",
      h->text->maps + 1, n);
  if (turns) put(h, "  size_t turn[%u], zeros;\n", turns);
  put(h,
      "  if (e) return e;\n  tiles = clusters = %s_tiles(a);\n"
      "  if (tiles < 0) return CUDA_ERROR_INVALID_VALUE;\n  if (!tiles) return CUDA_SUCCESS;\n",
      n);
  if (k->grid != GRID_PLAIN)
    put(h, "  clusters = %s_min(clusters, %s_max(1, k->sms / %u));\n", n, n, ctas);
  if (turns)
    put(h,
        "  zeros = %s_turns(a, turn);\n"
        "  if (zeros) e = cuMemsetD8Async(a->workspace, 0, zeros, stream);\n"
        "  if (e) return e;\n",
        n);
  fill_block(h);
  for (u32 i = 0; i < h->text->maps; i++)
    put(h, "  e = %s_map%u(&map[%u], k, a);\n  if (e) return e;\n  param[%u] = &map[%u];\n", n, i,
        i, i, i);
  put(h, "  param[%u] = &block;\n", h->text->maps);
  put(h,
      "  if (clusters > INT32_MAX / %u) return CUDA_ERROR_INVALID_VALUE;\n"
      "  return cuLaunchKernel(k->function, (unsigned)clusters * %u, 1, 1, %u, 1, 1, %u, stream, "
      "param, NULL);\n"
      "}\n",
      ctas, ctas, k->threads, k->smem);
}

bool sc_header(Str *out, const Kernel *k, const CudaText *text, const Binary *cubin) {
  Header h = {
      .sc = out->sc, .out = out, .k = k, .text = text, .name = text->name, .where = k->span};
  comment(&h);
  put(&h,
      "#ifndef SCHEDC_%s_H\n#define SCHEDC_%s_H\n\n#include <cuda.h>\n#include "
      "<stddef.h>\n#include <stdint.h>\n"
      "#include <string.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
      h.name, h.name);
  args_type(&h);
  arithmetic(&h);
  check(&h);
  tiles(&h);
  if (has_turns(k)) workspace(&h);
  for (u32 i = 0; i < text->maps; i++) map(&h, i);
  code(&h, cubin);
  load(&h);
  if (k->grid == GRID_DYNAMIC) counter(&h);
  launch(&h);
  put(&h, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
  return !h.refused;
}
