// report.c - faults of a run, in words: what went wrong, both places, what was missing, and how to
// see it again. Worker threads may not allocate, so a fault is text of fixed size in the machine;
// the calling thread turns the one of the smallest job into a diagnostic, so that the report does
// not depend on threads.
#include "runtime/cpu/machine.h"

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

void sc_put_tile(const Kernel *k, const i64 *axis, char *to, size_t n) {
  size_t at = 0;
  to[0] = 0;
  for (u32 i = 0; i < k->axis.n && at < n; i++) {
    int more = snprintf(to + at, n - at, "%s%s = %lld", i ? ", " : " in tile ", k->axis.at[i].name,
                        (long long)axis[i]);
    at += more > 0 ? (size_t)more : 0;
  }
}

static void set_fault(Inst *in, const i64 *axis, Fault what, const char *fmt, va_list ap) {
  Fault *f = &in->m->fault;
  char tile[120];
  *f = what;
  int n = vsnprintf(f->text, sizeof f->text, fmt, ap);
  sc_put_tile(in->env.k, axis, tile, sizeof tile);
  if (n > 0 && (size_t)n < sizeof f->text) {
    char who[64];
    snprintf(f->text + n, sizeof f->text - (size_t)n, " (%s%s)", sc_inst_name(in, who, sizeof who),
             tile);
  }
}

bool sc_fault(Inst *in, DiagId id, Span at, const char *fmt, ...) {
  va_list ap;
  if (in->m->fault.set) return false;
  va_start(ap, fmt);
  set_fault(in, in->env.axis, (Fault){.set = true, .id = id, .at = at, .job = in->slot->job}, fmt,
            ap);
  va_end(ap);
  return false;
}

void sc_fault_of(Inst *in, u64 job, const i64 *axis, DiagId id, Span at, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  set_fault(in, axis, (Fault){.set = true, .id = id, .at = at, .job = job}, fmt, ap);
  va_end(ap);
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
  char sms[32] = "";
  if (p->opt->sms) snprintf(sms, sizeof sms, " --sms %u", p->opt->sms);
  sc_help(sc, d, "%s%sto see it again: --policy %s --seed %llu%s", f->help, f->help[0] ? "; " : "",
          policy[p->opt->policy], (unsigned long long)p->opt->seed, sms);
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
    return "the threads of the instance do not synchronize before one of them goes on";
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
