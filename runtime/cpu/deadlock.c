// deadlock.c - when no role can go on: who holds up whom, and who is told of first. That is a role
// that has ended though others wait for it, or a CTA that is gone without passing on its turn; else
// a member of a circle of roles that wait for each other; never one that only waits behind them.
// In: a machine whose instances are all blocked, with nothing in flight. Out: its fault.
#include "runtime/cpu/machine.h"

#include <stdio.h>
#include <string.h>

enum { NAME = 160 };

static const Ins *stopped_at(const Inst *in) { return &in->of->code.at[in->pc]; }

// With several CTAs side by side a role alone does not say who it is.
static const char *name(const Inst *in, char *to) {
  sc_inst_name(in, to, NAME);
  size_t at = strlen(to);
  if (in->m->slots > 1) sc_put_tile(in->env.k, in->env.axis, to + at, NAME - at);
  return to;
}

// ---- all instances of CTAs that have not ended

static u32 count(const Machine *m) { return m->slots * m->slot[0].insts; }

static Inst *at(const Machine *m, u32 i) {
  Slot *s = &m->slot[i / m->slot[0].insts];
  return s->busy ? &s->inst[i % m->slot[0].insts] : NULL;
}

// ---- turns over CTAs

// The tile whose turn it is, where `in` waits for its own.
static bool tile_on_turn(Inst *in, i64 *axis, i64 *turn) {
  u32 *counter;
  i64 index;
  const Ins *i = stopped_at(in);
  if (!sc_turn_counter(in, i, &counter, &index) || *counter >= index) return false;
  memcpy(axis, in->env.axis, SC_MAX_AXES * sizeof *axis);
  axis[in->env.k->turn.at[i->arg[0]].axis] = *turn = *counter;
  return true;
}

static bool passes(const Inst *in, u32 turn) {
  for (u32 i = 0; i < in->of->code.n; i++) {
    const Ins *ins = &in->of->code.at[i];
    if ((ins->op == OP_PASS || ins->op == OP_TAKE) && ins->arg[0] == turn) return true;
  }
  return false;
}

// Which of its slot's tiles a unit of the grid is, from 1; 0: it is not among them, or not any
// more.
static u64 place_in_slot(const Program *p, const Slot *s, u64 unit) {
  if (p->k->grid != GRID_DYNAMIC) return unit % p->jobs == s->job ? unit / p->jobs + 1 : 0;
  for (u64 i = s->draws; i > 0 && i + COUNT(s->draw) > s->draws; i--)
    if (s->draw[(i - 1) % COUNT(s->draw)] == unit) return i;
  return 0;
}

static u64 unit_of(const Program *p, const i64 *axis) {
  i64 of[SC_MAX_AXES];
  for (u64 unit = 0; unit < p->grid.total; unit++) {
    for (u32 rank = 0; rank < p->grid.ctas; rank++) {
      sc_tile_axes(&p->grid, p->k, unit, rank, of);
      if (memcmp(of, axis, p->grid.axes * sizeof *axis) == 0) return unit;
    }
  }
  return p->grid.total;
}

// Who is to pass on the turn that `in` waits for, at that tile or on the way to it; NULL: its CTA
// is past it. (It has begun: tiles whose turn comes earlier come earlier in the grid, R6.reversed.)
static Inst *passer(Inst *in, const i64 *axis) {
  Machine *m = in->m;
  u64 unit = unit_of(m->p, axis);
  for (u32 i = 0; i < count(m); i++) {
    Inst *x = at(m, i);
    if (!x || x->done || !passes(x, stopped_at(in)->arg[0])) continue;
    u64 place = place_in_slot(m->p, x->slot, unit);
    bool there = !memcmp(x->env.axis, axis, m->p->grid.axes * sizeof *axis);
    if (place && (x->iter < place || (x->iter == place && there))) return x;
  }
  return NULL;
}

// ---- who holds up whom

// The member whose pass `in` waits for.
static const Inst *passes_to(const Inst *in, const Turn *t) {
  u32 first = in->id - in->m->p->inst0[in->role] - in->number;  // of this CTA
  const Inst *before = NULL, *last = NULL;
  bool met = false;
  for (u32 m = 0; m < t->members; m++) {
    for (u32 i = 0; i < in->env.k->role.at[t->member[m]].instances; i++) {
      const Inst *x = &in->slot->inst[first + in->m->p->inst0[t->member[m]] + i];
      met |= x == in;
      if (!met) before = x;
      last = x;
    }
  }
  return before ? before : last;
}

static bool turn_held_up(Inst *in, const Inst *by) {
  const Turn *t = &in->env.k->turn.at[stopped_at(in)->arg[0]];
  i64 axis[SC_MAX_AXES], turn;
  if (t->axis == SC_NONE) return by == passes_to(in, t);
  return tile_on_turn(in, axis, &turn) && by == passer(in, axis);
}

