// command.c - how a person sees for himself what a witness says. In: dimensions, scalars, a tile
// and a rule for the elements of tensors with which something goes wrong. Out: a note with a
// command that makes the interpreter fail in the same way.
//
// Where roles read elements of tensors, the command lists these, as a case of the kernel would; if
// they are many, the note says what they are instead. A list of which something is promised is
// listed, too, if the first case has it: what that brings may be too large for these dimensions.
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
  if (k->axis.n) str_printf(&s, " (%s)", sc_tile_text(v->sc, k, of->axis));
  return s.at;
}

// The case that a command without `--case` runs.
static const Case *first_case(const Kernel *k) { return k->kase.n ? &k->kase.at[0] : NULL; }

static void put_params(Str *s, const Kernel *k) {
  for (u32 i = 0; i < k->param.n; i++) {
    const Param *param = &k->param.at[i];
    if (!param->given && !sc_case_bind(first_case(k), CASE_PARAM, i)) continue;
    str_printf(s, " -p %s=", param->name);
    sc_put_value(s, &param->value);
  }
}

static void put_values(Str *s, const Kernel *k, const Sample *of) {
  for (u32 i = 0; i < k->dim.n; i++)
    str_printf(s, " --set %s=%lld", k->dim.at[i].name, (long long)of->dim[i]);
  for (u32 i = 0; i < k->arg.n; i++)
    if (k->arg.at[i].elem == EL_I32)
      str_printf(s, " --set %s=%lld", k->arg.at[i].name, (long long)of->arg[i]);
  if (of->sms) str_printf(s, " --sms %u", of->sms);
  if (of->early) str_puts(s, " --policy early");
}

// ---- elements of tensors

enum { MOST_ELEMENTS = 1 << 20, MOST_LISTED = 256 };

// The keys of turns over CTAs, of which scripts have no steps.
static void keys_read(const Kernel *k, Below *below) {
  for (u32 r = 0; r < k->role.n; r++) {
    const Code *code = &k->role.at[r].code;
    for (u32 i = 0; i < code->n; i++)
      if (code->at[i].op == OP_TAKE || code->at[i].op == OP_PASS) x_from(below, code->at[i].arg[1]);
  }
}

// The tensors that conditions, bounds and keys read.
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
  keys_read(v->k, &below);
  for (Xid e; (e = x_next(&below));)
    if (v->k->expr.at[e].op == X_LOAD) read[v->k->view.at[v->k->expr.at[e].ref].buf] = true;
  return read;
}

static i64 next_element(Concrete *c, u32 buf, i64 *at, const i64 *ext) {
  u32 rank = c->p->k->buf.at[buf].rank;
  i64 value;
  sc_concrete_element(c, buf, at, &value);  // the run that is shown has had it
  for (u32 d = rank; d-- > 0 && ++at[d] == ext[d];) at[d] = 0;
  return value;
}

// Prints the elements of a tensor up to the last that differs from its predecessor: a list counts
// as continued with its last element. False: there are too many.
static bool put_elements(Str *s, Concrete *c, u32 buf) {
  const Buf *b = &c->p->k->buf.at[buf];
  i64 ext[SC_MAX_RANK], at[SC_MAX_RANK] = {0}, value[MOST_LISTED], all = 1, listed = 0;
  for (u32 d = 0; d < b->rank; d++) {
    if (!sc_concrete_value(c, b->dim[d], &ext[d]) || ext[d] > MOST_ELEMENTS) return false;
    if ((all *= ext[d]) > MOST_ELEMENTS) return false;
  }
  for (i64 i = 0; i < all; i++) {
    i64 now = next_element(c, buf, at, ext);
    if (i < MOST_LISTED) value[i] = now;
    if (listed && now == value[listed - 1]) continue;
    if (i >= MOST_LISTED) return false;
    listed = i + 1;
  }
  if (listed) str_printf(s, " --set '%s=[", b->name);
  for (i64 i = 0; i < listed; i++) str_printf(s, "%s%lld", i ? "," : "", (long long)value[i]);
  if (listed) str_puts(s, "]'");
  return true;
}

// Does the first case list a tensor whose elements must be in a range?
static bool promised_in_case(const Kernel *k, u32 buf) {
  return k->buf.at[buf].end && sc_case_bind(first_case(k), CASE_TENSOR, buf);
}

static bool put_tensors(Verify *v, Str *s, const Protocol *p, const Sample *of) {
  const bool *read = tensors_read(v, p);
  Concrete c = {.p = p, .s = of};
  for (u32 b = 0; b < v->k->buf.n; b++) {
    bool put = read[b] || promised_in_case(v->k, b);
    if (put && !put_elements(s, &c, b) && read[b]) return false;
  }
  return true;
}

void sc_note_command(Verify *v, const Protocol *p, const Sample *of, Diag *d) {
  static const char *const data[DATA_RULES] = {"are 0",
                                               "rise by 1 from 0",
                                               "rise by 64 from 0",
                                               "rise by up to 200 from 0",
                                               "are from 0 to 7",
                                               "are -1",
                                               "are from -4 to 3",
                                               "are 600, or as many as are promised"};
  const Kernel *k = v->k;
  Str s = {.sc = v->sc};
  str_printf(&s, "schedc run %s %s --on cpu", k->text->name, k->name);
  put_params(&s, k);
  put_values(&s, k, of);
  if (put_tensors(v, &s, p, of))
    sc_note(v->sc, d, k->span, "to see it%s: %s", v->refused ? ", with all else mended" : "", s.at);
  else
    sc_note(v->sc, d, k->span, "this is so where the elements of the tensors that it depends on %s",
            data[of->data]);
}
