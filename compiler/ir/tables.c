// tables.c - ops.def, expr.def and elem.def as data.
#include "compiler/ir/ir.h"

const OpInfo sc_op[OP_COUNT] = {
#define OP(id, text, args, effects) {text, args, effects},
#include "compiler/ir/ops.def"
#undef OP
};

const ExprInfo sc_xop[X_COUNT] = {
#define X(id, text, binds, arity, sig, slow, error, c, c_int) \
  {text, BIND_##binds, arity, sig, slow, ERROR_##error, (c), (c_int)},
#include "compiler/ir/expr.def"
};

const ElemInfo sc_elem[EL_COUNT] = {
#define ELEM(id, text, bytes, flt, max) {text, bytes, flt, max},
#include "compiler/ir/elem.def"
};
