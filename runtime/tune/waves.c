// waves.c - a launch, of timelines of a few of its tiles. In: a placed kernel, bound tensors, the
// machine. Out: its cycles, and what it uses. Tiles differ only by the grid indices that bounds and
// conditions depend on: of these tiles the shortest and the longest are run, and the others lie
// between them as their numbers of products do. A CTA that takes several tiles works on the next
// one before this one ends: what it costs is how much later the end comes.
#include "runtime/cuda/build.h"
#include "runtime/cpu/machine.h"
#include "runtime/tune/timeline.h"

#include <string.h>

enum { MOST_ROWS = 8, ENOUGH = 512, MOST_KINDS = 512, MOST_UNITS = 1 << 16 };
#define LOADED 0.72  // the clock under load, of the highest

// Tiles (or clusters of them) that have the indices which matter in common.
typedef struct Kind {
  i64 axis[SC_MAX_AXES];  // of the cluster's first CTA
  double length;          // products
} Kind;

// A kind that has been run: cycles of a unit alone and behind another, bytes, use of each pipe.
enum { FIRST, NEXT, BYTES, USE, FIGURES = USE + PIPE_COUNT };
typedef struct Probe {
  const Kind *kind;
  double figure[FIGURES];
} Probe;

typedef struct Launcher {
  Sc *sc;
  const Kernel *k;
  const Binding *b;
  const schedc_machine *m;
  Grid grid;
  Tracer tracer;
  Cost **cost;
  bool *alike;  // by role: do its instances run the same operations?
  bool matters[SC_MAX_AXES];
  u64 kinds, step;  // kinds that there are; of which every step-th is looked at
  Kind *kind;
  u32 looked;
  u32 residents;  // CTAs that share a multiprocessor
  u64 slots;      // places where a unit runs
  double link;
  Probe probe[2];  // the shortest and the longest, if they differ
  u32 probes;
} Launcher;

// ---- which tiles there are

// Loops and conditions ask for an element of a tensor: is its data there?
static bool has_data(const Launcher *l, u32 view) {
  u32 buf = l->k->view.at[view].buf;
  const Buf *tensor = &l->k->buf.at[buf];
  if (l->b->buf[buf].at) return true;
  sc_report(l->sc, D_T_NULL, tensor->span,
            "loops or conditions of '%s' depend on tensor '%s', which has no data", l->k->name,
            tensor->name);
  return false;
}

// The axes that loops and conditions depend on; false: data is missing.
static bool find_axes(Launcher *l) {
  Below below = x_below(l->sc, l->k);
  x_begin(&below, 0);
  for (u32 r = 0; r < l->k->role.n; r++) {
    const Code *code = &l->k->role.at[r].code;
    for (u32 i = 0; i < code->n; i++) {
      const Ins *ins = &code->at[i];
      if (ins->op == OP_IF) x_from(&below, ins->arg[0]);
      if (ins->op != OP_FOR) continue;
      x_from(&below, ins->arg[1]);
      x_from(&below, ins->arg[2]);
    }
  }
  bool there = true;
  for (Xid x; (x = x_next(&below));) {
    const Expr *e = &l->k->expr.at[x];
    if (e->op == X_AXIS) l->matters[e->ref] = true;
    if (e->op == X_LOAD) there &= has_data(l, e->ref);
  }
  return there;
}

static i64 units_of(const Launcher *l, u32 axis) {
  return l->matters[axis] ? l->grid.units[axis] : 1;
}

static void kind_axes(const Launcher *l, u64 number, i64 *axis) {
  for (u32 a = 0; a < l->grid.axes; a++) {
    u64 n = (u64)units_of(l, a);
    axis[a] = (i64)(number % n) * l->k->axis.at[a].cluster;
    number /= n;
  }
}

static void set_tile(Launcher *l, const i64 *axis, u32 rank) {
  for (u32 a = 0; a < l->grid.axes; a++) {
    u32 ctas = l->k->axis.at[a].cluster;
    l->tracer.env.axis[a] = axis[a] + rank % ctas;
    rank /= ctas;
  }
}

static void find_kinds(Launcher *l) {
  l->kinds = 1;
  for (u32 a = 0; a < l->grid.axes; a++) l->kinds *= (u64)units_of(l, a);
  l->step = (l->kinds + MOST_KINDS - 1) / MOST_KINDS;
  l->looked = (u32)((l->kinds + l->step - 1) / l->step);
  l->kind = NEWS(l->sc, Kind, l->looked);
  for (u32 i = 0; i < l->looked; i++) {
    kind_axes(l, i * l->step, l->kind[i].axis);
    for (u32 c = 0; c < l->grid.ctas; c++) {
      set_tile(l, l->kind[i].axis, c);
      l->kind[i].length += sc_tile_products(&l->tracer);
    }
  }
}

// ---- timelines

