/* schedc.h - the public interface of libschedc: a compiler and interpreter for schedules.
 *
 * One header, long as it is: a program has one to include, and a reader one to look things up in.
 *
 * In the order in which it is used:
 * open a context -> parse a source -> look at its kernels -> instantiate one (its parameters fixed,
 * everything checked) -> emit text, or run it on the CPU, or evaluate its specification; or build
 * it, and run it on a GPU: on tensors in host memory (schedc_gpu), or, for programs that have
 * theirs on the GPU, by load and launch. The lines under `Example` are parts of one program, which
 * tests/interface.py compiles and runs.
 *
 * What follows holds of every function whose own comment does not say otherwise.
 *
 * Threads. A context is used by one thread at a time. Sources and kernels are immutable once made
 * and may be used by any number of threads, each with a context of its own; they may outlive the
 * context that made them. The library has no global state; it never exits, aborts, prints or
 * changes the locale, signals or working directory of its caller. A call needs 128 KB of stack at
 * most; those that build, or use a GPU, call NVRTC or the driver, which take the megabytes that
 * threads usually have for granted.
 *
 * Units. Sizes are in bytes, extents and strides of tensors in elements; names say others (_ms,
 * _mhz). Texts are UTF-8 and end with a NUL.
 *
 * Ownership. What a function returns through its first parameter belongs to the caller, who gives
 * it back with the matching close/free call; each accepts NULL. Strings and arrays inside info
 * structs belong to the object that they describe and live as long as it. What is passed in is
 * copied, or used during the call alone, where nothing else is said.
 *
 * Errors. Functions return a status. SCHEDC_EINPUT: the input is at fault, and the context's sink
 * has been handed one or more diagnostics. SCHEDC_EARG: the call is (NULL where something is
 * needed, an index too large), and nothing was done. SCHEDC_ENOMEM: the allocator had no more; what
 * was made on the way is given back. SCHEDC_ELIMIT: a limit of the library's. On any error the out
 * parameter is NULL. Functions that count or look up return 0 or NULL for what is not there, NULL
 * itself among it.
 *
 * Environment. NVRTC and the CUDA driver are opened when they are needed: the libraries that
 * SCHEDC_NVRTC and SCHEDC_DRIVER name, else those that the system finds. libschedc_model.so, named
 * by both, is a model of a GPU on the CPU, for tests without one (model/README.md, SCHEDC_MODEL).
 * Machine code is cached in the folder SCHEDC_CACHE, up to SCHEDC_CACHE_SIZE bytes. Programs that
 * run with more privileges than their user ignore all of these.
 *
 * Versions. Structs with a `size` member are set up with the matching SCHEDC_*_INIT; members are
 * only ever added at the end. An array of them (schedc_error, schedc_fills, schedc_gpu_job) steps
 * by the size of its first. The others never change, because callers write them member by member,
 * in arrays: schedc_tensor, schedc_scalar, schedc_param, schedc_dim, schedc_note, schedc_range,
 * schedc_allocator; what they lack, another function or struct will say. Before 1.0 a new minor
 * version may change the rest: CHANGES.md says what, and how a program is moved.
 */
#ifndef SCHEDC_H
#define SCHEDC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SCHEDC_VERSION_MAJOR 0
#define SCHEDC_VERSION_MINOR 2
#define SCHEDC_VERSION_PATCH 0

#if defined(__GNUC__)
#define SCHEDC_API __attribute__((visibility("default")))
#else
#define SCHEDC_API
#endif

/* ---- status -------------------------------------------------------------------------- */

typedef enum schedc_status {
  SCHEDC_OK = 0,
  SCHEDC_EINPUT = 1, /* the schedule, a parameter or a tensor is at fault: diagnostics */
  SCHEDC_EFAULT = 2, /* a run found a race, a deadlock or another fault; see the diagnostics */
  SCHEDC_ENOMEM = 3,
  SCHEDC_ELIMIT = 4,  /* a limit was passed: text of 2 GiB, expansion budget, step budget, … */
  SCHEDC_EIO = 5,     /* a file could not be read or written, or is not what it should be */
  SCHEDC_EARG = 6,    /* the call is wrong: NULL, an unknown stage, an index too large */
  SCHEDC_ECANCEL = 7, /* the progress callback asked to stop */
  SCHEDC_EUNAVAIL = 8 /* not available on this machine: no NVRTC, no driver, no GPU */
} schedc_status;

/* A name such as "SCHEDC_EINPUT", and a sentence. Never NULL; static. */
SCHEDC_API const char *schedc_status_name(schedc_status status);
SCHEDC_API const char *schedc_status_text(schedc_status status);

/* "0.2.0" of the library that is linked. Static. */
SCHEDC_API const char *schedc_version(void);

/* ---- diagnostics --------------------------------------------------------------------- */

typedef enum schedc_severity { SCHEDC_ERROR = 0, SCHEDC_WARNING = 1 } schedc_severity;

/* A range of a source text: offset and length in bytes; lines and columns from 1, columns in bytes,
 * the end exclusive. */
typedef struct schedc_range {
  uint32_t offset, length;
  uint32_t line, column, end_line, end_column;
} schedc_range;

/* Another place that a report speaks of. */
typedef struct schedc_note {
  schedc_range where;
  const char *text;
} schedc_note;

/* One report. Valid only during the callback. */
typedef struct schedc_diagnostic {
  size_t size;
  schedc_severity severity;
  const char *code;         /* stable, such as "R3.release"; schedc_explain() knows it */
  const char *file;         /* the name given to schedc_parse, or the path of a file */
  schedc_range where;       /* of a file that cannot be read, or is no schedule: its beginning */
  const char *text;         /* one sentence */
  const char *help;         /* what to do, or NULL */
  const schedc_note *notes; /* the other ends of the conflict */
  size_t note_count;
  const char *rendered; /* the whole report as the command line shows it, source lines and carets */
} schedc_diagnostic;

/* Called by the thread that called the library, before that call returns. It may call the library,
 * but not with the same context. */
typedef void (*schedc_sink)(void *user, const schedc_diagnostic *diagnostic);

/* Every code with a summary: index from 0; NULL past the end, or for an unknown code. Static. */
SCHEDC_API const char *schedc_code_at(size_t index);
SCHEDC_API const char *schedc_code_summary(const char *code);
/* A page of explanation with an example, or NULL for an unknown code. Static. */
SCHEDC_API const char *schedc_explain(const char *code);

/* Writers get text, or bytes, in pieces, by the thread that called the library; a nonzero return
 * stops the call with SCHEDC_EIO.
 *
 * Example:
 *
 *     static int to_file(void *file, const char *bytes, size_t length) {
 *       return fwrite(bytes, 1, length, (FILE *)file) != length;
 *     }
 *     static void to_stderr(void *user, const schedc_diagnostic *diagnostic) {
 *       (void)user;
 *       fputs(diagnostic->rendered, stderr);
 *     }
 */
typedef int (*schedc_writer)(void *user, const char *bytes, size_t length);

/* One diagnostic as a JSON object (keys: severity, code, file, range, text, help, notes), on one
 * line and without a newline after it. */
SCHEDC_API schedc_status schedc_write_json(const schedc_diagnostic *diagnostic,
                                           schedc_writer writer, void *user);

/* A SARIF 2.1.0 log: the head (with every code as a rule), each result (`first`: nonzero for the
 * first), the tail. Notes become related locations and a code flow that ends at the report. */
SCHEDC_API schedc_status schedc_sarif_begin(schedc_writer writer, void *user);
SCHEDC_API schedc_status schedc_sarif_result(const schedc_diagnostic *diagnostic, int first,
                                             schedc_writer writer, void *user);
SCHEDC_API schedc_status schedc_sarif_end(schedc_writer writer, void *user);

/* ---- context ------------------------------------------------------------------------- */

/* `alloc` returns memory aligned to 16 bytes, or NULL; `free` gets what it returned, never NULL.
 * Both are called by the thread that called the library, not by worker threads of schedc_run_cpu.
 * Contexts of several threads may share an allocator that several threads may call. `user` must
 * live until the context is closed and what was made with it is freed, by whichever thread. */
typedef struct schedc_allocator {
  void *(*alloc)(void *user, size_t bytes);
  void (*free)(void *user, void *block);
  void *user;
} schedc_allocator;

typedef struct schedc_options {
  size_t size;
  const schedc_allocator *allocator; /* copied; NULL: malloc and free */
  schedc_sink sink;                  /* NULL: diagnostics are dropped */
  void *sink_user;
  int unverified; /* what is rejected because it may race or hang (R3.release, R5.agree,
                     R6.deadlock, R6.dealt, R10.race), or because it seems not to be what was
                     checked (G.ptx), is a warning, so that it can be built and run */
} schedc_options;
#define SCHEDC_OPTIONS_INIT \
  { sizeof(schedc_options), 0, 0, 0, 0 }

/* A context: an allocator and a sink. options: NULL, or copied. What was made with a context may
 * outlive it, but for a schedc_gpu.
 *
 * Example:
 *
 *     schedc_context *context;
 *     schedc_options options = SCHEDC_OPTIONS_INIT;
 *     options.sink = to_stderr;
 *     schedc_status status = schedc_open(&context, &options);
 */
typedef struct schedc_context schedc_context;
SCHEDC_API schedc_status schedc_open(schedc_context **out, const schedc_options *options);
SCHEDC_API void schedc_close(schedc_context *context);

/* ---- sources ------------------------------------------------------------------------- */

/* A parsed text: counted, so that it is gone when it and the last kernel made of it are freed. */
typedef struct schedc_source schedc_source;

/* Parses `length` bytes of .sched text, fewer than 2^31. `name` is what diagnostics call it. Both
 * are copied. SCHEDC_EINPUT: errors of syntax, up to 20 of which are reported. */
SCHEDC_API schedc_status schedc_parse(schedc_source **out, schedc_context *context,
                                      const char *name, const char *text, size_t length);
/* … and those of a file, of at most 64 MiB; diagnostics call it by its path, which is copied.
 * SCHEDC_EIO: it cannot be read, or is longer; a diagnostic says why (F.read). */
SCHEDC_API schedc_status schedc_parse_file(schedc_source **out, schedc_context *context,
                                           const char *path);
SCHEDC_API void schedc_source_free(schedc_source *source);

/* The text that was parsed, and its length in bytes (NULL: not wanted); a NUL follows. It is the
 * source's. NULL: there is no source. */
SCHEDC_API const char *schedc_source_text(const schedc_source *source, size_t *length);

/* The kernels and sequences of a source, in order of appearance: how many there are, what one is,
 * and the names of its cases, which belong to the source. */
typedef struct schedc_unit_info {
  size_t size;
  const char *name;
  int is_sequence;
  size_t param_count, case_count;
} schedc_unit_info;
#define SCHEDC_UNIT_INFO_INIT \
  { sizeof(schedc_unit_info), 0, 0, 0, 0 }
SCHEDC_API size_t schedc_unit_count(const schedc_source *source);
SCHEDC_API schedc_status schedc_unit(const schedc_source *source, size_t index,
                                     schedc_unit_info *info);
SCHEDC_API schedc_status schedc_case_name(const schedc_source *source, size_t unit, size_t index,
                                          const char **name);

