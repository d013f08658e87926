// space.c - the params of a kernel or a sequence, told apart before any has a value: those on which
// tensors, scalars or the specification depend are the problem's, all others are for tuning. In: a
// tree, and the params that the caller fixes. Out: a ParamSpace, or reports. Names are followed
// through defs, and from a param of the problem to what its default is made of. What a sequence
// keeps to itself, a workspace, is nobody's problem. Calls points.c for domains, and unit.c.
#include "compiler/lower/space.h"

#include <string.h>

// ---- names

// The names that some nodes use.
typedef struct Names {
  Sc *sc;
  const ParamSpace *s;
  u32 kernel;             // whose they are; SC_NONE: a sequence's, which are all its kernels'
  bool *param;            // by param: is it used, by itself or through a def?
  bool *def;              // by step: has this def been looked into?
  VEC(const Node *) own;  // the sequence's own defs that have been
  bool other;             // something else is used than params, defs, functions and constants
  u32 last;               // the last step that has one of them
} Names;

static Names no_names(Sc *sc, const ParamSpace *s, u32 kernel) {
  return (Names){.sc = sc,
                 .s = s,
                 .kernel = kernel,
                 .param = NEWS(sc, bool, s->param.n + 1),
                 .def = NEWS(sc, bool, s->step.n + 1)};
}

static void gather(Names *w, const Node *n, const Node *formals, u32 depth);

static bool predefined(const Node *n) {
  double value;
  Elem elem;
  if (n->kind == ND_APPLY) return low_function(n->name) < X_COUNT;
  return low_constant_named(n->name, &value) || low_elem_named(n->name, &elem);
}

// Is it a def of the sequence?
static bool gather_own(Names *w, const Node *n, u32 depth) {
  const Node *def = w->kernel == SC_NONE ? w->s->unit->a : NULL;
  while (def && !(def->kind == ND_DEF && def->name == n->name)) def = def->next;
  bool seen = !def;
  for (u32 i = 0; i < w->own.n; i++) seen |= w->own.at[i] == def;
  if (!seen) {
    PUSH(w->sc, &w->own, def);
    gather(w, def->b, def->a, depth + 1);
  }
  return def;
}

static void gather_name(Names *w, const Node *n, const Node *formals, u32 depth) {
  const ParamSpace *s = w->s;
  for (const Node *f = formals; f; f = f->next)
    if (f->name == n->name) return;
  for (u32 i = 0; i < s->step.n; i++) {
    const SpaceStep *step = &s->step.at[i];
    bool seen = step->kernel == w->kernel || (w->kernel == SC_NONE && step->node->kind != ND_DEF);
    if (!seen || step->node->name != n->name) continue;
    if (i > w->last) w->last = i;
    if (step->node->kind == ND_PARAMDEF) w->param[step->param] = true;
    else if (!w->def[i]) {
      w->def[i] = true;
      gather(w, step->node->b, step->node->a, depth + 1);
    }
    return;
  }
  w->other |= !gather_own(w, n, depth) && !predefined(n);
}

static void gather(Names *w, const Node *n, const Node *formals, u32 depth) {
  if (depth > LOW_MAX_NEST) {
    w->other = true;  // `lower` will not have it
    return;
  }
  for (; n; n = n->next) {
    if (n->kind == ND_NAME || n->kind == ND_TYPE || n->kind == ND_APPLY)
      gather_name(w, n, formals, depth);
    gather(w, n->a, formals, depth + 1);
    gather(w, n->b, formals, depth + 1);
    gather(w, n->c, formals, depth + 1);
    gather(w, n->d, formals, depth + 1);
  }
}

// One node alone, without those that follow it in its list.
static void gather_one(Names *w, const Node *n) {
  Node alone = *n;
  alone.next = NULL;
  gather(w, &alone, NULL, 0);
}

// ---- which params there are

static void add_params(Sc *sc, ParamSpace *s, u32 kernel) {
  for (const Node *i = s->kernel.at[kernel]->a; i; i = i->next) {
    if (i->kind == ND_DEF) PUSH(sc, &s->step, ((SpaceStep){.node = i, .kernel = kernel}));
    for (const Node *d = i->kind == ND_PARAM ? i->a : NULL; d; d = d->next) {
      if (d->kind != ND_PARAMDEF) continue;
      u32 *number = &sc_key(sc, &s->numbers, 0, d->name, strlen(d->name))->number;
      bool again = *number;
      if (!again) {
        PUSH(sc, &s->param, ((SpaceParam){.name = d->name, .def = d}));
        *number = s->param.n;
      }
      PUSH(sc, &s->step, ((SpaceStep){d, kernel, *number - 1, again}));
    }
  }
}