static Trace *traces_of(Launcher *l, const Kind *kind, u32 tiles, u32 ctas) {
  u32 agents = sc_agents(l->k), n = 0;
  Trace *trace = NEWS(l->sc, Trace, tiles * ctas * agents);
  for (u32 c = 0; c < ctas; c++) {
    set_tile(l, kind->axis, l->grid.ctas > 1 ? c : 0);
    for (u32 r = 0; r < l->k->role.n; r++) {
      for (u32 i = 0; i < l->k->role.at[r].instances; i++, n++) {
        l->tracer.env.inst = i;
        trace[n] = i && l->alike[r] ? trace[n - 1] : sc_trace(&l->tracer, r);
      }
    }
  }
  for (u32 t = 1; t < tiles; t++) memcpy(trace + t * n, trace, n * sizeof *trace);
  return trace;
}

// Instances among which tiles are dealt.
static u32 dealt(const Kernel *k) {
  u32 n = 1;
  for (u32 r = 0; r < k->role.n; r++)
    if (k->role.at[r].one_tile && k->role.at[r].instances > n) n = k->role.at[r].instances;
  return n;
}

// How many tiles are run in a row, until they follow each other evenly: more of short ones, of
// which several are under way at a time.
static u32 tiles_in_a_row(const Launcher *l, const Trace *trace, u32 agents) {
  u32 longest = 1, rows;
  if (l->k->grid == GRID_PLAIN) return 1;
  for (u32 i = 0; i < agents; i++)
    if (trace[i].n > longest) longest = trace[i].n;
  rows = 2 + ENOUGH / longest;
  return dealt(l->k) * (rows < MOST_ROWS ? rows : MOST_ROWS);
}

static void run_probe(Launcher *l, Probe *s) {
  u32 ctas = l->grid.ctas > 1 ? l->grid.ctas : l->residents, deal = dealt(l->k);
  const Trace *trace = traces_of(l, s->kind, MOST_ROWS * deal, ctas);
  u32 tiles = tiles_in_a_row(l, trace, ctas * sc_agents(l->k));
  Scene scene = {.k = l->k,
                 .machine = l->m,
                 .cost = (Cost *const *)l->cost,
                 .ctas = ctas,
                 .cluster = l->grid.ctas > 1,
                 .link = l->link,
                 .tiles = tiles,
                 .trace = trace};
  Ran ran = sc_timeline(l->sc, &scene);
  if (!ran.finished) sc_unwind(l->sc, SCHEDC_EFAULT);
  u32 last = tiles - 1, half = tiles / 2 / deal * deal;
  double units = tiles * (l->grid.ctas > 1 ? 1 : ctas);
  s->figure[FIRST] = ran.end[0];
  s->figure[NEXT] = half ? (ran.end[last] - ran.end[last - half]) / half : ran.end[0];
  s->figure[BYTES] = ran.bytes / units;
  for (u32 p = 0; p < PIPE_COUNT; p++) s->figure[USE + p] = ran.busy[p] / units;
}

// The shortest tile, and the longest.
static void choose_probes(Launcher *l) {
  const Kind *least = l->kind, *most = l->kind;
  for (u32 i = 1; i < l->looked; i++) {
    if (l->kind[i].length < least->length) least = &l->kind[i];
    if (l->kind[i].length > most->length) most = &l->kind[i];
  }
  l->probe[0].kind = least;
  l->probe[1].kind = most;
  l->probes = most->length > least->length ? 2 : 1;
}

// What lies between the two as a tile's length does between theirs.
static double between(const Launcher *l, double length, u32 figure) {
  const Probe *a = &l->probe[0], *b = &l->probe[1];
  if (l->probes == 1) return a->figure[figure];
  double part = (length - a->kind->length) / (b->kind->length - a->kind->length);
  return a->figure[figure] + part * (b->figure[figure] - a->figure[figure]);
}

// ---- rates that all multiprocessors share

// Of a unit of this kind.
static double bytes_of(Launcher *l, const Kind *kind) {
  u32 ctas = l->grid.ctas, n = 0;
  const Trace *trace = traces_of(l, kind, 1, ctas);
  double all = 0;
  for (u32 c = 0; c < ctas; c++) {
    for (u32 r = 0; r < l->k->role.n; r++) {
      const Role *role = &l->k->role.at[r];
      for (u32 i = 0; i < role->instances; i++, n++) {
        if (role->one_tile && i) continue;
        for (u32 j = 0; j < trace[n].n; j++) {
          u32 share = role->code.at[trace[n].at[j]].flags & INS_MULTICAST ? ctas : 1;
          all += l->cost[r][trace[n].at[j]].bytes / share;
        }
      }
    }
  }
  return all;
}

static double mean_length(const Launcher *l) {
  double all = 0;
  for (u32 i = 0; i < l->looked; i++) all += l->kind[i].length;
  return all / l->looked;
}