/* The source in canonical form, comments kept. Formatting twice changes nothing. */
SCHEDC_API schedc_status schedc_format(schedc_context *context, const schedc_source *source,
                                       schedc_writer writer, void *user);

/* ---- kernels ------------------------------------------------------------------------- */

/* A parameter by name, with its value as text: "128", "true", "f16", "0.5". */
typedef struct schedc_param {
  const char *name;
  const char *value;
} schedc_param;

/* A kernel or sequence under some parameters, checked. */
typedef struct schedc_kernel schedc_kernel;

/* Fixes the parameters (given ones over the case's over the defaults), lowers and checks.
 * unit: a kernel's or sequence's name; NULL: the last sequence, or else the last kernel.
 * case_name: whose parameters apply; NULL: none. The source may be freed before the kernel. Of a
 * name given twice the last value counts. Values have no spaces, and numbers are decimal: neither
 * " 128" nor "0x80" is one (P.value).
 *
 * Example:
 *
 *     schedc_source *source;
 *     schedc_kernel *kernel = NULL;
 *     const schedc_param params[] = {{"BM", "128"}, {"stages", "2"}};
 *     status = schedc_parse_file(&source, context, "schedules/copy.sched");
 *     if (!status)
 *       status = schedc_instantiate(&kernel, context, source, "copy", NULL, params, 2);
 *     schedc_source_free(source);
 */
SCHEDC_API schedc_status schedc_instantiate(schedc_kernel **out, schedc_context *context,
                                            const schedc_source *source, const char *unit,
                                            const char *case_name, const schedc_param *params,
                                            size_t param_count);
SCHEDC_API void schedc_kernel_free(schedc_kernel *kernel);

/* Stages for schedc_emit and --emit in pipeline order: "ast", "lower", …; NULL past the end. And
 * what one makes; NULL for an unknown stage. Static. */
SCHEDC_API const char *schedc_stage_at(size_t index);
SCHEDC_API const char *schedc_stage_summary(const char *stage);

/* Writes what the compiler knows after a stage. (The stages run again from the source's tree;
 * errors of earlier ones are reported as by schedc_instantiate.) "cubin" needs NVRTC, as
 * schedc_build does. */
SCHEDC_API schedc_status schedc_emit(schedc_context *context, const schedc_source *source,
                                     const char *unit, const char *case_name,
                                     const schedc_param *params, size_t param_count,
                                     const char *stage, schedc_writer writer, void *user);

/* Element types: their names ("f16"), static, and the bytes of an element; NULL and 0 for a value
 * that is none of these. */
typedef enum schedc_type {
  SCHEDC_F32,
  SCHEDC_F16,
  SCHEDC_BF16,
  SCHEDC_E4M3,
  SCHEDC_E5M2,
  SCHEDC_I32
} schedc_type;
SCHEDC_API const char *schedc_type_name(schedc_type type);
SCHEDC_API size_t schedc_type_size(schedc_type type);

enum { SCHEDC_MAX_RANK = 6 };
enum { SCHEDC_IN = 1, SCHEDC_OUT = 2, SCHEDC_INOUT = 3 };

/* A tensor that a kernel takes. Dimensions as text: "B", "128", "B + 1". A kernel's name, and its
 * tensors, in order of declaration: how many there are, and what one is. */
typedef struct schedc_tensor_info {
  size_t size;
  const char *name;
  schedc_type type;
  int direction; /* SCHEDC_IN, SCHEDC_OUT or SCHEDC_INOUT */
  size_t rank;
  const char *dims[SCHEDC_MAX_RANK];
  int is_deterministic; /* nonzero: no sums in arbitrary order are in it, so always the same bits */
} schedc_tensor_info;
#define SCHEDC_TENSOR_INFO_INIT \
  { sizeof(schedc_tensor_info), 0, SCHEDC_F32, 0, 0, {0}, 0 }
SCHEDC_API const char *schedc_kernel_name(const schedc_kernel *kernel);
SCHEDC_API size_t schedc_tensor_count(const schedc_kernel *kernel);
SCHEDC_API schedc_status schedc_tensor_at(const schedc_kernel *kernel, size_t index,
                                          schedc_tensor_info *info);

/* Why a launch takes no tensor, scalar or dimension of that name, though the schedule has one: "the
 * tensor 'W' is not there: its guard 'narrow' is false". NULL if no guard leaves one out, or if an
 * argument is NULL. The text belongs to the kernel, and lives as long as it. */
SCHEDC_API const char *schedc_why_absent(const schedc_kernel *kernel, const char *name);

/* A scalar that a kernel takes; how many there are, in order of declaration, and what one is. */
typedef struct schedc_scalar_info {
  size_t size;
  const char *name;
  schedc_type type; /* SCHEDC_F32 or SCHEDC_I32 */
  int has_default;
} schedc_scalar_info;
#define SCHEDC_SCALAR_INFO_INIT \
  { sizeof(schedc_scalar_info), 0, SCHEDC_F32, 0 }
SCHEDC_API size_t schedc_scalar_count(const schedc_kernel *kernel);
SCHEDC_API schedc_status schedc_scalar_at(const schedc_kernel *kernel, size_t index,
                                          schedc_scalar_info *info);

/* What the values of a parameter are. */
typedef enum schedc_value_type {
  SCHEDC_VALUE_INTEGER, /* 64 bits: "128" */
  SCHEDC_VALUE_REAL,    /* float64: "0.5" */
  SCHEDC_VALUE_TRUTH,   /* "true", "false" */
  SCHEDC_VALUE_ELEMENT  /* an element type, as schedc_type_name writes it: "f16" */
} schedc_value_type;

/* What a param is for: the problem's say what is computed, as the types, shapes and guards of
 * tensors, scalars or the specification depend on them. */
typedef enum schedc_param_kind { SCHEDC_PROBLEM, SCHEDC_TUNING } schedc_param_kind;

/* A parameter as instantiated, and its tuning domain (may be empty), as text in order of
 * declaration. */
typedef struct schedc_param_info {
  size_t size;
  const char *name;
  schedc_value_type type;
  const char *value;
  size_t domain_count;
  const char *const *domain;
  double least, most; /* of a domain of numbers; NaN: it is empty, or not of numbers */
  schedc_param_kind kind;
} schedc_param_info;
#define SCHEDC_PARAM_INFO_INIT \
  { sizeof(schedc_param_info), 0, SCHEDC_VALUE_INTEGER, 0, 0, 0, 0, 0, SCHEDC_PROBLEM }
SCHEDC_API size_t schedc_param_count(const schedc_kernel *kernel);
SCHEDC_API schedc_status schedc_param_at(const schedc_kernel *kernel, size_t index,
                                         schedc_param_info *info);

/* The launch dimensions: those that tensors' shapes bind. NULL past the end. */
SCHEDC_API size_t schedc_dim_count(const schedc_kernel *kernel);
SCHEDC_API const char *schedc_dim_at(const schedc_kernel *kernel, size_t index);

/* A launch dimension with a value: by name, in any order. */
typedef struct schedc_dim {
  const char *name;
  int64_t value;
} schedc_dim;

/* The shape of tensor `index` under some dimensions, and i32 scalars, which stand among them by
 * name: as many extents as it has dimensions, of the SCHEDC_MAX_RANK for which `shape` has room.
 * SCHEDC_EARG: it depends on others, overflows, or has a negative extent. */
SCHEDC_API schedc_status schedc_tensor_shape(schedc_context *context, const schedc_kernel *kernel,
                                             size_t index, const schedc_dim *dims, size_t dim_count,
                                             int64_t *shape);

/* What a case of the kernel says: index `kase` counts its cases, `index` the lines of one. */
typedef enum schedc_bind_kind {
  SCHEDC_BIND_DIM,
  SCHEDC_BIND_SCALAR,
  SCHEDC_BIND_TENSOR,
  SCHEDC_BIND_PARAM,
  SCHEDC_BIND_ABSENT /* not there under these parameters; a case has the same lines under all */
} schedc_bind_kind;
typedef struct schedc_bind_info {
  size_t size;
  const char *name;
  schedc_bind_kind kind;
  int is_choice; /* `in { … }`: any one of the values; else all: one, or a tensor's elements */
  size_t count;
  const double *values;     /* NaN for element types */
  const char *const *texts; /* the same, as text */
} schedc_bind_info;
#define SCHEDC_BIND_INFO_INIT \
  { sizeof(schedc_bind_info), 0, SCHEDC_BIND_DIM, 0, 0, 0, 0 }
SCHEDC_API size_t schedc_kernel_case_count(const schedc_kernel *kernel);
SCHEDC_API const char *schedc_kernel_case_name(const schedc_kernel *kernel, size_t kase);
SCHEDC_API size_t schedc_bind_count(const schedc_kernel *kernel, size_t kase);
SCHEDC_API schedc_status schedc_bind_at(const schedc_kernel *kernel, size_t kase, size_t index,
                                        schedc_bind_info *info);

/* The kernels that a sequence is `given`, as one that takes the same tensors: run before it, it
 * makes those of the sequence's inputs that its caller does not bring. It has no specification, and
 * the sequence must outlive it. SCHEDC_EARG: the sequence is given none. */
SCHEDC_API schedc_status schedc_given(schedc_kernel **out, schedc_context *context,
                                      const schedc_kernel *sequence);

/* Nonzero if every run gives the same bits in all tensors: a turn orders all that add to an
 * element. 0 also where that is not plain to see. */
SCHEDC_API int schedc_is_deterministic(const schedc_kernel *kernel);

/* Writes what the compiler worked out: parameters, tensors, roles with registers, shared-memory
 * map, barriers, operations and bytes of one tile (trip counts as numbers where `dims` says enough,
 * else as expressions), what has been checked, and what only running shows. Dimensions that the
 * kernel does not have are overlooked. */
typedef enum schedc_format_kind { SCHEDC_TEXT, SCHEDC_JSON } schedc_format_kind;
SCHEDC_API schedc_status schedc_describe(schedc_context *context, const schedc_kernel *kernel,
                                         const schedc_dim *dims, size_t dim_count,
                                         schedc_format_kind kind, schedc_writer writer, void *user);

/* How far a kernel is known to be free of deadlocks and races between its roles; of a sequence, the
 * worst of its kernels. */
typedef enum schedc_verdict {
  SCHEDC_PROVED,     /* for all dimensions, under the certificate's assumptions */
  SCHEDC_CHECKED,    /* for all dimensions up to a bound */
  SCHEDC_INCOMPLETE, /* not known: a warning says why (V.open) */
  SCHEDC_REJECTED    /* it is not: a diagnostic is a witness */
} schedc_verdict;
/* "proved for all trip counts", … Never NULL; static. */
SCHEDC_API const char *schedc_verdict_text(schedc_verdict verdict);

/* Proves what schedc_instantiate does not: what concerns all roles together, for every trip count.
 * schedc_build and schedc_load do so, too, and refuse what is rejected. SCHEDC_EINPUT: the kernel
 * is rejected. verdict: NULL, or gets the verdict. */
SCHEDC_API schedc_status schedc_verify(schedc_context *context, const schedc_kernel *kernel,
                                       schedc_verdict *verdict);

/* ---- the space of a unit's params ----------------------------------------------------------
 *
 * What a tuner may choose: the params for tuning that have a domain span the space.
 *
 * Threads. A space is immutable once made: any number of threads may walk and probe it, each with a
 * context and a cursor of its own. It outlives the context that made it, and keeps its source. */

