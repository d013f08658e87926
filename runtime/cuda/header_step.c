// header_step.c - in a C header, the functions of one kernel: checks of its tensors, the grid,
// tensor maps, the block of arguments. In: what the launcher goes by. Out: NAME_prepare, which
// writes into a NAME_plan all that a launch is, and NAME_enqueue, which gives it to the driver.
// They do what launch.c does.
#include "runtime/cuda/header.h"

#include <string.h>

bool hd_has_turns(const Kernel *k) {
  for (u32 i = 0; i < k->turn.n; i++) {
    if (sc_turn_over_ctas(&k->turn.at[i])) return true;
  }
  return false;
}

bool hd_asks_for_room(const Kernel *k) { return k->grid != GRID_PLAIN && sc_cluster(k) > 1; }

// A tensor that the kernel is given, by a map or by its address.
static bool is_argument(const Header *h, u32 buf) { return h->k->buf.at[buf].space == SP_TENSOR; }

// ---- expressions of dimensions and scalars, in 64-bit integers and doubles

static void refuse(Header *h, const char *what) {
  if (!h->refused) {
    sc_report(h->sc, D_G_HEADER, h->where, "a C header cannot say %s, which this depends on", what);
  }
  h->refused = true;
}

static void call(Header *h, const char *f, const Expr *e) {
  hd_put(h, "%s(", f);
  hd_expression(h, e->a);
  hd_put(h, ", ");
  hd_expression(h, e->b);
  hd_put(h, ")");
}

static void infix(Header *h, const char *op, const Expr *e) {
  hd_put(h, "(");
  hd_expression(h, e->a);
  hd_put(h, " %s ", op);
  hd_expression(h, e->b);
  hd_put(h, ")");
}

static void prefix(Header *h, const char *op, const Expr *e) {
  hd_put(h, "(%s", op);
  hd_expression(h, e->a);
  hd_put(h, ")");
}

static void choose(Header *h, const Expr *e) {
  hd_put(h, "(");
  hd_expression(h, e->a);
  hd_put(h, " ? ");
  hd_expression(h, e->b);
  hd_put(h, " : ");
  hd_expression(h, e->c);
  hd_put(h, ")");
}

static void real(Header *h, double v) {
  if (v - v != 0) refuse(h, "an infinite number");
  else str_real(h->out, v);
}

// By an operator of C or, of two integers, by a function of the header.
static void operation(Header *h, const Expr *e) {
  bool integers = h->k->expr.at[e->a].ty == TY_INT, two = sc_xop[e->op].arity == 2;
  const char *text = integers ? sc_xop[e->op].c_int : sc_xop[e->op].c;
  if (!text || (sc_is_function(text) && !(integers && two))) refuse(h, "a function of reals");
  else if (sc_is_function(text))
    call(h, sc_printf(h->sc, "%s_%s", h->file, text + (strncmp(text, "sc_", 3) ? 0 : 3)), e);
  else if (two) infix(h, text, e);
  else prefix(h, text, e);
}

