// unit.c - the entry of `lower`: finds the kernel or sequence, and the case, that the caller chose.
// Calls bind.c for a kernel and seq.c for a sequence.
#include "compiler/lower/lower.h"

#include <string.h>

// What `list` has of two kinds of nodes.
static void help_names(Sc *sc, Diag *d, const char *what, const Node *list, NodeKind a,
                       NodeKind b) {
  Str s = {.sc = sc};
  for (const Node *n = list; n; n = n->next)
    if (n->kind == a || n->kind == b) str_printf(&s, "%s%s", s.n ? ", " : "", n->name);
  sc_help(sc, d, "%s: %s", what, s.n ? s.at : "none");
}

static const Node *unit_of(Sc *sc, const Ast *ast, const Choice *c) {
  const Node *kernel = NULL, *sequence = NULL, *last = ast->file;
  const Node *named = c->unit ? sc_unit(ast, c->unit) : NULL;
  if (named) return named;
  for (const Node *u = ast->file->a; u; u = u->next) {
    if (u->kind != ND_KERNEL && u->kind != ND_SEQUENCE) continue;
    last = u;
    if (u->kind == ND_SEQUENCE) sequence = u;
    else kernel = u;
  }
  if (!c->unit && (sequence || kernel)) return sequence ? sequence : kernel;
  Span at = last->name_span.hi ? last->name_span : (Span){0, 0};
  Diag *d = c->unit ? sc_report(sc, D_P_UNIT, at, "there is no kernel or sequence '%s'", c->unit)
                    : sc_report(sc, D_P_UNIT, at, "there is no kernel in this file");
  if (c->unit) help_names(sc, d, "the file has", ast->file->a, ND_KERNEL, ND_SEQUENCE);
  else sc_help(sc, d, "'kernel NAME { … }' is one");
  return NULL;
}

static bool units_differ(Sc *sc, const Ast *ast) {
  for (u32 i = 0; i < ast->again.n && !sc_at_limit(sc); i++) {
    const Node *u = ast->again.at[i];
    sc_note(sc, sc_report(sc, D_N_TWICE, u->name_span, "'%s' is declared twice", u->name),
            sc_unit(ast, u->name)->name_span, "the other one");
  }
  return !ast->again.n;
}

const Node *low_unit(Sc *sc, const Ast *ast, Given *g) {
  const Node *unit = units_differ(sc, ast) ? unit_of(sc, ast, g->choice) : NULL;
  if (!unit || !g->choice->case_name) return unit;
  for (const Node *i = unit->a; i; i = i->next) {
    if (i->kind == ND_CASE && !strcmp(i->name, g->choice->case_name)) g->kase = i;
  }
  if (g->kase) return unit;
  Diag *d = sc_report(sc, D_P_CASE, unit->name_span, "'%s' has no case '%s'", unit->name,
                      g->choice->case_name);
  help_names(sc, d, "its cases are", unit->a, ND_CASE, ND_CASE);
  return NULL;
}

// ---- dimensions

static bool has_unknown(Below *below, const bool *known, Xid x) {
  x_begin(below, DEP_DIM);
  x_from(below, x);
  for (Xid y; (y = x_next(below));) {
    const Expr *e = &below->k->expr.at[y];
    if (e->op == X_DIM && !known[e->ref]) return true;
  }
  return false;
}

// The dimension that an extent tells, as the library solves for it (binding.c); SC_NONE: none.
static u32 told_by(Below *below, const bool *known, Xid x) {
  for (;;) {
    const Expr *e = &below->k->expr.at[x];
    if (e->op == X_DIM) return known[e->ref] ? SC_NONE : e->ref;
    if (e->op != X_ADD && e->op != X_SUB && e->op != X_MUL) return SC_NONE;
    bool a = has_unknown(below, known, e->a), b = has_unknown(below, known, e->b);
    if (a == b) return SC_NONE;
    x = a ? e->a : e->b;
  }
}

// The tensors that a caller brings tell every dimension of a sequence. (Those of a kernel need not:
// a sequence may launch it where other kernels' tensors tell them.)
static void dimensions_told(Sc *sc, const Kernel *k) {
  Below below = x_below(sc, k);
  bool *known = NEWS(sc, bool, k->dim.n + 1);
  for (bool again = true; again;) {
    again = false;
    for (u32 i = 0; i < k->buf.n; i++) {
      const Buf *b = &k->buf.at[i];
      for (u32 d = 0; sc_is_argument(b) && d < b->rank; d++) {
        u32 dim = told_by(&below, known, b->dim[d]);
        if (dim != SC_NONE) again = known[dim] = true;
      }
    }
  }
  for (u32 i = 0; i < k->dim.n && !sc_at_limit(sc); i++) {
    if (known[i]) continue;
    Diag *d = sc_report(sc, D_T_SHAPE, k->dim.at[i].span, "no tensor's shape says what '%s' is",
                        k->dim.at[i].name);
    sc_help(sc, d,
            "make it a param, or an extent of a tensor that the caller brings: a workspace tells "
            "nothing");
  }
}

Kernel *sc_lower(Sc *sc, const Ast *ast, const Choice *choice) {
  static const Choice none;
  u32 errors = sc->errors;
  Given g = {.choice = choice ? choice : &none};
  const Node *unit = low_unit(sc, ast, &g);
  if (!unit) return NULL;
  Kernel *k = unit->kind == ND_SEQUENCE ? low_sequence(sc, ast, unit, &g)
                                        : low_kernel(low_kernel_params(sc, ast, unit, &g), &g);
  if (sc->errors == errors && k->launch.n) dimensions_told(sc, k);
  return sc->errors > errors ? NULL : k;
}
