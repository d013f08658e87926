// stripkit.h - compiled maps against an evaluator that takes one element at a time. The including
// file has included cmocka.h.
#ifndef STRIPKIT_H
#define STRIPKIT_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernelmaker.h"
#include "runtime/data/mathf.h"

typedef struct Fix {
  Sc sc;
  jmp_buf home;
  Kernel *k;
  Binding b;
  Operand *op;  // by view, for up to 64 views
} Fix;

static inline int setup(void **state) {
  Fix *f = calloc(1, sizeof *f);
  sc_init(&f->sc, NULL);
  if (setjmp(f->home)) return -1;
  f->sc.unwind = &f->home;
  f->k = sc_kernel(&f->sc);
  f->b = km_binding(&f->sc, f->k, 64);
  f->op = NEWS(&f->sc, Operand, 64);
  *state = f;
  return 0;
}

static inline int teardown(void **state) {
  Fix *f = *state;
  sc_free(&f->sc);
  free(f);
  return 0;
}

static inline u64 rng(u64 *s) {
  *s ^= *s << 13, *s ^= *s >> 7, *s ^= *s << 17;
  return *s;
}

static inline float uniform(u64 *s) { return (float)((i64)(rng(s) >> 40) - (1 << 23)) * 0x1p-22f; }

// A register tile: row-major f32, partial if k says so; every view of `buf` gets its operand.
static inline float *tile(Fix *f, u32 buf, Elem elem, i64 rows, i64 cols) {
  Kernel *k = f->k;
  i64 part = k->buf.at[buf].partial ? rows * (cols ? cols : 1) : 0;
  float *at = NEWS(&f->sc, float, (part ? 4 : 1) * rows * (cols ? cols : 1));
  for (u32 v = 0; v < k->view.n; v++) {
    const View *w = &k->view.at[v];
    if (w->buf != buf) continue;
    Operand *o = &f->op[v];
    *o = (Operand){.at = at, .store = elem == EL_I32 ? EL_I32 : EL_F32, .elem = elem, .part = part};
    for (u32 i = 0; i < w->rank; i++) {
      if (w->at[i].var < 0) continue;
      o->stride[w->at[i].var] += i + 1 < w->rank ? cols : 1;
      o->hi[w->at[i].var] = i + 1 < w->rank || !cols ? rows : cols;
    }
  }
  return at;
}

static inline void run_rows(Fix *f, u32 map, i64 row0, i64 row1) {
  sc_list_accesses(&f->sc, f->k);
  Strip *s = sc_strip(sc_strip_maker(&f->sc, f->k), &f->k->map.at[map]);
  Env env;
  env_init(&f->sc, &env, f->k, &f->b);
  void *scratch = aligned_alloc(64, sc_strip_scratch(s) + 64);
  memset(scratch, 0xff, sc_strip_scratch(s));
  sc_strip_run(s, &env, f->op, row0, row1, scratch, NULL);
  free(scratch);
}

static inline void run_map(Fix *f, u32 map) { run_rows(f, map, 0, INT64_MAX); }

static inline void randomise(float *at, i64 n, u64 seed) {
  for (i64 i = 0; i < n; i++) at[i] = uniform(&seed);
}

// ---- one element at a time

typedef struct Val {
  double r;
  i64 i;
} Val;

static inline Val naive(Fix *f, const Map *m, Xid e, i64 *idx, int part);

static inline double element(Fix *f, u32 view, const i64 *idx, int part) {
  const View *v = &f->k->view.at[view];
  const Operand *o = &f->op[view];
  i64 at = 0;
  for (u32 i = 0; i < v->rank; i++) {
    i8 var = v->at[i].var;
    if (var < 0) continue;
    if (idx[var] < o->lo[var] || idx[var] >= o->hi[var]) return 0;
  }
  for (u32 i = 0; i < SC_MAX_VARS; i++) at += idx[i] * o->stride[i];
  if (o->part && part < 0) {
    const float *p = o->at;
    return (p[at] + p[at + o->part]) + (p[at + 2 * o->part] + p[at + 3 * o->part]);
  }
  return sc_get_elem(o->store, o->at, at + (part < 0 ? 0 : part) * o->part);
}

static inline Val reduce_naive(Fix *f, const Map *m, const Expr *p, i64 *idx, int part) {
  i64 n = 0;
  x_const_int(f->k, m->var[p->ref].extent, &n);
  double r = p->op == X_SUM ? 0 : p->op == X_RMAX ? -INFINITY : INFINITY;
  for (i64 j = 0; j < n; j++) {
    idx[p->ref] = j;
    if (p->op == X_SUM && part >= 0 && j / 2 % 4 != part) continue;
    double v = naive(f, m, p->a, idx, -1).r;
    r = p->op == X_SUM ? r + v : p->op == X_RMAX ? fmax(r, v) : fmin(r, v);
  }
  return (Val){r, (i64)r};
}

