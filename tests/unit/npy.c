// npy.c - .npy files: what NumPy wrote, what an enemy may have written, and headers of our own;
// test inputs.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/run.h"

#include "npy_image.h"
#include "npy_oracle.h"

#define PARSE(npy, image) parse_image(npy, image, sizeof image)

static void what_numpy_writes(void **state) {
  (void)state;
  Npy n;
  assert_null(PARSE(&n, f32_2x3));
  assert_true(n.descr == 'f' && n.bytes == 4 && n.rank == 2 && n.shape[0] == 2 && n.shape[1] == 3);
  float last;
  memcpy(&last, (const char *)n.data + 20, 4);
  assert_true(n.size == 24 && last == 5);
  assert_null(PARSE(&n, f16_2x3_v2));
  assert_true(n.bytes == 2 && n.size == 12 && ((const u8 *)n.data)[3] == 0x3c);
  assert_null(PARSE(&n, i32_4_v3));
  assert_true(n.descr == 'i' && n.rank == 1 && n.shape[0] == 4 && n.size == 16);
  assert_null(PARSE(&n, u8_scalar));
  assert_true(n.descr == 'u' && n.rank == 0 && n.size == 1 && *(const u8 *)n.data == 7);
  assert_null(PARSE(&n, f64_empty));
  assert_true(n.rank == 2 && n.shape[0] == 0 && n.shape[1] == 5 && n.size == 0);
}

static void what_is_refused(void **state) {
  (void)state;
  Npy n;
  assert_non_null(strstr(PARSE(&n, fortran), "Fortran"));
  assert_non_null(strstr(PARSE(&n, big_endian), "big-endian"));
  assert_non_null(strstr(PARSE(&n, complex), "element type"));
  assert_non_null(strstr(PARSE(&n, structured), "structured"));
  assert_non_null(strstr(PARSE(&n, seven_dims), "dimensions"));
}

// A file with this header text.
static const char *parse_text(Npy *n, const char *text, size_t data) {
  static u8 image[512];
  size_t len = strlen(text);
  memcpy(image, "\x93NUMPY\x01\x00", 8);
  image[8] = (u8)len;
  image[9] = (u8)(len >> 8);
  memcpy(image + 10, text, len);
  return parse_image(n, image, 10 + len + data);
}

static void hostile_headers(void **state) {
  (void)state;
  Npy n;
#define REST ", 'fortran_order': False, 'descr': '<f4'}"
  assert_null(parse_text(&n, "{'shape':(2,)" REST, 8));
  assert_null(parse_text(
      &n, " { \"descr\" : '<f4' , 'fortran_order' : False,'shape' : ( 1 , 2 ) , } \n", 8));
  assert_non_null(strstr(parse_text(&n, "{'shape': (3,)" REST, 8), "less data"));
  assert_non_null(
      strstr(parse_text(&n, "{'shape': (4294967296, 4294967296)" REST, 8), "too large"));
  assert_non_null(parse_text(&n, "{'shape': (99999999999999999999,)" REST, 8));
  assert_non_null(parse_text(&n, "{'shape': (-1,)" REST, 8));
  assert_non_null(parse_text(&n, "{'shape': (,)" REST, 8));
  assert_non_null(parse_text(&n, "{'shape': (2" REST, 8));
  assert_non_null(parse_text(&n, "{'shape': 2" REST, 8));
  assert_non_null(strstr(parse_text(&n, "{'shape': (2,), 'shape': (2,)" REST, 8), "twice"));
  assert_non_null(strstr(parse_text(&n, "{'size': 3" REST, 8), "unknown key"));
  assert_non_null(strstr(parse_text(&n, "{'descr': '<f4'}", 8), "lacks"));
  assert_non_null(parse_text(&n, "{'descr': '<f3', 'shape': ()}", 8));
  assert_non_null(parse_text(&n, "{'descr': '<f4", 8));
  assert_non_null(parse_text(&n, "{'shape': (2,)" REST " {}", 8));
  assert_non_null(parse_text(&n, "", 8));
}

// Every shorter file and every file with one byte changed: an answer, and data inside the image.
static void damaged_files(void **state) {
  (void)state;
  Npy n;
  for (size_t cut = 0; cut < sizeof f32_2x3; cut++) {
    u8 *image = malloc(cut + 1);
    memcpy(image, f32_2x3, cut);
    assert_non_null(parse_image(&n, image, cut));
    free(image);
  }
  u8 image[sizeof i32_4_v3];
  for (size_t at = 0; at < sizeof image - 16; at++)
    for (u32 byte = 0; byte < 256; byte++) {
      memcpy(image, i32_4_v3, sizeof image);
      image[at] = (u8)byte;
      if (parse_image(&n, image, sizeof image)) continue;
      const u8 *data = n.data;
      assert_true(data >= image && data + n.size <= image + sizeof image);
    }
}

