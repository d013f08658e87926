// scope.c - names: scopes, what a name means, what is predefined, and the reports about names.
// Scopes form a chain from the innermost block out; a def's body sees the chain where it was
// declared, not the one where it is used (hygiene), so that no name of the caller is captured.
// Called by all; calls no other file of `lower`.
#include "compiler/lower/lower.h"

#include <math.h>
#include <string.h>

static const struct {
  const char *name;
  double value;
} constant[] = {
    {"inf", INFINITY},
    {"ln2", 0.693147180559945309417},
    {"log2e", 1.44269504088896340736},
    {"pi", 3.14159265358979323846},
};

static bool is_function(u32 op) { return sc_xop[op].binds >= BIND_CALL; }

ExprOp low_function(const char *name) {
  u32 op = 0;
  while (op < X_COUNT && (!is_function(op) || strcmp(sc_xop[op].text, name))) op++;
  return op;
}

bool low_constant_named(const char *name, double *out) {
  for (size_t i = 0; i < COUNT(constant); i++) {
    if (strcmp(name, constant[i].name) == 0) return *out = constant[i].value, true;
  }
  return false;
}

bool low_elem_named(const char *name, Elem *out) {
  for (int i = 0; i < EL_COUNT; i++) {
    if (strcmp(name, sc_elem[i].text) == 0) return *out = (Elem)i, true;
  }
  return false;
}

// A def may be expanded many times: each place is reported once, with the innermost use as a note.
Diag *low_error(Low *l, DiagId id, Span at, const char *fmt, ...) {
  l->dead |= sc_at_limit(l->sc);
  if (l->dead) return &l->sc->dropped;
  for (const Diag *d = l->sc->diags; d; d = d->next) {
    if (d->id == id && d->at.lo == at.lo && d->at.hi == at.hi) return &l->sc->dropped;
  }
  va_list ap;
  va_start(ap, fmt);
  Diag *d = sc_vreport(l->sc, id, at, fmt, ap);
  va_end(ap);
  if (l->calls) sc_note(l->sc, d, l->call[l->calls - 1], "expanded from here");
  return d;
}

bool low_spend(Low *l, u32 *count, u32 limit, const char *what, Span at) {
  if (l->dead) return false;
  if (++*count <= limit) return true;
  Diag *d = low_error(l, D_P_LIMIT, at, "the kernel grows beyond %u %s", limit, what);
  sc_help(l->sc, d, "unrolled loops and nested defs multiply: use fewer of them");
  l->dead = true;
  return false;
}

bool low_enter(Low *l, Span at) {
  if (l->dead) return false;
  if (l->nest < LOW_MAX_NEST) return l->nest++, true;
  low_error(l, D_P_LIMIT, at, "defs, blocks and expressions are nested more than %d deep",
            LOW_MAX_NEST);
  l->dead = true;
  return false;
}

void low_leave(Low *l) { l->nest--; }

void low_push(Low *l) {
  Scope *s = NEW(l->sc, Scope);
  s->up = l->scope;
  l->scope = s;
}

void low_pop(Low *l) { l->scope = l->scope->up; }

// Where the name is in the scope's table, or the free slot where it belongs.
static Name **slot_of(const Scope *s, Sym name) {
  u32 i = (u32)(((uintptr_t)name >> 4) * 2654435761u >> 8) & (s->room - 1);
  while (s->found[i] && s->found[i]->name != name) i = (i + 1) & (s->room - 1);
  return &s->found[i];
}

static Name *find_in(const Scope *s, Sym name) {
  if (s->room) return *slot_of(s, name);
  for (Name *n = s->first; n; n = n->next) {
    if (n->name == name) return n;
  }
  return NULL;
}

static void add(Low *l, Scope *s, Name *name) {
  enum { FEW = 16 };
  s->first = name;
  if (s->names < FEW) return;
  if (s->names >= s->room / 2) {
    s->room = s->room ? 2 * s->room : 4 * FEW;
    s->found = NEWS(l->sc, Name *, s->room);
    for (Name *n = s->first; n; n = n->next) {
      Name **slot = slot_of(s, n->name);  // the latest comes first
      if (!*slot) *slot = n;
    }
  }
  *slot_of(s, name->name) = name;
}

static bool reserved(const char *name) {
  Elem elem;
  double value;
  return low_elem_named(name, &elem) || low_constant_named(name, &value) ||
         low_function(name) < X_COUNT;
}

