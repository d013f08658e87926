// cost.c - what each operation of a role costs. In: a placed kernel, and the machine. Out: for each
// operation its cycles alone and what it needs of each pipe, by cost.def. Element-wise statements
// are counted as the emitter writes them: what depends on the row alone once a row, what does not
// depend on an index not at all, and only the columns that are changed.
//
// A warp issues in order, and ptxas puts instructions of a kind side by side; so of one warp's
// statement the pipes are busy one after the other. Warps of other instances fill the gaps.
#include "compiler/layout/layout.h"
#include "runtime/tune/timeline.h"

typedef struct OpCost {
  double cycles;
} OpCost;
typedef struct ExprCost {
  double fma, alu, mufu;
} ExprCost;
typedef struct MoveCost {
  double memory, shuffles, alu;
} MoveCost;

// The rows of cost.def by name.
#define OP_COST(id, cycles) static const OpCost cost_##id = {cycles};
#define EXPR_COST(id, fma, alu, mufu) static const ExprCost expr_##id = {fma, alu, mufu};
#define MOVE_COST(id, memory, shuffles, alu) \
  static const MoveCost move_##id = {memory, shuffles, alu};
#include "runtime/tune/cost.def"

// For each row of the compiler's tables its row of cost.def.
static const OpCost *const of_op[] = {
#define OP(id, text, args, effects) &cost_##id,
#include "compiler/ir/ops.def"
#undef OP
};
static const ExprCost *const of_expr[] = {
#define X(id, text, binds, arity, sig, slow, error, c, c_int) &expr_##id,
#include "compiler/ir/expr.def"
};
static const MoveCost *const of_move[] = {
#define MOVE(id, text) &move_##id,
#include "compiler/layout/move.def"
#undef MOVE
};

typedef struct Coster {
  Sc *sc;
  const Kernel *k;
  const Role *role;
  const schedc_machine *m;
  const Map *map;
  Below below;
  u8 *free;                                 // by expression: it is a part of another's instruction
  double fma, alu, mufu, memory, shuffles;  // instructions of a warp
  double bytes;                             // to and from tensors, of all threads
  double latency;                           // cycles
} Coster;

// ---- how often

static double known(const Kernel *k, const Map *m, i8 var) { return (double)sc_extent(k, m, var); }

// Rows of a thread, and its elements of one: as the accumulator has them.
static double rows_of(const Coster *c) {
  double rows = known(c->k, c->map, c->map->row);
  return rows ? rows / (8 * c->role->warps) : 1;
}

static double cols_of(const Coster *c) {
  double cols = known(c->k, c->map, c->map->col);
  return cols ? cols / 4 : 1;
}

// How often a thread computes what varies with these variables.
static double times(const Coster *c, u32 vars) {
  const Map *m = c->map;
  double n = 1, all = 1;
  for (i8 v = 0; v < m->vars; v++) {
    if (!(vars >> v & 1)) continue;
    all *= known(c->k, m, v);
    if (m->held && v == m->row) n *= rows_of(c);
    else if (m->held && v == m->col) n *= cols_of(c);
    else n *= known(c->k, m, v);
  }
  double threads = 32 * c->role->warps;
  return m->held ? n : all < threads ? 1 : all / threads;
}

// ---- columns that something is done to: where(from <= j and j < to, value, nothing)

static double part_of_columns(const Coster *c, Xid cond) {
  const Kernel *k = c->k;
  double cols = known(k, c->map, c->map->col), from = 0, to = cols;
  Below below = x_below(c->sc, k);
  x_begin(&below, 0);
  x_from(&below, cond);
  for (Xid x; (x = x_next(&below));) {
    const Expr *e = &k->expr.at[x];
    i64 n;
    if (e->op == X_AND) continue;
    bool over = e->op == X_LT && k->expr.at[e->a].op == X_IDX && x_const_int(k, e->b, &n);
    bool under = e->op == X_LE && k->expr.at[e->b].op == X_IDX && x_const_int(k, e->a, &n);
    if (!over && !under) return 1;
    if (over && (double)n < to) to = (double)n;
    if (under && (double)n > from) from = (double)n;
    x_skip(&below);
  }
  return cols && to > from ? (to - from) / cols : 1;
}

