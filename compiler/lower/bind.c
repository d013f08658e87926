// bind.c - a kernel, lowered: its parameters (the caller's over the case's over the defaults), its
// declarations, `require`s and cases; then the code of its roles. Out: a kernel whose every table
// is complete, or reports. Called by unit.c and seq.c; calls the files of declarations and of
// statements, and scope.c.
#include "compiler/lower/lower.h"

#include <string.h>

void low_open(Low *l, Sc *sc, const Ast *ast, const Node *unit) {
  *l = (Low){
      .sc = sc, .ast = ast, .unit = unit, .k = sc_kernel(sc), .role = SC_NONE, .unroll = SC_NONE};
  l->k->name = unit->name;
  l->k->span = unit->name_span.hi ? unit->name_span : unit->span;
  l->k->text = ast->text;
  l->below = x_below(sc, l->k);
  low_push(l);
  l->base = l->scope;
  low_push(l);
  l->top = l->scope;
  l->scope = l->base;
}

// ---- values

static const char *value_text(Low *l, Value v) {
  Str s = {.sc = l->sc};
  sc_put_value(&s, &v);
  return s.at;
}

static bool equal(Value a, Value b) {
  return a.kind == b.kind && (a.kind == VAL_REAL ? a.num.f == b.num.f : a.num.i == b.num.i);
}

static const char *kind_text(u8 kind) {
  return kind == VAL_INT    ? "an integer"
         : kind == VAL_REAL ? "a real"
         : kind == VAL_BOOL ? "true or false"
                            : "an element type";
}

// v as a value of kind `kind`; false: it is none.
static bool fit(Value *v, u8 kind) {
  if (kind == VAL_REAL && v->kind == VAL_INT) *v = (Value){VAL_REAL, {.f = (double)v->num.i}};
  return v->kind == kind;
}

static bool read_int(const char *s, i64 *out) {
  bool negative = *s == '-';
  i64 v = 0;
  s += negative;
  if (!*s) return false;
  for (; *s; s++) {
    if (*s < '0' || *s > '9' || __builtin_mul_overflow(v, 10, &v) ||
        __builtin_add_overflow(v, *s - '0', &v))
      return false;
  }
  *out = negative ? -v : v;
  return true;
}

// A parameter's value as the caller's text.
static bool read_value(Low *l, const char *s, u8 kind, Value *out) {
  Elem elem;
  double f;
  bool negative = *s == '-';
  *out = (Value){VAL_INT, {.i = 0}};
  if (read_int(s, &out->num.i)) return fit(out, kind);
  if (!strcmp(s, "true") || !strcmp(s, "false"))
    return *out = (Value){VAL_BOOL, {.i = *s == 't'}}, kind == VAL_BOOL;
  if (low_elem_named(s, &elem)) return *out = (Value){VAL_ELEM, {.i = elem}}, kind == VAL_ELEM;
  if (!sc_read_real(l->sc, s + negative, strlen(s + negative), &f)) return false;
  return *out = (Value){VAL_REAL, {.f = negative ? -f : f}}, kind == VAL_REAL;
}

// ---- parameters

static const char *domain_text(Low *l, const Param *p) {
  Str s = {.sc = l->sc};
  for (u32 i = 0; i < p->domain.n; i++)
    str_printf(&s, "%s%s", i ? ", " : "", value_text(l, p->domain.at[i]));
  return s.at;
}

static const Node *case_bind(const Given *g, Sym name) {
  for (const Node *b = g->kase ? g->kase->a : NULL; b; b = b->next) {
    if (b->kind == ND_BIND && b->name == name) return b;
  }
  return NULL;
}

static const char *caller_text(const Choice *c, const char *name) {
  const char *text = NULL;
  for (u32 i = 0; i < c->params; i++) {
    if (!strcmp(c->param[i].name, name)) text = c->param[i].value;
  }
  return text;
}

