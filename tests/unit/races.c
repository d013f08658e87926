// races.c - races on tensors in global memory that the interpreter must find under every policy,
// and orders that it must see: between roles, between instances of one, and between CTAs.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <limits.h>

#include "machinekit.h"

// Opens a kit with a kernel in which each `from` has been replaced by the `to` after it; up to a
// NULL.
static void open_with(Kit *t, const char *source, const char *const *edits, const i64 *dims) {
  open_kit(t);
  for (; edits[0]; edits += 2) source = edit(t, source, edits[0], edits[1]);
  load(t, source);
  bind(t, dims);
}
#define EDITS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define AS_IT_IS ((const char *const[]){NULL})

static void expect_order(const char *source, const char *const *edits, const i64 *dims) {
  Kit t;
  open_with(&t, source, edits, dims);
  expect_same(&t);
  close_kit(&t);
}

static void expect_race(const char *source, const char *const *edits, const i64 *dims,
                        const char *what) {
  Kit t;
  open_with(&t, source, edits, dims);
  expect_fault_always(&t, "X.race", what);
  close_kit(&t);
}

// ---- roles

static const char hands_on[] =
    "kernel hands_on {\n"
    "  in X : f32[M, 64]\n"
    "  inout G : f32[M, 64]\n"
    "  inout Y : f32[M, 64]\n"
    "  grid (x : cdiv(M, 64))\n"
    "  ring sig : f32[64], c : f32[64, 64]\n"
    "  role a : 1 warpgroup, 104 regs {\n"
    "    reg t : f32[64, 64]\n"
    "    t[i,j] = X[x*64 + i, j]\n"
    "    G[x*64 + i, j] = t[i,j]\n"
    "    acquire sig;  commit sig\n"
    "  }\n"
    "  role b : 1 warpgroup, 104 regs {\n"
    "    reg u : f32[64, 64], m : f32[64]\n"
    "    wait sig\n"
    "    u[i,j] = G[x*64 + i, j]\n"
    "    release sig\n"
    "    Y[x*64 + i, j] = u[i,j]\n"
    "  }\n"
    "  role idle : 1 warp, 40 regs { c <- X[0..];  wait c;  release c }\n"
    "}\n";
static const i64 rows[] = {200}, one_tile[] = {60};

static void test_between_roles(void **state) {
  (void)state;
  expect_order(hands_on, AS_IT_IS, rows);
  expect_race(hands_on,
              EDITS("    wait sig\n    u[i,j] = G[x*64 + i, j]\n",
                    "    u[i,j] = G[x*64 + i, j]\n    wait sig\n"),
              rows, "'G' in a race: nothing puts it after what");
  expect_race(hands_on,
              EDITS("    wait sig\n    u[i,j] = G[x*64 + i, j]\n",
                    "    m[i] = 1;  u[i,j] = 0\n    vote any(m[i] + G[x*64 + i, 3] > 0) { u[i,j] = "
                    "1 }\n    wait sig\n"),
              rows, "'G' in a race");
  expect_race(hands_on,
              EDITS("u[i,j] = G[x*64 + i, j]", "u[i,j] = G[x*64 + i, j]",
                    "    G[x*64 + i, j] = t[i,j]\n    acquire sig;  commit sig\n",
                    "    acquire sig;  commit sig\n    G[x*64 + i, j] = t[i,j]\n"),
              rows, "one side must release or commit");
}

// Both lines, both roles with their tiles, and the first element that both touch.
static void test_report(void **state) {
  (void)state;
  Kit t;
  open_with(&t, hands_on, EDITS("u[i,j] = G[x*64 + i, j]", "u[i,j] = G[x*64 + 62 + i, 5 + j]"),
            rows);
  expect_fault(&t, SCHEDC_EARLY, "X.race",
               "threads write 'G' in a race: nothing puts it after what b in tile x = 0 did (a in "
               "tile x = 1)");
  assert_string_equal(t.sc.diags->notes->text,
                      "threads read it here (b in tile x = 0); both touch G[64, 5]");
  close_kit(&t);
}