static bool ring_held_up(const Inst *in, const Inst *by) {
  const Ins *i = stopped_at(in);
  const Ring *r = &in->env.k->ring.at[i->arg[0]];
  const Cursor *mine = &in->ring[i->arg[0]], *its = &by->ring[i->arg[0]];
  if (by->slot != in->slot || (by->cta != in->cta && !r->multicast)) return false;
  if (r->owner != SC_NONE && (by->role != in->role || by->number != in->number)) return false;
  if (i->op == OP_WAIT) return r->fillers >> by->role & 1 && its->committed <= mine->waited;
  return r->drainers >> by->role & 1 && its->released + r->stages <= mine->filled;
}

// A tile is drawn by one role, and not before the slowest role has begun the one before the last.
static bool draw_held_up(const Inst *in, const Inst *by) {
  const Program *p = in->m->p;
  if (by->slot != in->slot) return false;
  bool draws = in->role == p->drawer && !in->number && !in->cta->rank;
  if (draws) return by->iter + 1 < in->iter;
  return by->role == p->drawer && !by->number && !by->cta->rank;
}

static bool held_up(Inst *in, const Inst *by) {
  switch (stopped_at(in)->op) {
    case OP_WAIT:
    case OP_ACQUIRE: return ring_held_up(in, by);
    case OP_TAKE: return turn_held_up(in, by);
    case OP_TILE: return draw_held_up(in, by);
    default: return false;
  }
}

static Inst *first_held_up_by(Inst *in, bool ended) {
  for (u32 i = 0; i < count(in->m); i++) {
    Inst *by = at(in->m, i);
    if (by && by->done == ended && held_up(in, by)) return by;
  }
  return NULL;
}

// ---- what each waits for, in words

// "load, math[0]": the roles of a set.
static void put_roles(const Kernel *k, u16 set, char *to, size_t n) {
  size_t used = 0;
  to[0] = 0;
  for (u32 r = 0; r < k->role.n && used < n; r++) {
    if (!(set >> r & 1)) continue;
    int more = snprintf(to + used, n - used, "%s%s", used ? ", " : "", k->role.at[r].name);
    used += more > 0 ? (size_t)more : 0;
  }
}

static void explain_ring(Inst *in, const Ins *i, const char *who) {
  const Kernel *k = in->env.k;
  const Ring *r = &k->ring.at[i->arg[0]];
  const Cursor *c = &in->ring[i->arg[0]];
  bool full = i->op == OP_WAIT;
  u32 n = full ? c->waited : c->filled;
  const Stage *s = sc_stage(in, i->arg[0], n);
  const Barrier *b = full ? &s->full : &s->empty;
  char roles[120], bytes[48] = "";
  put_roles(k, full ? r->fillers : r->drainers, roles, sizeof roles);
  if (b->tx) snprintf(bytes, sizeof bytes, ", %lld bytes to come", (long long)b->tx);
  sc_fault_note(
      in, i->span, "%s waits for %s %u of '%s' (stage %u: %u of %u arrivals%s); %s could %s", who,
      full ? "fill" : "an empty stage for fill", n, r->name, n % r->stages, b->count - b->pending,
      b->count, bytes, roles[0] ? roles : "nobody", full ? "fill it" : "give it back");
}

static void explain_turn_of_cta(Inst *in, const Ins *i, const char *who) {
  i64 axis[SC_MAX_AXES], turn;
  char other[NAME], tile[NAME];
  const char *its = in->env.k->turn.at[i->arg[0]].name;
  if (!tile_on_turn(in, axis, &turn)) {
    sc_fault_note(in, i->span, "%s waits for its turn '%s', which is over", who, its);
    return;
  }
  const Inst *next = passer(in, axis);
  sc_put_tile(in->env.k, axis, tile, sizeof tile);
  if (next)
    sc_fault_note(in, i->span, "%s waits for its turn '%s'; %s could pass it on", who, its,
                  name(next, other));
  else
    sc_fault_note(in, i->span, "%s waits for its turn '%s'; the CTA%s has not passed it on", who,
                  its, tile);
}

static void explain_turn(Inst *in, const Ins *i, const char *who) {
  const Turn *t = &in->env.k->turn.at[i->arg[0]];
  char other[NAME];
  if (t->axis != SC_NONE) explain_turn_of_cta(in, i, who);
  else
    sc_fault_note(in, i->span, "%s waits for its turn '%s'; %s could pass it on", who, t->name,
                  name(passes_to(in, t), other));
}