static void our_headers(void **state) {
  (void)state;
  static const i64 shapes[][SC_MAX_RANK] = {{0}, {7}, {2, 3}, {1, 2, 3, 4, 5, 6}};
  static const size_t ranks[] = {0, 1, 2, 6};
  char at[1024];
  for (size_t i = 0; i < 4; i++) {
    size_t len = sc_npy_header(at, sizeof at, 'f', 2, shapes[i], ranks[i]);
    assert_true(len > 0 && len % 64 == 0 && len + 1440 <= sizeof at + 1440);
    char *image = calloc(1, len + 1440);
    memcpy(image, at, len);
    Npy n;
    assert_null(parse_image(&n, image, len + 1440));
    assert_true(n.descr == 'f' && n.bytes == 2 && n.rank == ranks[i] && n.data == image + len);
    for (size_t d = 0; d < n.rank; d++) assert_true(n.shape[d] == shapes[i][d]);
    free(image);
  }
  assert_int_equal(sc_npy_header(at, 64, 'f', 2, shapes[1], 1), 0);
  // Byte for byte as NumPy has it.
  size_t len = sc_npy_header(at, sizeof at, 'f', 4, shapes[2], 2);
  assert_int_equal(len, sizeof f32_2x3 - 24);
  assert_memory_equal(at, f32_2x3, len);
  len = sc_npy_header(at, sizeof at, 'u', 1, shapes[0], 0);
  assert_memory_equal(at, u8_scalar, len);
}

// ---- input.c

static void inputs_are_as_named(void **state) {
  (void)state;
  enum { N = 2 * 50 * 3 * 64 };
  const i64 shape[] = {2, 50, 3, 64};
  float *v = malloc(N * sizeof *v), *w = malloc(N * sizeof *w);
  for (int kind = 0; kind < INPUT_COUNT; kind++) {
    sc_fill_input(EL_F32, v, &(Extent){shape, NULL, 4}, (InputKind)kind, 5);
    sc_fill_input(EL_F32, w, &(Extent){shape, NULL, 4}, (InputKind)kind, 5);
    assert_memory_equal(v, w, N * sizeof *v);
    sc_fill_input(EL_F32, w, &(Extent){shape, NULL, 4}, (InputKind)kind, 6);
    assert_memory_not_equal(v, w, N * sizeof *v);
    double mean = 0, square = 0, top = 0;
    for (int i = 0; i < N; i++) {
      mean += v[i] / N, square += (double)v[i] * v[i] / N;
      top = fmax(top, fabs(v[i]));
    }
    if (kind == INPUT_NORMAL) assert_true(fabs(mean) < 0.05 && fabs(square - 1) < 0.05 && top < 6);
    if (kind == INPUT_OUTLIERS) assert_true(top > 8);
    if (kind == INPUT_LARGE) assert_true(fabs(square - 64) < 4);
    if (kind == INPUT_EQUAL) assert_memory_equal(v, v + 64 * 77, 64 * sizeof *v);
    if (kind == INPUT_SPIKE) assert_true(top == 16);
    if (kind == INPUT_SINK)
      for (int i = 0; i < 3 * 64; i++) assert_true(v[i] >= 2 && v[50 * 3 * 64 + i] >= 2);
    assert_non_null(sc_input_name[kind]), assert_non_null(sc_input_what[kind]);
  }
  u16 half[64];
  i32 whole[64];
  sc_fill_nan(EL_BF16, half, 64);
  sc_fill_nan(EL_I32, whole, 64);
  for (int i = 0; i < 64; i++) assert_true(isnan(sc_of_bf16(half[i])) && whole[i] == INT32_MIN);
  free(v), free(w);
}

// Normal numbers times 1 to 32 along a dimension, which is the longest but the last, and the other
// way round.
static void expect_ramp(const i64 *shape, size_t rank, i64 inner, i64 along) {
  enum { N = 2 * 50 * 3 * 64 };
  static float normal[N], up[N], down[N];
  i64 n = 1;
  for (size_t i = 0; i < rank; i++) n *= shape[i];
  assert_true(n <= N);
  const Extent extent = {shape, NULL, rank};
  sc_fill_input(EL_F32, normal, &extent, INPUT_NORMAL, 7);
  sc_fill_input(EL_F32, up, &extent, INPUT_RAMP, 7);
  sc_fill_input(EL_F32, down, &extent, INPUT_RAMP_DOWN, 7);
  for (i64 i = 0; i < n; i++) {
    double at = along > 1 ? (double)(i / inner % along) / (double)(along - 1) : 0;
    double back = along > 1 ? 1 - at : 0;
    assert_true(fabs(up[i] - normal[i] * (1 + 31 * at)) < 1e-5);
    assert_true(fabs(down[i] - normal[i] * (1 + 31 * back)) < 1e-5);
  }
}

static void ramps_are_along_the_sequence(void **state) {
  (void)state;
  expect_ramp((i64[]){2, 50, 3, 64}, 4, 3 * 64, 50);  // batch, sequence, head
  expect_ramp((i64[]){99, 3, 64}, 3, 3 * 64, 99);     // sequences behind each other
  expect_ramp((i64[]){70, 90}, 2, 90, 70);            // rows of a matrix
  expect_ramp((i64[]){2, 2, 8}, 3, 16, 2);            // of equal ones the first
  expect_ramp((i64[]){1, 1, 1, 64}, 4, 64, 1);        // nothing to go along
  expect_ramp((i64[]){64}, 1, 64, 1);
  expect_ramp(NULL, 0, 1, 1);
  expect_ramp((i64[]){2, 0, 3}, 3, 3, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_numpy_writes),
      cmocka_unit_test(what_is_refused),
      cmocka_unit_test(hostile_headers),
      cmocka_unit_test(damaged_files),
      cmocka_unit_test(our_headers),
      cmocka_unit_test(inputs_are_as_named),
      cmocka_unit_test(ramps_are_along_the_sequence),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
