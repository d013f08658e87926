// report.c - reports the faults that the data flow finds: both ends of the conflict, what is
// missing, and what to do, in the schedule's own names.
#include "compiler/flow/flow.h"

bool sc_blame(Flow *f, bool *blamed) {
  bool first = f->report && !*blamed;
  *blamed |= f->report;
  return first;
}

static Span site(const Flow *f, u32 pc) { return f->r->code.at[pc].span; }

// The name of a buf in the schedule. That of a stage's part is "kv.k", or the ring's name if it has
// one part.
const char *sc_buf_name(const Flow *f, u32 buf) {
  const Buf *b = &f->k->buf.at[buf];
  if (b->space != SP_STAGE || b->ring == SC_NONE) return b->name;
  const Ring *r = &f->k->ring.at[b->ring];
  return r->parts > 1 ? sc_printf(f->sc, "%s.%s", r->name, b->name) : r->name;
}

static void note_flight(Flow *f, Diag *d, const Flight *x, const char *text) {
  sc_note(f->sc, d, site(f, x->site), "%s", text);
  if (x->also != x->site) sc_note(f->sc, d, site(f, x->also), "and from here");
}

// A def that is used twice, or a loop that is unrolled, stands in the text once: one report is
// enough.
static bool said(const Flow *f, DiagId id, Span at) {
  for (const Diag *d = f->sc->diags; d; d = d->next) {
    if (d->id == id && d->at.lo == at.lo && d->at.hi == at.hi) return true;
  }
  return false;
}

// One wait that is missing, or too early, is reported once, wherever its product is found in
// flight.
static bool noted(const Flow *f, DiagId id, Span at) {
  for (const Diag *d = f->sc->diags; d; d = d->next) {
    for (const Note *n = d->id == id ? d->notes : NULL; n; n = n->next)
      if (n->at.lo == at.lo && n->at.hi == at.hi) return true;
  }
  return false;
}

void sc_report_read(Flow *f, const ViewAccess *a, const Flight *x) {
  const char *name = sc_buf_name(f, x->dst);
  Span at = a->async ? site(f, f->pc) : f->k->view.at[a->view].span;
  if (said(f, D_R1_FLIGHT, at) || noted(f, D_R1_FLIGHT, site(f, x->site)) ||
      noted(f, D_R4_NOTHING, site(f, x->site)))
    return;
  Diag *d = sc_report(f->sc, D_R1_FLIGHT, at, "'%s' is %s while a product into it may be in flight",
                      name, a->write ? "overwritten" : "read");
  note_flight(f, d, x, "in flight from here");
  sc_help(f->sc, d, "'wait %s' before it", name);
}

void sc_report_operand(Flow *f, u32 tile, const Flight *x) {
  const char *name = sc_buf_name(f, tile), *to = sc_buf_name(f, x->dst);
  if (said(f, D_R2_OPERAND, site(f, f->pc))) return;
  Diag *d = sc_report(f->sc, D_R2_OPERAND, site(f, f->pc),
                      "'%s' is written while a product in flight may still read it", name);
  note_flight(f, d, x, sc_printf(f->sc, "the product into '%s' reads '%s' from here on", to, name));
  sc_help(f->sc, d, "'wait %s' before it", to);
}

// Who may overwrite a stage of the ring once it is free: "'load'", "'left' or 'right'".
static const char *refillers(const Flow *f, u32 ring) {
  const char *all = NULL;
  for (u32 r = 0; r < f->k->role.n; r++) {
    if (!(sc_ring_use(f->k, r, ring) & USE_FILL)) continue;
    const char *name = f->k->role.at[r].name;
    all = all ? sc_printf(f->sc, "%s or '%s'", all, name) : sc_printf(f->sc, "'%s'", name);
  }
  return all ? all : "the next fill";
}

// "'s' and 'o'": the tiles that a wait waits for.
static const char *names_waited(const Flow *f, const Ins *wait) {
  const u32 *list = &f->k->list.at[wait->arg[0]];
  const char *all = "";
  for (u32 i = 1; i <= list[0]; i++) {
    all = sc_printf(f->sc, "%s%s'%s'", all,
                    i == 1         ? ""
                    : i == list[0] ? " and "
                                   : ", ",
                    sc_buf_name(f, list[i]));
  }
  return all;
}

