// spec.c - evaluates a specification. In: a kernel's spec maps and bound tensors. Out: each output
// in f64, exactly (f64 throughout), or as `pt`: in f32 with every named value rounded to its
// element type.
//
// The idea: equations that read each other usually do so at equal outer indices (batch, head, row).
// Those indices become one loop around all of them, so that intermediates are kept for one value of
// it only: attention's S takes a row, not a matrix. What only depends on inputs and is read by
// equations of more indices (where a sequence ends, which one a row belongs to) would spoil that:
// it is computed before, and kept whole. Iterations are shared among host threads, which write disjoint
// elements and allocate nothing. Inputs are converted once, up front, to contiguous copies; of a
// loop of which only a sample of iterations is run, where they are read.
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "runtime/spec/strip.h"

enum { MAX_THREADS = 64 };

// A named value, or an input: where it is and how it is laid out. Prefix dimensions of
// intermediates have stride 0: only the current value is kept.
typedef struct Store {
  char *at;  // NULL: an intermediate, at `offset` of each worker's block
  size_t offset;
  u8 store, elem;
  i64 stride[SC_MAX_RANK], shape[SC_MAX_RANK];
} Store;

// What a view of an equation reads: a value that an earlier equation defines, or a tensor as it was
// given.
typedef struct Read {
  u32 view;
  u32 def;  // the equation; SC_NONE: the tensor
} Read;

typedef struct Eq {
  const Map *m;
  Strip *strip;
  u32 buf;
  u32 group;            // equations that read each other, by one of them
  bool before;          // a group of its own, run before the others
  i8 var[SC_MAX_VARS];  // prefix index -> output variable
  i64 extent[SC_MAX_VARS];
  VEC(Read) reads;
} Eq;

typedef struct Spec {
  Sc *sc;
  const Kernel *k;
  const Binding *b;
  bool exact;
  const Sample *sample;
  bool sampled;  // some group's loop is
  Sc *keep;      // the outputs' arena
  Boxes *out;    // by buf
  u32 eqs;
  Eq *eq;
  u32 *definer;    // by buf: the latest equation so far that defines it, or SC_NONE
  Store *defined;  // by buf: named values
  Store *input;    // by buf: tensors as they were given
  Env env;
  u32 *up;       // union-find over (equation, output variable)
  bool *broken;  // … by representative: not usable as prefix
  size_t block;  // bytes of a worker's intermediates
  Below below;
  StripMaker *maker;
} Spec;

// A group's loop, shared by its workers.
typedef struct Task {
  const Spec *spec;
  u32 group, depth;
  i64 extent[SC_MAX_VARS];
  i64 total;         // iterations to be run
  const i64 *place;  // their numbers; NULL: all of them
  atomic_llong next;
} Task;

typedef struct Worker {
  Task *task;
  Env env;
  char *block, *scratch;
  Operand *op;  // by view: each is one equation's
} Worker;

static bool is_output(const Spec *s, u32 buf) {
  const Buf *b = &s->k->buf.at[buf];
  return b->space == SP_TENSOR && b->dir & SCHEDC_OUT && !b->workspace;
}

// ---- which equations read which values

static u32 find(const Spec *s, u32 node) {
  while (s->up[node] != node) node = s->up[node] = s->up[s->up[node]];
  return node;
}

static void unite(Spec *s, u32 a, u32 b) {
  a = find(s, a);
  b = find(s, b);
  s->broken[a] |= s->broken[b];
  s->up[b] = a;
}

static u32 node_of(u32 eq, i8 var) { return eq * SC_MAX_VARS + (u32)var; }

// A contiguous copy of a tensor as the engine's reals.
static void copy_input(Spec *s, Store *in, const TensorRef *t, const Buf *b) {
  const Reals *reals = s->exact ? &sc_reals64 : &sc_reals32;
  size_t n = 1;
  for (u32 i = 0; i < b->rank; i++)
    if (__builtin_mul_overflow(n, (size_t)t->shape[i], &n)) sc_unwind(s->sc, SCHEDC_ELIMIT);
  if (n > SIZE_MAX / 16) sc_unwind(s->sc, SCHEDC_ELIMIT);
  in->at = sc_new(s->sc, n * reals->bytes + 1);
  in->store = reals->store;
  i64 row = b->rank ? t->shape[b->rank - 1] : 1, step = b->rank ? t->stride[b->rank - 1] : 1;
  i64 idx[SC_MAX_RANK] = {0};
  for (size_t done = 0; done < n; done += (size_t)row) {
    i64 at = 0;
    for (u32 i = 0; i + 1 < b->rank; i++) at += idx[i] * t->stride[i];
    for (i64 j = 0; j < row; j += STRIP)
      reals->load(b->elem, in->at + (done + (size_t)j) * reals->bytes,
                  t->at + (at + j * step) * sc_elem[b->elem].bytes, step,
                  (size_t)(row - j < STRIP ? row - j : STRIP));
    for (u32 i = b->rank; i-- > 1 && ++idx[i - 1] == t->shape[i - 1];) idx[i - 1] = 0;
  }
  i64 stride = 1;
  for (u32 i = b->rank; i-- > 0; stride *= t->shape[i]) in->stride[i] = stride;
}

