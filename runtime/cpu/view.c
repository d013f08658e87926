// view.c - where the elements of a view are: in the newest stage that the instance holds, the one
// that it fills, its registers, or a tensor. Bases are evaluated here, ranges checked, accesses
// recorded; what a role may not touch (a tile in flight, a stage that it does not hold) is a fault.
#include "runtime/cpu/machine.h"

#include <string.h>

Stage *sc_stage_of(const Inst *in, const Cta *cta, u32 ring, u32 fill) {
  const Ring *r = &in->env.k->ring.at[ring];
  u32 pool = in->m->p->pool0[ring] + (r->owner == SC_NONE ? 0 : in->number);
  return &cta->pool[pool][fill % r->stages];
}

Stage *sc_stage(const Inst *in, u32 ring, u32 fill) { return sc_stage_of(in, in->cta, ring, fill); }

// ---- stages and registers

static Part *stage_part(Inst *in, const View *v, const Buf *b) {
  const Kernel *k = in->env.k;
  const Cursor *c = &in->ring[b->ring];
  const char *name = k->ring.at[b->ring].name;
  u32 fill = v->fill ? c->filled : c->waited, least = v->fill ? c->committed : c->released;
  if (fill == least) {
    sc_fault(in, D_X_HELD, sc_here(in), "no stage of '%s' is %s here", name,
             v->fill ? "being filled" : "held");
    return NULL;
  }
  return &sc_stage(in, b->ring, fill - 1)->part[v->buf - k->ring.at[b->ring].part0];
}

// Row-major: the distance between elements along dimension d.
static i64 pitch(const Buf *b, u32 d) {
  i64 n = 1;
  for (u32 i = d + 1; i < b->rank; i++) n *= b->ext[i];
  return n;
}

bool sc_spot(Inst *in, const View *v, const i64 *ext, u32 vars, Spot *out) {
  const Buf *b = &in->env.k->buf.at[v->buf];
  memset(out, 0, sizeof *out);
  out->count = in->m->p->elems[v->buf];
  if (b->space == SP_STAGE) {
    out->part = stage_part(in, v, b);
    if (!out->part) return false;
    out->at = out->part->at;
  } else {
    out->reg = &in->reg[v->buf];
    out->at = out->reg->at;
  }
  out->rect = (Rect){{0, 0}, {1, 1}};
  for (u32 d = 0; d < v->rank; d++) {
    const Pos *pos = &v->at[d];
    i64 lo = pos->base ? env_int(&in->env, pos->base) : 0, n = 1, step = pitch(b, d);
    if (pos->slice) n = b->ext[d];
    if (pos->var >= 0 && (u32)pos->var < vars) {
      n = ext[pos->var];
      out->stride[pos->var] += step;
    }
    if (lo < 0 || n > b->ext[d] || lo > b->ext[d] - n) {
      return sc_fault(in, D_X_BOUNDS, sc_here(in),
                      "'%s' has %lld elements along dimension %u; this reaches for %lld to %lld",
                      b->name, (long long)b->ext[d], d + 1, (long long)lo, (long long)(lo + n - 1));
    }
    out->at += lo * step;
    if (d == 0) {
      out->rect.lo[0] = lo;
      out->rect.hi[0] = lo + n;
    } else if (d == 1) {
      out->rect.lo[1] = lo * step;
      out->rect.hi[1] = (lo + n) * step;
    }
  }
  return true;
}

// ---- tensors

static void everything_outside(Operand *o) {
  bool varies = false;
  for (u32 v = 0; v < SC_MAX_VARS; v++) varies |= o->stride[v] != 0;
  if (!varies) o->at = NULL;
  memset(o->lo, 0, sizeof o->lo);
  memset(o->hi, 0, sizeof o->hi);
}

static void unbounded(Operand *o) {
  memset(o->stride, 0, sizeof o->stride);
  for (u32 i = 0; i < SC_MAX_VARS; i++) {
    o->lo[i] = INT64_MIN;
    o->hi[i] = INT64_MAX;
  }
}

