// randomtext.h - random texts of a kernel from every production of the grammar, with white space
// and comments wherever they may stand.
#ifndef RANDOMTEXT_H
#define RANDOMTEXT_H

#include <string.h>

#include "base/base.h"

typedef struct Random {
  Str s;
  u64 seed;
  u32 depth;
  u32 brackets;  // open ( and [: newlines are free
} Random;

static u32 below(Random *r, u32 n) {
  r->seed = r->seed * 6364136223846793005u + 1442695040888963407u;
  return (u32)(r->seed >> 33) % n;
}

static void newline(Random *r) {
  static const char *const comments[] = {
      "", "", " // c", "//c\n // own\n", "\n", "\n\n\n", "// \xe2\x82\xac\r\n//\n"};
  str_printf(&r->s, "%s\n", comments[below(r, COUNT(comments))]);
}

static void out(Random *r, const char *token) {
  static const char *const spaces[] = {" ", " ", "  ", "\t", " "};
  str_puts(&r->s, token);
  str_puts(&r->s, spaces[below(r, COUNT(spaces))]);
  char last = token[strlen(token) - 1];
  if (last == '(' || last == '[') r->brackets++;
  if (last == ')' || last == ']') r->brackets--;
  bool more = strchr(",:=+-*/%@<>?{", last) || (r->brackets && !below(r, 3));
  if (more && !below(r, 12)) newline(r);
}

static void expr(Random *r);

static const char *name(Random *r) {
  static const char *const names[] = {
      "a", "b", "x", "stages", "keep", "read", "partial", "long_name_of_a_thing", "T"};
  return names[below(r, COUNT(names))];
}

static void list(Random *r, void (*each)(Random *)) {
  for (u32 n = 1 + below(r, 3); n; n--) {
    each(r);
    if (n > 1) out(r, ",");
  }
}

static void position(Random *r) {
  expr(r);
  if (!below(r, 4)) out(r, "..");
}

static void place(Random *r) {
  out(r, name(r));
  if (!below(r, 5)) {
    out(r, ".");
    out(r, name(r));
  }
  if (!below(r, 4)) return;
  out(r, "[");
  list(r, position);
  out(r, "]");
}

static void atom(Random *r) {
  static const char *const literals[] = {"0",    "1",      "17",   "64",    "1.5",
                                         "1e-3", "2.50e4", "true", "false", "inf"};
  switch (r->depth > 6 ? 0 : below(r, 8)) {
    case 0:
    case 1: out(r, literals[below(r, COUNT(literals))]); break;
    case 2:
      out(r, "(");
      expr(r);
      out(r, ")");
      break;
    case 3:
      out(r, name(r));
      out(r, "(");
      list(r, expr);
      out(r, ")");
      break;
    case 4:
      out(r, below(r, 2) ? "max" : "min");
      out(r, "(");
      expr(r);
      out(r, ",");
      expr(r);
      out(r, ")");
      break;
    default: r->depth > 4 ? out(r, name(r)) : place(r);
  }
}

static void product(Random *r) {
  static const char *const ops[] = {"*", "/", "%", "@", "*"};
  while (!below(r, 8)) out(r, "-");
  atom(r);
  while (!below(r, 3)) {
    out(r, ops[below(r, COUNT(ops))]);
    if (!below(r, 6)) out(r, "-");
    atom(r);
  }
  if (below(r, 8)) return;
  out(r, "*");
  out(r, below(r, 2) ? "sum" : "max");
  out(r, "(");
  out(r, "j");
  out(r, ")");
  atom(r);
}

static void sum(Random *r) {
  product(r);
  while (!below(r, 3)) {
    out(r, below(r, 2) ? "+" : "-");
    product(r);
  }
}

static void condition(Random *r) {
  static const char *const ops[] = {"<", "<=", ">", ">=", "==", "!="};
  if (!below(r, 4)) out(r, "not");
  sum(r);
  if (below(r, 2)) {
    out(r, ops[below(r, COUNT(ops))]);
    sum(r);
  }
}

static void expr(Random *r) {
  r->depth++;
  if (r->depth > 5) {
    atom(r);
  } else if (below(r, 3)) {
    sum(r);
  } else {
    condition(r);
    if (!below(r, 2)) {
      out(r, below(r, 2) ? "and" : "or");
      condition(r);
    }
    if (!below(r, 3)) {
      out(r, "?");
      expr(r);
      out(r, ":");
      expr(r);
    }
  }
  r->depth--;
}

static void plain_name(Random *r) { out(r, name(r)); }

static void type(Random *r) {
  out(r, name(r));
  if (!below(r, 5)) return;
  out(r, "[");
  list(r, expr);
  out(r, "]");
}

static void tile(Random *r) {
  list(r, plain_name);
  out(r, ":");
  type(r);
  if (!below(r, 3)) {
    out(r, "=");
    expr(r);
  }
}

static void part(Random *r) {
  list(r, plain_name);
  out(r, ":");
  type(r);
}

static void ring(Random *r) {
  list(r, plain_name);
  out(r, ":");
  if (below(r, 2)) {
    type(r);
  } else {
    out(r, "{");
    list(r, part);
    if (!below(r, 3)) newline(r);
    out(r, "}");
  }
  if (below(r, 2)) {
    out(r, "*");
    expr(r);
  }
}

