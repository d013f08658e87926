// map.c - element-wise statements. The text is a fully unrolled loop over the elements that a
// thread holds, so that ptxas can interleave the statements of a block: exponentials, conversions
// and multiplications then share the issue slots.
//
// What can be computed once is computed before the loop: reductions, values that are the same along
// a row, and the limits of comparisons with a column. (For `t*BN + j < N` the limit is N - t*BN, in
// a register; the column j is a constant in each unrolled step.) At the head of each step of the
// loop, what can be read ahead of its elements is: of a vector that lies along the columns in a
// stage, two at once for both rows of the thread; of a stage, a tensor or a workspace, four.
//
// Called by frame.c; calls write.c for what is assigned, elems.c for the loop, and tile.c.
#include "compiler/emit/emit.h"

#include <string.h>

static Hoist *hoist_of(MapGen *g, Xid x) {
  Hoist *h = &g->c->hoist[x];
  if (h->statement != g->c->statement) *h = (Hoist){.statement = g->c->statement};
  return h;
}

static void hoist(MapGen *g, Xid x, const char *name, HoistKind kind, bool by_row) {
  Hoist *h = hoist_of(g, x);
  h->name = name;
  h->kind = (u8)kind;
  h->by_row = by_row;
}

// ---- columns that something is done to

// Is x a read of the element that the statement assigns?
static bool is_itself(const MapGen *g, Xid x) {
  const Kernel *k = g->c->k;
  const View *dst = &k->view.at[g->m->dst], *v = &k->view.at[k->expr.at[x].ref];
  return k->expr.at[x].op == X_LOAD && v->buf == dst->buf && sc_same_place(v, dst);
}

static bool is_float_zero(const MapGen *g, Xid x) {
  const Expr *e = &g->c->k->expr.at[x];
  return e->op == X_REAL && e->num.f == 0;
}

// Does the condition compare the column with a number? The number must be a multiple of eight, as
// threads hold groups of eight columns.
static bool bound(const MapGen *g, const Expr *e, i64 *from, i64 *to) {
  const Kernel *k = g->c->k;
  if (e->op != X_LT && e->op != X_LE) return false;
  Xid column = e->op == X_LT ? e->a : e->b, bound = e->op == X_LT ? e->b : e->a;  // j < n, n <= j
  i64 n;
  if (k->expr.at[column].op != X_IDX || (int)k->expr.at[column].ref != g->at.col) return false;
  if (!x_const_int(k, bound, &n) || n % 8 || n < 0 || n > g->cols) return false;
  if (e->op == X_LT && n < *to) *to = n;
  if (e->op == X_LE && n > *from) *from = n;
  return true;
}

// Does the condition say that the column lies from one such number to another, and nothing else?
static bool bounds(const MapGen *g, Xid cond, i64 *from, i64 *to) {
  Below *below = &g->c->below;
  x_begin(below, 0);
  x_from(below, cond);
  for (Xid x; (x = x_next(below));) {
    const Expr *e = &g->c->k->expr.at[x];
    if (e->op == X_AND) continue;
    if (!bound(g, e, from, to)) return false;
    x_skip(below);
  }
  return true;
}

// The columns that the loop goes over: of where(from <= j and j < to, value, x) only these, if
// nothing is to be done for x.
static Columns columns_of(const MapGen *g, Xid root, bool nothing(const MapGen *, Xid)) {
  const Expr *e = &g->c->k->expr.at[root];
  Columns all = {0, g->cols, root}, some = {0, g->cols, e->b};
  bool only = e->op == X_WHERE && nothing(g, e->c) && bounds(g, e->a, &some.from, &some.to) &&
              some.from < some.to;
  return only ? some : all;
}

// ---- reductions along the row

// The function that combines two extrema.
static const char *extremum(const Expr *e) {
  bool integer = e->ty == TY_INT;
  return e->op == X_RMAX ? integer ? "max" : "fmaxf" : integer ? "min" : "fminf";
}

// The function that reduces over the four lanes of a quad.
static const char *of_quad(Cuda *c, const Expr *e) {
  const char *what = e->op == X_SUM ? "sum" : e->op == X_RMAX ? "max" : "min";
  return cu_text(c, "sc_quad_%s%s", what, e->ty == TY_INT ? "_int" : "");
}

