// wellformed.h - between the two files of the check: wellformed.c looks at the tables,
// wellformed_code.c at what operations and equations do with them.
#ifndef SC_WELLFORMED_H
#define SC_WELLFORMED_H

#include "compiler/ir/ir.h"

typedef struct Check {
  Sc *sc;
  const Kernel *k;
  const char *wrong;  // the first broken invariant
  Below below;        // an operation's or equation's expressions
  bool *open, *used;  // loops: around the current operation; by some FOR
  u16 *fill, *drain;  // rings: the roles whose code fills and drains them
  u32 role;           // SC_NONE: not inside one
  bool spec;
  const Map *map;  // the map whose expression is walked
} Check;

// wellformed_code.c
__attribute__((format(printf, 2, 3))) void sc_bad(Check *c, const char *fmt, ...);
// An expression outside roles: of this type, and depending on nothing but `deps`.
void sc_check_scalar(Check *c, Xid x, Ty ty, u8 deps, const char *what);
// The tables must have been found sound.
void sc_check_spec(Check *c);
void sc_check_role(Check *c, u32 role);
void sc_check_users(Check *c);  // after all roles

#endif
