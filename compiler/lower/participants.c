// participants.c - finds the roles that fill and that drain each ring, once the code of all roles
// is complete. Out: Ring.fillers and Ring.drainers. An error: a ring that is only filled or only
// drained, or a part of a stage that is read and never filled. A warning: a fill that puts nothing
// into the stage, or rows or columns that are read and never filled. A turn that nobody takes
// vanishes. Called by bind.c.
#include "compiler/lower/lower.h"

// The ring whose stage a role touches through the view, if it is one; a held stage has been waited
// for.
static Ring *touched(Low *l, u32 role, u32 view) {
  const View *v = &l->k->view.at[view];
  const Buf *b = &l->k->buf.at[v->buf];
  if (b->space != SP_STAGE) return NULL;
  Ring *r = &l->k->ring.at[b->ring];
  if (!v->fill && !(r->drainers >> role & 1)) {
    Diag *d = low_error(l, D_R5_HOLD, v->span, "the role '%s' holds no stage of '%s'",
                        l->k->role.at[role].name, r->name);
    sc_note(l->sc, d, r->span, "declared here");
    sc_help(l->sc, d, "'wait %s' before it is read, 'acquire %s' before it is filled", r->name,
            r->name);
  }
  return r;
}

// What is known so far of the tiles of rings.
typedef struct Walk {
  u32 *read;      // by buf: a view that reads it, + 1; 0: none
  bool *written;  // by buf
} Walk;

static void mark(Low *l, Walk *w, u32 view, bool write) {
  u32 buf = l->k->view.at[view].buf;
  if (write) w->written[buf] = true;
  else if (!w->read[buf]) w->read[buf] = view + 1;
}

static void access(Low *l, u32 role, const Ins *ins, Walk *w) {
  for (u32 i = 0; i < ins->accesses; i++) {
    const ViewAccess *a = sc_view_access(l->k, ins, i);
    Ring *r = touched(l, role, a->view);
    if (!r) continue;
    mark(l, w, a->view, a->write);
    r->multicast |= (ins->flags & INS_MULTICAST) != 0;
  }
}

static void sides(Kernel *k, Ring *ring) {
  for (u32 r = 0; r < k->role.n; r++) {
    u8 use = sc_ring_use(k, r, (u32)(ring - k->ring.at));
    if (use & USE_FILL) ring->fillers |= (u16)(1u << r);
    if (use & USE_DRAIN) ring->drainers |= (u16)(1u << r);
  }
}

// Tiles of the ring's stages that are read, and that no role writes.
static void unfilled(Low *l, const Ring *r, const Walk *w) {
  for (u32 b = r->part0; b < r->part0 + r->parts; b++) {
    if (!w->read[b] || w->written[b]) continue;
    const char *name = l->k->buf.at[b].name;
    if (r->parts > 1) name = sc_printf(l->sc, "%s.%s", r->name, name);
    Diag *d = low_error(l, D_R5_UNUSED, l->k->view.at[w->read[b] - 1].span,
                        "'%s' is read, and nobody fills it", name);
    sc_note(l->sc, d, r->span, "its stages are acquired and committed without it");
    sc_help(l->sc, d,
            "'%s <- G[…]' or '%s[…] = …' between 'acquire %s' and "
            "'commit %s'",
            name, name, r->name, r->name);
  }
}

// The elements [from, end) along dimension d that an operation touches through a view: all, if it
// depends on the run. (Of a product with a part of a stage the first is enough.)
static void touches(const Kernel *k, const Ins *ins, const View *v, u32 d, i64 *from, i64 *end) {
  const Pos pos = v->at[d];
  const i64 all = k->buf.at[v->buf].ext[d];
  i64 n = 1;
  *from = 0;
  *end = all;
  if (pos.base && (!x_const_int(k, pos.base, from) || *from < 0)) return;
  bool some = ins->op != OP_MAP || pos.var < 0;
  if (ins->op != OP_MAP && !pos.base) return;
  if (!some && !x_const_int(k, k->map.at[ins->arg[0]].var[pos.var].extent, &n)) n = all;
  *end = *from + n < all ? *from + n : all;
}

// Goes through what is written to the tile, and marks it; or through what is read of it, and
// returns the first view that reads along dimension d what nobody writes, in `gap`. SC_NONE: there
// is none.
static u32 covered(const Low *l, u32 buf, u32 d, bool *filled, bool write, i64 *gap) {
  const Kernel *k = l->k;
  for (u32 r = 0; r < k->role.n; r++) {
    const Code *code = &k->role.at[r].code;
    for (u32 i = 0; i < code->n; i++) {
      for (u32 n = 0; n < code->at[i].accesses; n++) {
        const ViewAccess *a = sc_view_access(k, &code->at[i], n);
        const View *v = &k->view.at[a->view];
        i64 from, end;
        if (v->buf != buf || a->write != write) continue;
        touches(k, &code->at[i], v, d, &from, &end);
        for (i64 x = from; x < end; x++) {
          if (write) filled[x] = true;
          else if (!filled[x]) return *gap = x, a->view;
        }
      }
    }
  }
  return SC_NONE;
}