typedef struct schedc_space schedc_space;

/* unit, case_name: as for schedc_instantiate. params: fixed values. Params of the problem that are
 * not fixed have the case's value, or else their default; with the value NULL one goes through its
 * domain as well. No default needs to be legal. SCHEDC_EINPUT: there is no such unit, case or
 * param, a value does not fit, or a domain is wrong; diagnostics say which. */
SCHEDC_API schedc_status schedc_space_new(schedc_space **out, schedc_context *context,
                                          const schedc_source *source, const char *unit,
                                          const char *case_name, const schedc_param *params,
                                          size_t param_count);
SCHEDC_API void schedc_space_free(schedc_space *space);

/* A param of the unit (of a sequence: of any of its kernels), in order of declaration. */
typedef struct schedc_space_param_info {
  size_t size;
  const char *name;
  schedc_param_kind kind;
  schedc_value_type type;
  int varies;        /* it goes through its domain: it is part of points */
  const char *value; /* fixed, else the case's, else the default; NULL: its expression fails, with
                        these values of the params above it */
  /* What the source has between the braces; NULL: no domain. As values, each once, in order; none
   * (0) if it does not vary, or if they depend on other params that vary. */
  const char *written;
  size_t domain_count;
  const char *const *domain;
} schedc_space_param_info;
#define SCHEDC_SPACE_PARAM_INFO_INIT \
  { sizeof(schedc_space_param_info), 0, SCHEDC_PROBLEM, SCHEDC_VALUE_INTEGER, 0, 0, 0, 0, 0 }
SCHEDC_API size_t schedc_space_param_count(const schedc_space *space);
SCHEDC_API schedc_status schedc_space_param_at(const schedc_space *space, size_t index,
                                               schedc_space_param_info *info);

/* How many points the domains have, before any `require` is asked. SCHEDC_ELIMIT: 2^64 or more. */
SCHEDC_API schedc_status schedc_space_count(const schedc_space *space, schedc_context *context,
                                            uint64_t *points);

enum { SCHEDC_MAX_VARIED = 32 };

/* A point: the params that vary, in order of declaration. Names and values live as long as the
 * space; the point is a plain value of the caller's. */
typedef struct schedc_point {
  size_t size;
  uint64_t index; /* its number in the space, the same on every machine */
  size_t param_count;
  schedc_param params[SCHEDC_MAX_VARIED];
} schedc_point;
#define SCHEDC_POINT_INIT         \
  {                               \
    sizeof(schedc_point), 0, 0, { \
      { 0, 0 }                    \
    }                             \
  }

/* Where a walk is: a plain value, which may be copied to come back. */
typedef struct schedc_cursor {
  size_t size;
  uint64_t refused; /* points passed by so far because a `require` over params does not hold */
  uint64_t index;   /* of the last point */
  int begun;
  uint32_t choice[SCHEDC_MAX_VARIED];
} schedc_cursor;
#define SCHEDC_CURSOR_INIT                \
  {                                       \
    sizeof(schedc_cursor), 0, 0, 0, { 0 } \
  }

/* The next point: in order of the domains, the last param fastest. Points that a `require` over
 * params refuses are left out, all that share the params that it speaks of at once; those that are
 * left may still be refused for what only the whole kernel shows. Numbers count all points of the
 * domains. SCHEDC_EARG: that was the last.
 *
 *   schedc_space *space;
 *   schedc_param d = {"D", "128"};
 *   schedc_space_new(&space, context, source, NULL, NULL, &d, 1);
 *   schedc_cursor cursor = SCHEDC_CURSOR_INIT;
 *   schedc_point point = SCHEDC_POINT_INIT;
 *   schedc_probe probe = SCHEDC_PROBE_INIT;
 *   while (!schedc_space_next(space, context, &cursor, &point)) {
 *     if (schedc_space_probe(space, context, &point, &probe) || !probe.legal) continue;
 *     schedc_kernel *kernel;
 *     schedc_space_instantiate(&kernel, context, space, &point);
 *     use(kernel, &point);
 *     schedc_kernel_free(kernel);
 *   }
 *   schedc_space_free(space);
 */
SCHEDC_API schedc_status schedc_space_next(const schedc_space *space, schedc_context *context,
                                           schedc_cursor *cursor, schedc_point *point);

/* What is known of a point without a kernel and without diagnostics. */
typedef struct schedc_probe {
  size_t size;
  int legal;           /* schedc_instantiate would make it a kernel */
  const char *refusal; /* else a reason, as code: "R8.smem", "P.require"; static */
  /* Of what is legal, the program: two points (of the same unit) with the same meaning make the
   * same code, and of those that make the same code nearly all have the same meaning. */
  uint64_t meaning[2];
} schedc_probe;
#define SCHEDC_PROBE_INIT                \
  {                                      \
    sizeof(schedc_probe), 0, 0, { 0, 0 } \
  }

/* Costs a fraction of a millisecond, least where a `require`, shared memory or registers refuse the
 * point. The point's params may be written by hand: names and values, in any order. One that lacks
 * a param has its usual value there. SCHEDC_OK whether it is legal or not. */
SCHEDC_API schedc_status schedc_space_probe(const schedc_space *space, schedc_context *context,
                                            const schedc_point *point, schedc_probe *probe);

/* schedc_instantiate with the space's unit, case and fixed params, and the point's. */
SCHEDC_API schedc_status schedc_space_instantiate(schedc_kernel **out, schedc_context *context,
                                                  const schedc_space *space,
                                                  const schedc_point *point);

/* ---- measured points, kept ---------------------------------------------------------------------
 *
 * A store is a file with a line of JSON for each measured point (runtime/tune/README.md says which
 * members a line has). Stores are merged by putting one behind the other. An open store is used by
 * one thread at a time; several processes may append to one file. */

typedef struct schedc_store schedc_store;

/* A measured point: what was measured, in which surroundings, and what came out. Texts and arrays
 * of a record that the library hands out belong to the store. */
typedef struct schedc_store_record {
  size_t size;
  const char *schedule;        /* schedc_store_schedule */
  const char *unit;            /* the kernel or sequence */
  const schedc_param *problem; /* its params of the problem, each once, in any order */
  size_t problem_count;
  const schedc_dim *dims; /* its dimensions, each once, in any order */
  size_t dim_count;
  const char *gpu;            /* as schedc_gpu_info names it */
  unsigned driver, nvrtc;     /* versions of CUDA: 13000 */
  const char *schedc;         /* schedc_version */
  const schedc_param *tuning; /* the params for tuning */
  size_t tuning_count;
  const char *status; /* "verified", "measured" (but not compared with the specification), or the
                         code of what went wrong */
  const char *inputs; /* the kinds of inputs on which it was verified: "normal,outliers" or "" */
  double cold_ms, sustained_ms; /* as of schedc_cuda_times; 0: not measured */
  double noise;                 /* how uncertain sustained_ms is beside reference_ms: 0.01 is 1 % */
  double reference_ms;          /* of the defaults in the same run, sustained; 0: they were not */
  uint64_t launches;            /* that were measured, at least */
  unsigned rank;                /* in its run: 1 is the best; 0: it was not in the finals */
  const char *date;             /* UTC: "2026-11-23T10:00:00Z" */
  unsigned line; /* where it stands in the file, from 1; 0: it was appended, or is not of a store */
  const char *measured; /* the kinds of inputs on which it was measured: "normal,large"; "": it was
                           not, or an earlier version of the library wrote the line; NULL: "" */
} schedc_store_record;
#define SCHEDC_STORE_RECORD_INIT                                                                   \
  {                                                                                                \
    sizeof(schedc_store_record), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
        0                                                                                          \
  }

/* Reads a store, of at most 64 MiB; one that is not there is empty. SCHEDC_EIO: the file cannot be
 * read (F.read). SCHEDC_EINPUT: it is no store, or a line is wrong; a diagnostic says which
 * (F.store). A line that was not written to its end is passed by, with a warning. */
SCHEDC_API schedc_status schedc_store_open(schedc_store **out, schedc_context *context,
                                           const char *path);
SCHEDC_API void schedc_store_close(schedc_store *store);

/* The records in the order of the file, and then of being appended. */
SCHEDC_API size_t schedc_store_count(const schedc_store *store);
SCHEDC_API schedc_status schedc_store_at(const schedc_store *store, size_t index,
                                         schedc_store_record *record);

/* Writes a line at the end of the file, in one write, and makes the file if it is not there.
 * The texts are the caller's to get right: a schedule that is no hash of schedc_store_schedule is
 * never found, and a date of another form is compared as text all the same. SCHEDC_EARG: the record
 * lacks a text, or a number is negative or not finite. SCHEDC_EIO: it could not be written whole;
 * F.store says why. */
SCHEDC_API schedc_status schedc_store_append(schedc_context *context, schedc_store *store,
                                             const schedc_store_record *record);

/* Of which schedule a measurement is: 32 hexadecimal digits of the unit, and of all kernels of a
 * sequence, without comments, layout and cases. unit: as for schedc_instantiate; *name (NULL: not
 * wanted) becomes its name, the source's. */
SCHEDC_API schedc_status schedc_store_schedule(schedc_context *context, const schedc_source *source,
                                               const char *unit, char hash[33], const char **name);

/* The best verified record for a key: schedule, unit, problem and dims; gpu, or NULL for any;
 * tuning: params whose values the caller wants. The same schedule, unit, params of the problem and
 * GPU are needed, and of each dimension the bucket (the power of two that is nearest) may differ,
 * by at most three doublings of all dimensions together. Of those that fit: the fewest doublings,
 * in the same buckets rather the same dimensions, then the lowest rank, the newest date, the last
 * line. SCHEDC_EARG: none fits, or the key lacks something. */
SCHEDC_API schedc_status schedc_store_find(const schedc_store *store,
                                           const schedc_store_record *key,
                                           schedc_store_record *record);

/* The file in which a folder of tables has the store of a GPU, as schedc_gpu_info names it: that of
 * "NVIDIA H200" is "nvidia-h200.jsonl". Returns the length; what has no room is cut off. */
SCHEDC_API size_t schedc_table_name(const char *gpu, char *name, size_t room);

/* schedc_instantiate with the params for tuning of the record that schedc_store_find finds, over
 * the case's; else, or without a store, as schedc_instantiate. A param for tuning that is given
 * must have the same value in the record: what is run was measured as it is. gpu: as of a key. used
 * (NULL: not wanted): the record; its schedule is NULL where there was none. */
SCHEDC_API schedc_status schedc_instantiate_tuned(schedc_kernel **out, schedc_context *context,
                                                  const schedc_source *source, const char *unit,
                                                  const char *case_name, const schedc_param *params,
                                                  size_t param_count, const schedc_dim *dims,
                                                  size_t dim_count, const schedc_store *store,
                                                  const char *gpu, schedc_store_record *used);

/* The kernels that schedc_instantiate_tuned makes for all the dimensions that there are. Number 0
 * is the one without a store; each other is of a record that is taken for some dimensions, in the
 * order in which equally near ones are. */