static void tensor_operand(Inst *in, const View *v, Operand *o) {
  const Buf *b = &in->env.k->buf.at[v->buf];
  const TensorRef *t = &in->m->p->b->buf[v->buf];
  i64 offset = 0;
  bool outside = false;
  unbounded(o);
  o->store = o->elem = (Elem)b->elem;
  o->part = 0;
  for (u32 d = 0; d < v->rank; d++) {
    i64 lo = v->at[d].base ? env_int(&in->env, v->at[d].base) : 0;
    i32 var = v->at[d].var;
    if (var < 0) {
      outside |= lo < 0 || lo >= t->shape[d];
    } else {
      if (o->lo[var] < -lo) o->lo[var] = -lo;
      if (o->hi[var] > t->shape[d] - lo) o->hi[var] = t->shape[d] - lo;
      o->stride[var] += t->stride[d];
    }
    offset += lo * t->stride[d];
  }
  o->at = outside ? t->at : t->at + offset * sc_elem[b->elem].bytes;
  if (outside) everything_outside(o);
}

// ---- operands of maps

static bool in_flight(Inst *in, const Buf *b, u32 pc, const char *deed) {
  sc_fault(in, D_X_FLIGHT, sc_here(in),
           "'%s' is in flight: a product that %s it has not been waited for", b->name, deed);
  sc_fault_note(in, in->of->code.at[pc].span, "issued here");
  sc_fault_help(in, "'wait' for the product first");
  return false;
}

static bool touch(Inst *in, const View *v, const Spot *s, bool write) {
  const Buf *b = &in->env.k->buf.at[v->buf];
  if (s->part) {
    u32 word = in->id * C_INST + C_TIME;
    return sc_access(in, s->part, write ? A_WRITE : A_READ, word, in->now, s->rect);
  }
  if (s->reg->written > in->mma_waited) return in_flight(in, b, s->reg->write_pc, "writes");
  if (write && s->reg->read > in->mma_waited) return in_flight(in, b, s->reg->read_pc, "reads");
  return true;
}

static bool local_operand(Inst *in, const View *v, const Map *m, const MapPlan *p, bool write,
                          Operand *o) {
  const Buf *b = &in->env.k->buf.at[v->buf];
  Spot s;
  if (!sc_spot(in, v, p->ext, m->vars, &s) || !touch(in, v, &s, write)) return false;
  unbounded(o);
  memcpy(o->stride, s.stride, sizeof o->stride);
  o->at = s.at;
  o->elem = (Elem)b->elem;
  o->store = b->elem == EL_I32 ? EL_I32 : EL_F32;
  o->part = b->partial ? (i64)(s.count / 4) : 0;
  return true;
}

static bool operand(Inst *in, u32 view, const Map *m, const MapPlan *p, bool write) {
  const View *v = &in->env.k->view.at[view];
  Operand *o = &in->m->op[view];
  if (in->env.k->buf.at[v->buf].space != SP_TENSOR) return local_operand(in, v, m, p, write, o);
  tensor_operand(in, v, o);
  if (write && in->surplus) everything_outside(o);
  return true;
}

bool sc_operands(Inst *in, const Map *m, const MapPlan *p) {
  for (u32 i = 0; i < sc_views_of(m); i++)
    if (!operand(in, sc_view_of(in->env.k, m, i), m, p, i == m->reads)) return false;
  return true;
}

// ---- slices

