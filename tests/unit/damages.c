// Tests of the proofs ARRIVALS, NAMED, THREADS, PHASES and MEMORY: of each kernel of schedules/ and
// tests/corpus/ one number or flag of the plan or of the places is damaged at a time: then there
// must be an I.plan. What survives is listed, with the reason why it does no harm.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiler/layout/layout.h"
#include "everykernel.h"
#include "spared.h"

// ---- damages

// Each makes one change and returns true, or finds nothing to change.
typedef struct Damage {
  const char *name;
  bool (*ins)(const Role *r, Ins *ins);
  bool (*ring)(Ring *r);
  bool (*turn)(Turn *t);
  bool (*role)(Role *r);
  bool (*buf)(Buf *b);
  bool (*kernel)(Kernel *k);
  bool (*code)(Kernel *k, u32 role, u32 pc);
  // Why it may survive, or NULL: the damaged kernel is asked.
  const char *(*harmless)(const Kernel *k);
} Damage;

static bool more_bytes(const Role *r, Ins *ins) {
  (void)r;
  if (ins->op != OP_ACQUIRE || !ins->plan.bytes) return false;
  ins->plan.bytes += 16;
  return true;
}

static bool fewer_bytes(const Role *r, Ins *ins) {
  (void)r;
  if (ins->op != OP_ACQUIRE || !ins->plan.bytes) return false;
  ins->plan.bytes -= 16;
  return true;
}

static bool other_arrivals(const Role *r, Ins *ins) {
  if (ins->op != OP_COMMIT && ins->op != OP_RELEASE) return false;
  if (!ins->plan.arrivals || r->warps == 1) return false;
  ins->plan.arrivals = ins->plan.arrivals == 1 ? r->warps : 1;
  return true;
}

static bool no_arrival(const Role *r, Ins *ins) {
  (void)r;
  if (!ins->plan.arrivals) return false;
  ins->plan.arrivals = 0;
  return true;
}

static bool one_more_arrival(const Role *r, Ins *ins) {
  (void)r;
  if (ins->op != OP_ACQUIRE && ins->op != OP_COMMIT && ins->op != OP_RELEASE) return false;
  ins->plan.arrivals++;
  return true;
}

static bool no_sync(const Role *r, Ins *ins) {
  (void)r;
  bool had = ins->plan.sync;
  ins->plan.sync = false;
  return had;
}

static bool no_fence(const Role *r, Ins *ins) {
  (void)r;
  bool had = ins->plan.fence;
  ins->plan.fence = ins->plan.global = false;
  return had;
}

static bool not_global(const Role *r, Ins *ins) {
  (void)r;
  bool had = ins->plan.global;
  ins->plan.global = false;
  return had;
}

static bool keep_more(const Role *r, Ins *ins) {
  (void)r;
  if (ins->op != OP_MMAWAIT && ins->op != OP_COPYWAIT) return false;
  ins->plan.keep++;
  return true;
}

static bool keep_many(const Role *r, Ins *ins) {
  (void)r;
  if (ins->op != OP_MMAWAIT) return false;
  ins->plan.keep = 8;
  return true;
}

// As if the wait were not there.
static bool no_product_wait(const Role *r, Ins *ins) {
  (void)r;
  if (ins->op != OP_MMAWAIT) return false;
  ins->plan.keep = 7;
  return true;
}

static bool no_copy_wait(const Role *r, Ins *ins) {
  (void)r;
  if (ins->op != OP_COPYWAIT) return false;
  ins->plan.keep = 100;
  return true;
}

static bool only_read(const Role *r, Ins *ins) {
  (void)r;
  if (ins->op != OP_COPYWAIT || ins->flags & INS_READ) return false;
  ins->flags |= INS_READ;
  return true;
}

static bool full_more(Ring *r) { return r->full_count++, true; }
static bool full_less(Ring *r) { return r->full_count--, true; }
static bool empty_more(Ring *r) { return r->empty_count++, true; }
static bool empty_less(Ring *r) { return r->empty_count--, true; }

