// work.c - how many operations a launch takes. In: a kernel and bound tensors. Out: operations of
// products and the cycles that tensor cores need for them, counted by walking each role's code over
// all tiles, with the loops and branches that the dimensions give. Only code with products in it is
// walked.
#include "run.h"

typedef struct Walk {
  const Kernel *k;
  Env env;
  bool *inside;  // by instruction of the role: is a product between it and its end?
  double operations, cycles;
} Walk;

// What a multiprocessor's tensor cores do in a cycle (Hopper: 1024 multiply-adds of 16 bits in each
// of four, halved or doubled with the width).
static double rate(const Kernel *k, const Product *p) {
  u8 bytes = sc_elem[k->buf.at[k->view.at[p->a].buf].elem].bytes;
  return 8192.0 / bytes;
}

static void find_products(Walk *w, const Code *code) {
  for (u32 i = 0; i < code->n; i++) {
    const Ins *ins = &code->at[i];
    bool opens = ins->op == OP_FOR || ins->op == OP_IF || ins->op == OP_ELSE || ins->op == OP_VOTE;
    w->inside[i] = false;
    for (u32 j = i; opens && j < ins->nest && !w->inside[i]; j++)
      w->inside[i] = code->at[j].op == OP_MMA;
  }
}

static void add_product(Walk *w, const Product *p) {
  double n = 2.0 * (double)p->m * (double)p->n * (double)p->k;
  w->operations += n;
  w->cycles += n / rate(w->k, p);
}

// Instructions [at, end). Nesting is limited (SC_MAX_NEST), and so is the recursion.
static void walk(Walk *w, const Code *code, u32 at, u32 end) {
  for (; at < end; at++) {
    const Ins *ins = &code->at[at];
    if (ins->op == OP_MMA) add_product(w, &w->k->product.at[ins->arg[0]]);
    if (ins->op == OP_FOR) {
      i64 from = w->inside[at] ? env_int(&w->env, ins->arg[1]) : 0;
      i64 to = w->inside[at] ? env_int(&w->env, ins->arg[2]) : 0;
      for (i64 i = from; i < to; i++) {
        w->env.loop[ins->arg[0]] = i;
        env_touch(&w->env);
        walk(w, code, at + 1, ins->nest);
      }
      at = ins->nest;
    } else if (ins->op == OP_IF) {
      bool has_else = code->at[ins->nest].op == OP_ELSE;
      bool matters = w->inside[at] || (has_else && w->inside[ins->nest]);
      u32 last = has_else ? code->at[ins->nest].nest : ins->nest;
      if (matters && env_bool(&w->env, ins->arg[0])) walk(w, code, at + 1, ins->nest);
      else if (matters && has_else) walk(w, code, ins->nest + 1, last);
      at = last;
    } else if (ins->op == OP_VOTE) {
      at = ins->nest;  // what is seldom: not counted
    }
  }
}

static bool next_tile(Walk *w, const i64 *extent) {
  for (u32 a = 0; a < w->k->axis.n; a++) {
    if (++w->env.axis[a] < extent[a]) return true;
    w->env.axis[a] = 0;
  }
  return false;
}

static void walk_kernel(Sc *sc, const Kernel *k, const Binding *b, double *operations,
                        double *cycles) {
  Walk w = {.k = k};
  i64 extent[SC_MAX_AXES] = {0};
  env_init(sc, &w.env, k, b);
  for (u32 a = 0; a < k->axis.n; a++) extent[a] = env_int(&w.env, k->axis.at[a].extent);
  for (u32 a = 0; a < k->axis.n; a++)
    if (extent[a] <= 0) return;
  for (u32 r = 0; r < k->role.n; r++) {
    const Role *role = &k->role.at[r];
    w.inside = NEWS(sc, bool, role->code.n + 1);
    find_products(&w, &role->code);
    bool any = false;
    for (u32 i = 0; i < role->code.n; i++) any |= role->code.at[i].op == OP_MMA;
    if (!any) continue;
    do {
      for (u32 i = 0; i < (role->one_tile ? 1 : role->instances); i++) {
        w.env.inst = i;
        env_touch(&w.env);
        walk(&w, &role->code, 0, role->code.n);
      }
    } while (next_tile(&w, extent));
  }
  *operations += w.operations;
  *cycles += w.cycles;
}

static double tensor_bytes(const Kernel *k, const Binding *b) {
  double all = 0;
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *buf = &k->buf.at[i];
    double n = sc_elem[buf->elem].bytes;
    if (buf->space != SP_TENSOR || buf->workspace) continue;
    for (u32 d = 0; d < buf->rank; d++) n *= (double)b->buf[i].shape[d];
    all += buf->dir == (SCHEDC_IN | SCHEDC_OUT) ? 2 * n : n;
  }
  return all;
}

schedc_status sc_count_work(Sc *sc, const Kernel *k, const Binding *b, schedc_work *work) {
  Env env;
  env_init(sc, &env, k, b);
  work->said = k->work ? (double)env_int(&env, k->work) : 0;
  work->bytes = tensor_bytes(k, b);
  if (!k->launch.n) walk_kernel(sc, k, b, &work->products, &work->tensor_cycles);
  for (u32 l = 0; l < k->launch.n; l++) {
    const Binding *one = sc_bind_launch(sc, b, &k->launch.at[l]);
    if (!one) return SCHEDC_EINPUT;
    walk_kernel(sc, k->launch.at[l].kernel, one, &work->products, &work->tensor_cycles);
  }
  return SCHEDC_OK;
}
