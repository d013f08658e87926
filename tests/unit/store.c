// store.c - stores of measured points: what is appended is read back and found by the rule; files
// that are none are refused with their line; kernels take the params of the record that fits.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "apikit.h"
#include "files.h"

typedef struct Said {
  unsigned errors, warnings, line;
  char text[256];
} Said;

static void listen(void *user, const schedc_diagnostic *d) {
  Said *said = user;
  *(d->severity == SCHEDC_ERROR ? &said->errors : &said->warnings) += 1;
  said->line = d->where.line;
  assert_string_equal(d->code, "F.store");
  snprintf(said->text, sizeof said->text, "%s", d->text);
}

typedef struct Bench {
  Said said;
  schedc_context *context;
  char path[64];
} Bench;

static int open_bench(void **state) {
  static Bench b;
  memset(&b, 0, sizeof b);
  schedc_options options = SCHEDC_OPTIONS_INIT;
  options.sink = listen;
  options.sink_user = &b.said;
  strcpy(b.path, "/tmp/schedc-store-XXXXXX");
  int fd = mkstemp(b.path);
  assert_true(fd >= 0);
  close(fd);
  assert_int_equal(schedc_open(&b.context, &options), SCHEDC_OK);
  *state = &b;
  return 0;
}

static int close_bench(void **state) {
  Bench *b = *state;
  schedc_close(b->context);
  unlink(b->path);
  return 0;
}
#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, open_bench, close_bench)

static const schedc_param problem[] = {{"D", "128"}, {"T", "f16"}};
static const schedc_param swapped[] = {{"T", "f16"}, {"D", "128"}};
static const schedc_param tuning[] = {{"BM", "128"}};

static schedc_store_record record_of(const schedc_dim *dims, size_t n) {
  schedc_store_record r = SCHEDC_STORE_RECORD_INIT;
  r.schedule = "0123456789abcdef0123456789abcdef";
  r.unit = "k\"\xc3\xa9";
  r.problem = problem, r.problem_count = 2;
  r.dims = dims, r.dim_count = n;
  r.gpu = "NVIDIA H200";
  r.driver = 13000, r.nvrtc = 12090;
  r.schedc = "0.2.0";
  r.tuning = tuning, r.tuning_count = 1;
  r.status = "verified", r.inputs = "normal,outliers";
  r.cold_ms = 0.1, r.sustained_ms = 0.125, r.noise = 0.01, r.reference_ms = 0.2;
  r.launches = 360, r.rank = 1;
  r.date = "2026-11-23T10:00:00Z";
  return r;
}

static schedc_store *open_store(Bench *b) {
  schedc_store *store = NULL;
  assert_int_equal(schedc_store_open(&store, b->context, b->path), SCHEDC_OK);
  return store;
}

static void append(Bench *b, schedc_store *store, const schedc_store_record *r) {
  assert_int_equal(schedc_store_append(b->context, store, r), SCHEDC_OK);
}

static void write_file(const char *path, const char *text) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
}

static const schedc_dim shape[] = {{"M", 8448}, {"N", 0}};

static void a_record_comes_back(void **state) {
  Bench *b = *state;
  unlink(b->path);  // a store that is not there is empty
  schedc_store *store = open_store(b);
  assert_int_equal(schedc_store_count(store), 0);
  schedc_store_record in = record_of(shape, 2), out = SCHEDC_STORE_RECORD_INIT;
  append(b, store, &in);
  assert_int_equal(schedc_store_count(store), 1);
  schedc_store_close(store);
  size_t n;
  char *text = read_file(b->path, &n);
  assert_non_null(strstr(text, "\"dims\":{\"M\":8448,\"N\":0},\"bucket\":{\"M\":8192,\"N\":0}"));
  free(text);
  store = open_store(b);
  assert_int_equal(schedc_store_at(store, 0, &out), SCHEDC_OK);
  assert_int_equal(schedc_store_at(store, 1, &out), SCHEDC_EARG);
  assert_string_equal(out.unit, in.unit);
  assert_string_equal(out.problem[1].value, "f16");
  assert_int_equal(out.dims[0].value, 8448);
  assert_int_equal(out.driver, 13000);
  assert_true(out.cold_ms == 0.1 && out.launches == 360 && out.rank == 1);
  assert_string_equal(out.tuning[0].name, "BM");
  schedc_store_close(store);
}

