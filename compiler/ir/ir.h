// ir.h - the IR: what a kernel is once its parameters are fixed. Everything is named by 32-bit
// numbers into the kernel's tables; 0 is "none" for expressions, and SC_NONE for the rest. Built by
// `lower`, annotated by `derive` and `place`, immutable afterwards, shared by threads.
#ifndef SC_IR_H
#define SC_IR_H

#include "compiler/ir/expr.h"

typedef enum Op {
#define OP(id, text, args, effects) OP_##id,
#include "compiler/ir/ops.def"
#undef OP
  OP_COUNT
} Op;

typedef enum Space {
  SP_TENSOR,  // global memory: in, out, inout, workspace
  SP_STAGE,   // one part of a ring's stages, in shared memory
  SP_REG,     // a tile or vector in the registers of a role instance
  SP_SPEC     // an intermediate of the specification
} Space;

// How a register tile is spread over the threads of its role instance: layout.c has the bits.
typedef enum LayoutId {
  LAY_NONE,  // no register tile
  LAY_ACC,   // [64 b, n]: the wgmma accumulator fragment (PTX ISA 9.0, wgmma, D fragment); narrow
             // tiles hold the same elements packed into words, which is also the A fragment
  LAY_ROW,   // a vector over the rows of such tiles: 2 b elements a thread, the same in a quad
  LAY_COL,   // a vector over their columns: n / 4 elements a thread
  LAY_COUNT
} LayoutId;

// Storage. Dimensions of stages and register tiles are constants (`ext`); those of tensors and of
// the specification's intermediates are expressions (`dim`) over launch dimensions.
typedef struct Buf {
  Sym name;
  Span span;
  u8 space, elem, rank;
  u8 dir;          // tensors: F_IN, F_OUT or both (ast.h)
  bool partial;    // registers: each element is four parts, one a lane of a quad
  bool workspace;  // tensors of a sequence that only live inside it
  bool zeroed;     // workspaces: set to 0 before the sequence starts
  // workspaces: a GPU keeps them as warpgroups hold tiles: by blocks of 64 rows and 8 columns
  bool blocked;
  // Inputs of integers: what the schedule says of their elements. A launch checks it.
  bool rising;     // no element is less than the one before it
  Xid least, end;  // elements are at least `least` and less than `end`; 0: nothing is said
  Xid dim[SC_MAX_RANK];
  i64 ext[SC_MAX_RANK];
  u32 ring;       // stages: the ring; else SC_NONE
  u32 role;       // registers and parts of private rings: the owner; else SC_NONE
  u8 layout;      // registers (layout): LayoutId
  u8 swizzle;     // stages (layout): 0, 32, 64 or 128 bytes
  bool alike;     // registers (derive): one value in all rows, which ptxas keeps once
  bool permuted;  // stages (layout): 8-bit columns in the order of a register operand's
  u32 offset;     // stages (place): of stage 0, from the ring's offset; of tiles 1024 divides it
} Buf;

// Does a caller give it? Is it one of those that the kernel writes?
static inline bool sc_is_argument(const Buf *b) { return b->space == SP_TENSOR && !b->workspace; }
static inline bool sc_is_output(const Buf *b) { return sc_is_argument(b) && b->dir & SCHEDC_OUT; }

// One position of a view. In kernels `base` is uniform and the element is base + variable; in
// specifications `var` is -1 and `base` may be any integer expression of index variables.
typedef struct Pos {
  Xid base;    // 0: zero
  i8 var;      // variable number of the map or product; -1: none
  bool slice;  // copies: a range from base on, as long as the stage's extent
} Pos;

// A position in storage. Stage views mean the newest stage held, or (fill) the one being filled.
typedef struct View {
  Span span;
  u32 buf;
  u8 rank;
  bool fill;
  bool inside;  // of an element that roles share: it is never read beyond its tensor
  Pos at[SC_MAX_RANK];
} View;

typedef struct Var {
  Sym name;
  Xid extent;  // a constant in kernels
} Var;