// A tile of a ring's stages of which nobody fills some rows or columns, but somebody reads them.
static void filled_in_part(Low *l, u32 buf, const Walk *w) {
  const Buf *b = &l->k->buf.at[buf];
  for (u32 d = 0; d < b->rank && w->read[buf] && w->written[buf]; d++) {
    i64 gap = 0;
    bool *filled = NEWS(l->sc, bool, (u32)b->ext[d]);
    covered(l, buf, d, filled, true, &gap);
    u32 view = covered(l, buf, d, filled, false, &gap);
    if (view == SC_NONE) continue;
    Diag *at =
        low_error(l, D_R5_EMPTY, l->k->view.at[view].span,
                  "'%s' is read here, and no fill brings what has index %lld in dimension %u",
                  low_part_name(l, b), (long long)gap, d);
    sc_note(l->sc, at, l->k->ring.at[b->ring].span, "what was in its stages before is read");
    sc_help(l->sc, at, "fill all that is read, or read no more than is filled");
    return;
  }
}

static bool brings(const Kernel *k, const Ins *ins, u32 ring) {
  u32 view = SC_NONE;
  if (ins->op == OP_COPYIN) view = ins->arg[0];
  if (ins->op == OP_MAP) view = k->map.at[ins->arg[0]].dst;
  return view != SC_NONE && k->view.at[view].fill && k->buf.at[k->view.at[view].buf].ring == ring;
}

// The commit of the fill that opens at `pc`, if nothing in between brings anything; else SC_NONE.
static u32 empty_until(const Kernel *k, const Code *code, u32 pc) {
  u32 ring = code->at[pc].arg[0];
  for (u32 i = pc + 1; i < code->n && !brings(k, &code->at[i], ring); i++) {
    if (code->at[i].op == OP_COMMIT && code->at[i].arg[0] == ring) return i;
  }
  return SC_NONE;
}

// A fill that brings nothing is doubtful if other fills of the ring bring what is read. (Where
// several roles fill a stage together, one of them may bring all of it.)
static void empty_fill(Low *l, const Code *code, u32 pc, const Walk *w) {
  const Kernel *k = l->k;
  const Ring *r = &k->ring.at[code->at[pc].arg[0]];
  u32 commit = empty_until(k, code, pc), b = r->part0;
  while (b < r->part0 + r->parts && !(w->read[b] && w->written[b])) b++;
  if (commit == SC_NONE || b == r->part0 + r->parts || r->fillers & (r->fillers - 1)) return;
  Diag *d =
      low_error(l, D_R5_EMPTY, code->at[pc].span, "this fill of '%s' brings nothing", r->name);
  if (code->at[commit].span.lo != code->at[pc].span.lo)
    sc_note(l->sc, d, code->at[commit].span, "it ends here");
  sc_note(l->sc, d, k->view.at[w->read[b] - 1].span,
          "what was in the stage before may be read here");
  sc_help(
      l->sc, d,
      "copy or store into it; a stage that is a signal only belongs to a ring that nobody reads");
}

static bool is_taken(const Kernel *k, u32 turn) {
  bool taken = false;
  for (u32 r = 0; r < k->role.n; r++) {
    const Code *code = &k->role.at[r].code;
    for (u32 i = 0; i < code->n; i++) {
      const Ins *ins = &code->at[i];
      taken |= (ins->op == OP_TAKE || ins->op == OP_PASS) && ins->arg[0] == turn;
    }
  }
  return taken;
}

void low_participants(Low *l) {
  Walk w = {.read = NEWS(l->sc, u32, l->k->buf.n + 1),
            .written = NEWS(l->sc, bool, l->k->buf.n + 1)};
  for (u32 i = 0; i < l->k->ring.n; i++) sides(l->k, &l->k->ring.at[i]);
  for (u32 i = 0; i < l->k->turn.n; i++) l->k->turn.at[i].active &= is_taken(l->k, i);
  for (u32 r = 0; r < l->k->role.n; r++) {
    const Code *code = &l->k->role.at[r].code;
    for (u32 i = 0; i < code->n; i++) access(l, r, &code->at[i], &w);
  }
  for (u32 r = 0; r < l->k->role.n; r++) {
    const Code *code = &l->k->role.at[r].code;
    for (u32 i = 0; i < code->n; i++) {
      if (code->at[i].op == OP_ACQUIRE) empty_fill(l, code, i, &w);
    }
  }
  for (u32 i = 0; i < l->k->ring.n; i++) {
    const Ring *r = &l->k->ring.at[i];
    if (r->fillers && r->drainers) unfilled(l, r, &w);
    for (u32 b = r->part0; b < r->part0 + r->parts; b++) filled_in_part(l, b, &w);
    if (!r->fillers == !r->drainers) continue;  // with neither, the stage in use is not held
    Diag *d = low_error(l, D_R5_UNUSED, r->span,
                        r->fillers ? "the ring '%s' is filled, and nobody waits for it"
                                   : "the ring '%s' is used, and nobody fills it",
                        r->name);
    sc_help(l->sc, d,
            r->fillers ? "'wait %s' and 'release %s' where its tiles are used"
                       : "%s <- G[…], or 'acquire %s' … 'commit %s'",
            r->name, r->name, r->name);
  }
}
