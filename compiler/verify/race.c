// race.c - searches for a race with concrete numbers. In: two accesses for which no proof was
// found. Out: a report, if two executions of them touch one element and neither knows that the
// other is over.
//
// It tries the kernel's cases, each of them also with one dimension changed, and of each the first
// tiles. Only cases say what is in a tensor: executions that depend on other tensors are left out,
// and so are executions in different tiles where CTAs take turns, or share a ring. The effort is
// bounded by counts and not by time, so that the answer is the same on every machine.
#include "compiler/verify/replay.h"

#include <string.h>

enum {
  TILES = 12,       // of a grid, its first
  EXECUTIONS = 60,  // … of each, to be compared with other tiles
  MANY = 400,       // … with each other
  ELEMENTS = 4096,  // of those that both may touch
};

typedef struct Search {
  Races *v;
  const Access *a, *b;
  World w;
  Executions now, all;  // executions in the tile that is looked at; in all tiles
} Search;

// ---- elements

typedef struct Box {
  i64 from[SC_MAX_RANK], to[SC_MAX_RANK];
} Box;

static i64 reach(const Kernel *k, const Access *a, u32 d) {
  const Pos *p = &k->view.at[a->view].at[d];
  if (p->slice) return sc_slice_extent(k, a, d);
  return p->var >= 0 ? sc_access_extent(k, a, (u32)p->var) : 1;
}

static const Access *access_of(const Search *s, const Execution *d) {
  return d->second ? s->b : s->a;
}

// The box of elements that both may touch. False: it is empty.
static bool meet(Search *s, const Execution *d, const Execution *e, Box *out) {
  const Kernel *k = s->v->k;
  const View *v = &k->view.at[s->a->view];
  const Buf *b = &k->buf.at[v->buf];
  for (u32 i = 0; i < v->rank; i++) {
    i64 n = b->ext[i], to = d->base[i] + reach(k, access_of(s, d), i),
        end = e->base[i] + reach(k, access_of(s, e), i);
    if (b->space == SP_TENSOR && !sc_value(&s->w, b->dim[i], &n)) return false;
    out->from[i] = d->base[i] > e->base[i] ? d->base[i] : e->base[i];
    out->to[i] = to < end ? to : end;
    if (out->from[i] < 0) out->from[i] = 0;
    if (out->to[i] > n) out->to[i] = n;
    if (out->from[i] >= out->to[i]) return false;
  }
  return true;
}

// Is it certain that the execution touches this element?
static bool touches(Search *s, const Execution *d, const i64 *at) {
  const Kernel *k = s->v->k;
  const Access *a = access_of(s, d);
  const View *v = &k->view.at[a->view];
  World *w = &s->w;
  bool set[SC_MAX_VARS] = {0};
  for (u32 i = 0; i < v->rank; i++) {
    i8 var = v->at[i].var;
    if (var < 0) continue;
    if (set[var] && w->index[var] != at[i] - d->base[i]) return false;
    w->index[var] = at[i] - d->base[i];
    set[var] = true;
  }
  Xid cond = sc_access_cond(k, a);
  memcpy(w->axis, d->axis, sizeof w->axis);
  memcpy(w->loop, d->loop, sizeof w->loop);
  w->inst = d->inst;
  i64 holds = 1;
  return !cond || (sc_value(w, cond, &holds) && holds);
}

static bool one_element(Search *s, const Execution *d, const Execution *e, i64 *at) {
  Box box;
  const u32 rank = s->v->k->view.at[s->a->view].rank;
  if (!meet(s, d, e, &box)) return false;
  memcpy(at, box.from, sizeof box.from);
  for (u32 n = 0; n < ELEMENTS; n++) {
    if (touches(s, d, at) && touches(s, e, at)) return true;
    u32 i = rank;
    while (i-- > 0 && ++at[i] == box.to[i]) at[i] = box.from[i];
    if (i == SC_NONE) return false;
  }
  return false;
}

// ---- pairs of executions

