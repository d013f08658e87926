// Tests of place: addresses, layouts, warps and named barriers of kernels placed by hand; and the
// register estimate at the points where real kernels were seen to fit and not to fit (2 math
// warpgroups of 240 registers, 3 of 160).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/place/place.h"

typedef struct Fixture {
  Sc sc;
  jmp_buf unwind;
  Kernel *k;
} Fixture;

static void show(Sc *sc) {
  Str out = {.sc = sc};
  for (const Diag *d = sc->diags; d; d = d->next) sc_diag_text(&out, sc->text, d);
  if (out.n) print_message("%s", out.at);
}

// True if the kernel is placed; params are "NAME=VALUE" separated by spaces.
static bool begin(Fixture *f, const char *source, const char *params) {
  static schedc_param param[8];
  u32 n = 0;
  sc_init(&f->sc, NULL);
  f->sc.unwind = &f->unwind;
  f->sc.text = sc_text(&f->sc, "test.sched", source, strlen(source));
  char *text = sc_printf(&f->sc, "%s", params), *save = NULL;
  for (char *p = strtok_r(text, " ", &save); p; p = strtok_r(NULL, " ", &save)) {
    char *eq = strchr(p, '=');
    *eq = 0;
    param[n++] = (schedc_param){p, eq + 1};
  }
  const Ast *ast = sc_parse(&f->sc, f->sc.text);
  f->k = f->sc.errors ? NULL : sc_lower(&f->sc, ast, &(Choice){.param = param, .params = n});
  bool ready = f->k && sc_lay_out(&f->sc, f->k) && sc_derive(&f->sc, f->k) && sc_flow(&f->sc, f->k);
  if (!ready) show(&f->sc);
  assert_true(ready);
  return sc_place(&f->sc, f->k);
}

static const char attention[] =
    "kernel attention {\n"
    "  param D = 128, BN = 176, W = 2, REGS = 240, qreg = false\n"
    "  in Q : f16[M, D], K : f16[N, D], V : f16[N, D]\n"
    "  out O : f32[M, D]\n"
    "  grid (x : cdiv(M, 64*W))\n"
    "  ring q : f16[64*W, D]\n"
    "  ring k : f16[BN, D]\n"
    "  ring v : f16[BN, D]\n"
    "  turn go : math\n"
    "  let n = cdiv(N, BN)\n"
    "  role load : 1 warp, 24 regs {\n"
    "    q <- Q[x*64*W..]\n"
    "    for t in 0 .. n + 1 { k <- K[t*BN..];  v <- V[t*BN..] } }\n"
    "  role math[w] : W warpgroups, REGS regs {\n"
    "    reg s : f32[64, BN], p : f16[64, BN], o : f32[64, D] = 0, m : f32[64] = -inf, l : f32[64] "
    "= 0 partial\n"
    "    reg r : f16[64, D] = 0\n"
    "    wait q\n"
    "    if qreg { r[i,d] = q[64*w + i, d] }\n"
    "    wait k\n"
    "    async s[i,j] = q[64*w + i, d] @ k[j,d]\n"
    "    wait s;  release k\n"
    "    p[i,j] = s[i,j]\n"
    "    for t in 0 .. n {\n"
    "      wait k, v\n"
    "      acquire go\n"
    "      if qreg { async s[i,j] = r[i,d] @ k[j,d] } else { async s[i,j] = q[64*w + i, d] @ "
    "k[j,d] }\n"
    "      async o[i,d] += p[i,j] @ v[j,d]\n"
    "      release go\n"
    "      wait s;  release k\n"
    "      m[i] = max(m[i], max(j) s[i,j])\n"
    "      s[i,j] = exp2(s[i,j] - m[i])\n"
    "      l[i] = l[i] + sum(j) s[i,j]\n"
    "      wait o;  release v\n"
    "      p[i,j] = s[i,j]\n"
    "    }\n"
    "    wait v\n"
    "    async o[i,d] += p[i,j] @ v[j,d]\n"
    "    wait o;  release v, q\n"
    "    O[x*64*W + 64*w + i, d] = o[i,d] / l[i]\n"
    "  }\n"
    "}\n";

static void shared_memory(void **state) {
  (void)state;
  Fixture f;
  assert_true(begin(&f, attention, ""));
  const Kernel *k = f.k;
  assert_int_equal(k->ring.at[0].offset, 0);
  assert_int_equal(k->ring.at[0].stage_bytes, 128 * 128 * 2);
  assert_int_equal(k->ring.at[1].offset, 32768);
  assert_int_equal(k->ring.at[2].offset, 32768 + 45056);
  assert_int_equal(k->ring.at[0].barrier, 32768 + 2 * 45056);
  assert_int_equal(k->ring.at[1].barrier, k->ring.at[0].barrier + 16);
  assert_int_equal(k->smem, 32768 + 2 * 45056 + 3 * 16);
  assert_int_equal(k->buf.at[k->ring.at[1].part0].swizzle, 128);
  sc_free(&f.sc);
}

