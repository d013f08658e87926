// brackets.c - counts arrivals and bytes of every fill of a ring, and the uses of every turn, on
// every path through a role's code. In: the code with its plan. Out: Brackets: how often the role
// arrives for each fill and for each release, whatever the path.
//
// A bracket begins at an acquire or take and ends at the commit or pass. The code is walked in
// program order, a loop's body once: it must leave the bracket as it found it, but for copies into
// an open fill, which count as often as the loop runs. The two sides of a branch must leave the
// same bracket. (Where a role is walked path by path, brackets that differ are followed side by
// side, to a fixed point.)
#include "compiler/facts/path.h"
#include "compiler/verify/barriers.h"

enum { MAX_BYTES = 1 << 20 };  // a barrier's transaction count stays below (PTX ISA 9.0, 9.7.13.15)

// The bracket that is open, if one is.
typedef struct Bracket {
  bool open;
  u32 arrivals;
  i64 announced, landing;  // bytes
  u64 shared;              // parts that multicast copies fill, as a set
  Xid key;  // of a turn: with which it was taken; SC_NONE: a loop has changed that since
} Bracket;

typedef struct Way {
  Bracket bracket;
  Path path;
} Way;

enum { MAX_WAYS = 16 };
typedef struct Ways {
  u32 n;
  Way at[MAX_WAYS];
} Ways;

typedef struct Walk {
  Verify *v;
  const Role *role;
  const Code *code;
  const Ring *ring;  // NULL: it is a turn's
  u32 id;            // of the ring or turn
  Bracket now;       // of the way that is followed
  PathFacts *asked;  // NULL, or ways are told apart
  Ways *ways;        // … all that lead to the operation
  Brackets seen;
} Walk;

static const char *name(const Walk *w) {
  return w->ring ? w->ring->name : w->v->k->turn.at[w->id].name;
}

static void unsure(Walk *w, u32 pc, const char *what) {
  const bool of_ctas = !w->ring && w->v->k->turn.at[w->id].axis != SC_NONE;
  const ProofId id = w->ring ? PROOF_ARRIVALS : of_ctas ? PROOF_ORDER : PROOF_NAMED;
  w->seen.unsure = true;
  sc_incomplete(w->v, id, w->code->at[pc].span, "%s '%s' %s",
                w->ring ? "the fills of" : "the turns of", name(w), what);
}

// ---- what is emitted

// The number of arrivals that an instance makes when the emitter carries out the plan: of one
// thread, or of one lane of each warp. (An acquire arrives only with its bytes, by one thread. A
// release always arrives.)
static u32 emitted(const Role *r, const Ins *ins) {
  if (ins->op == OP_ACQUIRE) return ins->plan.bytes && ins->plan.arrivals;
  if (ins->op == OP_COMMIT && !ins->plan.arrivals) return 0;
  return ins->plan.arrivals == r->warps ? r->warps : 1;
}

static u32 arrive(Walk *w, const Ins *ins) {
  u32 n = emitted(w->role, ins);
  if (n != ins->plan.arrivals)
    sc_bad_plan(w->v, PROOF_ARRIVALS, ins->span,
                "the plan has %u arrivals at the barrier of '%s' here, and %u are made",
                ins->plan.arrivals, name(w), n);
  return n;
}

static void same_each_time(Walk *w, u32 pc, Tally *t, u32 n, const char *what) {
  const Ins *ins = &w->code->at[pc];
  if (!t->any) *t = (Tally){true, n, pc};
  if (t->each == n) return;
  Diag *d = sc_bad_plan(w->v, PROOF_ARRIVALS, ins->span, "%u arrive for this %s of '%s'", n, what,
                        name(w));
  if (d) sc_note(w->v->sc, d, w->code->at[t->pc].span, "and %u for this one", t->each);
}

// ---- operations

