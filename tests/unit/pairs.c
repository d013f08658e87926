// Tests of pairs of executions: random kernels store to places that are sums of products of tile,
// instance and round, and all of small grids is enumerated. What the prover calls safe must not
// overlap; and it must prove most of what does not.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "compiler/verify/races.h"
#include "fixture.h"

enum { KERNELS = 2000 / ONE_IN, SIZES = 7, ROUNDS = 4, LANES = 16, PLACES = 4096 };

// A place: c + x*at_x + y*at_y + (x*Q + y)*both + w*at_w + t*at_t + (t % 2)*odd, and x and t as two
// digits each, (x / by)*high + (x % by)*low; and 16 elements from there on. Or the row of a second
// dimension.
typedef struct Store {
  int c, x, y, both, w, t, odd;
  int by, x_high, x_low, t_high, t_low;
  int row;     // 0: one dimension; else which of x, y, w is the row
  int guard;   // 0: none; 1: if x < Q; 2: if x == 1; 3: only elements below Q*8 of the place
  bool loops;  // for t in 0 .. R
} Store;

typedef struct Stores {
  int instances, stores;
  bool reversed;
  Store store[2];
} Stores;

static unsigned seed = 1;
static int pick(int n) { return (int)((seed = seed * 1664525u + 1013904223u) >> 16) % n; }

static int factor(void) {
  static const int of[] = {0, 0, 8, 16, 16, 32, 32, 48, 64};
  return of[pick(9)];
}

static Store random_store(void) {
  Store s = {.c = 8 * pick(3), .x = factor(), .y = factor(), .w = factor()};
  if (!pick(3)) s.both = factor(), s.x = s.y = 0;
  if (!pick(2)) s.loops = true, s.t = factor(), s.odd = pick(3) ? 0 : factor();
  s.by = 2 + pick(2);
  if (!pick(3)) s.x_high = factor(), s.x_low = factor(), s.both = s.x = 0;
  if (s.loops && !pick(3)) s.t_high = factor(), s.t_low = factor(), s.t = s.odd = 0;
  s.row = pick(2) ? 0 : 1 + pick(3);
  s.guard = pick(2) ? 0 : 1 + pick(3);
  return s;
}

// ---- as a schedule

static void put_digits(Str *to, const char *number, int by, int high, int low) {
  if (high) str_printf(to, " + %s / %d * %d", number, by, high);
  if (low) str_printf(to, " + %s %% %d * %d", number, by, low);
}

static void put_store(Str *to, const Store *s, const char *tensor) {
  static const char *const row[] = {"", "x, ", "y, ", "w, "};
  static const char *const guard[] = {"", "if x < Q { ", "if x == 1 { ", ""};
  if (s->loops) str_puts(to, "    for t in 0 .. R {\n");
  str_printf(to, "    %s%s%d[%s%d", guard[s->guard], tensor, s->row, row[s->row], s->c);
  if (s->x) str_printf(to, " + x*%d", s->x);
  if (s->y) str_printf(to, " + y*%d", s->y);
  if (s->both) str_printf(to, " + (x*Q + y)*%d", s->both);
  if (s->w) str_printf(to, " + w*%d", s->w);
  if (s->t) str_printf(to, " + t*%d", s->t);
  if (s->odd) str_printf(to, " + t %% 2 * %d", s->odd);
  put_digits(to, "x", s->by, s->x_high, s->x_low);
  put_digits(to, "t", s->by, s->t_high, s->t_low);
  str_puts(to, " + i] = a[i]");
  if (s->guard == 3) str_puts(to, " if i < Q * 8");
  str_puts(to, s->guard == 1 || s->guard == 2 ? " }\n" : "\n");
  if (s->loops) str_puts(to, "    }\n");
}

// Tensors of one name and different ranks are different ones: O0 has one dimension.
static const char *source(Sc *sc, const Stores *c) {
  Str s = {.sc = sc};
  str_puts(&s, "kernel k {\n  in X : f32[P, Q, R]\n  inout O0 : f32[L], O1, O2, O3 : f32[K, L]\n");
  str_printf(&s, "  grid (%sx : P, y : Q)\n", c->reversed ? "reversed " : "");
  str_printf(&s, "  role r[w] : %d warps, 64 regs {\n    reg a : f32[16] = 0\n", c->instances);
  for (int i = 0; i < c->stores; i++) put_store(&s, &c->store[i], "O");
  str_puts(&s, "  }\n}\n");
  return s.at;
}

// ---- enumerated

typedef struct Grid {
  int p, q, r;
} Grid;

static bool holds(const Store *s, const Grid *g, int x) {
  return s->guard == 1 ? x < g->q : s->guard == 2 ? x == 1 : true;
}

// Marks what one execution writes; true: another one had it.
static bool write_all(const Store *s, const Grid *g, const int *at, int me, int *owner) {
  bool met = false;
  for (int t = 0; t < (s->loops ? g->r : 1); t++) {
    int place = s->c + at[0] * s->x + at[1] * s->y + (at[0] * g->q + at[1]) * s->both +
                at[2] * s->w + t * s->t + t % 2 * s->odd + at[0] / s->by * s->x_high +
                at[0] % s->by * s->x_low + t / s->by * s->t_high + t % s->by * s->t_low;
    int row = s->row ? at[s->row - 1] : 0;
    for (int i = 0; i < LANES; i++) {
      if (s->guard == 3 && i >= g->q * 8) continue;
      int *cell = &owner[(s->row * SIZES + row) * PLACES + place + i];
      met |= *cell && *cell != me;
      *cell = me;
    }
  }
  return met;
}

