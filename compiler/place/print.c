// print.c - the map that `place` made, for people: shared memory, barriers, warps and
// registers, named barriers.
#include "compiler/place/place.h"

#include <string.h>

static int name_width(const Kernel *k) {
  size_t w = strlen("barriers");
  for (u32 i = 0; i < k->ring.n; i++) {
    if (strlen(k->ring.at[i].name) > w) w = strlen(k->ring.at[i].name);
  }
  for (u32 i = 0; i < k->role.n; i++) {
    if (strlen(k->role.at[i].name) > w) w = strlen(k->role.at[i].name);
  }
  return (int)(w < 40 ? w : 40);
}

static void put_part(Str *out, const Ring *r, const Buf *b) {
  if (r->parts > 1) str_printf(out, "%s ", b->name);
  str_printf(out, "%s[", sc_elem[b->elem].text);
  for (u32 d = 0; d < b->rank; d++) str_printf(out, "%s%lld", d ? ", " : "", (long long)b->ext[d]);
  str_puts(out, "]");
  if (b->swizzle) str_printf(out, " in panels of %u bytes", b->swizzle);
}

static void put_ring(Str *out, const Kernel *k, const Ring *r, int width) {
  u32 n = sc_ring_copies(k, r);
  str_printf(out, "%8u %8llu  %-*s  %u stage%s of %u", r->offset,
             (unsigned long long)sc_ring_bytes(k, r), width, r->name, r->stages,
             r->stages == 1 ? "" : "s", r->stage_bytes);
  if (r->vector_bytes) str_printf(out, " + %u", r->vector_bytes);
  if (n > 1) str_printf(out, ", one set for each of %u '%s'", n, k->role.at[r->owner].name);
  str_puts(out, ": ");
  for (u32 p = 0; p < r->parts; p++) {
    const Buf *b = &k->buf.at[r->part0 + p];
    if (p) str_printf(out, "\n%*s+%u ", width + 20, "", b->offset);
    put_part(out, r, b);
    if (b->rank == 1 && r->vector_bytes) str_puts(out, ", behind the tiles of all stages");
  }
  str_puts(out, "\n");
}

// In order of address: the ring after `last`, or the first.
static const Ring *next_ring(const Kernel *k, const Ring *last) {
  const Ring *next = NULL;
  for (u32 i = 0; i < k->ring.n; i++) {
    const Ring *r = &k->ring.at[i];
    if (last && r->offset <= last->offset) continue;
    if (!next || r->offset < next->offset) next = r;
  }
  return next;
}

// What one CTA on a multiprocessor leaves to the L1 cache. The two divide 256 KB in these steps
// (CUDA C++ Programming Guide, Compute Capability 9.0), and CUDA takes 1 KB of each CTA's memory.
// For a smaller CTA the driver may leave room for several, and nothing is said.
static void put_cache(Str *out, const Kernel *k) {
  enum { KB = 1024, ALL = 256, MOST = 228 };
  static const u32 step[] = {132, 164, 196, MOST};
  u32 i = 0, taken = k->smem + KB;
  if (2 * taken <= MOST * KB) return;
  while (i < COUNT(step) && taken > step[i] * KB) i++;
  if (i == COUNT(step)) return;
  str_printf(out, ", which leave %u KB to the L1 cache", ALL - step[i]);
  if (i) str_printf(out, " (%u bytes less: %u KB)", taken - step[i - 1] * KB, ALL - step[i - 1]);
}

static void put_memory(Str *out, const Kernel *k, int width) {
  u32 barriers = 0, first = k->smem;
  str_printf(out, "shared memory: %u of %d bytes", k->smem, SMEM_LIMIT);
  put_cache(out, k);
  str_puts(out, "\n");
  str_printf(out, "  offset    bytes  ring\n");
  for (const Ring *r = next_ring(k, NULL); r; r = next_ring(k, r)) {
    put_ring(out, k, r, width);
    barriers += sc_all_stages(k, r) * 2;
    if (r->barrier < first) first = r->barrier;
  }
  if (barriers)
    str_printf(out, "%8u %8u  %-*s  %u\n", first, barriers * 8, width, "barriers", barriers);
  if (k->grid == GRID_DYNAMIC)
    str_printf(out, "%8u %8u  %-*s  two, and their barriers\n", k->draw, k->smem - k->draw, width,
               "tiles");
}

static void put_barriers(Str *out, const Kernel *k, int width) {
  if (!k->ring.n) return;
  str_printf(out, "\n%-*s  %-22s  empty when\n", width, "ring", "full when");
  for (u32 i = 0; i < k->ring.n; i++) {
    const Ring *r = &k->ring.at[i];
    const char *full = sc_printf(out->sc, "%u arrived%s", r->full_count,
                                 r->bytes ? sc_printf(out->sc, ", %u bytes", r->bytes) : "");
    str_printf(out, "%-*s  %-22s  %u arrived\n", width, r->name, full, r->empty_count);
  }
}

static void put_roles(Str *out, const Kernel *k, int width) {
  str_printf(out, "\nthreads: %u, with %u registers each at the start\n", k->threads,
             sc_entry_registers(k));
  str_printf(out, "%-*s  warps  registers  tiles take\n", width, "role");
  for (u32 i = 0; i < k->role.n; i++) {
    const Role *r = &k->role.at[i];
    u32 last = r->first_warp + r->instances * r->warps - 1u;
    const char *warps = last > r->first_warp ? sc_printf(out->sc, "%u-%u", r->first_warp, last)
                                             : sc_printf(out->sc, "%u", r->first_warp);
    str_printf(out, "%-*s  %-5s  %9u  %10u", width, r->name, warps, sc_thread_registers(k, r),
               r->live);
    if (r->instances > 1) str_printf(out, "  %u instances", r->instances);
    str_puts(out, "\n");
  }
}

static const char *ids(Str *out, u32 first, u32 n) {
  return n > 1 ? sc_printf(out->sc, "%u-%u", first, first + n - 1)
               : sc_printf(out->sc, "%u", first);
}

static void put_named(Str *out, const Kernel *k) {
  str_printf(out, "\nnamed barriers: %u of %d\n%-5s  the CTA\n", k->named, NAMED_LIMIT, "0");
  for (u32 i = 0; i < k->turn.n; i++) {
    const Turn *t = &k->turn.at[i];
    if (!sc_turn_over_instances(t)) continue;
    str_printf(out, "%-5s  the turn '%s'\n", ids(out, t->barrier, sc_members(k, t)), t->name);
  }
  for (u32 i = 0; i < k->role.n; i++) {
    const Role *r = &k->role.at[i];
    if (r->barrier)
      str_printf(out, "%-5s  the warps of '%s'\n", ids(out, r->barrier, r->instances), r->name);
  }
}

void sc_print_place(Str *out, const Kernel *k) {
  int width = name_width(k);
  put_memory(out, k, width);
  put_barriers(out, k, width);
  put_roles(out, k, width);
  put_named(out, k);
}
