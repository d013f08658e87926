// run.c - running a kernel or a sequence on the CPU, comparing what came out with the
// specification, and counting what a launch takes. In: tensors of the caller, bound by binding.c
// before anything runs. A sequence runs its launches one after the other, on workspaces that live
// for the call.
#include "runtime/api/api.h"

#include <string.h>

typedef struct RunJob {
  const schedc_kernel *kernel;
  Arguments given;
  const schedc_tensor *before;  // compare
  size_t before_count;
  schedc_run_options options;
  unsigned threads;      // compare
  Sample sample;         // compare
  schedc_error *errors;  // compare
  schedc_fills *fills;   // count_fills
  schedc_work work;      // count_work
} RunJob;

static bool good_arguments(const RunJob *j) {
  return sc_good_arguments(&j->given) && (j->before || !j->before_count);
}

// Poisoned, unless they are declared zero.
static void make_workspaces(Sc *sc, Binding *b) {
  const Kernel *k = b->k;
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *buf = &k->buf.at[i];
    if (!buf->workspace) continue;
    size_t n = 1;
    if (buf->rank) n = (size_t)(b->buf[i].stride[0] * b->buf[i].shape[0]);
    if (buf->rank == 1) n = (size_t)b->buf[i].shape[0] + 16;
    b->buf[i].at = sc_new(sc, n * sc_elem[buf->elem].bytes);
    if (!buf->zeroed) sc_fill_nan(buf->elem, b->buf[i].at, n);
  }
}

// The caller's progress, as a part of a sequence's.
typedef struct Part {
  const schedc_run_options *all;
  u32 done, of;
} Part;

static int report_part(void *user, double done) {
  const Part *p = user;
  return p->all->progress(p->all->progress_user, (p->done + done) / p->of);
}

static schedc_status run(Sc *sc, void *job) {
  RunJob *j = job;
  Binding *b = sc_bind_tensors(sc, j->kernel->k, &j->given);
  if (!b || !sc_outputs_apart(sc, b) || !sc_elements_fit(sc, b)) return SCHEDC_EINPUT;
  const Kernel *k = j->kernel->k;
  if (!k->launch.n) return sc_interpret(sc, k, b, &j->options);
  make_workspaces(sc, b);
  for (u32 l = 0; l < k->launch.n; l++) {
    Part part = {&j->options, l, k->launch.n};
    schedc_run_options options = j->options;
    if (options.progress) {
      options.progress = report_part;
      options.progress_user = &part;
    }
    Binding *one = sc_bind_launch(sc, b, &k->launch.at[l]);
    if (!one || !sc_elements_fit(sc, one)) return SCHEDC_EINPUT;
    schedc_status status = sc_interpret(sc, one->k, one, &options);
    if (status) return status;
  }
  return SCHEDC_OK;
}

// The tensors, with those of `before` in the place of the same ones.
static const schedc_tensor *before_run(Sc *sc, const RunJob *j) {
  const Kernel *k = j->kernel->k;
  schedc_tensor *t = NEWS(sc, schedc_tensor, j->given.tensors + 1);
  for (size_t i = 0; i < j->given.tensors; i++) {
    u32 buf = sc_given_tensor(k, j->given.tensor[i].name, i);
    t[i] = j->given.tensor[i];
    for (size_t n = 0; n < j->before_count; n++)
      if (sc_given_tensor(k, j->before[n].name, n) == buf) t[i] = j->before[n];
    t[i].name = k->buf.at[buf].name;
  }
  return t;
}

static schedc_status compare(Sc *sc, void *job) {
  RunJob *j = job;
  Binding *b = sc_bind_tensors(sc, j->kernel->k, &j->given), *old = b;
  if (b && j->before_count) {
    Arguments given = j->given;
    given.tensor = before_run(sc, j);
    old = sc_bind_tensors(sc, j->kernel->k, &given);
  }
  if (!b || !old) return SCHEDC_EINPUT;
  b->before = old->buf;
  const Kernel *k = j->kernel->k;
  if (!k->spec.n) {
    Diag *d = sc_report(sc, D_T_SPEC, k->span,
                        "'%s' has no specification: there is nothing to compare with", k->name);
    sc_help(sc, d, "add `spec { … }`, with an equation for each output");
    return SCHEDC_EINPUT;
  }
  return sc_compare(sc, j->kernel->k, b, j->threads, &j->sample, j->errors);
}

