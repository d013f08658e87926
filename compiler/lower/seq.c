// seq.c - a sequence: kernels launched one after the other, called as one. The params of all come
// first, as guards choose by them which kernels there are. Each of these is lowered by itself,
// once; then dimensions, scalars and tensors of the same name become one, and must agree. What only
// passes between the kernels is a workspace. Kernels that it is given have run before: they are
// lowered alike, and may take and make its inputs alone.
// Called by unit.c; calls bind.c for its kernels, and the files of declarations and of maps.
#include "compiler/lower/lower.h"

#include <string.h>

// One kernel's expressions said in the sequence's terms.
typedef struct Said {
  Low *l;
  const Kernel *k;
  Xid *as;  // by the kernel's expression: the sequence's; 0: not yet
  bool given;
} Said;

static Xid dimension(Low *l, const Dim *d) {
  for (u32 i = 0; i < l->k->dim.n; i++) {
    if (l->k->dim.at[i].name == d->name) return x_leaf(l->sc, l->k, X_DIM, TY_INT, i);
  }
  PUSH(l->sc, &l->k->dim, *d);
  return x_leaf(l->sc, l->k, X_DIM, TY_INT, l->k->dim.n - 1);
}

static u32 scalar_named(const Low *l, Sym name) {
  u32 i = 0;
  while (i < l->k->arg.n && l->k->arg.at[i].name != name) i++;
  return i;
}

// Expressions over dimensions and scalars only; operands have smaller numbers, so going up from the
// bottom says each once.
static Xid said(Said *s, Xid x) {
  Low *l = s->l;
  if (!x || s->as[x]) return x ? s->as[x] : 0;
  const Expr e = s->k->expr.at[x];
  Xid r = 0;
  switch (e.op) {
    case X_INT: r = x_int(l->sc, l->k, e.num.i); break;
    case X_REAL: r = x_real(l->sc, l->k, e.num.f); break;
    case X_BOOL: r = x_bool(l->sc, l->k, e.num.i); break;
    case X_DIM: r = dimension(l, &s->k->dim.at[e.ref]); break;
    case X_ARG:
      r = x_leaf(l->sc, l->k, X_ARG, (Ty)e.ty, scalar_named(l, s->k->arg.at[e.ref].name));
      break;
    default: r = x_make(l->sc, l->k, (ExprOp)e.op, said(s, e.a), said(s, e.b), said(s, e.c)); break;
  }
  return s->as[x] = r;
}

// ---- tensors of the same name

static void disagree(Low *l, const Buf *a, const Buf *b, const char *what) {
  Diag *d = low_error(l, D_P_SEQUENCE, a->span,
                      "'%s' has another %s in another kernel of the sequence", a->name, what);
  sc_note(l->sc, d, b->span, "the other one");
  sc_help(l->sc, d, "tensors of the same name are the same: declare them alike, or rename one");
}

static u32 tensor_named(const Low *l, Sym name) {
  for (u32 i = 0; i < l->k->buf.n; i++) {
    if (l->k->buf.at[i].space == SP_TENSOR && l->k->buf.at[i].name == name) return i;
  }
  return SC_NONE;
}

// What one kernel says of the elements holds for all; what two say of their range is the same.
static void unite_elements(Low *l, Buf *old, const Buf *b) {
  old->rising |= b->rising;
  if (!old->end) {
    old->least = b->least;
    old->end = b->end;
  } else if (b->end && (old->least != b->least || old->end != b->end)) {
    disagree(l, b, old, "range of elements");
  }
}