// An element-wise statement: for all values of vars [0, outs), if `cond`, dst[...] = root.
// Variables from `outs` on are bound by reductions inside. The right side is read whole before dst
// is written. A vote's condition is a map without dst.
typedef struct Map {
  Span span;
  u32 dst;  // view, or SC_NONE
  Xid root;
  Xid cond;  // 0: always
  // fails.c: where an integer is divided by 0, or read outside of a list; 0: nowhere
  Xid fails;
  u8 outs, vars;
  // dst is partial and root linear in partial values: computed part by part. Part q of sum(j) e
  // adds the columns j with (j / 2) % 4 == q, as the wgmma accumulator has them (PTX ISA 9.0, wgmma
  // D fragment). Else a partial dst gets the value in part 0, and 0 in the others. In a vote: the
  // condition is tried on each part.
  bool parts;
  Var var[SC_MAX_VARS];
  u32 read0, reads;  // what it reads, each view once: Kernel.read [read0, read0 + reads)
  u32 fold0, folds;  // its reductions, each once: Kernel.fold
  // layout
  i8 row,
      col;  // the variables that run over the rows and columns of what its threads hold, -1: none
  u8 held;  // HELD_*; 0: no register tile takes part; the elements are strided over the threads
  bool pairs;  // some register tile holds pairs of 16-bit elements
  u8 move;     // Move (layout.h)
} Map;

// A view that a map reads.
typedef struct MapRead {
  u32 view;
  u8 move;  // layout: Move (layout.h)
} MapRead;

enum {
  HELD = 1,       // a register tile takes part: each thread runs the elements that it holds
  HELD_ROWS = 2,  // one of these tiles says which variable runs over rows
  HELD_COLS = 4   // one of them says which variable runs over columns
};

// dst[m,n] (+)= a[..] @ b[..]: variables 0 = m, 1 = n, 2 = k, in all three views.
typedef struct Product {
  Span span;
  u32 dst, a, b;  // views; dst a register tile, a a register tile or stage, b a stage
  bool acc;       // +=
  i64 m, n, k;
  i64 cols;  // place: columns of one instruction
} Product;

// r : { part … } * stages. Each stage has a full and an empty mbarrier.
typedef struct Ring {
  Sym name;
  Span span;
  u32 stages;
  u32 part0, parts;       // its parts: bufs [part0, part0 + parts)
  u32 owner;              // a private ring's role (one ring an instance); else SC_NONE
  u16 fillers, drainers;  // roles, bit r for role r
  bool multicast;
  u32 full_count;    // derive: arrivals that complete the full barrier, a generation
  u32 empty_count;   // derive: arrivals that complete the empty barrier
  u32 bytes;         // derive: bytes that the copies of one fill bring (expect_tx)
  u32 offset;        // place: byte offset of stage 0 (of instance 0) in shared memory
  u32 stage_bytes;   // place: distance between stages: of the tiles; without tiles, of the vectors
  u32 vector_bytes;  // place: distance between stages of the vectors beside tiles; 0: none are
  u32 barrier;       // place: byte offset of the first full barrier; the empty ones follow
} Ring;

// A token passed round: over instances (members in order), or over the CTAs of a grid axis.
typedef struct Turn {
  Sym name;
  Span span;
  // false: `if` was false, or there is one member; take and pass are not emitted
  bool active;
  u32 axis;    // over CTAs: the grid axis; over instances: SC_NONE
  Xid keys;    // over CTAs: how many independent turns there are (`t[y : e]`), 0 means one
  u8 members;  // over instances: roles, in order
  u8 member[SC_MAX_ROLES];
  u32 barrier;  // place: first named barrier id
} Turn;

typedef struct Loop {
  Sym name;
  u32 role;
  Span span;
} Loop;

// A scalar `let v = e`, kept only so that printed and emitted code and reports can use the name v.
typedef struct Let {
  Sym name;
  u32 role;  // SC_NONE: of the kernel
  Xid value;
  Span span;
} Let;

enum { INS_REVERSED = 1, INS_MULTICAST = 2, INS_READ = 4, INS_TOGETHER = 8 };
enum { SIDE_FIRST = 1, SIDE_LAST = 2 };

// What `derive` worked out for an operation, and `flow` checks. 0: it needs no such thing.
typedef struct Plan {
  u32 bytes;  // acquire: expect_tx of the copies that follow; copies: their own bytes
  u16 keep;   // mma.wait, copy.wait: groups that may stay in flight (wait_group N)
  // acquire, commit, release: arrivals that this instance makes on the barrier (acquire: the full
  // one, with the bytes, where a fill's copies follow at once and are all there is to it)
  u16 arrivals;
  bool fence;   // fence.proxy.async goes before it
  bool global;  // the fence is for global memory, too
  bool sync;    // the instance's threads synchronize (bar.sync) before it
  // `if`: the wait for products with which its block begins goes before it. Where the block is
  // skipped none is in flight, but ptxas does not tell paths apart
  bool early;
  u8 side;  // SIDE_*: a loop has rounds of two kinds; a vote's block is run in those of one
} Plan;

