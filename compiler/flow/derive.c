// derive.c - works out what the hardware must be told and a schedule does not say: arrival counts
// and bytes of mbarriers, wait-group numbers, proxy fences, and where the warps of an instance have
// to synchronize with each other (a "sync": bar.sync).
//
// In: a lowered kernel. Out: Ring.full_count, empty_count and bytes, and the Plan of each
// operation.
//
// The full barrier of a stage. A role that fills by copies alone arrives once for each fill: the
// thread that issues the copies does. If the copies follow the acquire at once, and nothing else
// belongs to the fill, it arrives at the acquire, and announces all their bytes with it
// (expect_tx); else it arrives at the commit. In any other role each warp of each instance arrives
// at the commit; the bytes of its copies, if there are some, are announced before.
//
// The empty barrier of a stage. If the threads of an instance read or write the stage themselves,
// each of its warps arrives. If only products and copies out read it, one arrival is enough, as the
// thread that waits for these knows when all of them have read. But that one arrival also lets the
// ring go on for the other warps, which may still be waiting for this very stage. A wait only sees
// the parity of the barrier's phase, so that a warp which is two phases late never stops waiting.
// Hence on every path from the wait to the release something must show that all warps are past the
// wait: a product issued after it has ended, or there has been a sync. A release without either
// gets a sync of its own; and if no release of the ring in the role has either, each warp arrives
// instead. (A role whose warps each arrive at every fill of the ring needs none of this: the ring
// cannot get two phases ahead of a warp.) The counts belong to the role and the ring, and are the
// same for each fill. In a cluster that multicasts into the ring, a release arrives at the barrier
// of every CTA.
//
// Wait-group numbers, fences and syncs come out of the data flow of step.c, which `flow` runs
// again to check them. Of a role whose paths disagree it decides whether they are told apart
// (Role.by_paths): what an operation then needs on any of its paths, it gets on all. The model of
// the machine (model/) reads the emitted text, and knows nothing of plans.
#include "compiler/flow/flow.h"

static u32 fill_arrivals(const Kernel *k, u32 role, u32 ring) {
  return sc_only_copies(k, role, ring) ? 1 : k->role.at[role].warps;
}

// lagging: by operation of the role, the releases at which a warp may not be past its wait yet.
static u32 release_arrivals(const Kernel *k, u32 role, u32 ring, const bool *lagging) {
  const Role *r = &k->role.at[role];
  if (sc_ring_use(k, role, ring) & USE_THREADS) return r->warps;
  for (u32 i = 0; i < r->code.n; i++) {
    if (r->code.at[i].op == OP_RELEASE && r->code.at[i].arg[0] == ring && !lagging[i]) return 1;
  }
  return r->warps;
}

static void count_arrivals(Kernel *k, u32 ring, bool *const *lagging) {
  Ring *r = &k->ring.at[ring];
  r->full_count = r->empty_count = r->bytes = 0;
  for (u32 i = 0; i < k->role.n; i++) {
    u8 use = sc_ring_use(k, i, ring);
    u32 takers = sc_takers(k, i, ring);
    if (use & USE_FILL) r->full_count += takers * fill_arrivals(k, i, ring);
    if (use & USE_DRAIN) r->empty_count += takers * release_arrivals(k, i, ring, lagging[i]);
  }
  if (r->multicast) r->empty_count *= sc_cluster(k);
}

// ---- bytes

static i64 view_bytes(const Kernel *k, u32 view) {
  const View *v = &k->view.at[view];
  const Buf *b = &k->buf.at[v->buf];
  i64 n = sc_elem[b->elem].bytes;
  for (u32 d = 0; d < v->rank; d++)
    if (v->at[d].slice) n *= b->ext[d];
  return n;
}

// How often a block's body runs, or -1 if only the run knows.
static i64 times_run(const Kernel *k, const Ins *open) {
  i64 from, to, n;
  if (open->op != OP_FOR || !x_const_int(k, open->arg[1], &from) ||
      !x_const_int(k, open->arg[2], &to))
    return -1;
  return __builtin_sub_overflow(to, from, &n) || n > SC_MAX_TX ? SC_MAX_TX : n < 0 ? 0 : n;
}

// An open block inside a fill: how often its body runs (-1: not known), the bytes of the fill when
// the block began, and the bytes that the first branch of an `if` brought.
typedef struct Open {
  i64 times, before, yes;
  bool branches, in_else;
} Open;

static Open opened(const Kernel *k, const Ins *ins, const Open *around, i64 bytes) {
  Open o = {.before = bytes, .branches = ins->op == OP_IF};
  i64 n = o.branches ? 1 : times_run(k, ins);
  bool known = n >= 0 && around->times >= 0;
  o.times = !known ? -1 : n * around->times > SC_MAX_TX ? SC_MAX_TX : n * around->times;
  return o;
}

