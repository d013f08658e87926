// derive.c - what the hardware needs to be told and a schedule does not say: arrival counts and
// bytes of barriers, wait-group numbers, proxy fences, meetings of an instance's threads.
//
// In: a lowered kernel. Out: Ring.full_count, empty_count and bytes, and the Plan of each
// operation.
//
// Full barrier. A role that only copies arrives once a fill: the producer thread, with expect_tx of
// all bytes. A role that also stores, or does nothing, arrives once a warp and instance, after
// __syncwarp; its producer thread adds the bytes before its own warp arrives. Empty barrier. An
// instance whose threads leave the stages alone (products and copies out read them) arrives once;
// else once a warp. So one arrival never stands for accesses of other warps, and neither barrier
// asks an instance's warps to meet. Nor for waits of other warps: waits go by parity, and a warp
// that is two phases late never ends. Products bring all warps past their wait for the stage, and
// so do their commits, where the role itself fills the ring; where there is neither, a release is
// once a warp. (A ring with products that some path leaves out counts as one with products: loops
// of no round are short, and two phases of it a long time.) The counts are properties of role and
// ring, the same for each fill. In a cluster that multicasts into the ring, a release arrives at
// every CTA's barrier.
//
// Numbers, fences and meetings come out of the data flow of flow_step.c, which `flow` runs again to
// check them.
#include "flow.h"

u32 sc_takers(const Kernel *k, u32 role, u32 ring) {
  const Role *r = &k->role.at[role];
  return r->one_tile || k->ring.at[ring].owner != SC_NONE ? 1 : r->instances;
}

bool sc_together(const Uses *u, u32 role, u32 ring) {
  u8 use = sc_ring_use(u, role, ring);
  bool commits = use & USE_FILL && (use & (USE_COPY | USE_STORE)) != USE_COPY;
  return use & USE_PRODUCT || commits;
}

static u32 arrivals(const Uses *u, u32 role, u32 ring, bool fill) {
  u8 use = sc_ring_use(u, role, ring);
  u32 warps = u->k->role.at[role].warps;
  if (fill) return (use & (USE_COPY | USE_STORE)) == USE_COPY ? 1 : warps;
  return use & USE_THREADS || !sc_together(u, role, ring) ? warps : 1;
}

static void count_arrivals(const Uses *u, Kernel *k, u32 ring) {
  Ring *r = &k->ring.at[ring];
  r->full_count = r->empty_count = r->bytes = 0;
  for (u32 i = 0; i < k->role.n; i++) {
    u8 use = sc_ring_use(u, i, ring);
    u32 takers = sc_takers(k, i, ring);
    if (use & USE_FILL) r->full_count += takers * arrivals(u, i, ring, true);
    if (use & USE_DRAIN) r->empty_count += takers * arrivals(u, i, ring, false);
  }
  if (r->multicast) r->empty_count *= sc_cluster(k);
}

// ---- bytes

static i64 view_bytes(const Kernel *k, u32 view) {
  const View *v = &k->view.at[view];
  const Buf *b = &k->buf.at[v->buf];
  i64 n = sc_elem[b->elem].bytes;
  for (u32 d = 0; d < v->rank; d++) {
    if (!v->at[d].slice) continue;
    if (__builtin_mul_overflow(n, b->ext[d], &n)) return SC_MAX_TX;
  }
  return n < SC_MAX_TX ? n : SC_MAX_TX;
}

// How often a block's body runs, or -1 if only the run knows.
static i64 times_run(const Kernel *k, const Ins *open) {
  i64 from, to, n;
  if (open->op != OP_FOR || !x_const_int(k, open->arg[1], &from) ||
      !x_const_int(k, open->arg[2], &to))
    return -1;
  return __builtin_sub_overflow(to, from, &n) || n > SC_MAX_TX ? SC_MAX_TX : n < 0 ? 0 : n;
}

