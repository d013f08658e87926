// copy.c - copies by the copy engine: which tensor maps they need, and their coordinates. In: an
// operation that copies. Out: its call in the text, and its tensor map in the list of the kernel's.
//
// A stage is stored panel by panel, and the copy engine must write it so. If the tensor's last
// dimension is known to be a multiple of a panel, the tensor map splits it in two (column in the
// panel, panel), and one copy brings all panels. Otherwise there is one copy for each panel, so
// that the tensor's last column ends what is copied.
//
// Called by frame.c; calls ring.c for the barrier on which a copy lands, tile.c for stages, expr.c
// and inside.c.
#include "compiler/emit/emit.h"

#include <string.h>

// The dimensions of a tensor map, innermost first: the last one, the other sliced ones, the panels,
// then those at which the copy takes one index. `to` gets the tensor's dimension for each, or
// MAP_PANEL_COL, MAP_PANEL.
u32 sc_cuda_map_dims(const TmaMap *m, u32 rank, i8 to[5]) {
  u32 n = 0;
  to[n++] = m->whole ? MAP_PANEL_COL : (i8)(rank - 1);
  for (u32 d = rank - 1; d-- > 0 && n < 5;) {
    if (m->sliced[d]) to[n++] = (i8)d;
  }
  if (m->whole && n < 5) to[n++] = MAP_PANEL;
  for (u32 d = rank - 1; d-- > 0 && n < 5;) {
    if (!m->sliced[d]) to[n++] = (i8)d;
  }
  return n;
}

typedef struct Copy {
  const View *tensor, *stage;
  const Buf *part;
  TmaMap m;
  u32 number;      // of the map
  u32 panels;      // copies
  bool by_panels;  // multicast: CTAs bring panels (else rows)
} Copy;

static Copy copy(Cuda *c, u32 tensor, u32 stage, u32 ctas) {
  Copy y = {.tensor = &c->k->view.at[tensor], .stage = &c->k->view.at[stage]};
  y.part = &c->k->buf.at[y.stage->buf];
  const Buf *t = &c->k->buf.at[y.tensor->buf];
  y.m = (TmaMap){.tensor = y.tensor->buf, .part = y.stage->buf, .ctas = ctas};
  for (u32 d = 0; d < t->rank; d++) y.m.sliced[d] = y.tensor->at[d].slice;
  u32 bytes = sc_elem[t->elem].bytes,
      panels = (u32)y.part->ext[y.part->rank - 1] * bytes / sc_panel_bytes(y.part);
  i64 last, base = 0;
  const Pos *col = &y.tensor->at[t->rank - 1];
  bool aligned = !col->base || (x_const_int(c->k, col->base, &base) &&
                                base * bytes % sc_panel_bytes(y.part) == 0);
  y.by_panels = ctas > 1 && panels % ctas == 0;
  // one copy would put a panel's share behind that of the panel before
  bool rows = ctas > 1 && !y.by_panels;
  y.m.whole = panels > 1 && !rows && t->rank < 5 && aligned &&
              x_const_int(c->k, t->dim[t->rank - 1], &last) &&
              last * bytes % sc_panel_bytes(y.part) == 0;
  y.panels = y.m.whole ? 1 : y.by_panels ? panels / ctas : panels;
  for (y.number = 0; y.number < c->tma.n; y.number++) {
    const TmaMap *o = &c->tma.at[y.number];
    if (o->tensor == y.m.tensor && o->part == y.m.part && o->ctas == ctas &&
        !memcmp(o->sliced, y.m.sliced, sizeof o->sliced) && o->whole == y.m.whole)
      return y;
  }
  PUSH(c->sc, &c->tma, y.m);
  return y;
}

// "Q_map", and "Q_map_2" where there is another one of Q.
const char *cu_map_name(Cuda *c, u32 map) {
  u32 tensor = c->tma.at[map].tensor, n = 1;
  for (u32 i = 0; i < map; i++) n += c->tma.at[i].tensor == tensor;
  return cu_text(c, n > 1 ? "%s_map_%u" : "%s_map", c->k->buf.at[tensor].name, n);
}

static Txt ranks(Cuda *c, i64 each) {
  Txt rank = {"cta_rank", P_NAME};
  return each == 1 ? rank : cu_binary(c, X_MUL, true, rank, cu_int(c, each));
}

