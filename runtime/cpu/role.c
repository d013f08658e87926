// role.c - one operation of a role instance. Each row of ops.def has its function here, named after
// it: an operation without one does not compile. An operation that must wait returns STEP_BLOCKED
// and has done nothing; it is tried again.
#include "compiler/layout/layout.h"
#include "runtime/cpu/machine.h"

#include <string.h>

static Step go(bool fine) { return fine ? STEP_GO : STEP_FAULT; }

// ---- tiles

// The hidden ring of a dynamic grid has two slots: its filler is at most that far ahead of the
// slowest role.
static bool may_draw(const Inst *in) {
  const Slot *s = in->slot;
  if (in->role != in->m->p->drawer || in->number || in->cta->rank) return false;
  for (u32 i = 0; i < s->insts; i++) {
    if (s->inst[i].iter + 1 < in->iter) return false;
  }
  return true;
}

// Which CTA, or cluster, a job is. Nothing says in which order they come: each policy has its own,
// so that results differ where two of them store to the same place. Those that communicate are all
// there at once, or rely on the first ones being there first.
static u64 cta_of(const Program *p, u64 job) {
  u64 turned = p->jobs - 1 - job, seed = p->opt->seed;
  if (p->talks || p->opt->policy == SCHEDC_EARLY) return job;
  if (p->opt->policy == SCHEDC_LATE) return turned;
  return ((seed & 1 ? turned : job) + seed / 2 % p->jobs) % p->jobs;
}

// The tile that the instance takes next, as a unit of the grid; blocked while it has not been
// drawn.
static Step next_unit(Inst *in, u64 *unit) {
  Program *p = in->m->p;
  Slot *s = in->slot;
  if (p->k->grid == GRID_DYNAMIC) {
    if (in->iter == s->draws) {
      if (!may_draw(in)) return STEP_BLOCKED;
      memset(s->knew[s->draws % COUNT(s->draw)], 0, s->words * sizeof *s->knew[0]);
      s->draw[s->draws++ % COUNT(s->draw)] = atomic_fetch_add(&p->drawn, 1);
    }
    sc_hear_of_draw(in);
    *unit = s->draw[in->iter % COUNT(s->draw)];
  } else {
    u64 cta = cta_of(p, s->job);
    *unit = p->k->grid == GRID_PLAIN ? (in->iter ? p->grid.total : cta) : cta + in->iter * p->jobs;
  }
  return *unit < p->grid.total ? STEP_GO : STEP_END;
}

static Step leave(Inst *in) {
  if (in->out_issued > in->out_read) {
    sc_fault(in, D_X_FLIGHT, in->of->code.at[in->out_pc].span,
             "the CTA ends while a copy out may still read its shared memory");
    sc_fault_help(in, "'wait' for the tensor that is written, with 'read' at least");
    return STEP_FAULT;
  }
  in->done = true;
  in->slot->live--;
  return STEP_END;
}

static void forget_registers(Inst *in) {
  const Kernel *k = in->env.k;
  for (u32 b = 0; b < k->buf.n; b++) {
    if (in->reg[b].at) sc_poison((Elem)k->buf.at[b].elem, in->reg[b].at, in->m->p->elems[b]);
  }
}

static Step op_TILE(Inst *in, const Ins *i) {
  const Program *p = in->m->p;
  u64 unit;
  (void)i;
  Step s = next_unit(in, &unit);
  if (s != STEP_GO) return s == STEP_END ? leave(in) : s;
  sc_tile_axes(&p->grid, p->k, unit, in->cta->rank, in->env.axis);
  in->surplus = sc_surplus(&p->grid, in->env.axis);
  in->unit = unit;
  in->skips = !sc_owns(in->of, in->iter, in->number);
  in->iter++;
  env_touch(&in->env);
  if (!in->skips) forget_registers(in);
  return STEP_GO;
}

// What a tile begins, it ends: products, holds and fills.
static bool tidy(Inst *in, const Ins *i) {
  u32 products = in->mma_issued - in->mma_waited;
  if (products) {
    return sc_fault(in, D_X_FLIGHT, i->span, "the tile ends, and %u product%s not been waited for",
                    products, products == 1 ? " has" : "s have");
  }
  for (u32 r = 0; r < in->env.k->ring.n; r++) {
    const Cursor *c = &in->ring[r];
    if (c->waited == c->released && c->filled == c->committed) continue;
    return sc_fault(in, D_X_HELD, i->span, "the tile ends, and a stage of '%s' has not been %s",
                    in->env.k->ring.at[r].name,
                    c->waited == c->released ? "committed" : "released");
  }
  return true;
}

