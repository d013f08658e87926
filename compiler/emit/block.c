// block.c - writes the loops and conditions of the schedule, and cites the schedule's lines beside
// the code for them. Called by frame.c, grid.c, ring.c and scope.c; calls expr.c for bounds, and
// stmt.c.
#include "compiler/emit/emit.h"

// Cites the line of the role: the code that follows belongs to the role as a whole.
void cu_cite_role(Cuda *c) {
  const Role *role = &c->k->role.at[c->r];
  if (role->span.hi <= role->span.lo) return;
  c->line = sc_line_col(c->k->text, role->span.lo).line;
  cu_remark(c, cu_text(c, "#line %u  // role %s", c->line, role->name));
}

// Cites a line of the schedule: as `#line` for compiler, profiler and debugger, and as a comment
// for the reader.
void cu_cite(Cuda *c, Span at) {
  const Text *text = c->k->text;
  if (at.hi <= at.lo) return;
  u32 line = sc_line_col(text, at.lo).line;
  if (line == c->line) return;
  c->line = line;
  u32 lo = text->line[line - 1], hi = lo;
  while (hi < text->len && text->at[hi] != '\n' && text->at[hi] != '\r') hi++;
  while (lo < hi && text->at[lo] == ' ') lo++;
  for (u32 i = lo; i + 1 < hi; i++) {
    if (text->at[i] == '/' && text->at[i + 1] == '/') hi = i;
  }
  while (hi > lo && text->at[hi - 1] == ' ') hi--;
  Str cited = {.sc = c->sc};
  str_printf(&cited, "#line %u  // ", line);
  sc_cuda_comment(&cited, text->at + lo, hi - lo);
  cu_remark(c, cited.at);
}

// Does it compute values of rows, with no sync or fence before it?
static bool computes_rows(const Kernel *k, const Ins *ins) {
  if (ins->op != OP_MAP || ins->plan.sync || ins->plan.fence) return false;
  return k->map.at[ins->arg[0]].move == MOVE_ROWS;
}

// Is the loop to be unrolled? If it has few rounds, whose number is constant, and does nothing but
// compute values of rows, such as what several warps found: then the reads of all rounds overlap.
// (The check of the PTX wants a loop where threads meet in each round.)
static bool unrolled(const Cuda *c, const Ins *loop) {
  enum { MOST_ROUNDS = 8 };
  const Code *code = &c->k->role.at[c->r].code;
  i64 from, to, rounds;
  if (!x_const_int(c->k, loop->arg[1], &from) || !x_const_int(c->k, loop->arg[2], &to))
    return false;
  if (__builtin_sub_overflow(to, from, &rounds) || rounds > MOST_ROUNDS) return false;
  for (const Ins *ins = loop + 1; ins < code->at + loop->nest; ins++)
    if (!computes_rows(c->k, ins)) return false;
  return true;
}

LoopHead cu_loop_head(Cuda *c, const Ins *ins) {
  const char *v = c->loop[ins->arg[0]];
  Txt lo = cu_uniform(c, ins->arg[1]), hi = cu_uniform(c, ins->arg[2]);
  if (!(ins->flags & INS_REVERSED))
    return (LoopHead){lo.s, cu_text(c, "%s < %s", v, cu_paren(c, hi, P_SHIFT)),
                      cu_text(c, "%s++", v)};
  const char *last = cu_any_int(c, ins->arg[2]) ? cu_text(c, "max(%s, -0x7fffffff) - 1", hi.s)
                                                : cu_less(c, ins->arg[2], 1);
  return (LoopHead){last, cu_text(c, "%s >= %s", v, cu_paren(c, lo, P_SHIFT)),
                    cu_text(c, "%s--", v)};
}

void cu_open_for(Cuda *c, const Ins *ins) {
  LoopHead h = cu_loop_head(c, ins);
  cu_remark(c, unrolled(c, ins) ? "#pragma unroll" : "#pragma unroll 1");
  cu_open(c, "for (int %s = %s; %s; %s)", c->loop[ins->arg[0]], h.first, h.more, h.next);
}

void cu_open_if(Cuda *c, const Ins *ins) {
  cu_cite(c, ins->span);
  cu_open(c, "if (%s)", cu_uniform(c, ins->arg[0]).s);
}

// The condition before a line that one thread runs for the role.
const char *cu_elected(const Cuda *c) { return c->single ? "" : "if ($thread == 0) "; }
