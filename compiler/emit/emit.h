// emit.h - inside the emitter: IR -> CUDA C for sm_90a. The map in compiler/README.md says what
// each of its files is for.
#ifndef SC_EMIT_H
#define SC_EMIT_H

#include "compiler/facts/facts.h"
#include "compiler/layout/layout.h"
#include "compiler/passes.h"

// A wgmma instruction in use; its name says all.
typedef struct Wgmma {
  bool regs;        // A from registers
  bool a_mn, b_mn;  // operand stored MN-major
  u8 a_elem, b_elem;
  u32 n;
} Wgmma;

enum { CU_MAX_TEXT = 64 << 20 };

// The instructions that the functions of a file use, each once.
typedef struct WgmmaSet {
  VEC(Wgmma) w;
} WgmmaSet;

typedef enum StmtKind {
  ST_CODE,      // a line of code
  ST_VARIABLE,  // a line that declares variables
  ST_REMARK,    // a comment, a directive, or an empty line
  ST_BLOCK
} StmtKind;

typedef struct Stmt Stmt;
struct Stmt {
  u8 kind;
  const char *text;    // of a block: what stands before its '{', or ""
  const char *tail;    // of a block: what stands behind its '}', or NULL
  const char *note;    // a comment at the line's end, or NULL
  Stmt *next;          // in the block `around`
  Stmt *around;        // NULL: of a block that is not placed yet, of all code
  Stmt *first, *last;  // of a block: its statements
  Stmt *otherwise;     // of an `if`: the block of its `else`, or NULL
};

// Where a value can be seen: operations [from, to) of its role; and the first and the last that
// touch it.
typedef struct Scope {
  u32 from, to, first, last;
} Scope;
typedef struct Named {
  Scope scope;
  u32 older;  // the number (from 1) of the one before that has the same name
} Named;

// All values of one name: the number of the newest, and where the last of them ends. Of a stem:
// the scope for which a name was formed of it last, and what would be tried next.
typedef struct NameUse {
  u32 newest, end;
  Scope scope;
  u32 next;
} NameUse;

// A tile that an operation touches, into which a product has ended, and which has not been fenced
// since.
typedef struct Unfenced {
  u32 pc, buf;
} Unfenced;

// A uniform value that has a name, the first `let` that needs it, or SC_NONE, and the number of the
// one before it (from 1) that is declared where it is.
typedef struct Kept {
  Xid value;
  u32 let, before;
} Kept;

// What writing an expression takes (share.c).
typedef struct Use {
  u32 times;         // how often it is an operand
  u32 size;          // operations and leaves of its text
  bool traps;        // it may divide by zero
  u32 loop;          // uniform: the innermost loop that it depends on, or SC_NONE
  u32 let;           // uniform: the first `let` that needs it, or SC_NONE
  u32 element;       // the element (At.element) for which it has been given a name
  const char *name;  // that name
} Use;

// A name for what a partial vector's parts add up to, and the operation up to which it does.
typedef struct QuadSum {
  const char *name;
  u32 to;
} QuadSum;

typedef struct Cuda {
  Sc *sc;
  const Kernel *k;
  Stmt *block;  // being written
  // names that are declared only where they are used, which stand in texts as "$name": how often
  // each is used so far
  VEC(u32) counted;
  Keys in_kernel, in_role;  // the number of each such name: the kernel's names, the role's
  bool of_role;             // a name that is added is the role's
  u32 r;                    // the role being written
  bool single;              // one thread runs that role, as it only copies and hands over
  const char **name;        // of each buf, a C identifier
  const char **xname;       // of each expression that has one in the scope being written, else NULL
  const char **loop;        // of each loop
  const char **ring;        // of each ring
  bool *by_thread;          // tensors that threads read or write: they need a pointer
  const char *function;     // its name
  WgmmaSet *wgmma;          // of the file
  VEC(TmaMap) tma;
  bool *wide;     // tensors that threads access by 16 bytes
  u8 *read_move;  // of each view that the statement being written reads
  CudaOptions options;
  VEC(WaitSite) site;
  Span at;                // of the statement being written
  u32 line;               // of the last #line
  VEC(Named) named;       // names given in the role being written
  VEC(NameUse) name_use;  // from 1
  Keys use_of;            // the number of a name's entry there
  Scope *scope;           // of each register tile of that role
  // by operation: the number (from 1) of the first tile that is declared before it; and by tile, of
  // the next
  u32 *declares, *declares_next;
  Below below;  // for walks over expressions
  // by expression: what stands for it in the element-wise statement being written
  struct Hoist *hoist;
  u32 statement;  // the number of that one
  // what holds wherever something is evaluated, and where the statement stands
  Facts *always, *here;
  // by expression, of what was asked: 1: it is not negative, wherever …; -1: it may be
  i8 *sign;
  const bool *compared;    // by expression: a truth that is the same for all roles is made of it
  VEC(Unfenced) unfenced;  // in the order of their operations
  u32 fenced;              // how many of them are of operations that have been written
  QuadSum *sum;            // of each that is partial
  Use *use;                // by expression
  VEC(Xid) order;          // expressions in the order in which they are computed
  VEC(Kept) kept;          // uniform values with a name in the role being written
  u32 kept_of_tile;        // the last of them that are declared in the tile
  u32 *kept_of;            // by loop: the last of them that are declared in it
  u32 *opened;             // by loop: the operation that opens it
  u32 elements;            // so many have been written
  bool ordered;            // what the plan puts before the operation is written
  // what is written may be computed where the schedule does not compute it, so that it must not
  // divide by 0
  bool unasked;
  u32 pc;             // the operation being written
  u32 loops;          // of the schedule, around it
  u32 votes;          // for names of votes' outcomes
  u32 rounds;         // for names of the rounds of loops that are split
  const char *first;  // in such a round: the name of what tells of which kind it is
  size_t written;     // bytes of all texts, CU_MAX_TEXT at most
} Cuda;

