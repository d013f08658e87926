// expect.c - what to say about a token that does not fit: what was found, what the grammar would
// have taken (it is asked about every token), which open bracket it may have to do with, and the
// usual slip behind it.
#include "lang/parser.h"

#include <string.h>

#include "parse.h"

enum { MAX_NAMED = 5, MAX_QUOTED = 24 };  // alternatives worth listing; bytes of a quoted token

static const u8 kinds[] = {
#define TOK(id, text, class) T_##id,
#include "lang/tokens.def"
#undef TOK
};

static const char *quoted(Parser *p, Span at) {
  u32 n = at.hi - at.lo;
  const char *text = p->ast->text->at + at.lo;
  return n <= MAX_QUOTED ? sc_printf(p->sc, "'%.*s'", (int)n, text)
                         : sc_printf(p->sc, "'%.*s…'", MAX_QUOTED, text);
}

const char *sc_token_words(Parser *p, Token t) {
  if (t.span.lo >= p->ast->text->len) return "the end of the text";
  if (t.kind == T_NL) return "the end of the line";
  return quoted(p, t.span);
}

// What could stand here, as alternatives; false if too many to say.
typedef struct Wanted {
  const char *word[MAX_NAMED];
  u32 n;
  bool too_many;
} Wanted;

static void want(Wanted *w, const char *word) {
  w->too_many |= w->n == MAX_NAMED;
  if (!w->too_many) w->word[w->n++] = word;
}

static Wanted wanted(Parser *p) {
  Wanted w = {0};
  bool expression = sc_accepts(p, T_INT);
  bool opener = sc_accepts(p, T_LET), infix = sc_accepts(p, T_PLUS);
  if (expression) want(&w, "an expression");
  if (opener) want(&w, sc_accepts(p, T_WAIT) ? "a statement" : "a declaration");
  for (u32 i = 0; i < COUNT(kinds); i++) {
    int kind = kinds[i];
    u8 class = sc_token_info(kind)->class;
    if (class & SOFT || (expression && class & EXPR) || (infix && class & BINARY)) continue;
    if (infix && (kind == T_LP || kind == T_LK || kind == T_DOT)) continue;
    if (opener && (class & OPENS || kind == T_NAME)) continue;
    if (kind == T_RB && p->open.n && p->open.at[p->open.n - 1].block) continue;
    if (!sc_accepts(p, kind)) continue;
    const char *text = sc_token_info(kind)->text;
    want(&w, class & WORD || strlen(text) <= 2 ? sc_printf(p->sc, "'%s'", text) : text);
  }
  if (infix && !w.n) want(&w, "an operator");
  return w;
}

static const char *sentence(Parser *p, Token t) {
  Wanted w = wanted(p);
  Str s = {.sc = p->sc};
  if (!w.n || w.too_many) {
    str_printf(&s, "%s cannot stand here", sc_token_words(p, t));
    return s.at;
  }
  str_puts(&s, "expected ");
  for (u32 i = 0; i < w.n; i++) {
    str_printf(&s, "%s%s", !i ? "" : i + 1 < w.n ? ", " : " or ", w.word[i]);
  }
  if (!sc_at_statement(p)) str_printf(&s, " after %s", quoted(p, p->last.span));
  str_printf(&s, ", found %s", sc_token_words(p, t));
  return s.at;
}

// The word that was meant by a name: one of these classes; here: and that can stand here.
static const char *misspelt(Parser *p, Sym name, u8 classes, bool here) {
  const char *found = NULL;
  u32 slips = sc_slips(name);
  for (u32 i = 0; i < COUNT(kinds); i++) {
    const TokenInfo *info = sc_token_info(kinds[i]);
    if (!(info->class & classes) || (here && !sc_accepts(p, kinds[i]))) continue;
    if (sc_nearer(name, info->text, &slips)) found = info->text;
  }
  return found;
}

// The slip behind a ':' that is in the wrong place or is missing, or NULL.
static const char *help_colon(Parser *p, Token t) {
  if (t.kind == T_COLON && p->in_brackets && sc_accepts(p, T_INT)) {
    return "'e..' is a slice, which begins at e; last dimensions that are left out are whole";
  }
  if (t.kind == T_COLON && sc_accepts(p, T_SET) && sc_accepts(p, T_LK)) {
    return "a 'let' has the type of its value: let x = e";
  }
  if (p->in_brackets && p->last.kind == T_NAME && sc_accepts(p, T_COLON) &&
      !sc_accepts(p, T_PLUS)) {
    return "each axis of a grid has a name: (x : m, y : n)";
  }
  return NULL;
}

