// mma.c - products: one wgmma for each 64 rows, up to 256 columns and 32 bytes of the contracted
// index (PTX ISA 9.0, wgmma.mma_async), all unrolled, one commit group a statement. A compiler
// fence on a tile's registers stands before the issue and after the wait, as they belong to the
// tensor cores in between. Called by frame.c and compiler_fence.c; calls block.c, wait.c for the
// fence before a product, and tile.c.
#include "compiler/emit/emit.h"

#include <string.h>

typedef struct Operand {
  const View *v;
  const Buf *b;
  bool regs, mn;  // from registers; stored MN-major: the contracted index is not the last
  i64 first;      // byte of a panel's row where it starts, if that is a constant; else 0
  const char *desc;
} Operand;

static Operand operand(Cuda *c, u32 view) {
  const View *v = &c->k->view.at[view];
  const Buf *b = &c->k->buf.at[v->buf];
  i64 n, first = 0;
  if (b->space == SP_STAGE && v->at[1].base && x_const_int(c->k, v->at[1].base, &n))
    first = n * sc_elem[b->elem].bytes % sc_panel_bytes(b);
  return (Operand){v, b, b->space == SP_REG, sc_mn_major(c->k, view), first, NULL};
}

// "sc_wgmma_f16_n176_ss", "sc_wgmma_f16_n128_rs_t": 176 columns, A from shared memory or registers,
// B from shared memory; a, t: A, B stored MN-major. "sc_wgmma_e4m3_e5m2_n64_ss" where their types
// differ.
static const char *wgmma_name(Sc *sc, const Wgmma *w) {
  const char *a = sc_elem[w->a_elem].text, *b = sc_elem[w->b_elem].text;
  return sc_printf(sc, "sc_wgmma_%s%s%s_n%u_%s%s%s%s", a, a == b ? "" : "_", a == b ? "" : b, w->n,
                   w->regs ? "rs" : "ss", w->a_mn || w->b_mn ? "_" : "", w->a_mn ? "a" : "",
                   w->b_mn ? "t" : "");
}

// Writes the function of one wgmma. The distance of a slice's operands from the descriptors is
// added inside the asm text: then only the descriptors are live, and ptxas adds in uniform
// registers.
static void wgmma_text(Str *out, const Wgmma *w) {
  // numbers of the operands; d is their first after the tile
  u32 d = w->n / 2, b = d + (w->regs ? 4 : 1), b_at = b + 2;
  // K-major always: the instruction has no operands to say otherwise
  bool bytes = sc_elem[w->b_elem].bytes == 1;
  str_printf(out, "template <int %s>\nDEV void %s(float *d, %s, u64 b, int scale_d) {\n",
             w->regs ? "b_at" : "a_at, int b_at", wgmma_name(out->sc, w),
             w->regs ? "const u32 *a" : "u64 a");
  str_printf(
      out,
      "  asm volatile(\"{\\n.reg .pred p;\\n.reg .b64 a, b;\\nsetp.ne.b32 p, %%%u, 0;\\n\"\n    \"",
      b + 1);
  if (!w->regs) str_printf(out, "add.s64 a, %%%u, %%%u;\\n", d, b_at + 1);
  str_printf(
      out,
      "add.s64 b, %%%u, %%%u;\\n\"\n    \"wgmma.mma_async.sync.aligned.m64n%uk%d.f32.%s.%s {\"", b,
      b_at, w->n, bytes ? 32 : 16, sc_elem[w->a_elem].text, sc_elem[w->b_elem].text);
  for (u32 i = 0; i < d; i++)
    str_printf(out, "%s%%%u%s", i % 16 ? "" : "\n    \"", i,
               i + 1 == d     ? "}, \""
               : i % 16 == 15 ? ", \""
                              : ", ");
  if (w->regs)
    str_printf(out, "\n    \"{%%%u, %%%u, %%%u, %%%u}, b, p, 1, 1", d, d + 1, d + 2, d + 3);
  else str_puts(out, "\n    \"a, b, p, 1, 1");
  if (!bytes && !w->regs) str_printf(out, ", %d", w->a_mn);
  if (!bytes) str_printf(out, ", %d", w->b_mn);
  str_puts(out, ";\\n}\"\n    : ");
  for (u32 i = 0; i < d; i += 4)
    str_printf(out, "SC_D4(%u)%s", i, i + 4 == d ? "\n" : i % 40 == 36 ? ",\n      " : ", ");
  str_puts(out, w->regs
                    ? "    : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"l\"(b), "
                      "\"r\"(scale_d), \"n\"(b_at));\n}\n"
                    : "    : \"l\"(a), \"l\"(b), \"r\"(scale_d), \"n\"(b_at), \"n\"(a_at));\n}\n");
}