// Ends a branch. False: the two branches bring different numbers of bytes.
static bool branch_ends(Open *o, i64 *bytes, bool closes) {
  i64 brought = *bytes - o->before;
  if (!closes) {
    *o = (Open){o->times, o->before, brought, true, true};
    *bytes = o->before;
    return true;
  }
  return !o->branches || brought == (o->in_else ? o->yes : 0);
}

Fill sc_fill(const Kernel *k, const Code *code, u32 pc) {
  u32 ring = code->at[pc].arg[0], depth = 0;
  Open open[SC_MAX_NEST + 1] = {{.times = 1}};  // by depth
  Fill fill = {FILL_KNOWN, 0, pc};
  for (u32 i = pc + 1; i < code->n; i++) {
    const Ins *ins = &code->at[i];
    u8 effects = sc_op[ins->op].effects;
    if (effects & OPENS) {
      if (++depth > SC_MAX_NEST) return (Fill){FILL_VARIES, 0, i};
      open[depth] = opened(k, ins, &open[depth - 1], fill.bytes);
    }
    bool same = (ins->op == OP_COMMIT || ins->op == OP_ACQUIRE) && ins->arg[0] == ring;
    if (same && !depth) return fill;
    if (same || (effects & (CLOSES | SPLITS) && !depth)) return (Fill){FILL_SPLIT, 0, i};
    if (effects & (CLOSES | SPLITS) && !branch_ends(&open[depth], &fill.bytes, effects & CLOSES))
      return (Fill){FILL_VARIES, 0, ins->nest};
    if (effects & CLOSES) depth--;
    if (ins->op != OP_COPYIN || k->buf.at[k->view.at[ins->arg[0]].buf].ring != ring) continue;
    if (open[depth].times < 0) return (Fill){FILL_VARIES, 0, i};
    fill.bytes += open[depth].times * view_bytes(k, ins->arg[0]);
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
              "what is copied here depends on a condition or a count of the run");
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

static bool copies_into(const Kernel *k, const Ins *ins, u32 ring) {
  return ins->op == OP_COPYIN && k->buf.at[k->view.at[ins->arg[0]].buf].ring == ring;
}

// The acquire of the fill that a commit closes, if only copies into the fill stand between the two;
// SC_NONE: something else does, too.
static u32 opened_at_once(const Kernel *k, const Code *code, u32 commit) {
  u32 ring = code->at[commit].arg[0], first = commit;
  while (first && copies_into(k, &code->at[first - 1], ring)) first--;
  bool opens = first && first < commit && code->at[first - 1].op == OP_ACQUIRE &&
               code->at[first - 1].arg[0] == ring;
  return opens ? first - 1 : SC_NONE;
}

// Either the acquire or the commit of a fill arrives, never both.
static void plan_arrival(const Kernel *k, u32 role, Code *code, u32 commit) {
  u32 ring = code->at[commit].arg[0];
  u32 early = sc_only_copies(k, role, ring) ? opened_at_once(k, code, commit) : SC_NONE;
  code->at[early == SC_NONE ? commit : early].plan.arrivals = (u16)fill_arrivals(k, role, ring);
}

// Plans everything that needs no data flow. False after an error.
static bool plan_role(Sc *sc, Kernel *k, u32 role, const bool *lagging) {
  Role *r = &k->role.at[role];
  bool ok = true;
  u32 *arrivals = NEWS(sc, u32, k->ring.n + 1);  // by ring: of each release; 0: not worked out yet
  sc_plan_votes(sc, k, role);
  for (u32 i = 0; i < r->code.n; i++) {
    Ins *ins = &r->code.at[i];
    u32 *each = ins->op == OP_RELEASE ? &arrivals[ins->arg[0]] : NULL;
    switch (ins->op) {
      case OP_ACQUIRE:
        if (sc_ring_use(k, role, ins->arg[0]) & USE_COPY && !plan_fill(sc, k, r, i)) ok = false;
        break;
      case OP_COMMIT: plan_arrival(k, role, &r->code, i); break;
      case OP_RELEASE:
        if (!*each) *each = release_arrivals(k, role, ins->arg[0], lagging);
        ins->plan.arrivals = (u16)*each;
        break;
      case OP_COPYIN: ins->plan.bytes = (u32)view_bytes(k, ins->arg[0]); break;
      case OP_COPYOUT:
      case OP_COPYADD: ins->plan.bytes = (u32)view_bytes(k, ins->arg[1]); break;
      default: break;
    }
  }
  return ok;
}

static void forget_plans(Kernel *k) {
  for (u32 i = 0; i < k->role.n; i++) {
    Code *code = &k->role.at[i].code;
    for (u32 j = 0; j < code->n; j++) code->at[j].plan = (Plan){0};
  }
}

// By role and operation: the releases at which a warp may not be past its wait yet.
static bool **find_lagging(Sc *sc, Kernel *k, Facts *facts, PathFacts **kept) {
  bool **lagging = NEWS(sc, bool *, k->role.n + 1);
  for (u32 i = 0; i < k->role.n; i++) {
    lagging[i] = NEWS(sc, bool, k->role.at[i].code.n + 1);
    Flow f = {.sc = sc, .k = k, .facts = facts, .role = i, .kept = &kept[i]};
    f.lagging = lagging[i];
    f.trial = true;
    sc_walk(&f);
    for (u32 pc = 0; pc < k->role.at[i].code.n; pc++) lagging[i][pc] |= f.gave_up;
  }
  return lagging;
}

// Plans all roles. False after an error.
static bool plan_all(Sc *sc, Kernel *k, Facts *facts, PathFacts **kept) {
  u32 before = sc->errors;
  bool ok = true, **lagging = find_lagging(sc, k, facts, kept);
  for (u32 i = 0; i < k->ring.n; i++) count_arrivals(k, i, lagging);
  for (u32 i = 0; i < k->role.n; i++) ok &= plan_role(sc, k, i, lagging[i]);
  return ok && sc->errors == before;
}

// Lets the data flow plan the role. Returns the first fault that it finds, without reporting it:
// the pass `flow` does that. (If it gives up: the one of all paths together.)
static const Diag *plan_by_flow(Sc *sc, Kernel *k, Facts *facts, PathFacts **kept, u32 role,
                                const Diag *together, bool *decided) {
  Flow f = {.sc = sc, .k = k, .facts = facts, .role = role, .kept = &kept[role]};
  f.derive = f.report = f.trial = true;
  Reports said = sc_said(sc);
  sc_walk(&f);
  *decided = f.decided;
  const Diag *fault = sc_unsay(sc, said);
  return f.gave_up ? together : fault;
}

static bool same_span(const Diag *a, const Diag *b) {
  return a->id == b->id && a->at.lo == b->at.lo && a->at.hi == b->at.hi;
}

static u32 faults_from(const Diag *d) {
  u32 n = 0;
  for (; d; d = d->next) n += d->severity == SCHEDC_ERROR;
  return n;
}

// A role with faults was walked again with its paths told apart (Role.by_paths). It stays so if it
// has no faults then, or if the conditions on a path decided something and led to another fault
// than before, or to fewer. Otherwise telling the paths apart would not explain the fault better.
static u8 paths_kept(const Diag *together, const Diag *apart, bool decided) {
  bool alike = apart && same_span(together, apart) && faults_from(apart) >= faults_from(together);
  return apart && (!decided || alike) ? 0 : PATHS_BY_STATE;
}

// What of a role is tried next, when the walk has found this first fault, or none (NULL).
typedef struct Trial {
  const Diag *fault;  // of all paths together
  u8 best;            // what is used if nothing better is found
} Trial;

// First all paths together; then, if there was a fault, told apart by what is under way on them;
// and then by what their conditions say as well, which counts only if there is no fault.
static void try_next(Role *r, Trial *t, u32 attempt, const Diag *found, bool decided) {
  if (attempt == 0) {
    t->fault = found;
    r->by_paths = found ? PATHS_BY_STATE : 0;
  } else if (attempt == 1 && r->by_paths) {
    t->best = paths_kept(t->fault, found, decided);
    r->by_paths = found ? PATHS_BY_CONDITIONS : PATHS_BY_STATE;
  } else if (attempt == 2 && r->by_paths == PATHS_BY_CONDITIONS && found) {
    r->by_paths = t->best;
  }
}

bool sc_derive(Sc *sc, Kernel *k) {
  Facts *facts = sc_facts(sc, k);
  Trial *trial = NEWS(sc, Trial, k->role.n + 1);
  PathFacts **kept = NEWS(sc, PathFacts *, k->role.n + 1);  // by role: its plans share its answers
  k->most_held = NEWS(sc, u8, k->role.n * k->ring.n + 1);
  for (u32 i = 0; i < k->role.n; i++) k->role.at[i].by_paths = 0;
  bool again = true;
  for (u32 attempt = 0; again; attempt++) {
    again = false;
    forget_plans(k);
    if (!plan_all(sc, k, facts, kept)) return false;
    for (u32 i = 0; i < k->role.n; i++) {
      Role *r = &k->role.at[i];
      const u8 before = r->by_paths;
      bool decided;
      const Diag *found = plan_by_flow(sc, k, facts, kept, i, trial[i].fault, &decided);
      try_next(r, &trial[i], attempt, found, decided);
      again |= r->by_paths != before;
    }
  }
  return true;
}
