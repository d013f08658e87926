// text.c - source texts and the way from a byte offset to a line and column.
#include "base.h"

#include <string.h>

Text *sc_text(Sc *sc, const char *name, const char *bytes, size_t n) {
  Text *t = NEW(sc, Text);
  char *at = sc_new(sc, n + 1);
  if (n) memcpy(at, bytes, n);
  t->name = sc_printf(sc, "%s", name);
  t->at = at;
  t->len = (u32)n;
  t->lines = 1;
  for (size_t i = 0; i < n; i++) t->lines += at[i] == '\n';
  t->line = NEWS(sc, u32, t->lines);
  for (u32 i = 0, line = 1; i < n; i++) {
    if (at[i] == '\n') t->line[line++] = i + 1;
  }
  return t;
}

Place sc_line_col(const Text *text, u32 offset) {
  u32 lo = 0, hi = text->lines;  // the line is in [lo, hi)
  while (hi - lo > 1) {
    u32 mid = lo + (hi - lo) / 2;
    if (text->line[mid] <= offset) lo = mid;
    else hi = mid;
  }
  return (Place){lo + 1, offset - text->line[lo] + 1};
}
