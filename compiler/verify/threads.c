// threads.c - the proofs THREADS and PHASES: what an arrival hands over has been done by all
// threads for which it speaks, and no wait mistakes or misses a phase.
//
// In: the code of each role with its plan. Out: two verdicts, with reports. It is a forward data
// flow analysis over all paths, for all trip counts. known.c has the state, what the threads of an
// instance know. access.c and arrive.c have what each operation needs, and how it changes the
// state. The walk follows the path of one warp. The block of a vote is run by some warps only, so
// after it only that holds which holds with and without it. (The same threads wait for all fills of
// a ring in their order, so no wait is two phases behind: M5. Instances that take tiles in turn
// skip fills: dealt.c.)
#include "compiler/verify/threads.h"

// ---- operations

enum { MOST_KEPT = 7 };  // groups that wgmma.wait_group can leave in flight (three bits)

static void wait_products(Threads *t, const Ins *ins) {
  th_products_waited(t, ins->plan.keep);
  if (ins->plan.keep > MOST_KEPT)
    th_missing(t, PROOF_THREADS, ins->span, "wgmma.wait_group takes no %u", ins->plan.keep);
}

static void take(Threads *t, const Ins *ins) {
  t->now->turns |= th_turn_bit(ins->arg[0]);
  th_met(t);  // they wait for it together, or meet behind thread 0
}

// A fill that arrived at its acquire hands over nothing that comes later. So until its commit there
// may be nothing but its copies (H4).
static void want_nothing_late(Threads *t, const Ins *ins) {
  for (u32 r = 0; r < t->k->ring.n; r++) {
    if (!t->now->open[r] || !th_fill(t->now, r)->told) continue;
    if (ins->op == OP_COPYIN || (ins->op == OP_COMMIT && ins->arg[0] == r)) continue;
    Diag *d = th_missing(t, PROOF_THREADS, ins->span,
                         "this comes after the arrival for '%s', and before the commit that has to "
                         "hand it over (H4)",
                         t->k->ring.at[r].name);
    th_other_end(t, d, th_fill(t->now, r)->site, "the arrival is made here, with the bytes");
  }
}

static void step(Threads *t, const Ins *ins) {
  want_nothing_late(t, ins);
  // these have the plan's fence and sync among lines of their own
  if (ins->op != OP_COMMIT && ins->op != OP_RELEASE) th_order(t, ins);
  switch ((Op)ins->op) {
    case OP_ACQUIRE: th_acquired(t, ins); break;
    case OP_COPYIN: th_copy_in(t, ins); break;
    case OP_COMMIT: th_committed(t, ins); break;
    case OP_WAIT: th_waited(t, ins); break;
    case OP_RELEASE: th_released(t, ins); break;
    case OP_MMA: th_by_products(t, ins); break;
    case OP_MMAWAIT: wait_products(t, ins); break;
    case OP_MMAWARP:
    case OP_MAP:
    case OP_MAPADD:
    case OP_VOTE: th_by_threads(t, ins); break;
    case OP_COPYOUT:
    case OP_COPYADD: th_copy_out(t, ins); break;
    case OP_COPYWAIT: th_copies_waited(t, ins->plan.keep, ins->flags & INS_READ); break;
    case OP_TAKE: take(t, ins); break;
    case OP_PASS: th_passed(t, ins); break;
    case OP_ENDTILE: th_ended(t); break;
    case OP_TILE:
    case OP_FOR:
    case OP_ENDFOR:
    case OP_IF:
    case OP_ELSE:
    case OP_ENDIF:
    case OP_ENDVOTE:
    case OP_COUNT: break;
  }
}

// ---- ways

// Adds one more way, for which there is room.
static Known *push(Threads *t, Ways *to, const Known *known) {
  Known **at = &to->at[to->n++];
  if (!*at) *at = th_known(t->v->sc, t->k);
  th_known_copy(*at, known, t->k);
  return *at;
}

static void copy(Threads *t, Ways *to, const Ways *from) {
  to->n = 0;
  for (u32 i = 0; i < from->n; i++) push(t, to, from->at[i]);
}

static Ways *made(Threads *t, Ways **at) {
  if (!*at) *at = NEW(t->v->sc, Ways);
  return *at;
}

