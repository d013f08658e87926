// meter.c - programs of a space on a GPU: built by threads, measured and verified by the caller's.
// In: trials. Out: what came of each. What goes wrong with a program is an outcome; what goes wrong
// with the machine or the caller's tensors ends the call with an error. A program that ends in a
// fault takes the CUDA context with it: the device is opened anew, and all goes on, unless the
// context is the caller's.
#include "runtime/api/meter.h"

#include <stdio.h>

// What a measurement or verification needs.
typedef struct MeterJob {
  schedc_meter *m;
  schedc_context *context;
  const schedc_trial *trial;
  schedc_outcome *outcome;
  Made *made;
  const schedc_kernel *kernel;
  u32 kind;  // of inputs
  const char *wrong;
} MeterJob;

static schedc_status machine(Sc *sc, void *arg) {
  const MeterJob *j = arg;
  sc_report(sc, D_G_RUN, (Span){0, 0}, "%s", j->wrong);
  return SCHEDC_EUNAVAIL;
}

// The machine is at fault.
static schedc_status unavailable(const MeterJob *j, const char *wrong) {
  MeterJob job = *j;
  job.wrong = wrong;
  return sc_enter_once(j->context, sc_space_source(j->m->space)->text, machine, &job);
}

static schedc_status driver_failed(const MeterJob *j, const char *what, int e) {
  char said[400];
  snprintf(said, sizeof said, "%s: %s", what, sc_driver_error(j->m->d, e));
  return unavailable(j, said);
}

// The program is: SCHEDC_OK for the caller.
static schedc_status fails(MeterJob *j, schedc_status status, const char *code) {
  j->outcome->status = status == SCHEDC_OK ? SCHEDC_EINPUT : status;
  if (code != j->m->heard.code) snprintf(j->m->heard.code, sizeof j->m->heard.code, "%s", code);
  j->outcome->code = *j->m->heard.code ? j->m->heard.code : NULL;
  return SCHEDC_OK;
}

// ---- making one

static const char *kinds_of(Sc *sc, schedc_meter *m) {
  const char *list = sc_printf(sc, "%s", m->options.verify ? m->options.verify : "outliers,ramp");
  Inputs *in = &m->inputs;
  in->kind[0] = sc_printf(sc, "%s", m->options.inputs ? m->options.inputs : "given");
  in->kinds = 1;
  for (size_t n; *list; list += n + (list[n] == ',')) {
    n = strcspn(list, ",");
    const char *kind = sc_printf(sc, "%.*s", (int)n, list);
    if (in->kinds == MAX_KINDS || !schedc_input_summary(kind)) return kind;
    in->kind[in->kinds++] = kind;
  }
  in->measured = m->options.measured ? m->options.measured : 1;
  return NULL;
}

static schedc_status open_device(MeterJob *j) {
  schedc_meter *m = j->m;
  const char *wrong = NULL;
  Gpu *gpu = sc_gpu_inside(m->gpu, &wrong);
  if (wrong) return unavailable(j, wrong);
  m->d = m->inputs.d = &gpu->d;
  m->cuda = gpu->context;
  int e = m->options.on_gpu ? m->d->cuCtxGetCurrent(&m->cuda) : 0;
  if (e || !m->cuda) return unavailable(j, "no CUDA context is current");
  m->about = (schedc_gpu_info)SCHEDC_GPU_INFO_INIT;
  return schedc_gpu_get_info(m->gpu, &m->about);
}

// Makes the context current; leave() takes it back, if it is.
static int enter(schedc_meter *m) {
  int e = m->d->cuCtxPushCurrent(m->cuda);
  m->entered = !e;
  return e;
}

static void leave(schedc_meter *m) {
  if (m->entered) m->d->cuCtxPopCurrent(&(void *){NULL});
  m->entered = false;
}

