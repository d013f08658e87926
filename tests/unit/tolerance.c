// tolerance.c - outputs against their specification: what passes, what fails, and samples of
// places.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "speckit.h"

// Stores the last evaluation's results as a kernel would.
static void store_outputs(Fix *f) {
  for (u32 t = 0; t < f->k->buf.n; t++) {
    if (!f->to[t]) continue;
    i64 n = 1;
    for (u32 i = 0; i < f->k->buf.at[t].rank; i++) n *= f->b.buf[t].shape[i];
    for (i64 i = 0; i < n; i++) sc_set_elem(f->k->buf.at[t].elem, f->b.buf[t].at, i, f->to[t][i]);
  }
}

// Attention, and outputs that are right.
static void right_outputs(Fix *f, Attention *a) {
  attention(f, a);
  assert_int_equal(spec(f, true, 2), SCHEDC_OK);
  store_outputs(f);
}

static void honest_outputs_pass(void **state) {
  BEGIN;
  Attention a = {.b = 1, .h = 2, .g = 1, .m = 40, .n = 33, .d = 16, .causal = true};
  schedc_error e[2] = {SCHEDC_ERROR_INIT, SCHEDC_ERROR_INIT};
  right_outputs(f, &a);
  size_t before = f->now;
  assert_int_equal(sc_compare(sc, k, &f->b, 2, NULL, e), SCHEDC_OK);
  assert_true(f->now == before);
  assert_true(e[0].pass && e[1].pass && e[0].size == sizeof e[0]);
  assert_int_equal(e[0].elements, 40 * 2 * 16);
  assert_true(e[0].max_error > 0 && e[0].max_allowed < 0.02 && e[0].mean_allowed < 0.002);
  assert_true(e[1].max_allowed == 1e-3);
  assert_string_equal(e[1].tensor, "x");
  round_values(f, EL_F32);
  assert_int_equal(spec(f, false, 2), SCHEDC_OK);
  round_values(f, EL_F16);
  store_outputs(f);  // computed in f32
  assert_int_equal(sc_compare(sc, k, &f->b, 1, NULL, e), SCHEDC_OK);
  assert_true(e[0].pass && e[1].pass);
}

// The tensor cores add products of 8-bit factors with about 14 bits: f32 outputs may be as far off.
static void coarse_sums(void **state) {
  BEGIN;
  Attention a = {.b = 1, .h = 2, .g = 1, .m = 40, .n = 33, .d = 16};
  schedc_error e[2] = {SCHEDC_ERROR_INIT, SCHEDC_ERROR_INIT};
  right_outputs(f, &a);
  PUSH(sc, &k->view, ((View){.buf = k->buf.n}));
  PUSH(sc, &k->buf, ((Buf){.name = "b", .space = SP_STAGE, .elem = EL_F16}));
  PUSH(sc, &k->product, ((Product){.b = k->view.n - 1}));
  assert_int_equal(sc_compare(sc, k, &f->b, 2, NULL, e), SCHEDC_OK);
  assert_true(e[1].max_allowed == 1e-3);
  k->buf.at[k->buf.n - 1].elem = EL_E5M2;
  assert_int_equal(sc_compare(sc, k, &f->b, 2, NULL, e), SCHEDC_OK);
  assert_true(e[1].max_allowed > 3e-3 && e[1].max_allowed < 6e-3);  // of 3 to 6
}

// … and four times as far, where the longest sum has 128 terms; in the mean, twice.
static void long_coarse_sums(void **state) {
  BEGIN;
  Attention a = {.b = 1, .h = 2, .g = 1, .m = 40, .n = 128, .d = 16};
  schedc_error e[2] = {SCHEDC_ERROR_INIT, SCHEDC_ERROR_INIT};
  right_outputs(f, &a);
  PUSH(sc, &k->view, ((View){.buf = k->buf.n}));
  PUSH(sc, &k->buf, ((Buf){.name = "b", .space = SP_STAGE, .elem = EL_E4M3}));
  PUSH(sc, &k->product, ((Product){.b = k->view.n - 1}));
  assert_int_equal(sc_compare(sc, k, &f->b, 2, NULL, e), SCHEDC_OK);
  assert_true(e[1].max_allowed > 16e-3 && e[1].max_allowed < 28e-3);  // of 5 to 7
  assert_true(fabs(e[1].mean_allowed / e[1].max_allowed - 0.125) < 1e-6);
}