static void open_fill(Walk *w, u32 pc) {
  const Ins *ins = &w->code->at[pc];
  if (w->now.open) unsure(w, pc, "begin before the last one is over");
  w->now = (Bracket){.open = true, .arrivals = arrive(w, ins), .announced = ins->plan.bytes};
}

// A copy brings the bytes of the whole part of a stage: a box that reaches past its tensor counts
// in full. In a multicast each CTA of the cluster copies a share to all CTAs, so that each receives
// the whole part. Shares are whole rows or whole panels.
static void land(Walk *w, u32 pc) {
  const Kernel *k = w->v->k;
  const Ins *ins = &w->code->at[pc];
  const Buf *part = &k->buf.at[k->view.at[ins->arg[0]].buf];
  i64 rows = sc_stage_rows(part), row = part->ext[part->rank - 1] * sc_elem[part->elem].bytes;
  u32 ctas = ins->flags & INS_MULTICAST ? sc_cluster(k) : 1;
  if (!w->now.open) unsure(w, pc, "are copied into where none has begun");
  if (rows % ctas && row / sc_panel_bytes(part) % ctas)
    sc_bad_plan(w->v, PROOF_ARRIVALS, ins->span,
                "'%s' does not divide into shares of %u CTAs: some bytes come from nobody",
                part->name, ctas);
  if (ins->flags & INS_MULTICAST && !w->ring->multicast)
    sc_bad_plan(w->v, PROOF_ARRIVALS, ins->span,
                "this CTA copies into '%s' of others, whose releases it does not hear of", name(w));
  w->now.landing += rows * row;
  if (ctas == 1) return;
  u32 number = k->view.at[ins->arg[0]].buf - w->ring->part0;
  if (number >= 64) unsure(w, pc, "have more parts than this proof tells apart");
  w->now.shared |= (u64)1 << number % 64;
}

// A CTA receives its shares of a multicast only if the others of its cluster send theirs in the
// same fill.
static void share_each_time(Walk *w, u32 pc, u64 shared) {
  Brackets *seen = &w->seen;
  if (seen->fill.any && seen->shared != shared && !seen->unlike) seen->unlike = pc;
  if (!shared && !seen->alone) seen->alone = pc;
  seen->shared = shared;
}

static void close_fill(Walk *w, u32 pc) {
  const Ins *ins = &w->code->at[pc];
  Bracket *b = &w->now;
  if (!b->open) unsure(w, pc, "end where none has begun");
  if (b->announced != b->landing)
    sc_bad_plan(w->v, PROOF_ARRIVALS, ins->span,
                "this fill of '%s' announces %lld bytes, and its copies bring %lld", name(w),
                (long long)b->announced, (long long)b->landing);
  if (b->announced >= MAX_BYTES)
    sc_bad_plan(w->v, PROOF_ARRIVALS, ins->span,
                "this fill of '%s' announces %lld bytes: a barrier counts fewer than %d", name(w),
                (long long)b->announced, MAX_BYTES);
  share_each_time(w, pc, b->shared);
  same_each_time(w, pc, &w->seen.fill, b->arrivals + arrive(w, ins), "fill");
  *b = (Bracket){0};
}

static void step_ring(Walk *w, u32 pc) {
  const Kernel *k = w->v->k;
  const Ins *ins = &w->code->at[pc];
  if (ins->op == OP_COPYIN && k->buf.at[k->view.at[ins->arg[0]].buf].ring == w->id) land(w, pc);
  bool of_ring = ins->op == OP_ACQUIRE || ins->op == OP_COMMIT || ins->op == OP_RELEASE;
  if (!of_ring || ins->arg[0] != w->id) return;
  if (ins->op == OP_ACQUIRE) open_fill(w, pc);
  else if (ins->op == OP_COMMIT) close_fill(w, pc);
  else same_each_time(w, pc, &w->seen.release, arrive(w, ins), "release");
}

