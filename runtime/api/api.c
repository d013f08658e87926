// api.c - the boundary of the library: contexts and sources, diagnostics handed to the sink. What
// comes in is trusted in nothing; what unwinds inside ends here (sc_guard), and everything
// allocated belongs to an Sc that the call or the handle frees.
#include "runtime/api/api.h"

// ---- the way in

schedc_status sc_guard(Sc *sc, Step step, void *job) {
  jmp_buf here;
  sc->unwind = &here;
  if (setjmp(here)) return sc->why;
  return step(sc, job);
}

static schedc_range range_of(const Text *text, Span at) {
  u32 hi = at.hi < at.lo ? at.lo : at.hi;
  LineCol from = sc_line_col(text, at.lo), to = sc_line_col(text, hi);
  return (schedc_range){at.lo, hi - at.lo, from.line, from.col, to.line, to.col};
}

typedef struct Delivery {
  const schedc_context *context;
  const Text *text;
} Delivery;

static void deliver_one(Sc *sc, const Delivery *to, const Diag *d) {
  Str rendered = {.sc = sc};
  sc_diag_text(&rendered, to->text, d);
  size_t notes = 0;
  for (const Note *n = d->notes; n; n = n->next) notes++;
  schedc_note *note = NEWS(sc, schedc_note, notes);
  size_t i = 0;
  for (const Note *n = d->notes; n; n = n->next)
    note[i++] = (schedc_note){range_of(to->text, n->at), n->text};
  schedc_diagnostic out = {.size = sizeof out,
                           .severity = d->severity,
                           .code = sc_diag_code(d->id),
                           .file = to->text->name,
                           .where = range_of(to->text, d->at),
                           .text = d->text,
                           .help = d->help,
                           .notes = note,
                           .note_count = notes,
                           .rendered = rendered.at};
  to->context->sink(to->context->user, &out);
}

static schedc_status deliver(Sc *sc, void *job) {
  for (const Diag *d = sc->diags; d; d = d->next) deliver_one(sc, job, d);
  return SCHEDC_OK;
}

// Hands all diagnostics over; `status`, unless that fails. text NULL: no text was made.
static schedc_status delivered(const schedc_context *context, Sc *sc, const Text *text,
                               schedc_status status) {
  if (!context->sink || !sc->diags || !text) return status;
  schedc_status failed = sc_guard(sc, deliver, &(Delivery){context, text});
  return failed ? failed : status;
}

schedc_status sc_enter(const schedc_context *context, Sc *sc, const Text *text, Step step,
                       void *job) {
  sc->text = text;
  sc->unverified = context->unverified;
  schedc_status status = sc_guard(sc, step, job);
  if (status == SCHEDC_OK && sc->errors) status = SCHEDC_EINPUT;
  return delivered(context, sc, text, status);
}

schedc_status sc_guard_once(const schedc_allocator *alloc, Step step, void *job) {
  Sc sc;
  sc_init(&sc, alloc);
  schedc_status status = sc_guard(&sc, step, job);
  sc_free(&sc);
  return status;
}

schedc_status sc_enter_once(const schedc_context *context, const Text *text, Step step, void *job) {
  Sc sc;
  sc_init(&sc, &context->alloc);
  schedc_status status = sc_enter(context, &sc, text, step, job);
  sc_free(&sc);
  return status;
}

void *sc_zeroed(const schedc_context *context, size_t bytes) {
  void *at = context->alloc.alloc(context->alloc.user, bytes);
  return at ? memset(at, 0, bytes) : NULL;
}

void *sc_new_handle(const schedc_context *context, size_t bytes, size_t sc_at) {
  char *handle = sc_zeroed(context, bytes);
  if (handle) sc_init((Sc *)(void *)(handle + sc_at), &context->alloc);
  return handle;
}

void sc_free_handle(Sc *sc, void *handle) {
  schedc_allocator alloc = sc->alloc;
  sc_free(sc);
  alloc.free(alloc.user, handle);
}

schedc_status sc_write(schedc_writer writer, void *user, const Str *text) {
  return text->n && writer(user, text->at, text->n) ? SCHEDC_EIO : SCHEDC_OK;
}

// ---- contexts

schedc_status schedc_open(schedc_context **out, const schedc_options *options) {
  if (!out) return SCHEDC_EARG;
  *out = NULL;
  schedc_options known = SCHEDC_OPTIONS_INIT;
  if (!TAKE_OPTIONS(&known, options)) return SCHEDC_EARG;
  schedc_allocator alloc = known.allocator ? *known.allocator : sc_host_memory;
  if (!alloc.alloc || !alloc.free) return SCHEDC_EARG;
  schedc_context *context = alloc.alloc(alloc.user, sizeof *context);
  if (!context) return SCHEDC_ENOMEM;
  *context = (schedc_context){alloc, known.sink, known.sink_user, known.unverified != 0, {{0}}};
  sc_init(&context->scratch, &alloc);
  *out = context;
  return SCHEDC_OK;
}