static void need_input(Spec *s, u32 buf) {
  Store *in = &s->input[buf];
  const TensorRef *t = s->b->before ? &s->b->before[buf] : &s->b->buf[buf];
  const Buf *b = &s->k->buf.at[buf];
  if (in->at || !t->at) return;
  in->elem = b->elem;
  memcpy(in->shape, t->shape, sizeof in->shape);
  if (s->sampled || b->elem == EL_I32 || (b->elem == EL_F32 && !s->exact)) {
    in->at = t->at;
    in->store = b->elem;
    memcpy(in->stride, t->stride, sizeof in->stride);
    return;
  }
  copy_input(s, in, t, b);
}

// Sets up equation e: its strip, and what its views read.
static void read_equation(Spec *s, u32 e) {
  const Kernel *k = s->k;
  Eq *eq = &s->eq[e];
  eq->m = &k->map.at[k->spec.at[e]];
  eq->group = e;
  eq->buf = k->view.at[eq->m->dst].buf;
  eq->strip = sc_strip_spec(s->maker, eq->m, s->exact);
  for (i8 v = 0; v < SC_MAX_VARS; v++) s->up[node_of(e, v)] = node_of(e, v);
  for (u32 v = 0; v < eq->m->vars; v++) eq->extent[v] = env_int(&s->env, eq->m->var[v].extent);
  x_begin(&s->below, 0);
  for (u32 i = 0; i < k->view.at[eq->m->dst].rank; i++)
    x_from(&s->below, k->view.at[eq->m->dst].at[i].base);
  x_from(&s->below, eq->m->cond);
  x_from(&s->below, eq->m->root);
  for (Xid x; (x = x_next(&s->below));) {
    const Expr *p = &k->expr.at[x];
    if (p->op != X_LOAD) continue;
    u32 buf = k->view.at[p->ref].buf;
    Read read = {.view = p->ref, .def = s->definer[buf]};
    PUSH(s->sc, &eq->reads, read);
  }
  s->definer[eq->buf] = e;
}

// What an equation with more indices reads is computed before it.
static void serve_larger(Spec *s, const Eq *eq) {
  for (u32 i = 0; i < eq->reads.n; i++) {
    u32 def = eq->reads.at[i].def;
    if (def != SC_NONE && eq->m->outs > s->eq[def].m->outs) s->eq[def].before = true;
  }
}

static void choose_before(Spec *s) {
  for (u32 e = 0; e < s->eqs; e++) serve_larger(s, &s->eq[e]);
  for (u32 e = 0; e < s->eqs; e++) {
    Eq *eq = &s->eq[e];
    for (u32 i = 0; i < eq->reads.n; i++)
      eq->before &= eq->reads.at[i].def == SC_NONE || s->eq[eq->reads.at[i].def].before;
  }
}

// Equation e reads what equation d defines: their groups join, and so do their index variables
// where they stand at the same position. A variable of d that e has elsewhere cannot be common.
static void link_read(Spec *s, u32 e, u32 d, const View *read) {
  const View *dst = &s->k->view.at[s->eq[d].m->dst];
  u32 from = s->eq[e].group, to = s->eq[d].group;
  for (u32 i = 0; i <= e; i++)
    if (s->eq[i].group == from) s->eq[i].group = to;
  for (u32 i = 0; i < dst->rank; i++) {
    i8 w = sc_plain_var(s->k, &dst->at[i]), u = sc_plain_var(s->k, &read->at[i]);
    if (w < 0) continue;
    if (u >= 0 && u < s->eq[e].m->outs) unite(s, node_of(d, w), node_of(e, u));
    else s->broken[find(s, node_of(d, w))] = true;
  }
}

