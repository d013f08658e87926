// product.c - the tensor cores: wgmma [W1, W2, W3, W5] (PTX ISA 9.0, 9.7.15). A group of products
// runs when all 128 threads of a warpgroup have committed it, after those before it. It reads
// shared memory, and the registers of its left operand, when it runs; accumulators are NaN in the
// threads' registers from the issue on, until a wait hands their values back.
#include <stdlib.h>
#include <string.h>

#include "elements.h"
#include "model.h"
#include "runtime/data/tensorsum.h"

enum { ROWS = 64, MOST_COLUMNS = 256, MOST_DEPTH = 32, WINDOW = 0x3ffff, BASE = 1024 };

static Tensor *tensor_of(Thread *t) {
  u32 group = t->number / GROUP_THREADS;
  if ((group + 1) * GROUP_THREADS > t->cta->threads)
    md_fault("W5", t->where, "%s issues a product: its warpgroup has fewer than four warps",
             md_thread_name(t));
  return &t->cta->tensor[group];
}

// ---- registers

static bool apart(const Fragment *f, u32 at, u32 bytes) {
  return f->at + f->bytes <= at || at + bytes <= f->at;
}

void md_registers(Thread *t, u32 at, u32 bytes, bool write, const void *where) {
  for (u32 i = 0; i < t->fragments && !md.lenient; i++) {
    const Fragment *f = &t->fragment[i];
    if (apart(f, at, bytes) || (f->tile == MD_NONE && !write)) continue;
    md_note(t->cta->tensor[t->number / GROUP_THREADS].group.at[f->group].where,
            "the product, which has not been waited for");
    md_fault("W2", where, "%s %s registers of a product in flight (%s)", md_thread_name(t),
             write ? "writes" : "reads",
             f->tile == MD_NONE ? "its left operand" : "its accumulator");
  }
}

// Touched since the last wgmma.fence?
static bool is_touched(const Thread *t, u32 at, u32 bytes) {
  for (u32 g = at / TOUCH_GRAIN; g <= (at + bytes - 1) / TOUCH_GRAIN; g++) {
    if (t->touched[g / 8] >> g % 8 & 1) return true;
  }
  return false;
}

static void check_fence(Thread *t, u32 at, u32 bytes) {
  if (md.lenient || (t->fenced && !is_touched(t, at, bytes))) return;
  md_fault("W1", t->where,
           "%s issues a product on registers that it has touched since its last wgmma.fence",
           md_thread_name(t));
}

void md_wgmma_fence(void) {
  Thread *t = md.self;
  t->where = HERE;
  t->fenced = true;
  memset(t->touched, 0, sizeof t->touched);
}

// Row and column of element e of a thread's part of an accumulator.
static u32 row_of(const Thread *t, u32 e) {
  return 16 * (t->number % GROUP_THREADS / LANES) + t->number % LANES / 4 + 8 * (e >> 1 & 1);
}
static u32 col_of(const Thread *t, u32 e) { return 8 * (e >> 2) + 2 * (t->number % 4) + (e & 1); }

static u32 tile_at(Tensor *x, u32 at, u32 n) {
  u32 unused = MD_NONE;
  for (u32 i = 0; i < x->tile.n; i++) {
    if (x->tile.at[i].holders && x->tile.at[i].at == at && x->tile.at[i].n == n) return i;
    if (!x->tile.at[i].holders) unused = i;
  }
  if (unused == MD_NONE) {
    APPEND(&x->tile, ((Tile){.acc = md_new(ROWS * MOST_COLUMNS * sizeof(float))}));
    unused = x->tile.n - 1;
  }
  x->tile.at[unused].at = at;
  x->tile.at[unused].n = n;
  return unused;
}

static Fragment *new_fragment(Thread *t, Fragment f) {
  for (u32 i = 0; i < t->fragments; i++) {
    if (!md.lenient && !apart(&t->fragment[i], f.at, f.bytes) &&
        (f.tile != MD_NONE || t->fragment[i].tile != MD_NONE))
      md_fault(
          "W2", t->where,
          "%s issues a product on registers that another product in flight uses in another shape",
          md_thread_name(t));
  }
  if (t->fragments == MAX_FRAGMENTS)
    md_fault("model", t->where, "products in flight use more than %d tiles", MAX_FRAGMENTS);
  t->fragment[t->fragments] = f;
  return &t->fragment[t->fragments++];
}

