// api.h - what stands behind the opaque handles of schedc.h, and the one way into the library: a
// call checks its arguments, makes an Sc, runs its body under sc_guard, and hands the diagnostics
// over.
#ifndef SC_API_H
#define SC_API_H

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "runtime/cuda/build.h"
#include "compiler/passes.h"
#include "runtime/run.h"

struct schedc_context {
  schedc_allocator alloc;
  schedc_sink sink;
  void *user;
  bool unverified;
  Sc scratch;  // of calls that keep nothing; its memory stays for the next one
};

// What schedc_unit reports.
typedef struct Unit {
  Sym name;
  bool is_sequence;
  u32 params, cases;
  Sym *kase;
} Unit;

// Counted: one reference is the caller's, one each kernel's.
struct schedc_source {
  atomic_uint refs;
  Sc sc;
  const Text *text;
  const Ast *ast;
  VEC(Unit) unit;
};

struct schedc_kernel {
  Sc sc;
  schedc_source *source;
  const Kernel *k;
  u32 tensors, outputs;
  u32 *tensor;                       // bufs that are arguments, in order
  const char *(*dims)[SC_MAX_RANK];  // of each tensor
  schedc_param_info *param;
  schedc_bind_info **bind;  // of each case
  bool *unordered;          // by buf: its bits may differ from run to run
};

// A kernel of variants.c, and the dimensions that it is for.
typedef struct Variant {
  schedc_kernel *kernel;
  bool owned;  // else an earlier variant has the same
  u64 program[2];
  schedc_store_record record;  // schedule NULL: no store is asked
  const i64 *dim;              // in the kernel's order
} Variant;

struct schedc_variants {
  Sc sc;
  VEC(Variant) variant;  // the default; then as they are preferred
  i64 *shape;            // their dimensions, row by row, without the default's
};

// Runs `step`; what it unwinds with, or returns. Neither the step nor its callees own anything but
// `sc`.
typedef schedc_status (*Step)(Sc *sc, void *job);
schedc_status sc_guard(Sc *sc, Step step, void *job);

// sc_guard, then the diagnostics to the context's sink. SCHEDC_OK becomes SCHEDC_EINPUT if there
// were errors.
schedc_status sc_enter(const schedc_context *context, Sc *sc, const Text *text, Step step,
                       void *job);

// Each on memory of its own, which is freed when the step has ended.
schedc_status sc_guard_once(const schedc_allocator *alloc, Step step, void *job);
schedc_status sc_enter_once(const schedc_context *context, const Text *text, Step step, void *job);

// Memory of the caller's allocator, which is 0; NULL: there is none.
void *sc_zeroed(const schedc_context *context, size_t bytes);
// A handle in such memory, which owns an Sc; and the end of both.
#define NEW_HANDLE(context, type) \
  ((type *)sc_new_handle((context), sizeof(type), offsetof(type, sc)))
void *sc_new_handle(const schedc_context *context, size_t bytes, size_t sc_at);
void sc_free_handle(Sc *sc, void *handle);

// What has been handed over is not handed over again.
static inline void sc_forget_diags(Sc *sc) {
  sc->diags = NULL;
  sc->diag_end = &sc->diags;
  sc->errors = 0;
}

// Takes options in over the defaults in `to`, as far as the caller's header knew them. False: they
// do not say how far.
#define TAKE_OPTIONS(to, from) \
  sc_take_options((to), sizeof *(to), (from), (from) ? (from)->size : 0)
static inline bool sc_take_options(void *to, size_t known, const void *from, size_t size) {
  if (from && size < sizeof size) return false;
  if (from) memcpy(to, from, size < known ? size : known);
  return true;
}

// Does a struct that is to be filled in say how far the caller's header knew it?
#define SAYS_SIZE(to) ((to) && (to)->size >= sizeof(to)->size)

// Copies a struct out that begins with the `size` that the caller's header knew.
#define COPY_OUT(to, from)                                               \
  do {                                                                   \
    size_t had_ = (to)->size;                                            \
    (from)->size = had_;                                                 \
    memcpy((to), (from), had_ < sizeof *(from) ? had_ : sizeof *(from)); \
  } while (0)

static inline bool sc_good_arguments(const Arguments *a) {
  return (a->tensor || !a->tensors) && (a->scalar || !a->scalars) && a->tensors < UINT32_MAX;
}

// elements.c: a tensor of the host that can be written, whatever its strides.
bool sc_good_tensor(const schedc_tensor *t);
schedc_value_type sc_value_type(u8 kind);  // of a ValueKind

void sc_source_keep(const schedc_source *source);

// The values of the dimensions that the caller names, by number, and which these are. arg: i32
// scalars may stand among them, and their values go there; else NULL. SCHEDC_EARG: the kernel does
// not have all of them.
schedc_status sc_find_dims(Sc *sc, const Kernel *k, const schedc_dim *dims, size_t n, i64 **value,
                           bool **known, double *arg);
// Has each a name, and a param a value?
bool sc_good_dims(const schedc_dim *dims, size_t n);
bool sc_good_params(const schedc_param *params, size_t n);

// A caller's build options, taken in, as the library's.
BuildOptions sc_building(const schedc_build_options *options);

// launch.c: schedc_load in two steps. Building needs no GPU; what it makes is to be unloaded, also
// where it fails. Starting is on the current CUDA context, once.
schedc_status sc_loaded_build(schedc_loaded **out, schedc_context *context,
                              const schedc_kernel *kernel, const BuildOptions *building);
schedc_status sc_loaded_start(schedc_context *context, schedc_loaded *l);

// space.c: of what it is the space.
const schedc_source *sc_space_source(const schedc_space *space);
const Choice *sc_space_choice(const schedc_space *space);  // with the params that are fixed
// Are these the space's params of the problem, with its values?
bool sc_space_is_problem(const schedc_space *space, const schedc_param *params, size_t n);

// tuner.c: as it was made.
const schedc_tuner_options *sc_tuner_options(const schedc_tuner *tuner);
const schedc_space *sc_tuner_space(const schedc_tuner *tuner);
uint32_t sc_tuner_default(const schedc_tuner *tuner);  // its program; UINT32_MAX: there is none
// So many get into the finals, besides the default.
void sc_tuner_finalists(schedc_tuner *tuner, uint32_t most);

schedc_status sc_write(schedc_writer writer, void *user, const Str *text);

#endif