static void link_reads(Spec *s) {
  for (u32 e = 0; e < s->eqs; e++)
    for (u32 i = 0; i < s->eq[e].reads.n; i++) {
      const Read *r = &s->eq[e].reads.at[i];
      if (r->def != SC_NONE && !s->eq[r->def].before)
        link_read(s, e, r->def, &s->k->view.at[r->view]);
    }
}

// ---- the common prefix of a group

// Is the class of output variable v of the group's equation e an index of every equation, once?
static bool is_common(const Spec *s, u32 group, u32 e, i8 v) {
  u32 class = find(s, node_of(e, v));
  if (s->broken[class]) return false;
  for (u32 i = 0; i < s->eqs; i++) {
    u32 n = 0;
    if (s->eq[i].group != group) continue;
    for (i8 u = 0; u < s->eq[i].m->outs; u++) n += find(s, node_of(i, u)) == class;
    if (n != 1) return false;
  }
  return true;
}

// The class that stays inside although it may be common: what the equation with most indices is
// vectorised over.
static u32 inner_class(const Spec *s, u32 group) {
  u32 best = SC_NONE, outs = 0;
  for (u32 i = 0; i < s->eqs; i++)
    if (s->eq[i].group == group && s->eq[i].m->outs > outs) {
      outs = s->eq[i].m->outs;
      best = find(s, node_of(i, s->eq[i].strip->v));
    }
  return best;
}

// Fills the group's loop: its depth, extents, and which variable of each equation each level is.
static void find_prefix(Spec *s, Task *t) {
  u32 first = 0, inner = inner_class(s, t->group);
  while (s->eq[first].group != t->group) first++;
  for (i8 v = 0; v < s->eq[first].m->outs; v++) {
    u32 class = find(s, node_of(first, v));
    if (class == inner || !is_common(s, t->group, first, v)) continue;
    for (u32 i = first; i < s->eqs; i++) {
      Eq *eq = &s->eq[i];
      if (eq->group != t->group) continue;
      for (i8 u = 0; u < eq->m->outs; u++)
        if (find(s, node_of(i, u)) == class) eq->var[t->depth] = u;
      i64 n = eq->extent[eq->var[t->depth]];
      if (n > t->extent[t->depth]) t->extent[t->depth] = n;
    }
    t->depth++;
  }
  t->total = 1;
  for (u32 l = 0; l < t->depth; l++)
    if (__builtin_mul_overflow(t->total, t->extent[l], &t->total)) sc_unwind(s->sc, SCHEDC_ELIMIT);
}

static bool in_prefix(const Eq *eq, u32 depth, i8 v) {
  for (u32 l = 0; l < depth; l++)
    if (eq->var[l] == v) return true;
  return false;
}

// ---- a sample of the loop

static double extents(const Eq *eq, u32 depth, u8 vars) {
  double n = 1;
  for (i8 v = 0; v < (i8)eq->m->vars; v++)
    if (vars >> v & 1 && !in_prefix(eq, depth, v)) n *= (double)eq->extent[v];
  return n;
}

// Operations of an iteration, roughly: two for each term of a reduction, and what it takes to
// evaluate and compare an element.
static double operations(Spec *s, const Task *t) {
  enum { ELEMENT = 64 };
  double n = 0;
  for (u32 e = 0; e < s->eqs; e++) {
    const Eq *eq = &s->eq[e];
    if (eq->group != t->group) continue;
    x_begin(&s->below, 0);
    x_from(&s->below, eq->m->root);
    for (Xid x; (x = x_next(&s->below));) {
      const Expr *p = &s->k->expr.at[x];
      if (p->op >= X_SUM) n += 2 * extents(eq, t->depth, s->k->expr.at[p->a].vars);
    }
    n += (is_output(s, eq->buf) ? ELEMENT : 2) *
         extents(eq, t->depth, (u8)((1u << eq->m->outs) - 1));
  }
  return n;
}

// Can an iteration's part of each output be told from the others'?
static bool separable(const Spec *s, const Task *t) {
  for (u32 e = 0; e < s->eqs; e++) {
    const View *dst = &s->k->view.at[s->eq[e].m->dst];
    if (s->eq[e].group != t->group || !is_output(s, s->eq[e].buf)) continue;
    for (u32 i = 0; i < dst->rank; i++)
      if (dst->at[i].base && sc_plain_var(s->k, &dst->at[i]) < 0) return false;
  }
  return true;
}