static void wrong_outputs_fail(void **state) {
  BEGIN;
  Attention a = {.b = 1, .h = 2, .g = 1, .m = 40, .n = 33, .d = 16, .causal = true};
  schedc_error e[2] = {SCHEDC_ERROR_INIT, SCHEDC_ERROR_INIT};
  right_outputs(f, &a);
  u16 *o = (u16 *)(void *)f->b.buf[a.o].at;
  float *l = (float *)(void *)f->b.buf[a.l].at;
  i64 at = (30 * 2 + 1) * 16 + 5;
  u16 was = o[at];
  o[at] = sc_to_f16(sc_of_f16(was) + 0.05f);
  l[3] = -1e30f;  // -inf is right: the row sees nothing
  assert_int_equal(sc_compare(sc, k, &f->b, 2, NULL, e), SCHEDC_OK);
  assert_true(!e[0].pass && !e[1].pass);
  assert_true(e[0].worst[1] == 30 && e[0].worst[2] == 1 && e[0].worst[3] == 5);
  assert_true(fabs(e[0].max_error - 0.05) < 1e-3 && e[0].unwritten == 0);
  assert_true(e[1].max_error == INFINITY && e[1].worst[2] == 3 && e[1].worst_ref == -INFINITY);
  o[at] = 0x7e00;
  l[3] = -INFINITY;
  assert_int_equal(sc_compare(sc, k, &f->b, 2, NULL, e), SCHEDC_OK);
  assert_true(!e[0].pass && e[0].unwritten == 1 && e[1].pass);
  o[at] = was;
  for (i64 i = 0; i < 40 * 2 * 16; i++)  // each within the largest error, but all of them
    o[i] = sc_to_f16(sc_of_f16(o[i]) + (float)e[0].max_allowed * 0.6f);
  assert_int_equal(sc_compare(sc, k, &f->b, 2, NULL, e), SCHEDC_OK);
  assert_true(!e[0].pass && e[0].max_error <= e[0].max_allowed &&
              e[0].mean_error > e[0].mean_allowed);
}

// NaN inputs must come out; what overflows the type must be what a conversion makes of it.
static void special_values(void **state) {
  BEGIN;
  f->b.dim[0] = 4;
  Xid N = DIM(0);
  u32 x = tensor(f, EL_F16, SCHEDC_IN, 1, &N, (i64[]){4}),
      y = tensor(f, EL_F16, SCHEDC_OUT, 1, &N, (i64[]){4});
  u32 z = tensor(f, EL_E4M3, SCHEDC_OUT, 1, &N, (i64[]){4}),
      n = tensor(f, EL_I32, SCHEDC_OUT, 1, &N, (i64[]){4});
  Xid i = IDX(0), square = OP2(MUL, LOADV(AT(x, i)), LOADV(AT(x, i)));
  equation(f, AT(y, i), square, 1, 1, &N);
  equation(f, AT(z, i), square, 1, 1, &N);
  equation(f, AT(n, i), OP2(MUL, i, i), 1, 1, &N);
  const double in[] = {NAN, 1000, 2, 0}, yout[] = {NAN, INFINITY, 4, 0}, zout[] = {NAN, 448, 4, 0};
  schedc_error e[3] = {SCHEDC_ERROR_INIT, SCHEDC_ERROR_INIT, SCHEDC_ERROR_INIT};
  for (int j = 0; j < 4; j++) {
    sc_set_elem(EL_F16, f->b.buf[x].at, j, in[j]);
    sc_set_elem(EL_F16, f->b.buf[y].at, j, yout[j]);
    sc_set_elem(EL_E4M3, f->b.buf[z].at, j, zout[j]);
    sc_set_elem(EL_I32, f->b.buf[n].at, j, j * j);
  }
  assert_int_equal(sc_compare(sc, k, &f->b, 1, NULL, e), SCHEDC_OK);
  assert_true(e[0].pass && e[1].pass && e[2].pass && e[2].max_allowed == 0);
  sc_set_elem(EL_F16, f->b.buf[y].at, 0, 0);
  sc_set_elem(EL_F16, f->b.buf[y].at, 1, 65504);
  sc_set_elem(EL_I32, f->b.buf[n].at, 3, 8);
  assert_int_equal(sc_compare(sc, k, &f->b, 1, NULL, e), SCHEDC_OK);
  assert_true(!e[0].pass && e[1].pass && !e[2].pass);
}

