// write.c - a program as a schedule.
#include "program.h"

static const char *const infix[] = {
    [E_ADD] = "+", [E_SUB] = "-", [E_MUL] = "*", [E_DIV] = "/",   [E_MOD] = "%", [E_LT] = "<",
    [E_LE] = "<=", [E_EQ] = "==", [E_NE] = "!=", [E_AND] = "and", [E_OR] = "or",
};

static const char *const axis_name[MAX_AXES] = {"x", "y", "z"};

static void write_ex(const Program *p, Str *out, const Ex *x) {
  switch (x->kind) {
    case E_INT: str_printf(out, "%d", x->n); return;
    case E_DIM: str_printf(out, "n%d", x->n); return;
    case E_TILE: str_puts(out, axis_name[x->n]); return;
    case E_INSTANCE: str_puts(out, "w"); return;
    case E_LOOP: str_printf(out, "t%d", x->n); return;
    case E_ELEMENT: str_printf(out, "s%d", x->n); return;
    case E_TABLE:
      str_puts(out, x->b ? "M[" : x->n ? "C[" : "B[");
      write_ex(p, out, x->a);
      if (x->b) str_puts(out, ", ");
      if (x->b) write_ex(p, out, x->b);
      str_puts(out, "]");
      return;
    case E_NOT:
      str_puts(out, "not (");
      write_ex(p, out, x->a);
      str_puts(out, ")");
      return;
    default: break;
  }
  bool call = x->kind == E_MIN || x->kind == E_MAX;
  str_puts(out, x->kind == E_MIN ? "min(" : x->kind == E_MAX ? "max(" : "(");
  write_ex(p, out, x->a);
  str_printf(out, call ? "%s " : " %s ", call ? "," : infix[x->kind]);
  if (x->b) write_ex(p, out, x->b);
  else str_printf(out, "%d", x->n);
  str_puts(out, ")");
}

static void write_list(const Program *p, Str *out, const St *s, int depth);

static void line(Str *out, int depth, const char *word, const char *of, int ref) {
  str_printf(out, "%*s%s %s%d\n", 2 * depth, "", word, of, ref);
}

static void write_slice(const Program *p, Str *out, int tensor, const St *s) {
  str_printf(out, "G%d[", tensor);
  write_ex(p, out, s->x);
  if (s->y) str_puts(out, ", ");
  if (s->y) write_ex(p, out, s->y);
  str_puts(out, p->tensor[tensor] == SHAPE_FLAT ? "*16..]" : "]");
}

static void write_elements(const Program *p, Str *out, const St *s) {
  Shape shape = p->tensor[s->ref];
  bool column = shape == SHAPE_CROSSED && s->reversed;
  str_printf(out, "G%d[%s", s->ref, column ? "d, " : "");
  write_ex(p, out, s->x);
  if (s->y) str_puts(out, ", ");
  if (s->y) write_ex(p, out, s->y);
  str_puts(out, column ? "]" : shape == SHAPE_FLAT ? "*16 + d]" : ", d]");
}

// A ring that is filled by copies has them before the fill ends.
static void write_copy(const Program *p, Str *out, const St *s, int depth) {
  const Pipe *of = &p->ring[s->ref];
  if (!of->copied || (s->kind != S_FILL && s->kind != S_COMMIT)) return;
  str_printf(out, "%*sr%d <- ", 2 * depth, "", s->ref);
  if (s->x) write_slice(p, out, s->with, s);
  else str_puts(out, of->shared ? "X[0..] multicast" : "Z[0]");
  str_puts(out, "\n");
}

static void write_bracket(const Program *p, Str *out, const St *s, int depth) {
  static const char *const from[] = {"acquire", "wait", "acquire"};
  static const char *const to[] = {"commit", "release", "release"};
  const char *of = s->kind == S_TURN ? "u" : "r";
  line(out, depth, from[s->kind], of, s->ref);
  write_list(p, out, s->body, depth);
  write_copy(p, out, s, depth);
  line(out, depth, to[s->kind], of, s->ref);
}

static void write_key(const Program *p, Str *out, const char *word, const Ex *key, int depth) {
  str_printf(out, "%*s%s v", 2 * depth, "", word);
  if (key) {
    str_puts(out, "[");
    write_ex(p, out, key);
    str_puts(out, "]");
  }
  str_puts(out, "\n");
}

