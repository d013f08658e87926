// machinekit.h - small kernels for tests of the interpreter: a schedule is read, lowered and
// derived (but not checked by `flow`, so that it may have bugs), bound to tensors of small integers
// and run. The including file has included cmocka.h.
#ifndef MACHINEKIT_H
#define MACHINEKIT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/passes.h"
#include "runtime/run.h"

typedef struct Kit {
  Sc sc;
  Kernel *k;
  Binding b;
  schedc_run_options opt;
  float *data[64];
  size_t count[64];
} Kit;

static jmp_buf unwound;

// ---- building and running

// A copy of `text` with its one `from` replaced by `to`.
static inline char *edit(Kit *t, const char *text, const char *from, const char *to) {
  const char *at = strstr(text, from);
  assert_non_null(at);
  assert_null(strstr(at + 1, from));
  return sc_printf(&t->sc, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

static inline void open_kit(Kit *t) {
  memset(t, 0, sizeof *t);
  sc_init(&t->sc, NULL);
  t->sc.unwind = &unwound;
  t->opt = (schedc_run_options)SCHEDC_RUN_OPTIONS_INIT;
}

static inline void close_kit(Kit *t) {
  for (u32 i = 0; i < COUNT(t->data); i++) free(t->data[i]);
  sc_free(&t->sc);
}

static inline void show(Kit *t) {
  for (const Diag *d = t->sc.diags; d; d = d->next) {
    Str s = {.sc = &t->sc};
    sc_diag_text(&s, t->sc.text, d);
    print_message("%s", s.at);
  }
}

static inline void forget_reports(Kit *t) {
  t->sc.diags = NULL;
  t->sc.diag_end = &t->sc.diags;
  t->sc.errors = 0;
}

static inline void load(Kit *t, const char *source) {
  forget_reports(t);
  t->sc.text = sc_text(&t->sc, "t.sched", source, strlen(source));
  Ast *ast = sc_parse(&t->sc, t->sc.text);
  t->k = t->sc.errors ? NULL : sc_lower(&t->sc, ast, &(Choice){0});
  if (t->k && !t->sc.errors && sc_lay_out(&t->sc, t->k)) sc_derive(&t->sc, t->k);
  if (t->sc.errors) show(t);
  assert_int_equal(t->sc.errors, 0);
}

static inline void fill(Kit *t, u32 buf) {
  const Buf *b = &t->k->buf.at[buf];
  for (size_t i = 0; i < t->count[buf]; i++) {
    i64 v = (i64)((i * 2654435761u + buf * 40503u) >> 7) % 7 - 3;
    sc_set_elem((Elem)b->elem, t->data[buf], (i64)i, b->elem == EL_I32 ? (double)i : (double)v);
  }
}

// Gives every tensor memory: small integers, so that sums are exact. dims: in order of the
// kernel's.
static inline void bind(Kit *t, const i64 *dims) {
  Kernel *k = t->k;
  t->b = (Binding){.k = k,
                   .dim = NEWS(&t->sc, i64, k->dim.n + 1),
                   .arg = NEWS(&t->sc, double, k->arg.n + 1),
                   .buf = NEWS(&t->sc, TensorRef, k->buf.n + 1)};
  for (u32 i = 0; i < k->dim.n; i++) t->b.dim[i] = dims[i];
  Env env;
  env_init(&t->sc, &env, k, &t->b);
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *b = &k->buf.at[i];
    TensorRef *r = &t->b.buf[i];
    if (b->space != SP_TENSOR || b->workspace) continue;
    size_t n = 1;
    for (u32 d = b->rank; d-- > 0;) {
      r->shape[d] = env_int(&env, b->dim[d]);
      r->stride[d] = (i64)n;
      n *= (size_t)r->shape[d];
    }
    t->count[i] = n;
    free(t->data[i]);
    t->data[i] = calloc(n + 1, sizeof(float));
    r->at = (char *)t->data[i];
    fill(t, i);
  }
}

static inline schedc_status run(Kit *t) {
  forget_reports(t);
  return sc_interpret(&t->sc, t->k, &t->b, &t->opt);
}

static inline u32 buf_of(const Kit *t, const char *name) {
  for (u32 i = 0; i < t->k->buf.n; i++) {
    if (!strcmp(t->k->buf.at[i].name, name)) return i;
  }
  fail();
  return 0;
}

static inline double at2(const Kit *t, const char *name, i64 i, i64 j) {
  u32 b = buf_of(t, name);
  return sc_get_elem((Elem)t->k->buf.at[b].elem, t->data[b], i * t->b.buf[b].stride[0] + j);
}

static const schedc_policy policies[] = {SCHEDC_EARLY, SCHEDC_LATE, SCHEDC_RANDOM};

// Runs under every policy and several seeds: no fault, and the same bits each time.
static inline void expect_same(Kit *t) {
  u64 first = 0;
  for (u32 i = 0; i < 12; i++) {
    u64 hash = 1469598103934665603u;
    t->opt.policy = policies[i % 3];
    t->opt.seed = i / 3;
    t->opt.threads = 1 + i % 2;
    for (u32 b = 0; b < t->k->buf.n; b++) {
      if (t->data[b] && t->k->buf.at[b].dir == (F_IN | F_OUT)) fill(t, b);
    }
    schedc_status s = run(t);
    if (s != SCHEDC_OK) show(t);
    assert_int_equal(s, SCHEDC_OK);
    for (u32 b = 0; b < t->k->buf.n; b++) {
      if (!t->data[b] || !(t->k->buf.at[b].dir & F_OUT)) continue;
      for (size_t j = 0; j < t->count[b]; j++) {
        double v = sc_get_elem((Elem)t->k->buf.at[b].elem, t->data[b], (i64)j);
        assert_true(v == v);
        hash = (hash ^ (u64)(i64)(v * 65536)) * 1099511628211u;
      }
    }
    if (!i) first = hash;
    assert_int_equal(hash, first);
  }
}

static inline bool says(const Diag *d, const char *what) {
  if (strstr(d->text, what) || (d->help && strstr(d->help, what))) return true;
  for (const Note *n = d->notes; n; n = n->next) {
    if (strstr(n->text, what)) return true;
  }
  return false;
}

static inline void expect_fault(Kit *t, schedc_policy policy, const char *code, const char *what) {
  t->opt.policy = policy;
  schedc_status s = run(t);
  if (s != SCHEDC_EFAULT || strcmp(sc_diag_code(t->sc.diags->id), code) || !says(t->sc.diags, what))
    show(t);
  assert_int_equal(s, SCHEDC_EFAULT);
  assert_string_equal(sc_diag_code(t->sc.diags->id), code);
  assert_true(says(t->sc.diags, what));
  assert_true(says(t->sc.diags, "--seed"));
}

static inline void expect_fault_always(Kit *t, const char *code, const char *what) {
  for (u32 i = 0; i < COUNT(policies); i++) {
    for (t->opt.seed = 0; t->opt.seed < 3; t->opt.seed++) expect_fault(t, policies[i], code, what);
  }
}

// The n-th operation `op` of a role, for a mutation.
static inline Ins *find(Kit *t, const char *role, Op op, u32 n) {
  for (u32 r = 0; r < t->k->role.n; r++) {
    if (strcmp(t->k->role.at[r].name, role)) continue;
    for (u32 i = 0; i < t->k->role.at[r].code.n; i++) {
      if (t->k->role.at[r].code.at[i].op == op && n-- == 0) return &t->k->role.at[r].code.at[i];
    }
  }
  fail();
  return NULL;
}

// ---- schedules

static const char product[] __attribute__((unused)) =
    "kernel g {\n"
    "  in A : f16[M, K]\n"
    "  in B : f16[N, K]\n"
    "  out C : f32[M, N]\n"
    "  spec { C[i,j] = sum(k) A[i,k] * B[j,k] }\n"
    "  grid (x : cdiv(M, 64), y : cdiv(N, 32)) persistent\n"
    "  ring a : f16[64, 64] * 2\n"
    "  ring b : f16[32, 64] * 2\n"
    "  let n = cdiv(K, 64)\n"
    "  role load : 1 warp, 40 regs {\n"
    "    for t in 0 .. n { a <- A[x*64.., t*64..];  b <- B[y*32.., t*64..] }\n"
    "  }\n"
    "  role math : 1 warpgroup, 200 regs {\n"
    "    reg s : f32[64, 32] = 0\n"
    "    for t in 0 .. n {\n"
    "      wait a, b\n"
    "      async s[i,j] += a[i,k] @ b[j,k]\n"
    "      wait s;  release a, b\n"
    "    }\n"
    "    C[x*64 + i, y*32 + j] = s[i,j]\n"
    "  }\n"
    "}\n";

static const i64 product_dims[]
    __attribute__((unused)) = {100, 200, 70};  // M, K, N in order of appearance

static inline void check_product(const Kit *t) {
  for (i64 i = 0; i < t->b.buf[buf_of(t, "C")].shape[0]; i++) {
    for (i64 j = 0; j < t->b.buf[buf_of(t, "C")].shape[1]; j++) {
      double sum = 0;
      for (i64 k = 0; k < t->b.buf[buf_of(t, "A")].shape[1]; k++)
        sum += at2(t, "A", i, k) * at2(t, "B", j, k);
      assert_float_equal(at2(t, "C", i, j), sum, 0);
    }
  }
}

static inline void open_product(Kit *t, const char *from, const char *to) {
  open_kit(t);
  load(t, from ? edit(t, product, from, to) : product);
  bind(t, product_dims);
}

static const char turns[] __attribute__((unused)) =
    "kernel turns {\n"
    "  in A : f16[M, K]\n"
    "  in B : f16[N, K]\n"
    "  out C : f16[M, N]\n"
    "  spec { C[i,j] = sum(k) A[i,k] * B[j,k] }\n"
    "  grid (x : cdiv(M, 64), y : cdiv(N, 32)) persistent\n"
    "  ring ab : { a : f16[64, 64], b : f16[32, 64] } * 2\n"
    "  ring c : f16[64, 32] * 2\n"
    "  turn mma : math\n"
    "  let n = cdiv(K, 64)\n"
    "  role load : 1 warp, 40 regs {\n"
    "    for t in 0 .. n { acquire ab;  ab.a <- A[x*64.., t*64..];  ab.b <- B[y*32.., t*64..];  "
    "commit ab }\n"
    "  }\n"
    "  role store : 1 warp, 40 regs { wait c;  C[x*64.., y*32..] <- c;  wait C read;  release c }\n"
    "  role math[w] : 2 warpgroups, one tile each, 200 regs {\n"
    "    reg s : f32[64, 32] = 0\n"
    "    acquire mma\n"
    "    for t in 0 .. n { wait ab;  async s[i,j] += ab.a[i,k] @ ab.b[j,k];  wait s;  release ab "
    "}\n"
    "    release mma\n"
    "    acquire c;  c[i,j] = s[i,j];  commit c\n"
    "  }\n"
    "}\n";

// Sums of floats in the order that the turn gives, whatever the policy.
static const char ordered[] __attribute__((unused)) =
    "kernel ordered {\n"
    "  in X : f32[T, 8, 32]\n"
    "  inout Y : f32[8, 32]\n"
    "  grid (x : T)\n"
    "  ring r : f32[8, 32]\n"
    "  turn t : x\n"
    "  role load : 1 warp, 40 regs { r <- X[x] }\n"
    "  role add : 1 warp, 40 regs {\n"
    "    wait r;  acquire t;  Y[0..] += r;  wait Y;  release t;  release r\n"
    "  }\n"
    "}\n";

static const char copies[] __attribute__((unused)) =
    "kernel copies {\n"
    "  in X : f32[M, 32]\n"
    "  out Y : f32[M, 32]\n"
    "  spec { Y[i,j] = X[i,j] }\n"
    "  grid (x : 2) persistent\n"
    "  ring r : f32[8, 32] * 2\n"
    "  let n = cdiv(M, 16)\n"
    "  role load : 1 warp, 40 regs { for t in 0 .. n { r <- X[(2*t + x)*8..] } }\n"
    "  role store : 1 warp, 40 regs {\n"
    "    for t in 0 .. n { wait r;  Y[(2*t + x)*8..] <- r;  wait Y read;  release r }\n"
    "  }\n"
    "}\n";

#endif
