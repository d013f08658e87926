// lines.c - the formatter's last step: lines with marks in, text with aligned columns out.
//
// A paragraph ends at an empty line; for columns also at a statement with another indent. In it
// lines of one kind share columns, and all comments behind lines share one. What is much wider than
// the rest stays out, so that one long line does not push the others apart.
#include "lang/lines.h"

#include <string.h>

enum { MAX_PAD = 16, MAX_COMMENT_PAD = 40, GUTTER = 2 };

// The width of the cell before the n-th mark (from 0) of a line, -1 if it has none in this run.
static i32 cell(const Line *l, Run run, u32 n) {
  const char *at = l->text.at;
  if (l->run != run) return -1;
  for (;; n--) {
    const char *end = at ? strchr(at, *SC_MARK) : NULL;
    if (!end) return -1;
    if (!n) return (i32)(end - at);
    at = end + 1;
  }
}

// Fills the cell before the n-th mark to `width`; the + of += stays with its =.
static void pad(Line *l, u32 n, i32 width) {
  Str padded = {.sc = l->text.sc};
  const char *at = l->text.at;
  for (u32 i = 0; i < n; i++) at = strchr(at, *SC_MARK) + 1;
  const char *end = strchr(at, *SC_MARK);
  i32 have = (i32)(end - at);
  if (end > at && end[-1] == '+') end--;
  str_put(&padded, l->text.at, (size_t)(end - l->text.at));
  str_printf(&padded, "%*s%s", width - have, "", end);
  l->text = padded;
}

// Aligns the n-th marks of a run among lines [lo, hi); a cell much wider than the narrowest stays
// out of it.
static void align_run(Lines *lines, u32 lo, u32 hi, Run run, u32 n) {
  i32 least = INT32_MAX, most = -1;
  for (u32 i = lo; i < hi; i++) {
    i32 w = cell(&lines->at[i], run, n);
    if (w >= 0 && w < least) least = w;
  }
  for (u32 i = lo; i < hi; i++) {
    i32 w = cell(&lines->at[i], run, n);
    if (w > most && w <= least + MAX_PAD) most = w;
  }
  for (u32 i = lo; i < hi; i++) {
    i32 w = cell(&lines->at[i], run, n);
    if (w >= 0 && w < most) pad(&lines->at[i], n, most);
  }
}

static void align_lets(Lines *lines, u32 lo, u32 hi) {
  for (u32 end; lo < hi; lo = end) {
    for (end = lo + 1; end < hi && lines->at[end].run == RUN_LET;) end++;
    align_run(lines, lo, end, RUN_LET, 0);
  }
}

static void drop_marks(Line *l) {
  u32 n = 0;
  for (u32 i = 0; i < l->text.n; i++) {
    if (l->text.at[i] != *SC_MARK) l->text.at[n++] = l->text.at[i];
  }
  while (n && l->text.at[n - 1] == ' ') n--;
  l->text.n = n;
}

// Where the lines from `lo` on stop to be neighbours: at an empty line and, for columns, at a
// statement with another indent.
static u32 paragraph(const Lines *lines, u32 lo, bool one_indent) {
  const Line *l = lines->at;
  u32 hi = lo + 1;
  while (hi < lines->n && !l[hi].blank &&
         (!one_indent || l[hi].indent == l[lo].indent || l[hi].goes_on)) {
    hi++;
  }
  return hi;
}

static void align(Lines *lines) {
  for (u32 lo = 0, hi; lo < lines->n; lo = hi) {
    hi = paragraph(lines, lo, true);
    for (Run run = RUN_PARAM; run < RUN_LET; run++) {
      align_run(lines, lo, hi, run, 0);
      align_run(lines, lo, hi, run, 1);
    }
    align_lets(lines, lo, hi);
    for (u32 i = lo; i < hi; i++) drop_marks(&lines->at[i]);
  }
}

// ---- comments behind lines

static bool trailed(const Line *l) { return l->text.n && l->comment.hi; }
static u32 width(const Line *l) { return l->indent + l->text.n; }

// The column that the author gave to all comments of lines [lo, hi) but those behind longer lines;
// 0 if they differ.
static u32 common_column(const Text *text, const Lines *lines, u32 lo, u32 hi) {
  u32 common = 0;
  for (u32 i = lo; i < hi; i++) {
    const Line *l = &lines->at[i];
    if (!trailed(l)) continue;
    u32 column = sc_line_col(text, l->comment.lo).col - 1;
    bool first = !common;
    if (first) common = column;
    bool fits = width(l) + GUTTER <= common;
    if (first ? !fits : column != common && (fits || column != width(l) + GUTTER)) return 0;
  }
  return common;
}

// The column for the comments of lines [lo, hi): the author's if there is one, else behind the
// longest line that is not much longer than the others.
static u32 comment_column(const Text *text, const Lines *lines, u32 lo, u32 hi) {
  u32 least = UINT32_MAX / 2, most = 0, common = common_column(text, lines, lo, hi);
  for (u32 i = lo; i < hi; i++) {
    const Line *l = &lines->at[i];
    if (trailed(l) && width(l) < least) least = width(l);
  }
  if (least + GUTTER <= common) return common;
  for (u32 i = lo; i < hi; i++) {
    const Line *l = &lines->at[i];
    if (trailed(l) && width(l) > most && width(l) <= least + MAX_COMMENT_PAD) most = width(l);
  }
  return most + GUTTER;
}

static void put_line(Str *out, const Text *text, const Line *l, u32 column) {
  if (l->blank && out->n) str_puts(out, "\n");
  str_printf(out, "%*s", (int)l->indent, "");
  if (l->text.n) str_put(out, l->text.at, l->text.n);
  if (trailed(l)) {
    str_printf(out, "%*s", (int)(width(l) + GUTTER < column ? column - width(l) : GUTTER), "");
  }
  str_put(out, text->at + l->comment.lo, l->comment.hi - l->comment.lo);
  str_puts(out, "\n");
}

void sc_put_lines(Str *out, const Text *text, Lines *lines) {
  align(lines);
  for (u32 lo = 0, hi; lo < lines->n; lo = hi) {
    hi = paragraph(lines, lo, false);
    u32 column = comment_column(text, lines, lo, hi);
    for (u32 i = lo; i < hi; i++) put_line(out, text, &lines->at[i], column);
  }
}