// Threads store, and the copy engine of another role reads: a fence for global memory lies between.
static void test_fence(void **state) {
  (void)state;
  static const char *const by_copy[] = {
      "    wait sig\n    u[i,j] = G[x*64 + i, j]\n    release sig\n",
      "    wait c;  u[i,j] = c[i,j];  release c\n", "{ c <- X[0..];  wait c;  release c }",
      "{ wait sig;  c <- G[x*64..];  release sig }", NULL};
  Kit t;
  expect_order(hands_on, by_copy, rows);
  open_with(&t, hands_on, by_copy, rows);
  Ins *commit = find(&t, "a", OP_COMMIT, 0);
  assert_true(commit->plan.fence && commit->plan.global);
  commit->plan.global = false;
  expect_fault_always(&t, "X.race", "fence.proxy.async for global memory is missing");
  expect_fault(&t, SCHEDC_LATE, "X.race", "a copy reads 'G'");
  close_kit(&t);
}

// What a copy into a stage reads may be overwritten when it has landed.
static void test_load_then_store(void **state) {
  (void)state;
  static const char *const late[] = {"ring sig : f32[64], c",
                                     "ring c",
                                     "    acquire sig;  commit sig\n",
                                     "",
                                     "    G[x*64 + i, j] = t[i,j]\n",
                                     "    wait c;  release c\n    G[x*64 + i, j] = t[i,j]\n",
                                     "    wait sig\n    u[i,j] = G[x*64 + i, j]\n    release sig\n",
                                     "    wait c;  u[i,j] = c[i,j];  release c\n",
                                     "{ c <- X[0..];  wait c;  release c }",
                                     "{ c <- G[x*64..] }",
                                     NULL};
  expect_order(hands_on, late, rows);
  Kit t;
  open_with(&t, hands_on, late, rows);
  find(&t, "a", OP_WAIT, 0)->op = OP_ENDIF;
  find(&t, "a", OP_RELEASE, 0)->op = OP_ENDIF;
  t.k->ring.at[0].empty_count -= 4;
  expect_fault_always(&t, "X.race", "'G' in a race");
  close_kit(&t);
}

// ---- copies out

static const char copied_out[] =
    "kernel copied_out {\n"
    "  in X : f32[M, 64]\n"
    "  inout G : f32[M, 64]\n"
    "  out Y : f32[M, 64]\n"
    "  grid (x : cdiv(M, 64))\n"
    "  ring r : f32[64, 64], sig : f32[64]\n"
    "  role load : 1 warp, 40 regs { r <- X[x*64..] }\n"
    "  role store : 1 warp, 40 regs {\n"
    "    wait r;  G[x*64..] <- r\n"
    "    wait G;  release r\n"
    "    acquire sig;  commit sig\n"
    "  }\n"
    "  role b : 1 warpgroup, 104 regs {\n"
    "    reg u : f32[64, 64]\n"
    "    wait sig\n"
    "    u[i,j] = G[x*64 + i, j]\n"
    "    release sig\n"
    "    Y[x*64 + i, j] = u[i,j]\n"
    "  }\n"
    "}\n";

// `wait G read` frees the stage, and says nothing about G.
static void test_copied_out(void **state) {
  (void)state;
  expect_order(copied_out, AS_IT_IS, rows);
  expect_race(copied_out, EDITS("wait G;", "wait G read;"), rows, "after a full 'wait'");
  expect_race(copied_out, EDITS("wait G;", "wait G read;"), one_tile, "both touch G[0, 0]");
  expect_race(copied_out, EDITS("G[x*64..] <- r\n", "G[x*64..] <- r;  G[x*64 + 63..] <- r\n"), rows,
              "nothing puts it after what the same role did");
  expect_order(copied_out, EDITS("G[x*64..] <- r\n", "G[x*64..] <- r;  wait G;  G[x*64..] <- r\n"),
               rows);
}