// The thread's part of the accumulator goes to the tensor cores.
static u32 hold_tile(Thread *t, Tensor *x, float *d, u32 n) {
  u32 at = (u32)((char *)d - t->fiber->stack), bytes = n / 2 * 4;
  for (u32 i = 0; i < t->fragments; i++) {
    Fragment *f = &t->fragment[i];
    if (f->tile == MD_NONE || f->at != at || f->bytes != bytes) continue;
    f->group = t->group;
    return f->tile;
  }
  check_fence(t, at, bytes);
  Fragment *f = new_fragment(t, (Fragment){at, bytes, t->group, tile_at(x, at, n)});
  Tile *tile = &x->tile.at[f->tile];
  tile->holders++;
  for (u32 e = 0; e < n / 2; e++) tile->acc[row_of(t, e) * n + col_of(t, e)] = d[e];
  memset(d, 0xff, bytes);
  return f->tile;
}

static void hand_back(Thread *t, Tensor *x, const Fragment *f) {
  if (f->tile == MD_NONE) return;
  Tile *tile = &x->tile.at[f->tile];
  float *d = (float *)(void *)(t->fiber->stack + f->at);
  for (u32 e = 0; e < tile->n / 2; e++) d[e] = tile->acc[row_of(t, e) * tile->n + col_of(t, e)];
  tile->holders--;
}

enum { OPERAND_BYTES = 16 };

static void hold_operand(Thread *t, const unsigned *a) {
  u32 at = (u32)((const char *)a - t->fiber->stack);
  check_fence(t, at, OPERAND_BYTES);
  for (u32 i = 0; i < t->fragments; i++) {
    Fragment *f = &t->fragment[i];
    if (f->tile != MD_NONE || f->group != t->group || f->at + f->bytes != at) continue;
    f->bytes += OPERAND_BYTES;
    return;
  }
  new_fragment(t, (Fragment){at, OPERAND_BYTES, t->group, MD_NONE});
}

// ---- issue

static void check_shape(Thread *t, const MdProduct *p, const unsigned *a) {
  bool bytes = p->b_elem >= MD_E4M3;
  bool good = p->n && p->n % 8 == 0 && p->n <= MOST_COLUMNS && (p->a_elem >= MD_E4M3) == bytes;
  good &= bytes || p->a_elem == p->b_elem;
  good &= !bytes || (!p->a_mn && !p->b_mn);
  good &= !a || !p->a_mn;
  if (!good) md_fault("W5", t->where, "there is no wgmma of this shape");
}

void md_wgmma(const MdProduct *p, float *d, const unsigned *a, unsigned long long a_desc,
              unsigned long long b_desc, int scale_d) {
  Thread *t = md.self;
  t->where = HERE;
  Tensor *x = tensor_of(t);
  check_shape(t, p, a);
  if (x->group.n == t->group) APPEND(&x->group, ((ProductGroup){.where = t->where}));
  ProductGroup *g = &x->group.at[t->group];
  Issue now = {*p,
               a_desc,
               b_desc,
               scale_d != 0,
               (u32)((char *)d - t->fiber->stack),
               0,
               a ? (u32)((const char *)a - t->fiber->stack) : MD_NONE,
               t->where};
  if (a) hold_operand(t, a);
  now.tile = hold_tile(t, x, d, p->n);
  if (t->issued == g->issue.n) APPEND(&g->issue, now);
  const Issue *first = &g->issue.at[t->issued++];
  bool same = !memcmp(&first->p, p, sizeof *p) && first->a == a_desc && first->b == b_desc &&
              first->scale == now.scale && first->d_at == now.d_at && first->a_at == now.a_at;
  if (!same) {
    md_note(first->where, "others of its warpgroup issue this one");
    md_fault("W5", t->where, "%s issues another product than others of its warpgroup",
             md_thread_name(t));
  }
}

// ---- what a group reads of shared memory

// Those who issued it, as they were when they committed: threads that know the same are one, and
// then what each has done itself is no more than what they know of each other.
static Actor issuers(const Tensor *x, const ProductGroup *g, Mind mind[GROUP_THREADS]) {
  Actor a = {x->cta->gang, {0}, 0};
  for (u32 i = 0; i < g->brings.n; i++) {
    const Bring *b = &g->brings.at[i];
    u32 j = 0;
    while (j < a.minds && mind[j].know != b->know) j++;
    if (j == a.minds) {
      mind[j] = (Mind){b->know, b->comp, b->epoch, {0}};
      memcpy(mind[j].fenced, b->fenced, sizeof b->fenced);
      a.mind[a.minds++] = &mind[j];
    } else if (mind[j].comp != b->comp) {
      mind[j].comp = MD_NONE;
    }
  }
  return a;
}

typedef struct Operand {
  u32 at, leading, stride, width;
  bool mn;
  u32 bytes;  // of an element
} Operand;

static Operand operand(u64 desc, int elem, bool mn) {
  static const u32 widths[] = {0, 128, 64, 32};
  return (Operand){(u32)(desc & 0x3fff) << 4,
                   (u32)(desc >> 16 & 0x3fff) << 4,
                   (u32)(desc >> 32 & 0x3fff) << 4,
                   widths[desc >> 62],
                   mn,
                   elem >= MD_E4M3 ? 1 : 2};
}

