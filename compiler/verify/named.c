// named.c - the proof NAMED: which threads arrive at each named barrier, how often, and in which
// order. In: a placed kernel. Out: a verdict, with a report where a count is wrong.
//
// The warps of an instance meet at a barrier of their own, for a sync of the plan and for turns
// over CTAs. All warps come, as only the block of a vote is skipped by some of them. A turn over
// instances has a barrier for each instance: all threads of that instance wait there, and all
// threads of the instance before it arrive there. Each instance takes and passes the turn
// alternately, so the one before arrives again only when the turn has gone round, and so after this
// wait has ended: no use of a barrier begins before the last one has ended (N2).
#include "compiler/verify/barriers.h"

enum { IDS = 16 };  // of a CTA (PTX ISA 9.0, 9.7.13.1); 0 is the whole CTA's

typedef struct Ids {
  Verify *v;
  Span user[IDS];
  bool used[IDS];
} Ids;

// Notes that the `n` barriers from `first` on belong to `name`. Reports one that has another owner.
static void claim(Ids *ids, Span span, const char *name, u32 first, u32 n) {
  Verify *v = ids->v;
  u32 end = v->k->named < IDS ? v->k->named : IDS;
  if (!first || first + n > end) {
    sc_bad_plan(v, PROOF_NAMED, span, "'%s' has the named barriers %u to %u, of 1 to %u", name,
                first, first + n - 1, end - 1);
    return;
  }
  for (u32 i = first; i < first + n; i++) {
    if (ids->used[i]) {
      Diag *d =
          sc_bad_plan(v, PROOF_NAMED, span, "the named barrier %u of '%s' has two uses", i, name);
      if (d) sc_note(v->sc, d, ids->user[i], "it is used here, too");
    }
    ids->used[i] = true;
    ids->user[i] = span;
  }
}

// ---- meetings of an instance's warps

static bool over_ctas(const Kernel *k, const Ins *ins) {
  return (ins->op == OP_TAKE || ins->op == OP_PASS) && k->turn.at[ins->arg[0]].axis != SC_NONE;
}

// Do the warps of an instance meet at a named barrier? (An instance of one warp has `__syncwarp`.)
static bool meets(Verify *v, const Role *r) {
  bool any = false;
  u32 votes = 0;
  for (u32 i = 0; i < r->code.n && r->warps > 1; i++) {
    const Ins *ins = &r->code.at[i];
    bool meet = ins->plan.sync || over_ctas(v->k, ins);
    if (meet && votes)
      sc_bad_plan(v, PROOF_NAMED, ins->span,
                  "the warps of '%s' would meet here, in a block that some of them leave out",
                  r->name);
    any |= meet;
    votes += ins->op == OP_VOTE && !(ins->flags & INS_TOGETHER);
    votes -= ins->op == OP_ENDVOTE && !(r->code.at[ins->nest].flags & INS_TOGETHER);
  }
  return any;
}

// ---- turns over instances

static void prove_turn(Ids *ids, u32 turn) {
  Verify *v = ids->v;
  const Kernel *k = v->k;
  const Turn *t = &k->turn.at[turn];
  u32 instances = 0, members = 0, warps = k->role.at[t->member[0]].warps;
  for (u32 i = 0; i < t->members; i++) {
    const Role *r = &k->role.at[t->member[i]];
    instances += r->instances;
    members |= 1u << t->member[i];
    if (t->active && r->warps != warps)
      sc_bad_plan(v, PROOF_NAMED, t->span,
                  "a barrier of '%s' counts %u threads, and an instance of '%s' has %u", t->name,
                  64 * warps, r->name, 32 * r->warps);
  }
  bool taken = false;
  for (u32 i = 0; i < k->role.n; i++) {
    bool does = sc_turn_brackets(v, i, turn).turns;
    taken |= does;
    if (does && !(members >> i & 1))
      sc_bad_plan(v, PROOF_NAMED, t->span, "'%s' takes '%s', and is no member", k->role.at[i].name,
                  t->name);
  }
  if (taken || t->active) claim(ids, t->span, t->name, t->barrier, instances);
}

void sc_prove_named(Verify *v) {
  const Kernel *k = v->k;
  Ids ids = {.v = v};
  for (u32 i = 0; i < k->turn.n; i++)
    if (k->turn.at[i].axis == SC_NONE) prove_turn(&ids, i);
  for (u32 i = 0; i < k->role.n; i++) {
    const Role *r = &k->role.at[i];
    if (meets(v, r)) claim(&ids, r->span, r->name, r->barrier, r->instances);
    sc_prove_together(v, i);
  }
}
