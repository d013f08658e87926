// turnreport.c - reports a wait for a turn over CTAs that never ends. In: a crowd of CTAs that
// cannot go on. Out: an error with the operations that take part in it, and a command that makes
// the interpreter fail in the same way.
#include "compiler/verify/crowd.h"

typedef struct Report {
  Verify *v;
  const Crowd *c;
  const Standstill *why;
  const Step *take;
  const Turn *turn;
  const Axis *axis;
  u32 counter;
  i64 index;  // of the CTA that waits
} Report;

static Span span(const Report *r, u32 process, u32 pc) {
  return r->v->k->role.at[r->c->p->process.at[process].role].code.at[pc].span;
}

static Span place(const Report *r, const Waiter *w) {
  return span(r, w->process, sc_crowd_step(w->unit, w->process)->pc);
}

static const char *who(const Report *r, u32 process) {
  return sc_process_text(r->v, r->c->p, process);
}

static const char *turn_text(const Report *r) {
  if (!r->turn->keys) return sc_printf(r->v->sc, "the turn '%s'", r->turn->name);
  i64 key = sc_crowd_key(r->why->waiter[0].unit, r->why->waiter[0].process, r->take);
  return sc_printf(r->v->sc, "the turn '%s[%lld]'", r->turn->name, (long long)key);
}

static const char *cta(const Report *r, i64 index) {
  return sc_printf(r->v->sc, "the CTA of %s = %lld", r->axis->name, (long long)index);
}

static Diag *error(const Report *r, const char *because) {
  const Waiter *w = &r->why->waiter[0];
  return sc_report(r->v->sc, D_R6_DEADLOCK, place(r, w),
                   "with %s %s waits here for %s for ever: %s", sc_sample_text(r->v, r->c->s),
                   who(r, w->process), turn_text(r), because);
}

// Notes each place at which the CTA has passed the turn on.
static void note_passes(const Report *r, Diag *d, i64 index) {
  for (u32 i = 0; i < r->c->event.n; i++) {
    const Event *e = &r->c->event.at[i];
    if (!e->pass || e->counter != r->counter) continue;
    if (sc_crowd_index(e->unit, e->process, r->turn->axis) == index)
      sc_note(r->v->sc, d, span(r, e->process, e->pc), "%s of %s passes it on here",
              who(r, e->process), cta(r, index));
  }
}

// The CTA that has passed it on more than once.
static i64 twice(const Report *r) {
  i64 last = -1;
  for (u32 i = 0; i < r->c->event.n; i++) {
    const Event *e = &r->c->event.at[i];
    if (!e->pass || e->counter != r->counter) continue;
    i64 index = sc_crowd_index(e->unit, e->process, r->turn->axis);
    if (index == last) break;
    last = index;
  }
  return last;
}

static Diag *say_no_key(const Report *r) {
  const Waiter *w = &r->why->waiter[0];
  i64 key = sc_crowd_key(w->unit, w->process, r->take), keys = sc_crowd_keys(w->unit, r->take->ref);
  Diag *d = sc_report(r->v->sc, D_R6_KEY, place(r, w),
                      "with %s %s asks here for '%s[%lld]', a turn that has %lld key%s",
                      sc_sample_text(r->v, r->c->s), who(r, w->process), r->turn->name,
                      (long long)key, (long long)keys, keys == 1 ? "" : "s");
  sc_note(r->v->sc, d, r->turn->span, "keys count from 0; so many does it have");
  sc_help(r->v->sc, d, "let '%s' have as many keys as are asked for, or ask for fewer",
          r->turn->name);
  return d;
}

static Diag *say_again(const Report *r) {
  Diag *d = error(r, "its CTA has had it in this tile, and a turn comes to each CTA once");
  note_passes(r, d, r->index);
  sc_help(
      r->v->sc, d,
      "take it once in a tile, by one instance of one role, around all that is to be done in it; "
      "or let each role have a turn of its own");
  return d;
}

static Diag *say_twice(const Report *r) {
  i64 index = twice(r);
  Diag *d = error(r, sc_printf(r->v->sc, "%s passes it on more than once", cta(r, index)));
  note_passes(r, d, index);
  sc_help(r->v->sc, d,
          "let one instance of one role take it, once in a tile; or let each role have a turn of "
          "its own");
  return d;
}

static Diag *say_never(const Report *r) {
  i64 at = r->c->counter[r->counter];
  Diag *d = error(r, sc_printf(r->v->sc, "%s never takes and passes it", cta(r, at)));
  sc_note(r->v->sc, d, r->turn->span, "it goes from CTA to CTA in the order of '%s'",
          r->axis->name);
  sc_help(r->v->sc, d,
          "take and pass the turn in the CTAs before, too, even if they have nothing to do in it");
  return d;
}

static Diag *say_circle(const Report *r) {
  i64 at = r->c->counter[r->counter];
  Diag *d = error(r, sc_printf(r->v->sc, "it is at %s", cta(r, at)));
  for (u32 i = 1; i < r->why->n; i++) {
    const Waiter *w = &r->why->waiter[i];
    const Step *s = sc_crowd_step(w->unit, w->process);
    bool turn = s->kind == STEP_TAKE && r->v->k->turn.at[s->ref].axis != SC_NONE;
    const char *what = turn
                           ? sc_printf(r->v->sc, "for the turn '%s'", r->v->k->turn.at[s->ref].name)
                           : sc_waits_text(r->v, &w->unit->run, w->process);
    sc_note(r->v->sc, d, place(r, w), "%s waits here %s", who(r, w->process), what);
  }
  sc_help(r->v->sc, d,
          "a CTA that has a turn may not wait for one that comes later: take '%s' after that, and "
          "pass it on before",
          r->turn->name);
  return d;
}

void sc_report_standstill(Verify *v, const Crowd *c, const Standstill *why) {
  static Diag *(*const say[])(const Report *) = {[CAUSE_KEY] = say_no_key,
                                                 [CAUSE_AGAIN] = say_again,
                                                 [CAUSE_TWICE] = say_twice,
                                                 [CAUSE_NEVER] = say_never,
                                                 [CAUSE_CIRCLE] = say_circle};
  const Waiter *w = &why->waiter[0];
  Report r = {.v = v, .c = c, .why = why, .take = sc_crowd_step(w->unit, w->process)};
  r.turn = &v->k->turn.at[r.take->ref];
  r.axis = &v->k->axis.at[r.turn->axis];
  r.counter = sc_crowd_counter(w->unit, w->process, r.take);
  r.index = sc_crowd_index(w->unit, w->process, r.turn->axis);
  Sample shown = *c->s;
  shown.early = why->cause == CAUSE_AGAIN;  // else two may take it before either passes it on
  sc_note_command(v, c->p, &shown, say[why->cause](&r));
  sc_rejected(v, PROOF_ORDER);
}
