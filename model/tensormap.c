// tensormap.c - cuTensorMapEncodeTiled: what the driver checks of a tensor map [T5] (CUDA driver
// API), and what the model keeps of it in the 128 bytes.
#include <string.h>

#include "driver.h"

enum { MAGIC = 0x5c4ed0c1, MOST_BOX = 256, DIMS = 5, MAP_SIZE = 128 };
_Static_assert(sizeof(BoxMap) <= MAP_SIZE, "what is kept fits into a tensor map");

// CUtensorMapDataType
static bool element(int type, BoxMap *m) {
  static const struct {
    int type;
    MapElem elem;
    u32 bytes;
  } known[] = {
      {0, MAP_BYTES, 1}, {3, MAP_I32, 4}, {6, MAP_F16, 2}, {7, MAP_F32, 4}, {9, MAP_BF16, 2}};
  for (u32 i = 0; i < COUNT(known); i++) {
    if (known[i].type != type) continue;
    m->elem = known[i].elem;
    m->bytes = known[i].bytes;
    return true;
  }
  return false;
}

static int check_box(const BoxMap *m, u32 span) {
  u32 inner = m->box[0] * m->bytes;
  if (inner % 16)
    return dr_refuse("a tensor map's box of %u bytes a row: it must be a multiple of 16", inner);
  if (span && inner > span)
    return dr_refuse(
        "a tensor map's box of %u bytes a row, with a swizzle of %u: it must not be wider", inner,
        span);
  return 0;
}

static int check_dim(const BoxMap *m, u32 i, unsigned step) {
  if (!m->extent[i] || m->extent[i] > (u64)1 << 32)
    return dr_refuse("a tensor map's extent %llu in dimension %u: it must be 1 to 2^32",
                     (unsigned long long)m->extent[i], i);
  if (!m->box[i] || m->box[i] > MOST_BOX)
    return dr_refuse("a tensor map's box of %u elements in dimension %u: it must be 1 to %d",
                     m->box[i], i, MOST_BOX);
  if (step != 1) return dr_refuse("a tensor map with element strides: the model has them 1");
  if (!i) return 0;
  if (m->stride[i] % 16)
    return dr_refuse(
        "a tensor map's stride of %llu bytes in dimension %u: it must be a multiple of 16",
        (unsigned long long)m->stride[i], i);
  if (m->stride[i] >> 40)
    return dr_refuse(
        "a tensor map's stride of %llu bytes in dimension %u: it must be less than 2^40",
        (unsigned long long)m->stride[i], i);
  return 0;
}

static int check_address(u64 address) {
  if (!(address % 16)) return 0;
  return dr_refuse("a tensor map of a tensor at 0x%llx: it must be at a multiple of 16",
                   (unsigned long long)address);
}

static int check(const BoxMap *m, const unsigned *steps, u32 span) {
  int e = check_address(m->address);
  if (!e) e = check_box(m, span);
  for (u32 i = 0; i < DIMS && !e; i++) e = check_dim(m, i, steps[i]);
  return e;
}

int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address, const u64 *dims,
                           const u64 *strides, const unsigned *box, const unsigned *steps,
                           int interleave, int swizzle, int promotion, int fill) {
  static const u32 spans[] = {0, 32, 64, 128};
  BoxMap m = {.address = (uintptr_t)address, .magic = MAGIC};
  (void)promotion;
  if (rank != DIMS)
    return dr_refuse("a tensor map of %u dimensions: the model knows those of %d dimensions", rank,
                     DIMS);
  if ((uintptr_t)map % 64)
    return dr_refuse("a tensor map at %p: it must be at a multiple of 64", map);
  if (!element(type, &m))
    return dr_refuse("a tensor map of elements of type %d: the model knows 0, 3, 6, 7 and 9", type);
  if (interleave || fill || swizzle < 0 || swizzle >= (int)COUNT(spans))
    return dr_refuse(
        "a tensor map with interleave %d, fill %d and swizzle %d: the model knows 0, 0 and 0 to 3",
        interleave, fill, swizzle);
  for (u32 i = 0; i < DIMS; i++) {
    m.extent[i] = dims[i];
    m.box[i] = box[i];
    if (i) m.stride[i] = strides[i - 1];
  }
  int e = check(&m, steps, spans[swizzle]);
  if (e) return e;
  m.swizzle = spans[swizzle];
  memset(map, 0, MAP_SIZE);
  memcpy(map, &m, sizeof m);
  return 0;
}

int cuTensorMapReplaceAddress(void *map, void *address) {
  BoxMap m;
  memcpy(&m, map, sizeof m);
  if (m.magic != MAGIC)
    return dr_refuse("cuTensorMapReplaceAddress of what cuTensorMapEncodeTiled has not made");
  int e = check_address((uintptr_t)address);
  if (e) return e;
  m.address = (uintptr_t)address;
  memcpy(map, &m, sizeof m);
  return 0;
}

const BoxMap *md_box_map(const struct TensorMap *map) {
  const BoxMap *m = (const void *)map;
  return (uintptr_t)map % 64 == 0 && m->magic == MAGIC ? m : NULL;
}
