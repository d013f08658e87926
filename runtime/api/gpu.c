// gpu.c - kernels on a GPU that stays open. Each job's tensors are bound and checked before
// anything runs; what goes wrong is reported at the job's kernel.
#include <stddef.h>
#include <string.h>

#include "runtime/api/meter.h"

struct schedc_gpu {
  schedc_context *context;
  Gpu gpu;
  bool open;
};

schedc_status schedc_gpu_new(schedc_gpu **out, schedc_context *context, int device) {
  if (!out) return SCHEDC_EARG;
  *out = NULL;
  if (!context || device < 0) return SCHEDC_EARG;
  schedc_gpu *gpu = context->alloc.alloc(context->alloc.user, sizeof *gpu);
  if (!gpu) return SCHEDC_ENOMEM;
  *gpu = (schedc_gpu){.context = context, .gpu.ordinal = device};
  sc_init(&gpu->gpu.sc, &context->alloc);
  *out = gpu;
  return SCHEDC_OK;
}

void schedc_gpu_free(schedc_gpu *gpu) {
  if (!gpu) return;
  schedc_context *context = gpu->context;
  if (gpu->open) sc_gpu_close(&gpu->gpu);
  sc_free(&gpu->gpu.sc);
  context->alloc.free(context->alloc.user, gpu);
}

// What is missing is in *wrong; NULL: it is open.
typedef struct Opening {
  schedc_gpu *gpu;
  const char *wrong;
} Opening;

static schedc_status open_gpu(Sc *sc, void *arg) {
  (void)sc;
  Opening *o = arg;
  o->wrong = sc_gpu_open(&o->gpu->gpu);
  if (o->wrong) sc_gpu_close(&o->gpu->gpu);
  o->gpu->open = !o->wrong;
  return SCHEDC_OK;
}

static schedc_status open_once(schedc_gpu *gpu, const char **wrong) {
  Opening o = {.gpu = gpu};
  schedc_status status = gpu->open ? SCHEDC_OK : sc_guard(&gpu->gpu.sc, open_gpu, &o);
  *wrong = o.wrong;
  return status;
}

Gpu *sc_gpu_inside(schedc_gpu *gpu, const char **wrong) {
  schedc_status status = open_once(gpu, wrong);
  if (status) *wrong = schedc_status_text(status);
  return *wrong ? NULL : &gpu->gpu;
}

void sc_gpu_shut(schedc_gpu *gpu) {
  if (gpu->open) sc_gpu_close(&gpu->gpu);
  gpu->open = false;
}

schedc_status schedc_gpu_get_info(schedc_gpu *gpu, schedc_gpu_info *info) {
  const char *wrong;
  if (!gpu || !SAYS_SIZE(info)) return SCHEDC_EARG;
  schedc_status status = open_once(gpu, &wrong);
  if (status || wrong) return status ? status : SCHEDC_EUNAVAIL;
  const GpuFacts *f = &gpu->gpu.facts;
  schedc_gpu_info out = {.name = f->name,
                         .multiprocessors = (unsigned)f->sms,
                         .driver_version = (unsigned)f->version,
                         .device = gpu->gpu.ordinal,
                         .capability_major = (unsigned)f->major,
                         .capability_minor = (unsigned)f->minor,
                         .memory_bytes = f->memory,
                         .l2_bytes = (uint64_t)f->l2,
                         .clock_mhz = f->clock_khz / 1000.0,
                         .pci = f->bus,
                         .uuid = f->uuid};
  COPY_OUT(info, &out);
  return SCHEDC_OK;
}

// ---- is there one?

typedef struct Ask {
  int device;
  char *why;
  size_t room;
  int count;
} Ask;

static schedc_status ask(Sc *sc, void *arg) {
  Ask *a = arg;
  const char *wrong = sc_gpu_missing(sc, a->device);
  if (wrong && a->room) {
    size_t n = strlen(wrong) < a->room ? strlen(wrong) : a->room - 1;
    memcpy(a->why, wrong, n);
    a->why[n] = 0;
  }
  return wrong ? SCHEDC_EUNAVAIL : SCHEDC_OK;
}

static schedc_status count(Sc *sc, void *arg) {
  Ask *a = arg;
  return sc_gpu_count(sc, &a->count) ? SCHEDC_EUNAVAIL : SCHEDC_OK;
}