// The neutral element of an extremum.
static const char *neutral(const Expr *e) {
  if (e->ty == TY_INT) return e->op == X_RMAX ? "-0x7fffffff - 1" : "0x7fffffff";
  return e->op == X_RMAX ? "-SC_INF" : "SC_INF";
}

static void accumulate(MapGen *g, const Expr *e, Xid value, const char *to) {
  for (int odd = 0; odd < (g->packed ? 2 : 1); odd++) {
    At at = cu_elem_at(g, odd);
    const char *body = cu_value(g->c, &at, value).s;
    if (e->op == X_SUM) cu_line(g->c, "%s += %s;", to, body);
    else cu_line(g->c, "%s = %s(%s, %s);", to, extremum(e), to, body);
  }
}

// Writes sum(j), max(j) or min(j): first over a thread's own columns, for extrema in two chains a
// row to halve the latency, then over the quad.
static void reduction(MapGen *g, Xid x, Columns columns) {
  Cuda *c = g->c;
  const Expr *e = &c->k->expr.at[x];
  bool sum = e->op == X_SUM, parts = sum && g->at.parts;
  const char *what = sum               ? "sum"
                     : e->op == X_RMAX ? "max"
                                       : "min",
             *zero = neutral(e), *type = cu_ctype(c, x);
  const char *name = cu_temp(c, cu_text(c, "%s_%s", what, g->m->var[e->ref].name));
  if (sum) {
    cu_var(c, "%s %s[2] = {};", type, name);
  } else {
    cu_var(c, "%s %s[4] = {%s, %s, %s, %s};", type, name, zero, zero, zero, zero);
    cu_note(c, "two chains a row");
  }
  cu_open_elems(g, columns);
  accumulate(g, e, columns.value, cu_text(c, sum ? "%s[sc_row(e)]" : "%s[e >> 1 & 3]", name));
  cu_close_elems(g);
  for (int r = 0; r < 2 && !parts; r++) {
    const char *all = sum ? cu_text(c, "%s[%d]", name, r)
                          : cu_text(c, "%s(%s[%d], %s[%d])", extremum(e), name, r, name, r + 2);
    cu_line(c, "%s[%d] = %s(%s);", name, r, of_quad(c, e), all);
  }
  hoist(g, x, name, HOIST_ROW, true);
}

// ---- comparisons with a column

// added - taken + rows * row + cols * column.
typedef struct Affine {
  Str added, taken;  // " + a + b", " - c"
  int rows, cols;
  bool far;  // a term may be any of 32 bits, so that the sum has more
  // so far: expressions share their operands, and what takes too many is not of this form
  u32 steps;
} Affine;
enum { MAX_STEPS = 1000 };

// Adds x to the sum, or with a negative sign takes it away. False: it is not of this form.
static bool affine(MapGen *g, Xid x, int sign, Affine *sum) {
  const Expr *e = &g->c->k->expr.at[x];
  if (++sum->steps > MAX_STEPS) return false;
  if (e->op == X_IDX) {
    *((int)e->ref == g->at.row ? &sum->rows : &sum->cols) += sign;
    return true;
  }
  if (x_uniform(g->c->k, x)) {
    if (e->op == X_INT && e->num.i == 0) return true;
    sum->far |= cu_any_int(g->c, x);
    if (sign > 0) str_printf(&sum->added, " + %s", cu_paren(g->c, cu_expr(g->c, NULL, x), P_ADD));
    else str_printf(&sum->taken, " - %s", cu_paren(g->c, cu_expr(g->c, NULL, x), P_MUL));
    return true;
  }
  if (e->op == X_ADD) return affine(g, e->a, sign, sum) && affine(g, e->b, sign, sum);
  if (e->op == X_SUB) return affine(g, e->a, sign, sum) && affine(g, e->b, -sign, sum);
  return false;
}

