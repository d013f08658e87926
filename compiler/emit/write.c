// write.c - writes the values of an element-wise statement to registers, stages or tensors. It
// writes as many bytes at once as are contiguous: blocks of 16 rows and 16 columns of a stage
// (stmatrix), rows of a tensor, vectors of four elements of a workspace.
//
// Called by map.c; calls elems.c for the loop, tile.c and inside.c for positions, and expr.c.
#include "compiler/emit/emit.h"

// ---- registers

static const char *pack(Cuda *c, Elem elem, const char *lo, const char *hi) {
  return cu_text(c, "sc_pack_%s(%s, %s)", sc_elem[elem].text, lo, hi);
}

static const char *value(MapGen *g, const At *at) {
  return cu_value(g->c, at, g->assigned.value).s;
}

// Writes words of four 8-bit elements for the A operand of wgmma. The contracted index is
// renumbered for that: a thread's columns 8 g + 2 t, + 1, + 8 and + 9 become four columns that lie
// side by side.
static void bytes_to_registers(MapGen *g, const char *name, const Buf *b, bool blocked) {
  Cuda *c = g->c;
  const char *q = cu_temp(c, "q");
  cu_open_unrolled(c, "n", g->cols / 8);
  cu_var(c, "float y[4];");
  cu_open_unrolled(c, q, 4);
  cu_var(c, "const int e = 8 * (n >> 1) + 2 * (n & 1) + 4 * (%s >> 1) + (%s & 1);", q, q);
  At at = cu_elem_at(g, -1);
  cu_line(c, "y[%s] = %s;", q, value(g, &at));
  cu_close(c);
  cu_line(c, "%s%s[n] = sc_pack_%s(y);", name, blocked ? "[b]" : "", sc_elem[b->elem].text);
  cu_close(c);
}

// Reads a 16-bit tile from a stage by ldmatrix.
static void by_fragments(MapGen *g, const char *to) {
  Cuda *c = g->c;
  const View *from = &c->k->view.at[c->k->expr.at[g->m->root].ref];
  const char *at = cu_fragment_at(g, from);
  cu_open_unrolled(c, "n", g->cols / 16);
  cu_line(c, "sc_ldmatrix(%s, %s + 4 * n);", at, to);
  cu_close(c);
}

// The value of a vector's element. Vectors are held as floats, whatever their type, and rounded to
// the type when they are written.
static const char *rounded(MapGen *g, const At *at, const Buf *b) {
  if (sc_elem[b->elem].bytes == 4) return value(g, at);
  return cu_of(g->c, (Elem)b->elem, cu_to(g->c, (Elem)b->elem, value(g, at)));
}

static bool is_zero(const MapGen *g) {
  const Expr *e = &g->c->k->expr.at[g->assigned.value];
  return (e->op == X_REAL && e->num.f == 0) || (e->op == X_INT && !e->num.i);
}

// Writes a vector along rows. If a partial vector gets a whole value, one lane of each quad holds
// it, and the others hold 0.
static void rows_to_registers(MapGen *g, const char *name, const Buf *b) {
  Cuda *c = g->c;
  cu_open_unrolled(c, "r", 2);
  At at = cu_row_at(g, (Txt){"r", P_NAME});
  const char *to = cu_text(c, cu_is(g->at.block, 0) ? "%s[r]" : "%s[2 * b + r]", name);
  if (b->partial && !g->at.parts && !is_zero(g))
    cu_line(c, "%s = ($lane & 3) == 0 ? %s : 0;", to,
            cu_paren(c, cu_value(c, &at, g->assigned.value), P_COND));
  else cu_line(c, "%s = %s;", to, rounded(g, &at, b));
  cu_close(c);
}

// Does the statement read the tile that it writes at other columns?
static bool reads_shifted(const MapGen *g, const View *dst) {
  const Kernel *k = g->c->k;
  if (k->buf.at[dst->buf].layout != LAY_ACC) return false;
  for (u32 i = 0; i < g->m->reads; i++) {
    const View *v = &k->view.at[sc_view_of(k, g->m, i)];
    if (v->buf == dst->buf && v->at[1].base != dst->at[1].base) return true;
  }
  return false;
}

