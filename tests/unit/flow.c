// Tests of derive and flow: what is derived for schedules whose plans were worked out by hand, and
// that a wrong plan does not pass. (What wrong schedules get is in tests/bad.)
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flowkit.h"

// ---- what is derived

static void keep_numbers(void **state) {
  (void)state;
  Fixture f;
  assert_true(begin(&f, ATTENTION_LIKE(2,
                                       "for t in 0 .. n {\n"
                                       "  wait k\n"
                                       "  async s[i,j] = q[i,d] @ k[j,d]\n"
                                       "  async r[i,j] = q[i,d] @ k[j,d]\n"
                                       "  wait s\n"
                                       "  p[i,j] = s[i,j]\n"
                                       "  async o[i,d] += p[i,j] @ k[j,d]\n"
                                       "  wait r\n"
                                       "  wait o;  release k\n"
                                       "}\n"
                                       "release q")));
  assert_int_equal(find(&f, 1, OP_MMAWAIT, 0)->plan.keep, 1);  // r is newer than s
  assert_int_equal(find(&f, 1, OP_MMAWAIT, 1)->plan.keep, 1);  // o is newer than r
  assert_int_equal(find(&f, 1, OP_MMAWAIT, 2)->plan.keep, 0);
  assert_true(sc_flow(&f.sc, f.k));
  sc_free(&f.sc);
}

static const char two_math[] = HEAD
    "  in W : f32[M]\n"
    "  ring ab : { a : f16[BM, D], b : f16[BN, D], v : f32[BM] } * 2\n"
    "  ring c : f32[BM, D]\n"
    "  role load : 1 warp, 24 regs {\n"
    "    acquire ab;  ab.a <- Q[x*BM..];  ab.b <- K[0..];  ab.v <- W[x*BM..];  commit ab }\n"
    "  role math[w] : 2 warpgroups, 216 regs {\n"
    "    reg s : f32[BM, 32], m : f32[BM]\n"
    "    wait ab\n"
    "    async s[i,j] = ab.a[i,d] @ ab.b[32*w + j,d]\n"
    "    wait s\n"
    "    m[i] = ab.v[i]\n"
    "    release ab\n"
    "    acquire c;  c[i, 32*w + j] = s[i,j] * m[i];  commit c\n"
    "  }\n"
    "  role store : 1 warp, 24 regs { wait c;  O[x*BM..] <- c;  wait O read;  release c }\n"
    "}\n";

static void roles_of_several(void **state) {
  (void)state;
  Fixture f;
  assert_true(begin(&f, two_math));
  const Ring *ab = ring(&f, "ab"), *c = ring(&f, "c");
  assert_int_equal(ab->full_count, 1);       // the producer thread
  assert_int_equal(ab->empty_count, 2 * 4);  // threads read ab.v: each warp arrives
  assert_int_equal(ab->bytes, 64 * 64 * 2 + 64 * 64 * 2 + 64 * 4);
  assert_int_equal(find(&f, 0, OP_ACQUIRE, 0)->plan.bytes, ab->bytes);
  assert_int_equal(c->full_count, 2 * 4);
  assert_int_equal(c->empty_count, 1);
  assert_int_equal(c->bytes, 0);
  assert_true(
      find(&f, 1, OP_RELEASE, 0)->plan.fence);  // read by threads, refilled by the copy engine
  assert_true(
      find(&f, 1, OP_COMMIT, 0)->plan.fence);  // written by threads, read by the copy engine
  assert_false(find(&f, 2, OP_RELEASE, 0)->plan.fence);
  assert_true(sc_flow(&f.sc, f.k));
  sc_free(&f.sc);
}

