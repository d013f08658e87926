// grid.c - the tiles of a run: from the number of a unit (a CTA, or a cluster of them) to its index
// along each axis. Calls nothing of the interpreter.
#include "runtime/cpu/machine.h"

#include <string.h>

// Unit number -> axes of its CTA `rank`. Sections are slowest, the last declared of them outermost;
// inside them the first axis is fastest. All sections of an axis but its last have the same size.
void sc_tile_axes(const Grid *g, const Kernel *k, u64 unit, u32 rank, i64 *axis) {
  i64 size[SC_MAX_AXES], first[SC_MAX_AXES] = {0};
  memcpy(size, g->units, sizeof size);
  for (u32 a = g->axes; a-- > 0;) {
    if (!g->section[a]) continue;
    u64 slab = (u64)g->section[a];
    for (u32 i = 0; i < g->axes; i++) slab *= i == a ? 1 : (u64)size[i];
    first[a] = (i64)(unit / slab) * g->section[a];
    unit %= slab;
    size[a] = g->units[a] - first[a] < g->section[a] ? g->units[a] - first[a] : g->section[a];
  }
  for (u32 a = 0; a < g->axes; a++) {
    i64 at = first[a] + (i64)(unit % (u64)size[a]), c = k->axis.at[a].cluster;
    unit /= (u64)size[a];
    if (k->axis.at[a].reversed) at = g->units[a] - 1 - at;
    axis[a] = at * c + rank % (u32)c;
    rank /= (u32)c;
  }
}

bool sc_surplus(const Grid *g, const i64 *axis) {
  for (u32 a = 0; a < g->axes; a++) {
    if (axis[a] >= g->tiles[a]) return true;
  }
  return false;
}
