// run.h - what running a kernel needs: element conversions, tensors bound to a kernel, evaluation
// of expressions and maps, the specification, inputs and tolerances, the interpreter.
#ifndef SC_RUN_H
#define SC_RUN_H

#include "compiler/ir/ir.h"

// ---- float.c
// Round to nearest even. 16-bit overflow goes to infinity; 8-bit saturates to the largest finite
// value (NaN stays NaN), as cvt.rn.satfinite does (PTX ISA 9.0, cvt).
u16 sc_to_f16(float v);
u16 sc_to_bf16(float v);
u8 sc_to_e4m3(float v);
u8 sc_to_e5m2(float v);
float sc_of_f16(u16 v);
float sc_of_bf16(u16 v);
float sc_of_e4m3(u8 v);
float sc_of_e5m2(u8 v);
// to the element type and back; EL_F32: v
float sc_round(Elem elem, float v);
void sc_round_all(Elem elem, float *v, size_t n);  // the same, vectorised
// n elements to f32 (EL_I32: bits kept)
void sc_load_elems(Elem elem, float *to, const void *from, size_t n);
// converting; EL_I32: bits kept
void sc_store_elems(Elem elem, void *to, const float *from, size_t n);
double sc_get_elem(Elem elem, const void *at, i64 index);  // one element's value
// one element; double rounds once
void sc_set_elem(Elem elem, void *at, i64 index, double v);

// ---- given.c
// Tensors and scalars of a caller.
typedef struct Arguments {
  const schedc_tensor *tensor;
  size_t tensors;
  const schedc_scalar *scalar;
  size_t scalars;
} Arguments;
// The buf of the tensor of this name, or, if that is NULL, at this place among the arguments;
// SC_NONE: there is none.
u32 sc_given_tensor(const Kernel *k, const char *name, size_t place);
// Why a launch takes nothing of that name; NULL: no guard leaves it out.
const char *sc_why_absent(const Kernel *k, const char *name);
// By buf: which tensor is given for it, or SC_NONE. What is unknown, given twice or missing is
// reported.
void sc_given_tensors(Sc *sc, const Kernel *k, const Arguments *given, u32 *which);
// By scalar argument: its value, or NaN: the default. What is unknown or given twice is reported.
void sc_given_scalars(Sc *sc, const Kernel *k, const Arguments *given, double *value);

// ---- binding.c
// Tensors and scalars as the caller gave them, matched to a kernel and checked: types, ranks,
// shapes, contiguous last dimension, `require`s. Errors name the tensor.
typedef struct TensorRef {
  char *at;                 // NULL for bufs that are no tensors
  i64 stride[SC_MAX_RANK];  // elements
  i64 shape[SC_MAX_RANK];
} TensorRef;
typedef struct Binding {
  const Kernel *k;
  i64 *dim;        // value of each launch dimension
  double *arg;     // value of each scalar argument
  TensorRef *buf;  // indexed by buf number
  // what a specification reads, if that differs: inout tensors before the run; or NULL
  const TensorRef *before;
} Binding;
Binding *sc_bind_tensors(Sc *sc, const Kernel *k, const Arguments *given);
// Bytes of the elements of a tensor that is bound.
double sc_element_bytes(const Binding *b, u32 buf);
// The binding of one launch of a sequence; workspaces must be allocated in b->buf.
Binding *sc_bind_launch(Sc *sc, const Binding *b, const Launch *l);
// How many bytes a tensor takes where it lies, from its first element to its last; 0: it has none.
size_t sc_tensor_bytes(const Buf *tensor, const TensorRef *at);
// apart.c: does no output of the caller's, in host memory, share elements with another tensor?
bool sc_outputs_apart(Sc *sc, const Binding *b);
// ranged.c: are the elements of inputs, in host memory, what their declarations say? (Those whose
// address is NULL are left out.)
bool sc_elements_fit(Sc *sc, const Binding *b);
// The same, and of a sequence also what its kernels say of their inputs.
bool sc_call_fits(Sc *sc, const Binding *b);
// What drawn elements may be under these dimensions and scalars (NaN: the default, which is put in
// its place): as is declared; if nothing is, or if it takes others to know, from 0 to 15.
void sc_element_range(Sc *sc, const Kernel *k, const i64 *dim, const bool *known, double *arg,
                      u32 buf, i64 *least, i64 *end);
// The shape of a tensor under these dimensions and scalars, as above; false if it needs others, or
// overflows.
bool sc_tensor_shape(Sc *sc, const Kernel *k, const i64 *dim, const bool *known, double *arg,
                     u32 buf, i64 *shape);