static bool add_kernels(Low *l, ParamSpace *s) {
  if (s->unit->kind == ND_KERNEL) PUSH(l->sc, &s->kernel, s->unit);
  for (const Node *i = s->unit->a; i && s->unit->kind == ND_SEQUENCE; i = i->next) {
    const Node *kernel = i->kind == ND_LAUNCH ? low_kernel_named(l, i) : NULL;
    bool have = i->kind != ND_LAUNCH;
    for (u32 k = 0; k < s->kernel.n; k++) have |= s->kernel.at[k] == kernel;
    if (!have && !kernel) return false;
    if (!have) PUSH(l->sc, &s->kernel, kernel);
  }
  for (u32 k = 0; k < s->kernel.n; k++) add_params(l->sc, s, k);
  return true;
}

// Is the kernel launched, whatever the params are? Else nobody may ask for what it requires.
static bool is_sure(const ParamSpace *s, u32 kernel) {
  bool sure = s->unit->kind == ND_KERNEL;
  for (const Node *i = s->unit->a; i && !sure; i = i->next)
    sure = i->kind == ND_LAUNCH && !i->a && i->name == s->kernel.at[kernel]->name;
  return sure;
}

// A `require` of a kernel over params is a step behind the last of them.
static void add_requires(Sc *sc, ParamSpace *s) {
  VEC(SpaceStep) after = {0};
  VEC(u32) behind = {0};
  for (u32 k = 0; k < s->kernel.n; k++) {
    for (const Node *i = s->kernel.at[k]->a; i; i = i->next) {
      if (i->kind != ND_REQUIRE || !is_sure(s, k)) continue;
      Names names = no_names(sc, s, k);
      gather_one(&names, i->a);
      if (names.other) continue;
      PUSH(sc, &after, ((SpaceStep){.node = i, .kernel = k}));
      PUSH(sc, &behind, names.last);
    }
  }
  VEC(SpaceStep) all = {0};
  for (u32 i = 0; i < s->step.n; i++) {
    PUSH(sc, &all, s->step.at[i]);
    for (u32 r = 0; r < after.n; r++)
      if (behind.at[r] == i) PUSH(sc, &all, after.at[r]);
  }
  s->step.at = all.at;
  s->step.n = all.n;
}

// ---- what they are for

// Always one? Where a guard leaves it out, what the kernels use is the caller's.
static bool is_workspace(const Node *unit, const Node *tensors) {
  for (const Node *i = unit->a; i; i = i->next) {
    for (const Node *g = i->kind == ND_WORKSPACE && !i->b ? i->a : NULL; g; g = g->next) {
      for (const Node *n = g->a; n; n = n->next)
        if (n->name == tensors->name) return true;
    }
  }
  return false;
}

static void gather_arguments(Names *w, const ParamSpace *s) {
  for (const Node *i = s->kernel.at[w->kernel]->a; i; i = i->next) {
    for (const Node *g = i->kind == ND_TENSOR ? i->a : NULL; g; g = g->next) {
      bool outer = false;
      for (const Node *n = g->a; n; n = n->next)
        outer |= s->unit->kind == ND_KERNEL || !is_workspace(s->unit, n);
      if (!outer) continue;
      if (i->b) gather_one(w, i->b);
      if (g->b) gather_one(w, g->b);
      if (g->c) gather_one(w, g->c);
      if (g->d) gather_one(w, g->d);
    }
  }
}

static void gather_problem(Names *w, const ParamSpace *s) {
  if (w->kernel != SC_NONE) gather_arguments(w, s);
  for (const Node *i = s->unit->a; i; i = i->next) {
    bool mine = (s->unit->kind == ND_SEQUENCE) == (w->kernel == SC_NONE);
    if (i->kind == ND_SPEC && mine) gather(w, i->a, NULL, 0);
    if (i->kind == ND_LAUNCH && mine && i->a) gather_one(w, i->a);
    if (i->kind == ND_WORKSPACE && mine && i->b) gather_one(w, i->b);
  }
}

// The params of which a param's default is made, and its value in the case.
static void gather_values(Names *w, const ParamSpace *s, const Node *def) {
  gather_one(w, def->a);
  for (const Node *b = s->kase ? s->kase->a : NULL; b; b = b->next)
    if (b->name == def->name && b->a) gather_one(w, b->a);
}

// To the params that are used, those of which their values are made; not behind what `stop` has.
static void follow_defaults(Sc *sc, const ParamSpace *s, bool *used, const bool *stop) {
  for (bool more = true; more;) {
    more = false;
    for (u32 i = 0; i < s->step.n; i++) {
      const SpaceStep *step = &s->step.at[i];
      if (step->node->kind != ND_PARAMDEF || !used[step->param]) continue;
      if (stop && stop[step->param]) continue;
      Names names = no_names(sc, s, step->kernel);
      gather_values(&names, s, step->node);
      for (u32 p = 0; p < s->param.n; p++) {
        more |= names.param[p] && !used[p];
        used[p] |= names.param[p];
      }
    }
  }
}

