// irbody.c - expressions, maps, products and operations of IR text. In: tokens. Out: nodes, views,
// maps and a role's code, the operations read by ops.def's letters as irprint.c writes them.
// Nesting is limited.
#include "irread.h"

#include <string.h>

// ---- expressions

static Xid no_value(Parser *p, u32 lo) {
  FAIL(D_I_TYPE, sc_rd_since(p, lo),
       "this has no value: the types do not fit, or the constants overflow");
  return 0;
}

static Xid checked(Parser *p, u32 lo, Xid e) { return e || p->lex.failed ? e : no_value(p, lo); }

static void parse_pos(Parser *p, Pos *pos) {
  u32 lo = TOKEN.span.lo;
  i64 zero;
  pos->var = -1;
  pos->base = sc_rd_expr(p, 0);
  if (p->k->expr.at[pos->base].ty != TY_INT)
    FAIL(D_I_TYPE, sc_rd_since(p, lo), "a position is an integer");
  if (!p->in_spec && !x_split(p->k, pos->base, &pos->base, &pos->var))
    FAIL(D_I_TYPE, sc_rd_since(p, lo),
         "a position is a uniform value, an index variable, or their sum");
  if (x_const_int(p->k, pos->base, &zero) && zero == 0) pos->base = 0;
  pos->slice = sc_rd_accept(p, "..");
}

static u32 parse_view(Parser *p) {
  View v = {.span = TOKEN.span};
  v.fill = IS("fill") && sc_lex_peek(&p->lex) != '[' && sc_rd_accept(p, "fill");
  v.buf = KNOWN(buf, "a tensor, a stage or a tile");
  if (v.buf == SC_NONE || p->lex.failed) return SC_NONE;
  sc_rd_expect(p, "[");
  while (!IS("]") && !ENDED) {
    if (v.rank) sc_rd_expect(p, ",");
    if (v.rank == SC_MAX_RANK) FAIL(D_I_LIMIT, TOKEN.span, "at most %d dimensions", SC_MAX_RANK);
    else parse_pos(p, &v.at[v.rank++]);
  }
  sc_rd_expect(p, "]");
  v.span = sc_rd_since(p, v.span.lo);
  if (v.rank != p->k->buf.at[v.buf].rank)
    FAIL(D_I_TYPE, v.span, "the number of positions is not the rank");
  if (p->lex.failed) return SC_NONE;
  PUSH(p->sc, &p->k->view, v);
  return p->k->view.n - 1;
}

static Xid parse_load(Parser *p) {
  u32 view = parse_view(p);
  if (view == SC_NONE) return 0;
  u8 elem = p->k->buf.at[p->k->view.at[view].buf].elem;
  return x_leaf(p->sc, p->k, X_LOAD, sc_elem[elem].flt ? TY_REAL : TY_INT, view);
}

static Xid parse_number(Parser *p, bool negative) {
  Tok t = TOKEN;
  NEXT;
  if (t.kind == TOK_REAL) return x_real(p->sc, p->k, negative ? -t.f : t.f);
  if (t.i > (u64)INT64_MAX + negative) {
    FAIL(D_I_TOKEN, t.span, "this number does not fit into 64 bits");
    return 0;
  }
  return x_int(p->sc, p->k, negative ? (i64)(0 - t.i) : (i64)t.i);
}

static Xid parse_call(Parser *p, ExprOp op, u32 lo) {
  Xid x[3] = {0};
  u32 var = 0;
  sc_rd_expect(p, "(");
  if (op >= X_SUM) {
    Tok t = sc_rd_name(p, "an index variable");
    Xid v = t.kind == TOK_NAME ? sc_rd_mean(p, t.entry)->value : 0;
    if (p->k->expr.at[v].op != X_IDX) FAIL(D_I_NAME, t.span, "a reduction names an index variable");
    var = p->k->expr.at[v].ref;
    sc_rd_expect(p, ",");
  }
  for (u32 i = 0; i < sc_xop[op].arity; i++) {
    if (i) sc_rd_expect(p, ",");
    x[i] = sc_rd_expr(p, 0);
  }
  sc_rd_expect(p, ")");
  if (p->lex.failed) return 0;
  return checked(p, lo,
                 op >= X_SUM ? x_reduce(p->sc, p->k, op, var, x[0])
                             : x_make(p->sc, p->k, op, x[0], x[1], x[2]));
}

