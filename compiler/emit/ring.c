// ring.c - rings. The barriers of a ring lie side by side: full[stages], empty[stages].
// For each ring that a role takes part in, it keeps a cursor (a stage, and the parity of its
// phase). A role's n-th wait is for the n-th fill, because both sides count in the same way.
//
// Called by frame.c, grid.c and copy.c; calls wait.c, block.c, and tile.c for stages.
#include "compiler/emit/emit.h"

#include <string.h>

static bool fills(const Cuda *c, const Ring *r) { return r->fillers >> c->r & 1; }
static bool drains(const Cuda *c, const Ring *r) { return r->drainers >> c->r & 1; }

static const char *barrier(Cuda *c, const Ring *r, bool full, const char *stage) {
  const char *base =
      cu_text(c, "$smem + %s_%s", c->ring[r - c->k->ring.at], full ? "full" : "empty");
  if (r->owner != SC_NONE) base = cu_text(c, "%s + $instance * %u", base, 16 * r->stages);
  return r->stages == 1 ? base : cu_text(c, "%s + 8 * %s", base, stage);
}

void cu_cursors(Cuda *c) {
  for (u32 i = 0; i < c->k->ring.n; i++) {
    const Ring *r = &c->k->ring.at[i];
    const char *name = c->ring[i];
    bool many = r->stages > 1;
    // A filler's first waits find every stage empty: parity 1 is that of the phase before the
    // first.
    const char *phase = cu_phase(c), *before = c->options.debug_waits ? "~0u" : "1";
    if (fills(c, r) && many)
      cu_var(c, "u32 %s_fill = 0, %s_fill_%s = %s;", name, name, phase, before);
    if (fills(c, r) && !many) cu_var(c, "u32 %s_fill_%s = %s;", name, phase, before);
    if (!drains(c, r)) continue;
    if (many && sc_most_held(c->k, c->r, i) > 1) {
      cu_var(c, "u32 %s_next = 0, %s_held = 0, %s_oldest = 0, %s_%s = 0;", name, name, name, name,
             phase);
    } else if (many) {
      cu_var(c, "u32 %s_held = 0, %s_%s = 0;", name, name, phase);
    } else {
      cu_var(c, "u32 %s_%s = 0;", name, phase);
    }
  }
}

static void step(Cuda *c, const Ring *r, const char *stage, const char *phase) {
  if (r->stages == 1) cu_line(c, "%s%s;", phase, cu_next_phase(c));
  else if (!phase) cu_line(c, "if (++%s == %u) %s = 0;", stage, r->stages, stage);
  else
    cu_line(c, "if (++%s == %u) { %s = 0; %s%s; }", stage, r->stages, stage, phase,
            cu_next_phase(c));
}

static Txt count(Cuda *c, u32 from, u32 to, Op op, u32 ring);

// How often all rounds of the loop do `op` on the ring, as an expression of 64 bits.
static Txt count_rounds(Cuda *c, u32 loop, Op op, u32 ring) {
  const Ins *ins = &c->k->role.at[c->r].code.at[loop];
  Txt inner = count(c, loop + 1, ins->nest, op, ring);
  if (cu_is(inner, 0)) return inner;
  Txt all = {
      cu_text(c, "sc_rounds(%s, %s)", cu_uniform(c, ins->arg[1]).s, cu_uniform(c, ins->arg[2]).s),
      P_ATOM};
  if (cu_is(inner, 1)) return all;
  return (Txt){cu_text(c, "%s * %s", all.s, cu_paren(c, inner, P_ATOM)), P_MUL};
}

// How often the operations [from, to) of the role's code do `op` on the ring, as an integer
// expression.
static Txt count(Cuda *c, u32 from, u32 to, Op op, u32 ring) {
  const Code *code = &c->k->role.at[c->r].code;
  Txt sum = cu_int(c, 0);
  u32 plain = 0;
  for (u32 i = from; i < to; i++) {
    const Ins *ins = &code->at[i];
    plain += ins->op == op && ins->arg[0] == ring;
    if (ins->op == OP_FOR) {
      sum = cu_sum(c, sum, count_rounds(c, i, op, ring));
      i = ins->nest;
    } else if (ins->op == OP_IF) {
      u32 mid = ins->nest, end = sc_closed_by(code, i);
      Txt yes = count(c, i + 1, mid, op, ring), no = count(c, mid + 1, end, op, ring);
      const char *when = cu_paren(c, cu_expr(c, NULL, ins->arg[0]), P_COND + 1);
      Txt either = {cu_text(c, "(%s ? %s : %s)", when, yes.s, no.s), P_ATOM};
      if (!cu_is(yes, 0) || !cu_is(no, 0)) sum = cu_sum(c, sum, either);
      i = end;
    }
  }
  return cu_sum(c, sum, cu_int(c, plain));
}

