// print.c - the report on machine code, for people: of each loop a table in the order of the code,
// what stands beside products, and where the order is not the schedule's.
#include "runtime/sass/sass.h"

#include <string.h>

enum { STATEMENT = 44, INSTRUCTIONS = 30 };

// "98, 100"
static const char *list(Sc *sc, const u32 *line, u32 n) {
  Str out = {.sc = sc};
  for (u32 i = 0; i < n; i++) str_printf(&out, "%s%u", i ? ", " : "", line[i]);
  return n ? out.at : "";
}

static const SassOps none = {SC_NONE, SC_NONE};

// "line 84", "lines 80, 84"
static const char *lines_of(Sc *sc, const Lines *lines) {
  return sc_printf(sc, "line%s %s", lines->n > 1 ? "s" : "", list(sc, lines->at, lines->n));
}

// "13 exponentials", "1 exponential", "190 other arithmetic"
static const char *amount(Sc *sc, u32 n, const char *name) {
  u32 all = (u32)strlen(name);
  u32 cut = n > 1 || name[all - 1] != 's' ? 0 : !strcmp(name + all - 3, "ses") ? 2 : 1;
  char *text = sc_printf(sc, "%u %.*s", n, (int)(all - cut), name);
  for (char *p = text; *p; p++)
    if (*p == '_') *p = ' ';
  return text;
}

// "13 exponentials, 190 other arithmetic"
static const char *tally(Sc *sc, const SassTally *t) {
  Str out = {.sc = sc};
  for (u32 i = 0; i < SASS_KINDS; i++) {
    if (!t->n[i]) continue;
    str_printf(&out, "%s%s", out.n ? ", " : "", amount(sc, t->n[i], sc_sass_kind[i].name));
  }
  return out.n ? out.at : "";
}

// A text in `room` columns; what has no room is cut off. (Schedules are ASCII outside comments.)
static void put_cell(Str *out, const char *text, u32 room) {
  u32 n = (u32)strlen(text);
  if (n <= room) str_printf(out, "%-*s  ", (int)room, text);
  else str_printf(out, "%.*s...  ", (int)room - 3, text);
}

static void end_line(Str *out) {
  while (out->n && out->at[out->n - 1] == ' ') out->n--;
  str_puts(out, "\n");
}

// "8 HGMMA.64x176x16.F32", "WARPGROUP.DEPBAR, 1 may stay": what says nothing is left out.
static const char *instructions(Sc *sc, const SassRow *row) {
  Str out = {.sc = sc};
  const char *dot = strchr(row->op, '.'), *end = dot ? strchr(dot + 1, '.') : NULL;
  bool whole = row->kind == SASS_PRODUCT || !end;
  if (row->kind == SASS_LOOP) return "a loop, below";
  if (row->count > 1) str_printf(&out, "%u ", row->count);
  str_printf(&out, "%.*s", whole ? (int)strlen(row->op) : (int)(end - row->op), row->op);
  if (row->kind == SASS_WAIT_GROUP && row->number) str_printf(&out, ", %u may stay", row->number);
  return out.at;
}

// The statement, once for rows that follow each other.
static void put_statement(Str *out, const SassReport *r, const SassLoop *l, const SassRow *row) {
  const SassRow *above = row > l->row.at ? row - 1 : NULL;
  const char *text = sc_sass_statement(out->sc, r->k, l->role, row->ops, row->line);
  bool again = above && above->kind && above->line == row->line &&
               !strcmp(text, sc_sass_statement(out->sc, r->k, l->role, above->ops, above->line));
  if (again) str_puts(out, "        ");
  else str_printf(out, "%6u  ", row->line);
  put_cell(out, again ? "" : row->ops.lo == SC_NONE ? "(near this line)" : text, STATEMENT);
}

static void put_row(Str *out, const SassReport *r, const SassLoop *l, const SassRow *row) {
  Sc *sc = out->sc;
  const char *beside = list(sc, row->beside.at, row->beside.n), *among = tally(sc, &row->among);
  if (*among && row->lines.n) among = sc_printf(sc, "%s (%s)", among, lines_of(sc, &row->lines));
  if (row->kind) {
    put_statement(out, r, l, row);
    put_cell(out, instructions(sc, row), INSTRUCTIONS);
    str_puts(out, beside);
    end_line(out);
  }
  if (!*among) return;
  str_puts(out, "          ");
  put_cell(out, row->kind ? sc_printf(sc, "among these: %s", among) : among,
           STATEMENT + INSTRUCTIONS);
  str_puts(out, row->kind ? "" : beside);
  end_line(out);
}

