// load.c - builds a kernel or sequence and loads it on the current CUDA context. In: IR after
// `place`. Out: modules, and all the memory that launches will need, so that they allocate nothing.
// The same context is current afterwards.
#include "runtime/cuda/gpu.h"

#include <string.h>

enum { HOST_PORTABLE_MAPPED = 3 };

static const char *failed(Loaded *l, const char *what, int e) {
  return sc_printf(l->sc, "%s: %s", what, sc_driver_error(l->d, e));
}

// The current context, which must be on a Hopper GPU.
static const char *find_device(Loaded *l) {
  const Driver *d = l->d;
  int device, e = d->cuCtxGetCurrent(&l->context);
  if (e) return failed(l, "the CUDA context cannot be asked for", e);
  if (!l->context)
    return "no CUDA context is current: make one first (cuCtxSetCurrent, cudaFree(0), "
           "torch.cuda.init())";
  e = d->cuCtxGetDevice(&device);
  return e ? failed(l, "the CUDA context has no device", e) : sc_no_hopper(l->sc, d, device);
}

bool sc_emit_all(Sc *sc, const Kernel *k, const BuildOptions *options, Loaded *l) {
  Compilation c = {.k = k, .emission = options->emission};
  *l = (Loaded){.sc = sc, .k = k, .log = ""};
  if (!sc_compile(sc, &c, "place", "cuda")) return false;
  l->text = c.cuda;
  sc_table(sc, k, l->text, options->trust_elements, &l->tabled);
  l->tensors = l->tabled.table.given;
  return true;
}

static schedc_status build_code(Sc *sc, const BuildOptions *options, Loaded *l) {
  Built built;
  schedc_status status = sc_build(sc, l->k, l->text, TARGET_CUBIN, options, &built);
  l->code = built.code.at;
  l->log = built.code.log;
  return status;
}

static schedc_status take_code(Sc *sc, Blob sealed, Loaded *l) {
  const char *wrong = sc_unseal(sc, l->text, sealed, &l->code);
  if (!wrong) return SCHEDC_OK;
  Diag *d = sc_report(sc, D_G_CUBIN, l->k->span,
                      "the machine code that is given is not that of '%s': %s", l->k->name, wrong);
  sc_help(sc, d, "build it anew: the same file, kernel, parameters and options, by schedc %s",
          schedc_version());
  return SCHEDC_EINPUT;
}

schedc_status sc_make_code(Sc *sc, const Kernel *k, const BuildOptions *options, Blob sealed,
                           Loaded *l) {
  if (!sc_emit_all(sc, k, options, l)) return SCHEDC_EINPUT;
  return sealed.n ? take_code(sc, sealed, l) : build_code(sc, options, l);
}

// ---- loading

static const char *memory_for_waits(Loaded *l) {
  size_t words = 0;
  for (u32 i = 0; i < l->tabled.table.steps; i++) words += sc_step_text(l->text, i)->wait_words;
  if (!words) return NULL;
  void *at;
  int e = l->d->cuMemHostAlloc(&at, words * 4, HOST_PORTABLE_MAPPED);
  if (e) return failed(l, "no pinned memory for --debug-waits", e);
  l->waits = at;
  memset(at, 0, words * 4);
  e = l->d->cuMemHostGetDevicePointer(&l->kernel.waits, at, 0);
  return e ? failed(l, "the GPU does not see pinned memory", e) : NULL;
}

// Allocates the parts of a plan, with tensor maps aligned as the driver wants them.
static void plan_room(Loaded *l, LaunchPlan *p) {
  const SclTable *t = &l->tabled.table;
  Sc *sc = l->sc;
  p->shape = NEWS(sc, i64, l->tensors * SC_MAX_RANK + 1);
  p->stride = NEWS(sc, i64, l->tensors * SC_MAX_RANK + 1);
  p->scalar = NEWS(sc, double, l->k->arg.n + 1);
  uintptr_t room = (uintptr_t)sc_new(sc, scl_lay_out(t, &p->plan, NULL) + 63);
  scl_lay_out(t, &p->plan, (void *)((room + 63) / 64 * 64));
}

const char *sc_load(Loaded *l, const Driver *d) {
  l->d = d;
  l->function = NEWS(l->sc, SclLoaded, l->tabled.table.functions);
  l->given = NEWS(l->sc, SclGiven, l->tensors + 1);
  for (u32 i = 0; i < PLANS; i++) plan_room(l, &l->plan[i]);
  const char *wrong = find_device(l);
  if (wrong) return wrong;
  l->kernel = (SclKernel){.driver = d};
  const SclRefusal r = scl_load(&l->kernel, l->function, &l->tabled.table, l->code);
  wrong = sc_not_loaded(l, &r);
  return wrong ? wrong : memory_for_waits(l);
}

void sc_unload(Loaded *l) {
  void *other;
  if (!l->context || l->d->cuCtxPushCurrent(l->context)) return;
  scl_unload(&l->kernel);
  if (l->waits) l->d->cuMemFreeHost(l->waits);
  l->d->cuCtxPopCurrent(&other);
}
