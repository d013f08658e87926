// table.c - makes the table of what a launch of a kernel or sequence needs, which launcher.c reads.
// In: IR after `place`, and what the emitter says of the text: its tensor maps, and which tensors
// are arguments. Out: an SclTable, the same for the library and for C headers. Values are
// expressions over the dimensions and scalars of the whole kernel or sequence. Operands have
// smaller numbers than the values made of them, in the kernel and in the table, so that no walk
// needs recursion.
#include "runtime/cuda/gpu.h"
#include "runtime/data/launchvalue.h"

typedef struct Tabling {
  Sc *sc;
  const Kernel *k;
  bool trusts;
  VEC(SclNode) node;
  VEC(Span) where;
  VEC(unsigned) require;
  VEC(SclTensor) tensor;
  VEC(u32) buf;  // of each tensor
  VEC(SclUse) use;
  VEC(SclMap) map;
  VEC(SclSlot) slot;
  VEC(SclAxis) axis;
  VEC(SclTurn) turn;
  VEC(SclFunction) function;
  VEC(SclStep) step;
  VEC(SclCheck) check;
  TermList terms;
  u32 *number;          // of each buf that is a tensor: the tensor's
  SclPromise *promise;  // … and what is promised of it
  u32 block_bytes, waits;
  // the kernel whose values are being added, and what launches it: NULL of the whole
  const Kernel *of;
  const Launch *launch;
  Span *needed;  // by expression: for what; empty: it is not
  u32 *made;     // by expression: its node
} Tabling;

// ---- values

static void begin_values(Tabling *t, const Kernel *k, const Launch *launch) {
  t->of = k;
  t->launch = launch;
  t->needed = NEWS(t->sc, Span, k->expr.n + 1);
  t->made = NEWS(t->sc, u32, k->expr.n + 1);
}

static void need(void *tabling, Xid x, Span at) {
  Tabling *t = tabling;
  if (x && !t->needed[x].hi) t->needed[x] = at.hi ? at : (Span){0, 1};
}

static SclNode node_of(const Tabling *t, const Expr *e) {
  SclNode n = sc_launch_node(t->of, e);
  if (n.op == SCL_DIM && t->launch) n.a = t->launch->dim[n.a];
  else if (n.op == SCL_ARG && t->launch) n.a = t->launch->arg[n.a];
  if (!sc_xop[e->op].arity || n.op == SCL_LOAD) return n;
  n.a = t->made[n.a];
  n.b = t->made[n.b];
  n.c = t->made[n.c];
  return n;
}

// Makes nodes for all values that are needed, and for their operands.
static void make_values(Tabling *t) {
  const Kernel *k = t->of;
  for (Xid x = k->expr.n; x-- > 1;) {
    const Expr *e = &k->expr.at[x];
    if (!t->needed[x].hi || e->deps & ~DEP_DIM || !sc_xop[e->op].arity) continue;
    need(t, e->a, t->needed[x]);
    need(t, e->b, t->needed[x]);
    need(t, e->c, t->needed[x]);
  }
  for (Xid x = 1; x < k->expr.n; x++) {
    if (!t->needed[x].hi) continue;
    t->made[x] = t->node.n;
    PUSH(t->sc, &t->node, node_of(t, &k->expr.at[x]));
    PUSH(t->sc, &t->where, t->needed[x]);
  }
}

static void need_whole(Tabling *t) {
  const Kernel *k = t->k;
  for (u32 i = 0; i < k->require.n; i++) need(t, k->require.at[i].cond, k->require.at[i].span);
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *b = &k->buf.at[i];
    for (u32 d = 0; b->space == SP_TENSOR && d < b->rank; d++) need(t, b->dim[d], b->span);
  }
}

// The ranges that are declared of elements.
static void need_ranges(Tabling *t) {
  for (u32 i = 0; i < t->of->buf.n; i++) {
    const Buf *b = &t->of->buf.at[i];
    need(t, b->least, b->span);
    need(t, b->end, b->span);
  }
}

// ---- tensors

