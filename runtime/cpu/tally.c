// tally.c - checks that the roles of a CTA agree about each tile: a ring is filled as often as it
// is waited for, and every member takes a turn equally often. A run in which they disagree need not
// get stuck: a ring may have room for a fill that nobody waits for, and the last pass of a turn may
// be one that nobody takes. But then a copy may land in the memory of a CTA that has ended, or the
// next tile may find what this one has left. In: what each instance has counted while it ran. Out:
// a fault, found when all instances of the CTA have ended.
#include "runtime/cpu/machine.h"

#include <string.h>

// An instance's counts: fills by ring, then waits by ring, then turns.
static u32 count_of(const Inst *in, u32 i) {
  u32 rings = in->env.k->ring.n;
  if (i < rings) return in->ring[i].committed;
  return i < 2 * rings ? in->ring[i - rings].waited : in->taken[i - 2 * rings];
}

void sc_tally_tile(Inst *in) {
  const Kernel *k = in->env.k;
  for (u32 i = 0; i < 2 * k->ring.n + k->turn.n; i++) {
    Tally *t = &in->tally[i];
    u32 now = count_of(in, i);
    t->tiles = (t->tiles + now - t->before + 1) * 0x9e3779b97f4a7c15u;
    t->before = now;
  }
}

static bool in_each_tile(const Inst *a, u32 i, const Inst *b, u32 j) {
  return a->tally[i].tiles == b->tally[j].tiles;
}

// Has `to` waited for all that `from` filled?
static bool waited_for_all(Inst *from, Inst *to, u32 ring) {
  const Ring *r = &from->env.k->ring.at[ring];
  u32 waits = from->env.k->ring.n + ring, filled = count_of(from, ring),
      taken = count_of(to, waits);
  if (filled == taken && in_each_tile(from, ring, to, waits)) return true;
  char who[64];
  if (filled == taken)
    sc_fault(from, D_X_LEFT, r->span,
             "'%s' is waited for as often as it is filled in all, but not in each tile", r->name);
  else
    sc_fault(from, D_X_LEFT, r->span, "%u of the fills of '%s' %s left over", filled - taken,
             r->name, filled - taken == 1 ? "is" : "are");
  sc_fault_note(from, from->of->span, "%s filled %u", sc_inst_name(from, who, sizeof who), filled);
  sc_fault_note(from, to->of->span, "%s waited for %u", sc_inst_name(to, who, sizeof who), taken);
  sc_fault_help(from, "'%s' is to be waited for as often as it is filled, in each tile", r->name);
  return false;
}

static bool filled_as_waited(Inst *from, Inst *to) {
  const Kernel *k = from->env.k;
  for (u32 i = 0; i < k->ring.n; i++) {
    const Ring *r = &k->ring.at[i];
    if (!(r->fillers >> from->role & 1) || !(r->drainers >> to->role & 1)) continue;
    if (r->owner != SC_NONE && from != to) continue;
    if (!waited_for_all(from, to, i)) return false;
  }
  return true;
}

static bool took_as_often(Inst *a, Inst *b, u32 turn) {
  const Turn *t = &a->env.k->turn.at[turn];
  u32 at = 2 * a->env.k->ring.n + turn, x = count_of(a, at), y = count_of(b, at);
  if (t->axis != SC_NONE || !sc_is_member(t, a->role) || !sc_is_member(t, b->role)) return true;
  if (x == y && in_each_tile(a, at, b, at)) return true;
  char who[64];
  sc_fault(a, D_X_LEFT, t->span, "the members of the turn '%s' do not take it equally often%s",
           t->name, x == y ? " in each tile" : "");
  sc_fault_note(a, a->of->span, "%s took it %u time%s", sc_inst_name(a, who, sizeof who), x,
                x == 1 ? "" : "s");
  sc_fault_note(a, b->of->span, "%s took it %u time%s", sc_inst_name(b, who, sizeof who), y,
                y == 1 ? "" : "s");
  sc_fault_help(
      a,
      "each takes '%s' as often as every other in each tile: with more of them one would wait "
      "for a turn that nobody passes on",
      t->name);
  return false;
}

static bool turned_alike(Inst *a, Inst *b) {
  for (u32 t = 0; t < a->env.k->turn.n; t++)
    if (!took_as_often(a, b, t)) return false;
  return true;
}

void sc_tally_up(Slot *s) {
  for (u32 i = 0; i < s->insts; i++) {
    for (u32 j = 0; j < s->insts; j++) {
      Inst *a = &s->inst[i], *b = &s->inst[j];
      if (a->cta != b->cta) continue;
      if (!filled_as_waited(a, b) || (i < j && !turned_alike(a, b))) return;
    }
  }
}
