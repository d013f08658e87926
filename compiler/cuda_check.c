// cuda_check.c - what the emitter cannot write yet, found before it writes anything: a kernel that passes here is
// written right, one that does not is reported (G.emit) and not written at all. In: a kernel after `place`, with the
// layouts of its register tiles. Out: reports, and which stage parts are permuted.
#include "cuda.h"
#include "place.h"

#include <string.h>

typedef struct Check {
  Cuda *c;
  const Kernel *k;
  u32 before;  // errors
} Check;

enum { BOX = 256, MAP_RANK = 5, ROW_BYTES = 16 };

static const Buf *buf_of(const Check *x, u32 view) { return &x->k->buf.at[x->k->view.at[view].buf]; }

static void cannot(Check *x, Span at, const char *what, const char *name, const char *help) {
  Diag *d = sc_report(x->c->sc, D_G_EMIT, at, "%s%s%s%s", name ? "'" : "", name ? name : "", name ? "' " : "", what);
  if (help) sc_help(x->c->sc, d, "%s", help);
}

// ---- register tiles

static void check_tile(Check *x, u32 buf) {
  const Buf *b = &x->k->buf.at[buf];
  const u32 rows = 16u * x->k->role.at[b->role].warps;
  const char *pad = rows == 64 ? "pad it to a multiple of 64 rows" : "pad it to a multiple of 16 rows";
  if (b->rank > 2) cannot(x, b->span, "is a register tile of more than two dimensions", b->name, NULL);
  else if (x->c->layout[buf] != LAY_COL && b->ext[0] % rows) cannot(x, b->span, "is a register tile without whole blocks of rows", b->name, pad);
  else if (x->c->layout[buf] == LAY_COL && b->ext[0] % 8) cannot(x, b->span, "is a vector along columns, and their number is no multiple of 8", b->name, NULL);
  else if (b->rank == 2 && b->ext[1] % (sc_elem[b->elem].bytes == 1 ? 16 : 8)) cannot(x, b->span, "is a register tile whose columns are no multiple of 8 (16, of 8-bit elements)", b->name, NULL);
  if (b->partial && x->c->layout[buf] == LAY_COL) cannot(x, b->span, "is partial, and runs along columns", b->name, NULL);
}

// ---- element by element

typedef struct Oriented {
  int row, col;
  bool regs, reductions;  // register tiles take part; two reductions along columns do
} Oriented;

// The statement's row and column variable, as register tiles have them. They must agree.
static bool orient(Check *x, const Map *m, const u32 *views, u32 n, Oriented *o) {
  *o = (Oriented){-1, -1, false, false};
  for (u32 i = 0; i < n; i++) {
    const View *v = &x->k->view.at[views[i]];
    if (buf_of(x, views[i])->space != SP_REG) continue;
    o->regs = true;
    u8 lay = x->c->layout[v->buf];
    int row = lay == LAY_COL ? -1 : v->at[0].var, col = lay == LAY_ACC ? v->at[1].var : lay == LAY_COL ? v->at[0].var : -1;
    o->reductions = col >= m->outs && o->col >= m->outs && col != o->col;
    if ((row >= 0 && o->row >= 0 && row != o->row) || (col >= 0 && o->col >= 0 && col != o->col)) return false;
    if (row >= 0) o->row = row;
    if (col >= 0) o->col = col;
  }
  return o->row < 0 || o->row != o->col;
}

// A thread's elements are of whole blocks of rows and columns, whatever they are for.
static void check_blocks(Check *x, const Map *m, const Oriented *o) {
  const i64 rows = 16 * x->k->role.at[x->c->r].warps;
  int row = o->row, col = o->col;
  cu_left_over(m, &row, &col);
  for (int var = 0; var < m->outs; var++) {
    i64 n = 0, whole = var == row ? rows : 8;
    if (!x_const_int(x->k, m->var[var].extent, &n) || n % whole == 0) continue;
    const char *what = sc_printf(x->c->sc, "a statement with values in registers, and '%s' runs over %lld, no multiple of %lld", m->var[var].name, (long long)n, (long long)whole);
    const char *help = sc_printf(x->c->sc, "go through a register tile where '%s' runs over %lld: outside of a tensor nothing is written", m->var[var].name, (long long)((n + whole - 1) / whole * whole));
    cannot(x, m->span, what, NULL, help);
  }
}

