// wait.c - all waits of one role for another: at mbarriers, at named barriers, for turns over CTAs;
// and the fences and syncs that the plan puts before an operation. With --debug-waits no wait can
// last for ever. One that takes too long records where it stands and ends, so that the launch ends
// and the host can report it. For that
//   - each wait has entries of its own in `waits`, one for each warp of the CTA (WaitSite, in
//     passes.h, is the key),
//   - cursors count a barrier's generations, of which the parity is the lowest bit,
//   - named barriers, whose waits nothing can end, become mbarriers behind the rest of shared
//     memory,
//   - roles leave their loops over tiles once a wait was given up. The one wait that is left, for
//     the end of the cluster's CTAs, ends when each role does.
// Without --debug-waits nothing of this is written.
// Called by frame.c and by statements; calls expr.c and stmt.c.
#include "compiler/emit/emit.h"

// ---- the key to what is written down

// Adds a site, and returns the number of its first entry. (Entry 0 of `waits` says whether any
// other entry is in use.)
static u32 new_site(Cuda *c, WaitKind kind, u32 ref) {
  PUSH(c->sc, &c->site, ((WaitSite){c->r, ref, (u8)kind, c->at}));
  return 1 + (c->site.n - 1) * (c->k->threads / 32);
}

const char *cu_phase(const Cuda *c) { return c->options.debug_waits ? "generation" : "parity"; }

const char *cu_next_phase(const Cuda *c) { return c->options.debug_waits ? "++" : " ^= 1"; }

// ---- mbarriers

void cu_mbar_wait(Cuda *c, const char *bar, const char *phase, WaitKind kind, u32 ring) {
  if (!c->options.debug_waits) {
    cu_line(c, "sc_mbar_wait(%s, %s);", bar, phase);
    return;
  }
  cu_line(c, "sc_mbar_wait_for(%s, %s, args.waits, %u);", bar, phase, new_site(c, kind, ring));
}

// ---- named barriers

u32 cu_named(const Kernel *k) { return (k->smem + 7) / 8 * 8; }

static const char *named(Cuda *c, Txt id) {
  return cu_text(c, "$smem + named_bars + 8 * %s", cu_paren(c, id, P_MUL));
}

void cu_bar_sync(Cuda *c, Txt id, u32 threads, WaitKind kind, u32 turn, const char *why) {
  if (!c->options.debug_waits) {
    cu_line(c, "sc_bar_sync(%s, %u);", id.s, threads);
    cu_note(c, why);
    return;
  }
  const char *met = kind == WAIT_TURN ? cu_text(c, "turn%u_generation", turn) : "met";
  cu_line(c, "sc_bar_sync_for(%s, %s++, args.waits, %u);", named(c, id), met,
          new_site(c, kind, turn));
  cu_note(c, why);
}

void cu_bar_arrive(Cuda *c, const char *condition, Txt id, u32 threads, const char *why) {
  if (!c->options.debug_waits) cu_line(c, "%ssc_bar_arrive(%s, %u);", condition, id.s, threads);
  else cu_line(c, "%ssc_mbar_arrive(%s);", condition, named(c, id));
  cu_note(c, why);
}

// How many threads arrive at a member's barrier: its own and those of the member before it, which
// are as many.
u32 cu_turn_threads(const Kernel *k, const Turn *t) { return 64u * k->role.at[t->member[0]].warps; }

static bool has_named(const Cuda *c) { return c->options.debug_waits && c->k->named > 1; }

static void init_named(Cuda *c, u32 first, u32 n, u32 threads, const char *what) {
  if (!first || !n) return;
  cu_line(c, "for (u32 id = %u; id <= %u; id++) sc_mbar_init($smem + named_bars + 8 * id, %u);",
          first, first + n - 1, threads);
  cu_note(c, what);
}

void cu_init_named(Cuda *c) {
  const Kernel *k = c->k;
  if (!has_named(c)) return;
  for (u32 i = 0; i < k->turn.n; i++) {
    const Turn *t = &k->turn.at[i];
    if (sc_turn_over_instances(t))
      init_named(c, t->barrier, sc_members(k, t), cu_turn_threads(k, t), t->name);
  }
  for (u32 i = 0; i < k->role.n; i++) {
    const Role *r = &k->role.at[i];
    init_named(c, r->barrier, r->instances, 32u * r->warps, cu_text(c, "where %s meets", r->name));
  }
}

void cu_count_named(Cuda *c) {
  const Kernel *k = c->k;
  if (!has_named(c)) return;
  for (u32 i = 0; i < k->turn.n; i++) {
    const Turn *t = &k->turn.at[i];
    if (!sc_turn_over_instances(t) || sc_first_op(c->k, c->r, OP_TAKE, i, 0) == SC_NONE) continue;
    cu_var(c, "u32 turn%u_generation = 0;", i);
    cu_note(c, cu_text(c, "of %s", t->name));
  }
  if (!k->role.at[c->r].barrier) return;
  cu_var(c, "u32 met = 0;");
  cu_note(c, "how often this role's warps did");
}

u32 cu_smem(const Cuda *c) { return has_named(c) ? cu_named(c->k) + 8 * c->k->named : c->k->smem; }

// ---- the threads of an instance

static Txt own_barrier(Cuda *c) {
  const Role *role = &c->k->role.at[c->r];
  Txt id = cu_int(c, role->barrier);
  return role->instances > 1 ? cu_sum(c, id, (Txt){"$instance", P_NAME}) : id;
}

void cu_sync(Cuda *c, const char *why) {
  if (c->single) return;
  if (c->k->role.at[c->r].warps == 1) cu_line(c, "sc_warp_sync();");
  else cu_bar_sync(c, own_barrier(c), 128, WAIT_SYNC, SC_NONE, why);
}

// Where waits are bounded, all barriers of the hardware but 0 are free for this.
Txt cu_meeting(Cuda *c) {
  return c->options.debug_waits ? (Txt){"1 + $warpgroup", P_ADD} : own_barrier(c);
}

// Writes the fence and the sync that the plan puts before an operation. They are written once for
// each operation, by frame.c or among the lines of a product or an arrival; `ordered` notes that.
void cu_order(Cuda *c, const Ins *ins, const char *why) {
  if (ins->plan.fence) cu_line(c, ins->plan.global ? "sc_fence_async_all();" : "sc_fence_async();");
  if (ins->plan.sync) cu_sync(c, why);
  c->ordered = true;
}

// ---- turns over CTAs

void cu_turn_take(Cuda *c, const char *who, const char *counter, const char *mine, u32 turn) {
  if (!c->options.debug_waits) cu_line(c, "%ssc_turn_take(%s, %s);", who, counter, mine);
  else
    cu_line(c, "%ssc_turn_take_for(%s, %s, args.waits, %u);", who, counter, mine,
            new_site(c, WAIT_CTA_TURN, turn));
  cu_note(c, cu_text(c, "take '%s'", c->k->turn.at[turn].name));
}

// ---- the end of a tile

// Leaves the loop over tiles once a wait was given up. The warps of an instance agree about that at
// a named barrier, which is free here, and to which all of them come.
void cu_leave_tiles(Cuda *c) {
  if (!c->options.debug_waits) return;
  if (c->single) {
    cu_line(c, "if (sc_gave_up(args.waits)) break;");
  } else if (c->k->role.at[c->r].warps == 1) {
    cu_line(c, "if (sc_any(sc_gave_up(args.waits))) break;");
  } else {
    cu_line(c, "if (sc_any_gave_up(args.waits, 1 + $warpgroup)) break;");
  }
}
