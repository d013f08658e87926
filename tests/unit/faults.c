// faults.c - what the interpreter must find: schedules with a bug, which `flow` would refuse, and
// bugs that no schedule can have, put into the plans that `derive` made.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "machinekit.h"

// The ring has room for it, so nobody waits.
static void test_left_over(void **state) {
  (void)state;
  Kit t;
  open_product(&t, "for t in 0 .. n {\n      wait", "for t in 1 .. n {\n      wait");
  expect_fault_always(&t, "X.left", "left over");
  expect_fault(&t, SCHEDC_LATE, "X.left", "waited for as often as it is filled");
  close_kit(&t);
}

// One fill too many in the first tile and one too few in the second: as many in all.
static void test_left_in_a_tile(void **state) {
  (void)state;
  Kit t;
  open_product(&t, "for t in 0 .. n { a <-", "for t in 0 .. n + 1 - 2*x { a <-");
  t.opt.sms = 1;
  bind(&t, (i64[]){100, 200, 20});
  expect_fault_always(&t, "X.left",
                      "is waited for as often as it is filled in all, but not in each tile");
  close_kit(&t);
}

// Two roles take a turn, but the second only in some rounds. Nobody waits for ever: the last pass
// of a turn is nobody's to take.
static const char rounds[] =
    "kernel rounds {\n"
    "  in A : f16[M, K]\n"
    "  in B : f16[64, K]\n"
    "  out C : f32[M, 64]\n"
    "  grid (x : cdiv(M, 128)) persistent\n"
    "  ring a : f16[128, 64] * 2, b : f16[64, 64] * 2\n"
    "  turn go : one, two\n"
    "  let n = cdiv(K, 64)\n"
    "  role load : 1 warp, 40 regs {\n"
    "    for t in 0 .. n { a <- A[x*128.., t*64..];  b <- B[0.., t*64..] }\n"
    "  }\n"
    "  role one : 1 warpgroup, 200 regs {\n"
    "    reg s : f32[64, 64] = 0\n"
    "    for t in 0 .. n {\n"
    "      wait a, b;  acquire go;  async s[i,j] += a[i,k] @ b[j,k];  release go\n"
    "      wait s;  release a, b\n"
    "    }\n"
    "    C[x*128 + i, j] = s[i,j]\n"
    "  }\n"
    "  role two : 1 warpgroup, 200 regs {\n"
    "    reg s : f32[64, 64] = 0\n"
    "    for t in 0 .. n {\n"
    "      wait a, b\n"
    "      if t != 1 { acquire go;  async s[i,j] += a[64 + i, k] @ b[j,k];  release go }\n"
    "      else { async s[i,j] += a[64 + i, k] @ b[j,k] }\n"
    "      wait s;  release a, b\n"
    "    }\n"
    "    C[x*128 + 64 + i, j] = s[i,j]\n"
    "  }\n"
    "}\n";

static void test_left_turn(void **state) {
  (void)state;
  Kit t;
  open_kit(&t);
  load(&t, rounds);
  bind(&t, (i64[]){100, 300});  // M, K: one tile, 5 rounds
  expect_fault_always(&t, "X.left", "members of the turn 'go' do not take it equally often");
  expect_fault(&t, SCHEDC_LATE, "X.left", "one took it 5 times");
  expect_fault(&t, SCHEDC_LATE, "X.left", "two took it 4 times");
  bind(&t, (i64[]){100, 60});
  expect_same(&t);
  const char *s = edit(&t, rounds, "if t != 1", "if t != 1 or x > 0");
  load(&t, edit(&t, s, "wait a, b;  acquire go;  async s[i,j] += a[i,k] @ b[j,k];  release go",
                "wait a, b\n if t != 1 or x == 0 { acquire go;  async s[i,j] += a[i,k] @ b[j,k];  "
                "release go } else { async s[i,j] += a[i,k] @ b[j,k] }"));
  t.opt.sms = 1;
  bind(&t, (i64[]){200, 300});  // two tiles: each of the two leaves it out in one of them
  expect_fault_always(&t, "X.left", "do not take it equally often in each tile");
  close_kit(&t);
}