static void check_access(Check *x, u32 view) {
  const View *v = &x->k->view.at[view];
  const Buf *b = buf_of(x, view);
  if (b->space == SP_STAGE && b->rank > 2) cannot(x, v->span, "has more than two dimensions, and threads access it", b->name, NULL);
  if (b->space == SP_REG && x->c->layout[v->buf] == LAY_ACC) {
    if (v->at[0].var < 0 || v->at[1].var < 0) cannot(x, v->span, "is a register tile, and one row or column of it is named", b->name, "put it through a ring");
    if (sc_elem[b->elem].bytes == 1 && v->at[1].base) cannot(x, v->span, "is an 8-bit register tile, and some of its columns are named", b->name, NULL);
  }
  if (b->space == SP_REG && b->rank == 1 && v->at[0].var < 0) cannot(x, v->span, "is in registers, and one element of it is named", b->name, "put it through a ring");
}

// A tile whose rows are reduced need not be in registers: a vector there that runs along them says which thread has which.
static void check_reduction(Check *x, const Map *m, const Oriented *o, const Expr *e) {
  i64 cols = 0;
  x_const_int(x->k, m->var[e->ref].extent, &cols);
  if (!o->regs) {
    cannot(x, m->span, "a reduction of which nothing is in registers", NULL, "reduce into a vector there first: reg z : f32[64], z[i] = …");
  } else if (o->row < 0 || (o->col >= 0 ? (int)e->ref != o->col : (int)e->ref == o->row)) {
    cannot(x, m->span, "a reduction that does not run along the rows of a register tile", NULL,
           "put the tile through a ring, from which any thread reads any element, into one whose columns are reduced");
  } else if (o->col < 0 && cols % 8) {
    cannot(x, m->span, "a reduction of rows whose length is no multiple of 8", NULL, "pad them");
  } else if (e->ty == TY_INT) {
    cannot(x, m->span, "a reduction of integers", NULL, NULL);
  }
}

// Operands have smaller numbers, so one walk down the table sees what the statement is made of.
static void check_reductions(Check *x, const Map *m, const Oriented *o) {
  u8 *reached = sc_new(x->c->sc, x->k->expr.n + 1);
  reached[m->root] = reached[m->cond] = 1;
  for (Xid i = m->root > m->cond ? m->root : m->cond; i > 0; i--) {
    const Expr *e = &x->k->expr.at[i];
    if (!reached[i]) continue;
    if (e->op == X_SUM || e->op == X_RMAX || e->op == X_RMIN) check_reduction(x, m, o, e);
    const Xid arg[] = {e->a, e->b, e->c};
    for (u32 n = 0; n < sc_xop[e->op].arity; n++) reached[arg[n]] = 1;
  }
}

// Are both sums of the same and a number? Those numbers.
static bool from_same(const Kernel *k, Xid a, Xid b, i64 *p, i64 *q) {
  const Xid of[] = {a, b};
  Xid rest[] = {a, b};
  i64 *by[] = {p, q};
  for (u32 i = 0; i < 2; i++) {
    const Expr *e = &k->expr.at[of[i]];
    *by[i] = 0;
    if (x_const_int(k, of[i], by[i])) rest[i] = 0;
    else if (e->op == X_ADD && x_const_int(k, e->b, by[i])) rest[i] = e->a;
    else if (e->op == X_ADD && x_const_int(k, e->a, by[i])) rest[i] = e->b;
    else if (e->op == X_SUB && x_const_int(k, e->b, by[i])) rest[i] = e->a, *by[i] = -*by[i];
  }
  return rest[0] == rest[1];
}

// May a thread read an element through view `from` that another writes through `to`?
static bool reads_others(const Check *x, const Map *m, const View *to, const View *from) {
  bool same = true;
  if (to->buf != from->buf || to->fill != from->fill) return false;
  for (u32 d = 0; d < to->rank; d++) {
    i64 p, q, n[2] = {1, 1};
    if (to->at[d].var == from->at[d].var && to->at[d].base == from->at[d].base) continue;
    same = false;
    if (to->at[d].var >= 0) x_const_int(x->k, m->var[to->at[d].var].extent, &n[0]);
    if (from->at[d].var >= 0) x_const_int(x->k, m->var[from->at[d].var].extent, &n[1]);
    if (from_same(x->k, to->at[d].base, from->at[d].base, &p, &q) && (p + n[0] <= q || q + n[1] <= p)) return false;
  }
  return !same;
}

