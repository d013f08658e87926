// print.c - the formatter: the tree and its comments in, canonical text out. Formatting twice
// changes nothing.
//
// From the author it keeps what carries meaning to a reader: which statements share a line, which
// blocks stand on one, where a list or expression was broken, single blank lines, comments. All
// else is decided here: indentation, spaces, and the columns of runs of like lines. Lines are
// collected first, with a MARK where a column may begin; lines.c aligns them when all are known
// (Go's formatter works so).
#include "lang/printer.h"

enum { STEP = 2, HANG = 4 };

// ---- parts of declarations

// { a, b }: `from` is where the brace stands or shortly before it, `to` where it closes. Elements
// that the author broke stand one step in.
static void brace_list(Printer *p, const Node *list, u32 from, u32 to,
                       void (*each)(Printer *, const Node *)) {
  u32 hang = p->hang;
  pr_put(p, "{");
  p->hang = STEP;
  if (list) pr_gap(p, from, list->span.lo, " ");
  for (const Node *n = list; n; n = n->next) {
    each(p, n);
    p->hang = STEP;
    pr_comma(p, n, " ");
  }
  while (list && list->next) list = list->next;
  p->hang = 0;
  pr_gap(p, list ? list->span.hi : from, to - 1, " ");
  pr_put(p, "}");
  p->hang = hang;
}

static void element(Printer *p, const Node *n) { pr_expr(p, n, LOOSE); }

static void values(Printer *p, const Node *n) {
  if (n->kind != ND_RANGE) {
    element(p, n);
    return;
  }
  pr_expr(p, n->a, LOOSE);
  pr_put(p, " .. ");
  pr_expr(p, n->b, LOOSE);
  if (n->c) pr_put(p, " by "), pr_expr(p, n->c, LOOSE);
}

static void type(Printer *p, const Node *n) {
  pr_put(p, n->name);
  if (n->a) pr_bracket_list(p, n->a, " ");
}

static void group(Printer *p, const Node *n);

static void fact(Printer *p, const Node *n) {
  const Node *v = n->a;
  pr_put(p, n->name);
  pr_put(p, v->kind == ND_SET ? " in " : " = ");
  if (v->kind == ND_SET) {
    brace_list(p, v->a, v->span.lo, v->span.hi, element);
  } else if (v->kind == ND_TUPLE) {
    pr_bracket_list(p, v->a, " ");
  } else {
    pr_expr(p, v, LOOSE);
  }
}

static void group_type(Printer *p, const Node *n) {
  pr_put(p, ": ");
  if (n->b->kind == ND_RECORD) brace_list(p, n->b->a, n->b->span.lo, n->b->span.hi, group);
  else type(p, n->b);
  if (n->c) {
    pr_put(p, " = ");
    pr_expr(p, n->c, LOOSE);
  }
  if (n->d && n->d->kind == ND_RANGE) {
    pr_put(p, " in ");
    values(p, n->d);
  } else if (n->d) {
    pr_put(p, " * ");
    pr_expr(p, n->d, NEAT);
  }
  if (n->flags & F_PARTIAL) pr_put(p, " partial");
  if (n->flags & F_RISING) pr_put(p, " rising");
}

static void group(Printer *p, const Node *n) {
  pr_comma_list(p, n->a, " ", LOOSE);
  pr_put(p, " ");
  group_type(p, n);
}

// Groups after their keyword; in a run of such lines the first colons stand in one column.
static void groups(Printer *p, const Node *list, Run run) {
  for (const Node *n = list; n; n = n->next) {
    pr_comma_list(p, n->a, " ", LOOSE);
    pr_put(p, " ");
    if (n == list && run) pr_mark(p, run);
    group_type(p, n);
    pr_comma(p, n, " ");
  }
}

static void declaration(Printer *p, const char *keyword, const Node *list, Run run) {
  pr_put(p, keyword);
  groups(p, list, run);
}

static void params(Printer *p, const Node *list) {
  for (const Node *n = list; n; n = n->next) {
    pr_put(p, n->name);
    pr_put(p, " ");
    if (!list->next) pr_mark(p, RUN_PARAM);
    pr_put(p, "=");
    pr_gap(p, n->name_span.hi, n->a->span.lo, " ");
    pr_expr(p, n->a, LOOSE);
    if (!list->next) {
      pr_put(p, " ");  // also where no `in` follows: such a value widens the column too
      pr_mark(p, RUN_PARAM);
    }
    if (n->b) {
      pr_put(p, list->next ? " in " : "in ");
      brace_list(p, n->b, n->a->span.hi, n->span.hi, values);
    }
    pr_comma(p, n, " ");
  }
}

static void binds(Printer *p, const Node *list) {
  for (const Node *n = list; n; n = n->next) {
    pr_put(p, n->name);
    if (n->b) pr_positions(p, n->b);
    pr_put(p, " ");
    if (n == list) pr_mark(p, RUN_LET);
    pr_put(p, "=");
    pr_gap(p, n->name_span.hi, n->a->span.lo, " ");
    pr_expr(p, n->a, LOOSE);
    pr_comma(p, n, " ");
  }
}

