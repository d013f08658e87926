// print.c - a kernel as text: what --emit shows, golden tests compare and people read. In: a
// well-formed kernel, at any stage before `place` (which prints what it adds itself:
// place/print.c). Out: one line an operation. Operations print by ops.def's letters, members by the
// tables of printer.h; print_expr.c makes names and `let`s.
#include "compiler/ir/printer.h"

// ---- lines

// Begins a new line's expressions: what is visited once stays visited until the next.
static void begin(Printer *p) { p->epoch++; }

static void settle_line(Printer *p, Xid root) { sc_ir_settle(p, root, false); }

typedef void Visit(Printer *p, Xid root);

static void visit_view(Printer *p, u32 view, Visit *visit) {
  const View *v = &p->k->view.at[view];
  for (u32 i = 0; i < v->rank; i++) visit(p, v->at[i].base);
}

static void visit_map(Printer *p, const Map *m, Visit *visit) {
  for (u32 i = 0; i < m->vars; i++) visit(p, m->var[i].extent);
  visit(p, m->cond);
  if (m->dst != SC_NONE) visit_view(p, m->dst, visit);
  visit(p, m->root);
}

static void visit_ins(Printer *p, const Ins *ins, Visit *visit) {
  const char *args = sc_op[ins->op].args;
  for (u32 i = 0; args[i]; i++) {
    const Product *q;
    switch (args[i]) {
      case 'x': visit(p, ins->arg[i]); break;
      case 'v':
      case 'w': visit_view(p, ins->arg[i], visit); break;
      case 'm':
      case 'c': visit_map(p, &p->k->map.at[ins->arg[i]], visit); break;
      case 'p':
        q = &p->k->product.at[ins->arg[i]];
        visit_view(p, q->dst, visit);
        visit_view(p, q->a, visit);
        visit_view(p, q->b, visit);
        break;
      default: break;
    }
  }
}

static void count_scalars(Printer *p, Xid root) { sc_ir_count(p, root, false); }
static void count_locals(Printer *p, Xid root) { sc_ir_count(p, root, true); }
static void settle_shared(Printer *p, Xid root) { sc_ir_settle(p, root, true); }

// Writes the members that are not 0; `lead` before the first, commas before the rest.
static void put_attrs(Printer *p, const char *lead, const Attr *attr, u32 n, const void *of) {
  for (u32 i = 0; i < n; i++) {
    const char *at = (const char *)of + attr[i].at;
    u32 v = attr[i].size == 0   ? *(const bool *)at
            : attr[i].size == 1 ? *(const u8 *)at
            : attr[i].size == 2 ? *(const u16 *)at
                                : *(const u32 *)at;
    if (!v) continue;
    str_printf(p->out, "%s%s", lead, attr[i].word);
    if (attr[i].size) str_printf(p->out, " %u", v);
    lead = ", ";
  }
}
#define PUT_ATTRS(p, lead, table, of) put_attrs(p, lead, table, COUNT(table), of)

// ---- operations

static void put_map(Printer *p, const Map *m) {
  str_puts(p->out, "[");
  for (u32 i = 0; i < m->vars; i++) {
    str_puts(p->out, i == m->outs ? "; " : i ? ", " : "");
    str_printf(p->out, "%s < ", p->var[i]);
    sc_ir_expr(p, m->var[i].extent, BIND_SUM);
  }
  str_puts(p->out, m->parts ? "] parts" : "]");
  for (u32 i = 0; i < p->local.n; i++) {
    str_puts(p->out, "\n");
    p->indent += 2;
    sc_ir_let(p, p->local.at[i]);
    p->indent -= 2;
  }
  if (p->local.n) str_puts(p->out, "\n    "), sc_ir_line(p);
  else str_puts(p->out, " ");
  if (m->cond) {
    str_puts(p->out, "if ");
    sc_ir_expr(p, m->cond, 0);
    str_puts(p->out, ": ");
  }
}

static void put_product(Printer *p, const Product *q) {
  const i64 ext[3] = {q->m, q->n, q->k};
  for (u32 i = 0; i < 3; i++)
    str_printf(p->out, "%s%s < %lld", i ? ", " : "[", p->var[i], (long long)ext[i]);
  str_puts(p->out, "] ");
  sc_ir_view(p, q->dst);
  str_puts(p->out, q->acc ? " += " : " = ");
  sc_ir_view(p, q->a);
  str_puts(p->out, " @ ");
  sc_ir_view(p, q->b);
}

