// The cost model, on machines whose figures are round and on schedules whose time can be told by
// hand: one thing in each takes long, and all the rest next to nothing.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "apikit.h"

enum { MOST_TENSORS = 8 };

// A copy's first bytes after 1e6 cycles, 64 bytes a cycle then, at 1000 MHz; no limits that all
// multiprocessors share, no launch, no power.
static schedc_machine machine_of(unsigned sms) {
  schedc_machine m = SCHEDC_MACHINE_INIT;
  m.multiprocessors = sms;
  m.clock_mhz = 1000;
  m.memory_latency = 1e6;
  m.link_bytes = 64;
  m.l2_gbs = m.memory_gbs = m.limit_watts = 1e9;
  m.launch_us = 0;
  return m;
}

typedef struct Question {
  const char *text;
  const schedc_param *params;
  size_t param_count;
  const schedc_dim *dims;
  size_t dim_count;
  const schedc_machine *machine;
  const void *data;  // of the first tensor
} Question;

static schedc_status ask(Fixture *f, const Question *q, schedc_prediction *out) {
  schedc_source *source = parse(f, q->text);
  schedc_kernel *kernel = NULL;
  schedc_tensor tensor[MOST_TENSORS] = {0};
  assert_int_equal(
      schedc_instantiate(&kernel, f->context, source, NULL, NULL, q->params, q->param_count),
      SCHEDC_OK);
  size_t n = schedc_tensor_count(kernel);
  assert_true(n <= MOST_TENSORS);
  for (size_t i = 0; i < n; i++) {
    schedc_tensor_info info = SCHEDC_TENSOR_INFO_INIT;
    assert_int_equal(schedc_tensor_at(kernel, i, &info), SCHEDC_OK);
    tensor[i] = (schedc_tensor){.name = info.name, .type = info.type, .rank = info.rank};
    assert_int_equal(
        schedc_tensor_shape(f->context, kernel, i, q->dims, q->dim_count, tensor[i].shape),
        SCHEDC_OK);
    int64_t step = 1;
    for (size_t d = info.rank; d-- > 0; step *= tensor[i].shape[d]) tensor[i].strides[d] = step;
  }
  if (n) tensor[0].data = (void *)q->data;
  schedc_status status = schedc_predict(f->context, kernel, tensor, n, NULL, 0, q->machine, out);
  schedc_kernel_free(kernel);
  schedc_source_free(source);
  return status;
}

static schedc_prediction predicted(Fixture *f, const Question *q) {
  schedc_prediction out = SCHEDC_PREDICTION_INIT;
  assert_int_equal(ask(f, q, &out), SCHEDC_OK);
  return out;
}

// Within a part of the right figure: what operations take besides is small, not nothing.
static void near(double is, double right, double part) {
  if (is < right * (1 - part) || is > right * (1 + part))
    fail_msg("%.1f, but it should be %.1f", is, right);
}

// Copies a tile 12 times through a ring.
static const char through_ring[] =
    "kernel through {\n"
    "  param stages = 1\n"
    "  in X : f16[M, 64]\n"
    "  inout Y : f16[M, 64]\n"
    "  ring r : f16[64, 64] * stages\n"
    "  role load : 1 warp { for t in 0 .. M / 64 { r <- X[t*64..] } }\n"
    "  role drop : 1 warp { for t in 0 .. M / 64 { wait r;  release r } }\n"
    "}\n";

static double through(Fixture *f, const char *stages, const schedc_machine *m) {
  const schedc_param param = {"stages", stages};
  const schedc_dim dim = {"M", 12 * 64};
  return predicted(f, &(Question){through_ring, &param, 1, &dim, 1, m, NULL}).cycles;
}

// With one stage each copy waits for the one before; with s stages, s of them are on their way.
static void stages_overlap(void **state) {
  schedc_machine m = machine_of(1);
  near(through(*state, "1", &m), 12 * (1e6 + 128), 0.001);
  near(through(*state, "2", &m), 6 * (1e6 + 128), 0.001);
  near(through(*state, "4", &m), 3 * (1e6 + 128), 0.001);
  near(through(*state, "12", &m), 1e6 + 12 * 128, 0.001);
}

// Once copies follow each other without a gap, their bytes are what counts: 8 KB at 1 byte in 100
// cycles.
static void bytes_take_time(void **state) {
  schedc_machine m = machine_of(1);
  m.memory_latency = 10;
  m.link_bytes = 0.01;
  double all = 12 * 8192 * 100.;
  near(through(*state, "1", &m), all, 0.001);
  near(through(*state, "2", &m), all, 0.001);
}

