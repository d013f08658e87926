// inputs.c - the tensors of a meter: what the caller gave, and other kinds of inputs, each drawn
// once and kept in host memory; on the device one of them at a time. In: tensors of the host, or of
// the device. The speed of a kernel may depend on the numbers, so the meter says which kind is to
// be on the device when something is measured.
#include "runtime/api/meter.h"

#include <string.h>

static u64 address(const Inputs *in, u32 i) { return (u64)(uintptr_t)in->device[i].data; }

static size_t storage(const schedc_tensor *t) {
  return sc_storage(&(Extent){t->shape, t->strides, t->rank}) * schedc_type_size(t->type);
}

static bool is_read(const Inputs *in, u32 i) { return in->direction[i] & SCHEDC_IN; }
static bool is_written(const Inputs *in, u32 i) { return in->direction[i] & SCHEDC_OUT; }

static void *memory(Sc *sc, size_t bytes) {
  enum { ALIGNMENT = 64 };
  uintptr_t at = (uintptr_t)sc_new(sc, bytes + ALIGNMENT);
  return (void *)((at + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

int sc_inputs_open(Sc *sc, Inputs *in, const schedc_tensor *tensors) {
  int e = 0;
  in->host = NEWS(sc, schedc_tensor, in->n + 1);
  in->device = NEWS(sc, schedc_tensor, in->n + 1);
  in->bytes = NEWS(sc, size_t, in->n + 1);
  in->direction = NEWS(sc, u8, in->n + 1);
  in->held[0] = NEWS(sc, void *, in->n + 1);
  for (u32 i = 0; i < in->n && !e; i++) {
    in->bytes[i] = storage(&tensors[i]);
    in->host[i] = in->device[i] = tensors[i];
    in->host[i].data = memory(sc, in->bytes[i]);
    in->held[0][i] = memory(sc, in->bytes[i]);
    if (!in->bytes[i]) continue;
    if (in->on_gpu) e = in->d->cuMemcpyDtoH(in->held[0][i], address(in, i), in->bytes[i]);
    else memcpy(in->held[0][i], tensors[i].data, in->bytes[i]);
  }
  return e;
}

int sc_inputs_place(Inputs *in) {
  int e = 0;
  for (u32 i = 0; i < in->n && !e; i++) {
    u64 at = address(in, i);
    if (!in->on_gpu) e = in->d->cuMemAlloc(&at, in->bytes[i] ? in->bytes[i] : 16);
    if (!e) in->device[i].data = (void *)(uintptr_t)at;
    if (!e && in->bytes[i]) e = in->d->cuMemcpyHtoD(at, in->held[0][i], in->bytes[i]);
  }
  in->now = 0;
  in->dirty = false;
  return e;
}

void sc_inputs_remove(Inputs *in) {
  for (u32 i = 0; in->device && i < in->n && !in->on_gpu; i++) {
    if (in->device[i].data) in->d->cuMemFree(address(in, i));
    in->device[i].data = NULL;
  }
}

void sc_inputs_know(Inputs *in, const schedc_kernel *kernel) {
  for (u32 i = 0; i < in->n; i++) {
    u32 buf = sc_given_tensor(kernel->k, in->host[i].name, i);
    in->direction[i] = (u8)kernel->k->buf.at[buf].dir;
  }
  in->known = true;
}

void sc_inputs_draw(Sc *sc, Inputs *in, u32 kind) {
  void **held = NEWS(sc, void *, in->n + 1);
  for (u32 i = 0; i < in->n; i++) {
    held[i] = in->held[0][i];
    if (!is_read(in, i) || in->host[i].type == SCHEDC_I32 || !in->bytes[i]) continue;
    schedc_tensor t = in->host[i];
    t.data = held[i] = memory(sc, in->bytes[i]);
    memcpy(held[i], in->held[0][i], in->bytes[i]);
    schedc_draw(&t, in->kind[kind], in->seed * 1000 + i);
  }
  in->held[kind] = held;
}

int sc_inputs_show(Inputs *in, u32 kind, bool outputs) {
  int e = 0;
  for (u32 i = 0; i < in->n && !e; i++) {
    if (!in->bytes[i]) continue;
    const void *from = in->held[kind][i];
    if (!is_read(in, i)) {
      if (!outputs) continue;
      schedc_poison(&in->host[i]);
      from = in->host[i].data;
    } else if (in->now == kind && !(in->dirty && is_written(in, i))) {
      continue;
    }
    e = in->d->cuMemcpyHtoD(address(in, i), from, in->bytes[i]);
  }
  in->now = kind;
  in->dirty = false;
  return e;
}

int sc_inputs_keep(Inputs *in, u32 kind, const schedc_kernel *maker) {
  int e = 0;
  for (u32 i = 0; i < in->n && !e; i++) {
    u32 buf = sc_given_tensor(maker->k, in->host[i].name, i);
    bool made = buf != SC_NONE && maker->k->buf.at[buf].dir & SCHEDC_OUT;
    if (made && in->bytes[i] && in->held[kind][i] != in->held[0][i])
      e = in->d->cuMemcpyDtoH(in->held[kind][i], address(in, i), in->bytes[i]);
  }
  return e;
}

int sc_inputs_read(Inputs *in) {
  int e = 0;
  in->dirty = true;
  for (u32 i = 0; i < in->n && !e; i++)
    if (is_written(in, i) && in->bytes[i])
      e = in->d->cuMemcpyDtoH(in->host[i].data, address(in, i), in->bytes[i]);
  return e;
}