static bool turn_next(Turn *t) {
  bool has = t->active && t->axis == SC_NONE;
  t->barrier += has;
  return has;
}
static bool turn_none(Turn *t) {
  bool has = t->active && t->axis == SC_NONE;
  if (has) t->barrier = 0;
  return has;
}
static bool role_barrier_less(Role *r) { return r->barrier && r->barrier--; }
static bool role_barrier_far(Role *r) { return r->barrier && (r->barrier += 16); }
static bool role_barrier_none(Role *r) {
  bool has = r->barrier;
  r->barrier = 0;
  return has;
}

static bool stages_on(Ring *r) { return r->offset += 128, true; }
static bool stages_back(Ring *r) { return r->offset && (r->offset -= 128, true); }
static bool stages_first(Ring *r) {
  bool has = r->offset;
  r->offset = 0;
  return has;
}
static bool stages_closer(Ring *r) { return r->stage_bytes -= 128, true; }
static bool vectors_closer(Ring *r) { return r->vector_bytes && (r->vector_bytes -= 128, true); }
static bool barriers_on(Ring *r) { return r->barrier += 8, true; }
static bool barriers_back(Ring *r) { return r->barrier -= 8, true; }
static bool barriers_crooked(Ring *r) { return r->barrier -= 4, true; }
static bool part_on(Buf *b) {
  bool has = b->space == SP_STAGE;
  if (has) b->offset += 128;
  return has;
}
static bool part_back(Buf *b) {
  bool has = b->space == SP_STAGE && b->offset;
  if (has) b->offset -= 128;
  return has;
}
static bool less_memory(Kernel *k) { return k->ring.n && (k->smem -= 8, true); }
static bool fewer_threads(Kernel *k) { return k->threads -= 128, true; }
static bool slots_back(Kernel *k) { return k->grid == GRID_DYNAMIC && (k->draw -= 16, true); }
static bool warps_on(Role *r) { return r->first_warp += r->warps, true; }
static bool warps_back(Role *r) { return r->first_warp && (r->first_warp -= r->warps, true); }
static bool more_regs(Role *r) { return r->regs && (r->regs += 8, true); }
static bool odd_regs(Role *r) { return r->regs && (r->regs -= 4, true); }

// All releases (or commits) of a ring by a role, from one on: another number of arrivals, of which
// the barrier knows. (Without that ARRIVALS alone would notice.)
static bool all_arrive(Kernel *k, u32 role, u32 pc, Op op, u16 arrivals) {
  Role *r = &k->role.at[role];
  Ins *first = &r->code.at[pc];
  if (first->op != op || r->warps == 1 || !first->plan.arrivals || first->plan.arrivals == arrivals)
    return false;
  Ring *ring = &k->ring.at[first->arg[0]];
  for (u32 i = 0; i < r->code.n; i++) {
    Ins *ins = &r->code.at[i];
    if (ins->op != op || ins->arg[0] != first->arg[0]) continue;
    if (i < pc) return false;  // done with the first
    ins->plan.arrivals = arrivals;
  }
  u32 n = r->one_tile || ring->owner != SC_NONE ? 1 : r->instances, more = (arrivals - 1) * n,
      less = (arrivals == 1 ? r->warps - 1 : 0) * n;
  if (op == OP_COMMIT) ring->full_count += more - less;
  else ring->empty_count += (more - less) * (ring->multicast ? sc_cluster(k) : 1);
  return true;
}

static bool one_releases(Kernel *k, u32 role, u32 pc) {
  return all_arrive(k, role, pc, OP_RELEASE, 1);
}
static bool one_commits(Kernel *k, u32 role, u32 pc) {
  return all_arrive(k, role, pc, OP_COMMIT, 1);
}
static bool warps_commit(Kernel *k, u32 role, u32 pc) {
  return all_arrive(k, role, pc, OP_COMMIT, k->role.at[role].warps);
}

