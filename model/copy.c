// copy.c - the copy engine: bulk copies of boxes between tensors and shared memory [T1 to T6] (PTX
// ISA 9.0, 9.7.9.25), and words sent to another CTA (st.async). What is copied is read, and lands,
// when the policy says so; from the issue on the destination is NaN. For races it is read and
// written at the issue, and done when its barrier, or its bulk group, says so.
#include <stdlib.h>
#include <string.h>

#include "elements.h"
#include "model.h"

enum { BOX_ALIGN = 128, COLUMN_ALIGN = 16, BASE = 1024, DIMS = 5 };

static u32 box_bytes(const BoxMap *m) {
  u32 n = m->bytes;
  for (u32 d = 0; d < DIMS; d++) n *= m->box[d];
  return n;
}

static const BoxMap *map_of(Thread *t, const struct TensorMap *map) {
  const BoxMap *m = md_box_map(map);
  if (!m)
    md_fault("T5", t->where, "the tensor map of a copy was not made by cuTensorMapEncodeTiled");
  return m;
}

// ---- the rows of a box

typedef struct Row {
  u32 from;  // bytes from the box's start, before the swizzle
  u32 bytes;
  bool inside;  // the row; then these elements of it
  u32 lo, hi;
  u64 address;  // of element 0 of the row, inside or not
} Row;

static Row row_of(const BoxMap *m, const i32 *at, u32 number) {
  u32 rest = number, n = m->box[0] * m->bytes;
  Row r = {number * n, n, true, 0, m->box[0], m->address};
  for (u32 d = 1; d < DIMS; d++) {
    i64 place = (i64)at[d] + rest % m->box[d];
    rest /= m->box[d];
    r.inside &= place >= 0 && (u64)place < m->extent[d];
    r.address += (u64)place * m->stride[d];
  }
  i64 first = at[0], left = (i64)m->extent[0] - first;
  if (first < 0) r.lo = -first < (i64)m->box[0] ? (u32)-first : m->box[0];
  if (left < (i64)r.hi) r.hi = left > 0 ? (u32)left : 0;
  r.inside &= r.lo < r.hi;
  r.address += (u64)(first * (i64)m->bytes);
  return r;
}

static u32 rows_of(const BoxMap *m) { return m->box[1] * m->box[2] * m->box[3] * m->box[4]; }

// Between a box in the order of its elements and shared memory, by 16 bytes.
static void swizzle(const BoxMap *m, u8 *smem, u32 offset, u8 *box, bool in) {
  u32 n = box_bytes(m);
  for (u32 i = 0; i < n; i += 16) {
    u8 *there = smem + md_swizzled(m->swizzle, BASE + offset + i) - BASE;
    if (in) memcpy(there, box + i, 16);
    else memcpy(box + i, there, 16);
  }
}

// ---- who touches what

static void touch_shared(Thread *t, Cta *c, u32 offset, u32 bytes, Deed deed, Agency agency,
                         u32 comp, u32 epoch) {
  Stamp s = {c->gang->id, comp, epoch, t->id, t->where, (u8)deed, (u8)agency};
  Actor a = md_actor(t);
  md_touch(&a, md_stamp(&s), c, offset, bytes);
}

static void touch_tensor(Thread *t, const BoxMap *m, const i32 *at, Deed deed, Agency agency,
                         u32 comp, u32 epoch) {
  md_behind(t);
  Stamp s = {t->cta->gang->id, comp, epoch, t->id, t->where, (u8)deed, (u8)agency};
  Actor a = md_actor(t);
  u32 stamp = md_stamp(&s);
  for (u32 i = 0; i < rows_of(m); i++) {
    Row r = row_of(m, at, i);
    if (!r.inside) continue;
    u64 from = r.address + r.lo * m->bytes, n = (u64)(r.hi - r.lo) * m->bytes;
    if (!md_in_memory(from, n))
      md_fault("T5", t->where,
               "a copy reaches for %llu bytes of global memory at %s, where nothing is allocated",
               (unsigned long long)n, md_global_name(from));
    md_touch(&a, stamp, NULL, from, n);
  }
}

// ---- copies in

typedef struct Load {
  BoxMap map;
  i32 at[DIMS];
  u32 offset, ctas;
  Cta *cta[MAX_CLUSTER];
  Mbar *bar[MAX_CLUSTER];
  u32 phase[MAX_CLUSTER];
  Bring cause;
  const void *where;
} Load;