// Writes the elements of a block to the registers `to`, one by one or in pairs. `shift`: columns
// before the first one.
static void elems_to_registers(MapGen *g, const Buf *b, const char *to, i64 shift) {
  Cuda *c = g->c;
  const char *e = shift ? cu_text(c, "e + %lld", (long long)shift / 2) : "e";
  cu_open_elems(g, g->assigned);
  At lo = cu_elem_at(g, 0), hi = cu_elem_at(g, 1);
  if (b->layout == LAY_COL) {
    cu_line(c, "if ((e & 2) == 0) %s[2 * (e >> 2) + (e & 1)] = %s;", to, rounded(g, &lo, b));
  } else if (sc_elem[b->elem].bytes == 2) {
    cu_line(c, "%s[%s / 2] = %s;", to, shift ? cu_text(c, "(%s)", e) : e,
            pack(c, b->elem, value(g, &lo), value(g, &hi)));
  } else {
    cu_line(c, "%s[%s] = %s;", to, e, value(g, &lo));
    if (g->packed) cu_line(c, "%s[%s + 1] = %s;", to, e, value(g, &hi));
  }
  cu_close_elems(g);
}

// Writes a tile that the statement reads at other columns: all reads come before the first write.
static void shifted_to_registers(MapGen *g, const Buf *b, const char *to, i64 shift) {
  Cuda *c = g->c;
  const char *x = cu_temp(c, "x"), *type = cu_held(b->elem);
  i64 bytes = sc_elem[b->elem].bytes;
  cu_var(c, "%s %s[%lld];", bytes == 2 ? "u32" : type, x, (long long)(g->cols * bytes / 8));
  elems_to_registers(g, b, x, 0);
  const char *at = shift ? cu_text(c, "e + %lld", (long long)(shift * bytes / 8)) : "e";
  cu_remark(c, "#pragma unroll");
  cu_line(c, "for (int e = %lld; e < %lld; e++) %s[%s] = %s[e];",
          (long long)(g->assigned.from * bytes / 8), (long long)(g->assigned.to * bytes / 8), to,
          at, x);
}

void cu_to_registers(MapGen *g, const View *dst, const Buf *b) {
  Cuda *c = g->c;
  const char *name = c->name[dst->buf];
  bool blocked = !cu_is(g->at.block, 0);
  const char *to = cu_text(c, "%s%s", name, blocked ? "[b]" : "");
  i64 shift = 0;
  if (b->layout == LAY_ACC && dst->at[1].base) x_const_int(c->k, dst->at[1].base, &shift);
  switch (g->m->move) {
    case MOVE_ROWS: rows_to_registers(g, name, b); break;
    case MOVE_BYTES: bytes_to_registers(g, name, b, blocked); break;
    case MOVE_FRAGMENT:
      by_fragments(g, shift ? cu_text(c, "%s + %lld", to, (long long)shift / 4) : to);
      break;
    default:
      if (reads_shifted(g, dst)) shifted_to_registers(g, b, to, shift);
      else elems_to_registers(g, b, to, shift);
  }
}

// ---- stages

// The name of an array of cols / 4 words with the statement's values as 16-bit pairs, in the order
// of the accumulator.
static const char *packed_values(MapGen *g, Elem elem) {
  Cuda *c = g->c;
  const Expr *root = &c->k->expr.at[g->m->root];
  if (root->op == X_LOAD && cu_is(g->at.block, 0)) {
    const View *v = &c->k->view.at[root->ref];
    const Buf *b = &c->k->buf.at[v->buf];
    if (b->layout == LAY_ACC && b->elem == elem && !v->at[1].base) return c->name[v->buf];
  }
  bool was = g->packed;
  g->packed = true;
  cu_var(c, "u32 x[%lld];", (long long)g->cols / 4);
  cu_open_elems(g, g->assigned);
  At lo = cu_elem_at(g, 0), hi = cu_elem_at(g, 1);
  cu_line(c, "x[e / 2] = %s;", pack(c, elem, value(g, &lo), value(g, &hi)));
  cu_close_elems(g);
  g->packed = was;
  return "x";
}

