// fit.c - what emitted code takes for granted of a launch, besides what binding.c has checked:
// alignment for the copy engine and 16-byte stores, strides of tensor maps, the size of the grid.
// In: tensors with device addresses. Out: yes, or reports that name the tensor.
#include "runtime/cuda/gpu.h"

enum { BOX_ALIGN = 16 };

static bool copied(const CudaText *text, u32 buf) {
  for (u32 i = 0; i < text->maps; i++) {
    if (text->map[i].tensor == buf) return true;
  }
  return false;
}

u64 sc_align_mask(const Kernel *k, const CudaText *text, u32 buf) {
  if (copied(text, buf) || text->wide[buf]) return BOX_ALIGN - 1;
  return sc_elem[k->buf.at[buf].elem].bytes - 1u;
}

static bool empty(const Buf *b, const TensorRef *t) {
  for (u32 d = 0; d < b->rank; d++) {
    if (!t->shape[d]) return true;
  }
  return false;
}

static bool fits(Sc *sc, const Kernel *k, const CudaText *text, u32 buf, const TensorRef *t) {
  const Buf *b = &k->buf.at[buf];
  const u64 mask = sc_align_mask(k, text, buf), bytes = sc_elem[b->elem].bytes;
  const char *who = copied(text, buf) ? "the copy engine reads or writes it"
                                      : "threads access it 16 bytes at a time";
  if (empty(b, t)) return true;
  if ((uintptr_t)t->at & mask) {
    Diag *d = sc_report(sc, D_T_ALIGN, b->span,
                        "the address of tensor '%s' is not a multiple of %llu bytes", b->name,
                        (unsigned long long)mask + 1);
    if (mask == BOX_ALIGN - 1) sc_help(sc, d, "%s", who);
    return false;
  }
  for (u32 d = 0; d + 1 < b->rank; d++) {
    if (t->shape[d] <= 1) continue;
    u64 stride = (u64)t->stride[d] * bytes;
    if (mask == BOX_ALIGN - 1 && stride & mask) {
      Diag *g = sc_report(
          sc, D_T_ALIGN, b->span,
          "the stride of dimension %u of tensor '%s', %lld elements, is not a multiple of 16 bytes",
          d, b->name, (long long)t->stride[d]);
      sc_help(sc, g, "%s: pad its rows", who);
      return false;
    }
    if (copied(text, buf) && stride >> 40) {
      sc_report(sc, D_T_ALIGN, b->span,
                "the stride of dimension %u of tensor '%s' is 2^40 bytes or more: the copy engine "
                "cannot step so far",
                d, b->name);
      return false;
    }
  }
  return true;
}

bool sc_fit(Sc *sc, const Kernel *k, const CudaText *text, const Binding *b) {
  bool ok = true;
  for (u32 i = 0; i < k->buf.n; i++) {
    if (k->buf.at[i].space == SP_TENSOR) ok &= fits(sc, k, text, i, &b->buf[i]);
  }
  return ok;
}

// ---- the grid

static bool times(i64 *n, i64 by) { return !__builtin_mul_overflow(*n, by, n) && *n <= INT32_MAX; }

static bool too_large(Sc *sc, const Kernel *k) {
  Diag *d = sc_report(sc, D_T_RANGE, k->axis.n ? k->axis.at[0].span : k->span,
                      "the grid of '%s' has 2^31 tiles or more here", k->name);
  sc_help(sc, d, "split the launch along one axis");
  return false;
}

// Tiles are counted in clusters; those of a section, wide as it is said, by all of the other axes must be numbered, too.
static bool count_tiles(Sc *sc, const Kernel *k, Env *env, i64 *tiles) {
  bool ok = true, none = false;
  i64 section = 1;
  *tiles = 1;
  for (u32 i = 0; i < k->axis.n; i++) {
    const Axis *x = &k->axis.at[i];
    i64 n = x->cluster, extent = env_int(env, x->extent),
        clusters = extent <= 0 ? 0 : extent / n + (extent % n != 0);
    none |= clusters == 0;
    ok &= none || times(tiles, clusters);
    i64 width = x->section ? env_int(env, x->section) : clusters;
    ok &= none || times(&section, width > clusters ? width : clusters);
    if (x->section && width <= 0) {
      sc_report(sc, D_T_RANGE, x->span, "the sections of axis '%s' are %lld wide here", x->name, (long long)width);
      return false;
    }
  }
  if (none) *tiles = 0;
  return ok || none || too_large(sc, k);
}

bool sc_turn_counters(Sc *sc, const Kernel *k, const Binding *b, u32 turn, i64 *n) {
  const Turn *t = &k->turn.at[turn];
  Env env;
  env_init(sc, &env, k, b);
  *n = t->keys ? env_int(&env, t->keys) : 1;
  if (*n < 0) *n = 0;
  bool ok = *n <= INT32_MAX;
  for (u32 i = 0; i < k->axis.n && *n; i++) {
    i64 c = k->axis.at[i].cluster, extent = env_int(&env, k->axis.at[i].extent);
    if (i != t->axis) ok = ok && times(n, (extent + c - 1) / c * c);
  }
  if (!ok)
    sc_report(sc, D_T_RANGE, t->span, "the turn '%s' needs 2^31 counters or more here", t->name);
  return ok;
}

bool sc_grid(Sc *sc, const Kernel *k, const Binding *b, u32 room, Grid *out) {
  Env env;
  env_init(sc, &env, k, b);
  *out = (Grid){0};
  if (!count_tiles(sc, k, &env, &out->tiles)) return false;
  i64 ctas = sc_cluster(k),
      clusters = k->grid == GRID_PLAIN || out->tiles < room ? out->tiles : room;
  if (out->tiles > INT32_MAX - room || clusters * ctas > INT32_MAX) return too_large(sc, k);
  out->ctas = (u32)(clusters * ctas);
  return true;
}
