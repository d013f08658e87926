// walk.c - forward data flow over structured code. A loop's head keeps what is known there
// over all paths; the whole role is walked again until no head learns anything more (so nested
// loops cost a pass for each fact, not a power of the nesting), and a last time to report. Where
// paths join, queues, holds, fills and turns must agree (R4, R5): then what holds after one
// iteration holds after any number of them.
#include "compiler/flow/flow.h"

enum { MAX_WORK = 1 << 29 };

static State *saved(Flow *f, u32 which) {
  State **at = &f->saved[2 * f->depth + which];
  if (!*at) *at = sc_state(f->sc, f->k);
  return *at;
}

static void open_block(Flow *f) {
  f->open[f->depth] = f->pc;
  f->in_else[f->depth] = false;
  f->depth++;
}

static bool runs_at_least_once(const Flow *f, const Ins *loop) {
  i64 from, to;
  return x_const_int(f->k, loop->arg[1], &from) && x_const_int(f->k, loop->arg[2], &to) &&
         from < to;
}

static void enter_loop(Flow *f) {
  State **head = &f->head[f->pc];
  if (*head) {
    f->changed |= sc_state_join(*head, f->now, f->k);
  } else {
    *head = sc_state(f->sc, f->k);
    sc_state_copy(*head, f->now, f->k);
    f->changed = true;
  }
  sc_state_copy(f->now, *head, f->k);
  open_block(f);
}

static void leave_loop(Flow *f) {
  u32 open = f->open[--f->depth];
  const Ins *loop = &f->r->code.at[open];
  State *head = f->head[open];
  bool same = sc_state_same(head, f->now, f->k);
  if (!same && f->report) sc_report_loop(f, head, f->now, loop->span);
  if (same) f->changed |= sc_state_join(head, f->now, f->k);
  if (!same || !runs_at_least_once(f, loop)) sc_state_copy(f->now, head, f->k);
}

static void enter_branch(Flow *f) {
  sc_state_copy(saved(f, 0), f->now, f->k);
  open_block(f);
}

static void other_branch(Flow *f) {
  f->depth--;
  sc_state_copy(saved(f, 1), f->now, f->k);
  sc_state_copy(f->now, saved(f, 0), f->k);
  f->in_else[f->depth++] = true;
}

// If the paths disagree, the walk goes on with the one that holds more, so that releases and waits
// that follow are not reported as well.
static void leave_branch(Flow *f) {
  f->depth--;
  bool in_else = f->in_else[f->depth];
  State *other = saved(f, in_else ? 1 : 0);
  if (sc_state_same(f->now, other, f->k)) {
    sc_state_join(f->now, other, f->k);
    return;
  }
  if (f->report)
    sc_report_branch(f, in_else ? other : f->now, in_else ? f->now : other,
                     f->r->code.at[f->open[f->depth]].span);
  if (sc_state_weight(other, f->k) > sc_state_weight(f->now, f->k))
    sc_state_copy(f->now, other, f->k);
}

static void step(Flow *f, Ins *ins) {
  switch (ins->op) {
    // Nothing is known of earlier tiles, nor need it be: other CTAs may have run them, in any order
    // (unless they take turns).
    case OP_TILE: sc_state_clear(f->now, f->k); break;
    case OP_ENDTILE:
      if (f->report) sc_report_end(f, f->now);
      break;
    case OP_FOR: enter_loop(f); break;
    case OP_ENDFOR: leave_loop(f); break;
    case OP_VOTE:
      sc_step(f, ins);
      enter_branch(f);
      f->votes++;
      break;
    case OP_IF: enter_branch(f); break;
    case OP_ELSE: other_branch(f); break;
    case OP_ENDVOTE:
      sc_step_endvote(f, ins);
      f->votes--;
      leave_branch(f);
      break;
    case OP_ENDIF: leave_branch(f); break;
    default: sc_step(f, ins);
  }
}

static void pass(Flow *f) {
  f->changed = false;
  f->depth = f->votes = 0;
  sc_state_clear(f->now, f->k);
  for (f->pc = 0; f->pc < f->r->code.n; f->pc++) step(f, &f->r->code.at[f->pc]);
}

// Is a pass cheap enough? What it costs is mostly that each block copies a state; this counts
// bytes.
static bool affordable(Flow *f, u32 blocks) {
  const Kernel *k = f->k;
  u64 state = sizeof(State) + k->ring.n * sizeof(RingState) + k->turn.n * sizeof(TurnState) +
              k->buf.n * 16u;
  if (blocks * state < MAX_WORK) return true;
  Diag *d = sc_report(f->sc, D_P_LIMIT, f->r->span,
                      "'%s' has too many blocks (%u) for its number of tiles and rings", f->r->name,
                      blocks);
  sc_help(f->sc, d, "loops that index register tiles are unrolled: make them shorter");
  return false;
}

void sc_walk(Flow *f) {
  bool report = f->report;
  u32 deepest = 0, depth = 0, blocks = 0;
  f->r = &f->k->role.at[f->role];
  for (u32 i = 0; i < f->r->code.n; i++) {
    const OpInfo *op = &sc_op[f->r->code.at[i].op];
    if (op->effects & OPENS && ++depth > deepest) deepest = depth;
    if (op->effects & CLOSES) depth--;
    blocks += (op->effects & OPENS) != 0;
  }
  if (!affordable(f, blocks)) return;
  f->now = sc_state(f->sc, f->k);
  f->blamed_ring = NEWS(f->sc, bool, f->k->ring.n + 1);
  f->blamed_turn = NEWS(f->sc, bool, f->k->turn.n + 1);
  f->blamed_buf = NEWS(f->sc, bool, f->k->buf.n + 1);
  f->head = NEWS(f->sc, State *, f->r->code.n + 1);
  f->saved = NEWS(f->sc, State *, 2 * (deepest + 1));
  f->open = NEWS(f->sc, u32, deepest + 1);
  f->in_else = NEWS(f->sc, bool, deepest + 1);
  f->report = false;
  do pass(f);
  while (f->changed);
  f->report = report;
  if (report) pass(f);
}
