// tile.c - where the elements of tiles are: in which thread and register, at which byte of a stage,
// at which element of a tensor. A register tile [64 b, n] has the layout of wgmma's accumulator, so
// that products use it as it is: element e of a thread is in row 16 warp + lane / 4 + 8 (e / 2 % 2)
// and column 8 (e / 4) + 2 (lane % 4) + e % 2 (PTX ISA 9.0, wgmma, D fragment).
//
// Called by the files of statements and by expr.c; calls expr.c for positions, inside.c and stmt.c.
#include "compiler/emit/emit.h"

u32 cu_block_rows(const Cuda *c) { return sc_block_rows(c->k->role.at[c->r].warps); }

u32 cu_array(const Cuda *c, u32 buf) {
  const Buf *b = &c->k->buf.at[buf];
  if (b->layout == LAY_ACC) return sc_block_elems(c->k, b) * sc_elem[b->elem].bytes / 4;
  return sc_blocks(c->k, b) * sc_block_elems(c->k, b);
}

// ---- where a thread's element is

const char *cu_block(Cuda *c, u32 buf, const char *block) {
  const char *name = c->name[buf];
  return sc_blocks(c->k, &c->k->buf.at[buf]) > 1 ? cu_text(c, "%s[%s]", name, block) : name;
}

Txt cu_block_at(Cuda *c, const At *at) {
  if (at->block.known) return cu_int(c, cu_block_rows(c) * at->block.value);
  return (Txt){cu_text(c, "%u * %s", cu_block_rows(c), at->block.s), P_MUL};
}

Txt cu_row(Cuda *c, const At *at) {
  if (!at->r.s) return (Txt){"row", P_NAME};  // maps without register tiles name their own
  Txt below =
      at->r.known ? cu_int(c, 8 * at->r.value) : (Txt){cu_text(c, "8 * %s", at->r.s), P_MUL};
  return cu_sum(c, cu_sum(c, (Txt){"$row0", P_NAME}, cu_block_at(c, at)), below);
}

const char *cu_col_step(Cuda *c, const At *at) { return cu_text(c, "sc_col(%s)", at->e); }

Txt cu_col(Cuda *c, const At *at) {
  return at->e ? (Txt){cu_text(c, "$col0 + %s", cu_col_step(c, at)), P_ADD} : (Txt){"col", P_NAME};
}

const char *cu_of(Cuda *c, Elem elem, const char *bits) {
  if (!sc_is_narrow(elem)) return bits;
  return cu_text(c, "sc_of_%s(%s)", sc_elem[elem].text, bits);
}

const char *cu_to(Cuda *c, Elem elem, const char *value) {
  if (!sc_is_narrow(elem)) return value;
  return cu_text(c, "sc_to_%s(%s)", sc_elem[elem].text, value);
}

// How the functions end that load and store an element of a stage.
static const char *width_of(const Buf *b) {
  u32 bytes = sc_elem[b->elem].bytes;
  return b->elem == EL_I32 ? "_i32" : bytes == 1 ? "8" : bytes == 2 ? "16" : "32";
}

void cu_store(Cuda *c, const Buf *b, const char *to, const char *value) {
  cu_line(c, "sc_sts%s(%s, %s);", width_of(b), to, cu_to(c, (Elem)b->elem, value));
}

static const char *reg_elem(Cuda *c, const At *at, const View *v) {
  const Buf *b = &c->k->buf.at[v->buf];
  const char *name = c->name[v->buf];
  if (b->layout == LAY_ROW) {
    const char *elem = cu_is(at->block, 0)
                           ? cu_text(c, "%s[%s]", name, at->r.s)
                           : cu_text(c, "%s[2 * %s + %s]", name, at->block.s, at->r.s);
    if (!b->partial || at->parts) return elem;
    return cu_text(c, "sc_quad_sum(%s)", elem);
  }
  if (b->layout == LAY_COL) return cu_text(c, "%s[2 * (%s >> 2) + (%s & 1)]", name, at->e, at->e);
  i64 shift = 0;
  if (v->at[1].base) x_const_int(c->k, v->at[1].base, &shift);
  const char *e = shift ? cu_text(c, "%s + %lld", at->e, (long long)shift / 2) : at->e;
  name = cu_block(c, v->buf, at->block.s);
  if (sc_elem[b->elem].bytes == 4) return cu_text(c, "%s[%s]", name, e);
  if (sc_elem[b->elem].bytes == 1) {
    return cu_of(
        c, (Elem)b->elem,
        cu_text(c, "%s[2 * (%s >> 3) + (%s >> 1 & 1)] >> 8 * (2 * (%s >> 2 & 1) + (%s & 1)) & 0xff",
                name, e, e, e, e));
  }
  const char *pair = at->odd == 1 && !shift ? "e" : e;  // the loop is over pairs
  const char *word = cu_text(c, shift ? "%s[(%s) / 2]" : "%s[%s / 2]", name, pair);
  if (at->odd < 0)
    return cu_of(c, (Elem)b->elem, cu_text(c, "%s >> 16 * (%s & 1) & 0xffff", word, e));
  return cu_of(c, (Elem)b->elem, cu_text(c, at->odd ? "%s >> 16" : "%s & 0xffff", word));
}

