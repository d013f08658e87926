// diag.c - diagnostics: a list in the order of report, and the form in which people read them.
#include "base.h"

#include <string.h>

static const struct {
  const char *code, *summary, *explain;
  schedc_severity severity;
} table[D_COUNT] = {
#define DIAG(id, code, severity, summary, explain) {code, summary, explain, SCHEDC_##severity},
#include "diag.def"
#undef DIAG
};

const char *sc_diag_code(DiagId id) { return table[id].code; }
schedc_severity sc_diag_severity(DiagId id) { return table[id].severity; }
const char *sc_diag_summary(DiagId id) { return table[id].summary; }
const char *sc_diag_explain(DiagId id) { return table[id].explain; }

Diag *sc_report(Sc *sc, DiagId id, Span at, const char *fmt, ...) {
  Diag *d = NEW(sc, Diag);
  va_list ap;
  va_start(ap, fmt);
  d->text = sc_vprintf(sc, fmt, ap);
  va_end(ap);
  d->id = id;
  d->at = at;
  if (table[id].severity == SCHEDC_ERROR && sc->errors++ >= SC_MAX_ERRORS) return d;
  *sc->diag_end = d;
  sc->diag_end = &d->next;
  return d;
}

void sc_note(Sc *sc, Diag *d, Span at, const char *fmt, ...) {
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
  va_list ap;
  va_start(ap, fmt);
  d->help = sc_vprintf(sc, fmt, ap);
  va_end(ap);
}

// The line that holds `at`, with carets (the report's own place) or dashes (a note) under the range.
static void put_line(Str *out, const Text *text, Span at, char mark, const char *label) {
  Place p = sc_line_col(text, at.lo);
  u32 start = text->line[p.line - 1], end = start;
  while (end < text->len && text->at[end] != '\n' && text->at[end] != '\r') end++;
  str_printf(out, "%5u | ", p.line);
  str_put(out, text->at + start, end - start);
  str_puts(out, "\n      | ");
  for (u32 i = start; i < at.lo && i < end; i++) str_puts(out, text->at[i] == '\t' ? "\t" : " ");
  u32 stop = at.hi < end ? at.hi : end;
  str_put(out, &mark, 1);
  for (u32 i = at.lo + 1; i < stop; i++) str_put(out, &mark, 1);
  if (label) str_printf(out, " %s", label);
  str_puts(out, "\n");
}

void sc_diag_text(Str *out, const Text *text, const Diag *d) {
  Place p = sc_line_col(text, d->at.lo);
  str_printf(out, "%s:%u:%u: %s[%s]: %s\n", text->name, p.line, p.col,
             table[d->id].severity == SCHEDC_ERROR ? "error" : "warning", table[d->id].code, d->text);
  const Note *n = d->notes;
  for (; n && n->at.lo <= d->at.lo; n = n->next) put_line(out, text, n->at, '-', n->text);
  put_line(out, text, d->at, '^', NULL);
  for (; n; n = n->next) put_line(out, text, n->at, '-', n->text);
  if (d->help) str_printf(out, "      = help: %s\n", d->help);
}
