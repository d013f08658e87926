// cuda_map.c - element-wise statements. A map runs over the elements that each thread holds, in fully unrolled
// loops: ptxas then mixes the statements of a block as it likes (exponentials, conversions and rescales
// share the issue slots). Before the loop come reductions, values that are the same along a row, and the
// limits of comparisons with a column: `t*BN + j < N` is one constant against one register. At its head are read,
// two at once for both rows, the elements of a vector in a stage that runs along the columns.
#include "cuda.h"

#include <string.h>

// A vector in a stage, read along the columns: two elements at once, for both rows.
typedef struct Pair {
  const char *name;
  u32 view;
} Pair;

typedef struct MapGen {
  Cuda *c;
  const Map *m;
  At at;
  i64 rows, cols;  // extents of the row and column variable, 0: none
  bool packed;     // some tile holds pairs of 16-bit elements: the loop takes two elements at a time
  bool regs;       // some operand is in registers
  VEC(Pair) pair;  // read at the head of the loop over elements
} MapGen;

static i64 extent(const Kernel *k, const Map *m, int var) {
  i64 n = 0;
  if (var >= 0) x_const_int(k, m->var[var].extent, &n);
  return n;
}

// Which variable runs over rows and which over columns: register tiles say so.
static void orient(MapGen *g) {
  Cuda *c = g->c;
  u32 views[64], n;
  cu_map_views(c, g->m, views, &n, COUNT(views));
  for (u32 i = 0; i < n; i++) {
    const View *v = &c->k->view.at[views[i]];
    const Buf *b = &c->k->buf.at[v->buf];
    if (b->space != SP_REG) continue;
    g->regs = true;
    if (c->layout[v->buf] == LAY_ACC) {
      g->at.row = v->at[0].var;
      g->at.col = v->at[1].var;
      g->packed |= sc_elem[b->elem].bytes == 2;
    } else if (c->layout[v->buf] == LAY_ROW && v->rank) {
      g->at.row = v->at[0].var;
    } else if (v->rank) {
      g->at.col = v->at[0].var;
    }
  }
  // What is left over is the other one.
  for (int var = 0; var < g->m->vars; var++) {
    if (var == g->at.row || var == g->at.col) continue;
    if (g->at.row < 0) g->at.row = var;
    else if (g->at.col < 0) g->at.col = var;
  }
  g->rows = extent(c->k, g->m, g->at.row);
  g->cols = extent(c->k, g->m, g->at.col);
}

static Hoist *hoist(MapGen *g, Xid x, const char *name, HoistKind kind, bool by_row) {
  Hoist *h = NEW(g->c->sc, Hoist);
  *h = (Hoist){name, (u8)kind, by_row};
  g->at.hoist[x] = h;
  return h;
}

static bool on(const MapGen *g, Xid x, int var) { return var >= 0 && g->c->k->expr.at[x].vars >> var & 1; }

static bool has_col(const MapGen *g, const View *v) {
  for (u32 d = 0; d < v->rank; d++) {
    if (v->at[d].var >= 0 && v->at[d].var == g->at.col) return true;
  }
  return false;
}

static At row_at(const MapGen *g, const char *r) {
  At at = g->at;
  at.r = r;
  at.e = NULL;
  at.odd = -1;
  return at;
}

// The loop over a thread's elements of a row pair; `odd` picks the element of a packed pair.
static At elem_at(const MapGen *g, int odd) {
  At at = g->at;
  at.e = odd == 1 ? "e + 1" : "e";
  at.odd = g->packed ? odd : -1;
  at.r = g->rows ? "sc_row(e)" : NULL;
  return at;
}

static void open_elems(MapGen *g) {
  Cuda *c = g->c;
  const char *step = g->packed ? " += 2" : "++";
  cu_line(c, "#pragma unroll");
  if (!g->pair.n) {
    cu_open(c, "for (int e = 0; e < %lld; e%s)", (long long)g->cols / 2, step);
    return;
  }
  cu_open(c, "for (int n = 0; n < %lld; n++)", (long long)g->cols / 8);
  for (u32 i = 0; i < g->pair.n; i++) {
    const View *v = &c->k->view.at[g->pair.at[i].view];
    Txt at = cu_from(c, v->at[0].base, (Txt){"8 * n + col0", P_ADD});
    cu_line(c, "const float2 %s = sc_lds64(%s);", g->pair.at[i].name, cu_stage_elem(c, v, at, (Txt){0}));
  }
  cu_line(c, "#pragma unroll");
  cu_open(c, "for (int e = 4 * n; e < 4 * n + 4; e%s)", step);
}

