// strip.c - compiles a map to a program over strips. In: a map of well-formed IR. Out: a Strip:
// lists of steps, each of which runs as rarely as its operands allow (strip.h says which lists
// there are). Invariant: a step's operands have been computed when it runs, earlier in the same
// list or in a list that runs less often. The idea is loop-invariant code motion by construction: a
// node's home is the outermost place where all its index variables have values.
#include "runtime/spec/strip.h"

#include <string.h>

enum { MAX_DEPTH = 1000, MAX_SLOTS = 4096, ROOT = 0 };

// A node that has a home in a scope. `total`: inside a reduction, where partial values are added
// up.
typedef struct Home {
  u32 scope;
  bool total;
  u16 slot;
  u32 other;  // the node's other homes, from 1
} Home;

// Where nodes live: the map itself (scope 0), or the nest of a reduction.
typedef struct Scope {
  u32 up;
  u32 nest;
} Scope;

struct StripMaker {
  Sc *sc;
  const Kernel *k;
  const Map *m;
  Strip *s;
  bool spec;
  u32 depth;
  bool *parted;  // by expression, of maps that go by parts
  Below below;
  u32 *homes, *made;  // by expression: its homes, from 1, in the map that was made last with it
  u32 maps;
  VEC(Home) home;
  VEC(Scope) scope;
};

static u16 home_of(StripMaker *mk, u32 scope, Xid e, bool total);

static const Expr *expr(const StripMaker *mk, Xid e) { return &mk->k->expr.at[e]; }

static bool *find_parted(Sc *sc, const Kernel *k) {
  bool *parted = NEWS(sc, bool, k->expr.n + 1);
  for (Xid e = 1; e < k->expr.n; e++) {
    const Expr *p = &k->expr.at[e];
    if (p->op == X_LOAD) parted[e] = k->buf.at[k->view.at[p->ref].buf].partial;
    else if (x_reduces(p->op)) parted[e] = p->op == X_SUM;
    else parted[e] = parted[p->a] || parted[p->b] || parted[p->c];
  }
  return parted;
}

// Does the node differ from part to part of a partial value?
static bool parted(const StripMaker *mk, Xid e) { return mk->m->parts && mk->parted[e]; }
static bool uniform(const StripMaker *mk, Xid e) { return x_uniform(mk->k, e); }

static bool has(u8 vars, i8 v) { return v >= 0 && vars >> v & 1; }

// ---- slots

static u8 value_bytes(const StripMaker *mk, u8 ty) {
  return ty == TY_BOOL ? 1 : ty == TY_INT ? 8 : mk->s->reals->bytes;
}

static void too_large(const StripMaker *mk, const char *why) {
  sc_report(mk->sc, D_P_LIMIT, mk->m->span, "this %s to be computed in strips", why);
  sc_unwind(mk->sc, SCHEDC_ELIMIT);
}

// A slot for `planes` strips over x (x < 0: values).
static u16 new_slot(StripMaker *mk, i8 x, u8 bytes, u32 planes) {
  Strip *s = mk->s;
  if (s->slot.n >= MAX_SLOTS) too_large(mk, "has too many values");
  u32 n = (u32)(x < 0 ? 1 : s->cap[x]) * planes * bytes;
  Slot slot = {.offset = s->size, .x = x, .bytes = bytes};
  s->size += (n + 63) & ~63u;
  PUSH(mk->sc, &s->slot, slot);
  return (u16)(s->slot.n - 1);
}

// How a step over x reads a slot: if the slot is a strip over another variable, at that variable's
// current value.
static Ref read_slot(const StripMaker *mk, u16 slot, i8 x) {
  const Slot *p = &mk->s->slot.at[slot];
  Ref r = {.slot = slot, .var = -1, .bytes = p->bytes, .one = p->x < 0};
  if (p->x >= 0 && p->x != x) {
    r.one = true;
    r.var = p->x;
  }
  return r;
}

// ---- views

i8 sc_plain_var(const Kernel *k, const Pos *p) {
  if (p->var >= 0) return p->var;
  const Expr *e = &k->expr.at[p->base];
  return p->base && e->op == X_IDX ? (i8)e->ref : -1;
}

static Site make_site(StripMaker *mk, u32 view, u32 scope, i8 x) {
  const View *v = &mk->k->view.at[view];
  Site site = {.view = view, .partial = mk->k->buf.at[v->buf].partial};
  for (u32 i = 0; i < v->rank; i++) {
    i8 var = sc_plain_var(mk->k, &v->at[i]);
    if (var >= 0) site.vars |= (u8)(1u << var);
    else if (mk->spec && v->at[i].base)
      site.pos[i] = read_slot(mk, home_of(mk, scope, v->at[i].base, true), x);
  }
  return site;
}