static void put_list(Printer *p, u32 list) {
  const u32 *at = p->k->list.at + list;
  for (u32 i = 1; i <= at[0]; i++) str_printf(p->out, "%s%s", i > 1 ? ", " : "", p->buf[at[i]]);
}

static void put_operand(Printer *p, const Ins *ins, u32 i) {
  u32 arg = ins->arg[i];
  const Map *m;
  switch (sc_op[ins->op].args[i]) {
    case 'r': str_puts(p->out, p->ring[arg]); break;
    case 'u': str_puts(p->out, p->turn[arg]); break;
    case 'g': str_puts(p->out, p->buf[arg]); break;
    case 'o': str_puts(p->out, p->loop[arg]); break;
    case 'v':
    case 'w': sc_ir_view(p, arg); break;
    case 'x': sc_ir_expr(p, arg, 0); break;
    case 'p': put_product(p, &p->k->product.at[arg]); break;
    case 'l': put_list(p, arg); break;
    case 'n': str_printf(p->out, "keep %u", arg); break;
    default:
      m = &p->k->map.at[arg];
      put_map(p, m);
      if (m->dst != SC_NONE) {
        sc_ir_view(p, m->dst);
        str_puts(p->out, ins->op == OP_MAPADD ? " += " : " = ");
      }
      sc_ir_expr(p, m->root, 0);
  }
}

// Names what the operation declares: index variables, a loop.
static void name_ins(Printer *p, const Ins *ins) {
  static const Var product[] = {{"m", 0}, {"n", 0}, {"k", 0}};
  const Map *m = sc_on_map(ins->op) ? &p->k->map.at[ins->arg[0]] : NULL;
  if (m) sc_ir_vars(p, m->var, m->vars);
  if (sc_on_product(ins->op)) sc_ir_vars(p, product, 3);
  if (ins->op == OP_FOR) sc_ir_loop(p, ins->arg[0]);
  if (ins->op == OP_ENDFOR) p->around.n--;
}

static void put_ins(Printer *p, const Ins *ins) {
  const OpInfo *op = &sc_op[ins->op];
  p->local.n = 0;
  begin(p);
  visit_ins(p, ins, count_locals);
  begin(p);
  visit_ins(p, ins, settle_line);
  name_ins(p, ins);
  if (op->effects & (CLOSES | SPLITS)) p->indent--;
  sc_ir_line(p);
  if (op->effects & CLOSES) str_puts(p->out, "}");
  else str_printf(p->out, "%s%s", op->effects & SPLITS ? "} " : "", op->text);
  for (u32 i = 0; op->args[i]; i++) {
    bool optional = op->args[i] == 'n' || (op->args[i] == 'x' && i > 0 && !op->args[i + 1]);
    if (optional && !ins->arg[i]) continue;
    const char *mark = i == 0 || op->args[i] == 'n' ? "" : operand_mark(ins->op, i);
    str_printf(p->out, *mark == ',' ? "%s " : *mark ? " %s " : " ", mark);
    put_operand(p, ins, i);
  }
  for (u32 i = 0; i < COUNT(ins_flag); i++)
    if (ins->flags & ins_flag[i].bit) str_printf(p->out, " %s", ins_flag[i].word);
  PUT_ATTRS(p, "; ", plan_attr, &ins->plan);
  if (op->effects & (OPENS | SPLITS)) {
    str_puts(p->out, " {");
    p->indent++;
  }
  str_puts(p->out, "\n");
  p->vars = 0;
}

// ---- declarations

void sc_put_value(Str *out, const Value *v) {
  switch (v->kind) {
    case VAL_INT: str_printf(out, "%lld", (long long)v->num.i); break;
    case VAL_REAL: str_real(out, v->num.f); break;
    case VAL_BOOL: str_puts(out, v->num.i ? "true" : "false"); break;
    default: str_puts(out, sc_elem[v->num.i].text); break;
  }
}

const char *sc_value_text(Sc *sc, const Value *v) {
  Str s = {.sc = sc};
  sc_put_value(&s, v);
  return s.at;
}