typedef struct schedc_variants schedc_variants;
SCHEDC_API schedc_status schedc_variants_new(schedc_variants **out, schedc_context *context,
                                             const schedc_source *source, const char *unit,
                                             const char *case_name, const schedc_param *params,
                                             size_t param_count, const schedc_store *store,
                                             const char *gpu);
SCHEDC_API void schedc_variants_free(schedc_variants *variants);
SCHEDC_API size_t schedc_variant_count(const schedc_variants *variants);

/* Kernels of equal programs are one kernel. Kernel and record belong to the variants, texts and
 * arrays of the record to the store. */
typedef struct schedc_variant_info {
  size_t size;
  const schedc_kernel *kernel;
  const schedc_store_record *record; /* its schedule is NULL in number 0 */
} schedc_variant_info;
#define SCHEDC_VARIANT_INFO_INIT \
  { sizeof(schedc_variant_info), 0, 0 }
SCHEDC_API schedc_status schedc_variant_at(const schedc_variants *variants, size_t index,
                                           schedc_variant_info *info);

/* ---- tensors and scalars ---------------------------------------------------------------
 *
 * One rule says which tensor or scalar of a kernel is meant, in every function that takes them:
 * what has a name is the one of that name, wherever it stands; what has the name NULL is the one at
 * its own place, counted as schedc_tensor_at and schedc_scalar_at count. All tensors must be given;
 * a scalar with a default may be left out, or be NaN. SCHEDC_EINPUT: one is unknown (T.unknown),
 * given twice (T.twice) or missing (T.missing). */

/* A tensor in memory, the caller's: of the host, or, for launches, of the GPU. Strides in elements;
 * the last one is 1 (unless its extent is 1 or 0). Strides are not negative. Of an input they may
 * be 0; elements of an output do not share memory. Where the extent is 1 or 0 the stride does not
 * count. `data` is a multiple of the element's size, for launches also of 16 where the report says
 * so (T.align); it may be NULL where there are no elements. */
typedef struct schedc_tensor {
  const char *name; /* or NULL, as above */
  void *data;
  schedc_type type;
  size_t rank;
  int64_t shape[SCHEDC_MAX_RANK];
  int64_t strides[SCHEDC_MAX_RANK];
} schedc_tensor;

/* A scalar argument. */
typedef struct schedc_scalar {
  const char *name; /* or NULL, as above */
  double value;     /* i32: an integer in its range; f32: rounded to one; NaN: the default */
} schedc_scalar;

/* ---- elements, inputs, files -----------------------------------------------------------
 *
 * Of tensors in host memory. None of the functions without a context allocates memory; several
 * threads may call them, on different memory. */

/* n elements of a type, made of f32 or f64 and back. To a type: rounded once, to nearest, ties to
 * even; what is too large for f16 or bf16 is infinite, of e4m3 and e5m2 the largest finite value;
 * NaN stays NaN. To i32: the nearest integer in its range, NaN is 0. From i32: rounded to f32. The
 * arrays do not overlap. SCHEDC_EARG: an unknown type, NULL. */
SCHEDC_API schedc_status schedc_from_f32(schedc_type type, void *to, const float *from, size_t n);
SCHEDC_API schedc_status schedc_from_f64(schedc_type type, void *to, const double *from, size_t n);
SCHEDC_API schedc_status schedc_to_f32(schedc_type type, float *to, const void *from, size_t n);

/* The kinds of drawn inputs: "normal", "outliers", "spike" and others; index from 0, NULL past the
 * end. And what one is like; NULL: there is none of that name. Static. */
SCHEDC_API const char *schedc_input_at(size_t index);
SCHEDC_API const char *schedc_input_summary(const char *kind);

/* Fills a tensor with inputs of a kind; i32 gets integers from 0 to 15. What is drawn depends on
 * kind, seed, shape and type alone, on every machine; between the elements of a strided tensor
 * nothing is written. For the inputs of `schedc run --seed S`, tensor number i (as schedc_tensor_at
 * counts) takes the seed S * 1000 + i. Large tensors are filled by several threads. SCHEDC_EARG: an
 * unknown kind or type, a negative extent or stride, no data, or an address that is no multiple of
 * an element's size. */
SCHEDC_API schedc_status schedc_draw(const schedc_tensor *tensor, const char *kind, uint64_t seed);

/* The same for a tensor of a kernel, number `index` as schedc_tensor_at counts: of a tensor of i32
 * whose declaration says what its elements are (`in 0 .. n`, `rising`), such elements are drawn,
 * for these dimensions and scalars (those that are not given have their defaults). SCHEDC_EARG: as
 * schedc_draw; no such tensor, an unknown dimension. SCHEDC_EINPUT: an unknown scalar. */
SCHEDC_API schedc_status schedc_draw_input(schedc_context *context, const schedc_kernel *kernel,
                                           size_t index, const schedc_dim *dims, size_t dim_count,
                                           const schedc_scalar *scalars, size_t scalar_count,
                                           const schedc_tensor *tensor, const char *kind,
                                           uint64_t seed);

/* Fills a tensor with NaN (i32: INT32_MIN): what outputs are filled with before a run, so that
 * schedc_compare finds what has not been written. SCHEDC_EARG: as schedc_draw. */
SCHEDC_API schedc_status schedc_poison(const schedc_tensor *tensor);

/* A tensor in NumPy's format: a .npy file of version 1.0 to 3.0, in C order, of floats or integers
 * in this machine's byte order. It is read whole, as many bytes as its header says. SCHEDC_EIO,
 * with a diagnostic about the file: it cannot be read (F.read), or is not such a file (F.npy).
 * Immutable once it is open; any number of threads may read it. */
typedef struct schedc_npy schedc_npy;
SCHEDC_API schedc_status schedc_npy_open(schedc_npy **out, schedc_context *context,
                                         const char *path);
SCHEDC_API void schedc_npy_close(schedc_npy *npy);

typedef struct schedc_npy_info {
  size_t size;
  char kind;              /* of its elements: 'f', 'i' or 'u', as NumPy writes it, … */
  unsigned element_bytes; /* … and the bytes of one: 1, 2, 4 or 8 */
  size_t rank;
  int64_t shape[SCHEDC_MAX_RANK];
} schedc_npy_info;
#define SCHEDC_NPY_INFO_INIT                \
  {                                         \
    sizeof(schedc_npy_info), 0, 0, 0, { 0 } \
  }
SCHEDC_API schedc_status schedc_npy_get_info(const schedc_npy *npy, schedc_npy_info *info);

/* Copies what is in the file to a tensor of the same shape, whatever its strides. f32, f16 and i32
 * are stored as such, bf16 as 'u' of 2 bytes, e4m3 and e5m2 of 1 (their bits); 'f' of 8 bytes is
 * rounded to a tensor of f32, 'i' of 8 goes to one of i32 if all values are in range. SCHEDC_EIO:
 * it does not fit (F.npy); nothing is written then. */
SCHEDC_API schedc_status schedc_npy_read(schedc_context *context, const schedc_npy *npy,
                                         const schedc_tensor *tensor);

/* Writes a tensor as a .npy file, as schedc_npy_read has it. SCHEDC_EIO: the writer failed. */
SCHEDC_API schedc_status schedc_npy_write(const schedc_tensor *tensor, schedc_writer writer,
                                          void *user);

/* ---- running on the CPU -------------------------------------------------------------- */

/* When asynchronous work (copies, products, stores) takes place: as soon as it is issued, as late
 * as its waits allow, or at moments drawn from the seed; and CTAs that do not communicate in
 * another order each. A correct schedule gives the same bits under all, but for sums in no fixed
 * order. */
typedef enum schedc_policy { SCHEDC_EARLY, SCHEDC_LATE, SCHEDC_RANDOM } schedc_policy;

/* Called now and then by the thread that called the library, with the fraction done, 0 to 1.
 * Nonzero stops the call. Runs and comparisons call it several times a second, but a comparison not
 * while it copies its inputs (seconds for gigabytes), nor within one element of an output (a sum
 * over 10^8 elements takes seconds); others call it before each piece of their work. A short call
 * may never do so. Another thread stops a call in no other way than by this function: let it return
 * an atomic flag that the other thread sets. Like all callbacks here it returns: no C++ exception
 * may leave it, and no longjmp. */
typedef int (*schedc_progress)(void *user, double done);

typedef struct schedc_run_options {
  size_t size;
  schedc_policy policy;
  uint64_t seed;        /* of SCHEDC_RANDOM, and of the order in which roles run */
  unsigned threads;     /* worker threads; 0: one a core */
  unsigned sms;         /* multiprocessors that persistent grids see; 0: a small default */
  uint64_t step_budget; /* after about so many operations, of all tiles together, a run is given up
                           with SCHEDC_ELIMIT; 0: none. It is looked at now and then: a small run
                           may pass although it takes more */
  schedc_progress progress;
  void *progress_user;
} schedc_run_options;
#define SCHEDC_RUN_OPTIONS_INIT \
  { sizeof(schedc_run_options), SCHEDC_LATE, 0, 0, 0, 0, 0, 0 }

/* Interprets the kernel on the CPU, with real concurrency between its roles. Races, deadlocks and
 * reads in flight are reported with both source lines and the seed (SCHEDC_EFAULT); but not what
 * tensors do to each other that share memory. Before the run each output (not an inout) is filled
 * with NaN, so that what is never written shows. One that shares elements with another tensor is
 * refused (SCHEDC_EINPUT, T.overlap). Outputs are undefined after an error. options: NULL, or
 * copied. SCHEDC_ELIMIT: the step budget; SCHEDC_ECANCEL: the progress callback.
 *
 * Example:
 *
 *     enum { M = 100, N = 64 };
 *     static uint16_t x[M * N], y[M * N];
 *     const schedc_tensor tensors[] = {{"X", x, SCHEDC_F16, 2, {M, N}, {N, 1}},
 *                                      {"Y", y, SCHEDC_F16, 2, {M, N}, {N, 1}}};
 *     if (!status) status = schedc_draw(&tensors[0], "normal", 1);
 *     if (!status) status = schedc_run_cpu(context, kernel, tensors, 2, NULL, 0, NULL);
 */
SCHEDC_API schedc_status schedc_run_cpu(schedc_context *context, const schedc_kernel *kernel,
                                        const schedc_tensor *tensors, size_t tensor_count,
                                        const schedc_scalar *scalars, size_t scalar_count,
                                        const schedc_run_options *options);

/* How often a ring is filled in the tiles that are looked at, up to 64 of the grid. Of a tile that
 * takes more than 16384 operations the first are counted. */
typedef struct schedc_fills {
  size_t size;
  const char *kernel; /* whose ring it is: a sequence has those of all its kernels */
  const char *ring;
  unsigned stages;
  uint64_t least, most, all; /* in one of these tiles at least, and at most; in all of them */
  uint64_t tiles;            /* of the grid */
} schedc_fills;
#define SCHEDC_FILLS_INIT \
  { sizeof(schedc_fills), 0, 0, 0, 0, 0, 0, 0 }

/* Runs nothing: of the tensors, only elements are read that the kernel's bounds and conditions ask
 * for. `fills` has room for schedc_ring_count(kernel) entries, the first of which is set up with
 * SCHEDC_FILLS_INIT. */
