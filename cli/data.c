// data.c - the tensors and scalars of one run: dimensions out of a case, of .npy files and of
// --set; memory; inputs filled; outputs poisoned.
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

// ---- dimensions and scalars

// Where a dimension is among those that have values; in a kernel's order it is where it is looked
// for.
static size_t find_dim(const Data *d, const char *name, size_t where) {
  size_t n = d->dim_count, i = where, tried = 0;
  while (tried < n && strcmp(d->dims[i % n].name, name) != 0) i++, tried++;
  return tried < n ? i % n : n;
}

static void set_dim(Data *d, const char *name, int64_t value) {
  size_t i = find_dim(d, name, 0);
  d->dim_count += i == d->dim_count;
  d->dims[i] = (schedc_dim){name, value};
}

static void set_scalar(Data *d, const char *name, double value) {
  for (size_t i = 0; i < d->scalar_count; i++) {
    if (strcmp(d->scalars[i].name, name) == 0) {
      d->scalars[i].value = value;
      return;
    }
  }
  d->scalars[d->scalar_count++] = (schedc_scalar){name, value};
}

static bool is_dim(const schedc_kernel *k, const char *name) {
  for (size_t i = 0; i < schedc_dim_count(k); i++) {
    if (strcmp(schedc_dim_at(k, i), name) == 0) return true;
  }
  return false;
}

static bool is_scalar(const schedc_kernel *k, const char *name) {
  schedc_scalar_info info = SCHEDC_SCALAR_INFO_INIT;
  for (size_t i = 0; schedc_scalar_at(k, i, &info) == SCHEDC_OK; i++) {
    if (strcmp(info.name, name) == 0) return true;
  }
  return false;
}

static bool is_integer(const schedc_kernel *k, const char *name) {
  schedc_scalar_info info = SCHEDC_SCALAR_INFO_INIT;
  for (size_t i = 0; schedc_scalar_at(k, i, &info) == SCHEDC_OK; i++) {
    if (strcmp(info.name, name) == 0) return info.type == SCHEDC_I32;
  }
  return false;
}

static void take_case(Data *d, size_t kase, const size_t *choice) {
  schedc_bind_info b = SCHEDC_BIND_INFO_INIT;
  for (size_t i = 0; schedc_bind_at(d->kernel, kase, i, &b) == SCHEDC_OK; i++) {
    size_t which = choice ? choice[i] : 0;
    if (which >= b.count) continue;
    if (b.kind == SCHEDC_BIND_DIM) set_dim(d, b.name, (int64_t)b.values[which]);
    if (b.kind == SCHEDC_BIND_SCALAR) set_scalar(d, b.name, b.values[which]);
  }
}

// A tensor from a file says what its dimensions are.
static void take_file_shape(Data *d, size_t t) {
  schedc_npy_info npy = SCHEDC_NPY_INFO_INIT;
  schedc_tensor_info info = SCHEDC_TENSOR_INFO_INIT;
  schedc_npy_get_info(d->file[t], &npy);
  schedc_tensor_at(d->kernel, t, &info);
  for (size_t i = 0; i < info.rank && i < npy.rank; i++) {
    if (is_dim(d->kernel, info.dims[i])) set_dim(d, info.dims[i], npy.shape[i]);
  }
}

// `[0, 64, 200]`. False: this is no such list.
static bool read_list(struct List *list, const char *text) {
  bool more = *text++ == '[';
  list->n = 0;
  while (more) {
    char *end;
    double value = strtod(text, &end);
    if (end == text) return false;
    list->at = need(realloc(list->at, (list->n + 1) * sizeof *list->at));
    list->at[list->n++] = value;
    text = end + strspn(end, " ");
    more = *text++ == ',';
  }
  return list->n && text[-1] == ']' && !*text;
}

// The kernel has no `what` of that name: why, or what else may be meant.
static int no_such(const Data *d, const Args *args, const char *name, const char *what,
                   const char *hint) {
  const char *absent = schedc_why_absent(d->kernel, name);
  if (absent) return cli_usage(args, "%s", absent);
  return cli_usage(args, "'%s' is not a %s of '%s'%s", name, what, schedc_kernel_name(d->kernel),
                   hint);
}