static bool multiplies_into(const Flow *f, u32 pc, Op op, u32 buf) {
  const Ins *i = &f->r->code.at[pc];
  return i->op == op && f->k->view.at[f->k->product.at[i->arg[0]].dst].buf == buf;
}

// The next product into a tile, or wait for one, from pc on; the end of the code: none.
static u32 next_about(const Flow *f, u32 pc, u32 buf) {
  for (; pc < f->r->code.n; pc++) {
    const Ins *i = &f->r->code.at[pc];
    if (multiplies_into(f, pc, OP_MMA, buf)) break;
    const u32 *list = i->op == OP_MMAWAIT ? &f->k->list.at[i->arg[0]] : NULL;
    u32 n = list ? list[0] : 0;
    while (n && list[n] != buf) n--;
    if (n) break;
  }
  return pc;
}

static bool issues(const Flow *f, u32 pc) {
  return pc < f->r->code.n && f->r->code.at[pc].op == OP_MMA;
}

// A product without `async` that a wait for `buf` was probably meant for: the last before the wait,
// else the first after it. The end of the code: there is none, or some product into `buf` has
// `async`.
static u32 without_async(const Flow *f, u32 buf) {
  u32 found = f->r->code.n;
  for (u32 pc = 0; pc < f->r->code.n; pc++) {
    if (multiplies_into(f, pc, OP_MMA, buf)) return f->r->code.n;
    bool before = pc < f->pc || found == f->r->code.n;
    if (before && multiplies_into(f, pc, OP_MMAWARP, buf)) found = pc;
  }
  return found;
}

static void report_no_async(Flow *f, const Ins *wait, const char *name, Span product) {
  Diag *d = sc_report(f->sc, D_R4_NOTHING, wait->span,
                      "there is nothing to wait for: the product into '%s' has no 'async'", name);
  sc_note(f->sc, d, product, "each warp does this by itself, and goes on when it is done");
  sc_help(f->sc, d, "'async' is probably missing before the product; else drop the wait");
}

void sc_report_nothing(Flow *f, const Ins *wait, u32 buf) {
  const char *name = sc_buf_name(f, buf);
  if (!sc_blame(f, &f->blamed_buf[buf])) return;
  u32 plain = wait->op == OP_MMAWAIT ? without_async(f, buf) : f->r->code.n;
  if (plain < f->r->code.n) {
    report_no_async(f, wait, name, site(f, plain));
    return;
  }
  Diag *d = sc_report(f->sc, D_R4_NOTHING, wait->span,
                      "there is nothing to wait for: '%s' is not in flight here", name);
  u32 next = wait->op == OP_MMAWAIT ? next_about(f, f->pc + 1, buf) : f->r->code.n;
  if (issues(f, next)) {
    u32 after = next_about(f, next + 1, buf);
    if (after == f->r->code.n || issues(f, after)) {
      sc_note(f->sc, d, site(f, next), "this product into '%s' is issued after it", name);
      sc_help(f->sc, d, "'wait %s' behind the product", name);
      return;
    }
  }
  bool issued = issues(f, next_about(f, 0, buf)) || issues(f, next);
  if (wait->op == OP_MMAWAIT && f->now->waited != SC_NONE && issued) {
    const Ins *last = &f->r->code.at[f->now->waited];
    sc_note(f->sc, d, last->span,
            "the last wait for products: besides %s it covers all that was issued before",
            names_waited(f, last));
  }
  Str flying = {.sc = f->sc};
  const Queue *q = &f->now->product;
  for (u32 i = 0; wait->op == OP_MMAWAIT && i < q->n; i++) {
    if (sc_flight_to(q, q->at[i].dst, 0) == i + 1)
      str_printf(&flying, "%s'%s'",
                 flying.n ? ", " : " (in flight: ", sc_buf_name(f, q->at[i].dst));
  }
  sc_help(f->sc, d, "drop the wait, or issue before it what it should wait for%s%s",
          flying.n ? flying.at : "", flying.n ? ")" : "");
}

