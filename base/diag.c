// diag.c - diagnostics: a list in the order of report, and the form in which people read them.
#include "base/base.h"

#include <string.h>

static const struct {
  const char *code, *summary, *explain;
  schedc_severity severity;
} table[D_COUNT] = {
#define DIAG(id, code, severity, summary, explain) {code, summary, explain, SCHEDC_##severity},
#include "base/diag.def"
#undef DIAG
};

const char *sc_diag_code(DiagId id) { return table[id].code; }
const char *sc_diag_summary(DiagId id) { return table[id].summary; }
const char *sc_diag_explain(DiagId id) { return table[id].explain; }

// What would race or hang, but can be built.
static bool may_be_forced(DiagId id) {
  return id == D_R3_RELEASE || id == D_R5_AGREE || id == D_R6_DEADLOCK || id == D_R6_DEALT ||
         id == D_R6_KEY || id == D_R10_RACE || id == D_I_PLAN || id == D_G_PTX;
}

Diag *sc_vreport(Sc *sc, DiagId id, Span at, const char *fmt, va_list ap) {
  Diag report = {.id = id, .severity = table[id].severity, .at = at};
  if (sc->unverified && may_be_forced(id)) report.severity = SCHEDC_WARNING;
  if (report.severity == SCHEDC_ERROR && sc->until_error && !sc->trying) {
    sc->first = id;
    sc_unwind(sc, SCHEDC_EINPUT);
  }
  if (report.severity == SCHEDC_ERROR && sc->errors++ >= SC_MAX_ERRORS) {
    sc->dropped = report;
    return &sc->dropped;
  }
  Diag *d = NEW(sc, Diag);
  *d = report;
  d->text = sc_vprintf(sc, fmt, ap);
  *sc->diag_end = d;
  sc->diag_end = &d->next;
  return d;
}

Diag *sc_report(Sc *sc, DiagId id, Span at, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  Diag *d = sc_vreport(sc, id, at, fmt, ap);
  va_end(ap);
  return d;
}

const Diag *sc_unsay(Sc *sc, Reports before) {
  const Diag *first = *before.end;
  sc->trying--;
  while (first && first->severity != SCHEDC_ERROR) first = first->next;
  *before.end = NULL;
  sc->diag_end = before.end;
  sc->errors = before.errors;
  return first;
}

void sc_demote(Sc *sc, Diag *d) {
  if (d->severity == SCHEDC_ERROR) sc->errors--;
  d->severity = SCHEDC_WARNING;
}

void sc_note(Sc *sc, Diag *d, Span at, const char *fmt, ...) {
  if (d == &sc->dropped) return;
  Note *n = NEW(sc, Note), **end = &d->notes;
  va_list ap;
  va_start(ap, fmt);
  n->text = sc_vprintf(sc, fmt, ap);
  va_end(ap);
  n->at = at;
  while (*end) end = &(*end)->next;
  *end = n;
}

void sc_help(Sc *sc, Diag *d, const char *fmt, ...) {
  if (d == &sc->dropped) return;
  va_list ap;
  va_start(ap, fmt);
  d->help = sc_vprintf(sc, fmt, ap);
  va_end(ap);
}

// ---- the text form

enum {
  LINE_SHOWN = 160,
  LINE_BEFORE = 60
};  // bytes of a long line that are shown, and before its first mark

// A range to underline, on one line of the source.
typedef struct Mark {
  u32 line;    // from 1
  u32 lo, hi;  // offsets; hi is on the same line
  char with;   // '^' the report's own place, '-' a note
  const char *label;
} Mark;

static Mark mark_of(const Text *text, Span at, char with, const char *label) {
  Mark m = {sc_line_col(text, at.lo).line, at.lo, at.hi, with, label};
  u32 end = text->line[m.line - 1];
  while (end < text->len && text->at[end] != '\n') end++;
  if (m.hi > end) m.hi = end;  // a range of several lines: its first
  if (m.hi <= m.lo) m.hi = m.lo + 1;
  return m;
}

static bool before(const Mark *a, const Mark *b) {
  return a->line != b->line ? a->line < b->line : a->lo < b->lo;
}

