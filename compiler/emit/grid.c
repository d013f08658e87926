// grid.c - the loop over tiles: from a tile's number to its index along each axis, and for dynamic
// grids the draw of the next one. Called by frame.c; calls ring.c for tiles of other instances,
// share.c and scope.c for the tile's values.
#include "compiler/emit/emit.h"

#include <string.h>

// ---- roles by their form

u32 cu_warps(const Role *r) { return r->warps * r->instances; }

// ---- tiles

// The extent of an axis in clusters. `named`: as a variable, unless the extent is a plain name
// already.
static Txt count_of(Cuda *c, u32 axis, bool named) {
  const Axis *x = &c->k->axis.at[axis];
  Txt n = cu_clusters(c, x);
  if (n.prec == P_NAME || !named) return n;
  const char *name = cu_text(c, "%s_count", x->name);
  cu_var(c, "const int %s = %s;", name, n.s);
  return (Txt){name, P_NAME};
}

static bool in_ones(const Kernel *k, u32 axis) {
  const Expr *width = &k->expr.at[k->axis.at[axis].section];
  return k->axis.at[axis].section && width->op == X_INT && width->num.i == 1;
}

// Orders the axes from the fastest to the slowest: as they are declared, but an axis in sections of
// one place comes after the others. True if no axis has sections of more places, which this order
// does not describe.
static bool order_of(const Kernel *k, u32 *order) {
  bool plain = true;
  u32 n = 0;
  for (u32 slow = 0; slow < 2; slow++) {
    for (u32 i = 0; i < k->axis.n; i++) {
      plain &= in_ones(k, i) || !k->axis.at[i].section;
      if (in_ones(k, i) == slow) order[n++] = i;
    }
  }
  return plain;
}

// Writes the division of a tile's number by the sections of one axis. In: `rest`, the tile's number
// in the sections of the other axes, and `size`, how many places each axis has there. Out: the
// tile's number within its section of this axis, the new `size` (no text: one place), and the
// section's first place.
static const char *section(Cuda *c, u32 axis, u32 nth, const char *rest, Txt *size,
                           const char **first) {
  const Axis *x = &c->k->axis.at[axis];
  const char *n = nth ? cu_text(c, "%u", nth) : "", *width = cu_uniform(c, x->section).s;
  const char *whole = cu_paren(c, size[axis], P_ADD);
  bool one = in_ones(c->k, axis);
  if (x->cluster > 1)
    width =
        cu_text(c, "max(1, %s / %u)", cu_paren(c, cu_expr(c, NULL, x->section), P_MUL), x->cluster);
  Str full = {.sc = c->sc};
  if (!one) str_printf(&full, "width%s", n);
  for (u32 i = 0; i < c->k->axis.n; i++) {
    if (i != axis && size[i].s)
      str_printf(&full, "%s%s", full.n ? " * " : "", cu_paren(c, size[i], P_MUL + 1));
  }
  if (!one) cu_var(c, "const int width%s = %s;", n, width);
  cu_var(c, "const int in_full%s = %s;", n, full.n ? full.at : "1");
  cu_var(c, "const int section%s = %s / in_full%s, in_section%s = %s - section%s * in_full%s;", n,
         rest, n, n, rest, n, n);
  if (!one)
    cu_var(c, "const int section_width%s = min(width%s, %s - section%s * width%s);", n, n, whole, n,
           n);
  size[axis] = (Txt){one ? NULL : cu_text(c, "section_width%s", n), P_NAME};
  *first = cu_text(c, one ? "section%s" : "section%s * width%s", n, n);
  return cu_text(c, "in_section%s", n);
}

