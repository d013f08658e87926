// cli.h - the `schedc` command, first embedder of libschedc: it uses schedc.h, and of the library's
// insides only the JSON writer (json.h).
#ifndef CLI_H
#define CLI_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "schedc.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

// Exit codes, as --help documents them.
enum { EXIT_GOOD = 0, EXIT_BAD = 1, EXIT_USAGE = 2, EXIT_ENVIRONMENT = 3 };

typedef enum Format { FORMAT_TEXT, FORMAT_JSON, FORMAT_SARIF } Format;

// The interpreter's policies, as schedc_policy has them, and one more of the model.
typedef enum Policy { POLICY_EARLY, POLICY_LATE, POLICY_RANDOM, POLICY_LAGGARD, POLICIES } Policy;
const char *policy_name(Policy policy);

// A kind of drawn inputs: its number, as schedc_input_at counts.
typedef unsigned InputKind;
enum { MAX_INPUTS = 32 };

// NAME=VALUE options in the order given, each name once but for outputs; what a variant or a line
// of shapes says goes behind them, and wins. The names are owned.
typedef struct Pairs {
  schedc_param *at;
  size_t n;
} Pairs;

typedef struct Command Command;

typedef struct Args {
  const Command *command;
  char **operand;
  int operands;
  const char *case_name, *emit, *output, *to, *name, *report, *shapes, *store, *tuned, *winners,
      *gpu;
  Pairs param, set, vary, in, out;
  Policy policy;
  uint64_t seed, inputs_seed;
  bool inputs_seed_given;
  InputKind inputs[MAX_INPUTS];
  size_t input_count;  // 0: not given
  unsigned threads, sms;
  unsigned rounds;
  uint64_t repeat;  // 0: not given
  uint64_t sample;  // places of the specification; 0: all
  bool sample_given;
  Format format;
  double budget;  // seconds; 0: none
  schedc_strategy strategy;
  unsigned jobs, top;  // 0: not given
  unsigned measured;   // kinds of inputs, the first
  bool resume;
  bool check, all_params, all_cases, in_place, quick, full;
  bool lenient, no_cache, unverified, trust_elements;
  bool cuda, model, on_given, policy_given,  // model: cuda as well
      bench, dry_run, debug_waits, help;
  int device;
  bool device_given;
  const char *not_cuda;  // why the CPU was chosen; NULL: it was asked for
  int argc;
  char **argv;  // from the subcommand's name on, options first
} Args;

struct Command {
  const char *name;
  const char *operands;  // "FILE [KERNEL]"
  const char *what;      // one line
  const char *more;      // the rest of its --help
  int min, max;          // operands
  int (*run)(const Args *args);
};

