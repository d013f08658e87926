// step.c - how one operation changes the state of its role, and what must hold before it. After a
// fault the state goes on as if the schedule had been right (as if the product had been waited for,
// or the stage held), so that one mistake gives one report. In derive mode the operation's plan is
// written; otherwise it is compared with what the state asks for.
#include "compiler/flow/flow.h"

enum { MAX_KEEP = 7 };  // wgmma.wait_group N: the queue's counter has three bits

// ---- plans

static void want_keep(Flow *f, Ins *ins, u32 keep) {
  if (f->derive) {
    u32 most = ins->op == OP_MMAWAIT && keep > MAX_KEEP ? MAX_KEEP : keep;
    if (f->first || most < ins->plan.keep) ins->plan.keep = (u16)most;
  } else if (f->report && ins->plan.keep > keep) {
    Diag *d = sc_report(f->sc, D_R4_KEEP, ins->span,
                        "this wait lets %u groups stay in flight; it must not let more than %u",
                        ins->plan.keep, keep);
    sc_help(f->sc, d, "set 'keep' of its plan to %u", keep);
  }
}

// ---- faults

// No product may be writing the tile (R1).
static void want_landed(Flow *f, const ViewAccess *a) {
  u32 i = sc_flight_to(&f->now->product, f->k->view.at[a->view].buf, 0);
  if (!i) return;
  if (f->report) sc_report_read(f, a, &f->now->product.at[i - 1]);
  sc_fault_products(f, i);
}

// No product may be reading the tile as a register operand (R2).
static void want_free(Flow *f, u32 tile) {
  u32 i = sc_flight_operand(&f->now->product, tile);
  if (!i) return;
  if (f->report) sc_report_operand(f, tile, &f->now->product.at[i - 1]);
  sc_fault_products(f, i);
}

static void want_defined(Flow *f, const Ins *ins, const ViewAccess *a) {
  i64 ext[SC_MAX_VARS];
  sc_extents(f->k, ins, ext);
  const View *v = &f->k->view.at[a->view];
  u64 *have = &f->now->defined[v->buf], need = sc_columns(f->k, v, ext, false);
  if (!(need & ~*have)) return;
  if (sc_blame(f, &f->blamed_buf[v->buf])) {
    bool some = (*have & need) != 0;
    Diag *d = sc_report(f->sc, D_R1_UNDEFINED, a->async ? ins->span : v->span,
                        "'%s' is read before it is written%s", sc_buf_name(f, v->buf),
                        some ? " in every column" : " on every path");
    sc_note(f->sc, d, f->k->buf.at[v->buf].span, "declared here, without a value to start from");
    sc_help(f->sc, d, "give '%s' a value where it is declared ('= 0'), or write it before",
            sc_buf_name(f, v->buf));
  }
  *have |= need;
}

static void define(Flow *f, const Ins *ins, u32 view) {
  i64 ext[SC_MAX_VARS];
  sc_extents(f->k, ins, ext);
  const View *v = &f->k->view.at[view];
  bool sometimes = (ins->op == OP_MAP || ins->op == OP_MAPADD) && f->k->map.at[ins->arg[0]].cond;
  if (!sometimes) f->now->defined[v->buf] |= sc_columns(f->k, v, ext, true);
}

// The stage that a view names, held or open for filling; NULL after a fault that leaves none.
static Hold *stage_of(Flow *f, const Ins *ins, const ViewAccess *a) {
  const View *v = &f->k->view.at[a->view];
  u32 ring = f->k->buf.at[v->buf].ring;
  RingState *r = &f->now->ring[ring];
  const char *name = f->k->ring.at[ring].name;
  Span at = a->async && !a->write ? ins->span : v->span;
  if (v->fill) {
    if (!r->open) {
      if (sc_blame(f, &f->blamed_ring[ring])) {
        Diag *d = sc_report(f->sc, D_R5_FILL, at, "no fill of '%s' is open here", name);
        sc_help(f->sc, d, "put it between 'acquire %s' and 'commit %s'", name, name);
      }
      *r = (RingState){.held = r->held, .open = true, .fill.site = f->pc, .gave = r->gave};
    }
    return &r->fill;
  }
  if (!r->held) {
    if (sc_blame(f, &f->blamed_ring[ring])) {
      Diag *d = sc_report(f->sc, D_R5_HOLD, at, "no stage of '%s' is held here", name);
      if (r->open)
        sc_note(f->sc, d, f->r->code.at[r->fill.site].span,
                "a fill is open, which is not yet a stage to read");
      else if (r->gave)
        sc_note(f->sc, d, f->r->code.at[r->gave - 1].span,
                "the one held before was given back here");
      bool filler = sc_ring_use(f->k, (u32)(f->r - f->k->role.at), ring) & USE_FILL;
      if (!r->open && r->gave)
        sc_help(f->sc, d, "release it after its last use, or 'wait %s' for the next one", name);
      else if (a->write && filler && !r->open)
        sc_help(f->sc, d,
                "to fill a stage, 'acquire %s' before it and 'commit %s' after; to change one that "
                "is full, 'wait %s' before it",
                name, name, name);
      else
        sc_help(f->sc, d, "'wait %s' before it, and 'release %s' after its last use", name, name);
    }
    r->hold[r->held++] = (Hold){.site = f->pc};
  }
  return &r->hold[r->held - 1];
}

