// sample.c - searches for dimensions and scalars with which a run fails. In: a protocol, and a
// function `look` that tells whether a run with given numbers fails. Out: numbers with which it
// does, made small.
//
// The idea: a dimension matters by how often it makes loops run, so values near multiples of its
// divisors are tried. First all dimensions are small and alike, then each is changed by itself,
// then all are drawn at random (from a fixed seed).
#include "compiler/verify/protocol.h"

enum { EVEN = 24, RANDOM = 1500, TRIP_MOST = 40, DIVISORS = 4, SMALL = 16 };
enum { ALLOWED_STEPS = 20000 };  // nodes of expressions, of all that says which numbers are allowed

typedef struct Search {
  Verify *v;
  const Protocol *p;
  Sample *s;
  bool (*look)(void *user);  // does it go wrong with `s`?
  void *user;
  i64 *divisor;  // by dimension: DIVISORS numbers, 0 behind
  u32 seed;
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

const bool *sc_lists(Verify *v) {
  const Kernel *k = v->k;
  bool *list = NEWS(v->sc, bool, k->buf.n + 1);
  Below below = x_below(v->sc, k);
  x_begin(&below, DEP_FETCH);
  for (u32 i = 0; i < k->view.n; i++) {
    if (k->buf.at[k->view.at[i].buf].space != SP_TENSOR) continue;
    for (u32 d = 0; d < k->view.at[i].rank; d++) x_from(&below, k->view.at[i].at[d].base);
  }
  for (Xid x; (x = x_next(&below));)
    if (k->expr.at[x].op == X_LOAD) list[k->view.at[k->expr.at[x].ref].buf] = true;
  return list;
}

// Notes the divisor of each quotient for all dimensions that its dividend contains, or the range in
// which elements that it reads are promised to be.
static void find_divisors(Search *q) {
  const Kernel *k = q->v->k;
  Below below = x_below(q->v->sc, k);
  for (Xid x = 1; x < k->expr.n; x++) {
    const Expr *e = &k->expr.at[x];
    i64 n;
    if (!x_divides(e->op) || e->deps & (DEP_IDX | DEP_TILE) || !x_const_int(k, e->b, &n) || n < 2)
      continue;
    x_begin(&below, DEP_DIM | DEP_FETCH);
    x_from(&below, e->a);
    for (Xid d; (d = x_next(&below));) {
      const Expr *of = &k->expr.at[d];
      if (of->op == X_DIM) note_divisor(q, of->ref, n);
      if (of->op == X_LOAD) x_from(&below, k->buf.at[k->view.at[of->ref].buf].end);
    }
  }
}

// ---- one sample

static i64 about(Search *q, u32 dim, i64 trips, u32 which, i64 off) {
  i64 n = q->divisor[dim * DIVISORS + which];
  i64 value = (n ? n : 1) * trips + off;
  return value < 0 ? 0 : value;
}

bool sc_sample_allowed(const Protocol *p, Sample *s) {
  Concrete c = {.p = p, .s = s, .effort.steps = ALLOWED_STEPS};
  const Numbers numbers = sc_concrete_numbers(&c);
  sc_solve(&numbers, SC_NONE, s->dim);
  const bool allowed = sc_is_allowed(&numbers);
  s->unclear = c.effort.spent;
  return allowed;
}

// Integer scalars have their defaults, or (strange) what is near them, or near a dimension; those
// without are drawn like dimensions.
static void set_scalars(Search *q, u32 most, bool strange) {
  const Kernel *k = q->v->k;
  Concrete c = {.p = q->p, .s = q->s};
  for (u32 i = 0; i < k->arg.n; i++) {
    i64 init;
    bool said = k->arg.at[i].init && sc_concrete_value(&c, k->arg.at[i].init, &init);
    q->s->arg[i] = said ? init : (i64)draw(q, most) - (draw(q, 8) == 0);
    if (!strange) continue;
    u32 how = draw(q, 4);
    if (how == 0) q->s->arg[i] += (i64)draw(q, 5) - 2;
    if (how == 1) q->s->arg[i] = draw(q, most + 1);
    if (how == 2 && k->dim.n) q->s->arg[i] = q->s->dim[draw(q, k->dim.n)] + (i64)draw(q, 3) - 1;
  }
}

static bool try_sample(Search *q) { return sc_sample_allowed(q->p, q->s) && q->look(q->user); }

// ---- the search

static bool alike(Search *q) {
  static const i64 off[] = {0, 1, -1};
  for (u32 turn = 0; turn < EVEN * COUNT(off); turn++) {
    u32 i = (turn + COUNT(off)) % (EVEN * COUNT(off));  // no rounds at all, last
    for (u32 rule = 0; rule < (q->data ? DATA_RULES : 1); rule++) {
      set_scalars(q, i / 3 + 1, false);
      for (u32 d = 0; d < q->v->k->dim.n; d++) q->s->dim[d] = about(q, d, i / 3, 0, off[i % 3]);
      q->s->data = rule;
      if (try_sample(q)) return true;
    }
  }
  return false;
}

static bool at_random(Search *q) {
  for (u32 i = 0; i < RANDOM; i++) {
    u32 most = 2 + i * TRIP_MOST / RANDOM;
    for (u32 d = 0; d < q->v->k->dim.n; d++) {
      u32 which = draw(q, DIVISORS);
      if (!q->divisor[d * DIVISORS + which]) which = 0;
      q->s->dim[d] = about(q, d, draw(q, most), which, (i64)draw(q, 3) - 1);
    }
    q->s->data = draw(q, DATA_RULES - 1);  // of long loops few are enough
    set_scalars(q, most, i % 2);
    if (try_sample(q)) return true;
  }
  return false;
}

// ---- fewer

static bool again(Search *q, i64 *value, i64 smaller) {
  i64 was = *value;
  *value = smaller;
  bool still = try_sample(q);
  if (!still) *value = was;
  return still;
}

// Makes each dimension and scalar as small as it can be while the run still fails.
static void make_small(Search *q) {
  const Kernel *k = q->v->k;
  for (u32 i = 0; i < k->dim.n + k->arg.n; i++) {
    i64 *value = i < k->dim.n ? &q->s->dim[i] : &q->s->arg[i - k->dim.n], was = *value;
    bool smaller = false;
    for (i64 n = 1; n < was && n <= SMALL && !smaller; n++) smaller = again(q, value, n);
    i64 step = i < k->dim.n && q->divisor[i * DIVISORS] ? q->divisor[i * DIVISORS] : was;
    for (i64 n = step; n < was && !smaller; n += step) smaller = again(q, value, n);
  }
}

Sample *sc_sample(Verify *v) {
  Sample *s = NEW(v->sc, Sample);
  s->dim = NEWS(v->sc, i64, v->k->dim.n + 1);
  s->arg = NEWS(v->sc, i64, v->k->arg.n + 1);
  s->negative = SC_NONE;
  return s;
}

bool sc_search(Verify *v, const Protocol *p, Sample *s, bool (*look)(void *user), void *user) {
  Search q = {v, p, s, look, user, .seed = 1, .data = sc_reads_data(p)};
  s->list = sc_lists(v);
  q.divisor = NEWS(v->sc, i64, v->k->dim.n * DIVISORS + 1);
  find_divisors(&q);
  if (!alike(&q) && !at_random(&q)) return false;
  make_small(&q);
  return try_sample(&q);
}