static void test_early_completion(void **state) {
  (void)state;
  Kit t;
  open_product(&t, NULL, NULL);
  find(&t, "load", OP_ACQUIRE, 0)->plan.bytes =
      0;  // the phase ends with the commit, whenever the copy lands
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
  for (u32 i = 0; i < 12;
       i++) {  // the second arrival may also be taken for the next round's: then it hangs
    t.opt.policy = policies[i % 3];
    t.opt.seed = i;
    assert_int_equal(run(&t), SCHEDC_EFAULT);
    races += t.sc.diags->id == D_X_RACE &&
             says(t.sc.diags, "wait for the product before its stage is given back");
  }
  assert_true(races > 0);
  close_kit(&t);
}

// Where copies alone fill a ring, a warp's one arrival is made when the stage is acquired: its
// commit says nothing of what the warp's threads have done, nor does the arrival without the sync
// that is planned there.
static void test_commit_of_copies(void **state) {
  (void)state;
  static const char source[] =
      "kernel signal {\n"
      "  in A : f16[M, 64], B : f16[64, 64]\n"
      "  out Y : f32[M, 64]\n"
      "  spec { Y[i,j] = 2 * A[i,j] }\n"
      "  grid (x : cdiv(M, 64))\n"
      "  ring a : f16[64, 64], b : f16[64, 64]\n"
      "  role load : 1 warp, 64 regs { a <- A[x*64..] }\n"
      "  role twice : 1 warp, 64 regs { wait a;  a[i,j] = 2 * a[i,j];  b <- B[0..];  release a }\n"
      "  role math : 1 warpgroup, 128 regs { reg s : f32[64, 64]\n"
      "    wait a, b;  s[i,j] = a[i,j];  release a, b\n"
      "    Y[x*64 + i, j] = s[i,j] }\n}\n";
  Kit t;
  open_kit(&t);
  load(&t, source);
  bind(&t, (i64[]){100});
  expect_same(&t);
  Code *code = &t.k->role.at[1].code;
  for (u32 pc = 0; pc < code->n; pc++)
    if (code->at[pc].op == OP_ACQUIRE) code->at[pc].plan.sync = false;
  expect_fault_always(&t, "X.race", "nothing puts it after what twice did");
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
  if (fenced) expect_fault_always(&t, "X.race", "a copy fills 'a'");
  close_kit(&t);
}

// Who fences for others: what a role has learnt from a barrier, its own fence orders too.
static void test_fence_for_others(void **state) {
  (void)state;
  Kit t;
  open_kit(&t);
  load(&t, staged);
  bind(&t, (i64[]){700});
  find(&t, "twice", OP_COMMIT, 0)->plan.fence = false;
  find(&t, "math", OP_MMA, 0)->plan.fence = true;
  expect_same(&t);
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
  find(&t, "twice", OP_COMMIT, 0)->plan.sync = true;
  expect_same(&t);
  close_kit(&t);
}

// A stage that both CTAs of a cluster fill has landed when both copies have, not when one has.
static void test_half_landed(void **state) {
  (void)state;
  Kit t;
  open_kit(&t);
  const char *s = edit(&t, product, "persistent", "persistent cluster (y : 2)");
  load(&t, edit(&t, s, "a <- A[x*64.., t*64..];", "a <- A[x*64.., t*64..] multicast;"));
  bind(&t, (i64[]){64, 64, 64});  // one fill: the next would be found out by its count
  Ins *acquire = find(&t, "load", OP_ACQUIRE, 0);
  assert_int_equal(t.k->ring.at[acquire->arg[0]].multicast, true);
  acquire->plan.bytes /= 2;  // the phase ends with the first copy
  expect_fault(&t, SCHEDC_LATE, "X.race", "nothing makes sure that the copy has landed");
  close_kit(&t);
}

// ---- the log of accesses

// `many` reads its stage column by column, and gives back a stage of `b` after each.
static const char columns[] =
    "kernel columns {\n"
    "  in A : f16[M, 128], B : f16[64, 64]\n"
    "  out Y : f32[M], Z : f32[M]\n"
    "  grid (x : cdiv(M, 64)) persistent\n"
    "  ring a : f16[64, 128]\n"
    "  ring b : f16[64, 64] * 2\n"
    "  role load : 1 warp, 40 regs {\n"
    "    a <- A[x*64..]\n"
    "    for c in 0 .. 128 { b <- B[0..] }\n"
    "  }\n"
    "  role one : 1 warpgroup, 104 regs {\n"
    "    reg y : f32[64]\n"
    "    wait a;  y[i] = a[i, 0];  release a\n"
    "    Y[x*64 + i] = y[i]\n"
    "  }\n"
    "  role many : 1 warpgroup, 104 regs {\n"
    "    reg z : f32[64] = 0\n"
    "    wait a\n"
    "    for c in 0 .. 128 { wait b;  z[i] = z[i] + a[i, c];  release b }\n"
    "    release a\n"
    "    Z[x*64 + i] = z[i]\n"
    "  }\n"
    "}\n";