// Does the value differ from the default because the caller, the case or the sequence says so?
static bool chosen(Low *l, const Given *g, const Node *def, Value *v) {
  const char *text = caller_text(g->choice, def->name);
  const Node *bind = case_bind(g, def->name);
  u8 kind = v->kind;
  if (text) {
    Value given;
    if (read_value(l, text, kind, &given)) return *v = given, true;
    Diag *d =
        low_error(l, D_P_VALUE, def->name_span, "'%s' is no value for the param '%s': %s is needed",
                  text, def->name, kind_text(kind));
    sc_help(l->sc, d, "its default is %s", value_text(l, *v));
    return false;
  }
  if (bind) {
    const Node *value =
        bind->a->kind == ND_SET ? bind->a->a : bind->a;  // a set: the first stands for it
    Value given;
    if (!value || !low_value(l, value, &given)) return false;
    if (fit(&given, kind)) return *v = given, true;
    sc_note(l->sc,
            low_error(l, D_P_VALUE, bind->span, "this is no value for the param '%s': %s is needed",
                      def->name, kind_text(kind)),
            def->name_span, "declared here");
    return false;
  }
  for (u32 i = 0; g->seq && i < g->seq->param.n; i++) {
    const Param *p = &g->seq->param.at[i];
    if (p->name == def->name && p->value.kind == kind) return *v = p->value, true;
  }
  return false;
}

// In a sequence params of the same name are the same, so their defaults agree.
static void same_default(Low *l, const Given *g, const Node *def, Value standard) {
  for (u32 i = 0; g->seq && i < g->seq->param.n; i++) {
    const Param *p = &g->seq->param.at[i];
    if (p->name != def->name || i >= g->standard.n || equal(g->standard.at[i], standard)) continue;
    Diag *d = low_error(l, D_P_DEFAULT, def->name_span,
                        "'%s' is %s here, and %s in another kernel of the sequence", def->name,
                        value_text(l, standard), value_text(l, g->standard.at[i]));
    sc_note(l->sc, d, p->span, "the other one");
    sc_help(l->sc, d,
            "give both the same default, or rename one: params of the same name are the same");
  }
}

static void param(Low *l, const Node *def, Given *g) {
  Param p = {.name = def->name, .span = def->name_span};
  Name *n = low_declare(l, def->name, def->name_span, NM_BAD);
  if (!low_value(l, def->a, &p.value)) return;
  Value standard = p.value;
  same_default(l, g, def, standard);
  bool inside = !def->b;
  p.given = chosen(l, g, def, &p.value);
  for (const Node *e = def->b; e; e = e->next) {
    Value v;
    if (!low_value(l, e, &v)) return;
    if (!fit(&v, p.value.kind)) {
      low_error(l, D_P_VALUE, e->span, "this is no value for the param '%s': %s is needed", p.name,
                kind_text(p.value.kind));
      return;
    }
    inside |= equal(v, p.value);
    PUSH(l->sc, &p.domain, v);
  }
  if (!inside) {
    Diag *d = low_error(l, D_P_DOMAIN, def->name_span, "%s%s = %s is outside of its domain",
                        p.given ? "" : "the default ", p.name, value_text(l, p.value));
    const Node *bind = caller_text(g->choice, p.name) ? NULL : case_bind(g, p.name);
    if (bind) sc_note(l->sc, d, bind->span, "the case says so");
    sc_help(l->sc, d, "the domain is %s", domain_text(l, &p));
  }
  n->kind = p.value.kind == VAL_ELEM ? NM_ELEM : NM_VALUE;
  n->elem = (u8)p.value.num.i;
  n->x = p.value.kind == VAL_INT    ? x_int(l->sc, l->k, p.value.num.i)
         : p.value.kind == VAL_BOOL ? x_bool(l->sc, l->k, p.value.num.i)
         : p.value.kind == VAL_REAL ? x_real(l->sc, l->k, p.value.num.f)
                                    : 0;
  bool shared = false;
  for (u32 i = 0; g->seq && i < g->seq->param.n; i++) shared |= g->seq->param.at[i].name == p.name;
  if (g->seq && !shared) PUSH(l->sc, &g->seq->param, p);
  if (g->seq && !shared) PUSH(l->sc, &g->standard, standard);
  if (g->seq != l->k) PUSH(l->sc, &l->k->param, p);
}

static void params_of(Low *l, const Node *item, Given *g) {
  for (const Node *d = item->a; d; d = d->next) {
    if (d->kind == ND_PARAMDEF) param(l, d, g);
  }
}

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

