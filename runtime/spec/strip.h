// strip.h - a compiled map, between strip.c (which makes it), strip_run.c (which runs it) and
// strip_ops.c (the loops it is made of). Specifications use it too, in f64 or f32.
//
// A step computes one node of the map's expression for a strip: up to STRIP consecutive values of
// one index variable `x`, all others fixed (x < 0: a single value). Each node has one slot for its
// values, and stands in the list that runs as seldom as what it depends on allows:
//
//   the run       uniform nodes (from Env), then for each strip of the vector variable v
//     level[0]      nodes of v alone, and of nothing
//     level[n]      … of v and the n outermost other output variables: once per value of the n-th
//     parts         nodes that differ from part to part of a partial tile
//   a reduction   over r of a body that also depends on the strip's variable p: a Nest
//     ahead         nodes of r but not p, as strips over r
//     body          nodes of both: strips over r for each p (dot products), or strips over p for
//                   each r (sums of rows), whichever finds more of its loads contiguous
//
// What a nest needs of neither is computed outside of it: exp(S[i,j] - L[i]) * V[j,d] summed over j
// takes one exp for each (i, j), whatever the extent of d.
#ifndef SC_STRIP_H
#define SC_STRIP_H

#include "runtime/data/tensorsum.h"
#include "runtime/run.h"

enum { STRIP = 256, LANES = 16, PARTS = 4 };
enum { STORE_F64 = EL_COUNT };  // Operand.store besides Elem: f64

// Where a step finds an operand: a strip over its own variable, or one value (of a strip over the
// looped variable `var`, at its current place). Slot 0: no operand.
typedef struct Ref {
  u16 slot;
  i8 var;    // one: the variable whose strip it is taken from; -1: a single value
  u8 bytes;  // of a value
  bool one;
  bool part;  // the current part's values
} Ref;

// out[i] = op(a[i], b[i], c[i]); bit 0, 1, 2 of ones: a, b, c is one value for all i.
typedef void StripFn(void *restrict out, const void *a, const void *b, const void *c, unsigned ones,
                     size_t n);

typedef struct Step {
  u8 op;  // ExprOp
  u8 ty;  // of the result
  i8 x;   // the strip's variable; -1: one value
  u16 slot;
  Ref a, b, c;
  u32 ref;  // LOAD: site; SUM, RMAX, RMIN: nest; IDX: variable
  StripFn *fn;
} Step;
typedef VEC(Step) Steps;

// How a view finds its elements: variables that move it by the operand's strides, and positions
// that are computed (specifications only).
typedef struct Site {
  u32 view;
  u8 vars;  // bit v: variable v, by stride
  bool partial;
  Ref pos[SC_MAX_RANK];
} Site;

typedef struct Nest {
  u8 op, ty;
  u8 r;         // the reduced variable
  i8 p;         // the variable of the strip whose values it computes; -1: one value
  bool dot;     // strips over r (then one value of p at a time)
  bool planes;  // the result is four parts
  bool cores;   // a dot product as tensor cores have it: `sum` in lane 0
  TensorSum sum;
  Steps ahead, body;
  Ref value;  // what is reduced: value, or value * factor
  Ref factor;
  u16 acc;   // slot of the accumulators
  u16 slot;  // of the result
} Nest;

typedef struct Slot {
  u32 offset;  // in the scratch
  i8 x;        // a strip over x; -1: one value
  u8 bytes;    // of a value
} Slot;

typedef struct Uniform {
  Xid e;
  u16 slot;
  u8 ty;
} Uniform;

// The reals of an engine: f32 or f64.
typedef struct Reals {
  u8 bytes;
  u8 store;            // the Operand.store that needs no conversion
  StripFn *const *op;  // by ExprOp, for operands of this kind
  StripFn *of_int;     // TOREAL
  void (*fill)(void *to, double v, size_t n);
  // Reductions by SUM, RMAX, RMIN of a, or of a * b if b is there. Lanes: value i into acc[i % 16];
  // rows: into acc[i].
  void (*lanes[3])(void *acc, const void *a, const void *b, unsigned ones, size_t n);
  void (*rows[3])(void *acc, const void *a, const void *b, unsigned ones, size_t n);
  void (*fold)(u8 op, const void *lanes, void *parts);  // 16 lanes to 4 parts
  // n values, each of 4 parts that are `plane` values apart, to one each.
  void (*join)(u8 op, void *to, const void *parts, size_t plane, size_t n);
  // At most STRIP elements `stride` apart; save rounds to `elem` on the way.
  void (*load)(u8 store, void *to, const char *from, i64 stride, size_t n);
  void (*save)(u8 store, u8 elem, char *to, i64 stride, const void *from, size_t n);
} Reals;
extern const Reals sc_reals32, sc_reals64, sc_ints;
extern StripFn *const sc_truths[X_COUNT];  // by ExprOp, for truths

struct Strip {
  const Kernel *k;
  const Map *m;
  const Reals *reals;
  i8 v;                           // the vector variable; -1: no output variables
  u8 outer[SC_MAX_VARS], outers;  // the other output variables, outermost first
  bool buffered;                  // dst is read elsewhere: written when all is computed
  bool any;                       // no dst: a condition
  Steps level[SC_MAX_VARS + 1];
  Steps parts;
  VEC(Uniform) uniform;
  VEC(Slot) slot;  // [0] is none
  VEC(Nest) nest;
  VEC(Site) site;
  Ref root, cond;
  Site dst;
  u16 temp;                // a strip of reals for conversions
  i64 cap[SC_MAX_VARS];    // the longest strip over each variable
  i64 whole[SC_MAX_VARS];  // buffered: extents
  u32 rows;                // offset of the table of slots in the scratch
  u32 buffer;              // offset of the buffer in the scratch
  u32 size;
};

static inline const Reals *sc_reals(const Strip *s, u8 ty) {
  return ty == TY_INT ? &sc_ints : s->reals;
}

// A map of a specification: positions of views may be any integer expressions, reals are `wide` or
// f32.
Strip *sc_strip_spec(StripMaker *mk, const Map *m, bool wide);

// The variable whose operand stride moves the position: it is that variable (plus a base that the
// operand knows, in kernels); -1: it is computed, or nothing.
i8 sc_plain_var(const Kernel *k, const Pos *p);

// Runs it for output variables in [from, to) only.
void sc_strip_range(const Strip *s, Env *env, const Operand *op, const i64 *from, const i64 *to,
                    void *scratch);

#endif
