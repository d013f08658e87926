// print_expr.c - the formatter's lines, and the expressions on them.
#include "lang/printer.h"

#include <string.h>

void pr_put(Printer *p, const char *text) { str_puts(&p->line.text, text); }

bool pr_newline_in(const Printer *p, u32 lo, u32 hi) {
  return lo < hi && memchr(p->ast->text->at + lo, '\n', hi - lo);
}

// ---- lines

static bool blank_before(const Printer *p, u32 at) {
  const char *text = p->ast->text->at;
  u32 newlines = 0;
  while (at && strchr(" \t\r\n", text[at - 1])) newlines += text[--at] == '\n';
  return at && newlines > 1;
}

static void end_line(Printer *p) {
  if (p->any) PUSH(p->sc, &p->lines, p->line);
  p->any = false;
}

static void begin_line(Printer *p, u32 at, u32 indent) {
  end_line(p);
  p->line =
      (Line){.text = {.sc = p->sc}, .indent = indent, .blank = blank_before(p, at) && !p->opened};
  p->opened = false;
  p->any = true;
}

// Begins the line of what stands at `at` in the source, after the comments before it: the first
// that shares a line with other text goes behind the line that ends here, others get lines of their
// own.
void pr_next_line(Printer *p, u32 at, u32 comment_indent, u32 indent) {
  for (; p->comment < p->ast->comments.n; p->comment++) {
    Comment c = p->ast->comments.at[p->comment];
    if (c.span.lo >= at) break;
    if (c.own || !p->any || p->line.comment.hi) begin_line(p, c.span.lo, comment_indent);
    p->line.comment = c.span;
  }
  begin_line(p, at, indent);
}

// Between two parts of a statement: the author's line break, or `text`.
void pr_gap(Printer *p, u32 lo, u32 hi, const char *text) {
  if (pr_newline_in(p, lo, hi)) {
    pr_next_line(p, hi, p->indent + p->hang, p->indent + p->hang);
    p->line.goes_on = true;
  } else {
    pr_put(p, text);
  }
}

// Between an element of a list and the next, if there is one.
void pr_comma(Printer *p, const Node *n, const char *space) {
  if (!n->next) return;
  pr_put(p, ",");
  pr_gap(p, n->span.hi, n->next->span.lo, space);
}

void pr_mark(Printer *p, Run run) {
  if (p->line.run == RUN_NONE) p->line.run = run;
  pr_put(p, SC_MARK);
}

// ---- expressions

// A product that may do without spaces inside a sum or an index: names, numbers and (x+1).
static bool simple(const Node *n) {
  switch (n->kind) {
    case ND_NAME:
    case ND_INT: return true;
    case ND_UNARY: return n->op == AST_NEG && simple(n->a);
    case ND_BINARY:
      if (n->op == AST_MUL || n->op == AST_DIV) return simple(n->a) && simple(n->b);
      return (n->op == AST_ADD || n->op == AST_SUB) && n->flags & F_PAREN && simple(n->a) &&
             simple(n->b);
    default: return false;
  }
}

// b+1, in brackets.
static bool neighbour(const Node *n) {
  return n->kind == ND_BINARY && (n->op == AST_ADD || n->op == AST_SUB) && !(n->flags & F_PAREN) &&
         n->a->kind == ND_NAME && n->b->kind == ND_INT;
}

void pr_comma_list(Printer *p, const Node *list, const char *space, Air air) {
  for (const Node *n = list; n; n = n->next) {
    pr_expr(p, n, air);
    pr_comma(p, n, space);
  }
}

void pr_bracket_list(Printer *p, const Node *list, const char *space) {
  pr_put(p, "[");
  for (const Node *n = list; n; n = n->next) {
    pr_expr(p, n, neighbour(n) ? TIGHT : NEAT);
    pr_comma(p, n, space);
  }
  pr_put(p, "]");
}

// Positions stand close together unless one of them holds a space or starts a slice.
void pr_positions(Printer *p, const Node *list) {
  bool close = true;
  for (const Node *n = list; n; n = n->next)
    close &= (simple(n) && !(n->flags & F_PAREN)) || neighbour(n);
  pr_bracket_list(p, list, close ? "" : " ");
}

static void binary(Printer *p, const Node *n, Air air) {
  bool product = n->op == AST_MUL || n->op == AST_DIV || n->op == AST_MOD || n->op == AST_MATMUL;
  bool tight = air == TIGHT || (air == NEAT && product && simple(n));
  Air inner = tight ? TIGHT : product ? LOOSE : NEAT;
  const char *space = tight ? "" : " ";
  pr_expr(p, n->a, inner);
  pr_put(p, space);
  pr_put(p, sc_op_text(n->op));
  pr_gap(p, n->a->span.hi, n->b->span.lo, space);
  pr_expr(p, n->b, inner);
}

static void bare_expr(Printer *p, const Node *n, Air air) {
  switch (n->kind) {
    case ND_INT: str_printf(&p->line.text, "%lld", (long long)n->num.i); break;
    case ND_BOOL: pr_put(p, n->num.i ? "true" : "false"); break;
    case ND_REAL:
    case ND_NAME: pr_put(p, n->name); break;
    case ND_FIELD:
      pr_expr(p, n->a, air);
      pr_put(p, ".");
      pr_put(p, n->name);
      break;
    case ND_INDEX:
      pr_expr(p, n->a, air);
      pr_positions(p, n->b);
      break;
    case ND_SLICE:
      pr_expr(p, n->a, air);
      pr_put(p, "..");
      break;
    case ND_APPLY:
      pr_put(p, n->name);
      pr_put(p, "(");
      pr_comma_list(p, n->a, " ", NEAT);
      pr_put(p, ")");
      break;
    case ND_UNARY:
      pr_put(p, n->op == AST_NOT ? "not " : "-");
      pr_expr(p, n->a, n->op == AST_NOT ? NEAT : air);
      break;
    case ND_BINARY: binary(p, n, air); break;
    case ND_SELECT:
      pr_expr(p, n->a, NEAT);
      pr_put(p, " ?");
      pr_gap(p, n->a->span.hi, n->b->span.lo, " ");
      pr_expr(p, n->b, air);
      pr_put(p, " :");
      pr_gap(p, n->b->span.hi, n->c->span.lo, " ");
      pr_expr(p, n->c, air);
      break;
    case ND_REDUCE:
      str_printf(&p->line.text, "%s(%s) ", sc_op_text(n->op), n->name);
      pr_expr(p, n->a, NEAT);
      break;
    default: break;
  }
}

void pr_expr(Printer *p, const Node *n, Air air) {
  if (n->flags & F_PAREN) pr_put(p, "(");
  bare_expr(p, n, air);
  if (n->flags & F_PAREN) pr_put(p, ")");
}
