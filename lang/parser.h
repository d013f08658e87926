// parser.h - what the lexer, the grammar, its driver and the two printers share inside lang/.
#ifndef SC_PARSER_H
#define SC_PARSER_H

#include "lang/ast.h"

enum {
  T_EOF = 0,  // Lemon's end of input; the other T_… are in the generated parse.h
};

// Classes of tokens.def.
enum { WORD = 1, OPENS = 2, SOFT = 4, FIRST = 8, MORE = 16, EXPR = 32, BINARY = 64 };

typedef struct TokenInfo {
  const char *text;
  u8 class;
} TokenInfo;

typedef struct Token {
  int kind;  // T_…
  Span span;
  Sym name;    // words: interned; numbers: as written
  bool first;  // nothing but white space stands before it on its line
  union {
    i64 i;
    double f;
  } num;
} Token;

// A list while it is being built; `first` is what a node holds.
typedef struct List {
  Node *first, *last;
} List;

// What a role's head says after its count.
typedef struct Limits {
  Node *regs;
  u16 flags;
} Limits;

// An open ( [ or {. `block` once the grammar has taken a { as the start of statements: there the
// parser can recover; other braces hold lists.
typedef struct Open {
  int kind;
  Span span;
  bool block;
} Open;

// Everything between sc_parse's entry and return. No part of it is in the tree.
typedef struct Parser {
  Sc *sc;
  Ast *ast;
  // lex.re
  const char *at, *end;
  bool line_start;   // no token yet on this line
  bool in_brackets;  // the innermost open bracket is ( or [
  Keys words;        // interned, each with the kind of its token
  // parse.c, driven by drive.c
  void *lalr;
  Token last;  // given to the grammar last, T_NL excepted: its end is the end of what is reduced
  Token held;  // given back by the driver, kind -1 if none
  Token sep;  // a statement's end, held until the next token shows that it is none; kind -1 if none
  VEC(Open) open;
  Span suspect;  // a { whose } stands in another column, hi 0 if none
  bool fresh;    // nothing given since a newline or `;`
  bool starts;   // `last` is the first token of a statement
  bool stop;     // a limit was passed: no more tokens
} Parser;

// lex.re: the next token; T_NL and T_SEMI as written, comments into the tree's list.
Token sc_lex(Parser *p);

// drive.c
const TokenInfo *sc_token_info(int kind);
void sc_open_block(Parser *p);  // the { given last starts statements
bool sc_at_statement(const Parser *p);
void sc_too_deep(Parser *p, Span at);

// parse.y
extern const size_t sc_lalr_size;            // of the automaton, stack included
bool sc_accepts(const Parser *p, int kind);  // would the grammar take this token now?
void sc_settle(Parser *p);                   // reduces what needs no next token
void sc_fall_back(Parser *p);                // an `error` in place of the statement begun

// expect.c
void sc_unexpected(Parser *p, Token t);          // reports a token that the grammar does not take
const char *sc_token_words(Parser *p, Token t);  // how reports call it

// ast.c: constructors for the grammar. A node ends where the last token ended.
Sym sc_intern(Parser *p, const char *at, u32 n, int *kind);
Node *sc_make(Parser *p, Node node);
Node *sc_paren(Parser *p, Token open, Node *e);
Node *sc_async(Node *assign, Token async);
Node *sc_typed_equation(Parser *p, Node *name, Node *type, Node *value);
Node *sc_reduce(Parser *p, Token op, List index, Node *body);
Node *sc_minmax(Parser *p, Token op, List args);
List sc_append(List list, Node *n);
List sc_append_after(List list, Token sep, Node *n);
AstOp sc_token_op(Token t);
u16 sc_direction(Token t);
const char *sc_op_text(AstOp op);

#define MAKE(p, KIND, from, ...) \
  sc_make(p, (Node){.kind = ND_##KIND, .span = {(from), 0}, __VA_ARGS__})

#endif