// The distance of tiles along level l of the loop.
static i64 tile_length(const Spec *s, const Task *t, u32 l) {
  for (u32 e = 0; e < s->eqs; e++) {
    const Eq *eq = &s->eq[e];
    const View *dst = &s->k->view.at[eq->m->dst];
    if (eq->group != t->group || !is_output(s, eq->buf)) continue;
    for (u32 i = 0; i < dst->rank; i++)
      if (sc_plain_var(s->k, &dst->at[i]) == eq->var[l]) return sc_tile_length(s->k, eq->buf, i);
  }
  return 1;
}

// Of the whole loop, the iterations that the sample's limits allow.
static void choose_places(Spec *s, Task *t) {
  double each = operations(s, t), most = (double)t->total;
  i64 tile[SC_MAX_VARS];
  if (s->sample->places) most = fmin(most, (double)s->sample->places);
  if (s->sample->operations && each * (double)t->total > (double)s->sample->operations)
    most = fmin(most, fmax(1, (double)s->sample->operations / each));
  if (most >= (double)t->total || !separable(s, t)) return;
  for (u32 l = 0; l < t->depth; l++) tile[l] = tile_length(s, t, l);
  i64 *place = NEWS(s->sc, i64, (size_t)most);
  t->total = (i64)sc_draw_places(t->extent, tile, t->depth, (size_t)most, place);
  t->place = place;
  s->sampled = true;
}

// ---- where values are kept

// The place of iteration n of the loop.
static void place_of(const Task *t, i64 n, i64 *at) {
  if (t->place) n = t->place[n];
  for (u32 l = t->depth; l-- > 0; n /= t->extent[l]) at[l] = n % t->extent[l];
}

// Room for an output: one box, or one for each iteration.
static void make_boxes(Spec *s, const Task *t, const Eq *eq, const Store *like, size_t size) {
  const View *dst = &s->k->view.at[eq->m->dst];
  Boxes *to = &s->out[eq->buf];
  to->n = t->place ? t->total : 1;
  to->origin = sc_new(s->keep, sizeof *to->origin * (size_t)to->n);
  size_t n;
  if (__builtin_mul_overflow(size, (size_t)to->n, &n) || n > SIZE_MAX / 16)
    sc_unwind(s->sc, SCHEDC_ELIMIT);
  to->at = NEWS(s->keep, double, n + 1);
  for (size_t i = 0; i < n; i++) to->at[i] = NAN;
  for (u32 d = 0; d < dst->rank; d++) {
    i8 v = sc_plain_var(s->k, &dst->at[d]);
    bool one = t->place && v >= 0 && in_prefix(eq, t->depth, v);
    to->extent[d] = one ? 1 : like->shape[d];
    for (i64 i = 0; one && i < to->n; i++) {
      i64 at[SC_MAX_VARS];
      place_of(t, i, at);
      for (u32 l = 0; l < t->depth; l++)
        if (eq->var[l] == v) to->origin[i][d] = at[l];
    }
  }
}

// Lays out what equation e defines: in the outputs' boxes, or in the workers' blocks without the
// prefix's dimensions. From there, what a sample defines of an output is copied.
static void lay_out(Spec *s, u32 e, const Task *t) {
  const Eq *eq = &s->eq[e];
  const View *dst = &s->k->view.at[eq->m->dst];
  const Buf *b = &s->k->buf.at[eq->buf];
  Store *to = &s->defined[eq->buf];
  bool output = is_output(s, eq->buf), whole = (output && !t->place) || eq->before;
  size_t n = 1;
  for (u32 i = dst->rank; i-- > 0;) {
    i8 v = sc_plain_var(s->k, &dst->at[i]);
    to->shape[i] = output   ? s->b->buf[eq->buf].shape[i]
                   : v >= 0 ? eq->extent[v]
                            : env_int(&s->env, b->dim[i]);
    if (!whole && v >= 0 && in_prefix(eq, t->depth, v)) continue;
    to->stride[i] = (i64)n;
    if (__builtin_mul_overflow(n, (size_t)to->shape[i], &n)) sc_unwind(s->sc, SCHEDC_ELIMIT);
  }
  to->elem = b->elem;
  to->store = output ? STORE_F64 : (s->exact ? &sc_reals64 : &sc_reals32)->store;
  if (output) {
    make_boxes(s, t, eq, to, n);
    if (whole) to->at = (char *)s->out[eq->buf].at;
  }
  if (__builtin_mul_overflow(n, (size_t)8, &n) || n > SIZE_MAX / 8) sc_unwind(s->sc, SCHEDC_ELIMIT);
  if (whole) {
    if (!output) to->at = sc_new(s->sc, n + 1);
    return;
  }
  to->offset = s->block;
  s->block += (n + 63) & ~(size_t)63;
  if (s->block > SIZE_MAX / 8) sc_unwind(s->sc, SCHEDC_ELIMIT);
}