static void close_elems(MapGen *g) {
  if (g->pair.n) cu_close(g->c);
  cu_close(g->c);
}

// ---- reductions along the row

static const char *reducer(ExprOp op, bool quad) {
  if (op == X_SUM) return quad ? "sc_quad_sum" : "+";
  if (op == X_RMAX) return quad ? "sc_quad_max" : "fmaxf";
  return quad ? "sc_quad_min" : "fminf";
}

static void accumulate(MapGen *g, const Expr *e, const char *to) {
  for (int odd = 0; odd < (g->packed ? 2 : 1); odd++) {
    At at = elem_at(g, odd);
    const char *body = cu_expr(g->c, &at, e->a).s;
    if (e->op == X_SUM) cu_line(g->c, "%s += %s;", to, body);
    else cu_line(g->c, "%s = %s(%s, %s);", to, reducer(e->op, false), to, body);
  }
}

// sum(j), max(j), min(j): two chains a row for extrema, so that their latency does not add up; then the quad.
static void reduction(MapGen *g, Xid x) {
  Cuda *c = g->c;
  const Expr *e = &c->k->expr.at[x];
  bool sum = e->op == X_SUM, parts = sum && g->at.parts;
  const char *what = sum ? "sum" : e->op == X_RMAX ? "max" : "min", *zero = e->op == X_RMAX ? "-SC_INF" : "SC_INF";
  const char *name = cu_temp(c, cu_text(c, "%s_%s", what, g->m->var[e->ref].name));
  if (sum) cu_line(c, "float %s[2] = {};", name);
  else cu_line(c, "float %s[4] = {%s, %s, %s, %s};  // two chains a row", name, zero, zero, zero, zero);
  open_elems(g);
  accumulate(g, e, cu_text(c, sum ? "%s[sc_row(e)]" : "%s[e >> 1 & 3]", name));
  close_elems(g);
  for (int r = 0; r < 2 && !parts; r++) {
    const char *all = sum ? cu_text(c, "%s[%d]", name, r) : cu_text(c, "%s(%s[%d], %s[%d])", reducer(e->op, false), name, r, name, r + 2);
    cu_line(c, "%s[%d] = %s(%s);", name, r, reducer(e->op, true), all);
  }
  hoist(g, x, name, HOIST_ROW, true);
}

// ---- comparisons with a column

// added - taken + rows * row + cols * column.
typedef struct Affine {
  Str added, taken;  // " + a + b", " - c"
  int rows, cols;
} Affine;

// Adds x to the sum, or with a negative sign takes it away. False: it is not of this form.
static bool affine(MapGen *g, Xid x, int sign, Affine *sum) {
  const Expr *e = &g->c->k->expr.at[x];
  if (e->op == X_IDX) {
    *((int)e->ref == g->at.row ? &sum->rows : &sum->cols) += sign;
    return true;
  }
  if (x_uniform(g->c->k, x)) {
    if (e->op == X_INT && e->num.i == 0) return true;
    if (sign > 0) str_printf(&sum->added, " + %s", cu_paren(g->c, cu_expr(g->c, NULL, x), P_ADD));
    else str_printf(&sum->taken, " - %s", cu_paren(g->c, cu_expr(g->c, NULL, x), P_MUL));
    return true;
  }
  if (e->op == X_ADD) return affine(g, e->a, sign, sum) && affine(g, e->b, sign, sum);
  if (e->op == X_SUB) return affine(g, e->a, sign, sum) && affine(g, e->b, -sign, sum);
  return false;
}

