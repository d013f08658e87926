// def.c - built-in functions, and defs: hygienic substitution. Arguments are bound before the
// body is looked at: a name stands for what it means where the def is used (a value, a tile, a
// ring, a flag, or an index that is free there), anything else for its value. So nothing of the
// body can capture a name of an argument, and an argument is evaluated once.
// Called by expr.c for values and by stmt.c for blocks; calls expr.c and view.c for arguments.
#include "compiler/lower/lower.h"

static u32 length(const Node *n) {
  u32 count = 0;
  for (; n; n = n->next) count++;
  return count;
}

static Xid apply_function(Low *l, const Node *n, ExprOp op) {
  u32 args = length(n->a), least = sc_xop[op].arity;
  bool chain = sc_xop[op].binds == BIND_CHAIN;
  if (chain ? args < least : args != least) {
    low_error(l, D_N_ARGS, n->span, "'%s' takes %s%u argument%s, not %u", n->name,
              chain ? "at least " : "", least, least == 1 ? "" : "s", args);
    return 0;
  }
  const char *sig = sc_xop[op].sig;
  bool real = *sig == 'r', wrong = false;
  Xid *x = NEWS(l->sc, Xid, args);
  u32 i = 0;
  if (l->stmt) l->stmt->args++;
  for (const Node *a = n->a; a; a = a->next, i++) {
    x[i] = *sig == 'i' ? low_int(l, a) : low_expr(l, a);
    wrong |= !x[i];
    real |= x[i] && low_at(l, x[i])->ty != TY_INT;
  }
  if (l->stmt) l->stmt->args--;
  if (wrong) return 0;
  i = 0;
  for (const Node *a = n->a; real && a; a = a->next, i++) x[i] = low_real(l, a, x[i]);
  if (args == 1) return low_make(l, n->span, op, x[0], 0, 0);
  for (i = 1; i < args; i++) x[0] = low_make(l, n->span, op, x[0], x[i], 0);
  return x[0];
}

// ---- defs

// Binds parameter `name` to an argument: as what it means where the def is used.
static bool bind_argument(Low *l, Scope *to, const Node *param, const Node *arg) {
  Name n = {.name = param->name, .span = param->span, .ref = SC_NONE};
  Elem elem;
  if (arg->kind == ND_NAME) {
    const Name *old = low_find(l, arg->name);
    int v = old ? -1 : low_var(l, arg->name);
    double c;
    if (old) {
      n = *old;
    } else if (v >= 0) {
      n.kind = NM_INDEX;
      n.ref = (u32)v;
    } else if (low_constant_named(arg->name, &c)) {
      n.kind = NM_VALUE;
      n.x = x_real(l->sc, l->k, c);
    } else if (low_elem_named(arg->name, &elem)) {
      n.kind = NM_ELEM;
      n.elem = elem;
    } else if (l->dims) {
      n.kind = NM_VALUE;
      n.x = low_expr(l, arg);
    } else {
      n.kind = NM_INDEXNAME;
      n.index = arg->name;
    }
  } else if (arg->kind == ND_FIELD) {
    n.kind = NM_BUF;
    if (!low_buf(l, arg, &n.ref)) return false;
  } else if (low_elem(l, arg, &elem)) {
    n.kind = NM_ELEM;
    n.elem = elem;
  } else {
    n.kind = NM_VALUE;
    n.x = low_expr(l, arg);
    if (!n.x) return false;
  }
  n.name = param->name;
  n.next = to->first;
  to->first = NEW(l->sc, Name);
  *to->first = n;
  return true;
}

static Name *def_named(Low *l, const Node *n) {
  Name *def = low_find(l, n->name);
  if (!def) {
    low_unbound_call(l, n->name, n->name_span.hi ? n->name_span : n->span);
    return NULL;
  }
  if (def->kind == NM_DEF) return def;
  if (low_is_there(l, def, n->span)) {
    Diag *d = low_error(l, D_N_KIND, n->span, "'%s' is %s, not a def or function", n->name,
                        low_kind_text(l, def));
    sc_note(l->sc, d, def->span, "declared here");
  }
  return NULL;
}

bool low_enter_def(Low *l, const Node *n, Use *u) {
  Name *def = u->def = def_named(l, n);
  if (!def) return false;
  if (def->open) {
    Diag *d = low_error(l, D_N_RECURSION, n->span, "'%s' expands into itself", n->name);
    sc_note(l->sc, d, def->span, "declared here");
    sc_help(l->sc, d, "a def is substituted where it is used: use a loop");
    return false;
  }
  u32 want = length(def->node->a), have = length(n->a);
  if (want != have) {
    Diag *d = low_error(l, D_N_ARGS, n->span, "'%s' takes %u argument%s, not %u", n->name, want,
                        want == 1 ? "" : "s", have);
    sc_note(l->sc, d, def->span, "declared here");
    return false;
  }
  Scope *inner = NEW(l->sc, Scope);
  inner->up = l->spec && def->home == l->top ? l->base : def->home;
  for (const Node *p = def->node->a, *a = n->a; p; p = p->next, a = a->next) {
    if (!bind_argument(l, inner, p, a)) return false;
  }
  if (!low_enter(l, n->span)) return false;
  u->caller = l->scope;
  l->scope = inner;
  l->call[l->calls++] = n->span;
  def->open = true;
  return true;
}

void low_leave_def(Low *l, const Use *u) {
  u->def->open = false;
  l->calls--;
  l->scope = u->caller;
  low_leave(l);
}

Xid low_apply(Low *l, const Node *n) {
  ExprOp op = low_find(l, n->name) ? X_COUNT : low_function(n->name);
  if (op < X_COUNT) return apply_function(l, n, op);
  Use u;
  if (!low_enter_def(l, n, &u)) return 0;
  Xid x = 0;
  if (u.def->node->b->kind == ND_BLOCK) {
    Diag *d =
        low_error(l, D_N_KIND, n->span, "'%s' is a block of statements, not a value", n->name);
    sc_note(l->sc, d, u.def->span, "declared here");
  } else {
    x = low_expr(l, u.def->node->b);
  }
  low_leave_def(l, &u);
  return x;
}

void low_def(Low *l, const Node *n, Scope *where, Scope *home) {
  Scope *back = l->scope;
  l->scope = where;
  Name *def = low_declare(l, n->name, n->name_span, NM_DEF);
  def->node = n;
  def->home = home;
  l->scope = back;
  for (const Node *p = n->a; p; p = p->next) {
    for (const Node *q = n->a; q != p; q = q->next) {
      if (q->name != p->name) continue;
      sc_note(l->sc, low_error(l, D_N_TWICE, p->span, "'%s' is declared twice", p->name), q->span,
              "a parameter");
    }
  }
}
