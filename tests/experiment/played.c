// played.c - lists of operations played against one another. In: the lists of truth.c. Out: whether
// some instance waits for ever, and whether two accesses of a tensor race.
//
// The idea: an instance fills the n-th stage of a ring when all who drain it have released stage
// n - depth, and so on. Each instance knows how far in its list each other has come, at least (a
// vector clock): it learns that from those for whom it waits. An access whose list has not come so
// far in what a later one knows is in no order with it. Whether the order in which instances go on
// matters is tried by a search of all orders.
#include "truth.h"

#include <string.h>

static void forget(Truth *t, u32 (*told)[TIMES]) {
  size_t bytes = (size_t)(CLOCKS * t->players) * sizeof(u32);
  for (u32 n = 0; n < t->most_number; n++) memset(told[n], 0, bytes);
}

static void begin(Truth *t) {
  t->races = false;
  for (int i = 0; i < t->players; i++) {
    t->player[i].at = 0;
    memset(t->player[i].time, 0, sizeof t->player[i].time);
    memset(t->player[i].puts, 0, sizeof t->player[i].puts);
    memset(t->player[i].fills, 0, sizeof t->player[i].fills);
  }
  memset(t->token, 0, sizeof t->token);
  memset(t->key, 0, sizeof t->key);
  for (int cta = 0; cta < t->ctas; cta++)
    for (int ring = 0; ring < t->p->rings; ring++)
      for (int role = 0; role < t->p->roles; role++) {
        memset(t->committed.by[cta][ring][role], 0, t->most_number);
        memset(t->released.by[cta][ring][role], 0, t->most_number);
      }
  if (!t->timed) return;
  memset(t->turn_time, 0, (size_t)t->ctas * sizeof *t->turn_time);
  t->runs++;
  for (int cta = 0; cta < t->ctas; cta++)
    for (int ring = 0; ring < t->p->rings; ring++) {
      forget(t, t->filled.time[cta][ring]);
      forget(t, t->drained.time[cta][ring]);
    }
}

// ---- one operation

// Have all roles of that side in a CTA, all instances of them, done it with fill `number`?
static bool all_of(const Truth *t, const Player *q, int cta, int ring, bool drains,
                   const Done *done, u32 number) {
  bool own = t->p->ring[ring].owner >= 0;
  for (int r = 0; r < t->p->roles; r++) {
    if (!(drains ? t->drains : t->fills)[r][ring]) continue;
    int need = t->p->role[r].dealt ? 1 : t->p->role[r].instances;
    u8 by = done->by[cta][ring][r][number];
    if (own ? !(by >> q->instance & 1) : by < need) return false;
  }
  return true;
}

static bool all_have(const Truth *t, const Player *q, int ring, bool drains, const Done *done,
                     u32 number) {
  if (!all_of(t, q, q->cta, ring, drains, done, number)) return false;
  return !t->p->ring[ring].shared || all_of(t, q, q->cta ^ 1, ring, drains, done, number);
}

static bool may(const Truth *t, const Player *q) {
  const Act *a = &q->op[q->at];
  u32 stages = (u32)t->p->ring[a->ref % MAX_RINGS].stages;
  if (a->kind == ACQUIRE)
    return a->number < stages || all_have(t, q, a->ref, true, &t->released, a->number - stages);
  if (a->kind == WAIT) return all_have(t, q, a->ref, false, &t->committed, a->number);
  if (a->kind == TAKE_KEY || a->kind == PASS_KEY)
    return a->number < KEYS && (a->kind == PASS_KEY || t->key[a->number] == a->ref);
  return a->kind != TAKE || t->token[q->cta][a->ref] == q->seat[a->ref];
}

static void go(Truth *t, Player *q, int by) {
  const Act *a = &q->op[q->at];
  Done *done = a->kind == COMMIT ? &t->committed : a->kind == RELEASE ? &t->released : NULL;
  int one = t->p->ring[a->ref % MAX_RINGS].owner >= 0 ? 1 << q->instance : 1;
  if (done) done->by[q->cta][a->ref][q->role][a->number] += (u8)(by * one);
  if (a->kind == PASS_KEY) t->key[a->number] += by;
  int *token = &t->token[q->cta][a->ref % MAX_TURNS], seats = t->seats[a->ref % MAX_TURNS];
  if (a->kind == PASS) *token = (*token + by + seats) % seats;
}