// Notes the wait that came after the product's issue, and why it does not cover the product.
static void note_spared(Flow *f, Diag *d, const Flight *x, const char *to) {
  const Ins *wait = &f->r->code.at[x->spared];
  const u32 *list = &f->k->list.at[wait->arg[0]], keep = wait->arg[1];
  bool named = false;
  for (u32 i = 1; i <= list[0]; i++) named |= list[i] == x->dst;
  if (named && keep == 1)
    sc_note(f->sc, d, wait->span, "keeps the newest product into '%s' in flight: this one", to);
  else if (named && keep)
    sc_note(f->sc, d, wait->span, "keeps the %u newest products into '%s' in flight: this is one",
            keep, to);
  else
    sc_note(f->sc, d, wait->span, "covers %s, not this product into '%s'", names_waited(f, wait),
            to);
}

// How many products into the same tile were issued after this one: a wait for this one may keep
// them.
static u32 newer_flights(const Queue *q, const Flight *x) {
  u32 n = 0;
  for (const Flight *y = x + 1; y < q->at + q->n; y++) n += y->dst == x->dst;
  return n;
}

void sc_report_release(Flow *f, u32 ring, const Flight *x, bool copy) {
  const char *name = f->k->ring.at[ring].name, *to = sc_buf_name(f, x->dst);
  if (said(f, D_R3_RELEASE, site(f, f->pc))) return;
  Diag *d = sc_report(f->sc, D_R3_RELEASE, site(f, f->pc),
                      "a stage of '%s' is released to %s while a %s may still read it", name,
                      refillers(f, ring), copy ? "copy" : "product");
  note_flight(f, d, x,
              sc_printf(f->sc,
                        copy ? "reads '%s' on its way to '%s'; in flight from here"
                             : "reads '%s', writes '%s'; in flight from here",
                        name, to));
  if (!copy && x->spared != SC_NONE) note_spared(f, d, x, to);
  u32 newer = copy ? 0 : newer_flights(&f->now->product, x);
  const char *keep = newer ? sc_printf(f->sc, " keep %u", newer) : copy ? " read" : "";
  sc_help(f->sc, d, "'wait %s%s' before releasing '%s'", to, keep, name);
}

void sc_report_overwrite(Flow *f, const ViewAccess *a, const Flight *x, bool copy) {
  const View *v = &f->k->view.at[a->view];
  const char *name = sc_buf_name(f, v->buf), *to = sc_buf_name(f, x->dst);
  if (said(f, D_R3_OVERWRITE, v->span)) return;
  Diag *d = sc_report(f->sc, D_R3_OVERWRITE, v->span,
                      "a held stage of '%s' is written while a %s may still read it", name,
                      copy ? "copy out" : "product");
  note_flight(f, d, x, sc_printf(f->sc, "reads '%s'; in flight from here", name));
  sc_help(f->sc, d, copy ? "'wait %s read' before it" : "'wait %s' before it", to);
}

// ---- paths that disagree

typedef struct Join {
  DiagId product, ring, turn;
  const char *more, *less;  // where there is more, and where less: "at the end of the loop's body"
  Span at;                  // the loop or condition
  const char *label;
  const char *where;  // where to wait for a product: "before the loop ends, …"
  bool turned;        // `more` is the second state, `less` the first
} Join;

static u32 flights_to(const Queue *q, u32 dst) {
  u32 n = 0;
  for (u32 i = 0; i < q->n; i++) n += q->at[i].dst == dst;
  return n;
}

// The newest flight of `q` that goes where `other` has fewer; NULL: none.
static const Flight *surplus(const Queue *q, const Queue *other) {
  for (u32 i = q->n; i > 0; i--) {
    if (flights_to(q, q->at[i - 1].dst) > flights_to(other, q->at[i - 1].dst)) return &q->at[i - 1];
  }
  return NULL;
}