const char *const *sc_value_texts(Sc *sc, const Values *v) {
  const char **text = NEWS(sc, const char *, v->n + 1);
  for (u32 i = 0; i < v->n; i++) text[i] = sc_value_text(sc, &v->at[i]);
  return text;
}

static void put_values(Printer *p, const char *open, const Value *v, u32 n, const char *close) {
  str_puts(p->out, open);
  for (u32 i = 0; i < n; i++) {
    if (i) str_puts(p->out, ", ");
    sc_put_value(p->out, &v[i]);
  }
  str_puts(p->out, close);
}

static void put_param(Printer *p, const Param *param) {
  sc_ir_line(p);
  str_printf(p->out, "param %s = ", param->name);
  sc_put_value(p->out, &param->value);
  if (param->domain.n) put_values(p, " in { ", param->domain.at, param->domain.n, " }");
  str_puts(p->out, "\n");
}

// name : f16[dims], attributes
static void put_buf(Printer *p, const Buf *b, const char *name) {
  bool fixed = b->space == SP_REG || b->space == SP_STAGE;
  str_printf(p->out, "%s : %s", name, sc_elem[b->elem].text);
  for (u32 i = 0; i < b->rank; i++) {
    str_puts(p->out, i ? ", " : "[");
    if (fixed) str_printf(p->out, "%lld", (long long)b->ext[i]);
    else sc_ir_expr(p, b->dim[i], 0);
  }
  if (b->rank) str_puts(p->out, "]");
  if (b->end) {
    str_puts(p->out, " in ");
    sc_ir_expr(p, b->least, 0);
    str_puts(p->out, " .. ");
    sc_ir_expr(p, b->end, 0);
  }
  if (b->rising) str_puts(p->out, " rising");
  PUT_ATTRS(p, ", ", buf_attr, b);
}

static void put_bufs(Printer *p, Space space, u32 role) {
  for (u32 i = 0; i < p->k->buf.n; i++) {
    const Buf *b = &p->k->buf.at[i];
    if (b->space != space || (space == SP_REG && b->role != role)) continue;
    begin(p);
    if (space == SP_TENSOR || space == SP_SPEC)
      for (u32 d = 0; d < b->rank; d++) settle_line(p, b->dim[d]);
    settle_line(p, b->least);
    settle_line(p, b->end);
    sc_ir_line(p);
    if (space == SP_TENSOR)
      str_printf(p->out, "%s%s", b->workspace ? "workspace " : "", dir_word[b->dir & 3]);
    else str_puts(p->out, space == SP_SPEC ? "value " : "reg ");
    put_buf(p, b, p->buf[i]);
    str_puts(p->out, "\n");
  }
}

static void put_roles(Printer *p, const char *word, u32 roles) {
  if (roles) str_printf(p->out, ", %s ", word);
  for (u32 r = 0, n = 0; r < p->k->role.n; r++)
    if (roles >> r & 1) str_printf(p->out, "%s%s", n++ ? " & " : "", p->role[r]);
}

static void put_ring(Printer *p, u32 ring) {
  const Ring *r = &p->k->ring.at[ring];
  sc_ir_line(p);
  const char *name = sc_printf(p->sc, "%s * %u", p->ring[ring], r->stages);
  str_puts(p->out, "ring ");
  if (r->parts > 1) str_printf(p->out, "%s : { ", name);
  for (u32 i = 0; i < r->parts; i++) {
    const Buf *b = &p->k->buf.at[r->part0 + i];
    if (i) str_puts(p->out, "; ");
    put_buf(p, b, r->parts > 1 ? b->name : name);
  }
  if (r->parts > 1) str_puts(p->out, " }");
  if (r->owner != SC_NONE) put_roles(p, "private", 1u << r->owner);
  put_roles(p, "fill", r->fillers);
  put_roles(p, "drain", r->drainers);
  PUT_ATTRS(p, ", ", ring_attr, r);
  str_puts(p->out, "\n");
}

