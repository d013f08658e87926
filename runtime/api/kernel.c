// kernel.c - instantiating kernels, emitting stages, and what can be asked about a kernel. All
// texts that infos hand out are made once, when the kernel is: a kernel is immutable and shared by
// threads.
#include "runtime/api/api.h"

#include <math.h>
#include <string.h>

// ---- instantiate

typedef struct CompileJob {
  schedc_kernel *kernel;  // instantiate: where the result goes
  const Ast *ast;
  Choice choice;
  const char *stage;  // emit
  schedc_writer writer;
  void *user;
} CompileJob;

static void index_kernel(Sc *sc, schedc_kernel *kernel);

static schedc_status compile(Sc *sc, void *job) {
  CompileJob *j = job;
  Compilation c = {.ast = j->ast, .choice = j->choice};
  if (!sc_compile(sc, &c, "ast", "place")) return SCHEDC_EINPUT;
  sc_tell_params(sc, j->ast, (Kernel *)c.k);  // finished only now
  j->kernel->k = c.k;
  index_kernel(sc, j->kernel);
  return SCHEDC_OK;
}

bool sc_good_params(const schedc_param *params, size_t n) {
  if (n && !params) return false;
  for (size_t i = 0; i < n; i++) {
    if (!params[i].name || !params[i].value) return false;
  }
  return n < UINT32_MAX;
}

schedc_status schedc_instantiate(schedc_kernel **out, schedc_context *context,
                                 const schedc_source *source, const char *unit,
                                 const char *case_name, const schedc_param *params,
                                 size_t param_count) {
  if (!out) return SCHEDC_EARG;
  *out = NULL;
  if (!context || !source || !sc_good_params(params, param_count)) return SCHEDC_EARG;
  schedc_kernel *kernel = NEW_HANDLE(context, schedc_kernel);
  if (!kernel) return SCHEDC_ENOMEM;
  sc_source_keep(source);
  kernel->source = (schedc_source *)source;
  CompileJob job = {
      .kernel = kernel, .ast = source->ast, .choice = {unit, case_name, params, (u32)param_count}};
  schedc_status status = sc_enter(context, &kernel->sc, source->text, compile, &job);
  if (status == SCHEDC_OK) *out = kernel;
  else schedc_kernel_free(kernel);
  return status;
}

// A sequence of the steps that another is given, on the same tensors.
static schedc_status compile_given(Sc *sc, void *job) {
  CompileJob *j = job;
  const Kernel *of = j->kernel->k;
  Kernel *k = NEW(sc, Kernel);
  *k = *of;
  memset(&k->given, 0, sizeof k->given);
  memset(&k->spec, 0, sizeof k->spec);
  memset(&k->kase, 0, sizeof k->kase);
  k->work = 0;
  k->launch.at = of->given.at;
  k->launch.n = of->given.n;
  k->buf.at = NEWS(sc, Buf, of->buf.n);
  memcpy(k->buf.at, of->buf.at, of->buf.n * sizeof *k->buf.at);
  for (u32 i = 0; i < k->buf.n; i++) {
    Buf *b = &k->buf.at[i];
    if (b->workspace) b->space = SP_SPEC, b->workspace = false;  // it has no use for those
    else if (b->space == SP_TENSOR) b->dir = F_IN;
  }
  for (u32 l = 0; l < k->launch.n; l++) {
    const Launch *step = &k->launch.at[l];
    for (u32 i = 0; i < step->kernel->buf.n; i++) {
      const Buf *b = &step->kernel->buf.at[i];
      if (b->space == SP_TENSOR && b->dir & F_OUT) k->buf.at[step->tensor[i]].dir = F_OUT;
    }
  }
  j->kernel->k = k;
  index_kernel(sc, j->kernel);
  return SCHEDC_OK;
}

schedc_status schedc_given(schedc_kernel **out, schedc_context *context,
                           const schedc_kernel *sequence) {
  if (!out) return SCHEDC_EARG;
  *out = NULL;
  if (!context || !sequence || !sequence->k->given.n) return SCHEDC_EARG;
  schedc_kernel *kernel = NEW_HANDLE(context, schedc_kernel);
  if (!kernel) return SCHEDC_ENOMEM;
  sc_source_keep(sequence->source);
  kernel->source = sequence->source;
  kernel->k = sequence->k;
  CompileJob job = {.kernel = kernel};
  schedc_status status = sc_enter(context, &kernel->sc, sequence->k->text, compile_given, &job);
  if (status == SCHEDC_OK) *out = kernel;
  else schedc_kernel_free(kernel);
  return status;
}

void schedc_kernel_free(schedc_kernel *kernel) {
  if (!kernel) return;
  schedc_source *source = kernel->source;
  sc_free_handle(&kernel->sc, kernel);
  schedc_source_free(source);
}

// ---- emit