// The text of the sum without its column: a limit for the thread's columns, which are counted from
// col0.
static const char *limit_of(Cuda *c, const Affine *sum, Txt row) {
  Str s = {.sc = c->sc};
  const char *added = sum->added.n ? sum->added.at : "", *taken = sum->taken.n ? sum->taken.at : "";
  str_printf(&s, sum->far ? " + sc_limit(0ll%s%s)" : "%s", added, taken);
  if (sum->rows > 0) str_printf(&s, " + %s", cu_paren(c, row, P_ADD));
  if (!s.n) str_puts(&s, " + 0");
  if (!sum->far) str_puts(&s, taken);
  if (sum->rows < 0) str_printf(&s, " - %s", cu_paren(c, row, P_MUL));
  str_puts(&s, " - $col0");
  return s.at + strlen(" + ");
}

// Writes a < b or a <= b as `column < limit` or `column > limit`, with the limit computed once, or
// once a row. False: the comparison has no such form.
static bool limit(MapGen *g, Xid x) {
  Cuda *c = g->c;
  const Expr *e = &c->k->expr.at[x];
  if ((e->op != X_LT && e->op != X_LE) || c->k->expr.at[e->a].ty != TY_INT ||
      !cu_on(g, x, g->at.col))
    return false;
  const Affine none = {.added = {.sc = c->sc}, .taken = {.sc = c->sc}};
  Affine apart = none, sum = none;
  // Find the sign of the column first, then write the other terms on the other side.
  if (!affine(g, e->a, 1, &apart) || !affine(g, e->b, -1, &apart)) return false;
  int sign = apart.cols;
  if ((sign != 1 && sign != -1) || apart.rows < -1 || apart.rows > 1) return false;
  affine(g, e->a, -sign, &sum);
  affine(g, e->b, sign, &sum);
  if (e->op == X_LE) str_puts(sign > 0 ? &sum.added : &sum.taken, sign > 0 ? " + 1" : " - 1");
  const char *name = cu_temp(c, "limit");
  if (sum.rows) {
    At r0 = cu_row_at(g, cu_int(c, 0)), r1 = cu_row_at(g, cu_int(c, 1));
    cu_var(c, "const int %s[2] = {%s, %s};", name, limit_of(c, &sum, cu_row(c, &r0)),
           limit_of(c, &sum, cu_row(c, &r1)));
  } else {
    cu_var(c, "const int %s = %s;", name, limit_of(c, &sum, (Txt){0}));
  }
  hoist(g, x, name, sign > 0 ? HOIST_BELOW : HOIST_ABOVE, sum.rows != 0);
  return true;
}

// ---- what is computed before the loop over elements

// Declares variables for x in each of the thread's two rows, which stand for it from then on.
static void per_row(MapGen *g, Xid x, const char *stem) {
  Cuda *c = g->c;
  const char *name = cu_temp(c, stem);
  At r0 = cu_row_at(g, cu_int(c, 0)), r1 = cu_row_at(g, cu_int(c, 1));
  const char *t0 = cu_value(c, &r0, x).s, *t1 = cu_value(c, &r1, x).s;
  cu_var(c, "const %s %s[2] = {%s, %s};", cu_ctype(c, x), name, t0, t1);
  hoist(g, x, name, HOIST_ROW, true);
}

// Declares what rows of a tensor are read from, and into: for each of the thread's two the address
// from which the thread reads it, and how many columns there are from there on: none, if the row is
// outside. (Of whole rows it only says whether they are inside.)
static Ahead rows_ahead(MapGen *g, u32 view, u8 move) {
  Cuda *c = g->c;
  const View *v = &c->k->view.at[view];
  const Buf *b = &c->k->buf.at[v->buf];
  const char *rows = cu_temp(c, "rows"), *into = cu_temp(c, "read"), *at[2], *left[2];
  const char *mine = move == MOVE_PAIRS ? "$col0" : "8 * ($lane & 3)";
  c->wide[v->buf] |= move == MOVE_WIDE;
  View first = *v;
  first.at[first.rank - 1].var = -1;
  for (int r = 0; r < 2; r++) {
    At row = cu_row_at(g, cu_int(c, r));
    const char *in = cu_inside(c, &row, v, true, false);
    at[r] = cu_text(c, "args.%s + %s + %s", c->name[v->buf], cu_offset(c, &row, &first), mine);
    left[r] = move == MOVE_WIDE ? "1" : cu_text(c, "%s - %s", cu_columns_left(c, v), mine);
    if (in) left[r] = cu_text(c, "%s ? %s : 0", in, left[r]);
  }
  cu_var(c, "const sc_rows<%s> %s = {{%s, %s}, {%s, %s}};", cu_kept(b->elem), rows, at[0], at[1],
         left[0], left[1]);
  i64 n = cu_read_at_once(g);
  cu_var(c, "%s %s[%lld][4];", cu_held(b->elem), into, (long long)n);
  c->by_thread[v->buf] = true;
  const char *name = cu_text(c, n == 1 ? "%s[0]" : "%s[n %% %lld]", into, (long long)n);
  return (Ahead){name, into, rows, view, move};
}

