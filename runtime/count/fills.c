// fills.c - how often the rings of a kernel are filled, in a tile and in all. In: bound tensors, of
// which only the elements that bounds and conditions ask for are looked at. Out: counts, ring by
// ring. Of a large grid some tiles are looked at, of a long tile its beginning: who asks for the
// lengths at which a schedule may go wrong wants small numbers.
#include "runtime/run.h"

enum { TILES = 64, STEPS = 1 << 14 };

typedef struct Counter {
  u64 fills;
  u32 ring;
} Counter;

static void count(void *user, const Ins *ins) {
  Counter *c = user;
  c->fills += ins->arg[0] == c->ring;
}

// A tile by its number; the first axis is the fastest.
static void set_tile(Env *env, const i64 *extent, u64 number) {
  for (u32 a = 0; a < env->k->axis.n; a++) {
    env->axis[a] = (i64)(number % (u64)extent[a]);
    number /= (u64)extent[a];
  }
}

static u64 tiles_of(Env *env, i64 *extent) {
  u64 n = 1;
  for (u32 a = 0; a < env->k->axis.n; a++) {
    extent[a] = env_int(env, env->k->axis.at[a].extent);
    if (extent[a] <= 0) return 0;
    if (__builtin_mul_overflow(n, (u64)extent[a], &n)) return INT64_MAX;
  }
  return n;
}

static void count_ring(Sc *sc, const Kernel *k, const Binding *b, u32 ring, schedc_fills *out) {
  Counter c = {.ring = ring};
  TileWalk w = {.met = count, .user = &c};
  i64 extent[SC_MAX_AXES];
  env_init(sc, &w.env, k, b);
  u64 tiles = tiles_of(&w.env, extent), looked = tiles < TILES ? tiles : TILES;
  sc_walk_role(sc, &w, &k->role.at[__builtin_ctz(k->ring.at[ring].fillers)].code, OP_ACQUIRE);
  out->tiles = tiles;
  out->least = tiles ? UINT64_MAX : 0;
  for (u64 i = 0; i < looked; i++) {
    set_tile(&w.env, extent, looked == tiles ? i : (u64)((double)i / TILES * (double)tiles));
    w.steps = STEPS;
    c.fills = 0;
    sc_walk_tile(&w);
    if (c.fills < out->least) out->least = c.fills;
    if (c.fills > out->most) out->most = c.fills;
    out->all += c.fills;
  }
}

static u32 count_kernel(Sc *sc, const Kernel *k, const Binding *b, schedc_fills *out) {
  for (u32 r = 0; r < k->ring.n; r++) {
    out[r] = (schedc_fills){.size = sizeof *out,
                            .kernel = k->name,
                            .ring = k->ring.at[r].name,
                            .stages = k->ring.at[r].stages};
    if (k->ring.at[r].fillers) count_ring(sc, k, b, r, &out[r]);
  }
  return k->ring.n;
}

schedc_status sc_count_fills(Sc *sc, const Kernel *k, const Binding *b, schedc_fills *out) {
  if (!k->launch.n) count_kernel(sc, k, b, out);
  for (u32 l = 0; l < k->launch.n; l++) {
    const Binding *one = sc_bind_launch(sc, b, &k->launch.at[l]);
    if (!one) return SCHEDC_EINPUT;
    out += count_kernel(sc, k->launch.at[l].kernel, one, out);
  }
  return SCHEDC_OK;
}
