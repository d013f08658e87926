// product.c - tensor-core products: x[m,n] (+)= a[..] @ b[..]. Out: a Product whose variables
// are 0 = m, 1 = n, 2 = the contracted index, and whose shape wgmma or mma.sync can do (PTX
// ISA 9.0, asynchronous warpgroup matrix multiply: m 64, n up to 256 in steps of 8, k 16 elements,
// 32 of 8 bits).
// Called by map.c; calls view.c for the operands, and code.c.
#include "compiler/lower/lower.h"

static bool is_float(u8 elem) {
  return elem == EL_F16 || elem == EL_BF16 || elem == EL_E4M3 || elem == EL_E5M2;
}

static Diag *product_error(Low *l, Span at, const char *text) {
  return low_error(l, D_R9_PRODUCT, at, "%s", text);
}

// Which position of a view holds a variable: -1: none.
static int where(const View *v, int var) {
  for (int i = 0; i < v->rank; i++) {
    if (v->at[i].var == var) return i;
  }
  return -1;
}

static u32 accumulator(Low *l, const Node *left) {
  u32 buf;
  if (left->kind != ND_INDEX) {
    Diag *d = product_error(l, left->span, "a product goes into a register tile: x[i, j]");
    if (left->kind == ND_NAME)
      sc_help(l->sc, d, "write the indices of all three: %s[i, j] = a[i, k] @ b[k, j]", left->name);
    return SC_NONE;
  }
  if (!low_buf(l, left->a, &buf)) return SC_NONE;
  const Buf *b = &l->k->buf.at[buf];
  if (b->space != SP_REG || b->elem != EL_F32 || b->rank != 2 || b->partial) {
    Diag *d = product_error(l, left->span,
                            "a product accumulates in a register tile of f32 with two dimensions");
    sc_note(l->sc, d, b->span, "'%s' is %s%s", b->name, sc_elem[b->elem].text,
            low_dims_text(l, buf));
    sc_help(l->sc, d, "reg x : f32[64, n], and convert its elements afterwards");
    return SC_NONE;
  }
  l->stmt->make = true;
  return low_view(l, left, buf, false);
}

static u32 factor(Low *l, const Node *n, bool right) {
  u32 buf;
  if (n->kind != ND_INDEX) {
    if (n->kind == ND_ERROR) return SC_NONE;
    Diag *d = product_error(l, n->span, "the factors of a product are tiles: a[i, k] @ b[k, j]");
    sc_help(l->sc, d, "compute the factor into a register tile first");
    return SC_NONE;
  }
  if (!low_buf(l, n->a, &buf)) return SC_NONE;
  const Buf *b = &l->k->buf.at[buf];
  if (b->space != SP_STAGE && (right || b->space != SP_REG)) {
    Diag *d = product_error(l, n->span,
                            right ? "the right factor is a held stage of a ring"
                                  : "the left factor is a register tile or a held stage of a ring");
    sc_note(l->sc, d, b->span, "declared here");
    const bool tensor = b->space == SP_TENSOR;
    sc_help(l->sc, d, tensor ? "copy it into a ring: r <- %s[…]" : "'%s' goes through a ring",
            b->name);
    return SC_NONE;
  }
  if (b->partial || !is_float(b->elem)) {
    Diag *d = low_error(l, D_R9_TYPE, n->span,
                        "factors of a product are f16, bf16, e4m3 or e5m2, and '%s' is %s", b->name,
                        sc_elem[b->elem].text);
    sc_note(l->sc, d, b->span, "declared here");
    sc_help(l->sc, d, "convert its elements into a tile of one of these types first");
    return SC_NONE;
  }
  return low_view(l, n, buf, false);
}

// The rows belong to the left factor, the columns to the right one, and one index is in both.
static bool indices_fit(Low *l, const Node *n, const Stmt *s, const View *a, const View *b) {
  if (s->n == 3 && where(a, 0) >= 0 && where(a, 1) < 0 && where(b, 1) >= 0 && where(b, 0) < 0 &&
      where(a, 2) >= 0 && where(b, 2) >= 0)
    return true;
  Diag *d = product_error(l, n->b->span,
                          s->n == 2  ? "a product contracts one index that is missing on the left"
                          : s->n > 3 ? "a product contracts one index, and here are more"
                                     : "the indices of this product do not fit");
  const char *i = s->var[0].name, *j = s->n > 1 ? s->var[1].name : "j",
             *k = s->n > 2 ? s->var[2].name : "k";
  sc_help(l->sc, d,
          "the left factor has '%s' and the contracted index, the right one that and '%s': a[%s, "
          "%s] @ b[%s, %s]",
          i, j, i, k, k, j);
  return false;
}

