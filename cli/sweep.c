// sweep.c - lengths at which a schedule may go wrong though its cases do not show it: each launch
// dimension, and each integer scalar on which the work of a tile depends, at 0 and 1, and where a
// ring is filled 2 to stages + 3 times in a tile: as often as its stages, and more. How often that
// is, is asked of the library, which runs loops and branches and nothing else. Where a persistent
// grid's tiles do not change with a dimension, but their number does, the fills of all tiles are
// counted, which are one CTA's on one multiprocessor.
//
// What a case says element by element has a fixed length. A dimension on which that length depends,
// or of which the elements may be indices, is left out; but a list of offsets, which begins with 0
// and never falls, may go on with its last element, so that one sequence is empty.
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

typedef struct Probe {
  int64_t value;
  schedc_fills *fills;  // by ring; NULL: a `require` does not hold, or the tensors are too large
} Probe;

typedef struct Sweeper {
  Sweep *out;
  Session *s;
  const schedc_kernel *kernel;
  size_t kase, rings;
  uint64_t limit;
  Data base;
  const char *name;  // what varies
  Probe *probe;      // … and what is known of it, by rising value
  size_t probes;
} Sweeper;

// ---- counts

static bool elements_fit(const Sweeper *w, const Data *d) {
  uint64_t all = 0;
  for (size_t t = 0; t < d->tensor_count; t++) {
    int64_t shape[SCHEDC_MAX_RANK], n = 1;
    if (!data_shape(d, w->s->context, t, shape)) return false;
    for (size_t i = 0; i < d->tensors[t].rank; i++)
      if (__builtin_mul_overflow(n, shape[i], &n)) return false;
    all += (uint64_t)n;
  }
  return all <= w->limit;
}

static bool open_at(Sweeper *w, Data *d, int64_t value) {
  char text[32];
  snprintf(text, sizeof text, "%lld", (long long)value);
  schedc_param one = {w->name, text};
  const Pairs set = {&one, 1};
  bool fits = !data_dims(d, w->s, w->kernel, w->kase, NULL, &set) && elements_fit(w, d);
  data_close(d);
  *d = (Data){0};
  if (!fits || data_open(d, w->s, w->kernel, w->kase, NULL, &set)) return false;
  data_sketch(d, w->kase);
  return true;
}

static schedc_fills *count(Sweeper *w, int64_t value) {
  Data d = {0};
  schedc_fills *fills = need(calloc(w->rings + 1, sizeof *fills));
  for (size_t i = 0; i <= w->rings; i++) fills[i].size = sizeof *fills;
  bool good = open_at(w, &d, value) &&
              !schedc_count_fills(w->s->context, w->kernel, d.tensors, d.tensor_count, d.scalars,
                                  d.scalar_count, fills);
  session_forget(w->s);
  data_close(&d);
  if (good) return fills;
  free(fills);
  return NULL;
}

// The counts at a value, each asked for once.
static const schedc_fills *at(Sweeper *w, int64_t value) {
  size_t i = 0;
  while (i < w->probes && w->probe[i].value < value) i++;
  if (i < w->probes && w->probe[i].value == value) return w->probe[i].fills;
  w->probe = need(realloc(w->probe, (w->probes + 1) * sizeof *w->probe));
  memmove(&w->probe[i + 1], &w->probe[i], (w->probes++ - i) * sizeof *w->probe);
  w->probe[i] = (Probe){.value = value, .fills = count(w, value)};
  return w->probe[i].fills;
}

static void forget(Sweeper *w) {
  for (size_t i = 0; i < w->probes; i++) free(w->probe[i].fills);
  free(w->probe);
  w->probe = NULL;
  w->probes = 0;
}

// ---- points

static void add_point(Sweeper *w, int64_t value) {
  Pairs *p = &w->out->point;
  char text[32];
  snprintf(text, sizeof text, "%lld", (long long)value);
  for (size_t i = 0; i < p->n; i++)
    if (strcmp(p->at[i].name, w->name) == 0 && strcmp(p->at[i].value, text) == 0) return;
  p->at = need(realloc(p->at, (p->n + 1) * sizeof *p->at));
  p->at[p->n++] = (schedc_param){need(strdup(w->name)), need(strdup(text))};
}

static uint64_t measure(const schedc_fills *f, bool all) { return all ? f->all : f->most; }