// Does that number depend on the values of loops, as a condition or a bound around `op` does?
static bool varies(const Cuda *c, u32 from, u32 to, Op op, u32 ring, bool *does) {
  const Code *code = &c->k->role.at[c->r].code;
  bool found = false, any = false;
  for (u32 i = from; i < to; i++) {
    const Ins *ins = &code->at[i];
    any |= ins->op == op && ins->arg[0] == ring;
    if (ins->op != OP_FOR && ins->op != OP_IF) continue;
    u32 end = sc_closed_by(code, i);
    bool inside = false;
    found |= varies(c, i + 1, end, op, ring, &inside) ||
             (inside && sc_control_deps(c->k, ins) & DEP_LOOP);
    any |= inside;
    i = end;
  }
  *does |= any;
  return found;
}

// Writes code that counts it at run time, in loops and branches like the role's.
static void count_up(Cuda *c, u32 from, u32 to, Op op, u32 ring, const char *sum) {
  const Code *code = &c->k->role.at[c->r].code;
  for (u32 i = from; i < to; i++) {
    const Ins *ins = &code->at[i];
    bool does = false;
    if (ins->op == op && ins->arg[0] == ring) cu_line(c, "%s++;", sum);
    if (ins->op != OP_FOR && ins->op != OP_IF) continue;
    u32 mid = ins->nest, end = sc_closed_by(code, i);
    varies(c, i + 1, end, op, ring, &does);
    if (does) {
      if (ins->op == OP_FOR) cu_open_for(c, ins);
      else cu_open(c, "if (%s)", cu_uniform(c, ins->arg[0]).s);
      count_up(c, i + 1, mid, op, ring, sum);
      if (end != mid) cu_else(c, "else");
      if (end != mid) count_up(c, mid + 1, end, op, ring, sum);
      cu_close(c);
    }
    i = end;
  }
}

// How often the role does `op` on the ring in a tile.
static Txt count_in_tile(Cuda *c, Op op, u32 ring) {
  u32 end = c->k->role.at[c->r].code.n - 1;
  bool does = false;
  if (!varies(c, 1, end, op, ring, &does)) return count(c, 1, end, op, ring);
  const char *sum = cu_temp(c, cu_text(c, "%s_skipped", c->ring[ring]));
  cu_var(c, "u64 %s = 0;", sum);
  count_up(c, 1, end, op, ring, sum);
  return (Txt){sum, P_NAME};
}

static void skip(Cuda *c, const Ring *r, const char *stage, const char *phase, Txt n) {
  bool counts = c->options.debug_waits;
  if (cu_is(n, 0)) return;
  if (r->stages > 1)
    cu_line(c, "sc_skip%s(%s, %s, %s, %u);", counts ? "_for" : "", stage, phase, n.s, r->stages);
  else if (counts) cu_line(c, "%s += %s;", phase, n.s);
  else cu_line(c, cu_is(n, 1) ? "%s ^= %s;" : "%s ^= (%s) & 1;", phase, n.s);
}

// Moves this instance's cursors past a tile of another instance, for all shared rings that the tile
// uses. A private ring is not moved, as each instance has its own. (How often a loop's rounds do
// something is written out also where it has none.)
void cu_skip_tile(Cuda *c) {
  c->unasked = true;
  for (u32 i = 0; i < c->k->ring.n; i++) {
    const Ring *r = &c->k->ring.at[i];
    const char *name = c->ring[i];
    if (r->owner != SC_NONE) continue;
    if (fills(c, r))
      skip(c, r, cu_text(c, "%s_fill", name), cu_text(c, "%s_fill_%s", name, cu_phase(c)),
           count_in_tile(c, OP_ACQUIRE, i));
    if (!drains(c, r)) continue;
    bool many = r->stages > 1 && sc_most_held(c->k, c->r, i) > 1;
    Txt n = count_in_tile(c, OP_WAIT, i);
    skip(c, r, cu_text(c, many ? "%s_next" : "%s_held", name),
         cu_text(c, "%s_%s", name, cu_phase(c)), n);
    if (many && !cu_is(n, 0)) cu_line(c, "%s_oldest = %s_next;", name, name);
  }
  c->unasked = false;
}

static const char *cursor(Cuda *c, u32 ring, const char *what) {
  return cu_text(c, "%s_%s", c->ring[ring], what);
}
static const char *filled(Cuda *c, u32 ring) {
  return cu_text(c, "%s_fill_%s", c->ring[ring], cu_phase(c));
}

