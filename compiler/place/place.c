// place.c - R8: the addresses of stages and barriers in shared memory, the warps and registers of
// roles, named barriers; and whether all of it fits.
//
// In: a kernel with layouts and plans, without errors. Out: offsets and strides of rings and their
// parts, barrier addresses, first warps, named barriers, the estimate of live registers; totals in
// Kernel.
//
// A tile in a stage is stored as panels as wide as its swizzle, [panel][row][swizzle bytes]. It
// begins at a multiple of 1024 bytes (TMA and wgmma descriptors, PTX ISA 9.0). Vectors beside tiles
// therefore lie behind all stages of these: a vector in each stage would take 1024 bytes.
//
// Of a thread's registers, matrices may take all but 32, matrices and vectors together all but 24:
// beyond that ptxas 13.0 begins to spill, or to serialize products. tests/unit/place.c has kernels
// on both sides of the line.
#include "compiler/layout/layout.h"
#include "compiler/place/place.h"

enum { TILE_ALIGN = 1024, VECTOR_ALIGN = 128, HUGE_BYTES = 1 << 30 };

static u64 round_up(u64 n, u64 to) { return (n + to - 1) / to * to; }

// ---- shared memory

static u64 buf_bytes(const Buf *b) {
  u64 n = sc_elem[b->elem].bytes;
  for (u32 d = 0; d < b->rank; d++) {
    n *= (u64)b->ext[d];
    if (n > HUGE_BYTES) n = HUGE_BYTES;
  }
  return n;
}

static bool has_tile(const Kernel *k, const Ring *r) {
  for (u32 p = 0; p < r->parts; p++) {
    if (k->buf.at[r->part0 + p].rank > 1) return true;
  }
  return false;
}

static u32 huge_at_most(u64 n) { return (u32)(n < HUGE_BYTES ? n : HUGE_BYTES); }

// Lays out a ring's tiles, or its vectors: those of stage 0 begin at `first`. Returns how many
// bytes a stage of them takes.
static u32 place_parts(Kernel *k, const Ring *r, bool vectors, u64 first) {
  u64 at = 0, align = vectors ? VECTOR_ALIGN : TILE_ALIGN;
  for (u32 p = 0; p < r->parts; p++) {
    Buf *b = &k->buf.at[r->part0 + p];
    if ((b->rank < 2) != vectors) continue;
    b->offset = huge_at_most(first + at);
    at = huge_at_most(at + round_up(buf_bytes(b), align));
  }
  return (u32)at;
}

static void place_stages(Kernel *k, Ring *r) {
  r->vector_bytes = 0;
  r->stage_bytes = place_parts(k, r, !has_tile(k, r), 0);
  if (has_tile(k, r)) r->vector_bytes = place_parts(k, r, true, sc_vectors_at(k, r));
}

// Lays out all rings, and what a dynamic grid hands tiles on by; returns how many bytes they take.
static u64 lay_out_memory(Kernel *k) {
  u64 at = 0;
  for (u32 vectors = 0; vectors < 2; vectors++) {  // rings of vectors after those with tiles
    for (u32 i = 0; i < k->ring.n; i++) {
      Ring *r = &k->ring.at[i];
      if (has_tile(k, r) == vectors) continue;
      at = round_up(at, vectors ? VECTOR_ALIGN : TILE_ALIGN);
      r->offset = huge_at_most(at);
      place_stages(k, r);
      at = huge_at_most(at + sc_ring_bytes(k, r));
    }
  }
  for (u32 i = 0; i < k->ring.n; i++) {
    Ring *r = &k->ring.at[i];
    r->barrier = huge_at_most(at);
    at += sc_all_stages(k, r) * 16;
  }
  if (k->grid == GRID_DYNAMIC) {
    at = round_up(at, 16);
    k->draw = huge_at_most(at);
    at += 2 * sc_slot_bytes(k) + 4 * 8;
  }
  return at;
}

// What a stage fewer of the ring frees. It is laid out without that stage, and then as it was.
static u64 freed_by_a_stage(Kernel *k, Ring *r) {
  r->stages--;
  u64 without = lay_out_memory(k);
  r->stages++;
  return lay_out_memory(k) - without;
}