// The sequence's tensor that is the kernel's: the one of that name, or a new one. What is written
// before it is read is an output only.
static u32 unite(Low *l, Said *s, const Buf *b) {
  Buf mine = *b;
  for (u32 i = 0; i < b->rank; i++) mine.dim[i] = said(s, b->dim[i]);
  mine.least = said(s, b->least);
  mine.end = said(s, b->end);
  u32 at = tensor_named(l, b->name);
  if (at == SC_NONE) {
    PUSH(l->sc, &l->k->buf, mine);
    return l->k->buf.n - 1;
  }
  Buf *old = &l->k->buf.at[at];
  if (old->elem != b->elem) disagree(l, b, old, "element type");
  else if (old->rank != b->rank) disagree(l, b, old, "rank");
  else if (memcmp(old->dim, mine.dim, sizeof(Xid) * b->rank)) disagree(l, b, old, "shape");
  unite_elements(l, old, &mine);
  if (!old->workspace && b->dir & F_OUT && !s->given) old->dir |= F_OUT;
  return at;
}

static u32 unite_scalar(Low *l, Said *s, const Arg *a) {
  u32 at = scalar_named(l, a->name);
  if (at == l->k->arg.n) {
    PUSH(l->sc, &l->k->arg, *a);
    l->k->arg.at[at].init = said(s, a->init);
    return at;
  }
  const Arg *old = &l->k->arg.at[at];
  Xid init = said(s, a->init);
  if (old->elem == a->elem && old->init == init) return at;
  Diag *d =
      low_error(l, D_P_SEQUENCE, a->span, "'%s' has another %s in another kernel of the sequence",
                a->name, old->elem == a->elem ? "default" : "type");
  sc_note(l->sc, d, old->span, "the other one");
  return at;
}

static void unite_requires(Low *l, Said *s) {
  for (u32 i = 0; i < s->k->require.n; i++) {
    Require r = {said(s, s->k->require.at[i].cond), s->k->require.at[i].span};
    bool have = !r.cond;
    for (u32 j = 0; j < l->k->require.n; j++) have |= l->k->require.at[j].cond == r.cond;
    if (!have) PUSH(l->sc, &l->k->require, r);
  }
}

static bool is_input(const Low *l, const Buf *b) {
  u32 at = tensor_named(l, b->name);
  return at != SC_NONE && !l->k->buf.at[at].workspace && l->k->buf.at[at].dir == F_IN;
}

static void no_input(Low *l, const Node *item, Sym name, Span at, bool made) {
  Diag *d = low_error(l, D_P_SEQUENCE, item->span,
                      "'%s' is given, but '%s' is no input of the kernels that are launched",
                      item->name, name);
  sc_note(l->sc, d, at, made ? "made here" : "taken here");
  sc_help(l->sc, d, "what is given has run before: it takes and makes inputs of the sequence");
}

// A given kernel adds nothing to what the sequence is called with.
static bool fits_inputs(Low *l, const Node *item, const Kernel *k) {
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *b = &k->buf.at[i];
    if (b->space != SP_TENSOR || is_input(l, b)) continue;
    no_input(l, item, b->name, b->span, b->dir & F_OUT);
    return false;
  }
  for (u32 i = 0; i < k->arg.n; i++) {
    if (scalar_named(l, k->arg.at[i].name) < l->k->arg.n) continue;
    no_input(l, item, k->arg.at[i].name, k->arg.at[i].span, false);
    return false;
  }
  return true;
}

static void unite_kernel(Low *l, const Node *item, Kernel *k) {
  Said s = {l, k, NEWS(l->sc, Xid, k->expr.n), item->flags & F_GIVEN};
  if (s.given && !fits_inputs(l, item, k)) return;
  Launch step = {.span = item->span, .kernel = k};
  step.tensor = NEWS(l->sc, u32, k->buf.n);
  step.dim = NEWS(l->sc, u32, k->dim.n);
  step.arg = NEWS(l->sc, u32, k->arg.n);
  for (u32 i = 0; i < k->dim.n; i++) step.dim[i] = low_at(l, dimension(l, &k->dim.at[i]))->ref;
  for (u32 i = 0; i < k->arg.n; i++) step.arg[i] = unite_scalar(l, &s, &k->arg.at[i]);
  for (u32 i = 0; i < k->buf.n; i++) {
    step.tensor[i] = k->buf.at[i].space == SP_TENSOR ? unite(l, &s, &k->buf.at[i]) : SC_NONE;
    if (step.tensor[i] != SC_NONE) k->buf.at[i].workspace = l->k->buf.at[step.tensor[i]].workspace;
  }
  unite_requires(l, &s);
  if (s.given) PUSH(l->sc, &l->k->given, step);
  else PUSH(l->sc, &l->k->launch, step);
}

