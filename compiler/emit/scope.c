// scope.c - the names of a role's values in emitted text, and the places where they are declared.
// In: a role. Out: a name for each of its register tiles and loops; for each tile, the operation
// before which it is declared; and declarations of those uniform values of the schedule, and of
// those numbers of the thread (its lane, warp, row), that the role uses.
//
// Called by frame.c and by the files of statements; calls block.c, tile.c and expr.c.
#include "compiler/emit/emit.h"
#include "compiler/flow/flow.h"

#include <string.h>

// ---- where register tiles are declared

typedef struct Reach {
  u32 first, last;  // operations that touch the tile
  bool whole;       // the first one writes all of it, without reading it
  bool product;     // a product has it, which may be in flight for longer than any operation says
} Reach;

static void touch(Reach *r, u32 pc, bool whole) {
  if (r->first == SC_NONE) {
    r->first = pc;
    r->whole = whole;
  }
  r->whole &= whole || r->first != pc;
  r->last = pc;
}

static void touch_all(Cuda *c, Reach *reach, u32 pc) {
  const Kernel *k = c->k;
  const Ins *ins = &k->role.at[c->r].code.at[pc];
  for (u32 i = 0; i < ins->accesses; i++) {
    const ViewAccess *a = sc_view_access(k, ins, i);
    const View *v = &k->view.at[a->view];
    if (k->buf.at[v->buf].space != SP_REG) continue;
    touch(&reach[v->buf], pc, a->write && sc_writes_all(k, ins, v));
    reach[v->buf].product |= ins->op == OP_MMA;
  }
}

u32 sc_block_end(const Code *code, u32 pc) {
  if (sc_op[code->at[pc].op].effects & CLOSES) return pc;
  u32 open = code->at[pc].around, end = code->at[open].nest;
  return pc <= end ? end : sc_closed_by(code, open);
}

// A register tile that only one block uses is declared in that block, if no product uses it. All
// others are declared at the head of the tile of the grid.
static void place_declarations(Cuda *c) {
  const Kernel *k = c->k;
  const Code *code = &k->role.at[c->r].code;
  Reach *reach = NEWS(c->sc, Reach, k->buf.n + 1);
  for (u32 i = 0; i < k->buf.n; i++) reach[i].first = SC_NONE;
  for (u32 pc = 0; pc < code->n; pc++) touch_all(c, reach, pc);
  for (u32 i = 0; i < k->buf.n; i++) {
    const Reach *r = &reach[i];
    if (k->buf.at[i].space != SP_REG || k->buf.at[i].role != c->r) continue;
    u32 end = r->first == SC_NONE ? 0 : sc_block_end(code, r->first);
    bool local = r->first != SC_NONE && r->whole && !r->product && r->last < end;
    c->scope[i] =
        local ? (Scope){r->first, end, r->first, r->last} : (Scope){1, code->n, r->first, r->last};
  }
}

static void declare(Cuda *c, u32 buf) {
  const Buf *b = &c->k->buf.at[buf];
  bool acc = b->layout == LAY_ACC;
  const char *type = acc && sc_is_narrow(b->elem) ? "u32" : cu_held(b->elem);
  const char *blocks = acc && sc_blocks(c->k, b) > 1 ? cu_text(c, "[%u]", sc_blocks(c->k, b)) : "";
  const char *extents = acc ? cu_text(c, "%lld, %lld", (long long)b->ext[0], (long long)b->ext[1])
                            : cu_text(c, "%lld", (long long)b->ext[0]);
  cu_var(c, "%s %s%s[%u];", type, c->name[buf], blocks, cu_array(c, buf));
  cu_note(c, cu_text(c, "%s[%s]%s", sc_elem[b->elem].text, extents,
                     b->partial ? ", this lane's part" : ""));
}

