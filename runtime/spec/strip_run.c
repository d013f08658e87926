// strip_run.c - runs a Strip. In: operands (where each view's elements are), an Env for uniform
// values, a scratch. Out: the map's elements written, or whether a vote's condition holds.
// Invariant: results do not depend on how ranges are cut into strips or calls: reductions always
// run over the whole of their variable, in 16 lanes (or 4 parts) chosen by the index alone.
//
// The idea: a walk over the lists of steps, each run as often as strip.h says; a reduction runs
// lists of its own. The root's values are written where they belong, or, if the map reads
// elsewhere what it writes, kept in a buffer until all is computed. strip_view.c reads and writes
// the elements of views. spec.c and the interpreter (runtime/cpu/role.c) call it.
#include "runtime/spec/strip_run.h"

#include <string.h>

static void exec(Run *r, const Steps *list);

// ---- reductions

static void clear(const Run *r, const Nest *t, i64 n) {
  const Reals *kind = sc_reals(r->s, t->ty);
  char *acc = r->row[t->acc];
  if (t->ty == TY_INT && t->op == X_RMIN) {
    for (i64 i = 0; i < n; i++) ((i64 *)acc)[i] = INT64_MAX;
    return;
  }
  double none = t->op == X_SUM    ? 0
                : t->ty == TY_INT ? -0x1p63
                : t->op == X_RMAX ? -1 / 0.0
                                  : 1 / 0.0;
  kind->fill(acc, none, (size_t)n);
}

// One stretch of the innermost loop: `n` values into the accumulators at `acc`.
static void accumulate(const Run *r, const Nest *t, char *acc, i64 n) {
  const Reals *kind = sc_reals(r->s, t->ty);
  const char *a = values(r, t->value), *b = t->factor.slot ? values(r, t->factor) : NULL;
  unsigned ones = (t->value.one ? 1u : 0) | (t->factor.one ? 2u : 0);
  if (t->cores) {
    float *sum = (float *)(void *)acc;
    *sum = sc_tensor_dot(&t->sum, *sum, (const float *)(const void *)a,
                         (const float *)(const void *)b, (size_t)n);
    return;
  }
  (t->dot ? kind->lanes : kind->rows)[t->op - X_SUM](acc, a, b, ones, (size_t)n);
}

// Reduces by strips over r, once for each value of p (once, if the value depends on no strip).
static void reduce_dots(Run *r, const Nest *t) {
  i64 n = length(r, t->p), bytes = sc_reals(r->s, t->ty)->bytes;
  exec(r, &t->ahead);
  for (i64 i = 0; i < n; i++) {
    if (t->p >= 0) r->off[t->p] = i;
    exec(r, &t->body);
    accumulate(r, t, r->row[t->acc] + i * LANES * bytes, r->len[t->r]);
  }
  if (t->p >= 0) r->off[t->p] = 0;
}

// Reduces by strips over p, once for each value of r. As in reduce_dots, value j goes to part j / 2
// % 4.
static void reduce_rows(Run *r, const Nest *t) {
  i64 plane = r->s->cap[t->p] * sc_reals(r->s, t->ty)->bytes;
  exec(r, &t->ahead);
  for (i64 j = 0; j < r->len[t->r]; j++) {
    r->off[t->r] = j;
    exec(r, &t->body);
    accumulate(r, t, r->row[t->acc] + j / 2 % PARTS * plane, r->len[t->p]);
  }
  r->off[t->r] = 0;
}

// Combines the accumulators to the result: one value for each element of the strip, or one for each
// part.
static void finish(Run *r, const Nest *t) {
  const Reals *kind = sc_reals(r->s, t->ty);
  i64 n = length(r, t->p), cap = t->p < 0 ? 1 : r->s->cap[t->p], bytes = kind->bytes;
  char *acc = r->row[t->acc], *to = r->row[t->slot];
  if (!t->dot && t->planes) {
    memcpy(to, acc, (size_t)(PARTS * cap * bytes));
  } else if (!t->dot) {
    kind->join(t->op, to, acc, (size_t)cap, (size_t)n);
  } else {
    for (i64 i = 0; i < n; i++) {
      u64 parts[PARTS];
      kind->fold(t->op, acc + i * LANES * bytes, parts);
      if (!t->planes) kind->join(t->op, to + i * bytes, parts, 1, 1);
      for (i64 q = 0; t->planes && q < PARTS; q++)
        memcpy(to + (q * cap + i) * bytes, (char *)parts + q * bytes, (size_t)bytes);
    }
  }
}

static void reduce(Run *r, const Nest *t) {
  i64 n = length(r, t->p), extent = env_int(r->env, r->s->m->var[t->r].extent);
  clear(r, t, (t->dot ? LANES : PARTS) * (t->p < 0 ? 1 : t->dot ? n : r->s->cap[t->p]));
  for (i64 at = 0; at < extent; at += r->len[t->r]) {
    r->start[t->r] = at;
    r->len[t->r] = extent - at < r->s->cap[t->r] ? extent - at : r->s->cap[t->r];
    if (t->dot) reduce_dots(r, t);
    else reduce_rows(r, t);
  }
  finish(r, t);
}