// ---- how workspaces are kept

// Does some kernel copy it? The copy engine knows rows only.
static bool is_copied(const Kernel *k, u32 workspace) {
  for (u32 i = 0; i < k->launch.n; i++) {
    const Launch *step = &k->launch.at[i];
    const Kernel *in = step->kernel;
    for (u32 r = 0; r < in->role.n; r++) {
      for (u32 n = 0; n < in->role.at[r].code.n; n++) {
        const Ins *ins = &in->role.at[r].code.at[n];
        u32 operand = ins->op == OP_COPYIN                             ? 1
                      : ins->op == OP_COPYOUT || ins->op == OP_COPYADD ? 0
                                                                       : SC_NONE;
        if (operand != SC_NONE && step->tensor[in->view.at[ins->arg[operand]].buf] == workspace)
          return true;
      }
    }
  }
  return false;
}

// A workspace whose last two dimensions are whole tiles of accumulators, and which only threads
// see, may be kept as they hold those.
static void choose_blocked(Low *l) {
  for (u32 w = 0; w < l->k->buf.n; w++) {
    Buf *b = &l->k->buf.at[w];
    i64 rows, cols;
    if (!b->workspace || b->elem != EL_F32 || b->rank < 2 || is_copied(l->k, w)) continue;
    if (!x_const_int(l->k, b->dim[b->rank - 2], &rows) ||
        !x_const_int(l->k, b->dim[b->rank - 1], &cols))
      continue;
    b->blocked = rows % 64 == 0 && cols % 8 == 0;
    for (u32 i = 0; i < l->k->launch.n; i++) {
      const Launch *step = &l->k->launch.at[i];
      Kernel *in = (Kernel *)step->kernel;  // not finished before its sequence is
      for (u32 n = 0; n < in->buf.n; n++) {
        if (step->tensor[n] == w) in->buf.at[n].blocked = b->blocked;
      }
    }
  }
}

// ---- the sequence

// A name of the sequence for what its kernels bring, unless it is there. A def says something else.
static Name *name_united(Low *l, Sym name, Span at, NameKind kind) {
  const Name *old = low_find(l, name);
  return old && old->kind != NM_DEF ? NULL : low_declare(l, name, at, kind);
}

static void declare_scalars(Low *l) {
  for (u32 i = 0; i < l->k->arg.n; i++) {
    const Arg *a = &l->k->arg.at[i];
    Name *n = name_united(l, a->name, a->span, NM_VALUE);
    if (n) n->x = x_leaf(l->sc, l->k, X_ARG, sc_elem_ty(a->elem), i);
  }
}

// Names of what the kernels brought, for the specification and cases.
static void declare_united(Low *l) {
  for (u32 i = 0; i < l->k->dim.n; i++) {
    const Dim *d = &l->k->dim.at[i];
    Name *n = name_united(l, d->name, d->span, NM_VALUE);
    if (n) n->x = x_leaf(l->sc, l->k, X_DIM, TY_INT, i);
  }
  for (u32 i = 0; i < l->k->buf.n; i++) {
    const Buf *b = &l->k->buf.at[i];
    Name *n = name_united(l, b->name, b->span, NM_BUF);
    if (n) n->ref = i;
  }
}

