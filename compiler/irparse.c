// irparse.c - IR text to a kernel: what tests and people write to feed any pass. In: any bytes.
// Out: a well-formed kernel that prints as the same text, with spans into this text; or NULL and
// one report. Recursive descent over one token; nesting is limited, and nothing is allocated that
// the text does not pay for.
#include "irread.h"

#include <string.h>

enum { PRIVATE, FILL, DRAIN, AMONG };  // Later.what

// ---- declarations

static Value parse_value(Parser *p) {
  Value v = {.kind = VAL_INT};
  Tok t = TOKEN;
  if (t.kind == TOK_NAME) {
    for (u32 e = 0; e < EL_COUNT; e++) {
      if (!IS(sc_elem[e].text)) continue;
      NEXT;
      v.num.i = e;
      v.kind = VAL_ELEM;
      return v;
    }
  }
  Xid x = sc_rd_prefix(p);
  const Expr *e = &p->k->expr.at[x];
  if (x && e->op != X_INT && e->op != X_REAL && e->op != X_BOOL)
    FAIL(D_I_TOKEN, t.span, "expected a number, a truth or an element type here");
  v.kind = e->ty == TY_REAL ? VAL_REAL : e->ty == TY_BOOL ? VAL_BOOL : VAL_INT;
  if (v.kind == VAL_REAL) v.num.f = e->num.f;
  else v.num.i = e->num.i;
  return v;
}

typedef VEC(Value) Values;
static Values parse_values(Parser *p, const char *open, const char *close) {
  Values v = {0};
  sc_rd_expect(p, open);
  while (!IS(close) && !ENDED) {
    if (v.n) sc_rd_expect(p, ",");
    PUSH(p->sc, &v, parse_value(p));
  }
  sc_rd_expect(p, close);
  return v;
}

static u8 parse_elem(Parser *p) {
  for (u32 e = 0; e < EL_COUNT; e++)
    if (sc_rd_accept(p, sc_elem[e].text)) return (u8)e;
  FAIL(D_I_TOKEN, TOKEN.span, "expected an element type here");
  return 0;
}

// name : f16[dims]; the attributes are left.
static Tok parse_buf(Parser *p, Buf *b) {
  Tok t = sc_rd_name(p, "a name");
  b->name = sc_rd_sym(&t);
  b->ring = SC_NONE;
  b->role = p->role;
  sc_rd_expect(p, ":");
  b->elem = parse_elem(p);
  if (sc_rd_accept(p, "[")) {
    while (!IS("]") && !ENDED) {
      if (b->rank) sc_rd_expect(p, ",");
      if (b->rank == SC_MAX_RANK) FAIL(D_I_LIMIT, TOKEN.span, "at most %d dimensions", SC_MAX_RANK);
      if (p->lex.failed) return t;
      if (b->space == SP_REG || b->space == SP_STAGE)
        b->ext[b->rank] = (i64)sc_rd_int(p, INT64_MAX);
      else b->dim[b->rank] = sc_rd_typed(p, TY_INT, "a dimension");
      b->rank++;
    }
    sc_rd_expect(p, "]");
  }
  b->span = sc_rd_since(p, t.span.lo);
  return t;
}

static void add_buf(Parser *p, Buf b, const Tok *name) {
  while (sc_rd_accept(p, ",")) PARSE_ATTR(buf_attr, &b);
  PUSH(p->sc, &p->k->buf, b);
  if (name) DEFINE(*name, buf, p->k->buf.n - 1);
}

static void parse_tensor(Parser *p) {
  Buf b = {.space = SP_TENSOR};
  b.workspace = sc_rd_accept(p, "workspace");
  b.dir = sc_rd_accept(p, "in")      ? SCHEDC_IN
          : sc_rd_accept(p, "out")   ? SCHEDC_OUT
          : sc_rd_accept(p, "inout") ? SCHEDC_INOUT
                                     : 0;
  if (!b.dir && !b.workspace) sc_rd_expect(p, "tensor");
  Tok t = parse_buf(p, &b);
  add_buf(p, b, &t);
}

static void parse_space(Parser *p, Space space) {
  Buf b = {.space = space};
  Tok t = parse_buf(p, &b);
  add_buf(p, b, &t);
}

