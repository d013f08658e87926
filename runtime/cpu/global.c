// global.c - races on tensors in global memory: between roles, between instances of one, and
// between CTAs, which nothing orders but turns over them. In: touches, job by job where CTAs run on
// several threads, else as they happen; each with what its instance knew. Out: the first race, with
// both lines.
//
// Each element of a tensor that the kernel writes has a list of the accesses that a later one may
// race with. Lists are shared: elements that were touched by the same accesses have the same one,
// so what an access costs is a comparison and a store an element, and a new list for each that it
// meets. Lists stay short: an access takes the place of those of its kind that come before it, and
// a store that of all.
#include "runtime/cpu/machine.h"

#include <stdio.h>
#include <time.h>

static bool is_generic(u8 kind) { return kind == G_READ || kind == G_STORE || kind == G_ADD; }
static bool stores(u8 kind) { return kind == G_STORE || kind == G_PUT; }
static bool adds(u8 kind) { return kind == G_ADD || kind == G_PUTADD; }
static bool only_reads(u8 kind) { return kind == G_READ || kind == G_LOAD; }

// Sums are atomic among those of their kind: bulk reductions towards each other, and red
// instructions towards each other (PTX ISA 9.0, 9.7.9.25: bulk copies).
static bool conflict(u8 a, u8 b) {
  if (only_reads(a) && only_reads(b)) return false;
  return a != b || stores(a);
}

// ---- order

typedef struct Now {
  Machine *m;
  const Deed *by;
  const u32 *clock;
  Slot *slot;  // NULL: it may be gone
} Now;

// Does `old` come before what is done now? As for stages: accesses by threads of one instance keep
// the program's order, and between these and copies lies a fence, for global memory. Of another
// CTA, also of the same cluster, it is what came along with a turn over CTAs, whose passing on and
// taking have fences of their own. (Instances of one CTA may have it from each other.)
static bool before(const Deed *old, const Now *now) {
  if (now->slot && sc_heard_of(now->slot, now->clock, old)) return true;
  if (old->job != now->by->job) return false;
  if (!is_generic(old->kind)) return sc_knows(now->clock, old);
  if (is_generic(now->by->kind)) return old->inst == now->by->inst || sc_knows(now->clock, old);
  return sc_knows(now->clock, old) && now->clock[old->word - C_TIME + C_GLOBAL] >= old->value;
}

// ---- lists

static u32 hash(u64 a, u64 b) {
  return (u32)((a * 0x9e3779b97f4a7c15u ^ b) * 0xbf58476d1ce4e5b9u >> 40);
}

static u32 push(Program *p, u32 deed, u32 next) {
  PUSH(p->sc, &p->global.link, ((Link){deed, next}));
  return p->global.link.n - 1;
}

// What was done before in the same way, in the same epoch, is the same deed.
static u32 number_of(Program *p, const Deed *d) {
  Global *g = &p->global;
  u32 *same = &g->same[hash(d->job << 8 | d->inst, (u64)d->pc << 32 | d->value) % MEMO];
  const Deed *old = &g->deed.at[*same];
  if (*same < g->deed.n && old->job == d->job && old->unit == d->unit && old->inst == d->inst &&
      old->pc == d->pc && old->word == d->word && old->value == d->value && old->kind == d->kind)
    return *same;
  PUSH(p->sc, &g->deed, *d);
  return *same = g->deed.n - 1;
}

// An access of the list that nothing puts before the one now; NULL: there is none.
static const Deed *race_in(const Global *g, u32 list, const Now *now) {
  for (; list; list = g->link.at[list].next) {
    const Deed *old = &g->deed.at[g->link.at[list].deed];
    if (conflict(old->kind, now->by->kind) && !before(old, now)) return old;
  }
  return NULL;
}

// What will be known to come after the one now will be known to come after `old`.
static bool stands_for(const Deed *old, const Now *now) {
  if (old->kind != now->by->kind) return false;
  bool same = old->job == now->by->job && old->inst == now->by->inst && old->word == now->by->word;
  return same || before(old, now);
}

// Where no turn orders CTAs, whoever races with one CTA's accesses or with another's races with
// those of any third.
static bool enough(const Program *p, const Now *now) {
  const Global *g = &p->global;
  u64 first = now->by->job;
  if (p->cta_turns) return false;
  for (u32 i = 0; i < g->kept.n; i++) {
    const Deed *d = &g->deed.at[g->link.at[g->kept.at[i]].deed];
    if (d->kind != now->by->kind || d->job == now->by->job) continue;
    if (first != now->by->job && d->job != first) return true;
    first = d->job;
  }
  return false;
}