static bool types_fit(Low *l, const Node *n, const View *a, const View *b) {
  const Buf *p = &l->k->buf.at[a->buf], *q = &l->k->buf.at[b->buf];
  if (p->elem != q->elem && (sc_elem[p->elem].bytes != 1 || sc_elem[q->elem].bytes != 1)) {
    Diag *d = low_error(l, D_R9_TYPE, n->b->span, "the factors have different types: %s and %s",
                        sc_elem[p->elem].text, sc_elem[q->elem].text);
    sc_note(l->sc, d, p->span, "'%s'", p->name);
    sc_note(l->sc, d, q->span, "'%s'", q->name);
    sc_help(l->sc, d,
            "let both be of one type, or both of 8 bits: elements are converted by statements, "
            "into a register tile or a ring of the other type");
    return false;
  }
  if (p->space == SP_REG && (where(a, 0) != 0 || where(a, 2) != 1 || a->at[1].base)) {
    Diag *d = product_error(
        l, a->span, "a register tile as left factor is read as it lies: [row, contracted index]");
    sc_help(l->sc, d,
            a->at[1].base ? "for a part of it take a tile of its own: 'h[i,j] = x[i, 64 + j]'"
                          : "a transpose goes through a ring");
    return false;
  }
  if (sc_elem[p->elem].bytes != 1) return true;
  const View *v[2] = {a, b};
  for (int i = 0; i < 2; i++) {
    const Buf *f = &l->k->buf.at[v[i]->buf];
    if (f->space == SP_REG || where(v[i], 2) == v[i]->rank - 1) continue;
    Diag *d =
        low_error(l, D_R9_KMAJOR, v[i]->span,
                  "8-bit factors lie with the contracted index last, and '%s' does not", f->name);
    sc_note(l->sc, d, f->span, "'%s' is %s", f->name, low_dims_text(l, v[i]->buf));
    sc_help(l->sc, d, "transpose it into a ring first: acquire t;  t[j, k] = %s[k, j];  commit t",
            f->name);
    return false;
  }
  return true;
}

static bool multiple(Low *l, const Node *n, const Stmt *s, u32 var, i64 of, i64 most) {
  i64 v = 0;
  x_const_int(l->k, s->var[var].extent, &v);
  if (v % of == 0 && v > 0 && v <= most) return true;
  Diag *d =
      low_error(l, D_R9_SHAPE, n->b->span,
                "the index '%s' of this product runs over %lld: it must be a multiple of %lld%s",
                s->var[var].name, (long long)v, (long long)of,
                most == INT64_MAX ? "" : sc_printf(l->sc, ", at most %lld", (long long)most));
  sc_note(l->sc, d, l->k->view.at[s->var[var].from].span, "its extent comes from here");
  const i64 less = v > most ? most : v / of * of, more = v / of * of + of;
  if (less > 0 && more <= most)
    sc_help(l->sc, d, "the nearest that fit are %lld and %lld: declare its tile so",
            (long long)less, (long long)more);
  else
    sc_help(l->sc, d, "the nearest that fits is %lld: declare its tile so",
            (long long)(less > 0 ? less : of));
  return false;
}

// A warpgroup's product that its warps make one by one, though they could make it together. In a
// vote each warp is by itself; and of a stage's columns warps read parts that a warpgroup cannot.
static void warn_slow(Low *l, const Node *n, const Product *p) {
  const View *a = &l->k->view.at[p->a], *b = &l->k->view.at[p->b];
  bool parts = a->at[a->rank - 1].base || b->at[b->rank - 1].base;
  if (l->vote || l->undecided.hi || l->k->role.at[l->role].warps != 4) return;
  if (parts || p->m % 64 || p->n > 256) return;
  const char *name = l->k->buf.at[l->k->view.at[p->dst].buf].name;
  Diag *d = low_error(l, D_R9_ASYNC, n->span,
                      "this product has no 'async': each warp makes its part alone, several times "
                      "slower than a warpgroup together");
  sc_help(l->sc, d, "write 'async' before it, and 'wait %s' before '%s' is used", name, name);
}

void low_product(Low *l, const Node *n) {
  bool async = n->flags & F_ASYNC;
  if (async && !low_ordered(l, n->span, "an async product")) return;
  Stmt s;
  low_begin(l, &s, n->span);
  u32 dst = accumulator(l, n->a), a = SC_NONE, b = SC_NONE;
  if (dst != SC_NONE) a = factor(l, n->b->a, false), b = factor(l, n->b->b, true);
  if (n->c) low_error(l, D_R9_PRODUCT, n->c->span, "a product takes no condition");
  bool ok = dst != SC_NONE && a != SC_NONE && b != SC_NONE && !n->c;
  ok = ok && indices_fit(l, n, &s, &l->k->view.at[a], &l->k->view.at[b]) &&
       types_fit(l, n, &l->k->view.at[a], &l->k->view.at[b]);
  if (!low_end(l, &s, ok)) return;
  i64 step = sc_elem[l->k->buf.at[l->k->view.at[b].buf].elem].bytes == 1 ? 32 : 16;
  if (!multiple(l, n, &s, 0, async ? 64 : 16, INT64_MAX) ||
      !multiple(l, n, &s, 1, 8, async ? 256 : INT64_MAX) || !multiple(l, n, &s, 2, step, INT64_MAX))
    return;
  if (async && l->k->role.at[l->role].warps != 4) {
    Diag *d =
        product_error(l, n->span, "an async product needs a warpgroup, and this role is one warp");
    sc_note(l->sc, d, l->k->role.at[l->role].span, "declared here");
    return;
  }
  Product p = {.span = n->span, .dst = dst, .a = a, .b = b, .acc = n->op == AST_SETADD};
  x_const_int(l->k, s.var[0].extent, &p.m);
  x_const_int(l->k, s.var[1].extent, &p.n);
  x_const_int(l->k, s.var[2].extent, &p.k);
  if (!async) warn_slow(l, n, &p);
  PUSH(l->sc, &l->k->product, p);
  low_emit(l, async ? OP_MMA : OP_MMAWARP, 0, l->k->product.n - 1, 0, 0, n->span);
}