// Writes a vector along columns to a stage, or to one row of it. Many threads hold each element;
// four of them write.
static void to_stage_vector(MapGen *g, const View *dst, const Buf *b) {
  Cuda *c = g->c;
  cu_open_elems(g, g->assigned);
  At at = cu_elem_at(g, -1);
  Txt row = cu_position(c, &at, &dst->at[0]),
      col = b->rank > 1 ? cu_position(c, &at, &dst->at[1]) : (Txt){0};
  cu_open(c, "if ((e & 2) == 0 && $thread < 4)");
  cu_store(c, b, cu_stage_elem(c, dst, row, col), value(g, &at));
  cu_close(c);
  cu_close_elems(g);
}

// Writes a vector along rows, or one column of a tile, to a stage.
static void to_stage_rows(MapGen *g, const View *dst, const Buf *b) {
  Cuda *c = g->c;
  cu_open_unrolled(c, "r", 2);
  At at = cu_row_at(g, (Txt){"r", P_NAME});
  Txt col = b->rank > 1 ? cu_position(c, &at, &dst->at[1]) : (Txt){0};
  cu_open(c, "if (($lane & 3) == 0)");
  cu_store(c, b, cu_stage_elem(c, dst, cu_position(c, &at, &dst->at[0]), col), value(g, &at));
  cu_close(c);
  cu_close(c);
}

static void to_stage_fragments(MapGen *g, const View *dst, const Buf *b) {
  Cuda *c = g->c;
  const char *fragment = cu_fragment_at(g, dst), *x = packed_values(g, b->elem);
  cu_open_unrolled(c, "n", g->cols / 16);
  cu_line(c, "sc_stmatrix(%s, %s + 4 * n);", fragment, x);
  cu_close(c);
}

static void to_stage_elems(MapGen *g, const View *dst, const Buf *b) {
  Cuda *c = g->c;
  cu_open_elems(g, g->assigned);
  for (int odd = 0; odd < (g->packed ? 2 : 1); odd++) {
    At at = cu_elem_at(g, odd);
    Txt row = cu_position(c, &at, &dst->at[0]), col = cu_position(c, &at, &dst->at[1]);
    cu_store(c, b, cu_stage_elem(c, dst, row, col), value(g, &at));
  }
  cu_close_elems(g);
}

void cu_to_stage(MapGen *g, const View *dst, const Buf *b) {
  switch (g->m->move) {
    case MOVE_ROWS: to_stage_rows(g, dst, b); break;
    case MOVE_COLUMNS: to_stage_vector(g, dst, b); break;
    case MOVE_FRAGMENT: to_stage_fragments(g, dst, b); break;
    default: to_stage_elems(g, dst, b);
  }
}

// ---- tensors

// The condition under which an element, or (cols false) a row of elements, is written; NULL:
// always.
static const char *guard(MapGen *g, const At *at, const View *dst, bool cols) {
  Cuda *c = g->c;
  const char *in = cu_inside(c, at, dst, true, cols);
  if (!g->m->cond) return in;
  const char *cond = cu_paren(c, cu_value(c, at, g->m->cond), P_AND);
  return in ? cu_text(c, "%s && %s", in, cond) : cond;
}

static void to_tensor_elem(MapGen *g, const At *at, const View *dst, const Buf *b, bool add,
                           const char *when) {
  Cuda *c = g->c;
  const char *to = cu_text(c, "args.%s[%s]", c->name[dst->buf], cu_offset(c, at, dst));
  if (when) cu_open(c, "if (%s)", when);
  if (add)
    cu_line(c, "%s(&%s, %s);", b->elem == EL_I32 ? "sc_add_int" : "sc_add", to, value(g, at));
  else cu_line(c, "%s = %s;", to, cu_to(c, (Elem)b->elem, value(g, at)));
  if (when) cu_close(c);
}

// Opens the loop over a thread's two rows. The row's position in the tensor gets a variable, unless
// it is the row's number itself.
static At open_rows(MapGen *g, const View *dst) {
  Cuda *c = g->c;
  At at = cu_row_at(g, (Txt){"r", P_NAME});
  cu_open_unrolled(c, "r", 2);
  for (u32 d = 0; d < dst->rank; d++) {
    if (dst->at[d].var < 0 || dst->at[d].var != at.row) continue;
    cu_var(c, "const int row = %s;", cu_coordinate(c, &at, &dst->at[d]).s);
    at.row_named = true;
    at.row_base = dst->at[d].base;
    return at;
  }
  return at;
}

