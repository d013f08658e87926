// touch.c - which elements of tensors operations touch, as boxes of row-major numbers; where
// threads keep logs, put into them. In: operands whose bases and bounds are known. Out: a Touch for
// each tensor that some role writes. What the kernel only reads is nobody's to race with, and is
// left out.
#include "runtime/cpu/machine.h"

#include <string.h>

// ---- boxes

// Orders the ways by falling steps, and makes one of two that go on from each other.
static void arrange(Box *b) {
  for (u32 i = 1; i < b->loops; i++) {
    for (u32 j = i; j > 0 && b->step[j] > b->step[j - 1]; j--) {
      i64 n = b->n[j], step = b->step[j];
      b->n[j] = b->n[j - 1], b->step[j] = b->step[j - 1];
      b->n[j - 1] = n, b->step[j - 1] = step;
    }
  }
  u32 to = 0;
  for (u32 i = 1; i < b->loops; i++) {
    if (b->step[to] == b->n[i] * b->step[i]) b->n[to] *= b->n[i];
    else b->n[++to] = b->n[i];
    b->step[to] = b->step[i];
  }
  b->loops = b->loops ? to + 1 : 0;
}

static void add_way(Box *b, i64 from, i64 to, i64 step) {
  b->first += from * step;
  if (to - from == 1) return;
  b->n[b->loops] = to - from;
  b->step[b->loops++] = step;
}

// What a view of a tensor is for some values of the map's variables; false: nothing inside.
static bool box_of_view(Inst *in, u32 view, const i64 *from, const i64 *to, Box *b) {
  const View *v = &in->env.k->view.at[view];
  const Operand *o = &in->m->op[view];
  const i64 *steps = in->m->p->global.of[v->buf].step;
  i64 step[SC_MAX_VARS] = {0};
  *b = (Box){0};
  for (u32 d = 0; d < v->rank; d++) {
    b->first += (v->at[d].base ? env_int(&in->env, v->at[d].base) : 0) * steps[d];
    if (v->at[d].var >= 0) step[(u32)v->at[d].var] += steps[d];
  }
  for (u32 i = 0; i < SC_MAX_VARS; i++) {
    i64 lo = from[i] > o->lo[i] ? from[i] : o->lo[i], hi = to[i] < o->hi[i] ? to[i] : o->hi[i];
    if (!step[i]) continue;
    if (lo >= hi) return false;
    add_way(b, lo, hi, step[i]);
  }
  arrange(b);
  return o->at != NULL;
}

static bool box_of_slice(const Inst *in, const Event *e, Box *b) {
  const View *v = &in->env.k->view.at[e->view];
  const i64 *steps = in->m->p->global.of[v->buf].step;
  Reach r[SC_MAX_RANK];
  u32 rank;
  i64 offset;
  *b = (Box){0};
  if (!sc_reach(in, e, r, &rank, &offset)) return false;
  for (u32 d = 0; d < v->rank; d++) b->first += e->base[d] * steps[d];
  for (u32 i = 0; i < rank; i++) {
    if (r[i].lo >= r[i].hi) return false;
    add_way(b, r[i].lo, r[i].hi, steps[r[i].dim]);
  }
  arrange(b);
  return true;
}

// ---- the log

static void put(Machine *m, const Touch *t, const u32 *clock) {
  if (!sc_log_full(m) || sc_make_room(m, t->by.job)) sc_log_add(m, t, clock);
}

void sc_log_end(Slot *s) {
  Machine *m = s->inst[0].m;
  if (m->p->logs) put(m, &(Touch){.by = {.job = s->job, .kind = G_END}}, NULL);
}

// ---- what operations do

static Deed deed_of(const Inst *in, DeedKind kind, u32 word, u32 value) {
  return (Deed){.job = in->slot->job,
                .unit = in->unit,
                .inst = in->id,
                .pc = in->at,
                .word = word,
                .value = value,
                .words = 1,
                .kind = (u8)kind};
}

static bool tell(Inst *in, const Touch *t) {
  if (!in->m->p->logs) return sc_enter_touch(in->m, t, in->clock, in->slot);
  put(in->m, t, in->clock);
  return true;
}

static bool touch_view(Inst *in, u32 view, DeedKind kind, const i64 *from, const i64 *to) {
  u32 buf = in->env.k->view.at[view].buf;
  if (in->env.k->buf.at[buf].space != SP_TENSOR || !in->m->p->global.of[buf].cell) return true;
  Touch t = {deed_of(in, kind, in->id * C_INST + C_TIME, in->now), buf, {0}};
  return !box_of_view(in, view, from, to, &t.at) || tell(in, &t);
}

bool sc_touch_map(Inst *in, const Map *m, const i64 *from, const i64 *to) {
  DeedKind writes = in->of->code.at[in->at].op == OP_MAPADD ? G_ADD : G_STORE;
  for (u32 i = 0; i < sc_views_of(m); i++) {
    DeedKind kind = i == m->reads ? writes : G_READ;
    if (!touch_view(in, sc_view_of(in->env.k, m, i), kind, from, to)) return false;
  }
  return true;
}

bool sc_touch_slice(Inst *in, const Event *e, DeedKind kind, u32 word, u32 value) {
  u32 buf = in->env.k->view.at[e->view].buf, ctas = in->m->p->grid.ctas;
  if (!in->m->p->global.of[buf].cell || (in->surplus && kind != G_LOAD)) return true;
  Touch t = {deed_of(in, kind, word, value), buf, {0}};
  if (in->of->code.at[in->at].flags & INS_MULTICAST) {
    t.by.words = ctas;
    t.by.apart = (in->m->p->words - in->m->p->part_words) / ctas;
    t.by.word -= in->cta->rank * t.by.apart;
  }
  return !box_of_slice(in, e, &t.at) || tell(in, &t);
}

// ---- maps with a condition: what they write is told of strip by strip

// The strips so far that make one box: of the same places but for one variable, along which they
// follow each other.
void sc_gather(void *user, const i64 *from, const i64 *to) {
  Gather *g = user;
  u32 other = 0, at = 0;
  for (u32 i = 0; i < SC_MAX_VARS; i++) {
    if (from[i] == g->from[i] && to[i] == g->to[i]) continue;
    other++;
    at = i;
  }
  if (g->any && other == 1 && from[at] == g->to[at]) {
    g->to[at] = to[at];
    return;
  }
  sc_gathered(g);
  memcpy(g->from, from, sizeof g->from);
  memcpy(g->to, to, sizeof g->to);
  g->any = true;
}

bool sc_gathered(Gather *g) {
  i64 from[SC_MAX_VARS], to[SC_MAX_VARS];
  memcpy(from, g->from, sizeof from);
  memcpy(to, g->to, sizeof to);
  for (u32 i = g->m->outs; i < g->m->vars; i++) from[i] = 0, to[i] = g->plan->ext[i];
  if (g->any && g->fine) g->fine = sc_touch_map(g->in, g->m, from, to);
  g->any = false;
  return g->fine;
}
