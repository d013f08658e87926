// know.c - vector clocks. What a thread knows is an object that never changes and is shared by all
// who know the same: the threads of a warpgroup that wait for the same barriers have one between
// them, and a join of two that was made before is found again. So waiting costs a look-up, and not
// a walk over all threads. After Lamport (1978) and Mattern (1989); the clocks for engines are
// those of the async proxy (PTX ISA 9.0, 8.7).
#include <stdlib.h>
#include <string.h>

#include "model.h"

enum { JOINS = 512 };
typedef struct Join {
  Know *a, *b, *both;  // b NULL: a fence of shared memory; a itself: of all memory
} Join;
static Join joins[JOINS];

u32 *md_clock(const Know *k, u32 clock) { return (u32 *)k->at + (size_t)clock * md.comps; }

static size_t clocks_bytes(void) { return (size_t)CLOCKS * md.comps * sizeof(u32); }

Know *md_keep(Know *k) {
  if (k) k->refs++;
  return k;
}

void md_drop(Know *k) {
  if (!k || --k->refs) return;
  for (u32 i = 0; i < k->foreigners; i++) md_drop(k->foreign[i].know);
  free(k->foreign);
  free(k);
}

void md_forget_joins(void) {
  for (u32 i = 0; i < JOINS; i++) {
    md_drop(joins[i].a);
    md_drop(joins[i].b);
    md_drop(joins[i].both);
    joins[i] = (Join){0};
  }
}

static Know *new_know(void) {
  Know *k = md_new(sizeof *k + clocks_bytes());
  k->refs = 1;
  return k;
}

static Know *copy_of(const Know *k) {
  Know *c = new_know();
  if (!k) return c;
  memcpy(c->at, k->at, clocks_bytes());
  c->foreigners = k->foreigners;
  if (k->foreigners) c->foreign = md_new(k->foreigners * sizeof *k->foreign);
  for (u32 i = 0; i < k->foreigners; i++)
    c->foreign[i] = (Foreign){k->foreign[i].gang, md_keep(k->foreign[i].know)};
  return c;
}

static Join *join_of(const Know *a, const Know *b) {
  u64 h = ((uintptr_t)a >> 4) * 0x9e3779b97f4a7c15u ^ ((uintptr_t)b >> 4) * 0xc2b2ae3d27d4eb4fu;
  return &joins[h >> 40 & (JOINS - 1)];
}

static Know *remember(Join *j, Know *a, Know *b, Know *both) {
  md_drop(j->a);
  md_drop(j->b);
  md_drop(j->both);
  *j = (Join){md_keep(a), md_keep(b), md_keep(both)};
  return both;
}

// ---- other clusters

// `of` has no foreigners: what it knew of further clusters is told beside it. Else each would hold
// those before it, and all that they held.
static void put_foreign(Know *k, u32 gang, Know *of) {
  u32 i = 0;
  while (i < k->foreigners && k->foreign[i].gang < gang) i++;
  if (i < k->foreigners && k->foreign[i].gang == gang) {
    Know *both = md_both(k->foreign[i].know, of);
    md_drop(k->foreign[i].know);
    k->foreign[i].know = both;
    return;
  }
  k->foreign = md_more(k->foreign, (k->foreigners + 1) * sizeof *k->foreign);
  memmove(k->foreign + i + 1, k->foreign + i, (k->foreigners - i) * sizeof *k->foreign);
  k->foreign[i] = (Foreign){gang, md_keep(of)};
  k->foreigners++;
}

Know *md_of_own(const Know *k) {
  Know *own = new_know();
  memcpy(own->at, k->at, clocks_bytes());
  return own;
}

void md_meet_gang(Mind *m, u32 own, u32 gang, Know *k) {
  if (gang == own) {
    md_learn(m, k);
    return;
  }
  Know *mine = copy_of(m->know);
  md_drop(m->know);
  m->know = mine;
  put_foreign(mine, gang, k);
}

// ---- joining

static bool same(const Know *a, const Know *b) {
  return a->foreigners == b->foreigners && !memcmp(a->at, b->at, clocks_bytes()) &&
         !memcmp(a->foreign ? (void *)a->foreign : (void *)"",
                 b->foreign ? (void *)b->foreign : (void *)"", a->foreigners * sizeof *a->foreign);
}

