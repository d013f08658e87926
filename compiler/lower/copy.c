// copy.c - bulk copies between stages and tensors: `r <- G[…]`, `G[…] <- r`, `G[…] += r`.
// Out: views in which each dimension of the stage belongs to one slice of the tensor, in order; the
// extents of the stage say how long the slices are. What a tensor map can express is checked here
// (CUDA driver API, cuTensorMapEncodeTiled).
//
// Called by stmt.c and map.c; calls view.c for buffers, expr.c for positions, and code.c.
#include "compiler/lower/lower.h"

// What a name, or the name before a part's, stands for; NULL: it is no name, or not declared.
static const Name *named(Low *l, const Node *n) {
  const Node *at = n->kind == ND_FIELD ? n->a : n;
  return at->kind == ND_NAME ? low_find(l, at->name) : NULL;
}

static RingDecl *ring_of(Low *l, const Node *n) {
  const Name *name = named(l, n);
  return name && name->kind == NM_RING ? name->ring : NULL;
}

// A part of a ring, by name or as the argument of a def.
static bool is_part(Low *l, const Node *n) {
  const Name *name = n->kind == ND_NAME ? low_find(l, n->name) : NULL;
  return ring_of(l, n) ||
         (name && name->kind == NM_BUF && l->k->buf.at[name->ref].space == SP_STAGE);
}

static u32 whole_stage(Low *l, const Node *n, u32 buf, bool fill) {
  View v = {.span = n->span, .buf = buf, .rank = l->k->buf.at[buf].rank, .fill = fill};
  for (u32 i = 0; i < v.rank; i++) v.at[i] = (Pos){.var = -1, .slice = true};
  PUSH(l->sc, &l->k->view, v);
  return l->k->view.n - 1;
}

static bool slice(Low *l, const Node *p, Pos *out) {
  *out = (Pos){.var = -1, .slice = p->kind == ND_SLICE};
  const Node *start = out->slice ? p->a : p;
  Xid x = low_int(l, start);
  i64 zero;
  if (!x) return false;
  if (!x_uniform(l->k, x)) {
    low_error(l, D_R9_UNIFORM, start->span,
              "where a slice starts must be the same for the whole role instance");
    return false;
  }
  out->base = x_const_int(l->k, x, &zero) && !zero ? 0 : x;
  return true;
}

// The tensor's side; omitted trailing dimensions are whole.
static u32 tensor_slice(Low *l, const Node *n, u32 buf) {
  const Buf *b = &l->k->buf.at[buf];
  View v = {.span = n->span, .buf = buf, .rank = b->rank};
  u32 i = 0;
  bool ok = true;
  for (const Node *p = n->kind == ND_INDEX ? n->b : NULL; p; p = p->next, i++) {
    if (i < v.rank) ok &= slice(l, p, &v.at[i]);
  }
  if (i > v.rank) {
    Diag *d = low_error(l, D_R9_RANK, n->span, "'%s' has %u dimension%s, not %u", b->name, b->rank,
                        b->rank == 1 ? "" : "s", i);
    sc_note(l->sc, d, b->span, "%s", low_dims_text(l, buf));
    return SC_NONE;
  }
  for (; i < v.rank; i++) v.at[i] = (Pos){.var = -1, .slice = true};
  if (!ok) return SC_NONE;
  PUSH(l->sc, &l->k->view, v);
  return l->k->view.n - 1;
}

static bool tensor_map_fits(Low *l, Span at, const View *slice, const Buf *t, const Buf *s) {
  i64 inner = s->ext[s->rank - 1] * sc_elem[s->elem].bytes;
  Diag *d = NULL;
  if (!slice->at[slice->rank - 1].slice)
    d = low_error(l, D_R9_COPY, at,
                  "the copy engine reads along the last dimension of '%s', which is no slice here",
                  t->name);
  else if (t->rank > 5)
    d = low_error(l, D_R9_COPY, at, "'%s' has %u dimensions: the copy engine knows at most 5",
                  t->name, t->rank);
  else if (inner % 16)
    d = low_error(
        l, D_R9_COPY, at,
        "the last dimension of '%s' has %lld bytes: the copy engine needs a multiple of 16",
        s->name, (long long)inner);
  for (u32 i = 0; !d && i + 1 < s->rank; i++) {
    if (s->ext[i] > 256)
      d = low_error(l, D_R9_COPY, at,
                    "'%s' has %lld rows: the copy engine brings at most 256 at once", s->name,
                    (long long)s->ext[i]);
  }
  if (d) sc_note(l->sc, d, s->span, "declared here");
  return !d;
}

