// witness.c - reports a kernel that waits for ever, or whose roles disagree. In: a run that fails,
// with its dimensions. Out: an error with the operations of all roles that take part in it, what
// would mend it, and a command that makes the interpreter fail the same way.
//
// If the roles, each run alone, fill and drain a ring unequally often, the report is about that:
// who waits for whom is only a consequence. Otherwise they wait for each other in a circle, which
// the report shows.
#include "compiler/verify/protocol.h"

typedef struct Witness {
  Verify *v;
  const Protocol *p;
  const Failure *f;
  const Run *run;  // where it stopped
  Run alone;       // what everybody would do if nobody had to wait
  Concrete c;
} Witness;

static const Step *at(const Witness *w, u32 process) {
  return &w->p->process.at[process].script->step.at[w->run->at[process]];
}

static Span span(const Witness *w, u32 process, const Step *s) {
  return w->v->k->role.at[w->p->process.at[process].role].code.at[s->pc].span;
}

static const char *role(const Witness *w, u32 process) {
  return sc_process_text(w->v, w->p, process);
}

// ---- counted differently

enum { ALONE_STEPS = 1 << 20 };  // of a process

// Runs each process to its end as if nobody had to wait. (Conditions are the same for all.)
static void run_alone(Witness *w) {
  const Protocol *p = w->p;
  sc_concrete_begin(&w->c, &w->alone, w->v->sc, p, &w->f->s);
  for (u32 i = 0; i < p->process.n; i++) {
    const Script *s = p->process.at[i].script;
    for (u32 steps = 0; steps < ALONE_STEPS; steps++)
      if (s->step.at[w->alone.at[i]].kind == STEP_END || sc_run_step(&w->alone, i) != YES) break;
  }
}

static const Step *first_step(const Process *q, StepKind kind, u32 ref) {
  for (u32 i = 0; i < q->script->step.n; i++) {
    const Step *s = &q->script->step.at[i];
    if (s->kind == kind && s->ref == ref) return s;
  }
  return NULL;
}

static const char *times(const Witness *w, u32 n) {
  return n == 1 ? "once" : n == 0 ? "never" : sc_printf(w->v->sc, "%u times", n);
}

static void report_uneven(Witness *w, u32 channel) {
  const Protocol *p = w->p;
  u32 ring = p->channel.at[channel].ring;
  const char *name = w->v->k->ring.at[ring].name;
  Diag *d = NULL;
  for (u32 i = 0; i < p->process.n; i++) {
    const Process *q = &p->process.at[i];
    if (q->channel[ring] != channel) continue;
    const Step *fill = first_step(q, STEP_ACQUIRE, ring), *drain = first_step(q, STEP_WAIT, ring);
    for (u32 side = 0; side < 2; side++) {
      const Step *s = side ? drain : fill;
      if (!s) continue;
      u32 n = w->alone.count[side ? q->drain[ring] : q->fill[ring]];
      const char *does = side ? "waits for a stage of it" : "fills it";
      if (!d) {
        d = sc_report(w->v->sc, D_R5_AGREE, span(w, i, s),
                      "the roles disagree about '%s': with %s, %s %s %s in a tile", name,
                      sc_sample_text(w->v, &w->f->s), role(w, i), does, times(w, n));
      } else {
        sc_note(w->v->sc, d, span(w, i, s), "%s %s %s", role(w, i), does, times(w, n));
      }
    }
  }
  if (!d) return;
  sc_help(w->v->sc, d,
          "let both sides run equally often: give their loops and conditions the same bounds, also "
          "for no round and for one");
  sc_note_command(w->v, w->p, &w->f->s, d);
}

static void report_turns(Witness *w, u32 turn) {
  const Protocol *p = w->p;
  Diag *d = NULL;
  for (u32 i = 0; i < p->process.n; i++) {
    const Process *q = &p->process.at[i];
    const Step *s = first_step(q, STEP_TAKE, turn);
    if (!sc_turn_goes_over(&p->k->turn.at[turn], q->role)) continue;
    const char *n = times(w, w->alone.taken[i * p->k->turn.n + turn]);
    Span at = s ? span(w, i, s) : p->k->role.at[q->role].span;
    if (d) sc_note(w->v->sc, d, at, "%s takes it %s", role(w, i), n);
    else
      d = sc_report(w->v->sc, D_R5_AGREE, at,
                    "the turn '%s' is not taken equally often: with %s, %s takes it %s in a tile",
                    w->v->k->turn.at[turn].name, sc_sample_text(w->v, &w->f->s), role(w, i), n);
  }
  if (!d) return;
  if (!p->members[turn])
    sc_note(w->v->sc, d, w->v->k->turn.at[turn].span, "tiles are dealt: each takes it once");
  sc_help(w->v->sc, d, "every member takes and passes a turn equally often in each tile%s",
          p->members[turn] ? "" : "; where tiles are dealt, exactly once");
  sc_note_command(w->v, w->p, &w->f->s, d);
}