static void add_tensors(Tabling *t, SclKind kind) {
  for (u32 i = 0; i < t->k->buf.n; i++) {
    const Buf *b = &t->k->buf.at[i];
    SclKind its = !b->workspace ? SCL_GIVEN : b->zeroed ? SCL_ZEROED : SCL_WORKSPACE;
    if (b->space != SP_TENSOR || its != kind) continue;
    SclTensor tensor = {kind, b->rank, sc_elem[b->elem].bytes, {0}};
    for (u32 d = 0; d < b->rank; d++) tensor.dim[d] = t->made[b->dim[d]];
    t->number[i] = t->tensor.n;
    t->promise[i] = (SclPromise){t->tensor.n, t->made[b->least], t->made[b->end], b->rising};
    PUSH(t->sc, &t->tensor, tensor);
    PUSH(t->sc, &t->buf, i);
  }
}

static u32 tensor_of(const Tabling *t, u32 buf) {
  return t->number[t->launch ? t->launch->tensor[buf] : buf];
}

static void add_uses(Tabling *t, const Kernel *k, const CudaText *text) {
  for (u32 i = 0; i < k->buf.n; i++) {
    if (k->buf.at[i].space != SP_TENSOR) continue;
    SclUse use = {tensor_of(t, i), sc_elem[k->buf.at[i].elem].bytes, 0, 0};
    use.written = (k->buf.at[i].dir & F_OUT) != 0;
    for (u32 m = 0; m < text->maps; m++) use.copied |= text->map[m].tensor == i;
    if (use.copied || text->wide[i]) use.align = 16;
    PUSH(t->sc, &t->use, use);
  }
}

// ---- tensor maps

static int map_type(Elem e) {
  switch (e) {
    case EL_F32: return 7;
    case EL_F16: return 6;
    case EL_BF16: return 9;
    case EL_I32: return 3;
    default: return 0;  // 8-bit: bytes
  }
}

// Adds a tensor map. Its dimensions are those of sc_cuda_map_dims, filled up to five.
static void add_map(Tabling *t, const Kernel *k, const TmaMap *m) {
  const Buf *b = &k->buf.at[m->tensor], *part = &k->buf.at[m->part];
  i8 dims[5];
  u32 n = sc_cuda_map_dims(m, b->rank, dims), bytes = sc_elem[b->elem].bytes;
  u32 width = (part->swizzle ? part->swizzle : (u32)part->ext[part->rank - 1] * bytes) / bytes;
  u32 panels = (u32)part->ext[part->rank - 1] / width, part_dim = part->rank - 1u;
  SclMap map = {.tensor = tensor_of(t, m->tensor), .written = (b->dir & SCHEDC_OUT) != 0};
  map.type = map_type((Elem)b->elem);
  map.panel = width;
  map.swizzle = part->swizzle == 128 ? 3 : part->swizzle == 64 ? 2 : part->swizzle == 32 ? 1 : 0;
  for (u32 i = 0; i < 5; i++) {
    map.dim[i] = i >= n                     ? SCL_ONE
                 : dims[i] == MAP_PANEL_COL ? SCL_PANEL_COLUMN
                 : dims[i] == MAP_PANEL     ? SCL_PANEL
                                            : dims[i];
    map.box[i] = i ? 1 : width;
    if (map.dim[i] == SCL_PANEL) map.box[i] = panels % m->ctas ? panels : panels / m->ctas;
    if (i && map.dim[i] >= 0 && m->sliced[map.dim[i]]) map.box[i] = (u32)part->ext[--part_dim];
  }
  if (panels % m->ctas) map.box[1] /= m->ctas;
  PUSH(t->sc, &t->map, map);
}

// ---- the block of arguments, in the order in which the emitted struct declares them

static void put(Tabling *t, u32 *bytes, SclSlotKind kind, u32 ref, u32 dim, u32 size) {
  *bytes = (*bytes + size - 1) / size * size;
  PUSH(t->sc, &t->slot, ((SclSlot){kind, ref, dim, *bytes}));
  *bytes += size;
}

