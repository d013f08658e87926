// describe.c - what the compiler worked out about a kernel, for people (`schedc info`) and as JSON.
// In: a placed kernel, and the launch dimensions that are known. Out: text. Work is counted for one
// tile: each role's copies, products and element-wise statements under the loops that repeat them;
// a trip count is a number where the dimensions say enough, and an expression else.
#include "compiler/verify/verify.h"
#include "runtime/api/api.h"
#include "base/json.h"
#include "runtime/data/launchvalue.h"

#include <string.h>

typedef struct Describer {
  Sc *sc;
  const Kernel *k;
  const schedc_dim *dims;
  size_t dim_count;
  Str *out;         // text
  Json *json;       // JSON
  SclValue *value;  // of each expression of k
} Describer;

// What one operation does, once.
typedef struct Work {
  const char *what;  // "copy", "product", "elements"; NULL: not counted
  i64 bytes;         // moved between global and shared memory
  i64 flops;         // of products
  i64 elements;      // of element-wise statements
} Work;

static i64 extents(const Kernel *k, const Map *m, u32 n) {
  i64 all = 1, one = 0;
  for (u32 v = 0; v < n; v++) {
    if (!x_const_int(k, m->var[v].extent, &one) || __builtin_mul_overflow(all, one, &all)) return 0;
  }
  return all;
}

static i64 stage_bytes(const Kernel *k, u32 view) {
  const Buf *b = &k->buf.at[k->view.at[view].buf];
  i64 n = sc_elem[b->elem].bytes;
  for (u32 d = 0; d < b->rank; d++) n *= b->ext[d];
  return n;
}

