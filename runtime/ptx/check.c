// check.c - checks all threads of all kernels of a text, and reports. In: a kernel or sequence, the
// text that was emitted for it, and the PTX that NVRTC made of the text and handed to ptxas. Out:
// an error (with `unverified`, a warning) at the schedule's line where a thread executes something
// else than the plan says; at most one for each role.
#include "runtime/ptx/ptx.h"

// ---- events in words

static void put_number(Str *out, const char *before, i64 n) {
  if (n == ARG_ANY) return;
  if (n < 0) str_printf(out, "%s?", before);
  else str_printf(out, "%s%lld", before, (long long)n);
}

static void put_product(Str *out, const Event *e) {
  str_printf(out, ".m64n%lldk%lld", (long long)e->arg[0], (long long)e->arg[1]);
  if (e->arg[2] >= 0)
    str_printf(out, ".%s.%s", sc_elem[e->arg[2] >> 8].text, sc_elem[e->arg[2] & 255].text);
  if (e->arg[3] >= 0) str_puts(out, e->arg[3] & MMA_ADDS ? " (adds)" : " (begins anew)");
}

// An event in words: "wgmma.wait_group 1".
static const char *in_words(Sc *sc, const Event *e) {
  Str out = {.sc = sc};
  str_puts(&out, sc_ptx_event[e->id].what);
  if (e->id == EV_MMA) {
    put_product(&out, e);
    return out.at;
  }
  u32 args = 0;
  for (const char *letter = sc_ptx_event[e->id].operands; *letter; letter++) {
    if (*letter == '_' || *letter == 'p' || *letter == 'a') continue;
    if (*letter == 'n' && e->arg[args] == ARG_UNKNOWN && args) break;
    if (*letter == 'q' && e->arg[args] == ARG_UNKNOWN) continue;
    put_number(&out,
               args             ? ", "
               : *letter == 'm' ? " by map "
               : *letter == 'r' ? " of CTA "
               : *letter == 'q' ? " for parity "
                                : " ",
               e->arg[args]);
    args++;
  }
  if (e->at >= 0) str_printf(&out, " at %lld", (long long)e->at);
  return out.at;
}

static const char *with_line(Sc *sc, const Event *e) {
  const char *words = in_words(sc, e);
  return e->line ? sc_printf(sc, "%s (line %u)", words, e->line) : words;
}

// ---- the report

typedef struct Checker {
  Sc *sc;
  const Kernel *k;
  const CudaText *text;
  const Ptx *ptx;
  u8 *const *dead;
  u32 told;  // roles, bit r: it was reported
} Checker;

static const char *whose(const Checker *c, const Wanted *w, u32 tid) {
  if (w->role == SC_NONE) return sc_printf(c->sc, "warp %u, which has no role", tid / 32);
  const Role *r = &c->k->role.at[w->role];
  u32 warp = tid / 32 - r->first_warp, lane = tid % 32;
  const char *of = sc_instance_name(c->sc, r, w->instance);
  return r->warps > 1 ? sc_printf(c->sc, "'%s', warp %u, lane %u", of, warp % r->warps, lane)
                      : sc_printf(c->sc, "'%s', lane %u", of, lane);
}

static void report(Checker *c, const Wanted *w, u32 tid, const Mismatch *m) {
  u32 bit = w->role == SC_NONE ? 31 : w->role;
  if (c->told >> bit & 1) return;
  c->told |= 1u << bit;
  Sc *sc = c->sc;
  const Step *step = m->step;
  Span at = step ? step->span : c->k->span;
  const char *wanted = !step || step->op == STEP_END ? "no further instruction that synchronises"
                       : m->missing && step->op == STEP_ROUND ? "another round of the loop"
                       : step->op == STEP_ROUND ? "no other before the loop's next round"
                                                : with_line(sc, &step->want);
  const char *found = m->missing ? "it is on no path"
                      : m->found ? with_line(sc, m->found)
                                 : "the thread ends";
  Diag *d = sc_report(sc, D_G_PTX, at,
                      "the PTX of '%s' is not what the plan says for %s: expected %s, found %s",
                      c->k->name, whose(c, w, tid), wanted, found);
  if (m->before) sc_help(sc, d, "it agrees up to %s", with_line(sc, m->before));
}

// ---- threads

// Does the plan ask the same of both threads? Lane 0 differs from the other lanes of its warp, as
// it does what is done once.
static bool same_part(u32 a, u32 b) { return a / 32 == b / 32 && (a % 32 == 0) == (b % 32 == 0); }

static bool check_threads(Checker *c) {
  Tracer *tracer = sc_ptx_tracer(c->sc, c->ptx);
  Matcher *matcher = sc_ptx_matcher(c->sc, c->ptx);
  Wanted w = {0};
  for (u32 tid = 0; tid < c->k->threads; tid++) {
    const Thread *t = sc_ptx_trace(tracer, tid);
    bool same = tid && same_part(tid, tid - 1);
    if (same && t->as_before) continue;
    if (!same) w = sc_ptx_wanted(c->sc, c->k, c->text, c->dead, tid);
    Mismatch m = sc_ptx_match(matcher, t, &w);
    if (m.any) report(c, &w, tid, &m);
  }
  return !c->told;
}

static bool check_kernel(Sc *sc, const Kernel *k, const CudaText *text, const char *ptx) {
  Ptx read = sc_ptx_read(sc, ptx, text->name);
  if (read.wrong) {
    sc_report(sc, D_G_PTX, k->span, "the PTX of '%s' cannot be read: %s", k->name, read.wrong);
    return false;
  }
  sc_ptx_fold_spins(&read);
  sc_ptx_find_loops(sc, &read);
  sc_ptx_slice(sc, &read);
  Checker c = {.sc = sc, .k = k, .text = text, .ptx = &read, .dead = sc_ptx_dead(sc, k)};
  return check_threads(&c);
}

bool sc_ptx_check(Sc *sc, const Kernel *k, const CudaText *text, const char *ptx) {
  bool planned = k->launch.n || check_kernel(sc, k, text, ptx);
  for (u32 i = 0; i < k->launch.n; i++) {
    bool again = false;
    for (u32 j = 0; j < i; j++) again |= text->step[j] == text->step[i];
    if (!again) planned &= check_kernel(sc, k->launch.at[i].kernel, text->step[i], ptx);
  }
  return planned;
}
