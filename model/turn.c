// turn.c - who goes on next. Threads run until they have to wait; engines have a list of what they
// are told to do. The policy chooses:
//
//   early    engines at once, warps from the first on
//   late     engines when no warp can go on, warps from the last on
//   random   by the seed; waits may fail, and threads pause anywhere
//   laggard  as early, but one warp, or one kind of engine, by the seed, only when nothing else can
//   go on
#include <string.h>

#include "model.h"

u64 md_random(void) {  // splitmix64 (Steele, Lea, Flood 2014)
  u64 z = md.rng += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

void md_start(Thread *t) {
  t->warp->ready |= 1u << t->number % LANES;
  md.ready[t->warp->index / 64] |= (u64)1 << t->warp->index % 64;
}

// ---- threads

void md_wait(Thread **waiters, Waiting w) {
  Thread *t = md.self;
  t->waits = w;
  t->next = *waiters;
  t->list = waiters;
  *waiters = t;
  t->warp->ready &= ~(1u << t->number % LANES);
  md_fiber_leave(t->fiber);
  t->waits.what = WAITS_NOT;
}

void md_wake(Thread **waiters) {
  Thread *t = *waiters, *next;
  *waiters = NULL;
  for (; t; t = next) {
    next = t->next;
    md_start(t);
  }
}

void md_unwait(Thread *t) {
  Thread **at = t->list;
  while (*at != t) at = &(*at)->next;
  *at = t->next;
  md_start(t);
}

static bool lags(const Thread *t) {
  return md.options.policy == POLICY_LAGGARD && t->warp->index == md.laggard;
}

void md_pause(void) {
  Thread *t = md.self;
  bool pauses = lags(t) || (md.options.policy == POLICY_RANDOM && md_random() % 16 == 0);
  if (pauses) md_fiber_leave(t->fiber);
}

// ---- engines

void md_event(Event e) {
  bool lag = md.options.policy == POLICY_LAGGARD && md.laggard == md.warps + (u32)e.engine;
  if (md.options.policy == POLICY_EARLY || (md.options.policy == POLICY_LAGGARD && !lag))
    e.run(e.of);
  else APPEND(&md.event, e);
}

static void run_event(u32 i) {
  Event e = md.event.at[i];
  memmove(&md.event.at[i], &md.event.at[i + 1], (md.event.n - i - 1) * sizeof e);
  md.event.n--;
  e.run(e.of);
}

static bool run_some_event(void) {
  if (!md.event.n) return false;
  run_event(md.options.policy == POLICY_RANDOM ? (u32)(md_random() % md.event.n) : 0);
  return true;
}

void md_finish_events(Gang *g) {
  for (u32 i = 0; i < md.event.n;) {
    if (md.event.at[i].gang == g) run_event(i), i = 0;
    else i++;
  }
}

// ---- whose turn it is

static Warp *warp_at(u32 index) {
  u32 each = md.gang[0].cta[0].threads / LANES, ctas = md.gang[0].ctas;
  return &md.gang[index / (each * ctas)].cta[index / each % ctas].warp[index % each];
}

static u32 first_ready(bool but_laggard) {
  u32 words = (md.warps + 63) / 64;
  for (u32 i = 0; i < words; i++) {
    u64 set = md.ready[i];
    if (but_laggard && md.laggard / 64 == i) set &= ~((u64)1 << md.laggard % 64);
    if (set) return 64 * i + (u32)__builtin_ctzll(set);
  }
  return MD_NONE;
}

static u32 last_ready(void) {
  for (u32 i = (md.warps + 63) / 64; i-- > 0;) {
    if (md.ready[i]) return 64 * i + 63 - (u32)__builtin_clzll(md.ready[i]);
  }
  return MD_NONE;
}

static u32 random_ready(void) {
  u32 from = (u32)(md_random() % md.warps);
  for (u32 i = 0; i < md.warps; i++) {
    u32 at = (from + i) % md.warps;
    if (md.ready[at / 64] >> at % 64 & 1) return at;
  }
  return MD_NONE;
}

static u32 next_warp(void) {
  switch (md.options.policy) {
    case POLICY_EARLY: return first_ready(false);
    case POLICY_LATE: return last_ready();
    case POLICY_RANDOM: return random_ready();
    case POLICY_LAGGARD: return first_ready(true);
  }
  return MD_NONE;
}

static void run_lane(Warp *w, u32 lane) {
  Thread *t = &w->lane[lane];
  md.self = t;
  md_thread_index = (MdIndex){t->number, 0, 0};
  md_cta_index = (MdIndex){t->cta->index[0], t->cta->index[1], t->cta->index[2]};
  md_fiber_enter(t->fiber, md_thread_main, t);
  md.self = NULL;
}

// All lanes that can go on, one after the other; of a laggard, one alone, up to its next call.
static void run_warp(u32 index) {
  Warp *w = warp_at(index);
  bool late = md.options.policy == POLICY_LATE,
       one = md.options.policy == POLICY_LAGGARD && index == md.laggard;
  u32 turned = md.options.policy == POLICY_RANDOM ? (u32)(md_random() % LANES) : 0,
      lanes = w->ready;
  for (u32 i = 0; i < LANES; i++) {
    u32 lane = late ? LANES - 1 - i : (i + turned) % LANES;
    if (!(lanes >> lane & 1) || !(w->ready >> lane & 1)) continue;
    run_lane(w, lane);
    if (one) break;
  }
  if (!w->ready) md.ready[index / 64] &= ~((u64)1 << index % 64);
}

// Waits with an end (--debug-waits) end when nothing else can happen.
static bool give_up_waits(void) {
  bool any = false;
  for (u32 i = 0; i < md.warps; i++) {
    Warp *w = warp_at(i);
    for (u32 lane = 0; lane < LANES; lane++) {
      Thread *t = &w->lane[lane];
      if (!t->live || !t->waits.bounded || t->waits.what == WAITS_NOT) continue;
      t->given_up = any = true;
      md_unwait(t);
    }
  }
  return any;
}

void md_schedule(void) {
  for (;;) {
    if (md.options.policy == POLICY_RANDOM && md_random() % 4 == 0) run_some_event();
    u32 w = next_warp();
    if (w != MD_NONE) {
      run_warp(w);
      if (md.ended) md_refill();
      continue;
    }
    if (run_some_event()) continue;
    if (md.options.policy == POLICY_LAGGARD && (w = first_ready(false)) != MD_NONE) {
      run_warp(w);
      if (md.ended) md_refill();
      continue;
    }
    if (!md_refill()) return;
    if (next_warp() == MD_NONE && !give_up_waits()) md_deadlock();
  }
}
