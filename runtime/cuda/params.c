// params.c - parameters of a launch, in the order in which compiler/emit/frame.c declares them: tensor maps (CUDA
// driver API, cuTensorMapEncodeTiled), then the argument block. Nothing here calls the driver.
#include "runtime/cuda/gpu.h"

#include <string.h>

static int map_type(Elem e) {
  switch (e) {
    case EL_F32:
      return 7;
    case EL_F16:
      return 6;
    case EL_BF16:
      return 9;
    case EL_I32:
      return 3;
    default:
      return 0;  // 8-bit: bytes
  }
}

static bool is_empty(const TensorRef *ref, u32 rank) {
  for (u32 i = 0; i < rank; i++) {
    if (!ref->shape[i]) return true;
  }
  return false;
}

// The map's dimensions are those of sc_cuda_map_dims, filled up to five with extents of one. A
// dimension of extent one is never stepped over, so that its stride may be anything valid; one of
// stride 0 is the same element everywhere. A tensor without elements is seen as one element, of
// memory that the caller has for that.
void sc_map_shape(const Kernel *k, const TmaMap *m, const TensorRef *ref, MapShape *out) {
  const Buf *t = &k->buf.at[m->tensor], *part = &k->buf.at[m->part];
  i8 dims[5];
  u32 n = sc_cuda_map_dims(m, t->rank, dims), bytes = sc_elem[t->elem].bytes;
  u32 width = (part->swizzle ? part->swizzle : (u32)part->ext[part->rank - 1] * bytes) / bytes;
  u32 panels = (u32)part->ext[part->rank - 1] / width, part_dim = part->rank - 1u;
  *out = (MapShape){.type = map_type((Elem)t->elem), .empty = is_empty(ref, t->rank)};
  for (u32 i = 0; i < 5; i++) {
    out->extent[i] = out->box[i] = 1;
    out->stride[i] = 16;
  }
  out->box[0] = width;
  for (u32 i = 0; i < n; i++) {
    if (dims[i] == MAP_PANEL_COL) {
      out->extent[i] = out->empty ? 1 : width;
    } else if (dims[i] == MAP_PANEL) {
      out->extent[i] = out->empty ? 1 : (u64)ref->shape[t->rank - 1] / width;
      out->stride[i] = (u64)width * bytes;
      out->box[i] = panels % m->ctas ? panels : panels / m->ctas;
    } else {
      u32 dim = (u32)dims[i];
      bool stepped = ref->shape[dim] > 1 && !out->empty;
      out->extent[i] = stepped ? (u64)ref->shape[dim] : 1;
      if (stepped) out->stride[i] = (u64)ref->stride[dim] * bytes;
      if (i > 0 && m->sliced[dim]) out->box[i] = (u32)part->ext[--part_dim];
    }
  }
  if (panels % m->ctas) out->box[1] /= m->ctas;
  out->swizzle = part->swizzle == 128 ? 3 : part->swizzle == 64 ? 2 : part->swizzle == 32 ? 1 : 0;
}

// ---- the argument block

typedef struct Packer {
  unsigned char *at;  // NULL: only counts
  size_t n;
  ArgSlot *slot;
  u32 slots;
} Packer;

static void put(Packer *p, size_t align, const void *v, size_t bytes) {
  p->n = (p->n + align - 1) / align * align;
  if (p->at) memcpy(p->at + p->n, v, bytes);
  p->n += bytes;
}

static void put_address(Packer *p, SlotKind kind, u32 ref) {
  put(p, 8, &(u64){0}, 8);
  if (p->slot) p->slot[p->slots] = (ArgSlot){(u8)kind, ref, (u32)p->n - 8};
  p->slots++;
}

static void pack(Packer *p, const Kernel *k, const CudaText *text, const Binding *b, i64 tiles) {
  for (u32 i = 0; i < k->buf.n; i++) {
    if (k->buf.at[i].space != SP_TENSOR || !text->by_thread[i]) continue;
    put_address(p, SLOT_TENSOR, i);
    for (u32 d = 0; d < k->buf.at[i].rank; d++) put(p, 8, b ? &b->buf[i].stride[d] : &(i64){0}, 8);
  }
  for (u32 i = 0; i < k->dim.n; i++) put(p, 4, &(int){b ? (int)b->dim[i] : 0}, 4);
  for (u32 i = 0; i < k->arg.n; i++) {
    if (k->arg.at[i].elem == EL_I32)
      put(p, 4, &(int){b ? (int)b->arg[i] : 0}, 4);
    else
      put(p, 4, &(float){b ? (float)b->arg[i] : 0}, 4);
  }
  if (k->grid == GRID_DYNAMIC) put_address(p, SLOT_COUNTER, 0);
  for (u32 i = 0; i < k->turn.n; i++) {
    if (sc_turn_over_ctas(&k->turn.at[i])) put_address(p, SLOT_TURN, i);
  }
  if (text->wait_words) put_address(p, SLOT_WAITS, 0);
  put(p, 4, &(int){(int)tiles}, 4);
}

size_t sc_arg_bytes(const Kernel *k, const CudaText *text) {
  Packer p = {0};
  pack(&p, k, text, NULL, 0);
  return p.n;
}

u32 sc_pack(const Kernel *k, const CudaText *text, const Binding *b, i64 tiles, unsigned char *args,
            ArgSlot *slot) {
  Packer p = {.at = args, .slot = slot};
  pack(&p, k, text, b, tiles);
  return p.slots;
}
