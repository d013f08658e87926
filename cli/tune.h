// tune.h - `schedc tune`: a search for one shape, and what is said of it.
#ifndef TUNE_H
#define TUNE_H

#include "cli/cli.h"

// launcher.c: which of the processes of mpirun or srun this is.
typedef struct Launcher {
  int rank, size;         // 0 of 1: there is no launcher
  int local, local_size;  // among those on this machine
} Launcher;
Launcher launcher_find(void);
unsigned launcher_jobs(const Launcher *l, const Args *args);  // threads that build, of this rank

typedef struct Tune {
  const Args *args;  // of this shape
  const Launcher *who;
  Session session;
  schedc_space *space;
  schedc_kernel *kernel;  // a legal one
  size_t kase;
  Data data;
  schedc_gpu *gpu;
  schedc_gpu_info about;
  schedc_store *store, *winners;
  schedc_tuner *tuner;
  schedc_meter *meter;
  schedc_tune_state state;  // the last that was told
  const uint64_t
      *elsewhere;  // trials that each other rank measured, by its number; NULL: no others
  double shown;    // when something was, in seconds
  bool terminal, interrupted;
} Tune;

// tune.c. Each returns 0, or an exit code after a message or diagnostics.
int tune_open(Tune *t);   // the space, the GPU, tensors
int tune_meter(Tune *t);  // and a meter of them
void tune_close(Tune *t);
bool tune_interrupted(void);  // by Ctrl-C
// The kinds of inputs on which results must be right; the first a->measured are measured.
size_t tune_kinds(const Args *a);
const char *tune_kind(const Args *a, size_t i);

// shapes.c: the lines of --shapes, as arguments of their own; without it, one.
typedef struct Shapes {
  Buffer text;
  size_t n;
  Args *at;
} Shapes;
// Returns 0, or an exit code after a message.
int shapes_read(Shapes *shapes, const Args *args);
void shapes_free(Shapes *shapes);

// tunereport.c
void tune_progress(Tune *t);  // a line on standard error: redrawn on a terminal, else now and then
void tune_text(const Tune *t);
void tune_json(const Tune *t, bool found, Json *j);  // `found`: something is; reports in any case

#endif
