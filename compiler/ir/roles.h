// roles.h - what is counted of roles, rings and turns: instances, members, copies, warps. In: a
// kernel, as far as its passes have come. The one place that knows; ir.h includes it, and nobody
// else.
#ifndef SC_ROLES_H
#define SC_ROLES_H

// ---- CTAs and tiles

// CTAs of a cluster.
static inline u32 sc_cluster(const Kernel *k) {
  u32 n = 1;
  for (u32 i = 0; i < k->axis.n; i++) n *= k->axis.at[i].cluster;
  return n;
}

// Has each CTA (or cluster) one tile, that of its number?
static inline bool sc_one_tile(const Kernel *k) {
  bool once = k->grid == GRID_PLAIN;
  for (u32 r = 0; r < k->role.n; r++) once &= !k->role.at[r].one_tile;
  return once;
}

// Is the role run by one thread? It is if it only copies, waits and arrives.
static inline bool sc_is_single(const Kernel *k, const Role *r) {
  for (u32 i = 0; i < r->code.n; i++) {
    u8 op = r->code.at[i].op;
    if (sc_on_map(op) || sc_on_product(op)) return false;
    if (op == OP_TAKE && k->turn.at[r->code.at[i].arg[0]].axis == SC_NONE) return false;
  }
  return r->warps == 1;
}

// The role that draws the tiles of a dynamic grid: the first one that is run by one thread and
// loads, so that loads run ahead into the next tile; else the first that is run by one thread; else
// the first role, of which the first thread draws.
static inline u32 sc_drawer(const Kernel *k) {
  u32 found = SC_NONE;
  for (u32 n = 0; n < k->role.n; n++) {
    const Role *r = &k->role.at[n];
    if (r->instances > 1 || !sc_is_single(k, r)) continue;
    for (u32 i = 0; i < r->code.n; i++)
      if (r->code.at[i].op == OP_COPYIN) return n;
    if (found == SC_NONE) found = n;
  }
  return found == SC_NONE ? 0 : found;
}

// Does an instance of the role work on the CTA's tile of this number?
static inline bool sc_owns(const Role *r, u64 tile, u32 instance) {
  return !r->one_tile || tile % r->instances == instance;
}

// The next tile of a grid with such extents, the first axis fastest. False: that was the last, and
// it is the first again.
static inline bool sc_next_tile(const Kernel *k, const i64 *extent, i64 *axis) {
  for (u32 i = 0; i < k->axis.n; i++) {
    if (++axis[i] < extent[i]) return true;
    axis[i] = 0;
  }
  return false;
}

// ---- roles

// `math[1]`, or `load` if it is the only one.
static inline const char *sc_instance_name(Sc *sc, const Role *r, u32 instance) {
  return r->instances > 1 ? sc_printf(sc, "%s[%u]", r->name, instance) : r->name;
}

// The role that a warp of a CTA runs (place), or SC_NONE, and in which of its instances.
static inline u32 sc_role_of_warp(const Kernel *k, u32 warp, u32 *instance) {
  for (u32 i = 0; i < k->role.n; i++) {
    const Role *r = &k->role.at[i];
    *instance = (warp - r->first_warp) / r->warps;
    if (warp >= r->first_warp && *instance < r->instances) return i;
  }
  return SC_NONE;
}

// ---- rings

// How many instances of a role take part in each fill and each drain of a ring.
static inline u32 sc_takers(const Kernel *k, u32 role, u32 ring) {
  const Role *r = &k->role.at[role];
  return r->one_tile || k->ring.at[ring].owner != SC_NONE ? 1 : r->instances;
}

// How many copies of a ring's stages and barriers a CTA has: of a private ring, one for each
// instance.
static inline u32 sc_ring_copies(const Kernel *k, const Ring *r) {
  return r->owner == SC_NONE ? 1 : k->role.at[r->owner].instances;
}

// How many stages of a ring a CTA has, in all copies.
static inline u32 sc_all_stages(const Kernel *k, const Ring *r) {
  return sc_ring_copies(k, r) * r->stages;
}

// How far apart the stages of one of its parts are (place), in bytes.
static inline u32 sc_stages_apart(const Ring *r, const Buf *part) {
  return part->rank == 1 && r->vector_bytes ? r->vector_bytes : r->stage_bytes;
}

// Where the vectors beside its tiles begin (place), from its offset; and how many bytes all its
// stages take.
static inline u64 sc_vectors_at(const Kernel *k, const Ring *r) {
  return (u64)sc_all_stages(k, r) * r->stage_bytes;
}
static inline u64 sc_ring_bytes(const Kernel *k, const Ring *r) {
  return sc_vectors_at(k, r) + (u64)sc_all_stages(k, r) * r->vector_bytes;
}

// Where the full (or empty) barriers of one of these copies begin (place), in bytes: with that of
// stage 0.
static inline u32 sc_barriers_at(const Ring *r, u32 copy, bool full) {
  return r->barrier + 8 * r->stages * (2 * copy + !full);
}

// ---- access.c: how rings are filled and read

// Does the role fill the ring by copies alone? Then one thread does.
bool sc_only_copies(const Kernel *k, u32 role, u32 ring);
// Do all warps of the role arrive at each fill of the ring? Then none falls two phases behind it.
bool sc_warps_fill(const Kernel *k, u32 role, u32 ring);
// Does any role read the ring's stages through the async proxy, or copy into them?
bool sc_ring_async(const Kernel *k, u32 ring);

// ---- turns that are taken: over CTAs by counters in memory, over instances by named barriers

static inline bool sc_turn_over_ctas(const Turn *t) { return t->active && t->axis != SC_NONE; }
static inline bool sc_turn_over_instances(const Turn *t) { return t->active && t->axis == SC_NONE; }

// Over instances: how many stand before those of `role` among the members; how many there are.
static inline u32 sc_members_before(const Kernel *k, const Turn *t, u32 role) {
  u32 n = 0;
  for (u32 i = 0; i < t->members && t->member[i] != role; i++)
    n += k->role.at[t->member[i]].instances;
  return n;
}
static inline u32 sc_members(const Kernel *k, const Turn *t) {
  return sc_members_before(k, t, SC_NONE);
}

static inline bool sc_is_member(const Turn *t, u32 role) {
  for (u32 i = 0; i < t->members; i++)
    if (t->member[i] == role) return true;
  return false;
}

// Does it go over instances of the role, or (the second) over those of a role whose tiles are
// dealt? Then each tile's owner has it once, and it goes from tile to tile.
static inline bool sc_turn_goes_over(const Turn *t, u32 role) {
  return sc_turn_over_instances(t) && sc_is_member(t, role);
}
static inline bool sc_turn_is_dealt(const Kernel *k, const Turn *t) {
  for (u32 i = 0; i < t->members; i++)
    if (k->role.at[t->member[i]].one_tile) return true;
  return false;
}

#endif