// A release that the barrier does not count.
static void unheard(Kit *t, const char *role) {
  Ins *release = find(t, role, OP_RELEASE, 0);
  while (t->k->ring.at[release->arg[0]].name[0] != 'a') release++;
  assert_int_equal(release->op, OP_RELEASE);
  t->k->ring.at[release->arg[0]].empty_count -= release->plan.arrivals;
  release->plan.arrivals = 0;
}

// However many accesses come after it, one that nothing orders is found.
static void test_old_access(void **state) {
  (void)state;
  Kit t;
  open_kit(&t);
  load(&t, columns);
  bind(&t, (i64[]){640});
  t.opt.sms = 2;
  expect_same(&t);
  unheard(&t, "one");
  expect_fault_always(&t, "X.race", "'a' in a race");
  close_kit(&t);
}

// The pieces that one statement reads in a row are remembered as one, which is all of them.
static void test_pieces_in_a_row(void **state) {
  (void)state;
  static const char *const loops[] = {"c in 0 .. 600", "c in reversed 0 .. 600"};
  for (u32 i = 0; i < COUNT(loops); i++) {
    Kit t;
    open_kit(&t);
    const char *s =
        edit(&t, columns, "wait b;  z[i] = z[i] + a[i, c];  release b", "z[i] = z[i] + a[i, c]");
    s = edit(&t, s, "    for c in 0 .. 128 { b <- B[0..] }\n", "");
    s = edit(&t, s, "  ring b : f16[64, 64] * 2\n", "");
    s = edit(&t, s, "in A : f16[M, 128]", "in A : f16[M, 600]");
    s = edit(&t, s, "ring a : f16[64, 128]", "ring a : f16[64, 600]");
    load(&t, edit(&t, s, "c in 0 .. 128", loops[i]));
    bind(&t, (i64[]){640});
    t.opt.sms = 2;
    expect_same(&t);
    unheard(&t, "many");
    expect_fault_always(&t, "X.race", "'a' in a race");
    close_kit(&t);
  }
}

// More than there is room for ends the run, instead of being forgotten.
static void test_too_many_pieces(void **state) {
  (void)state;
  Kit t;
  open_kit(&t);
  const char *s = edit(&t, columns, "c in 0 .. 128 { wait", "c in 0 .. 600 { wait");
  s = edit(&t, s, "c in 0 .. 128 { b", "c in 0 .. 600 { b");
  s = edit(&t, s, "in A : f16[M, 128]", "in A : f16[M, 600]");
  load(&t, edit(&t, s, "ring a : f16[64, 128]", "ring a : f16[64, 600]"));
  bind(&t, (i64[]){64});
  assert_int_equal(run(&t), SCHEDC_ELIMIT);
  assert_string_equal(sc_diag_code(t.sc.diags->id), "X.limit");
  assert_true(says(t.sc.diags, "more than 256 accesses to 'a'"));
  close_kit(&t);
}

static void test_flight(void **state) {
  (void)state;
  Kit t;
  open_product(&t, "      wait s;  release", "      s[i,j] = 2 * s[i,j];  wait s;  release");
  expect_fault_always(&t, "X.flight", "'s' is in flight");
  close_kit(&t);
  open_product(&t, "wait a, b\n      async s[i,j] +=",
               "wait a, b\n      async s[i,j] = a[i,k] @ b[j,k]\n      async s[i,j] =");
  expect_fault_always(&t, "X.flight", "has not been waited for");
  close_kit(&t);
}

static void test_held(void **state) {
  (void)state;
  Kit t;
  open_product(&t, "wait s;  release a, b", "wait s;  release a, b");
  find(&t, "math", OP_WAIT, 1)->op = OP_ENDIF;  // waits for nothing
  expect_fault_always(&t, "X.held", "no stage of 'b' is held");
  close_kit(&t);
  open_product(&t, "wait s;  release a, b", "wait s;  release b");
  bind(&t, (i64[]){64, 64, 32});
  expect_fault_always(&t, "X.held", "a stage of 'a' has not been released");
  close_kit(&t);
}