// main.c: `schedc: …` or `schedc run: …` on stderr; returns EXIT_ENVIRONMENT or EXIT_USAGE.
int cli_fail(const Args *args, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int cli_usage(const Args *args, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// Of a file ("-": standard output) that could not be written, as errno says: EXIT_ENVIRONMENT.
int cli_unwritten(const Args *args, const char *path);

// args.c
bool pairs_have(const Pairs *pairs, const char *name);
// Reads the options of a command. Returns 0, or an exit code after a message.
int args_read(Args *args, const Command *command, int argc, char **argv);
void args_free(Args *args);
void args_help(FILE *to, const Command *command);

int command_run(const Args *args);
int command_test(const Args *args);
int command_bench(const Args *args);
int command_tune(const Args *args);
int command_build(const Args *args);
// what --lenient, --no-cache, --debug-waits and --trust-elements say
schedc_build_options build_options(const Args *args);
int command_check(const Args *args);
int command_fmt(const Args *args);
int command_info(const Args *args);
int command_explain(const Args *args);

// ---- place.c: a file or folder that comes with the command. False: it is in neither place.
bool place_find(const char *beside, const char *installed, char *path, size_t room);

// ---- model.c: --on model
typedef struct ModelRun {
  Policy policy;
  uint64_t seed;
  unsigned sms;   // 0: the model's default
  bool together;  // lanes of a warp never part
} ModelRun;
// before a GPU is opened. Returns 0, or an exit code after a message
int model_open(const Args *args);
void model_run_as(const ModelRun *run);  // how the launches that follow run

// ---- buffer.c: bytes that grow, files. Out of memory ends the program (EXIT_ENVIRONMENT).
void *need(void *block);  // block, unless it is NULL
typedef struct Buffer {
  char *at;  // NUL-terminated
  size_t n, cap;
} Buffer;
int buffer_write(void *buffer, const char *bytes, size_t n);  // a schedc_writer
void buffer_puts(Buffer *b, const char *text);
void buffer_printf(Buffer *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// False: errno says why.
bool stdin_read(Buffer *out);
bool file_put(FILE *f, const void *bytes, size_t n);
// "-": standard output. A plain file appears whole, or not at all, with the permissions of the one
// whose place it takes; a link to one is replaced, not followed.
bool file_replace(const char *path, const void *bytes, size_t n);
int stdout_write(void *user, const char *bytes, size_t n);  // a schedc_writer

// ---- session.c: one file, its diagnostics, a kernel of it.
typedef struct Session {
  const Args *args;
  schedc_context *context;
  schedc_source *source;
  Buffer reports;  // JSON and SARIF: the elements, comma-separated; text: if `quiet`
  size_t *start;   // where each of them begins
  size_t count;
  Buffer seen;     // what was reported, to report it once,
  Buffer places;   // … and where, by code: later kernels and points do not report it there again
  size_t earlier;  // so much of `places` is of kernels and points before this one
  Buffer first_code;  // of the first error: its code, and its sentence
  Buffer first_text;
  size_t errors;           // reported so far
  size_t unmet;            // of these, requirements that do not hold
  size_t misaligned;       // … and rows that the copy engine cannot address
  size_t unlike;           // … and elements that are not as their list is declared
  bool quiet;              // collect text reports instead of printing them
  FILE *bytes;             // where an output goes that is written to standard output; NULL: none is
  const char *usual_case;  // without --case, once known
  bool knows_case;
} Session;
// Opens args->operand[index]. Returns 0, or an exit code after a message or diagnostics.
int session_open(Session *s, const Args *args, int index);
void session_close(Session *s);
// The kernel that the command line names, under its case (by default the first, if dimensions are
// not all given otherwise); *kase: the case's number, or SIZE_MAX.
int session_kernel(Session *s, schedc_kernel **kernel, size_t *kase);
// The case that it means, or NULL; and its number in a kernel, or SIZE_MAX.
const char *session_case(Session *s);
size_t session_case_number(const schedc_kernel *kernel, const char *name);
void session_forget(Session *s);  // drops what was reported
void session_next(Session *s);    // another kernel, or other params, of the same file follow
char *session_report(const Session *s, size_t index);  // one of the collected reports, a copy
// Prints the collected reports as JSON array or SARIF log; text: nothing.
void session_print_reports(const Session *s);
int session_status(
    const Session *s,
    schedc_status status);  // the exit code, after a message where no diagnostic came

// ---- data.c: tensors of a kernel in memory.
typedef struct Data {
  const schedc_kernel *kernel;
  schedc_dim *dims;
  size_t dim_count;
  schedc_tensor *tensors;
  int *direction;   // SCHEDC_IN …
  void **original;  // of tensors that are read and written: their values before the run; else NULL
  size_t tensor_count;
  size_t *bytes;
  schedc_scalar *scalars;
  size_t scalar_count;
  schedc_npy **file;  // that give them
  struct List {
    double *at;
    size_t n;
  } * list;  // by tensor: the elements that --set gives; n = 0: none
} Data;
// The dimensions and scalars of case number `kase` (SIZE_MAX: none), with `choice[i]` saying which
// value of the case's i-th line (NULL: the first), then --in, then `set`. Returns 0 or an exit code
// after a message. data_dims stops there; data_open needs all dimensions and works out the tensors'
// shapes.
int data_dims(Data *d, Session *s, const schedc_kernel *kernel, size_t kase, const size_t *choice,
              const Pairs *set);
int data_open(Data *d, Session *s, const schedc_kernel *kernel, size_t kase, const size_t *choice,
              const Pairs *set);
// The shape of a tensor under the dimensions and scalars so far; false: they do not say it, or it
// is negative.
bool data_shape(const Data *d, schedc_context *context, size_t t, int64_t *shape);
uint64_t data_elements(const Data *d);
int data_allocate(Data *d, Session *s);
// Instead of data_allocate and data_fill: zeros, and what the case says. For counting, which
// touches little of it.
void data_sketch(Data *d, size_t kase);
// Inputs; outputs are poisoned.
void data_fill(Data *d, const Session *s, size_t kase, InputKind kind, uint64_t seed);
schedc_status data_give(Data *d, Session *s, size_t kase,
                        // after it: makes what the sequence is given; NULL: on the CPU
                        schedc_gpu *gpu);
void data_list(Data *d, size_t kase);    // of data_fill only what the case and --set list
void data_rewind(Data *d);               // as after data_fill, for another run
schedc_gpu_job data_job(const Data *d);  // a run on it, for schedc_gpu_run
// The outputs against the specification, or a sample of it.
schedc_status data_compare(const Data *d, const Session *s, schedc_error *errors);
int data_load(Data *d, Session *s);        // --in: before data_fill
int data_save(const Data *d, Session *s);  // --out
void data_close(Data *d);

// ---- tuned.c: --tuned, or the store that is taken without it
typedef struct Tuned {
  schedc_store *store;         // NULL: there is none
  Buffer path;                 // … where it is
  schedc_store_record record;  // whose params a kernel has; schedule NULL: none fits
  Buffer gpu;                  // whose records fit; empty: any GPU's
} Tuned;
// May there be a store? on_gpu: as below.
bool tuned_wanted(const Args *args, bool on_gpu);
// All return 0, or an exit code after a message. on_gpu: only lines of the GPU that is chosen fit,
// and without --tuned and $SCHEDC_STORE its table is opened, if there is one.
int tuned_open(Session *s, Tuned *t, bool on_gpu);
void tuned_close(Tuned *t);
// A kernel of session_kernel, made anew with what the store has for its dimensions. A store that
// was not named, and has nothing, is closed.
int tuned_kernel(Session *s, Tuned *t, schedc_kernel **kernel, size_t *kase);
bool tuned_same(const schedc_kernel *a, const schedc_kernel *b);  // have they the same params?
// For a C header, with --tuned or --gpu: all that the store has, of one GPU.
int tuned_variants(Session *s, Tuned *t, schedc_variants **out);
// What a record says: its line, where it was measured, its params.
void tuned_text(const Tuned *t, const schedc_store_record *r, Buffer *to);
void tuned_json(const Tuned *t, const schedc_store_record *r, Json *j);

// ---- sweep.c: lengths at which a case is worth another run.
typedef struct Sweep {
  Pairs point;  // of each, the one dimension or scalar that differs from the case
  Buffer left;  // "B, T": dimensions that are left out, …
  Buffer why;   // "cu": … as the case gives the elements of these
} Sweep;
// limit: of elements of all tensors together.
void sweep_open(Sweep *w, Session *s, const schedc_kernel *kernel, size_t kase, uint64_t limit);
void sweep_close(Sweep *w);

// ---- points.c: --all-params, --all-cases
// Every point of a unit, or those of its cases. JSON is added to `json`, an element of a list.
schedc_status points_check(Session *s, const char *unit, Buffer *json);

// ---- cover.c
typedef struct Cover {
  size_t lines;
  const size_t *counts;  // how many values each line has, at least 1
  size_t widest, total;  // total: of all combinations, capped
  bool pairwise;
  bool *open;  // pairs still to be seen
  size_t left, given;
} Cover;
void cover_start(Cover *c, const size_t *counts, size_t lines, bool all);
bool cover_next(Cover *c, size_t *choice);  // false: no more
void cover_end(Cover *c);

// ---- table.c
// tuned: NULL, or whose record's params the kernel has.
void table_head(const Session *s, const Data *d, const char *case_name, const Tuned *tuned);
void table_json(Json *j, const schedc_error *errors, size_t n);
void table_errors(const schedc_error *errors, size_t n);
const char *table_verdict(const schedc_error *e);  // "PASS", "FAIL" or "UNPROVEN"

// Is an output right, as far as a comparison can say? On the first of the kinds of inputs asked for
// it has to prove something. The others are chosen to be difficult: there an output may vanish (a
// saturated softmax has no gradient), and the errors that rounding makes remain.
bool table_right(const Args *args, InputKind kind, const schedc_error *e);

// ---- progress.c: a line on the terminal for what takes longer than a second.
typedef struct Progress {
  const char *what;
  double start, shown;
  bool terminal;
} Progress;
void progress_start(Progress *p, const char *what);
int progress_report(void *progress, double done);  // a schedc_progress
void progress_end(Progress *p);

// The same for a call that reports nothing meanwhile: a thread shows the seconds that have gone by.
typedef struct Ticker {
  Progress progress;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t stopped;
  bool runs, stop;
} Ticker;
void ticker_start(Ticker *t, const char *what);
void ticker_end(Ticker *t);
double seconds(void);

#endif
