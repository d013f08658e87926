// nvrtc.c - CUDA C to machine code by NVRTC, opened at run time. Options are fixed; nothing is included.
#include "gpu.h"

#include <dlfcn.h>
#include <string.h>

typedef struct Nvrtc {
  void *library;
  int (*create)(void **program, const char *source, const char *name, int headers, const char *const *texts, const char *const *names);
  int (*compile)(void *program, int options, const char *const *option);
  int (*destroy)(void **program);
  int (*log_size)(void *program, size_t *n);
  int (*log)(void *program, char *to);
  int (*cubin_size)(void *program, size_t *n);
  int (*cubin)(void *program, char *to);
} Nvrtc;

static const char *const sonames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

static bool resolve(Nvrtc *n) {
  struct { const char *name; void *to; } f[] = {
      {"nvrtcCreateProgram", &n->create}, {"nvrtcCompileProgram", &n->compile}, {"nvrtcDestroyProgram", &n->destroy},
      {"nvrtcGetProgramLogSize", &n->log_size}, {"nvrtcGetProgramLog", &n->log},
      {"nvrtcGetCUBINSize", &n->cubin_size}, {"nvrtcGetCUBIN", &n->cubin}};
  for (u32 i = 0; i < COUNT(f); i++) {
    void *at = dlsym(n->library, f[i].name);
    if (!at) return false;
    memcpy(f[i].to, &at, sizeof at);
  }
  return true;
}

static const char *open_library(Nvrtc *n) {
  for (u32 i = 0; i < COUNT(sonames) && !n->library; i++) n->library = dlopen(sonames[i], RTLD_NOW | RTLD_LOCAL);
  if (!n->library) {
    return "no NVRTC (libnvrtc.so.13 or .12): it comes with the CUDA toolkit, or with `pip install nvidia-cuda-nvrtc`; "
           "its folder must be on LD_LIBRARY_PATH";
  }
  return resolve(n) ? NULL : "this NVRTC is too old: version 12.0 or newer is needed";
}

static const char *build(Sc *sc, const Nvrtc *n, void *program, Cubin *out) {
  static const char *const options[] = {"--gpu-architecture=sm_90a", "-lineinfo", "--ptxas-options=-v"};
  int wrong = n->compile(program, COUNT(options), options);
  size_t size = 0;
  n->log_size(program, &size);
  char *log = sc_new(sc, size + 1);
  n->log(program, log);
  out->log = log;
  if (wrong) return sc_printf(sc, "NVRTC refuses the emitted code (a defect of schedc):\n%s", log);
  n->cubin_size(program, &size);
  char *at = sc_new(sc, size);
  n->cubin(program, at);
  out->at = at;
  out->n = size;
  return NULL;
}

const char *sc_nvrtc(Sc *sc, const char *name, const char *text, Cubin *out) {
  Nvrtc n = {0};
  void *program = NULL;
  const char *wrong = open_library(&n);
  if (!wrong && n.create(&program, text, name, 0, NULL, NULL)) wrong = "NVRTC does not start";
  if (!wrong) wrong = build(sc, &n, program, out);
  if (program) n.destroy(&program);
  return wrong;  // the library stays open: NVRTC does not survive being unloaded and loaded again
}