static void no_fence_between_threads(void **state) {
  (void)state;
  Fixture f;
  assert_true(begin(&f, HEAD "  ring up : f32[64]\n"
                             "  role one : 1 warpgroup, 64 regs { reg a : f32[64] = 1\n acquire "
                             "up;  up[i] = a[i];  commit up }\n"
                             "  role two : 1 warpgroup, 64 regs { reg b : f32[64]\n wait up;  b[i] "
                             "= up[i];  release up }\n"
                             "}\n"));
  assert_int_equal(ring(&f, "up")->full_count, 4);
  assert_int_equal(ring(&f, "up")->empty_count, 4);
  assert_false(find(&f, 0, OP_COMMIT, 0)->plan.fence);
  assert_false(find(&f, 1, OP_RELEASE, 0)->plan.fence);
  sc_free(&f.sc);
}

static void own_writes(void **state) {
  (void)state;
  Fixture f;
  assert_true(begin(
      &f, ATTENTION_LIKE(2,
                         "for t in 0 .. n {\n"
                         "  wait k\n"
                         "  async s[i,j] = q[i,d] @ k[j,d]\n"
                         "  wait s\n"
                         "  k[i,j] = s[i,j]\n"  // the stage is used again, for P
                         "  async o[i,d] += k[i,j] @ q[j,d]\n"
                         "  wait o\n"
                         "  s[i,j] = k[j,i]\n"  // other warps' elements: they have met by then
                         "  k[i,j] = s[i,j]\n"  // and must meet again before they are overwritten
                         "  release k\n"
                         "}\n"
                         "release q")));
  const Ins *product = find(&f, 1, OP_MMA, 1);
  assert_true(product->plan.fence && product->plan.sync);
  assert_false(find(&f, 1, OP_MMA, 0)->plan.fence);
  const Ins *back = product + 2;
  assert_int_equal(back->op, OP_MAP);
  assert_false(back->plan.sync);
  assert_true((back + 1)->plan.sync);
  assert_true((back + 2)->plan.fence);
  assert_int_equal(ring(&f, "k")->empty_count, 4);
  assert_true(sc_flow(&f.sc, f.k));
  sc_free(&f.sc);
}

// A held stage that is changed in place, or a tensor that is stored to, and then handed on by other
// means than its own release: engines of others read it.
static const char in_place[] =
    "kernel test {\n"
    "  in A : f16[M, 64], B : f16[64, 64]\n  inout Y : f32[M, 64]\n  inout Z : f32[M, 64]\n"
    "  grid (x : cdiv(M, 64))\n"
    "  ring a : f16[64, 64], b : f16[64, 64], sig : f32[64], y : f32[64, 64]\n"
    "  turn go : prep, math\n"
    "  role load : 1 warp, 40 regs { a <- A[x*64..];  b <- B[0..]\n"
    "    wait sig;  y <- Y[x*64.., 0..];  release sig }\n"
    "  role prep : 1 warpgroup, 64 regs { reg one : f32[64] = 1, s : f32[64, 64] = 1\n"
    "    wait a\n    acquire go\n    a[i,j] = 2 * a[i,j]\n    release go\n"
    "    Y[x*64 + i, j] = s[i,j]\n"
    "    acquire sig;  sig[i] = one[i];  commit sig\n    release a }\n"
    "  role math : 1 warpgroup, 128 regs { reg s : f32[64, 64]\n"
    "    wait a, b, y\n    acquire go\n    async s[i,j] = a[i,k] @ b[j,k]\n    wait s\n"
    "    release go\n    Z[x*64 + i, j] = s[i,j] + y[i,j]\n    release a, b, y }\n"
    "}\n";

static void hand_over(void **state) {
  (void)state;
  Fixture f;
  assert_true(begin(&f, in_place));
  const Ins *pass = find(&f, 1, OP_PASS, 0), *commit = find(&f, 1, OP_COMMIT, 0);
  assert_true(pass->plan.fence && !pass->plan.global && !pass->plan.sync);
  assert_true(commit->plan.fence && commit->plan.global);
  assert_false(find(&f, 1, OP_RELEASE, 0)->plan.global);
  assert_false(find(&f, 2, OP_PASS, 0)->plan.fence);
  assert_true(sc_flow(&f.sc, f.k));
  find(&f, 1, OP_COMMIT, 0)->plan.global = false;
  assert_false(sc_flow(&f.sc, f.k));
  assert_string_equal(sc_diag_code(f.sc.diags->id), "R7.fence");
  sc_free(&f.sc);
}