static Work work_of(const Kernel *k, const Ins *ins) {
  switch (ins->op) {
    case OP_COPYIN: return (Work){.what = "copy", .bytes = stage_bytes(k, ins->arg[0])};
    case OP_COPYOUT:
    case OP_COPYADD: return (Work){.what = "copy", .bytes = stage_bytes(k, ins->arg[1])};
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

// "s = q @ k", "q <- Q"
static void put_operands(Str *out, const Kernel *k, const Ins *ins) {
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

// The trips of a loop; false: not known from the dimensions given.
static bool trips(const Describer *d, const Ins *ins, i64 *n) {
  SclValue from = d->value[ins->arg[1]], to = d->value[ins->arg[2]];
  if ((ins->arg[1] && !from.known) || (ins->arg[2] && !to.known)) return false;
  if (__builtin_sub_overflow(to.i, from.i, n)) return false;
  if (*n < 0) *n = 0;
  return true;
}

static void evaluate(Describer *d) {
  const Kernel *k = d->k;
  i64 *dim = NEWS(d->sc, i64, k->dim.n + 1);
  bool *known = NEWS(d->sc, bool, k->dim.n + 1), *none = NEWS(d->sc, bool, k->arg.n + 1);
  for (u32 i = 0; i < k->dim.n; i++) {
    for (size_t j = 0; j < d->dim_count; j++) {
      if (strcmp(k->dim.at[i].name, d->dims[j].name) != 0) continue;
      dim[i] = d->dims[j].value;
      known[i] = true;
    }
  }
  d->value = NEWS(d->sc, SclValue, k->expr.n + 1);
  LaunchKnown in = {dim, known, NULL, none};
  sc_launch_values(d->sc, k, &in, d->value);
}

// Millions and thousandths of them, for "%lld.%03lld", which is the same in every locale.
#define MILLIONS(n) (long long)(((n) + 500) / 1000000), (long long)(((n) + 500) / 1000 % 1000)

// Work of a role's tile, all ifs taken; false: some trip count is not known.
static bool total_work(const Describer *d, const Role *r, Work *total) {
  i64 times[SC_MAX_NEST + 8] = {1}, n;
  u32 depth = 0;
  *total = (Work){0};
  for (u32 i = 0; i < r->code.n; i++) {
    const Ins *ins = &r->code.at[i];
    if (ins->op == OP_FOR) {
      if (depth + 1 == COUNT(times) || !trips(d, ins, &n) ||
          __builtin_mul_overflow(times[depth], n, &times[depth + 1]))
        return false;
      depth++;
    } else if (ins->op == OP_ENDFOR) {
      depth--;
    }
    Work w = work_of(d->k, ins);
    i64 t = times[depth];
    if (!w.what) continue;
    if (__builtin_mul_overflow(w.bytes, t, &w.bytes) ||
        __builtin_add_overflow(total->bytes, w.bytes, &total->bytes) ||
        __builtin_mul_overflow(w.flops, t, &w.flops) ||
        __builtin_add_overflow(total->flops, w.flops, &total->flops) ||
        __builtin_mul_overflow(w.elements, t, &w.elements) ||
        __builtin_add_overflow(total->elements, w.elements, &total->elements)) {
      return false;
    }
  }
  return true;
}

static const char *direction(const Buf *b) {
  return b->workspace ? "workspace" : b->dir == F_IN ? "in" : b->dir == F_OUT ? "out" : "inout";
}

// ---- text

static void text_arguments(Describer *d) {
  const Kernel *k = d->k;
  if (k->param.n) str_puts(d->out, "\nparameters\n");
  for (u32 i = 0; i < k->param.n; i++) {
    const Param *p = &k->param.at[i];
    str_printf(d->out, "  %-10s %-9s ", p->name, p->problem ? "problem" : "tuning");
    sc_put_value(d->out, &p->value);
    for (u32 j = 0; j < p->domain.n; j++) {
      str_puts(d->out, j ? ", " : "  in { ");
      sc_put_value(d->out, &p->domain.at[j]);
    }
    str_puts(d->out, p->domain.n ? " }\n" : "\n");
  }
  str_puts(d->out, "\ntensors\n");
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *b = &k->buf.at[i];
    if (b->space != SP_TENSOR) continue;
    str_printf(d->out, "  %-10s %-9s %s[", b->name, direction(b), sc_elem[b->elem].text);
    for (u32 a = 0; a < b->rank; a++) {
      if (a) str_puts(d->out, ", ");
      sc_print_infix(d->out, k, b->dim[a]);
    }
    str_puts(d->out, b->end || b->rising ? "] " : "]");
    sc_print_elements(d->out, k, b);
    str_puts(d->out, "\n");
  }
  for (u32 i = 0; i < k->arg.n; i++) {
    const Arg *a = &k->arg.at[i];
    str_printf(d->out, "  %-10s %-9s %s", a->name, "scalar", sc_elem[a->elem].text);
    if (a->init) str_puts(d->out, " = "), sc_print_infix(d->out, k, a->init);
    str_puts(d->out, "\n");
  }
  for (u32 i = 0; i < k->require.n; i++) {
    str_puts(d->out, i ? "           " : "  requires ");
    sc_print_infix(d->out, k, k->require.at[i].cond);
    str_puts(d->out, "\n");
  }
}

// " = 3" where the dimensions say so.
static void put_known(Describer *d, Xid x) {
  if (d->value[x].known && d->k->expr.at[x].ty == TY_INT && d->k->expr.at[x].op != X_INT)
    str_printf(d->out, " = %lld", (long long)d->value[x].i);
}

static void text_grid(Describer *d) {
  static const char *const mode[] = {"", "  persistent", "  dynamic"};
  const Kernel *k = d->k;
  str_puts(d->out, "\ngrid\n");
  for (u32 i = 0; i < k->axis.n; i++) {
    const Axis *a = &k->axis.at[i];
    str_printf(d->out, "  %-10s %s", a->name, a->reversed ? "reversed " : "");
    sc_print_infix(d->out, k, a->extent);
    put_known(d, a->extent);
    if (a->section) str_puts(d->out, " by "), sc_print_infix(d->out, k, a->section);
    if (a->cluster > 1) str_printf(d->out, "  (clusters of %u)", a->cluster);
    str_puts(d->out, "\n");
  }
  if (k->grid != GRID_PLAIN) str_printf(d->out, "%s: a CTA takes tile after tile\n", mode[k->grid]);
}

static void text_lets(Describer *d) {
  const Kernel *k = d->k;
  for (u32 i = 0; i < k->let.n; i++) {
    const Let *l = &k->let.at[i];
    if (l->role != SC_NONE) continue;
    str_printf(d->out, "  let %s = ", l->name);
    sc_print_infix(d->out, k, l->value);
    put_known(d, l->value);
    str_puts(d->out, "\n");
  }
}

static void text_role_work(Describer *d, const Role *r) {
  const Kernel *k = d->k;
  int indent = 2;
  str_printf(d->out, "  %s%s\n", r->name, r->instances > 1 ? "  (each instance)" : "");
  for (u32 i = 0; i < r->code.n; i++) {
    const Ins *ins = &r->code.at[i];
    u32 effects = sc_op[ins->op].effects;
    if (effects & CLOSES || ins->op == OP_ELSE) indent -= 2;
    if (ins->op == OP_FOR) {
      i64 n;
      str_printf(d->out, "%*sfor %s%s in ", indent, "", k->loop.at[ins->arg[0]].name,
                 ins->flags & INS_REVERSED ? " reversed" : "");
      sc_print_named(d->out, k, ins->arg[1]);
      str_puts(d->out, " .. ");
      sc_print_named(d->out, k, ins->arg[2]);
      if (trips(d, ins, &n)) str_printf(d->out, "  (%lld times)", (long long)n);
      str_puts(d->out, "\n");
    } else if (ins->op == OP_IF) {
      str_printf(d->out, "%*sif ", indent, "");
      sc_print_named(d->out, k, ins->arg[0]);
      str_puts(d->out, "\n");
    } else if (ins->op == OP_ELSE || ins->op == OP_VOTE) {
      str_printf(d->out, "%*s%s\n", indent, "", ins->op == OP_ELSE ? "else" : "vote");
    }
    if (effects & OPENS || ins->op == OP_ELSE) indent += 2;
    Work w = work_of(k, ins);
    if (!w.what) continue;
    Str what = {.sc = d->sc};
    put_operands(&what, k, ins);
    str_printf(d->out, "%*s%-*s", indent, "", indent < 52 ? 52 - indent : 1, what.at);
    if (w.bytes) str_printf(d->out, "%10lld bytes\n", (long long)w.bytes);
    else if (w.flops) str_printf(d->out, "%6lld.%03lld MFLOP\n", MILLIONS(w.flops));
    else str_printf(d->out, "%10lld elements\n", (long long)w.elements);
  }
  Work all;
  if (total_work(d, r, &all)) {
    str_printf(d->out, "    at most %lld bytes, %lld.%03lld MFLOP, %lld elements\n",
               (long long)all.bytes, MILLIONS(all.flops), (long long)all.elements);
  }
}

static void text_kernel(Describer *d) {
  const Kernel *k = d->k;
  str_printf(d->out, "%s %s\n", k->launch.n ? "sequence" : "kernel", k->name);
  text_arguments(d);
  if (k->launch.n) return;
  text_grid(d);
  str_puts(d->out, "\n");
  sc_print_place(d->out, k);
  str_puts(d->out, "\nwork of one tile\n");
  text_lets(d);
  for (u32 i = 0; i < k->role.n; i++) text_role_work(d, &k->role.at[i]);
  str_puts(d->out, "\n");
  sc_print_certificate(d->out, sc_certify(d->sc, k));
}

// ---- JSON

static void json_infix(Describer *d, const char *key, Xid x) {
  Str s = {.sc = d->sc};
  sc_print_infix(&s, d->k, x);
  json_key(d->json, key);
  json_text(d->json, s.at);
}

static void json_member_int(Json *j, const char *key, i64 v) {
  json_key(j, key);
  json_int(j, v);
}

static void json_member_text(Json *j, const char *key, const char *v) {
  json_key(j, key);
  json_text(j, v);
}

static void json_value(Describer *d, const Value *v) {
  Str s = {.sc = d->sc};
  sc_put_value(&s, v);
  json_text(d->json, s.at);
}

static void json_arguments(Describer *d) {
  const Kernel *k = d->k;
  Json *j = d->json;
  json_key(j, "parameters"), json_open(j, '[');
  for (u32 i = 0; i < k->param.n; i++) {
    json_open(j, '{');
    json_member_text(j, "name", k->param.at[i].name);
    json_member_text(j, "kind", k->param.at[i].problem ? "problem" : "tuning");
    json_key(j, "value"), json_value(d, &k->param.at[i].value);
    json_key(j, "domain"), json_open(j, '[');
    for (u32 n = 0; n < k->param.at[i].domain.n; n++) json_value(d, &k->param.at[i].domain.at[n]);
    json_close(j, ']');
    json_close(j, '}');
  }
  json_close(j, ']');
  json_key(j, "tensors"), json_open(j, '[');
  for (u32 i = 0; i < k->buf.n; i++) {
    const Buf *b = &k->buf.at[i];
    if (b->space != SP_TENSOR) continue;
    json_open(j, '{');
    json_member_text(j, "name", b->name);
    json_member_text(j, "type", sc_elem[b->elem].text);
    json_member_text(j, "direction", direction(b));
    json_key(j, "dims"), json_open(j, '[');
    for (u32 a = 0; a < b->rank; a++) {
      Str s = {.sc = d->sc};
      sc_print_infix(&s, k, b->dim[a]);
      json_text(j, s.at);
    }
    json_close(j, ']');
    Str elements = {.sc = d->sc};
    sc_print_elements(&elements, k, b);
    if (elements.n) json_member_text(j, "elements", elements.at);
    json_close(j, '}');
  }
  json_close(j, ']');
}

static void json_role(Describer *d, const Role *r) {
  Json *j = d->json;
  Work all;
  json_open(j, '{');
  json_member_text(j, "name", r->name);
  json_member_int(j, "instances", r->instances);
  json_member_int(j, "threads", r->warps * 32);
  json_member_int(j, "registers", r->regs);
  json_member_int(j, "registers_of_tiles", r->live);
  json_key(j, "operations"), json_open(j, '[');
  for (u32 i = 0; i < r->code.n; i++) {
    Work w = work_of(d->k, &r->code.at[i]);
    if (!w.what) continue;
    Str what = {.sc = d->sc};
    put_operands(&what, d->k, &r->code.at[i]);
    json_open(j, '{');
    json_member_text(j, "kind", w.what);
    json_member_text(j, "text", what.at);
    json_member_int(j, "line", sc_line_col(d->k->text, r->code.at[i].span.lo).line);
    json_member_int(j, "bytes", w.bytes);
    json_member_int(j, "flops", w.flops);
    json_member_int(j, "elements", w.elements);
    json_close(j, '}');
  }
  json_close(j, ']');
  if (total_work(d, r, &all)) {
    json_key(j, "at_most"), json_open(j, '{');
    json_member_int(j, "bytes", all.bytes);
    json_member_int(j, "flops", all.flops);
    json_member_int(j, "elements", all.elements);
    json_close(j, '}');
  }
  json_close(j, '}');
}

static void json_proof(Json *j, u32 id, const Proof *p) {
  json_open(j, '{');
  json_member_text(j, "rules", sc_proof[id].rule);
  json_member_text(j, "statement", sc_proof[id].statement);
  json_member_text(j, "verdict", sc_verdict_text(p->verdict));
  if (p->verdict == VERDICT_CHECKED) json_member_int(j, "up_to", p->upto);
  if (p->why) json_member_text(j, "why", p->why);
  json_close(j, '}');
}

static void json_certificate(Json *j, const Certificate *c) {
  json_key(j, "certificate");
  json_open(j, '{');
  json_member_text(j, "verdict", sc_verdict_text(c->verdict));
  json_key(j, "proofs");
  json_open(j, '[');
  for (u32 i = 0; i < PROOF_COUNT; i++) json_proof(j, i, &c->proof[i]);
  json_close(j, ']');
  json_key(j, "assumptions");
  json_open(j, '[');
  for (u32 i = 0; i < c->assumption.n; i++) json_text(j, c->assumption.at[i]);
  json_close(j, ']');
  json_key(j, "rings");
  json_open(j, '[');
  for (u32 i = 0; i < c->kernel->ring.n; i++) {
    const Ring *r = &c->kernel->ring.at[i];
    json_open(j, '{');
    json_member_text(j, "name", r->name);
    json_member_int(j, "stages", r->stages);
    if (c->least[i]) json_member_int(j, "least_stages", c->least[i]);
    json_close(j, '}');
  }
  json_close(j, ']');
  json_close(j, '}');
}

static void json_kernel(Describer *d) {
  const Kernel *k = d->k;
  Json *j = d->json;
  json_open(j, '{');
  json_member_text(j, "name", k->name);
  json_member_text(j, "kind", k->launch.n ? "sequence" : "kernel");
  json_arguments(d);
  if (!k->launch.n) {
    json_key(j, "grid"), json_open(j, '[');
    for (u32 i = 0; i < k->axis.n; i++) {
      json_open(j, '{');
      json_member_text(j, "name", k->axis.at[i].name);
      json_infix(d, "extent", k->axis.at[i].extent);
      if (d->value[k->axis.at[i].extent].known)
        json_member_int(j, "value", d->value[k->axis.at[i].extent].i);
      json_close(j, '}');
    }
    json_close(j, ']');
    json_key(j, "roles"), json_open(j, '[');
    for (u32 i = 0; i < k->role.n; i++) json_role(d, &k->role.at[i]);
    json_close(j, ']');
    json_key(j, "rings"), json_open(j, '[');
    for (u32 i = 0; i < k->ring.n; i++) {
      const Ring *r = &k->ring.at[i];
      json_open(j, '{');
      json_member_text(j, "name", r->name);
      json_member_int(j, "stages", r->stages);
      json_member_int(j, "offset", r->offset);
      json_member_int(j, "stage_bytes", r->stage_bytes);
      json_member_int(j, "barrier_offset", r->barrier);
      json_member_int(j, "full_count", r->full_count);
      json_member_int(j, "empty_count", r->empty_count);
      json_close(j, '}');
    }
    json_close(j, ']');
    json_member_int(j, "shared_memory_bytes", k->smem);
    json_member_int(j, "threads", k->threads);
    json_member_int(j, "named_barriers", k->named);
    json_certificate(j, sc_certify(d->sc, k));
  }
  json_close(j, '}');
}

// ---- the way in

typedef struct DescribeJob {
  const Kernel *k;
  const schedc_dim *dims;
  size_t dim_count;
  schedc_format_kind kind;
  schedc_writer writer;
  void *user;
} DescribeJob;

static int into_str(void *user, const char *bytes, size_t n) {
  str_put(user, bytes, n);
  return 0;
}

// The kernel, then those that a sequence launches.
static schedc_status describe(Sc *sc, void *job) {
  DescribeJob *job_ = job;
  Str out = {.sc = sc};
  Json json = {.write = into_str, .user = &out};
  bool text = job_->kind == SCHEDC_TEXT;
  if (!text) json_open(&json, '[');
  for (u32 i = 0; i <= job_->k->launch.n; i++) {
    const Kernel *k = i ? job_->k->launch.at[i - 1].kernel : job_->k;
    Describer d = {sc, k, job_->dims, job_->dim_count, &out, &json, NULL};
    evaluate(&d);
    if (text && i) str_puts(&out, "\n");
    if (text) text_kernel(&d);
    else json_kernel(&d);
  }
  if (!text) json_close(&json, ']');
  if (!text) str_puts(&out, "\n");
  return sc_write(job_->writer, job_->user, &out);
}

schedc_status schedc_describe(schedc_context *context, const schedc_kernel *kernel,
                              const schedc_dim *dims, size_t dim_count, schedc_format_kind kind,
                              schedc_writer writer, void *user) {
  if (!context || !kernel || !writer || !sc_good_dims(dims, dim_count)) return SCHEDC_EARG;
  if (kind != SCHEDC_TEXT && kind != SCHEDC_JSON) return SCHEDC_EARG;
  Sc sc;
  sc_init(&sc, &context->alloc);
  DescribeJob job = {kernel->k, dims, dim_count, kind, writer, user};
  schedc_status status = sc_enter(context, &sc, kernel->k->text, describe, &job);
  sc_free(&sc);
  return status;
}