Fill sc_fill(const Kernel *k, const Code *code, u32 pc) {
  u32 ring = code->at[pc].arg[0], depth = 0;
  i64 times[SC_MAX_NEST + 1] = {1};  // by depth: how often code there runs a fill, or -1
  Fill fill = {FILL_KNOWN, 0, pc};
  for (u32 i = pc + 1; i < code->n; i++) {
    const Ins *ins = &code->at[i];
    u8 effects = sc_op[ins->op].effects;
    if (effects & OPENS) {
      i64 n = times_run(k, ins);
      if (++depth > SC_MAX_NEST) return (Fill){FILL_VARIES, 0, i};
      times[depth] = n < 0 || times[depth - 1] < 0      ? -1
                     : n * times[depth - 1] > SC_MAX_TX ? SC_MAX_TX
                                                        : n * times[depth - 1];
    }
    bool same = (ins->op == OP_COMMIT || ins->op == OP_ACQUIRE) && ins->arg[0] == ring;
    if (same && !depth) return fill;
    if (same || (effects & (CLOSES | SPLITS) && !depth)) return (Fill){FILL_SPLIT, 0, i};
    if (effects & CLOSES) depth--;
    if (ins->op != OP_COPYIN || k->buf.at[k->view.at[ins->arg[0]].buf].ring != ring) continue;
    if (times[depth] < 0) return (Fill){FILL_VARIES, 0, i};
    fill.bytes += times[depth] * view_bytes(k, ins->arg[0]);
    if (fill.bytes > SC_MAX_TX) fill.bytes = SC_MAX_TX;
  }
  return fill;
}

static bool plan_fill(Sc *sc, Kernel *k, const Role *role, u32 pc) {
  Ins *ins = &role->code.at[pc];
  Ring *ring = &k->ring.at[ins->arg[0]];
  Fill fill = sc_fill(k, &role->code, pc);
  if (fill.kind != FILL_KNOWN) {
    Diag *d =
        sc_report(sc, D_R5_SPLIT, ins->span,
                  fill.kind == FILL_VARIES
                      ? "how many bytes are copied into this fill of '%s' is known only at run time"
                      : "the fill of '%s' that opens here is not committed in the same block",
                  ring->name);
    if (fill.kind == FILL_VARIES)
      sc_note(sc, d, role->code.at[fill.at].span,
              "this copy depends on a condition or a count of the run");
    sc_help(sc, d,
            fill.kind == FILL_VARIES
                ? "copy always (what lies outside the tensor reads zero), or acquire and commit "
                  "'%s' under the same condition"
                : "put 'acquire %s', its copies and 'commit %s' into one block",
            ring->name, ring->name);
    return false;
  }
  if (fill.bytes >= SC_MAX_TX) {
    Diag *d = sc_report(sc, D_R9_BYTES, ins->span,
                        "the copies of one fill of '%s' bring 1 MiB or more", ring->name);
    sc_help(sc, d, "an mbarrier counts fewer than 2^20 bytes a phase: fill '%s' in several stages",
            ring->name);
    return false;
  }
  ins->plan.bytes = (u32)fill.bytes;
  if (ins->plan.bytes > ring->bytes) ring->bytes = ins->plan.bytes;
  return true;
}

// Everything but what the data flow finds. False after an error.
static bool plan_role(Sc *sc, Kernel *k, const Uses *u, u32 role) {
  Role *r = &k->role.at[role];
  bool ok = true;
  for (u32 i = 0; i < r->code.n; i++) {
    Ins *ins = &r->code.at[i];
    ins->plan = (Plan){0};
    switch (ins->op) {
      case OP_ACQUIRE:
        if (sc_ring_use(u, role, ins->arg[0]) & USE_COPY) ok &= plan_fill(sc, k, r, i);
        break;
      case OP_COMMIT:
      case OP_RELEASE:
        ins->plan.arrivals = (u16)arrivals(u, role, ins->arg[0], ins->op == OP_COMMIT);
        break;
      case OP_COPYIN: ins->plan.bytes = (u32)view_bytes(k, ins->arg[0]); break;
      case OP_COPYOUT:
      case OP_COPYADD: ins->plan.bytes = (u32)view_bytes(k, ins->arg[1]); break;
      default: break;
    }
  }
  return ok;
}

bool sc_derive(Sc *sc, Kernel *k) {
  Uses *uses = sc_uses(sc, k);
  u32 before = sc->errors;
  bool ok = true;
  for (u32 i = 0; i < k->ring.n; i++) count_arrivals(uses, k, i);
  for (u32 i = 0; i < k->role.n; i++) ok &= plan_role(sc, k, uses, i);
  for (u32 i = 0; i < k->role.n && ok; i++) {
    Flow f = {.sc = sc, .k = k, .uses = uses, .role = i, .derive = true};
    sc_walk(&f);
  }
  return ok && sc->errors == before;
}