// ---- eval.c
// Uniform expressions. Values are memoised until what they depend on changes (env_touch).
typedef struct Env {
  const Kernel *k;
  const Binding *b;
  i64 axis[SC_MAX_AXES];
  i64 inst;    // of the role that evaluates
  i64 *loop;   // value of each loop variable
  u32 *stamp;  // per expression: the epoch of its memo
  double *real;
  i64 *integer;  // integers and truths
  u8 *fails;     // FAILS_*: of the value, and of those that it is made of
  Xid *path;     // scratch of the evaluation
  u32 epoch;
  bool wide;  // reals in f64: the exact specification
  // an integer overflowed, was divided by zero, or an element outside its tensor was read
  bool bad;
  Xid failed;  // in this value, if it is none of an element
  // … but of a statement's elements others know which of them need what was divided or read
  // (Map.fails)
  bool of_elements;
} Env;
enum { FAILS_IF_NEEDED = 1, FAILS_ALWAYS = 2 };
void env_init(Sc *sc, Env *e, const Kernel *k, const Binding *b);
void env_touch(Env *e);  // a loop variable, the tile or the instance changed
// Integer overflow saturates, division by zero gives 0, an element outside gives 0; each sets
// e->bad.
i64 env_int(Env *e, Xid x);
double env_real(Env *e, Xid x);  // f32 arithmetic, widened (e->wide: f64)
bool env_bool(Env *e, Xid x);
// The innermost `let`, of the kernel or the role, that has made e->failed fail; NULL: none has.
const Let *env_failed_let(const Env *e, u32 role);

// ---- strip.c
// A map compiled to a program over strips: each node of its expression works on a run of
// consecutive values of one index variable, in loops that the C compiler vectorises. Immutable;
// shared by threads.
typedef struct Strip Strip;
typedef struct StripMaker StripMaker;
StripMaker *sc_strip_maker(Sc *sc, const Kernel *k);  // for all maps of a kernel
Strip *sc_strip(StripMaker *mk, const Map *m);

// Where an operand's elements are: element (i0, i1, …) is at `at` + sum of i_v * stride[v].
// Register tiles and stages are held as f32 (i32 tiles as i32) whatever their element type; tensors
// as they are.
typedef struct Operand {
  void *at;
  Elem store;  // how it is held
  Elem elem;   // what writes round to
  i64 stride[SC_MAX_VARS];
  // where variable v is inside: outside reads 0 and is not written
  i64 lo[SC_MAX_VARS], hi[SC_MAX_VARS];
  i64 part;  // partial: distance between parts (4 of them); else 0
  i64 pos_stride[SC_MAX_RANK], pos_dim[SC_MAX_RANK];  // of computed positions (specifications only)
} Operand;

// Operands by the kernel's view number: op[view] for each view that the map mentions. The caller
// sets the range of rows: variable 0 runs over [row0, row1) only (whole extent: 0, extent).
// scratch: sc_strip_scratch(s) bytes, 64-byte aligned, one per thread.
size_t sc_strip_scratch(const Strip *s);
// Told of what a map with a condition writes, box by box: all values of the output variables that
// lie in [from[v], to[v]).
typedef struct Watch {
  void (*wrote)(void *user, const i64 *from, const i64 *to);
  void *user;
} Watch;
void sc_strip_run(const Strip *s, Env *env, const Operand *op, i64 row0, i64 row1, void *scratch,
                  const Watch *watch);  // NULL: nobody is
// A vote's condition: does it hold for any row of [row0, row1)?
bool sc_strip_any(const Strip *s, Env *env, const Operand *op, i64 row0, i64 row1, void *scratch);
// tensor += x (map.add); plain read-modify-write, the caller serialises.
void sc_strip_add(const Strip *s, Env *env, const Operand *op, i64 row0, i64 row1, void *scratch,
                  const Watch *watch);

// ---- spec.c
// How much of a specification is evaluated. The indices that all its equations share (of attention:
// batch, head, row) are one loop; each limit that is not 0 holds its passes to a sample of them.
typedef struct Sample {
  u64 places;      // passes
  u64 operations;  // if all of it would take more than these: as many passes as fit in them
  schedc_progress progress;  // NULL: it is not told of
  void *user;
} Sample;
// An output's values: `n` boxes of `extent` elements each, row-major; box i begins at the element
// origin[i]. A whole output is one box.
typedef struct Boxes {
  double *at;
  i64 n;
  i64 extent[SC_MAX_RANK];
  i64 (*origin)[SC_MAX_RANK];
} Boxes;
// Evaluates the specification in f64, or, if not `exact`, in f32 with each named value rounded to
// its element type: the `pt` of FlashAttention's tests. Out: the outputs by buf number, in sc's
// arena. sample NULL: all of them. Intermediates are kept only for the outer indices that all
// equations share. Cost is linear in the number of terms. longest (NULL: not wanted): the terms of
// its longest sum.
schedc_status sc_spec(Sc *sc, const Kernel *k, const Binding *b, bool exact, unsigned threads,
                      const Sample *sample, Boxes *out, i64 *longest);