void hd_expression(Header *h, Xid x) {
  const Expr *e = &h->k->expr.at[x];
  if (!x) hd_put(h, "0");
  else if (e->op == X_INT) hd_put(h, "INT64_C(%lld)", (long long)e->num.i);
  else if (e->op == X_BOOL) hd_put(h, "%d", e->num.i != 0);
  else if (e->op == X_REAL) real(h, e->num.f);
  else if (e->op == X_DIM) hd_put(h, "a->%s", hd_field(h, h->k->dim.at[e->ref].name));
  else if (e->op == X_ARG) hd_put(h, "a->%s", hd_field(h, h->k->arg.at[e->ref].name));
  else if (e->op == X_WHERE) choose(h, e);
  else if (e->op == X_TOREAL) prefix(h, "(double)", e);
  else if (e->op == X_LOAD) refuse(h, "an element of a tensor");
  else operation(h, e);
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
      hd_put(h, "  if (!none) extent[%u] = %u;\n", i, width);
    } else if (dims[i] == MAP_PANEL) {
      hd_put(h, "  if (!none) extent[%u] = (cuuint64_t)", i);
      hd_expression(h, t->dim[t->rank - 1]);
      hd_put(h, " / %u;\n  stride[%u] = %llu;\n", width, i - 1,
             (unsigned long long)shape->stride[i]);
    } else {
      u32 d = (u32)dims[i];
      hd_put(h, "  if (!none && ");
      hd_expression(h, t->dim[d]);
      hd_put(h, " > 1) {\n    extent[%u] = (cuuint64_t)", i);
      hd_expression(h, t->dim[d]);
      hd_put(h, ";\n");
      if (i)
        hd_put(h, "    stride[%u] = (cuuint64_t)a->%s_stride[%u] * %u;\n", i - 1,
               hd_field(h, t->name), d, bytes);
      hd_put(h, "  }\n");
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
  hd_put(h, "/* %s in boxes of ring part %s */\n", t->name, part->name);
  hd_put(
      h,
      "static inline CUresult %s_map%u(CUtensorMap *map, const %s_kernel *k, const %s_args *a) {\n",
      h->name, number, h->file, h->file);
  hd_put(h,
         "  cuuint64_t extent[5] = {1, 1, 1, 1, 1}, stride[4] = {16, 16, 16, 16};\n"
         "  const cuuint32_t box[5] = {");
  for (u32 i = 0; i < 5; i++) hd_put(h, i ? ", %u" : "%u", shape.box[i]);
  hd_put(h, "}, step[5] = {1, 1, 1, 1, 1};\n  const int none = ");
  for (u32 d = 0; d < t->rank; d++) {
    hd_put(h, d ? " || " : "");
    hd_expression(h, t->dim[d]);
    hd_put(h, " == 0");
  }
  hd_put(h, ";  /* no elements: a stand-in for them */\n");
  map_dimensions(h, m, t, shape.box[0], &shape);
  hd_put(
      h,
      "  return cuTensorMapEncodeTiled(map, CU_TENSOR_MAP_DATA_TYPE_%s, 5,\n"
      "                                (void *)(uintptr_t)(none ? k->memory + %d : a->%s), extent, "
      "stride, box, step,\n"
      "                                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_%s,\n"
      "                                CU_TENSOR_MAP_L2_PROMOTION_L2_256B, "
      "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);\n"
      "}\n\n",
      type_name(shape.type), t->dir & SCHEDC_OUT ? SINK_AT : ZERO_AT, hd_field(h, t->name),
      swizzle[shape.swizzle]);
}

// ---- checks

// One without elements is never touched.
static void has_elements(Header *h, const Buf *b) {
  for (u32 d = 0; d < b->rank; d++) {
    hd_put(h, d ? " && " : "");
    hd_expression(h, b->dim[d]);
    hd_put(h, " > 0");
  }
  if (!b->rank) hd_put(h, "1");
}

static void check_tensor(Header *h, u32 i) {
  const Buf *b = &h->k->buf.at[i];
  const char *name = hd_field(h, b->name);
  unsigned align = (unsigned)sc_align_mask(h->k, h->text, i) + 1;
  h->where = b->span;
  hd_put(h, "  if (");
  has_elements(h, b);
  hd_put(h, ") {\n");
  hd_put(h, "    if (!a->%s) return CUDA_ERROR_INVALID_VALUE;\n", name);
  hd_put(h, "    if (a->%s %% %u) return CUDA_ERROR_MISALIGNED_ADDRESS;\n", name, align);
  for (u32 d = 0; d < b->rank; d++) {
    bool last = d + 1u == b->rank;
    hd_put(h, "    if (");
    hd_expression(h, b->dim[d]);
    hd_put(h, " > 1 && ");
    if (last) hd_put(h, "a->%s_stride[%u] != 1) return CUDA_ERROR_INVALID_VALUE;\n", name, d);
    else
      hd_put(h,
             "(a->%s_stride[%u] < 0 || a->%s_stride[%u] * %u %% %u)) return "
             "CUDA_ERROR_MISALIGNED_ADDRESS;\n",
             name, d, name, d, sc_elem[b->elem].bytes, align);
  }
  hd_put(h, "  }\n");
}

static void check_tensors(Header *h) {
  hd_put(h, "static inline CUresult %s_tensors(const %s_args *a) {\n", h->name, h->file);
  for (u32 i = 0; i < h->k->buf.n; i++) {
    if (is_argument(h, i)) check_tensor(h, i);
  }
  hd_put(h, "  (void)a;\n  return CUDA_SUCCESS;\n}\n\n");
}

// ---- the grid

