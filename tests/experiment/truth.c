// truth.c - what really happens: a program run with given values. In: a program, its dimensions and
// elements. Out: whether some role waits for ever, or the roles disagree in a tile.
//
// The idea: with all values given, what an instance does is a plain list of operations, whatever
// the others do. The lists of all tiles are put one after the other, or each tile is a CTA of its
// own, and then they are played (played.c). No part of the compiler is used.
#include "truth.h"

#include <string.h>

Truth *truth_open(Sc *sc) { return NEW(sc, Truth); }

// ---- values

static i64 floor_div(i64 a, i64 b) { return a / b - (a % b < 0); }

// Elements of the table under a rule: all alike, rising, or at random and small.
static i64 of_table(const Setting *s, int table, i64 at) {
  static const i64 rise[] = {0, 1, 64, 100};
  u32 rule = s->table;
  if (at < 0 || at >= TABLE) return 0;
  if (s->listed) return s->list[table][at];
  if (rule < COUNT(rise)) return rise[rule] * at;
  u32 h = ((u32)at + 1) * 2654435761u ^ (rule + 50 * (u32)table) * 2246822519u;
  h = (h ^ h >> 15) * 3266489917u;
  return (h >> 16) % (rule % 3 ? 2 : 8);
}

// … and of the list of two dimensions, whose rows differ.
static i64 of_square(const Setting *s, i64 row, i64 column) {
  if (row < 0 || row >= SIDE || column < 0 || column >= SIDE) return 0;
  if (s->listed) return s->square[row * SIDE + column];
  return (of_table(s, TABLES, column) + of_table(s, TABLES + 1, row) * (1 + column)) % 9;
}

static i64 combined(XKind kind, i64 a, i64 b) {
  switch (kind) {
    case E_ADD: return a + b;
    case E_SUB: return a - b;
    case E_MUL: return a * b;
    case E_DIV: return floor_div(a, b);
    case E_MOD: return a - b * floor_div(a, b);
    case E_MIN: return a < b ? a : b;
    case E_MAX: return a > b ? a : b;
    case E_LT: return a < b;
    case E_LE: return a <= b;
    case E_EQ: return a == b;
    case E_NE: return a != b;
    case E_AND: return a && b;
    case E_OR: return a || b;
    default: return !a;
  }
}

static i64 value(Truth *t, const Ex *x) {
  switch (x->kind) {
    case E_INT: return x->n;
    case E_DIM: return t->s->dim[x->n];
    case E_TILE: return t->axis[x->n];
    case E_INSTANCE: return t->instance;
    case E_LOOP: return t->var[x->n];
    case E_ELEMENT: return t->s->element[x->n];
    case E_TABLE:
      if (x->b) return of_square(t->s, value(t, x->a), value(t, x->b));
      return of_table(t->s, x->n, value(t, x->a));
    default: break;
  }
  return combined(x->kind, value(t, x->a), x->b ? value(t, x->b) : x->n);
}

// ---- the grid

// With the tiles that fill up clusters.
static int extent(const Program *p, int axis) {
  int n = p->axis[axis].extent;
  return p->cluster && axis == p->cluster_axis ? (n + 1) / 2 * 2 : n;
}

static int tiles(const Program *p) {
  int n = 1;
  for (int a = 0; a < p->axes; a++) n *= extent(p, a);
  return n;
}