// The sum without its column, as a limit for the thread's columns, which are counted from col0.
static const char *limit_of(Cuda *c, const Affine *sum, Txt row) {
  Str s = {.sc = c->sc};
  if (sum->added.n) str_puts(&s, sum->added.at);
  if (sum->rows > 0) str_printf(&s, " + %s", cu_paren(c, row, P_ADD));
  if (!s.n) str_puts(&s, " + 0");
  if (sum->taken.n) str_puts(&s, sum->taken.at);
  if (sum->rows < 0) str_printf(&s, " - %s", cu_paren(c, row, P_MUL));
  str_puts(&s, " - col0");
  return s.at + strlen(" + ");
}

// a < b or a <= b, as  column < limit  or  column > limit, with the limit computed once (a row).
static bool limit(MapGen *g, Xid x) {
  Cuda *c = g->c;
  const Expr *e = &c->k->expr.at[x];
  if ((e->op != X_LT && e->op != X_LE) || c->k->expr.at[e->a].ty != TY_INT || !on(g, x, g->at.col)) return false;
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
    At r0 = row_at(g, "0"), r1 = row_at(g, "1");
    cu_line(c, "const int %s[2] = {%s, %s};", name, limit_of(c, &sum, cu_row(c, &r0)), limit_of(c, &sum, cu_row(c, &r1)));
  } else {
    cu_line(c, "const int %s = %s;", name, limit_of(c, &sum, (Txt){0}));
  }
  hoist(g, x, name, sign > 0 ? HOIST_BELOW : HOIST_ABOVE, sum.rows != 0);
  return true;
}

// ---- what is computed before the loop over elements

// What stands for `x` is computed once for each of the thread's rows: `form` of it, in %s.
static void per_row(MapGen *g, Xid x, Xid value, const char *stem, const char *form, HoistKind kind) {
  Cuda *c = g->c;
  const char *name = cu_temp(c, stem);
  At r0 = row_at(g, "0"), r1 = row_at(g, "1");
  const char *t0 = cu_paren(c, cu_expr(c, &r0, value), kind == HOIST_OVER ? P_UNARY : 0), *t1 = cu_paren(c, cu_expr(c, &r1, value), kind == HOIST_OVER ? P_UNARY : 0);
  const char *type = cu_ctype(c, value);
  cu_line(c, cu_text(c, "const %s %s[2] = {%s, %s};", type, name, form, form), t0, t1);
  hoist(g, x, name, kind, true);
}

// A load along the columns of a vector of floats, at places that come in aligned pairs.
static bool paired(const MapGen *g, const Expr *e) {
  const Kernel *k = g->c->k;
  if (e->op != X_LOAD || g->at.col < 0) return false;
  const View *v = &k->view.at[e->ref];
  const Buf *b = &k->buf.at[v->buf], *dst = g->m->dst == SC_NONE ? NULL : &k->buf.at[k->view.at[g->m->dst].buf];
  bool bytes = dst && dst->space == SP_REG && sc_elem[dst->elem].bytes == 1;  // which take their columns in another order
  return b->space == SP_STAGE && b->rank == 1 && b->elem == EL_F32 && v->at[0].var == g->at.col && !bytes &&
         g->cols % 8 == 0 && (!v->at[0].base || cu_multiple(k, v->at[0].base, 2));
}

// The name of a value that is computed once a row rather than once an element, or NULL. The four lanes of a quad add
// up the parts of a partial vector together, so this is never left to where some of them may be missing.
static const char *row_value(MapGen *g, Xid x, bool elems) {
  Cuda *c = g->c;
  const Expr *e = &c->k->expr.at[x];
  if (!g->rows || on(g, x, g->at.col)) return NULL;
  if (e->op == X_LOAD) {
    u32 buf = c->k->view.at[e->ref].buf;
    const Buf *b = &c->k->buf.at[buf];
    if (b->space == SP_REG) return b->partial && !g->at.parts ? cu_text(c, "%s_sum", c->name[buf]) : NULL;
    return elems ? cu_text(c, "%s_row", c->name[buf]) : NULL;
  }
  return elems && (sc_xop[e->op].unit == UNIT_mufu || sc_xop[e->op].cost > 1) ? "row_value" : NULL;
}

