// copy.c - copies: can the copy engine take the box (PTX ISA 9.0, cp.async.bulk.tensor)? A stage is
// copied panel by panel; in a cluster, each CTA copies its share of a stage.
#include "compiler/target/target.h"

enum { BOX = 256, ROW_BYTES = 16, SWIZZLED_ROWS = 8, TARGET_BYTES = 128 };

static void check_box(Target *s, u32 tensor, u32 stage) {
  Span at = s->k->view.at[tensor].span;
  const Buf *part = tgt_buf(s, stage);
  if (sc_panel_bytes(part) / sc_elem[part->elem].bytes > BOX) {
    tgt_cannot(s, at, "is copied into, and its rows are too long for one copy", part->name,
               "at most 256 elements, or rows of whole 128 bytes");
  }
  if (part->permuted) {
    tgt_cannot(s, at,
               "is copied, and meets an 8-bit operand in registers, whose columns are in another "
               "order",
               part->name, "let threads fill the stage");
  }
}

// The engine begins at whole 16 bytes of a row. It is not told so in the instruction's page; an
// H200 ends the kernel with an illegal instruction. Rows may begin anywhere.
static void check_column(Target *s, u32 tensor) {
  const View *v = &s->k->view.at[tensor];
  u32 bytes = sc_elem[tgt_buf(s, tensor)->elem].bytes;
  i64 unit = ROW_BYTES / bytes;
  if (!v->rank || sc_fact_multiple(s->facts, v->at[v->rank - 1].base, unit)) return;
  tgt_cannot(s, v->span,
             sc_printf(s->sc,
                       "is copied from or to a place of its last dimension that is not shown to be "
                       "a multiple of %lld elements, which are 16 bytes",
                       (long long)unit),
             tgt_buf(s, tensor)->name, "let threads move it, or pad the tensor");
}

// CTAs of a cluster bring shares of a stage: of its panels, or of each panel's rows. The pattern of
// a swizzle begins anew every eight rows, and without one a copy goes to a multiple of 128 bytes.
static void check_share(Target *s, u32 tensor, u32 stage) {
  const Buf *part = tgt_buf(s, stage);
  i64 ctas = sc_cluster(s->k), rows = sc_stage_rows(part) / ctas, width = sc_panel_bytes(part);
  i64 panels = part->ext[part->rank - 1] * sc_elem[part->elem].bytes / width;
  bool whole = part->swizzle ? rows % SWIZZLED_ROWS == 0 : rows * width % TARGET_BYTES == 0;
  if (panels % ctas == 0 || whole) return;
  const char *what = sc_printf(s->sc, "is brought by %lld CTAs, each of which would take %lld %s",
                               (long long)ctas, (long long)rows, rows == 1 ? "row" : "rows");
  tgt_cannot(s, s->k->view.at[tensor].span, what, part->name,
             part->swizzle ? "make that a multiple of 8" : "make that a multiple of 128 bytes");
}

void tgt_copy(Target *s, const Ins *ins) {
  bool in = ins->op == OP_COPYIN;
  u32 stage = ins->arg[in ? 0 : 1], tensor = ins->arg[in ? 1 : 0];
  check_box(s, tensor, stage);
  check_column(s, tensor);
  if (ins->flags & INS_MULTICAST) check_share(s, tensor, stage);
}
