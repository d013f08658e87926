// vote.c - writes votes, and the loops that votes split. In: a vote, or a loop. Out: the condition
// under which a warp, or all warps of an instance, run the vote's block; of a loop whose rounds are
// of two kinds (Plan.side), a loop for each of them. Called by frame.c; calls map.c, block.c,
// share.c, wait.c and stmt.c.
#include "compiler/emit/emit.h"

// ---- votes

// The vote's condition, for the two rows of a thread in a block.
static const char *for_either_row(MapGen *g) {
  Cuda *c = g->c;
  At r0 = cu_row_at(g, cu_int(c, 0)), r1 = cu_row_at(g, cu_int(c, 1));
  return cu_text(c, "%s || %s", cu_paren(c, cu_value(c, &r0, g->m->root), P_OR),
                 cu_paren(c, cu_value(c, &r1, g->m->root), P_OR));
}

static const char *for_first_row(MapGen *g) {
  At row = cu_row_at(g, cu_int(g->c, 0));
  return cu_value(g->c, &row, g->m->root).s;
}

// Does the condition hold for any row of those who vote?
static const char *any(Cuda *c, const Ins *ins, const char *here) {
  if (!ins->plan.sync || !(ins->flags & INS_TOGETHER)) return cu_text(c, "sc_any(%s)", here);
  return cu_text(c, "sc_any_together(%s, %s, 128)", here, cu_meeting(c).s);
}

// Writes the vote for a tile of several blocks: each warp has rows in all of them.
static void vote_of_blocks(MapGen *g, const Ins *ins, i64 blocks) {
  Cuda *c = g->c;
  const char *name = cu_text(c, "vote%u", ++c->votes);
  cu_var(c, "bool %s = false;", name);
  cu_open_unrolled(c, "b", blocks);
  g->at.block = (Txt){"b", P_NAME};
  cu_prepare(g, g->m->root, false);
  const char *row = for_either_row(g);
  cu_line(c, "%s |= %s;", name, row);
  cu_close(c);
  cu_open(c, "if (%s)", any(c, ins, name));
}

// The plan's fence stands before a vote. Where warps vote together, the vote is the plan's sync: a
// barrier of the hardware has an answer for all that come to it. A wait that gives up comes before
// it.
static void order_vote(Cuda *c, const Ins *ins) {
  Ins before = *ins;
  if (ins->flags & INS_TOGETHER) before.plan.sync &= c->options.debug_waits;
  cu_order(c, &before, "to vote");
}

// Does the condition hold for any row of this warp, or of the instance? The block that follows is
// run by the warps where it does. In a loop that is split, that is the same in a whole round. Where
// all rows have one value the first row tells, without a barrier.
void cu_vote(Cuda *c, const Ins *ins) {
  const Map *m = &c->k->map.at[ins->arg[0]];
  order_vote(c, ins);
  if (ins->plan.side) {
    cu_open(c, ins->plan.side == SIDE_FIRST ? "if (%s)" : "if (!%s)", c->first);
    return;
  }
  bool known = ins->flags & INS_TOGETHER && !ins->plan.sync && c->k->role.at[c->r].warps > 1;
  MapGen g = cu_map_gen(c, m, true);
  i64 blocks = cu_blocks_of(&g);
  if (blocks > 1 && !known) {
    vote_of_blocks(&g, ins, blocks);
    return;
  }
  Stmt *values = cu_begin(c);
  cu_prepare(&g, m->root, false);
  const char *answer = any(c, ins, known ? for_first_row(&g) : for_either_row(&g));
  if (!values->first) {
    cu_close(c);
    cu_open(c, "if (%s)", answer);
    return;
  }
  // The vote needs values of its own: they and it are put in a block, from which its outcome
  // leaves.
  const char *name = cu_text(c, "vote%u", ++c->votes);
  cu_line(c, "%s = %s;", name, answer);
  cu_close(c);
  cu_var(c, "bool %s;", name);
  cu_place(c, values);
  cu_open(c, "if (%s)", name);
}

// ---- loops

// A loop whose rounds are of two kinds is two loops in a row. Its body is written once, as a
// function that both call and that is compiled into each of them.
static void open_rounds(Cuda *c, const Ins *ins) {
  cu_open_scope(c);
  c->first = cu_text(c, "vote%u", ++c->votes);
  cu_open(c, "const auto round%u = [&](const int %s, const bool %s) __attribute__((always_inline))",
          ++c->rounds, c->loop[ins->arg[0]], c->first);
  c->block->tail = ";";
}

// Is the next round of the first kind? The warp asks, though each thread knows it: ptxas then sees
// that a warp's threads leave the loop together, and keeps what counts stages in uniform registers.
static const char *first_kind(Cuda *c, const Ins *loop) {
  const Ins *vote = loop + 1;
  while (vote->op != OP_VOTE || !vote->plan.side) vote++;
  MapGen g = cu_map_gen(c, &c->k->map.at[vote->arg[0]], true);
  const char *asked = any(c, vote, for_first_row(&g));
  return vote->plan.side == SIDE_FIRST ? asked : cu_text(c, "!%s", asked);
}

static void close_rounds(Cuda *c, const Ins *ins) {
  const char *v = c->loop[ins->arg[0]];
  LoopHead h = cu_loop_head(c, ins);
  cu_close(c);
  cu_var(c, "int %s = %s;", v, h.first);
  cu_note(c, "rounds of two kinds: once there is one of the second, all that follow are");
  cu_remark(c, "#pragma unroll 1");
  cu_line(c, "for (; %s && %s; %s) round%u(%s, true);", h.more, first_kind(c, ins), h.next,
          c->rounds, v);
  cu_remark(c, "#pragma unroll 1");
  cu_line(c, "for (; %s; %s) round%u(%s, false);", h.more, h.next, c->rounds, v);
  cu_close(c);
  c->first = NULL;
}

void cu_open_loop(Cuda *c, const Ins *loop) {
  if (loop->plan.side) open_rounds(c, loop);
  else cu_open_for(c, loop);
}

void cu_close_loop(Cuda *c, const Ins *loop) {
  cu_declare_of_loop(c, loop->arg[0]);
  if (loop->plan.side) close_rounds(c, loop);
  else cu_close(c);
}