// ---- stages

const char *cu_stage(Cuda *c, const View *v) {
  const Buf *b = &c->k->buf.at[v->buf];
  const Ring *r = &c->k->ring.at[b->ring];
  const char *base = cu_text(c, "$smem + $%s", c->name[v->buf]);
  const char *apart = cu_text(
      c, sc_stages_apart(r, b) == r->stage_bytes ? "$%s_bytes" : "$%s_vectors", c->ring[b->ring]);
  if (r->owner != SC_NONE) {
    const char *each = apart;
    if (r->stages > 1) each = cu_text(c, "(%u * %s)", r->stages, each);
    base = cu_text(c, "%s + $instance * %s", base, each);
  }
  if (r->stages == 1) return base;
  return cu_text(c, "%s + %s_%s * %s", base, c->ring[b->ring], v->fill ? "fill" : "held", apart);
}

const char *cu_stage_elem(Cuda *c, const View *v, Txt row, Txt col) {
  const Buf *b = &c->k->buf.at[v->buf];
  u32 bytes = sc_elem[b->elem].bytes;
  const char *stage = cu_stage(c, v);
  if (b->rank == 1) return cu_text(c, "%s + %u * %s", stage, bytes, cu_paren(c, row, P_MUL + 1));
  if (b->permuted) col = (Txt){cu_text(c, "sc_order8(%s)", col.s), P_ATOM};
  if (!b->swizzle)
    return cu_text(c, "%s + %u * (%s * %lld + %s)", stage, bytes, cu_paren(c, row, P_MUL),
                   (long long)b->ext[1], cu_paren(c, col, P_ADD));
  const char *byte = bytes == 1 ? col.s : cu_text(c, "%u * %s", bytes, cu_paren(c, col, P_MUL + 1));
  return cu_text(c, "sc_at<%u, %lld>(%s, %s, %s)", b->swizzle, (long long)sc_stage_rows(b), stage,
                 row.s, byte);
}

u32 cu_rows_apart(const Buf *part) { return 8 * sc_panel_bytes(part); }

// The address of columns of a stage of which a lane has those from `mine` on, in each group of
// columns that begins at `first`; the two have no bit in common. Lane and row decide one part of
// the address, which is the same for all groups of a panel; `first` decides other bits.
const char *cu_stage_lane(Cuda *c, const View *v, Txt row, Txt first, Txt mine) {
  const Buf *b = &c->k->buf.at[v->buf];
  u32 bytes = sc_elem[b->elem].bytes;
  if (!b->swizzle || sc_stage_rows(b) * b->swizzle % 1024)
    return cu_stage_elem(c, v, row, cu_sum(c, first, mine));
  return cu_text(c, "sc_at_lane<%u, %lld>(%s, %s, %u * %s, %u * %s)", b->swizzle,
                 (long long)sc_stage_rows(b), cu_stage(c, v), row.s, bytes,
                 cu_paren(c, mine, P_MUL + 1), bytes, cu_paren(c, first, P_MUL + 1));
}

// base + x, or x alone if there is no base.
Txt cu_from(Cuda *c, Xid base, Txt x) {
  return base ? (Txt){cu_text(c, "%s + %s", cu_paren(c, cu_expr(c, NULL, base), P_ADD),
                              cu_paren(c, x, P_ADD)),
                      P_ADD}
              : x;
}

// Position p of a view as an integer expression.
Txt cu_position(Cuda *c, const At *at, const Pos *p) {
  if (at->row_named && p->var >= 0 && (int)p->var == at->row && p->base == at->row_base)
    return (Txt){"row", P_NAME};
  if (p->var >= 0)
    return cu_from(c, p->base, (int)p->var == at->row ? cu_row(c, at) : cu_col(c, at));
  return p->base ? cu_expr(c, NULL, p->base) : cu_int(c, 0);
}

static const char *stage_load(Cuda *c, const At *at, const View *v) {
  const Buf *b = &c->k->buf.at[v->buf];
  const char *addr =
      cu_stage_elem(c, v, cu_position(c, at, &v->at[0]), cu_position(c, at, &v->at[b->rank - 1]));
  return cu_of(c, (Elem)b->elem, cu_text(c, "sc_lds%s(%s)", width_of(b), addr));
}