const char *schedc_stage_at(size_t index) {
  const Pass *p = sc_pipeline;
  while (p->name && index--) p++;
  return p->name;
}

const char *schedc_stage_summary(const char *stage) {
  const Pass *p = stage ? sc_pass(stage) : NULL;
  return p ? p->what : NULL;
}

static schedc_status emit(Sc *sc, void *job) {
  CompileJob *j = job;
  Str out = {.sc = sc};
  Assembly build = {.target = TARGET_CUBIN};
  Compilation c = {
      .ast = j->ast, .choice = j->choice, .assemble = sc_assemble, .assembler = &build};
  if (!sc_compile(sc, &c, "ast", j->stage)) return build.status ? build.status : SCHEDC_EINPUT;
  sc_pass(j->stage)->dump(&out, &c);
  return sc_write(j->writer, j->user, &out);
}

schedc_status schedc_emit(schedc_context *context, const schedc_source *source, const char *unit,
                          const char *case_name, const schedc_param *params, size_t param_count,
                          const char *stage, schedc_writer writer, void *user) {
  if (!context || !source || !sc_good_params(params, param_count) || !writer) return SCHEDC_EARG;
  if (!schedc_stage_summary(stage)) return SCHEDC_EARG;
  CompileJob job = {.ast = source->ast,
                    .choice = {unit, case_name, params, (u32)param_count},
                    .stage = stage,
                    .writer = writer,
                    .user = user};
  return sc_enter_once(context, source->text, emit, &job);
}

// ---- what a kernel takes

static double value_number(const Value *v) {
  return v->kind == VAL_REAL ? v->num.f : v->kind == VAL_ELEM ? (double)NAN : (double)v->num.i;
}

static void index_tensors(Sc *sc, schedc_kernel *kernel) {
  const Kernel *k = kernel->k;
  kernel->tensor = NEWS(sc, u32, k->buf.n + 1);
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *buf = &k->buf.at[i];
    if (!sc_is_argument(buf)) continue;
    kernel->tensor[kernel->tensors++] = i;
    kernel->outputs += (buf->dir & F_OUT) != 0;
  }
  kernel->dims = sc_new(sc, sizeof *kernel->dims * (kernel->tensors + 1));
  for (u32 t = 0; t < kernel->tensors; t++) {
    const Buf *buf = &k->buf.at[kernel->tensor[t]];
    for (u32 d = 0; d < buf->rank; d++) {
      Str s = {.sc = sc};
      sc_print_infix(&s, k, buf->dim[d]);
      kernel->dims[t][d] = s.at;
    }
  }
}

static void index_cases(Sc *sc, schedc_kernel *kernel) {
  static const u8 kind[] = {[CASE_DIM] = SCHEDC_BIND_DIM,
                            [CASE_ARG] = SCHEDC_BIND_SCALAR,
                            [CASE_TENSOR] = SCHEDC_BIND_TENSOR,
                            [CASE_PARAM] = SCHEDC_BIND_PARAM,
                            [CASE_ABSENT] = SCHEDC_BIND_ABSENT};
  const Kernel *k = kernel->k;
  kernel->bind = NEWS(sc, schedc_bind_info *, k->kase.n + 1);
  for (u32 c = 0; c < k->kase.n; c++) {
    const Case *kase = &k->kase.at[c];
    kernel->bind[c] = NEWS(sc, schedc_bind_info, kase->bind.n + 1);
    for (u32 i = 0; i < kase->bind.n; i++) {
      const CaseBind *b = &kase->bind.at[i];
      double *number = NEWS(sc, double, b->value.n + 1);
      for (u32 v = 0; v < b->value.n; v++) number[v] = value_number(&b->value.at[v]);
      kernel->bind[c][i] = (schedc_bind_info){.name = b->name,
                                              .kind = kind[b->kind],
                                              .is_choice = b->set,
                                              .count = b->value.n,
                                              .values = number,
                                              .texts = sc_value_texts(sc, &b->value)};
    }
  }
}

schedc_value_type sc_value_type(u8 kind) {
  static const u8 type[] = {[VAL_INT] = SCHEDC_VALUE_INTEGER,
                            [VAL_REAL] = SCHEDC_VALUE_REAL,
                            [VAL_BOOL] = SCHEDC_VALUE_TRUTH,
                            [VAL_ELEM] = SCHEDC_VALUE_ELEMENT};
  return type[kind];
}

static schedc_param_info param_info(Sc *sc, const Param *p) {
  schedc_param_info info = {.name = p->name,
                            .type = sc_value_type(p->value.kind),
                            .value = sc_value_text(sc, &p->value),
                            .domain_count = p->domain.n,
                            .domain = sc_value_texts(sc, &p->domain),
                            .least = (double)NAN,
                            .most = (double)NAN,
                            .kind = p->problem ? SCHEDC_PROBLEM : SCHEDC_TUNING};
  bool numbers = p->value.kind == VAL_INT || p->value.kind == VAL_REAL;
  for (u32 i = 0; i < p->domain.n && numbers; i++) {
    info.least = fmin(info.least, value_number(&p->domain.at[i]));
    info.most = fmax(info.most, value_number(&p->domain.at[i]));
  }
  return info;
}