static void put_turn(Printer *p, u32 turn) {
  const Turn *t = &p->k->turn.at[turn];
  begin(p);
  settle_line(p, t->keys);
  sc_ir_line(p);
  str_printf(p->out, "turn %s", p->turn[turn]);
  if (t->axis != SC_NONE) str_printf(p->out, ", over %s", p->axis[t->axis]);
  if (t->keys) sc_ir_prefix(p, ", keys ", t->keys, 0);
  for (u32 i = 0; i < t->members; i++)
    str_printf(p->out, "%s%s", i ? " & " : ", among ", p->role[t->member[i]]);
  PUT_ATTRS(p, ", ", turn_attr, t);
  str_puts(p->out, "\n");
}

static void put_grid(Printer *p) {
  const Kernel *k = p->k;
  if (!k->axis.n && k->grid == GRID_PLAIN) return;
  begin(p);
  for (u32 i = 0; i < k->axis.n; i++) {
    p->axis[i] = sc_ir_value(p, k->axis.at[i].name);
    settle_line(p, k->axis.at[i].extent);
    settle_line(p, k->axis.at[i].section);
  }
  sc_ir_line(p);
  str_puts(p->out, "grid (");
  for (u32 i = 0; i < k->axis.n; i++) {
    const Axis *a = &k->axis.at[i];
    str_printf(p->out, "%s%s%s : ", i ? ", " : "", a->reversed ? "reversed " : "", p->axis[i]);
    sc_ir_expr(p, a->extent, 0);
    if (a->section) sc_ir_prefix(p, " by ", a->section, 0);
    if (a->cluster != 1) str_printf(p->out, " cluster %u", a->cluster);
  }
  str_printf(p->out, ")%s\n", grid_word[k->grid]);
}

static void put_spec(Printer *p) {
  const Kernel *k = p->k;
  if (!k->spec.n) return;
  sc_ir_line(p);
  str_puts(p->out, "spec {\n");
  p->indent++;
  put_bufs(p, SP_SPEC, 0);
  for (u32 i = 0; i < k->spec.n; i++) {
    Ins as_map = {.op = OP_MAP, .arg = {k->spec.at[i]}};
    put_ins(p, &as_map);
  }
  p->indent--;
  sc_ir_line(p);
  str_puts(p->out, "}\n");
}

static void put_case(Printer *p, const Case *c) {
  sc_ir_line(p);
  str_printf(p->out, "case %s {", c->name);
  for (u32 i = 0; i < c->bind.n; i++) {
    const CaseBind *b = &c->bind.at[i];
    bool tuple = !b->set && (b->kind == CASE_TENSOR || b->value.n != 1);
    str_printf(p->out, "%s %s", i ? "," : "", b->name);
    put_values(p,
               b->set  ? " in { "
               : tuple ? " = ["
                       : " = ",
               b->value.at, b->value.n,
               b->set  ? " }"
               : tuple ? "]"
                       : "");
  }
  str_puts(p->out, " }\n");
}

static void put_role(Printer *p, u32 role) {
  const Role *r = &p->k->role.at[role];
  str_puts(p->out, "\n");
  sc_ir_line(p);
  str_printf(p->out, "role %s * %u : %u warps", p->role[role], r->instances, r->warps);
  PUT_ATTRS(p, ", ", role_attr, r);
  str_puts(p->out, " {\n");
  p->indent++;
  put_bufs(p, SP_REG, role);
  for (u32 i = 0; i < r->code.n; i++) put_ins(p, &r->code.at[i]);
  p->indent--;
  sc_ir_line(p);
  str_puts(p->out, "}\n");
}

// ---- kernels

static void count_kernel(Printer *p) {
  const Kernel *k = p->k;
  for (u32 i = 0; i < k->arg.n; i++) count_scalars(p, k->arg.at[i].init);
  for (u32 i = 0; i < k->buf.n; i++) {
    for (u32 d = 0; d < k->buf.at[i].rank; d++) count_scalars(p, k->buf.at[i].dim[d]);
    count_scalars(p, k->buf.at[i].least);
    count_scalars(p, k->buf.at[i].end);
  }
  for (u32 i = 0; i < k->require.n; i++) count_scalars(p, k->require.at[i].cond);
  count_scalars(p, k->work);
  for (u32 i = 0; i < k->spec.n; i++) {
    begin(p);
    visit_map(p, &k->map.at[k->spec.at[i]], count_scalars);
  }
  for (u32 i = 0; i < k->axis.n; i++) {
    count_scalars(p, k->axis.at[i].extent);
    count_scalars(p, k->axis.at[i].section);
  }
  for (u32 i = 0; i < k->turn.n; i++) count_scalars(p, k->turn.at[i].keys);
  for (u32 r = 0; r < k->role.n; r++) {
    const Code *c = &k->role.at[r].code;
    for (u32 i = 0; i < c->n; i++) {
      begin(p);
      visit_ins(p, &c->at[i], count_scalars);
    }
  }
}