#define OUT(body)                                                                               \
  "kernel test {\n  in X : f32[M, 64], G : f16[M, 64]\n  inout Y : f32[M, 64], H : f16[M, "     \
  "64]\n"                                                                                       \
  "  inout Z : f32[M, 64]\n  grid (x : cdiv(M, 64))\n  ring r : f32[64, 64], c : f32[64, 64]\n" \
  "  role load : 1 warp, 40 regs { r <- X[x*64..] }\n"                                          \
  "  role math : 1 warpgroup, 200 regs { reg s : f32[64, 64] = 0, t : f32[64, 64] = 0\n"        \
  "    wait r\n    " body "\n    release r }\n}\n"

// Where the n-th operation of a kind stands in math, and what goes before it.
static void expect_plan(const char *source, Op op, u32 n, const char *want) {
  Fixture f;
  if (!begin(&f, source) || !sc_flow(&f.sc, f.k)) {
    show(&f.sc);
    fail();
  }
  const Plan *p = &find(&f, 1, op, n)->plan;
  const char *have = sc_printf(&f.sc, "%s%s%s", p->fence ? "fence " : "",
                               p->global ? "global " : "", p->sync ? "sync" : "");
  if (strcmp(have, want) != 0) fail_msg("%s\n'%s', not '%s'", source, have, want);
  sc_free(&f.sc);
}

// Where neither products nor the role's own commits keep its warps together, each gives back the
// stages that it has waited for, though only one thread copies out of them.
static void warps_that_lag(void **state) {
  (void)state;
  Fixture f;
  assert_true(
      begin(&f,
            "kernel test {\n  in X : f32[M, 64]\n  out Y : f32[M, 64]\n  ring c : f32[64, 64]\n"
            "  role load : 1 warp, 40 regs { for t in 0 .. cdiv(M, 64) { c <- X[t*64..] } }\n"
            "  role store : 1 warpgroup, 64 regs { ring d : f32[64, 64]\n"
            "    for t in 0 .. cdiv(M, 64) {\n"
            "      wait c;  Y[t*64.., 0..] <- c;  wait Y read;  release c\n"
            "      acquire d;  d[i,j] = 0;  commit d;  wait d;  Y[t*64..] <- d;  wait Y read;  "
            "release d } }\n}\n"));
  assert_int_equal(ring(&f, "c")->empty_count, 4);
  assert_int_equal(ring(&f, "d")->empty_count, 1);
  assert_int_equal(find(&f, 1, OP_RELEASE, 0)->plan.arrivals, 4);
  assert_true(sc_flow(&f.sc, f.k));
  find(&f, 1, OP_RELEASE, 0)->plan.arrivals = 1;
  f.k->ring.at[0].empty_count = 1;
  assert_false(sc_flow(&f.sc, f.k));
  assert_string_equal(sc_diag_code(f.sc.diags->id), "R5.count");
  sc_free(&f.sc);
}

// Of two statements that write the same elements, each deals them to the threads in its own way.
static void who_writes(void **state) {
  (void)state;
#define FILL(body) OUT("acquire c;  " body "\n commit c\n wait c;  release c")
  expect_plan(FILL("c[i,j] = 0\n c[i,j] = s[i,j]"), OP_MAP, 3, "sync");
  expect_plan(FILL("c[i,j] = s[i,j]\n c[i,j] = t[i,j]"), OP_MAP, 3, "");
  expect_plan(FILL("c[i,j] = s[i,j]\n c[j,i] = s[i,j]"), OP_MAP, 3, "sync");
  expect_plan(FILL("c[i,j] = 0\n c[i,j] = 1"), OP_MAP, 3, "");
  expect_plan(FILL("c[i,0] = 0\n c[i,1] = 1"), OP_MAP, 3, "");
  expect_plan(OUT("reg u : f32[64, 32] = 0, v : f32[64, 32] = 0\n acquire c;  c[i,j] = u[i,j]\n "
                  "c[i,32 + j] = v[i,j]\n commit c\n wait c;  release c"),
              OP_MAP, 5, "");
  expect_plan(OUT("reg u : f32[64, 32] = 0, v : f32[64, 32] = 0\n acquire c;  c[i,j] = u[i,j]\n "
                  "c[i,24 + j] = v[i,j]\n commit c\n wait c;  release c"),
              OP_MAP, 5, "sync");
}

