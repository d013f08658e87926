// script.c - the protocol of a role: only those operations that wait for others or are waited for.
// In: a role's code. Out: a flat list of steps, whose length is linear in the code.
//
// A block without such an operation is left out, with its condition or count. So is an `if` of
// which both branches have the same steps. (Products and copies end by themselves: a wait for them
// is no step.)
#include "compiler/verify/protocol.h"

typedef struct Scribe {
  Sc *sc;
  const Kernel *k;
  const Code *code;
  Way way;
  bool *merged;   // by operation: an `if` whose branches say the same
  bool *matters;  // by operation: it is a step, or a block with one in it
  bool *read;     // by loop: a condition or another loop's bound reads its variable
  Below below;
  Script *s;
  u32 depth;
  u32 ended;  // the loop before this place, in the same block, that is counted on; else SC_NONE
} Scribe;

static bool is_step(const Kernel *k, const Ins *ins) {
  switch (ins->op) {
    case OP_ACQUIRE:
    case OP_COMMIT:
    case OP_WAIT:
    case OP_RELEASE: return true;
    case OP_TAKE:
    case OP_PASS: return k->turn.at[ins->arg[0]].active;
    default: return false;
  }
}

// Marks steps, and the operations that open and split the blocks around them.
static void mark(Scribe *w) {
  VEC(u32) open = {0};
  for (u32 i = 0; i < w->code->n; i++) {
    const Ins *ins = &w->code->at[i];
    u8 effects = sc_op[ins->op].effects;
    bool step = is_step(w->k, ins);
    if (effects & CLOSES && open.n) open.n--;
    if (effects & OPENS) PUSH(w->sc, &open, i);
    w->matters[i] |= step;
    for (u32 b = open.n; step && b-- > 0 && !w->matters[open.at[b]];) w->matters[open.at[b]] = true;
  }
}

static void read_in(Scribe *w, Xid x) {
  x_begin(&w->below, DEP_LOOP);
  x_from(&w->below, x);
  for (Xid e; (e = x_next(&w->below));)
    if (w->k->expr.at[e].op == X_LOOP) w->read[w->k->expr.at[e].ref] = true;
}

static void find_read(Scribe *w) {
  for (u32 i = 0; i < w->code->n; i++) {
    const Ins *ins = &w->code->at[i];
    if (!w->matters[i]) continue;
    if (ins->op == OP_IF && !w->merged[i]) read_in(w, ins->arg[0]);
    if (ins->op == OP_FOR) read_in(w, ins->arg[1]);
    if (ins->op == OP_FOR) read_in(w, ins->arg[2]);
  }
}

static u32 put(Scribe *w, StepKind kind, u32 pc, u32 ref) {
  PUSH(w->sc, &w->s->step, ((Step){.kind = kind, .pc = pc, .ref = ref, .depth = (u8)w->depth}));
  return w->s->step.n - 1;
}

static void block(Scribe *w, u32 from, u32 to);

static void loop(Scribe *w, u32 pc) {
  const Ins *ins = &w->code->at[pc];
  u32 number = ins->arg[0];
  bool read = w->read[number], back = ins->flags & INS_REVERSED && read;
  Step s = {.pc = pc, .ref = number, .x = ins->arg[1], .y = ins->arg[2], .depth = (u8)w->depth};
  s.read = read;
  s.count = back ? COUNT_BACK : read ? COUNT_VALUE : w->way.count;
  if (s.count == COUNT_DOWN && !(ins->flags & INS_REVERSED)) s.count = COUNT_VALUE;
  s.prev = w->ended;
  s.kind = STEP_ENTER;
  PUSH(w->sc, &w->s->step, s);
  s.kind = STEP_HEAD;
  u32 head = w->s->step.n;
  PUSH(w->sc, &w->s->step, s);
  w->s->loop_depth[number] = (u8)w->depth;
  w->s->loop_head[number] = head;
  if (++w->depth > w->s->depth) w->s->depth = w->depth;
  w->ended = SC_NONE;
  block(w, pc + 1, ins->nest);
  w->ended = s.count == COUNT_ON ? head : SC_NONE;
  w->depth--;
  s.kind = STEP_NEXT;
  s.to = head;
  PUSH(w->sc, &w->s->step, s);
  w->s->step.at[head].to = w->s->step.n;
}