static void explain(Inst *in) {
  char who[NAME];
  const Ins *i = stopped_at(in);
  name(in, who);
  if (in->done) sc_fault_note(in, in->of->span, "%s has ended", who);
  else if (i->op == OP_WAIT || i->op == OP_ACQUIRE) explain_ring(in, i, who);
  else if (i->op == OP_TAKE) explain_turn(in, i, who);
  else if (i->op == OP_TILE)
    sc_fault_note(in, in->of->span, "%s waits for the next tile to be drawn", who);
  else sc_fault_note(in, i->span, "%s waits here", who);
}

// The other end first, then everybody else.
static void explain_all(Machine *m, Inst *first) {
  if (first) explain(first);
  for (u32 i = 0; i < count(m); i++) {
    Inst *in = at(m, i);
    if (in && in != first) explain(in);
  }
}

// ---- who is told of first

// A role has ended, and others wait for it.
static bool blame_ended(Machine *m) {
  for (u32 i = 0; i < count(m); i++) {
    Inst *in = at(m, i), *by = in && !in->done ? first_held_up_by(in, true) : NULL;
    if (!by) continue;
    char who[NAME], waits[NAME];
    const Ins *op = stopped_at(in);
    sc_fault(by, D_X_DEADLOCK, by->of->span, "deadlock: %s has ended, and %s waits for it",
             name(by, who), name(in, waits));
    if (op->op == OP_TAKE)
      sc_fault_help(by, "the members of '%s' are to take it equally often",
                    in->env.k->turn.at[op->arg[0]].name);
    else if (op->op != OP_TILE)
      sc_fault_help(by,
                    op->op == OP_WAIT ? "'%s' is to be filled as often as it is waited for"
                                      : "'%s' is to be released as often as it is filled",
                    in->env.k->ring.at[op->arg[0]].name);
    explain_all(m, in);
    return true;
  }
  return false;
}

// A CTA has not passed on its turn, and never will.
static bool blame_cta(Machine *m) {
  for (u32 i = 0; i < count(m); i++) {
    Inst *in = at(m, i);
    i64 axis[SC_MAX_AXES], turn;
    if (!in || in->done || stopped_at(in)->op != OP_TAKE) continue;
    const Turn *t = &in->env.k->turn.at[stopped_at(in)->arg[0]];
    if (t->axis == SC_NONE || !tile_on_turn(in, axis, &turn) || passer(in, axis)) continue;
    char tile[NAME];
    sc_put_tile(m->p->k, axis, tile, sizeof tile);
    sc_fault(in, D_X_DEADLOCK, t->span, "deadlock: the CTA%s has not passed on turn %lld of '%s'",
             tile, (long long)turn, t->name);
    sc_fault_help(in, "each CTA is to take the turn, and to pass it on, before it ends");
    explain_all(m, in);
    return true;
  }
  return false;
}

// "load, math[0] and math[1]": the circle that begins and ends at `from`.
static void put_circle(Inst *from, char *to, size_t n) {
  Inst *in = from;
  size_t used = 0;
  to[0] = 0;
  do {
    Inst *next = first_held_up_by(in, false);
    char who[NAME];
    int more = snprintf(to + used, n - used, "%s%s",
                        !used          ? ""
                        : next == from ? " and "
                                       : ", ",
                        name(in, who));
    used += more > 0 ? (size_t)more : 0;
    in = next;
  } while (in != from && used < n);
}

// Who waits for whom, on and on: after as many steps as there are instances it goes in a circle. It
// is told of from its first member on. Or it ends at one for whom nobody can do anything.
static void blame_circle(Machine *m) {
  Inst *in = NULL, *next;
  for (u32 i = 0; i < count(m) && !in; i++) {
    in = at(m, i);
    if (in && in->done) in = NULL;
  }
  if (!in) return;
  for (u32 i = 0; i < count(m) && (next = first_held_up_by(in, false)); i++) in = next;
  Inst *head = in;
  for (Inst *x = in; (x = first_held_up_by(x, false)) && x != in;)
    if (x->slot < head->slot || (x->slot == head->slot && x->id < head->id)) head = x;
  char who[FAULT_TEXT / 2];
  if (!first_held_up_by(in, false)) {
    sc_fault(in, D_X_DEADLOCK, stopped_at(in)->span,
             "deadlock: %s waits for what nobody has yet to do", name(in, who));
  } else if (first_held_up_by(head, false) == head) {
    sc_fault(head, D_X_DEADLOCK, stopped_at(head)->span, "deadlock: %s waits for itself",
             name(head, who));
  } else {
    put_circle(head, who, sizeof who);
    sc_fault(head, D_X_DEADLOCK, stopped_at(head)->span, "deadlock: %s wait for each other", who);
    sc_fault_help(head,
                  "the roles wait for each other: one must do first what the others wait for, "
                  "or a ring needs more stages");
  }
  explain_all(m, head);
}

void sc_deadlock(Machine *m) {
  if (!blame_ended(m) && !blame_cta(m)) blame_circle(m);
}