// Sums are atomic among those by threads, and among those by copies.
static void test_sums(void **state) {
  (void)state;
  static const char *const beside = "    acquire sig;  commit sig\n";
  expect_race(copied_out,
              EDITS("G[x*64..] <- r\n", "G[x*64..] += r\n", "    u[i,j] = G[x*64 + i, j]\n",
                    "    u[i,j] = 1\n    G[x*64 + i, j] += u[i,j]\n", "    wait sig\n", "",
                    "    release sig\n", "", beside, "", ", sig : f32[64]", ""),
              rows, "not atomic towards each other");
  expect_order(copied_out, EDITS("G[x*64..] <- r\n", "G[x*64..] += r;  G[x*64..] += r\n"), rows);
  expect_order(hands_on,
               EDITS("    G[x*64 + i, j] = t[i,j]\n", "    G[i, j] += t[i,j]\n",
                     "    u[i,j] = G[x*64 + i, j]\n", "    u[i,j] = 1\n    G[i, j] += u[i,j]\n"),
               rows);
  expect_race(hands_on,
              EDITS("    G[x*64 + i, j] = t[i,j]\n", "    G[x*64 + i, j] += t[i,j]\n",
                    "    wait sig\n    u[i,j] = G[x*64 + i, j]\n",
                    "    u[i,j] = G[x*64 + i, j]\n    wait sig\n"),
              rows, "'G' in a race");
}

// ---- instances

static const char halves[] =
    "kernel halves {\n"
    "  in X : f32[M, 64]\n"
    "  out Y : f32[M, 64]\n"
    "  grid (x : cdiv(M, 64))\n"
    "  role a[w] : 2 warpgroups, 104 regs {\n"
    "    reg t : f32[64, 64]\n"
    "    t[i,j] = X[x*64 + i, j]\n"
    "    Y[x*64 + i, j] = t[i,j] if (w == 0 and i < 32) or (w == 1 and i >= 32)\n"
    "  }\n"
    "}\n";

// A condition is exact: what it leaves out is not touched.
static void test_instances(void **state) {
  (void)state;
  static const char *const cond = "if (w == 0 and i < 32) or (w == 1 and i >= 32)";
  expect_order(halves, AS_IT_IS, rows);
  expect_race(halves, EDITS(cond, ""), one_tile, "both touch Y[0, 0]");
  expect_race(halves, EDITS(cond, "if (w == 0 and i < 32) or (w == 1 and i >= 31)"), one_tile,
              "both touch Y[31, 0]");
  expect_order(halves, EDITS(cond, "if (w == 0 and t[i,j] < 1) or (w == 1 and t[i,j] >= 1)"), rows);
  expect_race(halves, EDITS(cond, "if (w == 0 and t[i,j] < 1) or (w == 1 and t[i,j] >= 0)"), rows,
              "'Y' in a race");
  expect_order(halves, EDITS(cond, "if (w == 0 and j < 17) or (w == 1 and j >= 17)"), rows);
  expect_order(halves,
               EDITS(cond,
                     "if (w == 0 and i < 2 and (i < 1) == (j < 32)) or (w == 1 and i < 2 and "
                     "(i < 1) != (j < 32)) or (w == 0 and i >= 2)"),
               rows);
  expect_race(halves, EDITS(cond, "if (w == 0 and j < 18) or (w == 1 and j >= 17)"), one_tile,
              "both touch Y[0, 17]");
}