static Xid parse_word(Parser *p) {
  Tok t = TOKEN;
  const char *word = t.entry->name;
  char after = sc_lex_peek(&p->lex);
  if (after == '[' || (!strcmp(word, "fill") && after)) return parse_load(p);
  NEXT;
  if (after == '(') {
    for (u32 op = 0; op < X_COUNT; op++)
      if (sc_xop[op].arity && !strcmp(sc_xop[op].text, word)) return parse_call(p, op, t.span.lo);
  }
  if (!strcmp(word, "true") || !strcmp(word, "false")) return x_bool(p->sc, p->k, *word == 't');
  if (!strcmp(word, "inf")) return x_real(p->sc, p->k, __builtin_inf());
  if (!strcmp(word, "nan")) return x_real(p->sc, p->k, __builtin_nan(""));
  Xid v = sc_rd_mean(p, t.entry)->value;
  if (!v) FAIL(D_I_NAME, t.span, "'%s' is no value here", word);
  return v;
}

Xid sc_rd_prefix(Parser *p) {
  u32 lo = TOKEN.span.lo, role;
  Xid e;
  if (TOKEN.kind == TOK_INT || TOKEN.kind == TOK_REAL) return parse_number(p, false);
  if (sc_rd_accept(p, "not"))
    return checked(p, lo, x_make(p->sc, p->k, X_NOT, sc_rd_expr(p, BIND_NOT), 0, 0));
  if (sc_rd_accept(p, "-")) {
    if (TOKEN.kind == TOK_INT || TOKEN.kind == TOK_REAL) return parse_number(p, true);
    return checked(p, lo, x_make(p->sc, p->k, X_NEG, sc_rd_expr(p, BIND_SIGN), 0, 0));
  }
  if (sc_rd_accept(p, "#")) {
    role = KNOWN(role, "a role");
    return role == SC_NONE ? 0 : x_leaf(p->sc, p->k, X_INST, TY_INT, role);
  }
  if (sc_rd_accept(p, "(")) {
    e = sc_rd_expr(p, 0);
    sc_rd_expect(p, ")");
    return e;
  }
  if (TOKEN.kind == TOK_NAME) return parse_word(p);
  FAIL(D_I_TOKEN, TOKEN.span, "expected an expression here");
  return 0;
}

static const Infix *infix_here(const Parser *p, u32 bind) {
  for (u32 i = 0; i < COUNT(infix); i++)
    if (infix[i].bind >= bind && IS(infix[i].text)) return &infix[i];
  return NULL;
}

static ExprOp op_of(const Parser *p, const Infix *in, Xid a, Xid b) {
  bool integers = p->k->expr.at[a].ty == TY_INT && p->k->expr.at[b].ty == TY_INT;
  return in->op == X_IDIV && !integers ? X_DIV : (ExprOp)in->op;
}

// Operators that bind at least as tightly as `bind`.
Xid sc_rd_expr(Parser *p, u32 bind) {
  u32 lo = TOKEN.span.lo;
  if (p->nest >= SC_MAX_NEST) FAIL(D_I_LIMIT, TOKEN.span, "expressions nest too deep");
  p->nest++;
  Xid a = sc_rd_prefix(p);
  for (const Infix *in; a && (in = infix_here(p, bind));) {
    NEXT;
    Xid b = sc_rd_expr(p, in->bind + 1);
    a = b ? checked(p, lo, x_make(p->sc, p->k, op_of(p, in, a, b), a, b, 0)) : 0;
  }
  p->nest--;
  return a;
}

Xid sc_rd_typed(Parser *p, Ty ty, const char *what) {
  u32 lo = TOKEN.span.lo;
  Xid e = sc_rd_expr(p, 0);
  if (e && p->k->expr.at[e].ty != ty) FAIL(D_I_TYPE, sc_rd_since(p, lo), "expected %s here", what);
  return e;
}

// ---- maps, products, lists

// Gives a name a value until close_scope.
static void shadow(Parser *p, const Tok *t, Xid value) {
  if (t->kind != TOK_NAME) return;
  Meaning *m = sc_rd_mean(p, t->entry);
  PUSH(p->sc, &p->scope, ((Scope){t->entry, m->value}));
  m->value = value;
}

