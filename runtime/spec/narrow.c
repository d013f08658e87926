// narrow.c - finds the outputs that depend on a rounding to a narrow type. In: a kernel or
// sequence. Out: by buffer, whether the kernel rounds on the way to it, whether its specification
// does, and whether an f16 may overflow on the way.
//
// A value is rounded where it is computed and then kept in a tile, a stage or a tensor of a narrow
// type. A value that is only moved or selected is not rounded. The mark of a rounded value passes
// to all that is computed from it. The order of the code is ignored, as loops may move any value
// anywhere.
#include "runtime/run.h"

// Does x only select among elements of this type and constants that the type can hold? Then
// rounding changes nothing. False, too, if that takes more than 1000 steps to see.
static bool selects(const Kernel *k, Xid x, u8 elem, u32 *steps) {
  const Expr *e = &k->expr.at[x];
  if (++*steps > 1000) return false;
  switch (e->op) {
    case X_LOAD: return k->buf.at[k->view.at[e->ref].buf].elem == elem;
    case X_REAL: return sc_round(elem, (float)e->num.f) == e->num.f;
    case X_NEG:
    case X_ABS:
    case X_RMAX:
    case X_RMIN: return selects(k, e->a, elem, steps);
    case X_MAX:
    case X_MIN: return selects(k, e->a, elem, steps) && selects(k, e->b, elem, steps);
    case X_WHERE: return selects(k, e->b, elem, steps) && selects(k, e->c, elem, steps);
    default: return false;
  }
}

// The marks that the map's rounding makes. (An f16 that overflows in an output is seen in that
// output; elsewhere it is seen in what is computed from it.)
static u8 rounding(const Kernel *k, const Map *m) {
  const Buf *to = &k->buf.at[k->view.at[m->dst].buf];
  u32 steps = 0;
  if (!sc_is_narrow(to->elem) || selects(k, m->root, to->elem, &steps)) return 0;
  bool seen = sc_is_argument(to);
  u8 overflow = to->elem == EL_F16 && !seen ? MAY_OVERFLOW : 0;
  return ROUNDED_BY_KERNEL | ROUNDED_BY_SPEC | overflow;
}

// Gives the destination those of the marks `all` that are in `bits`. Was one of them new?
static bool step(const Kernel *k, u32 dst, u8 all, u8 *mark, u8 bits) {
  u8 *to = &mark[k->view.at[dst].buf], had = *to;
  *to |= all & bits;
  return *to != had;
}

static bool step_map(const Kernel *k, const Map *m, u8 *mark, u8 bits) {
  if (m->dst == SC_NONE) return false;
  u8 all = rounding(k, m);
  for (u32 i = 0; i < m->reads; i++) all |= mark[k->view.at[sc_view_of(k, m, i)].buf];
  return step(k, m->dst, all, mark, bits);
}

static bool step_operation(const Kernel *k, const Ins *ins, u8 *mark, u8 bits) {
  bool new = false;
  u8 all = 0;
  if (sc_on_map(ins->op)) return step_map(k, &k->map.at[ins->arg[0]], mark, bits);
  for (u32 i = 0; i < ins->accesses; i++) {
    const ViewAccess *a = sc_view_access(k, ins, i);
    if (!a->write) all |= mark[k->view.at[a->view].buf];
    else new |= step(k, a->view, all, mark, bits);
  }
  return new;
}

static void spread_in_roles(const Kernel *k, u8 *mark) {
  for (bool new = true; new;) {
    new = false;
    for (u32 r = 0; r < k->role.n; r++)
      for (u32 i = 0; i < k->role.at[r].code.n; i++)
        new |= step_operation(k, &k->role.at[r].code.at[i], mark, ROUNDED_BY_KERNEL | MAY_OVERFLOW);
  }
}

static void spread_in_steps(Sc *sc, const Kernel *k, u8 *mark) {
  for (u32 l = 0; l < k->launch.n; l++) {
    const Launch *launch = &k->launch.at[l];
    u32 n = launch->kernel->buf.n;
    u8 *inner = NEWS(sc, u8, n + 1);
    for (u32 i = 0; i < n; i++)
      if (launch->tensor[i] != SC_NONE) inner[i] = mark[launch->tensor[i]];
    spread_in_roles(launch->kernel, inner);
    for (u32 i = 0; i < n; i++)
      if (launch->tensor[i] != SC_NONE) mark[launch->tensor[i]] |= inner[i];
  }
}

u8 *sc_rounded(Sc *sc, const Kernel *k) {
  u8 *mark = NEWS(sc, u8, k->buf.n + 1);
  spread_in_roles(k, mark);
  spread_in_steps(sc, k, mark);
  for (u32 e = 0; e < k->spec.n; e++) step_map(k, &k->map.at[k->spec.at[e]], mark, ROUNDED_BY_SPEC);
  return mark;
}
