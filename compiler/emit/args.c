// args.c - the parameters of a kernel's function: tensor maps, then the struct of arguments; and
// whether a CTA and a launch have room for what the text needs. In: a kernel whose function has
// been written. Out: the struct's declaration. Called by frame.c.
#include "compiler/emit/emit.h"
#include "compiler/place/place.h"

enum {
  PARAMS_LIMIT = 32764,  // bytes of a launch's parameters (CUDA 12.1 and later)
  MAP_BYTES = 128,       // of a tensor map
};

// With --debug-waits, named barriers take shared memory, too.
bool cu_memory_fits(const Cuda *c) {
  u32 want = cu_smem(c);
  if (want <= SMEM_LIMIT) return true;
  Diag *d = sc_report(c->sc, D_G_EMIT, c->k->span,
                      "'%s' needs %u bytes of shared memory with --debug-waits, and a CTA has %d",
                      c->k->name, want, SMEM_LIMIT);
  sc_help(c->sc, d, "look for the wait with smaller tiles, or with a stage fewer in a ring");
  return false;
}

static bool params_fit(const Cuda *c, u64 args) {
  u64 maps = (u64)c->tma.n * MAP_BYTES;
  if (maps + args <= PARAMS_LIMIT) return true;
  Diag *d = sc_report(c->sc, D_G_EMIT, c->k->span,
                      "'%s' needs %llu bytes of parameters, and a launch has %d", c->k->name,
                      (unsigned long long)(maps + args), PARAMS_LIMIT);
  sc_help(c->sc, d,
          "%u tensor maps of %d bytes (one for each tensor and each shape of tile that is copied), "
          "and %llu bytes of addresses, strides, dimensions and scalars: share the work between "
          "several kernels",
          c->tma.n, MAP_BYTES, (unsigned long long)args);
  return false;
}

// Counts n fields of a size that stand behind `bytes`.
static void add(u64 *bytes, u32 n, u32 size) {
  if (n) *bytes = (*bytes + size - 1) / size * size + (u64)n * size;
}

bool cu_put_args(Cuda *c, Str *out) {
  const Kernel *k = c->k;
  u64 bytes = 0;
  str_printf(out, "struct %s_args {\n", c->function);
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *b = &k->buf.at[i];
    if (b->space != SP_TENSOR || !c->by_thread[i]) continue;
    str_printf(out, "  %s *%s;  // %s\n  long long %s_stride[%u];  // elements\n", cu_kept(b->elem),
               c->name[i], sc_elem[b->elem].text, c->name[i], b->rank);
    add(&bytes, 1 + b->rank, 8);
  }
  for (u32 i = 0; i < k->dim.n; i++)
    str_printf(out, "%s%s%s", i ? ", " : "  int ", sc_cuda_name(c->sc, k->dim.at[i].name),
               i + 1 < k->dim.n ? "" : ";\n");
  for (u32 i = 0; i < k->arg.n; i++)
    str_printf(out, "  %s %s;\n", cu_held(k->arg.at[i].elem),
               sc_cuda_name(c->sc, k->arg.at[i].name));
  add(&bytes, k->dim.n + k->arg.n, 4);
  if (k->grid == GRID_DYNAMIC) {
    str_puts(out, "  int *counter;  // of drawn tiles; 0 between launches\n");
    add(&bytes, 1, 8);
  }
  for (u32 i = 0; i < k->turn.n; i++) {
    if (!sc_turn_over_ctas(&k->turn.at[i])) continue;
    str_printf(out, "  int *turn%u;  // %s: how often it was passed on; 0 at launch\n", i,
               k->turn.at[i].name);
    add(&bytes, 1, 8);
  }
  if (c->options.debug_waits) {
    str_puts(out, "  u32 *waits;  // what is told of those that were given up\n");
    add(&bytes, 1, 8);
  }
  str_puts(out, "  int tiles;\n};\n\n");
  add(&bytes, 1, 4);
  return params_fit(c, (bytes + 7) / 8 * 8);
}
