// tuned.c - `--tuned STORE`: a kernel with the params that a store recommends for the dimensions at
// hand, or all of them for a C header; and what is said of it: the line of the store, on which GPU
// and at which dimensions it was measured, and what it changes.
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

static const char *unit_of(const Args *a) { return a->operands > 1 ? a->operand[1] : NULL; }

// Lines of other GPUs do not count where a kernel runs on one; elsewhere those of any do.
static int take_gpu(Session *s, Tuned *t) {
  char why[512];
  schedc_gpu *gpu = NULL;
  schedc_gpu_info info = SCHEDC_GPU_INFO_INIT;
  if (schedc_gpu_available(s->context, s->args->device, why, sizeof why) != SCHEDC_OK)
    return cli_fail(s->args, "%s", why);
  schedc_status status = schedc_gpu_new(&gpu, s->context, s->args->device);
  if (!status) status = schedc_gpu_get_info(gpu, &info);
  if (!status) buffer_puts(&t->gpu, info.name);
  schedc_gpu_free(gpu);
  return session_status(s, status);
}

int tuned_open(Session *s, Tuned *t, bool on_gpu) {
  *t = (Tuned){.record = SCHEDC_STORE_RECORD_INIT};
  if (!s->args->tuned) return EXIT_GOOD;
  int code = session_status(s, schedc_store_open(&t->store, s->context, s->args->tuned));
  return code || !on_gpu ? code : take_gpu(s, t);
}

void tuned_close(Tuned *t) {
  schedc_store_close(t->store);
  free(t->gpu.at);
}

int tuned_kernel(Session *s, Tuned *t, schedc_kernel **kernel, size_t *kase) {
  const Args *a = s->args;
  schedc_kernel *best = NULL;
  Data d;
  if (!t->store) return EXIT_GOOD;
  for (size_t i = 0; i < a->in.n; i++)
    if (strcmp(a->in.at[i].value, "-") == 0)
      return cli_usage(a, "--tuned needs the dimensions first: give '%s' as a file",
                       a->in.at[i].name);
  int code = data_dims(&d, s, *kernel, *kase, NULL, &a->set);
  if (!code)
    code = session_status(
        s, schedc_instantiate_tuned(&best, s->context, s->source, unit_of(a), session_case(s),
                                    a->param.at, a->param.n, d.dims, d.dim_count, t->store,
                                    t->gpu.n ? t->gpu.at : NULL, &t->record));
  data_close(&d);
  if (code) return code;
  schedc_kernel_free(*kernel);
  *kernel = best;
  *kase = session_case_number(best, session_case(s));
  return EXIT_GOOD;
}

bool tuned_same(const schedc_kernel *a, const schedc_kernel *b) {
  schedc_param_info x = SCHEDC_PARAM_INFO_INIT, y = SCHEDC_PARAM_INFO_INIT;
  bool same = schedc_param_count(a) == schedc_param_count(b);
  for (size_t i = 0; same && !schedc_param_at(a, i, &x) && !schedc_param_at(b, i, &y); i++)
    same = strcmp(x.value, y.value) == 0;
  return same;
}

// A header does not ask which GPU it is launched on.
static int need_one_gpu(Session *s, const Tuned *t) {
  char hash[33];
  const Args *a = s->args;
  const char *first = a->gpu;
  schedc_store_record r = SCHEDC_STORE_RECORD_INIT;
  schedc_status status = schedc_store_schedule(s->context, s->source, unit_of(a), hash, NULL);
  for (size_t i = 0; !status && !a->gpu && !schedc_store_at(t->store, i, &r); i++) {
    if (strcmp(r.schedule, hash) != 0 || strcmp(r.status, "verified") != 0) continue;
    if (first && strcmp(first, r.gpu) != 0)
      return cli_usage(a, "%s is of '%s' and '%s': say which by --gpu", a->tuned, first, r.gpu);
    first = r.gpu;
  }
  return session_status(s, status);
}

int tuned_variants(Session *s, Tuned *t, schedc_variants **out) {
  const Args *a = s->args;
  int code = need_one_gpu(s, t);
  if (code) return code;
  return session_status(s, schedc_variants_new(out, s->context, s->source, unit_of(a), a->case_name,
                                               a->param.at, a->param.n, t->store, a->gpu));
}

// ---- what is said

void tuned_text(const char *store, const schedc_store_record *r, Buffer *to) {
  if (!r->schedule) {
    buffer_printf(to, "no line of %s fits", store);
    return;
  }
  buffer_printf(to, "%s:%u: ", store, r->line);
  for (size_t i = 0; i < r->tuning_count; i++)
    buffer_printf(to, "%s%s = %s", i ? ", " : "", r->tuning[i].name, r->tuning[i].value);
  buffer_printf(to, "; verified on %s at ", r->gpu);
  for (size_t i = 0; i < r->dim_count; i++)
    buffer_printf(to, "%s%s = %lld", i ? ", " : "", r->dims[i].name, (long long)r->dims[i].value);
}

void tuned_json(const char *store, const schedc_store_record *r, Json *j) {
  json_open(j, '{');
  json_key(j, "store"), json_text(j, store);
  json_key(j, "line");
  if (!r->schedule) {
    json_text(j, NULL);
    json_close(j, '}');
    return;
  }
  json_uint(j, r->line);
  json_key(j, "gpu"), json_text(j, r->gpu);
  json_key(j, "dims"), json_open(j, '{');
  for (size_t i = 0; i < r->dim_count; i++)
    json_key(j, r->dims[i].name), json_int(j, r->dims[i].value);
  json_close(j, '}');
  json_key(j, "tuning"), json_open(j, '{');
  for (size_t i = 0; i < r->tuning_count; i++)
    json_key(j, r->tuning[i].name), json_text(j, r->tuning[i].value);
  json_close(j, '}');
  json_key(j, "sustained_ms"), json_real(j, r->sustained_ms);
  json_key(j, "reference_ms"), json_real(j, r->reference_ms);
  json_key(j, "date"), json_text(j, r->date);
  json_close(j, '}');
}
