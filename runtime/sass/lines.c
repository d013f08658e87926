// lines.c - what the schedule has at a line: operations that an instruction of a kind may be of,
// and the statement as it is written.
#include "runtime/sass/sass.h"

#include <string.h>

u32 sc_sass_line(const Kernel *k, const Ins *ins) {
  return sc_line_col(k->text, ins->span.lo).line;
}

void sc_add_line(Sc *sc, Lines *lines, u32 line) {
  u32 i = 0;
  while (i < lines->n && lines->at[i] < line) i++;
  if (i < lines->n && lines->at[i] == line) return;
  PUSH(sc, lines, 0);
  memmove(&lines->at[i + 1], &lines->at[i], (lines->n - 1 - i) * sizeof *lines->at);
  lines->at[i] = line;
}

// May an instruction of this kind be written for the operation?
static bool does(SassKind kind, const Ins *ins) {
  Op op = (Op)ins->op;
  switch (kind) {
    case SASS_PRODUCT:
    case SASS_ARRIVE: return op == OP_MMA;
    case SASS_WAIT_GROUP: return op == OP_MMAWAIT;
    case SASS_WARP_PRODUCT: return op == OP_MMAWARP;
    case SASS_MBAR_WAIT: return op == OP_WAIT || op == OP_ACQUIRE;
    case SASS_MBAR_ARRIVE: return op == OP_RELEASE || op == OP_COMMIT || op == OP_ACQUIRE;
    case SASS_BAR: return op == OP_TAKE || op == OP_PASS || ins->plan.sync;
    case SASS_COPY_IN: return op == OP_COPYIN;
    case SASS_COPY_OUT: return op == OP_COPYOUT || op == OP_COPYADD;
    case SASS_COPY_WAIT: return op == OP_COPYWAIT;
    case SASS_FENCE: return ins->plan.fence;
    case SASS_EXPONENTIAL:
    case SASS_CONVERSION: return op == OP_MAP || op == OP_MAPADD || op == OP_VOTE;
    default: return false;
  }
}

SassOps sc_sass_ops(const Kernel *k, u32 role, u32 lo, u32 hi, u32 line, SassKind kind) {
  const Code *code = &k->role.at[role].code;
  SassOps found = {SC_NONE, SC_NONE};
  for (u32 i = lo; i < hi && line; i++) {
    const Ins *ins = &code->at[i];
    if (!does(kind, ins) || sc_sass_line(k, ins) != line) continue;
    if (found.lo == SC_NONE) found.lo = i;
    found.hi = i;
  }
  return found;
}

const char *sc_sass_statement(Sc *sc, const Kernel *k, u32 role, SassOps ops, u32 line) {
  const Text *t = k->text;
  if (!t || !line || line > t->lines) return "";
  u32 lo = t->line[line - 1], hi = t->len;
  if (ops.lo != SC_NONE && ops.lo == ops.hi) {
    Span at = k->role.at[role].code.at[ops.lo].span;
    lo = at.lo, hi = at.hi;
  }
  while (t->at[lo] == ' ' || t->at[lo] == '\t') lo++;
  u32 end = lo;
  while (end < hi && !strchr("\r\n{", t->at[end]) && strncmp(t->at + end, "//", 2) != 0) end++;
  while (end > lo && t->at[end - 1] == ' ') end--;
  return sc_printf(sc, "%.*s", (int)(end - lo), t->at + lo);
}