// Does the load belong to those that are read ahead, together with neighbours? Then it is.
static bool ahead(MapGen *g, Xid x) {
  Cuda *c = g->c;
  const Expr *e = &c->k->expr.at[x];
  if (e->op != X_LOAD || c->read_move[e->ref] == MOVE_ELEMS) return false;
  u8 move = c->read_move[e->ref];
  const View *v = &c->k->view.at[e->ref];
  bool rows = c->k->buf.at[v->buf].space == SP_TENSOR && move != MOVE_VECTOR4;
  if (rows && c->unasked) return false;  // it may be that nobody asks for any of it
  Ahead read = {.view = e->ref, .move = move};
  if (move == MOVE_VECTOR4) {
    read.at = cu_vector4(c, &g->at, v, "$thread");
    c->by_thread[v->buf] = true;
  }
  if (rows) read = rows_ahead(g, e->ref, move);
  else read.name = cu_temp(c, move == MOVE_VECTOR2 ? "pair" : "four");
  PUSH(c->sc, &g->ahead, read);
  hoist(g, x, read.name, move == MOVE_VECTOR2 ? HOIST_VECTOR2 : HOIST_VECTOR4, false);
  return true;
}

// The parts of a partial vector are added up once, before the statement, for all statements up to
// the next one that changes them.
static void add_parts(MapGen *g) {
  Cuda *c = g->c;
  for (u32 i = 0; i < g->m->reads && !g->at.parts; i++) {
    u32 buf = c->k->view.at[sc_view_of(c->k, g->m, i)].buf;
    const char *name = c->name[buf];
    if (!c->k->buf.at[buf].partial || c->k->buf.at[buf].layout != LAY_ROW || c->sum[buf].to > c->pc)
      continue;
    QuadSum *sum = &c->sum[buf];
    sum->name = cu_lasting(c, cu_text(c, "%s_sum", name), buf, &sum->to);
    cu_var(c, "const float %s[2] = {sc_quad_sum(%s[0]), sc_quad_sum(%s[1])};", sum->name, name,
           name);
  }
}

static bool added(MapGen *g, Xid x) {
  Cuda *c = g->c;
  const Expr *e = &c->k->expr.at[x];
  if (e->op != X_LOAD || g->at.parts || c->sum[c->k->view.at[e->ref].buf].to <= c->pc) return false;
  hoist(g, x, c->sum[c->k->view.at[e->ref].buf].name, HOIST_ROW, true);
  return true;
}

// The name of a value that is computed once a row rather than once an element, or NULL. The four
// lanes of a quad add up the parts of a partial vector together, so this is never left to where
// some of them may be missing.
static const char *row_value(MapGen *g, Xid x, bool elems) {
  Cuda *c = g->c;
  const Expr *e = &c->k->expr.at[x];
  if (!g->rows || cu_on(g, x, g->at.col)) return NULL;
  if (e->op == X_LOAD) {
    u32 buf = c->k->view.at[e->ref].buf;
    const Buf *b = &c->k->buf.at[buf];
    if (b->space == SP_REG)
      return b->partial && !g->at.parts ? cu_text(c, "%s_sum", c->name[buf]) : NULL;
    return elems ? cu_text(c, "%s_row", c->name[buf]) : NULL;
  }
  if (!elems || !sc_xop[e->op].slow) return NULL;
  return e->op == X_DIV ? "inverse" : "row_value";
}

// The same of what a condition may leave out: what is computed once is computed all the same.
static void prepare_unasked(MapGen *g, Xid x, bool elems) {
  const bool before = g->c->unasked;
  g->c->unasked = true;
  cu_prepare(g, x, elems);
  g->c->unasked = before;
}

