// irlex.c - IR text to tokens. In: any bytes. Out: names (interned: equal names are one entry),
// numbers and marks; white space, line ends and `//` comments separate. Invariant: after the first
// error, which alone is reported, only the end follows, so that every loop of the parser ends.
#include "irread.h"

#include <string.h>

void sc_lex_fail(Lexer *l, DiagId id, Span at, const char *fmt, ...) {
  if (!l->failed) {
    va_list ap;
    va_start(ap, fmt);
    sc_report(l->sc, id, at, "%s", sc_vprintf(l->sc, fmt, ap));
    va_end(ap);
  }
  l->failed = true;
  l->tok = (Tok){.kind = TOK_END, .span = {l->text->len, l->text->len}};
}

bool sc_lex_is(const Lexer *l, const char *word) {
  return (l->tok.kind == TOK_NAME && !strcmp(l->tok.entry->name, word)) ||
         (l->tok.kind == TOK_MARK && !strcmp(l->tok.mark, word));
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}
static bool is_word(char c) { return is_letter(c) || is_digit(c); }

static u32 skip_space(const Text *t, u32 at) {
  for (;;) {
    const char *c = t->at + at;
    if (*c == ' ' || *c == '\t' || *c == '\n' || *c == '\r') at++;
    else if (c[0] == '/' && c[1] == '/')
      while (at < t->len && t->at[at] != '\n') at++;
    else return at;
  }
}

char sc_lex_peek(const Lexer *l) { return l->text->at[skip_space(l->text, l->at)]; }

static Entry **find_entry(Entry **table, u32 cap, const char *name, u32 n) {
  u32 h = 2166136261u;
  for (u32 i = 0; i < n; i++) h = (h ^ (u8)name[i]) * 16777619u;
  u32 i = h & (cap - 1);
  while (table[i] && (strncmp(table[i]->name, name, n) || table[i]->name[n]))
    i = (i + 1) & (cap - 1);
  return &table[i];
}

static Entry *intern(Lexer *l, const char *name, u32 n) {
  if (l->names * 2 >= l->cap) {
    u32 cap = l->cap ? l->cap * 2 : 128;
    Entry **wide = NEWS(l->sc, Entry *, cap);
    for (u32 i = 0; i < l->cap; i++) {
      Entry *e = l->table[i];
      if (e) *find_entry(wide, cap, e->name, (u32)strlen(e->name)) = e;
    }
    l->table = wide;
    l->cap = cap;
  }
  Entry **at = find_entry(l->table, l->cap, name, n);
  if (!*at) {
    *at = NEW(l->sc, Entry);
    (*at)->name = sc_printf(l->sc, "%.*s", (int)n, name);
    l->names++;
  }
  return *at;
}

Entry *sc_lex_entry(Lexer *l, const char *name) { return intern(l, name, (u32)strlen(name)); }

// Names may have dots inside: `copy.in`, `t.2`.
static u32 name_length(const char *at) {
  u32 n = 1;
  while (is_word(at[n]) || (at[n] == '.' && is_word(at[n + 1]))) n++;
  return n;
}

static void lex_number(Lexer *l, const char *at) {
  u32 n = 0;
  bool real = false, fits = true;
  u64 v = 0;
  for (; is_digit(at[n]); n++)
    fits &= !__builtin_mul_overflow(v, (u64)10, &v) &&
            !__builtin_add_overflow(v, (u64)(at[n] - '0'), &v);
  if (at[n] == '.' && is_digit(at[n + 1])) {
    real = true;
    for (n++; is_digit(at[n]);) n++;
  }
  u32 sign = at[n] == 'e' && (at[n + 1] == '+' || at[n + 1] == '-');
  if (at[n] == 'e' && is_digit(at[n + 1 + sign])) {
    real = true;
    for (n += 1 + sign; is_digit(at[n]);) n++;
  }
  l->at += n;
  l->tok.kind = real ? TOK_REAL : TOK_INT;
  l->tok.i = v;
  if (real) fits = sc_read_real(l->sc, at, n, &l->tok.f);
  if (!fits || is_word(at[n]))
    sc_lex_fail(l, D_I_TOKEN, (Span){l->at - n, l->at},
                "this is no number that can be represented");
}

