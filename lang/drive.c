// drive.c - sc_parse: takes tokens from the lexer and gives them to the grammar, one that fits
// after the other.
//
// Between the two it decides which newlines end a statement, keeps the stack of open brackets, and
// recovers: the grammar is asked before each token whether it fits. One that does not is reported
// (expect.c), the grammar falls back to the innermost list of statements, and reading goes on at
// the next statement, past whole { … } only, so that a slip in a head does not take the lines
// after its body with it.
#include "lang/parser.h"

#include <stdlib.h>
#include <string.h>

#include "parse.h"

void sc_lalrInit(void *lalr, Parser *p);
void sc_lalr(void *lalr, int kind, Token t);

static const TokenInfo info[] = {
    [T_EOF] = {"the end of the text", 0},
#define TOK(id, text, class) [T_##id] = {text, class},
#include "lang/tokens.def"
#undef TOK
};

const TokenInfo *sc_token_info(int kind) { return &info[kind]; }

void sc_open_block(Parser *p) { p->open.at[p->open.n - 1].block = true; }

void sc_too_deep(Parser *p, Span at) {
  if (!p->stop) {
    Diag *d = sc_report(p->sc, D_S_NEST, at, "more than %d levels of nesting", SC_MAX_NEST);
    sc_help(p->sc, d,
            "give parts of it names, by 'let' or 'def'; each term of a long sum is a level");
  }
  p->stop = true;
}

static Token end_before(Token t) { return (Token){.kind = T_NL, .span = {t.span.lo, t.span.lo}}; }

static bool starts_unit(Token t) { return t.first && (t.kind == T_KERNEL || t.kind == T_SEQUENCE); }

bool sc_at_statement(const Parser *p) {
  if (p->open.n && !p->open.at[p->open.n - 1].block) return false;
  return p->fresh || p->last.kind == T_LB;
}

// ---- brackets

// Bytes of white space before the first token of the line that holds `offset`.
static u32 indent(const Text *text, u32 offset) {
  u32 start = text->line[sc_line_col(text, offset).line - 1], at = start;
  while (at < offset && (text->at[at] == ' ' || text->at[at] == '\t')) at++;
  return at - start;
}

static void note_brackets(Parser *p, Token t) {
  if (t.kind == T_LP || t.kind == T_LK || t.kind == T_LB) {
    if (p->open.n == SC_MAX_NEST) sc_too_deep(p, t.span);
    PUSH(p->sc, &p->open, ((Open){t.kind, t.span, false}));
    if (t.kind == T_LB) sc_settle(p);
  } else if (t.kind == T_RP || t.kind == T_RK || t.kind == T_RB) {
    Open o = p->open.at[--p->open.n];
    const Text *text = p->ast->text;
    bool askew = t.kind == T_RB && t.first && indent(text, t.span.lo) != indent(text, o.span.lo);
    if (askew && !p->suspect.hi) p->suspect = o.span;
  }
  p->in_brackets = p->open.n && p->open.at[p->open.n - 1].kind != T_LB;
}

// ---- tokens in, tokens out

static Token take(Parser *p) {
  if (p->held.kind < 0) return sc_lex(p);
  Token t = p->held;
  p->held.kind = -1;
  return t;
}

static void give(Parser *p, Token t) {
  bool starts = sc_at_statement(p);
  p->fresh = t.kind == T_NL || t.kind == T_SEMI;
  sc_lalr(p->lalr, p->fresh ? T_NL : t.kind, t);
  if (p->fresh) return;
  p->last = t;
  p->starts = starts;
}

// ---- recovery

// The grammar drops what it has of the statement and takes an `error` for it.
static void give_up(Parser *p, Span at) {
  sc_fall_back(p);
  p->last = (Token){.kind = T_BAD, .span = at};
  p->fresh = false;
  while (p->open.n && !p->open.at[p->open.n - 1].block) p->open.n--;
  p->in_brackets = false;
}