static void too_much_memory(Sc *sc, Kernel *k, u64 want) {
  Ring *most = NULL;
  for (u32 i = 0; i < k->ring.n; i++) {
    Ring *r = &k->ring.at[i];
    if (!most || sc_ring_bytes(k, r) > sc_ring_bytes(k, most)) most = r;
  }
  Diag *d = sc_report(sc, D_R8_SMEM, most ? most->span : k->span,
                      "the rings need %llu bytes of shared memory, but a CTA has %d",
                      (unsigned long long)want, SMEM_LIMIT);
  for (u32 i = 0; i < k->ring.n; i++) {
    const Ring *r = &k->ring.at[i];
    u32 n = sc_all_stages(k, r);
    sc_note(sc, d, r->span, "'%s': %u stage%s of %u bytes", r->name, n, n == 1 ? "" : "s",
            r->stage_bytes + r->vector_bytes);
  }
  if (most && most->stages > 1) {
    sc_help(sc, d, "%llu bytes too many: one stage fewer of '%s' frees %llu",
            (unsigned long long)(want - SMEM_LIMIT), most->name,
            (unsigned long long)freed_by_a_stage(k, most));
  } else {
    sc_help(sc, d, "%llu bytes too many: make the tiles smaller, beginning with '%s'",
            (unsigned long long)(want - SMEM_LIMIT), most ? most->name : "");
  }
}

static void place_memory(Sc *sc, Kernel *k) {
  u64 want = lay_out_memory(k);
  if (want > SMEM_LIMIT) too_much_memory(sc, k, want);
  k->smem = huge_at_most(want);
}

// ---- warps and registers

// Registers that each thread takes of the multiprocessor's at launch, by the launch bounds.
static u32 entry_regs(u32 threads) {
  u32 regs = REGS_LIMIT / threads / 8 * 8;
  return regs < SETMAXNREG_HI ? regs : SETMAXNREG_HI;
}

u32 sc_entry_registers(const Kernel *k) {
  u32 regs = k->threads ? entry_regs(k->threads) : 0;
  return regs < 255 ? regs : 255;
}

u32 sc_thread_registers(const Kernel *k, const Role *r) {
  return r->regs ? r->regs : sc_entry_registers(k);
}

typedef struct Group {  // a warpgroup of the CTA
  u32 role;             // the first role in it
  u32 warps;            // taken
} Group;

typedef VEC(Group) Groups;

static void regs_agree(Sc *sc, const Role *a, const Role *b) {
  if (a->regs == b->regs) return;
  Diag *d = sc_report(sc, D_R8_REGS, b->span,
                      "'%s' shares a warpgroup with '%s', but asks for another number of registers",
                      b->name, a->name);
  sc_note(sc, d, a->span, "roles of one warp are packed four to a warpgroup");
  sc_help(sc, d, "a warpgroup has one register count: say %u regs in both",
          a->regs > b->regs ? a->regs : b->regs);
}

static void place_role(Sc *sc, Kernel *k, u32 role, Groups *groups, u32 *pack) {
  Role *r = &k->role.at[role];
  u32 need = r->instances * r->warps;
  if (r->warps < 4 && *pack != SC_NONE && groups->at[*pack].warps + need <= 4) {
    Group *g = &groups->at[*pack];
    r->first_warp = (u16)(*pack * 4 + g->warps);
    g->warps += need;
    regs_agree(sc, &k->role.at[g->role], r);
    return;
  }
  r->first_warp = (u16)(groups->n * 4);
  for (u32 left = need; left; left -= left < 4 ? left : 4) {
    PUSH(sc, groups, ((Group){role, left < 4 ? left : 4}));
  }
  if (r->warps < 4 && need % 4) *pack = groups->n - 1;
}

static u32 regs_of(const Kernel *k, u32 role, u32 entry) {
  return k->role.at[role].regs ? k->role.at[role].regs : entry;
}

