// launcher.h - the types of launcher.c, which explains them. A table says what a kernel or sequence
// needs of a launch; it is constant. Spans are parts of the table's arrays.
#ifndef SCL_H
#define SCL_H

#ifndef SCHEDC_LAUNCHER
#include "compiler/facts/facts.h"
#include "runtime/data/value.h"

typedef Interval SclInterval;
#define scl_interval(op, a, b) sc_interval((ExprOp)(op), a, b)
#define scl_interval_both sc_interval_both
#define SCL_FAR SC_FAR
#endif

enum {
  SCL_RANK = 6,         // of a tensor, at most
  SCL_ALIGN = 256,      // of a workspace, and of each tensor and counter in it
  SCL_STREAMS = 256,    // that have a tile counter each …
  SCL_CAPTURES = 3840,  // … and launches that do, while they are captured
  SCL_COUNTER_BYTES = 4,
  SCL_ZEROS_AT = 0,   // in the memory of a kernel: what stands for elements that are read, …
  SCL_SINK_AT = 256,  // … that are written, where a tensor has none
  SCL_COUNTERS_AT = 512,
  SCL_LISTS = 4,        // that are checked by one launch, at most
  SCL_LIST_PART = 1024  // elements for each of its CTAs, if there are multiprocessors enough
};

typedef struct SclSpan {
  unsigned from, to;
} SclSpan;

// Tensors of the caller's come first, then workspaces, those that begin as zeros before the others.
typedef enum SclKind { SCL_GIVEN, SCL_ZEROED, SCL_WORKSPACE } SclKind;
typedef struct SclTensor {
  SclKind kind;
  unsigned rank, bytes;    // bytes of an element
  unsigned dim[SCL_RANK];  // nodes
} SclTensor;

// What a launch takes for granted of a tensor: `align` divides its address and its strides in
// bytes.
typedef struct SclUse {
  unsigned tensor, align;
  int copied, written;  // copied: by the copy engine
} SclUse;

// A tensor map: five dimensions, innermost first, each one of the tensor's or one of these.
enum { SCL_ONE = -1, SCL_PANEL_COLUMN = -2, SCL_PANEL = -3 };
typedef struct SclMap {
  unsigned tensor;
  int written;        // by what the launch runs
  int type, swizzle;  // as cuTensorMapEncodeTiled has them
  unsigned panel;     // elements of a row of a panel
  int dim[5];
  unsigned box[5];
} SclMap;

// What goes where in the block of arguments of a kernel.
typedef enum SclSlotKind {
  SCL_PUT_ADDRESS,  // of tensor `ref`
  SCL_PUT_STRIDE,   // … its stride along `dim`
  SCL_PUT_DIM,      // 32 bits, as the next two
  SCL_PUT_I32,      // scalar `ref`
  SCL_PUT_F32,
  SCL_PUT_COUNTER,  // address of a dynamic grid's tile counter
  SCL_PUT_TURN,     // … of the counters of turn `ref`
  SCL_PUT_WAITS,    // … of what tells of waits that are given up, `ref` bytes into it
  SCL_PUT_TILES     // 32 bits
} SclSlotKind;
typedef struct SclSlot {
  SclSlotKind kind;
  unsigned ref, dim, offset;
} SclSlot;

typedef struct SclAxis {
  unsigned extent, section;  // nodes; section 0: none
  unsigned cluster;          // CTAs of a cluster along it
} SclAxis;

// A turn over CTAs has a counter for each key and each place of the grid along the other axes.
typedef struct SclTurn {
  unsigned keys, axis;  // a node, 0: one; of all axes of the table
} SclTurn;

typedef struct SclFunction {
  const char *name;
  unsigned threads, shared, cluster;
  int limited;  // the grid has no more clusters than run at once
} SclFunction;