static schedc_status fill(Sc *sc, void *arg) {
  MeterJob *j = arg;
  schedc_meter *m = j->m;
  Inputs *in = &m->inputs;
  in->on_gpu = m->options.on_gpu != 0;
  in->stream = m->options.stream;
  in->n = (u32)m->options.tensor_count;
  in->seed = m->options.seed;
  if (kinds_of(sc, m) || in->measured > in->kinds) return SCHEDC_EARG;
  schedc_scalar *scalars = NEWS(sc, schedc_scalar, m->options.scalar_count + 1);
  for (size_t i = 0; i < m->options.scalar_count; i++) scalars[i] = m->options.scalars[i];
  m->options.scalars = scalars;
  schedc_status status = open_device(j);
  if (status) return status;
  m->nvrtc = sc_nvrtc_version(sc);
  int e = enter(m);
  if (!e) e = sc_inputs_open(sc, in, m->options.tensors);
  if (!e) e = sc_inputs_place(in);
  leave(m);
  return e ? driver_failed(j, "the tensors are not put on the GPU", e) : SCHEDC_OK;
}

static schedc_status open_meter(MeterJob *j, const schedc_build_options *build) {
  schedc_meter *m = j->m;
  schedc_options quiet = SCHEDC_OPTIONS_INIT;
  quiet.allocator = &m->sc.alloc;
  quiet.sink = sc_hear;
  quiet.sink_user = &m->heard;
  quiet.unverified = j->context->unverified;
  schedc_status status = schedc_open(&m->quiet, &quiet);
  if (!status) status = sc_guard(&m->sc, fill, j);
  if (status) return status;
  m->builders.space = m->space;
  m->builders.building = sc_building(build);
  m->builders.unverified = j->context->unverified;
  bool threads = sc_builders_open(&m->builders, sc_threads(m->options.jobs, MAX_BUILDERS));
  return threads ? SCHEDC_OK : unavailable(j, "no thread can be started");
}

static bool good_tensors(const schedc_meter_options *o) {
  bool good =
      sc_good_arguments(&(Arguments){o->tensors, o->tensor_count, o->scalars, o->scalar_count});
  for (size_t i = 0; good && i < o->tensor_count; i++)
    good = o->on_gpu ? o->tensors[i].rank <= SCHEDC_MAX_RANK : sc_good_tensor(&o->tensors[i]);
  return good;
}

schedc_status schedc_meter_new(schedc_meter **out, schedc_context *context,
                               const schedc_space *space, schedc_gpu *gpu,
                               const schedc_meter_options *options) {
  schedc_meter_options known = SCHEDC_METER_OPTIONS_INIT;
  schedc_build_options build = SCHEDC_BUILD_OPTIONS_INIT;
  if (!out) return SCHEDC_EARG;
  *out = NULL;
  if (!context || !space || !gpu || !TAKE_OPTIONS(&known, options) || !good_tensors(&known) ||
      !TAKE_OPTIONS(&build, known.build))
    return SCHEDC_EARG;
  schedc_meter *m = NEW_HANDLE(context, schedc_meter);
  if (!m) return SCHEDC_ENOMEM;
  m->space = space;
  m->gpu = gpu;
  m->options = known;
  schedc_status status = open_meter(&(MeterJob){.m = m, .context = context}, &build);
  if (status) schedc_meter_free(m);
  else *out = m;
  return status;
}

static void leave_device(schedc_meter *m) {
  if (m->workspace) m->d->cuMemFree(m->workspace);
  m->workspace = m->workspace_bytes = 0;
  sc_inputs_remove(&m->inputs);
}

void schedc_meter_free(schedc_meter *m) {
  if (!m) return;
  if (m->builders.threads) sc_builders_close(&m->builders);
  if (m->cuda && !enter(m)) {
    if (m->options.on_gpu && m->inputs.known) sc_inputs_show(&m->inputs, 0, true);
    leave_device(m);
    leave(m);
  }
  schedc_close(m->quiet);
  sc_free_handle(&m->sc, m);
}

// ---- knowing what the tensors are

