// command.c - how a person sees for himself what a witness says. In: dimensions, scalars, a tile
// and a rule for the elements of tensors with which something goes wrong. Out: a note with a
// command that makes the interpreter fail in the same way.
//
// Elements of tensors cannot be given in a command: where roles read some, the note has a case with
// them, to be put into the kernel, unless they are many.
#include "compiler/verify/protocol.h"

const char *sc_sample_text(Verify *v, const Sample *of) {
  const Kernel *k = v->k;
  Str s = {.sc = v->sc};
  bool some = false;
  for (u32 i = 0; i < k->dim.n; i++, some = true)
    str_printf(&s, "%s%s = %lld", some ? ", " : "", k->dim.at[i].name, (long long)of->dim[i]);
  for (u32 i = 0; i < k->arg.n; i++) {
    if (k->arg.at[i].elem != EL_I32) continue;
    str_printf(&s, "%s%s = %lld", some ? ", " : "", k->arg.at[i].name, (long long)of->arg[i]);
    some = true;
  }
  if (!some) str_puts(&s, "any shape");
  for (u32 i = 0; i < k->axis.n; i++)
    str_printf(&s, "%s%s = %lld", i ? ", " : " (tile ", k->axis.at[i].name, (long long)of->axis[i]);
  if (k->axis.n) str_puts(&s, ")");
  return s.at;
}

static bool of_first_case(const Kernel *k, Sym param) {
  for (u32 i = 0; k->kase.n && i < k->kase.at[0].bind.n; i++)
    if (k->kase.at[0].bind.at[i].kind == CASE_PARAM && k->kase.at[0].bind.at[i].name == param)
      return true;
  return false;
}

static void put_params(Str *s, const Kernel *k) {
  for (u32 i = 0; i < k->param.n; i++) {
    const Param *param = &k->param.at[i];
    if (!param->given && !of_first_case(k, param->name)) continue;
    str_printf(s, " -p %s=", param->name);
    sc_put_value(s, &param->value);
  }
}

// Dimensions and scalars, each with its value, for a command or for a case.
static void put_values(Str *s, const Kernel *k, const Sample *of, const char *form) {
  for (u32 i = 0; i < k->dim.n; i++) {
    str_puts(s, form);
    str_printf(s, "%s=%lld", k->dim.at[i].name, (long long)of->dim[i]);
  }
  for (u32 i = 0; i < k->arg.n; i++) {
    if (k->arg.at[i].elem != EL_I32) continue;
    str_puts(s, form);
    str_printf(s, "%s=%lld", k->arg.at[i].name, (long long)of->arg[i]);
  }
}

// ---- elements of tensors

enum { MOST_ELEMENTS = 64 };

// The tensors that conditions and bounds read.
static bool *tensors_read(Verify *v, const Protocol *p) {
  bool *read = NEWS(v->sc, bool, v->k->buf.n + 1);
  Below below = x_below(v->sc, v->k);
  x_begin(&below, DEP_FETCH);
  for (u32 i = 0; i < p->process.n; i++) {
    const Script *s = p->process.at[i].script;
    for (u32 j = 0; j < s->step.n; j++) {
      x_from(&below, s->step.at[j].x);
      x_from(&below, s->step.at[j].y);
    }
  }
  for (Xid e; (e = x_next(&below));)
    if (v->k->expr.at[e].op == X_LOAD) read[v->k->view.at[v->k->expr.at[e].ref].buf] = true;
  return read;
}

// False: there are too many.
static bool put_elements(Str *s, Concrete *c, u32 buf) {
  const Buf *b = &c->p->k->buf.at[buf];
  i64 ext[SC_MAX_RANK], at[SC_MAX_RANK] = {0}, n = 1;
  for (u32 d = 0; d < b->rank; d++) {
    if (!sc_concrete_value(c, b->dim[d], &ext[d]) || ext[d] > MOST_ELEMENTS) return false;
    n *= ext[d];
  }
  if (n > MOST_ELEMENTS) return false;
  if (n) str_printf(s, ", %s=[", b->name);
  for (i64 i = 0; i < n; i++) {
    str_printf(s, "%s%lld", i ? ", " : "", (long long)sc_data(c->s->data, buf, at, b->rank));
    for (u32 d = b->rank; d-- > 0 && ++at[d] == ext[d];) at[d] = 0;
  }
  if (n) str_puts(s, "]");
  return true;
}

static void note_case(Verify *v, const Protocol *p, const Sample *of, Diag *d) {
  static const char *const data[DATA_RULES] = {"are 0", "rise by 1 from 0", "rise by 64 from 0",
                                               "rise by up to 200 from 0", "are from 0 to 7"};
  const Kernel *k = v->k;
  const bool *read = tensors_read(v, p);
  Str s = {.sc = v->sc}, params = {.sc = v->sc};
  Concrete c = {.p = p, .s = of};
  bool all = true;
  put_values(&s, k, of, ", ");
  for (u32 b = 0; b < k->buf.n && all; b++) all = !read[b] || put_elements(&s, &c, b);
  put_params(&params, k);
  if (!all) {
    sc_note(v->sc, d, k->span, "this is so where the elements of the tensors that it depends on %s",
            data[of->data]);
    return;
  }
  sc_note(v->sc, d, k->span,
          "to see it, with 'case see { %s }': schedc run %s %s --on cpu --case see%s",
          s.n ? s.at + 2 : "", k->text ? k->text->name : "FILE", k->name,
          params.n ? params.at : "");
}

void sc_note_command(Verify *v, const Protocol *p, const Sample *of, Diag *d) {
  const Kernel *k = v->k;
  Str s = {.sc = v->sc};
  if (sc_reads_data(p)) {
    note_case(v, p, of, d);
    return;
  }
  str_printf(&s, "schedc run %s %s --on cpu", k->text ? k->text->name : "FILE", k->name);
  put_params(&s, k);
  put_values(&s, k, of, " --set ");
  sc_note(v->sc, d, k->span, "to see it: %s", s.at);
}
