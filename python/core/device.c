// device.c - the primary context of a CUDA device, which PyTorch, CuPy and JAX use, made current
// for a call where it is not.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

static int unavailable(const char *why) {
  PyErr_Format(PyExc_OSError, "no CUDA driver: %s", why);
  return -1;
}

// The library that SCHEDC_DRIVER names, as in schedc.h, or the system's.
static int driver_open(Driver *driver) {
  const char *named = secure_getenv("SCHEDC_DRIVER");
  const struct {
    const char *name;
    void *at;
  } functions[] = {{"cuInit", &driver->init},
                   {"cuDeviceGet", &driver->find},
                   {"cuDevicePrimaryCtxRetain", &driver->retain},
                   {"cuCtxGetCurrent", &driver->current},
                   {"cuCtxPushCurrent_v2", &driver->push},
                   {"cuCtxPopCurrent_v2", &driver->pop},
                   {"cuStreamSynchronize", &driver->synchronize},
                   {"cuCtxSynchronize", &driver->wait_for_all}};
  driver->library = dlopen(named ? named : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver->library) return unavailable(dlerror());
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    void *found = dlsym(driver->library, functions[i].name);
    if (!found) return unavailable(dlerror());
    memcpy(functions[i].at, &found, sizeof found);
  }
  return 0;
}

int device_open(Device *d, int number) {
  int device;
  d->number = number;
  if (driver_open(&d->driver)) return -1;
  int error = d->driver.init(0);
  if (!error) error = d->driver.find(&device, number);
  if (!error) error = d->driver.retain(&d->context, device);
  if (!error) return 0;
  PyErr_Format(PyExc_OSError, "CUDA error %d on opening device %d", error, number);
  return -1;
}

int device_is_current(const Device *d) {
  void *current = NULL;
  return !d->driver.current(&current) && current == d->context;
}

int device_enter(const Device *d) {
  if (device_is_current(d)) return 0;
  const int error = d->driver.push(d->context);
  if (!error) return 1;
  PyErr_Format(PyExc_OSError, "CUDA error %d on making device %d current", error, d->number);
  return -1;
}

void device_leave(const Device *d, int entered) {
  void *context;
  if (entered > 0) d->driver.pop(&context);
}