// Makes everything that the passes can say about a kernel's arguments, parameters and cases, as
// schedc.h has it.
static void index_kernel(Sc *sc, schedc_kernel *kernel) {
  const Kernel *k = kernel->k;
  index_tensors(sc, kernel);
  kernel->param = NEWS(sc, schedc_param_info, k->param.n + 1);
  for (u32 i = 0; i < k->param.n; i++) kernel->param[i] = param_info(sc, &k->param.at[i]);
  index_cases(sc, kernel);
  kernel->unordered = sc_unordered(sc, k);
}

static const ElemInfo *elem_of(schedc_type type) {
  return (u32)type < EL_COUNT ? &sc_elem[type] : NULL;
}

const char *schedc_type_name(schedc_type type) {
  return elem_of(type) ? elem_of(type)->text : NULL;
}
size_t schedc_type_size(schedc_type type) { return elem_of(type) ? elem_of(type)->bytes : 0; }

const char *schedc_kernel_name(const schedc_kernel *kernel) {
  return kernel ? kernel->k->name : NULL;
}
const char *schedc_why_absent(const schedc_kernel *kernel, const char *name) {
  return kernel && name ? sc_why_absent(kernel->k, name) : NULL;
}
size_t schedc_tensor_count(const schedc_kernel *kernel) { return kernel ? kernel->tensors : 0; }
size_t schedc_output_count(const schedc_kernel *kernel) { return kernel ? kernel->outputs : 0; }
int schedc_is_deterministic(const schedc_kernel *kernel) {
  if (!kernel) return 0;
  for (u32 t = 0; t < kernel->tensors; t++) {
    if (kernel->unordered[kernel->tensor[t]]) return 0;
  }
  return 1;
}

int schedc_is_persistent(const schedc_kernel *kernel) {
  if (!kernel) return 0;
  bool some = kernel->k->grid != GRID_PLAIN;
  for (u32 l = 0; l < kernel->k->launch.n; l++)
    some |= kernel->k->launch.at[l].kernel->grid != GRID_PLAIN;
  return some;
}
size_t schedc_ring_count(const schedc_kernel *kernel) {
  if (!kernel) return 0;
  size_t n = kernel->k->ring.n;
  for (u32 l = 0; l < kernel->k->launch.n; l++) n += kernel->k->launch.at[l].kernel->ring.n;
  return n;
}

schedc_status schedc_tensor_at(const schedc_kernel *kernel, size_t index,
                               schedc_tensor_info *info) {
  if (!kernel || !SAYS_SIZE(info) || index >= kernel->tensors) return SCHEDC_EARG;
  const Buf *buf = &kernel->k->buf.at[kernel->tensor[index]];
  schedc_tensor_info out = {0,
                            buf->name,
                            buf->elem,
                            buf->dir & (F_IN | F_OUT),
                            buf->rank,
                            {0},
                            !kernel->unordered[kernel->tensor[index]]};
  for (u32 d = 0; d < buf->rank; d++) out.dims[d] = kernel->dims[index][d];
  COPY_OUT(info, &out);
  return SCHEDC_OK;
}

size_t schedc_scalar_count(const schedc_kernel *kernel) { return kernel ? kernel->k->arg.n : 0; }

schedc_status schedc_scalar_at(const schedc_kernel *kernel, size_t index,
                               schedc_scalar_info *info) {
  if (!kernel || !SAYS_SIZE(info) || index >= kernel->k->arg.n) return SCHEDC_EARG;
  const Arg *arg = &kernel->k->arg.at[index];
  schedc_scalar_info out = {0, arg->name, arg->elem, arg->init != 0};
  COPY_OUT(info, &out);
  return SCHEDC_OK;
}

size_t schedc_param_count(const schedc_kernel *kernel) { return kernel ? kernel->k->param.n : 0; }

schedc_status schedc_param_at(const schedc_kernel *kernel, size_t index, schedc_param_info *info) {
  if (!kernel || !SAYS_SIZE(info) || index >= kernel->k->param.n) return SCHEDC_EARG;
  schedc_param_info out = kernel->param[index];
  COPY_OUT(info, &out);
  return SCHEDC_OK;
}

size_t schedc_dim_count(const schedc_kernel *kernel) { return kernel ? kernel->k->dim.n : 0; }

const char *schedc_dim_at(const schedc_kernel *kernel, size_t index) {
  return index < schedc_dim_count(kernel) ? kernel->k->dim.at[index].name : NULL;
}