static bool tell(Search *s, const Execution *d, const Execution *e, bool one_tile) {
  Race r = {.a = access_of(s, d), .b = access_of(s, e), .world = &s->w};
  r.first = d;
  r.second = e;
  r.one_tile = one_tile;
  if (!one_element(s, d, e, r.at)) return false;
  sc_report_race(s->v, &r);
  sc_rejected(s->v->proof, s->v->id);
  return true;
}

static bool different(const Search *s, const Execution *d, const Execution *e) {
  return d->second != e->second || s->a == s->b;
}

// Can the first access still be under way when the second begins? (Executions of one instance are
// listed in their order.)
static bool lingers(const Search *s, const Execution *d, const Execution *e) {
  return sc_access_lingers(access_of(s, d), access_of(s, e));
}

static bool in_one_tile(Search *s, const Executions *all) {
  bool stage = s->v->k->buf.at[s->v->k->view.at[s->a->view].buf].space == SP_STAGE;
  for (u32 i = 0; i < all->n; i++) {
    for (u32 j = i + 1; j < all->n; j++) {
      const Execution *d = &all->at[i], *e = &all->at[j];
      if (!different(s, d, e) || (stage && d->fill != e->fill)) continue;
      if (d->proc == e->proc && (stage || !lingers(s, d, e))) continue;
      if (sc_execution_known(d->clock, e) || sc_execution_known(e->clock, d)) continue;
      if (tell(s, d, e, true)) return true;
    }
  }
  return false;
}

static bool shares_rings(const Kernel *k) {
  for (u32 i = 0; i < k->ring.n; i++)
    if (k->ring.at[i].multicast) return true;
  return false;
}

// In CTAs of one cluster that share a ring? Each waits for releases of the other.
static bool may_have_met(const Search *s, const Execution *d, const Execution *e) {
  const Kernel *k = s->v->k;
  bool one = true;
  for (u32 i = 0; i < k->axis.n; i++)
    one &= d->axis[i] / k->axis.at[i].cluster == e->axis[i] / k->axis.at[i].cluster;
  return one && shares_rings(k);
}

// May an execution know of another one, in another CTA? CTAs learn of others only by turns, which
// those pass on behind what they have done, to CTAs that differ from them along the turn's axis.
// (Where CTAs of a cluster share a ring, one of them may pass on what another one has done.)
static bool may_know(const Search *s, const Execution *d, const Execution *of) {
  const Kernel *k = s->v->k;
  u32 along = 0;
  if (shares_rings(k)) return d->turned;
  for (u32 t = 0; t < k->turn.n; t++)
    if (sc_turn_over_ctas(&k->turn.at[t])) along |= 1u << k->turn.at[t].axis;
  for (u32 i = 0; i < k->axis.n; i++)
    if (!(along >> i & 1) && d->axis[i] != of->axis[i]) return false;
  return d->turned && of->passed;
}

// Can neither know of the other? CTAs take a turn behind those before them along an axis.
static bool unheard(const Search *s, const Execution *early, const Execution *late) {
  bool before = true;
  for (u32 i = 0; i < s->v->k->axis.n; i++) before &= early->axis[i] <= late->axis[i];
  if (may_have_met(s, early, late)) return false;
  return !may_know(s, late, early) && (before || !may_know(s, early, late));
}

static bool in_two_tiles(Search *s, const Executions *all, u32 from) {
  for (u32 i = 0; i < from; i++)
    for (u32 j = from; j < all->n; j++)
      if (different(s, &all->at[i], &all->at[j]) && unheard(s, &all->at[i], &all->at[j]) &&
          tell(s, &all->at[i], &all->at[j], false))
        return true;
  return false;
}

// ---- tiles

// The extents of the grid. False: they are not known, or there is no tile.
static bool has_tiles(Search *s, i64 *extent) {
  for (u32 i = 0; i < s->v->k->axis.n; i++)
    if (!sc_value(&s->w, s->v->k->axis.at[i].extent, &extent[i]) || extent[i] < 1) return false;
  return true;
}