static schedc_status learn(Sc *sc, void *arg) {
  MeterJob *j = arg;
  schedc_meter *m = j->m;
  const Kernel *k = j->kernel->k;
  const Arguments given = {m->inputs.host, m->inputs.n, m->options.scalars,
                           m->options.scalar_count};
  const Binding *b = sc_bind_tensors(sc, k, &given);
  if (!b) return SCHEDC_EINPUT;
  m->dim_count = schedc_dim_count(j->kernel);
  m->dims = NEWS(sc, schedc_dim, m->dim_count + 1);
  for (size_t i = 0; i < m->dim_count; i++)
    m->dims[i] = (schedc_dim){sc_printf(sc, "%s", schedc_dim_at(j->kernel, i)), b->dim[i]};
  sc_inputs_know(&m->inputs, j->kernel);
  return SCHEDC_OK;
}

schedc_status sc_meter_know(schedc_meter *m, const schedc_kernel *kernel) {
  if (m->inputs.known) return SCHEDC_OK;
  MeterJob job = {.m = m, .kernel = kernel};
  sc_forget_diags(&m->sc);  // those of the kernel before
  return sc_enter(m->quiet, &m->sc, kernel->k->text, learn, &job);
}

// ---- launching

// A launch failed, or did not end: of the context there is nothing left.
static schedc_status begin_anew(MeterJob *j) {
  schedc_meter *m = j->m;
  if (m->options.on_gpu) return SCHEDC_EFAULT;
  sc_builders_forget(&m->builders, true);
  j->made = NULL;
  leave_device(m);
  leave(m);
  sc_gpu_shut(m->gpu);
  m->cuda = NULL;
  schedc_status status = open_device(j);
  if (status) return status;
  int e = enter(m);
  if (!e) e = sc_inputs_place(&m->inputs);
  return e ? driver_failed(j, "the tensors are not put on the GPU again", e) : SCHEDC_OK;
}

static schedc_status faulted(MeterJob *j) {
  schedc_status status = fails(j, SCHEDC_EFAULT, j->m->d->model_fault ? "G.model" : "G.run");
  schedc_status again = begin_anew(j);
  return again ? again : status;
}

static schedc_status launch(void *arg) {
  MeterJob *j = arg;
  schedc_meter *m = j->m;
  const schedc_meter_options *o = &m->options;
  return schedc_launch(m->quiet, j->made->loaded, o->stream, m->inputs.device, m->inputs.n,
                       o->scalars, o->scalar_count, (void *)(uintptr_t)m->workspace,
                       m->workspace_bytes);
}

static schedc_status make_workspace(const MeterJob *j, schedc_loaded *loaded) {
  enum { NAN_BYTE = 0xff };  // what a kernel takes for granted shows
  schedc_meter *m = j->m;
  size_t bytes = 0;
  const schedc_meter_options *o = &m->options;
  schedc_status status = schedc_workspace_size(m->quiet, loaded, m->inputs.device, m->inputs.n,
                                               o->scalars, o->scalar_count, &bytes);
  if (status || bytes <= m->workspace_bytes) return status;
  if (m->workspace) m->d->cuMemFree(m->workspace);
  m->workspace = m->workspace_bytes = 0;
  int e = m->d->cuMemAlloc(&m->workspace, bytes);
  if (!e) e = m->d->cuMemsetD8(m->workspace, NAN_BYTE, bytes);
  if (e) return driver_failed(j, "no workspace on the GPU", e);
  m->workspace_bytes = bytes;
  return SCHEDC_OK;
}

// Makes the program ready to be launched. *ready is false if it cannot be.
static schedc_status prepare(MeterJob *j, bool *ready) {
  schedc_meter *m = j->m;
  Made *c = j->made;
  *ready = false;
  if (c->status == SCHEDC_EUNAVAIL) return unavailable(j, c->heard.text);
  if (c->status && c->status != SCHEDC_EINPUT && c->status != SCHEDC_ELIMIT) return c->status;
  if (c->status) return fails(j, c->status, c->heard.code);
  schedc_status status = sc_meter_know(m, c->kernel);
  if (!status && !c->started) status = sc_loaded_start(m->quiet, c->loaded);
  c->started |= !status;
  if (!status) status = make_workspace(j, c->loaded);
  if (status) return status == SCHEDC_ENOMEM ? status : fails(j, status, m->heard.code);
  *ready = true;
  return SCHEDC_OK;
}

// ---- kinds of inputs

