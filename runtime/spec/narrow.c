// narrow.c - which outputs the rounding to a narrow type goes into. In: a kernel or sequence. Out:
// by buffer, whether the kernel rounds on the way to it, whether its specification does, and
// whether an f16 may overflow on the way.
//
// A value is rounded where it is computed and then kept in a tile, a stage or a tensor of a narrow
// type; what is only moved or selected is not. What is rounded goes into all that is computed from
// it. The order of the code does not matter: loops may bring anything anywhere.
#include "compiler/flow/flow.h"
#include "runtime/run.h"

// Is x one of several elements of this type, or a constant that the type has? Rounding changes
// nothing then. What takes more than so many steps to see is taken for rounded.
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

// What the map's rounding marks. An f16 that overflows in an output is seen there; anywhere else,
// in what is made of it.
static u8 rounding(const Kernel *k, const Map *m) {
  const Buf *to = &k->buf.at[k->view.at[m->dst].buf];
  u32 steps = 0;
  if (!sc_is_narrow(to->elem) || selects(k, m->root, to->elem, &steps)) return 0;
  bool seen = to->space == SP_TENSOR && !to->workspace;
  u8 overflow = to->elem == EL_F16 && !seen ? MAY_OVERFLOW : 0;
  return ROUNDED_BY_KERNEL | ROUNDED_BY_SPEC | overflow;
}

// Gives what the operation writes the marks, those in `bits`, of its rounding and of what it reads.
// Was one of them new?
static bool step(Uses *u, const Ins *ins, u8 *mark, u8 bits) {
  const Kernel *k = u->k;
  bool new = false, stores = sc_on_map(ins->op) && k->map.at[ins->arg[0]].dst != SC_NONE;
  u8 all = stores ? rounding(k, &k->map.at[ins->arg[0]]) : 0;
  u32 n = sc_accesses(u, ins);
  for (u32 a = 0; a < n; a++)
    if (!u->at.at[a].write) all |= mark[k->view.at[u->at.at[a].view].buf];
  for (u32 a = 0; a < n; a++) {
    u8 *to = &mark[k->view.at[u->at.at[a].view].buf], had = *to;
    if (u->at.at[a].write) *to |= all & bits;
    new |= *to != had;
  }
  return new;
}

static void spread_in_roles(Uses *u, u8 *mark) {
  for (bool new = true; new;) {
    new = false;
    for (u32 r = 0; r < u->k->role.n; r++)
      for (u32 i = 0; i < u->k->role.at[r].code.n; i++)
        new |= step(u, &u->k->role.at[r].code.at[i], mark, ROUNDED_BY_KERNEL | MAY_OVERFLOW);
  }
}

static void spread_in_steps(Sc *sc, const Kernel *k, u8 *mark) {
  for (u32 l = 0; l < k->launch.n; l++) {
    const Launch *launch = &k->launch.at[l];
    u32 n = launch->kernel->buf.n;
    u8 *inner = NEWS(sc, u8, n + 1);
    for (u32 i = 0; i < n; i++)
      if (launch->tensor[i] != SC_NONE) inner[i] = mark[launch->tensor[i]];
    spread_in_roles(sc_uses(sc, launch->kernel), inner);
    for (u32 i = 0; i < n; i++)
      if (launch->tensor[i] != SC_NONE) mark[launch->tensor[i]] |= inner[i];
  }
}

u8 *sc_rounded(Sc *sc, const Kernel *k) {
  u8 *mark = NEWS(sc, u8, k->buf.n + 1);
  Uses *u = sc_uses(sc, k);
  spread_in_roles(u, mark);
  spread_in_steps(sc, k, mark);
  for (u32 e = 0; e < k->spec.n; e++) {
    Ins equation = {.op = OP_MAP, .arg = {k->spec.at[e]}};
    step(u, &equation, mark, ROUNDED_BY_SPEC);
  }
  return mark;
}