// Where tile number t->tile lies. Units (tiles, or clusters of them) come section by section, those
// of the last axis slowest, and within a section the first axis is fastest.
static void find_tile(Truth *t) {
  const Program *p = t->p;
  int units[MAX_AXES], first[MAX_AXES] = {0}, size[MAX_AXES];
  int rest = t->tile / (1 + p->cluster), rank = t->tile % (1 + p->cluster);
  for (int a = 0; a < p->axes; a++) {
    bool wide = p->cluster && a == p->cluster_axis;
    size[a] = units[a] = extent(p, a) / (1 + wide);
  }
  for (int a = p->axes - 1; a >= 0; a--) {
    int by = p->axis[a].by, whole = by;
    if (!by) continue;
    for (int i = 0; i < p->axes; i++) whole *= i == a ? 1 : size[i];
    first[a] = rest / whole * by;
    rest %= whole;
    if (size[a] = by, first[a] + by > units[a]) size[a] = units[a] - first[a];
  }
  t->surplus = false;
  for (int a = 0; a < p->axes; a++) {
    bool wide = p->cluster && a == p->cluster_axis;
    int at = first[a] + rest % size[a];
    rest /= size[a];
    if (p->axis[a].reversed) at = units[a] - 1 - at;
    t->axis[a] = wide ? 2 * at + rank : at;
    t->surplus |= t->axis[a] >= p->axis[a].extent;
  }
}

// The tile by all axes but that of the turn over CTAs.
static int others(const Truth *t) {
  int n = 0;
  for (int a = 0; a < t->p->axes; a++)
    if (a != t->p->order_axis) n = n * extent(t->p, a) + t->axis[a];
  return n;
}

// ---- what each does

static void list(Truth *t, Player *q, const St *s);

static void put(Truth *t, Player *q, OpKind kind, int ref) {
  bool turn = kind >= TAKE;
  u32 *n = turn ? NULL : &t->number[q->cta][q->role][ref][kind];
  u32 number = turn ? 0 : *n + t->count[ref][kind];
  t->count[turn ? MAX_RINGS + ref : ref][kind]++;
  if (q->n == (t->many ? SEARCHED_OPS : MOST_OPS) ||
      number >= (t->many ? SEARCHED_NUMBERS : MOST_NUMBERS)) {
    t->wrong = true;
    return;
  }
  if (number >= t->most_number) t->most_number = number + 1;
  q->op[q->n++] = (Act){(u8)kind, (u8)ref, (u16)number};
}

// What is outside of the tensor is not touched, and nothing by a tile that fills up a cluster.
static void touch(Truth *t, Player *q, Touch how, int tensor, int ring, const St *s) {
  Shape shape = t->p->tensor[tensor];
  i64 x = value(t, s->x), y = s->y ? value(t, s->y) : 0;
  i64 rows = shape == SHAPE_SQUARE ? PLACES : shape == SHAPE_CROSSED ? CROSS : ROWS;
  t->wrong |= q->n + 3 > (t->many ? SEARCHED_OPS : MOST_OPS);
  if (t->surplus || t->wrong) return;
  if (how > TOUCH_GET) q->op[q->n++] = (Act){ISSUE, (u8)(tensor + 4 * ring), 0};
  if (y < 0 || y >= PLACES) return;
  for (int i = 0; i <= (shape == SHAPE_FLAT); i++) {
    if (x + i < 0 || x + i >= rows) continue;
    i64 place = shape == SHAPE_SQUARE ? x * PLACES + y : x + i;
    if (shape == SHAPE_CROSSED && s->reversed) place += CROSS;
    q->op[q->n++] = (Act){(u8)(ACCESS + how), (u8)(tensor + 4 * ring), (u16)place};
  }
}

// (Who takes a key that there is not waits for ever.)
static void put_key(Truth *t, Player *q, OpKind kind, const Ex *of) {
  const Ex *keys = t->p->keys;
  i64 key = of ? value(t, of) : 0, n = keys ? value(t, keys) : 1;
  bool exists = key >= 0 && key < n;
  t->wrong |= q->n == (t->many ? SEARCHED_OPS : MOST_OPS) || (exists && key >= MOST_KEYS);
  if (t->wrong) return;
  key += (i64)others(t) * MOST_KEYS;
  int at = t->axis[t->p->order_axis];
  if (exists && kind == PASS_KEY && at < extent(t->p, t->p->order_axis) - 1)
    t->twice |= t->passes[key][t->tile]++ > 0;
  q->op[q->n++] = (Act){(u8)kind, (u8)at, exists ? (u16)key : KEYS};
}

