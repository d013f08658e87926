// layout.c - which thread holds which element: the layouts as tables, and questions about them. In:
// a kernel after the pass `layout`. Called by all who ask where elements are; calls nothing of its
// folder.
//
// A register tile [64 b, n] of a warpgroup (of a warp: [16 b, n]) is laid out as wgmma lays out its
// accumulator, so that a product can use it as it is: element e of a thread is in row 16 warp +
// lane / 4 + 8 (e / 2 % 2) and column 8 (e / 4) + 2 (lane % 4) + e % 2 (PTX ISA 9.0, wgmma, D
// fragment). A vector is laid out like the rows, or like the columns, of the tiles that it is used
// with. In a statement without a register tile, thread t takes the elements t, t + threads, …,
// counted with the column fastest.
#include "compiler/layout/layout.h"

// ---- the tables

#define LANE(n) \
  { SEL_LANE, n }
#define REG(n) \
  { SEL_REG, n }
#define WARP(n) \
  { SEL_WARP, n }

static const Layout of_a_warp[LAY_COUNT] = {
    [LAY_ACC] = {4, 3, {LANE(2), LANE(3), LANE(4), REG(1)}, {REG(0), LANE(0), LANE(1)}},
    [LAY_ROW] = {4, 0, {LANE(2), LANE(3), LANE(4), REG(0)}, {{0}}},
    [LAY_COL] = {0, 3, {{0}}, {REG(0), LANE(0), LANE(1)}},
};

static const Layout of_a_warpgroup[LAY_COUNT] = {
    [LAY_ACC] = {6,
                 3,
                 {LANE(2), LANE(3), LANE(4), REG(1), WARP(0), WARP(1)},
                 {REG(0), LANE(0), LANE(1)}},
    [LAY_ROW] = {6, 0, {LANE(2), LANE(3), LANE(4), REG(0), WARP(0), WARP(1)}, {{0}}},
    [LAY_COL] = {0, 3, {{0}}, {REG(0), LANE(0), LANE(1)}},
};

const Layout *sc_layout(LayoutId id, u32 warps) {
  return warps == 1 ? &of_a_warp[id] : &of_a_warpgroup[id];
}

static u32 register_bits(const Layout *layout) {
  u32 n = 0;
  for (u32 i = 0; i < layout->row_bits; i++) n += layout->row[i].selects == SEL_REG;
  for (u32 i = 0; i < layout->col_bits; i++) n += layout->col[i].selects == SEL_REG;
  return n;
}

static void select_bits(Holder *h, const LayoutBit *bit, u32 bits, i64 number) {
  u32 *const of[] = {[SEL_REG] = &h->elem, [SEL_LANE] = &h->lane, [SEL_WARP] = &h->warp};
  for (u32 i = 0; i < bits; i++) *of[bit[i].selects] |= (u32)(number >> i & 1) << bit[i].bit;
}

Holder sc_holder(const Layout *layout, i64 row, i64 col) {
  Holder h = {.block = (u32)(row >> layout->row_bits),
              .elem = (u32)(col >> layout->col_bits) << register_bits(layout)};
  select_bits(&h, layout->row, layout->row_bits, row);
  select_bits(&h, layout->col, layout->col_bits, col);
  return h;
}

// ---- operands

bool sc_mn_major(const Kernel *k, u32 view) {
  const View *v = &k->view.at[view];
  const Buf *b = &k->buf.at[v->buf];
  return b->space == SP_STAGE && v->at[b->rank - 1].var != 2;
}

// ---- register tiles

u32 sc_block_rows(u32 warps) { return 1u << sc_layout(LAY_ACC, warps)->row_bits; }

static const Layout *layout_of(const Kernel *k, const Buf *tile) {
  return sc_layout((LayoutId)tile->layout, k->role.at[tile->role].warps);
}

u32 sc_blocks(const Kernel *k, const Buf *tile) {
  const Layout *layout = layout_of(k, tile);
  u32 rows = 1u << layout->row_bits;
  return layout->row_bits ? ((u32)tile->ext[0] + rows - 1) / rows : 1;
}

u32 sc_block_elems(const Kernel *k, const Buf *tile) {
  const Layout *layout = layout_of(k, tile);
  i64 columns = layout->col_bits ? tile->ext[tile->rank - 1] >> layout->col_bits : 1;
  return (u32)columns << register_bits(layout);
}