// ---- what it tells

static void join(const Truth *t, u32 *to, const u32 *from) {
  for (int i = 0; i < CLOCKS * t->players; i++)
    if (to[i] < from[i]) to[i] = from[i];
}

// Sums of one kind are in no need of an order among themselves.
static bool conflict(u32 a, u32 b) {
  bool reads = a == TOUCH_LOAD || a == TOUCH_GET, too = b == TOUCH_LOAD || b == TOUCH_GET;
  if (reads && too) return false;
  return a != b || a == TOUCH_STORE || a == TOUCH_PUT;
}

// Which clock says that an access is over.
static int clock_of(int player, u32 touch, int tensor, int ring) {
  int first = CLOCKS * player;
  if (touch == TOUCH_PUT || touch == TOUCH_PUT_ADD) return first + 1 + tensor;
  return touch == TOUCH_GET ? first + 1 + MAX_TENSORS + ring : first;
}

// … that a copy out has read its stage.
static int read_clock(int player, int tensor) {
  return CLOCKS * player + 1 + MAX_TENSORS + MAX_RINGS + tensor;
}

// (What one instance does by threads is in its own order.)
static bool is_known(const Truth *t, const Player *q, int player, u32 touch, int tensor, u32 row) {
  const Last *last = &t->last[tensor][row][touch][player];
  if (&t->player[player] == q && touch < TOUCH_GET) return true;
  return last->time <= q->time[clock_of(player, touch, tensor, last->of)];
}

static void access_one(Truth *t, Player *q, int self, u32 touch, int tensor, u32 row, Last over) {
  u32 *run = &t->touched[tensor][row];
  if (*run != t->runs) memset(t->last[tensor][row], 0, sizeof t->last[tensor][row]);
  *run = t->runs;
  for (u32 other = 0; other < TOUCHES; other++)
    for (int i = 0; i < t->players && conflict(touch, other); i++)
      t->races |= !is_known(t, q, i, other, tensor, row);
  t->last[tensor][row][touch][self] = over;
}

static void access(Truth *t, Player *q, int self) {
  const Act *a = &q->op[q->at];
  u32 touch = (u32)(a->kind - ACCESS), place = a->number;
  int tensor = a->ref % 4, ring = a->ref / 4;
  Last over = {q->at + 1, ring};
  if (touch == TOUCH_PUT || touch == TOUCH_PUT_ADD) over.time = q->puts[tensor];
  if (touch == TOUCH_GET) over.time = q->fills[ring] + 1;
  bool crossed = t->p->tensor[tensor] == SHAPE_CROSSED, column = place >= CROSS;
  for (u32 i = 0; i < CROSS && crossed; i++)
    access_one(t, q, self, touch, tensor, column ? i * CROSS + place - CROSS : place * CROSS + i,
               over);
  if (!crossed) access_one(t, q, self, touch, tensor, place, over);
}

static void at_least(u32 *known, u32 n) {
  if (*known < n) *known = n;
}

// All copies out of a tensor but the newest ones have read their stages, or are visible.
static void settle(Player *q, int self, const Act *a) {
  u32 over = q->puts[a->ref] > a->number ? q->puts[a->ref] - a->number : 0;
  at_least(&q->time[read_clock(self, a->ref)], over);
  if (a->kind == SETTLE) at_least(&q->time[clock_of(self, TOUCH_PUT, a->ref, 0)], over);
}

// ---- stages

static bool is_over(const Last *last, const Player *q, int way, int player) {
  if (way == STAGE_FILL) return last->time <= q->time[clock_of(player, TOUCH_GET, 0, last->of)];
  return last->time <= q->time[way == STAGE_READ ? read_clock(player, last->of) : CLOCKS * player];
}

static void use_stage(Truth *t, Player *q, int self, int ring, int cell, int way, Last over) {
  Last(*last)[MOST_PLAYERS] = t->stage[q->cta][ring][cell];
  bool writes = way == STAGE_STORE || way == STAGE_FILL;
  u32 *run = &t->used[q->cta][ring][cell];
  if (t->p->ring[ring].owner >= 0 || t->p->ring[ring].shared) return;
  if (*run != t->runs) memset(last, 0, sizeof t->stage[0][0][0]);
  *run = t->runs;
  for (int other = 0; other < STAGE_WAYS; other++) {
    if (!writes && other != STAGE_STORE && other != STAGE_FILL) continue;
    for (int i = 0; i < t->players; i++)
      t->races |= !(i == self && other < STAGE_FILL) && !is_over(&last[other][i], q, other, i);
  }
  last[way][self] = over;
}

