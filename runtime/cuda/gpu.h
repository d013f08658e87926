// gpu.h - the GPU side of the runtime. NVRTC and the driver are opened when first needed; building
// schedc needs neither.
#ifndef SC_GPU_H
#define SC_GPU_H

#include "runtime/cuda/build.h"
#include "model/fault.h"
#include "compiler/passes.h"
#include "runtime/run.h"

// CUlaunchConfig: a launch whose attributes are those that the kernel was built with.
typedef struct ClusterLaunch {
  unsigned grid[3], block[3], shared;
  void *stream, *attributes;
  unsigned attribute_count;
} ClusterLaunch;

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

// range.c: do all integers of the kernel's code fit in 32 bits under these dimensions? False after
// a report.
bool sc_range(Sc *sc, const Kernel *k, const Binding *b);

// fit.c: what the emitted code takes for granted of its tensors, whose addresses are the device's.
// False after reports.
bool sc_fit(Sc *sc, const Kernel *k, const CudaText *text, const Binding *b);
u64 sc_align_mask(const Kernel *k, const CudaText *text, u32 buf);  // address bits that must be 0

// How large a launch is.
typedef struct Grid {
  i64 tiles;
  u32 ctas;
} Grid;
// `room`: clusters (CTAs, where there are none) that a grid of fewer than its tiles has at most. False after a report.
bool sc_grid(Sc *sc, const Kernel *k, const Binding *b, u32 room, Grid *out);
// Counters of a turn over CTAs. False after a report.
bool sc_turn_counters(Sc *sc, const Kernel *k, const Binding *b, u32 turn, i64 *n);

// params.c: the parameters of a kernel. What cuTensorMapEncodeTiled gets for a map, innermost
// dimension first.
typedef struct MapShape {
  u64 extent[5], stride[5];  // stride[0] is not passed
  u32 box[5];
  int type, swizzle;
  bool empty;  // the tensor has no elements: the map's address is a stand-in
} MapShape;
void sc_map_shape(const Kernel *k, const TmaMap *m, const TensorRef *ref, MapShape *out);
// Where an address goes in an argument block.
typedef enum SlotKind { SLOT_TENSOR, SLOT_COUNTER, SLOT_TURN, SLOT_WAITS } SlotKind;
typedef struct ArgSlot {
  u8 kind;
  u32 ref;     // tensor: buf; turn: its number
  u32 offset;  // in the block
} ArgSlot;
size_t sc_arg_bytes(const Kernel *k, const CudaText *text);
// Everything but addresses, which go where slot[] says (room: k->buf.n + k->turn.n + 2). Returns
// their number.
u32 sc_pack(const Kernel *k, const CudaText *text, const Binding *b, i64 tiles, unsigned char *args,
            ArgSlot *slot);

// header.c: a C header with the machine code and functions that load and launch it: a kernel, or a whole sequence.
// False after reports.
bool sc_header(Str *out, const Kernel *k, const CudaText *text, const Binary *cubin);

// load.c: a kernel or sequence, built, and loaded on a CUDA context.
typedef struct __attribute__((aligned(64))) Map128 {
  unsigned char bytes[128];
} Map128;
typedef struct LoadedStep {  // a kernel of it
  const Kernel *k;
  const Launch *launch;  // of the sequence, or NULL
  const CudaText *text;
  const void *code;
  void *module, *function;
  size_t arg_bytes;
  u32 room;  // clusters, or CTAs, that the GPU holds at once, one CTA a multiprocessor
} LoadedStep;

typedef struct StepPlan {
  Grid grid;
  Map128 *map;
  u64 *map_at;  // the address that map[i] has; 0: a stand-in for no elements
  unsigned char *args;
  ArgSlot *slot;
  u32 slots;
  size_t *turn;  // where the counters of each turn are in the workspace
} StepPlan;

// What one set of shapes, strides and scalars comes to: only addresses change from launch to
// launch.
typedef struct LaunchPlan {
  u64 used;              // when last; 0: never filled
  i64 *shape, *stride;   // the key: SC_MAX_RANK for each tensor …
  double *scalar;        // … and the scalars (NaN: default)
  size_t *offset;        // of each workspace (by buf), in the caller's
  size_t zeroed, bytes;  // the first part is set to 0 by each launch; all
  StepPlan *step;
} LaunchPlan;

// Tile counters of dynamic grids: one for each stream that launches, and of those that are captured
// one for each launch, in turn.
enum { PLANS = 8, STREAMS = 256, CAPTURES = 3840, COUNTER_BYTES = 4, WORKSPACE_ALIGN = 256 };
typedef struct StreamCounter {
  u64 id, used;  // the stream, and when last; 0: never
} StreamCounter;