static const char readers[] =
    "kernel readers {\n"
    "  in X : f32[M, 64]\n"
    "  inout G : f32[M, 64]\n"
    "  out Y : f32[M, 64]\n"
    "  grid (x : cdiv(M, 64))\n"
    "  ring done : f32[64]\n"
    "  role a[w] : 4 warps, 64 regs {\n"
    "    reg t : f32[16, 64] = 0\n"
    "    t[i,j] = G[x*64 + i, j]\n"
    "    acquire done;  commit done\n"
    "    Y[x*64 + 16*w + i, j] = t[i,j]\n"
    "  }\n"
    "  role b : 1 warpgroup, 104 regs {\n"
    "    reg u : f32[64, 64] = 1\n"
    "    wait done;  release done\n"
    "    G[x*64 + i, j] = u[i,j]\n"
    "  }\n"
    "}\n";

// Each of several readers is kept in mind.
static void test_readers(void **state) {
  (void)state;
  expect_order(readers, AS_IT_IS, rows);
  for (u32 w = 0; w < 4; w++) {
    char early[64], late[64];
    snprintf(early, sizeof early, "if w != %u { t[i,j] = G[x*64 + i, j] }\n", w);
    snprintf(late, sizeof late, "if w == %u { t[i,j] = G[x*64 + i, j] }\n    Y[x", w);
    expect_race(readers, EDITS("t[i,j] = G[x*64 + i, j]\n", early, "Y[x", late), rows,
                "'G' in a race");
  }
}

// ---- CTAs

static void test_between_ctas(void **state) {
  (void)state;
  expect_race(hands_on, EDITS("    G[x*64 + i, j] = t[i,j]\n", "    G[x*32 + i, j] = t[i,j]\n"),
              rows, "CTAs run in no order");
  expect_race(hands_on, EDITS("u[i,j] = G[x*64 + i, j]", "u[i,j] = G[x*64 + 64 + i, j]"), rows,
              "CTAs run in no order");
  expect_order(hands_on, EDITS("u[i,j] = G[x*64 + i, j]", "u[i,j] = G[1000 + i, j]"), rows);
  // What many read, and one of them writes.
  expect_race(hands_on,
              EDITS("    G[x*64 + i, j] = t[i,j]\n", "    if x == 2 { G[i, j] = t[i,j] }\n",
                    "u[i,j] = G[x*64 + i, j]", "u[i,j] = G[i, j]"),
              (i64[]){400}, "'G' in a race");
  // Sums by all of them, and one that reads.
  expect_race(
      hands_on,
      EDITS("    G[x*64 + i, j] = t[i,j]\n", "    G[i, j] += t[i,j]\n", "u[i,j] = G[x*64 + i, j]",
            "if x == 4 { u[i,j] = G[i, j] } else { u[i,j] = 0 }"),
      (i64[]){400}, "'G' in a race");
}

// The same report, word for word, with any number of threads; and logs that fill up.
static void test_threads(void **state) {
  (void)state;
  static const char *const often =
      "    for n in 0 .. 900 { acquire sig;  G[x*64 + i, j] = t[i,j];  commit sig }\n";
  static const char *const edits[] = {
      "    G[x*64 + i, j] = t[i,j]\n    acquire sig;  commit sig\n", often,
      "    wait sig\n    u[i,j] = G[x*64 + i, j]\n    release sig\n",
      "    u[i,j] = X[x*64 + i, j]\n    for n in 0 .. 900 { wait sig;  release sig }\n"
      "    if x > 4 { u[i,j] = G[x*64 - 64 + i, j] }\n",
      NULL};
  char first[4096] = "";
  Kit t;
  open_with(&t, hands_on, edits, (i64[]){640});
  for (u32 i = 0; i < 12; i++) {
    Str s = {.sc = &t.sc};
    t.opt.threads = 1 + i % 4;
    expect_fault(&t, SCHEDC_LATE, "X.race",
                 "nothing puts it after what b in tile x = 9 did (a in tile x = 8)");
    sc_diag_text(&s, t.sc.text, t.sc.diags);
    if (!i) snprintf(first, sizeof first, "%s", s.at);
    assert_string_equal(s.at, first);
  }
  close_kit(&t);
  open_with(&t, hands_on, edits, (i64[]){320});
  t.opt.threads = 3;
  assert_int_equal(run(&t), SCHEDC_OK);
  close_kit(&t);
}

