// irtext.h - what the printer and the parser of IR text must agree on beyond ops.def and expr.def:
// operators with their binding, words of members and flags, the punctuation between operands; and
// what the printer's two files share.
#ifndef SC_IRTEXT_H
#define SC_IRTEXT_H

#include "ir.h"

// Binding strength, weakest first. A right operand binds one tighter, comparisons on both sides.
enum { BIND_OR = 1, BIND_AND, BIND_NOT, BIND_CMP, BIND_SUM, BIND_TERM, BIND_SIGN, BIND_ATOM };

typedef struct Infix {
  u8 op, bind;
  const char *text;
} Infix;

// `/` on two integers is IDIV, otherwise DIV. All other operations are written as calls by expr.def's name.
static const Infix infix[] = {
    {X_OR, BIND_OR, "or"},    {X_AND, BIND_AND, "and"}, {X_LT, BIND_CMP, "<"},
    {X_LE, BIND_CMP, "<="},   {X_EQ, BIND_CMP, "=="},   {X_NE, BIND_CMP, "!="},
    {X_ADD, BIND_SUM, "+"},   {X_SUB, BIND_SUM, "-"},   {X_MUL, BIND_TERM, "*"},
    {X_IDIV, BIND_TERM, "/"}, {X_DIV, BIND_TERM, "/"},  {X_MOD, BIND_TERM, "%"},
};

// NULL: written as a call or a leaf.
static inline const Infix *infix_of(u8 op) {
  for (u32 i = 0; i < COUNT(infix); i++)
    if (infix[i].op == op) return &infix[i];
  return NULL;
}

static const struct {
  u8 bit;
  const char *word;
} ins_flag[] = {{INS_REVERSED, "reversed"}, {INS_MULTICAST, "multicast"}, {INS_READ, "read"}};

// Members that are written as `, word` (truths) or `, word number`, and left out when they are 0.
typedef struct Attr {
  const char *word;
  u16 at;
  u8 size;  // bytes of the member; 0: a bool
} Attr;
#define NUM(T, member, word) {word, offsetof(T, member), sizeof((T){0}.member)}
#define FLAG(T, member, word) {word, offsetof(T, member), 0}

static const Attr buf_attr[] = {
    FLAG(Buf, partial, "partial"), FLAG(Buf, zeroed, "zeroed"), FLAG(Buf, blocked, "blocked"), NUM(Buf, offset, "at"),
    NUM(Buf, swizzle, "swizzle"),
};
static const Attr ring_attr[] = {
    FLAG(Ring, copied, "copied"),  FLAG(Ring, stored, "stored"), FLAG(Ring, read, "read"),
    FLAG(Ring, multicast, "multicast"), NUM(Ring, full_count, "full"), NUM(Ring, empty_count, "empty"),
    NUM(Ring, bytes, "bytes"),     NUM(Ring, offset, "at"),      NUM(Ring, stage_bytes, "step"),
    NUM(Ring, barrier, "barrier"),
};
static const Attr turn_attr[] = {FLAG(Turn, active, "active"), NUM(Turn, barrier, "barrier")};
static const Attr role_attr[] = {
    NUM(Role, regs, "regs"), FLAG(Role, one_tile, "one_tile"), NUM(Role, live, "live"),
    NUM(Role, first_warp, "first_warp"),
};
static const Attr plan_attr[] = {
    NUM(Plan, bytes, "bytes"), NUM(Plan, keep, "keep"), NUM(Plan, arrivals, "arrivals"),
    FLAG(Plan, fence, "fence"), FLAG(Plan, global, "global"), FLAG(Plan, meet, "meet"),
};
static const Attr kernel_attr[] = {
    NUM(Kernel, smem, "smem"), NUM(Kernel, threads, "threads"), NUM(Kernel, named, "named"),
};
#undef NUM
#undef FLAG

static const char *const dir_word[] = {"", "in ", "out ", "inout "};
static const char *const grid_word[] = {"", " persistent", " dynamic"};
static const char *const case_word[] = {"dim", "arg", "tensor", "param"};

// What stands before operand i of an operation, i > 0. (Numbers are written `keep n`, and only if not 0.)
static inline const char *operand_mark(Op op, u32 i) {
  if (op == OP_FOR) return i == 1 ? "in" : "..";
  if (op == OP_COPYADD) return "+=";
  return op == OP_COPYIN || op == OP_COPYOUT ? "<-" : ",";
}

// The operation that ends what `op` opens: the next row of ops.def that closes.
static inline Op closer_of(Op op) {
  while (!(sc_op[op].effects & CLOSES)) op++;
  return op;
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

typedef struct Taken {
  const char *name;
  u32 suffix;
} Taken;

typedef struct Names {
  Taken *at;
  u32 cap, n;
} Names;

// One kernel being printed.
typedef struct Printer {
  Sc *sc;
  Str *out;
  const Kernel *k;
  u32 indent;
  const char **dim, **arg, **axis, **loop, **buf, **ring, **turn, **role;  // unique names, by number
  const char *const *var;  // of the map or product that is being printed
  VEC(Xid) local;          // the map's own `let`s, operands first
  Names values, stores;    // names in use: of the kernel's scalars; of rings, tiles, tensors, turns, roles
  Names spec;              // of the scalars that a specification sees
  Names *of_role;          // of the kernel's scalars and the role's loops
  const Names *seen;       // those from which index variables must differ here
  Mark *mark;
  u32 epoch, lets;
  VEC(Step) stack;
} Printer;

// irexpr.c: names, `let`s and expressions. In this order: names, all counts, names of values; then for each
// line `settle` its roots, which prints the `let` lines that it needs, and write it. A new epoch
// (p->epoch++) starts each line; a map counts its own expressions (`local`) in one of their own before.
void sc_ir_names(Printer *p);
void sc_ir_vars(Printer *p, const Var *var, u32 n, const char **name);
void sc_ir_count(Printer *p, Xid root, bool local);
void sc_ir_values(Printer *p);
void sc_ir_settle(Printer *p, Xid root, bool shared);
void sc_ir_let(Printer *p, Xid e);
void sc_ir_line(Printer *p);
void sc_ir_expr(Printer *p, Xid e, u32 bind);
void sc_ir_view(Printer *p, u32 view);

#endif