schedc_status schedc_gpu_available(schedc_context *context, int device, char *why, size_t room) {
  if (!context || device < 0) return SCHEDC_EARG;
  return sc_guard_once(&context->alloc, ask, &(Ask){device, why, why ? room : 0, 0});
}

schedc_status schedc_gpu_count(schedc_context *context, size_t *n) {
  if (!n) return SCHEDC_EARG;
  *n = 0;
  if (!context) return SCHEDC_EARG;
  Ask a = {0};
  schedc_status status = sc_guard_once(&context->alloc, count, &a);
  if (!status) *n = (size_t)a.count;
  return status;
}

// ---- jobs

// A job of the caller's, and where it is worked on.
typedef struct Task {
  Sc sc;
  schedc_gpu_job job;
  GpuJob gpu;
  Gpu *on;
  const char *wrong;
  Diag *reported;
} Task;

typedef struct Batch {
  schedc_gpu *gpu;
  Task *task;
  GpuJob *job;
  u32 n;
  u64 repeats;
  u32 rounds;
  const char *wrong;
  u32 which;
} Batch;

static Arguments arguments_of(const schedc_gpu_job *j) {
  return (Arguments){j->tensors, j->tensor_count, j->scalars, j->scalar_count};
}

static bool good_job(const schedc_gpu_job *j) {
  const Arguments given = arguments_of(j);
  return j->kernel && !j->cubin == !j->cubin_bytes && sc_good_arguments(&given);
}

static schedc_status bind(Sc *sc, void *arg) {
  Task *t = arg;
  const schedc_gpu_job *j = &t->job;
  t->gpu.k = j->kernel->k;
  t->gpu.cubin = (Blob){j->cubin, j->cubin_bytes};
  t->gpu.unordered = j->kernel->unordered;
  const Arguments given = arguments_of(j);
  t->gpu.host = sc_bind_tensors(sc, j->kernel->k, &given);
  return t->gpu.host && sc_elements_fit(sc, t->gpu.host) ? SCHEDC_OK : SCHEDC_EINPUT;
}

static schedc_status build(Sc *sc, void *arg) {
  Task *t = arg;
  GpuJob *j = &t->gpu;
  if (!sc_gpu_go_on(t->on)) return SCHEDC_ECANCEL;
  return sc_make_code(sc, j->k, &j->building, j->cubin, &j->loaded);
}

// What went wrong in the job, or what has been reported already.
static schedc_status report(Sc *sc, void *arg) {
  Task *t = arg;
  if (*t->wrong) {
    sc_report(sc, D_G_RUN, t->job.kernel->k->span, "%s", t->wrong);
    return SCHEDC_EUNAVAIL;
  }
  sc->diags = t->reported;
  for (const Diag *d = sc->diags; d; d = d->next)
    if (d->id == D_G_WAIT || d->id == D_G_MODEL) return SCHEDC_EFAULT;
  return SCHEDC_EINPUT;
}

static schedc_status run(Sc *sc, void *arg) {
  Batch *b = arg;
  b->job = NEWS(sc, GpuJob, b->n);
  for (u32 i = 0; i < b->n; i++) b->job[i] = b->task[i].gpu;
  b->wrong = sc_gpu_run(&b->gpu->gpu, sc, b->job, b->n, b->repeats, b->rounds, &b->which);
  for (u32 i = 0; i < b->n; i++) {
    b->task[i].gpu.ran = b->job[i].ran;
    b->task[i].job.times = b->job[i].times;
    b->task[i].job.differing = b->job[i].differing;
  }
  return SCHEDC_OK;
}

// A step of each task, its diagnostics handed over.
static schedc_status each(Batch *b, Step step) {
  schedc_status status = SCHEDC_OK;
  for (u32 i = 0; i < b->n && !status; i++) {
    Task *t = &b->task[b->which = i];
    sc_forget_diags(&t->sc);
    status = sc_enter(b->gpu->context, &t->sc, t->job.kernel->k->text, step, t);
  }
  return status;
}