// Walks the expression from the leaves up. `elems`: it is computed for each element, not for each row.
static void prepare(MapGen *g, Xid x, bool elems) {
  Cuda *c = g->c;
  const Expr *e = &c->k->expr.at[x];
  bool reduces = e->op == X_SUM || e->op == X_RMAX || e->op == X_RMIN;
  if (g->at.hoist[x] || x_uniform(c->k, x)) return;
  if (limit(g, x)) return;
  if (paired(g, e)) {
    const char *name = cu_temp(c, "pair");
    PUSH(c->sc, &g->pair, ((Pair){name, e->ref}));
    hoist(g, x, name, HOIST_PAIR, false);
    return;
  }
  if (e->op == X_DIV && on(g, x, g->at.col) && !on(g, e->b, g->at.col) && !x_uniform(c->k, e->b) && g->rows) {
    prepare(g, e->a, elems);
    prepare(g, e->b, elems);
    per_row(g, x, e->b, "inverse", "1.0f / %s", HOIST_OVER);
    return;
  }
  if (e->a) prepare(g, e->a, elems || reduces);
  if (e->b) prepare(g, e->b, elems);
  if (e->c) prepare(g, e->c, elems);
  const char *stem = row_value(g, x, elems);
  if (reduces) reduction(g, x);
  else if (stem) per_row(g, x, x, stem, "%s", HOIST_ROW);
}

// ---- writing

static const char *pack(Cuda *c, Elem elem, const char *lo, const char *hi) {
  return cu_text(c, "sc_pack_%s(%s, %s)", sc_elem[elem].text, lo, hi);
}

static const char *value(MapGen *g, const At *at) { return cu_expr(g->c, at, g->m->root).s; }

// Words of four 8-bit elements, as wgmma takes them for its A operand if the contracted index is renumbered: a thread's
// columns 8 g + 2 t, + 1, + 8, + 9 become the four that lie side by side.
static void bytes_to_registers(MapGen *g, const char *name, const Buf *b, bool blocked) {
  Cuda *c = g->c;
  cu_line(c, "#pragma unroll");
  cu_open(c, "for (int n = 0; n < %lld; n++)", (long long)g->cols / 8);
  cu_line(c, "float y[4];");
  cu_line(c, "#pragma unroll");
  cu_open(c, "for (int q = 0; q < 4; q++)");
  cu_line(c, "const int e = 8 * (n >> 1) + 2 * (n & 1) + 4 * (q >> 1) + (q & 1);");
  At at = elem_at(g, -1);
  cu_line(c, "y[q] = %s;", value(g, &at));
  cu_close(c);
  cu_line(c, "%s%s[n] = sc_pack_%s(y);", name, blocked ? "[b]" : "", sc_elem[b->elem].text);
  cu_close(c);
}

static void to_registers(MapGen *g, const View *dst, const Buf *b) {
  Cuda *c = g->c;
  const char *name = c->name[dst->buf];
  bool blocked = strcmp(g->at.block, "0") != 0;
  if (c->layout[dst->buf] == LAY_ROW) {
    cu_line(c, "#pragma unroll");
    cu_open(c, "for (int r = 0; r < 2; r++)");
    At at = row_at(g, "r");
    cu_line(c, "%s[%sr] = %s;", name, blocked ? "2 * b + " : "", value(g, &at));
    cu_close(c);
    return;
  }
  if (sc_elem[b->elem].bytes == 1) {
    bytes_to_registers(g, name, b, blocked);
    return;
  }
  i64 shift = 0;
  if (c->layout[dst->buf] == LAY_ACC && dst->at[1].base) x_const_int(c->k, dst->at[1].base, &shift);
  const char *e = shift ? cu_text(c, "e + %lld", (long long)shift / 2) : "e";
  open_elems(g);
  At lo = elem_at(g, 0), hi = elem_at(g, 1);
  if (c->layout[dst->buf] == LAY_COL) {
    cu_line(c, "if ((e & 2) == 0) %s[2 * (e >> 2) + (e & 1)] = %s;", name, value(g, &lo));
  } else if (sc_elem[b->elem].bytes == 2) {
    cu_line(c, "%s%s[%s / 2] = %s;", name, blocked ? "[b]" : "", shift ? cu_text(c, "(%s)", e) : e, pack(c, b->elem, value(g, &lo), value(g, &hi)));
  } else {
    cu_line(c, "%s%s[%s] = %s;", name, blocked ? "[b]" : "", e, value(g, &lo));
    if (g->packed) cu_line(c, "%s%s[%s + 1] = %s;", name, blocked ? "[b]" : "", e, value(g, &hi));
  }
  close_elems(g);
}

