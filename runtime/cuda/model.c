// model.c - reports what the model of a GPU (model/fault.h) found wrong in a launch, in the
// schedule's terms. In: the model's remarks, at lines of the schedule, with threads and memory as
// the machine numbers them. Out: a diagnostic with roles, rings and tensors.
#include "runtime/cuda/gpu.h"

#include <stdlib.h>
#include <string.h>

typedef struct Naming {
  Sc *sc;
  const Loaded *l;
  const Kernel *k;  // of the step that failed
  const CudaText *text;
} Naming;

// "math[1] (CTA 0, thread 140)"
static const char *thread_name(const Naming *n, u32 cta, u32 thread) {
  u32 instance, role = sc_role_of_warp(n->k, thread / 32, &instance);
  if (role == SC_NONE)
    return sc_printf(n->sc, "thread %u of CTA %u, which has no role,", thread, cta);
  return sc_printf(n->sc, "%s (CTA %u, thread %u)",
                   sc_instance_name(n->sc, &n->k->role.at[role], instance), cta, thread);
}

// "byte 512 of stage 1 of 'k' (CTA 0)"
static const char *shared_name(const Naming *n, u32 cta, u32 at) {
  const Kernel *k = n->k;
  for (u32 i = 0; i < k->ring.n; i++) {
    const Ring *r = &k->ring.at[i];
    if (at < r->offset || at - r->offset >= sc_ring_bytes(k, r)) continue;
    u32 from = at - r->offset, first = 0, apart = r->stage_bytes,
        vectors = (u32)sc_vectors_at(k, r);
    if (from >= vectors) from -= vectors, first = r->stage_bytes, apart = r->vector_bytes;
    return sc_printf(n->sc, "byte %u of stage %u of '%s' (CTA %u)", first + from % apart,
                     from / apart % r->stages, r->name, cta);
  }
  return sc_printf(n->sc, "byte %u of shared memory (CTA %u)", at, cta);
}

static const char *in_phase(const Naming *n, const char *what, u32 cta, int generation, u32 stages,
                            u32 stage, const char *unit) {
  if (generation < 0)
    return sc_printf(n->sc, "the phase before the first of %s (CTA %u)", what, cta);
  return sc_printf(n->sc, "generation %d of %s (CTA %u, %s %u)", generation, what, cta, unit,
                   (u32)generation * stages + stage);
}

// "generation 2 of the full barrier of 'k', stage 1 (CTA 0, fill 5)"
static const char *barrier_name(const Naming *n, u32 cta, u32 at, int generation) {
  const Kernel *k = n->k;
  for (u32 i = 0; i < k->ring.n; i++) {
    const Ring *r = &k->ring.at[i];
    if (at < r->barrier || at - r->barrier >= sc_ring_copies(k, r) * r->stages * 16) continue;
    u32 number = (at - r->barrier) % (16 * r->stages) / 8, stage = number % r->stages;
    const char *what = sc_printf(n->sc, "the %s barrier of '%s', stage %u",
                                 number < r->stages ? "full" : "empty", r->name, stage);
    return in_phase(n, what, cta, generation, r->stages, stage, "fill");
  }
  if (k->grid == GRID_DYNAMIC && at >= sc_slot_barriers(k) && at < sc_slot_barriers(k) + 32) {
    u32 number = (at - sc_slot_barriers(k)) / 8, slot = number % 2;
    const char *what = sc_printf(n->sc, "the %s barrier of the next tile, slot %u",
                                 number < 2 ? "full" : "empty", slot);
    return in_phase(n, what, cta, generation, 2, slot, "draw");
  }
  u32 named = n->text->named;  // where --debug-waits has mbarriers for them
  if (named && at >= named)
    return sc_printf(n->sc, "generation %d of named barrier %u (CTA %u)", generation,
                     (at - named) / 8, cta);
  return sc_printf(n->sc, "generation %d of the mbarrier at byte %u (CTA %u)", generation, at, cta);
}