static void write_touch(const Program *p, Str *out, const St *s, int depth) {
  const char *of = p->tensor[s->ref] == SHAPE_CROSSED ? "c" : "s";
  if (s->touch > TOUCH_GET) {
    str_printf(out, "%*s", 2 * depth, "");
    write_slice(p, out, s->ref, s);
    str_printf(out, " %s r%d\n", s->touch == TOUCH_PUT ? "<-" : "+=", s->with);
    return;
  }
  str_printf(out, "%*s", 2 * depth, "");
  if (s->touch == TOUCH_LOAD) str_printf(out, "%s[d] = %s[d] + ", of, of);
  write_elements(p, out, s);
  if (s->touch != TOUCH_LOAD) str_printf(out, " %s %s[d]", s->touch == TOUCH_ADD ? "+=" : "=", of);
  str_puts(out, "\n");
}

static void write_stage(const Program *p, Str *out, const St *s) {
  str_printf(out, "r%d[", s->ref);
  if (s->x) str_puts(out, "32*");
  if (s->x) write_ex(p, out, s->x);
  str_puts(out, s->x ? " + d]" : "d]");
}

static bool is_wide(const Program *p, const St *s) { return !s->x && cells_in(p, s->ref) > 1; }

static void write_cell(const Program *p, Str *out, const St *s, int depth) {
  const char *of = is_wide(p, s) ? "u" : "s";
  str_printf(out, "%*s", 2 * depth, "");
  if (s->touch == TOUCH_LOAD) str_printf(out, "%s[d]", of);
  else write_stage(p, out, s);
  str_printf(out, " = %s[d]", of);
  if (s->touch != TOUCH_STORE) str_puts(out, " + ");
  if (s->touch != TOUCH_STORE) write_stage(p, out, s);
  str_puts(out, "\n");
}

static void write_loop(const Program *p, Str *out, const St *s, int depth) {
  str_printf(out, "%*sfor t%d in %s", 2 * depth, "", s->ref, s->reversed ? "reversed " : "");
  write_ex(p, out, s->x);
  str_puts(out, " .. ");
  write_ex(p, out, s->y);
  str_puts(out, " {\n");
  write_list(p, out, s->body, depth + 1);
  str_printf(out, "%*s}\n", 2 * depth, "");
}

static void write_if(const Program *p, Str *out, const St *s, int depth) {
  str_printf(out, "%*sif ", 2 * depth, "");
  write_ex(p, out, s->x);
  str_puts(out, " {\n");
  write_list(p, out, s->body, depth + 1);
  if (s->other) {
    str_printf(out, "%*s} else {\n", 2 * depth, "");
    write_list(p, out, s->other, depth + 1);
  }
  str_printf(out, "%*s}\n", 2 * depth, "");
}

static void write_list(const Program *p, Str *out, const St *s, int depth) {
  for (; s; s = s->next) {
    switch (s->kind) {
      case S_FILL:
      case S_DRAIN:
      case S_TURN: write_bracket(p, out, s, depth); break;
      case S_ORDER:
        write_key(p, out, "acquire", s->x, depth);
        write_list(p, out, s->body, depth);
        write_key(p, out, "release", s->y, depth);
        break;
      case S_TAKE_KEY: write_key(p, out, "acquire", s->x, depth); break;
      case S_PASS_KEY: write_key(p, out, "release", s->x, depth); break;
      case S_SETTLE:
        str_printf(out, "%*swait G%d%s", 2 * depth, "", s->ref, s->reversed ? " read" : "");
        if (s->with) str_printf(out, " keep %d", s->with);
        str_puts(out, "\n");
        break;
      case S_TOUCH: write_touch(p, out, s, depth); break;
      case S_CELL: write_cell(p, out, s, depth); break;
      case S_ACQUIRE: line(out, depth, "acquire", "r", s->ref); break;
      case S_COMMIT:
        write_copy(p, out, s, depth);
        line(out, depth, "commit", "r", s->ref);
        break;
      case S_WAIT: line(out, depth, "wait", "r", s->ref); break;
      case S_RELEASE: line(out, depth, "release", "r", s->ref); break;
      case S_FOR: write_loop(p, out, s, depth); break;
      case S_IF: write_if(p, out, s, depth); break;
      default: break;
    }
  }
}

