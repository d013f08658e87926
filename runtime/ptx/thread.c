// thread.c - what one thread can execute. In: a sliced Ptx, and the thread's number. Out: a Thread:
// its events with their operands, and the edges out of each block that it can take.
//
// From the entry on, the thread's path is straight as long as its own number decides every branch:
// barriers are initialised there, also in loops. From the first branch that data decides, a value
// is known in a block if all edges into the block agree on it (conditional constant propagation, by
// Wegman and Zadeck). A branch that is decided is still followed one way only.
#include "runtime/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

enum { STRAIGHT_BLOCKS = 4096 };  // loops that would run longer are joined like others

struct Tracer {
  Sc *sc;
  const Ptx *ptx;
  Thread now;
  u32 *first;
  Registers r;
  Known *entry;  // by block and register: what holds where it begins
  u8 *ways;
  Event *event;  // by block: the events of the thread before
  VEC(Event) straight;
  VEC(u32) pending;
};

Tracer *sc_ptx_tracer(Sc *sc, const Ptx *ptx) {
  Tracer *t = NEW(sc, Tracer);
  u32 events = 0;
  t->sc = sc;
  t->ptx = ptx;
  t->first = NEWS(sc, u32, ptx->block.n + 1);
  for (u32 b = 0; b < ptx->block.n; b++) {
    const PtxBlock *at = &ptx->block.at[b];
    t->first[b] = events;
    for (u32 i = at->first; i < at->first + at->n; i++) events += ptx->ins.at[i].event != EV_NONE;
  }
  t->first[ptx->block.n] = events;
  t->now.first = t->first;
  t->r = (Registers){NEWS(sc, Known, ptx->regs + 1), 0, ptx};
  t->entry = NEWS(sc, Known, (size_t)ptx->block.n * ptx->regs + 1);
  t->now.lane0 = NEWS(sc, Known, ptx->ins.n + 1);
  t->now.after = NEWS(sc, Known, ptx->regs + 1);
  t->now.ways = NEWS(sc, u8, 2 * ptx->block.n + 1);
  t->ways = t->now.ways + ptx->block.n;
  t->now.event = NEWS(sc, Event, 2 * events + 1);
  t->event = t->now.event + events;
  return t;
}

// ---- an event's numbers

// The number as an operand of an event, which has 32 bits.
static i64 plain_number(Known v) { return v.base == BASE_NUM ? (i64)(u32)v.n : ARG_UNKNOWN; }

static u32 part(const PtxIns *ins, u32 from, char until) {
  u32 n = from;
  while (n < ins->op.n && ins->op.at[n] != until) n++;
  return n;
}

static i64 element(const PtxIns *ins, u32 from, u32 to) {
  for (i64 e = 0; e < EL_COUNT; e++) {
    const char *text = sc_elem[e].text;
    if (text && strlen(text) == to - from && !memcmp(text, ins->op.at + from, to - from)) return e;
  }
  return ARG_UNKNOWN;
}

// "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 d, a, b, p, 1, 1, ta, tb" (of 8-bit types
// without ta and tb; with A in registers without ta).
static void read_product(const Registers *r, const PtxIns *ins, Event *e) {
  enum { SHAPE = sizeof "wgmma.mma_async.sync.aligned.m64n" - 1, A = 1, SCALE = 3, SIGNS = 4 };
  u32 k = part(ins, SHAPE, 'k'), d = part(ins, k, '.'), a = part(ins, d + 1, '.') + 1,
      b = part(ins, a, '.') + 1;
  if (b >= ins->op.n || memcmp(ins->op.at + d, ".f32.", 5) || ins->operands < SIGNS + 2) return;
  i64 flags = ins->operand[A].kind == OPND_LIST ? MMA_REGS : 0, v[PTX_OPERANDS];
  for (u32 i = SCALE; i < ins->operands; i++)
    v[i] = plain_number(sc_ptx_value(r, &ins->operand[i]));
  e->arg[0] = strtol(ins->op.at + SHAPE, NULL, 10);
  e->arg[1] = strtol(ins->op.at + k + 1, NULL, 10);
  e->arg[2] = element(ins, a, b - 1) << 8 | element(ins, b, ins->op.n);
  for (u32 i = SCALE; i < ins->operands; i++) {
    if (v[i] == ARG_UNKNOWN || v[i] > 1) return;
  }
  if (v[SIGNS] != 1 || v[SIGNS + 1] != 1) return;
  if (v[SCALE]) flags |= MMA_ADDS;
  u32 last = ins->operands - 1u;
  if (last > SIGNS + 1 && v[last]) flags |= MMA_B_MN;
  if (last > SIGNS + 2 && v[SIGNS + 2]) flags |= MMA_A_MN;
  e->arg[3] = flags;
}

Event sc_ptx_event_of(const Registers *r, const PtxIns *ins) {
  Event e = {.id = ins->event, .line = ins->line, .at = ARG_UNKNOWN};
  u32 args = 0;
  const char *letter = sc_ptx_event[ins->event].operands;
  for (u32 i = 0; i < EVENT_ARGS; i++) e.arg[i] = ARG_UNKNOWN;
  if (ins->event == EV_MMA) read_product(r, ins, &e);
  for (u32 i = 0; letter[i]; i++) {
    Known v = i < ins->operands ? sc_ptx_value(r, &ins->operand[i]) : (Known){0};
    if (strchr("nq", letter[i])) e.arg[args++] = plain_number(v);
    if (letter[i] == 'a' && v.base == BASE_SHARED && (v.exact || v.n))
      e.at = (i64)v.n, e.exact = v.exact;
    if (letter[i] == 'm')
      e.arg[args++] = v.base == BASE_PARAM && v.exact ? (i64)v.which : ARG_UNKNOWN;
    if (letter[i] == 'r') {
      e.arg[args++] = v.base == BASE_THERE ? (i64)v.which : ARG_UNKNOWN;
      if (v.base == BASE_THERE && v.exact) e.at = (i64)v.n, e.exact = true;
    }
  }
  return e;
}

