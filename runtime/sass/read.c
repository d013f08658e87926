// read.c - what nvdisasm writes (-c -gi), as instructions. In: its text, and the schedule's file.
// Out: functions with their instructions up to the last exit. Before an instruction at another line
// stand comments, `//## File "F", line N`: the innermost function's place, then where it was
// called, and so on.
#include "runtime/sass/sass.h"

#include <stdlib.h>
#include <string.h>

const SassKindInfo sc_sass_kind[SASS_KINDS] = {
#define SASS_KIND(id, name, part) {name, part},
#include "runtime/sass/sass.def"
#undef SASS_KIND
};

static const struct Begins {
  const char *begins;
  u8 kind;
} known[] = {
#define SASS_OP(begins, kind) {begins, SASS_##kind},
#include "runtime/sass/sass.def"
};

typedef struct Label {
  const char *name;
  u32 at;  // the instruction that follows it
} Label;

typedef struct Reader {
  Sc *sc;
  const char *source;  // the schedule's file, without folders
  SassText *out;
  SassFunction *function;  // that is being read
  VEC(Label) label;        // the labels of that function
  VEC(Label) branch;       // its branches: where they go, and where they stand
  u32 line;
  bool places;  // the line before was a place
} Reader;

static bool starts(const char *text, const char *with) {
  return !strncmp(text, with, strlen(with));
}

static SassKind kind_of(const char *op) {
  for (u32 i = 0; i < COUNT(known); i++)
    if (starts(op, known[i].begins)) return known[i].kind;
  return SASS_OTHER;
}

// What begins at `at`, up to one of these.
static char *word(Sc *sc, const char *at, const char *ends) {
  return sc_printf(sc, "%.*s", (int)strcspn(at, ends), at);
}

// The last number of an operand list, "gsb0, 0x1 ;" or "0x28 ;".
static u32 last_number(const char *text) {
  const char *at = NULL;
  for (const char *p = text; (p = strstr(p, "0x")); p += 2) at = p;
  return at ? (u32)strtoul(at, NULL, 16) : 0;
}

// `//## File "F", line N`, with or without ` inlined at "F", line N`: the first of a run that is in
// the schedule counts. The code cites the schedule as it was named when it was built, which may
// have been elsewhere.
static void read_place(Reader *r, const char *text) {
  const char *file = strchr(text, '"'), *end = file ? strstr(file, "\", line ") : NULL;
  if (!end) return;
  const char *base = file + 1;
  for (const char *p = base; p < end; p++)
    if (*p == '/') base = p + 1;
  bool ours =
      strlen(r->source) == (size_t)(end - base) && !strncmp(base, r->source, (size_t)(end - base));
  if (!r->places) r->line = 0;
  if (ours && !r->line) r->line = (u32)strtoul(end + strlen("\", line "), NULL, 10);
}

// "/*0e00*/ @!P0 BRA `(.L_x_7) ;"
static void read_instruction(Reader *r, const char *text) {
  const char *at = strstr(text, "*/");
  if (!at || !r->function) return;
  at += 2;
  at += strspn(at, " \t{");
  bool guarded = *at == '@';
  if (guarded) at += strcspn(at, " "), at += strspn(at, " ");
  Sass s = {.op = word(r->sc, at, " ;\n"), .line = r->line, .target = SC_NONE, .loop = SC_NONE};
  s.kind = (u8)kind_of(s.op);
  const char *rest = at + strlen(s.op), *label = strstr(rest, "`(");
  s.ends_group = s.kind == SASS_PRODUCT && strstr(rest, "gsb0");
  if (s.kind == SASS_WAIT_GROUP) s.number = last_number(rest);
  s.always = !guarded && (!strcmp(s.op, "EXIT") || (!strcmp(s.op, "BRA") && rest + 1 == label));
  if (s.kind == SASS_BRANCH && label) {
    Label to = {word(r->sc, label + 2, ")"), r->function->code.n};
    PUSH(r->sc, &r->branch, to);
  }
  PUSH(r->sc, &r->function->code, s);
}

static void end_function(Reader *r) {
  SassFunction *f = r->function;
  if (!f) return;
  for (u32 b = 0; b < r->branch.n; b++)
    for (u32 l = 0; l < r->label.n; l++)
      if (!strcmp(r->label.at[l].name, r->branch.at[b].name))
        f->code.at[r->branch.at[b].at].target = r->label.at[l].at;
  for (u32 i = 0, n = f->code.n; i < n; i++)
    if (f->code.at[i].kind == SASS_EXIT) f->code.n = i + 1;
  r->label.n = r->branch.n = 0;
  sc_order_sass(r->sc, f);
}

static void begin_function(Reader *r, const char *name) {
  end_function(r);
  SassFunction f = {.name = name};
  PUSH(r->sc, &r->out->function, f);
  r->function = &r->out->function.at[r->out->function.n - 1];
  r->line = 0;
}

static void read_line(Reader *r, const char *line) {
  static const char section[] = ".section\t.text.";
  const char *at = line + strspn(line, " \t");
  bool place = starts(at, "//##");
  if (place) read_place(r, at);
  else if (starts(at, section)) begin_function(r, word(r->sc, at + sizeof section - 1, ","));
  else if (starts(at, "/*")) read_instruction(r, at);
  else if (starts(line, ".L") && r->function) {
    Label l = {word(r->sc, line, ":"), r->function->code.n};
    PUSH(r->sc, &r->label, l);
  }
  r->places = place;
}

void sc_read_sass(Sc *sc, const char *text, const char *source, SassText *out) {
  const char *slash = strrchr(source, '/');
  Reader r = {.sc = sc, .source = slash ? slash + 1 : source, .out = out};
  *out = (SassText){0};
  for (const char *p = text; *p;) {
    size_t n = strcspn(p, "\n");
    read_line(&r, sc_printf(sc, "%.*s", (int)n, p));
    p += n + (p[n] == '\n');
  }
  end_function(&r);
}