u32 md_swizzled(u32 swizzle, u32 at) {
  return swizzle ? at ^ (at >> 7 & (swizzle / 16 - 1)) << 4 : at;
}

// Offset in shared memory of 16 bytes of an operand: of row `r` and byte `b` of its 32 of the
// contracted index; or, MN-major, of row `r` of the contracted index and byte `b` along the other
// one.
static u32 chunk_at(const Tensor *x, const Operand *o, u32 r, u32 b, const void *where) {
  u32 at = o->mn ? o->at + b / o->width * o->leading + r / 8 * o->stride + r % 8 * o->width +
                       b % o->width
                 : o->at + r / 8 * o->stride + r % 8 * o->width + b;
  at = md_swizzled(o->width, at & WINDOW);
  if (at < BASE || at - BASE + 16 > x->cta->bytes)
    md_fault("R8", where, "a product reads outside of its CTA's shared memory");
  return at - BASE;
}

static void each_chunk(const Tensor *x, const Issue *i, bool left,
                       void (*visit)(void *, u32 at, u32 r, u32 b), void *user) {
  Operand o =
      operand(left ? i->a : i->b, left ? i->p.a_elem : i->p.b_elem, left ? i->p.a_mn : i->p.b_mn);
  u32 extent = left ? ROWS : i->p.n;
  if (!o.width) md_fault("W5", i->where, "a descriptor without a swizzle is not modelled");
  u32 rows = o.mn ? 16 : extent, bytes = o.mn ? 2 * extent : 32;
  for (u32 r = 0; r < rows; r++) {
    for (u32 b = 0; b < bytes; b += 16) visit(user, chunk_at(x, &o, r, b, i->where), r, b);
  }
}

typedef struct Toucher {
  const Actor *a;
  u32 stamp;
  Cta *cta;
} Toucher;

static void touch_chunk(void *user, u32 at, u32 r, u32 b) {
  const Toucher *t = user;
  (void)r, (void)b;
  md_touch(t->a, t->stamp, t->cta, at, 16);
}

static void touch_operands(Tensor *x, const ProductGroup *g, u32 number) {
  Mind mind[GROUP_THREADS];
  Actor a = issuers(x, g, mind);
  for (u32 i = 0; i < g->issue.n; i++) {
    const Issue *is = &g->issue.at[i];
    Stamp s = {x->cta->gang->id, x->comp,   number + 1, x->thread->id,
               is->where,        DEED_READ, BY_PRODUCT};
    Toucher t = {&a, md_stamp(&s), x->cta};
    if (is->a_at == MD_NONE) each_chunk(x, is, true, touch_chunk, &t);
    each_chunk(x, is, false, touch_chunk, &t);
  }
}

// ---- arithmetic

// Factors of one instruction, as f32: for each row of a and each column of b those of its depth.
static float left[ROWS * MOST_DEPTH], right[MOST_COLUMNS * MOST_DEPTH];

typedef struct Gather {
  const Tensor *x;
  const Issue *i;
  bool left;
} Gather;

static u32 depth_of(const Issue *i) { return i->p.b_elem >= MD_E4M3 ? 32 : 16; }

static void gather_chunk(void *user, u32 at, u32 r, u32 b) {
  const Gather *g = user;
  const u8 *from = g->x->cta->smem + at;
  int elem = g->left ? g->i->p.a_elem : g->i->p.b_elem;
  const float *value = md_values[elem];
  u32 bytes = elem >= MD_E4M3 ? 1 : 2, row = depth_of(g->i), step = 1;
  if (g->left ? g->i->p.a_mn : g->i->p.b_mn) step = row, row = 1;
  float *first = (g->left ? left : right) + r * row + b / bytes * step;
  for (u32 i = 0; i < 16 / bytes; i++) {
    u16 bits = from[i];
    if (bytes == 2) memcpy(&bits, from + 2 * i, 2);
    first[i * step] = value[bits];
  }
}

// The left operand from registers: each thread has four words, of rows row and row + 8, and two
// halves of the depth.
static void gather_registers(const Tensor *x, const Issue *is) {
  const float *value = md_values[is->p.a_elem];
  u32 bits = is->p.a_elem >= MD_E4M3 ? 8 : 16;
  for (u32 i = 0; i < GROUP_THREADS; i++) {
    const Thread *t = &x->thread[i];
    u32 word[4], row = 16 * (i / LANES) + i % LANES / 4;
    memcpy(word, t->fiber->stack + is->a_at, sizeof word);
    for (u32 w = 0; w < 4; w++) {
      u32 r = row + 8 * (w & 1), k = 32 / bits * (i % 4) + 128 / bits * (w >> 1);
      for (u32 j = 0; j < 32 / bits; j++)
        left[r * depth_of(is) + k + j] = value[word[w] >> bits * j & ((1u << bits) - 1)];
    }
  }
}