// The same for rows that are written from their first column on. Returns the address of that
// column; when: the condition under which the row is written.
static const char *open_whole_rows(MapGen *g, const View *dst, const char **when) {
  At at = open_rows(g, dst);
  View first = *dst;
  first.at[first.rank - 1].var = -1;
  *when = guard(g, &at, dst, false);
  return cu_text(g->c, "args.%s + %s", g->c->name[dst->buf], cu_offset(g->c, &at, &first));
}

// Opens the loops over rows of 16-bit elements and over their groups of 32 columns. `y` are then
// the 16 bytes of a group that the thread writes, after a transpose within each quad. Returns the
// condition under which the row is written.
static const char *open_wide_rows(MapGen *g, const View *dst, const char *x) {
  Cuda *c = g->c;
  const char *when, *to = open_whole_rows(g, dst, &when);
  cu_var(c, "u16 *row_out = %s;", to);
  cu_open_unrolled(c, "n", g->cols / 32);
  cu_var(c, "u32 y[4] = {%s[8 * n + r], %s[8 * n + 2 + r], %s[8 * n + 4 + r], %s[8 * n + 6 + r]};",
         x, x, x, x);
  cu_line(c, "sc_quad_transpose(y, $lane & 3);");
  return when;
}

// Writes rows of 16-bit elements, in multiples of 32 columns, by 16-byte stores.
static void to_tensor_wide(MapGen *g, const View *dst, const Buf *b) {
  Cuda *c = g->c;
  const char *x = packed_values(g, b->elem);
  c->wide[dst->buf] = true;
  const char *when = open_wide_rows(g, dst, x);
  if (when) cu_open(c, "if (%s)", when);
  cu_line(c,
          "*(uint4 *)(row_out + 32 * n + 8 * ($lane & 3)) = make_uint4(y[0], y[1], y[2], y[3]);");
  if (when) cu_close(c);
  cu_close(c);
  cu_close(c);
}

// The same where rows may lie at no multiple of 16 bytes, or reach past the tensor: the emitted
// code tests that, and else writes element by element.
static void to_tensor_wide_tried(MapGen *g, const View *dst, const Buf *b) {
  Cuda *c = g->c;
  const char *x = packed_values(g, b->elem);
  cu_var(c, "const int left = %s;", cu_columns_left(c, dst));
  const char *when = open_wide_rows(g, dst, x);
  cu_var(c, "const int first = 32 * n + 8 * ($lane & 3);");
  cu_line(c, "%ssc_store_row16(row_out + first, y, left - first);",
          when ? cu_text(c, "if (%s) ", when) : "");
  cu_close(c);
  cu_close(c);
}

// The name of an array of cols / 2 floats with the statement's values, in the order of the
// accumulator.
static const char *float_values(MapGen *g) {
  Cuda *c = g->c;
  const Expr *root = &c->k->expr.at[g->m->root];
  if (root->op == X_LOAD) {
    const View *v = &c->k->view.at[root->ref];
    const Buf *b = &c->k->buf.at[v->buf];
    if (b->layout == LAY_ACC && b->elem == EL_F32 && !v->at[1].base) {
      return cu_block(c, v->buf, g->at.block.s);
    }
  }
  cu_var(c, "float x[%lld];", (long long)g->cols / 2);
  cu_open_elems(g, g->assigned);
  for (int odd = 0; odd < (g->packed ? 2 : 1); odd++) {
    At at = cu_elem_at(g, odd);
    cu_line(c, "x[%s] = %s;", at.e, value(g, &at));
  }
  cu_close_elems(g);
  return "x";
}

// Writes two columns at once.
static void to_tensor_pairs(MapGen *g, const View *dst, const Buf *b) {
  Cuda *c = g->c;
  const char *x = float_values(g);
  cu_var(c, "const int left = %s;", cu_columns_left(c, dst));
  const char *when, *to = open_whole_rows(g, dst, &when);
  cu_var(c, "auto *row_out = %s + $col0;", to);
  cu_open_unrolled(c, "n", g->cols / 8);
  cu_line(c, "%ssc_store_pair_%s(row_out + 8 * n, %s + 4 * n + 2 * r, left - 8 * n - $col0);",
          when ? cu_text(c, "if (%s) ", when) : "", sc_elem[b->elem].text, x);
  cu_close(c);
  cu_close(c);
}

