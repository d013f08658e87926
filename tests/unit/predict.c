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
    "  out Y : f16[M, 64]\n"
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
    "  out Y : f16[M, 64]\n"
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

int main(void) {
  const struct CMUnitTest tests[] = {TEST(stages_overlap), TEST(bytes_take_time), TEST(waves)};
  return cmocka_run_group_tests_name("predict", tests, NULL, NULL);
}