// "13 exponentials and 2 conversions (lines 80, 84)"
static const char *moved_work(Sc *sc, const SassMoved *m) {
  Str out = {.sc = sc};
  if (m->exponentials) str_puts(&out, amount(sc, m->exponentials, "exponentials"));
  if (m->conversions)
    str_printf(&out, "%s%s", out.n ? " and " : "", amount(sc, m->conversions, "conversions"));
  str_printf(&out, " (%s)", lines_of(sc, &m->lines));
  return out.at;
}

static bool same_work(const SassMoved *a, const SassMoved *b) {
  bool same = a->move == b->move && a->exponentials == b->exponentials &&
              a->conversions == b->conversions && a->lines.n == b->lines.n;
  for (u32 i = 0; i < a->lines.n && same; i++) same = a->lines.at[i] == b->lines.at[i];
  return same;
}

// What has passed several rows is told of once. Returns how many findings that were.
static u32 put_moved_work(Str *out, const SassLoop *l, u32 first, const char *row) {
  const SassMoved *m = &l->moved.at[first];
  Lines passed = {0};
  u32 n = 0;
  for (; first + n < l->moved.n && same_work(m, m + n); n++)
    sc_add_line(out->sc, &passed, m[n].line);
  bool before = m->move == MOVED_BEFORE;
  str_printf(out, "    %s: %s %s, in the schedule %s\n", n > 1 ? lines_of(out->sc, &passed) : row,
             before ? "behind" : "before", moved_work(out->sc, m), before ? "before" : "behind");
  return n;
}

// Returns how many findings it has told of.
static u32 put_moved(Str *out, const SassReport *r, const SassLoop *l, u32 index) {
  Sc *sc = out->sc;
  const SassMoved *m = &l->moved.at[index];
  SassOps ops = m->row == SC_NONE ? none : l->row.at[m->row].ops;
  const char *row =
      sc_printf(sc, "line %u, '%s'", m->line, sc_sass_statement(sc, r->k, l->role, ops, m->line));
  if (m->move == MOVED_BEFORE || m->move == MOVED_BEHIND) return put_moved_work(out, l, index, row);
  if (m->move == MOVED_ROWS)
    str_printf(out, "    %s: behind %s, in the schedule before\n", row, lines_of(sc, &m->lines));
  else if (m->move == MOVED_EXTRA)
    str_printf(out, "    %s: %s is not in the schedule\n", row, l->row.at[m->row].op);
  else str_printf(out, "    %s: is not in this code\n", row);
  return 1;
}

// "beside products in flight: 40 of 90 exponentials, 0 of 44 conversions"
static void put_overlap(Str *out, const SassLoop *l) {
  static const u8 kinds[] = {SASS_EXPONENTIAL, SASS_CONVERSION};
  const char *before = "  beside products in flight: ";
  for (u32 i = 0; i < COUNT(kinds); i++) {
    u32 all = l->all.n[kinds[i]];
    if (!all) continue;
    str_printf(out, "%s%u of %s", before, l->beside.n[kinds[i]],
               amount(out->sc, all, sc_sass_kind[kinds[i]].name));
    before = ", ";
  }
  if (*before == ',') str_puts(out, "\n");
}

static void put_loop(Str *out, const SassReport *r, const SassLoop *l) {
  const Role *role = &r->k->role.at[l->role];
  const Ins *head = &role->code.at[l->head];
  u32 line = l->head ? sc_sass_line(r->k, head) : sc_line_col(r->k->text, role->span.lo).line;
  if (!l->row.n) return;
  str_printf(out, "\nrole %s", role->name);
  if (role->regs) str_printf(out, ", %u registers", role->regs);
  if (l->head)
    str_printf(out, ", line %u: %s\n", line, sc_sass_statement(out->sc, r->k, l->role, none, line));
  else str_printf(out, ", line %u: a tile, outside its loops\n", line);
  str_puts(out, "  line  ");
  put_cell(out, "schedule", STATEMENT);
  put_cell(out, "instructions", INSTRUCTIONS);
  str_puts(out, "beside products of lines\n");
  for (u32 i = 0; i < l->row.n; i++) put_row(out, r, l, &l->row.at[i]);
  put_overlap(out, l);
  str_puts(out, l->moved.n ? "  not in the schedule's order:\n" : "  in the schedule's order\n");
  for (u32 i = 0; i < l->moved.n;) i += put_moved(out, r, l, i);
}

void sc_print_sass(Str *out, const SassReport *r, const SassFigures *figures) {
  str_printf(out, "%s: %u threads, %u registers at entry, ", r->k->name, figures->threads,
             figures->registers);
  if (figures->spill_stores || figures->spill_loads)
    str_printf(out, "SPILLS: %u bytes stored, %u loaded\n", figures->spill_stores,
               figures->spill_loads);
  else str_puts(out, "no spills\n");
  for (u32 i = 0; i < r->loop.n; i++) put_loop(out, r, &r->loop.at[i]);
}