// An expression as C text, with its precedence (higher binds tighter); or the integer `value`.
typedef struct Txt {
  const char *s;
  u8 prec;
  bool known;
  i64 value;
} Txt;
enum {
  P_NAME = 16,
  P_ATOM = 15,
  P_UNARY = 13,
  P_MUL = 12,
  P_ADD = 11,
  P_SHIFT = 10,
  P_LT = 9,
  P_EQ = 8,
  P_AND = 4,
  P_OR = 3,
  P_COND = 2
};

// A part of a map's expression that is computed before its loop over elements.
typedef enum HoistKind {
  HOIST_ONE,      // one value: name
  HOIST_ROW,      // one a row: name[r]
  HOIST_BELOW,    // a comparison: the thread's column < name or name[r]
  HOIST_ABOVE,    // a comparison: the thread's column > name or name[r]
  HOIST_VECTOR2,  // two columns' values: name.x, name.y
  HOIST_VECTOR4,  // those of four elements: name[e & 3]
} HoistKind;
typedef struct Hoist {
  const char *name;  // NULL: nothing stands for it
  u8 kind;
  bool by_row;
  // it has been looked at as part of what is computed once a row (bit 0), once an element (bit 1)
  u8 prepared;
  u32 statement;  // the statement of which all this is true
} Hoist;

// Where an element of a map is being computed.
typedef struct At {
  const Map *map;
  int row, col;  // the map's row and column variables, -1 if there are none
  // the index of the accumulator element in its block: "e", "e + 1"; NULL: none
  const char *e;
  int odd;    // its lowest bit if known, else -1
  Txt r;      // the index into row vectors: "r", "sc_row(e)"; s NULL: none
  Txt block;  // the block of 64 rows: "b", "0"
  // the variable "row" has the position of the row whose base is `row_base`
  bool row_named;
  Xid row_base;
  bool parts;   // partial tiles are read part by part
  u32 element;  // its number, if some of its values have names (share.c)
} At;

// What the loop over elements reads at its head, for four of them: two elements of a vector in a
// stage, along the columns (VECTOR2); two of each of the thread's rows of a stage (PAIRS); the four
// of a blocked workspace (VECTOR4), whose address is `at`; or of `rows` of a tensor (PAIRS,
// WIDE, WIDE_TRIED), whose elements the array `at` has for several times.
typedef struct Ahead {
  const char *name, *at, *rows;
  u32 view;
  u8 move;
} Ahead;

// Columns that a loop over elements goes over, and what it computes for them.
typedef struct Columns {
  i64 from, to;
  Xid value;
} Columns;

typedef struct MapGen {
  Cuda *c;
  const Map *m;
  At at;
  Columns assigned;
  i64 rows, cols;  // extents of the row and column variable, 0: none
  bool packed;     // the loop takes two elements at a time
  VEC(Ahead) ahead;
} MapGen;

// name.c (and sc_cuda_name, … in passes.h)
bool cu_is_formed(const char *name);                 // like a name that the emitter makes
void cu_put_line(Str *out, const Kernel *k);         // `#line`, of the kernel
const char *cu_next_name(const char *p, size_t *n);  // the next word of code; NULL at its end