// The comment that stands once before all these functions.
static const char wgmma_section[] =
    "\n// d = a b, or d += a b where scale_d is not 0 [9.7.15.5], for the slice of the contracted "
    "index whose operands are\n"
    "// a_at and b_at (in 16 bytes) past those of the descriptors a and b. Names end in where a "
    "and b are, r: registers, s:\n"
    "// shared memory; then _a, _t: a, b is stored MN-major\n"
    "#define SC_D4(i) \"+f\"(d[i]), \"+f\"(d[i + 1]), \"+f\"(d[i + 2]), \"+f\"(d[i + 3])\n";

void cu_put_wgmma(Str *out, const WgmmaSet *set) {
  if (set->w.n) str_puts(out, wgmma_section);
  for (u32 i = 0; i < set->w.n; i++) wgmma_text(out, &set->w.at[i]);
}

static const char *instruction(Cuda *c, const Operand *a, const Operand *b, u32 n) {
  Wgmma w = {a->regs, a->mn, b->mn, a->b->elem, b->b->elem, n};
  const char *name = wgmma_name(c->sc, &w);
  WgmmaSet *set = c->wgmma;
  for (u32 i = 0; i < set->w.n; i++) {
    if (!strcmp(wgmma_name(c->sc, &set->w.at[i]), name)) return name;
  }
  PUSH(c->sc, &set->w, w);
  return name;
}

static const char *base_of(Cuda *c, const Pos *p) {
  return p->base ? cu_paren(c, cu_expr(c, NULL, p->base), P_MUL) : NULL;
}

// Declares the matrix descriptor of the operand's first slice, without the offset `first`. A panel
// is W = 128, 64 or 32 bytes wide and has rows * W bytes. K-major (the contracted index is last):
// groups of 8 rows are 8 W bytes apart, a slice is 32 bytes of a row, and a panel has W / 32
// slices. MN-major: panels lie side by side along the other index (the leading byte offset), groups
// of 8 rows are 8 W bytes apart (the stride byte offset), and a slice is 16 rows.
static const char *descriptor(Cuda *c, Operand *o, const char *name) {
  i64 width = sc_panel_bytes(o->b), panel = sc_stage_rows(o->b) * width, n;
  const char *row = base_of(c, &o->v->at[0]), *col = base_of(c, &o->v->at[1]);
  Str at = {.sc = c->sc};
  str_puts(&at, cu_stage(c, o->v));
  if (row) str_printf(&at, " + %s * %lld", row, (long long)width);
  i64 bytes = sc_elem[o->b->elem].bytes;
  if (col && x_const_int(c->k, o->v->at[1].base, &n)) {
    if (n * bytes >= width) str_printf(&at, " + %lld", (long long)(n * bytes / width * panel));
  } else if (col) {
    str_printf(&at, " + %s / %lld * %lld", col, (long long)(width / bytes), (long long)panel);
    if (!cu_multiple(c, o->v->at[1].base, width / bytes))
      str_printf(&at, " + %s %% %lld * %lld", col, (long long)(width / bytes), (long long)bytes);
  }
  const char *next =
      o->mn ? cu_text(c, ", %lld * %lld", (long long)sc_stage_rows(o->b), (long long)width) : "";
  cu_var(c, "const u64 %s = sc_desc<%lld>(%s%s);", name, (long long)width, at.at, next);
  return name;
}

// The descriptor's increment, in 16 bytes, to slice `s` of the contracted index and element `other`
// of the other.
static i64 advance(const Operand *o, i64 s, i64 other) {
  i64 width = sc_panel_bytes(o->b), panel = sc_stage_rows(o->b) * width;
  // byte of the row
  i64 row = o->mn ? s * 16 : other, at = o->first + (o->mn ? 2 * other : s * 32);
  return (at / width * panel + row * width + at % width) / 16;
}

// Calls the function for each block of a register tile.
static void each_block(Cuda *c, const char *function, u32 buf) {
  u32 blocks = sc_blocks(c->k, &c->k->buf.at[buf]);
  for (u32 i = 0; i < blocks; i++)
    cu_line(c, "%s(%s);", function, cu_block(c, buf, cu_int(c, i).s));
}

void cu_compiler_fence(Cuda *c, u32 buf) { each_block(c, "sc_tie", buf); }

// ---- operands in registers that a loop only reads