static int stage_of(const Truth *t, int ring, u32 number) {
  return (int)(number % (u32)t->p->ring[ring].stages) * CELLS;
}

static void issue(Truth *t, Player *q, int self, int tensor, int ring) {
  Last over = {++q->puts[tensor], tensor};
  use_stage(t, q, self, ring, stage_of(t, ring, q->held[ring]), STAGE_READ, over);
}

static void hear_of_key(Truth *t, Player *q, u32 key) {
  if (t->key[key]) join(t, q->time, t->key_time[key]);
}

static void tell_of_key(Truth *t, Player *q, u32 key) {
  if (t->key[key] == 1) memset(t->key_time[key], 0, sizeof t->key_time[key]);
  join(t, t->key_time[key], q->time);
}

// A stage is full when its copy has landed.
static void fill(Truth *t, Player *q, int self, int ring, u32 number) {
  Last over = {q->fills[ring] + 1, ring};
  if (t->p->ring[ring].copied)
    use_stage(t, q, self, ring, stage_of(t, ring, number), STAGE_FILL, over);
  u32 *told = t->filled.time[q->cta][ring][number];
  int landed = clock_of(self, TOUCH_GET, 0, ring);
  join(t, told, q->time);
  q->fills[ring]++;
  at_least(&told[landed], q->fills[ring]);
}

// (What a filler in the other CTA knows does not come with its share.)
static void hear_of_releases(Truth *t, Player *q, int ring, u32 number) {
  const Pipe *of = &t->p->ring[ring];
  u32 stages = (u32)of->stages;
  for (int other = 0; other <= of->shared && number >= stages; other++)
    join(t, q->time, t->drained.time[q->cta ^ other][ring][number - stages]);
}

static void tell(Truth *t, Player *q) {
  const Act *a = &q->op[q->at];
  u32 number = a->number;
  int self = (int)(q - t->player), ring = a->ref % MAX_RINGS, turn = a->ref % MAX_TURNS;
  bool own = a->kind < TAKE && t->p->ring[ring].owner >= 0;
  q->time[CLOCKS * self] = q->at + 1;
  if (a->kind == WAIT) q->held[ring] = number;
  bool copies = own && t->p->role[q->role].instances == 1;
  if (own && !(copies && (a->kind == COMMIT || a->kind == WAIT))) return;
  switch (a->kind) {
    case ACQUIRE: hear_of_releases(t, q, ring, number); break;
    case COMMIT: fill(t, q, self, ring, number); break;
    case WAIT: join(t, q->time, t->filled.time[q->cta][ring][number]); break;
    case RELEASE: join(t, t->drained.time[q->cta][ring][number], q->time); break;
    case TAKE: join(t, q->time, t->turn_time[q->cta][turn]); break;
    case PASS: join(t, t->turn_time[q->cta][turn], q->time); break;
    case TAKE_KEY: hear_of_key(t, q, number); break;
    case PASS_KEY: tell_of_key(t, q, number); break;
    case SETTLE:
    case SETTLE_READ: settle(q, self, a); break;
    case ISSUE: issue(t, q, self, a->ref % 4, a->ref / 4); break;
    case CELL_LOAD:
    case CELL_STORE:
      use_stage(t, q, self, ring, (int)number, a->kind == CELL_LOAD ? STAGE_LOAD : STAGE_STORE,
                (Last){q->at + 1, 0});
      break;
    default: access(t, q, self); break;
  }
}

// ---- played

bool truth_play(Truth *t) {
  bool ended = false;
  begin(t);
  for (bool moved = true; moved;) {
    moved = false;
    ended = true;
    for (int i = 0; i < t->players; i++) {
      Player *q = &t->player[t->back ? t->players - 1 - i : i];
      for (; q->at < q->n && may(t, q); q->at++) {
        go(t, q, 1);
        if (t->timed) tell(t, q);
        moved = true;
      }
      ended &= q->at == q->n;
    }
  }
  return ended;
}

