// json.c - the report on machine code as JSON: the same as in print.c, with the whole names of
// instructions.
#include "runtime/sass/sass.h"

static void put_lines(Json *j, const char *key, const u32 *line, u32 n) {
  json_key(j, key), json_open(j, '[');
  for (u32 i = 0; i < n; i++) json_uint(j, line[i]);
  json_close(j, ']');
}

static void put_tally(Json *j, const SassTally *t) {
  for (u32 i = 0; i < SASS_KINDS; i++)
    if (sc_sass_kind[i].part == PART_COUNT)
      json_key(j, sc_sass_kind[i].name), json_uint(j, t->n[i]);
}

static void put_row(Json *j, Sc *sc, const SassReport *r, const SassLoop *l, const SassRow *row) {
  json_open(j, '{');
  json_key(j, "kind"), json_text(j, row->kind ? sc_sass_kind[row->kind].name : "work");
  if (row->kind) {
    json_key(j, "line"), json_uint(j, row->line);
    json_key(j, "statement");
    json_text(j, sc_sass_statement(sc, r->k, l->role, row->ops, row->line));
    json_key(j, "instruction"), json_text(j, row->op);
    json_key(j, "count"), json_uint(j, row->count);
  }
  if (row->kind == SASS_PRODUCT) json_key(j, "wgmma_fence"), json_bool(j, row->fenced);
  if (row->kind == SASS_WAIT_GROUP) json_key(j, "may_stay"), json_uint(j, row->number);
  put_tally(j, &row->among);
  put_lines(j, "lines", row->lines.at, row->lines.n);
  put_lines(j, "in_flight", row->beside.at, row->beside.n);
  json_close(j, '}');
}

static void put_moved(Json *j, const SassMoved *m) {
  static const char *const name[] = {[MOVED_BEFORE] = "work_before",
                                     [MOVED_BEHIND] = "work_behind",
                                     [MOVED_ROWS] = "order",
                                     [MOVED_EXTRA] = "extra",
                                     [MOVED_ABSENT] = "absent"};
  json_open(j, '{');
  json_key(j, "kind"), json_text(j, name[m->move]);
  json_key(j, "line"), json_uint(j, m->line);
  if (m->row != SC_NONE) json_key(j, "row"), json_uint(j, m->row);
  if (m->move == MOVED_BEFORE || m->move == MOVED_BEHIND) {
    json_key(j, "exponentials"), json_uint(j, m->exponentials);
    json_key(j, "conversions"), json_uint(j, m->conversions);
  }
  if (m->lines.n) put_lines(j, "lines", m->lines.at, m->lines.n);
  json_close(j, '}');
}

static void put_loop(Json *j, Sc *sc, const SassReport *r, const SassLoop *l) {
  const Role *role = &r->k->role.at[l->role];
  u32 line = l->head ? sc_sass_line(r->k, &role->code.at[l->head])
                     : sc_line_col(r->k->text, role->span.lo).line;
  json_open(j, '{');
  json_key(j, "role"), json_text(j, role->name);
  json_key(j, "kind"), json_text(j, l->head ? "loop" : "tile");
  json_key(j, "line"), json_uint(j, line);
  json_key(j, "registers"), json_uint(j, role->regs);
  json_key(j, "all"), json_open(j, '{'), put_tally(j, &l->all), json_close(j, '}');
  json_key(j, "beside_products"), json_open(j, '{'), put_tally(j, &l->beside), json_close(j, '}');
  json_key(j, "rows"), json_open(j, '[');
  for (u32 i = 0; i < l->row.n; i++) put_row(j, sc, r, l, &l->row.at[i]);
  json_close(j, ']');
  json_key(j, "moved"), json_open(j, '[');
  for (u32 i = 0; i < l->moved.n; i++) put_moved(j, &l->moved.at[i]);
  json_close(j, ']');
  json_close(j, '}');
}

void sc_json_sass(Json *j, Sc *sc, const SassReport *r, const SassFigures *figures) {
  json_open(j, '{');
  json_key(j, "kernel"), json_text(j, r->k->name);
  json_key(j, "disassembler"), json_text(j, figures->disassembler);
  json_key(j, "threads"), json_uint(j, figures->threads);
  json_key(j, "registers"), json_uint(j, figures->registers);
  json_key(j, "spill_store_bytes"), json_uint(j, figures->spill_stores);
  json_key(j, "spill_load_bytes"), json_uint(j, figures->spill_loads);
  json_key(j, "loops"), json_open(j, '[');
  for (u32 i = 0; i < r->loop.n; i++)
    if (r->loop.at[i].row.n) put_loop(j, sc, r, &r->loop.at[i]);
  json_close(j, ']');
  json_close(j, '}');
}
