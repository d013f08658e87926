// bind.c - a kernel, lowered: its parameters, declarations, `require`s and cases; then the code of
// its roles. Out: a kernel whose every table is complete, or reports. Called by unit.c and seq.c;
// calls params.c, the files of declarations and of statements, and scope.c.
#include "compiler/lower/lower.h"

#include <string.h>

void low_open(Low *l, Sc *sc, const Ast *ast, const Node *unit) {
  *l = (Low){
      .sc = sc, .ast = ast, .unit = unit, .k = sc_kernel(sc), .role = SC_NONE, .unroll = SC_NONE};
  l->k->name = unit->name;
  l->k->span = unit->name_span.hi ? unit->name_span : unit->span;
  l->k->text = ast->text;
  l->below = l->integers = x_below(sc, l->k);
  low_push(l);
  l->base = l->scope;
  low_push(l);
  l->top = l->scope;
  l->scope = l->base;
}

// ---- the caller's choice

// Every parameter that the caller names exists.
void low_known_params(Low *l, const Choice *c) {
  for (u32 i = 0; i < c->params; i++) {
    bool known = false;
    for (u32 j = 0; j < l->k->param.n; j++)
      known |= !strcmp(l->k->param.at[j].name, c->param[i].name);
    if (known) continue;
    Diag *d = low_error(l, D_P_UNKNOWN, l->k->span, "'%s' has no param '%s'", l->k->name,
                        c->param[i].name);
    Str s = {.sc = l->sc};
    for (u32 j = 0; j < l->k->param.n; j++)
      str_printf(&s, "%s%s", j ? ", " : "", l->k->param.at[j].name);
    sc_help(l->sc, d, "its params are: %s", s.at ? s.at : "none");
  }
}

// ---- requirements and cases

// A launch alone asks for what is required, and proofs take it for known: so reals decide none of
// its integers. (Of what it says of reals themselves nothing follows.)
static bool has_sure_integers(Low *l, const Node *n, Xid cond) {
  x_begin(&l->below, 0);
  x_begin(&l->integers, 0);
  x_from(&l->integers, cond);
  for (Xid x; (x = x_next(&l->integers));) {
    if (low_at(l, x)->ty != TY_INT) continue;
    x_from(&l->below, x);
    x_skip(&l->integers);
  }
  return low_integers_below(l, n);
}

void low_require(Low *l, const Node *item) {
  Xid c = low_bool(l, item->a);
  bool known;
  if (!c) return;
  if (low_at(l, c)->deps & ~DEP_DIM) {
    low_error(l, D_R9_UNIFORM, item->a->span,
              "a requirement is about params, dimensions and scalars");
  } else if (!x_const_bool(l->k, c, &known)) {
    if (!has_sure_integers(l, item->a, c)) return;
    PUSH(l->sc, &l->k->require, ((Require){c, item->a->span}));
  } else if (!known) {
    Diag *d = low_error(l, D_P_REQUIRE, item->a->span, "these params do not meet this requirement");
    Str s = {.sc = l->sc};
    for (u32 i = 0; i < l->k->param.n; i++) {
      str_printf(&s, "%s%s = %s", i ? ", " : "", l->k->param.at[i].name,
                 sc_value_text(l->sc, &l->k->param.at[i].value));
    }
    sc_help(l->sc, d, "they are %s", s.at ? s.at : "none");
  }
}

void low_work(Low *l, const Node *item) {
  Xid x = low_int(l, item->a);
  if (!x) return;
  if (low_at(l, x)->deps & ~DEP_DIM)
    low_error(l, D_R9_UNIFORM, item->a->span,
              "work is counted from params, dimensions and scalars");
  else if (l->k->work)
    low_error(l, D_N_TWICE, item->span, "'%s' has said its work already", l->k->name);
  else l->k->work = x;
}

// What of the kernel was meant by a name that a case has for none of it; NULL: nothing is near.
static const char *meant(const Kernel *k, Sym name) {
  const char *found = NULL;
  u32 slips = sc_slips(name);
  for (u32 i = 0; i < k->dim.n; i++)
    if (sc_nearer(name, k->dim.at[i].name, &slips)) found = k->dim.at[i].name;
  for (u32 i = 0; i < k->arg.n; i++)
    if (sc_nearer(name, k->arg.at[i].name, &slips)) found = k->arg.at[i].name;
  for (u32 i = 0; i < k->param.n; i++)
    if (sc_nearer(name, k->param.at[i].name, &slips)) found = k->param.at[i].name;
  return found;
}

