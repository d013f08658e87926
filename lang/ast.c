// ast.c - how the grammar makes nodes and names, and the tree as an indented s-expression
// (--emit=ast).
#include "lang/parser.h"

#include "parse.h"

// ---- names

// The one copy of a word. *kind: in, what the word is if it is new; out, what it is.
Sym sc_intern(Parser *p, const char *at, u32 n, int *kind) {
  Key *word = sc_key(p->sc, &p->words, 0, at, n);
  if (!word->number) word->number = (u32)(kind ? *kind : T_NAME);
  if (kind) *kind = (int)word->number;
  return word->at;
}

// ---- nodes

Node *sc_make(Parser *p, Node node) {
  Node *n = NEW(p->sc, Node);
  *n = node;
  n->span.hi = p->last.span.hi;
  return n;
}

List sc_append(List list, Node *n) {
  if (list.last) list.last->next = n;
  return (List){list.last ? list.first : n, n};
}

List sc_append_after(List list, Token sep, Node *n) {
  if (sep.kind == T_SEMI) n->flags |= F_SAME_LINE;
  return sc_append(list, n);
}

// The parentheses belong to the span, so that a report underlines them too.
Node *sc_paren(Parser *p, Token open, Node *e) {
  e->flags |= F_PAREN;
  e->span = (Span){open.span.lo, p->last.span.hi};
  return e;
}

Node *sc_async(Node *assign, Token async) {
  assign->flags |= F_ASYNC;
  assign->span.lo = async.span.lo;
  return assign;
}

// `c : f32[i] = e`. The left side is that of `c[i] = e`; the type keeps its element alone.
Node *sc_typed_equation(Parser *p, Node *name, Node *type, Node *value) {
  Node *left = name;
  if (type->a) {
    left = MAKE(p, INDEX, name->span.lo, .a = name, .b = type->a);
    left->span.hi = type->span.hi;
  }
  type->a = NULL;
  return MAKE(p, ASSIGN, name->span.lo, .a = left, .b = value, .d = type, .op = AST_SET);
}

static Node *bad_reduction(Parser *p, Token op, const char *text, const char *help) {
  Node *n = MAKE(p, ERROR, op.span.lo, .a = NULL);
  sc_help(p->sc, sc_report(p->sc, D_S_REDUCE, n->span, "%s", text), "%s", help);
  return n;
}

// `sum(j) body`, and `max(j) body`, which the grammar tells from the function `max(a, b)` by its
// body.
Node *sc_reduce(Parser *p, Token op, List index, Node *body) {
  if (index.first->kind != ND_NAME || index.first->next) {
    const char *help = index.first->next
                           ? sc_printf(p->sc, "nest them: %s(i) %s(j) x[i,j]", op.name, op.name)
                           : sc_printf(p->sc, "as in %s(j) x[j]", op.name);
    return bad_reduction(
        p, op, sc_printf(p->sc, "'%s' reduces over one index, a plain name", op.name), help);
  }
  return MAKE(p, REDUCE, op.span.lo, .name = index.first->name, .name_span = index.first->span,
              .a = body,
              .op = op.kind == T_SUM   ? AST_SUM
                    : op.kind == T_MAX ? AST_MAX
                                       : AST_MIN);
}

// `max(a, b)`; with one argument it is a reduction that lacks its body.
Node *sc_minmax(Parser *p, Token op, List args) {
  if (op.kind == T_SUM || args.first == args.last) {
    return bad_reduction(
        p, op, sc_printf(p->sc, "nothing stands behind this '%s' for it to reduce", op.name),
        sc_printf(p->sc,
                  "write %s(j) x[j]; put a negative operand in parentheses: "
                  "%s(j) (-x[j])",
                  op.name, op.name));
  }
  return MAKE(p, APPLY, op.span.lo, .name = op.name, .name_span = op.span, .a = args.first);
}

u16 sc_direction(Token t) { return t.kind == T_IN ? F_IN : t.kind == T_OUT ? F_OUT : F_IN | F_OUT; }