static Step op_ENDTILE(Inst *in, const Ins *i) {
  if (!tidy(in, i)) return STEP_FAULT;
  sc_tally_tile(in);
  if (in->id == 0) atomic_fetch_add_explicit(&in->m->p->tiles_done, 1, memory_order_relaxed);
  in->skips = false;
  in->pc = i->nest;
  return STEP_GO;
}

// ---- control

static Step op_FOR(Inst *in, const Ins *i) {
  u32 loop = i->arg[0];
  i64 from = env_int(&in->env, i->arg[1]), to = env_int(&in->env, i->arg[2]);
  in->from[loop] = from;
  in->to[loop] = to;
  if (from >= to) {
    in->pc = i->nest + 1;
    return STEP_GO;
  }
  in->env.loop[loop] = i->flags & INS_REVERSED ? to - 1 : from;
  env_touch(&in->env);
  return STEP_GO;
}

static Step op_ENDFOR(Inst *in, const Ins *i) {
  const Ins *opener = &in->of->code.at[i->nest];
  u32 loop = opener->arg[0];
  i64 *now = &in->env.loop[loop];
  bool reversed = opener->flags & INS_REVERSED;
  if (reversed ? *now <= in->from[loop] : *now >= in->to[loop] - 1) return STEP_GO;
  *now += reversed ? -1 : 1;
  env_touch(&in->env);
  in->pc = i->nest + 1;
  return STEP_GO;
}

static Step op_IF(Inst *in, const Ins *i) {
  if (!env_bool(&in->env, i->arg[0])) in->pc = i->nest + 1;
  return STEP_GO;
}

static Step op_ELSE(Inst *in, const Ins *i) {
  in->pc = i->nest + 1;
  return STEP_GO;
}

static Step op_ENDIF(Inst *in, const Ins *i) {
  (void)in, (void)i;
  return STEP_GO;
}

// ---- votes

// A warp's share of a block of rows.
static u32 warp_rows(void) { return sc_block_rows(1); }

// The next rows that the block runs on: of a warpgroup, a warp's share; of a warp, all of them.
static bool next_warp(Inst *in) {
  in->row0 = in->row1 = 0;
  if (!in->warps) return false;
  u32 at = (u32)__builtin_ctz(in->warps);
  in->warps &= in->warps - 1;
  in->row0 = in->of->warps == 1 ? 0 : at * warp_rows();
  in->row1 = in->of->warps == 1 ? in->rows : in->row0 + warp_rows();
  return true;
}

// Notes, for check_values, whether a map divides by 0 in these rows, or reads outside of a list.
static void try_values(Inst *in, const MapPlan *p, i64 row0, i64 row1) {
  if (p->fails)
    in->env.bad |= sc_strip_any(p->fails, &in->env, in->m->op, row0, row1, in->m->scratch);
}

// What fails is no mistake until it is known that an element needs it, but in the place to which
// the map writes.
static bool operands(Inst *in, const Map *m, const MapPlan *p) {
  const View *dst = m->dst == SC_NONE ? NULL : &in->env.k->view.at[m->dst];
  for (u32 d = 0; dst && d < dst->rank; d++)
    if (dst->at[d].base) env_int(&in->env, dst->at[d].base);
  in->env.of_elements = p->fails != NULL;
  return sc_operands(in, m, p);
}

// A warp votes on all its rows, of every block.
static u32 ballot(Inst *in, const MapPlan *p) {
  Machine *m = in->m;
  if (in->of->warps == 1) return sc_strip_any(p->strip, &in->env, m->op, 0, in->rows, m->scratch);
  u32 chosen = 0, chunks = (u32)(in->rows / warp_rows()), warps = in->of->warps;
  if (chunks > 32) chunks = 32;
  for (u32 c = 0; c < chunks; c++) {
    i64 row = (i64)c * warp_rows();
    if (!sc_strip_any(p->strip, &in->env, m->op, row, row + warp_rows(), m->scratch)) continue;
    u32 warp = sc_holder(sc_layout(LAY_ROW, warps), row, 0).warp;
    for (u32 d = warp; d < chunks; d += warps) chosen |= 1u << d;
  }
  return chosen;
}