// Does each slice of the tensor belong to a dimension of the stage?
static bool shapes_fit(Low *l, Span at, const View *tensor, u32 stage) {
  const Buf *t = &l->k->buf.at[tensor->buf], *s = &l->k->buf.at[stage];
  u32 slices = 0;
  for (u32 i = 0; i < tensor->rank; i++) slices += tensor->at[i].slice;
  if (slices != s->rank) {
    Diag *d = low_error(l, D_R9_RANK, at,
                        "%u of the dimensions of '%s' %s sliced, and a stage of '%s' has %u",
                        slices, t->name, slices == 1 ? "is" : "are", low_part_name(l, s), s->rank);
    sc_note(l->sc, d, s->span, "%s", low_dims_text(l, stage));
    sc_note(l->sc, d, t->span, "%s", low_dims_text(l, tensor->buf));
    sc_help(l->sc, d,
            "e.. starts a slice, e picks one; trailing dimensions that are left out are whole");
    return false;
  }
  if (t->elem != s->elem) {
    Diag *d = low_error(l, D_R9_TYPE, at, "a copy does not convert: '%s' has %s, '%s' has %s",
                        t->name, sc_elem[t->elem].text, low_part_name(l, s), sc_elem[s->elem].text);
    sc_note(l->sc, d, s->span, "declared here");
    sc_help(l->sc, d, "give the ring the tensor's element type");
    return false;
  }
  return tensor_map_fits(l, at, tensor, t, s);
}

static bool tensor_of(Low *l, const Node *n, u32 *buf) {
  if (!low_buf(l, n->kind == ND_INDEX ? n->a : n, buf)) return false;
  const Buf *b = &l->k->buf.at[*buf];
  if (b->space == SP_TENSOR) return true;
  Diag *d = low_error(l, D_N_KIND, n->span,
                      "a copy is between a ring and a tensor, and '%s' is neither", b->name);
  if (b->space == SP_STAGE)
    d->text =
        sc_printf(l->sc, "a copy is between a ring and a tensor, and '%s' is no tensor", b->name);
  sc_note(l->sc, d, b->span, "declared here");
  return false;
}

static bool one_filler(Low *l, Span at, const Buf *stage) {
  const Role *r = &l->k->role.at[l->role];
  if (r->instances == 1 || stage->role != SC_NONE) return true;
  Diag *d =
      low_error(l, D_R5_COPY, at, "a role of %u instances copies into '%s': each of them would",
                r->instances, l->k->ring.at[stage->ring].name);
  sc_note(l->sc, d, r->span, "the role");
  sc_help(l->sc, d,
          "let a role of one instance copy, or declare the ring inside the role: one for each "
          "instance");
  return false;
}

// Each CTA brings its share of a stage to all. Its rows must divide, even where the shares will be
// panels.
static bool shared_evenly(Low *l, const Node *n, const Buf *stage) {
  i64 rows = stage->rank == 2 ? stage->ext[0] : 1, ctas = sc_cluster(l->k);
  if (rows % ctas == 0) return true;
  Diag *d = low_error(l, D_R9_COPY, n->span,
                      "a stage of %lld %s cannot be shared evenly by the cluster's %lld CTAs",
                      (long long)rows, rows == 1 ? "row" : "rows", (long long)ctas);
  sc_note(l->sc, d, stage->span, "declared here");
  sc_help(l->sc, d, "without 'multicast' each of them copies all of it");
  return false;
}

// A multicast brings the same to all CTAs of a cluster; with one CTA it is an ordinary copy.
static bool multicast(Low *l, const Node *n, u32 from, const Buf *stage, u8 *flags) {
  *flags = n->flags & F_MULTICAST && sc_cluster(l->k) > 1 ? INS_MULTICAST : 0;
  if (*flags && !shared_evenly(l, n, stage)) return false;
  const View *v = &l->k->view.at[from];
  for (u32 i = 0; *flags && i < v->rank; i++) {
    if (!x_reads_rank(&l->below, v->at[i].base)) continue;
    Diag *d = low_error(l, D_R9_COPY, n->b->span,
                        "a multicast slice must be the same in all CTAs of the cluster");
    sc_help(l->sc, d, "an index x of 'cluster (x : n)' stands in it as x/n only");
    return false;
  }
  return true;
}