// A view that an operation reads or writes, and through which proxy: threads (generic), or an
// engine (async: tensor cores, copy engine).
typedef struct ViewAccess {
  u32 view;
  bool write, async;
} ViewAccess;

// What one role does to one ring.
enum {
  USE_FILL = 1,      // acquires and commits
  USE_COPY = 2,      // fills it by copies
  USE_STORE = 4,     // fills it by threads
  USE_DRAIN = 8,     // waits and releases
  USE_THREADS = 16,  // its threads read or write a held stage
  USE_ASYNC = 32,    // its products or copies out read a held stage
  USE_PRODUCT = 64,  // its products read a held stage
  USE_INPLACE = 128  // its threads write a held stage
};

// What one role does to a tensor: its copies, and its threads.
enum {
  DOES_COPY_FROM = 1,
  DOES_COPY_TO = 2,
  DOES_READ = 4,
  DOES_WRITE = 8,
  DOES_ADD = 16,
  DOES_COPY_ADD = 32,
  DOES_COPY = DOES_COPY_FROM | DOES_COPY_TO
};

typedef struct Ins {
  u8 op;     // Op
  u8 flags;  // INS_*
  u32 arg[3];
  // block operations: the matching one (for -> endfor, if -> else or endif, else -> endif, end ->
  // what opened it: for an endif, the else if there is one)
  u32 nest;
  u32 around;  // what opened the innermost block around it (of an `if`, with its `else`);
               // SC_NONE: none
  u32 access0, accesses;  // what it reads, then what it writes: Kernel.access [access0, …)
  Plan plan;
  Span span;
} Ins;

typedef VEC(Ins) Code;

// The operation that closes the block which operation `open` opens: of an `if`, past its `else`.
static inline u32 sc_closed_by(const Code *code, u32 open) {
  u32 end = code->at[open].nest;
  return code->at[end].op == OP_ELSE ? code->at[end].nest : end;
}

// How the paths of a role are told apart. PATHS_BY_STATE: paths are united if the same products,
// copies, stages and turns are under way on them. PATHS_BY_CONDITIONS: such paths still stay apart
// if a condition holds on one and not on the other.
enum { PATHS_BY_STATE = 1, PATHS_BY_CONDITIONS = 2 };
typedef struct Role {
  Sym name;
  Span span;
  u32 instances;
  u8 warps;        // of an instance: 4 or 1
  u16 regs;        // registers a thread (setmaxnreg); 0: not said
  bool one_tile;   // of several, instance n takes the CTA's tiles n, n + instances, …
  Code code;       // tile … endtile
  u8 by_paths;     // derive: PATHS_*: its paths disagree, and are told apart
  u16 live;        // place: estimate of the registers that its tiles take at the worst point
  u16 first_warp;  // place: the first warp of instance 0
  u16 barrier;     // place: named barrier of instance 0's warps, the others' follow; 0: none
} Role;

typedef enum GridMode { GRID_PLAIN, GRID_PERSISTENT, GRID_DYNAMIC } GridMode;

typedef struct Axis {
  Sym name;
  Span span;
  Xid extent;
  Xid section;  // `by`: 0 when there is none
  bool reversed;
  u32 cluster;  // CTAs of a cluster along it, 1 when none
} Axis;

// A compile-time value of a parameter.
typedef enum ValueKind { VAL_INT, VAL_REAL, VAL_BOOL, VAL_ELEM } ValueKind;
typedef struct Value {
  u8 kind;
  union {
    i64 i;  // VAL_INT, VAL_BOOL, VAL_ELEM
    double f;
  } num;
} Value;

typedef VEC(Value) Values;

static inline bool sc_same_value(Value a, Value b) {
  return a.kind == b.kind && (a.kind == VAL_REAL ? a.num.f == b.num.f : a.num.i == b.num.i);
}

typedef struct Param {
  Sym name;
  Span span;
  Value value;    // as instantiated
  bool given;     // the caller, a case or a sequence has given the value: it is not the default
  bool problem;   // sc_tell_params: it says what is computed; else it is for tuning
  Values domain;  // as written, ranges value by value; the same value may stand there twice
} Param;

