// resources.c - the proof MEMORY: no two things that live at once share shared memory, warps or
// registers. In: a placed kernel. Each region of shared memory is one range of bytes; what the
// hardware asks of its address is asked of each: 8 bytes of an mbarrier, 16 of a slot, 128 of what
// the copy engine fills, and eight rows of a swizzled tile's panel (PTX ISA 9.0, 9.7.9.25, 5.5.6),
// as the swizzle is made of address bits. (Named barriers are NAMED's. Those that --debug-waits
// makes of mbarriers lie behind all this.)
#include "compiler/layout/layout.h"
#include "compiler/verify/verify.h"

enum {
  SMEM = 232448,  // bytes that a CTA can have: 227 KB
  REGISTERS = 65536,
  THREADS = 1024,
  MOST_REGS = 256,  // of a thread: 255, in units of 8
  GROUP = 128       // threads that have one register count
};

typedef struct Region {
  const char *what;  // "stages", …
  const char *name;
  Span span;
  u64 from, to;
} Region;

typedef VEC(Region) Regions;

static void claim(Verify *v, Regions *all, Region r, u64 align) {
  if (r.from % align)
    sc_bad_plan(v, PROOF_MEMORY, r.span, "the %s of '%s' lie at %llu, no multiple of %llu", r.what,
                r.name, (unsigned long long)r.from, (unsigned long long)align);
  if (r.to > v->k->smem || r.to > SMEM)
    sc_bad_plan(v, PROOF_MEMORY, r.span,
                "the %s of '%s' end at %llu, past the %u bytes of shared memory", r.what, r.name,
                (unsigned long long)r.to, v->k->smem < SMEM ? v->k->smem : SMEM);
  for (u32 i = 0; i < all->n; i++) {
    const Region *o = &all->at[i];
    if (r.to <= o->from || o->to <= r.from) continue;
    Diag *d = sc_bad_plan(v, PROOF_MEMORY, r.span, "the %s of '%s' overlap the %s of '%s'", r.what,
                          r.name, o->what, o->name);
    if (d)
      sc_note(v->sc, d, o->span, "they lie from %llu on, these from %llu",
              (unsigned long long)o->from, (unsigned long long)r.from);
  }
  PUSH(v->sc, all, r);
}

// ---- rings

static u64 part_align(const Buf *part) {
  u64 pattern = 8u * part->swizzle;
  return pattern > 128 ? pattern : 128;
}

// Claims the parts of a stage, and checks that they are aligned in every stage. Vectors beside
// tiles have stages of their own, `vector_bytes` apart, which begin behind all `stages` stages of
// the tiles. (That is worked out here anew, and not asked of roles.h.)
static void claim_parts(Verify *v, const Ring *r, u64 stages) {
  Regions parts = {0};
  for (u32 i = 0; i < r->parts; i++) {
    const Buf *b = &v->k->buf.at[r->part0 + i];
    bool behind = b->rank == 1 && r->vector_bytes;
    u64 first = behind ? stages * r->stage_bytes : 0, from = (u64)r->offset + b->offset;
    u32 apart = behind ? r->vector_bytes : r->stage_bytes;
    i64 bytes = sc_stage_rows(b) * b->ext[b->rank - 1] * sc_elem[b->elem].bytes;
    claim(v, &parts, (Region){"bytes", b->name, b->span, from, from + (u64)bytes}, part_align(b));
    if (b->offset < first || b->offset + (u64)bytes > first + apart)
      sc_bad_plan(v, PROOF_MEMORY, b->span, "'%s' lies outside of the %u bytes of its stage",
                  b->name, apart);
    if (apart % part_align(b))
      sc_bad_plan(v, PROOF_MEMORY, b->span,
                  "stages of '%s' are %u bytes apart, no multiple of %llu", b->name, apart,
                  (unsigned long long)part_align(b));
  }
}

// Claims the stages and barriers of a ring. Of a private ring each instance has its own.
static void claim_ring(Verify *v, Regions *all, const Ring *r) {
  u64 stages = r->stages;
  if (r->owner != SC_NONE) stages *= v->k->role.at[r->owner].instances;
  claim_parts(v, r, stages);
  u64 to = r->offset + stages * ((u64)r->stage_bytes + r->vector_bytes);
  claim(v, all, (Region){"stages", r->name, r->span, r->offset, to}, 128);
  claim(v, all, (Region){"barriers", r->name, r->span, r->barrier, r->barrier + stages * 16}, 8);
}