// A fault of a later job does not hide a race of an earlier one, nor a later fault of the same job.
static void test_race_comes_first(void **state) {
  (void)state;
  Kit t;
  open_with(&t, hands_on,
            EDITS("    acquire sig;  commit sig\n", "", "    wait sig\n", "    u[i,j] = 0\n",
                  "    release sig\n", "", "    Y[x*64 + i, j] = u[i,j]\n",
                  "    G[x*64 + i, j] = u[i,j]\n    wait sig;  release sig\n", "  role idle",
                  "  role never : 1 warp, 40 regs { if x < 0 { acquire sig;  commit sig } }\n"
                  "  role idle"),
            (i64[]){6400});
  for (u32 i = 0; i < 8; i++) {
    t.opt.threads = 1 + i % 4;
    expect_fault(&t, SCHEDC_EARLY, "X.race", "in tile x = 0");
  }
  close_kit(&t);
}

// … nor one that is found in the same breath.
static void test_race_before_fault(void **state) {
  (void)state;
  Kit t;
  open_with(&t, copied_out, EDITS("    wait G;  release r\n", "    G[x*64..] <- r;  wait G\n"),
            rows);
  for (u32 i = 0; i < 8; i++) {
    t.opt.threads = 1 + i % 4;
    expect_fault(&t, SCHEDC_EARLY, "X.race", "a copy writes 'G'");
  }
  close_kit(&t);
}

static long left;  // requests for memory that are granted

static void *scarce(void *user, size_t bytes) {
  (void)user;
  return left-- > 0 ? malloc(bytes) : NULL;
}

static void give_back(void *user, void *block) {
  (void)user;
  free(block);
}

// Memory for what is kept in mind may run out while other threads are at work.
static void test_out_of_memory(void **state) {
  (void)state;
  enum { LAST = 16 };
  const schedc_allocator memory = {scarce, give_back, NULL};
  jmp_buf here;
  Kit t;
  volatile long need = LONG_MAX / 2, refused = 0;
  open_kit(&t);
  sc_free(&t.sc);
  left = need;
  sc_init(&t.sc, &memory);
  t.sc.unwind = &here;
  t.opt.threads = 3;
  if (setjmp(here)) fail();
  load(&t, hands_on);
  bind(&t, (i64[]){6400});
  left = need;
  assert_int_equal(run(&t), SCHEDC_OK);
  need -= left;
  for (volatile long n = 1; n <= LAST; n++) {
    left = need - n;
    if (setjmp(here)) {
      assert_int_equal(t.sc.why, SCHEDC_ENOMEM);
      refused++;
    } else {
      run(&t);
    }
  }
  assert_int_equal(refused, LAST);
  close_kit(&t);
}

// A cluster's CTAs bring each other's tiles: what one of them has landed was read.
static void test_multicast(void **state) {
  (void)state;
  static const char shared[] =
      "kernel shared {\n"
      "  inout A : f32[64, 32]\n"
      "  in X : f32[N, 32]\n"
      "  grid (y : N) cluster (y : 2)\n"
      "  ring a : f32[64, 32]\n"
      "  role load : 1 warp, 40 regs { a <- A[0..] multicast }\n"
      "  role b : 1 warpgroup, 104 regs {\n"
      "    reg s : f32[32, 32]\n"
      "    wait a;  s[i,j] = a[32 - 32*y + i, j];  release a\n"
      "    A[32 - 32*y + i, j] = s[i,j]\n"
      "  }\n"
      "}\n";
  expect_order(shared, AS_IT_IS, (i64[]){2});
  expect_race(shared, EDITS("A[32 - 32*y + i, j] = s[i,j]", "A[16 + i, j] = s[i,j]"), (i64[]){2},
              "both touch A[16, 0]");
}