void sc_lex_next(Lexer *l) {
  static const char *const twin[] = {"<=", "==", "!=", "<-", "+=", ".."};
  l->end = l->tok.span.hi;
  if (l->failed) return;
  u32 lo = l->at = skip_space(l->text, l->at);
  const char *at = l->text->at + lo;
  l->tok = (Tok){.kind = TOK_END, .span = {lo, lo}};
  if (lo >= l->text->len) return;
  if (is_letter(*at)) {
    u32 n = name_length(at);
    l->tok.kind = TOK_NAME;
    l->tok.entry = intern(l, at, n);
    l->at += n;
  } else if (is_digit(*at)) {
    lex_number(l, at);
  } else if (*at && strchr("()[]{},;:=+-*/%<@&#.!", *at)) {
    u32 n = 1;
    for (u32 i = 0; i < COUNT(twin); i++)
      if (at[0] == twin[i][0] && at[1] == twin[i][1]) n = 2;
    l->tok.kind = TOK_MARK;
    memcpy(l->tok.mark, at, n);
    l->at += n;
  } else {
    sc_lex_fail(l, D_I_TOKEN, (Span){lo, lo + 1}, "this character has no meaning in IR text");
  }
  if (!l->failed) l->tok.span.hi = l->at;
}

// ---- tokens as the parser asks for them

bool sc_rd_accept(Parser *p, const char *word) {
  if (!IS(word)) return false;
  NEXT;
  return true;
}

void sc_rd_expect(Parser *p, const char *word) {
  if (!sc_rd_accept(p, word)) FAIL(D_I_TOKEN, TOKEN.span, "expected '%s' here", word);
}

Tok sc_rd_name(Parser *p, const char *what) {
  Tok t = TOKEN;
  if (t.kind == TOK_NAME) NEXT;
  else FAIL(D_I_TOKEN, t.span, "expected %s here", what);
  return t;
}

// What the name means in the kernel that is being read.
Meaning *sc_rd_mean(Parser *p, Entry *e) {
  Meaning *m = &e->level[p->level];
  if (m->kernel != p->kernel)
    *m = (Meaning){p->kernel, 0, SC_NONE, SC_NONE, SC_NONE, SC_NONE, SC_NONE};
  return m;
}

void sc_rd_define(Parser *p, const Tok *t, u32 *meaning, u32 none, u32 value) {
  if (t->kind != TOK_NAME) return;
  if (*meaning != none) FAIL(D_I_NAME, t->span, "'%s' is defined twice", t->entry->name);
  *meaning = value;
}

void sc_rd_define_value(Parser *p, const Tok *t, Xid value) {
  if (t->kind == TOK_NAME) sc_rd_define(p, t, &sc_rd_mean(p, t->entry)->value, 0, value);
}

// The meaning at this offset of the name that stands here.
u32 sc_rd_known(Parser *p, size_t member, const char *what) {
  Tok t = sc_rd_name(p, what);
  if (t.kind != TOK_NAME) return SC_NONE;
  u32 got = *(u32 *)((char *)sc_rd_mean(p, t.entry) + member);
  if (got == SC_NONE) FAIL(D_I_NAME, t.span, "'%s' is not %s", t.entry->name, what);
  return got;
}

u64 sc_rd_int(Parser *p, u64 max) {
  Tok t = TOKEN;
  if (t.kind != TOK_INT || t.i > max) {
    FAIL(D_I_TOKEN, t.span, "expected a number from 0 to %llu here", (unsigned long long)max);
    return 0;
  }
  NEXT;
  return t.i;
}

Span sc_rd_since(const Parser *p, u32 lo) { return (Span){lo, p->lex.end > lo ? p->lex.end : lo}; }

Sym sc_rd_sym(const Tok *t) { return t->kind == TOK_NAME ? t->entry->name : "_"; }

// `, word number` and `, word`, by a table of irtext.h. `accepted`: the comma is read already.
void sc_rd_attr(Parser *p, const Attr *attr, u32 n, void *of) {
  for (u32 i = 0; i < n; i++) {
    if (!IS(attr[i].word)) continue;
    char *at = (char *)of + attr[i].at;
    NEXT;
    u64 v = attr[i].size ? sc_rd_int(p, UINT64_MAX >> (64 - 8 * attr[i].size)) : 1;
    if (attr[i].size == 0) *(bool *)at = true;
    else if (attr[i].size == 1) *(u8 *)at = (u8)v;
    else if (attr[i].size == 2) *(u16 *)at = (u16)v;
    else *(u32 *)at = (u32)v;
    return;
  }
  FAIL(D_I_TOKEN, TOKEN.span, "expected one of the members that can stand here");
}
