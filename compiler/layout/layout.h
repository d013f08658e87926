// layout.h - where the elements of tiles are: which thread holds an element of a register tile, and
// in which of its registers; how the rows of a stage lie in shared memory; and which thread works
// on which element of a statement. Passes and the interpreter ask here; only the emitter also
// writes the accumulator's formulas out, as CUDA (tile.c, elems.c).
#ifndef SC_LAYOUT_H
#define SC_LAYOUT_H

#include "compiler/ir/ir.h"

typedef enum Move {
#define MOVE(id, text) MOVE_##id,
#include "compiler/layout/move.def"
#undef MOVE
} Move;

enum { SC_FRAGMENT_COLS = 8 };  // the columns of a register tile are a multiple of this

// What a bit of an element's row or column number selects.
typedef enum Selects { SEL_REG, SEL_LANE, SEL_WARP } Selects;

// Bit `bit` of the number of a thread's element, of its lane in the warp, or of its warp.
typedef struct LayoutBit {
  u8 selects, bit;
} LayoutBit;

// How one block of a register tile is spread over the threads of a role instance: what each of the
// low bits of the row and of the column selects. A bit of the lane or warp that no bit of the row
// or column selects is broadcast: threads that differ only in it hold the same elements. The higher
// bits of the column continue the number of the thread's element; the higher bits of the row are
// the number of the block.
typedef struct Layout {
  u8 row_bits, col_bits;
  LayoutBit row[6], col[3];
} Layout;

// One element of one thread. Threads that hold the same element differ in broadcast bits.
typedef struct Holder {
  u32 lane, warp;  // with 0 in the broadcast bits
  u32 block, elem;
} Holder;

const Layout *sc_layout(LayoutId id, u32 warps);  // of an instance of 1 or 4 warps
Holder sc_holder(const Layout *layout, i64 row, i64 col);
u32 sc_block_rows(u32 warps);  // rows of a block: 16 a warp
u32 sc_blocks(const Kernel *k,
              const Buf *tile);  // blocks of a register tile; 1 of a vector along columns
u32 sc_block_elems(const Kernel *k, const Buf *tile);  // elements of a block that a thread holds
u32 sc_tile_regs(const Kernel *k, const Buf *tile);    // registers of a thread that a tile takes

// Stages: a tile is stored in panels as wide as its swizzle, [panel][row][swizzle bytes].
i64 sc_stage_rows(const Buf *part);   // of all dimensions but the last
u32 sc_panel_bytes(const Buf *part);  // of a row in one panel

// Operands of products: is it stored MN-major, the contracted index not its last?
bool sc_mn_major(const Kernel *k, u32 view);

// Statements (layout.c).
i8 sc_row_of(const Kernel *k,
             const View *v);  // the variable that runs over a register tile's rows, -1: none
i8 sc_col_of(const Kernel *k, const View *v);
bool sc_runs_over(const View *v, i8 var);  // does the variable move it? not if it is -1
i64 sc_extent(const Kernel *k, const Map *m,
              i8 var);  // of a variable that is a constant; 0 of none (-1)
// Do two statements of an instance that touch the elements of a buf through these views, at equal
// places, do so by the same threads?
bool sc_same_threads(const Kernel *k, const Map *m, const View *v, const Map *n, const View *w);
// Is each element that a statement writes to memory one thread's, which alone writes it, and alone
// reads it if the statement does?
bool sc_one_thread_writes(const Kernel *k, const Map *m);
void sc_invert_rows(Sc *sc, Kernel *k);   // inverse.c: quotients by a value of a row
void sc_choose_moves(Sc *sc, Kernel *k);  // move.c: of each statement and its reads

#endif
