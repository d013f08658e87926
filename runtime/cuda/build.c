// build.c - a kernel's text to machine code, once: what was built before comes from the cache,
// without NVRTC being opened. What ptxas said then is stored with it, so that a kernel that spills
// is told of every time.
#include "runtime/cuda/build.h"

#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum { KEY_PARTS = 4 };

static Blob text_blob(const char *text) { return (Blob){text, strlen(text)}; }

// Everything that the code depends on.
static void make_key(Sc *sc, const char *text, Target target, const NvrtcFile *file,
                     Blob key[KEY_PARTS]) {
  Str options = {.sc = sc};
  for (const char *const *o = sc_nvrtc_options[target]; *o; o++) str_printf(&options, "%s\n", *o);
  key[0] = text_blob(text);
  key[1] = text_blob(file->identity);
  key[2] = text_blob(options.at);  // the architecture is one of them
  key[3] = text_blob(schedc_version());
}

static schedc_status unavailable(Sc *sc, const Kernel *k, const char *wrong) {
  sc_report(sc, D_G_NVRTC, k->span, "%s", wrong);
  return SCHEDC_EUNAVAIL;
}

// The machine is at fault, not the text; NVRTC may have said more.
static schedc_status does_not_work(Sc *sc, const Kernel *k, const char *wrong,
                                   const BuildLog *log) {
  for (u32 i = 0; i < log->remark.n; i++) {
    const Remark *r = &log->remark.at[i];
    if (r->kind == REMARK_ERROR) return unavailable(sc, k, sc_printf(sc, "%s: %s", wrong, r->text));
  }
  return unavailable(sc, k, wrong);
}

static schedc_status build_anew(Sc *sc, const Kernel *k, const char *text, Target target,
                                const Nvrtc *n, Built *out) {
  const char *wrong = sc_nvrtc(sc, n, target, sc_printf(sc, "%s.cu", k->name), text, &out->code);
  sc_read_log(sc, out->code.log, &out->log);
  if (!wrong) return SCHEDC_OK;
  if (!out->code.refused) return does_not_work(sc, k, wrong, &out->log);
  u32 before = sc->errors;
  sc_report_log(sc, k, &out->log, false);
  if (sc->errors == before) sc_report(sc, D_G_NVRTC, k->span, "%s", wrong);
  return SCHEDC_EINPUT;
}

schedc_status sc_build(Sc *sc, const Kernel *k, const CudaText *cuda, Target target,
                       const BuildOptions *options, Built *out) {
  *out = (Built){.code.log = ""};
  double start = now();
  const char *text = sc_cuda_lined(sc, cuda), *folder = NULL, *wrong;
  NvrtcFile file;
  Nvrtc nvrtc;
  Blob key[KEY_PARTS];
  bool opened = false;
  if ((wrong = sc_nvrtc_find(sc, &file))) return unavailable(sc, k, wrong);
  if (!options->no_cache) folder = sc_cache_folder(sc, options->cache);
  if (folder && !file.identity) {  // the loader alone knows which file it is
    if ((wrong = sc_nvrtc_open(sc, &file, &nvrtc))) return unavailable(sc, k, wrong);
    opened = true;
  }
  if (!file.identity) folder = NULL;
  if (folder) {
    make_key(sc, text, target, &file, key);
    out->cached = sc_cache_load(sc, folder, key, KEY_PARTS, &out->code);
  }
  if (out->cached) {
    sc_read_log(sc, out->code.log, &out->log);
  } else {
    if (!opened && (wrong = sc_nvrtc_open(sc, &file, &nvrtc))) return unavailable(sc, k, wrong);
    schedc_status status = build_anew(sc, k, text, target, &nvrtc, out);
    if (status) return status;
    if (folder)
      sc_cache_store(sc, folder, sc_cache_limit(options->cache_bytes), key, KEY_PARTS, &out->code);
  }
  out->seconds = now() - start;
  // (debug_waits looks for hangs, and what it builds may well be slow.)
  sc_report_log(sc, k, &out->log, options->lenient || options->emission.debug_waits);
  return sc->errors ? SCHEDC_EINPUT : SCHEDC_OK;
}

bool sc_assemble(Sc *sc, Compilation *c) {
  Assembly *a = c->assembler;
  a->status = sc_build(sc, c->k, c->cuda, a->target, &a->options, &a->built);
  if (a->target == TARGET_PTX && a->built.code.n) a->built.code.n--;  // the NUL behind it
  c->code = a->built.code.at;
  c->code_bytes = a->built.code.n;
  return a->status == SCHEDC_OK;
}
