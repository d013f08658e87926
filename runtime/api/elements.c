// elements.c - elements of tensors in host memory for callers: conversions between f32 or f64 and
// the element types, drawn inputs, poison. In: the caller's arrays and tensors. What is wrong is
// the call itself: nothing is reported. Only the inputs of a kernel need a context, for memory.
#include "runtime/api/api.h"

static bool is_type(schedc_type type) { return (u32)type < EL_COUNT; }

schedc_status schedc_from_f32(schedc_type type, void *to, const float *from, size_t n) {
  if (!is_type(type) || (n && (!to || !from))) return SCHEDC_EARG;
  if (type != SCHEDC_I32) sc_store_elems((Elem)type, to, from, n);
  else
    for (size_t i = 0; i < n; i++) sc_set_elem(EL_I32, to, (i64)i, (double)from[i]);
  return SCHEDC_OK;
}

schedc_status schedc_from_f64(schedc_type type, void *to, const double *from, size_t n) {
  if (!is_type(type) || (n && (!to || !from))) return SCHEDC_EARG;
  for (size_t i = 0; i < n; i++) sc_set_elem((Elem)type, to, (i64)i, from[i]);
  return SCHEDC_OK;
}

schedc_status schedc_to_f32(schedc_type type, float *to, const void *from, size_t n) {
  if (!is_type(type) || (n && (!to || !from))) return SCHEDC_EARG;
  if (type != SCHEDC_I32) sc_load_elems((Elem)type, to, from, n);
  else
    for (size_t i = 0; i < n; i++) to[i] = (float)((const i32 *)from)[i];
  return SCHEDC_OK;
}

// ---- whole tensors

bool sc_good_tensor(const schedc_tensor *t) {
  i64 n = 1;
  if (!t || !is_type(t->type) || t->rank > SC_MAX_RANK) return false;
  for (size_t d = 0; d < t->rank; d++) {
    if (t->shape[d] < 0 || t->strides[d] < 0) return false;
    if (__builtin_mul_overflow(n, t->shape[d], &n) || n > INT64_MAX / 64) return false;
  }
  return t->data || !n;
}

static bool is_aligned(const schedc_tensor *t) {
  return (uintptr_t)t->data % sc_elem[t->type].bytes == 0;
}

static u32 input_kind(const char *name) {
  u32 kind = 0;
  while (kind < INPUT_COUNT && (!name || strcmp(sc_input_name[kind], name) != 0)) kind++;
  return kind;
}

const char *schedc_input_at(size_t index) {
  return index < INPUT_COUNT ? sc_input_name[index] : NULL;
}

const char *schedc_input_summary(const char *kind) {
  u32 k = input_kind(kind);
  return k < INPUT_COUNT ? sc_input_what[k] : NULL;
}

schedc_status schedc_draw(const schedc_tensor *tensor, const char *kind, uint64_t seed) {
  u32 k = input_kind(kind);
  if (!sc_good_tensor(tensor) || !is_aligned(tensor) || k == INPUT_COUNT) return SCHEDC_EARG;
  const Extent extent = {tensor->shape, tensor->strides, tensor->rank};
  sc_fill_input((Elem)tensor->type, tensor->data, &extent, (InputKind)k, seed);
  return SCHEDC_OK;
}

schedc_status schedc_poison(const schedc_tensor *tensor) {
  if (!sc_good_tensor(tensor) || !is_aligned(tensor)) return SCHEDC_EARG;
  const Extent extent = {tensor->shape, tensor->strides, tensor->rank};
  sc_fill_all_nan((Elem)tensor->type, tensor->data, &extent, NULL, NULL);
  return SCHEDC_OK;
}

// ---- tensors of a kernel

typedef struct DrawJob {
  const schedc_kernel *kernel;
  u32 buf;
  const schedc_dim *dims;
  size_t n;
  Arguments given;  // the tensor alone, and scalars
  u64 seed;
} DrawJob;

static schedc_status draw_integers(Sc *sc, void *job) {
  const DrawJob *j = job;
  const Kernel *k = j->kernel->k;
  const schedc_tensor *t = j->given.tensor;
  const Extent extent = {t->shape, t->strides, t->rank};
  i64 *value, least, end;
  bool *known;
  schedc_status status = sc_find_dims(sc, k, j->dims, j->n, &value, &known, NULL);
  if (status) return status;
  double *scalar = NEWS(sc, double, k->arg.n + 1);
  sc_given_scalars(sc, k, &j->given, scalar);
  if (sc->errors) return SCHEDC_EINPUT;
  sc_element_range(sc, k, value, known, scalar, j->buf, &least, &end);
  sc_fill_integers(t->data, &extent, least, end, k->buf.at[j->buf].rising, j->seed);
  return SCHEDC_OK;
}

schedc_status schedc_draw_input(schedc_context *context, const schedc_kernel *kernel, size_t index,
                                const schedc_dim *dims, size_t dim_count,
                                const schedc_scalar *scalars, size_t scalar_count,
                                const schedc_tensor *tensor, const char *kind, uint64_t seed) {
  DrawJob job = {kernel, 0, dims, dim_count, {tensor, 1, scalars, scalar_count}, seed};
  if (!context || !kernel || index >= kernel->tensors || !sc_good_dims(dims, dim_count))
    return SCHEDC_EARG;
  if (!sc_good_arguments(&job.given)) return SCHEDC_EARG;
  job.buf = kernel->tensor[index];
  const Buf *b = &kernel->k->buf.at[job.buf];
  schedc_status status = schedc_draw(tensor, kind, seed);
  if (status || !(b->end || b->rising)) return status;
  if (tensor->type != SCHEDC_I32) return SCHEDC_EARG;
  return sc_enter_once(context, kernel->k->text, draw_integers, &job);
}