// ---- steps

static void iota(Run *r, const Step *t) {
  i64 *to = (i64 *)r->row[t->slot], first = r->start[t->ref] + (t->x < 0 ? r->off[t->ref] : 0);
  for (i64 i = 0; i < length(r, t->x); i++) to[i] = first + i;
}

static void exec(Run *r, const Steps *list) {
  for (u32 i = 0; i < list->n; i++) {
    const Step *t = &list->at[i];
    if (t->op == X_LOAD) {
      sc_strip_load(r, t);
    } else if (x_reduces(t->op)) {
      reduce(r, &r->s->nest.at[t->ref]);
    } else if (t->op == X_IDX) {
      iota(r, t);
    } else {
      unsigned ones = (t->a.one ? 1u : 0) | (t->b.one ? 2u : 0) | (t->c.one ? 4u : 0);
      t->fn(r->row[t->slot], values(r, t->a), values(r, t->b), values(r, t->c), ones,
            (size_t)length(r, t->x));
    }
  }
}

// ---- what is written

static u8 root_ty(const Run *r) { return r->s->k->expr.at[r->s->m->root].ty; }

// The root's values as a strip of the type that dst holds.
static const char *root_values(Run *r, u8 *ty) {
  const Strip *s = r->s;
  const char *from = values(r, s->root);
  i64 n = length(r, s->v);
  u8 bytes = sc_reals(r->s, *ty)->bytes;
  char *temp = r->base + s->slot.at[s->temp].offset;
  if (s->root.one && s->v >= 0) {
    for (i64 i = 0; i < n; i++) memcpy(temp + i * bytes, from, bytes);
    from = temp;
  }
  bool real = sc_elem[r->op[s->dst.view].elem].flt;
  if (*ty == TY_INT && real) {
    char *wide = temp + 8 * (s->v < 0 ? 1 : s->cap[s->v]);
    s->reals->of_int(wide, from, NULL, NULL, 0, (size_t)n);
    *ty = TY_REAL;
    return wide;
  }
  return from;
}

// ---- the buffer of maps that read dst at other places

static i64 buffer_index(const Run *r) {
  i64 at = 0;
  for (u32 i = 0; i < r->s->outers; i++) {
    u8 v = r->s->outer[i];
    at = at * r->s->whole[v] + r->start[v];
  }
  return r->s->v < 0 ? 0 : at * r->s->whole[r->s->v] + r->start[r->s->v];
}

static i64 buffer_size(const Run *r) {
  i64 n = 1;
  for (u32 v = 0; v < r->s->m->outs; v++) n *= r->s->whole[v];
  return n;
}

// Where the strip is written (NULL: everywhere, or nowhere if *none).
static const u8 *mask_of(const Run *r, bool *none) {
  const Strip *s = r->s;
  *none = false;
  if (r->mode == UNSTASH)
    return (u8 *)r->base + s->buffer + 8 * buffer_size(r) * (s->m->parts ? PARTS : 1) +
           buffer_index(r);
  if (!s->cond.slot) return NULL;
  const u8 *mask = (const u8 *)values(r, s->cond);
  if (!s->cond.one && s->v >= 0) return mask;
  *none = !*mask;
  return NULL;
}

static void stash(Run *r, u8 ty, const char *from, const u8 *mask, bool none) {
  i64 n = length(r, r->s->v), at = buffer_index(r), all = buffer_size(r);
  i64 parts = r->s->m->parts ? PARTS : 1;
  char *buffer = r->base + r->s->buffer;
  memcpy(buffer + 8 * (r->q * all + at), from, (size_t)(n * sc_reals(r->s, ty)->bytes));
  u8 *masks = (u8 *)buffer + 8 * parts * all + at;
  if (mask) memcpy(masks, mask, (size_t)n);
  else memset(masks, !none, (size_t)n);
}

// ---- strips

// The strip's values are known: write, stash or test them.
static void conclude(Run *r) {
  const Strip *s = r->s;
  bool none;
  const u8 *mask = mask_of(r, &none);
  if (r->mode == TEST) {
    const u8 *holds = (const u8 *)values(r, s->root);
    for (i64 i = 0; i < length(r, s->v) && !none; i++)
      r->found |= holds[s->root.one ? 0 : i] && (!mask || mask[i]);
    return;
  }
  if (none && r->mode != STASH) return;
  u8 ty = root_ty(r);
  const char *from = root_values(r, &ty);
  if (r->mode == STASH) stash(r, ty, from, mask, none);
  else sc_strip_write(r, ty, from, mask, r->q);
}

static void unstash(Run *r, u32 q) {
  i64 at = buffer_index(r), all = buffer_size(r);
  u8 ty = sc_elem[r->op[r->s->dst.view].elem].flt ? TY_REAL : root_ty(r);
  bool none;
  sc_strip_write(r, ty, r->base + r->s->buffer + 8 * (q * all + at), mask_of(r, &none), q);
}

