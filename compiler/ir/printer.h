// printer.h - the text of the IR: words of members and flags, and what the printer's two files
// share.
#ifndef SC_IRTEXT_H
#define SC_IRTEXT_H

#include "compiler/ir/ir.h"

static const struct {
  u8 bit;
  const char *word;
} ins_flag[] = {{INS_REVERSED, "reversed"},
                {INS_MULTICAST, "multicast"},
                {INS_READ, "read"},
                {INS_TOGETHER, "together"}};

// Members that are written as `, word` (truths) or `, word number`, and left out when they are 0.
typedef struct Attr {
  const char *word;
  u16 at;
  u8 size;  // bytes of the member; 0: a bool
} Attr;
#define NUM(T, member, word) \
  { word, offsetof(T, member), sizeof((T){0}.member) }
#define FLAG(T, member, word) \
  { word, offsetof(T, member), 0 }

static const Attr buf_attr[] = {
    FLAG(Buf, partial, "partial"),
    FLAG(Buf, zeroed, "zeroed"),
    FLAG(Buf, blocked, "blocked"),
    NUM(Buf, swizzle, "swizzle"),
};
static const Attr ring_attr[] = {
    FLAG(Ring, multicast, "multicast"),
    NUM(Ring, full_count, "full"),
    NUM(Ring, empty_count, "empty"),
    NUM(Ring, bytes, "bytes"),
};
static const Attr turn_attr[] = {FLAG(Turn, active, "active")};
static const Attr role_attr[] = {NUM(Role, regs, "regs"), FLAG(Role, one_tile, "one_tile")};
static const Attr plan_attr[] = {
    NUM(Plan, bytes, "bytes"),  NUM(Plan, keep, "keep"),      NUM(Plan, arrivals, "arrivals"),
    FLAG(Plan, fence, "fence"), FLAG(Plan, global, "global"), FLAG(Plan, sync, "sync"),
    FLAG(Plan, early, "early"), NUM(Plan, side, "side"),
};
#undef NUM
#undef FLAG

static const char *const dir_word[] = {"", "in ", "out ", "inout "};
static const char *const grid_word[] = {"", " persistent", " dynamic"};

// What stands before operand i of an operation, i > 0. (Numbers are written `keep n`, and only if
// not 0.)
static inline const char *operand_mark(Op op, u32 i) {
  if (op == OP_FOR) return i == 1 ? "in" : "..";
  if (op == OP_COPYADD) return "+=";
  return op == OP_COPYIN || op == OP_COPYOUT ? "<-" : ",";
}

// What the printer knows of an expression. `size`: nodes written where it stands.
typedef struct Mark {
  u32 uses, stamp;
  const char *let;   // its own name, from k->let
  const char *name;  // what to write: set once its `let` line is printed (or will be: "")
  u16 size;
  u8 depth;
  bool counted, settled;
} Mark;

typedef struct Step {
  Xid e;
  u32 next;
} Step;

// One kernel being printed. A name is unique where it is read: of a dimension, axis or let, a
// tensor, ring, turn or role in the kernel; of a tile in its role; of a loop's variable inside the
// loop; of an index variable in its statement.
typedef struct Printer {
  Sc *sc;
  Str *out;
  const Kernel *k;
  bool program;  // without what the program does not depend on
  u32 indent;
  const char **dim, **arg, **axis, **loop, **buf, **ring, **turn, **role;  // names, by number
  const char *var[SC_MAX_VARS];  // of the map or product that is being printed
  u32 vars;
  VEC(const char *) around;  // the loops that are open
  VEC(Xid) local;            // the map's own `let`s, operands first
  // names in use: scalars; tensors, rings, turns, roles; a role's tiles
  Keys values, stores, tiles;
  Mark *mark;
  u32 epoch, lets;
  VEC(Step) stack;
} Printer;

// print_expr.c: names, `let`s and expressions. In this order: names of storage, all counts,
// sc_ir_lets; then for each line `settle` its roots, which prints the `let` lines that it needs,
// and write it. A new epoch (p->epoch++) starts each line; a map counts its own expressions
// (`local`) in one of their own before.
void sc_ir_names(Printer *p);
const char *sc_ir_value(Printer *p, const char *name);  // declares a dimension, argument, axis
void sc_ir_loop(Printer *p, u32 loop);                  // opens a loop
void sc_ir_vars(Printer *p, const Var *var, u32 n);
void sc_ir_count(Printer *p, Xid root, bool local);
void sc_ir_lets(Printer *p);
void sc_ir_settle(Printer *p, Xid root, bool shared);
void sc_ir_let(Printer *p, Xid e);
void sc_ir_line(Printer *p);
void sc_ir_expr(Printer *p, Xid e, u32 bind);
void sc_ir_prefix(Printer *p, const char *text, Xid a, u32 bind);  // text, and then the expression
void sc_ir_view(Printer *p, u32 view);

#endif
