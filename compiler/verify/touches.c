// touches.c - lists who accesses a tensor or a stage, and how, and finds when an access is over.
// In: a kernel's code. Out: for a buf, the accesses of all roles in program order.
#include "compiler/layout/layout.h"
#include "compiler/verify/races.h"

enum { CASES = 20000, SEARCHES = 40 };

static AccessKind kind_of(const Ins *ins, const ViewAccess *va) {
  if (!va->write) return va->async ? ACCESS_LOAD : ACCESS_READ;
  if (ins->op == OP_MAPADD) return ACCESS_ADD;
  if (ins->op == OP_COPYADD) return ACCESS_PUT_ADD;
  return va->async ? ACCESS_PUT : ACCESS_STORE;
}

static void list_accesses(Races *v) {
  const Kernel *k = v->k;
  v->access = sc_new(v->sc, sizeof *v->access * k->buf.n);
  for (u32 r = 0; r < k->role.n; r++) {
    const Code *code = &k->role.at[r].code;
    for (u32 pc = 0; pc < code->n; pc++) {
      for (u32 i = 0; i < code->at[pc].accesses; i++) {
        const ViewAccess *va = sc_view_access(k, &code->at[pc], i);
        const View *view = &k->view.at[va->view];
        Accesses *all = &v->access[view->buf][view->fill];
        PUSH(v->sc, all, ((Access){r, pc, va->view, (u8)kind_of(&code->at[pc], va)}));
      }
    }
  }
}

Races sc_races(Verify *v, ProofId id) {
  Sc *sc = v->sc;
  Kernel *k = NEW(sc, Kernel);
  *k = *v->k;
  k->expr.at =
      sc_grow(sc, k->expr.at, sizeof *k->expr.at * k->expr.n, sizeof *k->expr.at * k->expr.cap);
  k->view.at =
      sc_grow(sc, k->view.at, sizeof *k->view.at * k->view.n, sizeof *k->view.at * k->view.cap);
  k->hash = sc_grow(sc, k->hash, sizeof *k->hash * k->hash_cap, sizeof *k->hash * k->hash_cap);
  Races r = {.sc = sc, .k = k, .facts = sc_facts(sc, k), .proof = v, .id = id};
  sc_facts_elements(r.facts);
  r.cases = CASES;
  r.searches = SEARCHES;
  r.below = r.inner = x_below(sc, k);
  list_accesses(&r);
  return r;
}

static bool writes(u32 kind) { return kind != ACCESS_READ && kind != ACCESS_LOAD; }

bool sc_access_writes(const Access *a) { return writes(a->kind); }

// Additions by threads are atomic towards each other, and so are those by the copy engine, but not
// one kind towards the other (PTX ISA 9.0, 9.7.9.25).
bool sc_kinds_conflict(u32 a, u32 b) {
  bool sums = a == b && (a == ACCESS_ADD || a == ACCESS_PUT_ADD);
  return !sums && (writes(a) || writes(b));
}

bool sc_access_by_threads(const Access *a) {
  return a->kind == ACCESS_READ || a->kind == ACCESS_STORE || a->kind == ACCESS_ADD;
}

bool sc_access_lingers(const Access *first, const Access *second) {
  if (first->kind == ACCESS_LOAD) return sc_access_writes(second);
  return first->kind == ACCESS_PUT && second->kind == ACCESS_PUT;
}

static const Ins *ins_of(const Kernel *k, const Access *a) {
  return &k->role.at[a->role].code.at[a->pc];
}

i64 sc_access_extent(const Kernel *k, const Access *a, u32 var) {
  const Ins *ins = ins_of(k, a);
  if (sc_on_map(ins->op)) return sc_extent(k, &k->map.at[ins->arg[0]], (i8)var);
  const Product *p = &k->product.at[ins->arg[0]];
  return var == 0 ? p->m : var == 1 ? p->n : p->k;
}

