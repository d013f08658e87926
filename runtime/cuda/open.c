// open.c - opens a GPU by its number, and tells what it is and whether kernels run on it. In: the
// driver, opened at run time, and an ordinal as the driver counts (CUDA_VISIBLE_DEVICES hides and
// reorders devices). Out: the device's primary context, retained until it is closed, and facts
// about the device.
#include "runtime/cuda/gpu.h"

#include <string.h>

enum {
  ATTR_CLOCK = 13,  // kHz
  ATTR_SMS = 16,
  ATTR_L2 = 38
};

static const char *find(Sc *sc, const Driver *d, int ordinal, int *device) {
  int n = 0, e = d->cuDeviceGetCount(&n);
  if (e || !n) return "no CUDA device";
  if (ordinal >= n)
    return sc_printf(sc, "there is no CUDA device %d: this machine has %d, counted from 0", ordinal,
                     n);
  e = d->cuDeviceGet(device, ordinal);
  return e ? sc_printf(sc, "CUDA device %d does not answer: %s", ordinal, sc_driver_error(d, e))
           : NULL;
}

// Writes a UUID as nvidia-smi does: GPU-8-4-4-4-12 hexadecimal digits.
static void print_uuid(char *to, const unsigned char *bytes) {
  static const char digit[] = "0123456789abcdef";
  memcpy(to, "GPU", 3);
  to += 3;
  for (u32 i = 0; i < 16; i++) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) *to++ = '-';
    *to++ = digit[bytes[i] >> 4];
    *to++ = digit[bytes[i] & 15];
  }
  *to = 0;
}

static int ask(const Driver *d, int device, GpuFacts *f) {
  unsigned char uuid[16] = {0};
  int e = d->cuDeviceGetName(f->name, sizeof f->name, device);
  if (!e) e = d->cuDeviceGetPCIBusId(f->bus, sizeof f->bus, device);
  if (!e) e = d->cuDeviceGetUuid(uuid, device);
  if (!e) e = d->cuDeviceTotalMem(&f->memory, device);
  if (!e) e = d->cuDeviceGetAttribute(&f->sms, ATTR_SMS, device);
  if (!e) e = sc_capability(d, device, &f->major, &f->minor);
  if (!e) e = d->cuDeviceGetAttribute(&f->clock_khz, ATTR_CLOCK, device);
  if (!e) e = d->cuDeviceGetAttribute(&f->l2, ATTR_L2, device);
  if (!e) e = d->cuDriverGetVersion(&f->version);
  print_uuid(f->uuid, uuid);
  return e;
}

const char *sc_gpu_open(Gpu *g) {
  const char *wrong = sc_driver_open(&g->sc, &g->d);
  if (!wrong) wrong = find(&g->sc, &g->d, g->ordinal, &g->device);
  if (wrong) return wrong;
  int e = ask(&g->d, g->device, &g->facts);
  if (!e) e = g->d.cuDevicePrimaryCtxRetain(&g->context, g->device);
  return e ? sc_gpu_failed(g, &g->sc, "the CUDA device does not start", e) : NULL;
}

void sc_gpu_close(Gpu *g) {
  if (g->context) g->d.cuDevicePrimaryCtxRelease(g->device);
  g->context = NULL;
  sc_driver_close(&g->d);
}

const char *sc_gpu_missing(Sc *sc, int ordinal) {
  Driver d;
  NvrtcFile file;
  int device;
  const char *wrong = sc_driver_open(sc, &d);
  if (wrong) return wrong;
  wrong = find(sc, &d, ordinal, &device);
  if (!wrong) wrong = sc_no_hopper(sc, &d, device);
  sc_driver_close(&d);
  return wrong ? wrong : sc_nvrtc_find(sc, &file);
}

const char *sc_gpu_count(Sc *sc, int *n) {
  Driver d;
  const char *wrong = sc_driver_open(sc, &d);
  if (wrong) return wrong;
  int e = d.cuDeviceGetCount(n);
  if (e) wrong = sc_printf(sc, "the CUDA driver does not answer: %s", sc_driver_error(&d, e));
  sc_driver_close(&d);
  return wrong;
}