// Writes the function from a tile's number to its place along each axis (in a cluster, the place of
// its first CTA). The first axis is the fastest. Sections are slower than places, and those of the
// axis that is declared last are the slowest. All roles call the function; in a dynamic grid only
// the role that draws does, and passes the places on.
void cu_put_place(Cuda *c, Str *out) {
  const Kernel *k = c->k;
  Str places = {.sc = c->sc};
  Stmt *body = cu_begin(c);
  const char *rest = "tile", *first[SC_MAX_AXES] = {0};
  Txt count[SC_MAX_AXES], size[SC_MAX_AXES], place[SC_MAX_AXES];
  u32 n = k->axis.n, sections = 0, left = n, order[SC_MAX_AXES];
  bool plain = order_of(k, order);
  c->at = n ? k->axis.at[0].span : k->span;
  cu_forget_names(c);  // those that a role gave are not seen here
  cu_share_extents(c);
  for (u32 i = 0; i < n; i++) sections += k->axis.at[i].section != 0;
  for (u32 i = 0; i < n; i++) {
    const Axis *x = &k->axis.at[i];
    size[i] = count[i] =
        count_of(c, i, x->reversed || (plain ? i != order[n - 1] : !x->section || sections > 1));
  }
  for (u32 i = n, nth = 0; i-- > 0;) {
    if (plain || !k->axis.at[i].section) continue;
    rest = section(c, i, nth++, rest, size, &first[i]);
    left -= !size[i].s;
  }
  for (u32 o = 0; o < n; o++) {
    u32 i = plain ? order[o] : o;
    const Axis *x = &k->axis.at[i];
    Txt at = {size[i].s ? rest : first[i], P_NAME};
    if (size[i].s && --left) {
      const char *next = cu_text(c, "rest%u", o), *n_i = cu_paren(c, size[i], P_MUL + 1);
      cu_var(c, "const int %s = %s / %s;", next, rest, n_i);
      at = (Txt){cu_text(c, "%s - %s * %s", rest, next, n_i), P_ADD};
      rest = next;
    }
    if (size[i].s && first[i]) at = (Txt){cu_text(c, "%s + %s", first[i], at.s), P_ADD};
    if (x->reversed)
      at = (Txt){cu_text(c, "%s - 1 - %s", count[i].s, cu_paren(c, at, P_MUL)), P_ADD};
    if (x->cluster > 1) at = cu_binary(c, X_MUL, true, at, cu_int(c, x->cluster));
    place[i] = at;
  }
  for (u32 i = 0; i < n; i++) str_printf(&places, "%s%s", i ? ", " : "", place[i].s);
  cu_line(c, "return {%s};", n ? places.at : "");
  cu_declare_of_tile(c);
  cu_close(c);
  str_printf(out, "// a tile's place along each axis\nstruct %s_place { int ", c->function);
  for (u32 i = 0; i < k->axis.n; i++) str_printf(out, "%s%s", i ? ", " : "", cu_axis_name(c, i));
  str_printf(out, "; };\nDEV %s_place %s_place_of(const %s_args &args, int tile) {\n", c->function,
             c->function, c->function);
  cu_put_block(out, 1, body);
  str_puts(out, "}\n\n");
}

// ---- dynamic grids: the role that draws tiles hands each to the others through a hidden ring of
// two slots

// Does the drawing role read its own slots? One thread knows what it drew; the other threads of a
// larger role must read it.
static bool drawer_reads(const Kernel *k) {
  const Role *r = &k->role.at[sc_drawer(k)];
  return r->instances > 1 || !sc_is_single(k, r);
}

// How many arrivals free a slot: one of each warp of every role that reads it, in a cluster from
// all CTAs. 0: there is no role but the one that draws.
u32 cu_slot_readers(const Kernel *k) {
  u32 n = 0, ctas = sc_cluster(k);
  for (u32 r = 0; r < k->role.n; r++) {
    if (r != sc_drawer(k) || drawer_reads(k)) n += cu_warps(&k->role.at[r]);
  }
  // (The drawers of the other CTAs read what that of the first drew.)
  return drawer_reads(k) ? n * ctas : n * ctas + ctas - 1;
}

// Word i of a slot, which holds the tile's number and its places, in vectors of four.
static const char *slot_word(Cuda *c, u32 i) {
  if (!i) return "tile";
  return i <= c->k->axis.n ? cu_text(c, "at.%s", cu_axis_name(c, i - 1)) : "0";
}

static const char *slot_at(Cuda *c, u32 vector) {
  return cu_text(c,
                 vector ? "$smem + slot_stage + slot * slot_bytes + %u"
                        : "$smem + slot_stage + slot * slot_bytes",
                 16 * vector);
}