// In the block of a vote its warp votes again, on the rows that the block runs on.
static void vote_again(Inst *in, const Ins *i, const MapPlan *p) {
  Machine *m = in->m;
  if (sc_strip_any(p->strip, &in->env, m->op, in->row0, in->row1, m->scratch)) in->inner++;
  else in->pc = i->nest + 1;
}

static Step op_VOTE(Inst *in, const Ins *i) {
  const Map *m = &in->env.k->map.at[i->arg[0]];
  const MapPlan *p = &in->m->p->map[i->arg[0]];
  if (!operands(in, m, p)) return STEP_FAULT;
  const i64 from[SC_MAX_VARS] = {0};
  if (p->global && !sc_touch_map(in, m, from, p->ext)) return STEP_FAULT;
  i64 rows = m->vars ? p->ext[0] : 1;
  try_values(in, p, in->row0, in->row1 ? in->row1 : rows);
  if (i->flags & INS_TOGETHER) {
    if (!sc_strip_any(p->strip, &in->env, in->m->op, 0, rows, in->m->scratch)) in->pc = i->nest + 1;
    return STEP_GO;
  }
  if (in->row1) {
    vote_again(in, i, p);
    return STEP_GO;
  }
  in->rows = rows;
  in->warps = ballot(in, p);
  if (!next_warp(in)) in->pc = i->nest + 1;
  return STEP_GO;
}

static Step op_ENDVOTE(Inst *in, const Ins *i) {
  if (in->of->code.at[i->nest].flags & INS_TOGETHER) return STEP_GO;
  if (in->inner) in->inner--;
  else if (next_warp(in)) in->pc = i->nest + 1;
  return STEP_GO;
}

// ---- rings

// A wait for a generation passes by parity. It can be trusted only if the instance already knows
// that the generation before is over (else the one before that would do as well).
static Step await(Inst *in, const Ins *i, Barrier *b, u32 generation, u32 ring) {
  const Ring *r = &in->env.k->ring.at[ring];
  if ((i32)generation > 0 && in->clock[b->word] < generation) {
    sc_fault(in, D_X_PHASE, i->span,
             "this wait on '%s' may pass a round early: nothing tells the role that round %u of "
             "the stage is over",
             r->name, generation - 1);
    sc_fault_note(in, r->span, "its barriers tell even rounds from odd ones, and no more");
    sc_fault_help(
        in,
        "give the ring more stages, or order the instances by a turn that spans this operation");
    return STEP_FAULT;
  }
  if (!sc_barrier_test(b, generation)) return STEP_BLOCKED;
  sc_join(in->clock, b->done, in->slot->words);
  return STEP_GO;
}

// Each instance gives stages back in their order. So whoever waits until all have given one back
// knows that they have given back those before it, too. (Instances that deal tiles among them are
// in no order.)
static void hear_of_releases(Inst *in, u32 ring, u32 released) {
  const Kernel *k = in->env.k;
  const u32 stages = k->ring.at[ring].stages;
  for (u32 r = 0; r < k->role.n; r++)
    if (k->ring.at[ring].drainers >> r & 1 && k->role.at[r].one_tile) return;
  for (u32 n = released; n > 0 && n + stages > released; n--) {
    u32 *rounds = &in->clock[sc_stage(in, ring, n - 1)->empty.word], over = (n - 1) / stages + 1;
    if (*rounds < over) *rounds = over;
  }
}

static Step op_ACQUIRE(Inst *in, const Ins *i) {
  Cursor *c = &in->ring[i->arg[0]];
  u32 stages = in->env.k->ring.at[i->arg[0]].stages, round = c->filled / stages;
  if (!in->skips) {
    Stage *s = sc_stage(in, i->arg[0], c->filled);
    Step step = await(in, i, &s->empty, round - 1, i->arg[0]);
    if (step != STEP_GO) return step;
    if (round) hear_of_releases(in, i->arg[0], c->filled - stages + 1);
    sc_expect(in->slot, &s->full, i->plan.bytes);
    if (i->plan.arrivals)
      sc_arrive(in, &s->full, i->plan.arrivals, false);  // by the thread that issues the copies
  }
  c->filled++;
  return STEP_GO;
}