static void test_bounds(void **state) {
  (void)state;
  Kit t;
  open_kit(&t);
  const char *s = edit(&t, product, "  out C", "  in cut : i32[1]\n  let z = cut[0] + 8\n  out C");
  load(&t, edit(&t, s, "b[j,k]", "b[z + j,k]"));
  bind(&t, product_dims);
  expect_fault_always(&t, "X.bounds",
                      "'b' has 32 elements along dimension 1; this reaches for 8 to 39");
  close_kit(&t);
  open_kit(&t);
  s = edit(&t, product, "  out C", "  in cut : i32[1]\n  let z = cut[x + y]\n  out C");
  load(&t, edit(&t, s, "cdiv(K, 64)", "cdiv(K, 64) + min(0, z)"));
  bind(&t, product_dims);
  expect_fault_always(&t, "X.value", "outside its tensor");
  close_kit(&t);
}

static void test_copy_out_reads(void **state) {
  (void)state;
  Kit t;
  open_kit(&t);
  load(&t, copies);
  bind(&t, (i64[]){77});
  find(&t, "store", OP_COPYWAIT, 0)->plan.keep = 1;
  expect_fault_always(&t, "X.race", "released while a copy out may still read it");
  close_kit(&t);
  open_kit(&t);
  load(&t, edit(&t, copies, "wait Y read;  release r", "release r;  wait Y read"));
  bind(&t, (i64[]){77});
  expect_fault_always(&t, "X.race", "copy out");
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
  const char *s =
      edit(&t, product, "role math : 1 warpgroup", "turn tc : math\n  role math[w] : 2 warpgroups");
  s = edit(&t, s, "= s[i,j]\n  }", "= s[i,j] if w == 0\n  }");
  s = edit(&t, s, "      async s[i,j] += a[i,k] @ b[j,k]\n",
           "      acquire tc\n      async s[i,j] += a[i,k] @ b[j,k]\n      release tc\n");
  load(&t, s);
  bind(&t, product_dims);
  expect_same(&t);
  find(&t, "math", OP_TAKE, 0)->op = OP_ENDIF;
  expect_fault(&t, SCHEDC_LATE, "X.turn", "before the next member took it");
  find(&t, "math", OP_PASS, 0)->op = OP_ENDIF;
  find(&t, "math", OP_ENDIF, 0)->op = OP_TAKE;
  expect_fault_always(&t, "X.deadlock",
                      "math[1] waits for its turn 'tc'; math[0] could pass it on");
  close_kit(&t);
}

static void test_order_lost(void **state) {
  (void)state;
  Kit t;
  open_kit(&t);
  load(&t, ordered);
  bind(&t, (i64[]){17});
  find(&t, "add", OP_COPYWAIT, 0)->flags |= INS_READ;
  expect_fault_always(&t, "X.flight", "turn is passed on while a copy out is in flight");
  find(&t, "add", OP_PASS, 0)->op = OP_ENDIF;
  expect_fault_always(&t, "X.deadlock", "of 't'");
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
      cmocka_unit_test(test_left_over),
      cmocka_unit_test(test_left_in_a_tile),
      cmocka_unit_test(test_left_turn),
      cmocka_unit_test(test_early_completion),
      cmocka_unit_test(test_release_early),
      cmocka_unit_test(test_release_of_another),
      cmocka_unit_test(test_commit_of_copies),
      cmocka_unit_test(test_fence),
      cmocka_unit_test(test_fence_for_others),
      cmocka_unit_test(test_meeting),
      cmocka_unit_test(test_half_landed),
      cmocka_unit_test(test_old_access),
      cmocka_unit_test(test_pieces_in_a_row),
      cmocka_unit_test(test_too_many_pieces),
      cmocka_unit_test(test_flight),
      cmocka_unit_test(test_held),
      cmocka_unit_test(test_bounds),
      cmocka_unit_test(test_copy_out_reads),
      cmocka_unit_test(test_phase),
      cmocka_unit_test(test_turn_twice),
      cmocka_unit_test(test_order_lost),
      cmocka_unit_test(test_report_is_stable),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
