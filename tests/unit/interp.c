// interp.c - the interpreter on small kernels: grids, clusters, turns and votes give the right
// results, the same bits under every policy, seed and number of threads; limits hold.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "machinekit.h"

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
  close_kit(&t);
}

static void test_copy_out(void **state) {
  (void)state;
  Kit t;
  open_kit(&t);
  load(&t, copies);
  bind(&t, (i64[]){77});
  expect_same(&t);
  for (i64 i = 0; i < 77; i++) assert_float_equal(at2(&t, "Y", i, 31), at2(&t, "X", i, 31), 0);
  close_kit(&t);
}

// Which of three CTAs comes second, and stores to where the first one did: each policy has another
// order.
static void test_order_of_ctas(void **state) {
  (void)state;
  static const schedc_policy order[] = {SCHEDC_EARLY, SCHEDC_LATE, SCHEDC_RANDOM};
  static const char *const second[] = {"(a in tile x = 0, y = 1)", "(a in tile x = 0, y = 1)",
                                       "(a in tile x = 0, y = 0)"};
  static const char *const first[] = {"(a in tile x = 0, y = 0)", "(a in tile x = 0, y = 2)",
                                      "(a in tile x = 0, y = 2)"};
  Kit t;
  open_kit(&t);
  load(&t,
       "kernel last {\n  out Y : f32[M, 32]\n  spec { Y[i,j] = 0 }\n"
       "  grid (x : cdiv(M, 64), y : 3)\n"
       "  role a : 1 warpgroup, 64 regs { reg s : f32[64, 32]\n"
       "    s[i,j] = y\n    Y[x*64 + i, j] = s[i,j] }\n}\n");
  bind(&t, (i64[]){64});
  t.opt.threads = 1;
  t.opt.seed = 4;
  for (u32 i = 0; i < 3; i++) {
    expect_fault(&t, order[i], "X.race", second[i]);
    assert_true(strstr(t.sc.diags->notes->text, first[i]));
  }
  close_kit(&t);
}

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

// A private ring goes on with its instance's own tiles only, whatever the others' are.
static void test_private_rings(void **state) {
  (void)state;
  Kit t;
  open_kit(&t);
  load(&t,
       "kernel k {\n  in X : f32[M, 32]\n  out Y : f32[M, 32]\n  spec { Y[i,j] = X[i,j] }\n"
       "  grid (x : cdiv(M, 64)) persistent\n"
       "  role all[w] : 2 warpgroups, one tile each, 64 regs {\n    ring c : f32[64, 32]\n"
       "    c <- X[x*64..]\n    wait c\n    Y[x*64.., 0..] <- c\n    wait Y read\n"
       "    release c\n  }\n}\n");
  bind(&t, (i64[]){300});
  for (t.opt.sms = 1; t.opt.sms < 4; t.opt.sms++) expect_same(&t);
  for (i64 i = 0; i < 300; i++) assert_float_equal(at2(&t, "Y", i, 31), at2(&t, "X", i, 31), 0);
  close_kit(&t);
}

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
  close_kit(&t);
}

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

// All warps of an instance run the block, or none does; in it each may vote by itself.
static void test_vote_together(void **state) {
  (void)state;
  static const char together[] =
      "vote together any(m[i] > 1000) {\n s[i,j] = s[i,j] + 100\n"
      "vote any(m[i] > 1000) { s[i,j] = s[i,j] + 7 }\n }";
  Kit t;
  open_kit(&t);
  const char *at = strstr(votes, "vote any"), *after = strchr(at, '\n');
  load(&t, sc_printf(&t.sc, "%.*s%s%s", (int)(at - votes), votes, together, after));
  bind(&t, (i64[]){150});
  t.data[buf_of(&t, "X")][37 * 32 + 5] = 2000;  // rows 0 to 63 belong to the instance that sees it
  expect_same(&t);
  for (i64 i = 0; i < 150; i++) {
    double more = (i < 64 ? 100 : 0) + (i / 16 == 2 ? 7 : 0);
    assert_float_equal(at2(&t, "Y", i, 9), at2(&t, "X", i, 9) + more, 0);
  }
  close_kit(&t);
}

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

static int is_not_filled(void *user, double done) {
  const float *last = user;
  return done == 0 && *last == 7;
}

// It is asked while a large output is filled, too.
static void test_progress_of_filling(void **state) {
  (void)state;
  Kit t;
  open_kit(&t);
  load(&t, product);
  bind(&t, (i64[]){640, 64, 64000});
  const TensorRef *c = &t.b.buf[buf_of(&t, "C")];
  float *last = (float *)c->at + 639 * c->stride[0] + 63999;
  *last = 7;
  t.opt.step_budget = 2000;
  t.opt.progress = is_not_filled;
  t.opt.progress_user = last;
  assert_int_equal(run(&t), SCHEDC_ECANCEL);
  assert_true(*last == 7);
  close_kit(&t);
}

static int goes_on(void *user, double done) {
  double *last = user;
  assert_true(done >= *last && done <= 0.5);  // the exact values are the first half
  *last = done;
  return 0;
}

// Of a specification whose outputs share no loop, too, what is done grows.
static void test_progress_of_specification(void **state) {
  (void)state;
  Kit t;
  double last = 0;
  Sample sample = {.progress = goes_on, .user = &last};
  open_kit(&t);
  load(&t,
       "kernel k {\n  in A : f32[M, N]\n  out B : f32[M, M], C : f32[M], D : f32[M, M]\n"
       "  spec {\n    B[i,j] = sum(k) A[i,k] * A[j,k]\n    C[i] = max(j) A[i,j]\n"
       "    D[i,j] = sum(k) max(A[i,k], A[j,k])\n  }\n"
       "  grid (x : M)\n  role all : 1 warp, 64 regs {\n    reg z : f32[16] = 0\n"
       "    B[i, 0] = z[i]\n    C[i] = z[i]\n    D[i, 0] = z[i]\n  }\n}\n");
  bind(&t, (i64[]){700, 700});
  Boxes *out = NEWS(&t.sc, Boxes, t.k->buf.n);
  assert_int_equal(sc_spec(&t.sc, t.k, &t.b, true, 1, &sample, out, NULL), SCHEDC_OK);
  assert_true(last > 0.25);
  close_kit(&t);
}

int main(void) {
  if (setjmp(unwound)) return 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_product),
      cmocka_unit_test(test_grids),
      cmocka_unit_test(test_multicast),
      cmocka_unit_test(test_copy_out),
      cmocka_unit_test(test_order_of_ctas),
      cmocka_unit_test(test_one_tile_each),
      cmocka_unit_test(test_ordered),
      cmocka_unit_test(test_vote),
      cmocka_unit_test(test_vote_together),
      cmocka_unit_test(test_limits),
      cmocka_unit_test(test_private_rings),
      cmocka_unit_test(test_progress_of_filling),
      cmocka_unit_test(test_progress_of_specification),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
