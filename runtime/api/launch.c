// launch.c - launching on the caller's CUDA context. In: a kernel; tensors on the GPU. Out: work on
// the caller's stream. Everything that a launch needs was made by the load; what the checks of new
// shapes need on the host lives for the call. A lock makes launches of one loaded kernel take
// turns: they share its plans.
#include <pthread.h>
#include <string.h>

#include "runtime/api/api.h"
#include "runtime/cuda/gpu.h"

struct schedc_loaded {
  Sc sc;  // of what it is built to
  Driver driver;
  const Text *text;
  pthread_mutex_t lock;
  Loaded loaded;
  schedc_tensor *tensor;  // scratch of a launch: its tensors in the kernel's order
  double *scalar;         // scratch of a launch: its scalars in the kernel's order
};

// ---- loading

typedef struct LoadJob {
  schedc_loaded *l;
  const Kernel *k;
  BuildOptions building;
  Blob cubin;  // the caller's; empty: it is to be built
} LoadJob;

static schedc_status make_code(Sc *sc, void *arg) {
  LoadJob *j = arg;
  schedc_status status = sc_make_code(sc, j->k, &j->building, j->cubin, &j->l->loaded);
  if (status) return status;
  j->l->tensor = NEWS(sc, schedc_tensor, j->l->loaded.tensors + 1);
  j->l->scalar = NEWS(sc, double, j->k->arg.n + 1);
  return SCHEDC_OK;
}

static schedc_status start(Sc *sc, LoadJob *j, const char *wrong) {
  if (!wrong) wrong = sc_load(&j->l->loaded, &j->l->driver);
  if (!wrong) return SCHEDC_OK;
  sc_report(sc, D_G_RUN, j->k->span, "%s", wrong);
  return SCHEDC_EUNAVAIL;
}

static schedc_status load(Sc *sc, void *arg) {
  LoadJob *j = arg;
  const char *wrong = sc_driver_open(sc, &j->l->driver);
  schedc_status status = !wrong || j->cubin.n ? make_code(sc, j) : SCHEDC_OK;
  return status ? status : start(sc, j, wrong);
}

static schedc_status start_built(Sc *sc, void *arg) {
  LoadJob *j = arg;
  return start(sc, j, sc_driver_open(sc, &j->l->driver));
}

static schedc_loaded *make_loaded(const schedc_context *context, const schedc_kernel *kernel) {
  schedc_loaded *l = NEW_HANDLE(context, schedc_loaded);
  if (!l) return NULL;
  l->text = kernel->k->text;
  pthread_mutex_init(&l->lock, NULL);
  return l;
}

schedc_status schedc_load(schedc_loaded **out, schedc_context *context, const schedc_kernel *kernel,
                          const schedc_load_options *options) {
  schedc_load_options known = SCHEDC_LOAD_OPTIONS_INIT;
  schedc_build_options build = SCHEDC_BUILD_OPTIONS_INIT;
  if (!out) return SCHEDC_EARG;
  *out = NULL;
  if (!context || !kernel) return SCHEDC_EARG;
  if (!TAKE_OPTIONS(&known, options) || !TAKE_OPTIONS(&build, known.build)) return SCHEDC_EARG;
  if (!known.cubin != !known.cubin_bytes) return SCHEDC_EARG;
  schedc_loaded *l = make_loaded(context, kernel);
  if (!l) return SCHEDC_ENOMEM;
  LoadJob job = {l, kernel->k, sc_building(&build), {known.cubin, known.cubin_bytes}};
  schedc_status status = sc_enter(context, &l->sc, l->text, load, &job);
  if (!status && build.log && build.log(build.log_user, l->loaded.log, strlen(l->loaded.log)))
    status = SCHEDC_EIO;
  if (status) schedc_unload(l);
  else *out = l;
  return status;
}

schedc_status sc_loaded_build(schedc_loaded **out, schedc_context *context,
                              const schedc_kernel *kernel, const BuildOptions *building) {
  schedc_loaded *l = *out = make_loaded(context, kernel);
  if (!l) return SCHEDC_ENOMEM;
  return sc_enter(context, &l->sc, l->text, make_code, &(LoadJob){l, kernel->k, *building, {0}});
}

schedc_status sc_loaded_start(schedc_context *context, schedc_loaded *l) {
  LoadJob job = {.l = l, .k = l->loaded.k};
  sc_forget_diags(&l->sc);  // those of the build
  return sc_enter(context, &l->sc, l->text, start_built, &job);
}

void schedc_unload(schedc_loaded *l) {
  if (!l) return;
  sc_unload(&l->loaded);
  sc_driver_close(&l->driver);
  pthread_mutex_destroy(&l->lock);
  sc_free_handle(&l->sc, l);
}

