// oom.c - out of memory at every allocation in turn: parse, format, print the IR, instantiate,
// describe, build, run, compare, read, extend and use a store with an allocator whose n-th request
// fails, n = 0, 1, 2, until all goes through. Each time: SCHEDC_ENOMEM, nothing leaked, no crash.
//
//   oom FILE.sched …
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schedc.h"

typedef struct Budget {
  long left, live, failed;
} Budget;

static void *take(void *user, size_t bytes) {
  Budget *b = user;
  void *at = b->left-- > 0 ? malloc(bytes) : NULL;
  b->live += at != NULL;
  b->failed += at == NULL;
  return at;
}

static void give(void *user, void *block) {
  Budget *b = user;
  b->live -= block != NULL;
  free(block);
}

static int drop(void *user, const char *bytes, size_t n) {
  (void)user;
  (void)bytes;
  (void)n;
  return 0;
}

static void ignore(void *user, const schedc_diagnostic *d) {
  (void)user;
  (void)d;
}

// Tensors of 8 in every dimension.
static schedc_status run(schedc_context *context, const schedc_kernel *kernel) {
  schedc_tensor tensor[16];
  schedc_dim dim[16];
  schedc_error error[16];
  size_t tensors = schedc_tensor_count(kernel), dims = schedc_dim_count(kernel);
  schedc_status status = SCHEDC_OK;
  memset(tensor, 0, sizeof tensor);
  memset(error, 0, sizeof error);
  error[0].size = sizeof *error;
  if (tensors > 16 || dims > 16) return SCHEDC_EARG;
  for (size_t i = 0; i < dims; i++) dim[i] = (schedc_dim){schedc_dim_at(kernel, i), 8};
  for (size_t i = 0; i < tensors && !status; i++) {
    schedc_tensor_info info = SCHEDC_TENSOR_INFO_INIT;
    schedc_tensor_at(kernel, i, &info);
    tensor[i] = (schedc_tensor){.name = info.name, .type = info.type, .rank = info.rank};
    status = schedc_tensor_shape(context, kernel, i, dim, dims, tensor[i].shape);
    int64_t n = 1;
    for (size_t d = info.rank; d-- > 0 && !status;) {
      tensor[i].strides[d] = n;
      n *= tensor[i].shape[d];
    }
    tensor[i].data = calloc((size_t)n + 1, schedc_type_size(info.type));
  }
  schedc_run_options options = SCHEDC_RUN_OPTIONS_INIT;
  options.threads = 1;
  if (!status) status = schedc_run_cpu(context, kernel, tensor, tensors, NULL, 0, &options);
  if (!status) status = schedc_compare(context, kernel, tensor, tensors, NULL, 0, NULL, error);
  schedc_prediction said = SCHEDC_PREDICTION_INIT;
  if (!status) status = schedc_predict(context, kernel, tensor, tensors, NULL, 0, NULL, &said);
  for (size_t i = 0; i < tensors; i++) free(tensor[i].data);
  return status;
}

// A header, whose machine code comes from the cache after the first time. No NVRTC is no fault
// here.
static schedc_status build(schedc_context *context, const schedc_kernel *kernel) {
  schedc_status status = schedc_build(context, kernel, SCHEDC_CUDA_C, NULL, drop, NULL, NULL);
  if (!status) status = schedc_build(context, kernel, SCHEDC_C_HEADER, NULL, drop, NULL, NULL);
  return status == SCHEDC_EUNAVAIL ? SCHEDC_OK : status;
}

// The first points of the space of the file's params.
static schedc_status look_at_points(schedc_context *context, const schedc_source *source) {
  schedc_space *space;
  schedc_cursor cursor = SCHEDC_CURSOR_INIT;
  schedc_point point = SCHEDC_POINT_INIT;
  schedc_probe probe = SCHEDC_PROBE_INIT;
  schedc_status status = schedc_space_new(&space, context, source, NULL, NULL, NULL, 0);
  for (int i = 0; i < 3 && !status; i++) {
    status = schedc_space_next(space, context, &cursor, &point);
    if (status == SCHEDC_EARG) break;
    if (!status) status = schedc_space_probe(space, context, &point, &probe);
  }
  schedc_space_free(space);
  return status == SCHEDC_EARG ? SCHEDC_OK : status;
}

