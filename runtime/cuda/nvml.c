// nvml.c - reads the clock of the multiprocessors and the power that the board draws, by NVIDIA's
// management library, which comes with the driver. Where the library cannot be opened, or the
// device is not found, they are not known.
#include <dlfcn.h>
#include <string.h>

#include "runtime/cuda/gpu.h"

enum { CLOCK_SM = 1 };

static bool find(void *library, const char *name, void *to) {
  void *f = dlsym(library, name);
  memcpy(to, &f, sizeof f);
  return f;
}

void sc_nvml_open(Nvml *n, const char *bus) {
  int (*start)(void), (*by_bus)(const char *id, void **device);
  memset(n, 0, sizeof *n);
  n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!n->library) return;
  bool there = find(n->library, "nvmlInit_v2", &start) &&
               find(n->library, "nvmlDeviceGetHandleByPciBusId_v2", &by_bus) &&
               find(n->library, "nvmlDeviceGetClockInfo", &n->clock) &&
               find(n->library, "nvmlDeviceGetPowerUsage", &n->power) &&
               find(n->library, "nvmlShutdown", &n->shutdown);
  if (there && !start()) {
    if (by_bus(bus, &n->device)) n->device = NULL;
    return;
  }
  dlclose(n->library);
  n->library = NULL;
}

void sc_nvml_close(Nvml *n) {
  if (!n->library) return;
  n->shutdown();
  dlclose(n->library);
  n->library = NULL;
}

unsigned sc_nvml_clock(const Nvml *n) {
  unsigned mhz = 0;
  if (!n->library || !n->device || n->clock(n->device, CLOCK_SM, &mhz)) return 0;
  return mhz;
}

unsigned sc_nvml_power(const Nvml *n) {
  unsigned milliwatts = 0;
  if (!n->library || !n->device || n->power(n->device, &milliwatts)) return 0;
  return milliwatts;
}