// ---- turns over CTAs

static const char in_turn[] =
    "kernel in_turn {\n"
    "  in X : f32[T, 64, 32]\n"
    "  inout Y : f32[64, 32], Z : f32[64, 32]\n"
    "  grid (x : T)\n"
    "  ring c : f32[64, 32], done : f32[64]\n"
    "  turn t : x\n"
    "  role load : 1 warp, 40 regs {\n"
    "    acquire t\n"
    "    c <- Y[0..]\n"
    "    wait done;  release done\n"
    "    release t\n"
    "  }\n"
    "  role add : 1 warpgroup, 104 regs {\n"
    "    reg s : f32[64, 32]\n"
    "    wait c;  s[i,j] = c[i,j] + X[x, i, j];  release c\n"
    "    Y[i, j] = s[i,j]\n"
    "    Z[i, j] = 2 * Z[i,j]\n"
    "    acquire done;  commit done\n"
    "  }\n"
    "}\n";

// Taking a turn tells of all CTAs before, through other roles and by other proxies as well.
static void test_turns(void **state) {
  (void)state;
  static const char *const store = "    Z[i, j] = 2 * Z[i,j]\n";
  const i64 dims[] = {9};
  expect_order(in_turn, AS_IT_IS, dims);
  expect_race(in_turn,
              EDITS(store, "", "    acquire done;  commit done\n",
                    "    acquire done;  commit done\n    Z[i, j] = 2 * s[i,j]\n"),
              dims, "'Z' in a race: nothing puts it after what add in tile x = ");
  expect_race(in_turn, EDITS(store, "", "wait c;", "Z[i, j] = 1;  wait c;"), dims, "take turns");
  expect_order(in_turn,
               EDITS(store, "", "    acquire t\n",
                     "    acquire t\n    if x == 3 { Z[i,j] = 1 }\n    if x == 7 { Z[i,j] = 2 }\n"),
               dims);
  expect_order(in_turn,
               EDITS("c <- Y[0..]\n", "c <- X[x];  wait c;  Y[0..] += c;  wait Y;  release c\n",
                     "    Y[i, j] = s[i,j]\n", ""),
               dims);
}

// A CTA passes on what it heard by another turn.
static void test_two_turns(void **state) {
  (void)state;
  static const char corner[] =
      "kernel corner {\n"
      "  in X : f32[T, 64, 32]\n"
      "  inout Z : f32[64, 32]\n"
      "  grid (x : T, y : T)\n"
      "  turn t : x\n"
      "  turn u : y\n"
      "  role a : 1 warpgroup, 104 regs {\n"
      "    reg s : f32[64, 32] = 0\n"
      "    acquire t;  acquire u\n"
      "    if x == y { Z[i, j] = s[i,j] }\n"
      "    release u;  release t\n"
      "  }\n"
      "}\n";
  expect_order(corner, AS_IT_IS, (i64[]){2});
  expect_race(corner, EDITS("x == y", "x + y == 1"), (i64[]){2}, "take turns");
}

int main(void) {
  if (setjmp(unwound)) return 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_between_roles), cmocka_unit_test(test_report),
      cmocka_unit_test(test_fence),         cmocka_unit_test(test_load_then_store),
      cmocka_unit_test(test_copied_out),    cmocka_unit_test(test_sums),
      cmocka_unit_test(test_instances),     cmocka_unit_test(test_out_of_memory),
      cmocka_unit_test(test_readers),       cmocka_unit_test(test_race_before_fault),
      cmocka_unit_test(test_two_turns),     cmocka_unit_test(test_between_ctas),
      cmocka_unit_test(test_threads),       cmocka_unit_test(test_race_comes_first),
      cmocka_unit_test(test_multicast),     cmocka_unit_test(test_turns),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