static void step_turn(Walk *w, u32 pc) {
  const Ins *ins = &w->code->at[pc];
  if ((ins->op != OP_TAKE && ins->op != OP_PASS) || ins->arg[0] != w->id) return;
  bool take = ins->op == OP_TAKE;
  if (w->now.open == take)
    unsure(w, pc, take ? "begin before the last one is over" : "end where none has begun");
  if (!take && w->now.key != ins->arg[1])
    unsure(w, pc, "may be passed on with another key than they were taken with");
  w->now.open = take;
  w->now.key = take ? ins->arg[1] : 0;
  w->seen.turns = true;
}

// ---- blocks

static bool same(Bracket a, Bracket b) {
  return a.open == b.open && a.key == b.key && a.arrivals == b.arrivals &&
         a.announced == b.announced && a.landing == b.landing && a.shared == b.shared;
}

static void walk(Walk *w, u32 from, u32 to);

static void loop(Walk *w, u32 pc, u32 end) {
  const Ins *ins = &w->code->at[pc];
  Bracket before = w->now;
  walk(w, pc + 1, end);
  i64 first, last, copied = w->now.landing - before.landing;
  u64 shared = w->now.shared;
  w->now.landing = before.landing;
  w->now.shared = before.shared;
  if (!same(before, w->now)) unsure(w, pc, "differ from round to round of a loop");
  w->now = before;
  if (!copied) return;
  if (!x_const_int(w->v->k, ins->arg[1], &first) || !x_const_int(w->v->k, ins->arg[2], &last))
    unsure(w, pc, "get as many bytes as a loop runs often");
  else if (last > first) {
    w->now.landing += last - first < MAX_BYTES ? (last - first) * copied : MAX_BYTES;
    w->now.shared = shared;
  }
}

// (Multicast copies are kept if both sides make some.)
static void branch(Walk *w, u32 pc, u32 mid, u32 end) {
  Bracket before = w->now;
  walk(w, pc + 1, mid);
  Bracket yes = w->now;
  w->now = before;
  walk(w, mid + 1, end);
  if (yes.shared != w->now.shared && !w->seen.unlike) w->seen.unlike = pc;
  if (yes.shared && w->now.shared) w->now.shared |= yes.shared;
  else w->now.shared = 0;
  yes.shared = w->now.shared;
  if (!same(yes, w->now)) unsure(w, pc, "differ between the sides of a branch");
}

// ---- path by path

// The way that is like this one; if there is room, one whose conditions say nothing contrary.
static Way *like(Walk *w, Ways *to, const Way *way, u32 pc) {
  Way *found = NULL;
  for (u32 i = 0; i < to->n; i++) {
    if (!same(to->at[i].bracket, way->bracket)) continue;
    found = &to->at[i];
    if (sc_path_alike(w->asked, &found->path, &way->path, pc)) return found;
  }
  return to->n < MAX_WAYS ? NULL : found;
}

// changed: NULL: no loop begins here.
static void join(Walk *w, Ways *to, const Way *way, u32 pc, bool *changed) {
  Way *into = like(w, to, way, pc);
  if (into) {
    sc_path_unite(w->asked, &into->path, &way->path, pc, changed);
  } else if (to->n == MAX_WAYS) {
    unsure(w, pc - 1, "differ on too many paths");
  } else {
    to->at[to->n++] = *way;
    if (changed) *changed = true;
  }
}

static Ways *copy(Walk *w) {
  Ways *all = NEW(w->v->sc, Ways);
  *all = *w->ways;
  return all;
}

// A turn is held at the end of a loop's round: where its key names the loop's variable, that is
// another key from here on.
static void end_round(Walk *w, u32 loop, Bracket *b) {
  if (b->key != SC_NONE && x_names_loop(&w->asked->below, b->key, w->code->at[loop].arg[0]))
    b->key = SC_NONE;
}

