// order.c - finds the tensors that have the same bits after every run. In: a kernel or sequence.
// Out: by tensor, whether it depends on sums in no fixed order: CTAs add to it without a turn over
// CTAs that orders all that add to one element, or it is computed from such sums. Where that is not
// plain to see, the sums count as unordered.
#include "runtime/run.h"

// Does a role read the tensor, or a bound depend on it? Reads by the specification do not count.
static bool reads(const Kernel *k, u32 buf) {
  for (Xid x = 1; x < k->expr.n; x++) {
    const Expr *e = &k->expr.at[x];
    if (e->op == X_LOAD && !(e->deps & DEP_TILE) && k->view.at[e->ref].buf == buf) return true;
  }
  for (u32 r = 0; r < k->role.n; r++)
    if (sc_tensor_use(k, r, buf) & (DOES_READ | DOES_COPY_FROM)) return true;
  return false;
}

// ---- turns that order sums

typedef VEC(u32) U32s;

// How often each turn is held, and the key that it was taken with last.
typedef struct Held {
  int *times;
  Xid *key;
} Held;

// Where operations of a role add: of the one at hand a view, and for each of its positions how many
// elements one CTA has there.
typedef struct Places {
  const Kernel *k;
  Xid *from, *to;  // by loop
  const View *view;
  i64 room[SC_MAX_RANK];
} Places;

// What differs from CTA to CTA, from instance to instance or from round to round.
enum { VARIES = DEP_AXIS | DEP_INST | DEP_LOOP | DEP_FETCH };

static bool varies(const Kernel *k, Xid x) { return x && k->expr.at[x].deps & VARIES; }

// Is y the last digit of x * radix + y: a number from 0 to below the radix?
static bool is_digit(const Places *p, Xid y, Xid radix) {
  const Expr *e = &p->k->expr.at[y];
  i64 from = 0;
  if (e->op == X_AXIS) return p->k->axis.at[e->ref].extent == radix;
  return e->op == X_LOOP && x_const_int(p->k, p->from[e->ref], &from) && from == 0 &&
         p->to[e->ref] == radix;
}

// Of x = a * radix + y with such a y: the sum's operand y, and a; 0: x is no such sum.
static Xid last_digit(const Places *p, Xid x, Xid *a) {
  const Expr *sum = &p->k->expr.at[x];
  for (u32 side = 0; side < 2; side++) {
    Xid y = side ? sum->a : sum->b, product = side ? sum->b : sum->a;
    const Expr *m = &p->k->expr.at[product];
    if (m->op != X_MUL) continue;
    *a = varies(p->k, m->a) ? m->a : m->b;
    if (is_digit(p, y, *a == m->a ? m->b : m->a)) return y;
  }
  return 0;
}

// How far apart x is, at least, for two values of the axis, or of the loop's variable; 0: two may
// give the same x, or it is not plain to see that they do not.
static i64 distance(const Places *p, Xid x, ExprOp leaf, u32 ref) {
  const Kernel *k = p->k;
  i64 all = 1, factor;
  while (varies(k, x)) {
    const Expr *e = &k->expr.at[x];
    bool a = varies(k, e->a), b = varies(k, e->b);
    Xid upper;
    if (e->op == leaf && e->ref == ref) return all < 0 ? -all : all;
    if (e->op == X_ADD && a && b) {
      Xid y = last_digit(p, x, &upper);
      if (!y) return 0;
      x = k->expr.at[y].op == leaf && k->expr.at[y].ref == ref ? y : upper;
      continue;
    }
    if (a == b || (e->op != X_ADD && e->op != X_SUB && e->op != X_MUL && e->op != X_NEG)) return 0;
    if (e->op == X_MUL &&
        (!x_const_int(k, a ? e->b : e->a, &factor) || __builtin_mul_overflow(all, factor, &all)))
      return 0;
    x = a ? e->a : e->b;
  }
  return 0;
}

// Do no two values of the axis, or of the loop's variable, add to one element?
static bool tells(const Places *p, ExprOp leaf, u32 ref) {
  for (u32 i = 0; i < p->view->rank; i++) {
    i64 apart = distance(p, p->view->at[i].base, leaf, ref);
    if (apart && apart >= p->room[i]) return true;
  }
  return false;
}

// The loops' variables that a key is made of; false: it is not the same along the turn's axis.
static bool loops_of(Sc *sc, Below *below, const Turn *t, Xid key, U32s *loop) {
  x_begin(below, DEP_LOOP | DEP_AXIS);
  x_from(below, key);
  for (Xid x; (x = x_next(below));) {
    const Expr *e = &below->k->expr.at[x];
    if (e->op == X_AXIS && e->ref == t->axis) return false;
    if (e->op == X_LOOP) PUSH(sc, loop, e->ref);
  }
  return true;
}

// Have all that add to one element the turn with one key? Then each axis but the turn's, and all
// that the key is made of, can be told from the place.
static bool orders(Sc *sc, Below *below, const Turn *t, Xid key, const Places *place) {
  const Kernel *k = below->k;
  U32s loop = {0};
  i64 one;
  for (u32 a = 0; a < k->axis.n; a++) {
    if (a == t->axis || (x_const_int(k, k->axis.at[a].extent, &one) && one == 1)) continue;
    if (!tells(place, X_AXIS, a)) return false;
  }
  bool all = loops_of(sc, below, t, key, &loop);
  for (u32 i = 0; i < loop.n && all; i++) all = tells(place, X_LOOP, loop.at[i]);
  return all;
}