// Tiles of one fill each.
static const char tiles[] =
    "kernel tiles {\n"
    "  in X : f16[M, 64]\n"
    "  inout Y : f16[M, 64]\n"
    "  grid (x : M / 64)%s\n"
    "  ring r : f16[64, 64]\n"
    "  role load : 1 warp { r <- X[x*64..] }\n"
    "  role drop : 1 warp { wait r;  release r }\n"
    "}\n";

static schedc_prediction of_tiles(Fixture *f, const char *grid, int64_t n, unsigned sms) {
  static char text[1024];
  schedc_machine m = machine_of(sms);
  m.threads = 64;  // of one CTA alone
  snprintf(text, sizeof text, tiles, grid);
  const schedc_dim dim = {"M", n * 64};
  return predicted(f, &(Question){text, NULL, 0, &dim, 1, &m, NULL});
}

// Seven tiles on three multiprocessors are three waves.
static void waves(void **state) {
  schedc_prediction plain = of_tiles(*state, "", 7, 3);
  near(plain.cycles, 3e6, 0.001);
  near(plain.ms, 3, 0.001);
  near(plain.waves, 7. / 3, 0.001);
  near(of_tiles(*state, "", 6, 3).cycles, 2e6, 0.001);
  near(of_tiles(*state, " persistent", 7, 3).cycles, 3e6, 0.001);
  near(of_tiles(*state, " dynamic", 7, 3).cycles, 3e6, 0.01);
}

// A quarter's lanes for exponentials take 8 cycles for a warp's instruction; n statements of 64 a
// thread, by one warpgroup or by several at once.
static const char exponentials[] =
    "kernel exponentials {\n"
    "  param groups = 1\n"
    "  in X : f16[M, 64]\n"
    "  role math : groups warpgroups {\n"
    "    reg s : f32[64, 128] = 1\n"
    "    for t in 0 .. M { s[i,j] = exp2(s[i,j]) }\n"
    "  }\n"
    "}\n";

static double of_exponentials(Fixture *f, const char *groups, const schedc_machine *m) {
  const schedc_param param = {"groups", groups};
  const schedc_dim dim = {"M", 100};
  return predicted(f, &(Question){exponentials, &param, 1, &dim, 1, m, NULL}).cycles;
}

// What a warp does not reach by itself, others take.
static void exponentials_share(void **state) {
  schedc_machine m = machine_of(1);
  m.warp_rate = 1;
  near(of_exponentials(*state, "1", &m), 100 * 64 * 8, 0.06);
  near(of_exponentials(*state, "2", &m), 200 * 64 * 8, 0.06);
  m.warp_rate = 0.5;
  near(of_exponentials(*state, "1", &m), 200 * 64 * 8, 0.06);
  near(of_exponentials(*state, "2", &m), 200 * 64 * 8, 0.06);
  near(of_exponentials(*state, "3", &m), 300 * 64 * 8, 0.06);
}

static double of_vote(Fixture *f, const char *asks) {
  static char text[512];
  static const char asked[] =
      "kernel asked {\n"
      "  in X : f16[M, 64]\n"
      "  role math : 1 warpgroup {\n"
      "    reg s : f32[64, 128] = 1, n : f32[64] = 0\n"
      "    for t in 0 .. M { vote any(%s) { s[i,j] = exp2(s[i,j]) } }\n"
      "  }\n"
      "}\n";
  schedc_machine m = machine_of(1);
  m.warp_rate = 1;
  const schedc_dim dim = {"M", 100};
  snprintf(text, sizeof text, asked, asks);
  return predicted(f, &(Question){text, NULL, 0, &dim, 1, &m, NULL}).cycles;
}

// What a vote decides on is seldom, unless it asks whether a count has run out.
static void votes(void **state) {
  near(of_vote(*state, "n[i] == 0"), 100 * 64 * 8, 0.1);
  const char *const seldom[] = {"n[i] > 0", "n[i] == 1", "n[i] == -inf"};
  for (size_t i = 0; i < sizeof seldom / sizeof *seldom; i++)
    assert_true(of_vote(*state, seldom[i]) < 100 * 64);
}

