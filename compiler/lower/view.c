// view.c - positions: the INDEX syntax `x[i, 8*j..]` becomes a view, and the index variables of a
// statement are found. In a kernel a position is a uniform value plus at most one variable; a
// specification allows any integer expression. Which extent a variable has is decided when the
// whole statement has been seen: that of a register tile, else of a whole dimension of a stage,
// else of a constant dimension of a tensor.
//
// Called by the files of statements and by expr.c; calls expr.c for positions, and scope.c.
#include "compiler/lower/lower.h"

#include <string.h>

// ---- variables

int low_var(Low *l, Sym name) {
  if (!l->stmt) return -1;
  for (int v = l->stmt->n; v-- > 0;) {
    if (l->stmt->var[v].live && l->stmt->var[v].name == name) return v;
  }
  return -1;
}

int low_new_var(Low *l, Sym name, Span at) {
  Stmt *s = l->stmt;
  if (s->n == SC_MAX_VARS) {
    Diag *d = low_error(l, D_P_LIMIT, at,
                        "a statement has at most %d indices, its reductions' counted", SC_MAX_VARS);
    sc_help(l->sc, d, "give a part of it a name of its own: let v[i] = …");
    return -1;
  }
  s->var[s->n].name = name;
  s->var[s->n].span = at;
  s->var[s->n].live = true;
  s->var[s->n].calls = l->calls;
  return s->n++;
}

Xid low_index(Low *l, Sym name, Span at) {
  int v = low_var(l, name);
  Stmt *s = l->stmt;
  bool free = v < 0 && s && s->pos && !s->args;  // the arguments of a function are values
  if (free && s->make) v = low_new_var(l, name, at);
  else if (free) {
    Diag *d =
        low_error(l, D_N_INDEX, at, "the index '%s' is neither on the left nor reduced", name);
    sc_note(l->sc, d, s->span, "this statement");
    sc_help(l->sc, d, "write it on the left, or reduce over it: sum(%s) …", name);
  } else if (v < 0) {
    low_unbound(l, name, at);
  }
  return v < 0 ? 0 : x_leaf(l->sc, l->k, X_IDX, TY_INT, (u32)v);
}

void low_begin(Low *l, Stmt *s, Span at) {
  memset(s, 0, sizeof *s);
  s->span = at;
  s->view0 = l->k->view.n;
  l->stmt = s;
}

// ---- what an INDEX stands on

static bool ring_part(Low *l, const Node *at, RingDecl *d, Sym part, u32 *buf) {
  low_use_ring(l, d);
  const Ring *r = &l->k->ring.at[d->id];
  for (u32 i = 0; i < r->parts; i++) {
    if (part ? l->k->buf.at[r->part0 + i].name == part : r->parts == 1)
      return *buf = r->part0 + i, true;
  }
  Diag *e = part ? low_error(l, D_N_KIND, at->span, "the ring '%s' has no part '%s'", r->name, part)
                 : low_error(l, D_N_KIND, at->span, "'%s' is a ring of several parts", r->name);
  sc_note(l->sc, e, r->span, "declared here");
  if (!part) sc_help(l->sc, e, "name one of them: %s.%s", r->name, l->k->buf.at[r->part0].name);
  return false;
}

bool low_buf(Low *l, const Node *base, u32 *buf) {
  const Node *named = base->kind == ND_FIELD ? base->a : base;
  if (named->kind != ND_NAME) {
    if (named->kind != ND_ERROR) low_error(l, D_N_KIND, named->span, "a name is needed here");
    return false;
  }
  Name *n = low_find(l, named->name);
  if (!n) return low_unbound(l, named->name, named->span), false;
  if (!low_is_there(l, n, base->span)) return false;
  bool field = base->kind == ND_FIELD;
  if (n->kind == NM_RING) return ring_part(l, base, n->ring, field ? base->name : NULL, buf);
  if (n->kind == NM_BUF && !field) return *buf = n->ref, true;
  Diag *d = low_error(l, D_N_KIND, base->span,
                      field ? "'%s' is %s: it has no parts" : "'%s' is %s: it has no elements",
                      named->name, low_kind_text(l, n));
  sc_note(l->sc, d, n->span, "declared here");
  if (field && n->kind == NM_BUF && l->k->buf.at[n->ref].space == SP_TENSOR)
    sc_help(l->sc, d, "its extents are values by the names of its declaration: %s",
            low_dims_text(l, n->ref));
  return false;
}

