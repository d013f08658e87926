// input.c - test inputs: distributions under which kernels go wrong in different ways. In: an
// element type, a shape with strides, a seed. Out: values that depend on the seed and the element's
// index alone, so that they are the same on every machine. Normal numbers are sums of uniform ones
// (Irwin-Hall), not libm's logarithms.
#include <math.h>
#include <string.h>

#include "runtime/run.h"

enum { MAX_THREADS = 64, WORTH_A_THREAD = 1 << 16, RAMP = 32 };

const char *const sc_input_name[INPUT_COUNT] = {
    [INPUT_NORMAL] = "normal", [INPUT_OUTLIERS] = "outliers",   [INPUT_LARGE] = "large",
    [INPUT_EQUAL] = "equal",   [INPUT_SPIKE] = "spike",         [INPUT_SINK] = "sink",
    [INPUT_RAMP] = "ramp",     [INPUT_RAMP_DOWN] = "ramp-down",
};

const char *const sc_input_what[INPUT_COUNT] = {
    [INPUT_NORMAL] = "normal numbers of variance 1",
    [INPUT_OUTLIERS] = "the same; one in a thousand has ten times another normal number added",
    [INPUT_LARGE] = "normal, times 8",
    [INPUT_EQUAL] = "rows (along the last dimension) that are all the same",
    [INPUT_SPIKE] = "normal, divided by 8; one element of each row is 16",
    [INPUT_SINK] =
        "normal; the first row of each sequence (the second dimension) is large and positive",
    [INPUT_RAMP] =
        "normal, times 1 to 32 from first to last along the longest dimension but the last",
    [INPUT_RAMP_DOWN] =
        "the same, times 32 to 1: for loops that go from the last tile to the first",
};

// The n-th number of the stream that begins with this seed.
static u64 draw(u64 seed, u64 n) { return sc_random(&(u64){seed + n * SC_RANDOM_STEP}); }

// Twelve uniform 16-bit numbers: mean 0, variance 1, |x| < 6.
static double normal(u64 seed, u64 n) {
  i64 sum = 0;
  for (u64 i = 0; i < 3; i++) {
    u64 z = draw(seed, 3 * n + i);
    sum += (i64)(z & 0xffff) + (i64)(z >> 16 & 0xffff) + (i64)(z >> 32 & 0xffff) + (i64)(z >> 48);
  }
  return (double)(2 * sum - 12 * 65535) / 131072;
}

// From 1 to RAMP, in equal steps.
static double ramp(u64 row, u64 rows) {
  return rows > 1 ? 1 + (RAMP - 1) * (double)row / (double)(rows - 1) : 1;
}

// Element n, in row `row` of `rows`, of `width` elements.
static double value(InputKind kind, u64 seed, u64 n, u64 row, u64 rows, u64 width) {
  double x = normal(seed, n);
  u64 other = seed ^ 0x6a09e667f3bcc908u;
  switch (kind) {
    case INPUT_OUTLIERS: return draw(other, n) % 1000 ? x : x + 10 * normal(other + 1, n);
    case INPUT_LARGE: return 8 * x;
    case INPUT_EQUAL: return normal(seed, n % width);
    case INPUT_SPIKE: return n % width == draw(other, row) % width ? 16 : x / 8;
    case INPUT_SINK: return row == 0 ? 4 * fabs(x) + 2 : x;
    case INPUT_RAMP: return x * ramp(row, rows);
    case INPUT_RAMP_DOWN: return x * ramp(rows - 1 - row, rows);
    default: return x;
  }
}

// A stretch of elements, for a thread.
typedef struct Fill {
  Elem elem;
  void *at;
  const Extent *extent;
  size_t from, to;
  InputKind kind;
  u64 seed, width, inner, along;  // element i is in row i / inner % along
} Fill;

static void *fill(void *arg) {
  const Fill *f = arg;
  bool contiguous = sc_run_length(f->extent) == sc_elements(f->extent);
  for (size_t i = f->from; i < f->to; i++) {
    double v = f->elem == EL_I32
                   ? (double)(draw(f->seed, i) % 16)
                   : value(f->kind, f->seed, i, i / f->inner % f->along, f->along, f->width);
    sc_set_elem(f->elem, f->at, contiguous ? (i64)i : sc_where(f->extent, i), v);
  }
  return NULL;
}