// Bytes that copies get in a cycle. What tiles ask for again is in the L2 cache.
static void find_link(Launcher *l) {
  const schedc_machine *m = l->m;
  const Kind *longest = l->probe[l->probes - 1].kind;
  double each = bytes_of(l, longest) * (longest->length ? mean_length(l) / longest->length : 1);
  double all = each * (double)l->grid.total, once = sc_moved_bytes(l->b, true);
  double cycles = LOADED * m->clock_mhz * 1e6, ctas = (double)l->grid.total * l->grid.ctas;
  double busy = ctas < m->multiprocessors ? ctas : m->multiprocessors;
  double l2 = m->l2_gbs * 1e9 / busy / cycles, memory = m->memory_gbs * 1e9 / busy / cycles;
  if (once > 0 && all > once) memory *= all / once;
  l->link = m->link_bytes;
  if (l2 < l->link) l->link = l2;
  if (memory < l->link) l->link = memory;
}

static void find_slots(Launcher *l) {
  const schedc_machine *m = l->m;
  const Kernel *k = l->k;
  u32 by_shared = m->shared_memory / (k->smem + 1024);
  u32 by_threads = m->threads / k->threads;
  u32 by_registers = m->registers / (sc_entry_registers(k) * k->threads);
  l->residents = by_shared < by_threads ? by_shared : by_threads;
  if (by_registers < l->residents) l->residents = by_registers;
  if (!l->residents || l->grid.ctas > 1 || k->grid != GRID_PLAIN) l->residents = 1;
  if (l->residents > SC_MAX_CTAS) l->residents = SC_MAX_CTAS;
  if (l->residents * sc_agents(k) > SC_MAX_AGENTS) l->residents = 1;
  if (l->residents > l->grid.total) l->residents = (u32)l->grid.total;
  l->slots = m->multiprocessors / l->grid.ctas * l->residents;
}

// ---- units in order

static const Kind *kind_of(const Launcher *l, u64 unit) {
  i64 axis[SC_MAX_AXES] = {0};
  u64 number = 0;
  sc_tile_axes(&l->grid, l->k, unit, 0, axis);
  for (u32 a = l->grid.axes; a-- > 0;) {
    i64 at = l->matters[a] ? axis[a] / l->k->axis.at[a].cluster : 0;
    number = number * (u64)units_of(l, a) + (u64)at;
  }
  return &l->kind[number / l->step];
}

// Lets the place that is free first (at[0]) be free `more` later: a heap.
static void sift(double *at, u64 n, double more) {
  double v = at[0] + more;
  u64 i = 0;
  for (u64 child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && at[child + 1] < at[child]) child++;
    if (at[child] >= v) break;
    at[i] = at[child];
  }
  at[i] = v;
}

// Places take units as they become free, or by a fixed stride.
static double fill_places(Launcher *l, u64 slots) {
  double *at = NEWS(l->sc, double, slots), last = 0;
  bool strided = l->k->grid == GRID_PERSISTENT;
  for (u64 u = 0; u < l->grid.total; u++) {
    double length = kind_of(l, u)->length;
    double cycles = between(l, length, u < slots ? FIRST : NEXT);
    if (strided) at[u % slots] += cycles;
    else sift(at, slots, cycles);
  }
  for (u64 i = 0; i < slots; i++)
    if (at[i] > last) last = at[i];
  return last;
}

static double cycles_of(Launcher *l) {
  u64 n = l->grid.total, slots = n < l->slots ? n : l->slots;
  double mean = mean_length(l), waves = (double)((n + slots - 1) / slots);
  double first = between(l, mean, FIRST), next = between(l, mean, NEXT);
  if (l->probes == 1) return first + (waves - 1) * next;
  if (n > MOST_UNITS) return first + (double)n / (double)slots * next;
  return fill_places(l, slots);
}

// ---- the launch

static void find_figures(Launcher *l) {
  find_kinds(l);
  find_slots(l);
  choose_probes(l);
  find_link(l);
  for (u32 i = 0; i < l->probes; i++) run_probe(l, &l->probe[i]);
}

bool sc_predict_kernel(Sc *sc, const Kernel *k, const Binding *b, const schedc_machine *m,
                       Forecast *out) {
  Launcher l = {.sc = sc, .k = k, .b = b, .m = m};
  *out = (Forecast){.bytes_once = sc_moved_bytes(b, true)};
  l.cost = NEWS(sc, Cost *, k->role.n + 1);
  l.alike = NEWS(sc, bool, k->role.n + 1);
  for (u32 r = 0; r < k->role.n; r++) {
    l.cost[r] = sc_costs(sc, k, r, m);
    l.alike[r] = sc_instances_alike(k, r);
  }
  sc_tracer(sc, &l.tracer, k, b);
  sc_grid(sc, &l.grid, k, &l.tracer.env);
  if (!find_axes(&l)) return false;
  if (!l.grid.total) return true;
  find_figures(&l);
  double mean = mean_length(&l), n = (double)l.grid.total;
  out->cycles = cycles_of(&l);
  out->waves = n / (double)l.slots;
  for (u32 p = 0; p < PIPE_COUNT; p++) out->use[p] = n * between(&l, mean, USE + p);
  out->bytes = n * between(&l, mean, BYTES);
  return true;
}
