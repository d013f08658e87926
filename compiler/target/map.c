// map.c - element-wise statements: reports those that no move can carry. These are register tiles
// in two orientations or in parts, reductions across threads, and elements that another thread
// holds.
#include "compiler/target/target.h"

static const View *view_at(const Target *s, u32 view) { return &s->k->view.at[view]; }

static void check_view(Target *s, u32 view) {
  const View *v = view_at(s, view);
  const Buf *b = tgt_buf(s, view);
  if (b->space == SP_STAGE && b->rank > 2) {
    tgt_cannot(s, v->span, "has more than two dimensions, and threads access it", b->name, NULL);
  }
  if (b->layout == LAY_ACC && sc_elem[b->elem].bytes == 1 && v->at[1].base) {
    tgt_cannot(s, v->span, "is an 8-bit register tile, and some of its columns are named", b->name,
               NULL);
  }
}

// Every register tile has the statement's layout: its rows and columns run along the same
// variables.
static bool check_layouts(Target *s, const Map *m) {
  const Kernel *k = s->k;
  bool two_reductions = false, other = m->row >= 0 && m->row == m->col, tiles = other;
  for (u32 i = 0; i < sc_views_of(m); i++) {
    const View *v = view_at(s, sc_view_of(k, m, i));
    i8 row = sc_row_of(k, v), col = sc_col_of(k, v);
    two_reductions |= col >= m->outs && m->col >= m->outs && col != m->col;
    other |= (row >= 0 && row != m->row) || (col >= 0 && col != m->col);
    tiles |= row >= 0 && col >= 0;
  }
  if (two_reductions) {
    tgt_cannot(s, m->span, "two reductions in a statement", NULL,
               "put one of them into a vector first");
  } else if (other && !tiles) {
    tgt_cannot(s, m->span, "vectors in registers along two indices, all of which lie along rows",
               NULL, "read one of them from its tensor instead, or from a ring");
  } else if (other) {
    tgt_cannot(s, m->span, "register tiles that are rows by columns here and columns by rows there",
               NULL, "a transpose goes through a ring");
  }
  return !two_reductions && !other;
}

// A launch leaves room in 32 bits for an index that is added to a place (launchrange.c), and the
// elements of a statement are counted with 32 bits, too.
static void check_extents(Target *s, const Map *m) {
  enum { MAX_EXTENT = 1 << 16, MAX_ELEMENTS = 1 << 30 };
  i64 elements = 1;
  for (i8 var = 0; var < m->vars; var++) {
    i64 n = sc_extent(s->k, m, var);
    if (n <= MAX_EXTENT && (elements *= n) <= MAX_ELEMENTS) continue;
    const char *what = sc_printf(s->sc, "a statement over %lld elements", (long long)elements);
    if (n > MAX_EXTENT)
      what = sc_printf(s->sc, "a statement in which '%s' runs over %lld", m->var[var].name,
                       (long long)n);
    tgt_cannot(s, m->span, what, NULL,
               "let a loop take parts of it: an index runs over 65536 at most, and a statement "
               "over 2^30 elements");
    return;
  }
}

// A thread's elements are of whole blocks of rows and columns, whatever they are for.
static void check_blocks(Target *s, const Map *m) {
  for (i8 var = 0; var < m->outs; var++) {
    i64 n = sc_extent(s->k, m, var);
    i64 whole = var == m->row ? sc_block_rows(s->warps) : SC_FRAGMENT_COLS;
    if (n % whole == 0) continue;
    const char *name = m->var[var].name;
    const char *what = sc_printf(
        s->sc, "a statement with values in registers, and '%s' runs over %lld, no multiple of %lld",
        name, (long long)n, (long long)whole);
    const char *help = sc_printf(s->sc,
                                 "go through a register tile where '%s' runs over %lld: outside of "
                                 "a tensor nothing is written",
                                 name, (long long)((n + whole - 1) / whole * whole));
    tgt_cannot(s, m->span, what, NULL, help);
  }
}

