// flow.c - R1 to R5 and R7 within each role: every path, every trip count.
//
// In: a kernel with plans. Out: diagnostics. If there are none, then in each role no tile in flight
// is touched (R1, R2), no stage is given up or overwritten while an engine reads it (R3), all that
// is issued is waited for and loops keep their balance (R4), holds and fills pair up (R5), and each
// path between proxies has its fence (R7). Nothing is assumed of how the plans came about: arrivals
// and bytes of each barrier's phase are added up again here (an mbarrier completes when exactly as
// many have come: PTX ISA 9.0, mbarrier phases); step.c finds out again which wait-group
// numbers, fences and syncs are needed.
//
// The idea: where two paths of a schedule join, the same things are in flight and held, in the same
// order. So one abstract state for each operation is enough, and a loop is proved for any number of
// iterations by showing that one of them ends as it began. (Where they differ, and conditions tell
// the paths apart, there is one for each: walk.c.)
#include "compiler/flow/flow.h"

static void wrong_count(Sc *sc, const Ring *ring, const char *which, u32 have, u32 want) {
  Diag *d = sc_report(sc, D_R5_COUNT, ring->span,
                      "the %s barriers of '%s' wait for %u arrivals, but %u come", which,
                      ring->name, have, want);
  sc_help(sc, d,
          have > want ? "with too few arrivals the phase never completes"
                      : "with too many it completes early, and the next one is out of step");
}

// Arrivals of the fill that a commit closes: its own, and those of its acquire. (Only an acquire
// that stands before it in the same block has some: R5.split.)
static u32 of_fill(const Ins *commit, const Ins *first) {
  const Ins *ins = commit;
  while (ins > first && (ins->op != OP_ACQUIRE || ins->arg[0] != commit->arg[0])) ins--;
  return commit->plan.arrivals + (ins->op == OP_ACQUIRE ? ins->plan.arrivals : 0);
}

// Do all fills (releases) of a role arrive equally often? Their number, or 0 if there are none.
static u32 arrivals_of(Sc *sc, const Kernel *k, u32 role, u32 ring, Op op) {
  const Code *code = &k->role.at[role].code;
  const Ins *first = NULL;
  u32 all = 0;
  for (u32 i = 0; i < code->n; i++) {
    const Ins *ins = &code->at[i];
    if (ins->op != op || ins->arg[0] != ring) continue;
    u32 n = op == OP_COMMIT ? of_fill(ins, code->at) : ins->plan.arrivals;
    if (!first) first = ins, all = n;
    if (n == all) continue;
    const char *what = op == OP_COMMIT ? "fill" : "release", *name = k->ring.at[ring].name;
    Diag *d = sc_report(sc, D_R5_COUNT, ins->span,
                        "this %s of '%s' makes %u arrivals, but another one makes %u", what, name,
                        n, all);
    sc_note(sc, d, first->span, "%u here, on the same barriers", all);
    sc_help(sc, d, "give each %s of '%s' by this role the same number of arrivals in its plan",
            what, name);
    return all;
  }
  return all;
}

// One arrival can stand for a warp, not for others that may still be reading.
static void check_warps(Sc *sc, const Kernel *k, u32 role, u32 ring, u32 arrive) {
  const Role *r = &k->role.at[role];
  if (!arrive || arrive >= r->warps || !(sc_ring_use(k, role, ring) & USE_THREADS)) return;
  Diag *d =
      sc_report(sc, D_R5_COUNT, k->ring.at[ring].span,
                "'%s' releases '%s' with %u arrival%s, but its %u warps each read it themselves",
                r->name, k->ring.at[ring].name, arrive, arrive == 1 ? "" : "s", r->warps);
  sc_help(sc, d, "one arrival can stand for a warp, not for others that may still be reading");
}

static void check_counts(Sc *sc, const Kernel *k, u32 ring) {
  const Ring *r = &k->ring.at[ring];
  u32 full = 0, empty = 0, peers = r->multicast ? sc_cluster(k) : 1;
  for (u32 i = 0; i < k->role.n; i++) {
    u32 takers = sc_takers(k, i, ring), drained = arrivals_of(sc, k, i, ring, OP_RELEASE);
    full += takers * arrivals_of(sc, k, i, ring, OP_COMMIT);
    empty += takers * drained;
    check_warps(sc, k, i, ring, drained);
  }
  if (full != r->full_count) wrong_count(sc, r, "full", r->full_count, full);
  if (empty * peers != r->empty_count) wrong_count(sc, r, "empty", r->empty_count, empty * peers);
}

static void check_bytes(Sc *sc, const Kernel *k, u32 role) {
  const Code *code = &k->role.at[role].code;
  for (u32 i = 0; i < code->n; i++) {
    const Ins *ins = &code->at[i];
    if (ins->op != OP_ACQUIRE || !(sc_ring_use(k, role, ins->arg[0]) & USE_COPY)) continue;
    Fill fill = sc_fill(k, code, i);
    if (fill.kind == FILL_KNOWN && fill.bytes == ins->plan.bytes) continue;
    Diag *d = sc_report(sc, D_R5_BYTES, ins->span,
                        "this fill of '%s' expects %u bytes, but its copies bring %s%lld",
                        k->ring.at[ins->arg[0]].name, ins->plan.bytes,
                        fill.kind == FILL_KNOWN ? "" : "more than ", (long long)fill.bytes);
    sc_help(sc, d, "expecting more than comes hangs; expecting less completes the phase early");
  }
}

bool sc_flow(Sc *sc, Kernel *k) {
  u32 before = sc->errors;
  Facts *facts = sc_facts(sc, k);
  for (u32 i = 0; i < k->role.n; i++) {
    Flow f = {.sc = sc, .k = k, .facts = facts, .role = i, .report = true};
    sc_walk(&f);
  }
  if (sc->errors != before) return false;  // counts cannot be right where holds are not
  for (u32 i = 0; i < k->ring.n; i++) check_counts(sc, k, i);
  for (u32 i = 0; i < k->role.n; i++) check_bytes(sc, k, i);
  sc_check_adds(sc, k);
  return sc->errors == before;
}