// A matrix of narrow elements is packed into words. A vector's elements are floats, whatever its
// type.
u32 sc_tile_regs(const Kernel *k, const Buf *tile) {
  if (!tile->rank || tile->alike) return 1;
  u32 bytes = tile->rank == 2 ? sc_elem[tile->elem].bytes : 4;
  return sc_blocks(k, tile) * sc_block_elems(k, tile) * bytes / 4;
}

// ---- stages

i64 sc_stage_rows(const Buf *part) {
  i64 n = 1;
  for (u32 d = 0; d + 1 < part->rank; d++) n *= part->ext[d];
  return n;
}

static u32 row_bytes(const Buf *part) {
  return (u32)part->ext[part->rank - 1] * sc_elem[part->elem].bytes;
}

u32 sc_panel_bytes(const Buf *part) { return part->swizzle ? part->swizzle : row_bytes(part); }

// ---- statements

i8 sc_row_of(const Kernel *k, const View *v) {
  u8 layout = k->buf.at[v->buf].layout;
  return v->rank && (layout == LAY_ACC || layout == LAY_ROW) ? v->at[0].var : -1;
}

i8 sc_col_of(const Kernel *k, const View *v) {
  u8 layout = k->buf.at[v->buf].layout;
  return layout == LAY_ACC ? v->at[1].var : v->rank && layout == LAY_COL ? v->at[0].var : -1;
}

i64 sc_extent(const Kernel *k, const Map *m, i8 var) {
  i64 n = 0;
  if (var >= 0) x_const_int(k, m->var[var].extent, &n);
  return n;
}

bool sc_runs_over(const View *v, i8 var) {
  for (u32 d = 0; d < v->rank; d++)
    if (var >= 0 && v->at[d].var == var) return true;
  return false;
}

// Is each element that a statement touches through this view one thread's alone? Not if the
// statement has more elements than it names there, nor of vectors in registers: several threads
// hold each of their elements, and one writes it.
static bool one_thread_each(const Map *m, const View *v) {
  if (m->held) return sc_runs_over(v, m->row) && sc_runs_over(v, m->col);
  for (i8 var = 0; var < m->outs; var++)
    if (!sc_runs_over(v, var)) return false;
  return m->vars == m->outs;
}

// Which of the statement's directions a variable is.
static i32 direction(const Map *m, i8 var) {
  return var < 0 ? -1 : var == m->row ? 0 : var == m->col ? 1 : 2;
}

// How the statement accesses what the view names: fragments and wide rows change hands within a
// warp on their way between registers and memory, each in its own way. (Wide rows that are read do
// not matter: the kernel does not write their tensor.)
static Move exchange_of(const Kernel *k, const Map *m, const View *v) {
  bool moved = m->move == MOVE_FRAGMENT || m->move == MOVE_WIDE || m->move == MOVE_WIDE_TRIED;
  if (m->dst == SC_NONE || !moved) return MOVE_ELEMS;
  const View *dst = &k->view.at[m->dst];
  return k->buf.at[dst->buf].space == SP_REG || v == dst ? (Move)m->move : MOVE_ELEMS;
}

bool sc_same_threads(const Kernel *k, const Map *m, const View *v, const Map *n, const View *w) {
  if (m->move == MOVE_TURNED || n->move == MOVE_TURNED) return false;
  if (!m->held != !n->held || !one_thread_each(m, v) || !one_thread_each(n, w)) return false;
  if (exchange_of(k, m, v) != exchange_of(k, n, w)) return false;
  for (u32 d = 0; d < v->rank; d++)
    if (direction(m, v->at[d].var) != direction(n, w->at[d].var)) return false;
  return true;
}

bool sc_one_thread_writes(const Kernel *k, const Map *m) {
  const View *dst = &k->view.at[m->dst];
  bool chosen = m->move == MOVE_ROWS || m->move == MOVE_COLUMNS,
       hands_on = m->move == MOVE_TURNED || exchange_of(k, m, dst) != MOVE_ELEMS;
  bool one = !m->held || chosen || one_thread_each(m, dst);
  for (u32 i = 0; i < m->reads && one; i++) {
    const MapRead *read = &k->read.at[m->read0 + i];
    const View *v = &k->view.at[read->view];
    if (v->buf == dst->buf && v->fill == dst->fill) one = !hands_on && read->move != MOVE_VECTOR2;
  }
  return one;
}