static Operand operand(const Spec *s, const Worker *w, u32 view, const Store *from) {
  const View *v = &s->k->view.at[view];
  Operand o = {.at = from->at ? from->at : w->block + from->offset,
               .store = from->store,
               .elem = from->elem};
  for (u32 i = 0; i < SC_MAX_VARS; i++) o.hi[i] = INT64_MAX;
  for (u32 i = 0; i < v->rank; i++) {
    i8 var = sc_plain_var(s->k, &v->at[i]);
    o.pos_stride[i] = from->stride[i];
    o.pos_dim[i] = from->shape[i];
    if (var < 0) continue;
    o.stride[var] += from->stride[i];
    if (from->shape[i] < o.hi[var]) o.hi[var] = from->shape[i];
  }
  return o;
}

// ---- running

static void run_equation(Worker *w, u32 e, const i64 *at) {
  const Task *t = w->task;
  const Eq *eq = &t->spec->eq[e];
  i64 from[SC_MAX_VARS] = {0}, to[SC_MAX_VARS];
  memcpy(to, eq->extent, sizeof to);
  for (u32 l = 0; l < t->depth; l++) {
    i8 v = eq->var[l];
    if (at[l] >= to[v]) return;
    from[v] = at[l];
    to[v] = at[l] + 1;
  }
  sc_strip_range(eq->strip, &w->env, w->op, from, to, w->scratch);
}

// The outputs of a sample's iteration n: poisoned in the worker's block before it, and copied to
// their boxes after it.
static void move_outputs(Worker *w, i64 n, bool before) {
  const Spec *s = w->task->spec;
  for (u32 e = 0; e < s->eqs; e++) {
    if (s->eq[e].group != w->task->group || !is_output(s, s->eq[e].buf)) continue;
    const Boxes *to = &s->out[s->eq[e].buf];
    double *from = (double *)(void *)(w->block + s->defined[s->eq[e].buf].offset);
    size_t size = 1;
    for (u32 i = 0; i < s->k->buf.at[s->eq[e].buf].rank; i++) size *= (size_t)to->extent[i];
    for (size_t i = 0; before && i < size; i++) from[i] = NAN;
    if (!before) memcpy(to->at + (size_t)n * size, from, size * sizeof *from);
  }
}

static void *work(void *arg) {
  Worker *w = arg;
  Task *t = w->task;
  for (i64 n; (n = atomic_fetch_add(&t->next, 1)) < t->total;) {
    i64 at[SC_MAX_VARS];
    place_of(t, n, at);
    if (t->place) move_outputs(w, n, true);
    for (u32 e = 0; e < t->spec->eqs; e++)
      if (t->spec->eq[e].group == t->group) run_equation(w, e, at);
    if (t->place) move_outputs(w, n, false);
  }
  return NULL;
}

static void *aligned(Sc *sc, size_t n) {
  uintptr_t at = (uintptr_t)sc_new(sc, n + 64);
  return (void *)((at + 63) & ~(uintptr_t)63);
}

static Worker *make_workers(Spec *s, u32 threads) {
  Worker *w = NEWS(s->sc, Worker, threads);
  size_t scratch = 0;
  for (u32 e = 0; e < s->eqs; e++) {
    size_t n = sc_strip_scratch(s->eq[e].strip);
    if (n > scratch) scratch = n;
  }
  for (u32 i = 0; i < threads; i++) {
    env_init(s->sc, &w[i].env, s->k, s->b);
    w[i].env.wide = s->exact;
    w[i].block = aligned(s->sc, s->block);
    w[i].scratch = aligned(s->sc, scratch);
    w[i].op = NEWS(s->sc, Operand, s->k->view.n);
    for (u32 e = 0; e < s->eqs; e++) {
      for (u32 r = 0; r < s->eq[e].reads.n; r++) {
        const Read *read = &s->eq[e].reads.at[r];
        u32 buf = s->k->view.at[read->view].buf;
        w[i].op[read->view] =
            operand(s, &w[i], read->view, read->def == SC_NONE ? &s->input[buf] : &s->defined[buf]);
      }
      w[i].op[s->eq[e].m->dst] = operand(s, &w[i], s->eq[e].m->dst, &s->defined[s->eq[e].buf]);
    }
  }
  return w;
}