// A tile whose rows are reduced need not be in registers: a vector there that runs along them says
// which thread has which.
static void check_reduction(Target *s, const Map *m, const Expr *e) {
  i8 var = (i8)e->ref;
  bool along = m->held & HELD_COLS ? var == m->col : var != m->row;
  if (!m->held) {
    const char *help = "reduce into a vector there first: reg z : f32[64], z[i] = …";
    if (m->outs)
      help = sc_printf(s->sc, "reduce into a vector there first: reg z : f32[%lld], z[%s] = …",
                       (long long)sc_extent(s->k, m, 0), m->var[0].name);
    tgt_cannot(s, m->span, "a reduction of which nothing is in registers", NULL, help);
  } else if (!(m->held & HELD_ROWS) || !along) {
    tgt_cannot(s, m->span, "a reduction that does not run along the rows of a register tile", NULL,
               "put the tile through a ring, from which any thread reads any element, into one "
               "whose columns are reduced");
  } else if (!(m->held & HELD_COLS) && sc_extent(s->k, m, var) % SC_FRAGMENT_COLS) {
    tgt_cannot(s, m->span, "a reduction of rows whose length is no multiple of 8", NULL,
               "pad them");
  }
}

// May a thread read an element through view `from` that another writes through `to`?
static bool reads_others(const Target *s, const Map *m, const View *to, const View *from) {
  bool same = true;
  if (to->buf != from->buf || to->fill != from->fill) return false;
  for (u32 d = 0; d < to->rank; d++) {
    const Pos *a = &to->at[d], *b = &from->at[d];
    i64 n = a->var < 0 ? 1 : sc_extent(s->k, m, a->var);
    i64 o = b->var < 0 ? 1 : sc_extent(s->k, m, b->var);
    if (a->var == b->var && sc_fact_equal(s->facts, a->base, b->base)) continue;
    same = false;
    if (sc_fact_disjoint(s->facts, a->base, n, b->base, o)) return false;
  }
  return !same;
}

// The right side is read whole before the left is written: by each thread, which does not wait for
// the others. (In registers nobody has another's elements.)
static void check_overlap(Target *s, const Map *m) {
  const View *dst = view_at(s, m->dst);
  const Buf *b = tgt_buf(s, m->dst);
  if (b->space == SP_REG) return;
  for (u32 i = 0; i < m->reads; i++) {
    const View *v = view_at(s, sc_view_of(s->k, m, i));
    if (!reads_others(s, m, dst, v)) continue;
    const char *help = b->space == SP_STAGE
                           ? "read it into a register tile first, and write it in a statement of "
                             "its own"
                           : "write into another tensor";
    tgt_cannot(s, v->span, "is read at other elements than those that the same statement writes",
               b->name, help);
    return;
  }
}

static void check_add(Target *s, const Map *m) {
  const Buf *b = tgt_buf(s, m->dst);
  bool row = m->held & HELD_ROWS && sc_runs_over(view_at(s, m->dst), m->row);
  if (m->held && !row) {
    tgt_cannot(s, m->span, "is added to from a vector along columns, which many threads hold",
               b->name, "put it through a ring");
  }
}

static void check_destination(Target *s, const Map *m, bool add) {
  check_overlap(s, m);
  if (add) check_add(s, m);
}

void tgt_statement(Target *s, const Map *m, bool add) {
  if (m->dst != SC_NONE) check_view(s, m->dst);
  for (u32 i = 0; i < m->reads; i++) check_view(s, sc_view_of(s->k, m, i));
  if (!check_layouts(s, m)) return;
  check_extents(s, m);
  if (m->held) check_blocks(s, m);
  u32 errors = s->sc->errors;
  for (u32 i = 0; i < m->folds; i++)
    check_reduction(s, m, &s->k->expr.at[s->k->fold.at[m->fold0 + i]]);
  if (m->vars > 2 && s->sc->errors == errors) {
    tgt_cannot(s, m->span, "a statement over more than two indices", NULL,
               "read into a register tile first, and reduce that");
  }
  if (m->dst != SC_NONE) check_destination(s, m, add);
}