// ---- waiting in a circle

// How many stages of the ring would let this run end; 0: more stages do not help.
static u32 enough_stages(Witness *w, u32 channel) {
  Protocol *p = (Protocol *)w->p;  // put back as it was
  Channel *c = &p->channel.at[channel];
  u32 had = c->stages, enough = 0;
  for (u32 n = had + 1; n <= had + 8 && !enough; n++) {
    Run r;
    Concrete concrete;
    c->stages = n;
    sc_concrete_begin(&concrete, &r, w->v->sc, p, &w->f->s);
    r.most = 1u << 20;
    if (sc_run_on(&r) == OUT_DONE) enough = n;
  }
  c->stages = had;
  return enough;
}

static void help_circle(Witness *w, Diag *d, const u32 *circle, u32 n) {
  for (u32 i = 0; i < n; i++) {
    const Step *s = at(w, circle[i]);
    u32 enough =
        s->kind == STEP_ACQUIRE ? enough_stages(w, w->p->process.at[circle[i]].channel[s->ref]) : 0;
    if (!enough) continue;
    sc_help(
        w->v->sc, d,
        "release '%s' before that wait, or let its ring have more stages: with these dimensions "
        "%u would be enough",
        w->v->k->ring.at[s->ref].name, enough);
    return;
  }
  sc_help(w->v->sc, d, "let one of them do first what the other waits for");
}

// A role that waits for itself: what it waits for is what it does here.
static void note_itself(Witness *w, Diag *d, u32 process) {
  const Step *s = at(w, process);
  StepKind does = s->kind == STEP_ACQUIRE ? STEP_RELEASE
                  : s->kind == STEP_WAIT  ? STEP_COMMIT
                                          : STEP_PASS;
  const Step *later = first_step(&w->p->process.at[process], does, s->ref);
  if (later) sc_note(w->v->sc, d, span(w, process, later), "it does so here, but later");
}

static void report_circle(Witness *w) {
  u32 n = 0, now = 0, *circle = NEWS(w->v->sc, u32, w->p->process.n + 1);
  bool *met = NEWS(w->v->sc, bool, w->p->process.n + 1);
  while (now < w->p->process.n && !sc_run_blocked(w->run, now)) now++;
  for (; now != SC_NONE && now < w->p->process.n && !met[now]; now = sc_awaited(w->run, now))
    met[now] = true;
  if (now == SC_NONE || now >= w->p->process.n) return;
  for (u32 i = now; !n || i != now; i = sc_awaited(w->run, i)) circle[n++] = i;
  Diag *d = sc_report(w->v->sc, D_R6_DEADLOCK, span(w, circle[0], at(w, circle[0])),
                      "with %s %s waits here %s, and never goes on", sc_sample_text(w->v, &w->f->s),
                      role(w, circle[0]), sc_waits_text(w->v, w->run, circle[0]));
  for (u32 i = 1; i < n; i++)
    sc_note(w->v->sc, d, span(w, circle[i], at(w, circle[i])), "%s waits here %s",
            role(w, circle[i]), sc_waits_text(w->v, w->run, circle[i]));
  if (n == 1) note_itself(w, d, circle[0]);
  help_circle(w, d, circle, n);
  sc_note_command(w->v, w->p, &w->f->s, d);
}

void sc_report_failure(Verify *v, const Protocol *p, const Failure *f) {
  Witness w = {.v = v, .p = p, .f = f, .run = &f->run};
  u32 turn;
  run_alone(&w);
  u32 channel = sc_run_uneven(&w.alone, &turn);
  if (channel != SC_NONE) report_uneven(&w, channel);
  else if (turn != SC_NONE) report_turns(&w, turn);
  else report_circle(&w);
  if (channel != SC_NONE || turn != SC_NONE) sc_rejected(v, PROOF_COUNTS);
  if (f->outcome == OUT_STUCK) sc_rejected(v, PROOF_ORDER);
}