static void report_flight(Flow *f, const Flight *x, const Join *m, bool copy) {
  const char *name = sc_buf_name(f, x->dst);
  if (!sc_blame(f, &f->blamed_buf[x->dst])) return;
  Diag *d = sc_report(f->sc, m->product, site(f, x->site), "a %s '%s' is in flight %s, but not %s",
                      copy ? "copy out to" : "product into", name, m->more, m->less);
  sc_note(f->sc, d, m->at, "%s", m->label);
  sc_help(f->sc, d, "'wait %s%s' %s", name, copy ? " read" : "", m->where);
}

// The same tiles are in flight, but in another order or reading other stages.
static void report_order(Flow *f, const Queue *a, const Queue *b, const Join *m) {
  for (u32 i = 0; i < a->n && i < b->n; i++) {
    if (sc_same_flight(&a->at[i], &b->at[i])) continue;
    if (!sc_blame(f, &f->blamed_buf[a->at[i].dst])) return;
    Diag *d = sc_report(f->sc, m->product, site(f, a->at[i].site),
                        "what is in flight %s differs from what is in flight %s in its order, or "
                        "in the stages that it reads",
                        m->more, m->less);
    if (b->at[i].site != a->at[i].site)
      sc_note(f->sc, d, site(f, b->at[i].site), "the other's counterpart");
    sc_note(f->sc, d, m->at, "%s", m->label);
    sc_help(f->sc, d, "issue in the same order, and hold the same stages, on both paths");
    return;
  }
}

static void compare_queues(Flow *f, const Queue *a, const Queue *b, const Join *m, const Join *back,
                           bool copy) {
  const Flight *x = surplus(a, b), *y = surplus(b, a);
  if (x) report_flight(f, x, m, copy);
  if (y) report_flight(f, y, back, copy);
  if (!x && !y) report_order(f, a, b, m);
}

static void report_hold(Flow *f, u32 ring, const RingState *more, const RingState *less,
                        const Join *m) {
  const char *name = f->k->ring.at[ring].name;
  if (!sc_blame(f, &f->blamed_ring[ring])) return;
  Diag *d =
      sc_report(f->sc, m->ring, site(f, more->hold[more->held - 1].site),
                "%u stage%s of '%s' %s held %s, but %u %s", more->held, more->held == 1 ? "" : "s",
                name, more->held == 1 ? "is" : "are", m->more, less->held, m->less);
  sc_note(f->sc, d, m->at, "%s", m->label);
  if (m->turned && m->ring == D_R5_LOOP && less->gave)
    sc_note(f->sc, d, site(f, less->gave - 1), "the body gives one back here");
  if (m->ring == D_R5_BRANCH)
    sc_help(f->sc, d,
            "every path needs as many 'release %s' as 'wait %s': where one depends on a condition, "
            "so does the other",
            name, name);
  else if (m->turned)
    sc_help(f->sc, d,
            "the body gives back more than it takes: let 'release %s' follow the loop, or the body "
            "take as many by 'wait %s'",
            name, name);
  else
    sc_help(f->sc, d,
            "as many 'release %s' as 'wait %s' in the body: if each round keeps a stage, %s soon "
            "has none to fill",
            name, name, refillers(f, ring));
}

static void report_fill(Flow *f, u32 ring, const RingState *more, const Join *m) {
  const char *name = f->k->ring.at[ring].name;
  if (!sc_blame(f, &f->blamed_ring[ring])) return;
  Diag *d = sc_report(f->sc, m->ring, site(f, more->fill.site),
                      "a fill of '%s' is open %s, but not %s", name, m->more, m->less);
  sc_note(f->sc, d, m->at, "%s", m->label);
  sc_help(f->sc, d, "'commit %s' on every path", name);
}

static void report_turn(Flow *f, u32 turn, const TurnState *more, const Join *m) {
  const char *name = f->k->turn.at[turn].name;
  if (!sc_blame(f, &f->blamed_turn[turn])) return;
  Diag *d = sc_report(f->sc, m->turn, site(f, more->site), "the turn '%s' is held %s, but not %s",
                      name, m->more, m->less);
  sc_note(f->sc, d, m->at, "%s", m->label);
  sc_help(f->sc, d, "'acquire %s' and 'release %s' equally often on every path", name, name);
}

