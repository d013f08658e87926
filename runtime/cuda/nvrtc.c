// nvrtc.c - compiles CUDA C to PTX or machine code by NVRTC, which it finds and opens at run time.
// Options are fixed, and nothing is included. The library can be found without being opened: to
// open it takes longer than a hit in the cache should.
#define _GNU_SOURCE  // secure_getenv, dladdr
#include "runtime/cuda/build.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *const sc_nvrtc_options[2][6] = {
    [TARGET_PTX] = {"--gpu-architecture=compute_90a", "-lineinfo", "--std=c++17", NULL},
    [TARGET_CUBIN] = {"--gpu-architecture=sm_90a", "-lineinfo", "--ptxas-options=-v", "--std=c++17",
                      NULL},
};

static const char *const sonames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

#define HOW_TO_GET_IT                                                                            \
  "it comes with the CUDA toolkit (12.3 or newer); or `pip install nvidia-cuda-nvrtc`, and set " \
  "SCHEDC_NVRTC "                                                                                \
  "to the path of the libnvrtc.so.13 that it installs"

// ---- finding it

const char *sc_variable(const char *name) {
  const char *value = secure_getenv(name);
  return value && *value ? value : NULL;
}

static const char *identity_of(Sc *sc, const char *path) {
  struct stat st;
  char real[PATH_MAX];
  if (!realpath(path, real) || stat(real, &st) != 0 || !S_ISREG(st.st_mode)) return NULL;
  return sc_printf(sc, "%s %lld %lld.%09ld", real, (long long)st.st_size,
                   (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

static bool found_at(Sc *sc, const char *path, NvrtcFile *out) {
  out->path = path;
  out->identity = identity_of(sc, path);
  return out->identity != NULL;
}

static bool found_in(Sc *sc, const char *folder, NvrtcFile *out) {
  for (u32 i = 0; i < COUNT(sonames); i++) {
    if (found_at(sc, sc_printf(sc, "%s/%s", folder, sonames[i]), out)) return true;
  }
  return false;
}

static bool found_in_list(Sc *sc, const char *folders, NvrtcFile *out) {
  for (size_t n; folders && *folders; folders += n + (folders[n] == ':')) {
    n = strcspn(folders, ":");
    if (n && found_in(sc, sc_printf(sc, "%.*s", (int)n, folders), out)) return true;
  }
  return false;
}

const char *sc_nvrtc_find(Sc *sc, NvrtcFile *out) {
  const char *chosen = sc_variable("SCHEDC_NVRTC");
  if (chosen)
    return found_at(sc, chosen, out)
               ? NULL
               : sc_printf(sc, "SCHEDC_NVRTC names '%s', where there is no file", chosen);
  static const char *const homes[] = {"CUDA_HOME", "CUDA_PATH"};
  if (found_in_list(sc, sc_variable("LD_LIBRARY_PATH"), out)) return NULL;
  for (u32 i = 0; i < COUNT(homes); i++) {
    const char *home = sc_variable(homes[i]);
    if (home && found_in(sc, sc_printf(sc, "%s/lib64", home), out)) return NULL;
  }
  if (!found_in(sc, "/usr/local/cuda/lib64", out)) *out = (NvrtcFile){NULL, NULL};
  return NULL;
}

// ---- opening it

static bool resolve(Nvrtc *n) {
#define NVRTC(name, symbol, params)      \
  {                                      \
    void *f = dlsym(n->library, symbol); \
    if (!f) return false;                \
    memcpy(&n->name, &f, sizeof f);      \
  }
#include "runtime/cuda/nvrtc.def"
#undef NVRTC
  return true;
}

static void open_by_name(Sc *sc, NvrtcFile *file, Nvrtc *n) {
  for (u32 i = 0; i < COUNT(sonames) && !n->library; i++)
    n->library = dlopen(sonames[i], RTLD_NOW | RTLD_LOCAL);
  Dl_info info;
  void *f = n->library ? dlsym(n->library, "nvrtcVersion") : NULL;
  if (f && dladdr(f, &info) && info.dli_fname)
    found_at(sc, sc_printf(sc, "%s", info.dli_fname), file);
}

const char *sc_nvrtc_open(Sc *sc, NvrtcFile *file, Nvrtc *out) {
  *out = (Nvrtc){0};
  if (file->path) out->library = dlopen(file->path, RTLD_NOW | RTLD_LOCAL);
  else open_by_name(sc, file, out);
  if (!out->library && file->path)
    return sc_printf(sc, "NVRTC cannot be opened (%s): " HOW_TO_GET_IT, dlerror());
  if (!out->library) return "NVRTC is missing (libnvrtc.so.13 or .12): " HOW_TO_GET_IT;
  int major = 0, minor = 0;
  bool good = resolve(out) && !out->version(&major, &minor);
  // wgmma and setmaxnreg came with 12.0; 12.3 is the first that knows all forms that are emitted.
  if (!good || major < 12 || (major == 12 && minor < 3)) {
    return sc_printf(sc, "NVRTC %d.%d (%s) is too old: " HOW_TO_GET_IT, major, minor,
                     file->path ? file->path : "libnvrtc.so");
  }
  return NULL;
}

unsigned sc_nvrtc_version(Sc *sc) {
  NvrtcFile file;
  Nvrtc nvrtc;
  int major = 0, minor = 0;
  if (sc_nvrtc_find(sc, &file) || sc_nvrtc_open(sc, &file, &nvrtc)) return 0;
  return nvrtc.version(&major, &minor) ? 0 : (unsigned)(major * 1000 + minor * 10);
}

// ---- building

enum { COMPILATION_ERROR = 6 };  // nvrtcResult

static void take_log(Sc *sc, const Nvrtc *n, void *program, Binary *out) {
  size_t size = 0;
  if (n->log_size(program, &size) || !size) return;
  char *log = sc_new(sc, size + 1);
  if (!n->log(program, log)) out->log = log;
}

// NVRTC keeps the PTX from which ptxas made machine code.
static void take_ptx(Sc *sc, const Nvrtc *n, void *program, Binary *out) {
  size_t size = 0;
  if (n->ptx_size(program, &size) || size < 2) return;
  char *at = sc_new(sc, size + 1);
  if (!n->ptx(program, at)) out->ptx = at;
}

static bool take_code(Sc *sc, const Nvrtc *n, void *program, Target target, Binary *out) {
  take_ptx(sc, n, program, out);
  if (target == TARGET_PTX) {
    out->at = out->ptx;
    out->n = out->ptx ? strlen(out->ptx) + 1 : 0;
    return out->ptx != NULL;
  }
  size_t size = 0;
  if (n->cubin_size(program, &size) || !size) return false;
  char *at = sc_new(sc, size);
  out->at = at;
  out->n = size;
  return !n->cubin(program, at);
}

// Nothing here may unwind: the program would never be destroyed.
static const char *compile_program(Sc *sc, const Nvrtc *n, void *program, Target target,
                                   Binary *out) {
  const char *const *option = sc_nvrtc_options[target];
  int options = 0;
  while (option[options]) options++;
  int wrong = n->compile(program, options, option);
  take_log(sc, n, program, out);
  out->refused = wrong == COMPILATION_ERROR;
  if (out->refused) return "NVRTC refuses the emitted code";
  if (wrong) return sc_printf(sc, "NVRTC does not work (error %d)", wrong);
  return take_code(sc, n, program, target, out) ? NULL : "NVRTC gives no code";
}

const char *sc_nvrtc(Sc *sc, const Nvrtc *n, Target target, const char *name, const char *text,
                     Binary *out) {
  *out = (Binary){.log = ""};
  void *program = NULL;
  if (n->create(&program, text, name, 0, NULL, NULL)) return "NVRTC does not start";
  jmp_buf *caller = sc->unwind, here;
  sc->unwind = &here;
  if (setjmp(here)) {
    sc->unwind = caller;
    n->destroy(&program);
    sc_unwind(sc, sc->why);
  }
  const char *wrong = compile_program(sc, n, program, target, out);
  sc->unwind = caller;
  n->destroy(&program);
  return wrong;
}
