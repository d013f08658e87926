// embed.c - libschedc inside another program: a schedule out of a string, compiled in a thread,
// every diagnostic through a callback, run on a Hopper GPU if there is one and else on the CPU, and
// compared with its specification.
//
//   cc embed.c $(pkg-config --cflags --libs schedc) -lpthread
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <schedc.h>

static const char text[] =
    "kernel scale {\n"
    "  param BM = 64\n"
    "  in X : f16[M, 64]\n"
    "  in a : f32 = 2\n"
    "  out Y : f16[M, 64]\n"
    "  spec { Y[i,j] = a * X[i,j] }\n"
    "  grid (x : cdiv(M, BM))\n"
    "  ring r : f16[BM, 64] * 2\n"
    "  role load : 1 warp, 24 regs { r <- X[x*BM..] }\n"
    "  role math : 1 warpgroup, 232 regs {\n"
    "    reg v : f16[BM, 64]\n"
    "    wait r\n"
    "    v[i,j] = a * r[i,j]\n"
    "    release r\n"
    "    Y[x*BM + i, j] = v[i,j]\n"
    "  }\n"
    "}\n";

enum { M = 100, N = 64 };

static void print_diagnostic(void *user, const schedc_diagnostic *d) {
  (void)user;
  fputs(d->rendered, stderr);
}

// A kernel may be used by any thread, each with a context of its own.
static void *compile(void *out) {
  schedc_options options = SCHEDC_OPTIONS_INIT;
  schedc_context *context;
  schedc_source *source = NULL;
  schedc_kernel **kernel = out;
  options.sink = print_diagnostic;
  if (schedc_open(&context, &options) != SCHEDC_OK) return NULL;
  if (schedc_parse(&source, context, "scale", text, sizeof text - 1) == SCHEDC_OK) {
    schedc_instantiate(kernel, context, source, "scale", NULL, NULL, 0);
  }
  schedc_source_free(source);  // the kernel keeps what it needs
  schedc_close(context);
  return NULL;
}

// On the first GPU; an application with many runs keeps it open.
static schedc_status run_on_gpu(schedc_context *context, const schedc_kernel *kernel,
                                const schedc_tensor *tensors, const schedc_scalar *scalars) {
  schedc_gpu *gpu;
  schedc_gpu_job job = SCHEDC_GPU_JOB_INIT;
  job.kernel = kernel;
  job.tensors = tensors, job.tensor_count = 2;
  job.scalars = scalars, job.scalar_count = 1;
  schedc_status status = schedc_gpu_new(&gpu, context, 0);
  if (!status) status = schedc_gpu_run(gpu, &job, 1, NULL);
  schedc_gpu_free(gpu);
  return status;
}

static schedc_status run(const schedc_kernel *kernel, int *on_gpu, schedc_error *error) {
  static uint16_t x[M * N], y[M * N];
  schedc_options options = SCHEDC_OPTIONS_INIT;
  schedc_context *context;
  options.sink = print_diagnostic;
  for (int i = 0; i < M * N; i++) x[i] = 0x3c00;  // 1.0 as f16
  const schedc_tensor tensors[] = {
      {"X", x, SCHEDC_F16, 2, {M, N}, {N, 1}},
      {"Y", y, SCHEDC_F16, 2, {M, N}, {N, 1}},
  };
  const schedc_scalar scalars[] = {{"a", 3}};
  schedc_status status = schedc_open(&context, &options);
  if (status) return status;
  *on_gpu = schedc_gpu_available(context, 0, NULL, 0) == SCHEDC_OK;
  status = *on_gpu ? run_on_gpu(context, kernel, tensors, scalars)
                   : schedc_run_cpu(context, kernel, tensors, 2, scalars, 1, NULL);
  if (!status) status = schedc_compare(context, kernel, tensors, 2, scalars, 1, NULL, error);
  schedc_close(context);
  return status;
}

int main(void) {
  pthread_t thread;
  schedc_kernel *kernel = NULL;
  schedc_error error = SCHEDC_ERROR_INIT;
  if (pthread_create(&thread, NULL, compile, &kernel) != 0) return EXIT_FAILURE;
  pthread_join(thread, NULL);
  if (!kernel) return EXIT_FAILURE;
  int on_gpu = 0;
  schedc_status status = run(kernel, &on_gpu, &error);
  if (status) fprintf(stderr, "%s: %s\n", schedc_status_name(status), schedc_status_text(status));
  else
    printf("%s, on the %s: max error %g of %g allowed: %s\n", error.tensor, on_gpu ? "GPU" : "CPU",
           error.max_error, error.max_allowed, error.pass ? "PASS" : "FAIL");
  schedc_kernel_free(kernel);
  return status == SCHEDC_OK && error.pass ? EXIT_SUCCESS : EXIT_FAILURE;
}
