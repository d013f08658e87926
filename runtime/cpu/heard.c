// heard.c - what CTAs know of one another. Inside a CTA, vector clocks say which operations of one
// instance another one knows to have been done. Between CTAs only turns pass such knowledge on: an
// instance that passes a turn on leaves all that it knows with the turn, and the one that takes it
// knows that, too.
//
// What was left with a turn is a set of pairs (an instance that has passed a turn on, how many of
// its passes are known). For each turn that an instance takes, the set that came with it is kept; a
// clock has one more word for each instance, which says how many of these sets are known. CTAs that
// take turns all run on the calling thread, so that memory may be allocated here.
#include "runtime/cpu/machine.h"

#include <string.h>

// ---- sets: passers in rising order, and how many of their passes are known

static Heard *room(Program *p, u32 n) { return NEWS(p->sc, Heard, n + 1); }

static Known both(Program *p, Known a, Known b) {
  if (!a.n || !b.n) return a.n ? a : b;
  Heard *to = room(p, a.n + b.n);
  u32 n = 0, i = 0, j = 0;
  while (i < a.n || j < b.n) {
    if (j == b.n || (i < a.n && a.at[i].passer < b.at[j].passer)) to[n++] = a.at[i++];
    else if (i == a.n || b.at[j].passer < a.at[i].passer) to[n++] = b.at[j++];
    else {
      to[n] = a.at[i].passes > b.at[j].passes ? a.at[i] : b.at[j];
      n++, i++, j++;
    }
  }
  return (Known){to, n};
}

// Of all turns that the clock knows to have been taken by instances of its CTA.
static Known all_known(const Inst *in) {
  Known all = {NULL, 0};
  for (u32 i = 0; i < in->slot->insts; i++) {
    u32 taken = in->clock[i * C_INST + C_TAKEN];
    if (taken) all = both(in->m->p, all, in->slot->inst[i].heard.at[taken - 1]);
  }
  return all;
}

// ---- turns

static Known *left_with(const Inst *in, u32 turn, const u32 *counter) {
  const Program *p = in->m->p;
  return &p->left[turn][counter - p->counter[turn]];
}

void sc_heard_pass(Inst *in, u32 turn, const u32 *counter) {
  Program *p = in->m->p;
  sc_sync(in);
  if (!in->passer) {
    PUSH(p->sc, &p->passer, ((Passer){.job = in->slot->job}));
    in->passer = p->passer.n;
  }
  Passer *me = &p->passer.at[in->passer - 1];
  u32 *clock = NEWS(p->sc, u32, p->words);
  memcpy(clock, in->clock, p->words * sizeof *clock);
  PUSH(p->sc, &me->clock, clock);
  Heard *mine = room(p, 1);
  *mine = (Heard){in->passer - 1, me->clock.n};
  Known *left = left_with(in, turn, counter);
  *left = both(p, *left, both(p, all_known(in), (Known){mine, 1}));
}

void sc_heard_take(Inst *in, u32 turn, const u32 *counter) {
  Program *p = in->m->p;
  u32 *word = &in->clock[in->id * C_INST + C_TAKEN];
  Known before = *word ? in->heard.at[*word - 1] : (Known){NULL, 0};
  PUSH(p->sc, &in->heard, both(p, before, *left_with(in, turn, counter)));
  *word = in->heard.n;
  sc_sync(in);
}

// ---- accesses

static bool one_knows(const Program *p, Known k, const Deed *d) {
  for (u32 i = 0; i < k.n; i++) {
    const Passer *by = &p->passer.at[k.at[i].passer];
    if (by->job != d->job) continue;
    const u32 *clock = by->clock.at[k.at[i].passes - 1];
    if (sc_knows(clock, d)) return true;
  }
  return false;
}

bool sc_heard_of(const Slot *s, const u32 *clock, const Deed *d) {
  for (u32 i = 0; i < s->insts; i++) {
    u32 taken = clock[i * C_INST + C_TAKEN];
    if (taken && one_knows(s->inst[0].m->p, s->inst[i].heard.at[taken - 1], d)) return true;
  }
  return false;
}