// Tiles, counted in clusters; -1: too many.
static void tiles(Header *h) {
  const Kernel *k = h->k;
  hd_put(h, "static inline int64_t %s_tiles(const %s_args *a) {\n  int64_t n = 1%s;\n  (void)a;\n",
         h->name, h->file, k->axis.n ? ", extent" : "");
  for (u32 i = 0; i < k->axis.n; i++) {
    const Axis *x = &k->axis.at[i];
    h->where = x->span;
    hd_put(h, "  extent = %s_max(0, ", h->file);
    hd_expression(h, x->extent);
    hd_put(h, ");  /* %s */\n", x->name);
    if (x->cluster > 1) hd_put(h, "  extent = (extent + %u) / %u;\n", x->cluster - 1, x->cluster);
    hd_put(
        h,
        "  if (extent > INT32_MAX) return -1;\n  if (n >= 0) n = extent && n > INT32_MAX / extent "
        "? -1 : n * extent;\n"
        "  if (!extent) return 0;\n");
  }
  hd_put(h, "  return n;\n}\n\n");
}

// Counters of turns over CTAs, one after the other. A launch without tiles needs none.
static void turns(Header *h) {
  const Kernel *k = h->k;
  hd_put(h,
         "static inline size_t %s_turns(const %s_args *a, size_t *at) {\n  size_t n = 0;\n"
         "  if (%s_tiles(a) <= 0) return 0;\n",
         h->name, h->file, h->name);
  for (u32 i = 0, number = 0; i < k->turn.n; i++) {
    const Turn *t = &k->turn.at[i];
    if (!sc_turn_over_ctas(t)) continue;
    h->where = t->span;
    hd_put(h, "  if (at) at[%u] = n;\n  n += (size_t)%s_max(0, ", number++, h->file);
    if (t->keys) hd_expression(h, t->keys);
    else hd_put(h, "1");
    hd_put(h, ")");
    for (u32 x = 0; x < k->axis.n; x++) {
      if (x == t->axis) continue;
      hd_put(h, " * (size_t)%s_cdiv(", h->file);
      hd_expression(h, k->axis.at[x].extent);
      hd_put(h, ", %u) * %u", k->axis.at[x].cluster, k->axis.at[x].cluster);
    }
    hd_put(h, " * 4;  /* %s */\n  n = (n + 255) / 256 * 256;\n", t->name);
  }
  hd_put(h, "  return n;\n}\n\n");
}

// ---- a launch

// `block` is the struct that the kernel takes. C99 aligns no struct to 64 bytes, as the driver
// wants maps: hence `room`.
static void plan_type(Header *h) {
  const Kernel *k = h->k;
  hd_put(h, "typedef struct %s_plan {\n  unsigned ctas;  /* 0: nothing to do */\n", h->name);
  if (h->text->maps)
    hd_put(h, "  uint64_t room[%u];  /* tensor maps, from the first multiple of 64 bytes on */\n",
           16 * h->text->maps + 7);
  hd_put(h, "  struct {\n");
  for (u32 i = 0; i < k->buf.n; i++) {
    const char *name = hd_field(h, k->buf.at[i].name);
    if (!is_argument(h, i) || !h->text->by_thread[i]) continue;
    hd_put(h, "    CUdeviceptr %s;\n    int64_t %s_stride[%u];\n", name, name, k->buf.at[i].rank);
  }
  for (u32 i = 0; i < k->dim.n; i++) hd_put(h, "    int32_t %s;\n", hd_field(h, k->dim.at[i].name));
  for (u32 i = 0; i < k->arg.n; i++)
    hd_put(h, "    %s %s;\n", k->arg.at[i].elem == EL_I32 ? "int32_t" : "float",
           hd_field(h, k->arg.at[i].name));
  if (k->grid == GRID_DYNAMIC) hd_put(h, "    CUdeviceptr counter;\n");
  for (u32 i = 0; i < k->turn.n; i++) {
    if (sc_turn_over_ctas(&k->turn.at[i])) hd_put(h, "    CUdeviceptr turn%u;\n", i);
  }
  hd_put(h, "    int32_t tiles;\n  } block;\n} %s_plan;\n\n", h->name);
  if (h->text->maps)
    hd_put(h,
           "static inline CUtensorMap *%s_maps(%s_plan *p) {\n"
           "  return (CUtensorMap *)(((uintptr_t)p->room + 63) / 64 * 64);\n}\n\n",
           h->name, h->name);
}

