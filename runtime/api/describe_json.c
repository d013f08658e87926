// describe_json.c - what the compiler worked out about a kernel, as JSON: `schedc info --format
// json`. In: a placed kernel with the values of its expressions. Out: one object.
#include "compiler/verify/verify.h"
#include "runtime/api/describe.h"

static void json_infix(Describer *d, const char *key, Xid x) {
  Str s = {.sc = d->sc};
  sc_print_infix(&s, d->k, x);
  json_key(d->json, key);
  json_text(d->json, s.at);
}

static void json_infixes(Describer *d, const char *key, const Xid *x, u32 n) {
  json_key(d->json, key), json_open(d->json, '[');
  for (u32 i = 0; i < n; i++) {
    Str s = {.sc = d->sc};
    sc_print_infix(&s, d->k, x[i]);
    json_text(d->json, s.at);
  }
  json_close(d->json, ']');
}

static void json_value(Describer *d, const Value *v) {
  json_text(d->json, sc_value_text(d->sc, v));
}

static void json_arguments(Describer *d) {
  const Kernel *k = d->k;
  Json *j = d->json;
  json_key(j, "parameters"), json_open(j, '[');
  for (u32 i = 0; i < k->param.n; i++) {
    json_open(j, '{');
    json_key(j, "name"), json_text(j, k->param.at[i].name);
    json_key(j, "kind"), json_text(j, k->param.at[i].problem ? "problem" : "tuning");
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
    json_key(j, "name"), json_text(j, b->name);
    json_key(j, "type"), json_text(j, sc_elem[b->elem].text);
    json_key(j, "direction"), json_text(j, sc_direction_text(b));
    json_infixes(d, "dims", b->dim, b->rank);
    Str elements = {.sc = d->sc};
    sc_print_elements(&elements, k, b);
    if (elements.n) json_key(j, "elements"), json_text(j, elements.at);
    json_close(j, '}');
  }
  json_close(j, ']');
  json_key(j, "scalars"), json_open(j, '[');
  for (u32 i = 0; i < k->arg.n; i++) {
    const Arg *a = &k->arg.at[i];
    json_open(j, '{');
    json_key(j, "name"), json_text(j, a->name);
    json_key(j, "type"), json_text(j, sc_elem[a->elem].text);
    if (a->init) json_infix(d, "default", a->init);
    json_close(j, '}');
  }
  json_close(j, ']');
  VEC(Xid) condition = {0};
  for (u32 i = 0; i < k->require.n; i++) PUSH(d->sc, &condition, k->require.at[i].cond);
  json_infixes(d, "requires", condition.at, condition.n);
}

static void json_grid(Describer *d) {
  static const char *const kind[] = {"plain", "persistent", "dynamic"};
  const Kernel *k = d->k;
  Json *j = d->json;
  json_key(j, "grid_kind"), json_text(j, kind[k->grid]);
  json_key(j, "grid"), json_open(j, '[');
  for (u32 i = 0; i < k->axis.n; i++) {
    const Axis *a = &k->axis.at[i];
    json_open(j, '{');
    json_key(j, "name"), json_text(j, a->name);
    json_infix(d, "extent", a->extent);
    if (d->value[a->extent].known) json_key(j, "value"), json_int(j, d->value[a->extent].i);
    json_key(j, "reversed"), json_bool(j, a->reversed);
    if (a->section) json_infix(d, "section", a->section);
    json_key(j, "cluster"), json_int(j, a->cluster);
    json_close(j, '}');
  }
  json_close(j, ']');
}

// The blocks that an operation stands in, outermost first.
static void json_inside(Describer *d, const Code *code, const u32 *open, u32 n) {
  Json *j = d->json;
  json_key(j, "inside"), json_open(j, '[');
  for (u32 i = 0; i < n; i++) {
    const Ins *ins = &code->at[open[i]];
    const char *heading = sc_heading(d, ins);
    i64 times;
    if (!heading) continue;
    json_open(j, '{');
    json_key(j, "text"), json_text(j, heading);
    if (ins->op == OP_FOR && sc_trips(d, ins, &times)) json_key(j, "times"), json_int(j, times);
    json_close(j, '}');
  }
  json_close(j, ']');
}

