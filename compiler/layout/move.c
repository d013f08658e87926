// move.c - chooses how the elements of each statement move: those that it writes, and those that it
// reads. A move takes as many bytes at once as are contiguous. In: a map with its layout. Out: its
// move, and the moves of its reads. If no move fits, `target` reports that.
#include "compiler/facts/facts.h"
#include "compiler/layout/layout.h"
#include "lang/ast.h"

typedef struct Mover {
  Kernel *k;
  Facts *facts;  // where the statement stands
  u32 warps;     // of the role whose statement it is
} Mover;

static const View *view_at(const Mover *s, u32 view) { return &s->k->view.at[view]; }
static const Buf *buf_at(const Mover *s, u32 view) { return &s->k->buf.at[view_at(s, view)->buf]; }

static bool multiple(const Mover *s, Xid base, i64 n) {
  return sc_fact_multiple(s->facts, base, n);
}

// Do all elements that the view names along a dimension lie inside?
static bool inside(const Mover *s, const Map *m, const View *v, u32 d) {
  i64 n = v->at[d].var < 0 ? 1 : sc_extent(s->k, m, v->at[d].var);
  return sc_fact_inside(s->facts, v->at[d].base, n, s->k->buf.at[v->buf].dim[d]);
}

// Does the statement read the memory that it writes? Then each element stays with one thread: none
// changes hands on its way, and none is read by threads that do not write it.
static bool in_place(const Mover *s, const Map *m) {
  if (m->dst == SC_NONE || buf_at(s, m->dst)->space == SP_REG) return false;
  for (u32 i = 0; i < m->reads; i++) {
    const View *to = view_at(s, m->dst), *from = view_at(s, s->k->read.at[m->read0 + i].view);
    if (to->buf == from->buf && to->fill == from->fill) return true;
  }
  return false;
}

// Are the statement's rows and columns there 16 by 16 blocks of a 16-bit stage, as stmatrix and
// ldmatrix take them?
static bool by_fragments(const Mover *s, const Map *m, u32 view) {
  const View *v = view_at(s, view);
  const Buf *b = buf_at(s, view);
  i64 rows = sc_extent(s->k, m, m->row), cols = sc_extent(s->k, m, m->col);
  return b->space == SP_STAGE && b->rank == 2 && sc_elem[b->elem].bytes == 2 && b->swizzle &&
         rows && cols % 16 == 0 && v->at[0].var == m->row && v->at[1].var == m->col &&
         multiple(s, v->at[1].base, SC_FRAGMENT_COLS);
}

// Is a stage of 8 bits written as another one lies, rows and columns exchanged: whole blocks of 32
// rows of the one and 16 of the other, as ldmatrix and stmatrix take them?
static bool turned(const Mover *s, const Map *m) {
  const Expr *root = &s->k->expr.at[m->root];
  if (root->op != X_LOAD || m->vars != 2) return false;
  const View *to = view_at(s, m->dst), *from = view_at(s, root->ref);
  const Buf *b = buf_at(s, m->dst), *a = buf_at(s, root->ref);
  bool bytes = sc_elem[b->elem].bytes == 1 && a->elem == b->elem && b->swizzle && a->swizzle;
  bool stages = b->space == SP_STAGE && a->space == SP_STAGE && b->rank == 2 && a->rank == 2;
  if (!stages || !bytes || a->permuted || to->at[0].var < 0 || to->at[1].var < 0) return false;
  return to->at[0].var == from->at[1].var && to->at[1].var == from->at[0].var &&
         sc_extent(s->k, m, (i8)to->at[0].var) % 16 == 0 &&
         sc_extent(s->k, m, (i8)to->at[1].var) % 32 == 0 && multiple(s, to->at[1].base, 16) &&
         multiple(s, from->at[1].base, 16);
}

static Move to_registers(const Mover *s, const Map *m) {
  const Buf *b = buf_at(s, m->dst);
  const Expr *root = &s->k->expr.at[m->root];
  if (b->layout == LAY_ROW) return MOVE_ROWS;
  if (b->layout == LAY_ACC && sc_elem[b->elem].bytes == 1) return MOVE_BYTES;
  bool copy = root->op == X_LOAD && buf_at(s, root->ref)->elem == b->elem;
  return copy && by_fragments(s, m, root->ref) ? MOVE_FRAGMENT : MOVE_ELEMS;
}

