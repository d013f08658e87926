// gpu.h - the GPU side of the runtime. NVRTC and the driver are opened when first needed; building
// schedc needs neither.
#ifndef SC_GPU_H
#define SC_GPU_H

#include "runtime/cuda/build.h"
#include "model/fault.h"
#include "compiler/passes.h"
#include "runtime/run.h"

// Of the driver's cuda.h, what launcher.c needs, with the types of driver.def.
typedef int CUresult, CUdevice, CUstreamCaptureStatus, CUtensorMapDataType, CUtensorMapSwizzle;
typedef void *CUmodule, *CUfunction, *CUstream;
typedef u64 CUdeviceptr, cuuint64_t;
typedef unsigned cuuint32_t;
typedef struct __attribute__((aligned(64))) CUtensorMap {
  unsigned char bytes[128];
} CUtensorMap;
typedef struct CUlaunchAttribute {
  int id;
  union {
    int programmaticStreamSerializationAllowed;
    char bytes[64];
  } __attribute__((aligned(8))) value;
} CUlaunchAttribute;
typedef struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute *attrs;
  unsigned numAttrs;
} CUlaunchConfig;
enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
  CU_STREAM_CAPTURE_STATUS_NONE = 0,
  CU_TENSOR_MAP_INTERLEAVE_NONE = 0,
  CU_TENSOR_MAP_L2_PROMOTION_L2_256B = 3,
  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0
};

// driver.c: the driver's functions.
typedef struct Driver {
  void *library;
#define CU(name, symbol, params) int(*name) params;
#include "runtime/cuda/driver.def"
#undef CU
  ModelFaultFunction *model_fault;  // of the model of a GPU; NULL: this is another driver
} Driver;
// Opens libcuda and initialises it. Returns NULL, or what is missing and how to get it (in sc's
// arena).
const char *sc_driver_open(Sc *sc, Driver *d);
void sc_driver_close(Driver *d);
const char *sc_driver_error(const Driver *d, int error);
int sc_capability(const Driver *d, int device, int *major, int *minor);  // the driver's error, or 0
// NULL, or why emitted code does not run on the device.
const char *sc_no_hopper(Sc *sc, const Driver *d, int device);

#include "runtime/cuda/launcher.h"

// range.c: terms of a table (whose first is none), of a kernel's code.
typedef struct TermOf {
  Xid value;
  Span at;  // that needs it
} TermOf;
typedef struct TermList {
  VEC(SclTerm) term;
  VEC(TermOf) of;
} TermList;
// node: by expression, the node of those that a launch evaluates
void sc_terms(Sc *sc, const Kernel *k, const Launch *launch, const u32 *node, TermList *out);

// table.c: the table of a kernel or sequence, whose text this is. trusts: no list is checked.
typedef struct Tabled {
  SclTable table;
  const u32 *tensor;  // the bufs that its tensors are
  const Span *where;  // by node: what needs it
  const TermOf *term_of;
} Tabled;
void sc_table(Sc *sc, const Kernel *k, const CudaText *text, bool trusts, Tabled *out);
static inline const Buf *sc_tabled(const Kernel *k, const Tabled *t, u32 tensor) {
  return &k->buf.at[t->tensor[tensor]];
}
// The kernel that step i launches, and its text.
static inline const Kernel *sc_step_kernel(const Kernel *k, u32 i) {
  return k->launch.n ? k->launch.at[i].kernel : k;
}
static inline const CudaText *sc_step_text(const CudaText *text, u32 i) {
  return text->step ? text->step[i] : text;
}

// header.c: a C header with the machine code and functions that load and launch it: a kernel, or a
// whole sequence.
typedef struct HeaderPart {
  const Kernel *k;
  const CudaText *text;
  const Binary *cubin;
} HeaderPart;
// Which part is for which shape: rows of all dimensions in the kernel's order, rather the first.
typedef struct HeaderShapes {
  u32 n;
  const i64 *dim;
  const u32 *part;
} HeaderShapes;
// The first part is also for shapes that are near none. trusts: as of sc_table. False after
// reports.
bool sc_header(Str *out, const char *name, const HeaderPart *part, u32 parts,
               const HeaderShapes *shapes, bool trusts);