static void check_pool(Sc *sc, const Kernel *k, const Groups *groups, u32 entry) {
  u32 sum = 0, most = 0, of_most = 0, pool = entry * k->threads;
  bool said = false;
  for (u32 g = 0; g < groups->n; g++) {
    u32 role = groups->at[g].role;
    sum += 128 * regs_of(k, role, entry);
    said |= k->role.at[role].regs != 0;
    if (regs_of(k, role, entry) > regs_of(k, most, entry)) most = role;
  }
  if (!said || sum <= pool) return;
  const Role *r = &k->role.at[most];
  Diag *d = sc_report(sc, D_R8_REGS, r->span,
                      "the roles ask for %u registers, but a CTA of %u threads has %u", sum,
                      k->threads, pool);
  for (u32 g = 0; g < groups->n; g++) of_most += groups->at[g].role == most;
  for (u32 i = 0; i < k->role.n; i++) {
    const Role *o = &k->role.at[i];
    sc_note(sc, d, o->span, "'%s': %u x %u warp%s of %u registers a thread%s", o->name,
            o->instances, o->warps, o->warps == 1 ? "" : "s", regs_of(k, i, entry),
            o->warps < 4 ? ", in a warpgroup that counts whole" : "");
  }
  u32 rest = sum - of_most * 128 * regs_of(k, most, entry);
  u32 fits = rest < pool ? (pool - rest) / (of_most * 128) / 8 * 8 : 0;
  if (fits >= SETMAXNREG_LO) sc_help(sc, d, "%u registers for '%s' would fit", fits, r->name);
  else sc_help(sc, d, "use fewer warpgroups");
}

static void place_warps(Sc *sc, Kernel *k) {
  Groups groups = {0};
  u32 pack = SC_NONE;
  u64 warps = 0;
  for (u32 i = 0; i < k->role.n; i++) warps += (u64)k->role.at[i].instances * k->role.at[i].warps;
  if (warps * 32 <= THREADS_LIMIT) {
    for (u32 i = 0; i < k->role.n; i++) place_role(sc, k, i, &groups, &pack);
  }
  k->threads = groups.n * 128;
  if (warps * 32 > THREADS_LIMIT || k->threads > THREADS_LIMIT) {
    Diag *d = sc_report(sc, D_R8_THREADS, k->span,
                        "the roles take %llu threads, but a CTA has at most %d",
                        (unsigned long long)(k->threads ? k->threads : warps * 32), THREADS_LIMIT);
    for (u32 i = 0; i < k->role.n; i++) {
      const Role *r = &k->role.at[i];
      sc_note(sc, d, r->span, "'%s': %u x %u threads", r->name, r->instances, r->warps * 32);
    }
    sc_help(sc, d, "use fewer instances, or smaller tiles in more CTAs");
    return;
  }
  if (k->threads) check_pool(sc, k, &groups, entry_regs(k->threads));
}

static const char *tile_text(Sc *sc, const Buf *b) {
  const char *text = sc_printf(sc, "%s[", sc_elem[b->elem].text);
  for (u32 d = 0; d < b->rank; d++)
    text = sc_printf(sc, "%s%s%lld", text, d ? ", " : "", (long long)b->ext[d]);
  return sc_printf(sc, "%s]", text);
}

// The live tiles, largest first: what the reader has to choose from.
static void note_live(Sc *sc, const Kernel *k, Diag *d, const u64 *live) {
  u64 *left = NEWS(sc, u64, k->buf.n / 64 + 1);
  for (u32 w = 0; w <= k->buf.n / 64; w++) left[w] = live[w];
  for (u32 n = 0; n < 6; n++) {
    u32 most = SC_NONE;
    for (u32 i = 0; i < k->buf.n; i++) {
      if (!(left[i / 64] >> i % 64 & 1)) continue;
      if (most == SC_NONE || sc_tile_regs(k, &k->buf.at[i]) > sc_tile_regs(k, &k->buf.at[most]))
        most = i;
    }
    if (most == SC_NONE) return;
    const Buf *b = &k->buf.at[most];
    sc_note(sc, d, b->span, "'%s' : %s takes %u", b->name, tile_text(sc, b), sc_tile_regs(k, b));
    left[most / 64] &= ~((u64)1 << most % 64);
  }
}

