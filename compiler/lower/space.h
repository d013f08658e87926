// space.h - the params of a unit before any is chosen: which there are, what they are for, and the
// points of their domains. A point is a choice for each param that varies: the number of a value in
// its domain. Points are in a fixed order, the last param fastest, and are counted over the whole
// domains, whatever a `require` says of them: so the number of a point depends on the params alone.
#ifndef SC_SPACE_H
#define SC_SPACE_H

#include "compiler/lower/lower.h"

typedef struct SpaceParam {
  Sym name;
  const Node *def;    // of a sequence's param: the first declaration
  bool problem;       // tensors, scalars or the specification depend on it: what is computed
  bool fixed;         // the caller says its value
  bool varies;        // it goes through its domain
  bool steady;        // its domain is the same at all points
  u8 kind;            // ValueKind
  const char *usual;  // its value where it does not vary: the caller's, the case's, the default;
                      // NULL: the expression fails
  Values domain;      // steady: each value once
  const char *const *texts;  // the values of the domain as text
} SpaceParam;

// What is done in order to find a point: a param gets its value, a def is declared, a `require`
// that speaks of nothing but params is looked at as soon as these are known.
typedef struct SpaceStep {
  const Node *node;  // PARAMDEF, DEF or REQUIRE
  u32 kernel;        // whose names it sees
  u32 param;         // PARAMDEF: which
  bool again;        // PARAMDEF: a kernel before has it, too
} SpaceStep;

typedef struct ParamSpace {
  const Ast *ast;
  Choice choice;  // with the params that are fixed
  const Node *unit, *kase;
  VEC(const Node *) kernel;  // the unit, or each kernel of a sequence once
  VEC(SpaceParam) param;     // in order of declaration
  Keys numbers;              // by name: its place in `param`, + 1
  VEC(u32) varied;           // those that vary
  VEC(SpaceStep) step;
} ParamSpace;

// `range`: names of params that go through their domains though they are the problem's. NULL: a
// report was made.
ParamSpace *sc_space(Sc *sc, const Ast *ast, const Choice *choice, const char *const *range,
                     u32 ranges);

// points.c: what the params are where they do not vary, and the domains that are the same at all
// points. Reports what is wrong with these.
void sc_space_values(Sc *sc, ParamSpace *s);

// Where a walk through the points is. Begins as 0.
typedef struct SpaceCursor {
  u64 index;    // of the point
  u64 refused;  // how many before it do not meet a `require`
  u32 *choice;  // by number in `varied`
  bool begun;
} SpaceCursor;
// Goes to the next point that meets all `require`s over params; value: of each that varies. False:
// there is none.
bool sc_space_next(Sc *sc, const ParamSpace *s, SpaceCursor *at, Value *value);
u64 sc_space_count(Sc *sc, const ParamSpace *s);  // all points of the domains

#endif