// The way that `known` is to be joined with; NULL: it becomes a way of its own. If there is room,
// ways that have issued the same in another order are not joined.
static Known *joins(Threads *t, const Ways *ways, const Known *known, u32 pc) {
  u32 most = t->asked ? MAX_WAYS : 1;
  for (u32 aged = 2; aged-- > 0;) {
    for (u32 i = 0; i < ways->n; i++) {
      Known *at = ways->at[i];
      bool alike = !t->asked || !aged || sc_path_alike(t->asked, &at->path, &known->path, pc);
      if (alike && th_known_alike(at, known, t->k, aged)) return at;
    }
    if (ways->n < most) return NULL;
  }
  return ways->at[0];
}

// Joins `known` into the ways before operation pc. changed: whether less is known now (NULL: no
// loop begins here).
static void join(Threads *t, Ways *ways, const Known *known, u32 pc, bool *changed) {
  Known *into = joins(t, ways, known, pc);
  bool less = !into;
  if (!into) push(t, ways, known);
  else if (!th_known_join(into, known, t->k, &less))
    th_unsure(t, "the stages that are held depend on the path in", t->k->name);
  if (into && t->asked) sc_path_unite(t->asked, &into->path, &known->path, pc, changed);
  if (changed) *changed |= less;
}

static void on_each(Threads *t, u32 pc) {
  t->pc = pc;
  for (u32 i = 0; i < t->ways.n; i++) {
    t->now = t->ways.at[i];
    step(t, &t->r->code.at[pc]);
  }
}

// ---- blocks

static void walk(Threads *t, u32 from, u32 to);

static bool may_skip(Threads *t, u32 pc, Known *known) {
  const Ins *loop = &t->r->code.at[pc];
  if (t->asked) return sc_path_skip(t->asked, &known->path, pc);
  return !sc_fact_less(t->v->facts, loop->arg[1], loop->arg[2]);
}

// A loop may run any number of times. `past` collects the ways that skip it and those that leave
// it.
static void loop(Threads *t, u32 pc, u32 end) {
  Ways *head = made(t, &t->head[pc]), *past = made(t, &t->saved[2 * t->depth]),
       *next = made(t, &t->saved[2 * t->depth + 1]);
  past->n = 0;
  for (u32 i = 0; i < t->ways.n; i++) {
    Known *known = t->ways.at[i];
    if (!may_skip(t, pc, push(t, past, known))) past->n--;
    if (!t->asked || sc_path_enter(t->asked, &known->path, pc))
      join(t, head, known, pc + 1, &t->changed);
  }
  copy(t, &t->ways, head);
  t->depth++;
  walk(t, pc + 1, end);
  t->depth--;
  on_each(t, end);
  for (u32 i = 0; i < t->ways.n; i++) {
    Known *known = t->ways.at[i], *again;
    next->n = 0;
    again = push(t, next, known);
    if (!t->asked || sc_path_again(t->asked, &again->path, pc))
      join(t, head, again, end, &t->changed);
    if (!t->asked || sc_path_leave(t->asked, &known->path, pc)) join(t, past, known, end + 1, NULL);
  }
  copy(t, &t->ways, past);
}

// A tile begins with nothing known: no stage is held, and nothing is in flight. What earlier tiles
// did to tensors does not matter here, as another CTA may have run them at any time (GLOBAL).
static void tile(Threads *t, u32 pc, u32 end) {
  t->ways.n = 0;
  push(t, &t->ways, t->nothing);
  walk(t, pc + 1, end);
  on_each(t, end);
}

// Keeps only the ways that can take this side of the `if`.
static void take_side(Threads *t, Ways *ways, u32 pc, bool holds) {
  u32 n = 0;
  for (u32 i = 0; i < ways->n; i++) {
    Known *known = ways->at[i];
    if (!sc_path_if(t->asked, &known->path, pc, holds)) continue;
    ways->at[i] = ways->at[n];
    ways->at[n++] = known;
  }
  ways->n = n;
}