// ---- blocks

// Runs a block: changes the registers from their values at its beginning to those at its end, and
// writes its events to `to`.
static void run(Tracer *t, u32 b, Event *to) {
  const PtxBlock *at = &t->ptx->block.at[b];
  for (u32 i = at->first; i < at->first + at->n; i++) {
    const PtxIns *ins = &t->ptx->ins.at[i];
    if (ins->event && to) *to++ = sc_ptx_event_of(&t->r, ins);
    sc_ptx_compute(&t->r, ins, &t->now.lane0[i]);
  }
}

static u8 ways_out(const Tracer *t, u32 b) {
  const PtxBlock *at = &t->ptx->block.at[b];
  if (at->jump == SC_NONE) return at->next == SC_NONE ? 0 : GOES_NEXT;
  if (at->guard == SC_NONE) return GOES_JUMP;
  Known v = t->r.at[at->guard];
  if (v.base != BASE_NUM) return GOES_NEXT | GOES_JUMP;
  return (v.n != 0) != at->negated ? GOES_JUMP : GOES_NEXT;
}

static void flow_into(Tracer *t, u32 b) {
  Known *at = t->entry + (size_t)b * t->ptx->regs;
  bool first = !t->now.ways[b], changed = first;
  if (!first && !memcmp(at, t->r.at, t->ptx->regs * sizeof *at)) return;
  for (u32 i = 0; i < t->ptx->regs; i++) {
    Known v = first ? t->r.at[i] : sc_ptx_join(at[i], t->r.at[i]);
    changed |= !sc_ptx_same(v, at[i]);
    at[i] = v;
  }
  t->now.ways[b] |= REACHED;
  if (changed) PUSH(t->sc, &t->pending, b);
}

static void flow_out(Tracer *t, u32 b, u8 ways) {
  if (ways & GOES_NEXT) flow_into(t, t->ptx->block.at[b].next);
  if (ways & GOES_JUMP) flow_into(t, t->ptx->block.at[b].jump);
}

// Follows the straight path, on which the thread's number decides every branch.
static void go_straight(Tracer *t) {
  u32 b = 0;
  t->now.straight.n = 0;
  for (u32 i = 0;; i++) {
    u32 events = t->first[b + 1] - t->first[b];
    run(t, b, t->now.event + t->first[b]);
    for (u32 e = 0; e < events; e++) PUSH(t->sc, &t->now.straight, t->now.event[t->first[b] + e]);
    u8 ways = ways_out(t, b);
    const PtxBlock *at = &t->ptx->block.at[b];
    t->now.last = b;
    t->now.onwards = ways;
    if (!ways || ways == (GOES_NEXT | GOES_JUMP) || i >= STRAIGHT_BLOCKS) break;
    if (ways & at->back) PUSH(t->sc, &t->now.straight, ((Event){.id = EV_NONE}));
    b = ways == GOES_NEXT ? at->next : at->jump;
  }
  memcpy(t->now.after, t->r.at, t->ptx->regs * sizeof *t->r.at);
  flow_out(t, b, t->now.onwards);
}

static void load(Tracer *t, u32 b) {
  memcpy(t->r.at, t->entry + (size_t)b * t->ptx->regs, t->ptx->regs * sizeof *t->r.at);
}

static bool same_event(const Event *a, const Event *b) {
  bool same = a->id == b->id && a->line == b->line && a->at == b->at && a->exact == b->exact;
  for (u32 i = 0; i < EVENT_ARGS; i++) same &= a->arg[i] == b->arg[i];
  return same;
}

// Does the matcher see the same as for the thread before?
static bool as_before(Tracer *t) {
  u32 blocks = t->ptx->block.n, events = t->first[blocks];
  bool straight = t->straight.n == t->now.straight.n;
  for (u32 i = 0; i < t->straight.n && straight; i++)
    straight = same_event(&t->straight.at[i], &t->now.straight.at[i]);
  for (u32 i = 0; i < events && straight; i++)
    straight = same_event(&t->event[i], &t->now.event[i]);
  return straight && !memcmp(t->ways, t->now.ways, blocks);
}

const Thread *sc_ptx_trace(Tracer *t, u32 tid) {
  u32 blocks = t->ptx->block.n, events = t->first[blocks];
  memcpy(t->ways, t->now.ways, blocks);
  memcpy(t->event, t->now.event, events * sizeof *t->event);
  t->straight.n = 0;
  for (u32 i = 0; i < t->now.straight.n; i++) PUSH(t->sc, &t->straight, t->now.straight.at[i]);
  memset(t->now.ways, 0, blocks);
  memset(t->now.event, 0, events * sizeof *t->now.event);
  memset(t->r.at, 0, t->ptx->regs * sizeof *t->r.at);
  for (u32 i = 0; tid % 32 == 0 && i < t->ptx->ins.n; i++)
    t->now.lane0[i] = (Known){.base = BASE_NONE};
  t->now.tid = t->r.tid = tid;
  go_straight(t);
  while (t->pending.n) {
    u32 b = t->pending.at[--t->pending.n];
    load(t, b);
    run(t, b, NULL);
    flow_out(t, b, ways_out(t, b));
  }
  for (u32 b = 0; b < blocks; b++) {
    if (!t->now.ways[b]) continue;
    load(t, b);
    run(t, b, t->now.event + t->first[b]);
    t->now.ways[b] |= ways_out(t, b);
  }
  t->now.as_before = as_before(t);
  return &t->now;
}
