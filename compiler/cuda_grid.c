// cuda_grid.c - the loop over tiles: from a tile's number to its index along each axis, and for dynamic grids the
// draw of the next one.
#include "cuda.h"

#include <string.h>

// ---- roles by their form

// Run by one thread: it only copies and hands over.
bool cu_single(const Kernel *k, const Role *r) {
  for (u32 i = 0; i < r->code.n; i++) {
    u8 op = r->code.at[i].op;
    if (op == OP_MAP || op == OP_MAPADD || op == OP_MMA || op == OP_MMAWARP || op == OP_VOTE) return false;
    if (op == OP_TAKE && k->turn.at[r->code.at[i].arg[0]].axis == SC_NONE) return false;
  }
  return r->warps == 1;
}

u32 cu_warps(const Role *r) { return r->warps * r->instances; }

// ---- tiles

static const char *axis_name(Cuda *c, u32 i) { return cu_text(c, "%s_tile", c->k->axis.at[i].name); }

// The extent of an axis in clusters.
static const char *clusters(Cuda *c, const Axis *x, int prec) {
  Txt e = cu_expr(c, NULL, x->extent);
  if (x->cluster == 1) return cu_paren(c, e, prec);
  return cu_text(c, "((%s + %u) / %u)", cu_paren(c, e, P_ADD), x->cluster - 1, x->cluster);
}

const char *cu_axis_places(Cuda *c, u32 axis) {
  const Axis *x = &c->k->axis.at[axis];
  const char *n = clusters(c, x, P_MUL + 1);
  return x->cluster == 1 ? n : cu_text(c, "(%s * %u)", n, x->cluster);
}

// Tile number -> index along each axis: the first axis fastest, sections of a `by` axis slowest.
static void decode(Cuda *c) {
  const Kernel *k = c->k;
  const char *rest = "tile";
  u32 by = SC_NONE;
  for (u32 i = 0; i < k->axis.n; i++) {
    if (k->axis.at[i].section) by = i;
  }
  if (by != SC_NONE) {
    const Axis *x = &k->axis.at[by];
    Str others = {.sc = c->sc};
    for (u32 i = 0; i < k->axis.n; i++) {
      if (i != by) str_printf(&others, " * %s", clusters(c, &k->axis.at[i], P_MUL + 1));
    }
    const char *s = cu_paren(c, cu_expr(c, NULL, x->section), P_MUL + 1);
    cu_line(c, "const int section = tile / (%s%s), in_section = tile - section * (%s%s);", s, others.n ? others.at : "", s, others.n ? others.at : "");
    cu_line(c, "const int section_width = min(%s, %s - section * %s);", s, cu_paren(c, cu_expr(c, NULL, x->extent), P_ADD), s);
    rest = "in_section";
  }
  for (u32 i = 0; i < k->axis.n; i++) {
    const Axis *x = &k->axis.at[i];
    const char *extent = i == by ? "section_width" : clusters(c, x, P_MUL + 1);
    const char *whole = clusters(c, x, P_ADD);
    const char *at = i + 1 == k->axis.n ? rest : cu_text(c, "%s %% %s", rest, extent);
    if (i == by) at = cu_text(c, "section * %s + %s", cu_paren(c, cu_expr(c, NULL, x->section), P_MUL + 1), cu_paren(c, (Txt){at, P_MUL}, P_MUL));
    if (x->reversed) at = cu_text(c, "%s - 1 - (%s)", whole, at);
    if (x->cluster > 1) at = cu_text(c, "(%s) * %u + cta_rank", at, x->cluster);
    cu_line(c, "const int %s = %s;", axis_name(c, i), at);
    if (i + 1 < k->axis.n) {
      const char *next = cu_text(c, "rest%u", i);
      cu_line(c, "const int %s = %s / %s;", next, rest, extent);
      rest = next;
    }
  }
}

// The schedule's own names for uniform values (`let last = …`). Which of them a role uses is known at the end of
// the tile's text, so their lines are put in then, at `lets_at`.
static void name_lets(Cuda *c) {
  for (u32 i = 0; i < c->k->let.n; i++) {
    const Let *l = &c->k->let.at[i];
    const Expr *e = &c->k->expr.at[l->value];
    if (e->deps & (DEP_LOOP | DEP_IDX | DEP_TILE) || c->xname[l->value] || sc_xop[e->op].arity == 0) continue;
    c->xname[l->value] = sc_cuda_name(c->sc, l->name);
  }
  c->lets_at = c->out.n;
}

static void put_lets(Cuda *c) {
  Str body = c->out;
  const char **lines = NEWS(c->sc, const char *, c->k->let.n + 1);
  for (u32 i = c->k->let.n; i-- > 0;) {  // backwards: a value that is used may use earlier ones
    Xid x = c->k->let.at[i].value;
    const char *name = c->xname[x];
    if (!name || !c->xused[x] || strcmp(name, sc_cuda_name(c->sc, c->k->let.at[i].name))) continue;
    c->xname[x] = NULL;
    lines[i] = cu_text(c, "const %s %s = %s;", cu_ctype(c, x), name, cu_uniform(c, x));
  }
  c->out = (Str){.sc = c->sc};
  str_put(&c->out, body.at, c->lets_at);
  for (u32 i = 0; i < c->k->let.n; i++) {
    if (lines[i]) cu_line(c, "%s", lines[i]);
  }
  str_put(&c->out, body.at + c->lets_at, body.n - c->lets_at);
}

