// driver.c - opens the CUDA driver at run time. In: the library's name, or SCHEDC_DRIVER. Out: the
// addresses of the functions in driver.def, or the reason why there are none.
#include "runtime/cuda/gpu.h"

#include <dlfcn.h>
#include <string.h>

const char *sc_driver_error(const Driver *d, int error) {
  const char *text = NULL;
  if (d->cuGetErrorString(error, &text) || !text) return "unknown CUDA error";
  return text;
}

const char *sc_gpu_failed(Gpu *g, Sc *sc, const char *what, int e) {
  return sc_printf(sc, "%s: %s", what, sc_driver_error(&g->d, e));
}

int sc_capability(const Driver *d, int device, int *major, int *minor) {
  enum { ATTR_MAJOR = 75, ATTR_MINOR = 76 };
  int e = d->cuDeviceGetAttribute(major, ATTR_MAJOR, device);
  return e ? e : d->cuDeviceGetAttribute(minor, ATTR_MINOR, device);
}

const char *sc_no_hopper(Sc *sc, const Driver *d, int device) {
  int major = 0, minor = 0, e = sc_capability(d, device, &major, &minor);
  if (e) return sc_printf(sc, "the CUDA device does not answer: %s", sc_driver_error(d, e));
  if (major == 9 && minor == 0) return NULL;
  return sc_printf(sc, "the GPU has compute capability %d.%d, not 9.0 (Hopper)", major, minor);
}

static const char *resolve(Sc *sc, Driver *d) {
#define CU(name, symbol, params)                                                                 \
  {                                                                                              \
    void *f = dlsym(d->library, symbol);                                                         \
    if (!f)                                                                                      \
      return sc_printf(sc, "the CUDA driver lacks %s: version 12.0 or newer is needed", symbol); \
    memcpy(&d->name, &f, sizeof f);                                                              \
  }
#include "runtime/cuda/driver.def"
#undef CU
  void *f = dlsym(d->library, "schedc_model_fault");
  memcpy(&d->model_fault, &f, sizeof f);
  return NULL;
}

const char *sc_driver_open(Sc *sc, Driver *d) {
  memset(d, 0, sizeof *d);
  const char *chosen = sc_variable("SCHEDC_DRIVER");
  // It stays when the last of us has closed it: it may have left threads behind, and destructors of
  // the caller's.
  d->library = dlopen(chosen ? chosen : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!d->library && chosen)
    return sc_printf(sc, "SCHEDC_DRIVER names a driver that cannot be opened: %s", dlerror());
  if (!d->library) return "no CUDA driver (libcuda.so.1): it comes with NVIDIA's GPU driver";
  const char *wrong = resolve(sc, d);
  int e;
  if (!wrong && (e = d->cuInit(0)))
    wrong = sc_printf(sc, "the CUDA driver does not start: %s", sc_driver_error(d, e));
  if (wrong) sc_driver_close(d);
  return wrong;
}

void sc_driver_close(Driver *d) {
  if (d->library) dlclose(d->library);
  d->library = NULL;
}
