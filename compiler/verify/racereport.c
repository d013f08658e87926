// racereport.c - reports a race. In: two concrete executions. Out: a report with both places, the
// numbers, what to change, and a command that shows the race in a run.
#include "compiler/verify/replay.h"

#include <string.h>

// ---- the numbers

static void put_element(Str *s, const Kernel *k, const Race *r) {
  const View *v = &k->view.at[r->a->view];
  const Buf *b = &k->buf.at[v->buf];
  bool stage = b->space == SP_STAGE;
  const char *ring = stage ? k->ring.at[b->ring].name : NULL;
  if (ring && ring != b->name) str_printf(s, "%s.", ring);
  str_printf(s, "%s[", b->name);
  for (u32 d = 0; d < v->rank; d++) str_printf(s, d ? ", %lld" : "%lld", (long long)r->at[d]);
  str_puts(s, "]");
}

static void put_dims(Str *s, const Kernel *k, const Race *r) {
  const char *before = "with ";
  for (u32 i = 0; i < k->dim.n; i++, before = ", ")
    str_printf(s, "%s%s = %lld", before, k->dim.at[i].name, (long long)r->world->dim[i]);
  for (u32 i = 0; i < k->arg.n; i++) {
    if (!r->world->known[i]) continue;
    str_printf(s, "%s%s = %lld", before, k->arg.at[i].name, (long long)r->world->arg[i]);
    before = ", ";
  }
}

// "instance 1 of 'math', tile x = 0"
static void put_who(Str *s, const Kernel *k, const Access *a, const Execution *d) {
  const Role *r = &k->role.at[a->role];
  if (r->instances > 1) str_printf(s, "instance %lld of ", (long long)d->inst);
  str_printf(s, "'%s'", r->name);
  if (k->axis.n) str_printf(s, ", %s", sc_tile_text(s->sc, k, d->axis));
}

static const char *what_does(const Kernel *k, const Access *a) {
  bool product = k->role.at[a->role].code.at[a->pc].op == OP_MMA;
  switch ((AccessKind)a->kind) {
    case ACCESS_READ: return "threads read";
    case ACCESS_STORE: return "threads write";
    case ACCESS_ADD: return "threads add to";
    case ACCESS_LOAD: return product ? "a product reads" : "a copy reads";
    case ACCESS_PUT: return "a copy writes";
    case ACCESS_PUT_ADD: return "a copy adds to";
  }
  return "";
}

// ---- the command

// Where CTAs take tile after tile, so many multiprocessors that two tiles are of different CTAs.
enum { CTAS_APART = 132 };

// The case that the command names. What a lent one says, the command has to say.
static const Case *named_case(const World *w) { return w->lent ? NULL : w->kase; }

static void put_params(Str *s, const Kernel *k, const World *w) {
  for (u32 i = 0; i < k->param.n; i++) {
    bool usual = !k->param.at[i].given &&  // nor said by the case that is run without --case
                 !(k->kase.n && sc_case_bind(&k->kase.at[0], CASE_PARAM, i));
    if (usual || sc_case_bind(named_case(w), CASE_PARAM, i)) continue;
    str_printf(s, " -p %s=", k->param.at[i].name);
    sc_put_value(s, &k->param.at[i].value);
  }
}

static void put_scalar(Str *s, const Kernel *k, const World *w, u32 arg) {
  const Arg *a = &k->arg.at[arg];
  const CaseBind *b = sc_case_bind(w->kase, CASE_ARG, arg);
  bool as_said = b && !b->set && !w->lent;
  if (w->known[arg] && (!as_said || b->value.at[0].num.i != w->arg[arg]))
    str_printf(s, " --set %s=%lld", a->name, (long long)w->arg[arg]);
  if (w->known[arg] || (b && !w->lent)) return;
  if (b && b->value.n) {
    str_printf(s, " --set %s=", a->name);
    sc_put_value(s, &b->value.at[0]);
  } else if (!a->init) str_printf(s, " --set %s=1", a->name);  // any value will do
}

static void put_lists(Str *s, const World *w) {
  for (u32 i = 0; w->lent && i < w->kase->bind.n; i++) {
    const CaseBind *b = &w->kase->bind.at[i];
    if (b->kind != CASE_TENSOR || !b->value.n) continue;
    str_printf(s, " --set '%s=", b->name);
    for (u32 n = 0; n < b->value.n; n++) {
      str_puts(s, n ? "," : "[");
      sc_put_value(s, &b->value.at[n]);
    }
    str_puts(s, "]'");
  }
}

