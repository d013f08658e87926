// irread.h - reading IR text: tokens (irlex.c), expressions and operations (irbody.c), declarations
// and kernels (irparse.c).
#ifndef SC_IRREAD_H
#define SC_IRREAD_H

#include "irtext.h"

// What a name means, in each of the text's name spaces; 0 and SC_NONE: nothing. A kernel inside a
// sequence has meanings of its own (level 1), which end with it.
typedef struct Meaning {
  u32 kernel;  // the kernel that they belong to
  Xid value;   // dimension, argument, axis, loop, index variable, let
  u32 buf, ring, turn, role, param;
} Meaning;

typedef struct Entry {
  const char *name;
  Meaning level[2];
} Entry;

typedef enum TokKind { TOK_END, TOK_NAME, TOK_INT, TOK_REAL, TOK_MARK } TokKind;

typedef struct Tok {
  u8 kind;
  char mark[3];  // MARK: the characters
  Span span;
  Entry *entry;  // NAME
  u64 i;         // INT
  double f;      // REAL
} Tok;

typedef struct Lexer {
  Sc *sc;
  const Text *text;
  u32 at;
  Tok tok;        // the current token
  u32 end;        // where the one before it ended
  bool failed;    // an error is reported: only TOK_END follows
  Entry **table;  // open addressing
  u32 cap, names;
} Lexer;

Entry *sc_lex_entry(Lexer *l, const char *name);  // of a name that may not stand in the text
void sc_lex_next(Lexer *l);
char sc_lex_peek(const Lexer *l);  // the first character after the current token, NUL at the end
void sc_lex_fail(Lexer *l, DiagId id, Span at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
bool sc_lex_is(const Lexer *l, const char *word);  // the current token is this name or mark

// A role named before it is declared: by a ring or a turn.
typedef struct Later {
  Tok at;
  u32 what, of;  // how irparse.c will resolve it; the ring or turn
} Later;

typedef struct Scope {
  Entry *entry;
  Xid before;
} Scope;

typedef struct Block {
  u32 ins;
  Scope loop;  // entry NULL: no loop
} Block;

typedef struct Parser {
  Lexer lex;
  Sc *sc;
  Kernel *k;
  u32 level, kernels, kernel;  // 1 inside a launch; kernels so far; this one
  u32 nest;
  bool in_spec;
  u32 role;         // SC_NONE outside
  VEC(Scope) scope; // names of the map that is being read
  VEC(Later) later;
  VEC(Block) block;
} Parser;

bool sc_rd_accept(Parser *p, const char *word);  // takes this name or mark, if it stands here
void sc_rd_expect(Parser *p, const char *word);
Tok sc_rd_name(Parser *p, const char *what);     // any name; `what` is what the report calls it
Sym sc_rd_sym(const Tok *t);
Meaning *sc_rd_mean(Parser *p, Entry *e);        // in the kernel that is being read
void sc_rd_define(Parser *p, const Tok *t, u32 *meaning, u32 none, u32 value);
void sc_rd_define_value(Parser *p, const Tok *t, Xid value);
// What a name stands for: the meaning at this offset; SC_NONE: reported.
u32 sc_rd_known(Parser *p, size_t member, const char *what);
u64 sc_rd_int(Parser *p, u64 max);
Span sc_rd_since(const Parser *p, u32 lo);       // from lo to the end of what is read
// One `word number` or `word` of a table.
void sc_rd_attr(Parser *p, const Attr *attr, u32 n, void *of);

Xid sc_rd_expr(Parser *p, u32 bind);  // operators that bind at least as tightly as `bind`
Xid sc_rd_typed(Parser *p, Ty ty, const char *what);
Xid sc_rd_prefix(Parser *p);                     // what stands between operators
u32 sc_rd_map(Parser *p, Op op);
void sc_rd_ins(Parser *p);                       // an operation into the role's code
void sc_rd_close(Parser *p);                     // `}` or `} else {` of the innermost block

#define TOKEN (p->lex.tok)
#define NEXT sc_lex_next(&p->lex)
#define IS(word) sc_lex_is(&p->lex, word)
#define FAIL(id, span, ...) sc_lex_fail(&p->lex, id, span, __VA_ARGS__)
#define ENDED (TOKEN.kind == TOK_END)

#define DEFINE(t, member, value) \
  if ((t).kind == TOK_NAME) sc_rd_define(p, &(t), &sc_rd_mean(p, (t).entry)->member, SC_NONE, value)
#define KNOWN(member, what) sc_rd_known(p, offsetof(Meaning, member), what)
#define PARSE_ATTR(table, of) sc_rd_attr(p, table, COUNT(table), of)

#endif
