// valueops.h - what the columns of expr.def for integers and f64 mean in terms of value.c, which is
// compiled with them, and into C headers, for which header.c writes them out. The launcher knows no
// operation itself.
#ifndef SC_VALUEOPS_H
#define SC_VALUEOPS_H

#define SCL_CASE(id, e) \
  case SCL_##id:        \
    return (e);
#define EXACT(e) (e)
#define CHECKED(op, x, y) scl_##op(x, y, fits)
#define DIVIDES(e) (scl_divides(a, b, fits) ? (e) : 0)
#define fabs(x) scl_fabs(x)

#endif