// One thread waits for copies out: the others know of it when they have met.
static void who_waited(void **state) {
  (void)state;
  expect_plan(OUT("Y[x*64.., 0..] <- r\n wait Y read\n r[i,j] = s[i,j]"), OP_MAP, 2, "sync");
  expect_plan(OUT("Y[x*64.., 0..] <- r\n wait Y read\n s[i,j] = r[i,j]"), OP_MAP, 2, "");
  expect_plan(OUT("Y[x*64.., 0..] <- r\n wait Y\n s[i,j] = Y[x*64 + i, j]"), OP_MAP, 2, "sync");
  expect_plan(OUT("Y[x*64.., 0..] <- r\n wait Y read\n wait Y\n Y[x*64 + i, j] = s[i,j]"), OP_MAP,
              2, "sync");
  expect_plan(OUT("Y[x*64.., 0..] <- r\n wait Y\n Y[x*64.., 0..] += r\n wait Y"), OP_COPYADD, 0,
              "");
}

// Global memory: threads among themselves, and threads and the copy engine.
static void tensors(void **state) {
  (void)state;
  expect_plan(OUT("Y[x*64 + i, j] = s[i,j]\n Y[x*64.., 0..] += r\n wait Y"), OP_COPYADD, 0,
              "fence global sync");
  expect_plan(OUT("s[i,j] = Y[x*64 + i, j]\n Y[x*64.., 0..] <- r\n wait Y"), OP_COPYOUT, 0,
              "fence global sync");
  expect_plan(OUT("Y[x*64 + i, j] += s[i,j]\n Y[x*64.., 0..] += r\n wait Y"), OP_COPYADD, 0,
              "fence global sync");
  expect_plan(OUT("Y[x*64 + i, j] = s[i,j]\n Z[x*64 + i, j] = Y[x*64 + j, i]"), OP_MAP, 3, "sync");
  expect_plan(OUT("Y[x*64 + i, j] = s[i,j]\n s[i,j] = Y[x*64 + i, j]"), OP_MAP, 3, "");
  expect_plan(OUT("H[x*64 + i, j] = s[i,j]\n s[i,j] = H[x*64 + i, j]"), OP_MAP, 3, "sync");
  expect_plan(OUT("s[i,j] = Y[x*64 + j, i]\n Y[x*64 + i, j] = s[i,j]"), OP_MAP, 3, "sync");
  expect_plan(OUT("Y[x*64 + i, j] += s[i,j]\n s[i,j] = Y[x*64 + i, j]"), OP_MAP, 2, "sync");
  rejected(OUT("Y[x*64.., 0..] <- r\n Y[x*64.., 0..] += r\n wait Y"), "R3.visible");
  rejected(OUT("Y[x*64.., 0..] += r\n wait Y read\n Y[x*64.., 0..] <- r\n wait Y"), "R3.visible");
  rejected(OUT("Y[x*64.., 0..] <- r\n wait Y read\n Y[x*64 + i, j] = s[i,j]"), "R3.visible");
  rejected(OUT("Y[x*64.., 0..] <- r\n wait Y read\n Y[x*64 + i, j] += s[i,j]"), "R3.visible");
  rejected(OUT("Y[x*64.., 0..] += r\n wait Y read\n Y[x*64 + i, j] += s[i,j]"), "R3.visible");
}

// ---- what is accepted: states that equal each other only by shape

