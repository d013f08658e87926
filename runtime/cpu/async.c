// async.c - work that outlives the operation that starts it. At issue its destination turns to
// poison and the access is recorded; it lands at issue (policy early), when a wait can do no longer
// without it (late), or at a moment drawn from the seed (random). Products of an instance finish in
// order, and so do its copies out; copies in land in any order.
#include "runtime/cpu/machine.h"

#include <string.h>

static void swap(Reg *r) {
  float *now = r->at;
  r->at = r->aside;
  r->aside = now;
}

// ---- landing

static void finish_product(Event *e) {
  Inst *in = e->by;
  Reg *dst = &in->reg[e->dst];
  const Buf *b = &in->env.k->buf.at[in->env.k->view.at[e->view].buf];
  float *c = (dst->flying ? dst->aside : dst->at) + e->dst_at;
  const float *a = e->a_reg == SC_NONE ? e->a : in->reg[e->a_reg].at + e->a_at;
  sc_multiply(in->m->p, in->m->scratch, c, e->crow, e->ccol, a, e->arow, e->ak, e->b, e->bcol,
              e->bk, e->m, e->n, e->k, e->acc);
  if (b->elem != EL_F32)
    sc_round_all((Elem)b->elem, dst->flying ? dst->aside : dst->at, in->m->p->elems[e->dst]);
  if (dst->flying && --dst->flying == 0) swap(dst);
  in->mma_done = e->group;
}

static void finish(Slot *s, Event *e) {
  if (e->kind == EV_PRODUCT) {
    finish_product(e);
  } else if (e->kind == EV_OUT) {
    sc_slice(e->by, e, e->add ? TRANSFER_ADD : TRANSFER_OUT);
    e->by->out_done = e->group;
  } else {
    sc_slice(e->by, e, TRANSFER_IN);
    const Buf *b = &e->by->env.k->buf.at[e->part->buf];
    u64 row = e->part->elems / (u64)b->ext[0];
    u32 known = --e->part->flying ? 0 : e->value;
    sc_land(s, e->full, (i64)((u64)(e->row1 - e->row0) * row * sc_elem[b->elem].bytes),
            e->part->word, known);
  }
}

static void land(Slot *s, u32 at) {
  Event e = s->event[at];
  s->events--;
  memmove(&s->event[at], &s->event[at + 1], (s->events - at) * sizeof *s->event);
  finish(s, &e);
}

static bool first_of_its_kind(const Slot *s, u32 at) {
  const Event *e = &s->event[at];
  if (e->kind == EV_COPY) return true;
  for (u32 i = 0; i < at; i++) {
    if (s->event[i].kind == e->kind && s->event[i].by == e->by) return false;
  }
  return true;
}

// Is some instance stopped at a wait that this event serves?
static bool needed(const Slot *s, const Event *e) {
  for (u32 i = 0; i < s->insts; i++) {
    const Inst *in = &s->inst[i];
    if (in->done) continue;
    const Ins *op = &in->of->code.at[in->pc];
    if (op->op == OP_MMAWAIT && e->kind == EV_PRODUCT && e->by == in) return true;
    if (op->op == OP_COPYWAIT && e->kind == EV_OUT && e->by == in) return true;
    if (op->op == OP_WAIT && e->kind == EV_COPY &&
        e->full == &sc_stage(in, op->arg[0], in->ring[op->arg[0]].waited)->full) {
      return true;
    }
  }
  return false;
}

bool sc_fire_needed(Slot *s) {
  for (u32 i = 0; i < s->events; i++) {
    if (!needed(s, &s->event[i])) continue;
    land(s, i);
    return true;
  }
  if (!s->events) return false;
  land(s, 0);
  return true;
}

void sc_fire_random(Machine *m, Slot *s) {
  if (!s->events) return;
  u32 at = (u32)(sc_random(&m->rng) % s->events);
  if (first_of_its_kind(s, at)) land(s, at);
}

void sc_fire_all(Slot *s) {
  while (s->events) land(s, 0);
}

static void issue(Inst *in, const Event *e) {
  Slot *s = in->slot;
  if (in->m->p->opt->policy == SCHEDC_EARLY) {
    Event now = *e;
    finish(s, &now);
    return;
  }
  if (s->events == EVENTS) land(s, 0);
  s->event[s->events++] = *e;
}

