// spec.c - evaluates a specification. In: a kernel's spec maps and bound tensors. Out: each output
// in f64, either computed exactly (f64 throughout) or as `pt`: in f32 with every named value
// rounded to its element type.
//
// The idea: group.c finds one loop around all equations that read each other, so that intermediates
// are kept for one iteration only: attention's S takes a row, not a matrix. The values of a group
// that runs before the others are kept whole. Host threads share the iterations; they write
// disjoint elements and allocate nothing. Inputs are converted to contiguous copies once, before
// the loop; if only a sample of its iterations runs, they are converted where they are read.
// tolerance.c calls this twice, for the exact values and for `pt`.
#include <math.h>
#include <string.h>
#include <time.h>

#include "runtime/spec/spec.h"

typedef struct Worker {
  Task *task;
  bool caller;  // it runs on the thread that called the library
  double told;  // when it told of its progress last
  Env env;
  char *block, *scratch;
  Operand *op;  // by view: each is one equation's
} Worker;

// ---- where values are kept

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

// The index values of iteration n of the loop.
static void place_of(const Task *t, i64 n, i64 *at) {
  if (t->pass) n = t->pass[n];
  for (u32 l = t->depth; l-- > 0; n /= t->extent[l]) at[l] = n % t->extent[l];
}

// Allocates an output: one box, or, for a sample, one box for each iteration.
static void make_boxes(Spec *s, const Task *t, const Eq *eq, const Store *like, size_t size) {
  const View *dst = &s->k->view.at[eq->m->dst];
  Boxes *to = &s->out[eq->buf];
  to->n = t->pass ? t->total : 1;
  to->origin = sc_new(s->keep, sizeof *to->origin * (size_t)to->n);
  size_t n;
  if (__builtin_mul_overflow(size, (size_t)to->n, &n) || n > SIZE_MAX / 16)
    sc_unwind(s->sc, SCHEDC_ELIMIT);
  to->at = NEWS(s->keep, double, n + 1);
  for (size_t i = 0; i < n; i++) to->at[i] = NAN;
  for (u32 d = 0; d < dst->rank; d++) {
    i8 v = sc_plain_var(s->k, &dst->at[d]);
    bool one = t->pass && v >= 0 && sc_spec_in_loop(eq, t->depth, v);
    to->extent[d] = one ? 1 : like->shape[d];
    for (i64 i = 0; one && i < to->n; i++) {
      i64 at[SC_MAX_VARS];
      place_of(t, i, at);
      for (u32 l = 0; l < t->depth; l++)
        if (eq->var[l] == v) to->origin[i][d] = at[l];
    }
  }
}

// Places what equation e defines: in the outputs' boxes, or in the workers' blocks without the
// loop's dimensions. (The part of an output that a sample's iteration defines is copied from
// there.)
static void lay_out(Spec *s, u32 e, const Task *t) {
  const Eq *eq = &s->eq[e];
  const View *dst = &s->k->view.at[eq->m->dst];
  const Buf *b = &s->k->buf.at[eq->buf];
  Store *to = &s->defined[eq->buf];
  bool output = eq->output, whole = (output && !t->pass) || eq->before;
  size_t n = 1;
  for (u32 i = dst->rank; i-- > 0;) {
    i8 v = sc_plain_var(s->k, &dst->at[i]);
    to->shape[i] = output   ? s->b->buf[eq->buf].shape[i]
                   : v >= 0 ? eq->extent[v]
                            : env_int(&s->env, b->dim[i]);
    if (!whole && v >= 0 && sc_spec_in_loop(eq, t->depth, v)) continue;
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

// Before a sample's iteration n, fills its outputs in the worker's block with NaN; after it, copies
// them to their boxes.
static void move_outputs(Worker *w, i64 n, bool before) {
  const Spec *s = w->task->spec;
  for (u32 e = 0; e < s->eqs; e++) {
    if (s->eq[e].group != w->task->group || !s->eq[e].output) continue;
    const Boxes *to = &s->out[s->eq[e].buf];
    double *from = (double *)(void *)(w->block + s->defined[s->eq[e].buf].offset);
    size_t size = 1;
    for (u32 i = 0; i < s->k->buf.at[s->eq[e].buf].rank; i++) size *= (size_t)to->extent[i];
    for (size_t i = 0; before && i < size; i++) from[i] = NAN;
    if (!before) memcpy(to->at + (size_t)n * size, from, size * sizeof *from);
  }
}

// Tells the caller how far it is, and stops all workers if the caller says so.
static void tell_progress(Worker *w, i64 n) {
  static const double every = 0.05;
  Task *t = w->task;
  const Sample *sample = t->spec->sample;
  struct timespec now;
  if (!w->caller || !sample || !sample->progress) return;
  clock_gettime(CLOCK_MONOTONIC, &now);
  double seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
  if (seconds - w->told < every) return;
  w->told = seconds;
  // The exact values are the first half, `pt` the second.
  double half = 0.5 * (t->spec->done + (double)n) / t->spec->all;
  t->stopped = sample->progress(sample->user, t->spec->exact ? half : 0.5 + half) != 0;
  if (t->stopped) atomic_store(&t->next, t->total);
}

static void *work(void *arg) {
  Worker *w = arg;
  Task *t = w->task;
  for (i64 n; (n = atomic_fetch_add(&t->next, 1)) < t->total;) {
    i64 at[SC_MAX_VARS];
    tell_progress(w, n);
    place_of(t, n, at);
    if (t->pass) move_outputs(w, n, true);
    for (u32 e = 0; e < t->spec->eqs; e++)
      if (t->spec->eq[e].group == t->group) run_equation(w, e, at);
    if (t->pass) move_outputs(w, n, false);
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
    w[i].caller = i == 0;
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

static void run_group(Task *t, Worker *w, u32 threads) {
  for (u32 i = 0; i < threads; i++) w[i].task = t;
  sc_on_threads(threads < t->total ? threads : (u32)t->total, work, w, sizeof *w);
}

// Makes a task for the loop of each group. Groups that others depend on come first.
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
      sc_spec_loop(s, t);
      for (u32 e = 0; e < s->eqs; e++)
        if (s->eq[e].group == g) lay_out(s, e, t);
    }
  return n;
}

static void evaluate(Spec *s, u32 threads) {
  const Kernel *k = s->k;
  s->defined = NEWS(s->sc, Store, k->buf.n);
  s->input = NEWS(s->sc, Store, k->buf.n);
  env_init(s->sc, &s->env, k, s->b);
  sc_spec_groups(s);
  Task *task = NEWS(s->sc, Task, s->eqs);
  u32 tasks = make_tasks(s, task);
  for (u32 e = 0; e < s->eqs; e++)
    for (u32 i = 0; i < s->eq[e].reads.n; i++) {
      const Read *r = &s->eq[e].reads.at[i];
      if (r->def == SC_NONE) need_input(s, k->view.at[r->view].buf);
    }
  Worker *w = make_workers(s, threads);
  for (u32 i = 0; i < tasks; i++) s->all += (double)task[i].total;
  for (u32 i = 0; i < tasks; i++) {
    run_group(&task[i], w, threads);
    s->done += (double)task[i].total;
    if (task[i].stopped) sc_unwind(s->sc, SCHEDC_ECANCEL);
  }
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
  evaluate(&s, sc_threads(threads, SC_MAX_THREADS));
  if (longest) *longest = longest_sum(&s);
  sc->unwind = outside;
  sc_free(&own);
  return SCHEDC_OK;
}