// headerops.c: what the operations of expressions compute, as C.
void sc_header_ops(Str *out);

// load.c: a kernel or sequence, built, and loaded on a CUDA context.

// What one set of shapes, strides and scalars comes to: only addresses change from launch to
// launch.
typedef struct LaunchPlan {
  u64 used;             // when last; 0: never filled
  i64 *shape, *stride;  // a part of the key: SC_MAX_RANK for each tensor
  double *scalar;       // the other part: the scalars (NaN: default)
  SclPlan plan;
} LaunchPlan;
enum { PLANS = 8 };

typedef struct Loaded {
  Sc *sc;  // owns everything below but the device's
  const Kernel *k;
  const CudaText *text;
  const void *code;
  const char *log;  // NVRTC's and ptxas's
  Tabled tabled;
  u32 tensors;  // that are arguments: the table's first
  // once it is loaded
  const Driver *d;
  void *context;
  SclKernel kernel;
  SclLoaded *function;
  u32 *waits;  // debug waits: what expired, seen from the host; NULL: off
  u64 clock;
  LaunchPlan plan[PLANS];
  const SclPlan *last;  // launched
  SclGiven *given;      // scratch of a launch
} Loaded;

// Everything but machine code: the text, the table. False after reports.
bool sc_emit_all(Sc *sc, const Kernel *k, const BuildOptions *options, Loaded *out);
// Builds it, or (sealed is not empty) takes the machine code that the caller has; needs no GPU.
// What goes wrong is reported in `sc`, which the result lives in.
schedc_status sc_make_code(Sc *sc, const Kernel *k, const BuildOptions *options, Blob sealed,
                           Loaded *out);
// On the current context. NULL, or what went wrong; sc_unload it in both cases.
const char *sc_load(Loaded *l, const Driver *d);
void sc_unload(Loaded *l);

// launch.c
typedef struct LaunchCall {
  void *stream;
  const schedc_tensor *tensor;  // in the kernel's order, without names
  const double *scalar;         // NULL: all defaults; NaN: default
  u64 workspace;
  size_t workspace_bytes;
} LaunchCall;
// The plan for these shapes: remembered, or worked out after every check. NULL after reports.
SclPlan *sc_plan(Sc *sc, Loaded *l, const LaunchCall *call);
schedc_status sc_launch(Sc *sc, Loaded *l, const LaunchCall *call);
// What is given, checked: shapes, strides and scalars. NULL after reports.
Binding *sc_bind_call(Sc *sc, const Loaded *l, const LaunchCall *call);
// SCHEDC_EINPUT, after a report: the context on which it was loaded is not current.
schedc_status sc_check_context(Sc *sc, const Loaded *l);

// elements.c: are the elements of inputs, on the GPU, what their declarations say? Waits for the
// stream. SCHEDC_EINPUT, after a report: they are not.
schedc_status sc_check_elements(Sc *sc, const Loaded *l, const LaunchCall *call);

// refuse.c: why launcher.c launched nothing, as a report; and why it loaded nothing, as a text.
schedc_status sc_refuse(Sc *sc, const Loaded *l, const SclJob *j, const SclRefusal *r);
const char *sc_not_loaded(const Loaded *l, const SclRefusal *r);

// waits.c: after the launches have ended: SCHEDC_EFAULT, after reports, if a wait was given up.
schedc_status sc_report_waits(Sc *sc, Loaded *l);

// model.c: after a launch that failed: SCHEDC_EFAULT, after a report, if the driver is the model of
// a GPU and says why.
schedc_status sc_report_model(Sc *sc, const Loaded *l);

// open.c: a GPU.
typedef struct GpuFacts {
  char name[256], bus[32], uuid[48];
  int sms, version, major, minor, clock_khz, l2;
  size_t memory;
} GpuFacts;
typedef struct Gpu {
  Sc sc;  // of messages
  Driver d;
  int ordinal, device;
  void *context;  // the device's primary one
  GpuFacts facts;
  // of the jobs that run
  schedc_progress progress;  // NULL: nobody asks
  void *progress_user;
  u64 done, steps;
  bool stopped;
} Gpu;