// The arrival of a fill is made with its bytes, when its copies are issued.
static bool early(Kernel *k, u32 role, u32 pc) {
  Role *r = &k->role.at[role];
  Ins *acquire = &r->code.at[pc];
  if (acquire->op != OP_ACQUIRE || acquire->plan.arrivals || !acquire->plan.bytes) return false;
  for (u32 i = pc; i < r->code.n; i++) {
    Ins *ins = &r->code.at[i];
    if (ins->op != OP_COMMIT || ins->arg[0] != acquire->arg[0]) continue;
    if (ins->plan.arrivals != 1) return false;
    ins->plan.arrivals = 0;
    acquire->plan.arrivals = 1;
    return true;
  }
  return false;
}

static bool one_part_twice(Kernel *k, u32 role, u32 pc) {
  Ins *copy = &k->role.at[role].code.at[pc];
  if (copy[0].op != OP_COPYIN || copy[1].op != OP_COPYIN || copy[0].arg[0] == copy[1].arg[0])
    return false;
  const Buf *a = &k->buf.at[k->view.at[copy[0].arg[0]].buf],
            *b = &k->buf.at[k->view.at[copy[1].arg[0]].buf];
  copy[1].arg[0] = copy[0].arg[0];
  return a->ring == b->ring;
}

static bool late_sync(Kernel *k, u32 role, u32 pc) {
  Ins *ins = &k->role.at[role].code.at[pc];
  if (!ins->plan.sync) return false;
  ins[0].plan.sync = false;
  ins[1].plan.sync = true;
  return true;
}

// Some warps leave out a vote's block.
static bool sync_in_vote(Kernel *k, u32 role, u32 pc) {
  Role *r = &k->role.at[role];
  u32 before = pc;
  while (before > 0 && r->code.at[before - 1].op != OP_VOTE) {
    if (r->code.at[--before].op == OP_ENDVOTE) return false;
  }
  if (!before || r->warps == 1 || r->code.at[before - 1].flags & INS_TOGETHER) return false;
  r->code.at[pc].plan.sync = true;
  return true;
}

// A vote that belongs to the other kind of a loop's rounds.
static bool other_side(Kernel *k, u32 role, u32 pc) {
  Ins *ins = &k->role.at[role].code.at[pc];
  if (ins->op != OP_VOTE || !ins->plan.side) return false;
  ins->plan.side = SIDE_FIRST + SIDE_LAST - ins->plan.side;
  return true;
}

// A loop that is split and should not be, or the other way round.
static bool wrong_split(Kernel *k, u32 role, u32 pc) {
  Ins *ins = &k->role.at[role].code.at[pc];
  if (ins->op != OP_FOR) return false;
  ins->plan.side = SIDE_FIRST - ins->plan.side;
  return true;
}

// A loop that is not split, split by all its votes that could tell its rounds apart.
static bool split_anyway(Kernel *k, u32 role, u32 pc) {
  Ins *at = k->role.at[role].code.at, *loop = &at[pc];
  bool any = false;
  if (loop->op != OP_FOR || loop->plan.side) return false;
  for (Ins *ins = loop + 1; ins < at + loop->nest; ins++) {
    if (ins->op != OP_VOTE || !(ins->flags & INS_TOGETHER)) continue;
    u8 asks = k->expr.at[k->map.at[ins->arg[0]].root].op;
    if (asks != X_EQ && asks != X_NE) continue;
    ins->plan.side = asks == X_EQ ? SIDE_FIRST : SIDE_LAST;
    any = true;
  }
  loop->plan.side = any;
  return any;
}

static bool late_fence(Kernel *k, u32 role, u32 pc) {
  Ins *ins = &k->role.at[role].code.at[pc];
  if (!ins->plan.fence) return false;
  ins[1].plan.global |= ins[0].plan.global;
  ins[0].plan.fence = ins[0].plan.global = false;
  ins[1].plan.fence = true;
  return true;
}

// ---- why some do no harm

static const char *warps_are_free(const Kernel *k) {
  u32 used = 0;
  for (u32 r = 0; r < k->role.n; r++) {
    const Role *role = &k->role.at[r];
    for (u32 w = role->first_warp; w < role->first_warp + role->instances * role->warps; w++) {
      if (used >> w & 1) return NULL;
      used |= 1u << w;
    }
  }
  return "nobody has the warps";
}

