// automaton.c - the wanted program (Wanted) as a nondeterministic automaton. In: the program, and
// the set of its steps that a thread may have reached, each with the places of the ring's cursors.
// Out: the set after an event, or after a back edge of a loop. Called by match.c.
//
// Steps that need no event are passed at once: forks, ends of rounds, moves of a cursor. Another
// round begins at a back edge of the thread's code, and nowhere else. The compiler may have rotated
// the loop, so that the back edge comes amid a round: then the next round begins at the end of this
// one, without another back edge.
#include "runtime/ptx/automaton.h"

#include <string.h>

// ---- the places of the cursors, as one number

static u32 stands_at(const Focus *f, u32 place, Cursor cursor) {
  for (u32 i = 0; i < (u32)cursor; i++) place /= f->size[i];
  return place % f->size[cursor];
}

static u32 moved(const Focus *f, u32 place, Cursor cursor) {
  u32 unit = 1, at = stands_at(f, place, cursor);
  for (u32 i = 0; i < (u32)cursor; i++) unit *= f->size[i];
  return at + 1 < f->size[cursor] ? place + unit : place - at * unit;
}

static Focus focus_on(const Wanted *w, u32 ring) {
  Focus f = {.ring = ring, .size = {1, 1, 1}};
  for (u32 i = 0; i < w->step.n && ring != SC_NONE; i++) {
    const Step *s = &w->step.at[i];
    if (s->barrier.ring == ring && s->barrier.stages) f.stages = s->barrier.stages;
    f.skips |= s->op == STEP_SKIP && s->barrier.ring == ring;
  }
  for (u32 i = 0; i < w->step.n && f.stages; i++) {
    const Step *s = &w->step.at[i];
    if (s->op == STEP_STAGE && s->barrier.ring == ring)
      f.size[s->cursor] = f.stages * (s->cursor == CURSOR_OLDEST ? 1 : 2);
  }
  return f;
}

// ---- sets

static bool get(Set s, u32 bit) { return s.bit[bit / 64] >> bit % 64 & 1; }
static void put(Set s, u32 bit) { s.bit[bit / 64] |= (u64)1 << bit % 64; }
static u32 steps(const Automaton *a) { return a->wanted->step.n; }
static const Step *step_at(const Automaton *a, u32 step) { return &a->wanted->step.at[step]; }
static u32 element(const Automaton *a, u32 step, u32 place) { return step * a->places + place; }
// The bit, after those of the elements, that says: the thread has taken a back edge amid a round of
// the loop that ends at this step.
static u32 turned(const Automaton *a, u32 round) { return steps(a) * a->places + round; }

static Set clear(const Automaton *a, Set s) {
  memset(s.bit, 0, a->words * sizeof(u64));
  return s;
}

// Is the step in the set, with any places of the cursors?
static bool has(const Automaton *a, Set s, u32 step) {
  for (u32 p = 0; p < a->places; p++)
    if (get(s, element(a, step, p))) return true;
  return false;
}

// Adds the step, and all steps that it leads to without an event or another round of a loop.
static void add(const Automaton *a, Set s, u32 step, u32 place) {
  while (!get(s, element(a, step, place))) {
    const Step *at = step_at(a, step);
    bool in_focus = at->barrier.ring == a->focus.ring;
    put(s, element(a, step, place));
    if (at->op == STEP_EVENT || at->op == STEP_END) return;
    if (at->op == STEP_FORK) add(a, s, at->to, place);
    if (at->op == STEP_STAGE && in_focus) place = moved(&a->focus, place, (Cursor)at->cursor);
    for (u32 p = 0; p < a->places && at->op == STEP_SKIP && in_focus; p++) add(a, s, step + 1, p);
    step = at->op == STEP_GOTO ? at->to : step + 1;
  }
}

Automaton sc_ptx_automaton(Sc *sc, const Wanted *w, u32 ring, Set *at) {
  Automaton a = {.sc = sc, .wanted = w, .focus = focus_on(w, ring), .places = 1};
  for (u32 i = 0; i < CURSORS; i++) a.places *= a.focus.size[i];
  a.words = (w->step.n * (a.places + 1)) / 64 + 1;
  a.met = NEWS(sc, bool, w->step.n + 1);
  a.next.bit = NEWS(sc, u64, a.words);
  a.other.bit = NEWS(sc, u64, a.words);
  at->bit = NEWS(sc, u64, a.words);
  add(&a, *at, 0, 0);
  return a;
}

// ---- rounds

// Makes `next`: the elements of the set, and the first steps of another round of each loop at whose
// end one of them is. if_turned: only of loops for which a back edge was taken amid a round.
static void next_round(Automaton *a, Set s, Set next, bool if_turned) {
  clear(a, next);
  for (u32 i = 0; i < turned(a, 0); i++)
    if (get(s, i)) put(next, i);
  for (bool more = true; more;) {
    more = false;
    for (u32 i = 0; i < steps(a); i++) {
      const Step *at = step_at(a, i);
      if (at->op != STEP_ROUND || (if_turned && !get(s, turned(a, i)))) continue;
      for (u32 p = 0; p < a->places; p++) {
        if (!get(next, element(a, i, p))) continue;
        a->met[i] = true;
        if (get(next, element(a, at->to, p))) continue;
        add(a, next, at->to, p);
        more = true;
      }
    }
  }
}

