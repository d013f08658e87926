// ast.h - the syntax tree of a .sched file: one node type, kinds in ast.def. Immutable after
// parsing, so many threads may instantiate kernels from one tree.
#ifndef SC_AST_H
#define SC_AST_H

#include "base/base.h"

typedef enum NodeKind {
#define ND(kind, text) ND_##kind,
#include "lang/ast.def"
#undef ND
  ND_COUNT
} NodeKind;

typedef enum AstOp {
  AST_NONE,
  AST_NEG,
  AST_NOT,
  AST_ADD,
  AST_SUB,
  AST_MUL,
  AST_DIV,
  AST_MOD,
  AST_MATMUL,
  AST_LT,
  AST_LE,
  AST_GT,
  AST_GE,
  AST_EQ,
  AST_NE,
  AST_AND,
  AST_OR,
  AST_SET,
  AST_SETADD,  // ASSIGN: `=`, `+=`
  AST_SUM,
  AST_MAX,
  AST_MIN,  // REDUCE
  AST_WARP,
  AST_WARPGROUP  // ROLE
} AstOp;

enum {
  F_IN = 1,
  F_OUT = 2,
  F_PARTIAL = 4,
  F_PERSISTENT = 8,
  F_DYNAMIC = 16,
  F_REVERSED = 32,
  F_ONE_TILE = 64,
  F_MULTICAST = 128,
  F_READ = 256,
  F_ASYNC = 512,
  F_PAREN = 1024,  // an expression written in parentheses (kept for the printer)
  F_GIVEN = 4096,
  F_RISING = 8192,
  F_TOGETHER = 16384,
  F_SAME_LINE = 2048  // the statement stands on its predecessor's line, after `;` (for the printer)
};

typedef struct Node {
  u8 kind;    // NodeKind
  u8 op;      // AstOp
  u16 flags;  // F_*
  Span span;
  Span name_span;  // where `name` stands, if it does
  Sym name, sym2;
  struct Node *a, *b, *c, *d, *next;
  union {
    i64 i;
    double f;
  } num;
} Node;

// A comment, for the printer: `own` when nothing but white space stands before it on its line.
typedef struct Comment {
  Span span;
  bool own;
} Comment;

// A parsed file. Owned by the Sc that parsed it.
typedef struct Ast {
  const Text *text;
  Node *file;  // ND_FILE
  VEC(Comment) comments;
  VEC(const Node *) unit;   // kernels and sequences, by name; of one name, in the order of the file
  VEC(const Node *) again;  // those that have an earlier one's name, in the order of the file
} Ast;

// drive.c: never NULL. The tree is complete when sc->errors is 0. Nesting deeper than SC_MAX_NEST
// is an error.
Ast *sc_parse(Sc *sc, const Text *text);
const Node *sc_unit(const Ast *ast, const char *name);  // the first of that name, or NULL
void sc_print_ast(Str *out, const Ast *ast);            // --emit=ast: an indented s-expression
// the formatter: canonical text, comments kept; idempotent
void sc_print_source(Str *out, const Ast *ast);

#endif