// ---- where a node goes

static i8 deepest_outer(const Strip *s, u8 vars) {
  for (i8 l = (i8)s->outers; l > 0; l--)
    if (has(vars, (i8)s->outer[l - 1])) return l;
  return 0;
}

typedef struct Spot {
  u32 scope;
  i8 x;
  u8 list;  // 0 … SC_MAX_VARS: level; else one of these
} Spot;
enum { IN_PARTS = 100, IN_AHEAD, IN_BODY };

static Steps *list_of(StripMaker *mk, Spot at) {
  Strip *s = mk->s;
  if (at.list == IN_PARTS) return &s->parts;
  if (at.list < IN_PARTS) return &s->level[at.list];
  Nest *n = &s->nest.at[mk->scope.at[at.scope].nest];
  return at.list == IN_AHEAD ? &n->ahead : &n->body;
}

// The outermost spot, seen from a scope, where all of a node's variables have values.
static Spot spot_of(StripMaker *mk, u32 scope, Xid e, bool total) {
  Strip *s = mk->s;
  u8 vars = expr(mk, e)->vars;
  while (scope != ROOT && !has(vars, (i8)s->nest.at[mk->scope.at[scope].nest].r))
    scope = mk->scope.at[scope].up;
  Spot at = {.scope = scope, .x = has(vars, s->v) ? s->v : -1};
  if (scope == ROOT) {
    bool in_parts = !total && expr(mk, e)->op < X_SUM && parted(mk, e);
    at.list = in_parts ? IN_PARTS : (u8)deepest_outer(s, vars);
    return at;
  }
  const Nest *n = &s->nest.at[mk->scope.at[scope].nest];
  bool both = n->p < 0 || has(vars, n->p);
  at.list = both ? IN_BODY : IN_AHEAD;
  at.x = both && !n->dot ? n->p : (i8)n->r;
  return at;
}

// ---- reductions

// Of the loads below e that depend on both variables, is p the last (contiguous) index in more than
// r is?
static bool more_along(StripMaker *mk, Xid e, i8 p, i8 r) {
  i32 score = 0;
  x_begin(&mk->below, DEP_IDX);
  x_from(&mk->below, e);
  for (Xid x; (x = x_next(&mk->below));) {
    const Expr *q = expr(mk, x);
    bool both = has(q->vars, p) && has(q->vars, r);
    if (both && q->op != X_LOAD) continue;
    x_skip(&mk->below);
    if (!both) continue;
    const View *v = &mk->k->view.at[q->ref];
    i8 last = v->rank ? sc_plain_var(mk->k, &v->at[v->rank - 1]) : -1;
    score += last == p ? 1 : last == r ? -1 : 0;
  }
  return score > 0;
}

// The element type of e, if e is an element of a tensor with 16 or 8 bits that depends on variable
// r; else EL_COUNT.
static Elem narrow_factor(const StripMaker *mk, Xid e, u32 r) {
  const Expr *x = expr(mk, e);
  if (x->op != X_LOAD || !has(x->vars, (i8)r)) return EL_COUNT;
  const Elem elem = mk->k->buf.at[mk->k->view.at[x->ref].buf].elem;
  return sc_is_narrow(elem) ? elem : EL_COUNT;
}

// Should the nest add as tensor cores do? A specification in f32 stands for what a kernel may
// compute, so sums of products that tensor cores can add up are added in their way. (Only if the
// result is kept in f32: rounding to a narrow type hides the difference.)
static void find_cores(const StripMaker *mk, Nest *t, const Expr *body) {
  const u32 dst = mk->m->dst;
  bool kept = dst != SC_NONE && mk->k->buf.at[mk->k->view.at[dst].buf].elem == EL_F32;
  if (!mk->spec || mk->s->reals != &sc_reals32 || !kept) return;
  if (t->op != X_SUM || body->op != X_MUL) return;
  const Elem a = narrow_factor(mk, body->a, t->r), b = narrow_factor(mk, body->b, t->r);
  t->cores = a != EL_COUNT && b != EL_COUNT && sc_elem[a].bytes == sc_elem[b].bytes;
  if (t->cores) t->sum = sc_tensor_sum(a, b);
}