typedef struct Dim {
  Sym name;
  Span span;  // where it first occurs
} Dim;

typedef struct Arg {
  Sym name;
  Span span;
  u8 elem;   // EL_F32 or EL_I32
  Xid init;  // default, 0: none
} Arg;

// A tensor, scalar or dimension that a false guard leaves out of what a launch takes.
typedef struct Absent {
  Sym name;
  const char *why;  // "the tensor 'W' is not there: its guard 'narrow' is false"
} Absent;

typedef struct Require {
  Xid cond;
  Span span;
} Require;

// `M = 64`, `M in { 63, 64 }` or `cu = [0, 64]` of a case: values for a dimension, scalar or
// tensor. (Parameters of a case are applied when a kernel is instantiated.) A case has the same
// lines whatever the params are: what a false guard leaves out stays, as nothing's.
typedef enum CaseKind { CASE_DIM, CASE_ARG, CASE_TENSOR, CASE_PARAM, CASE_ABSENT } CaseKind;
typedef struct CaseBind {
  Sym name;
  Span span;
  u8 kind;
  u32 ref;   // the dimension, argument, tensor (buf) or parameter; CASE_ABSENT: 0
  bool set;  // a choice of values, else a tuple (tensors) or one value
  Values value;
} CaseBind;
typedef struct Case {
  Sym name;
  Span span;
  VEC(CaseBind) bind;
} Case;

// What a case says of one of these; NULL: nothing, or there is no case.
static inline const CaseBind *sc_case_bind(const Case *c, CaseKind kind, u32 ref) {
  for (u32 i = 0; c && i < c->bind.n; i++)
    if (c->bind.at[i].kind == kind && c->bind.at[i].ref == ref) return &c->bind.at[i];
  return NULL;
}

// A step of a sequence. tensor[i], dim[i], arg[i]: which of the sequence's is the kernel's i-th
// (tensor: indexed by the kernel's buf number, SC_NONE for bufs that are no tensors).
typedef struct Launch {
  Span span;
  const Kernel *kernel;
  u32 *tensor, *dim, *arg;
} Launch;

// A kernel, or a sequence of kernels (launches is not empty; no roles, rings, turns, axes).
struct Kernel {
  Sym name;
  Span span;
  const Text *text;
  VEC(Param) param;
  VEC(Dim) dim;
  VEC(Arg) arg;
  VEC(Buf) buf;
  VEC(Expr) expr;  // [0] is none
  u32 *hash;       // expr.c: the table that finds equal expressions
  u32 hash_cap;
  VEC(View) view;
  VEC(Map) map;
  VEC(MapRead) read;       // what maps read
  VEC(ViewAccess) access;  // of operations
  u8 *ring_use;            // USE_* by role * rings + ring
  u8 *tensor_use;          // DOES_* by role * bufs + buf
  u8 *most_held;           // derive: by role * rings + ring: stages held at once, at most
  VEC(Xid) fold;           // what maps reduce
  VEC(Product) product;
  VEC(u32) list;  // lists of register tiles: at the number, the count, then the bufs
  VEC(Ring) ring;
  VEC(Turn) turn;
  VEC(Loop) loop;
  VEC(Let) let;
  VEC(Axis) axis;
  VEC(Role) role;
  VEC(Absent) absent;
  VEC(Require) require;
  Xid work;              // operations that a user would count; 0: not said
  VEC(u32) spec;         // maps, in order
  VEC(Case) kase, lent;  // lent: of sequences that launch a kernel without any
  VEC(Launch) launch;
  // steps that were taken before: they make inputs of the sequence, if the caller has none
  VEC(Launch) given;
  GridMode grid;
  bool follows,
      precedes;  // in a sequence: it is launched behind another kernel, before another one
  // place
  u32 smem;     // dynamic shared memory, bytes
  u32 threads;  // of a CTA
  u32 named;    // named barriers in use, with 0, which is the whole CTA's
  // dynamic grids: byte offset of two slots for tiles drawn (sc_slot_bytes), two full and two empty
  // barriers
  u32 draw;
};

typedef struct OpInfo {
  const char *text, *args;
  u8 effects;
} OpInfo;
enum { OPENS = 1, CLOSES = 2, SPLITS = 4, ASYNC = 8, COLLECTIVE = 16 };
extern const OpInfo sc_op[OP_COUNT];
static inline bool sc_on_map(Op op) { return sc_op[op].args[0] == 'm' || sc_op[op].args[0] == 'c'; }
static inline bool sc_on_product(Op op) { return sc_op[op].args[0] == 'p'; }

