// irexpr.c - the part of IR text that is not in the IR: names, and `let`s. In: a kernel. Out: names
// that are unique in their name space (`t.2`), and lines `let n = …` before the first line that
// needs them: of values that the schedule itself named, and of expressions that are used more than
// once or too large (`$3`). Invariant: which, where and in what order depends on the order of print
// alone, never on numbers of nodes, else printing what was parsed would not give the same text; and
// the text is linear in the size of the DAG.
#include "irtext.h"

#include <string.h>

enum {
  INLINE_SHARED = 6,  // an expression of at most so many nodes is written again rather than named
  INLINE_SIZE = 60,   // … and one of more is named even if it is used once
  INLINE_DEPTH = 20  // what nests deeper is named: the printer recurses, and the parser has a limit
};

// ---- names

static Taken *find_name(const Names *n, const char *name) {
  u32 h = 2166136261u;
  for (const char *c = name; *c; c++) h = (h ^ (u8)*c) * 16777619u;
  u32 i = h & (n->cap - 1);
  while (n->at[i].name && strcmp(n->at[i].name, name)) i = (i + 1) & (n->cap - 1);
  return &n->at[i];
}

static void take_name(Sc *sc, Names *n, const char *name) {
  if (n->n * 2 >= n->cap) {
    Names wide = {NEWS(sc, Taken, n->cap ? n->cap * 2 : 64), n->cap ? n->cap * 2 : 64, n->n};
    for (u32 i = 0; i < n->cap; i++)
      if (n->at[i].name) *find_name(&wide, n->at[i].name) = n->at[i];
    *n = wide;
  }
  *find_name(n, name) = (Taken){name, 1};
  n->n++;
}

static Names copy_names(Sc *sc, const Names *n) {
  Names copy = {NEWS(sc, Taken, n->cap), n->cap, n->n};
  memcpy(copy.at, n->at, sizeof *n->at * n->cap);
  return copy;
}

// The name itself, or with the first suffix that makes it differ from all before.
static const char *unique(Sc *sc, Names *n, const char *name) {
  if (!name) name = "_";
  const char *got = name;
  if (n->cap) {
    for (Taken *t = find_name(n, name); find_name(n, got)->name;)
      got = sc_printf(sc, "%s.%u", name, ++t->suffix);
  }
  take_name(sc, n, got);
  return got;
}

#define NAME_ALL(field, space)                      \
  p->field = NEWS(p->sc, const char *, k->field.n); \
  for (u32 i = 0; i < k->field.n; i++) p->field[i] = unique(p->sc, &p->space, k->field.at[i].name)

static void name_ring(Printer *p, u32 ring) {
  const Ring *r = &p->k->ring.at[ring];
  p->ring[ring] = unique(p->sc, &p->stores, r->name);
  for (u32 i = r->part0; i < r->part0 + r->parts; i++)
    p->buf[i] = sc_printf(p->sc, "%s.%s", p->ring[ring], p->k->buf.at[i].name);
  if (r->parts == 1) p->buf[r->part0] = p->ring[ring];
}

static void name_bufs(Printer *p, Space space, u32 role) {
  const Kernel *k = p->k;
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *b = &k->buf.at[i];
    if (b->space == space && (space != SP_REG || b->role == role))
      p->buf[i] = unique(p->sc, &p->stores, b->name);
  }
}

// In the order of print, which is the order in which the parser will number them.
void sc_ir_names(Printer *p) {
  static const char *const word[] = {"inf", "nan", "true", "false", "not", "and", "or", "fill"};
  const Kernel *k = p->k;
  for (u32 i = 0; i < COUNT(word); i++) unique(p->sc, &p->values, word[i]);
  NAME_ALL(dim, values);
  NAME_ALL(arg, values);
  p->spec = copy_names(p->sc, &p->values);
  NAME_ALL(axis, values);
  p->buf = NEWS(p->sc, const char *, k->buf.n);
  name_bufs(p, SP_TENSOR, 0);
  name_bufs(p, SP_SPEC, 0);
  p->ring = NEWS(p->sc, const char *, k->ring.n);
  for (u32 i = 0; i < k->ring.n; i++) name_ring(p, i);
  NAME_ALL(turn, stores);
  NAME_ALL(role, stores);
  for (u32 r = 0; r < k->role.n; r++) name_bufs(p, SP_REG, r);
}

