// params.c - parameters: the value of each (the caller's over the case's over the sequence's over
// the default), the values of its domain, and whether the first is one of these. Called by bind.c
// for a kernel, and by space.c, which goes through the domains; calls expr.c.
#include "compiler/lower/lower.h"

#include <string.h>

// ---- values

const char *low_kind_of(u8 kind) {
  return kind == VAL_INT    ? "an integer"
         : kind == VAL_REAL ? "a real"
         : kind == VAL_BOOL ? "true or false"
                            : "an element type";
}

bool low_fits(Value *v, u8 kind) {
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
  if (read_int(s, &out->num.i)) return low_fits(out, kind);
  if (!strcmp(s, "true") || !strcmp(s, "false"))
    return *out = (Value){VAL_BOOL, {.i = *s == 't'}}, kind == VAL_BOOL;
  if (low_elem_named(s, &elem)) return *out = (Value){VAL_ELEM, {.i = elem}}, kind == VAL_ELEM;
  if (!sc_read_real(l->sc, s + negative, strlen(s + negative), &f)) return false;
  return *out = (Value){VAL_REAL, {.f = negative ? -f : f}}, kind == VAL_REAL;
}

void low_bind_param(Low *l, Name *n, Value v) {
  n->kind = v.kind == VAL_ELEM ? NM_ELEM : NM_VALUE;
  n->elem = (u8)v.num.i;
  n->x = v.kind == VAL_INT    ? x_int(l->sc, l->k, v.num.i)
         : v.kind == VAL_BOOL ? x_bool(l->sc, l->k, v.num.i)
         : v.kind == VAL_REAL ? x_real(l->sc, l->k, v.num.f)
                              : 0;
}

// ---- domains

static bool holds(const Values *domain, Value v) {
  for (u32 i = 0; i < domain->n; i++) {
    if (sc_same_value(domain->at[i], v)) return true;
  }
  return false;
}

static bool add_value(Low *l, const Node *def, const Node *at, u8 kind, Value v, Values *out) {
  if (!low_fits(&v, kind)) {
    low_error(l, D_P_VALUE, at->span, "this is no value for the param '%s': %s is needed",
              def->name, low_kind_of(kind));
    return false;
  }
  if (out->n == LOW_MAX_DOMAIN) {
    low_error(l, D_P_LIMIT, at->span, "the domain of '%s' has more than %d values", def->name,
              LOW_MAX_DOMAIN);
    return false;
  }
  PUSH(l->sc, out, v);
  return true;
}

static bool add_range(Low *l, const Node *def, const Node *range, u8 kind, Values *out) {
  i64 step = 1, from, to;
  Value end[2];
  const Node *bound[2] = {range->a, range->b};
  for (u32 i = 0; i < 2; i++) {
    if (!low_value(l, bound[i], &end[i])) return false;
    if (end[i].kind == VAL_INT) continue;
    low_error(l, D_R9_TYPE, bound[i]->span, "a range is of integers");
    return false;
  }
  if (range->c && !low_const(l, range->c, "the step", 1, INT32_MAX, &step)) return false;
  from = end[0].num.i, to = end[1].num.i;
  for (i64 v = from; v < to;) {
    if (!add_value(l, def, range, kind, (Value){VAL_INT, {.i = v}}, out)) return false;
    if (__builtin_add_overflow(v, step, &v)) break;
  }
  return true;
}

bool low_domain(Low *l, const Node *def, u8 kind, Values *out) {
  for (const Node *e = def->b; e; e = e->next) {
    Value v;
    if (e->kind == ND_RANGE ? !add_range(l, def, e, kind, out)
                            : !low_value(l, e, &v) || !add_value(l, def, e, kind, v, out))
      return false;
  }
  return true;
}

static const char *domain_text(Low *l, const Values *domain) {
  Str s = {.sc = l->sc};
  for (u32 i = 0; i < domain->n; i++)
    str_printf(&s, "%s%s", i ? ", " : "", sc_value_text(l->sc, &domain->at[i]));
  return s.at ? s.at : "empty";
}

