// infix.c - expressions as a person would write them, "B + 1": for diagnostics, tensor infos and
// `info`. (The IR's own text form is print.c.) What would be longer than a line ends in "…".
#include "compiler/ir/printer.h"

enum { MAX_TEXT = 240, MAX_DEPTH = 24 };

typedef struct Line {
  Str *out;
  const Kernel *k;
  u32 start;
  bool named;  // `let`s by name
  bool cut;
} Line;

static void put(Line *p, Xid x, int level, int depth);

static void put_leaf(Line *p, const Expr *e) {
  const Kernel *k = p->k;
  switch (e->op) {
    case X_INT: str_printf(p->out, "%lld", (long long)e->num.i); return;
    case X_BOOL: str_puts(p->out, e->num.i ? "true" : "false"); return;
    case X_REAL: str_real(p->out, e->num.f); return;
    case X_DIM: str_puts(p->out, k->dim.at[e->ref].name); return;
    case X_ARG: str_puts(p->out, k->arg.at[e->ref].name); return;
    case X_AXIS: str_puts(p->out, k->axis.at[e->ref].name); return;
    case X_LOOP: str_puts(p->out, k->loop.at[e->ref].name); return;
    case X_INST: str_printf(p->out, "%s#", k->role.at[e->ref].name); return;
    case X_IDX: str_printf(p->out, "i%u", e->ref); return;
    default: break;
  }
  const View *v = &k->view.at[e->ref];
  str_printf(p->out, "%s[", k->buf.at[v->buf].name);
  for (u32 d = 0; d < v->rank; d++) {
    const Pos *at = &v->at[d];
    if (d) str_puts(p->out, ", ");
    if (at->base || at->var < 0) put(p, at->base, 0, MAX_DEPTH - 4);
    if (at->base && at->var >= 0) str_puts(p->out, " + ");
    if (at->var >= 0) str_printf(p->out, "i%d", at->var);
  }
  str_puts(p->out, "]");
}

static void put_call(Line *p, const Expr *e, int depth) {
  const Xid arg[] = {e->a, e->b, e->c};
  str_printf(p->out, "%s(", sc_xop[e->op].text);
  for (u32 i = 0; i < sc_xop[e->op].arity; i++) {
    if (i) str_puts(p->out, ", ");
    put(p, arg[i], 0, depth + 1);
  }
  str_puts(p->out, ")");
}

// The `let` whose value x is, or NULL.
static Sym let_of(const Line *p, Xid x) {
  for (u32 i = 0; p->named && i < p->k->let.n; i++) {
    if (p->k->let.at[i].value == x) return p->k->let.at[i].name;
  }
  return NULL;
}

static void put(Line *p, Xid x, int level, int depth) {
  if (p->cut) return;
  if (depth > MAX_DEPTH || p->out->n - p->start > MAX_TEXT) {
    p->cut = true;
    str_puts(p->out, "…");
    return;
  }
  if (!x) {
    str_puts(p->out, "0");
    return;
  }
  const Expr *e = &p->k->expr.at[x];
  const ExprInfo *o = &sc_xop[e->op];
  Sym let = o->arity ? let_of(p, x) : NULL;
  if (let) {
    str_puts(p->out, let);
  } else if (e->op == X_TOREAL) {
    put(p, e->a, level, depth + 1);
  } else if (o->arity == 0) {
    put_leaf(p, e);
  } else if (o->binds >= BIND_ATOM) {
    put_call(p, e, depth);
  } else if (o->arity == 1) {
    str_puts(p->out, o->text);
    put(p, e->a, BIND_SIGN, depth + 1);
  } else {
    if (o->binds < level) str_puts(p->out, "(");
    put(p, e->a, o->binds, depth + 1);
    str_printf(p->out, " %s ", o->text);
    put(p, e->b, o->binds + 1, depth + 1);
    if (o->binds < level) str_puts(p->out, ")");
  }
}

void sc_print_infix(Str *out, const Kernel *k, Xid x) {
  Line p = {out, k, out->n, false, false};
  put(&p, x, 0, 0);
}

void sc_print_named(Str *out, const Kernel *k, Xid x) {
  Line p = {out, k, out->n, true, false};
  put(&p, x, 0, 0);
}

void sc_print_elements(Str *out, const Kernel *k, const Buf *b) {
  if (b->end) {
    str_puts(out, "in ");
    sc_print_infix(out, k, b->least);
    str_puts(out, " .. ");
    sc_print_infix(out, k, b->end);
  }
  if (b->rising) str_puts(out, b->end ? " rising" : "rising");
}
