// failure.c - runs of a tile that fail. In: a protocol whose proof did not close. Out: a run in
// which roles wait for ever, or disagree; or how far it is known that there is none.
//
// The idea: dimensions are searched for (sample.c), and of their grid the first tile, the last and
// some between are run. Where there are few dimensions that matter, all their values are tried.
#include "compiler/verify/protocol.h"

enum { RUN_STEPS = 20000, ALL_VALUES = 200000000 };

typedef struct Trial {
  Verify *v;
  const Protocol *p;
  Concrete c;
  Run run;
  Sample *s;
  Outcome outcome;
  u32 tried;
  bool decided[SC_MAX_AXES];  // by axis: all values of what its length depends on are tried
} Trial;

static Trial *trial(Verify *v, const Protocol *p) {
  Trial *t = NEW(v->sc, Trial);
  *t = (Trial){.v = v, .p = p, .s = sc_sample(v)};
  sc_concrete_begin(&t->c, &t->run, v->sc, p, t->s);
  return t;
}

// So many CTAs of a cluster are run as one; where none depends on another, each by itself.
static u32 together(const Trial *t, u32 axis) {
  return t->p->ranks > 1 ? t->v->k->axis.at[axis].cluster : 1;
}

// Chooses the tile that is `quarter` quarters of the way along each axis; false: there is none.
static bool set_tile(Trial *t, u32 quarter) {
  for (u32 a = 0; a < t->v->k->axis.n; a++) {
    i64 n;
    if (!sc_concrete_ctas(&t->c, a, INT32_MAX, &n) || n < 1) return false;
    t->s->axis[a] = (n - 1) * quarter / 4;
    t->s->axis[a] -= t->s->axis[a] % together(t, a);
  }
  return true;
}

static Outcome try_tile(Trial *t) {
  sc_run_again(&t->run);
  t->run.most = RUN_STEPS;
  t->tried++;
  return sc_run_on(&t->run);
}

static bool some_tile_fails(void *trial) {
  Trial *t = trial;
  t->c.now = NULL;
  if (t->c.spent > ALL_VALUES) return false;
  for (u32 quarter = 0; quarter <= 4; quarter += 1 + (quarter == 1)) {
    if (!set_tile(t, quarter)) return false;
    t->outcome = try_tile(t);
    if (t->outcome == OUT_STUCK || t->outcome == OUT_UNEVEN) return true;
    if (!t->v->k->axis.n) return false;
  }
  return false;
}

Failure sc_find_failure(Verify *v, const Protocol *p, u32 negative) {
  Trial *t = trial(v, p);
  t->s->negative = negative;
  if (!sc_search(v, p, t->s, some_tile_fails, t)) return (Failure){.tried = t->tried};
  return (Failure){*t->s, t->outcome, t->run, t->tried};
}

// ---- all of them

enum { ALL_RUNS = 4000, ALL_MOST = 1024, ALL_DIMS = 3, ALL_SAMPLES = 1 << 18 };

static void find_dims(Trial *t, Below *b, Xid x, bool *matters) {
  const Kernel *k = t->v->k;
  x_begin(b, DEP_DIM | DEP_AXIS);
  x_from(b, x);
  for (Xid e; (e = x_next(b));) {
    const Expr *of = &k->expr.at[e];
    if (of->op == X_DIM) matters[of->ref] = true;
    if (of->op == X_AXIS) x_from(b, k->axis.at[of->ref].extent);
  }
}

// Runs all tiles. False: one fails, or there are too many runs.
static bool all_tiles(Trial *t) {
  const Kernel *k = t->v->k;
  i64 n[SC_MAX_AXES], tiles = 1;
  for (u32 a = 0; a < k->axis.n; a++) {
    if (!sc_concrete_ctas(&t->c, a, INT32_MAX, &n[a])) return false;
    if (n[a] < 1 && t->decided[a]) return true;
    if (n[a] < 1) n[a] = 1;
    if (n[a] > ALL_RUNS || (tiles *= n[a]) > ALL_RUNS) return false;
  }
  for (i64 tile = 0; tile < tiles; tile++) {
    for (u32 a = 0, left = (u32)tile; a < k->axis.n; left /= (u32)n[a], a++)
      t->s->axis[a] = left % n[a];
    bool first = true;  // of those that are run together
    for (u32 a = 0; a < k->axis.n; a++) first &= t->s->axis[a] % together(t, a) == 0;
    if (first && try_tile(t) != OUT_DONE) return false;
    if (t->tried > ALL_RUNS || t->c.spent > ALL_VALUES) return false;
  }
  return true;
}