static bool overlaps_in(const Stores *c, const Grid *g) {
  static int owner[4 * SIZES * PLACES];
  bool met = false;
  memset(owner, 0, sizeof owner);
  for (int n = 0, me = 1; n < g->p * g->q * c->instances; n++, me++) {
    int at[3] = {n % g->p, n / g->p % g->q, n / g->p / g->q};
    for (int i = 0; i < c->stores; i++)
      if (holds(&c->store[i], g, at[0])) met |= write_all(&c->store[i], g, at, me, owner);
  }
  return met;
}

static bool overlaps(const Stores *c) {
  for (int n = 0; n < SIZES * SIZES * ROUNDS; n++)
    if (overlaps_in(c, &(Grid){n % SIZES, n / SIZES % SIZES, n / SIZES / SIZES})) return true;
  return false;
}

// ---- proved

static bool tensor_safe(Races *r, u32 buf) {
  Accesses all = r->access[buf][false];
  for (u32 i = 0; i < all.n; i++) {
    for (u32 j = i; j < all.n; j++) {
      Pair p = sc_pair(r, &all.at[i], &all.at[j], false), again = p;
      again.thorough = true;
      if (!sc_pair_safe(&p) && !sc_pair_safe(&again)) return false;
    }
  }
  return true;
}

static bool safe(Sc *sc, const Kernel *k) {
  Verify v = {.sc = sc, .k = k};
  Races r = sc_races(&v, PROOF_GLOBAL);
  for (u32 i = 0; i < k->buf.n; i++)
    if (k->buf.at[i].space == SP_TENSOR && !tensor_safe(&r, i)) return false;
  return true;
}

static void what_is_proved_does_not_overlap(void **state) {
  (void)state;
  int proved = 0, apart = 0;
  for (int n = 0; n < KERNELS; n++) {
    Fixture f;
    Stores c = {.instances = 1 + pick(3), .stores = 1 + pick(2), .reversed = !pick(3)};
    for (int i = 0; i < c.stores; i++) c.store[i] = random_store();
    sc_init(&f.sc, NULL);
    f.sc.unwind = &f.unwind;
    const char *text = source(&f.sc, &c);
    bool is_safe = safe(&f.sc, compile(&f, "random", text)), meets = overlaps(&c);
    if (is_safe && meets) fail_msg("proved, and two executions meet:\n%s", text);
    if (!meets && !is_safe && getenv("SCHEDC_SHOW")) print_message("not proved:\n%s", text);
    proved += is_safe;
    apart += !meets;
    sc_free(&f.sc);
  }
  print_message("%d kernels, %d without overlap, %d of these proved\n", KERNELS, apart, proved);
  assert_true(apart > KERNELS / 20);
  // Some of the others meet in larger grids.
  assert_true(proved * 4 >= apart * 3);
}

// So many places that the effort would grow with their square: that is said, and not "proved".
static void effort_is_bounded(void **state) {
  Fixture *f = *state;
  Str s = {.sc = &f->sc};
  str_puts(&s,
           "kernel k {\n  out O : f32[P, 64]\n  grid (x : P, y : 4)\n  role r : 1 warp, 64 regs {\n"
           "    reg a : f32[16] = 0\n");
  for (int i = 0; i < 300; i++) str_puts(&s, "    O[4*x + y, 16 + i] = a[i]\n");
  str_puts(&s, "  }\n}\n");
  const Kernel *k = compile(f, "many", s.at);
  Certificate cert = {.kernel = k};
  sc_prove_global(&(Verify){.sc = &f->sc, .k = k, .cert = &cert});
  assert_int_equal(cert.proof[PROOF_GLOBAL].verdict, VERDICT_INCOMPLETE);
  has(cert.proof[PROOF_GLOBAL].why, "too many places");
}

// A role reads in one CTA what another role has added to in the other before it released a stage of
// both: no race is to be told of it, though it is not proved.
static void a_shared_ring_may_tell(void **state) {
  Fixture *f = *state;
  const Kernel *k = compile(f, "shared",
                            "kernel k {\n"
                            "  in X : f32[4, 64]\n"
                            "  inout G : f32[64, 32]\n"
                            "  grid (x : 2) cluster (x : 2)\n"
                            "  ring r : f32[4, 64]\n"
                            "  role load : 1 warp {\n"
                            "    reg s : f32[32] = 0\n"
                            "    r <- X[0..] multicast\n"
                            "    acquire r\n"
                            "    s[d] = s[d] + G[x, d]\n"
                            "    r <- X[0..] multicast\n"
                            "    commit r\n"
                            "  }\n"
                            "  role add : 1 warp {\n"
                            "    reg s : f32[32] = 0\n"
                            "    wait r\n"
                            "    G[1 + x * 20, d] += s[d]\n"
                            "    release r\n"
                            "    wait r\n"
                            "    release r\n"
                            "  }\n"
                            "}\n");
  Certificate cert = {.kernel = k};
  sc_prove_global(&(Verify){.sc = &f->sc, .k = k, .cert = &cert});
  assert_int_equal(cert.proof[PROOF_GLOBAL].verdict, VERDICT_INCOMPLETE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_proved_does_not_overlap),
      TEST(effort_is_bounded),
      TEST(a_shared_ring_may_tell),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