// sample.c: draws n of the passes of a loop over extent[0] x extent[1] …: ascending numbers,
// row-major, always the same for the same arguments. The first and the last pass and those beside
// the edges of tiles (tile[i] indices long) come first. Returns how many there are, at most n.
size_t sc_draw_places(const i64 *extent, const i64 *tile, u32 depth, size_t n, i64 *to);
// How far apart the tiles of an output are along a dimension; a multiple of it for every schedule,
// if unknown.
i64 sc_tile_length(const Kernel *k, u32 buf, u32 dim);
// tolerance.c: compares each output with sc_spec's two evaluations, in FlashAttention's
// self-scaling form. What a sample leaves out is searched for NaN.
schedc_status sc_compare(Sc *sc, const Kernel *k, const Binding *b, unsigned threads,
                         const Sample *sample, schedc_error *errors);

// narrow.c: by buf, what happens on the way to it.
enum {
  ROUNDED_BY_KERNEL = 1,  // a value is rounded to a narrow type
  ROUNDED_BY_SPEC = 2,    // the specification names one that is
  MAY_OVERFLOW = 4        // the kernel keeps one as f16, which ends at 65504
};
u8 *sc_rounded(Sc *sc, const Kernel *k);

// order.c: by buf, whether its bits may differ from run to run.
bool *sc_unordered(Sc *sc, const Kernel *k);

// walk.c: tells of the operations of a kind that a role runs in the tile that `env` says, in their
// order.
typedef struct TileWalk {
  Env env;
  void (*met)(void *user, const Ins *ins);
  void *user;
  u64 steps;  // how many operations it may take
  const Code *code;
  Op op;
  bool *inside;  // by operation: is one of the kind between it and its end?
} TileWalk;
void sc_walk_role(Sc *sc, TileWalk *w, const Code *code, Op op);
void sc_walk_tile(TileWalk *w);

// fills.c: `out` has room for each ring of the kernel, or of each launch's.
schedc_status sc_count_fills(Sc *sc, const Kernel *k, const Binding *b, schedc_fills *out);

// work.c: what a launch of a kernel or sequence takes, but for `size`.
schedc_status sc_count_work(Sc *sc, const Kernel *k, const Binding *b, schedc_work *work);
// Bytes that must be moved at least: those of the tensors, once to read and once to write them.
double sc_moved_bytes(const Binding *b, bool workspaces);

// ---- extent.c
typedef struct Extent {
  const i64 *shape, *stride;  // stride NULL: contiguous
  size_t rank;
} Extent;
size_t sc_elements(const Extent *x);
// How many elements, from each multiple of that number on, lie one behind the other: all of them,
// those of a row, or one.
size_t sc_run_length(const Extent *x);
// From the first element to the last, with what lies between them, in elements.
size_t sc_storage(const Extent *x);
// Where element i is, in elements.
i64 sc_where(const Extent *x, size_t i);

// SplitMix64 (Steele, Lea and Flood, 2014).
#define SC_RANDOM_STEP 0x9e3779b97f4a7c15u
static inline u64 sc_random(u64 *state) {
  u64 z = *state += SC_RANDOM_STEP;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

// ---- input.c
typedef enum InputKind {
  INPUT_NORMAL,
  INPUT_OUTLIERS,
  INPUT_LARGE,
  INPUT_EQUAL,
  INPUT_SPIKE,
  INPUT_SINK,
  INPUT_RAMP,
  INPUT_RAMP_DOWN,
  INPUT_COUNT
} InputKind;
// for --help
extern const char *const sc_input_name[INPUT_COUNT], *const sc_input_what[INPUT_COUNT];
void sc_fill_input(Elem elem, void *at, const Extent *extent, InputKind kind, u64 seed);
// Integers from `least` to below `end`; rising: from the one to the last, by steps of which some
// are 0. Of an empty range all are `least`.
void sc_fill_integers(void *at, const Extent *extent, i64 least, i64 end, bool rising, u64 seed);
// progress: NULL, or asked now and then; false: it asked to stop
bool sc_fill_all_nan(Elem elem, void *at, const Extent *extent, schedc_progress progress,
                     void *user);
void sc_fill_nan(Elem elem, void *at, size_t n);  // NaN (integers: INT32_MIN)

// ---- npy.c: NumPy's .npy format 1.0 to 3.0, C order.
typedef struct Npy {
  char descr;  // kind: 'f', 'i', 'u'
  u8 bytes;    // of an element
  u8 rank;
  i64 shape[SC_MAX_RANK];
  const void *data;
  size_t size;  // bytes of data
} Npy;
// The header of a file that begins with these n bytes (of which it may have 64 KiB). Returns NULL,
// or what is wrong.
const char *sc_npy_head(Npy *out, const void *image, size_t n);
extern const char sc_npy_short[];  // what is wrong if the data that it tells of is not all there
// Into a tensor of the same shape, whose elements are as wide, or f32 for f64, i32 for i64.
void sc_npy_copy(const Npy *npy, Elem elem, void *to, const Extent *extent);
bool sc_npy_fits_i32(const Npy *npy);  // all integers of 64 bits?
size_t sc_npy_header(char *to, size_t room, char descr, u8 bytes, const i64 *shape, size_t rank);

// ---- cpu/machine.c: the interpreter, of one kernel.
schedc_status sc_interpret(Sc *sc, const Kernel *k, const Binding *b,
                           const schedc_run_options *options);

#endif