static void name_loops(Printer *p, u32 role) {
  const Kernel *k = p->k;
  const Code *c = &k->role.at[role].code;
  Names *n = &p->of_role[role];
  *n = copy_names(p->sc, &p->values);
  for (u32 i = 0; i < c->n; i++) {
    if (c->at[i].op != OP_FOR) continue;
    u32 loop = c->at[i].arg[0];
    p->loop[loop] = unique(p->sc, n, k->loop.at[loop].name);
  }
}

// After all counts. Values that the schedule named keep their names if they are used and more than
// a leaf.
void sc_ir_values(Printer *p) {
  for (u32 i = 0; i < p->k->let.n; i++) {
    const Let *l = &p->k->let.at[i];
    Mark *m = &p->mark[l->value];
    u8 op = p->k->expr.at[l->value].op;
    if (!m->counted || m->let || (!sc_xop[op].arity && op != X_LOAD)) continue;
    m->let = unique(p->sc, &p->values, l->name);
    take_name(p->sc, &p->spec, m->let);
  }
  p->loop = NEWS(p->sc, const char *, p->k->loop.n);
  p->of_role = NEWS(p->sc, Names, p->k->role.n);
  for (u32 r = 0; r < p->k->role.n; r++) name_loops(p, r);
}

// Names of a map's variables, different from each other and from every scalar's that is seen there.
void sc_ir_vars(Printer *p, const Var *var, u32 n, const char **name) {
  for (u32 i = 0; i < n; i++) {
    const char *base = var[i].name ? var[i].name : "_";
    name[i] = base;
    for (u32 suffix = 2, clash = 1; clash; suffix++) {
      clash = find_name(p->seen, name[i])->name != NULL;
      for (u32 j = 0; j < i; j++) clash |= !strcmp(name[j], name[i]);
      if (clash) name[i] = sc_printf(p->sc, "%s.%u", base, suffix);
    }
  }
}

// ---- which expressions get a `let`

// Counts the edges below a root: of scalars once a kernel, of the rest once a map. (`local`: only
// the rest are wanted.) Scalars below a map are counted for each map, as each names its own.
void sc_ir_count(Printer *p, Xid root, bool local) {
  Xid operand[SC_MAX_OPERANDS] = {root};
  u32 n = root != 0;
  for (;;) {
    for (u32 i = 0; i < n; i++) {
      Mark *m = &p->mark[operand[i]];
      bool uniform = x_uniform(p->k, operand[i]);
      if (uniform && local) continue;
      bool first = uniform ? !m->counted : m->stamp != p->epoch;
      if (!uniform && first) m->uses = 0, m->name = NULL;
      if (uniform == !local) m->uses++;
      if (!first) continue;
      if (uniform) m->counted = true;
      else m->stamp = p->epoch;
      PUSH(p->sc, &p->stack, ((Step){operand[i], 0}));
    }
    if (!p->stack.n) return;
    n = x_operands(p->k, p->stack.at[--p->stack.n].e, operand);
  }
}

void sc_ir_line(Printer *p) {
  for (u32 i = 0; i < p->indent; i++) str_puts(p->out, "  ");
}

// Starts with a line of its own; the end of the line is the caller's.
void sc_ir_let(Printer *p, Xid e) {
  Mark *m = &p->mark[e];
  const char *name = m->let ? m->let : sc_printf(p->sc, "$%u", ++p->lets);
  sc_ir_line(p);
  str_printf(p->out, "let %s = ", name);
  m->name = NULL;
  sc_ir_expr(p, e, 0);
  m->name = name;
}

// All below e is settled: measures e and names it if it should be.
static void settle_one(Printer *p, Xid e, bool root) {
  Mark *m = &p->mark[e];
  Xid operand[SC_MAX_OPERANDS];
  const Expr *load = p->k->expr.at[e].op == X_LOAD ? &p->k->expr.at[e] : NULL;
  u32 size = 1 + (load ? p->k->view.at[load->ref].rank : 0), depth = 1;
  for (u32 i = x_operands(p->k, e, operand); i--;) {
    const Mark *o = &p->mark[operand[i]];
    size += o->name ? 1 : o->size;
    if (!o->name && o->depth >= depth) depth = o->depth + 1u;
  }
  m->size = (u16)size;
  m->depth = (u8)depth;
  bool fits = root || (size <= INLINE_SIZE && depth <= INLINE_DEPTH);
  if (!m->let && fits && (m->uses < 2 || size <= INLINE_SHARED)) return;
  if (x_uniform(p->k, e)) {
    sc_ir_let(p, e);
    str_puts(p->out, "\n");
  } else {
    PUSH(p->sc, &p->local, e);
    m->name = "";
  }
}