const char *low_dims_text(Low *l, u32 buf) {
  const Buf *b = &l->k->buf.at[buf];
  Str s = {.sc = l->sc};
  str_puts(&s, "[");
  for (u32 i = 0; i < b->rank; i++) {
    if (i) str_puts(&s, ", ");
    if (b->space == SP_STAGE || b->space == SP_REG) str_printf(&s, "%lld", (long long)b->ext[i]);
    else if (b->dim[i]) sc_print_infix(&s, l->k, b->dim[i]);
    else str_puts(&s, "…");
  }
  str_puts(&s, "]");
  return s.at;
}

const char *low_part_name(Low *l, const Buf *part) {
  const Ring *r = &l->k->ring.at[part->ring];
  return r->parts > 1 ? sc_printf(l->sc, "%s.%s", r->name, part->name) : part->name;
}

// ---- positions

// uniform + variable, in any association. False: it is neither.
static bool split(Low *l, Span at, Xid x, Pos *p) {
  const Expr *e = low_at(l, x);
  i64 zero;
  if (!(e->deps & (DEP_IDX | DEP_TILE))) {
    p->base = x_const_int(l->k, x, &zero) && !zero ? 0 : x;
    return true;
  }
  if (e->op == X_IDX) return p->var = (i8)e->ref, true;
  if (e->op != X_ADD && e->op != X_SUB) return false;
  Xid a = e->a, b = e->b;
  bool sub = e->op == X_SUB;
  if (!sub && x_uniform(l->k, a)) a = e->b, b = e->a;
  if (!x_uniform(l->k, b) || !split(l, at, a, p)) return false;
  if (sub)
    p->base = p->base ? low_make(l, at, X_SUB, p->base, b, 0) : low_make(l, at, X_NEG, b, 0, 0);
  else p->base = p->base ? low_make(l, at, X_ADD, p->base, b, 0) : b;
  return p->base != 0;
}

// The first loop variable in a position; SC_NONE: there is none.
static u32 loop_in(Low *l, Xid position) {
  x_begin(&l->below, DEP_LOOP);
  x_from(&l->below, position);
  for (Xid x; (x = x_next(&l->below));)
    if (low_at(l, x)->op == X_LOOP) return low_at(l, x)->ref;
  return SC_NONE;
}

// Registers have no addresses: an index alone, or behind a constant column offset in steps of 8.
static bool register_position(Low *l, const Node *n, const Buf *b, u32 dim, Pos p) {
  i64 c;
  bool known = p.base && x_const_int(l->k, p.base, &c);
  if (p.var >= 0 && (!p.base || (known && dim + 1 == b->rank && dim && c >= 0 && c % 8 == 0)))
    return true;
  u32 loop = known ? SC_NONE : loop_in(l, p.base);
  if (loop != SC_NONE) return l->unroll = loop, false;
  Diag *d = low_error(l, D_R9_TILE, n->span, "a register tile is indexed by plain indices");
  sc_note(l->sc, d, b->span, "'%s' is a register tile", b->name);
  sc_help(l->sc, d,
          "columns may start at a constant multiple of 8; anything else goes through a ring");
  return false;
}

static Xid position_value(Low *l, const Node *n) {
  Stmt *s = l->stmt;
  if (!s) return low_int(l, n);
  u32 args = s->args;
  s->args = 0;
  s->pos++;
  Xid x = low_int(l, n);
  s->pos--;
  s->args = args;
  return x;
}

static bool position(Low *l, const Node *n, u32 buf, u32 dim, Pos *p) {
  const Buf *b = &l->k->buf.at[buf];
  *p = (Pos){.var = -1};
  if (n->kind == ND_SLICE) {
    Diag *d = low_error(l, D_N_KIND, n->span, "a slice stands in copies only");
    sc_help(l->sc, d,
            b->space == SP_STAGE
                ? "a copy takes a stage as a whole; in other statements an index says "
                  "how far: e + i"
                : "in other statements an index says how far: e + i");
    return false;
  }
  Xid x = position_value(l, n);
  if (!x) return false;
  if (l->spec) {
    if (low_at(l, x)->op == X_IDX) p->var = (i8)low_at(l, x)->ref;
    else p->base = x;
    return true;
  }
  if (!split(l, n->span, x, p)) {
    Diag *d = low_error(l, D_N_POSITION, n->span,
                        "a position is a uniform value, an index, or the sum of both");
    sc_help(l->sc, d,
            low_at(l, x)->deps & DEP_TILE
                ? "what differs from element to element is no position: take a row at a time in a "
                  "loop, 'let at = place[r]', or compare it with an index that runs over all of "
                  "them, as in 'sum(j) where(j == place[i], x[i,j], 0)'"
                : "an index has the factor 1, and stands in no 'min' or other function; two "
                  "indices cannot share a position");
    return false;
  }
  return b->space != SP_REG || register_position(l, n, b, dim, *p);
}