static schedc_status count_fills(Sc *sc, void *job) {
  RunJob *j = job;
  Binding *b = sc_bind_tensors(sc, j->kernel->k, &j->given);
  size_t rings = schedc_ring_count(j->kernel), step = j->fills->size;
  schedc_fills *fills = NEWS(sc, schedc_fills, rings + 1);
  schedc_status status = b ? sc_count_fills(sc, j->kernel->k, b, fills) : SCHEDC_EINPUT;
  for (size_t i = 0; i < rings && !status; i++) {
    schedc_fills *to = (schedc_fills *)((char *)j->fills + i * step);
    to->size = step;
    COPY_OUT(to, &fills[i]);
  }
  return status;
}

static schedc_status count_work(Sc *sc, void *job) {
  RunJob *j = job;
  const Binding *b = sc_bind_tensors(sc, j->kernel->k, &j->given);
  return b ? sc_count_work(sc, j->kernel->k, b, &j->work) : SCHEDC_EINPUT;
}

static schedc_status enter(schedc_context *context, Step step, RunJob *job) {
  return sc_enter_once(context, job->kernel->k->text, step, job);
}

schedc_status schedc_run_cpu(schedc_context *context, const schedc_kernel *kernel,
                             const schedc_tensor *tensors, size_t tensor_count,
                             const schedc_scalar *scalars, size_t scalar_count,
                             const schedc_run_options *options) {
  RunJob job = {.kernel = kernel,
                .given = {tensors, tensor_count, scalars, scalar_count},
                .options = SCHEDC_RUN_OPTIONS_INIT};
  if (!context || !kernel || !good_arguments(&job)) return SCHEDC_EARG;
  if (!TAKE_OPTIONS(&job.options, options)) return SCHEDC_EARG;
  if ((u32)job.options.policy > SCHEDC_RANDOM) return SCHEDC_EARG;
  return enter(context, run, &job);
}

schedc_status schedc_count_fills(schedc_context *context, const schedc_kernel *kernel,
                                 const schedc_tensor *tensors, size_t tensor_count,
                                 const schedc_scalar *scalars, size_t scalar_count,
                                 schedc_fills *fills) {
  RunJob job = {
      .kernel = kernel, .given = {tensors, tensor_count, scalars, scalar_count}, .fills = fills};
  if (!context || !kernel || !SAYS_SIZE(fills) || !good_arguments(&job)) return SCHEDC_EARG;
  return enter(context, count_fills, &job);
}

schedc_status schedc_count_work(schedc_context *context, const schedc_kernel *kernel,
                                const schedc_tensor *tensors, size_t tensor_count,
                                const schedc_scalar *scalars, size_t scalar_count,
                                schedc_work *work) {
  RunJob job = {.kernel = kernel, .given = {tensors, tensor_count, scalars, scalar_count}};
  if (!context || !kernel || !SAYS_SIZE(work) || !good_arguments(&job)) return SCHEDC_EARG;
  schedc_status status = enter(context, count_work, &job);
  if (!status) COPY_OUT(work, &job.work);
  return status;
}

schedc_status schedc_compare(schedc_context *context, const schedc_kernel *kernel,
                             const schedc_tensor *tensors, size_t tensor_count,
                             const schedc_scalar *scalars, size_t scalar_count,
                             const schedc_compare_options *options, schedc_error *errors) {
  schedc_compare_options known = SCHEDC_COMPARE_OPTIONS_INIT;
  if (!TAKE_OPTIONS(&known, options)) return SCHEDC_EARG;
  RunJob job = {.kernel = kernel,
                .given = {tensors, tensor_count, scalars, scalar_count},
                .before = known.before,
                .before_count = known.before_count,
                .threads = known.threads,
                .sample = {known.places, known.operations, known.progress, known.progress_user}};
  if (!context || !kernel || !errors || !good_arguments(&job)) return SCHEDC_EARG;
  size_t step = errors->size;  // of the caller's header
  if (step < sizeof errors->size || kernel->outputs == 0)
    return kernel->outputs ? SCHEDC_EARG : SCHEDC_OK;
  job.errors = sc_zeroed(context, sizeof *job.errors * kernel->outputs);
  if (!job.errors) return SCHEDC_ENOMEM;
  schedc_status status = enter(context, compare, &job);
  for (u32 i = 0; i < kernel->outputs; i++) {
    schedc_error *to = (schedc_error *)((char *)errors + i * step);
    to->size = step;
    COPY_OUT(to, &job.errors[i]);
  }
  context->alloc.free(context->alloc.user, job.errors);
  return status;
}