// Is nothing to be done for the other columns: are they what is written, or 0?
static bool is_nothing(const Coster *c, Xid x, bool sum) {
  const Expr *e = &c->k->expr.at[x];
  if (sum) return e->op == X_REAL && e->num.f == 0;
  return e->op == X_LOAD && c->map->dst != SC_NONE &&
         c->k->view.at[e->ref].buf == c->k->view.at[c->map->dst].buf;
}

// The value that is computed, and for which part of the columns.
static double only_columns(const Coster *c, Xid *x, bool sum) {
  const Expr *e = &c->k->expr.at[*x];
  if (e->op != X_WHERE || !c->map->held || !is_nothing(c, e->c, sum)) return 1;
  double part = part_of_columns(c, e->a);
  if (part < 1 || c->k->expr.at[e->a].deps == DEP_IDX) *x = e->b;
  return part;
}

// ---- elements

static void add_memory(Coster *c, u8 move, const Buf *b, double elements) {
  const MoveCost *cost = of_move[move];
  double pairs = b->rank > 1 && sc_elem[b->elem].bytes == 2 && c->map->pairs ? 0.5 : 1;
  bool packs = move == MOVE_ELEMS || move == MOVE_STRIDED;
  c->memory += elements / 8 * cost->memory * (packs ? pairs : 1);
  c->shuffles += elements / 8 * cost->shuffles;
  c->alu += elements / 8 * cost->alu;
  if (b->space == SP_TENSOR) c->bytes += elements * sc_elem[b->elem].bytes * 32 * c->role->warps;
}

static u8 move_of_read(const Coster *c, u32 view) {
  for (u32 i = 0; i < c->map->reads; i++) {
    const MapRead *read = &c->k->read.at[c->map->read0 + i];
    if (read->view == view) return read->move;
  }
  return MOVE_ELEMS;
}

static void add_load(Coster *c, const Expr *e, double n) {
  const View *v = &c->k->view.at[e->ref];
  const Buf *b = &c->k->buf.at[v->buf];
  bool fragment = c->map->move == MOVE_FRAGMENT && c->map->dst != SC_NONE &&
                  c->k->buf.at[c->k->view.at[c->map->dst].buf].space == SP_REG;
  bool turned = c->map->move == MOVE_TURNED && c->map->dst != SC_NONE;
  u8 move = fragment ? MOVE_FRAGMENT : turned ? MOVE_TURNED : move_of_read(c, e->ref);
  if (b->space != SP_REG) add_memory(c, move, b, n);
  if (b->space == SP_TENSOR && c->latency < c->m->memory_latency) c->latency = c->m->memory_latency;
  bool whole = fragment || turned || (b->layout == LAY_ROW || b->layout == LAY_COL);
  if (sc_elem[b->elem].bytes < 4 && !whole) c->alu += n;
}

// A product that is added at each of its elements is a part of the addition.
static void fuse(Coster *c, const Expr *e, Xid operand) {
  const Expr *o = &c->k->expr.at[operand];
  if (o->op == X_MUL && o->ty == TY_REAL && (o->vars & e->vars) == e->vars) c->free[operand] = 1;
}

static bool folds(const Expr *e) { return e->ty == TY_INT && !x_divides(e->op); }

// A sum, maximum or minimum: a chain for each of a thread's rows, then two steps among the four
// threads of a row, each of which must wait for the other's value.
static void add_reduction(Coster *c, const Expr *e) {
  if (!c->map->held || (e->op == X_SUM && c->map->parts)) return;
  double rows = rows_of(c);
  c->shuffles += 2 * rows;
  if (e->op == X_SUM) c->fma += 2 * rows;
  else c->alu += 2 * rows;
  c->latency += 2 * c->m->shared_latency;
}