// Equal places of one statement are one view, so that loads of them are equal expressions.
static u32 intern(Low *l, const View *v) {
  for (u32 i = l->stmt ? l->stmt->view0 : l->k->view.n; i < l->k->view.n; i++) {
    const View *w = &l->k->view.at[i];
    if (w->buf == v->buf && w->fill == v->fill && sc_same_place(w, v)) return i;
  }
  u32 places = l->stmt ? l->k->view.n - l->stmt->view0 : 0;
  if (!low_spend(l, &places, LOW_MAX_PLACES, "elements in one statement", v->span)) return SC_NONE;
  PUSH(l->sc, &l->k->view, *v);
  return l->k->view.n - 1;
}

static bool distinct(Low *l, const Node *index, const View *v) {
  for (u32 i = 0; i < v->rank; i++) {
    for (u32 j = 0; j < i; j++) {
      if (v->at[i].var < 0 || v->at[i].var != v->at[j].var) continue;
      Diag *d = low_error(l, D_R9_TILE, index->span, "the index '%s' stands in two positions",
                          l->stmt->var[v->at[i].var].name);
      sc_help(l->sc, d, "use two indices; a diagonal is a mask: where(i == j, …)");
      return false;
    }
  }
  return true;
}

// Whether an index stands alone is said by the schedule, not by what `j + 16*h` is for one h.
static void note_moved(Low *l, const Node *n, u32 view) {
  Stmt *s = l->stmt;
  u8 moved = 0;
  u32 at = view - s->view0;
  for (const Node *p = n->b; p && !l->spec; p = p->next)
    moved = (u8)(moved >> 1 | (p->kind != ND_NAME) << 7);
  moved = (u8)(moved >> (8 - l->k->view.at[view].rank));
  while (s->moved.n < at) PUSH(l->sc, &s->moved, 0);
  if (at < s->moved.n) s->moved.at[at] &= moved;
  else PUSH(l->sc, &s->moved, moved);
}

u32 low_view(Low *l, const Node *n, u32 buf, bool fill) {
  View v = {.span = n->span, .buf = buf, .rank = l->k->buf.at[buf].rank, .fill = fill};
  u32 have = 0;
  bool ok = true;
  for (const Node *p = n->b; p; p = p->next) have++;
  if (have != v.rank) {
    const Buf *b = &l->k->buf.at[buf];
    Diag *d = low_error(l, D_R9_RANK, n->span, "'%s' has %u dimension%s, not %u", b->name, b->rank,
                        b->rank == 1 ? "" : "s", have);
    sc_note(l->sc, d, b->span, "%s", low_dims_text(l, buf));
    return SC_NONE;
  }
  u32 i = 0;
  for (const Node *p = n->b; p; p = p->next, i++) ok &= position(l, p, buf, i, &v.at[i]);
  if (!ok || (l->k->buf.at[buf].space == SP_REG && !distinct(l, n, &v))) return SC_NONE;
  u32 view = intern(l, &v);
  if (l->stmt && view != SC_NONE) note_moved(l, n, view);
  return view;
}

// ---- loads

// May elements of the buffer be read here?
static bool readable(Low *l, const Node *n, u32 buf) {
  const Buf *b = &l->k->buf.at[buf];
  if (b->space == SP_TENSOR && l->spec && b->dir == F_OUT) {
    for (u32 i = 0; i < l->done.n; i++) {
      if (l->done.at[i] == buf) return true;
    }
    Diag *d = low_error(l, D_N_READ, n->span, "'%s' has no value yet", b->name);
    sc_note(l->sc, d, b->span, "an output");
    sc_help(l->sc, d, "write its equation before this one");
    return false;
  }
  if (b->space == SP_TENSOR && b->dir == F_OUT) {
    Diag *d = low_error(l, D_N_READ, n->span, "'%s' is an output: it cannot be read", b->name);
    sc_note(l->sc, d, b->span, "declared here");
    sc_help(l->sc, d, "declare it 'inout', or keep the value in a register tile");
    return false;
  }
  if (l->stmt || (b->space == SP_TENSOR && b->dir == F_IN)) return true;
  Diag *d = low_error(l, D_R9_UNIFORM, n->span,
                      "an element of '%s' is not a value that all see alike", b->name);
  sc_note(l->sc, d, b->span, "declared here");
  sc_help(l->sc, d, "outside of element-wise statements only elements of 'in' tensors can be read");
  return false;
}

