// cuda_layout.c - how emitted code is laid out. In: lines without indentation, one statement each; those that open a
// block end in '{', those that close one begin with '}'. Out: the same code as a person would set it: indented, no
// braces that nothing needs, no line longer than WIDTH. Where lines are broken is all that depends on their length.
#include "cuda.h"

#include <string.h>

enum { WIDTH = 120, STEP = 2, CONTINUED = 4 };

typedef struct Lines {
  Str *out;
  VEC(char *) line;
} Lines;

static bool starts(const char *line, const char *with) { return !strncmp(line, with, strlen(with)); }

// Directives and comments may hold anything.
static bool is_code(const char *line) { return *line != '#' && !starts(line, "//"); }

static bool opens(const char *line) {
  size_t n = strlen(line);
  return is_code(line) && n && line[n - 1] == '{';
}

static bool declares(const char *line) {
  static const char *const types[] = {"bool ", "const ", "float ", "int ", "u16 ", "u32 "};
  for (u32 i = 0; i < COUNT(types); i++) {
    if (starts(line, types[i])) return true;
  }
  return false;
}

// The line that closes the block which line `at` opens.
static u32 end_of(const Lines *y, u32 at) {
  u32 depth = 1;
  for (u32 i = at + 1;; i++) {
    if (*y->line.at[i] == '}' && --depth == 0) return i;
    depth += opens(y->line.at[i]);
  }
}

// ---- long lines

// How loosely what stands before `p` holds together with what follows; 0: the line is not broken there.
static u32 looseness(const char *p) {
  if (p[-1] != ' ') return 0;
  switch (p[-2]) {
    case ';': return 8;
    case ',': return 7;
    case '=': return p[-3] == ' ' ? 6 : 0;
    case '|': return 4;
    case '&': return p[-3] == '&' ? 3 : 0;
    case '+': case '-': return 2;
    case '*': return 1;
    default: return starts(p, "? ") || starts(p, ": ") ? 5 : 0;
  }
}

// Brackets that are open at a place of a line that may be broken before it, each with the column behind it.
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

// Where to break a line of code that is to end before WIDTH: in as few brackets as possible, and there as late as
// possible; after a '=' only if that does for all that follows. 0: nowhere.
static size_t break_at(const char *code, u32 indent, Brackets *open) {
  Brackets now = *open;
  size_t best = 0;
  u32 cost = ~0u;
  for (size_t i = 1; indent + i <= WIDTH && code[i]; i++) {
    follow(&now, code, i, indent);
    u32 loose = i > 2 ? looseness(code + i) : 0, here = 9 * (now.n + 1) - loose;
    if (!loose || here > cost || (code[i - 2] == '=' && indent + CONTINUED + strlen(code + i) > WIDTH)) continue;
    best = i;
    cost = here;
    *open = now;
  }
  return best;
}

static void put(Lines *y, u32 indent, const char *text, size_t n) {
  while (n && text[n - 1] == ' ') n--;
  str_printf(y->out, "%*s%.*s\n", n ? (int)indent : 0, "", (int)n, text);
}

static void put_code(Lines *y, u32 first, const char *code, size_t n) {
  Brackets open = {0};
  u32 indent = first;
  for (size_t at; n > WIDTH - indent && (at = break_at(code, indent, &open));) {
    put(y, indent, code, at);
    code += at;
    n -= at;
    indent = open.n && open.column[open.n - 1] <= 2 * WIDTH / 3 ? open.column[open.n - 1] : first + CONTINUED;
  }
  put(y, indent, code, n);
}

// A comment, or a directive with one: words up to the width, the rest below.
static void put_comment(Lines *y, u32 indent, const char *text) {
  size_t n = strlen(text), at = n;
  if (n > WIDTH - indent) {
    for (at = WIDTH - indent; at > WIDTH / 2 && text[at] != ' ';) at--;
  }
  put(y, indent, text, at);
  if (at < n) put_comment(y, indent, sc_printf(y->out->sc, "//   %s", text + at + strspn(text + at, " ")));
}

static void put_line(Lines *y, u32 depth, const char *line) {
  u32 indent = STEP * depth;
  size_t n = strlen(line);
  const char *comment = strstr(line, "  // ");
  if (!is_code(line)) {
    put_comment(y, indent, line);
  } else if (n > WIDTH - indent && comment) {
    put_comment(y, indent, comment + 2);
    put_code(y, indent, line, (size_t)(comment - line));
  } else {
    put_code(y, indent, line, n);
  }
}

// ---- blocks

// Braces without a header are needed around declarations, unless they are `alone` in another block.
static bool needs_braces(const Lines *y, u32 open, u32 close, bool alone) {
  for (u32 i = open + 1; i < close && !alone; i++) {
    if (declares(y->line.at[i])) return true;
    if (opens(y->line.at[i])) i = end_of(y, i);
  }
  return false;
}

// "for (…) {" or "if (…) {" around one statement: no braces, on one line where there is room.
static bool put_unbraced(Lines *y, u32 open, u32 close, u32 depth) {
  const char *head = y->line.at[open], *body = y->line.at[open + 1];
  int n = (int)strlen(head) - 2;
  if (close != open + 2 || strcmp(y->line.at[close], "}") || !is_code(body) || strstr(body, "  // ")) return false;
  if (!starts(head, "for (") && !starts(head, "if (")) return false;
  if (STEP * depth + (u32)n + 1 + strlen(body) <= WIDTH) {
    put_line(y, depth, sc_printf(y->out->sc, "%.*s %s", n, head, body));
  } else {
    put_line(y, depth, sc_printf(y->out->sc, "%.*s", n, head));
    put_line(y, depth + 1, body);
  }
  return true;
}

static void put_lines(Lines *y, u32 from, u32 to, u32 depth) {
  for (u32 i = from; i < to; i++) {
    if (!opens(y->line.at[i])) {
      put_line(y, depth, y->line.at[i]);
      continue;
    }
    u32 end = end_of(y, i);
    if (!strcmp(y->line.at[i], "{") && !needs_braces(y, i, end, i == from && end + 1 == to)) {
      put_lines(y, i + 1, end, depth);
    } else if (!put_unbraced(y, i, end, depth)) {
      put_line(y, depth, y->line.at[i]);
      put_lines(y, i + 1, end, depth + 1);
      if (opens(y->line.at[end])) end--;  // "} else {"
      else put_line(y, depth, y->line.at[end]);
    }
    i = end;
  }
}

void cu_put_code(Str *out, const char *code, u32 depth) {
  Lines y = {.out = out};
  for (const char *p = code; *p; p += strcspn(p, "\n"), p += *p != 0) {
    PUSH(out->sc, &y.line, sc_printf(out->sc, "%.*s", (int)strcspn(p, "\n"), p));
  }
  put_lines(&y, 0, y.line.n, depth);
}