// scope.c
// of the block that `pc` is in: the operation that closes or splits it
u32 sc_block_end(const Code *code, u32 pc);
void cu_forget_names(Cuda *c);                // of values
void cu_name_role(Cuda *c);                   // names and scopes of what the role has
void cu_name_value(Cuda *c, Xid x, Sym sym);  // of a uniform value, in all of the role
// a name for a value of the statement being written
const char *cu_temp(Cuda *c, const char *stem);
// a name for a value of the statements that follow, up to *to, as long as `buf` is the same
const char *cu_lasting(Cuda *c, const char *stem, u32 buf, u32 *to);
// register tiles that begin with the operation being written
void cu_declare(Cuda *c);
// at the head of the block: the tile's place, as far as it is used
void cu_declare_place(Cuda *c);
// behind statement `after`: what the role uses of what a thread knows of itself
void cu_declare_thread(Cuda *c, Stmt *after);

// share.c: uniform values that the role needs more than once, and others that have names; declared
// where they are used, at the head of the block
void cu_share(Cuda *c);
void cu_share_extents(Cuda *c);  // the same for the function that computes a tile's place
void cu_declare_of_tile(Cuda *c);
void cu_declare_of_loop(Cuda *c, u32 loop);
// an expression for an element; variables for what it needs more than once go before it
Txt cu_value(Cuda *c, const At *at, Xid x);