static Move to_stage(const Mover *s, const Map *m) {
  const View *v = view_at(s, m->dst);
  if (!sc_runs_over(v, m->col)) return MOVE_ROWS;
  if (m->row < 0) return MOVE_COLUMNS;
  return by_fragments(s, m, m->dst) && !in_place(s, m) ? MOVE_FRAGMENT : MOVE_ELEMS;
}

static bool cond_on_columns(const Mover *s, const Map *m) {
  return m->cond && m->col >= 0 && s->k->expr.at[m->cond].vars >> m->col & 1;
}

// Are rows of register tiles written along rows of the tensor, whatever their columns are, and none
// before the first?
static bool along_rows(const Mover *s, const Map *m) {
  const View *v = view_at(s, m->dst);
  const Pos *last = &v->at[v->rank - 1];
  return sc_extent(s->k, m, m->row) && m->col >= 0 && last->var == m->col &&
         sc_extent(s->k, m, m->col) % SC_FRAGMENT_COLS == 0 && !cond_on_columns(s, m) &&
         !buf_at(s, m->dst)->blocked && (!last->base || sc_fact_nonneg(s->facts, last->base));
}

// 16 bytes at a time: 16-bit elements of whole groups of 32 columns.
static bool by_16_bytes(const Mover *s, const Map *m) {
  return sc_elem[buf_at(s, m->dst)->elem].bytes == 2 && sc_extent(s->k, m, m->col) % 32 == 0;
}

// Is it known that each row's part begins at a multiple of 16 bytes and ends inside the tensor?
static bool lies_wide(const Mover *s, const Map *m, const View *v) {
  const Buf *b = &s->k->buf.at[v->buf];
  i64 known;
  return x_const_int(s->k, b->dim[b->rank - 1], &known) && known % 8 == 0 &&
         inside(s, m, v, v->rank - 1) && multiple(s, v->at[v->rank - 1].base, 8);
}

// A blocked workspace has blocks of 64 rows and 8 columns in the order of a warpgroup's
// accumulator: a thread's four elements, then those of the next.
static bool by_vector4(const Mover *s, const Map *m, u32 view) {
  const View *v = view_at(s, view);
  const Pos *row = &v->at[v->rank - 2], *col = row + 1;
  if (!buf_at(s, view)->blocked || sc_block_rows(s->warps) != 64) return false;
  if (m->row < 0 || m->col < 0 || row->var != m->row || col->var != m->col) return false;
  for (u32 d = 0; d < v->rank; d++)
    if (!inside(s, m, v, d)) return false;
  return multiple(s, row->base, 64) && multiple(s, col->base, SC_FRAGMENT_COLS);
}

static Move to_tensor(const Mover *s, const Map *m, bool add) {
  const View *v = view_at(s, m->dst);
  const Buf *b = buf_at(s, m->dst);
  if (!sc_runs_over(v, m->col)) return MOVE_ROWS;
  bool rows = !add && along_rows(s, m);
  if (rows && by_16_bytes(s, m) && !in_place(s, m))
    return lies_wide(s, m, v) ? MOVE_WIDE : MOVE_WIDE_TRIED;
  if (rows && b->elem != EL_I32) return MOVE_PAIRS;
  if (!m->cond && by_vector4(s, m, m->dst)) return MOVE_VECTOR4;
  bool along = v->at[v->rank - 1].var == m->col && !cond_on_columns(s, m);
  if (add && along && sc_extent(s->k, m, m->row) && b->elem == EL_F32 && !b->blocked)
    return MOVE_ADD_ROWS;
  return m->row < 0 ? MOVE_COLUMNS : MOVE_ELEMS;
}

// Does the view name rows of a stage at whole groups of eight columns, of which a thread holds two
// that lie side by side?
static bool by_pairs(const Mover *s, const Map *m, const View *v) {
  const Buf *b = &s->k->buf.at[v->buf];
  return b->rank == 2 && !b->permuted && b->ext[1] % 2 == 0 && m->row >= 0 &&
         v->at[0].var == m->row && v->at[1].var == m->col &&
         multiple(s, v->at[1].base, SC_FRAGMENT_COLS);
}