static Ref ref_of(Flow *f, u32 view) {
  const View *v = &f->k->view.at[view];
  const Buf *b = &f->k->buf.at[v->buf];
  if (b->space != SP_STAGE || v->fill || !f->now->ring[b->ring].held) return (Ref){SC_NONE, 0};
  return (Ref){b->ring, f->now->ring[b->ring].held - 1};
}

// ---- accesses by threads

// No product or copy out in flight may be reading a held stage that threads write (R3).
static void want_read(Flow *f, const ViewAccess *a) {
  const View *v = &f->k->view.at[a->view];
  u32 ring = f->k->buf.at[v->buf].ring, newest = f->now->ring[ring].held - 1;
  u32 i = sc_flight_reading(&f->now->product, ring, newest);
  if (i) {
    if (f->report) sc_report_overwrite(f, a, &f->now->product.at[i - 1], false);
    sc_fault_products(f, i);
  }
  i = sc_flight_reading(&f->now->copy, ring, newest);
  if (i) {
    if (f->report) sc_report_overwrite(f, a, &f->now->copy.at[i - 1], true);
    sc_retire_copies(f, i, false);
  }
}

// The bit for a part of a stage in a set of parts. Parts beyond the 64th are in no set.
static u64 part_bit(const Kernel *k, const Buf *b) {
  u32 part = (u32)(b - k->buf.at) - k->ring.at[b->ring].part0;
  return part < 64 ? (u64)1 << part : 0;
}

// While a copy into a part may be landing, until the stage is full, no thread may access the part,
// and no other copy may write it, as copies land in any order.
static void want_no_copy(Flow *f, const ViewAccess *a, const char *deed, Span at) {
  const Buf *b = &f->k->buf.at[f->k->view.at[a->view].buf];
  RingState *r = &f->now->ring[b->ring];
  if (!(r->landing & part_bit(f->k, b))) return;
  if (f->report) {
    Diag *d = sc_report(f->sc, D_R3_LANDING, at, "'%s' is %s while a copy into it may be landing",
                        sc_buf_name(f, (u32)(b - f->k->buf.at)), deed);
    sc_note(f->sc, d, f->r->code.at[r->copy].span, "copied into here");
    sc_help(f->sc, d,
            "fill this part by one copy or by assignments, not by both in one fill; what a copy "
            "brings is there after 'commit' and 'wait'");
  }
  r->landing &= ~part_bit(f->k, b);
}

// A copy may land before what threads stored to the same part: no fence is planned between the two.
static void want_no_store(Flow *f, const Buf *b, const Ins *ins) {
  RingState *r = &f->now->ring[b->ring];
  if (!(r->stored & part_bit(f->k, b))) return;
  if (f->report) {
    Diag *d = sc_report(f->sc, D_R3_LANDING, ins->span,
                        "'%s' is copied into in the same fill in which threads write it",
                        sc_buf_name(f, (u32)(b - f->k->buf.at)));
    sc_note(f->sc, d, f->r->code.at[r->store].span, "written here");
    sc_help(f->sc, d, "fill this part by one copy or by assignments, not by both in one fill");
  }
  r->stored &= ~part_bit(f->k, b);
}

static bool needs_sync(Flow *f, const Ins *ins, const ViewAccess *a) {
  const Unordered *d = &stage_of(f, ins, a)->unordered;
  if (!a->write) return d->set & UNSYNCED_WRITE;
  return (d->set & (UNSYNCED_READ | UNSYNCED_COPY)) ||
         ((d->set & UNSYNCED_WRITE) &&
          !sc_needs_no_sync(f->facts, f->k, &f->r->code, d->writer, (Touch){f->pc, a->view}));
}