static void close_scope(Parser *p) {
  while (p->scope.n) {
    Scope s = p->scope.at[--p->scope.n];
    sc_rd_mean(p, s.entry)->value = s.before;
  }
}

static void parse_vars(Parser *p, Map *m) {
  sc_rd_expect(p, "[");
  m->outs = SC_MAX_VARS + 1;
  while (!IS("]") && !ENDED) {
    if (m->outs > SC_MAX_VARS && sc_rd_accept(p, ";")) m->outs = m->vars;
    else if (m->vars) sc_rd_expect(p, ",");
    Tok t = sc_rd_name(p, "an index variable");
    if (m->vars == SC_MAX_VARS) FAIL(D_I_LIMIT, t.span, "at most %d index variables", SC_MAX_VARS);
    if (p->lex.failed) return;
    sc_rd_expect(p, "<");
    m->var[m->vars] = (Var){sc_rd_sym(&t), sc_rd_typed(p, TY_INT, "an extent")};
    shadow(p, &t, x_leaf(p->sc, p->k, X_IDX, TY_INT, m->vars++));
  }
  if (m->outs > SC_MAX_VARS) m->outs = m->vars;
  sc_rd_expect(p, "]");
}

u32 sc_rd_map(Parser *p, Op op) {
  Map m = {.span = TOKEN.span, .dst = SC_NONE};
  parse_vars(p, &m);
  m.parts = IS("parts") && sc_lex_peek(&p->lex) != '[' && sc_rd_accept(p, "parts");
  while (sc_rd_accept(p, "let")) {
    Tok t = sc_rd_name(p, "a name");
    sc_rd_expect(p, "=");
    Xid e = sc_rd_expr(p, 0);
    shadow(p, &t, e);
  }
  if (sc_rd_accept(p, "if")) {
    m.cond = sc_rd_typed(p, TY_BOOL, "a truth");
    sc_rd_expect(p, ":");
  }
  if (sc_op[op].args[0] == 'm') {
    m.dst = parse_view(p);
    sc_rd_expect(p, op == OP_MAPADD ? "+=" : "=");
  }
  m.root = sc_rd_expr(p, 0);
  close_scope(p);
  m.span = sc_rd_since(p, m.span.lo);
  PUSH(p->sc, &p->k->map, m);
  return p->k->map.n - 1;
}

static u32 parse_product(Parser *p) {
  Product q = {.span = TOKEN.span};
  i64 *ext[3] = {&q.m, &q.n, &q.k};
  for (u32 i = 0; i < 3; i++) {
    sc_rd_expect(p, i ? "," : "[");
    Tok t = sc_rd_name(p, "an index variable");
    sc_rd_expect(p, "<");
    *ext[i] = (i64)sc_rd_int(p, INT64_MAX);
    shadow(p, &t, x_leaf(p->sc, p->k, X_IDX, TY_INT, i));
  }
  sc_rd_expect(p, "]");
  q.dst = parse_view(p);
  q.acc = sc_rd_accept(p, "+=");
  if (!q.acc) sc_rd_expect(p, "=");
  q.a = parse_view(p);
  sc_rd_expect(p, "@");
  q.b = parse_view(p);
  close_scope(p);
  q.span = sc_rd_since(p, q.span.lo);
  PUSH(p->sc, &p->k->product, q);
  return p->k->product.n - 1;
}

static u32 parse_list(Parser *p) {
  u32 list = p->k->list.n;
  PUSH(p->sc, &p->k->list, 0);
  do {
    u32 buf = KNOWN(buf, "a tile");
    PUSH(p->sc, &p->k->list, buf);
    p->k->list.at[list]++;
  } while (sc_rd_accept(p, ","));
  return list;
}

// ---- operations

static u32 parse_operand(Parser *p, char kind, Op op) {
  switch (kind) {
    case 'r': return KNOWN(ring, "a ring");
    case 'u': return KNOWN(turn, "a turn");
    case 'g': return KNOWN(buf, "a tensor");
    case 'v':
    case 'w': return parse_view(p);
    case 'x': return sc_rd_expr(p, 0);
    case 'm':
    case 'c': return sc_rd_map(p, op);
    case 'p': return parse_product(p);
    case 'l': return parse_list(p);
    default: return sc_rd_accept(p, "keep") ? (u32)sc_rd_int(p, UINT32_MAX) : 0;
  }
}