static schedc_status run_given(MeterJob *j, const schedc_kernel *given, Made *other) {
  schedc_meter *m = j->m;
  MeterJob run = *j;
  run.made = other;
  schedc_status status = sc_loaded_build(&other->loaded, j->context, given, &m->builders.building);
  if (!status) status = sc_loaded_start(j->context, other->loaded);
  if (!status) status = make_workspace(j, other->loaded);
  if (!status) status = launch(&run);
  int e = status ? 0 : m->d->cuStreamSynchronize(m->options.stream);
  if (!status && !e) e = sc_inputs_keep(&m->inputs, j->kind, given);
  return e ? driver_failed(j, "what a sequence is given is not made", e) : status;
}

// Makes what a sequence is `given`, from the other inputs.
static schedc_status give(MeterJob *j) {
  schedc_kernel *given;
  Made other = {0};
  schedc_status status = schedc_given(&given, j->m->quiet, j->made->kernel);
  if (status) return status == SCHEDC_EARG ? SCHEDC_OK : status;
  status = run_given(j, given, &other);
  schedc_unload(other.loaded);
  schedc_kernel_free(given);
  return status;
}

static schedc_status draw(Sc *sc, void *arg) {
  MeterJob *j = arg;
  sc_inputs_draw(sc, &j->m->inputs, j->kind);
  return SCHEDC_OK;
}

// A kind of inputs on the device, made if it is new; outputs: and these poisoned.
static schedc_status show(MeterJob *j, bool outputs) {
  Inputs *in = &j->m->inputs;
  bool is_new = !in->held[j->kind];
  schedc_status status = is_new ? sc_guard(&j->m->sc, draw, j) : SCHEDC_OK;
  if (status) return status;
  int e = sc_inputs_show(in, j->kind, outputs);
  if (!e && is_new && (status = give(j))) return status;
  return e ? driver_failed(j, "a tensor is not put on the GPU", e) : SCHEDC_OK;
}

// ---- measuring

// The chip has idled while results were compared: before the first turn of the finals, launches of
// its program warm it up, for some seconds (measure.c says why).
static schedc_status measure_kind(MeterJob *j) {
  schedc_meter *m = j->m;
  schedc_status status = m->inputs.now == j->kind ? SCHEDC_OK : show(j, false);
  if (status) return status;
  Duration t = {.d = m->d,
                .stream = m->options.stream,
                .launch = launch,
                .user = j,
                .budget_ms = j->trial->ms / m->inputs.measured,
                .settle_ms = j->trial->is_final ? SETTLING_MS : 0};
  Duration warming = t;
  warming.budget_ms = j->trial->ms * WARMING_TURNS;
  bool cool = j->trial->is_final && !m->is_warm;
  if (cool && !sc_gpu_duration(&warming)) t = warming;
  bool good = !t.status && !t.error && sc_gpu_duration(&t);
  m->is_warm = j->trial->is_final && good;
  m->inputs.dirty = true;
  if (t.error) return faulted(j);
  if (!good) return fails(j, t.status, m->heard.code);
  j->outcome->ms += t.ms / m->inputs.measured;
  u64 launches = t.launches * m->inputs.measured;
  if (!j->outcome->launches || launches < j->outcome->launches) j->outcome->launches = launches;
  return SCHEDC_OK;
}

// The kind that is on the device comes first.
static schedc_status measure(MeterJob *j) {
  const Inputs *in = &j->m->inputs;
  u32 n = in->measured, first = in->now < n ? in->now : 0;
  schedc_status status = SCHEDC_OK;
  for (u32 i = 0; i < n && !status && !j->outcome->status; i++) {
    j->kind = (first + i) % n;
    status = measure_kind(j);
  }
  if (j->outcome->status) j->outcome->ms = 0, j->outcome->launches = 0;
  return status;
}

// ---- verifying

static schedc_status run_once(MeterJob *j) {
  schedc_status status = launch(j);
  if (status) return fails(j, status, j->m->heard.code);
  return j->m->d->cuStreamSynchronize(j->m->options.stream) ? faulted(j) : SCHEDC_OK;
}

