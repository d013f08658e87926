// strip_ops.c - the loops over strips, for f32, f64, 64-bit integers and truths, and the loops that
// move strips between memory and slots, with conversion. In: pointers to values. Out: the values
// computed or moved. Strips of integers wrap on overflow; an index that overflows is still outside
// of any tensor.
#include <string.h>

#include "runtime/data/clones.h"
#include "runtime/data/mathf.h"
#include "runtime/spec/strip.h"

// ---- f32
#define R float
#define NAME(x) x##_f32
#define COLUMN(f64, f32, integer) f32
#define ADD(a, b) ((a) + (b))
#define MUL(a, b) ((a) * (b))
#include "runtime/spec/strip_reals.inc"

// Gathers elements that are `stride` apart.
#define PICK(T) \
  for (size_t i = 0; i < n; i++) ((T *)to)[i] = ((const T *)from)[(i64)i * stride];
static void pick(u8 bytes, void *to, const char *from, i64 stride, size_t n) {
  switch (bytes) {
    case 1: PICK(u8) break;
    case 2: PICK(u16) break;
    case 4: PICK(u32) break;
    default: PICK(u64) break;
  }
}
#undef PICK

// Scatters elements so that they are `stride` apart.
#define PUT(T) \
  for (size_t i = 0; i < n; i++) ((T *)to)[(i64)i * stride] = ((const T *)from)[i];
static void put(u8 bytes, char *to, i64 stride, const void *from, size_t n) {
  if (stride == 1) {
    memmove(to, from, n * bytes);  // a map that copies a place to itself
    return;
  }
  switch (bytes) {
    case 1: PUT(u8) break;
    case 2: PUT(u16) break;
    case 4: PUT(u32) break;
    default: PUT(u64) break;
  }
}
#undef PUT

static u8 store_bytes(u8 store) { return store == STORE_F64 ? 8 : sc_elem[store].bytes; }

static void load_f32(u8 store, void *to, const char *from, i64 stride, size_t n) {
  u64 side[STRIP];
  if (stride != 1) {
    pick(store_bytes(store), side, from, stride, n);
    from = (const char *)side;
  }
  if (store != STORE_F64) {
    sc_load_elems((Elem)store, to, from, n);
    return;
  }
  for (size_t i = 0; i < n; i++) ((float *)to)[i] = (float)((const double *)from)[i];
}

static void save_f32(u8 store, u8 elem, char *to, i64 stride, const void *from, size_t n) {
  float rounded[STRIP];
  u64 side[STRIP];
  if (elem != EL_F32 && elem != store) {
    memcpy(rounded, from, n * sizeof *rounded);
    sc_round_all((Elem)elem, rounded, n);
    from = rounded;
  }
  if (store == STORE_F64) {
    for (size_t i = 0; i < n; i++) ((double *)side)[i] = ((const float *)from)[i];
    from = side;
  } else if (store != EL_F32) {
    sc_store_elems((Elem)store, side, from, n);
    from = side;
  }
  put(store_bytes(store), to, stride, from, n);
}

SC_CLONES static void of_int_f32(void *restrict out, const void *pa, const void *pb, const void *pc,
                                 unsigned ones, size_t n) {
  const i64 *restrict p = pa;
  (void)pb, (void)pc, (void)ones;
  for (size_t i = 0; i < n; i++) ((float *)out)[i] = (float)p[i];
}

const Reals sc_reals32 = {
    LOOPS, .store = EL_F32, .of_int = of_int_f32, .load = load_f32, .save = save_f32,
};

// ---- f64: transcendental functions are libm's
#undef R
#undef NAME
#undef COLUMN
#define R double
#define NAME(x) x##_f64
#define COLUMN(f64, f32, integer) f64
#include "runtime/spec/strip_reals.inc"

static void load_f64(u8 store, void *to, const char *from, i64 stride, size_t n) {
  float narrow[STRIP];
  if (store == STORE_F64) {
    pick(8, to, from, stride, n);
    return;
  }
  load_f32(store, narrow, from, stride, n);
  for (size_t i = 0; i < n; i++) ((double *)to)[i] = narrow[i];
}

// Saves exact values: a specification in f64 rounds nothing, whatever type a value is declared to
// have.
static void save_f64(u8 store, u8 elem, char *to, i64 stride, const void *from, size_t n) {
  (void)elem;
  if (store == STORE_F64) {
    put(8, to, stride, from, n);
    return;
  }
  for (size_t i = 0; i < n; i++)
    sc_set_elem((Elem)store, to, (i64)i * stride, ((const double *)from)[i]);
}

static void of_int_f64(void *restrict out, const void *pa, const void *pb, const void *pc,
                       unsigned ones, size_t n) {
  const i64 *restrict p = pa;
  (void)pb, (void)pc, (void)ones;
  for (size_t i = 0; i < n; i++) ((double *)out)[i] = (double)p[i];
}

const Reals sc_reals64 = {
    LOOPS, .store = STORE_F64, .of_int = of_int_f64, .load = load_f64, .save = save_f64,
};

// ---- integers
#undef R
#undef NAME
#undef COLUMN
#undef ADD
#undef MUL
static inline i64 wrapped_add(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
static inline i64 wrapped_sub(i64 a, i64 b) { return (i64)((u64)a - (u64)b); }
static inline i64 wrapped_mul(i64 a, i64 b) { return (i64)((u64)a * (u64)b); }
#define EXACT(e) (e)
#define CHECKED(op, x, y) wrapped_##op(x, y)
#define DIVIDES(e) (b == 0 || (b == -1 && a == INT64_MIN) ? 0 : (e))
#define INTEGER
#define R i64
#define NAME(x) x##_int
#define COLUMN(f64, f32, integer) integer
#define ADD(a, b) wrapped_add(a, b)
#define MUL(a, b) wrapped_mul(a, b)
#include "runtime/spec/strip_reals.inc"

static void load_int(u8 store, void *to, const char *from, i64 stride, size_t n) {
  if (store == STORE_F64) {
    for (size_t i = 0; i < n; i++) ((i64 *)to)[i] = (i64)((const double *)from)[(i64)i * stride];
    return;
  }
  for (size_t i = 0; i < n; i++) ((i64 *)to)[i] = ((const i32 *)from)[(i64)i * stride];
}

static void save_int(u8 store, u8 elem, char *to, i64 stride, const void *from, size_t n) {
  (void)elem;
  const i64 *p = from;
  for (size_t i = 0; i < n; i++) {
    if (store == STORE_F64) ((double *)to)[(i64)i * stride] = (double)p[i];
    else ((u32 *)to)[(i64)i * stride] = (u32)(u64)p[i];
  }
}

const Reals sc_ints = {LOOPS, .store = EL_COUNT + 1, .load = load_int, .save = save_int};

// ---- truths
#undef R
#undef NAME
#define R u8
#define NAME(x) x##_bool
#define TRUTHS(id, text, binds, arity, e, c) LOOP_##arity(id, R, e)
#include "compiler/ir/expr.def"

StripFn *const sc_truths[X_COUNT] = {
#define TRUTHS(id, text, binds, arity, e, c) [X_##id] = NAME(id),
#include "compiler/ir/expr.def"
};