// Walks below a root, operands first, and prints the `let` lines that it needs. `shared`: only
// those that all roles may use, and the rest is left for later.
void sc_ir_settle(Printer *p, Xid root, bool shared) {
  if (root) PUSH(p->sc, &p->stack, ((Step){root, 0}));
  while (p->stack.n) {
    Step *s = &p->stack.at[p->stack.n - 1];
    Mark *m = &p->mark[s->e];
    Xid operand[SC_MAX_OPERANDS], e = s->e;
    bool seen = m->settled || (s->next == 0 && m->stamp == p->epoch);
    m->stamp = p->epoch;
    if (!seen && s->next < x_operands(p->k, e, operand)) {
      PUSH(p->sc, &p->stack, ((Step){operand[s->next++], 0}));  // moves s: not used again
      continue;
    }
    p->stack.n--;
    if (seen || (shared && (!x_uniform(p->k, e) || p->k->expr.at[e].deps & (DEP_LOOP | DEP_INST))))
      continue;
    settle_one(p, e, e == root && !shared);
    m->settled = x_uniform(p->k, e);
  }
}

// ---- expressions

static void put_pos(Printer *p, const Pos *at) {
  if (at->base) sc_ir_expr(p, at->base, at->var < 0 ? 0 : BIND_SUM);
  if (at->base && at->var >= 0) str_puts(p->out, " + ");
  if (at->var >= 0) str_puts(p->out, p->var[at->var]);
  if (!at->base && at->var < 0) str_puts(p->out, "0");
  if (at->slice) str_puts(p->out, "..");
}

void sc_ir_view(Printer *p, u32 view) {
  const View *v = &p->k->view.at[view];
  str_printf(p->out, "%s%s[", v->fill ? "fill " : "", p->buf[v->buf]);
  for (u32 i = 0; i < v->rank; i++) {
    if (i) str_puts(p->out, ", ");
    put_pos(p, &v->at[i]);
  }
  str_puts(p->out, "]");
}

static void put_leaf(Printer *p, const Expr *e) {
  switch (e->op) {
    case X_INT: str_printf(p->out, "%lld", (long long)e->num.i); break;
    case X_REAL: str_real(p->out, e->num.f); break;
    case X_BOOL: str_puts(p->out, e->num.i ? "true" : "false"); break;
    case X_DIM: str_puts(p->out, p->dim[e->ref]); break;
    case X_ARG: str_puts(p->out, p->arg[e->ref]); break;
    case X_AXIS: str_puts(p->out, p->axis[e->ref]); break;
    case X_INST: str_printf(p->out, "#%s", p->role[e->ref]); break;
    case X_LOOP: str_puts(p->out, p->loop[e->ref]); break;
    case X_IDX: str_puts(p->out, p->var[e->ref]); break;
    default: sc_ir_view(p, e->ref); break;
  }
}

static void put_call(Printer *p, const Expr *e) {
  const Xid x[3] = {e->a, e->b, e->c};
  str_printf(p->out, "%s(", sc_xop[e->op].text);
  if (e->op >= X_SUM) str_printf(p->out, "%s, ", p->var[e->ref]);
  for (u32 i = 0; i < sc_xop[e->op].arity; i++) {
    if (i) str_puts(p->out, ", ");
    sc_ir_expr(p, x[i], 0);
  }
  str_puts(p->out, ")");
}

static void put_prefix(Printer *p, const char *text, Xid a, u32 bind) {
  str_puts(p->out, text);
  sc_ir_expr(p, a, bind);
}

// `bind`: how tightly what stands around it binds.
void sc_ir_expr(Printer *p, Xid x, u32 bind) {
  const Expr *e = &p->k->expr.at[x];
  const Infix *in = infix_of(e->op);
  u32 own = in ? in->bind : e->op == X_NOT ? BIND_NOT : e->op == X_NEG ? BIND_SIGN : BIND_ATOM;
  if (p->mark[x].name) {
    str_puts(p->out, p->mark[x].name);
    return;
  }
  if (own < bind) str_puts(p->out, "(");
  if (in) {
    sc_ir_expr(p, e->a, own + (own == BIND_CMP));
    str_printf(p->out, " %s ", in->text);
    sc_ir_expr(p, e->b, own + 1);
  } else if (e->op == X_NOT) {
    put_prefix(p, "not ", e->a, BIND_NOT);
  } else if (e->op == X_NEG) {
    put_prefix(p, "-", e->a, BIND_SIGN);
  } else if (sc_xop[e->op].arity) {
    put_call(p, e);
  } else {
    put_leaf(p, e);
  }
  if (own < bind) str_puts(p->out, ")");
}