static void read_box(const BoxMap *m, const i32 *at, u8 *box) {
  memset(box, 0, box_bytes(m));
  for (u32 i = 0; i < rows_of(m); i++) {
    Row r = row_of(m, at, i);
    if (r.inside)
      memcpy(box + r.from + r.lo * m->bytes, (const void *)(uintptr_t)(r.address + r.lo * m->bytes),
             (r.hi - r.lo) * m->bytes);
  }
}

static void land(void *load) {
  Load *l = load;
  u32 n = box_bytes(&l->map);
  u8 *box = md_new(n);
  read_box(&l->map, l->at, box);
  for (u32 i = 0; i < l->ctas; i++) {
    swizzle(&l->map, l->cta[i]->smem, l->offset, box, true);
    md_mbar_land(l->cta[i], l->bar[i], n, l->phase[i], &l->cause, l->where);
  }
  md_drop(l->cause.know);
  free(box);
  free(l);
}

// A box begins at whole 16 bytes of the tensor's rows: the chip ends the kernel with an illegal
// instruction where it does not.
static void check_place(Thread *t, const BoxMap *m, u32 offset, const i32 *at) {
  if (offset % BOX_ALIGN)
    md_fault("T5", t->where, "a box in shared memory is not at a multiple of 128 bytes");
  if ((i64)at[0] * m->bytes % COLUMN_ALIGN)
    md_fault("T5", t->where, "a box begins at element %d of a row, which is not at whole 16 bytes",
             at[0]);
  if (m->swizzle && box_bytes(m) % 16) md_fault("T5", t->where, "a box is not of whole 16 bytes");
}

void md_tma_load(unsigned to, const struct TensorMap *map, unsigned bar, unsigned ctas,
                 const int *at) {
  Thread *t = md.self;
  t->where = HERE;
  md_pause();
  const BoxMap *m = map_of(t, map);
  u32 n = box_bytes(m), offset = md_offset(t->cta, to, n), bar_at = md_offset(t->cta, bar, 8);
  u32 targets = ctas ? ctas : 1u << t->cta->rank;
  check_place(t, m, to, at);
  Load *l = md_new(sizeof *l);
  l->map = *m;
  memcpy(l->at, at, sizeof l->at);
  l->offset = offset;
  l->where = t->where;
  l->cause = md_cause(t->mind);
  for (u32 rank = 0; rank < MAX_CLUSTER; rank++) {
    if (!(targets >> rank & 1)) continue;
    Cta *c = md_cta(t, (int)rank);
    Mbar *b = md_mbar(c, bar_at);
    md_mbar_aim(t, c, b);
    touch_shared(t, c, offset, n, DEED_WRITE, BY_COPY_IN, b->comp, b->phase + 1);
    memset(c->smem + offset, 0xff, n);
    l->cta[l->ctas] = c;
    l->bar[l->ctas] = b;
    l->phase[l->ctas++] = b->phase;
  }
  touch_tensor(t, m, at, DEED_READ, BY_COPY_IN, l->bar[0]->comp, l->phase[0] + 1);
  md_event((Event){ENGINE_LOAD, t->cta->gang, l, land});
}

void md_tma_prefetch(const struct TensorMap *map) {
  md.self->where = HERE;
  map_of(md.self, map);
}

// ---- words sent to another CTA

typedef struct Send {
  Cta *cta;
  Mbar *bar;
  u32 offset, phase;
  int x[4];
  Bring cause;
  const void *where;
} Send;

static void arrive_words(void *send) {
  Send *s = send;
  memcpy(s->cta->smem + s->offset, s->x, sizeof s->x);
  md_mbar_land(s->cta, s->bar, sizeof s->x, s->phase, &s->cause, s->where);
  md_drop(s->cause.know);
  free(s);
}

void md_send(unsigned to, unsigned bar, const int *x, unsigned cta) {
  Thread *t = md.self;
  t->where = HERE;
  md_pause();
  u32 offset = md_offset(t->cta, to, sizeof(int[4])), bar_at = md_offset(t->cta, bar, 8);
  Cta *c = md_cta(t, (int)cta);
  Mbar *b = md_mbar(c, bar_at);
  if (to % 16) md_fault("T5", t->where, "st.async of 16 bytes is not at a multiple of 16");
  md_mbar_aim(t, c, b);
  touch_shared(t, c, offset, sizeof(int[4]), DEED_WRITE, BY_SEND, b->comp, b->phase + 1);
  Send *s = md_new(sizeof *s);
  *s = (Send){c, b, offset, b->phase, {x[0], x[1], x[2], x[3]}, md_cause(t->mind), t->where};
  memset(c->smem + offset, 0xff, sizeof s->x);
  md_event((Event){ENGINE_LOAD, t->cta->gang, s, arrive_words});
}