// What is added comes from a product as a rule. The address is worked out at the statement, as
// ptxas would else put that between instructions of products, which then begin later.
static void to_tensor_vector4(MapGen *g, const View *dst, bool add) {
  Cuda *c = g->c;
  const char *x = float_values(g);
  const char *to = cu_vector4(c, &g->at, dst, add ? "sc_here($thread)" : "$thread");
  cu_var(c, "float *out = %s;", to);
  cu_open_unrolled(c, "n", g->cols / 8);
  cu_line(c, "sc_%s4(out + 512 * n, %s + 4 * n);", add ? "add" : "store", x);
  cu_close(c);
}

// Adds to the tensor along its rows, at addresses that differ by constants.
static void add_to_rows(MapGen *g, const View *dst) {
  Cuda *c = g->c;
  const char *x = float_values(g);
  const char *when, *to = open_whole_rows(g, dst, &when);
  cu_var(c, "float *row_out = %s + $col0;", to);
  cu_remark(c, "#pragma unroll");
  cu_open(c, "for (int e = 2 * r; e < %lld; e += 4)", (long long)g->cols / 2);
  for (int odd = 0; odd < 2; odd++) {
    At elem = cu_elem_at(g, odd);
    elem.odd = odd;
    const char *in = cu_inside(c, &elem, dst, false, true),
               *both = when && in ? cu_text(c, "%s && %s", when, in)
                       : when     ? when
                                  : in;
    if (both) cu_open(c, "if (%s)", both);
    cu_line(c, "sc_add(row_out + %s, %s[%s]);", cu_col_step(c, &elem), x, elem.e);
    if (both) cu_close(c);
  }
  cu_close(c);
  cu_close(c);
}

// Writes a vector along rows: one lane of each quad writes a row's element.
static void to_tensor_rows(MapGen *g, const View *dst, const Buf *b, bool add) {
  At at = open_rows(g, dst);
  const char *in = guard(g, &at, dst, true);
  const char *when = cu_text(g->c, "($lane & 3) == 0%s%s", in ? " && " : "", in ? in : "");
  to_tensor_elem(g, &at, dst, b, add, when);
  cu_close(g->c);
}

// Writes element by element. Of a vector along columns, which many threads hold, four threads
// write.
static void to_tensor_elems(MapGen *g, const View *dst, const Buf *b, bool add) {
  cu_open_elems(g, g->assigned);
  for (int odd = 0; odd < (g->packed ? 2 : 1); odd++) {
    At at = cu_elem_at(g, odd);
    const char *in = guard(g, &at, dst, true);
    if (g->m->move == MOVE_COLUMNS)
      in = cu_text(g->c, "(e & 2) == 0 && $thread < 4%s%s", in ? " && " : "", in ? in : "");
    to_tensor_elem(g, &at, dst, b, add, in);
  }
  cu_close_elems(g);
}

void cu_to_tensor(MapGen *g, const View *dst, const Buf *b, bool add) {
  g->c->by_thread[dst->buf] = true;
  switch (g->m->move) {
    case MOVE_ROWS: to_tensor_rows(g, dst, b, add); break;
    case MOVE_WIDE: to_tensor_wide(g, dst, b); break;
    case MOVE_WIDE_TRIED: to_tensor_wide_tried(g, dst, b); break;
    case MOVE_PAIRS: to_tensor_pairs(g, dst, b); break;
    case MOVE_VECTOR4: to_tensor_vector4(g, dst, add); break;
    case MOVE_ADD_ROWS: add_to_rows(g, dst); break;
    default: to_tensor_elems(g, dst, b, add);
  }
}