static void prepare_operands(MapGen *g, const Expr *e, Xid first, bool elems) {
  const bool chooses = e->op == X_WHERE || e->op == X_AND || e->op == X_OR;
  if (e->a) cu_prepare(g, first, elems || x_reduces(e->op));
  if (e->b) (chooses ? prepare_unasked : cu_prepare)(g, e->b, elems);
  if (e->c) (chooses ? prepare_unasked : cu_prepare)(g, e->c, elems);
}

// Walks the expression from the leaves up. `elems`: it is computed for each element, not for each
// row.
void cu_prepare(MapGen *g, Xid x, bool elems) {
  Cuda *c = g->c;
  const Expr *e = &c->k->expr.at[x];
  bool reduces = x_reduces(e->op);
  Hoist *h = hoist_of(g, x);
  if (h->name || h->prepared >> elems & 1 || x_uniform(c->k, x)) return;
  h->prepared |= (u8)(1u << elems);
  if (limit(g, x) || ahead(g, x) || added(g, x)) return;
  Columns columns =
      e->op == X_SUM ? columns_of(g, e->a, is_float_zero) : (Columns){0, g->cols, e->a};
  prepare_operands(g, e, columns.value, elems);
  const char *stem = row_value(g, x, elems);
  if (reduces) reduction(g, x, columns);
  else if (stem) per_row(g, x, stem);
}

// ---- the statement

MapGen cu_map_gen(Cuda *c, const Map *m, bool parts) {
  MapGen g = {.c = c, .m = m};
  g.at = (At){
      .map = m, .row = m->row, .col = m->col, .odd = -1, .block = cu_int(c, 0), .parts = parts};
  c->statement++;
  g.rows = sc_extent(c->k, m, m->row);
  g.cols = sc_extent(c->k, m, m->col);
  g.packed = m->pairs;
  for (u32 i = 0; i < m->reads; i++) {
    const MapRead *read = &c->k->read.at[m->read0 + i];
    c->read_move[read->view] = read->move;
  }
  g.assigned = (Columns){0, g.cols, m->root};
  return g;
}

i64 cu_blocks_of(const MapGen *g) {
  return (g->rows + cu_block_rows(g->c) - 1) / cu_block_rows(g->c);
}

// The elements that each thread holds.
static void in_registers(MapGen *g, const Ins *ins, const View *dst, const Buf *b) {
  Cuda *c = g->c;
  const Map *m = g->m;
  i64 blocks = cu_blocks_of(g);
  cu_open_scope(c);
  if (blocks > 1) {
    cu_open_unrolled(c, "b", blocks);
    g->at.block = (Txt){"b", P_NAME};
  }
  if (b->layout == LAY_ACC && b->elem == EL_F32) g->assigned = columns_of(g, m->root, is_itself);
  (m->cond ? prepare_unasked : cu_prepare)(g, g->assigned.value, sc_runs_over(dst, g->at.col));
  if (m->cond) cu_prepare(g, m->cond, sc_runs_over(dst, g->at.col));
  if (b->space == SP_REG) cu_to_registers(g, dst, b);
  else if (b->space == SP_STAGE) cu_to_stage(g, dst, b);
  else cu_to_tensor(g, dst, b, ins->op == OP_MAPADD);
  if (blocks > 1) cu_close(c);
  cu_close(c);
}

void cu_map(Cuda *c, const Ins *ins) {
  const Map *m = &c->k->map.at[ins->arg[0]];
  const View *dst = &c->k->view.at[m->dst];
  const Buf *b = &c->k->buf.at[dst->buf];
  MapGen g = cu_map_gen(c, m, m->parts);
  const char *written = b->space == SP_TENSOR ? cu_in_grid(c, dst) : NULL;
  if (m->held && cu_blocks_of(&g) == 1) add_parts(&g);  // later statements use the sums, too
  if (written) cu_open(c, "if (%s)", written);
  if (m->held) in_registers(&g, ins, dst, b);
  else if (m->move == MOVE_TURNED) cu_turned(&g, dst);
  else cu_linear(&g, dst, b, ins->op == OP_MAPADD);
  if (written) cu_close(c);
}
