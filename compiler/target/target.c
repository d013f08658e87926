// target.c - reports what the instructions of sm_90a cannot carry, or not in the layout that it
// has: statements, products by wgmma and mma.sync, boxes of the copy engine. In: a kernel with
// layouts that `flow` has accepted. Out: reports (G.emit); a kernel without them can be written for
// the GPU. (What `lower` refuses in every layout, by R9, is not asked again here.)
#include "compiler/target/target.h"
#include "compiler/passes.h"

static void check_tile(Target *s, const Buf *b) {
  const u32 rows = sc_block_rows(s->k->role.at[b->role].warps);
  const i64 columns = sc_elem[b->elem].bytes == 1 ? 2 * SC_FRAGMENT_COLS : SC_FRAGMENT_COLS;
  const char *pad = sc_printf(s->sc, "pad it to a multiple of %u rows", rows);
  if (b->rank > 2) {
    tgt_cannot(s, b->span, "is a register tile of more than two dimensions", b->name, NULL);
  } else if (b->layout != LAY_COL && b->rank && b->ext[0] % rows) {
    tgt_cannot(s, b->span, "is a register tile without whole blocks of rows", b->name, pad);
  } else if (b->layout == LAY_COL && b->ext[0] % SC_FRAGMENT_COLS) {
    tgt_cannot(s, b->span, "is a vector along columns, and their number is no multiple of 8",
               b->name, NULL);
  } else if (b->rank == 2 && b->ext[1] % columns) {
    tgt_cannot(s, b->span,
               "is a register tile whose columns are no multiple of 8 (16, of 8-bit elements)",
               b->name, NULL);
  }
  if (b->partial && b->layout == LAY_COL)
    tgt_cannot(s, b->span, "is partial, and runs along columns", b->name, NULL);
}

// Instances meet at named barriers of as many threads each.
static void check_turn(Target *s, const Turn *t) {
  if (!sc_turn_over_instances(t)) return;
  const Role *role = s->k->role.at;
  for (u32 m = 1; m < t->members; m++) {
    if (role[t->member[m]].warps == role[t->member[0]].warps) continue;
    tgt_cannot(s, t->span, "goes round roles of a warp and roles of a warpgroup", t->name, NULL);
  }
}

// A CTA's place in its cluster is one number, which counts along one axis.
static void check_clusters(Target *s) {
  const Axis *first = NULL;
  for (u32 i = 0; i < s->k->axis.n; i++) {
    const Axis *axis = &s->k->axis.at[i];
    if (axis->cluster > 1 && first)
      tgt_cannot(s, axis->span, "is a second axis along which CTAs form clusters", axis->name,
                 "let the cluster lie along one axis");
    if (axis->cluster > 1) first = axis;
  }
}

static void check_ins(Target *s, const Ins *ins) {
  switch (ins->op) {
    case OP_MAP:
    case OP_VOTE:
    case OP_MAPADD: tgt_statement(s, &s->k->map.at[ins->arg[0]], ins->op == OP_MAPADD); break;
    case OP_MMA:
    case OP_MMAWARP: tgt_product(s, &s->k->product.at[ins->arg[0]], ins->op == OP_MMAWARP); break;
    case OP_COPYIN:
    case OP_COPYOUT:
    case OP_COPYADD: tgt_copy(s, ins); break;
    default: break;
  }
}

bool sc_target(Sc *sc, Kernel *k) {
  Target s = {.sc = sc, .k = k, .facts = sc_facts(sc, k)};
  u32 before = sc->errors;
  tgt_permuted(&s);
  check_clusters(&s);
  for (u32 i = 0; i < k->buf.n; i++)
    if (k->buf.at[i].space == SP_REG) check_tile(&s, &k->buf.at[i]);
  for (u32 i = 0; i < k->turn.n; i++) check_turn(&s, &k->turn.at[i]);
  for (u32 r = 0; r < k->role.n; r++) {
    const Code *code = &k->role.at[r].code;
    s.warps = k->role.at[r].warps;
    for (u32 i = 0; i < code->n; i++) {
      sc_facts_at(s.facts, code, i);
      check_ins(&s, &code->at[i]);
    }
  }
  return sc->errors == before;
}