// Sets parts 1 to 3 of the destination to 0: part 0 holds a value that is not a sum of parts.
static void clear_other_parts(Run *r) {
  bool none;
  const u8 *mask = mask_of(r, &none);
  u8 ty = sc_elem[r->op[r->s->dst.view].elem].flt ? TY_REAL : TY_INT;
  const u64 zero[STRIP] = {0};
  for (u32 q = 1; q < PARTS && !none; q++) sc_strip_write(r, ty, (const char *)zero, mask, q);
}

static void leaf(Run *r) {
  const Strip *s = r->s;
  u32 parts = s->m->parts ? PARTS : 1;
  for (r->q = 0; r->q < parts; r->q++) {
    if (r->mode == UNSTASH) {
      unstash(r, r->q);
      continue;
    }
    exec(r, &s->parts);
    conclude(r);
  }
  r->q = 0;
  bool spread = !s->any && parts == 1 && s->dst.partial && r->op[s->dst.view].part;
  if (spread && r->mode != STASH) clear_other_parts(r);
}

static void loop(Run *r, u32 depth) {
  const Strip *s = r->s;
  if (depth == s->outers) {
    leaf(r);
    return;
  }
  u8 v = s->outer[depth];
  for (i64 i = r->from[v]; i < r->to[v] && !r->found; i++) {
    r->start[v] = i;
    if (r->mode != UNSTASH) exec(r, &s->level[depth + 1]);
    loop(r, depth + 1);
  }
}

static void strips(Run *r) {
  const Strip *s = r->s;
  i64 from = s->v < 0 ? 0 : r->from[s->v], to = s->v < 0 ? 1 : r->to[s->v];
  i64 cap = s->v < 0 ? 1 : s->cap[s->v];
  for (i64 at = from; at < to && !r->found; at += cap) {
    if (s->v >= 0) {
      r->start[s->v] = at;
      r->len[s->v] = to - at < cap ? to - at : cap;
    }
    if (r->mode != UNSTASH) exec(r, &s->level[0]);
    loop(r, 0);
  }
}

static void begin(Run *r, void *scratch) {
  const Strip *s = r->s;
  r->base = scratch;
  r->row = (char **)(r->base + s->rows);
  for (u32 i = 0; i < s->slot.n; i++) r->row[i] = r->base + s->slot.at[i].offset;
  for (u32 v = 0; v < SC_MAX_VARS; v++) r->len[v] = 1;
  for (u32 i = 0; i < s->uniform.n; i++) {
    const Uniform *u = &s->uniform.at[i];
    char *to = r->row[u->slot];
    if (u->ty == TY_REAL) s->reals->fill(to, env_real(r->env, u->e), 1);
    else if (u->ty == TY_INT) *(i64 *)(void *)to = env_int(r->env, u->e);
    else *(u8 *)to = env_bool(r->env, u->e);
  }
}

static void run(Run *r, void *scratch) {
  begin(r, scratch);
  if (r->s->buffered && r->mode == WRITE) {
    r->mode = STASH;
    strips(r);
    r->mode = UNSTASH;
  }
  strips(r);
}

void sc_strip_range(const Strip *s, Env *env, const Operand *op, const i64 *from, const i64 *to,
                    void *scratch) {
  Run r = {.s = s, .env = env, .op = op, .mode = WRITE};
  memcpy(r.from, from, s->m->outs * sizeof *from);
  memcpy(r.to, to, s->m->outs * sizeof *to);
  run(&r, scratch);
}

// Runs over [row0, row1) of output variable 0, and over the whole extent of the others.
static void run_rows(Run *r, i64 row0, i64 row1, void *scratch) {
  for (u32 v = 0; v < r->s->m->outs; v++) r->to[v] = env_int(r->env, r->s->m->var[v].extent);
  if (r->s->m->outs && row0 > 0) r->from[0] = row0;
  if (r->s->m->outs && row1 < r->to[0]) r->to[0] = row1;
  run(r, scratch);
}

void sc_strip_run(const Strip *s, Env *env, const Operand *op, i64 row0, i64 row1, void *scratch,
                  const Watch *watch) {
  Run r = {.s = s, .env = env, .op = op, .mode = WRITE, .watch = watch};
  run_rows(&r, row0, row1, scratch);
}

bool sc_strip_any(const Strip *s, Env *env, const Operand *op, i64 row0, i64 row1, void *scratch) {
  Run r = {.s = s, .env = env, .op = op, .mode = TEST};
  run_rows(&r, row0, row1, scratch);
  return r.found;
}

void sc_strip_add(const Strip *s, Env *env, const Operand *op, i64 row0, i64 row1, void *scratch,
                  const Watch *watch) {
  Run r = {.s = s, .env = env, .op = op, .mode = ACCUMULATE, .watch = watch};
  run_rows(&r, row0, row1, scratch);
}