// ---- samples

static i64 flat(const Fix *f, u32 t, const Boxes *of, i64 box, size_t n) {
  i64 at = 0;
  i64 idx[SC_MAX_RANK];
  for (u32 i = f->k->buf.at[t].rank; i-- > 0; n /= (size_t)of->extent[i])
    idx[i] = of->origin[box][i] + (i64)(n % (size_t)of->extent[i]);
  for (u32 i = 0; i < f->k->buf.at[t].rank; i++) at += idx[i] * f->b.buf[t].stride[i];
  return at;
}

// A sample's values are those of the whole, bit for bit, exactly and rounded.
static void samples_agree(void **state) {
  BEGIN;
  Attention a = {.b = 2, .h = 4, .g = 2, .m = 75, .n = 90, .d = 16, .causal = true};
  attention(f, &a);
  for (int exact = 0; exact < 2; exact++) {
    Boxes out[MAX_BUFS] = {0};
    assert_int_equal(spec(f, exact, 2), SCHEDC_OK);
    assert_int_equal(sc_spec(sc, k, &f->b, exact, 3, &(Sample){.places = 50}, out, NULL),
                     SCHEDC_OK);
    for (u32 t = 0; t < MAX_BUFS; t++) {
      if (!f->to[t]) continue;
      size_t n = box_size(f, t, &out[t]);
      assert_int_equal(out[t].n, 50);
      assert_int_equal(n, t == a.o ? 16 : 1);
      for (size_t i = 0; i < n * 50; i++) {
        i64 at = flat(f, t, &out[t], (i64)(i / n), i % n);
        assert_true(out[t].at[i] == f->to[t][at]);
      }
      assert_int_equal(flat(f, t, &out[t], 0, 0), 0);
      assert_int_equal(flat(f, t, &out[t], 49, n - 1), 2 * 75 * 4 * (t == a.o ? 16 : 1) - 1);
    }
  }
}

static u64 compared(Fix *f, Sample sample) {
  schedc_error e[2] = {SCHEDC_ERROR_INIT, SCHEDC_ERROR_INIT};
  assert_int_equal(sc_compare(&f->sc, f->k, &f->b, 2, &sample, e), SCHEDC_OK);
  assert_true(e[0].pass && e[1].pass && e[0].total == 40 * 2 * 16 && e[1].total == 40 * 2);
  assert_int_equal(e[0].elements, e[1].elements * 16);
  return e[1].elements;
}

static void limits_of_samples(void **state) {
  BEGIN;
  Attention a = {.b = 1, .h = 2, .g = 1, .m = 40, .n = 33, .d = 16};
  right_outputs(f, &a);
  assert_int_equal(compared(f, (Sample){0}), 80);
  assert_int_equal(compared(f, (Sample){.places = 80}), 80);
  assert_int_equal(compared(f, (Sample){.places = 1}), 1);
  assert_int_equal(compared(f, (Sample){.places = 30}), 30);
  assert_int_equal(compared(f, (Sample){.operations = 1u << 30}), 80);
  assert_int_equal(compared(f, (Sample){.operations = 1}), 1);
  // A row: two products of 2 * 33 * 16, two sums, and the elements.
  u64 some = compared(f, (Sample){.operations = 40000});
  assert_true(some > 8 && some < 19);
}