// The slip that a token in the wrong place usually is, or NULL.
static const char *help(Parser *p, Token t) {
  u8 class = sc_token_info(t.kind)->class;
  bool operand = sc_accepts(p, T_PLUS), start = sc_at_statement(p);
  if (t.kind == T_SET && operand) return "'==' compares; '=' is for statements";
  if (t.kind == T_ARROW && operand) return "put a space between '<' and '-' to compare";
  if (t.kind == T_SEMI && p->in_brackets) return "the elements of a list are separated by ','";
  if (class & BINARY && operand && sc_accepts(p, T_AND)) {
    return "comparisons do not chain: join two of them with 'and'";
  }
  if (start && class & BINARY) {
    return "a line goes on behind an operator or comma: put this one at the end of the line above";
  }
  if (p->last.kind == T_FOR || (t.kind == T_LB && sc_accepts(p, T_DOTDOT))) {
    return "a loop is 'for t in 0 .. n { … }', with t = 0, 1, … n - 1";
  }
  if (t.kind == T_NL && sc_accepts(p, T_LB)) return "the '{' stands on the line of its head";
  if (p->last.kind == T_WAIT && (t.kind == T_LT || t.kind == T_INT)) {
    return "name what to wait for: how many products may stay in flight is worked out";
  }
  if (t.kind == T_DOT && p->last.kind == T_NAME && sc_accepts(p, T_COMMA) && !operand) {
    return "a stage is taken and given back as a whole: name its ring";
  }
  if (p->last.kind == T_WARP && t.kind == T_NAME && !strncmp(t.name, "group", 5)) {
    return "'warpgroup' is one word";
  }
  if (p->last.kind == T_RP && t.kind == T_NAME && operand) {
    return "an operator is missing; reductions are sum(…), max(…) and min(…)";
  }
  if (p->last.kind == T_DOTDOT && sc_accepts(p, T_RK)) {
    return "a slice 'e..' is as long as the stage: it has no end of its own";
  }
  if (t.kind == T_ELSE) return "'else' follows the '}' of an 'if'";
  if (!start && sc_accepts(p, T_NL) && class & OPENS) {
    return "a statement ends with a newline or ';'";
  }
  if (t.kind == T_DEF && start && sc_accepts(p, T_NAME) && !sc_accepts(p, T_WAIT)) {
    return "a 'def' stands in the kernel: the specification may call it";
  }
  if (!start) return NULL;
  if (t.kind == T_IF && sc_accepts(p, T_WORKSPACE)) return "a guard ends its step: scale if e";
  if (t.kind == T_IF && sc_accepts(p, T_ROLE)) {
    return "a guard ends its declaration: in x : f32[N] if e; an 'if' { … } stands inside a role";
  }
  if (sc_accepts(p, T_WORKSPACE) && (t.kind == T_IN || t.kind == T_OUT || t.kind == T_INOUT)) {
    return "a sequence takes and makes what its kernels do; one that no caller sees is a "
           "'workspace'";
  }
  if (sc_accepts(p, T_WORKSPACE) && t.kind == T_PARAM) {
    return "the params of a sequence are those of its kernels: declare it in each that uses it";
  }
  if (sc_accepts(p, T_ROLE) && (t.kind == T_NAME || class & OPENS)) {
    return "statements and 'reg' stand inside a role";
  }
  if (sc_accepts(p, T_WAIT) && class & OPENS) {
    return "this is declared in the kernel, outside its roles";
  }
  if (sc_accepts(p, T_KERNEL)) return "all else stands inside a kernel or a sequence";
  return NULL;
}

// What the language has instead of a word of other languages that begins statements, or NULL.
static const char *instead_of(Sym word) {
  static const char loop[] = "loops count: 'for t in 0 .. n { … }', with bounds from integers";
  static const char leave[] = "a loop runs to its end: 'if' leaves statements out";
  static const char give[] =
      "a def is an expression, 'def f(x) = e', or a block of statements: it does not return";
  static const char value[] =
      "'let x = e' names a value, 'reg x : f32[64, 128]' declares a register tile";
  static const char def[] =
      "'def f(x) = e' names an expression, 'def f(x) { … }' a block of statements";
  static const struct {
    const char *word, *instead;
  } known[] = {{"while", loop},   {"do", loop},
               {"break", leave},  {"continue", leave},
               {"return", give},  {"void", def},
               {"int", value},    {"float", value},
               {"double", value}, {"half", value},
               {"auto", value},   {"const", value},
               {"var", value},    {"elif", "'} else if e { … }'"}};
  for (u32 i = 0; i < COUNT(known); i++)
    if (!strcmp(known[i].word, word)) return known[i].instead;
  return NULL;
}

void sc_unexpected(Parser *p, Token t) {
  Sc *sc = p->sc;
  if (t.kind == T_RB && !p->open.n) {
    Diag *d = sc_report(sc, D_S_BRACE, t.span, "no '{' is open here");
    if (p->suspect.hi) sc_note(sc, d, p->suspect, "the '}' of this one stands in another column");
    return;
  }
  u8 class = sc_token_info(t.kind)->class;
  if (class & WORD && !t.first && sc_accepts(p, T_NAME) && !sc_at_statement(p)) {
    Diag *d =
        sc_report(sc, D_S_RESERVED, t.span, "'%s' is a reserved word and cannot be a name", t.name);
    sc_help(sc, d, "choose another name, such as '%s_'", t.name);
    return;
  }
  bool named = p->last.kind == T_NAME;
  const char *foreign = named && p->starts ? instead_of(p->last.name) : NULL;
  const char *word = named && p->starts ? misspelt(p, p->last.name, OPENS, false) : NULL;
  if (word || foreign) {
    Diag *d =
        sc_report(sc, D_S_TOKEN, p->last.span, "expected a statement, found '%s'", p->last.name);
    sc_help(sc, d, foreign ? "%s" : "did you mean '%s'?", foreign ? foreign : word);
    return;
  }
  Diag *d = sc_report(sc, D_S_TOKEN, t.span, "%s", sentence(p, t));
  const Open *o = p->open.n ? &p->open.at[p->open.n - 1] : NULL;
  bool closer = t.kind == T_RP || t.kind == T_RK || t.kind == T_RB;
  if (o && !o->block && (closer || t.first || t.kind == T_NL))
    sc_note(sc, d, o->span, "to close this one");
  const char *slip = help_colon(p, t);
  if (!slip) slip = help(p, t);
  if (t.kind == T_NAME) word = misspelt(p, t.name, WORD | SOFT, true);
  if (!word && !slip && named) word = misspelt(p, p->last.name, WORD | SOFT, false);
  if (word) sc_help(sc, d, "did you mean '%s'?", word);
  else if (slip) sc_help(sc, d, "%s", slip);
}