// The list after an access that races with none of it.
static u32 list_after(Program *p, u32 list, u32 deed, const Now *now) {
  Global *g = &p->global;
  if (stores(now->by->kind)) return push(p, deed, 0);
  u32 kept = list;
  bool dropped = false;
  g->kept.n = 0;
  for (u32 l = list; l; l = g->link.at[l].next) {
    if (g->link.at[l].deed == deed) return list;
    if (stands_for(&g->deed.at[g->link.at[l].deed], now)) dropped = true;
    else PUSH(p->sc, &g->kept, l);
  }
  if (dropped) kept = 0;
  for (u32 i = g->kept.n; dropped && i-- > 0;) kept = push(p, g->link.at[g->kept.at[i]].deed, kept);
  return enough(p, now) ? kept : push(p, deed, kept);
}

// ---- races

static const char *deed_text(u8 kind) {
  static const char *const is[] = {
      [G_READ] = "threads read", [G_STORE] = "threads write", [G_ADD] = "threads add to",
      [G_LOAD] = "a copy reads", [G_PUT] = "a copy writes",   [G_PUTADD] = "a copy adds to",
  };
  return is[kind];
}

static const char *remedy(const Deed *old, const Now *now) {
  if (adds(old->kind) && adds(now->by->kind))
    return "sums by threads and sums by copies are not atomic towards each other: add in one way, "
           "or let a barrier order them";
  if (old->job != now->by->job)
    return "CTAs run in no order: let each touch elements of its own, or let them take turns, "
           "'turn t : x'";
  if (old->kind == G_PUT || old->kind == G_PUTADD)
    return "what is copied out is there for others after a full 'wait' for the tensor, without "
           "'read'";
  if (old->kind == G_LOAD)
    return "nothing makes sure that the copy has read it: wait for its stage first";
  if (!is_generic(now->by->kind) && sc_knows(now->clock, old))
    return "fence.proxy.async for global memory is missing between what threads did and the copy";
  return "no barrier orders the two: one side must release or commit, and the other wait or "
         "acquire";
}

// "[64, 0]"
static void put_place(const Program *p, const Touch *t, i64 number, char *to, size_t n) {
  const Shadow *s = &p->global.of[t->buf];
  size_t used = 0;
  for (u32 d = 0; d < p->k->buf.at[t->buf].rank && used < n; d++) {
    int more =
        snprintf(to + used, n - used, "%s%lld", d ? ", " : "[", (long long)(number / s->step[d]));
    used += more > 0 ? (size_t)more : 0;
    number %= s->step[d];
  }
  if (used < n) snprintf(to + used, n - used, "%s", used ? "]" : "");
}

static void tile_of(const Program *p, const Deed *d, i64 *axis) {
  sc_tile_axes(&p->grid, p->k, d->unit, d->inst / p->insts, axis);
}

static bool report(const Touch *t, const Deed *old, const Now *now, i64 number) {
  Program *p = now->m->p;
  const char *name = p->k->buf.at[t->buf].name;
  Inst *in = &now->m->slot[0].inst[t->by.inst], *other = &now->m->slot[0].inst[old->inst];
  i64 axis[SC_MAX_AXES] = {0};
  char who[64], tile[120], place[120] = "";
  bool same = old->job == t->by.job && old->inst == t->by.inst;
  sc_inst_name(other, who, sizeof who);
  tile_of(p, old, axis);
  sc_put_tile(p->k, axis, tile, sizeof tile);
  put_place(p, t, number, place, sizeof place);
  tile_of(p, &t->by, axis);
  sc_fault_of(in, t->by.job, axis, D_X_RACE, in->of->code.at[t->by.pc].span,
              "%s '%s' in a race: nothing puts it after what %s%s did", deed_text(t->by.kind), name,
              same ? "the same role" : who, old->job == t->by.job ? "" : tile);
  sc_fault_note(in, other->of->code.at[old->pc].span, "%s it here (%s%s); both touch %s%s",
                deed_text(old->kind), who, tile, name, place);
  sc_fault_help(in, "%s", remedy(old, now));
  return false;
}

// ---- entering

