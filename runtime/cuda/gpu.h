// gpu.h - the GPU side of the runtime. NVRTC and the driver are opened when first needed; building
// schedc needs neither.
#ifndef SC_GPU_H
#define SC_GPU_H

#include "build.h"
#include "passes.h"
#include "run.h"

// driver.c: the driver's functions.
typedef struct Driver {
  void *library;
#define CU(name, symbol, params) int(*name) params;
#include "driver.def"
#undef CU
} Driver;
// Opens libcuda and initialises it. Returns NULL, or what is missing and how to get it (in sc's
// arena).
const char *sc_driver_open(Sc *sc, Driver *d);
void sc_driver_close(Driver *d);
const char *sc_driver_error(const Driver *d, int error);

// launch.c: one kernel, loaded, with the layout of its parameters.
typedef struct Loaded {
  const Kernel *k;
  const CudaText *text;
  void *module, *function;
  u64 counter;  // of a dynamic grid; launches of one Loaded must not overlap then
  int sms;
} Loaded;
const char *sc_load(Sc *sc, const Driver *d, const Kernel *k, const CudaText *text,
                    const void *cubin, Loaded *out);
// Enqueues the kernel; b's tensors are device addresses.
const char *sc_launch(Sc *sc, const Driver *d, const Loaded *l, const Binding *b, void *stream);

// device.c: a GPU, and jobs for it: kernels or sequences on tensors in host memory.
typedef struct Gpu {
  Sc sc;  // of messages
  Driver d;
  int device;
  void *context;  // the device's primary one
  char name[256], bus[32];
  int sms, version;
} Gpu;

// NULL, or what is missing. `g` is to be closed in both cases.
const char *sc_gpu_open(Gpu *g);
void sc_gpu_close(Gpu *g);

// A kernel of a job, and what it is launched on.
typedef struct GpuStep {
  const Kernel *k;
  const CudaText *text;
  const void *code;
  Loaded loaded;
  const Binding *b;
} GpuStep;

typedef struct GpuJob {
  const Kernel *k;      // a kernel or a sequence
  const Binding *host;  // in: tensors in host memory; out: its outputs after the first run
  schedc_cuda_times times;
  u64 differing;  // of the repeats
  GpuStep *step;  // in launch order
  u32 steps;
  // sc_gpu_run's own
  Binding dev;    // host with device addresses
  void **before;  // by buf: what is written was this before the first run
} GpuJob;

// Builds the job's kernels; needs no GPU. What goes wrong is reported.
schedc_status sc_gpu_build(Sc *sc, GpuJob *j);

// Runs the jobs one after the other; then all of them again, `repeats - 1` times, with the same
// inputs, and counts the outputs with other bits; then measures, interleaved, in `rounds`. Returns
// NULL, or what went wrong in which.
const char *sc_gpu_run(Gpu *g, Sc *sc, GpuJob *job, u32 n, u64 repeats, u32 rounds, u32 *which);

// One launch of a job, asynchronous; and an error's text.
const char *sc_gpu_enqueue(Gpu *g, Sc *sc, const GpuJob *j);
const char *sc_gpu_failed(Gpu *g, Sc *sc, const char *what, int error);

// measure.c: the times of jobs, interleaved.
const char *sc_gpu_measure(Gpu *g, Sc *sc, GpuJob *job, u32 n, u32 rounds, u32 *which);

// nvml.c: NVIDIA's management library, opened if it is there.
typedef struct Nvml {
  void *library, *device;
  int (*clock)(void *device, int type, unsigned *mhz);
  int (*shutdown)(void);
} Nvml;
void sc_nvml_open(Nvml *n, const char *bus);
void sc_nvml_close(Nvml *n);
unsigned sc_nvml_clock(const Nvml *n);  // of the multiprocessors, MHz; 0: not known

#endif