static void find_problem(Sc *sc, ParamSpace *s) {
  bool *used = NEWS(sc, bool, s->param.n + 1);
  for (u32 k = 0; k <= s->kernel.n; k++) {
    Names names = no_names(sc, s, k < s->kernel.n ? k : SC_NONE);
    gather_problem(&names, s);
    for (u32 p = 0; p < s->param.n; p++) used[p] |= names.param[p];
  }
  follow_defaults(sc, s, used, NULL);
  for (u32 p = 0; p < s->param.n; p++) s->param.at[p].problem = used[p];
}

// ---- which vary

static bool is_named(const char *const *names, u32 n, const char *name) {
  bool found = false;
  for (u32 i = 0; i < n; i++) found |= !strcmp(names[i], name);
  return found;
}

// Its domain is the same everywhere if nothing that varies is in it.
static bool is_steady(Sc *sc, const ParamSpace *s, u32 param, const bool *firm) {
  for (u32 i = 0; i < s->step.n; i++) {
    const SpaceStep *step = &s->step.at[i];
    if (step->node != s->param.at[param].def) continue;
    Names names = no_names(sc, s, step->kernel);
    gather(&names, step->node->b, NULL, 0);
    follow_defaults(sc, s, names.param, firm);
    for (u32 p = 0; p < s->param.n; p++)
      if (names.param[p] && s->param.at[p].varies) return false;
  }
  return true;
}

static void find_varied(Sc *sc, ParamSpace *s, const char *const *range, u32 ranges) {
  bool *firm = NEWS(sc, bool, s->param.n + 1);  // their defaults do not matter
  for (u32 i = 0; i < s->param.n; i++) {
    SpaceParam *p = &s->param.at[i];
    p->fixed = low_caller_text(&s->choice, p->name) != NULL;
    p->varies = p->def->b && !p->fixed && (!p->problem || is_named(range, ranges, p->name));
    firm[i] = p->fixed || p->varies;
    if (p->varies) PUSH(sc, &s->varied, i);
  }
  for (u32 i = 0; i < s->varied.n; i++)
    s->param.at[s->varied.at[i]].steady = is_steady(sc, s, s->varied.at[i], firm);
}

// ---- the space

// Every param that the caller names exists.
static void known_params(Low *l, const ParamSpace *s, const char *const *range, u32 ranges) {
  schedc_param *all = NEWS(l->sc, schedc_param, s->choice.params + ranges + 1);
  u32 n = 0;
  for (u32 i = 0; i < s->choice.params; i++) all[n++] = s->choice.param[i];
  for (u32 i = 0; i < ranges; i++) all[n++] = (schedc_param){range[i], NULL};
  for (u32 i = 0; i < s->param.n; i++)
    PUSH(l->sc, &l->k->param, ((Param){.name = s->param.at[i].name}));
  low_known_params(l, &(Choice){.param = all, .params = n});
}

static ParamSpace *tell_apart(Low *l, Sc *sc, const Ast *ast, const Choice *choice) {
  ParamSpace *s = NEW(sc, ParamSpace);
  Given g = {.choice = choice};
  *s = (ParamSpace){.ast = ast, .choice = *choice, .unit = low_unit(sc, ast, &g)};
  s->kase = g.kase;
  if (!s->unit) return NULL;
  low_open(l, sc, ast, s->unit);
  if (!add_kernels(l, s)) return NULL;
  find_problem(sc, s);
  return s;
}

static void tell(const ParamSpace *s, Kernel *k) {
  for (u32 i = 0; i < k->param.n; i++) {
    Param *p = &k->param.at[i];
    p->problem = s->param.at[sc_key_number(&s->numbers, 0, p->name, strlen(p->name)) - 1].problem;
  }
}

void sc_tell_params(Sc *sc, const Ast *ast, Kernel *k) {
  const ParamSpace *s = tell_apart(NEW(sc, Low), sc, ast, &(Choice){.unit = k->name});
  tell(s, k);
  for (u32 i = 0; i < k->launch.n; i++) tell(s, (Kernel *)k->launch.at[i].kernel);
  for (u32 i = 0; i < k->given.n; i++) tell(s, (Kernel *)k->given.at[i].kernel);
}

ParamSpace *sc_space(Sc *sc, const Ast *ast, const Choice *choice, const char *const *range,
                     u32 ranges) {
  Low *l = NEW(sc, Low);
  ParamSpace *s = tell_apart(l, sc, ast, choice);
  if (!s) return NULL;
  known_params(l, s, range, ranges);
  find_varied(sc, s, range, ranges);
  add_requires(sc, s);
  if (s->varied.n > SCHEDC_MAX_VARIED)
    low_error(l, D_P_LIMIT, s->unit->name_span, "%u params of '%s' have domains: at most %d may",
              s->varied.n, s->unit->name, SCHEDC_MAX_VARIED);
  if (!sc->errors) sc_space_values(sc, s);
  return sc->errors ? NULL : s;
}
