// print.c - the formatter: the tree and its comments in, canonical text out. Formatting twice
// changes nothing.
//
// From the author it keeps what carries meaning to a reader: which statements share a line, which
// blocks stand on one, where a list or expression was broken, single blank lines, comments. All
// else is decided here: indentation, spaces, and the columns of runs of like lines. Lines are
// collected first, with a MARK where a column may begin; lines.c aligns them when all are known
// (Go's formatter works so).
#include "lines.h"
#include "parser.h"

#include <string.h>

enum { STEP = 2, HANG = 4 };

typedef struct Printer {
  Sc *sc;
  const Ast *ast;
  Lines lines;
  Line line;    // the one being written
  bool any;     // … has been begun
  u32 comment;  // the next one to print
  u32 indent;   // of statements here
  u32 hang;     // further indent of a broken statement's next lines
  bool opened;  // the last line opened a block: no blank line behind it
} Printer;

// How much space an expression has around it: o[i,d] / l[i], then x*BM + 1, then (x+1)*BM.
typedef enum Air { LOOSE, NEAT, TIGHT } Air;

static void put(Printer *p, const char *text) { str_puts(&p->line.text, text); }

static bool newline_in(const Printer *p, u32 lo, u32 hi) {
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
static void next_line(Printer *p, u32 at, u32 comment_indent, u32 indent) {
  for (; p->comment < p->ast->comments.n; p->comment++) {
    Comment c = p->ast->comments.at[p->comment];
    if (c.span.lo >= at) break;
    if (c.own || !p->any || p->line.comment.hi) begin_line(p, c.span.lo, comment_indent);
    p->line.comment = c.span;
  }
  begin_line(p, at, indent);
}

// Between two parts of a statement: the author's line break, or `text`.
static void gap(Printer *p, u32 lo, u32 hi, const char *text) {
  if (newline_in(p, lo, hi)) {
    next_line(p, hi, p->indent + p->hang, p->indent + p->hang);
    p->line.goes_on = true;
  } else {
    put(p, text);
  }
}

// Between an element of a list and the next, if there is one.
static void comma(Printer *p, const Node *n, const char *space) {
  if (!n->next) return;
  put(p, ",");
  gap(p, n->span.hi, n->next->span.lo, space);
}

static void mark(Printer *p, Run run) {
  if (p->line.run == RUN_NONE) p->line.run = run;
  put(p, SC_MARK);
}

// ---- expressions

static void expr(Printer *p, const Node *n, Air air);

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

static void comma_list(Printer *p, const Node *list, const char *space, Air air) {
  for (const Node *n = list; n; n = n->next) {
    expr(p, n, air);
    comma(p, n, space);
  }
}

static void bracket_list(Printer *p, const Node *list, const char *space) {
  put(p, "[");
  for (const Node *n = list; n; n = n->next) {
    expr(p, n, neighbour(n) ? TIGHT : NEAT);
    comma(p, n, space);
  }
  put(p, "]");
}

// Positions stand close together unless one of them holds a space or starts a slice.
static void positions(Printer *p, const Node *list) {
  bool close = true;
  for (const Node *n = list; n; n = n->next)
    close &= (simple(n) && !(n->flags & F_PAREN)) || neighbour(n);
  bracket_list(p, list, close ? "" : " ");
}

static void binary(Printer *p, const Node *n, Air air) {
  bool product = n->op == AST_MUL || n->op == AST_DIV || n->op == AST_MOD || n->op == AST_MATMUL;
  bool tight = air == TIGHT || (air == NEAT && product && simple(n));
  Air inner = tight ? TIGHT : product ? LOOSE : NEAT;
  const char *space = tight ? "" : " ";
  expr(p, n->a, inner);
  put(p, space);
  put(p, sc_op_text(n->op));
  gap(p, n->a->span.hi, n->b->span.lo, space);
  expr(p, n->b, inner);
}

static void bare_expr(Printer *p, const Node *n, Air air) {
  switch (n->kind) {
    case ND_INT: str_printf(&p->line.text, "%lld", (long long)n->num.i); break;
    case ND_BOOL: put(p, n->num.i ? "true" : "false"); break;
    case ND_REAL:
    case ND_NAME: put(p, n->name); break;
    case ND_FIELD:
      expr(p, n->a, air);
      put(p, ".");
      put(p, n->name);
      break;
    case ND_INDEX:
      expr(p, n->a, air);
      positions(p, n->b);
      break;
    case ND_SLICE:
      expr(p, n->a, air);
      put(p, "..");
      break;
    case ND_APPLY:
      put(p, n->name);
      put(p, "(");
      comma_list(p, n->a, " ", NEAT);
      put(p, ")");
      break;
    case ND_UNARY:
      put(p, n->op == AST_NOT ? "not " : "-");
      expr(p, n->a, n->op == AST_NOT ? NEAT : air);
      break;
    case ND_BINARY: binary(p, n, air); break;
    case ND_SELECT:
      expr(p, n->a, NEAT);
      put(p, " ?");
      gap(p, n->a->span.hi, n->b->span.lo, " ");
      expr(p, n->b, air);
      put(p, " :");
      gap(p, n->b->span.hi, n->c->span.lo, " ");
      expr(p, n->c, air);
      break;
    case ND_REDUCE:
      str_printf(&p->line.text, "%s(%s) ", sc_op_text(n->op), n->name);
      expr(p, n->a, NEAT);
      break;
    default: break;
  }
}

static void expr(Printer *p, const Node *n, Air air) {
  if (n->flags & F_PAREN) put(p, "(");
  bare_expr(p, n, air);
  if (n->flags & F_PAREN) put(p, ")");
}

// ---- parts of declarations

// { a, b }: `from` is where the brace stands or shortly before it, `to` where it closes. Elements
// that the author broke stand one step in.
static void brace_list(Printer *p, const Node *list, u32 from, u32 to,
                       void (*each)(Printer *, const Node *)) {
  u32 hang = p->hang;
  put(p, "{");
  p->hang = STEP;
  if (list) gap(p, from, list->span.lo, " ");
  for (const Node *n = list; n; n = n->next) {
    each(p, n);
    p->hang = STEP;
    comma(p, n, " ");
  }
  while (list && list->next) list = list->next;
  p->hang = 0;
  gap(p, list ? list->span.hi : from, to - 1, " ");
  put(p, "}");
  p->hang = hang;
}

static void element(Printer *p, const Node *n) { expr(p, n, LOOSE); }

static void type(Printer *p, const Node *n) {
  put(p, n->name);
  if (n->a) bracket_list(p, n->a, " ");
}

static void group(Printer *p, const Node *n);

static void fact(Printer *p, const Node *n) {
  const Node *v = n->a;
  put(p, n->name);
  put(p, v->kind == ND_SET ? " in " : " = ");
  if (v->kind == ND_SET) {
    brace_list(p, v->a, v->span.lo, v->span.hi, element);
  } else if (v->kind == ND_TUPLE) {
    bracket_list(p, v->a, " ");
  } else {
    expr(p, v, LOOSE);
  }
}

static void group_type(Printer *p, const Node *n) {
  put(p, ": ");
  if (n->b->kind == ND_RECORD) brace_list(p, n->b->a, n->b->span.lo, n->b->span.hi, group);
  else type(p, n->b);
  if (n->c) {
    put(p, " = ");
    expr(p, n->c, LOOSE);
  }
  if (n->d) {
    put(p, " * ");
    expr(p, n->d, NEAT);
  }
  if (n->flags & F_PARTIAL) put(p, " partial");
}

static void group(Printer *p, const Node *n) {
  comma_list(p, n->a, " ", LOOSE);
  put(p, " ");
  group_type(p, n);
}

// Groups after their keyword; in a run of such lines the first colons stand in one column.
static void groups(Printer *p, const Node *list, Run run) {
  for (const Node *n = list; n; n = n->next) {
    comma_list(p, n->a, " ", LOOSE);
    put(p, " ");
    if (n == list && run) mark(p, run);
    group_type(p, n);
    comma(p, n, " ");
  }
}

static void declaration(Printer *p, const char *keyword, const Node *list, Run run) {
  put(p, keyword);
  groups(p, list, run);
}

static void params(Printer *p, const Node *list) {
  for (const Node *n = list; n; n = n->next) {
    put(p, n->name);
    put(p, " ");
    if (!list->next) mark(p, RUN_PARAM);
    put(p, "=");
    gap(p, n->name_span.hi, n->a->span.lo, " ");
    expr(p, n->a, LOOSE);
    if (!list->next) {
      put(p, " ");  // also where no `in` follows: such a value widens the column too
      mark(p, RUN_PARAM);
    }
    if (n->b) {
      put(p, list->next ? " in " : "in ");
      brace_list(p, n->b, n->a->span.hi, n->span.hi, element);
    }
    comma(p, n, " ");
  }
}

static void binds(Printer *p, const Node *list) {
  for (const Node *n = list; n; n = n->next) {
    put(p, n->name);
    if (n->b) positions(p, n->b);
    put(p, " ");
    if (n == list) mark(p, RUN_LET);
    put(p, "=");
    gap(p, n->name_span.hi, n->a->span.lo, " ");
    expr(p, n->a, LOOSE);
    comma(p, n, " ");
  }
}

static void axes(Printer *p, const Node *list) {
  for (const Node *n = list; n; n = n->next) {
    if (n->flags & F_REVERSED) put(p, "reversed ");
    put(p, n->name);
    put(p, " : ");
    expr(p, n->a, LOOSE);
    if (n->kind == ND_AXIS && n->b) {
      put(p, " by ");
      expr(p, n->b, LOOSE);
    }
    comma(p, n, " ");
  }
}

static void grid(Printer *p, const Node *n) {
  put(p, "grid (");
  axes(p, n->a);
  put(p, ")");
  if (n->flags & F_PERSISTENT) put(p, " persistent");
  if (n->flags & F_DYNAMIC) put(p, " dynamic");
  if (!n->b) return;
  put(p, " cluster (");
  axes(p, n->b);
  put(p, ")");
}

static void guard(Printer *p, const Node *condition) {
  if (!condition) return;
  put(p, " if ");
  expr(p, condition, LOOSE);
}

// ---- blocks

static void line_of(Printer *p, const Node *n);

// Statements between braces. `from`: where the { stands or shortly before it; `to`: behind the }.
static void braces(Printer *p, const Node *list, u32 from, u32 to) {
  bool comments = p->comment < p->ast->comments.n && p->ast->comments.at[p->comment].span.lo < to;
  bool one_line = !newline_in(p, from, to) || (!list && !comments);
  put(p, "{");
  if (one_line) {
    for (const Node *n = list; n; n = n->next) {
      put(p, n == list ? " " : ";  ");
      line_of(p, n);
    }
    put(p, " }");
    p->line.run = RUN_NONE;
    return;
  }
  u32 hang = p->hang;
  p->opened = true;
  p->indent += STEP;
  for (const Node *n = list; n; n = n->next) {
    if (n->flags & F_SAME_LINE) {
      put(p, ";  ");
      p->hang = HANG;
      line_of(p, n);
      p->line.run = RUN_NONE;
      continue;
    }
    next_line(p, n->span.lo, p->indent, p->indent);
    p->hang = HANG;
    line_of(p, n);
  }
  next_line(p, to - 1, p->indent, p->indent - STEP);
  p->line.blank = false;
  p->indent -= STEP;
  p->hang = hang;
  put(p, "}");
}

// The first { at or behind `from` that is not in a comment.
static u32 brace(const Printer *p, u32 from) {
  const char *text = p->ast->text->at;
  for (; text[from] && text[from] != '{'; from++) {
    if (text[from] != '/' || text[from + 1] != '/') continue;
    while (text[from + 1] && text[from + 1] != '\n') from++;
  }
  return from;
}

static void block(Printer *p, const Node *n) { braces(p, n->a, n->span.lo, n->span.hi); }

static void branch(Printer *p, const Node *n) {
  put(p, "if ");
  expr(p, n->a, LOOSE);
  put(p, " ");
  block(p, n->b);
  if (!n->c) return;
  u32 end = n->b->span.hi, next = n->c->span.lo;
  bool comments = p->comment < p->ast->comments.n && p->ast->comments.at[p->comment].span.lo < next;
  bool one_line = !newline_in(p, n->b->span.lo, end);
  if (newline_in(p, end, next) && (one_line || comments)) {
    next_line(p, next, p->indent, p->indent);
    p->line.blank = false;
  } else {
    put(p, " ");
  }
  put(p, "else ");
  if (n->c->kind == ND_IF) branch(p, n->c);
  else block(p, n->c);
}

static void role(Printer *p, const Node *n) {
  bool warps = n->op == AST_WARP, one = n->b->kind == ND_INT && n->b->num.i == 1;
  str_printf(&p->line.text, "role %s", n->name);
  if (n->sym2) str_printf(&p->line.text, "[%s]", n->sym2);
  put(p, " : ");
  expr(p, n->b, NEAT);
  str_printf(&p->line.text, " %s%s", warps ? "warp" : "warpgroup", one ? "" : "s");
  if (n->flags & F_ONE_TILE) put(p, ", one tile each");
  if (n->d) {
    put(p, ",");
    gap(p, n->b->span.hi, n->d->span.lo, " ");
    expr(p, n->d, NEAT);
    put(p, " regs");
  }
  guard(p, n->c);
  put(p, " ");
  const Node *last = n->c ? n->c : n->d ? n->d : n->b;
  braces(p, n->a, brace(p, last->span.hi), n->span.hi);
}

// ---- statements

static void assign(Printer *p, const Node *n) {
  if (n->flags & F_ASYNC) put(p, "async ");
  expr(p, n->a, LOOSE);
  put(p, n->op == AST_SETADD ? " +" : " ");
  mark(p, n->flags & F_ASYNC ? RUN_ASYNC : RUN_ASSIGN);
  put(p, "=");
  gap(p, n->a->span.hi, n->b->span.lo, " ");
  expr(p, n->b, LOOSE);
  guard(p, n->c);
}

static void words(Printer *p, const char *keyword, const Node *list) {
  put(p, keyword);
  comma_list(p, list, " ", LOOSE);
}

static void wait(Printer *p, const Node *n) {
  words(p, "wait ", n->a);
  if (n->flags & F_READ) put(p, " read");
  if (!n->b) return;
  put(p, " keep ");
  expr(p, n->b, LOOSE);
}

static void turn(Printer *p, const Node *n) {
  str_printf(&p->line.text, "turn %s", n->name);
  if (n->c) {
    str_printf(&p->line.text, "[%s : ", n->c->name);
    expr(p, n->c->a, LOOSE);
    put(p, "]");
  }
  put(p, " : ");
  comma_list(p, n->a, " ", LOOSE);
  guard(p, n->b);
}

static void def(Printer *p, const Node *n) {
  str_printf(&p->line.text, "def %s(", n->name);
  comma_list(p, n->a, " ", LOOSE);
  put(p, ")");
  if (n->b->kind == ND_BLOCK) {
    put(p, " ");
    block(p, n->b);
    return;
  }
  put(p, " =");
  const Node *last = n->a;
  while (last && last->next) last = last->next;
  gap(p, last ? last->span.hi : n->name_span.hi, n->b->span.lo, " ");
  expr(p, n->b, LOOSE);
}

static void loop(Printer *p, const Node *n) {
  str_printf(&p->line.text, "for %s in %s", n->name, n->flags & F_REVERSED ? "reversed " : "");
  expr(p, n->a, LOOSE);
  put(p, " .. ");
  expr(p, n->b, LOOSE);
  put(p, " ");
  block(p, n->d);
}

static void copy(Printer *p, const Node *n) {
  expr(p, n->a, LOOSE);
  put(p, " <-");
  gap(p, n->a->span.hi, n->b->span.lo, " ");
  expr(p, n->b, LOOSE);
  if (n->flags & F_MULTICAST) put(p, " multicast");
}

static void tensor(Printer *p, const Node *n) {
  put(p, n->flags & F_IN ? n->flags & F_OUT ? "inout " : "in " : "out ");
  mark(p, RUN_TENSOR);
  groups(p, n->a, RUN_NONE);
}

static void vote(Printer *p, const Node *n) {
  put(p, "vote any(");
  expr(p, n->a, LOOSE);
  put(p, ") ");
  block(p, n->b);
}

static void named_braces(Printer *p, const Node *n, const char *keyword) {
  str_printf(&p->line.text, "%s %s ", keyword, n->name);
  braces(p, n->a, brace(p, n->name_span.hi), n->span.hi);
}

// One declaration or statement, on the line begun for it.
static void line_of(Printer *p, const Node *n) {
  switch ((NodeKind)n->kind) {
    case ND_KERNEL: named_braces(p, n, "kernel"); break;
    case ND_SEQUENCE: named_braces(p, n, "sequence"); break;
    case ND_PARAM:
      put(p, "param ");
      params(p, n->a);
      break;
    case ND_REQUIRE: words(p, "require ", n->a); break;
    case ND_WORK: words(p, "work ", n->a); break;
    case ND_TENSOR: tensor(p, n); break;
    case ND_WORKSPACE: declaration(p, "workspace ", n->a, RUN_NONE); break;
    case ND_RING:
      declaration(p, "ring ", n->a, RUN_RING);
      guard(p, n->b);
      break;
    case ND_REG: declaration(p, "reg ", n->a, RUN_REG); break;
    case ND_SPEC:
      put(p, "spec ");
      braces(p, n->a, brace(p, n->span.lo), n->span.hi);
      break;
    case ND_CASE:
      str_printf(&p->line.text, "case %s ", n->name);
      mark(p, RUN_CASE);
      brace_list(p, n->a, n->name_span.hi, n->span.hi, fact);
      break;
    case ND_GRID: grid(p, n); break;
    case ND_TURN: turn(p, n); break;
    case ND_ROLE: role(p, n); break;
    case ND_LAUNCH:
      if (n->flags & F_GIVEN) put(p, "given ");
      put(p, n->name);
      break;
    case ND_COPY: copy(p, n); break;
    case ND_ACQUIRE: words(p, "acquire ", n->a); break;
    case ND_COMMIT: words(p, "commit ", n->a); break;
    case ND_WAIT: wait(p, n); break;
    case ND_RELEASE: words(p, "release ", n->a); break;
    case ND_ASSIGN: assign(p, n); break;
    case ND_LET:
      put(p, "let ");
      binds(p, n->a);
      break;
    case ND_DEF: def(p, n); break;
    case ND_CALLST:
      str_printf(&p->line.text, "%s(", n->name);
      comma_list(p, n->a, " ", NEAT);
      put(p, ")");
      break;
    case ND_VOTE: vote(p, n); break;
    case ND_FOR: loop(p, n); break;
    case ND_IF: branch(p, n); break;
    default: break;
  }
}

void sc_print_source(Str *out, const Ast *ast) {
  Printer p = {.sc = out->sc, .ast = ast, .hang = HANG};
  for (const Node *n = ast->file->a; n; n = n->next) {
    if (n->flags & F_SAME_LINE) put(&p, ";  ");
    else next_line(&p, n->span.lo, 0, 0);
    line_of(&p, n);
  }
  next_line(&p, ast->text->len, 0, 0);
  sc_put_lines(out, ast->text, &p.lines);
}