// ---- tensors
//
// A blocked workspace [.., rows, cols] consists of blocks of 64 rows and 8 columns. The blocks of
// the first 64 rows come first. Within a block elements are in the order of a warpgroup's
// accumulator: four elements of a thread, then four of the next thread. So a warp that moves a
// register tile accesses 512 consecutive bytes at a time.

// What lies at FAR or beyond is outside of all tensors, as their dimensions have room in 32 bits
// (launchrange.c). It stays there, and what is added to it fits.
Txt cu_near(Cuda *c, Xid base) {
  enum { FAR = 0x7ffe0000 };
  Txt x = cu_uniform(c, base);
  return cu_any_int(c, base) ? (Txt){cu_text(c, "min(%s, 0x%x)", x.s, FAR), P_ATOM} : x;
}

Txt cu_coordinate(Cuda *c, const At *at, const Pos *p) {
  bool named = at->row_named && (int)p->var == at->row && p->base == at->row_base;
  if (p->var < 0 || named || !cu_any_int(c, p->base)) return cu_position(c, at, p);
  return cu_sum(c, cu_near(c, p->base), (int)p->var == at->row ? cu_row(c, at) : cu_col(c, at));
}

static i64 columns(Cuda *c, const Buf *b) {
  i64 n = 0;
  x_const_int(c->k, b->dim[b->rank - 1], &n);
  return n;
}

static const char *stride(Cuda *c, u32 buf, u32 dim) {
  return cu_text(c, "$%s", cu_stride_name(c, buf, dim));
}

const char *cu_offset(Cuda *c, const At *at, const View *v) {
  Str s = {.sc = c->sc};
  const Buf *b = &c->k->buf.at[v->buf];
  if (b->blocked) {
    const char *row = cu_coordinate(c, at, &v->at[v->rank - 2]).s,
               *col = cu_coordinate(c, at, &v->at[v->rank - 1]).s;
    str_printf(&s, "sc_block_at<%lld>(%s, %s)", (long long)columns(c, b), row, col);
  }
  for (u32 d = 0; d + (b->blocked ? 2 : 0) < v->rank; d++) {
    Txt p = cu_coordinate(c, at, &v->at[d]);
    if (cu_is(p, 0)) continue;
    if (s.n) str_puts(&s, " + ");
    if (d + 1 == v->rank) str_puts(&s, cu_paren(c, p, P_ADD));
    else str_printf(&s, "%s * %s", cu_paren(c, p, P_MUL), stride(c, v->buf, d));
  }
  return s.n ? s.at : "0";
}

const char *cu_vector4(Cuda *c, const At *at, const View *v, const char *thread) {
  const Buf *b = &c->k->buf.at[v->buf];
  const Pos *row = &v->at[v->rank - 2], *col = row + 1;
  Str s = {.sc = c->sc};
  str_printf(&s, "args.%s + 4 * %s", c->name[v->buf], thread);
  for (u32 d = 0; d + 2 < v->rank; d++) {
    Txt p = cu_coordinate(c, at, &v->at[d]);
    if (!cu_is(p, 0)) str_printf(&s, " + %s * %s", cu_paren(c, p, P_MUL), stride(c, v->buf, d));
  }
  if (row->base)
    str_printf(&s, " + %s * %lldll", cu_paren(c, cu_expr(c, NULL, row->base), P_MUL),
               (long long)columns(c, b));
  if (col->base) str_printf(&s, " + %s * 64", cu_paren(c, cu_expr(c, NULL, col->base), P_MUL));
  if (!cu_is(at->block, 0))
    str_printf(&s, " + %s * %lld", at->block.s, (long long)columns(c, b) * 64);
  return s.at;
}

static const char *tensor_load(Cuda *c, const At *at, const View *v) {
  const Buf *b = &c->k->buf.at[v->buf];
  static const At nowhere = {.row = -1, .col = -1};
  if (!at) at = &nowhere;
  c->by_thread[v->buf] = true;
  const char *elem = cu_text(c, "args.%s[%s]", c->name[v->buf], cu_offset(c, at, v));
  elem = cu_of(c, (Elem)b->elem, elem);
  const char *in = cu_inside(c, at, v, true, true);
  return in ? cu_text(c, "(%s ? %s : 0)", in, elem) : elem;
}

const char *cu_load(Cuda *c, const At *at, u32 view) {
  const View *v = &c->k->view.at[view];
  switch (c->k->buf.at[v->buf].space) {
    case SP_REG: return reg_elem(c, at, v);
    case SP_STAGE: return stage_load(c, at, v);
    default: return tensor_load(c, at, v);
  }
}