// Does the set contain an event of this loop other than its first step? There a thread stands that
// has come to the loop and not yet begun a round.
static bool stands_in(const Automaton *a, Set s, u32 round) {
  for (u32 i = step_at(a, round)->to + 1; i < round; i++)
    if (step_at(a, i)->op == STEP_EVENT && has(a, s, i)) return true;
  return false;
}

static void copy(const Automaton *a, Set to, Set from) {
  memcpy(to.bit, from.bit, a->words * sizeof(u64));
}

// The thread takes a back edge: at the end of a round, or amid one.
void sc_ptx_go_back(Automaton *a, Set s) {
  Set next = a->next;
  bool at_end = false;
  next_round(a, s, next, false);
  for (u32 i = 0; i < turned(a, 0); i++) at_end |= get(next, i) != get(s, i);
  for (u32 i = 0; i < steps(a) && !at_end; i++) {
    bool amid = step_at(a, i)->op == STEP_ROUND && stands_in(a, s, i);
    if (amid || get(s, turned(a, i))) put(next, turned(a, i));
  }
  copy(a, s, next);
}

// If a back edge was taken amid a round which is over now, the next round may begin.
static void end_round(Automaton *a, Set s) {
  for (u32 i = 0; i < steps(a); i++) {
    if (!get(s, turned(a, i)) || !has(a, s, i)) continue;
    next_round(a, s, a->other, true);
    copy(a, s, a->other);
    return;
  }
}

// ---- events

static bool is_counted(const Automaton *a, const Step *step) {
  return step->barrier.stages && step->barrier.ring == a->focus.ring;
}

static i64 due_at(const Automaton *a, const Step *step, u32 place) {
  return step->want.at + 8 * (stands_at(&a->focus, place, (Cursor)step->cursor) % a->focus.stages);
}

// The parity that the wait must name. A filler's first waits name the phase before the first one.
static i64 due_parity(const Automaton *a, const Step *step, u32 place) {
  u32 odd = stands_at(&a->focus, place, (Cursor)step->cursor) / a->focus.stages;
  return step->cursor == CURSOR_FILL ? !odd : odd;
}

static bool is_at_stage(const Automaton *a, const Step *step, u32 place, const Event *e) {
  i64 parity = e->id == EV_WAIT ? e->arg[0] : ARG_UNKNOWN;
  bool unknown = e->at == ARG_UNKNOWN || !e->exact;
  if (unknown ? !a->focus.skips : e->at != due_at(a, step, place)) return false;
  if (e->id != EV_WAIT) return true;
  return parity == ARG_UNKNOWN ? a->focus.skips : parity == due_parity(a, step, place);
}

static bool is_at(const Step *step, const Event *e) {
  i64 first = step->want.at, n = step->barrier.stages;
  if (!n) return first == ARG_ANY || e->at == first;
  if (e->at == ARG_UNKNOWN) return true;
  return e->at >= first && e->at < first + 8 * n && (e->at - first) % 8 == 0;
}

static bool is_met(const Automaton *a, const Step *step, u32 place, const Event *e) {
  const Event *w = &step->want;
  if (step->op != STEP_EVENT || w->id != e->id) return false;
  if (w->line && e->line && w->line != e->line) return false;
  for (u32 i = 0; i < EVENT_ARGS; i++) {
    if (w->arg[i] != ARG_ANY && w->arg[i] != e->arg[i]) return false;
  }
  return is_counted(a, step) ? is_at_stage(a, step, place, e) : is_at(step, e);
}

static u64 ring_bit(const Step *step) {
  u32 ring = step->barrier.ring;
  return step->barrier.stages ? (u64)1 << (ring < 63 ? ring : 63) : 0;
}

bool sc_ptx_advance(Automaton *a, Set s, const Event *e, u64 *rings) {
  Set next = clear(a, a->next);
  bool any = false;
  for (u32 w = 0; w < a->words; w++) {
    for (u64 bits = s.bit[w]; bits; bits &= bits - 1) {
      u32 bit = w * 64 + (u32)__builtin_ctzll(bits), i = bit / a->places, place = bit % a->places;
      if (bit >= turned(a, 0)) {
        put(next, bit);
      } else if (is_met(a, step_at(a, i), place, e)) {
        any = a->met[i] = true;
        *rings |= ring_bit(step_at(a, i));
        add(a, next, i + 1, place);
      }
    }
  }
  if (!any) return false;
  copy(a, s, next);
  end_round(a, s);
  return true;
}

bool sc_ptx_may_end(const Automaton *a, Set s) { return has(a, s, steps(a) - 1); }

// ---- what is due

static const Step *with_numbers(const Automaton *a, const Step *step, u32 place) {
  if (!is_counted(a, step)) return step;
  Step *due = NEW(a->sc, Step);
  *due = *step;
  due->want.at = due_at(a, step, place);
  if (step->want.id == EV_WAIT) due->want.arg[0] = due_parity(a, step, place);
  return due;
}

const Step *sc_ptx_due(const Automaton *a, Set s) {
  const Step *end = NULL;
  for (u32 i = 0; i < turned(a, 0); i++) {
    const Step *at = step_at(a, i / a->places);
    if (!get(s, i)) continue;
    if (at->op == STEP_EVENT) return with_numbers(a, at, i % a->places);
    if (!end && (at->op == STEP_ROUND || at->op == STEP_END)) end = at;
  }
  return end;
}
