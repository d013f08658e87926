// print.c - prints emitted code as a person would lay it out: indented, without braces that nothing
// needs, and with long lines broken. In: a block of statements. Out: text. No line is longer than
// WIDTH if there is a place to break it; nothing else depends on lengths. Called by frame.c and
// grid.c.
#include "compiler/emit/emit.h"

#include <string.h>

enum { WIDTH = 120, STEP = 2, CONTINUED = 4 };

// ---- long lines

// How good it is to break the line before `p`, by the character before it; 0: not at all.
static u32 break_rank(const char *p) {
  if (p[-1] != ' ') return 0;
  switch (p[-2]) {
    case ';': return 8;
    case ',': return 7;
    case '=': return p[-3] == ' ' ? 6 : 0;
    case '|': return 4;
    case '&': return p[-3] == '&' ? 3 : 0;
    case '+':
    case '-': return 2;
    case '*': return 1;
    default: return (*p == '?' || *p == ':') && p[1] == ' ' ? 5 : 0;
  }
}

// The brackets that are open at some place of a line, each with the column after it.
typedef struct Brackets {
  u32 n, column[SC_MAX_NEST];
} Brackets;

// Follows the byte before the i-th. (A '<' next to a name or number is a template's.)
static void follow(Brackets *open, const char *code, size_t i, u32 indent) {
  char last = code[i - 1], before = i > 1 ? code[i - 2] : ' ';
  if (strchr("([{", last) || (last == '<' && before != ' ' && before != '<')) {
    if (open->n < SC_MAX_NEST) open->column[open->n++] = indent + (u32)i;
  } else if (strchr(")]}", last) || (last == '>' && before != ' ' && before != '>')) {
    open->n -= open->n > 0;
  }
}

// Where to break a line of code so that it ends before WIDTH: inside as few brackets as possible,
// and there as late as possible; after a '=' only if all that follows fits on one line then. 0:
// nowhere.
static size_t break_at(const char *code, u32 indent, Brackets *open) {
  Brackets now = *open;
  size_t best = 0;
  u32 cost = ~0u;
  for (size_t i = 1; indent + i <= WIDTH && code[i]; i++) {
    follow(&now, code, i, indent);
    u32 rank = i > 2 ? break_rank(code + i) : 0, here = 9 * (now.n + 1) - rank;
    if (!rank || here > cost ||
        (code[i - 2] == '=' && indent + CONTINUED + strlen(code + i) > WIDTH))
      continue;
    best = i;
    cost = here;
    *open = now;
  }
  return best;
}

static void put(Str *out, u32 indent, const char *text, size_t n) {
  while (n && text[n - 1] == ' ') n--;
  str_printf(out, "%*s%.*s\n", n ? (int)indent : 0, "", (int)n, text);
}

static void put_code(Str *out, u32 first, const char *code) {
  Brackets open = {0};
  u32 indent = first;
  size_t n = strlen(code);
  for (size_t at; n > WIDTH - indent && (at = break_at(code, indent, &open));) {
    put(out, indent, code, at);
    code += at;
    n -= at;
    bool inside = open.n && open.column[open.n - 1] <= 2 * WIDTH / 3;
    indent = inside ? open.column[open.n - 1] : first + CONTINUED;
  }
  put(out, indent, code, n);
}

void cu_put_remark(Str *out, u32 indent, const char *text) {
  const char *more = "";  // what a line begins with after the first
  size_t n = strlen(text), width = indent < WIDTH / 2 ? WIDTH - indent : WIDTH / 2;
  do {
    size_t room = width - strlen(more), least = width / 2 - strlen(more), at = n;
    if (n > room) {
      for (at = room; at > least && text[at] != ' ';) at--;
    }
    str_printf(out, "%*s%s", n ? (int)indent : 0, "", more);
    put(out, 0, text, at);
    at += strspn(text + at, " ");
    text += at;
    n -= at;
    more = "//   ";
  } while (n);
}

// Prints a line with its comment: at the end, or on a line before if there is no room.
static void put_line(Str *out, u32 indent, const Stmt *s) {
  const char *line = s->note ? sc_printf(out->sc, "%s  // %s", s->text, s->note) : s->text;
  if (s->note && strlen(line) > WIDTH - indent) {
    cu_put_remark(out, indent, sc_printf(out->sc, "// %s", s->note));
    line = s->text;
  }
  put_code(out, indent, line);
}

// ---- blocks

// Does a block without a header need braces? It does around variables, unless it is all that the
// block around it holds.
static bool needs_braces(const Stmt *block, bool alone) {
  bool variables = false;
  for (const Stmt *s = block->first; s; s = s->next) variables |= s->kind == ST_VARIABLE;
  return variables && !alone;
}

// Prints a loop or condition around one statement without braces, on one line if there is room.
// False: it needs braces.
static bool put_unbraced(Str *out, u32 depth, const Stmt *block) {
  const Stmt *body = block->first;
  bool one = body && !body->next && (body->kind == ST_CODE || body->kind == ST_VARIABLE);
  if (!one || body->note || block->otherwise || block->tail || !*block->text) return false;
  const char *line = sc_printf(out->sc, "%s %s", block->text, body->text);
  if (STEP * depth + strlen(line) <= WIDTH) {
    put_code(out, STEP * depth, line);
  } else {
    put_code(out, STEP * depth, block->text);
    put_code(out, STEP * (depth + 1), body->text);
  }
  return true;
}

static void put_block(Str *out, u32 depth, const Stmt *block, bool alone) {
  if (!*block->text && !needs_braces(block, alone)) {
    cu_put_block(out, depth, block);
    return;
  }
  if (put_unbraced(out, depth, block)) return;
  for (const Stmt *b = block; b; b = b->otherwise) {
    const char *before = b == block ? "" : "} ", *space = *b->text ? " " : "";
    put_code(out, STEP * depth, sc_printf(out->sc, "%s%s%s{", before, b->text, space));
    cu_put_block(out, depth + 1, b);
  }
  put_code(out, STEP * depth, block->tail ? sc_printf(out->sc, "}%s", block->tail) : "}");
}

void cu_put_block(Str *out, u32 depth, const Stmt *block) {
  for (const Stmt *s = block->first; s; s = s->next) {
    if (s->kind == ST_BLOCK) put_block(out, depth, s, s == block->first && !s->next);
    else if (s->kind == ST_REMARK) cu_put_remark(out, STEP * depth, s->text);
    else put_line(out, STEP * depth, s);
  }
}