static const char *command(Sc *sc, const Kernel *k, const World *w) {
  const Case *kase = named_case(w);
  Str s = {.sc = sc};
  str_printf(&s, "schedc run %s %s --on cpu", sc->text->name, k->name);
  if (kase) str_printf(&s, " --case %s", kase->name);
  put_params(&s, k, w);
  for (u32 i = 0; i < k->dim.n; i++) {
    const CaseBind *b = sc_case_bind(kase, CASE_DIM, i);
    if (!b || b->set || b->value.at[0].num.i != w->dim[i])
      str_printf(&s, " --set %s=%lld", k->dim.at[i].name, (long long)w->dim[i]);
  }
  for (u32 i = 0; i < k->arg.n; i++) put_scalar(&s, k, w, i);
  put_lists(&s, w);
  if (k->grid != GRID_PLAIN) str_printf(&s, " --sms %u", CTAS_APART);
  return s.at;
}

// ---- the remedy

static const char *doing(const Access *a) {
  switch ((AccessKind)a->kind) {
    case ACCESS_READ: return "reading";
    case ACCESS_STORE: return "writing";
    case ACCESS_LOAD: return "copying from";
    case ACCESS_PUT: return "copying to";
    default: return "adding to";
  }
}

// A ring which `from` commits after its access, and for which `to` waits only after its own;
// SC_NONE: there is none.
static u32 signal_ring(const Kernel *k, const Access *from, const Access *to) {
  for (u32 i = 0; i < k->ring.n; i++) {
    u32 tells = sc_first_op(k, from->role, OP_COMMIT, i, from->pc);
    u32 hears = sc_first_op(k, to->role, OP_WAIT, i, to->pc);
    if (k->ring.at[i].owner == SC_NONE && tells != SC_NONE && hears != SC_NONE) return i;
  }
  return SC_NONE;
}

static bool done_before(const Kernel *k, u32 role, Op op, u32 ring, u32 pc) {
  return sc_first_op(k, role, op, ring, 0) < pc;
}

// A ring that `from` acquires before its access and commits after it, and that `to` waits for
// before its access: with fewer stages, `from` could not be ahead. SC_NONE: there is none.
static u32 ring_of_words(const Kernel *k, const Access *from, const Access *to) {
  for (u32 i = 0; i < k->ring.n; i++) {
    bool given = done_before(k, from->role, OP_ACQUIRE, i, from->pc) &&
                 sc_first_op(k, from->role, OP_COMMIT, i, from->pc) != SC_NONE &&
                 !done_before(k, from->role, OP_COMMIT, i, from->pc);
    bool heard = done_before(k, to->role, OP_WAIT, i, to->pc) &&
                 !done_before(k, to->role, OP_RELEASE, i, to->pc);
    if (given && heard && k->ring.at[i].owner == SC_NONE && k->ring.at[i].stages > 1) return i;
  }
  return SC_NONE;
}

static bool help_ahead(Races *v, Diag *d, const Access *from, const Access *to) {
  const Kernel *k = v->k;
  const u32 ring = ring_of_words(k, from, to);
  if (ring == SC_NONE) return false;
  const char *first = k->role.at[from->role].name, *second = k->role.at[to->role].name;
  sc_help(
      v->sc, d,
      "the %u stages of '%s' let '%s' be so many rounds ahead of '%s': give it fewer, or let '%s' "
      "wait until '%s' is done %s",
      k->ring.at[ring].stages, k->ring.at[ring].name, first, second, first, second, doing(to));
  return true;
}

// The execution's round of the outermost loop around it, as a number that grows; 0: there is no
// loop.
static i64 round_of(const Kernel *k, const Access *a, const Execution *d) {
  const Code *code = &k->role.at[a->role].code;
  const Ins *outermost = NULL;
  for (u32 pc = code->at[a->pc].around; pc != SC_NONE; pc = code->at[pc].around)
    if (code->at[pc].op == OP_FOR) outermost = &code->at[pc];
  if (!outermost) return 0;
  i64 round = d->loop[outermost->arg[0]];
  return outermost->flags & INS_REVERSED ? -round : round;
}

// Is the second one meant to come first? The one of the earlier round is, and in one round the
// write.
static bool second_first(const Kernel *k, const Race *r) {
  i64 first = round_of(k, r->a, r->first), second = round_of(k, r->b, r->second);
  return first == second ? !sc_access_writes(r->a) : second < first;
}

static void help_roles(Races *v, Diag *d, const Race *r) {
  const Kernel *k = v->k;
  const Buf *b = &k->buf.at[k->view.at[r->a->view].buf];
  bool tensor = b->space == SP_TENSOR, swap = second_first(k, r);
  const Access *from = swap ? r->b : r->a, *to = swap ? r->a : r->b;
  if (tensor && (help_ahead(v, d, from, to) || help_ahead(v, d, to, from))) return;
  u32 ring = signal_ring(k, from, to);
  if (ring == SC_NONE && sc_access_writes(to) && signal_ring(k, to, from) != SC_NONE) {
    const Access *other = from;
    from = to;
    to = other;
    ring = signal_ring(k, from, to);
  }
  if (ring != SC_NONE && tensor)
    sc_help(v->sc, d, "let '%s' wait for '%s' before %s '%s'", k->role.at[to->role].name,
            k->ring.at[ring].name, doing(to), b->name);
  else
    sc_help(v->sc, d,
            "let '%s' commit a ring after it, and '%s' wait for that ring before %s %s'%s'",
            k->role.at[from->role].name, k->role.at[to->role].name, doing(to),
            tensor ? "" : "the stage of ", tensor ? b->name : k->ring.at[b->ring].name);
}