const char *schedc_loaded_log(const schedc_loaded *loaded) {
  return loaded ? loaded->loaded.log : "";
}

// ---- launching

typedef struct CallJob {
  schedc_loaded *l;
  Arguments given;
  LaunchCall call;
  size_t bytes;
} CallJob;

static bool in_order(const Loaded *l, const Arguments *given) {
  if (given->tensors != l->tensors) return false;
  for (u32 i = 0; i < l->tensors; i++) {
    const char *name = given->tensor[i].name;
    if (name && strcmp(name, sc_tabled(l->k, &l->tabled, i)->name) != 0) return false;
  }
  return true;
}

// Puts tensors and scalars in the kernel's order. Most callers give them so: then names are
// compared, and no more. False after reports.
static bool arrange(Sc *sc, CallJob *j) {
  const Loaded *l = &j->l->loaded;
  const Arguments *given = &j->given;
  j->call.tensor = given->tensor;
  if (!in_order(l, given)) {
    u32 *which = NEWS(sc, u32, l->k->buf.n + 1);
    sc_given_tensors(sc, l->k, given, which);
    for (u32 i = 0; i < l->tensors && !sc->errors; i++)
      j->l->tensor[i] = given->tensor[which[l->tabled.tensor[i]]];
    j->call.tensor = j->l->tensor;
  }
  if (given->scalars) {
    sc_given_scalars(sc, l->k, given, j->l->scalar);
    j->call.scalar = j->l->scalar;
  }
  return !sc->errors;
}

static schedc_status plan(Sc *sc, void *arg) {
  CallJob *j = arg;
  if (!arrange(sc, j)) return SCHEDC_EINPUT;
  const SclPlan *p = sc_plan(sc, &j->l->loaded, &j->call);
  j->bytes = p ? p->bytes : 0;
  return p ? SCHEDC_OK : SCHEDC_EINPUT;
}

static schedc_status launch(Sc *sc, void *arg) {
  CallJob *j = arg;
  return arrange(sc, j) ? sc_launch(sc, &j->l->loaded, &j->call) : SCHEDC_EINPUT;
}

static schedc_status check_elements(Sc *sc, void *arg) {
  CallJob *j = arg;
  return arrange(sc, j) ? sc_check_elements(sc, &j->l->loaded, &j->call) : SCHEDC_EINPUT;
}

static schedc_status check_waits(Sc *sc, void *arg) {
  CallJob *j = arg;
  return sc_report_waits(sc, &j->l->loaded);
}

static schedc_status enter(schedc_context *context, CallJob *j, Step step) {
  pthread_mutex_lock(&j->l->lock);
  schedc_status status = sc_enter_once(context, j->l->text, step, j);
  pthread_mutex_unlock(&j->l->lock);
  return status;
}

schedc_status schedc_workspace_size(schedc_context *context, schedc_loaded *loaded,
                                    const schedc_tensor *tensors, size_t tensor_count,
                                    const schedc_scalar *scalars, size_t scalar_count,
                                    size_t *bytes) {
  if (!context || !loaded || !bytes) return SCHEDC_EARG;
  CallJob job = {.l = loaded, .given = {tensors, tensor_count, scalars, scalar_count}};
  if (!sc_good_arguments(&job.given)) return SCHEDC_EARG;
  schedc_status status = enter(context, &job, plan);
  *bytes = job.bytes;
  return status;
}

schedc_status schedc_launch(schedc_context *context, schedc_loaded *loaded, void *stream,
                            const schedc_tensor *tensors, size_t tensor_count,
                            const schedc_scalar *scalars, size_t scalar_count, void *workspace,
                            size_t workspace_bytes) {
  CallJob job = {.l = loaded,
                 .given = {tensors, tensor_count, scalars, scalar_count},
                 .call = {.stream = stream,
                          .workspace = (u64)(uintptr_t)workspace,
                          .workspace_bytes = workspace_bytes}};
  if (!context || !loaded || !sc_good_arguments(&job.given)) return SCHEDC_EARG;
  return enter(context, &job, launch);
}

schedc_status schedc_check_elements(schedc_context *context, schedc_loaded *loaded, void *stream,
                                    const schedc_tensor *tensors, size_t tensor_count,
                                    const schedc_scalar *scalars, size_t scalar_count) {
  CallJob job = {
      .l = loaded, .given = {tensors, tensor_count, scalars, scalar_count}, .call.stream = stream};
  if (!context || !loaded || !sc_good_arguments(&job.given)) return SCHEDC_EARG;
  return enter(context, &job, check_elements);
}

schedc_status schedc_check_waits(schedc_context *context, schedc_loaded *loaded) {
  if (!context || !loaded) return SCHEDC_EARG;
  return enter(context, &(CallJob){.l = loaded}, check_waits);
}