// An integer of a kernel's code, or what compares two; it comes behind its operands. AXIS: `a` is
// its extent, `number` what a tile's place may be more than that; LOOP: `a` and `b` are its bounds;
// INST and IDX: `number` is the largest; SUM: it is how many are added; LOAD: an element, which is
// at least `a` and less than `b` if that is declared (else both are 0), and is uniform if `number`
// is 1.
typedef struct SclTerm {
  SclOp op;
  int integer, compares;  // it is one; it compares two
  int elements;           // it is made of elements of tensors
  unsigned operands, a, b, c;
  int64_t number;
} SclTerm;

// What a term may be, if that is known; and a sum of what it is made of, whatever their signs.
typedef struct SclRange {
  SclInterval is;
  int known;
  int64_t terms;
} SclRange;

// What is promised of a list: elements from `least` on and below `end` (nodes; end 0: nothing is
// said of that), each no less than the one before it.
typedef struct SclPromise {
  unsigned tensor, least, end;
  int rising;
} SclPromise;
typedef struct SclCheck {  // a launch of the function that looks
  unsigned lists;
  SclPromise list[SCL_LISTS];
} SclCheck;

// Its argument, as compiler/emit/lists.c declares it.
typedef struct SclList {
  CUdeviceptr at;
  int64_t elements, extent[SCL_RANK], stride[SCL_RANK], least, end;
  int rank, rising;
} SclList;
typedef struct SclLists {
  SclList list[SCL_LISTS];
  int lists;
} SclLists;

typedef struct SclStep {  // a launch, behind those that check its lists
  unsigned function;
  SclSpan use, map, slot, axis, turn, term, check;
  unsigned block;  // where its arguments are in the blocks of all steps
} SclStep;

typedef struct SclTable {
  const SclNode *node;  // 0 is no node
  unsigned nodes, dims;
  const unsigned *require;  // nodes
  unsigned requires_;
  const SclTensor *tensor;
  unsigned tensors, given;
  const SclUse *use;
  const SclMap *map;
  const SclSlot *slot;
  const SclAxis *axis;
  const SclTurn *turn;
  const SclFunction *function;
  unsigned functions;
  const SclTerm *term;  // 0 is none
  unsigned terms;
  const SclCheck *check;
  unsigned checks, checker;  // checker: the function
  const SclStep *step;
  unsigned steps, maps, turns, block_bytes;  // of all steps
  int dynamic;                               // some grid is
} SclTable;

// A kernel that is loaded; its functions are beside it.
typedef struct SclLoaded {
  CUfunction function;
  unsigned room;  // clusters that the GPU holds at once
} SclLoaded;
typedef struct SclStream {
  unsigned long long id, used;  // when last; 0: never
} SclStream;
typedef struct SclKernel {
#ifndef SCHEDC_LAUNCHER
  const struct Driver *driver;
#endif
  CUmodule module;
  CUdeviceptr memory;  // zeros, a place for writes that mean nothing, counters
  CUdeviceptr waits;   // the library's
  int sms;
  unsigned captured;  // launches, so far
  unsigned long long clock;
  SclStream stream[SCL_STREAMS];
} SclKernel;

// A launch as its caller has it: tensors, in the table's order, without workspaces.
typedef struct SclGiven {
  CUdeviceptr at;
  const int64_t *stride;  // elements
} SclGiven;
typedef struct SclCall {
  const SclGiven *tensor;
  const int64_t *dim;
  const double *scalar;
  CUdeviceptr workspace;
  size_t workspace_bytes;
  CUstream stream;
} SclCall;

// What dimensions, strides and scalars come to; addresses may still change.
typedef struct SclPlan {
  CUtensorMap *map;          // of all steps
  CUdeviceptr *encoded;      // the address in each; 0: none yet
  CUdeviceptr *address;      // of each tensor
  int64_t *extent, *stride;  // of each tensor, SCL_RANK of them
  size_t *workspace_at;      // where each workspace begins in the caller's memory for all
  size_t *room;              // how many bytes each workspace has
  size_t *turn;              // where the counters of each turn are in it
  size_t zeroed, bytes;      // the first part is set to 0 by each launch; all
  SclValue *value;           // of each node
  SclRange *range;           // of each term
  SclLists *lists;           // of each check
  int64_t *tiles;            // of each step; 0: there is nothing to do
  void **param;              // of one step
  unsigned char *block;      // of all steps
  unsigned *ctas;            // of each step
  unsigned char *empty;      // tensors without elements
} SclPlan;