// M rounds of a product of 4 instructions of 128 cycles, and then %s.
static const char products[] =
    "kernel products {\n"
    "  param groups = 1\n"
    "  param turns = false\n"
    "  in X : f16[M, 64], Y : f16[M, 256]\n"
    "  ring a : f16[64, 64], b : f16[64, 256]\n"
    "  turn one : math if turns\n"
    "  role load : 1 warp, 40 regs { a <- X[0..];  b <- Y[0..] }\n"
    "  role math : groups warpgroups, 232 regs {\n"
    "    reg s : f32[64, 256] = 1, e : f32[64, 16] = 1\n"
    "    wait a, b\n"
    "    for t in 0 .. M {\n"
    "      acquire one\n"
    "      async s[i,j] = a[i,k] @ b[k,j]\n"
    "      wait s\n"
    "%s"
    "      release one\n"
    "    }\n"
    "    release a, b\n"
    "  }\n"
    "}\n";

static double of_products(Fixture *f, const char *groups, const char *turns, const char *then) {
  static char text[2048];
  schedc_machine m = machine_of(1);
  m.memory_latency = 0;
  m.warp_rate = 1;
  m.tensor_ports = 0;
  m.barrier_latency = 0;
  snprintf(text, sizeof text, products, then);
  const schedc_param params[] = {{"groups", groups}, {"turns", turns}};
  const schedc_dim dim = {"M", 64};
  return predicted(f, &(Question){text, params, 2, &dim, 1, &m, NULL}).cycles;
}

// Tensor cores do one product after the other. What a warpgroup does besides, another's products
// hide, unless a turn keeps it from that.
static void products_take_turns(void **state) {
  const char *work = "      e[i,j] = exp2(exp2(exp2(exp2(exp2(exp2(exp2(exp2(e[i,j]))))))))\n";
  double product = 4 * 128, besides = 8 * 8 * 8, rounds = 64;
  double alone = of_products(*state, "1", "false", "");
  near(alone, rounds * product, 0.25);
  double sync = alone / rounds - product;  // of a round: the issue, and the wait
  near(of_products(*state, "2", "false", ""), 2 * rounds * product, 0.03);
  near(of_products(*state, "1", "false", work), rounds * (product + besides + sync), 0.05);
  near(of_products(*state, "2", "false", work), rounds * (product + besides + sync), 0.1);
  near(of_products(*state, "2", "true", work), 2 * rounds * (product + besides + sync), 0.1);
}

// A product is issued, and %s work stands between that and its wait.
static const char behind[] =
    "kernel behind {\n"
    "  in X : f16[M, 64], Y : f16[M, 256]\n"
    "  ring a : f16[64, 64], b : f16[64, 256]\n"
    "  role load : 1 warp, 40 regs { a <- X[0..];  b <- Y[0..] }\n"
    "  role math : 1 warpgroup, 232 regs {\n"
    "    reg s : f32[64, 256] = 1, e : f32[64, 16] = 1\n"
    "    wait a, b\n"
    "    for t in 0 .. M {\n"
    "      async s[i,j] = a[i,k] @ b[k,j]\n"
    "      e[i,j] = exp2(exp2(exp2(exp2(e[i,j]))))\n"
    "      wait s\n"
    "    }\n"
    "    release a, b\n"
    "  }\n"
    "}\n";

// A warp can go on to other work once no more of its product's instructions wait than the queue
// holds: with room for all four of them all of the work is beside the product, with none nothing.
static void issue_holds_a_warp(void **state) {
  schedc_machine m = machine_of(1);
  const schedc_dim dim = {"M", 64};
  const Question q = {behind, NULL, 0, &dim, 1, &m, NULL};
  double product = 4 * 128, work = 4 * 8 * 8, cycles[3];
  m.memory_latency = 0;
  m.warp_rate = 1;
  m.tensor_ports = 0;
  for (int queue = 0; queue < 3; queue++) {
    m.wgmma_queue = 2 * queue;
    cycles[queue] = predicted(*state, &q).cycles / 64;
  }
  near(cycles[0], product + work, 0.2);
  near(cycles[0] - cycles[2], work, 0.1);
  near(cycles[1], cycles[2], 0.05);  // two of the four are as long as the work
}

// Tile x takes x + 1 fills, one after the other.
static const char unequal[] =
    "kernel unequal {\n"
    "  in X : f16[M, 64]\n"
    "  grid (%s : M / 64)%s\n"
    "  ring r : f16[64, 64]\n"
    "  role load : 1 warp { for t in 0 .. x + 1 { r <- X[x*64..] } }\n"
    "  role drop : 1 warp { for t in 0 .. x + 1 { wait r;  release r } }\n"
    "}\n";