// The right side is read whole before the left is written: by each thread, which does not wait for the others. (In
// registers nobody has another's elements.)
static void check_overlap(Check *x, const Map *m, const u32 *views, u32 n) {
  const View *dst = &x->k->view.at[m->dst];
  const Buf *b = buf_of(x, m->dst);
  if (b->space == SP_REG) return;
  for (u32 i = 0; i < n; i++) {
    const View *v = &x->k->view.at[views[i]];
    if (!reads_others(x, m, dst, v)) continue;
    bool stage = b->space == SP_STAGE;
    cannot(x, v->span, "is read at other elements than those that the same statement writes", b->name,
           stage ? "read it into a register tile first, and write it in a statement of its own" : "write into another tensor");
    return;
  }
}

static void check_add(Check *x, const Map *m, const Oriented *o) {
  const View *v = &x->k->view.at[m->dst];
  const Buf *b = buf_of(x, m->dst);
  bool row = false;
  for (u32 d = 0; d < v->rank; d++) row |= o->row >= 0 && v->at[d].var == o->row;
  if (b->elem != EL_F32 && b->elem != EL_I32) cannot(x, m->span, "is added to, and has elements of less than 32 bits", b->name, "add in f32, and convert after");
  if (o->regs && !row) cannot(x, m->span, "is added to from a vector along columns, which many threads hold", b->name, "put it through a ring");
}

static void check_map(Check *x, const Map *m, bool add) {
  u32 views[64], n;
  Oriented o;
  cu_map_views(x->c, m, views, &n, COUNT(views));
  if (n == COUNT(views)) cannot(x, m->span, "a statement that reads 64 places", NULL, "split it");
  for (u32 i = 0; i < n; i++) check_access(x, views[i]);
  if (!orient(x, m, views, n, &o)) {
    if (o.reductions) cannot(x, m->span, "two reductions in a statement", NULL, "put one of them into a vector first");
    else cannot(x, m->span, "register tiles that are rows by columns here and columns by rows there", NULL, "a transpose goes through a ring");
    return;
  }
  if (m->vars > 2) cannot(x, m->span, "a statement over more than two indices", NULL, "read into a register tile first, and reduce that");
  if (o.regs) check_blocks(x, m, &o);
  check_reductions(x, m, &o);
  if (m->dst != SC_NONE) check_overlap(x, m, views, n);
  if (add) check_add(x, m, &o);
  bool to_tensor = m->dst != SC_NONE && buf_of(x, m->dst)->space == SP_TENSOR;
  if (m->cond && m->dst != SC_NONE && !to_tensor) cannot(x, m->span, "a condition on a write into registers or a stage", NULL, "select with where()");
}

// ---- products

static void check_operand(Check *x, u32 view, bool warp) {
  const View *v = &x->k->view.at[view];
  const Buf *b = buf_of(x, view);
  if (b->space == SP_STAGE && (b->rank != 2 || !b->swizzle)) cannot(x, v->span, "is an operand, and its rows are no multiple of 32 bytes", b->name, NULL);
  if (b->space == SP_REG && warp) cannot(x, v->span, "is the operand of a product by warps, and in registers", b->name, "put it through a ring");
  if (b->space == SP_REG && sc_elem[b->elem].bytes == 4) cannot(x, v->span, "is an operand, and has 32-bit elements", b->name, "convert it into a tile of 16 bits");
}

