// wellformed.c - the structural invariants of the IR, on which every pass relies: what is named
// exists, types fit where they are used, blocks close. In: a kernel after any pass. Out: a
// description of the first invariant that is broken, or NULL. What the schedule's author can get
// wrong is not checked here: whatever this file finds is a fault of the compiler. Numbers are
// checked before they are followed.
#include "compiler/ir/wellformed.h"

#include <string.h>

// ---- the tables by themselves

static void check_views(Check *c) {
  const Kernel *k = c->k;
  for (u32 i = 0; i < k->view.n && !c->wrong; i++) {
    const View *v = &k->view.at[i];
    if (v->buf >= k->buf.n || v->rank != k->buf.at[v->buf].rank) {
      sc_bad(c, "view %u: no such storage, or not its rank", i);
      return;
    }
    if (v->fill && k->buf.at[v->buf].space != SP_STAGE)
      sc_bad(c, "view %u: fills what is no stage", i);
    for (u32 d = 0; d < v->rank; d++)
      if (v->at[d].base >= k->expr.n || k->expr.at[v->at[d].base].ty != TY_INT)
        sc_bad(c, "view %u: position %u is no integer expression", i, d);
  }
}

// Uniform elements are those that no one writes.
static void check_load(Check *c, Xid x, const Expr *e) {
  const Kernel *k = c->k;
  const Buf *b = &k->buf.at[k->view.at[e->ref].buf];
  if (!(e->deps & DEP_TILE) && (b->space != SP_TENSOR || b->dir != SCHEDC_IN))
    sc_bad(c, "expression %u: an element of '%s', which is written, is uniform", x, b->name);
  if (e->ty != (sc_elem[b->elem].flt ? TY_REAL : TY_INT))
    sc_bad(c, "expression %u: not the element's type", x);
}

// Passes follow operands without recursion, in the order of their numbers.
static void check_expr(Check *c, Xid x) {
  const Kernel *k = c->k;
  const Expr *e = &k->expr.at[x];
  const u32 most[X_COUNT] = {
      [X_DIM] = k->dim.n,     [X_ARG] = k->arg.n,    [X_AXIS] = k->axis.n, [X_INST] = k->role.n,
      [X_LOOP] = k->loop.n,   [X_IDX] = SC_MAX_VARS, [X_LOAD] = k->view.n, [X_SUM] = SC_MAX_VARS,
      [X_RMAX] = SC_MAX_VARS, [X_RMIN] = SC_MAX_VARS};
  bool names = (e->op >= X_DIM && e->op <= X_LOAD) || x_reduces(e->op);
  if (names && e->ref >= most[e->op]) {
    sc_bad(c, "expression %u: names a %s that does not exist", x, sc_xop[e->op].text);
    return;
  }
  Xid operand[SC_MAX_OPERANDS];
  for (u32 i = x_operands(k, x, operand); i--;)
    if (operand[i] >= x) sc_bad(c, "expression %u: an operand is not before it", x);
  if (e->op == X_LOAD) check_load(c, x, e);
}

static void check_bufs(Check *c) {
  const Kernel *k = c->k;
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *b = &k->buf.at[i];
    bool fixed = b->space == SP_STAGE || b->space == SP_REG;
    for (u32 d = 0; d < b->rank; d++) {
      if (fixed ? b->ext[d] < 1 : !b->dim[d]) sc_bad(c, "'%s': no dimension %u", b->name, d);
      if (!fixed) sc_check_scalar(c, b->dim[d], TY_INT, DEP_DIM, "a tensor's dimension");
    }
    sc_check_scalar(c, b->least, TY_INT, DEP_DIM, "the least element");
    sc_check_scalar(c, b->end, TY_INT, DEP_DIM, "the end of the elements' range");
    const Ring *r = b->space == SP_STAGE && b->ring < k->ring.n ? &k->ring.at[b->ring] : NULL;
    if (b->space == SP_STAGE && (!r || i - r->part0 >= r->parts || b->role != r->owner))
      sc_bad(c, "'%s': a stage that is no part of its ring", b->name);
    if (b->space == SP_REG && (b->role >= k->role.n || b->rank > 2))
      sc_bad(c, "'%s': a tile of no role, or of rank over 2", b->name);
  }
}

static void check_rings(Check *c) {
  const Kernel *k = c->k;
  for (u32 i = 0; i < k->ring.n; i++) {
    const Ring *r = &k->ring.at[i];
    if (!r->stages || (r->owner != SC_NONE && r->owner >= k->role.n))
      sc_bad(c, "ring '%s': no stages, or an owner that is no role", r->name);
    for (u32 b = r->part0; b < r->part0 + r->parts; b++)
      if (b >= k->buf.n || k->buf.at[b].space != SP_STAGE || k->buf.at[b].ring != i)
        sc_bad(c, "ring '%s': a part is not its own", r->name);
  }
}

static void check_roles(Check *c) {
  for (u32 i = 0; i < c->k->role.n; i++) {
    const Role *r = &c->k->role.at[i];
    if (r->one_tile && r->instances < 2) sc_bad(c, "role '%s' deals tiles to itself", r->name);
  }
}

static void check_turns(Check *c) {
  const Kernel *k = c->k;
  for (u32 i = 0; i < k->turn.n; i++) {
    const Turn *t = &k->turn.at[i];
    if (t->axis != SC_NONE && t->axis >= k->axis.n) sc_bad(c, "turn '%s': no axis", t->name);
    for (u32 m = 0; m < t->members; m++) {
      if (t->member[m] >= k->role.n) sc_bad(c, "turn '%s': a member is no role", t->name);
      else if (t->active && t->members > 1 && k->role.at[t->member[m]].one_tile)
        sc_bad(c, "turn '%s': a role that deals its tiles is one of several", t->name);
    }
    sc_check_scalar(c, t->keys, TY_INT, DEP_DIM, "a turn's keys");
  }
}