static bool is_ordered(Sc *sc, Below *below, const Held *h, const Places *place) {
  for (u32 t = 0; t < below->k->turn.n; t++)
    if (h->times[t] > 0 && orders(sc, below, &below->k->turn.at[t], h->key[t], place)) return true;
  return false;
}

static int *copied(Sc *sc, const int *times, u32 n) {
  int *to = NEWS(sc, int, n + 1);
  for (u32 i = 0; i < n; i++) to[i] = times[i];
  return to;
}

// Behind an `if` a turn is held that is held at the end of both branches. before: at its beginning,
// or at the end of its first branch.
static void join(Held *h, const int *before, u32 n) {
  for (u32 i = 0; i < n; i++)
    if (before[i] < h->times[i]) h->times[i] = before[i];
}

// The loops of a role.
static Places places_of(Sc *sc, const Kernel *k, const Code *code) {
  Places p = {.k = k, .from = NEWS(sc, Xid, k->loop.n + 1), .to = NEWS(sc, Xid, k->loop.n + 1)};
  for (u32 i = 0; i < code->n; i++) {
    const Ins *ins = &code->at[i];
    if (ins->op != OP_FOR) continue;
    p.from[ins->arg[0]] = ins->arg[1];
    p.to[ins->arg[0]] = ins->arg[2];
  }
  return p;
}

// Does the operation add? Then `p` has where.
static bool adds(Places *p, const Ins *ins) {
  const Kernel *k = p->k;
  if (ins->op != OP_MAPADD && ins->op != OP_COPYADD) return false;
  const Map *m = ins->op == OP_MAPADD ? &k->map.at[ins->arg[0]] : NULL;
  const Buf *stage = m ? NULL : &k->buf.at[k->view.at[ins->arg[1]].buf];
  p->view = &k->view.at[m ? m->dst : ins->arg[0]];
  for (u32 i = 0, slices = 0; i < p->view->rank; i++) {
    const Pos *at = &p->view->at[i];
    p->room[i] = 1;
    if (m && at->var >= 0) x_const_int(k, m->var[at->var].extent, &p->room[i]);
    if (!m && at->slice) x_const_int(k, stage->dim[slices++], &p->room[i]);
  }
  return true;
}

// Marks the tensors to which a role adds without a turn that orders it.
static void mark_role(Sc *sc, Below *below, const Code *code, bool *mark) {
  const Kernel *k = below->k;
  Places p = places_of(sc, k, code);
  Held h = {NEWS(sc, int, k->turn.n + 1), NEWS(sc, Xid, k->turn.n + 1)};
  VEC(int *) open = {0};
  for (u32 i = 0; i < code->n; i++) {
    const Ins *ins = &code->at[i];
    if (adds(&p, ins) && !is_ordered(sc, below, &h, &p)) mark[p.view->buf] = true;
    u32 turn = ins->arg[0];
    bool moves = ins->op == OP_TAKE || ins->op == OP_PASS;
    if (moves && k->turn.at[turn].axis != SC_NONE) {
      h.times[turn] += ins->op == OP_TAKE ? 1 : -1;
      if (ins->op == OP_TAKE) h.key[turn] = ins->arg[1];
    }
    if (ins->op == OP_IF) PUSH(sc, &open, copied(sc, h.times, k->turn.n));
    if (ins->op == OP_ELSE) {
      int *begun = open.at[open.n - 1];
      open.at[open.n - 1] = copied(sc, h.times, k->turn.n);
      h.times = begun;
    }
    if (ins->op == OP_ENDIF) join(&h, open.at[--open.n], k->turn.n);
  }
}

static void mark_added(Sc *sc, const Kernel *k, bool *mark) {
  Below below = x_below(sc, k);
  for (u32 r = 0; r < k->role.n; r++) mark_role(sc, &below, &k->role.at[r].code, mark);
}

// If the kernel reads a marked tensor, marks everything that it writes.
static void spread(const Kernel *k, bool *mark) {
  bool spreads = false;
  for (u32 i = 0; i < k->buf.n; i++) spreads |= mark[i] && reads(k, i);
  for (u32 i = 0; i < k->buf.n && spreads; i++) {
    const Buf *b = &k->buf.at[i];
    mark[i] |= b->space == SP_TENSOR && b->dir & SCHEDC_OUT;
  }
}

bool *sc_unordered(Sc *sc, const Kernel *k) {
  bool *mark = NEWS(sc, bool, k->buf.n + 1);
  mark_added(sc, k, mark);
  spread(k, mark);
  for (u32 l = 0; l < k->launch.n; l++) {
    const Launch *step = &k->launch.at[l];
    bool *inner = NEWS(sc, bool, step->kernel->buf.n + 1);
    mark_added(sc, step->kernel, inner);
    for (u32 i = 0; i < step->kernel->buf.n; i++) {
      if (step->tensor[i] != SC_NONE) inner[i] |= mark[step->tensor[i]];
    }
    spread(step->kernel, inner);
    for (u32 i = 0; i < step->kernel->buf.n; i++) {
      if (step->tensor[i] != SC_NONE) mark[step->tensor[i]] |= inner[i];
    }
  }
  return mark;
}
