// launch.c - parameters of a launch: tensor maps (CUDA driver API, cuTensorMapEncodeTiled) and the argument
// block, in the order in which cuda.c declares them.
#include "gpu.h"

#include <string.h>

enum { ATTR_SMS = 16, FUNC_MAX_DYNAMIC_SHARED = 8, MAX_MAPS = 16, MAX_ARGS = 2048 };

typedef struct __attribute__((aligned(64))) Map128 {
  unsigned char bytes[128];
} Map128;

const char *sc_load(Sc *sc, const Driver *d, const Kernel *k, const CudaText *text, const void *cubin, Loaded *out) {
  *out = (Loaded){.k = k, .text = text};
  int e = d->cuModuleLoadData(&out->module, cubin);
  if (!e) e = d->cuModuleGetFunction(&out->function, out->module, text->name);
  if (!e) e = d->cuFuncSetAttribute(out->function, FUNC_MAX_DYNAMIC_SHARED, (int)k->smem);
  if (!e && k->grid == GRID_DYNAMIC) e = d->cuMemAlloc(&out->counter, 4);
  if (!e && k->grid == GRID_DYNAMIC) e = d->cuMemcpyHtoD(out->counter, &(int){0}, 4);
  if (!e) e = d->cuDeviceGetAttribute(&out->sms, ATTR_SMS, 0);
  return e ? sc_printf(sc, "kernel '%s' cannot be loaded: %s", k->name, sc_driver_error(d, e)) : NULL;
}

static int map_type(Elem e) {
  switch (e) {
    case EL_F32: return 7;
    case EL_F16: return 6;
    case EL_BF16: return 9;
    case EL_I32: return 3;
    default: return 0;  // 8-bit: bytes
  }
}

// The map's dimensions are those of sc_cuda_map_dims, filled up to five with extents of one. A dimension of extent one
// or less is never stepped over, so that its stride may be anything valid.
static const char *encode(Sc *sc, const Driver *d, const Kernel *k, const Binding *b, const TmaMap *m, Map128 *out) {
  const Buf *t = &k->buf.at[m->tensor], *part = &k->buf.at[m->part];
  const TensorRef *ref = &b->buf[m->tensor];
  i8 dims[5];
  u32 n = sc_cuda_map_dims(m, t->rank, dims), bytes = sc_elem[t->elem].bytes;
  u32 width = (part->swizzle ? part->swizzle : (u32)part->ext[part->rank - 1] * bytes) / bytes;
  u32 panels = (u32)part->ext[part->rank - 1] / width, part_dim = part->rank - 1u;
  u64 extent[5] = {1, 1, 1, 1, 1}, stride[5];
  unsigned box[5] = {1, 1, 1, 1, 1}, ones[5] = {1, 1, 1, 1, 1};
  for (u32 i = 0; i < 5; i++) stride[i] = 16;
  box[0] = width;
  bool empty = false;
  for (u32 i = 0; i < t->rank; i++) empty |= ref->shape[i] == 0;
  for (u32 i = 0; i < n; i++) {
    if (dims[i] == MAP_PANEL_COL) {
      extent[i] = width;
    } else if (dims[i] == MAP_PANEL) {
      extent[i] = empty ? 1 : (u64)ref->shape[t->rank - 1] / width;
      stride[i] = (u64)width * bytes;
      box[i] = panels % m->ctas ? panels : panels / m->ctas;
    } else {
      u32 dim = (u32)dims[i];
      extent[i] = ref->shape[dim] > 1 && !empty ? (u64)ref->shape[dim] : 1;
      if (ref->shape[dim] > 1 && !empty) stride[i] = (u64)ref->stride[dim] * bytes;
      if (i > 0 && m->sliced[dim]) box[i] = (unsigned)part->ext[--part_dim];
    }
  }
  if (panels % m->ctas) box[1] /= m->ctas;
  int swizzle = part->swizzle == 128 ? 3 : part->swizzle == 64 ? 2 : part->swizzle == 32 ? 1 : 0;
  int e = d->cuTensorMapEncodeTiled(out, map_type((Elem)t->elem), 5, ref->at, extent, stride + 1, box, ones, 0, swizzle, 3, 0);
  return e ? sc_printf(sc, "tensor '%s' cannot be copied in boxes: its address and strides must be multiples of 16 bytes (%s)", t->name, sc_driver_error(d, e)) : NULL;
}

static void put(unsigned char *args, size_t *n, size_t align, const void *v, size_t bytes) {
  *n = (*n + align - 1) / align * align;
  memcpy(args + *n, v, bytes);
  *n += bytes;
}

static size_t pack(const Loaded *l, const Binding *b, i64 tiles, unsigned char *args) {
  const Kernel *k = l->k;
  size_t n = 0;
  for (u32 i = 0; i < k->buf.n; i++) {
    if (k->buf.at[i].space != SP_TENSOR || !l->text->by_thread[i]) continue;
    put(args, &n, 8, &b->buf[i].at, 8);
    for (u32 d = 0; d < k->buf.at[i].rank; d++) put(args, &n, 8, &b->buf[i].stride[d], 8);
  }
  for (u32 i = 0; i < k->dim.n; i++) put(args, &n, 4, &(int){(int)b->dim[i]}, 4);
  for (u32 i = 0; i < k->arg.n; i++) {
    if (k->arg.at[i].elem == EL_I32) put(args, &n, 4, &(int){(int)b->arg[i]}, 4);
    else put(args, &n, 4, &(float){(float)b->arg[i]}, 4);
  }
  if (k->grid == GRID_DYNAMIC) put(args, &n, 8, &l->counter, 8);
  put(args, &n, 4, &(int){(int)tiles}, 4);
  return n;
}

const char *sc_launch(Sc *sc, const Driver *d, const Loaded *l, const Binding *b, void *stream) {
  const Kernel *k = l->k;
  Map128 maps[MAX_MAPS];
  unsigned char args[MAX_ARGS] __attribute__((aligned(16)));
  void *params[MAX_MAPS + 1];
  if (l->text->maps > MAX_MAPS) return "too many tensor maps";
  for (u32 i = 0; i < l->text->maps; i++) {
    const char *wrong = encode(sc, d, k, b, &l->text->map[i], &maps[i]);
    if (wrong) return wrong;
    params[i] = &maps[i];
  }
  Env env;
  env_init(sc, &env, k, b);
  i64 tiles = 1, ctas = 1;
  for (u32 i = 0; i < k->axis.n; i++) {
    i64 n = k->axis.at[i].cluster, extent = env_int(&env, k->axis.at[i].extent);
    ctas *= n;
    if (__builtin_mul_overflow(tiles, (extent + n - 1) / n, &tiles) || tiles > INT32_MAX) return "the grid has more than 2^31 tiles";
  }
  if (tiles <= 0) return NULL;
  pack(l, b, tiles, args);
  params[l->text->maps] = args;
  i64 room = l->sms / ctas;
  unsigned grid = (unsigned)((k->grid == GRID_PLAIN || tiles < room ? tiles : room) * ctas);
  int e = d->cuLaunchKernel(l->function, grid, 1, 1, k->threads, 1, 1, k->smem, stream, params, NULL);
  return e ? sc_printf(sc, "kernel '%s' does not start: %s", k->name, sc_driver_error(d, e)) : NULL;
}
