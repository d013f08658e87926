// sample.c - the search for dimensions for which a kernel waits for ever, or its roles disagree.
// In: a protocol whose proof did not close. Out: a run that fails, the shortest first.
//
// The idea: what matters of a dimension is how often loops run, so values near multiples of its
// divisors are tried: all dimensions small and alike at first, then each by itself, then at random
// (from a fixed seed). Of the grid the first, the last and some tile between are tried.
#include "compiler/verify/protocol.h"

#include <string.h>

enum { EVEN = 24, RANDOM = 1500, TRIP_MOST = 40, RUN_STEPS = 20000, DIVISORS = 4, SMALL = 16 };

typedef struct Search {
  Verify *v;
  const Protocol *p;
  Concrete c;
  Run run;
  Sample s;
  i64 *divisor;  // by dimension: DIVISORS numbers, 0 behind
  u32 seed, tried;
  bool data;  // elements of tensors matter
} Search;

static u32 draw(Search *q, u32 below) {
  q->seed = q->seed * 1664525u + 1013904223u;
  return (u32)((u64)(q->seed >> 8) * below >> 24);
}

// ---- what dimensions are divided by

static void note_divisor(Search *q, u32 dim, i64 n) {
  i64 *at = &q->divisor[dim * DIVISORS];
  for (u32 i = 0; i < DIVISORS; i++) {
    if (at[i] == n) return;
    if (at[i]) continue;
    at[i] = n;
    return;
  }
}

// All dimensions below a dividend are divided by its divisor.
static void find_divisors(Search *q) {
  const Kernel *k = q->v->k;
  Below below = x_below(q->v->sc, k);
  for (Xid x = 1; x < k->expr.n; x++) {
    const Expr *e = &k->expr.at[x];
    i64 n;
    bool divides = e->op == X_IDIV || e->op == X_CDIV || e->op == X_MOD;
    if (!divides || e->deps & (DEP_IDX | DEP_TILE) || !x_const_int(k, e->b, &n) || n < 2) continue;
    x_begin(&below, DEP_DIM);
    x_from(&below, e->a);
    for (Xid d; (d = x_next(&below));)
      if (k->expr.at[d].op == X_DIM) note_divisor(q, k->expr.at[d].ref, n);
  }
}

// ---- one sample

static i64 about(Search *q, u32 dim, i64 trips, u32 which, i64 off) {
  i64 n = q->divisor[dim * DIVISORS + which];
  i64 value = (n ? n : 1) * trips + off;
  return value < 0 ? 0 : value;
}

// `require d == e` decides d, if e has a value by now.
static void obey(const Kernel *k, Concrete *c, Sample *s, Xid cond) {
  const Expr *e = &k->expr.at[cond];
  i64 value;
  if (e->op == X_AND) {
    obey(k, c, s, e->a);
    obey(k, c, s, e->b);
  }
  if (e->op != X_EQ) return;
  const Expr *a = &k->expr.at[e->a], *b = &k->expr.at[e->b];
  if (a->op == X_DIM && sc_concrete_value(c, e->b, &value)) s->dim[a->ref] = value;
  else if (b->op == X_DIM && sc_concrete_value(c, e->a, &value)) s->dim[b->ref] = value;
}

bool sc_sample_allowed(Verify *v, const Protocol *p, Sample *s) {
  Concrete c = {.p = p, .s = s};
  for (u32 i = 0; i < v->k->require.n; i++) obey(v->k, &c, s, v->k->require.at[i].cond);
  for (u32 i = 0; i < v->k->require.n; i++) {
    i64 holds = 1;
    if (sc_concrete_value(&c, v->k->require.at[i].cond, &holds) && !holds) return false;
  }
  return true;
}

// Integer scalars are drawn like dimensions; those with a default have it.
static void set_scalars(Search *q, u32 most) {
  const Kernel *k = q->v->k;
  for (u32 i = 0; i < k->arg.n; i++) {
    i64 init;
    bool said = k->arg.at[i].init && sc_concrete_value(&q->c, k->arg.at[i].init, &init);
    q->s.arg[i] = said ? init : (i64)draw(q, most) - (draw(q, 8) == 0);
  }
}