static void json_role(Describer *d, const Role *r) {
  Json *j = d->json;
  VEC(u32) open = {0};
  Work all;
  json_open(j, '{');
  json_key(j, "name"), json_text(j, r->name);
  json_key(j, "instances"), json_int(j, r->instances);
  json_key(j, "threads"), json_int(j, r->warps * 32);
  json_key(j, "registers"), json_int(j, r->regs);
  json_key(j, "registers_of_tiles"), json_int(j, r->live);
  json_key(j, "operations"), json_open(j, '[');
  for (u32 i = 0; i < r->code.n; i++) {
    u8 effects = sc_op[r->code.at[i].op].effects;
    if (effects & (CLOSES | SPLITS)) open.n--;
    if (effects & (OPENS | SPLITS)) PUSH(d->sc, &open, i);
    Work w = sc_work_of(d->k, &r->code.at[i]);
    if (!w.what) continue;
    Str what = {.sc = d->sc};
    sc_put_operands(&what, d->k, &r->code.at[i]);
    json_open(j, '{');
    json_key(j, "kind"), json_text(j, w.what);
    json_key(j, "text"), json_text(j, what.at);
    json_key(j, "line"), json_int(j, sc_line_col(d->k->text, r->code.at[i].span.lo).line);
    json_key(j, "bytes"), json_int(j, w.bytes);
    json_key(j, "flops"), json_int(j, w.flops);
    json_key(j, "elements"), json_int(j, w.elements);
    json_inside(d, &r->code, open.at, open.n);
    json_close(j, '}');
  }
  json_close(j, ']');
  if (sc_total_work(d, r, &all)) {
    json_key(j, "at_most"), json_open(j, '{');
    json_key(j, "bytes"), json_int(j, all.bytes);
    json_key(j, "flops"), json_int(j, all.flops);
    json_key(j, "elements"), json_int(j, all.elements);
    json_close(j, '}');
  }
  json_close(j, '}');
}

static void json_proof(Json *j, u32 id, const Proof *p) {
  json_open(j, '{');
  json_key(j, "rules"), json_text(j, sc_proof[id].rule);
  json_key(j, "statement"), json_text(j, sc_proof[id].statement);
  json_key(j, "verdict"), json_text(j, sc_verdict_text(p->verdict));
  if (p->verdict == VERDICT_CHECKED) json_key(j, "up_to"), json_int(j, p->upto);
  if (p->why) json_key(j, "why"), json_text(j, p->why);
  json_close(j, '}');
}

static void json_certificate(Json *j, const Certificate *c) {
  json_key(j, "certificate");
  json_open(j, '{');
  json_key(j, "verdict"), json_text(j, sc_verdict_text(c->verdict));
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
    json_key(j, "name"), json_text(j, r->name);
    json_key(j, "stages"), json_int(j, r->stages);
    if (c->least[i]) json_key(j, "least_stages"), json_int(j, c->least[i]);
    json_close(j, '}');
  }
  json_close(j, ']');
  json_close(j, '}');
}

void sc_describe_json(Describer *d) {
  const Kernel *k = d->k;
  Json *j = d->json;
  json_open(j, '{');
  json_key(j, "name"), json_text(j, k->name);
  json_key(j, "kind"), json_text(j, k->launch.n ? "sequence" : "kernel");
  json_arguments(d);
  if (!k->launch.n) {
    json_grid(d);
    json_key(j, "roles"), json_open(j, '[');
    for (u32 i = 0; i < k->role.n; i++) json_role(d, &k->role.at[i]);
    json_close(j, ']');
    json_key(j, "rings"), json_open(j, '[');
    for (u32 i = 0; i < k->ring.n; i++) {
      const Ring *r = &k->ring.at[i];
      json_open(j, '{');
      json_key(j, "name"), json_text(j, r->name);
      json_key(j, "stages"), json_int(j, r->stages);
      json_key(j, "offset"), json_int(j, r->offset);
      json_key(j, "stage_bytes"), json_int(j, r->stage_bytes);
      json_key(j, "vector_bytes"), json_int(j, r->vector_bytes);
      json_key(j, "barrier_offset"), json_int(j, r->barrier);
      json_key(j, "full_count"), json_int(j, r->full_count);
      json_key(j, "empty_count"), json_int(j, r->empty_count);
      json_close(j, '}');
    }
    json_close(j, ']');
    json_key(j, "shared_memory_bytes"), json_int(j, k->smem);
    json_key(j, "threads"), json_int(j, k->threads);
    json_key(j, "named_barriers"), json_int(j, k->named);
    json_certificate(j, sc_certify(d->sc, k));
  }
  json_close(j, '}');
}
