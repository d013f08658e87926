// report.c - faults of a run, in words: what went wrong, both places, what was missing, and how to
// see it again. Worker threads may not allocate, so a fault is text of fixed size in the machine;
// the calling thread turns the one of the smallest job into a diagnostic, so that the report does
// not depend on threads.
#include "machine.h"

#include <stdio.h>
#include <string.h>

const char *sc_inst_name(const Inst *in, char *to, size_t n) {
  const Role *r = in->of;
  u32 many = r->instances > 1, cluster = in->m->p->grid.ctas > 1;
  int used = many ? snprintf(to, n, "%s[%u]", r->name, in->number) : snprintf(to, n, "%s", r->name);
  if (cluster && used >= 0 && (size_t)used < n) {
    snprintf(to + used, n - (size_t)used, " of CTA %u", in->cta->rank);
  }
  return to;
}

// " in tile x = 0, h = 1"
static void put_tile(const Inst *in, char *to, size_t n) {
  const Kernel *k = in->env.k;
  size_t at = 0;
  to[0] = 0;
  for (u32 i = 0; i < k->axis.n && at < n; i++) {
    int more = snprintf(to + at, n - at, "%s%s = %lld", i ? ", " : " in tile ", k->axis.at[i].name,
                        (long long)in->env.axis[i]);
    at += more > 0 ? (size_t)more : 0;
  }
}

bool sc_fault(Inst *in, DiagId id, Span at, const char *fmt, ...) {
  Fault *f = &in->m->fault;
  char tile[120];
  va_list ap;
  if (f->set) return false;
  *f = (Fault){.set = true, .id = id, .at = at, .job = in->slot->job};
  va_start(ap, fmt);
  int n = vsnprintf(f->text, sizeof f->text, fmt, ap);
  va_end(ap);
  put_tile(in, tile, sizeof tile);
  if (n > 0 && (size_t)n < sizeof f->text) {
    char who[64];
    snprintf(f->text + n, sizeof f->text - (size_t)n, " (%s%s)", sc_inst_name(in, who, sizeof who),
             tile);
  }
  return false;
}

void sc_fault_note(Inst *in, Span at, const char *fmt, ...) {
  Fault *f = &in->m->fault;
  if (f->notes == FAULT_NOTES) return;
  f->note[f->notes].at = at;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(f->note[f->notes++].text, FAULT_TEXT, fmt, ap);
  va_end(ap);
}

void sc_fault_help(Inst *in, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(in->m->fault.help, FAULT_TEXT, fmt, ap);
  va_end(ap);
}

void sc_fault_report(Sc *sc, const Program *p, const Fault *f) {
  static const char *const policy[] = {"early", "late", "random"};
  Diag *d = sc_report(sc, f->id, f->at, "%s", f->text);
  for (u32 i = 0; i < f->notes; i++) sc_note(sc, d, f->note[i].at, "%s", f->note[i].text);
  sc_help(sc, d, "%s%sto see it again: --policy %s --seed %llu", f->help, f->help[0] ? "; " : "",
          policy[p->opt->policy], (unsigned long long)p->opt->seed);
}

// ---- races

static const char *deed(u8 kind) {
  static const char *const is[] = {
      [A_READ] = "threads read", [A_WRITE] = "threads write",  [A_MMA] = "a product reads",
      [A_COPY] = "a copy fills", [A_OUT] = "a copy out reads",
  };
  return is[kind];
}

// The order that is missing between `old` and what the instance does now.
static const char *remedy(const Inst *in, const Access *old, AccessKind kind) {
  bool threads = old->kind == A_READ || old->kind == A_WRITE;
  if (old->kind == A_MMA) return "wait for the product before its stage is given back";
  if (old->kind == A_OUT)
    return "'wait … read' before the stage that a copy out reads is given back";
  if (old->kind == A_COPY) return "nothing makes sure that the copy has landed: wait for the stage";
  if (threads && in->clock[old->word] >= old->value &&
      (kind == A_MMA || kind == A_COPY || kind == A_OUT)) {
    return "fence.proxy.async is missing between what threads did and the asynchronous access";
  }
  if (old->inst == in->id)
    return "the threads of the instance do not meet before one of them goes on";
  return "no barrier orders the two: one side must release or commit, and the other wait or "
         "acquire";
}