// An operand is read across panels from the start of one. A slice that starts within a panel ends there: only where that
// is a constant, and slices of the contracted index are whole 32 bytes, each of these may be in a panel of its own.
// `extent`: its columns. Warps read 16 bytes of a row at once.
static void check_slice(Check *x, u32 view, i64 extent, bool warp) {
  const View *v = &x->k->view.at[view];
  const Buf *b = buf_of(x, view);
  if (b->space != SP_STAGE || b->rank != 2 || !b->swizzle || !v->at[1].base) return;
  i64 bytes = sc_elem[b->elem].bytes, panel = warp ? ROW_BYTES : b->swizzle, start;
  if (x_const_int(x->k, v->at[1].base, &start)) {
    i64 within = start * bytes % panel;
    if (!within || (within % ROW_BYTES == 0 && within + extent * bytes <= panel)) return;
    if (!warp && within % 32 == 0 && !cu_mn_major(x->k, view)) return;
  } else {
    i64 apart = panel;  // starts are multiples of so many bytes
    while (apart >= ROW_BYTES && !cu_multiple(x->k, v->at[1].base, apart / bytes)) apart /= 2;
    if (apart == panel || (apart >= ROW_BYTES && extent * bytes <= apart)) return;
  }
  const char *what = warp ? "is an operand, and may start at a column that is no multiple of 16 bytes" : "is an operand, and may start within one panel and end in another";
  const char *help = sc_printf(x->c->sc, warp ? "begin at a multiple of %lld columns" : "begin at a multiple of %lld columns, or end before the next", (long long)(panel / bytes));
  cannot(x, v->span, what, b->name, help);
}

static void check_product(Check *x, const Product *p, bool warp) {
  const Buf *a = buf_of(x, p->a), *b = buf_of(x, p->b), *dst = buf_of(x, p->dst);
  const View *bv = &x->k->view.at[p->b], *av = &x->k->view.at[p->a];
  i64 bytes = sc_elem[b->elem].bytes, chunks = (p->n + 255) / 256;
  check_operand(x, p->a, warp);
  check_operand(x, p->b, warp);
  check_slice(x, p->a, cu_mn_major(x->k, p->a) ? p->m : p->k, warp);
  check_slice(x, p->b, cu_mn_major(x->k, p->b) ? p->n : p->k, warp);
  if (a->elem != b->elem && (bytes != 1 || sc_elem[a->elem].bytes != 1)) cannot(x, p->span, "a product of different element types", NULL, NULL);
  if (dst->elem != EL_F32) cannot(x, p->span, "is the result of a product, and not f32", dst->name, NULL);
  if (p->k * bytes % 32) cannot(x, p->span, "a product whose contracted index is no multiple of 32 bytes", NULL, NULL);
  if (!warp) {
    if (p->n % 8 || p->n % chunks || p->n / chunks % 8) cannot(x, p->span, "a product of this width", NULL, "take a multiple of 8 columns (above 256: that divides into equal parts of them)");
    return;
  }
  if (bytes != 2) cannot(x, p->span, "a product by warps of 8-bit elements", NULL, NULL);
  if (p->n % 16) cannot(x, p->span, "a product by warps whose columns are no multiple of 16", NULL, NULL);
  if (bv->at[1].var != 2 || av->at[1].var != 2) cannot(x, p->span, "a product by warps with an operand whose contracted index is not the last", NULL, NULL);
  if (cu_blocks(x->c, dst) > 1) cannot(x, p->span, "a product by warps of more than 16 rows each", NULL, NULL);
}

// An 8-bit tile in registers is the operand as its columns lie there: what it meets is stored in that order.
static void permute(Check *x) {
  const Kernel *k = x->k;
  for (u32 i = 0; i < k->product.n; i++) {
    const Product *p = &k->product.at[i];
    const Buf *a = buf_of(x, p->a);
    if (a->space == SP_REG && sc_elem[a->elem].bytes == 1) x->c->permuted[k->view.at[p->b].buf] = true;
  }
  for (u32 i = 0; i < k->product.n; i++) {
    const Product *p = &k->product.at[i];
    const Buf *a = buf_of(x, p->a);
    bool held = a->space == SP_REG && sc_elem[a->elem].bytes == 1;
    if (x->c->permuted[k->view.at[p->a].buf] || (x->c->permuted[k->view.at[p->b].buf] && !held)) {
      cannot(x, p->span, "a stage that meets 8-bit operands from registers and from shared memory", NULL, NULL);
    }
  }
}

// ---- copies

