// worlds.c - worlds: dimensions and scalars to try. In: a kernel, and a function `look`. Out:
// whether `look` was true of a world. Worlds are the kernel's cases, and each case with one number
// changed, where all requirements hold. A required equation gives another dimension its value.
// A kernel without cases has usual numbers instead, then the cases of sequences that launch it.
#include "compiler/verify/replay.h"

enum { WORLDS = 120, VALUES = 3000000, USUAL = 128 };
static const i64 tries[] = {1, 2, 3, 5, 8, 63, 65, 96, 128, 192, 320};

typedef struct Trial {
  Races *v;
  World *w;
  bool (*look)(void *user);
  void *user;
  u32 left;
  bool lent;
} Trial;

static bool look(Trial *t, u32 changed) {
  const Numbers numbers = sc_numbers(t->w);
  t->w->effort.steps = VALUES;
  if (changed != SC_NONE) sc_solve(&numbers, changed, t->w->dim);
  const bool allowed = t->left && sc_is_allowed(&numbers);
  if (!allowed) return false;
  t->left--;
  return t->look(t->user);
}

// ---- cases

// Takes a value from the case. False: the case is for other parameters.
static bool take_bind(Trial *t, const CaseBind *b) {
  const Kernel *k = t->v->k;
  if (b->kind == CASE_TENSOR || !b->value.n) return true;
  if (b->kind == CASE_DIM) t->w->dim[b->ref] = b->value.at[0].num.i;
  if (b->kind == CASE_ARG && k->arg.at[b->ref].elem == EL_I32) {
    t->w->arg[b->ref] = b->value.at[0].num.i;
    t->w->known[b->ref] = true;
  }
  if (b->kind != CASE_PARAM) return true;
  for (u32 i = 0; i < b->value.n; i++)
    if (sc_same_value(b->value.at[i], k->param.at[b->ref].value)) return true;
  return false;
}

static bool take_case(Trial *t, const Case *c) {
  t->w->kase = c;
  for (u32 i = 0; c && i < c->bind.n; i++)
    if (!take_bind(t, &c->bind.at[i])) return false;
  return true;
}

static void begin(Trial *t) {
  const Kernel *k = t->v->k;
  Sc *sc = t->v->sc;
  *t->w = (World){.v = t->v, .lent = t->lent, .effort.steps = VALUES, .replay = t->w->replay};
  t->w->dim = NEWS(sc, i64, k->dim.n + 1);
  t->w->arg = NEWS(sc, i64, k->arg.n + 1);
  t->w->known = NEWS(sc, bool, k->arg.n + 1);
  for (u32 i = 0; i < k->dim.n; i++) t->w->dim[i] = USUAL;
}

// Gives scalars their declared defaults where the case does not give them.
static void take_defaults(Trial *t) {
  const Kernel *k = t->v->k;
  for (u32 i = 0; i < k->arg.n; i++) {
    const Arg *a = &k->arg.at[i];
    if (!t->w->known[i] && a->init && a->elem == EL_I32)
      t->w->known[i] = sc_value(t->w, a->init, &t->w->arg[i]);
  }
}

// Is the dimension that of a tensor which the case lists?
static bool is_fixed(const Trial *t, u32 dim) {
  const Kernel *k = t->v->k;
  for (u32 i = 0; t->w->kase && i < t->w->kase->bind.n; i++) {
    const CaseBind *b = &t->w->kase->bind.at[i];
    for (u32 d = 0; b->kind == CASE_TENSOR && d < k->buf.at[b->ref].rank; d++) {
      const Expr *e = &k->expr.at[k->buf.at[b->ref].dim[d]];
      if (e->deps & DEP_DIM && (e->op != X_DIM || e->ref == dim)) return true;
    }
  }
  return false;
}

static bool begin_case(Trial *t, const Case *c) {
  begin(t);
  if (!take_case(t, c)) return false;
  take_defaults(t);
  return true;
}

static bool in_case(Trial *t, const Case *c) {
  const Kernel *k = t->v->k;
  if (!begin_case(t, c)) return false;
  if (look(t, SC_NONE)) return true;
  for (u32 i = 0; i < COUNT(tries) * (k->dim.n + k->arg.n); i++) {
    u32 n = i / COUNT(tries), arg = n - k->dim.n;
    begin_case(t, c);
    if (n < k->dim.n && is_fixed(t, n)) continue;
    if (n >= k->dim.n && !t->w->known[arg]) continue;
    if (n < k->dim.n) t->w->dim[n] = tries[i % COUNT(tries)];
    else t->w->arg[arg] = tries[i % COUNT(tries)];
    if (look(t, n)) return true;
  }
  return false;
}

bool sc_each_world(Races *v, World *w, bool (*look_at)(void *user), void *user) {
  const Kernel *k = v->k;
  Trial t = {v, w, look_at, user, WORLDS, false};
  *w = (World){.v = v};
  for (u32 i = 0; i < k->kase.n; i++)
    if (in_case(&t, &k->kase.at[i])) return true;
  if (!k->kase.n && in_case(&t, NULL)) return true;
  t.left = WORLDS;
  t.lent = true;
  for (u32 i = 0; i < k->lent.n; i++)
    if (in_case(&t, &k->lent.at[i])) return true;
  return false;
}