static void parse_role_names(Parser *p, u32 what, u32 of) {
  do {
    Later l = {sc_rd_name(p, "a role"), what, of};
    if (l.at.kind == TOK_NAME) PUSH(p->sc, &p->later, l);
  } while (sc_rd_accept(p, "&"));
}

static void parse_ring(Parser *p) {
  u32 ring = p->k->ring.n;
  Tok t = sc_rd_name(p, "a name");
  Ring r = {.name = sc_rd_sym(&t), .span = t.span, .part0 = p->k->buf.n, .owner = SC_NONE};
  sc_rd_expect(p, ":");
  sc_rd_expect(p, "{");
  do {
    Buf b = {.space = SP_STAGE};
    Tok part = parse_buf(p, &b);
    b.ring = ring;
    add_buf(p, b, NULL);
    if (p->lex.failed) return;
    const char *full = sc_printf(p->sc, "%s.%s", t.entry->name, part.entry->name);
    DEFINE(((Tok){.kind = TOK_NAME, .entry = sc_lex_entry(&p->lex, full)}), buf, p->k->buf.n - 1);
    r.parts++;
  } while (sc_rd_accept(p, ";"));
  if (r.parts == 1) DEFINE(t, buf, r.part0);
  sc_rd_expect(p, "}");
  sc_rd_expect(p, "*");
  r.stages = (u32)sc_rd_int(p, UINT32_MAX);
  while (sc_rd_accept(p, ",")) {
    if (sc_rd_accept(p, "private")) parse_role_names(p, PRIVATE, ring);
    else if (sc_rd_accept(p, "fill")) parse_role_names(p, FILL, ring);
    else if (sc_rd_accept(p, "drain")) parse_role_names(p, DRAIN, ring);
    else PARSE_ATTR(ring_attr, &r);
  }
  PUSH(p->sc, &p->k->ring, r);
  DEFINE(t, ring, ring);
}

static void parse_turn(Parser *p) {
  Tok t = sc_rd_name(p, "a name");
  Turn u = {.name = sc_rd_sym(&t), .span = t.span, .axis = SC_NONE};
  while (sc_rd_accept(p, ",")) {
    if (sc_rd_accept(p, "over")) {
      Xid axis = sc_rd_expr(p, 0);
      if (p->k->expr.at[axis].op != X_AXIS)
        FAIL(D_I_NAME, t.span, "a turn passes over a grid axis");
      u.axis = p->k->expr.at[axis].ref;
    } else if (sc_rd_accept(p, "keys")) {
      u.keys = sc_rd_typed(p, TY_INT, "a number of keys");
    } else if (sc_rd_accept(p, "among")) {
      parse_role_names(p, AMONG, p->k->turn.n);
    } else {
      PARSE_ATTR(turn_attr, &u);
    }
  }
  PUSH(p->sc, &p->k->turn, u);
  DEFINE(t, turn, p->k->turn.n - 1);
}

// Roles that were named before they were declared.
static void resolve_roles(Parser *p) {
  for (u32 i = 0; i < p->later.n && !p->lex.failed; i++) {
    const Later *l = &p->later.at[i];
    u32 role = sc_rd_mean(p, l->at.entry)->role;
    Turn *t = l->what == AMONG ? &p->k->turn.at[l->of] : NULL;
    Ring *r = t ? NULL : &p->k->ring.at[l->of];
    if (role == SC_NONE) FAIL(D_I_NAME, l->at.span, "'%s' is not a role", l->at.entry->name);
    else if (t && t->members == SC_MAX_ROLES)
      FAIL(D_I_LIMIT, l->at.span, "at most %d roles", SC_MAX_ROLES);
    else if (t) t->member[t->members++] = (u8)role;
    else if (l->what == FILL) r->fillers |= (u16)(1u << role);
    else if (l->what == DRAIN) r->drainers |= (u16)(1u << role);
    else r->owner = role;
  }
  for (u32 i = 0; i < p->k->ring.n; i++) {
    const Ring *r = &p->k->ring.at[i];
    for (u32 b = r->part0; b < r->part0 + r->parts; b++) p->k->buf.at[b].role = r->owner;
  }
  p->later.n = 0;
}

