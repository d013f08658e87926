// share.c - values that emitted code needs more than once. Expressions share their operands, and
// text does not: forty sums of a value and itself, written out at each use, would fill any memory.
// In: a role's operations, or an expression and the element for which it is written. Out: a
// variable for each value that is used more than once and is long. The variable of a uniform value
// is declared at the head of the innermost loop, or of the tile, that the value depends on, if it
// is used there; that of an element's value in the block being written. Invariant: a value without
// a name has a text shorter than LONG, or one use, so that texts grow only as expressions do.
//
// A variable is computed whether its uses are reached or not. That does no harm, except for a
// division by zero, which stops the host that runs the model: what may divide by zero gets none.
// Called by frame.c, grid.c, map.c and write.c; calls scope.c for names, expr.c and stmt.c.
#include "compiler/emit/emit.h"

#include <stdlib.h>

// The operations and leaves of a text from which on it is long.
enum { LONG = 24, TOO_LONG = 1 << 20 };

// ---- what is below an expression, in the order in which it is computed

// An operand has a smaller number than what it is an operand of.
static void sort(Cuda *c) { sc_sort_u32(c->order.at, c->order.n); }

// What stands for the expression in the statement being written, or NULL.
static bool has_name(const Cuda *c, Xid x) {
  const Hoist *h = &c->hoist[x];
  return h->name && h->statement == c->statement;
}

// The operands that are written out with x: none if x has a name.
static u32 parts(const Cuda *c, Xid x, Xid part[SC_MAX_OPERANDS]) {
  return has_name(c, x) ? 0 : x_operands(c->k, x, part);
}

// Counts the uses of x's operands. A load's count twice, as the test that the element lies inside
// its tensor has them as well.
static void count_parts(Cuda *c, Xid x) {
  Xid part[SC_MAX_OPERANDS];
  u32 n = parts(c, x, part), times = c->k->expr.at[x].op == X_LOAD ? 2 : 1;
  for (u32 i = 0; i < n; i++) c->use[part[i]].times += times;
}

// Measures the text that a use of x would be without a name, from its operands' measures.
static void measure(Cuda *c, Xid x) {
  Use *u = &c->use[x];
  Xid part[SC_MAX_OPERANDS];
  u32 n = parts(c, x, part);
  u->size = 1;
  u->traps = cu_may_divide_by_0(c, &c->k->expr.at[x]);
  for (u32 i = 0; i < n; i++) {
    u->size += c->use[part[i]].size;
    u->traps |= c->use[part[i]].traps;
  }
  if (u->size > TOO_LONG) u->size = TOO_LONG;
}

static bool wants_name(const Use *u) { return u->times > 1 && u->size >= LONG && !u->traps; }

// ---- uniform values

// Adds the extents of axes and tensors, which tests of positions use.
static void from_kernel(Cuda *c) {
  const Kernel *k = c->k;
  sc_grid_exprs(k, x_visit, &c->below);
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *b = &k->buf.at[i];
    for (u32 d = 0; b->space == SP_TENSOR && d < b->rank; d++) x_from(&c->below, b->dim[d]);
  }
}

static void forget(Cuda *c) {
  c->kept.n = c->kept_of_tile = 0;
  for (u32 i = 0; i < c->k->loop.n; i++) c->kept_of[i] = 0;
  for (Xid x = 0; x < c->k->expr.n; x++) c->use[x] = (Use){.loop = SC_NONE};
}

// The inner one of two loops that stand around one place.
static u32 inner(const Cuda *c, u32 a, u32 b) {
  if (a == SC_NONE || b == SC_NONE) return a == SC_NONE ? b : a;
  return c->opened[a] > c->opened[b] ? a : b;
}

static void find_loop(Cuda *c, Xid x) {
  Use *u = &c->use[x];
  Xid operand[SC_MAX_OPERANDS];
  u32 n = x_operands(c->k, x, operand);
  u->loop = c->k->expr.at[x].op == X_LOOP ? c->k->expr.at[x].ref : SC_NONE;
  for (u32 i = 0; i < n; i++) u->loop = inner(c, u->loop, c->use[operand[i]].loop);
}

// Gives names to those values that the walk meets which need one.
static void name_uniforms(Cuda *c) {
  c->order.n = 0;
  for (Xid x; (x = x_next(&c->below));) {
    PUSH(c->sc, &c->order, x);
    count_parts(c, x);
  }
  sort(c);
  for (u32 i = 0; i < c->order.n; i++) {
    Xid x = c->order.at[i];
    Use *u = &c->use[x];
    if (!x_uniform(c->k, x)) continue;
    measure(c, x);
    find_loop(c, x);
    if (!c->xname[x] && wants_name(u)) cu_name_value(c, x, "value");
    if (c->xname[x]) *u = (Use){.size = 1, .loop = u->loop};
  }
}

