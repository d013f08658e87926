// turn.c - turns: over instances, and over CTAs. Called by frame.c and grid.c; calls wait.c and
// block.c, and expr.c for keys.
#include "compiler/emit/emit.h"

static const Txt instance = {"$instance", P_NAME};

// ---- turns over instances: a named barrier for each member, at which the member waits (bar.sync)
// and the one before it arrives (bar.arrive)

void cu_first_turns(Cuda *c) {
  for (u32 i = 0; i < c->k->turn.n; i++) {
    const Turn *t = &c->k->turn.at[i];
    if (!sc_turn_over_instances(t) || t->member[t->members - 1] != c->r) continue;
    cu_bar_arrive(c, cu_text(c, "if ($instance == %u) ", c->k->role.at[c->r].instances - 1),
                  cu_int(c, t->barrier), cu_turn_threads(c->k, t),
                  cu_text(c, "the first turn of '%s' is free", t->name));
  }
}

// ---- turns over CTAs: a counter for each key and each place on the other axes; its value says
// whose turn it is

// Tiles along an axis, rounded up to whole clusters.
static const char *axis_places(Cuda *c, u32 axis) {
  const Axis *x = &c->k->axis.at[axis];
  const char *n = cu_paren(c, cu_clusters(c, x), P_MUL + 1);
  return x->cluster == 1 ? n : cu_text(c, "(%s * %u)", n, x->cluster);
}

static const char *counter(Cuda *c, const Ins *ins) {
  const Kernel *k = c->k;
  const Turn *t = &k->turn.at[ins->arg[0]];
  Txt at = cu_int(c, 0);
  bool first = true;
  for (u32 i = 0; i < k->axis.n; i++) {
    if (i == t->axis) continue;
    Txt tile = {cu_axis(c, i), P_ATOM};
    if (!first)
      tile = (Txt){cu_text(c, "%s * %s + %s", cu_paren(c, at, P_MUL), axis_places(c, i), tile.s),
                   P_ADD};
    at = tile;
    first = false;
  }
  if (t->keys) {
    const char *key = ins->arg[1] ? cu_paren(c, cu_expr(c, NULL, ins->arg[1]), P_ADD) : "0";
    at = first ? (Txt){key, P_ADD}
               : (Txt){cu_text(c, "%s * %s + %s", cu_paren(c, at, P_MUL),
                               cu_paren(c, cu_expr(c, NULL, t->keys), P_MUL + 1), key),
                       P_ADD};
  }
  return cu_text(c, "args.turn%u + %s", ins->arg[0], cu_paren(c, at, P_ADD));
}

static void take_from_cta(Cuda *c, const Ins *ins) {
  const Turn *t = &c->k->turn.at[ins->arg[0]];
  cu_turn_take(c, cu_elected(c), counter(c, ins), cu_axis(c, t->axis), ins->arg[0]);
  cu_sync(c, NULL);
}

static void pass_to_cta(Cuda *c, const Ins *ins) {
  cu_sync(c, NULL);
  cu_line(c, "%ssc_turn_pass(%s);", cu_elected(c), counter(c, ins));
  cu_note(c, cu_text(c, "pass '%s' on", c->k->turn.at[ins->arg[0]].name));
}

void cu_take(Cuda *c, const Ins *ins) {
  const Turn *t = &c->k->turn.at[ins->arg[0]];
  if (t->axis != SC_NONE) {
    take_from_cta(c, ins);
    return;
  }
  u32 first = t->barrier + sc_members_before(c->k, t, c->r);
  cu_bar_sync(c, cu_sum(c, cu_int(c, first), instance), cu_turn_threads(c->k, t), WAIT_TURN,
              ins->arg[0], cu_text(c, "take '%s'", t->name));
}

void cu_pass(Cuda *c, const Ins *ins) {
  const Turn *t = &c->k->turn.at[ins->arg[0]];
  if (t->axis != SC_NONE) {
    pass_to_cta(c, ins);
    return;
  }
  u32 n = sc_members(c->k, t), first = sc_members_before(c->k, t, c->r),
      last = c->k->role.at[c->r].instances - 1;
  const char *after = first ? cu_text(c, "$instance + %u", first + 1) : "$instance + 1";
  Txt next = {after, P_ADD};
  if (n == 2) next = (Txt){cu_text(c, "(%s) %% 2", after), P_MUL};
  else if (first + last + 1 == n)
    next = (Txt){cu_text(c, "($instance == %u ? 0 : %s)", last, after), P_ATOM};
  cu_bar_arrive(c, "", cu_sum(c, cu_int(c, t->barrier), next), cu_turn_threads(c->k, t),
                cu_text(c, "pass '%s' on", t->name));
}
