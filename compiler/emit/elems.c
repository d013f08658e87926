// elems.c - the loop over the elements that a thread holds, in which an element-wise statement is
// written, the position of the element at hand, and the addresses of fragments. Called by map.c and
// write.c; calls tile.c for what is read at the head of the loop's body, and stmt.c.
#include "compiler/emit/emit.h"

bool cu_on(const MapGen *g, Xid x, int var) {
  return var >= 0 && g->c->k->expr.at[x].vars >> var & 1;
}

At cu_row_at(const MapGen *g, Txt r) {
  At at = g->at;
  at.r = r;
  at.e = NULL;
  at.odd = -1;
  return at;
}

// The loop over a thread's elements of a row pair; `odd` picks the element of a packed pair.
At cu_elem_at(const MapGen *g, int odd) {
  At at = g->at;
  at.e = odd == 1 ? "e + 1" : "e";
  at.odd = g->packed ? odd : -1;
  at.r = (Txt){g->rows ? "sc_row(e)" : NULL, P_ATOM};
  return at;
}

// The address that stmatrix and ldmatrix take from this lane: a row of block n, of 16 rows and 16
// columns, of a 16-bit stage. In a loop the lane's part of it may wait in a register. Elsewhere it
// is worked out anew, as ptxas would keep it, in memory if need be, through the loops of a tile.
// (Panels of 32 bytes are as wide as a block: no two blocks have a part in common.)
const char *cu_fragment_at(const MapGen *g, const View *v) {
  Cuda *c = g->c;
  bool common = c->k->buf.at[v->buf].swizzle > 32 && cu_multiple(c, v->at[1].base, 16);
  const char *warp = "$warp", *lane = "$lane";
  if (common && !c->loops) {
    const char *here = cu_temp(c, "at");
    cu_var(c, "const int %s = sc_here(32 * $warp + $lane);", here);
    warp = cu_text(c, "(%s >> 5)", here);
    lane = cu_text(c, "(%s & 31)", here);
  }
  Txt row = cu_sum(c, cu_block_at(c, &g->at),
                   (Txt){cu_text(c, "16 * %s + (%s & 15)", warp, lane), P_ADD});
  Txt cols = {"16 * n", P_MUL}, mine = {cu_text(c, "8 * (%s >> 4)", lane), P_MUL};
  row = cu_from(c, v->at[0].base, row);
  if (common) return cu_stage_lane(c, v, row, cu_from(c, v->at[1].base, cols), mine);
  return cu_stage_elem(c, v, row, cu_from(c, v->at[1].base, cu_sum(c, cols, mine)));
}

// Reads two columns of each of the thread's rows ahead.
static void read_pairs(MapGen *g, const Ahead *y, const View *v) {
  Cuda *c = g->c;
  const Buf *b = &c->k->buf.at[v->buf];
  At at = cu_row_at(g, cu_int(c, 0));
  const char *from =
      cu_stage_lane(c, v, cu_from(c, v->at[0].base, cu_row(c, &at)),
                    cu_from(c, v->at[1].base, (Txt){"8 * n", P_MUL}), (Txt){"$col0", P_NAME});
  cu_var(c, "%s %s[4];", cu_held(b->elem), y->name);
  cu_line(c, "sc_pairs_%s(%s, %u, %s);", sc_elem[b->elem].text, from, cu_rows_apart(b), y->name);
}

i64 cu_read_at_once(const MapGen *g) {
  i64 n = 8;
  while (g->cols / 8 % n) n /= 2;
  return n;
}

// Reads rows of a tensor ahead, several groups of eight columns at once, where the loop comes to
// one that has not been read.
static void read_rows(MapGen *g, const Ahead *y, i64 from) {
  Cuda *c = g->c;
  const char *elem = sc_elem[c->k->buf.at[c->k->view.at[y->view].buf].elem].text;
  const char *first = "8 * n";
  i64 n = cu_read_at_once(g);
  if (from / 8 % n) {
    first = cu_text(c, "8 * (n - n %% %lld)", (long long)n);
    cu_open(c, "if (n %% %lld == 0 || n == %lld)", (long long)n, (long long)(from / 8));
  } else if (n > 1) {
    cu_open(c, "if (n %% %lld == 0)", (long long)n);
  }
  if (y->move == MOVE_PAIRS) {
    cu_line(c, "sc_load_pairs_%s(%s, %s, %s);", elem, y->rows, first, y->at);
  } else {
    cu_line(c, "sc_load_wide_%s<%s>(%s, %s, $lane & 3, %s);", elem,
            y->move == MOVE_WIDE ? "false" : "true", y->rows, first, y->at);
  }
  if (n > 1) cu_close(c);
}

static void read_ahead(MapGen *g, const Ahead *y, i64 from) {
  Cuda *c = g->c;
  const View *v = &c->k->view.at[y->view];
  const Buf *b = &c->k->buf.at[v->buf];
  if (b->space == SP_TENSOR && y->move != MOVE_VECTOR4) {
    read_rows(g, y, from);
    return;
  }
  if (y->move == MOVE_PAIRS) {
    read_pairs(g, y, v);
    return;
  }
  if (y->move == MOVE_VECTOR4) {
    cu_var(c, "float %s[4];", y->name);
    cu_line(c, "sc_load4(%s + 512 * n, %s);", y->at, y->name);
    return;
  }
  Txt at = cu_from(c, v->at[0].base, (Txt){"8 * n + $col0", P_ADD});
  cu_var(c, "const float2 %s = sc_pair_%s(%s);", y->name, sc_elem[b->elem].text,
         cu_stage_elem(c, v, at, (Txt){0}));
}

void cu_open_elems(MapGen *g, Columns columns) {
  Cuda *c = g->c;
  const char *step = g->packed ? " += 2" : "++";
  cu_remark(c, "#pragma unroll");
  if (!g->ahead.n) {
    cu_open(c, "for (int e = %lld; e < %lld; e%s)", (long long)columns.from / 2,
            (long long)columns.to / 2, step);
    return;
  }
  cu_open(c, "for (int n = %lld; n < %lld; n++)", (long long)columns.from / 8,
          (long long)columns.to / 8);
  for (u32 i = 0; i < g->ahead.n; i++) read_ahead(g, &g->ahead.at[i], columns.from);
  cu_remark(c, "#pragma unroll");
  cu_open(c, "for (int e = 4 * n; e < 4 * n + 4; e%s)", step);
}

void cu_close_elems(MapGen *g) {
  if (g->ahead.n) cu_close(g->c);
  cu_close(g->c);
}
