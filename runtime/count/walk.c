// walk.c - what a role does in a tile, without doing it: its loops and branches are run, which
// depend on dimensions, scalars, the tile and elements of tensors that nothing writes, and
// operations of one kind are told of. Only code with such operations in it is walked; blocks that a
// vote decides on are not.
#include "runtime/run.h"

void sc_walk_role(Sc *sc, TileWalk *w, const Code *code, Op op) {
  w->code = code;
  w->op = op;
  w->inside = NEWS(sc, bool, code->n + 1);
  for (u32 i = 0; i < code->n; i++) {
    const Ins *ins = &code->at[i];
    bool opens = ins->op == OP_FOR || ins->op == OP_IF || ins->op == OP_ELSE;
    for (u32 j = i; opens && j < ins->nest && !w->inside[i]; j++)
      w->inside[i] = code->at[j].op == op;
  }
}

// Instructions [at, end). Nesting is limited (SC_MAX_NEST), and so is the recursion.
static void walk(TileWalk *w, u32 at, u32 end) {
  for (; at < end && w->steps; at++) {
    const Ins *ins = &w->code->at[at];
    w->steps--;
    if (ins->op == w->op) w->met(w->user, ins);
    if (ins->op == OP_FOR) {
      i64 from = w->inside[at] ? env_int(&w->env, ins->arg[1]) : 0;
      i64 to = w->inside[at] ? env_int(&w->env, ins->arg[2]) : 0;
      for (i64 i = from; i < to && w->steps; i++) {
        w->env.loop[ins->arg[0]] = ins->flags & INS_REVERSED ? to - 1 - (i - from) : i;
        env_touch(&w->env);
        walk(w, at + 1, ins->nest);
      }
      at = ins->nest;
    } else if (ins->op == OP_IF) {
      bool has_else = w->code->at[ins->nest].op == OP_ELSE;
      bool matters = w->inside[at] || (has_else && w->inside[ins->nest]);
      u32 last = has_else ? w->code->at[ins->nest].nest : ins->nest;
      if (matters && env_bool(&w->env, ins->arg[0])) walk(w, at + 1, ins->nest);
      else if (matters && has_else) walk(w, ins->nest + 1, last);
      at = last;
    } else if (ins->op == OP_VOTE) {
      at = ins->nest;
    }
  }
}

void sc_walk_tile(TileWalk *w) {
  env_touch(&w->env);
  walk(w, 0, w->code->n);
}