static Fate run_once(Truth *t, const Program *p, const Setting *s, bool apart) {
  t->apart = apart;
  Fate f = truth_prepare(t, p, s);
  if (f != FATE_FINE && f != FATE_UNEVEN) return f;
  return truth_play(t) ? f : FATE_STUCK;
}

// One CTA takes all tiles of a persistent grid, or each has its own: with several, or with all, of
// what can go wrong in any launch, some happens in one of these.
static Outcome run(Truth *t, const Program *p, const Setting *s, bool timed) {
  t->timed = timed;
  t->races = false;
  Outcome o = {.fate = run_once(t, p, s, p->ctas)};
  o.races = t->races;
  if (o.fate != FATE_FINE || !p->tiles || p->ctas || !t->timed) return o;
  o.fate = run_once(t, p, s, true);
  o.races |= t->races;
  return o;
}

static bool may_race(const Program *p) { return p->tensors > 0 || p->cells; }

Outcome truth_run(Truth *t, const Program *p, const Setting *s) {
  t->many = t->back = false;
  return run(t, p, s, may_race(p));
}

Outcome truth_run_back(Truth *t, const Program *p, const Setting *s) {
  t->many = false;
  t->back = true;
  return run(t, p, s, may_race(p));
}

Fate truth_fate(Truth *t, const Program *p, const Setting *s) {
  t->many = t->back = false;
  return run(t, p, s, false).fate;
}

// ---- all orders

enum { MOST_STATES = 1 << 14 };

// Is there an order in which somebody is stuck? The state is where everybody is.
static bool may_stick(Truth *t, u8 *met) {
  u32 state = 0;
  bool some = false, ended = true;
  for (int i = 0; i < t->players; i++) state = state * (t->player[i].n + 1) + t->player[i].at;
  if (met[state]) return false;
  met[state] = 1;
  for (int i = 0; i < t->players; i++) {
    Player *q = &t->player[i];
    ended &= q->at == q->n;
    if (q->at == q->n || !may(t, q)) continue;
    some = true;
    go(t, q, 1);
    q->at++;
    bool stuck = may_stick(t, met);
    q->at--;
    go(t, q, -1);
    if (stuck) return true;
  }
  return !some && !ended;
}

Fate truth_all_orders(Truth *t, const Program *p, const Setting *s) {
  t->many = true;
  t->timed = false;
  t->apart = p->ctas;
  Fate f = truth_prepare(t, p, s);
  u64 states = 1;
  if (f != FATE_FINE && f != FATE_UNEVEN) return f;
  for (int i = 0; i < t->players; i++)
    if ((states *= t->player[i].n + 1) > MOST_STATES) return FATE_LONG;
  begin(t);
  u8 met[MOST_STATES] = {0};
  return may_stick(t, met) ? FATE_STUCK : f;
}

// ---- all values

enum { RULES = 12 };  // of tables that are tried

static const int elements[] = {0, 1, 2, 3, 5, -1};

static void choose(const Program *p, int most, u32 rest, Setting *s) {
  s->listed = false;
  s->table = p->table ? rest % RULES : 0;
  rest /= p->table ? RULES : 1;
  for (int i = 0; i < p->elements; i++, rest /= COUNT(elements))
    s->element[i] = elements[rest % COUNT(elements)];
  for (int i = 0; i < p->dims; i++, rest /= (u32)most + 1)
    s->dim[i] = (int)(rest % ((u32)most + 1));
}

Outcome truth_search(Truth *t, const Program *p, int most, Setting *failing) {
  u32 values = p->table ? RULES : 1;
  Outcome all = {.fate = FATE_FINE};
  Setting s = {0}, racing = {0};
  for (int i = 0; i < p->dims; i++) values *= (u32)most + 1;
  for (int i = 0; i < p->elements; i++) values *= COUNT(elements);
  for (u32 n = 0; n < values; n++) {
    choose(p, most, n, &s);
    t->many = true;
    t->back = false;
    Outcome o = run(t, p, &s, may_race(p));
    if (o.races && !all.races) racing = s;
    all.races |= o.races;
    if (o.fate == FATE_LONG) all.fate = FATE_LONG;
    if (o.fate != FATE_STUCK && o.fate != FATE_UNEVEN) continue;
    *failing = s;
    return (Outcome){.fate = o.fate};
  }
  *failing = all.races ? racing : s;
  return all;
}