// Flags and the plan, after the operands.
static void parse_tail(Parser *p, Ins *ins) {
  for (u32 i = 0; i < COUNT(ins_flag); i++)
    if (sc_rd_accept(p, ins_flag[i].word)) ins->flags |= ins_flag[i].bit;
  if (!sc_rd_accept(p, ";")) return;
  do PARSE_ATTR(plan_attr, &ins->plan);
  while (sc_rd_accept(p, ","));
}

static void parse_operands(Parser *p, Ins *ins) {
  const char *args = sc_op[ins->op].args;
  for (u32 i = 0; args[i] && !p->lex.failed; i++) {
    bool last = args[i] == 'x' && i > 0 && !args[i + 1];
    const char *mark = operand_mark(ins->op, i);
    if (i && args[i] != 'n' && !sc_rd_accept(p, mark)) {
      if (!last || ins->op == OP_FOR) sc_rd_expect(p, mark);
      return;
    }
    ins->arg[i] = parse_operand(p, args[i], ins->op);
  }
}

// `for t in …`: the variable is known in the body only.
static Tok parse_loop(Parser *p, Ins *ins) {
  Tok t = sc_rd_name(p, "a loop variable");
  PUSH(p->sc, &p->k->loop, ((Loop){sc_rd_sym(&t), p->role, t.span}));
  ins->arg[0] = p->k->loop.n - 1;
  for (u32 i = 1; i < 3; i++) {
    sc_rd_expect(p, operand_mark(OP_FOR, i));
    ins->arg[i] = sc_rd_typed(p, TY_INT, "an integer");
  }
  return t;
}

static u32 emit(Parser *p, const Ins *ins) {
  Code *c = &p->k->role.at[p->role].code;
  PUSH(p->sc, c, *ins);
  return c->n - 1;
}

static Op op_named(const Parser *p) {
  for (u32 op = 0; op < OP_COUNT; op++)
    if (!(sc_op[op].effects & (CLOSES | SPLITS)) && IS(sc_op[op].text)) return op;
  return OP_COUNT;
}

void sc_rd_ins(Parser *p) {
  Ins ins = {.op = op_named(p), .nest = SC_NONE, .span = TOKEN.span};
  Tok loop = {0};
  if (ins.op == OP_COUNT) {
    FAIL(D_I_TOKEN, TOKEN.span, "expected an operation here");
    return;
  }
  NEXT;
  if (ins.op == OP_FOR) loop = parse_loop(p, &ins);
  else parse_operands(p, &ins);
  parse_tail(p, &ins);
  ins.span = sc_rd_since(p, ins.span.lo);
  u32 at = emit(p, &ins);
  if (!(sc_op[ins.op].effects & OPENS)) return;
  sc_rd_expect(p, "{");
  if (p->block.n == SC_MAX_NEST) FAIL(D_I_LIMIT, ins.span, "blocks nest too deep");
  Block b = {.ins = at};
  if (loop.kind == TOK_NAME) {
    b.loop = (Scope){loop.entry, sc_rd_mean(p, loop.entry)->value};
    sc_rd_mean(p, loop.entry)->value = x_leaf(p->sc, p->k, X_LOOP, TY_INT, ins.arg[0]);
  }
  PUSH(p->sc, &p->block, b);
}

// `}` or `} else {` of the innermost block.
void sc_rd_close(Parser *p) {
  Block *b = &p->block.at[p->block.n - 1];
  Code *c = &p->k->role.at[p->role].code;
  Op opener = c->at[b->ins].op;
  Ins ins = {.op = closer_of(opener), .span = TOKEN.span};
  sc_rd_expect(p, "}");
  bool splits = sc_op[opener + 1].effects & SPLITS && sc_rd_accept(p, sc_op[opener + 1].text);
  if (splits) ins.op = opener + 1;
  parse_tail(p, &ins);
  ins.nest = splits ? SC_NONE : b->ins;
  u32 at = emit(p, &ins);
  c->at[b->ins].nest = at;
  if (splits) {
    b->ins = at;
    sc_rd_expect(p, "{");
    return;
  }
  if (b->loop.entry) sc_rd_mean(p, b->loop.entry)->value = b->loop.before;
  p->block.n--;
}
