// variants.c - the kernels that a store recommends for all dimensions. In: what
// schedc_instantiate_tuned takes, but for the dimensions. Out: a kernel for each record that it
// finds at the record's own dimensions. No other record is ever found: one of the same dimensions,
// which is found there, is as near to all others, and preferred.
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "runtime/api/api.h"
#include "runtime/tune/store.h"

typedef struct NewJob {
  schedc_variants *v;
  schedc_context *context;
  const schedc_source *source;
  Choice choice;
  const schedc_store *store;
  const char *gpu;
  const char *schedule;
} NewJob;

// ---- making

static schedc_status make_kernel(NewJob *j, const schedc_store_record *r, Variant *v) {
  const Choice *c = &j->choice;
  v->record = (schedc_store_record)SCHEDC_STORE_RECORD_INIT;
  return schedc_instantiate_tuned(&v->kernel, j->context, j->source, c->unit, c->case_name,
                                  c->param, c->params, r->dims, r->dim_count,
                                  r->schedule ? j->store : NULL, j->gpu, &v->record);
}

// Is a record one of the first n variants'? (It has the same array of dimensions then.)
static bool is_there(const schedc_variants *all, u32 n, const schedc_store_record *r) {
  bool there = false;
  for (u32 i = 1; i < n; i++) there |= all->variant.at[i].record.dims == r->dims;
  return there;
}

static bool same_program(const Variant *a, const Variant *b) {
  return a->program[0] == b->program[0] && a->program[1] == b->program[1];
}

// Equal programs are one kernel: that of the first variant which has it.
static void find_program(schedc_variants *all, Variant *v) {
  Str text = {.sc = &all->sc};
  sc_print_program(&text, v->kernel->k);
  XXH128_hash_t h = XXH3_128bits(text.at, text.n);
  v->program[0] = h.high64, v->program[1] = h.low64;
  for (u32 i = 0; i < all->variant.n && v->owned; i++) {
    Variant *other = &all->variant.at[i];
    if (other == v || !other->kernel || !same_program(other, v)) continue;
    schedc_kernel_free(v->kernel);
    v->kernel = other->kernel;
    v->owned = false;
  }
}

// The dimensions in the order in which the kernel has them; NULL: it has others.
static const i64 *in_order(Sc *sc, const schedc_kernel *k, const schedc_dim *dims, size_t n) {
  i64 *out = NEWS(sc, i64, n + 1);
  if (schedc_dim_count(k) != n) return NULL;
  for (size_t i = 0; i < n; i++) {
    size_t at = 0;
    while (at < n && strcmp(dims[at].name, schedc_dim_at(k, i)) != 0) at++;
    if (at == n) return NULL;
    out[i] = dims[at].value;
  }
  return out;
}

// The last variant, to its place in the order of preference.
static void place_last(schedc_variants *all) {
  u32 i = all->variant.n - 1;
  Variant v = all->variant.at[i];
  for (; i > 1; i--) {
    const schedc_store_record *other = &all->variant.at[i - 1].record;
    bool later = v.record.line > other->line;
    if (later ? !sc_store_rather(&v.record, other) : sc_store_rather(other, &v.record)) break;
    all->variant.at[i] = all->variant.at[i - 1];
  }
  all->variant.at[i] = v;
}

// A variant for the dimensions of a record, unless there is one.
static schedc_status add(NewJob *j, const schedc_store_record *r) {
  schedc_variants *all = j->v;
  u32 n = all->variant.n;
  PUSH(&all->sc, &all->variant, ((Variant){.owned = true}));  // freed with the others from now on
  Variant *v = &all->variant.at[n];
  schedc_status status = make_kernel(j, r, v);
  if (status) return status;
  const schedc_store_record *found = &v->record;
  v->dim = in_order(&all->sc, v->kernel, found->dims, found->dim_count);
  if (n && (!found->schedule || !v->dim || is_there(all, n, found))) {
    schedc_kernel_free(v->kernel);
    all->variant.n = n;
    return SCHEDC_OK;
  }
  find_program(all, v);
  if (n) place_last(all);
  return SCHEDC_OK;
}

// The dimensions of all but the default, row by row.
static void list_shapes(Sc *sc, schedc_variants *all) {
  size_t dims = schedc_dim_count(all->variant.at[0].kernel);
  all->shape = NEWS(sc, i64, dims * all->variant.n + 1);
  for (u32 i = 1; i < all->variant.n; i++)
    for (size_t d = 0; d < dims; d++) all->shape[(i - 1) * dims + d] = all->variant.at[i].dim[d];
}

static schedc_status make_all(Sc *sc, void *arg) {
  NewJob *j = arg;
  schedc_store_record r = SCHEDC_STORE_RECORD_INIT;
  schedc_status status = add(j, &r);  // without a schedule: the kernel without a store
  for (size_t i = 0; !status && j->store && !schedc_store_at(j->store, i, &r); i++) {
    bool may = !strcmp(r.schedule, j->schedule) && !strcmp(r.status, "verified") &&
               (!j->gpu || !strcmp(r.gpu, j->gpu)) && !is_there(j->v, j->v->variant.n, &r);
    if (may) status = add(j, &r);
  }
  if (!status) list_shapes(sc, j->v);
  return status;
}

schedc_status schedc_variants_new(schedc_variants **out, schedc_context *context,
                                  const schedc_source *source, const char *unit,
                                  const char *case_name, const schedc_param *params,
                                  size_t param_count, const schedc_store *store, const char *gpu) {
  char hash[33];
  if (!out) return SCHEDC_EARG;
  *out = NULL;
  if (!context || !source || param_count >= UINT32_MAX) return SCHEDC_EARG;
  schedc_status status = schedc_store_schedule(context, source, unit, hash, NULL);
  if (status) return status;
  schedc_variants *v = NEW_HANDLE(context, schedc_variants);
  if (!v) return SCHEDC_ENOMEM;
  NewJob job = {v, context, source, {unit, case_name, params, (u32)param_count}, store, gpu, hash};
  status = sc_guard(&v->sc, make_all, &job);
  if (status) schedc_variants_free(v);
  else *out = v;
  return status;
}

void schedc_variants_free(schedc_variants *v) {
  if (!v) return;
  for (u32 i = 0; i < v->variant.n; i++)
    if (v->variant.at[i].owned) schedc_kernel_free(v->variant.at[i].kernel);
  sc_free_handle(&v->sc, v);
}

// ---- asking

size_t schedc_variant_count(const schedc_variants *v) { return v ? v->variant.n : 0; }

schedc_status schedc_variant_at(const schedc_variants *v, size_t index, schedc_variant_info *info) {
  if (!SAYS_SIZE(info) || index >= schedc_variant_count(v)) return SCHEDC_EARG;
  const Variant *at = &v->variant.at[index];
  schedc_variant_info out = {.kernel = at->kernel, .record = &at->record};
  COPY_OUT(info, &out);
  return SCHEDC_OK;
}