static Step not_held(Inst *in, const Ins *i, const char *how) {
  return go(sc_fault(in, D_X_HELD, i->span, "no stage of '%s' is %s here",
                     in->env.k->ring.at[i->arg[0]].name, how));
}

// A warp that arrives meets before one of its lanes does: a role of one warp is then together.
static void meet_to_arrive(Inst *in, const Ins *i) {
  if (in->of->warps == 1 && i->plan.arrivals) sc_sync(in);
}

static Step op_COMMIT(Inst *in, const Ins *i) {
  Cursor *c = &in->ring[i->arg[0]];
  if (c->filled == c->committed) return not_held(in, i, "being filled");
  if (!in->skips) {
    bool all_warps = sc_warps_fill(in->env.k, in->role, i->arg[0]);
    Barrier *full = &sc_stage(in, i->arg[0], c->committed)->full;
    meet_to_arrive(in, i);
    if (i->plan.arrivals)
      sc_arrive(in, full, i->plan.arrivals, all_warps && i->plan.arrivals >= in->of->warps);
  }
  c->committed++;
  return STEP_GO;
}

static Step op_WAIT(Inst *in, const Ins *i) {
  Cursor *c = &in->ring[i->arg[0]];
  u32 round = c->waited / in->env.k->ring.at[i->arg[0]].stages;
  if (!in->skips) {
    Step step = await(in, i, &sc_stage(in, i->arg[0], c->waited)->full, round, i->arg[0]);
    if (step != STEP_GO) return step;
  }
  c->waited++;
  return STEP_GO;
}

static Step op_RELEASE(Inst *in, const Ins *i) {
  Cursor *c = &in->ring[i->arg[0]];
  const Ring *r = &in->env.k->ring.at[i->arg[0]];
  if (c->waited == c->released) return not_held(in, i, "held");
  if (!in->skips) {
    Stage *s = sc_stage(in, i->arg[0], c->released);
    u32 ctas = in->m->p->grid.ctas;
    if (!sc_may_release(in, s, i->arg[0])) return STEP_FAULT;
    c->release_pc = in->at;
    meet_to_arrive(in, i);
    for (u32 n = 0; n < (r->multicast ? ctas : 1); n++) {
      if (r->multicast) s = sc_stage_of(in, &in->slot->cta[n], i->arg[0], c->released);
      sc_arrive(in, &s->empty, i->plan.arrivals, i->plan.arrivals >= in->of->warps);
    }
  }
  c->released++;
  return STEP_GO;
}

static Step op_TAKE(Inst *in, const Ins *i) { return sc_take_turn(in, i); }
static Step op_PASS(Inst *in, const Ins *i) { return sc_pass_turn(in, i); }

// ---- asynchronous work

static Step op_COPYIN(Inst *in, const Ins *i) { return go(sc_issue_copy(in, i)); }
static Step op_COPYOUT(Inst *in, const Ins *i) { return go(sc_issue_out(in, i)); }
static Step op_COPYADD(Inst *in, const Ins *i) { return go(sc_issue_out(in, i)); }
static Step op_MMA(Inst *in, const Ins *i) {
  return go(sc_issue_product(in, &in->env.k->product.at[i->arg[0]]));
}
static Step op_MMAWARP(Inst *in, const Ins *i) {
  return go(sc_warp_product(in, &in->env.k->product.at[i->arg[0]]));
}

static void raise(u32 *to, u32 least) { *to = *to < least ? least : *to; }

static Step op_MMAWAIT(Inst *in, const Ins *i) {
  u32 keep = i->plan.keep, want = in->mma_issued > keep ? in->mma_issued - keep : 0;
  if (in->mma_done < want) return STEP_BLOCKED;
  raise(&in->mma_waited, want);
  raise(&in->clock[in->id * C_INST + C_MMA], want);
  return STEP_GO;
}

static Step op_COPYWAIT(Inst *in, const Ins *i) {
  u32 keep = i->plan.keep, want = in->out_issued > keep ? in->out_issued - keep : 0;
  if (in->out_done < want) return STEP_BLOCKED;
  raise(&in->out_read, want);
  raise(&in->clock[in->id * C_INST + C_READ], want);
  if (i->flags & INS_READ) return STEP_GO;
  raise(&in->out_seen, want);
  raise(&in->clock[in->id * C_INST + C_SEEN], want);
  return STEP_GO;
}