SCHEDC_API size_t schedc_ring_count(const schedc_kernel *kernel);
SCHEDC_API schedc_status schedc_count_fills(schedc_context *context, const schedc_kernel *kernel,
                                            const schedc_tensor *tensors, size_t tensor_count,
                                            const schedc_scalar *scalars, size_t scalar_count,
                                            schedc_fills *fills);

/* What one launch takes. */
typedef struct schedc_work {
  size_t size;
  double said;     /* operations that a user would count: the kernel's `work`; 0: it has none */
  double products; /* operations of its products, as scheduled: with padding and what is masked */
  double tensor_cycles; /* cycles that these take at least, on one multiprocessor's tensor cores */
  double bytes;         /* of the tensors that it reads and writes, each once */
} schedc_work;
#define SCHEDC_WORK_INIT \
  { sizeof(schedc_work), 0, 0, 0, 0 }
SCHEDC_API schedc_status schedc_count_work(schedc_context *context, const schedc_kernel *kernel,
                                           const schedc_tensor *tensors, size_t tensor_count,
                                           const schedc_scalar *scalars, size_t scalar_count,
                                           schedc_work *work);

/* Nonzero if CTAs of some kernel take several tiles, as many as there are multiprocessors for. */
SCHEDC_API int schedc_is_persistent(const schedc_kernel *kernel);

/* ---- the cost model ------------------------------------------------------------------------
 *
 * How long a launch would take, without a GPU: a discrete-event timeline of one multiprocessor's
 * roles (or of those of a cluster), and from it the launch. */

/* A GPU, as the model knows it. Rates are of one multiprocessor and cycle, where nothing else is
 * said; latencies in its cycles. */
typedef struct schedc_machine {
  size_t size;
  unsigned multiprocessors;
  unsigned registers, shared_memory, threads; /* of a multiprocessor; bytes of shared memory */
  double clock_mhz;                           /* of the multiprocessors, at most */
  double tensor_rate;  /* multiply-adds of 16-bit factors; twice as many of 8-bit ones */
  double pipe_lanes;   /* f32 operations */
  double alu_lanes;    /* comparisons, selections, maxima, conversions */
  double mufu_lanes;   /* exponentials, logarithms, reciprocals */
  double warp_rate;    /* part of these rates that a warp reaches by itself: it issues in order */
  double tensor_ports; /* part of the registers' ports that busy tensor cores take */
  double shared_bytes; /* to and from shared memory */
  double link_bytes;   /* from the L2 cache */
  double add_bytes;    /* of sums into tensors */
  double l2_gbs;       /* GB/s of the L2 cache, for all multiprocessors together */
  double memory_gbs;   /* GB/s of the memory behind it */

  double memory_latency;  /* from a copy's issue to its first bytes, out of the L2 cache */
  double shared_latency;  /* of a load of shared memory, a shuffle */
  double barrier_latency; /* of a barrier of four warps */
  double fence_latency;   /* of a fence between threads and engines */
  double cluster_latency; /* until an arrival is seen by another CTA of a cluster */
  double draw_latency;    /* of a dynamic grid's draw: an atomic addition, and the tile's place */
  double wgmma_queue;     /* instructions of a warpgroup that may wait for the tensor cores */
  double launch_us;       /* of a launch behind another */
  double limit_watts;     /* the clock falls until no more is used: */
  double idle_watts;      /* so much whatever runs, and at the highest clock */
  double tensor_pj;       /* so many picojoules for a multiply-add of 16-bit factors, */
  double l2_pj;           /* for a byte from or to the L2 cache, */
  double cycle_pj;        /* and for a cycle of a multiprocessor */
} schedc_machine;

/* One NVIDIA H200 (SXM, 700 W). */
#define SCHEDC_MACHINE_INIT                                                                        \
  {                                                                                                \
    sizeof(schedc_machine), 132, 65536, 233472, 2048, 1980, 2048, 128, 64, 16, 0.8, 0.2, 128, 128, \
        24, 18000, 4275, 600, 30, 30, 20, 100, 1000, 2, 2, 700, 130, 2.46, 31, 435                 \
  }

/* What a launch would take. */
typedef struct schedc_prediction {
  size_t size;
  double ms;            /* at steady state, at the clock that the power limit allows */
  double cycles;        /* of the multiprocessors */
  double clock_mhz;     /* under this load */
  double tensor_cycles; /* as in schedc_work */
  double tensor_use;    /* the part of the cycles in which tensor cores work */
  double waves;         /* tiles (or clusters of them) for each place where one can run */
  double bytes;         /* from and to the L2 cache */
  const char *bound;    /* what is used most: "tensor cores", "exponentials", "instructions",
                           "shared memory", "L2 cache", "memory", or "latency" if nothing is used
                           for more than two thirds of the time; static */
} schedc_prediction;
#define SCHEDC_PREDICTION_INIT \
  { sizeof(schedc_prediction), 0, 0, 0, 0, 0, 0, 0, 0 }

/* Predicts a launch of a kernel or sequence on tensors of these shapes. `data` is looked at only
 * where loops and conditions ask for elements, and may be NULL elsewhere. Blocks that a vote
 * decides on are taken to be seldom. machine NULL: as SCHEDC_MACHINE_INIT. The result is the same
 * on every computer. SCHEDC_EARG: a rate of the machine is not positive, or a latency negative.
 * SCHEDC_EINPUT: the tensors do not fit, or data is missing. SCHEDC_ELIMIT: tiles take
 * more than 2^21 operations. SCHEDC_EFAULT: its roles would wait for each other for ever. */
SCHEDC_API schedc_status schedc_predict(schedc_context *context, const schedc_kernel *kernel,
                                        const schedc_tensor *tensors, size_t tensor_count,
                                        const schedc_scalar *scalars, size_t scalar_count,
                                        const schedc_machine *machine, schedc_prediction *out);

/* ---- tuning: ask and tell -----------------------------------------------------------------
 *
 * A tuner knows the programs of a space and says which is to be measured next, and for how long.
 * Its caller measures, in a way of its own: on a GPU, on a simulator, with an objective of its own.
 * The tuner runs nothing and looks at no clock; the same answers get the same orders.
 *
 * First each program is measured briefly, in the order of the cost model; the better ones go on,
 * rung by rung, and are measured for longer; the last few are verified; those whose results are
 * right are measured in turns. As clocks and temperatures drift, the default is measured over and
 * over between the others, and programs are compared by their ratio to it.
 *
 * Threads. Any number may ask and tell: a tuner has a lock. Trials may be out at the same time, and
 * may be answered in any order. The space must outlive its tuner. */

typedef struct schedc_tuner schedc_tuner;

typedef enum schedc_strategy {
  SCHEDC_HALVING,    /* every program briefly, a quarter of them for longer, and so on */
  SCHEDC_EXHAUSTIVE, /* every program, each as long as the last rung of SCHEDC_HALVING */
  SCHEDC_MODEL       /* only those that the cost model has first: three times `top` */
} schedc_strategy;

typedef struct schedc_tuner_options {
  size_t size;
  schedc_strategy strategy;
  unsigned top;    /* how many get into the finals, besides the default: fewer, if a search has so
                      little time that they would take more than half of it */
  unsigned turns;  /* of the finals; at least 1 */
  double brief_ms; /* of launches on the first rung; each further one has four times as much */
  double
      final_ms; /* of launches in each turn of the finals; of a meter the first 150 do not count */
  unsigned between; /* so many measurements from one of the default to the next; 0: none */
  double tie;       /* what is faster than the default by no more than this part, or than the noise
                       of the finals, is not faster: the default wins */
  unsigned threads; /* that look at points, each with a context of its own; 0: one a core */
  /* For the cost model: tensors and scalars as schedc_predict takes them. No tensors: programs are
   * measured in the order of their points. */
  const schedc_tensor *tensors;
  size_t tensor_count;
  const schedc_scalar *scalars;
  size_t scalar_count;
  const schedc_machine *machine; /* NULL: an H200 */
  schedc_progress progress;      /* of schedc_tuner_new, which looks at every point */
  void *progress_user;
  const schedc_store *winners; /* NULL, or what won there (rank 1) with this problem is measured
                                  first: in whichever form of the schedule, shape and GPU. It is
                                  read by schedc_tuner_new alone */
} schedc_tuner_options;
#define SCHEDC_TUNER_OPTIONS_INIT                                                                 \
  {                                                                                               \
    sizeof(schedc_tuner_options), SCHEDC_HALVING, 8, 2, 20, 1150, 16, 0.003, 0, 0, 0, 0, 0, 0, 0, \
        0, 0                                                                                      \
  }

/* Looks at every point of the space: refuses those that are not legal, folds those that mean the
 * same program, and predicts the others. The default, the point at which every param has its usual
 * value, takes part if it is legal, also where the domains do not have it. SCHEDC_ECANCEL: progress
 * asked to stop. */
SCHEDC_API schedc_status schedc_tuner_new(schedc_tuner **out, schedc_context *context,
                                          const schedc_space *space,
                                          const schedc_tuner_options *options);
SCHEDC_API void schedc_tuner_free(schedc_tuner *tuner);

typedef enum schedc_trial_kind {
  SCHEDC_TRIAL_MEASURE, /* launch for about `ms` milliseconds; tell how long one launch takes */
  SCHEDC_TRIAL_VERIFY,  /* tell whether its results are right */
  SCHEDC_TRIAL_WAIT,    /* nothing, before something that is out is told */
  SCHEDC_TRIAL_DONE     /* nothing any more */
} schedc_trial_kind;

typedef struct schedc_trial {
  size_t size;
  schedc_trial_kind kind;
  uint32_t program; /* its number, from 0, in order of points */
  unsigned rung;
  double ms;          /* so long should what is measured take, all launches together */
  int is_final;       /* a turn of the finals: with the chip as warm as it gets */
  int is_reference;   /* the default, measured again */
  schedc_point point; /* for schedc_space_instantiate; without params: the default */
} schedc_trial;
#define SCHEDC_TRIAL_INIT \
  { sizeof(schedc_trial), SCHEDC_TRIAL_WAIT, 0, 0, 0, 0, 0, SCHEDC_POINT_INIT }

/* What came of a trial. SCHEDC_OK: it was measured (ms of a launch, above 0), or its results are
 * right. SCHEDC_ECANCEL: nothing is known, as where the machine that had it was lost; it will be
 * asked for again. Anything else: it does not work, and is never asked for again; `code` may say
 * why ("G.spill"; copied). */
typedef struct schedc_outcome {
  size_t size;
  schedc_status status;
  double ms;
  const char *code;
  uint64_t launches;   /* that were measured; 0: not said */
  double reference_ms; /* the default's time, where another machine measured this than measures the
                          default for the tuner; 0: the tuner's own measurements of it count */
} schedc_outcome;
#define SCHEDC_OUTCOME_INIT \
  { sizeof(schedc_outcome), SCHEDC_OK, 0, 0, 0, 0 }

/* SCHEDC_OK, whatever the kind. */
SCHEDC_API schedc_status schedc_tuner_ask(schedc_tuner *tuner, schedc_trial *trial);
/* Each trial to measure or verify is told once. SCHEDC_EARG: it is not out, or its time is not
 * above 0. */
SCHEDC_API schedc_status schedc_tuner_tell(schedc_tuner *tuner, const schedc_trial *trial,
                                           const schedc_outcome *outcome);