static void add_slots(Tabling *t, const Kernel *k, const CudaText *text, u32 turns) {
  u32 n = 0;
  for (u32 i = 0; i < k->buf.n; i++) {
    if (k->buf.at[i].space != SP_TENSOR || !text->by_thread[i]) continue;
    put(t, &n, SCL_PUT_ADDRESS, tensor_of(t, i), 0, 8);
    for (u32 d = 0; d < k->buf.at[i].rank; d++) put(t, &n, SCL_PUT_STRIDE, tensor_of(t, i), d, 8);
  }
  for (u32 i = 0; i < k->dim.n; i++)
    put(t, &n, SCL_PUT_DIM, t->launch ? t->launch->dim[i] : i, 0, 4);
  for (u32 i = 0; i < k->arg.n; i++)
    put(t, &n, k->arg.at[i].elem == EL_I32 ? SCL_PUT_I32 : SCL_PUT_F32,
        t->launch ? t->launch->arg[i] : i, 0, 4);
  if (k->grid == GRID_DYNAMIC) put(t, &n, SCL_PUT_COUNTER, 0, 0, 8);
  for (u32 i = turns; i < t->turn.n; i++) put(t, &n, SCL_PUT_TURN, i, 0, 8);
  if (text->wait_words) put(t, &n, SCL_PUT_WAITS, t->waits, 0, 8);
  put(t, &n, SCL_PUT_TILES, 0, 0, 4);
  t->waits += text->wait_words * 4;
  t->block_bytes += (n + 15) / 16 * 16;
}

// ---- grids

static void add_grid(Tabling *t, const Kernel *k) {
  u32 first = t->axis.n;
  for (u32 i = 0; i < k->axis.n; i++) {
    const Axis *x = &k->axis.at[i];
    PUSH(t->sc, &t->axis,
         ((SclAxis){t->made[x->extent], x->section ? t->made[x->section] : 0, x->cluster}));
  }
  for (u32 i = 0; i < k->turn.n; i++) {
    const Turn *turn = &k->turn.at[i];
    if (!sc_turn_over_ctas(turn)) continue;
    PUSH(t->sc, &t->turn, ((SclTurn){turn->keys ? t->made[turn->keys] : 0, first + turn->axis}));
  }
}

// The number of the kernel's function, which is added the first time. A kernel that is launched
// twice is one function.
static u32 function_of(Tabling *t, const Kernel *k, const CudaText *text) {
  for (u32 i = 0; i < t->function.n; i++) {
    if (t->function.at[i].name == text->name) return i;
  }
  SclFunction f = {text->name, k->threads, text->smem, sc_cluster(k), k->grid != GRID_PLAIN};
  PUSH(t->sc, &t->function, f);
  return t->function.n - 1;
}

// ---- lists

// Has an earlier launch the same list checked, and has none written it since?
static bool is_checked(const Kernel *k, u32 launch, u32 buf) {
  while (launch-- > 0) {
    const Launch *l = &k->launch.at[launch];
    for (u32 i = 0; i < l->kernel->buf.n; i++) {
      const Buf *b = &l->kernel->buf.at[i];
      if (l->tensor[i] != buf) continue;
      if (b->dir & F_OUT) return false;
      if (sc_is_promised(b)) return true;
    }
  }
  return false;
}

static void add_list(Tabling *t, u32 buf, u32 first_check) {
  if (t->check.n == first_check || t->check.at[t->check.n - 1].lists == SCL_LISTS)
    PUSH(t->sc, &t->check, ((SclCheck){0}));
  SclCheck *c = &t->check.at[t->check.n - 1];
  c->list[c->lists++] = t->promise[buf];
}

// Adds what is to be looked at before the kernel begins: first of all, the lists that no kernel
// writes; then of each kernel those that others write.
static void add_checks(Tabling *t, const Kernel *k, u32 launch, SclSpan *out) {
  out->from = t->check.n;
  for (u32 i = 0; i < t->k->buf.n && !launch; i++)
    if (sc_is_promised(&t->k->buf.at[i])) add_list(t, i, out->from);
  for (u32 i = 0; i < k->buf.n && t->launch; i++) {
    const u32 buf = t->launch->tensor[i];
    if (sc_is_promised(&k->buf.at[i]) && !sc_is_promised(&t->k->buf.at[buf]) &&
        !is_checked(t->k, launch, buf))
      add_list(t, buf, out->from);
  }
  out->to = t->check.n;
}