void schedc_close(schedc_context *context) {
  if (!context) return;
  schedc_allocator alloc = context->alloc;
  sc_free(&context->scratch);
  alloc.free(alloc.user, context);
}

// ---- sources

typedef struct ParseJob {
  schedc_source *source;
  const char *name, *text;
  size_t length;
} ParseJob;

static void index_unit(Sc *sc, schedc_source *source, const Node *n) {
  Unit unit = {.name = n->name, .is_sequence = n->kind == ND_SEQUENCE};
  for (const Node *item = n->a; item; item = item->next) unit.cases += item->kind == ND_CASE;
  unit.kase = NEWS(sc, Sym, unit.cases + 1);
  u32 at = 0;
  for (const Node *item = n->a; item; item = item->next) {
    if (item->kind == ND_CASE) unit.kase[at++] = item->name;
    if (item->kind != ND_PARAM) continue;
    for (const Node *def = item->a; def; def = def->next) unit.params++;
  }
  PUSH(sc, &source->unit, unit);
}

static schedc_status parse(Sc *sc, void *job) {
  ParseJob *j = job;
  schedc_source *source = j->source;
  source->text = sc->text = sc_text(sc, j->name, j->text, j->length);
  source->ast = sc_parse(sc, sc->text);
  if (sc->errors) return SCHEDC_EINPUT;
  for (const Node *n = source->ast->file->a; n; n = n->next) {
    if (n->kind == ND_KERNEL || n->kind == ND_SEQUENCE) index_unit(sc, source, n);
  }
  return SCHEDC_OK;
}

schedc_status schedc_parse(schedc_source **out, schedc_context *context, const char *name,
                           const char *text, size_t length) {
  if (!out) return SCHEDC_EARG;
  *out = NULL;
  if (!context || !name || (!text && length)) return SCHEDC_EARG;
  if (length >= (size_t)INT32_MAX) return SCHEDC_ELIMIT;
  schedc_source *source = NEW_HANDLE(context, schedc_source);
  if (!source) return SCHEDC_ENOMEM;
  atomic_init(&source->refs, 1);
  // sc_enter, but with a text that the step itself makes
  schedc_status status = sc_guard(&source->sc, parse, &(ParseJob){source, name, text, length});
  status = delivered(context, &source->sc, source->text, status);
  if (status == SCHEDC_OK) *out = source;
  else schedc_source_free(source);
  return status;
}

void sc_source_keep(const schedc_source *source) {
  atomic_fetch_add_explicit(&((schedc_source *)source)->refs, 1, memory_order_relaxed);
}

void schedc_source_free(schedc_source *source) {
  if (!source || atomic_fetch_sub_explicit(&source->refs, 1, memory_order_acq_rel) != 1) return;
  sc_free_handle(&source->sc, source);
}

const char *schedc_source_text(const schedc_source *source, size_t *length) {
  if (length) *length = source ? source->text->len : 0;
  return source ? source->text->at : NULL;
}

size_t schedc_unit_count(const schedc_source *source) { return source ? source->unit.n : 0; }

schedc_status schedc_unit(const schedc_source *source, size_t index, schedc_unit_info *info) {
  if (!source || !SAYS_SIZE(info) || index >= source->unit.n) return SCHEDC_EARG;
  const Unit *u = &source->unit.at[index];
  schedc_unit_info out = {0, u->name, u->is_sequence, u->params, u->cases};
  COPY_OUT(info, &out);
  return SCHEDC_OK;
}

schedc_status schedc_case_name(const schedc_source *source, size_t unit, size_t index,
                               const char **name) {
  if (name) *name = NULL;
  if (!source || !name || unit >= source->unit.n || index >= source->unit.at[unit].cases)
    return SCHEDC_EARG;
  *name = source->unit.at[unit].kase[index];
  return SCHEDC_OK;
}

// ---- formatting

typedef struct FormatJob {
  const schedc_source *source;
  schedc_writer writer;
  void *user;
} FormatJob;

static schedc_status format(Sc *sc, void *job) {
  FormatJob *j = job;
  Str out = {.sc = sc};
  sc_print_source(&out, j->source->ast);
  return sc_write(j->writer, j->user, &out);
}

schedc_status schedc_format(schedc_context *context, const schedc_source *source,
                            schedc_writer writer, void *user) {
  if (!context || !source || !writer) return SCHEDC_EARG;
  return sc_enter_once(context, source->text, format, &(FormatJob){source, writer, user});
}