typedef struct SclJob {
  const SclTable *table;
  SclKernel *kernel;
  SclLoaded *function;
  const SclCall *call;
  SclPlan *plan;
} SclJob;

// Why nothing is launched.
typedef enum SclWhy {
  SCL_FINE,
  SCL_BAD_DIM,      // at: a dimension
  SCL_BAD_REQUIRE,  // at: a require
  SCL_NO_DATA,      // at: a tensor, as in the next seven
  SCL_BAD_ADDRESS,  // … whose address is not aligned
  SCL_BAD_STRIDE,   // … whose stride along `dim` is not
  SCL_NEGATIVE_STRIDE,
  SCL_LAST_STRIDE,      // is not 1
  SCL_FAR_STRIDE,       // 2^40 bytes or more
  SCL_SHARED_ELEMENTS,  // it is written, and by its strides elements share memory
  SCL_NO_SIZE,   // an extent has no value, or less than 0; a workspace, or a list that is checked,
                 // is too large
  SCL_NO_RANGE,  // at: a tensor with elements, in whose range there are none
  SCL_NO_MAP,    // at: a map; error
  SCL_LARGE_GRID,     // step
  SCL_BAD_SECTION,    // at: an axis
  SCL_LARGE_TERM,     // at: a term, which may not fit in 32 bits
  SCL_LARGE_TURN,     // at: a turn
  SCL_NO_WORKSPACE,   // NULL, or too small
  SCL_BAD_WORKSPACE,  // not aligned
  SCL_NO_FUNCTION,    // at: a function; error, as from here on
  SCL_NO_CLUSTER,     // at: a function of which no cluster fits on the GPU
  SCL_NO_MEMORY,
  SCL_DRIVER
} SclWhy;
typedef struct SclRefusal {
  SclWhy why;
  CUresult error;  // the driver's
  unsigned step, at, dim;
} SclRefusal;

static inline SclRefusal scl_refuse(SclWhy why, unsigned step, unsigned at, unsigned dim) {
  SclRefusal r;
  r.why = why;
  r.error = CUDA_SUCCESS;
  r.step = step;
  r.at = at;
  r.dim = dim;
  return r;
}

static inline SclRefusal scl_fine(void) { return scl_refuse(SCL_FINE, 0, 0, 0); }

static inline SclRefusal scl_driver(SclWhy why, unsigned at, CUresult e) {
  SclRefusal r = scl_refuse(e ? why : SCL_FINE, 0, at, 0);
  r.error = e;
  return r;
}

// launchrange.c
SCL_API SclRefusal scl_check_ranges(const SclJob *j, unsigned step);

// launchplan.c
SCL_API size_t scl_lay_out(const SclTable *t, SclPlan *p, void *room);
SCL_API SclRefusal scl_size(const SclJob *j);
SCL_API SclRefusal scl_check_strides(const SclJob *j, const SclUse *use);
SCL_API SclRefusal scl_make_plan(const SclJob *j);

// launcher.c
SCL_API SclRefusal scl_check_address(const SclJob *j, const SclUse *use);
SCL_API SclRefusal scl_put_addresses(const SclJob *j);
SCL_API CUresult scl_enqueue(const SclJob *j);
SCL_API CUresult scl_zero(SclKernel *k, const SclTable *t);
SCL_API SclRefusal scl_load(SclKernel *k, SclLoaded *loaded, const SclTable *t, const void *code);
SCL_API void scl_unload(SclKernel *k);

#endif