static double of_unequal(Fixture *f, const char *axis, const char *grid, int64_t n) {
  static char text[1024];
  schedc_machine m = machine_of(2);
  m.threads = 64;
  snprintf(text, sizeof text, unequal, axis, grid);
  const schedc_dim dim = {"M", n * 64};
  return predicted(f, &(Question){text, NULL, 0, &dim, 1, &m, NULL}).cycles;
}

// Of tiles of 1, 2, 3, 4 fills, two places take 1 and 3, 2 and 4; the longest first: 4 and 1, 3 and
// 2. Tiles whose lengths lie between those that are run are as long as their lengths say.
static void order_of_tiles(void **state) {
  near(of_unequal(*state, "x", "", 4), 6e6, 0.001);
  near(of_unequal(*state, "reversed x", "", 4), 5e6, 0.001);
  near(of_unequal(*state, "x", " dynamic", 4), 6e6, 0.01);
  near(of_unequal(*state, "reversed x", " dynamic", 4), 5e6, 0.01);
  near(of_unequal(*state, "reversed x", " persistent", 4), 6e6, 0.001);
  near(of_unequal(*state, "reversed x", "", 40), 410e6, 0.001);
}

// A loader that runs ahead: with two stages, fills of one tile and of the next overlap.
static const char ahead[] =
    "kernel ahead {\n"
    "  in X : f16[M, 64]\n"
    "  grid (x : M / 64) persistent\n"
    "  ring r : f16[64, 64] * 2\n"
    "  role load : 1 warp { for t in 0 .. %s { r <- X[x*64..] } }\n"
    "  role drop : 1 warp { for t in 0 .. %s { wait r;  release r } }\n"
    "}\n";

static double of_ahead(Fixture *f, const char *fills, int64_t n) {
  static char text[1024];
  schedc_machine m = machine_of(1);
  snprintf(text, sizeof text, ahead, fills, fills);
  const schedc_dim dim = {"M", n * 64};
  return predicted(f, &(Question){text, NULL, 0, &dim, 1, &m, NULL}).cycles;
}

// The first tile takes a whole copy, those behind it half of one; and so with tiles of 1 to 8
// fills, where the first takes one, too.
static void tiles_overlap(void **state) {
  near(of_ahead(*state, "1", 9), 1e6 + 8 * 0.5e6, 0.001);
  near(of_ahead(*state, "x + 1", 8), 1e6 + 35 * 0.5e6, 0.02);
}

// CTAs of a cluster share what they copy: half of the bytes come from the L2 cache.
static const char multicast[] =
    "kernel shared {\n"
    "  in X : f16[M, 64]\n"
    "  grid (x : 2) cluster (x : 2)\n"
    "  ring r : f16[64, 64] * 2\n"
    "  role load : 1 warp { for t in 0 .. M / 64 { r <- X[t*64..]%s } }\n"
    "  role drop : 1 warp { for t in 0 .. M / 64 { wait r;  release r } }\n"
    "}\n";

static schedc_prediction of_multicast(Fixture *f, const char *how, double arrival) {
  static char text[1024];
  schedc_machine m = machine_of(2);
  m.cluster_latency = arrival;
  snprintf(text, sizeof text, multicast, how);
  const schedc_dim dim = {"M", 10 * 64};
  return predicted(f, &(Question){text, NULL, 0, &dim, 1, &m, NULL});
}

static void clusters(void **state) {
  near(of_multicast(*state, "", 0).bytes, 2 * 10 * 8192, 1e-9);
  near(of_multicast(*state, " multicast", 0).bytes, 10 * 8192, 1e-9);
  near(of_multicast(*state, " multicast", 0).cycles, 5e6, 0.001);
  near(of_multicast(*state, " multicast", 1e6).cycles, 9e6,
       0.001);  // the last stages are not awaited
}

// The steady state of a long loop is found by its period. A loop whose rounds take one of two ways
// that cost the same, in no period that is looked for, is gone through round by round: it takes as
// long as one that always takes the same.
static const char two_ways[] =
    "kernel ways {\n"
    "  param stages = 1\n"
    "  in X : f16[M, 64]\n"
    "  ring r : f16[64, 64] * stages\n"
    "  role load : 1 warp { for t in 0 .. M / 64 { r <- X[t*64..] } }\n"
    "  role drop : 1 warp {\n"
    "    for t in 0 .. M / 64 {\n"
    "      wait r\n"
    "      if %s { release r } else { release r }\n"
    "    }\n"
    "  }\n"
    "}\n";