// The kernel's own scope and the one that the specification sees are one to the user.
Name *low_declare(Low *l, Sym name, Span at, NameKind kind) {
  Scope *s = l->scope;
  Name *old = find_in(s, name);
  if (!old && s == l->top) old = find_in(l->base, name);
  if (!old && s == l->base && l->top) old = find_in(l->top, name);
  if (old) {
    Diag *d = low_error(l, D_N_TWICE, at, "'%s' is declared twice", name);
    sc_note(l->sc, d, old->span, "%s", low_kind_text(l, old));
    sc_help(l->sc, d, "give one of them another name");
  } else if (reserved(name)) {
    Diag *d = low_error(l, D_N_RESERVED, at, "'%s' is predefined", name);
    sc_help(l->sc, d, "choose another name");
  }
  Name *n = NEW(l->sc, Name);
  *n = (Name){.name = name, .span = at, .kind = kind, .ref = SC_NONE, .next = s->first};
  if (low_spend(l, &s->names, LOW_MAX_NAMES, "names", at)) add(l, s, n);
  return n;
}

Name *low_find(Low *l, Sym name) {
  for (Scope *s = l->scope; s; s = s->up) {
    Name *n = find_in(s, name);
    if (n) return n;
  }
  return NULL;
}

Name *low_hidden(Low *l, const Name *by) {
  bool past = false;
  for (Scope *s = l->scope; s; s = s->up) {
    Name *n = find_in(s, by->name);
    if (n && past) return n;
    past |= n == by;
  }
  return NULL;
}

typedef enum Missed { A_VALUE, A_CALL, A_TYPE } Missed;

// The predefined name that is nearer than so many slips, or NULL.
static const char *predefined(Sym name, Missed what, u32 *slips) {
  static const char *const truth[] = {"true", "false"};
  const char *found = NULL;
  for (u32 i = 0; what == A_CALL && i < X_COUNT; i++)
    if (is_function(i) && sc_nearer(name, sc_xop[i].text, slips)) found = sc_xop[i].text;
  if (what == A_CALL) return found;
  for (u32 i = 0; what == A_VALUE && i < COUNT(truth); i++)
    if (sc_nearer(name, truth[i], slips)) found = truth[i];
  for (u32 i = 0; what == A_VALUE && i < COUNT(constant); i++)
    if (sc_nearer(name, constant[i].name, slips)) found = constant[i].name;
  for (u32 i = 0; i < EL_COUNT; i++)
    if (sc_nearer(name, sc_elem[i].text, slips)) found = sc_elem[i].text;
  return found;
}

// "exp, … and where": all functions of the language.
static const char *functions(Sc *sc) {
  const char *last = NULL;
  Str all = {.sc = sc};
  for (u32 i = 0; i < X_COUNT; i++) {
    if (!is_function(i)) continue;
    if (last) str_printf(&all, "%s%s", all.n ? ", " : "", last);
    last = sc_xop[i].text;
  }
  return sc_printf(sc, "%s and %s", all.at, last);
}

static const char *types(Sc *sc) {
  Str all = {.sc = sc};
  for (u32 i = 0; i < EL_COUNT; i++)
    str_printf(&all, "%s%s", !i ? "" : i + 1 < EL_COUNT ? ", " : " and ", sc_elem[i].text);
  return all.at;
}

// Where a name of which nothing is near would be declared.
static void help_declare(Low *l, Diag *d, Missed what) {
  Sc *sc = l->sc;
  if (what == A_CALL)
    sc_help(sc, d, "there is no def of this name here; the functions are %s", functions(sc));
  else if (what == A_TYPE)
    sc_help(sc, d, "the element types are %s; a param may be one: 'param T = f16'", types(sc));
  else if (l->guard)
    sc_help(
        sc, d,
        "a guard is made of params and literals: launch dimensions and scalars are not known yet");
  else if (l->spec)
    sc_help(
        sc, d,
        "a specification sees params, dimensions, scalars, tensors and its own earlier equations");
  else if (l->calls)
    sc_help(sc, d, "a def sees the names of the place where it is declared, and its parameters");
  else if (l->role != SC_NONE && !l->stmt)
    sc_help(sc, d,
            "a 'let', a 'param' or a loop makes a value; what holds for some elements only stands "
            "in their statement: 'a[i] = where(i < 3, …)'");
  else sc_help(sc, d, "declare it: as a 'let' or 'param', or by the extent of a tensor");
}

