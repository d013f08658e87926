// interp.c - the interpreter on small kernels: right results under every policy, and each fault it must
// find. Schedules with a bug skip `flow`, which would refuse most of them; bugs that no schedule can have
// are put into the plans that `derive` made.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "passes.h"
#include "run.h"

typedef struct Kit {
  Sc sc;
  Kernel *k;
  Binding b;
  schedc_run_options opt;
  float *data[64];
  size_t count[64];
} Kit;

static jmp_buf unwound;

// ---- building and running ------------------------------------------------------------------------

// A copy of `text` with its one `from` replaced by `to`.
static char *edit(Kit *t, const char *text, const char *from, const char *to) {
  const char *at = strstr(text, from);
  assert_non_null(at);
  assert_null(strstr(at + 1, from));
  return sc_printf(&t->sc, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

static void open_kit(Kit *t) {
  memset(t, 0, sizeof *t);
  sc_init(&t->sc, NULL);
  t->sc.unwind = &unwound;
  t->opt = (schedc_run_options)SCHEDC_RUN_OPTIONS_INIT;
}

static void close_kit(Kit *t) {
  for (u32 i = 0; i < COUNT(t->data); i++) free(t->data[i]);
  sc_free(&t->sc);
}

static void show(Kit *t) {
  for (const Diag *d = t->sc.diags; d; d = d->next) {
    Str s = {.sc = &t->sc};
    sc_diag_text(&s, t->sc.text, d);
    print_message("%s", s.at);
  }
}

static void load(Kit *t, const char *source) {
  t->sc.text = sc_text(&t->sc, "t.sched", source, strlen(source));
  Ast *ast = sc_parse(&t->sc, t->sc.text);
  t->k = t->sc.errors ? NULL : sc_lower(&t->sc, ast, &(Choice){0});
  for (u32 i = 0; t->k && !t->sc.errors && i < t->k->launch.n; i++) {
    sc_derive(&t->sc, (Kernel *)(uintptr_t)t->k->launch.at[i].kernel);
  }
  if (t->k && !t->sc.errors) sc_derive(&t->sc, t->k);
  if (t->sc.errors) show(t);
  assert_int_equal(t->sc.errors, 0);
}

static void fill(Kit *t, u32 buf) {
  const Buf *b = &t->k->buf.at[buf];
  for (size_t i = 0; i < t->count[buf]; i++) {
    i64 v = (i64)((i * 2654435761u + buf * 40503u) >> 7) % 7 - 3;
    sc_set_elem((Elem)b->elem, t->data[buf], (i64)i, b->elem == EL_I32 ? (double)i : (double)v);
  }
}

// Gives every tensor memory: small integers, so that sums are exact. dims: in order of the kernel's.
static void bind(Kit *t, const i64 *dims) {
  Kernel *k = t->k;
  t->b = (Binding){.k = k, .dim = NEWS(&t->sc, i64, k->dim.n + 1), .arg = NEWS(&t->sc, double, k->arg.n + 1),
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

static schedc_status run(Kit *t) {
  t->sc.diags = NULL;
  t->sc.diag_end = &t->sc.diags;
  t->sc.errors = 0;
  return sc_interpret(&t->sc, t->k, &t->b, &t->opt);
}

static u32 buf_of(const Kit *t, const char *name) {
  for (u32 i = 0; i < t->k->buf.n; i++) {
    if (!strcmp(t->k->buf.at[i].name, name)) return i;
  }
  fail();
  return 0;
}

static double at2(const Kit *t, const char *name, i64 i, i64 j) {
  u32 b = buf_of(t, name);
  return sc_get_elem((Elem)t->k->buf.at[b].elem, t->data[b], i * t->b.buf[b].stride[0] + j);
}

static const schedc_policy policies[] = {SCHEDC_EARLY, SCHEDC_LATE, SCHEDC_RANDOM};

// Runs under every policy and several seeds: no fault, and the same bits each time.
static void expect_same(Kit *t) {
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

static bool says(const Diag *d, const char *what) {
  if (strstr(d->text, what) || (d->help && strstr(d->help, what))) return true;
  for (const Note *n = d->notes; n; n = n->next) {
    if (strstr(n->text, what)) return true;
  }
  return false;
}

static void expect_fault(Kit *t, schedc_policy policy, const char *code, const char *what) {
  t->opt.policy = policy;
  schedc_status s = run(t);
  if (s != SCHEDC_EFAULT || strcmp(sc_diag_code(t->sc.diags->id), code) || !says(t->sc.diags, what)) show(t);
  assert_int_equal(s, SCHEDC_EFAULT);
  assert_string_equal(sc_diag_code(t->sc.diags->id), code);
  assert_true(says(t->sc.diags, what));
  assert_true(says(t->sc.diags, "--seed"));
}

static void expect_fault_always(Kit *t, const char *code, const char *what) {
  for (u32 i = 0; i < COUNT(policies); i++) {
    for (t->opt.seed = 0; t->opt.seed < 3; t->opt.seed++) expect_fault(t, policies[i], code, what);
  }
}

// The n-th operation `op` of a role, for a mutation.
static Ins *find(Kit *t, const char *role, Op op, u32 n) {
  for (u32 r = 0; r < t->k->role.n; r++) {
    if (strcmp(t->k->role.at[r].name, role)) continue;
    for (u32 i = 0; i < t->k->role.at[r].code.n; i++) {
      if (t->k->role.at[r].code.at[i].op == op && n-- == 0) return &t->k->role.at[r].code.at[i];
    }
  }
  fail();
  return NULL;
}

// ---- a product -----------------------------------------------------------------------------------

static const char product[] =
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

static const i64 product_dims[] = {100, 200, 70};  // M, K, N in order of appearance

static void check_product(const Kit *t) {
  for (i64 i = 0; i < t->b.buf[buf_of(t, "C")].shape[0]; i++) {
    for (i64 j = 0; j < t->b.buf[buf_of(t, "C")].shape[1]; j++) {
      double sum = 0;
      for (i64 k = 0; k < t->b.buf[buf_of(t, "A")].shape[1]; k++) sum += at2(t, "A", i, k) * at2(t, "B", j, k);
      assert_float_equal(at2(t, "C", i, j), sum, 0);
    }
  }
}

static void open_product(Kit *t, const char *from, const char *to) {
  open_kit(t);
  load(t, from ? edit(t, product, from, to) : product);
  bind(t, product_dims);
}

static void test_product(void **state) {
  (void)state;
  Kit t;
  open_product(&t, NULL, NULL);
  expect_same(&t);
  check_product(&t);
  close_kit(&t);
}

static void test_grids(void **state) {
  (void)state;
  static const char *const grid[] = {
    "grid (x : cdiv(M, 64), y : cdiv(N, 32))",
    "grid (x : cdiv(M, 64) by 1, reversed y : cdiv(N, 32) by 2) persistent",
    "grid (x : cdiv(M, 64), y : cdiv(N, 32)) dynamic",
    "grid (x : cdiv(M, 64), y : cdiv(N, 32)) persistent cluster (y : 2)",
    "grid (x : cdiv(M, 64), y : cdiv(N, 32)) dynamic cluster (x : 2)",
  };
  for (u32 i = 0; i < COUNT(grid); i++) {
    Kit t;
    open_product(&t, "grid (x : cdiv(M, 64), y : cdiv(N, 32)) persistent", grid[i]);
    for (t.opt.sms = 1; t.opt.sms < 4; t.opt.sms++) expect_same(&t);
    check_product(&t);
    close_kit(&t);
  }
}

// Two CTAs of a cluster work on the same rows of A: each brings half of them to both.
static void test_multicast(void **state) {
  (void)state;
  Kit t;
  open_kit(&t);
  const char *s = edit(&t, product, "persistent", "persistent cluster (y : 2)");
  load(&t, edit(&t, s, "a <- A[x*64.., t*64..];", "a <- A[x*64.., t*64..] multicast;"));
  bind(&t, product_dims);
  assert_true(t.k->ring.at[0].multicast);
  expect_same(&t);
  check_product(&t);
  find(&t, "math", OP_RELEASE, 0)->plan.arrivals = 0;  // the peers never hear that the stage is free
  expect_fault_always(&t, "X.deadlock", "waits for an empty stage");
  close_kit(&t);
}

// ---- deadlocks -----------------------------------------------------------------------------------

static void test_deadlock(void **state) {
  (void)state;
  Kit t;
  open_product(&t, "for t in 0 .. n {\n      wait", "for t in 0 .. n + 1 {\n      wait");
  t.opt.threads = 2;
  expect_fault_always(&t, "X.deadlock", "math waits for fill");
  expect_fault(&t, SCHEDC_LATE, "X.deadlock", "load could fill it");
  close_kit(&t);
  open_product(&t, "wait s;  release a, b", "wait s;  release a");
  expect_fault_always(&t, "X.deadlock", "load waits for an empty stage for fill 2 of `b`");
  close_kit(&t);
}

static void test_counts(void **state) {
  (void)state;
  Kit t;
  open_product(&t, NULL, NULL);
  find(&t, "load", OP_ACQUIRE, 0)->plan.bytes += 16;
  expect_fault_always(&t, "X.deadlock", "16 bytes to come");
  find(&t, "load", OP_ACQUIRE, 0)->plan.bytes -= 16;
  t.k->ring.at[0].full_count++;
  expect_fault_always(&t, "X.deadlock", "1 of 2 arrivals");
  t.k->ring.at[0].full_count--;
  t.k->ring.at[1].empty_count++;
  expect_fault_always(&t, "X.deadlock", "1 of 2 arrivals");
  close_kit(&t);
}

// ---- races ---------------------------------------------------------------------------------------

static void test_early_completion(void **state) {
  (void)state;
  Kit t;
  open_product(&t, NULL, NULL);
  find(&t, "load", OP_ACQUIRE, 0)->plan.bytes = 0;  // the phase ends with the commit, whenever the copy lands
  expect_fault(&t, SCHEDC_LATE, "X.race", "has landed");
  close_kit(&t);
}

static void test_release_early(void **state) {
  (void)state;
  Kit t;
  open_product(&t, "wait s;  release a, b", "release a, b;  wait s");
  expect_fault_always(&t, "X.race", "released while a product may still read it");
  close_kit(&t);
  open_product(&t, NULL, NULL);
  find(&t, "math", OP_MMAWAIT, 0)->plan.keep = 1;
  expect_fault_always(&t, "X.race", "not waited for");
  close_kit(&t);
}

// One arrival too many frees the stage while the other instance still reads it.
static void test_release_of_another(void **state) {
  (void)state;
  Kit t;
  open_kit(&t);
  const char *s = edit(&t, product, "role math : 1 warpgroup", "role math[w] : 2 warpgroups");
  s = edit(&t, s, "ring b : f16[32, 64]", "ring b : f16[64, 64]");
  s = edit(&t, s, "b[j,k]", "b[32*w + j,k]");
  s = edit(&t, s, "y*32 + j", "y*64 + 32*w + j");
  s = edit(&t, s, "B[y*32..", "B[y*64..");
  load(&t, edit(&t, s, "y : cdiv(N, 32)", "y : cdiv(N, 64)"));
  bind(&t, product_dims);
  expect_same(&t);
  check_product(&t);
  t.k->ring.at[0].empty_count--;
  u32 races = 0;
  for (u32 i = 0; i < 12; i++) {  // the second arrival may also be taken for the next round's: then it hangs
    t.opt.policy = policies[i % 3];
    t.opt.seed = i;
    assert_int_equal(run(&t), SCHEDC_EFAULT);
    races += t.sc.diags->id == D_X_RACE && says(t.sc.diags, "wait for the product before its stage is given back");
  }
  assert_true(races > 0);
  close_kit(&t);
}

// Threads write what a product reads.
static const char staged[] =
  "kernel staged {\n"
  "  in A : f16[M, 64]\n"
  "  in B : f16[32, 64]\n"
  "  out C : f32[M, 32]\n"
  "  spec { C[i,j] = sum(k) 2 * A[i,k] * B[j,k] }\n"
  "  grid (x : cdiv(M, 64)) persistent\n"
  "  ring a : f16[64, 64] * 2\n"
  "  ring b : f16[32, 64]\n"
  "  ring d : f16[64, 64] * 2\n"
  "  role load : 1 warp, 40 regs { a <- A[x*64..];  b <- B[0..] }\n"
  "  role twice : 1 warpgroup, 104 regs {\n"
  "    wait a;  acquire d\n"
  "    d[i,k] = 2 * a[i,k]\n"
  "    commit d;  release a\n"
  "  }\n"
  "  role math : 1 warpgroup, 104 regs {\n"
  "    reg s : f32[64, 32]\n"
  "    wait b, d\n"
  "    async s[i,j] = d[i,k] @ b[j,k]\n"
  "    wait s;  release b, d\n"
  "    C[x*64 + i, j] = s[i,j]\n"
  "  }\n"
  "}\n";

static void test_fence(void **state) {
  (void)state;
  Kit t;
  open_kit(&t);
  load(&t, staged);
  bind(&t, (i64[]){700});
  t.opt.sms = 2;
  expect_same(&t);
  assert_float_equal(at2(&t, "C", 0, 0), at2(&t, "C", 0, 0), 0);
  Ins *commit = find(&t, "twice", OP_COMMIT, 0), *release = find(&t, "twice", OP_RELEASE, 0);
  assert_true(commit->plan.fence);
  commit->plan.fence = false;
  expect_fault_always(&t, "X.race", "fence.proxy.async is missing");
  commit->plan.fence = true;
  bool fenced = release->plan.fence;
  release->plan.fence = false;
  if (fenced) expect_fault_always(&t, "X.race", "a copy fills `a`");
  close_kit(&t);
}

// One thread arrives for a warpgroup whose warps have not met.
static void test_meeting(void **state) {
  (void)state;
  Kit t;
  open_kit(&t);
  load(&t, staged);
  bind(&t, (i64[]){700});
  find(&t, "twice", OP_COMMIT, 0)->plan.arrivals = 1;
  t.k->ring.at[2].full_count = 1;
  expect_fault_always(&t, "X.race", "no barrier orders the two");
  find(&t, "twice", OP_COMMIT, 0)->plan.meet = true;
  expect_same(&t);
  close_kit(&t);
}

// ---- tiles in flight, stages not held, places outside --------------------------------------------

static void test_flight(void **state) {
  (void)state;
  Kit t;
  open_product(&t, "      wait s;  release", "      s[i,j] = 2 * s[i,j];  wait s;  release");
  expect_fault_always(&t, "X.flight", "`s` is in flight");
  close_kit(&t);
  open_product(&t, "wait a, b\n      async s[i,j] +=", "wait a, b\n      async s[i,j] = a[i,k] @ b[j,k]\n      async s[i,j] =");
  expect_fault_always(&t, "X.flight", "has not been waited for");
  close_kit(&t);
}

static void test_held(void **state) {
  (void)state;
  Kit t;
  open_product(&t, "wait s;  release a, b", "wait s;  release a, b");
  find(&t, "math", OP_WAIT, 1)->op = OP_ENDIF;  // waits for nothing
  expect_fault_always(&t, "X.held", "no stage of `b` is held");
  close_kit(&t);
  open_product(&t, "wait s;  release a, b", "wait s;  release b");
  bind(&t, (i64[]){64, 64, 32});
  expect_fault_always(&t, "X.held", "a stage of `a` has not been released");
  close_kit(&t);
}

static void test_bounds(void **state) {
  (void)state;
  Kit t;
  open_kit(&t);
  const char *s = edit(&t, product, "  out C", "  in cut : i32[1]\n  let z = cut[0] + 8\n  out C");
  load(&t, edit(&t, s, "b[j,k]", "b[z + j,k]"));
  bind(&t, product_dims);
  expect_fault_always(&t, "X.bounds", "`b` has 32 elements along dimension 1; this reaches for 8 to 39");
  close_kit(&t);
  open_kit(&t);
  s = edit(&t, product, "  out C", "  in cut : i32[1]\n  let z = cut[x + y]\n  out C");
  load(&t, edit(&t, s, "cdiv(K, 64)", "cdiv(K, 64) + min(0, z)"));
  bind(&t, product_dims);
  expect_fault_always(&t, "X.value", "outside its tensor");
  close_kit(&t);
}

// ---- copies out ----------------------------------------------------------------------------------

static const char copies[] =
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

static void test_copy_out(void **state) {
  (void)state;
  Kit t;
  open_kit(&t);
  load(&t, copies);
  bind(&t, (i64[]){77});
  expect_same(&t);
  for (i64 i = 0; i < 77; i++) assert_float_equal(at2(&t, "Y", i, 31), at2(&t, "X", i, 31), 0);
  find(&t, "store", OP_COPYWAIT, 0)->plan.keep = 1;
  expect_fault_always(&t, "X.race", "released while a copy out may still read it");
  close_kit(&t);
  open_kit(&t);
  load(&t, edit(&t, copies, "wait Y read;  release r", "release r;  wait Y read"));
  bind(&t, (i64[]){77});
  expect_fault_always(&t, "X.race", "copy out");
  close_kit(&t);
}

// ---- turns ---------------------------------------------------------------------------------------

static const char turns[] =
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
  "    for t in 0 .. n { acquire ab;  ab.a <- A[x*64.., t*64..];  ab.b <- B[y*32.., t*64..];  commit ab }\n"
  "  }\n"
  "  role store : 1 warp, 40 regs { wait c;  C[x*64.., y*32..] <- c;  wait C read;  release c }\n"
  "  role math[w] : 2 warpgroups, one tile each, 200 regs {\n"
  "    reg s : f32[64, 32] = 0\n"
  "    acquire mma\n"
  "    for t in 0 .. n { wait ab;  async s[i,j] += ab.a[i,k] @ ab.b[j,k];  wait s;  release ab }\n"
  "    release mma\n"
  "    acquire c;  c[i,j] = s[i,j];  commit c\n"
  "  }\n"
  "}\n";

static void test_one_tile_each(void **state) {
  (void)state;
  Kit t;
  open_kit(&t);
  load(&t, turns);
  bind(&t, (i64[]){200, 150, 104});
  for (t.opt.sms = 1; t.opt.sms < 4; t.opt.sms++) expect_same(&t);
  check_product(&t);
  close_kit(&t);
}

// A stage filled by two instances in turn: neither knows that the other's round is over.
static void test_phase(void **state) {
  (void)state;
  Kit t;
  open_kit(&t);
  load(&t, edit(&t, turns, "ring c : f16[64, 32] * 2", "ring c : f16[64, 32]"));
  bind(&t, (i64[]){200, 150, 104});
  t.opt.sms = 1;
  expect_fault_always(&t, "X.phase", "more stages");
  close_kit(&t);
}

static void test_turn_twice(void **state) {
  (void)state;
  Kit t;
  open_kit(&t);
  const char *s = edit(&t, product, "role math : 1 warpgroup", "turn tc : math\n  role math[w] : 2 warpgroups");
  s = edit(&t, s, "      async s[i,j] += a[i,k] @ b[j,k]\n", "      acquire tc\n      async s[i,j] += a[i,k] @ b[j,k]\n      release tc\n");
  load(&t, s);
  bind(&t, product_dims);
  expect_same(&t);
  find(&t, "math", OP_TAKE, 0)->op = OP_ENDIF;
  expect_fault(&t, SCHEDC_LATE, "X.turn", "before the next member took it");
  find(&t, "math", OP_PASS, 0)->op = OP_ENDIF;
  find(&t, "math", OP_ENDIF, 0)->op = OP_TAKE;
  expect_fault_always(&t, "X.deadlock", "math[1] waits for its turn `tc`");
  close_kit(&t);
}

// Sums of floats in the order that the turn gives, whatever the policy.
static const char ordered[] =
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

static void test_ordered(void **state) {
  (void)state;
  Kit t;
  open_kit(&t);
  load(&t, ordered);
  bind(&t, (i64[]){17});
  u32 x = buf_of(&t, "X");
  for (size_t i = 0; i < t.count[x]; i++) t.data[x][i] = 1.0f / (float)(1 + i % 613);
  for (u32 i = 0; i < 9; i++) {
    u32 y = buf_of(&t, "Y");
    float sum = 0;
    memset(t.data[y], 0, t.count[y] * sizeof(float));
    t.opt.policy = policies[i % 3];
    t.opt.seed = i;
    assert_int_equal(run(&t), SCHEDC_OK);
    for (u32 n = 0; n < 17; n++) sum += t.data[x][n * 256 + 77];
    assert_true(t.data[y][77] == sum);
  }
  find(&t, "add", OP_COPYWAIT, 0)->flags |= INS_READ;
  expect_fault_always(&t, "X.flight", "turn is passed on while a copy out is in flight");
  find(&t, "add", OP_PASS, 0)->op = OP_ENDIF;
  expect_fault_always(&t, "X.deadlock", "of `t`");
  close_kit(&t);
}

// ---- votes, private rings, sequences -------------------------------------------------------------

static const char votes[] =
  "kernel votes {\n"
  "  in X : f32[M, 32]\n"
  "  out Y : f32[M, 32]\n"
  "  spec { Y[i,j] = X[i,j] }\n"
  "  grid (x : cdiv(M, 64))\n"
  "  role all[w] : 1 warpgroup, 104 regs {\n"
  "    ring r : f32[64, 32]\n"
  "    reg s : f32[64, 32], m : f32[64]\n"
  "    r <- X[x*64..]\n"
  "    wait r;  s[i,j] = r[i,j];  release r\n"
  "    m[i] = max(j) s[i,j]\n"
  "    vote any(m[i] > 1000) { s[i,j] = s[i,j] + 100 }\n"
  "    Y[x*64 + i, j] = s[i,j]\n"
  "  }\n"
  "}\n";

static void test_vote(void **state) {
  (void)state;
  Kit t;
  open_kit(&t);
  load(&t, votes);
  bind(&t, (i64[]){90});
  t.data[buf_of(&t, "X")][37 * 32 + 5] = 2000;  // rows 32 to 47 belong to the warp that sees it
  expect_same(&t);
  for (i64 i = 0; i < 90; i++) {
    double more = i / 16 == 2 ? 100 : 0;
    assert_float_equal(at2(&t, "Y", i, 9), at2(&t, "X", i, 9) + more, 0);
  }
  close_kit(&t);
}

static void test_sequence(void **state) {
  (void)state;
  static const char text[] =
    "kernel first  {\n  in X : f32[M]\n  out W : f32[M]\n  grid (x : cdiv(M, 64))\n"
    "  role r : 1 warpgroup, 64 regs { reg a : f32[64]\n    a[i] = X[x*64 + i]\n    W[x*64 + i] = 2 * a[i] } }\n"
    "kernel second {\n  in W : f32[M]\n  out Y : f32[M]\n  grid (x : cdiv(M, 64))\n"
    "  role r : 1 warpgroup, 64 regs { reg a : f32[64]\n    a[i] = W[x*64 + i]\n    Y[x*64 + i] = a[i] + 1 } }\n"
    "sequence both {\n  workspace W : f32[M]\n  first\n  second\n  spec { Y[i] = 2 * X[i] + 1 } }\n";
  Kit t;
  open_kit(&t);
  load(&t, text);
  bind(&t, (i64[]){130});
  expect_same(&t);
  u32 x = buf_of(&t, "X"), y = buf_of(&t, "Y");
  for (u32 i = 0; i < 130; i++) assert_true(t.data[y][i] == 2 * t.data[x][i] + 1);
  close_kit(&t);
}

// ---- limits --------------------------------------------------------------------------------------

static int count_calls(void *user, double done) {
  assert_true(done >= 0 && done <= 1);
  return ++*(int *)user > 3;
}

static void test_limits(void **state) {
  (void)state;
  Kit t;
  open_kit(&t);
  load(&t, product);
  bind(&t, (i64[]){640, 64000, 64});
  t.opt.threads = 1;
  t.opt.step_budget = 2000;
  assert_int_equal(run(&t), SCHEDC_ELIMIT);
  assert_string_equal(sc_diag_code(t.sc.diags->id), "X.steps");
  int calls = 0;
  t.opt.step_budget = 0;
  t.opt.progress = count_calls;
  t.opt.progress_user = &calls;
  assert_int_equal(run(&t), SCHEDC_ECANCEL);
  assert_int_equal(calls, 4);
  close_kit(&t);
}

// The same fault, word for word, with any number of threads.
static void test_report_is_stable(void **state) {
  (void)state;
  char first[4096] = "";
  Kit t;
  open_product(&t, "wait s;  release a, b", "release a, b;  wait s");
  for (u32 i = 0; i < 20; i++) {
    Str s = {.sc = &t.sc};
    t.opt.threads = 1 + i % 4;
    expect_fault(&t, SCHEDC_LATE, "X.race", "product");
    sc_diag_text(&s, t.sc.text, t.sc.diags);
    if (!i) snprintf(first, sizeof first, "%s", s.at);
    assert_string_equal(s.at, first);
  }
  close_kit(&t);
}

int main(void) {
  if (setjmp(unwound)) return 1;
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_product), cmocka_unit_test(test_grids), cmocka_unit_test(test_multicast),
    cmocka_unit_test(test_deadlock), cmocka_unit_test(test_counts), cmocka_unit_test(test_early_completion),
    cmocka_unit_test(test_release_early), cmocka_unit_test(test_release_of_another), cmocka_unit_test(test_fence),
    cmocka_unit_test(test_meeting), cmocka_unit_test(test_flight), cmocka_unit_test(test_held),
    cmocka_unit_test(test_bounds), cmocka_unit_test(test_copy_out), cmocka_unit_test(test_one_tile_each),
    cmocka_unit_test(test_phase), cmocka_unit_test(test_turn_twice), cmocka_unit_test(test_ordered),
    cmocka_unit_test(test_vote), cmocka_unit_test(test_sequence), cmocka_unit_test(test_limits),
    cmocka_unit_test(test_report_is_stable),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
