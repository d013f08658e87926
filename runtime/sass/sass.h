// sass.h - the machine code of a kernel, held beside its schedule: what stands in each loop of each
// role, what runs beside products, and where the order is not the schedule's. NVIDIA's disassembler
// makes the text that is read; SASS itself is not documented beyond the names of instructions.
#ifndef SC_SASS_H
#define SC_SASS_H

#include "base/json.h"
#include "compiler/ir/ir.h"

// disassemble.c: NVIDIA's nvdisasm, run as a program of its own.
// Its path: SCHEDC_NVDISASM, or the first in PATH, bin of CUDA_HOME and CUDA_PATH, and
// /usr/local/cuda/bin. NULL, or what is missing and how to get it.
const char *sc_disassembler(Sc *sc, const char **path);
// The text of machine code, with the source's line before each instruction whose line is another.
// NULL, or what went wrong.
const char *sc_disassemble(Sc *sc, const char *path, const void *code, size_t n, const char **text);

// read.c: the text as instructions.
typedef enum SassKind {
#define SASS_KIND(id, name, part) SASS_##id,
#include "runtime/sass/sass.def"
#undef SASS_KIND
  SASS_KINDS
} SassKind;
// What a kind of instruction is in the report: passed over, counted between others, or a row.
typedef enum SassPart { PART_REST, PART_COUNT, PART_ROW } SassPart;
typedef struct SassKindInfo {
  const char *name;  // in JSON
  u8 part;
} SassKindInfo;
extern const SassKindInfo sc_sass_kind[SASS_KINDS];

typedef struct Sass {  // an instruction
  const char *op;      // "HGMMA.64x176x16.F32"
  u8 kind;
  bool ends_group;  // a product: the last of its commit group
  u32 line;         // of the schedule, where it was written; 0: of none
  u32 number;       // of a wait group: groups that may stay
  bool always;      // a branch or an exit: under no condition
  u32 target;       // of a branch, as code lies: the instruction it goes to; else SC_NONE
  u32 loop;         // the innermost of SassFunction.loop; SC_NONE: it is in none
} Sass;
typedef VEC(u32) Lines;       // in order, each once
typedef struct SassNatural {  // a loop of the code, which may be one of the schedule
  u32 outer;                  // the one around it; SC_NONE
  Lines lines;                // of its ways back
} SassNatural;
typedef struct SassFunction {
  const char *name;
  VEC(Sass) code;  // up to its last exit: waits that are tried again stand behind that
  VEC(SassNatural) loop;
} SassFunction;
typedef struct SassText {
  VEC(SassFunction) function;
} SassText;
// source: the schedule's file; lines of others are nobody's.
void sc_read_sass(Sc *sc, const char *text, const char *source, SassText *out);

// blocks.c: the code in the order in which it runs, and its loops.
void sc_order_sass(Sc *sc, SassFunction *function);

// follow.c: which operation of the schedule each instruction is of, loop by loop.
//
// Operations of a role that stand at an instruction's line and do what it does: the first and the
// last of them, as numbers into the role's code. They are more than one where a line or a `def` has
// several alike, which nothing tells apart.
typedef struct SassOps {
  u32 lo, hi;  // SC_NONE: the schedule has none there
} SassOps;
typedef struct SassTally {
  u32 n[SASS_KINDS];
} SassTally;
// An instruction or several that do one operation; or (kind SASS_OTHER) what is counted between.
typedef struct SassRow {
  u8 kind;
  u32 line;
  SassOps ops;
  const char *op;
  u32 count, number;
  bool fenced;      // a product: WARPGROUP.ARRIVE stands before it
  SassTally among;  // counted between its instructions; or all there is to the row
  Lines lines;      // of the exponentials and conversions in `among`
  Lines beside;     // lines of the products that are in flight here, oldest first
  u32 loop;         // SASS_LOOP: which of the report's
} SassRow;
// Where the order is another than the schedule's. Of what is counted: so many exponentials and
// conversions stand on the other side of the row.
typedef enum SassMove {
  MOVED_BEFORE,  // they stand before it, and after it in the schedule
  MOVED_BEHIND,  // they stand after it, and before it in the schedule
  MOVED_ROWS,    // the row stands behind rows of `lines`, and before them in the schedule
  MOVED_EXTRA,   // the schedule has no such operation there
  MOVED_ABSENT   // an operation of the schedule, at `line`, has no instruction
} SassMove;
typedef struct SassMoved {
  u8 move;
  u32 row, line;
  u32 exponentials, conversions;
  Lines lines;  // theirs, or of the rows
} SassMoved;
// An instruction of a loop that is not one of an inner loop's.
typedef struct SassOwn {
  u8 kind;
  u32 line, row;
  SassOps ops;
} SassOwn;
typedef struct SassLoop {
  u32 role, head;  // head: its operation, OP_FOR, or OP_TILE for all of the role that is in no loop
  u32 natural;     // of the function's loops; SC_NONE: the tile
  SassTally all, beside;  // what it counts, and how much of that while products are in flight
  VEC(SassRow) row;
  VEC(SassOwn) own;
  VEC(SassMoved) moved;
} SassLoop;
typedef struct SassReport {
  const Kernel *k;
  const SassFunction *function;
  u8 *role;  // by instruction: the role + 1, 0: of none
  VEC(SassLoop) loop;
} SassReport;
void sc_follow_sass(Sc *sc, const Kernel *k, const SassFunction *function, SassReport *out);
// order.c: SassLoop.moved.
void sc_compare_order(Sc *sc, const SassReport *report, SassLoop *loop);

// lines.c
u32 sc_sass_line(const Kernel *k, const Ins *ins);
void sc_add_line(Sc *sc, Lines *lines, u32 line);
// The operations [lo, hi) of a role at a line that an instruction of this kind may be of.
SassOps sc_sass_ops(const Kernel *k, u32 role, u32 lo, u32 hi, u32 line, SassKind kind);
// What the schedule has at a row, or at a line: its statement, in one line.
const char *sc_sass_statement(Sc *sc, const Kernel *k, u32 role, SassOps ops, u32 line);

// print.c, json.c
typedef struct SassFigures {  // of the whole kernel, by ptxas
  const char *disassembler;
  u32 threads, registers, spill_stores, spill_loads;
} SassFigures;
void sc_print_sass(Str *out, const SassReport *report, const SassFigures *figures);
void sc_json_sass(Json *json, Sc *sc, const SassReport *report, const SassFigures *figures);

#endif