static void one_behind(void **state) {
  (void)state;
  accepted(ATTENTION_LIKE(2,
                          "if n > 0 {\n"
                          "  wait k\n"
                          "  async s[i,j] = q[i,d] @ k[j,d]\n"
                          "  for t in 1 .. n {\n"
                          "    wait k\n"
                          "    async s[i,j] += q[i,d] @ k[j,d]\n"
                          "    wait s keep 1;  release k\n"
                          "  }\n"
                          "  wait s;  release k\n"
                          "}\n"
                          "release q"));
}

static void copy_one_behind(void **state) {
  (void)state;
  accepted(HEAD
           "  ring c : f32[BM, D] * 2\n"
           "  role math : 1 warpgroup, 64 regs { reg a : f32[BM, D] = 1\n"
           "    for t in 0 .. n + 1 { acquire c;  c[i,d] = a[i,d];  commit c } }\n"
           "  role store : 1 warp, 24 regs {\n"
           "    wait c;  O[x*BM..] <- c\n"
           "    for t in 0 .. n { wait c;  O[x*BM..] <- c;  wait O read keep 1;  release c }\n"
           "    wait O read;  release c\n"
           "  }\n}\n");
}

static void rejections(void **state) {
  (void)state;
  // One behind, with a ring of one stage: the second wait can never return.
  rejected(ATTENTION_LIKE(1,
                          "wait k\n async s[i,j] = q[i,d] @ k[j,d]\n"
                          "for t in 1 .. n { wait k\n async s[i,j] += q[i,d] @ k[j,d]\n wait s "
                          "keep 1;  release k }\n"
                          "wait s;  release k, q"),
           "R5.depth");
  // Overwrites what is in flight, instead of adding to it.
  rejected(ATTENTION_LIKE(2,
                          "for t in 0 .. n { wait k\n async s[i,j] = q[i,d] @ k[j,d]\n async "
                          "s[i,j] = q[i,d] @ k[j,d]\n"
                          "wait s;  release k }\nrelease q"),
           "R1.flight");
  // Written in a loop that may not run, read after it.
  rejected(ATTENTION_LIKE(
               2,
               "for t in 0 .. n { wait k\n async s[i,j] = q[i,d] @ k[j,d]\n wait s;  release k }\n"
               "release q\n p[i,j] = s[i,j]"),
           "R1.undefined");
  // Written in one branch only.
  rejected(
      ATTENTION_LIKE(
          2,
          "for t in 0 .. n { wait k\n if t > 0 { p[i,j] = 0 }\n async o[i,d] += p[i,j] @ k[j,d]\n"
          "wait o;  release k }\nrelease q"),
      "R1.undefined");
  // A product is the operand of the next one before it has been waited for.
  rejected(
      ATTENTION_LIKE(2,
                     "for t in 0 .. n { wait k\n p[i,j] = 0\n async o[i,d] += p[i,j] @ k[j,d]\n"
                     "release k\n wait o }\nrelease q"),
      "R3.release");
}

// Each part of a fill is one copy's, or the threads'.
#define FILLED(body)                                                                             \
  HEAD "  ring q : { a : f16[BM, D], b : f16[BM, D] } * 2\n"                                     \
       "  role load : 1 warp, 40 regs {\n"                                                       \
       "    for t in 0 .. n { acquire q\n" body                                                  \
       "\n    commit q } }\n"                                                                    \
       "  role math : 1 warpgroup, 128 regs { reg r : f32[BM, D] = 0\n"                          \
       "    for t in 0 .. n { wait q\n    r[i,d] = r[i,d] + q.a[i,d] + q.b[i,d]\n release q }\n" \
       "    O[x*BM + i, d] = r[i,d] }\n}\n"