static void branch(Threads *t, u32 pc, u32 mid, u32 end) {
  Ways *no = made(t, &t->saved[2 * t->depth]), *yes = made(t, &t->saved[2 * t->depth + 1]);
  copy(t, no, &t->ways);
  if (t->asked) take_side(t, &t->ways, pc, true);
  if (t->asked) take_side(t, no, pc, false);
  t->depth++;
  walk(t, pc + 1, mid);
  copy(t, yes, &t->ways);
  copy(t, &t->ways, no);
  walk(t, mid + 1, end);
  t->depth--;
  t->pc = end;
  for (u32 i = 0; i < yes->n; i++) join(t, &t->ways, yes->at[i], end + 1, NULL);
}

static void vote(Threads *t, u32 pc, u32 end) {
  Ways *before = made(t, &t->saved[2 * t->depth++]);
  copy(t, before, &t->ways);
  bool apart = !(t->r->code.at[pc].flags & INS_TOGETHER);
  t->votes += apart;
  walk(t, pc + 1, end);
  on_each(t, end);
  t->votes -= apart;
  t->depth--;
  for (u32 i = 0; i < before->n; i++) join(t, &t->ways, before->at[i], end + 1, NULL);
}

static void walk(Threads *t, u32 from, u32 to) {
  const Code *code = &t->r->code;
  for (u32 pc = from; pc < to; pc++) {
    const Ins *ins = &code->at[pc];
    u32 mid = ins->nest, end = mid;
    on_each(t, pc);
    if (!(sc_op[ins->op].effects & OPENS)) continue;
    if (ins->op == OP_IF && code->at[mid].op == OP_ELSE) end = code->at[mid].nest;
    if (ins->op == OP_IF) branch(t, pc, mid, end);
    else if (ins->op == OP_VOTE) vote(t, pc, end);
    else if (ins->op == OP_TILE) tile(t, pc, end);
    else loop(t, pc, end);
    pc = end;
  }
}

// ---- roles

// Is the role run by one thread? A role of one warp that only copies, waits and arrives is.
static bool is_single(const Kernel *k, const Role *r) {
  for (u32 i = 0; i < r->code.n; i++) {
    const Ins *ins = &r->code.at[i];
    if (sc_on_map(ins->op) || sc_on_product(ins->op)) return false;
    if (ins->op == OP_TAKE && k->turn.at[ins->arg[0]].axis == SC_NONE) return false;
  }
  return r->warps == 1;
}

// Does each warp of the role arrive at each of its fills? Then the ring is never two phases ahead
// of a warp.
static bool warps_fill(const Role *r, u32 ring) {
  bool fills = false;
  for (u32 i = 0; i < r->code.n; i++) {
    const Ins *ins = &r->code.at[i];
    if (ins->op != OP_COMMIT || ins->arg[0] != ring) continue;
    if (ins->plan.arrivals != r->warps) return false;
    fills = true;
  }
  return fills;
}

static void prove_role(Verify *v, u32 role) {
  const Kernel *k = v->k;
  const Role *r = &k->role.at[role];
  Threads t = {.v = v, .k = k, .role = role, .r = r, .single = is_single(k, r)};
  t.warps_fill = NEWS(v->sc, bool, k->ring.n + 1);
  for (u32 i = 0; i < k->ring.n; i++) t.warps_fill[i] = warps_fill(r, i);
  t.saved = NEWS(v->sc, Ways *, 2 * sc_deepest(&r->code) + 2);
  t.head = NEWS(v->sc, Ways *, r->code.n + 1);
  t.nothing = th_known(v->sc, k);
  if (r->by_paths) t.asked = sc_path_facts(v->sc, k, r);
  if (t.asked) sc_facts_elements(t.asked->facts);
  if (t.asked) t.asked->left = PATHS_PROVED;
  do {
    t.changed = false;
    walk(&t, 0, r->code.n);
  } while (t.changed);
  t.report = true;
  walk(&t, 0, r->code.n);
}

void sc_prove_threads(Verify *v) {
  sc_facts_at(v->facts, NULL, 0);
  v->overtaken = NEWS(v->sc, u64 *, v->k->role.n + 1);
  for (u32 i = 0; i < v->k->role.n; i++) {
    v->overtaken[i] = NEWS(v->sc, u64, v->k->role.at[i].code.n + 1);
    prove_role(v, i);
  }
}