static double of_two_ways(Fixture *f, const char *which, const char *stages) {
  static char text[1024];
  schedc_machine m = machine_of(1);
  m.memory_latency = 1000;
  snprintf(text, sizeof text, two_ways, which);
  const schedc_param param = {"stages", stages};
  const schedc_dim dim = {"M", 64 * 2003};
  return predicted(f, &(Question){text, &param, 1, &dim, 1, &m, NULL}).cycles;
}

static void long_loops(void **state) {
  const char *stages[] = {"1", "2", "3", "5", "12"};
  for (int i = 0; i < 5; i++) {
    double each = of_two_ways(*state, "t * t * t % 23 < 11", stages[i]);
    near(of_two_ways(*state, "t >= 0", stages[i]), each, 0.0005);
  }
}

// A loop as long as the data says.
static const char counted[] =
    "kernel counted {\n"
    "  in n : i32[2]\n"
    "  in X : f16[M, 64]\n"
    "  grid (x : 2)\n"
    "  let trips = n[x]\n"
    "  ring r : f16[64, 64]\n"
    "  role load : 1 warp { for t in 0 .. trips { r <- X[t*64..] } }\n"
    "  role drop : 1 warp { for t in 0 .. trips { wait r;  release r } }\n"
    "}\n";

static void data_decides(void **state) {
  Fixture *f = *state;
  const int32_t n[] = {5, 2};
  schedc_machine m = machine_of(1);
  m.threads = 64;
  const schedc_dim dim = {"M", 64};
  Question q = {counted, NULL, 0, &dim, 1, &m, n};
  schedc_prediction out = SCHEDC_PREDICTION_INIT;
  near(predicted(f, &q).cycles, 7e6, 0.001);
  q.data = NULL;
  assert_int_equal(ask(f, &q, &out), SCHEDC_EINPUT);
  assert_string_equal(f->heard.code, "T.null");
}

// At an eighth of what the highest clock needs, half of the clock is left.
static void power_lowers_the_clock(void **state) {
  schedc_machine m = machine_of(1);
  const schedc_param param = {"stages", "1"};
  const schedc_dim dim = {"M", 12 * 64};
  const Question q = {through_ring, &param, 1, &dim, 1, &m, NULL};
  m.tensor_pj = m.l2_pj = 0;
  m.cycle_pj = 8000;  // 8 W at 1000 MHz
  m.idle_watts = 100;
  m.limit_watts = 101;
  near(predicted(*state, &q).clock_mhz, 500, 0.001);
  near(predicted(*state, &q).ms, 24, 0.001);
  m.limit_watts = 108.1;
  near(predicted(*state, &q).clock_mhz, 1000, 1e-9);
}

static void wrong_calls(void **state) {
  Fixture *f = *state;
  schedc_kernel *kernel = instantiate(f);
  schedc_prediction out = SCHEDC_PREDICTION_INIT;
  schedc_machine m = SCHEDC_MACHINE_INIT;
  assert_int_equal(schedc_predict(NULL, kernel, NULL, 0, NULL, 0, NULL, &out), SCHEDC_EARG);
  assert_int_equal(schedc_predict(f->context, kernel, NULL, 0, NULL, 0, NULL, NULL), SCHEDC_EARG);
  assert_int_equal(schedc_predict(f->context, kernel, NULL, 1, NULL, 0, NULL, &out), SCHEDC_EARG);
  assert_int_equal(schedc_predict(f->context, kernel, NULL, 0, NULL, 0, NULL, &out), SCHEDC_EINPUT);
  m.link_bytes = 0;
  assert_int_equal(schedc_predict(f->context, kernel, NULL, 0, NULL, 0, &m, &out), SCHEDC_EARG);
  m.link_bytes = 64;
  m.memory_latency = -1;
  assert_int_equal(schedc_predict(f->context, kernel, NULL, 0, NULL, 0, &m, &out), SCHEDC_EARG);
  schedc_kernel_free(kernel);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(stages_overlap),
                                     TEST(bytes_take_time),
                                     TEST(waves),
                                     TEST(votes),
                                     TEST(exponentials_share),
                                     TEST(products_take_turns),
                                     TEST(order_of_tiles),
                                     TEST(tiles_overlap),
                                     TEST(issue_holds_a_warp),
                                     TEST(clusters),
                                     TEST(long_loops),
                                     TEST(data_decides),
                                     TEST(wrong_calls),
                                     TEST(power_lowers_the_clock)};
  return cmocka_run_group_tests_name("predict", tests, NULL, NULL);
}