// The values that roles share, before the first of them.
static void put_shared(Printer *p) {
  begin(p);
  for (u32 r = 0; r < p->k->role.n; r++) {
    const Code *c = &p->k->role.at[r].code;
    for (u32 i = 0; i < c->n; i++) visit_ins(p, &c->at[i], settle_shared);
  }
}

static void put_line_of(Printer *p, const char *word, const char *name, const char *mark, Xid e) {
  begin(p);
  settle_line(p, e);
  sc_ir_line(p);
  str_printf(p->out, "%s%s", word, name);
  if (e) sc_ir_prefix(p, mark, e, 0);
  str_puts(p->out, "\n");
}

static void put_interface(Printer *p) {
  const Kernel *k = p->k;
  for (u32 i = 0; i < k->param.n && !p->program; i++) put_param(p, &k->param.at[i]);
  for (u32 i = 0; i < k->dim.n; i++) {
    if (i == 0) sc_ir_line(p);
    p->dim[i] = sc_ir_value(p, k->dim.at[i].name);
    str_printf(p->out, "%s %s", i ? "," : "dim", p->dim[i]);
  }
  if (k->dim.n) str_puts(p->out, "\n");
  for (u32 i = 0; i < k->arg.n; i++) {
    p->arg[i] = sc_ir_value(p, k->arg.at[i].name);
    const char *name = sc_printf(p->sc, "%s : %s", p->arg[i], sc_elem[k->arg.at[i].elem].text);
    put_line_of(p, "arg ", name, " = ", k->arg.at[i].init);
  }
  put_bufs(p, SP_TENSOR, 0);
  for (u32 i = 0; i < k->require.n; i++) put_line_of(p, "require", "", " ", k->require.at[i].cond);
  if (k->work) put_line_of(p, "work", "", " ", k->work);
}

static void put_kernel(Printer *p, const char *lead);

// A sequence's tensors, dimensions and arguments are its kernels' of the same name.
static void put_launch(Printer *p, const Launch *l, const char *lead) {
  Printer inner = {
      .sc = p->sc, .out = p->out, .k = l->kernel, .program = p->program, .indent = p->indent};
  str_puts(p->out, "\n");
  put_kernel(&inner, lead);
}

static void put_kernel(Printer *p, const char *lead) {
  const Kernel *k = p->k;
  p->mark = NEWS(p->sc, Mark, k->expr.n);
  sc_ir_names(p);
  count_kernel(p);
  sc_ir_lets(p);
  sc_ir_line(p);
  str_printf(p->out, "%s%s %s {\n", lead, k->launch.n ? "sequence" : "kernel", k->name);
  p->indent++;
  put_interface(p);
  if (!p->program) put_spec(p);
  for (u32 i = 0; i < k->kase.n && !p->program; i++) put_case(p, &k->kase.at[i]);
  put_grid(p);
  for (u32 i = 0; i < k->ring.n; i++) put_ring(p, i);
  for (u32 i = 0; i < k->turn.n; i++) put_turn(p, i);
  put_shared(p);
  for (u32 r = 0; r < k->role.n; r++) put_role(p, r);
  for (u32 i = 0; i < k->given.n; i++) put_launch(p, &k->given.at[i], "given ");
  for (u32 i = 0; i < k->launch.n; i++) put_launch(p, &k->launch.at[i], "launch ");
  p->indent--;
  sc_ir_line(p);
  str_puts(p->out, "}\n");
}

void sc_print_ir(Str *out, const Kernel *k) {
  Printer p = {.sc = out->sc, .out = out, .k = k};
  put_kernel(&p, "");
}

void sc_print_program(Str *out, const Kernel *k) {
  Printer p = {.sc = out->sc, .out = out, .k = k, .program = true};
  put_kernel(&p, "");
}
