// turn.c - turns: over instances, by tokens of the CTA, and over CTAs, by counters of the launch.
// In: an instance that takes a turn or passes it on. Out: whether it goes on, and what it then
// knows of the others.
#include "runtime/cpu/machine.h"

// The instance's place among the members of a turn over instances.
static u32 place_in(const Inst *in, const Turn *t) {
  return sc_members_before(in->env.k, t, in->role) + in->number;
}

bool sc_turn_counter(Inst *in, const Ins *i, u32 **counter, i64 *index) {
  const Program *p = in->m->p;
  const Turn *t = &p->k->turn.at[i->arg[0]];
  i64 key = t->keys && i->arg[1] ? env_int(&in->env, i->arg[1]) : 0, at = 0;
  if (key < 0 || key >= p->keys[i->arg[0]]) {
    return sc_fault(in, D_X_BOUNDS, i->span, "turn '%s' has %lld keys; this asks for %lld", t->name,
                    (long long)p->keys[i->arg[0]], (long long)key);
  }
  for (u32 a = 0; a < p->grid.axes; a++) {
    i64 n = p->grid.units[a] * p->k->axis.at[a].cluster;
    if (a != t->axis) at = at * n + in->env.axis[a];
  }
  *counter = &p->counter[i->arg[0]][at * p->keys[i->arg[0]] + key];
  *index = in->env.axis[t->axis];
  return true;
}

Step sc_take_turn(Inst *in, const Ins *i) {
  const Turn *t = &in->env.k->turn.at[i->arg[0]];
  if (t->axis != SC_NONE) {
    u32 *counter;
    i64 index;
    if (!sc_turn_counter(in, i, &counter, &index)) return STEP_FAULT;
    if (*counter != index) return STEP_BLOCKED;
    in->out_taken[i->arg[0]] = in->out_issued;
    sc_heard_take(in, i->arg[0], counter);
    return STEP_GO;
  }
  u32 at = in->m->p->token0[i->arg[0]] + place_in(in, t);
  if (!in->cta->token[at]) return STEP_BLOCKED;
  in->cta->token[at]--;
  in->taken[i->arg[0]]++;
  sc_sync(in);
  sc_join(in->clock, in->cta->token_clock[at], in->slot->words);
  return STEP_GO;
}

// Over CTAs: what the next one adds must come after, so copies out that were issued under the turn
// must be visible. The threads meet, and one of them runs a fence: that counts in this CTA's later
// tiles as well.
static Step pass_to_cta(Inst *in, const Ins *i) {
  u32 *counter;
  i64 index;
  if (in->out_issued > in->out_seen && in->out_issued > in->out_taken[i->arg[0]]) {
    sc_fault(in, D_X_FLIGHT, i->span, "the turn is passed on while a copy out is in flight");
    sc_fault_note(in, in->of->code.at[in->out_pc].span, "issued here");
    sc_fault_help(in, "'wait' for the tensor that is written, without 'read'");
    return STEP_FAULT;
  }
  if (!sc_turn_counter(in, i, &counter, &index)) return STEP_FAULT;
  sc_sync(in);
  sc_fence(in, true);
  sc_heard_pass(in, i->arg[0], counter);
  ++*counter;
  return STEP_GO;
}

Step sc_pass_turn(Inst *in, const Ins *i) {
  const Turn *t = &in->env.k->turn.at[i->arg[0]];
  if (t->axis != SC_NONE) return pass_to_cta(in, i);
  u32 after = (place_in(in, t) + 1) % sc_members(in->env.k, t);
  u32 next = in->m->p->token0[i->arg[0]] + after;
  u32 *clock = in->cta->token_clock[next];
  sc_join(clock, in->clock, in->slot->words);
  if (clock[in->id * C_INST + C_TIME] < in->now) clock[in->id * C_INST + C_TIME] = in->now;
  in->now++;
  if (++in->cta->token[next] > 1) {
    sc_fault(in, D_X_TURN, i->span, "turn '%s' is passed on again before the next member took it",
             t->name);
    sc_fault_help(in,
                  "every member takes the turn as often as every other: its named barrier counts "
                  "one arrival at a time");
    return STEP_FAULT;
  }
  return STEP_GO;
}