static int by_let(const void *a, const void *b) {
  const Kept *x = a, *y = b;
  if (x->let != y->let) return x->let < y->let ? -1 : 1;
  return x->value < y->value ? -1 : x->value > y->value;
}

// Keeps the named values in the order of the schedule's `let`s, each after those that it uses.
static void keep_named(Cuda *c) {
  Xid part[SC_MAX_OPERANDS];
  for (u32 i = 0; i < c->order.n; i++) c->use[c->order.at[i]].let = SC_NONE;
  for (u32 i = c->k->let.n; i-- > 0;) c->use[c->k->let.at[i].value].let = i;
  for (u32 i = c->order.n; i-- > 0;) {
    Xid x = c->order.at[i];
    u32 n = parts(c, x, part), let = c->use[x].let;
    for (u32 d = 0; d < n; d++) {
      if (let < c->use[part[d]].let) c->use[part[d]].let = let;
    }
    if (c->xname[x]) PUSH(c->sc, &c->kept, ((Kept){.value = x, .let = let}));
  }
  if (c->kept.n) qsort(c->kept.at, c->kept.n, sizeof *c->kept.at, by_let);
  for (u32 i = 0; i < c->kept.n; i++) {
    u32 loop = c->use[c->kept.at[i].value].loop;
    u32 *last = loop == SC_NONE ? &c->kept_of_tile : &c->kept_of[loop];
    c->kept.at[i].before = *last;
    *last = i + 1;
  }
}

static void begin(Cuda *c) {
  forget(c);
  x_begin(&c->below, 0);
  from_kernel(c);
}

void cu_share_extents(Cuda *c) {
  begin(c);
  name_uniforms(c);
  keep_named(c);
}

void cu_share(Cuda *c) {
  const Code *code = &c->k->role.at[c->r].code;
  begin(c);
  for (u32 pc = 0; pc < code->n; pc++) {
    sc_ins_exprs(c->k, &code->at[pc], x_visit, &c->below);
    if (code->at[pc].op == OP_FOR) c->opened[code->at[pc].arg[0]] = pc;
  }
  name_uniforms(c);
  keep_named(c);
}

// ---- declarations, once it is known what is used

// Declares the values that are used. It goes backwards, as a value that is used may use earlier
// ones.
static void declare(Cuda *c, u32 kept) {
  for (u32 i = kept; i; i = c->kept.at[i - 1].before) {
    Xid x = c->kept.at[i - 1].value;
    const char *name = c->xname[x] + 1;  // behind the '$'
    if (!cu_used(c, name)) continue;
    Stmt *value = cu_begin(c);
    c->xname[x] = NULL;
    c->unasked = true;
    cu_var(c, "const %s %s = %s;", cu_ctype(c, x), name, cu_uniform(c, x).s);
    c->unasked = false;
    cu_close(c);
    cu_insert(c, NULL, value);
  }
}

void cu_declare_of_tile(Cuda *c) { declare(c, c->kept_of_tile); }
void cu_declare_of_loop(Cuda *c, u32 loop) { declare(c, c->kept_of[loop]); }

// ---- values of an element

// Lists the values below an expression that are not uniform, as this statement writes them.
static void meet_written(Cuda *c, Xid root) {
  c->order.n = 0;
  x_begin(&c->below, DEP_IDX | DEP_TILE);
  x_from(&c->below, root);
  for (Xid x; (x = x_next(&c->below));) {
    PUSH(c->sc, &c->order, x);
    c->use[x] = (Use){.loop = SC_NONE};
    if (has_name(c, x)) x_skip(&c->below);
  }
  sort(c);
}

Txt cu_value(Cuda *c, const At *at, Xid root) {
  At here = *at;
  here.element = ++c->elements;
  meet_written(c, root);
  for (u32 i = c->order.n; i-- > 0;) count_parts(c, c->order.at[i]);
  for (u32 i = 0; i < c->order.n; i++) {
    Xid x = c->order.at[i];
    Use *u = &c->use[x];
    measure(c, x);
    if (!wants_name(u)) continue;
    const char *name = cu_temp(c, "value");
    cu_var(c, "const %s %s = %s;", cu_ctype(c, x), name, cu_expr(c, &here, x).s);
    *u = (Use){.size = 1, .element = here.element, .name = name};
  }
  return cu_expr(c, &here, root);
}