Xid low_load(Low *l, const Node *n) {
  u32 buf;
  if (!low_buf(l, n->a, &buf) || !readable(l, n, buf)) return 0;
  u32 view = low_view(l, n, buf, false);
  if (view == SC_NONE) return 0;
  return x_leaf(l->sc, l->k, X_LOAD, sc_elem_ty(l->k->buf.at[buf].elem), view);
}

// ---- extents

// Extents are looked for in so many rounds, by indices that stand alone. As many rounds follow for
// indices that have none yet, by those that do not stand alone.
enum { ROUNDS = 3 };

// The extent that position `i` of view `n` gives its variable in round `round`; 0: none.
static Xid gives(Low *l, const Stmt *s, u32 n, u32 i, int round) {
  const View *v = &l->k->view.at[n];
  const Buf *b = &l->k->buf.at[v->buf];
  i64 known;
  if (v->at[i].var < 0 || v->at[i].base) return 0;
  bool moved = n - s->view0 < s->moved.n && s->moved.at[n - s->view0] >> i & 1;
  if (moved != (round >= ROUNDS) || (moved && s->var[v->at[i].var].extent)) return 0;
  round %= ROUNDS;
  if (l->spec) return round == (s->output && n == s->view0 ? 0 : 1) ? b->dim[i] : 0;
  if (b->space == SP_REG) return round == 0 ? x_int(l->sc, l->k, b->ext[i]) : 0;
  if (b->space == SP_STAGE) return round == 1 ? x_int(l->sc, l->k, b->ext[i]) : 0;
  return round == 2 && x_const_int(l->k, b->dim[i], &known) ? b->dim[i] : 0;
}

// Two extents of one index. In a specification an output may cover a part of a larger dimension.
static bool agree(const Low *l, Xid have, Xid other, bool same_round) {
  if (have == other || (!same_round && !l->spec)) return true;
  return !same_round && sc_fact_at_most(sc_facts(l->sc, l->k), have, other);
}

// How a message says that an index may run over a part.
static const char *part_of_stage(const Low *l, const char *index) {
  if (l->spec) return "";
  return sc_printf(l->sc, "; for the first part of a longer stage write '0 + %s' there", index);
}

static bool extents_of_round(Low *l, Stmt *s, int round) {
  u8 found = 0;
  for (u32 n = s->view0; n < l->k->view.n; n++) {
    const View *v = &l->k->view.at[n];
    const Buf *b = &l->k->buf.at[v->buf];
    for (u32 i = 0; i < v->rank; i++) {
      Xid x = gives(l, s, n, i, round);
      int var = v->at[i].var;
      if (!x) continue;
      if (!s->var[var].extent) {
        s->var[var].extent = x;
        s->var[var].from = n;
        found |= (u8)(1u << var);
      } else if (!agree(l, s->var[var].extent, x, found >> var & 1)) {
        const View *other = &l->k->view.at[s->var[var].from];
        const char *name = l->k->buf.at[other->buf].name;
        Str was = {.sc = l->sc}, is = {.sc = l->sc};
        sc_print_infix(&was, l->k, s->var[var].extent);
        sc_print_infix(&is, l->k, x);
        Diag *d = low_error(l, D_R9_EXTENT, v->span,
                            "the index '%s' runs over %s in '%s', but over %s in '%s'",
                            s->var[var].name, was.at, name, is.at, b->name);
        sc_help(l->sc, d, "declare both alike, or give each dimension an index of its own%s",
                part_of_stage(l, s->var[var].name));
        sc_note(l->sc, d, other->span, "'%s' is %s", name, low_dims_text(l, other->buf));
        sc_note(l->sc, d, b->span, "'%s' is %s", b->name, low_dims_text(l, v->buf));
        return false;
      }
    }
  }
  return true;
}

// An intermediate whose own equation did not say how large it is takes its extent from its first
// use.
static void settle(Low *l, const Stmt *s) {
  for (u32 n = s->view0; l->spec && n < l->k->view.n; n++) {
    const View *v = &l->k->view.at[n];
    for (u32 i = 0; i < v->rank; i++) {
      Buf *b = &l->k->buf.at[v->buf];
      if (b->dim[i] || v->at[i].var < 0) continue;
      b->dim[i] = s->var[v->at[i].var].extent;
      for (u32 m = 0; m < l->k->spec.n; m++) {
        Map *map = &l->k->map.at[l->k->spec.at[m]];
        if (l->k->view.at[map->dst].buf == v->buf) map->var[i].extent = b->dim[i];
      }
    }
  }
}