static void parse_grid(Parser *p) {
  sc_rd_expect(p, "(");
  while (!IS(")") && !ENDED) {
    Axis a = {.cluster = 1};
    if (p->k->axis.n) sc_rd_expect(p, ",");
    a.reversed = IS("reversed") && sc_lex_peek(&p->lex) != ':' && sc_rd_accept(p, "reversed");
    Tok t = sc_rd_name(p, "a grid axis");
    a.name = sc_rd_sym(&t);
    a.span = t.span;
    sc_rd_expect(p, ":");
    a.extent = sc_rd_typed(p, TY_INT, "an extent");
    if (sc_rd_accept(p, "by")) a.section = sc_rd_typed(p, TY_INT, "a section");
    if (sc_rd_accept(p, "cluster")) a.cluster = (u32)sc_rd_int(p, UINT32_MAX);
    sc_rd_define_value(p, &t, x_leaf(p->sc, p->k, X_AXIS, TY_INT, p->k->axis.n));
    PUSH(p->sc, &p->k->axis, a);
  }
  sc_rd_expect(p, ")");
  p->k->grid = sc_rd_accept(p, "persistent") ? GRID_PERSISTENT
               : sc_rd_accept(p, "dynamic")  ? GRID_DYNAMIC
                                             : GRID_PLAIN;
}

static void parse_let(Parser *p) {
  Tok t = sc_rd_name(p, "a name");
  sc_rd_expect(p, "=");
  Xid e = sc_rd_expr(p, 0);
  sc_rd_define_value(p, &t, e);
  if (t.kind == TOK_NAME && t.entry->name[0] != '$')
    PUSH(p->sc, &p->k->let, ((Let){t.entry->name, p->role, e}));
}

static void parse_param(Parser *p) {
  Tok t = sc_rd_name(p, "a name");
  Param param = {.name = sc_rd_sym(&t), .span = t.span};
  sc_rd_expect(p, "=");
  param.value = parse_value(p);
  if (sc_rd_accept(p, "in")) {
    Values v = parse_values(p, "{", "}");
    memcpy(&param.domain, &v, sizeof v);
  }
  PUSH(p->sc, &p->k->param, param);
  DEFINE(t, param, p->k->param.n - 1);
}

static void parse_dims(Parser *p) {
  do {
    Tok t = sc_rd_name(p, "a name");
    PUSH(p->sc, &p->k->dim, ((Dim){sc_rd_sym(&t), t.span}));
    sc_rd_define_value(p, &t, x_leaf(p->sc, p->k, X_DIM, TY_INT, p->k->dim.n - 1));
  } while (sc_rd_accept(p, ","));
}

static void parse_arg(Parser *p) {
  Tok t = sc_rd_name(p, "a name");
  Arg a = {.name = sc_rd_sym(&t), .span = t.span};
  sc_rd_expect(p, ":");
  a.elem = parse_elem(p);
  if (sc_rd_accept(p, "=")) a.init = sc_rd_expr(p, 0);
  PUSH(p->sc, &p->k->arg, a);
  Ty ty = sc_elem[a.elem].flt ? TY_REAL : TY_INT;
  sc_rd_define_value(p, &t, x_leaf(p->sc, p->k, X_ARG, ty, p->k->arg.n - 1));
}

// What a name of one kind stands for: a dimension's, an argument's, a tensor's or a parameter's
// number.
static u32 parse_named(Parser *p, CaseKind kind) {
  static const u8 leaf[] = {[CASE_DIM] = X_DIM, [CASE_ARG] = X_ARG};
  if (kind == CASE_TENSOR) return KNOWN(buf, "a tensor");
  if (kind == CASE_PARAM) return KNOWN(param, "a parameter");
  Tok t = sc_rd_name(p, "a name");
  const Expr *e =
      t.kind == TOK_NAME ? &p->k->expr.at[sc_rd_mean(p, t.entry)->value] : p->k->expr.at;
  if (e->op != leaf[kind])
    FAIL(D_I_NAME, t.span, "this is no name of the kind '%s'", case_word[kind]);
  return e->ref;
}

