// dealt.c - M5 for instances that take tiles in turn (`one tile each`), a part of the proof PHASES.
// In: a kernel. Out: nothing, if each of its waits is safe; else the report of a run in which one
// is not.
//
// A wait names a phase by its parity alone. So it may only be made when the phase before is known
// to be complete: otherwise it may end at once, as the phase two before has the same parity. A role
// that waits for every fill knows this from its own waits. An instance that takes every n-th tile
// skips the fills of other instances, and the last fill of the same stage may not be full yet when
// its tile begins. Its wait is safe if
//   - a stage is always the same instance's: each tile has n fills, and the stages are a multiple
//     of n times the instances; or
//   - all waits for the ring stand within one turn, taken and passed on once a tile: then the waits
//     of a tile come after those of the tile before;
//   - of acquires: from one fill of this instance to its next are no more fills than stages. The
//     last acquire waited for the release one round before that fill; stages are released in order,
//     so the release two rounds before the next fill, which is no later, is over;
//   - in a dynamic grid, the fill before on the same stage belongs to an earlier tile than the last
//     two: a tile is drawn when all roles have begun the second before it.
#include "compiler/verify/rounds.h"

#include <string.h>

enum { VARIES = -1, MANY = 1 << 20 };

// How often a block does `op` on the ring, or VARIES.
static i64 times(const Kernel *k, const Code *code, u32 from, u32 to, Op op, u32 ring) {
  i64 sum = 0;
  for (u32 pc = from; pc < to; pc++) {
    const Ins *ins = &code->at[pc];
    sum += ins->op == op && ins->arg[0] == ring;
    if (ins->op != OP_FOR && ins->op != OP_IF) continue;
    u32 mid = ins->nest, end = sc_closed_by(code, pc);
    i64 inside = times(k, code, pc + 1, mid, op, ring), first, last, n = 1;
    if (ins->op == OP_IF && inside != times(k, code, mid + 1, end, op, ring)) return VARIES;
    if (ins->op == OP_FOR && inside) {
      if (!x_const_int(k, ins->arg[1], &first) || !x_const_int(k, ins->arg[2], &last))
        return VARIES;
      n = last > first ? last - first : 0;
    }
    if (inside == VARIES || n > MANY || (sum += n * inside) > MANY) return VARIES;
    pc = end;
  }
  return sum;
}

static bool keeps_its_stages(const Kernel *k, const Role *r, Op op, u32 ring) {
  i64 n = times(k, &r->code, 1, r->code.n - 1, op, ring);
  return n > 0 && k->ring.at[ring].stages % (n * r->instances) == 0;
}

static bool released_before(const Kernel *k, const Role *r, Op op, u32 ring) {
  const Ring *of = &k->ring.at[ring];
  for (u32 i = 0; i < k->role.n; i++) {
    const Role *o = &k->role.at[i];
    if (of->drainers >> i & 1 && o->one_tile && o->instances > 1) return false;  // in no order
  }
  i64 n = times(k, &r->code, 1, r->code.n - 1, op, ring);
  return op == OP_ACQUIRE && n > 0 && (r->instances - 1) * n + 1 <= of->stages;
}

static bool drawn_after(const Kernel *k, const Role *r, Op op, u32 ring) {
  i64 n = times(k, &r->code, 1, r->code.n - 1, op, ring),
      tiles = r->instances < 3 ? r->instances : 3;
  return k->grid == GRID_DYNAMIC && n > 0 && k->ring.at[ring].stages >= tiles * n;
}

// Is the turn taken and passed on once a tile, and is `op` done on the ring only in between?
static bool within_turn(const Role *r, u32 turn, Op op, u32 ring) {
  u32 takes = 0, passes = 0, depth = 0;
  for (u32 pc = 1; pc + 1 < r->code.n; pc++) {
    const Ins *ins = &r->code.at[pc];
    depth += (sc_op[ins->op].effects & OPENS) != 0;
    depth -= (sc_op[ins->op].effects & CLOSES) != 0;
    bool of_turn = (ins->op == OP_TAKE || ins->op == OP_PASS) && ins->arg[0] == turn;
    if (of_turn && depth) return false;
    takes += of_turn && ins->op == OP_TAKE;
    passes += of_turn && ins->op == OP_PASS;
    if (ins->op == op && ins->arg[0] == ring && (takes != 1 || passes)) return false;
  }
  return takes == 1 && passes == 1;
}

static bool within_some_turn(const Kernel *k, const Role *r, Op op, u32 ring) {
  for (u32 i = 0; i < k->turn.n; i++) {
    const Turn *t = &k->turn.at[i];
    if (sc_turn_over_instances(t) && within_turn(r, i, op, ring)) return true;
  }
  return false;
}