// Goes from the bad token t to the end of its statement, or to the } or the unit that ends more
// than that. `lists`: how many of the braces around t hold lists; their } ends nothing.
static void skip_statement(Parser *p, Token t, u32 lists) {
  u32 depth = 0;
  for (int before = T_BAD;; before = t.kind, t = take(p)) {
    if (t.kind == T_EOF || starts_unit(t)) {
      p->sep = end_before(t);
      break;
    }
    if (t.kind == T_LB) depth++;
    if (t.kind == T_RB) {
      if (depth) depth--;
      else if (lists) lists--;
      else if (p->open.n) break;
    }
    if (depth || (t.kind != T_NL && t.kind != T_SEMI)) continue;
    if (t.kind == T_NL && sc_token_info(before)->class & MORE) continue;
    p->held = take(p);
    if (lists && p->held.kind == T_RB) {
      t = take(p);
      lists--;
      continue;
    }
    p->sep = t;
    return;
  }
  p->held = t;
}

static void recover(Parser *p, Token t) {
  if (t.kind == T_RB && !p->open.n) return;
  // A bracket left open runs into the next statement: what starts a line may well start that one.
  bool in_brackets = p->in_brackets;
  bool starts = sc_token_info(t.kind)->class & OPENS || (t.kind == T_NAME && in_brackets);
  bool resume = starts && t.first && !sc_at_statement(p);
  u32 n = p->open.n, lists = 0;
  Open *open = p->open.at;
  give_up(p, t.span);
  for (u32 i = p->open.n; i < n; i++) lists += open[i].kind == T_LB;
  if (resume) {
    p->sep = end_before(t);
    p->held = t;
  } else {
    if (t.kind == T_SEMI && in_brackets) t.kind = T_BAD;  // a slip within a list ends nothing
    skip_statement(p, t, lists);
  }
}

static void offer(Parser *p, Token t) {
  if (sc_token_info(t.kind)->class & FIRST && !sc_accepts(p, t.kind)) t.kind = T_NAME;
  if (t.kind != T_BAD) {
    if (sc_accepts(p, t.kind == T_SEMI ? T_NL : t.kind)) {
      give(p, t);
      note_brackets(p, t);
      return;
    }
    sc_unexpected(p, t);
    if (t.kind == T_NL && p->held.kind == T_LB && sc_accepts(p, T_LB))
      return;  // as if on the head's line
  }
  recover(p, t);
}

// The text or a unit's text ends while brackets are open: says so and closes them.
static void close_all(Parser *p, Token t) {
  Open o = p->open.at[p->open.n - 1];
  Diag *d = sc_report(p->sc, D_S_BRACE, t.span, "'%s' is missing before %s",
                      o.kind == T_LP   ? ")"
                      : o.kind == T_LK ? "]"
                                       : "}",
                      sc_token_words(p, t));
  sc_note(p->sc, d, o.span, "to close this one");
  if (p->suspect.hi) sc_note(p->sc, d, p->suspect, "its '}' stands in another column");
  while (p->open.n) {
    if (!p->open.at[p->open.n - 1].block || !sc_accepts(p, T_RB)) give_up(p, t.span);
    if (!p->open.n) break;
    p->open.n--;
    give(p, (Token){.kind = T_RB, .span = {t.span.lo, t.span.lo}});
  }
  p->in_brackets = false;
  p->suspect.hi = 0;
  p->sep = end_before(t);
}

// ---- ends of statements

// A newline or `;` in the text. It counts when the next token is known, in step.
static void statement_end(Parser *p, Token t) {
  if (p->fresh) return;
  if (p->sep.kind >= 0) {
    if (t.kind == T_NL) p->sep.kind = T_NL;  // `a;` and a newline: what follows has its own line
  } else if (t.kind == T_SEMI ||
             (!p->in_brackets && !(sc_token_info(p->last.kind)->class & MORE))) {
    p->sep = t;
  }
}

// One token, or the end of a statement before it. False at the end of the text.
static bool step(Parser *p) {
  Token t = take(p);
  if (t.kind == T_NL || t.kind == T_SEMI) {
    statement_end(p, t);
    return true;
  }
  if (p->open.n && (t.kind == T_EOF || starts_unit(t))) close_all(p, t);
  if (t.kind == T_EOF && !p->fresh) p->sep = end_before(t);
  Token sep = p->sep;
  p->sep.kind = -1;
  bool goes_on = t.kind == T_ELSE && sep.kind == T_NL && p->last.kind == T_RB;
  if (sep.kind >= 0 && !goes_on) {
    p->held = t;
    t = sep;
  }
  if (t.kind == T_EOF) {
    give(p, t);
    return false;
  }
  offer(p, t);
  return true;
}

