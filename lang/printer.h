// printer.h - what the two halves of the formatter share: print.c, for declarations and statements,
// and print_expr.c, for lines and the expressions on them.
#ifndef SC_PRINTER_H
#define SC_PRINTER_H

#include "lang/lines.h"
#include "lang/parser.h"

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

// ---- print_expr.c

void pr_put(Printer *p, const char *text);
bool pr_newline_in(const Printer *p, u32 lo, u32 hi);
void pr_mark(Printer *p, Run run);

// Begins the line of what stands at `at` in the source, after the comments before it.
void pr_next_line(Printer *p, u32 at, u32 comment_indent, u32 indent);

// Between two parts of a statement: the author's line break, or `text`.
void pr_gap(Printer *p, u32 lo, u32 hi, const char *text);

// Between an element of a list and the next, if there is one.
void pr_comma(Printer *p, const Node *n, const char *space);

void pr_expr(Printer *p, const Node *n, Air air);
void pr_comma_list(Printer *p, const Node *list, const char *space, Air air);
void pr_bracket_list(Printer *p, const Node *list, const char *space);
void pr_positions(Printer *p, const Node *list);

#endif