// Found at these lengths: the date of the record, or "" for none.
static const char *found(const schedc_store *store, schedc_store_record key, int64_t m) {
  static char date[32];
  schedc_dim dims[] = {{"M", m}};
  schedc_store_record out = SCHEDC_STORE_RECORD_INIT;
  key.dims = dims;
  *date = 0;
  if (!schedc_store_find(store, &key, &out)) snprintf(date, sizeof date, "%s", out.date);
  return date;
}

static void add(Bench *b, schedc_store *store, int64_t m, unsigned rank, const char *date,
                const char *status) {
  schedc_dim dims[] = {{"M", m}};
  schedc_store_record r = record_of(dims, 1);
  r.rank = rank, r.date = date, r.status = status;
  append(b, store, &r);
}

static void the_best_is_found(void **state) {
  Bench *b = *state;
  schedc_store *store = open_store(b);
  add(b, store, 1024, 1, "a", "verified");
  add(b, store, 1024, 1, "c", "verified");
  add(b, store, 1024, 1, "b", "verified");
  add(b, store, 1024, 2, "d", "verified");
  add(b, store, 1024, 0, "e", "R8.smem");
  add(b, store, 1000, 9, "f", "verified");
  add(b, store, 4096, 1, "g", "verified");
  schedc_store_record key = record_of(NULL, 1);
  key.tuning_count = 0;
  key.problem = swapped;
  assert_string_equal(found(store, key, 1024), "c");  // the newest of the lowest rank
  assert_string_equal(found(store, key, 1000), "f");  // the same dimensions
  assert_string_equal(found(store, key, 1023), "c");
  assert_string_equal(found(store, key, 1448), "c");  // its bucket is 1024,
  assert_string_equal(found(store, key, 1449), "g");  // … 2048: one doubling from both, so newest
  assert_string_equal(found(store, key, 2897), "g");  // … 4096
  assert_string_equal(found(store, key, 32768), "g");
  assert_string_equal(found(store, key, 65536), "");
  key.gpu = "another";
  assert_string_equal(found(store, key, 1024), "");
  key.gpu = NULL;
  assert_string_equal(found(store, key, 1024), "c");
  key.schedule = "another";
  assert_string_equal(found(store, key, 1024), "");
  key = record_of(NULL, 1);
  key.problem_count = 1;
  assert_string_equal(found(store, key, 1024), "");
  schedc_store_close(store);
}

static void refused(Bench *b, const char *text, unsigned line, const char *said) {
  schedc_store *store;
  b->said = (Said){0};
  write_file(b->path, text);
  assert_int_equal(schedc_store_open(&store, b->context, b->path), SCHEDC_EINPUT);
  assert_null(store);
  assert_int_equal(b->said.errors, 1);
  assert_int_equal(b->said.line, line);
  if (!strstr(b->said.text, said)) fail_msg("%s", b->said.text);
}

static void what_is_no_store_is_refused(void **state) {
  Bench *b = *state;
  schedc_store *store = open_store(b);
  schedc_store_record r = record_of(shape, 2);
  append(b, store, &r);
  schedc_store_close(store);
  size_t n;
  char *good_line = read_file(b->path, &n), two[4096];
  refused(b, "kernel k { }\n", 1, "no value of JSON");
  refused(b, "{\"a\":1}\n", 1, "no store");
  refused(b, "{\"store\":2}\n", 1, "another version");
  refused(b, "{\"store\":1}\n", 1, "lacks 'schedule'");
  snprintf(two, sizeof two, "%s\n%.*s}\n", good_line, (int)strlen("{\"store\":1"), good_line);
  refused(b, two, 3, "lacks 'schedule'");
  snprintf(two, sizeof two, "%s", good_line);
  memcpy(strstr(two, "\"rank\":1") + 7, "-", 1);
  refused(b, two, 1, "digit");
  snprintf(two, sizeof two, "%s", good_line);
  memcpy(strstr(two, "\"launches\":360") + 11, "3.5", 3);
  refused(b, two, 1, "'launches' is a whole number");
  free(good_line);
}

