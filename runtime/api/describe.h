// describe.h - shared by the files that tell what the compiler worked out about a kernel.
#ifndef SC_DESCRIBE_H
#define SC_DESCRIBE_H

#include "base/json.h"
#include "runtime/api/api.h"
#include "runtime/data/launchvalue.h"

typedef struct Describer {
  Sc *sc;
  const Kernel *k;
  const schedc_dim *dims;
  size_t dim_count;
  Str *out;         // text
  Json *json;       // JSON
  SclValue *value;  // of each expression of k
} Describer;

// What one operation does, once.
typedef struct Work {
  const char *what;  // "copy", "product", "elements"; NULL: not counted
  i64 bytes;         // moved between global and shared memory
  i64 flops;         // of products
  i64 elements;      // of element-wise statements
} Work;

static inline const char *sc_direction_text(const Buf *b) {
  return b->workspace ? "workspace" : b->dir == F_IN ? "in" : b->dir == F_OUT ? "out" : "inout";
}

// describe_work.c
// "for t in 0 .. n", "if c", "else", "vote"; NULL: it begins no block that is told of
const char *sc_heading(const Describer *d, const Ins *ins);
Work sc_work_of(const Kernel *k, const Ins *ins);
// Work of a role's tile, all ifs taken; false: some trip count is not known.
bool sc_total_work(const Describer *d, const Role *r, Work *total);
// The trips of a loop; false: not known from the dimensions given.
bool sc_trips(const Describer *d, const Ins *ins, i64 *n);
void sc_put_operands(Str *out, const Kernel *k, const Ins *ins);  // "s = q @ k", "q <- Q"

// describe_json.c
void sc_describe_json(Describer *d);

#endif
