// walk.c - forward data flow over structured code. A loop's head keeps what is known there
// over all paths; the whole role is walked again until no head learns anything more (so nested
// loops cost a pass for each fact, not a power of the nesting), and a last time to report. Where
// paths join, queues, holds, fills and turns must agree (R4, R5): then what holds after one
// iteration holds after any number of them.
//
// In a role whose paths do not agree (Role.by_paths), paths that differ are followed side by side.
// Each has a list of what is true on it (facts/path.c), which decides conditions that are asked
// again, and tells first and last rounds from the others. A loop's head then keeps a state for each
// way in which a round may begin. More than MAX_PATHS of them are an error. If the role has faults
// then (PATHS_BY_CONDITIONS), paths on which the same is under way are followed side by side as
// well, if a condition holds on one and not on the other, and there is room.
#include "compiler/flow/flow.h"

// MAX_PASSES: from this pass over the role on, no new conditions are asked about, so what is known
// on a path can only shrink and the walk ends.
enum { MAX_WORK = 1 << 29, MAX_PASSES = 64 };

// ---- paths

// Adds one more path, for which there is room.
static State *push_path(Flow *f, Paths *to, const State *s) {
  State **at = &to->at[to->n++];
  if (!*at) *at = sc_state(f->sc, f->k);
  sc_state_copy(*at, s, f->k);
  return *at;
}

static void copy_paths(Flow *f, Paths *to, const Paths *from) {
  to->n = 0;
  for (u32 i = 0; i < from->n; i++) push_path(f, to, from->at[i]);
}

// The path whose exact state is that of s. If paths are told apart and there is room, the same
// tiles must be defined, too.
static State *like(Flow *f, const Paths *p, const State *s, u32 pc) {
  State *found = NULL;
  for (u32 i = 0; i < p->n; i++) {
    if (!sc_state_same(p->at[i], s, f->k)) continue;
    found = p->at[i];
    if (!f->asked) return found;
    if (sc_state_same_tiles(found, s, f->k) && sc_path_alike(f->asked, &found->path, &s->path, pc))
      return found;
  }
  return p->n < MAX_PATHS ? NULL : found;
}

// Joins s into the path that it agrees with, or adds it as a path of its own, before operation pc.
// False: there is no room. changed: whether less is known now (NULL: no loop begins here).
static bool add_path(Flow *f, Paths *to, const State *s, u32 pc, bool *changed) {
  State *same = like(f, to, s, pc);
  if (!same && to->n == (f->asked ? MAX_PATHS : 1)) return false;
  bool less = !same;
  if (!same) push_path(f, to, s);
  else less = sc_state_join(same, s, f->k);
  if (same && f->asked) sc_path_unite(f->asked, &same->path, &s->path, pc, changed);
  if (changed) *changed |= less;
  return true;
}

// Notes in f->decided that an `if` decides how a path goes on. Returns `may`.
static bool may_go_on(Flow *f, const State *s, bool may) {
  for (u32 i = 0; i < s->path.n && !may; i++) {
    u32 site = s->path.at[i].site;
    f->decided |= site != SC_NONE && f->r->code.at[site].op == OP_IF;
  }
  return may;
}

static Paths *saved(Flow *f, u32 which) {
  Paths **at = &f->saved[2 * f->depth + which];
  if (!*at) *at = NEW(f->sc, Paths);
  return *at;
}

static void open_block(Flow *f) {
  f->open[f->depth] = f->pc;
  f->in_else[f->depth] = false;
  f->depth++;
}

// ---- loops

static bool may_skip(Flow *f, State *s) {
  const Ins *loop = &f->r->code.at[f->pc];
  i64 from, to;
  if (f->asked) return sc_path_skip(f->asked, &s->path, f->pc);
  return !x_const_int(f->k, loop->arg[1], &from) || !x_const_int(f->k, loop->arg[2], &to) ||
         from >= to;
}

static void enter_loop(Flow *f) {
  Paths **head = &f->head[f->pc], *past = saved(f, 0);
  if (!*head) *head = NEW(f->sc, Paths);
  past->n = 0;
  for (u32 i = 0; i < f->paths.n; i++) {
    State *s = f->paths.at[i];
    if (!may_skip(f, push_path(f, past, s))) past->n--;
    if (f->asked && !sc_path_enter(f->asked, &s->path, f->pc)) continue;
    if (!add_path(f, *head, s, f->pc + 1, &f->changed))
      f->changed |= sc_state_join((*head)->at[0], s, f->k);
  }
  copy_paths(f, &f->paths, *head);
  open_block(f);
}

