// elems.c - the loop over the elements that a thread holds, in which an element-wise statement is
// written, and the position of the element at hand. Called by map.c and write.c; calls tile.c for
// what is read at the head of the loop's body, and stmt.c.
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

// Reads two columns of each of the thread's rows ahead.
static void read_pairs(MapGen *g, const Ahead *y, const View *v) {
  Cuda *c = g->c;
  const Buf *b = &c->k->buf.at[v->buf];
  At at = cu_row_at(g, cu_int(c, 0));
  const char *from = cu_stage_lane(c, v, cu_from(c, v->at[0].base, cu_row(c, &at)),
                                   cu_from(c, v->at[1].base, (Txt){"8 * n", P_MUL}),
                                   (Txt){"$col0", P_NAME});
  cu_var(c, "%s %s[4];", cu_held(b->elem), y->name);
  cu_line(c, "sc_pairs_%s(%s, %u, %s);", sc_elem[b->elem].text, from, cu_rows_apart(b), y->name);
}

static void read_ahead(MapGen *g, const Ahead *y) {
  Cuda *c = g->c;
  const View *v = &c->k->view.at[y->view];
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
  cu_var(c, "const float2 %s = sc_pair_%s(%s);", y->name, sc_elem[c->k->buf.at[v->buf].elem].text,
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
  for (u32 i = 0; i < g->ahead.n; i++) read_ahead(g, &g->ahead.at[i]);
  cu_remark(c, "#pragma unroll");
  cu_open(c, "for (int e = 4 * n; e < 4 * n + 4; e%s)", step);
}

void cu_close_elems(MapGen *g) {
  if (g->ahead.n) cu_close(g->c);
  cu_close(g->c);
}
