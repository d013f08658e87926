// strip_random.c - compiled maps of random expressions, and of deep and shared ones.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stripkit.h"

typedef struct Gen {
  Fix *f;
  u64 seed;
  u32 view[6];
  u32 reduced;  // the variable inside the current reduction, or 0
} Gen;

static Xid random_expr(Gen *g, u32 depth) {
  Fix *f = g->f;
  Sc *sc = &f->sc;
  Kernel *k = f->k;
  u32 pick = (u32)(rng(&g->seed) % (depth ? 13 : 3));
  switch (pick) {
    case 0: return REAL((double)(rng(&g->seed) % 64) / 16 - 2);
    case 1: {
      u32 n = g->reduced ? 6 : 3;
      return LOADV(g->view[rng(&g->seed) % n]);
    }
    case 2: return OP1(TOREAL, IDX(g->reduced ? 2 : (u32)(rng(&g->seed) % 2)));
    case 3: return OP1(ABS, random_expr(g, depth - 1));
    case 4: return OP1(TANH, random_expr(g, depth - 1));
    case 5: return OP2(SUB, random_expr(g, depth - 1), random_expr(g, depth - 1));
    case 6: return OP2(MIN, random_expr(g, depth - 1), random_expr(g, depth - 1));
    case 7: {
      Xid c = OP2(LT, random_expr(g, depth - 1), random_expr(g, depth - 1));
      return OP3(WHERE, c, random_expr(g, depth - 1), random_expr(g, depth - 1));
    }
    case 8:
    case 9:
      if (!g->reduced) {
        g->reduced = 2;
        Xid body = random_expr(g, depth - 1);
        g->reduced = 0;
        return rng(&g->seed) & 1 ? REDUCE(SUM, 2, OP1(TANH, body)) : REDUCE(RMAX, 2, body);
      }
      return OP2(ADD, random_expr(g, depth - 1), random_expr(g, depth - 1));
    case 10: return OP2(MUL, OP1(TANH, random_expr(g, depth - 1)), random_expr(g, depth - 1));
    default: return OP2(ADD, random_expr(g, depth - 1), random_expr(g, depth - 1));
  }
}

static void random_maps(void **state) {
  BEGIN;
  const Xid dim[] = {INT(7), INT(19), INT(21)}, ad[] = {dim[0], dim[2]}, bd[] = {dim[2], dim[1]};
  u32 x = km_buf(sc, k, SP_REG, EL_F32, 2, dim), y = km_buf(sc, k, SP_REG, EL_F32, 1, dim);
  u32 z = km_buf(sc, k, SP_REG, EL_F32, 1, dim + 1), a = km_buf(sc, k, SP_REG, EL_F32, 2, ad);
  u32 b = km_buf(sc, k, SP_STAGE, EL_F32, 2, bd), c = km_buf(sc, k, SP_REG, EL_F32, 1, dim + 2);
  u32 o = km_buf(sc, k, SP_REG, EL_F32, 2, dim), ov = VIEW(o, 0, 1);
  Gen g = {
      f, 77, {VIEW(x, 0, 1), VIEW(y, 0), VIEW(z, 1), VIEW(a, 0, 2), VIEW(b, 2, 1), VIEW(c, 2)}, 0};
  randomise(tile(f, x, EL_F32, 7, 19), 7 * 19, 21);
  randomise(tile(f, y, EL_F32, 7, 0), 7, 22);
  randomise(tile(f, z, EL_F32, 19, 0), 19, 23);
  randomise(tile(f, a, EL_F32, 7, 21), 7 * 21, 24);
  randomise(tile(f, b, EL_F32, 21, 19), 21 * 19, 25);
  randomise(tile(f, c, EL_F32, 21, 0), 21, 26);
  tile(f, o, EL_F32, 7, 19);
  for (int i = 0; i < 300; i++) {
    Xid e = random_expr(&g, 1 + (u32)i % 5);
    u32 map = km_map(sc, k, ov, e, 2, 3, dim);
    check(f, map, 2e-3);
  }
}

// Depth and sharing chosen by an enemy: no crash, no exponential time.
static void deep_and_shared(void **state) {
  BEGIN;
  const Xid dim[] = {INT(4), INT(4)};
  u32 s = km_buf(sc, k, SP_REG, EL_F32, 2, dim), sv = VIEW(s, 0, 1);
  tile(f, s, EL_F32, 4, 4)[3] = 0x1p-90f;
  Xid e = LOADV(sv);
  for (int i = 0; i < 100; i++) e = OP2(ADD, e, e);
  run_map(f, km_map(sc, k, sv, e, 2, 2, dim));
  assert_true(*((float *)f->op[sv].at + 3) == 1024);
  for (int i = 0; i < 100000; i++) e = OP1(ABS, OP2(ADD, e, REAL(i)));
  u32 deep = km_map(sc, k, sv, e, 2, 2, dim);
  jmp_buf here;
  sc->unwind = &here;
  if (!setjmp(here)) {
    sc_strip(sc_strip_maker(sc, k), &k->map.at[deep]);
    fail();
  }
  assert_int_equal(sc->why, SCHEDC_ELIMIT);
  assert_int_equal(sc->diags->id, D_P_LIMIT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(random_maps),
      TEST(deep_and_shared),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
