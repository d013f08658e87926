#!/usr/bin/env python3
"""Does a test notice when a prover is broken? As broken.py, for breakages of compiler/verify and of runtime/ptx: each is a
small edit, in a copy of the tree, and the experiment's 2 000 programs (experiment.md), the golden reports, the late
mistakes, the unusual schedules, races and the unit tests are tried on it until one fails.

  broken_verify.py [--table tests/broken_verify.md] [NAME …]
  broken_verify.py --fits

Some edits make the prover wrong, others make it weak: these only show where something that was proved no longer is.
"""
import argparse
import re
import sys
import tempfile

import broken
from broken import Breakage

V = "compiler/verify/"
P = "runtime/ptx/"
RACES = ["unit races", "races", "late", "bad", "unit handed", "unit pairs"]  # what is tried first
THREADS = ["unit verify", "bad", "unit damages"]
LATE = ["late", "unusual"]
PTX = ["unit ptx"]
BREAKAGES = [
    Breakage("a bound learnt is not carried on", V + "zone.c", "i32 to = sum(*at(z, a, i), (i32)c);",
             "i32 to = a == i ? (i32)c : ZONE_NONE;", LATE),
    Breakage("what just fits contradicts", V + "zone.c", "if (i == j || zone_implies(z, j, i, -c - 1))",
             "if (i == j || zone_implies(z, j, i, -c))", []),
    Breakage("at first all is equal", V + "zone.c", "*at(z, i, j) = i == j ? 0 : ZONE_NONE;", "*at(z, i, j) = 0;", []),
    Breakage("a shift moves upper bounds only", V + "zone.c", "*at(z, j, i) = sum(*at(z, j, i), (i32)-c);",
             "*at(z, j, i) = sum(*at(z, j, i), 0);", LATE),
    Breakage("a copy is not equal to what it is of", V + "zone.c", "*at(z, i, j) = *at(z, j, i) = 0;",
             "*at(z, i, j) = *at(z, j, i) = 1;", LATE),
    Breakage("widening tightens", V + "zone.c", "if (was < -most) *b = (i32)-most;",
             "if (was != ZONE_NONE && was > most / 2) *b = (i32)(most / 2);", LATE),
    Breakage("a zone lies within one that is smaller", V + "zone.c", "if (a->bound[i] > b->bound[i]) return false;",
             "if (a->bound[i] > b->bound[i] + 1) return false;", []),
    Breakage("any state is one that was met", V + "explore.c",
             "if (!memcmp(s->key, key, e->key_bytes) && zone_within(&e->symbolic.zone, &was)) return true;",
             "if (!memcmp(s->key, key, e->key_bytes)) return true;", []),
    Breakage("the second question of a condition counts as met", V + "explore.c",
             "bool moved = e->run.steps != e->resumed;", "bool moved = true;", []),
    Breakage("only one answer is explored", V + "explore.c", "for (u32 side = 0; side < 2; side++) PUSH",
             "for (u32 side = 0; side < 1; side++) PUSH", []),
    Breakage("the answer no is learnt as yes, one further", V + "explore.c",
             ": zone_learn(&m->zone, s.ask_j, s.ask_i, -s.ask_c - 1);",
             ": zone_learn(&m->zone, s.ask_j, s.ask_i, -s.ask_c);", LATE),
    Breakage("counts of a ring settle one apart", V + "explore.c",
             "for (u32 i = 0; i < ch->fills.n; i++) r->count[ch->fills.at[i]] -= low;",
             "for (u32 i = 0; i < ch->fills.n; i++) r->count[ch->fills.at[i]] = 0;", []),
    Breakage("only the first case of the remainders is proved", V + "explore.c",
             "e->symbolic.which < residues.cases && o == OUT_DONE", "e->symbolic.which < 1 && o == OUT_DONE", []),
    Breakage("an element is more than the least of its range", "compiler/facts/facts.c",
             "now = (Interval){p.lo, q.hi};", "now = (Interval){p.lo + 1, q.hi};", LATE),
    Breakage("an integer that has one value has none", "compiler/facts/facts.c",
             "if (a->told.lo > a->told.hi) contradict(f);", "if (a->told.lo >= a->told.hi) contradict(f);",
             ["unit facts_random"]),
    Breakage("at least the larger of two", "compiler/facts/path.c", "sc_form_extreme(f->facts, X_MAX, &a, &b)",
             "sc_form_extreme(f->facts, X_MIN, &a, &b)", ["bad", "unusual"]),
    Breakage("an index is never 0 where it divides", V + "divisors.c", "sc_fact_push(d->facts, FACT_SAID, &at);",
             "sc_fact_push(d->facts, FACT_SAID, &(Lin){-1, 1, {at.at[0]}});", ["bad"]),
    Breakage("a turn that a loop passes on is held in all its rounds", V + "handed.c",
             "if (of_turn(&code->at[j], turn)) return true;",
             "if (code->at[j].op == OP_TAKE && of_turn(&code->at[j], turn)) return true;", RACES),
    Breakage("what data choose is the same in both executions", V + "restate.c",
             "if (found(p->v->k, &e)) return", "if (false && found(p->v->k, &e)) return", RACES),
    Breakage("loops beyond those that are told apart are equal", V + "pair.c",
             "if (p->vars == PAIR_VARS) p->steps = 0;", "if (false) p->steps = 0;", RACES),
    Breakage("a turn over CTAs may be passed on with another key", V + "brackets.c",
             "if (!take && w->now.key != ins->arg[1])", "if (false && w->now.key != ins->arg[1])", LATE),
    Breakage("positions are the same in whatever dimension", V + "ghost.c",
             "same = !v->at[d].base == !w->at[d].base;", "same = v->buf == w->buf;", LATE),
    Breakage("a loop that runs backwards has an end that stays", V + "ghost.c",
             "&& !(m->p->k->expr.at[s->y].deps & DEP_LOOP);", "&& m != NULL;", LATE),
    Breakage("offsets of one list lie below those of another", V + "pair.c",
             "if (v->buf != w->buf || !(list->rising || p->supposes)) return;", "if (!(list->rising || p->supposes)) return;", RACES),
    Breakage("offsets rise that are not declared so", V + "pair.c", "!(list->rising || p->supposes)", "false", RACES),
    Breakage("a difference that is open is taken for no", V + "symbolic.c",
             "if (zone_implies(&m->zone, j, i, -c - 1)) return NO;", "if (zone_implies(&m->zone, j, i, -c)) return NO;", []),
    Breakage("less is taken for less or equal", V + "symbolic.c", "case X_LT: return less(m, process, e->a, e->b, 1);",
             "case X_LT: return less(m, process, e->a, e->b, 0);", []),
    Breakage("equal is taken for less or equal", V + "symbolic.c",
             "return below == YES ? less(m, process, b, a, 0) : below;", "(void)b; return below;", []),
    Breakage("unequal is taken for equal", V + "symbolic.c", "case X_NE: return inverse(equal(m, process, e->a, e->b));",
             "case X_NE: return equal(m, process, e->a, e->b);", []),
    Breakage("the smaller is taken for the larger", V + "symbolic.c", "*out = (first == YES) == smaller ? *a : *b;",
             "*out = (first == YES) == smaller ? *b : *a;", []),
    Breakage("a quotient's bound from above, rounded down", V + "symbolic.c", "sc_lin_add(&bound, &(Lin){.c = n - 1}, 1)",
             "sc_lin_add(&bound, &(Lin){.c = 0}, 1)", LATE),
    Breakage("a loop has one round less", V + "symbolic.c",
             ": sc_lin_add(&to, &count, -1) && sc_lin_add(&to, &one, -1);",
             ": sc_lin_add(&to, &count, -1) && sc_lin_add(&to, &one, -2);", []),
    Breakage("a reversed loop's variable is one further", V + "symbolic.c",
             "return sc_lin_add(out, &count, -1) && sc_lin_add(out, &one, -1) ? YES : UNKNOWN;",
             "return sc_lin_add(out, &count, -1) && sc_lin_add(out, &one, 0) ? YES : UNKNOWN;", []),
    Breakage("a loop's remainder goes round one late", V + "symbolic.c", "bool over = m->remainder[var] + 1 == m->modulus[var];",
             "bool over = m->remainder[var] == m->modulus[var];", LATE),
    Breakage("a ghost is any other's", V + "ghost.c", "if (g->loop[i] != of) continue;\n",
             "if (g->loop[i] != of) continue;\n    return true;\n", LATE),
    Breakage("a ghost is of another tensor", V + "ghost.c", "bool same = v->buf == w->buf && v->rank == w->rank;",
             "bool same = v->rank == w->rank;", LATE),
    Breakage("a ring has a stage more", V + "machine.c", ">= released + c->stages;", ">= released + c->stages + 1;", []),
    Breakage("a wait does not wait for the last filler", V + "machine.c",
             "return r->count[q->drain[s->ref]] >= least(r->count, c->fills.at, c->fills.n, 0);",
             "return r->count[q->drain[s->ref]] >= least(r->count, c->fills.at, 1, 0);", []),
    Breakage("an acquire waits for waits, not for releases", V + "machine.c",
             "u32 released = least(r->count, c->drains.at, c->drains.n, 1);",
             "u32 released = least(r->count, c->drains.at, c->drains.n, 0);", []),
    Breakage("a turn may be taken by anybody", V + "machine.c",
             "r->p->members[s->ref] && *token(r, q, s) != q->member[s->ref];", "0;", []),
    Breakage("at the end the counts of fills may differ", V + "machine.c",
             "if (r->count[c->fills.at[i]] != n) return true;", "if (r->count[c->fills.at[i]] > n) return true;", []),
    Breakage("at the end turns may have been taken unequally often", V + "machine.c",
             "if (n != UINT32_MAX && taken != n) return true;", "", []),
    Breakage("other branches are taken for the same", V + "script.c",
             "(jumps ? a->to - from_a == b->to - from_b : a->ref == b->ref)",
             "(jumps ? a->to - from_a == b->to - from_b : true)", []),
    Breakage("a loop that is read counts rounds", V + "script.c",
             "s.count = back ? COUNT_BACK : read ? COUNT_VALUE : w->way.count;",
             "s.count = back ? COUNT_BACK : read && s.depth ? COUNT_VALUE : w->way.count;", LATE),
    Breakage("what stands in an else is left out", V + "script.c", "if (mid != end) block(w, mid + 1, end);", "", []),
    Breakage("an other member's remainder", V + "residue.c", "whole = lcm(whole, o->div);", "whole = o->div;", LATE),
    # of races
    Breakage("loops are not renamed", V + "restate.c", "case X_LOOP: return fresh(p, side, OF_LOOP, e.ref);",
             "case X_LOOP: return x;", RACES),
    Breakage("instances are not renamed", V + "restate.c", "case X_INST: return fresh(p, side, OF_INST, e.ref);",
             "case X_INST: return x;", RACES),
    Breakage("elements are not renamed", V + "restate.c", "case X_IDX: return fresh(p, side, OF_INDEX, e.ref);",
             "case X_IDX: return x;", RACES),
    Breakage("a replay with a single filler", V + "replay.c",
             "if (r->full[ring].n[n] < parties(r, ring, OP_COMMIT)) {", "if (r->full[ring].n[n] < 1) {", RACES),
    Breakage("a replay with a single drainer", V + "replay.c",
             "if (h->n[n - stages] < parties(r, ring, OP_RELEASE)) return false;", "if (h->n[n - stages] < 1) return false;",
             RACES),
    Breakage("a replay without turns", V + "replay.c",
             "if (n) join(r, p->clock, r->passed[turn].clock[n - 1]);", "", RACES),
    Breakage("a copy's end is known to who waits for the one before", V + "replay.c",
             "if (d->landing != SC_NONE) return clock[d->landing] >= d->fill;",
             "if (d->landing != SC_NONE) return clock[d->landing] + 1 >= d->fill;", RACES),
    Breakage("as many fills are heard of as there are waits, and one more", V + "handed.c",
             "return least && taken && sc_fact_less(o->p->v->facts, least, taken);",
             "return least && taken && !sc_fact_less(o->p->v->facts, taken, least);", RACES),
    Breakage("a fill by copies hands over what comes after it", V + "handed.c",
             "if (ins->op == OP_ACQUIRE && ins->arg[0] == ring && ins->plan.arrivals) return OP_ACQUIRE;", "", RACES),
    Breakage("every member has the turn first", V + "handed.c", "if (from != to) return from < to;",
             "if (from != to) return true;", RACES),
    Breakage("an access is over at the next arrival", V + "touches.c",
             "if (ins->op == op && ins->arg[0] == ref) return false;",
             "if (ins->op == op && ins->arg[0] == ref) return true;", RACES),
    Breakage("what a copy out writes is there when its source has been read", V + "touches.c",
             "(!sc_access_writes(a) || !(wait->flags & INS_READ))", "true", RACES),
    Breakage("copies out of one role are in order", V + "touches.c",
             "return first->kind == ACCESS_PUT && second->kind == ACCESS_PUT;", "return false;", RACES),
    Breakage("what a copy in still reads may be overwritten", V + "touches.c",
             "if (first->kind == ACCESS_LOAD) return sc_access_writes(second);", "", RACES),
    Breakage("a copy out of a later round comes first", V + "lingers.c",
             "case FIRST_EARLIER: return !first;", "case FIRST_EARLIER: return true;", RACES),
    Breakage("a copy out that has been waited for once is never overtaken", V + "known.c",
             "changed |= grow_set(&into->stores, from->stores);", "", RACES),
    Breakage("sums of threads and of engines commute", V + "touches.c",
             "bool sums = a == b && (a == ACCESS_ADD || a == ACCESS_PUT_ADD);",
             "bool sums = (a == ACCESS_ADD || a == ACCESS_PUT_ADD) && b >= ACCESS_ADD;", RACES),
    Breakage("an access is compared with one other only", V + "race.c",
             "for (u32 j = next[from]; j < all.n; j = next[j + 1]) {", "for (u32 j = next[from]; j < all.n; j = all.n) {", RACES),
    Breakage("instances of a role never race for a stage", V + "race.c",
             "u32 from = stage && by_one(&v->k->role.at[a->role]) ? others : i;", "u32 from = stage ? others : i;", RACES),
    Breakage("a reversed loop has done one round more", V + "count.c",
             "return (Rounds){make(c, X_ADD, now, number(c, 1), 0), loop->arg[2]};", "return (Rounds){now, loop->arg[2]};",
             RACES),
    Breakage("two executions meet in the first tile only", V + "pair.c",
             "static const u8 all[] = {REL_LESS, REL_EQUAL, REL_MORE};", "static const u8 all[] = {REL_EQUAL};", RACES),
    Breakage("a quotient is never more in the first execution", V + "pair.c",
             "static const ExprOp order[] = {X_LT, X_EQ, X_LT};", "static const ExprOp order[] = {X_LT, X_EQ};", ["unit pairs"]),
    Breakage("executions are ordered if one is at the place before", V + "pair.c",
             "sc_pair_say(p, X_EQ, p->a_at[d], p->b_at[d]);", "sc_pair_say(p, X_LT, p->a_at[d], p->b_at[d]);", RACES),
    Breakage("instances of a role are one", V + "lingers.c",
             "if (p->var[i].op == X_INST) return p->var[i].relation == REL_EQUAL;", "if (p->var[i].op == X_INST) return true;",
             RACES),
    # of threads, phases, barriers and turns over CTAs
    Breakage("a wait ends one product more", V + "known.c", "if (*age != LANDED && *age >= keep) *age = LANDED;",
             "if (*age != LANDED && *age + 1u >= keep) *age = LANDED;", THREADS),
    Breakage("threads that have not met have", V + "known.c", "static void meet_at(Place *p) {",
             "static void meet_at(Place *p) {\n  p->raw = 0;", THREADS),
    Breakage("one lane speaks for what all have read", V + "arrive.c",
             "if (by == BY_ONE && s->at.apart)\n    want_all(", "if (0)\n    want_all(", THREADS),
    Breakage("a stage goes back to a copy unfenced", V + "arrive.c",
             "if (s->at.raw && filled_by_copies(t, ring)) want_fence(t, ins, name, false);", "", THREADS),
    Breakage("no warp stays behind", V + "arrive.c",
             "if (by == BY_ONE && !s->past && !t->warps_fill[ring]) may_be_behind(t, ins, s, name);", "", THREADS),
    Breakage("a stage is always the same instance's", V + "dealt.c",
             "k->ring.at[ring].stages % (n * r->instances) == 0;", "k->ring.at[ring].stages % n == 0;", THREADS),
    Breakage("a cluster's releases count once", V + "barriers.c", "if (r->multicast) empty *= sc_cluster(k);", "", THREADS),
    Breakage("warps meet though some have left", V + "named.c", "if (meet && votes)", "if (0)", THREADS),
    Breakage("warps vote together on what they do not know", V + "together.c", "!is_one_value(s, s->k->map.at[ins->arg[0]].root))", "false)", THREADS),
    Breakage("a round of the last kind may set its vector", V + "together.c", "return !set || side == SIDE_FIRST;", "return true;", THREADS),
    Breakage("registers are not added up", V + "resources.c", "if (sum > entry * k->threads)", "if (0)", THREADS),
    Breakage("a loop's end may grow from CTA to CTA", V + "ctaturns.c",
             "falls(t, sc_form(t->v->facts, loop->arg[2]), 1);", "true;", LATE),
    Breakage("a turn over CTAs is taken as often as there are loops around it", V + "ctaturns.c",
             "return take->arg[1] && differs(t, r, pc);", "return true;", []),
    Breakage("a key may be another loop's, too", V + "ctaturns.c",
             "ok && sc_lin_add(&more, &width, -1) && sc_form_nonneg(f, &more);", "ok && sc_form_nonneg(f, &more);", LATE),
    Breakage("a turn over CTAs orders what may be in one tile", V + "handed.c",
             "if (p->var[t->axis].relation == REL_ANY) return false;", "if (false) return false;", RACES),
    Breakage("dimensions that only a require reads have one value", V + "failure.c", "find_required(t, &b, matters);",
             "if (v == NULL) find_required(t, &b, matters);", ["bad"]),
    Breakage("an access on either side of an if is under the turn", V + "handed.c",
             "if (of_turn(ins, turn)) return depth || ins->op == OP_PASS ? SC_NONE : pc;",
             "if (of_turn(ins, turn)) return ins->op == OP_PASS ? SC_NONE : pc;", LATE),
    Breakage("a remainder says nothing of the quotient", V + "bounds.c",
             "bound_family(m, &m->residues->family[i], rest % m->residues->family[i].parts);", "", []),
    Breakage("a difference has nothing to do with its terms", V + "explore.c",
             "return can && sc_symbolic_tie(m);", "return can;", []),
    Breakage("a number says nothing of its quotients", V + "ties.c",
             "tie_difference(m, v, &x) && tie_to_number(m, v, &m->f->atom.at[m->value[i]]);", "tie_difference(m, v, &x);", []),
    Breakage("what a quotient says of its number is rounded down", V + "ties.c", "n * q_most + n - 1 - c", "n * q_most - c", LATE),
    Breakage("a copy out is over when a turn is taken behind it", V + "handed.c",
             "if (over_at(p, a, side, pc) && has_taken(", "if (has_taken(", LATE),
    Breakage("a turn that an if left out was taken", V + "handed.c",
             "bool takes = !depth && ins->op", "bool takes = ins->op", LATE),
    Breakage("CTAs of a cluster do the same", V + "protocol.c", "return differ ? sc_cluster(v->k) : 1;", "return 1;", []),
    Breakage("a third role has always heard of the first access", V + "handed.c",
             "ok = before(&link);", "ok = true;", []),
    Breakage("a stage is given back one release early", V + "handed.c",
             "const Channel drains = {OP_RELEASE, OP_ACQUIRE, ring, k->ring.at[ring].stages};",
             "const Channel drains = {OP_RELEASE, OP_ACQUIRE, ring, k->ring.at[ring].stages - 1};", []),
    # of the checker of built PTX
    Breakage("an event at another line is the same", P + "automaton.c",
             "if (w->line && e->line && w->line != e->line) return false;", "", PTX),
    Breakage("an event's numbers may be others", P + "automaton.c",
             "if (w->arg[i] != ARG_ANY && w->arg[i] != e->arg[i]) return false;", "", PTX),
    Breakage("a barrier of another ring will do", P + "automaton.c",
             "return e->at >= first && e->at < first + 8 * n && (e->at - first) % 8 == 0;", "return true;", PTX),
    Breakage("the barrier of any stage will do", P + "automaton.c",
             "if (unknown ? !a->focus.skips : e->at != due_at(a, step, place)) return false;", "(void)unknown, (void)place;", PTX),
    Breakage("an unknown stage is the due one", P + "automaton.c",
             "unknown ? !a->focus.skips : e->at", "unknown ? false : e->at", PTX),
    Breakage("any parity will do", P + "automaton.c",
             "parity == ARG_UNKNOWN ? a->focus.skips : parity == due_parity(a, step, place);", "true;", PTX),
    Breakage("a filler's first phase is the others'", P + "automaton.c",
             "return step->cursor == CURSOR_FILL ? !odd : odd;", "return odd;", PTX),
    Breakage("a commit moves no cursor", P + "operation.c", "  want_stage(p, ins->arg[0], CURSOR_FILL);\n", "", PTX),
    Breakage("a thread may end early", P + "match.c",
             "if (ends && !sc_ptx_may_end(&m->automaton, s.set)) differ(m, s.set, NULL, before);", "(void)ends;", PTX),
    Breakage("what is on no path is not missed", P + "match.c", "  find_missing(m);\n  for", "  for", PTX),
    Breakage("a loop may go round without its turn", P + "match.c",
             "if (back) sc_ptx_go_back(&m->automaton, m->back.set);", "sc_ptx_go_back(&m->automaton, m->back.set);", PTX),
    Breakage("a jump is not followed", P + "match.c", "if (ways & GOES_JUMP) go(m, at->jump,", "if (0) go(m, at->jump,", PTX),
    Breakage("a block is looked at once", P + "match.c",
             "if (m->followed ? covers(m, seen, s) : same(m, seen, s)) return false;",
             "if (i == 0 || (m->followed ? covers(m, seen, s) : same(m, seen, s))) return false;", PTX),
    Breakage("an attempt that nothing repeats is a wait", P + "spin.c",
             "at->jump = at->guard = SC_NONE;\n      else ins->event = EV_TRY;", "at->jump = at->guard = SC_NONE;", PTX),
    Breakage("a wait may end when it is not over", P + "spin.c",
             "wait->event == EV_LOOK ? compared : b->negated && b->guard == done->n;",
             "wait->event == EV_LOOK ? compared : b->guard == done->n;", PTX),
    Breakage("no code is dead", P + "dead.c",
             "for (u32 pc = from; pc <= end; pc++) s->dead[pc] = NEVER;", "(void)s, (void)from, (void)end;", PTX),
    Breakage("all lanes of a warp are to do what one does", P + "check.c",
             "return a / 32 == b / 32 && (a % 32 == 0) == (b % 32 == 0);", "return a / 32 == b / 32;", PTX),
    Breakage("only the first thread of a warp is looked at", P + "check.c",
             "if (same && t->as_before) continue;", "if (same) continue;", PTX),
]
STEPS = ["experiment", "bad", "late", "unusual", "races", "pairs",
         *("unit " + unit for unit in ("verdict", "deadlock", "races", "verify", "pairs", "handed", "damages", "flow", "facts",
                              "ptx"))]