// ---- launches

static void add_step(Tabling *t, const Kernel *k, const CudaText *text) {
  SclStep s = {.function = function_of(t, k, text), .block = t->block_bytes};
  s.use.from = t->use.n, s.map.from = t->map.n, s.slot.from = t->slot.n;
  s.axis.from = t->axis.n, s.turn.from = t->turn.n, s.term.from = t->terms.term.n;
  add_uses(t, k, text);
  for (u32 i = 0; i < text->maps; i++) add_map(t, k, &text->map[i]);
  add_grid(t, k);
  add_slots(t, k, text, s.turn.from);
  s.use.to = t->use.n, s.map.to = t->map.n, s.slot.to = t->slot.n;
  sc_terms(t->sc, k, t->launch, t->made, &t->terms);
  s.axis.to = t->axis.n, s.turn.to = t->turn.n, s.term.to = t->terms.term.n;
  if (!t->trusts) add_checks(t, k, t->step.n, &s.check);
  PUSH(t->sc, &t->step, s);
}

static SclTable finished(Tabling *t) {
  const u32 checker = t->function.n;
  const SclFunction lists = {CUDA_LISTS, CUDA_LIST_THREADS, 0, 1, 0};
  if (t->check.n) PUSH(t->sc, &t->function, lists);
  SclTable table = {.node = t->node.at,
                    .nodes = t->node.n,
                    .dims = t->k->dim.n,
                    .require = t->require.at,
                    .requires_ = t->require.n,
                    .tensor = t->tensor.at,
                    .tensors = t->tensor.n,
                    .use = t->use.at,
                    .map = t->map.at,
                    .slot = t->slot.at,
                    .axis = t->axis.at,
                    .turn = t->turn.at,
                    .function = t->function.at,
                    .functions = t->function.n,
                    .term = t->terms.term.at,
                    .terms = t->terms.term.n,
                    .check = t->check.at,
                    .checks = t->check.n,
                    .checker = checker,
                    .step = t->step.at,
                    .steps = t->step.n,
                    .maps = t->map.n,
                    .turns = t->turn.n,
                    .block_bytes = t->block_bytes};
  for (u32 i = 0; i < t->tensor.n; i++) table.given += t->tensor.at[i].kind == SCL_GIVEN;
  for (u32 i = 0; i < t->slot.n; i++) table.dynamic |= t->slot.at[i].kind == SCL_PUT_COUNTER;
  return table;
}

void sc_table(Sc *sc, const Kernel *k, const CudaText *text, bool trusts, Tabled *out) {
  Tabling t = {.sc = sc, .k = k, .trusts = trusts, .number = NEWS(sc, u32, k->buf.n + 1)};
  t.promise = NEWS(sc, SclPromise, k->buf.n + 1);
  PUSH(sc, &t.node, ((SclNode){0}));
  PUSH(sc, &t.where, ((Span){0}));
  PUSH(sc, &t.terms.term, ((SclTerm){0}));
  PUSH(sc, &t.terms.of, ((TermOf){0}));
  begin_values(&t, k, NULL);
  need_whole(&t);
  need_ranges(&t);
  if (!k->launch.n) sc_grid_exprs(k, need, &t);
  make_values(&t);
  for (u32 i = 0; i < k->require.n; i++) PUSH(sc, &t.require, t.made[k->require.at[i].cond]);
  add_tensors(&t, SCL_GIVEN);
  add_tensors(&t, SCL_ZEROED);
  add_tensors(&t, SCL_WORKSPACE);
  for (u32 i = 0; i < k->launch.n; i++) {
    begin_values(&t, k->launch.at[i].kernel, &k->launch.at[i]);
    sc_grid_exprs(t.of, need, &t);
    need_ranges(&t);
    make_values(&t);
    add_step(&t, t.of, text->step[i]);
  }
  if (!k->launch.n) add_step(&t, k, text);
  *out = (Tabled){finished(&t), t.buf.at, t.where.at, t.terms.of.at};
}