// And of what they lack.
static void declare_absent(Low *l, const Given *g) {
  low_absent_tensors(l);
  for (u32 i = 0; i < g->absent.n; i++) {
    const Name *n = g->absent.at[i];
    Name *mine = low_find(l, n->name);
    if (!mine) {
      mine = low_declare_absent(l, n->name, n->span, n->what, n->guard);
      PUSH(l->sc, &l->absent, mine);
    }
    if (mine->kind == NM_ABSENT) mine->made |= n->made;
  }
  low_list_absent(l);
}

static void declare_param(Low *l, const Param *p) {
  if (low_find(l, p->name)) return;
  low_bind_param(l, low_declare(l, p->name, p->span, NM_BAD), p->value);
}

const Node *low_kernel_named(Low *l, const Node *launch) {
  const Node *unit = sc_unit(l->ast, launch->name);
  if (unit && unit->kind == ND_KERNEL) return unit;
  Diag *d = low_error(l, D_N_UNBOUND, launch->name_span, "there is no kernel '%s'", launch->name);
  sc_help(l->sc, d, "a sequence lists kernels of this file, one a line");
  return NULL;
}

// A step launches a kernel, or is given it; its guard may leave it out.
typedef struct Step {
  const Node *item;
  Low *kernel;  // as far as its params: those of all are known before any guard is looked at
} Step;
typedef VEC(Step) Steps;

static void find_steps(Low *l, const Node *unit, Given *g, Steps *steps) {
  for (const Node *i = unit->a; i && !l->sc->errors; i = i->next) {
    Step s = {.item = i};
    if (i->kind != ND_LAUNCH) continue;
    const Node *kernel = low_kernel_named(l, i);
    for (u32 n = 0; n < steps->n; n++)
      if (steps->at[n].kernel->unit == kernel) s.kernel = steps->at[n].kernel;
    if (kernel && !s.kernel) s.kernel = low_kernel_params(l->sc, l->ast, kernel, g);
    if (kernel) PUSH(l->sc, steps, s);
  }
}

// What the kernel would have taken and made is left out with it.
static void without(Low *l, const Step *s) {
  for (const Node *i = s->kernel->unit->a; i; i = i->next)
    if (i->kind == ND_TENSOR) low_leave_out(l, i, s->item);
}

// Of the steps, those whose guard is not false. Kernels that are left out are not looked at.
static void choose_steps(Low *l, Steps *steps) {
  u32 left = 0;
  for (u32 i = 0; i < steps->n; i++) {
    bool there;
    low_guard(l, steps->at[i].item->a, "launch", &there);
    if (there) steps->at[left++] = steps->at[i];
    else without(l, &steps->at[i]);
  }
  steps->n = left;
}

static void lower_steps(Sc *sc, Steps *steps, Given *g) {
  for (u32 i = 0; i < steps->n && !sc->errors; i++) {
    bool again = false;
    for (u32 n = 0; n < i; n++) again |= steps->at[n].kernel == steps->at[i].kernel;
    if (!again) low_kernel(steps->at[i].kernel, g);
  }
}

// The scalars of what is launched, before workspaces: these may have them as extents.
static void unite_scalars(Low *l, const Steps *steps) {
  for (u32 i = 0; i < steps->n; i++) {
    if (steps->at[i].item->flags & F_GIVEN) continue;
    const Kernel *k = steps->at[i].kernel->k;
    Said s = {l, k, NEWS(l->sc, Xid, k->expr.n), false};
    for (u32 n = 0; n < k->arg.n; n++) unite_scalar(l, &s, &k->arg.at[n]);
  }
  declare_scalars(l);
}

// Of the steps those that are launched, or those that are given.
static void unite_kernels(Low *l, const Steps *steps, u32 flag) {
  for (u32 i = 0; i < steps->n && !l->sc->errors; i++) {
    const Step *s = &steps->at[i];
    if ((s->item->flags & F_GIVEN) == flag) unite_kernel(l, s->item, s->kernel->k);
  }
}

