// describe.c - what the compiler worked out about a kernel, for people (`schedc info`), and the way
// in for JSON too. In: a placed kernel, and the launch dimensions that are known. Out: text. A trip
// count is a number where the dimensions say enough, and an expression else.
#include "runtime/api/describe.h"

#include <string.h>

static void evaluate(Describer *d) {
  const Kernel *k = d->k;
  i64 *dim;
  bool *known, *none = NEWS(d->sc, bool, k->arg.n + 1);
  // a step has only some of them
  sc_find_dims(d->sc, k, d->dims, d->dim_count, &dim, &known, NULL);
  d->value = NEWS(d->sc, SclValue, k->expr.n + 1);
  LaunchKnown in = {dim, known, NULL, none};
  sc_launch_values(d->sc, k, &in, d->value);
}

// ---- text

// Millions and thousandths of them, for "%lld.%03lld", which is the same in every locale.
#define MILLIONS(n) (long long)(((n) + 500) / 1000000), (long long)(((n) + 500) / 1000 % 1000)

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
    str_printf(d->out, "  %-10s %-9s %s[", b->name, sc_direction_text(b), sc_elem[b->elem].text);
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
    const char *heading = sc_heading(d, ins);
    i64 n;
    if (heading) {
      str_printf(d->out, "%*s%s", indent, "", heading);
      if (ins->op == OP_FOR && sc_trips(d, ins, &n))
        str_printf(d->out, "  (%lld times)", (long long)n);
      str_puts(d->out, "\n");
    }
    if (effects & OPENS || ins->op == OP_ELSE) indent += 2;
    Work w = sc_work_of(k, ins);
    if (!w.what) continue;
    Str what = {.sc = d->sc};
    sc_put_operands(&what, k, ins);
    str_printf(d->out, "%*s%-*s", indent, "", indent < 52 ? 52 - indent : 1, what.at);
    if (w.bytes) str_printf(d->out, "%10lld bytes\n", (long long)w.bytes);
    else if (w.flops) str_printf(d->out, "%6lld.%03lld MFLOP\n", MILLIONS(w.flops));
    else str_printf(d->out, "%10lld elements\n", (long long)w.elements);
  }
  Work all;
  if (sc_total_work(d, r, &all)) {
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

// ---- the way in

typedef struct DescribeJob {
  const Kernel *k;
  const schedc_dim *dims;
  size_t dim_count;
  schedc_format_kind kind;
  schedc_writer writer;
  void *user;
} DescribeJob;

// The kernel, then those that a sequence launches.
static schedc_status describe(Sc *sc, void *job) {
  DescribeJob *job_ = job;
  Str out = {.sc = sc};
  Json json = {.write = str_write, .user = &out};
  bool text = job_->kind == SCHEDC_TEXT;
  if (!text) json_open(&json, '[');
  for (u32 i = 0; i <= job_->k->launch.n; i++) {
    const Kernel *k = i ? job_->k->launch.at[i - 1].kernel : job_->k;
    Describer d = {sc, k, job_->dims, job_->dim_count, &out, &json, NULL};
    evaluate(&d);
    if (text && i) str_puts(&out, "\n");
    if (text) text_kernel(&d);
    else sc_describe_json(&d);
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
  DescribeJob job = {kernel->k, dims, dim_count, kind, writer, user};
  return sc_enter_once(context, kernel->k->text, describe, &job);
}