static bool same_step(const Step *a, const Step *b, u32 from_a, u32 from_b) {
  bool jumps = a->kind >= STEP_IF;
  return a->kind == b->kind && a->count == b->count && a->x == b->x && a->y == b->y &&
         (jumps ? a->to - from_a == b->to - from_b : a->ref == b->ref) && (a->kind < STEP_ENTER);
}

// Do the branches [yes, no) and [no, end) have the same steps, without loops?
static bool same_branches(const Script *s, u32 yes, u32 no) {
  u32 n = s->step.n - no;
  bool same = no - 1 - yes == n;
  for (u32 i = 0; i < n && same; i++)
    same = same_step(&s->step.at[yes + i], &s->step.at[no + i], yes, no);
  return same;
}

static u32 branches(Scribe *w, u32 pc) {
  const Ins *ins = &w->code->at[pc];
  u32 mid = ins->nest, end = sc_closed_by(w->code, pc);
  u32 test = put(w, STEP_IF, pc, 0);
  w->s->step.at[test].x = ins->arg[0];
  w->ended = SC_NONE;
  block(w, pc + 1, mid);
  w->ended = SC_NONE;
  u32 go = put(w, STEP_GO, mid, 0), no = w->s->step.n;
  w->s->step.at[test].to = no;
  if (mid != end) block(w, mid + 1, end);
  w->ended = SC_NONE;
  w->s->step.at[go].to = w->s->step.n;
  if (same_branches(w->s, test + 1, no)) {
    w->s->step.n = go;
    w->s->step.at[test] = (Step){.kind = STEP_GO, .pc = pc, .to = test + 1};
    w->merged[pc] = true;
  }
  return end;
}

static void block(Scribe *w, u32 from, u32 to) {
  static const u8 kind[OP_COUNT] = {
      [OP_ACQUIRE] = STEP_ACQUIRE, [OP_COMMIT] = STEP_COMMIT, [OP_WAIT] = STEP_WAIT,
      [OP_RELEASE] = STEP_RELEASE, [OP_TAKE] = STEP_TAKE,     [OP_PASS] = STEP_PASS};
  for (u32 i = from; i < to; i++) {
    const Ins *ins = &w->code->at[i];
    bool opens = sc_op[ins->op].effects & OPENS;
    if (!w->matters[i]) {
      if (opens) i = sc_closed_by(w->code, i);
    } else if (ins->op == OP_FOR) {
      loop(w, i);
      i = ins->nest;
    } else if (ins->op == OP_IF) {
      i = branches(w, i);
    } else if (!opens) {
      put(w, kind[ins->op], i, ins->arg[0]);
    }
  }
}

static Script *empty(Sc *sc, const Kernel *k, u32 role) {
  Script *s = NEW(sc, Script);
  s->role = role;
  s->loop_depth = NEWS(sc, u8, k->loop.n + 1);
  s->loop_head = NEWS(sc, u32, k->loop.n + 1);
  for (u32 i = 0; i < k->loop.n; i++) s->loop_head[i] = SC_NONE;
  return s;
}

// The script is written twice: only after the first time it is known which conditions remain, and
// so which loop variables are read.
Script *sc_script(Verify *v, u32 role, Way way) {
  Sc *sc = v->sc;
  const Kernel *k = v->k;
  const Code *code = &k->role.at[role].code;
  Scribe w = {.sc = sc, .k = k, .code = code, .way = way, .below = x_below(sc, k)};
  w.matters = NEWS(sc, bool, code->n + 1);
  w.merged = NEWS(sc, bool, code->n + 1);
  w.read = NEWS(sc, bool, k->loop.n + 1);
  mark(&w);
  for (u32 time = 0; time < 2; time++) {
    w.s = empty(sc, k, role);
    w.ended = SC_NONE;
    if (time) find_read(&w);
    block(&w, 0, code->n);
    put(&w, STEP_END, code->n - 1, 0);
  }
  return w.s;
}
