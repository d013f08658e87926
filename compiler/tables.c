// tables.c - ops.def, expr.def and elem.def as data.
#include "ir.h"

const OpInfo sc_op[OP_COUNT] = {
#define OP(id, text, args, use, unit, effects) {text, args, use, UNIT_##unit, effects},
#include "ops.def"
#undef OP
};

const ExprInfo sc_xop[X_COUNT] = {
#define X(id, text, arity, sig, unit, cost) {text, arity, sig, UNIT_##unit, cost},
#include "expr.def"
#undef X
};

const ElemInfo sc_elem[EL_COUNT] = {
#define ELEM(id, text, bytes, flt, max) {text, bytes, flt, max},
#include "elem.def"
#undef ELEM
};