const char *cu_landing(Cuda *c, u32 ring) {
  return barrier(c, &c->k->ring.at[ring], true, cursor(c, ring, "fill"));
}

// If the role fills the ring by copies alone, one thread waits for the empty stage. Otherwise every
// warp arrives at the commit, and so all threads wait.
void cu_acquire(Cuda *c, const Ins *ins) {
  u32 ring = ins->arg[0];
  const Ring *r = &c->k->ring.at[ring];
  const char *stage = cursor(c, ring, "fill"), *full = barrier(c, r, true, stage);
  bool shared = !sc_only_copies(c->k, c->r, ring), elect = !shared && !c->single;
  if (elect) cu_open(c, "if ($thread == 0)");
  cu_mbar_wait(c, barrier(c, r, false, stage), filled(c, ring), WAIT_EMPTY, ring);
  if (ins->plan.bytes) {
    const char *bytes = ins->plan.bytes == r->stage_bytes ? cu_text(c, "$%s_bytes", c->ring[ring])
                                                          : cu_text(c, "%u", ins->plan.bytes);
    const char *who = shared ? "if ($thread == 0) " : "";
    cu_line(c, "%ssc_mbar_expect%s(%s, %s);", who, ins->plan.arrivals ? "" : "_only", full, bytes);
  }
  if (elect) cu_close(c);
}

// The condition that selects the thread which arrives for others; NULL: there are no others.
static const char *arriver(const Cuda *c, const Ins *ins) {
  const Role *role = &c->k->role.at[c->r];
  if (c->single) return NULL;
  return ins->plan.arrivals == role->warps && role->warps > 1 ? "$lane == 0" : "$thread == 0";
}

static void arrive(Cuda *c, const Ins *ins, const char *bar) {
  const char *when = arriver(c, ins);
  if (when) cu_line(c, "if (%s) sc_mbar_arrive(%s);", when, bar);
  else cu_line(c, "sc_mbar_arrive(%s);", bar);
}

// Writes what comes before an arrival. One lane arrives for its warp, which has to meet first. (One
// arrival for a warpgroup speaks for engines alone, whose end the arriving thread knows.)
static void before_arrival(Cuda *c, const Ins *ins) {
  cu_order(c, ins, NULL);
  bool elected = ins->plan.arrivals == c->k->role.at[c->r].warps;
  if (!c->single && !ins->plan.sync && elected) cu_line(c, "sc_warp_sync();");
}

// A fill by copies alone may have arrived with its bytes at its acquire: then only the cursor moves
// here.
void cu_commit(Cuda *c, const Ins *ins) {
  const Ring *r = &c->k->ring.at[ins->arg[0]];
  if (ins->plan.arrivals) {
    before_arrival(c, ins);
    arrive(c, ins, barrier(c, r, true, cursor(c, ins->arg[0], "fill")));
  }
  step(c, r, cursor(c, ins->arg[0], "fill"), filled(c, ins->arg[0]));
}

void cu_wait(Cuda *c, const Ins *ins) {
  u32 ring = ins->arg[0];
  const Ring *r = &c->k->ring.at[ring];
  bool many = r->stages > 1 && sc_most_held(c->k, c->r, ring) > 1;
  const char *stage = cursor(c, ring, many ? "next" : "held");
  cu_mbar_wait(c, barrier(c, r, true, stage), cursor(c, ring, cu_phase(c)), WAIT_FULL, ring);
  if (!many) return;
  cu_line(c, "%s = %s;", cursor(c, ring, "held"), stage);
  step(c, r, stage, cursor(c, ring, cu_phase(c)));
}

void cu_release(Cuda *c, const Ins *ins) {
  u32 ring = ins->arg[0];
  const Ring *r = &c->k->ring.at[ring];
  bool many = r->stages > 1 && sc_most_held(c->k, c->r, ring) > 1;
  const char *stage = cursor(c, ring, many ? "oldest" : "held");
  before_arrival(c, ins);
  u32 ctas = r->multicast ? sc_cluster(c->k) : 1;
  const char *bar = barrier(c, r, false, stage), *when = arriver(c, ins);
  if (ctas == 1) {
    arrive(c, ins, bar);
  } else {
    if (when) cu_open(c, "if (%s)", when);
    for (u32 cta = 0; cta < ctas; cta++) cu_line(c, "sc_mbar_arrive_cta(%s, %u);", bar, cta);
    if (when) cu_close(c);
  }
  step(c, r, stage, many ? NULL : cursor(c, ring, cu_phase(c)));
}
