// tables.c - ops.def, expr.def and elem.def as data.
#include "compiler/ir/ir.h"

const OpInfo sc_op[OP_COUNT] = {
#define OP(id, text, args, effects) {text, args, effects},
#include "compiler/ir/ops.def"
#undef OP
};

const ExprInfo sc_xop[X_COUNT] = {
#define X(id, text, arity, sig, slow) {text, arity, sig, slow},
#include "compiler/ir/expr.def"
#undef X
};

const ElemInfo sc_elem[EL_COUNT] = {
#define ELEM(id, text, bytes, flt, max) {text, bytes, flt, max},
#include "compiler/ir/elem.def"
#undef ELEM
};