static const char *registers_suffice(const Kernel *k) {
  u32 of[8] = {0}, groups = k->threads / 128, entry = 65536 / k->threads / 8 * 8, sum = 0;
  for (u32 r = 0; r < k->role.n; r++) {
    const Role *role = &k->role.at[r];
    for (u32 w = role->first_warp; w < role->first_warp + role->instances * role->warps; w++) {
      if (of[w / 4] && of[w / 4] != role->regs) return NULL;
      of[w / 4] = role->regs;
    }
  }
  for (u32 g = 0; g < groups; g++) sum += of[g] ? of[g] : entry;
  return sum <= 256 * groups && sum <= entry * groups ? "the CTA has the registers" : NULL;
}

// A statement that changes a stage in place moves elements to other lanes on their way.
static bool hands_on(Kernel *k) {
  static Map all[256];
  if (k->map.n > COUNT(all)) return false;
  k->map.at = memcpy(all, k->map.at, k->map.n * sizeof *all);
  for (Map *m = all; m < all + k->map.n; m++) {
    bool to = m->dst != SC_NONE && k->buf.at[k->view.at[m->dst].buf].space != SP_REG;
    if (!to || !m->held || m->move != MOVE_ELEMS) continue;
    m->move = MOVE_FRAGMENT;
    if (!sc_one_thread_writes(k, m)) return true;
    m->move = MOVE_ELEMS;
  }
  return false;
}

static const Damage damages[] = {
    {"16 bytes more", more_bytes},
    {"16 bytes less", fewer_bytes},
    {"arrivals 1 <-> warps", other_arrivals},
    {"no arrival", no_arrival},
    {"an arrival more", one_more_arrival},
    {"no sync", no_sync},
    {"no fence", no_fence},
    {"no fence of global memory", not_global},
    {"a group more stays in flight", keep_more},
    {"8 groups stay in flight", keep_many},
    {"no wait for products", no_product_wait},
    {"no wait for copies", no_copy_wait},
    {"only the source is waited for", only_read},
    {"one thread releases", .code = one_releases},
    {"one thread commits", .code = one_commits},
    {"each warp commits", .code = warps_commit},
    {"an arrival with the bytes", .code = early},
    {"two copies into one part", .code = one_part_twice},
    {"a sync one operation later", .code = late_sync},
    {"a sync in a vote's block", .code = sync_in_vote},
    {"the other kind of rounds", .code = other_side},
    {"a loop split wrongly", .code = wrong_split},
    {"a loop split though it may not be", .code = split_anyway},
    {"a fence one operation later", .code = late_fence},
    {"full count + 1", .ring = full_more},
    {"full count - 1", .ring = full_less},
    {"empty count + 1", .ring = empty_more},
    {"empty count - 1", .ring = empty_less},
    {"a turn's barriers + 1", .turn = turn_next},
    {"a turn without barriers", .turn = turn_none},
    {"a role's barriers - 1", .role = role_barrier_less},
    {"a role's barriers + 16", .role = role_barrier_far},
    {"a role without barriers", .role = role_barrier_none},
    {"stages + 128 bytes", .ring = stages_on},
    {"stages - 128 bytes", .ring = stages_back},
    {"stages at 0", .ring = stages_first},
    {"a stage's bytes - 128", .ring = stages_closer},
    {"a stage's vectors - 128 bytes", .ring = vectors_closer},
    {"barriers + 8 bytes", .ring = barriers_on},
    {"barriers - 8 bytes", .ring = barriers_back},
    {"barriers - 4 bytes", .ring = barriers_crooked},
    {"a part + 128 bytes", .buf = part_on},
    {"a part - 128 bytes", .buf = part_back},
    {"shared memory - 8 bytes", .kernel = less_memory},
    {"slots - 16 bytes", .kernel = slots_back},
    {"a warpgroup less", .kernel = fewer_threads},
    {"elements change hands in place", .kernel = hands_on},
    {"warps further on", .role = warps_on, .harmless = warps_are_free},
    {"warps further back", .role = warps_back, .harmless = warps_are_free},
    {"8 registers more", .role = more_regs, .harmless = registers_suffice},
    {"4 registers less", .role = odd_regs},
};

