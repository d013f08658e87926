// narrow.c - where the rounding to narrow types goes: tiles, rings, loops, sequences, and what a
// specification names.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/passes.h"
#include "runtime/run.h"

// The marks of the tensor `name` of the file's last unit.
static u8 marks(const char *text, const char *name) {
  Sc sc;
  jmp_buf out;
  sc_init(&sc, NULL);
  sc.unwind = &out;
  if (setjmp(out)) fail_msg("unwound");
  sc.text = sc_text(&sc, "t.sched", text, strlen(text));
  const Ast *ast = sc_parse(&sc, sc.text);
  const Kernel *k = sc.errors ? NULL : sc_lower(&sc, ast, NULL);
  if (!k) fail_msg("%s", sc.diags->text);
  const u8 *all = sc_rounded(&sc, k);
  u8 got = 0xff;
  for (u32 i = 0; i < k->buf.n; i++)
    if (k->buf.at[i].space == SP_TENSOR && !strcmp(k->buf.at[i].name, name)) got = all[i];
  sc_free(&sc);
  return got;
}

enum { K = ROUNDED_BY_KERNEL, S = ROUNDED_BY_SPEC, F = MAY_OVERFLOW };

#define HEAD "kernel k {\n  in A : f16[64, 64]\n  out Y : f32[64, 64], Z : f32[64]\n"
#define ROLE                                                                                 \
  "  role all : 1 warpgroup {\n    reg s : f32[64, 64], p : f16[64, 64], b : bf16[64, 64]\n" \
  "    reg m : f32[64]\n"
#define END "\n  }\n}\n"

static void tiles(void **state) {
  (void)state;
  const char *rounded = HEAD ROLE
      "s[i,j] = A[i,j];  m[i] = max(j) s[i,j];  p[i,j] = 2 * s[i,j]\n"
      "    Y[i,j] = p[i,j];  Z[i] = m[i]" END;
  assert_int_equal(marks(rounded, "Y"), K | F);
  assert_int_equal(marks(rounded, "Z"), 0);
  assert_int_equal(marks(HEAD ROLE "s[i,j] = A[i,j];  b[i,j] = s[i,j];  Y[i,j] = b[i,j]\n"
                                   "    Z[i] = max(j) b[i,j]" END,
                         "Z"),
                   K);
  // Of an f16 that is moved, negated or selected nothing is rounded; of one that is scaled, or of
  // another type, it is.
  assert_int_equal(marks(HEAD ROLE "p[i,j] = where(i < j, -A[i,j], max(A[j,i], 0))\n"
                                   "    Y[i,j] = p[i,j];  Z[i] = max(j) p[i,j]" END,
                         "Y"),
                   0);
  assert_int_equal(marks(HEAD ROLE "p[i,j] = where(i < j, A[i,j], 0.1)\n"
                                   "    Y[i,j] = p[i,j];  Z[i] = 0" END,
                         "Y"),
                   K | F);
  assert_int_equal(marks(HEAD ROLE "b[i,j] = A[i,j]\n    Y[i,j] = b[i,j];  Z[i] = 0" END, "Y"), K);
}

// P of one round goes into the next round's product, which stands before it.
static void loops_and_products(void **state) {
  (void)state;
  const char *text =
      "kernel k {\n  in A : f16[M, 64]\n  out Y : f32[64, 64], Z : f32[64, 64]\n"
      "  ring r : f16[64, 64]\n"
      "  role load : 1 warp, 40 regs { for t in 0 .. cdiv(M, 64) { r <- A[t*64..] } }\n"
      "  role math : 1 warpgroup {\n"
      "    reg s : f32[64, 64] = 0, p : f16[64, 64] = 0, o : f32[64, 64] = 0\n"
      "    for t in 0 .. cdiv(M, 64) {\n      wait r\n      async o[i,j] += p[i,k] @ r[k,j]\n"
      "      async s[i,j] += r[i,k] @ r[j,k]\n      wait s\n      release r\n"
      "      p[i,j] = s[i,j]\n    }\n    Y[i,j] = o[i,j];  Z[i,j] = s[i,j]\n  }\n}\n";
  assert_int_equal(marks(text, "Y"), K | F);
  assert_int_equal(marks(text, "Z"), 0);
}

// From role to role, and from kernel to kernel.
static void rings_and_workspaces(void **state) {
  (void)state;
  const char *ring = HEAD
      "  ring r : f16[64, 64]\n"
      "  role one : 1 warpgroup { acquire r;  r[i,j] = 2 * A[i,j];  commit r }\n"
      "  role two : 1 warpgroup {\n    reg s : f32[64, 64]\n    wait r\n    s[i,j] = r[i,j]\n"
      "    release r\n    Y[i,j] = s[i,j];  Z[i] = 0\n  }\n}\n";
  assert_int_equal(marks(ring, "Y"), K | F);
  assert_int_equal(marks(ring, "Z"), 0);
  const char *sequence =
      "kernel one {\n  in A : f32[64]\n  out W : f16[64], V : f32[64]\n"
      "  role all : 1 warpgroup { W[i] = 2 * A[i];  V[i] = 2 * A[i] }\n}\n"
      "kernel two {\n  in W : f16[64], V : f32[64]\n  out Y : f32[64], Z : f32[64]\n"
      "  role all : 1 warpgroup { Y[i] = W[i];  Z[i] = V[i] }\n}\n"
      "sequence both {\n  workspace W : f16[64], V : f32[64]\n  one\n  two\n}\n";
  assert_int_equal(marks(sequence, "Y"), K | F);
  assert_int_equal(marks(sequence, "Z"), 0);
  // An output that overflows shows it itself.
  assert_int_equal(marks("kernel k {\n  in A : f32[64]\n  out Y : f16[64]\n"
                         "  role all : 1 warpgroup { Y[i] = 2 * A[i] }\n}\n",
                         "Y"),
                   K);
}

static void specifications(void **state) {
  (void)state;
#define BODY "s[i,j] = A[i,j];  Y[i,j] = s[i,j];  Z[i] = 0" END
  const char *text = HEAD
      "  spec {\n    P[i,j] = 2 * A[i,j]\n    Q : f32[i,j] = P[i,j]\n    Y[i,j] = Q[i,j]\n"
      "    Z[i] = A[i,0]\n  }\n" ROLE BODY;
  assert_int_equal(marks(text, "Y"), S);
  assert_int_equal(marks(text, "Z"), 0);
  assert_int_equal(marks(HEAD "  spec {\n    P : f32[i,j] = 2 * A[i,j]\n    Y[i,j] = P[i,j]\n"
                              "    Z[i] = A[i,0]\n  }\n" ROLE BODY,
                         "Y"),
                   0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tiles),
      cmocka_unit_test(loops_and_products),
      cmocka_unit_test(rings_and_workspaces),
      cmocka_unit_test(specifications),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