// Walks the loop's body until no round begins with a bracket that no earlier round began with.
static void loop_paths(Walk *w, u32 pc, u32 end) {
  Ways *head = NEW(w->v->sc, Ways), *past = NEW(w->v->sc, Ways);
  bool changed = true;
  for (u32 i = 0; i < w->ways->n; i++) {
    Way skip = w->ways->at[i], *enter = &w->ways->at[i];
    if (sc_path_skip(w->asked, &skip.path, pc)) join(w, past, &skip, end + 1, NULL);
    if (sc_path_enter(w->asked, &enter->path, pc)) join(w, head, enter, pc + 1, &changed);
  }
  while (changed) {
    changed = false;
    *w->ways = *head;
    walk(w, pc + 1, end);
    for (u32 i = 0; i < w->ways->n; i++) {
      end_round(w, pc, &w->ways->at[i].bracket);
      Way again = w->ways->at[i], *leave = &w->ways->at[i];
      if (sc_path_again(w->asked, &again.path, pc)) join(w, head, &again, end, &changed);
      if (sc_path_leave(w->asked, &leave->path, pc)) join(w, past, leave, end + 1, NULL);
    }
  }
  *w->ways = *past;
}

static void take_side(Walk *w, Ways *ways, u32 pc, bool holds) {
  u32 n = 0;
  for (u32 i = 0; i < ways->n; i++) {
    if (sc_path_if(w->asked, &ways->at[i].path, pc, holds)) ways->at[n++] = ways->at[i];
  }
  ways->n = n;
}

static void branch_paths(Walk *w, u32 pc, u32 mid, u32 end) {
  Ways *other = copy(w);
  take_side(w, w->ways, pc, true);
  take_side(w, other, pc, false);
  walk(w, pc + 1, mid);
  Ways *yes = copy(w);
  *w->ways = *other;
  walk(w, mid + 1, end);
  for (u32 i = 0; i < yes->n; i++) join(w, w->ways, &yes->at[i], end + 1, NULL);
}

static void step(Walk *w, u32 pc) {
  if (w->ring) step_ring(w, pc);
  else step_turn(w, pc);
}

static void step_paths(Walk *w, u32 pc) {
  for (u32 i = 0; i < w->ways->n; i++) {
    w->now = w->ways->at[i].bracket;
    step(w, pc);
    w->ways->at[i].bracket = w->now;
  }
}

// ---- the code

// (A vote's block has no brackets in it.)
static void walk(Walk *w, u32 from, u32 to) {
  for (u32 pc = from; pc < to; pc++) {
    const Ins *ins = &w->code->at[pc];
    if (ins->op == OP_IF) {
      u32 end = sc_closed_by(w->code, pc);
      (w->asked ? branch_paths : branch)(w, pc, ins->nest, end);
      pc = end;
    } else if (ins->op == OP_FOR) {
      (w->asked ? loop_paths : loop)(w, pc, ins->nest);
      pc = ins->nest;
    } else {
      (w->asked ? step_paths : step)(w, pc);
    }
  }
}

static Brackets follow(Walk *w) {
  const u32 n = w->role->code.n;
  bool open = false;
  if (w->role->by_paths) {
    w->asked = sc_path_facts(w->v->sc, w->v->k, w->role);
    sc_facts_elements(w->asked->facts);
    w->asked->left = PATHS_PROVED;
    w->ways = NEW(w->v->sc, Ways);
    w->ways->n = 1;
  }
  walk(w, 0, n);
  for (u32 i = 0; w->asked && i < w->ways->n; i++) open |= w->ways->at[i].bracket.open;
  if (open || (!w->asked && w->now.open)) unsure(w, n - 1, "are open where the tile ends");
  return w->seen;
}

Brackets sc_ring_brackets(Verify *v, u32 role, u32 ring) {
  const Role *r = &v->k->role.at[role];
  Walk w = {.v = v, .role = r, .code = &r->code, .ring = &v->k->ring.at[ring], .id = ring};
  return follow(&w);
}

Brackets sc_turn_brackets(Verify *v, u32 role, u32 turn) {
  const Role *r = &v->k->role.at[role];
  Walk w = {.v = v, .role = r, .code = &r->code, .id = turn};
  return follow(&w);
}