AstOp sc_token_op(Token t) {
  switch (t.kind) {
    case T_SET: return AST_SET;
    case T_SETADD: return AST_SETADD;
    case T_PLUS: return AST_ADD;
    case T_MINUS: return AST_SUB;
    case T_STAR: return AST_MUL;
    case T_SLASH: return AST_DIV;
    case T_PERCENT: return AST_MOD;
    case T_AT: return AST_MATMUL;
    case T_LT: return AST_LT;
    case T_LE: return AST_LE;
    case T_GT: return AST_GT;
    case T_GE: return AST_GE;
    case T_EQ: return AST_EQ;
    case T_NE: return AST_NE;
    case T_AND: return AST_AND;
    case T_OR: return AST_OR;
    default: return AST_NONE;
  }
}

const char *sc_op_text(AstOp op) {
  static const char *const text[] = {
      [AST_NONE] = "",    [AST_NEG] = "-",   [AST_NOT] = "not",   [AST_ADD] = "+",
      [AST_SUB] = "-",    [AST_MUL] = "*",   [AST_DIV] = "/",     [AST_MOD] = "%",
      [AST_MATMUL] = "@", [AST_LT] = "<",    [AST_LE] = "<=",     [AST_GT] = ">",
      [AST_GE] = ">=",    [AST_EQ] = "==",   [AST_NE] = "!=",     [AST_AND] = "and",
      [AST_OR] = "or",    [AST_SET] = "=",   [AST_SETADD] = "+=", [AST_SUM] = "sum",
      [AST_MAX] = "max",  [AST_MIN] = "min", [AST_WARP] = "warp", [AST_WARPGROUP] = "warpgroup",
  };
  return text[op];
}

// ---- the tree as text

static const char *const kind_text[] = {
#define ND(kind, text) [ND_##kind] = text,
#include "lang/ast.def"
#undef ND
};

static const struct {
  u16 flag;
  const char *text;
} flag_text[] = {
    {F_IN, "in"},
    {F_OUT, "out"},
    {F_PARTIAL, "partial"},
    {F_RISING, "rising"},
    {F_PERSISTENT, "persistent"},
    {F_DYNAMIC, "dynamic"},
    {F_REVERSED, "reversed"},
    {F_ONE_TILE, "one-tile"},
    {F_MULTICAST, "multicast"},
    {F_READ, "read"},
    {F_ASYNC, "async"},
    {F_GIVEN, "given"},
};

// Statements and declarations stand on lines of their own; what is inside them does not.
static bool own_line(NodeKind kind) {
  switch (kind) {
    case ND_TYPE:
    case ND_RECORD:
    case ND_SET:
    case ND_RANGE:
    case ND_TUPLE:
    case ND_AXIS:
    case ND_CLUSTER:
    case ND_BIND: return false;
    default: return kind < ND_INT || kind == ND_ERROR;
  }
}

static void dump_list(Str *out, const Node *list, u32 depth);

static void dump(Str *out, const Node *n, u32 depth) {
  if (own_line(n->kind) && depth) str_printf(out, "\n%*s", (int)(2 * depth), "");
  str_printf(out, "(%s", kind_text[n->kind]);
  if (n->op) str_printf(out, " %s", sc_op_text(n->op));
  if (n->name) str_printf(out, " %s", n->name);
  if (n->sym2) str_printf(out, "[%s]", n->sym2);
  if (n->kind == ND_INT) str_printf(out, " %lld", (long long)n->num.i);
  if (n->kind == ND_BOOL) str_puts(out, n->num.i ? " true" : " false");
  for (u32 i = 0; i < COUNT(flag_text); i++) {
    if (n->flags & flag_text[i].flag) str_printf(out, " :%s", flag_text[i].text);
  }
  const Node *field[] = {n->a, n->b, n->c, n->d};
  u32 used = COUNT(field);
  while (used && !field[used - 1]) used--;
  for (u32 i = 0; i < used; i++) dump_list(out, field[i], depth + 1);
  str_puts(out, ")");
}

// One field: `_` if empty though a later one is not, brackets around more than one node.
static void dump_list(Str *out, const Node *list, u32 depth) {
  if (!list) {
    str_puts(out, " _");
    return;
  }
  if (list->next) str_puts(out, " [");
  for (const Node *n = list; n; n = n->next) {
    if (!own_line(n->kind) && (n != list || !list->next)) str_puts(out, " ");
    dump(out, n, depth);
  }
  if (list->next) str_puts(out, "]");
}

void sc_print_ast(Str *out, const Ast *ast) {
  dump(out, ast->file, 0);
  str_puts(out, "\n");
}
