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

static void take_figures(schedc_build_info *info, const Built *b) {
  info->registers = b->log.registers;
  info->barriers = b->log.barriers;
  info->static_shared_bytes = b->log.shared;
  info->stack_bytes = b->log.stack;
  info->spill_store_bytes = b->log.spill_stores;
  info->spill_load_bytes = b->log.spill_loads;
  info->code_bytes = b->code.n;
  info->cached = !b->cached ? 0 : b->no_nvrtc ? 2 : 1;
  if (b->maker) snprintf(info->nvrtc, sizeof info->nvrtc, "%s", b->maker);
  info->seconds = b->seconds;
}

// What is known before a build: of a sequence, the largest of its kernels.
static void predict(schedc_build_info *info, const Kernel *k, const CudaText *text) {
  for (u32 i = 0; i < k->launch.n; i++) predict(info, k->launch.at[i].kernel, text->step[i]);
  if (k->launch.n) return;
  if (k->threads > info->threads) info->threads = k->threads;
  if (sc_cluster(k) > info->cluster) info->cluster = sc_cluster(k);
  if (text->smem > info->shared_bytes) info->shared_bytes = text->smem;
  if (sc_entry_registers(k) > info->entry_registers) info->entry_registers = sc_entry_registers(k);
}

BuildOptions sc_building(const schedc_build_options *options) {
  return (BuildOptions){.lenient = options->lenient != 0,
                        .no_cache = options->no_cache != 0,
                        .cache = options->cache,
                        .cache_bytes = options->cache_bytes,
                        .emission.debug_waits = options->debug_waits != 0};
}

static schedc_status write_code(Sc *sc, const BuildJob *j, const CudaText *text, Built *built) {
  if (j->artifact == SCHEDC_C_HEADER) {
    Str out = {.sc = sc};
    const char *name = j->options.name ? j->options.name : text->name;
    bool ok = sc_header(&out, j->kernel->k, text, name, &built->code);
    return ok ? sc_write(j->writer, j->user, &out) : SCHEDC_EINPUT;
  }
  Blob code = {built->code.at, built->code.n};
  if (j->artifact == SCHEDC_CUBIN) code = sc_seal(sc, text, code);
  return code.n && j->writer(j->user, code.at, code.n) ? SCHEDC_EIO : SCHEDC_OK;
}

static schedc_status build(Sc *sc, void *job) {
  BuildJob *j = job;
  const schedc_build_options *o = &j->options;
  Assembly a = {.options = sc_building(o),
                .target = j->artifact == SCHEDC_PTX ? TARGET_PTX : TARGET_CUBIN};
  Compilation c = {
      .k = j->kernel->k, .emission = a.options.emission, .assemble = sc_assemble, .assembler = &a};
  if (!sc_compile(sc, &c, "place", "cuda")) return SCHEDC_EINPUT;
  predict(&j->info, c.k, c.cuda);
  if (j->artifact == SCHEDC_CUDA_C) return sc_write(j->writer, j->user, &c.cuda->text);
  bool built = sc_compile(sc, &c, "cuda", "cubin");
  take_figures(&j->info, &a.built);
  size_t log = strlen(a.built.code.log);
  if (o->log && log && o->log(o->log_user, a.built.code.log, log)) return SCHEDC_EIO;
  return built ? write_code(sc, j, c.cuda, &a.built) : a.status;
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
  Sc sc;
  sc_init(&sc, &context->alloc);
  schedc_status status = sc_enter(context, &sc, kernel->k->text, build, &job);
  sc_free(&sc);
  if (info) COPY_OUT(info, &job.info);
  return status;
}