static void note_store(Flow *f, const Buf *b) {
  RingState *r = &f->now->ring[b->ring];
  r->stored |= part_bit(f->k, b);
  r->store = f->pc;
}

static void touch_stage(Flow *f, const Ins *ins, const ViewAccess *a) {
  const View *v = &f->k->view.at[a->view];
  if (v->fill) want_no_copy(f, a, a->write ? "written" : "read", v->span);
  else if (a->write) want_read(f, a);
  Unordered *d = &stage_of(f, ins, a)->unordered;
  if (v->fill && a->write) note_store(f, &f->k->buf.at[v->buf]);
  if (!a->write) {
    d->set |= UNFENCED_READ | UNSYNCED_READ;
    return;
  }
  bool other = d->set & UNSYNCED_WRITE && d->writer.pc != f->pc;
  d->writer = other ? (Touch){SC_NONE, SC_NONE} : (Touch){f->pc, a->view};
  d->set |= UNFENCED_WRITE | UNSYNCED_WRITE;
}

static void step_threads(Flow *f, Ins *ins) {
  bool sync = false;
  for (u32 i = 0; i < ins->accesses; i++) {
    const ViewAccess *a = sc_view_access(f->k, ins, i);
    u8 space = f->k->buf.at[f->k->view.at[a->view].buf].space;
    if (space == SP_STAGE) sync |= needs_sync(f, ins, a);
    if (space == SP_TENSOR) sync |= sc_tensor_needs_sync(f, ins, a);
    sync |= f->now->elected && sc_others_matter(f, a);
  }
  sc_want_order(f, ins, sync ? NEED_SYNC : 0);
  for (u32 i = 0; i < ins->accesses; i++) {
    const ViewAccess *a = sc_view_access(f->k, ins, i);
    u32 buf = f->k->view.at[a->view].buf;
    switch (f->k->buf.at[buf].space) {
      case SP_STAGE: touch_stage(f, ins, a); break;
      case SP_REG:
        want_landed(f, a);
        if (!a->write) want_defined(f, ins, a);
        if (a->write) want_free(f, buf);
        if (a->write) define(f, ins, a->view);
        break;
      case SP_TENSOR: sc_touch_tensor(f, ins, a); break;
    }
  }
}

// ---- products

// What is needed before an engine reads a stage that this instance's threads may have written.
static u32 engine_reads(Flow *f, const Ins *ins, const ViewAccess *a) {
  u8 unordered = stage_of(f, ins, a)->unordered.set;
  bool unsynced = unordered & UNSYNCED_WRITE ||
                  (ins->op == OP_MMA && f->now->elected && sc_others_matter(f, a));
  return (unordered & UNFENCED_WRITE ? NEED_FENCE | NEED_SYNC : 0) | (unsynced ? NEED_SYNC : 0);
}

static u32 unseen_of(const Flow *f, const Ins *copy) {
  u32 set = copy->op == OP_COPYADD ? UNSEEN_ADD : UNSEEN_STORE;
  for (u32 t = 0; t < f->k->turn.n; t++) {
    if (f->now->turn[t].held && f->k->turn.at[t].axis != SC_NONE) set |= sc_unseen_turn(t);
  }
  return set;
}

static void fly(Flow *f, const Ins *ins, Queue *q, Flight flight, bool copy) {
  if (q->n == MAX_FLIGHT) {
    if (f->report) {
      Diag *d = sc_report(f->sc, D_R4_DEPTH, ins->span, "more than %d %s are in flight here",
                          MAX_FLIGHT, copy ? "copies out" : "products");
      sc_note(f->sc, d, f->r->code.at[q->at[0].site].span, "the oldest of them");
      sc_help(f->sc, d, "wait for the older ones first");
    }
    if (copy) sc_retire_copies(f, q->n, false);
    else sc_fault_products(f, q->n);
  }
  q->at[q->n++] = flight;
}

static void step_product(Flow *f, Ins *ins) {
  const Kernel *k = f->k;
  const Product *p = &k->product.at[ins->arg[0]];
  ViewAccess a = {p->a, false, true}, b = {p->b, false, true}, dst = {p->dst, true, true};
  u32 tile = k->view.at[p->dst].buf, left = k->view.at[p->a].buf, need = 0;
  Flight flight = {f->pc, f->pc, tile, SC_NONE, {{SC_NONE, 0}, {SC_NONE, 0}}, 0, SC_NONE};
  if (k->buf.at[left].space == SP_REG) {
    want_landed(f, &a);
    want_defined(f, ins, &a);
    flight.operand = left;
  } else {
    need |= engine_reads(f, ins, &a);
  }
  need |= engine_reads(f, ins, &b);
  if (p->acc && !sc_flight_to(&f->now->product, tile, 0)) want_defined(f, ins, &dst);
  if (!p->acc) want_landed(f, &dst);
  want_free(f, tile);
  sc_want_order(f, ins, need);
  flight.ref[0] = ref_of(f, p->a);
  flight.ref[1] = ref_of(f, p->b);
  define(f, ins, p->dst);
  fly(f, ins, &f->now->product, flight, false);
}

