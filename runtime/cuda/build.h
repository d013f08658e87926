// build.h - CUDA C to machine code: NVRTC, what it and ptxas say, and the cache of what they made.
#ifndef SC_BUILD_H
#define SC_BUILD_H

#include "compiler/passes.h"

// nvrtc.c: where NVRTC is, without opening it: SCHEDC_NVRTC, or the first that is found in
// LD_LIBRARY_PATH, CUDA_HOME, CUDA_PATH and /usr/local/cuda, or else by its name alone.
typedef struct NvrtcFile {
  const char *path;  // for dlopen
  // the file's real path, size and time of change; NULL: known only once it is open
  const char *identity;
} NvrtcFile;
// Of the environment; NULL where it is not set or empty. A setuid program does not let its caller
// choose what it loads.
const char *sc_variable(const char *name);
const char *sc_nvrtc_find(Sc *sc, NvrtcFile *out);  // NULL, or what is missing and how to get it

typedef struct Nvrtc {
  void *library;
#define NVRTC(name, symbol, params) int(*name) params;
#include "runtime/cuda/nvrtc.def"
#undef NVRTC
} Nvrtc;
// Opens it; it stays open for the life of the process: NVRTC does not survive being unloaded and
// loaded again.
const char *sc_nvrtc_open(Sc *sc, NvrtcFile *file, Nvrtc *out);

// Of the NVRTC that is found: 13000 is 13.0; 0: there is none.
unsigned sc_nvrtc_version(Sc *sc);

typedef enum Target { TARGET_PTX, TARGET_CUBIN } Target;
typedef struct Binary {
  const void *at;  // TARGET_PTX: text, with its NUL
  size_t n;
  const char *log;  // NVRTC's and ptxas's words, never NULL
  bool refused;     // there is none: the text is wrong
  const char *ptx;  // that ptxas had, or that it is; NULL: not known
} Binary;
extern const char *const sc_nvrtc_options[2][6];  // by target, ends with NULL
// `name` is what NVRTC calls the file where no #line says otherwise. NULL, or what went wrong;
// out->log is set all the same.
const char *sc_nvrtc(Sc *sc, const Nvrtc *n, Target target, const char *name, const char *text,
                     Binary *out);

// ptxas.c: what the log of a build says.
typedef enum RemarkKind {
  REMARK_ERROR,
  REMARK_WARNING,
  REMARK_SERIAL,
  REMARK_SETMAXNREG
} RemarkKind;
typedef struct Remark {
  u8 kind;
  u32 code;          // ptxas's: 7512; 0: it has none
  const char *file;  // NULL: ptxas names no line
  u32 line;
  const char *text;
  const char *function;  // that it is about; NULL: it does not say
} Remark;
typedef struct Spill {  // a function with registers in memory: bytes a thread
  const char *function;
  u32 stack, stores, loads;
} Spill;
typedef struct BuildLog {                // figures: of several functions the worst
  u32 registers;                         // at entry
  u32 barriers;                          // named barriers
  u32 shared;                            // static shared memory, bytes
  u32 stack, spill_stores, spill_loads;  // bytes a thread
  VEC(Spill) spill;
  VEC(Remark) remark;
} BuildLog;
void sc_read_log(Sc *sc, const char *log, BuildLog *out);
// As diagnostics at lines of the schedule; of a sequence, at the kernel whose function it is.
// lenient: what makes a kernel slow, not wrong, is a warning.
void sc_report_log(Sc *sc, const Kernel *k, const BuildLog *log, bool lenient);
// The text of a line of the schedule, without the blanks around it; of the kernel where there is no
// such line.
Span sc_at_line(const Kernel *k, u32 line);

// cache.c: what was built, on disk.
u64 sc_hash(const void *at, size_t n);
typedef struct Blob {
  const void *at;
  size_t n;
} Blob;
// The folder: `chosen`, or $SCHEDC_CACHE, $XDG_CACHE_HOME/schedc, ~/.cache/schedc; NULL: there is
// none.
const char *sc_cache_folder(Sc *sc, const char *chosen);
// How many bytes its entries may have: `chosen` if not 0, or $SCHEDC_CACHE_SIZE, or 1 GiB. *wrong:
// what the variable says, if that is no size; otherwise NULL.
u64 sc_cache_limit(u64 chosen, const char **wrong);
// What was stored under exactly this key. False where there is nothing, or nothing that can be
// trusted.
bool sc_cache_load(Sc *sc, const char *folder, const Blob *key, u32 parts, Binary *out);
// Stores it if it can, and removes the entries used longest ago until all have `limit` bytes at
// most: no error is one of the caller's.
void sc_cache_store(Sc *sc, const char *folder, u64 limit, const Blob *key, u32 parts,
                    const Binary *code);
// An entry's image, from memory. The result points into it.
bool sc_cache_parse(const void *image, size_t n, Blob *key, Blob *log, Blob *code);

// seal.c: machine code for the caller, and back. It is NULL, or why the code is not the text's.
Blob sc_seal(Sc *sc, const CudaText *text, Blob code);
const char *sc_unseal(Sc *sc, const CudaText *text, Blob sealed, const void **code);

// build.c: a kernel's machine code, from the cache or NVRTC.
typedef struct BuildOptions {
  bool lenient, no_cache;
  const char *cache;     // folder, NULL: the usual one
  u64 cache_bytes;       // 0: the usual limit
  CudaOptions emission;  // of the text that is built
  bool trust_elements;   // launches do not check lists
} BuildOptions;
typedef struct Built {
  Binary code;
  BuildLog log;
  const char *maker;      // the identity of the NVRTC that made it; NULL: not known
  bool cached, no_nvrtc;  // it is from the cache; there is no NVRTC here
  double seconds;
} Built;
// The kernel's text to PTX or machine code. SCHEDC_OK may come with warnings; SCHEDC_EUNAVAIL: no
// NVRTC. Errors are reported.
schedc_status sc_build(Sc *sc, const Kernel *k, const CudaText *text, Target target,
                       const BuildOptions *options, Built *out);

// How a compilation goes from CUDA C to machine code: Compilation.assemble and its assembler.
typedef struct Assembly {
  BuildOptions options;
  Target target;
  Built built;           // made, also where it is refused
  schedc_status status;  // of sc_build
} Assembly;
bool sc_assemble(Sc *sc, Compilation *c);

double sc_now(void);  // seconds, on a clock that only goes forwards

#endif