static void add_node(Coster *c, Xid x, double part) {
  const Expr *e = &c->k->expr.at[x];
  bool reduces = x_reduces(e->op);
  u32 vars = e->vars | (reduces ? 1u << e->ref | c->k->expr.at[e->a].vars : 0);
  bool columns = c->map->col >= 0 && vars >> c->map->col & 1;
  double n = times(c, vars) * (columns ? part : 1);
  if (e->op == X_LOAD) add_load(c, e, n);
  if (e->op == X_ADD || e->op == X_SUB || e->op == X_SUM) fuse(c, e, e->a);
  if ((e->op == X_ADD || e->op == X_SUB) && !c->free[e->a]) fuse(c, e, e->b);
  if (reduces) add_reduction(c, e);
  if (c->free[x] || folds(e)) return;
  const ExprCost *cost = of_expr[e->op];
  c->fma += n * cost->fma;
  c->alu += n * cost->alu;
  c->mufu += n * cost->mufu;
}

// All that an expression computes at varying places, each node once.
static void add_value(Coster *c, Xid root) {
  double part = only_columns(c, &root, false);
  x_from(&c->below, root);
  for (Xid x; (x = x_next(&c->below));) {
    Xid body = c->k->expr.at[x].a;
    if (c->k->expr.at[x].op == X_SUM) part *= only_columns(c, &body, true);
    if (body != c->k->expr.at[x].a) {
      x_skip(&c->below);
      x_from(&c->below, body);
    }
    add_node(c, x, part);
  }
}

// The elements that a statement writes: packed to 16 or 8 bits, and moved to memory.
static void add_write(Coster *c) {
  const Map *m = c->map;
  const View *dst = &c->k->view.at[m->dst];
  const Buf *b = &c->k->buf.at[dst->buf];
  const Expr *root = &c->k->expr.at[m->root];
  u32 vars = 0;
  for (u32 d = 0; d < dst->rank; d++)
    if (dst->at[d].var >= 0) vars |= 1u << dst->at[d].var;
  double n = times(c, vars), bytes = sc_elem[b->elem].bytes;
  bool copies = root->op == X_LOAD && c->k->buf.at[c->k->view.at[root->ref].buf].elem == b->elem;
  if (bytes < 4 && !copies) c->alu += n / 2 + (bytes == 1 ? n / 4 : 0);
  if (b->space != SP_REG) add_memory(c, m->move, b, n);
}

// A warpgroup's warps are one in each quarter. Memory instructions of all of them go through one
// unit, 128 bytes a cycle: one of a warp that moves 4 bytes a lane takes a cycle.
static Cost elements(Coster *c, const Ins *ins) {
  Cost cost = {.bytes = c->bytes};
  double quarter = 32 / (c->m->pipe_lanes / 4), half = 32 / (c->m->alu_lanes / 4);
  cost.use[PIPE_FMA] = c->fma * quarter;
  cost.use[PIPE_ALU] = c->alu * half;
  cost.use[PIPE_MUFU] = c->mufu * 32 / (c->m->mufu_lanes / 4);
  cost.use[PIPE_ISSUE] = c->fma + c->alu + c->mufu + c->memory + c->shuffles;
  cost.use[PIPE_SHARED] = (c->memory + c->shuffles) * c->role->warps;
  cost.use[PIPE_LINK] = c->bytes / (ins->op == OP_MAPADD ? c->m->add_bytes : c->m->link_bytes);
  double pipes = cost.use[PIPE_FMA] + cost.use[PIPE_ALU] + cost.use[PIPE_MUFU];
  cost.alone =
      of_op[ins->op]->cycles + c->latency + (pipes + cost.use[PIPE_SHARED]) / c->m->warp_rate;
  if (cost.alone < cost.use[PIPE_LINK]) cost.alone = cost.use[PIPE_LINK];
  return cost;
}

static Cost map_cost(Coster *c, const Ins *ins) {
  c->map = &c->k->map.at[ins->arg[0]];
  c->fma = c->alu = c->mufu = c->memory = c->shuffles = c->bytes = c->latency = 0;
  x_begin(&c->below, DEP_IDX | DEP_TILE);
  add_value(c, c->map->root);
  if (c->map->cond) add_value(c, c->map->cond);
  if (c->map->dst != SC_NONE) add_write(c);
  return elements(c, ins);
}