static bool in_tiles(void *search) {
  Search *s = search;
  i64 axis[SC_MAX_AXES] = {0}, extent[SC_MAX_AXES];
  Executions *all = &s->all, *now = &s->now;
  bool apart = s->v->id == PROOF_GLOBAL;
  if (!has_tiles(s, extent)) return false;
  all->n = 0;
  for (u32 n = 0; n < TILES; n++) {
    u32 from = all->n;
    now->n = 0;
    memcpy(s->w.axis, axis, sizeof axis);
    if (!sc_replay(&s->w, s->a, s->b, now)) return false;
    for (u32 i = 0; i < now->n && i < EXECUTIONS; i++) all->at[all->n++] = now->at[i];
    if (in_one_tile(s, now) || (apart && in_two_tiles(s, all, from))) return true;
    if (!sc_next_tile(s->v->k, extent, axis)) return false;
  }
  return false;
}

bool sc_find_race(Races *v, const Access *a, const Access *b) {
  Search s = {.v = v, .a = a, .b = b};
  if (!v->searches) return false;
  v->searches--;
  s.now = (Executions){NEWS(v->sc, Execution, MANY), 0, MANY};
  s.all = (Executions){NEWS(v->sc, Execution, TILES * EXECUTIONS), 0, TILES * EXECUTIONS};
  return sc_each_world(v, &s.w, in_tiles, &s);
}

// ---- all pairs

static void give_up(Races *v, u32 buf) {
  const Buf *b = &v->k->buf.at[buf];
  const Ring *r = b->space == SP_STAGE ? &v->k->ring.at[b->ring] : NULL;
  if (r)
    sc_incomplete(v->proof, v->id, r->span, "stages of '%s' are accessed in too many places",
                  r->name);
  else sc_incomplete(v->proof, v->id, b->span, "'%s' is accessed in too many places", b->name);
}

static void prove_pair(Races *v, const Access *a, const Access *b, bool stage, Unsure *unsure) {
  Pair p = sc_pair(v, a, b, stage), again = p;
  again.thorough = true;
  if (sc_pair_safe(&p) || sc_pair_safe(&again)) return;
  if (!v->cases) give_up(v, v->k->view.at[a->view].buf);
  else if (!sc_find_race(v, a, b)) unsure(v, a, b);
}

// By a kind of access and a place in the list: the first access from there on that conflicts with
// such a one. Its place; the number of accesses if there is none.
typedef struct Rivals {
  u32 *next[ACCESS_KINDS];
} Rivals;

static Rivals rivals_of(Sc *sc, const Accesses *all) {
  Rivals r;
  for (u32 kind = 0; kind < ACCESS_KINDS; kind++) {
    u32 *next = r.next[kind] = NEWS(sc, u32, all->n + 1);
    next[all->n] = all->n;
    for (u32 i = all->n; i-- > 0;)
      next[i] = sc_kinds_conflict(kind, all->at[i].kind) ? i : next[i + 1];
  }
  return r;
}

// Do a role's accesses of one stage all belong to one instance?
static bool by_one(const Role *r) { return r->instances == 1 || r->one_tile; }

// Can nothing that is still to come change the verdict?
static bool settled(const Races *v) {
  Verdict verdict = v->proof->cert->proof[v->id].verdict;
  return verdict == VERDICT_REJECTED ||
         (verdict == VERDICT_INCOMPLETE && !(v->searches && v->cases));
}

void sc_prove_accesses(Races *v, u32 buf, bool fill, Unsure *unsure) {
  const bool stage = v->k->buf.at[buf].space == SP_STAGE;
  const Accesses all = v->access[buf][fill];
  const Rivals rivals = rivals_of(v->sc, &all);
  u32 others = 0;  // where the accesses of the next role begin
  for (u32 i = 0; i < all.n; i++) {
    const Access *a = &all.at[i];
    const u32 *next = rivals.next[a->kind];
    while (others < all.n && all.at[others].role == a->role) others++;
    u32 from = stage && by_one(&v->k->role.at[a->role]) ? others : i;
    for (u32 j = next[from]; j < all.n; j = next[j + 1]) {
      if (settled(v)) return;
      if (v->cases) prove_pair(v, a, &all.at[j], stage, unsure);
      else give_up(v, buf);
    }
  }
}