static void check_copy(Check *x, u32 tensor, u32 stage) {
  const View *v = &x->k->view.at[tensor];
  const Buf *t = buf_of(x, tensor), *part = buf_of(x, stage);
  u32 bytes = sc_elem[part->elem].bytes, width = cu_panel(part) / bytes;
  if (t->rank > MAP_RANK) cannot(x, v->span, "has more than five dimensions, and is copied", t->name, NULL);
  if (cu_panel(part) % ROW_BYTES) cannot(x, v->span, "is copied into, and its rows are no multiple of 16 bytes", part->name, NULL);
  if (width > BOX) cannot(x, v->span, "is copied into, and its rows are too long for one copy", part->name, "at most 256 elements, or rows of whole 128 bytes");
  for (u32 d = 0; d + 1 < part->rank; d++) {
    if (part->ext[d] > BOX) cannot(x, v->span, "is copied into, and has more than 256 rows", part->name, "copy it in two slices");
  }
  if (x->c->permuted[x->k->view.at[stage].buf]) {
    cannot(x, v->span, "is copied, and meets an 8-bit operand in registers, whose columns are in another order", part->name, "let threads fill the stage");
  }
}

// CTAs of a cluster bring shares of a stage: of its panels, or of each panel's rows. The pattern of a swizzle begins
// anew every eight rows, and without one a copy goes to a multiple of 128 bytes.
static void check_share(Check *x, u32 tensor, u32 stage) {
  const Buf *part = buf_of(x, stage);
  i64 ctas = sc_cluster(x->k), rows = cu_rows(part) / ctas, width = cu_panel(part);
  i64 panels = part->ext[part->rank - 1] * sc_elem[part->elem].bytes / width;
  if (panels % ctas == 0 || (part->swizzle ? rows % 8 == 0 : rows * width % 128 == 0)) return;
  const char *what = sc_printf(x->c->sc, "is brought by %lld CTAs, each of which would take %lld %s", (long long)ctas,
                               (long long)rows, rows == 1 ? "row" : "rows");
  const char *help = part->swizzle ? "make that a multiple of 8" : "make that a multiple of 128 bytes";
  cannot(x, x->k->view.at[tensor].span, what, part->name, help);
}

// ---- all of it

static void check_turn(Check *x, const Turn *t) {
  if (!t->active || t->axis != SC_NONE) return;
  for (u32 m = 1; m < t->members; m++) {
    if (x->k->role.at[t->member[m]].warps != x->k->role.at[t->member[0]].warps) {
      cannot(x, t->span, "goes round roles of a warp and roles of a warpgroup", t->name, NULL);
    }
  }
}

static void check_memory(Check *x) {
  u32 want = cu_smem(x->c);
  if (want <= SMEM_LIMIT) return;
  const char *what = sc_printf(x->c->sc, "needs %u bytes of shared memory with --debug-waits, and a CTA has %d", want, SMEM_LIMIT);
  cannot(x, x->k->span, what, x->k->name, "look for the wait with smaller tiles, or with a stage fewer in a ring");
}

static void check_ins(Check *x, const Ins *ins) {
  switch (ins->op) {
    case OP_MAP: case OP_VOTE: check_map(x, &x->k->map.at[ins->arg[0]], false); break;
    case OP_MAPADD: check_map(x, &x->k->map.at[ins->arg[0]], true); break;
    case OP_MMA: check_product(x, &x->k->product.at[ins->arg[0]], false); break;
    case OP_MMAWARP: check_product(x, &x->k->product.at[ins->arg[0]], true); break;
    case OP_COPYIN:
      check_copy(x, ins->arg[1], ins->arg[0]);
      if (ins->flags & INS_MULTICAST) check_share(x, ins->arg[1], ins->arg[0]);
      break;
    case OP_COPYOUT: case OP_COPYADD: check_copy(x, ins->arg[0], ins->arg[1]); break;
    default: break;
  }
}

bool cu_check(Cuda *c) {
  Check x = {.c = c, .k = c->k, .before = c->sc->errors};
  permute(&x);
  check_memory(&x);
  for (u32 i = 0; i < c->k->buf.n; i++) {
    if (c->k->buf.at[i].space == SP_REG) check_tile(&x, i);
  }
  for (u32 i = 0; i < c->k->turn.n; i++) check_turn(&x, &c->k->turn.at[i]);
  for (u32 r = 0; r < c->k->role.n; r++) {
    c->r = r;
    const Code *code = &c->k->role.at[r].code;
    for (u32 i = 0; i < code->n; i++) check_ins(&x, &code->at[i]);
  }
  return c->sc->errors == x.before;
}