static void multiply(float *acc, const Issue *is) {
  static const Elem elem[] = {
      [MD_F16] = EL_F16, [MD_BF16] = EL_BF16, [MD_E4M3] = EL_E4M3, [MD_E5M2] = EL_E5M2};
  const TensorSum sum = sc_tensor_sum(elem[is->p.a_elem], elem[is->p.b_elem]);
  const u32 depth = depth_of(is);
  for (u32 m = 0; m < ROWS; m++)
    for (u32 j = 0; j < is->p.n; j++, acc++)
      *acc = sc_tensor_dot(&sum, *acc, left + m * depth, right + j * depth, depth);
}

static void run_issue(const Tensor *x, const Issue *is) {
  float *acc = x->tile.at[is->tile].acc;
  Gather l = {x, is, true}, r = {x, is, false};
  if (is->a_at == MD_NONE) each_chunk(x, is, true, gather_chunk, &l);
  else gather_registers(x, is);
  each_chunk(x, is, false, gather_chunk, &r);
  if (!is->scale) memset(acc, 0, ROWS * is->p.n * sizeof *acc);
  multiply(acc, is);
}

static void run_group(void *tensor) {
  Tensor *x = tensor;
  ProductGroup *g = &x->group.at[x->done];
  for (u32 i = 0; i < g->issue.n; i++) run_issue(x, &g->issue.at[i]);
  free(g->issue.at);
  g->issue.at = NULL;
  x->done++;
  md_wake(&x->waiters);
}

// ---- commit and wait

static void all_committed(Tensor *x, u32 number) {
  ProductGroup *g = &x->group.at[number];
  if (!x->comp) x->comp = md_component(x->cta->gang);
  touch_operands(x, g, number);
  g->know = md_noted(md_settle(&g->brings), x->comp, number + 1);
  free(g->brings.at);
  g->brings.at = NULL;
  md_event((Event){ENGINE_PRODUCT, x->cta->gang, x, run_group});
}

void md_wgmma_commit(void) {
  Thread *t = md.self;
  t->where = HERE;
  Tensor *x = tensor_of(t);
  md_converge(MEET_COMMIT, t->group);
  if (x->group.n == t->group) APPEND(&x->group, ((ProductGroup){.where = t->where}));
  ProductGroup *g = &x->group.at[t->group];
  if (!g->committed) g->size = t->issued;
  if (t->issued != g->size)
    md_fault("W5", t->where, "%s commits a group of %u products, others one of %u",
             md_thread_name(t), t->issued, g->size);
  md_tell(&g->brings, t->mind);
  t->issued = 0;
  if (++g->committed == GROUP_THREADS) all_committed(x, t->group);
  t->group++;
}

static void know_products(Thread *t, Tensor *x, u32 want) {
  if (want > t->products_known) md_learn(t->mind, x->group.at[want - 1].know);
  for (u32 i = t->products_known; i < want; i++) {
    ProductGroup *g = &x->group.at[i];
    if (++g->waited < GROUP_THREADS) continue;
    md_drop(g->know);
    g->know = NULL;
  }
  if (want > t->products_known) t->products_known = want;
}

void md_wgmma_wait(unsigned keep) {
  Thread *t = md.self;
  t->where = HERE;
  Tensor *x = tensor_of(t);
  u32 want = t->group > keep ? t->group - keep : 0, n = 0;
  md_converge(MEET_WAIT, keep);
  while (x->done < want)
    md_wait(&x->waiters, (Waiting){.what = WAITS_PRODUCTS, .a = want, .where = t->where});
  know_products(t, x, want);
  for (u32 i = 0; i < t->fragments; i++) {
    if (t->fragment[i].group < want) hand_back(t, x, &t->fragment[i]);
    else t->fragment[n++] = t->fragment[i];
  }
  t->fragments = n;
}

void md_products_free(Cta *c) {
  for (u32 i = 0; i < c->threads / GROUP_THREADS; i++) {
    Tensor *x = &c->tensor[i];
    for (u32 j = 0; j < x->group.n; j++) {
      ProductGroup *g = &x->group.at[j];
      for (u32 b = 0; b < g->brings.n; b++) md_drop(g->brings.at[b].know);
      md_drop(g->know);
      free(g->brings.at);
      free(g->issue.at);
    }
    for (u32 j = 0; j < x->tile.n; j++) free(x->tile.at[j].acc);
    free(x->group.at);
    free(x->tile.at);
    *x = (Tensor){0};
  }
}