// `r <- G[…]`: a fill of its own, unless it stands between acquire and commit.
static void copy_in(Low *l, const Node *n) {
  RingDecl *d = ring_of(l, n->a);
  u32 stage, tensor;
  if (!low_buf(l, n->a, &stage) || !tensor_of(l, n->b, &tensor) ||
      !low_ordered(l, n->span, "a copy"))
    return;
  const Buf *t = &l->k->buf.at[tensor];
  if (!(t->dir & F_IN)) {
    sc_note(l->sc,
            low_error(l, D_N_READ, n->b->span, "'%s' is an output: it cannot be read", t->name),
            t->span, "declared here");
    return;
  }
  u32 ring = l->k->buf.at[stage].ring;
  bool bracket = low_is_filling(l, stage);
  if (!one_filler(l, n->span, &l->k->buf.at[stage])) return;
  if (!bracket && (l->k->ring.at[ring].parts > 1 || !d)) {
    Diag *e = low_error(l, D_R5_BRACKET, n->span, "'%s' is not being filled here",
                        l->k->ring.at[ring].name);
    sc_help(l->sc, e, "put the copies of one stage between 'acquire %s' and 'commit %s'",
            l->k->ring.at[ring].name, l->k->ring.at[ring].name);
    return;
  }
  u32 from = tensor_slice(l, n->b, tensor);
  u8 flags;
  if (from == SC_NONE || !shapes_fit(l, n->span, &l->k->view.at[from], stage) ||
      !multicast(l, n, from, &l->k->buf.at[stage], &flags))
    return;
  if (!bracket) low_emit(l, OP_ACQUIRE, 0, ring, 0, 0, n->span);
  low_emit(l, OP_COPYIN, flags, whole_stage(l, n->a, stage, true), from, 0, n->span);
  if (!bracket) low_emit(l, OP_COMMIT, 0, ring, 0, 0, n->span);
}

static void copy_out(Low *l, const Node *n, bool add) {
  u32 stage, tensor;
  if (!tensor_of(l, n->a, &tensor) || !low_buf(l, n->b, &stage)) return;
  if (!low_ordered(l, n->span, "a copy")) return;
  const Buf *t = &l->k->buf.at[tensor];
  if (!(t->dir & F_OUT)) {
    sc_note(l->sc,
            low_error(l, D_N_WRITE, n->a->span, "'%s' is an input: it cannot be written", t->name),
            t->span, "declared here");
    return;
  }
  if (n->flags & F_MULTICAST) {
    low_error(l, D_R9_COPY, n->span, "only copies into a ring can be multicast");
    return;
  }
  u32 to = tensor_slice(l, n->a, tensor);
  if (to == SC_NONE || !shapes_fit(l, n->span, &l->k->view.at[to], stage)) return;
  if (add && sc_elem[t->elem].bytes == 1) {
    Diag *d = low_error(l, D_R9_COPY, n->span,
                        "the copy engine adds no elements of 8 bits, as '%s' has", t->name);
    sc_note(l->sc, d, t->span, "declared here");
    sc_help(l->sc, d, "add in f32 or a type of 16 bits, and convert after");
    return;
  }
  low_emit(l, add ? OP_COPYADD : OP_COPYOUT, 0, to, whole_stage(l, n->b, stage, false), 0, n->span);
}

void low_copy(Low *l, const Node *n) {
  if (is_part(l, n->a)) {
    copy_in(l, n);
  } else if (is_part(l, n->b)) {
    copy_out(l, n, false);
  } else {
    u32 buf;
    if (!low_buf(l, n->a->kind == ND_INDEX ? n->a->a : n->a, &buf)) return;
    const Name *from = named(l, n->b);
    if (from && from->kind == NM_BAD) return;  // whose declaration was reported
    Diag *d = low_error(l, D_N_KIND, n->span,
                        "a copy is between a ring and a tensor, and there is no ring here");
    sc_help(l->sc, d, "elements are assigned with '='; r <- G[…] fills a stage of ring r");
  }
}

void low_copy_add(Low *l, const Node *n) {
  if (n->c) low_error(l, D_R9_COPY, n->c->span, "a copy takes no condition");
  else copy_out(l, n, true);
}