static void axes(Printer *p, const Node *list) {
  for (const Node *n = list; n; n = n->next) {
    if (n->flags & F_REVERSED) pr_put(p, "reversed ");
    pr_put(p, n->name);
    pr_put(p, " : ");
    pr_expr(p, n->a, LOOSE);
    if (n->kind == ND_AXIS && n->b) {
      pr_put(p, " by ");
      pr_expr(p, n->b, LOOSE);
    }
    pr_comma(p, n, " ");
  }
}

static void grid(Printer *p, const Node *n) {
  pr_put(p, "grid (");
  axes(p, n->a);
  pr_put(p, ")");
  if (n->flags & F_PERSISTENT) pr_put(p, " persistent");
  if (n->flags & F_DYNAMIC) pr_put(p, " dynamic");
  if (!n->b) return;
  pr_put(p, " cluster (");
  axes(p, n->b);
  pr_put(p, ")");
}

static void guard(Printer *p, const Node *condition) {
  if (!condition) return;
  pr_put(p, " if ");
  pr_expr(p, condition, LOOSE);
}

// ---- blocks

static void line_of(Printer *p, const Node *n);

// Statements between braces. `from`: where the { stands or shortly before it; `to`: behind the }.
static void braces(Printer *p, const Node *list, u32 from, u32 to) {
  bool comments = p->comment < p->ast->comments.n && p->ast->comments.at[p->comment].span.lo < to;
  bool one_line = !pr_newline_in(p, from, to) || (!list && !comments);
  pr_put(p, "{");
  if (one_line) {
    for (const Node *n = list; n; n = n->next) {
      pr_put(p, n == list ? " " : ";  ");
      line_of(p, n);
    }
    pr_put(p, " }");
    p->line.run = RUN_NONE;
    return;
  }
  u32 hang = p->hang;
  p->opened = true;
  p->indent += STEP;
  for (const Node *n = list; n; n = n->next) {
    if (n->flags & F_SAME_LINE) {
      pr_put(p, ";  ");
      p->hang = HANG;
      line_of(p, n);
      p->line.run = RUN_NONE;
      continue;
    }
    pr_next_line(p, n->span.lo, p->indent, p->indent);
    p->hang = HANG;
    line_of(p, n);
  }
  pr_next_line(p, to - 1, p->indent, p->indent - STEP);
  p->line.blank = false;
  p->indent -= STEP;
  p->hang = hang;
  pr_put(p, "}");
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
  pr_put(p, "if ");
  pr_expr(p, n->a, LOOSE);
  pr_put(p, " ");
  block(p, n->b);
  if (!n->c) return;
  u32 end = n->b->span.hi, next = n->c->span.lo;
  bool comments = p->comment < p->ast->comments.n && p->ast->comments.at[p->comment].span.lo < next;
  bool one_line = !pr_newline_in(p, n->b->span.lo, end);
  if (pr_newline_in(p, end, next) && (one_line || comments)) {
    pr_next_line(p, next, p->indent, p->indent);
    p->line.blank = false;
  } else {
    pr_put(p, " ");
  }
  pr_put(p, "else ");
  if (n->c->kind == ND_IF) branch(p, n->c);
  else block(p, n->c);
}

static void role(Printer *p, const Node *n) {
  bool warps = n->op == AST_WARP, one = n->b->kind == ND_INT && n->b->num.i == 1;
  str_printf(&p->line.text, "role %s", n->name);
  if (n->sym2) str_printf(&p->line.text, "[%s]", n->sym2);
  pr_put(p, " : ");
  pr_expr(p, n->b, NEAT);
  str_printf(&p->line.text, " %s%s", warps ? "warp" : "warpgroup", one ? "" : "s");
  if (n->flags & F_ONE_TILE) pr_put(p, ", one tile each");
  if (n->d) {
    pr_put(p, ",");
    pr_gap(p, n->b->span.hi, n->d->span.lo, " ");
    pr_expr(p, n->d, NEAT);
    pr_put(p, " regs");
  }
  guard(p, n->c);
  pr_put(p, " ");
  const Node *last = n->c ? n->c : n->d ? n->d : n->b;
  braces(p, n->a, brace(p, last->span.hi), n->span.hi);
}

// ---- statements

// The left side of an equation that states a type: c : f32[i,j].
static void typed_left(Printer *p, const Node *n) {
  bool indexed = n->a->kind == ND_INDEX;
  pr_expr(p, indexed ? n->a->a : n->a, LOOSE);
  str_printf(&p->line.text, " : %s", n->d->name);
  if (indexed) pr_positions(p, n->a->b);
}

static void assign(Printer *p, const Node *n) {
  if (n->flags & F_ASYNC) pr_put(p, "async ");
  if (n->d) typed_left(p, n);
  else pr_expr(p, n->a, LOOSE);
  pr_put(p, n->op == AST_SETADD ? " +" : " ");
  pr_mark(p, n->flags & F_ASYNC ? RUN_ASYNC : RUN_ASSIGN);
  pr_put(p, "=");
  pr_gap(p, n->a->span.hi, n->b->span.lo, " ");
  pr_expr(p, n->b, LOOSE);
  guard(p, n->c);
}