// The statement's values as 16-bit pairs, in the order of the accumulator: an array of cols / 4 words.
static const char *packed_values(MapGen *g, Elem elem) {
  Cuda *c = g->c;
  const Expr *root = &c->k->expr.at[g->m->root];
  if (root->op == X_LOAD && strcmp(g->at.block, "0") == 0) {
    const View *v = &c->k->view.at[root->ref];
    if (c->layout[v->buf] == LAY_ACC && c->k->buf.at[v->buf].elem == elem && !v->at[1].base) return c->name[v->buf];
  }
  bool was = g->packed;
  g->packed = true;
  cu_line(c, "u32 x[%lld];", (long long)g->cols / 4);
  open_elems(g);
  At lo = elem_at(g, 0), hi = elem_at(g, 1);
  cu_line(c, "x[e / 2] = %s;", pack(c, elem, value(g, &lo), value(g, &hi)));
  close_elems(g);
  g->packed = was;
  return "x";
}

// Shared memory [row][col]: stmatrix where 16-bit elements fill blocks of 16 columns, else one by one.
static void to_stage_vector(MapGen *g, const View *dst, const Buf *b) {
  Cuda *c = g->c;
  bool along_row = dst->at[0].var >= 0 && dst->at[0].var == g->at.col;
  if (along_row) {
    open_elems(g);
    At at = elem_at(g, -1);
    cu_open(c, "if ((e & 2) == 0 && thread < 4)");
    cu_store(c, b, cu_stage_elem(c, dst, cu_position(c, &at, &dst->at[0]), (Txt){0}), value(g, &at));
    cu_close(c);
    close_elems(g);
  } else {
    cu_line(c, "#pragma unroll");
    cu_open(c, "for (int r = 0; r < 2; r++)");
    At at = row_at(g, "r");
    cu_open(c, "if ((lane & 3) == 0)");
    cu_store(c, b, cu_stage_elem(c, dst, cu_position(c, &at, &dst->at[0]), (Txt){0}), value(g, &at));
    cu_close(c);
    cu_close(c);
  }
}

static void to_stage(MapGen *g, const View *dst, const Buf *b) {
  Cuda *c = g->c;
  bool half = sc_elem[b->elem].bytes == 2;
  if (b->rank == 1) {
    to_stage_vector(g, dst, b);
    return;
  }
  if (half && b->swizzle && dst->at[0].var == g->at.row && dst->at[1].var == g->at.col && g->rows && g->cols % 16 == 0) {
    const char *block = strcmp(g->at.block, "0") ? cu_text(c, "%u * b + ", cu_block_rows(c)) : "";
    Txt row = cu_from(c, dst->at[0].base, (Txt){cu_text(c, "%s16 * warp + (lane & 15)", block), P_ADD});
    Txt col = cu_from(c, dst->at[1].base, (Txt){"16 * n + 8 * (lane >> 4)", P_ADD});
    const char *x = packed_values(g, b->elem);
    cu_line(c, "#pragma unroll");
    cu_open(c, "for (int n = 0; n < %lld; n++)", (long long)g->cols / 16);
    cu_line(c, "sc_stmatrix(%s, %s[4 * n], %s[4 * n + 1], %s[4 * n + 2], %s[4 * n + 3]);", cu_stage_elem(c, dst, row, col), x, x, x, x);
    cu_close(c);
    return;
  }
  open_elems(g);
  for (int odd = 0; odd < (g->packed ? 2 : 1); odd++) {
    At at = elem_at(g, odd);
    const char *to = cu_stage_elem(c, dst, cu_position(c, &at, &dst->at[0]), cu_position(c, &at, &dst->at[1]));
    cu_store(c, b, to, value(g, &at));
  }
  close_elems(g);
}

// ---- to tensors