// CTAs of a cluster.
u32 cu_cluster(const Kernel *k) {
  u32 n = 1;
  for (u32 i = 0; i < k->axis.n; i++) n *= k->axis.at[i].cluster;
  return n;
}

// ---- dynamic grids: the role that draws tiles hands each to the others through a hidden ring of two slots

// The first role that one thread runs draws; where there is none, the first role's first thread.
static u32 drawer(const Kernel *k) {
  for (u32 r = 0; r < k->role.n; r++) {
    if (cu_single(k, &k->role.at[r])) return r;
  }
  return 0;
}

// Arrivals that free a slot: one a warp, of every role but the drawer.
u32 cu_slot_readers(const Kernel *k) {
  u32 n = 0;
  for (u32 r = 0; r < k->role.n; r++) {
    // (In a cluster the drawers of the other CTAs read too.)
    if (r != drawer(k)) n += cu_single(k, &k->role.at[r]) ? 1 : cu_warps(&k->role.at[r]);
  }
  u32 ctas = cu_cluster(k);
  return n * ctas + ctas - 1;
}

static void draw(Cuda *c) {
  u32 at = c->k->draw, n = cu_cluster(c->k);
  cu_line(c, "tile = tile_step + atomicAdd(a.counter, 1);");
  cu_line(c, "if (tile == tile_step + a.tiles - 1) *a.counter = 0;  // the last draw of the launch");
  cu_mbar_wait(c, cu_text(c, "smem + %u + 8 * slot", at + 24), "slot_parity ^ 1", SC_NONE, false);
  if (n == 1) {
    cu_line(c, "sc_sts_i32(smem + %u + 4 * slot, tile);", at);
    cu_line(c, "sc_mbar_arrive(smem + %u + 8 * slot);", at + 8);
    return;
  }
  cu_line(c, "sc_mbar_expect(smem + %u + 8 * slot, 4);", at + 8);
  cu_line(c, "for (u32 cta = 0; cta < %u; cta++) sc_send_int(smem + %u + 4 * slot, smem + %u + 8 * slot, tile, cta);", n, at, at + 8);
}

static void receive(Cuda *c) {
  u32 at = c->k->draw;
  cu_mbar_wait(c, cu_text(c, "smem + %u + 8 * slot", at + 8), "slot_parity", SC_NONE, true);
  cu_line(c, c->single ? "tile = sc_lds_i32(smem + %u + 4 * slot);" : "tile = __shfl_sync(~0u, sc_lds_i32(smem + %u + 4 * slot), 0);", at);
  cu_line(c, cu_cluster(c->k) > 1 ? "%ssc_mbar_arrive_cta(smem + %u + 8 * slot, 0);" : "%ssc_mbar_arrive(smem + %u + 8 * slot);", c->single ? "" : "if (lane == 0) ", at + 24);
}

static void next_tile(Cuda *c) {
  cu_line(c, "// the next tile: drawn once the last copies of this one are on their way");
  if (c->r != drawer(c->k)) {
    receive(c);
  } else if (cu_cluster(c->k) == 1) {
    draw(c);
  } else {
    cu_open(c, "if (cta_rank == 0)");
    draw(c);
    cu_open(c, "} else");
    cu_line(c, "sc_mbar_expect(smem + %u + 8 * slot, 4);", c->k->draw + 8);
    receive(c);
    cu_close(c);
  }
  if (c->options.debug_waits) cu_line(c, "if (sc_gave_up(a.waits)) break;");
  cu_line(c, "if ((slot ^= 1) == 0) slot_parity ^= 1;");
}

void cu_open_tile(Cuda *c) {
  const Kernel *k = c->k;
  if (k->grid == GRID_DYNAMIC) cu_line(c, "u32 slot = 0, slot_parity = 0;");
  if (k->grid != GRID_PLAIN) cu_line(c, "#pragma unroll 1");
  if (k->grid == GRID_DYNAMIC) {
    cu_open(c, "for (int tile = tile0; tile < a.tiles;)");
  } else if (k->role.at[c->r].one_tile) {
    cu_open(c, "for (int tile = tile0, owner = 0; tile < a.tiles; tile += tile_step, owner = owner + 1 == %u ? 0 : owner + 1)", k->role.at[c->r].instances);
  } else {
    cu_open(c, "for (int tile = tile0; tile < a.tiles; tile += tile_step)");
  }
  decode(c);
  name_lets(c);
  if (k->role.at[c->r].one_tile) {
    cu_open(c, "if (owner != instance)");
    cu_skip_tile(c);
    cu_line(c, "continue;");
    cu_close(c);
  }
  for (u32 i = 0; i < k->buf.n; i++) {
    if (k->buf.at[i].space == SP_REG && k->buf.at[i].role == c->r) cu_declare(c, i);
  }
}

void cu_close_tile(Cuda *c) {
  if (c->k->grid == GRID_DYNAMIC) next_tile(c);
  put_lets(c);
  cu_close(c);
}
