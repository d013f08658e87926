// expr.h - expressions: the nodes of a kernel's hash-consed DAG and its tables, making them,
// walking over them, computing them, writing them as a person would. ir.h has the kernel that they
// belong to.
#ifndef SC_EXPR_H
#define SC_EXPR_H

#include "base/base.h"

enum { SC_MAX_RANK = 6, SC_MAX_VARS = 8, SC_MAX_ROLES = 16, SC_MAX_AXES = 4 };
#define SC_NONE UINT32_MAX

typedef enum Elem {
#define ELEM(id, text, bytes, flt, max) EL_##id = SCHEDC_##id,
#include "compiler/ir/elem.def"
  EL_COUNT
} Elem;

typedef enum ExprOp {
#define X(id, text, binds, arity, sig, slow, error, c, c_int) X_##id,
#include "compiler/ir/expr.def"
  X_COUNT
} ExprOp;

typedef enum Ty { TY_INT, TY_REAL, TY_BOOL } Ty;

// What the value of an expression depends on.
enum {
  DEP_DIM = 1,     // launch dimensions and scalar arguments
  DEP_AXIS = 2,    // the tile
  DEP_INST = 4,    // the role's instance
  DEP_LOOP = 8,    // loop variables
  DEP_IDX = 16,    // index variables that are free in it
  DEP_FETCH = 32,  // an element of an `in` tensor at a uniform position: the same in every role
  DEP_TILE =
      64  // registers, stages, tensors at varying positions, reductions (they need their map)
};

// A node of the hash-consed expression DAG: equal values have equal ids, so "the roles agree" is
// identity. An expression without DEP_IDX and DEP_TILE is uniform: a scalar.
typedef u32 Xid;  // index into Kernel.expr; 0: none
typedef struct Expr {
  u8 op;    // ExprOp
  u8 ty;    // Ty
  u8 deps;  // DEP_*
  u8 vars;  // the free index variables, bit v for variable v
  Xid a, b, c;
  u32 ref;  // what a leaf or reduction names
  union {
    i64 i;
    double f;
  } num;
} Expr;

typedef struct Kernel Kernel;

// How tightly operators bind, weakest first; a right operand binds one tighter. What is no operator
// is an atom: a leaf, a call.
enum { BIND_OR = 1, BIND_AND, BIND_NOT, BIND_EQ, BIND_LT, BIND_SUM, BIND_TERM, BIND_SIGN };
enum { BIND_ATOM = BIND_SIGN + 1, BIND_CALL, BIND_CHAIN };
enum { ERROR_PASSES, ERROR_DAMPED, ERROR_GROWS };
typedef struct ExprInfo {
  const char *text;
  u8 binds;  // BIND_*
  u8 arity;
  const char *sig;
  bool slow;
  u8 error;               // ERROR_*
  const char *c, *c_int;  // NULL: it has a form of its own, or no such operands
} ExprInfo;
typedef struct ElemInfo {
  const char *text;
  u8 bytes;
  bool flt;
  double max;
} ElemInfo;
extern const ExprInfo sc_xop[X_COUNT];
extern const ElemInfo sc_elem[EL_COUNT];
// Is what C has for an operation a function, or an operator?
static inline bool sc_is_function(const char *c) { return *c >= 'a' && *c <= 'z'; }
// Of the values that elements of this type hold.
static inline Ty sc_elem_ty(u8 elem) { return sc_elem[elem].flt ? TY_REAL : TY_INT; }
// By operation: is it a division, which a divisor of 0 leaves without a value? Is it a reduction?
static inline bool x_divides(u8 op) { return op == X_IDIV || op == X_MOD || op == X_CDIV; }
static inline bool x_reduces(u8 op) { return op >= X_SUM; }
// Is it an element of a tensor that is the same in every role?
static inline bool x_fetches(const Expr *e) { return e->op == X_LOAD && e->deps & DEP_FETCH; }
static inline bool sc_is_narrow(u8 elem) { return sc_elem[elem].bytes < 4; }

// expr.c: constructors find an equal node or make one; integers and truths fold, reals never do
// (their evaluators differ in precision). An operand of 0 gives 0: errors pass through quietly.
// Division by a constant 0, overflow and operands that do not fit the signature give 0: the caller,
// who has the span, reports.
Kernel *sc_kernel(Sc *sc);  // an empty kernel
Xid x_int(Sc *sc, Kernel *k, i64 v);
Xid x_real(Sc *sc, Kernel *k, double v);
Xid x_bool(Sc *sc, Kernel *k, bool v);
// X_DIM … X_LOAD; a LOAD's deps come from its view
Xid x_leaf(Sc *sc, Kernel *k, ExprOp op, Ty ty, u32 ref);
// converts int operands to real where signatures ask
Xid x_make(Sc *sc, Kernel *k, ExprOp op, Xid a, Xid b, Xid c);
Xid x_reduce(Sc *sc, Kernel *k, ExprOp op, u32 var, Xid body);
// takes back the expressions from n on
void x_forget(Kernel *k, u32 n);
// e is a known integer (0 is zero: none)
bool x_const_int(const Kernel *k, Xid e, i64 *out);
bool x_const_bool(const Kernel *k, Xid e, bool *out);
enum { SC_MAX_OPERANDS = 3 + SC_MAX_RANK };
// its operands, and the bases of a LOAD's positions
u32 x_operands(const Kernel *k, Xid e, Xid out[SC_MAX_OPERANDS]);

// below.c: walks over what is below some expressions, each node once a walk.
//   x_begin(&b, 0);
//   x_from(&b, root);
//   for (Xid x; (x = x_next(&b));) …
typedef struct Below {
  Sc *sc;
  const Kernel *k;
  u8 deps;         // only nodes that depend on some of these are met; 0: all
  u32 walk;        // the number of the present walk
  u32 *met, room;  // by expression: the last walk that met it
  Xid last;        // its operands are still to come
  VEC(Xid) pending;
} Below;
// for any number of walks; the kernel may grow between them
Below x_below(Sc *sc, const Kernel *k);
void x_begin(Below *b, u8 deps);  // a new walk
void x_from(Below *b, Xid root);  // adds what the walk begins from; 0: nothing
Xid x_next(Below *b);             // 0: there is no more
// nothing below what x_next gave last, unless another way leads there
void x_skip(Below *b);
// May it have another value in another CTA of the cluster?
bool x_reads_rank(Below *b, Xid root);
bool x_names_loop(Below *b, Xid root, u32 loop);  // is the loop's variable in it?

// arith.c: what operations on integers and truths, and on reals in f64, compute; comparisons are 0
// or 1. False: overflow, division by zero, or no such operation on them.
bool sc_int_op(ExprOp op, i64 a, i64 b, i64 *out);
bool sc_real_op(ExprOp op, double a, double b, double *out);
i64 sc_floordiv(i64 a, i64 b);  // b != 0
i64 sc_floormod(i64 a, i64 b);

// infix.c: an expression as a person would write it, "B + 1"; long ones end in "…"
void sc_print_infix(Str *out, const Kernel *k, Xid x);
void sc_print_named(Str *out, const Kernel *k, Xid x);  // the same with `let`s by name

#endif