static size_t find_tensor(const Data *d, const char *name) {
  size_t i = 0;
  while (i < d->tensor_count && strcmp(d->tensors[i].name, name) != 0) i++;
  return i;
}

static int take_list(Data *d, const Args *args, const schedc_param *p) {
  size_t t = find_tensor(d, p->name);
  if (!(d->direction[t] & SCHEDC_IN)) return cli_usage(args, "'%s' is not an input", p->name);
  if (!read_list(&d->list[t], p->value))
    return cli_usage(args, "--set %s wants a list of elements, such as [0, 64], not '%s'", p->name,
                     p->value);
  return EXIT_GOOD;
}

static int take_settings(Data *d, const Args *args, const Pairs *set) {
  for (size_t i = 0; i < set->n; i++) {
    const schedc_param *p = &set->at[i];
    char *end;
    if (is_dim(d->kernel, p->name)) {
      long long v = strtoll(p->value, &end, 10);
      if (!*p->value || *end || v < 0)
        return cli_usage(args, "--set %s wants a length, not '%s'", p->name, p->value);
      set_dim(d, p->name, v);
    } else if (is_scalar(d->kernel, p->name)) {
      double v = strtod(p->value, &end);
      if (!*p->value || *end)
        return cli_usage(args, "--set %s wants a number, not '%s'", p->name, p->value);
      set_scalar(d, p->name, v);
    } else if (find_tensor(d, p->name) < d->tensor_count) {
      int code = take_list(d, args, p);
      if (code) return code;
    } else {
      return no_such(d, args, p->name, "dimension, scalar or tensor",
                     " (parameters are set by -p)");
    }
  }
  return EXIT_GOOD;
}

// ---- .npy files

static int read_files(Data *d, Session *s) {
  const Args *args = s->args;
  for (size_t i = 0; i < args->in.n; i++) {
    const schedc_param *p = &args->in.at[i];
    size_t t = find_tensor(d, p->name);
    if (t == d->tensor_count) return no_such(d, args, p->name, "tensor", "");
    if (!(d->direction[t] & SCHEDC_IN)) return cli_usage(args, "'%s' is not an input", p->name);
    schedc_npy_close(d->file[t]);
    const char *path = strcmp(p->value, "-") == 0 ? "/dev/stdin" : p->value;
    int code = session_status(s, schedc_npy_open(&d->file[t], s->context, path));
    if (code) return code;
    take_file_shape(d, t);
  }
  return EXIT_GOOD;
}

int data_load(Data *d, Session *s) {
  int code = EXIT_GOOD;
  for (size_t t = 0; t < d->tensor_count && !code; t++)
    if (d->file[t])
      code = session_status(s, schedc_npy_read(s->context, d->file[t], &d->tensors[t]));
  return code;
}

int data_save(const Data *d, Session *s) {
  for (size_t i = 0; i < s->args->out.n; i++) {
    const schedc_param *p = &s->args->out.at[i];
    Buffer out = {0};
    schedc_npy_write(&d->tensors[find_tensor(d, p->name)], buffer_write, &out);
    bool standard = strcmp(p->value, "-") == 0;
    bool good =
        standard ? file_put(s->bytes, out.at, out.n) : file_replace(p->value, out.at, out.n);
    free(out.at);
    if (!good) return cli_unwritten(s->args, p->value);
  }
  return EXIT_GOOD;
}

static int check_out_names(const Data *d, const Args *args) {
  for (size_t i = 0; i < args->out.n; i++) {
    size_t t = find_tensor(d, args->out.at[i].name);
    if (t == d->tensor_count) return no_such(d, args, args->out.at[i].name, "tensor", "");
    if (!(d->direction[t] & SCHEDC_OUT))
      return cli_usage(args, "'%s' is not an output", args->out.at[i].name);
  }
  return EXIT_GOOD;
}

// ---- the whole

