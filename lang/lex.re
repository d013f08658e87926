// lex.re - bytes to tokens (re2c). The text ends with a NUL byte, which ends the lexer, too; a NUL
// before the end is an error. A token is a range of bytes; only words are read again, to be
// interned. Comments go into a list of the tree. A character that no token begins with becomes
// T_BAD and is reported here; a number that cannot be read is reported and counts as 0.
#include "lang/parser.h"

#include "parse.h"

static u32 offset(const Parser *p, const char *at) { return (u32)(at - p->ast->text->at); }

static Token token(Parser *p, int kind, const char *start) {
  Token t = {.kind = kind, .span = {offset(p, start), offset(p, p->at)}, .first = p->line_start};
  p->line_start = kind == T_NL;
  return t;
}

static Token word(Parser *p, const char *start) {
  Token t = token(p, T_NAME, start);
  t.name = sc_intern(p, start, (u32)(p->at - start), &t.kind);
  return t;
}

static Token integer(Parser *p, const char *start) {
  Token t = token(p, T_INT, start);
  for (const char *c = start; c < p->at; c++) {
    if (__builtin_mul_overflow(t.num.i, 10, &t.num.i) ||
        __builtin_add_overflow(t.num.i, *c - '0', &t.num.i)) {
      sc_report(p->sc, D_S_NUMBER, t.span, "an integer that does not fit 64 bits");
      t.num.i = 0;
      break;
    }
  }
  return t;
}

static Token real(Parser *p, const char *start) {
  Token t = token(p, T_REAL, start);
  u32 n = t.span.hi - t.span.lo;
  bool zero = true;  // as written, not by underflow
  for (const char *c = start; c < p->at && *c != 'e' && *c != 'E'; c++)
    zero &= *c == '0' || *c == '.';
  if (!sc_read_real(p->sc, start, n, &t.num.f) || (t.num.f == 0 && !zero)) {
    sc_report(p->sc, D_S_NUMBER, t.span, "a number that no 64-bit float comes near");
    t.num.f = 0;
  }
  t.name = sc_intern(p, start, n, NULL);
  return t;
}

static Token bad_number(Parser *p, const char *start, const char *text, const char *help) {
  Token t = token(p, T_REAL, start);
  sc_help(p->sc, sc_report(p->sc, D_S_NUMBER, t.span, "%s", text), "%s", help);
  t.name = sc_intern(p, "0.0", 3, NULL);
  return t;
}

static Token starts_with_dot(Parser *p, const char *start) {
  return bad_number(p, start, "a number starts with a dot", "write a digit before the dot: 0.5");
}

static Token ends_with_dot(Parser *p, const char *start) {
  return bad_number(p, start, "a number ends with a dot", "write a digit after the dot: 1.0");
}

static Token letters_behind(Parser *p, const char *start) {
  return bad_number(p, start, "letters follow a number directly",
                    "a name starts with a letter; a product needs its '*'");
}

static Token bad(Parser *p, const char *start, const char *text, const char *help) {
  Token t = token(p, T_BAD, start);
  Diag *d = sc_report(p->sc, D_S_CHAR, t.span, "%s", text);
  if (help) sc_help(p->sc, d, "%s", help);
  return t;
}

// A character of several bytes, named by its code point.
static Token foreign(Parser *p, const char *start) {
  static const u8 mask[] = {0, 0, 0x1f, 0x0f, 0x07};
  u32 n = (u32)(p->at - start), code = (u8)*start & mask[n];
  for (u32 i = 1; i < n; i++) code = code << 6 | ((u8)start[i] & 0x3f);
  return bad(p, start, sc_printf(p->sc, "U+%04X stands outside a comment", code),
             "names, numbers and operators are ASCII");
}

// What other languages write, and what the word is here.
static Token spelt_otherwise(Parser *p, const char *start) {
  const char *help = "a comment is '//' to the end of its line";  // '#', '/*'
  if (*start == '&') help = "the word is 'and'";
  if (*start == '|') help = "the word is 'or'";
  if (*start == '!') help = "the word is 'not'";
  if (*start == '*' || *start == '^') help = "there is no power: write x*x, or exp2(y*log2(x))";
  const char *text = sc_printf(p->sc, "'%.*s' means nothing here", (int)(p->at - start), start);
  return bad(p, start, text, help);
}

