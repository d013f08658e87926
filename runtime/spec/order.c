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

// How often each turn is held, and the key that it was taken with last.
typedef struct Held {
  int *times;
  Xid *key;
} Held;

// Does x tell the axis, or the loop's variable? Other values of it may give one quotient.
static bool tells(const Kernel *k, Xid x, ExprOp leaf, u32 ref) {
  const Expr *e = &k->expr.at[x];
  if (e->op == leaf) return e->ref == ref;
  if (e->op != X_ADD && e->op != X_SUB && e->op != X_MUL && e->op != X_NEG) return false;
  return tells(k, e->a, leaf, ref) || (e->b && tells(k, e->b, leaf, ref));
}

static bool place_tells(const Kernel *k, const View *place, ExprOp leaf, u32 ref) {
  for (u32 i = 0; i < place->rank; i++)
    if (place->at[i].base && tells(k, place->at[i].base, leaf, ref)) return true;
  return false;
}

// Have all that add to one element the turn with one key? Then each axis but the turn's, and all
// that the key is made of, can be told from the place.
static bool orders(Below *below, const Turn *t, Xid key, const View *place) {
  const Kernel *k = below->k;
  i64 one;
  for (u32 a = 0; a < k->axis.n; a++) {
    if (a == t->axis || (x_const_int(k, k->axis.at[a].extent, &one) && one == 1)) continue;
    if (!place_tells(k, place, X_AXIS, a)) return false;
  }
  x_begin(below, DEP_LOOP);
  x_from(below, key);
  for (Xid x; (x = x_next(below));) {
    const Expr *e = &k->expr.at[x];
    if (e->op == X_LOOP && !place_tells(k, place, X_LOOP, e->ref)) return false;
  }
  return true;
}

static bool is_ordered(Below *below, const Held *h, const View *place) {
  for (u32 t = 0; t < below->k->turn.n; t++)
    if (h->times[t] > 0 && orders(below, &below->k->turn.at[t], h->key[t], place)) return true;
  return false;
}

static int *copied(Sc *sc, const int *times, u32 n) {
  int *to = NEWS(sc, int, n + 1);
  for (u32 i = 0; i < n; i++) to[i] = times[i];
  return to;
}

// Behind an `if` a turn is held that is held at the end of either branch. before: at its beginning,
// or at the end of its first branch.
static void join(Held *h, const int *before, u32 n) {
  for (u32 i = 0; i < n; i++)
    if (before[i] < h->times[i]) h->times[i] = before[i];
}

// Marks the tensors to which a role adds without a turn that orders it.
static void mark_role(Sc *sc, Below *below, const Code *code, bool *mark) {
  const Kernel *k = below->k;
  Held h = {NEWS(sc, int, k->turn.n + 1), NEWS(sc, Xid, k->turn.n + 1)};
  VEC(int *) open = {0};
  for (u32 i = 0; i < code->n; i++) {
    const Ins *ins = &code->at[i];
    const View *place = ins->op == OP_MAPADD    ? &k->view.at[k->map.at[ins->arg[0]].dst]
                        : ins->op == OP_COPYADD ? &k->view.at[ins->arg[0]]
                                                : NULL;
    if (place && !is_ordered(below, &h, place)) mark[place->buf] = true;
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
