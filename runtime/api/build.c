// build.c - building kernels and sequences: to CUDA C, PTX, machine code, or a header that holds
// it.
#include "runtime/api/api.h"

#include "runtime/cuda/gpu.h"

#include <stdio.h>
#include <string.h>

typedef struct BuildJob {
  const schedc_kernel *kernel;
  schedc_artifact artifact;
  schedc_build_options options;
  schedc_writer writer;
  void *user;
  schedc_build_info info;
} BuildJob;

static void raise_to(unsigned *figure, unsigned v) {
  if (v > *figure) *figure = v;
}

// Of several kernels the worst, but their code together.
static void take_figures(schedc_build_info *info, const Built *b) {
  int cached = !b->cached ? 0 : b->no_nvrtc ? 2 : 1;
  raise_to(&info->registers, b->log.registers);
  raise_to(&info->barriers, b->log.barriers);
  raise_to(&info->static_shared_bytes, b->log.shared);
  raise_to(&info->stack_bytes, b->log.stack);
  raise_to(&info->spill_store_bytes, b->log.spill_stores);
  raise_to(&info->spill_load_bytes, b->log.spill_loads);
  if (!info->code_bytes || !cached) info->cached = cached;
  info->code_bytes += b->code.n;
  if (b->maker) snprintf(info->nvrtc, sizeof info->nvrtc, "%s", b->maker);
  info->seconds += b->seconds;
}

// What is known before a build: of a sequence, the largest of its kernels.
static void predict(schedc_build_info *info, const Kernel *k, const CudaText *text) {
  for (u32 i = 0; i < k->launch.n; i++) predict(info, k->launch.at[i].kernel, text->step[i]);
  if (k->launch.n) return;
  raise_to(&info->threads, k->threads);
  raise_to(&info->cluster, sc_cluster(k));
  raise_to(&info->shared_bytes, text->smem);
  raise_to(&info->entry_registers, sc_entry_registers(k));
}

BuildOptions sc_building(const schedc_build_options *options) {
  return (BuildOptions){.lenient = options->lenient != 0,
                        .no_cache = options->no_cache != 0,
                        .cache = options->cache,
                        .cache_bytes = options->cache_bytes,
                        .emission.debug_waits = options->debug_waits != 0,
                        .trust_elements = options->trust_elements != 0};
}

// Compiles a kernel; and builds it, unless CUDA C is all that is wanted. Figures and logs are added
// to the job's.
static schedc_status build_kernel(Sc *sc, BuildJob *j, const Kernel *k, HeaderPart *out) {
  const schedc_build_options *o = &j->options;
  Assembly *a = NEW(sc, Assembly);
  *a = (Assembly){.options = sc_building(o),
                  .target = j->artifact == SCHEDC_PTX ? TARGET_PTX : TARGET_CUBIN};
  Compilation c = {
      .k = k, .emission = a->options.emission, .assemble = sc_assemble, .assembler = a};
  if (!sc_compile(sc, &c, "place", "cuda")) return SCHEDC_EINPUT;
  predict(&j->info, c.k, c.cuda);
  *out = (HeaderPart){c.k, c.cuda, &a->built.code};
  if (j->artifact == SCHEDC_CUDA_C) return SCHEDC_OK;
  bool built = sc_compile(sc, &c, "cuda", "cubin");
  take_figures(&j->info, &a->built);
  size_t log = strlen(a->built.code.log);
  if (o->log && log && o->log(o->log_user, a->built.code.log, log)) return SCHEDC_EIO;
  return built ? SCHEDC_OK : a->status;
}

static schedc_status write_kernel(Sc *sc, const BuildJob *j, const HeaderPart *p) {
  if (j->artifact == SCHEDC_CUDA_C) return sc_write(j->writer, j->user, &p->text->text);
  Blob code = {p->cubin->at, p->cubin->n};
  if (j->artifact == SCHEDC_CUBIN) code = sc_seal(sc, p->text, code);
  return code.n && j->writer(j->user, code.at, code.n) ? SCHEDC_EIO : SCHEDC_OK;
}

// A part for each kernel of the variants; without any, the one kernel.
static schedc_status build_header(Sc *sc, BuildJob *j) {
  const schedc_variants *v = j->options.variants;
  u32 n = v ? v->variant.n : 1, parts = 0;
  HeaderPart *part = NEWS(sc, HeaderPart, n);
  u32 *at = NEWS(sc, u32, n);  // the part of each variant
  for (u32 i = 0; i < n; i++) {
    const Kernel *k = v ? v->variant.at[i].kernel->k : j->kernel->k;
    for (at[i] = 0; at[i] < parts && part[at[i]].k != k;) at[i]++;
    schedc_status status = at[i] < parts ? SCHEDC_OK : build_kernel(sc, j, k, &part[parts++]);
    if (status) return status;
  }
  Str out = {.sc = sc};
  const char *name = j->options.name ? j->options.name : part->text->name;
  const HeaderShapes shapes = {n - 1, v ? v->shape : NULL, at + 1};
  bool ok = sc_header(&out, name, part, parts, &shapes, j->options.trust_elements != 0);
  return ok ? sc_write(j->writer, j->user, &out) : SCHEDC_EINPUT;
}

static schedc_status build(Sc *sc, void *job) {
  BuildJob *j = job;
  HeaderPart part;
  if (j->artifact == SCHEDC_C_HEADER) return build_header(sc, j);
  schedc_status status = build_kernel(sc, j, j->kernel->k, &part);
  return status ? status : write_kernel(sc, j, &part);
}

static bool is_identifier(const char *name) {
  static const char used[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
  return *name && !name[strspn(name, used)] && !strspn(name, "0123456789");
}

schedc_status schedc_build(schedc_context *context, const schedc_kernel *kernel,
                           schedc_artifact artifact, const schedc_build_options *options,
                           schedc_writer writer, void *user, schedc_build_info *info) {
  if (!context || !kernel || (u32)artifact > SCHEDC_C_HEADER || !writer) return SCHEDC_EARG;
  if (info && info->size < sizeof info->size) return SCHEDC_EARG;
  BuildJob job = {.kernel = kernel,
                  .artifact = artifact,
                  .options = SCHEDC_BUILD_OPTIONS_INIT,
                  .writer = writer,
                  .user = user};
  if (!TAKE_OPTIONS(&job.options, options)) return SCHEDC_EARG;
  // Its launching functions have nobody to tell of what was given up.
  if (artifact == SCHEDC_C_HEADER && job.options.debug_waits) return SCHEDC_EARG;
  const char *name = job.options.name;
  if (name && (artifact != SCHEDC_C_HEADER || !is_identifier(name))) return SCHEDC_EARG;
  const schedc_variants *v = job.options.variants;
  if (v && (artifact != SCHEDC_C_HEADER || v->variant.at[0].kernel != kernel)) return SCHEDC_EARG;
  schedc_status status = sc_enter_once(context, kernel->k->text, build, &job);
  if (info) COPY_OUT(info, &job.info);
  return status;
}