// Writes a statement without register tiles: thread t takes elements t, t + threads, …, and the
// column is the fastest index.
void cu_linear(MapGen *g, const View *dst, const Buf *b, bool add) {
  Cuda *c = g->c;
  u32 threads = c->k->role.at[c->r].warps * 32u;
  i64 rows = g->rows ? g->rows : 1, cols = g->cols ? g->cols : 1;
  cu_open(c, "for (int n = $thread; n < %lld; n += %u)", (long long)(rows * cols), threads);
  if (g->rows)
    cu_var(c, cols > 1 ? "const int row = n / %lld;" : "const int row = n;", (long long)cols);
  if (g->cols)
    cu_var(c, rows > 1 ? "const int col = n %% %lld;" : "const int col = n;", (long long)cols);
  At at = g->at;
  if (b->space == SP_STAGE) {
    const char *to = cu_stage_elem(c, dst, cu_position(c, &at, &dst->at[0]),
                                   cu_position(c, &at, &dst->at[b->rank - 1]));
    cu_store(c, b, to, value(g, &at));
  } else {
    c->by_thread[dst->buf] = true;
    to_tensor_elem(g, &at, dst, b, add, guard(g, &at, dst, true));
  }
  cu_close(c);
}

// Transposes an 8-bit stage. A warp takes blocks of 32 rows and 16 columns of its source, four at a
// time, so that none has to wait for another; of many it takes one at a time in a loop, for the
// addresses of all would be kept in registers. Two 8-row parts of a block come together in four
// bytes of a lane: rows t, t + 1, t + 8 and t + 9 where the columns of an operand are permuted
// (sc_order8), four consecutive rows where they are not.
void cu_turned(MapGen *g, const View *dst) {
  Cuda *c = g->c;
  const View *src = &c->k->view.at[c->k->expr.at[g->m->root].ref];
  i64 across = sc_extent(c->k, g->m, (i8)dst->at[0].var) / 16;
  i64 blocks = sc_extent(c->k, g->m, (i8)dst->at[1].var) / 32 * across;
  i64 warps = c->k->role.at[c->r].warps, rounds = (blocks + warps - 1) / warps;
  i64 batch = rounds > 8 ? 1 : 4;
  while (blocks % (warps * batch) && batch > 1) batch /= 2;
  const char *n = cu_temp(c, "n"), *i = cu_temp(c, "i"), *x = cu_temp(c, "x");
  const char *block =
      cu_text(c, "($warp + %lld * (%lld * %s + %s))", (long long)warps, (long long)batch, n, i);
  Txt down = {cu_text(c, "%s / %lld * 32", block, (long long)across), P_MUL};
  Txt side = {cu_text(c, "%s %% %lld * 16", block, (long long)across), P_MUL};
  bool permuted = c->k->buf.at[dst->buf].permuted;
  Txt row = cu_sum(c, down, (Txt){permuted ? "$lane" : "sc_order8($lane)", P_ATOM});
  Txt to = cu_sum(c, side, (Txt){"sc_row_turned($lane)", P_ATOM});
  Txt at = cu_sum(c, down, (Txt){"($lane & 16)", P_ATOM});
  if (rounds <= 8) cu_open_unrolled(c, n, rounds / batch);
  else {
    cu_remark(c, "#pragma unroll 1");
    cu_open(c, "for (int %s = 0; %s < %lld; %s++)", n, n, (long long)(rounds / batch), n);
  }
  cu_var(c, "u32 %s[%lld][4];", x, (long long)batch);
  for (int store = 0; store < 2; store++) {
    cu_open_unrolled(c, i, batch);
    if (blocks % warps) cu_open(c, "if (%s < %lld)", block, (long long)blocks);
    if (store) {
      cu_line(c, "sc_bytes_turned(%s[%s], $lane);", x, i);
      cu_line(
          c, "sc_stmatrix(%s, %s[%s]);",
          cu_stage_elem(c, dst, cu_from(c, dst->at[0].base, to), cu_from(c, dst->at[1].base, at)),
          x, i);
    } else {
      cu_line(c, "sc_ldmatrix_turned(%s, %s[%s]);",
              cu_stage_elem(c, src, cu_from(c, src->at[0].base, row),
                            cu_from(c, src->at[1].base, side)),
              x, i);
    }
    if (blocks % warps) cu_close(c);
    cu_close(c);
  }
  cu_close(c);
}