// Claims what a dynamic grid uses to hand tiles on: two slots, each with a tile's number and its
// places along the axes in vectors of 16 bytes, then two full and two empty barriers.
static void claim_slots(Verify *v, Regions *all) {
  const Kernel *k = v->k;
  u64 vectors = (1 + k->axis.n + 3) / 4;
  claim(v, all, (Region){"tiles drawn", k->name, k->span, k->draw, k->draw + 2 * vectors * 16 + 32},
        16);
}

// ---- warps and registers

static u32 last_warp(const Role *r) { return r->first_warp + r->instances * r->warps; }

static void prove_warps(Verify *v) {
  const Kernel *k = v->k;
  if (k->threads > THREADS || k->threads % GROUP)
    sc_bad_plan(v, PROOF_MEMORY, k->span, "a CTA has no %u threads", k->threads);
  for (u32 i = 0; i < k->role.n; i++) {
    const Role *r = &k->role.at[i];
    if (last_warp(r) * 32 > k->threads || (r->warps == 4 && r->first_warp % 4))
      sc_bad_plan(v, PROOF_MEMORY, r->span, "'%s' has the warps %u to %u, of %u", r->name,
                  r->first_warp, last_warp(r) - 1, k->threads / 32);
    for (u32 j = 0; j < i; j++) {
      const Role *o = &k->role.at[j];
      if (last_warp(r) <= o->first_warp || last_warp(o) <= r->first_warp) continue;
      Diag *d =
          sc_bad_plan(v, PROOF_MEMORY, r->span, "'%s' and '%s' share warps", r->name, o->name);
      if (d) sc_note(v->sc, d, o->span, "this role's begin at %u", o->first_warp);
    }
  }
}

// The register count of a warpgroup's threads. All its roles must ask for the same, as setmaxnreg
// is executed once by all warps of the warpgroup.
static u32 registers(Verify *v, u32 group, u32 entry) {
  const Kernel *k = v->k;
  u32 first = group * GROUP / 32;
  const Role *sets = NULL;
  for (u32 i = 0; i < k->role.n; i++) {
    const Role *r = &k->role.at[i];
    if (last_warp(r) <= first || r->first_warp >= first + GROUP / 32) continue;
    if (sets && sets->regs != r->regs) {
      Diag *d = sc_bad_plan(v, PROOF_MEMORY, r->span,
                            "'%s' has %u registers a thread in a warpgroup of %u", r->name, r->regs,
                            sets->regs);
      if (d) sc_note(v->sc, d, sets->span, "this role is in the same warpgroup");
    }
    sets = r;
  }
  return sets && sets->regs ? sets->regs : entry;
}

static void prove_registers(Verify *v) {
  const Kernel *k = v->k;
  bool said = false;
  for (u32 i = 0; i < k->role.n; i++) {
    const Role *r = &k->role.at[i];
    said |= r->regs != 0;
    if (r->regs && (r->regs % 8 || r->regs < 24 || r->regs > MOST_REGS))
      sc_bad_plan(v, PROOF_MEMORY, r->span, "setmaxnreg takes no %u registers", r->regs);
  }
  if (!said || !k->threads) return;
  u32 entry = REGISTERS / k->threads / 8 * 8, sum = 0;
  if (entry > MOST_REGS) entry = MOST_REGS;
  for (u32 g = 0; g < k->threads / GROUP; g++) sum += GROUP * registers(v, g, entry);
  if (sum > entry * k->threads)
    sc_bad_plan(v, PROOF_MEMORY, k->span,
                "the warpgroups end with %u registers, and a CTA of %u threads begins with %u", sum,
                k->threads, entry * k->threads);
}

void sc_prove_resources(Verify *v) {
  Regions all = {0};
  for (u32 i = 0; i < v->k->ring.n; i++) claim_ring(v, &all, &v->k->ring.at[i]);
  if (v->k->grid == GRID_DYNAMIC) claim_slots(v, &all);
  prove_warps(v);
  prove_registers(v);
}