static void one_to_a_part(void **state) {
  (void)state;
  accepted(FILLED("q.a <- Q[x*BM..]\n q.b <- K[t*BN..]"));
  accepted(FILLED("q.b[i,d] = 1\n q.a <- Q[x*BM..]\n q.b[i,d] = 2"));
  rejected(FILLED("for u in 0 .. 2 { q.a <- Q[x*BM..] }\n q.b[i,d] = 1"), "R3.landing");
  rejected(FILLED("if t > 0 { q.a[i,d] = 1 } else { q.b[i,d] = 1 }\n q.a <- Q[x*BM..]"),
           "R3.landing");
  rejected(FILLED("q.a <- Q[x*BM..]\n q.b[i,d] = 1\n q.a <- K[t*BN..]"), "R3.landing");
}

// ---- what a wrong plan gets

typedef enum Break { FENCE, SYNC, KEEP, ARRIVALS, BYTES, COUNT, EMPTY } Break;

static void break_plan(Fixture *f, Break what) {
  switch (what) {
    case FENCE: find(f, 1, OP_COMMIT, 0)->plan.fence = false; break;
    case SYNC: find(f, 1, OP_MMA, 1)->plan.sync = false; break;
    case KEEP: find(f, 1, OP_MMAWAIT, 0)->plan.keep++; break;
    case ARRIVALS: find(f, 1, OP_RELEASE, 0)->plan.arrivals = 1; break;
    case BYTES: find(f, 0, OP_ACQUIRE, 0)->plan.bytes -= 16; break;
    case COUNT: f->k->ring.at[0].full_count++; break;
    case EMPTY: f->k->ring.at[0].empty_count--; break;
  }
}

static void broken(const char *source, Break what, const char *code) {
  Fixture f;
  assert_true(begin(&f, source));
  assert_true(sc_flow(&f.sc, f.k));
  break_plan(&f, what);
  assert_false(sc_flow(&f.sc, f.k));
  assert_string_equal(sc_diag_code(f.sc.diags->id), code);
  sc_free(&f.sc);
}

static void plans_are_checked(void **state) {
  (void)state;
  broken(two_math, FENCE, "R7.fence");
  broken(two_math, KEEP, "R4.keep");
  broken(two_math, ARRIVALS, "R5.count");
  broken(two_math, BYTES, "R5.bytes");
  broken(two_math, COUNT, "R5.count");
  broken(two_math, EMPTY, "R5.count");
  broken(
      ATTENTION_LIKE(
          2,
          "for t in 0 .. n { wait k\n async s[i,j] = q[i,d] @ k[j,d]\n wait s\n k[i,j] = s[i,j]\n"
          "async o[i,d] += k[i,j] @ q[j,d]\n wait o\n release k }\nrelease q"),
      SYNC, "R7.sync");
}

// Deep nesting costs a pass a fact, not a power of two.
static void nested_loops(void **state) {
  (void)state;
  Fixture f;
  char body[4096] = "", *at = body;
  for (u32 i = 0; i < 40; i++) at += sprintf(at, "for t%u in 0 .. n {\n", i);
  at += sprintf(at,
                "wait k\n async s[i,j] = q[i,d] @ k[j,d]\n wait s\n p[i,j] = s[i,j]\n release k\n");
  for (u32 i = 0; i < 40; i++) at += sprintf(at, "}\n");
  char *source = malloc(sizeof body + 2048);
  sprintf(source, ATTENTION_LIKE(2, "%s release q"), body);
  bool ok = begin(&f, source) && sc_flow(&f.sc, f.k);
  if (!ok) show(&f.sc);
  assert_true(ok);
  sc_free(&f.sc);
  free(source);
}

