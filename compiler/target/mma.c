// mma.c - products: can wgmma (of a warpgroup) or mma.sync (of a warp) take the operands in the
// layout that they have (PTX ISA 9.0, wgmma.mma_async, mma)?
#include "compiler/target/target.h"

enum { SLICE_BYTES = 32, ROW_BYTES = 16 };

static void check_operand(Target *s, u32 view, bool warp) {
  const View *v = &s->k->view.at[view];
  const Buf *b = tgt_buf(s, view);
  if (b->space == SP_STAGE && (b->rank != 2 || !b->swizzle)) {
    tgt_cannot(s, v->span, "is an operand, and its rows are no multiple of 32 bytes", b->name,
               NULL);
  }
  if (b->space == SP_REG && warp) {
    tgt_cannot(s, v->span, "is the operand of a product by warps, and in registers", b->name,
               "put it through a ring");
  }
}

// Does a slice that starts at this byte of a row, a constant, end in the panel in which it starts?
// Or is the contracted index last and the start a whole slice of it? Each may be in a panel of its
// own.
static bool fits_from(const Target *s, u32 view, i64 start, i64 bytes, i64 panel, bool warp) {
  i64 within = start % panel;
  if (!within || (within % ROW_BYTES == 0 && within + bytes <= panel)) return true;
  return !warp && within % SLICE_BYTES == 0 && !sc_mn_major(s->k, view);
}

// Does a slice fit if it starts wherever `base` says? All that is known of `base` is which multiple
// it is.
static bool fits_anywhere(const Target *s, Xid base, i64 size, i64 bytes, i64 panel) {
  i64 aligned = panel;
  while (aligned >= ROW_BYTES && !sc_fact_multiple(s->facts, base, aligned / size)) aligned /= 2;
  return aligned == panel || (aligned >= ROW_BYTES && bytes <= aligned);
}

// An operand is read across panels from the start of one; a slice that starts within a panel ends
// there. Warps read 16 bytes of a row at once. `extent`: the slice's columns.
static void check_slice(Target *s, u32 view, i64 extent, bool warp) {
  const View *v = &s->k->view.at[view];
  const Buf *b = tgt_buf(s, view);
  if (b->space != SP_STAGE || b->rank != 2 || !b->swizzle || !v->at[1].base) return;
  i64 size = sc_elem[b->elem].bytes, panel = warp ? ROW_BYTES : b->swizzle, start;
  bool fits = x_const_int(s->k, v->at[1].base, &start)
                  ? fits_from(s, view, start * size, extent * size, panel, warp)
                  : fits_anywhere(s, v->at[1].base, size, extent * size, panel);
  if (fits) return;
  const char *what =
      warp ? "is an operand, and may start at a column that is no multiple of 16 bytes"
           : "is an operand, and may start within one panel and end in another";
  const char *help = sc_printf(s->sc, "begin at a multiple of %lld columns%s",
                               (long long)(panel / size), warp ? "" : ", or end before the next");
  tgt_cannot(s, v->span, what, b->name, help);
}

static void check_warp(Target *s, const Product *p) {
  const View *a = &s->k->view.at[p->a], *b = &s->k->view.at[p->b];
  if (tgt_buf(s, p->a)->elem != tgt_buf(s, p->b)->elem)
    tgt_cannot(s, p->span, "a product by warps of two element types", NULL, NULL);
  if (p->n % 16) {
    tgt_cannot(s, p->span, "a product by warps whose columns are no multiple of 16", NULL,
               "take a multiple of 16 columns");
  }
  if (a->at[1].var != 2 || b->at[1].var != 2) {
    tgt_cannot(s, p->span,
               "a product by warps with an operand whose contracted index is not the last", NULL,
               "transpose it through a ring, or let a warpgroup multiply, with 'async'");
  }
  if (sc_blocks(s->k, tgt_buf(s, p->dst)) > 1)
    tgt_cannot(s, p->span, "a product by warps of more than 16 rows each", NULL, NULL);
}

void tgt_product(Target *s, const Product *p, bool warp) {
  check_operand(s, p->a, warp);
  check_operand(s, p->b, warp);
  check_slice(s, p->a, sc_mn_major(s->k, p->a) ? p->m : p->k, warp);
  check_slice(s, p->b, sc_mn_major(s->k, p->b) ? p->n : p->k, warp);
  if (warp) check_warp(s, p);
}

static bool bytes_in_registers(const Buf *b) {
  return b->space == SP_REG && sc_elem[b->elem].bytes == 1;
}

// The other operand of a product whose 8-bit operand is in registers is stored in the order of
// columns that the registers have, so that no product without such an operand can use it.
void tgt_permuted(Target *s) {
  const Kernel *k = s->k;
  for (u32 i = 0; i < k->product.n; i++) {
    const Product *p = &k->product.at[i];
    const Buf *a = tgt_buf(s, p->a), *b = tgt_buf(s, p->b);
    if (!a->permuted && (!b->permuted || bytes_in_registers(a))) continue;
    tgt_cannot(s, p->span,
               "a stage that is multiplied with 8-bit operands in registers and in shared memory",
               NULL, NULL);
  }
}