// Leads one path from the end of the body to the next round, and out of the loop. False: the next
// round would begin in another state than those before.
static bool end_round(Flow *f, u32 loop, State *s) {
  Paths *head = f->head[loop], *out = saved(f, 0), *next = saved(f, 1);
  bool fits = true;
  next->n = 0;
  State *again = push_path(f, next, s);
  if (!f->asked || may_go_on(f, s, sc_path_again(f->asked, &again->path, loop)))
    fits = add_path(f, head, again, f->pc, &f->changed);
  if (!fits && f->report && !(f->asked && f->sc->errors > f->errors))
    sc_report_loop(f, head->at[0], s, f->r->code.at[loop].span);
  if (!f->asked || may_go_on(f, s, sc_path_leave(f->asked, &s->path, loop)))
    fits &= add_path(f, out, s, f->pc + 1, NULL);
  return fits;
}

static void leave_loop(Flow *f) {
  u32 loop = f->open[--f->depth];
  bool fits = true;
  for (u32 i = 0; i < f->paths.n; i++) fits &= end_round(f, loop, f->paths.at[i]);
  copy_paths(f, &f->paths, fits ? saved(f, 0) : f->head[loop]);
}

// ---- branches

// Keeps only the paths that can take this side of the `if`.
static void take_side(Flow *f, Paths *p, bool holds) {
  u32 n = 0;
  for (u32 i = 0; i < p->n; i++) {
    State *s = p->at[i];
    if (!may_go_on(f, s, sc_path_if(f->asked, &s->path, f->pc, holds))) continue;
    p->at[i] = p->at[n];
    p->at[n++] = s;
  }
  p->n = n;
}

static bool some_fly(const Paths *p) {
  bool some = false;
  for (u32 i = 0; i < p->n; i++) some |= p->at[i]->product.n > 0;
  return some;
}

// Of the `if` at which the walk stands: does its block begin with a wait for products of which none
// is in flight where it is skipped?
static bool waits_early(const Flow *f, const Paths *taken, const Paths *skipped) {
  const Ins *first = &f->r->code.at[f->pc + 1];
  bool plain = first->op == OP_MMAWAIT && !first->plan.fence && !first->plan.sync;
  return plain && some_fly(taken) && !some_fly(skipped);
}

static void enter_branch(Flow *f) {
  Paths *other = saved(f, 0);
  copy_paths(f, other, &f->paths);
  if (f->asked && f->r->code.at[f->pc].op == OP_IF) {
    take_side(f, &f->paths, true);
    take_side(f, other, false);
    if (f->derive) f->r->code.at[f->pc].plan.early = waits_early(f, &f->paths, other);
  }
  open_block(f);
}

static void other_branch(Flow *f) {
  f->depth--;
  copy_paths(f, saved(f, 1), &f->paths);
  copy_paths(f, &f->paths, saved(f, 0));
  f->in_else[f->depth++] = true;
}

// If the paths disagree, the walk goes on with the one that holds more, so that releases and waits
// that follow are not reported as well.
static void disagree(Flow *f, const State *other) {
  State *now = f->paths.at[0];
  bool in_else = f->in_else[f->depth];
  if (f->report && !(f->asked && f->sc->errors > f->errors))
    sc_report_branch(f, in_else ? other : now, in_else ? now : other,
                     f->r->code.at[f->open[f->depth]].span);
  if (sc_state_weight(other, f->k) > sc_state_weight(now, f->k)) sc_state_copy(now, other, f->k);
}

static void leave_branch(Flow *f) {
  f->depth--;
  Paths *other = saved(f, f->in_else[f->depth] ? 1 : 0);
  for (u32 i = 0; i < other->n; i++) {
    if (!add_path(f, &f->paths, other->at[i], f->pc + 1, NULL)) disagree(f, other->at[i]);
  }
}

// ---- operations

static void note_truth(Flow *f, Diag *d, const Truth *t) {
  const Ins *asked = &f->r->code.at[t->site];
  const char *what = asked->op == OP_FOR ? "loop has no round"
                     : t->cond           ? t->holds ? "holds" : "does not hold"
                     : t->holds          ? "held in an earlier round"
                                         : "did not hold in an earlier round";
  sc_note(f->sc, d, asked->span, "on a path on which this %s", what);
}

// Notes the conditions on the way to a fault, and how they were answered.
static void note_path(Flow *f, Diag *d) {
  const Path *p = &f->now->path;
  for (u32 i = 0; i < p->n; i++) {
    u32 before = 0;
    while (p->at[before].site != p->at[i].site) before++;
    if (p->at[i].site != SC_NONE && before == i) note_truth(f, d, &p->at[i]);
  }
}