// The bases that some instance has in some round of the loops around. False: they are not known, or
// all slices from there lie inside.
static bool positions(Low *l, Xid base, i64 extent, i64 whole, i64 *lo, i64 *hi) {
  if (x_const_int(l->k, base, lo)) return *hi = *lo, true;
  sc_facts_at(l->facts, l->code, l->code->n);
  return !sc_fact_within(l->facts, base, extent, whole) && sc_fact_reaches(l->facts, base, lo, hi);
}

// A slice of a stage or register tile lies inside it.
static bool inside(Low *l, const Stmt *s, const View *v, u32 i) {
  const Buf *b = &l->k->buf.at[v->buf];
  i64 lo, hi, extent = 1, last;
  if (b->space != SP_STAGE && b->space != SP_REG) return true;
  if (v->at[i].var >= 0) x_const_int(l->k, s->var[v->at[i].var].extent, &extent);
  if (!positions(l, v->at[i].base, extent, b->ext[i], &lo, &hi)) return true;
  if (lo >= 0 && !__builtin_add_overflow(hi, extent, &last) && last <= b->ext[i]) return true;
  Diag *d =
      low_error(l, D_R9_SLICE, v->span,
                "positions %lld to %lld of dimension %u of '%s' reach outside of its %lld",
                (long long)lo, (long long)(hi + extent - 1), i, b->name, (long long)b->ext[i]);
  sc_note(l->sc, d, b->span, "'%s' is %s", b->name, low_dims_text(l, v->buf));
  const View *from = v->at[i].var >= 0 ? &l->k->view.at[s->var[v->at[i].var].from] : v;
  sc_help(l->sc, d, "take fewer, or declare '%s' larger", b->name);
  if (from == v) return false;
  const char *index = s->var[v->at[i].var].name;
  sc_note(l->sc, d, from->span, "'%s' runs over %lld", index, (long long)extent);
  if (from->rank > i && !from->at[i].base && !v->at[i].base)
    sc_help(l->sc, d,
            "take fewer, as '0 + %s' instead of '%s' does in '%s', or declare '%s' larger", index,
            index, l->k->buf.at[from->buf].name, b->name);
  return false;
}

static bool extents(Low *l, Stmt *s) {
  for (int round = 0; round < 2 * ROUNDS; round++) {
    if (!extents_of_round(l, s, round)) return false;
  }
  for (u32 v = s->later; v < s->n; v++) {
    if (s->var[v].extent) continue;
    Diag *d = low_error(l, D_R9_EXTENT, s->var[v].span, "nothing says how far the index '%s' runs",
                        s->var[v].name);
    sc_help(l->sc, d,
            l->spec
                ? "let it stand alone in a position of a tensor; of a place that is told by two "
                  "numbers each has an index: page[b,n] and n*64 + r, not page[b, j/64]"
                : "an index takes its extent from a register tile or a whole dimension of a stage: "
                  "go through one, as 'reg v : f32[64]'");
    return false;
  }
  settle(l, s);
  for (u32 n = s->view0; n < l->k->view.n; n++) {
    const View *v = &l->k->view.at[n];
    for (u32 i = 0; i < v->rank; i++) {
      if (!inside(l, s, v, i)) return false;
    }
  }
  return true;
}

// Register tiles of one statement lie alike: no index runs along the rows of one and the columns of
// another.
static bool aligned(Low *l, const Stmt *s) {
  u32 row[SC_MAX_VARS] = {0};  // a view whose rows the variable runs along, plus 1
  for (int column = 0; column < 2; column++) {
    for (u32 n = s->view0; n < l->k->view.n; n++) {
      const View *v = &l->k->view.at[n];
      const Buf *b = &l->k->buf.at[v->buf];
      int var = v->at[column].var;
      if (b->space != SP_REG || v->rank != 2 || var < 0) continue;
      if (!column) {
        row[var] = n + 1;
      } else if (row[var]) {
        Diag *d = low_error(
            l, D_R9_TILE, v->span,
            "the index '%s' runs along columns here, and along rows of another register tile",
            s->var[var].name);
        sc_note(l->sc, d, l->k->view.at[row[var] - 1].span, "along rows");
        sc_help(l->sc, d, "registers have no addresses: a transpose goes through a ring");
        return false;
      }
    }
  }
  return true;
}

bool low_end(Low *l, Stmt *s, bool ok) {
  ok = ok && !l->dead && extents(l, s) && aligned(l, s);
  l->stmt = NULL;
  return ok;
}