typedef struct Loaded {
  Sc *sc;  // owns everything below but the device's
  const Kernel *k;
  u32 *tensor;  // bufs that are arguments, in order
  u32 tensors;
  LoadedStep *step;  // in launch order
  u32 steps;
  const char *log;  // NVRTC's and ptxas's
  // once it is loaded
  const Driver *d;
  void *context;
  u32 sms;
  u64 device;    // one allocation: zeros, a place for writes that mean nothing, counters
  u32 captured;  // launches, so far
  StreamCounter stream[STREAMS];
  u32 *waits;  // debug waits: what expired, seen from the host; NULL: off
  u64 waits_device;
  u64 clock;
  LaunchPlan plan[PLANS];
  u64 *address;  // scratch of a launch: by buf
  void **param;  // … the parameters of a kernel
} Loaded;
enum { ZERO_AT = 0, SINK_AT = 256, COUNTERS_AT = 512 };

// Everything but machine code: the text of each kernel, the order of arguments. False after reports.
bool sc_emit_all(Sc *sc, const Kernel *k, const CudaOptions *emission, Loaded *out);
// Builds it; needs no GPU. What goes wrong is reported in `sc`, which the result lives in.
schedc_status sc_build_all(Sc *sc, const Kernel *k, const BuildOptions *options, Loaded *out);
// On the current context. NULL, or what went wrong; sc_unload it in both cases.
const char *sc_load(Loaded *l, const Driver *d);
int sc_zero_counters(const Loaded *l);  // and waits until they are; the driver's error
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
const LaunchPlan *sc_plan(Sc *sc, Loaded *l, const LaunchCall *call);
schedc_status sc_launch(Sc *sc, Loaded *l, const LaunchCall *call);

// waits.c: after the launches have ended: SCHEDC_EFAULT, after reports, if a wait was given up.
schedc_status sc_report_waits(Sc *sc, Loaded *l);

// model.c: after a launch that failed: SCHEDC_EFAULT, after a report, if the driver is the model of a GPU and says why.
schedc_status sc_report_model(Sc *sc, const Loaded *l);

// device.c: a GPU, and jobs for it: kernels or sequences on tensors in host memory.
typedef struct Gpu {
  Sc sc;  // of messages
  Driver d;
  int device;
  void *context;  // the device's primary one
  char name[256], bus[32];
  int sms, version;
} Gpu;

// What a run on the first GPU would lack: a driver, a device, a Hopper, NVRTC; NULL: nothing.
const char *sc_gpu_missing(Sc *sc);

// NULL, or what is missing. `g` is to be closed in both cases.
const char *sc_gpu_open(Gpu *g);
void sc_gpu_close(Gpu *g);

typedef struct GpuJob {
  const Kernel *k;      // a kernel or a sequence
  const Binding *host;  // in: tensors in host memory; out: its outputs after the first run
  schedc_cuda_times times;
  u64 differing;  // of the repeats
  const bool *unordered;  // by buf: its bits may
  BuildOptions building;
  Loaded loaded;
  // sc_gpu_run's own
  schedc_tensor *tensor;  // on the device
  LaunchCall call;
  void **before;  // by tensor: what is written was this before the first run
} GpuJob;

// Builds the job's kernels; needs no GPU. What goes wrong is reported.
schedc_status sc_gpu_build(Sc *sc, GpuJob *j);

// Runs the jobs one after the other; then all of them again, `repeats - 1` times, with the same
// inputs, and counts the outputs with other bits; then measures, interleaved, in `rounds`. Returns
// NULL, or what went wrong in which ("": it is reported in `sc`).
const char *sc_gpu_run(Gpu *g, Sc *sc, GpuJob *job, u32 n, u64 repeats, u32 rounds, u32 *which);

// One launch of a job, asynchronous; and an error's text.
const char *sc_gpu_enqueue(Sc *sc, GpuJob *j);
const char *sc_gpu_finish(Gpu *g, Sc *sc, GpuJob *j);  // waits for all
const char *sc_gpu_failed(Gpu *g, Sc *sc, const char *what, int error);

// measure.c: the times of jobs, interleaved; and which of n is the k-th of a round: rounds walk them
// with other strides (those that have no divisor in common with n), each from another one on.
const char *sc_gpu_measure(Gpu *g, Sc *sc, GpuJob *job, u32 n, u32 rounds, u32 *which);
u32 sc_gpu_turn(u32 round, u32 k, u32 n);

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