// One run of elements next to each other.
static bool enter_run(const Touch *t, u32 deed, const Now *now, i64 from, i64 n) {
  Program *p = now->m->p;
  Global *g = &p->global;
  u32 *cell = g->of[t->buf].cell + from, was = 0, list = 0;
  for (i64 i = 0; i < n; i++) {
    if (!list || cell[i] != was) {
      was = cell[i];
      u32 at = hash(was, deed) % MEMO;
      if (g->memo[at].from != was || g->memo[at].deed != deed || !g->memo[at].to) {
        const Deed *old = race_in(g, was, now);
        if (old) return report(t, old, now, from + i);
        g->memo[at].from = was;
        g->memo[at].deed = deed;
        g->memo[at].to = list_after(p, was, deed, now);
      }
      list = g->memo[at].to;
    }
    cell[i] = list;
  }
  return true;
}

static bool enter_box(const Touch *t, u32 deed, const Now *now, u32 way, i64 from) {
  const Box *b = &t->at;
  if (way == b->loops) return enter_run(t, deed, now, from, 1);
  if (b->step[way] == 1) return enter_run(t, deed, now, from, b->n[way]);
  for (i64 i = 0; i < b->n[way]; i++)
    if (!enter_box(t, deed, now, way + 1, from + i * b->step[way])) return false;
  return true;
}

bool sc_enter_touch(Machine *m, const Touch *t, const u32 *clock, Slot *slot) {
  Now now = {m, &t->by, clock, slot};
  return enter_box(t, number_of(m->p, &t->by), &now, 0, t->at.first);
}

// ---- logs of several threads

// Enters job by job, so that the report is the same with any number of threads: those of the
// smallest job that has not ended, up to its end, then the next one's.
void sc_enter_logs(Program *p) {
  Machine *lead = p->machine[0];
  if (atomic_load(&p->stop)) return;
  for (u32 i = 0, idle = 0; idle < p->machines; i = (i + 1) % p->machines, idle++) {
    Machine *m = p->machine[i];
    for (const Touch *t; (t = sc_log_head(m)) && t->by.job == p->pen; idle = 0) {
      if (lead->fault.set && lead->fault.job < p->pen) return;
      if (t->by.kind == G_END) p->pen++;
      else if (!sc_enter_touch(lead, t, sc_log_clock(t), NULL)) sc_give_up(p, SCHEDC_EFAULT);
      if (atomic_load(&p->stop)) return;
      sc_log_next(m);
    }
  }
}

bool sc_make_room(Machine *m, u64 job) {
  Program *p = m->p;
  if (!m->caller) {
    atomic_fetch_add(&p->crowded, 1);
    sc_tell(p);
  }
  while (sc_log_full(m) && !sc_abandoned(m, job)) {
    if (m->caller) sc_enter_logs(p);
    if (sc_log_full(m)) nanosleep(&(struct timespec){0, 20000}, NULL);
  }
  if (!m->caller) atomic_fetch_sub(&p->crowded, 1);
  return !sc_log_full(m);
}

// ---- the program

static void make_shadow(Program *p, u32 buf) {
  const Buf *b = &p->k->buf.at[buf];
  Shadow *s = &p->global.of[buf];
  u64 n = 1;
  for (u32 d = b->rank; d-- > 0;) {
    s->step[d] = (i64)(n ? n : 1);
    n *= (u64)p->b->buf[buf].shape[d];
  }
  s->cell = NEWS(p->sc, u32, n + 1);
}

// The tensor that an operation writes; SC_NONE: none.
static u32 written_by(const Kernel *k, const Ins *i) {
  u32 view = i->op == OP_MAP || i->op == OP_MAPADD        ? k->map.at[i->arg[0]].dst
             : i->op == OP_COPYOUT || i->op == OP_COPYADD ? i->arg[0]
                                                          : SC_NONE;
  if (view == SC_NONE) return SC_NONE;
  u32 buf = k->view.at[view].buf;
  return k->buf.at[buf].space == SP_TENSOR ? buf : SC_NONE;
}

void sc_global(Program *p) {
  const Kernel *k = p->k;
  Global *g = &p->global;
  g->of = NEWS(p->sc, Shadow, k->buf.n + 1);
  push(p, 0, 0);  // 0 is no list
  for (u32 r = 0; r < k->role.n; r++) {
    for (u32 i = 0; i < k->role.at[r].code.n; i++) {
      u32 buf = written_by(k, &k->role.at[r].code.at[i]);
      if (buf != SC_NONE && !g->of[buf].cell) make_shadow(p, buf);
    }
  }
}