// "byte 512 of tensor 'O'": of the tensor that begins last before the address.
static const char *global_name(const Naming *n, u64 at) {
  const Loaded *l = n->l;
  const Buf *best = NULL;
  u64 from = 0;
  for (u32 i = 0; l->last && i < l->tabled.table.tensors; i++) {
    u64 start = l->last->address[i];
    if (!start || start > at || start < from) continue;
    best = sc_tabled(l->k, &l->tabled, i);
    from = start;
  }
  if (!best) return sc_printf(n->sc, "0x%llx in global memory", (unsigned long long)at);
  return sc_printf(n->sc, "byte %llu of tensor '%s'", (unsigned long long)(at - from), best->name);
}

// The name of something that the model numbers, such as "t:0:140}": a thread, a place or a barrier.
static const char *name_of(const Naming *n, const char *at) {
  char kind = *at, *end = NULL;
  u64 part[3] = {0};
  const char *p = at + 1;
  for (u32 i = 0; i < 3 && *p == ':'; p = end)
    part[i++] = strtoull(p + 1, &end, kind == 'g' ? 16 : 10);
  switch (kind) {
    case 't': return thread_name(n, (u32)part[0], (u32)part[1]);
    case 's': return shared_name(n, (u32)part[0], (u32)part[1]);
    case 'b': return barrier_name(n, (u32)part[0], (u32)part[1], (int)part[2]);
    case 'g': return global_name(n, part[0]);
    default: return "?";
  }
}

static const char *in_words(const Naming *n, const char *text) {
  Str out = {.sc = n->sc};
  for (const char *p = text; *p;) {
    size_t plain = strcspn(p, "{");
    str_put(&out, p, plain);
    p += plain;
    if (!*p) break;
    str_puts(&out, name_of(n, p + 1));
    p += strcspn(p, "}");
    p += *p == '}';
  }
  return out.n ? out.at : "";
}

static bool ends_with(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n >= m && !strcmp(text + n - m, end);
}

// The compiler of the host has made the file's name absolute.
static Span span_of(const Kernel *k, const ModelRemark *r) {
  bool here = *r->file && ends_with(r->file, k->text->name);
  return here ? sc_at_line(k, r->line) : k->span;
}

// Finds the step whose kernel failed: the first, if it is what checks lists. False: it is another
// kernel's launch that failed.
static bool find_step(Naming *n, const ModelFault *f) {
  const bool lists = n->l->tabled.table.checks && !strcmp(f->function, CUDA_LISTS);
  for (u32 i = 0; i < n->l->tabled.table.steps; i++) {
    n->k = sc_step_kernel(n->l->k, i);
    n->text = sc_step_text(n->l->text, i);
    if (lists || !strncmp(n->text->name, f->function, sizeof f->function - 1)) return true;
  }
  return false;
}

// Reports a failure that is not the kernel's fault: one of the host, a limit of the model, or the
// fault of an earlier kernel on the same context.
static schedc_status not_run(Sc *sc, const Loaded *l, const ModelFault *f, bool other) {
  if (other)
    sc_report(sc, D_G_RUN, l->k->span, "the model of a GPU had failed before, at kernel '%s'",
              f->function);
  else sc_report(sc, D_G_RUN, l->k->span, "the model of a GPU cannot run this: %s", f->what.text);
  return SCHEDC_EUNAVAIL;
}

schedc_status sc_report_model(Sc *sc, const Loaded *l) {
  const ModelFault *f = l->d->model_fault ? l->d->model_fault() : NULL;
  if (!f) return SCHEDC_OK;
  Naming n = {.sc = sc, .l = l};
  bool ours = find_step(&n, f), host = !strcmp(f->rule, "host") || !strcmp(f->rule, "model");
  if (!ours || host) return not_run(sc, l, f, !ours);
  const Kernel *k = n.k;
  Diag *d = sc_report(sc, D_G_MODEL, span_of(k, &f->what), "%s (%s)", in_words(&n, f->what.text),
                      f->rule);
  for (u32 i = 0; i < f->notes; i++) {
    const char *text = in_words(&n, f->note[i].text);
    if (*f->note[i].file) sc_note(sc, d, span_of(k, &f->note[i]), "%s", text);
    else sc_help(sc, d, "%s", text);
  }
  return SCHEDC_EFAULT;
}
