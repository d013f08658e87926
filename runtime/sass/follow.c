// follow.c - machine code followed loop by loop: of which role and which operation each instruction
// is, and which products are in flight there. In: a function's instructions, and the kernel. Out:
// rows in the order of the code. Instructions are known by their lines alone, and a loop by its
// back edge, whose line is that of a `for`. The idea of the counting: what stands between two rows
// of a role is work that the hardware does beside the products that are in flight there.
#include "runtime/sass/sass.h"

#include <string.h>

// ---- roles

// The roles that have an operation, or begin, at a line: bit r for role r.
static u32 roles_at(const Kernel *k, u32 line) {
  u32 roles = 0;
  for (u32 r = 0; r < k->role.n && line; r++) {
    const Role *role = &k->role.at[r];
    bool here = sc_line_col(k->text, role->span.lo).line == line;
    for (u32 i = 0; i < role->code.n && !here; i++)
      here = sc_sass_line(k, &role->code.at[i]) == line;
    if (here) roles |= 1u << r;
  }
  return roles;
}

// An instruction at a line that no role has, or several have, is of the role before it.
static void find_roles(Sc *sc, SassReport *r) {
  const SassFunction *f = r->function;
  u32 current = 0, line = 0, roles = 0;
  r->role = NEWS(sc, u8, f->code.n);
  for (u32 i = 0; i < f->code.n; i++) {
    if (f->code.at[i].line != line) roles = roles_at(r->k, line = f->code.at[i].line);
    if (roles && !(current && roles & 1u << (current - 1))) current = (u32)__builtin_ctz(roles) + 1;
    r->role[i] = (u8)current;
  }
}

// ---- products

// Of a group's instructions some have the line of what is written behind it. All are at the fence's
// line if the role has a product there, else at one of theirs where it has.
static u32 line_of_group(const SassReport *r, u32 lo, u32 hi) {
  const Sass *code = r->function->code.at;
  u32 found = 0;
  for (u32 i = lo; i < hi; i++) {
    u32 role = r->role[i] - 1u, all = r->k->role.at[role].code.n;
    if (code[i].kind != SASS_PRODUCT && code[i].kind != SASS_ARRIVE) continue;
    if (sc_sass_ops(r->k, role, 0, all, code[i].line, SASS_PRODUCT).lo == SC_NONE) continue;
    if (code[i].kind == SASS_ARRIVE) return code[i].line;
    if (!found) found = code[i].line;
  }
  return found;
}

static void settle_products(const SassReport *r) {
  Sass *code = r->function->code.at;
  for (u32 i = 0, lo = 0; i < r->function->code.n; i++) {
    if (!r->role[i] || r->role[i] != r->role[lo]) lo = i;
    if (!code[i].ends_group || !r->role[i]) continue;
    u32 line = line_of_group(r, lo, i + 1);
    for (u32 j = lo; j <= i && line; j++)
      if (code[j].kind == SASS_PRODUCT) code[j].line = line;
    lo = i + 1;
  }
}

// ---- loops

// The loop of the schedule whose line the way back has; SC_NONE: it is another's, such as that of a
// wait which is tried again.
static u32 head_of(const SassReport *r, u32 role, const Lines *lines) {
  const Code *code = &r->k->role.at[role].code;
  for (u32 i = 0; i < code->n; i++)
    for (u32 l = 0; l < lines->n && code->at[i].op == OP_FOR; l++)
      if (sc_sass_line(r->k, &code->at[i]) == lines->at[l]) return i;
  return SC_NONE;
}

static bool is_in(const SassFunction *f, u32 loop, u32 natural) {
  while (loop != natural && loop != SC_NONE) loop = f->loop.at[loop].outer;
  return loop == natural;
}

// Does an instruction do anything, of this role and in this loop? A wait that is tried again does
// not.
static bool works(const SassReport *r, u32 role, u32 natural, u32 at) {
  const SassFunction *f = r->function;
  const Sass *s = &f->code.at[at];
  bool does_it = sc_sass_kind[s->kind].part != PART_REST && s->kind != SASS_MBAR_WAIT;
  return does_it && r->role[at] == role + 1 && is_in(f, s->loop, natural);
}

static bool any_works(const SassReport *r, u32 role, u32 natural) {
  bool found = false;
  for (u32 i = 0; i < r->function->code.n && !found; i++) found = works(r, role, natural, i);
  return found;
}

