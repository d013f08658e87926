// Tests of the emitted text: who arrives for a stage that nothing is copied into, cursors past
// tiles of other instances, and draws of tiles in kernels whose roles are alike.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiler/emit/emit.h"
#include "fixture.h"

static const char *role_of(const char *text, const char *line) {
  const char *at = strstr(text, line);
  if (!at) fail_msg("'%s' is missing in\n%s", line, text);
  return at;
}

static void in_order(const char *text, const char *const *what, u32 n) {
  const char *at = text;
  for (u32 i = 0; i < n; i++, at++) {
    at = strstr(at, what[i]);
    if (!at) fail_msg("'%s', the %u., is not behind the others in:\n%s", what[i], i, text);
  }
}
#define IN_ORDER(text, ...) \
  in_order(text, (const char *const[]){__VA_ARGS__}, COUNT(((const char *const[]){__VA_ARGS__})))

// A role that else only copies arrives by itself where it brings nothing, when it commits.
static void nothing_is_brought(void **state) {
  const char *t = text_of(
      *state,
      "kernel k {\n  in X : f32[M, 64], Z : f32[M, 64]\n  out Y : f32[M, 64]\n"
      "  ring ab : { a : f32[64, 64], b : f32[64, 64] } * 2\n"
      "  role la : 1 warp { for t in 0 .. M { acquire ab;  ab.a <- X[t*64..];  commit ab } }\n"
      "  role lb : 1 warp {\n    for t in 0 .. M {\n"
      "      if t == 0 { acquire ab;  ab.b <- Z[t*64..];  commit ab } else { acquire ab;  commit "
      "ab }\n    }\n  }\n"
      "  role math : 1 warpgroup {\n    for t in 0 .. M {\n      wait ab\n      Y[t*64 + i, j] = "
      "ab.a[i,j]\n"
      "      if t == 0 { Y[i, j] = ab.b[i,j] }\n      release ab\n    }\n  }\n}\n");
  has(t, "sc_ring_init(smem + ab_full, 2, 2, 4);");
  IN_ORDER(role_of(t, "role lb"), "if (t == 0)", "sc_mbar_expect(smem + ab_full", "sc_tma_load(",
           "} else {", "sc_mbar_wait(smem + ab_empty", "sc_mbar_arrive(smem + ab_full", "++ab_fill",
           "role math");
  assert_int_equal(count(t, "sc_mbar_arrive(smem + ab_full"), 1);
}

#define EACH "  role math[w] : 2 warpgroups, one tile each {\n"
#define KERNEL(grid) \
  "kernel k {\n  in X : f32[M, 64]\n  out Y : f32[M, 64]\n  grid (x : cdiv(M, 64)) " grid "\n"

// How often a ring goes on in a tile may depend on a loop's variable: then it is counted in such
// loops.
static void counted_in_loops(void **state) {
  const char *t = text_of(*state,
      KERNEL("persistent")
      "  ring c : f32[64, 64] * 3\n"
      "  role load : 1 warp {\n    for t in 0 .. 4 {\n      if t < 2 { c <- X[x*64..] } else "
      "{ for u in 2 .. t { c <- X[x*64..] } }\n"
      "    }\n  }\n" EACH "    reg s : f32[64, 64] = 0\n    for t in 0 .. 4 {\n"
      "      if t < 2 {\n        wait c;  s[i,j] = c[i,j];  release c\n"
      "      } else {\n        for u in 2 .. t { wait c;  s[i,j] = c[i,j];  "
      "release c }\n      }\n    }\n"
      "    Y[x*64 + i, j] = s[i,j]\n  }\n}\n");
  IN_ORDER(role_of(t, "role math"), "if (owner != instance) {", "u64 c_skipped = 0;",
           "for (int t = 0; t < 4; t++) {", "if (t < 2) {", "c_skipped++;", "} else",
           "for (int u = 2; u < t; u++) c_skipped++;", "sc_skip(c_held, c_parity, c_skipped, 3);",
           "continue;");
}

// Private rings stay where they are: the other instance uses its own.
static void private_rings_stay(void **state) {
  const char *t =
      text_of(*state, KERNEL("persistent") EACH
              "    ring c : f32[64, 64]\n    c <- X[x*64..]\n    wait c\n    Y[x*64.., 0..] <- c\n"
              "    wait Y read\n    release c\n  }\n}\n");
  has(t, "if (owner != instance) continue;");
}

// All instances take the next tile, whosever this one is.
static void drawn_by_all(void **state) {
  const char *t = text_of(
      *state,
      KERNEL("dynamic") "  ring c : f32[64, 64] * 2\n  role load : 1 warp { c <- X[x*64..] }\n" EACH
                        "    wait c\n    Y[x*64 + i, j] = c[i,j]\n    release c\n  }\n}\n");
  IN_ORDER(role_of(t, "role math"), "tile < args.tiles;) {", "if (owner != instance) {",
           "sc_skip(c_held, c_parity, 1, 2);", "} else {", "sc_mbar_wait(smem + c_full",
           "c_held = 0", "      }\n", "tile = sc_of_lane0(", "if (++slot == 2)",
           "if (++owner == 2) owner = 0;");
}

#define STORE(n)                                                                   \
  "  role store[w] : " #n                                                          \
  ", 40 regs {\n    ring r : f32[32, 64]\n    r <- X[x*64 + 32*w..]\n    wait r\n" \
  "    Y[x*64 + 32*w.., 0..] <- r\n    wait Y read\n    release r\n  }\n}\n"

// Of warps that are alike one thread draws, and all read; one that is alone hands nothing on.
static void drawn_by_one(void **state) {
  const char *t = text_of(*state, KERNEL("dynamic") STORE(2 warps));
  has(t, "sc_ring_init(smem + slot_full, 2, 1, 2);");
  IN_ORDER(t, "if (instance == 0 && thread == 0) {", "sc_draw(args.counter)",
           "sc_mbar_wait(smem + slot_full", "if (++slot == 2)");
  end(state), begin(state);
  t = text_of(*state, KERNEL("dynamic") STORE(1 warp));
  has(t, "sc_draw(args.counter)");
  assert_null(strstr(t, "slot"));
}

// With nothing to go past, only the owner's part is left.
static void dealt_and_drawn(void **state) {
  const char *t =
      text_of(*state, KERNEL("dynamic") EACH
              "    ring c : f32[64, 64]\n    c <- X[x*64..]\n    wait c\n    Y[x*64.., 0..] <- c\n"
              "    wait Y read\n    release c\n  }\n}\n");
  has(t, "if (owner == instance) {");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(nothing_is_brought), TEST(counted_in_loops),
                                     TEST(private_rings_stay), TEST(drawn_by_all),
                                     TEST(drawn_by_one),       TEST(dealt_and_drawn)};
  return cmocka_run_group_tests_name("cudatiles", tests, NULL, NULL);
}