// facts NULL: without what is in flight, which code that has not been checked yet may not say.
static void place_registers(Sc *sc, Kernel *k, Facts *facts) {
  for (u32 i = 0; i < k->role.n; i++) {
    Role *r = &k->role.at[i];
    Worst worst = sc_worst(sc, k, facts, i);
    u32 have = sc_thread_registers(k, r);
    r->live = (u16)(worst.all < UINT16_MAX ? worst.all : UINT16_MAX);
    if (worst.need <= have) continue;
    Diag *d = sc_report(sc, D_R8_LIVE, r->code.at[worst.pc].span,
                        "'%s' needs about %u registers a thread here, but has %u", r->name,
                        worst.need, have);
    note_live(sc, k, d, worst.live);
    sc_help(sc, d,
            "tiles take %u of them, and about %u are needed besides: make a tile smaller, let one "
            "die earlier, or ask for more 'regs'",
            worst.all, worst.need - worst.all);
  }
}

// ---- products

// The columns of one instruction: 256 at most, and no more than the registers at the start have
// room for. ptxas compiles all roles for these, whatever setmaxnreg asks for later, and refuses an
// instruction whose accumulator takes all but 30 of them.
static i64 product_cols(const Product *p, u32 entry) {
  enum { COLS = 256, FOR_OPERANDS = 30 };
  i64 most = entry < COLS / 2 + FOR_OPERANDS ? 2 * ((i64)entry - FOR_OPERANDS) : COLS;
  for (i64 parts = 1; parts <= p->n / 8; parts++)
    if (p->n % (8 * parts) == 0 && p->n / parts <= most) return p->n / parts;
  return p->n;
}

static void place_products(Kernel *k) {
  u32 entry = k->threads ? entry_regs(k->threads) : 0;
  for (u32 i = 0; i < k->product.n; i++)
    k->product.at[i].cols = product_cols(&k->product.at[i], entry);
}

// ---- named barriers: 0 for the CTA, one for each instance that takes a turn, one for each
// instance whose warps synchronize

static bool synchronizes(const Kernel *k, const Role *r) {
  for (u32 i = 0; i < r->code.n && r->warps > 1; i++) {
    const Ins *ins = &r->code.at[i];
    if (ins->plan.sync) return true;
    bool turn = ins->op == OP_TAKE || ins->op == OP_PASS;  // over CTAs: one thread asks, for all
    if (turn && k->turn.at[ins->arg[0]].axis != SC_NONE) return true;
  }
  return false;
}

static void place_named(Sc *sc, Kernel *k) {
  u32 id = 1;
  for (u32 i = 0; i < k->turn.n; i++) {
    Turn *t = &k->turn.at[i];
    if (!sc_turn_over_instances(t)) continue;
    t->barrier = id;
    id += sc_members(k, t);
  }
  for (u32 i = 0; i < k->role.n; i++) {
    Role *r = &k->role.at[i];
    r->barrier = 0;
    if (!synchronizes(k, r)) continue;
    r->barrier = (u16)id;
    id += r->instances;
  }
  k->named = id;
  if (id <= NAMED_LIMIT) return;
  Diag *d = sc_report(sc, D_R8_NAMED, k->span,
                      "the kernel needs %u named barriers, but a CTA has %d", id, NAMED_LIMIT);
  for (u32 i = 0; i < k->turn.n; i++) {
    const Turn *t = &k->turn.at[i];
    if (sc_turn_over_instances(t))
      sc_note(sc, d, t->span, "one for each instance that takes '%s'", t->name);
  }
  for (u32 i = 0; i < k->role.n; i++) {
    if (k->role.at[i].barrier)
      sc_note(sc, d, k->role.at[i].span, "one for each instance of '%s', whose warps synchronize",
              k->role.at[i].name);
  }
  sc_help(sc, d, "use fewer turns, or turns with fewer instances");
}

bool sc_place(Sc *sc, Kernel *k) {
  u32 before = sc->errors;
  place_memory(sc, k);
  place_warps(sc, k);
  place_products(k);
  place_named(sc, k);
  if (sc->errors == before) place_registers(sc, k, sc_facts(sc, k));
  return sc->errors == before;
}

bool sc_stages_fit(Sc *sc, Kernel *k) {
  u32 before = sc->errors;
  place_memory(sc, k);
  place_warps(sc, k);
  return sc->errors == before;
}

bool sc_tiles_fit(Sc *sc, Kernel *k) {
  u32 before = sc->errors;
  place_registers(sc, k, NULL);
  return sc->errors == before;
}