// All values of the dimensions in `dim` up to the bound. False: a run fails, there are too many, or
// it is not known of one whether a launch allows it.
static bool all_up_to(Trial *t, const u32 *dim, u32 n, i64 bound) {
  i64 many = 1;
  for (u32 i = 0; i < n; i++) many *= bound + 1;
  if (many > ALL_SAMPLES) return false;
  for (i64 of = 0; of < many; of++) {
    i64 left = of;
    for (u32 i = 0; i < n; left /= bound + 1, i++) t->s->dim[dim[i]] = left % (bound + 1);
    if (sc_sample_allowed(t->p, t->s) && !all_tiles(t)) return false;
    if (t->s->unclear) return false;
  }
  return true;
}

// Those that decide which runs are allowed matter as well: with one value of theirs alone, runs
// that a launch allows would be left out.
static void find_required(Trial *t, Below *b, bool *matters) {
  const Kernel *k = t->v->k;
  for (u32 i = 0; i < k->require.n; i++) find_dims(t, b, k->require.at[i].cond, matters);
  for (u32 i = 0; i < k->axis.n; i++) find_dims(t, b, k->axis.at[i].section, matters);
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *list = &k->buf.at[i];
    if (list->space != SP_TENSOR) continue;
    find_dims(t, b, list->least, matters);
    find_dims(t, b, list->end, matters);
    for (u32 d = 0; d < list->rank; d++) {
      bool decides = list->end || sc_xop[k->expr.at[list->dim[d]].op].arity;  // it may be negative
      if (decides) find_dims(t, b, list->dim[d], matters);
    }
  }
}

// Where not all values are tried, the axis may have a tile although it has none with those that
// are; no step asks which tile it is.
static bool is_decided(const Trial *t, Below *b, Xid extent, const bool *matters) {
  const Kernel *k = t->v->k;
  bool all = true;
  x_begin(b, DEP_DIM);
  x_from(b, extent);
  for (Xid e; (e = x_next(b));)
    if (k->expr.at[e].op == X_DIM) all &= matters[k->expr.at[e].ref];
  return all;
}

u32 sc_try_all(Verify *v, const Protocol *p) {
  Trial *t = trial(v, p);
  Below b = x_below(v->sc, v->k);
  bool *matters = NEWS(v->sc, bool, v->k->dim.n + 1);
  u32 dim[ALL_DIMS], n = 0, most = 0;
  for (u32 i = 0; i < p->process.n; i++) {
    const Script *s = p->process.at[i].script;
    for (u32 j = 0; j < s->step.n; j++) {
      find_dims(t, &b, s->step.at[j].x, matters);
      find_dims(t, &b, s->step.at[j].y, matters);
    }
  }
  find_required(t, &b, matters);
  for (u32 a = 0; a < v->k->axis.n; a++)
    t->decided[a] = is_decided(t, &b, v->k->axis.at[a].extent, matters);
  for (u32 d = 0; d < v->k->dim.n; d++) {
    t->s->dim[d] = 1;
    if (matters[d] && n == ALL_DIMS) return 0;
    if (matters[d]) dim[n++] = d;
  }
  for (u32 a = 0; a < v->k->arg.n; a++)
    if (v->k->arg.at[a].elem == EL_I32) return 0;
  if (!n || sc_reads_data(p)) return 0;
  for (u32 bound = 4; all_up_to(t, dim, n, bound) && t->tried <= ALL_RUNS; bound *= 2) {
    most = bound;
    if (bound == ALL_MOST) break;
  }
  return t->tried ? most : 0;
}
