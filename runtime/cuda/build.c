// build.c - makes machine code of a kernel's text, once. In: the kernel and its text. Out: a Built.
// Code that was built before comes from the cache, without opening NVRTC. The messages of ptxas are
// stored with it, so that spills are reported every time. Code that another NVRTC made is made
// again; where there is no NVRTC, code of any NVRTC is taken, and the report says of which. The PTX
// is compared with the plan before the code is returned or stored.
#include "runtime/cuda/build.h"
#include "runtime/ptx/ptx.h"

#include <string.h>
#include <time.h>

double sc_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static Blob text_blob(const char *text) { return (Blob){text, strlen(text)}; }

// The key of an entry in the cache: everything that the code depends on, and (part MAKER) the NVRTC
// that makes it, which is not known where there is none.
enum { MAKER = 3, KEY_PARTS = 4 };
static void make_key(Sc *sc, const char *text, Target target, Blob key[KEY_PARTS]) {
  Str options = {.sc = sc};
  for (const char *const *o = sc_nvrtc_options[target]; *o; o++) str_printf(&options, "%s\n", *o);
  key[0] = text_blob(text);
  key[1] = text_blob(options.at);  // the architecture is one of them
  key[2] = text_blob(schedc_version());
  key[MAKER] = text_blob("");
}

// ---- the cache. A second entry for each kernel says which NVRTC made its code last, for processes
// without NVRTC

static Blob last_maker(Sc *sc, const Blob key[KEY_PARTS]) {
  Str name = {.sc = sc};
  str_puts(&name, "made last by");
  for (u32 i = 0; i < MAKER; i++)
    str_printf(&name, " %016llx", (unsigned long long)sc_hash(key[i].at, key[i].n));
  return text_blob(name.at);
}

static bool load(Sc *sc, const char *folder, Blob key[KEY_PARTS], Built *out) {
  Binary last;
  Blob name = last_maker(sc, key);
  if (!out->maker && sc_cache_load(sc, folder, &name, 1, &last))
    out->maker = sc_printf(sc, "%.*s", (int)last.n, (const char *)last.at);
  if (!out->maker) return false;
  key[MAKER] = text_blob(out->maker);
  return sc_cache_load(sc, folder, key, KEY_PARTS, &out->code);
}

// Is it PTX, or machine code of a GPU, by the machine number in its ELF header? The model's
// stand-in for NVRTC makes code for the host, which no process without NVRTC may get.
static bool is_for_gpu(const Binary *code) {
  enum { E_MACHINE = 18, EM_CUDA = 190 };
  const unsigned char *at = code->at;
  return code->n > E_MACHINE && (memcmp(at, "\177ELF", 4) != 0 || at[E_MACHINE] == EM_CUDA);
}

static void store(Sc *sc, const Kernel *k, const char *folder, u64 most, Blob key[KEY_PARTS],
                  const Built *b) {
  Blob name = last_maker(sc, key);
  const char *wrong;
  u64 limit = sc_cache_limit(most, &wrong);
  if (wrong) {
    Diag *d =
        sc_report(sc, D_G_CACHE, k->span, "SCHEDC_CACHE_SIZE is '%s', which is no size", wrong);
    sc_help(sc, d, "a number of bytes, or one with K, M or G: SCHEDC_CACHE_SIZE=500M");
  }
  key[MAKER] = text_blob(b->maker);
  sc_cache_store(sc, folder, limit, key, KEY_PARTS, &b->code);
  if (is_for_gpu(&b->code))
    sc_cache_store(sc, folder, limit, &name, 1, &(Binary){b->maker, strlen(b->maker), "", false});
}

// ---- building

static schedc_status unavailable(Sc *sc, const Kernel *k, const char *wrong) {
  sc_report(sc, D_G_NVRTC, k->span, "%s", wrong);
  return SCHEDC_EUNAVAIL;
}

// Reports a fault of the machine rather than of the text, with what NVRTC said about it.
static schedc_status does_not_work(Sc *sc, const Kernel *k, const char *wrong,
                                   const BuildLog *log) {
  for (u32 i = 0; i < log->remark.n; i++) {
    const Remark *r = &log->remark.at[i];
    if (r->kind == REMARK_ERROR) return unavailable(sc, k, sc_printf(sc, "%s: %s", wrong, r->text));
  }
  return unavailable(sc, k, wrong);
}

