// given.c - which of a kernel's tensors and scalars a caller means. In: what is given, in any
// order. Out: for each of the kernel's, what is given for it, or reports. The rule, everywhere: one
// that has a name is the one of that name; one whose name is NULL is the one at its place, in the
// order of declaration. Tensors must all be given; a scalar that is left out, or NaN, has its
// default.
#include "runtime/run.h"

#include <math.h>
#include <string.h>

u32 sc_given_tensor(const Kernel *k, const char *name, size_t place) {
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *buf = &k->buf.at[i];
    if (name && buf->space == SP_TENSOR && strcmp(buf->name, name) == 0) return i;
    if (!name && sc_is_argument(buf) && !place--) return i;
  }
  return SC_NONE;
}

const char *sc_why_absent(const Kernel *k, const char *name) {
  for (u32 i = 0; i < k->absent.n; i++)
    if (strcmp(k->absent.at[i].name, name) == 0) return k->absent.at[i].why;
  return NULL;
}

// Of a name that the kernel has not: what it has, or the guard that leaves it out.
static void help_names(Sc *sc, Diag *d, const Kernel *k, const char *name, const char *its) {
  const char *absent = name ? sc_why_absent(k, name) : NULL;
  sc_help(sc, d, "%s", absent ? absent : its);
}

static void report_unknown(Sc *sc, const Kernel *k, const char *name, size_t place,
                           bool workspace) {
  Str its = {.sc = sc};
  for (u32 i = 0; i < k->buf.n; i++)
    if (sc_is_argument(&k->buf.at[i]))
      str_printf(&its, "%s%s", its.n ? ", " : "", k->buf.at[i].name);
  Diag *d =
      name ? sc_report(sc, D_T_UNKNOWN, k->span, "'%s' is %s of '%s'", name,
                       workspace ? "a workspace, not an argument," : "not a tensor", k->name)
           : sc_report(sc, D_T_UNKNOWN, k->span,
                       "tensor %zu has no name, and '%s' has not so many (from 0)", place, k->name);
  help_names(sc, d, k, name, sc_printf(sc, "its tensors are: %s", its.n ? its.at : "none"));
}

void sc_given_tensors(Sc *sc, const Kernel *k, const Arguments *given, u32 *which) {
  for (u32 i = 0; i < k->buf.n; i++) which[i] = SC_NONE;
  for (size_t i = 0; i < given->tensors; i++) {
    const char *name = given->tensor[i].name;
    u32 buf = sc_given_tensor(k, name, i);
    if (buf == SC_NONE || !sc_is_argument(&k->buf.at[buf]))
      report_unknown(sc, k, name, i, buf != SC_NONE);
    else if (which[buf] != SC_NONE)
      sc_report(sc, D_T_TWICE, k->buf.at[buf].span, "tensor '%s' is given twice",
                k->buf.at[buf].name);
    else which[buf] = (u32)i;
  }
  for (u32 i = 0; i < k->buf.n; i++) {
    if (sc_is_argument(&k->buf.at[i]) && which[i] == SC_NONE)
      sc_report(sc, D_T_MISSING, k->buf.at[i].span, "tensor '%s' is not given", k->buf.at[i].name);
  }
}

// The number of a scalar among the kernel's; as many as there are: it has none such.
static u32 find_scalar(const Kernel *k, const char *name, size_t place) {
  u32 i = 0;
  if (!name) return place < k->arg.n ? (u32)place : k->arg.n;
  while (i < k->arg.n && strcmp(k->arg.at[i].name, name) != 0) i++;
  return i;
}

static void report_no_scalar(Sc *sc, const Kernel *k, const char *name, size_t place) {
  Str its = {.sc = sc};
  for (u32 i = 0; i < k->arg.n; i++) str_printf(&its, "%s%s", i ? ", " : "", k->arg.at[i].name);
  Diag *d =
      name ? sc_report(sc, D_T_UNKNOWN, k->span, "'%s' is not a scalar of '%s'", name, k->name)
           : sc_report(sc, D_T_UNKNOWN, k->span,
                       "scalar %zu has no name, and '%s' has not so many (from 0)", place, k->name);
  help_names(sc, d, k, name, sc_printf(sc, "its scalars are: %s", its.n ? its.at : "none"));
}

void sc_given_scalars(Sc *sc, const Kernel *k, const Arguments *given, double *value) {
  for (u32 i = 0; i < k->arg.n; i++) value[i] = (double)NAN;
  for (size_t i = 0; i < given->scalars; i++) {
    const schedc_scalar *scalar = &given->scalar[i];
    u32 a = find_scalar(k, scalar->name, i);
    if (a == k->arg.n) report_no_scalar(sc, k, scalar->name, i);
    else if (!isnan(value[a]))
      sc_report(sc, D_T_TWICE, k->arg.at[a].span, "scalar '%s' is given twice", k->arg.at[a].name);
    else value[a] = scalar->value;
  }
}
