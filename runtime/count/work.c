// work.c - how many operations a launch takes. In: a kernel and bound tensors. Out: operations of
// products and the cycles that tensor cores need for them, counted by walking each role's code over
// all tiles, with the loops and branches that the dimensions give. What votes decide on is seldom:
// it is not counted.
#include "runtime/run.h"

typedef struct Counter {
  const Kernel *k;
  double operations, cycles;
} Counter;

// What a multiprocessor's tensor cores do in a cycle (Hopper: 512 multiply-adds of 16 bits in each
// of four, halved or doubled with the width), in operations.
static double rate(const Kernel *k, const Product *p) {
  u8 bytes = sc_elem[k->buf.at[k->view.at[p->a].buf].elem].bytes;
  return 8192.0 / bytes;
}

static void add_product(void *user, const Ins *ins) {
  Counter *c = user;
  const Product *p = &c->k->product.at[ins->arg[0]];
  double n = 2.0 * (double)p->m * (double)p->n * (double)p->k;
  c->operations += n;
  c->cycles += n / rate(c->k, p);
}

static void walk_kernel(Sc *sc, const Kernel *k, const Binding *b, double *operations,
                        double *cycles) {
  Counter c = {.k = k};
  TileWalk w = {.met = add_product, .user = &c, .steps = UINT64_MAX};
  i64 extent[SC_MAX_AXES] = {0};
  env_init(sc, &w.env, k, b);
  for (u32 a = 0; a < k->axis.n; a++) extent[a] = env_int(&w.env, k->axis.at[a].extent);
  for (u32 a = 0; a < k->axis.n; a++)
    if (extent[a] <= 0) return;
  for (u32 r = 0; r < k->role.n; r++) {
    const Role *role = &k->role.at[r];
    sc_walk_role(sc, &w, &role->code, OP_MMA);
    bool any = false;
    for (u32 i = 0; i < role->code.n; i++) any |= role->code.at[i].op == OP_MMA;
    if (!any) continue;
    do {
      for (u32 i = 0; i < (role->one_tile ? 1 : role->instances); i++) {
        w.env.inst = i;
        sc_walk_tile(&w);
      }
    } while (sc_next_tile(k, extent, w.env.axis));
  }
  *operations += c.operations;
  *cycles += c.cycles;
}

double sc_moved_bytes(const Binding *b, bool workspaces) {
  double all = 0;
  for (u32 i = 0; i < b->k->buf.n; i++) {
    const Buf *buf = &b->k->buf.at[i];
    if (buf->space != SP_TENSOR || (buf->workspace && !workspaces)) continue;
    double n = sc_element_bytes(b, i);
    all += buf->dir == (SCHEDC_IN | SCHEDC_OUT) ? 2 * n : n;
  }
  return all;
}

schedc_status sc_count_work(Sc *sc, const Kernel *k, const Binding *b, schedc_work *work) {
  Env env;
  env_init(sc, &env, k, b);
  work->said = k->work ? (double)env_int(&env, k->work) : 0;
  work->bytes = sc_moved_bytes(b, false);
  if (!k->launch.n) walk_kernel(sc, k, b, &work->products, &work->tensor_cycles);
  for (u32 l = 0; l < k->launch.n; l++) {
    const Binding *one = sc_bind_launch(sc, b, &k->launch.at[l]);
    if (!one) return SCHEDC_EINPUT;
    walk_kernel(sc, k->launch.at[l].kernel, one, &work->products, &work->tensor_cycles);
  }
  return SCHEDC_OK;
}
