// meter.h - what a meter is made of: programs of a space, built by several threads (builders.c);
// tensors on a GPU, with what they hold for each kind of inputs (inputs.c); and the measuring
// (meter.c), which belongs to one thread.
#ifndef SC_METER_H
#define SC_METER_H

#include <pthread.h>

#include "runtime/api/api.h"
#include "runtime/cuda/gpu.h"

// gpu.c: what is inside. Opens it if it is not open; NULL: `wrong` says what is missing.
Gpu *sc_gpu_inside(schedc_gpu *gpu, const char **wrong);
void sc_gpu_shut(schedc_gpu *gpu);  // the next use opens it anew

// The first error that a context was told of.
typedef struct Heard {
  char code[32], text[400];
} Heard;

// ---- builders.c

enum { MAX_BUILDERS = 64, MOST_MADE = 192 };

typedef enum MadeState { MADE_NONE, MADE_WANTED, MADE_BUILDING, MADE_BUILT } MadeState;

// A program, and what it was built to.
typedef struct Made {
  MadeState state;
  u32 program;
  u64 used;  // when it was asked for last
  schedc_point point;
  schedc_kernel *kernel;
  schedc_loaded *loaded;
  bool started;  // on the device
  schedc_status status;
  Heard heard;
} Made;

// Everything below `lock` is under it; what is built belongs to the thread that measures.
typedef struct Builders {
  const schedc_space *space;
  BuildOptions building;
  bool unverified;
  pthread_t thread[MAX_BUILDERS];
  u32 threads;
  pthread_mutex_t lock;
  pthread_cond_t wanted, built;
  bool stop;
  u64 clock;
  Made made[MOST_MADE];
} Builders;

// False: no thread could be started.
bool sc_builders_open(Builders *b, u32 threads);
void sc_builders_close(Builders *b);
// Has a program built; what was used longest ago makes room, unless nothing can: then nothing.
void sc_builders_want(Builders *b, const schedc_trial *trial);
bool sc_builders_have(Builders *b, u32 program);  // is it built?
// Waits until another one is built, or a tenth of a second.
void sc_builders_pause(Builders *b);
// Waits until it is built. It stays until the next call.
Made *sc_builders_take(Builders *b, const schedc_trial *trial);
// What is only wanted is not built; started: and what is on the device is given up.
void sc_builders_forget(Builders *b, bool started);
void sc_hear(void *heard, const schedc_diagnostic *d);  // a schedc_sink

// ---- inputs.c

enum { MAX_KINDS = 16 };
enum { WARMING_TURNS = 3 };  // before the finals, so many times as long as one of their turns
enum { SETTLING_MS = 150 };  // of launches that do not count, before those of the finals that do

typedef struct Inputs {
  const Driver *d;
  bool on_gpu;  // the caller's, on the device
  void *stream;
  u32 n;
  schedc_tensor *host;    // memory of the inputs' own: what a run leaves in them
  schedc_tensor *device;  // the same on the GPU
  size_t *bytes;
  u8 *direction;  // known once a kernel is
  bool known;
  u64 seed;
  u32 kinds;                    // on which results must be right
  u32 measured;                 // of them the first so many: on these programs are measured
  const char *kind[MAX_KINDS];  // the first is what the caller gave
  void **held[MAX_KINDS];       // by tensor: what it holds before a run; NULL: not drawn yet
  u32 now;                      // the kind on the device
  bool dirty;                   // a run has changed what is both read and written
} Inputs;

// All return the driver's error. `held[0]` is what the caller's tensors hold.
int sc_inputs_open(Sc *sc, Inputs *in, const schedc_tensor *tensors);
int sc_inputs_place(Inputs *in);    // on the device, all memory new; unless it is the caller's
void sc_inputs_remove(Inputs *in);  // from there
void sc_inputs_know(Inputs *in, const schedc_kernel *kernel);
void sc_inputs_draw(Sc *sc, Inputs *in, u32 kind);       // floats; what is no float stays
int sc_inputs_show(Inputs *in, u32 kind, bool outputs);  // on the device; outputs: poisoned
// What a kernel has made on the device becomes a part of a kind.
int sc_inputs_keep(Inputs *in, u32 kind, const schedc_kernel *maker);
int sc_inputs_read(Inputs *in);  // outputs to `host`

// ---- meter.c

struct schedc_meter {
  Sc sc;
  schedc_context *quiet;  // of launches and comparisons: what they say is the program's fault
  Heard heard;
  schedc_gpu *gpu;
  const Driver *d;
  void *cuda;    // the CUDA context; NULL: it was lost
  bool entered;  // the context is current
  schedc_meter_options options;
  const schedc_space *space;
  Inputs inputs;
  u64 workspace;
  size_t workspace_bytes;
  Builders builders;
  bool is_warm;  // nothing but finals since the chip was warmed up for them
  // what records say
  schedc_gpu_info about;
  unsigned nvrtc;
  schedc_dim *dims;  // known once a kernel is
  size_t dim_count;
};

// Learns from a kernel of the space what the tensors are for, and the dimensions.
schedc_status sc_meter_know(schedc_meter *m, const schedc_kernel *kernel);

#endif