static void fill_in_parallel(const Fill *all) {
  Fill part[SC_MAX_THREADS];
  size_t n = all->to / WORTH_A_THREAD, most = sc_threads(0, SC_MAX_THREADS);
  if (n > most) n = most;
  if (n < 1) n = 1;
  for (size_t t = 0; t < n; t++) {
    part[t] = *all;
    part[t].from = all->to / n * t;
    if (t + 1 < n) part[t].to = all->to / n * (t + 1);
  }
  sc_on_threads((u32)n, fill, part, sizeof *part);
}

// The dimension along which rows are counted, if not all of them are: of INPUT_SINK the second (the
// sequence), so that the first key of each batch draws all attention; of ramps the longest but the
// last, which is the sequence wherever it stands. 0-based; rank: none.
static size_t counted_along(InputKind kind, const i64 *shape, size_t rank) {
  size_t longest = 0;
  if (kind == INPUT_SINK) return rank > 2 ? 1 : rank;
  if (kind < INPUT_RAMP || rank < 2) return rank;
  for (size_t i = 1; i + 1 < rank; i++)
    if (shape[i] > shape[longest]) longest = i;
  return longest;
}

// A row is the last dimension. Integers are left to cases: they get small ones.
void sc_fill_input(Elem elem, void *at, const Extent *extent, InputKind kind, u64 seed) {
  size_t n = sc_elements(extent), rank = extent->rank;
  const i64 *shape = extent->shape;
  u64 width = rank && shape[rank - 1] > 0 ? (u64)shape[rank - 1] : 1, inner = width,
      along = n / width;
  size_t dim = counted_along(kind, shape, rank);
  if (dim < rank && n) {
    inner = 1, along = (u64)shape[dim];
    for (size_t i = dim + 1; i < rank; i++) inner *= (u64)shape[i];
  }
  fill_in_parallel(&(Fill){elem, at, extent, 0, n, kind, seed, width, inner, along});
}

// Steps of a rising list are small integers, and are stretched over the range.
static u64 step_of(u64 seed, size_t i) { return i ? draw(seed, i) % 4 : 0; }

void sc_fill_integers(void *at, const Extent *extent, i64 least, i64 end, bool rising, u64 seed) {
  const size_t n = sc_elements(extent);
  const u64 span = end > least ? (u64)(end - least) : 1;
  u64 all = 0, sum = 0;
  for (size_t i = 0; rising && i < n; i++) all += step_of(seed, i);
  for (size_t i = 0; i < n; i++) {
    u64 more = draw(seed, i) % span;
    sum += step_of(seed, i);
    if (rising) more = (u64)((double)(span - 1) * (all ? (double)sum / (double)all : 0));
    sc_set_elem(EL_I32, at, sc_where(extent, i), (double)(least + (i64)more));
  }
}

// Doubling what is filled: as fast as memory is.
void sc_fill_nan(Elem elem, void *at, size_t n) {
  size_t bytes = n * sc_elem[elem].bytes;
  if (!n) return;
  sc_set_elem(elem, at, 0, elem == EL_I32 ? INT32_MIN : NAN);
  for (size_t done = sc_elem[elem].bytes; done < bytes; done *= 2) {
    memcpy((char *)at + done, at, done < bytes - done ? done : bytes - done);
  }
}

bool sc_fill_all_nan(Elem elem, void *at, const Extent *extent, schedc_progress progress,
                     void *user) {
  enum { AT_ONCE = 1 << 24 };
  size_t n = sc_elements(extent), run = sc_run_length(extent), asked = 0;
  for (size_t i = 0, part; i < n; i += part) {
    part = run - i % run < AT_ONCE ? run - i % run : AT_ONCE;
    sc_fill_nan(elem, (char *)at + sc_where(extent, i) * sc_elem[elem].bytes, part);
    if (i + part - asked < AT_ONCE) continue;
    asked = i + part;
    if (progress && progress(user, 0)) return false;
  }
  return true;
}
