// blocked.c - who waits for whom in a run in which nobody can go on. In: the run. Out: for each
// process that waits, the process that must act first, and both in words.
#include "compiler/verify/protocol.h"

static const Step *at(const Run *r, u32 process) {
  return &r->p->process.at[process].script->step.at[r->at[process]];
}

const char *sc_process_text(Verify *v, const Protocol *p, u32 process) {
  const Process *q = &p->process.at[process];
  const char *name = sc_printf(v->sc, "'%s'", v->k->role.at[q->role].name);
  if (sc_instances_apart(p, q->role)) name = sc_printf(v->sc, "%s %u", name, q->instance);
  return p->ranks > 1 ? sc_printf(v->sc, "%s of CTA %u", name, q->rank) : name;
}

static u32 slowest(const Run *r, u32 channel, bool drains) {
  u32 who = SC_NONE, low = UINT32_MAX;
  for (u32 i = 0; i < r->p->process.n; i++) {
    const Process *q = &r->p->process.at[i];
    u32 ring = r->p->channel.at[channel].ring;
    if (q->channel[ring] != channel) continue;
    u32 number = drains ? q->drain[ring] : q->fill[ring];
    if (number == SC_NONE) continue;
    u32 n = r->count[number + drains];
    if (n >= low) continue;
    low = n;
    who = i;
  }
  return who;
}

u32 sc_awaited(const Run *r, u32 process) {
  const Process *q = &r->p->process.at[process];
  const Step *s = at(r, process);
  if (s->kind == STEP_ACQUIRE) return slowest(r, q->channel[s->ref], true);
  if (s->kind == STEP_WAIT) return slowest(r, q->channel[s->ref], false);
  if (s->kind != STEP_TAKE) return SC_NONE;
  u8 turn = r->turn[s->ref * r->p->ranks + q->rank];
  for (u32 i = 0; i < r->p->process.n; i++)
    if (r->p->process.at[i].member[s->ref] == turn && r->p->process.at[i].rank == q->rank) return i;
  return SC_NONE;
}

const char *sc_waits_text(Verify *v, const Run *r, u32 process) {
  const Process *q = &r->p->process.at[process];
  const Step *s = at(r, process);
  u32 who = sc_awaited(r, process);
  const char *other = who == SC_NONE ? "another role" : sc_process_text(v, r->p, who);
  if (s->kind == STEP_TAKE)
    return sc_printf(v->sc, "for the turn '%s', which %s has", v->k->turn.at[s->ref].name, other);
  const Ring *ring = &v->k->ring.at[s->ref];
  if (s->kind == STEP_ACQUIRE)
    return sc_printf(
        v->sc,
        "for an empty stage of '%s' (stage %u of %u, fill %u of the tile), which %s must release",
        ring->name, r->count[q->fill[s->ref]] % ring->stages, ring->stages,
        r->count[q->fill[s->ref]] + 1, other);
  return sc_printf(v->sc, "for fill %u of '%s' in the tile, which %s must commit",
                   r->count[q->drain[s->ref]] + 1, ring->name, other);
}
