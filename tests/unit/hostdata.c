// hostdata.c - elements, drawn inputs and files through the public interface: what is converted,
// what is left alone between the elements of strided tensors, and what is said of files that are
// not as they should be.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apikit.h"

static char folder[64], said[512], code[32];
static schedc_context *context;

static void note(void *user, const schedc_diagnostic *d) {
  (void)user;
  snprintf(said, sizeof said, "%s", d->rendered);
  snprintf(code, sizeof code, "%s", d->code);
  size_t n = strlen(d->file);  // and no line, as there is none
  assert_true(!strncmp(said, d->file, n) && !strncmp(said + n, ": error[F.", 10));
  assert_true(d->where.line == 1 && d->where.column == 1 && d->where.length == 0);
}

static int begin(void **state) {
  (void)state;
  schedc_options options = SCHEDC_OPTIONS_INIT;
  options.sink = note;
  said[0] = code[0] = 0;
  strcpy(folder, "/tmp/schedc-data-XXXXXX");
  return !mkdtemp(folder) || schedc_open(&context, &options);
}

static int end(void **state) {
  (void)state;
  char command[128];
  schedc_close(context);
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

static const char *path_of(const char *name) {
  static char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

// ---- elements

static void conversions(void **state) {
  (void)state;
  const float from[] = {1, -0.5f, 70000, NAN, 3.0e-8f};
  const uint16_t f16[] = {0x3c00, 0xb800, 0x7c00, 0x7e00, 0x0001};
  const uint16_t bf16[] = {0x3f80, 0xbf00, 0x4789, 0x7fc0, 0x3301};
  const uint8_t e4m3[] = {0x38, 0xb0, 0x7e, 0x7f, 0}, e5m2[] = {0x3c, 0xb8, 0x7b, 0x7f, 0};
  const int32_t i32[] = {1, 0, 70000, 0, 0};
  const struct {
    schedc_type type;
    const void *want;
  } types[] = {{SCHEDC_F32, from},  {SCHEDC_F16, f16},   {SCHEDC_BF16, bf16},
               {SCHEDC_E4M3, e4m3}, {SCHEDC_E5M2, e5m2}, {SCHEDC_I32, i32}};
  unsigned char to[20];
  float back[5];
  for (size_t i = 0; i < 6; i++) {
    size_t bytes = 5 * schedc_type_size(types[i].type);
    assert_int_equal(schedc_from_f32(types[i].type, to, from, 5), SCHEDC_OK);
    assert_memory_equal(to, types[i].want, bytes);
    assert_int_equal(schedc_to_f32(types[i].type, back, types[i].want, 5), SCHEDC_OK);
    assert_true(back[0] == 1 && (back[1] == -0.5f || types[i].type == SCHEDC_I32));
  }
  const double between = 1 + 0x1p-11 + 0x1p-40;  // to f32 and then to f16, it would be 1
  assert_int_equal(schedc_from_f64(SCHEDC_F16, to, &between, 1), SCHEDC_OK);
  assert_memory_equal(to, ((uint16_t[]){0x3c01}), 2);
  assert_int_equal(schedc_from_f32((schedc_type)6, to, from, 1), SCHEDC_EARG);
  assert_int_equal(schedc_from_f64((schedc_type)6, to, &between, 1), SCHEDC_EARG);
  assert_int_equal(schedc_to_f32((schedc_type)6, back, from, 1), SCHEDC_EARG);
  assert_int_equal(schedc_to_f32(SCHEDC_F16, NULL, from, 1), SCHEDC_EARG);
  assert_int_equal(schedc_from_f32(SCHEDC_F16, NULL, NULL, 0), SCHEDC_OK);
}

// Three rows of 4, 10 apart, in two blocks; and the same without room between.
enum { GAPS = 100, PLAIN = 24 };
static float gaps[GAPS], plain[PLAIN];
static const schedc_tensor strided = {"X", gaps, SCHEDC_F32, 3, {2, 3, 4}, {50, 10, 1}},
                           packed = {"X", plain, SCHEDC_F32, 3, {2, 3, 4}, {12, 4, 1}};

static size_t place(size_t i) { return i / 12 * 50 + i % 12 / 4 * 10 + i % 4; }

static void same_elements(void) {
  size_t others = 0;
  for (size_t i = 0; i < PLAIN; i++) assert_memory_equal(&gaps[place(i)], &plain[i], sizeof *plain);
  for (size_t i = 0; i < GAPS; i++) others += gaps[i] == -7;
  assert_int_equal(others, GAPS - PLAIN);
}

// Lists of integers are drawn as their declarations say.
static void drawn_lists(void **state) {
  (void)state;
  static const char text[] =
      "kernel k {\n  in  cu : i32[B+1] in 0 .. T + 1 rising, idx : i32[B] in 3 .. T\n"
      "  in  all : i32[B] rising, X : f32[T]\n  out Y : f32[T]\n"
      "  grid (x : cdiv(T, 64))\n  role r : 1 warpgroup {\n    reg s : f32[64]\n    s[i] = X[x*64 "
      "+ i]\n    Y[x*64 + i] = s[i]\n  }\n}\n";
  enum { B = 50, T = 1000 };
  static const schedc_dim dims[] = {{"B", B}, {"T", T}};
  int32_t v[B + 1];
  schedc_source *source;
  schedc_kernel *kernel;
  int idle = 0;
  assert_int_equal(schedc_parse(&source, context, "t.sched", text, strlen(text)), SCHEDC_OK);
  assert_int_equal(schedc_instantiate(&kernel, context, source, NULL, NULL, NULL, 0), SCHEDC_OK);
  schedc_source_free(source);
  for (size_t index = 0; index < 3; index++) {
    const schedc_tensor t = {NULL, v, SCHEDC_I32, 1, {B + !index}, {1}};
    assert_int_equal(schedc_draw_input(context, kernel, index, dims, 2, NULL, 0, &t, "normal", 7),
                     SCHEDC_OK);
    for (int i = 0; i < B + !index; i++) {
      assert_in_range(v[i], index == 1 ? 3 : 0, index == 0 ? T : index == 1 ? T - 1 : 15);
      if (i && index != 1) assert_true(v[i] >= v[i - 1]);
      idle |= !index && i && v[i] == v[i - 1];
    }
    if (!index) assert_true(v[0] == 0 && v[B] == T);
  }
  assert_true(idle);  // some sequences are empty
  const schedc_tensor t = {NULL, v, SCHEDC_I32, 1, {B}, {1}};
  assert_int_equal(schedc_draw_input(context, kernel, 9, dims, 2, NULL, 0, &t, "normal", 7),
                   SCHEDC_EARG);
  assert_int_equal(schedc_draw_input(context, NULL, 0, dims, 2, NULL, 0, &t, "normal", 7),
                   SCHEDC_EARG);
  schedc_kernel_free(kernel);
}

// … which may name scalars: as given, or by default, also where that is made of others.
static void drawn_by_scalars(void **state) {
  (void)state;
  static const char text[] =
      "kernel k {\n  in  X : f32[T]\n  in s : i32, e : i32 = s + T\n  in idx : i32[T] in s .. e\n"
      "  out Y : f32[T]\n  grid (x : cdiv(T, 64))\n  role r : 1 warpgroup {\n    reg s1 : f32[64]\n"
      "    s1[i] = X[x*64 + i]\n    Y[x*64 + i] = s1[i]\n  }\n}\n";
  enum { T = 60 };
  static const schedc_dim dims[] = {{"T", T}};
  static const schedc_scalar given[] = {{"s", 100}, {"e", 103}};
  int32_t v[T];
  const schedc_tensor t = {NULL, v, SCHEDC_I32, 1, {T}, {1}};
  schedc_source *source;
  schedc_kernel *kernel;
  assert_int_equal(schedc_parse(&source, context, "t.sched", text, strlen(text)), SCHEDC_OK);
  assert_int_equal(schedc_instantiate(&kernel, context, source, NULL, NULL, NULL, 0), SCHEDC_OK);
  schedc_source_free(source);
  for (size_t n = 0; n <= 2; n++) {
    assert_int_equal(schedc_draw_input(context, kernel, 1, dims, 1, given, n, &t, "normal", 7),
                     SCHEDC_OK);
    int beyond = 0;
    for (int i = 0; i < T; i++) {
      assert_in_range(v[i], n ? 100 : 0, n == 2 ? 102 : n ? 159 : 15);
      beyond |= v[i] > 115;
    }
    assert_int_equal(beyond, n == 1);
  }
  assert_int_equal(schedc_draw_input(context, kernel, 1, dims, 1, NULL, 1, &t, "normal", 7),
                   SCHEDC_EARG);
  schedc_kernel_free(kernel);
}

static void drawn_inputs(void **state) {
  (void)state;
  size_t kinds = 0;
  for (const char *kind; (kind = schedc_input_at(kinds)) != NULL; kinds++) {
    assert_true(strlen(schedc_input_summary(kind)) > 8);
    for (int i = 0; i < GAPS; i++) gaps[i] = -7;
    assert_int_equal(schedc_draw(&strided, kind, 5), SCHEDC_OK);
    assert_int_equal(schedc_draw(&packed, kind, 5), SCHEDC_OK);
    same_elements();
    float other = plain[PLAIN - 1];
    assert_int_equal(schedc_draw(&packed, kind, 6), SCHEDC_OK);
    assert_true(plain[PLAIN - 1] != other);
  }
  assert_true(kinds >= 8);
  assert_null(schedc_input_summary("nothing"));
  assert_null(schedc_input_summary(NULL));
  for (int i = 0; i < GAPS; i++) gaps[i] = -7;
  assert_int_equal(schedc_poison(&strided), SCHEDC_OK);
  assert_int_equal(schedc_poison(&packed), SCHEDC_OK);
  same_elements();
  assert_true(isnan(plain[0]) && isnan(plain[PLAIN - 1]));
  schedc_tensor wrong = packed;
  assert_int_equal(schedc_draw(&packed, "nothing", 0), SCHEDC_EARG);
  assert_int_equal(schedc_draw(NULL, "normal", 0), SCHEDC_EARG);
  wrong.data = (char *)packed.data + 1;
  assert_int_equal(schedc_draw(&wrong, "normal", 0), SCHEDC_EARG);
  assert_int_equal(schedc_poison(&wrong), SCHEDC_EARG);
  wrong.data = NULL;
  assert_int_equal(schedc_draw(&wrong, "normal", 0), SCHEDC_EARG);
  wrong.shape[1] = 0;  // no elements: nothing to do
  assert_int_equal(schedc_draw(&wrong, "normal", 0), SCHEDC_OK);
  wrong.shape[1] = -1;
  assert_int_equal(schedc_poison(&wrong), SCHEDC_EARG);
  wrong = packed;
  wrong.rank = SCHEDC_MAX_RANK + 1;
  assert_int_equal(schedc_poison(&wrong), SCHEDC_EARG);
}

// ---- .npy files

static int put(void *file, const char *bytes, size_t n) { return fwrite(bytes, 1, n, file) != n; }

static void write_npy(const char *name, const schedc_tensor *t) {
  FILE *f = fopen(path_of(name), "wb");
  assert_non_null(f);
  assert_int_equal(schedc_npy_write(t, put, f), SCHEDC_OK);
  assert_int_equal(fclose(f), 0);
}

static void write_text(const char *name, const char *header, const void *data, size_t n) {
  FILE *f = fopen(path_of(name), "wb");
  size_t length = strlen(header);
  const unsigned char size[] = {(unsigned char)(length & 255), (unsigned char)(length >> 8)};
  assert_non_null(f);
  fwrite("\x93NUMPY\x01\x00", 1, 8, f), fwrite(size, 1, 2, f);
  fwrite(header, 1, length, f), fwrite(data, 1, n, f);
  assert_int_equal(fclose(f), 0);
}

static void written_and_read(void **state) {
  static const struct {
    schedc_type type;
    char kind;
  } types[] = {{SCHEDC_F32, 'f'},  {SCHEDC_F16, 'f'},  {SCHEDC_BF16, 'u'},
               {SCHEDC_E4M3, 'u'}, {SCHEDC_E5M2, 'u'}, {SCHEDC_I32, 'i'}};
  (void)state;
  for (size_t i = 0; i < 6; i++) {
    schedc_tensor from = strided, to = packed;
    schedc_npy *npy;
    schedc_npy_info info = SCHEDC_NPY_INFO_INIT;
    unsigned char want[sizeof plain];
    size_t bytes = PLAIN * schedc_type_size(types[i].type);
    from.type = to.type = types[i].type;
    assert_int_equal(schedc_draw(&to, "normal", 9), SCHEDC_OK);
    assert_int_equal(schedc_draw(&from, "normal", 9), SCHEDC_OK);
    memcpy(want, plain, bytes);
    memset(plain, 0, sizeof plain);
    write_npy("x.npy", &from);
    assert_int_equal(schedc_npy_open(&npy, context, path_of("x.npy")), SCHEDC_OK);
    assert_int_equal(schedc_npy_get_info(npy, &info), SCHEDC_OK);
    assert_true(info.kind == types[i].kind && info.rank == 3 && info.shape[2] == 4);
    assert_int_equal(info.element_bytes, schedc_type_size(from.type));
    assert_int_equal(schedc_npy_read(context, npy, &to), SCHEDC_OK);
    assert_memory_equal(plain, want, bytes);
    to.rank = 2;
    assert_int_equal(schedc_npy_read(context, npy, &to), SCHEDC_EIO);
    assert_string_equal(code, "F.npy");
    assert_non_null(strstr(said, "shape (2, 3, 4), but 'X' is (2, 3)"));
    to = packed;
    to.type = from.type == SCHEDC_F32 ? SCHEDC_F16 : SCHEDC_F32;
    assert_int_equal(schedc_npy_read(context, npy, &to), SCHEDC_EIO);
    assert_non_null(strstr(said, "it holds "));
    schedc_npy_close(npy);
  }
  assert_int_equal(schedc_npy_write(&packed, NULL, NULL), SCHEDC_EARG);
  schedc_npy_close(NULL);
}

static schedc_status read_wide(const char *descr, const void *data, const schedc_tensor *to) {
  char header[128];
  schedc_npy *npy;
  snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (3,)}", descr);
  write_text("wide.npy", header, data, 24);
  assert_int_equal(schedc_npy_open(&npy, context, path_of("wide.npy")), SCHEDC_OK);
  schedc_status status = schedc_npy_read(context, npy, to);
  schedc_npy_close(npy);
  return status;
}

static void wider_elements(void **state) {
  (void)state;
  float f[5] = {9, 9, 9, 9, 9};
  int32_t n[3] = {0};
  const schedc_tensor reals = {NULL, f, SCHEDC_F32, 1, {3}, {2}};
  const schedc_tensor integers = {"n", n, SCHEDC_I32, 1, {3}, {1}};
  assert_int_equal(read_wide("<f8", (double[]){0.5, -3, 1e300}, &reals), SCHEDC_OK);
  assert_true(f[0] == 0.5f && f[1] == 9 && f[2] == -3 && f[3] == 9 && isinf(f[4]));
  assert_int_equal(read_wide("<i8", (int64_t[]){INT32_MIN, 7, INT32_MAX}, &integers), SCHEDC_OK);
  assert_true(n[0] == INT32_MIN && n[1] == 7 && n[2] == INT32_MAX);
  n[0] = 5;
  assert_int_equal(read_wide("<i8", (int64_t[]){1, 2, INT32_MAX + INT64_C(1)}, &integers),
                   SCHEDC_EIO);
  assert_non_null(strstr(said, "range of i32, which 'n' is"));
  assert_int_equal(n[0], 5);
  assert_int_equal(read_wide("<i8", (int64_t[]){1, 2, 3}, &reals), SCHEDC_EIO);
  assert_non_null(strstr(said, "it holds i8, but the tensor is f32"));
}

static void refused_npy(const char *name, const char *want, const char *word) {
  schedc_npy *npy = (schedc_npy *)folder;
  assert_int_equal(schedc_npy_open(&npy, context, path_of(name)), SCHEDC_EIO);
  assert_null(npy);
  assert_string_equal(code, want);
  assert_non_null(strstr(said, path_of(name)));
  if (!strstr(said, word)) fail_msg("'%s' lacks '%s'", said, word);
}

static void files_that_are_none(void **state) {
  (void)state;
  static char blanks[65535];
  refused_npy("none.npy", "F.read", "No such file");
  assert_int_equal(mkdir(path_of("folder"), 0700), 0);
  refused_npy("folder", "F.read", "directory");
  write_text("short.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", blanks, 11);
  refused_npy("short.npy", "F.npy", "less data");
  write_text("huge.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (999999999999,)}",
             blanks, 11);
  refused_npy("huge.npy", "F.npy", "less data");
  memset(blanks, ' ', sizeof blanks - 1);
  write_text("header.npy", blanks, "", 0);
  refused_npy("header.npy", "F.npy", "64 KiB");
  assert_int_equal(schedc_npy_open(NULL, context, "x"), SCHEDC_EARG);
}

// ---- schedules

static void schedules_from_files(void **state) {
  (void)state;
  schedc_source *source = (schedc_source *)folder;
  size_t n;
  assert_int_equal(schedc_parse_file(&source, context, path_of("none.sched")), SCHEDC_EIO);
  assert_null(source);
  assert_string_equal(code, "F.read");
  assert_int_equal(schedc_parse_file(&source, context, folder), SCHEDC_EIO);
  assert_non_null(strstr(said, "directory"));
  FILE *f = fopen(path_of("large.sched"), "wb");
  assert_non_null(f);
  assert_int_equal(ftruncate(fileno(f), (64 << 20) + 1), 0);
  fclose(f);
  assert_int_equal(schedc_parse_file(&source, context, path_of("large.sched")), SCHEDC_EIO);
  assert_non_null(strstr(said, "more than 64 MiB"));
  f = fopen(path_of("good.sched"), "wb");
  fwrite(good, 1, sizeof good - 1, f);
  fclose(f);
  assert_int_equal(schedc_parse_file(&source, context, path_of("good.sched")), SCHEDC_OK);
  assert_string_equal(schedc_source_text(source, &n), good);
  assert_int_equal(n, sizeof good - 1);
  schedc_source_free(source);
  assert_null(schedc_source_text(NULL, &n));
  assert_int_equal(schedc_parse_file(&source, context, NULL), SCHEDC_EARG);
}

// No regular file: as long as it goes on.
static void from_a_pipe(void **state) {
  (void)state;
  int ends[2];
  char path[32];
  schedc_source *source;
  size_t n;
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(write(ends[1], good, sizeof good - 1), sizeof good - 1);
  close(ends[1]);
  snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
  assert_int_equal(schedc_parse_file(&source, context, path), SCHEDC_OK);
  assert_string_equal(schedc_source_text(source, &n), good);
  schedc_source_free(source);
  close(ends[0]);
  assert_int_equal(schedc_parse_file(&source, context, "/dev/zero"), SCHEDC_EIO);
  assert_non_null(strstr(said, "more than 64 MiB"));
}

// ---- out of memory, with a file open

typedef struct Budget {
  long left, live;
} Budget;

static void *take(void *user, size_t bytes) {
  Budget *b = user;
  void *at = b->left-- > 0 ? malloc(bytes) : NULL;
  b->live += at != NULL;
  return at;
}

static void give(void *user, void *block) {
  ((Budget *)user)->live--;
  free(block);
}

static int next_descriptor(void) {
  int fd = dup(0);
  close(fd);
  return fd;
}

static schedc_status open_both(Budget *b) {
  schedc_allocator allocator = {take, give, b};
  schedc_options options = SCHEDC_OPTIONS_INIT;
  schedc_context *own = NULL;
  schedc_npy *npy = NULL;
  schedc_source *source = NULL;
  options.allocator = &allocator;
  schedc_status status = schedc_open(&own, &options);
  if (!status) status = schedc_npy_open(&npy, own, path_of("x.npy"));
  if (!status) status = schedc_npy_read(own, npy, &packed);
  if (!status) status = schedc_parse_file(&source, own, path_of("good.sched"));
  schedc_npy_close(npy);
  schedc_source_free(source);
  schedc_close(own);
  return status;
}

static void nothing_is_left_open(void **state) {
  (void)state;
  int first = next_descriptor();
  long needed = 0;
  FILE *f = fopen(path_of("good.sched"), "wb");
  fwrite(good, 1, sizeof good - 1, f);
  fclose(f);
  write_npy("x.npy", &packed);
  for (schedc_status status = SCHEDC_ENOMEM; status; needed++) {
    Budget b = {needed, 0};
    status = open_both(&b);
    assert_true(status == SCHEDC_OK || status == SCHEDC_ENOMEM);
    assert_int_equal(b.live, 0);
    assert_int_equal(next_descriptor(), first);
  }
  assert_true(needed > 6);
}

int main(void) {
#undef TEST
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
  const struct CMUnitTest tests[] = {
      TEST(conversions),          TEST(drawn_inputs),         TEST(drawn_lists),
      TEST(drawn_by_scalars),     TEST(written_and_read),     TEST(wider_elements),
      TEST(files_that_are_none),  TEST(schedules_from_files), TEST(from_a_pipe),
      TEST(nothing_is_left_open),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