// Launches of a sequence overlap: each kernel has to know that it may begin before the one in front
// of it has ended.
static void tell_neighbours(Low *l) {
  for (u32 i = 0; i < l->k->launch.n; i++) {
    Kernel *k = (Kernel *)l->k->launch.at[i].kernel;  // not finished before its sequence is
    k->follows |= i > 0;
    k->precedes |= i + 1 < l->k->launch.n;
  }
}

// A workspace holds nothing before the sequence begins, unless it is set to 0: a kernel that reads
// it, or adds to it, comes behind one that has it as an output.
static void read_behind_writers(Low *l) {
  bool *known = NEWS(l->sc, bool, l->k->buf.n + 1);
  if (l->sc->errors) return;
  for (u32 i = 0; i < l->k->buf.n; i++)
    known[i] = !l->k->buf.at[i].workspace || l->k->buf.at[i].zeroed;
  for (u32 n = 0; n < l->k->launch.n; n++) {
    const Launch *step = &l->k->launch.at[n];
    for (u32 i = 0; i < step->kernel->buf.n; i++) {
      const Buf *b = &step->kernel->buf.at[i];
      u32 at = step->tensor[i];
      if (at == SC_NONE || known[at]) continue;
      known[at] = true;  // one report a workspace
      if (!(b->dir & F_IN)) continue;
      const Buf *w = &l->k->buf.at[at];
      Diag *d = low_error(l, D_N_READ, step->span,
                          "'%s' takes the workspace '%s', which holds nothing yet",
                          step->kernel->name, w->name);
      sc_note(l->sc, d, w->span, "declared here");
      sc_note(l->sc, d, b->span, "%s", b->dir & F_OUT ? "an inout" : "an input");
      sc_help(l->sc, d,
              "set it to 0 where it is declared ('= 0'), or launch a kernel before that writes it");
    }
  }
}

static void nothing_launched(Low *l) {
  bool guarded = false;
  if (l->k->launch.n || l->sc->errors) return;
  Diag *d = low_error(l, D_P_SEQUENCE, l->k->span, "this sequence launches nothing");
  for (u32 i = 0; i < l->left_out.n; i++) guarded |= l->left_out.at[i].step != NULL;
  if (guarded) sc_help(l->sc, d, "with these params, guards leave out what it could launch");
}

// What its caller sees of it.
static void goals(Low *l, const Node *unit) {
  for (const Node *i = unit->a; i; i = i->next) {
    if (i->kind == ND_REQUIRE) low_require(l, i);
    else if (i->kind == ND_WORK) low_work(l, i);
    else if (i->kind == ND_CASE) low_case(l, i);
    else if (i->kind == ND_SPEC) low_spec(l, i);
  }
}

Kernel *low_sequence(Sc *sc, const Ast *ast, const Node *unit, Given *g) {
  Low *l = NEW(sc, Low);
  Steps steps = {0};
  low_open(l, sc, ast, unit);
  g->seq = l->k;
  find_steps(l, unit, g, &steps);
  if (sc->errors) return l->k;
  for (u32 i = 0; i < l->k->param.n; i++) declare_param(l, &l->k->param.at[i]);
  for (const Node *i = unit->a; i; i = i->next) {
    if (i->kind == ND_DEF) low_def(l, i, l->base, l->base);
  }
  choose_steps(l, &steps);
  lower_steps(sc, &steps, g);
  if (sc->errors) return l->k;
  unite_scalars(l, &steps);
  for (const Node *i = unit->a; i; i = i->next) {
    if (i->kind == ND_WORKSPACE) low_tensors(l, i, true);
  }
  unite_kernels(l, &steps, 0);
  unite_kernels(l, &steps, F_GIVEN);
  choose_blocked(l);
  tell_neighbours(l);
  declare_united(l);
  declare_absent(l, g);
  nothing_launched(l);
  read_behind_writers(l);
  if (sc->errors) return l->k;
  goals(l, unit);
  low_known_params(l, g->choice);
  sc_list_accesses(sc, l->k);
  return l->k;
}