// ---- parameters

static const Node *case_bind(const Given *g, Sym name) {
  for (const Node *b = g->kase ? g->kase->a : NULL; b; b = b->next) {
    if (b->kind == ND_BIND && b->name == name) return b;
  }
  return NULL;
}

const char *low_caller_text(const Choice *c, const char *name) {
  const char *text = NULL;
  for (u32 i = 0; i < c->params; i++) {
    if (!strcmp(c->param[i].name, name)) text = c->param[i].value;
  }
  return text;
}

bool low_chosen(Low *l, const Given *g, const Node *def, Value *v) {
  const char *text = low_caller_text(g->choice, def->name);
  const Node *bind = case_bind(g, def->name);
  u8 kind = v->kind;
  if (text) {
    Value given;
    if (read_value(l, text, kind, &given)) return *v = given, true;
    Diag *d =
        low_error(l, D_P_VALUE, def->name_span, "'%s' is no value for the param '%s': %s is needed",
                  text, def->name, low_kind_of(kind));
    sc_help(l->sc, d, "its default is %s%s", sc_value_text(l->sc, v),
            kind == VAL_ELEM ? "; element types are f32, f16, bf16, e4m3, e5m2 and i32" : "");
    return false;
  }
  if (bind) {
    const Node *value =
        bind->a->kind == ND_SET ? bind->a->a : bind->a;  // a set: the first stands for it
    Value given;
    if (!value || !low_value(l, value, &given)) return false;
    if (low_fits(&given, kind)) return *v = given, true;
    sc_note(l->sc,
            low_error(l, D_P_VALUE, bind->span, "this is no value for the param '%s': %s is needed",
                      def->name, low_kind_of(kind)),
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
    if (p->name != def->name || i >= g->standard.n || sc_same_value(g->standard.at[i], standard))
      continue;
    Diag *d = low_error(l, D_P_DEFAULT, def->name_span,
                        "'%s' is %s here, and %s in another kernel of the sequence", def->name,
                        sc_value_text(l->sc, &standard), sc_value_text(l->sc, &g->standard.at[i]));
    sc_note(l->sc, d, p->span, "the other one");
    sc_help(l->sc, d,
            "give both the same default, or rename one: params of the same name are the same");
  }
}

static void outside(Low *l, const Given *g, const Param *p) {
  Diag *d = low_error(l, D_P_DOMAIN, p->span, "%s%s = %s is outside of its domain",
                      p->given ? "" : "the default ", p->name, sc_value_text(l->sc, &p->value));
  const Node *bind = low_caller_text(g->choice, p->name) ? NULL : case_bind(g, p->name);
  if (bind) sc_note(l->sc, d, bind->span, "the case says so");
  sc_help(l->sc, d, "the domain is %s", domain_text(l, &p->domain));
}

void low_param(Low *l, const Node *def, Given *g) {
  Param p = {.name = def->name, .span = def->name_span};
  Name *n = low_declare(l, def->name, def->name_span, NM_BAD);
  if (!low_value(l, def->a, &p.value)) return;
  Value standard = p.value;
  same_default(l, g, def, standard);
  p.given = low_chosen(l, g, def, &p.value);
  if (!low_domain(l, def, p.value.kind, &p.domain)) return;
  if (def->b && !holds(&p.domain, p.value)) {
    outside(l, g, &p);
    p.value = standard;  // what follows from a wrong value is no news
  }
  low_bind_param(l, n, p.value);
  bool shared = false;
  for (u32 i = 0; g->seq && i < g->seq->param.n; i++) shared |= g->seq->param.at[i].name == p.name;
  if (g->seq && !shared) PUSH(l->sc, &g->seq->param, p);
  if (g->seq && !shared) PUSH(l->sc, &g->standard, standard);
  if (g->seq != l->k) PUSH(l->sc, &l->k->param, p);
}
