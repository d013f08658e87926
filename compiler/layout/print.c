// print.c - the result of `layout` for people: the threads and registers of tiles, the panels of
// stages, and the moves of each statement.
#include "compiler/layout/layout.h"
#include "compiler/passes.h"

static void put_bits(Str *out, const char *of, const LayoutBit *bit, u32 bits) {
  static const char *const name[] = {
      [SEL_REG] = "element", [SEL_LANE] = "lane", [SEL_WARP] = "warp"};
  if (!bits) return;
  str_printf(out, "  %s bits from 0 up:", of);
  for (u32 i = 0; i < bits; i++)
    str_printf(out, "%s %s.%u", i ? "," : "", name[bit[i].selects], bit[i].bit);
  str_puts(out, "\n");
}

static void put_layouts(Str *out, u32 warps) {
  static const char *const name[] = {
      [LAY_ACC] = "tile", [LAY_ROW] = "vector along rows", [LAY_COL] = "vector along columns"};
  str_printf(out, "registers of a role with %u warp%s an instance\n", warps, warps > 1 ? "s" : "");
  for (u32 id = LAY_ACC; id < LAY_COUNT; id++) {
    const Layout *layout = sc_layout((LayoutId)id, warps);
    str_printf(out, " %s\n", name[id]);
    put_bits(out, "row", layout->row, layout->row_bits);
    put_bits(out, "column", layout->col, layout->col_bits);
  }
}

static void put_buf(Str *out, const Buf *b) {
  str_printf(out, " %s : %s[", b->name, sc_elem[b->elem].text);
  for (u32 d = 0; d < b->rank; d++) str_printf(out, "%s%lld", d ? ", " : "", (long long)b->ext[d]);
  str_puts(out, "]");
}

static void put_tiles(Str *out, const Kernel *k, u32 role) {
  static const char *const along[] = {
      [LAY_ACC] = "", [LAY_ROW] = " along rows", [LAY_COL] = " along columns"};
  str_printf(out, "tiles of %s\n", k->role.at[role].name);
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *b = &k->buf.at[i];
    if (b->space != SP_REG || b->role != role) continue;
    put_buf(out, b);
    str_printf(out, "%s, %u register%s a thread\n", along[b->layout], sc_tile_regs(k, b),
               sc_tile_regs(k, b) == 1 ? "" : "s");
  }
}

static void put_moves(Str *out, const Kernel *k, u32 role) {
  static const char *const text[] = {
#define MOVE(id, text) text,
#include "compiler/layout/move.def"
#undef MOVE
  };
  const Code *code = &k->role.at[role].code;
  bool first = true;
  for (u32 i = 0; i < code->n; i++) {
    const Ins *ins = &code->at[i];
    if (ins->op != OP_MAP && ins->op != OP_MAPADD) continue;
    if (first) str_printf(out, "statements of %s\n", k->role.at[role].name);
    first = false;
    const Map *m = &k->map.at[ins->arg[0]];
    if (k->text) str_printf(out, " line %u", sc_line_col(k->text, ins->span.lo).line);
    str_printf(out, " %s: %s\n", k->buf.at[k->view.at[m->dst].buf].name, text[m->move]);
  }
}

static bool has_tiles(const Kernel *k, u32 role) {
  for (u32 i = 0; i < k->buf.n; i++)
    if (k->buf.at[i].space == SP_REG && k->buf.at[i].role == role) return true;
  return false;
}

static void put_kernel(Str *out, const Kernel *k) {
  bool seen[5] = {false};
  for (u32 r = 0; r < k->role.n; r++) {
    u32 warps = k->role.at[r].warps;
    if (has_tiles(k, r) && !seen[warps]) put_layouts(out, warps);
    seen[warps] |= has_tiles(k, r);
  }
  str_puts(out, "stages\n");
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *b = &k->buf.at[i];
    if (b->space != SP_STAGE) continue;
    put_buf(out, b);
    str_printf(out, " in panels of %u bytes, %s\n", sc_panel_bytes(b),
               b->swizzle ? "swizzled" : "not swizzled");
  }
  for (u32 r = 0; r < k->role.n; r++) {
    if (has_tiles(k, r)) put_tiles(out, k, r);
    put_moves(out, k, r);
  }
}

void sc_print_layout(Str *out, const Kernel *k) {
  if (!k->launch.n) put_kernel(out, k);
  for (u32 i = 0; i < k->launch.n; i++) {
    str_printf(out, "%skernel %s\n", i ? "\n" : "", k->launch.at[i].kernel->name);
    put_kernel(out, k->launch.at[i].kernel);
  }
}