// The store of a file: a record of its schedule.
static schedc_status keep(schedc_context *context, const schedc_source *source,
                          schedc_store *store) {
  static const schedc_param problem[] = {{"T", "f16"}}, tuning[] = {{"BM", "64"}};
  static const schedc_dim dims[] = {{"M", 8}, {"N", 8}};
  schedc_store_record r = SCHEDC_STORE_RECORD_INIT;
  char hash[33];
  schedc_status status = schedc_store_schedule(context, source, NULL, hash, &r.unit);
  r.schedule = hash;
  r.problem = problem, r.problem_count = 1;
  r.tuning = tuning, r.tuning_count = 1;
  r.dims = dims, r.dim_count = 2;
  r.gpu = "a GPU", r.schedc = "0.2.0", r.status = "verified", r.inputs = r.date = "";
  return status ? status : schedc_store_append(context, store, &r);
}

// Opens a store, extends it, opens it again, and asks it for the file's params.
static schedc_status use_store(schedc_context *context, const schedc_source *source,
                               const char *path) {
  static const schedc_dim dims[] = {{"M", 8}, {"N", 8}};
  schedc_store *store = NULL, *again = NULL;
  schedc_kernel *kernel = NULL;
  schedc_variants *variants = NULL;
  unlink(path);
  schedc_status status = schedc_store_open(&store, context, path);
  if (!status) status = keep(context, source, store);
  if (!status) status = schedc_store_open(&again, context, path);
  if (!status)
    status = schedc_instantiate_tuned(&kernel, context, source, NULL, NULL, NULL, 0, dims, 2, again,
                                      NULL, NULL);
  if (!status)
    status = schedc_variants_new(&variants, context, source, NULL, NULL, NULL, 0, again, NULL);
  schedc_variants_free(variants);
  schedc_kernel_free(kernel);
  schedc_store_close(again);
  schedc_store_close(store);
  return status;
}

static schedc_status whole(Budget *budget, const char *path, const char *store) {
  schedc_allocator allocator = {take, give, budget};
  schedc_options options = SCHEDC_OPTIONS_INIT;
  schedc_context *context = NULL;
  schedc_source *source = NULL;
  schedc_kernel *kernel = NULL;
  options.allocator = &allocator;
  options.sink = ignore;
  schedc_status status = schedc_open(&context, &options);
  if (!status) status = schedc_parse_file(&source, context, path);
  if (!status) status = schedc_format(context, source, drop, NULL);
  if (!status) status = schedc_emit(context, source, NULL, NULL, NULL, 0, "derive", drop, NULL);
  if (!status) status = look_at_points(context, source);
  if (!status) status = use_store(context, source, store);
  if (!status) status = schedc_instantiate(&kernel, context, source, NULL, NULL, NULL, 0);
  if (!status) status = schedc_describe(context, kernel, NULL, 0, SCHEDC_TEXT, drop, NULL);
  if (!status) status = build(context, kernel);
  if (!status) status = run(context, kernel);
  schedc_kernel_free(kernel);
  schedc_source_free(source);
  schedc_close(context);
  return status;
}

// Returns how many tests passed, or -1 after a message.
static long test_file(const char *path, const char *store) {
  Budget first = {1L << 40, 0, 0}, all = first;
  whole(&first, path, store);  // fills the cache
  schedc_status honest = whole(&all, path, store);
  long needed = (1L << 40) - all.left, step = needed / 3000 + 1, passed = 0;
  if (honest != SCHEDC_OK && honest != SCHEDC_EINPUT) {
    return fprintf(stderr, "%s: %s without a fault\n", path, schedc_status_name(honest)), -1;
  }
  for (long k = 0; k < needed; k += k < 1000 ? 1 : step, passed++) {
    Budget budget = {k, 0, 0};
    schedc_status status = whole(&budget, path, store);
    if (budget.live != 0)
      return fprintf(stderr, "%s: %ld blocks leak when request %ld fails\n", path, budget.live, k),
             -1;
    if (status != SCHEDC_ENOMEM) {
      return fprintf(stderr, "%s: %s when request %ld of %ld fails\n", path,
                     schedc_status_name(status), k, needed),
             -1;
    }
  }
  printf("%s: %ld requests, %ld made to fail\n", path, needed, passed);
  return passed;
}

int main(int argc, char **argv) {
  long passed = 0, failed = 0;
  char cache[] = "/tmp/schedc-oom-XXXXXX", store[40], command[64];
  if (!mkdtemp(cache) || setenv("SCHEDC_CACHE", cache, 1)) return 3;
  snprintf(store, sizeof store, "%s/store.jsonl", cache);
  for (int i = 1; i < argc; i++) {
    long n = test_file(argv[i], store);
    if (n < 0) failed++;
    else passed += n;
  }
  snprintf(command, sizeof command, "rm -rf '%s'", cache);
  if (system(command)) return 3;
  printf("%ld passed, %ld failed, 0 skipped\n", passed, failed);
  return failed != 0;
}