static inline bool x_uniform(const Kernel *k, Xid e) {
  return !(k->expr.at[e].deps & (DEP_IDX | DEP_TILE));
}

// Do two views of one buf name the same place?
static inline bool sc_same_place(const View *v, const View *w) {
  for (u32 i = 0; i < v->rank; i++)
    if (v->at[i].base != w->at[i].base || v->at[i].var != w->at[i].var) return false;
  return true;
}

// The most blocks that are open at once.
static inline u32 sc_deepest(const Code *code) {
  u32 depth = 0, most = 0;
  for (u32 i = 0; i < code->n; i++) {
    const u8 effects = sc_op[code->at[i].op].effects;
    if (effects & OPENS && ++depth > most) most = depth;
    if (effects & CLOSES) depth--;
  }
  return most;
}

// The first operation of a role, from `from` on, that does `op` to a ring or turn; SC_NONE: there
// is none.
static inline u32 sc_first_op(const Kernel *k, u32 role, Op op, u32 ref, u32 from) {
  const Code *code = &k->role.at[role].code;
  for (u32 pc = from; pc < code->n; pc++)
    if (code->at[pc].op == op && code->at[pc].arg[0] == ref) return pc;
  return SC_NONE;
}
// What the condition of an `if` or the bounds of a loop depend on; 0: it is another operation.
static inline u8 sc_control_deps(const Kernel *k, const Ins *ins) {
  if (ins->op == OP_IF) return k->expr.at[ins->arg[0]].deps;
  if (ins->op != OP_FOR) return 0;
  return k->expr.at[ins->arg[1]].deps | k->expr.at[ins->arg[2]].deps;
}

// access.c: what maps and operations read and write, once the code stands: filled in by `lower`.
void sc_list_accesses(Sc *sc, Kernel *k);
void sc_find_failures(Sc *sc, Kernel *k);  // fails.c: sets Map.fails
static inline u8 sc_ring_use(const Kernel *k, u32 role, u32 ring) {
  return k->ring_use[role * k->ring.n + ring];
}
static inline u32 sc_most_held(const Kernel *k, u32 role, u32 ring) {
  return k->most_held[role * k->ring.n + ring];
}
static inline u8 sc_tensor_use(const Kernel *k, u32 role, u32 buf) {
  return k->tensor_use[role * k->buf.n + buf];
}
static inline const ViewAccess *sc_view_access(const Kernel *k, const Ins *ins, u32 i) {
  return &k->access.at[ins->access0 + i];
}
// The expressions that a kernel evaluates, with the place that a report should point at: those of
// the grid and of turns' keys, and those of an operation, with the positions in the views that it
// names itself. 0 where there is none.
typedef void ExprVisit(void *user, Xid x, Span at);
ExprVisit x_visit;  // adds each to what a walk (Below) begins from
void sc_grid_exprs(const Kernel *k, ExprVisit *visit, void *user);
void sc_ins_exprs(const Kernel *k, const Ins *ins, ExprVisit *visit, void *user);
// The views of a map: what it reads, and then what it writes.
u32 sc_views_of(const Map *m);
u32 sc_view_of(const Kernel *k, const Map *m, u32 i);

// print.c: the kernel as text, as it is before `place`.
void sc_print_ir(Str *out, const Kernel *k);
// What is declared of a tensor's elements, "in 0 .. n rising"; nothing if nothing is (infix.c).
void sc_print_elements(Str *out, const Kernel *k, const Buf *b);
// The kernel as text without params, specification and cases: equal texts are equal programs.
void sc_print_program(Str *out, const Kernel *k);
// A value as `-p NAME=VALUE` takes it; several.
void sc_put_value(Str *out, const Value *v);
const char *sc_value_text(Sc *sc, const Value *v);
const char *const *sc_value_texts(Sc *sc, const Values *v);

// wellformed.c: structural invariants of the IR (ids in range, types, block nesting, who may appear
// where). After every pass in debug builds and in all tests; a broken one is a defect of schedc:
// returns a description of the first, or NULL.
const char *sc_wellformed(Sc *sc, const Kernel *k);

#include "compiler/ir/roles.h"

#endif