// ---- copies in

static void evaluate(Inst *in, u32 view, Event *e) {
  const View *v = &in->env.k->view.at[view];
  e->view = view;
  for (u32 d = 0; d < v->rank; d++)
    e->base[d] = v->at[d].base ? env_int(&in->env, v->at[d].base) : 0;
}

// The rows [row0, row1) of the copy into one CTA's stage.
static bool copy_to(Inst *in, Event *e, Stage *stage, u32 part, u32 fill, u32 stages) {
  const Buf *b = &in->env.k->buf.at[stage->part[part].buf];
  Part *p = &stage->part[part];
  u64 row = p->elems / (u64)b->ext[0];
  e->part = p;
  e->full = &stage->full;
  e->value = fill / stages + 1;
  bool clean = p->clean;
  Rect at = {{e->row0, 0}, {e->row1, b->rank > 1 ? (i64)row : 1}};
  if (!sc_access(in, p, A_COPY, p->word, e->value, at)) return false;
  if (!clean) sc_poison((Elem)b->elem, p->at + (u64)e->row0 * row, (u64)(e->row1 - e->row0) * row);
  p->flying++;
  issue(in, e);
  return true;
}

bool sc_issue_copy(Inst *in, const Ins *i) {
  const Kernel *k = in->env.k;
  const View *to = &k->view.at[i->arg[0]];
  const Buf *b = &k->buf.at[to->buf];
  const Ring *r = &k->ring.at[b->ring];
  const Cursor *c = &in->ring[b->ring];
  if (c->filled == c->committed) {
    return sc_fault(in, D_X_HELD, sc_here(in), "no stage of '%s' is being filled here", r->name);
  }
  Event e = {.kind = EV_COPY, .by = in, .pc = in->at, .row1 = b->ext[0]};
  evaluate(in, i->arg[1], &e);
  u32 fill = c->filled - 1, part = to->buf - r->part0, ctas = in->m->p->grid.ctas;
  bool shares = i->flags & INS_MULTICAST && ctas > 1;
  Stage *mine = sc_stage(in, b->ring, fill);
  e.part = &mine->part[part];
  if (shares) {
    e.row0 = b->ext[0] * in->cta->rank / ctas;
    e.row1 = b->ext[0] * (in->cta->rank + 1) / ctas;
  }
  if (!sc_touch_slice(in, &e, G_LOAD, e.part->word, fill / r->stages + 1)) return false;
  if (!shares) return copy_to(in, &e, mine, part, fill, r->stages);
  for (u32 n = 0; n < ctas; n++) {
    Event one = e;
    Stage *its = sc_stage_of(in, &in->slot->cta[n], b->ring, fill);
    if (!copy_to(in, &one, its, part, fill, r->stages)) return false;
  }
  return true;
}

// ---- products

static bool product_spots(Inst *in, const Product *p, Spot *dst, Spot *a, Spot *b) {
  const Kernel *k = in->env.k;
  i64 ext[3] = {p->m, p->n, p->k};
  return sc_spot(in, &k->view.at[p->dst], ext, 3, dst) &&
         sc_spot(in, &k->view.at[p->a], ext, 3, a) && sc_spot(in, &k->view.at[p->b], ext, 3, b);
}

static bool in_flight(Inst *in, u32 view, u32 pc, const char *what) {
  const Buf *b = &in->env.k->buf.at[in->env.k->view.at[view].buf];
  sc_fault(in, D_X_FLIGHT, sc_here(in), "'%s' is in flight: %s", b->name, what);
  sc_fault_note(in, in->of->code.at[pc].span, "issued here");
  sc_fault_help(in, "'wait' for the product first");
  return false;
}

// Accumulators and register operands may be touched only by products that add to the same tile.
static bool registers_free(Inst *in, const Product *p, const Spot *dst, const Spot *a,
                           bool asynchronous) {
  u32 waited = in->mma_waited;
  if (dst->reg->written > waited && !(p->acc && asynchronous)) {
    return in_flight(in, p->dst, dst->reg->write_pc, "a product into it has not been waited for");
  }
  if (dst->reg->read > waited) {
    return in_flight(in, p->dst, dst->reg->read_pc,
                     "a product that reads it has not been waited for");
  }
  if (a->reg && a->reg->written > waited) {
    return in_flight(in, p->a, a->reg->write_pc, "a product into it has not been waited for");
  }
  return true;
}