static CaseKind parse_kind(Parser *p) {
  for (u32 kind = 0; kind < COUNT(case_word); kind++)
    if (sc_rd_accept(p, case_word[kind])) return kind;
  FAIL(D_I_TOKEN, TOKEN.span, "expected dim, arg, tensor or param here");
  return CASE_DIM;
}

static void parse_case(Parser *p) {
  Tok t = sc_rd_name(p, "a name");
  Case c = {.name = sc_rd_sym(&t), .span = t.span};
  sc_rd_expect(p, "{");
  while (!IS("}") && !ENDED) {
    if (c.bind.n) sc_rd_expect(p, ",");
    CaseBind b = {.kind = parse_kind(p), .name = sc_rd_sym(&TOKEN), .span = TOKEN.span};
    b.ref = parse_named(p, b.kind);
    Values v = {0};
    if ((b.set = sc_rd_accept(p, "in"))) {
      v = parse_values(p, "{", "}");
    } else {
      sc_rd_expect(p, "=");
      if (b.kind == CASE_TENSOR) v = parse_values(p, "[", "]");
      else PUSH(p->sc, &v, parse_value(p));
    }
    memcpy(&b.value, &v, sizeof v);
    PUSH(p->sc, &c.bind, b);
  }
  sc_rd_expect(p, "}");
  PUSH(p->sc, &p->k->kase, c);
}

// ---- kernels

static void parse_spec(Parser *p) {
  p->in_spec = true;
  sc_rd_expect(p, "{");
  while (!IS("}") && !ENDED) {
    if (sc_rd_accept(p, "value")) {
      parse_space(p, SP_SPEC);
    } else if (sc_rd_accept(p, "let")) {
      parse_let(p);
    } else {
      sc_rd_expect(p, sc_op[OP_MAP].text);
      u32 map = sc_rd_map(p, OP_MAP);
      PUSH(p->sc, &p->k->spec, map);
    }
  }
  sc_rd_expect(p, "}");
  p->in_spec = false;
}

static void parse_role(Parser *p) {
  Tok t = sc_rd_name(p, "a name");
  Role r = {.name = sc_rd_sym(&t), .span = t.span};
  if (p->k->role.n == SC_MAX_ROLES) FAIL(D_I_LIMIT, t.span, "at most %d roles", SC_MAX_ROLES);
  sc_rd_expect(p, "*");
  r.instances = (u32)sc_rd_int(p, UINT32_MAX);
  sc_rd_expect(p, ":");
  r.warps = (u8)sc_rd_int(p, UINT8_MAX);
  sc_rd_expect(p, "warps");
  while (sc_rd_accept(p, ",")) PARSE_ATTR(role_attr, &r);
  sc_rd_expect(p, "{");
  p->role = p->k->role.n;
  PUSH(p->sc, &p->k->role, r);
  DEFINE(t, role, p->role);
  while (!ENDED) {
    if (p->block.n && IS("}")) sc_rd_close(p);
    else if (sc_rd_accept(p, "}")) break;
    else if (sc_rd_accept(p, "reg")) parse_space(p, SP_REG);
    else if (sc_rd_accept(p, "let")) parse_let(p);
    else sc_rd_ins(p);
  }
  p->role = SC_NONE;
}

static void parse_launch(Parser *p, bool given);

