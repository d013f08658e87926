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
  at.r = g->rows ? "(e >> 1 & 1)" : NULL;
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
    const char *base = v->at[0].base ? cu_text(c, "%s + ", cu_paren(c, cu_expr(c, NULL, v->at[0].base), P_ADD)) : "";
    cu_line(c, "const float2 %s = sc_lds64(%s);", g->pair.at[i].name, cu_stage_elem(c, v, cu_text(c, "%s8 * n + col0", base), NULL));
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
  const char *what = e->op == X_SUM ? "sum" : e->op == X_RMAX ? "most" : "least";
  const char *name = cu_text(c, "%s_%s%u", what, g->m->var[e->ref].name, ++c->temps);
  bool sum = e->op == X_SUM, parts = sum && g->at.parts;
  const char *zero = sum ? "0.f" : e->op == X_RMAX ? "-SC_INF" : "SC_INF";
  if (sum) cu_line(c, "float %s[2] = {%s, %s};", name, zero, zero);
  else cu_line(c, "float %s[4] = {%s, %s, %s, %s};", name, zero, zero, zero, zero);
  open_elems(g);
  accumulate(g, e, cu_text(c, sum ? "%s[e >> 1 & 1]" : "%s[e >> 1 & 3]", name));
  close_elems(g);
  if (!sum) {
    for (int r = 0; r < 2; r++) cu_line(c, "%s[%d] = %s(%s[%d], %s[%d]);", name, r, reducer(e->op, false), name, r, name, r + 2);
  }
  if (!parts) {
    for (int r = 0; r < 2; r++) cu_line(c, "%s[%d] = %s(%s[%d]);", name, r, reducer(e->op, true), name, r);
  }
  hoist(g, x, name, HOIST_ROW, true);
}

// ---- comparisons with a column

// x as uniform + ci * row + cj * column. Terms of the uniform part are added to `text` with `sign`.
static bool affine(MapGen *g, Xid x, int sign, Str *text, int *ci, int *cj) {
  const Expr *e = &g->c->k->expr.at[x];
  if (e->op == X_IDX) {
    if ((int)e->ref == g->at.row) *ci += sign;
    else *cj += sign;
    return true;
  }
  if (x_uniform(g->c->k, x)) {
    if (e->op == X_INT && e->num.i == 0) return true;
    str_puts(text, text->n ? (sign > 0 ? " + " : " - ") : (sign > 0 ? "" : "-"));
    str_puts(text, cu_paren(g->c, cu_expr(g->c, NULL, x), sign > 0 && text->n ? P_ADD : P_MUL));
    return true;
  }
  if (e->op == X_ADD) return affine(g, e->a, sign, text, ci, cj) && affine(g, e->b, sign, text, ci, cj);
  if (e->op == X_SUB) return affine(g, e->a, sign, text, ci, cj) && affine(g, e->b, -sign, text, ci, cj);
  return false;
}

// a < b or a <= b, as  column < limit  or  column > limit, with the limit computed once (a row).
static bool limit(MapGen *g, Xid x) {
  Cuda *c = g->c;
  const Expr *e = &c->k->expr.at[x];
  if ((e->op != X_LT && e->op != X_LE) || c->k->expr.at[e->a].ty != TY_INT || !on(g, x, g->at.col)) return false;
  Str text = {.sc = c->sc};
  int ci = 0, cj = 0;
  // Find the sign of the column first, then write the other terms on the other side.
  if (!affine(g, e->a, 1, &text, &ci, &cj) || !affine(g, e->b, -1, &text, &ci, &cj)) return false;
  if ((cj != 1 && cj != -1) || ci < -1 || ci > 1) return false;
  text = (Str){.sc = c->sc};
  int ci2 = 0, cj2 = 0;
  affine(g, e->a, -cj, &text, &ci2, &cj2);
  affine(g, e->b, cj, &text, &ci2, &cj2);
  if (e->op == X_LE) str_puts(&text, cj > 0 ? (text.n ? " + 1" : "1") : (text.n ? " - 1" : "-1"));
  if (!text.n) str_puts(&text, "0");
  const char *name = cu_text(c, "limit%u", ++c->temps);
  if (ci2) {
    At r0 = row_at(g, "0"), r1 = row_at(g, "1");
    const char *op = ci2 > 0 ? "+" : "-";
    cu_line(c, "const int %s[2] = {%s %s %s - col0, %s %s %s - col0};", name, text.at, op, cu_row(c, &r0), text.at, op, cu_row(c, &r1));
  } else {
    cu_line(c, "const int %s = %s - col0;", name, text.at);
  }
  hoist(g, x, name, cj > 0 ? HOIST_BELOW : HOIST_ABOVE, ci2 != 0);
  return true;
}

// ---- what is computed before the loop over elements