// Compares the PTX with the plan. planned: it agrees, or cannot be compared: with debug_waits,
// waits have other instructions than the plan says, and the model's stand-in for NVRTC makes no
// PTX.
static schedc_status compare(Sc *sc, const Kernel *k, const CudaText *cuda, bool debug_waits,
                             const Binary *code, bool *planned) {
  *planned = true;
  if (debug_waits || !is_for_gpu(code)) return SCHEDC_OK;
  if (!code->ptx) return unavailable(sc, k, "NVRTC does not give the PTX of what it built");
  *planned = sc_ptx_check(sc, k, cuda, code->ptx);
  return *planned || sc->unverified ? SCHEDC_OK : SCHEDC_EINPUT;
}

// Does the log say why the text was refused? (When memory is short, ptxas says only that it was
// aborted.)
static bool says_why(const BuildLog *log) {
  for (u32 i = 0; i < log->remark.n; i++) {
    const Remark *r = &log->remark.at[i];
    if (r->kind == REMARK_ERROR && !strstr(r->text, "aborted due to errors") &&
        !strstr(r->text, "Memory allocation failure"))
      return true;
  }
  return false;
}

static schedc_status build_anew(Sc *sc, const Kernel *k, const char *text, Target target,
                                const Nvrtc *n, Built *out) {
  const char *wrong = sc_nvrtc(sc, n, target, sc_printf(sc, "%s.cu", k->name), text, &out->code);
  sc_read_log(sc, out->code.log, &out->log);
  if (!wrong) return SCHEDC_OK;
  if (out->code.refused && !says_why(&out->log))
    return unavailable(sc, k, "NVRTC gives up and does not say why: has it too little memory?");
  if (!out->code.refused) return does_not_work(sc, k, wrong, &out->log);
  u32 before = sc->errors;
  sc_report_log(sc, k, &out->log, false);
  if (sc->errors == before) sc_report(sc, D_G_NVRTC, k->span, "%s", wrong);
  return SCHEDC_EINPUT;
}

// Looks for the code in the cache; where there is no NVRTC, for code of any NVRTC.
static bool find(Sc *sc, const char *folder, Blob key[KEY_PARTS], const NvrtcFile *file,
                 Built *out) {
  out->maker = file->identity;
  out->cached = folder && load(sc, folder, key, out);
  if (out->cached) sc_read_log(sc, out->code.log, &out->log);
  return out->cached;
}

schedc_status sc_build(Sc *sc, const Kernel *k, const CudaText *cuda, Target target,
                       const BuildOptions *options, Built *out) {
  *out = (Built){.code.log = ""};
  double start = sc_now();
  const char *text = sc_cuda_lined(sc, cuda), *folder = NULL;
  NvrtcFile file = {0};
  Nvrtc nvrtc = {0};
  Blob key[KEY_PARTS];
  make_key(sc, text, target, key);
  const char *wrong = sc_nvrtc_find(sc, &file);
  if (!options->no_cache) folder = sc_cache_folder(sc, options->cache);
  if (!wrong && folder && !file.identity)  // the loader alone knows which file it is
    wrong = sc_nvrtc_open(sc, &file, &nvrtc);
  if (!wrong && !file.identity) folder = NULL;
  out->no_nvrtc = wrong != NULL;
  if (!find(sc, folder, key, &file, out)) {
    if (!wrong && !nvrtc.library) wrong = sc_nvrtc_open(sc, &file, &nvrtc);
    if (wrong) return unavailable(sc, k, wrong);
    out->maker = file.identity;
    bool planned;
    schedc_status status = build_anew(sc, k, text, target, &nvrtc, out);
    if (!status) status = compare(sc, k, cuda, options->emission.debug_waits, &out->code, &planned);
    if (status) return status;
    if (folder && planned)  // what is not, is reported each time
      store(sc, k, folder, options->cache_bytes, key, out);
  }
  out->seconds = sc_now() - start;
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