static void words(Printer *p, const char *keyword, const Node *list) {
  pr_put(p, keyword);
  pr_comma_list(p, list, " ", LOOSE);
}

static void wait(Printer *p, const Node *n) {
  words(p, "wait ", n->a);
  if (n->flags & F_READ) pr_put(p, " read");
  if (!n->b) return;
  pr_put(p, " keep ");
  pr_expr(p, n->b, LOOSE);
}

static void turn(Printer *p, const Node *n) {
  str_printf(&p->line.text, "turn %s", n->name);
  if (n->c) {
    str_printf(&p->line.text, "[%s : ", n->c->name);
    pr_expr(p, n->c->a, LOOSE);
    pr_put(p, "]");
  }
  pr_put(p, " : ");
  pr_comma_list(p, n->a, " ", LOOSE);
  guard(p, n->b);
}

static void def(Printer *p, const Node *n) {
  str_printf(&p->line.text, "def %s(", n->name);
  pr_comma_list(p, n->a, " ", LOOSE);
  pr_put(p, ")");
  if (n->b->kind == ND_BLOCK) {
    pr_put(p, " ");
    block(p, n->b);
    return;
  }
  pr_put(p, " =");
  const Node *last = n->a;
  while (last && last->next) last = last->next;
  pr_gap(p, last ? last->span.hi : n->name_span.hi, n->b->span.lo, " ");
  pr_expr(p, n->b, LOOSE);
}

static void loop(Printer *p, const Node *n) {
  str_printf(&p->line.text, "for %s in %s", n->name, n->flags & F_REVERSED ? "reversed " : "");
  pr_expr(p, n->a, LOOSE);
  pr_put(p, " .. ");
  pr_expr(p, n->b, LOOSE);
  pr_put(p, " ");
  block(p, n->d);
}

static void copy(Printer *p, const Node *n) {
  pr_expr(p, n->a, LOOSE);
  pr_put(p, " <-");
  pr_gap(p, n->a->span.hi, n->b->span.lo, " ");
  pr_expr(p, n->b, LOOSE);
  if (n->flags & F_MULTICAST) pr_put(p, " multicast");
}

static void tensor(Printer *p, const Node *n) {
  pr_put(p, n->flags & F_IN ? n->flags & F_OUT ? "inout " : "in " : "out ");
  pr_mark(p, RUN_TENSOR);
  groups(p, n->a, RUN_NONE);
  guard(p, n->b);
}

static void vote(Printer *p, const Node *n) {
  pr_put(p, n->flags & F_TOGETHER ? "vote together any(" : "vote any(");
  pr_expr(p, n->a, LOOSE);
  pr_put(p, ") ");
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
      pr_put(p, "param ");
      params(p, n->a);
      break;
    case ND_REQUIRE: words(p, "require ", n->a); break;
    case ND_WORK: words(p, "work ", n->a); break;
    case ND_TENSOR: tensor(p, n); break;
    case ND_WORKSPACE:
      declaration(p, "workspace ", n->a, RUN_NONE);
      guard(p, n->b);
      break;
    case ND_RING:
      declaration(p, "ring ", n->a, RUN_RING);
      guard(p, n->b);
      break;
    case ND_REG: declaration(p, "reg ", n->a, RUN_REG); break;
    case ND_SPEC:
      pr_put(p, "spec ");
      braces(p, n->a, brace(p, n->span.lo), n->span.hi);
      break;
    case ND_CASE:
      str_printf(&p->line.text, "case %s ", n->name);
      pr_mark(p, RUN_CASE);
      brace_list(p, n->a, n->name_span.hi, n->span.hi, fact);
      break;
    case ND_GRID: grid(p, n); break;
    case ND_TURN: turn(p, n); break;
    case ND_ROLE: role(p, n); break;
    case ND_LAUNCH:
      if (n->flags & F_GIVEN) pr_put(p, "given ");
      pr_put(p, n->name);
      guard(p, n->a);
      break;
    case ND_COPY: copy(p, n); break;
    case ND_ACQUIRE: words(p, "acquire ", n->a); break;
    case ND_COMMIT: words(p, "commit ", n->a); break;
    case ND_WAIT: wait(p, n); break;
    case ND_RELEASE: words(p, "release ", n->a); break;
    case ND_ASSIGN: assign(p, n); break;
    case ND_LET:
      pr_put(p, "let ");
      binds(p, n->a);
      break;
    case ND_DEF: def(p, n); break;
    case ND_CALLST:
      str_printf(&p->line.text, "%s(", n->name);
      pr_comma_list(p, n->a, " ", NEAT);
      pr_put(p, ")");
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
    if (n->flags & F_SAME_LINE) pr_put(&p, ";  ");
    else pr_next_line(&p, n->span.lo, 0, 0);
    line_of(&p, n);
  }
  pr_next_line(&p, ast->text->len, 0, 0);
  sc_put_lines(out, ast->text, &p.lines);
}