// Makes the nest of reduction e, whose value is needed as a strip over p.
static u32 make_nest(StripMaker *mk, u32 up, Xid e, i8 p, bool planes) {
  Strip *s = mk->s;
  const Expr *x = expr(mk, e);
  u8 bytes = sc_reals(mk->s, x->ty)->bytes;
  Nest nest = {.op = x->op, .ty = x->ty, .r = (u8)x->ref, .p = p, .planes = planes};
  find_cores(mk, &nest, expr(mk, x->a));
  nest.dot = nest.cores || p < 0 || !more_along(mk, x->a, p, (i8)x->ref);
  nest.acc = new_slot(mk, p, bytes, nest.dot ? LANES : PARTS);
  PUSH(mk->sc, &s->nest, nest);
  u32 n = s->nest.n - 1;
  PUSH(mk->sc, &mk->scope, ((Scope){.up = up, .nest = n}));
  u32 scope = mk->scope.n - 1;

  const Expr *body = expr(mk, x->a);
  i8 over = nest.dot ? (i8)nest.r : p;
  bool product = nest.op == X_SUM && body->op == X_MUL && !uniform(mk, x->a);
  Xid value = product ? body->a : x->a, factor = product ? body->b : 0;
  Ref first = read_slot(mk, home_of(mk, scope, value, true), over);
  Ref second = {0};
  if (factor) second = read_slot(mk, home_of(mk, scope, factor, true), over);
  s->nest.at[n].value = first;
  s->nest.at[n].factor = second;
  return n;
}

// ---- steps

static u16 uniform_slot(StripMaker *mk, Xid e) {
  u8 ty = expr(mk, e)->ty;
  Uniform u = {.e = e, .slot = new_slot(mk, -1, value_bytes(mk, ty), 1), .ty = ty};
  PUSH(mk->sc, &mk->s->uniform, u);
  return u.slot;
}

static StripFn *fn_of(const StripMaker *mk, const Expr *p) {
  if (p->op == X_TOREAL) return mk->s->reals->of_int;
  u8 from = expr(mk, p->op == X_WHERE ? p->b : p->a)->ty;
  return from == TY_BOOL ? sc_truths[p->op] : sc_reals(mk->s, from)->op[p->op];
}

// An operand as a step of list `at` reads it.
static Ref operand(StripMaker *mk, Spot at, Xid e, bool total) {
  if (!e) return (Ref){0};
  Ref r = read_slot(mk, home_of(mk, at.scope, e, total), at.x);
  r.part = !total && at.scope == ROOT && parted(mk, e) && expr(mk, e)->op == X_SUM;
  return r;
}

static u16 make_step(StripMaker *mk, Spot at, Xid e, bool total) {
  const Expr *p = expr(mk, e);
  Step t = {.op = p->op, .ty = p->ty, .x = at.x, .ref = p->ref};
  u32 planes = 1;
  if (p->op == X_LOAD) {
    Site site = make_site(mk, p->ref, at.scope, at.x);
    site.partial = site.partial && at.list != IN_PARTS;
    PUSH(mk->sc, &mk->s->site, site);
    t.ref = mk->s->site.n - 1;
  } else if (x_reduces(p->op)) {
    bool split = p->op == X_SUM && !total && at.scope == ROOT && mk->m->parts;
    planes = split ? PARTS : 1;
    t.ref = make_nest(mk, at.scope, e, at.x, split);
  } else if (p->op != X_IDX) {
    t.a = operand(mk, at, p->a, total);
    t.b = operand(mk, at, p->b, total);
    t.c = operand(mk, at, p->c, total);
    t.fn = fn_of(mk, p);
  }
  t.slot = new_slot(mk, at.x, value_bytes(mk, p->ty), planes);
  if (x_reduces(p->op)) mk->s->nest.at[t.ref].slot = t.slot;
  Steps *list = list_of(mk, at);
  PUSH(mk->sc, list, t);
  return t.slot;
}

// The slot of a node as seen from a scope. Makes the node's step the first time.
static u16 home_of(StripMaker *mk, u32 scope, Xid e, bool total) {
  bool once = uniform(mk, e);
  Spot at = {.scope = ROOT};
  if (!once) at = spot_of(mk, scope, e, total);
  total = total && !once && at.scope == ROOT && parted(mk, e);
  u32 in = at.scope;
  if (mk->made[e] != mk->maps) mk->homes[e] = 0;
  mk->made[e] = mk->maps;
  for (u32 i = mk->homes[e]; i; i = mk->home.at[i - 1].other) {
    const Home *h = &mk->home.at[i - 1];
    if (h->scope == in && h->total == total) return h->slot;
  }
  if (++mk->depth > MAX_DEPTH) too_large(mk, "is nested too deep");
  bool inside = total || in != ROOT;
  u16 slot = once ? uniform_slot(mk, e) : make_step(mk, at, e, inside);
  mk->depth--;
  PUSH(mk->sc, &mk->home, ((Home){in, total, slot, mk->homes[e]}));
  mk->homes[e] = mk->home.n;
  return slot;
}

// ---- the whole map