static void settle(Truth *t, Player *q, OpKind kind, int tensor, int keep) {
  t->wrong |= q->n == (t->many ? SEARCHED_OPS : MOST_OPS);
  if (!t->wrong) q->op[q->n++] = (Act){(u8)kind, (u8)tensor, (u16)keep};
}

// Of the newest stage that is filled or held. (What is outside of a stage is not looked at.)
static void cell(Truth *t, Player *q, const St *s) {
  const u32 *n = t->count[s->ref], *before = t->number[q->cta][q->role][s->ref];
  OpKind begun = n[ACQUIRE] > n[COMMIT] ? ACQUIRE : WAIT;
  u32 number = before[begun] + n[begun] - 1;
  int cells = cells_in(t->p, s->ref), stages = t->p->ring[s->ref].stages;
  i64 x = s->x ? value(t, s->x) : 0;
  if (before[begun] + n[begun] == 0 || t->p->ring[s->ref].shared) return;
  t->wrong |= x < 0 || x >= cells || q->n + CELLS > (t->many ? SEARCHED_OPS : MOST_OPS);
  for (int i = 0; i < (s->x ? 1 : cells) && !t->wrong; i++)
    q->op[q->n++] = (Act){s->touch == TOUCH_LOAD ? CELL_LOAD : CELL_STORE, (u8)s->ref,
                          (u16)(number % (u32)stages * CELLS + (u32)(x + i))};
}

static void rounds(Truth *t, Player *q, const St *s) {
  i64 from = value(t, s->x), to = value(t, s->y), was = t->var[s->ref];
  for (i64 i = 0; i < to - from && !t->wrong; i++) {
    t->var[s->ref] = s->reversed ? to - 1 - i : from + i;
    list(t, q, s->body);
  }
  t->var[s->ref] = was;
}

static void list(Truth *t, Player *q, const St *s) {
  static const OpKind begin[] = {ACQUIRE, WAIT, TAKE}, end[] = {COMMIT, RELEASE, PASS};
  static const OpKind alone[] = {ACQUIRE, COMMIT, WAIT, RELEASE};
  for (; s && !t->wrong; s = s->next) {
    if (s->kind == S_FOR) {
      rounds(t, q, s);
    } else if (s->kind == S_IF) {
      list(t, q, value(t, s->x) ? s->body : s->other);
    } else if (s->kind == S_TOUCH) {
      touch(t, q, s->touch, s->ref, s->with, s);
    } else if (s->kind == S_SETTLE) {
      settle(t, q, s->reversed ? SETTLE_READ : SETTLE, s->ref, s->with);
    } else if (s->kind == S_CELL) {
      cell(t, q, s);
    } else if (s->kind == S_ORDER) {
      put_key(t, q, TAKE_KEY, s->x);
      list(t, q, s->body);
      put_key(t, q, PASS_KEY, s->y);
    } else if (s->kind == S_TAKE_KEY || s->kind == S_PASS_KEY) {
      put_key(t, q, s->kind == S_TAKE_KEY ? TAKE_KEY : PASS_KEY, s->x);
    } else if (s->kind >= S_ACQUIRE) {
      put(t, q, alone[s->kind - S_ACQUIRE], s->ref);
    } else {
      put(t, q, begin[s->kind], s->ref);
      list(t, q, s->body);
      if (s->kind == S_FILL && s->x) touch(t, q, TOUCH_GET, s->with, s->ref, s);
      put(t, q, end[s->kind], s->ref);
    }
  }
}

// ---- who takes part

static bool same(const Ex *x, const Ex *y);

