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
    json_member_text(j, "direction", sc_direction_text(b));
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
    Work w = sc_work_of(d->k, &r->code.at[i]);
    if (!w.what) continue;
    Str what = {.sc = d->sc};
    sc_put_operands(&what, d->k, &r->code.at[i]);
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
  if (sc_total_work(d, r, &all)) {
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

void sc_describe_json(Describer *d) {
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