static void draw(Cuda *c) {
  u32 n = sc_cluster(c->k), bytes = sc_slot_bytes(c->k);
  cu_line(c, "tile = $tile_step + sc_draw(args.counter);");
  cu_line(c, "if (tile < args.tiles) at = $%s_place_of(args, tile);", c->function);
  cu_line(c, "if (tile == $tile_step + args.tiles - 1) sc_draw_none(args.counter);");
  cu_note(c, "the last draw of the launch");
  if (!cu_slot_readers(c->k)) return;
  cu_mbar_wait(c, "$smem + slot_empty + 8 * slot",
               c->options.debug_waits ? "slot_generation - 1" : "slot_parity ^ 1", WAIT_TILE_EMPTY,
               SC_NONE);
  if (n > 1) {
    cu_line(c, "sc_mbar_expect($smem + slot_full + 8 * slot, slot_bytes);");
    cu_open(c, "for (u32 cta = 0; cta < %u; cta++)", n);
  }
  for (u32 v = 0; v < bytes / 16; v++) {
    const char *words =
        cu_text(c, "make_int4(%s, %s, %s, %s)", slot_word(c, 4 * v), slot_word(c, 4 * v + 1),
                slot_word(c, 4 * v + 2), slot_word(c, 4 * v + 3));
    if (n > 1)
      cu_line(c, "sc_send_int4(%s, $smem + slot_full + 8 * slot, %s, cta);", slot_at(c, v), words);
    else cu_line(c, "sc_sts_int4(%s, %s);", slot_at(c, v), words);
  }
  if (n > 1) cu_close(c);
  else cu_line(c, "sc_mbar_arrive($smem + slot_full + 8 * slot);");
}

static void receive(Cuda *c) {
  cu_mbar_wait(c, "$smem + slot_full + 8 * slot", cu_text(c, "slot_%s", cu_phase(c)),
               WAIT_TILE_FULL, SC_NONE);
  for (u32 i = 0; i <= c->k->axis.n; i++) {
    const char *next = i < 4 ? "next" : cu_text(c, "next%u", i / 4);
    if (i % 4 == 0) cu_var(c, "const int4 %s = sc_lds_int4(%s);", next, slot_at(c, i / 4));
    cu_line(c, c->single ? "%s = %s.%c;" : "%s = sc_of_lane0(%s.%c);", slot_word(c, i), next,
            "xyzw"[i % 4]);
  }
  if (!c->single) cu_line(c, "sc_warp_sync();");
  cu_line(c,
          sc_cluster(c->k) > 1 ? "%ssc_mbar_arrive_cta($smem + slot_empty + 8 * slot, 0);"
                               : "%ssc_mbar_arrive($smem + slot_empty + 8 * slot);",
          c->single ? "" : "if ($lane == 0) ");
}

// In a cluster its first CTA draws for all.
static void draw_or_expect(Cuda *c, bool receives) {
  if (sc_cluster(c->k) == 1) {
    draw(c);
    return;
  }
  cu_open(c, "if (cta_rank == 0)");
  draw(c);
  cu_else(c, "else");
  cu_line(c, "sc_mbar_expect($smem + slot_full + 8 * slot, slot_bytes);");
  if (receives) receive(c);
  cu_close(c);
}

// Declares the cursor of the slots, which are like a ring of two stages, and the number of the
// instance whose tile comes next.
static void tile_cursors(Cuda *c) {
  if (cu_slot_readers(c->k)) cu_var(c, "u32 slot = 0, slot_%s = 0;", cu_phase(c));
  if (c->k->role.at[c->r].one_tile) cu_var(c, "int owner = 0;");
}

static void step_tile_cursors(Cuda *c) {
  const Role *role = &c->k->role.at[c->r];
  if (cu_slot_readers(c->k))
    cu_line(c, "if (++slot == 2) { slot = 0; slot_%s%s; }", cu_phase(c), cu_next_phase(c));
  if (role->one_tile) cu_line(c, "if (++owner == %u) owner = 0;", role->instances);
}

static void next_tile(Cuda *c) {
  const Role *role = &c->k->role.at[c->r];
  bool early = c->pc + 1 < role->code.n;
  cu_cite_role(c);
  c->at = role->span;
  cu_remark(c, early ? "// the next tile: drawn before the last copy of this one, which has to "
                       "wait for its stage anyway"
                     : "// the next tile");
  if (c->r != sc_drawer(c->k)) {
    receive(c);
  } else if (!drawer_reads(c->k)) {
    draw_or_expect(c, true);
  } else {
    cu_open(c, "if ($instance == 0 && $thread == 0)");
    draw_or_expect(c, false);
    cu_close(c);
    receive(c);
  }
  step_tile_cursors(c);
}