// ---- copies out: the source is read, then the destination written

typedef struct Store {
  Thread *thread;
  u32 group;
  BoxMap map;
  i32 at[DIMS];
  u32 offset;
  bool add;
  u8 *box;
} Store;

static void write_row(const Store *s, Row r) {
  u8 *to = (u8 *)(uintptr_t)r.address;
  const u8 *from = s->box + r.from;
  u32 n = s->map.bytes;
  if (!s->add) memcpy(to + r.lo * n, from + r.lo * n, (r.hi - r.lo) * n);
  else
    for (u32 i = r.lo; i < r.hi; i++) md_add_element(s->map.elem, to + i * n, from + i * n);
}

static void write_box(void *store) {
  Store *s = store;
  for (u32 i = 0; i < rows_of(&s->map); i++) {
    Row r = row_of(&s->map, s->at, i);
    if (r.inside) write_row(s, r);
  }
  s->thread->bulk.at[s->group].undone--;
  md_wake(&s->thread->bulk_waiter);
  free(s->box);
  free(s);
}

static void read_source(void *store) {
  Store *s = store;
  s->box = md_new(box_bytes(&s->map));
  swizzle(&s->map, s->thread->cta->smem, s->offset, s->box, false);
  s->thread->bulk.at[s->group].unread--;
  md_wake(&s->thread->bulk_waiter);
  md_event((Event){ENGINE_WRITE, s->thread->cta->gang, s, write_box});
}

void md_tma_store(const struct TensorMap *map, unsigned from, const int *at, int add) {
  Thread *t = md.self;
  t->where = HERE;
  md_pause();
  const BoxMap *m = map_of(t, map);
  u32 n = box_bytes(m), group = t->bulk.n - 1;
  check_place(t, m, from, at);
  if (add && m->elem == MAP_BYTES) md_fault("T5", t->where, "the copy engine does not add bytes");
  if (!t->comp_read) {
    t->comp_read = md_component(t->cta->gang);
    t->comp_done = md_component(t->cta->gang);
  }
  Store *s = md_new(sizeof *s);
  *s = (Store){
      .thread = t, .group = group, .map = *m, .offset = md_offset(t->cta, from, n), .add = add};
  memcpy(s->at, at, sizeof s->at);
  touch_shared(t, t->cta, s->offset, n, DEED_READ, BY_COPY_OUT, t->comp_read, group + 1);
  touch_tensor(t, m, at, add ? DEED_ADD : DEED_WRITE, BY_COPY_OUT, t->comp_done, group + 1);
  BulkGroup *g = &t->bulk.at[group];
  g->ops++;
  g->unread++;
  g->undone++;
  md_event((Event){ENGINE_READ, t->cta->gang, s, read_source});
}

void md_tma_commit(void) {
  Thread *t = md.self;
  t->where = HERE;
  APPEND(&t->bulk, ((BulkGroup){0}));
}

static bool bulk_pending(const Thread *t, u32 groups, bool read) {
  for (u32 i = 0; i < groups; i++) {
    if (read ? t->bulk.at[i].unread : t->bulk.at[i].undone) return true;
  }
  return false;
}

void md_tma_wait(unsigned keep, int read) {
  Thread *t = md.self;
  t->where = HERE;
  u32 committed = t->bulk.n - 1, want = committed > keep ? committed - keep : 0;
  md_pause();
  while (bulk_pending(t, want, read))
    md_wait(&t->bulk_waiter,
            (Waiting){.what = WAITS_BULK, .a = want, .b = (u32)read, .where = t->where});
  if (want > t->bulk_read) t->bulk_read = want;
  if (!t->comp_read) return;
  md_learn_one(t->mind, t->comp_read, want);
  if (!read) md_learn_one(t->mind, t->comp_done, want);
}

void md_bulk_ended(Thread *t) {
  u32 last = t->bulk.n - 1;
  if (t->bulk.at[last].ops)
    md_fault("T2", NULL, "%s ends, and has not committed its last copies out", md_thread_name(t));
  for (u32 i = t->bulk_read; i < last; i++) {
    if (t->bulk.at[i].ops)
      md_fault("T6", NULL,
               "%s ends, and has not waited until its copies out have read their source",
               md_thread_name(t));
  }
}