// What stands for `x` is computed once for each of the thread's rows: `form` of it, in %s.
static void per_row(MapGen *g, Xid x, Xid value, const char *stem, const char *form, HoistKind kind) {
  Cuda *c = g->c;
  const char *name = cu_text(c, "%s%u", stem, ++c->temps);
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

static bool costly(const Kernel *k, Xid x, bool parts) {
  const Expr *e = &k->expr.at[x];
  if (e->op == X_LOAD) {
    const Buf *b = &k->buf.at[k->view.at[e->ref].buf];
    return (b->partial && !parts) || b->space != SP_REG;
  }
  return sc_xop[e->op].unit == UNIT_mufu || sc_xop[e->op].cost > 1;
}

// Walks the expression from the leaves up. `inside`: within the body of a reduction.
static void prepare(MapGen *g, Xid x) {
  Cuda *c = g->c;
  const Expr *e = &c->k->expr.at[x];
  if (g->at.hoist[x] || x_uniform(c->k, x)) return;
  if (limit(g, x)) return;
  if (paired(g, e)) {
    const char *name = cu_text(c, "pair%u", ++c->temps);
    PUSH(c->sc, &g->pair, ((Pair){name, e->ref}));
    hoist(g, x, name, HOIST_PAIR, false);
    return;
  }
  if (e->op == X_DIV && on(g, x, g->at.col) && !on(g, e->b, g->at.col) && !x_uniform(c->k, e->b) && g->rows) {
    prepare(g, e->a);
    prepare(g, e->b);
    per_row(g, x, e->b, "inverse", "1.f / %s", HOIST_OVER);
    return;
  }
  if (e->a) prepare(g, e->a);
  if (e->b) prepare(g, e->b);
  if (e->c) prepare(g, e->c);
  if (e->op == X_SUM || e->op == X_RMAX || e->op == X_RMIN) reduction(g, x);
  else if (costly(c->k, x, g->at.parts) && g->rows && !on(g, x, g->at.col)) per_row(g, x, x, "row_value", "%s", HOIST_ROW);
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
    cu_store(c, b, cu_stage_elem(c, dst, cu_position(c, &at, &dst->at[0]), NULL), value(g, &at));
    cu_close(c);
    close_elems(g);
  } else {
    cu_line(c, "#pragma unroll");
    cu_open(c, "for (int r = 0; r < 2; r++)");
    At at = row_at(g, "r");
    cu_open(c, "if ((lane & 3) == 0)");
    cu_store(c, b, cu_stage_elem(c, dst, cu_position(c, &at, &dst->at[0]), NULL), value(g, &at));
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
    const char *row = dst->at[0].base ? cu_text(c, "%s + ", cu_paren(c, cu_expr(c, NULL, dst->at[0].base), P_ADD)) : "";
    const char *col = dst->at[1].base ? cu_text(c, "%s + ", cu_paren(c, cu_expr(c, NULL, dst->at[1].base), P_ADD)) : "";
    const char *block = strcmp(g->at.block, "0") ? cu_text(c, "%u * b + ", cu_block_rows(c)) : "";
    const char *x = packed_values(g, b->elem);
    cu_line(c, "#pragma unroll");
    cu_line(c, "for (int n = 0; n < %lld; n++) sc_stmatrix(%s, %s[4 * n], %s[4 * n + 1], %s[4 * n + 2], %s[4 * n + 3]);",
            (long long)g->cols / 16,
            cu_stage_elem(c, dst, cu_text(c, "%s%s16 * warp + (lane & 15)", row, block), cu_text(c, "%s16 * n + 8 * (lane >> 4)", col)),
            x, x, x, x);
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

// Tensors. Rows of 16-bit elements in multiples of 32 columns leave as 16-byte stores after a transpose within
// each quad; other elements one by one (f32: in pairs).
static void to_tensor_rows(MapGen *g, const View *dst, const Buf *b, bool add) {
  Cuda *c = g->c;
  cu_line(c, "#pragma unroll");
  cu_open(c, "for (int r = 0; r < 2; r++)");
  At at = row_at(g, "r");
  const char *in = cu_inside(c, &at, dst, true, true);
  if (g->m->cond) in = cu_text(c, in ? "%s && %s" : "%s%s", in ? in : "", cu_paren(c, cu_expr(c, &at, g->m->cond), P_AND));
  cu_open(c, "if ((lane & 3) == 0%s%s)", in ? " && " : "", in ? in : "");
  const char *to = cu_text(c, "a.%s[%s]", c->name[dst->buf], cu_offset(c, &at, dst));
  if (add) cu_line(c, "atomicAdd(&%s, %s);", to, value(g, &at));
  else cu_line(c, "%s = %s;", to, cu_to(c, (Elem)b->elem, value(g, &at)));
  cu_close(c);
  cu_close(c);
}

static bool wide(const MapGen *g, const View *dst, const Buf *b) {
  i64 base = 0, dim;
  const Pos *last = &dst->at[dst->rank - 1];
  if (last->base && !x_const_int(g->c->k, last->base, &base)) return false;
  return sc_elem[b->elem].bytes == 2 && last->var == g->at.col && g->at.col >= 0 && g->cols % 32 == 0 && base % 8 == 0 &&
         x_const_int(g->c->k, b->dim[b->rank - 1], &dim) && base + g->cols <= dim &&
         (!g->m->cond || !on(g, g->m->cond, g->at.col));
}

static const char *guard(MapGen *g, const At *at, const View *dst) {
  Cuda *c = g->c;
  const char *in = cu_inside(c, at, dst, true, true);
  if (!g->m->cond) return in;
  const char *cond = cu_paren(c, cu_expr(c, at, g->m->cond), P_AND);
  return in ? cu_text(c, "%s && %s", in, cond) : cond;
}

static void to_tensor_wide(MapGen *g, const View *dst, const Buf *b) {
  Cuda *c = g->c;
  const char *x = packed_values(g, b->elem);
  c->wide[dst->buf] = true;
  cu_line(c, "#pragma unroll");
  cu_open(c, "for (int r = 0; r < 2; r++)");
  At at = row_at(g, "r");
  at.col = -1;  // the offset of the row's first column
  View first = *dst;
  first.at[first.rank - 1].var = -1;
  const char *in = cu_inside(c, &at, &first, true, false);
  if (g->m->cond) in = cu_text(c, in ? "%s && %s" : "%s%s", in ? in : "", cu_paren(c, cu_expr(c, &at, g->m->cond), P_AND));
  cu_line(c, "%s *row_out = a.%s + %s;", "u16", c->name[dst->buf], cu_offset(c, &at, &first));
  if (in) cu_line(c, "const bool inside = %s;", in);
  cu_line(c, "#pragma unroll");
  cu_open(c, "for (int n = 0; n < %lld; n++)", (long long)g->cols / 32);
  cu_line(c, "u32 y[4] = {%s[8 * n + r], %s[8 * n + 2 + r], %s[8 * n + 4 + r], %s[8 * n + 6 + r]};", x, x, x, x);
  cu_line(c, "sc_quad_transpose(y, lane & 3);");
  cu_line(c, "%s*(uint4 *)(row_out + 32 * n + 8 * (lane & 3)) = make_uint4(y[0], y[1], y[2], y[3]);", in ? "if (inside) " : "");
  cu_close(c);
  cu_close(c);
}

static void to_tensor(MapGen *g, const View *dst, const Buf *b, bool add) {
  Cuda *c = g->c;
  c->by_thread[dst->buf] = true;
  bool has_col = false;
  for (u32 d = 0; d < dst->rank; d++) has_col |= dst->at[d].var >= 0 && dst->at[d].var == g->at.col;
  if (!has_col) {
    to_tensor_rows(g, dst, b, add);
    return;
  }
  if (!add && wide(g, dst, b)) {
    to_tensor_wide(g, dst, b);
    return;
  }
  open_elems(g);
  for (int odd = 0; odd < (g->packed ? 2 : 1); odd++) {
    At at = elem_at(g, odd);
    const char *in = guard(g, &at, dst), *to = cu_text(c, "a.%s[%s]", c->name[dst->buf], cu_offset(c, &at, dst));
    const char *test = in ? cu_text(c, "if (%s) ", in) : "";
    if (add) cu_line(c, "%satomicAdd(&%s, %s);", test, to, value(g, &at));
    else cu_line(c, "%s%s = %s;", test, to, cu_to(c, (Elem)b->elem, value(g, &at)));
  }
  close_elems(g);
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
    const char *j = b->rank > 1 ? cu_position(c, &at, &dst->at[1]) : NULL;
    cu_store(c, b, cu_stage_elem(c, dst, cu_position(c, &at, &dst->at[0]), j), value(g, &at));
  } else {
    c->by_thread[dst->buf] = true;
    const char *in = guard(g, &at, dst), *to = cu_text(c, "a.%s[%s]", c->name[dst->buf], cu_offset(c, &at, dst));
    const char *test = in ? cu_text(c, "if (%s) ", in) : "";
    if (add) cu_line(c, "%satomicAdd(&%s, %s);", test, to, value(g, &at));
    else cu_line(c, "%s%s = %s;", test, to, cu_to(c, (Elem)b->elem, value(g, &at)));
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
  prepare(&g, m->root);
  if (m->cond) prepare(&g, m->cond);
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
  const char *name = cu_text(c, "vote%u", ++c->temps);
  cu_line(c, "bool %s;", name);
  cu_open(c, "%s", "");
  prepare(&g, g.m->root);
  At r0 = row_at(&g, "0"), r1 = row_at(&g, "1");
  cu_line(c, "%s = __any_sync(~0u, %s || %s);", name, cu_paren(c, cu_expr(c, &r0, g.m->root), P_OR), cu_paren(c, cu_expr(c, &r1, g.m->root), P_OR));
  cu_close(c);
  cu_open(c, "if (%s)", name);
}