static void check_interface(Check *c) {
  const Kernel *k = c->k;
  for (u32 i = 0; i < k->arg.n; i++)
    sc_check_scalar(c, k->arg.at[i].init, sc_elem[k->arg.at[i].elem].flt ? TY_REAL : TY_INT,
                    DEP_DIM, "an argument's default");
  for (u32 i = 0; i < k->require.n; i++)
    sc_check_scalar(c, k->require.at[i].cond, TY_BOOL, DEP_DIM, "a requirement");
  sc_check_scalar(c, k->work, TY_INT, DEP_DIM, "the work");
  for (u32 i = 0; i < k->axis.n; i++) {
    const Axis *a = &k->axis.at[i];
    if (!a->extent || !a->cluster) sc_bad(c, "axis '%s': no extent or cluster", a->name);
    sc_check_scalar(c, a->extent, TY_INT, DEP_DIM | DEP_FETCH, "an axis' extent");
    sc_check_scalar(c, a->section, TY_INT, DEP_DIM | DEP_FETCH, "an axis' section");
  }
  for (u32 i = 0; i < k->let.n; i++)
    if (k->let.at[i].value >= k->expr.n) sc_bad(c, "let '%s': no value", k->let.at[i].name);
}

static void check_case(Check *c, const Case *kase) {
  const Kernel *k = c->k;
  const u32 most[] = {[CASE_DIM] = k->dim.n,
                      [CASE_ARG] = k->arg.n,
                      [CASE_TENSOR] = k->buf.n,
                      [CASE_PARAM] = k->param.n,
                      [CASE_ABSENT] = 1};
  for (u32 i = 0; i < kase->bind.n; i++) {
    const CaseBind *b = &kase->bind.at[i];
    if (b->ref >= most[b->kind] || (b->kind == CASE_TENSOR && k->buf.at[b->ref].space != SP_TENSOR))
      sc_bad(c, "case '%s': '%s' is not what it binds", kase->name, b->name);
  }
}

static void check_cases(Check *c) {
  for (u32 i = 0; i < c->k->kase.n; i++) check_case(c, &c->k->kase.at[i]);
  for (u32 i = 0; i < c->k->lent.n; i++) check_case(c, &c->k->lent.at[i]);
}

// ---- sequences

static bool same(Sym a, Sym b) { return !strcmp(a, b); }

// A step's dimensions, arguments and tensors are the sequence's of the same name.
static void check_launch(Check *c, const Launch *l) {
  const Kernel *k = c->k, *in = l->kernel;
  for (u32 i = 0; i < in->dim.n; i++)
    if (l->dim[i] >= k->dim.n || !same(k->dim.at[l->dim[i]].name, in->dim.at[i].name))
      sc_bad(c, "launch of '%s': dimension %u is not bound", in->name, i);
  for (u32 i = 0; i < in->arg.n; i++)
    if (l->arg[i] >= k->arg.n || !same(k->arg.at[l->arg[i]].name, in->arg.at[i].name))
      sc_bad(c, "launch of '%s': argument %u is not bound", in->name, i);
  for (u32 i = 0; i < in->buf.n; i++) {
    const Buf *own = &in->buf.at[i];
    if (own->space != SP_TENSOR) continue;
    const Buf *b = l->tensor[i] < k->buf.n ? &k->buf.at[l->tensor[i]] : NULL;
    if (!b || b->space != SP_TENSOR || !same(b->name, own->name))
      sc_bad(c, "launch of '%s': tensor '%s' is not bound", in->name, own->name);
    else if (b->blocked != own->blocked)
      sc_bad(c, "launch of '%s': '%s' is blocked for one of two kernels", in->name, b->name);
  }
  const char *wrong = c->wrong ? NULL : sc_wellformed(c->sc, in);
  if (wrong) sc_bad(c, "kernel '%s': %s", in->name, wrong);
}

// What is given is an input of the sequence, and so is what it is made from.
static void check_given(Check *c, const Launch *l) {
  check_launch(c, l);
  for (u32 i = 0; i < l->kernel->buf.n && !c->wrong; i++) {
    const Buf *b = l->kernel->buf.at[i].space == SP_TENSOR ? &c->k->buf.at[l->tensor[i]] : NULL;
    if (b && (b->workspace || b->dir != SCHEDC_IN))
      sc_bad(c, "'%s' is no input, and given", b->name);
  }
}

// ---- the kernel

static void check_tables(Check *c) {
  check_bufs(c);
  check_rings(c);
  check_roles(c);
  check_turns(c);
  check_views(c);
  for (Xid x = 1; x < c->k->expr.n && !c->wrong; x++) check_expr(c, x);
  if (c->wrong) return;
  check_interface(c);
  check_cases(c);
}

const char *sc_wellformed(Sc *sc, const Kernel *k) {
  Check c = {.sc = sc, .k = k, .role = SC_NONE};
  c.below = x_below(sc, k);
  c.open = NEWS(sc, bool, k->loop.n);
  c.used = NEWS(sc, bool, k->loop.n);
  c.fill = NEWS(sc, u16, k->ring.n);
  c.drain = NEWS(sc, u16, k->ring.n);
  check_tables(&c);
  if (!c.wrong) sc_check_spec(&c);
  for (u32 i = 0; i < k->role.n && !c.wrong; i++) sc_check_role(&c, i);
  if (!c.wrong) sc_check_users(&c);
  for (u32 i = 0; i < k->launch.n && !c.wrong; i++) check_launch(&c, &k->launch.at[i]);
  for (u32 i = 0; i < k->given.n && !c.wrong; i++) check_given(&c, &k->given.at[i]);
  return c.wrong;
}