// Does the view name places of a vector in a stage that come in aligned pairs of the columns?
static bool by_vector2(const Mover *s, const Map *m, const View *v) {
  const Buf *b = &s->k->buf.at[v->buf];
  bool read_as_pair = b->elem == EL_F32 || b->elem == EL_F16 || b->elem == EL_BF16;
  return b->rank == 1 && read_as_pair && v->at[0].var == m->col && multiple(s, v->at[0].base, 2);
}

// Are rows of a tensor read along their columns, from one in the tensor on? The kernel must not
// write the tensor, as these elements may change hands on their way. (A vector along the columns
// takes half as many loads as it is, as both rows take the same.)
static bool reads_rows(const Mover *s, const Map *m, const View *v) {
  const Buf *b = &s->k->buf.at[v->buf];
  const Pos *last = &v->at[v->rank - 1];
  if (b->dir != F_IN || b->blocked || m->row < 0 || last->var != m->col) return false;
  if (!sc_runs_over(v, m->row)) return false;
  for (u32 d = 0; d + 1 < v->rank; d++)
    if (v->at[d].var >= 0 && v->at[d].var != m->row) return false;
  return !last->base || sc_fact_nonneg(s->facts, last->base);
}

static Move from_tensor(const Mover *s, const Map *m, u32 view) {
  const View *v = view_at(s, view);
  if (by_vector4(s, m, view)) return MOVE_VECTOR4;
  if (!reads_rows(s, m, v)) return MOVE_ELEMS;
  bool wide = sc_elem[buf_at(s, view)->elem].bytes == 2 && sc_extent(s->k, m, m->col) % 32 == 0;
  if (!wide) return MOVE_PAIRS;
  return lies_wide(s, m, v) ? MOVE_WIDE : MOVE_WIDE_TRIED;
}

// Read ahead, for four of a thread's elements: those of a stage or of a tensor, two of each row at
// once; a vector of a stage along the columns, two at once for both rows; or a blocked workspace.
// Rows of 16 bits of a tensor are read by 16 bytes. (An 8-bit register tile takes its columns in
// another order.)
static Move read_move(const Mover *s, const Map *m, u32 view) {
  const Buf *dst = m->dst == SC_NONE ? NULL : buf_at(s, m->dst), *b = buf_at(s, view);
  const View *v = view_at(s, view);
  if (m->col < 0 || sc_extent(s->k, m, m->col) % SC_FRAGMENT_COLS) return MOVE_ELEMS;
  if (dst && dst->space == SP_REG && sc_elem[dst->elem].bytes == 1) return MOVE_ELEMS;
  if (b->space == SP_TENSOR) return m->held ? from_tensor(s, m, view) : MOVE_ELEMS;
  if (b->space == SP_STAGE && m->held && by_pairs(s, m, v)) return MOVE_PAIRS;
  bool vector2 = b->space == SP_STAGE && by_vector2(s, m, v) && !in_place(s, m);
  return vector2 ? MOVE_VECTOR2 : MOVE_ELEMS;
}

static Move write_move(const Mover *s, const Map *m, bool add) {
  u8 space = buf_at(s, m->dst)->space;
  if (!m->held) return turned(s, m) ? MOVE_TURNED : MOVE_STRIDED;
  if (space == SP_REG) return to_registers(s, m);
  return space == SP_STAGE ? to_stage(s, m) : to_tensor(s, m, add);
}

static void choose(const Mover *s, Map *m, bool add) {
  for (u32 i = 0; i < m->reads; i++) {
    MapRead *read = &s->k->read.at[m->read0 + i];
    read->move = (u8)read_move(s, m, read->view);
  }
  if (m->dst != SC_NONE) m->move = (u8)write_move(s, m, add);
}

void sc_choose_moves(Sc *sc, Kernel *k) {
  Facts *facts = sc_facts(sc, k);
  for (u32 r = 0; r < k->role.n; r++) {
    const Code *code = &k->role.at[r].code;
    Mover s = {.k = k, .facts = facts, .warps = k->role.at[r].warps};
    for (u32 i = 0; i < code->n; i++) {
      const Ins *ins = &code->at[i];
      sc_facts_at(facts, code, i);
      if (sc_on_map((Op)ins->op)) choose(&s, &k->map.at[ins->arg[0]], ins->op == OP_MAPADD);
    }
  }
}