size_t schedc_kernel_case_count(const schedc_kernel *kernel) {
  return kernel ? kernel->k->kase.n : 0;
}

const char *schedc_kernel_case_name(const schedc_kernel *kernel, size_t kase) {
  return kase < schedc_kernel_case_count(kernel) ? kernel->k->kase.at[kase].name : NULL;
}

size_t schedc_bind_count(const schedc_kernel *kernel, size_t kase) {
  return kase < schedc_kernel_case_count(kernel) ? kernel->k->kase.at[kase].bind.n : 0;
}

schedc_status schedc_bind_at(const schedc_kernel *kernel, size_t kase, size_t index,
                             schedc_bind_info *info) {
  if (!SAYS_SIZE(info) || index >= schedc_bind_count(kernel, kase)) return SCHEDC_EARG;
  schedc_bind_info out = kernel->bind[kase][index];
  COPY_OUT(info, &out);
  return SCHEDC_OK;
}

// ---- shapes

typedef struct ShapeJob {
  const Kernel *k;
  u32 buf;
  const schedc_dim *dims;
  size_t n;
  i64 *shape;
} ShapeJob;

// The i32 scalar of that name, or k->arg.n.
static u32 find_integer(const Kernel *k, const char *name) {
  u32 a = 0;
  while (a < k->arg.n && (k->arg.at[a].elem != EL_I32 || strcmp(k->arg.at[a].name, name))) a++;
  return a;
}

schedc_status sc_find_dims(Sc *sc, const Kernel *k, const schedc_dim *dims, size_t n, i64 **value,
                           bool **known, double *arg) {
  bool all = true;
  *value = NEWS(sc, i64, k->dim.n + 1);
  *known = NEWS(sc, bool, k->dim.n + 1);
  for (size_t i = 0; i < n; i++) {
    u32 d = (u32)i, tried = 0;  // most callers have them in this order
    while (tried < k->dim.n && k->dim.at[d % k->dim.n].name != dims[i].name &&
           strcmp(k->dim.at[d % k->dim.n].name, dims[i].name))
      d++, tried++;
    u32 a = arg && tried == k->dim.n ? find_integer(k, dims[i].name) : k->arg.n;
    if (a < k->arg.n) arg[a] = (double)dims[i].value;
    all &= tried < k->dim.n || a < k->arg.n;
    if (tried == k->dim.n) continue;
    (*value)[d % k->dim.n] = dims[i].value;
    (*known)[d % k->dim.n] = true;
  }
  return all ? SCHEDC_OK : SCHEDC_EARG;
}

bool sc_good_dims(const schedc_dim *dims, size_t n) {
  if (n && !dims) return false;
  for (size_t i = 0; i < n; i++) {
    if (!dims[i].name) return false;
  }
  return true;
}

// Most extents are numbers and dimensions, which need no more than a look.
static bool plain_shape(const ShapeJob *j) {
  const Buf *b = &j->k->buf.at[j->buf];
  for (u32 d = 0; d < b->rank; d++) {
    const Expr *e = &j->k->expr.at[b->dim[d]];
    bool given =
        e->op == X_DIM && e->ref < j->n && !strcmp(j->k->dim.at[e->ref].name, j->dims[e->ref].name);
    if (!given && e->op != X_INT) return false;
    j->shape[d] = given ? j->dims[e->ref].value : e->num.i;
  }
  return true;
}

static schedc_status shape(Sc *sc, void *job) {
  ShapeJob *j = job;
  if (plain_shape(j)) return SCHEDC_OK;
  i64 *value;
  bool *known;
  double *arg = NEWS(sc, double, j->k->arg.n + 1);
  for (u32 a = 0; a < j->k->arg.n; a++) arg[a] = NAN;
  schedc_status status = sc_find_dims(sc, j->k, j->dims, j->n, &value, &known, arg);
  if (status) return status;
  return sc_tensor_shape(sc, j->k, value, known, arg, j->buf, j->shape) ? SCHEDC_OK : SCHEDC_EARG;
}

schedc_status schedc_tensor_shape(schedc_context *context, const schedc_kernel *kernel,
                                  size_t index, const schedc_dim *dims, size_t dim_count,
                                  int64_t *out) {
  if (!context || !kernel || index >= kernel->tensors || !out || !sc_good_dims(dims, dim_count)) {
    return SCHEDC_EARG;
  }
  i64 found[SC_MAX_RANK] = {0};
  ShapeJob job = {kernel->k, kernel->tensor[index], dims, dim_count, found};
  schedc_status status = sc_enter_once(context, kernel->k->text, shape, &job);
  for (u32 d = 0; d < SC_MAX_RANK && !status; d++)
    if (found[d] < 0) status = SCHEDC_EARG;
  if (status == SCHEDC_OK) memcpy(out, found, sizeof found);
  return status;
}