// ---- products and copies

// One wgmma for each 64 rows, up to 256 columns and 32 bytes of the contracted index. Operands in
// shared memory are read by each of them.
static Cost product_cost(const Coster *c, const Ins *ins) {
  const Product *p = &c->k->product.at[ins->arg[0]];
  const Buf *a = &c->k->buf.at[c->k->view.at[p->a].buf];
  double bytes = sc_elem[a->elem].bytes, n = (double)p->cols;
  double wgmmas = (double)p->m / 64 * ((double)p->n / n) * ((double)p->k * bytes / 32);
  Cost cost = {.slice = 64 * n * 32 / bytes / (c->m->tensor_rate * 2 / bytes)};
  double read = (32 * n + (a->space == SP_STAGE ? 64 * 32 : 0)) / c->m->shared_bytes;
  cost.issue = of_op[ins->op]->cycles;
  cost.flops = 2 * (double)(p->m * p->n * p->k);
  cost.use[PIPE_TENSOR] = wgmmas * cost.slice;
  cost.use[PIPE_SHARED] = wgmmas * read;
  cost.alone = wgmmas * (read > cost.slice ? read : cost.slice);
  cost.use[PIPE_ISSUE] = 3 * wgmmas;
  return cost;
}

// The product of each warp by mma.sync, at about half of the rate, its operands by ldmatrix.
static Cost warp_product_cost(const Coster *c, const Ins *ins) {
  Cost cost = product_cost(c, ins);
  cost.use[PIPE_SHARED] *= 4;
  cost.alone = 2 * cost.alone + of_op[ins->op]->cycles;
  return cost;
}

// What asks for memory and waits for the answer: a turn that other CTAs have, copies that others
// are to see.
static bool asks_memory(const Kernel *k, const Ins *ins) {
  if (ins->op == OP_TAKE || ins->op == OP_PASS) return k->turn.at[ins->arg[0]].axis != SC_NONE;
  return ins->op == OP_COPYWAIT && !(ins->flags & INS_READ);
}

static Cost other_cost(const Coster *c, const Ins *ins) {
  bool turn = ins->op == OP_TAKE || ins->op == OP_PASS;
  if (turn && !c->k->turn.at[ins->arg[0]].active) return (Cost){0};
  Cost cost = {.alone = of_op[ins->op]->cycles, .bytes = ins->plan.bytes};
  if (ins->plan.fence) cost.alone += c->m->fence_latency;
  if (ins->plan.sync) cost.alone += c->m->barrier_latency;
  if (asks_memory(c->k, ins)) cost.alone += c->m->memory_latency;
  return cost;
}

static Cost cost_of(Coster *c, const Ins *ins) {
  if (ins->op == OP_MMA) return product_cost(c, ins);
  if (ins->op == OP_MMAWARP) return warp_product_cost(c, ins);
  if (sc_on_map((Op)ins->op)) return map_cost(c, ins);
  return other_cost(c, ins);
}

void sc_share(Cost *cost) {
  for (u32 p = 0; p < PIPE_COUNT; p++) {
    if (cost->use[p] <= 0) continue;
    cost->share[p] = cost->use[p] / cost->alone;
    cost->pipes |= 1u << p;
  }
}

Cost *sc_costs(Sc *sc, const Kernel *k, u32 role, const schedc_machine *machine) {
  const Role *r = &k->role.at[role];
  Cost *cost = NEWS(sc, Cost, r->code.n + 1);
  Coster c = {.sc = sc, .k = k, .role = r, .m = machine, .below = x_below(sc, k)};
  c.free = NEWS(sc, u8, k->expr.n + 1);
  for (u32 i = 0; i < r->code.n; i++) {
    cost[i] = cost_of(&c, &r->code.at[i]);
    sc_share(&cost[i]);
  }
  return cost;
}