// expr.c
const bool *cu_find_compared(Sc *sc, const Kernel *k);
const char *cu_axis(Cuda *c, u32 axis);                 // the tile's place along an axis
const char *cu_axis_name(Cuda *c, u32 axis);            // the variable that holds it
const char *cu_stride_name(Cuda *c, u32 buf, u32 dim);  // likewise
Txt cu_clusters(Cuda *c, const Axis *x);                // the extent of an axis in clusters
const char *cu_text(Cuda *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *cu_paren(Cuda *c, Txt t, int prec);  // in parentheses if it binds less tightly
Txt cu_expr(Cuda *c, const At *at, Xid x);       // at NULL: uniform
Txt cu_int(Cuda *c, i64 n);
bool cu_is(Txt t, i64 n);                    // is it the number n?
Txt cu_sum(Cuda *c, Txt a, Txt b);           // a + b; one of them where the other is 0
Txt cu_uniform(Cuda *c, Xid x);              // uniform; 0 where there is none
const char *cu_less(Cuda *c, Xid x, i64 n);  // x - n
const char *cu_ctype(const Cuda *c, Xid x);  // int, float or bool
bool cu_any_int(const Cuda *c, Xid x);       // may the value have no room in 32 bits?
bool cu_may_divide_by_0(Cuda *c, const Expr *e);
Facts *cu_here(Cuda *c);  // what holds where the operation being written is
Txt cu_binary(Cuda *c, ExprOp op, bool integer, Txt a, Txt b);

// tile.c
// rows of a block, in the role being written
u32 cu_block_rows(const Cuda *c);
Txt cu_position(Cuda *c, const At *at, const Pos *p);  // a position of a view as an integer
// the same of a view of a tensor, which stays outside of it where the place has no room in 32 bits
Txt cu_coordinate(Cuda *c, const At *at, const Pos *p);
Txt cu_near(Cuda *c, Xid base);         // base, or what is outside of a tensor, too, and has room
Txt cu_from(Cuda *c, Xid base, Txt x);  // base + x; x where there is no base
// a line that stores one element in a stage
void cu_store(Cuda *c, const Buf *b, const char *to, const char *value);
const char *cu_of(Cuda *c, Elem elem, const char *bits);   // an element as float, from its bits
const char *cu_to(Cuda *c, Elem elem, const char *value);  // and back
// The name of a block of a register tile: that of the tile, if it has one block.
const char *cu_block(Cuda *c, u32 buf, const char *block);
// The type of the values that elements of this type hold.
static inline const char *cu_held(u8 elem) { return sc_elem[elem].flt ? "float" : "int"; }
// The type of such elements in a tensor.
static inline const char *cu_kept(u8 elem) {
  if (!sc_is_narrow(elem)) return cu_held(elem);
  return sc_elem[elem].bytes == 2 ? "u16" : "unsigned char";
}
u32 cu_array(const Cuda *c,
             u32 buf);  // elements of the C array for a block of a tile, or for a vector
const char *cu_load(Cuda *c, const At *at, u32 view);  // one element, as a float, int
Txt cu_block_at(Cuda *c, const At *at);                // the first row of the block
Txt cu_row(Cuda *c, const At *at);                     // the row in the instance's tile
Txt cu_col(Cuda *c, const At *at);
const char *cu_col_step(
    Cuda *c, const At *at);  // the same without the lane's part: a constant once unrolled
// shared-memory address of the part in the stage a view means
const char *cu_stage(Cuda *c, const View *v);
// an address; of a vector: row alone
const char *cu_stage_elem(Cuda *c, const View *v, Txt row, Txt col);
// the address of column first + mine; `mine` is the lane's part, and has no bit in common with
// `first`
const char *cu_stage_lane(Cuda *c, const View *v, Txt row, Txt first, Txt mine);
u32 cu_rows_apart(const Buf *part);  // bytes from a row of a stage to the eighth below it
const char *cu_offset(Cuda *c, const At *at, const View *v);  // tensor element offset, 64-bit
// where the thread's first four elements of a tile lie side by side, 512 from one four to the next;
// NULL: they do not. `thread`: the text for the thread's number
const char *cu_vector4(Cuda *c, const At *at, const View *v, const char *thread);

// inside.c
bool cu_multiple(Cuda *c, Xid x, i64 n);
// bounds test, or NULL; rows, cols: of these, too
const char *cu_inside(Cuda *c, const At *at, const View *v, bool rows, bool cols);
// how many columns the tensor has from the view's first on
const char *cu_columns_left(Cuda *c, const View *v);
// is this a tile of the grid? NULL if writes there cannot matter
const char *cu_in_grid(Cuda *c, const View *v);

// mma.c
// a compiler fence on the tile's registers (`sc_tie`): the compiler of C moves no use of them over
// it
void cu_compiler_fence(Cuda *c, u32 buf);
// at the tile's end: operands that loops only read are live until here
void cu_keep_operands(Cuda *c);
// the functions that hold the instructions in use
void cu_put_wgmma(Str *out, const WgmmaSet *set);

// compiler_fence.c
void cu_find_unfenced(Cuda *c);                   // sets Cuda.unfenced, for the role being written
void cu_fence_unfenced(Cuda *c, const Ins *ins);  // fences the tiles that the operation touches

// elems.c
bool cu_on(const MapGen *g, Xid x, int var);  // does it depend on the variable?
At cu_row_at(const MapGen *g, Txt r);         // a row of the thread
// in the loop over elements; `odd` picks one of a packed pair
At cu_elem_at(const MapGen *g, int odd);
// the loop over a thread's elements of a row pair
void cu_open_elems(MapGen *g, Columns columns);
void cu_close_elems(MapGen *g);
i64 cu_read_at_once(const MapGen *g);  // groups of eight columns of a tensor's rows
// what stmatrix and ldmatrix take of block n of a stage
const char *cu_fragment_at(const MapGen *g, const View *v);

// write.c: what the statement assigns
void cu_to_registers(MapGen *g, const View *dst, const Buf *b);
void cu_to_stage(MapGen *g, const View *dst, const Buf *b);
void cu_to_tensor(MapGen *g, const View *dst, const Buf *b, bool add);
// if no register tile takes part
void cu_linear(MapGen *g, const View *dst, const Buf *b, bool add);
void cu_turned(MapGen *g, const View *dst);

// vote.c
void cu_vote(Cuda *c, const Ins *ins);
void cu_open_loop(Cuda *c, const Ins *loop);
void cu_close_loop(Cuda *c, const Ins *loop);

// map.c, for vote.c: begins a statement; computes what an expression needs before the loop over
// elements (`elems`: for each of them); how many blocks of rows its tiles have.
MapGen cu_map_gen(Cuda *c, const Map *m, bool parts);
void cu_prepare(MapGen *g, Xid x, bool elems);
i64 cu_blocks_of(const MapGen *g);

// map.c, mma.c, copy.c, ring.c: one function an operation
void cu_map(Cuda *c, const Ins *ins);
void cu_mma(Cuda *c, const Ins *ins);
void cu_mma_wait(Cuda *c, const Ins *ins);
void cu_mma_early(Cuda *c, const Ins *branch);
void cu_mma_warp(Cuda *c, const Ins *ins);
void cu_acquire(Cuda *c, const Ins *ins);
const char *cu_map_name(Cuda *c, u32 map);
void cu_copy_in(Cuda *c, const Ins *ins);
void cu_commit(Cuda *c, const Ins *ins);
void cu_wait(Cuda *c, const Ins *ins);
void cu_release(Cuda *c, const Ins *ins);
void cu_copy_out(Cuda *c, const Ins *ins);
void cu_copy_wait(Cuda *c, const Ins *ins);
void cu_take(Cuda *c, const Ins *ins);
void cu_pass(Cuda *c, const Ins *ins);
void cu_first_turns(Cuda *c);  // what each turn's first member finds
void cu_cursors(Cuda *c);      // the role's ring cursors, declared
// the full barrier of the stage that is being filled, on which its copies land
const char *cu_landing(Cuda *c, u32 ring);
// moves the cursors past a tile of another instance
void cu_skip_tile(Cuda *c);

// wait.c. why: a comment, or NULL
const char *cu_elected(const Cuda *c);  // stands before a line that one thread runs for the role
// The barrier of the hardware at which the instance's warps vote together.
Txt cu_meeting(Cuda *c);
void cu_sync(Cuda *c, const char *why);                   // a sync of the instance's threads
void cu_order(Cuda *c, const Ins *ins, const char *why);  // the fence and the sync before it
// how many threads arrive at the barrier of a member of a turn over instances
u32 cu_turn_threads(const Kernel *k, const Turn *t);
// Each wait in the form that the options ask for, with what it needs.
// what the names of variables end in by which cursors tell a barrier's phases apart
const char *cu_phase(const Cuda *c);
const char *cu_next_phase(const Cuda *c);  // how cursors step to the next phase
void cu_mbar_wait(Cuda *c, const char *bar, const char *phase, WaitKind kind, u32 ring);
// id: a named barrier's number; why: a comment, or NULL
void cu_bar_sync(Cuda *c, Txt id, u32 threads, WaitKind kind, u32 turn, const char *why);
void cu_bar_arrive(Cuda *c, const char *condition, Txt id, u32 threads, const char *why);
void cu_turn_take(Cuda *c, const char *who, const char *counter, const char *mine, u32 turn);
// what stands in for named barriers, initialised
void cu_init_named(Cuda *c);
// the role's counts of the generations of these, declared
void cu_count_named(Cuda *c);
// leaves the loop over tiles once a wait was given up
void cu_leave_tiles(Cuda *c);
// offset of what stands in for named barriers
u32 cu_named(const Kernel *k);
// dynamic shared memory of the kernel as it is written
u32 cu_smem(const Cuda *c);

// args.c: false: there is no room, which is reported
bool cu_memory_fits(const Cuda *c);
bool cu_put_args(Cuda *c, Str *out);  // the struct, of a function that has been written

// prims.c
void cu_put_prims(Str *out, const char *text);  // the functions that the text calls

// stmt.c: each adds to the block being written
void cu_name(Cuda *c, const char *name);  // counted from now on
bool cu_used(const Cuda *c, const char *name);
// One line of code; one that declares variables.
void cu_line(Cuda *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cu_var(Cuda *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cu_remark(Cuda *c, const char *text);  // a comment or directive; "": an empty line
// a comment at the end of the line before; NULL: none
void cu_note(Cuda *c, const char *why);
// A loop or condition; its `else`, "else" or "else if …", which closes what it is of.
void cu_open(Cuda *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cu_else(Cuda *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cu_open_scope(Cuda *c);  // a block for the names in it
// a loop over [0, n) that is fully unrolled
void cu_open_unrolled(Cuda *c, const char *var, i64 n);
void cu_close(Cuda *c);
// a block that is not placed yet; to be closed, too
Stmt *cu_begin(Cuda *c);
void cu_place(Cuda *c, Stmt *s);
// All of a block's statements go behind one of those of the block being written, or (NULL) before
// all.
void cu_insert(Cuda *c, Stmt *after, const Stmt *lines);

// print.c
void cu_put_block(Str *out, u32 depth, const Stmt *block);
// words up to the width, the rest below
void cu_put_remark(Str *out, u32 indent, const char *text);

// lists.c
void cu_put_lists(Str *out, const Kernel *k);

// grid.c
u32 cu_warps(const Role *r);  // of all instances
u32 cu_slot_readers(const Kernel *k);
void cu_put_place(Cuda *c, Str *out);
void cu_open_tile(Cuda *c);
// of a dynamic grid, if it is drawn or read before the operation being written
void cu_next_tile(Cuda *c);
void cu_close_tile(Cuda *c);

// block.c
void cu_cite(Cuda *c, Span at);  // the schedule's line, where it is another
void cu_cite_role(Cuda *c);
void cu_open_if(Cuda *c, const Ins *ins);
// What stands in the head of a loop: "last - 1", "t >= 0", "t--".
typedef struct LoopHead {
  const char *first, *more, *next;
} LoopHead;
LoopHead cu_loop_head(Cuda *c, const Ins *loop);
void cu_open_for(Cuda *c, const Ins *ins);

#endif