// Do the values asked for so far change the count?
static bool varies(const Sweeper *w, size_t ring, bool all) {
  const schedc_fills *first = NULL;
  for (size_t i = 0; i < w->probes; i++) {
    const schedc_fills *f = w->probe[i].fills;
    if (f && first && measure(&f[ring], all) != measure(&first[ring], all)) return true;
    if (!first) first = f;
  }
  return false;
}

// The smallest value found, by halving, at which the ring is filled n times or more; 0: there is
// none.
static int64_t least_with(Sweeper *w, size_t ring, bool all, uint64_t n) {
  int64_t lo = 0, hi = 0;
  for (size_t i = 0; i < w->probes && !hi; i++) {
    const schedc_fills *f = w->probe[i].fills;
    if (f && measure(&f[ring], all) >= n) hi = w->probe[i].value;
    else lo = w->probe[i].value;
  }
  while (hi - lo > 1) {
    int64_t mid = lo + (hi - lo) / 2;
    const schedc_fills *f = at(w, mid);
    if (f && measure(&f[ring], all) >= n) hi = mid;
    else lo = mid;
  }
  return hi;
}

// n fills, by the fewest elements for odd n, by the most for even n.
static void add_fills(Sweeper *w, size_t ring, bool all, unsigned stages) {
  for (uint64_t n = 2; n <= stages + 3; n++) {
    int64_t least = least_with(w, ring, all, n), next = n % 2 ? 0 : least_with(w, ring, all, n + 1);
    if (least) add_point(w, next > least ? next - 1 : least);
  }
}

// Are all rings whose fills change filled often enough? Not if there are none yet.
static bool enough(const Sweeper *w, const schedc_fills *f) {
  bool some = false;
  for (size_t r = 0; r < w->rings; r++) {
    if (!varies(w, r, false)) continue;
    if (f[r].most <= f[r].stages + 3) return false;
    some = true;
  }
  return some;
}

static void explore(Sweeper *w) {
  enum { LARGEST = 1 << 20 };
  at(w, 0);
  for (int64_t v = 1; v <= LARGEST; v *= 2) {
    const schedc_fills *f = at(w, v);
    if (f && enough(w, f)) return;
  }
}

// Does some ring's count change?
static bool add_points(Sweeper *w, bool persistent) {
  const schedc_fills *any = NULL;
  bool some = false;
  for (size_t i = 0; i < w->probes && !any; i++) any = w->probe[i].fills;
  for (size_t r = 0; r < w->rings && any; r++) {
    bool most = varies(w, r, false), all = !most && persistent && varies(w, r, true);
    some |= most;
    if (most || all) add_fills(w, r, all, any[r].stages);
  }
  return some;
}

// ---- what a case gives element by element

static bool elements_of(const Sweeper *w, size_t t, schedc_bind_info *b) {
  *b = (schedc_bind_info)SCHEDC_BIND_INFO_INIT;
  for (size_t i = 0; schedc_bind_at(w->kernel, w->kase, i, b) == SCHEDC_OK; i++)
    if (b->kind == SCHEDC_BIND_TENSOR && strcmp(b->name, w->base.tensors[t].name) == 0) return true;
  return false;
}

// Does the tensor's shape change if the dimension is one more? *length: what a list becomes; else
// 0.
static bool grows(Sweeper *w, size_t t, size_t dim, int64_t *length) {
  int64_t shape[SCHEDC_MAX_RANK];
  const schedc_tensor *x = &w->base.tensors[t];
  w->base.dims[dim].value++;
  bool known = data_shape(&w->base, w->s->context, t, shape), changes = !known;
  w->base.dims[dim].value--;
  for (size_t i = 0; i < x->rank && known; i++) changes |= shape[i] != x->shape[i];
  *length = changes && known && x->rank == 1 ? shape[0] : 0;
  return changes;
}

static bool may_index(const Sweeper *w, size_t t, const schedc_bind_info *b, int64_t extent) {
  if (w->base.tensors[t].type != SCHEDC_I32) return false;
  for (size_t i = 0; i < b->count; i++)
    if (b->values[i] > (double)extent) return false;
  return true;
}

static bool are_offsets(const double *v, size_t n) {
  if (n < 2 || v[0] != 0) return false;
  for (size_t i = 1; i < n; i++)
    if (v[i] < v[i - 1]) return false;
  return true;
}

