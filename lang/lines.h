// lines.h - the formatter's lines between print_expr.c, which writes them, and lines.c, which
// aligns them.
#ifndef SC_LINES_H
#define SC_LINES_H

#include "base/base.h"

#define SC_MARK \
  "\v"  // where a column may begin; cannot occur in a text that was read without error

// Lines that share columns when they stand in one paragraph; LET lines only when nothing is between
// them.
typedef enum Run {
  RUN_NONE,
  RUN_PARAM,
  RUN_TENSOR,
  RUN_CASE,
  RUN_RING,
  RUN_REG,
  RUN_ASSIGN,
  RUN_ASYNC,
  RUN_LET
} Run;

typedef struct Line {
  Str text;  // empty: a comment on its own
  u32 indent;
  Run run;
  bool blank;    // an empty line stands before it
  bool goes_on;  // with the statement of the line before it
  Span comment;  // hi 0: none
} Line;

typedef VEC(Line) Lines;

// Aligns the columns of runs and of comments, and writes all lines; `text` is what comments refer
// to.
void sc_put_lines(Str *out, const Text *text, Lines *lines);

#endif