static void fill_block(Header *h) {
  const Kernel *k = h->k;
  hd_put(h, "  memset(&p->block, 0, sizeof p->block);\n");
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *b = &k->buf.at[i];
    const char *name = hd_field(h, b->name);
    if (!is_argument(h, i) || !h->text->by_thread[i]) continue;
    hd_put(h, "  p->block.%s = ", name);
    if (!b->workspace) {
      has_elements(h, b);
      hd_put(h, " ? a->%s : 0;\n", name);
    } else {
      hd_put(h, "a->%s;\n", name);
    }
    for (u32 d = 0; d < b->rank; d++) {
      hd_put(h, "  p->block.%s_stride[%u] = ", name, d);
      if (!b->workspace) {
        hd_expression(h, b->dim[d]);
        hd_put(h, " <= 1 ? 1 : ");
      }
      hd_put(h, "a->%s_stride[%u];\n", name, d);
    }
  }
  for (u32 i = 0; i < k->dim.n; i++) {
    const char *name = hd_field(h, k->dim.at[i].name);
    hd_put(h, "  p->block.%s = (int32_t)a->%s;\n", name, name);
  }
  for (u32 i = 0; i < k->arg.n; i++) {
    const char *name = hd_field(h, k->arg.at[i].name);
    hd_put(h, "  p->block.%s = a->%s;\n", name, name);
  }
  for (u32 i = 0, number = 0; i < k->turn.n; i++) {
    if (sc_turn_over_ctas(&k->turn.at[i]))
      hd_put(h, "  p->block.turn%u = turns + turn[%u];\n", i, number++);
  }
  hd_put(h, "  p->block.tiles = (int32_t)tiles;\n");
}

static void prepare(Header *h) {
  const Kernel *k = h->k;
  const char *n = h->name;
  bool has_turns = hd_has_turns(k), dynamic = k->grid == GRID_DYNAMIC;
  u32 ctas = sc_cluster(k);
  hd_put(h,
         "static inline CUresult %s_prepare(%s_plan *p, %s%s_kernel *k, const %s_args *a%s%s) {\n"
         "  const int64_t tiles = %s_tiles(a);\n  int64_t clusters = tiles;\n",
         n, n, dynamic ? "" : "const ", h->file, h->file, dynamic ? ", CUstream stream" : "",
         has_turns ? ", CUdeviceptr turns" : "", n);
  if (has_turns) hd_put(h, "  size_t turn[%u];\n", k->turn.n);
  if (h->text->maps || dynamic) hd_put(h, "  CUresult e;\n");
  hd_put(h,
         "  (void)k;\n  p->ctas = 0;\n  if (tiles < 0) return CUDA_ERROR_INVALID_VALUE;\n"
         "  if (!tiles) return CUDA_SUCCESS;\n");
  if (hd_asks_for_room(k))
    hd_put(h, "  clusters = %s_min(clusters, k->room[%u]);\n", h->file, h->number);
  if (k->grid != GRID_PLAIN)
    hd_put(h, "  clusters = %s_min(clusters, %s_max(1, k->sms / %u));\n", h->file, h->file, ctas);
  hd_put(h, "  if (clusters > INT32_MAX / %u) return CUDA_ERROR_INVALID_VALUE;\n", ctas);
  if (has_turns) hd_put(h, "  %s_turns(a, turn);\n", n);
  fill_block(h);
  if (dynamic)
    hd_put(h, "  e = %s_counter(k, stream, &p->block.counter);\n  if (e) return e;\n", h->file);
  for (u32 i = 0; i < h->text->maps; i++)
    hd_put(h, "  e = %s_map%u(&%s_maps(p)[%u], k, a);\n  if (e) return e;\n", n, i, n, i);
  hd_put(h, "  p->ctas = (unsigned)clusters * %u;\n  return CUDA_SUCCESS;\n}\n\n", ctas);
}

static void enqueue(Header *h) {
  hd_put(h,
         "static inline CUresult %s_enqueue(%s_plan *p, const %s_kernel *k, CUstream stream) {\n"
         "  void *param[%u];\n"
         "  if (!p->ctas) return CUDA_SUCCESS;\n",
         h->name, h->name, h->file, h->text->maps + 1);
  for (u32 i = 0; i < h->text->maps; i++)
    hd_put(h, "  param[%u] = &%s_maps(p)[%u];\n", i, h->name, i);
  hd_put(h,
         "  param[%u] = &p->block;\n"
         "  return cuLaunchKernel(k->function[%u], p->ctas, 1, 1, %u, 1, 1, %u, stream, param, "
         "NULL);\n"
         "}\n\n",
         h->text->maps, h->number, h->k->threads, h->k->smem);
}

void hd_step(Header *h) {
  check_tensors(h);
  tiles(h);
  if (hd_has_turns(h->k)) turns(h);
  for (u32 i = 0; i < h->text->maps; i++) map(h, i);
  plan_type(h);
  prepare(h);
  enqueue(h);
}