// The tile at so much of the way through the grid; false: there is none.
static bool set_tile(Search *q, u32 quarter) {
  const Kernel *k = q->v->k;
  for (u32 a = 0; a < k->axis.n; a++) {
    i64 n;
    if (!sc_concrete_value(&q->c, k->axis.at[a].extent, &n) || n < 1) return false;
    q->s.axis[a] = (n - 1) * quarter / 4;
    if (k->axis.at[a].cluster > 1) q->s.axis[a] -= q->s.axis[a] % k->axis.at[a].cluster;
  }
  return true;
}

static Outcome try_tile(Search *q) {
  const Protocol *p = q->p;
  Run *r = &q->run;
  memset(r->at, 0, sizeof *r->at * p->process.n);
  memset(r->count, 0, sizeof *r->count * p->counts);
  memset(r->taken, 0, sizeof *r->taken * p->process.n * p->k->turn.n);
  memset(r->turn, 0, p->k->turn.n * p->ranks);
  r->steps = 0;
  r->most = RUN_STEPS;
  q->tried++;
  return sc_run_on(r);
}

static Outcome try_sample(Search *q) {
  q->c.now = NULL;
  if (!sc_sample_allowed(q->v, q->p, &q->s)) return OUT_DONE;
  for (u32 quarter = 0; quarter <= 4; quarter += 1 + (quarter == 1)) {
    if (!set_tile(q, quarter)) return OUT_DONE;
    Outcome o = try_tile(q);
    if (o == OUT_STUCK || o == OUT_UNEVEN) return o;
    if (!q->v->k->axis.n) return OUT_DONE;
  }
  return OUT_DONE;
}

// ---- the search

static Outcome alike(Search *q) {
  static const i64 off[] = {0, 1, -1};
  for (u32 turn = 0; turn < EVEN * COUNT(off); turn++) {
    u32 i = (turn + COUNT(off)) % (EVEN * COUNT(off));  // no rounds at all, last
    for (u32 rule = 0; rule < (q->data ? DATA_RULES : 1); rule++) {
      set_scalars(q, i / 3 + 1);
      for (u32 d = 0; d < q->v->k->dim.n; d++) q->s.dim[d] = about(q, d, i / 3, 0, off[i % 3]);
      q->s.data = rule;
      Outcome o = try_sample(q);
      if (o != OUT_DONE) return o;
    }
  }
  return OUT_DONE;
}

static Outcome at_random(Search *q) {
  for (u32 i = 0; i < RANDOM; i++) {
    u32 most = 2 + i * TRIP_MOST / RANDOM;
    for (u32 d = 0; d < q->v->k->dim.n; d++) {
      u32 which = draw(q, DIVISORS);
      if (!q->divisor[d * DIVISORS + which]) which = 0;
      q->s.dim[d] = about(q, d, draw(q, most), which, (i64)draw(q, 3) - 1);
    }
    q->s.data = draw(q, DATA_RULES);
    set_scalars(q, most);
    Outcome o = try_sample(q);
    if (o != OUT_DONE) return o;
  }
  return OUT_DONE;
}

// ---- fewer

static Outcome again(Search *q, i64 *value, i64 smaller) {
  i64 was = *value;
  *value = smaller;
  Outcome o = try_sample(q);
  if (o == OUT_DONE) *value = was;
  return o;
}

// Each dimension and scalar as small as it may be for the run still to fail.
static void make_small(Search *q) {
  const Kernel *k = q->v->k;
  for (u32 i = 0; i < k->dim.n + k->arg.n; i++) {
    i64 *value = i < k->dim.n ? &q->s.dim[i] : &q->s.arg[i - k->dim.n], was = *value;
    bool smaller = false;
    for (i64 n = 1; n < was && n <= SMALL && !smaller; n++)
      smaller = again(q, value, n) != OUT_DONE;
    i64 step = i < k->dim.n && q->divisor[i * DIVISORS] ? q->divisor[i * DIVISORS] : was;
    for (i64 n = step; n < was && !smaller; n += step) smaller = again(q, value, n) != OUT_DONE;
  }
}

