// stmt.c - emitted code as a tree of statements. In: calls in the order of the code. Out:
// blocks of statements (Stmt), which print.c prints.
//
// A name that is declared only where it is used (Name) stands as "$name" in every text. Placing a
// text in a statement counts its names and takes the '$' away; a text that is made and not placed
// counts for nothing.
// Called by all that write code; calls name.c.
#include "compiler/emit/emit.h"

#include <assert.h>
#include <string.h>

// ---- names

void cu_name(Cuda *c, const char *name) {
  PUSH(c->sc, &c->counted, 0);
  sc_key(c->sc, c->of_role ? &c->in_role : &c->in_kernel, 0, name, strlen(name))->number =
      c->counted.n;
}

// How often a name is used.
static u32 *uses_of(const Cuda *c, const char *name, size_t n) {
  u32 number = sc_key_number(&c->in_role, 0, name, n);
  if (!number) number = sc_key_number(&c->in_kernel, 0, name, n);
  assert(number);  // else it is never declared
  return &c->counted.at[number - 1];
}

bool cu_used(const Cuda *c, const char *name) { return *uses_of(c, name, strlen(name)) > 0; }

// The text as it is printed, its names counted.
static const char *placed(Cuda *c, const char *fmt, va_list ap) {
  char *text = sc_vprintf(c->sc, fmt, ap), *to = strchr(text, '$');
  if (!to) return text;
  for (const char *from = to; *from; from++) {
    size_t n;
    const char *name = *from == '$' ? cu_next_name(from, &n) : NULL;
    if (name) ++*uses_of(c, name, n);
    else *to++ = *from;
  }
  *to = 0;
  return text;
}

// ---- statements

static Stmt *statement(Cuda *c, StmtKind kind, const char *text) {
  Stmt *s = NEW(c->sc, Stmt);
  *s = (Stmt){.kind = (u8)kind, .text = text, .around = c->block};
  return s;
}

void cu_insert(Cuda *c, Stmt *after, const Stmt *lines) {
  Stmt **at = after ? &after->next : &c->block->first;
  if (!lines->first) return;
  lines->last->next = *at;
  if (!*at) c->block->last = lines->last;
  *at = lines->first;
}

void cu_place(Cuda *c, Stmt *s) { cu_insert(c, c->block->last, &(Stmt){.first = s, .last = s}); }

void cu_line(Cuda *c, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  cu_place(c, statement(c, ST_CODE, placed(c, fmt, ap)));
  va_end(ap);
}

void cu_var(Cuda *c, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  cu_place(c, statement(c, ST_VARIABLE, placed(c, fmt, ap)));
  va_end(ap);
}

void cu_remark(Cuda *c, const char *text) { cu_place(c, statement(c, ST_REMARK, text)); }

void cu_note(Cuda *c, const char *why) { c->block->last->note = why; }

// ---- blocks

Stmt *cu_begin(Cuda *c) { return c->block = statement(c, ST_BLOCK, ""); }

void cu_close(Cuda *c) { c->block = c->block->around; }

static void open_block(Cuda *c, const char *head) {
  Stmt *s = statement(c, ST_BLOCK, head);
  cu_place(c, s);
  c->block = s;
}

void cu_open(Cuda *c, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  open_block(c, placed(c, fmt, ap));
  va_end(ap);
}

void cu_open_scope(Cuda *c) { open_block(c, ""); }

void cu_open_unrolled(Cuda *c, const char *var, i64 n) {
  cu_remark(c, "#pragma unroll");
  cu_open(c, "for (int %s = 0; %s < %lld; %s++)", var, var, (long long)n, var);
}

void cu_else(Cuda *c, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  Stmt *before = c->block;
  c->block = before->around;
  c->block = before->otherwise = statement(c, ST_BLOCK, placed(c, fmt, ap));
  va_end(ap);
}
