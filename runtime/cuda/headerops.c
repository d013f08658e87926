// headerops.c - writes expr.def as C, for a header: what operations compute of integers, and,
// except for functions, of reals. In: the table of operations. Out: text that is C99 and C++, in
// front of launcher.c. Called by header.c.
#include "runtime/cuda/gpu.h"
#include "runtime/data/valueops.def"

#define TEXT_OF(...) #__VA_ARGS__
#define PUT_CASE(id, ...) str_puts(out, "    case SCL_" #id ": return " TEXT_OF(__VA_ARGS__) ";\n");

static void put_integer(Str *out) {
  str_puts(out,
           "static inline int64_t scl_add(int64_t x, int64_t y, int *fits);\n"
           "static inline int64_t scl_sub(int64_t x, int64_t y, int *fits);\n"
           "static inline int64_t scl_mul(int64_t x, int64_t y, int *fits);\n"
           "static inline int scl_divides(int64_t x, int64_t y, int *fits);\n"
           "static inline int64_t scl_integer(SclOp op, int64_t a, int64_t b, int *fits) {\n"
           "  switch (op) {\n");
#define NUMBER(id, text, binds, arity, f64, f32, integer, c, c_int) PUT_CASE(id, integer)
#define INTEGERS(id, text, binds, integer, c) PUT_CASE(id, integer)
#define COMPARES(id, text, binds, e) PUT_CASE(id, e)
#define TRUTHS(id, text, binds, arity, e, c) PUT_CASE(id, e)
#include "compiler/ir/expr.def"
  str_puts(out, "    default: *fits = 0; return 0;\n  }\n}\n\n");
}

static void put_real(Str *out) {
  str_puts(out,
           "static inline double scl_fabs(double x);\n"
           "static inline double scl_real(SclOp op, double a, double b) {\n  switch (op) {\n");
#define NUMBER(id, text, binds, arity, f64, f32, integer, c, c_int) PUT_CASE(id, f64)
#define REALS(id, text, binds, arity, f64, f32, error, c) \
  if ((int)BIND_##binds < (int)BIND_CALL) PUT_CASE(id, f64)
#define COMPARES(id, text, binds, e) PUT_CASE(id, e)
#include "compiler/ir/expr.def"
  str_puts(out, "    default: return 0;\n  }\n}\n\n");
}

void sc_header_ops(Str *out) {
  put_integer(out);
  put_real(out);
}