// What must hold for an element, or (cols false) for the elements of a row, to be written; NULL: nothing.
static const char *guard(MapGen *g, const At *at, const View *dst, bool cols) {
  Cuda *c = g->c;
  const char *in = cu_inside(c, at, dst, true, cols);
  if (!g->m->cond) return in;
  const char *cond = cu_paren(c, cu_expr(c, at, g->m->cond), P_AND);
  return in ? cu_text(c, "%s && %s", in, cond) : cond;
}

static void to_tensor_elem(MapGen *g, const At *at, const View *dst, const Buf *b, bool add, const char *when) {
  Cuda *c = g->c;
  const char *to = cu_text(c, "a.%s[%s]", c->name[dst->buf], cu_offset(c, at, dst));
  if (when) cu_open(c, "if (%s)", when);
  if (add) cu_line(c, "atomicAdd(&%s, %s);", to, value(g, at));
  else cu_line(c, "%s = %s;", to, cu_to(c, (Elem)b->elem, value(g, at)));
  if (when) cu_close(c);
}

// The loop over a thread's two rows. Where a row is in the tensor gets a name, if more is to it than the row.
static At open_rows(MapGen *g, const View *dst) {
  Cuda *c = g->c;
  At at = row_at(g, "r");
  cu_line(c, "#pragma unroll");
  cu_open(c, "for (int r = 0; r < 2; r++)");
  for (u32 d = 0; d < dst->rank; d++) {
    if (dst->at[d].var < 0 || dst->at[d].var != at.row) continue;
    cu_line(c, "const int row = %s;", cu_position(c, &at, &dst->at[d]).s);
    at.placed = true;
    at.place = dst->at[d].base;
    return at;
  }
  return at;
}

static bool wide(const MapGen *g, const View *dst, const Buf *b) {
  i64 base = 0, dim;
  const Pos *last = &dst->at[dst->rank - 1];
  if (last->base && !x_const_int(g->c->k, last->base, &base)) return false;
  return sc_elem[b->elem].bytes == 2 && last->var == g->at.col && g->at.col >= 0 && g->cols % 32 == 0 && base % 8 == 0 &&
         x_const_int(g->c->k, b->dim[b->rank - 1], &dim) && base + g->cols <= dim &&
         (!g->m->cond || !on(g, g->m->cond, g->at.col));
}

// Rows of 16-bit elements in multiples of 32 columns leave as 16-byte stores after a transpose within each quad.
static void to_tensor_wide(MapGen *g, const View *dst, const Buf *b) {
  Cuda *c = g->c;
  const char *x = packed_values(g, b->elem);
  c->wide[dst->buf] = true;
  At at = open_rows(g, dst);
  View first = *dst;  // the row's first column
  first.at[first.rank - 1].var = -1;
  const char *when = guard(g, &at, &first, false);
  cu_line(c, "u16 *row_out = a.%s + %s;", c->name[dst->buf], cu_offset(c, &at, &first));
  cu_line(c, "#pragma unroll");
  cu_open(c, "for (int n = 0; n < %lld; n++)", (long long)g->cols / 32);
  cu_line(c, "u32 y[4] = {%s[8 * n + r], %s[8 * n + 2 + r], %s[8 * n + 4 + r], %s[8 * n + 6 + r]};", x, x, x, x);
  cu_line(c, "sc_quad_transpose(y, lane & 3);");
  if (when) cu_open(c, "if (%s)", when);
  cu_line(c, "*(uint4 *)(row_out + 32 * n + 8 * (lane & 3)) = make_uint4(y[0], y[1], y[2], y[3]);");
  if (when) cu_close(c);
  cu_close(c);
  cu_close(c);
}

static void to_tensor(MapGen *g, const View *dst, const Buf *b, bool add) {
  g->c->by_thread[dst->buf] = true;
  if (!has_col(g, dst)) {
    At at = open_rows(g, dst);
    const char *in = guard(g, &at, dst, true);
    to_tensor_elem(g, &at, dst, b, add, cu_text(g->c, "(lane & 3) == 0%s%s", in ? " && " : "", in ? in : ""));
    cu_close(g->c);
  } else if (!add && wide(g, dst, b)) {
    to_tensor_wide(g, dst, b);
  } else {
    open_elems(g);
    for (int odd = 0; odd < (g->packed ? 2 : 1); odd++) {
      At at = elem_at(g, odd);
      to_tensor_elem(g, &at, dst, b, add, guard(g, &at, dst, true));
    }
    close_elems(g);
  }
}