static schedc_status compare(Sc *sc, void *arg) {
  MeterJob *j = arg;
  schedc_meter *m = j->m;
  Inputs *in = &m->inputs;
  const schedc_kernel *k = j->made->kernel;
  size_t n = schedc_output_count(k);
  schedc_error *errors = NEWS(sc, schedc_error, n + 1);
  schedc_tensor *after = NEWS(sc, schedc_tensor, in->n + 1);
  schedc_tensor *before = NEWS(sc, schedc_tensor, in->n + 1);
  schedc_compare_options how = SCHEDC_COMPARE_OPTIONS_INIT;
  how.operations = m->options.operations;
  how.before = before;
  for (u32 i = 0; i < in->n; i++) {
    after[i] = in->host[i];
    if (in->direction[i] == SCHEDC_IN) after[i].data = in->held[in->now][i];
    if (in->direction[i] != SCHEDC_INOUT) continue;
    before[how.before_count] = in->host[i];
    before[how.before_count].name = k->k->buf.at[sc_given_tensor(k->k, in->host[i].name, i)].name;
    before[how.before_count++].data = in->held[in->now][i];
  }
  errors[0].size = sizeof *errors;
  schedc_status status = schedc_compare(m->quiet, k, after, in->n, m->options.scalars,
                                        m->options.scalar_count, &how, errors);
  if (status) return status == SCHEDC_ENOMEM ? status : fails(j, status, m->heard.code);
  bool right = n > 0;
  // Drawn inputs are chosen to be difficult: there an output may vanish, and prove nothing.
  for (size_t i = 0; i < n; i++)
    right = right && (errors[i].pass || (errors[i].unproven && in->now > 0));
  return right ? SCHEDC_OK : fails(j, SCHEDC_EFAULT, n ? "wrong" : "T.spec");
}

static schedc_status verify_kind(MeterJob *j) {
  schedc_meter *m = j->m;
  schedc_status status = show(j, true);
  if (!status) status = run_once(j);
  if (status || j->outcome->status) return status;
  int e = sc_inputs_read(&m->inputs);
  if (e) return driver_failed(j, "the outputs are not read from the GPU", e);
  return sc_guard_once(&m->sc.alloc, compare, j);
}

static schedc_status verify(MeterJob *j) {
  schedc_status status = SCHEDC_OK;
  for (j->kind = 0; j->kind < j->m->inputs.kinds && !status && !j->outcome->status; j->kind++)
    status = verify_kind(j);
  return status;
}

// ---- a trial

static schedc_status run(MeterJob *j) {
  schedc_meter *m = j->m;
  bool ready;
  if (!m->cuda) return unavailable(j, "the GPU was lost in a trial before");
  int e = enter(m);
  if (e) return driver_failed(j, "the CUDA context cannot be made current", e);
  schedc_status status = prepare(j, &ready);
  if (!status && ready) status = j->trial->kind == SCHEDC_TRIAL_VERIFY ? verify(j) : measure(j);
  leave(m);
  return status;
}

static bool good_trial(const schedc_trial *t) {
  return t && t->size >= sizeof *t &&
         (t->kind == SCHEDC_TRIAL_MEASURE || t->kind == SCHEDC_TRIAL_VERIFY);
}

schedc_status schedc_meter_prepare(schedc_meter *meter, const schedc_trial *trial) {
  if (!meter || !good_trial(trial)) return SCHEDC_EARG;
  sc_builders_want(&meter->builders, trial);
  return SCHEDC_OK;
}

schedc_status schedc_meter_run(schedc_context *context, schedc_meter *meter,
                               const schedc_trial *trial, schedc_outcome *outcome) {
  if (!context || !meter || !good_trial(trial) || !outcome || outcome->size < sizeof *outcome)
    return SCHEDC_EARG;
  schedc_outcome out = SCHEDC_OUTCOME_INIT;
  meter->heard = (Heard){{0}, {0}};
  MeterJob job = {.m = meter, .context = context, .trial = trial, .outcome = &out};
  job.made = sc_builders_take(&meter->builders, trial);
  schedc_status status = run(&job);
  COPY_OUT(outcome, &out);
  return status;
}
