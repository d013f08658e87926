// tensormap.c - cuTensorMapEncodeTiled: what the driver checks of a tensor map [T5] (CUDA driver API), and what the
// model keeps of it in the 128 bytes.
#include <string.h>

#include "model.h"

enum { INVALID_VALUE = 1, MAGIC = 0x5c4ed0c1, MOST_BOX = 256, DIMS = 5, MAP_SIZE = 128 };
_Static_assert(sizeof(BoxMap) <= MAP_SIZE, "what is kept fits into a tensor map");

// CUtensorMapDataType
static bool element(int type, BoxMap *m) {
  static const struct {
    int type;
    MapElem elem;
    u32 bytes;
  } known[] = {{0, MAP_BYTES, 1}, {3, MAP_I32, 4}, {6, MAP_F16, 2}, {7, MAP_F32, 4}, {9, MAP_BF16, 2}};
  for (u32 i = 0; i < COUNT(known); i++) {
    if (known[i].type != type) continue;
    m->elem = known[i].elem;
    m->bytes = known[i].bytes;
    return true;
  }
  return false;
}

static bool good(const BoxMap *m, const unsigned *steps, int interleave, int swizzle, int fill) {
  static const u32 spans[] = {0, 32, 64, 128};
  if (m->address % 16 || interleave || fill || swizzle < 0 || swizzle >= (int)COUNT(spans)) return false;
  u32 inner = m->box[0] * m->bytes;
  if (inner % 16 || (swizzle && inner > spans[swizzle])) return false;
  for (u32 i = 0; i < DIMS; i++) {
    if (!m->extent[i] || m->extent[i] > (u64)1 << 32 || !m->box[i] || m->box[i] > MOST_BOX || steps[i] != 1)
      return false;
    if (i && (m->stride[i] % 16 || m->stride[i] >> 40)) return false;
  }
  return true;
}

int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address, const u64 *dims, const u64 *strides,
                           const unsigned *box, const unsigned *steps, int interleave, int swizzle, int promotion,
                           int fill) {
  static const u32 spans[] = {0, 32, 64, 128};
  BoxMap m = {.address = (uintptr_t)address, .magic = MAGIC};
  (void)promotion;
  if (rank != DIMS || (uintptr_t)map % 64 || !element(type, &m)) return INVALID_VALUE;
  for (u32 i = 0; i < DIMS; i++) {
    m.extent[i] = dims[i];
    m.box[i] = box[i];
    if (i) m.stride[i] = strides[i - 1];
  }
  if (!good(&m, steps, interleave, swizzle, fill)) return INVALID_VALUE;
  m.swizzle = spans[swizzle];
  memset(map, 0, MAP_SIZE);
  memcpy(map, &m, sizeof m);
  return 0;
}

int cuTensorMapReplaceAddress(void *map, void *address) {
  BoxMap m;
  memcpy(&m, map, sizeof m);
  if (m.magic != MAGIC || (uintptr_t)address % 16) return INVALID_VALUE;
  m.address = (uintptr_t)address;
  memcpy(map, &m, sizeof m);
  return 0;
}

const BoxMap *md_box_map(const struct TensorMap *map) {
  const BoxMap *m = (const void *)map;
  return (uintptr_t)map % 64 == 0 && m->magic == MAGIC ? m : NULL;
}