static void set(Random *r) {
  out(r, "{");
  list(r, expr);
  if (!below(r, 3)) newline(r);
  out(r, "}");
}

static void param(Random *r) {
  out(r, name(r));
  out(r, "=");
  expr(r);
  if (below(r, 2)) return;
  out(r, "in");
  set(r);
}

static void fact(Random *r) {
  out(r, name(r));
  switch (below(r, 3)) {
    case 0:
      out(r, "=");
      expr(r);
      break;
    case 1:
      out(r, "in");
      set(r);
      break;
    default:
      out(r, "=");
      out(r, "[");
      list(r, expr);
      out(r, "]");
  }
}

static void bind(Random *r) {
  out(r, name(r));
  if (below(r, 2)) {
    out(r, "[");
    list(r, plain_name);
    out(r, "]");
  }
  out(r, "=");
  expr(r);
}

static void block(Random *r, void (*each)(Random *)) {
  r->depth++;
  out(r, "{");
  for (u32 n = below(r, 4); n; n--) {
    each(r);
    if (n > 1 && !below(r, 3)) out(r, ";");
    else if (n > 1 || below(r, 2)) newline(r);
  }
  str_puts(&r->s, "} ");
  r->depth--;
}

static void local(Random *r) {
  switch (below(r, 3)) {
    case 0:
      out(r, "ring");
      list(r, ring);
      break;
    case 1:
      out(r, "let");
      list(r, bind);
      break;
    default:
      out(r, "def f (");
      list(r, plain_name);
      out(r, ")");
      out(r, "=");
      expr(r);
  }
}

static void verb(Random *r) {
  static const char *const verbs[] = {"acquire", "commit", "wait", "release"};
  u32 which = below(r, COUNT(verbs));
  out(r, verbs[which]);
  list(r, plain_name);
  if (which == 2 && !below(r, 2)) out(r, "read");
  if (which == 2 && !below(r, 2)) {
    out(r, "keep");
    expr(r);
  }
}

static void assign(Random *r) {
  if (!below(r, 3)) out(r, "async");
  place(r);
  out(r, below(r, 3) ? "=" : "+=");
  expr(r);
  if (!below(r, 4)) {
    out(r, "if");
    expr(r);
  }
}

static void statement(Random *r);

static void branch(Random *r) {
  out(r, "if");
  expr(r);
  block(r, statement);
  if (!below(r, 4)) newline(r);
  if (below(r, 2)) return;
  out(r, "else");
  if (r->depth < 4 && !below(r, 2)) branch(r);
  else block(r, statement);
}

static void statement(Random *r) {
  switch (below(r, r->depth > 4 ? 6 : 10)) {
    case 0: local(r); break;
    case 1: verb(r); break;
    case 2:
    case 3: assign(r); break;
    case 4:
      place(r);
      out(r, "<-");
      place(r);
      if (!below(r, 3)) out(r, "multicast");
      break;
    case 5:
      out(r, name(r));
      out(r, "(");
      if (below(r, 2)) list(r, expr);
      out(r, ")");
      break;
    case 6:
      out(r, "reg");
      list(r, tile);
      if (!below(r, 3)) out(r, "partial");
      break;
    case 7: branch(r); break;
    case 8:
      out(r, "vote any (");
      expr(r);
      out(r, ")");
      block(r, statement);
      break;
    default:
      out(r, "for t in");
      if (below(r, 2)) out(r, "reversed");
      expr(r);
      out(r, "..");
      expr(r);
      block(r, statement);
  }
}

static void equation(Random *r) {
  if (below(r, 4)) {
    place(r);
  } else {
    plain_name(r);
    out(r, ":");
    type(r);
  }
  out(r, "=");
  expr(r);
}

static void axis(Random *r) {
  if (!below(r, 3)) out(r, "reversed");
  out(r, "x :");
  expr(r);
  if (!below(r, 3)) {
    out(r, "by");
    expr(r);
  }
}

static void item(Random *r) {
  static const char *const directions[] = {"in", "out", "inout"};
  switch (below(r, 9)) {
    case 0:
      out(r, "param");
      list(r, param);
      break;
    case 1:
      out(r, directions[below(r, 3)]);
      list(r, tile);
      break;
    case 2:
      out(r, "require");
      expr(r);
      break;
    case 3:
      out(r, "spec");
      block(r, equation);
      break;
    case 4:
      out(r, "case c {");
      list(r, fact);
      out(r, "}");
      break;
    case 5:
      out(r, "grid (");
      list(r, axis);
      out(r, ")");
      if (below(r, 2)) out(r, "persistent");
      break;
    case 6:
      out(r, "turn t :");
      list(r, plain_name);
      if (below(r, 2)) {
        out(r, "if");
        expr(r);
      }
      break;
    case 7: local(r); break;
    default:
      out(r, below(r, 2) ? "role r :" : "role r[w] :");
      expr(r);
      out(r, below(r, 2) ? "warps" : "warpgroup");
      if (below(r, 2)) out(r, ", one tile each");
      if (below(r, 2)) out(r, ","), expr(r), out(r, "regs");
      block(r, statement);
  }
}

#endif
