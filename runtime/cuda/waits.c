// waits.c - reports the waits that --debug-waits has given up, in the schedule's terms. In: entries
// that kernels wrote into memory of the host (WaitSite in passes.h explains them). Out:
// diagnostics, each at the line of its wait.
#include "runtime/cuda/gpu.h"

#include <string.h>

// An entry: the wait of a warp.
typedef struct Entry {
  u32 cta, thread, saw, generation;
} Entry;

typedef struct Waiter {
  const Kernel *k;
  const CudaText *text;
  const WaitSite *site;
  Entry e;
} Waiter;

// The number, from `first` on, of the 8-byte barrier at the address that the wait recorded.
// (Dynamic shared memory begins at a multiple of 1024.)
static u32 barrier_at(const Waiter *w, u32 first) { return (w->e.saw - first) % 1024 / 8; }

// What was waited for at a ring's barrier. The number of the fill is generation * stages + stage,
// as the interpreter counts.
static const char *of_ring(Sc *sc, const Waiter *w, const Ring *r, bool full) {
  u32 stage = barrier_at(w, r->barrier) % r->stages, fill = w->e.generation * r->stages + stage;
  return sc_printf(sc, "for %sfill %u of '%s': %s barrier, stage %u, generation %u",
                   full ? "" : "the release of ", fill, r->name, full ? "full" : "empty", stage,
                   w->e.generation);
}

static const char *of_tiles(Sc *sc, const Waiter *w, bool full) {
  u32 slot = barrier_at(w, sc_slot_barriers(w->k)) % 2, draw = w->e.generation * 2 + slot;
  return sc_printf(
      sc, "for tile %u that this CTA draws%s: %s barrier of the next tile, slot %u, generation %u",
      draw, full ? "" : " to be read by all roles", full ? "full" : "empty", slot, w->e.generation);
}

// What the wait waited for, in words.
static const char *what(Sc *sc, const Waiter *w) {
  const Kernel *k = w->k;
  const WaitSite *s = w->site;
  switch ((WaitKind)s->kind) {
    case WAIT_FULL:
    case WAIT_EMPTY: return of_ring(sc, w, &k->ring.at[s->ref], s->kind == WAIT_FULL);
    case WAIT_TILE_FULL:
    case WAIT_TILE_EMPTY: return of_tiles(sc, w, s->kind == WAIT_TILE_FULL);
    case WAIT_TURN:
      return sc_printf(sc, "for its turn '%s': named barrier %u, generation %u",
                       k->turn.at[s->ref].name, barrier_at(w, w->text->named), w->e.generation);
    case WAIT_CTA_TURN:
      if (w->e.saw == w->e.generation)
        return sc_printf(sc, "for turn %u of '%s', which came only after another wait was given up",
                         w->e.generation, k->turn.at[s->ref].name);
      return sc_printf(sc, "for turn %u of '%s', which was passed on %u time%s", w->e.generation,
                       k->turn.at[s->ref].name, w->e.saw, w->e.saw == 1 ? "" : "s");
    case WAIT_SYNC:
      return sc_printf(sc, "for the other warps of its warpgroup: named barrier %u, generation %u",
                       barrier_at(w, w->text->named), w->e.generation);
  }
  return "";
}

static void report(Sc *sc, const Waiter *w) {
  const Role *r = &w->k->role.at[w->site->role];
  u32 instance = (w->e.thread / 32 - r->first_warp) / r->warps;
  Diag *d = sc_report(sc, D_G_WAIT, w->site->span, "'%s' (CTA %u, thread %u) waited in vain %s",
                      sc_instance_name(sc, r, instance), w->e.cta - 1, w->e.thread, what(sc, w));
  sc_help(sc, d, "run the same case with '--on cpu': where it hangs, too, both sides are named");
}

// Makes one report for each instance, as its warps wait for the same thing.
static bool report_site(Sc *sc, Waiter *w, const volatile u32 *at) {
  const Role *r = &w->k->role.at[w->site->role];
  bool any = false;
  for (u32 i = 0; i < r->instances; i++) {
    for (u32 warp = 0; warp < r->warps; warp++) {
      const volatile u32 *e = at + (r->first_warp + i * r->warps + warp) * WAIT_WORDS;
      if (!e[0]) continue;
      w->e = (Entry){e[0], e[1], e[2], e[3]};
      report(sc, w);
      any = true;
      break;
    }
  }
  return any;
}

schedc_status sc_report_waits(Sc *sc, Loaded *l) {
  if (!l->waits) return SCHEDC_OK;
  bool any = false;
  const volatile u32 *at = l->waits;
  for (u32 i = 0; i < l->tabled.table.steps; i++) {
    Waiter w = {.k = sc_step_kernel(l->k, i), .text = sc_step_text(l->text, i)};
    const volatile u32 *entry = at + WAIT_WORDS;
    for (u32 s = 0; s < w.text->sites; s++, entry += w.k->threads / 32 * WAIT_WORDS) {
      w.site = &w.text->site[s];
      any |= report_site(sc, &w, entry);
    }
    at += w.text->wait_words;
  }
  if (!any) return SCHEDC_OK;
  memset(l->waits, 0, (size_t)(at - l->waits) * sizeof *at);
  scl_zero(&l->kernel, &l->tabled.table);  // of draws that did not end
  return SCHEDC_EFAULT;
}