static Token stray(Parser *p, const char *start) {
  u8 c = (u8)*start;
  const char *text = c > ' ' && c < 0x7f ? sc_printf(p->sc, "'%c' means nothing here", c)
                                         : sc_printf(p->sc, "a byte 0x%02x in the text", c);
  return bad(p, start, text, NULL);
}

static void comment(Parser *p, const char *start) {
  const char *end = p->at;
  while (end > start && (end[-1] == '\r' || end[-1] == ' ' || end[-1] == '\t')) end--;
  for (const char *c = start; c < end; c++) {
    if (((u8)*c < ' ' && *c != '\t') || *c == 0x7f) {
      Span at = {offset(p, c), offset(p, c) + 1};
      sc_report(p->sc, D_S_CHAR, at, "a byte 0x%02x in a comment", (u8)*c);
      break;
    }
  }
  PUSH(p->sc, &p->ast->comments, ((Comment){{offset(p, start), offset(p, end)}, p->line_start}));
}

/*!re2c
  re2c:define:YYCTYPE = "unsigned char";
  re2c:define:YYCURSOR = "p->at";
  re2c:define:YYMARKER = marker;
  re2c:yyfill:enable = 0;

  digit  = [0-9];
  letter = [A-Za-z_];
  exp    = [eE] [+-]? digit+;
  tail   = [\x80-\xbf];
*/

Token sc_lex(Parser *p) {
  const char *marker;
  if (sc_at_limit(p->sc)) p->at = p->end;  // nothing more would be reported
  for (;;) {
    const char *start = p->at;
    /*!re2c
      "\x00"      { if (start < p->end) return stray(p, start);
                    p->at = start;
                    return token(p, T_EOF, start); }
      [ \t\r]+    { continue; }
      "\n"        { return token(p, T_NL, start); }
      "//" [^\x00\n]*  { comment(p, start); continue; }

      letter (letter | digit)*        { return word(p, start); }
      digit+                          { return integer(p, start); }
      digit+ (("." digit+)? exp | "." digit+)  { return real(p, start); }
      "." digit+                      { return starts_with_dot(p, start); }
      digit+ "." / [^.0-9]            { return ends_with_dot(p, start); }
      digit+ ("." digit+)? exp? letter (letter | digit)*
                                      { return letters_behind(p, start); }

      "<-"   { if (p->in_brackets) {
                 p->at--;
                 return token(p, T_LT, start);
               }
               return token(p, T_ARROW, start); }
      ";"    { return token(p, T_SEMI, start); }
      "("    { return token(p, T_LP, start); }
      ")"    { return token(p, T_RP, start); }
      "["    { return token(p, T_LK, start); }
      "]"    { return token(p, T_RK, start); }
      "{"    { return token(p, T_LB, start); }
      "}"    { return token(p, T_RB, start); }
      ","    { return token(p, T_COMMA, start); }
      ":"    { return token(p, T_COLON, start); }
      "."    { return token(p, T_DOT, start); }
      ".."   { return token(p, T_DOTDOT, start); }
      "?"    { return token(p, T_QUESTION, start); }
      "="    { return token(p, T_SET, start); }
      "+="   { return token(p, T_SETADD, start); }
      "+"    { return token(p, T_PLUS, start); }
      "-"    { return token(p, T_MINUS, start); }
      "*"    { return token(p, T_STAR, start); }
      "/"    { return token(p, T_SLASH, start); }
      "%"    { return token(p, T_PERCENT, start); }
      "@"    { return token(p, T_AT, start); }
      "<"    { return token(p, T_LT, start); }
      "<="   { return token(p, T_LE, start); }
      ">"    { return token(p, T_GT, start); }
      ">="   { return token(p, T_GE, start); }
      "=="   { return token(p, T_EQ, start); }
      "!="   { return token(p, T_NE, start); }

      "/*" | "&&" | "||" | "!" | "**" | "^" | "#"  { return spelt_otherwise(p, start); }

      [\xc2-\xdf] tail | [\xe0-\xef] tail{2} | [\xf0-\xf4] tail{3}  { return foreign(p, start); }
      *      { return stray(p, start); }
    */
  }
}