// A writer was stopped in the middle: the next one begins a new line.
static void a_torn_line_is_passed_by(void **state) {
  Bench *b = *state;
  schedc_store_record r = record_of(shape, 2);
  write_file(b->path, "{\"store\":1,\"sch");
  schedc_store *store = open_store(b);
  assert_int_equal(b->said.warnings, 1);
  append(b, store, &r);
  schedc_store_close(store);
  b->said = (Said){0};
  store = open_store(b);
  assert_int_equal(b->said.warnings, 1);
  assert_int_equal(b->said.errors, 0);
  assert_int_equal(schedc_store_count(store), 1);
  schedc_store_close(store);
}

static void records_must_be_whole(void **state) {
  Bench *b = *state;
  static const schedc_dim twice[] = {{"M", 1}, {"M", 2}};
  schedc_store *store = open_store(b);
  schedc_store_record r = record_of(shape, 2);
  r.date = NULL;
  assert_int_equal(schedc_store_append(b->context, store, &r), SCHEDC_EARG);
  r = record_of(twice, 2);
  assert_int_equal(schedc_store_append(b->context, store, &r), SCHEDC_EARG);
  r = record_of(shape, 2);
  r.noise = -1;
  assert_int_equal(schedc_store_append(b->context, store, &r), SCHEDC_EARG);
  schedc_store_close(store);
}

// ---- schedules

static void hash_of(Bench *b, const char *text, char hash[33]) {
  schedc_source *source;
  const char *name;
  assert_int_equal(schedc_parse(&source, b->context, "t.sched", text, strlen(text)), SCHEDC_OK);
  assert_int_equal(schedc_store_schedule(b->context, source, "s", hash, &name), SCHEDC_OK);
  assert_string_equal(name, "s");
  schedc_source_free(source);
}

static void a_schedule_is_known_by_its_tree(void **state) {
  static const char k[] =
      "kernel k {\n  param A = %s\n  in X : f32[M, 64]\n%s\n  grid (x : M)\n}\n";
  static const char s[] = "sequence s {\n  k\n  k\n}\nkernel other { in Y : f32[%s] }\n";
  static const struct {
    const char *a, *more, *other;
    bool same;
  } variant[] = {{"1", "  // a comment", "N", true},
                 {"1", "  case c { M = 3 }", "N", true},
                 {"1", "", "M", true},
                 {"1.5", "", "N", false},
                 {"1", "  require M > 1", "N", false}};
  char text[1024], first[33], hash[33];
  for (size_t i = 0; i <= 5; i++) {
    int n =
        snprintf(text, sizeof text, k, i ? variant[i - 1].a : "1", i ? variant[i - 1].more : "");
    snprintf(text + n, sizeof text - (size_t)n, s, i ? variant[i - 1].other : "N");
    hash_of(*state, text, i ? hash : first);
    if (i && (strcmp(hash, first) == 0) != variant[i - 1].same) fail_msg("variant %zu", i);
  }
  assert_int_equal(strlen(first), 32);
}

// ---- kernels

static const char *block(Bench *b, const schedc_source *source, const schedc_param *params,
                         size_t n, const schedc_store *store, const char *gpu, bool *tuned) {
  static char value[16];
  static const schedc_dim dims[] = {{"M", 1000}};
  schedc_kernel *kernel;
  schedc_param_info info = SCHEDC_PARAM_INFO_INIT;
  schedc_store_record used = SCHEDC_STORE_RECORD_INIT;
  assert_int_equal(schedc_instantiate_tuned(&kernel, b->context, source, NULL, "small", params, n,
                                            dims, 1, store, gpu, &used),
                   SCHEDC_OK);
  assert_int_equal(schedc_param_at(kernel, 0, &info), SCHEDC_OK);
  snprintf(value, sizeof value, "%s", info.value);
  *tuned = used.schedule != NULL;
  schedc_kernel_free(kernel);
  return value;
}