void low_require(Low *l, const Node *item) {
  Xid c = low_bool(l, item->a);
  bool known;
  if (!c) return;
  if (low_at(l, c)->deps & ~DEP_DIM) {
    low_error(l, D_R9_UNIFORM, item->a->span,
              "a requirement is about params, dimensions and scalars");
  } else if (!x_const_bool(l->k, c, &known)) {
    PUSH(l->sc, &l->k->require, ((Require){c, item->a->span}));
  } else if (!known) {
    Diag *d = low_error(l, D_P_REQUIRE, item->a->span, "these params do not meet this requirement");
    Str s = {.sc = l->sc};
    for (u32 i = 0; i < l->k->param.n; i++) {
      str_printf(&s, "%s%s = %s", i ? ", " : "", l->k->param.at[i].name,
                 value_text(l, l->k->param.at[i].value));
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

// What a name of a case binds.
static bool case_target(Low *l, const Node *b, CaseBind *c) {
  const Kernel *k = l->k;
  for (c->ref = 0; c->ref < k->dim.n; c->ref++)
    if (k->dim.at[c->ref].name == b->name) return c->kind = CASE_DIM, true;
  for (c->ref = 0; c->ref < k->arg.n; c->ref++)
    if (k->arg.at[c->ref].name == b->name) return c->kind = CASE_ARG, true;
  for (c->ref = 0; c->ref < k->buf.n; c->ref++)
    if (k->buf.at[c->ref].space == SP_TENSOR && k->buf.at[c->ref].name == b->name)
      return c->kind = CASE_TENSOR, true;
  for (c->ref = 0; c->ref < k->param.n; c->ref++)
    if (k->param.at[c->ref].name == b->name) return c->kind = CASE_PARAM, true;
  const Name *n = low_find(l, b->name);
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
      c->kind == CASE_DIM     ? VAL_INT
      : c->kind == CASE_PARAM ? l->k->param.at[c->ref].value.kind
      : (c->kind == CASE_ARG ? l->k->arg.at[c->ref].elem : l->k->buf.at[c->ref].elem) == EL_I32
          ? VAL_INT
          : VAL_REAL;
  if (fit(&v, kind) && (c->kind != CASE_DIM || v.num.i >= 0)) {
    PUSH(l->sc, &c->value, v);
    return true;
  }
  low_error(l, D_P_CASE, n->span,
            c->kind == CASE_DIM ? "a dimension is an integer from 0" : "%s is needed here",
            kind_text(kind));
  return false;
}

void low_case(Low *l, const Node *item) {
  Case kase = {.name = item->name, .span = item->name_span.hi ? item->name_span : item->span};
  for (u32 i = 0; i < l->k->kase.n; i++) {
    if (l->k->kase.at[i].name != item->name) continue;
    sc_note(l->sc, low_error(l, D_N_TWICE, kase.span, "there are two cases '%s'", item->name),
            l->k->kase.at[i].span, "the other one");
  }
  for (const Node *b = item->a; b; b = b->next) {
    if (b->kind != ND_BIND) continue;
    CaseBind c = {.name = b->name, .span = b->span, .set = b->a->kind == ND_SET};
    bool list = b->a->kind == ND_SET || b->a->kind == ND_TUPLE, ok = case_target(l, b, &c);
    if (ok && (b->a->kind == ND_TUPLE) != (c.kind == CASE_TENSOR)) {
      low_error(l, D_P_CASE, b->span,
                c.kind == CASE_TENSOR
                    ? "the elements of a tensor are given as [a, b, …]"
                    : "[a, b, …] is for tensors: a choice of values is written in { a, b, … }");
      ok = false;
    }
    for (const Node *v = list ? b->a->a : b->a; v && ok; v = list ? v->next : NULL)
      ok = case_value(l, v, &c);
    if (ok) PUSH(l->sc, &kase.bind, c);
  }
  PUSH(l->sc, &l->k->kase, kase);
}

// ---- a kernel

// Items of one kind, in the order of the file. Which kinds come first does not depend on the file's
// order.
static void declarations(Low *l, Given *g) {
  const Node *items = l->unit->a;
  for (const Node *i = items; i && !l->dead; i = i->next) {
    if (i->kind == ND_PARAM) params_of(l, i, g);
    else if (i->kind == ND_DEF) low_def(l, i, l->base, l->top);
  }
  for (const Node *i = items; i && !l->dead; i = i->next) {
    if (i->kind == ND_TENSOR) low_tensors(l, i, false);
  }
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

Kernel *low_kernel(Sc *sc, const Ast *ast, const Node *unit, Given *g) {
  Low *l = NEW(sc, Low);
  low_open(l, sc, ast, unit);
  declarations(l, g);
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
  if (!sc->errors) low_participants(l);
  if (!g->seq) low_known_params(l, g->choice);
  return l->k;
}