static bool record(Inst *in, const Spot *s, AccessKind kind, u32 value) {
  u32 word = in->id * C_INST + (kind == A_MMA ? C_MMA : C_TIME);
  return !s->part || sc_access(in, s->part, kind, word, value, s->rect);
}

bool sc_issue_product(Inst *in, const Product *p) {
  const Kernel *k = in->env.k;
  Spot dst, a, b;
  if (!product_spots(in, p, &dst, &a, &b) || !registers_free(in, p, &dst, &a, true)) return false;
  u32 group = ++in->mma_issued;
  if (!record(in, &a, A_MMA, group) || !record(in, &b, A_MMA, group)) return false;
  Event e = {.kind = EV_PRODUCT,
             .by = in,
             .pc = in->at,
             .group = group,
             .view = p->dst,
             .acc = p->acc,
             .dst = k->view.at[p->dst].buf,
             .a_reg = a.reg ? k->view.at[p->a].buf : SC_NONE,
             .a = a.at,
             .b = b.at,
             .dst_at = dst.at - dst.reg->at,
             .crow = dst.stride[0],
             .ccol = dst.stride[1],
             .a_at = a.reg ? a.at - a.reg->at : 0,
             .arow = a.stride[0],
             .ak = a.stride[2],
             .bcol = b.stride[1],
             .bk = b.stride[2],
             .m = p->m,
             .n = p->n,
             .k = p->k};
  dst.reg->written = group;
  dst.reg->write_pc = in->at;
  if (a.reg) {
    a.reg->read = group;
    a.reg->read_pc = in->at;
  }
  if (in->m->p->opt->policy != SCHEDC_EARLY && dst.reg->flying++ == 0) {
    swap(dst.reg);
    sc_poison((Elem)k->buf.at[e.dst].elem, dst.reg->at, dst.count);
  }
  issue(in, &e);
  return true;
}

bool sc_warp_product(Inst *in, const Product *p) {
  Spot dst, a, b;
  if (!product_spots(in, p, &dst, &a, &b) || !registers_free(in, p, &dst, &a, false)) return false;
  if (!record(in, &a, A_READ, in->now) || !record(in, &b, A_READ, in->now)) return false;
  const Buf *to = &in->env.k->buf.at[in->env.k->view.at[p->dst].buf];
  i64 row0 = in->row1 ? in->row0 : 0, row1 = in->row1 && in->row1 < p->m ? in->row1 : p->m;
  float *c = dst.at + row0 * dst.stride[0];
  sc_multiply(in->m->p, in->m->scratch, c, dst.stride[0], dst.stride[1], a.at + row0 * a.stride[0],
              a.stride[0], a.stride[2], b.at, b.stride[1], b.stride[2], row1 - row0, p->n, p->k,
              p->acc);
  if (to->elem != EL_F32) sc_round_all((Elem)to->elem, dst.reg->at, dst.count);
  return true;
}

// ---- copies out

bool sc_issue_out(Inst *in, const Ins *i) {
  const Kernel *k = in->env.k;
  Spot from;
  if (!sc_spot(in, &k->view.at[i->arg[1]], NULL, 0, &from)) return false;
  u32 group = ++in->out_issued;
  const Buf *b = &k->buf.at[k->view.at[i->arg[1]].buf];
  Rect whole = {{0, 0}, {b->ext[0], b->rank > 1 ? (i64)(from.count / (u64)b->ext[0]) : 1}};
  if (!sc_access(in, from.part, A_OUT, in->id * C_INST + C_READ, group, whole)) return false;
  Event e = {.kind = EV_OUT,
             .by = in,
             .pc = in->at,
             .group = group,
             .add = i->op == OP_COPYADD,
             .row1 = b->ext[0],
             .part = from.part};
  evaluate(in, i->arg[0], &e);
  if (!sc_touch_slice(in, &e, e.add ? G_PUTADD : G_PUT, in->id * C_INST + C_SEEN, group))
    return false;
  in->out_pc = in->at;
  if (!e.add) sc_slice(in, &e, TRANSFER_POISON);
  issue(in, &e);
  return true;
}
