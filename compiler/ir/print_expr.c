// print_expr.c - the part of IR text that is not in the IR: names, and `let`s. In: a kernel. Out:
// names that differ from all that are seen where they stand (`t.2`), and lines `let n = …` before
// the first line that needs them: of values that the schedule itself named, and of expressions that
// are used more than once or too large (`$3`). Invariant: the order of print alone decides, never
// the numbers of nodes, so that equal kernels print alike; and the text is linear in the size of
// the DAG.
#include "compiler/ir/printer.h"

#include <string.h>

enum {
  INLINE_SHARED = 6,  // an expression of at most so many nodes is written again rather than named
  INLINE_SIZE = 60,   // an expression of more nodes is named even if it is used once
  INLINE_DEPTH = 20   // what nests deeper is named: the printer recurses
};

// ---- names

// The last suffix that a name was given; 0: it is not taken.
static u32 suffix_of(const Keys *n, const char *name) {
  return sc_key_number(n, 0, name, strlen(name));
}

static void take_name(Printer *p, Keys *n, const char *name, u32 suffix) {
  sc_key(p->sc, n, 0, name, strlen(name))->number = suffix;
}

static bool is_seen(const Printer *p, const Keys *n, const char *name) {
  bool seen = suffix_of(n, name) || (n == &p->tiles && suffix_of(&p->stores, name));
  if (n != &p->values) return seen;
  for (u32 i = 0; i < p->around.n; i++) seen |= !strcmp(p->around.at[i], name);
  for (u32 i = 0; i < p->vars; i++) seen |= !strcmp(p->var[i], name);
  return seen;
}

// The name itself, or with the first suffix after `last` that makes it differ from all that are
// seen.
static const char *differing(Printer *p, const Keys *n, const char *name, u32 *last) {
  const char *got = name;
  while (is_seen(p, n, got)) got = sc_printf(p->sc, "%s.%u", name, ++*last);
  return got;
}

static const char *unique(Printer *p, Keys *n, const char *name) {
  const u32 known = suffix_of(n, name);
  u32 last = known ? known : 1;
  const char *got = differing(p, n, name, &last);
  if (known) take_name(p, n, name, last);
  take_name(p, n, got, 1);
  return got;
}

static void name_ring(Printer *p, u32 ring) {
  const Ring *r = &p->k->ring.at[ring];
  p->ring[ring] = unique(p, &p->stores, r->name);
  for (u32 i = r->part0; i < r->part0 + r->parts; i++)
    p->buf[i] = sc_printf(p->sc, "%s.%s", p->ring[ring], p->k->buf.at[i].name);
  if (r->parts == 1) p->buf[r->part0] = p->ring[ring];
}

static void name_bufs(Printer *p, Keys *n, Space space, u32 role) {
  const Kernel *k = p->k;
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *b = &k->buf.at[i];
    if (b->space == space && b->role == role) p->buf[i] = unique(p, n, b->name);
  }
}

// Of storage, turns and roles, in the order of print. Values are named where they are declared.
void sc_ir_names(Printer *p) {
  const Kernel *k = p->k;
  p->buf = NEWS(p->sc, const char *, k->buf.n);
  p->ring = NEWS(p->sc, const char *, k->ring.n);
  p->turn = NEWS(p->sc, const char *, k->turn.n);
  p->role = NEWS(p->sc, const char *, k->role.n);
  p->dim = NEWS(p->sc, const char *, k->dim.n);
  p->arg = NEWS(p->sc, const char *, k->arg.n);
  p->axis = NEWS(p->sc, const char *, k->axis.n);
  p->loop = NEWS(p->sc, const char *, k->loop.n);
  name_bufs(p, &p->stores, SP_TENSOR, SC_NONE);
  name_bufs(p, &p->stores, SP_SPEC, SC_NONE);
  for (u32 i = 0; i < k->ring.n; i++) name_ring(p, i);
  for (u32 i = 0; i < k->turn.n; i++) p->turn[i] = unique(p, &p->stores, k->turn.at[i].name);
  for (u32 i = 0; i < k->role.n; i++) p->role[i] = unique(p, &p->stores, k->role.at[i].name);
  for (u32 r = 0; r < k->role.n; r++) {
    sc_keys_clear(&p->tiles);
    name_bufs(p, &p->tiles, SP_REG, r);
  }
}

const char *sc_ir_value(Printer *p, const char *name) { return unique(p, &p->values, name); }

void sc_ir_loop(Printer *p, u32 loop) {
  u32 first = 1;
  p->loop[loop] = differing(p, &p->values, p->k->loop.at[loop].name, &first);
  PUSH(p->sc, &p->around, p->loop[loop]);
}

void sc_ir_vars(Printer *p, const Var *var, u32 n) {
  for (p->vars = 0; p->vars < n; p->vars++) {
    u32 first = 1;
    p->var[p->vars] = differing(p, &p->values, var[p->vars].name, &first);
  }
}

// After all counts. Values that the schedule named keep their names if they are used and more than
// a leaf.
void sc_ir_lets(Printer *p) {
  for (u32 i = 0; i < p->k->let.n; i++) {
    const Let *l = &p->k->let.at[i];
    Mark *m = &p->mark[l->value];
    u8 op = p->k->expr.at[l->value].op;
    if (m->counted && !m->let && (sc_xop[op].arity || op == X_LOAD)) m->let = l->name;
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
  const char *name = m->let ? sc_ir_value(p, m->let) : sc_printf(p->sc, "$%u", ++p->lets);
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
  if (x_reduces(e->op)) str_printf(p->out, "%s, ", p->var[e->ref]);
  for (u32 i = 0; i < sc_xop[e->op].arity; i++) {
    if (i) str_puts(p->out, ", ");
    sc_ir_expr(p, x[i], 0);
  }
  str_puts(p->out, ")");
}

void sc_ir_prefix(Printer *p, const char *text, Xid a, u32 bind) {
  str_puts(p->out, text);
  sc_ir_expr(p, a, bind);
}

// `bind`: how tightly what stands around it binds.
void sc_ir_expr(Printer *p, Xid x, u32 bind) {
  const Expr *e = &p->k->expr.at[x];
  u32 own = sc_xop[e->op].binds, arity = sc_xop[e->op].arity;
  if (p->mark[x].name) {
    str_puts(p->out, p->mark[x].name);
    return;
  }
  if (own < bind) str_puts(p->out, "(");
  if (arity == 0) {
    put_leaf(p, e);
  } else if (own >= BIND_ATOM) {
    put_call(p, e);
  } else if (arity == 1) {
    sc_ir_prefix(p, sc_xop[e->op].text, e->a, own);
  } else {
    sc_ir_expr(p, e->a, own);
    str_printf(p->out, " %s ", sc_xop[e->op].text);
    sc_ir_expr(p, e->b, own + 1);
  }
  if (own < bind) str_puts(p->out, ")");
}