bool data_shape(const Data *d, schedc_context *context, size_t t, int64_t *shape) {
  schedc_dim *all = need(calloc(d->dim_count + d->scalar_count + 1, sizeof *all));
  size_t n = d->dim_count;
  if (n) memcpy(all, d->dims, n * sizeof *all);
  for (size_t i = 0; i < d->scalar_count; i++) {
    const schedc_scalar *s = &d->scalars[i];
    if (is_integer(d->kernel, s->name)) all[n++] = (schedc_dim){s->name, (int64_t)s->value};
  }
  bool known = schedc_tensor_shape(context, d->kernel, t, all, n, shape) == SCHEDC_OK;
  free(all);
  return known;
}

static int shape_tensor(Data *d, Session *s, size_t t) {
  schedc_tensor *x = &d->tensors[t];
  if (!data_shape(d, s->context, t, x->shape)) {
    return cli_usage(
        s->args, "the shape of '%s' is not known, or is negative: give --case or --set", x->name);
  }
  int64_t n = 1;
  for (size_t i = x->rank; i-- > 0;) {
    x->strides[i] = n;
    if (__builtin_mul_overflow(n, x->shape[i] ? x->shape[i] : 1, &n) || n > INT64_MAX / 8)
      return cli_usage(s->args, "the shape of '%s' is too large", x->name);
  }
  for (size_t i = 0; i < x->rank; i++) {
    if (x->shape[i] == 0) n = 0;
  }
  d->bytes[t] = (size_t)n * schedc_type_size(x->type);
  return EXIT_GOOD;
}

int data_dims(Data *d, Session *s, const schedc_kernel *kernel, size_t kase, const size_t *choice,
              const Pairs *set) {
  size_t tensors = schedc_tensor_count(kernel), dims = schedc_dim_count(kernel),
         scalars = schedc_scalar_count(kernel);
  *d = (Data){.kernel = kernel, .tensor_count = tensors};
  d->dims = need(calloc(dims + 1, sizeof *d->dims));
  d->scalars = need(calloc(scalars + 1, sizeof *d->scalars));
  d->tensors = need(calloc(tensors + 1, sizeof *d->tensors));
  d->direction = need(calloc(tensors + 1, sizeof *d->direction));
  d->original = need(calloc(tensors + 1, sizeof *d->original));
  d->bytes = need(calloc(tensors + 1, sizeof *d->bytes));
  d->file = need(calloc(tensors + 1, sizeof *d->file));
  d->list = need(calloc(tensors + 1, sizeof *d->list));
  for (size_t t = 0; t < tensors; t++) {
    schedc_tensor_info info = SCHEDC_TENSOR_INFO_INIT;
    schedc_tensor_at(kernel, t, &info);
    d->tensors[t] = (schedc_tensor){.name = info.name, .type = info.type, .rank = info.rank};
    d->direction[t] = info.direction;
  }
  take_case(d, kase, choice);
  int code = read_files(d, s);
  if (!code) code = take_settings(d, s->args, set);
  return code ? code : check_out_names(d, s->args);
}

static int no_value(Session *s, const schedc_kernel *kernel, size_t kase, const char *dim) {
  const char *in_use = schedc_kernel_case_name(kernel, kase);
  if (!in_use)
    return cli_usage(s->args,
                     "dimension '%s' has no value: name a case that gives one (--case), or give "
                     "it: --set %s=100",
                     dim, dim);
  return cli_usage(s->args,
                   "dimension '%s' has no value: the case '%s' of '%s' in %s gives none: add "
                   "'%s = 100' to it, or give it here: --set %s=100",
                   dim, in_use, schedc_kernel_name(kernel), s->args->operand[0], dim, dim);
}

int data_open(Data *d, Session *s, const schedc_kernel *kernel, size_t kase, const size_t *choice,
              const Pairs *set) {
  int code = data_dims(d, s, kernel, kase, choice, set);
  for (size_t i = 0; !code && i < schedc_dim_count(kernel); i++) {
    const char *dim = schedc_dim_at(kernel, i);
    if (find_dim(d, dim, i) == d->dim_count) code = no_value(s, kernel, kase, dim);
  }
  for (size_t t = 0; !code && t < d->tensor_count; t++) code = shape_tensor(d, s, t);
  return code;
}