class Tree(broken.Tree):
    def build(self, *targets):
        if targets:
            super().build(*targets)

    def step(self, step):
        if not step.startswith("unit "):
            self.build("experiment" if step == "experiment" else "schedc_cli")
        return super().step(step)

    def command(self, step):
        schedc = "build/release/schedc"
        commands = {"experiment": ["build/release/tests/experiment", "0", "2000", "-f"],
                    "bad": [sys.executable, "tests/bad/run.py", "--schedc", schedc]}
        if step in ("late", "unusual", "pairs"):
            return [sys.executable, f"tests/{step}.py", "--schedc", schedc]
        if step == "races":
            return [sys.executable, "tests/verify_races.py", "--schedc", schedc, "--own"]
        return commands.get(step) or super().command(step)


HEAD = """# The prover broken on purpose

Each is a small edit of a prover, or of the checker of built PTX, in a copy of the tree, and a test notices it:
`experiment`, by its 2 000 programs (`experiment.md`); `bad`, a golden report; `late`, `unusual`, `pairs`, schedules there;
`races`, `verify_races.py`; `unit`, a unit test. Others may notice, too: the first is named. Written by
`tests/broken_verify.py --table tests/broken_verify.md`. Where **nothing** stood, no test would: a gap.

| breakage | file | noticed by | what it says |
| --- | --- | --- | --- |
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table")
    parser.add_argument("--fits", action="store_true", help="only: is each breakage's text in its file, once?")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    chosen = [b for b in BREAKAGES if not args.names or any(name in b.title for name in args.names)]
    broken.check_edits(chosen)
    if args.fits:
        print(f"{len(chosen)} passed, 0 failed, 0 skipped")
        return 0
    rows, failed = [], 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(folder)
        for breakage in chosen:
            whole = broken.read(breakage.file)
            tree.write(breakage.file, whole.replace(breakage.old, breakage.new))
            steps = breakage.first + [s for s in STEPS if s not in breakage.first]
            step, said = next(((s, text) for s in steps if (text := tree.step(s))), (None, ""))
            tree.write(breakage.file, whole)
            rows.append((breakage, step, re.sub(r"^/\S*/tests/", "tests/", said).rstrip(": ")))
            failed += step is None
            print(f"{'ok  ' if step else 'FAIL'} {breakage.title}: {step or 'nothing notices'}: {rows[-1][2]}", flush=True)
        for step in sorted({step for _, step, _ in rows if step}):
            said = tree.step(step)
            failed += said is not None
            if said:
                print(f"FAIL unbroken: {step}: {said}", flush=True)
    if args.table:
        broken.write_table(args.table, rows, HEAD)
    print(f"{len(rows)} breakages\n{len(rows) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
