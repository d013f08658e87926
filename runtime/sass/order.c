// order.c - is the order of a loop's instructions the schedule's? In: its rows, and what is counted
// between them, with the operations that each may be of. Out: what stands on the other side of a
// row than the schedule has it. Two operations that exclude each other (the arms of an `if`) have
// no order; those of which a line has several alike are compared as if each were any of them.
#include "runtime/sass/sass.h"

typedef struct Order {
  Sc *sc;
  const SassReport *report;
  const Code *code;
  SassLoop *loop;
  bool waits;         // the lines of waits for mbarriers are right
  u32 *first, *last;  // of each row's instructions, in loop->own
} Order;

// Does an `else` lie between two operations, of an `if` that holds both?
static bool excluded(const Code *code, u32 a, u32 b) {
  u32 lo = a < b ? a : b, hi = a < b ? b : a;
  for (u32 i = 0; i < lo; i++) {
    const Ins *ins = &code->at[i];
    if (ins->op != OP_IF || code->at[ins->nest].op != OP_ELSE) continue;
    if (lo < ins->nest && ins->nest < hi && hi < code->at[ins->nest].nest) return true;
  }
  return false;
}

// All that the one may be is behind all that the other may be.
static bool behind(const Order *o, SassOps a, SassOps b) {
  if (a.lo == SC_NONE || b.lo == SC_NONE || a.lo <= b.hi) return false;
  const Code *code = o->code;
  return !excluded(code, a.lo, b.lo) && !excluded(code, a.lo, b.hi) &&
         !excluded(code, a.hi, b.lo) && !excluded(code, a.hi, b.hi);
}

// A wait for an mbarrier often has the line of what stands before it. Where one is seen to be
// wrong, none of the loop is trusted.
static bool trusts_waits(const SassLoop *l) {
  for (u32 i = 0; i < l->row.n; i++)
    if (l->row.at[i].kind == SASS_MBAR_WAIT && l->row.at[i].ops.lo == SC_NONE) return false;
  return true;
}

// The operations of a row, as far as they are known for certain.
static SassOps ops_of(const Order *o, u32 row) {
  const SassRow *at = &o->loop->row.at[row];
  if (at->kind == SASS_MBAR_WAIT && !o->waits) return (SassOps){SC_NONE, SC_NONE};
  return at->ops;
}

static void find_places(Order *o) {
  const SassLoop *l = o->loop;
  o->first = NEWS(o->sc, u32, l->row.n + 1);
  o->last = NEWS(o->sc, u32, l->row.n + 1);
  for (u32 i = 0; i < l->row.n; i++) o->first[i] = SC_NONE;
  for (u32 i = 0; i < l->own.n; i++) {
    u32 row = l->own.at[i].row;
    if (row == SC_NONE) continue;
    if (o->first[row] == SC_NONE) o->first[row] = i;
    o->last[row] = i;
  }
}

static void add(Order *o, SassMoved m) { PUSH(o->sc, &o->loop->moved, m); }

// What is counted on the wrong side of a row.
static void compare_counted(Order *o, u32 row, SassMove move) {
  const SassLoop *l = o->loop;
  SassMoved m = {.move = (u8)move, .row = row, .line = l->row.at[row].line};
  u32 from = move == MOVED_BEFORE ? 0 : o->last[row];
  u32 to = move == MOVED_BEFORE ? o->first[row] : l->own.n;
  for (u32 i = from; i < to; i++) {
    const SassOwn *own = &l->own.at[i];
    if (own->kind != SASS_EXPONENTIAL && own->kind != SASS_CONVERSION) continue;
    bool moved = move == MOVED_BEFORE ? behind(o, own->ops, ops_of(o, row))
                                      : behind(o, ops_of(o, row), own->ops);
    if (!moved) continue;
    if (own->kind == SASS_EXPONENTIAL) m.exponentials++;
    else m.conversions++;
    sc_add_line(o->sc, &m.lines, own->line);
  }
  if (m.lines.n) add(o, m);
}

static void compare_rows(Order *o, u32 row) {
  const SassLoop *l = o->loop;
  SassMoved m = {.move = MOVED_ROWS, .row = row, .line = l->row.at[row].line};
  for (u32 i = 0; i < row; i++) {
    const SassRow *other = &l->row.at[i];
    if (other->line == m.line) continue;  // parts of a statement, or of a line
    if (behind(o, ops_of(o, i), ops_of(o, row))) sc_add_line(o->sc, &m.lines, other->line);
  }
  if (m.lines.n) add(o, m);
}

// The operations directly in the loop, not in one of its own.
static void find_absent(Order *o) {
  const SassLoop *l = o->loop;
  u32 end = o->code->at[l->head].nest;
  for (u32 i = l->head + 1; i < end; i++) {
    const Ins *ins = &o->code->at[i];
    if (ins->op == OP_FOR) i = ins->nest;
    if (ins->op != OP_MMA && ins->op != OP_MMAWAIT) continue;
    u8 kind = ins->op == OP_MMA ? SASS_PRODUCT : SASS_WAIT_GROUP;
    bool found = false;
    for (u32 r = 0; r < l->row.n; r++)
      found |= l->row.at[r].kind == kind && l->row.at[r].ops.lo <= i && i <= l->row.at[r].ops.hi;
    if (found) continue;
    SassMoved m = {.move = MOVED_ABSENT, .row = SC_NONE, .line = sc_sass_line(o->report->k, ins)};
    add(o, m);
  }
}

// Does a row stand before this instruction that the schedule has behind the operation?
static bool is_passed(const Order *o, u32 op, u32 at) {
  for (u32 i = 0; i < o->loop->row.n; i++) {
    u32 other = ops_of(o, i).lo;
    if (other == SC_NONE || o->first[i] >= at || other <= op) continue;
    if (!excluded(o->code, op, other)) return true;
  }
  return false;
}

// What is counted is of the first of its operations that explains where it stands, or of a later.
static void narrow(Order *o) {
  u32 end = o->code->at[o->loop->head].nest;
  for (u32 i = 0; i < o->loop->own.n; i++) {
    SassOwn *own = &o->loop->own.at[i];
    SassOps ops = own->ops;
    if (own->row != SC_NONE) continue;
    while (ops.lo != ops.hi && is_passed(o, ops.lo, i))
      ops =
          sc_sass_ops(o->report->k, o->loop->role, ops.lo + 1, end, own->line, (SassKind)own->kind);
    if (ops.lo != ops.hi || ops.lo == SC_NONE || !is_passed(o, ops.lo, i)) own->ops = ops;
  }
}

void sc_compare_order(Sc *sc, const SassReport *report, SassLoop *loop) {
  Order o = {.sc = sc, .report = report, .loop = loop};
  o.code = &report->k->role.at[loop->role].code;
  o.waits = trusts_waits(loop);
  find_places(&o);
  narrow(&o);
  for (u32 i = 0; i < loop->row.n; i++) {
    const SassRow *row = &loop->row.at[i];
    if (row->kind == SASS_OTHER) continue;
    bool product = row->kind == SASS_PRODUCT || row->kind == SASS_WAIT_GROUP;
    SassMoved extra = {.move = MOVED_EXTRA, .row = i, .line = row->line};
    if (product && row->ops.lo == SC_NONE) add(&o, extra);
    compare_rows(&o, i);
    compare_counted(&o, i, MOVED_BEFORE);
    compare_counted(&o, i, MOVED_BEHIND);
  }
  find_absent(&o);
}