// Notes what the loop that opens at `pc` does with register tiles: reads them by products, or
// writes them.
static void loop_uses(Cuda *c, u32 pc, bool *reads, bool *writes) {
  const Kernel *k = c->k;
  const Code *code = &k->role.at[c->r].code;
  for (u32 i = pc + 1, end = sc_block_end(code, pc + 1); i < end; i++) {
    const Ins *ins = &code->at[i];
    for (u32 j = 0; j < ins->accesses; j++) {
      const ViewAccess *a = sc_view_access(k, ins, j);
      u32 buf = k->view.at[a->view].buf;
      if (k->buf.at[buf].space != SP_REG) continue;
      if (a->write) writes[buf] = true;
      else if (ins->op == OP_MMA && k->product.at[ins->arg[0]].a == a->view) reads[buf] = true;
    }
  }
}

void cu_keep_operands(Cuda *c) {
  const Kernel *k = c->k;
  const Code *code = &k->role.at[c->r].code;
  bool *keep = NEWS(c->sc, bool, 3 * k->buf.n + 1), *reads = keep + k->buf.n;
  bool *writes = reads + k->buf.n;
  for (u32 pc = 0; pc < code->n; pc++) {
    if (code->at[pc].op != OP_FOR) continue;
    memset(reads, 0, 2 * k->buf.n * sizeof *reads);
    loop_uses(c, pc, reads, writes);
    for (u32 i = 0; i < k->buf.n; i++) keep[i] |= reads[i] && !writes[i];
  }
  for (u32 i = 0; i < k->buf.n; i++) {
    if (keep[i]) each_block(c, "sc_keep", i);
  }
}

// ---- products

// The first column of a register tile that the view covers.
static i64 shift(Cuda *c, u32 view) {
  i64 n = 0;
  const View *v = &c->k->view.at[view];
  if (v->at[1].base) x_const_int(c->k, v->at[1].base, &n);
  return n;
}

static void issue(Cuda *c, const Product *p, Operand *a, Operand *b, u32 dst) {
  i64 slices = p->k * sc_elem[b->b->elem].bytes / 32, into = shift(c, p->dst) / 2,
      from = a->regs ? shift(c, p->a) * sc_elem[a->b->elem].bytes / 8 : 0;
  i64 blocks = p->m / 64, chunk = p->cols;
  for (i64 m = 0; m < blocks; m++) {
    for (i64 n0 = 0; n0 < p->n; n0 += chunk) {
      const char *f = instruction(c, a, b, (u32)chunk);
      const char *d = cu_block(c, dst, cu_int(c, m).s);
      if (n0 + into) d = cu_text(c, "%s + %lld", d, (long long)(n0 / 2 + into));
      for (i64 s = 0; s < slices; s++) {
        const char *scale = s || p->acc ? "1" : "0";
        long long b_at = advance(b, s, n0);
        if (a->regs) {
          const char *x = cu_block(c, a->v->buf, cu_int(c, m).s);
          if (s * 4 + from) x = cu_text(c, "%s + %lld", x, (long long)(s * 4 + from));
          cu_line(c, "%s<%lld>(%s, %s, %s, %s);", f, b_at, d, x, b->desc, scale);
        } else {
          cu_line(c, "%s<%lld, %lld>(%s, %s, %s, %s);", f, (long long)advance(a, s, m * 64), b_at,
                  d, a->desc, b->desc, scale);
        }
      }
    }
  }
}

void cu_mma(Cuda *c, const Ins *ins) {
  const Product *p = &c->k->product.at[ins->arg[0]];
  u32 dst = c->k->view.at[p->dst].buf;
  Operand a = operand(c, p->a), b = operand(c, p->b);
  cu_open_scope(c);
  if (!a.regs) a.desc = descriptor(c, &a, "a_desc");
  b.desc = descriptor(c, &b, "b_desc");
  if (a.regs) cu_compiler_fence(c, a.v->buf);
  cu_compiler_fence(c, dst);
  cu_order(c, ins, "what the other warps stored is there");
  cu_line(c, "sc_wgmma_fence();");
  issue(c, p, &a, &b, dst);
  cu_line(c, "sc_wgmma_commit();");
  cu_close(c);
}

// Does it begin or end a block that is always or never run where it stands, in a loop that is
// split?
static bool is_settled(const Ins *code, const Ins *ins) {
  if (ins->op == OP_ENDVOTE) ins = &code[ins->nest];
  return ins->op == OP_VOTE && ins->plan.side;
}

// In which kinds of rounds does it run? (A loop that is not split has rounds of both kinds.)
static u32 kinds_of(const Ins *code, const Ins *ins) {
  for (u32 b = ins->around; b != SC_NONE; b = code[b].around)
    if (is_settled(code, &code[b])) return code[b].plan.side;
  return SIDE_FIRST | SIDE_LAST;
}