// The operation before which a register tile is declared. One of the whole grid tile stands where
// the schedule declares it, if only statements come before that (up to operation `head`) and none
// touches it. `line`: for each of these operations the position in the schedule where its line, or
// the last one before it, ends.
static u32 declared_at(const Cuda *c, u32 buf, const u32 *line, u32 head) {
  const Scope *s = &c->scope[buf];
  u32 lo = s->from, hi = s->first < head ? s->first : head;
  if (hi < lo) return lo;
  while (lo < hi) {  // the first whose line is not before the tile's
    u32 mid = lo + (hi - lo) / 2;
    if (line[mid] < c->k->buf.at[buf].span.lo) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

static void find_declarations(Cuda *c) {
  const Kernel *k = c->k;
  const Code *code = &k->role.at[c->r].code;
  u32 *line = NEWS(c->sc, u32, code->n + 1), head = 0;
  for (; head < code->n && (code->at[head].op == OP_TILE || code->at[head].op == OP_MAP); head++) {
    u32 end = code->at[head].span.hi, before = head > 1 ? line[head - 1] : 0;
    line[head] = end > before ? end : before;
  }
  c->declares = NEWS(c->sc, u32, code->n + 1);
  for (u32 i = k->buf.n; i-- > 0;) {  // backwards, so that the lists go forwards
    const Buf *b = &k->buf.at[i];
    if (b->space != SP_REG || b->role != c->r || c->scope[i].first == SC_NONE) continue;
    u32 *first = &c->declares[declared_at(c, i, line, head)];
    c->declares_next[i] = *first;
    *first = i + 1;
  }
}

void cu_declare(Cuda *c) {
  for (u32 i = c->declares[c->pc]; i; i = c->declares_next[i - 1]) {
    cu_cite(c, c->k->buf.at[i - 1].span);
    declare(c, i - 1);
  }
}

// ---- names

// May two variables have the same name? Yes if neither is in scope where the other is, or if one is
// in an inner block in which the other is not used.
static bool may_share_name(Scope a, Scope b) {
  Scope in = a.from > b.from ? a : b, out = a.from > b.from ? b : a;
  return out.to <= in.from || (in.to < out.to && (out.last < in.from || in.to <= out.first));
}

static u32 use_of(const Cuda *c, const char *name) {
  return sc_key_number(&c->use_of, 0, name, strlen(name));
}

static NameUse *make_use(Cuda *c, const char *name) {
  u32 *n = &sc_key(c->sc, &c->use_of, 0, name, strlen(name))->number;
  if (!c->name_use.n) PUSH(c->sc, &c->name_use, (NameUse){0});
  if (!*n) {
    *n = c->name_use.n;
    PUSH(c->sc, &c->name_use, (NameUse){0});
  }
  return &c->name_use.at[*n];
}

static bool taken(const Cuda *c, const char *name, Scope scope) {
  u32 n = use_of(c, name);
  if (!n || c->name_use.at[n].end <= scope.from) return false;
  for (u32 i = c->name_use.at[n].newest; i; i = c->named.at[i - 1].older) {
    if (!may_share_name(c->named.at[i - 1].scope, scope)) return true;
  }
  return false;
}

static void take(Cuda *c, const char *name, Scope scope) {
  NameUse *use = make_use(c, name);
  PUSH(c->sc, &c->named, ((Named){scope, use->newest}));
  use->newest = c->named.n;
  if (scope.to > use->end) use->end = scope.to;
}

static bool same_scope(Scope a, Scope b) {
  return a.from == b.from && a.to == b.to && a.first == b.first && a.last == b.last;
}

// A name that nothing else has in the value's scope: `plain`, or one formed of a stem and a number.
// Names that were given to other values of this scope are not given again.
static const char *name_of(Cuda *c, const char *plain, const char *stem, const char *form,
                           Scope scope) {
  const NameUse *before = make_use(c, stem);
  u32 n = same_scope(before->scope, scope) ? before->next : 1;
  const char *name = plain;
  for (;; n++) {
    if (n > 1) name = cu_text(c, form, stem, n);
    if (!taken(c, name, scope)) break;
  }
  take(c, name, scope);
  NameUse *use = make_use(c, stem);
  use->scope = scope;
  use->next = n + 1;
  return name;
}

static const char *name_in(Cuda *c, Sym sym, Scope scope) {
  return name_of(c, sc_cuda_name(c->sc, sym), sym, "%s_%u", scope);
}

static bool has_name(const Kernel *k, const Let *l) {
  const Expr *e = &k->expr.at[l->value];
  return !(e->deps & (DEP_LOOP | DEP_IDX | DEP_TILE)) && sc_xop[e->op].arity;
}

// Strides of a tensor; that of its last dimension is 1.
static u32 strides(const Kernel *k, u32 buf) {
  const Buf *b = &k->buf.at[buf];
  return b->space == SP_TENSOR && b->rank ? b->rank - 1 : 0;
}

// Begins to count the uses of the names that a role declares only if it uses them.
static void count_names(Cuda *c) {
  static const char *const own[] = {"instance", "thread", "warp", "lane", "row0", "col0"};
  sc_keys_clear(&c->in_role);
  for (u32 i = 0; i < COUNT(own); i++) cu_name(c, own[i]);
  for (u32 i = 0; i < c->k->axis.n; i++) cu_name(c, cu_axis_name(c, i));
  for (u32 i = 0; i < c->k->buf.n; i++) {
    for (u32 d = 0; d < strides(c->k, i); d++) cu_name(c, cu_stride_name(c, i, d));
  }
}

void cu_name_value(Cuda *c, Xid x, Sym sym) {
  u32 end = c->k->role.at[c->r].code.n;
  const char *name = name_in(c, sym, (Scope){0, end, 0, end});
  cu_name(c, name);
  c->xname[x] = cu_text(c, "$%s", name);
}

void cu_forget_names(Cuda *c) {
  c->named.n = c->name_use.n = 0;
  sc_keys_clear(&c->use_of);
  memset(c->xname, 0, sizeof *c->xname * c->k->expr.n);
}

void cu_name_role(Cuda *c) {
  const Kernel *k = c->k;
  const Code *code = &k->role.at[c->r].code;
  cu_forget_names(c);
  count_names(c);
  for (u32 i = 0; i < k->let.n; i++) {
    const Let *let = &k->let.at[i];
    if (has_name(k, let) && !c->xname[let->value]) cu_name_value(c, let->value, let->name);
  }
  place_declarations(c);
  find_declarations(c);
  for (u32 i = 0; i < k->buf.n; i++) {
    if (k->buf.at[i].space == SP_REG && k->buf.at[i].role == c->r)
      c->name[i] = name_in(c, k->buf.at[i].name, c->scope[i]);
  }
  for (u32 pc = 0; pc < code->n; pc++) {
    u32 loop = code->at[pc].arg[0];
    if (code->at[pc].op == OP_FOR)
      c->loop[loop] =
          name_in(c, k->loop.at[loop].name, (Scope){pc, code->at[pc].nest, pc, code->at[pc].nest});
  }
}

const char *cu_temp(Cuda *c, const char *stem) {
  return name_of(c, stem, stem, "%s%u", (Scope){c->pc, c->pc + 1, c->pc, c->pc});
}

// A name for a value that is computed once and used by several statements. It holds up to operation
// *to: the next statement that writes `buf`, and never beyond the present block, as that may be a
// loop's.
const char *cu_lasting(Cuda *c, const char *stem, u32 buf, u32 *to) {
  const Kernel *k = c->k;
  const Code *code = &k->role.at[c->r].code;
  u32 end = sc_block_end(code, c->pc);
  bool same = true;
  for (*to = c->pc; *to < end && same && !(sc_op[code->at[*to].op].effects & OPENS); ++*to) {
    const Ins *ins = &code->at[*to];
    same = ins->op != OP_MAP || k->view.at[k->map.at[ins->arg[0]].dst].buf != buf;
  }
  return name_in(c, stem, (Scope){c->pc, end, c->pc, end - 1});
}

// ---- declarations of what is used, which is known at the end

// Declares the tile's place along the axes.
void cu_declare_place(Cuda *c) {
  const Kernel *k = c->k;
  Stmt *axes = cu_begin(c);
  for (u32 i = 0; i < k->axis.n; i++) {
    const char *name = cu_axis_name(c, i);
    if (!cu_used(c, name)) continue;
    if (!axes->first && k->grid != GRID_DYNAMIC)
      cu_var(c, "const auto at = $%s_place_of(args, %s);", c->function,
             sc_one_tile(k) ? "$tile0" : "tile");
    cu_var(c, "const int %s = at.%s%s;", name, name,
           k->axis.at[i].cluster > 1 ? " + cta_rank" : "");
  }
  cu_close(c);
  cu_insert(c, NULL, axes);
}

// Declares the thread's own numbers, such as its lane and its first row.
void cu_declare_thread(Cuda *c, Stmt *after) {
  const Role *r = &c->k->role.at[c->r];
  bool group = r->warps == 4, row = cu_used(c, "row0"), col = cu_used(c, "col0");
  u32 first = group ? r->first_warp / 4 : r->first_warp;
  Stmt *all = cu_begin(c);
  if (cu_used(c, "instance"))
    cu_var(c, first ? "const int instance = %s - %u;" : "const int instance = %s;",
           group ? "$warpgroup" : "warp_of_cta", first);
  for (u32 i = 0; i < c->k->buf.n; i++) {
    for (u32 d = 0; d < strides(c->k, i); d++) {
      const char *name = cu_stride_name(c, i, d);
      if (cu_used(c, name))
        cu_var(c, "const long long %s = args.%s_stride[%u];", name, c->name[i], d);
    }
  }
  if (cu_used(c, "thread")) cu_var(c, "const int thread = threadIdx.x & %u;", 32u * r->warps - 1);
  if (row || cu_used(c, "warp"))
    cu_var(c, group ? "const int warp = warp_of_cta & 3;" : "const int warp = 0;");
  if (row || col || cu_used(c, "lane")) cu_var(c, "const int lane = threadIdx.x & 31;");
  if (row) {
    cu_var(c, "const int row0 = sc_opaque(16 * warp + (lane >> 2));");
    cu_note(c, "of this thread's first accumulator element");
  }
  if (col) cu_var(c, "const int col0 = sc_opaque(2 * (lane & 3));");
  cu_close(c);
  cu_insert(c, after, all);
}