// What is wrong in the sample fails; what was not written fails wherever it is.
static void samples_find(void **state) {
  BEGIN;
  Attention a = {.b = 1, .h = 2, .g = 1, .m = 300, .n = 33, .d = 16};
  schedc_error e[2] = {SCHEDC_ERROR_INIT, SCHEDC_ERROR_INIT};
  Sample sample = {.places = 20};
  right_outputs(f, &a);
  u16 *o = (u16 *)(void *)f->b.buf[a.o].at;
  for (i64 i = 0; i < 2 * 300 * 16; i += 16) {
    u16 was = o[i + 3];
    o[i + 3] = sc_to_f16(NAN);
    assert_int_equal(sc_compare(sc, k, &f->b, 1, &sample, e), SCHEDC_OK);
    assert_true(!e[0].pass && e[0].unwritten == 1 && e[1].pass && e[0].elements == 320);
    o[i + 3] = was;
  }
  o[(299 * 2 + 1) * 16 + 15] = sc_to_f16(9);
  assert_int_equal(sc_compare(sc, k, &f->b, 1, &sample, e), SCHEDC_OK);
  assert_true(!e[0].pass && e[0].worst[1] == 299 && e[0].worst[2] == 1 && e[0].worst[3] == 15);
}

static bool drawn(const i64 *to, size_t n, i64 place) {
  for (size_t i = 0; i < n; i++)
    if (to[i] == place) return true;
  return false;
}

static void draws(void **state) {
  (void)state;
  const i64 line = 8448, tile = 128, box[] = {4, 16, 8448}, tiles[] = {1, 1, 128};
  i64 to[1000], again[1000];
  assert_int_equal(sc_draw_places(&line, &tile, 1, 40, to), 40);
  for (int i = 1; i < 40; i++) assert_true(to[i] > to[i - 1]);
  const i64 wanted[] = {0, 127, 128, 33 * 128 - 1, 33 * 128, 8319, 8320, 8447};
  for (size_t i = 0; i < COUNT(wanted); i++) assert_true(drawn(to, 40, wanted[i]));
  assert_int_equal(sc_draw_places(box, tiles, 3, 1000, to), 1000);
  assert_int_equal(sc_draw_places(box, tiles, 3, 1000, again), 1000);
  assert_memory_equal(to, again, sizeof to);
  int edges = 0;
  u64 heads = 0;
  for (int i = 0; i < 1000; i++) {
    assert_true(to[i] >= 0 && to[i] < 4 * 16 * 8448);
    edges += to[i] % 8448 % 128 == 0 || to[i] % 8448 % 128 == 127;
    heads |= (u64)1 << to[i] / 8448;
  }
  assert_true(edges > 400 && edges < 600 && heads == UINT64_MAX);
  assert_int_equal(sc_draw_places(box, tiles, 1, 7, to), 4);  // all
  assert_int_equal(sc_draw_places(box, tiles, 3, 1, to), 1);
  assert_int_equal(sc_draw_places((i64[]){3, 0}, tiles, 2, 9, to), 0);
}

// Whichever allocation fails: a status, and nothing leaks (the allocator's balance is checked at
// the end).
static void memory_runs_out(void **state) {
  BEGIN;
  Attention a = {.b = 1, .h = 2, .g = 1, .m = 20, .n = 33, .d = 16};
  schedc_error e[2] = {SCHEDC_ERROR_INIT, SCHEDC_ERROR_INIT};
  attention(f, &a);
  int fails = 0;
  for (schedc_status got = SCHEDC_ENOMEM; got != SCHEDC_OK; fails++) {
    f->left = fails;
    size_t before = f->now;
    got = sc_compare(sc, k, &f->b, 2, NULL, e);
    f->left = -1;
    assert_true(got == SCHEDC_OK || got == SCHEDC_ENOMEM);
    assert_true(f->now == before);
  }
  assert_true(fails > 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(honest_outputs_pass), TEST(coarse_sums),
      TEST(long_coarse_sums),    TEST(wrong_outputs_fail),
      TEST(special_values),      TEST(memory_runs_out),
      TEST(samples_agree),       TEST(limits_of_samples),
      TEST(samples_find),        TEST(draws),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