typedef struct Toll {
  u32 done, harmless, survived, spared[COUNT(spared)];
} Toll;

static bool is_spared(const Kernel *k, const Damage *d, Toll *toll) {
  for (u32 i = 0; i < COUNT(spared); i++) {
    if (strcmp(spared[i].kernel, k->name) || strcmp(spared[i].damage, d->name)) continue;
    toll->spared[i]++;
    return true;
  }
  return false;
}

// After a damage to what is at `span`.
static void judge(Sc *sc, Kernel *k, const Damage *d, Span span, Toll *toll) {
  forget_reports(sc);
  prove(sc, k);
  toll->done++;
  if (sc->errors) {
    assert_string_equal(sc_diag_code(sc->diags->id), "I.plan");
  } else if ((d->harmless && d->harmless(k)) || is_spared(k, d, toll)) {
    toll->harmless++;
  } else {
    toll->survived++;
    LineCol at = sc_line_col(sc->text, span.lo);
    print_message("%s:%u: %s survives\n", sc->text->name, at.line, d->name);
  }
  forget_reports(sc);
}

// Each place of a list that it fits, one after the other.
#define EACH(Type, what, list, ...)                            \
  for (u32 i = 0; d->what && i < (list).n; i++) {              \
    Type *at = &(list).at[i], whole = *at;                     \
    if (d->what(__VA_ARGS__)) judge(sc, k, d, at->span, toll); \
    *at = whole;                                               \
  }

static void damage_code(Sc *sc, Kernel *k, u32 role, const Damage *d, Toll *toll) {
  Code *code = &k->role.at[role].code;
  Ins *whole = malloc(code->n * sizeof *whole);
  Ring *rings = malloc((k->ring.n + 1) * sizeof *rings);
  memcpy(whole, code->at, code->n * sizeof *whole);
  if (k->ring.n) memcpy(rings, k->ring.at, k->ring.n * sizeof *rings);
  for (u32 pc = 0; pc < code->n; pc++) {
    if (d->code(k, role, pc)) judge(sc, k, d, code->at[pc].span, toll);
    memcpy(code->at, whole, code->n * sizeof *whole);
    if (k->ring.n) memcpy(k->ring.at, rings, k->ring.n * sizeof *rings);
  }
  free(whole);
  free(rings);
}

static void damage(Sc *sc, Kernel *k, const Damage *d, Toll *toll) {
  for (u32 r = 0; r < k->role.n; r++) {
    const Role *role = &k->role.at[r];
    EACH(Ins, ins, role->code, role, at)
    if (d->code) damage_code(sc, k, r, d, toll);
  }
  EACH(Ring, ring, k->ring, at)
  EACH(Turn, turn, k->turn, at)
  EACH(Role, role, k->role, at)
  EACH(Buf, buf, k->buf, at)
  Kernel whole = *k;
  if (d->kernel && d->kernel(k)) judge(sc, k, d, k->span, toll);
  *k = whole;
}

static void damage_one(Sc *sc, Kernel *k, void *toll) {
  for (u32 i = 0; i < COUNT(damages); i++) damage(sc, k, &damages[i], toll);
}

// With sanitizers a part will do: they look at memory, and a build without them at every damage.
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { SANITIZED = true };
#else
enum { SANITIZED = false };
#endif

static void all_damages_show(void **state) {
  (void)state;
  Toll toll = {0};
  with_folder("tests/corpus", damage_one, &toll, false);
  if (!SANITIZED) with_folder("schedules", damage_one, &toll, false);
  if (!SANITIZED) with_folder("tests/unusual", damage_one, &toll, false);
  print_message("%u damages, %u do no harm, %u survive\n", toll.done, toll.harmless, toll.survived);
  assert_true(toll.done >= 1000);
  assert_int_equal(toll.survived, 0);
  for (u32 i = 0; i < COUNT(spared) && !SANITIZED; i++)
    assert_int_equal(toll.spared[i], spared[i].places);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_damages_show)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