static void parts_and_private_rings(void **state) {
  (void)state;
  Fixture f;
  assert_true(begin(
      &f,
      "kernel test {\n"
      "  in A : f32[M, 48], B : f32[M]\n"
      "  out C : f32[M, 48]\n"
      "  grid (x : cdiv(M, 64))\n"
      "  ring ab : { b : f32[64], a : f32[64, 48] } * 2\n"
      "  role load : 1 warp { acquire ab;  ab.a <- A[x*64..];  ab.b <- B[x*64..];  commit ab }\n"
      "  role math[w] : 2 warpgroups {\n"
      "    ring mine : f16[64, 16] * 2\n"
      "    reg y : f32[64, 24], z : f16[64, 16]\n"
      "    wait ab\n"
      "    y[i,j] = ab.a[i, 24*w + j] * ab.b[i]\n"
      "    release ab\n"
      "    z[i,j] = 0\n"
      "    acquire mine;  mine[i,j] = z[i,j];  commit mine\n"
      "    wait mine;  z[i,j] = mine[i,j];  release mine\n"
      "    C[x*64 + i, 24*w + j] = y[i,j]\n"
      "  }\n"
      "}\n",
      ""));
  const Ring *ab = &f.k->ring.at[0], *mine = &f.k->ring.at[1];
  const Buf *b = &f.k->buf.at[ab->part0], *a = b + 1, *m = &f.k->buf.at[mine->part0];
  assert_int_equal(a->offset, 0);                // tiles before vectors
  assert_int_equal(b->offset, 2 * 64 * 48 * 4);  // behind those of all stages
  assert_int_equal(a->swizzle, 64);              // rows of 192 bytes
  assert_int_equal(m->swizzle, 32);
  assert_int_equal(ab->stage_bytes, 64 * 48 * 4);
  assert_int_equal(ab->vector_bytes, 64 * 4);
  assert_int_equal(mine->offset, 25 * 1024);  // 24.5 KB, rounded up
  assert_int_equal(mine->stage_bytes, 2048);
  assert_int_equal(mine->vector_bytes, 0);
  assert_int_equal(ab->barrier, mine->offset + 2 * 2 * 2048);  // one set an instance
  assert_int_equal(mine->barrier, ab->barrier + 32);
  assert_int_equal(f.k->smem, mine->barrier + 2 * 32);
  sc_free(&f.sc);
}

static void warps(void **state) {
  (void)state;
  Fixture f;
  assert_true(begin(
      &f,
      "kernel test {\n"
      "  in A : f16[M, 64]\n"
      "  out C : f16[M, 64]\n"
      "  grid (x : cdiv(M, 64))\n"
      "  ring a : f16[64, 64]\n"
      "  role load : 1 warp, 40 regs { a <- A[x*64..] }\n"
      "  role math : 1 warpgroup, 128 regs { wait a;  release a }\n"
      "  role store[w] : 3 warps, 40 regs { wait a;  C[x*64..] <- a;  wait C read;  release a }\n"
      "}\n",
      ""));
  assert_int_equal(f.k->role.at[0].first_warp, 0);
  assert_int_equal(f.k->role.at[1].first_warp, 4);
  assert_int_equal(f.k->role.at[2].first_warp, 1);  // beside `load`
  assert_int_equal(f.k->threads, 256);
  sc_free(&f.sc);
}

static void named_barriers(void **state) {
  (void)state;
  Fixture f;
  assert_true(begin(&f, attention, ""));
  assert_int_equal(f.k->turn.at[0].barrier, 1);
  assert_int_equal(f.k->named, 3);
  assert_int_equal(f.k->role.at[1].barrier, 0);
  sc_free(&f.sc);
}

static void fits(const char *params, bool expected, u32 live) {
  Fixture f;
  bool ok = begin(&f, attention, params);
  if (ok != expected) show(&f.sc);
  assert_int_equal(ok, expected);
  if (!ok) assert_string_equal(sc_diag_code(f.sc.diags->id), "R8.live");
  assert_int_equal(f.k->role.at[1].live, live);
  sc_free(&f.sc);
}

static void registers(void **state) {
  (void)state;
  fits("", true, 88 + 44 + 64 + 2 * 2);
  fits("BN=192", true, 96 + 48 + 64 + 2 * 2);
  fits("BN=208", false, 104 + 52 + 64 + 2 * 2);
  fits("BN=144 qreg=true", true, 72 + 36 + 64 + 32 + 2 * 2);
  fits("BN=160 qreg=true", false, 80 + 40 + 64 + 32 + 2 * 2);
  fits("D=64 BN=128 W=3 REGS=160", true, 64 + 32 + 32 + 2 * 2);
  fits("D=64 BN=192 W=3 REGS=160", false, 96 + 48 + 32 + 2 * 2);
}