static void compare(Flow *f, const State *a, const State *b, const Join *m) {
  Join back = *m;
  back.more = m->less;
  back.less = m->more;
  back.turned = true;
  for (u32 r = 0; r < f->k->ring.n; r++) {
    const RingState *x = &a->ring[r], *y = &b->ring[r];
    if (x->held > y->held) report_hold(f, r, x, y, m);
    if (y->held > x->held) report_hold(f, r, y, x, &back);
    if (x->open && !y->open) report_fill(f, r, x, m);
    if (y->open && !x->open) report_fill(f, r, y, &back);
  }
  for (u32 t = 0; t < f->k->turn.n; t++) {
    const TurnState *x = &a->turn[t], *y = &b->turn[t];
    if (x->held && (!y->held || x->key != y->key)) report_turn(f, t, x, m);
    else if (y->held && !x->held) report_turn(f, t, y, &back);
  }
  compare_queues(f, &a->product, &b->product, m, &back, false);
  compare_queues(f, &a->copy, &b->copy, m, &back, true);
}

void sc_report_loop(Flow *f, const State *head, const State *end, Span loop) {
  Join m = {D_R4_LOOP,
            D_R5_LOOP,
            D_R5_LOOP,
            "at the end of the loop's body",
            "when the loop is entered",
            loop,
            "the loop",
            "before the body ends, or enter the loop with as many in flight",
            false};
  compare(f, end, head, &m);
}

void sc_report_branch(Flow *f, const State *yes, const State *no, Span at) {
  Join m = {D_R4_BRANCH,
            D_R5_BRANCH,
            D_R5_BRANCH,
            "if the condition is true",
            "if the condition is false",
            at,
            "the condition",
            "inside the branch, or issue as many on the other path",
            false};
  compare(f, yes, no, &m);
}

void sc_report_end(Flow *f, const State *end) {
  for (u32 i = 0; i < end->product.n; i++) {
    const Flight *x = &end->product.at[i];
    const char *name = sc_buf_name(f, x->dst);
    if (!sc_blame(f, &f->blamed_buf[x->dst])) continue;
    Diag *d = sc_report(f->sc, D_R4_UNWAITED, site(f, x->site),
                        "the product into '%s' is never waited for", name);
    sc_help(f->sc, d, "'wait %s', and release the stages that it reads, before the tile ends",
            name);
    for (u32 j = 0; j < 2; j++) {
      if (x->ref[j].ring != SC_NONE) sc_blame(f, &f->blamed_ring[x->ref[j].ring]);
    }
  }
  for (u32 r = 0; r < f->k->ring.n; r++) {
    const RingState *x = &end->ring[r];
    const char *name = f->k->ring.at[r].name;
    if (x->held && sc_blame(f, &f->blamed_ring[r])) {
      Diag *d = sc_report(f->sc, D_R5_UNRELEASED, site(f, x->hold[0].site),
                          "a stage of '%s' is still held when the tile ends", name);
      sc_help(f->sc, d, "'release %s' after its last use: who fills it waits for that", name);
    }
    if (x->open && sc_blame(f, &f->blamed_ring[r])) {
      Diag *d = sc_report(f->sc, D_R5_UNRELEASED, site(f, x->fill.site),
                          "a fill of '%s' is still open when the tile ends", name);
      sc_help(f->sc, d, "'commit %s': who reads it waits for that", name);
    }
  }
  for (u32 t = 0; t < f->k->turn.n; t++) {
    if (!end->turn[t].held || !sc_blame(f, &f->blamed_turn[t])) continue;
    const char *name = f->k->turn.at[t].name;
    Diag *d = sc_report(f->sc, D_R5_TURN, site(f, end->turn[t].site),
                        "the turn '%s' is still held when the tile ends", name);
    sc_help(f->sc, d, "'release %s': the next in turn waits for it", name);
  }
}