// What of the kernel a name of a case binds. False: it has none of that name.
static bool case_finds(const Kernel *k, const Node *b, CaseBind *c) {
  for (c->ref = 0; c->ref < k->dim.n; c->ref++)
    if (k->dim.at[c->ref].name == b->name) return c->kind = CASE_DIM, true;
  for (c->ref = 0; c->ref < k->arg.n; c->ref++)
    if (k->arg.at[c->ref].name == b->name) return c->kind = CASE_ARG, true;
  for (c->ref = 0; c->ref < k->buf.n; c->ref++)
    if (k->buf.at[c->ref].space == SP_TENSOR && k->buf.at[c->ref].name == b->name)
      return c->kind = CASE_TENSOR, true;
  for (c->ref = 0; c->ref < k->param.n; c->ref++)
    if (k->param.at[c->ref].name == b->name) return c->kind = CASE_PARAM, true;
  return false;
}

static bool case_target(Low *l, const Node *b, CaseBind *c) {
  const Kernel *k = l->k;
  if (case_finds(k, b, c)) return true;
  const Name *n = low_find(l, b->name);
  if (n && n->kind == NM_ABSENT) return c->ref = 0, c->kind = CASE_ABSENT, true;
  if (n && n->kind == NM_BAD) return false;
  Diag *d = low_error(l, D_P_CASE, b->name_span, "'%s' is no dimension, scalar, tensor or param",
                      b->name);
  Str s = {.sc = l->sc};
  for (u32 i = 0; i < k->dim.n; i++) str_printf(&s, "%s%s", i ? ", " : "", k->dim.at[i].name);
  const char *near = meant(k, b->name);
  if (near) sc_help(l->sc, d, "did you mean '%s'?", near);
  else sc_help(l->sc, d, "the dimensions are: %s", s.at ? s.at : "none");
  return false;
}

static bool case_value(Low *l, const Node *n, CaseBind *c) {
  Value v;
  if (!low_value(l, n, &v)) return false;
  u8 kind =
      c->kind == CASE_ABSENT  ? v.kind
      : c->kind == CASE_DIM   ? VAL_INT
      : c->kind == CASE_PARAM ? l->k->param.at[c->ref].value.kind
      : (c->kind == CASE_ARG ? l->k->arg.at[c->ref].elem : l->k->buf.at[c->ref].elem) == EL_I32
          ? VAL_INT
          : VAL_REAL;
  if (low_fits(&v, kind) && (c->kind != CASE_DIM || v.num.i >= 0)) {
    PUSH(l->sc, &c->value, v);
    return true;
  }
  low_error(l, D_P_CASE, n->span,
            c->kind == CASE_DIM ? "a dimension is an integer from 0" : "%s is needed here",
            low_kind_of(kind));
  return false;
}

// What the line gives it. `ok`: it is known what the line binds.
static void case_values(Low *l, const Node *b, CaseBind *c, bool ok, Case *kase) {
  const bool list = b->a->kind == ND_SET || b->a->kind == ND_TUPLE;
  for (const Node *v = list ? b->a->a : b->a; v && ok; v = list ? v->next : NULL)
    ok = case_value(l, v, c);
  if (ok) PUSH(l->sc, &kase->bind, *c);
}

static bool has_its_form(const Node *b, const CaseBind *c) {
  return (b->a->kind == ND_TUPLE) == (c->kind == CASE_TENSOR);
}

void low_case(Low *l, const Node *item) {
  Case kase = {.name = item->name, .span = item->name_span.hi ? item->name_span : item->span};
  u32 *number = &sc_key(l->sc, &l->cases, 0, item->name, strlen(item->name))->number;
  if (*number)
    sc_note(l->sc, low_error(l, D_N_TWICE, kase.span, "there are two cases '%s'", item->name),
            l->k->kase.at[*number - 1].span, "the other one");
  else *number = l->k->kase.n + 1;
  for (const Node *b = item->a; b; b = b->next) {
    if (b->kind != ND_BIND) continue;
    CaseBind c = {.name = b->name, .span = b->span, .set = b->a->kind == ND_SET};
    bool ok = case_target(l, b, &c);
    if (ok && c.kind != CASE_ABSENT && !has_its_form(b, &c)) {
      low_error(l, D_P_CASE, b->span,
                c.kind == CASE_TENSOR
                    ? "the elements of a tensor are given as [a, b, …]"
                    : "[a, b, …] is for tensors: a choice of values is written in { a, b, … }");
      ok = false;
    }
    case_values(l, b, &c, ok, &kase);
  }
  PUSH(l->sc, &l->k->kase, kase);
}

// ---- cases of a kernel that has none