// One warpgroup multiplies; `others` idle ones make the registers at the start fewer.
static void one_instruction(const char *params, i64 cols) {
  static const char text[] =
      "kernel test {\n"
      "  param N = 256, others = 1\n"
      "  in A : f16[M, 64], B : f16[N, 64]\n"
      "  out C : f32[M, N]\n"
      "  grid (x : cdiv(M, 64))\n"
      "  ring ab : { a : f16[64, 64], b : f16[N, 64] }\n"
      "  role load : 1 warp, 24 regs { acquire ab;  ab.a <- A[x*64..];  ab.b <- B[0..];  commit ab "
      "}\n"
      "  role idle[w] : others warpgroups, 24 regs { wait ab;  release ab }\n"
      "  role math : 1 warpgroup, 240 regs {\n"
      "    reg c : f32[64, N]\n"
      "    wait ab\n    async c[i,j] = ab.a[i,d] @ ab.b[j,d]\n    wait c;  release ab\n"
      "    C[x*64 + i, j] = c[i,j]\n"
      "  }\n"
      "}\n";
  Fixture f;
  bool ok = begin(&f, text, params);
  if (!ok) show(&f.sc);
  assert_true(ok);
  assert_int_equal(f.k->product.at[0].cols, cols);
  sc_free(&f.sc);
}

static void columns_of_products(void **state) {
  (void)state;
  one_instruction("", 256);
  one_instruction("others=2", 128);  // 128 registers: 196 columns at most
  one_instruction("others=2 N=192", 192);
  one_instruction("others=2 N=200", 40);  // in equal parts of whole eights
  one_instruction("others=3", 128);       // 96 registers: 132 columns
  one_instruction("others=3 N=144", 72);
}

static void map_for_people(void **state) {
  (void)state;
  Fixture f;
  assert_true(begin(&f, attention, "BN=128"));
  Str out = {.sc = &f.sc};
  sc_print_place(&out, f.k);
  assert_string_equal(
      out.at,
      "shared memory: 98352 of 232448 bytes\n"
      "  offset    bytes  ring\n"
      "       0    32768  q         1 stage of 32768: f16[128, 128] in panels of 128 bytes\n"
      "   32768    32768  k         1 stage of 32768: f16[128, 128] in panels of 128 bytes\n"
      "   65536    32768  v         1 stage of 32768: f16[128, 128] in panels of 128 bytes\n"
      "   98304       48  barriers  6\n"
      "\n"
      "ring      full when               empty when\n"
      "q         1 arrived, 32768 bytes  2 arrived\n"
      "k         1 arrived, 32768 bytes  2 arrived\n"
      "v         1 arrived, 32768 bytes  2 arrived\n"
      "\n"
      "threads: 384, with 168 registers each at the start\n"
      "role      warps  registers  tiles take\n"
      "load      0             24           0\n"
      "math      4-11         240         164  2 instances\n"
      "\n"
      "named barriers: 3 of 16\n"
      "0      the CTA\n"
      "1-2    the turn 'go'\n");
  sc_free(&f.sc);
}

static void expect_cache(Fixture *f, u32 smem, const char *want) {
  Str out = {.sc = &f->sc};
  f->k->smem = smem;
  sc_print_place(&out, f->k);
  *strchr(out.at, '\n') = 0;
  assert_string_equal(out.at, sc_printf(&f->sc, "shared memory: %u of 232448 bytes%s", smem, want));
}

static void cache_for_people(void **state) {
  (void)state;
  Fixture f;
  assert_true(begin(&f, attention, "BN=128"));
  expect_cache(&f, 113 * 1024, "");  // two CTAs fit
  expect_cache(&f, 113 * 1024 + 1, ", which leave 124 KB to the L1 cache");
  expect_cache(&f, 131 * 1024, ", which leave 124 KB to the L1 cache");
  expect_cache(&f, 131 * 1024 + 16, ", which leave 92 KB to the L1 cache (16 bytes less: 124 KB)");
  expect_cache(&f, 195 * 1024, ", which leave 60 KB to the L1 cache (32768 bytes less: 92 KB)");
  expect_cache(&f, 227 * 1024, ", which leave 28 KB to the L1 cache (32768 bytes less: 60 KB)");
  sc_free(&f.sc);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shared_memory),  cmocka_unit_test(parts_and_private_rings),
      cmocka_unit_test(warps),          cmocka_unit_test(named_barriers),
      cmocka_unit_test(registers),      cmocka_unit_test(columns_of_products),
      cmocka_unit_test(map_for_people), cmocka_unit_test(cache_for_people),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