uint64_t data_elements(const Data *d) {
  uint64_t n = 0;
  for (size_t t = 0; t < d->tensor_count; t++)
    n += d->bytes[t] / schedc_type_size(d->tensors[t].type);
  return n;
}

// Memory, or NULL; aligned as the caller of a kernel would align it.
static void *tensor_memory(size_t bytes) {
  if (bytes > SIZE_MAX / 2) return NULL;
  return aligned_alloc(ALIGNMENT, (bytes / ALIGNMENT + 1) * ALIGNMENT);
}

int data_allocate(Data *d, Session *s) {
  for (size_t t = 0; t < d->tensor_count; t++) {
    schedc_tensor *x = &d->tensors[t];
    bool both = d->direction[t] == SCHEDC_INOUT;
    x->data = tensor_memory(d->bytes[t]);
    d->original[t] = x->data && both ? tensor_memory(d->bytes[t]) : NULL;
    if (!x->data || (both && !d->original[t]))
      return cli_fail(s->args, "no memory for tensor '%s'", x->name);
  }
  return EXIT_GOOD;
}

// `cu = [0, 64, 200]`: the elements of a tensor, in order; further ones are like the last.
static void fill_list(const Data *d, size_t t, const double *values, size_t count) {
  const schedc_tensor *x = &d->tensors[t];
  size_t bytes = schedc_type_size(x->type), n = d->bytes[t] / bytes;
  for (size_t e = 0; e < n && count; e++)
    schedc_from_f64(x->type, (char *)x->data + e * bytes, &values[e < count ? e : count - 1], 1);
}

// What --set gives goes over what the case says. `files`: and so does what a file gives.
static void fill_lists(Data *d, size_t kase, bool files) {
  schedc_bind_info b = SCHEDC_BIND_INFO_INIT;
  for (size_t i = 0; schedc_bind_at(d->kernel, kase, i, &b) == SCHEDC_OK; i++) {
    size_t t = b.kind == SCHEDC_BIND_TENSOR ? find_tensor(d, b.name) : d->tensor_count;
    if (t < d->tensor_count && !(files && d->file[t])) fill_list(d, t, b.values, b.count);
  }
  for (size_t t = 0; t < d->tensor_count; t++) fill_list(d, t, d->list[t].at, d->list[t].n);
}

void data_fill(Data *d, const Session *s, size_t kase, InputKind kind, uint64_t seed) {
  for (size_t t = 0; t < d->tensor_count; t++) {
    if (!(d->direction[t] & SCHEDC_IN) || d->file[t]) continue;
    schedc_draw_input(s->context, d->kernel, t, d->dims, d->dim_count, d->scalars, d->scalar_count,
                      &d->tensors[t], schedc_input_at(kind), seed * 1000 + t);
  }
  fill_lists(d, kase, true);
  for (size_t t = 0; t < d->tensor_count; t++)
    if (d->original[t] && d->bytes[t]) memcpy(d->original[t], d->tensors[t].data, d->bytes[t]);
  data_rewind(d);
}

void data_list(Data *d, size_t kase) { fill_lists(d, kase, true); }

void data_sketch(Data *d, size_t kase) {
  for (size_t t = 0; t < d->tensor_count; t++)
    d->tensors[t].data = need(calloc(1, d->bytes[t] + 1));
  fill_lists(d, kase, false);
}

// By a file, --set or the case.
static bool is_brought(const Data *d, size_t kase, size_t t) {
  const char *name = d->tensors[t].name;
  schedc_bind_info b = SCHEDC_BIND_INFO_INIT;
  if (d->file[t] || d->list[t].n) return true;
  for (size_t i = 0; schedc_bind_at(d->kernel, kase, i, &b) == SCHEDC_OK; i++) {
    if (b.kind == SCHEDC_BIND_TENSOR && strcmp(b.name, name) == 0) return true;
  }
  return false;
}

