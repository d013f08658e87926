// protocol.c - the proof that every wait ends and that the roles agree about each tile, for every
// trip count. In: a kernel. Out: proofs ORDER and COUNTS, or a witness.
//
// The idea: the symbolic exploration is tried in several ways, the cheapest first. It over-
// approximates, so a fault that it finds counts only if a concrete run shows it as well. Where
// neither a proof nor such a run is found, the statement stays open.
#include "compiler/verify/protocol.h"

enum { BOUNDS = 4, MORE_BOUNDS = 24, STATES = 4000, ALL_STATES = 12000 };

typedef struct Attempt {
  Way way;
  Expand expand;
  i64 most;
} Attempt;

static const Attempt attempts[] = {
    {{COUNT_VALUE, true}, EXPAND_NONE, BOUNDS},   {{COUNT_ROUNDS, true}, EXPAND_NONE, BOUNDS},
    {{COUNT_VALUE, false}, EXPAND_NONE, BOUNDS},  {{COUNT_DOWN, false}, EXPAND_NONE, BOUNDS},
    {{COUNT_ON, false}, EXPAND_NONE, BOUNDS},     {{COUNT_VALUE, true}, EXPAND_BOUNDS, BOUNDS},
    {{COUNT_DOWN, false}, EXPAND_BOUNDS, BOUNDS}, {{COUNT_ON, false}, EXPAND_BOUNDS, BOUNDS},
    {{COUNT_VALUE, true}, EXPAND_ALL, BOUNDS},    {{COUNT_ROUNDS, true}, EXPAND_ALL, BOUNDS},
    {{COUNT_DOWN, false}, EXPAND_ALL, BOUNDS},    {{COUNT_ON, false}, EXPAND_ALL, BOUNDS},
    {{COUNT_ON, true}, EXPAND_ALL, BOUNDS},       {{COUNT_VALUE, true}, EXPAND_ALL, MORE_BOUNDS},
    {{COUNT_ON, false}, EXPAND_ALL, MORE_BOUNDS},
};

// CTAs of a cluster that share rings may count differently where a bound or a condition depends on
// their place: then each has processes of its own.
static u32 ranks_of(Verify *v) {
  Below below = x_below(v->sc, v->k);
  bool shared = false, differ = false;
  for (u32 r = 0; r < v->k->ring.n; r++) shared |= v->k->ring.at[r].multicast;
  for (u32 r = 0; r < v->k->role.n && shared; r++) {
    const Script *s = sc_script(v, r, (Way){0});
    for (u32 i = 0; i < s->step.n && !differ; i++)
      differ = x_reads_rank(&below, s->step.at[i].x) || x_reads_rank(&below, s->step.at[i].y);
  }
  return differ ? sc_cluster(v->k) : 1;
}

// A tensor whose elements name places, and with negative ones of which a run fails: what the proof
// lacks is that there are none. SC_NONE: there is no such tensor.
static u32 needs_a_range(Verify *v, const Protocol *p) {
  const bool *list = sc_lists(v);
  for (u32 b = 0; sc_reads_data(p) && b < v->k->buf.n; b++)
    if (list[b] && sc_find_failure(v, p, b).outcome != OUT_DONE) return b;
  return SC_NONE;
}

static void not_proved(Verify *v, const Protocol *p, Explored e, u32 tried) {
  static const char *const why[] = {
      [OUT_STUCK] = "the symbolic run ends in a state that may be a deadlock",
      [OUT_UNEVEN] = "the symbolic run ends with counts that may differ",
      [OUT_OPEN] = "a condition is open",
      [OUT_UNKNOWN] = "this depends on a value that the proof cannot follow",
      [OUT_EXHAUSTED] = "the proof needs too many states",
  };
  const Role *r = &v->k->role.at[p->process.at[e.process].role];
  Span at = e.outcome == OUT_UNKNOWN ? r->code.at[e.pc].span : v->k->span;
  u32 upto = sc_try_all(v, p);
  const char *tries =
      upto ? sc_printf(v->sc, "no run with dimensions up to %u fails", upto)
           : sc_printf(v->sc, "%u runs with dimensions drawn found no mistake", tried);
  u32 list = needs_a_range(v, p);
  for (ProofId id = PROOF_ORDER; id <= PROOF_COUNTS; id++) {
    if (list != SC_NONE)
      sc_incomplete(v, id, v->k->buf.at[list].span,
                    "a run fails where elements of '%s' are negative; if none ever is, declare so: "
                    "'in 0 .. n' behind its type",
                    v->k->buf.at[list].name);
    else if (upto) sc_checked(v, id, upto, at, "%s; %s", why[e.outcome], tries);
    else sc_incomplete(v, id, at, "%s; %s", why[e.outcome], tries);
  }
}

// Do instances that take tiles in turn use it? Waits alone do not tell how many stages those need.
static bool is_dealt(const Kernel *k, const Ring *r) {
  for (u32 i = 0; i < k->role.n; i++)
    if ((r->fillers | r->drainers) >> i & 1 && k->role.at[i].one_tile) return true;
  return false;
}

// Finds for each ring the fewest stages with which the proof still succeeds in the same way, while
// all other rings keep theirs.
static void find_depths(Verify *v, const Attempt *a, u32 ranks) {
  for (u32 r = 0; r < v->k->ring.n; r++) {
    Outcome o = OUT_DONE;
    if (is_dealt(v->k, &v->k->ring.at[r])) continue;
    for (u32 n = v->k->ring.at[r].stages; n && o == OUT_DONE; n--) {
      Protocol *p = sc_protocol(v, a->way, ranks);
      for (u32 c = 0; c < p->channel.n; c++)
        if (p->channel.at[c].ring == r) p->channel.at[c].stages = n;
      o = sc_explore(v, p, a->expand, a->most, STATES).outcome;
      if (o == OUT_DONE) v->cert->least[r] = n;
    }
  }
}

void sc_prove_protocol(Verify *v) {
  Explored e = {0};
  Failure f = {0};
  Protocol *p = NULL;
  u32 ranks = ranks_of(v);
  for (u32 i = 0; i < COUNT(attempts) && v->cert->states < ALL_STATES; i++) {
    const Attempt *a = &attempts[i];
    p = sc_protocol(v, a->way, ranks);
    u32 left = ALL_STATES - v->cert->states;
    e = sc_explore(v, p, a->expand, a->most, left < STATES ? left : STATES);
    v->cert->states += e.states;
    if (e.outcome == OUT_DONE && v->depths) find_depths(v, a, ranks);
    if (e.outcome == OUT_DONE) break;
    if (!i) f = sc_find_failure(v, p, SC_NONE);
    if (f.outcome != OUT_DONE) break;
  }
  if (f.outcome != OUT_DONE) sc_report_failure(v, f.run.p, &f);
  else if (e.outcome != OUT_DONE) not_proved(v, p, e, f.tried);
  sc_prove_cta_turns(v);
}