bool sc_reach(const Inst *in, const Event *e, Reach *r, u32 *rank, i64 *offset) {
  const View *v = &in->env.k->view.at[e->view];
  const TensorRef *t = &in->m->p->b->buf[v->buf];
  const Buf *stage = &in->env.k->buf.at[e->part->buf];
  *rank = 0;
  *offset = 0;
  for (u32 d = 0; d < v->rank; d++) {
    i64 base = e->base[d];
    if (!v->at[d].slice) {
      if (base < 0 || base >= t->shape[d]) return false;
    } else if (*rank < stage->rank) {
      i64 n = stage->ext[*rank], room = t->shape[d] - base;
      r[*rank] = (Reach){
          d, n, base < 0 ? -base : 0, room < n ? room : n, t->stride[d], pitch(stage, *rank)};
      ++*rank;
    }
    *offset += base * t->stride[d];
  }
  if (r[0].lo < e->row0) r[0].lo = e->row0;
  if (r[0].hi > e->row1) r[0].hi = e->row1;
  return *rank > 0;
}

// One line of a slice: n elements of the stage from `stage` on, and of the tensor from `at` on.
static void line_in(Elem elem, float *stage, const char *base, i64 at, i64 stride, i64 n) {
  i64 bytes = sc_elem[elem].bytes, step = stride == 1 ? n : 1;
  for (i64 i = 0; i < n; i += step) {
    sc_load_elems(elem, stage + i, base + (at + i * stride) * bytes, (size_t)step);
  }
}

// Adds the element of a stage at `from`, as the copy engine does: integers wrap.
static void add_elem(Elem elem, void *to, i64 at, const float *from) {
  u32 more;
  if (elem != EL_I32) {
    sc_set_elem(elem, to, at, (float)sc_get_elem(elem, to, at) + *from);
    return;
  }
  memcpy(&more, from, sizeof more);
  ((u32 *)to)[at] += more;
}

static void line_out(Elem elem, const float *stage, char *base, i64 at, i64 stride, i64 n,
                     Transfer way) {
  i64 bytes = sc_elem[elem].bytes, step = stride == 1 && way != TRANSFER_ADD ? n : 1;
  for (i64 i = 0; i < n; i += step) {
    i64 where = at + i * stride;
    if (way == TRANSFER_ADD) {
      add_elem(elem, base, where, stage + i);
    } else if (way == TRANSFER_POISON) {
      sc_fill_nan(elem, base + where * bytes, (size_t)step);
    } else {
      sc_store_elems(elem, base + where * bytes, stage + i, (size_t)step);
    }
  }
}

// Walks the lines of the slice that lie inside the tensor; what lies outside was set to 0 before.
static void lines(const Inst *in, const Event *e, const Reach *r, u32 rank, u32 d, i64 tensor,
                  i64 stage, Transfer way) {
  if (r[d].lo >= r[d].hi) return;
  u32 buf = in->env.k->view.at[e->view].buf;
  Elem elem = (Elem)in->env.k->buf.at[buf].elem;
  char *base = in->m->p->b->buf[buf].at;
  if (d + 1 < rank) {
    for (i64 i = r[d].lo; i < r[d].hi; i++) {
      lines(in, e, r, rank, d + 1, tensor + i * r[d].stride, stage + i * r[d].pitch, way);
    }
    return;
  }
  i64 at = tensor + r[d].lo * r[d].stride, n = r[d].hi - r[d].lo;
  float *line = e->part->at + stage + r[d].lo;
  if (way == TRANSFER_IN) {
    line_in(elem, line, base, at, r[d].stride, n);
  } else {
    line_out(elem, line, base, at, r[d].stride, n, way);
  }
}

void sc_slice(const Inst *in, const Event *e, Transfer way) {
  Reach r[SC_MAX_RANK];
  u32 rank;
  i64 offset;
  if (way == TRANSFER_IN) {
    u64 row = e->part->elems / (u64)in->env.k->buf.at[e->part->buf].ext[0];
    memset(e->part->at + (u64)e->row0 * row, 0, (u64)(e->row1 - e->row0) * row * sizeof(float));
  } else if (in->surplus) {
    return;
  }
  if (sc_reach(in, e, r, &rank, &offset)) lines(in, e, r, rank, 0, offset, 0, way);
}