// max(x, x), x + 0 and the like are x.
static const Ex *bare(const Ex *x) {
  for (;;) {
    bool extreme = x->kind == E_MIN || x->kind == E_MAX, sum = x->kind == E_ADD;
    bool none = (sum || x->kind == E_SUB) && x->b->kind == E_INT && !x->b->n;
    if ((extreme && same(x->a, x->b)) || none) x = x->a;
    else if (sum && x->a->kind == E_INT && !x->a->n) x = x->b;
    else return x;
  }
}

static bool same(const Ex *x, const Ex *y) {
  if (!x || !y) return x == y;
  x = bare(x);
  y = bare(y);
  return x->kind == y->kind && x->n == y->n && same(x->a, y->a) && same(x->b, y->b);
}

// x - x, x < x and the like.
static bool of_itself(const Ex *x, i64 *out) {
  bool compares = x->kind == E_SUB || (x->kind >= E_LT && x->kind <= E_NE);
  *out = x->kind == E_LE || x->kind == E_EQ;
  return compares && x->b && same(x->a, x->b);
}

// What an expression is for all values: a truth's 0 or 1, an integer's own; false: it depends.
static bool is_fixed(const Ex *x, i64 *out) {
  i64 a = 0, b = 0;
  if (x->kind >= E_DIM && x->kind <= E_TABLE) return false;
  if (of_itself(x, out)) return true;
  if (!x->a) return *out = x->n, true;
  bool fixed_a = is_fixed(x->a, &a), fixed_b = !x->b || is_fixed(x->b, &b);
  bool decides = x->kind == E_OR, logic = x->kind == E_AND || x->kind == E_OR;
  if (logic && ((fixed_a && a == decides) || (fixed_b && b == decides)))
    return *out = decides, true;
  if (!fixed_a || !fixed_b) return false;
  return *out = combined(x->kind, a, x->b ? b : x->n), true;
}

// (A block that can never run, whatever the values are, is not there.)
static void note_use(Truth *t, int role, const St *s) {
  for (; s; s = s->next) {
    i64 x, y;
    bool fixed = s->x && is_fixed(s->x, &x) && (!s->y || is_fixed(s->y, &y));
    if (fixed && s->kind == S_FOR && x >= y) continue;
    if (fixed && s->kind == S_IF) {
      note_use(t, role, x ? s->body : s->other);
      continue;
    }
    bool ring = s->kind <= S_RELEASE && s->kind != S_TURN && s->kind != S_ORDER;
    bool fill = s->kind == S_FILL || s->kind == S_ACQUIRE, drain = s->kind == S_DRAIN;
    if (s->kind == S_TURN) t->taken[s->ref] = true;
    if (ring) t->fills[role][s->ref] |= fill;
    if (ring) t->drains[role][s->ref] |= drain || s->kind == S_WAIT;
    note_use(t, role, s->body);
    note_use(t, role, s->other);
  }
}

static void seat(Truth *t, int turn, int first) {
  const Program *p = t->p;
  t->seats[turn] = 0;
  for (int i = first; i < t->players; i++) t->player[i].seat[turn] = -1;
  for (int m = 0; m < p->turn[turn].members; m++)
    for (int i = first; i < t->players; i++)
      if (t->player[i].role == p->turn[turn].member[m]) t->player[i].seat[turn] = t->seats[turn]++;
}

static void cast(Truth *t) {
  const Program *p = t->p;
  memset(t->taken, 0, sizeof t->taken);
  memset(t->fills, 0, sizeof t->fills);
  memset(t->drains, 0, sizeof t->drains);
  t->players = 0;
  for (int r = 0; r < p->roles; r++) note_use(t, r, p->role[r].body);
  t->tiles = !p->tiles ? 1 : tiles(p);
  t->ctas = t->apart ? t->tiles : 1 + p->cluster;
  for (int cta = 0; cta < t->ctas; cta++) {
    int first = t->players;
    for (int r = 0; r < p->roles; r++) {
      for (int i = 0; i < p->role[r].instances; i++) {
        Player *q = &t->player[t->players++];
        q->role = r;
        q->instance = i;
        q->cta = cta;
      }
    }
    for (int i = 0; i < p->turns; i++) seat(t, i, first);
  }
}