// All places in the order of the text. A note at the report's own place becomes its label.
static u32 gather(Sc *sc, const Text *text, const Diag *d, Mark **out) {
  u32 n = 0, notes = 0;
  for (const Note *p = d->notes; p; p = p->next) notes++;
  Mark *mark = *out = NEWS(sc, Mark, notes + 1);
  mark[n++] = mark_of(text, d->at, '^', NULL);
  for (const Note *p = d->notes; p; p = p->next) {
    bool same = p->at.lo == d->at.lo && p->at.hi == d->at.hi && !mark[0].label;
    if (same) mark[0].label = p->text;
    else mark[n++] = mark_of(text, p->at, '-', p->text);
  }
  for (u32 i = 1; i < n; i++) {
    Mark m = mark[i];
    u32 j = i;
    for (; j > 0 && before(&m, &mark[j - 1]); j--) mark[j] = mark[j - 1];
    mark[j] = m;
  }
  return n;
}

// Bytes of the source, nothing of which may steer a terminal.
static void put_clean(Str *out, const char *at, u32 n) {
  for (u32 i = 0; i < n; i++) {
    u8 c = (u8)at[i];
    bool control = (c < 32 && c != '\t') || c == 127;
    str_put(out, control ? "?" : &at[i], 1);
  }
}

static bool continues(const Text *text, u32 at) { return ((u8)text->at[at] & 0xc0) == 0x80; }

// The part of a line that is shown: all of it, or what is around its first mark.
static Span window(const Text *text, const Mark *m) {
  u32 lo = text->line[m->line - 1], hi = lo;
  while (hi < text->len && text->at[hi] != '\n') hi++;
  if (hi > lo && text->at[hi - 1] == '\r') hi--;
  if (hi - lo > LINE_SHOWN) {
    if (m->lo - lo > LINE_BEFORE) lo = m->lo - LINE_BEFORE;
    if (hi - lo > LINE_SHOWN) hi = lo + LINE_SHOWN;
    while (lo > text->line[m->line - 1] && continues(text, lo)) lo--;
    while (hi < text->len && continues(text, hi)) hi++;
  }
  return (Span){lo, hi};
}

static void put_source(Str *out, const Text *text, const Mark *m, Span shown) {
  u32 start = text->line[m->line - 1];
  bool more = shown.hi < text->len && text->at[shown.hi] != '\n' && text->at[shown.hi] != '\r';
  str_printf(out, "%5u | ", m->line);
  if (shown.lo > start) str_puts(out, "…");
  put_clean(out, text->at + shown.lo, shown.hi - shown.lo);
  str_puts(out, more ? "…\n" : "\n");
}

static void put_mark(Str *out, const Text *text, const Mark *m, Span shown) {
  str_puts(out, "      | ");
  if (shown.lo > text->line[m->line - 1]) str_puts(out, " ");
  u32 stop = m->lo < shown.hi ? m->lo : shown.hi;
  for (u32 i = shown.lo; i < stop; i++) {
    if (!continues(text, i)) str_puts(out, text->at[i] == '\t' ? "\t" : " ");
  }
  str_put(out, &m->with, 1);
  for (u32 i = m->lo + 1; i < m->hi && i < shown.hi; i++) {
    if (!continues(text, i)) str_put(out, &m->with, 1);
  }
  if (m->label) str_printf(out, " %s", m->label);
  str_puts(out, "\n");
}

static void put_lines(Str *out, const Text *text, const Diag *d) {
  Mark *mark;
  u32 n = gather(out->sc, text, d, &mark);
  Span shown = {0, 0};
  for (u32 i = 0; i < n; i++) {
    if (i && mark[i].line > mark[i - 1].line + 2) str_puts(out, "  ...\n");
    if (!i || mark[i].line != mark[i - 1].line) {
      shown = window(text, &mark[i]);
      put_source(out, text, &mark[i], shown);
    }
    put_mark(out, text, &mark[i], shown);
  }
}

void sc_diag_text(Str *out, const Text *text, const Diag *d) {
  LineCol p = sc_line_col(text, d->at.lo);
  put_clean(out, text->name, (u32)strlen(text->name));
  if (!text->unread) str_printf(out, ":%u:%u", p.line, p.col);
  str_printf(out, ": %s[%s]: %s\n", d->severity == SCHEDC_ERROR ? "error" : "warning",
             table[d->id].code, d->text);
  if (!text->unread) put_lines(out, text, d);
  if (d->help) str_printf(out, "      = help: %s\n", d->help);
}