// The first and the last operation that are in it for certain; SC_NONE: none is.
static SassOps span_of(const SassReport *r, u32 role, u32 natural) {
  u32 all = r->k->role.at[role].code.n;
  SassOps span = {SC_NONE, 0};
  for (u32 i = 0; i < r->function->code.n; i++) {
    const Sass *s = &r->function->code.at[i];
    SassOps ops = {SC_NONE, SC_NONE};
    if (works(r, role, natural, i))
      ops = sc_sass_ops(r->k, role, 0, all, s->line, (SassKind)s->kind);
    if (ops.lo == SC_NONE || ops.lo != ops.hi) continue;
    if (span.lo == SC_NONE || ops.lo < span.lo) span.lo = ops.lo;
    if (ops.lo > span.hi) span.hi = ops.lo;
  }
  return span;
}

// The innermost loop of the schedule around these.
static u32 loop_around(const SassReport *r, u32 role, SassOps span) {
  const Code *code = &r->k->role.at[role].code;
  u32 found = SC_NONE;
  for (u32 i = 0; i < code->n && i < span.lo; i++)
    if (code->at[i].op == OP_FOR && code->at[i].nest > span.hi) found = i;
  return found;
}

static void add_loop(Sc *sc, SassReport *r, u32 role, u32 natural) {
  const SassNatural *n = &r->function->loop.at[natural];
  SassLoop l = {.role = role, .head = head_of(r, role, &n->lines), .natural = natural};
  SassOps span = l.head == SC_NONE ? span_of(r, role, natural) : (SassOps){SC_NONE, 0};
  if (span.lo != SC_NONE) l.head = loop_around(r, role, span);
  for (u32 i = 0; i < r->loop.n; i++) {
    const SassLoop *o = &r->loop.at[i];
    bool around = o->natural != SC_NONE && is_in(r->function, natural, o->natural);
    if (around && o->role == role && o->head == l.head) return;
  }
  if (l.head != SC_NONE && any_works(r, role, natural)) PUSH(sc, &r->loop, l);
}

// The loops around an instruction, the outermost first.
static void add_loops(Sc *sc, SassReport *r, u32 role, u32 natural, bool *known) {
  if (natural == SC_NONE || known[natural]) return;
  known[natural] = true;
  add_loops(sc, r, role, r->function->loop.at[natural].outer, known);
  add_loop(sc, r, role, natural);
}

// The role's tile, which is no loop on a grid that is not persistent, and its loops, in the order
// in which they begin.
static void find_loops(Sc *sc, SassReport *r, u32 role) {
  const SassFunction *f = r->function;
  SassLoop tile = {.role = role, .natural = SC_NONE};
  bool *known = NEWS(sc, bool, f->loop.n + 1);
  PUSH(sc, &r->loop, tile);
  for (u32 i = 0; i < f->code.n; i++)
    if (r->role[i] == role + 1) add_loops(sc, r, role, f->code.at[i].loop, known);
}

// The loop of the report that is the code's.
static u32 loop_of(const SassReport *r, u32 role, u32 natural) {
  for (u32 i = 0; i < r->loop.n && natural != SC_NONE; i++)
    if (r->loop.at[i].role == role && r->loop.at[i].natural == natural) return i;
  return SC_NONE;
}

// Of the report's loops inside this one, the outermost that has the instruction; SC_NONE: it is the
// loop's own.
static u32 inner_loop(const SassReport *r, u32 loop, u32 at) {
  const SassLoop *l = &r->loop.at[loop];
  u32 found = SC_NONE;
  for (u32 n = r->function->code.at[at].loop; n != l->natural; n = r->function->loop.at[n].outer) {
    u32 inner = loop_of(r, l->role, n);
    if (inner != SC_NONE) found = inner;
  }
  return found;
}

// ---- rows

typedef struct Walk {
  Sc *sc;
  const SassReport *report;
  u32 index;
  SassLoop *loop;
  bool counts;        // the second time round: what is in flight at the loop's end is known
  VEC(u32) flight;    // lines of the products in flight, oldest first
  bool open;          // the newest has not ended its group
  SassTally between;  // counted since the last row
  Lines lines;        // of the exponentials and conversions in it
} Walk;

static void put_beside(Walk *w, SassRow *row) {
  for (u32 i = 0; i < w->flight.n; i++) PUSH(w->sc, &row->beside, w->flight.at[i]);
}

static u32 counted(const SassTally *t) {
  u32 n = 0;
  for (u32 i = 0; i < SASS_KINDS; i++) n += t->n[i];
  return n;
}

static void add_between(Walk *w, SassRow *row) {
  for (u32 i = 0; i < SASS_KINDS; i++) row->among.n[i] += w->between.n[i];
  for (u32 i = 0; i < w->lines.n; i++) sc_add_line(w->sc, &row->lines, w->lines.at[i]);
  w->between = (SassTally){0};
  w->lines.n = 0;
}

static void end_stretch(Walk *w) {
  if (!counted(&w->between)) return;
  SassRow row = {.kind = SASS_OTHER, .ops = {SC_NONE, SC_NONE}};
  put_beside(w, &row);
  add_between(w, &row);
  PUSH(w->sc, &w->loop->row, row);
}