// ---- do they agree in a tile?

static u32 of_ring(const Truth *t, int ring, int role, bool *even, u32 first) {
  const u32 *n = t->count[ring];
  u32 has = t->fills[role][ring] ? n[COMMIT] : n[WAIT];
  *even &= !t->fills[role][ring] || n[ACQUIRE] == n[COMMIT];
  *even &= !t->drains[role][ring] || (n[WAIT] == has && n[RELEASE] == has);
  *even &= first == UINT32_MAX || t->p->ring[ring].owner >= 0 || first == has;
  return has;
}

static bool has_dealt_member(const Program *p, int turn) {
  for (int m = 0; m < p->turn[turn].members; m++)
    if (p->role[p->turn[turn].member[m]].dealt) return true;
  return false;
}

// Adds the list of one tile to each player that takes part in it.
static bool tile(Truth *t) {
  const Program *p = t->p;
  u32 ring[MAX_RINGS], turn[MAX_TURNS];
  bool even = true;
  find_tile(t);
  memset(ring, 0xff, sizeof ring);
  memset(turn, 0xff, sizeof turn);
  for (int i = 0; i < t->players; i++) {
    Player *q = &t->player[i];
    const Actor *a = &p->role[q->role];
    if (q->cta != t->tile % t->ctas) continue;
    if (a->dealt && t->tile / t->ctas % a->instances != q->instance) continue;
    t->instance = q->instance;
    memset(t->count, 0, sizeof t->count);
    list(t, q, a->body);
    for (int r = 0; r < p->rings; r++)
      if (t->fills[q->role][r] || t->drains[q->role][r])
        ring[r] = of_ring(t, r, q->role, &even, ring[r]);
    for (int n = 0; n < p->turns; n++) {
      const u32 *of = t->count[MAX_RINGS + n];
      if (q->seat[n] < 0) continue;
      even &= of[TAKE] == of[PASS] && (turn[n] == UINT32_MAX || turn[n] == of[TAKE]);
      even &= !t->taken[n] || !has_dealt_member(p, n) || of[TAKE] == 1;
      turn[n] = of[TAKE];
    }
    bool last = a->dealt || q->instance == a->instances - 1;
    for (int r = 0; r < p->rings && last; r++)
      for (int k = 0; k < TAKE; k++) t->number[q->cta][q->role][r][k] += t->count[r][k];
  }
  bool second = p->cluster && t->tile % 2;
  for (int r = 0; r < p->rings && second; r++)
    even &= !p->ring[r].shared || ring[r] == t->fills_before[r];
  memcpy(t->fills_before, ring, sizeof ring);
  return even;
}

// Makes the lists. False: the roles disagree in some tile.
static bool make_lists(Truth *t) {
  bool even = true;
  for (int i = 0; i < t->players; i++) t->player[i].n = 0;
  memset(t->number, 0, sizeof t->number);
  t->wrong = t->twice = false;
  memset(t->passes, 0, sizeof t->passes);
  t->most_number = 0;
  for (t->tile = 0; t->tile < t->tiles && !t->wrong; t->tile++) even &= tile(t);
  return even;
}

static bool allowed(const Program *p, const Setting *s) {
  for (int i = 0; i < p->dims; i++)
    if (s->dim[i] < p->least[i]) return false;
  return !p->ordered || s->dim[0] <= s->dim[1];
}

Fate truth_prepare(Truth *t, const Program *p, const Setting *s) {
  if (!allowed(p, s)) return FATE_EXCLUDED;
  t->p = p;
  t->s = s;
  cast(t);
  bool even = make_lists(t);
  t->wrong |= t->timed && t->most_number > TIMED_NUMBERS;
  if (t->wrong) return FATE_LONG;
  if (t->twice) return FATE_STUCK;
  return even ? FATE_FINE : FATE_UNEVEN;
}
