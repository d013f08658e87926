// deadlock.c - deadlocks that the interpreter must find, and of whom it tells first.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "machinekit.h"

static void test_deadlock(void **state) {
  (void)state;
  Kit t;
  open_product(&t, "for t in 0 .. n {\n      wait", "for t in 0 .. n + 1 {\n      wait");
  t.opt.threads = 2;
  expect_fault_always(&t, "X.deadlock", "math waits for fill");
  expect_fault(&t, SCHEDC_LATE, "X.deadlock", "load could fill it");
  expect_fault(&t, SCHEDC_LATE, "X.deadlock", "be filled as often as it is waited for");
  close_kit(&t);
  open_product(&t, "wait s;  release a, b", "wait s;  release a");
  expect_fault_always(&t, "X.deadlock", "load waits for an empty stage for fill 2 of 'b'");
  expect_fault(&t, SCHEDC_LATE, "X.deadlock", "the roles wait for each other");
  close_kit(&t);
}

// A deadlock is told of by its head: the report's first line.
static void expect_head(Kit *t, const char *head) {
  for (u32 i = 0; i < 6; i++) {
    t->opt.seed = i;
    expect_fault(t, policies[i % 3], "X.deadlock", "deadlock");
    if (strncmp(t->sc.diags->text, head, strlen(head))) show(t);
    assert_memory_equal(t->sc.diags->text, head, strlen(head));
  }
}

// A role that has ended too early, or two that wait for each other; never `ahead` or `store`, which
// come first in the file and wait behind them.
static const char bystanders[] =
    "kernel bystanders {\n"
    "  in A : f16[M, 64], B : f16[M, 64]\n"
    "  out C : f32[M, 64]\n"
    "  ring a : f16[64, 64] * 2, b : f16[64, 64] * 2, c : f32[64, 64], go : f32[64]\n"
    "  let n = cdiv(M, 64)\n"
    "  role store : 1 warp, 40 regs {\n"
    "    for t in 0 .. n { wait c;  C[t*64..] <- c;  wait C read;  release c }\n"
    "  }\n"
    "  role ahead : 1 warp, 40 regs { for t in 0 .. n { a <- A[t*64..] } }\n"
    "  role load : 1 warp, 40 regs {\n"
    "    for t in 0 .. n { b <- B[t*64..] }\n"
    "  }\n"
    "  role math : 1 warpgroup, 200 regs {\n"
    "    reg s : f32[64, 64]\n"
    "    for t in 0 .. n {\n"
    "      wait a, b;  acquire c\n"
    "      c[i,j] = a[i,j] + b[i,j]\n"
    "      commit c;  release a, b\n"
    "    }\n"
    "  }\n"
    "}\n";

static void test_head_of_deadlock(void **state) {
  (void)state;
  Kit t;
  open_kit(&t);
  load(&t, edit(&t, bystanders, "for t in 0 .. n { b", "for t in 0 .. n - 1 { b"));
  bind(&t, (i64[]){400});
  expect_head(&t, "deadlock: load has ended, and math waits for it (load)");
  expect_fault(&t, SCHEDC_LATE, "X.deadlock", "math waits for fill 6 of 'b'");
  expect_fault(&t, SCHEDC_LATE, "X.deadlock", "'b' is to be filled as often as it is waited for");
  const char *s = edit(&t, bystanders, "{ b <-", "{ if t == 3 { wait go;  release go }\n b <-");
  load(&t, edit(&t, s, "acquire c\n",
                "acquire c\n if t == 3 { acquire go;  go[i] = 1;  commit go }\n"));
  bind(&t, (i64[]){400});
  expect_head(&t, "deadlock: load and math wait for each other (load)");
  expect_fault(&t, SCHEDC_LATE, "X.deadlock", "load waits for fill 0 of 'go'");
  load(&t, bystanders);
  bind(&t, (i64[]){400});
  find(&t, "load", OP_ACQUIRE, 0)->plan.arrivals = 0;  // no role could do anything about it
  expect_head(&t, "deadlock: math waits for what nobody has yet to do (math)");
  close_kit(&t);
}

// Over CTAs: which of them did not pass its turn.
static void test_head_over_ctas(void **state) {
  (void)state;
  Kit t;
  open_kit(&t);
  load(&t, edit(&t, ordered, "wait r;  acquire t;  Y[0..] += r;  wait Y;  release t;  release r",
                "wait r\n if x != 2 { acquire t;  Y[0..] += r;  wait Y;  release t }\n release r"));
  bind(&t, (i64[]){17});
  expect_head(&t, "deadlock: the CTA in tile x = 2 has not passed on turn 2 of 't' (add");
  expect_fault(
      &t, SCHEDC_LATE, "X.deadlock",
      "add in tile x = 3 waits for its turn 't'; the CTA in tile x = 2 has not passed it on");
  expect_fault(
      &t, SCHEDC_LATE, "X.deadlock",
      "add in tile x = 5 waits for its turn 't'; the CTA in tile x = 2 has not passed it on");
  load(&t, edit(&t, ordered, "{ r <- X[x] }", "{ if x != 2 { r <- X[x] } }"));
  bind(&t, (i64[]){17});
  expect_head(&t, "deadlock: load in tile x = 2 has ended, and add in tile x = 2 waits for it");
  const char *s = edit(&t, ordered, "grid (x : T)", "grid (x : T) persistent");
  load(&t, edit(&t, s, "{ r <- X[x] }", "{ if x != 2 { r <- X[x] } }"));
  bind(&t, (i64[]){17});
  expect_head(&t, "deadlock: load in tile x = 14 has ended, and add in tile x = 14 waits for it");
  expect_fault(&t, SCHEDC_LATE, "X.deadlock",
               "add in tile x = 15 waits for its turn 't'; add in tile x = 14 could pass it on");
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

static void test_multicast_unreleased(void **state) {
  (void)state;
  Kit t;
  open_kit(&t);
  const char *s = edit(&t, product, "persistent", "persistent cluster (y : 2)");
  load(&t, edit(&t, s, "a <- A[x*64.., t*64..];", "a <- A[x*64.., t*64..] multicast;"));
  bind(&t, product_dims);
  find(&t, "math", OP_RELEASE, 0)->plan.arrivals =
      0;  // the peers never hear that the stage is free
  expect_fault_always(&t, "X.deadlock", "waits for an empty stage");
  close_kit(&t);
}

int main(void) {
  if (setjmp(unwound)) return 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_deadlock),
      cmocka_unit_test(test_head_of_deadlock),
      cmocka_unit_test(test_head_over_ctas),
      cmocka_unit_test(test_counts),
      cmocka_unit_test(test_multicast_unreleased),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