// Does the step on each path. A fault that several paths have is reported for the first one.
static void on_each(Flow *f, Ins *ins, void step(Flow *, Ins *)) {
  bool report = f->report;
  for (u32 i = 0; i < f->paths.n; i++) {
    u32 before = f->sc->errors;
    Diag **said = f->sc->diag_end;  // NULL stands there until something is said and not dropped
    f->now = f->paths.at[i];
    f->first = !i;
    step(f, ins);
    if (!*said && f->sc->errors == before) continue;
    for (Diag *d = *said; d; d = d->next) note_path(f, d);
    f->report = false;
  }
  f->report = report;
}

// A tile begins with nothing known of earlier tiles. Other CTAs may have run them in any order,
// unless they take turns.
static void begin_tile(Flow *f) {
  if (!f->paths.at[0]) f->paths.at[0] = sc_state(f->sc, f->k);
  f->paths.n = 1;
  sc_state_clear(f->paths.at[0], f->k);
}

static void end_tile(Flow *f, Ins *ins) {
  (void)ins;
  if (f->report) sc_report_end(f, f->now);
}

static void step(Flow *f, Ins *ins) {
  switch (ins->op) {
    case OP_TILE: begin_tile(f); break;
    case OP_ENDTILE: on_each(f, ins, end_tile); break;
    case OP_FOR: enter_loop(f); break;
    case OP_ENDFOR: leave_loop(f); break;
    case OP_VOTE:
      on_each(f, ins, sc_step);
      enter_branch(f);
      f->votes += !(ins->flags & INS_TOGETHER);
      break;
    case OP_IF: enter_branch(f); break;
    case OP_ELSE: other_branch(f); break;
    case OP_ENDVOTE:
      on_each(f, ins, sc_step_endvote);
      f->votes -= !(f->r->code.at[ins->nest].flags & INS_TOGETHER);
      leave_branch(f);
      break;
    case OP_ENDIF: leave_branch(f); break;
    default: on_each(f, ins, sc_step);
  }
}

static void pass(Flow *f) {
  f->changed = false;
  f->depth = f->votes = 0;
  begin_tile(f);
  for (f->pc = 0; f->pc < f->r->code.n; f->pc++) step(f, &f->r->code.at[f->pc]);
}

// The cost of a pass in bytes: it is mostly the copies of a state that each block makes.
static u64 cost(const Kernel *k, u32 blocks) {
  return blocks * (sizeof(State) + k->ring.n * sizeof(RingState) + k->turn.n * sizeof(TurnState) +
                   k->buf.n * 16u);
}

static void report_cost(Flow *f, u32 blocks) {
  Diag *d = sc_report(f->sc, D_P_LIMIT, f->r->span,
                      "'%s' has too many blocks (%u) for its number of tiles and rings", f->r->name,
                      blocks);
  sc_help(f->sc, d, "loops that index register tiles are unrolled: make them shorter");
}

// A plan's trial may have kept answers, which cost nothing; its proof starts with none.
static void tell_paths_apart(Flow *f) {
  if (f->kept) f->asked = *f->kept;
  if (f->asked) sc_path_ask(f->asked, f->r);
  else f->asked = sc_path_facts(f->sc, f->k, f->r);
  if (f->kept) *f->kept = f->asked;
  f->asked->left = f->trial ? PATHS_TRIED : PATHS_PROVED;
}

void sc_walk(Flow *f) {
  bool report = f->report;
  f->r = &f->k->role.at[f->role];
  const u32 deepest = sc_deepest(&f->r->code);
  u32 blocks = 0;
  for (u32 i = 0; i < f->r->code.n; i++)
    blocks += (sc_op[f->r->code.at[i].op].effects & OPENS) != 0;
  if (cost(f->k, blocks) >= MAX_WORK) {
    report_cost(f, blocks);
    return;
  }
  f->blamed_ring = NEWS(f->sc, bool, f->k->ring.n + 1);
  f->blamed_turn = NEWS(f->sc, bool, f->k->turn.n + 1);
  f->blamed_buf = NEWS(f->sc, bool, f->k->buf.n + 1);
  f->head = NEWS(f->sc, Paths *, f->r->code.n + 1);
  f->saved = NEWS(f->sc, Paths *, 2 * (deepest + 1));
  f->open = NEWS(f->sc, u32, deepest + 1);
  f->in_else = NEWS(f->sc, bool, deepest + 1);
  f->report = false;
  if (f->r->by_paths && cost(f->k, blocks) * MAX_PATHS < MAX_WORK) tell_paths_apart(f);
  for (u32 n = 0; !n || f->changed; n++) {
    if (n == MAX_PASSES && f->asked) f->asked->asked.n = f->asked->apart.n = 0;
    f->gave_up = f->trial && f->asked && f->asked->apart.n && !f->asked->left;
    if (f->gave_up) return;
    pass(f);
  }
  f->report = report;
  f->errors = f->sc->errors;
  if (report) pass(f);
}
