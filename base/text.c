// text.c - source texts, the way from a byte offset to a line and column, misspelt names, and reals
// as text.
#include "base/base.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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
  u32 *line = NEWS(sc, u32, t->lines);
  t->line = line;
  for (u32 i = 0; i < n; i++) {
    if (at[i] == '\n') *++line = i + 1;
  }
  return t;
}

Text sc_unread(const char *name) {
  static const u32 first = 0;
  return (Text){.name = name, .at = "", .line = &first, .lines = 1, .unread = true};
}

u32 sc_slips(const char *written) {
  size_t n = strlen(written);
  return n > 3 ? 2 : n > 1 ? 1 : 0;
}

bool sc_nearer(const char *written, const char *name, u32 *slips) {
  enum { MOST = 32 };
  // Of the letters written so far, against each beginning of `name`: the last three rows.
  u32 row[3][MOST + 1];
  size_t na = strlen(written), nb = strlen(name);
  if (!strcmp(written, name) || na > MOST || nb > MOST) return false;
  for (u32 j = 0; j <= nb; j++) row[0][j] = j;
  for (u32 i = 1; i <= na; i++) {
    u32 *now = row[i % 3], *last = row[(i + 2) % 3];
    now[0] = i;
    for (u32 j = 1; j <= nb; j++) {
      now[j] = last[j - 1] + (written[i - 1] != name[j - 1]);
      if (last[j] + 1 < now[j]) now[j] = last[j] + 1;
      if (now[j - 1] + 1 < now[j]) now[j] = now[j - 1] + 1;
      bool swapped =
          i > 1 && j > 1 && written[i - 1] == name[j - 2] && written[i - 2] == name[j - 1];
      if (swapped && row[(i + 1) % 3][j - 2] + 1 < now[j]) now[j] = row[(i + 1) % 3][j - 2] + 1;
    }
  }
  u32 found = row[na % 3][nb];
  if (found > *slips) return false;
  *slips = found - 1;
  return true;
}

LineCol sc_line_col(const Text *text, u32 offset) {
  u32 lo = 0, hi = text->lines;  // the line is in [lo, hi)
  while (hi - lo > 1) {
    u32 mid = lo + (hi - lo) / 2;
    if (text->line[mid] <= offset) lo = mid;
    else hi = mid;
  }
  return (LineCol){lo + 1, offset - text->line[lo] + 1};
}

// The caller's locale decides what printf and strtod take for a decimal point (some have two
// bytes). What printf writes between the digits of 0.5 is it: unlike localeconv, that is safe among
// threads.
static size_t decimal_point(char point[8]) {
  char half[16];
  size_t n = (size_t)snprintf(half, sizeof half, "%.1f", 0.5) - 2;
  memcpy(point, half + 1, n);
  return n;
}

bool sc_dotted(char *text) {
  char point[8];
  size_t n = decimal_point(point);
  char *at = strstr(text, (point[n] = 0, point));
  if (!at) return false;
  *at = '.';
  memmove(at + 1, at + n, strlen(at + n) + 1);
  return true;
}

// Fewest digits, `most` at most; f32: v is one, and that is what must come back.
static void put_real(Str *s, double v, int most, bool f32) {
  if (!isfinite(v)) {
    str_puts(s, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
    return;
  }
  char text[48];
  double back;
  int digits = 1;
  do {
    snprintf(text, sizeof text, "%.*g", digits, v);
    back = f32 ? (double)strtof(text, NULL) : strtod(text, NULL);
  } while (back != v && digits++ < most);
  bool whole = !sc_dotted(text) && !strchr(text, 'e');
  str_printf(s, whole ? "%s.0" : "%s", text);
}

void str_real(Str *s, double v) { put_real(s, v, 17, false); }
void str_float(Str *s, float v) { put_real(s, (double)v, 9, true); }

bool sc_read_real(Sc *sc, const char *at, size_t n, double *out) {
  char point[8], *text = sc_new(sc, n + sizeof point + 1);
  const char *dot = memchr(at, '.', n);
  size_t head = dot ? (size_t)(dot - at) : n, p = dot ? decimal_point(point) : 0;
  memcpy(text, at, head);
  memcpy(text + head, point, p);
  if (dot) memcpy(text + head + p, dot + 1, n - head - 1);
  *out = strtod(text, NULL);
  return isfinite(*out);
}