// ---- depth

enum { MAX_CHAIN = 1000 };  // operators of a + b + … that lean on one another

// Whether a tree is deeper than every later pass may recurse. What nests counts; the left operands
// of a chain count by their number alone.
static bool too_deep(const Node *list, u32 nest, Span *at) {
  for (const Node *n = list; n; n = n->next) {
    const Node *top = n;
    u32 chain = 0;
    *at = n->span;
    for (; n->kind == ND_BINARY && !(n->flags & F_PAREN); n = n->a) {
      if (++chain > MAX_CHAIN || too_deep(n->b, nest, at)) return true;
    }
    bool counts = n->flags & F_PAREN || n->kind == ND_BLOCK || n->kind == ND_INDEX ||
                  n->kind == ND_APPLY || n->kind == ND_UNARY || n->kind == ND_SELECT ||
                  n->kind == ND_REDUCE || n->kind == ND_IF;
    u32 inside = nest + counts;
    if (inside > SC_MAX_NEST) return true;
    if (too_deep(n->a, inside, at) || too_deep(n->b, inside, at) || too_deep(n->c, inside, at) ||
        too_deep(n->d, inside, at)) {
      return true;
    }
    n = top;
  }
  return false;
}

static void add_words(Parser *p) {
  for (int kind = 1; kind < (int)COUNT(info); kind++) {
    int as = kind;
    if (info[kind].class & (WORD | SOFT))
      sc_intern(p, info[kind].text, (u32)strlen(info[kind].text), &as);
  }
}

// ---- units by name

static int by_name(const void *a, const void *b) {
  const Node *p = *(const Node *const *)a, *q = *(const Node *const *)b;
  int order = strcmp(p->name, q->name);
  return order ? order : (p->span.lo > q->span.lo) - (p->span.lo < q->span.lo);
}

const Node *sc_unit(const Ast *ast, const char *name) {
  u32 lo = 0, hi = ast->unit.n;  // the first that is not before the name is in [lo, hi]
  while (lo < hi) {
    u32 mid = lo + (hi - lo) / 2;
    if (strcmp(ast->unit.at[mid]->name, name) < 0) lo = mid + 1;
    else hi = mid;
  }
  return lo < ast->unit.n && !strcmp(ast->unit.at[lo]->name, name) ? ast->unit.at[lo] : NULL;
}

static bool is_unit(const Node *n) {
  return (n->kind == ND_KERNEL || n->kind == ND_SEQUENCE) && n->name;
}

static void index_units(Parser *p) {
  for (const Node *n = p->ast->file->a; n; n = n->next) {
    if (is_unit(n)) PUSH(p->sc, &p->ast->unit, n);
  }
  if (p->ast->unit.n) qsort(p->ast->unit.at, p->ast->unit.n, sizeof *p->ast->unit.at, by_name);
  for (const Node *n = p->ast->file->a; n; n = n->next) {
    if (is_unit(n) && sc_unit(p->ast, n->name) != n) PUSH(p->sc, &p->ast->again, n);
  }
}

// ---- entry

Ast *sc_parse(Sc *sc, const Text *text) {
  Parser p = {.sc = sc, .ast = NEW(sc, Ast), .at = text->at, .end = text->at + text->len};
  p.ast->text = text;
  p.held.kind = p.sep.kind = -1;
  p.fresh = p.line_start = true;
  p.lalr = sc_new(sc, sc_lalr_size);
  if (text->len >= 3 && !memcmp(text->at, "\xef\xbb\xbf", 3)) p.at += 3;
  add_words(&p);
  sc_lalrInit(p.lalr, &p);
  while (!p.stop && sc->errors < SC_MAX_ERRORS && step(&p)) {
  }
  Span at;
  if (!p.stop && p.ast->file && too_deep(p.ast->file, 0, &at)) sc_too_deep(&p, at);
  if (p.stop || !p.ast->file) p.ast->file = MAKE(&p, FILE, 0, .a = NULL);
  index_units(&p);
  return p.ast;
}