// Votes for the output variable that is last, and so contiguous, in a view.
static void vote_view(const StripMaker *mk, u32 view, i32 weight, i32 *score) {
  const View *v = &mk->k->view.at[view];
  i8 last = v->rank ? sc_plain_var(mk->k, &v->at[v->rank - 1]) : -1;
  if (last >= 0 && last < mk->m->outs) score[last] += weight;
}

static i8 pick_vector(StripMaker *mk) {
  const Map *m = mk->m;
  i32 score[SC_MAX_VARS] = {0};
  if (m->dst != SC_NONE) vote_view(mk, m->dst, 3, score);
  x_begin(&mk->below, DEP_IDX | DEP_TILE);
  x_from(&mk->below, m->root);
  for (Xid x; (x = x_next(&mk->below));) {
    if (expr(mk, x)->op != X_LOAD) continue;
    vote_view(mk, expr(mk, x)->ref, 2, score);
    x_skip(&mk->below);
  }
  i8 best = (i8)(m->outs - 1);
  for (i8 v = best; v >= 0; v--)
    if (score[v] > score[best]) best = v;
  return best;
}

// Does the map read its destination at another place than it writes? Then it must write after all
// reads.
static bool reads_elsewhere(const StripMaker *mk) {
  const View *d = &mk->k->view.at[mk->m->dst];
  for (u32 i = 0; i < mk->m->reads; i++) {
    const View *v = &mk->k->view.at[sc_view_of(mk->k, mk->m, i)];
    if (v->buf == d->buf && v->fill == d->fill && !sc_same_place(v, d)) return true;
  }
  return false;
}

static void set_extents(StripMaker *mk) {
  Strip *s = mk->s;
  for (u32 v = 0; v < mk->m->vars; v++) {
    i64 n = 0;
    bool known = x_const_int(mk->k, mk->m->var[v].extent, &n);
    s->whole[v] = known ? n : -1;
    s->cap[v] = !known || n > STRIP ? STRIP : n < 1 ? LANES : (n + LANES - 1) / LANES * LANES;
  }
}

static void add_buffer(StripMaker *mk) {
  Strip *s = mk->s;
  u64 n = 1;
  for (u32 v = 0; v < mk->m->outs; v++)
    if (s->whole[v] < 0 || __builtin_mul_overflow(n, (u64)s->whole[v], &n)) n = UINT64_MAX / 64;
  if (n > 1u << 24) too_large(mk, "has too many elements");
  s->buffer = s->size;
  s->size += (u32)(n * (u64)(mk->m->parts ? PARTS : 1) * 8 + n + 63) & ~63u;
}

static Strip *make(StripMaker *mk, const Map *m, bool spec, bool wide) {
  Sc *sc = mk->sc;
  Strip *s = NEW(sc, Strip);
  mk->m = m;
  mk->s = s;
  mk->spec = spec;
  mk->maps++;
  mk->depth = mk->home.n = mk->scope.n = 0;
  s->k = mk->k;
  s->m = m;
  s->reals = wide ? &sc_reals64 : &sc_reals32;
  s->any = m->dst == SC_NONE;
  PUSH(sc, &s->slot, (Slot){0});
  PUSH(sc, &mk->scope, (Scope){0});
  set_extents(mk);
  s->v = pick_vector(mk);
  for (u8 v = 0; v < m->outs; v++)
    if ((i8)v != s->v) s->outer[s->outers++] = v;
  Spot at = {.scope = ROOT, .x = s->v};
  if (m->cond) s->cond = operand(mk, at, m->cond, !s->any);
  s->root = operand(mk, at, m->root, false);
  if (!s->any) {
    s->dst = make_site(mk, m->dst, ROOT, s->v);
    s->buffered = !spec && reads_elsewhere(mk);
  }
  s->temp = new_slot(mk, s->v, 8, 2);
  if (s->buffered) add_buffer(mk);
  s->rows = s->size;
  s->size += (u32)(s->slot.n * sizeof(char *) + 63) & ~63u;
  return s;
}

StripMaker *sc_strip_maker(Sc *sc, const Kernel *k) {
  StripMaker *mk = NEW(sc, StripMaker);
  mk->sc = sc;
  mk->k = k;
  mk->parted = find_parted(sc, k);
  mk->below = x_below(sc, k);
  mk->homes = NEWS(sc, u32, k->expr.n + 1);
  mk->made = NEWS(sc, u32, k->expr.n + 1);
  return mk;
}

Strip *sc_strip(StripMaker *mk, const Map *m) { return make(mk, m, false, false); }

Strip *sc_strip_spec(StripMaker *mk, const Map *m, bool wide) { return make(mk, m, true, wide); }

size_t sc_strip_scratch(const Strip *s) { return s->size; }