// No register tile takes part: elements are dealt to the threads in order, columns fastest.
static void linear(MapGen *g, const View *dst, const Buf *b, bool add) {
  Cuda *c = g->c;
  u32 threads = c->k->role.at[c->r].warps * 32u;
  i64 rows = g->rows ? g->rows : 1, cols = g->cols ? g->cols : 1;
  cu_open(c, "for (int n = thread; n < %lld; n += %u)", (long long)(rows * cols), threads);
  if (g->rows) cu_line(c, cols > 1 ? "const int row = n / %lld;" : "const int row = n;", (long long)cols);
  if (g->cols) cu_line(c, rows > 1 ? "const int col = n %% %lld;" : "const int col = n;", (long long)cols);
  At at = g->at;
  if (b->space == SP_STAGE) {
    const char *to = cu_stage_elem(c, dst, cu_position(c, &at, &dst->at[0]), cu_position(c, &at, &dst->at[b->rank - 1]));
    cu_store(c, b, to, value(g, &at));
  } else {
    c->by_thread[dst->buf] = true;
    to_tensor_elem(g, &at, dst, b, add, guard(g, &at, dst, true));
  }
  cu_close(c);
}

void cu_map(Cuda *c, const Ins *ins) {
  const Map *m = &c->k->map.at[ins->arg[0]];
  const View *dst = &c->k->view.at[m->dst];
  const Buf *b = &c->k->buf.at[dst->buf];
  MapGen g = {.c = c, .m = m};
  g.at = (At){.map = g.m, .row = -1, .col = -1, .odd = -1, .block = "0", .parts = m->parts};
  g.at.hoist = NEWS(c->sc, Hoist *, c->k->expr.n);
  orient(&g);
  if (!g.regs) {
    linear(&g, dst, b, ins->op == OP_MAPADD);
    return;
  }
  i64 blocks = (g.rows + cu_block_rows(c) - 1) / cu_block_rows(c);
  cu_open(c, "%s", "");
  if (blocks > 1) {
    cu_line(c, "#pragma unroll");
    cu_open(c, "for (int b = 0; b < %lld; b++)", (long long)blocks);
    g.at.block = "b";
  }
  prepare(&g, m->root, has_col(&g, dst));
  if (m->cond) prepare(&g, m->cond, has_col(&g, dst));
  if (b->space == SP_REG) to_registers(&g, dst, b);
  else if (b->space == SP_STAGE) to_stage(&g, dst, b);
  else to_tensor(&g, dst, b, ins->op == OP_MAPADD);
  if (blocks > 1) cu_close(c);
  cu_close(c);
}

// Does the condition hold for any row of this warp? The block that follows is run by the warps where it does.
void cu_vote(Cuda *c, const Ins *ins) {
  MapGen g = {.c = c, .m = &c->k->map.at[ins->arg[0]]};
  g.at = (At){.map = g.m, .row = -1, .col = -1, .odd = -1, .block = "0", .parts = true};
  g.at.hoist = NEWS(c->sc, Hoist *, c->k->expr.n);
  orient(&g);
  u32 before = c->out.n;
  prepare(&g, g.m->root, false);
  At r0 = row_at(&g, "0"), r1 = row_at(&g, "1");
  const char *any = cu_text(c, "__any_sync(~0u, %s || %s)", cu_paren(c, cu_expr(c, &r0, g.m->root), P_OR), cu_paren(c, cu_expr(c, &r1, g.m->root), P_OR));
  if (c->out.n == before) {
    cu_open(c, "if (%s)", any);
    return;
  }
  // The vote needs values of its own: they and it are put in a block, from which its outcome leaves.
  Str values = {.sc = c->sc};
  str_put(&values, c->out.at + before, c->out.n - before);
  c->out.n = before;
  const char *name = cu_text(c, "vote%u", ++c->votes);
  cu_line(c, "bool %s;", name);
  cu_open(c, "%s", "");
  str_puts(&c->out, values.at);
  cu_line(c, "%s = %s;", name, any);
  cu_close(c);
  cu_open(c, "if (%s)", name);
}