bool sc_race(Inst *in, const Part *p, const Access *old, AccessKind kind) {
  const Inst *other = &in->slot->inst[old->inst];
  const Kernel *k = in->env.k;
  const Buf *b = &k->buf.at[p->buf];
  const char *ring = k->ring.at[b->ring].name;
  char who[64], part[96];
  sc_inst_name(other, who, sizeof who);
  bool record = k->ring.at[b->ring].parts > 1;
  snprintf(part, sizeof part, "%s%s%s", ring, record ? "." : "", record ? b->name : "");
  sc_fault(in, D_X_RACE, sc_here(in), "%s '%s' in a race: nothing puts it after what %s did",
           deed(kind), part, other == in ? "the same role" : who);
  sc_fault_note(in, other->of->code.at[old->pc].span, "%s it here (%s)", deed(old->kind), who);
  if (other != in && other->ring[b->ring].released && kind == A_COPY && old->kind != A_COPY) {
    sc_fault_note(in, other->of->code.at[other->ring[b->ring].release_pc].span,
                  "%s gives stages back here", who);
  }
  sc_fault_help(in, "%s", remedy(in, old, kind));
  return false;
}

// ---- deadlock

// "load, math[0]": the roles of a set.
static void put_roles(const Kernel *k, u16 set, char *to, size_t n) {
  size_t at = 0;
  to[0] = 0;
  for (u32 r = 0; r < k->role.n && at < n; r++) {
    if (!(set >> r & 1)) continue;
    int more = snprintf(to + at, n - at, "%s%s", at ? ", " : "", k->role.at[r].name);
    at += more > 0 ? (size_t)more : 0;
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

// The member whose pass `in` waits for.
static const Inst *passes_to(const Inst *in, const Turn *t) {
  u32 first = in->id - in->m->p->inst0[in->role] - in->number;  // of this CTA
  const Inst *before = NULL, *last = NULL;
  bool met = false;
  for (u32 m = 0; m < t->members; m++) {
    for (u32 i = 0; i < in->env.k->role.at[t->member[m]].instances; i++) {
      const Inst *at = &in->slot->inst[first + in->m->p->inst0[t->member[m]] + i];
      met |= at == in;
      if (!met) before = at;
      last = at;
    }
  }
  return before ? before : last;
}

static void explain_turn(Inst *in, const Ins *i, const char *who) {
  const Turn *t = &in->env.k->turn.at[i->arg[0]];
  u32 *counter;
  i64 index;
  if (t->axis == SC_NONE) {
    char other[64];
    sc_inst_name(passes_to(in, t), other, sizeof other);
    sc_fault_note(in, i->span, "%s waits for its turn '%s'; %s could pass it on", who, t->name,
                  other);
  } else if (sc_turn_counter(in, i, &counter, &index)) {
    sc_fault_note(
        in, i->span,
        "%s waits for turn %lld of '%s'; %u passed so far, the CTA of the next could pass it on",
        who, (long long)index, t->name, *counter);
  }
}

static void explain(Inst *in) {
  char who[64];
  const Ins *i = &in->of->code.at[in->pc];
  sc_inst_name(in, who, sizeof who);
  if (in->done) {
    sc_fault_note(in, in->of->span, "%s has ended", who);
  } else if (i->op == OP_WAIT || i->op == OP_ACQUIRE) {
    explain_ring(in, i, who);
  } else if (i->op == OP_TAKE) {
    explain_turn(in, i, who);
  } else if (i->op == OP_TILE) {
    sc_fault_note(in, in->of->span, "%s waits for the next tile to be drawn", who);
  } else {
    sc_fault_note(in, i->span, "%s waits here", who);
  }
}

// Have all instances of these roles ended?
static bool ended(const Inst *in, u16 roles) {
  for (u32 i = 0; i < in->slot->insts; i++) {
    const Inst *other = &in->slot->inst[i];
    if (roles >> other->role & 1 && !other->done) return false;
  }
  return true;
}

static void suggest(Inst *in) {
  const Ins *i = &in->of->code.at[in->pc];
  if (i->op != OP_WAIT && i->op != OP_ACQUIRE) return;
  const Ring *r = &in->env.k->ring.at[i->arg[0]];
  bool full = i->op == OP_WAIT;
  if (!ended(in, full ? r->fillers : r->drainers))
    sc_fault_help(in,
                  "the roles wait for each other: one must do first what the others wait for, "
                  "or a ring needs more stages");
  else if (full) sc_fault_help(in, "'%s' is to be filled as often as it is waited for", r->name);
  else sc_fault_help(in, "'%s' is to be released as often as it is filled", r->name);
}

void sc_deadlock(Machine *m) {
  Inst *first = NULL;
  for (u32 s = 0; s < m->slots && !first; s++) {
    for (u32 i = 0; m->slot[s].busy && i < m->slot[s].insts && !first; i++) {
      if (!m->slot[s].inst[i].done) first = &m->slot[s].inst[i];
    }
  }
  if (!first) return;
  sc_fault(first, D_X_DEADLOCK, first->of->code.at[first->pc].span, "deadlock: no role can go on");
  suggest(first);
  for (u32 s = 0; s < m->slots; s++) {
    for (u32 i = 0; m->slot[s].busy && i < m->slot[s].insts; i++) explain(&m->slot[s].inst[i]);
  }
}