static Search search(Verify *v, const Protocol *p) {
  Search q = {.v = v, .p = p, .seed = 1, .data = sc_reads_data(p)};
  q.s.dim = NEWS(v->sc, i64, v->k->dim.n + 1);
  q.s.arg = NEWS(v->sc, i64, v->k->arg.n + 1);
  q.divisor = NEWS(v->sc, i64, v->k->dim.n * DIVISORS + 1);
  find_divisors(&q);
  return q;
}

Failure sc_find_failure(Verify *v, const Protocol *p) {
  Search *q = NEW(v->sc, Search);
  *q = search(v, p);
  sc_concrete_begin(&q->c, &q->run, v->sc, p, &q->s);
  Outcome o = alike(q);
  if (o == OUT_DONE) o = at_random(q);
  if (o == OUT_DONE) return (Failure){.tried = q->tried};
  make_small(q);
  return (Failure){q->s, try_sample(q), q->run, q->tried};
}

// ---- all of them

enum { ALL_RUNS = 4000, ALL_MOST = 1024, ALL_DIMS = 3 };

static void find_dims(Search *q, Below *b, Xid x, bool *matters) {
  const Kernel *k = q->v->k;
  x_begin(b, DEP_DIM | DEP_AXIS);
  x_from(b, x);
  for (Xid e; (e = x_next(b));) {
    const Expr *of = &k->expr.at[e];
    if (of->op == X_DIM) matters[of->ref] = true;
    if (of->op == X_AXIS) x_from(b, k->axis.at[of->ref].extent);
  }
}

// Runs all tiles. False: one fails, or there are too many runs.
static bool all_tiles(Search *q) {
  const Kernel *k = q->v->k;
  i64 n[SC_MAX_AXES], tiles = 1;
  for (u32 a = 0; a < k->axis.n; a++) {
    if (!sc_concrete_value(&q->c, k->axis.at[a].extent, &n[a])) return false;
    if (n[a] < 1) return true;
    if (n[a] > ALL_RUNS || (tiles *= n[a]) > ALL_RUNS) return false;
  }
  for (i64 t = 0; t < tiles; t++) {
    for (u32 a = 0, left = (u32)t; a < k->axis.n; left /= (u32)n[a], a++)
      q->s.axis[a] = left % n[a];
    bool first = true;  // of the cluster
    for (u32 a = 0; a < k->axis.n; a++) first &= q->s.axis[a] % k->axis.at[a].cluster == 0;
    if (first && try_tile(q) != OUT_DONE) return false;
    if (q->tried > ALL_RUNS) return false;
  }
  return true;
}

// All values of the dimensions in `dim` up to the bound.
static bool all_up_to(Search *q, const u32 *dim, u32 n, i64 bound) {
  i64 many = 1;
  for (u32 i = 0; i < n; i++) many *= bound + 1;
  for (i64 of = 0; of < many; of++) {
    i64 left = of;
    for (u32 i = 0; i < n; left /= bound + 1, i++) q->s.dim[dim[i]] = left % (bound + 1);
    if (sc_sample_allowed(q->v, q->p, &q->s) && !all_tiles(q)) return false;
  }
  return true;
}

u32 sc_try_all(Verify *v, const Protocol *p) {
  Search q = search(v, p);
  Below b = x_below(v->sc, v->k);
  bool *matters = NEWS(v->sc, bool, v->k->dim.n + 1);
  u32 dim[ALL_DIMS], n = 0, most = 0;
  for (u32 i = 0; i < p->process.n; i++) {
    const Script *s = p->process.at[i].script;
    for (u32 j = 0; j < s->step.n; j++) {
      find_dims(&q, &b, s->step.at[j].x, matters);
      find_dims(&q, &b, s->step.at[j].y, matters);
    }
  }
  for (u32 d = 0; d < v->k->dim.n; d++) {
    q.s.dim[d] = 1;
    if (matters[d] && n == ALL_DIMS) return 0;
    if (matters[d]) dim[n++] = d;
  }
  for (u32 a = 0; a < v->k->arg.n; a++)
    if (v->k->arg.at[a].elem == EL_I32) return 0;
  if (!n || q.data) return 0;
  sc_concrete_begin(&q.c, &q.run, v->sc, p, &q.s);
  for (u32 bound = 4; all_up_to(&q, dim, n, bound) && q.tried <= ALL_RUNS; bound *= 2) {
    most = bound;
    if (bound == ALL_MOST) break;
  }
  return most;
}