schedc_gpu_job data_job(const Data *d) {
  schedc_gpu_job job = SCHEDC_GPU_JOB_INIT;
  job.kernel = d->kernel;
  job.tensors = d->tensors;
  job.tensor_count = d->tensor_count;
  job.scalars = d->scalars;
  job.scalar_count = d->scalar_count;
  return job;
}

static schedc_status run_given(Data *d, Session *s, schedc_kernel *given, schedc_tensor *tensors,
                               schedc_gpu *gpu) {
  schedc_run_options running = SCHEDC_RUN_OPTIONS_INIT;
  running.threads = s->args->threads;
  running.sms = s->args->sms;
  if (!gpu)
    return schedc_run_cpu(s->context, given, tensors, d->tensor_count, d->scalars, d->scalar_count,
                          &running);
  schedc_gpu_job job = data_job(d);
  schedc_gpu_options options = SCHEDC_GPU_OPTIONS_INIT;
  schedc_build_options building = build_options(s->args);
  options.build = &building;
  job.kernel = given;
  job.tensors = tensors;
  return schedc_gpu_run(gpu, &job, 1, &options);
}

// What is brought is kept: what would be made in its place goes elsewhere.
schedc_status data_give(Data *d, Session *s, size_t kase, schedc_gpu *gpu) {
  schedc_kernel *given;
  schedc_status status = schedc_given(&given, s->context, d->kernel);
  if (status) return status == SCHEDC_EARG ? SCHEDC_OK : status;
  schedc_tensor *tensors = need(calloc(d->tensor_count + 1, sizeof *tensors));
  memcpy(tensors, d->tensors, d->tensor_count * sizeof *tensors);
  for (size_t t = 0; t < d->tensor_count; t++) {
    if (!is_brought(d, kase, t)) continue;
    tensors[t].data = need(tensor_memory(d->bytes[t]));
    memcpy(tensors[t].data, d->tensors[t].data, d->bytes[t]);
  }
  status = run_given(d, s, given, tensors, gpu);
  for (size_t t = 0; t < d->tensor_count; t++)
    if (tensors[t].data != d->tensors[t].data) free(tensors[t].data);
  free(tensors);
  schedc_kernel_free(given);
  return status;
}

void data_rewind(Data *d) {
  for (size_t t = 0; t < d->tensor_count; t++) {
    const schedc_tensor *x = &d->tensors[t];
    if (d->original[t]) memcpy(x->data, d->original[t], d->bytes[t]);
    else if (d->direction[t] == SCHEDC_OUT) schedc_poison(x);
  }
}

// Large specifications are sampled: by --sample, or such that it takes a few seconds.
schedc_status data_compare(const Data *d, const Session *s, schedc_error *errors) {
  enum { SOME_SECONDS = 10000 };  // million operations
  schedc_tensor *before = need(calloc(d->tensor_count + 1, sizeof *before));
  schedc_compare_options options = SCHEDC_COMPARE_OPTIONS_INIT;
  for (size_t t = 0; t < d->tensor_count; t++) {
    if (!d->original[t]) continue;
    before[options.before_count] = d->tensors[t];
    before[options.before_count++].data = d->original[t];
  }
  options.before = before;
  options.threads = s->args->threads;
  if (s->args->sample_given) options.places = s->args->sample;
  else options.operations = SOME_SECONDS * UINT64_C(1000000);
  schedc_status status = schedc_compare(s->context, d->kernel, d->tensors, d->tensor_count,
                                        d->scalars, d->scalar_count, &options, errors);
  free(before);
  return status;
}

void data_close(Data *d) {
  for (size_t t = 0; t < d->tensor_count; t++) {
    if (d->tensors) free(d->tensors[t].data);
    if (d->original) free(d->original[t]);
    if (d->file) schedc_npy_close(d->file[t]);
    if (d->list) free(d->list[t].at);
  }
  free(d->dims);
  free(d->scalars);
  free(d->tensors);
  free(d->direction);
  free(d->original);
  free(d->bytes);
  free(d->file);
  free(d->list);
}