// Coordinates of the copy of panel `p`, innermost first, filled up to five.
static const char *coordinates(Cuda *c, const Copy *y, u32 p) {
  const Txt zero = cu_int(c, 0);
  Txt at[5] = {zero, zero, zero, zero, zero};
  i8 dims[5];
  u32 n = sc_cuda_map_dims(&y->m, y->tensor->rank, dims), ctas = y->m.ctas;
  u32 width = sc_panel_bytes(y->part) / sc_elem[y->part->elem].bytes,
      panels = (u32)y->part->ext[y->part->rank - 1] / width;
  for (u32 i = 0; i < n; i++) {
    if (dims[i] == MAP_PANEL_COL) continue;
    const Pos *pos = &y->tensor->at[dims[i] == MAP_PANEL ? y->tensor->rank - 1u : (u32)dims[i]];
    Txt base = cu_uniform(c, pos->base);
    if (dims[i] == MAP_PANEL) {
      i64 first = 0;
      if (pos->base) x_const_int(c->k, pos->base, &first);
      at[i] = cu_sum(c, cu_int(c, first / width), y->by_panels ? ranks(c, panels / ctas) : zero);
    } else if (i == 0) {
      at[i] = cu_sum(c, base, y->by_panels ? ranks(c, panels / ctas * width) : zero);
      at[i] = cu_sum(c, at[i], cu_int(c, p * width));
    } else {
      at[i] = i == 1 && ctas > 1 && !y->by_panels
                  ? cu_sum(c, base, ranks(c, sc_stage_rows(y->part) / ctas))
                  : base;
    }
  }
  return cu_text(c, "%s, %s, %s, %s, %s", at[0].s, at[1].s, at[2].s, at[3].s, at[4].s);
}

// Where this CTA's share of a stage begins, of `bytes`.
static const char *share_of(Cuda *c, const Copy *y, i64 bytes) {
  const Ring *r = &c->k->ring.at[y->part->ring];
  if (r->stage_bytes != bytes * y->m.ctas) return ranks(c, bytes).s;
  return cu_text(c, "cta_rank * ($%s_bytes / %u)", c->ring[y->part->ring], y->m.ctas);
}

// Where panel `p` of the stage goes, or this CTA's share of it.
static const char *panel_at(Cuda *c, const Copy *y, u32 p) {
  i64 panel = sc_stage_rows(y->part) * sc_panel_bytes(y->part);
  u32 panels =
      (u32)y->part->ext[y->part->rank - 1] * sc_elem[y->part->elem].bytes / sc_panel_bytes(y->part);
  const char *at = cu_stage(c, y->stage);
  if (y->m.ctas > 1)
    at = cu_text(c, "%s + %s", at,
                 share_of(c, y, y->by_panels ? panels / y->m.ctas * panel : panel / y->m.ctas));
  return p ? cu_text(c, "%s + %lld", at, (long long)p * panel) : at;
}

void cu_copy_in(Cuda *c, const Ins *ins) {
  u32 ctas = ins->flags & INS_MULTICAST ? sc_cluster(c->k) : 1;
  Copy y = copy(c, ins->arg[1], ins->arg[0], ctas);
  const char *bar = cu_landing(c, y.part->ring);
  const char *who = cu_elected(c);
  for (u32 p = 0; p < y.panels; p++) {
    const char *to = panel_at(c, &y, p), *from = coordinates(c, &y, p);
    if (ctas > 1)
      cu_line(c, "%ssc_tma_multicast(%s, &%s, %s, 0x%x, %s);", who, to, cu_map_name(c, y.number),
              bar, (1u << ctas) - 1, from);
    else
      cu_line(c, "%ssc_tma_load(%s, &%s, %s, %s);", who, to, cu_map_name(c, y.number), bar, from);
  }
}

void cu_copy_out(Cuda *c, const Ins *ins) {
  Copy y = copy(c, ins->arg[0], ins->arg[1], 1);
  bool add = ins->op == OP_COPYADD;
  const char *written = cu_in_grid(c, &c->k->view.at[ins->arg[0]]);
  if (!c->single) cu_open(c, "if ($thread == 0)");
  if (written) cu_open(c, "if (%s)", written);
  for (u32 p = 0; p < y.panels; p++) {
    cu_line(c, "sc_tma_%s(&%s, %s, %s);", add ? "add" : "store", cu_map_name(c, y.number),
            panel_at(c, &y, p), coordinates(c, &y, p));
  }
  if (written) cu_close(c);
  cu_line(c, "sc_tma_commit();");
  if (!c->single) cu_close(c);
}

void cu_copy_wait(Cuda *c, const Ins *ins) {
  cu_line(c, "%ssc_tma_wait%s<%u>();", cu_elected(c), ins->flags & INS_READ ? "_read" : "",
          ins->plan.keep);
}