static void step_product_wait(Flow *f, Ins *ins) {
  Queue *q = &f->now->product;
  const u32 *list = &f->k->list.at[ins->arg[0]];
  u32 done = 0;
  bool any = false;
  for (u32 i = 1; i <= list[0]; i++) {
    u32 at = sc_flight_to(q, list[i], ins->arg[1]);
    bool flies = at || sc_flight_to(q, list[i], 0);
    if (!flies) sc_report_nothing(f, ins, list[i]);
    any |= flies;
    if (at > done) done = at;
  }
  want_keep(f, ins, q->n - done);
  sc_retire_products(f, done);
  if (!any) return;
  for (u32 i = 0; i < q->n; i++) q->at[i].spared = f->pc;
  f->now->waited = f->pc;
}

// ---- copies

static void step_copy_in(Flow *f, Ins *ins) {
  ViewAccess to = {ins->arg[0], true, true};
  const View *v = &f->k->view.at[ins->arg[0]];
  const Buf *b = &f->k->buf.at[v->buf];
  RingState *r = &f->now->ring[b->ring];
  sc_want_order(f, ins, sc_copy_tensor(f, ins));
  stage_of(f, ins, &to);
  want_no_copy(f, &to, "copied into", ins->span);
  want_no_store(f, b, ins);
  r->landing |= part_bit(f->k, b);
  r->copy = f->pc;
}

static void step_copy_out(Flow *f, Ins *ins) {
  ViewAccess from = {ins->arg[1], false, true};
  u32 need = engine_reads(f, ins, &from);
  sc_want_order(f, ins, need | sc_copy_tensor(f, ins));
  Flight flight = {f->pc,
                   f->pc,
                   f->k->view.at[ins->arg[0]].buf,
                   SC_NONE,
                   {ref_of(f, ins->arg[1]), {SC_NONE, 0}},
                   unseen_of(f, ins),
                   SC_NONE};
  fly(f, ins, &f->now->copy, flight, true);
}

// Copies whose source has been read leave the queue. All of them are older than those that remain
// in it, so a full wait that finds no copy in the queue waits for all that have left it.
static void step_copy_wait(Flow *f, Ins *ins) {
  Queue *q = &f->now->copy;
  u32 tensor = ins->arg[0], done = sc_flight_to(q, tensor, ins->arg[1]);
  bool read = ins->flags & INS_READ;
  if (!sc_flight_to(q, tensor, 0) && (read || !f->now->unseen[tensor]))
    sc_report_nothing(f, ins, tensor);
  want_keep(f, ins, q->n - done);
  sc_note_copies(f->now, f->k, done, !read);
  sc_retire_copies(f, done, !read);
  for (u32 i = 0; i < f->k->buf.n && !read; i++) f->now->unseen[i] = 0;
}

void sc_step(Flow *f, Ins *ins) {
  switch ((Op)ins->op) {
    case OP_ACQUIRE: sc_step_acquire(f, ins); break;
    case OP_COPYIN: step_copy_in(f, ins); break;
    case OP_COMMIT: sc_step_commit(f, ins); break;
    case OP_WAIT: sc_step_wait(f, ins); break;
    case OP_RELEASE: sc_step_release(f, ins); break;
    case OP_MMA: step_product(f, ins); break;
    case OP_MMAWAIT: step_product_wait(f, ins); break;
    case OP_MMAWARP:
    case OP_MAP:
    case OP_MAPADD:
    case OP_VOTE: step_threads(f, ins); break;
    case OP_COPYOUT:
    case OP_COPYADD: step_copy_out(f, ins); break;
    case OP_COPYWAIT: step_copy_wait(f, ins); break;
    case OP_TAKE: sc_step_take(f, ins); break;
    case OP_PASS: sc_step_pass(f, ins); break;
    case OP_TILE:
    case OP_ENDTILE:
    case OP_FOR:
    case OP_ENDFOR:
    case OP_IF:
    case OP_ELSE:
    case OP_ENDIF:
    case OP_ENDVOTE:
    case OP_COUNT: break;
  }
}
