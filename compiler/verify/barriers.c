// barriers.c - the proofs ARRIVALS and NAMED: each phase of each barrier gets what it counts.
// ARRIVALS: what all instances of all roles do for one fill and for one release of a ring
// (brackets.c) is what its mbarriers are initialised with. (That each takes part once in each
// generation is COUNTS.) named.c has the other.
#include "compiler/verify/barriers.h"

// Of a role's instances, how many take part in one fill or drain: of tiles that are dealt out, and
// of a ring that each has for itself, one.
static u32 at_once(const Role *r, const Ring *ring) {
  return r->one_tile || ring->owner != SC_NONE ? 1 : r->instances;
}

static void compare(Verify *v, const Ring *r, const char *which, u32 count, u64 arrive) {
  if (count == arrive && count) return;
  sc_bad_plan(v, PROOF_ARRIVALS, r->span,
              "the %s barrier of '%s' counts %u arrivals a phase, and %llu are made", which,
              r->name, count, (unsigned long long)arrive);
}

static void prove_arrivals(Verify *v, u32 ring) {
  const Kernel *k = v->k;
  const Ring *r = &k->ring.at[ring];
  u64 full = 0, empty = 0;
  bool filled = true, released = true;
  for (u32 i = 0; i < k->role.n; i++) {
    Brackets b = sc_ring_brackets(v, i, ring);
    full += (u64)at_once(&k->role.at[i], r) * b.fill.each;
    empty += (u64)at_once(&k->role.at[i], r) * b.release.each;
    filled &= b.fill.any || !(r->fillers >> i & 1);
    released &= b.release.any || !(r->drainers >> i & 1);
  }
  // each CTA of a cluster copies into the stages of all: it must hear of the releases of all
  if (r->multicast) empty *= sc_cluster(k);
  // (What stands in a loop that never has a round is not met where roles are walked by paths. If a
  // role never fills a stage, none does: COUNTS.)
  if (filled) compare(v, r, "full", r->full_count, full);
  if (released) compare(v, r, "empty", r->empty_count, empty);
}

void sc_prove_barriers(Verify *v) {
  for (u32 i = 0; i < v->k->ring.n; i++) {
    prove_arrivals(v, i);
    if (v->k->ring.at[i].multicast && sc_cluster(v->k) > 1) sc_prove_shares(v, i);
  }
  sc_prove_named(v);
}