// The slices of a tensor and the dimensions of the stage pair up in order.
i64 sc_slice_extent(const Kernel *k, const Access *a, u32 d) {
  const Ins *ins = ins_of(k, a);
  const View *v = &k->view.at[a->view];
  u32 other = a->view == ins->arg[0] ? ins->arg[1] : ins->arg[0], number = 0;
  if (!v->at[d].slice) return 1;
  if (k->buf.at[v->buf].space == SP_STAGE) return k->buf.at[v->buf].ext[d];
  for (u32 i = 0; i < d; i++) number += v->at[i].slice;
  return k->buf.at[k->view.at[other].buf].ext[number];
}

Xid sc_access_cond(const Kernel *k, const Access *a) {
  const Ins *ins = ins_of(k, a);
  bool stores = (ins->op == OP_MAP || ins->op == OP_MAPADD) && sc_access_writes(a);
  return stores ? k->map.at[ins->arg[0]].cond : 0;
}

// ---- how an access ends

static bool covers(const Kernel *k, const Access *a, const Ins *wait) {
  const Ins *ins = ins_of(k, a);
  if (wait->op == OP_COPYWAIT) {
    bool out = ins->op == OP_COPYOUT || ins->op == OP_COPYADD;
    bool tensor = out && k->view.at[ins->arg[0]].buf == wait->arg[0];
    return tensor && !wait->arg[1] && (!sc_access_writes(a) || !(wait->flags & INS_READ));
  }
  if (wait->op != OP_MMAWAIT || ins->op != OP_MMA || wait->arg[1]) return false;
  const u32 *list = &k->list.at[wait->arg[0]];
  u32 dst = k->view.at[k->product.at[ins->arg[0]].dst].buf;
  for (u32 i = 1; i <= list[0]; i++)
    if (list[i] == dst) return true;
  return false;
}

bool sc_over_before(const Kernel *k, const Access *a, Op op, u32 ref) {
  const Code *code = &k->role.at[a->role].code;
  u32 depth = 0;
  if (sc_access_by_threads(a)) return true;
  for (u32 pc = a->pc + 1; pc < code->n; pc++) {
    const Ins *ins = &code->at[pc];
    u8 effects = sc_op[ins->op].effects;
    if (!depth && covers(k, a, ins)) return true;
    if (ins->op == op && ins->arg[0] == ref) return false;
    if (!depth && effects & (CLOSES | SPLITS)) return false;
    depth += (effects & OPENS) != 0;
    depth -= (effects & CLOSES) != 0;
  }
  return false;
}

// (At an acquire one lane arrives, and its warp does not meet for that.)
static bool arrives_for_all(const Role *r, const Ins *ins) {
  return ins->plan.sync || (ins->op != OP_ACQUIRE && ins->plan.arrivals == r->warps);
}

static bool meets(const Role *r, const Ins *ins) {
  bool gives = ins->op == OP_COMMIT || ins->op == OP_RELEASE;
  return ins->plan.sync || (r->warps == 1 && gives && ins->plan.arrivals);
}

bool sc_met_before(const Kernel *k, const Access *a, Op op, u32 ref) {
  const Role *r = &k->role.at[a->role];
  bool all = true, open = true;
  u32 depth = 0;
  for (u32 pc = 0; pc < r->code.n; pc++) {
    const Ins *ins = &r->code.at[pc];
    if (ins->op == op && ins->arg[0] == ref) all &= arrives_for_all(r, ins);
  }
  for (u32 pc = a->pc + 1; pc < r->code.n && open && !all; pc++) {
    const Ins *ins = &r->code.at[pc];
    u8 effects = sc_op[ins->op].effects;
    all = !depth && meets(r, ins);
    open = !(ins->op == op && ins->arg[0] == ref) && (depth || !(effects & (CLOSES | SPLITS)));
    depth += (effects & OPENS) != 0;
    depth -= effects & CLOSES && depth;
  }
  return all;
}

bool sc_met_after(const Kernel *k, const Access *a, u32 ring) {
  const Code *code = &k->role.at[a->role].code;
  for (u32 pc = a->pc + 1; pc-- > 0;) {
    const Ins *ins = &code->at[pc];
    if (ins->plan.sync) return true;
    if (ins->op == OP_ACQUIRE && ins->arg[0] == ring) return false;
    if (sc_op[ins->op].effects & (OPENS | CLOSES | SPLITS)) return false;
  }
  return false;
}
