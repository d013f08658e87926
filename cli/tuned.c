// tuned.c - a kernel with the params that a store recommends for the dimensions at hand, or all of
// them for a C header; and what is said of it: the line of the store, on which GPU and at which
// dimensions it was measured, and what it changes. The store is the one that --tuned names; else
// the one that $SCHEDC_STORE names, or none if it is empty; else the table of the GPU at hand,
// which is installed with the command.
#define _GNU_SOURCE  // secure_getenv
#include "cli/cli.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *unit_of(const Args *a) { return a->operands > 1 ? a->operand[1] : NULL; }

// ---- which store

static const char *named_store(const Args *a) {
  return a->tuned ? a->tuned : secure_getenv("SCHEDC_STORE");
}

static bool find_folder(char *path, size_t room) {
  return place_find("tuned", SCHEDC_TABLES_PLACE, path, room);
}

bool tuned_wanted(const Args *args, bool on_gpu) {
  char folder[PATH_MAX];
  const char *named = named_store(args);
  return named ? *named : on_gpu && find_folder(folder, sizeof folder);
}

// The name of the GPU on which the kernel is to run. Only with --tuned is it a fault if there is
// none: else what runs there says so.
static int take_gpu(Session *s, Tuned *t) {
  char why[512];
  schedc_gpu *gpu = NULL;
  schedc_gpu_info info = SCHEDC_GPU_INFO_INIT;
  if (schedc_gpu_available(s->context, s->args->device, why, sizeof why) != SCHEDC_OK)
    return s->args->tuned ? cli_fail(s->args, "%s", why) : EXIT_GOOD;
  schedc_status status = schedc_gpu_new(&gpu, s->context, s->args->device);
  if (!status) status = schedc_gpu_get_info(gpu, &info);
  if (!status) buffer_puts(&t->gpu, info.name);
  schedc_gpu_free(gpu);
  return session_status(s, status);
}

// The table of the GPU, if the command comes with one.
static void find_table(Tuned *t, const char *gpu) {
  char folder[PATH_MAX], name[NAME_MAX];
  if (!find_folder(folder, sizeof folder)) return;
  schedc_table_name(gpu, name, sizeof name);
  buffer_printf(&t->path, "%s/%s", folder, name);
  if (access(t->path.at, R_OK) != 0) t->path.n = 0;
}

// What is named by hand, and only read, is there.
static int open_store(Session *s, Tuned *t) {
  if (!t->path.n) return EXIT_GOOD;
  if (s->args->tuned && access(t->path.at, R_OK) != 0)
    return cli_fail(s->args, "%s cannot be read: '--tuned' wants a store that is there",
                    t->path.at);
  return session_status(s, schedc_store_open(&t->store, s->context, t->path.at));
}

int tuned_open(Session *s, Tuned *t, bool on_gpu) {
  const char *named = named_store(s->args);
  *t = (Tuned){.record = SCHEDC_STORE_RECORD_INIT};
  if (!tuned_wanted(s->args, on_gpu)) return EXIT_GOOD;
  if (named) buffer_puts(&t->path, named);
  int code = on_gpu ? take_gpu(s, t) : EXIT_GOOD;
  if (!code && !named && t->gpu.n) find_table(t, t->gpu.at);
  return code ? code : open_store(s, t);
}

static void forget_store(Tuned *t) {
  schedc_store_close(t->store);
  t->store = NULL;
}

void tuned_close(Tuned *t) {
  schedc_store_close(t->store);
  free(t->path.at);
  free(t->gpu.at);
}

// ---- kernels

// Of what is to be read from standard input the dimensions are not known yet.
static const char *unknown_input(const Args *a) {
  for (size_t i = 0; i < a->in.n; i++)
    if (strcmp(a->in.at[i].value, "-") == 0) return a->in.at[i].name;
  return NULL;
}

static int make_kernel(Session *s, Tuned *t, const schedc_kernel *usual, size_t kase,
                       schedc_kernel **best) {
  const Args *a = s->args;
  Data d;
  int code = data_dims(&d, s, usual, kase, NULL, &a->set);
  if (!code)
    code = session_status(
        s, schedc_instantiate_tuned(best, s->context, s->source, unit_of(a), session_case(s),
                                    a->param.at, a->param.n, d.dims, d.dim_count, t->store,
                                    t->gpu.n ? t->gpu.at : NULL, &t->record));
  data_close(&d);
  return code;
}

int tuned_kernel(Session *s, Tuned *t, schedc_kernel **kernel, size_t *kase) {
  schedc_kernel *best = NULL;
  const char *unknown = unknown_input(s->args);
  if (t->store && unknown && s->args->tuned)
    return cli_usage(s->args, "--tuned needs the dimensions first: give '%s' as a file", unknown);
  if (t->store && unknown) forget_store(t);
  if (!t->store) return EXIT_GOOD;
  int code = make_kernel(s, t, *kernel, *kase, &best);
  if (code) return code;
  schedc_kernel_free(*kernel);
  *kernel = best;
  *kase = session_case_number(best, session_case(s));
  if (!t->record.schedule && !s->args->tuned) forget_store(t);
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
      return cli_usage(a, "%s is of '%s' and '%s': say which by --gpu", t->path.at, first, r.gpu);
    first = r.gpu;
  }
  return session_status(s, status);
}

// With --gpu alone: $SCHEDC_STORE, or the table of that GPU.
static int open_for_header(Session *s, Tuned *t) {
  int code = tuned_open(s, t, false);
  if (code || t->store) return code;
  if (!named_store(s->args)) find_table(t, s->args->gpu);
  if (!t->path.n) return cli_fail(s->args, "there is no table of '%s': give --tuned", s->args->gpu);
  return open_store(s, t);
}

int tuned_variants(Session *s, Tuned *t, schedc_variants **out) {
  const Args *a = s->args;
  int code = open_for_header(s, t);
  if (!code) code = need_one_gpu(s, t);
  if (code) return code;
  return session_status(s, schedc_variants_new(out, s->context, s->source, unit_of(a), a->case_name,
                                               a->param.at, a->param.n, t->store, a->gpu));
}

// ---- what is said

void tuned_text(const Tuned *t, const schedc_store_record *r, Buffer *to) {
  if (!r->schedule) {
    buffer_printf(to, "no line of %s fits", t->path.at);
    return;
  }
  buffer_printf(to, "%s:%u: ", t->path.at, r->line);
  for (size_t i = 0; i < r->tuning_count; i++)
    buffer_printf(to, "%s%s = %s", i ? ", " : "", r->tuning[i].name, r->tuning[i].value);
  buffer_printf(to, "; verified on %s at ", r->gpu);
  for (size_t i = 0; i < r->dim_count; i++)
    buffer_printf(to, "%s%s = %lld", i ? ", " : "", r->dims[i].name, (long long)r->dims[i].value);
}

void tuned_json(const Tuned *t, const schedc_store_record *r, Json *j) {
  json_open(j, '{');
  json_key(j, "store"), json_text(j, t->path.at);
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
