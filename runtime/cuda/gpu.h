// gpu.h - the GPU side of the runtime. NVRTC and the driver are opened when first needed; building schedc
// needs neither.
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
// Opens libcuda and initialises it. Returns NULL, or what is missing and how to get it (in sc's arena).
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
const char *sc_load(Sc *sc, const Driver *d, const Kernel *k, const CudaText *text, const void *cubin, Loaded *out);
// Enqueues the kernel; b's tensors are device addresses.
const char *sc_launch(Sc *sc, const Driver *d, const Loaded *l, const Binding *b, void *stream);

// device.c: the kernel or sequence on tensors in host memory, once; with `times`, measured as well. Returns NULL,
// or what went wrong. *log: NVRTC's and ptxas's text.
const char *sc_gpu_run(Sc *sc, const Kernel *k, const Binding *b, schedc_cuda_times *times, const char **log);

#endif
