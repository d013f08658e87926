// describe_work.c - the work of one tile: each role's copies, products and element-wise statements,
// under the loops that repeat them. In: a placed kernel, and the launch dimensions that are known.
// Out: bytes, operations and elements; nothing where a trip count is not known.
#include "runtime/api/describe.h"

static i64 extents(const Kernel *k, const Map *m, u32 n) {
  i64 all = 1, one = 0;
  for (u32 v = 0; v < n; v++) {
    if (!x_const_int(k, m->var[v].extent, &one) || __builtin_mul_overflow(all, one, &all)) return 0;
  }
  return all;
}

Work sc_work_of(const Kernel *k, const Ins *ins) {
  switch (ins->op) {
    case OP_COPYIN:
    case OP_COPYOUT:
    case OP_COPYADD: return (Work){.what = "copy", .bytes = ins->plan.bytes};
    case OP_MMA:
    case OP_MMAWARP: {
      const Product *p = &k->product.at[ins->arg[0]];
      return (Work){.what = "product", .flops = 2 * p->m * p->n * p->k};
    }
    case OP_MAP:
    case OP_MAPADD:
      return (Work){.what = "elements",
                    .elements = extents(k, &k->map.at[ins->arg[0]], k->map.at[ins->arg[0]].vars)};
    default: return (Work){0};
  }
}

static const char *view_name(const Kernel *k, u32 view) {
  return view == SC_NONE ? "" : k->buf.at[k->view.at[view].buf].name;
}

void sc_put_operands(Str *out, const Kernel *k, const Ins *ins) {
  if (sc_on_product(ins->op)) {
    const Product *p = &k->product.at[ins->arg[0]];
    str_printf(out, "%s %s %s @ %s  %lldx%lldx%lld", view_name(k, p->dst), p->acc ? "+=" : "=",
               view_name(k, p->a), view_name(k, p->b), (long long)p->m, (long long)p->n,
               (long long)p->k);
  } else if (ins->op == OP_MAP || ins->op == OP_MAPADD) {
    str_printf(out, "%s %s", view_name(k, k->map.at[ins->arg[0]].dst),
               ins->op == OP_MAP ? "=" : "+=");
  } else {
    str_printf(out, "%s %s %s", view_name(k, ins->arg[0]), ins->op == OP_COPYADD ? "+=" : "<-",
               view_name(k, ins->arg[1]));
  }
}

bool sc_trips(const Describer *d, const Ins *ins, i64 *n) {
  SclValue from = d->value[ins->arg[1]], to = d->value[ins->arg[2]];
  if ((ins->arg[1] && !from.known) || (ins->arg[2] && !to.known)) return false;
  if (__builtin_sub_overflow(to.i, from.i, n)) return false;
  if (*n < 0) *n = 0;
  return true;
}

// *total += each * times. False: that does not fit.
static bool add_times(i64 *total, i64 each, i64 times) {
  return !__builtin_mul_overflow(each, times, &each) &&
         !__builtin_add_overflow(*total, each, total);
}

bool sc_total_work(const Describer *d, const Role *r, Work *total) {
  i64 times[SC_MAX_NEST + 8] = {1}, n;
  u32 depth = 0;
  *total = (Work){0};
  for (u32 i = 0; i < r->code.n; i++) {
    const Ins *ins = &r->code.at[i];
    if (ins->op == OP_FOR) {
      if (depth + 1 == COUNT(times) || !sc_trips(d, ins, &n) ||
          __builtin_mul_overflow(times[depth], n, &times[depth + 1]))
        return false;
      depth++;
    } else if (ins->op == OP_ENDFOR) {
      depth--;
    }
    Work w = sc_work_of(d->k, ins);
    i64 t = times[depth];
    if (!w.what) continue;
    if (!add_times(&total->bytes, w.bytes, t) || !add_times(&total->flops, w.flops, t) ||
        !add_times(&total->elements, w.elements, t))
      return false;
  }
  return true;
}

const char *sc_heading(const Describer *d, const Ins *ins) {
  Str s = {.sc = d->sc};
  switch (ins->op) {
    case OP_FOR:
      str_printf(&s, "for %s in %s", d->k->loop.at[ins->arg[0]].name,
                 ins->flags & INS_REVERSED ? "reversed " : "");
      sc_print_named(&s, d->k, ins->arg[1]);
      str_puts(&s, " .. ");
      sc_print_named(&s, d->k, ins->arg[2]);
      return s.at;
    case OP_IF:
      str_puts(&s, "if ");
      sc_print_named(&s, d->k, ins->arg[0]);
      return s.at;
    case OP_ELSE: return "else";
    case OP_VOTE: return "vote";
    default: return NULL;
  }
}