static void parse_item(Parser *p) {
  if (IS("in") || IS("out") || IS("inout") || IS("workspace") || IS("tensor")) parse_tensor(p);
  else if (sc_rd_accept(p, "param")) parse_param(p);
  else if (sc_rd_accept(p, "dim")) parse_dims(p);
  else if (sc_rd_accept(p, "arg")) parse_arg(p);
  else if (sc_rd_accept(p, "let")) parse_let(p);
  else if (sc_rd_accept(p, "spec")) parse_spec(p);
  else if (sc_rd_accept(p, "case")) parse_case(p);
  else if (sc_rd_accept(p, "grid")) parse_grid(p);
  else if (sc_rd_accept(p, "ring")) parse_ring(p);
  else if (sc_rd_accept(p, "turn")) parse_turn(p);
  else if (sc_rd_accept(p, "role")) parse_role(p);
  else if (sc_rd_accept(p, "launch")) parse_launch(p, false);
  else if (sc_rd_accept(p, "given")) parse_launch(p, true);
  else if (sc_rd_accept(p, "require")) {
    u32 lo = TOKEN.span.lo;
    Xid cond = sc_rd_typed(p, TY_BOOL, "a truth");
    PUSH(p->sc, &p->k->require, ((Require){cond, sc_rd_since(p, lo)}));
  } else if (sc_rd_accept(p, "work")) {
    p->k->work = sc_rd_typed(p, TY_INT, "an integer");
  } else if (sc_rd_accept(p, "place")) {
    do PARSE_ATTR(kernel_attr, p->k);
    while (sc_rd_accept(p, ","));
  } else {
    FAIL(D_I_TOKEN, TOKEN.span, "expected a declaration or '}' here");
  }
}

static Kernel *parse_kernel(Parser *p) {
  Kernel *k = p->k = sc_kernel(p->sc);
  bool sequence = sc_rd_accept(p, "sequence");
  if (!sequence) sc_rd_expect(p, "kernel");
  p->kernel = ++p->kernels;
  p->role = SC_NONE;
  Tok t = sc_rd_name(p, "a name");
  k->name = sc_rd_sym(&t);
  k->span = t.span;
  k->text = p->lex.text;
  sc_rd_expect(p, "{");
  while (!IS("}") && !ENDED) parse_item(p);
  sc_rd_expect(p, "}");
  resolve_roles(p);
  if (sequence != (k->launch.n > 0))
    FAIL(D_I_TOKEN, t.span, "a sequence launches kernels, a kernel does not");
  const char *wrong = p->lex.failed ? NULL : sc_wellformed(p->sc, k);
  if (wrong) FAIL(D_I_FORM, t.span, "%s", wrong);
  return k;
}

static u32 *unbound(Sc *sc, u32 n) {
  u32 *at = NEWS(sc, u32, n);
  for (u32 i = 0; i < n; i++) at[i] = SC_NONE;
  return at;
}

// kernel … and what each of its tensors, dimensions and arguments is in the sequence.
static void parse_launch(Parser *p, bool given) {
  Launch l = {.span = TOKEN.span};
  Kernel *outer = p->k;
  u32 outer_id = p->kernel;
  sc_rd_expect(p, "{");
  if (p->level) FAIL(D_I_LIMIT, l.span, "a launched kernel cannot launch others");
  if (p->lex.failed) return;
  p->level = 1;
  Kernel *k = parse_kernel(p);
  u32 *of[3] = {unbound(p->sc, k->dim.n), unbound(p->sc, k->arg.n), unbound(p->sc, k->buf.n)};
  u32 inner_id = p->kernel;
  while (!IS("}") && !ENDED) {
    CaseKind kind = parse_kind(p);
    if (kind == CASE_PARAM) FAIL(D_I_TOKEN, TOKEN.span, "parameters are not bound by launches");
    u32 inner = parse_named(p, kind);
    sc_rd_expect(p, "=");
    p->k = outer;
    p->kernel = outer_id;
    p->level = 0;
    u32 to = parse_named(p, kind);
    p->k = k;
    p->kernel = inner_id;
    p->level = 1;
    if (!p->lex.failed) of[kind][inner] = to;
  }
  p->k = outer;
  p->kernel = outer_id;
  p->level = 0;
  sc_rd_expect(p, "}");
  l.kernel = k;
  l.dim = of[CASE_DIM];
  l.arg = of[CASE_ARG];
  l.tensor = of[CASE_TENSOR];
  if (given) PUSH(p->sc, &outer->given, l);
  else PUSH(p->sc, &outer->launch, l);
}

Kernel *sc_parse_ir(Sc *sc, const Text *text) {
  Parser parser = {.sc = sc, .lex = {.sc = sc, .text = text}}, *p = &parser;
  NEXT;
  Kernel *k = parse_kernel(p);
  if (!ENDED) FAIL(D_I_TOKEN, TOKEN.span, "expected the end of the text here");
  return p->lex.failed ? NULL : k;
}