// An mbarrier counts fewer than 2^20 bytes a phase, and no number of iterations may wrap round to
// fewer.
static void bytes_of_a_fill(void **state) {
  (void)state;
  static const struct {
    const char *part, *loops, *ends;
    u32 bytes;  // 0: refused
  } row[] = {{"4, 16, 16", "for t in 0 .. 31 {", "}", 31 << 15},
             {"4, 16, 16", "for t in 0 .. 32 {", "}", 0},
             {"4, 16, 16", "for t in 0 .. 1048576 { for u in 0 .. 17592186044416 {", "} }", 0},
             {"4, 16, 16", "for t in 0 .. 1048576 {", "}", 0},
             {"4, 16, 16",
              "for s in 0 .. 1048576 { for t in 0 .. 1048576 { for u in 0 .. 1048576 { "
              "for v in 0 .. 1048576 {",
              "} } } }", 0},
             {"256, 16, 16", "", "", 0}};
  for (u32 i = 0; i < COUNT(row); i++) {
    Fixture f;
    char source[1024];
    snprintf(source, sizeof source,
             "kernel k {\n  in A : f16[M, N, 1048576, 16]\n  out C : f16[M, N, 1048576, 16]\n"
             "  grid (x : M)\n  ring a : f16[%s, 16]\n"
             "  role load : 1 warp, 24 regs { acquire a\n    %s a <- A[x.., 0..] %s\n    "
             "commit a }\n"
             "  role store : 1 warp, 24 regs { wait a;  C[x.., 0..] <- a;  wait C read;  "
             "release a }\n}\n",
             row[i].part, row[i].loops, row[i].ends);
    bool ok = begin(&f, source);
    if (ok != (row[i].bytes != 0)) show(&f.sc);
    assert_int_equal(ok, row[i].bytes != 0);
    if (ok) assert_int_equal(find(&f, 0, OP_ACQUIRE, 0)->plan.bytes, row[i].bytes);
    else assert_int_equal(f.sc.diags->id, D_R9_BYTES);
    sc_free(&f.sc);
  }
}

static u32 notes_of(const Diag *d) {
  u32 n = 0;
  for (const Note *note = d->notes; note; note = note->next)
    n += strstr(note->text, "on a path") != NULL;
  return n;
}

// A report names the path of its own fault: past the limit of reports none adds to the last one.
// A fault that the caller wants as a warning is reported for one path, too.
static void paths_are_noted_once(void **state) {
  (void)state;
  Sc text;
  sc_init(&text, NULL);
  jmp_buf home;
  text.unwind = &home;
  if (setjmp(home)) fail();
  Str s = {.sc = &text};
  for (u32 i = 0; i < SC_MAX_ERRORS + 5; i++)
    str_printf(&s,
               "reg r%u : f32[BM, BN]\nasync r%u[i,j] = q[i,d] @ q[j,d]\n"
               "if N > %u { wait r%u }\nr%u[i,j] = r%u[i,j] + 1\n",
               i, i, i, i, i, i);
  str_puts(&s, "release q\n}\n}\n");
  const char *source = sc_printf(&text,
                                 HEAD
                                 "ring q : f16[BM, D]\n"
                                 "role load : 1 warp, 24 regs { q <- Q[x*BM..] }\n"
                                 "role math : 1 warpgroup, 240 regs {\nwait q\n%s",
                                 s.at);
  Fixture f;
  assert_true(begin(&f, source));
  assert_false(sc_flow(&f.sc, f.k));
  assert_true(f.sc.errors > SC_MAX_ERRORS);
  for (const Diag *d = f.sc.diags; d; d = d->next)
    if (d->id == D_R1_FLIGHT) assert_int_equal(notes_of(d), 1);
  sc_free(&f.sc);
  sc_free(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(keep_numbers),
      cmocka_unit_test(roles_of_several),
      cmocka_unit_test(no_fence_between_threads),
      cmocka_unit_test(own_writes),
      cmocka_unit_test(hand_over),
      cmocka_unit_test(warps_that_lag),
      cmocka_unit_test(who_writes),
      cmocka_unit_test(who_waited),
      cmocka_unit_test(tensors),
      cmocka_unit_test(one_behind),
      cmocka_unit_test(copy_one_behind),
      cmocka_unit_test(rejections),
      cmocka_unit_test(one_to_a_part),
      cmocka_unit_test(plans_are_checked),
      cmocka_unit_test(nested_loops),
      cmocka_unit_test(bytes_of_a_fill),
      cmocka_unit_test(paths_are_noted_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