// The operation before which the role gets its next tile. A draw takes as long as a copy from
// memory. So a role of one thread draws before its last fill of a stage, which most often waits for
// the stage anyway. That fill must be the last thing in the tile, except for `if`s around it. All
// other roles get the next tile at the end of this one. In a cluster it is drawn there as well:
// otherwise the copies of all its CTAs would wait for the one that draws.
static u32 next_tile_at(const Kernel *k, u32 r) {
  const Code *code = &k->role.at[r].code;
  u32 end = code->n - 1, pc = end;
  if (r != sc_drawer(k) || drawer_reads(k) || sc_cluster(k) > 1 || k->role.at[r].one_tile)
    return end;
  while (code->at[pc - 1].op == OP_ENDIF) {
    pc--;
    if (code->at[code->at[pc].nest].op != OP_IF) return end;  // it is that of an `else`
  }
  while (code->at[pc - 1].op == OP_COMMIT || code->at[pc - 1].op == OP_COPYIN) pc--;
  return code->at[pc - 1].op == OP_ACQUIRE ? pc - 1 : end;
}

// Gets the next tile, if this is the operation before which the role does. The `if`s around the
// operation are closed, and opened again for the fill.
void cu_next_tile(Cuda *c) {
  const Code *code = &c->k->role.at[c->r].code;
  if (c->k->grid != GRID_DYNAMIC || c->pc != next_tile_at(c->k, c->r)) return;
  if (c->k->role.at[c->r].one_tile) cu_close(c);  // what the tile's owner alone does
  for (u32 i = c->pc; i + 1 < code->n; i++) {
    if (code->at[i].op == OP_ENDIF) cu_close(c);
  }
  next_tile(c);
  for (u32 i = code->n - 1; i > c->pc; i--) {
    if (code->at[i].op == OP_ENDIF) cu_open_if(c, &code->at[code->at[i].nest]);
  }
}

// Opens the condition that the tile is this instance's own, where instances take tiles in turn. In
// a dynamic grid all instances get the next tile at the end of each, whoever owns it.
static void open_own_tile(Cuda *c) {
  bool dynamic = c->k->grid == GRID_DYNAMIC;
  Stmt *skip = cu_begin(c);
  cu_skip_tile(c);
  cu_close(c);
  if (!dynamic) cu_open(c, "if (owner != $instance)");
  else cu_open(c, "if (owner %s $instance)", skip->first ? "!=" : "==");
  cu_insert(c, NULL, skip);
  if (!dynamic) {
    cu_line(c, "continue;");
    cu_close(c);
  } else if (skip->first) {
    cu_else(c, "else");
  }
}

void cu_open_tile(Cuda *c) {
  const Kernel *k = c->k;
  if (k->grid == GRID_DYNAMIC) {
    tile_cursors(c);
    cu_var(c, "auto at = $%s_place_of(args, $tile0);", c->function);
  }
  bool once = sc_one_tile(k);
  if (!once) cu_remark(c, "#pragma unroll 1");
  if (once) {
    cu_open_scope(c);
  } else if (k->grid == GRID_DYNAMIC) {
    cu_open(c, "for (int tile = $tile0; tile < args.tiles;)");
  } else if (k->role.at[c->r].one_tile) {
    cu_open(c,
            "for (int tile = $tile0, owner = 0; tile < args.tiles; tile += $tile_step, owner = "
            "owner == %u ? 0 : owner + 1)",
            k->role.at[c->r].instances - 1);
  } else {
    cu_open(c, "for (int tile = $tile0; tile < args.tiles; tile += $tile_step)");
  }
  if (k->role.at[c->r].one_tile) open_own_tile(c);
}

void cu_close_tile(Cuda *c) {
  if (c->k->grid != GRID_PLAIN) cu_leave_tiles(c);
  cu_declare_of_tile(c);
  cu_declare_place(c);
  cu_close(c);
}