// What a run on a GPU would lack: a driver, the device, a Hopper, NVRTC; NULL: nothing.
const char *sc_gpu_missing(Sc *sc, int ordinal);
// How many devices there are. NULL, or what is missing.
const char *sc_gpu_count(Sc *sc, int *n);

// The one of g->ordinal. NULL, or what is missing. `g` is to be closed in both cases.
const char *sc_gpu_open(Gpu *g);
void sc_gpu_close(Gpu *g);

// device.c: jobs for a GPU: kernels or sequences on tensors in host memory.
typedef struct GpuJob {
  const Kernel *k;      // a kernel or a sequence
  Blob cubin;           // its machine code; empty: it is to be built
  const Binding *host;  // in: tensors in host memory; out: its outputs after the first run
  schedc_cuda_times times;
  u64 differing;          // of the repeats
  const bool *unordered;  // by buf: its bits may
  BuildOptions building;
  Loaded loaded;
  // sc_gpu_run's own
  schedc_tensor *tensor;  // on the device
  LaunchCall call;
  void **before;  // by tensor: what is written was this before the first run
  bool ran;       // once, and its outputs are with the caller
} GpuJob;

// Runs the jobs one after the other; then all of them again, `repeats - 1` times, with the same
// inputs, and counts the outputs with other bits; then measures, interleaved, in `rounds`. Returns
// NULL, or what went wrong in which ("": it is reported in `sc`).
const char *sc_gpu_run(Gpu *g, Sc *sc, GpuJob *job, u32 n, u64 repeats, u32 rounds, u32 *which);

// A step of a job begins. False: progress has asked to stop, and `stopped` says so.
bool sc_gpu_go_on(Gpu *g);
// One launch of a job, asynchronous; and the text of an error, behind what failed.
const char *sc_gpu_enqueue(Sc *sc, GpuJob *j);
const char *sc_gpu_failed(Gpu *g, Sc *sc, const char *what, int error);

// measure.c: the times of jobs, interleaved; and which of n is the k-th of a round: rounds walk
// them with other strides (those that have no divisor in common with n), each from another one on.
const char *sc_gpu_measure(Gpu *g, Sc *sc, GpuJob *job, u32 n, u32 rounds, u32 *which);
u32 sc_gpu_turn(u32 round, u32 k, u32 n);

// duration.c: how long a launch takes, when about so many milliseconds may be spent on it.
typedef struct Duration {
  const Driver *d;
  void *stream;
  schedc_status (*launch)(void *user);  // enqueues one
  void *user;
  double budget_ms;  // of all launches together; at least one is measured
  double settle_ms;  // so long at the beginning launches do not count; at most half of all
  void (*watch)(void *watcher, void *settled, void *last);  // NULL, or called while they run: the
  void *watcher;                                            // events before and behind what counts
  // out
  double ms;  // of a launch: the median of what counts, or the mean, if any were to settle
  u64 launches;
  schedc_status status;  // of a launch that was not enqueued
  int error;             // the driver's
} Duration;
// False: `status` or `error` says why. All that was enqueued has ended.
bool sc_gpu_duration(Duration *t);
// The milliseconds of a launch in each of some groups of n launches. Those from `first` on count.
enum { SC_CLOCKED = 20 };  // groups, at most
bool sc_gpu_clock(Duration *t, u32 groups, u64 n, u32 first, double *ms);

// nvml.c: NVIDIA's management library, opened if it is there.
typedef struct Nvml {
  void *library, *device;
  int (*clock)(void *device, int type, unsigned *mhz);
  int (*power)(void *device, unsigned *milliwatts);
  int (*shutdown)(void);
} Nvml;
void sc_nvml_open(Nvml *n, const char *bus);
void sc_nvml_close(Nvml *n);
unsigned sc_nvml_clock(const Nvml *n);  // of the multiprocessors, MHz; 0: not known
unsigned sc_nvml_power(const Nvml *n);  // of the board, as it draws now, mW; 0: not known

#endif
