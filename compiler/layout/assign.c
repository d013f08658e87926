// assign.c - the pass `layout`. In: a kernel after `lower`. Out: for each register tile its layout,
// for each stage its swizzle, and for each statement the variables that run over the rows and
// columns of what its threads hold, and the moves of its elements. Calls layout.c, and move.c for
// moves.
#include "compiler/layout/layout.h"
#include "compiler/passes.h"

static const View *view_at(const Kernel *k, const Map *m, u32 i) {
  return &k->view.at[sc_view_of(k, m, i)];
}

// ---- tiles

// The widest swizzle into which the rows divide.
static u8 swizzle_of(const Buf *part) {
  if (part->rank < 2) return 0;
  u64 row = (u64)part->ext[part->rank - 1] * sc_elem[part->elem].bytes;
  return row % 128 == 0 ? 128 : row % 64 == 0 ? 64 : row % 32 == 0 ? 32 : 0;
}

// A vector whose index is the second index of a matrix in the same statement runs along its
// columns, and so does one that has its index in common with such a vector. True if there is a new
// one.
static bool find_columns(Kernel *k, const Map *m) {
  u32 columns = 0;
  bool found = false;
  for (u32 i = 0; i < sc_views_of(m); i++) {
    const View *v = view_at(k, m, i);
    u8 layout = k->buf.at[v->buf].layout;
    i8 var = layout == LAY_ACC ? v->at[1].var : layout == LAY_COL ? v->at[0].var : -1;
    if (var >= 0) columns |= 1u << var;
  }
  for (u32 i = 0; i < sc_views_of(m); i++) {
    const View *v = view_at(k, m, i);
    Buf *b = &k->buf.at[v->buf];
    if (b->layout != LAY_ROW || !v->rank || v->at[0].var < 0) continue;
    if (!(columns >> v->at[0].var & 1)) continue;
    b->layout = LAY_COL;
    found = true;
  }
  return found;
}

static void lay_out_tiles(Kernel *k) {
  for (u32 i = 0; i < k->buf.n; i++) {
    Buf *b = &k->buf.at[i];
    if (b->space == SP_REG) b->layout = b->rank == 2 ? LAY_ACC : LAY_ROW;
    if (b->space == SP_STAGE) b->swizzle = swizzle_of(b);
  }
  for (bool found = true; found;) {
    found = false;
    for (u32 i = 0; i < k->map.n; i++) found |= find_columns(k, &k->map.at[i]);
  }
}

// An 8-bit tile in registers is the operand of a product as its columns lie there: the stage that
// it meets is stored in that order.
static void permute_stages(Kernel *k) {
  for (u32 i = 0; i < k->product.n; i++) {
    const Product *p = &k->product.at[i];
    const Buf *a = &k->buf.at[k->view.at[p->a].buf];
    if (a->space == SP_REG && sc_elem[a->elem].bytes == 1)
      k->buf.at[k->view.at[p->b].buf].permuted = true;
  }
}

// ---- statements

// The variables that no register tile says anything of run over rows first, then over columns.
static void name_the_others(Map *m) {
  for (i8 var = 0; var < m->vars; var++) {
    if (var == m->row || var == m->col) continue;
    if (m->row < 0) m->row = var;
    else if (m->col < 0) m->col = var;
  }
}

// What the first register tiles say; `target` reports others that say something else.
static void lay_out_statement(const Kernel *k, Map *m) {
  m->row = m->col = -1;
  for (u32 i = 0; i < sc_views_of(m); i++) {
    const View *v = view_at(k, m, i);
    const Buf *b = &k->buf.at[v->buf];
    if (b->space != SP_REG) continue;
    m->held |= HELD;
    if (m->row < 0) m->row = sc_row_of(k, v);
    if (m->col < 0) m->col = sc_col_of(k, v);
    m->pairs |= b->rank == 2 && sc_elem[b->elem].bytes == 2;
  }
  if (m->row >= 0) m->held |= HELD_ROWS;
  if (m->col >= 0) m->held |= HELD_COLS;
  name_the_others(m);
}

bool sc_lay_out(Sc *sc, Kernel *k) {
  lay_out_tiles(k);
  for (u32 i = 0; i < k->map.n; i++) lay_out_statement(k, &k->map.at[i]);
  sc_invert_rows(sc, k);
  permute_stages(k);
  sc_choose_moves(sc, k);
  return true;
}