static inline Val naive(Fix *f, const Map *m, Xid e, i64 *idx, int part) {
  const Expr *p = &f->k->expr.at[e];
  Val a = {0}, b = {0};
  if (p->op >= X_SUM) return reduce_naive(f, m, p, idx, part);
  if (p->op == X_LOAD) {
    double v = element(f, p->ref, idx, f->k->buf.at[f->k->view.at[p->ref].buf].partial ? part : -1);
    return (Val){v, (i64)v};
  }
  if (p->a) a = naive(f, m, p->a, idx, part);
  if (p->b) b = naive(f, m, p->b, idx, part);
  float x = (float)a.r, y = (float)b.r, r = 0;
  bool reals = p->a && f->k->expr.at[p->a].ty == TY_REAL;
  switch (p->op) {
    case X_INT:
    case X_BOOL: return (Val){(double)p->num.i, p->num.i};
    case X_REAL: return (Val){(float)p->num.f, 0};
    case X_IDX: return (Val){(double)idx[p->ref], idx[p->ref]};
    case X_TOREAL: return (Val){(float)a.i, 0};
    case X_NOT: return (Val){0, !a.i};
    case X_AND: return (Val){0, a.i && b.i};
    case X_OR: return (Val){0, a.i || b.i};
    case X_WHERE: return a.i ? b : naive(f, m, p->c, idx, part);
    case X_LT: return (Val){0, reals ? x < y : a.i < b.i};
    case X_LE: return (Val){0, reals ? x <= y : a.i <= b.i};
    case X_EQ: return (Val){0, reals ? x == y : a.i == b.i};
    case X_NE: return (Val){0, reals ? x != y : a.i != b.i};
    default: break;
  }
  if (p->ty == TY_INT) {
    i64 v = 0;
    sc_int_op(p->op, a.i, b.i, &v);
    return (Val){(double)v, v};
  }
  switch (p->op) {
    case X_EXP2: r = mf_exp2(x); break;
    case X_EXP: r = mf_exp(x); break;
    case X_TANH: r = mf_tanh(x); break;
    case X_SQRT: r = sqrtf(x); break;
    case X_NEG: r = -x; break;
    case X_ABS: r = fabsf(x); break;
    case X_ADD: r = x + y; break;
    case X_SUB: r = x - y; break;
    case X_MUL: r = x * y; break;
    case X_DIV: r = x / y; break;
    case X_MIN: r = fminf(x, y); break;
    case X_MAX: r = fmaxf(x, y); break;
    default: fail();
  }
  return (Val){r, 0};
}

static inline void assert_near(double got, double want, double eps) {
  if (got == want || (isnan(got) && isnan(want))) return;
  if (fabs(got - want) <= eps * (1 + fabs(want))) return;
  fail_msg("%.9g where %.9g is right", got, want);
}

// Runs the map and compares every element of dst with what it should be. The naive evaluator reads
// the operands before anything is written.
static inline void check(Fix *f, u32 map, double eps) {
  const Map *m = &f->k->map.at[map];
  i64 ext[SC_MAX_VARS] = {0}, idx[SC_MAX_VARS] = {0}, n = 1;
  for (u32 v = 0; v < m->vars; v++) x_const_int(f->k, m->var[v].extent, &ext[v]);
  for (u32 v = 0; v < m->outs; v++) n *= ext[v];
  const Operand *o = &f->op[m->dst];
  int parts = o->part ? 4 : 1;
  double *want = malloc((size_t)(n * parts + 1) * sizeof *want);
  for (int pass = 0; pass < 2; pass++) {
    if (pass) run_map(f, map);
    for (i64 e = 0; e < n; e++) {
      i64 rest = e;
      for (u32 v = m->outs; v-- > 0; rest /= ext[v]) idx[v] = rest % ext[v];
      for (int q = 0; q < parts; q++) {
        double now = element(f, m->dst, idx, parts == 4 ? q : -1);
        if (pass) {
          assert_near(now, want[e * parts + q], eps);
          continue;
        }
        Val v = naive(f, m, m->root, idx, m->parts ? q : -1);
        bool real = f->k->expr.at[m->root].ty == TY_REAL;
        double value = real ? sc_round(o->elem, (float)v.r) : (double)v.i;
        if (parts == 4 && !m->parts && q) value = 0;
        if (m->cond && !naive(f, m, m->cond, idx, -1).i) value = now;
        want[e * parts + q] = value;
      }
    }
  }
  free(want);
}

#endif