// The calling thread works too; a thread that cannot be had is done without.
static void run_group(Task *t, Worker *w, u32 threads) {
  pthread_t id[MAX_THREADS];
  u32 started = 1;
  for (u32 i = 0; i < threads; i++) w[i].task = t;
  while (started < threads && started < t->total &&
         !pthread_create(&id[started], NULL, work, &w[started]))
    started++;
  work(&w[0]);
  while (--started) pthread_join(id[started], NULL);
}

// The loops of all groups, those that the others wait for first.
static u32 make_tasks(Spec *s, Task *task) {
  u32 n = 0;
  for (u32 pass = 0; pass < 2; pass++)
    for (u32 g = 0; g < s->eqs; g++) {
      bool used = false;
      for (u32 e = 0; e < s->eqs; e++) used |= s->eq[e].group == g;
      if (!used || s->eq[g].before != (pass == 0)) continue;
      Task *t = &task[n++];
      t->spec = s;
      t->group = g;
      find_prefix(s, t);
      if (s->sample && pass && t->depth) choose_places(s, t);
      for (u32 e = 0; e < s->eqs; e++)
        if (s->eq[e].group == g) lay_out(s, e, t);
    }
  return n;
}

static void evaluate(Spec *s, u32 threads) {
  const Kernel *k = s->k;
  s->eqs = k->spec.n;
  s->eq = NEWS(s->sc, Eq, s->eqs);
  s->defined = NEWS(s->sc, Store, k->buf.n);
  s->input = NEWS(s->sc, Store, k->buf.n);
  s->definer = NEWS(s->sc, u32, k->buf.n);
  s->up = NEWS(s->sc, u32, s->eqs * SC_MAX_VARS);
  s->broken = NEWS(s->sc, bool, s->eqs *SC_MAX_VARS);
  env_init(s->sc, &s->env, k, s->b);
  s->below = x_below(s->sc, k);
  s->maker = sc_strip_maker(s->sc, k);
  for (u32 i = 0; i < k->buf.n; i++) s->definer[i] = SC_NONE;
  for (u32 e = 0; e < s->eqs; e++) read_equation(s, e);
  choose_before(s);
  link_reads(s);
  Task *task = NEWS(s->sc, Task, s->eqs);
  u32 tasks = make_tasks(s, task);
  for (u32 e = 0; e < s->eqs; e++)
    for (u32 i = 0; i < s->eq[e].reads.n; i++) {
      const Read *r = &s->eq[e].reads.at[i];
      if (r->def == SC_NONE) need_input(s, k->view.at[r->view].buf);
    }
  Worker *w = make_workers(s, threads);
  for (u32 i = 0; i < tasks; i++) run_group(&task[i], w, threads);
}

static i64 longest_sum(const Spec *s) {
  i64 most = 0;
  for (u32 e = 0; e < s->eqs; e++) {
    for (u32 v = s->eq[e].m->outs; v < s->eq[e].m->vars; v++)
      if (s->eq[e].extent[v] > most) most = s->eq[e].extent[v];
  }
  return most;
}

schedc_status sc_spec(Sc *sc, const Kernel *k, const Binding *b, bool exact, unsigned threads,
                      const Sample *sample, Boxes *out, i64 *longest) {
  Sc own;  // what it allocates is gone when it returns
  jmp_buf home, *outside = sc->unwind;
  if (!k->spec.n) return SCHEDC_EARG;
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  if (!threads) threads = cores > 0 ? (unsigned)cores : 1;
  if (threads > MAX_THREADS) threads = MAX_THREADS;
  sc_init(&own, &sc->alloc);
  own.unwind = &home;
  sc->unwind = &home;
  if (setjmp(home)) {
    schedc_status why = own.why ? own.why : sc->why;
    sc->unwind = outside;
    sc_free(&own);
    return why;
  }
  Spec s = {.sc = &own, .k = k, .b = b, .exact = exact, .sample = sample, .keep = sc, .out = out};
  evaluate(&s, threads);
  if (longest) *longest = longest_sum(&s);
  sc->unwind = outside;
  sc_free(&own);
  return SCHEDC_OK;
}