static void unbound(Low *l, Sym name, Span at, Missed what) {
  if (l->dead) return;
  const Name *near = NULL;
  u32 slips = sc_slips(name);
  for (const Scope *s = l->scope; s; s = s->up) {
    for (const Name *n = s->first; n; n = n->next) {
      if (sc_nearer(name, n->name, &slips)) near = n;
    }
  }
  const char *word = predefined(name, what, &slips);
  Diag *d = low_error(l, D_N_UNBOUND, at, "'%s' is not declared", name);
  if (word) {
    sc_help(l->sc, d, "did you mean '%s'?", word);
  } else if (near) {
    sc_note(l->sc, d, near->span, "%s", low_kind_text(l, near));
    sc_help(l->sc, d, "did you mean '%s'?", near->name);
  } else {
    help_declare(l, d, what);
  }
}

void low_unbound(Low *l, Sym name, Span at) { unbound(l, name, at, A_VALUE); }
void low_unbound_call(Low *l, Sym name, Span at) { unbound(l, name, at, A_CALL); }
void low_unbound_type(Low *l, Sym name, Span at) { unbound(l, name, at, A_TYPE); }

const char *low_kind_text(const Low *l, const Name *n) {
  switch (n->kind) {
    case NM_ELEM: return "an element type";
    case NM_ABSENT: return sc_printf(l->sc, "a %s", n->what);
    case NM_RING: return "a ring";
    case NM_TURN: return "a turn";
    case NM_ROLE: return "a role";
    case NM_DEF: return "a def";
    case NM_INDEX:
    case NM_INDEXNAME: return "an index";
    case NM_BUF: break;
    default: return "a value";
  }
  switch (l->k->buf.at[n->ref].space) {
    case SP_TENSOR: return "a tensor";
    case SP_STAGE: return "a part of a ring";
    case SP_REG: return "a register tile";
    default: return "an equation of the specification";
  }
}

// ---- what a false guard leaves out

Name *low_declare_absent(Low *l, Sym name, Span at, const char *what, Span guard) {
  Name *n = low_declare(l, name, at, NM_ABSENT);
  n->what = what;
  n->guard = guard;
  return n;
}

// The guard's first line.
static const char *guard_text(Low *l, const Name *n) {
  const char *text = l->ast->text->at + n->guard.lo,
             *end = memchr(text, '\n', n->guard.hi - n->guard.lo);
  int length = (int)(end ? end - text : n->guard.hi - n->guard.lo);
  return sc_printf(l->sc, "%.*s%s", length, text, end ? " …" : "");
}

const char *low_why_absent(Low *l, const Name *n) {
  return sc_printf(l->sc, "the %s '%s' is not there: its guard '%s' is false", n->what, n->name,
                   guard_text(l, n));
}

// One report a name: what uses it usually stands together.
static void report_absent(Low *l, Name *n, Span at) {
  if (n->told) return;
  n->told = true;
  const char *condition = guard_text(l, n);
  Diag *e = low_error(l, D_N_ABSENT, at, "%s", low_why_absent(l, n));
  sc_note(l->sc, e, span_to(n->span, n->guard), "left out here");
  bool index = l->spec && l->stmt && l->stmt->pos && !strcmp(n->what, "dimension");
  sc_help(l->sc, e,
          l->code ? "put this, and all else that uses '%s', under 'if %s'"
          : index ? "an index needs another name"
                  : "let 'c ? a : b' choose: it does not look at the arm that is not taken",
          n->name, condition);
}

bool low_is_there(Low *l, Name *n, Span at) {
  if (n->kind == NM_ABSENT) report_absent(l, n, at);
  return n->kind != NM_ABSENT && n->kind != NM_BAD;
}

// ---- rings enter the kernel's tables when they are first used

void low_use_ring(Low *l, RingDecl *d) {
  if (d->id != SC_NONE) return;
  d->id = l->k->ring.n;
  d->ring.part0 = l->k->buf.n;
  for (u32 i = 0; i < d->ring.parts; i++) {
    d->part[i].ring = d->id;
    PUSH(l->sc, &l->k->buf, d->part[i]);
  }
  PUSH(l->sc, &l->k->ring, d->ring);
}