Know *md_both(Know *a, Know *b) {
  if (a == b || !b) return md_keep(a);
  if (!a) return md_keep(b);
  Join *j = join_of(a, b);
  if (j->a == a && j->b == b) return md_keep(j->both);
  Know *both = copy_of(a);
  for (size_t i = 0; i < (size_t)CLOCKS * md.comps; i++)
    both->at[i] = a->at[i] > b->at[i] ? a->at[i] : b->at[i];
  for (u32 i = 0; i < b->foreigners; i++) put_foreign(both, b->foreign[i].gang, b->foreign[i].know);
  Know *known = same(both, a) ? a : same(both, b) ? b : NULL;
  if (known) {
    md_drop(both);
    both = md_keep(known);
  }
  return remember(j, a, b, both);
}

void md_learn(Mind *m, Know *k) {
  Know *both = md_both(m->know, k);
  md_drop(m->know);
  m->know = both;
}

// Of what is asynchronous, engines know as much as threads: no fence lies between them.
Know *md_noted(Know *k, u32 comp, u32 value) {
  if (k && md_clock(k, KNOWN)[comp] >= value) return k;
  Know *c = k && k->refs == 1 ? k : copy_of(k);
  if (c != k) md_drop(k);
  for (u32 i = 0; i < CLOCKS; i++) {
    if (md_clock(c, i)[comp] < value) md_clock(c, i)[comp] = value;
  }
  return c;
}

void md_learn_one(Mind *m, u32 comp, u32 value) { m->know = md_noted(m->know, comp, value); }

bool md_knows(const Mind *m, u32 comp, u32 value) {
  return !value || (comp == m->comp ? m->epoch >= value
                                    : m->know && md_clock(m->know, CAUSED)[comp] >= value);
}

// ---- telling

Bring md_cause(const Mind *m) { return (Bring){md_keep(m->know), m->comp, m->epoch, {0}, true}; }

void md_tell(Brings *to, Mind *m) {
  Bring b = {md_keep(m->know), m->comp, m->epoch++, {0}, false};
  memcpy(b.fenced, m->fenced, sizeof b.fenced);
  APPEND(to, b);
}

static void raise(u32 *to, u32 least) {
  if (*to < least) *to = least;
}

Know *md_settle(Brings *b) {
  Know *all = NULL;
  const Know *last = NULL;
  for (u32 i = 0; i < b->n; i++) {
    if (b->at[i].know == last || b->at[i].causal) continue;
    last = b->at[i].know;
    Know *both = md_both(all, b->at[i].know);
    md_drop(all);
    all = both;
  }
  Know *settled = copy_of(all);
  md_drop(all);
  for (u32 i = 0; i < b->n; i++) {
    const Bring *x = &b->at[i];
    for (u32 j = 0; x->causal && x->know && j < md.comps; j++)
      raise(&md_clock(settled, CAUSED)[j], md_clock(x->know, CAUSED)[j]);
    raise(&md_clock(settled, CAUSED)[x->comp], x->epoch);
    if (!x->causal) {
      raise(&md_clock(settled, KNOWN)[x->comp], x->epoch);
      raise(&md_clock(settled, KNOWN_SHARED)[x->comp], x->fenced[KNOWN_SHARED]);
      raise(&md_clock(settled, KNOWN_GLOBAL)[x->comp], x->fenced[KNOWN_GLOBAL]);
    }
    md_drop(x->know);
  }
  b->n = 0;
  return settled;
}

// ---- proxies

static Know *fenced(Know *k, bool global) {
  if (!k) return NULL;
  Know *mark = global ? k : NULL;
  Join *j = join_of(k, mark);
  if (j->a == k && j->b == mark && j->both) return md_keep(j->both);
  Know *f = copy_of(k);
  for (u32 i = 0; i < md.comps; i++) {
    raise(&md_clock(f, KNOWN_SHARED)[i], f->at[i]);
    if (global) raise(&md_clock(f, KNOWN_GLOBAL)[i], f->at[i]);
  }
  for (u32 i = 0; i < f->foreigners && global; i++) {
    Know *of = fenced(f->foreign[i].know, true);
    md_drop(f->foreign[i].know);
    f->foreign[i].know = of;
  }
  return remember(j, k, mark, f);
}

void md_fence(Mind *m, bool global) {
  Know *f = fenced(m->know, global);
  md_drop(m->know);
  m->know = f;
  m->fenced[KNOWN_SHARED] = m->epoch;
  if (global) m->fenced[KNOWN_GLOBAL] = m->epoch;
  m->epoch++;
}