// Of a sequence's case, what the kernel knows. A guard may keep the kernel out of a case that gives
// other params.
static void lend_case(Low *l, const Node *launch, const Node *item) {
  Case lent = {.name = item->name, .span = item->span};
  for (const Node *b = item->a; b; b = b->next) {
    if (b->kind != ND_BIND) continue;
    CaseBind c = {.name = b->name, .span = b->span, .set = b->a->kind == ND_SET};
    const bool knows = case_finds(l->k, b, &c);
    if (launch->a && !knows) return;
    case_values(l, b, &c, knows && has_its_form(b, &c), &lent);
  }
  PUSH(l->sc, &l->k->lent, lent);
}

static void lend_of(Low *l, const Node *sequence) {
  const Node *launch = sequence->a;
  while (launch && (launch->kind != ND_LAUNCH || launch->name != l->unit->name))
    launch = launch->next;
  for (const Node *i = launch ? sequence->a : NULL; i; i = i->next)
    if (i->kind == ND_CASE) lend_case(l, launch, i);
}

// Whoever looks for numbers with which a kernel fails tries those of its cases. One that has none
// gets those of the sequences that launch it. What is wrong in them, they report.
static void lend_cases(Low *l) {
  if (l->k->kase.n || l->sc->errors) return;
  Reports before = sc_said(l->sc);
  for (u32 i = 0; i < l->ast->unit.n; i++)
    if (l->ast->unit.at[i]->kind == ND_SEQUENCE) lend_of(l, l->ast->unit.at[i]);
  sc_unsay(l->sc, before);
}

// ---- a kernel

// Items of one kind, in the order of the file. Which kinds come first does not depend on the file's
// order.
static void declarations(Low *l) {
  const Node *items = l->unit->a;
  for (const Node *i = items; i && !l->dead; i = i->next) {
    if (i->kind == ND_TENSOR) low_tensors(l, i, false);
  }
  low_absent_tensors(l);
  for (const Node *i = items; i && !l->dead; i = i->next) {
    if (i->kind == ND_REQUIRE) low_require(l, i);
    else if (i->kind == ND_WORK) low_work(l, i);
    else if (i->kind == ND_CASE) low_case(l, i);
  }
  l->scope = l->top;
  for (const Node *i = items; i && !l->dead; i = i->next) {
    if (i->kind == ND_GRID) low_grid(l, i);
  }
  for (const Node *i = items; i && !l->dead; i = i->next) {
    if (i->kind == ND_LET) low_let(l, i);
    else if (i->kind == ND_RING) low_rings(l, i, SC_NONE);
    else if (i->kind == ND_ROLE) low_declare_role(l, i);
  }
  for (const Node *i = items; i && !l->dead; i = i->next) {
    if (i->kind == ND_TURN) low_turn(l, i);
  }
}

Low *low_kernel_params(Sc *sc, const Ast *ast, const Node *unit, Given *g) {
  Low *l = NEW(sc, Low);
  low_open(l, sc, ast, unit);
  for (const Node *i = unit->a; i && !l->dead; i = i->next) {
    if (i->kind == ND_PARAM) {
      for (const Node *d = i->a; d; d = d->next) {
        if (d->kind == ND_PARAMDEF) low_param(l, d, g);
      }
    } else if (i->kind == ND_DEF) low_def(l, i, l->base, l->top);
  }
  return l;
}

Kernel *low_kernel(Low *l, Given *g) {
  Sc *sc = l->sc;
  const Node *unit = l->unit;
  declarations(l);
  for (const Node *i = unit->a; i; i = i->next) {
    if (i->kind == ND_SPEC && l->k->spec.n)
      sc_note(sc, low_error(l, D_N_TWICE, i->span, "there are two specifications"),
              l->k->map.at[l->k->spec.at[0]].span, "the first one");
    else if (i->kind == ND_SPEC) low_spec(l, i);
  }
  for (const Node *i = unit->a; i && !l->dead; i = i->next) {
    const Name *n = i->kind == ND_ROLE ? low_find(l, i->name) : NULL;
    if (n && n->kind == NM_ROLE && n->ref != SC_NONE) low_role(l, i, n->ref);
  }
  if (!l->k->role.n && !sc->errors)
    low_error(l, D_N_KIND, l->k->span, "the kernel '%s' has no role", unit->name);
  sc_list_accesses(sc, l->k);
  if (!sc->errors) sc_find_failures(sc, l->k);
  if (!sc->errors) sc_mark_inside(sc, l->k);
  if (!sc->errors) low_participants(l);
  if (!sc->errors) low_outputs(l);
  if (!g->seq) low_known_params(l, g->choice);
  low_list_absent(l);
  lend_cases(l);
  for (u32 i = 0; g->seq && i < l->absent.n; i++) PUSH(sc, &g->absent, l->absent.at[i]);
  return l->k;
}