static bool continues(const SassRow *row, const Sass *s, SassOps ops, bool open) {
  return row->kind == s->kind && row->line == s->line && row->ops.lo == ops.lo &&
         row->ops.hi == ops.hi && row->number == s->number && (s->kind != SASS_PRODUCT || open);
}

static void add_row(Walk *w, const Sass *s, SassOps ops, bool fenced) {
  SassLoop *l = w->loop;
  if (l->row.n && continues(&l->row.at[l->row.n - 1], s, ops, w->open)) {
    SassRow *last = &l->row.at[l->row.n - 1];
    add_between(w, last);
    last->count++;
    return;
  }
  end_stretch(w);
  SassRow row = {.kind = s->kind, .line = s->line, .ops = ops, .op = s->op, .number = s->number};
  row.count = 1;
  row.fenced = fenced;
  put_beside(w, &row);
  PUSH(w->sc, &l->row, row);
}

static void add_inner(Walk *w, u32 inner) {
  SassLoop *l = w->loop;
  const SassRow *last = l->row.n ? &l->row.at[l->row.n - 1] : NULL;
  if (last && last->kind == SASS_LOOP && last->loop == inner) return;
  end_stretch(w);
  u32 head = w->report->loop.at[inner].head;
  const Ins *ins = &w->report->k->role.at[l->role].code.at[head];
  SassRow row = {.kind = SASS_LOOP, .ops = {head, ins->nest}, .op = "", .loop = inner};
  row.line = sc_sass_line(w->report->k, ins);
  put_beside(w, &row);
  SassOwn own = {SASS_LOOP, row.line, l->row.n, row.ops};
  PUSH(w->sc, &l->row, row);
  PUSH(w->sc, &l->own, own);
}

static void take_own(Walk *w, const Sass *s, bool fenced) {
  SassLoop *l = w->loop;
  u8 part = sc_sass_kind[s->kind].part;
  if (part == PART_REST) return;
  const Kernel *k = w->report->k;
  u32 end = k->role.at[l->role].code.at[l->head].nest;
  SassOps ops = sc_sass_ops(k, l->role, l->head, end, s->line, (SassKind)s->kind);
  if (part == PART_ROW) {
    add_row(w, s, ops, fenced);
  } else {
    w->between.n[s->kind]++;
    l->all.n[s->kind]++;
    l->beside.n[s->kind] += w->flight.n > 0;
    if (ops.lo != SC_NONE) sc_add_line(w->sc, &w->lines, s->line);
  }
  SassOwn own = {s->kind, s->line, part == PART_ROW ? l->row.n - 1 : SC_NONE, ops};
  PUSH(w->sc, &l->own, own);
}

// What products are in flight after an instruction.
static void pass(Walk *w, const Sass *s) {
  if (s->kind == SASS_PRODUCT) {
    if (!w->open) PUSH(w->sc, &w->flight, s->line);
    w->open = !s->ends_group;
  } else if (s->kind == SASS_WAIT_GROUP) {
    u32 stay = s->number + w->open, gone = w->flight.n > stay ? w->flight.n - stay : 0;
    if (!gone) return;
    memmove(w->flight.at, w->flight.at + gone, (w->flight.n - gone) * sizeof *w->flight.at);
    w->flight.n -= gone;
  }
}

static void walk(Walk *w) {
  const SassReport *r = w->report;
  bool fenced = false;
  for (u32 i = 0; i < r->function->code.n; i++) {
    const Sass *s = &r->function->code.at[i];
    if (r->role[i] != w->loop->role + 1 || !is_in(r->function, s->loop, w->loop->natural)) continue;
    u32 inner = inner_loop(r, w->index, i);
    if (w->counts && inner == SC_NONE) take_own(w, s, fenced);
    else if (w->counts) add_inner(w, inner);
    fenced = s->kind == SASS_ARRIVE || (fenced && s->kind != SASS_PRODUCT);
    pass(w, s);
  }
  if (w->counts) end_stretch(w);
}

static void follow_loop(Sc *sc, SassReport *r, u32 index) {
  Walk w = {.sc = sc, .report = r, .index = index, .loop = &r->loop.at[index]};
  walk(&w);
  w.counts = true;
  walk(&w);
  sc_compare_order(sc, r, w.loop);
}

void sc_follow_sass(Sc *sc, const Kernel *k, const SassFunction *function, SassReport *out) {
  *out = (SassReport){.k = k, .function = function};
  find_roles(sc, out);
  settle_products(out);
  for (u32 role = 0; role < k->role.n; role++) find_loops(sc, out, role);
  for (u32 i = 0; i < out->loop.n; i++) follow_loop(sc, out, i);
}