// The first axis along which the two tiles differ.
static u32 other_axis(const Kernel *k, const Race *r) {
  u32 i = 0;
  while (i + 1 < k->axis.n && r->first->axis[i] == r->second->axis[i]) i++;
  return i;
}

static void help_tiles(Races *v, Diag *d, const Race *r) {
  const Kernel *k = v->k;
  const u32 axis = other_axis(k, r);
  for (u32 i = 0; i < k->turn.n; i++) {
    const Turn *t = &k->turn.at[i];
    if (!sc_turn_over_ctas(t)) continue;
    if (t->axis == axis)
      sc_help(v->sc, d, "take the turn '%s' before it, and pass it on after it", t->name);
    else
      sc_help(v->sc, d,
              "these CTAs differ along %s, and the turn '%s' goes along %s: 'turn t : %s' orders "
              "them",
              k->axis.at[axis].name, t->name, k->axis.at[t->axis].name, k->axis.at[axis].name);
    return;
  }
  sc_help(v->sc, d,
          "tiles run in no order: let each touch elements of its own, or let CTAs take turns, "
          "'turn t : %s'",
          k->axis.at[axis].name);
}

// A copy of the same instance, which its program has overtaken.
static bool is_own(const Race *r) { return r->one_tile && r->first->proc == r->second->proc; }

static void help_own(Races *v, Diag *d, const Race *r) {
  const Kernel *k = v->k;
  const Ins *first = &k->role.at[r->a->role].code.at[r->a->pc];
  const char *name = k->buf.at[k->view.at[r->a->view].buf].name;
  if (first->op == OP_COPYIN)
    sc_help(v->sc, d,
            "wait for '%s' between the two: a full stage says that the copy has read '%s'",
            k->ring.at[k->buf.at[k->view.at[first->arg[0]].buf].ring].name, name);
  else
    sc_help(v->sc, d,
            "'wait %s' between the two (without 'read'): copies out are in no order until then",
            name);
}

static bool adds(const Access *a) { return a->kind == ACCESS_ADD || a->kind == ACCESS_PUT_ADD; }

static void help(Races *v, Diag *d, const Race *r) {
  const char *name = v->k->role.at[r->a->role].name;
  if (adds(r->a) && adds(r->b))
    sc_help(v->sc, d,
            "sums by threads and sums by copies are not atomic towards each other: add in one way");
  else if (is_own(r)) help_own(v, d, r);
  else if (!r->one_tile) help_tiles(v, d, r);
  else if (r->a->role != r->b->role) help_roles(v, d, r);
  else sc_help(v->sc, d, "let each instance of '%s' touch elements of its own", name);
}

// ---- the report

// What the other one is called, where it differs: by its tile, role or instance.
static void put_other(Str *s, const Kernel *k, const Race *r) {
  if (is_own(r)) str_puts(s, "an earlier copy of its own");
  else if (!r->one_tile) str_puts(s, sc_tile_text(s->sc, k, r->first->axis));
  else if (r->a->role == r->b->role) str_printf(s, "instance %lld", (long long)r->first->inst);
  else str_printf(s, "'%s'", k->role.at[r->a->role].name);
}

void sc_report_race(Races *v, const Race *r) {
  const Kernel *k = v->k;
  const Ins *one = &k->role.at[r->a->role].code.at[r->a->pc],
            *two = &k->role.at[r->b->role].code.at[r->b->pc];
  Str main = {.sc = v->sc}, note = main, dims = main;
  str_printf(&main, "%s ", what_does(k, r->b));
  put_element(&main, k, r);
  str_puts(&main, " in a race: nothing puts it before or after what ");
  put_other(&main, k, r);
  str_puts(&main, " does (");
  put_who(&main, k, r->b, r->second);
  str_puts(&main, ")");
  str_printf(&note, "%s it here%s (", what_does(k, r->a), one == two ? ", too" : "");
  put_who(&note, k, r->a, r->first);
  str_puts(&note, ")");
  put_dims(&dims, k, r);
  Diag *d = sc_report(v->sc, D_R10_RACE, two->span, "%s", main.at);
  sc_note(v->sc, d, one->span, "%s", note.at);
  sc_note(v->sc, d, k->span, "%s%sto see it: %s", dims.n ? dims.at : "", dims.n ? "; " : "",
          command(v->sc, k, r->world));
  help(v, d, r);
}