static void write_inputs(const Program *p, Str *out) {
  str_puts(out, "  in  D : i32[n0");
  for (int i = 1; i < p->dims; i++) str_printf(out, ", n%d", i);
  str_puts(out, "]\n");
  for (int i = 0; i < p->elements && p->scalars; i++) str_printf(out, "  in  s%d : i32\n", i);
  if (p->elements && !p->scalars) str_printf(out, "  in  A : i32[%d]\n", MAX_ELEMENTS);
  if (p->table) str_printf(out, "  in  B, C : i32[%d]\n", TABLE);
  bool copied = false;
  for (int r = 0; r < p->rings; r++) copied |= p->ring[r].copied;
  if (copied) str_puts(out, "  in  X : f32[4, 64], Z : f32[4, 32]\n");
  if (p->square) str_printf(out, "  in  M : i32[%d, %d]\n", SIDE, SIDE);
  for (int i = 0; i < p->tensors; i++) {
    switch (p->tensor[i]) {
      case SHAPE_FLAT: str_printf(out, "  inout G%d : f32[%d]\n", i, 16 * ROWS); break;
      case SHAPE_ROWS: str_printf(out, "  inout G%d : f32[%d, 32]\n", i, ROWS); break;
      case SHAPE_SQUARE:
        str_printf(out, "  inout G%d : f32[%d, %d, 32]\n", i, PLACES, PLACES);
        break;
      case SHAPE_CROSSED: str_printf(out, "  inout G%d : f32[%d, %d]\n", i, CROSS, CROSS); break;
    }
  }
  for (int i = 0; i < p->dims; i++)
    if (p->least[i]) str_printf(out, "  require n%d >= %d\n", i, p->least[i]);
  if (p->ordered) str_puts(out, "  require n0 <= n1\n");
  for (int i = 0; i < p->elements && !p->scalars; i++) str_printf(out, "  let s%d = A[%d]\n", i, i);
}

static void write_rings(const Program *p, Str *out, int owner) {
  for (int r = 0; r < p->rings; r++)
    if (p->ring[r].owner == owner)
      str_printf(out, "%sring r%d : %s * %d\n", owner < 0 ? "  " : "    ", r,
                 p->ring[r].shared     ? "f32[4, 64]"
                 : cells_in(p, r) == 1 ? "f32[32]"
                                       : "f32[64]",
                 p->ring[r].stages);
}

// How many elements an access by threads has.
static int elements(const Program *p, const St *s) {
  if (s->kind == S_TOUCH) return p->tensor[s->ref] == SHAPE_CROSSED ? CROSS : 32;
  return s->kind == S_CELL ? is_wide(p, s) ? 64 : 32 : 0;
}

static bool uses(const Program *p, const St *s, int n) {
  for (; s; s = s->next)
    if (elements(p, s) == n || uses(p, s->body, n) || uses(p, s->other, n)) return true;
  return false;
}

static void write_grid(const Program *p, Str *out) {
  for (int a = 0; a < p->axes; a++) {
    const Line *of = &p->axis[a];
    str_printf(out, "%s%s%s : %d", a ? ", " : "  grid (", of->reversed ? "reversed " : "",
               axis_name[a], of->extent);
    if (of->by) str_printf(out, " by %d", of->by);
  }
  str_printf(out, ")%s", p->ctas ? "" : p->dynamic ? " dynamic" : " persistent");
  if (p->cluster) str_printf(out, " cluster (%s : 2)", axis_name[p->cluster_axis]);
  str_puts(out, "\n");
}

void write_program(const Program *p, Str *out, const char *name) {
  str_printf(out, "kernel %s {\n", name);
  write_inputs(p, out);
  if (p->tiles) write_grid(p, out);
  write_rings(p, out, -1);
  if (p->order) {
    str_puts(out, p->keys ? "  turn v[q : " : "  turn v");
    if (p->keys) write_ex(p, out, p->keys);
    str_printf(out, "%s : %s\n", p->keys ? "]" : "", axis_name[p->order_axis]);
  }
  for (int t = 0; t < p->turns; t++) {
    str_printf(out, "  turn u%d : ", t);
    for (int m = 0; m < p->turn[t].members; m++)
      str_printf(out, "%sp%d", m ? ", " : "", p->turn[t].member[m]);
    str_puts(out, "\n");
  }
  for (int r = 0; r < p->roles; r++) {
    const Actor *a = &p->role[r];
    str_printf(out, "  role p%d%s : %d warp%s%s {\n", r, p->tensors || p->cells ? "[w]" : "",
               a->instances, a->instances > 1 ? "s" : "", a->dealt ? ", one tile each" : "");
    if (uses(p, a->body, 32)) str_puts(out, "    reg s : f32[32] = 0\n");
    if (uses(p, a->body, 64)) str_puts(out, "    reg u : f32[64] = 0\n");
    if (uses(p, a->body, CROSS)) str_printf(out, "    reg c : f32[%d] = 0\n", CROSS);
    write_rings(p, out, r);
    write_list(p, out, a->body, 2);
    str_puts(out, "  }\n");
  }
  str_puts(out, "}\n");
}