// ---- maps

typedef void (*RunMap)(const Strip *, Env *, const Operand *, i64, i64, void *, const Watch *);

static Step run_map(Inst *in, const Ins *i, RunMap run) {
  const Map *m = &in->env.k->map.at[i->arg[0]];
  const MapPlan *p = &in->m->p->map[i->arg[0]];
  i64 rows = m->vars ? p->ext[0] : 1, row0 = 0, row1 = rows;
  if (in->row1 && m->vars) {
    row0 = in->row0;
    row1 = in->row1 < rows ? in->row1 : rows;
  }
  if (!operands(in, m, p)) return STEP_FAULT;
  try_values(in, p, row0, row1);
  Gather g = {.in = in, .m = m, .plan = p, .fine = true};
  const Watch watch = {sc_gather, &g};
  run(p->strip, &in->env, in->m->op, row0, row1, in->m->scratch,
      p->global && m->cond ? &watch : NULL);
  if (!p->global || m->cond) return go(sc_gathered(&g));
  i64 from[SC_MAX_VARS] = {row0}, to[SC_MAX_VARS];
  memcpy(to, p->ext, sizeof to);
  if (m->vars) to[0] = row1;
  return go(sc_touch_map(in, m, from, to));
}

static Step op_MAP(Inst *in, const Ins *i) { return run_map(in, i, sc_strip_run); }

static Step op_MAPADD(Inst *in, const Ins *i) {
  return in->surplus ? STEP_GO : run_map(in, i, sc_strip_add);
}

// ---- running

static Step (*const run_op[OP_COUNT])(Inst *, const Ins *) = {
#define OP(id, text, args, effects) op_##id,
#include "compiler/ir/ops.def"
#undef OP
};

// In a tile that another instance owns only the control flow and what it has in common with the
// owner go on: the cursors of shared rings, and the count of turns.
static bool skipped(Inst *in, const Ins *i) {
  if (sc_op[i->op].effects & (OPENS | CLOSES | SPLITS) && i->op != OP_VOTE) return false;
  if (i->op == OP_ACQUIRE || i->op == OP_COMMIT || i->op == OP_WAIT || i->op == OP_RELEASE)
    return in->env.k->ring.at[i->arg[0]].owner != SC_NONE;
  if (i->op == OP_VOTE) in->pc = i->nest + 1;
  if (i->op == OP_TAKE) in->taken[i->arg[0]]++;
  return true;
}

// Integers are checked: a value that is none ends the run. (Surplus tiles of clusters lie outside
// tensors.)
static void check_values(Inst *in, const Ins *i) {
  if (in->env.bad && !in->surplus) {
    const Let *let = env_failed_let(&in->env, in->role);
    sc_fault(in, D_X_VALUE, i->span,
             "an integer overflows, is divided by zero, or is read outside its tensor");
    if (let) sc_fault_note(in, let->span, "'%s' is that integer, or made of it", let->name);
    sc_fault_help(in, "bound what it is made of%s: by 'c ? idx[…] : 0', 'min', 'max'",
                  let ? "" : ", also in a 'let' above");
  }
  in->env.bad = false;
  in->env.failed = 0;
}

u32 sc_role_run(Inst *in, u32 limit) {
  u32 ran = 0;
  Program *p = in->m->p;
  while (ran < limit && !in->done && !in->m->fault.set) {
    if (in->m->caller && atomic_load_explicit(&p->crowded, memory_order_relaxed)) sc_enter_logs(p);
    const Ins *i = &in->of->code.at[in->pc];
    in->at = in->pc++;
    if (!in->skips) {
      if (i->plan.fence) sc_fence(in, i->plan.global);
      if (i->plan.sync) sc_sync(in);
    }
    if (!in->skips || !skipped(in, i)) {
      if (run_op[i->op](in, i) == STEP_BLOCKED) {
        in->pc = in->at;
        break;
      }
    }
    in->env.of_elements = false;
    if (in->env.bad) check_values(in, i);
    ran++;
  }
  return ran;
}