// An empty sequence: a tile with no fills, where the case has none.
static void add_empty(Sweeper *w, int64_t value) {
  const schedc_fills *now = at(w, value), *then = at(w, value + 1);
  for (size_t r = 0; r < w->rings; r++) {
    if (now && then && now[r].least > 0 && then[r].least == 0) add_point(w, value + 1);
  }
}

static void note(Buffer *b, const char *name) {
  size_t n = strlen(name);
  for (const char *at = b->n ? strstr(b->at, name) : NULL; at; at = strstr(at + 1, name))
    if ((at == b->at || at[-1] == ' ') && (!at[n] || at[n] == ',')) return;
  buffer_printf(b, "%s%s", b->n ? ", " : "", name);
}

// Does what the case gives fix the dimension? Then only what it allows is added.
static bool is_fixed(Sweeper *w, size_t dim) {
  bool fixed = false;
  int64_t value = w->base.dims[dim].value, length;
  schedc_bind_info b;
  for (size_t t = 0; t < w->base.tensor_count; t++) {
    if (!elements_of(w, t, &b)) continue;
    bool changes = grows(w, t, dim, &length);
    if (!changes && !may_index(w, t, &b, value)) continue;
    fixed = true;
    if (length == (int64_t)b.count + 1 && are_offsets(b.values, b.count)) add_empty(w, value);
    note(&w->out->why, w->base.tensors[t].name);
  }
  if (fixed) note(&w->out->left, w->name);
  return fixed;
}

// ---- all of them

// Has no tensor a negative extent there? No launch has one.
static bool has_shapes(Sweeper *w, size_t dim, int64_t value) {
  int64_t shape[SCHEDC_MAX_RANK], was = w->base.dims[dim].value;
  bool all = true;
  w->base.dims[dim].value = value;
  for (size_t t = 0; t < w->base.tensor_count; t++)
    all &= data_shape(&w->base, w->s->context, t, shape);
  w->base.dims[dim].value = was;
  return all;
}

static void sweep_dims(Sweeper *w, bool persistent) {
  for (size_t i = 0; i < w->base.dim_count; i++) {
    w->name = w->base.dims[i].name;
    if (!is_fixed(w, i)) {
      for (int64_t n = 0; n < 2; n++)
        if (has_shapes(w, i, n)) add_point(w, n);
      explore(w);
      add_points(w, persistent);
    }
    forget(w);
  }
}

// The grid is the caller's: how far it reaches, other arguments say as well.
static bool changes_grid(const Sweeper *w) {
  const schedc_fills *first = NULL;
  for (size_t i = 0; i < w->probes; i++) {
    const schedc_fills *f = w->probe[i].fills;
    for (size_t r = 0; f && first && r < w->rings; r++)
      if (f[r].tiles != first[r].tiles) return true;
    if (!first) first = f;
  }
  return false;
}

static void sweep_scalars(Sweeper *w) {
  schedc_scalar_info info = SCHEDC_SCALAR_INFO_INIT;
  for (size_t i = 0; schedc_scalar_at(w->kernel, i, &info) == SCHEDC_OK; i++) {
    if (info.type != SCHEDC_I32) continue;
    w->name = info.name;
    explore(w);
    if (!changes_grid(w) && add_points(w, false)) {
      add_point(w, 0);
      add_point(w, 1);
    }
    forget(w);
  }
}

void sweep_open(Sweep *out, Session *s, const schedc_kernel *kernel, size_t kase, uint64_t limit) {
  Sweeper w = {.out = out,
               .s = s,
               .kernel = kernel,
               .kase = kase,
               .rings = schedc_ring_count(kernel),
               .limit = limit};
  *out = (Sweep){0};
  const Pairs none = {0};
  if (!data_open(&w.base, s, kernel, kase, NULL, &none) && data_elements(&w.base) <= limit) {
    sweep_dims(&w, schedc_is_persistent(kernel));
    sweep_scalars(&w);
  }
  data_close(&w.base);
}

void sweep_close(Sweep *w) {
  for (size_t i = 0; i < w->point.n; i++) {
    free((char *)w->point.at[i].name);
    free((char *)w->point.at[i].value);
  }
  free(w->point.at);
  free(w->left.at);
  free(w->why.at);
}