// In which kinds of rounds does element-wise work stand directly before the wait in its block,
// which is meant to run beside the products? ptxas moves a wait as early as it can, and the work
// would then begin only when the products are done. 0: in none.
static u32 works_meanwhile(const Cuda *c, const Ins *wait) {
  const Ins *first = c->k->role.at[c->r].code.at;
  u32 work = 0;
  for (const Ins *i = wait - 1 - wait[-1].plan.early; i > first; i--) {
    bool edge = sc_op[i->op].effects & (OPENS | SPLITS | CLOSES) && !is_settled(first, i);
    // for a barrier: nothing from before it comes after it
    bool loop = i->op == OP_ACQUIRE || i->op == OP_WAIT;
    if (edge || loop || i->op == OP_MMA || i->op == OP_MMAWAIT) break;
    if (i->op == OP_MAP || i->op == OP_MAPADD) work |= kinds_of(first, i);
  }
  return work;
}

// The statement that keeps what stands above it before the wait that follows.
static void hold(Cuda *c, u32 kinds) {
  const char *when = "";
  if (kinds == SIDE_FIRST) when = cu_text(c, "if (%s) ", c->first);
  if (kinds == SIDE_LAST) when = cu_text(c, "if (!%s) ", c->first);
  cu_line(c, "%ssc_hold(args.tiles);", when);
  cu_note(c, "what stands above is not put off until after the wait");
}

static void wait_for(Cuda *c, const Ins *ins) {
  const u32 *list = &c->k->list.at[ins->arg[0]];
  u32 kinds = works_meanwhile(c, ins);
  if (kinds) hold(c, kinds);
  cu_line(c, "sc_wgmma_wait<%u>();", ins->plan.keep);
  if (ins->plan.keep) cu_note(c, cu_text(c, "newer groups in flight: %u", ins->plan.keep));
  for (u32 i = 1; i <= list[0]; i++) cu_compiler_fence(c, list[i]);
}

void cu_mma_wait(Cuda *c, const Ins *ins) {
  if (!ins[-1].plan.early) wait_for(c, ins);
}

// The wait with which the block of an `if` begins, if it goes before it.
void cu_mma_early(Cuda *c, const Ins *branch) {
  if (!branch->plan.early) return;
  cu_cite(c, branch[1].span);
  wait_for(c, branch + 1);
}

// A product by each warp on its own 16 rows: both operands from stages, fragments by ldmatrix. A
// step takes 32 bytes of the contracted index, of which each of a fragment's words has 4.
void cu_mma_warp(Cuda *c, const Ins *ins) {
  const Product *p = &c->k->product.at[ins->arg[0]];
  u32 dst = c->k->view.at[p->dst].buf;
  Operand a = operand(c, p->a), b = operand(c, p->b);
  const char *d = c->name[dst], *elem = sc_elem[b.b->elem].text, *n_k = cu_temp(c, "n_k");
  const char *at = cu_temp(c, "at");
  int half = 16 / sc_elem[b.b->elem].bytes;
  cu_open_scope(c);
  cu_var(c, "const int %s = sc_here($lane);", at);
  Txt a_row = cu_from(c, a.v->at[0].base, (Txt){cu_text(c, "16 * $warp + (%s & 15)", at), P_ADD});
  Txt a_col =
      cu_from(c, a.v->at[1].base, (Txt){cu_text(c, "%s + %d * (%s >> 4)", n_k, half, at), P_ADD});
  Txt b_row =
      cu_from(c, b.v->at[0].base, (Txt){cu_text(c, "n + (%s & 7) + 8 * (%s >> 4)", at, at), P_ADD});
  Txt b_col = cu_from(c, b.v->at[1].base,
                      (Txt){cu_text(c, "%s + %d * (%s >> 3 & 1)", n_k, half, at), P_ADD});
  if (!p->acc) {
    cu_remark(c, "#pragma unroll");
    cu_line(c, "for (int e = 0; e < %u; e++) %s[e] = 0.f;", cu_array(c, dst), d);
  }
  cu_remark(c, "#pragma unroll 1");
  cu_open(c, "for (int %s = 0; %s < %lld; %s += %d)", n_k, n_k, (long long)p->k, n_k, 2 * half);
  cu_var(c, "u32 x[4], y[4];");
  cu_line(c, "sc_ldmatrix(%s, x);", cu_stage_elem(c, a.v, a_row, a_col));
  cu_remark(c, "#pragma unroll");
  cu_open(c, "for (int n = 0; n < %lld; n += 16)", (long long)p->n);
  cu_line(c, "sc_ldmatrix(%s, y);", cu_stage_elem(c, b.v, b_row, b_col));
  cu_line(c, "sc_mma_%s(%s + n / 2, x, y[0], y[1]);", elem, d);
  cu_line(c, "sc_mma_%s(%s + n / 2 + 4, x, y[2], y[3]);", elem, d);
  cu_close(c);
  cu_close(c);
  cu_close(c);
}