// ---- the report of a wait that is not safe

// How many stages of the ring would be enough; 0: that is not known.
static i64 enough_stages(const Kernel *k, const Role *r, Op op, u32 ring) {
  i64 n = times(k, &r->code, 1, r->code.n - 1, op, ring);
  if (n <= 0) return 0;
  for (u32 i = 0; i < k->role.n && op == OP_ACQUIRE; i++)
    if (k->ring.at[ring].drainers >> i & 1 && k->role.at[i].one_tile) return n * r->instances;
  return op == OP_ACQUIRE ? n * (r->instances - 1) + 1 : n * r->instances;
}

static void help(Verify *v, const Mistake *m, Diag *d) {
  const Kernel *k = v->k;
  const Role *r = &k->role.at[m->waits.role];
  const char *ring = k->ring.at[m->ring].name;
  Op op = (Op)r->code.at[m->waits.pc].op;
  i64 enough = enough_stages(k, r, op, m->ring);
  sc_help(v->sc, d, "%s '%s' within a turn over '%s' that each tile takes and passes on once%s",
          op == OP_ACQUIRE ? "acquire" : "wait for", ring, r->name,
          enough ? sc_printf(v->sc, ", or give it %lld stages", (long long)enough) : "");
}

static void report(Verify *v, const Protocol *p, const Sample *s, const Mistake *m) {
  const Kernel *k = v->k;
  const Role *r = &k->role.at[m->waits.role];
  const Ring *ring = &k->ring.at[m->ring];
  const Ins *ins = &r->code.at[m->waits.pc];
  const char *what = ins->op == OP_ACQUIRE ? "release" : "fill";
  Diag *d = sc_report(
      v->sc, D_R6_DEALT, ins->span,
      "with %s instance %u of '%s' may take an older %s of '%s' for the one that it "
      "waits for here: nothing tells it that round %u of stage %u is over",
      sc_sample_text(v, s), m->waits.instance, r->name, what, ring->name, m->round, m->stage);
  if (m->ended) {
    const Role *other = &k->role.at[m->ends.role];
    Sample then = *s;
    memcpy(then.axis, m->ends.axis, sizeof then.axis);
    sc_note(v->sc, d, other->code.at[m->ends.pc].span, "'%s' ends that round here, in %s",
            other->name, sc_tile_text(v->sc, v->k, then.axis));
  }
  sc_note(v->sc, d, r->span, "its instances take the tiles in turn");
  sc_note(v->sc, d, ring->span, "and a stage is now one's and now another's");
  help(v, m, d);
  sc_note_command(v, p, s, d);
  sc_rejected(v, PROOF_PHASES);
}

static void not_proved(Verify *v, const Ins *ins) {
  const Protocol *p = sc_protocol(v, (Way){0}, sc_cluster(v->k));
  Sample *s = sc_sample(v);
  Mistake m;
  if (sc_find_mistake(v, p, s, &m)) report(v, p, s, &m);
  else
    sc_incomplete(v, PROOF_PHASES, ins->span,
                  "an instance may take an older %s of '%s' for the one that it waits for here; no "
                  "run that was tried shows it",
                  ins->op == OP_ACQUIRE ? "release" : "fill", v->k->ring.at[ins->arg[0]].name);
}

// Looks at each acquire and wait of the role. Nothing can go wrong in a plain grid, where a CTA has
// one tile, nor with a private ring, which each instance has for itself.
static void prove_role(Verify *v, u32 role) {
  const Kernel *k = v->k;
  const Role *r = &k->role.at[role];
  if (!r->one_tile || r->instances == 1 || k->grid == GRID_PLAIN) return;
  if (v->cert->proof[PROOF_PHASES].verdict == VERDICT_REJECTED) return;
  for (u32 pc = 0; pc < r->code.n; pc++) {
    const Ins *ins = &r->code.at[pc];
    if (ins->op != OP_WAIT && ins->op != OP_ACQUIRE) continue;
    if (k->ring.at[ins->arg[0]].owner != SC_NONE) continue;
    if (keeps_its_stages(k, r, (Op)ins->op, ins->arg[0])) continue;
    if (released_before(k, r, (Op)ins->op, ins->arg[0])) continue;
    if (drawn_after(k, r, (Op)ins->op, ins->arg[0])) continue;
    if (within_some_turn(k, r, (Op)ins->op, ins->arg[0])) continue;
    not_proved(v, ins);
    return;
  }
}

void sc_prove_dealt(Verify *v) {
  for (u32 i = 0; i < v->k->role.n; i++) prove_role(v, i);
}
