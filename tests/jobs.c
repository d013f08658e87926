// jobs.c - what came of each job of schedc_gpu_run: of those that went well, of one that does not
// fit, of one that ends in a fault; and of all when they are stopped on the way. tests/device.py
// builds it with libschedc and runs it on the model of a GPU.
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <schedc.h>

enum { JOBS = 3, M = 70, N = 32, STEPS = 2 * JOBS };

// With rounds = 2 a role waits for what the other never fills.
static const char text[] =
    "kernel twice {\n"
    "  param rounds = 1\n"
    "  in  X : f32[M, 32]\n"
    "  out Y : f32[M, 32]\n"
    "  grid (x : cdiv(M, 64))\n"
    "  ring r : f32[64, 32] * 2\n"
    "  role load : 1 warp, 40 regs { r <- X[x*64..] }\n"
    "  role math : 1 warpgroup, 128 regs {\n"
    "    for t in 0 .. rounds { wait r;  Y[x*64 + i, j] = 2 * r[i,j];  release r }\n"
    "  }\n"
    "}\n";

static float x[M * N], y[JOBS][M * N];

typedef struct Asked {
  int calls, stop_at;
  double last;
} Asked;

static int progress(void *user, double done) {
  Asked *a = user;
  if (done < a->last || done > 1) a->calls = 1000;
  a->last = done;
  return ++a->calls == a->stop_at;
}

// Runs the jobs on a GPU; job 1 is of a kernel, or on a tensor, of the caller's.
static schedc_status run(schedc_gpu *gpu, const schedc_kernel *good, const schedc_kernel *other,
                         int columns, schedc_gpu_options *options, schedc_status status[JOBS]) {
  schedc_gpu_job job[JOBS];
  schedc_tensor tensors[JOBS][2];
  memset(y, 0, sizeof y);
  for (int i = 0; i < JOBS; i++) {
    int n = i == 1 ? columns : N;
    tensors[i][0] = (schedc_tensor){"X", x, SCHEDC_F32, 2, {M, n}, {n, 1}};
    tensors[i][1] = (schedc_tensor){"Y", y[i], SCHEDC_F32, 2, {M, N}, {N, 1}};
    job[i] = (schedc_gpu_job)SCHEDC_GPU_JOB_INIT;
    job[i].kernel = i == 1 ? other : good;
    job[i].tensors = tensors[i];
    job[i].tensor_count = 2;
    job[i].status = SCHEDC_EIO;  // which is what none has
  }
  schedc_status all = schedc_gpu_run(gpu, job, JOBS, options);
  for (int i = 0; i < JOBS; i++) status[i] = job[i].status;
  return all;
}

// Is it said of each job what became of it, and is that so?
static int differs(const char *what, schedc_status all, const schedc_status status[JOBS],
                   schedc_status want, schedc_status a, schedc_status b, schedc_status c) {
  const schedc_status wants[JOBS] = {a, b, c};
  int wrong = all != want;
  for (int i = 0; i < JOBS; i++)
    wrong |= status[i] != wants[i] || (status[i] == SCHEDC_OK && y[i][M * N - 1] != 6);
  if (wrong)
    printf("%s: %s (%s, %s, %s)\n", what, schedc_status_name(all), schedc_status_name(status[0]),
           schedc_status_name(status[1]), schedc_status_name(status[2]));
  return wrong;
}

// Stopped at every step: those that have run are done, and the GPU is as good as before.
static int stops(schedc_gpu *gpu, const schedc_kernel *k) {
  schedc_gpu_options options = SCHEDC_GPU_OPTIONS_INIT;
  schedc_status s[JOBS];
  int wrong = 0;
  for (int stop = 1; stop <= STEPS; stop++) {
    Asked asked = {0, stop, 0};
    options.progress = progress;
    options.progress_user = &asked;
    schedc_status all = run(gpu, k, k, N, &options, s), no = SCHEDC_ECANCEL;
    int ran = stop - JOBS - 1;
    wrong |= differs("stopped", all, s, no, ran > 0 ? SCHEDC_OK : no, ran > 1 ? SCHEDC_OK : no, no);
    wrong |= asked.calls != stop;
  }
  Asked asked = {0, 0, 0};
  options.progress_user = &asked;
  wrong |= differs("not stopped", run(gpu, k, k, N, &options, s), s, SCHEDC_OK, SCHEDC_OK,
                   SCHEDC_OK, SCHEDC_OK);
  return wrong | (asked.calls != STEPS);
}

// A program whose header has no status yet.
static int is_older(schedc_gpu *gpu, const schedc_kernel *k) {
  const schedc_tensor tensors[] = {{"X", x, SCHEDC_F32, 2, {M, N}, {N, 1}},
                                   {"Y", y, SCHEDC_F32, 2, {M, N}, {N, 1}}};
  schedc_gpu_job job = SCHEDC_GPU_JOB_INIT;
  job.size = offsetof(schedc_gpu_job, status);
  job.kernel = k;
  job.tensors = tensors;
  job.tensor_count = 2;
  job.status = SCHEDC_EIO;
  return schedc_gpu_run(gpu, &job, 1, NULL) != SCHEDC_OK || job.status != SCHEDC_EIO;
}

int main(void) {
  schedc_options options = SCHEDC_OPTIONS_INIT;
  schedc_context *context = NULL;
  schedc_source *source = NULL;
  schedc_kernel *good = NULL, *hangs = NULL;
  schedc_gpu *gpu = NULL;
  schedc_status s[JOBS], ok = SCHEDC_OK, no = SCHEDC_ECANCEL;
  const schedc_param rounds = {"rounds", "2"};
  int wrong = 0;
  options.unverified = 1;
  for (int i = 0; i < M * N; i++) x[i] = 3;
  if (schedc_open(&context, &options) ||
      schedc_parse(&source, context, "twice.sched", text, sizeof text - 1) ||
      schedc_instantiate(&good, context, source, NULL, NULL, NULL, 0) ||
      schedc_instantiate(&hangs, context, source, NULL, NULL, &rounds, 1) ||
      schedc_gpu_new(&gpu, context, 0))
    return puts("no kernels"), 1;
  wrong |= differs("all well", run(gpu, good, good, N, NULL, s), s, ok, ok, ok, ok);
  wrong |= differs("one does not fit", run(gpu, good, good, N - 1, NULL, s), s, SCHEDC_EINPUT, no,
                   SCHEDC_EINPUT, no);
  wrong |= stops(gpu, good) | is_older(gpu, good);
  wrong |= differs("one hangs", run(gpu, good, hangs, N, NULL, s), s, SCHEDC_EFAULT, ok,
                   SCHEDC_EFAULT, no);
  schedc_gpu_free(gpu);
  schedc_kernel_free(hangs);
  schedc_kernel_free(good);
  schedc_source_free(source);
  schedc_close(context);
  if (!wrong) puts("each job is told of");
  return wrong;
}