/* Time is up: no further rung is begun, and of this one nothing more is asked for. What is known
 * decides who gets into the finals, which follow. */
SCHEDC_API void schedc_tuner_hurry(schedc_tuner *tuner);

/* What is known of a program. Texts live as long as the tuner, or its space. */
typedef struct schedc_candidate {
  size_t size;
  uint32_t program;
  schedc_point point;
  int is_default;
  int failed;          /* it could not be built, or run, or its results are wrong */
  const char *code;    /* … why; NULL: not said */
  int verified;        /* its results were right */
  unsigned rungs;      /* on which it was measured */
  unsigned turns;      /* of the finals in which it was measured */
  double predicted_ms; /* by the cost model; 0: it says nothing */
  double ms;           /* of a launch, as measured last; in the finals the median of the turns */
  double ratio;        /* of that time to the default's at that moment; 0: not compared yet */
  double spread;       /* how uncertain that is in the finals: two standard errors; 0: not known */
} schedc_candidate;
#define SCHEDC_CANDIDATE_INIT \
  { sizeof(schedc_candidate), 0, SCHEDC_POINT_INIT, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

typedef struct schedc_tuner_info {
  size_t size;
  uint64_t points;   /* of the domains, with those that a `require` refuses */
  uint64_t legal;    /* of these */
  uint32_t programs; /* that differ, of these, with the default */
  uint64_t left;     /* trials that may still come, if nothing fails */
  double noise;      /* of the ratios of the finals: the median of their spreads; 0: not known */
  int done;          /* nothing will be asked for any more */
} schedc_tuner_info;
#define SCHEDC_TUNER_INFO_INIT \
  { sizeof(schedc_tuner_info), 0, 0, 0, 0, 0, 0 }

/* The programs, best first: those of the finals by their ratio, then those that got further, then
 * by prediction; what failed is last. SCHEDC_EARG past the end. */
SCHEDC_API schedc_status schedc_tuner_at(schedc_tuner *tuner, size_t rank,
                                         schedc_candidate *candidate);
/* The winner: verified, and the fastest in the finals; the default if none beats it. SCHEDC_EARG:
 * there is none (yet). */
SCHEDC_API schedc_status schedc_tuner_best(schedc_tuner *tuner, schedc_candidate *candidate);
SCHEDC_API schedc_status schedc_tuner_get_info(schedc_tuner *tuner, schedc_tuner_info *info);
/* How many points were refused, by code ("P.require", "R8.smem"), most first; index from 0.
 * SCHEDC_EARG past the end. */
SCHEDC_API schedc_status schedc_tuner_refusal(const schedc_tuner *tuner, size_t index,
                                              const char **code, uint64_t *points);

/* ---- building for a GPU -------------------------------------------------------------------- */

/* What a kernel or sequence can be built to: CUDA C (one file, nothing included), PTX for
 * compute_90a, machine code for sm_90a (a cubin; a few bytes behind it say which kernel's it is,
 * for schedc_load), or a C header with the machine code and functions that load and launch it and
 * need the driver's cuda.h alone. Of a sequence, the first three have each kernel as an extern "C"
 * function of its own name; the header's launch runs all of them, in order, with one workspace of
 * the caller's. Where lists have promised elements (schedc_launch), the text has sc_check_lists,
 * too: who launches the kernels without schedc has to see to that as well. */
typedef enum schedc_artifact {
  SCHEDC_CUDA_C,
  SCHEDC_PTX,
  SCHEDC_CUBIN,
  SCHEDC_C_HEADER
} schedc_artifact;

typedef struct schedc_build_options {
  size_t size;
  int lenient;  /* what makes a kernel slow, not wrong (spills, serialized products), is a warning,
                   not an error */
  int no_cache; /* neither look into the cache of machine code nor add to it */
  const char *cache; /* its folder; NULL: $SCHEDC_CACHE, $XDG_CACHE_HOME/schedc, ~/.cache/schedc */
  schedc_writer log; /* NULL, or gets what NVRTC and ptxas say, word for word */
  void *log_user;
  uint64_t cache_bytes; /* that the cache's files may have: those used longest ago are removed; 0:
                           $SCHEDC_CACHE_SIZE (a number, or one with K, M or G), or 1 GiB */
  int debug_waits; /* bound each wait for another role: what takes more than two seconds is given up
                      and told of (SCHEDC_EFAULT, G.wait), instead of hanging. The kernel is
                      slower, and built as if lenient. SCHEDC_EARG for SCHEDC_C_HEADER. */
  const char *name; /* of a C header: an identifier with which all that it defines begins, so that
                       headers of one kernel with different parameters may be included together;
                       NULL: the kernel's name. SCHEDC_EARG for all but SCHEDC_C_HEADER. */
  const schedc_variants *variants; /* NULL, or: of a C header, which then holds all of them, and
                                      takes at each launch the one that schedc_instantiate_tuned
                                      would. SCHEDC_EARG for all but SCHEDC_C_HEADER, and if the
                                      kernel is not their number 0. */
  int trust_elements; /* launches do not check the elements of lists (schedc_launch says how they
                         do): the caller knows that they are as the schedule says. Machine code is
                         the same with it; it concerns launches, also those of a C header. */
} schedc_build_options;
#define SCHEDC_BUILD_OPTIONS_INIT \
  { sizeof(schedc_build_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

typedef struct schedc_build_info {
  size_t size;
  unsigned threads;             /* of a CTA */
  unsigned entry_registers;     /* of a thread, as schedc predicts it from the launch bounds */
  unsigned shared_bytes;        /* of a CTA, dynamic */
  unsigned registers, barriers; /* by ptxas, as the next two lines: 0 for CUDA C and PTX */
  unsigned static_shared_bytes; /* should be 0 */
  unsigned stack_bytes, spill_store_bytes, spill_load_bytes;
  size_t code_bytes; /* of PTX or machine code; 0 for CUDA C */
  int cached;        /* 0: NVRTC made it now; 1: it did before; 2: there is no NVRTC here, and the
                        one that `nvrtc` names made it */
  double seconds;    /* in NVRTC or the cache */
  unsigned cluster;  /* CTAs of a cluster; 1: there are none */
  char nvrtc[256];   /* the NVRTC that made it: its path, size and time of change, cut off there */
} schedc_build_info;
#define SCHEDC_BUILD_INFO_INIT                                              \
  {                                                                         \
    sizeof(schedc_build_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 } \
  }

/* Builds a kernel or sequence and writes the artifact. All but CUDA C, and what is in the cache,
 * need NVRTC: SCHEDC_EUNAVAIL where there is none. Nothing is written on errors. info: NULL, or
 * gets the figures, on errors too as far as they are known; of a sequence, the largest of its
 * kernels', but code_bytes of all. options: NULL, or used during the call alone. SCHEDC_EINPUT: the
 * kernel is rejected (schedc_verify), or spills, or what was built is not what was planned (G.ptx).
 * Threads may build at the same time, into one cache.
 *
 * Example:
 *
 *     schedc_build_options how = SCHEDC_BUILD_OPTIONS_INIT;
 *     schedc_build_info figures = SCHEDC_BUILD_INFO_INIT;
 *     FILE *file = fopen("copy.cubin", "wb");
 *     how.lenient = 1;
 *     if (!status)
 *       status = schedc_build(context, kernel, SCHEDC_CUBIN, &how, to_file, file, &figures);
 *     if (fclose(file) == 0 && !status)
 *       printf("%zu bytes, %u registers\n", figures.code_bytes, figures.registers);
 */
SCHEDC_API schedc_status schedc_build(schedc_context *context, const schedc_kernel *kernel,
                                      schedc_artifact artifact, const schedc_build_options *options,
                                      schedc_writer writer, void *user, schedc_build_info *info);

/* Builds the kernel's machine code and writes what stands in it, loop by loop of each role:
 * products and the waits for them, what is computed beside those that are in flight, spills, moves
 * to uniform registers, and where the order is not the schedule's. `build` says how it is built;
 * its name and log are not used. SCHEDC_EUNAVAIL: there is no NVRTC, or no nvdisasm (G.nvdisasm
 * says where it is looked for). JSON is an array, of a sequence with each of its kernels once.
 * Nothing is written on errors. */
SCHEDC_API schedc_status schedc_report_sass(schedc_context *context, const schedc_kernel *kernel,
                                            const schedc_build_options *build,
                                            schedc_format_kind kind, schedc_writer writer,
                                            void *user);

/* ---- running on a GPU ---------------------------------------------------------------------- */

/* Milliseconds of a launch, by CUDA events. cold: the median over 3 rounds of a 150 ms pause, 5
 * launches to warm up and 20 that count; sustained: the mean of launches back to back for 2 s, of
 * which the first second does not count, and of these means the median over the rounds; least and
 * most: of the rounds.
 */
typedef struct schedc_cuda_times {
  size_t size;
  double cold_ms, sustained_ms, least_ms, most_ms;
  double clock_mhz; /* of the multiprocessors, while sustained; 0: not known (it needs NVML) */
  double power_w;   /* of the board, while sustained; 0: not known */
} schedc_cuda_times;
#define SCHEDC_CUDA_TIMES_INIT \
  { sizeof(schedc_cuda_times), 0, 0, 0, 0, 0, 0 }

/* A GPU, for kernels on tensors in host memory: opened when it is first needed, and kept open
 * until it is freed. `device` counts from 0, as the driver counts (CUDA_VISIBLE_DEVICES hides and
 * reorders). Used by one thread at a time, and freed before its context is closed. The caller's
 * current CUDA context is left as it was found. SCHEDC_EARG: the device is negative; whether there
 * is one, the first use says. */
typedef struct schedc_gpu schedc_gpu;
SCHEDC_API schedc_status schedc_gpu_new(schedc_gpu **out, schedc_context *context, int device);
SCHEDC_API void schedc_gpu_free(schedc_gpu *gpu);

/* How many CUDA devices there are, of any kind. SCHEDC_EUNAVAIL: no driver. */
SCHEDC_API schedc_status schedc_gpu_count(schedc_context *context, size_t *count);

/* SCHEDC_OK: this machine has a CUDA driver and NVRTC, and the device is a Hopper GPU. Else
 * SCHEDC_EUNAVAIL, and what is missing is written to `why` (NULL, or `room` bytes: cut off there).
 * (What is in the cache, and what comes with its machine code, needs no NVRTC.) */
SCHEDC_API schedc_status schedc_gpu_available(schedc_context *context, int device, char *why,
                                              size_t room);

/* What a device is. Strings belong to the schedc_gpu. */
typedef struct schedc_gpu_info {
  size_t size;
  const char *name; /* "NVIDIA H100 80GB HBM3" */
  unsigned multiprocessors;
  unsigned driver_version;                     /* of CUDA: 13000 */
  int device;                                  /* its number */
  unsigned capability_major, capability_minor; /* compute capability: 9, 0 */
  uint64_t memory_bytes, l2_bytes;
  double clock_mhz; /* the highest of the multiprocessors */
  const char *pci;  /* "0000:3B:00.0" */
  const char *uuid; /* "GPU-1f3c…", as nvidia-smi writes it */
} schedc_gpu_info;
#define SCHEDC_GPU_INFO_INIT \
  { sizeof(schedc_gpu_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* Opens the GPU if it is not open. SCHEDC_EUNAVAIL: schedc_gpu_available says why; NVRTC is not
 * asked for. */
SCHEDC_API schedc_status schedc_gpu_get_info(schedc_gpu *gpu, schedc_gpu_info *info);

/* A run: of a kernel or sequence, on tensors in host memory. */
typedef struct schedc_gpu_job {
  size_t size;
  const schedc_kernel *kernel;
  const schedc_tensor *tensors;
  size_t tensor_count;
  const schedc_scalar *scalars;
  size_t scalar_count;
  schedc_cuda_times times; /* out */
  uint64_t differing;   /* out: how many repeats had other bits in a tensor that is deterministic */
  const void *cubin;    /* NULL, or its machine code: as of schedc_load_options */
  size_t cubin_bytes;   /* of it */
  schedc_status status; /* out: SCHEDC_OK: it has run, and its outputs are handed back; what went
                           wrong with it; SCHEDC_ECANCEL: it has not run, as another one went wrong,
                           or progress stopped them */
} schedc_gpu_job;
#define SCHEDC_GPU_JOB_INIT \
  { sizeof(schedc_gpu_job), 0, 0, 0, 0, 0, SCHEDC_CUDA_TIMES_INIT, 0, 0, 0, SCHEDC_OK }

/* Runs the jobs one after the other; then all again until each has run `repeats` times on the same
 * inputs, comparing outputs with those of the first run (which are handed back); then measures them
 * if rounds is not 0: in turns, so that they meet the same clocks, after the chip was warmed up by
 * all of them for 3 s.
 * Before anything runs, all tensors are checked, and each job's kernel is built, or taken from the
 * cache of machine code. SCHEDC_EUNAVAIL: no such device, no NVRTC where it is needed, not enough
 * memory on the GPU; a diagnostic at the job's kernel says which. SCHEDC_EFAULT: a wait was given
 * up (debug_waits), or the model found a fault; the GPU is then to be freed, as after any launch
 * that failed.
 *
 * Example:
 *
 *     schedc_gpu *gpu = NULL;
 *     schedc_gpu_job job = SCHEDC_GPU_JOB_INIT;
 *     job.kernel = kernel;
 *     job.tensors = tensors;
 *     job.tensor_count = 2;
 *     if (!status) status = schedc_gpu_new(&gpu, context, 0);
 *     if (!status) status = schedc_gpu_run(gpu, &job, 1, NULL);
 *     schedc_gpu_free(gpu);
 */
typedef struct schedc_gpu_options {
  size_t size;
  uint64_t repeats;                  /* 0 and 1: none */
  unsigned rounds;                   /* at most 16; 0: nothing is measured */
  const schedc_build_options *build; /* NULL: the defaults; its log is not written */
  schedc_progress progress; /* before each job is built or run, and before each round of one that is
                               measured; nonzero: SCHEDC_ECANCEL */
  void *progress_user;
} schedc_gpu_options;
#define SCHEDC_GPU_OPTIONS_INIT \
  { sizeof(schedc_gpu_options), 1, 0, 0, 0, 0 }
SCHEDC_API schedc_status schedc_gpu_run(schedc_gpu *gpu, schedc_gpu_job *jobs, size_t job_count,
                                        const schedc_gpu_options *options);

/* ---- launching from a CUDA program -------------------------------------------------------------
 *
 * For programs that have a CUDA context, streams and tensors on the GPU of their own. */

typedef struct schedc_load_options {
  size_t size;
  const schedc_build_options *build; /* NULL: the defaults; debug_waits: see schedc_check_waits */
  const void *cubin;  /* NULL, or the kernel's machine code, as schedc_build writes SCHEDC_CUBIN:
                         then nothing is built, and NVRTC and the cache are not asked for. It is
                         read during the call alone. */
  size_t cubin_bytes; /* of it */
} schedc_load_options;
#define SCHEDC_LOAD_OPTIONS_INIT \
  { sizeof(schedc_load_options), 0, 0, 0 }

/* A kernel or sequence, built, or with the machine code that is given, and loaded on the CUDA
 * context that is current, which is left current and must be current when it is launched. The
 * kernel must outlive it. Allocates on the GPU (about 16 KB), and waits for the default stream: not
 * to be called while a stream is being captured. SCHEDC_EUNAVAIL: no driver, no NVRTC, no context,
 * no Hopper GPU; a diagnostic says which. SCHEDC_EINPUT (G.cubin): the machine code is not whole,
 * or that of another kernel: it must have been built from the same text of the same name, with the
 * same parameters and debug_waits, by the same schedc.
 *
 * Example:
 *
 *     schedc_loaded *loaded = NULL;
 *     if (!status) status = schedc_load(&loaded, context, kernel, NULL);
 */
typedef struct schedc_loaded schedc_loaded;
SCHEDC_API schedc_status schedc_load(schedc_loaded **out, schedc_context *context,
                                     const schedc_kernel *kernel,
                                     const schedc_load_options *options);
/* After its last launch has ended. */
SCHEDC_API void schedc_unload(schedc_loaded *loaded);

/* What NVRTC and ptxas said, word for word. It is the loaded kernel's; never NULL. */
SCHEDC_API const char *schedc_loaded_log(const schedc_loaded *loaded);

/* Bytes of workspace that a launch on these tensors needs (their data is not looked at, but must be
 * as aligned as it will be): temporaries of a sequence, counters of turns over CTAs. Often 0. */
SCHEDC_API schedc_status schedc_workspace_size(schedc_context *context, schedc_loaded *loaded,
                                               const schedc_tensor *tensors, size_t tensor_count,
                                               const schedc_scalar *scalars, size_t scalar_count,
                                               size_t *bytes);

/* Enqueues a launch on a stream (a CUstream or cudaStream_t; NULL: the default one).
 *
 * tensors: `data` is an address on the GPU. Those in the kernel's order cost least; names are
 * compared, NULL is not even that. workspace: at a multiple of 256, of at least
 * schedc_workspace_size bytes; it is in use until the launch has ended; what must be zero in it is
 * set by the launch.
 *
 * Types, shapes, strides, alignment, `require`s, and whether all integers of the kernel fit in 32
 * bits, are checked when shapes, strides or scalars are new (the last eight sets are remembered);
 * reports name the tensor. After that a launch costs about a microsecond more than the driver's
 * own. It never waits, allocates nothing on the GPU, and may be captured into a graph (a sequence,
 * whose launches overlap, by drivers for CUDA 12.3 and later).
 *
 * Threads: any number, each with its own context; launches of one `loaded` take turns on the host.
 * Streams: launches on different streams may overlap if their workspaces differ, and so may
 * captured ones, in branches of a graph and in graphs that run at the same time. What is captured
 * must not overlap itself, as two instances of one graph would. A dynamic grid has tile counters
 * for 256 streams (another takes that of the stream unused for longest, whose launches must have
 * ended) and for 3840 captured launches of kernels, those of a sequence one by one (another takes
 * that of the first, and must not overlap it). A persistent or dynamic grid with turns over CTAs
 * has all its CTAs on the GPU at once, or waits for ever: two such launches must not share a GPU.
 *
 * Lists: where the schedule says of an input what its elements are (`in 0 .. n`, `rising`), the
 * proof of the kernel relies on it. So a launch enqueues a small kernel in front (about 3
 * microseconds), which looks at these elements in the stream's order; of a sequence, also at those
 * that one kernel makes for the next. If an element is not as it says, this small kernel traps: the
 * kernel itself never runs, calls that wait for the stream return CUDA_ERROR_LAUNCH_FAILED (719),
 * and the context is lost, as after a failed assertion on the GPU. schedc_check_elements, called
 * before, names tensor, place and element, and leaves the context whole. trust_elements of
 * schedc_build_options leaves the small kernel out.
 *
 * Errors: SCHEDC_EINPUT: the tensors, scalars, workspace or current context do not fit, and nothing
 * was enqueued; SCHEDC_EUNAVAIL: the driver refused, and a diagnostic has its words.
 *
 * Example: x_on_gpu and y_on_gpu are what cuMemAlloc or cudaMalloc gave.
 *
 *     const schedc_tensor on_gpu[] = {{NULL, (void *)x_on_gpu, SCHEDC_F16, 2, {M, N}, {N, 1}},
 *                                     {NULL, (void *)y_on_gpu, SCHEDC_F16, 2, {M, N}, {N, 1}}};
 *     size_t bytes = 0;
 *     if (!status)
 *       status = schedc_workspace_size(context, loaded, on_gpu, 2, NULL, 0, &bytes);
 *     if (!status && bytes == 0)
 *       status = schedc_launch(context, loaded, stream, on_gpu, 2, NULL, 0, NULL, 0);
 */
SCHEDC_API schedc_status schedc_launch(schedc_context *context, schedc_loaded *loaded, void *stream,
                                       const schedc_tensor *tensors, size_t tensor_count,
                                       const schedc_scalar *scalars, size_t scalar_count,
                                       void *workspace, size_t workspace_bytes);

/* Are the elements of a launch's inputs what the schedule says of them (`in 0 .. n`, `rising`)? A
 * launch with elements that are not ends in an error that does not say which, and loses the
 * context. This says which, and loses nothing. Arguments are those of schedc_launch. Waits for the
 * stream, and copies these inputs to host memory: to be called before the launches of a debug
 * build, and not while the stream is being captured. What one kernel of a sequence makes for the
 * next is not there yet, and is not looked at. SCHEDC_EINPUT: a diagnostic (T.element) names
 * tensor, place and element; SCHEDC_EUNAVAIL: the driver refused. */
SCHEDC_API schedc_status schedc_check_elements(schedc_context *context, schedc_loaded *loaded,
                                               void *stream, const schedc_tensor *tensors,
                                               size_t tensor_count, const schedc_scalar *scalars,
                                               size_t scalar_count);

/* Of what was loaded with debug_waits, once its launches have ended: SCHEDC_EFAULT if a wait took
 * more than two seconds, with diagnostics that name role, barrier, stage, generation and line.
 * Outputs then mean nothing. Without debug_waits: SCHEDC_OK. */
SCHEDC_API schedc_status schedc_check_waits(schedc_context *context, schedc_loaded *loaded);

/* ---- comparing with the specification ------------------------------------------------------ */

/* How far an output is from its specification (evaluated in float64), and how far it may be:
 * max |out - ref| <= max_allowed, mean |out - ref| <= mean_allowed.
 *
 * Where so much is allowed that an output would pass whose every element is off by a fifth of its
 * value, the comparison proves nothing: `unproven`, and no pass. */
typedef struct schedc_error {
  size_t size;
  const char *tensor;
  uint64_t elements;  /* that were compared */
  uint64_t unwritten; /* NaN where the specification has none, but for `overflowed`; of a sample
                         without either, NaN anywhere */
  double max_error, max_allowed;
  double mean_error, mean_allowed;
  int64_t worst[SCHEDC_MAX_RANK]; /* where the largest error is; -1 beyond the tensor's rank */
  double worst_out, worst_ref;
  int pass;
  uint64_t total;      /* elements of the output */
  uint64_t overflowed; /* infinite, or NaN, where the specification has a number: a value on the way
                          is beyond its type */
  int may_overflow;    /* on the way, the kernel keeps values as f16, which ends at 65504 */
  int unproven;
  double looseness; /* an output that is off by this part of each element's value would pass; 0 if
                       the specification's values are 0 */
} schedc_error;
#define SCHEDC_ERROR_INIT \
  { sizeof(schedc_error), 0, 0, 0, 0, 0, 0, 0, {0}, 0, 0, 0, 0, 0, 0, 0, 0 }

typedef struct schedc_compare_options {
  size_t size;
  unsigned threads;            /* 0: one a core */
  uint64_t places;             /* at most so many; 0: no limit */
  uint64_t operations;         /* as many as fit in so many arithmetic operations; 0: no limit */
  const schedc_tensor *before; /* the tensors that are inout, as they were before the run; by the
                                  same rule */
  size_t before_count;
  schedc_progress progress; /* nonzero from it: SCHEDC_ECANCEL, and `errors` mean nothing */
  void *progress_user;
} schedc_compare_options;
#define SCHEDC_COMPARE_OPTIONS_INIT \
  { sizeof(schedc_compare_options), 0, 0, 0, 0, 0, 0, 0 }

/* Evaluates the kernel's specification on the same tensors and compares every output, in order of
 * declaration. `errors` has room for schedc_output_count(kernel) entries, the first of which is set
 * up with SCHEDC_ERROR_INIT.
 *
 * Options (NULL: as initialised) may limit the places of large tensors: of the indices that all
 * equations of a specification share (of attention: batch, head, row), only some values are
 * evaluated, of each of them all elements: the first, the last, those beside edges of tiles, and
 * others drawn at random, always the same. Every element of the outputs is searched for NaN.
 *
 * SCHEDC_OK says that there was something to compare with; `pass` of each error is the verdict.
 * SCHEDC_EINPUT (T.spec): the kernel has no specification. SCHEDC_ECANCEL: the progress callback.
 *
 * Example:
 *
 *     schedc_error error = SCHEDC_ERROR_INIT;
 *     if (!status) status = schedc_compare(context, kernel, tensors, 2, NULL, 0, NULL, &error);
 *     if (!status && !error.pass)
 *       printf("%s is off by %g\n", error.tensor, error.max_error);
 */
SCHEDC_API size_t schedc_output_count(const schedc_kernel *kernel);
SCHEDC_API schedc_status schedc_compare(schedc_context *context, const schedc_kernel *kernel,
                                        const schedc_tensor *tensors, size_t tensor_count,
                                        const schedc_scalar *scalars, size_t scalar_count,
                                        const schedc_compare_options *options,
                                        schedc_error *errors);

/* ---- tuning on a GPU ------------------------------------------------------------------------
 *
 * A meter measures and verifies the programs of a space on one GPU, and has threads that build the
 * next ones meanwhile. schedc_tune asks a tuner what comes next until it is done. Where another
 * process measures, it has a meter, and is sent trials: schedc_meter_run is all that it needs. */

typedef struct schedc_meter_options {
  size_t size;
  /* As schedc_gpu_run takes them, in host memory: they are copied to the GPU once. on_gpu: they are
   * on the GPU already, in the CUDA context that is current, and launches go to `stream`. What they
   * hold is the first kind of inputs; inputs hold it again when the meter is freed. */
  const schedc_tensor *tensors;
  size_t tensor_count;
  const schedc_scalar *scalars; /* copied */
  size_t scalar_count;
  int on_gpu;
  void *stream;        /* NULL: the default one */
  const char *inputs;  /* what the tensors hold, for stores: "normal"; NULL: "given" */
  const char *verify;  /* on which inputs results must be right besides: names of schedc_input_at,
                          with commas; NULL: "outliers,ramp". Tensors of i32 stay as they are */
  uint64_t seed;       /* of these, as in schedc_draw */
  uint64_t operations; /* for each comparison, as in schedc_compare_options */
  unsigned jobs;       /* threads that build, each with a context of its own; 0: one a core */
  const schedc_build_options *build; /* NULL: the defaults; its log is not written */
  unsigned measured; /* programs are measured on the first so many kinds of inputs: on what the
                        tensors hold, and then on those of `verify`. Each has an equal share of a
                        trial's time, and a time is the mean of theirs. 0: as 1 */
} schedc_meter_options;
#define SCHEDC_METER_OPTIONS_INIT \
  { sizeof(schedc_meter_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 1000000000, 0, 0, 0 }

/* A meter is used by one thread at a time; the space and the schedc_gpu must outlive it, and the
 * tensors, if they are on the GPU. It keeps copies of them in host memory, one for each kind of
 * inputs. SCHEDC_EUNAVAIL: there is no such GPU, or not enough memory on it; a diagnostic (G.run)
 * says which. SCHEDC_EARG: a kind of inputs is unknown, or fewer are given than are `measured`. */
typedef struct schedc_meter schedc_meter;
SCHEDC_API schedc_status schedc_meter_new(schedc_meter **out, schedc_context *context,
                                          const schedc_space *space, schedc_gpu *gpu,
                                          const schedc_meter_options *options);
/* Waits for what is being built. */
SCHEDC_API void schedc_meter_free(schedc_meter *meter);

/* Has the program of a trial built by one of the threads, and returns at once. Trials of one meter
 * are from one tuner, or from tuners of the same space. */
SCHEDC_API schedc_status schedc_meter_prepare(schedc_meter *meter, const schedc_trial *trial);

/* Does what a trial to measure or verify asks for: waits until its program is built; launches it
 * for about as long as the trial says, and has the median of groups of launches, or of the finals
 * the mean of all (without the first 150 ms, or half of them: the chip finds its clock); or runs it
 * once on each kind of inputs, and compares with the specification. What goes wrong with the
 * program is in the outcome, whose code lives until the next call: that of a diagnostic, or
 * "wrong". A program that ends in a fault costs the GPU's context: it is made anew; but
 * SCHEDC_EFAULT if it is the caller's. SCHEDC_EUNAVAIL: no NVRTC, no memory; a diagnostic says
 * which. */
SCHEDC_API schedc_status schedc_meter_run(schedc_context *context, schedc_meter *meter,
                                          const schedc_trial *trial, schedc_outcome *outcome);

/* Where a search is. */
typedef struct schedc_tune_state {
  size_t size;
  double seconds;              /* since it began */
  uint64_t done, left, failed; /* trials; left: that may still come */
  uint64_t known;              /* of those done: answered from the store */
  double best_ms, best_ratio;  /* of the best so far, and to the default's time; 0: not known */
  double default_ms;           /* measured last; 0: not known */
  int is_final, is_verifying;  /* what is done now … */
  const schedc_point *point;   /* … for which point; NULL: nothing, programs are being built */
  int hurried;                 /* time is up, or nearly: the finals are begun */
} schedc_tune_state;
#define SCHEDC_TUNE_STATE_INIT \
  { sizeof(schedc_tune_state), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Called by the thread that called schedc_tune, before each trial, ten times a second while it
 * waits, and at the end. Nonzero stops the search. */
typedef int (*schedc_tune_progress)(void *user, const schedc_tune_state *state);

/* Trials that are measured elsewhere as well: by other processes, on other GPUs. The functions are
 * called by the thread that called schedc_tune. Only trials of rungs are offered; results are
 * verified, and the finals take place, on the GPU of the meter. */
typedef struct schedc_elsewhere {
  size_t size;
  void *user;
  /* Nonzero: the trial is taken, and will be collected. */
  int (*take)(void *user, const schedc_trial *trial);
  /* Nonzero: *program is that of a trial that was taken, and *outcome (its size is set) what came
   * of it; SCHEDC_ECANCEL: who had it was lost. `code` lives until the next call. Does not wait. */
  int (*collect)(void *user, uint32_t *program, schedc_outcome *outcome);
  /* What was taken and not collected is not wanted any more, and is never collected. */
  void (*forget)(void *user);
} schedc_elsewhere;
#define SCHEDC_ELSEWHERE_INIT \
  { sizeof(schedc_elsewhere), 0, 0, 0, 0 }

typedef struct schedc_tune_options {
  size_t size;
  double seconds;      /* about so long may it take: it begins the finals early enough; 0: no limit;
                          less: SCHEDC_EARG */
  schedc_store *store; /* NULL, or gets a line for each measurement, and at the end one for each
                          finalist, the winner first; it needs a meter: with `measure` it is
                          SCHEDC_EARG */
  int resume; /* what the store has of this schedule, problem, shape, GPU and these versions, on the
                 same kinds of inputs, is not measured again, but for the finals */
  schedc_tune_progress progress;
  void *progress_user;
  /* An objective of the caller's in the place of a meter: schedc_meter_run without its first two
   * arguments. Nothing is built then. */
  schedc_status (*measure)(void *user, const schedc_trial *trial, schedc_outcome *outcome);
  void *measure_user;
  const schedc_elsewhere *elsewhere; /* NULL: nowhere */
} schedc_tune_options;
#define SCHEDC_TUNE_OPTIONS_INIT \
  { sizeof(schedc_tune_options), 0, 0, 0, 0, 0, 0, 0, 0 }

/* Asks the tuner, and has the meter measure, until the tuner is done: it knows the winner then
 * (schedc_tuner_best). SCHEDC_ECANCEL: progress asked to stop; the tuner keeps what was found, and
 * a later call goes on. Other errors are the meter's, the store's, or what `measure` returned;
 * programs that fail are none.
 *
 * Example:
 *
 *     schedc_source *text = NULL;
 *     schedc_space *space = NULL;
 *     schedc_tuner *tuner = NULL;
 *     schedc_meter *meter = NULL;
 *     schedc_gpu *device = NULL;
 *     const schedc_param fixed[] = {{"BM", "64"}, {"BN", "64"}, {"T", "f16"}};
 *     schedc_tuner_options search = SCHEDC_TUNER_OPTIONS_INIT;
 *     schedc_meter_options how_to_measure = SCHEDC_METER_OPTIONS_INIT;
 *     schedc_candidate best = SCHEDC_CANDIDATE_INIT;
 *     search.tensors = how_to_measure.tensors = tensors;
 *     search.tensor_count = how_to_measure.tensor_count = 2;
 *     search.brief_ms = search.final_ms = 1;  // of launches: here little, for the example
 *     if (!status) status = schedc_parse_file(&text, context, "schedules/copy.sched");
 *     if (!status) status = schedc_space_new(&space, context, text, "copy", NULL, fixed, 3);
 *     if (!status) status = schedc_tuner_new(&tuner, context, space, &search);
 *     if (!status) status = schedc_gpu_new(&device, context, 0);
 *     if (!status) status = schedc_meter_new(&meter, context, space, device, &how_to_measure);
 *     if (!status) status = schedc_tune(context, tuner, meter, NULL);
 *     if (!status) status = schedc_tuner_best(tuner, &best);
 *     for (size_t i = 0; !status && i < best.point.param_count; i++)
 *       printf("%s = %s\n", best.point.params[i].name, best.point.params[i].value);
 *     schedc_meter_free(meter);
 *     schedc_gpu_free(device);
 *     schedc_tuner_free(tuner);
 *     schedc_space_free(space);
 *     schedc_source_free(text);
 */
SCHEDC_API schedc_status schedc_tune(schedc_context *context, schedc_tuner *tuner,
                                     schedc_meter *meter, const schedc_tune_options *options);

#ifdef __cplusplus
}
#endif
#endif