static schedc_status run_batch(Batch *b) {
  const schedc_context *context = b->gpu->context;
  Sc work;  // while the message is needed
  sc_init(&work, &context->alloc);
  schedc_status status = each(b, bind);
  if (!status) {
    b->which = 0;  // a GPU that cannot be opened is reported with the first task
    status = open_once(b->gpu, &b->wrong);
  }
  if (!status && !b->wrong) status = each(b, build);
  if (!status && !b->wrong) status = sc_guard(&work, run, b);
  if (b->gpu->gpu.stopped) return sc_free(&work), SCHEDC_ECANCEL;
  if (!status && b->wrong) {
    Task *t = &b->task[b->which];
    t->wrong = b->wrong;
    t->reported = work.diags;
    sc_forget_diags(&t->sc);
    status = sc_enter(context, &t->sc, t->job.kernel->k->text, report, t);
  }
  sc_free(&work);
  return status;
}

// What came of a task, when all that is known of the batch is its status.
static schedc_status status_of(const Batch *b, u32 i, schedc_status status) {
  bool its = status && status != SCHEDC_ECANCEL && i == b->which;
  return its ? status : b->task[i].gpu.ran ? SCHEDC_OK : SCHEDC_ECANCEL;
}

static schedc_gpu_job *job_at(schedc_gpu_job *jobs, size_t i) {
  return (schedc_gpu_job *)(void *)((char *)jobs + i * jobs->size);
}

// What the caller's header has of a job.
static Task task_of(const schedc_gpu_job *given, Gpu *on, const schedc_build_options *build) {
  Task t = {.job = SCHEDC_GPU_JOB_INIT, .gpu.building = sc_building(build), .on = on};
  TAKE_OPTIONS(&t.job, given);
  return t;
}

static void hand_back(const Batch *b, u32 i, schedc_gpu_job *to, schedc_status status) {
  const Task *t = &b->task[i];
  if (!status) {
    to->times = t->job.times;
    to->times.size = sizeof to->times;
    to->differing = t->job.differing;
  }
  if (to->size >= sizeof *to) to->status = status_of(b, i, status);
}

// How often progress is asked, at most.
static void count_steps(const Batch *b, const schedc_gpu_options *o) {
  enum { COLD_ROUNDS = 3 };
  Gpu *g = &b->gpu->gpu;
  u64 repeats = b->repeats ? b->repeats : 1, rounds = b->rounds ? COLD_ROUNDS + 1 + b->rounds : 0;
  g->progress = o->progress;
  g->progress_user = o->progress_user;
  g->steps = b->n * (1 + repeats + rounds);
  g->done = 0;
  g->stopped = false;
}

schedc_status schedc_gpu_run(schedc_gpu *gpu, schedc_gpu_job *jobs, size_t job_count,
                             const schedc_gpu_options *options) {
  schedc_gpu_options known = SCHEDC_GPU_OPTIONS_INIT;
  schedc_build_options build = SCHEDC_BUILD_OPTIONS_INIT;
  if (!gpu || (job_count && !jobs) || job_count > 1u << 20) return SCHEDC_EARG;
  if (!TAKE_OPTIONS(&known, options) || !TAKE_OPTIONS(&build, known.build)) return SCHEDC_EARG;
  if (!job_count) return SCHEDC_OK;
  // Callers' headers have at least these members.
  if (jobs->size < offsetof(schedc_gpu_job, status)) return SCHEDC_EARG;
  for (size_t i = 0; i < job_count; i++)
    if (!good_job(job_at(jobs, i))) return SCHEDC_EARG;
  schedc_allocator alloc = gpu->context->alloc;
  Batch b = {.gpu = gpu, .n = (u32)job_count, .repeats = known.repeats, .rounds = known.rounds};
  b.task = alloc.alloc(alloc.user, sizeof *b.task * job_count);
  if (!b.task) return SCHEDC_ENOMEM;
  count_steps(&b, &known);
  for (u32 i = 0; i < b.n; i++) {
    b.task[i] = task_of(job_at(jobs, i), &gpu->gpu, &build);
    sc_init(&b.task[i].sc, &alloc);
  }
  schedc_status status = run_batch(&b);
  for (u32 i = 0; i < b.n; i++) {
    hand_back(&b, i, job_at(jobs, i), status);
    sc_free(&b.task[i].sc);
  }
  alloc.free(alloc.user, b.task);
  return status;
}