static void kernels_take_the_best_params(void **state) {
  Bench *b = *state;
  static const schedc_dim dims[] = {{"M", 1024}};
  static const schedc_param small = {"BM", "64"};
  char hash[33];
  bool tuned;
  schedc_source *source;
  schedc_store *store = open_store(b);
  schedc_store_record r = record_of(dims, 1);
  schedc_parse(&source, b->context, "t.sched", good, strlen(good));
  schedc_store_schedule(b->context, source, NULL, hash, &r.unit);
  r.schedule = hash;
  r.problem_count = 0;
  append(b, store, &r);
  assert_string_equal(block(b, source, NULL, 0, store, "NVIDIA H200", &tuned), "128");
  assert_true(tuned);
  assert_string_equal(block(b, source, NULL, 0, store, "another", &tuned), "64");
  assert_false(tuned);
  assert_string_equal(block(b, source, NULL, 0, NULL, NULL, &tuned), "64");
  assert_false(tuned);
  assert_string_equal(block(b, source, &small, 1, store, NULL, &tuned), "64");
  assert_false(tuned);
  assert_string_equal(block(b, source, tuning, 1, store, NULL, &tuned), "128");
  assert_true(tuned);
  schedc_store_close(store);
  schedc_source_free(source);
}

static void add_block(Bench *b, schedc_store *store, schedc_store_record r, int64_t m,
                      const char *block, unsigned rank, const char *date) {
  const schedc_dim dims[] = {{"M", m}};
  const schedc_param bm = {"BM", block};
  r.dims = dims, r.tuning = &bm, r.rank = rank, r.date = date;
  append(b, store, &r);
}

// The kernel without a store, and of each shape the one that is found there, rather first.
static void variants_are_those_that_are_found(void **state) {
  Bench *b = *state;
  static const char *const dates[] = {NULL, "d", "b", "a", "a"};
  char hash[33];
  schedc_source *source;
  schedc_variants *v;
  schedc_variant_info info[6];
  schedc_store *store = open_store(b);
  schedc_store_record r = record_of(NULL, 1);
  schedc_parse(&source, b->context, "t.sched", good, strlen(good));
  schedc_store_schedule(b->context, source, NULL, hash, &r.unit);
  r.schedule = hash;
  r.problem_count = 0;
  add_block(b, store, r, 4096, "128", 2, "a");
  add_block(b, store, r, 65536, "64", 2, "a");
  add_block(b, store, r, 1024, "64", 1, "b");
  add_block(b, store, r, 1024, "128", 2, "c");  // never the best
  add_block(b, store, r, 16384, "128", 1, "d");
  r.status = "R8.smem";
  add_block(b, store, r, 100, "128", 1, "e");
  schedc_store_close(store);
  store = open_store(b);
  assert_int_equal(schedc_variants_new(&v, b->context, source, NULL, "small", NULL, 0, store, NULL),
                   SCHEDC_OK);
  assert_int_equal(schedc_variant_count(v), 5);
  for (size_t i = 0; i < 5; i++) {
    info[i] = (schedc_variant_info)SCHEDC_VARIANT_INFO_INIT;
    assert_int_equal(schedc_variant_at(v, i, &info[i]), SCHEDC_OK);
    if (i) assert_string_equal(info[i].record->date, dates[i]);
  }
  assert_null(info[0].record->schedule);
  assert_int_equal(info[2].record->line, 3);
  assert_int_equal(info[3].record->line, 2);  // of equal ones, the last line
  assert_ptr_equal(info[1].kernel, info[4].kernel);
  assert_ptr_equal(info[0].kernel, info[2].kernel);
  assert_ptr_not_equal(info[0].kernel, info[1].kernel);
  assert_int_equal(schedc_variant_at(v, 5, &info[0]), SCHEDC_EARG);
  schedc_variants_free(v);
  schedc_store_close(store);
  schedc_source_free(source);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      STORE_TEST(a_record_comes_back),          STORE_TEST(the_best_is_found),
      STORE_TEST(what_is_no_store_is_refused),  STORE_TEST(a_torn_line_is_passed_by),
      STORE_TEST(records_must_be_whole),        STORE_TEST(a_schedule_is_known_by_its_tree),
      STORE_TEST(kernels_take_the_best_params), STORE_TEST(variants_are_those_that_are_found)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
